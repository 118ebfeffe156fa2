//! Copies of slow jobs (jobs-and-nodes.md 6.7): who gets one, who wins, what is counted, and that a restart
//! in between changes nothing.

use crate::script::*;
use controller::{AdoptError, ControllerOptions, HeldJob, OperationController, OperationEvent};
use proptest::prelude::*;
use std::collections::BTreeMap;
use vocab::*;

/// Copies of task 0 in an operation of one task.
const COPIES: u32 = 2;

fn spec(root: &str, task: &str) -> String {
    let root: String =
        root.split(';').filter(|option| !option.trim().is_empty()).map(|o| format!("{o};")).collect();
    format!("{{{root} tasks={{t={{command=x; enable_speculative_jobs=%true; {task}}}}}}}")
}

/// A job starts; it runs at once.
fn start(b: &mut Bench, group: u32) -> (u32, JobIdentity) {
    let job = b.settled;
    let identity = b.settle(group).expect("a unit").0;
    b.controller.job_started(identity.job_id, b.now);
    (job, identity)
}

fn look(b: &mut Bench, seconds: u64) -> bool {
    b.now += Span::from_secs(seconds);
    b.controller.look_for_slow_jobs(b.now)
}

/// Pending, running, completed, failed and aborted copies.
fn copies(b: &Bench) -> [i64; 5] {
    let progress = b.controller.progress(b.now, OperationState::Running).into();
    let task = &at(&progress, "tasks").as_list().expect("tasks")[0];
    ["pending", "running", "completed/total", "failed", "aborted/total"]
        .map(|path| at(task, &format!("speculative_job_counter/{path}")).as_i64().expect("a count"))
}

fn wanted(b: &Bench) -> i64 {
    b.controller.demand().iter().filter(|d| d.task == COPIES).map(|d| d.count).sum()
}

/// One unit, its slow job 0 and the copy, job 1.
fn race(root: &str, task: &str) -> Bench {
    let mut b = Bench::new(&spec(&format!("job_speculation_timeout=30000; {root}"), task));
    let slow = start(&mut b, 0).1;
    assert!(!look(&mut b, 29));
    assert!(look(&mut b, 1));
    assert!(!look(&mut b, 1000), "one copy is enough");
    assert_eq!((wanted(&b), copies(&b)), (1, [1, 0, 0, 0, 0]));
    let copy = start(&mut b, COPIES).1;
    assert_eq!((copy.cookie, copy.job_index, copy.task_job_index), (slow.cookie, 1, 1));
    assert_eq!((wanted(&b), copies(&b)), (0, [0, 1, 0, 0, 0]));
    b
}

#[test]
fn nobody_is_copied_unasked() {
    for text in [
        "{job_speculation_timeout=1000; tasks={t={command=x; job_count=1}}}",
        "{tasks={t={command=x; job_count=1; job_speculation_timeout=1000}}}",
        &spec("job_speculation_timeout=1000; try_avoid_duplicating_jobs=%true", "job_count=1"),
        &spec("job_speculation_timeout=1000; max_speculative_job_count_per_task=0", "job_count=1"),
        // No limit of time, and nothing to compare with.
        &spec("", "job_count=1"),
    ] {
        let mut b = Bench::new(text);
        start(&mut b, 0);
        assert!(!look(&mut b, 1_000_000), "{text}");
        assert!(b.controller.demand().is_empty(), "{text}");
    }
}

#[test]
fn services_and_gangs_are_not_copied() {
    for other in ["restart_completed_jobs=%true", "gang_options={}"] {
        let error = parse(&spec("", &format!("job_count=1; {other}"))).expect_err(other).to_string();
        assert!(error.contains("enable_speculative_jobs") && error.contains("excludes"), "{error}");
    }
}

