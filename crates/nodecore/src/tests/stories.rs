//! Lives of jobs as readable transcripts (jobs-and-nodes.md 3.7-3.9, 9.2; scheduling.md 15.2).

use expect_test::expect;
use vocab::*;
use wire::ServerMessage;

use super::script::*;
use crate::*;

#[test]
fn a_normal_life() {
    let mut d = Desk::new();
    d.start([(1, 2)]);
    for _ in 0..2 {
        d.tell(NodeInput::ArtifactFetched { job_id: job_id(1), result: Ok(()) });
    }
    d.bring_up(1);
    let now = d.now;
    d.end(1, completed(now));
    d.clean(1);
    d.release(1);
    d.expect(expect![[r#"
        start
          record 1 in slot 0
          fetch file0 for 1
          fetch file1 for 1
          sandbox of 1 in slot 0
        job 1 comes up
          spawn 1 in slot 0, devices []
          wake at 100 s
        job 1 ends
          clean 1 in slot 0
          send: finished 1 (completed)
          wake at 105 s
        job 1 is cleaned up
        release 1
          forget 1 in slot 0
    "#]]);
    assert_eq!((d.core.ledger().usage(), d.core.slots_taken()), (Resources::ZERO, 0));
}

#[test]
fn small_jobs_are_batched() {
    let mut d = Desk::new();
    d.start([(1, 0), (2, 0)]);
    d.note("both sandboxes are ready");
    d.tell_all([1, 2].map(|n| NodeInput::SandboxReady { job_id: job_id(n), result: Ok(()) }));
    d.note("both run and end at once");
    let now = d.now;
    d.tell_all([1, 2].into_iter().flat_map(|n| {
        let job_id = job_id(n);
        [
            NodeInput::ProxyConnected { job_id },
            NodeInput::JobStarted { job_id, start_time: now },
            NodeInput::JobEnded { job_id, result: completed(now) },
        ]
    }));
    d.expect(expect![[r#"
        start
          record 1 in slot 0
          sandbox of 1 in slot 0
          record 2 in slot 1
          sandbox of 2 in slot 1
        both sandboxes are ready
          spawn 1 in slot 0, devices []
          spawn 2 in slot 1, devices []
        both run and end at once
          clean 1 in slot 0
          clean 2 in slot 1
          send: finished 1 (completed); finished 2 (completed)
    "#]]);
}

#[test]
fn waiting_for_resources() {
    let mut d = Desk::new();
    d.start([(1, 0), (2, 0), (3, 0), (4, 0)]);
    let now = d.now;
    d.end(1, completed(now)); // it has not even started: ignored
    d.bring_up(1);
    d.end(1, completed(now));
    d.pass(31);
    d.expect(expect![[r#"
        start
          record 1 in slot 0
          sandbox of 1 in slot 0
          record 2 in slot 1
          sandbox of 2 in slot 1
        job 1 ends
        job 1 comes up
          spawn 1 in slot 0, devices []
          wake at 100 s
        job 1 ends
          clean 1 in slot 0
          record 3 in slot 2
          sandbox of 3 in slot 2
          send: finished 1 (completed)
          wake at 105 s
        31 s later
          send: finished 4 (aborted waiting_timeout: Job waiting has timed out)
          send: heartbeat, usage {user_slots=2 cpu=2 memory=20}, jobs ["2 preparing_sandbox_directories", "3 preparing_sandbox_directories"], unreleased 2
          wake at 136 s
    "#]]);
}

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
    assert_eq!(d.core.alerts.len(), 1);
    d.release(1);
    assert_eq!((d.core.ledger().usage(), d.core.slots_taken()), (cores(1, 1, 10), 1));
    d.note("the kill fails");
    d.tell(NodeInput::ContainerKilled { job_id: job_id(1), result: Err(Failure::new("in the D state")) });
    assert_eq!(d.core.alerts.len(), 1);
    d.pass(30);
    d.note("and succeeds");
    d.tell(NodeInput::ContainerKilled { job_id: job_id(1), result: Ok(Remains::default()) });
    d.clean(1);
    assert!(d.core.ledger().usage().is_zero() && d.core.slots_taken() == 0 && d.core.alerts.is_empty());
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
        start: start(n, 0),
        accepted_time: Time::from_secs(50),
        acquired_time: Time::from_secs(51),
        slot: n,
        gpus: Vec::new(),
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

#[test]
fn a_long_stderr_goes_first() {
    let mut d = Desk::new();
    d.start([(1, 0)]);
    d.bring_up(1);
    d.transcript.clear();
    let now = d.now;
    d.end(1, JobResult { stderr_size: 1 << 20, stderr: KeptStderr::OnDisk, ..completed(now) });
    d.note("the connection is lost meanwhile");
    d.tell(NodeInput::Disconnected);
    d.tell(NodeInput::StderrUploaded { job_id: job_id(1), result: Err(Failure::new("lost")) });
    d.note("and comes back");
    d.tell(NodeInput::Connected);
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(5) });
    d.note("uploaded");
    d.tell(NodeInput::StderrUploaded { job_id: job_id(1), result: Ok(()) });
    d.expect(expect![[r#"
        job 1 ends
          upload stderr of 1
          clean 1 in slot 0
        the connection is lost meanwhile
        and comes back
          send: hello, running ["1 finalizing_job_proxy"], finished []
          upload stderr of 1
          wake at 105 s
        uploaded
          send: finished 1 (completed)
    "#]]);
}

#[test]
fn a_reconnection_repeats_what_is_not_released() {
    let mut d = Desk::new();
    d.start([(1, 0), (2, 0)]);
    d.bring_up(1);
    d.bring_up(2);
    let now = d.now;
    d.tell(NodeInput::Disconnected);
    d.end(1, completed(now));
    d.transcript.clear();
    d.note("back");
    d.tell(NodeInput::Connected);
    d.end(2, completed(now));
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(5) });
    d.note("the server repeats itself");
    d.order(ServerMessage::Start(vec![start(1, 0)]));
    d.clean(1);
    d.release(1);
    d.note("and once more, too late");
    d.order(ServerMessage::Start(vec![start(1, 0)]));
    d.pass(5);
    d.expect(expect![[r#"
        back
          send: hello, running ["2 running"], finished ["1 completed"]
        job 2 ends
          clean 2 in slot 1
          send: finished 2 (completed)
          wake at 105 s
        the server repeats itself
          send: finished 1 (completed)
        job 1 is cleaned up
        release 1
          forget 1 in slot 0
        and once more, too late
        5 s later
          send: heartbeat, usage {}, jobs [], unreleased 1
          wake at 110 s
    "#]]);
}

#[test]
fn adoption() {
    let mut d = Desk::new();
    d.core = NodeCore::new(Settings::new("n1:1", cores(2, 2, 20)));
    let record = |n: u32, slot: u32| JobRecord {
        start: start(n, 0),
        accepted_time: Time::from_secs(50),
        acquired_time: Time::from_secs(51),
        slot,
        gpus: Vec::new(),
        end: None,
    };
    let now = d.now;
    let fates = [
        (1, Fate::Alive { start_time: Some(Time::from_secs(60)), holds: None }),
        (2, Fate::Ended(completed(now))),
        (3, Fate::Lost("killed with the node".to_owned())),
        (4, Fate::Alive { start_time: None, holds: None }),
        (5, Fate::Alive { start_time: Some(Time::from_secs(70)), holds: None }),
    ];
    let jobs = fates
        .into_iter()
        .map(|(n, fate)| RecoveredJob { record: record(n, n * 2), fate, survivors: false })
        .collect();
    d.tell(NodeInput::Recovered(jobs));
    assert_eq!(d.core.ledger().acquired(), cores(3, 3, 30), "above the limits if need be");
    d.note("the server is there");
    d.tell(NodeInput::Connected);
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(500) });
    d.start([(6, 0)]);
    d.note("proxies call");
    d.tell(NodeInput::ProxyConnected { job_id: job_id(1) });
    d.tell(NodeInput::ProxyConnected { job_id: job_id(4) });
    d.end(1, completed(now));
    d.end(4, completed(now));
    d.pass(180);
    d.note("5 never called and is dead now");
    d.tell(NodeInput::ContainerKilled { job_id: job_id(5), result: Ok(Remains::default()) });
    d.expect(expect![[r#"
          clean 2 in slot 4
          record 3 in slot 6, aborted other: Job proxy lost during node restart: killed with the node
          clean 3 in slot 6
          wake at 280 s
        the server is there
          send: hello, running ["1 running", "4 spawning_job_proxy", "5 running"], finished ["2 completed", "3 aborted other: Job proxy lost during node restart: killed with the node"]
        start
          wake at 130 s
        proxies call
        job 1 ends
          clean 1 in slot 2
          send: finished 1 (completed)
        job 4 ends
          clean 4 in slot 8
          record 6 in slot 0
          sandbox of 6 in slot 0
          send: finished 4 (completed)
          wake at 280 s
        180 s later
          kill 5
          wake at 310 s
        5 never called and is dead now
          record 5 in slot 10, aborted other: Job proxy did not call back
          clean 5 in slot 10
          send: finished 5 (aborted other: Job proxy did not call back)
          wake at 600 s
    "#]]);
}

#[test]
fn memory_overdraft() {
    let mut d = Desk::new();
    d.start([(1, 0), (2, 0)]);
    d.bring_up(1);
    d.bring_up(2);
    d.transcript.clear();
    let grow =
        |n: u32, bytes: i64| NodeInput::JobUsage { job_id: job_id(n), cpu: None, total_peak: Some(bytes) };
    d.note("1 grows into what nobody uses");
    d.core.handle(d.now, NodeInput::ResourceLimits(cores(2, 2, 25)), &mut Vec::new());
    d.tell(grow(1, 12));
    d.note("2 stays within its reserve, then 1 grows beyond what there is");
    d.tell(grow(2, 10));
    d.tell(grow(1, 16));
    d.expect(expect![[r#"
        1 grows into what nobody uses
          send: started 1; started 2; usage 1 {user_slots=1 cpu=1 memory=12}
          wake at 105 s
        2 stays within its reserve, then 1 grows beyond what there is
          tell 1: Abort { reason: ResourceOverdraft, text: "Resource usage overdrafted" }
          send: usage 1 {user_slots=1 cpu=1 memory=16}
    "#]]);
}

#[test]
fn limits_that_shrink() {
    let mut d = Desk::new();
    d.start([(1, 0)]);
    d.bring_up(1);
    d.now += Span::from_secs(1);
    d.start([(2, 0)]);
    d.bring_up(2);
    d.transcript.clear();
    d.note("one core only");
    d.tell(NodeInput::ResourceLimits(cores(2, 1, 20)));
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(5000) });
    d.pass(599);
    d.pass(1);
    d.expect(expect![[r#"
        one core only
        599 s later
          send: started 2
          wake at 701 s
        1 s later
          tell 2: Abort { reason: NodeResourceOvercommit, text: "Resource usage overdraft adjustment" }
          wake at 731 s
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

#[test]
fn stderr_on_demand() {
    let mut d = Desk::new();
    d.start([(1, 0), (2, 0), (3, 0)]);
    d.transcript.clear();
    d.note("of a running, a waiting and an unknown job");
    for n in [1, 3, 7] {
        d.order(ServerMessage::ReadStderr {
            request_id: u64::from(n),
            job_id: job_id(n),
            offset: 4,
            limit: 10,
        });
    }
    d.expect(expect![[r#"
        of a running, a waiting and an unknown job
          read stderr of 1 for 1: 10 bytes from 4
          send: stderr 3 Ok([])
          send: stderr 7 Err(Failure { code: 203, message: "No such job 7-0-0-384 on node \"n1:1\"", attributes: {}, inner_errors: [] })
    "#]]);
}

#[test]
fn shells_are_of_running_jobs() {
    let mut d = Desk::new();
    d.start([(1, 0), (2, 0), (3, 0)]);
    d.bring_up(1);
    d.transcript.clear();
    d.note("of a running, a waiting and an unknown job");
    for n in [1, 3, 7] {
        let request = ShellRequest::Poll { shell_id: Guid([9, 0, 0, 0]) };
        d.order(ServerMessage::Shell { request_id: u64::from(n), job_id: job_id(n), request });
    }
    d.expect(expect![[r#"
        of a running, a waiting and an unknown job
          ask the shells of 1 for 1: Poll { shell_id: 9-0-0-0 }
          send: shell 3 Err(Failure { code: 1208, message: "Job 3-0-0-384 is not running: its phase is \"created\"", attributes: {}, inner_errors: [] })
          send: shell 7 Err(Failure { code: 203, message: "No such job 7-0-0-384 on node \"n1:1\"", attributes: {}, inner_errors: [] })
    "#]]);
}
