//! `create` and `link` (http-api.md 8.1).

use vocab::{Failure, ObjectId};
use yson::Map;
use yson::ypath::YPath;

use super::content::empty_scalar;
use super::{Edit, Slot};
use crate::failures::already_exists;
use crate::node::{Body, TableContent};
use crate::resolve::{Last, Place, Resolved};
use crate::types::NodeType;

/// Options of `create`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateOptions {
    /// What to make.
    pub node_type: NodeType,
    /// Applied before the node becomes visible.
    pub attributes: Map,
    /// Make missing parents.
    pub recursive: bool,
    /// A node of the same type that is there is fine, its attributes are not touched.
    pub ignore_existing: bool,
    /// Replace what is there.
    pub force: bool,
    /// With `ignore_existing`: a node of any type is fine.
    pub ignore_type_mismatch: bool,
}

impl CreateOptions {
    /// Everything off.
    pub fn new(node_type: NodeType) -> CreateOptions {
        CreateOptions {
            node_type,
            attributes: Map::new(),
            recursive: false,
            ignore_existing: false,
            force: false,
            ignore_type_mismatch: false,
        }
    }
}

/// Options of `link`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkOptions {
    /// Attributes of the link.
    pub attributes: Map,
    /// Make missing parents.
    pub recursive: bool,
    /// A link that is there is fine.
    pub ignore_existing: bool,
    /// Replace what is there; the target may be missing.
    pub force: bool,
}

impl Edit<'_> {
    /// `create`. Resolve the place with [`Last::Stay`].
    pub fn create(&mut self, place: &Place, options: &CreateOptions) -> Result<ObjectId, Failure> {
        if options.ignore_existing && options.force {
            return Err(Failure::new("\"ignore_existing\" and \"force\" cannot be given together"));
        }
        self.attempt(|edit| {
            if place.rest.is_empty() && options.ignore_existing {
                return edit.existing(place.node, options);
            }
            let slot = edit.free_slot(place, options.recursive, options.force)?;
            edit.create_in(slot, options)
        })
    }

    /// `link`: a symbolic link at `place` (resolved with [`Last::Stay`]) that stands for `target`.
    pub fn link(
        &mut self,
        target: &YPath,
        place: &Place,
        options: &LinkOptions,
    ) -> Result<ObjectId, Failure> {
        if !options.force
            && let Resolved::Local(found) = self.resolve(target, Last::Follow)?
            && !found.rest.is_empty()
        {
            return Err(self.missing(&found));
        }
        let create = CreateOptions {
            attributes: options.attributes.clone().with("target_path", target.text()),
            recursive: options.recursive,
            ignore_existing: options.ignore_existing && !options.force,
            force: options.force,
            ..CreateOptions::new(NodeType::Link)
        };
        self.attempt(|edit| {
            let id = edit.create(place, &create)?;
            // A circle shows when the link is followed: it cannot end, whatever its target.
            let itself =
                YPath::parse(format!("#{id}").as_bytes()).map_err(|e| Failure::new(e.to_string()))?;
            match edit.resolve(&itself, Last::Follow) {
                Ok(_) => Ok(id),
                Err(cause) => {
                    let path = edit.path(id);
                    Err(Failure::new(format!("Link {path} cannot lead to {}", target.text()))
                        .with("path", path)
                        .because(cause))
                }
            }
        })
    }

    /// Gives a link another target; what is no link stays as it is.
    pub fn lead_elsewhere(&mut self, link: ObjectId, target: &YPath) -> Result<(), Failure> {
        match self.expect_node(link)?.body {
            Body::Link(_) => self.replace_body(link, Body::Link(target.text().into_bytes())),
            _ => Ok(()),
        }
    }

    /// The node that `ignore_existing` is content with.
    fn existing(&self, id: ObjectId, options: &CreateOptions) -> Result<ObjectId, Failure> {
        let fits = |id: &ObjectId| {
            options.ignore_type_mismatch || self.node(*id).is_some_and(|n| n.node_type == options.node_type)
        };
        // A link stands for its target: `write_table` through a link begins with such a create.
        let path = YPath::parse(format!("#{id}").as_bytes()).map_err(|e| Failure::new(e.to_string()))?;
        let target = match self.resolve(&path, Last::Follow) {
            Ok(Resolved::Local(place)) if place.rest.is_empty() => Some(place.node),
            _ => None,
        };
        [Some(id), target].into_iter().flatten().find(fits).ok_or_else(|| {
            let path = self.path(id);
            let found = self.node(id).map_or("nothing", |n| n.node_type.name());
            already_exists(&path)
                .with("existing_type", found)
                .with("requested_type", options.node_type.name())
        })
    }

    /// The slot that a place stands for; with `force` what is in it is removed.
    pub(super) fn free_slot(&mut self, place: &Place, recursive: bool, force: bool) -> Result<Slot, Failure> {
        if !place.rest.is_empty() {
            return self.slot(place, recursive);
        }
        if !force {
            return Err(already_exists(&self.path(place.node)));
        }
        let slot = self.slot_of(place.node)?;
        self.remove_subtree(place.node)?;
        Ok(slot)
    }

    fn create_in(&mut self, slot: Slot, options: &CreateOptions) -> Result<ObjectId, Failure> {
        let mut attributes = options.attributes.clone();
        let body = match options.node_type {
            NodeType::ListNode => Body::List(Vec::new()),
            NodeType::Document => Body::Document(attributes.remove("value").unwrap_or_default()),
            NodeType::File => Body::File(None),
            NodeType::Table => Body::Table(TableContent::default()),
            NodeType::Link => Body::Link(link_target(attributes.remove("target_path"))?),
            NodeType::Group => Body::Group(Default::default()),
            NodeType::User | NodeType::Account => Body::Object,
            scalar if scalar.is_scalar() => Body::Scalar(empty_scalar(scalar).unwrap_or_default()),
            _ => Body::Map,
        };
        let id = self.fill(slot, options.node_type, body)?;
        if let Some(Body::Document(value)) = self.node(id).map(|n| n.body.clone()) {
            self.set_value(id, value)?;
        }
        self.set_all_attributes(id, attributes)?;
        Ok(id)
    }
}

fn link_target(value: Option<yson::Value>) -> Result<yson::Bytes, Failure> {
    let value = value.ok_or_else(|| Failure::new("A link needs the attribute \"target_path\""))?;
    let path =
        YPath::from_value(&value).map_err(|e| Failure::new(format!("Attribute \"target_path\": {e}")))?;
    Ok(path.text().into_bytes())
}
