//! Transactions as records of the store: one for each, one for each of its locks and branches.
//!
//! Their keys begin with the id of the transaction: with its end they all go by their prefix. A
//! record is a binary YSON map; unknown fields are an error, as in the records of nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vocab::{Guid, ObjectId, Span, Time};
use yson::{Map, Value};

use super::Forest;
use super::locks::{Lock, Mode, Part};
use super::transaction::{Branch, Transaction};
use crate::record::{Change, Fields, RestoreError, decode, encode, object_id, text};
use crate::tree::{Children, Tree};

/// More changes than one life of the server makes without committing one of them.
const NUMBERS_OF_A_LIFE: u64 = 1 << 24;

const TRANSACTION: u8 = b'T';
const LOCK: u8 = b'L';
const BRANCH: u8 = b'B';

fn key(transaction: ObjectId, kind: u8, id: ObjectId) -> Vec<u8> {
    [&transaction.0.to_bytes()[..], &[kind], &id.0.to_bytes()].concat()
}

fn parse_key(key: &[u8]) -> Option<(ObjectId, u8, ObjectId)> {
    let (transaction, rest) = key.split_first_chunk::<16>()?;
    let (kind, id) = rest.split_first()?;
    let id: [u8; 16] = id.try_into().ok()?;
    Some((ObjectId(Guid::from_bytes(*transaction)), *kind, ObjectId(Guid::from_bytes(id))))
}

impl Change {
    pub(super) fn of_transaction(id: ObjectId, transaction: &Transaction) -> Change {
        let record = yson::map! {
            "owner" => transaction.owner.as_str(),
            "start_time" => transaction.start_time.as_micros(),
            "timeout" => transaction.timeout.as_micros(),
        }
        .with_some("parent", transaction.parent)
        .with_some("deadline", transaction.deadline.map(Time::as_micros))
        .with_some("attributes", (!transaction.attributes.is_empty()).then(|| transaction.attributes.clone()))
        .with_some(
            "prerequisites",
            (!transaction.prerequisites.is_empty())
                .then(|| transaction.prerequisites.iter().map(|id| Value::from(*id)).collect::<Vec<_>>()),
        );
        Change {
            key: key(id, TRANSACTION, ObjectId::default()),
            value: Some(yson::to_binary(&record.into())),
        }
    }

    pub(super) fn of_lock(lock: &Lock) -> Change {
        let (child, attribute) = match &lock.mode {
            Mode::Shared(Part::Child(key)) => (Some(Value::String(key.clone())), None),
            Mode::Shared(Part::Attribute(name)) => (None, Some(Value::String(name.clone()))),
            _ => (None, None),
        };
        let record = yson::map! {
            "node" => lock.node,
            "mode" => lock.mode.name(),
            "creation_time" => lock.creation_time.as_micros(),
        }
        .with_some("child_key", child)
        .with_some("attribute_key", attribute)
        .with_some("rows", (lock.mode == Mode::Shared(Part::Rows)).then_some(true))
        .with_some("implicit", lock.implicit.then_some(true))
        .with_some("pending", (!lock.acquired).then_some(true));
        Change { key: key(lock.transaction, LOCK, lock.id), value: Some(yson::to_binary(&record.into())) }
    }

    pub(super) fn without_lock(lock: &Lock) -> Change {
        Change { key: key(lock.transaction, LOCK, lock.id), value: None }
    }

    pub(super) fn of_branch(transaction: ObjectId, node: ObjectId, branch: Option<&Branch>) -> Change {
        let bytes = |node| Value::String(encode(node));
        let record = branch.map(|branch| match branch {
            Branch::Removed => yson::map! { "kind" => "removed" },
            Branch::Changed { node, created } => {
                yson::map! { "kind" => "changed", "node" => bytes(node), "created" => *created }
            }
            Branch::Pinned { node, children } => yson::map! { "kind" => "pinned", "node" => bytes(node) }
                .with_some("children", children.as_ref().map(show_children)),
        });
        let value = record.map(|record| yson::to_binary(&record.into()));
        Change { key: key(transaction, BRANCH, node), value }
    }

