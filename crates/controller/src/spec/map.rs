//! What a map is asked to do (jobs-and-nodes.md 8.4).

use super::merge::{SchemaInference, paths};
use super::reader::Reader;
use super::root::RootOptions;
use super::script::UserScript;
use super::speculation::Speculation;
use super::task::{OUTPUTS, TaskSpec, check_format, read_outputs};
use crate::cut::Cutting;
use vocab::Failure;
use yson::Map;
use yson::ypath::YPath;

/// A map: rows of the inputs go through the mapper, what it writes becomes rows of the outputs. Its tables are
/// resolved by the owner of the metadata tree.
#[derive(Clone, PartialEq, Debug)]
pub struct MapSpec {
    /// In order, at least one; may have columns and ranges.
    pub inputs: Vec<YPath>,
    /// Read are the rows that these paths do not name: those that an erase leaves.
    pub outside: bool,
    /// Rows are given to jobs, and outputs put together, in the order of the input. They always are.
    pub ordered: bool,
    /// Rows of all inputs, which are sorted, are read in the order of their keys: by these columns, or (none) by those
    /// that all inputs are sorted by.
    pub merge_by: Option<Vec<String>>,
    /// How the input becomes units of work.
    pub cutting: Cutting,
    /// Marks between rows that the mapper wants: `{enable_table_index; enable_row_index; enable_range_index}`.
    pub control_attributes: Map,
}

/// Name of the only task.
const TASK: &str = "map";
const DATA_WEIGHT_PER_JOB: i64 = 128 << 20;

impl MapSpec {
    pub(crate) fn read(
        r: &mut Reader<'_>,
        root: &RootOptions,
        max_job_count: u32,
    ) -> Result<(MapSpec, TaskSpec), Failure> {
        let inputs = paths(r, "input_table_paths")?;
        let listed = r.list(OUTPUTS).required()?;
        let outputs = read_outputs(r, &listed)?;
        if r.raw("mapper")?.is_none() {
            return Err(Failure::new("Missing required option /mapper of the spec").with("path", "/mapper"));
        }
        let (script, table_index) = r.section("mapper", |r| {
            let script = UserScript::read(r, &root.job_proxy_memory_digest)?;
            check_format(r, "input_format", &script.input_format)?;
            check_format(r, "output_format", &script.output_format)?;
            Ok((script, r.bool("enable_input_table_index").or(inputs.len() > 1)?))
        })?;
        let control_attributes = r.section("job_io", |r| read_control_attributes(r, table_index))?;
        let cutting = read_cutting(r, max_job_count)?;
        SchemaInference::read(r, true)?;
        let ordered = r.bool("ordered").or(false)?;
        // Advice about chunks, which are never small here, and about where to put them.
        for option in ["auto_merge", "table_writer"] {
            r.map(option).optional()?;
        }
        // Rows count once, whoever wrote them, so a second run does no harm to the tables (6.7).
        let speculation = (!root.try_avoid_duplicating_jobs).then(|| Speculation::of(&script, root));
        let task = TaskSpec {
            name: TASK.to_owned(),
            job_type: "map",
            script,
            // Known when the tables are.
            job_count: 0,
            expected_job_count: 0,
            restart_completed_jobs: false,
            gang_size: None,
            speculation,
            exclusive: false,
            outputs,
        };
        Ok((MapSpec { inputs, outside: false, ordered, merge_by: None, cutting, control_attributes }, task))
    }
}

/// Options that say into how many jobs.
pub(super) const CUTTING: [&str; 4] =
    ["job_count", "data_weight_per_job", "data_size_per_job", "max_job_count"];

pub(super) fn read_cutting(r: &mut Reader<'_>, max_job_count: u32) -> Result<Cutting, Failure> {
    let most = i64::from(max_job_count);
    let job_count = r.int("job_count", 1..=most).optional()?;
    let weight = r.int(["data_weight_per_job", "data_size_per_job"], 1..=i64::MAX).or(DATA_WEIGHT_PER_JOB)?;
    let max = r.int("max_job_count", 1..=most).or(most)?;
    Ok(Cutting {
        job_count: job_count.map(|n| n as u32),
        data_weight_per_job: weight.unsigned_abs(),
        max_job_count: max as u32,
    })
}

fn read_control_attributes(r: &mut Reader<'_>, table_index: bool) -> Result<Map, Failure> {
    for option in ["table_reader", "table_writer"] {
        r.map(option).optional()?;
    }
    r.section("control_attributes", |r| {
        Ok(yson::map! {
            "enable_table_index" => r.bool("enable_table_index").or(table_index)?,
            "enable_row_index" => r.bool("enable_row_index").or(false)?,
            "enable_range_index" => r.bool("enable_range_index").or(false)?,
        })
    })
}
