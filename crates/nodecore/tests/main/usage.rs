//! What running jobs use: guarantees that move, memory that grows, and a node that has too little.

use super::script::{Desk, cores, job_id, start};
use nodecore::*;
use vocab::*;
use wire::{JobEvent, NodeMessage, ServerMessage};

fn usage(n: u32, cpu: i64, total_peak: i64) -> NodeInput {
    NodeInput::JobUsage { job_id: job_id(n), cpu: Some(Cpu(cpu)), total_peak: Some(total_peak) }
}

/// Running jobs 1..=count of one core and ten bytes each, started one second after another.
fn busy(limits: Resources, count: u32, change: impl FnOnce(&mut Settings)) -> Desk {
    let mut d = Desk::new();
    let mut settings = Settings::new("n1:1", limits);
    change(&mut settings);
    d.core = NodeCore::new(settings);
    d.tell(NodeInput::Connected);
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(100_000), job_uids: None });
    for n in 1..=count {
        d.now += Span::from_secs(1);
        d.start([(n, 0)]);
        d.bring_up(n);
    }
    d.pass(1);
    d.transcript.clear();
    d
}

/// What the server hears of a job's resources.
fn told(effects: &[NodeEffect]) -> Vec<(JobId, Resources)> {
    let events = effects.iter().filter_map(|effect| match effect {
        NodeEffect::Send(NodeMessage::Jobs(events)) => Some(events),
        _ => None,
    });
    events
        .flatten()
        .filter_map(|event| match event {
            JobEvent::ResourceUsage { job_id, resource_usage } => Some((*job_id, *resource_usage)),
            _ => None,
        })
        .collect()
}

/// Who is told to go, and why.
fn aborted(effects: &[NodeEffect]) -> Vec<(u32, AbortReason)> {
    let orders = effects.iter().filter_map(|effect| match effect {
        NodeEffect::ProxySend(id, ProxyOrder::Abort { reason, .. }) => Some((id.0.0[0], *reason)),
        _ => None,
    });
    orders.collect()
}

fn resources(cpu: i64, memory: i64) -> Resources {
    Resources { cpu: Cpu(cpu), ..cores(1, 1, memory) }
}

#[test]
fn a_lower_guarantee_is_told_at_once_and_lets_the_next_job_in() {
    let mut d = busy(cores(5, 2, 100), 2, |_| ());
    d.start([(3, 0)]);
    assert_eq!(d.core.slots_taken(), 2, "it waits");
    let effects = d.tell(usage(1, 40, 0));
    assert_eq!(told(&effects), [(job_id(1), resources(40, 10))]);
    assert_eq!(d.core.slots_taken(), 2, "1.4 of 2 cores are in use");
    let effects = d.tell(usage(2, 60, 0));
    assert_eq!(told(&effects), [(job_id(2), resources(60, 10))]);
    assert_eq!(d.core.slots_taken(), 3, "a whole core is free");
    assert_eq!(d.core.ledger().acquired().cpu, Cpu(200));
    // A repetition is no news.
    assert_eq!(told(&d.tell(usage(1, 40, 0))), []);
}

/// 1.5: raising waits for nobody; 3.6: what has been too much for too long has to go.
#[test]
fn guarantees_that_grow_back() {
    let mut d = busy(cores(5, 2, 100), 2, |s| s.cpu_overdraft_timeout = Span::from_secs(60));
    d.tell(usage(1, 50, 0));
    d.tell(usage(2, 50, 0));
    d.now += Span::from_secs(1);
    d.start([(3, 0)]);
    d.bring_up(3);
    let effects = d.tell_all([usage(1, 100, 0), usage(2, 100, 0)]);
    assert_eq!(told(&effects), [(job_id(1), resources(100, 10)), (job_id(2), resources(100, 10))]);
    assert_eq!(d.core.ledger().acquired().cpu, Cpu(300));
    // An excess that disappears is forgotten.
    d.now += Span::from_secs(59);
    d.tell(usage(1, 0, 0));
    d.tell(usage(1, 100, 0));
    d.now += Span::from_secs(59);
    assert_eq!(aborted(&d.tell(NodeInput::Wake)), []);
    d.now += Span::from_secs(1);
    assert_eq!(aborted(&d.tell(NodeInput::Wake)), [(3, AbortReason::NodeResourceOvercommit)]);
}

