//! Lives of operations: scripts of events, read line by line.

use crate::script::*;
use controller::{ControllerOptions, Deadline, Grant, JobVerdict, OperationEvent, SettleError};
use expect_test::{Expect, expect};
use vocab::*;

/// Runs a script and compares its transcript. A step is one word of a line:
/// `+` settle in task 0 (`+1`: task 1), `N:what` ends job N (`ok`, `fail`, `abort`, `make-room`,
/// `restart`, `fatal`, `lost-node`, `late`), `drop N` abandons it.
fn check(spec: &str, script: &str, expected: Expect) {
    let mut b = Bench::new(spec);
    let mut out = String::new();
    for step in script.split_whitespace() {
        b.now += Span::from_secs(1);
        let result = run(&mut b, step);
        out += &format!("{step:<12} {:<70} {result}\n", b.counts());
    }
    expected.assert_eq(&out);
}

fn run(b: &mut Bench, step: &str) -> String {
    if let Some(task) = step.strip_prefix('+') {
        return match b.settle(task.parse().unwrap_or(0)) {
            Ok((id, _)) => {
                format!("cookie {} index {} task index {}", id.cookie, id.job_index, id.task_job_index)
            }
            Err(e) => e.to_string(),
        };
    }
    let (job, what) = step.split_once(':').expect("a step");
    let job = job.parse().expect("a number");
    let outcome = match what {
        "ok" => done(),
        "fail" => failed(3),
        "abort" => aborted(AbortReason::Preemption),
        "never-started" => aborted(AbortReason::SchedulingTimeout),
        "make-room" => interrupted(false),
        "restart" => JobOutcome::Completed { interrupted: None, restart_needed: true },
        "fatal" => JobOutcome::Failed { error: Failure::new("x").with("fatal", true) },
        "abandon" => {
            let verdict = b.controller.abandon_job(b.now, Bench::job_id(job));
            return verdict.map_or("unknown job".to_owned(), |v| event(&v.operation_event));
        }
        other => panic!("unknown step {other}"),
    };
    match b.finish(job, outcome) {
        None => {
            // Of one that was given up here: its unit is free (S19).
            b.controller.lift_fence(Bench::job_id(job));
            "unknown job".to_owned()
        }
        Some(v) => {
            let killed: Vec<String> = v
                .aborted_with_it
                .iter()
                .map(|v| {
                    format!(
                        " kill {} ({})",
                        v.record.identity.cookie,
                        v.record.abort_reason.expect("a reason")
                    )
                })
                .collect();
            event(&v.operation_event) + &killed.concat()
        }
    }
}

