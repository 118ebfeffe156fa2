//! Who may do what: users x objects x commands as a table (http-api.md 8.4), and what surrounds it.

mod accounts;
mod columns;
mod denials;
mod effective;
mod hidden;
mod joined;
mod metrics;
mod mounts;
mod names;
mod tokens;

use crate::console::Console;
use crate::node::Node;
use crate::world::World;
use kernel::command::{CopyOptions, Proof};
use kernel::{Body, Command, OperationRef};
use vocab::{Cpu, Failure, JobId, OperationId, OperationType, Resources, Span};
use yson::ypath::YPath;
use yson::{Map, Value};

/// A cluster that asks: `ann` and `bob` are users, `adm` is in `admins`, `sup` in `superusers`; `eve` is
/// banned. Pool `p` may be managed by `ann`, `q` is closed to `bob`, `/p/inner` inherits nothing.
struct Guarded {
    world: World,
    operation: OperationId,
}

fn path(text: &str) -> YPath {
    YPath::parse(text.as_bytes()).expect("a good path")
}

fn value(text: &str) -> Value {
    yson::parse(text.as_bytes()).expect("good YSON")
}

fn map(text: &str) -> Map {
    value(text).as_map().cloned().expect("a map")
}

fn create(object_type: &str, at: Option<&str>, attributes: &str) -> Command {
    Command::Create {
        object_type: object_type.into(),
        path: at.map(path),
        attributes: map(attributes),
        recursive: false,
        ignore_existing: false,
        force: false,
        ignore_type_mismatch: false,
        lock_existing: false,
    }
}

fn set(at: &str, to: &str) -> Command {
    Command::Set { path: path(at), value: value(to), recursive: false, force: false }
}

fn get(at: &str) -> Command {
    Command::Get { path: path(at), attributes: Vec::new(), max_size: None, fields: None }
}

fn start(pool: &str, more: &str) -> Command {
    let spec = format!("{{pool={pool}; tasks={{t={{job_count=1; command=\"true\"}}}}; {more}}}");
    Command::StartOperation { operation_type: OperationType::Vanilla, spec: map(&spec) }
}

fn remove(at: &str) -> Command {
    Command::Remove { path: path(at), recursive: true, force: false }
}

fn member(group: &str, member: &str) -> Command {
    Command::AddMember { group: group.into(), member: member.into() }
}

fn unmember(group: &str, member: &str) -> Command {
    Command::RemoveMember { group: group.into(), member: member.into() }
}

fn copy(from: &str, to: &str) -> Command {
    Command::CopyMove {
        source: path(from),
        destination: path(to),
        remove_source: false,
        options: CopyOptions { force: true, ..CopyOptions::default() },
    }
}

fn set_force(at: &str, to: &str) -> Command {
    Command::Set { path: path(at), value: value(to), recursive: false, force: true }
}

fn multiset(at: &str, attributes: &str) -> Command {
    Command::MultisetAttributes { path: path(at), attributes: map(attributes) }
}

fn get_with(at: &str, attribute: &str) -> Command {
    Command::Get { path: path(at), attributes: vec![attribute.into()], max_size: None, fields: None }
}

/// Attributes that would give everybody everything; with them nothing changes for those who have it.
const ANYBODY: &str = "{inherit_acl=%false; acl=[{action=allow; subjects=[users]; permissions=[read; write]};\
     {action=allow; subjects=[admins]; permissions=[read; write; administer; remove]}]}";

const DIGEST: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

impl Guarded {
    fn new() -> Guarded {
        Guarded::with(|_| ())
    }

