//! Finished operations: a summary of each in memory, everything else in the archive.

use crate::listing::LISTED;
use crate::records;
use crate::retention::Held;
use crate::summary::Summary;
use crate::{Effect, Kernel};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::batch::{Batch, Table};
use vocab::planted::{Bug, strikes};
use vocab::{OperationId, Time};
use yson::write::{Style, write_row};
use yson::{Map, Value};

/// Summaries in the order of start, and who ended first.
#[derive(Default)]
pub(crate) struct Finished {
    by_start: BTreeMap<(Time, OperationId), Summary>,
    by_id: BTreeMap<OperationId, Time>,
    by_end: BTreeSet<(Time, OperationId)>,
    by_size: BTreeSet<(u64, OperationId)>,
    /// In the archive, of all of them.
    bytes: u64,
    /// Lists of access and of owners in their binary form: few are different.
    lists: BTreeMap<Vec<u8>, Arc<[Value]>>,
}

impl Finished {
    pub fn insert(&mut self, mut summary: Summary) {
        for list in [&mut summary.acl, &mut summary.owners] {
            *list = Arc::clone(self.lists.entry(in_binary(list)).or_insert_with(|| Arc::clone(list)));
        }
        self.by_id.insert(summary.id, summary.start_time);
        self.by_end.insert((summary.end(), summary.id));
        self.by_size.insert((summary.archived_bytes, summary.id));
        self.bytes += summary.archived_bytes;
        self.by_start.insert((summary.start_time, summary.id), summary);
    }
    pub fn get(&self, id: OperationId) -> Option<&Summary> {
        self.by_id.get(&id).and_then(|start| self.by_start.get(&(*start, id)))
    }
    pub fn contains(&self, id: OperationId) -> bool {
        self.by_id.contains_key(&id)
    }
    /// So many bytes more are in the archive of one of them.
    pub fn grow(&mut self, id: OperationId, bytes: u64) -> Option<&Summary> {
        let start = *self.by_id.get(&id)?;
        let summary = self.by_start.get_mut(&(start, id))?;
        self.by_size.remove(&(summary.archived_bytes, id));
        summary.archived_bytes += bytes;
        self.by_size.insert((summary.archived_bytes, id));
        self.bytes += bytes;
        Some(summary)
    }
    pub fn newest_first(&self) -> impl Iterator<Item = &Summary> {
        self.by_start.values().rev()
    }
    /// How many, and how many bytes.
    pub fn size(&self) -> (usize, u64) {
        (self.by_id.len(), self.bytes)
    }
    /// What is held, if anything is: `unfinished` are the bytes of other operations.
    fn held(&self) -> Option<Held> {
        let (first_end, _) = *self.by_end.first()?;
        Some(Held { operations: self.by_id.len(), bytes: self.bytes, first_end })
    }
    /// Takes out the one that ended first, of those with more than `bytes` if there are any.
    fn pop_first_ended(&mut self, bytes: Option<u64>) -> Option<Summary> {
        let large = |bytes: u64| {
            let all = self.by_size.range((bytes + 1, OperationId::default())..);
            all.filter_map(|(_, id)| self.get(*id)).map(|summary| (summary.end(), summary.id)).min()
        };
        let (end, id) = bytes.and_then(large).or_else(|| self.by_end.first().copied())?;
        self.by_end.remove(&(end, id));
        let start = self.by_id.remove(&id)?;
        let summary = self.by_start.remove(&(start, id))?;
        self.by_size.remove(&(summary.archived_bytes, id));
        self.bytes = self.bytes.saturating_sub(summary.archived_bytes);
        // One is here, one in the summary, which may have the same list twice.
        let same = usize::from(Arc::ptr_eq(&summary.acl, &summary.owners));
        for list in [&summary.acl, &summary.owners] {
            if Arc::strong_count(list) <= 2 + same {
                self.lists.remove(&in_binary(list));
            }
        }
        Some(summary)
    }
}

fn in_binary(list: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    list.iter().for_each(|item| write_row(item, Style::Binary, &mut bytes));
    bytes
}

/// Operations forgotten in one round of housekeeping: what cannot be done at once is done in the next.
const FORGET_AT_ONCE: usize = 1000;

