//! The reserves of one task: two digests, and the units that were aborted for their memory.

use super::{
    Bases, Bounds, ClusterOptions, Factors, JobProxyOptions, LogDigest, Peaks, Request, ScriptOptions,
};
use std::collections::BTreeMap;
use vocab::JobId;

/// What does not change in the life of a task.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// What factors are parts of.
    pub bases: Bases,
    /// Of the user job's factor.
    pub user_job: ProcessSettings,
    /// Of the job proxy's factor.
    pub job_proxy: ProcessSettings,
    /// A job that was aborted for its memory would have used this much more.
    pub overdraft_factor: f64,
}

/// Settings of one of the two processes of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct ProcessSettings {
    /// Range of its factor.
    pub bounds: Bounds,
    /// Which quantile of the samples a new job gets.
    pub quantile: f64,
    /// Factor of the factor after the first overdraft of a unit.
    pub multiplier: Option<f64>,
    /// Factor after further ones, and after the first without a multiplier.
    pub retry_factor: f64,
}

impl Settings {
    /// Settings of a task. `job_proxy` is the section of the script, `root` that of the operation,
    /// with its multiplier.
    pub fn new(
        bases: Bases,
        cluster: &ClusterOptions,
        script: &ScriptOptions,
        job_proxy: &JobProxyOptions,
        root: (&JobProxyOptions, Option<f64>),
    ) -> Settings {
        let from_spec = cluster.use_resource_overdraft_memory_multiplier_from_spec;
        let choose = |spec: Option<f64>, cluster: Option<f64>| if from_spec { spec } else { cluster };
        Settings {
            user_job: ProcessSettings {
                bounds: script.bounds(
                    bases.tmpfs_size,
                    bases.memory_limit,
                    cluster.user_job_memory_digest_precision,
                ),
                quantile: cluster.user_job_memory_reserve_quantile,
                multiplier: choose(
                    script.user_job_resource_overdraft_memory_multiplier,
                    cluster.user_job_resource_overdraft_memory_multiplier,
                ),
                retry_factor: 1.0,
            },
            job_proxy: ProcessSettings {
                bounds: job_proxy.bounds(),
                quantile: cluster.job_proxy_memory_reserve_quantile,
                multiplier: choose(
                    script.job_proxy_resource_overdraft_memory_multiplier.or(root.1),
                    cluster.job_proxy_resource_overdraft_memory_multiplier,
                ),
                // The operation's, whatever the script says (2.5).
                retry_factor: root.0.upper_bound,
            },
            overdraft_factor: cluster.memory_digest_resource_overdraft_factor,
            bases,
        }
    }
}

/// Where a factor comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Nothing is known yet: the default of the options.
    Default,
    /// As much as nearly all jobs that ended needed.
    Learned,
    /// The jobs that ended needed less than the options let go.
    LowerBound,
    /// The unit was aborted for its memory before: its own factor (2.5).
    Dedicated,
}

impl Origin {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::Learned => "learned",
            Origin::LowerBound => "lower_bound",
            Origin::Dedicated => "dedicated",
        }
    }
}

/// Origins of both factors of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origins {
    /// Of the user job's.
    pub user_job: Origin,
    /// Of the job proxy's.
    pub job_proxy: Origin,
}

/// What a unit's overdrafts say about the factor of its next run (2.5).
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) enum Status {
    #[default]
    None,
    /// The next run has this factor.
    Once(f64),
    /// The next run has all there is.
    MultipleTimes,
}

/// A unit that was aborted for its memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Overdraft {
    pub user_job: Status,
    pub job_proxy: Status,
    /// The job that was aborted last.
    pub predecessor: JobId,
}

/// A job that was aborted for its memory.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Which job.
    pub job_id: JobId,
    /// Its unit of work.
    pub cookie: u32,
    /// Factors it was started with.
    pub factors: Factors,
    /// What was reserved for it then: options may have changed meanwhile.
    pub reserve: Request,
    /// What it used.
    pub peaks: Peaks,
}

