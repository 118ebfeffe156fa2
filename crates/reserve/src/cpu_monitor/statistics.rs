//! What the monitor adds to a job's statistics (jobs-and-nodes.md 1.6).

use super::Monitor;

/// The monitor's statistics, in hundredths: of a core, and of core-seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// The filtered use.
    pub smoothed_cpu_usage_x100: i64,
    /// What could be taken now.
    pub preemptible_cpu_x100: i64,
    /// Sum of filtered use over time.
    pub aggregated_smoothed_cpu_usage_x100: i64,
    /// Sum of the hard limit over time.
    pub aggregated_max_cpu_usage_x100: i64,
    /// Sum over time of what could be taken.
    pub aggregated_preemptible_cpu_x100: i64,
    /// The part of that which was taken: all of it, or nothing.
    pub aggregated_preempted_cpu_x100: i64,
}

impl Statistics {
    /// Public paths and values, with the two names that old dashboards know.
    pub fn samples(&self) -> [(&'static str, i64); 8] {
        [
            ("job_proxy/smoothed_cpu_usage_x100", self.smoothed_cpu_usage_x100),
            ("job_proxy/preemptible_cpu_x100", self.preemptible_cpu_x100),
            ("job_proxy/aggregated_smoothed_cpu_usage_x100", self.aggregated_smoothed_cpu_usage_x100),
            ("job_proxy/aggregated_max_cpu_usage_x100", self.aggregated_max_cpu_usage_x100),
            ("job_proxy/aggregated_preemptible_cpu_x100", self.aggregated_preemptible_cpu_x100),
            ("job_proxy/aggregated_preempted_cpu_x100", self.aggregated_preempted_cpu_x100),
            ("job_proxy/preemptable_cpu_x100", self.preemptible_cpu_x100),
            ("job_proxy/aggregated_preemptable_cpu_x100", self.aggregated_preemptible_cpu_x100),
        ]
    }
}

impl Monitor {
    /// The statistics; none before the first measurement.
    pub fn statistics(&self) -> Option<Statistics> {
        let smoothed = self.smoothed?;
        let preemptible = x100(self.aggregated_preemptible);
        Some(Statistics {
            smoothed_cpu_usage_x100: x100(smoothed),
            preemptible_cpu_x100: x100(self.hard - self.soft),
            aggregated_smoothed_cpu_usage_x100: x100(self.aggregated_smoothed),
            aggregated_max_cpu_usage_x100: x100(self.aggregated_max),
            aggregated_preemptible_cpu_x100: preemptible,
            aggregated_preempted_cpu_x100: if self.options.enable_cpu_reclaim { preemptible } else { 0 },
        })
    }
}

/// trunc(value * 100); what does not fit saturates.
fn x100(value: f64) -> i64 {
    (value * 100.0).trunc() as i64
}