impl Kernel {
    /// Puts a finished operation into the archive and takes it out of memory, but for its summary.
    pub(crate) fn archive_operation(&mut self, now: Time, id: OperationId, out: &mut Vec<Effect>) {
        let Some(operation) = self.operations.get(&id) else { return };
        debug_assert!(operation.state.is_finished(), "only finished operations are archived");
        let mut summary = operation.summary();
        let all = self.operation_attributes(now, operation, None);
        if let Some(input) = operation.input_of(0..u64::MAX) {
            let (key, value) = (records::input_key(id), yson::to_binary(&input));
            summary.archived_bytes += (key.len() + value.len()) as u64;
            self.open.batch.put(Table::OperationArchive, key, value);
        }
        self.finished.insert({
            put_in_archive(&mut self.open.batch, &mut summary, all);
            summary
        });
        if strikes(Bug::NeverForgotten, 1) {
            return;
        }
        if let Some(operation) = self.operations.remove(&id) {
            for blob in self.tree.let_go(operation.holds()) {
                self.delete_blob(blob, out);
            }
        }
    }

    /// Keeps the archive within its bounds; who ended first goes first.
    pub(crate) fn forget_old_operations(&mut self, now: Time, out: &mut Vec<Effect>) {
        for _ in 0..FORGET_AT_ONCE {
            let share = match self.finished.held() {
                Some(held) if self.config.retention.is_exceeded(now, held) => {
                    self.config.retention.share_exceeded(now, held)
                }
                _ => return,
            };
            let Some(summary) = self.finished.pop_first_ended(share) else { return };
            if let Some(alias) = &summary.alias
                && self.aliases.get(alias) == Some(&summary.id)
            {
                self.aliases.remove(alias);
            }
            self.open.batch.delete_prefix(Table::OperationArchive, records::operation_prefix(summary.id));
            self.open.batch.delete(Table::OperationIndex, summary.id.0.to_bytes());
            out.push(Effect::ForgetOperation { after: self.open.seq, id: summary.id });
        }
    }
}

/// All records of an operation that is over; their size goes into the summary.
pub(crate) fn put_in_archive(batch: &mut Batch, summary: &mut Summary, all: Map) {
    let id = summary.id;
    let listed: Map = LISTED.iter().filter_map(|name| Some((*name, all.get(*name)?.clone()))).collect();
    for (key, value) in [
        (id.0.to_bytes().to_vec(), yson::to_binary(&all.into())),
        (records::listed_key(id), yson::to_binary(&listed.into())),
    ] {
        summary.archived_bytes += (key.len() + value.len()) as u64;
        batch.put(Table::OperationArchive, key, value);
    }
    summary.archived_bytes += yson::to_binary(&summary.to_value()).len() as u64;
    batch.put(Table::OperationIndex, id.0.to_bytes(), yson::to_binary(&summary.to_value()));
    batch.delete_prefix(Table::Operations, records::operation_prefix(id));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With these in both lists, or with none.
    fn summary(number: u64, names: &[&str]) -> Summary {
        let list: Vec<Value> = names.iter().map(|name| Value::from(*name)).collect();
        let record = yson::map! {
            "id" => OperationId(vocab::Guid([number as u32, 0, 0x103e8, 0])),
            "start_time" => number, "user" => "ann", "type" => "vanilla", "state" => "completed",
            "pools" => Vec::<Value>::new(), "acl" => list.clone(), "owners" => list,
        };
        Summary::from_value(&record.into()).expect("a good record")
    }

    #[test]
    fn equal_lists_are_one_and_go_with_the_last_of_those_that_have_them() {
        let mut finished = Finished::default();
        for (number, names) in [(1, &["ann", "bob"][..]), (2, &[]), (3, &["ann", "bob"]), (4, &["bob"])] {
            finished.insert(summary(number, names));
        }
        let lists: Vec<_> = finished.newest_first().map(|s| Arc::clone(&s.acl)).collect();
        assert!(Arc::ptr_eq(&lists[1], &lists[3]) && !Arc::ptr_eq(&lists[0], &lists[1]));
        drop(lists);
        let mut kept = Vec::new();
        while finished.pop_first_ended(None).is_some() {
            kept.push(finished.lists.len());
        }
        assert_eq!(kept, [3, 2, 1, 0]);
    }
}
