//! Commands of the metadata tree.

use super::Session;
use crate::args::{CreateArgs, GetArgs, ListArgs, PathArgs, RemoveArgs, SetArgs};
use crate::error::CliError;
use crate::views::{Done, Names, Scalar, Tree};
use client::CreateFlags;
use std::io::Read;

pub fn get(session: &Session, args: &GetArgs) -> Result<(), CliError> {
    let attributes: Vec<&str> = args.attribute.iter().map(String::as_str).collect();
    session.screen.show(&Tree(session.client.get(&args.path, &attributes)?))
}

pub fn list(session: &Session, args: &ListArgs) -> Result<(), CliError> {
    let mut attributes: Vec<&str> = args.attribute.iter().map(String::as_str).collect();
    if args.long {
        attributes.extend(Names::LONG);
    }
    let names = session.client.list(&args.path, &attributes)?;
    session.screen.show(&Names { names, columns: args.attribute.clone(), long: args.long })
}

pub fn exists(session: &Session, args: &PathArgs) -> Result<(), CliError> {
    session.screen.show(&Scalar(session.client.exists(&args.path)?.into()))
}

pub fn set(session: &Session, args: &SetArgs) -> Result<(), CliError> {
    let mut text = args.value.clone().into_bytes();
    if args.value == "-" {
        text.clear();
        std::io::stdin()
            .read_to_end(&mut text)
            .map_err(|e| CliError::failed(format!("cannot read the value from stdin: {e}")))?;
    }
    let value = yson::parse(&text).map_err(|e| {
        CliError::usage(format!("the value is not YSON: {e}"))
            .with_hint("a map is {key=value; ...}, a list [1; 2], text with spaces is in double quotes")
    })?;
    session.client.set(&args.path, &value, args.recursive, args.force)?;
    session.screen.show(&Done { verb: "set", names: vec![args.path.clone()] })
}

pub fn create(session: &Session, args: CreateArgs) -> Result<(), CliError> {
    let attributes = args.attributes.unwrap_or_default();
    let id = match &args.path {
        Some(path) => {
            let flags = CreateFlags {
                recursive: args.recursive,
                ignore_existing: args.ignore_existing,
                force: args.force,
            };
            session.client.create(&args.node_type, path, attributes, flags)?
        }
        None => session.client.create_object(&args.node_type, attributes, args.ignore_existing)?,
    };
    session.screen.show(&Scalar(id.to_string().into()))
}

pub fn remove(session: &Session, args: &RemoveArgs) -> Result<(), CliError> {
    session.client.remove(&args.path, args.recursive, args.force).map_err(|error| {
        let full = error.failure().is_some_and(|f| f.code == vocab::code::GENERIC) && !args.recursive;
        let error = CliError::from(error);
        if full { error.with_hint("--recursive removes what is below too") } else { error }
    })?;
    session.screen.show(&Done { verb: "removed", names: vec![args.path.clone()] })
}
