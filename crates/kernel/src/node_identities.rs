//! Who may register as which node: join tokens, identities of nodes, and nodes that wait for an approval.
//!
//! An identity is a key pair that a node has made for itself; here it is the SHA-256 of the public key. It gets its name once:
//! by a join token, or by an administrator's approval. From then on no other key can register under that name until the
//! identity is revoked or a token that replaces it is used. Certificates, signatures and the handshake are the edge's: it
//! tells by [`Input::NodeConnected`](crate::Input::NodeConnected) which key a connection has proved to have.
//!
//! A node may be killed after its token was used and before it has stored the certificate. It asks again with the same key
//! then, and gets one: the key is what the token was exchanged for.

use crate::signatures::Signatures;
use crate::{Effect, Kernel, NodeKey, Topic};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use vocab::batch::Table;
use vocab::join_token::is_sha256;
use vocab::{Failure, Span, Time, code};
use wire::{Hello, ServerMessage};
use yson::{Map, Value};

/// Life of a join token, if nothing else is asked for.
const TOKEN_TTL: Span = Span::from_secs(24 * 3600);
/// The longest life of a join token.
const LONGEST_TTL: Span = Span::from_secs(365 * 24 * 3600);
/// Join tokens that are kept, used ones included: those are kept for [`USED_KEPT`], so that a second use is recognised.
const TOKENS: usize = 10_000;
/// A used token is known for so long after its end. The oldest ones go first when there are too many tokens.
const USED_KEPT: Span = Span::from_secs(30 * 24 * 3600);
/// Nodes that wait for an approval: anybody who reaches the server can be one.
const PENDING: usize = 100;
/// Of those, so many from one network: one host does not take all places.
const PENDING_OF_NETWORK: usize = 5;
/// New nodes that begin to wait in a minute: each is an event of the audit log.
const NEW_PENDING: usize = 30;
/// Time for which [`NEW_PENDING`] counts.
const MINUTE: Span = Span::from_secs(60);
/// A node that waits and has not asked for so long gives its place to another one when all are taken.
const PENDING_AWAY: Span = Span::from_secs(60);
/// A node that waits and has not asked for so long is forgotten.
const PENDING_KEPT: Span = Span::from_secs(24 * 3600);
/// A revoked identity is kept for so long after the end of its certificate, to tell its node why it is refused.
const REVOKED_KEPT: Span = Span::from_secs(24 * 3600);
/// The same of an identity whose certificate was not renewed. Its name is free then.
const ENDED_KEPT: Span = Span::from_secs(365 * 24 * 3600);
/// Identities that are kept.
const IDENTITIES: usize = 20_000;
/// Names whose nodes must have an identity although none is known any more.
const CLOSED_NAMES: usize = 20_000;
/// A certificate that is made so soon after the last one has the same end: nothing is written for it.
const SAME_END: Span = Span::from_secs(60);
/// Bytes of a node's name: those of a DNS name.
const LONGEST_NAME: usize = 253;

/// What a connection of a node has proved in its handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeProof {
    /// It has the private key to this public key, and a valid certificate of the server's authority for it.
    Certificate {
        /// SHA-256 of the public key (SubjectPublicKeyInfo, DER), in lower-case hexadecimal.
        key_sha256: String,
    },
    /// It has shown the old token of all nodes, or the server asks for none. Only where the operator allows it.
    Insecure,
}

/// A node that wants an identity. The edge has verified that it has the private key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinRequest {
    /// Name that it wants to have, `host:port` or any other.
    pub name: String,
    /// SHA-256 of its public key.
    pub key_sha256: String,
    /// SHA-256 of the secret of its join token; `None`: it asks for an approval.
    pub token_sha256: Option<String>,
    /// Where it asks from, if the connection tells.
    pub address: Option<IpAddr>,
}

