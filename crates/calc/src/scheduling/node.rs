//! An exec node as far as the scheduler sees it: what it holds, what waits there, what it reports.

use scheduler::NodeReport;
use std::collections::BTreeSet;
use vocab::{AllocationId, Resources, Time};

/// A node of a script.
#[derive(Clone, Debug)]
pub(super) struct SimulatedNode {
    pub limits: Resources,
    pub tags: BTreeSet<String>,
    /// In the order in which they came.
    pub held: Vec<Held>,
    /// When it reports next by itself; none: only when a line says so.
    pub next_report: Option<Time>,
}

/// An allocation on a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub id: AllocationId,
    pub resources: Resources,
    /// Accepted, but what it needs is still taken (scheduling.md 8.2, rule 6).
    pub waiting: bool,
    /// It was told to go and is gone by then.
    pub leaves: Option<Time>,
}

impl SimulatedNode {
    /// What running and still releasing allocations hold (scheduling.md 8.2 [U]: without those that
    /// wait).
    pub fn usage(&self) -> Resources {
        self.held.iter().filter(|h| !h.waiting).fold(Resources::ZERO, |sum, h| sum + h.resources)
    }

    pub fn get_mut(&mut self, id: AllocationId) -> Option<&mut Held> {
        self.held.iter_mut().find(|h| h.id == id)
    }

    /// An order to start came in.
    pub fn accept(&mut self, id: AllocationId, resources: Resources) {
        self.held.push(Held { id, resources, waiting: true, leaves: None });
        self.admit();
    }

    /// Lets begin what fits, in the order of arrival.
    pub fn admit(&mut self) {
        let mut usage = self.usage();
        for held in self.held.iter_mut().filter(|h| h.waiting) {
            if !self.limits.dominates(&(usage + held.resources)) {
                break;
            }
            held.waiting = false;
            usage += held.resources;
        }
    }

    pub fn remove(&mut self, id: AllocationId) {
        self.held.retain(|h| h.id != id);
        self.admit();
    }

    pub fn report(&self) -> NodeReport {
        NodeReport {
            resource_limits: self.limits,
            resource_usage: self.usage(),
            tags: self.tags.clone().into(),
            has_waiting_allocations: self.held.iter().any(|h| h.waiting),
        }
    }
}
