//! Users, groups, tokens, passwords (http-api.md 8.4): all of them are nodes of the tree, so they are as
//! durable as it is.
//!
//! A token is a node `//sys/tokens/<its SHA-256>` that says whose it is; a password is a node
//! `//sys/tokens/passwords/<user>` with an Argon2 hash. Both remember the id of the user's node: a user
//! who is removed and made again under the same name has neither. A token with an end has the attribute `valid_until`.
//! Nobody but superusers sees them.

use crate::access::Object;
use crate::command::{Command, Proof};
use crate::{Effect, Kernel};
use cypress::{Acl, Action, Context, CreateOptions, Last, NodeType, Permission, RemoveOptions, Resolved};
use std::collections::BTreeSet;
use vocab::{Failure, ObjectId, OperationId, Span, Time, code};
use yson::ypath::{Step, YPath};
use yson::{Map, Value};

const TOKENS: &[u8] = b"tokens";
/// Of one user.
const TOKENS_OF_USER: usize = 1000;
/// End of a token, of the tokens that have one.
const VALID_UNTIL: &str = "valid_until";
/// Time for which a token that has ended is still known, so that its holder is told that it has.
const EXPIRED_KEPT: Span = Span::from_secs(24 * 3600);
/// The longest life of a token with an end: a hundred years.
const LONGEST_TTL: Span = Span::from_secs(100 * 365 * 24 * 3600);
const PASSWORDS: &[u8] = b"passwords";
/// The user may not come in.
const USER_BANNED: i64 = 903;

impl Kernel {
    /// A map of `//sys`; the null id if somebody has removed it.
    pub(crate) fn system_map(&self, name: &[u8]) -> ObjectId {
        let sys = self.tree.child(self.tree.root(), b"sys");
        sys.and_then(|sys| self.tree.child(sys, name)).unwrap_or_default()
    }

    /// The node of a user.
    pub(crate) fn user_node(&self, user: &str) -> Option<ObjectId> {
        let node = self.tree.child(self.system_map(b"users"), user.as_bytes())?;
        self.tree.node(node).filter(|node| node.node_type == NodeType::User).map(|node| node.id)
    }

    /// Tokens and passwords.
    pub(crate) fn is_secret(&self, node: ObjectId) -> bool {
        self.tree.is_within(node, self.system_map(TOKENS))
    }

    /// Are tokens and passwords below this node?
    pub(crate) fn has_secrets_below(&self, node: ObjectId) -> bool {
        self.tree.is_within(self.system_map(TOKENS), node)
    }

    fn expect_user(&self, user: &str) -> Result<ObjectId, Failure> {
        self.user_node(user)
            .ok_or_else(|| Failure::resolve(format!("No such user \"{user}\"")).with("user", user))
    }

    fn text_attribute(&self, node: ObjectId, name: &str) -> Option<String> {
        self.tree.attribute(node, name.as_bytes())?.as_str().map(str::to_owned)
    }

    /// `create` of a user, a group or an account, by name.
    pub(crate) fn create_subject(
        &mut self,
        now: Time,
        user: &str,
        node_type: NodeType,
        mut attributes: Map,
        ignore_existing: bool,
        out: &mut Vec<Effect>,
    ) -> Result<ObjectId, Failure> {
        let what = node_type.name();
        let name = attributes.remove("name").unwrap_or_default();
        let name = name.as_str().filter(|name| !name.is_empty()).map(str::to_owned).ok_or_else(|| {
            Failure::new(format!("Attribute \"name\" is required to create a {what}, as a non-empty string"))
                .with("attribute", "name")
        })?;
        // One name, one meaning: lists of members and of access do not say which is meant.
        let other = match node_type {
            NodeType::User => self.tree.group(&name),
            NodeType::Group => self.user_node(&name),
            _ => None,
        };
        if other.is_some() {
            let other = if node_type == NodeType::User { "group" } else { "user" };
            let message = format!("There is a {other} \"{name}\": a {what} cannot have the same name");
            return Err(Failure::coded(code::ALREADY_EXISTS, message).with("name", name));
        }
        let path = YPath::root().child("sys").child(format!("{what}s")).child(&name);
        let place = self.resolve_local(&path, Last::Stay, "create")?;
        let options = CreateOptions { attributes, ignore_existing, ..CreateOptions::new(node_type) };
        self.edit(now, user, out, |edit| edit.create(&place, &options))
    }

