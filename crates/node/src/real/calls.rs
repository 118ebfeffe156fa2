//! What job proxies and their spawner say and are told, and how their deaths are noticed (jobs-and-nodes.md 9.2).

use std::time::Duration;

use jobproxy::protocol::{FromProxy, Holds, ToProxy, encode_frame};
use nodecore::{NodeInput, ProxyOrder};
use vocab::{JobId, JobOutcome};
use wire::NodeMessage;

use super::outlet::Outlet;
use super::proxies::{Call, CallId};
use super::spawning::SpawnerLink;
use super::{RealHands, RealNews, processes, recovery};
use crate::hands::Outcome;

/// How long the spawner may take to say how a proxy died, after its connection has ended.
const LAST_WORDS: Duration = Duration::from_millis(300);

impl RealHands {
    pub(super) fn watch(&self, job_id: JobId, pid: u32, start_time: u64) {
        self.beside(async move {
            processes::wait_for_death(pid, start_time).await;
            tokio::time::sleep(LAST_WORDS).await;
            RealNews::ProxyGone(job_id)
        });
    }

    pub(super) fn order(&mut self, job_id: JobId, order: ProxyOrder) {
        let message = match order {
            ProxyOrder::Interrupt { reason, timeout, text } => ToProxy::Interrupt { reason, timeout, text },
            ProxyOrder::Abort { reason, text } => ToProxy::Abort { reason, text },
            ProxyOrder::Fail { error } => ToProxy::Fail { error },
            ProxyOrder::Heard { from } => ToProxy::Heard { from },
        };
        if let Some((_, outlet)) = self.held.get_mut(&job_id).and_then(|held| held.call.as_mut()) {
            say(outlet, &message);
        }
    }

    pub(super) fn called(&mut self, call: Call, outcomes: &mut Vec<Outcome>) {
        let Call { id, job_id, pid, pid_start_time, start_time, holds, mut outlet } = call;
        let Some(held) = self.held.get_mut(&job_id) else {
            // Of a job that was given up: the core would say the same, but has no job to say it about.
            let text = "Job is unknown to the node".to_owned();
            return say(&mut outlet, &ToProxy::Abort { reason: vocab::AbortReason::Unknown, text });
        };
        held.proxy = Some((pid, pid_start_time));
        held.shells.ask_again(&mut outlet);
        held.call = Some((id, outlet));
        outcomes.push(Outcome::Input(NodeInput::ProxyConnected { job_id }));
        if let Some(start_time) = start_time {
            outcomes.push(Outcome::Input(NodeInput::JobStarted { job_id, start_time }));
            outcomes.push(Outcome::Input(usage(job_id, holds)));
        }
    }

    pub(super) fn said(&mut self, job_id: JobId, message: FromProxy, outcomes: &mut Vec<Outcome>) {
        match message {
            FromProxy::Hello { .. } => {}
            FromProxy::Started { start_time, .. } => {
                outcomes.push(Outcome::Input(NodeInput::JobStarted { job_id, start_time }));
            }
            FromProxy::Progress { progress } => {
                if let Some(held) = self.held.get_mut(&job_id) {
                    held.stderr_total = progress.stderr_size;
                }
                // Figures first: if the job has to go because of what it uses, its end is told with them.
                outcomes.push(Outcome::Input(NodeInput::JobProgress {
                    job_id,
                    statistics: progress.statistics,
                    stderr_size: progress.stderr_size,
                }));
                outcomes.push(Outcome::Input(usage(job_id, progress.holds)));
            }
            FromProxy::Stderr { request_id, data, .. } => {
                if let Some(held) = self.held.get_mut(&job_id) {
                    held.questions.retain(|(id, _, _)| *id != request_id);
                }
                outcomes.push(Outcome::Send(NodeMessage::Stderr { request_id, result: Ok(data.0) }));
            }
            FromProxy::Shell { request_id, answer } => {
                self.shell_answered(job_id, request_id, Ok(answer), outcomes);
            }
            FromProxy::ShellRefused { request_id, error } => {
                self.shell_answered(job_id, request_id, Err(error), outcomes);
            }
            FromProxy::Finished { result } => self.ended(job_id, *result, outcomes),
        }
    }

