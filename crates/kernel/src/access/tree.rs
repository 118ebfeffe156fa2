//! Commands that change the tree or pools: what they touch, and what each of that needs.

use super::lists::{Found, Object};
use super::names::children;
use super::{Who, denied};
use crate::Kernel;
use crate::mounts::POOL_TREES;
use crate::pools::{ROOT, canonical_name, canonical_names};
use cypress::{Body, Last, Node, NodeType, Permission};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{Failure, ObjectId};
use yson::ypath::{Step, YPath};
use yson::{Map, Value};

/// Options of a pool that permission `write` is enough for (http-api.md 8.8); the others need
/// `administer`.
const USER_MANAGED: [&str; 12] = [
    "weight",
    "max_operation_count",
    "max_running_operation_count",
    "strong_guarantee_resources",
    "forbid_immediate_operations",
    "mode",
    "fifo_sort_parameters",
    "resource_limits",
    "create_ephemeral_subpools",
    "ephemeral_subpool_config",
    "abc",
    "name",
];
const EXPIRATION: [&str; 2] = ["expiration_time", "expiration_timeout"];
/// Where a new pool is to be: said at its creation, and no option.
const PLACE: [&str; 2] = ["parent_name", "pool_tree"];
/// From so many levels below a list on, all entries of it that still count do so for what is further
/// down as well: inheritance modes tell apart an object, its children, and the rest.
const SETTLED: u8 = 3;
/// To look at so many names of lists takes as long as to look at a node.
const NAMES_LIKE_A_NODE: usize = 8;

impl Kernel {
    /// May a node be put here? Over one that is there only if that may be removed.
    pub(super) fn authorize_place(&self, who: &Who, found: &Found, shown: &str) -> Result<(), Failure> {
        if found.rest.is_empty() {
            return self.authorize_remove(who, found, shown);
        }
        self.demand_children(who, &found.object, shown)
    }

    /// `create` of a node at a path. Users and groups count wherever they are.
    pub(super) fn authorize_subject(
        &self,
        who: &Who,
        node_type: NodeType,
        path: &YPath,
    ) -> Result<(), Failure> {
        if node_type.is_plain() {
            return Ok(());
        }
        let key = path.steps.last().and_then(Step::key).unwrap_or_default();
        self.refuse_making_superusers(who, &String::from_utf8_lossy(&key))?;
        self.demand(who, Permission::Administer, &Object::Node(self.tree.root()), &path.text())
    }

    /// Whoever bears this name, may he do everything?
    pub(super) fn refuse_making_superusers(&self, who: &Who, name: &str) -> Result<(), Failure> {
        match name == "superusers" || self.who(name).is_superuser() {
            true => Err(denied(who, Permission::Administer, &format!("superuser \"{name}\""), None)),
            false => Ok(()),
        }
    }

    /// Those who may do everything are changed by such only: not banned, not removed by others.
    fn refuse_touching_superusers(&self, who: &Who, id: ObjectId) -> Result<(), Failure> {
        let node = self.tree.node(id).filter(|n| matches!(n.node_type, NodeType::User | NodeType::Group));
        node.map_or(Ok(()), |n| self.refuse_making_superusers(who, &String::from_utf8_lossy(&n.key)))
    }

    /// `set`: the value has attributes of its own, and what it replaces may have children.
    pub(super) fn authorize_set(
        &self,
        who: &Who,
        found: &Found,
        value: &Value,
        force: bool,
        shown: &str,
    ) -> Result<(), Failure> {
        if let Object::Node(id) = found.object {
            self.refuse_touching_superusers(who, id)?;
        }
        let usual = match found.object {
            Object::Pool(..) | Object::Tree(_) => Permission::Administer,
            Object::Node(_) | Object::Operation(_) => Permission::Write,
        };
        let attributes = match found.rest.as_slice() {
            [Step::Attribute(name), inside @ ..] => {
                let value = inside.is_empty().then_some(value);
                return self.authorize_attribute(who, &found.object, name, value, shown);
            }
            [] => value.attributes(),
            [Step::AllAttributes] => value.as_map(),
            // Inside of a document, or a new node, whose attributes are its maker's business.
            _ => None,
        };
        if !matches!(found.rest.last(), Some(Step::Attribute(_) | Step::AllAttributes)) {
            self.authorize_expiring_nodes(who, found, value, shown)?;
            let is_document = |node: ObjectId| {
                self.tree.node(node).is_some_and(|node| matches!(node.body, Body::Document(_)))
            };
            // What is in a document becomes no node.
            match found.object {
                Object::Node(node) if is_document(node) => {}
                _ => self.authorize_payers_of_nodes(who, found, value, shown)?,
            }
        }
        let is_new_child = |node: ObjectId| {
            let is_map = self.tree.node(node).is_some_and(|node| matches!(node.body, Body::Map));
            is_map && found.rest.len() == 1 && found.rest[0].key().is_some()
        };
        match found.object {
            Object::Node(node) if is_new_child(node) => self.demand_children(who, &found.object, shown)?,
            _ => self.demand(who, usual, &found.object, shown)?,
        }
        for (name, value) in attributes.into_iter().flat_map(Map::iter) {
            self.authorize_attribute(who, &found.object, name, Some(value), shown)?;
        }
        match (&found.object, found.rest.as_slice()) {
            (Object::Node(node), []) if self.loses_children(*node, force) => {
                self.demand_of_each_below(who, Permission::Remove, *node)
            }
            _ => Ok(()),
        }
    }