    fn with(configure: impl FnOnce(&mut kernel::Config)) -> Guarded {
        let mut guarded = Guarded {
            world: World::new(|config| {
                config.access_control = true;
                configure(config);
            }),
            operation: OperationId::default(),
        };
        for user in ["ann", "bob", "adm", "sup", "eve"] {
            guarded.done("root", create("user", None, &format!("{{name={user}}}")));
        }
        guarded.done("root", set("//sys/users/eve/@banned", "%true"));
        guarded.done("root", create("group", None, "{name=team}"));
        guarded.done("root", member("team", "ann"));
        guarded.done("root", member("admins", "adm"));
        guarded.done("root", member("superusers", "sup"));
        let team = "{action=allow; subjects=[team]; permissions=[write; use]}";
        let not_bob = "{action=deny; subjects=[bob]; permissions=[use]}";
        guarded.done(
            "root",
            create("scheduler_pool", None, &format!("{{name=p; pool_tree=physical; acl=[{team}]}}")),
        );
        guarded.done(
            "root",
            create("scheduler_pool", None, &format!("{{name=q; pool_tree=physical; acl=[{not_bob}]}}")),
        );
        let inner = "{name=inner; pool_tree=physical; parent_name=p; inherit_acl=%false}";
        guarded.done("root", create("scheduler_pool", None, inner));
        guarded.done("root", create("map_node", Some("//home/ann"), "{inherit_acl=%false; acl=[]}"));
        let own = "[{action=allow; subjects=[ann]; permissions=[read; write; remove; administer]}]";
        guarded.done("root", set("//home/ann/@acl", own));
        guarded.done("root", set("//home/ann/secret", "7"));
        guarded.done("root", create("document", Some("//home/ann/paper"), "{value={plan=secret}}"));
        // What `bob` and `ann` may write, and neither administer nor remove.
        let all_write = "{inherit_acl=%false; acl=[{action=allow; subjects=[users]; permissions=[read; write]};\
                         {action=allow; subjects=[admins]; permissions=[read; write; administer; remove]}]}";
        guarded.done("root", create("map_node", Some("//home/common"), all_write));
        guarded.done("root", set("//home/common/note", "0"));
        guarded.done("root", set("//home/common/full", "{a=1}"));
        guarded.done("root", set("//home/common/items", "[1]"));
        // `operators` may everything, and names that nobody has any more.
        guarded.done("root", create("group", None, "{name=operators}"));
        guarded.done("root", member("superusers", "operators"));
        for ghost in ["ghost", "ghost2", "former"] {
            guarded.done("root", create("user", None, &format!("{{name={ghost}}}")));
            guarded.done("root", member("operators", ghost));
        }
        guarded.done("root", remove("//sys/users/ghost"));
        guarded.done("root", remove("//sys/users/ghost2"));
        let reader = "acl=[{action=allow; subjects=[adm]; permissions=[read]}]";
        let started = guarded.done("ann", start("p", reader));
        let id = started.get("operation_id").and_then(Value::as_str).expect("an id");
        guarded.operation = id.parse().expect("an id");
        guarded
    }

    fn ask(&mut self, user: &str, command: Command) -> Result<Body, Failure> {
        self.world.ask(user, command).expect("an answer")
    }

    fn done(&mut self, user: &str, command: Command) -> Value {
        match self.ask(user, command.clone()) {
            Ok(Body::Value(value)) => value,
            other => panic!("{user} {command:?}: {other:?}"),
        }
    }

    /// `+` may, `-` may not, of these users in order.
    fn row(&mut self, command: &Command) -> String {
        ["bob", "ann", "adm", "sup", "root"]
            .into_iter()
            .map(|user| {
                // Each on a world of its own would be slow: commands of the table can be repeated, or
                // fail for another reason than the lists.
                match self.ask(user, command.clone()) {
                    Err(failure) if failure.code == 901 => '-',
                    _ => '+',
                }
            })
            .collect()
    }
}