/// Which processes of a job used more than they had reserved; at least one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blame {
    /// The user's.
    pub user_job: bool,
    /// Ours.
    pub job_proxy: bool,
}

/// The state of a task; see the module's page for the order of calls.
#[derive(Clone, PartialEq, Debug)]
pub struct Reserves {
    pub(super) settings: Settings,
    pub(super) user_job: LogDigest,
    pub(super) job_proxy: LogDigest,
    /// By cookie, until the unit is done.
    pub(super) overdrafts: BTreeMap<u32, Overdraft>,
    /// What the digests answer. They are asked at every start of a job and change at the end of one.
    current: Factors,
}

impl Reserves {
    /// Nothing is known yet.
    pub fn new(settings: Settings) -> Reserves {
        let user_job = LogDigest::new(settings.user_job.bounds);
        let job_proxy = LogDigest::new(settings.job_proxy.bounds);
        Reserves::with(settings, user_job, job_proxy, BTreeMap::new())
    }

    /// This is known.
    pub(super) fn with(
        settings: Settings,
        user_job: LogDigest,
        job_proxy: LogDigest,
        overdrafts: BTreeMap<u32, Overdraft>,
    ) -> Reserves {
        let current = answers(&settings, &user_job, &job_proxy);
        Reserves { settings, user_job, job_proxy, overdrafts, current }
    }

    /// Factors of a new run of a unit (2.4).
    pub fn factors(&self, cookie: u32) -> Factors {
        let learned = self.current;
        let Some(state) = self.overdrafts.get(&cookie) else { return learned };
        let choose = |status, settings: &ProcessSettings, learned| match status {
            Status::None => learned,
            Status::Once(dedicated) => dedicated,
            Status::MultipleTimes => settings.retry_factor,
        };
        Factors {
            user_job: choose(state.user_job, &self.settings.user_job, learned.user_job),
            job_proxy: choose(state.job_proxy, &self.settings.job_proxy, learned.job_proxy),
        }
    }

    /// Where the factors of a new run of a unit come from.
    pub fn origins(&self, cookie: u32) -> Origins {
        let state = self.overdrafts.get(&cookie);
        let of = |status: Option<Status>, digest: &LogDigest, quantile: f64| match status {
            Some(Status::Once(_) | Status::MultipleTimes) => Origin::Dedicated,
            _ if digest.count() == 0 => Origin::Default,
            _ if digest.is_at_lower_bound(quantile) => Origin::LowerBound,
            _ => Origin::Learned,
        };
        Origins {
            user_job: of(state.map(|s| s.user_job), &self.user_job, self.settings.user_job.quantile),
            job_proxy: of(state.map(|s| s.job_proxy), &self.job_proxy, self.settings.job_proxy.quantile),
        }
    }

    /// Factors of the moment, for units without a past.
    pub fn current_factors(&self) -> Factors {
        self.current
    }

    /// The request of a job with these factors.
    pub fn request(&self, factors: Factors) -> Request {
        self.settings.bases.request(factors)
    }

    /// A job completed (2.3).
    pub fn completed(&mut self, peaks: Peaks) {
        let bases = &self.settings.bases;
        learn(&mut self.user_job, peaks.user_job, bases.memory_limit, 1.0);
        learn(&mut self.job_proxy, peaks.job_proxy, bases.job_proxy_estimate(), 1.0);
        self.current = answers(&self.settings, &self.user_job, &self.job_proxy);
    }

