//! Who may register as which node: join tokens, identities of nodes, and nodes that wait for an approval.
//!
//! An identity is a key pair that a node has made for itself; here it is the SHA-256 of the public key. It gets its name once:
//! by a join token, or by an administrator's approval. From then on no other key can register under that name until the
//! identity is revoked or a token that replaces it is used. Certificates, signatures and the handshake are the edge's: it
//! tells by [`Input::NodeConnected`](crate::Input::NodeConnected) which key a connection has proved to have.
//!
//! A node may be killed after its token was used and before it has stored the certificate. It asks again with the same key
//! then, and gets one: the key is what the token was exchanged for.

use crate::{Effect, Kernel, NodeKey, Topic};
use std::collections::BTreeMap;
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
/// Join tokens that are kept, used ones included: those are kept until their end, so that a second use is recognised.
const TOKENS: usize = 10_000;
/// Nodes that wait for an approval: anybody who reaches the server can be one.
const PENDING: usize = 100;
/// A node that waits and has not asked for so long gives its place to another one when all are taken.
const PENDING_AWAY: Span = Span::from_secs(60);
/// A node that waits and has not asked for so long is forgotten.
const PENDING_KEPT: Span = Span::from_secs(24 * 3600);
/// A revoked identity is kept for so long after the end of its certificate, to tell its node why it is refused.
const REVOKED_KEPT: Span = Span::from_secs(24 * 3600);
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
struct Identity {
    name: String,
    created: Time,
    /// End of the last certificate.
    valid_until: Time,
    revoked: Option<Time>,
}

#[derive(Clone, PartialEq, Debug)]
struct Pending {
    name: String,
    address: Option<String>,
    since: Time,
    last_seen: Time,
}

/// See the module page. Keys of the maps are SHA-256 in hexadecimal.
#[derive(Default)]
pub(crate) struct NodeIdentities {
    tokens: BTreeMap<String, Token>,
    identities: BTreeMap<String, Identity>,
    /// Keys by the names that they hold.
    names: BTreeMap<String, String>,
    pending: BTreeMap<String, Pending>,
    /// What open connections have proved.
    links: BTreeMap<NodeKey, NodeProof>,
}

/// First byte of a record's key; the digest follows.
const TOKEN: u8 = b't';
const IDENTITY: u8 = b'i';
const WAITING: u8 = b'p';

fn refused(text: impl Into<String>) -> Failure {
    Failure::coded(code::INVALID_CREDENTIALS, text.into())
}