/// One that has nothing of what is short is not in the way.
#[test]
fn the_youngest_is_spared_if_its_end_would_help_nobody() {
    let mut d = busy(cores(5, 2, 100), 2, |s| s.cpu_overdraft_timeout = Span::from_secs(60));
    d.now += Span::from_secs(1);
    let mut idle = start(3, 0);
    idle.resources.cpu = Cpu(0);
    d.order(ServerMessage::Start(vec![idle]));
    d.bring_up(3);
    d.tell(usage(1, 150, 0));
    d.now += Span::from_secs(60);
    assert_eq!(aborted(&d.tell(NodeInput::Wake)), [(2, AbortReason::NodeResourceOvercommit)]);
}

#[test]
fn memory_never_shrinks_and_the_reserve_ahead_overdraws_nobody() {
    let mut d = busy(cores(5, 5, 40), 2, |s| s.ahead_memory_reserve = 7);
    // Within the request with the reserve ahead of it.
    assert_eq!(told(&d.tell(usage(1, 100, 3))), []);
    assert_eq!(told(&d.tell(usage(1, 100, 9))), [(job_id(1), resources(100, 16))]);
    assert_eq!(told(&d.tell(usage(1, 100, 5))), [], "the peak counts");
    assert_eq!(told(&d.tell(usage(2, 100, 10))), [(job_id(2), resources(100, 17))]);
    // 16 + 24 fit; one more does not. Job 1 is above its request only with the reserve ahead.
    assert_eq!(told(&d.tell(usage(2, 100, 17))), [(job_id(2), resources(100, 24))]);
    let effects = d.tell(usage(1, 100, 10));
    assert_eq!(aborted(&effects), [(2, AbortReason::ResourceOverdraft)], "not the one that asked last");
}

/// What jobs may reserve together is one thing, what there is another.
#[test]
fn more_memory_than_may_be_reserved() {
    let mut d = busy(cores(9, 9, 30), 2, |s| {
        s.physical_memory = Some(45);
        s.memory_overdraft_timeout = Span::from_secs(60);
    });
    // 35 are more than the limit, and bearable for as long as it takes.
    assert_eq!(aborted(&d.tell_all([usage(1, 100, 17), usage(2, 100, 18)])), []);
    d.now += Span::from_secs(600);
    assert_eq!(aborted(&d.tell(NodeInput::Wake)), []);
    d.start([(3, 0)]);
    assert_eq!(d.core.slots_taken(), 2, "a third one would be within that, and above what may be reserved");
    assert_eq!(aborted(&d.tell(usage(1, 100, 28))), [(1, AbortReason::ResourceOverdraft)]);
}

/// 3.5: a job inside its reserve is never the victim while another overdraws.
#[test]
fn who_has_to_go_when_memory_runs_out() {
    // The largest excess.
    let mut d = busy(cores(9, 9, 60), 4, |_| ());
    d.tell_all([usage(2, 100, 14), usage(3, 100, 18)]);
    d.tell(NodeInput::ResourceLimits(cores(9, 9, 51)));
    assert_eq!(aborted(&d.tell(usage(2, 100, 15))), [(2, AbortReason::ResourceOverdraft)], "it grew itself");
    // Its memory is on its way back: nobody else has to go for it.
    assert_eq!(aborted(&d.tell(usage(3, 100, 19))), []);

    // Among equals the latest start.
    let mut d = busy(cores(9, 9, 60), 4, |s| s.ahead_memory_reserve = 4);
    d.tell_all([usage(2, 100, 11), usage(3, 100, 11)]);
    d.tell(NodeInput::ResourceLimits(cores(9, 9, 50)));
    let effects = d.tell(usage(1, 100, 10));
    assert_eq!(aborted(&effects), [(3, AbortReason::ResourceOverdraft)]);

    // Nobody overdraws: there is less memory than was given away.
    let mut d = busy(cores(9, 9, 60), 4, |s| s.ahead_memory_reserve = 4);
    d.tell(NodeInput::ResourceLimits(cores(9, 9, 42)));
    assert_eq!(aborted(&d.tell(usage(2, 100, 9))), [(2, AbortReason::NodeResourceOvercommit)]);
}

#[test]
fn strict_nodes_abort_every_overdraft() {
    let mut d = busy(cores(9, 9, 1000), 2, |s| s.always_abort_on_memory_reserve_overdraft = true);
    assert_eq!(aborted(&d.tell(usage(1, 100, 10))), []);
    assert_eq!(aborted(&d.tell(usage(1, 100, 11))), [(1, AbortReason::ResourceOverdraft)]);
}

