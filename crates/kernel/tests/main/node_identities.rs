//! S7: identities of nodes. A cluster of its own: a kernel, what is durable, and connections that prove something.

use crate::world::{Store, apply};
use kernel::{
    Body, Command, Config, Effect, Input, JoinRequest, Kernel, NodeKey, NodeProof, Records, Request,
};
use vocab::{Failure, Resources, Span, Time};
use wire::{Hello, NodeMessage, PROTOCOL_VERSION, ServerMessage};
use yson::Value;

const DAY: Span = Span::from_secs(24 * 3600);

struct Cluster {
    now: Time,
    config: Config,
    kernel: Kernel,
    durable: Store,
    requests: u64,
    connections: u64,
    /// What nodes say about their users.
    authentication: Option<bool>,
}

/// What the server did with a connection.
#[derive(Debug, PartialEq)]
enum Link {
    Welcome,
    Refused(String),
}

fn digest(of: char) -> String {
    of.to_string().repeat(64)
}

fn certificate(key: char) -> NodeProof {
    NodeProof::Certificate { key_sha256: digest(key) }
}

fn token(name: Option<&str>, secret: char) -> Command {
    Command::CreateJoinToken {
        token_sha256: digest(secret),
        name: name.map(str::to_owned),
        ttl: None,
        replace: false,
    }
}

fn recover(config: &Config, durable: &Store, now: Time) -> Kernel {
    let mut records = Records::default();
    for ((table, key), value) in durable.iter().filter(|((table, _), _)| Records::TABLES.contains(table)) {
        records.add(*table, key, value);
    }
    Kernel::recover(config.clone(), records, now, &mut Vec::new()).expect("good records")
}

impl Cluster {
    fn new(change: impl FnOnce(&mut Config)) -> Cluster {
        let mut config = Config::new("server:1", 1);
        (config.node_identities, config.access_control) = (true, true);
        change(&mut config);
        let now = Time::from_secs(1_000_000);
        let kernel = recover(&config, &Store::new(), now);
        Cluster {
            now,
            config,
            kernel,
            durable: Store::new(),
            requests: 0,
            connections: 0,
            authentication: Some(true),
        }
    }

    fn turn(&mut self, input: Input) -> Vec<Effect> {
        self.turn_with([input])
    }

    fn turn_with(&mut self, inputs: impl IntoIterator<Item = Input>) -> Vec<Effect> {
        let mut effects = Vec::new();
        for input in inputs {
            self.kernel.handle(self.now, input, &mut effects);
        }
        // Later than changes that nobody waits for are held back.
        self.now += Span::from_secs(1);
        self.kernel.flush(self.now, true, &mut effects);
        for effect in &effects {
            if let Effect::Commit { batch, .. } = effect {
                apply(&mut self.durable, batch);
            }
        }
        effects
    }

    /// `kill -9`, and the next life.
    fn restart(&mut self) {
        self.config.life += 1;
        self.kernel = recover(&self.config, &self.durable, self.now);
    }

    fn ask(&mut self, user: &str, command: Command) -> Result<Value, Failure> {
        self.requests += 1;
        let request = Request { id: self.requests, user: user.to_owned(), mutation_id: None, command };
        let effects = self.turn(Input::Request(request));
        let reply = effects.into_iter().find_map(|effect| match effect {
            Effect::Reply { body, .. } => Some(body),
            _ => None,
        });
        match reply.expect("an answer")? {
            Body::Value(value) => Ok(value),
            other => panic!("not a value: {other:?}"),
        }
    }

    /// `state` of the answer.
    fn join(&mut self, name: &str, key: char, token: Option<char>) -> Result<String, Failure> {
        let request = JoinRequest {
            name: name.to_owned(),
            key_sha256: digest(key),
            token_sha256: token.map(digest),
            address: None,
        };
        let answer = self.ask("root", Command::JoinNode(Box::new(request)))?;
        Ok(answer.get("state").and_then(Value::as_str).expect("a state").to_owned())
    }

