//! Whatever order things happen in: nothing leaks, and every accepted job is reported exactly once
//! per connection until it is released.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use vocab::*;
use wire::{AbortJob, FinishedJob, JobEvent, NodeMessage, ServerMessage};

use super::script::*;
use nodecore::*;

/// A fake edge and server: answers wait in a heap and are given in an order that the test chooses.
struct World {
    desk: Desk,
    /// Answers that the edge owes.
    owed: Vec<NodeInput>,
    accepted: BTreeSet<JobId>,
    released: BTreeSet<JobId>,
    /// Reports of the end in this connection.
    reported: BTreeMap<JobId, u32>,
    first_outcome: BTreeMap<JobId, JobOutcome>,
    connected: bool,
    welcome: bool,
    /// Live processes by job, as the edge knows them.
    alive: BTreeSet<JobId>,
    slots: BTreeMap<u32, JobId>,
    /// Claims of uids without an answer, and whether the last answer was a refusal.
    claims: usize,
    is_refused: bool,
    /// Jobs that have got resources.
    begun: BTreeSet<JobId>,
}

/// Who was running had a place.
fn tells_its_place(end: &FinishedJob) -> bool {
    end.start_time.is_none() || end.slot_index.is_some()
}

#[derive(Clone, Debug)]
enum Step {
    Start(u32, usize),
    Abort(u32),
    Interrupt(u32, u64),
    Fail(u32),
    Answer(usize, bool),
    EndByItself(u32),
    ProxyDies(u32),
    Grow(u32, i64),
    Pass(u64),
    Reconnect,
    Release(u32),
    Limits(i64),
    StopJobs,
}

fn step() -> impl Strategy<Value = Step> {
    let n = 1..12u32;
    prop_oneof![
        6 => (n.clone(), 0..3usize).prop_map(|(n, files)| Step::Start(n, files)),
        2 => n.clone().prop_map(Step::Abort),
        2 => (n.clone(), 0..20u64).prop_map(|(n, s)| Step::Interrupt(n, s)),
        1 => n.clone().prop_map(Step::Fail),
        14 => (any::<usize>(), prop::bool::weighted(0.85)).prop_map(|(i, good)| Step::Answer(i, good)),
        4 => n.clone().prop_map(Step::EndByItself),
        1 => n.clone().prop_map(Step::ProxyDies),
        2 => (n.clone(), 0..40i64).prop_map(|(n, x)| Step::Grow(n, x)),
        3 => (0..40u64).prop_map(Step::Pass),
        1 => Just(Step::Reconnect),
        3 => n.prop_map(Step::Release),
        1 => (5..40i64).prop_map(Step::Limits),
        1 => prop::bool::weighted(0.05).prop_map(|stop| if stop { Step::StopJobs } else { Step::Pass(1) }),
    ]
}

impl World {
    fn new() -> World {
        let desk = Desk::with(|settings| settings.disk_capacity = Some(4));
        World {
            desk,
            owed: Vec::new(),
            accepted: BTreeSet::new(),
            released: BTreeSet::new(),
            reported: BTreeMap::new(),
            first_outcome: BTreeMap::new(),
            connected: true,
            welcome: true,
            alive: BTreeSet::new(),
            slots: BTreeMap::new(),
            claims: 0,
            is_refused: false,
            begun: BTreeSet::new(),
        }
    }

    fn tell(&mut self, input: NodeInput) {
        let effects = self.desk.tell(input);
        for effect in effects {
            self.carry_out(effect);
        }
        let ledger = self.desk.core.ledger();
        for r in RESOURCES {
            assert!(
                ledger.acquired().raw(r) >= 0
                    && ledger.releasing().raw(r) >= 0
                    && ledger.pending().raw(r) >= 0
            );
        }
    }

