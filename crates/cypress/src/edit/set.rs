//! `set` (http-api.md 8.1).

use vocab::{Failure, ObjectId};
use yson::Value;
use yson::ypath::Step;

use super::Edit;
use crate::failures::{unsupported, wrong_type};
use crate::node::Body;
use crate::resolve::Place;
use crate::walk::value_set;

/// Options of `set`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetOptions {
    /// Make missing components in the middle.
    pub recursive: bool,
    /// Replace the children of a map node that exists.
    pub force: bool,
}

impl Edit<'_> {
    /// `set`.
    pub fn set(&mut self, place: &Place, value: Value, options: SetOptions) -> Result<(), Failure> {
        self.attempt(|edit| {
            let document = matches!(edit.expect_node(place.node)?.body, Body::Document(_));
            match place.rest.as_slice() {
                [] => edit.set_node(place.node, value, options),
                [Step::Attribute(_) | Step::AllAttributes, ..] => edit.set_attribute(place, value, options),
                steps if document => edit.set_inside_document(place.node, steps, value, options),
                _ => {
                    let slot = edit.slot(place, options.recursive)?;
                    edit.build(slot, value).map(drop)
                }
            }
        })
    }

    fn set_node(&mut self, id: ObjectId, value: Value, options: SetOptions) -> Result<(), Failure> {
        let node = self.expect_node(id)?;
        let (node_type, path) = (node.node_type, self.path(id));
        let (attributes, bare) = value.split();
        match (&node.body, bare) {
            (Body::Scalar(_) | Body::Document(_), bare) => self.set_value(id, bare)?,
            (Body::List(_), bare @ Value::List(_)) => {
                self.remove_children(id)?;
                self.fill_children(id, bare)?;
            }
            (Body::Map, bare @ Value::Map(_)) if options.force => {
                self.remove_children(id)?;
                self.fill_children(id, bare)?;
            }
            (Body::Map, Value::Map(_)) => {
                let message = format!(
                    "Map node {path} cannot be set as a whole: its children would be lost; \
                     give \"force\" to replace them"
                );
                return Err(Failure::new(message).with("path", path));
            }
            (Body::Map, bare) => return Err(wrong_type(&path, "map", &bare).with("path", path.as_str())),
            (Body::List(_), bare) => return Err(wrong_type(&path, "list", &bare).with("path", path.as_str())),
            _ => return Err(unsupported("set", &path, node_type.name())),
        }
        self.set_all_attributes(id, attributes)
    }

    fn set_inside_document(
        &mut self,
        id: ObjectId,
        steps: &[Step],
        value: Value,
        options: SetOptions,
    ) -> Result<(), Failure> {
        let path = self.path(id);
        let Body::Document(content) = &self.expect_node(id)?.body else {
            return Err(self.not_a(id, "set"));
        };
        let mut content = content.clone();
        value_set(&mut content, &path, steps, value, options.recursive)?;
        self.set_value(id, content)
    }
}
