//! The beginning of a transaction, and the signs of life that keep it.

use std::collections::{BTreeMap, BTreeSet};

use vocab::{Failure, ObjectId, Span, Time, code, object_type};
use yson::Map;

use super::transaction::Transaction;
use super::{Forest, no_such_transaction};
use crate::edit::{Committed, Context};
use crate::record::Change;

/// Longest timeout of a transaction: what nobody pings for an hour holds locks for nobody.
const MAX_TIMEOUT: Span = Span::from_secs(3600);
/// Transactions inside each other: every look at one walks along them.
const MAX_DEPTH: usize = 32;
/// Transactions at a time.
const MAX_COUNT: usize = 20_000;
/// Transactions that must live for one to begin and to be committed.
const MAX_PREREQUISITES: usize = 100;
/// Bytes of the attributes of one.
const MAX_ATTRIBUTES: usize = 64 << 10;

/// Options of `start_transaction`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartOptions {
    /// The transaction that it shall be in.
    pub parent: Option<ObjectId>,
    /// It is aborted when nothing is heard of it for so long.
    pub timeout: Span,
    /// It is aborted then, whatever is heard of it.
    pub deadline: Option<Time>,
    /// These must still be active.
    pub prerequisites: Vec<ObjectId>,
    /// `title` and others.
    pub attributes: Map,
}

impl Forest {
    /// `start_transaction`.
    pub fn start(
        &mut self,
        context: Context<'_>,
        options: StartOptions,
    ) -> Result<Committed<ObjectId>, Failure> {
        let StartOptions { parent, timeout, deadline, prerequisites, attributes } = options;
        if let Some(missing) = parent.filter(|id| !self.is_active(*id)) {
            return Err(no_such_transaction(missing));
        }
        check("Number of prerequisites of a transaction", prerequisites.len(), MAX_PREREQUISITES)?;
        self.check_prerequisites(&prerequisites)?;
        check("Depth of a transaction", self.line(parent).len() + 1, MAX_DEPTH)?;
        check("Number of transactions", self.transactions.len() + 1, MAX_COUNT)?;
        let own = self.started_by.get(context.user).copied().unwrap_or_default();
        let what = format!("Number of transactions of user \"{}\"", context.user);
        let limit = self.trunk().limits().max_transactions_per_user;
        check(&what, own + 1, limit).map_err(|failure| {
            failure
                .with("user", context.user)
                .with("limit", limit)
                .with("option", "max_transactions_per_user")
        })?;
        let size = crate::limits::size(&attributes.clone().into());
        check("Size of the attributes of a transaction", size, MAX_ATTRIBUTES)?;
        let id = ObjectId(context.ids.next(object_type::TRANSACTION));
        let transaction = Transaction {
            parent,
            nested: BTreeSet::new(),
            owner: context.user.to_owned(),
            start_time: context.now,
            // Clients that ask for more than anybody gets are not refused.
            timeout: timeout.min(MAX_TIMEOUT),
            deadline,
            last_ping_time: context.now,
            attributes,
            prerequisites,
            branches: BTreeMap::new(),
            locked: BTreeSet::new(),
        };
        let mut done = Committed::of(id);
        done.transactions.push(Change::of_transaction(id, &transaction));
        self.insert_transaction(id, transaction);
        Ok(done)
    }

    /// 1000 if one of these has ended.
    pub fn check_prerequisites(&self, prerequisites: &[ObjectId]) -> Result<(), Failure> {
        match prerequisites.iter().find(|id| !self.is_active(**id)) {
            None => Ok(()),
            Some(missing) => {
                let message = format!("Prerequisite check failed: transaction {missing} is not active");
                Err(Failure::coded(code::PREREQUISITE_FAILED, message)
                    .with("transaction_id", *missing)
                    .because(no_such_transaction(*missing)))
            }
        }
    }

    pub(super) fn insert_transaction(&mut self, id: ObjectId, transaction: Transaction) {
        if let Some(parent) = transaction.parent.and_then(|parent| self.transactions.get_mut(&parent)) {
            parent.nested.insert(id);
        }
        self.expiry.insert((transaction.expires(), id));
        *self.started_by.entry(transaction.owner.clone()).or_default() += 1;
        self.transactions.insert(id, transaction);
    }

    /// `ping_transaction`: it lives on, and those around it if asked for. Nothing of it is written.
    pub fn ping(&mut self, now: Time, id: ObjectId, ancestors: bool) -> Result<(), Failure> {
        self.expect(id)?;
        let line = self.line(Some(id));
        for id in line.into_iter().take(if ancestors { usize::MAX } else { 1 }) {
            if let Some(transaction) = self.transactions.get_mut(&id) {
                self.expiry.remove(&(transaction.expires(), id));
                transaction.last_ping_time = now;
                self.expiry.insert((transaction.expires(), id));
            }
        }
        Ok(())
    }

    /// When the next transaction expires if nothing is heard of it.
    pub fn next_expiry(&self) -> Time {
        self.expiry.first().map_or(Time::MAX, |(time, _)| *time)
    }
}

fn check(what: &str, found: usize, limit: usize) -> Result<(), Failure> {
    if found <= limit {
        return Ok(());
    }
    Err(Failure::new(format!("{what} is {found}, more than the limit of {limit}")))
}
