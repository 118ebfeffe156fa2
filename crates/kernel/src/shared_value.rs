//! Large values that are answered without being copied.

use cypress::walk::value_get;
use cypress::{Body, Node, Place, Tree};
use std::borrow::Cow;
use std::sync::Arc;
use yson::ypath::Step;
use yson::{Bytes, Value};

/// A value of a node, or a part of it, as it was when it was asked for: all answers about it have the same one.
#[derive(Clone, Debug)]
pub struct SharedValue {
    node: Arc<Node>,
    /// Name of an attribute of users; none: the value of a document.
    attribute: Option<Bytes>,
    /// From there to the part.
    inside: Vec<Step>,
}

/// Smaller values are copied.
const LARGE: usize = 64 << 10;

impl SharedValue {
    /// The value at a place, if it is one of a node or a part of one, and large.
    pub(crate) fn of(tree: &Tree, place: &Place) -> Option<SharedValue> {
        let node = tree.shared_node(place.node)?;
        let (attribute, inside) = match place.rest.as_slice() {
            [Step::Attribute(name), inside @ ..] => {
                if cypress::attributes::is_system(node.node_type, name) {
                    return None;
                }
                (Some(name.clone()), inside)
            }
            inside => (None, inside),
        };
        let shared = SharedValue { node, attribute, inside: inside.to_vec() };
        let is_large = shared.found()?.weighs_more_than(LARGE);
        is_large.then_some(shared)
    }

    fn found(&self) -> Option<&Value> {
        let whole = match (&self.attribute, &self.node.body) {
            (Some(name), _) => self.node.user_attributes.get(name)?,
            (None, Body::Document(value)) => value,
            (None, _) => return None,
        };
        match value_get(whole, "", &self.inside) {
            Ok(Cow::Borrowed(part)) => Some(part),
            // Attributes of a part make a map of their own; of a part that is not there the tree tells.
            Ok(Cow::Owned(_)) | Err(_) => None,
        }
    }

    /// The value.
    pub fn value(&self) -> &Value {
        self.found().unwrap_or(&Value::Entity)
    }
}
