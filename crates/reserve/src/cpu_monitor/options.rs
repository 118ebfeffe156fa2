//! Options of the monitor: the section `job_cpu_monitor` of an operation's spec
//! (jobs-and-nodes.md 1.2).

use crate::options::{count, duration, millis, number, one_of};
use vocab::Span;
use yson::fields::{FieldError, Fields};
use yson::{Map, Value};

/// Names of the section in a spec: the canonical one, and the one of the public documentation.
pub const SECTION: [&str; 2] = ["job_cpu_monitor", "job-cpu-monitor"];

/// Names of all options, canonical ones and aliases.
pub const NAMES: [&str; 12] = [
    "enable_cpu_reclaim",
    "check_period",
    "start_delay",
    "smoothing_factor",
    "relative_upper_bound",
    "relative_lower_bound",
    "increase_coefficient",
    "decrease_coefficient",
    "vote_window_size",
    "vote_decision_threshold",
    "votes_decision_threshold",
    "min_cpu_limit",
];

/// The public documentation once spells it with an `s`.
const VOTE_DECISION_THRESHOLD: [&str; 2] = ["vote_decision_threshold", "votes_decision_threshold"];

/// How a job's guarantee is moved.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Carry decisions out; otherwise only compute. Default false.
    pub enable_cpu_reclaim: bool,
    /// Time between checks. Default 1 s.
    pub check_period: Span,
    /// No check before the job's start plus this. Default 0.
    pub start_delay: Span,
    /// Weight of the newest measurement, in [0, 1]. Default 0.1.
    pub smoothing_factor: f64,
    /// Above this part of the current limit a value votes to increase, in [0, 1]. Default 0.9.
    pub relative_upper_bound: f64,
    /// Below this part of the current limit a value votes to decrease, in [0, 1]. Default 0.6.
    pub relative_lower_bound: f64,
    /// Factor of one step up, in [1, 2]. Default 1.45.
    pub increase_coefficient: f64,
    /// Factor of one step down, in [0, 1]. Default 0.97.
    pub decrease_coefficient: f64,
    /// Number of last smoothed values looked at, at least 1. Default 5.
    pub vote_window_size: i64,
    /// A decision needs a sum strictly beyond it, at least 1. Default 3.
    pub vote_decision_threshold: i64,
    /// Floor of the limit in cores, in [0, 1]. Default 1.
    pub min_cpu_limit: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            enable_cpu_reclaim: false,
            check_period: Span::from_secs(1),
            start_delay: Span::ZERO,
            smoothing_factor: 0.1,
            relative_upper_bound: 0.9,
            relative_lower_bound: 0.6,
            increase_coefficient: 1.45,
            decrease_coefficient: 0.97,
            vote_window_size: 5,
            vote_decision_threshold: 3,
            min_cpu_limit: 1.0,
        }
    }
}

impl Options {
    /// Reads the section. What is not given has its default; what is not an option is left in the
    /// reader, for the caller to keep or to refuse.
    pub fn read(f: &mut Fields<'_>) -> Result<Options, FieldError> {
        let d = Options::default();
        let threshold = one_of(f, &VOTE_DECISION_THRESHOLD)?;
        Ok(Options {
            enable_cpu_reclaim: f.take_bool("enable_cpu_reclaim").or(d.enable_cpu_reclaim)?,
            check_period: duration(f, "check_period", 1).or(d.check_period)?,
            start_delay: duration(f, "start_delay", 0).or(d.start_delay)?,
            smoothing_factor: number(f, "smoothing_factor", 0.0..=1.0).or(d.smoothing_factor)?,
            relative_upper_bound: number(f, "relative_upper_bound", 0.0..=1.0).or(d.relative_upper_bound)?,
            relative_lower_bound: number(f, "relative_lower_bound", 0.0..=1.0).or(d.relative_lower_bound)?,
            increase_coefficient: number(f, "increase_coefficient", 1.0..=2.0).or(d.increase_coefficient)?,
            decrease_coefficient: number(f, "decrease_coefficient", 0.0..=1.0).or(d.decrease_coefficient)?,
            vote_window_size: count(f, "vote_window_size").or(d.vote_window_size)?,
            vote_decision_threshold: count(f, threshold).or(d.vote_decision_threshold)?,
            min_cpu_limit: number(f, "min_cpu_limit", 0.0..=1.0).or(d.min_cpu_limit)?,
        })
    }

    /// Values that are not the defaults: what has to be told to a reader of the same version.
    pub fn differences(&self) -> Map {
        let defaults = Options::default();
        if *self == defaults {
            return Map::new();
        }
        let defaults = defaults.to_map();
        let all = self.to_map();
        let differs = |(name, value): &(&[u8], &Value)| defaults.get(name) != Some(*value);
        all.iter().filter(differs).map(|(name, value)| (name, value.clone())).collect()
    }

    /// Effective values under their canonical names, as the full spec shows them.
    pub fn to_map(&self) -> Map {
        yson::map! {
            "enable_cpu_reclaim" => self.enable_cpu_reclaim,
            "check_period" => millis(self.check_period),
            "start_delay" => millis(self.start_delay),
            "smoothing_factor" => self.smoothing_factor,
            "relative_upper_bound" => self.relative_upper_bound,
            "relative_lower_bound" => self.relative_lower_bound,
            "increase_coefficient" => self.increase_coefficient,
            "decrease_coefficient" => self.decrease_coefficient,
            "vote_window_size" => self.vote_window_size,
            "vote_decision_threshold" => self.vote_decision_threshold,
            "min_cpu_limit" => self.min_cpu_limit,
        }
    }
}
