//! What has been learned about a running job, for people (jobs-and-nodes.md 1, 2): where its guarantee and
//! its reserve stand and why, what a new job of its task would get, and what was saved.

use crate::JobView;
use crate::memory::{Origins, digest_value};
use crate::savings::Savings;
use reserve::memory_digest::Origin;
use vocab::{CpuMonitorReport, Resources, Time};
use yson::Map;

/// Millionths of a core.
fn cores(micro: i64) -> f64 {
    micro as f64 / 1e6
}

fn mib(bytes: i64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

impl JobView<'_> {
    /// What the job has left to others since its start.
    pub fn savings(&self, now: Time) -> Savings {
        Savings::of(&self.samples(now))
    }

    /// The explanation; `accounted` is what the scheduler counts for the job now.
    pub fn explain(&self, now: Time, accounted: Resources) -> Map {
        let j = self.joblet;
        let savings = Savings::of(&self.samples(now));
        let report = j.statistics.as_ref().and_then(|s| s.cpu_monitor.as_ref());
        let mut text = vec![format!(
            "Job {} of task {:?} runs on {} and is counted with {} cores and {}.",
            j.identity.job_id,
            j.identity.task,
            j.node,
            accounted.cpu,
            mib(accounted.memory)
        )];
        text.extend(self.words_about_cpu(report));
        text.extend(self.words_about_memory(accounted));
        text.push(format!(
            "Saved so far: {:.1} core-seconds given back of {:.1} that could have been, and {:.1} GiB-seconds of \
             memory that was never reserved.",
            savings.reclaimed_cpu_x100 as f64 / 100.0,
            savings.preemptible_cpu_x100 as f64 / 100.0,
            savings.unreserved_memory as f64 / f64::from(1 << 30)
        ));
        let whose = yson::map! {
            "job_id" => j.identity.job_id,
            "operation_id" => j.identity.operation_id,
            "task_name" => j.identity.task.as_ref(),
            "pool_tree" => j.identity.tree.as_ref(),
            "address" => &*j.node,
            "state" => self.state(),
            "time" => now,
        };
        let told = yson::map! {"saved" => savings.to_map(), "text" => text};
        whose.into_iter().chain(self.learned(accounted)).chain(told).collect()
    }

    /// The state of its CPU monitor and of its reserve, without words.
    pub fn learned(&self, accounted: Resources) -> Map {
        let report = self.joblet.statistics.as_ref().and_then(|s| s.cpu_monitor.as_ref());
        yson::map! {
            "accounted" => accounted.to_value(),
            "cpu" => self.cpu_value(report),
            "memory" => self.memory_value(accounted),
        }
    }

    fn cpu_value(&self, report: Option<&CpuMonitorReport>) -> Map {
        let options = &self.root.job_cpu_monitor;
        let monitor = report.map(|r| {
            let change = r.last_change.map(|c| {
                yson::map! {
                    "time" => c.time, "from" => cores(c.from), "to" => cores(c.to), "applied" => c.applied,
                }
            });
            yson::map! {
                "limit" => cores(r.limit),
                "smoothed" => cores(r.smoothed),
                "ratio" => if r.limit > 0 { r.smoothed as f64 / r.limit as f64 } else { 0.0 },
                "votes" => r.votes.as_str(),
            }
            .with_some("last_change", change)
        });
        yson::map! {
            "hard_limit" => self.task.spec.script.cpu_limit.as_f64(),
            "enable_cpu_reclaim" => options.enable_cpu_reclaim,
            "options" => options.to_map(),
        }
        .with_some("monitor", monitor)
    }

    fn words_about_cpu(&self, report: Option<&CpuMonitorReport>) -> Vec<String> {
        let options = &self.root.job_cpu_monitor;
        let hard = self.task.spec.script.cpu_limit;
        let Some(r) = report else {
            let why = if hard.0 == 0 {
                "It has no CPU guarantee, so there is nothing to watch.".to_owned()
            } else {
                format!("Its CPU monitor has not measured yet: it looks every {}.", options.check_period)
            };
            return vec![why];
        };
        let (limit, smoothed) = (cores(r.limit), cores(r.smoothed));
        let low = limit * options.relative_lower_bound;
        let high = limit * options.relative_upper_bound;
        let kind = if r.reclaims { "Its CPU guarantee" } else { "Its CPU guarantee, if reclaim were on," };
        let mut out = vec![format!(
            "{kind} is {limit:.2} of {hard} cores; it uses {smoothed:.2} (smoothed), and it would be lowered \
             below {low:.2} and raised above {high:.2}."
        )];
        out.push(format!(
            "Votes since the last decision: {} ({} of them are looked at, more than {} must agree).",
            if r.votes.is_empty() { "none" } else { &r.votes },
            options.vote_window_size,
            options.vote_decision_threshold
        ));
        if let Some(c) = r.last_change {
            let fate = match (c.applied, r.reclaims) {
                (false, _) => "which the container refused",
                (true, true) if c.to < c.from => "and the difference was given back to the pool",
                (true, true) => "and the difference was taken from the pool again",
                (true, false) => "only in thought: enable_cpu_reclaim is off",
            };
            let (from, to) = (cores(c.from), cores(c.to));
            out.push(format!("Last decision, {}: from {from:.2} to {to:.2} cores, {fate}.", c.time));
        }
        out
    }

    fn memory_value(&self, accounted: Resources) -> Map {
        let j = self.joblet;
        let memory = &self.task.memory;
        let settings = memory.settings();
        let statistics = j.statistics.as_deref();
        let name = |of: fn(&Origins) -> Origin| j.origins.as_ref().map(|o| of(o).as_str());
        let user_job = yson::map! {
            "reserve" => j.reserve.user_job_reserve,
            "factor" => j.factors.user_job,
            "digest" => digest_value(memory.user_job(), settings.user_job.quantile),
        }
        .with_some("origin", name(|o| o.user_job))
        .with_some("peak", statistics.map(|s| s.user_job_peak_memory));
        let job_proxy = yson::map! {
            "reserve" => j.reserve.job_proxy_reserve,
            "factor" => j.factors.job_proxy,
            "digest" => digest_value(memory.job_proxy(), settings.job_proxy.quantile),
        }
        .with_some("origin", name(|o| o.job_proxy))
        .with_some("peak", statistics.map(|s| s.job_proxy_max_memory));
        yson::map! {
            "memory_limit" => self.task.spec.script.memory_limit,
            "request" => j.reserve.total,
            "overdrafted" => accounted.memory > j.reserve.total,
            "user_job" => user_job,
            "job_proxy" => job_proxy,
            "new_job_request" => memory.request(memory.current_factors()).total,
        }
        .with_some("predecessor_job_id", j.predecessor)
    }

    fn words_about_memory(&self, accounted: Resources) -> Vec<String> {
        let j = self.joblet;
        let memory = &self.task.memory;
        let settings = memory.settings();
        let percent = |factor: f64| format!("{:.1}%", factor * 100.0);
        let why = match j.origins.map(|o| o.user_job) {
            None => "where that came from was forgotten in a restart of the server".to_owned(),
            Some(Origin::Default) => "the default: no job of its task had ended yet".to_owned(),
            Some(Origin::Learned) => format!(
                "which is enough for {} of the jobs of its task that had ended",
                percent(settings.user_job.quantile)
            ),
            Some(Origin::LowerBound) if self.is_bound_by_tmpfs() => {
                "the size of its memory file systems, which cannot be taken back".to_owned()
            }
            Some(Origin::LowerBound) => "the least that the options allow".to_owned(),
            Some(Origin::Dedicated) => {
                "its own: an earlier run of its unit was aborted because its node had no more memory"
                    .to_owned()
            }
        };
        let mut out = vec![format!(
            "Reserved for its user processes: {} ({} of the limit of {}), {why}.",
            mib(j.reserve.user_job_reserve),
            percent(j.factors.user_job),
            mib(self.task.spec.script.memory_limit),
        )];
        if let Some(s) = &j.statistics {
            out.push(format!(
                "Seen so far: {} of its own, {} of its job proxy ({} reserved).",
                mib(s.user_job_peak_memory),
                mib(s.job_proxy_max_memory),
                mib(j.reserve.job_proxy_reserve)
            ));
        }
        if accounted.memory > j.reserve.total {
            out.push(
                "It is above its reserve: when its node runs out of memory it is one of the first to go, and its \
                 unit is run again with more."
                    .to_owned(),
            );
        }
        let samples = memory.user_job().count();
        let factor = memory.current_factors().user_job;
        out.push(format!(
            "A new job of the task would get {} ({} jobs have taught so far).",
            percent(factor),
            samples
        ));
        out
    }

    fn is_bound_by_tmpfs(&self) -> bool {
        let bases = &self.task.memory.settings().bases;
        let tmpfs = bases.tmpfs_size as f64 / bases.memory_limit as f64;
        tmpfs > 0.0 && self.task.memory.user_job().bounds().lower == tmpfs.min(1.0)
    }
}
