//! What a merge is asked to do (jobs-and-nodes.md 8.4, http-api.md 9.7).

use super::reader::{Reader, expected, refuse_at};
use super::rewrite::{has_form, selects, selects_columns};
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

/// Where the schema of an output table comes from that has none of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SchemaInference {
    /// From the inputs, if they agree.
    Auto,
    /// From the inputs, which must agree.
    FromInput,
    /// It stays without one.
    FromOutput,
}

const INFERENCES: [(&str, SchemaInference); 3] = [
    ("auto", SchemaInference::Auto),
    ("from_input", SchemaInference::FromInput),
    ("from_output", SchemaInference::FromOutput),
];

impl SchemaInference {
    /// Rows of a mapper have nothing to do with the schemas of what it reads.
    pub(super) fn read(r: &mut Reader<'_>, for_mapper: bool) -> Result<SchemaInference, Failure> {
        const OPTION: &str = "schema_inference_mode";
        let name = r.string(OPTION).or("auto".to_owned())?;
        let allowed = || INFERENCES.iter().filter(|(_, i)| !for_mapper || *i != SchemaInference::FromInput);
        let found = allowed().find(|(n, _)| *n == name).map(|(_, inference)| *inference);
        found.ok_or_else(|| {
            let names: Vec<&str> = allowed().map(|(name, _)| *name).collect();
            r.refuse(OPTION, format_args!("expected one of {}, found {name:?}", names.join(", ")))
        })
    }
}

/// A merge. Chunks of whole tables become chunks of the output, without jobs; what is more than that is written
/// anew ([`super::rewrite`]). Its tables are resolved by the owner of the metadata tree.
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
    /// For an output that has no schema.
    pub schema_inference: SchemaInference,
    /// By jobs, even if the chunks could be taken as they are.
    pub write_anew: bool,
}

impl MergeSpec {
    /// Chunks cannot be taken as they are, whatever is in the tables.
    pub fn must_write_anew(&self) -> bool {
        self.write_anew || self.inputs.iter().any(selects) || self.has_form()
    }

    /// Its path says what the output is to be.
    pub fn has_form(&self) -> bool {
        has_form(&self.output)
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<MergeSpec, Failure> {
        let inputs = paths(r, "input_table_paths")?;
        let at = r.path_of("output_table_path");
        let output = path(&r.any("output_table_path").required()?, &at)?;
        let name = r.string("mode").or("unordered".to_owned())?;
        let mode = MODES.iter().find(|(n, _)| *n == name).map(|(_, mode)| *mode).ok_or_else(|| {
            r.refuse("mode", format_args!("expected one of unordered, ordered, sorted, found {name:?}"))
        })?;
        if mode == MergeMode::Sorted
            && let Some(i) = inputs.iter().position(selects_columns)
        {
            let at = format!("{}/{i}", r.path_of("input_table_paths"));
            return Err(refuse_at(
                &at,
                "rows are merged by keys as a whole, without \"columns\" and \"rename_columns\"",
            ));
        }
        let merge_by = r.strings("merge_by").or(Vec::new())?;
        let schema_inference = SchemaInference::read(r, false)?;
        let combine_chunks = r.bool("combine_chunks").or(false)?;
        let write_anew = r.bool("force_transform").or(false)? || combine_chunks;
        r.map("job_io").or(yson::Map::new())?;
        Ok(MergeSpec { inputs, output, mode, merge_by, schema_inference, write_anew })
    }
}

/// More inputs are refused: each is looked up and written down with the operation.
pub(super) const MAX_TABLES: usize = 1000;

/// A list of tables, at least one.
pub(super) fn paths(r: &mut Reader<'_>, name: &'static str) -> Result<Vec<YPath>, Failure> {
    let at = r.path_of(name);
    let listed = r.list(name).required()?;
    if listed.is_empty() {
        return Err(refuse_at(&at, "expected at least one table"));
    }
    if listed.len() > MAX_TABLES {
        return Err(refuse_at(
            &at,
            format!("at most {MAX_TABLES} tables are allowed, found {}", listed.len()),
        ));
    }
    listed.iter().enumerate().map(|(i, v)| path(v, &format!("{at}/{i}"))).collect()
}

pub(super) fn path(value: &Value, at: &str) -> Result<YPath, Failure> {
    if value.as_bytes().is_none() {
        return Err(refuse_at(at, expected("path", value)));
    }
    YPath::from_value(value).map_err(|e| refuse_at(at, e))
}
