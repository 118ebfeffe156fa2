//! Bugs that are planted ([`vocab::planted`]), one for each family of invariants: the stories of a few
//! seeds find each of them, by name.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use vocab::planted::{Bug, plant};

/// The first violation in the stories of so many seeds. An assertion may come before: that story tells no name.
fn found(bug: Option<Bug>, seeds: u64) -> Option<String> {
    let folder = tempfile::tempdir().expect("a directory");
    let first = (0..seeds).find_map(|seed| {
        plant(bug);
        let story = match catch_unwind(AssertUnwindSafe(|| crate::soak::play(seed, folder.path()))) {
            Ok(story) => story.unwrap_or_else(|e| panic!("seed {seed}: {e}")),
            Err(_) if bug.is_some() => return None,
            Err(panic) => resume_unwind(panic),
        };
        story.violations.into_iter().next()
    });
    plant(None);
    first
}

fn is_found(bug: Bug, name: &str) {
    let found = found(Some(bug), 40);
    assert!(found.as_ref().is_some_and(|what| what.contains(name)), "{bug:?}: {found:?}");
}

macro_rules! planted {
    ($($name:ident: $bug:ident => $violated:literal),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                is_found(Bug::$bug, $violated);
            }
        )*
    };
}

planted! {
    groups_that_forget_usage: GroupsForgetUsage => "SCHED-1:",
    groups_that_stay_as_they_were: GroupsStay => "SCHED-2:",
    counts_that_stay_as_they_were: CountsStay => "SCHED-5:",
    a_queue_that_nobody_looks_at: NobodyIsLetIn => "SCHED-6:",
    a_node_that_keeps_resources: NodeKeepsResources => "SCHED-10:",
    candidates_that_stay_where_they_were: CandidatesStay => "SCHED-11:",
    room_that_is_forgotten: RoomIsForgotten => "SCHED-12:",
    a_unit_that_is_given_twice: UnitStaysPending => "KERNEL-1:",
    a_node_that_keeps_a_job: NodeKeepsJob => "KERNEL-5:",
    an_operation_that_is_never_forgotten: NeverForgotten => "KERNEL-6:",
    an_order_that_outlives_its_allocation: OrderStays => "KERNEL-7:",
    a_store_that_loses_batches: LostBatch => "UNIT-1:",
    leases_that_are_ignored: LeaseIgnored => "UNIT-3:",
    a_log_that_loses_events: LostEvent => "UNIT-2:",
    a_node_that_counts_its_cores_twice: TwiceTheCores => "NODE-1:",
    a_server_that_does_not_listen: DeafServer => "LIVE-1:",
}
