//! Copies of slow jobs of maps (jobs-and-nodes.md 6.7): they need not be asked for, and whoever wins, dies or
//! is asked to stop, every row of the input is in the output once.

use crate::script::*;
use controller::spec::{self, ParsedSpec};
use controller::{ControllerOptions, FinishedJob, HeldJob, JobVerdict, OperationController, OperationEvent};
use proptest::prelude::*;
use std::collections::BTreeMap;
use vocab::*;

const COPIES: u32 = 2;
const ENDS: [u64; 3] = [5, 11, 12];

fn parse_map(options: &str) -> ParsedSpec {
    let text = format!(
        "{{input_table_paths=[\"//a\"]; output_table_paths=[\"//b\"]; mapper={{command=cat}}; \
         max_failed_job_count=10000; {options}}}"
    );
    spec::parse(OperationType::Map, &map(&text), &ControllerOptions::default()).expect("a good spec")
}

/// A map over 12 rows in 3 units, and what a kernel would publish of it: ends of what was written by their
/// first rows.
struct Map {
    bench: Bench,
    published: BTreeMap<u64, u64>,
}

impl Map {
    fn new(options: &str) -> Map {
        let parsed = parse_map(options);
        let options = ControllerOptions::default();
        let controller = OperationController::new(operation_id(), &parsed.spec, &options, second(0));
        let bench = Bench { parsed, controller, now: second(0), settled: 0 };
        let mut map = Map { bench, published: BTreeMap::new() };
        map.set_tables();
        map
    }

    fn set_tables(&mut self) {
        let io = TableIo {
            input_rows: None,
            input_format: "yson".into(),
            output_format: "yson".into(),
            outputs: Vec::new(),
            first_output: 1,
            check_input_fully_consumed: false,
        };
        self.bench.controller.set_tables(0, io, &ENDS);
    }

    fn start(&mut self, group: u32) -> Option<JobIdentity> {
        let identity = self.bench.settle(group).ok()?.0;
        self.bench.controller.job_started(identity.job_id, self.bench.now);
        Some(identity)
    }

    fn look(&mut self, seconds: u64) -> bool {
        self.bench.now += Span::from_secs(seconds);
        self.bench.controller.look_for_slow_jobs(self.bench.now)
    }

    /// The job has read so many rows of its unit, and has written each of them.
    fn finish(&mut self, job_id: JobId, outcome: JobOutcome, read: u64) -> Option<JobVerdict> {
        let input = RowFlow { row_count: read as i64, ..RowFlow::default() };
        let tables = Some(Box::new(TableStatistics { input, ..TableStatistics::default() }));
        let report = FinishedJob {
            job_id,
            outcome,
            exec_start_time: Some(self.bench.now),
            finish_time: self.bench.now,
            statistics: Some(JobStatistics { tables, user_job_max_memory: 1, ..JobStatistics::default() }),
            stderr_size: 0,
            fail_context_size: 0,
        };
        let verdict = self.bench.controller.job_finished(self.bench.now, report)?;
        if let Some(first_row) = verdict.unit_done {
            let before = self.published.insert(first_row, first_row + read);
            assert_eq!(before, None, "the unit from row {first_row} on was done already");
        }
        Some(verdict)
    }

    fn finish_whole(&mut self, job_id: JobId) -> Option<JobVerdict> {
        let rows = self.bench.controller.rows_of_job(job_id).unwrap_or_default();
        self.finish(job_id, done(), rows.end - rows.start)
    }

    fn restart(&mut self) {
        let bench = &mut self.bench;
        let (options, parts) = (ControllerOptions::default(), bench.controller.export());
        let spec = &bench.parsed.spec;
        bench.controller = OperationController::restore(operation_id(), spec, &options, second(0), &parts)
            .expect("own state");
        self.set_tables();
    }

    fn running(&self) -> Vec<JobIdentity> {
        self.bench.controller.running_jobs().map(|view| view.identity().clone()).collect()
    }

    /// Each row is there, and once.
    fn check_published(&self) {
        let mut next = 0;
        for (first, end) in &self.published {
            assert_eq!(*first, next, "{:?}", self.published);
            next = *end;
        }
        assert_eq!(next, ENDS[2], "{:?}", self.published);
    }
}

#[test]
fn maps_need_not_ask() {
    let timeout = "job_speculation_timeout=30000";
    for (options, copied) in [
        (timeout.to_owned(), true),
        (format!("{timeout}; try_avoid_duplicating_jobs=%true"), false),
        (format!("{timeout}; max_speculative_job_count_per_task=0"), false),
        (String::new(), false),
    ] {
        let mut map = Map::new(&options);
        map.start(0).expect("a unit");
        assert_eq!(map.look(29) || map.look(1), copied, "{options}");
    }
}

