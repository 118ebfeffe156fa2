//! `remove` (http-api.md 8.1).

use vocab::{Failure, ObjectId};
use yson::ypath::Step;

use super::Edit;
use crate::accounts::attribute_bytes;
use crate::attributes::{is_kept, is_system};
use crate::failures::{no_attribute, read_only_attribute};
use crate::node::Body;
use crate::resolve::Place;
use crate::walk::value_remove;

/// Options of `remove`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoveOptions {
    /// Maps and lists that are not empty, too.
    pub recursive: bool,
    /// It is fine if there is nothing.
    pub force: bool,
}

impl Edit<'_> {
    /// `remove`. Resolve the place with [`crate::Last::Stay`]: removing a link removes the link.
    pub fn remove(&mut self, place: &Place, options: RemoveOptions) -> Result<(), Failure> {
        self.attempt(|edit| {
            let id = place.node;
            let body = &edit.expect_node(id)?.body;
            match (place.rest.as_slice(), body) {
                ([], _) => edit.remove_node(id, options),
                ([Step::Attribute(name), inside @ ..], _) => {
                    edit.remove_attribute(id, name, inside, options.force)
                }
                ([Step::AllUserAttributes | Step::AllAttributes], _) => {
                    edit.remove_user_attributes(id);
                    Ok(())
                }
                ([Step::AllChildren], Body::Map | Body::List(_)) => edit.remove_children(id),
                (steps, Body::Document(content)) => {
                    let mut content = content.clone();
                    if value_remove(&mut content, &edit.path(id), steps, options.force)? {
                        edit.set_value(id, content)?;
                    }
                    Ok(())
                }
                _ if options.force => Ok(()),
                _ => Err(edit.missing(place)),
            }
        })
    }

    /// All that are not the system's.
    pub(super) fn remove_user_attributes(&mut self, id: ObjectId) {
        let Some(node) = self.node(id) else { return };
        let gone = node.user_attributes.iter().filter(|(name, _)| !is_kept(node.node_type, name));
        let bytes: i64 = gone.map(|(name, value)| attribute_bytes(name, Some(value))).sum();
        self.update_attributes(id, |node| {
            let node_type = node.node_type;
            let kept = std::mem::take(&mut node.user_attributes);
            node.user_attributes = kept.into_iter().filter(|(name, _)| is_kept(node_type, name)).collect();
        });
        self.charge_values(id, -bytes);
    }

    fn remove_node(&mut self, id: ObjectId, options: RemoveOptions) -> Result<(), Failure> {
        let count = self.child_count(id);
        if count > 0 && !options.recursive {
            let path = self.path(id);
            let message = format!("Node {path} is not empty: it has {count} children; give \"recursive\"");
            return Err(Failure::new(message).with("path", path));
        }
        self.remove_subtree(id)
    }

    fn remove_attribute(
        &mut self,
        id: ObjectId,
        name: &[u8],
        inside: &[Step],
        force: bool,
    ) -> Result<(), Failure> {
        let node = self.expect_node(id)?;
        if !inside.is_empty() {
            self.check_writable(id, name)?;
            let Some(mut whole) = self.attribute(id, name) else {
                return if force { Ok(()) } else { Err(no_attribute(&self.path(id), name)) };
            };
            let at = format!("{}/@{}", self.path(id), crate::walk::literal(name));
            return match value_remove(&mut whole, &at, inside, force)? {
                true => self.set_node_attribute(id, name, whole),
                false => Ok(()),
            };
        }
        if matches!(name, b"expiration_time" | b"expiration_timeout") {
            return self.clear_expiration(id, name, force);
        }
        if is_system(node.node_type, name) {
            return Err(read_only_attribute(&self.path(id), name));
        }
        if node.user_attributes.contains(name) {
            self.change_user_attribute(id, name, None);
            return Ok(());
        }
        if force { Ok(()) } else { Err(no_attribute(&self.path(id), name)) }
    }

    /// Removes everything below a node.
    pub(super) fn remove_children(&mut self, id: ObjectId) -> Result<(), Failure> {
        // Each of them is touched at least.
        let (count, limit) = (self.child_count(id), self.limits.max_nodes_per_request);
        if self.journal.len() + count > limit {
            let path = self.path(id);
            let message = format!(
                "{path} has {count} children, which are more than a request may remove one by one \
                 (max_nodes_per_request is {limit}): remove {path} itself and make it again, or remove them in parts"
            );
            let failure = Failure::new(message).with("path", path).with("limit", limit).with("found", count);
            return Err(failure.with("option", "max_nodes_per_request"));
        }
        let children = self.child_ids(id);
        for child in &children {
            self.check_droppable(*child)?;
        }
        // All at once: taking the items of a list out one by one would look through it each time.
        self.update_content(id, |node| {
            if let Body::List(items) = &mut node.body {
                items.clear();
            }
        });
        for child in children {
            self.drop_subtree(child)?;
        }
        Ok(())
    }

    /// Removes a node with everything below.
    pub(super) fn remove_subtree(&mut self, top: ObjectId) -> Result<(), Failure> {
        self.check_droppable(top)?;
        let parent = self.expect_node(top)?.parent;
        self.update_content(parent, |node| {
            if let Body::List(items) = &mut node.body {
                items.retain(|item| *item != top);
            }
        });
        self.drop_subtree(top)
    }

    /// Refuses to remove what the system stands on.
    pub(super) fn check_removable(&self, top: ObjectId) -> Result<(), Failure> {
        for id in self.subtree(top) {
            let kept = self.node(id).is_some_and(|n| n.builtin || n.is_root());
            if kept || self.mount_at(id).is_some() {
                let path = self.path(id);
                let message = format!("Node {path} cannot be removed: it is part of the system");
                return Err(Failure::new(message).with("path", path));
            }
            self.node(id).map_or(Ok(()), |node| self.check_unused(node))?;
        }
        Ok(())
    }

    pub(super) fn take_subtree(&mut self, top: ObjectId) {
        for id in self.subtree(top).into_iter().rev() {
            self.take(id);
        }
    }
}
