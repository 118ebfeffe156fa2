//! The agent or its connection comes back (jobs-and-nodes.md 9.2).

use expect_test::expect;
use vocab::*;
use wire::ServerMessage;

use super::script::*;
use nodecore::*;

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
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(5), job_uids: None });
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

/// Its long stderr is not brought to the server again, and neither the Hello nor a heartbeat names it: the
/// server has forgotten it, and would take it for a job that it never ordered.
#[test]
fn a_released_job_that_is_not_clean_yet_is_not_told_again() {
    let mut d = Desk::new();
    d.start([(1, 0)]);
    d.bring_up(1);
    let now = d.now;
    d.end(1, JobResult { stderr_size: 1 << 20, stderr: KeptStderr::OnDisk, ..completed(now) });
    d.tell(NodeInput::Uploaded { job_id: job_id(1), result: Ok(()) });
    d.release(1);
    d.tell(NodeInput::Disconnected);
    d.transcript.clear();
    d.tell(NodeInput::Connected);
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(5), job_uids: None });
    d.pass(5);
    assert!(d.transcript.contains("running [], finished []"), "{}", d.transcript);
    assert!(d.transcript.contains("jobs []"), "{}", d.transcript);
    assert!(!d.transcript.contains("upload"), "{}", d.transcript);
}

#[test]
fn adoption() {
    let mut d = Desk::new();
    d.core = NodeCore::new(Settings::new("n1:1", cores(2, 2, 20)));
    let record = |n: u32, slot: u32| JobRecord {
        start: start(n, 0).into(),
        accepted_time: Time::from_secs(50),
        acquired_time: Time::from_secs(51),
        slot,
        gpus: Vec::new(),
        ports: Vec::new(),
        fetched_time: None,
        preparation: PreparationMeasures::default(),
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
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(500), job_uids: None });
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
