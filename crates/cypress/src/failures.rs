//! The errors that users see most, in one voice. Each carries the attribute `path`.

use vocab::{Failure, ObjectId, code};

/// Bytes of a key in an error message, cut if long.
pub fn show(key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    match text.char_indices().nth(100) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.into_owned(),
    }
}

/// 500: a map without that key.
pub fn no_child(path: &str, key: &[u8]) -> Failure {
    let key_shown = show(key);
    Failure::resolve(format!("Node {path} has no child with key \"{key_shown}\""))
        .with("path", join(path, key))
        .with("missing_key", key_shown)
}

/// 500: a list without that index.
pub fn no_item(path: &str, index: &[u8], count: usize) -> Failure {
    let shown = show(index);
    Failure::resolve(format!("Node {path} has no child with index {shown}: it has {count} items"))
        .with("path", join(path, index))
}

/// 500: no such attribute.
pub fn no_attribute(path: &str, name: &[u8]) -> Failure {
    let shown = show(name);
    Failure::resolve(format!("Attribute \"{shown}\" of {path} is not found"))
        .with("path", format!("{path}/@{shown}"))
        .with("missing_attribute", shown)
}

/// 500: the path goes on below something that has nothing below it.
pub fn cannot_have_children(path: &str, what: &str) -> Failure {
    Failure::resolve(format!("{path} cannot have children: it is of type \"{what}\"")).with("path", path)
}

/// 500: nobody knows the id.
pub fn no_object(id: ObjectId) -> Failure {
    Failure::resolve(format!("No such object {id}")).with("path", format!("#{id}")).with("object_id", id)
}

/// 501.
pub fn already_exists(path: &str) -> Failure {
    Failure::coded(code::ALREADY_EXISTS, format!("Node {path} already exists")).with("path", path)
}

/// 1: the command is not for nodes (or values) of this type.
pub fn unsupported(command: &str, path: &str, what: &str) -> Failure {
    Failure::new(format!("Command \"{command}\" is not supported for {path} of type \"{what}\""))
        .with("path", path)
}

/// 1: read-only attribute.
pub fn read_only_attribute(path: &str, name: &[u8]) -> Failure {
    let shown = show(name);
    Failure::new(format!("Attribute \"{shown}\" of {path} cannot be changed: it is a system attribute"))
        .with("path", format!("{path}/@{shown}"))
        .with("attribute", shown)
}

/// 1: wrong type of a value.
pub fn wrong_type(what: &str, expected: &str, found: &yson::Value) -> Failure {
    Failure::new(format!("{what}: expected {expected}, found {}", found.type_name()))
        .with("expected_type", expected)
        .with("actual_type", found.type_name())
}

/// 901 (http-api.md 8.4).
pub fn access_denied(user: &str, permission: &str, object_name: &str) -> Failure {
    Failure::coded(
        code::ACCESS_DENIED,
        format!("Access denied: user \"{user}\" has no permission \"{permission}\" for {object_name}"),
    )
    .with("permission", permission)
    .with("user", user)
    .with("object_name", object_name)
}

/// 1: `/*`, `/end` and the like where they mean nothing.
pub(crate) fn odd_step_after(path: &str, step: &yson::ypath::Step) -> Failure {
    let shown = crate::walk::show_steps("", std::slice::from_ref(step));
    Failure::new(format!("\"{shown}\" has no meaning after {path}")).with("path", path)
}

/// A path with one more key.
pub(crate) fn join(path: &str, key: &[u8]) -> String {
    format!("{path}/{}", crate::walk::literal(key))
}
