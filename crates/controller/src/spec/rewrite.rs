//! Operations that only have rows written anew: an erase, and a merge that cannot take chunks as they are. They
//! are maps whose jobs pass on what they read; nobody may have such jobs do anything else.

use super::map::{MapSpec, read_cutting};
use super::merge::{MergeMode, MergeSpec, SchemaInference, path};
use super::reader::Reader;
use super::root::RootOptions;
use super::script::UserScript;
use super::speculation::Speculation;
use super::task::TaskSpec;
use crate::cut::Cutting;
use vocab::Failure;
use yson::Map;
use yson::ypath::YPath;

/// Attributes of a path by which rows are selected.
const ROWS: [&str; 4] = ["ranges", "lower_limit", "upper_limit", "exact"];
/// Attributes of a path by which columns are.
const COLUMNS: [&str; 2] = ["columns", "rename_columns"];

/// Rows of `table_path` that its ranges do not name stay, the others go: the whole table, if it has no ranges.
pub(super) fn read_erase(
    r: &mut Reader<'_>,
    root: &RootOptions,
    max_job_count: u32,
) -> Result<(MapSpec, TaskSpec), Failure> {
    let at = r.path_of("table_path");
    let table = path(&r.any("table_path").required()?, &at)?;
    if let Some(name) = COLUMNS.into_iter().chain(["append"]).find(|name| has(&table, name)) {
        return Err(r.refuse("table_path", format_args!("rows are erased as a whole, found \"{name}\"")));
    }
    // Chunks that are written anew are as large as they can be, whatever was asked.
    r.bool("combine_chunks").or(false)?;
    SchemaInference::read(r, false)?;
    r.map("job_io").or(Map::new())?;
    let cutting = read_cutting(r, max_job_count)?;
    let output = YPath { attributes: Map::new(), ..table.clone() };
    let task = rewriting_task("ordered_merge", root, output)?;
    Ok((MapSpec { outside: true, ..of(vec![table], cutting) }, task))
}

/// A merge with jobs, if there is no other way to do it; of a sorted one nobody knows that before the tables are
/// there.
pub(super) fn of_merge(
    merge: &MergeSpec,
    cutting: Cutting,
    root: &RootOptions,
) -> Result<Option<(MapSpec, TaskSpec)>, Failure> {
    let merge_by = (merge.mode == MergeMode::Sorted).then(|| merge.merge_by.clone());
    if merge_by.is_none() && !merge.must_write_anew() {
        return Ok(None);
    }
    let job_type = match merge.mode {
        MergeMode::Unordered => "unordered_merge",
        MergeMode::Ordered => "ordered_merge",
        MergeMode::Sorted => "sorted_merge",
    };
    let task = rewriting_task(job_type, root, merge.output.clone())?;
    Ok(Some((MapSpec { merge_by, ..of(merge.inputs.clone(), cutting) }, task)))
}

/// Rows or columns of a table, not all of it.
pub(super) fn selects(path: &YPath) -> bool {
    ROWS.into_iter().chain(COLUMNS).any(|name| has(path, name))
}

/// Columns of a table, or others than it has.
pub(super) fn selects_columns(path: &YPath) -> bool {
    COLUMNS.into_iter().any(|name| has(path, name))
}

/// An output that is to be other than it is.
pub(super) fn has_form(path: &YPath) -> bool {
    ["schema", "sorted_by"].into_iter().any(|name| has(path, name))
}

fn has(path: &YPath, name: &str) -> bool {
    path.attributes.get(name).is_some_and(|value| !value.is_entity())
}

fn of(inputs: Vec<YPath>, cutting: Cutting) -> MapSpec {
    // No marks: they would become rows.
    MapSpec { inputs, outside: false, ordered: true, merge_by: None, cutting, control_attributes: Map::new() }
}

/// Its jobs read and write in the form in which rows lie in chunks.
fn rewriting_task(job_type: &'static str, root: &RootOptions, output: YPath) -> Result<TaskSpec, Failure> {
    let options = yson::map! {
        "command" => "exec cat",
        "memory_limit" => 64i64 << 20,
        // Half a result would be worse than none.
        "check_input_fully_consumed" => true,
    };
    let script = UserScript::read(&mut Reader::new(&options, ""), &root.job_proxy_memory_digest)?;
    Ok(TaskSpec {
        name: job_type.to_owned(),
        job_type,
        speculation: (!root.try_avoid_duplicating_jobs).then(|| Speculation::of(&script, root)),
        script,
        // Known when the tables are.
        job_count: 0,
        expected_job_count: 0,
        restart_completed_jobs: false,
        gang_size: None,
        exclusive: false,
        outputs: vec![output],
    })
}