    /// The transaction that it is about.
    pub(super) fn transaction(&self) -> Option<ObjectId> {
        Some(ObjectId(Guid::from_bytes(*self.key.first_chunk()?)))
    }
}

fn show_children(children: &Children) -> Map {
    children.iter().map(|(key, id)| (key.clone(), Value::from(*id))).collect()
}

fn read_children(value: &Value) -> Option<Children> {
    value.as_map()?.iter().map(|(key, id)| Some((key.to_vec(), object_id(id)?))).collect()
}

impl Forest {
    /// All records of transactions; [`Forest::restore`] makes the same transactions of them.
    pub fn records(&self) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
        let of = |(id, transaction): (&ObjectId, &Transaction)| {
            let mut changes = vec![Change::of_transaction(*id, transaction)];
            changes
                .extend(transaction.branches.iter().map(|(node, b)| Change::of_branch(*id, *node, Some(b))));
            let locks = transaction.locked.iter().filter_map(|node| self.trunk.node_locks(*node));
            changes.extend(locks.flat_map(|locks| locks.of(*id)).map(|(_, lock)| Change::of_lock(lock)));
            changes
        };
        self.transactions.iter().flat_map(of).filter_map(|change| Some((change.key, change.value?)))
    }

    /// The forest of a trunk and the records of transactions, which may come in any order. Every
    /// transaction has its whole timeout from now on: nobody could have pinged it meanwhile.
    pub fn restore<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        trunk: Tree,
        records: impl IntoIterator<Item = (K, V)>,
        now: Time,
    ) -> Result<Forest, RestoreError> {
        let mut forest = Forest::new(trunk);
        let mut parts = Vec::new();
        for (key, bytes) in records {
            let key = key.as_ref();
            let (transaction, kind, id) =
                parse_key(key).ok_or(RestoreError::TransactionKey { length: key.len() })?;
            // A transaction has one record of its own, and one for each lock and each node that it has changed.
            let broken = |problem| {
                let problem = match kind {
                    LOCK => format!("its lock {id}: {problem}"),
                    BRANCH => format!("its change of node {id}: {problem}"),
                    _ => problem,
                };
                RestoreError::Transaction { id: transaction, problem }
            };
            let value = yson::parse_record(bytes.as_ref()).map_err(|e| broken(e.to_string()))?;
            let fields = Fields::of(value).map_err(broken)?;
            match kind {
                TRANSACTION => {
                    let entry = read_transaction(fields, now).map_err(broken)?;
                    forest.transactions.insert(transaction, entry);
                }
                LOCK => {
                    parts.push((transaction, Kept::Lock(read_lock(transaction, id, fields).map_err(broken)?)))
                }
                BRANCH => {
                    parts.push((transaction, Kept::Branch(id, read_branch(id, fields).map_err(broken)?)));
                }
                other => return Err(broken(format!("unknown kind of record {other}"))),
            }
        }
        forest.adopt(parts)
    }

    fn adopt(mut self, parts: Vec<(ObjectId, Kept)>) -> Result<Forest, RestoreError> {
        for transaction in self.transactions.values() {
            *self.started_by.entry(transaction.owner.clone()).or_default() += 1;
        }
        let all: Vec<(ObjectId, Option<ObjectId>, Time)> =
            self.transactions.iter().map(|(id, t)| (*id, t.parent, t.expires())).collect();
        for (id, parent, expires) in all {
            self.expiry.insert((expires, id));
            let Some(parent) = parent else { continue };
            let entry = self.transactions.get_mut(&parent).ok_or_else(|| RestoreError::Transaction {
                id,
                problem: format!("its parent {parent} does not exist"),
            })?;
            entry.nested.insert(id);
        }
        // Numbers that the last life gave to changes that were never committed are in no record, but
        // caches of nodes may know contents by them.
        self.trunk.revision += NUMBERS_OF_A_LIFE;
        // In the order in which they were asked for: the ids of locks do not tell.
        let mut locks = Vec::new();
        for (transaction, part) in parts {
            if !self.transactions.contains_key(&transaction) {
                let problem = "it does not exist but has locks or changes".to_owned();
                return Err(RestoreError::Transaction { id: transaction, problem });
            }
            match part {
                Kept::Lock(lock) => locks.push(lock),
                Kept::Branch(node, branch) => {
                    let revision = branch.node().map_or(0, crate::Node::revision);
                    self.trunk.revision = self.trunk.revision.max(revision);
                    self.set_branch(transaction, node, Some(branch), &mut Vec::new());
                }
            }
        }
        locks.sort_by_key(|lock| (lock.creation_time, lock.id));
        for lock in locks {
            self.insert_lock(lock);
        }
        self.charge_all();
        Ok(self)
    }
}

