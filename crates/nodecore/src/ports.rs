//! Ports of jobs (jobs-and-nodes.md 3.10): which are given away, and how a job gets its own.
//!
//! The pool only knows what this node has given to its jobs. Whether somebody else on the host uses a port
//! the edge finds out by a bind ([`NodeEffect::ProbePorts`]); a port that is in use is passed over.

use std::collections::BTreeSet;

use vocab::{AbortReason, Failure, JobId, JobOutcome, Time};

use crate::core::aborted;
use crate::job::{Job, Stage};
use crate::{NodeCore, NodeEffect};

/// Ports of a range, given out in turn: one that was just given back is the last to be used again, so that
/// a new job does not get the late connections of an old one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortPool {
    first: u16,
    count: u16,
    /// Offset of the port that is looked at first.
    next: u16,
    taken: BTreeSet<u16>,
}

impl PortPool {
    /// Ports `first..first + count`, as far as there are such; begins anywhere in the middle, so that nodes of
    /// one host do not try the same ones at the same time.
    pub fn new(first: u16, count: u16, begin: u64) -> PortPool {
        let count = count.min(u16::MAX - first);
        let next = if count == 0 { 0 } else { (begin % u64::from(count)) as u16 };
        PortPool { first, count, next, taken: BTreeSet::new() }
    }
    /// Ports that are not given away.
    pub fn free(&self) -> usize {
        (usize::from(self.count)).saturating_sub(self.taken.len())
    }
    /// So many ports, or none if there are not enough.
    pub fn take(&mut self, wanted: u32) -> Option<Vec<u16>> {
        if self.free() < wanted as usize {
            return None;
        }
        let mut ports = Vec::new();
        while ports.len() < wanted as usize {
            let port = self.first + self.next;
            self.next = (self.next + 1) % self.count;
            if self.taken.insert(port) {
                ports.push(port);
            }
        }
        Some(ports)
    }
    /// The end of a job that wants more ports than this node ever has: it would wait for nothing.
    pub(crate) fn refusal(&self, job: &Job) -> Option<JobOutcome> {
        let wanted = job.start.description.port_count;
        (wanted > u32::from(self.count)).then(|| {
            let error = Failure::new("The job asks for more ports than the node has")
                .with("port_count", i64::from(wanted))
                .with("node_port_count", i64::from(self.count));
            aborted(AbortReason::Other, error)
        })
    }
    /// Somebody has this port already, whether it is of the range or not.
    pub fn take_exactly(&mut self, port: u16) {
        if (self.first..self.first + self.count).contains(&port) {
            self.taken.insert(port);
        }
    }
    /// Gives a port back.
    pub fn give_back(&mut self, port: u16) {
        self.taken.remove(&port);
    }
}

impl NodeCore {
    /// The edge has tried the ports of a job: those in use by others are replaced, and the new ones tried.
    pub(crate) fn ports_probed(&mut self, now: Time, id: JobId, busy: &[u16], fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Stage::ProbingPorts { tried } = &mut job.stage else { return };
        job.ports.retain(|port| !busy.contains(port));
        busy.iter().for_each(|port| self.ports.give_back(*port));
        if busy.is_empty() {
            return self.prepare(now, id, fx);
        }
        // After a whole round there is no hope left.
        *tried += busy.len();
        let more = Some(busy.len() as u32).filter(|_| *tried <= usize::from(self.settings.port_count));
        match more.and_then(|n| self.ports.take(n)) {
            Some(fresh) => {
                job.ports.extend_from_slice(&fresh);
                fx.push(NodeEffect::ProbePorts { job_id: id, ports: fresh });
            }
            None => {
                let error = Failure::new("The node has no free ports for the job")
                    .with("port_count", i64::from(job.start.description.port_count));
                self.stop(now, id, aborted(AbortReason::Other, error), fx);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_given_in_turn() {
        let mut pool = PortPool::new(20_000, 4, 6);
        assert_eq!(pool.take(3), Some(vec![20_002, 20_003, 20_000]));
        assert_eq!((pool.take(2), pool.free()), (None, 1), "all or nothing");
        pool.give_back(20_003);
        pool.take_exactly(20_001);
        pool.take_exactly(7);
        assert_eq!((pool.take(1), pool.free()), (Some(vec![20_003]), 0));
        assert_eq!(PortPool::new(65_000, 10_000, 0).free(), 535, "not beyond the last one");
        assert_eq!(PortPool::new(1, 0, 9).take(0), Some(Vec::new()));
    }
}
