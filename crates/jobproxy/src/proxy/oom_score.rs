//! Who is to go first when the host runs out of memory (jobs-and-nodes.md 4.8): processes above their
//! reserve get a score that the kernel looks at, and lose it when they are below again.

use crate::protocol::{JobStart, Progress};
use cage::Container;

/// Above its reserve at the last look?
#[derive(Debug, Default)]
pub(super) struct OomScore {
    /// `oom_score_adj_on_exceeded_memory_reserve`; none: scores are left alone.
    score: Option<i32>,
    user_job: bool,
    proxy: bool,
}

impl OomScore {
    pub fn new(score: Option<i32>) -> OomScore {
        OomScore { score, ..OomScore::default() }
    }

    /// After a sample. New processes of a job inherit the score; one that was forked while it was given may
    /// have missed it, so it is given again at every look.
    pub fn look(&mut self, now: &Progress, start: &JobStart, container: &mut dyn Container) {
        let Some(score) = self.score else { return };
        let user_job = now.user_memory > start.user_job_memory_reserve;
        if user_job || self.user_job {
            let score = if user_job { score } else { 0 };
            container.pids().unwrap_or_default().into_iter().for_each(|pid| set(pid, score));
        }
        let proxy = now.proxy_memory > start.job_proxy_memory_reserve;
        if proxy != self.proxy {
            set(std::process::id(), if proxy { score } else { 0 });
        }
        (self.user_job, self.proxy) = (user_job, proxy);
    }
}

/// A process that has gone meanwhile needs none, and one that may not be touched keeps its own.
fn set(pid: u32, score: i32) {
    let _ = std::fs::write(format!("/proc/{pid}/oom_score_adj"), score.to_string());
}
