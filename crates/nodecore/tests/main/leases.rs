//! Leases of exclusive jobs (S19): what the agent passes on, and what it does by itself.

use expect_test::expect;
use vocab::*;
use wire::{NodeMessage, ServerMessage, StartJob};

use super::script::*;
use nodecore::*;

fn exclusive(n: u32, seconds: u64) -> StartJob {
    StartJob { lease: Some(Span::from_secs(seconds)), ..start(n, 0) }
}

/// Clock and boot clock go together from second 100.
fn desk() -> Desk {
    let mut desk = Desk::with(|settings| settings.first_heartbeat = Some(Span::from_secs(10_000)));
    desk.core.set_since_boot(Span::from_secs(100));
    desk
}

fn at(d: &mut Desk, second: u64) {
    d.now = Time::from_secs(second);
    d.core.set_since_boot(Span::from_secs(second));
    d.note(&format!("second {second}"));
}

fn heard(d: &mut Desk, second: u64) -> Vec<NodeEffect> {
    let from = Span::from_secs(second);
    d.note(&format!("the server has heard the stamp of second {second}"));
    d.order(ServerMessage::Heard { from, extended_until: Time::ZERO })
}

/// S19.
#[test]
fn a_job_that_is_not_heard_is_stopped_after_its_proxy_has_failed_to() {
    let mut d = desk();
    heard(&mut d, 100);
    d.order(ServerMessage::Start(vec![exclusive(1, 60), start(2, 0)]));
    d.bring_up(1);
    d.bring_up(2);
    d.transcript.clear();
    at(&mut d, 110);
    heard(&mut d, 109);
    d.tell(NodeInput::Disconnected);
    at(&mut d, 139);
    d.tell(NodeInput::Wake);
    at(&mut d, 169);
    d.tell(NodeInput::Wake);
    at(&mut d, 172);
    d.tell(NodeInput::Wake);
    at(&mut d, 175);
    d.tell(NodeInput::Wake);
    d.expect(expect![[r#"
        second 110
        the server has heard the stamp of second 109
          keep that leases begin at 109s
          tell 1: Heard { from: 109s }
          send: started 1; started 2
          wake at 139 s
        second 139
          half a lease of 1 jobs is over, 30s left
          wake at 169 s
        second 169
          wake at 172 s
        second 172
          tell 1: Abort { reason: NodeOffline, text: "The lease of the job is over: the server has not confirmed for 60s that it hears the node" }
          wake at 175 s
        second 175
          kill 1
          wake at 205 s
    "#]]);
    assert!(d.core.living_jobs() == 2, "the other job goes on");
}

/// S19: the answer to an old heartbeat counts from the heartbeat, however late it comes.
#[test]
fn a_late_confirmation_extends_nothing_that_is_over() {
    let mut d = desk();
    heard(&mut d, 100);
    d.order(ServerMessage::Start(vec![exclusive(1, 60)]));
    d.bring_up(1);
    at(&mut d, 150);
    assert!(heard(&mut d, 101).iter().any(|e| matches!(e, NodeEffect::ProxySend(..))));
    assert!(heard(&mut d, 100).is_empty(), "it is older than the last one");
    at(&mut d, 165);
    let effects = d.tell(NodeInput::Wake);
    let aborts = effects.iter().any(|e| matches!(e, NodeEffect::ProxySend(_, ProxyOrder::Abort { .. })));
    assert!(aborts, "{effects:?}");
}

/// S19: the agent was stopped while it prepared the job.
#[test]
fn a_job_whose_lease_is_over_is_not_started() {
    let mut d = desk();
    heard(&mut d, 100);
    d.order(ServerMessage::Start(vec![StartJob { lease: Some(Span::from_secs(60)), ..start(1, 1) }]));
    at(&mut d, 161);
    d.transcript.clear();
    d.tell(NodeInput::ArtifactFetched { job_id: job_id(1), result: Ok(downloaded(3)) });
    assert!(!d.transcript.contains("spawn"), "{}", d.transcript);
    assert!(d.transcript.contains("finished 1 (aborted node_offline"), "{}", d.transcript);
}

/// S19: its proxy is told where the lease begins, and that again when it has been away.
#[test]
fn a_proxy_gets_its_lease_at_the_start_and_after_each_absence() {
    let mut d = desk();
    heard(&mut d, 100);
    let effects = d.order(ServerMessage::Start(vec![exclusive(1, 60), start(2, 0)]));
    d.tell(NodeInput::SandboxReady { job_id: job_id(2), result: Ok(()) });
    let effects: Vec<NodeEffect> = effects
        .into_iter()
        .chain(d.tell(NodeInput::SandboxReady { job_id: job_id(1), result: Ok(()) }))
        .collect();
    let lease = effects.iter().find_map(|e| match e {
        NodeEffect::SpawnProxy { job_id: id, lease, .. } if *id == job_id(1) => *lease,
        _ => None,
    });
    assert_eq!(lease, Some(Lease { length: Span::from_secs(60), from: Span::from_secs(100) }));
    let told = |d: &mut Desk, n: u32| {
        let effects = d.tell(NodeInput::ProxyConnected { job_id: job_id(n) });
        effects.iter().any(|e| matches!(e, NodeEffect::ProxySend(_, ProxyOrder::Heard { .. })))
    };
    assert!(told(&mut d, 1) && told(&mut d, 1), "also the second time");
    assert!(!told(&mut d, 2), "it has no lease");
}

/// S19.
#[test]
fn messages_carry_the_boot_clock_and_heartbeats_confirm_an_extension() {
    let mut d = Desk::new();
    d.core.set_since_boot(Span::from_secs(500));
    let effects = d.tell(NodeInput::Connected);
    let stamp = effects.iter().find_map(|e| match e {
        NodeEffect::Send(NodeMessage::Hello(hello)) => Some(hello.stamp),
        _ => None,
    });
    assert_eq!(stamp, Some(Span::from_secs(500)));
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(5), job_uids: None });
    let until = Time::from_secs(9000);
    d.order(ServerMessage::Heard { from: Span::from_secs(7700), extended_until: until });
    d.now += Span::from_secs(5);
    d.core.set_since_boot(Span::from_secs(505));
    let effects = d.tell(NodeInput::Wake);
    let said = effects.iter().find_map(|e| match e {
        NodeEffect::Send(NodeMessage::Heartbeat(h)) => Some((h.stamp, h.leases_extended_until)),
        _ => None,
    });
    assert_eq!(said, Some((Span::from_secs(505), until)));
    assert_eq!(d.core.confirmed(), Span::from_secs(7700), "in the future: the pause");
}

/// S19: abort and start of a gang's rank go to the node together.
#[test]
fn a_job_waits_for_the_end_of_the_job_before_it_at_its_unit() {
    let mut d = desk();
    heard(&mut d, 100);
    d.order(ServerMessage::Start(vec![exclusive(1, 60)]));
    d.bring_up(1);
    d.abort(1, AbortReason::OperationIncarnationChanged, "anew");
    let mut next = exclusive(3, 60);
    next.identity.cookie = 1;
    let mut other = exclusive(5, 60);
    other.identity.cookie = 1;
    other.identity.task = "another".into();
    d.transcript.clear();
    d.order(ServerMessage::Start(vec![next, other]));
    assert!(
        d.transcript.contains("sandbox of 5") && !d.transcript.contains("sandbox of 3"),
        "{}",
        d.transcript
    );
    let now = d.now;
    d.end(1, JobResult { outcome: JobOutcome::Failed { error: Failure::new("killed") }, ..completed(now) });
    assert!(d.transcript.contains("sandbox of 3"), "{}", d.transcript);
}

/// S19: otherwise its unit would start elsewhere beside processes that live.
#[test]
fn the_end_of_an_exclusive_job_is_told_when_nothing_of_it_lives() {
    let mut d = desk();
    heard(&mut d, 100);
    d.order(ServerMessage::Start(vec![exclusive(1, 6000)]));
    d.bring_up(1);
    d.transcript.clear();
    let now = d.now;
    d.end(1, JobResult { survivors: true, ..completed(now) });
    assert!(d.transcript.contains("kill 1") && !d.transcript.contains("finished"), "{}", d.transcript);
    d.tell(NodeInput::ContainerKilled { job_id: job_id(1), result: Err(Failure::new("in the D state")) });
    at(&mut d, 200);
    d.tell(NodeInput::Wake);
    assert!(!d.transcript.contains("finished"), "{}", d.transcript);
    d.tell(NodeInput::ContainerKilled { job_id: job_id(1), result: Ok(Remains::default()) });
    assert!(d.transcript.contains("finished 1 (completed)"), "{}", d.transcript);
}

/// S19: the server may have given the unit away when the lease was over.
#[test]
fn a_lease_that_is_over_is_not_revived() {
    let mut d = desk();
    heard(&mut d, 100);
    d.order(ServerMessage::Start(vec![exclusive(1, 60)]));
    d.bring_up(1);
    at(&mut d, 160);
    let effects = heard(&mut d, 159);
    assert!(!effects.iter().any(|e| matches!(e, NodeEffect::ProxySend(..))), "{effects:?}");
    let effects = d.tell(NodeInput::ProxyConnected { job_id: job_id(1) });
    assert!(!effects.iter().any(|e| matches!(e, NodeEffect::ProxySend(..))), "{effects:?}");
    at(&mut d, 163);
    d.transcript.clear();
    d.tell(NodeInput::Wake);
    assert!(d.transcript.contains("tell 1: Abort { reason: NodeOffline"), "{}", d.transcript);
    at(&mut d, 166);
    d.tell(NodeInput::Wake);
    assert!(d.transcript.contains("kill 1"), "{}", d.transcript);
    // The lease of the next job begins where the server has confirmed.
    d.transcript.clear();
    d.order(ServerMessage::Start(vec![exclusive(3, 60)]));
    assert!(d.transcript.contains("sandbox of 3"), "{}", d.transcript);
}

/// S19: the order lay in the socket of an agent that was stopped.
#[test]
fn an_order_to_start_a_job_whose_lease_is_over_starts_nothing() {
    let mut d = desk();
    heard(&mut d, 100);
    at(&mut d, 700);
    d.transcript.clear();
    d.order(ServerMessage::Start(vec![exclusive(1, 60)]));
    heard(&mut d, 699);
    assert!(!d.transcript.contains("sandbox"), "{}", d.transcript);
    assert!(d.transcript.contains("finished 1 (aborted node_offline"), "{}", d.transcript);
}

/// The agent before this one has started job 1 with a lease of a minute, and its proxy lives.
fn next_agent(confirmed: Option<u64>, second: u64) -> Desk {
    let mut before = desk();
    heard(&mut before, 100);
    let effects = before.order(ServerMessage::Start(vec![exclusive(1, 60)]));
    let record = effects.into_iter().find_map(|e| match e {
        NodeEffect::WriteRecord(record) => Some(*record),
        _ => None,
    });
    let mut next = desk();
    next.core = NodeCore::new(Settings::new("n1:1", cores(2, 2, 20)));
    at(&mut next, second);
    confirmed.into_iter().for_each(|from| next.core.recall_confirmed(Span::from_secs(from)));
    let fate = Fate::Alive { start_time: Some(Time::from_secs(101)), holds: None };
    let record = record.expect("a record");
    next.tell(NodeInput::Recovered(vec![RecoveredJob { record, fate, survivors: false }]));
    next.tell(NodeInput::ProxyConnected { job_id: job_id(1) });
    next.transcript.clear();
    next
}

/// S19: planned work on the server, and the agent is updated meanwhile.
#[test]
fn an_agent_that_starts_during_an_extension_of_leases_ends_no_job() {
    let mut d = next_agent(Some(7300), 200);
    for second in [265, 3600, 7359] {
        at(&mut d, second);
        d.tell(NodeInput::Wake);
        assert!(!d.transcript.contains("tell 1: Abort"), "{}", d.transcript);
    }
    at(&mut d, 7363);
    d.tell(NodeInput::Wake);
    assert!(d.transcript.contains("tell 1: Abort { reason: NodeOffline"), "{}", d.transcript);
}

/// S19: the proxy is stopped, and the node is cut off when its next agent starts.
#[test]
fn an_agent_that_starts_without_a_server_ends_jobs_when_their_leases_are_over() {
    let mut d = next_agent(Some(140), 150);
    at(&mut d, 202);
    d.tell(NodeInput::Wake);
    assert!(!d.transcript.contains("tell 1: Abort"), "{}", d.transcript);
    at(&mut d, 203);
    d.tell(NodeInput::Wake);
    assert!(d.transcript.contains("tell 1: Abort"), "not a lease after the start: {}", d.transcript);
    let mut d = next_agent(None, 150);
    at(&mut d, 212);
    d.tell(NodeInput::Wake);
    assert!(!d.transcript.contains("tell 1: Abort"), "nothing is known: {}", d.transcript);
}

/// S19: ends of leases of other lengths do not postpone the kill of a job whose proxy is stopped.
#[test]
fn the_kill_after_a_lease_is_not_postponed() {
    let mut d = desk();
    heard(&mut d, 100);
    d.order(ServerMessage::Start(vec![exclusive(1, 60), exclusive(3, 64)]));
    d.bring_up(1);
    d.bring_up(3);
    for second in [160, 163, 164, 165] {
        at(&mut d, second);
        d.tell(NodeInput::Wake);
    }
    d.transcript.clear();
    at(&mut d, 166);
    d.tell(NodeInput::Wake);
    assert!(d.transcript.contains("kill 1"), "{}", d.transcript);
    // An abort that was ordered before waits for the proxy no longer than the margin allows.
    let mut d = desk();
    heard(&mut d, 100);
    d.order(ServerMessage::Start(vec![exclusive(1, 60)]));
    d.bring_up(1);
    at(&mut d, 159);
    d.abort(1, AbortReason::UserRequest, "stop");
    for second in [160, 163, 166] {
        at(&mut d, second);
        d.tell(NodeInput::Wake);
    }
    assert!(d.transcript.contains("kill 1"), "{}", d.transcript);
}
