//! Options of memory reserves (jobs-and-nodes.md 2.2, 2.5, 2.7, 10): those of the cluster, those of a
//! user script, and the section `job_proxy_memory_digest`.

use super::Bounds;
use crate::options::{number, one_of, part, positive};
use yson::Map;
use yson::fields::{FieldError, Fields};

/// Options of the cluster's controllers.
#[derive(Clone, PartialEq, Debug)]
pub struct ClusterOptions {
    /// Relative width of the buckets of user jobs' digests, above 0. It acts on new digests only.
    /// Default 0.01.
    pub user_job_memory_digest_precision: f64,
    /// Which quantile a new user job reserves, in [0, 1]. Default 0.95.
    pub user_job_memory_reserve_quantile: f64,
    /// The same for job proxies. Default 0.95.
    pub job_proxy_memory_reserve_quantile: f64,
    /// A job that was aborted for its memory would have used this much more, in [1, 10]. Default 1.1.
    pub memory_digest_resource_overdraft_factor: f64,
    /// After its first overdraft a unit is run again with this times the factor, in [1, 10]. Default:
    /// with the whole limit.
    pub user_job_resource_overdraft_memory_multiplier: Option<f64>,
    /// The same for job proxies; default: with the upper bound.
    pub job_proxy_resource_overdraft_memory_multiplier: Option<f64>,
    /// The two multipliers are those of the spec, not of the cluster. Default false.
    pub use_resource_overdraft_memory_multiplier_from_spec: bool,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions {
            user_job_memory_digest_precision: 0.01,
            user_job_memory_reserve_quantile: 0.95,
            job_proxy_memory_reserve_quantile: 0.95,
            memory_digest_resource_overdraft_factor: 1.1,
            user_job_resource_overdraft_memory_multiplier: None,
            job_proxy_resource_overdraft_memory_multiplier: None,
            use_resource_overdraft_memory_multiplier_from_spec: false,
        }
    }
}

impl ClusterOptions {
    /// Names of all options.
    pub const NAMES: [&str; 7] = [
        "user_job_memory_digest_precision",
        "user_job_memory_reserve_quantile",
        "job_proxy_memory_reserve_quantile",
        "memory_digest_resource_overdraft_factor",
        "user_job_resource_overdraft_memory_multiplier",
        "job_proxy_resource_overdraft_memory_multiplier",
        "use_resource_overdraft_memory_multiplier_from_spec",
    ];

    /// Reads them; what is not given has its default.
    pub fn read(f: &mut Fields<'_>) -> Result<ClusterOptions, FieldError> {
        let d = ClusterOptions::default();
        Ok(ClusterOptions {
            user_job_memory_digest_precision: positive(f, "user_job_memory_digest_precision")
                .or(d.user_job_memory_digest_precision)?,
            user_job_memory_reserve_quantile: number(f, "user_job_memory_reserve_quantile", 0.0..=1.0)
                .or(d.user_job_memory_reserve_quantile)?,
            job_proxy_memory_reserve_quantile: number(f, "job_proxy_memory_reserve_quantile", 0.0..=1.0)
                .or(d.job_proxy_memory_reserve_quantile)?,
            memory_digest_resource_overdraft_factor: number(
                f,
                "memory_digest_resource_overdraft_factor",
                1.0..=10.0,
            )
            .or(d.memory_digest_resource_overdraft_factor)?,
            user_job_resource_overdraft_memory_multiplier: number(
                f,
                "user_job_resource_overdraft_memory_multiplier",
                1.0..=10.0,
            )
            .optional()?,
            job_proxy_resource_overdraft_memory_multiplier: number(
                f,
                "job_proxy_resource_overdraft_memory_multiplier",
                1.0..=10.0,
            )
            .optional()?,
            use_resource_overdraft_memory_multiplier_from_spec: f
                .take_bool("use_resource_overdraft_memory_multiplier_from_spec")
                .or(d.use_resource_overdraft_memory_multiplier_from_spec)?,
        })
    }

