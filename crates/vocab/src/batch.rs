//! What is to be made durable, as data: the kernel fills a [`Batch`], the `store` crate writes it.
//!
//! A batch is the unit of atomicity: after a crash all of it is there or nothing. Keys and values
//! are bytes; their layout belongs to whoever owns the table.

macro_rules! tables {
    ($( $(#[$doc:meta])* $variant:ident = $name:literal ),* $(,)?) => {
        /// Named ordered tables of the store.
        ///
        /// The names are on disk: a variant may be added at will, a name never changes its meaning.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Table { $( $(#[$doc])* $variant ),* }
        impl Table {
            /// All tables, in the order of declaration.
            pub const ALL: &'static [Table] = &[$( Table::$variant ),*];
            /// The name on disk.
            pub const fn as_str(self) -> &'static str { match self { $( Table::$variant => $name ),* } }
        }
    };
}
tables! {
    /// Single records: name of the cluster, default tree and the like.
    Meta = "meta",
    /// Uids that users' jobs have or had: user, id of the user's node, whether the user is gone.
    JobUids = "job_uids",
    /// Nodes of the metadata tree.
    Cypress = "cypress",
    /// Users, groups, accounts, tokens.
    Subjects = "subjects",
    /// Pools and their options.
    Pools = "pools",
    /// Pool trees and their configuration.
    PoolTrees = "pool_trees",
    /// Integral volumes of pools.
    Volumes = "volumes",
    /// Unfinished operations: spec, state, done work.
    Operations = "operations",
    /// Finished operations.
    OperationArchive = "operation_archive",
    /// Secondary keys over operations: by time, by alias.
    OperationIndex = "operation_index",
    /// Finished jobs.
    JobArchive = "job_archive",
    /// Small stderrs of finished jobs; large ones are blobs.
    Stderr = "stderr",
    /// What failed jobs were reading: numbers of blobs, and their sizes.
    FailContext = "fail_context",
    /// Operations of finished jobs, by job. Older versions have noted only those that had rows to read.
    JobIndex = "job_index",
    /// Finished jobs of whose end their nodes have still to tell, by operation and job: their records.
    OwedEnds = "owed_ends",
    /// Exec nodes and what administrators said about them.
    Nodes = "nodes",
    /// Kept replies by mutation id.
    Mutations = "mutations",
    /// Event log for histories.
    Events = "events",
    /// Allocations that were told to give way, and the newest lines of the preemption log.
    Preemptions = "preemptions",
    /// Transactions, their locks and what they have changed so far.
    Transactions = "transactions",
    /// Who may register as which node: join tokens, identities, nodes that wait for an approval.
    NodeIdentities = "node_identities",
}

/// One change of one table.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // the fields are what they are called
pub enum Op {
    /// Sets a key.
    Put { table: Table, key: Vec<u8>, value: Vec<u8> },
    /// Removes a key; a missing one is fine.
    Delete { table: Table, key: Vec<u8> },
    /// Removes all keys that begin with `prefix`; an empty prefix empties the table.
    DeletePrefix { table: Table, prefix: Vec<u8> },
}

/// Changes that become durable together, applied in order: a later one wins.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// In order.
    pub ops: Vec<Op>,
}

impl Batch {
    /// Nothing to do.
    pub fn new() -> Batch {
        Batch::default()
    }
    /// No changes at all?
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
    /// Sets a key.
    pub fn put(&mut self, table: Table, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.ops.push(Op::Put { table, key: key.into(), value: value.into() });
    }
    /// Removes a key.
    pub fn delete(&mut self, table: Table, key: impl Into<Vec<u8>>) {
        self.ops.push(Op::Delete { table, key: key.into() });
    }
    /// Removes all keys with a prefix.
    pub fn delete_prefix(&mut self, table: Table, prefix: impl Into<Vec<u8>>) {
        self.ops.push(Op::DeletePrefix { table, prefix: prefix.into() });
    }
    /// Puts the changes of another batch behind these.
    pub fn append(&mut self, mut other: Batch) {
        self.ops.append(&mut other.ops);
    }
    /// Bytes of keys and values: what a bound on the size of a transaction counts.
    pub fn byte_size(&self) -> usize {
        self.ops
            .iter()
            .map(|op| match op {
                Op::Put { key, value, .. } => key.len() + value.len(),
                Op::Delete { key, .. } => key.len(),
                Op::DeletePrefix { prefix, .. } => prefix.len(),
            })
            .sum()
    }
}

/// The first key behind all keys that begin with `prefix`; none if there is no such key (the prefix
/// is empty or all `0xff`).
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|b| *b != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names_are_unique() {
        let names: std::collections::BTreeSet<_> = Table::ALL.iter().map(|t| t.as_str()).collect();
        assert_eq!(names.len(), Table::ALL.len());
    }

    #[test]
    fn the_end_of_a_prefix_is_behind_it_and_before_the_next() {
        assert_eq!(prefix_end(b"a\x01"), Some(b"a\x02".to_vec()));
        assert_eq!(prefix_end(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(prefix_end(b"\xff"), None);
        assert_eq!(prefix_end(b""), None);
    }
}