#[derive(Clone, PartialEq, Debug)]
struct Token {
    /// The only name that it is good for.
    name: Option<String>,
    /// It takes the name from the identity that has it.
    replaces: bool,
    created: Time,
    valid_until: Time,
    /// Key that it was exchanged for.
    used_by: Option<String>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Identity {
    pub name: String,
    created: Time,
    /// End of the last certificate.
    valid_until: Time,
    revoked: Option<Time>,
    /// What it was given for: `join_token`, `approval`, or [`NO_AUTHENTICATION`].
    by: String,
    /// A connection has proved to have the key and a certificate. From then on certificates are renewed over such connections
    /// alone: a key that is stolen later is not enough for one.
    has_connected: bool,
}

/// An identity that was given while the server asked nobody who they are.
const NO_AUTHENTICATION: &str = "no_authentication";

#[derive(Clone, PartialEq, Debug)]
struct Pending {
    name: String,
    address: Option<String>,
    network: Option<IpAddr>,
    since: Time,
    last_seen: Time,
}

/// See the module page. Keys of the maps are SHA-256 in hexadecimal.
#[derive(Default)]
pub(crate) struct NodeIdentities {
    tokens: BTreeMap<String, Token>,
    identities: BTreeMap<String, Identity>,
    /// Keys by the names that they hold, in lower case: names that differ in nothing else are taken for the same.
    names: BTreeMap<String, String>,
    /// Names, in lower case, under which no node can connect without an identity: they have had one, or were revoked.
    closed_names: BTreeSet<String>,
    /// Not durable: nodes that wait ask every few seconds.
    pending: BTreeMap<String, Pending>,
    /// When the last nodes have begun to wait, oldest first.
    new_pending: VecDeque<Time>,
    /// What open connections have proved.
    links: BTreeMap<NodeKey, NodeProof>,
    /// Certificates that identities had a short time ago.
    signatures: Signatures,
}

/// First byte of a record's key; the digest follows.
const TOKEN: u8 = b't';
const IDENTITY: u8 = b'i';
/// First byte of a record's key; the name follows, in lower case.
const CLOSED_NAME: u8 = b'n';

fn refused(text: impl Into<String>) -> Failure {
    Failure::coded(code::INVALID_CREDENTIALS, text.into())
}

impl Kernel {
    /// A connection has opened, before its first message.
    pub(crate) fn node_connected(&mut self, node: NodeKey, proof: NodeProof) {
        if let NodeProof::Certificate { key_sha256 } = &proof
            && let Some(identity) = self.node_identities.identities.get_mut(key_sha256)
            && !identity.has_connected
        {
            identity.has_connected = true;
            self.persist_identity(key_sha256);
        }
        self.node_identities.links.insert(node, proof);
    }

    /// A connection is gone.
    pub(crate) fn forget_link(&mut self, node: NodeKey) {
        self.node_identities.links.remove(&node);
    }

    /// Refuses a node that has not proved to be the one that it says it is.
    pub(crate) fn admit_identity(&self, now: Time, node: NodeKey, name: &str) -> Result<(), Failure> {
        if !self.config.node_identities {
            return Ok(());
        }
        match self.node_identities.links.get(&node) {
            None => Err(refused(format!("Node {name} has shown no identity"))),
            Some(NodeProof::Certificate { key_sha256 }) => {
                let identity = self.valid_identity(now, key_sha256)?;
                if identity.name == name {
                    return Ok(());
                }
                Err(refused(format!(
                    "The identity that node {name} has shown belongs to node {}: each node needs its own",
                    identity.name
                ))
                .with("node", identity.name.as_str()))
            }
            Some(NodeProof::Insecure) if self.needs_identity(name) => Err(refused(format!(
                "Node {name} has or had an identity of its own, or was revoked, and cannot register without an identity"
            ))),
            Some(NodeProof::Insecure) => Ok(()),
        }
    }

    /// Refuses a node that would start jobs without keeping users apart who need not trust each other.
    pub(crate) fn admit_mode(&self, node: NodeKey, hello: &Hello) -> Result<(), Failure> {
        if !self.config.node_identities || !self.config.access_control {
            return Ok(());
        }
        let keeps_apart = match hello.authentication {
            Some(keeps_apart) => keeps_apart,
            // Nodes of release 0.1 do not say it. They have no identities.
            None => self.node_identities.links.get(&node) == Some(&NodeProof::Insecure),
        };
        if keeps_apart {
            return Ok(());
        }
        Err(Failure::new(format!(
            "Node {} was started for a cluster without authentication and does not keep users apart: it must be started again, by \
             its identity or, with --insecure-plaintext, with a --token-file",
            hello.address
        )))
    }

    /// Whether no node can connect under this name without an identity.
    fn needs_identity(&self, name: &str) -> bool {
        let known = &self.node_identities;
        let name = folded(name);
        known.names.contains_key(&name)
            || known.closed_names.contains(&name)
            || known.closed_names.len() >= CLOSED_NAMES
            || known.identities.values().any(|identity| folded(&identity.name) == name)
    }

    /// Whether a new link may take the name of one that is still open: it has an identity, and the other one has none.
    pub(crate) fn displaces(&self, new: NodeKey, old: NodeKey) -> bool {
        let proof = |link| self.node_identities.links.get(&link);
        matches!(proof(new), Some(NodeProof::Certificate { .. })) && proof(old) == Some(&NodeProof::Insecure)
    }

    /// No node can connect under this name without an identity from now on.
    fn close_name(&mut self, name: &str) {
        let name = folded(name);
        if self.node_identities.closed_names.len() < CLOSED_NAMES
            && self.node_identities.closed_names.insert(name.clone())
        {
            let record = yson::map! {"name" => name.as_str()};
            self.put_identity_record([&[CLOSED_NAME], name.as_bytes()].concat(), record);
        }
    }

    /// Whether a caller that has proved this is the node with this name.
    pub(crate) fn speaks_for(&self, now: Time, proof: &NodeProof, name: &str) -> bool {
        if !self.config.node_identities {
            return true;
        }
        match proof {
            NodeProof::Certificate { key_sha256 } => {
                self.valid_identity(now, key_sha256).is_ok_and(|identity| identity.name == name)
            }
            NodeProof::Insecure => !self.needs_identity(name),
        }
    }

