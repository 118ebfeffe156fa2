//! Output tables of vanilla tasks (jobs-and-nodes.md 8.3): each task has its own, and what a run has written counts if
//! its unit is done by it, once.

use crate::script::*;
use controller::{ControllerOptions, JobVerdict, OperationController};
use proptest::prelude::*;
use vocab::*;

const SPEC: &str = "{max_failed_job_count=1000; tasks={\
    a={job_count=3; command=x; output_table_paths=[\"//a\"; \"//both\"]; restart_exit_code=17}; \
    b={job_count=3; command=x; output_table_paths=[\"//both\"]}; \
    c={job_count=1; command=x}}}";

fn set_outputs(controller: &mut OperationController) {
    for (task, count) in [(0, 2), (1, 1)] {
        let io = TableIo {
            input_rows: None,
            input_format: "yson".into(),
            output_format: "json".into(),
            outputs: vec![OutputTable::default(); count],
            first_output: 1,
            check_input_fully_consumed: false,
        };
        controller.set_outputs(task, io);
    }
}

fn bench() -> Bench {
    let mut bench = Bench::new(SPEC);
    set_outputs(&mut bench.controller);
    bench
}

#[test]
fn jobs_are_told_of_the_tables_of_their_task() {
    let mut b = bench();
    let tables = [0, 1, 2].map(|task| b.settle(task).expect("a pending unit").1.tables);
    let [a, second, none] = tables;
    let a = a.expect("it has outputs");
    assert_eq!((a.input_rows, a.outputs.len(), a.first_output), (None, 2, 1));
    assert_eq!(second.expect("it has one").outputs.len(), 1);
    assert_eq!(none, None);
}

/// The place is the unit's, whichever run is done with it: by task, then by cookie.
#[test]
fn rows_have_the_place_of_their_unit() {
    let mut b = bench();
    let mut places = Vec::new();
    for (job, task) in [0, 0, 1, 1, 2].into_iter().enumerate() {
        b.settle(task).expect("a pending unit");
        places.push(b.finish(job as u32, done()).expect("it ran").unit_done);
    }
    assert_eq!(places, [0, 1, 1 << 32, (1 << 32) + 1, 2 << 32].map(Some));
    // Runs that are not the last of their unit.
    for (job, outcome) in
        [failed(1), aborted(AbortReason::UserRequest), interrupted(true)].into_iter().enumerate()
    {
        b.settle(0).expect("the same unit");
        assert_eq!(b.finish(5 + job as u32, outcome).expect("it ran").unit_done, None);
    }
    b.settle(0).expect("the same unit");
    let verdict = b.controller.abandon_job(b.now, Bench::job_id(8)).expect("it runs");
    assert_eq!(verdict.unit_done, None, "whoever gives a job up gives up what it has written");
}

proptest! {
    /// Whatever the ends of jobs, and whenever the controller is restored, each unit writes once.
    #[test]
    fn each_unit_writes_once(steps in prop::collection::vec((0u8..8, 0u32..2, 0usize..6), 1..60)) {
        let mut b = bench();
        let mut running: Vec<u32> = Vec::new();
        let mut written = Vec::new();
        let note = |written: &mut Vec<u64>, verdict: Option<JobVerdict>| {
            written.extend(verdict.and_then(|verdict| verdict.unit_done));
        };
        for (step, task, victim) in steps {
            let job = (!running.is_empty()).then(|| victim % running.len().max(1));
            match (step, job) {
                (0..=2, _) => {
                    let number = b.settled;
                    if b.settle(task).is_ok() {
                        running.push(number);
                    }
                }
                (3, _) => {
                    let parts = b.controller.export();
                    let options = ControllerOptions::default();
                    let spec = &b.parsed.spec;
                    b.controller = OperationController::restore(operation_id(), spec, &options, second(0), &parts)
                        .expect("own state");
                    set_outputs(&mut b.controller);
                    // Nobody has come back to say that it still runs.
                    let (lost, _) = b.controller.end_revival(b.now);
                    lost.into_iter().for_each(|verdict| note(&mut written, Some(verdict)));
                    running.clear();
                }
                (_, None) => {}
                (_, Some(at)) => {
                    let number = running.swap_remove(at);
                    let outcome = match step {
                        4 => failed(1),
                        5 => aborted(AbortReason::NodeOffline),
                        _ => done(),
                    };
                    let verdict = b.finish(number, outcome);
                    note(&mut written, verdict);
                    prop_assert_eq!(b.finish(number, done()), None, "an end counts once");
                }
            }
        }
        for number in running {
            let verdict = b.finish(number, done());
            note(&mut written, verdict);
        }
        for task in 0..2 {
            while b.settle(task).is_ok() {
                let verdict = b.finish(b.settled - 1, done());
                note(&mut written, verdict);
            }
        }
        written.sort_unstable();
        prop_assert_eq!(written, (0..2).flat_map(|task| (0..3).map(move |cookie| task << 32 | cookie)).collect::<Vec<u64>>());
    }
}
