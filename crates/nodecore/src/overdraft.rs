//! When jobs use more than there is: whom to abort (jobs-and-nodes.md 3.5, 3.6).

use std::cmp::Reverse;

use vocab::{AbortReason, AllocationId, Failure, JobId, JobOutcome, Resource, Span, Time, code};

use crate::core::aborted;
use crate::job::{Holds, Job};
use crate::{NodeCore, NodeEffect, Settings};

/// Since when the node has been above its limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Overdraft {
    cpu_since: Option<Time>,
    memory_since: Option<Time>,
}

/// After a victim of memory pressure is gone: what it had comes back, and the kernel's figure, a mean of ten
/// seconds, shows that only then.
const PRESSURE_PATIENCE: Span = Span::from_secs(10);

impl Overdraft {
    /// When the patience ends.
    pub fn next(&self, settings: &Settings) -> Option<Time> {
        let cpu = self.cpu_since.map(|t| t + settings.cpu_overdraft_timeout);
        let memory = self.memory_since.map(|t| t + settings.memory_overdraft_timeout);
        cpu.into_iter().chain(memory).min()
    }
}

impl NodeCore {
    /// Job `id` has just grown: if memory does not suffice any more, somebody has to go (3.5).
    ///
    /// The dying are not counted: their memory comes back, and to kill one more for each update
    /// that arrives meanwhile would kill too many.
    pub(crate) fn relieve_memory(&mut self, now: Time, id: JobId, fx: &mut Vec<NodeEffect>) {
        let Some(grown) = self.jobs.get(&id) else { return };
        let overdrafted = grown.is_overdrafted();
        let strict = self.settings.always_abort_on_memory_reserve_overdraft;
        if !(overdrafted && strict || self.is_over(Resource::Memory)) {
            return;
        }
        let allocation = grown.start.identity.allocation_id;
        if overdrafted {
            let outcome = overdraft(grown, "Resource usage overdrafted");
            return self.stop(now, id, outcome, fx);
        }
        if let Some(victim) = self.worst_overdraft() {
            return self.abort_for_others(now, victim, Some(allocation), fx);
        }
        let outcome = overcommit(grown, "Resource usage on node overcommitted");
        self.stop(now, id, outcome, fx);
    }

    /// The kernel has trouble to find memory: the same procedure, without an update that began it (3.5).
    /// A job inside its reserve is not to blame for that, so without an overdraft nobody has to go.
    pub(crate) fn relieve_pressure(&mut self, now: Time, fx: &mut Vec<NodeEffect>) {
        // One at a time: what the last victim gives back may be enough.
        let is_dying = |job: &Job| job.stop.is_some() && job.end.is_none() && job.holds == Holds::Releasing;
        if self.jobs.values().any(is_dying) {
            self.pressure_until = Some(now + PRESSURE_PATIENCE);
        }
        if self.pressure_until.is_none_or(|until| now >= until)
            && let Some(victim) = self.worst_overdraft()
        {
            self.pressure_until = Some(now + PRESSURE_PATIENCE);
            self.abort_for_others(now, victim, None, fx);
        }
    }

    /// Who is furthest above what was counted for it; among equals the latest start.
    fn worst_overdraft(&self) -> Option<JobId> {
        let living = self.jobs.iter().filter(|(_, job)| job.holds == Holds::Acquired && job.is_overdrafted());
        let worst =
            living.max_by_key(|(_, job)| (job.usage.memory - job.start.resources.memory, job.start_time));
        worst.map(|(id, _)| *id)
    }

    fn abort_for_others(
        &mut self,
        now: Time,
        victim: JobId,
        other: Option<AllocationId>,
        fx: &mut Vec<NodeEffect>,
    ) {
        let Some(job) = self.jobs.get(&victim) else { return };
        let mut outcome = match other {
            Some(_) => overdraft(job, "Some other allocation with guarantee overdrafted node resource usage"),
            None => overdraft(job, "Resource usage overdrafted while the host ran out of memory"),
        };
        if let (JobOutcome::Aborted { error, .. }, Some(other)) = (&mut outcome, other) {
            error.attributes.insert("other_allocation_id", other);
        }
        self.stop(now, victim, outcome, fx);
    }

    /// Remembers since when usage has been above a limit; an excess that is gone is forgotten.
    pub(crate) fn watch_overdraft(&mut self, now: Time) {
        let since = |old: Option<Time>, over: bool| over.then(|| old.unwrap_or(now));
        self.overdraft = Overdraft {
            cpu_since: since(self.overdraft.cpu_since, self.is_over(Resource::Cpu)),
            memory_since: since(self.overdraft.memory_since, self.is_over(Resource::Memory)),
        };
    }

    /// Limits became smaller, or CPU monitors grew back, and patience is over (3.6).
    pub(crate) fn adjust_to_limits(&mut self, now: Time, fx: &mut Vec<NodeEffect>) {
        let over = |since: Option<Time>, timeout| since.is_some_and(|t| now.since(t) >= timeout);
        let cpu = over(self.overdraft.cpu_since, self.settings.cpu_overdraft_timeout);
        let memory = over(self.overdraft.memory_since, self.settings.memory_overdraft_timeout);
        if !cpu && !memory {
            return;
        }
        let mut victims: Vec<(bool, Option<Time>, JobId)> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.holds == Holds::Acquired)
            .map(|(id, job)| (memory && job.is_overdrafted(), job.start_time.or(job.acquired_time), *id))
            .collect();
        victims.sort_unstable_by_key(|victim| Reverse(*victim));
        for (_, _, id) in victims {
            if !(cpu && self.is_over(Resource::Cpu) || memory && self.is_over(Resource::Memory)) {
                break;
            }
            let Some(job) = self.jobs.get(&id) else { continue };
            let holds = |r| self.is_over(r) && job.usage.raw(r) > 0;
            if !(cpu && holds(Resource::Cpu) || memory && holds(Resource::Memory)) {
                continue; // its end would help nobody
            }
            let text = "Resource usage overdraft adjustment";
            let outcome =
                if memory && job.is_overdrafted() { overdraft(job, text) } else { overcommit(job, text) };
            self.stop(now, id, outcome, fx);
        }
        self.overdraft = Overdraft::default();
    }

    fn is_over(&self, r: Resource) -> bool {
        let limit = self.ledger.limits().raw(r);
        let bearable = match r {
            Resource::Memory => self.settings.physical_memory.map_or(limit, |physical| physical.max(limit)),
            _ => limit,
        };
        self.ledger.acquired().raw(r) > bearable
    }
}

fn overdraft(job: &Job, text: &str) -> JobOutcome {
    let error = Failure::coded(code::RESOURCE_OVERDRAFT, text).with("resource_usage", job.usage.to_value());
    aborted(AbortReason::ResourceOverdraft, error)
}

fn overcommit(job: &Job, text: &str) -> JobOutcome {
    let error = Failure::new(text).with("resource_usage", job.usage.to_value());
    aborted(AbortReason::NodeResourceOvercommit, error)
}
