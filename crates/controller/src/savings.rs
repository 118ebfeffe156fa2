//! What a job did not take though it was ordered (jobs-and-nodes.md 1.6, 2.1): cores that the CPU monitor
//! gave back, and memory that was never reserved.

use crate::statistics::JobSamples;
use std::ops::{AddAssign, Sub};
use yson::Map;

/// Sums over time, of one job or of many. All but the last in hundredths of core-seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Savings {
    /// `aggregated_max_cpu_usage`: what was ordered.
    pub max_cpu_x100: i64,
    /// `aggregated_smoothed_cpu_usage`: what was used.
    pub smoothed_cpu_x100: i64,
    /// `aggregated_preemptible_cpu`: what could be taken.
    pub preemptible_cpu_x100: i64,
    /// `aggregated_preempted_cpu`: what was taken.
    pub reclaimed_cpu_x100: i64,
    /// Byte-seconds between the limit of the user job and its reserve.
    pub unreserved_memory: i64,
}

impl Savings {
    /// Of a job with these samples, since its start.
    pub fn of(samples: &JobSamples) -> Savings {
        let get = |path| samples.get(path).unwrap_or(0);
        let limit_over_time = || {
            let limit = i128::from(get("user_job/memory_limit")) * i128::from(get("time/total")) / 1_000;
            i64::try_from(limit).unwrap_or(i64::MAX)
        };
        Savings {
            max_cpu_x100: get("job_proxy/aggregated_max_cpu_usage_x100"),
            smoothed_cpu_x100: get("job_proxy/aggregated_smoothed_cpu_usage_x100"),
            preemptible_cpu_x100: get("job_proxy/aggregated_preemptible_cpu_x100"),
            reclaimed_cpu_x100: get("job_proxy/aggregated_preempted_cpu_x100"),
            unreserved_memory: (limit_over_time() - get("user_job/cumulative_memory_reserve")).max(0),
        }
    }

    /// As others see it.
    pub fn to_map(&self) -> Map {
        let cores = |x100: i64| x100 as f64 / 100.0;
        yson::map! {
            "ordered_core_seconds" => cores(self.max_cpu_x100),
            "used_core_seconds" => cores(self.smoothed_cpu_x100),
            "preemptible_core_seconds" => cores(self.preemptible_cpu_x100),
            "reclaimed_core_seconds" => cores(self.reclaimed_cpu_x100),
            "unreserved_byte_seconds" => self.unreserved_memory,
        }
    }

    fn with(self, other: Savings, f: impl Fn(i64, i64) -> i64) -> Savings {
        Savings {
            max_cpu_x100: f(self.max_cpu_x100, other.max_cpu_x100),
            smoothed_cpu_x100: f(self.smoothed_cpu_x100, other.smoothed_cpu_x100),
            preemptible_cpu_x100: f(self.preemptible_cpu_x100, other.preemptible_cpu_x100),
            reclaimed_cpu_x100: f(self.reclaimed_cpu_x100, other.reclaimed_cpu_x100),
            unreserved_memory: f(self.unreserved_memory, other.unreserved_memory),
        }
    }
}

impl AddAssign for Savings {
    fn add_assign(&mut self, other: Savings) {
        *self = self.with(other, i64::saturating_add);
    }
}

/// What has come since; sums over time never shrink.
impl Sub for Savings {
    type Output = Savings;
    fn sub(self, earlier: Savings) -> Savings {
        self.with(earlier, |new, old| new.saturating_sub(old).max(0))
    }
}