    fn refuses(&mut self, name: &str, key: char, token: Option<char>, words: &str) {
        let refused = self.join(name, key, token).expect_err(words).to_string();
        assert!(refused.contains(words), "expected {words:?} in {refused}");
    }

    fn connect(&mut self, name: &str, proof: Option<NodeProof>) -> (NodeKey, Link) {
        self.connections += 1;
        let node = NodeKey(self.connections);
        let hello = Hello {
            protocol_version: PROTOCOL_VERSION,
            address: name.to_owned(),
            incarnation: self.connections,
            resource_limits: Resources::ZERO,
            tags: Vec::new(),
            job_environment: "simple".into(),
            alerts: Vec::new(),
            disk_capacity: None,
            running: Vec::new(),
            finished: Vec::new(),
            data_id: String::new(),
            knows_job_uids: true,
            authentication: self.authentication,
            stamp: vocab::Span::ZERO,
        };
        // The edge says both at once: a link without an identity does not live to the next look at them.
        let connected = proof.map(|proof| Input::NodeConnected { node, proof });
        let hello = Input::Node { node, message: NodeMessage::Hello(hello) };
        let effects = self.turn_with(connected.into_iter().chain([hello]));
        (node, link(&effects, node).expect("an answer"))
    }

    fn welcomes(&mut self, name: &str, key: char) -> NodeKey {
        let (node, link) = self.connect(name, Some(certificate(key)));
        assert_eq!(link, Link::Welcome);
        node
    }

    fn does_not_welcome(&mut self, name: &str, proof: Option<NodeProof>, words: &str) {
        match self.connect(name, proof).1 {
            Link::Refused(why) if why.contains(words) => {}
            other => panic!("expected a refusal with {words:?}, found {other:?}"),
        }
    }

    fn alert(&mut self, name: &str) -> Option<String> {
        let path = yson::ypath::YPath::parse(b"//sys/scheduler/@alerts").expect("a path");
        let get = Command::Get { path, attributes: Vec::new(), max_size: None, fields: None };
        let alerts = self.ask("root", get).expect("alerts");
        let of_name = |alert: &&Value| {
            alert.get("attributes").and_then(|a| a.get("alert_type")).and_then(Value::as_str) == Some(name)
        };
        let found = alerts.as_list().expect("a list").iter().find(of_name)?;
        Some(found.get("message")?.as_str()?.to_owned())
    }
}

fn link(effects: &[Effect], node: NodeKey) -> Option<Link> {
    effects.iter().find_map(|effect| match effect {
        Effect::ToNode { node: to, message, .. } if *to == node => match message {
            ServerMessage::Welcome { .. } => Some(Link::Welcome),
            ServerMessage::Refuse(why) => Some(Link::Refused(why.to_string())),
            _ => None,
        },
        _ => None,
    })
}

fn is_closed(effects: &[Effect], node: NodeKey) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Disconnect(closed) if *closed == node))
}

/// S7: a token is exchanged once; who was killed before the certificate was stored gets it again, nobody else does.
#[test]
fn a_join_token_is_exchanged_once_and_by_one_key() {
    let mut c = Cluster::new(|_| {});
    c.ask("root", token(None, 'a')).expect("made");
    c.ask("root", token(Some("two"), 'b')).expect("made");
    c.restart();
    c.refuses("one", '1', Some('c'), "not known");
    c.refuses("one", '1', Some('b'), "for node two");
    assert_eq!(c.join("one", '1', Some('a')).expect("joined"), "joined");
    c.restart();
    assert_eq!(c.join("one", '1', Some('a')).expect("the same key"), "joined");
    c.refuses("three", '3', Some('a'), "used already, by one");
    c.refuses("three", '1', Some('a'), "identity of node one");
    assert_eq!(c.join("two", '2', Some('b')).expect("joined"), "joined");
    c.welcomes("one", '1');
    // The secret is nowhere in the store: only its digest ever came here.
    c.ask("root", token(None, 'd')).expect("made");
    c.now += DAY + DAY;
    c.turn(Input::Tick);
    c.restart();
    // That it was used is known for longer than it was good: who stole it must be found.
    c.refuses("three", '3', Some('a'), "used already, by one");
    c.refuses("three", '3', Some('d'), "not known or has ended");
    c.welcomes("one", '1');
    c.now += DAY + DAY;
    c.now += Span::from_secs(31 * 24 * 3600);
    c.turn(Input::Tick);
    c.refuses("three", '3', Some('a'), "not known or has ended");
}