    /// Effective values; an option that is unset has no place.
    pub fn to_map(&self) -> Map {
        yson::map! {
            "user_job_memory_digest_precision" => self.user_job_memory_digest_precision,
            "user_job_memory_reserve_quantile" => self.user_job_memory_reserve_quantile,
            "job_proxy_memory_reserve_quantile" => self.job_proxy_memory_reserve_quantile,
            "memory_digest_resource_overdraft_factor" => self.memory_digest_resource_overdraft_factor,
            "use_resource_overdraft_memory_multiplier_from_spec" =>
                self.use_resource_overdraft_memory_multiplier_from_spec,
        }
        .with_some(
            "user_job_resource_overdraft_memory_multiplier",
            self.user_job_resource_overdraft_memory_multiplier,
        )
        .with_some(
            "job_proxy_resource_overdraft_memory_multiplier",
            self.job_proxy_resource_overdraft_memory_multiplier,
        )
    }
}

/// Options of a user script that are about its user jobs' reserves.
#[derive(Clone, PartialEq, Debug)]
pub struct ScriptOptions {
    /// Bound and default at once, in (0, 1].
    pub memory_reserve_factor: Option<f64>,
    /// Factor without samples, in (0, 1]. Default 0.5.
    pub user_job_memory_digest_default_value: f64,
    /// Smallest factor, in (0, 1]. Default 0.05.
    pub user_job_memory_digest_lower_bound: f64,
    /// `memory_reserve_factor` counts only if it is 1. Default false.
    pub ignore_memory_reserve_factor_less_than_one: bool,
    /// After its first overdraft a unit is run again with this times the factor, in [1, 10].
    pub user_job_resource_overdraft_memory_multiplier: Option<f64>,
    /// The same for the job proxy.
    pub job_proxy_resource_overdraft_memory_multiplier: Option<f64>,
}

/// The public name, and one of the reference.
const USER_JOB_MULTIPLIER: [&str; 2] =
    ["user_job_resource_overdraft_memory_multiplier", "resource_overdraft_memory_reserve_multiplier"];

impl Default for ScriptOptions {
    fn default() -> ScriptOptions {
        ScriptOptions {
            memory_reserve_factor: None,
            user_job_memory_digest_default_value: 0.5,
            user_job_memory_digest_lower_bound: 0.05,
            ignore_memory_reserve_factor_less_than_one: false,
            user_job_resource_overdraft_memory_multiplier: None,
            job_proxy_resource_overdraft_memory_multiplier: None,
        }
    }
}

impl ScriptOptions {
    /// Names of all options, canonical ones and aliases.
    pub const NAMES: [&str; 7] = [
        "memory_reserve_factor",
        "user_job_memory_digest_default_value",
        "user_job_memory_digest_lower_bound",
        "ignore_memory_reserve_factor_less_than_one",
        USER_JOB_MULTIPLIER[0],
        USER_JOB_MULTIPLIER[1],
        "job_proxy_resource_overdraft_memory_multiplier",
    ];

    /// Reads them; what is not given has its default.
    pub fn read(f: &mut Fields<'_>) -> Result<ScriptOptions, FieldError> {
        let d = ScriptOptions::default();
        let multiplier = one_of(f, &USER_JOB_MULTIPLIER)?;
        Ok(ScriptOptions {
            memory_reserve_factor: part(f, "memory_reserve_factor").optional()?,
            user_job_memory_digest_default_value: part(f, "user_job_memory_digest_default_value")
                .or(d.user_job_memory_digest_default_value)?,
            user_job_memory_digest_lower_bound: part(f, "user_job_memory_digest_lower_bound")
                .or(d.user_job_memory_digest_lower_bound)?,
            ignore_memory_reserve_factor_less_than_one: f
                .take_bool("ignore_memory_reserve_factor_less_than_one")
                .or(d.ignore_memory_reserve_factor_less_than_one)?,
            user_job_resource_overdraft_memory_multiplier: number(f, multiplier, 1.0..=10.0).optional()?,
            job_proxy_resource_overdraft_memory_multiplier: number(
                f,
                "job_proxy_resource_overdraft_memory_multiplier",
                1.0..=10.0,
            )
            .optional()?,
        })
    }