/// The matrix: what is asked, and the users bob, ann, adm, sup, root who may.
#[test]
fn users_by_objects_by_commands() {
    let mut guarded = Guarded::new();
    let operation = OperationRef::Id(guarded.operation);
    let table = [
        // --- the tree
        ("list the root", Command::List { path: path("/"), attributes: vec![], max_size: None }, "+++++"),
        ("read everything, but for what is closed", get("/"), "+++++"),
        ("read what everybody may", get("//sys"), "+++++"),
        ("write to tmp", set("//tmp/x", "1"), "+++++"),
        ("write to sys", set("//sys/@x", "1"), "--+++"),
        ("make a node in home", create("map_node", Some("//home/new"), "{}"), "+++++"),
        ("read what is ann's", get("//home/ann/secret"), "-+-++"),
        ("read an attribute of what is ann's", get("//home/ann/@count"), "-+-++"),
        ("read something missing of ann's", get("//home/ann/nothing"), "-+-++"),
        ("read all of home, but for what is closed", get("//home"), "+++++"),
        ("copy all of home", copy("//home", "//tmp/home"), "-+-++"),
        ("copy what is ann's", copy("//home/ann/paper", "//tmp/paper"), "-+-++"),
        ("change its list with all attributes", set("//home/common/@", ANYBODY), "--+++"),
        (
            "change its list along with its value",
            set("//home/common/note", &format!("<{}>1", &ANYBODY[1..ANYBODY.len() - 1])),
            "--+++",
        ),
        ("change its list among others", multiset("//home/common", ANYBODY), "--+++"),
        ("replace a map", set_force("//home/common/full", "{}"), "--+++"),
        ("replace a list", set("//home/common/items", "[]"), "--+++"),
        (
            "make a pool at a path",
            create("scheduler_pool", Some("//tmp/pool"), "{name=by_path; pool_tree=physical}"),
            "--+++",
        ),
        (
            "make a tree at a path",
            create("scheduler_pool_tree", Some("//tmp/tree"), "{name=by_path}"),
            "--+++",
        ),
        (
            "list what is ann's",
            Command::List { path: path("//home/ann"), attributes: vec![], max_size: None },
            "-+-++",
        ),
        ("does it exist", Command::Exists { path: path("//home/ann/secret") }, "-+-++"),
        ("change what is ann's", set("//home/ann/secret", "8"), "-+-++"),
        (
            "change its list",
            set("//home/ann/@acl/end", "{action=allow;subjects=[ann];permissions=[read]}"),
            "-+-++",
        ),
        // --- pools
        ("read pools", get("//sys/pool_trees/physical/p/@weight"), "+++++"),
        ("set a weight", set("//sys/pool_trees/physical/p/@weight", "2.0"), "-++++"),
        (
            "set an integral guarantee",
            set("//sys/pool_trees/physical/p/@integral_guarantees/guarantee_type", "none"),
            "--+++",
        ),
        (
            "set the list of a pool",
            set(
                "//sys/pool_trees/physical/p/@acl",
                "[{action=allow;subjects=[team];permissions=[write;use]}]",
            ),
            "--+++",
        ),
        (
            "set a weight without inheritance",
            set("//sys/pool_trees/physical/p/inner/@weight", "2.0"),
            "---++",
        ),
        (
            "make a pool inside",
            create("scheduler_pool", None, "{name=child; pool_tree=physical; parent_name=p}"),
            "-++++",
        ),
        (
            "make a pool inside, by another spelling",
            create("scheduler_pool", None, "{name=child2; pool_tree=physical; \"parent-name\"=p}"),
            "-++++",
        ),
        (
            "make a pool with options that it could not be given later",
            create(
                "scheduler_pool",
                None,
                "{name=child3; pool_tree=physical; parent_name=p; inherit_acl=%false}",
            ),
            "--+++",
        ),
        ("make a pool on top", create("scheduler_pool", None, "{name=top; pool_tree=physical}"), "--+++"),
        ("configure a tree", set("//sys/pool_trees/physical/@config/max_operation_count", "100"), "--+++"),
        ("set the default tree", set("//sys/pool_trees/@default_tree", "physical"), "--+++"),
        // --- operations
        ("start in p", start("p", ""), "+++++"),
        ("start in q", start("q", ""), "-++++"),
        ("start without inheritance", start("inner", ""), "---++"),
        (
            "read the operation",
            Command::GetOperation { operation: operation.clone(), attributes: None },
            "+++++",
        ),
        (
            "suspend it",
            Command::SuspendOperation {
                operation: operation.clone(),
                abort_running_jobs: false,
                reason: None,
            },
            "-++++",
        ),
        ("resume it", Command::ResumeOperation { operation: operation.clone() }, "-++++"),
        (
            "move it to q",
            Command::UpdateOperationParameters { operation: operation.clone(), parameters: map("{pool=q}") },
            "-++++",
        ),
        // --- users, groups, tokens
        ("make a user", create("user", None, "{name=new}"), "--+++"),
        ("a user outside of users", create("user", Some("//tmp/u"), "{}"), "--+++"),
        ("a group outside of groups", create("group", Some("//tmp/g"), "{}"), "--+++"),
        ("add to a team", member("team", "eve"), "--+++"),
        ("make a superuser", member("superusers", "nobody"), "---++"),
        ("make one through another group", member("operators", "nobody"), "---++"),
        ("make a superuser none", unmember("operators", "nobody"), "---++"),
        // Whoever bore the name was a superuser; who bears it now is not.
        ("take a name that was a superuser's", create("user", None, "{name=ghost}"), "--+++"),
        ("ban a superuser", set("//sys/users/sup/@banned", "%false"), "---++"),
        ("remove a superuser", remove("//sys/users/former"), "---++"),
        ("a group with a name that was a superuser's", create("group", Some("//tmp/ghost2"), "{}"), "--+++"),
        (
            "a token for ann",
            Command::IssueToken {
                user: "ann".into(),
                token_sha256: DIGEST.into(),
                description: None,
                ttl: None,
            },
            "-++++",
        ),
        (
            "a token for root",
            Command::IssueToken {
                user: "root".into(),
                token_sha256: "0".repeat(64),
                description: None,
                ttl: None,
            },
            "---++",
        ),
        ("list tokens of ann", Command::ListUserTokens { user: "ann".into(), with_metadata: false }, "-++++"),
        ("a password for ann", Command::SetUserPassword { user: "ann".into(), hash: "x".into() }, "-++++"),
        ("remove garbage that the start has kept", Command::CollectGarbage, "--+++"),
        ("extend the leases", Command::ExtendLeases { period: Span::from_secs(1) }, "--+++"),
        ("remove a node", Command::RemoveNode { address: "nobody:1".into(), lost: true }, "--+++"),
        (
            "a join token",
            Command::CreateJoinToken { token_sha256: "1".repeat(64), name: None, ttl: None, replace: false },
            "--+++",
        ),
        ("identities of nodes", Command::ListNodeIdentities, "--+++"),
        ("look at tokens", get("//sys/tokens"), "---++"),
        ("look at one token", get(&format!("//sys/tokens/{DIGEST}/@")), "---++"),
        ("take a token over", set(&format!("//sys/tokens/{DIGEST}/@user"), "ann"), "---++"),
        ("ban somebody", set("//sys/users/eve/@banned", "%true"), "--+++"),
        // --- what only the server asks
        ("who is this", Command::Identify { proof: Proof::Configured("ann".into()), act_as: None }, "---++"),
        ("the hash of a password", Command::PasswordHash { user: "ann".into() }, "---++"),
        // --- the rest
        (
            "the event log",
            Command::GetEvents {
                from: kernel::command::EventsFrom::Oldest,
                limit: None,
                filter: kernel::EventFilter::default(),
            },
            "--+++",
        ),
        ("abort it", Command::AbortOperation { operation, message: None }, "-++++"),
    ];
    let mut wrong = Vec::new();
    for (what, command, expected) in table {
        let found = guarded.row(&command);
        if found != expected {
            wrong.push(format!("{what}: expected {expected}, found {found}"));
        }
    }
    assert!(wrong.is_empty(), "bob ann adm sup root\n{}", wrong.join("\n"));
    // What is ann's is in the way of those who may change the rest.
    for user in ["bob", "adm"] {
        for all in ["//home/*", "//home/ann"] {
            let refused = guarded.ask(user, remove(all)).expect_err(all);
            assert_eq!(refused.code, 901, "{user} {all}: {refused}");
        }
    }
    guarded.done("sup", remove("//home/*"));
}

