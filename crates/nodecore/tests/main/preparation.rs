//! What a job needs before its process: ports, files, time (jobs-and-nodes.md 3.7, 3.10, 8.2).

use vocab::*;
use wire::{JobEvent, NodeMessage, ServerMessage};

use super::script::*;
use nodecore::*;

fn order(desk: &mut Desk, n: u32, change: impl FnOnce(&mut JobDescription)) -> Vec<NodeEffect> {
    let mut job = start(n, 0);
    change(&mut job.description);
    desk.order(ServerMessage::Start(vec![job]))
}

fn probed(effects: &[NodeEffect]) -> Option<&[u16]> {
    effects.iter().find_map(|e| match e {
        NodeEffect::ProbePorts { ports, .. } => Some(ports.as_slice()),
        _ => None,
    })
}

/// Four ports, from 100 on.
fn desk() -> Desk {
    Desk::with(|settings| {
        // The address decides which port is the first to be given.
        settings.address = "n3:1".to_owned();
        settings.start_port = 100;
        settings.port_count = 4;
    })
}

#[test]
fn ports_that_others_use_are_replaced() {
    let mut d = desk();
    let effects = order(&mut d, 1, |job| job.port_count = 2);
    assert_eq!(probed(&effects), Some([100, 101].as_slice()));
    let effects = d.tell(NodeInput::PortsProbed { job_id: job_id(1), busy: vec![100] });
    assert_eq!(probed(&effects), Some([102].as_slice()), "only the new one is tried");
    let effects = d.tell(NodeInput::PortsProbed { job_id: job_id(1), busy: Vec::new() });
    let record = effects.iter().find_map(|e| match e {
        NodeEffect::WriteRecord(record) => Some(record.ports.clone()),
        _ => None,
    });
    assert_eq!(record, Some(vec![101, 102]), "a restarted agent finds them");
    let effects = d.tell(NodeInput::SandboxReady { job_id: job_id(1), result: Ok(()) });
    let spawned = effects.iter().find_map(|e| match e {
        NodeEffect::SpawnProxy { ports, .. } => Some(ports.clone()),
        _ => None,
    });
    assert_eq!(spawned, Some(vec![101, 102]));
    assert_eq!(d.core.ports().free(), 2);
    d.tell(NodeInput::SpawnFailed { job_id: job_id(1), error: Failure::new("no") });
    assert_eq!(d.core.ports().free(), 4, "they are given back with what else the job held");
}

#[test]
fn without_enough_ports_a_job_waits() {
    let mut d = desk();
    order(&mut d, 1, |job| job.port_count = 3);
    assert_eq!(probed(&order(&mut d, 2, |job| job.port_count = 2)), None);
    d.transcript.clear();
    d.abort(1, AbortReason::UserRequest, "enough");
    assert!(d.transcript.contains("probe [103, 100] for 2"), "{}", d.transcript);
}

#[test]
fn a_host_that_uses_all_ports_itself_aborts_the_job() {
    let mut d = desk();
    let mut effects = order(&mut d, 1, |job| job.port_count = 1);
    for _ in 0..5 {
        let tried = probed(&effects).map(<[u16]>::to_vec).unwrap_or_default();
        assert_eq!(tried.len(), 1, "{}", d.transcript);
        effects = d.tell(NodeInput::PortsProbed { job_id: job_id(1), busy: tried });
    }
    assert!(d.transcript.contains("no free ports"), "{}", d.transcript);
    assert_eq!(d.core.ports().free(), 4);
}

#[test]
fn ports_of_adopted_jobs_are_theirs() {
    let mut d = desk();
    let record = JobRecord {
        start: start(1, 0).into(),
        accepted_time: Time::from_secs(50),
        acquired_time: Time::from_secs(51),
        slot: 0,
        gpus: Vec::new(),
        ports: vec![101],
        fetched_time: None,
        preparation: PreparationMeasures::default(),
        end: None,
    };
    let fate = Fate::Alive { start_time: Some(Time::from_secs(60)), holds: None };
    let found = vec![RecoveredJob { record, fate, survivors: false }];
    d.core.handle(d.now, NodeInput::Recovered(found), &mut Vec::new());
    assert_eq!(d.core.ports().clone().take(3), Some(vec![100, 102, 103]));
}

#[test]
fn a_task_shortens_the_time_of_preparation() {
    for (own, limit) in [(None, 45 * 60), (Some(60), 60), (Some(100 * 60), 45 * 60)] {
        let mut d = Desk::new();
        order(&mut d, 1, |job| job.prepare_time_limit = own.map(Span::from_secs));
        d.pass(limit - 1);
        assert!(!d.transcript.contains("timed out"), "{own:?}: {}", d.transcript);
        d.pass(1);
        assert!(d.transcript.contains("preparation has timed out"), "{own:?}: {}", d.transcript);
    }
}

