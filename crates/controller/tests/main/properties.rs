//! Random lives: counters agree with a slow model, operations end exactly when they should, and a
//! restart at any moment changes nothing.

use crate::script::*;
use controller::{ControllerOptions, HeldJob, OperationController, OperationEvent};
use proptest::prelude::*;
use std::collections::BTreeMap;
use vocab::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Settle(u32),
    Complete(usize),
    Fail(usize),
    Abort(usize),
    /// Aborted for its memory.
    Overdraw(usize),
    MakeRoom(usize),
    RunAgain(usize),
    Abandon(usize),
    Resize(u32, i64),
    Restart,
    /// The n-th job that is over is reported once more.
    Repeat(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let job = 0usize..1_000;
    let step = prop_oneof![
        8 => (0u32..4).prop_map(Step::Settle),
        6 => job.clone().prop_map(Step::Complete),
        2 => job.clone().prop_map(Step::Fail),
        2 => job.clone().prop_map(Step::Abort),
        2 => job.clone().prop_map(Step::Overdraw),
        1 => job.clone().prop_map(Step::MakeRoom),
        1 => job.clone().prop_map(Step::RunAgain),
        1 => job.prop_map(Step::Abandon),
        1 => (0u32..2, 1i64..8).prop_map(|(t, n)| Step::Resize(t, n)),
        1 => Just(Step::Restart),
        1 => (0u32..60).prop_map(Step::Repeat),
    ];
    prop::collection::vec(step, 1..120)
}

const SPEC: &str = "{max_failed_job_count=1000; tasks={a={job_count=5;command=x};b={job_count=3;command=x}}}";
const NAMES: [&str; 2] = ["a", "b"];

/// The slow twin: what must be true of one task, by plain counting.
#[derive(Clone, Default)]
struct Model {
    done: u64,
    made_room: u64,
    failed: u64,
    aborted: u64,
    lost: u64,
}

struct World {
    b: Bench,
    model: Model,
    /// Jobs at work.
    running: BTreeMap<u32, JobIdentity>,
    ended: bool,
    over: BTreeMap<u32, JobIdentity>,
}

impl World {
    fn new() -> World {
        let b = Bench::new(SPEC);
        World { b, model: Model::default(), running: BTreeMap::new(), ended: false, over: BTreeMap::new() }
    }

    fn pick(&self, n: usize) -> Option<u32> {
        (!self.running.is_empty())
            .then(|| *self.running.keys().nth(n % self.running.len()).expect("in range"))
    }

    fn end(&mut self, n: usize, outcome: JobOutcome, count: impl FnOnce(&mut Model)) {
        let Some(job) = self.pick(n) else { return };
        let verdict = self.b.finish(job, outcome).expect("a running job is known");
        self.note_end(job, &verdict.operation_event);
        count(&mut self.model);
    }

    fn note_end(&mut self, job: u32, event: &Option<OperationEvent>) {
        let identity = self.running.remove(&job).expect("was running");
        self.over.insert(job, identity);
        self.note_event(event);
    }

    fn note_event(&mut self, event: &Option<OperationEvent>) {
        if let Some(event) = event {
            assert_eq!(*event, OperationEvent::Completed);
            assert!(!self.ended, "it ends once");
            self.ended = true;
        }
    }

