//! Options of memory reserves and of the CPU monitor (jobs-and-nodes.md 1.2, 2.2, 2.7).

use super::reader::Reader;
use vocab::{Failure, Span};

/// `job_cpu_monitor` (jobs-and-nodes.md 1.2).
#[derive(Clone, PartialEq, Debug)]
pub struct CpuMonitorOptions {
    /// Carry decisions out; otherwise only compute.
    pub enable_cpu_reclaim: bool,
    /// Time between checks.
    pub check_period: Span,
    /// No check before the job's start plus this.
    pub start_delay: Span,
    /// Weight of the newest measurement.
    pub smoothing_factor: f64,
    /// Above this part of the current limit a value votes to increase.
    pub relative_upper_bound: f64,
    /// Below this part of the current limit a value votes to decrease.
    pub relative_lower_bound: f64,
    /// Factor of one step up.
    pub increase_coefficient: f64,
    /// Factor of one step down.
    pub decrease_coefficient: f64,
    /// Number of last smoothed values looked at.
    pub vote_window_size: i64,
    /// A decision needs a sum strictly beyond it.
    pub vote_decision_threshold: i64,
    /// Floor of the limit, cores.
    pub min_cpu_limit: f64,
}

impl CpuMonitorOptions {
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<CpuMonitorOptions, Failure> {
        let (millisecond, ever) = (Span::from_millis(1), Span(u64::MAX));
        Ok(CpuMonitorOptions {
            enable_cpu_reclaim: r.bool("enable_cpu_reclaim").or(false)?,
            check_period: r.span("check_period", millisecond..=ever).or(Span::from_secs(1))?,
            start_delay: r.span("start_delay", Span::ZERO..=ever).or(Span::ZERO)?,
            smoothing_factor: r.number("smoothing_factor", 0.0..=1.0).or(0.1)?,
            relative_upper_bound: r.number("relative_upper_bound", 0.0..=1.0).or(0.9)?,
            relative_lower_bound: r.number("relative_lower_bound", 0.0..=1.0).or(0.6)?,
            increase_coefficient: r.number("increase_coefficient", 1.0..=2.0).or(1.45)?,
            decrease_coefficient: r.number("decrease_coefficient", 0.0..=1.0).or(0.97)?,
            vote_window_size: r.int("vote_window_size", 1..=i64::MAX).or(5)?,
            // The public documentation once spells it with an `s`.
            vote_decision_threshold: r
                .int(["vote_decision_threshold", "votes_decision_threshold"], 1..=i64::MAX)
                .or(3)?,
            min_cpu_limit: r.number("min_cpu_limit", 0.0..=1.0).or(1.0)?,
        })
    }
}

/// `job_proxy_memory_digest` (jobs-and-nodes.md 2.2).
#[derive(Clone, PartialEq, Debug)]
pub struct ProxyDigestOptions {
    /// Smallest factor.
    pub lower_bound: f64,
    /// Factor without samples.
    pub default_value: f64,
    /// Largest factor.
    pub upper_bound: f64,
    /// Relative width of a bucket.
    pub relative_precision: f64,
}

impl ProxyDigestOptions {
    /// Reads a section; what it leaves out is taken from `base`.
    pub(crate) fn read(r: &mut Reader<'_>, base: &ProxyDigestOptions) -> Result<ProxyDigestOptions, Failure> {
        let out = ProxyDigestOptions {
            lower_bound: r.positive("lower_bound", f64::MAX).or(base.lower_bound)?,
            default_value: r.positive("default_value", f64::MAX).or(base.default_value)?,
            upper_bound: r.positive("upper_bound", f64::MAX).or(base.upper_bound)?,
            relative_precision: r.positive("relative_precision", f64::MAX).or(base.relative_precision)?,
        };
        if out.lower_bound > out.upper_bound {
            return Err(r.refuse(
                "lower_bound",
                format_args!("{} is greater than upper_bound {}", out.lower_bound, out.upper_bound),
            ));
        }
        if !(out.lower_bound..=out.upper_bound).contains(&out.default_value) {
            return Err(r.refuse(
                "default_value",
                format_args!(
                    "{} is not between lower_bound {} and upper_bound {}",
                    out.default_value, out.lower_bound, out.upper_bound
                ),
            ));
        }
        Ok(out)
    }
}

impl Default for ProxyDigestOptions {
    fn default() -> ProxyDigestOptions {
        ProxyDigestOptions {
            lower_bound: 0.5,
            default_value: 1.0,
            upper_bound: 2.0,
            relative_precision: 0.01,
        }
    }
}

/// Options of the user job's digest after the rules of jobs-and-nodes.md 2.7.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct UserDigestBounds {
    /// Smallest factor.
    pub lower_bound: f64,
    /// Factor without samples.
    pub default_value: f64,
}

impl UserDigestBounds {
    /// Applies `memory_reserve_factor` and tmpfs sizes to the two options, in the order of
    /// jobs-and-nodes.md 2.7. tmpfs pages cannot be dropped, so they are always reserved.
    pub fn resolve(
        lower_bound: f64,
        default_value: f64,
        memory_reserve_factor: Option<f64>,
        ignore_factor_below_one: bool,
        tmpfs_size: i64,
        memory_limit: i64,
    ) -> UserDigestBounds {
        let (mut lower_bound, mut default_value) = (lower_bound, default_value);
        if let Some(f) = memory_reserve_factor.filter(|f| *f == 1.0 || !ignore_factor_below_one) {
            lower_bound = f;
            default_value = f;
        }
        let tmpfs = tmpfs_size as f64 / memory_limit as f64;
        default_value = default_value.max(tmpfs).min(1.0);
        lower_bound = lower_bound.max(tmpfs).min(1.0);
        UserDigestBounds { lower_bound, default_value: default_value.max(lower_bound) }
    }
}
