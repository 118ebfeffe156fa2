//! What each running job used and was promised, and what was taken of each node, over the last hours: in
//! memory, in bounded space ([`history`]), fed by what nodes report, gone with the process.
//!
//! Read by [`Command::GetHistory`](crate::Command).

use crate::Kernel;
use crate::history_chart::{Range, read};
use controller::Spent;
use history::{Lives, Settings};
use vocab::{Failure, JobId, Resources, Time, code};
use yson::Value;

/// Quanta are a thousandth of a core and a page of memory.
const JOB_COLUMNS: [(&str, f64); 6] = [
    ("cpu_usage", 1e-3),
    ("cpu_smoothed", 1e-3),
    ("cpu_guarantee", 1e-3),
    ("memory_usage", 4096.0),
    ("memory_peak", 4096.0),
    ("memory_reserve", 4096.0),
];

const NODE_COLUMNS: [(&str, f64); 7] = [
    ("cpu_usage", 1e-3),
    ("cpu_limit", 1e-3),
    ("memory_usage", 4096.0),
    ("memory_limit", 4096.0),
    ("user_slots_usage", 1.0),
    ("gpu_usage", 1.0),
    ("gpu_limit", 1.0),
];

/// Jobs at a time, of those that run as of those that ended: beyond, new ones have no history.
const JOBS: usize = 20_000;
const JOB_BUDGET: usize = 96 << 20;
const NODES: usize = 10_000;
const NODE_BUDGET: usize = 64 << 20;

/// See the module page.
pub(crate) struct UsageHistory {
    jobs: Lives<6>,
    nodes: Lives<7>,
}

impl Default for UsageHistory {
    fn default() -> UsageHistory {
        let (jobs, nodes) =
            (JOB_COLUMNS.map(|(_, quantum)| quantum), NODE_COLUMNS.map(|(_, quantum)| quantum));
        UsageHistory {
            jobs: Lives::new(Settings::new(jobs, JOB_BUDGET), JOBS),
            nodes: Lives::new(Settings::new(nodes, NODE_BUDGET), NODES),
        }
    }
}

/// Whose history is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryOf {
    /// A job that runs or has ended within the last hours.
    Job(JobId),
    /// A node by its address.
    Node(String),
}

impl Kernel {
    /// A job has reported; `before` is what it had spent at the report before.
    pub(crate) fn record_job(&mut self, now: Time, job_id: JobId, before: Spent) {
        let Some(operation) = self.jobs.get(job_id).and_then(|job| self.operations.get(&job.operation))
        else {
            return;
        };
        let Some(f) = operation.controller.job(job_id).and_then(|view| view.figures(before)) else { return };
        let values =
            [f.cpu_usage, f.cpu_smoothed, f.cpu_guarantee, f.memory_usage, f.memory_peak, f.memory_reserve];
        self.usage_history.jobs.record(now, &job_id.to_string(), values);
    }

    /// A job is over.
    pub(crate) fn end_job_history(&mut self, now: Time, job_id: JobId) {
        self.usage_history.jobs.end(now, &job_id.to_string());
    }

    /// A node has reported.
    pub(crate) fn record_node(&mut self, now: Time, address: &str) {
        let Some(node) = self.nodes.get(address) else { return };
        let Resources { cpu, memory, user_slots, gpu, .. } = node.report.resource_usage;
        let limits = node.report.resource_limits;
        let values = [
            cpu.as_f64(),
            limits.cpu.as_f64(),
            memory as f64,
            limits.memory as f64,
            user_slots as f64,
            gpu as f64,
            limits.gpu as f64,
        ];
        self.usage_history.nodes.record(now, address, values);
    }

    /// Nothing is heard from a node any more.
    pub(crate) fn end_node_history(&mut self, now: Time, address: &str) {
        self.usage_history.nodes.end(now, address);
    }

    /// `GetHistory`.
    pub(crate) fn usage_history(&self, now: Time, of: &HistoryOf, range: Range) -> Result<Value, Failure> {
        let UsageHistory { jobs, nodes } = &self.usage_history;
        let chart = match of {
            HistoryOf::Job(id) => {
                let names = JOB_COLUMNS.map(|(name, _)| name);
                let ask = |start, end, step| jobs.read(&id.to_string(), start, end, step);
                read(now, range, &format!("job {id}"), names, ask)
            }
            HistoryOf::Node(address) => {
                let names = NODE_COLUMNS.map(|(name, _)| name);
                let ask = |start, end, step| nodes.read(address, start, end, step);
                read(now, range, &format!("node \"{address}\""), names, ask)
            }
        };
        chart.unwrap_or_else(|| Err(nothing_known(of)))
    }
}

fn nothing_known(of: &HistoryOf) -> Failure {
    match of {
        HistoryOf::Job(id) => {
            let text = format!(
                "There is no history of job {id}: it has not reported yet, ended hours ago or in an earlier life \
                 of the server, or {JOBS} others ran when it started"
            );
            Failure::coded(code::NO_SUCH_JOB, text).with("job_id", *id)
        }
        HistoryOf::Node(address) => {
            let text = format!("There is no history of a node \"{address}\"");
            Failure::resolve(text).with("address", address.as_str())
        }
    }
}
