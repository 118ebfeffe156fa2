//! Sums over time, and percentiles.

use crate::watch::PoolNow;

/// Less than this below the guarantee is no shortage: shares are fractions of the cluster.
const TOLERANCE: f64 = 1e-3;

/// One pool over the whole replay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolMeter {
    /// Seconds watched.
    watched: f64,
    /// Core-seconds used.
    used: f64,
    /// Core-seconds that it was entitled to.
    fair: f64,
    /// Seconds in which it wanted something.
    wanting: f64,
    /// Those of them in which it had less than its guarantee, and wanted more than it had.
    short: f64,
}

impl PoolMeter {
    /// The pool was like this for so many seconds.
    pub fn add(&mut self, seconds: f64, now: &PoolNow) {
        self.watched += seconds;
        self.used += seconds * now.usage;
        self.fair += seconds * now.fair;
        if now.demand > TOLERANCE {
            self.wanting += seconds;
            // Demand includes usage, so what could be missing is the smaller of the two.
            if now.usage + TOLERANCE < now.guarantee.min(now.demand) {
                self.short += seconds;
            }
        }
    }

    /// Cores in use on average.
    pub fn mean_usage(&self) -> f64 {
        ratio(self.used, self.watched).unwrap_or(0.0)
    }

    /// Cores that it was entitled to on average.
    pub fn mean_fair_share(&self) -> f64 {
        ratio(self.fair, self.watched).unwrap_or(0.0)
    }

    /// Part of the time with demand in which it was below its guarantee.
    pub fn below_guarantee(&self) -> Option<f64> {
        ratio(self.short, self.wanting)
    }
}

fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

/// The value that so many hundredths of the values do not exceed.
pub fn percentile(values: &[f64], hundredths: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() as f64 * hundredths / 100.0).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_below_the_guarantee_counts_only_with_demand() {
        let now = |usage, demand| PoolNow { usage, demand, guarantee: 8.0, ..PoolNow::default() };
        let mut meter = PoolMeter::default();
        meter.add(10.0, &now(0.0, 0.0)); // wants nothing
        meter.add(2.0, &now(3.0, 3.0)); // has what it wants
        meter.add(1.0, &now(3.0, 5.0)); // wants more, entitled to it
        meter.add(4.0, &now(8.0, 16.0)); // has its guarantee
        meter.add(1.0, &now(12.0, 16.0)); // has more
        assert_eq!(meter.below_guarantee(), Some(1.0 / 8.0));
        assert!((meter.mean_usage() - (6.0 + 3.0 + 32.0 + 12.0) / 18.0).abs() < 1e-12);
        assert_eq!(PoolMeter::default().below_guarantee(), None);
        assert_eq!(PoolMeter::default().mean_usage(), 0.0);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        for (hundredths, expected) in [(0.0, 1.0), (1.0, 1.0), (50.0, 50.0), (95.0, 95.0), (100.0, 100.0)] {
            assert_eq!(percentile(&values, hundredths), Some(expected), "{hundredths}");
        }
        assert_eq!(percentile(&[7.0], 95.0), Some(7.0));
        assert_eq!(percentile(&[], 50.0), None);
    }
}
