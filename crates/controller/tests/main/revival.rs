//! Restarts of the server: stored state comes back, running jobs are adopted, nothing counts twice.

use crate::script::*;
use controller::{AdoptError, ControllerOptions, HeldJob, OperationController, StateError, StatePart};
use vocab::*;

fn held() -> HeldJob<'static> {
    HeldJob {
        node_address: NODE,
        granted: Resources::INFINITE,
        start_time: second(0),
        exec_start_time: Some(second(0)),
        phase: JobPhase::Running,
    }
}

fn restore(b: &Bench, parts: &[StatePart]) -> Result<OperationController, StateError> {
    let options = ControllerOptions::default();
    OperationController::restore(operation_id(), &b.parsed.spec, &options, second(0), parts)
}

/// The server dies and comes back with what was stored.
fn restart(b: &mut Bench) {
    b.controller = restore(b, &b.controller.export()).expect("own state");
}

#[test]
fn running_jobs_are_adopted_and_counters_stay() {
    let mut b = Bench::new("{tasks={t={job_count=4; command=x}}}");
    let jobs: Vec<JobIdentity> = (0..3).map(|_| b.settle(0).expect("a unit").0).collect();
    b.finish(0, done()).expect("known");
    b.finish(1, failed(1)).expect("known");
    let before = b.counts();
    restart(&mut b);
    assert_eq!(b.controller.awaited_job_count(), 1);
    assert_eq!(b.controller.adopt_job(&jobs[0], held()), Err(AdoptError::AlreadyFinished));
    assert_eq!(
        b.controller.adopt_job(&jobs[1], held()),
        Err(AdoptError::AlreadyFinished),
        "its failure is counted"
    );
    assert_eq!(b.controller.adopt_job(&jobs[2], held()), Ok(()));
    assert_eq!(b.controller.adopt_job(&jobs[2], held()), Ok(()), "twice is harmless");
    assert_eq!(b.controller.end_revival(b.now), (vec![], None));
    assert_eq!(b.counts(), before);
    let next = b.settle(0).expect("a unit").0;
    assert_eq!((next.cookie, next.job_index, next.task_job_index), (1, 3, 3));
}

#[test]
fn foreign_jobs_are_refused() {
    let mut b = Bench::new("{tasks={t={job_count=4; command=x}}}");
    let job = b.settle(0).expect("a unit").0;
    restart(&mut b);
    let other_operation = JobIdentity { operation_id: OperationId::default(), ..job.clone() };
    let other_task = JobIdentity { task: "u".into(), ..job.clone() };
    for foreign in [other_operation, other_task] {
        assert_eq!(b.controller.adopt_job(&foreign, held()), Err(AdoptError::Unknown));
    }
    let taken = b.settle(0).expect("a unit").0;
    assert_eq!(taken.cookie, job.cookie);
    assert_eq!(b.controller.adopt_job(&job, held()), Err(AdoptError::UnitTaken));
}

#[test]
fn what_nobody_reports_is_aborted() {
    let mut b = Bench::new("{tasks={t={job_count=4; command=x}}}");
    let job = b.settle(0).expect("a unit").0;
    restart(&mut b);
    b.controller.end_revival(b.now);
    assert_eq!(b.counts(), "total=4 running=0 pending=4 completed=0 failed=0 aborted=1 lost=0");
    assert_eq!(b.controller.adopt_job(&job, held()), Err(AdoptError::AlreadyFinished), "too late");
    restart(&mut b);
    assert_eq!(b.controller.awaited_job_count(), 0, "it is not awaited again");
}

#[test]
fn a_job_that_ended_meanwhile_is_counted_once() {
    let mut b = Bench::new("{tasks={t={job_count=1; command=x}}}");
    let job = b.settle(0).expect("a unit").0;
    restart(&mut b);
    b.controller.adopt_job(&job, held()).expect("awaited");
    let verdict = b.finish(0, done()).expect("known");
    assert_eq!(event(&verdict.operation_event), "completed");
    restart(&mut b);
    assert_eq!(b.controller.adopt_job(&job, held()), Err(AdoptError::AlreadyFinished));
    assert!(b.controller.demand().is_empty());
}

#[test]
fn an_order_that_was_faster_than_its_commit_is_adopted_too() {
    let mut b = Bench::new("{tasks={t={job_count=3; command=x}}}");
    let stored = b.controller.export();
    b.settle(0).expect("a unit");
    let job = b.settle(0).expect("a unit").0;
    b.controller = restore(&b, &stored).expect("own state");
    assert_eq!(b.controller.adopt_job(&job, held()), Ok(()));
    let next = b.settle(0).expect("a unit").0;
    assert_eq!((next.cookie, next.job_index, next.task_job_index), (0, 2, 2), "indices are not used twice");
}

#[test]
fn an_unwanted_job_does_not_come_back() {
    let mut b = Bench::new("{tasks={t={job_count=2; command=x}}}");
    let jobs: Vec<JobIdentity> = (0..2).map(|_| b.settle(0).expect("a unit").0).collect();
    let resized = b.controller.set_job_count(b.now, "t", 1).expect("allowed");
    assert_eq!(resized.jobs_to_abort, [jobs[1].job_id]);
    restart(&mut b);
    assert_eq!(b.controller.adopt_job(&jobs[0], held()), Ok(()));
    assert_eq!(b.controller.adopt_job(&jobs[1], held()), Err(AdoptError::UnitTaken));
    assert_eq!(b.controller.end_revival(b.now), (vec![], None));
    assert_eq!(b.counts(), "total=1 running=1 pending=0 completed=0 failed=0 aborted=1 lost=0");
}