    pub(super) fn ended(
        &mut self,
        job_id: JobId,
        result: jobproxy::protocol::ProxyResult,
        outcomes: &mut Vec<Outcome>,
    ) {
        let Some(held) = self.held.get_mut(&job_id) else { return };
        held.ended = true;
        held.stderr_total = result.stderr_size;
        outcomes.extend(held.shells.refuse_all());
        let result = recovery::job_result(result);
        outcomes.push(Outcome::Input(NodeInput::JobEnded { job_id, result }));
    }

    pub(super) fn hung_up(&mut self, job_id: JobId, id: CallId) {
        let Some(held) = self.held.get_mut(&job_id) else { return };
        if held.call.as_ref().is_none_or(|(newest, _)| *newest != id) {
            return;
        }
        held.call = None;
        let questions = std::mem::take(&mut held.questions);
        if let (false, Some((pid, start_time))) = (held.ended, held.proxy) {
            // Dying, or it calls again in a second.
            self.watch(job_id, pid, start_time);
        }
        for (request_id, offset, limit) in questions {
            self.read_stderr(request_id, job_id, offset, limit);
        }
    }

    /// A proxy is dead. Its result, if there is one, is the last word; how it died is asked only then.
    pub(super) fn proxy_dead(&mut self, job_id: JobId, exit: Option<i32>, outcomes: &mut Vec<Outcome>) {
        let Some(held) = self.held.get(&job_id) else { return };
        if held.ended {
            return;
        }
        if let Some(result) = recovery::result_of(job_id, &self.layout.job(held.slot)) {
            return self.ended(job_id, result, outcomes);
        }
        let as_abort = self.config.treat_job_proxy_failure_as_abort;
        let outcome: JobOutcome = jobproxy::recovery::outcome_of_dead_proxy(exit, as_abort);
        if let Some(held) = self.held.get_mut(&job_id) {
            outcomes.extend(held.shells.refuse_all());
        }
        outcomes.push(Outcome::Input(NodeInput::ProxyLost { job_id, outcome }));
    }

    /// Proxies live on without their spawner; new ones need a new one.
    pub(super) fn spawner_gone(&mut self) {
        tracing::error!("the spawner of job proxies died; starting another one");
        if let Some(mut old) = self.spawner.take() {
            old.reap();
        }
        match SpawnerLink::start(&self.config.spawner_program, &self.spawner_config, self.news.clone()) {
            Ok(spawner) => self.spawner = Some(spawner),
            Err(e) => {
                tracing::error!("{e}");
                self.beside(async {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    RealNews::SpawnerGone
                });
            }
        }
        // Nobody will tell us any more how the proxies of the dead one end, or that they never began.
        let mut orphans = Vec::new();
        for (job_id, held) in &mut self.held {
            if std::mem::take(&mut held.spawned) && !held.ended {
                orphans.push((*job_id, held.proxy));
            }
        }
        for (job_id, proxy) in orphans {
            match proxy {
                Some((pid, start_time)) => self.watch(job_id, pid, start_time),
                None => self.beside(async move {
                    tokio::time::sleep(Duration::from_secs(3)).await;
                    RealNews::ProxyGone(job_id)
                }),
            }
        }
    }

    /// Is the proxy known to be dead, or was it never seen? Then its job is lost.
    pub(super) fn proxy_gone(&mut self, job_id: JobId, outcomes: &mut Vec<Outcome>) {
        let alive = self
            .held
            .get(&job_id)
            .and_then(|held| held.proxy)
            .is_some_and(|(pid, start_time)| (cage::ProcessId { pid, start_time }).is_alive());
        if !alive {
            self.proxy_dead(job_id, None, outcomes);
        }
    }
}

fn usage(job_id: JobId, holds: Holds) -> NodeInput {
    NodeInput::JobUsage { job_id, cpu: Some(holds.cpu), total_peak: Some(holds.total_peak) }
}

pub(super) fn say(outlet: &mut Outlet, message: &ToProxy) {
    let mut frame = Vec::new();
    encode_frame(message, &mut frame);
    outlet.send(frame);
}