    /// A list is replaced as a whole, a map if this is asked for.
    fn loses_children(&self, id: ObjectId, force: bool) -> bool {
        let node = self.tree.node(id);
        node.is_some_and(|node| matches!(node.body, Body::List(_)) || force && matches!(node.body, Body::Map))
    }

    /// One attribute, as a whole (then with its new value) or in part.
    pub(super) fn authorize_attribute(
        &self,
        who: &Who,
        object: &Object,
        name: &[u8],
        value: Option<&Value>,
        shown: &str,
    ) -> Result<(), Failure> {
        if let Object::Node(id) = object {
            self.refuse_touching_superusers(who, *id)?;
        }
        let name = canonical_name(name);
        let name = String::from_utf8_lossy(&name);
        let permission = match (&*name, object) {
            ("acl" | "inherit_acl" | "owner", _) => Permission::Administer,
            ("parent_name", Object::Pool(tree, _)) => {
                let target = self.pool_or_tree(tree, value.and_then(Value::as_str).unwrap_or(ROOT));
                self.demand_children(who, &target, shown)?;
                self.demand_children(who, &self.parent_of(object), shown)?;
                Permission::Write
            }
            (name, Object::Pool(..)) if USER_MANAGED.contains(&name) => Permission::Write,
            (_, Object::Pool(..) | Object::Tree(_)) => Permission::Administer,
            _ => Permission::Write,
        };
        self.demand(who, permission, object, shown)?;
        match (&*name, object) {
            // Its nodes take what the account has.
            ("account", Object::Node(_)) => self.demand_account(who, value),
            // What is removed later is removed by whoever says when.
            ("expiration_time" | "expiration_timeout", Object::Node(id))
                if value.is_some_and(|v| !v.is_entity()) =>
            {
                let found = Found { object: Object::Node(*id), rest: Vec::new() };
                self.authorize_remove(who, &found, shown)
            }
            _ => Ok(()),
        }
    }

    /// Permission `use` of the account that a node is to be charged to. One that does not exist is refused elsewhere.
    pub(super) fn demand_account(&self, who: &Who, account: Option<&Value>) -> Result<(), Failure> {
        let Some(name) = account.and_then(Value::as_str) else { return Ok(()) };
        match self.tree.trunk().child(self.system_map(b"accounts"), name.as_bytes()) {
            Some(node) => {
                self.demand(who, Permission::Use, &Object::Node(node), &format!("account \"{name}\""))
            }
            None => Ok(()),
        }
    }

    /// What is made to expire is removed for whoever makes it: he needs to be one who may remove what is there.
    pub(super) fn authorize_expiring(
        &self,
        who: &Who,
        found: &Found,
        attributes: &Map,
        shown: &str,
    ) -> Result<(), Failure> {
        match EXPIRATION.iter().any(|name| attributes.contains(name)) {
            true => self.demand(who, Permission::Remove, &found.object, shown),
            false => Ok(()),
        }
    }

    /// The same of a value that becomes nodes.
    fn authorize_expiring_nodes(
        &self,
        who: &Who,
        found: &Found,
        value: &Value,
        shown: &str,
    ) -> Result<(), Failure> {
        value.attributes().map_or(Ok(()), |map| self.authorize_expiring(who, found, map, shown))?;
        children(value).try_for_each(|child| self.authorize_expiring_nodes(who, found, child, shown))
    }

