//! The one queue of events: time, then class, then the order of their making (simulator.md 5.1).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use vocab::{JobId, Time};

/// What is to happen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)] // numbers are places in the lists of the engine
pub(super) enum Due {
    /// An event of the scenario.
    Scenario(usize),
    /// The server comes back.
    ServerStarts,
    NodeFails(u32),
    NodeRepaired(u32),
    /// Something goes wrong.
    Fault,
    /// A node without a connection tries to get one.
    NodeConnects(u32),
    /// A slow stream to a node is fast again.
    NodeHears(u32),
    /// The store has written what it was given.
    StoreLands,
    /// The user's process of a job starts.
    JobStarts(u32, JobId),
    /// A job comes to its end by itself.
    JobEnds(u32, JobId),
    /// A job takes the next step of its memory.
    MemoryStep(u32, JobId),
    /// Something happens to the CPU of a node, unless its jobs have changed since: number of the event.
    CpuMoves(u32, u32),
    /// The node's proxy is late with the end of a job.
    EndIsHeard(u32, JobId),
    /// A job that was asked to stop does.
    JobYields(u32, JobId),
    /// The next operation of the workload.
    Submit,
    /// Operations whose replies were lost are sent again.
    Resubmit,
    /// The owner aborts.
    Until(usize),
    /// A node wants to be called.
    NodeWakes(u32),
    /// Rows of the pool series.
    Sample,
}

impl Due {
    fn class(&self) -> u8 {
        match self {
            Due::Scenario(_) | Due::ServerStarts | Due::NodeFails(_) | Due::NodeRepaired(_) => 1,
            Due::Fault | Due::NodeConnects(_) | Due::NodeHears(_) | Due::StoreLands => 1,
            Due::JobStarts(..) | Due::JobEnds(..) | Due::JobYields(..) => 2,
            Due::MemoryStep(..) | Due::CpuMoves(..) | Due::EndIsHeard(..) => 2,
            Due::Submit | Due::Resubmit | Due::Until(_) => 3,
            Due::NodeWakes(_) => 6,
            Due::Sample => 7,
        }
    }
}

/// Events to come.
#[derive(Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<(Time, u8, u64, Due)>>,
    made: u64,
}

impl Queue {
    pub fn push(&mut self, at: Time, due: Due) {
        self.made += 1;
        // Heartbeats of one instant go by the number of the node.
        let order = match due {
            Due::NodeWakes(node) => u64::from(node),
            _ => self.made,
        };
        self.heap.push(Reverse((at, due.class(), order, due)));
    }

    pub fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next event up to an instant that is not the taking of samples, or that alone.
    pub fn pop(&mut self, until: Time, samples: bool) -> Option<Due> {
        let Reverse((at, class, ..)) = self.heap.peek()?;
        if *at > until || (*class == 7) != samples {
            return None;
        }
        self.heap.pop().map(|Reverse((.., due))| due)
    }
}
