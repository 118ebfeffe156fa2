//! Agents that are stopped or dead while the jobs of their node go on (S19): proxies keep the leases of their jobs by themselves.

use super::node::{Around, Node};
use super::queue::Due;
use nodecore::{Fate, NodeCore, NodeInput, RecoveredJob};
use vocab::{AbortReason, JobId, JobOutcome, Span, Time};

/// The process that thinks for a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Agent {
    #[default]
    Lives,
    /// SIGSTOP: what it is told waits.
    Stopped,
    /// `kill -9`: proxies leave their results for the next one.
    Dead,
}

impl Node {
    pub fn agent_lives(&self) -> bool {
        self.agent == Agent::Lives
    }

    /// The agent is stopped.
    pub fn stop_agent(&mut self, around: &mut Around<'_>) {
        self.heard = self.core.confirmed();
        self.agent = Agent::Stopped;
        self.watch_leases(around);
    }

    /// The agent is killed; jobs go on.
    pub fn kill_agent(&mut self, around: &mut Around<'_>) {
        if self.agent == Agent::Lives {
            self.heard = self.core.confirmed();
        }
        self.agent = Agent::Dead;
        self.key = None;
        self.wake = None;
        for (job_id, result) in std::mem::take(&mut self.late_ends) {
            self.results.insert(job_id, result);
        }
        // Ends that a stopped agent has not read are in their files.
        for input in std::mem::take(&mut self.inbox) {
            if let NodeInput::JobEnded { job_id, result } = input {
                self.results.insert(job_id, result);
            }
        }
        self.settings.incarnation += 1;
        self.core = NodeCore::new(self.settings.clone());
        self.watch_leases(around);
    }

    /// A stopped agent goes on, a dead one starts again.
    pub fn revive_agent(&mut self, around: &mut Around<'_>) {
        match std::mem::take(&mut self.agent) {
            Agent::Lives => {}
            Agent::Stopped => {
                for input in std::mem::take(&mut self.inbox) {
                    self.tell(input, around);
                }
                self.tell(NodeInput::Wake, around);
            }
            Agent::Dead => {
                let mut found = Vec::new();
                let mut living = Vec::new();
                for (job_id, record) in std::mem::take(&mut self.records) {
                    let fate = match (self.results.remove(&job_id), self.jobs.get(&job_id)) {
                        (Some(result), _) => Fate::Ended(result),
                        (None, Some(job)) => {
                            living.push((job_id, job.start));
                            Fate::Alive { start_time: job.start, holds: None }
                        }
                        (None, None) => Fate::Lost("nothing of it is left".to_owned()),
                    };
                    found.push(RecoveredJob { record, fate, survivors: false });
                }
                for job in &found {
                    self.records.insert(job.record.start.identity.job_id, job.record.clone());
                }
                self.results.clear();
                // The file of the agent before.
                self.core.recall_confirmed(self.heard);
                self.tell(NodeInput::Recovered(found), around);
                for (job_id, start) in living {
                    self.tell(NodeInput::ProxyConnected { job_id }, around);
                    if let Some(start_time) = start {
                        self.tell(NodeInput::JobStarted { job_id, start_time }, around);
                    }
                }
            }
        }
    }

    /// Where leases begin, as the proxies know it.
    pub fn leases_from(&self) -> Span {
        match self.agent {
            Agent::Lives => self.core.confirmed(),
            Agent::Stopped | Agent::Dead => self.heard,
        }
    }

    /// No agent tells proxies of the server, so each looks at its own clock. An agent that lives does it for them.
    fn watch_leases(&mut self, around: &mut Around<'_>) {
        for (id, job) in &self.jobs {
            if let Some(lease) = job.lease {
                let at = Time((self.heard + lease).0).max(around.now);
                around.queue.push(at, Due::LeaseEnds(self.number, *id));
            }
        }
    }

    /// A proxy looks at the clock.
    pub fn lease_ends(&mut self, id: JobId, around: &mut Around<'_>) {
        let Some(lease) = self.jobs.get(&id).and_then(|job| job.lease) else { return };
        if self.is_over(lease, around.now) {
            self.end(id, lease_is_over(lease), around);
        }
    }

    /// Is this lease over?
    pub fn is_over(&self, lease: Span, now: Time) -> bool {
        now >= Time((self.leases_from() + lease).0)
    }
}

/// What a proxy says of such a job.
pub(super) fn lease_is_over(lease: Span) -> JobOutcome {
    let reason = AbortReason::NodeOffline;
    JobOutcome::Aborted { reason, error: vocab::lease::over(lease).with("abort_reason", reason) }
}
