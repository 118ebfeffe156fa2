//! Users of the host that jobs run as.

use vocab::*;
use wire::{JobUids, NodeMessage, ServerMessage};

use super::script::*;
use nodecore::*;

fn uids() -> JobUids {
    let range = UidRange::new(100_000, 165_535).expect("a range");
    JobUids { cluster_id: Guid([1, 2, 3, 4]), range, claim: range }
}

fn welcome(d: &mut Desk) -> Vec<NodeEffect> {
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(60), job_uids: Some(uids()) })
}

fn records(effects: &[NodeEffect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, NodeEffect::WriteRecord(_))).count()
}

/// Slots and alerts of the heartbeat among these effects.
fn told(effects: &[NodeEffect]) -> Option<(i64, Vec<String>)> {
    effects.iter().find_map(|effect| match effect {
        NodeEffect::Send(NodeMessage::Heartbeat(heartbeat)) => {
            let alerts = heartbeat.alerts.iter().map(|alert| alert.to_string()).collect();
            Some((heartbeat.resource_limits.user_slots, alerts))
        }
        _ => None,
    })
}

/// S9: another cluster on the host has the same uids.
#[test]
fn no_job_starts_while_uids_are_refused() {
    let mut d = Desk::new();
    assert!(welcome(&mut d).contains(&NodeEffect::ClaimUids(uids())));
    let start = |d: &mut Desk, n| d.order(ServerMessage::Start(vec![start(n, 0)]));
    d.tell(NodeInput::UidsClaimed(Err(Failure::new("another cluster has them"))));
    // The server is told at once.
    let (slots, alerts) = told(&d.tell(NodeInput::Wake)).expect("a heartbeat");
    assert_eq!(slots, 0);
    assert!(alerts.iter().any(|alert| alert.contains("another cluster has them")), "{alerts:?}");
    assert_eq!(records(&start(&mut d, 1)), 0, "a job that was on its way waits");
    // It is tried again.
    d.now += Span::from_secs(4);
    assert!(!d.tell(NodeInput::Wake).contains(&NodeEffect::ClaimUids(uids())));
    d.now += Span::from_secs(1);
    assert!(d.tell(NodeInput::Wake).contains(&NodeEffect::ClaimUids(uids())));
    let effects = d.tell(NodeInput::UidsClaimed(Ok(())));
    assert_eq!(records(&effects), 1, "the job that waited starts");
    let (slots, alerts) = told(&d.tell(NodeInput::Wake)).expect("a heartbeat");
    assert_eq!((slots, alerts), (2, Vec::new()));
}

/// S9: a claim takes a while when other nodes of the host claim, too; the node goes on meanwhile and starts nothing.
#[test]
fn jobs_wait_for_the_claim() {
    let mut d = Desk::new();
    welcome(&mut d);
    d.now += Span::from_secs(60);
    let (slots, alerts) = told(&d.tell(NodeInput::Wake)).expect("a heartbeat");
    assert_eq!((slots, alerts), (2, Vec::new()), "nothing is wrong");
    assert_eq!(records(&d.order(ServerMessage::Start(vec![start(1, 0)]))), 0);
    // The server names them once more: the last answer counts.
    assert!(welcome(&mut d).contains(&NodeEffect::ClaimUids(uids())));
    assert_eq!(records(&d.tell(NodeInput::UidsClaimed(Err(Failure::new("of before"))))), 0);
    assert_eq!(records(&d.tell(NodeInput::UidsClaimed(Ok(())))), 1);
}

#[test]
fn a_claim_that_succeeds_changes_nothing() {
    let mut d = Desk::new();
    welcome(&mut d);
    d.tell(NodeInput::UidsClaimed(Ok(())));
    assert_eq!(told(&d.tell(NodeInput::Wake)), None, "the next heartbeat is not due");
    assert_eq!(records(&d.order(ServerMessage::Start(vec![start(1, 0)]))), 1);
    assert!(!d.tell(NodeInput::Wake).iter().any(|effect| matches!(effect, NodeEffect::ClaimUids(_))));
}