    /// Users and groups that may be gone when a command is done.
    pub(crate) fn subjects_replaced_by(&self, command: &Command) -> Vec<String> {
        let (paths, last) = match command {
            Command::Remove { path, .. } => (vec![path], Last::Stay),
            Command::Create { path: Some(path), force: true, .. } => (vec![path], Last::Stay),
            Command::Set { path, force: true, .. } => (vec![path], Last::Follow),
            Command::Link { link, force: true, .. } => (vec![link], Last::Stay),
            Command::CopyMove { source, destination, remove_source, options } => {
                let moved = remove_source.then_some(source).into_iter();
                (moved.chain(options.force.then_some(destination)).collect(), Last::Stay)
            }
            _ => return Vec::new(),
        };
        let places = paths.into_iter().filter_map(|path| match self.tree.resolve(path, last) {
            Ok(Resolved::Local(place)) => Some(place),
            _ => None,
        });
        places.flat_map(|place| self.subjects_at(&place)).collect()
    }

    /// Users and groups that are removed with what is at a place.
    fn subjects_at(&self, place: &cypress::Place) -> Vec<String> {
        let maps = [self.system_map(b"users"), self.system_map(b"groups")];
        let is_below = |id| maps.iter().any(|map| self.tree.is_within(id, *map));
        let is_node = place.rest.is_empty() || matches!(place.rest.as_slice(), [Step::AllChildren]);
        if !is_node || !is_below(place.node) {
            return Vec::new();
        }
        let nodes = self.tree.subtree(place.node).into_iter().filter_map(|id| self.tree.node(id));
        let subjects = nodes.filter(|node| matches!(node.node_type, NodeType::User | NodeType::Group));
        subjects.map(|node| String::from_utf8_lossy(&node.key).into_owned()).collect()
    }

    /// Takes names that nobody has any more out of all lists. Locks on what has the lists are no matter: whoever is
    /// removed must not be able to hold that up.
    pub(crate) fn forget_subjects(&mut self, now: Time, mut gone: Vec<String>, out: &mut Vec<Effect>) {
        // Whatever replaces somebody is somebody else.
        gone.sort();
        gone.dedup();
        if gone.is_empty() {
            return;
        }
        let done = self.tree.overrule(Context { now, user: "root", ids: &mut self.ids }, |edit| {
            gone.iter().for_each(|name| edit.forget_subject(name));
            Ok(())
        });
        // It refuses nothing.
        if let Ok(done) = done {
            self.absorb(done, out);
        }
        self.forget_subjects_of_pools(&gone);
        self.forget_uids(&gone);
    }

    fn forget_subjects_of_pools(&mut self, gone: &[String]) {
        let mut changed = Vec::new();
        for (place, pool) in &mut self.pools.pools {
            let Ok(mut acl) = Acl::parse(&Value::List(pool.acl.clone())) else { continue };
            if gone.iter().any(|name| acl.names(name)) {
                gone.iter().for_each(|name| acl.forget(name));
                pool.acl = acl.to_value().as_list().unwrap_or_default().to_vec();
                changed.push(place.clone());
            }
        }
        for (tree, pool) in changed {
            self.persist_pool(&tree, &pool);
        }
    }

    /// Is this a user or a group?
    pub(crate) fn is_subject(&self, name: &str) -> bool {
        self.user_node(name).is_some() || self.tree.group(name).is_some()
    }

    fn group_node(&self, group: &str) -> Result<ObjectId, Failure> {
        self.tree
            .group(group)
            .ok_or_else(|| Failure::resolve(format!("No such group \"{group}\"")).with("group", group))
    }

    /// `add_member`.
    pub(crate) fn add_member(
        &mut self,
        now: Time,
        user: &str,
        (group, member): (&str, &str),
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let node = self.group_node(group)?;
        if self.tree.group(member).is_none() {
            self.expect_user(member)?;
        }
        self.edit(now, user, out, |edit| edit.add_member(node, member))
    }

