//! The commands that change nothing: `get`, `list`, `exists` (http-api.md 8.1).

use std::collections::BTreeSet;

use vocab::{Failure, ObjectId};
use yson::ypath::Step;
use yson::{Map, Value};

use crate::failures::{no_attribute, unsupported};
use crate::limits::Limits;
use crate::node::{Body, Node};
use crate::resolve::{Last, Place, Resolved};
use crate::tree::Tree;
use crate::walk::{value_exists, value_get, value_list};
use crate::weigh::Budget;

/// Of links: is there nothing where they lead?
const BROKEN: &str = "broken";

/// Options of `get` and `list`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetOptions {
    /// Attributes that each returned node shall carry; those it does not have are skipped.
    pub attributes: Vec<String>,
    /// At most so many children of one node; what is cut carries `<incomplete=%true>`.
    pub max_size: Option<usize>,
    /// Nodes that are not shown: `#` and no attributes stand for them.
    pub closed: BTreeSet<ObjectId>,
    /// Links whose targets whoever asks may know nothing of: they look broken, whether they are or not.
    pub blind: BTreeSet<ObjectId>,
}

impl Tree {
    /// `get`.
    pub fn get(&self, place: &Place, options: &GetOptions) -> Result<Value, Failure> {
        let node = self.expect_node(place.node)?;
        if place.rest.is_empty() {
            self.limits.check_read(self.shown_values(place.node, options), || self.path(place.node))?;
        }
        match (place.rest.as_slice(), &node.body) {
            ([], _) => Ok(self.show_node(place.node, options, true)),
            ([Step::AllAttributes], _) => {
                self.check_all_attributes(node, options)?;
                Ok(self.shown_attributes(place.node, &options.attributes, options).into())
            }
            ([Step::Attribute(name)], _)
                if name == BROKEN.as_bytes() && options.blind.contains(&place.node) =>
            {
                Ok(true.into())
            }
            ([Step::Attribute(name), inside @ ..], _) => {
                let value = self.expect_attribute(place.node, name)?;
                let at = || self.show(&Place { node: place.node, rest: vec![place.rest[0].clone()] });
                Ok(if inside.is_empty() { value } else { value_get(&value, &at(), inside)?.into_owned() })
            }
            (steps, Body::Document(content)) => {
                Ok(value_get(content, &self.path(place.node), steps)?.into_owned())
            }
            _ => Err(self.missing(place)),
        }
    }

    /// `list`: names, sorted by key.
    pub fn list(&self, place: &Place, options: &GetOptions) -> Result<Value, Failure> {
        let node = self.expect_node(place.node)?;
        let plain = |keys: Vec<yson::Bytes>| keys.into_iter().map(Value::String).collect::<Vec<_>>();
        let mut names = match (place.rest.as_slice(), &node.body) {
            ([], Body::Map) => {
                let enough = options.max_size.unwrap_or(usize::MAX).saturating_add(1);
                let mut budget = Budget::new(self.limits.max_values_per_read);
                for (key, id) in self.map_children(place.node).take(enough) {
                    match self.node(id).filter(|_| !options.attributes.is_empty()) {
                        Some(child) => self.weigh_node(child, &options.attributes, &mut budget),
                        // Of names alone any number is shown, as far as they are short.
                        None => budget.add(0, key.len()),
                    }
                    self.limits.check_read(budget.count(), || self.path(place.node))?;
                }
                let children = self.map_children(place.node).take(enough);
                let names = children.map(|(key, id)| self.name(key, id, options)).collect();
                return Ok(list_reply(names, options.max_size));
            }
            ([], Body::Document(content)) => plain(value_list(content, &self.path(place.node), &[])?),
            ([], _) => return Err(unsupported("list", &self.path(place.node), node.node_type.name())),
            ([Step::AllAttributes], _) => {
                self.attribute_names(place.node).into_iter().map(Value::from).collect()
            }
            ([Step::Attribute(name), inside @ ..], _) => {
                let value = self.expect_attribute(place.node, name)?;
                let at = self.show(&Place { node: place.node, rest: vec![place.rest[0].clone()] });
                plain(value_list(&value, &at, inside)?)
            }
            (steps, Body::Document(content)) => plain(value_list(content, &self.path(place.node), steps)?),
            _ => return Err(self.missing(place)),
        };
        names.sort_by(|a, b| a.as_bytes().cmp(&b.as_bytes()));
        Ok(list_reply(names, options.max_size))
    }

    /// `exists`.
    pub fn exists(&self, place: &Place) -> bool {
        let Some(node) = self.node(place.node) else { return false };
        match (place.rest.as_slice(), &node.body) {
            ([] | [Step::AllAttributes], _) => true,
            ([Step::Attribute(name)], _) => self.attribute(place.node, name).is_some(),
            ([Step::Attribute(name), inside @ ..], _) => {
                self.attribute(place.node, name).is_some_and(|value| value_exists(&value, inside))
            }
            (steps, Body::Document(content)) => value_exists(content, steps),
            _ => false,
        }
    }