/// What may be read is shown; of what is closed no more than that it is there.
#[test]
fn answers_leave_out_what_is_closed() {
    let mut guarded = Guarded::new();
    let text = |value: &Value| String::from_utf8_lossy(&yson::to_text(value)).into_owned();
    // A list that counts for the map alone, and one that counts for its children alone.
    let acl = |mode: &str| {
        format!(
            "{{inherit_acl=%false; acl=[{{action=allow; subjects=[bob]; permissions=[read]; inheritance_mode={mode}}}]}}"
        )
    };
    for mode in ["object_only", "immediate_descendants_only", "object_and_descendants"] {
        guarded.done("root", create("map_node", Some(&format!("//home/{mode}")), &acl(mode)));
        guarded.done("root", set(&format!("//home/{mode}/x"), "{y=1}"));
    }
    for (user, command, expected) in [
        (
            "bob",
            get("//home"),
            "{\"ann\"=#;\"common\"={\"full\"={\"a\"=1;};\"items\"=[1;];\"note\"=0;};\
             \"immediate_descendants_only\"=#;\"object_and_descendants\"={\"x\"={\"y\"=1;};};\"object_only\"={\"x\"=#;};}",
        ),
        ("bob", get("//home/immediate_descendants_only/x"), "{\"y\"=#;}"),
        ("ann", get("//home/ann"), "{\"paper\"=#;\"secret\"=7;}"),
        (
            "ann",
            get_with("//home/ann", "value"),
            "{\"paper\"=<\"value\"={\"plan\"=\"secret\";};>#;\"secret\"=<\"value\"=7;>7;}",
        ),
        ("root", get("//sys/tokens"), "{}"),
        (
            "bob",
            Command::List { path: path("//home"), attributes: vec!["count".into()], max_size: None },
            "[\"ann\";<\"count\"=3;>\"common\";\"immediate_descendants_only\";<\"count\"=1;>\"object_and_descendants\";<\"count\"=1;>\"object_only\";]",
        ),
    ] {
        let found = guarded.done(user, command.clone());
        assert_eq!(text(&found), expected, "{user} {command:?}");
    }
    // Opaque things are shown with the attributes that were asked for, too.
    guarded.done("root", create("document", Some("//tmp/paper"), "{value=secret; inherit_acl=%false}"));
    guarded.done("root", set("//sys/tokens/@note", "secret"));
    for (at, attribute) in [("//tmp", "value"), ("//sys", "note")] {
        assert!(text(&guarded.done("root", get_with(at, attribute))).contains("secret"), "{at}");
        assert!(!text(&guarded.done("bob", get_with(at, attribute))).contains("secret"), "{at}");
    }
    assert_eq!(guarded.ask("bob", copy("//tmp", "//home/copied")).map_err(|f| f.code).err(), Some(901));
}