    /// A job was aborted because its node lacked memory and it was above its reserve (2.3, 2.5).
    pub fn overdrafted(&mut self, job: &Ended) -> Blame {
        let reserve = &job.reserve;
        let blame = blame(reserve, &job.peaks);
        // Statistics may be older than the abort, which proves that the reserve was exceeded.
        let sample = |peak: Option<i64>, reserve: i64, blamed: bool| match blamed {
            true => (peak.map(|peak| peak.max(reserve)), self.settings.overdraft_factor),
            false => (peak, 1.0),
        };
        let bases = &self.settings.bases;
        let (peak, factor) = sample(job.peaks.user_job, reserve.user_job_reserve, blame.user_job);
        learn(&mut self.user_job, peak, bases.memory_limit, factor);
        let (peak, factor) = sample(job.peaks.job_proxy, reserve.job_proxy_reserve, blame.job_proxy);
        learn(&mut self.job_proxy, peak, bases.job_proxy_estimate(), factor);
        self.current = answers(&self.settings, &self.user_job, &self.job_proxy);

        let none = Overdraft { user_job: Status::None, job_proxy: Status::None, predecessor: job.job_id };
        let state = self.overdrafts.entry(job.cookie).or_insert(none);
        state.predecessor = job.job_id;
        if blame.user_job {
            state.user_job = after(state.user_job, job.factors.user_job, &self.settings.user_job);
        }
        if blame.job_proxy {
            state.job_proxy = after(state.job_proxy, job.factors.job_proxy, &self.settings.job_proxy);
        }
        blame
    }

    /// A unit is done: its past does not matter any more.
    pub fn unit_done(&mut self, cookie: u32) {
        self.overdrafts.remove(&cookie);
    }

    /// Units that were aborted for their memory and are not done, ascending.
    pub fn overdrafted_units(&self) -> impl Iterator<Item = u32> + '_ {
        self.overdrafts.keys().copied()
    }

    /// Was the unit aborted for its memory?
    pub fn is_overdrafted(&self, cookie: u32) -> bool {
        self.overdrafts.contains_key(&cookie)
    }

    /// The job that was aborted last for the memory of this unit.
    pub fn predecessor(&self, cookie: u32) -> Option<JobId> {
        self.overdrafts.get(&cookie).map(|state| state.predecessor)
    }

    /// Other settings from now on. What was learned stays, in buckets as they are; what units that were
    /// aborted before are to get stays too.
    pub fn set_settings(&mut self, settings: Settings) {
        self.settings = settings;
        self.current = answers(&self.settings, &self.user_job, &self.job_proxy);
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
    /// What is known about user jobs.
    pub fn user_job(&self) -> &LogDigest {
        &self.user_job
    }
    /// What is known about job proxies.
    pub fn job_proxy(&self) -> &LogDigest {
        &self.job_proxy
    }
}

fn answers(settings: &Settings, user_job: &LogDigest, job_proxy: &LogDigest) -> Factors {
    Factors {
        user_job: user_job.quantile(settings.user_job.quantile),
        job_proxy: job_proxy.quantile(settings.job_proxy.quantile),
    }
}

/// Adds a part of the base. Nothing is learned from a process that was not measured.
fn learn(digest: &mut LogDigest, peak: Option<i64>, base: i64, factor: f64) {
    if let Some(peak) = peak {
        digest.add(peak as f64 / base as f64 * factor);
    }
}

/// Who used more than was reserved. If nobody seems to have, the process that was nearest to it; the
/// job proxy if both were. One that was not measured is not suspected while the other was.
fn blame(reserve: &Request, peaks: &Peaks) -> Blame {
    let over = |peak: Option<i64>, reserve: i64| peak.is_some_and(|peak| peak > reserve);
    let user_job = over(peaks.user_job, reserve.user_job_reserve);
    let job_proxy = over(peaks.job_proxy, reserve.job_proxy_reserve);
    if user_job || job_proxy {
        return Blame { user_job, job_proxy };
    }
    let unmeasured = |peak: Option<i64>| peak.is_none();
    let gap = |peak: Option<i64>, reserve: i64| (unmeasured(peak), reserve - peak.unwrap_or(0));
    let user_job =
        gap(peaks.user_job, reserve.user_job_reserve) < gap(peaks.job_proxy, reserve.job_proxy_reserve);
    Blame { user_job, job_proxy: !user_job }
}

/// none -> once -> multiple times.
fn after(status: Status, factor: f64, settings: &ProcessSettings) -> Status {
    match (status, settings.multiplier) {
        (Status::None, Some(multiplier)) => Status::Once((factor * multiplier).min(settings.retry_factor)),
        _ => Status::MultipleTimes,
    }
}