/// The host has no memory though the ledger has.
#[test]
fn pressure_takes_the_worst_overdraft_one_at_a_time() {
    let mut d = busy(cores(9, 9, 1000), 3, |_| ());
    assert_eq!(aborted(&d.tell(NodeInput::MemoryPressure)), [], "nobody overdraws");
    d.tell_all([usage(1, 100, 30), usage(2, 100, 20)]);
    assert_eq!(aborted(&d.tell(NodeInput::MemoryPressure)), [(1, AbortReason::ResourceOverdraft)]);
    assert_eq!(aborted(&d.tell(NodeInput::MemoryPressure)), [], "it is dying");
    let now = d.now;
    d.end(1, super::script::completed(now));
    // What it had comes back, and the figure is a mean of ten seconds: one spike takes one job.
    for _ in 0..9 {
        assert_eq!(aborted(&d.tell(NodeInput::MemoryPressure)), [], "the last kill has not shown its effect");
        d.pass(1);
    }
    d.pass(1);
    assert_eq!(aborted(&d.tell(NodeInput::MemoryPressure)), [(2, AbortReason::ResourceOverdraft)]);
}

/// A restarted agent takes what the proxies hold, not what the jobs were started with, before anything
/// else: the server hears of no other number.
#[test]
fn adopted_jobs_hold_what_their_proxies_say() {
    let mut d = Desk::new();
    d.core = NodeCore::new(Settings::new("n1:1", cores(5, 2, 100)));
    let record = JobRecord {
        start: start(1, 0).into(),
        accepted_time: Time::from_secs(50),
        acquired_time: Time::from_secs(51),
        slot: 0,
        gpus: Vec::new(),
        ports: Vec::new(),
        fetched_time: None,
        preparation: PreparationMeasures::default(),
        end: None,
    };
    let holds = Some(Holds { cpu: Cpu(40), total_peak: 15 });
    let fate = Fate::Alive { start_time: Some(Time::from_secs(60)), holds };
    d.tell(NodeInput::Recovered(vec![RecoveredJob { record, fate, survivors: false }]));
    assert_eq!(d.core.ledger().acquired(), resources(40, 15));
    let effects = d.tell(NodeInput::Connected);
    let hello = effects.iter().find_map(|effect| match effect {
        NodeEffect::Send(NodeMessage::Hello(hello)) => Some(hello),
        _ => None,
    });
    let running = &hello.expect("a greeting").running;
    assert_eq!(running[0].resource_usage, resources(40, 15));
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(500), job_uids: None });
    // The proxy says the same when it calls: no news.
    assert_eq!(told(&d.tell_all([NodeInput::ProxyConnected { job_id: job_id(1) }, usage(1, 40, 15)])), []);
}

/// The ledger has room for all; the host, where others live too, has not (3.3).
#[test]
fn a_host_without_free_memory_starts_nothing() {
    let records = |effects: &[NodeEffect]| -> Vec<u32> {
        let records = effects.iter().filter_map(|effect| match effect {
            NodeEffect::WriteRecord(record) => Some(record.start.identity.job_id.0.0[0]),
            _ => None,
        });
        records.collect()
    };
    let mut d = busy(cores(9, 9, 1000), 0, |s| s.free_memory_watermark = Some(5));
    let order = |d: &mut Desk, jobs: &[u32]| {
        let starts = jobs.iter().map(|n| start(*n, 0)).collect();
        records(&d.order(ServerMessage::Start(starts)))
    };
    assert_eq!(order(&mut d, &[1]), [0; 0], "nobody has looked at the host yet");
    assert_eq!(records(&d.tell(NodeInput::FreeMemory(14))), [0; 0], "ten and five are fifteen");
    assert_eq!(records(&d.tell(NodeInput::FreeMemory(15))), [1]);
    assert_eq!(order(&mut d, &[2]), [0; 0], "the first one has taken nothing yet, and will");
    assert_eq!(order(&mut d, &[3]), [0; 0]);
    assert_eq!(records(&d.tell(NodeInput::FreeMemory(24))), [2], "there is enough for one of the two");
    assert_eq!(records(&d.tell(NodeInput::FreeMemory(100))), [3]);
    // Without the option the host is not asked.
    let mut d = busy(cores(9, 9, 1000), 0, |_| ());
    d.tell(NodeInput::FreeMemory(0));
    assert_eq!(order(&mut d, &[1]), [1]);
}

