//! Parameters of table commands (http-api.md 8.3).

use super::files::append;
use super::params::{Params, Result, required};
use super::transactions::refuse_prerequisites;
use crate::{ReadTable, WriteTable};
use kernel::command::Command;
use vocab::Failure;
use yson::ypath::YPath;
use yson::{Format, Map, Value};

/// Parameters of `write_table`.
pub fn write_table(params: &Params, format: Format) -> Result<WriteTable> {
    let path = required("path", params.path("path"))?;
    refuse_prerequisites(params, "write_table")?;
    let attribute = |name: &str| path.attributes.get(name).filter(|v| !v.is_entity());
    let sorted_by = match attribute("sorted_by") {
        None => None,
        Some(value) => {
            let names = value.as_list().and_then(|list| {
                list.iter().map(|v| v.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
            });
            let wrong = || Failure::new("Attribute \"sorted_by\" of the path must be a list of strings");
            let names = names.filter(|n| !n.is_empty()).ok_or_else(wrong)?;
            if let Some(odd) = names
                .iter()
                .enumerate()
                .find_map(|(at, name)| (name.is_empty() || names[..at].contains(name)).then_some(name))
            {
                return Err(Failure::new(format!(
                    "Attribute \"sorted_by\" of the path must name different columns, found {odd:?} {}",
                    if odd.is_empty() { "among them" } else { "twice" }
                )));
            }
            Some(names)
        }
    };
    Ok(WriteTable {
        append: append(&path)?,
        sorted_by,
        schema: attribute("schema").cloned(),
        format,
        transaction: params.transaction()?,
        mutation_id: None,
        path,
    })
}

/// Parameters of `read_table`.
pub fn read_table(params: &Params, format: Format) -> Result<ReadTable> {
    Ok(ReadTable {
        path: required("path", params.path("path"))?,
        format,
        control: control_attributes(params)?,
        transaction: params.transaction()?,
        omit_inaccessible_columns: params.flag("omit_inaccessible_columns")?,
        start_row_index_only: params.flag("start_row_index_only")?,
    })
}

/// All of them are Booleans, which a query string can only spell (http-api.md 2.4).
fn control_attributes(params: &Params) -> Result<Map> {
    let given = params.map("control_attributes")?.unwrap_or_default();
    let Some(own) = params.inside("control_attributes")? else { return Ok(given) };
    // What is none is refused by whoever knows their names.
    let meant = |(name, value): (Vec<u8>, Value)| {
        let flag = std::str::from_utf8(&name).ok().and_then(|name| own.boolean(name).ok().flatten());
        (name, flag.map_or(value, Value::from))
    };
    Ok(given.into_iter().map(meant).collect())
}

/// More tables than anybody reads in one go; each is looked at chunk by chunk.
const MAX_PATHS: usize = 1000;

pub(super) fn columnar_statistics(params: &Params) -> Result<Command> {
    let paths = required("paths", Ok(params.value("paths").cloned()))?;
    let wrong = || {
        let text = format!("Parameter \"paths\" must be a list of at most {MAX_PATHS} paths");
        Failure::new(text).with("parameter", "paths")
    };
    let list = paths.as_list().filter(|list| list.len() <= MAX_PATHS).ok_or_else(wrong)?;
    let path =
        |v: &Value| YPath::from_value(v).map_err(|e| Failure::new(format!("Cannot parse \"paths\": {e}")));
    Ok(Command::GetTableColumnarStatistics { paths: list.iter().map(path).collect::<Result<_>>()? })
}

pub(super) fn alter_table(params: &Params) -> Result<Command> {
    let schema = params.value("schema").cloned();
    let path = required("path", params.path("path"))?;
    if params.flag("dynamic")? {
        return Err(Failure::new("Dynamic tables are not supported: parameter \"dynamic\" must be %false"));
    }
    Ok(Command::AlterTable { path, schema: required("schema", Ok(schema))? })
}

pub(super) fn concatenate(params: &Params) -> Result<Command> {
    let sources = required("source_paths", Ok(params.value("source_paths").cloned()))?;
    let list = sources
        .as_list()
        .ok_or_else(|| Failure::new("Parameter \"source_paths\" must be a list of paths"))?;
    let path = |v: &Value| {
        YPath::from_value(v).map_err(|e| Failure::new(format!("Cannot parse \"source_paths\": {e}")))
    };
    let sources = list.iter().map(path).collect::<Result<_>>()?;
    let destination = required("destination_path", params.path("destination_path"))?;
    let append = append(&destination)?;
    Ok(Command::Concatenate { sources, destination, append, joined: None })
}