/// S7: with a key of a node that was stolen later, `Join` gave out certificates for ever, without a trace.
#[test]
fn a_key_that_has_connected_gets_no_certificate_by_joining() {
    let mut c = Cluster::new(|_| {});
    c.ask("root", token(Some("one"), 'a')).expect("made");
    c.join("one", '1', Some('a')).expect("joined");
    c.now += Span::from_secs(120);
    assert_eq!(c.join("one", '1', None).expect("killed before it was stored"), "joined");
    let node = c.welcomes("one", '1');
    for _ in 0..2 {
        c.refuses("one", '1', Some('a'), "has connected with this key already");
        c.refuses("one", '1', None, "has connected with this key already");
        c.turn(Input::NodeDisconnected(node));
        c.restart();
    }
    c.ask("root", Command::RenewNode { key_sha256: digest('1') }).expect("over a connection it is renewed");
}

/// S7: a node whose clock was ahead renewed without a pause, and each time was a write.
#[test]
fn renewals_in_a_row_are_not_written_down() {
    let mut c = Cluster::new(|_| {});
    c.ask("root", token(Some("one"), 'a')).expect("made");
    c.join("one", '1', Some('a')).expect("joined");
    let end = |c: &mut Cluster| {
        let renewed = c.ask("root", Command::RenewNode { key_sha256: digest('1') }).expect("renewed");
        renewed.get("valid_until").and_then(Value::as_str).expect("an end").to_owned()
    };
    let (first, second) = (end(&mut c), end(&mut c));
    assert_eq!(first, second);
    c.now += Span::from_secs(120);
    assert_ne!(end(&mut c), first);
}

/// S7: one node could make the server sign without end. It is told to try later, and stays what it is.
#[test]
fn an_identity_gets_one_certificate_a_minute_after_a_burst() {
    let mut c = Cluster::new(|_| {});
    for (name, secret, key) in [("one", 'a', '1'), ("two", 'b', '2')] {
        c.ask("root", token(Some(name), secret)).expect("made");
        c.join(name, key, Some(secret)).expect("joined");
    }
    // Killed before its certificate was stored, again and again: that counts, too.
    let again = (0..100).filter(|_| c.join("one", '1', Some('a')).is_ok()).count();
    assert!((9..=11).contains(&again), "{again}");
    let node = c.welcomes("one", '1');
    let renew = |c: &mut Cluster, key| c.ask("root", Command::RenewNode { key_sha256: digest(key) });
    let refused = renew(&mut c, '1').expect_err("too many");
    assert_eq!(refused.code, vocab::code::UNAVAILABLE, "{refused}");
    assert!(refused.message.contains("try again in"), "{refused}");
    renew(&mut c, '2').expect("another node is not concerned");
    // Each turn takes a second.
    let begin = c.now;
    let given = (0..300).filter(|_| renew(&mut c, '1').is_ok()).count();
    let minutes = c.now.since(begin).as_micros() / 60_000_000;
    assert!((minutes..=minutes + 1).contains(&(given as u64)), "{given} in {minutes} minutes");
    assert!(c.ask("root", Command::IdentifyNode { from: certificate('1') }).is_ok());
    c.turn(Input::NodeDisconnected(node));
    c.welcomes("one", '1');
    c.now += Span::from_secs(1200);
    let burst = (0..30).filter(|_| renew(&mut c, '1').is_ok()).count();
    assert!((10..=11).contains(&burst), "{burst}");
}