    /// `remove_member`.
    pub(crate) fn remove_member(
        &mut self,
        now: Time,
        user: &str,
        (group, member): (&str, &str),
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let node = self.group_node(group)?;
        if self.tree.group(member).is_none() {
            self.expect_user(member)?;
        }
        self.edit(now, user, out, |edit| edit.remove_member(node, member))
    }

    /// `issue_token`: the token itself is made and known only outside.
    pub(crate) fn issue_token(
        &mut self,
        now: Time,
        user: &str,
        token_sha256: &str,
        (description, ttl): (Option<String>, Option<Span>),
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let id = self.expect_user(user)?;
        check_sha256("token_sha256", token_sha256)?;
        check_time("ttl", ttl)?;
        // Issued again: only who asks for the first one a second time comes to the same.
        let known = self.tree.child(self.system_map(TOKENS), token_sha256.as_bytes());
        if known.is_some_and(|node| self.text_attribute(node, "user_id") == Some(id.to_string())) {
            return Ok(());
        }
        let (place, options) = self.new_token(now, user, token_sha256, (description, ttl), "issue_token")?;
        self.edit(now, "root", out, |edit| edit.create(&place, &options)).map(drop)
    }

    /// Place and attributes of one more token of a user.
    fn new_token(
        &self,
        now: Time,
        user: &str,
        token_sha256: &str,
        (description, ttl): (Option<String>, Option<Span>),
        command: &str,
    ) -> Result<(cypress::Place, CreateOptions), Failure> {
        let id = self.expect_user(user)?;
        check_sha256("token_sha256", token_sha256)?;
        check_time("ttl", ttl)?;
        // All tokens are in one map, which has a limit: nobody fills it alone.
        let own = self.list_user_tokens(user, false)?.as_list().map_or(0, <[Value]>::len);
        if own >= TOKENS_OF_USER {
            let message = format!(
                "User \"{user}\" has {own} tokens, at most {TOKENS_OF_USER} are allowed: revoke some first"
            );
            return Err(Failure::new(message).with("user", user).with("limit", TOKENS_OF_USER));
        }
        let attributes = yson::map! {"user" => user, "user_id" => id}.with_some("description", description);
        let attributes = match ttl {
            Some(ttl) => with_end(attributes, now + ttl),
            None => attributes,
        };
        let path = YPath::root().child("sys").child("tokens").child(token_sha256);
        let place = self.resolve_local(&path, Last::Stay, command)?;
        let options = CreateOptions { attributes, recursive: true, ..CreateOptions::new(NodeType::MapNode) };
        Ok((place, options))
    }

    /// `rotate_token`: the new token is there and the old one has its end, or neither.
    pub(crate) fn rotate_token(
        &mut self,
        now: Time,
        user: &str,
        (old_sha256, token_sha256): (&str, &str),
        (ttl, grace): (Option<Span>, Option<Span>),
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        check_sha256("token_sha256", old_sha256)?;
        check_time("ttl", ttl)?;
        check_time("grace", grace)?;
        // Asked again after the answer was lost: it is done.
        if self.token_of(user, token_sha256).is_some() {
            return Ok(());
        }
        let old = self.expect_token(user, old_sha256)?;
        let end = self.end_of_token(old);
        if let Some(end) = end.filter(|end| *end <= now) {
            return Err(expired(end));
        }
        let description = self.text_attribute(old, "description");
        let life = || Some(end?.since(Time::parse(&self.text_attribute(old, "creation_time")?)?));
        let (place, options) =
            self.new_token(now, user, token_sha256, (description, ttl.or_else(life)), "rotate_token")?;
        let replaced = cypress::Place { node: old, rest: Vec::new() };
        self.edit(now, "root", out, |edit| {
            edit.create(&place, &options)?;
            match grace {
                None => edit.remove(&replaced, RemoveOptions::default()),
                Some(grace) => {
                    let until = end.map_or(now + grace, |end| end.min(now + grace));
                    edit.multiset_attributes(&replaced, with_end(Map::new(), until))
                }
            }
        })
    }

