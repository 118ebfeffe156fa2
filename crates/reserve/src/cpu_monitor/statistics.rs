//! What the monitor adds to a job's statistics (jobs-and-nodes.md 1.6).

use super::Monitor;

/// The monitor's statistics, in hundredths: of a core, and of core-seconds.
pub use vocab::CpuMonitorStatistics as Statistics;

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