    /// What a new node is charged to: an account that the user may use, and the user. Another owner would pay for it
    /// without having been asked.
    pub(super) fn authorize_payer(
        &self,
        who: &Who,
        found: &Found,
        attributes: &Map,
        shown: &str,
    ) -> Result<(), Failure> {
        self.demand_account(who, attributes.get("account"))?;
        match attributes.get("owner").and_then(Value::as_str) {
            Some(owner) if owner != who.user => {
                self.demand(who, Permission::Administer, &found.object, shown)
            }
            _ => Ok(()),
        }
    }

    /// The same of a value that becomes nodes.
    fn authorize_payers_of_nodes(
        &self,
        who: &Who,
        found: &Found,
        value: &Value,
        shown: &str,
    ) -> Result<(), Failure> {
        value.attributes().map_or(Ok(()), |map| self.authorize_payer(who, found, map, shown))?;
        children(value).try_for_each(|child| self.authorize_payers_of_nodes(who, found, child, shown))
    }

    /// Does somebody else own a node of a subtree?
    pub(super) fn has_other_owners(&self, who: &Who, top: ObjectId) -> bool {
        let mut nodes = self.tree.subtree(top).into_iter().filter_map(|id| self.tree.node(id));
        nodes.any(|node| node.owner != who.user)
    }

    /// Accounts that the copy of a subtree keeps.
    pub(super) fn demand_accounts_below(&self, who: &Who, top: ObjectId) -> Result<(), Failure> {
        let nodes = self.tree.subtree(top).into_iter().filter_map(|id| self.tree.node(id));
        let accounts: BTreeSet<&str> = nodes.map(|node| node.account.as_str()).collect();
        accounts.into_iter().try_for_each(|account| self.demand_account(who, Some(&account.into())))
    }

    pub(super) fn authorize_remove(&self, who: &Who, found: &Found, shown: &str) -> Result<(), Failure> {
        if let ([Step::AllChildren], Object::Node(node)) = (found.rest.as_slice(), &found.object) {
            self.demand_children(who, &found.object, shown)?;
            return self.demand_of_each_below(who, Permission::Remove, *node);
        }
        if !found.rest.is_empty() {
            return self.authorize_set(who, found, &Value::Entity, false, shown);
        }
        self.demand_children(who, &self.parent_of(&found.object), shown)?;
        let Object::Node(node) = found.object else { return Ok(()) };
        self.refuse_touching_superusers(who, node)?;
        self.demand(who, Permission::Remove, &found.object, shown)?;
        self.demand_below(who, Permission::Remove, node)
    }

    /// Objects that have no path of their own when they are made. What may not be set later may not be
    /// given at once either.
    pub(super) fn authorize_object(
        &self,
        who: &Who,
        object_type: &str,
        attributes: &Map,
    ) -> Result<(), Failure> {
        let shown = format!("new {object_type}");
        let (object, permission) = match object_type {
            "scheduler_pool" => {
                let attributes = canonical_names(attributes.clone())?;
                let text = |name: &str| attributes.get(name).and_then(Value::as_str);
                let tree = text("pool_tree").map_or_else(|| self.default_tree(), str::to_owned);
                let parent = self.pool_or_tree(&tree, text("parent_name").unwrap_or(ROOT));
                let plain = |name: &String| [&USER_MANAGED[..], &PLACE].concat().contains(&name.as_str());
                if !attributes.key_strings().all(|name| plain(&name)) {
                    self.demand(who, Permission::Administer, &parent, &shown)?;
                }
                return self.demand_children(who, &parent, &shown);
            }
            "scheduler_pool_tree" => (self.mount_object(POOL_TREES), Permission::Administer),
            "user" | "group" => {
                let name = attributes.get("name").and_then(Value::as_str).unwrap_or_default();
                self.refuse_making_superusers(who, name)?;
                let map: &[u8] = if object_type == "user" { b"users" } else { b"groups" };
                (Object::Node(self.system_map(map)), Permission::Write)
            }
            "account" => (Object::Node(self.system_map(b"accounts")), Permission::Write),
            _ => (Object::Node(self.tree.root()), Permission::Administer),
        };
        self.demand(who, permission, &object, &shown)
    }

    /// The same permission, that the node itself gives, for everything below it.
    pub(super) fn demand_below(
        &self,
        who: &Who,
        permission: Permission,
        top: ObjectId,
    ) -> Result<(), Failure> {
        self.demand_from(who, permission, top, self.levels_below_list(top))
    }

    /// A permission that the node itself need not give for everything below it.
    fn demand_of_each_below(&self, who: &Who, permission: Permission, top: ObjectId) -> Result<(), Failure> {
        self.demand_from(who, permission, top, 0)
    }