    pub(crate) fn valid_identity(&self, now: Time, key_sha256: &str) -> Result<&Identity, Failure> {
        let identity = self.node_identities.identities.get(key_sha256).ok_or_else(|| {
            refused("The server does not know the identity of this node: join again with a new join token")
        })?;
        let name = &identity.name;
        if let Some(time) = identity.revoked {
            return Err(refused(format!("The identity of node {name} was revoked at {time}")));
        }
        let holder = self.node_identities.names.get(&folded(name));
        if self.config.access_control && holder.is_none_or(|holder| holder != key_sha256) {
            return Err(refused(format!("The name {name} was given to another identity")));
        }
        if identity.valid_until <= now {
            return Err(refused(format!(
                "The certificate of node {name} has ended at {}: join again with a token of \
                 `millpond node token create --name {name} --replace`",
                identity.valid_until
            )));
        }
        Ok(identity)
    }

    /// `create_join_token`: the token itself is made and known only outside.
    pub(crate) fn create_join_token(
        &mut self,
        now: Time,
        token_sha256: &str,
        (name, ttl, replaces): (Option<String>, Option<Span>, bool),
    ) -> Result<Value, Failure> {
        if !is_sha256(token_sha256) {
            let text =
                "Parameter \"token_sha256\" must be a SHA-256 digest: 64 lower-case hexadecimal digits";
            return Err(Failure::new(text).with("parameter", "token_sha256"));
        }
        if let Some(ttl) = ttl
            && (ttl < Span::from_millis(1) || ttl > LONGEST_TTL)
        {
            let text = format!("ttl: expected a time from 1 ms to 365 d, found {} ms", ttl.as_millis());
            return Err(Failure::new(text).with("parameter", "ttl"));
        }
        if let Some(name) = &name {
            check_name(name)?;
        }
        if replaces && name.is_none() {
            let text = "replace: expected a token with a name, found one for any name";
            return Err(Failure::new(text).with("parameter", "replace"));
        }
        if let Some(name) = name.as_ref().filter(|name| !replaces && self.is_held(name)) {
            return Err(bound(name));
        }
        let valid_until = now + ttl.unwrap_or(TOKEN_TTL);
        let reply = |token: &Token| {
            Ok(yson::map! {"valid_until" => token.valid_until}.with_some("name", token.name.clone()).into())
        };
        // Asked again after the answer was lost: it is done.
        if let Some(known) = self.node_identities.tokens.get(token_sha256) {
            return reply(known);
        }
        if self.node_identities.tokens.len() >= TOKENS {
            let used = self.node_identities.tokens.iter().filter(|(_, token)| token.used_by.is_some());
            let oldest = used.min_by_key(|(_, token)| token.valid_until).map(|(digest, _)| digest.clone());
            oldest.iter().for_each(|digest| self.forget_token(digest));
        }
        if self.node_identities.tokens.len() >= TOKENS {
            let text = format!(
                "{TOKENS} join tokens have not ended yet: revoke some, or make tokens with a shorter ttl"
            );
            return Err(Failure::new(text).with("limit", TOKENS));
        }
        let token = Token { name, replaces, created: now, valid_until, used_by: None };
        let answer = reply(&token);
        self.node_identities.tokens.insert(token_sha256.to_owned(), token);
        self.persist_join_token(token_sha256);
        answer
    }

    /// `revoke_join_token`: it is good for nothing from now on. A node that has used it stays what it is.
    pub(crate) fn revoke_join_token(&mut self, token_sha256: &str) -> Result<Value, Failure> {
        if !self.node_identities.tokens.contains_key(token_sha256) {
            return Err(Failure::resolve(format!("No such join token {token_sha256:?}"))
                .with("token_sha256", token_sha256));
        }
        self.forget_token(token_sha256);
        Ok(Value::Entity)
    }

    fn forget_token(&mut self, token_sha256: &str) {
        self.node_identities.tokens.remove(token_sha256);
        self.open.batch.delete(Table::NodeIdentities, key_of(TOKEN, token_sha256));
    }

    /// A node asks for a certificate, with a join token or for an approval. The answer has `state`: `joined` with the end of
    /// the certificate that the edge is to make, or `pending`.
    pub(crate) fn join_node(
        &mut self,
        now: Time,
        request: &JoinRequest,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        check_name(&request.name)?;
        let (name, key) = (&request.name, request.key_sha256.as_str());
        if self.node_identities.identities.contains_key(key) {
            let identity = self.valid_identity(now, key)?;
            if identity.name != *name {
                return Err(refused(format!(
                    "The key of this node is the identity of node {}: a node with another name needs a key of its own",
                    identity.name
                )));
            }
            if identity.has_connected {
                return Err(refused(format!(
                    "Node {name} has connected with this key already: a certificate is renewed over a connection with the last \
                     one, and a node that has lost it joins with a new key"
                )));
            }
            let before = identity.valid_until;
            self.node_identities.signatures.demand(now, key, self.config.node_certificate_ttl)?;
            let answer = self.certify(now, key);
            if self.node_identities.identities.get(key).is_some_and(|identity| identity.valid_until != before)
            {
                self.log_join("reissue_node_certificate", request, "same_key");
            }
            return Ok(answer);
        }
        match &request.token_sha256 {
            Some(token) => self.join_by_token(now, request, token, out),
            None => self.join_by_approval(now, request, out),
        }
    }

