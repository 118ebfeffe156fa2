//! Commands of the tree (http-api.md 8.1).

use super::params::{Params, Result, required};
use kernel::command::{Command, CopyOptions};
use vocab::Failure;
use yson::ypath::YPath;
use yson::{Map, Value};

fn path(params: &Params, name: &str) -> Result<YPath> {
    required(name, params.path(name))
}

pub(super) fn get(params: &Params) -> Result<Command> {
    Ok(Command::Get {
        path: path(params, "path")?,
        attributes: params.attribute_names()?.unwrap_or_default(),
        max_size: params.count("max_size")?,
        fields: params.strings("fields")?,
    })
}

pub(super) fn list(params: &Params) -> Result<Command> {
    Ok(Command::List {
        path: path(params, "path")?,
        attributes: params.attribute_names()?.unwrap_or_default(),
        max_size: params.count("max_size")?,
    })
}

pub(super) fn exists(params: &Params) -> Result<Command> {
    Ok(Command::Exists { path: path(params, "path")? })
}

pub(super) fn set(params: &Params, value: Value) -> Result<Command> {
    Ok(Command::Set {
        path: path(params, "path")?,
        value,
        recursive: params.flag("recursive")?,
        force: params.flag("force")?,
    })
}

pub(super) fn multiset_attributes(params: &Params, value: Value) -> Result<Command> {
    match value.into_bare() {
        Value::Map(attributes) => Ok(Command::MultisetAttributes { path: path(params, "path")?, attributes }),
        other => Err(Failure::new(format!(
            "The body of \"multiset_attributes\" must be a map of attributes, found {}",
            other.type_name()
        ))),
    }
}

pub(super) fn create(params: &Params) -> Result<Command> {
    let path = match params.value("path") {
        Some(_) => Some(path(params, "path")?),
        None => None,
    };
    Ok(Command::Create {
        object_type: required("type", params.string("type"))?,
        path,
        attributes: attributes(params)?,
        recursive: params.flag("recursive")?,
        ignore_existing: params.flag("ignore_existing")?,
        force: params.flag("force")?,
        ignore_type_mismatch: params.flag("ignore_type_mismatch")?,
        lock_existing: params.flag("lock_existing")?,
    })
}

pub(super) fn remove(params: &Params) -> Result<Command> {
    Ok(Command::Remove {
        path: path(params, "path")?,
        recursive: params.flag("recursive")?,
        force: params.flag("force")?,
    })
}

pub(super) fn copy(params: &Params) -> Result<Command> {
    copy_or_move(params, false)
}

pub(super) fn move_(params: &Params) -> Result<Command> {
    copy_or_move(params, true)
}

fn copy_or_move(params: &Params, remove_source: bool) -> Result<Command> {
    let ignore_existing = !remove_source && params.flag("ignore_existing")?;
    if ignore_existing && params.flag("force")? {
        return Err(Failure::new("\"ignore_existing\" and \"force\" cannot be given together"));
    }
    Ok(Command::CopyMove {
        source: path(params, "source_path")?,
        destination: path(params, "destination_path")?,
        remove_source,
        options: CopyOptions {
            recursive: params.flag("recursive")?,
            force: params.flag("force")?,
            ignore_existing,
            preserve_account: params.flag("preserve_account")?,
            preserve_acl: params.flag("preserve_acl")?,
            preserve_owner: params.flag("preserve_owner")?,
            // What is moved is as old as it was, for the reference as well.
            preserve_creation_time: params.boolean("preserve_creation_time")?.unwrap_or(remove_source),
            preserve_modification_time: params.flag("preserve_modification_time")?,
            preserve_expiration_time: params.flag("preserve_expiration_time")?,
            preserve_expiration_timeout: params.flag("preserve_expiration_timeout")?,
        },
    })
}

pub(super) fn link(params: &Params) -> Result<Command> {
    Ok(Command::Link {
        target: path(params, "target_path")?,
        link: path(params, "link_path")?,
        recursive: params.flag("recursive")?,
        ignore_existing: params.flag("ignore_existing")?,
        force: params.flag("force")?,
        attributes: attributes(params)?,
    })
}

fn attributes(params: &Params) -> Result<Map> {
    Ok(params.map("attributes")?.unwrap_or_default())
}