/// S7.
#[test]
fn a_node_registers_under_its_own_name_only() {
    let mut c = Cluster::new(|_| {});
    for (name, secret, key) in [("one", 'a', '1'), ("two", 'b', '2')] {
        c.ask("root", token(Some(name), secret)).expect("made");
        c.join(name, key, Some(secret)).expect("joined");
    }
    c.does_not_welcome("two", Some(certificate('1')), "belongs to node one");
    c.does_not_welcome("new", Some(certificate('1')), "belongs to node one");
    c.does_not_welcome("one", Some(certificate('9')), "does not know the identity");
    c.does_not_welcome("one", None, "shown no identity");
    c.does_not_welcome("one", Some(NodeProof::Insecure), "identity of its own");
    c.does_not_welcome("ONE", Some(NodeProof::Insecure), "identity of its own");
    c.ask("root", token(None, 'c')).expect("made");
    c.refuses("one", '3', Some('c'), "belongs to another identity");
    c.refuses("One", '3', Some('c'), "belongs to another identity");
    let refused = c.ask("root", token(Some("one"), 'd')).expect_err("the name is taken").to_string();
    assert!(refused.contains("--replace"), "{refused}");
    // The refused one has not used up its token.
    assert_eq!(c.join("three", '3', Some('c')).expect("joined"), "joined");
    for (name, key) in [("one", '1'), ("two", '2'), ("three", '3')] {
        c.welcomes(name, key);
    }
}

/// S7.
#[test]
fn a_revoked_node_is_cut_off_for_good() {
    let mut c = Cluster::new(|_| {});
    c.ask("root", token(Some("one"), 'a')).expect("made");
    c.join("one", '1', Some('a')).expect("joined");
    let node = c.welcomes("one", '1');
    c.requests += 1;
    let command = Command::RevokeNode { name: "one".into() };
    let request = Request { id: c.requests, user: "root".into(), mutation_id: None, command };
    let effects = c.turn(Input::Request(request));
    assert!(
        is_closed(&effects, node) && matches!(link(&effects, node), Some(Link::Refused(_))),
        "{effects:?}"
    );
    for _ in 0..2 {
        c.does_not_welcome("one", Some(certificate('1')), "was revoked");
        c.refuses("one", '1', Some('a'), "was revoked");
        c.refuses("one", '1', None, "was revoked");
        let identify = Command::IdentifyNode { from: certificate('1') };
        c.ask("root", identify).expect_err("revoked");
        c.ask("root", Command::RenewNode { key_sha256: digest('1') }).expect_err("revoked");
        c.restart();
    }
    // The name is free for another key.
    c.ask("root", token(Some("one"), 'b')).expect("made");
    c.join("one", '2', Some('b')).expect("joined");
    c.welcomes("one", '2');
    let unknown = c.ask("root", Command::RevokeNode { name: "nobody".into() }).expect_err("unknown");
    assert!(unknown.message.contains("has no identity"), "{unknown}");
}

/// S7: a node that is set up anew, with another key, takes its name over when an administrator says so.
#[test]
fn a_token_can_replace_an_identity() {
    let mut c = Cluster::new(|_| {});
    c.ask("root", token(Some("one"), 'a')).expect("made");
    c.join("one", '1', Some('a')).expect("joined");
    let old = c.welcomes("one", '1');
    let replacing = Command::CreateJoinToken {
        token_sha256: digest('b'),
        name: Some("one".into()),
        ttl: Some(Span::from_secs(60)),
        replace: true,
    };
    c.ask("root", replacing.clone()).expect("made");
    let again = c.ask("root", replacing).expect("the same one");
    assert_eq!(again.get("name").and_then(Value::as_str), Some("one"));
    c.join("one", '2', Some('b')).expect("joined");
    let effects = c.turn(Input::Node { node: old, message: NodeMessage::Leaving });
    assert!(link(&effects, old).is_none(), "what the old one says does not count: {effects:?}");
    c.does_not_welcome("one", Some(certificate('1')), "was revoked");
    c.welcomes("one", '2');
}