    fn demand_from(
        &self,
        who: &Who,
        permission: Permission,
        top: ObjectId,
        levels: u8,
    ) -> Result<(), Failure> {
        let mut decisions = Decisions::new(self, who, permission, top);
        self.walk_below(top, levels, &mut |node, place| {
            decisions.count_node()?;
            if permission == Permission::Remove {
                self.refuse_touching_superusers(who, node.id)?;
            }
            if place.may_differ() && !decisions.allow(node.id, place)? {
                self.demand(who, permission, &Object::Node(node.id), &self.tree.path(top))?;
            }
            Ok(true)
        })
    }

    /// Names in the lists that count for a node.
    fn names_in_lists(&self, node: ObjectId) -> usize {
        let entries = self.tree.acl_chain(node).flat_map(|link| &link.acl.0);
        entries.map(|ace| 1 + ace.subjects.len() + ace.columns.as_ref().map_or(0, Vec::len)).sum()
    }

    /// Refuses a command that would have to look at the permissions of too many nodes, or at too long lists.
    fn check_walk(&self, count: usize, top: ObjectId) -> Result<(), Failure> {
        let limit = self.tree.limits().max_values_per_read;
        if count <= limit {
            return Ok(());
        }
        let path = self.tree.path(top);
        let message = format!(
            "There are more than {limit} nodes below {path} whose permissions are looked at, which is the limit \
             (max_values_per_read; every {NAMES_LIKE_A_NODE} names in different lists count like a node): do it in parts"
        );
        Err(Failure::new(message)
            .with("path", path)
            .with("limit", limit)
            .with("option", "max_values_per_read"))
    }

    /// What a recursive `get` of a node shows as `#`, as it does with what is opaque.
    pub(super) fn closed_below(&self, who: &Who, top: ObjectId) -> Result<BTreeSet<ObjectId>, Failure> {
        self.closed(who, top, |node| !self.tree.is_opaque(node))
    }

    /// Children whose attributes a `list` leaves out.
    pub(super) fn closed_children(&self, who: &Who, top: ObjectId) -> Result<BTreeSet<ObjectId>, Failure> {
        self.closed(who, top, |_| false)
    }

    /// Links of which a `get` or `list` shows the attribute `broken` though this user may not look where they lead.
    pub(crate) fn blind_links(
        &self,
        who: Option<&Who>,
        path: &YPath,
        attributes: &[String],
        deep: bool,
    ) -> Result<BTreeSet<ObjectId>, Failure> {
        let mut blind = BTreeSet::new();
        let Some(who) = who.filter(|who| !who.is_superuser()) else { return Ok(blind) };
        let Ok(Found { object: Object::Node(top), rest }) = self.find(path, Last::Follow) else {
            return Ok(blind);
        };
        let asked = rest.iter().any(|step| matches!(step, Step::Attribute(_) | Step::AllAttributes));
        if !asked && !attributes.iter().any(|name| name == "broken") {
            return Ok(blind);
        }
        let mut count = 0;
        let mut look = |node: &Node| {
            count += 1;
            if node.node_type == NodeType::Link {
                // Each has a target of its own.
                count += self.names_behind(node.id) / NAMES_LIKE_A_NODE;
                self.check_walk(count, top)?;
                if !self.may_look_behind(who, node.id) {
                    blind.insert(node.id);
                }
            }
            self.check_walk(count, top)
        };
        self.tree.node(top).map_or(Ok(()), &mut look)?;
        if !asked {
            self.walk_below(top, self.levels_below_list(top), &mut |node, _| {
                look(node)?;
                Ok(deep && !self.tree.is_opaque(node))
            })?;
        }
        Ok(blind)
    }

    fn names_behind(&self, link: ObjectId) -> usize {
        let path = YPath { root: yson::ypath::Root::Object(link.to_string()), ..YPath::default() };
        match self.find(&path, Last::Follow) {
            Ok(Found { object: Object::Node(node), .. }) => self.names_in_lists(node),
            _ => 0,
        }
    }

    fn may_look_behind(&self, who: &Who, link: ObjectId) -> bool {
        let root = yson::ypath::Root::Object(link.to_string());
        let path = YPath { attributes: Map::new(), root, steps: Vec::new() };
        // One that leads nowhere at all tells nothing.
        let target = self.find(&path, Last::Follow);
        target.is_ok_and(|found| self.decision(who, Permission::Read, &found.object).is_allowed())
    }