#[test]
fn the_faster_one_wins() {
    // (who completes, why the other is aborted, copies that completed and were aborted)
    for (winner, loser, reason, ends) in [
        (0, 1, AbortReason::SpeculativeRunLost, [0, 0, 0, 0, 1]),
        (1, 0, AbortReason::SpeculativeRunWon, [0, 0, 1, 0, 0]),
    ] {
        let mut b = race("", "job_count=1");
        let verdict = b.finish(winner, done()).expect("known");
        assert_eq!(verdict.operation_event, Some(OperationEvent::Completed));
        let [lost] = &verdict.aborted_with_it[..] else { panic!("{verdict:?}") };
        assert_eq!(
            (lost.record.identity.job_id, lost.record.abort_reason),
            (Bench::job_id(loser), Some(reason))
        );
        assert_eq!(lost.record.state, JobState::Aborted);
        for record in [&verdict.record, &lost.record] {
            let shown = record.to_value().into();
            assert_eq!(at(&shown, "has_competitors").as_bool(), Some(true));
            assert_eq!(at(&shown, "job_competition_id").as_str(), Some(&*Bench::job_id(0).to_string()));
            assert_eq!(controller::JobRecord::decode(&record.encode()).as_ref(), Ok(record));
        }
        assert_eq!(copies(&b), ends);
        assert_eq!(b.counts(), "total=1 running=0 pending=0 completed=1 failed=0 aborted=1 lost=0");
        assert!(b.finish(loser, done()).is_none(), "it is over already");
        // Completed jobs are one in the statistics too.
        let progress = b.controller.progress(b.now, OperationState::Running).into();
        let memory = at(&progress, "job_statistics/user_job/max_memory/$");
        let sum = |state: &str| at(memory, &format!("{state}/t/count")).as_i64();
        assert_eq!(sum("completed"), Some(1));
        assert!(memory.get("aborted").is_none(), "it never reported");
    }
}

#[test]
fn both_say_that_they_compete() {
    let b = race("", "job_count=1");
    for job in [0, 1] {
        let view = b.controller.job(Bench::job_id(job)).expect("runs");
        assert_eq!(view.competition(), Some(Bench::job_id(0)));
        assert_eq!(at(&view.to_value().into(), "has_competitors").as_bool(), Some(true));
    }
}

/// What happens to one job of a unit does not touch the unit while the other goes on.
#[test]
fn the_other_goes_on() {
    for (first, second) in [(0, 1), (1, 0)] {
        let mut b = race("", "job_count=1");
        let verdict = b.finish(first, failed(1)).expect("known");
        assert_eq!((verdict.aborted_with_it, verdict.operation_event), (vec![], None));
        assert_eq!(b.counts(), "total=1 running=1 pending=0 completed=0 failed=1 aborted=0 lost=0");
        assert!(!look(&mut b, 1_000_000), "there was a copy already");
        let verdict = b.finish(second, done()).expect("known");
        assert_eq!(verdict.operation_event, Some(OperationEvent::Completed));
        assert_eq!(b.counts(), "total=1 running=0 pending=0 completed=1 failed=1 aborted=0 lost=0");
    }
}

#[test]
fn a_unit_is_given_back_when_nobody_is_left() {
    let mut b = race("", "job_count=1");
    b.finish(1, aborted(AbortReason::Preemption)).expect("known");
    assert_eq!(b.counts(), "total=1 running=1 pending=0 completed=0 failed=0 aborted=1 lost=0");
    b.finish(0, failed(1)).expect("known");
    assert_eq!(b.counts(), "total=1 running=0 pending=1 completed=0 failed=1 aborted=1 lost=0");
    assert_eq!(copies(&b), [0, 0, 0, 0, 1]);
    // And the next run may be slow again.
    start(&mut b, 0);
    assert!(look(&mut b, 30));
}

#[test]
fn a_copy_that_is_not_needed_any_more_is_not_started() {
    let mut b = Bench::new(&spec("job_speculation_timeout=30000", "job_count=2"));
    start(&mut b, 0);
    assert!(look(&mut b, 30));
    b.finish(0, failed(1)).expect("known");
    assert_eq!((wanted(&b), b.settle(COPIES).is_err()), (0, true));
    assert_eq!(copies(&b), [0; 5]);
}

/// A copy is not a restart: with `fail_on_job_restart` its abort does not end the operation, its failure does.
#[test]
fn a_lost_copy_is_no_restart() {
    let mut b = race("fail_on_job_restart=%true", "job_count=1");
    assert_eq!(b.finish(1, aborted(AbortReason::Preemption)).expect("known").operation_event, None);
    let event_of_last = b.finish(0, aborted(AbortReason::Preemption)).expect("known").operation_event;
    assert!(matches!(event_of_last, Some(OperationEvent::Failed(_))));
    let mut b = race("fail_on_job_restart=%true", "job_count=1");
    let event = b.finish(1, failed(1)).expect("known").operation_event;
    assert!(matches!(event, Some(OperationEvent::Failed(_))));
}