/// S7: a certificate is renewed before it ends, or the link is closed.
#[test]
fn a_link_ends_with_its_certificate_unless_it_is_renewed() {
    let mut c = Cluster::new(|config| config.node_certificate_ttl = Span::from_secs(100));
    for (name, secret, key) in [("one", 'a', '1'), ("two", 'b', '2')] {
        c.ask("root", token(Some(name), secret)).expect("made");
        c.join(name, key, Some(secret)).expect("joined");
    }
    c.now += Span::from_secs(50);
    let renewed = c.ask("root", Command::RenewNode { key_sha256: digest('1') }).expect("renewed");
    assert_eq!(renewed.get("name").and_then(Value::as_str), Some("one"));
    c.restart();
    let (one, two) = (c.welcomes("one", '1'), c.welcomes("two", '2'));
    // Less than the time after which a silent node is lost.
    c.now += Span::from_secs(46);
    let effects = c.turn(Input::Tick);
    assert!(is_closed(&effects, two) && !is_closed(&effects, one), "{effects:?}");
    c.does_not_welcome("two", Some(certificate('2')), "has ended");
    c.refuses("two", '2', Some('b'), "has ended");
    let renewal = c.ask("root", Command::RenewNode { key_sha256: digest('2') }).expect_err("too late");
    assert!(renewal.message.contains("has ended"), "{renewal}");
}

/// S7.
#[test]
fn a_node_without_a_token_waits_for_an_approval() {
    let mut c = Cluster::new(|_| {});
    assert_eq!(c.join("one", '1', None).expect("it waits"), "pending");
    assert_eq!(c.join("one", '2', None).expect("a stranger, perhaps"), "pending");
    c.does_not_welcome("one", Some(certificate('1')), "does not know the identity");
    c.refuses("two", '1', None, "waits for an approval as node one");
    // Strangers are not written down: after a restart both ask again.
    c.restart();
    for key in ['1', '2'] {
        assert_eq!(c.join("one", key, None).expect("it waits"), "pending");
    }
    let approve =
        |key: Option<char>| Command::ApproveNode { name: "one".into(), key_sha256: key.map(digest) };
    let refused = c.ask("root", approve(None)).expect_err("which one?").to_string();
    assert!(refused.contains(&digest('1')) && refused.contains(&digest('2')), "{refused}");
    c.ask("root", approve(Some('3'))).expect_err("unknown");
    c.ask("root", approve(Some('1'))).expect("approved");
    c.restart();
    assert_eq!(c.join("one", '1', None).expect("approved"), "joined");
    // A stranger does not learn that the name is taken; whoever approves it does.
    assert_eq!(c.join("one", '2', None).expect("it waits"), "pending");
    let refused = c.ask("root", approve(Some('2'))).expect_err("the name is taken").to_string();
    assert!(refused.contains("--replace"), "{refused}");
    c.welcomes("one", '1');
    let list = c.ask("root", Command::ListNodeIdentities).expect("a list");
    let names = |what: &str| list.get(what).and_then(Value::as_list).map_or(0, <[Value]>::len);
    assert_eq!((names("identities"), names("pending"), names("tokens")), (1, 1, 0));
    // The stranger is refused by name.
    c.ask("root", Command::RevokeNode { name: "one".into() }).expect("both");
    let list = c.ask("root", Command::ListNodeIdentities).expect("a list");
    assert_eq!(list.get("pending").and_then(Value::as_list).map(<[Value]>::len), Some(0));

    let mut c = Cluster::new(|config| config.node_approval = false);
    c.refuses("one", '1', None, "--join-token-file");
}

