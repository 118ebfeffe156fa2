//! Merges (http-api.md 9.7): rows of tables become those of one, without jobs and without copying, since
//! chunks never change and a table is a list of them.

use crate::table::{TableRows, in_order};
use crate::{Effect, Kernel};
use controller::spec::{MergeMode, MergeSpec};
use cypress::{Chunk, Permission};
use std::cmp::Ordering;
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
        let (_, target) = self.table(&merge.output)?;
        let schema = target.schema.clone();
        let mut rows = TableRows { append: is_append(&merge.output)?, schema, ..TableRows::default() };
        rows.chunks = self.chunks_of(&merge.inputs, &rows.schema)?;
        rows.sorted_by = match merge.mode {
            MergeMode::Sorted => self.merge_by(&merge.inputs, &merge.merge_by, &rows.schema)?,
            _ => tables::Schema::parse(&rows.schema)?.map(|s| s.key_columns()).unwrap_or_default(),
        };
        sort_by_bounds(&mut rows.chunks, rows.sorted_by.len(), merge.mode);
        if !rows.sorted_by.is_empty() {
            in_order(&rows.chunks, false).map_err(|inner| {
                Failure::new("Chunks of the inputs overlap by keys: their rows would have to be written anew")
                    .because(inner)
            })?;
        }
        self.table_written(now, user, &merge.output, rows, out)
    }

    /// Can the chunks of a sorted merge be taken as they are? Else their rows come between one another.
    pub(super) fn lies_apart(&self, merge: &MergeSpec) -> Result<bool, Failure> {
        let (_, target) = self.table(&merge.output)?;
        let sorted_by = self.merge_by(&merge.inputs, &merge.merge_by, &target.schema)?;
        let mut chunks = self.chunks_of(&merge.inputs, &target.schema)?;
        sort_by_bounds(&mut chunks, sorted_by.len(), MergeMode::Sorted);
        Ok(in_order(&chunks, false).is_ok())
    }

    /// By which columns the output of a sorted merge is sorted.
    pub(super) fn merge_by(
        &self,
        inputs: &[YPath],
        asked: &[String],
        schema: &Value,
    ) -> Result<Vec<String>, Failure> {
        let columns = self.sorted_by_all(inputs, asked)?;
        match tables::Schema::parse(schema)?.map(|s| s.key_columns()) {
            None => Ok(columns),
            Some(keys) if !keys.is_empty() && columns.starts_with(&keys) => Ok(keys),
            Some(keys) => Err(Failure::new(format!(
                "The inputs are sorted by {columns:?}, the schema of the output says {keys:?}"
            ))),
        }
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

/// Bounds by the first `width` columns of the keys, by which the chunks are sorted, too; and the chunks of a sorted
/// merge in the order of these.
fn sort_by_bounds(chunks: &mut [Chunk], width: usize, mode: MergeMode) {
    for (first, last) in chunks.iter_mut().filter_map(|chunk| chunk.bounds.as_mut()) {
        first.truncate(width);
        last.truncate(width);
    }
    if mode == MergeMode::Sorted {
        chunks.sort_by(|a, b| match (&a.bounds, &b.bounds) {
            (Some((a, a_last)), Some((b, b_last))) => {
                tables::compare_keys(a, b).then_with(|| tables::compare_keys(a_last, b_last))
            }
            _ => Ordering::Equal,
        });
    }
}

pub(super) fn is_append(path: &YPath) -> Result<bool, Failure> {
    match path.attributes.get("append").filter(|v| !v.is_entity()) {
        None => Ok(false),
        Some(value) => value.as_bool().ok_or_else(|| {
            let found = value.type_name();
            Failure::new(format!("Attribute \"append\" of the path must be boolean, found {found}"))
        }),
    }
}