#[test]
fn abandoning_one_ends_the_other() {
    let mut b = race("", "job_count=1");
    let verdict = b.controller.abandon_job(b.now, Bench::job_id(1)).expect("known");
    let lost: Vec<_> = verdict.aborted_with_it.iter().map(|v| v.record.abort_reason).collect();
    assert_eq!(lost, [Some(AbortReason::SpeculativeRunWon)]);
    assert_eq!(verdict.operation_event, Some(OperationEvent::Completed));
}

#[test]
fn all_jobs_end_together() {
    let mut b = race("", "job_count=2");
    let (ended, event) = b.controller.abort_all(b.now, AbortReason::OperationSuspended);
    assert_eq!((ended.len(), event), (2, None));
    assert_eq!(b.counts(), "total=2 running=0 pending=2 completed=0 failed=0 aborted=2 lost=0");
}

#[test]
fn copies_are_bounded_and_go_to_the_oldest() {
    let root = "max_speculative_job_count_per_task=2; job_speculation_timeout=10000";
    let mut b = Bench::new(&spec(root, "job_count=5"));
    for _ in 0..4 {
        start(&mut b, 0);
        b.now += Span::from_secs(1);
    }
    assert!(look(&mut b, 100));
    assert_eq!(wanted(&b), 2);
    assert_eq!([start(&mut b, COPIES).1.cookie, start(&mut b, COPIES).1.cookie], [0, 1]);
    assert!(!look(&mut b, 100), "no more at a time");
    b.finish(4, done()).expect("the copy of unit 0");
    assert!(look(&mut b, 1), "the place of one that is over is free");
    assert_eq!(start(&mut b, COPIES).1.cookie, 2);
}

/// The script's limit of time wins over the operation's, and waiting for resources does not count.
#[test]
fn who_waited_is_not_slow() {
    let mut b =
        Bench::new(&spec("job_speculation_timeout=1000", "job_count=1; job_speculation_timeout=60000"));
    let job = start(&mut b, 0).1;
    let statistics = JobStatistics { wait_for_resources: Span::from_secs(20), ..JobStatistics::default() };
    b.controller.job_statistics(job.job_id, JobPhase::Running, 0, Some(statistics));
    assert!(!look(&mut b, 79));
    assert!(look(&mut b, 1));
}

#[test]
fn who_was_told_to_stop_is_not_copied() {
    let mut b = Bench::new(&spec("job_speculation_timeout=1000", "job_count=1"));
    let job = start(&mut b, 0).1;
    b.controller.job_interrupted(job.job_id, InterruptionReason::Preemption, None);
    assert!(!look(&mut b, 100));
}

/// Late is who takes more than twice as long as four fifths of the others did, when nothing else is left
/// to start, and not before a minute.
#[test]
fn late_jobs_are_found_by_comparison() {
    for (usual, late_at) in [(5, 60), (100, 220)] {
        let mut b = Bench::new(&spec("", "job_count=10"));
        (0..9).for_each(|_| drop(start(&mut b, 0)));
        let straggler_started = b.now;
        b.now += Span::from_secs(usual);
        for job in 1..9 {
            b.finish_after(job, done(), straggler_started).expect("known");
        }
        assert!(!look(&mut b, late_at * 10), "a unit is pending still");
        start(&mut b, 0);
        assert!(look(&mut b, 0), "{usual}");
        assert_eq!(start(&mut b, COPIES).1.cookie, 0);
        // The tenth has just begun.
        b.controller.abort_all(b.now, AbortReason::OperationSuspended);
        let begun = b.now;
        start(&mut b, 0);
        start(&mut b, 0);
        // Edges of buckets are a tenth apart.
        b.now = begun + Span::from_secs(late_at) - Span::from_secs(late_at / 5);
        assert!(!look(&mut b, 0), "{usual}");
        b.now = begun + Span::from_secs(late_at) + Span::from_secs(late_at / 5);
        assert!(look(&mut b, 0), "{usual}");
        assert_eq!(wanted(&b), 2);
    }
    let mut b = Bench::new(&spec("enable_job_splitting=%false", "job_count=5"));
    (0..5).for_each(|_| drop(start(&mut b, 0)));
    (1..5).for_each(|job| drop(b.finish(job, done())));
    assert!(!look(&mut b, 1_000_000), "nobody looks for late jobs");
}

