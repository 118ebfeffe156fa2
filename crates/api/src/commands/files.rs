//! Parameters of file commands (http-api.md 8.3).

use super::params::{Params, Result, required};
use crate::WriteFile;
use vocab::Failure;
use yson::Value;
use yson::ypath::YPath;

/// Parameters of `write_file`.
pub fn write_file(params: &Params) -> Result<WriteFile> {
    let path = required("path", params.path("path"))?;
    let append = match path.attributes.get("append").map(Value::bare) {
        None | Some(Value::Entity) => false,
        Some(Value::Bool(append)) => *append,
        // `<append=true>` in a text path is a string.
        Some(Value::String(s)) if s == b"true" || s == b"false" => s == b"true",
        Some(other) => {
            let found = other.type_name();
            return Err(Failure::new(format!(
                "Attribute \"append\" of the path must be boolean, found {found}"
            )));
        }
    };
    Ok(WriteFile { append, compute_md5: params.flag("compute_md5")?, path })
}

/// Parameters of `read_file`: path, offset, length.
pub fn read_file(params: &Params) -> Result<(YPath, u64, Option<u64>)> {
    let path = required("path", params.path("path"))?;
    Ok((path, params.unsigned("offset")?.unwrap_or(0), params.unsigned("length")?))
}
