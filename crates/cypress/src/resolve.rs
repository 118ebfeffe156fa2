//! From a path to a place (http-api.md 5.2).
//!
//! Resolution walks as far as nodes go and never complains about what is missing: the rest of the
//! steps stays in the [`Place`], and the command decides whether that is a new child, an attribute,
//! the inside of a document, or an error.

use vocab::id::MalformedId;
use vocab::{Failure, ObjectId};
use yson::ypath::{Root, Step, YPath};

use crate::failures::{self, no_child, no_item, odd_step_after};
use crate::node::Body;
use crate::tree::Tree;
use crate::walk::{list_index, show_steps};

/// Links followed in one resolution before it is called a cycle.
const MAX_LINKS: usize = 32;

/// Name of a mount, chosen by whoever answers for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MountId(pub u32);

/// What to do with a link at the very end of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Last {
    /// It is replaced by its target: for reading, `set`, and the source of `copy` and `move`.
    Follow,
    /// It is meant itself: `remove`, `create`, the link of `link`, destinations.
    Stay,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolved {
    /// To the nodes of this tree.
    Local(Place),
    /// Into a subtree that somebody else answers for.
    Mount(Mounted),
    /// To an object by id that is not a node here.
    Foreign(Foreign),
}

/// The deepest existing node on the way, and the steps that are left.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The node.
    pub node: ObjectId,
    /// What is left: nothing, an attribute, the inside of a value, or children that do not exist.
    pub rest: Vec<Step>,
}

/// A place inside a mount.
#[derive(Clone, Debug, PartialEq)]
pub struct Mounted {
    /// Which.
    pub mount: MountId,
    /// The node it is attached to. Its own attributes (`@acl`, user attributes) are in the tree: the
    /// owner of the mount may answer `rest` of `@...` from there, with a [`Place`] of this node.
    pub node: ObjectId,
    /// Steps below it.
    pub rest: Vec<Step>,
}

/// A place below an object that is not a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// The object.
    pub id: ObjectId,
    /// Steps below it.
    pub rest: Vec<Step>,
}

impl Foreign {
    /// The error when nobody knows the object.
    pub fn failure(&self) -> Failure {
        failures::no_object(self.id)
    }
}

impl Mounted {
    /// The same as a place of the tree, for what the mount leaves to the tree.
    pub fn as_place(&self) -> Place {
        Place { node: self.node, rest: self.rest.clone() }
    }
}

/// Steps where there are no links: `&`, which tools put behind any path, says nothing there.
fn without_links(mut steps: Vec<Step>) -> Vec<Step> {
    steps.retain(|step| *step != Step::NoFollow);
    steps
}

impl Tree {
    /// Where a path leads. Errors: a link that leads nowhere (500), links in a circle (500).
    pub fn resolve(&self, path: &YPath, last: Last) -> Result<Resolved, Failure> {
        self.walk(path, last, &mut |_, _| ())
    }

    /// Ids at which the way of a path begins anew: that of the path itself, and those to which links on it lead, with
    /// the link.
    pub fn ids_on_the_way(&self, path: &YPath, last: Last) -> Vec<(ObjectId, Option<ObjectId>)> {
        let mut ids = Vec::new();
        if let (Root::Object(_), Ok((id, _))) = (&path.root, self.start(path)) {
            ids.push((id, None));
        }
        // Whether it leads anywhere does not matter here.
        let _ = self.walk(path, last, &mut |id, link| ids.push((id, Some(link))));
        ids
    }

    /// `entered` hears of ids to which links lead.
    fn walk(
        &self,
        path: &YPath,
        last: Last,
        entered: &mut dyn FnMut(ObjectId, ObjectId),
    ) -> Result<Resolved, Failure> {
        let mut links = 0;
        let (mut here, mut rest) = self.start(path)?;
        loop {
            // Only the id at the start of a path can be unknown: children and parents are nodes.
            let Some(node) = self.node(here) else {
                return Ok(Resolved::Foreign(Foreign { id: here, rest: without_links(rest) }));
            };
            let stays = match rest.first() {
                Some(Step::NoFollow) => {
                    rest.remove(0);
                    true
                }
                Some(_) => false,
                None => last == Last::Stay,
            };
            if let Body::Link(target) = &node.body
                && !stays
            {
                links += 1;
                if links > MAX_LINKS {
                    let shown = self.path(here);
                    let message = format!("Link {shown} leads through more than {MAX_LINKS} links");
                    return Err(Failure::resolve(message).with("path", shown));
                }
                let target = YPath::parse(target).map_err(|e| Failure::new(e.to_string()))?;
                let (start, mut steps) = self.start(&target)?;
                if target.root != Root::Tree {
                    entered(start, here);
                }
                steps.append(&mut rest);
                (here, rest) = (start, steps);
                continue;
            }
            if let Some(mount) = self.mount_at(here) {
                return Ok(Resolved::Mount(Mounted { mount, node: here, rest: without_links(rest) }));
            }
            match rest.first().and_then(|step| self.step(here, step)) {
                Some(child) => {
                    rest.remove(0);
                    here = child;
                }
                None => return Ok(Resolved::Local(Place { node: here, rest })),
            }
        }
    }

    /// Where a walk begins, and its steps.
    fn start(&self, path: &YPath) -> Result<(ObjectId, Vec<Step>), Failure> {
        let id = match &path.root {
            Root::Tree => self.root(),
            Root::Object(text) => text.parse().map_err(|e: MalformedId| Failure::new(e.to_string()))?,
        };
        Ok((id, path.steps.clone()))
    }

    /// The child that a step leads to, if it exists.
    fn step(&self, here: ObjectId, step: &Step) -> Option<ObjectId> {
        let node = self.node(here)?;
        match &node.body {
            Body::Map => self.child(here, &step.key()?),
            Body::List(items) => list_index(step, items.len()).map(|i| items[i]),
            _ => None,
        }
    }

    /// The whole path of a place, for messages.
    pub fn show(&self, place: &Place) -> String {
        show_steps(&self.path(place.node), &place.rest)
    }

    /// The error of a place whose next step leads nowhere.
    pub fn missing(&self, place: &Place) -> Failure {
        let path = self.path(place.node);
        let (Some(node), Some(step)) = (self.node(place.node), place.rest.first()) else {
            return failures::no_object(place.node);
        };
        match (&node.body, step, step.key()) {
            (_, Step::Attribute(name), _) if self.attribute(place.node, name).is_some() => {
                let name = failures::show(name);
                Failure::resolve(format!("Attribute \"{name}\" of {path} is not a node"))
                    .with("path", format!("{path}/@{name}"))
                    .with("attribute", name)
            }
            (_, Step::Attribute(name), _) => failures::no_attribute(&path, name),
            (Body::Map, _, Some(key)) => no_child(&path, &key),
            (Body::List(items), _, Some(key)) => no_item(&path, &key, items.len()),
            // A link itself, by "&".
            (Body::Link(_), _, Some(_)) if !self.is_broken_link(place.node) => {
                failures::cannot_have_children(&path, node.node_type.name())
            }
            (Body::Link(target), _, Some(_)) => {
                let target = failures::show(target);
                Failure::resolve(format!("Link {path} is broken: {target} does not exist")).with("path", path)
            }
            (Body::Map | Body::List(_), Step::AllChildren, _) => odd_step_after(&path, step),
            (_, Step::AllChildren, _) | (_, _, Some(_)) => {
                failures::cannot_have_children(&path, node.node_type.name())
            }
            (_, _, None) => odd_step_after(&path, step),
        }
    }
}