    fn step(&mut self, step: Step) {
        self.b.now += Span::from_secs(1);
        match step {
            // Two groups of each task: the usual units, and those that were aborted for their memory.
            Step::Settle(group) => {
                let task = group % 2;
                let job = self.b.settled;
                if let Ok((identity, _)) = self.b.settle(group) {
                    let twin = |j: &&JobIdentity| j.task == identity.task && j.cookie == identity.cookie;
                    assert!(self.running.values().find(twin).is_none(), "two jobs of one unit");
                    assert_eq!(*identity.task, *NAMES[task as usize]);
                    self.b.controller.job_started(identity.job_id, self.b.now);
                    self.running.insert(job, identity);
                }
            }
            Step::Complete(n) => self.end(n, done(), |m| m.done += 1),
            Step::Fail(n) => self.end(n, failed(1), |m| m.failed += 1),
            Step::Abort(n) => self.end(n, aborted(AbortReason::Preemption), |m| m.aborted += 1),
            Step::Overdraw(n) => self.end(n, aborted(AbortReason::ResourceOverdraft), |m| m.aborted += 1),
            Step::MakeRoom(n) => self.end(n, interrupted(false), |m| m.made_room += 1),
            Step::RunAgain(n) => self.end(n, interrupted(true), |m| m.lost += 1),
            Step::Abandon(n) => {
                let Some(job) = self.pick(n) else { return };
                let verdict = self.b.controller.abandon_job(self.b.now, Bench::job_id(job)).expect("known");
                self.note_end(job, &verdict.operation_event);
                self.model.done += 1;
            }
            Step::Resize(task, count) => {
                if let Ok(resized) = self.b.controller.set_job_count(self.b.now, NAMES[task as usize], count)
                {
                    self.note_event(&resized.operation_event);
                    for id in resized.jobs_to_abort {
                        let job = id.0.0[0];
                        let verdict = self.b.finish(job, aborted(AbortReason::JobCountChangedByUserRequest));
                        self.note_end(job, &verdict.expect("known").operation_event);
                        self.model.aborted += 1;
                    }
                }
            }
            Step::Restart => self.restart(),
            Step::Repeat(job) => {
                if let Some(identity) = self.over.get(&job) {
                    assert_eq!(self.b.finish(job, done()), None);
                    assert!(self.b.controller.adopt_job(identity, held()).is_err());
                }
            }
        }
        self.check();
    }

    fn restart(&mut self) {
        let before = self.b.controller.export();
        let options = ControllerOptions::default();
        let restored =
            OperationController::restore(operation_id(), &self.b.parsed.spec, &options, second(0), &before);
        self.b.controller = restored.expect("own state");
        for identity in self.over.values() {
            assert!(self.b.controller.adopt_job(identity, held()).is_err(), "{identity:?} is over");
        }
        for identity in self.running.values() {
            if !self.ended {
                self.b.controller.adopt_job(identity, held()).expect("awaited");
            }
        }
        assert_eq!(self.b.controller.end_revival(self.b.now), (vec![], None));
        assert_eq!(self.b.controller.export(), before, "a restart changes nothing");
        assert!(!self.b.controller.is_dirty());
        let progress = self.b.controller.progress(self.b.now, OperationState::Running);
        let jobs = at(&progress.into(), "jobs").clone();
        assert_eq!(at(&jobs, "completed/total").as_u64(), Some(self.model.done + self.model.made_room));
        assert_eq!(at(&jobs, "aborted/total").as_u64(), Some(self.model.aborted));
    }