#[test]
fn two_tasks_complete() {
    check(
        "{tasks={a={job_count=2;command=x};b={job_count=1;command=x}}}",
        "+ + + +1 0:ok 0:ok 2:ok 1:ok +",
        expect![[r#"
            +            total=3 running=1 pending=2 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 0 task index 0
            +            total=3 running=2 pending=1 completed=0 failed=0 aborted=0 lost=0      cookie 1 index 1 task index 1
            +            total=3 running=2 pending=1 completed=0 failed=0 aborted=0 lost=0      Task has nothing to start
            +1           total=3 running=3 pending=0 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 2 task index 0
            0:ok         total=3 running=2 pending=0 completed=1 failed=0 aborted=0 lost=0      -
            0:ok         total=3 running=2 pending=0 completed=1 failed=0 aborted=0 lost=0      unknown job
            2:ok         total=3 running=1 pending=0 completed=2 failed=0 aborted=0 lost=0      -
            1:ok         total=3 running=0 pending=0 completed=3 failed=0 aborted=0 lost=0      completed
            +            total=3 running=0 pending=0 completed=3 failed=0 aborted=0 lost=0      Operation is not running
        "#]],
    );
}

#[test]
fn a_unit_is_run_again_until_it_is_done() {
    check(
        "{tasks={a={job_count=2;command=x}}}",
        "+ + 0:fail + 1:abort 2:never-started + 3:restart + + 4:ok 5:abandon 6:ok",
        expect![[r#"
            +            total=2 running=1 pending=1 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 0 task index 0
            +            total=2 running=2 pending=0 completed=0 failed=0 aborted=0 lost=0      cookie 1 index 1 task index 1
            0:fail       total=2 running=1 pending=1 completed=0 failed=1 aborted=0 lost=0      -
            +            total=2 running=2 pending=0 completed=0 failed=1 aborted=0 lost=0      cookie 0 index 2 task index 2
            1:abort      total=2 running=1 pending=1 completed=0 failed=1 aborted=1 lost=0      -
            2:never-started total=2 running=0 pending=2 completed=0 failed=1 aborted=2 lost=0      -
            +            total=2 running=1 pending=1 completed=0 failed=1 aborted=2 lost=0      cookie 0 index 3 task index 3
            3:restart    total=2 running=0 pending=2 completed=0 failed=1 aborted=2 lost=1      -
            +            total=2 running=1 pending=1 completed=0 failed=1 aborted=2 lost=1      cookie 0 index 4 task index 4
            +            total=2 running=2 pending=0 completed=0 failed=1 aborted=2 lost=1      cookie 1 index 5 task index 5
            4:ok         total=2 running=1 pending=0 completed=1 failed=1 aborted=2 lost=1      -
            5:abandon    total=2 running=0 pending=0 completed=2 failed=1 aborted=2 lost=1      completed
            6:ok         total=2 running=0 pending=0 completed=2 failed=1 aborted=2 lost=1      unknown job
        "#]],
    );
}

#[test]
fn failures_reach_the_limit() {
    check(
        "{max_failed_job_count=2;tasks={a={job_count=2;command=x}}}",
        "+ + 0:fail + 1:fail + 2:ok",
        expect![[r#"
        +            total=2 running=1 pending=1 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 0 task index 0
        +            total=2 running=2 pending=0 completed=0 failed=0 aborted=0 lost=0      cookie 1 index 1 task index 1
        0:fail       total=2 running=1 pending=1 completed=0 failed=1 aborted=0 lost=0      -
        +            total=2 running=2 pending=0 completed=0 failed=1 aborted=0 lost=0      cookie 0 index 2 task index 2
        1:fail       total=2 running=1 pending=1 completed=0 failed=2 aborted=0 lost=0      failed 215: Failed jobs limit exceeded: User job failed: Process exited with code 3
        +            total=2 running=1 pending=1 completed=0 failed=2 aborted=0 lost=0      Operation is not running
        2:ok         total=2 running=0 pending=1 completed=1 failed=2 aborted=0 lost=0      -
    "#]],
    );
    check(
        "{max_failed_job_count=0;tasks={a={job_count=2;command=x}}}",
        "+ 0:fail",
        expect![[r#"
        +            total=2 running=1 pending=1 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 0 task index 0
        0:fail       total=2 running=0 pending=2 completed=0 failed=1 aborted=0 lost=0      failed 215: Failed jobs limit exceeded: User job failed: Process exited with code 3
    "#]],
    );
}

#[test]
fn rules_about_restarts_come_in_order() {
    let strict = "{fail_on_job_restart=%true;max_failed_job_count=1;tasks={a={job_count=2;command=x}}}";
    check(
        strict,
        "+ 0:never-started + 1:fail",
        expect![[r#"
        +            total=2 running=1 pending=1 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 0 task index 0
        0:never-started total=2 running=0 pending=2 completed=0 failed=0 aborted=1 lost=0      -
        +            total=2 running=1 pending=1 completed=0 failed=0 aborted=1 lost=0      cookie 0 index 1 task index 1
        1:fail       total=2 running=0 pending=2 completed=0 failed=1 aborted=1 lost=0      failed 210: Job failed; failing operation since "fail_on_job_restart" spec option is set: User job failed: Process exited with code 3
    "#]],
    );
    check(
        strict,
        "+ 0:abort",
        expect![[r#"
        +            total=2 running=1 pending=1 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 0 task index 0
        0:abort      total=2 running=0 pending=2 completed=0 failed=0 aborted=1 lost=0      failed 210: Job aborted; failing operation since "fail_on_job_restart" spec option is set: Job aborted
    "#]],
    );
    check(
        "{tasks={a={fail_on_job_restart=%true;job_count=2;command=x}}}",
        "+ 0:abort",
        expect![[r#"
        +            total=2 running=1 pending=1 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 0 task index 0
        0:abort      total=2 running=0 pending=2 completed=0 failed=0 aborted=1 lost=0      failed 210: Job aborted; failing operation since "fail_on_job_restart" spec option is set: Job aborted
    "#]],
    );
    check(
        "{tasks={a={job_count=2;command=x}}}",
        "+ 0:fatal",
        expect![[r#"
        +            total=2 running=1 pending=1 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 0 task index 0
        0:fatal      total=2 running=0 pending=2 completed=0 failed=1 aborted=0 lost=0      failed 1: Job failed with fatal error: x
    "#]],
    );
    check(
        "{suspend_on_job_failure=%true;max_failed_job_count=0;tasks={a={job_count=1;command=x}}}",
        "+ 0:fail + 1:ok",
        expect![[r#"
        +            total=1 running=1 pending=0 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 0 task index 0
        0:fail       total=1 running=0 pending=1 completed=0 failed=1 aborted=0 lost=0      suspend: Job failed; suspending operation since "suspend_on_job_failure" spec option is set: User job failed: Process exited with code 3
        +            total=1 running=1 pending=0 completed=0 failed=1 aborted=0 lost=0      cookie 0 index 1 task index 1
        1:ok         total=1 running=0 pending=0 completed=1 failed=1 aborted=0 lost=0      completed
    "#]],
    );
}

#[test]
fn interrupted_jobs_make_room_unless_they_can_say_they_are_done() {
    check(
        "{tasks={a={job_count=1;command=x;interruption_signal=SIGINT}}}",
        "+ 0:make-room + 1:ok",
        expect![[r#"
            +            total=1 running=1 pending=0 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 0 task index 0
            0:make-room  total=2 running=0 pending=1 completed=1 failed=0 aborted=0 lost=0      -
            +            total=2 running=1 pending=0 completed=1 failed=0 aborted=0 lost=0      cookie 0 index 1 task index 1
            1:ok         total=2 running=0 pending=0 completed=2 failed=0 aborted=0 lost=0      completed
        "#]],
    );
    check(
        "{tasks={a={job_count=1;command=x;interruption_signal=SIGINT;restart_exit_code=42}}}",
        "+ 0:restart + 1:make-room",
        expect![[r#"
            +            total=1 running=1 pending=0 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 0 task index 0
            0:restart    total=1 running=0 pending=1 completed=0 failed=0 aborted=0 lost=1      -
            +            total=1 running=1 pending=0 completed=0 failed=0 aborted=0 lost=1      cookie 0 index 1 task index 1
            1:make-room  total=1 running=0 pending=0 completed=1 failed=0 aborted=0 lost=1      completed
        "#]],
    );
}

#[test]
fn services_never_complete_by_themselves() {
    check(
        "{tasks={a={job_count=1;command=x;restart_completed_jobs=%true}}}",
        "+ 0:ok + 1:make-room + 2:abandon",
        expect![[r#"
            +            total=1 running=1 pending=0 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 0 task index 0
            0:ok         total=1 running=0 pending=1 completed=0 failed=0 aborted=0 lost=1      -
            +            total=1 running=1 pending=0 completed=0 failed=0 aborted=0 lost=1      cookie 0 index 1 task index 1
            1:make-room  total=2 running=0 pending=1 completed=1 failed=0 aborted=0 lost=1      -
            +            total=2 running=1 pending=0 completed=1 failed=0 aborted=0 lost=1      cookie 0 index 2 task index 2
            2:abandon    total=2 running=0 pending=0 completed=2 failed=0 aborted=0 lost=1      completed
        "#]],
    );
}

#[test]
fn a_gang_starts_anew_together() {
    check(
        "{tasks={a={job_count=3;command=x;gang_options={size=2}};b={job_count=1;command=x}}}",
        "+ + + +1 2:fail 0:ok 1:fail 3:ok + + +1 4:ok 5:ok 6:ok",
        expect![[r#"
            +            total=4 running=1 pending=3 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 0 task index 0
            +            total=4 running=2 pending=2 completed=0 failed=0 aborted=0 lost=0      cookie 1 index 1 task index 1
            +            total=4 running=3 pending=1 completed=0 failed=0 aborted=0 lost=0      cookie 2 index 2 task index 2
            +1           total=4 running=4 pending=0 completed=0 failed=0 aborted=0 lost=0      cookie 0 index 3 task index 0
            2:fail       total=4 running=3 pending=1 completed=0 failed=1 aborted=0 lost=0      -
            0:ok         total=4 running=2 pending=1 completed=1 failed=1 aborted=0 lost=0      -
            1:fail       total=4 running=0 pending=4 completed=0 failed=2 aborted=1 lost=1      - kill 0 (operation_incarnation_changed)
            3:ok         total=4 running=0 pending=4 completed=0 failed=2 aborted=1 lost=1      unknown job
            +            total=4 running=1 pending=3 completed=0 failed=2 aborted=1 lost=1      cookie 0 index 4 task index 3
            +            total=4 running=2 pending=2 completed=0 failed=2 aborted=1 lost=1      cookie 1 index 5 task index 4
            +1           total=4 running=3 pending=1 completed=0 failed=2 aborted=1 lost=1      cookie 0 index 6 task index 1
            4:ok         total=4 running=2 pending=1 completed=1 failed=2 aborted=1 lost=1      -
            5:ok         total=4 running=1 pending=1 completed=2 failed=2 aborted=1 lost=1      -
            6:ok         total=4 running=0 pending=1 completed=3 failed=2 aborted=1 lost=1      -
        "#]],
    );
}

/// (task, cookie) of the units that begin anew, by the number of the job whose allocation they get.
fn reused(verdict: &JobVerdict) -> Vec<(u32, u32, u32)> {
    verdict.reuse.iter().map(|place| (place.job_id.0.0[0], place.task, place.cookie)).collect()
}

#[test]
fn a_gang_stays_where_it_is() {
    let mut b =
        Bench::new("{tasks={a={job_count=4;command=x;gang_options={size=3}};b={job_count=1;command=x}}}");
    (0..4).for_each(|_| drop(b.settle(0).expect("a unit")));
    b.settle(1).expect("a unit");
    let verdict = b.finish(1, failed(1)).expect("known");
    // The rank of the lost one is taken over by the reserved job, whose own unit waits for a new place.
    assert_eq!(reused(&verdict), [(0, 0, 0), (2, 0, 2), (3, 0, 1), (4, 1, 0)]);
    for place in &verdict.reuse {
        let grant = Grant {
            task: place.task,
            allocation_id: AllocationId(Guid([7, place.job_id.0.0[0], 0, 1])),
            job_id: Bench::job_id(100 + place.job_id.0.0[0]),
            resources: Resources::INFINITE,
            tree: TREE,
            node_address: NODE,
        };
        let (identity, _) = b.controller.settle_again(b.now, grant, place.cookie).expect("pending");
        assert_eq!(identity.cookie, place.cookie);
        let again = Grant { job_id: Bench::job_id(999), ..grant };
        assert_eq!(b.controller.settle_again(b.now, again, place.cookie), Err(SettleError::EmptyInput));
    }
    assert_eq!(b.counts(), "total=5 running=4 pending=1 completed=0 failed=1 aborted=4 lost=0");
    // Its node has told the end of its job (S19).
    assert!(b.controller.lift_fence(Bench::job_id(3)));
    assert_eq!(b.settle(0).expect("the reserved one").0.cookie, 3);
}

#[test]
fn who_is_on_its_way_out_of_a_gang_does_not_stay() {
    let mut b = Bench::new("{tasks={a={job_count=3;command=x;gang_options={}}}}");
    (0..3).for_each(|_| drop(b.settle(0).expect("a unit")));
    b.controller.job_interrupted(Bench::job_id(2), InterruptionReason::Preemption, None);
    let verdict = b.finish(0, failed(1)).expect("known");
    assert_eq!((verdict.aborted_with_it.len(), reused(&verdict)), (2, vec![(1, 0, 1)]));
}

#[test]
fn a_gang_that_is_suspended_by_its_failure_does_not_begin_anew() {
    let mut b =
        Bench::new("{suspend_on_job_failure=%true; tasks={a={job_count=2;command=x;gang_options={}}}}");
    (0..2).for_each(|_| drop(b.settle(0).expect("a unit")));
    let verdict = b.finish(0, failed(1)).expect("known");
    assert_eq!((verdict.aborted_with_it.len(), reused(&verdict)), (1, vec![]));
}

#[test]
fn a_gang_member_that_stops_or_starts_over_breaks_it() {
    let spec = |options: &str| {
        format!(
            "{{tasks={{a={{job_count=2;command=x;gang_options={{}};interruption_signal=SIGINT;{options}}}}}}}"
        )
    };
    for (options, outcome) in [
        ("", interrupted(false)),
        ("restart_exit_code=1", interrupted(true)),
        ("restart_exit_code=1", JobOutcome::Completed { interrupted: None, restart_needed: true }),
    ] {
        let mut b = Bench::new(&spec(options));
        b.settle(0).expect("a unit");
        b.settle(0).expect("a unit");
        let verdict = b.finish(0, outcome).expect("known");
        assert_eq!(verdict.aborted_with_it.len(), 1, "{options}");
        assert_eq!(b.controller.totals().pending, 2);
    }
}

#[test]
fn a_gang_that_may_not_switch_fails() {
    let options = ControllerOptions { gang_manager_enabled: false, ..ControllerOptions::default() };
    let mut b = Bench::with("{tasks={a={job_count=2;command=x;gang_options={}}}}", &options);
    b.settle(0).expect("a unit");
    let verdict = b.finish(0, aborted(AbortReason::Preemption)).expect("known");
    assert_eq!(
        event(&verdict.operation_event),
        "failed 1: Switching gang operation to new incarnation is disabled by config"
    );
}

#[test]
fn a_gang_sees_its_rank_and_incarnation() {
    let mut b = Bench::new("{tasks={a={job_count=3;command=x;gang_options={size=2}}}}");
    let variable = |d: &JobDescription, name: &str| d.environment.get(name).map(str::to_owned);
    let first = b.settle(0).expect("a unit").1;
    assert_eq!(variable(&first, "YT_GANG_RANK").as_deref(), Some("0"));
    assert_eq!(variable(&first, "YT_TASK_GANG_SIZE").as_deref(), Some("2"));
    b.settle(0).expect("a unit");
    let reserved = b.settle(0).expect("a unit").1;
    assert_eq!(variable(&reserved, "YT_GANG_RANK"), None);
    b.finish(0, failed(1)).expect("known");
    let again = b.settle(0).expect("a unit").1;
    assert_ne!(
        variable(&first, "YT_OPERATION_INCARNATION").expect("always set"),
        variable(&again, "YT_OPERATION_INCARNATION").expect("always set")
    );
}

#[test]
fn nothing_starts_when_the_operation_is_over() {
    let mut b = Bench::new("{max_failed_job_count=1;tasks={a={job_count=3;command=x}}}");
    b.settle(0).expect("a unit");
    b.settle(0).expect("a unit");
    b.finish(0, failed(1)).expect("known");
    assert_eq!(b.settle(0), Err(SettleError::NotRunning));
    assert!(b.controller.demand().is_empty());
    let (rest, event) = b.controller.abort_all(b.now, AbortReason::OperationFailed);
    assert_eq!((rest.len(), event), (1, None));
    assert_eq!(rest[0].record.abort_reason, Some(AbortReason::OperationFailed));
    assert_eq!(b.finish(1, done()), None, "its end is counted already");
    assert_eq!(b.counts(), "total=3 running=0 pending=3 completed=0 failed=1 aborted=1 lost=0");
}

/// Suspended with abort while the only jobs left are those of units that were taken away.
#[test]
fn an_operation_whose_last_jobs_are_unwanted_ends_with_them() {
    let mut b = Bench::new("{tasks={t={job_count=2; command=x}}}");
    (0..2).for_each(|_| drop(b.settle(0).expect("a unit")));
    b.finish(0, done()).expect("known");
    let resized = b.controller.set_job_count(b.now, "t", 1).expect("allowed");
    assert_eq!((resized.jobs_to_abort.len(), resized.operation_event), (1, None));
    let (aborted, event) = b.controller.abort_all(b.now, AbortReason::OperationSuspended);
    assert_eq!((aborted.len(), event), (1, Some(OperationEvent::Completed)));
    assert_eq!(b.counts(), "total=1 running=0 pending=0 completed=1 failed=0 aborted=1 lost=0");
}

#[test]
fn failures_at_banned_nodes_are_excused() {
    let mut b = Bench::new(
        "{ban_nodes_with_failed_jobs=%true;ignore_job_failures_at_banned_nodes=%true;tasks={a={job_count=3;command=x}}}",
    );
    b.settle_at(0, "bad:1").expect("a unit");
    b.settle_at(0, "bad:1").expect("a unit");
    b.finish(0, failed(1)).expect("known");
    assert_eq!(b.controller.banned_nodes().collect::<Vec<_>>(), ["bad:1"]);
    assert_eq!(b.settle_at(0, "bad:1"), Err(SettleError::NodeBanned("bad:1".to_owned())));
    let verdict = b.finish(1, failed(1)).expect("known");
    assert_eq!(verdict.record.abort_reason, Some(AbortReason::NodeBanned));
    assert_eq!(b.counts(), "total=3 running=0 pending=3 completed=0 failed=1 aborted=1 lost=0");
    assert_eq!(b.controller.check_banned_nodes(["bad:1", "good:1"].into_iter()), None);
    assert!(event(&b.controller.check_banned_nodes(["bad:1"].into_iter())).starts_with("failed 1"));
}

#[test]
fn the_time_limit_ends_jobs_first_and_then_the_operation() {
    let spec = "{time_limit=10000;time_limit_job_fail_timeout=5000;tasks={a={job_count=2;command=x}}}";
    let late = "failed 1: Operation is running for too long, aborted";
    let mut b = Bench::new(spec);
    let Some(Deadline::Operation(end)) = b.clone().controller.on_deadline(second(10)) else {
        panic!("no end")
    };
    assert_eq!(event(&Some(end)), late, "no job to wait for");
    b.settle(0).expect("a unit");
    assert_eq!(b.controller.next_deadline(), Some(second(10)));
    assert_eq!(b.controller.on_deadline(second(9)), None);
    assert_eq!(b.controller.on_deadline(second(10)), Some(Deadline::EndJobs(vec![Bench::job_id(0)])));
    assert!(b.controller.demand().is_empty());
    assert_eq!(b.controller.next_deadline(), Some(second(15)));

    let mut idle = b.clone();
    let verdict = idle.finish(0, failed(1)).expect("known");
    assert_eq!(event(&verdict.operation_event), late, "no job is left to wait for");

    let Some(Deadline::Operation(end)) = b.controller.on_deadline(second(15)) else { panic!("no end") };
    assert_eq!(event(&Some(end)), late);
    assert_eq!(b.controller.next_deadline(), None);
}

#[test]
fn job_count_changes_at_run_time() {
    let mut b = Bench::new("{tasks={a={job_count=4;command=x}}}");
    for _ in 0..3 {
        b.settle(0).expect("a unit");
    }
    b.finish(0, done()).expect("known");
    let shrunk = b.controller.set_job_count(b.now, "a", 2).expect("allowed");
    assert_eq!(shrunk.jobs_to_abort, [Bench::job_id(2)], "pending first, then the largest cookie");
    assert_eq!(b.counts(), "total=3 running=2 pending=0 completed=1 failed=0 aborted=0 lost=0");
    b.finish(2, aborted(AbortReason::JobCountChangedByUserRequest)).expect("known");
    assert_eq!(b.counts(), "total=2 running=1 pending=0 completed=1 failed=0 aborted=1 lost=0");

    let mut grown = b.clone();
    assert_eq!(grown.controller.set_job_count(b.now, "a", 5).expect("allowed").jobs_to_abort, []);
    assert_eq!(grown.counts(), "total=5 running=1 pending=3 completed=1 failed=0 aborted=1 lost=0");
    assert_eq!(grown.settle(0).expect("a unit").0.cookie, 2, "the smallest free cookie comes back");

    b.finish(1, failed(1)).expect("known");
    let end = b.controller.set_job_count(b.now, "a", 1).expect("allowed");
    assert_eq!(event(&end.operation_event), "completed");
    assert!(b.controller.is_over());
}

/// The owner sends work as it comes: an operation that has done all it has goes on until the last of it came.
#[test]
fn work_that_is_still_to_come() {
    let mut b = Bench::new("{tasks={a={job_count=0;expected_job_count=2;command=x}}}");
    assert!(!b.controller.is_done() && b.controller.demand().is_empty());
    assert_eq!(b.controller.set_job_count(b.now, "a", 1).expect("allowed").operation_event, None);
    b.settle(0).expect("a unit");
    assert_eq!(b.finish(0, done()).expect("known").operation_event, None, "one more is expected");
    assert_eq!(b.counts(), "total=1 running=0 pending=0 completed=1 failed=0 aborted=0 lost=0");
    b.controller.set_job_count(b.now, "a", 2).expect("allowed");
    assert_eq!(b.settle(0).expect("a unit").0.cookie, 1);
    assert_eq!(event(&b.finish(1, done()).expect("known").operation_event), "completed");
}

#[test]
fn job_count_is_refused_with_a_reason() {
    let plain = "{tasks={a={job_count=4;command=x}}}";
    let gang = "{tasks={a={job_count=4;command=x;gang_options={}}}}";
    let strict = "{fail_on_job_restart=%true;tasks={a={job_count=4;command=x}}}";
    for (spec, task, count, expected) in [
        (plain, "b", 1, "Unknown task"),
        (plain, "a", 0, "at least 1"),
        (plain, "a", 100_001, "at most 100000"),
        (gang, "a", 2, "gangs"),
        (strict, "a", 2, "fail_on_job_restart"),
    ] {
        let mut b = Bench::new(spec);
        let before = b.controller.clone();
        let error = b.controller.set_job_count(b.now, task, count).expect_err("refused").to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(b.controller, before, "nothing is half applied");
    }
}
