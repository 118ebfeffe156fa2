//! Leases of exclusive jobs (S19): what the server has confirmed, and what follows when it does not.
//!
//! Each job proxy keeps the lease of its job and stops it by itself, so the agent may be dead or stopped. The agent passes on
//! what the server confirms, logs when half of a lease is over, and is the second line: it ends jobs that have not started
//! when their lease is over, and those whose proxy has not stopped them a grace period later.
//!
//! A lease that is over stays over: the server may have given the unit away, so a later confirmation does not revive it.
//! What the server has confirmed is kept on disk before a proxy is told, so that the next agent on the same boot of the host
//! ends no job earlier than its proxy would, and none later than the server allows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use vocab::lease::{Lease, grace, over as over_error};
use vocab::{AbortReason, JobId, OperationId, Span, Time};
use wire::StartJob;

use crate::core::aborted;
use crate::job::Stage;
use crate::{NodeCore, NodeEffect, ProxyOrder};

/// See the module page. All spans are times on the node's clock: since the start of its host.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// Now.
    since_boot: Span,
    /// Where leases begin, as the server has confirmed to this agent or the one before it; zero if that is not known.
    confirmed: Span,
    /// The part of it that is on disk.
    kept: Span,
    /// The first time that was told: leases of jobs that the agent has found begin there if nothing is known of what was
    /// confirmed before.
    agent_since: Span,
    /// The newest extension of leases that was heard of, on the server's clock.
    pub extended_until: Time,
    /// Jobs whose leases are not over, by the length of the lease.
    by_length: BTreeMap<Span, BTreeSet<JobId>>,
    /// Jobs whose leases are over: length of the lease, and time at which the agent ends the job if its proxy has not.
    over: BTreeMap<JobId, (Span, Span)>,
    /// The same by unit of work; tasks are told apart by the jobs.
    by_unit: BTreeMap<(OperationId, u32), BTreeSet<JobId>>,
    /// The warning about half a lease was given since the last confirmation.
    warned: bool,
    /// Nothing is to be done before.
    next: Option<Span>,
}

impl Leases {
    pub fn since_boot(&self) -> Span {
        self.since_boot
    }

    /// The lease of a job that starts now.
    pub fn of(&self, start: &StartJob) -> Option<Lease> {
        start.lease.map(|length| Lease { length, from: self.confirmed })
    }

    pub fn insert(&mut self, start: &StartJob) {
        let Some(length) = start.lease else { return };
        let id = &start.identity;
        self.by_length.entry(length).or_default().insert(id.job_id);
        self.by_unit.entry((id.operation_id, id.cookie)).or_default().insert(id.job_id);
        self.plan();
    }

    pub fn remove(&mut self, start: &StartJob) {
        let Some(length) = start.lease else { return };
        let id = &start.identity;
        self.over.remove(&id.job_id);
        if let Some(jobs) = self.by_length.get_mut(&length) {
            jobs.remove(&id.job_id);
            if jobs.is_empty() {
                self.by_length.remove(&length);
            }
        }
        if let Some(jobs) = self.by_unit.get_mut(&(id.operation_id, id.cookie)) {
            jobs.remove(&id.job_id);
            if jobs.is_empty() {
                self.by_unit.remove(&(id.operation_id, id.cookie));
            }
        }
        self.plan();
    }

    fn from(&self) -> Span {
        if self.confirmed == Span::ZERO { self.agent_since } else { self.confirmed }
    }

    /// Takes the jobs whose leases are over at this time out of those that a confirmation extends.
    fn latch(&mut self) {
        let (from, since_boot) = (self.from(), self.since_boot);
        while let Some(first) = self.by_length.first_entry()
            && since_boot >= from + *first.key()
        {
            let (length, jobs) = first.remove_entry();
            let ended_at = from + length + grace(length);
            self.over.extend(jobs.into_iter().map(|job| (job, (length, ended_at))));
        }
    }

    fn plan(&mut self) {
        let from = self.from();
        let shortest = self.by_length.keys().next().copied();
        let half = shortest.filter(|_| !self.warned).map(|length| from + Span(length.0 / 2));
        let end = shortest.map(|length| from + length);
        self.next = self.over.values().map(|(_, at)| *at).chain(half).chain(end).min();
    }

    /// Whether a confirmation extends the lease of a job.
    pub fn holds(&self, id: JobId) -> bool {
        !self.over.contains_key(&id)
    }

    /// What is to be on disk before a proxy is told where its lease begins; `None` if it is there.
    pub fn take_news(&mut self) -> Option<NodeEffect> {
        if self.kept >= self.confirmed || self.by_unit.is_empty() {
            return None;
        }
        self.kept = self.confirmed;
        Some(NodeEffect::KeepConfirmed { from: self.confirmed })
    }

    /// When to call again, on the core's clock.
    pub fn wake(&self, now: Time) -> Option<Time> {
        self.next.map(|at| now + Span(at.0.saturating_sub(self.since_boot.0)))
    }
}