#[test]
fn where_files_came_from_is_in_the_statistics() {
    let mut d = Desk::new();
    let mut job = start(1, 3);
    job.description.file_system.layers = vec![job.description.files[0].clone()];
    d.order(ServerMessage::Start(vec![job]));
    let sources = [(Source::Cache, 1), (Source::Server, 20), (Source::Server, 300), (Source::Bypass, 4000)];
    d.pass(2);
    for (source, size) in sources {
        d.tell(NodeInput::ArtifactFetched { job_id: job_id(1), result: Ok(Supply { source, size }) });
    }
    d.pass(3);
    let effects = d.tell(NodeInput::SandboxReady { job_id: job_id(1), result: Ok(()) });
    let record = effects.iter().find_map(|e| match e {
        NodeEffect::WriteRecord(record) => Some(record.as_ref().clone()),
        _ => None,
    });
    let statistics = |d: &mut Desk| {
        d.tell(NodeInput::ProxyConnected { job_id: job_id(1) });
        let now = d.now;
        let effects = d.tell(NodeInput::JobEnded { job_id: job_id(1), result: completed(now) });
        let events = effects.iter().filter_map(|e| match e {
            NodeEffect::Send(NodeMessage::Jobs(events)) => Some(events),
            _ => None,
        });
        let finished = events.flatten().find_map(|e| match e {
            JobEvent::Finished(finished) => Some(finished.statistics.clone()),
            _ => None,
        });
        finished.expect("the end of the job is reported")
    };
    let mut next = Desk::new();
    let fate = Fate::Alive { start_time: Some(Time::from_secs(60)), holds: None };
    let record = record.expect("it is written down with what was measured");
    next.tell(NodeInput::Recovered(vec![RecoveredJob { record, fate, survivors: false }]));
    let (statistics, adopted) = (statistics(&mut d), statistics(&mut next));
    assert_eq!(adopted.preparation, statistics.preparation, "another life of the agent says the same");
    assert_eq!(adopted.artifacts_download, statistics.artifacts_download);
    assert_eq!(statistics.artifacts_download, Span::from_secs(2));
    let preparation = PreparationMeasures {
        prepare_root_fs: Span::from_secs(3),
        cache_hit_artifacts_size: 1,
        cache_miss_artifacts_size: 320,
        cache_bypassed_artifacts_size: 4000,
    };
    assert_eq!(statistics.preparation, Some(Box::new(preparation)));
}

#[test]
fn disk_space_is_promised_once() {
    let mut d = Desk::with(|settings| settings.disk_capacity = Some(100));
    let ask = |bytes: i64| move |job: &mut JobDescription| job.file_system.disk_space = Some(bytes);
    let prepares =
        |effects: &[NodeEffect]| effects.iter().any(|e| matches!(e, NodeEffect::PrepareSandbox { .. }));
    assert!(prepares(&order(&mut d, 1, ask(60))));
    assert!(!prepares(&order(&mut d, 2, ask(41))), "it waits for the first");
    order(&mut d, 3, ask(101));
    assert!(
        d.transcript.contains("finished 3 (aborted other: The job asks for more disk"),
        "{}",
        d.transcript
    );
    d.transcript.clear();
    d.tell(NodeInput::SandboxReady { job_id: job_id(1), result: Err(Failure::new("no")) });
    assert!(d.transcript.contains("sandbox of 2"), "{}", d.transcript);
    assert_eq!(d.core.promised_disk(), 41);
}

/// S4: it waited until its time was up, and then again.
#[test]
fn s4_more_ports_than_the_node_has_are_not_waited_for() {
    let mut d = Desk::with(|settings| settings.port_count = 3);
    order(&mut d, 1, |job| job.port_count = 4);
    assert!(
        d.transcript.contains("finished 1 (aborted other: The job asks for more ports"),
        "{}",
        d.transcript
    );
    d.transcript.clear();
    order(&mut d, 2, |job| job.port_count = 3);
    assert!(!d.transcript.contains("finished"), "{}", d.transcript);
}

/// S20: what the server has lost is told apart from what the node cannot fetch.
#[test]
fn s20_lost_content_has_a_reason_of_its_own() {
    for (lost, reason) in [(true, "failed_chunks"), (false, "other")] {
        let mut d = Desk::new();
        d.start([(1, 1)]);
        let error = Failure::new("no such blob");
        let error = if lost { error.with("missing_blob", true) } else { error };
        d.tell(NodeInput::ArtifactFetched { job_id: job_id(1), result: Err(error) });
        assert!(d.transcript.contains(&format!("finished 1 (aborted {reason}: Failed")), "{}", d.transcript);
    }
}

#[test]
fn a_cleanup_that_takes_too_long_is_an_alert_until_it_has_ended() {
    let mut d = Desk::new();
    order(&mut d, 1, |_| {});
    d.bring_up(1);
    let now = d.now;
    d.end(1, completed(now));
    let alerts = |d: &Desk| d.core.alerts().iter().map(|a| a.message.clone()).collect::<Vec<_>>();
    d.pass(15 * 60 - 1);
    assert!(alerts(&d).is_empty());
    d.pass(1);
    assert_eq!(alerts(&d), ["Cleanup of slot 0 takes too long"]);
    d.release(1);
    assert!(d.core.knows(job_id(1)) && d.core.slots_taken() == 1, "the slot is not used before it is clean");
    d.clean(1);
    assert!(alerts(&d).is_empty() && d.core.slots_taken() == 0);
}
