//! The options of a case: read by the crate that acts on them, told as fields of the line.

use crate::Refusal;
use crate::read::Object;
use yson::Map;
use yson::fields::{FieldError, Fields};

/// Reads the object `options` of a case. Whatever `read` leaves is refused; `known` are the names that
/// it would have taken.
pub(crate) fn read<T>(
    case: &Object<'_>,
    known: &[&str],
    read: impl FnOnce(&mut Fields<'_>) -> Result<T, FieldError>,
) -> Result<T, Refusal> {
    let empty = Map::new();
    let node = case.get("options");
    let object = node.as_ref().map(|node| node.any_object()).transpose()?;
    let map = node.as_ref().and_then(|node| node.value.as_map()).unwrap_or(&empty);
    if let Some(object) = &object
        && let Some((_, stranger)) = object.entries().find(|(key, _)| !known.contains(key))
    {
        return Err(stranger.refuse(format!("unknown option, known are {}", known.join(", "))));
    }
    read(&mut Fields::new(map, "")).map_err(|error| {
        let (path, why) = reserve::error_parts(&error);
        Refusal { pointer: format!("/options/{path}"), message: why.to_owned() }
    })
}
