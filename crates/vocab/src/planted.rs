//! Bugs that are planted in test builds, one for each family of invariants: fault simulation must find
//! each of them by the name of what it violates.
//!
//! With the feature `planted-bugs` a test can [`plant`] one of them in its thread; in all other builds
//! [`strikes`] is `false` and the compiler leaves nothing of it.

/// A bug, by what it violates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// `SCHED-1`: a job that uses more than before is not counted in its preemption group.
    GroupsForgetUsage,
    /// `SCHED-2`: the borders of the groups stay where they are when an allocation starts.
    GroupsStay,
    /// `SCHED-5`: an operation that leaves its pool is still counted there.
    CountsStay,
    /// `SCHED-6`: the place of an operation that has ended is offered to nobody.
    NobodyIsLetIn,
    /// `SCHED-10`: a node keeps the resources of an allocation that is gone.
    NodeKeepsResources,
    /// `SCHED-11`: the place among the candidates does not follow the usage.
    CandidatesStay,
    /// `SCHED-12`: a node with room again is not put among those that have it.
    RoomIsForgotten,
    /// `KERNEL-1`: a unit of work that was started is offered once more.
    UnitStaysPending,
    /// `KERNEL-5`: a node keeps a job that is gone.
    NodeKeepsJob,
    /// `KERNEL-6`: an operation is put into the archive and stays among the unfinished.
    NeverForgotten,
    /// `KERNEL-7`: an order to give way outlives its allocation.
    OrderStays,
    /// `UNIT-1`: a store acknowledges a batch that it does not keep.
    LostBatch,
    /// `UNIT-2`: the end of a job does not get into the log.
    LostEvent,
    /// `LIVE-1`: what nodes say of their jobs is never heard.
    DeafServer,
    /// `UNIT-3`: exclusive units of a lost node are given away at once.
    LeaseIgnored,
    /// `NODE-1`: a node counts its cores twice.
    TwiceTheCores,
}

/// Does the bug strike on this occasion? On one of so many, if it is planted.
#[cfg(not(feature = "planted-bugs"))]
#[inline(always)]
pub fn strikes(_: Bug, _every: u64) -> bool {
    false
}

#[cfg(feature = "planted-bugs")]
pub use on::{plant, strikes};

#[cfg(feature = "planted-bugs")]
mod on {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        /// The bug of this thread, and how many occasions it had.
        static PLANTED: Cell<Option<(Bug, u64)>> = const { Cell::new(None) };
    }

    /// Plants a bug in this thread instead of the one before; none: there is none.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug.map(|bug| (bug, 0)));
    }

    /// Does the bug strike on this occasion? On one of so many, if it is planted.
    pub fn strikes(bug: Bug, every: u64) -> bool {
        PLANTED.with(|cell| match cell.get() {
            Some((planted, occasions)) if planted == bug => {
                cell.set(Some((planted, occasions + 1)));
                (occasions + 1).is_multiple_of(every)
            }
            _ => false,
        })
    }
}