#[test]
fn only_the_winner_has_written() {
    for winner in [0, 1] {
        let mut map = Map::new("job_speculation_timeout=30000");
        let slow = map.start(0).expect("a unit");
        assert!(map.look(30));
        let copy = map.start(COPIES).expect("a copy");
        let rows = |map: &Map, job: &JobIdentity| map.bench.controller.rows_of_job(job.job_id);
        assert_eq!(rows(&map, &slow), rows(&map, &copy), "both read the same");
        let both = [slow.job_id, copy.job_id];
        let verdict = map.finish_whole(both[winner]).expect("it runs");
        let lost: Vec<_> = verdict.aborted_with_it.iter().map(|v| v.record.identity.job_id).collect();
        assert_eq!((verdict.unit_done, lost), (Some(0), vec![both[1 - winner]]));
        // The loser was as good as done: its end comes too late.
        assert_eq!(map.finish_whole(both[1 - winner]), None);
        for _ in 0..2 {
            let job = map.start(0).expect("a unit");
            map.finish_whole(job.job_id).expect("it runs");
        }
        map.check_published();
        assert!(map.bench.controller.is_over());
    }
}

/// Who stops in the middle of its unit has done what it has read; the other has read more, in vain.
#[test]
fn who_stops_in_the_middle_wins_too() {
    let mut map = Map::new("job_speculation_timeout=30000");
    let slow = map.start(0).expect("a unit");
    assert!(map.look(30));
    let copy = map.start(COPIES).expect("a copy");
    let verdict = map.finish(slow.job_id, interrupted(false), 2).expect("it runs");
    assert_eq!((verdict.unit_done, verdict.aborted_with_it.len()), (Some(0), 1));
    assert_eq!(map.finish_whole(copy.job_id), None);
    for _ in 0..3 {
        let job = map.start(0).expect("a unit: the two others, and the rest of the first");
        map.finish_whole(job.job_id).expect("it runs");
    }
    map.check_published();
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Start(u32),
    Finish(usize),
    Stop(usize, u64, bool),
    Lose(usize, bool),
    Pass(u64),
    Restart(usize),
    AbortAll,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => prop_oneof![Just(0), Just(COPIES)].prop_map(Step::Start),
        2 => (0usize..100).prop_map(Step::Finish),
        2 => (0usize..100, 0u64..8, prop::bool::weighted(0.2)).prop_map(|(n, rows, again)| Step::Stop(n, rows, again)),
        2 => (0usize..100, any::<bool>()).prop_map(|(n, failed)| Step::Lose(n, failed)),
        4 => (1u64..40).prop_map(Step::Pass),
        1 => (0usize..100).prop_map(Step::Restart),
        1 => Just(Step::AbortAll),
    ];
    prop::collection::vec(step, 1..60)
}

fn live(steps: &[Step]) {
    let mut map = Map::new("job_speculation_timeout=30000; max_speculative_job_count_per_task=2");
    // Whose end was not counted: it may come when nobody waits for it any more.
    let mut given_up: Vec<JobId> = Vec::new();
    for step in steps {
        let running = map.running();
        let pick = |n: usize| running.get(n % running.len().max(1)).map(|job| job.job_id);
        let verdict = match *step {
            Step::Start(group) => {
                map.start(group);
                None
            }
            Step::Finish(n) => pick(n).and_then(|job| map.finish_whole(job)),
            Step::Stop(n, rows, again) => pick(n).and_then(|job| {
                let unit = map.bench.controller.rows_of_job(job).expect("it runs");
                map.finish(job, interrupted(again), rows.min(unit.end - unit.start))
            }),
            Step::Lose(n, true) => pick(n).and_then(|job| map.finish(job, failed(1), 1)),
            Step::Lose(n, false) => {
                pick(n).and_then(|job| map.finish(job, aborted(AbortReason::NodeOffline), 1))
            }
            Step::Pass(seconds) => {
                map.look(seconds);
                None
            }
            Step::Restart(missing) => {
                map.restart();
                for (n, job) in running.iter().enumerate() {
                    let held = HeldJob {
                        node_address: NODE,
                        granted: Resources::INFINITE,
                        start_time: second(0),
                        exec_start_time: Some(second(0)),
                        phase: JobPhase::Running,
                    };
                    match n % 7 == missing % 7 {
                        true => given_up.push(job.job_id),
                        false => map.bench.controller.adopt_job(job, held).expect("awaited"),
                    }
                }
                map.bench.controller.end_revival(map.bench.now);
                None
            }
            Step::AbortAll => {
                given_up.extend(running.iter().map(|job| job.job_id));
                map.bench.controller.abort_all(map.bench.now, AbortReason::OperationSuspended);
                None
            }
        };
        let with_it = verdict.iter().flat_map(|v| &v.aborted_with_it);
        given_up.extend(with_it.map(|v| v.record.identity.job_id));
    }
    for job in given_up {
        assert_eq!(map.finish_whole(job), None, "{job} was given up");
    }
    for _ in 0..100 {
        while map.start(COPIES).is_some() || map.start(0).is_some() {}
        let Some(job) = map.running().pop() else { break };
        let event = map.finish_whole(job.job_id).expect("it runs").operation_event;
        assert!(!matches!(event, Some(OperationEvent::Failed(_))), "{event:?}");
    }
    assert!(map.bench.controller.is_over(), "{}", map.bench.counts());
    map.check_published();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_row_is_there_once(steps in steps()) {
        live(&steps);
    }
}