    /// A token of this user, expired or not.
    fn token_of(&self, user: &str, token_sha256: &str) -> Option<ObjectId> {
        let node = self.tree.child(self.system_map(TOKENS), token_sha256.as_bytes())?;
        (self.text_attribute(node, "user").as_deref() == Some(user)).then_some(node)
    }

    fn expect_token(&self, user: &str, token_sha256: &str) -> Result<ObjectId, Failure> {
        self.token_of(user, token_sha256)
            .ok_or_else(|| Failure::resolve(format!("User \"{user}\" has no such token")).with("user", user))
    }

    /// End of a token; `None`: it has none.
    fn end_of_token(&self, node: ObjectId) -> Option<Time> {
        let end = self.tree.attribute(node, VALID_UNTIL.as_bytes())?;
        // An end that cannot be read has passed.
        Some(end.as_str().and_then(Time::parse).unwrap_or(Time::ZERO))
    }

    /// `revoke_token`.
    pub(crate) fn revoke_token(
        &mut self,
        now: Time,
        user: &str,
        token_sha256: &str,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        check_sha256("token_sha256", token_sha256)?;
        let node = self.expect_token(user, token_sha256)?;
        let place = cypress::Place { node, rest: Vec::new() };
        self.edit(now, "root", out, |edit| edit.remove(&place, RemoveOptions::default()))
    }

    /// `list_user_tokens`: digests, or with `with_metadata` a map of what is known of each.
    pub(crate) fn list_user_tokens(&self, user: &str, with_metadata: bool) -> Result<Value, Failure> {
        let id = self.expect_user(user)?.to_string();
        let all = self.tree.map_children(self.system_map(TOKENS));
        let own = all.filter(|(_, node)| self.text_attribute(*node, "user_id").as_deref() == Some(&id));
        let own = own.map(|(key, node)| (String::from_utf8_lossy(key).into_owned(), node));
        if !with_metadata {
            return Ok(own.map(|(key, _)| Value::from(key)).collect::<Vec<_>>().into());
        }
        let facts = |node: ObjectId| {
            ["description", "creation_time", VALID_UNTIL]
                .into_iter()
                .filter_map(|name| Some((name, self.tree.attribute(node, name.as_bytes())?)))
                .collect::<Map>()
        };
        Ok(own.map(|(key, node)| (key, facts(node))).collect::<Map>().into())
    }

    /// `set_user_password`: only the hash comes here.
    pub(crate) fn set_user_password(
        &mut self,
        now: Time,
        user: &str,
        hash: String,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let id = self.expect_user(user)?;
        let attributes = yson::map! {"value" => hash, "user_id" => id};
        let path = YPath::root().child("sys").child("tokens").child("passwords").child(user);
        let place = self.resolve_local(&path, Last::Stay, "set_user_password")?;
        let options = CreateOptions {
            attributes,
            recursive: true,
            force: true,
            ..CreateOptions::new(NodeType::StringNode)
        };
        self.edit(now, "root", out, |edit| edit.create(&place, &options)).map(drop)
    }

    /// The hash of a user's password; an entity if there is none, or no such user.
    pub(crate) fn password_hash(&self, user: &str) -> Value {
        let passwords = self.tree.child(self.system_map(TOKENS), PASSWORDS);
        let node = passwords.and_then(|map| self.tree.child(map, user.as_bytes()));
        let of_user = node.filter(|node| self.belongs_to(*node, user));
        of_user.and_then(|node| self.tree.attribute(node, b"value")).unwrap_or_default()
    }

    fn belongs_to(&self, node: ObjectId, user: &str) -> bool {
        let id = self.user_node(user).map(|id| id.to_string());
        id.is_some() && self.text_attribute(node, "user_id") == id
    }

