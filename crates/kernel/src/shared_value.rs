//! Large values that are answered without being copied.

use cypress::{Body, Node, Place, Tree};
use std::sync::Arc;
use yson::ypath::Step;
use yson::{Bytes, Value};

/// A value of a node, as it was when it was asked for: all answers about it have the same one.
#[derive(Clone, Debug)]
pub struct SharedValue {
    node: Arc<Node>,
    /// Name of an attribute of users; none: the value of a document.
    attribute: Option<Bytes>,
}

/// Smaller values are copied.
const LARGE: usize = 64 << 10;

impl SharedValue {
    /// The value at a place, if it is one of a node as a whole, and large.
    pub(crate) fn of(tree: &Tree, place: &Place) -> Option<SharedValue> {
        let node = tree.shared_node(place.node)?;
        let attribute = match place.rest.as_slice() {
            [] => None,
            [Step::Attribute(name)] if !cypress::attributes::is_system(node.node_type, name) => {
                Some(name.clone())
            }
            _ => return None,
        };
        let shared = SharedValue { node, attribute };
        let mut left = LARGE;
        let is_large = !is_small(shared.found()?, &mut left);
        is_large.then_some(shared)
    }

    fn found(&self) -> Option<&Value> {
        match (&self.attribute, &self.node.body) {
            (Some(name), _) => self.node.user_attributes.get(name),
            (None, Body::Document(value)) => Some(value),
            (None, _) => None,
        }
    }

    /// The value.
    pub fn value(&self) -> &Value {
        self.found().unwrap_or(&Value::Entity)
    }
}

/// Stops to count early.
fn is_small(value: &Value, left: &mut usize) -> bool {
    let own = value.as_bytes().map_or(8, <[u8]>::len);
    let Some(rest) = left.checked_sub(own) else { return false };
    *left = rest;
    let map = |map: &yson::Map, left: &mut usize| map.iter().all(|(_, value)| is_small(value, left));
    match value {
        Value::List(items) => items.iter().all(|item| is_small(item, left)),
        Value::Map(inner) => map(inner, left),
        Value::Attributed(both) => map(&both.0, left) && is_small(&both.1, left),
        _ => true,
    }
}
