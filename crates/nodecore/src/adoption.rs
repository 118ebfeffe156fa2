//! Jobs that an earlier life of the agent left behind (jobs-and-nodes.md 9.2).

use vocab::{AbortReason, Failure, Time};

use crate::core::aborted;
use crate::job::{Holds, Job, Room, Stage};
use crate::{Fate, JobRecord, JobResult, NodeCore, NodeEffect, RecoveredJob};

impl NodeCore {
    /// Takes all of them in before anything else happens.
    pub(crate) fn recover(&mut self, now: Time, jobs: Vec<RecoveredJob>, fx: &mut Vec<NodeEffect>) {
        assert!(self.jobs.is_empty(), "jobs are recovered before all else");
        for RecoveredJob { record, fate, survivors } in jobs {
            self.adopt(now, record, fate, survivors, fx);
        }
    }

    fn adopt(&mut self, now: Time, record: JobRecord, fate: Fate, survivors: bool, fx: &mut Vec<NodeEffect>) {
        let mut job = Job::new(record.start, record.accepted_time);
        let id = job.id();
        job.acquired_time = Some(record.acquired_time);
        (job.fetched_time, job.preparation) = (record.fetched_time, record.preparation);
        job.slot = Some(record.slot);
        job.room = Room::Ready;
        self.slots.take_exactly(record.slot);
        if let Some(end) = record.end {
            job.holds = Holds::Nothing;
            job.stage = Stage::Over;
            job.start_time = end.start_time;
            job.stderr_size = end.stderr_size;
            job.long_stderr = end.stderr_size > 0 && end.stderr.is_none();
            job.end = Some(end);
            if survivors {
                self.ledger.adopt(job.usage);
                job.holds = Holds::Acquired;
                self.disk.promise(&job);
                self.take_devices(&mut job, record.gpus, record.ports);
            }
            self.jobs.insert(id, job);
            self.report(id, fx);
            // What lives keeps its slot, and is killed again and again (4.6).
            return if survivors { self.kill(now, id, fx) } else { self.tidy(now, id, fx) };
        }
        // Its resources are taken before any new start, even above the limits: those that it holds now,
        // which its proxy knows, not those that it was started with.
        if let Fate::Alive { holds: Some(holds), .. } = &fate {
            job.total_peak = holds.total_peak;
            job.usage = job.usage_with(Some(holds.cpu), &self.settings);
        }
        self.ledger.adopt(job.usage);
        job.holds = Holds::Acquired;
        self.disk.promise(&job);
        self.take_devices(&mut job, record.gpus, record.ports);
        job.stage = Stage::Spawning;
        if let Fate::Alive { start_time: Some(start), .. } = fate {
            job.stage = Stage::Running;
            job.start_time = Some(start);
        }
        self.timers.set(&mut job, Some(now + self.settings.job_proxy_preparation_timeout));
        self.leases.insert(&job.start);
        self.jobs.insert(id, job);
        match fate {
            Fate::Alive { .. } => {}
            Fate::Ended(result) => {
                let survivors = survivors || result.survivors;
                self.job_ended(now, id, JobResult { survivors, ..result }, fx);
            }
            Fate::Lost(what) if survivors => {
                let error = Failure::new("Job proxy lost during node restart").because(Failure::new(what));
                self.proxy_lost(now, id, aborted(AbortReason::Other, error), fx);
            }
            Fate::Lost(what) => {
                let error = Failure::new("Job proxy lost during node restart").because(Failure::new(what));
                self.end_here(now, id, aborted(AbortReason::Other, error), fx);
            }
        }
    }

    /// Its devices and ports are its own still.
    fn take_devices(&mut self, job: &mut Job, gpus: Vec<u32>, ports: Vec<u16>) {
        gpus.iter().for_each(|index| self.gpus.take_exactly(*index));
        ports.iter().for_each(|port| self.ports.take_exactly(*port));
        (job.gpus, job.ports) = (gpus, ports);
    }
}
