//! Canonical text of a path.

use super::{Root, Step, YPath, literal};
use crate::{Value, write};
use std::fmt;

pub(super) fn write(path: &YPath, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if !path.attributes.is_empty() {
        // `<...>#`: the entity is there to carry the attributes and is cut off again.
        let attributes = Value::Entity.with_attributes(path.attributes.clone());
        let text = write::to_text_string(&attributes);
        f.write_str(&text[..text.len() - 1])?;
    }
    f.write_str(&text(path))
}

pub(super) fn text(path: &YPath) -> String {
    let mut out = match &path.root {
        Root::Tree => "/".to_owned(),
        Root::Object(id) => format!("#{id}"),
    };
    for step in &path.steps {
        match step {
            Step::Child(key) => child(key, &mut out),
            Step::Attribute(name) => {
                out.push_str("/@");
                out.push_str(&literal::escape_literal(name));
            }
            Step::AllAttributes => out.push_str("/@"),
            Step::NoFollow => out.push('&'),
            Step::ListBegin => out.push_str("/begin"),
            Step::ListEnd => out.push_str("/end"),
            Step::ListBefore(i) => out.push_str(&format!("/before:{i}")),
            Step::ListAfter(i) => out.push_str(&format!("/after:{i}")),
            Step::AllChildren => out.push_str("/*"),
            Step::AllUserAttributes => out.push_str("/@*"),
        }
    }
    out
}

/// A key that looks like a list position gets its first byte escaped, so that it stays a key.
fn child(key: &[u8], out: &mut String) {
    out.push('/');
    let mut rest = key;
    if literal::list_position(key).is_some() {
        literal::push_hex(key[0], out);
        rest = &key[1..];
    }
    for byte in rest {
        literal::push_escaped(*byte, out);
    }
}
