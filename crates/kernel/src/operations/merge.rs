//! Merges (http-api.md 9.7): rows of tables become those of one, without jobs and without copying, since
//! chunks never change and a table is a list of them. And what jobs of merges must know beforehand.

use crate::operation::Operation;
use crate::table::{TableRows, in_order};
use crate::{Effect, Kernel};
use controller::spec::{MergeMode, MergeSpec, SchemaInference};
use cypress::{Chunk, Permission};
use std::cmp::Ordering;
use tables::{Selection, about, inherit, inherit_the_same};
use vocab::{Failure, OperationId, OperationState, Time, code};
use yson::Value;
use yson::ypath::YPath;

impl Kernel {
    /// Does the merges that the scheduler lets run, and ends what has nothing to do.
    pub(crate) fn run_merges(&mut self, now: Time, out: &mut Vec<Effect>) {
        for id in std::mem::take(&mut self.pending_work.merges) {
            let Some(operation) = self.operations.get(&id) else { continue };
            // One that still waits for its turn comes again when it has it.
            if operation.state != OperationState::Running {
                continue;
            }
            if operation.suspended {
                self.pending_work.merges.insert(id);
                continue;
            }
            // What jobs do, or have done, is not done again.
            let without_jobs = operation.spec.spec.merge.clone().filter(|_| operation.tables.is_none());
            let Some(merge) = without_jobs else {
                // Tables without rows give a map nothing to do.
                if operation.controller.is_done() {
                    self.finish_operation(now, id, OperationState::Completed, None, out);
                }
                continue;
            };
            let (user, transaction) = (operation.user.clone(), operation.user_transaction);
            // It is seen through the operation's transaction, whoever's command brought us here.
            let around = self.tree.entered();
            self.tree.leave();
            let entered = transaction.map_or(Ok(()), |transaction| self.tree.enter(transaction));
            let merged = entered.and_then(|()| self.merge(now, &user, &merge, out));
            self.tree.leave();
            if let Some(around) = around {
                // It was there a moment ago, and a merge ends no transaction.
                let _ = self.tree.enter(around);
            }
            let (end, error) = match merged {
                Ok(()) => (OperationState::Completed, None),
                Err(inner) => {
                    let what = "Operation has failed to prepare";
                    let error = Failure::coded(code::OPERATION_FAILED_TO_PREPARE, what).because(inner);
                    (OperationState::Failed, Some(error))
                }
            };
            self.finish_operation(now, id, end, error, out);
        }
    }

    /// Is it done without jobs?
    pub(super) fn is_merge_of_chunks(&self, id: OperationId) -> bool {
        let is = |o: &Operation| o.spec.spec.merge.is_some() && o.tables.is_none();
        self.operations.get(&id).is_some_and(is)
    }

    /// An operation may go on: a merge has nothing to wait for then, nor has what has no jobs.
    pub(crate) fn note_merge(&mut self, id: OperationId) {
        if self.operations.get(&id).is_some_and(|o| o.controller.is_done()) {
            self.pending_work.merges.insert(id);
        }
    }

