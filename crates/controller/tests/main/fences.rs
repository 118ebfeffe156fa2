//! Units of exclusive work whose last job may still run (S19).

use crate::script::*;
use controller::spec;
use controller::{ControllerOptions, Grant, SettleError};
use vocab::*;

const TWO: &str = "{tasks={a={command=x; job_count=2}}}";

fn is_exclusive(operation_type: OperationType, text: &str) -> Vec<bool> {
    let parsed = spec::parse(operation_type, &map(text), &ControllerOptions::default()).expect("a good spec");
    parsed.spec.tasks.iter().map(|task| task.exclusive).collect()
}

/// S19.
#[test]
fn work_is_exclusive_unless_its_results_are_committed_once_or_its_owner_says_otherwise() {
    let vanilla = |text: &str| is_exclusive(OperationType::Vanilla, text);
    assert_eq!(vanilla(TWO), [true]);
    assert_eq!(vanilla("{allow_concurrent_attempts=%true; tasks={a={command=x; job_count=2}}}"), [false]);
    assert_eq!(
        vanilla(
            "{tasks={a={command=x; job_count=2; enable_speculative_jobs=%true}; b={command=x; job_count=1}}}"
        ),
        [false, true],
        "its owner asks for two jobs of a unit"
    );
    let of_map = |options: &str| {
        let text = format!(
            "{{{options} mapper={{command=x}}; input_table_paths=[\"//a\"]; output_table_paths=[\"//b\"]}}"
        );
        is_exclusive(OperationType::Map, &text)
    };
    assert_eq!(of_map(""), [false]);
    assert_eq!(of_map("try_avoid_duplicating_jobs=%true;"), [true]);
    assert_eq!(of_map("allow_concurrent_attempts=%false;"), [true]);
    let both = "{allow_concurrent_attempts=%false; tasks={a={command=x; job_count=2; enable_speculative_jobs=%true}}}";
    let refused = parse(both).expect_err("they contradict each other");
    assert_eq!(
        refused.find_attribute("path").and_then(|p| p.as_str()),
        Some("/tasks/a/enable_speculative_jobs")
    );
}

/// S19.
#[test]
fn a_unit_whose_job_was_given_up_waits_until_the_job_is_over() {
    let mut b = Bench::new(TWO);
    b.settle(0).expect("a unit");
    b.settle(0).expect("a unit");
    let (given_up, _) = b.controller.abort_all(b.now, AbortReason::OperationSuspended);
    assert_eq!(given_up.len(), 2);
    assert_eq!(b.counts(), "total=2 running=0 pending=2 completed=0 failed=0 aborted=2 lost=0");
    assert_eq!((b.controller.demand(), b.settle(0).err()), (vec![], Some(SettleError::EmptyInput)));
    let units: Vec<_> =
        b.controller.fenced_units().map(|unit| (unit.job_id, unit.cookie, unit.node)).collect();
    assert_eq!(units, [(Bench::job_id(0), 0, NODE), (Bench::job_id(1), 1, NODE)]);
    assert!(b.controller.lift_fence(Bench::job_id(1)) && !b.controller.lift_fence(Bench::job_id(1)));
    assert_eq!(b.controller.demand()[0].count, 1);
    assert_eq!(b.settle(0).expect("it is free").0.cookie, 1);
    assert!(b.controller.lift_fence(Bench::job_id(0)));
    assert_eq!(b.settle(0).expect("it is free").0.cookie, 0);
}

/// S19: a node that ended the job itself has said all that is needed.
#[test]
fn a_job_that_its_node_has_ended_leaves_no_fence() {
    let mut b = Bench::new(TWO);
    b.settle(0).expect("a unit");
    b.finish(0, aborted(AbortReason::NodeOffline)).expect("known");
    assert_eq!((b.controller.fenced_units().count(), b.controller.demand()[0].count), (0, 2));
}

/// S19.
#[test]
fn units_that_may_run_twice_have_no_fences() {
    let mut b = Bench::new("{allow_concurrent_attempts=%true; tasks={a={command=x; job_count=2}}}");
    b.settle(0).expect("a unit");
    b.controller.abort_all(b.now, AbortReason::OperationSuspended);
    assert_eq!((b.controller.fenced_units().count(), b.controller.demand()[0].count), (0, 2));
}

/// S19: the node starts the next run of a rank when the one before is over; another node knows nothing of it.
#[test]
fn a_gang_begins_anew_in_its_places_and_nowhere_else() {
    let mut b = Bench::new("{tasks={a={job_count=2;command=x;gang_options={}}}}");
    b.settle_at(0, "n1:1").expect("a unit");
    b.settle_at(0, "n2:1").expect("a unit");
    let verdict = b.finish(0, failed(1)).expect("known");
    let [place] = verdict.reuse.as_slice() else { panic!("{:?}", verdict.reuse) };
    let grant = |node_address: &'static str, job: u32| Grant {
        task: place.task,
        allocation_id: AllocationId(Guid([9, job, 0, 1])),
        job_id: Bench::job_id(100 + job),
        resources: Resources::INFINITE,
        tree: TREE,
        node_address,
    };
    let elsewhere = b.controller.settle_again(b.now, grant("n3:1", 1), place.cookie);
    assert_eq!(elsewhere, Err(SettleError::EmptyInput));
    let (identity, _) = b.controller.settle_again(b.now, grant("n2:1", 2), place.cookie).expect("its place");
    // It is lost as well: the fence of the run before it stays.
    b.controller.give_up_job(b.now, identity.job_id, AbortReason::NodeOffline, Failure::new("lost"));
    b.controller.lift_fence(identity.job_id);
    assert!(b.controller.has_fence(Bench::job_id(1)));
    assert!(b.controller.fenced_units().all(|unit| unit.cookie == place.cookie));
}

/// S19: a job of before a restart that is reported and does not count.
#[test]
fn a_stranger_keeps_its_unit_from_being_started() {
    let mut b = Bench::new(TWO);
    let (mut identity, _) = b.settle(0).expect("a unit");
    b.finish(0, failed(1)).expect("known");
    identity.job_id = Bench::job_id(77);
    assert!(b.controller.fence_stranger(&identity, NODE) && !b.controller.fence_stranger(&identity, NODE));
    assert_eq!(b.settle(0).expect("the other unit").0.cookie, 1);
    assert_eq!(b.settle(0), Err(SettleError::EmptyInput));
    b.controller.lift_fence(identity.job_id);
    assert_eq!(b.settle(0).expect("it is free").0.cookie, 0);
    let other = JobIdentity { task: "nobody's".into(), ..identity };
    assert!(!b.controller.fence_stranger(&other, NODE));
}
