//! Transactions (http-api.md 8.2): who may use them, what their ends bring about.
//!
//! What they see and change is the business of [`cypress::Forest`].

use crate::access::denied;
use crate::tree::WantedOptions;
use crate::{Command, Effect, Kernel};
use cypress::{Context, Last, LockOptions, Permission, StartOptions};
use vocab::{Failure, ObjectId, OperationId, OperationState, Time};
use yson::Value;
use yson::ypath::YPath;

impl Kernel {
    /// From now on the tree looks as this transaction sees it.
    pub(crate) fn enter_transaction(
        &mut self,
        user: &str,
        id: ObjectId,
        command: &Command,
    ) -> Result<(), Failure> {
        self.demand_transaction(user, id)?;
        match command.is_about_nodes() {
            true => self.tree.enter(id),
            // Pools, users, operations have no transactions.
            false => Ok(()),
        }
    }

    /// A transaction is its owner's, and superusers'.
    fn demand_transaction(&self, user: &str, id: ObjectId) -> Result<(), Failure> {
        let owner = self.tree.owner_of(id)?;
        let who = self.who(user);
        if !self.config.access_control || owner == user || who.is_superuser() {
            return Ok(());
        }
        Err(denied(&who, Permission::Write, &format!("transaction {id}"), None))
    }

    /// Is everything active without which a command must do nothing? Each of them is the user's own.
    pub(crate) fn demand_prerequisites(&self, user: &str, ids: &[ObjectId]) -> Result<(), Failure> {
        // One that has ended is told of by a code of its own.
        for id in ids.iter().filter(|id| self.tree.owner_of(**id).is_ok()) {
            self.demand_transaction(user, *id)?;
        }
        self.tree.check_prerequisites(ids)
    }

    pub(crate) fn start_transaction(
        &mut self,
        now: Time,
        user: &str,
        options: StartOptions,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        if let Some(parent) = options.parent {
            self.demand_transaction(user, parent)?;
        }
        self.demand_prerequisites(user, &options.prerequisites)?;
        let done = self.tree.start(Context { now, user, ids: &mut self.ids }, options)?;
        let id = self.absorb(done, out);
        Ok(Value::Map(yson::map! { "transaction_id" => id }))
    }

    pub(crate) fn ping_transaction(
        &mut self,
        now: Time,
        user: &str,
        id: ObjectId,
        ancestors: bool,
    ) -> Result<(), Failure> {
        self.demand_transaction(user, id)?;
        self.tree.ping(now, id, ancestors)
    }

    pub(crate) fn commit_transaction(
        &mut self,
        now: Time,
        user: &str,
        id: ObjectId,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        self.demand_transaction(user, id)?;
        let parent = self.tree.parent_of(id);
        let in_force = (&self.scheduler_config, &self.controller_config);
        let mut wanted = WantedOptions::default();
        let done = self.tree.commit(Context { now, user, ids: &mut self.ids }, id, |trunk| {
            wanted = WantedOptions::read(trunk, in_force)?;
            Ok(())
        })?;
        self.put_in_force(wanted);
        let nested = done.ended.iter().copied().filter(|ended| *ended != id).collect();
        self.absorb(done, out);
        self.pass_operations(id, parent);
        self.abort_operations_of(now, nested, out);
        Ok(())
    }

    pub(crate) fn abort_transaction(
        &mut self,
        now: Time,
        user: &str,
        id: ObjectId,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        self.demand_transaction(user, id)?;
        let done = self.tree.abort(id)?;
        let ended = done.ended.clone();
        self.absorb(done, out);
        self.abort_operations_of(now, ended, out);
        Ok(())
    }

    /// Aborts transactions of which nothing was heard for too long.
    pub(crate) fn expire_transactions(&mut self, now: Time, out: &mut Vec<Effect>) {
        if self.tree.next_expiry() > now {
            return;
        }
        self.keep_output_transactions(now);
        let done = self.tree.expire(now);
        let ended = self.absorb(done, out);
        self.abort_operations_of(now, ended, out);
    }

    /// What was started in a transaction that is committed belongs to the one around it, if there is one.
    fn pass_operations(&mut self, id: ObjectId, parent: Option<ObjectId>) {
        for operation in self.operations.values_mut().filter(|o| o.user_transaction == Some(id)) {
            operation.user_transaction = parent;
            // It is in the part of the record that is written once: so it is written again.
            operation.spec_seq = None;
            self.pending_work.dirty.insert(operation.id);
        }
    }

    /// Operations do not outlive the transactions that they were started in.
    fn abort_operations_of(&mut self, now: Time, ended: Vec<ObjectId>, out: &mut Vec<Effect>) {
        let of = |id: Option<ObjectId>| id.filter(|id| ended.contains(id));
        let theirs: Vec<(OperationId, ObjectId)> = self
            .operations
            .iter()
            .filter_map(|(id, operation)| {
                let own = operation.tables.as_ref().map(|tables| tables.transaction);
                Some((*id, of(operation.user_transaction).or(of(own))?))
            })
            .collect();
        for (id, transaction) in theirs {
            let error = Failure::new(format!("Transaction {transaction} has expired or was aborted"))
                .with("transaction_id", transaction);
            self.finish_operation(now, id, OperationState::Aborted, Some(error), out);
        }
    }

    pub(crate) fn lock(
        &mut self,
        now: Time,
        user: &str,
        path: &YPath,
        options: LockOptions,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        let node = self.node_to_lock(path, "lock")?;
        let done = self.tree.lock(Context { now, user, ids: &mut self.ids }, node, options)?;
        let locked = self.absorb(done, out);
        Ok(Value::Map(yson::map! {
            "lock_id" => locked.lock,
            "node_id" => locked.node,
            "revision" => locked.revision,
        }))
    }

    pub(crate) fn unlock(&mut self, path: &YPath, out: &mut Vec<Effect>) -> Result<(), Failure> {
        let node = self.node_to_lock(path, "unlock")?;
        let done = self.tree.unlock(node)?;
        self.absorb(done, out);
        Ok(())
    }

    fn node_to_lock(&self, path: &YPath, command: &str) -> Result<ObjectId, Failure> {
        let place = self.resolve_local(path, Last::Follow, command)?;
        if place.rest.is_empty() { Ok(place.node) } else { Err(self.tree.missing(&place)) }
    }
}
