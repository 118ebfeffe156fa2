//! Changing the tree: any number of commands, all or nothing.
//!
//! An [`Edit`] remembers the tree as it was, and the first old version of every node that it touches.
//! An error takes all back; success turns what is different into [`Change`]s. Commands are in the
//! modules below; each of them is itself all-or-nothing, so a caller may try another way after an
//! error and go on.

mod content;
mod copy;
mod create;
mod discard;
mod expire;
pub(crate) mod journal;
mod remove;
mod set;
mod set_attribute;

use std::ops::Deref;

use vocab::{Failure, GuidGenerator, ObjectId, Time};
use yson::Bytes;
use yson::ypath::Step;

use crate::accounts::{Payer, Usage, acl_bytes, attribute_bytes};
use crate::acl::Acl;
use crate::edit::journal::Journal;
use crate::expiration::Expiration;
use crate::failures::odd_step_after;
use crate::node::{Body, Node};
use crate::record::Change;
use crate::resolve::Place;
use crate::tree::Tree;
use crate::types::NodeType;
use crate::walk::insertion_point;

pub use copy::CopyOptions;
pub use create::{CreateOptions, LinkOptions};
pub use remove::RemoveOptions;
pub use set::SetOptions;

/// Who edits, when, and where ids come from.
#[derive(Debug)]
pub struct Context<'a> {
    /// Time of the change.
    pub now: Time,
    /// Owner of new nodes.
    pub user: &'a str,
    /// Source of ids.
    pub ids: &'a mut GuidGenerator,
}

/// An edit that went well.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "the changes are only in memory until they are committed"]
pub struct Committed<T> {
    /// Result of the closure.
    pub value: T,
    /// Records of nodes to write; empty if nothing changed.
    pub changes: Vec<Change>,
    /// Records of transactions to write.
    pub transactions: Vec<Change>,
    /// Transactions that are gone: all their records go, whose keys begin with their ids.
    pub ended: Vec<ObjectId>,
    /// Blobs that no node refers to any more.
    pub released_blobs: Vec<u64>,
}

impl<T> Committed<T> {
    /// A result with no changes yet.
    pub(crate) fn of(value: T) -> Committed<T> {
        Committed {
            value,
            changes: Vec::new(),
            transactions: Vec::new(),
            ended: Vec::new(),
            released_blobs: Vec::new(),
        }
    }

    /// The same changes with another result.
    pub fn with<U>(self, value: U) -> Committed<U> {
        let Committed { value: _, changes, transactions, ended, released_blobs } = self;
        Committed { value, changes, transactions, ended, released_blobs }
    }
}

/// A tree under change; reads see the changes made so far.
#[derive(Debug)]
pub struct Edit<'a> {
    tree: &'a mut Tree,
    context: Context<'a>,
    journal: Journal,
    /// Makes what every tree has, whatever the limits of commands.
    makes_layout: bool,
}

impl Deref for Edit<'_> {
    type Target = Tree;
    fn deref(&self) -> &Tree {
        self.tree
    }
}

