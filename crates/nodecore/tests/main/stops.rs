//! Jobs that are ordered to stop: aborts, interruptions, failures by request (jobs-and-nodes.md 3.9;
//! scheduling.md 15.2).

use expect_test::expect;
use vocab::*;
use wire::ServerMessage;

use super::script::*;
use nodecore::*;

#[test]
fn aborts_at_every_stage() {
    let mut d = Desk::new();
    d.start([(1, 1), (2, 0), (3, 0)]);
    d.abort(3, AbortReason::UserRequest, "enough");
    d.abort(1, AbortReason::UserRequest, "enough");
    d.abort(2, AbortReason::UserRequest, "enough");
    d.note("the sandbox was under way");
    d.tell(NodeInput::SandboxReady { job_id: job_id(2), result: Ok(()) });
    d.clean(2);
    d.start([(4, 0)]);
    d.tell(NodeInput::SandboxReady { job_id: job_id(4), result: Ok(()) });
    d.abort(4, AbortReason::UserRequest, "before the proxy called");
    d.note("the proxy calls");
    d.tell(NodeInput::ProxyConnected { job_id: job_id(4) });
    assert_eq!(d.core.ledger().releasing(), cores(1, 1, 10));
    let now = d.now;
    let aborted =
        JobOutcome::Aborted { reason: AbortReason::Other, error: Failure::new("the proxy's words") };
    d.end(4, JobResult { outcome: aborted, ..completed(now) });
    d.abort(9, AbortReason::UserRequest, "who is that?");
    d.expect(expect![[r#"
        start
          record 1 in slot 0
          fetch file0 for 1
          record 2 in slot 1
          sandbox of 2 in slot 1
        abort 3
          send: finished 3 (aborted user_request: enough)
        abort 1
          record 1 in slot 0, aborted user_request: enough
          send: finished 1 (aborted user_request: enough)
        abort 2
          record 2 in slot 1, aborted user_request: enough
          send: finished 2 (aborted user_request: enough)
        the sandbox was under way
          clean 2 in slot 1
        job 2 is cleaned up
        start
          record 4 in slot 2
          sandbox of 4 in slot 2
          spawn 4 in slot 2, devices []
        abort 4
        the proxy calls
          tell 4: Abort { reason: UserRequest, text: "before the proxy called" }
        job 4 ends
          record 4 in slot 2, aborted user_request: before the proxy called
          clean 4 in slot 2
          send: finished 4 (aborted user_request: before the proxy called)
        abort 9
          send: finished 9 (aborted disappeared_from_node: Job 9-0-0-384 is not on node "n1:1")
    "#]]);
}

#[test]
fn a_job_that_completed_before_the_abort_reached_it_has_completed() {
    let mut d = Desk::new();
    d.start([(1, 0)]);
    d.bring_up(1);
    d.transcript.clear();
    d.abort(1, AbortReason::Preemption, "somebody starves");
    let now = d.now;
    d.end(1, completed(now));
    d.expect(expect![[r#"
        abort 1
          tell 1: Abort { reason: Preemption, text: "somebody starves" }
        job 1 ends
          record 1 in slot 0, completed
          clean 1 in slot 0
          send: finished 1 (completed)
          wake at 105 s
    "#]]);
}

#[test]
fn interruptions() {
    let mut d = Desk::new();
    d.start([(2, 0), (4, 0)]);
    d.bring_up(2);
    d.bring_up(4);
    d.transcript.clear();
    d.interrupt(2, 10);
    d.interrupt(4, 10);
    d.pass(5);
    d.note("again, which must not extend it");
    d.interrupt(4, 10);
    let now = d.now;
    d.end(2, completed(now));
    d.pass(5);
    let error = Failure::new("killed");
    d.end(4, JobResult { outcome: JobOutcome::Failed { error }, ..completed(now) });
    d.expect(expect![[r#"
        interrupt 2
          tell 2: Interrupt { reason: Preemption, timeout: 10s, text: "somebody starves" }
        interrupt 4
          tell 4: Interrupt { reason: Preemption, timeout: 10s, text: "somebody starves" }
        5 s later
          send: started 2; started 4
          send: heartbeat, usage {user_slots=2 cpu=2 memory=20}, jobs ["2 running", "4 running"], unreleased 0
          wake at 110 s
        again, which must not extend it
        interrupt 4
        job 2 ends
          clean 2 in slot 0
          send: finished 2 (completed, interrupted by preemption)
        5 s later
          tell 4: Abort { reason: Preemption, text: "somebody starves" }
          send: heartbeat, usage {user_slots=1 cpu=1 memory=10}, jobs ["4 finalizing_job_proxy"], unreleased 1
          wake at 115 s
        job 4 ends
          record 4 in slot 1, aborted preemption: somebody starves: Job did not stop within the interruption timeout
          clean 4 in slot 1
          send: finished 4 (aborted preemption: somebody starves: Job did not stop within the interruption timeout)
    "#]]);
}

#[test]
fn what_cannot_be_interrupted_is_aborted() {
    let mut d = Desk::new();
    d.start([(1, 0), (2, 0)]);
    d.bring_up(1);
    d.transcript.clear();
    d.interrupt(1, 10);
    d.interrupt(2, 10);
    d.expect(expect![[r#"
        interrupt 1
          tell 1: Abort { reason: Preemption, text: "somebody starves" }
        interrupt 2
          record 2 in slot 1, aborted preemption: somebody starves
          send: started 1; finished 2 (aborted preemption: somebody starves)
          wake at 105 s
    "#]]);
}

#[test]
fn fail_by_request() {
    let mut d = Desk::new();
    d.start([(1, 0)]);
    d.bring_up(1);
    d.transcript.clear();
    d.note("fail 1");
    d.order(ServerMessage::Fail {
        job_id: job_id(1),
        error: Failure::new("Operation is running for too long"),
    });
    let now = d.now;
    let killed = JobOutcome::Failed { error: Failure::new("killed") };
    d.end(1, JobResult { outcome: killed, ..completed(now) });
    d.expect(expect![[r#"
        fail 1
          tell 1: Fail { error: Some(Failure { code: 1, message: "Operation is running for too long", attributes: {}, inner_errors: [] }) }
        job 1 ends
          record 1 in slot 0, failed: Job failed by external request: Operation is running for too long
          clean 1 in slot 0
          send: finished 1 (failed: Job failed by external request: Operation is running for too long)
          wake at 105 s
    "#]]);
}

#[test]
fn shutting_down() {
    let mut d = Desk::new();
    d.start([(1, 0), (2, 0), (3, 0)]);
    d.bring_up(1);
    d.transcript.clear();
    d.note("stop");
    d.tell(NodeInput::StopJobs);
    assert_eq!(d.core.living_jobs(), 1);
    let now = d.now;
    let killed = JobOutcome::Aborted { reason: AbortReason::Other, error: Failure::new("killed") };
    d.end(1, JobResult { outcome: killed, ..completed(now) });
    d.start([(4, 0)]);
    assert_eq!(d.core.living_jobs(), 0);
    d.expect(expect![[r#"
        stop
          send: leaving
          tell 1: Abort { reason: NodeOffline, text: "Node is shutting down" }
          record 2 in slot 1, aborted node_offline: Node is shutting down
          send: started 1; finished 2 (aborted node_offline: Node is shutting down); finished 3 (aborted node_offline: Node is shutting down)
          wake at 105 s
        job 1 ends
          record 1 in slot 0, aborted node_offline: Node is shutting down
          clean 1 in slot 0
          send: finished 1 (aborted node_offline: Node is shutting down)
        start
          send: finished 4 (aborted node_offline: Node is shutting down)
    "#]]);
}
