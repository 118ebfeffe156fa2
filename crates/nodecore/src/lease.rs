//! Leases of exclusive jobs (S19): what the server has confirmed, and what follows when it does not.
//!
//! Each job proxy keeps the lease of its job and stops it by itself, so the agent may be dead or stopped. The agent passes on
//! what the server confirms, logs when half of a lease is over, and is the second line: it ends jobs that have not started
//! when their lease is over, and those whose proxy has not stopped them a grace period later.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use vocab::lease::{Lease, grace, over};
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
    /// Where leases begin, as the server has confirmed; zero if it has not yet in this life of the agent.
    confirmed: Span,
    /// The first time that was told: jobs that the agent has found are not ended here before their leases have passed once.
    agent_since: Span,
    /// The newest extension of leases that was heard of, on the server's clock.
    pub extended_until: Time,
    /// Jobs that are not over, by the length of their lease.
    by_length: BTreeMap<Span, BTreeSet<JobId>>,
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
        self.confirmed.max(self.agent_since)
    }

    fn plan(&mut self) {
        let from = self.from();
        let half =
            self.by_length.keys().next().filter(|_| !self.warned).map(|length| from + Span(length.0 / 2));
        let ends = self.by_length.keys().flat_map(|length| {
            let end = from + *length;
            [end, end + grace(*length)]
        });
        self.next = ends.chain(half).filter(|at| *at > self.since_boot).min();
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

    /// The server has confirmed a heartbeat that was not sent ([`NodeCore::skip_heartbeat`]): for those who simulate both.
    pub fn confirm(&mut self, from: Span) -> bool {
        if from <= self.leases.confirmed {
            return false;
        }
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
        let mut ended = Vec::new();
        for (length, jobs) in &self.leases.by_length {
            let end = from + *length;
            if !self.leases.warned && since_boot >= from + Span(length.0 / 2) {
                self.leases.warned = true;
                let left = Span(end.0.saturating_sub(since_boot.0));
                let jobs = self.leases.by_length.values().map(BTreeSet::len).sum();
                fx.push(NodeEffect::LeaseIsHalfOver { jobs, left });
            }
            if since_boot >= end {
                ended.extend(jobs.iter().map(|id| (*id, *length, since_boot >= end + grace(*length))));
            }
        }
        for (id, length, too_long) in ended {
            let Some(job) = self.jobs.get(&id) else { continue };
            let has_proxy = matches!(job.stage, Stage::Spawning | Stage::Running);
            if has_proxy && !too_long {
                continue;
            }
            self.stop(now, id, aborted(AbortReason::NodeOffline, over(length)), fx);
            // The proxy may be stopped as well: the rest of the server's margin is for the kill.
            if let Some(job) = self.jobs.get_mut(&id).filter(|_| has_proxy) {
                let patience = self.settings.kill_timeout.min(grace(length));
                self.timers.set(job, Some(now + patience));
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
