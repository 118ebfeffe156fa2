//! Options of the scheduler, the tree and pools: read by the scheduler's own readers, changed one by one.

use crate::Refusal;
use crate::read::{Node, Object};
use vocab::Failure;
use yson::{Map, Value};

/// The old options with those of an object over them, and what the scheduler makes of them.
///
/// A null takes an option back. `own` are keys of the object that are not options.
pub(super) fn merged<T>(
    old: &Map,
    node: &Node<'_>,
    own: &[&str],
    parse: impl FnOnce(&Map) -> Result<(T, Map), Failure>,
) -> Result<(Map, T), Refusal> {
    let object = node.any_object()?;
    let mut options = old.clone();
    for (key, given) in object.entries().filter(|(key, _)| !own.contains(key)) {
        match given.value {
            Value::Entity => drop(options.remove(key)),
            value => drop(options.insert(key, value.clone())),
        }
    }
    let (parsed, unknown) = parse(&options).map_err(|failure| refusal(&object, &failure))?;
    match unknown.key_strings().next() {
        None => Ok((options, parsed)),
        Some(key) => Err(object.at(&key).refuse("unknown option".to_owned())),
    }
}

/// A failure of the reader of options as one of the line, at the option that it names.
fn refusal(object: &Object<'_>, failure: &Failure) -> Refusal {
    let option = failure.find_attribute("option").and_then(Value::as_str);
    let mut refusal = object.as_node().refuse(failure.message.clone());
    if let Some(option) = option {
        refusal.pointer.push('/');
        refusal.pointer.push_str(option);
    }
    refusal
}