    /// Who a request runs as: `{user}` (http-api.md 2.9).
    ///
    /// With `valid_until` if the token has an end: the edge must not remember the answer for longer.
    pub(crate) fn identify(&self, now: Time, proof: &Proof, act_as: Option<&str>) -> Result<Value, Failure> {
        let mut end = None;
        let user = match proof {
            Proof::Token(sha256) => {
                let node = self.tree.child(self.system_map(TOKENS), sha256.as_bytes());
                let user = node.and_then(|node| Some((node, self.text_attribute(node, "user")?)));
                let user = user.filter(|(node, user)| self.belongs_to(*node, user));
                let (node, user) = user.ok_or_else(|| {
                    let text = "Invalid credentials: the token is not known";
                    Failure::coded(code::INVALID_CREDENTIALS, text)
                })?;
                end = self.end_of_token(node);
                if let Some(end) = end.filter(|end| *end <= now) {
                    return Err(expired(end));
                }
                user
            }
            // A session that began with a password ends with it.
            Proof::Password { user, hash } if self.password_hash(user).as_str() == Some(hash) => user.clone(),
            Proof::Configured(user) if self.user_node(user).is_some() => user.clone(),
            Proof::Password { .. } => {
                let text = "The session is not valid any more: sign in again";
                return Err(Failure::coded(code::INVALID_CREDENTIALS, text));
            }
            Proof::Configured(user) => {
                let text = format!("The token is of user \"{user}\", and there is no such user");
                return Err(Failure::coded(code::INVALID_CREDENTIALS, text));
            }
        };
        self.refuse_banned(&user)?;
        let Some(other) = act_as.filter(|other| *other != user) else { return Ok(identity(&user, end)) };
        if !self.who(&user).is_superuser() {
            let message =
                format!("User \"{user}\" may not act as user \"{other}\": only superusers act as others");
            return Err(Failure::coded(code::AUTHENTICATION, message).with("user", user));
        }
        if self.user_node(other).is_none() {
            let message = format!("User \"{user}\" cannot act as \"{other}\": there is no such user");
            return Err(Failure::coded(code::AUTHENTICATION, message).with("user", other));
        }
        self.refuse_banned(other)?;
        Ok(identity(other, end))
    }

    /// `{superuser; groups}`.
    pub(crate) fn describe_user(&self, user: &str) -> Value {
        let who = self.who(user);
        let groups: Vec<&str> = who.groups().collect();
        yson::map! {"superuser" => who.is_superuser(), "groups" => groups}.into()
    }

    fn refuse_banned(&self, user: &str) -> Result<(), Failure> {
        let node = self.user_node(user);
        let banned = node.and_then(|node| self.tree.attribute(node, b"banned")).and_then(|b| b.as_bool());
        match banned {
            Some(true) => {
                Err(Failure::coded(USER_BANNED, format!("User \"{user}\" is banned")).with("user", user))
            }
            _ => Ok(()),
        }
    }

    /// `check_permission`, asked by somebody about himself or another one.
    pub(crate) fn check_permission(
        &self,
        asker: Option<&str>,
        user: &str,
        permission: &str,
        path: &YPath,
        columns: Option<&[String]>,
    ) -> Result<Value, Failure> {
        let permission = Permission::parse(permission)?;
        self.expect_user(user)?;
        // Who may not look there is not told what there is: what counts is the nearest thing that exists.
        let closed = asker.map(|asker| self.nearest_closed_to(asker, path)).transpose()?.flatten();
        if let Some(nearest) = closed {
            let decision = self.decision(&self.who(user), permission, &nearest);
            return Ok(yson::map! { "action" => decision.action.name() }.into());
        }
        let object = self.object_at(path)?;
        // The client asks this before it sends one of the commands of tokens and passwords, and wants a
        // password if the answer is no. Who shows a token may issue another one (http-api.md 8.4 [C]).
        if permission == Permission::Administer
            && self.user_node(user).is_some_and(|node| object == Object::Node(node))
        {
            return Ok(yson::map! { "action" => "allow" }.into());
        }
        let decision = self.decision(&self.who(user), permission, &object);
        let map = yson::map! { "action" => decision.action.name() }
            .with_some("object_id", decision.object)
            .with_some("object_name", decision.object.map(|id| self.object_name(id)))
            .with_some("subject_id", decision.subject.as_deref().and_then(|name| self.subject_id(name)))
            .with_some("subject_name", decision.subject);
        let Some(columns) = columns else { return Ok(map.into()) };
        // Each as the whole table, unless an entry speaks of it alone: such are only about reading.
        let closed = match permission {
            Permission::Read => self.closed_columns(&self.who(user), &object),
            _ => BTreeSet::new(),
        };
        let of_column = |column: &String| {
            let is_open = decision.action == Action::Allow && !closed.contains(column);
            yson::map! {"action" => if is_open { Action::Allow } else { Action::Deny }.name()}
        };
        let columns: Vec<Map> = columns.iter().map(of_column).collect();
        Ok(map.with_some("columns", Some(columns)).into())
    }

