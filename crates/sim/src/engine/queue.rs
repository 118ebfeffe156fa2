//! The one queue of events: time, then class, then the order of their making (simulator.md 5.1).

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use vocab::{JobId, OperationId, Time};

/// What is to happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// An agent that was stopped or killed lives again.
    AgentRevives(u32),
    /// A node is not cut off any more.
    CutEnds(u32),
    /// A job proxy without an agent looks whether its lease is over.
    LeaseEnds(u32, JobId),
    /// Controllers have answered: what a heartbeat starts is on the node.
    NodeIsTold(u32),
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
    /// Jobs of an operation arrive.
    Arrival(OperationId),
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
            Due::AgentRevives(_) | Due::CutEnds(_) => 1,
            Due::JobStarts(..) | Due::JobEnds(..) | Due::JobYields(..) | Due::LeaseEnds(..) => 2,
            Due::MemoryStep(..) | Due::CpuMoves(..) | Due::EndIsHeard(..) => 2,
            Due::Submit | Due::Resubmit | Due::Arrival(_) | Due::Until(_) => 3,
            Due::NodeIsTold(_) => 4,
            Due::NodeWakes(_) => 6,
            Due::Sample => 7,
        }
    }
}

/// An event with its place in the order; two with the same place are the same event.
struct Entry {
    at: Time,
    /// Class and order in it, in one number: millions of these are compared every second.
    rank: u64,
    due: Due,
}

/// Above the bits of the order within a class.
const CLASS_SHIFT: u32 = 60;

impl Entry {
    fn is_sample(&self) -> bool {
        self.rank >> CLASS_SHIFT == u64::from(Due::Sample.class())
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        (self.at, self.rank) == (other.at, other.rank)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The earlier one is the greater one: the heap gives the greatest.
    fn cmp(&self, other: &Entry) -> Ordering {
        (other.at, other.rank).cmp(&(self.at, self.rank))
    }
}

/// Events to come.
#[derive(Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Entry>,
    /// [`Due::NodeWakes`], by themselves: they are most of all events, and small.
    wakes: BinaryHeap<Reverse<(Time, u32)>>,
    made: u64,
}

impl Queue {
    pub fn push(&mut self, at: Time, due: Due) {
        if let Due::NodeWakes(node) = due {
            return self.wakes.push(Reverse((at, node)));
        }
        self.made += 1;
        self.heap.push(Entry { at, rank: u64::from(due.class()) << CLASS_SHIFT | self.made, due });
    }

    pub fn next_time(&self) -> Option<Time> {
        let wake = self.wakes.peek().map(|Reverse((at, _))| *at);
        self.heap.peek().map(|entry| entry.at).into_iter().chain(wake).min()
    }

    /// The next event up to an instant that is not the taking of samples, or that alone.
    pub fn pop(&mut self, until: Time, samples: bool) -> Option<Due> {
        let other = self.heap.peek().map(|entry| (entry.at, entry.rank >> CLASS_SHIFT));
        if let Some(Reverse((at, node))) = self.wakes.peek().copied()
            && other.is_none_or(|other| (at, u64::from(Due::NodeWakes(node).class())) < other)
        {
            // Heartbeats of one instant go by the number of the node.
            return (at <= until && !samples).then(|| self.wakes.pop()).map(|_| Due::NodeWakes(node));
        }
        let entry = self.heap.peek()?;
        if entry.at > until || entry.is_sample() != samples {
            return None;
        }
        self.heap.pop().map(|entry| entry.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_then_class_then_the_order_of_making_or_of_nodes() {
        let mut queue = Queue::default();
        let (first, second) = (Time(1), Time(2));
        queue.push(second, Due::Submit);
        queue.push(first, Due::Sample);
        queue.push(first, Due::NodeWakes(7));
        queue.push(first, Due::NodeWakes(3));
        queue.push(first, Due::Until(9));
        queue.push(first, Due::Submit);
        queue.push(first, Due::Fault);
        assert_eq!(queue.next_time(), Some(first));
        let all: Vec<Due> = std::iter::from_fn(|| queue.pop(first, false)).collect();
        let nodes = [Due::NodeWakes(3), Due::NodeWakes(7)];
        assert_eq!(all[..3], [Due::Fault, Due::Until(9), Due::Submit]);
        assert_eq!(all[3..], nodes);
        assert_eq!(queue.pop(first, true), Some(Due::Sample));
        assert_eq!(queue.pop(first, true), None, "the rest is later");
        assert_eq!(queue.pop(second, false), Some(Due::Submit));
    }
}