    fn check(&self) {
        let totals = self.b.controller.totals();
        let m = &self.model;
        let ends = &totals.ends;
        assert_eq!(totals.running, self.running.len() as u64);
        assert_eq!(self.b.controller.running_jobs().len(), self.running.len());
        assert_eq!(ends.completed_total(), m.done + m.made_room);
        assert_eq!((ends.failed, ends.aborted_total(), ends.lost), (m.failed, m.aborted, m.lost));
        assert_eq!(totals.total(), ends.completed_total() + totals.running + totals.pending);
        let demand: i64 = self.b.controller.demand().iter().map(|d| d.count).sum();
        if self.ended {
            assert_eq!((demand, totals.pending, totals.running), (0, 0, 0));
        } else {
            assert_eq!(demand as u64, totals.pending);
            assert!(totals.pending + totals.running > 0, "it should have ended");
        }
    }
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn counters_agree_with_the_model(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            if world.ended && !matches!(step, Step::Repeat(_)) {
                break;
            }
            world.step(step);
        }
    }

    /// State written in pieces is the state: parts taken at commits, newest of each part, equal a
    /// full export.
    #[test]
    fn parts_written_at_commits_make_the_whole(steps in steps(), commits in prop::collection::vec(any::<bool>(), 120)) {
        let mut world = World::new();
        let mut store = BTreeMap::new();
        let mut commit = |world: &mut World| {
            for part in world.b.controller.take_dirty() {
                store.insert(part.part, part.bytes);
            }
            store.clone()
        };
        commit(&mut world);
        for (step, now) in steps.into_iter().zip(commits) {
            if world.ended || matches!(step, Step::Restart) {
                continue;
            }
            world.step(step);
            if now {
                let stored = commit(&mut world);
                let whole: BTreeMap<_, _> = world.b.controller.export().into_iter().map(|p| (p.part, p.bytes)).collect();
                prop_assert_eq!(stored, whole);
            }
        }
    }

    /// Whatever happens, running everything that is left completes the operation.
    #[test]
    fn work_ends(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            if !world.ended {
                world.step(step);
            }
        }
        let mut rounds = 0;
        while !world.ended {
            world.step(Step::Settle(rounds % 4));
            world.step(Step::Complete(0));
            rounds += 1;
            prop_assert!(rounds < 200);
        }
    }

    /// Gangs: nobody works in two places, no rank works alone in an old incarnation, and the
    /// operation ends exactly when everything is done.
    #[test]
    fn gangs_start_anew_as_a_whole(steps in steps()) {
        let mut b = Bench::new(
            "{max_failed_job_count=1000; tasks={a={job_count=3;command=x;gang_options={size=2}};b={job_count=2;command=x}}}",
        );
        let mut ended = false;
        for step in steps {
            let incarnation = b.controller.incarnation().to_owned();
            let running: Vec<u32> = b.controller.running_jobs().map(|j| j.identity().job_id.0.0[0]).collect();
            let pick = |n: usize| running.get(n % running.len().max(1)).copied();
            let (job, outcome) = match step {
                Step::Settle(task) => {
                    let _ = b.settle(task);
                    continue;
                }
                Step::Complete(n) => (pick(n), done()),
                Step::Fail(n) => (pick(n), failed(1)),
                Step::Abort(n) => (pick(n), aborted(AbortReason::NodeOffline)),
                Step::MakeRoom(n) => (pick(n), interrupted(false)),
                _ => continue,
            };
            let Some(job) = job else { continue };
            let ranked = b.controller.job(Bench::job_id(job)).expect("running").gang_rank().is_some();
            let verdict = b.finish(job, outcome.clone()).expect("running");
            let switched = b.controller.incarnation() != incarnation;
            let well = outcome == done();
            prop_assert_eq!(switched, ranked && !well);
            if switched {
                prop_assert_eq!(verdict.aborted_with_it.len(), running.len() - 1);
                prop_assert_eq!(b.controller.running_jobs().len(), 0);
                prop_assert_eq!(b.controller.totals().pending, 5);
            }
            let totals = b.controller.totals();
            ended |= verdict.operation_event.is_some();
            prop_assert_eq!(ended, totals.pending + totals.running == 0);
            if ended {
                break;
            }
        }
    }

    /// Broken bytes of the store are refused or harmless, never a panic.
    #[test]
    fn flipped_bits_do_not_panic(steps in steps(), part in 0usize..3, place in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut world = World::new();
        for step in steps {
            if !world.ended {
                world.step(step);
            }
        }
        let mut parts = world.b.controller.export();
        let bytes = &mut parts[part].bytes;
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        let options = ControllerOptions::default();
        let spec = &world.b.parsed.spec;
        if let Ok(mut restored) = OperationController::restore(operation_id(), spec, &options, second(0), &parts) {
            for identity in world.running.values() {
                let _ = restored.adopt_job(identity, held());
            }
            restored.end_revival(world.b.now);
            restored.progress(world.b.now, OperationState::Running);
        }
    }
}