    fn subject_id(&self, name: &str) -> Option<ObjectId> {
        self.user_node(name).or_else(|| self.tree.group(name))
    }

    fn object_name(&self, id: ObjectId) -> String {
        match self.pools.by_id(id) {
            Some((tree, Some(pool))) => self.pools.path(tree, pool),
            Some((tree, None)) => format!("//sys/pool_trees/{tree}"),
            None if self.is_operation(OperationId(id.0)) => self.operation_path(OperationId(id.0)),
            None => self.tree.path(id),
        }
    }

    fn is_operation(&self, id: OperationId) -> bool {
        self.operations.contains_key(&id) || self.finished.contains(id)
    }

    /// `check_permission_by_acl`.
    pub(crate) fn check_permission_by_acl(
        &self,
        user: &str,
        permission: &str,
        acl: &Value,
    ) -> Result<Value, Failure> {
        let permission = Permission::parse(permission)?;
        self.tree.limits().check_acl(acl)?;
        let acl = Acl::given(acl)?;
        let groups = self.tree.member_of_closure(user);
        let link = cypress::AclLink { object: ObjectId::default(), acl: &acl };
        let decision = cypress::acl::decide(cypress::Subjects { user, groups: &groups }, permission, [link]);
        self.expect_user(user)?;
        let subjects = acl.0.iter().flat_map(|ace| &ace.subjects);
        let missing: std::collections::BTreeSet<&str> =
            subjects.map(String::as_str).filter(|name| !self.is_subject(name)).collect();
        let missing: Vec<&str> = missing.into_iter().collect();
        Ok(yson::map! {"action" => decision.action.name(), "missing_subjects" => missing}.into())
    }

    /// `check_operation_permission`.
    pub(crate) fn check_operation_permission(
        &self,
        user: &str,
        permission: &str,
        operation: &crate::OperationRef,
    ) -> Result<Value, Failure> {
        let permission = match permission {
            "read" => Permission::Read,
            "manage" => Permission::Manage,
            other => {
                let message = format!("Operations have permissions \"read\" and \"manage\", found {other:?}");
                return Err(Failure::new(message).with("parameter", "permission"));
            }
        };
        self.expect_user(user)?;
        let object = Object::Operation(self.find_operation(operation)?);
        let decision = self.decision(&self.who(user), permission, &object);
        Ok(yson::map! {"action" => decision.action.name()}.into())
    }
}

fn identity(user: &str, end: Option<Time>) -> Value {
    yson::map! {"user" => user}.with_some("valid_until", end).into()
}

/// The refusal of a token that has ended. Only its holder gets to see this.
fn expired(end: Time) -> Failure {
    let text = format!("Invalid credentials: the token has expired at {end}, use another one");
    Failure::coded(code::INVALID_CREDENTIALS, text).with(VALID_UNTIL, end)
}

/// Attributes of a token that ends then. It is removed some time later.
fn with_end(attributes: Map, end: Time) -> Map {
    attributes.with(VALID_UNTIL, end).with("expiration_time", end + EXPIRED_KEPT)
}

fn check_time(name: &str, time: Option<Span>) -> Result<(), Failure> {
    match time {
        Some(time) if time == Span::ZERO || time > LONGEST_TTL => {
            let text = format!("{name}: expected a time from 1 ms to 36500 d, found {} ms", time.as_millis());
            Err(Failure::new(text).with("parameter", name))
        }
        _ => Ok(()),
    }
}

fn check_sha256(name: &str, text: &str) -> Result<(), Failure> {
    if text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "Parameter \"{name}\" must be a SHA-256 digest: 64 lower-case hexadecimal digits"
    ))
    .with("parameter", name))
}