impl NodeCore {
    /// The node's other clock: time since the start of the host, also while that was suspended (`CLOCK_BOOTTIME`). To be told
    /// before [`NodeCore::handle`] and [`NodeCore::flush`]; it never goes back.
    pub fn set_since_boot(&mut self, since_boot: Span) {
        if self.leases.since_boot == Span::ZERO {
            self.leases.agent_since = since_boot;
        }
        self.leases.since_boot = self.leases.since_boot.max(since_boot);
    }

    /// What the server had confirmed to the agent before this one ([`NodeEffect::KeepConfirmed`]), on the same boot of the
    /// host. To be told before [`crate::NodeInput::Recovered`].
    pub fn recall_confirmed(&mut self, from: Span) {
        self.confirm(from);
        self.leases.kept = from;
    }

    /// The server has confirmed a heartbeat. A simulator calls it for one that was not sent ([`NodeCore::skip_heartbeat`]).
    /// Leases that are over by now stay over. False if a later time is confirmed already.
    pub fn confirm(&mut self, from: Span) -> bool {
        if from <= self.leases.confirmed {
            return false;
        }
        self.leases.latch();
        self.leases.confirmed = from;
        self.leases.warned = false;
        self.leases.plan();
        true
    }

    /// Where leases begin, as far as the server has confirmed it.
    pub fn confirmed(&self) -> Span {
        self.leases.confirmed
    }

    pub(crate) fn heard(&mut self, from: Span, extended_until: Time, fx: &mut Vec<NodeEffect>) {
        if extended_until > self.leases.extended_until {
            self.leases.extended_until = extended_until;
            // The next heartbeat says so.
            self.nothing_new = false;
        }
        if !self.confirm(from) {
            return;
        }
        fx.extend(self.leases.take_news());
        for id in self.leases.by_length.values().flatten() {
            if self.jobs.get(id).is_some_and(|job| job.connected) {
                fx.push(NodeEffect::ProxySend(*id, ProxyOrder::Heard { from }));
            }
        }
    }

    /// Acts on leases that are half over, over, and over for too long.
    pub(crate) fn check_leases(&mut self, now: Time, fx: &mut Vec<NodeEffect>) {
        let since_boot = self.leases.since_boot;
        if self.leases.next.is_none_or(|next| since_boot < next) {
            return;
        }
        let from = self.leases.from();
        if let Some((length, _)) = self.leases.by_length.first_key_value()
            && !self.leases.warned
            && since_boot >= from + Span(length.0 / 2)
        {
            let left = Span((from + *length).0.saturating_sub(since_boot.0));
            let jobs = self.leases.by_length.values().map(BTreeSet::len).sum();
            self.leases.warned = true;
            fx.push(NodeEffect::LeaseIsHalfOver { jobs, left });
        }
        self.leases.latch();
        let over: Vec<(JobId, Span, Span)> =
            self.leases.over.iter().map(|(id, (length, at))| (*id, *length, *at)).collect();
        for (id, length, at) in over {
            let stage = self.jobs.get(&id).map(|job| job.stage);
            let has_proxy = matches!(stage, Some(Stage::Spawning | Stage::Running));
            if has_proxy && since_boot < at {
                continue;
            }
            // Once: its end is certain from here on.
            self.leases.over.remove(&id);
            self.nothing_new = false;
            self.stop(now, id, aborted(AbortReason::NodeOffline, over_error(length)), fx);
            // The proxy may be stopped as well: the rest of the server's margin is for the kill. One that was ordered before is
            // not postponed.
            if let Some(job) = self.jobs.get_mut(&id).filter(|_| has_proxy) {
                let patience = now + self.settings.kill_timeout.min(grace(length));
                let deadline = job.deadline.map_or(patience, |deadline| deadline.min(patience));
                self.timers.set(job, Some(deadline));
            }
        }
        self.leases.plan();
    }

    /// A job of the same unit is not over yet, or came first: no unit of exclusive work runs twice at once. `before`: jobs that
    /// wait in front of this one.
    pub(crate) fn must_wait_for_unit(&self, id: JobId, before: &VecDeque<JobId>) -> bool {
        let Some(start) = self.jobs.get(&id).map(|job| &job.start).filter(|start| start.lease.is_some())
        else {
            return false;
        };
        let (operation, cookie) = (start.identity.operation_id, start.identity.cookie);
        let others = self.leases.by_unit.get(&(operation, cookie));
        let is_meant = |other: &&JobId| {
            let other = self.jobs.get(*other);
            other.is_some_and(|other| other.id() != id && other.start.identity.task == start.identity.task)
        };
        let waits = |other: &JobId| self.jobs.get(other).is_some_and(|job| job.stage == Stage::Waiting);
        others.into_iter().flatten().filter(is_meant).any(|other| !waits(other) || before.contains(other))
    }
}