    fn join_by_token(
        &mut self,
        now: Time,
        request: &JoinRequest,
        token_sha256: &str,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        let name = &request.name;
        let unknown = || {
            refused(
                "The join token is not known or has ended: make another one with `millpond node token create`",
            )
        };
        let token = self.node_identities.tokens.get(token_sha256).ok_or_else(unknown)?;
        if let Some(by) = &token.used_by {
            let by = self.node_identities.identities.get(by).map_or("another node", |by| by.name.as_str());
            return Err(refused(format!(
                "The join token was used already, by {by}: each node needs one of its own. If it is not known who used it, \
                 revoke that node with `millpond node revoke {by}`"
            )));
        }
        if token.valid_until <= now {
            return Err(unknown());
        }
        if let Some(wanted) = token.name.as_ref().filter(|wanted| *wanted != name) {
            return Err(refused(format!("The join token is for node {wanted}, not for node {name}")));
        }
        let replaces = token.replaces;
        self.bind(now, request, replaces, "join_token", out)?;
        if let Some(token) = self.node_identities.tokens.get_mut(token_sha256) {
            token.used_by = Some(request.key_sha256.clone());
        }
        self.persist_join_token(token_sha256);
        Ok(self.certify(now, &request.key_sha256))
    }

    fn join_by_approval(
        &mut self,
        now: Time,
        request: &JoinRequest,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        let (name, key) = (&request.name, &request.key_sha256);
        if !self.config.access_control {
            // Everybody is an administrator here. What is left is that two nodes must not have one name.
            if self.nodes.get(name).is_some_and(|node| node.key.is_some()) {
                return Err(Failure::new(format!(
                    "Another node with the name {name} is connected: names of nodes must be unique"
                )));
            }
            self.bind(now, request, true, NO_AUTHENTICATION, out)?;
            return Ok(self.certify(now, key));
        }
        if !self.config.node_approval {
            return Err(refused(
                "The server asks new nodes for a join token: make one with `millpond node token create`, and give it to the \
                 node by --join-token-file",
            ));
        }
        // A name that belongs to another identity waits like all others: who has shown nothing is told nothing.
        if let Some(known) = self.node_identities.pending.get_mut(key) {
            if known.name != *name {
                return Err(refused(format!(
                    "The key of this node waits for an approval as node {}: a node with another name needs a key of its own",
                    known.name
                )));
            }
            known.last_seen = now;
            return Ok(pending());
        }
        self.make_room_for_pending(now, request.address)?;
        let address = request.address.map(|address| address.to_canonical().to_string());
        let network = request.address.map(network);
        let waiting = Pending { name: name.clone(), address, network, since: now, last_seen: now };
        self.node_identities.pending.insert(key.clone(), waiting);
        self.node_identities.new_pending.push_back(now);
        self.log_join("node_waits", request, "approval");
        Ok(pending())
    }

    /// Room for one more node that waits; one that has not asked for a while gives its place.
    fn make_room_for_pending(&mut self, now: Time, address: Option<IpAddr>) -> Result<(), Failure> {
        let known = &mut self.node_identities;
        while known.new_pending.front().is_some_and(|time| now.since(*time) >= MINUTE) {
            known.new_pending.pop_front();
        }
        if known.new_pending.len() >= NEW_PENDING {
            return Err(refused("Many nodes ask for an approval at the moment: try again in a minute"));
        }
        let network = address.map(network);
        let of_network = known.pending.values().filter(|waiting| waiting.network == network).count();
        let is_network_full = of_network >= PENDING_OF_NETWORK;
        if !is_network_full && known.pending.len() < PENDING {
            return Ok(());
        }
        let others = known.pending.iter().filter(|(_, w)| !is_network_full || w.network == network);
        let longest = others.min_by_key(|(_, waiting)| waiting.last_seen);
        match longest.filter(|(_, waiting)| now.since(waiting.last_seen) > PENDING_AWAY) {
            Some((key, _)) => {
                let key = key.clone();
                known.pending.remove(&key);
                Ok(())
            }
            None => {
                let (count, from) = match is_network_full {
                    true => (PENDING_OF_NETWORK, " from this network"),
                    false => (PENDING, ""),
                };
                Err(refused(format!(
                    "{count} nodes{from} wait for an approval: try again when some are approved"
                )))
            }
        }
    }

    /// Whether the name belongs to an identity for which there was a join token or an approval.
    fn is_held(&self, name: &str) -> bool {
        let known = &self.node_identities;
        let holder = known.names.get(&folded(name)).and_then(|key| known.identities.get(key));
        holder.is_some_and(|identity| identity.by != NO_AUTHENTICATION)
    }

