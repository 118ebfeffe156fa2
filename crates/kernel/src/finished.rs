//! Finished operations: a summary of each in memory, everything else in the archive.

use crate::records;
use crate::summary::Summary;
use crate::{Effect, Kernel};
use std::collections::BTreeMap;
use vocab::batch::Table;
use vocab::{OperationId, Time};

/// Summaries in the order of start.
#[derive(Default)]
pub(crate) struct Finished {
    by_start: BTreeMap<(Time, OperationId), Summary>,
    by_id: BTreeMap<OperationId, Time>,
}

impl Finished {
    pub fn insert(&mut self, summary: Summary) {
        self.by_id.insert(summary.id, summary.start_time);
        self.by_start.insert((summary.start_time, summary.id), summary);
    }
    pub fn get(&self, id: OperationId) -> Option<&Summary> {
        self.by_id.get(&id).and_then(|start| self.by_start.get(&(*start, id)))
    }
    pub fn contains(&self, id: OperationId) -> bool {
        self.by_id.contains_key(&id)
    }
    pub fn newest_first(&self) -> impl Iterator<Item = &Summary> {
        self.by_start.values().rev()
    }
    pub fn len(&self) -> usize {
        self.by_id.len()
    }
    fn pop_oldest(&mut self) -> Option<Summary> {
        let (_, summary) = self.by_start.pop_first()?;
        self.by_id.remove(&summary.id);
        Some(summary)
    }
}

impl Kernel {
    /// Puts a finished operation into the archive and takes it out of memory, but for its summary.
    pub(crate) fn archive_operation(&mut self, now: Time, id: OperationId, out: &mut Vec<Effect>) {
        let Some(operation) = self.operations.get(&id) else { return };
        debug_assert!(operation.state.is_finished(), "only finished operations are archived");
        let summary = operation.summary();
        let all = self.operation_attributes(now, operation, None);
        let batch = &mut self.open.batch;
        batch.put(Table::OperationArchive, id.0.to_bytes(), yson::to_binary(&all.into()));
        batch.put(Table::OperationIndex, id.0.to_bytes(), yson::to_binary(&summary.to_value()));
        batch.delete_prefix(Table::Operations, records::operation_prefix(id));
        self.finished.insert(summary);
        if let Some(operation) = self.operations.remove(&id) {
            for blob in operation.pinned.into_iter().map(|p| p.blob) {
                if blob != 0 && !self.is_pinned(blob) && !self.tree.holds_blob(blob) {
                    self.delete_blob(blob, out);
                }
            }
        }
    }

    /// Keeps the archive within its bound, oldest go first, a few at a time.
    pub(crate) fn forget_old_operations(&mut self, out: &mut Vec<Effect>) {
        for _ in 0..64 {
            if self.finished.len() <= self.config.max_archived_operations {
                return;
            }
            let Some(summary) = self.finished.pop_oldest() else { return };
            if let Some(alias) = &summary.alias
                && self.aliases.get(alias) == Some(&summary.id)
            {
                self.aliases.remove(alias);
            }
            self.open.batch.delete(Table::OperationArchive, summary.id.0.to_bytes());
            self.open.batch.delete(Table::OperationIndex, summary.id.0.to_bytes());
            out.push(Effect::ForgetOperation { after: self.open.seq, id: summary.id });
        }
    }
}
