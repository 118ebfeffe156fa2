//! Proxies that die or do not listen, and processes that cannot be killed (jobs-and-nodes.md 3.8, 4.6).

use expect_test::expect;
use vocab::*;

use super::script::*;
use nodecore::*;

/// The proxy could not kill all of it: the end is told, and nothing is given back before they are dead, in this
/// life of the agent and the next.
#[test]
fn survivors_keep_what_the_job_held() {
    let mut d = Desk::new();
    d.start([(1, 0)]);
    d.bring_up(1);
    d.transcript.clear();
    let now = d.now;
    d.end(1, JobResult { survivors: true, ..completed(now) });
    assert_eq!(d.core.alerts().len(), 1);
    d.release(1);
    assert_eq!((d.core.ledger().usage(), d.core.slots_taken()), (cores(1, 1, 10), 1));
    d.note("the kill fails");
    d.tell(NodeInput::ContainerKilled { job_id: job_id(1), result: Err(Failure::new("in the D state")) });
    assert_eq!(d.core.alerts().len(), 1);
    d.pass(30);
    d.note("and succeeds");
    d.tell(NodeInput::ContainerKilled { job_id: job_id(1), result: Ok(Remains::default()) });
    d.clean(1);
    assert!(d.core.ledger().usage().is_zero() && d.core.slots_taken() == 0 && d.core.alerts().is_empty());
    d.expect(expect![[r#"
        job 1 ends
          record 1 in slot 0, completed
          kill 1
          send: finished 1 (completed)
          wake at 105 s
        release 1
        the kill fails
        30 s later
          kill 1
          send: heartbeat, usage {user_slots=1 cpu=1 memory=10}, jobs [], unreleased 0
          wake at 135 s
        and succeeds
          clean 1 in slot 0
        job 1 is cleaned up
          forget 1 in slot 0
    "#]]);

    let mut next = Desk::new();
    next.core = NodeCore::new(Settings::new("n1:1", cores(2, 2, 20)));
    let record = |n: u32| JobRecord {
        start: start(n, 0).into(),
        accepted_time: Time::from_secs(50),
        acquired_time: Time::from_secs(51),
        slot: n,
        gpus: Vec::new(),
        ports: Vec::new(),
        fetched_time: None,
        preparation: PreparationMeasures::default(),
        end: None,
    };
    let lost = |n| RecoveredJob { record: record(n), fate: Fate::Lost("died".to_owned()), survivors: true };
    let ended = |n| RecoveredJob { record: record(n), fate: Fate::Ended(completed(now)), survivors: true };
    next.tell(NodeInput::Recovered(vec![lost(1), ended(2)]));
    assert_eq!((next.core.ledger().usage(), next.core.slots_taken()), (cores(2, 2, 20), 2));
    for n in [1, 2] {
        next.tell(NodeInput::ContainerKilled { job_id: job_id(n), result: Ok(Remains::default()) });
    }
    assert!(next.core.ledger().usage().is_zero());
}

#[test]
fn a_dead_proxy_and_a_kill_that_takes_long() {
    let mut d = Desk::new();
    d.start([(1, 0)]);
    d.bring_up(1);
    d.transcript.clear();
    d.note("the proxy dies");
    let outcome = JobOutcome::Failed { error: Failure::new("Job proxy failed") };
    d.tell(NodeInput::ProxyLost { job_id: job_id(1), outcome });
    d.note("and the kill fails");
    d.tell(NodeInput::ContainerKilled { job_id: job_id(1), result: Err(Failure::new("in the D state")) });
    d.pass(30);
    d.release(1);
    assert_eq!(d.core.ledger().usage(), cores(1, 1, 10), "the dead hold their resources until they are gone");
    d.note("at last");
    d.tell(NodeInput::ContainerKilled { job_id: job_id(1), result: Ok(Remains::default()) });
    d.clean(1);
    assert!(d.core.ledger().usage().is_zero() && d.core.slots_taken() == 0);
    d.expect(expect![[r#"
        the proxy dies
          kill 1
        and the kill fails
        30 s later
          record 1 in slot 0, failed: Job proxy failed
          kill 1
          send: finished 1 (failed: Job proxy failed)
          send: heartbeat, usage {user_slots=1 cpu=1 memory=10}, jobs [], unreleased 1
          wake at 135 s
        release 1
        at last
          clean 1 in slot 0
        job 1 is cleaned up
          forget 1 in slot 0
    "#]]);
}

#[test]
fn a_deaf_proxy_is_killed() {
    let mut d = Desk::new();
    d.start([(1, 0)]);
    d.bring_up(1);
    d.transcript.clear();
    d.abort(1, AbortReason::UserRequest, "enough");
    d.pass(30);
    d.note("killed");
    let remains = Remains { stderr_size: 3, stderr: KeptStderr::Inline(b"oh\n".to_vec()) };
    d.tell(NodeInput::ContainerKilled { job_id: job_id(1), result: Ok(remains) });
    d.expect(expect![[r#"
        abort 1
          tell 1: Abort { reason: UserRequest, text: "enough" }
        30 s later
          kill 1
          send: started 1
          send: heartbeat, usage {user_slots=1 cpu=1 memory=10}, jobs ["1 finalizing_job_proxy"], unreleased 0
          wake at 135 s
        killed
          record 1 in slot 0, aborted user_request: enough
          clean 1 in slot 0
          send: finished 1 (aborted user_request: enough)
    "#]]);
}