    fn merge(
        &mut self,
        now: Time,
        user: &str,
        merge: &MergeSpec,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        for path in &merge.inputs {
            self.demand_path(user, Permission::Read, path)?;
        }
        self.demand_path(user, Permission::Write, &merge.output)?;
        Selection::refuse_ranges(&merge.output)?;
        let (_, target) = self.table(&merge.output)?;
        let schema = target.schema.clone();
        let inferred = self.inferred_schema(merge)?;
        let mut rows = TableRows {
            append: is_append(&merge.output)?,
            replace_schema: inferred.is_some(),
            schema: inferred.unwrap_or(schema),
            ..TableRows::default()
        };
        rows.chunks = self.chunks_of(&merge.inputs, &rows.schema)?;
        let MergeKeys { columns, sorted_by } = match merge.mode {
            MergeMode::Sorted => self.merge_keys(&merge.inputs, &merge.merge_by, &rows.schema)?,
            _ => {
                let keys = tables::Schema::parse(&rows.schema)?.map(|s| s.key_columns()).unwrap_or_default();
                MergeKeys { columns: keys.clone(), sorted_by: keys }
            }
        };
        cut_bounds(&mut rows.chunks, columns.len());
        if merge.mode == MergeMode::Sorted {
            sort_by_bounds(&mut rows.chunks);
        }
        if !columns.is_empty() {
            in_order(&rows.chunks, false).map_err(|inner| {
                let what = match merge.mode {
                    MergeMode::Sorted => {
                        "The inputs have changed since the operation was started: start it again"
                    }
                    _ => "Rows of the inputs are not in the order of the output's keys: use mode \"sorted\"",
                };
                Failure::new(format!("Chunks of the inputs overlap by keys. {what}")).because(inner)
            })?;
        }
        cut_bounds(&mut rows.chunks, sorted_by.len());
        if let Some(limit) = row_count_limit(&merge.output)? {
            keep_enough(&mut rows.chunks, limit);
        }
        rows.sorted_by = sorted_by;
        self.table_written(now, user, &merge.output, rows, out)
    }

    /// The schema that the inputs give to an output without one; none: it stays as it is.
    pub(super) fn inferred_schema(&self, merge: &MergeSpec) -> Result<Option<Value>, Failure> {
        let (_, target) = self.table(&merge.output)?;
        let has_one = merge.has_form() || tables::Schema::parse(&target.schema)?.is_some();
        if has_one || is_append(&merge.output)? || merge.schema_inference == SchemaInference::FromOutput {
            return Ok(None);
        }
        let keys = match merge.mode {
            MergeMode::Sorted => self.sorted_by_all(&merge.inputs, &merge.merge_by)?,
            _ => Vec::new(),
        };
        let mut common: Option<(&YPath, Value)> = None;
        for path in &merge.inputs {
            let (_, table) = self.table(path)?;
            let row_count = table.row_count();
            let selection = Selection::of(path, row_count)?;
            let is_copy = merge.mode == MergeMode::Ordered && merge.inputs.len() == 1;
            if is_copy && selection.is_whole(row_count) {
                return Ok(Some(table.schema.clone()).filter(|schema| !schema.is_entity()));
            }
            let schema = inherit(&table.schema, &selection.columns, &keys)?;
            match &common {
                None => common = Some((path, schema)),
                Some((_, known)) if inherit_the_same(known, &schema) => {}
                Some(_) if merge.schema_inference == SchemaInference::Auto => return Ok(None),
                Some((other, _)) => {
                    let (one, other) = (other.text(), path.text());
                    return Err(Failure::new(format!(
                        "\"schema_inference_mode\" is \"from_input\", but {one} and {other} have different schemas: \
                         use \"auto\" or \"from_output\", or give the output one"
                    )));
                }
            }
        }
        Ok(common.map(|(_, schema)| schema).filter(|schema| !schema.is_entity()))
    }

    /// Can the chunks of a sorted merge be taken as they are? Else their rows come between one another.
    pub(super) fn lies_apart(&self, merge: &MergeSpec) -> Result<bool, Failure> {
        if merge.must_write_anew() {
            return Ok(false);
        }
        let (_, target) = self.table(&merge.output)?;
        let keys = self.merge_keys(&merge.inputs, &merge.merge_by, &target.schema)?;
        // Too many of them, or of another schema: a job reads and writes rows.
        let Ok(mut chunks) = self.chunks_of(&merge.inputs, &target.schema) else { return Ok(false) };
        cut_bounds(&mut chunks, keys.columns.len());
        sort_by_bounds(&mut chunks);
        Ok(in_order(&chunks, false).is_ok())
    }