    /// Effective values under their canonical names; an option that is unset has no place.
    pub fn to_map(&self) -> Map {
        Map::new()
            .with_some("memory_reserve_factor", self.memory_reserve_factor)
            .with("user_job_memory_digest_default_value", self.user_job_memory_digest_default_value)
            .with("user_job_memory_digest_lower_bound", self.user_job_memory_digest_lower_bound)
            .with(
                "ignore_memory_reserve_factor_less_than_one",
                self.ignore_memory_reserve_factor_less_than_one,
            )
            .with_some(USER_JOB_MULTIPLIER[0], self.user_job_resource_overdraft_memory_multiplier)
            .with_some(
                "job_proxy_resource_overdraft_memory_multiplier",
                self.job_proxy_resource_overdraft_memory_multiplier,
            )
    }

    /// Bounds of the user job's factor, in the order of jobs-and-nodes.md 2.7. Pages of memory file
    /// systems cannot be dropped, so they are always reserved.
    pub fn bounds(&self, tmpfs_size: i64, memory_limit: i64, precision: f64) -> Bounds {
        let mut lower = self.user_job_memory_digest_lower_bound;
        let mut default = self.user_job_memory_digest_default_value;
        let ignored = |f: f64| f != 1.0 && self.ignore_memory_reserve_factor_less_than_one;
        if let Some(f) = self.memory_reserve_factor.filter(|f| !ignored(*f)) {
            (lower, default) = (f, f);
        }
        let tmpfs = tmpfs_size as f64 / memory_limit as f64;
        default = default.max(tmpfs).min(1.0);
        lower = lower.max(tmpfs).min(1.0);
        Bounds { lower, default: default.max(lower), upper: 1.0, precision }
    }
}

/// The section `job_proxy_memory_digest`, of the operation or of a user script.
#[derive(Clone, PartialEq, Debug)]
pub struct JobProxyOptions {
    /// Smallest factor. Default 0.5.
    pub lower_bound: f64,
    /// Factor without samples. Default 1.
    pub default_value: f64,
    /// Largest factor. Default 2.
    pub upper_bound: f64,
    /// Relative width of a bucket. Default 0.01.
    pub relative_precision: f64,
}

impl Default for JobProxyOptions {
    fn default() -> JobProxyOptions {
        JobProxyOptions { lower_bound: 0.5, default_value: 1.0, upper_bound: 2.0, relative_precision: 0.01 }
    }
}

impl JobProxyOptions {
    /// Name of the section.
    pub const SECTION: &str = "job_proxy_memory_digest";
    /// Names of all options.
    pub const NAMES: [&str; 4] = ["lower_bound", "default_value", "upper_bound", "relative_precision"];

    /// Reads the section; what it leaves out is taken from `base`.
    pub fn read(f: &mut Fields<'_>, base: &JobProxyOptions) -> Result<JobProxyOptions, FieldError> {
        let out = JobProxyOptions {
            lower_bound: positive(f, "lower_bound").or(base.lower_bound)?,
            default_value: positive(f, "default_value").or(base.default_value)?,
            upper_bound: positive(f, "upper_bound").or(base.upper_bound)?,
            relative_precision: positive(f, "relative_precision").or(base.relative_precision)?,
        };
        let JobProxyOptions { lower_bound, default_value, upper_bound, .. } = out;
        if lower_bound > upper_bound {
            let why = format!("{lower_bound} is greater than upper_bound {upper_bound}");
            return Err(f.error("lower_bound", &why));
        }
        if !(lower_bound..=upper_bound).contains(&default_value) {
            let why = format!(
                "{default_value} is not between lower_bound {lower_bound} and upper_bound {upper_bound}"
            );
            return Err(f.error("default_value", &why));
        }
        Ok(out)
    }

    /// Effective values.
    pub fn to_map(&self) -> Map {
        yson::map! {
            "lower_bound" => self.lower_bound,
            "default_value" => self.default_value,
            "upper_bound" => self.upper_bound,
            "relative_precision" => self.relative_precision,
        }
    }

    /// Bounds of the job proxy's factor.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            lower: self.lower_bound,
            default: self.default_value,
            upper: self.upper_bound,
            precision: self.relative_precision,
        }
    }
}