/// What was done is answered to who repeats it, though he might not do it any more.
#[test]
fn a_repeated_change_is_answered_though_the_permission_is_gone() {
    let mut guarded = Guarded::new();
    let give_away = set("//home/ann/@acl", "[{action=allow; subjects=[bob]; permissions=[administer]}]");
    let id = vocab::Guid([1, 2, 3, 4]);
    for attempt in ["first", "repeated"] {
        let request = guarded.world.send("ann", Some(id), give_away.clone());
        guarded.world.settle();
        let answer = guarded.world.replies.remove(&request).expect("an answer");
        assert!(matches!(answer, Ok(Body::Value(_))), "{attempt}: {answer:?}");
    }
    assert_eq!(guarded.ask("ann", give_away).map_err(|f| f.code).err(), Some(901));
}

/// Whatever is answered is in the audit log, though nothing else of it is in the store.
#[test]
fn what_was_answered_is_in_the_audit_log_after_a_crash() {
    let mut guarded = Guarded::new();
    let limits = Resources { user_slots: 4, cpu: Cpu::from_f64(4.0), memory: 4 << 30, ..Resources::ZERO };
    guarded.world.nodes.insert("n1".into(), Node::new("n1", limits));
    guarded.world.connect("n1");
    guarded.world.pass(Span::from_secs(10));
    let running: Vec<JobId> = guarded.world.nodes["n1"].running.keys().copied().collect();
    let [job_id] = running[..] else { panic!("{running:?} run instead of one job") };
    guarded.world.hold = true;
    let abort = Command::AbortJob { operation: None, job_id, interrupt_timeout: None };
    assert!(guarded.world.ask("ann", abort.clone()).is_none(), "answered before it is durable");
    guarded.world.hold = false;
    guarded.world.commit(usize::MAX);
    guarded.world.crash(0);
    guarded.world.restart();
    let is_it = |event: &&Map| event.get("action").and_then(Value::as_str) == Some("abort_job");
    assert_eq!(guarded.world.log.iter().filter(is_it).count(), 1);
}