impl Tree {
    /// Runs commands; an error of the closure leaves the tree as it was.
    pub fn edit<T>(
        &mut self,
        context: Context<'_>,
        commands: impl FnOnce(&mut Edit<'_>) -> Result<T, Failure>,
    ) -> Result<Committed<T>, Failure> {
        let (value, journal) = self.run(context, commands)?;
        Ok(journal.settle(self, value))
    }

    /// Runs commands and gives back what they did, neither counted nor written yet.
    pub(crate) fn run<T>(
        &mut self,
        context: Context<'_>,
        commands: impl FnOnce(&mut Edit<'_>) -> Result<T, Failure>,
    ) -> Result<(T, Journal), Failure> {
        // Trees share what is the same: remembering the whole of it costs nothing.
        let before = self.clone();
        let mut edit = Edit { tree: self, context, journal: Journal::default(), makes_layout: false };
        match commands(&mut edit) {
            Ok(value) => Ok((value, edit.journal)),
            Err(failure) => {
                *edit.tree = before;
                Err(failure)
            }
        }
    }
}

impl Edit<'_> {
    /// Runs commands all-or-nothing inside the edit.
    pub fn attempt<T>(
        &mut self,
        commands: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let before = self.tree.clone();
        let result = commands(self);
        if result.is_err() {
            // What the journal has of it is not different, so it does not matter.
            *self.tree = before;
        }
        result
    }

    /// Number of this edit, stamped on everything it touches.
    pub(crate) fn stamp(&self) -> u64 {
        self.tree.revision + 1
    }

    /// From here on nodes of the layout are made.
    pub(crate) fn begin_layout(&mut self) {
        self.makes_layout = true;
    }

    fn remember(&mut self, id: ObjectId) {
        self.journal.remember(self.tree, id);
    }

    /// Changes what is in a node, but nothing that the indices of the tree are made from.
    fn update(&mut self, id: ObjectId, change: impl FnOnce(&mut Node)) {
        self.remember(id);
        let now = self.context.now;
        self.tree.change_node(id, |node| {
            node.modification_time = now;
            change(node);
        });
    }

    fn update_content(&mut self, id: ObjectId, change: impl FnOnce(&mut Node)) {
        let stamp = self.stamp();
        self.update(id, |node| {
            node.content_revision = stamp;
            change(node);
        });
    }

    pub(crate) fn update_attributes(&mut self, id: ObjectId, change: impl FnOnce(&mut Node)) {
        let stamp = self.stamp();
        self.update(id, |node| {
            node.attribute_revision = stamp;
            change(node);
        });
    }

    /// The values of a node have got so many bytes more: its account is charged for them.
    fn charge_values(&mut self, id: ObjectId, more: i64) {
        let Some(node) = self.tree.node(id).filter(|node| node.node_type.is_plain()) else { return };
        let payer = Payer::of(node);
        self.tree.charge(&payer, Usage::of_memory(more));
    }

    /// Changes the access control list of a node.
    pub(crate) fn change_acl(&mut self, id: ObjectId, change: impl FnOnce(&mut Acl)) {
        let bytes = |tree: &Tree| tree.node(id).map_or(0, |node| acl_bytes(&node.acl));
        let before = bytes(self.tree);
        self.update_attributes(id, |node| change(&mut node.acl));
        self.charge_values(id, bytes(self.tree) - before);
    }

    /// Sets or removes an attribute of users.
    fn change_user_attribute(&mut self, id: ObjectId, name: &[u8], value: Option<yson::Value>) {
        let Some(node) = self.tree.node(id) else { return };
        let before = attribute_bytes(name, node.user_attributes.get(name));
        let after = attribute_bytes(name, value.as_ref());
        self.update_attributes(id, |node| match value {
            Some(value) => drop(node.user_attributes.insert(name, value)),
            None => drop(node.user_attributes.remove(name)),
        });
        self.charge_values(id, after - before);
    }

    /// Takes a node out; what is below it is the caller's business.
    pub(crate) fn take(&mut self, id: ObjectId) {
        self.remember(id);
        self.tree.take_node(id);
    }

    /// Puts a new or changed node in; its parent is the caller's business.
    pub(crate) fn put(&mut self, node: Node) {
        self.remember(node.id);
        self.tree.put_node(node);
    }

    /// A new node that is not in the tree yet.
    pub(crate) fn new_node(&mut self, parent: ObjectId, key: Bytes, node_type: NodeType, body: Body) -> Node {
        let account = self.node(parent).map(|p| p.account.clone()).unwrap_or_default();
        Node {
            id: ObjectId(self.context.ids.next(node_type.code())),
            node_type,
            parent,
            key,
            body,
            user_attributes: yson::Map::new(),
            owner: self.context.user.to_owned(),
            account,
            acl: Acl::default(),
            inherit_acl: true,
            opaque: false,
            builtin: false,
            expiration: Expiration::default(),
            creation_time: self.context.now,
            modification_time: self.context.now,
            attribute_revision: self.stamp(),
            content_revision: self.stamp(),
        }
    }

    /// Finds the slot that a place with missing steps stands for, making maps for the steps before
    /// the last one if `recursive`.
    fn slot(&mut self, place: &Place, recursive: bool) -> Result<Slot, Failure> {
        let mut parent = place.node;
        let Some((last, way)) = place.rest.split_last() else {
            return Err(crate::failures::already_exists(&self.path(parent)));
        };
        if !way.is_empty() && !recursive {
            return Err(self.missing(place));
        }
        for (done, step) in way.iter().enumerate() {
            let here = Place { node: parent, rest: place.rest[done..].to_vec() };
            let slot = self.slot_at(&here, step)?;
            parent = self.fill(slot, NodeType::MapNode, Body::Map)?;
        }
        self.slot_at(&Place { node: parent, rest: vec![last.clone()] }, last)
    }

    fn slot_at(&self, place: &Place, step: &Step) -> Result<Slot, Failure> {
        let node = self.expect_node(place.node)?;
        let parent = node.id;
        if matches!(step, Step::Attribute(_) | Step::AllAttributes) {
            return Err(odd_step_after(&self.path(parent), step));
        }
        match &node.body {
            Body::Map => {
                let key = step.key().ok_or_else(|| self.missing(place))?;
                Ok(Slot { parent, key: key.into_owned(), index: 0 })
            }
            Body::List(items) => match insertion_point(step, items.len(), &self.path(parent)) {
                Some(index) => Ok(Slot { parent, key: Bytes::new(), index: index? }),
                None => Err(self.missing(place)),
            },
            _ => Err(self.missing(place)),
        }
    }

    /// Makes a node in a slot.
    fn fill(&mut self, slot: Slot, node_type: NodeType, body: Body) -> Result<ObjectId, Failure> {
        let node = self.new_node(slot.parent, slot.key.clone(), node_type, body);
        self.attach(slot, node)
    }

    /// Puts a ready node into a slot, within the limits.
    fn attach(&mut self, slot: Slot, mut node: Node) -> Result<ObjectId, Failure> {
        let Slot { parent, key, index } = slot;
        if !self.makes_layout {
            self.limits.check_request(self.journal.len() + 1)?;
        }
        let path = || self.path(parent);
        let is_list = matches!(self.expect_node(parent)?.body, Body::List(_));
        if !is_list {
            self.limits.check_key(&key, "a key of a map node")?;
            // A place that was resolved before an earlier command of this edit may be taken by now.
            if let Some(taken) = self.child(parent, &key) {
                return Err(crate::failures::already_exists(&self.path(taken)));
            }
        }
        self.check_company(parent, node.node_type)?;
        self.limits.check_child_count(self.child_count(parent) + 1, path)?;
        self.limits.check_depth(self.depth(parent) + 1, path)?;
        let id = node.id;
        (node.parent, node.key) = (parent, key);
        self.put(node);
        self.update_content(parent, |node| {
            if let Body::List(items) = &mut node.body {
                items.insert(index.min(items.len()), id);
            }
        });
        Ok(id)
    }

    /// Users, groups and accounts are in the map of their kind, where they are looked for, and nothing else is.
    fn check_company(&self, parent: ObjectId, node_type: NodeType) -> Result<(), Failure> {
        let holds = self.expect_node(parent)?.node_type.kind_of_children();
        if holds == Some(node_type) || holds.is_none() && !node_type.is_subject() {
            return Ok(());
        }
        let path = self.path(parent);
        let message = match holds {
            Some(kind) => format!("{path} holds objects of type \"{kind}\" alone, found \"{node_type}\""),
            None => {
                format!("An object of type \"{node_type}\" cannot be in {path}: create it without \"path\"")
            }
        };
        Err(Failure::new(message).with("path", path))
    }

    /// The slot that an existing node is in, and is free after its removal.
    fn slot_of(&self, id: ObjectId) -> Result<Slot, Failure> {
        let node = self.expect_node(id)?;
        let index = match self.node(node.parent).map(|p| &p.body) {
            Some(Body::List(items)) => items.iter().position(|i| *i == id).unwrap_or(items.len()),
            _ => 0,
        };
        Ok(Slot { parent: node.parent, key: node.key.clone(), index })
    }
}

/// Where a new node goes: a key of a map, or a place among the items of a list.
#[derive(Clone, Debug)]
struct Slot {
    parent: ObjectId,
    key: Bytes,
    index: usize,
}