    /// Keys of the identities with this name that are not revoked: more than one only if they were given without authentication.
    fn keys_of(&self, name: &str) -> Vec<String> {
        let name = folded(name);
        let is_it = |identity: &Identity| identity.revoked.is_none() && folded(&identity.name) == name;
        let found = self.node_identities.identities.iter().filter(|(_, identity)| is_it(identity));
        found.map(|(key, _)| key.clone()).collect()
    }

    /// Gives the key its name.
    fn bind(
        &mut self,
        now: Time,
        request: &JoinRequest,
        replaces: bool,
        by: &str,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let (name, key) = (&request.name, &request.key_sha256);
        if !replaces && self.is_held(name) {
            return Err(bound(name));
        }
        if self.node_identities.identities.len() >= IDENTITIES {
            return Err(Failure::new(format!(
                "{IDENTITIES} identities of nodes are known: a revoked one is forgotten a day after the end of its certificate"
            ))
            .with("limit", IDENTITIES));
        }
        // Without authentication both have the same right to the name, and the last one to come does not shut the other one out.
        if by != NO_AUTHENTICATION {
            for holder in self.keys_of(name) {
                self.revoke_identity(now, &holder, "it was replaced", out);
            }
        }
        let identity = Identity {
            name: name.clone(),
            created: now,
            valid_until: now,
            revoked: None,
            by: by.to_owned(),
            has_connected: false,
        };
        // A name for which there was a token or an approval stays with that identity when authentication is switched on again.
        if by != NO_AUTHENTICATION || !self.is_held(name) {
            self.node_identities.names.insert(folded(name), key.clone());
        }
        self.node_identities.identities.insert(key.clone(), identity);
        self.forget_pending(key);
        self.log_join("join_node", request, by);
        Ok(())
    }

    /// The certificate of this identity is valid for as long as certificates are, from now on.
    fn certify(&mut self, now: Time, key_sha256: &str) -> Value {
        let ttl = self.config.node_certificate_ttl;
        self.node_identities.signatures.count(now, key_sha256, ttl);
        let mut valid_until = now + ttl;
        if let Some(identity) = self.node_identities.identities.get_mut(key_sha256) {
            let same_end = SAME_END.min(Span(ttl.0 / 10));
            if identity.valid_until <= valid_until && valid_until.since(identity.valid_until) < same_end {
                valid_until = identity.valid_until;
            } else {
                identity.valid_until = valid_until;
                self.persist_identity(key_sha256);
            }
        }
        let authentication = self.config.access_control;
        yson::map! {"state" => "joined", "valid_until" => valid_until, "authentication" => authentication}
            .into()
    }

    /// A node wants the next certificate before the one that it has ends. Unavailable if it had many a short time ago.
    pub(crate) fn renew_node(&mut self, now: Time, key_sha256: &str) -> Result<Value, Failure> {
        let name = self.valid_identity(now, key_sha256)?.name.clone();
        self.node_identities.signatures.demand(now, key_sha256, self.config.node_certificate_ttl)?;
        let renewed = self.certify(now, key_sha256);
        Ok(renewed.as_map().cloned().unwrap_or_default().with("name", name).into())
    }

    /// Name of the node with this key; nothing for a node without an identity.
    pub(crate) fn identify_node(&self, now: Time, from: &NodeProof) -> Result<Value, Failure> {
        match from {
            NodeProof::Certificate { key_sha256 } if self.config.node_identities => {
                let identity = self.valid_identity(now, key_sha256)?;
                Ok(yson::map! {"name" => identity.name.as_str()}.into())
            }
            _ => Ok(yson::map! {}.into()),
        }
    }

    /// `approve_node`.
    pub(crate) fn approve_node(
        &mut self,
        now: Time,
        name: &str,
        key_sha256: Option<&str>,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        let of_name = self.node_identities.pending.iter().filter(|(_, waiting)| waiting.name == name);
        let found: Vec<&String> = of_name
            .map(|(key, _)| key)
            .filter(|key| key_sha256.is_none_or(|wanted| wanted == *key))
            .collect();
        if found.is_empty()
            && let Some(key) = self.unconfirmed_key(name, key_sha256)
        {
            if let Some(identity) = self.node_identities.identities.get_mut(&key) {
                identity.by = "approval".to_owned();
            }
            self.persist_identity(&key);
            self.changes.touch(Topic::Nodes);
            return Ok(yson::map! {"name" => name, "key_sha256" => key}.into());
        }
        let key = match found[..] {
            [key] => key.clone(),
            [] => {
                let which = key_sha256.map_or_else(String::new, |key| format!(" with the key {key}"));
                return Err(Failure::resolve(format!("No node {name:?}{which} waits for an approval"))
                    .with("node", name));
            }
            _ => {
                let keys: Vec<&str> = found.iter().map(|key| key.as_str()).collect();
                let text = format!(
                    "{} nodes with the name {name} wait for an approval: name one of the keys {}. The log of the right node \
                     says which is its own",
                    keys.len(),
                    keys.join(", ")
                );
                return Err(Failure::new(text).with("keys", keys));
            }
        };
        let request =
            JoinRequest { name: name.to_owned(), key_sha256: key.clone(), token_sha256: None, address: None };
        self.bind(now, &request, false, "approval", out)?;
        // The node fetches its certificate when it asks the next time, which must be before this is over.
        self.certify(now, &key);
        Ok(yson::map! {"name" => name, "key_sha256" => key}.into())
    }