    fn carry_out(&mut self, effect: NodeEffect) {
        match effect {
            NodeEffect::Send(NodeMessage::Hello(hello)) => {
                self.reported.clear();
                let mut listed = BTreeSet::new();
                for job in hello.running {
                    assert!(listed.insert(job.identity.job_id));
                }
                for end in hello.finished {
                    assert!(listed.insert(end.identity.job_id), "listed twice");
                    assert!(tells_its_place(&end));
                    self.report(end.identity.job_id, end.outcome);
                }
                let expected: BTreeSet<JobId> = self.accepted.difference(&self.released).copied().collect();
                assert_eq!(listed, expected, "Hello names every job that is not released, and no other");
            }
            NodeEffect::Send(NodeMessage::Jobs(events)) => {
                assert!(self.connected && self.welcome, "events before Welcome");
                for event in events {
                    if let JobEvent::Finished(end) = event {
                        assert!(tells_its_place(&end));
                        self.report(end.identity.job_id, end.outcome);
                    }
                }
            }
            NodeEffect::Send(_)
            | NodeEffect::LeaseIsHalfOver { .. }
            | NodeEffect::KeepConfirmed { .. }
            | NodeEffect::WakeAt(_)
            | NodeEffect::ReadStderr { .. }
            | NodeEffect::AskShell { .. } => {}
            NodeEffect::ClaimUids(_) => {
                self.claims += 1;
                self.owed.push(NodeInput::UidsClaimed(Ok(())));
            }
            NodeEffect::FetchArtifact { job_id, .. } => {
                self.owed.push(NodeInput::ArtifactFetched { job_id, result: Ok(downloaded(3)) });
            }
            NodeEffect::ProbePorts { job_id, ports } => {
                self.begin(job_id);
                let busy = ports.into_iter().step_by(2).collect();
                self.owed.push(NodeInput::PortsProbed { job_id, busy });
            }
            NodeEffect::PrepareSandbox { job_id, slot, .. } => {
                assert_eq!(self.slots.insert(slot, job_id), None, "a slot is used twice");
                self.owed.push(NodeInput::SandboxReady { job_id, result: Ok(()) });
            }
            NodeEffect::SpawnProxy { job_id, .. } => {
                self.alive.insert(job_id);
                self.owed.push(NodeInput::ProxyConnected { job_id });
            }
            NodeEffect::ProxySend(job_id, ProxyOrder::Abort { .. } | ProxyOrder::Fail { .. }) => {
                let outcome = JobOutcome::Failed { error: Failure::new("killed by the proxy") };
                let result = JobResult { outcome, ..completed(self.desk.now) };
                self.owed.push(NodeInput::JobEnded { job_id, result });
            }
            NodeEffect::ProxySend(..) => {}
            NodeEffect::KillContainer(job_id) => {
                self.owed.push(NodeInput::ContainerKilled { job_id, result: Ok(Remains::default()) });
            }
            NodeEffect::FetchRows { job_id, .. } => {
                let supply = Supply { source: Source::Rows, size: 0 };
                self.owed.push(NodeInput::ArtifactFetched { job_id, result: Ok(supply) });
            }
            NodeEffect::Upload { job_id, .. } => {
                self.owed.push(NodeInput::Uploaded { job_id, result: Ok(()) });
            }
            NodeEffect::Cleanup { job_id, slot } => {
                assert!(!self.alive.contains(&job_id), "cleaned while it lives");
                assert_eq!(self.slots.get(&slot), Some(&job_id));
                self.owed.push(NodeInput::CleanedUp { job_id, result: Ok(()) });
            }
            NodeEffect::WriteRecord(record) => {
                if record.end.is_none() {
                    self.begin(record.start.identity.job_id);
                }
            }
            NodeEffect::RemoveRecord { job_id, slot } => {
                assert!(self.released.contains(&job_id), "forgotten before it was released");
                self.slots.remove(&slot);
            }
        }
    }

    fn begin(&mut self, job_id: JobId) {
        if self.begun.insert(job_id) {
            assert!(self.claims == 0 && !self.is_refused, "a job begins before its uid is claimed");
        }
    }

