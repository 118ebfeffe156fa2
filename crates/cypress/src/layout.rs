//! The first nodes of a tree (http-api.md 7.1), ordinary ones: mounts come from their owners.
//!
//! The layout is a wish, not a state: [`Tree::ensure_layout`] makes what is missing and leaves the
//! rest alone, so it runs at every start and a new version can add nodes to an old store.

use std::collections::BTreeMap;

use vocab::{Failure, ObjectId};
use yson::ypath::{Step, YPath};
use yson::{Map, Value};

use crate::accounts::{DEFAULT_ACCOUNT, SYSTEM_ACCOUNT};
use crate::acl::{Ace, Acl, Permission};
use crate::edit::{Committed, Context, CreateOptions, Edit};
use crate::limits::Limits;
use crate::node::{Body, Node};
use crate::resolve::Place;
use crate::tree::Tree;
use crate::types::NodeType;

/// What differs between clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// `//sys/@cluster_name`.
    pub cluster_name: String,
    /// Tree that `//sys/pools` leads to.
    pub default_pool_tree: String,
    /// `operation_link_template` of `//sys/client_config/default`, if the web page has an address.
    pub operation_link_template: Option<String>,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            cluster_name: "millpond".to_owned(),
            default_pool_tree: "physical".to_owned(),
            operation_link_template: None,
        }
    }
}

impl Tree {
    /// A tree with nothing but a root, to which [`Tree::ensure_layout`] adds the rest.
    pub fn new(context: Context<'_>, limits: Limits) -> Committed<Tree> {
        let mut tree = Tree::empty(limits);
        let done = tree.edit(context, |edit| {
            edit.plant_root();
            Ok(())
        });
        match done {
            Ok(done) => done.with(tree),
            Err(failure) => unreachable!("planting the root has no way to fail: {failure}"),
        }
    }

    /// Makes what is missing of the initial layout.
    pub fn ensure_layout(&mut self, context: Context<'_>, layout: &Layout) -> Result<Committed<()>, Failure> {
        self.edit(context, |edit| edit.ensure_layout(layout))
    }
}

use NodeType::*;

/// Path and type of every node; parents come first.
const NODES: &[(&str, NodeType)] = &[
    ("tmp", MapNode),
    ("home", MapNode),
    ("sys", SysNode),
    ("sys/users", UserMap),
    ("sys/users/root", User),
    ("sys/users/guest", User),
    ("sys/groups", GroupMap),
    ("sys/groups/everyone", Group),
    ("sys/groups/users", Group),
    ("sys/groups/superusers", Group),
    ("sys/groups/admins", Group),
    ("sys/accounts", AccountMap),
    ("sys/accounts/sys", Account),
    ("sys/accounts/default", Account),
    ("sys/accounts/tmp", Account),
    ("sys/accounts/intermediate", Account),
    ("sys/tokens", MapNode),
    ("sys/client_config", MapNode),
    ("sys/client_config/default", Document),
    ("sys/pool_trees", SchedulerPoolTreeMap),
    ("sys/pools", Link),
    ("sys/operations", MapNode),
    ("sys/cluster_nodes", ClusterNodeMap),
    ("sys/exec_nodes", ClusterNodeMap),
    ("sys/transactions", TransactionMap),
    ("sys/locks", LockMap),
    ("sys/scheduler", MapNode),
    ("sys/scheduler/config", Document),
    ("sys/scheduler/instances", MapNode),
    ("sys/scheduler/lock", MapNode),
    ("sys/scheduler/orchid", Orchid),
    ("sys/scheduler/user_to_default_pool", Document),
    ("sys/controller_agents", MapNode),
    ("sys/controller_agents/config", Document),
    ("sys/controller_agents/instances", MapNode),
    ("sys/estimated_creation_time", EstimatedCreationTimeMap),
];

/// The account of what is in `//sys`.
const ACCOUNT_OF_SYSTEM: &str = "sys/accounts/sys";

/// Maps that `get` from above shows as `#` (http-api.md 6.4).
const OPAQUE: &[&str] = &["sys/operations", "sys/tokens"];

fn write_all(subject: &str) -> Ace {
    use Permission::*;
    Ace::allow(subject, &[Read, Write, Remove, Create, ModifyChildren, Mount])
}