    fn closed(
        &self,
        who: &Who,
        top: ObjectId,
        descends: impl Fn(&Node) -> bool,
    ) -> Result<BTreeSet<ObjectId>, Failure> {
        let mut closed = BTreeSet::new();
        let mut decisions = Decisions::new(self, who, Permission::Read, top);
        self.walk_below(top, self.levels_below_list(top), &mut |node, place| {
            decisions.count_node()?;
            if place.may_differ() && !decisions.allow(node.id, place)? {
                closed.insert(node.id);
                return Ok(false);
            }
            Ok(descends(node))
        })?;
        Ok(closed)
    }

    /// Columns of tables at and below a node that are closed to a user: of the first such table.
    pub(super) fn closed_columns_below(&self, who: &Who, top: ObjectId) -> Result<BTreeSet<String>, Failure> {
        let is_table = |node: &Node| node.node_type == NodeType::Table;
        let of = |node: &Node| self.closed_columns(who, &Object::Node(node.id));
        let mut found = self.tree.node(top).filter(|node| is_table(node)).map(of).unwrap_or_default();
        let (mut seen, mut count) = (BTreeSet::new(), 0);
        self.walk_below(top, self.levels_below_list(top), &mut |node, place| {
            count += 1;
            // Nodes that the same lists count for in the same way have the same closed columns.
            if is_table(node) && found.is_empty() && seen.insert(place) {
                count += self.names_in_lists(node.id) / NAMES_LIKE_A_NODE;
                self.check_walk(count, top)?;
                found = of(node);
            }
            self.check_walk(count, top)?;
            Ok(found.is_empty())
        })?;
        Ok(found)
    }

    /// Shows every node below another one, with its place below the nearest list. What is below it comes as well if the
    /// answer is yes.
    fn walk_below(
        &self,
        top: ObjectId,
        levels: u8,
        enter: &mut dyn FnMut(&Node, PlaceBelowList) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        // Hardly ever: then nothing is asked of single nodes.
        let secrets = self.is_secret(top) || self.has_secrets_below(top);
        // The list above `top`, if it has none itself, has no other nodes than these.
        let mut open = vec![(top, levels, top)];
        while let Some((parent, above, list_above)) = open.pop() {
            for id in self.tree.child_ids(parent) {
                let Some(node) = self.tree.node(id) else { continue };
                let (levels, list) = if has_own_list(node) || secrets && self.is_secret(node.id) {
                    (0, id)
                } else {
                    (SETTLED.min(above + 1), list_above)
                };
                if enter(node, PlaceBelowList { list, levels })? {
                    open.push((id, levels, list));
                }
            }
        }
        Ok(())
    }

    fn levels_below_list(&self, id: ObjectId) -> u8 {
        let mut id = id;
        for levels in 0..SETTLED {
            match self.tree.node(id) {
                Some(node) if !self.has_list(node) => id = node.parent,
                _ => return levels,
            }
        }
        SETTLED
    }

    fn has_list(&self, node: &Node) -> bool {
        has_own_list(node) || self.is_secret(node.id)
    }
}

/// The nearest node with a list, and the levels from there. All nodes with the same place have the same decisions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PlaceBelowList {
    list: ObjectId,
    levels: u8,
}

impl PlaceBelowList {
    /// May the lists say something else of it than of the node above?
    fn may_differ(self) -> bool {
        self.levels < SETTLED
    }
}

/// Decisions about nodes below another one: one for each place below a list, since children may be many and lists long.
struct Decisions<'a> {
    kernel: &'a Kernel,
    who: &'a Who,
    permission: Permission,
    top: ObjectId,
    known: BTreeMap<PlaceBelowList, bool>,
    /// Nodes, and names in lists that were looked at.
    count: usize,
}

impl<'a> Decisions<'a> {
    fn new(kernel: &'a Kernel, who: &'a Who, permission: Permission, top: ObjectId) -> Decisions<'a> {
        Decisions { kernel, who, permission, top, known: BTreeMap::new(), count: 0 }
    }

    fn count_node(&mut self) -> Result<(), Failure> {
        self.count += 1;
        self.kernel.check_walk(self.count, self.top)
    }

    /// Is it allowed on a node at this place?
    fn allow(&mut self, node: ObjectId, place: PlaceBelowList) -> Result<bool, Failure> {
        if let Some(known) = self.known.get(&place) {
            return Ok(*known);
        }
        self.count += self.kernel.names_in_lists(node) / NAMES_LIKE_A_NODE;
        self.kernel.check_walk(self.count, self.top)?;
        let decision = self.kernel.decision(self.who, self.permission, &Object::Node(node));
        self.known.insert(place, decision.is_allowed());
        Ok(decision.is_allowed())
    }
}

fn has_own_list(node: &Node) -> bool {
    !node.inherit_acl || !node.acl.0.is_empty()
}
