//! Bytes of one job: what its parts are multiplied with, and what comes out (jobs-and-nodes.md 2.1).

/// What factors are parts of, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bases {
    /// Memory of a job proxy that is not scaled by any factor.
    pub footprint: i64,
    /// What the proxy's readers and writers may buffer (2.6). A task without tables has none.
    pub io_estimate: i64,
    /// Limit of the user job; at least 1.
    pub memory_limit: i64,
    /// Sum of its memory file systems.
    pub tmpfs_size: i64,
}

/// Parts of the bases that are reserved.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Factors {
    /// Part of `memory_limit`.
    pub user_job: f64,
    /// Part of the job proxy's estimate of buffers.
    pub job_proxy: f64,
}

/// Memory of one job, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What the scheduler counts.
    pub total: i64,
    /// Lower bound of the user job's accounted usage.
    pub user_job_reserve: i64,
    /// Lower bound of the job proxy's accounted usage.
    pub job_proxy_reserve: i64,
}

/// What a job used at most, bytes; `None` if nobody measured it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Peaks {
    /// Of the user's processes, memory file systems included.
    pub user_job: Option<i64>,
    /// Of the job proxy.
    pub job_proxy: Option<i64>,
}

impl Bases {
    /// The request of a job with these factors.
    pub fn request(&self, factors: Factors) -> Request {
        let user_job = scaled(self.memory_limit, factors.user_job);
        let job_proxy = self.footprint.saturating_add(scaled(self.io_estimate, factors.job_proxy));
        Request {
            total: job_proxy.saturating_add(user_job),
            user_job_reserve: user_job.max(self.tmpfs_size),
            job_proxy_reserve: job_proxy,
        }
    }

    /// The job proxy's estimated memory: footprint and buffers.
    pub fn job_proxy_estimate(&self) -> i64 {
        self.footprint.saturating_add(self.io_estimate)
    }
}

fn scaled(base: i64, factor: f64) -> i64 {
    (base as f64 * factor).trunc() as i64
}
