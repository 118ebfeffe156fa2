//! Memory reserves: how much of the node's memory the scheduler counts for a new job
//! (jobs-and-nodes.md 2.1, 2.4, 2.7).
//!
//! A reserve is `base * factor`. The factors are the digests' answers without samples: digests that
//! learn from finished jobs (2.2-2.5) take their place inside [`MemoryReserve`]; everybody else
//! only asks for [`MemoryReserve::factors`] and [`MemoryReserve::request`].

use crate::options::ControllerOptions;
use crate::spec::UserScript;

/// Policy of one task.
#[derive(Clone, PartialEq, Debug)]
pub struct MemoryReserve {
    footprint: i64,
    /// What readers and writers may buffer (2.6). A task without tables has none.
    io_estimate: i64,
    memory_limit: i64,
    tmpfs_size: i64,
    default_factors: Factors,
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
pub struct MemoryRequest {
    /// What the scheduler counts.
    pub total: i64,
    /// Lower bound of the user job's accounted usage.
    pub user_job_reserve: i64,
    /// Lower bound of the job proxy's accounted usage.
    pub job_proxy_reserve: i64,
}

impl MemoryReserve {
    /// Policy of a task that runs this script.
    pub fn new(script: &UserScript, options: &ControllerOptions) -> MemoryReserve {
        MemoryReserve {
            footprint: options.footprint_memory,
            io_estimate: 0,
            memory_limit: script.memory_limit,
            tmpfs_size: script.tmpfs_size(),
            default_factors: Factors {
                user_job: script.user_digest.default_value,
                job_proxy: script.job_proxy_digest.default_value,
            },
        }
    }

    /// Factors of a new run of a unit of work.
    pub fn factors(&self, _cookie: u32) -> Factors {
        self.default_factors
    }

    /// Factors of the moment, for the demand.
    pub fn current_factors(&self) -> Factors {
        self.default_factors
    }

    /// The request of a job with these factors (2.1).
    pub fn request(&self, factors: Factors) -> MemoryRequest {
        let user = scaled(self.memory_limit, factors.user_job);
        let proxy = self.footprint + scaled(self.io_estimate, factors.job_proxy);
        MemoryRequest {
            total: proxy + user,
            user_job_reserve: user.max(self.tmpfs_size),
            job_proxy_reserve: proxy,
        }
    }

    /// The job proxy's estimated memory: footprint and buffers.
    pub fn estimate(&self) -> i64 {
        self.footprint + self.io_estimate
    }
}

fn scaled(base: i64, factor: f64) -> i64 {
    (base as f64 * factor).trunc() as i64
}