    /// The order of a sorted merge, into a table of this schema.
    pub(super) fn merge_keys(
        &self,
        inputs: &[YPath],
        asked: &[String],
        schema: &Value,
    ) -> Result<MergeKeys, Failure> {
        let columns = self.sorted_by_all(inputs, asked)?;
        let sorted_by = match tables::Schema::parse(schema)?.map(|s| s.key_columns()) {
            None => columns.clone(),
            Some(keys) if !keys.is_empty() && columns.starts_with(&keys) => keys,
            Some(keys) => {
                return Err(Failure::new(format!(
                    "The inputs are sorted by {columns:?}, the schema of the output says {keys:?}"
                )));
            }
        };
        Ok(MergeKeys { columns, sorted_by })
    }

    fn sorted_by_all(&self, inputs: &[YPath], asked: &[String]) -> Result<Vec<String>, Failure> {
        let mut common: Option<Vec<String>> = None;
        for path in inputs {
            let (_, table) = self.table(path)?;
            let sorted_by = &table.sorted_by;
            if sorted_by.is_empty() || !sorted_by.starts_with(asked) {
                let by = match asked {
                    [] => String::new(),
                    columns => format!(" by {columns:?}"),
                };
                return Err(Failure::new(format!("{path} is not sorted{by}: it cannot be merged as sorted")));
            }
            common = Some(match common {
                None => sorted_by.clone(),
                Some(common) => {
                    let same = common.iter().zip(sorted_by).take_while(|(a, b)| a == b).count();
                    common[..same].to_vec()
                }
            });
        }
        let columns = if asked.is_empty() { common.unwrap_or_default() } else { asked.to_vec() };
        if columns.is_empty() {
            return Err(Failure::new("The inputs are not sorted by the same columns"));
        }
        Ok(columns)
    }
}

/// The order of a sorted merge.
pub(super) struct MergeKeys {
    /// By which the rows come.
    pub columns: Vec<String>,
    /// The first of them, by which the output says that it is sorted.
    pub sorted_by: Vec<String>,
}

/// Bounds by the first columns of the keys: by these the chunks are sorted, too.
fn cut_bounds(chunks: &mut [Chunk], width: usize) {
    for (first, last) in chunks.iter_mut().filter_map(|chunk| chunk.bounds.as_mut()) {
        first.truncate(width);
        last.truncate(width);
    }
}

fn sort_by_bounds(chunks: &mut [Chunk]) {
    chunks.sort_by(|a, b| match (&a.bounds, &b.bounds) {
        (Some((a, a_last)), Some((b, b_last))) => {
            tables::compare_keys(a, b).then_with(|| tables::compare_keys(a_last, b_last))
        }
        _ => Ordering::Equal,
    });
}

/// So many rows are enough (http-api.md 5.4), but one at least: of no rows there are enough before anything was done.
pub(super) fn row_count_limit(path: &YPath) -> Result<Option<u64>, Failure> {
    let Some(value) = path.attributes.get("row_count_limit").filter(|v| !v.is_entity()) else {
        return Ok(None);
    };
    let wrong =
        || about(path, Failure::new("Attribute \"row_count_limit\" must be a number of rows, 0 or more"));
    value.as_u64().map(|limit| Some(limit.max(1))).ok_or_else(wrong)
}

/// The first of the chunks that have so many rows together.
fn keep_enough(chunks: &mut Vec<Chunk>, limit: u64) {
    let mut rows = 0;
    chunks.retain(|chunk| {
        let is_wanted = rows < limit;
        rows += chunk.rows;
        is_wanted
    });
}

pub(super) fn is_append(path: &YPath) -> Result<bool, Failure> {
    match path.attributes.get("append").filter(|v| !v.is_entity()) {
        None => Ok(false),
        Some(value) => value.as_bool().ok_or_else(|| {
            let found = value.type_name();
            about(path, Failure::new(format!("Attribute \"append\" must be boolean, found {found}")))
        }),
    }
}
