//! `copy` and `move` (http-api.md 8.1).

use std::collections::BTreeMap;

use vocab::{Failure, ObjectId};

use super::{Edit, Slot};
use crate::acl::Acl;
use crate::node::Body;
use crate::resolve::Place;
use crate::tree::Tree;

/// Options of `copy` and `move`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyOptions {
    /// Make missing parents of the destination.
    pub recursive: bool,
    /// Replace what is at the destination.
    pub force: bool,
    /// A node of the same type at the destination is fine (`copy` only).
    pub ignore_existing: bool,
    /// Keep the account instead of taking that of the new parent.
    pub preserve_account: bool,
    /// Keep `acl` and `inherit_acl`.
    pub preserve_acl: bool,
    /// Keep the owner.
    pub preserve_owner: bool,
    /// Keep the time of creation.
    pub preserve_creation_time: bool,
    /// Keep the time of modification.
    pub preserve_modification_time: bool,
    /// Keep `expiration_time`.
    pub preserve_expiration_time: bool,
    /// Keep `expiration_timeout`.
    pub preserve_expiration_timeout: bool,
}

impl Tree {
    /// Refuses to copy a subtree with more nodes, or larger ones, than a request may make.
    pub fn check_copy_size(&self, top: ObjectId) -> Result<(), Failure> {
        if self.subtree_exceeds(top, self.limits.max_nodes_per_request) {
            return self.limits.check_request(usize::MAX);
        }
        if self.is_heavy(top) {
            let (path, limit) = (self.path(top), self.limits.max_bytes_per_request);
            let message = format!(
                "{path} and what is below it take more than {limit} bytes in memory, which is the limit of what a request \
                 copies: copy its children one by one"
            );
            return Err(Failure::new(message).with("path", path).with("limit", limit));
        }
        Ok(())
    }
}

impl Edit<'_> {
    /// `copy`. The source follows links, the destination does not ([`crate::Last::Stay`]).
    pub fn copy(
        &mut self,
        source: &Place,
        destination: &Place,
        options: CopyOptions,
    ) -> Result<ObjectId, Failure> {
        self.attempt(|edit| edit.transplant("copy", source, destination, options))
    }

    /// `move`: the copy has new ids, the source is gone.
    pub fn move_node(
        &mut self,
        source: &Place,
        destination: &Place,
        options: CopyOptions,
    ) -> Result<ObjectId, Failure> {
        self.attempt(|edit| {
            let options = CopyOptions { ignore_existing: false, ..options };
            let id = edit.transplant("move", source, destination, options)?;
            edit.remove_subtree(source.node)?;
            Ok(id)
        })
    }

    fn transplant(
        &mut self,
        command: &str,
        source: &Place,
        destination: &Place,
        options: CopyOptions,
    ) -> Result<ObjectId, Failure> {
        if !source.rest.is_empty() {
            return Err(self.missing(source));
        }
        let (from, to) = (source.node, destination.node);
        let from_type = self.expect_node(from)?.node_type;
        let to_type = self.expect_node(to)?.node_type;
        let exists = destination.rest.is_empty();
        if exists && options.ignore_existing && from_type == to_type {
            return Ok(to);
        }
        // With the destination inside the source there is no end to it; with the source inside a
        // destination that is to be replaced there is nothing left to copy.
        let blocked = exists && !options.force; // free_slot says 501
        let overlaps = self.is_within(to, from) || exists && self.is_within(from, to);
        if overlaps && !blocked {
            let (from, to) = (self.path(from), self.show(destination));
            return Err(Failure::new(format!("Cannot {command} {from} to {to}: one contains the other"))
                .with("path", from));
        }
        self.check_copy_size(from)?;
        self.check_copyable(command, from)?;
        let slot = self.free_slot(destination, options.recursive, options.force)?;
        self.plant(from, slot, options)
    }

    fn check_copyable(&self, command: &str, top: ObjectId) -> Result<(), Failure> {
        for id in self.subtree(top) {
            let node = self.expect_node(id)?;
            if !node.node_type.is_plain() || self.mount_at(id).is_some() {
                return Err(self.not_a(id, command));
            }
        }
        Ok(())
    }

    /// Copies a subtree into a slot. Nodes are read before anything is written below, so a copy
    /// never sees itself.
    fn plant(&mut self, top: ObjectId, slot: Slot, options: CopyOptions) -> Result<ObjectId, Failure> {
        let all = self.subtree(top);
        let mut copies = BTreeMap::new();
        for id in all {
            let old = self.expect_node(id)?.clone();
            let place = match copies.get(&old.parent) {
                Some(parent) => {
                    let index = self.child_count(*parent);
                    Slot { parent: *parent, key: old.key.clone(), index }
                }
                None => slot.clone(),
            };
            let body = match old.body {
                Body::List(_) => Body::List(Vec::new()),
                other => other,
            };
            let mut new = self.new_node(place.parent, place.key.clone(), old.node_type, body);
            new.user_attributes = old.user_attributes;
            new.opaque = old.opaque;
            (new.acl, new.inherit_acl) =
                if options.preserve_acl { (old.acl, old.inherit_acl) } else { (Acl::default(), true) };
            if options.preserve_account {
                new.account = old.account;
            }
            if options.preserve_owner {
                new.owner = old.owner;
            }
            if options.preserve_creation_time {
                new.creation_time = old.creation_time;
            }
            new.expiration.time = old.expiration.time.filter(|_| options.preserve_expiration_time);
            new.expiration.timeout = old.expiration.timeout.filter(|_| options.preserve_expiration_timeout);
            let copy = self.attach(place, new)?;
            copies.insert(id, copy);
        }
        if options.preserve_modification_time {
            // Only now: attaching children has touched their parents.
            for (old, copy) in &copies {
                let time = self.expect_node(*old)?.modification_time;
                self.update(*copy, |_| ());
                self.renew(*copy);
                self.tree.change_node(*copy, |node| node.modification_time = time);
            }
        }
        copies.get(&top).copied().ok_or_else(|| crate::failures::no_object(top))
    }
}