/// A shell beside a job is the operation's `manage`; one with owners is for them (jobs-and-nodes.md 5.5).
#[test]
fn shells_beside_jobs() {
    let mut guarded = Guarded::new();
    let limits = Resources { user_slots: 4, cpu: Cpu::from_f64(4.0), memory: 4 << 30, ..Resources::ZERO };
    guarded.world.nodes.insert("n1".into(), Node::new("n1", limits));
    guarded.world.connect("n1");
    guarded.done(
        "ann",
        Command::AbortOperation { operation: OperationRef::Id(guarded.operation), message: None },
    );
    let shells = "job_shells=[{name=bobs; owners=[bob]}; {name=open}]";
    guarded.done("ann", start("p", shells));
    guarded.world.pass(Span::from_secs(10));
    let running: Vec<JobId> = guarded.world.nodes["n1"].running.keys().copied().collect();
    let [job_id] = running[..] else { panic!("{running:?} run instead of one job") };
    for (name, expected) in [(None, "-++++"), (Some("open"), "-++++"), (Some("bobs"), "+--++")] {
        let shell_name = name.map(str::to_owned);
        let open = Command::OpenJobShell { job_id, shell_name: shell_name.clone(), command: None };
        assert_eq!(guarded.row(&open), expected, "open {name:?}");
        let locate: String = ["bob", "ann", "adm", "sup", "root"]
            .into_iter()
            .map(|user| {
                let shell_name = shell_name.clone();
                match guarded.ask(user, Command::LocateJobShell { user: user.into(), job_id, shell_name }) {
                    Ok(_) => '+',
                    Err(failure) if failure.code == 901 => '-',
                    Err(failure) => panic!("{user} {name:?}: {failure}"),
                }
            })
            .collect();
        assert_eq!(locate, expected, "locate {name:?}");
    }
}

#[test]
fn a_refusal_says_what_was_asked_and_not_what_is_there() {
    let mut guarded = Guarded::new();
    let mut refusal = |at: &str| {
        let failure = guarded.ask("bob", get(at)).expect_err("ann's alone");
        (failure.code, failure.message.replace(at, "PATH"), failure.attributes.contains("permission"))
    };
    let there = refusal("//home/ann/secret");
    assert_eq!(there, refusal("//home/ann/nothing"));
    assert_eq!((there.0, there.2), (901, true));
    assert!(there.1.contains("\"read\" permission for PATH"), "{}", there.1);
}