impl Kernel {
    /// A connection has opened, before its first message.
    pub(crate) fn node_connected(&mut self, node: NodeKey, proof: NodeProof) {
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
            Some(NodeProof::Insecure) if self.node_identities.names.contains_key(name) => {
                Err(refused(format!("Node {name} has an identity of its own and cannot register without it")))
            }
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

    /// Whether a caller that has proved this is the node with this name.
    pub(crate) fn speaks_for(&self, now: Time, proof: &NodeProof, name: &str) -> bool {
        if !self.config.node_identities {
            return true;
        }
        match proof {
            NodeProof::Certificate { key_sha256 } => {
                self.valid_identity(now, key_sha256).is_ok_and(|identity| identity.name == name)
            }
            NodeProof::Insecure => !self.node_identities.names.contains_key(name),
        }
    }

    fn valid_identity(&self, now: Time, key_sha256: &str) -> Result<&Identity, Failure> {
        let identity = self.node_identities.identities.get(key_sha256).ok_or_else(|| {
            refused("The server does not know the identity of this node: join again with a new join token")
        })?;
        let name = &identity.name;
        if let Some(time) = identity.revoked {
            return Err(refused(format!("The identity of node {name} was revoked at {time}")));
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
        if let Some(name) =
            name.as_ref().filter(|name| !replaces && self.node_identities.names.contains_key(*name))
        {
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
        self.node_identities.tokens.remove(token_sha256).ok_or_else(|| {
            Failure::resolve(format!("No such join token {token_sha256:?}"))
                .with("token_sha256", token_sha256)
        })?;
        self.open.batch.delete(Table::NodeIdentities, key_of(TOKEN, token_sha256));
        Ok(Value::Entity)
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
            return Ok(self.certify(now, key));
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
        let token = self.node_identities.tokens.get(token_sha256).filter(|token| token.valid_until > now);
        let token = token.ok_or_else(|| {
            refused("The join token is not known or has ended: make another one with `millpond node token create`")
        })?;
        if let Some(by) = &token.used_by {
            let by = self.node_identities.identities.get(by).map_or("another node", |by| by.name.as_str());
            return Err(refused(format!(
                "The join token was used already, by {by}: each node needs one of its own. If it is not known who used it, \
                 revoke that node with `millpond node revoke {by}`"
            )));
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
            self.bind(now, request, true, "no_authentication", out)?;
            return Ok(self.certify(now, key));
        }
        if !self.config.node_approval {
            return Err(refused(
                "The server asks new nodes for a join token: make one with `millpond node token create`, and give it to the \
                 node by --join-token-file",
            ));
        }
        if self.node_identities.names.contains_key(name) {
            return Err(bound(name));
        }
        if let Some(known) = self.node_identities.pending.get_mut(key)
            && known.name == *name
        {
            known.last_seen = now;
            return Ok(pending());
        }
        self.make_room_for_pending(now)?;
        let address = request.address.map(|address| address.to_canonical().to_string());
        let waiting = Pending { name: name.clone(), address, since: now, last_seen: now };
        self.node_identities.pending.insert(key.clone(), waiting);
        self.persist_pending(key);
        self.log_join("node_waits", request, "approval");
        Ok(pending())
    }

    fn make_room_for_pending(&mut self, now: Time) -> Result<(), Failure> {
        let pending = &self.node_identities.pending;
        if pending.len() < PENDING {
            return Ok(());
        }
        let longest = pending.iter().min_by_key(|(_, waiting)| waiting.last_seen);
        match longest.filter(|(_, waiting)| now.since(waiting.last_seen) > PENDING_AWAY) {
            Some((key, _)) => {
                let key = key.clone();
                self.forget_pending(&key);
                Ok(())
            }
            None => Err(refused(format!(
                "{PENDING} nodes wait for an approval: try again when some are approved"
            ))),
        }
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
        match self.node_identities.names.get(name).cloned() {
            Some(_) if !replaces => return Err(bound(name)),
            Some(holder) => self.revoke_identity(now, &holder, "it was replaced", out),
            None => {}
        }
        let identity = Identity { name: name.clone(), created: now, valid_until: now, revoked: None };
        self.node_identities.identities.insert(key.clone(), identity);
        self.node_identities.names.insert(name.clone(), key.clone());
        self.forget_pending(key);
        self.log_join("join_node", request, by);
        Ok(())
    }

    /// The certificate of this identity is valid for as long as certificates are, from now on.
    fn certify(&mut self, now: Time, key_sha256: &str) -> Value {
        let valid_until = now + self.config.node_certificate_ttl;
        if let Some(identity) = self.node_identities.identities.get_mut(key_sha256) {
            identity.valid_until = valid_until;
        }
        self.persist_identity(key_sha256);
        let authentication = self.config.access_control;
        yson::map! {"state" => "joined", "valid_until" => valid_until, "authentication" => authentication}
            .into()
    }

    /// A node wants the next certificate before the one that it has ends.
    pub(crate) fn renew_node(&mut self, now: Time, key_sha256: &str) -> Result<Value, Failure> {
        let name = self.valid_identity(now, key_sha256)?.name.clone();
        let renewed = self.certify(now, key_sha256);
        Ok(renewed.as_map().cloned().unwrap_or_default().with("name", name).into())
    }

    /// Name of the node with this key. With a job: refuses a job of another node; `is_expected` tells whether the job has
    /// still something to hand in.
    pub(crate) fn identify_node(
        &self,
        now: Time,
        key_sha256: &str,
        job: Option<vocab::JobId>,
    ) -> Result<Value, Failure> {
        let identity = self.valid_identity(now, key_sha256)?;
        let name = identity.name.as_str();
        let node = job.and_then(|job_id| self.node_of_job(job_id));
        if let (Some(job_id), Some(_)) = (job, node.filter(|node| *node != name)) {
            let text = format!("Job {job_id} is not a job of node {name}");
            return Err(Failure::coded(code::ACCESS_DENIED, text).with("job_id", job_id));
        }
        Ok(yson::map! {"name" => name, "is_expected" => node.is_some()}.into())
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
        let holder = self.node_identities.names.get(name).cloned();
        if holder.is_none() && waiting.is_empty() {
            let text =
                format!("Node {name:?} has no identity, and none with this name waits for an approval");
            return Err(Failure::resolve(text).with("node", name));
        }
        waiting.iter().for_each(|key| self.forget_pending(key));
        let is_of_name = |token: &Token| token.name.as_deref() == Some(name) && token.used_by.is_none();
        let tokens = self.node_identities.tokens.iter().filter(|(_, token)| is_of_name(token));
        let tokens: Vec<String> = tokens.map(|(digest, _)| digest.clone()).collect();
        for digest in &tokens {
            self.node_identities.tokens.remove(digest);
            self.open.batch.delete(Table::NodeIdentities, key_of(TOKEN, digest));
        }
        if let Some(key) = &holder {
            self.revoke_identity(now, key, "an administrator has revoked it", out);
        }
        Ok(yson::map! {"name" => name, "pending" => waiting.len()}.with_some("key_sha256", holder).into())
    }

    fn revoke_identity(&mut self, now: Time, key_sha256: &str, why: &str, out: &mut Vec<Effect>) {
        let Some(identity) = self.node_identities.identities.get_mut(key_sha256) else { return };
        identity.revoked = Some(now);
        let name = identity.name.clone();
        self.node_identities.names.remove(&name);
        self.persist_identity(key_sha256);
        self.close_links(now, key_sha256, &format!("The identity of node {name} is refused: {why}"), out);
    }

    fn close_links(&mut self, now: Time, key_sha256: &str, why: &str, out: &mut Vec<Effect>) {
        let of_key = |proof: &NodeProof| matches!(proof, NodeProof::Certificate { key_sha256: key } if key == key_sha256);
        let links = self.node_identities.links.iter().filter(|(_, proof)| of_key(proof));
        let links: Vec<NodeKey> = links.map(|(node, _)| *node).collect();
        for node in links {
            out.push(Effect::ToNode { node, after: 0, message: ServerMessage::Refuse(refused(why)) });
            out.push(Effect::Disconnect(node));
            self.node_disconnected(now, node, out);
        }
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
        let ended = tokens.iter().filter(|(_, token)| token.valid_until <= now);
        let ended: Vec<String> = ended.map(|(digest, _)| digest.clone()).collect();
        let is_over =
            |identity: &Identity| identity.revoked.is_some() && identity.valid_until + REVOKED_KEPT <= now;
        let over: Vec<String> =
            identities.iter().filter(|(_, identity)| is_over(identity)).map(|(key, _)| key.clone()).collect();
        let gone = pending.iter().filter(|(_, waiting)| now.since(waiting.last_seen) > PENDING_KEPT);
        let gone: Vec<String> = gone.map(|(key, _)| key.clone()).collect();
        for digest in ended {
            self.node_identities.tokens.remove(&digest);
            self.open.batch.delete(Table::NodeIdentities, key_of(TOKEN, &digest));
        }
        for key in over {
            self.node_identities.identities.remove(&key);
            self.open.batch.delete(Table::NodeIdentities, key_of(IDENTITY, &key));
        }
        gone.iter().for_each(|key| self.forget_pending(key));
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
        if self.node_identities.pending.remove(key_sha256).is_some() {
            self.open.batch.delete(Table::NodeIdentities, key_of(WAITING, key_sha256));
        }
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
        }
        .with_some("revocation_time", identity.revoked);
        self.put_identity_record(key_of(IDENTITY, key_sha256), record);
    }

    fn persist_pending(&mut self, key_sha256: &str) {
        let Some(waiting) = self.node_identities.pending.get(key_sha256) else { return };
        let record = yson::map! {"name" => waiting.name.as_str(), "creation_time" => waiting.since}
            .with_some("address", waiting.address.clone());
        self.put_identity_record(key_of(WAITING, key_sha256), record);
    }

    fn put_identity_record(&mut self, key: Vec<u8>, record: Map) {
        self.open.batch.put(Table::NodeIdentities, key, yson::to_binary(&record.into()));
    }

    /// Reads a record back. One that cannot be understood is an error: who is revoked must not be forgotten.
    pub(crate) fn restore_node_identity(
        &mut self,
        now: Time,
        key: &[u8],
        value: &Value,
    ) -> Result<(), Failure> {
        let malformed = || Failure::new(format!("Malformed record of a node's identity {key:?}"));
        let [kind, digest @ ..] = key else { return Err(malformed()) };
        let digest =
            std::str::from_utf8(digest).ok().filter(|digest| is_sha256(digest)).ok_or_else(malformed)?;
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let time = |name: &str| text(name).and_then(|text| Time::parse(&text));
        let known = &mut self.node_identities;
        let created = time("creation_time").ok_or_else(malformed)?;
        match *kind {
            TOKEN => {
                let token = Token {
                    name: text("name"),
                    replaces: value.get("replace").and_then(Value::as_bool).unwrap_or(false),
                    created,
                    valid_until: time("valid_until").ok_or_else(malformed)?,
                    used_by: text("used_by"),
                };
                known.tokens.insert(digest.to_owned(), token);
            }
            IDENTITY => {
                let identity = Identity {
                    name: text("name").ok_or_else(malformed)?,
                    created,
                    valid_until: time("valid_until").ok_or_else(malformed)?,
                    revoked: match value.get("revocation_time") {
                        None => None,
                        Some(_) => Some(time("revocation_time").ok_or_else(malformed)?),
                    },
                };
                if identity.revoked.is_none() {
                    known.names.insert(identity.name.clone(), digest.to_owned());
                }
                known.identities.insert(digest.to_owned(), identity);
            }
            WAITING => {
                let name = text("name").ok_or_else(malformed)?;
                let waiting = Pending { name, address: text("address"), since: created, last_seen: now };
                known.pending.insert(digest.to_owned(), waiting);
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

fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = name.chars().all(|c| !c.is_control() && !c.is_whitespace());
    if !name.is_empty() && name.len() <= LONGEST_NAME && is_plain {
        return Ok(());
    }
    let shown: String = name.chars().take(100).flat_map(char::escape_debug).collect();
    Err(Failure::new(format!(
        "Name of a node: expected 1 to {LONGEST_NAME} bytes without spaces and control characters, found \"{shown}\" of {} \
         bytes",
        name.len()
    ))
    .with("parameter", "name"))
}
