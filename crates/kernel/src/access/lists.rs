//! What has an access control list, where a path leads, and what the lists say (http-api.md 8.4).

use super::Who;
use crate::Kernel;
use crate::mounts::{OPERATIONS, POOL_TREES};
use crate::pools::ROOT;
use cypress::acl::{decide, effective};
use cypress::{Ace, Acl, AclLink, Action, Decision, Last, Permission, Resolved};
use vocab::{Failure, ObjectId, OperationId};
use yson::Value;
use yson::ypath::{Step, YPath};

/// Something with an access control list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Object {
    Node(ObjectId),
    Tree(String),
    /// Tree and name.
    Pool(String, String),
    Operation(OperationId),
}

/// Where a path leads: the deepest thing that exists, and what is left.
pub(super) struct Found {
    pub object: Object,
    pub rest: Vec<Step>,
}

impl Kernel {
    /// What the lists say about this user, permission and object.
    pub(crate) fn decision(&self, who: &Who, permission: Permission, object: &Object) -> Decision {
        if let Object::Node(node) = object
            && self.is_secret(*node)
            && !who.is_superuser()
        {
            return Decision { action: Action::Deny, object: None, subject: None };
        }
        if let Object::Node(node) = object {
            return decide(who.subjects(), permission, self.tree.acl_chain(*node));
        }
        let chain = self.acl_chain(object);
        decide(who.subjects(), permission, chain.iter().map(|(object, acl)| AclLink { object: *object, acl }))
    }

    /// Lists that count for an object, nearest first.
    fn acl_chain(&self, object: &Object) -> Vec<(ObjectId, Acl)> {
        let of_node = |node: ObjectId| self.tree.acl_chain(node).map(|link| (link.object, link.acl.clone()));
        match object {
            Object::Node(node) => of_node(*node).collect(),
            Object::Tree(tree) => self.chain_above_pools(tree).collect(),
            Object::Pool(tree, pool) => {
                let mut chain = Vec::new();
                let mut name = pool.as_str();
                while let Some(pool) = self.pools.pool(tree, name) {
                    chain.push((pool.id, read_acl(&pool.acl)));
                    if !pool.inherit_acl {
                        return chain;
                    }
                    name = &pool.parent;
                }
                chain.extend(self.chain_above_pools(tree));
                chain
            }
            Object::Operation(id) => {
                let (acl, owners) = match (self.operations.get(id), self.finished.get(*id)) {
                    (Some(o), _) => (o.acl.clone(), o.owners.clone()),
                    (None, Some(summary)) => (summary.acl.to_vec(), summary.owners.to_vec()),
                    (None, None) => return Vec::new(),
                };
                let mut acl = read_acl(&acl);
                let owners = owners.iter().filter_map(Value::as_str);
                acl.0.extend(owners.map(|o| Ace::allow(o, &[Permission::Read, Permission::Manage])));
                // Only the list of the map itself: what everybody may read of the tree is not meant.
                let map = self.mount_node(OPERATIONS);
                let of_all = self.tree.node(map).map(|node| (map, node.acl.clone()));
                std::iter::once((ObjectId(id.0), acl)).chain(of_all).collect()
            }
        }
    }

    /// `effective_acl`: the entries that count for an object, nearest first, in the form they have there.
    pub(crate) fn effective_acl(&self, object: &Object) -> Value {
        let chain = self.acl_chain(object);
        let links = chain.iter().map(|(object, acl)| AclLink { object: *object, acl });
        let entries =
            effective(links).map(|(_, ace, mode)| Ace { inheritance_mode: mode, ..ace.clone() }.to_value());
        Value::List(entries.collect())
    }

    fn chain_above_pools(&self, tree: &str) -> impl Iterator<Item = (ObjectId, Acl)> {
        let tree = self.pools.trees.get(tree).map(|tree| (tree.id, Acl::default()));
        let above = self.tree.acl_chain(self.mount_node(POOL_TREES));
        tree.into_iter().chain(above.map(|link| (link.object, link.acl.clone())))
    }