/// S4, S12: the jobs of an operation that could start nowhere made every node switch itself off for ten minutes. Something
/// is wrong with the node itself if jobs of several operations do not start that start elsewhere (3.9).
#[test]
fn s12_a_node_mistrusts_itself_only_for_several_operations_that_run_elsewhere() {
    let mut d = busy(cores(9, 9, 1000), 1, |s| s.max_consecutive_job_aborts = 4);
    let order = |n: u32, operation: u32, elsewhere: bool| {
        let mut start = start(n, 0);
        start.identity.operation_id = OperationId(Guid([operation, 0, 0, 0x3e8]));
        start.has_started_elsewhere = elsewhere;
        ServerMessage::Start(vec![start])
    };
    let prevent = |d: &mut Desk, n: u32, error: Failure| {
        d.tell(NodeInput::SandboxReady { job_id: job_id(n), result: Err(error) })
    };
    let starts = |effects: &[NodeEffect]| effects.iter().any(|e| matches!(e, NodeEffect::WriteRecord(_)));
    let mut next = 2;
    // Aborts a job of each of these operations, in turn.
    let mut abort_in_turn = |d: &mut Desk, operations: &[u32], elsewhere: bool, times: u32| {
        for n in 0..times {
            let operation = operations[n as usize % operations.len()];
            assert!(starts(&d.order(order(next, operation, elsewhere))), "abort {n} of {operations:?}");
            prevent(d, next, Failure::new("no such disk"));
            next += 1;
        }
        next += 1;
        next - 1
    };
    abort_in_turn(&mut d, &[1], false, 501);
    abort_in_turn(&mut d, &[1, 2, 3, 4], false, 501);
    abort_in_turn(&mut d, &[1], true, 501);
    let n = abort_in_turn(&mut d, &[1, 2], true, 501);
    // The end of a job that has run shows that all is well; a failure in its preparation does not.
    d.order(order(n, 9, true));
    prevent(&mut d, n, Failure::new("a long name").with("user_fault", true));
    let n = abort_in_turn(&mut d, &[], true, 0);
    d.order(order(n, 9, true));
    d.bring_up(n);
    let now = d.now;
    d.end(n, super::script::completed(now));
    let n = abort_in_turn(&mut d, &[1, 2, 3], true, 5);
    assert!(!starts(&d.order(order(n, 4, true))), "five of three operations, and four are too many");
}

/// Something is wrong with the node: it fails to start whatever it is given (3.9).
#[test]
fn a_node_that_only_aborts_takes_a_rest() {
    let mut d = busy(cores(9, 9, 1000), 1, |s| s.max_consecutive_job_aborts = 2);
    // Each of another operation, whose jobs start elsewhere.
    let order = |n: u32| {
        let mut start = start(n, 0);
        start.identity.operation_id = OperationId(Guid([n, 0, 0, 0x3e8]));
        start.has_started_elsewhere = true;
        ServerMessage::Start(vec![start])
    };
    let abort_here = |d: &mut Desk, n: u32| {
        d.order(order(n));
        let error = Failure::new("no such disk");
        d.tell(NodeInput::SandboxReady { job_id: job_id(n), result: Err(error) })
    };
    let heartbeat = |d: &mut Desk, seconds: u64| {
        d.now += Span::from_secs(seconds);
        let effects = d.tell(NodeInput::Wake);
        effects.into_iter().find_map(|effect| match effect {
            NodeEffect::Send(NodeMessage::Heartbeat(h)) => Some((h.resource_limits.user_slots, h.alerts)),
            _ => None,
        })
    };
    let starts = |effects: &[NodeEffect]| effects.iter().any(|e| matches!(e, NodeEffect::WriteRecord(_)));
    d.order(ServerMessage::Welcome { heartbeat_period: Span::from_secs(5), job_uids: None });
    abort_here(&mut d, 2);
    abort_here(&mut d, 3);
    // An order is no sign of trouble, and what ends by itself is a sign that all is well.
    d.start([(4, 0)]);
    d.abort(4, AbortReason::UserRequest, "enough");
    d.start([(5, 0)]);
    d.bring_up(5);
    let now = d.now;
    d.end(5, super::script::completed(now));
    abort_here(&mut d, 6);
    abort_here(&mut d, 7);
    assert!(starts(&d.order(order(8))), "two are not too many");
    assert_eq!(heartbeat(&mut d, 5).map(|(slots, alerts)| (slots, alerts.len())), Some((9, 0)));
    let error = Failure::new("no such disk");
    d.tell(NodeInput::SandboxReady { job_id: job_id(8), result: Err(error) });

    assert!(!starts(&d.order(order(9))), "now it rests");
    let (slots, alerts) = heartbeat(&mut d, 5).expect("a heartbeat");
    assert_eq!(slots, 1, "that of the job which runs");
    assert!(alerts[0].message.contains("More than 2 jobs in a row"), "{alerts:?}");
    let (slots, alerts) = heartbeat(&mut d, 11 * 60).expect("a heartbeat");
    assert_eq!((slots, alerts), (9, Vec::new()));
    assert!(starts(&d.order(order(10))));
    assert!(abort_here(&mut d, 11).iter().any(|e| matches!(e, NodeEffect::Send(_))));
    assert!(starts(&d.order(order(12))), "it counts from the beginning");
}
