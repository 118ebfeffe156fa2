//! Many exec nodes in one process that only pretend to run jobs: they speak the real protocol with
//! the real server, so that it can be measured with more nodes than one machine can be.
//!
//! ```text
//! cargo run --release -p millpond-node --example pretend -- 127.0.0.1:8000 2000 cpu=100 3600
//! ```
//! Server, number of nodes, cores of each (and as many slots, 4 GiB of memory for each), seconds that
//! a job runs. Each node is a connection of its own and reports at the period that the server wants.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::unbounded_channel;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use vocab::{AbortReason, Failure, JobId, JobOutcome, JobPhase, JobStatistics, Resources, Span, Time};
use wire::proto::pb::node_service_client::NodeServiceClient;
use wire::proto::{MAX_MESSAGE_SIZE, pb};
use wire::{
    FinishedJob, Heartbeat, Hello, JobEvent, JobReport, NodeMessage, PROTOCOL_VERSION, ServerMessage,
};

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

struct Settings {
    server: String,
    limits: Resources,
    job: Duration,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, server, nodes, cores, seconds] = arguments.as_slice() else {
        eprintln!("usage: pretend SERVER NODES cpu=CORES JOB_SECONDS");
        std::process::exit(2);
    };
    let cores: i64 = cores.trim_start_matches("cpu=").parse().expect("a number of cores");
    let limits = Resources {
        user_slots: cores,
        cpu: vocab::Cpu::from_f64(cores as f64),
        memory: cores * (4 << 30),
        ..Resources::ZERO
    };
    let job = Duration::from_secs_f64(seconds.parse().expect("seconds"));
    let settings: &'static Settings =
        Box::leak(Box::new(Settings { server: format!("http://{server}"), limits, job }));
    let count: usize = nodes.parse().expect("a number of nodes");
    let mut all = tokio::task::JoinSet::new();
    for i in 0..count {
        all.spawn(node(settings, i));
        // Spread over one heartbeat period, as real nodes are.
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    eprintln!("{count} nodes");
    while let Some(end) = all.join_next().await {
        match end {
            Ok(why) => eprintln!("a node has left: {why}"),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// A job that is not there.
struct Job {
    report: JobReport,
    ends: tokio::time::Instant,
}

async fn node(settings: &'static Settings, number: usize) -> String {
    let endpoint = tonic::transport::Endpoint::from_static(&settings.server).tcp_nodelay(true);
    let channel = match endpoint.connect().await {
        Ok(channel) => channel,
        Err(error) => return format!("{error:?}"),
    };
    let mut client = NodeServiceClient::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_SIZE)
        .max_encoding_message_size(MAX_MESSAGE_SIZE);
    let (say, said) = unbounded_channel::<NodeMessage>();
    let hello = Hello {
        protocol_version: PROTOCOL_VERSION,
        address: format!("pretend-{number:05}"),
        incarnation: now().as_micros(),
        resource_limits: settings.limits,
        tags: Vec::new(),
        job_environment: "simple".to_owned(),
        alerts: Vec::new(),
        disk_capacity: None,
        stamp: Span::ZERO,
        data_id: String::new(),
        knows_job_uids: true,
        authentication: None,
        running: Vec::new(),
        finished: Vec::new(),
    };
    let _ = say.send(NodeMessage::Hello(hello));
    let outgoing = UnboundedReceiverStream::new(said).map(|message| pb::NodeMessage::from(&message));
    let mut incoming = match client.connect(outgoing).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => return status.to_string(),
    };
    let mut beat = tokio::time::interval(Duration::from_secs(5));
    let mut jobs: BTreeMap<JobId, Job> = BTreeMap::new();
    let mut finished: BTreeMap<JobId, FinishedJob> = BTreeMap::new();
    loop {
        let next_end = jobs.values().map(|job| job.ends).min();
        let end = async {
            match next_end {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = incoming.message() => match message {
                Ok(Some(message)) => match ServerMessage::try_from(message) {
                    Ok(ServerMessage::Welcome { heartbeat_period, .. }) => {
                        beat = tokio::time::interval(Duration::from_micros(heartbeat_period.as_micros()));
                        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
                    }
                    Ok(ServerMessage::Refuse(why)) => return why.to_string(),
                    Ok(ServerMessage::Start(starts)) => {
                        let mut events = Vec::new();
                        for start in starts {
                            let job_id = start.identity.job_id;
                            let report = JobReport {
                                identity: start.identity,
                                granted: start.resources,
                                resource_usage: start.resources,
                                phase: JobPhase::Running,
                                accepted_time: now(),
                                start_time: Some(now()),
                                statistics: None,
                                stderr_size: 0,
                                slot_index: None,
                            };
                            jobs.insert(job_id, Job { report, ends: tokio::time::Instant::now() + settings.job });
                            events.push(JobEvent::Started { job_id, start_time: now(), slot_index: None });
                        }
                        let _ = say.send(NodeMessage::Jobs(events));
                    }
                    Ok(ServerMessage::Abort(aborts)) => {
                        let ends = aborts.into_iter().filter_map(|abort| {
                            let error = Failure::new(abort.text);
                            let outcome = JobOutcome::Aborted { reason: abort.reason, error };
                            over(&mut jobs, &mut finished, abort.job_id, outcome)
                        });
                        let events = ends.collect();
                        let _ = say.send(NodeMessage::Jobs(events));
                    }
                    Ok(ServerMessage::Interrupt { job_id, text, .. }) => {
                        let error = Failure::new(text.clone()).with("preemption_reason", text);
                        let outcome = JobOutcome::Aborted { reason: AbortReason::Preemption, error };
                        let events = over(&mut jobs, &mut finished, job_id, outcome).into_iter().collect();
                        let _ = say.send(NodeMessage::Jobs(events));
                    }
                    Ok(ServerMessage::Release(ids)) => ids.iter().for_each(|id| {
                        finished.remove(id);
                    }),
                    Ok(_) => {}
                    Err(malformed) => return malformed.to_string(),
                },
                Ok(None) => return "the server closed the stream".to_owned(),
                Err(status) => return status.to_string(),
            },
            _ = beat.tick() => {
                let heartbeat = Heartbeat {
                    resource_limits: settings.limits,
                    resource_usage: jobs.values().map(|job| job.report.resource_usage).fold(Resources::ZERO, |a, b| a + b),
                    alerts: Vec::new(),
                    jobs: jobs.values().map(|job| job.report.clone()).collect(),
                    unreleased: finished.keys().copied().collect(),
                    stamp: Span::ZERO,
                    leases_extended_until: Time::ZERO,
                };
                let _ = say.send(NodeMessage::Heartbeat(heartbeat));
            }
            () = end => {
                let over_by = tokio::time::Instant::now();
                let ids: Vec<JobId> = jobs.iter().filter(|(_, j)| j.ends <= over_by).map(|(id, _)| *id).collect();
                let done = JobOutcome::Completed { interrupted: None, restart_needed: false };
                let events = ids.into_iter().filter_map(|id| over(&mut jobs, &mut finished, id, done.clone())).collect();
                let _ = say.send(NodeMessage::Jobs(events));
            }
        }
    }
}

/// The end of a job, kept until the server releases it.
fn over(
    jobs: &mut BTreeMap<JobId, Job>,
    finished: &mut BTreeMap<JobId, FinishedJob>,
    job_id: JobId,
    outcome: JobOutcome,
) -> Option<JobEvent> {
    let job = jobs.remove(&job_id)?;
    let run = now().since(job.report.start_time.unwrap_or_default());
    let end = FinishedJob {
        identity: job.report.identity,
        granted: job.report.granted,
        outcome,
        start_time: job.report.start_time,
        finish_time: now(),
        statistics: JobStatistics { wait_for_resources: Span::ZERO, exec: run, ..JobStatistics::default() },
        stderr_size: 0,
        stderr: None,
        fail_context_size: 0,
        slot_index: job.report.slot_index,
    };
    finished.insert(job_id, end.clone());
    Some(JobEvent::Finished(Box::new(end)))
}