    /// The object that a path means, for `check_permission`. Operations have lists of their own, though to look at
    /// them in the tree takes no more than to look at the map that they are in.
    pub(crate) fn object_at(&self, path: &YPath) -> Result<Object, Failure> {
        if let Some(operation) = self.operation_named(path)? {
            return Ok(Object::Operation(operation));
        }
        let found = self.find(path, Last::Follow)?;
        match found.rest.first() {
            None | Some(Step::Attribute(_) | Step::AllAttributes) => Ok(found.object),
            Some(_) => match self.tree.resolve(path, Last::Follow)? {
                Resolved::Local(place) => Err(self.tree.missing(&place)),
                _ => Ok(found.object),
            },
        }
    }

    fn operation_named(&self, path: &YPath) -> Result<Option<OperationId>, Failure> {
        let mounted = match self.tree.resolve(path, Last::Follow)? {
            Resolved::Local(_) => return Ok(None),
            Resolved::Mount(mounted) => mounted,
            Resolved::Foreign(foreign) => self.foreign_mount(&foreign)?,
        };
        if mounted.mount == OPERATIONS { self.operation_at(&mounted) } else { Ok(None) }
    }

    /// The deepest thing on the way of a path, if this user may not read it.
    pub(crate) fn nearest_closed_to(&self, user: &str, path: &YPath) -> Result<Option<Object>, Failure> {
        if !self.config.access_control {
            return Ok(None);
        }
        let who = self.who(user);
        let nearest = self.find_as(&who, path, Last::Follow)?.object;
        let may_look = self.decision(&who, Permission::Read, &nearest).is_allowed();
        Ok(if may_look { None } else { Some(nearest) })
    }

    pub(super) fn find(&self, path: &YPath, last: Last) -> Result<Found, Failure> {
        let mounted = match self.tree.resolve(path, last)? {
            Resolved::Local(place) => {
                return Ok(Found { object: Object::Node(place.node), rest: place.rest });
            }
            Resolved::Mount(mounted) => mounted,
            Resolved::Foreign(foreign) => self.foreign_mount(&foreign)?,
        };
        if mounted.mount != POOL_TREES {
            return Ok(Found { object: Object::Node(mounted.node), rest: mounted.rest });
        }
        let ((tree, pool), rest) = self.pool_place(&mounted.rest)?;
        let object = match (tree, pool) {
            (Some(tree), Some(pool)) => Object::Pool(tree, pool),
            (Some(tree), None) => Object::Tree(tree),
            (None, _) => Object::Node(mounted.node),
        };
        Ok(Found { object, rest })
    }

    pub(crate) fn pool_or_tree(&self, tree: &str, pool: &str) -> Object {
        match pool {
            ROOT => Object::Tree(tree.to_owned()),
            pool => Object::Pool(tree.to_owned(), pool.to_owned()),
        }
    }

    pub(super) fn mount_object(&self, mount: cypress::MountId) -> Object {
        Object::Node(self.mount_node(mount))
    }

    /// What an object is in.
    pub(super) fn parent_of(&self, object: &Object) -> Object {
        match object {
            Object::Node(node) => Object::Node(self.tree.node(*node).map(|n| n.parent).unwrap_or_default()),
            Object::Tree(_) => self.mount_object(POOL_TREES),
            Object::Pool(tree, pool) => match self.pools.pool(tree, pool) {
                Some(pool) => self.pool_or_tree(tree, &pool.parent),
                None => Object::Tree(tree.clone()),
            },
            Object::Operation(_) => self.mount_object(OPERATIONS),
        }
    }
}

/// A stored list; what cannot be read allows nothing.
fn read_acl(list: &[Value]) -> Acl {
    Acl::parse(&Value::List(list.to_vec())).unwrap_or_default()
}