    /// Does the target of this link not exist? Links into mounts count as good: only the owner of
    /// the mount could tell.
    pub fn is_broken_link(&self, link: ObjectId) -> bool {
        let path = yson::ypath::YPath {
            attributes: Map::new(),
            root: yson::ypath::Root::Object(link.to_string()),
            steps: Vec::new(),
        };
        match self.resolve(&path, Last::Follow) {
            Ok(Resolved::Local(place)) => !self.exists(&place),
            Ok(Resolved::Mount(_) | Resolved::Foreign(_)) => false,
            Err(_) => true,
        }
    }

    pub(crate) fn expect_attribute(&self, id: ObjectId, name: &[u8]) -> Result<Value, Failure> {
        self.attribute(id, name).ok_or_else(|| no_attribute(&self.path(id), name))
    }

    fn shown_attributes(&self, id: ObjectId, names: &[String], options: &GetOptions) -> Map {
        let mut attributes = self.attributes(id, names);
        if options.blind.contains(&id) && attributes.get(BROKEN).is_some() {
            attributes.insert(BROKEN, true);
        }
        attributes
    }

    /// Refuses to show all attributes of a node if they are more than those of a new node may be.
    fn check_all_attributes(&self, node: &Node, options: &GetOptions) -> Result<(), Failure> {
        let Limits { max_values_per_read, max_value_count, max_attribute_size, .. } = self.limits;
        let limit = max_values_per_read.max(max_value_count + (max_attribute_size >> 10));
        let mut budget = Budget::new(limit);
        match options.attributes.as_slice() {
            [] => self.weigh_all_attributes(node, &mut budget),
            names => self.weigh_node(node, names, &mut budget),
        }
        if !budget.is_over() {
            return Ok(());
        }
        let path = format!("{}/@", self.path(node.id));
        let message =
            format!("{path} has more than {limit} values and kilobytes: ask for its attributes by name");
        Err(Failure::new(message).with("path", path).with("limit", limit))
    }

    /// How many nodes, attributes, values in them, and kilobytes `get` of a node shows, or that there are more than it may
    /// show: then the count stops.
    pub fn shown_values(&self, top: ObjectId, options: &GetOptions) -> usize {
        let (each, most) = (1 + options.attributes.len(), options.max_size.unwrap_or(usize::MAX));
        let mut open = vec![top];
        let mut budget = Budget::new(self.limits.max_values_per_read);
        while let Some(id) = open.pop() {
            let Some(node) = self.node(id) else { continue };
            self.weigh_node(node, &options.attributes, &mut budget);
            if id != top && (self.is_opaque(node) || options.closed.contains(&id)) {
                if budget.is_over() {
                    return usize::MAX;
                }
                continue;
            }
            let below = self.child_count(id).min(most);
            if below.saturating_mul(each) > budget.left() || budget.is_over() {
                return usize::MAX;
            }
            match &node.body {
                Body::Map => open.extend(self.map_children(id).take(most).map(|(_, child)| child)),
                Body::List(items) => open.extend(items.iter().take(most)),
                _ => {}
            }
        }
        budget.count()
    }

    /// A node with everything below it that is not opaque. The depth of the tree is bounded by
    /// [`crate::Limits::max_depth`], hence the recursion is.
    fn show_node(&self, id: ObjectId, options: &GetOptions, is_top: bool) -> Value {
        let Some(node) = self.node(id).filter(|_| !options.closed.contains(&id)) else {
            return Value::Entity;
        };
        let mut attributes = match options.attributes.as_slice() {
            [] => Map::new(),
            names => self.shown_attributes(id, names, options),
        };
        let limit = options.max_size.unwrap_or(usize::MAX);
        let value = match &node.body {
            _ if !is_top && self.is_opaque(node) => Value::Entity,
            Body::Map => Value::Map(
                self.map_children(id)
                    .take(limit)
                    .map(|(key, child)| (key, self.show_node(child, options, false)))
                    .collect(),
            ),
            Body::List(items) => Value::List(
                items.iter().take(limit).map(|child| self.show_node(*child, options, false)).collect(),
            ),
            Body::Scalar(value) | Body::Document(value) => value.clone(),
            Body::File(_) | Body::Table(_) | Body::Link(_) | Body::Group(_) | Body::Object => Value::Entity,
        };
        if !value.is_entity() && self.child_count(id) > limit {
            attributes.insert("incomplete", true);
        }
        value.with_attributes(attributes)
    }

    fn name(&self, key: &[u8], id: ObjectId, options: &GetOptions) -> Value {
        let name = Value::String(key.to_vec());
        match options.attributes.as_slice() {
            [] => name,
            _ if options.closed.contains(&id) => name,
            names => name.with_attributes(self.shown_attributes(id, names, options)),
        }
    }
}

/// The reply of `list` with these names: at most `max_size` of them, and it says so if there were
/// more. For mounts, which list what they have.
pub fn list_reply(mut names: Vec<Value>, max_size: Option<usize>) -> Value {
    let limit = max_size.unwrap_or(usize::MAX);
    if names.len() <= limit {
        return Value::List(names);
    }
    names.truncate(limit);
    Value::List(names).with_attributes(yson::map! {"incomplete" => true})
}