    /// `revoke_node`: the identity is refused from now on, its link is closed, and unused tokens for the name are gone. Its jobs are
    /// over when the node is lost.
    pub(crate) fn revoke_node(
        &mut self,
        now: Time,
        name: &str,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        let waiting = self.node_identities.pending.iter().filter(|(_, waiting)| waiting.name == name);
        let waiting: Vec<String> = waiting.map(|(key, _)| key.clone()).collect();
        let holder = self.node_identities.names.get(&folded(name)).cloned();
        let link = self.nodes.get(name).and_then(|node| node.key);
        let link = link.filter(|link| self.node_identities.links.get(link) == Some(&NodeProof::Insecure));
        if holder.is_none() && waiting.is_empty() && link.is_none() {
            let text = format!(
                "Node {name:?} has no identity, none with this name waits for an approval, and none is connected without one"
            );
            return Err(Failure::resolve(text).with("node", name));
        }
        self.close_name(name);
        waiting.iter().for_each(|key| self.forget_pending(key));
        if let Some(link) = link {
            self.close_link(now, link, &format!("Node {name} was revoked by an administrator"), out);
        }
        let is_of_name = |token: &Token| {
            token.used_by.is_none()
                && token.name.as_ref().is_some_and(|wanted| folded(wanted) == folded(name))
        };
        let tokens = self.node_identities.tokens.iter().filter(|(_, token)| is_of_name(token));
        let tokens: Vec<String> = tokens.map(|(digest, _)| digest.clone()).collect();
        tokens.iter().for_each(|digest| self.forget_token(digest));
        for key in self.keys_of(name) {
            self.revoke_identity(now, &key, "an administrator has revoked it", out);
        }
        Ok(yson::map! {"name" => name, "pending" => waiting.len()}.with_some("key_sha256", holder).into())
    }

    fn revoke_identity(&mut self, now: Time, key_sha256: &str, why: &str, out: &mut Vec<Effect>) {
        let Some(identity) = self.node_identities.identities.get_mut(key_sha256) else { return };
        identity.revoked = Some(now);
        let name = identity.name.clone();
        if self.node_identities.names.get(&folded(&name)).is_some_and(|holder| holder == key_sha256) {
            self.node_identities.names.remove(&folded(&name));
        }
        self.persist_identity(key_sha256);
        self.close_links(now, key_sha256, &format!("The identity of node {name} is refused: {why}"), out);
    }

    fn close_links(&mut self, now: Time, key_sha256: &str, why: &str, out: &mut Vec<Effect>) {
        let of_key = |proof: &NodeProof| matches!(proof, NodeProof::Certificate { key_sha256: key } if key == key_sha256);
        let links = self.node_identities.links.iter().filter(|(_, proof)| of_key(proof));
        let links: Vec<NodeKey> = links.map(|(node, _)| *node).collect();
        links.into_iter().for_each(|node| self.close_link(now, node, why, out));
    }

    fn close_link(&mut self, now: Time, node: NodeKey, why: &str, out: &mut Vec<Effect>) {
        out.push(Effect::ToNode { node, after: 0, message: ServerMessage::Refuse(refused(why)) });
        out.push(Effect::Disconnect(node));
        self.node_disconnected(now, node, out);
    }

    /// Key of an identity with this name that was given without authentication, where that is not enough.
    fn unconfirmed_key(&self, name: &str, key_sha256: Option<&str>) -> Option<String> {
        let key = self.node_identities.names.get(&folded(name)).filter(|_| self.config.access_control)?;
        let is_it = !self.is_held(name) && key_sha256.is_none_or(|wanted| wanted == key);
        is_it.then(|| key.clone())
    }

    /// `unconfirmed_node_identities`: who has them was never asked for a token.
    pub(crate) fn unconfirmed_identities_alert(&self, now: Time) -> Option<Failure> {
        if !self.config.access_control {
            return None;
        }
        let unconfirmed = self.node_identities.identities.values().filter(|identity| {
            identity.by == NO_AUTHENTICATION && identity.revoked.is_none() && identity.valid_until > now
        });
        let names: Vec<&str> = unconfirmed.map(|identity| identity.name.as_str()).collect();
        let example = *names.first()?;
        let text = format!(
            "{} nodes, {example} for one, have identities that they were given while the server asked nobody who they are. Confirm \
             those that are yours with `millpond node approve`, and refuse the others with `millpond node revoke`",
            names.len()
        );
        Some(Failure::new(text).with("nodes", names).with("alert_type", "unconfirmed_node_identities"))
    }