/// S7: strangers cannot fill the server.
#[test]
fn nodes_that_wait_are_bounded() {
    let mut c = Cluster::new(|_| {});
    let key = |number: u64| format!("{number:064x}");
    let join = |c: &mut Cluster, number: u64| {
        let name = format!("n{number}");
        let address = Some(std::net::IpAddr::from([10, 0, 0, (number / 5) as u8]));
        let request = JoinRequest { name, key_sha256: key(number), token_sha256: None, address };
        c.ask("root", Command::JoinNode(Box::new(request)))
    };
    // So many in a minute: each of them is an event.
    let refuses = |c: &mut Cluster, number: u64, words: &str| {
        let refused = join(c, number).expect_err(words).to_string();
        assert!(refused.contains(words), "{number}: {refused}");
    };
    let begin = c.now;
    for number in 0..30 {
        join(&mut c, number).expect("room");
        c.now = begin;
    }
    refuses(&mut c, 30, "try again in a minute");
    // All of them ask, so that none has been away.
    for round in 1..4 {
        c.now = begin + Span::from_secs(60 * round);
        let now = c.now;
        for number in 0..(30 * (round + 1)).min(100) {
            join(&mut c, number).expect("room");
            c.now = now;
        }
    }
    c.now = begin + Span::from_secs(241);
    let now = c.now;
    for number in 0..100 {
        join(&mut c, number).expect("known");
        c.now = now;
    }
    refuses(&mut c, 500, "100 nodes wait for an approval");
    c.now += Span::from_secs(120);
    join(&mut c, 500).expect("the longest away gives its place");
    for name in ["", " a", "a\n", "-a", "a;b", "$(a)", "a'", "a/b", &"x".repeat(254)] {
        c.refuses(name, 'f', None, "Name of a node: expected 1 to 253 letters");
    }
    for name in ["[fd00::1]:9000", "Worker-7.example:80"] {
        c.ask("root", token(Some(name), 'a')).expect("a good name");
        c.ask("root", Command::RevokeJoinToken { token_sha256: digest('a') }).expect("revoked");
    }
    // One host does not take all places.
    let mut c = Cluster::new(|_| {});
    for number in 0..5 {
        join(&mut c, number).expect("room");
    }
    let from = |c: &mut Cluster, number: u64, address: &str| {
        let address = Some(address.parse().expect("an address"));
        let name = format!("n{number}");
        let request = JoinRequest { name, key_sha256: key(number), token_sha256: None, address };
        c.ask("root", Command::JoinNode(Box::new(request)))
    };
    let refused = from(&mut c, 99, "10.0.0.0").expect_err("too many").to_string();
    assert!(refused.contains("5 nodes from this network"), "{refused}");
    for number in 10..15 {
        from(&mut c, number, &format!("fd00::1:{number}")).expect("room");
    }
    from(&mut c, 15, "fd00::ffff:ffff").expect_err("the same network");
    from(&mut c, 15, "fd00:0:0:1::1").expect("another network");
}

/// S7: who may do everything needs no token, and two nodes have one name nowhere.
#[test]
fn without_authentication_nodes_join_by_themselves() {
    let mut c = Cluster::new(|config| config.access_control = false);
    assert_eq!(c.join("one", '1', None).expect("joined"), "joined");
    let node = c.welcomes("one", '1');
    c.refuses("one", '2', None, "names of nodes must be unique");
    c.turn(Input::NodeDisconnected(node));
    assert_eq!(c.join("one", '2', None).expect("it was set up anew"), "joined");
    let node = c.welcomes("one", '2');
    c.does_not_welcome("one", Some(certificate('1')), "names of nodes must be unique");
    c.turn(Input::NodeDisconnected(node));
    // The old one was refused for ever, with nobody who could let it in again.
    let node = c.welcomes("one", '1');
    c.turn(Input::NodeDisconnected(node));
    c.restart();
    c.welcomes("one", '1');
    c.ask("root", Command::RevokeNode { name: "one".into() }).expect("both");
    for key in ['1', '2'] {
        c.does_not_welcome("one", Some(certificate(key)), "was revoked");
    }
}