/// What belongs to a transaction.
enum Kept {
    Lock(Lock),
    Branch(ObjectId, Branch),
}

fn read_transaction(mut fields: Fields, now: Time) -> Result<Transaction, String> {
    let transaction = Transaction {
        parent: fields.may("parent", object_id)?,
        nested: BTreeSet::new(),
        owner: fields.need("owner", text)?,
        start_time: Time(fields.need("start_time", Value::as_u64)?),
        timeout: Span(fields.need("timeout", Value::as_u64)?),
        deadline: fields.may("deadline", Value::as_u64)?.map(Time),
        last_ping_time: now,
        attributes: fields.may("attributes", |v| v.as_map().cloned())?.unwrap_or_default(),
        prerequisites: fields.may("prerequisites", object_ids)?.unwrap_or_default(),
        branches: BTreeMap::new(),
        locked: BTreeSet::new(),
    };
    fields.done().map(|()| transaction)
}

fn object_ids(value: &Value) -> Option<Vec<ObjectId>> {
    value.as_list()?.iter().map(object_id).collect()
}

fn read_lock(transaction: ObjectId, id: ObjectId, mut fields: Fields) -> Result<Lock, String> {
    let bytes = |value: &Value| value.as_bytes().map(<[u8]>::to_vec);
    let mode = fields.need("mode", text)?;
    let (child, attribute) = (fields.may("child_key", bytes)?, fields.may("attribute_key", bytes)?);
    let mode = match Mode::parse(&mode, child, attribute).map_err(|failure| failure.message)? {
        Mode::Shared(Part::Unnamed) if fields.may("rows", Value::as_bool)? == Some(true) => {
            Mode::Shared(Part::Rows)
        }
        mode => mode,
    };
    let lock = Lock {
        id,
        transaction,
        node: fields.need("node", object_id)?,
        mode,
        implicit: fields.may("implicit", Value::as_bool)?.unwrap_or_default(),
        acquired: !fields.may("pending", Value::as_bool)?.unwrap_or_default(),
        creation_time: Time(fields.need("creation_time", Value::as_u64)?),
    };
    fields.done().map(|()| lock)
}

fn read_branch(id: ObjectId, mut fields: Fields) -> Result<Branch, String> {
    let kind = fields.need("kind", text)?;
    let node = match fields.may("node", |v| v.as_bytes().map(<[u8]>::to_vec))? {
        Some(bytes) => Some(Arc::new(decode(id, &bytes)?)),
        None => None,
    };
    let branch = match (kind.as_str(), node) {
        ("removed", None) => Branch::Removed,
        ("changed", Some(node)) => Branch::Changed { node, created: fields.need("created", Value::as_bool)? },
        ("pinned", Some(node)) => Branch::Pinned { node, children: fields.may("children", read_children)? },
        _ => return Err(format!("a branch of kind {kind:?} that is not one")),
    };
    fields.done().map(|()| branch)
}