    /// `list_node_identities`.
    pub(crate) fn list_node_identities(&self, now: Time) -> Value {
        let NodeIdentities { tokens, identities, pending, .. } = &self.node_identities;
        let identities = identities.iter().map(|(key, identity)| {
            let state = match identity.revoked {
                Some(_) => "revoked",
                None if identity.valid_until <= now => "ended",
                None => "valid",
            };
            yson::map! {
                "name" => identity.name.as_str(),
                "key_sha256" => key.as_str(),
                "state" => state,
                "by" => identity.by.as_str(),
                "creation_time" => identity.created,
                "valid_until" => identity.valid_until,
            }
            .with_some("revocation_time", identity.revoked)
        });
        let pending = pending.iter().map(|(key, waiting)| {
            yson::map! {
                "name" => waiting.name.as_str(),
                "key_sha256" => key.as_str(),
                "creation_time" => waiting.since,
                "last_seen_time" => waiting.last_seen,
            }
            .with_some("address", waiting.address.clone())
        });
        let tokens = tokens.iter().filter(|(_, token)| token.valid_until > now).map(|(digest, token)| {
            let used_by = token.used_by.as_ref().and_then(|key| self.node_identities.identities.get(key));
            yson::map! {
                "token_sha256" => digest.as_str(),
                "replace" => token.replaces,
                "used" => token.used_by.is_some(),
                "creation_time" => token.created,
                "valid_until" => token.valid_until,
            }
            .with_some("name", token.name.clone())
            .with_some("used_by", used_by.map(|identity| identity.name.clone()))
        });
        yson::map! {
            "identities" => identities.collect::<Vec<Map>>(),
            "pending" => pending.collect::<Vec<Map>>(),
            "tokens" => tokens.collect::<Vec<Map>>(),
        }
        .into()
    }

    /// Forgets what is over, and closes links whose certificates have ended.
    pub(crate) fn check_node_identities(&mut self, now: Time, out: &mut Vec<Effect>) {
        let NodeIdentities { tokens, identities, pending, .. } = &self.node_identities;
        let known_until = |token: &Token| match token.used_by {
            Some(_) => token.valid_until + USED_KEPT,
            None => token.valid_until,
        };
        let ended = tokens.iter().filter(|(_, token)| known_until(token) <= now);
        let ended: Vec<String> = ended.map(|(digest, _)| digest.clone()).collect();
        let is_over = |identity: &Identity| {
            let kept = if identity.revoked.is_some() { REVOKED_KEPT } else { ENDED_KEPT };
            identity.valid_until + kept <= now
        };
        let over = identities.iter().filter(|(_, identity)| is_over(identity));
        let over: Vec<(String, String)> =
            over.map(|(key, identity)| (key.clone(), identity.name.clone())).collect();
        let gone = pending.iter().filter(|(_, waiting)| now.since(waiting.last_seen) > PENDING_KEPT);
        let gone: Vec<String> = gone.map(|(key, _)| key.clone()).collect();
        ended.iter().for_each(|digest| self.forget_token(digest));
        for (key, name) in over {
            self.close_name(&name);
            if self.node_identities.names.get(&folded(&name)) == Some(&key) {
                self.node_identities.names.remove(&folded(&name));
            }
            self.node_identities.identities.remove(&key);
            self.open.batch.delete(Table::NodeIdentities, key_of(IDENTITY, &key));
        }
        gone.iter().for_each(|key| self.forget_pending(key));
        self.node_identities.signatures.forget_old(now);
        let shown = self.node_identities.links.values().filter_map(|proof| match proof {
            NodeProof::Certificate { key_sha256 } => Some(key_sha256),
            NodeProof::Insecure => None,
        });
        let late: Vec<String> = shown
            .filter(|key| self.node_identities.identities.get(*key).is_none_or(|one| one.valid_until <= now))
            .cloned()
            .collect();
        for key in late {
            self.close_links(now, &key, "The certificate of this node has ended and was not renewed", out);
        }
    }

    /// `insecure_node_link`: nodes that are connected without an identity.
    pub(crate) fn insecure_links_alert(&self) -> Option<Failure> {
        let insecure = |node: &&crate::nodes::Node| {
            node.key.is_some_and(|key| self.node_identities.links.get(&key) == Some(&NodeProof::Insecure))
        };
        let names: Vec<&str> = self.nodes.iter().filter(insecure).map(|node| node.address.as_str()).collect();
        let example = *names.first()?;
        let text = format!(
            "{} nodes, {example} for one, are connected in clear by the token that all nodes share: its holder can get the \
             jobs and vaults of all users. Give each an identity with `millpond node join`, and start the server without \
             --insecure-plaintext-nodes",
            names.len()
        );
        Some(Failure::new(text).with("nodes", names).with("alert_type", "insecure_node_link"))
    }

    /// Who has joined or waits, and why; the audit log has nobody else to name.
    fn log_join(&mut self, action: &str, request: &JoinRequest, by: &str) {
        self.changes.touch(Topic::Nodes);
        let fields = yson::map! {
            "action" => action,
            "node" => request.name.as_str(),
            "key_sha256" => request.key_sha256.as_str(),
            "by" => by,
        };
        let address = request.address.map(|address| address.to_canonical().to_string());
        let fields =
            fields.with_some("address", address).with_some("token_sha256", request.token_sha256.clone());
        self.log("audit", fields);
    }