/// S7: identities that anybody could get stayed good when authentication was switched on, and nothing told it.
#[test]
fn identities_of_a_time_without_authentication_are_told_and_give_their_names_up() {
    let mut c = Cluster::new(|_| {});
    c.ask("root", token(Some("held"), 'a')).expect("made");
    c.join("held", '9', Some('a')).expect("joined");
    c.config.access_control = false;
    c.restart();
    for (name, key) in [("one", '1'), ("two", '2'), ("held", '3')] {
        c.join(name, key, None).expect("joined");
    }
    assert_eq!(c.alert("unconfirmed_node_identities"), None);
    c.config.access_control = true;
    c.restart();
    let told = c.alert("unconfirmed_node_identities").expect("an alert");
    assert!(told.starts_with("3 nodes") && told.contains("millpond node approve"), "{told}");
    c.does_not_welcome("held", Some(certificate('3')), "given to another identity");
    c.welcomes("held", '9');
    c.ask("root", Command::ApproveNode { name: "one".into(), key_sha256: None }).expect("approved");
    c.ask("root", token(Some("two"), 'b')).expect("the name is free for a token");
    c.join("two", '4', Some('b')).expect("joined");
    c.restart();
    c.welcomes("one", '1');
    c.welcomes("two", '4');
    c.does_not_welcome("two", Some(certificate('2')), "was revoked");
    let list = c.ask("root", Command::ListNodeIdentities).expect("a list");
    let identities = list.get("identities").and_then(Value::as_list).expect("a list");
    let mut by: Vec<&str> = identities.iter().filter_map(|one| one.get("by")?.as_str()).collect();
    by.sort_unstable();
    assert_eq!(by, ["approval", "join_token", "join_token", "no_authentication", "no_authentication"]);
}

/// S7: without an identity a revoked node came back under its name, and kept the right one out.
#[test]
fn a_link_without_an_identity_gives_way_and_does_not_undo_a_revocation() {
    let mut c = Cluster::new(|_| {});
    c.ask("root", token(Some("one"), 'a')).expect("made");
    let (old, link) = c.connect("one", Some(NodeProof::Insecure));
    assert_eq!(link, Link::Welcome);
    c.join("one", '1', Some('a')).expect("joined");
    let node = c.welcomes("one", '1');
    let effects = c.turn(Input::Node { node: old, message: NodeMessage::Leaving });
    assert!(
        crate::node_identities::link(&effects, old).is_none(),
        "what the displaced one says does not count: {effects:?}"
    );
    c.ask("root", Command::RevokeNode { name: "one".into() }).expect("revoked");
    c.turn(Input::NodeDisconnected(node));
    let (plain, link) = c.connect("plain", Some(NodeProof::Insecure));
    assert_eq!(link, Link::Welcome);
    c.requests += 1;
    let command = Command::RevokeNode { name: "plain".into() };
    let request = Request { id: c.requests, user: "root".into(), mutation_id: None, command };
    let effects = c.turn(Input::Request(request));
    assert!(is_closed(&effects, plain), "{effects:?}");
    // The identity is forgotten in time, the name is not.
    for wait in [Span::ZERO, Span::from_secs(100 * 24 * 3600)] {
        c.now += wait;
        c.turn(Input::Tick);
        c.restart();
        for name in ["one", "plain", "PLAIN"] {
            c.does_not_welcome(name, Some(NodeProof::Insecure), "without an identity");
        }
    }
    let list = c.ask("root", Command::ListNodeIdentities).expect("a list");
    assert_eq!(list.get("identities").and_then(Value::as_list).map(<[Value]>::len), Some(0));
}

