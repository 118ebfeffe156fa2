//! Names for people: `A` and `A.3` instead of ids, in answers and inside of the scheduler's sentences.

use std::collections::BTreeMap;
use vocab::{AllocationId, Guid, OperationId, object_type};

/// What a script calls its operations, and what their allocations are called after them.
///
/// Ids are counted, so that the same script has the same ids, and operations that come together stand in
/// the order of their lines wherever the scheduler breaks a tie by id.
#[derive(Clone, Default, Debug)]
pub(super) struct Names {
    operations: BTreeMap<String, OperationId>,
    allocations: BTreeMap<String, AllocationId>,
    of_ids: BTreeMap<Guid, String>,
    objects: u32,
    granted: u32,
}

impl Names {
    /// A new operation.
    pub fn add_operation(&mut self, name: &str) -> OperationId {
        self.objects += 1;
        let guid = Guid([self.objects, 0, u32::from(object_type::OPERATION), 0]);
        self.of_ids.insert(guid, name.to_owned());
        self.operations.insert(name.to_owned(), OperationId(guid));
        OperationId(guid)
    }

    /// The operation was refused; the name may be taken again.
    pub fn drop_operation(&mut self, name: &str) {
        if let Some(id) = self.operations.remove(name) {
            self.of_ids.remove(&id.0);
        }
    }

    /// An id for something that nobody calls by a name of this kind, such as a pool.
    pub fn next_object(&mut self, kind: u16) -> Guid {
        self.objects += 1;
        Guid([self.objects, 0, u32::from(kind), 0])
    }

    /// An id for an allocation that gets its name when its operation is known.
    pub fn next_allocation(&mut self) -> AllocationId {
        self.granted += 1;
        AllocationId(Guid([self.granted, 0, u32::from(object_type::OTHER), 0]))
    }

    /// `A.3` for the third allocation of A.
    pub fn name_allocation(&mut self, id: AllocationId, operation: OperationId, number: u32) -> String {
        let name = format!("{}.{number}", self.operation(operation));
        self.of_ids.insert(id.0, name.clone());
        self.allocations.insert(name.clone(), id);
        name
    }

    /// The operation of a name.
    pub fn find_operation(&self, name: &str) -> Option<OperationId> {
        self.operations.get(name).copied()
    }

    /// The allocation of a name, running or not.
    pub fn find_allocation(&self, name: &str) -> Option<AllocationId> {
        self.allocations.get(name).copied()
    }

    /// The name of an operation.
    pub fn operation(&self, id: OperationId) -> &str {
        self.of_ids.get(&id.0).map_or("?", String::as_str)
    }

    /// The name of an allocation.
    pub fn allocation(&self, id: AllocationId) -> &str {
        self.of_ids.get(&id.0).map_or("?", String::as_str)
    }

    /// A text of the scheduler with names in the place of ids.
    pub fn translate(&self, text: &str) -> String {
        let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(begin) = rest.find(is_part) {
            let (before, from) = rest.split_at(begin);
            let end = from.find(|c| !is_part(c)).unwrap_or(from.len());
            let (word, after) = from.split_at(end);
            out.push_str(before);
            let name = word.parse().ok().and_then(|id: Guid| self.of_ids.get(&id));
            out.push_str(name.map_or(word, String::as_str));
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_names() {
        let mut names = Names::default();
        let a = names.add_operation("A");
        let allocation = names.next_allocation();
        names.name_allocation(allocation, a, 3);
        let text = format!("to start {allocation} of operation {a}; a-b, 1-2-3-4, bead \"{a}\"");
        assert_eq!(names.translate(&text), "to start A.3 of operation A; a-b, 1-2-3-4, bead \"A\"");
        assert_eq!(names.translate(""), "");
    }
}