#[test]
fn strict_operations_do_not_forgive_a_lost_job() {
    let mut b = Bench::new("{fail_on_job_restart=%true; tasks={t={job_count=2; command=x}}}");
    let jobs: Vec<JobIdentity> = (0..2).map(|_| b.settle(0).expect("a unit").0).collect();
    restart(&mut b);
    let mut whole = b.clone();
    for job in &jobs {
        whole.controller.adopt_job(job, held()).expect("awaited");
    }
    assert_eq!(whole.controller.end_revival(b.now), (vec![], None));
    b.controller.adopt_job(&jobs[0], held()).expect("awaited");
    let (_, end) = b.controller.end_revival(b.now);
    assert!(event(&end).starts_with("failed 210: Cannot revive operation"), "{end:?}");
}

#[test]
fn a_gang_that_is_not_whole_starts_anew() {
    let mut b = Bench::new("{tasks={t={job_count=2; command=x; gang_options={}}}}");
    let jobs: Vec<JobIdentity> = (0..2).map(|_| b.settle(0).expect("a unit").0).collect();
    let incarnation = b.controller.incarnation().to_owned();
    restart(&mut b);
    assert_eq!(b.controller.incarnation(), incarnation);
    b.controller.adopt_job(&jobs[0], held()).expect("awaited");
    let (killed, end) = b.controller.end_revival(b.now);
    assert_eq!((killed.len(), end), (1, None));
    assert_ne!(b.controller.incarnation(), incarnation);
    assert_eq!(b.counts(), "total=2 running=0 pending=2 completed=0 failed=0 aborted=2 lost=0");
}

/// Somebody who has not been heard of may still run: nobody takes over from him before it is known.
#[test]
fn a_gang_that_breaks_before_all_are_back_waits_for_them() {
    let mut b = Bench::new("{tasks={t={job_count=4; command=x; gang_options={size=3}}}}");
    let jobs: Vec<JobIdentity> = (0..4).map(|_| b.settle(0).expect("a unit").0).collect();
    restart(&mut b);
    for job in [&jobs[0], &jobs[1], &jobs[3]] {
        b.controller.adopt_job(job, held()).expect("awaited");
    }
    let verdict = b.finish(0, failed(1)).expect("known");
    assert_eq!((verdict.aborted_with_it.len(), verdict.reuse), (2, vec![]));
}

#[test]
fn a_gang_that_is_whole_goes_on() {
    let mut b = Bench::new("{tasks={t={job_count=3; command=x; gang_options={}}}}");
    let jobs: Vec<JobIdentity> = (0..2).map(|_| b.settle(0).expect("a unit").0).collect();
    b.finish(0, done()).expect("known");
    let (before, incarnation) = (b.counts(), b.controller.incarnation().to_owned());
    restart(&mut b);
    b.controller.adopt_job(&jobs[1], held()).expect("awaited");
    assert_eq!(b.controller.end_revival(b.now), (vec![], None));
    assert_eq!((b.counts(), b.controller.incarnation()), (before, incarnation.as_str()));
}

#[test]
fn banned_nodes_and_failures_survive() {
    let mut b = Bench::new(
        "{ban_nodes_with_failed_jobs=%true; max_failed_job_count=2; tasks={t={job_count=3; command=x}}}",
    );
    b.settle(0).expect("a unit");
    b.finish(0, failed(1)).expect("known");
    restart(&mut b);
    assert_eq!(b.controller.banned_nodes().collect::<Vec<_>>(), [NODE]);
    assert_eq!(b.controller.failed_job_count(), 1);
    b.settle_at(0, "other:1").expect("a unit");
    let verdict = b.finish(1, failed(1)).expect("known");
    assert!(event(&verdict.operation_event).starts_with("failed 215"));
    restart(&mut b);
    assert!(b.controller.is_over() && b.controller.demand().is_empty());
}

#[test]
fn only_touched_parts_are_written() {
    let mut b = Bench::new("{tasks={a={job_count=2; command=x}; b={job_count=2; command=x}}}");
    let parts = |b: &mut Bench| b.controller.take_dirty().iter().map(|p| p.part).collect::<Vec<_>>();
    assert_eq!(parts(&mut b), [0, 1, 2], "a new operation");
    assert_eq!(parts(&mut b), [0; 0]);
    b.settle(1).expect("a unit");
    assert_eq!(parts(&mut b), [0, 2]);
    b.finish(0, done()).expect("known");
    b.controller.job_started(Bench::job_id(0), b.now);
    let written = parts(&mut b);
    assert!(written.contains(&2) && !written.contains(&1), "{written:?}");
    assert!(!b.controller.is_dirty());
}

#[test]
fn broken_state_is_refused_with_its_place() {
    let mut b = Bench::new("{tasks={t={job_count=2; command=x}}}");
    b.settle(0).expect("a unit");
    b.finish(0, done()).expect("known");
    let good = b.controller.export();
    let with = |part: u32, bytes: Vec<u8>| {
        let mut parts = good.clone();
        parts.retain(|p| p.part != part);
        parts.push(StatePart { part, bytes });
        restore(&b, &parts).expect_err("refused").to_string()
    };
    assert!(with(0, b"{".to_vec()).contains("part 0"));
    assert!(with(1, b"{}".to_vec()).contains("part 1: field \"job_count\""));
    assert!(with(2, b"{}".to_vec()).contains("the spec has 1 tasks"));
    for cut in 0..good[1].bytes.len() {
        restore(&b, &[StatePart { part: 1, bytes: good[1].bytes[..cut].to_vec() }]).expect_err("refused");
    }
}
