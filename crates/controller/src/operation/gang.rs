//! Gangs: jobs that only make sense together (jobs-and-nodes.md 6.9).
//!
//! All jobs of an operation belong to its current incarnation. When a ranked job of a gang ends in
//! any way but well, everything starts anew under a new incarnation, as far as possible where it was:
//! an allocation whose job is aborted for this gets the next run of the same unit. Only that of the job
//! that broke the gang is given up; if a reserved job of its task has one, the vacant rank takes that.
//!
//! Others stay where they are when they have completed, if they want to: the next unit of the task begins there.

use super::limits::Life;
use super::{JobVerdict, OperationController, OperationEvent};
use crate::job::Joblet;
use crate::memory::Group;
use std::collections::BTreeSet;
use vocab::{AbortReason, Failure, JobId, OperationId, Time};

/// A unit that may begin in the allocation of a job that was aborted with its gang, or has completed
/// ([`OperationController::settle_again`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reuse {
    /// Whose allocation.
    pub job_id: JobId,
    /// Task's number.
    pub task: u32,
    /// Which unit.
    pub cookie: u32,
}

impl OperationController {
    /// Begins a new incarnation: other running jobs are aborted, all units are pending again.
    pub(super) fn switch_incarnation(&mut self, now: Time) -> (Vec<JobVerdict>, Option<OperationEvent>) {
        if !self.options.gang_manager_enabled {
            let why = "Switching gang operation to new incarnation is disabled by config";
            return (Vec::new(), Some(OperationEvent::Failed(Failure::new(why))));
        }
        // The records of these jobs name the incarnation that they ran in, so they are closed first.
        let aborted = self.drop_all(now, AbortReason::OperationIncarnationChanged);
        self.incarnation += 1;
        self.incarnation_name = incarnation_name(self.id, self.incarnation);
        self.dirty = true;
        for task in &mut self.tasks {
            task.units.lose_all();
            task.counter.lose_all();
            task.copies.ends.lose_all();
            task.note_time(now);
            task.dirty = true;
        }
        (aborted, None)
    }

    /// Who of the running jobs may leave its allocation to which unit. Whoever is on its way out does not.
    pub(super) fn reusable(&self) -> Vec<Reuse> {
        let stays = |joblet: &&Joblet| joblet.interruption.is_none();
        let mut places: Vec<Reuse> = self
            .jobs
            .values()
            .filter(stays)
            .filter(|joblet| !self.tasks[joblet.task as usize].first_start.is_paused())
            .filter(|joblet| {
                !self.tasks[joblet.task as usize]
                    .copies
                    .is_copy(joblet.identity.cookie, joblet.identity.job_id)
            })
            .map(|j| Reuse { job_id: j.identity.job_id, task: j.task, cookie: j.identity.cookie })
            .collect();
        places.sort_by_key(|place| (place.task, place.cookie));
        for (number, task) in (0u32..).zip(&self.tasks) {
            let taken: BTreeSet<u32> = places.iter().filter(|p| p.task == number).map(|p| p.cookie).collect();
            let vacant = (0..task.spec.gang_size.unwrap_or(0)).filter(|rank| !taken.contains(rank));
            let spares = places.iter_mut().filter(|p| p.task == number && task.rank_of(p.cookie).is_none());
            for (rank, spare) in vacant.zip(spares.filter(|_| task.spec.gang_size.is_some())) {
                spare.cookie = rank;
            }
        }
        places
    }

    /// May an allocation of this operation have several jobs, one after the other?
    pub fn keeps_allocations(&self) -> bool {
        self.root.enable_multiple_jobs && !self.has_gangs() && self.life == Life::Running && !self.reviving
    }

    /// The next unit of a completed job's task, for its allocation.
    pub(super) fn next_in_place(&self, joblet: &Joblet) -> Option<Reuse> {
        let task = self.keeps_allocations().then(|| &self.tasks[joblet.task as usize])?;
        let cookie = task.peek(Group::Usual)?;
        Some(Reuse { job_id: joblet.identity.job_id, task: joblet.task, cookie })
    }

    /// The current incarnation, as jobs see it in `YT_OPERATION_INCARNATION`.
    pub fn incarnation(&self) -> &str {
        &self.incarnation_name
    }

    pub(super) fn has_gangs(&self) -> bool {
        self.tasks.iter().any(|t| t.spec.gang_size.is_some())
    }
}

/// A name that no other incarnation of any operation has: ids are unique, numbers are inside one.
pub(super) fn incarnation_name(id: OperationId, number: u32) -> String {
    let [a, _, _, d] = id.0.0;
    format!("{:x}-{:x}-{number:x}", a ^ number.wrapping_mul(0x9e37_79b9), d)
}