/// S7: a damaged field counted as an absent one: a token for one name was one for all.
#[test]
fn a_record_with_a_field_of_another_type_is_refused() {
    let mut c = Cluster::new(|_| {});
    c.ask("root", token(Some("one"), 'a')).expect("made");
    c.join("one", '1', Some('a')).expect("joined");
    c.ask("root", Command::RevokeNode { name: "one".into() }).expect("revoked");
    let is_identity = |table: &vocab::batch::Table| *table == vocab::batch::Table::NodeIdentities;
    let mut tried = 0;
    for (place, record) in c.durable.clone().into_iter().filter(|((table, _), _)| is_identity(table)) {
        let map = yson::parse_record(&record).expect("a record").as_map().cloned().expect("a map");
        // Of a closed name the key says everything.
        for field in map.key_strings().filter(|_| place.1[0] != b'n') {
            let mut damaged = map.clone();
            damaged.insert(field.as_str(), Value::from(7i64));
            let mut durable = c.durable.clone();
            durable.insert(place.clone(), yson::to_binary(&damaged.into()));
            let mut records = Records::default();
            let used = durable.iter().filter(|((table, _), _)| Records::TABLES.contains(table));
            used.for_each(|((table, key), value)| records.add(*table, key, value));
            let recovered = Kernel::recover(c.config.clone(), records, c.now, &mut Vec::new());
            assert!(recovered.is_err(), "{field}");
            tried += 1;
        }
    }
    assert!(tried >= 10, "{tried} fields");
}

/// S7: only administrators deal with identities, and the questions of the server are the server's.
#[test]
fn only_administrators_deal_with_identities() {
    let mut c = Cluster::new(|_| {});
    let attributes = yson::map! {"name" => "ann"};
    let create = Command::Create {
        object_type: "user".into(),
        path: None,
        attributes,
        recursive: false,
        ignore_existing: false,
        force: false,
        ignore_type_mismatch: false,
        lock_existing: false,
    };
    c.ask("root", create).expect("a user");
    let request =
        JoinRequest { name: "n".into(), key_sha256: digest('1'), token_sha256: None, address: None };
    for command in [
        token(None, 'a'),
        Command::RevokeJoinToken { token_sha256: digest('a') },
        Command::ApproveNode { name: "n".into(), key_sha256: None },
        Command::RevokeNode { name: "n".into() },
        Command::ListNodeIdentities,
        Command::JoinNode(Box::new(request)),
        Command::RenewNode { key_sha256: digest('1') },
        Command::IdentifyNode { from: certificate('1') },
    ] {
        let refused = c.ask("ann", command.clone()).expect_err("denied");
        assert_eq!(refused.code, vocab::code::ACCESS_DENIED, "{command:?}: {refused}");
    }
}

/// S7: when authentication was switched on, nodes went on as if users trusted each other until they renewed their certificates.
#[test]
fn a_node_that_trusts_its_users_is_refused_where_they_have_passwords() {
    let mut c = Cluster::new(|config| config.access_control = false);
    c.authentication = Some(false);
    assert_eq!(c.join("one", '1', None).expect("joined"), "joined");
    let node = c.welcomes("one", '1');
    c.turn(Input::NodeDisconnected(node));
    c.config.access_control = true;
    c.restart();
    for said in [Some(false), None] {
        c.authentication = said;
        c.does_not_welcome("one", Some(certificate('1')), "must be started again");
    }
    c.authentication = Some(false);
    c.does_not_welcome("old", Some(NodeProof::Insecure), "--token-file");
    // Release 0.1 says nothing.
    c.authentication = None;
    assert_eq!(c.connect("old", Some(NodeProof::Insecure)).1, Link::Welcome);
    c.authentication = Some(true);
    c.welcomes("one", '1');
    // One that is more careful than it must be does no harm.
    c.config.access_control = false;
    c.restart();
    c.welcomes("one", '1');
}

/// S7: the old way is told as long as it is used.
#[test]
fn a_link_without_an_identity_is_an_alert() {
    let mut c = Cluster::new(|_| {});
    assert_eq!(c.alert("insecure_node_link"), None);
    let (node, link) = c.connect("old", Some(NodeProof::Insecure));
    assert_eq!(link, Link::Welcome);
    let text = c.alert("insecure_node_link").expect("an alert");
    assert!(text.contains("old") && text.contains("--insecure-plaintext-nodes"), "{text}");
    c.turn(Input::NodeDisconnected(node));
    assert_eq!(c.alert("insecure_node_link"), None);
}
