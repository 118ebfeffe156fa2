//! After a restart of the server: jobs that still run are adopted (jobs-and-nodes.md 9.3).
//!
//! ```text
//! restore(..)                     units that were at work are pending, their jobs are awaited
//! adopt_job(..)  per reported job; a finished one is adopted first and then job_finished(..)
//! end_revival(..)                 what nobody reported is counted aborted
//! ```

use super::limits::Life;
use super::{JobVerdict, OperationController, OperationEvent};
use crate::job::Joblet;
use crate::memory::Reserved;
use std::collections::BTreeSet;
use vocab::{AbortReason, Failure, JobIdentity, JobPhase, Resources, Time, code};

/// Why a job that a node reports does not belong here; the node is to kill and forget it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AdoptError {
    /// No such operation, task or job, or nobody waits for it any more.
    #[error("Unknown job")]
    Unknown,
    /// Its end has been counted already: the report is a repetition.
    #[error("The end of the job has been counted already")]
    AlreadyFinished,
    /// Another job has its unit and is no competitor of this one, or has done it, or the task has shrunk.
    #[error("Another job has the unit of this one, or nobody wants it any more")]
    UnitTaken,
}

/// What a node says about a job that it holds.
#[derive(Clone, Debug)]
pub struct HeldJob<'a> {
    /// `host:port` of the node.
    pub node_address: &'a str,
    /// What the scheduler granted.
    pub granted: Resources,
    /// When the node accepted the job.
    pub start_time: Time,
    /// When the user's process started.
    pub exec_start_time: Option<Time>,
    /// Where it is in its life.
    pub phase: JobPhase,
}

/// More indices than one crash can have forgotten: a report beyond is not believed.
const MAX_FORGOTTEN: u64 = 1 << 20;

impl OperationController {
    /// Takes back a job that a node holds. Adopting a job that is here already changes nothing.
    pub fn adopt_job(&mut self, identity: &JobIdentity, held: HeldJob<'_>) -> Result<(), AdoptError> {
        if self.jobs.contains_key(&identity.job_id) {
            return Ok(());
        }
        let number = self.tasks.iter().position(|t| *t.spec.name == *identity.task);
        let (true, Some(number)) = (identity.operation_id == self.id, number) else {
            return Err(AdoptError::Unknown);
        };
        let task = &mut self.tasks[number];
        let index = identity.task_job_index;
        // Orders go out before the state that `settle` changed is durable, so a crash may have forgotten
        // the newest indices. They are given in order: if this one was, those before it were too, and
        // none of their ends has been counted, for that would have made them durable.
        let is_open = task.open.contains(index) || index >= task.next_job_index;
        if !is_open {
            return Err(AdoptError::AlreadyFinished);
        }
        if !self.reviving || self.life == Life::Over {
            return Err(AdoptError::Unknown);
        }
        let started = task.units.start(identity.cookie);
        let joins = task.units.is_running(identity.cookie)
            && task.copies.admits(identity.cookie, identity.job_id, index);
        if !started && !joins {
            return Err(AdoptError::UnitTaken);
        }
        if index >= task.next_job_index {
            if index - task.next_job_index > MAX_FORGOTTEN {
                if started {
                    task.units.give_back(identity.cookie);
                }
                return Err(AdoptError::Unknown);
            }
            // What these were reserved with is forgotten; most likely it was the usual.
            let usual = Reserved::new(&task.memory, task.memory.current_factors());
            (task.next_job_index..=index).for_each(|forgotten| task.open.insert(forgotten, usual));
            task.next_job_index = index + 1;
            task.dirty = true;
        }
        if identity.job_index >= self.next_job_index {
            self.next_job_index = identity.job_index + 1;
            self.dirty = true;
        }
        task.copies.join(identity.cookie, identity.job_id, index);
        let reserved = task.open.get(index);
        let reserved =
            reserved.unwrap_or_else(|| Reserved::new(&task.memory, task.memory.factors(identity.cookie)));
        let joblet = Joblet {
            predecessor: task.memory.predecessor(identity.cookie),
            identity: identity.clone(),
            task: number as u32,
            node: held.node_address.into(),
            granted: held.granted,
            factors: reserved.factors,
            origins: None,
            reserve: reserved.request,
            start_time: held.start_time,
            exec_start_time: held.exec_start_time,
            phase: held.phase,
            slot_index: None,
            statistics: None,
            stderr_size: 0,
            interruption: None,
            preempted_for: None,
        };
        self.jobs.insert(identity.job_id, joblet);
        if held.exec_start_time.is_some() {
            self.note_start(number as u32, held.node_address);
        }
        Ok(())
    }