    fn forget_pending(&mut self, key_sha256: &str) {
        self.node_identities.pending.remove(key_sha256);
    }

    fn persist_join_token(&mut self, token_sha256: &str) {
        let Some(token) = self.node_identities.tokens.get(token_sha256) else { return };
        let record = yson::map! {
            "creation_time" => token.created,
            "valid_until" => token.valid_until,
            "replace" => token.replaces,
        }
        .with_some("name", token.name.clone())
        .with_some("used_by", token.used_by.clone());
        self.put_identity_record(key_of(TOKEN, token_sha256), record);
    }

    fn persist_identity(&mut self, key_sha256: &str) {
        let Some(identity) = self.node_identities.identities.get(key_sha256) else { return };
        let record = yson::map! {
            "name" => identity.name.as_str(),
            "creation_time" => identity.created,
            "valid_until" => identity.valid_until,
            "by" => identity.by.as_str(),
            "has_connected" => identity.has_connected,
        }
        .with_some("revocation_time", identity.revoked);
        self.put_identity_record(key_of(IDENTITY, key_sha256), record);
    }

    fn put_identity_record(&mut self, key: Vec<u8>, record: Map) {
        self.open.batch.put(Table::NodeIdentities, key, yson::to_binary(&record.into()));
    }

    /// Reads a record back. One that cannot be understood is an error: who is revoked must not be forgotten.
    pub(crate) fn restore_node_identity(&mut self, key: &[u8], value: &Value) -> Result<(), Failure> {
        let malformed = || Failure::new(format!("Malformed record of a node's identity {key:?}"));
        let [kind, digest @ ..] = key else { return Err(malformed()) };
        if *kind == CLOSED_NAME {
            let name = std::str::from_utf8(digest).map_err(|_| malformed())?;
            self.node_identities.closed_names.insert(name.to_owned());
            return Ok(());
        }
        let digest =
            std::str::from_utf8(digest).ok().filter(|digest| is_sha256(digest)).ok_or_else(malformed)?;
        // A field of another type is not an absent one: a token for one name would become one for all.
        let field = |name: &str| value.get(name).filter(|value| **value != Value::Entity);
        let text = |name: &str| match field(name) {
            None => Ok(None),
            Some(value) => value.as_str().map(|text| Some(text.to_owned())).ok_or_else(malformed),
        };
        let flag = |name: &str| match field(name) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(malformed),
        };
        let time = |name: &str| match text(name)? {
            None => Ok(None),
            Some(text) => Time::parse(&text).map(Some).ok_or_else(malformed),
        };
        let needed = |name: &str| time(name)?.ok_or_else(malformed);
        let known = &mut self.node_identities;
        let created = needed("creation_time")?;
        match *kind {
            TOKEN => {
                let token = Token {
                    name: text("name")?,
                    replaces: flag("replace")?,
                    created,
                    valid_until: needed("valid_until")?,
                    used_by: text("used_by")?,
                };
                known.tokens.insert(digest.to_owned(), token);
            }
            IDENTITY => {
                let identity = Identity {
                    name: text("name")?.ok_or_else(malformed)?,
                    created,
                    valid_until: needed("valid_until")?,
                    revoked: time("revocation_time")?,
                    by: text("by")?.ok_or_else(malformed)?,
                    has_connected: flag("has_connected")?,
                };
                if identity.revoked.is_none() {
                    let name = folded(&identity.name);
                    let holder = known.names.get(&name).and_then(|key| known.identities.get(key));
                    // Of two, at least one was given without authentication: the other one holds the name, or the newer one.
                    let right = |one: &Identity| (one.by != NO_AUTHENTICATION, one.created);
                    if holder.is_none_or(|holder| right(holder) <= right(&identity)) {
                        known.names.insert(name, digest.to_owned());
                    }
                }
                known.identities.insert(digest.to_owned(), identity);
            }
            _ => return Err(malformed()),
        }
        Ok(())
    }
}

fn pending() -> Value {
    yson::map! {"state" => "pending"}.into()
}

fn bound(name: &str) -> Failure {
    refused(format!(
        "The name {name} belongs to another identity: if its node is gone, make a token that takes the name over with \
         `millpond node token create --name {name} --replace`"
    ))
    .with("node", name)
}

fn key_of(kind: u8, digest: &str) -> Vec<u8> {
    [&[kind], digest.as_bytes()].concat()
}

/// Names are compared so.
fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// The addresses that one host may have: one of IPv4, a /64 of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        v4 => v4,
    }
}

/// Names are printed into commands that people copy: nothing in them may mean something to a shell or to a command line.
fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:-[]".contains(c);
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[');
    if begins_well && name.len() <= LONGEST_NAME && name.chars().all(is_plain) {
        return Ok(());
    }
    let shown: String = name.chars().take(100).flat_map(char::escape_debug).collect();
    Err(Failure::new(format!(
        "Name of a node: expected 1 to {LONGEST_NAME} letters, digits and characters of \"._:-[]\", the first one a letter, a \
         digit or \"[\", found \"{shown}\" of {} bytes",
        name.len()
    ))
    .with("parameter", "name"))
}