    fn report(&mut self, id: JobId, outcome: JobOutcome) {
        if !self.accepted.contains(&id) || self.released.contains(&id) {
            assert!(matches!(outcome, JobOutcome::Aborted { reason: AbortReason::DisappearedFromNode, .. }));
            return;
        }
        *self.reported.entry(id).or_default() += 1;
        let first = self.first_outcome.entry(id).or_insert_with(|| outcome.clone());
        assert_eq!(*first, outcome, "another end of the same job");
    }

    fn answer(&mut self, index: usize, good: bool) {
        if self.owed.is_empty() {
            return;
        }
        let mut input = self.owed.swap_remove(index % self.owed.len());
        let error = || Failure::new("bad luck");
        match &mut input {
            NodeInput::ArtifactFetched { result, .. } if !good => *result = Err(error()),
            NodeInput::SandboxReady { result, .. } if !good => *result = Err(error()),
            NodeInput::UidsClaimed(result) => {
                self.claims -= 1;
                if self.claims == 0 {
                    self.is_refused = !good;
                }
                if !good {
                    *result = Err(error());
                }
            }
            NodeInput::PortsProbed { busy, .. } if good => busy.clear(),
            NodeInput::Uploaded { result, .. } if !good => *result = Err(error()),
            NodeInput::ContainerKilled { result, .. } if !good => *result = Err(error()),
            NodeInput::ContainerKilled { job_id, .. } | NodeInput::JobEnded { job_id, .. } => {
                self.alive.remove(job_id);
            }
            NodeInput::ProxyConnected { job_id } => {
                if !self.alive.contains(job_id) {
                    return;
                }
                if !good {
                    self.alive.remove(job_id);
                    let job_id = *job_id;
                    return self.tell(NodeInput::SpawnFailed { job_id, error: error() });
                }
                let job_id = *job_id;
                self.tell(input);
                let start_time = self.desk.now;
                return self.tell(NodeInput::JobStarted { job_id, start_time });
            }
            _ => {}
        }
        self.tell(input);
    }

    fn step(&mut self, step: Step) {
        let now = self.desk.now;
        match step {
            Step::Start(n, files) => {
                if self.connected && !self.released.contains(&job_id(n)) {
                    let again = self.reported.remove(&job_id(n)); // a repetition may be answered again
                    self.accepted.insert(job_id(n));
                    let mut job = start(n, files);
                    job.description.port_count = n % 3;
                    job.description.file_system.disk_space = Some(i64::from(n % 4));
                    self.tell(NodeInput::Server(ServerMessage::Start(vec![job])));
                    if again.is_some() {
                        self.reported.insert(job_id(n), 1);
                    }
                }
            }
            Step::Abort(n) => self.tell(NodeInput::Server(ServerMessage::Abort(vec![AbortJob {
                job_id: job_id(n),
                reason: AbortReason::UserRequest,
                text: "abort".to_owned(),
            }]))),
            Step::Interrupt(n, seconds) => self.tell(NodeInput::Server(ServerMessage::Interrupt {
                job_id: job_id(n),
                timeout: Span::from_secs(seconds),
                reason: InterruptionReason::Preemption,
                text: "interrupt".to_owned(),
            })),
            Step::Fail(n) => {
                let error = Failure::new("fail");
                self.tell(NodeInput::Server(ServerMessage::Fail { job_id: job_id(n), error }));
            }
            Step::Answer(index, good) => self.answer(index, good),
            Step::EndByItself(n) => {
                if self.alive.remove(&job_id(n)) {
                    let long = n.is_multiple_of(3);
                    let stderr = if long { KeptStderr::OnDisk } else { KeptStderr::None };
                    let result = JobResult { stderr_size: u64::from(long), stderr, ..completed(now) };
                    self.tell(NodeInput::JobEnded { job_id: job_id(n), result });
                }
            }
            Step::ProxyDies(n) => {
                if self.alive.contains(&job_id(n)) {
                    let outcome = JobOutcome::Failed { error: Failure::new("Job proxy failed") };
                    self.tell(NodeInput::ProxyLost { job_id: job_id(n), outcome });
                }
            }
            Step::Grow(n, bytes) => {
                self.tell(NodeInput::JobUsage { job_id: job_id(n), cpu: None, total_peak: Some(bytes) });
            }
            Step::Pass(seconds) => {
                self.desk.now += Span::from_secs(seconds);
                self.tell(NodeInput::Wake);
            }
            Step::Reconnect => self.reconnect(),
            Step::Release(n) => {
                if self.reported.contains_key(&job_id(n)) {
                    self.released.insert(job_id(n));
                    self.tell(NodeInput::Server(ServerMessage::Release(vec![job_id(n)])));
                }
            }
            Step::Limits(memory) => self.tell(NodeInput::ResourceLimits(cores(3, 3, memory))),
            Step::StopJobs => self.tell(NodeInput::StopJobs),
        }
    }

