//! What a merge is asked to do (jobs-and-nodes.md 8.4, http-api.md 9.7).

use super::reader::{Reader, expected, refuse_at};
use vocab::Failure;
use yson::Value;
use yson::ypath::YPath;

/// In which order the rows of the inputs become those of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MergeMode {
    /// In any.
    Unordered,
    /// One input after another.
    Ordered,
    /// By keys: inputs and output are sorted.
    Sorted,
}

const MODES: [(&str, MergeMode); 3] =
    [("unordered", MergeMode::Unordered), ("ordered", MergeMode::Ordered), ("sorted", MergeMode::Sorted)];

/// A merge without jobs: chunks of the inputs become chunks of the output. Its tables are resolved by the
/// owner of the metadata tree.
#[derive(Clone, PartialEq, Debug)]
pub struct MergeSpec {
    /// In order, at least one.
    pub inputs: Vec<YPath>,
    /// May have `append`.
    pub output: YPath,
    /// How.
    pub mode: MergeMode,
    /// By which columns a sorted output is sorted; none: by those that all inputs are sorted by.
    pub merge_by: Vec<String>,
}

impl MergeSpec {
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<MergeSpec, Failure> {
        let inputs = paths(r, "input_table_paths")?;
        let at = r.path_of("output_table_path");
        let output = path(&r.any("output_table_path").required()?, &at)?;
        let name = r.string("mode").or("unordered".to_owned())?;
        let mode = MODES.iter().find(|(n, _)| *n == name).map(|(_, mode)| *mode).ok_or_else(|| {
            r.refuse("mode", format_args!("expected one of unordered, ordered, sorted, found {name:?}"))
        })?;
        let merge_by = r.strings("merge_by").or(Vec::new())?;
        // Chunks are taken as they are: what would have them written anew must not be passed over.
        for option in ["combine_chunks", "force_transform"] {
            if r.bool(option).or(false)? {
                return Err(
                    r.refuse(option, "rows are not written anew by a merge: only %false is supported")
                );
            }
        }
        // Advice for jobs, of which there are none.
        r.map("job_io").or(yson::Map::new())?;
        for option in ["job_count", "data_size_per_job", "data_weight_per_job"] {
            r.int(option, 1..=i64::MAX).optional()?;
        }
        Ok(MergeSpec { inputs, output, mode, merge_by })
    }
}

/// A list of tables, at least one.
pub(super) fn paths(r: &mut Reader<'_>, name: &'static str) -> Result<Vec<YPath>, Failure> {
    let at = r.path_of(name);
    let listed = r.list(name).required()?;
    if listed.is_empty() {
        return Err(refuse_at(&at, "expected at least one table"));
    }
    listed.iter().enumerate().map(|(i, v)| path(v, &format!("{at}/{i}"))).collect()
}

pub(super) fn path(value: &Value, at: &str) -> Result<YPath, Failure> {
    if value.as_bytes().is_none() {
        return Err(refuse_at(at, expected("path", value)));
    }
    YPath::from_value(value).map_err(|e| refuse_at(at, e))
}