#[test]
fn a_smaller_job_count_takes_both() {
    let mut b = race("", "job_count=2");
    start(&mut b, 0);
    b.finish(2, done()).expect("known");
    let resized = b.controller.set_job_count(b.now, "t", 1).expect("possible");
    assert_eq!(resized.jobs_to_abort, [Bench::job_id(0), Bench::job_id(1)]);
    for job in [0, 1] {
        b.finish(job, aborted(AbortReason::JobCountChangedByUserRequest)).expect("known");
    }
    assert_eq!(b.counts(), "total=1 running=0 pending=0 completed=1 failed=0 aborted=2 lost=0");
    assert!(b.controller.is_over());
}

fn held() -> HeldJob<'static> {
    HeldJob {
        node_address: NODE,
        granted: Resources::INFINITE,
        start_time: second(0),
        exec_start_time: Some(second(0)),
        phase: JobPhase::Running,
    }
}

fn restart(b: &mut Bench) {
    let options = ControllerOptions::default();
    let parts = b.controller.export();
    b.controller = OperationController::restore(operation_id(), &b.parsed.spec, &options, second(0), &parts)
        .expect("own state");
}

fn identities(b: &Bench) -> Vec<JobIdentity> {
    b.controller.running_jobs().map(|view| view.identity().clone()).collect()
}

#[test]
fn races_outlive_the_server() {
    for winner in [0, 1] {
        for order in [[0, 1], [1, 0]] {
            let mut b = race("", "job_count=1");
            let jobs = identities(&b);
            restart(&mut b);
            for job in order {
                assert_eq!(b.controller.adopt_job(&jobs[job], held()), Ok(()));
            }
            assert_eq!(b.controller.end_revival(b.now), (vec![], None));
            assert_eq!(copies(&b), [0, 1, 0, 0, 0]);
            let verdict = b.finish(winner, done()).expect("known");
            assert_eq!(verdict.aborted_with_it.len(), 1);
            assert_eq!(verdict.operation_event, Some(OperationEvent::Completed));
        }
    }
}

/// The end of one is reported before the other's node is back.
#[test]
fn a_race_may_be_over_before_all_are_back() {
    let mut b = race("", "job_count=1");
    let jobs = identities(&b);
    restart(&mut b);
    b.controller.adopt_job(&jobs[1], held()).expect("the copy");
    let verdict = b.finish(1, done()).expect("known");
    assert_eq!(verdict.operation_event, Some(OperationEvent::Completed));
    assert!(b.controller.adopt_job(&jobs[0], held()).is_err(), "nobody needs it any more");
    assert_eq!(b.counts(), "total=1 running=0 pending=0 completed=1 failed=0 aborted=0 lost=0");
}

#[test]
fn who_does_not_come_back_has_left_the_race() {
    let mut b = race("", "job_count=1");
    let jobs = identities(&b);
    restart(&mut b);
    b.controller.adopt_job(&jobs[0], held()).expect("the slow one");
    b.controller.end_revival(b.now);
    assert_eq!(b.counts(), "total=1 running=1 pending=0 completed=0 failed=0 aborted=1 lost=0");
    assert_eq!(b.controller.adopt_job(&jobs[1], held()), Err(AdoptError::AlreadyFinished));
    b.finish(0, failed(1)).expect("known");
    assert_eq!(b.counts(), "total=1 running=0 pending=1 completed=0 failed=1 aborted=1 lost=0");
}

/// A second job that was never a copy is refused, as ever.
#[test]
fn strangers_do_not_join() {
    let mut b = Bench::new(&spec("", "job_count=1"));
    let job = start(&mut b, 0).1;
    restart(&mut b);
    b.controller.adopt_job(&job, held()).expect("it runs");
    let stranger = JobIdentity { job_id: Bench::job_id(77), task_job_index: 1, job_index: 1, ..job };
    assert_eq!(b.controller.adopt_job(&stranger, held()), Err(AdoptError::UnitTaken));
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Settle(u32),
    End(usize, u8),
    Pass(u64),
    Restart(usize),
    AbortAll,
    Resize(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u32..3).prop_map(Step::Settle),
        4 => (0usize..100, 0u8..6).prop_map(|(job, how)| Step::End(job, how)),
        3 => (1u64..40).prop_map(Step::Pass),
        1 => (0usize..100).prop_map(Step::Restart),
        1 => Just(Step::AbortAll),
        1 => (1i64..6).prop_map(Step::Resize),
    ];
    prop::collection::vec(step, 1..60)
}

