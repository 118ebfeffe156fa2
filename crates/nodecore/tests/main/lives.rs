//! Normal lives of jobs as readable transcripts (jobs-and-nodes.md 3.7).

use expect_test::expect;
use vocab::*;
use wire::{AbortJob, ServerMessage};

use super::script::*;
use nodecore::*;

#[test]
fn a_normal_life() {
    let mut d = Desk::new();
    d.start([(1, 2)]);
    for _ in 0..2 {
        d.tell(NodeInput::ArtifactFetched { job_id: job_id(1), result: Ok(downloaded(3)) });
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
          record 1 in slot 0
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
fn a_long_stderr_goes_first() {
    let mut d = Desk::new();
    d.start([(1, 0)]);
    d.bring_up(1);
    d.transcript.clear();
    let now = d.now;
    d.end(1, JobResult { stderr_size: 1 << 20, stderr: KeptStderr::OnDisk, ..completed(now) });
    d.note("the connection is lost meanwhile");
    d.tell(NodeInput::Disconnected);
    d.tell(NodeInput::Uploaded { job_id: job_id(1), result: Err(Failure::new("lost")) });
    d.note("and comes back");
    d.tell(NodeInput::Connected);
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(5), job_uids: None });
    d.note("uploaded");
    d.tell(NodeInput::Uploaded { job_id: job_id(1), result: Ok(()) });
    d.expect(expect![[r#"
        job 1 ends
          upload stderr of 1
          clean 1 in slot 0
        the connection is lost meanwhile
        and comes back
          send: hello, running ["1 finalizing_job_proxy"], finished []
          wake at 1000 s
          upload stderr of 1
          wake at 105 s
        uploaded
          send: finished 1 (completed)
    "#]]);
}

#[test]
fn what_a_failed_job_was_reading_goes_first_too() {
    let mut d = Desk::new();
    d.start([(1, 0), (2, 0)]);
    d.bring_up(1);
    d.bring_up(2);
    d.transcript.clear();
    let error = Failure::new("exit code 1");
    let result =
        JobResult { outcome: JobOutcome::Failed { error }, fail_context_size: 10, ..completed(d.now) };
    d.end(1, result.clone());
    d.tell(NodeInput::Uploaded { job_id: job_id(1), result: Ok(()) });
    d.note("one that was to be stopped when it failed has not failed");
    let abort = AbortJob { job_id: job_id(2), reason: AbortReason::Preemption, text: "away".to_owned() };
    d.order(ServerMessage::Abort(vec![abort]));
    d.end(2, result);
    d.expect(expect![[r#"
        job 1 ends
          upload fail context of 1
          clean 1 in slot 0
          send: started 2; finished 1 (failed: exit code 1)
          wake at 105 s
        one that was to be stopped when it failed has not failed
          tell 2: Abort { reason: Preemption, text: "away" }
        job 2 ends
          record 2 in slot 1, aborted preemption: away
          clean 2 in slot 1
          send: finished 2 (aborted preemption: away)
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