    /// Jobs that were open when the state was stored and that no node has reported yet.
    pub fn awaited_job_count(&self) -> usize {
        let open: usize = self.tasks.iter().map(|t| t.open.len()).sum();
        open - self.jobs.len()
    }

    /// Those jobs: the task's name and the job's index in it. Nobody knows their ids.
    pub fn awaited_jobs(&self) -> impl Iterator<Item = (&str, u64)> {
        let reported: BTreeSet<(u32, u64)> =
            self.jobs.values().map(|j| (j.task, j.identity.task_job_index)).collect();
        let open = (0u32..).zip(&self.tasks).flat_map(|(number, task)| {
            task.open.indices().map(move |index| (number, task.spec.name.as_str(), index))
        });
        open.filter(move |(number, _, index)| !reported.contains(&(*number, *index)))
            .map(|(_, name, index)| (name, index))
    }

    /// No more reports are expected: awaited jobs are counted aborted, reason
    /// `revival_confirmation_timeout`; their units are pending already.
    ///
    /// A gang that did not come back whole starts a new incarnation; `fail_on_job_restart` does not
    /// forgive a missing job.
    pub fn end_revival(&mut self, now: Time) -> (Vec<JobVerdict>, Option<OperationEvent>) {
        if !std::mem::take(&mut self.reviving) || self.life == Life::Over {
            return (Vec::new(), None);
        }
        let restart_problem = self.restart_problem();
        let mut gang_broken = false;
        for (number, task) in self.tasks.iter_mut().enumerate() {
            let mine = self.jobs.values().filter(|j| j.task as usize == number);
            let running: BTreeSet<u64> = mine.map(|j| j.identity.task_job_index).collect();
            task.copies.forget_missing();
            let awaited = (task.open.len() - running.len()) as u64;
            if awaited > 0 {
                *task.counter.aborted.entry(AbortReason::RevivalConfirmationTimeout).or_default() += awaited;
                task.open.retain(|index| running.contains(&index));
                task.dirty = true;
            }
            task.note_time(now);
            // A job is missing and a rank is vacant: the gang is not whole. Ranks that are done, or
            // had not started before the restart either, are no reason to begin anew (9.2: a short
            // restart moves no counter).
            let mut ranks = 0..task.spec.gang_size.unwrap_or(0);
            gang_broken |= awaited > 0 && ranks.any(|cookie| task.units.is_pending(cookie));
        }
        let (verdicts, event) = match restart_problem {
            Some(failure) => (Vec::new(), Some(OperationEvent::Failed(failure))),
            None if gang_broken => self.switch_incarnation(now),
            None => (Vec::new(), None),
        };
        let event = event.or_else(|| self.end_if_done());
        self.heed(event.as_ref());
        (verdicts, event)
    }

    /// With `fail_on_job_restart` an operation lives on only if all of its jobs do.
    fn restart_problem(&self) -> Option<Failure> {
        let strict =
            |t: &crate::task::Task| self.root.fail_on_job_restart || t.spec.script.fail_on_job_restart;
        let tasks = self.tasks.iter().enumerate().filter(|(_, t)| strict(t) && t.start_time.is_some());
        let (mut expected, mut started) = (0u64, 0u64);
        for (number, task) in tasks {
            expected += task.open.len() as u64;
            started += self.jobs.values().filter(|j| j.task as usize == number).count() as u64;
        }
        (started < expected).then(|| {
            Failure::coded(
                code::OPERATION_FAILED_ON_JOB_RESTART,
                "Cannot revive operation when \"fail_on_job_restart\" option is set: some of its jobs are lost",
            )
            .with("reason", AbortReason::RevivalConfirmationTimeout)
            .with("expected_job_count", expected)
            .with("started_job_count", started)
        })
    }
}