#[test]
fn who_comes_in() {
    let mut guarded = Guarded::new();
    let issue = |user: &str, digit: &str| Command::IssueToken {
        user: user.into(),
        token_sha256: digit.repeat(64),
        description: Some("for a test".into()),
        ttl: None,
    };
    for (user, digit) in [("ann", "1"), ("sup", "2"), ("eve", "3")] {
        guarded.done("root", issue(user, digit));
    }
    let who = |digit: &str, act_as: Option<&str>| Command::Identify {
        proof: Proof::Token(digit.repeat(64)),
        act_as: act_as.map(str::to_owned),
    };
    let ask = |guarded: &mut Guarded, command| match guarded.ask("root", command) {
        Ok(Body::Value(value)) => value.get("user").and_then(Value::as_str).unwrap_or_default().to_owned(),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => failure.code.to_string(),
    };
    for (digit, act_as, expected) in [
        ("1", None, "ann"),
        ("1", Some("ann"), "ann"),
        ("1", Some("bob"), "900"),
        ("2", Some("bob"), "bob"),
        ("2", Some("nobody"), "900"),
        ("2", Some("eve"), "903"),
        ("3", None, "903"),
        ("4", None, "111"),
    ] {
        assert_eq!(ask(&mut guarded, who(digit, act_as)), expected, "{digit} as {act_as:?}");
    }
    // What was acknowledged survives `kill -9`.
    guarded.world.crash(0);
    guarded.world.restart();
    assert_eq!(ask(&mut guarded, who("1", None)), "ann");
    let revoke = Command::RevokeToken { user: "ann".into(), token_sha256: "1".repeat(64) };
    guarded.done("ann", revoke.clone());
    assert_eq!(ask(&mut guarded, who("1", None)), "111");
    assert_eq!(guarded.ask("ann", revoke).map(drop).map_err(|f| f.code), Err(500));
    // A user of the same name is another one.
    guarded.done("root", issue("bob", "5"));
    guarded.done("root", remove("//sys/users/bob"));
    assert_eq!(ask(&mut guarded, who("5", None)), "111");
    guarded.done("root", create("user", None, "{name=bob}"));
    assert_eq!(ask(&mut guarded, who("5", None)), "111");
    let tokens = Command::ListUserTokens { user: "bob".into(), with_metadata: false };
    assert_eq!(guarded.done("bob", tokens), Vec::<Value>::new().into());
}

#[test]
fn finished_operations_keep_their_lists() {
    let mut guarded = Guarded::new();
    let operation = OperationRef::Id(guarded.operation);
    guarded.done("ann", Command::AbortOperation { operation: operation.clone(), message: None });
    let check = |guarded: &mut Guarded, user: &str, permission: &str| {
        let command = Command::CheckOperationPermission {
            user: user.into(),
            permission: permission.into(),
            operation: operation.clone(),
        };
        guarded.done("bob", command).get("action").and_then(Value::as_str).map(str::to_owned)
    };
    for life in 0..2 {
        for (user, permission, expected) in [
            ("ann", "read", "allow"),
            ("ann", "manage", "allow"),
            ("adm", "manage", "allow"),
            ("bob", "read", "deny"),
            ("sup", "manage", "allow"),
        ] {
            let found = check(&mut guarded, user, permission);
            assert_eq!(found.as_deref(), Some(expected), "{user} {permission} in life {life}");
        }
        guarded.world.crash(usize::MAX);
        guarded.world.restart();
    }
}

#[test]
fn check_permission_by_acl() {
    let mut guarded = Guarded::new();
    let command = Command::CheckPermissionByAcl {
        user: "ann".into(),
        permission: "write".into(),
        acl: value("[{action=allow; subjects=[team; ghosts]; permissions=[write]}]"),
    };
    let expected = value("{action=allow; missing_subjects=[ghosts]}");
    assert_eq!(guarded.done("bob", command), expected);
}

/// Off, as on a machine of one's own: nobody is asked, and what was changed is written down.
#[test]
fn without_access_control_and_the_audit_log() {
    let mut console = Console::new();
    console.run(
        "as bob
         pool create p
         set //sys/pool_trees/physical/p/@weight 2.0
         set //sys/pool_trees/physical/p/@weight 3.0
         remove //sys/pool_trees/physical/p/@weight
         set //sys/pool_trees/physical/p/@weight wrong",
    );
    let log: Vec<String> = console
        .world
        .log
        .iter()
        .filter(|event| event.get("event").and_then(Value::as_str) == Some("audit"))
        .map(|event| {
            let text = |v: &Value| String::from_utf8_lossy(&yson::to_text(v)).into_owned();
            let show = |key: &str| event.get(key).map_or("-".to_owned(), text);
            format!("{} {} {} {}", show("user"), show("action"), show("before"), show("after"))
        })
        .collect();
    assert_eq!(
        log,
        [
            "\"bob\" \"create\" - -",
            "\"bob\" \"set\" - 2.",
            "\"bob\" \"set\" 2. 3.",
            "\"bob\" \"remove\" 3. -",
        ]
    );
}