/// Access control lists that are not empty (http-api.md 8.4).
fn acls() -> BTreeMap<&'static str, Acl> {
    use Permission::*;
    let admin =
        Ace::allow("admins", &[Read, Write, Use, Administer, Create, Remove, Mount, Manage, ModifyChildren]);
    BTreeMap::from([
        ("", Acl(vec![Ace::allow("everyone", &[Read]), admin.clone()])),
        ("tmp", Acl(vec![write_all("users")])),
        ("home", Acl(vec![write_all("users")])),
        ("sys/pool_trees", Acl(vec![Ace::allow("users", &[Use])])),
        ("sys/accounts", Acl(vec![Ace::allow("users", &[Use])])),
        // Inherits nothing: users have permission to use all other accounts.
        (ACCOUNT_OF_SYSTEM, Acl(vec![Ace::allow("everyone", &[Read]), admin.clone()])),
        ("sys/operations", Acl(vec![Ace::allow("admins", &[Read, Manage])])),
    ])
}

impl Edit<'_> {
    fn plant_root(&mut self) {
        let mut root = self.new_node(ObjectId::default(), Vec::new(), MapNode, Body::Map);
        root.builtin = true;
        root.account = DEFAULT_ACCOUNT.to_owned();
        root.acl = acls().remove("").unwrap_or_default();
        self.put(root);
    }

    pub(crate) fn ensure_layout(&mut self, layout: &Layout) -> Result<(), Failure> {
        self.begin_layout();
        let acls = acls();
        self.leave_account_of_system(&acls);
        for (path, node_type) in NODES {
            let place = self.layout_place(path)?;
            if place.rest.is_empty() {
                continue;
            }
            let options =
                CreateOptions { attributes: attributes(path, layout), ..CreateOptions::new(*node_type) };
            let id = self.create(&place, &options)?;
            let acl = acls.get(path).cloned().unwrap_or_default();
            self.update_attributes(id, |node| {
                node.builtin = true;
                node.opaque = OPAQUE.contains(path);
                node.inherit_acl = *path != ACCOUNT_OF_SYSTEM;
            });
            self.change_acl(id, |own| *own = acl);
        }
        let sys = self.layout_place("sys")?.node;
        for (name, value) in [
            ("cluster_name", Value::from(layout.cluster_name.as_str())),
            ("primary_cell_tag", Value::from(1u64)),
        ] {
            if self.attribute(sys, name.as_bytes()).as_ref() != Some(&value) {
                self.update_attributes(sys, |node| drop(node.user_attributes.insert(name, value)));
            }
        }
        Ok(())
    }

    /// In release 0.1 all nodes but those of `//tmp` had the account `sys`, and users could fill it. From now on it has
    /// those in `//sys`, and the others have the account `default`. Runs once: it changes the account of the root.
    fn leave_account_of_system(&mut self, acls: &BTreeMap<&'static str, Acl>) {
        let root = self.root();
        if self.node(root).is_none_or(|root| root.account != SYSTEM_ACCOUNT) {
            return;
        }
        let of_system = |node: &Node| node.account == SYSTEM_ACCOUNT && !self.is_exempt(node.id);
        let moved: Vec<ObjectId> = self.nodes.values().filter(|node| of_system(node)).map(|n| n.id).collect();
        for id in moved {
            self.change_account(id, DEFAULT_ACCOUNT);
        }
        let account = self.layout_place(ACCOUNT_OF_SYSTEM).ok().filter(|place| place.rest.is_empty());
        let account = account.and_then(|place| self.node(place.node));
        let plain = account.filter(|node| node.inherit_acl && node.acl.0.is_empty()).map(|node| node.id);
        if let Some(id) = plain {
            self.update_attributes(id, |node| node.inherit_acl = false);
            self.change_acl(id, |own| *own = acls.get(ACCOUNT_OF_SYSTEM).cloned().unwrap_or_default());
        }
    }

    /// Walks keys, not paths: neither links nor mounts may lead the layout astray.
    fn layout_place(&self, path: &str) -> Result<Place, Failure> {
        let mut node = self.root();
        let mut keys = path.split('/');
        while let Some(key) = keys.next() {
            match self.child(node, key.as_bytes()) {
                Some(child) => node = child,
                None => {
                    let rest = std::iter::once(key).chain(keys);
                    let rest = rest.map(|k| Step::Child(k.as_bytes().to_vec())).collect();
                    return Ok(Place { node, rest });
                }
            }
        }
        Ok(Place { node, rest: Vec::new() })
    }
}

fn attributes(path: &str, layout: &Layout) -> Map {
    match path {
        "sys/pools" => {
            let target = YPath::root().child("sys").child("pool_trees").child(&layout.default_pool_tree);
            yson::map! {"target_path" => target.text()}
        }
        "sys/client_config/default" => {
            let template = layout.operation_link_template.as_deref();
            yson::map! {"value" => Map::new().with_some("operation_link_template", template)}
        }
        path if NODES.contains(&(path, Document)) => yson::map! {"value" => Map::new()},
        "sys" => yson::map! {"account" => SYSTEM_ACCOUNT},
        path if path.starts_with("tmp") => yson::map! {"account" => "tmp"},
        _ => Map::new(),
    }
}