/// Runs a life and says how often each end of a unit was seen; checks what must hold all the time.
fn live(steps: &[Step]) {
    let mut b = Bench::new(&spec(
        "job_speculation_timeout=30000; max_failed_job_count=10000; max_speculative_job_count_per_task=2",
        "job_count=4",
    ));
    let mut resized = false;
    for step in steps {
        let running = identities(&b);
        match *step {
            Step::Settle(group) => {
                let job = b.settled;
                if b.settle(group).is_ok() {
                    b.controller.job_started(Bench::job_id(job), b.now);
                }
            }
            Step::End(n, how) if !running.is_empty() => {
                let identity = &running[n % running.len()];
                let outcome = match how {
                    0..2 => done(),
                    2 => failed(1),
                    3 => aborted(AbortReason::ResourceOverdraft),
                    4 => interrupted(true),
                    _ => interrupted(false),
                };
                b.finish(identity.job_id.0.0[0], outcome).expect("it runs");
            }
            Step::End(..) => {}
            Step::Pass(seconds) => drop(look(&mut b, seconds)),
            Step::Restart(missing) => {
                let over = b.controller.is_over();
                restart(&mut b);
                for (n, identity) in running.iter().enumerate().filter(|(n, _)| n % 7 != missing % 7) {
                    let adopted = b.controller.adopt_job(identity, held());
                    // Who was unwanted already is not taken back.
                    let refused = adopted == Err(AdoptError::UnitTaken) && resized;
                    assert!(adopted == Ok(()) || refused, "job {n}: {adopted:?}, {identity:?}");
                }
                b.controller.end_revival(b.now);
                assert!(b.controller.is_over() || !over);
            }
            Step::AbortAll => drop(b.controller.abort_all(b.now, AbortReason::OperationSuspended)),
            Step::Resize(count) => {
                resized = true;
                drop(b.controller.set_job_count(b.now, "t", count));
            }
        }
        check(&b);
    }
    // Whatever happened, it can be brought to its end.
    for _ in 0..100 {
        for group in [1, 0] {
            while b.settle(group).is_ok() {}
        }
        let Some(identity) = identities(&b).first().cloned() else { break };
        b.finish(identity.job_id.0.0[0], done()).expect("it runs");
        check(&b);
    }
    assert!(b.controller.is_over() && b.controller.running_jobs().len() == 0, "{}", b.counts());
}

fn check(b: &Bench) {
    let mut jobs_of: BTreeMap<u32, Vec<bool>> = BTreeMap::new();
    for view in b.controller.running_jobs() {
        let id = view.identity();
        let is_copy = view.competition().is_some_and(|original| original != id.job_id);
        jobs_of.entry(id.cookie).or_default().push(is_copy);
    }
    for (unit, jobs) in &jobs_of {
        let originals = jobs.iter().filter(|is_copy| !**is_copy).count();
        assert!(jobs.len() <= 2 && originals <= 1, "unit {unit}: {jobs:?}");
    }
    let running = jobs_of.values().flatten().filter(|is_copy| **is_copy).count() as i64;
    assert!(wanted(b) + running <= 2, "{running} copies");
    let brief = b.controller.brief_progress(b.now, OperationState::Running).into();
    let count = |name: &str| at(&brief, &format!("jobs/{name}")).as_i64().expect("a count");
    assert_eq!(count("running"), jobs_of.len() as i64, "units at work");
    assert_eq!(count("total"), count("running") + count("pending") + count("completed"));
    // Costs more than all of the rest.
    if b.settled.is_multiple_of(8) {
        assert_eq!(copies(b)[1], running);
        check_state(b);
    }
}

fn check_state(b: &Bench) {
    let parts = b.controller.export();
    let back = OperationController::restore(
        operation_id(),
        &b.parsed.spec,
        &ControllerOptions::default(),
        second(0),
        &parts,
    );
    assert_eq!(back.expect("own state").export(), parts);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn units_with_copies_are_done_once(steps in steps()) {
        live(&steps);
    }
}
