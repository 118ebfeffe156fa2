//! Parameters of file commands (http-api.md 8.3).

use super::params::{Params, Result, required};
use super::transactions::refuse_prerequisites;
use crate::{ReadFile, WriteFile};
use kernel::command::Command;
use vocab::Failure;
use yson::Value;
use yson::ypath::YPath;

/// Parameters of `write_file`.
pub fn write_file(params: &Params) -> Result<WriteFile> {
    let path = required("path", params.path("path"))?;
    refuse_prerequisites(params, "write_file")?;
    refuse_parts(&path)?;
    Ok(WriteFile {
        append: append(&path)?,
        compute_md5: params.flag("compute_md5")?,
        path,
        transaction: params.transaction()?,
    })
}

/// Is it asked to write behind what is there?
pub(super) fn append(path: &YPath) -> Result<bool> {
    match path.attributes.get("append").map(Value::bare) {
        None | Some(Value::Entity) => Ok(false),
        Some(Value::Bool(append)) => Ok(*append),
        // `<append=true>` in a text path is a string.
        Some(Value::String(s)) if s == b"true" || s == b"false" => Ok(s == b"true"),
        Some(other) => {
            let found = other.type_name();
            Err(Failure::new(format!("Attribute \"append\" of the path must be boolean, found {found}")))
        }
    }
}

/// Parameters of `read_file`.
pub fn read_file(params: &Params) -> Result<ReadFile> {
    let path = required("path", params.path("path"))?;
    refuse_parts(&path)?;
    Ok(ReadFile {
        path,
        offset: params.unsigned("offset")?.unwrap_or(0),
        length: params.unsigned("length")?,
        transaction: params.transaction()?,
    })
}

/// A file has no rows and no columns: who selects some means something else than all of it.
fn refuse_parts(path: &YPath) -> Result<()> {
    let given = |name: &&str| path.attributes.get(name).is_some_and(|value| !value.is_entity());
    match ["columns", "ranges", "lower_limit", "upper_limit", "exact"].into_iter().find(|name| given(name)) {
        None => Ok(()),
        Some(name) => Err(Failure::new(format!(
            "Attribute {name:?} of path {path} is not allowed: a file has no rows and no columns"
        ))
        .with("path", path.text())),
    }
}

pub(super) fn get_file_from_cache(params: &Params) -> Result<Command> {
    Ok(Command::GetFileFromCache { md5: md5(params)?, cache_path: cache_path(params)? })
}

pub(super) fn put_file_to_cache(params: &Params) -> Result<Command> {
    Ok(Command::PutFileToCache {
        path: required("path", params.path("path"))?,
        md5: md5(params)?,
        cache_path: cache_path(params)?,
        preserve_expiration_timeout: params.flag("preserve_expiration_timeout")?,
    })
}

fn cache_path(params: &Params) -> Result<YPath> {
    required("cache_path", params.path("cache_path"))
}

/// The name of a file in the cache is its checksum, so that must be one.
fn md5(params: &Params) -> Result<String> {
    let md5: String = required("md5", params.string("md5"))?;
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if md5.len() == 32 && md5.chars().all(is_digit) {
        return Ok(md5);
    }
    let shown: String = md5.chars().take(100).collect();
    Err(Failure::new(format!("Parameter \"md5\" is {shown:?}, expected 32 lower-case hex digits")))
}