    fn reconnect(&mut self) {
        (self.connected, self.welcome) = (false, false);
        self.tell(NodeInput::Disconnected);
        self.connected = true;
        self.tell(NodeInput::Connected);
        self.welcome = true;
        let heartbeat_period = Span::from_secs(5);
        let range = UidRange::new(100_000, 165_535).expect("a range");
        let job_uids = Some(wire::JobUids { cluster_id: Guid([1, 2, 3, 4]), range, claim: range });
        self.tell(NodeInput::Server(ServerMessage::Welcome { heartbeat_period, job_uids }));
    }

    /// Everything that is owed is paid, everything that lives is stopped, everything is released.
    fn wind_up(&mut self) {
        self.tell(NodeInput::StopJobs);
        for _ in 0..100 {
            while !self.owed.is_empty() {
                self.answer(0, true);
            }
            self.desk.now += Span::from_secs(60);
            self.tell(NodeInput::Wake);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_leaks_and_every_end_is_told_once(steps in prop::collection::vec(step(), 0..120)) {
        let mut w = World::new();
        for step in steps {
            w.step(step);
            prop_assert!(w.reported.values().all(|n| *n == 1), "told twice: {:?}", w.reported);
        }
        w.wind_up();
        let told: BTreeSet<JobId> = w.reported.keys().copied().chain(w.released.iter().copied()).collect();
        prop_assert_eq!(&told, &w.accepted, "every accepted job has been reported");
        prop_assert!(w.desk.core.ledger().usage().is_zero());
        prop_assert!(w.desk.core.ledger().pending().is_zero());
        prop_assert!(w.alive.is_empty());
        w.reconnect();
        while !w.owed.is_empty() {
            w.answer(0, true);
        }
        let unreleased: Vec<JobId> = w.accepted.difference(&w.released).copied().collect();
        prop_assert!(unreleased.iter().all(|id| w.reported.get(id) == Some(&1)), "told again after a reconnection");
        for id in unreleased {
            w.released.insert(id);
            w.tell(NodeInput::Server(ServerMessage::Release(vec![id])));
        }
        while !w.owed.is_empty() {
            w.answer(0, true);
        }
        prop_assert_eq!(w.desk.core.job_ids().count(), 0);
        prop_assert_eq!(w.desk.core.slots_taken(), 0);
        prop_assert_eq!(w.desk.core.promised_disk(), 0);
        prop_assert_eq!(w.desk.core.ports().free(), 10_000, "all ports have come back");
        prop_assert!(w.slots.is_empty());
    }

    #[test]
    fn the_same_story_has_the_same_transcript(steps in prop::collection::vec(step(), 0..60)) {
        let run = || {
            let mut w = World::new();
            steps.iter().cloned().for_each(|step| w.step(step));
            w.desk.transcript
        };
        prop_assert_eq!(run(), run());
    }
}
