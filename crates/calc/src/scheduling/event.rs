//! A line as a value: one thing that happens, or one part of the description.

use super::world::Task;
use scheduler::{OperationDesc, RuntimeParameters};
use std::collections::BTreeSet;
use vocab::{AllocationId, OperationId, Resources, Span, Time};
use yson::Map;

/// A line.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The verb and what it is about, for the answer.
    pub did: String,
    /// Free text of the author.
    pub note: Option<String>,
    pub event: Event,
}

/// What a line says, checked against the world: names are known, amounts are good.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// Everything begins anew.
    Script {
        heartbeat_period: Option<Span>,
    },
    /// Nothing happens.
    Note,
    /// New options of the scheduler.
    Scheduler {
        options: Map,
        config: Box<scheduler::config::SchedulerConfig>,
    },
    /// New options of the tree.
    Tree {
        options: Map,
    },
    Pool {
        name: String,
        parent: String,
        options: Map,
    },
    SetPool {
        name: String,
        options: Map,
    },
    MovePool {
        name: String,
        parent: String,
    },
    RenamePool {
        name: String,
        to: String,
    },
    RemovePool {
        name: String,
    },
    Nodes {
        names: Vec<String>,
        limits: Resources,
        tags: BTreeSet<String>,
    },
    SetNode {
        name: String,
        limits: Option<Resources>,
        tags: Option<BTreeSet<String>>,
    },
    Lost {
        node: String,
    },
    Operation(Box<NewOperation>),
    SetOperation {
        id: OperationId,
        pool: Option<String>,
        parameters: RuntimeParameters,
    },
    Place {
        operation: OperationId,
        task: u32,
        nodes: Vec<String>,
        count: u32,
        resources: Resources,
    },
    Demand {
        operation: OperationId,
        tasks: Vec<Task>,
    },
    Suspend {
        operation: OperationId,
        abort_running_jobs: bool,
    },
    Resume {
        operation: OperationId,
    },
    Complete {
        operation: OperationId,
    },
    Abort {
        operation: OperationId,
    },
    Finish {
        allocations: Vec<AllocationId>,
        outcome: Outcome,
    },
    Gone {
        allocations: Vec<AllocationId>,
    },
    Usage {
        allocation: AllocationId,
        resources: Resources,
    },
    Heartbeat {
        nodes: Vec<String>,
    },
    Update {
        count: u32,
    },
    Advance {
        until: Time,
    },
    Explain(Subject),
    Show(Shown),
}

impl Event {
    /// A part of the description: it begins nothing.
    pub fn describes(&self) -> bool {
        matches!(
            self,
            Event::Script { .. }
                | Event::Note
                | Event::Scheduler { .. }
                | Event::Tree { .. }
                | Event::Pool { .. }
                | Event::SetPool { .. }
                | Event::MovePool { .. }
                | Event::RenamePool { .. }
                | Event::RemovePool { .. }
                | Event::Nodes { .. }
                | Event::SetNode { .. }
                | Event::Operation(_)
                | Event::Place { .. }
                | Event::Show(_)
        )
    }
}

/// An operation to be registered.
#[derive(Clone, Debug)]
pub(super) struct NewOperation {
    pub name: String,
    /// Its id is not given yet.
    pub desc: OperationDesc,
    pub tasks: Vec<Task>,
    pub gives_way: Option<Span>,
    pub suspended: bool,
}

/// How the job in an allocation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Completed,
    Failed,
    Aborted,
}

impl Outcome {
    pub const ALL: [(&'static str, Outcome); 3] =
        [("completed", Outcome::Completed), ("failed", Outcome::Failed), ("aborted", Outcome::Aborted)];

    pub fn as_str(self) -> &'static str {
        Outcome::ALL[self as usize].0
    }
}

/// What is to be explained.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    Operation(OperationId),
    Pool(String),
}

/// What is to be shown in full.
#[derive(Clone, Default, Debug)]
pub(super) struct Shown {
    pub operations: Vec<OperationId>,
    pub pools: Vec<String>,
    pub nodes: Vec<String>,
    /// Attributes under their names in the Orchid, in the place of the usual ones.
    pub attributes: Option<Vec<String>>,
}
