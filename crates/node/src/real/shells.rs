//! Requests for shells beside jobs, on their way between the server and the proxies.

use jobproxy::protocol::ToProxy;
use vocab::{Failure, JobId, ShellAnswer, ShellRequest, code};
use wire::NodeMessage;

use super::outlet::Outlet;
use super::{RealHands, say};
use crate::hands::Outcome;

/// What is asked of one proxy and not answered. When the connection breaks it is asked again on the next
/// one, so a restart of this agent or a slow moment costs nobody his shell.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    waiting: Vec<(u64, ShellRequest)>,
}

/// Questions for one job at a time; a server asks a few for each of its shells.
const WAITING_MAX: usize = 1000;

impl Asked {
    /// The proxy has called: it may not have heard what it has not answered. A new shell is not asked for
    /// twice, there would be two.
    pub fn ask_again(&mut self, outlet: &mut Outlet) {
        self.waiting.retain(|(_, request)| request.is_repeatable());
        for (request_id, request) in &self.waiting {
            say(outlet, &ToProxy::Shell { request_id: *request_id, request: request.clone() });
        }
    }

    /// The job is over.
    pub fn refuse_all(&mut self) -> Vec<Outcome> {
        let over =
            || Failure::coded(code::SHELL_MANAGER_SHUT_DOWN, "The job is over, and its shells with it");
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().map(|(request_id, _)| answer(request_id, Err(over()))).collect()
    }
}

fn answer(request_id: u64, result: Result<ShellAnswer, Failure>) -> Outcome {
    Outcome::Send(NodeMessage::Shell { request_id, result })
}

impl RealHands {
    /// To the proxy, at once or when it calls.
    pub(super) fn ask_shell(
        &mut self,
        request_id: u64,
        job_id: JobId,
        request: ShellRequest,
        outcomes: &mut Vec<Outcome>,
    ) {
        let refuse = |text: String| answer(request_id, Err(Failure::coded(code::JOB_NOT_RUNNING, text)));
        let Some(held) = self.held.get_mut(&job_id).filter(|held| !held.ended) else {
            return outcomes.push(refuse(format!("Job {job_id} does not run on this node")));
        };
        let Asked { waiting } = &mut held.shells;
        match held.call.as_mut() {
            _ if waiting.len() >= WAITING_MAX => {
                return outcomes.push(refuse(format!("Job {job_id} is asked for too many shells at a time")));
            }
            Some((_, outlet)) => {
                say(outlet, &ToProxy::Shell { request_id, request: request.clone() });
            }
            None if !request.is_repeatable() => {
                let text = format!("The proxy of job {job_id} is away at the moment: try again");
                return outcomes.push(refuse(text));
            }
            None => {}
        }
        waiting.push((request_id, request));
    }

    pub(super) fn shell_answered(
        &mut self,
        job_id: JobId,
        request_id: u64,
        result: Result<ShellAnswer, Failure>,
        outcomes: &mut Vec<Outcome>,
    ) {
        if let Some(held) = self.held.get_mut(&job_id) {
            held.shells.waiting.retain(|(id, _)| *id != request_id);
        }
        outcomes.push(answer(request_id, result));
    }
}
