//! More is in use than there is (jobs-and-nodes.md 3.5, 3.6).

use expect_test::expect;
use vocab::*;
use wire::ServerMessage;

use super::script::*;
use nodecore::*;

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
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(5000), job_uids: None });
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
