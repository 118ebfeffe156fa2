//! When slow jobs of a task get copies (jobs-and-nodes.md 6.7, 8.1).

use super::root::RootOptions;
use super::script::UserScript;
use vocab::Span;

/// Rules of a task whose units may be run twice at once.
#[derive(Clone, PartialEq, Debug)]
pub struct Speculation {
    /// `job_speculation_timeout`: preparing and running a job for so long is slow.
    pub timeout: Option<Span>,
    /// `enable_job_splitting`: so is taking much longer than the other jobs of the task.
    pub late_jobs: bool,
    /// `max_speculative_job_count_per_task`: most copies at a time.
    pub max_count: u64,
}

impl Speculation {
    /// What script and root say; the script's timeout wins.
    pub(crate) fn of(script: &UserScript, root: &RootOptions) -> Speculation {
        Speculation {
            timeout: script.job_speculation_timeout.or(root.job_speculation_timeout),
            late_jobs: root.enable_job_splitting,
            max_count: root.max_speculative_job_count_per_task,
        }
    }
}
