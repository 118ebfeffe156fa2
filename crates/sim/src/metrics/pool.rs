//! What a pool comes to over the time of a run: integrals of values that hold until they change.

use super::volume::{Account, Volumes};
use super::{Periods, Starved, round};
use vocab::{Resource, Resources, Share, Span, Time};
use yson::Map;

/// Values that hold.
#[derive(Clone, Copy, Default, Debug)]
pub struct Held {
    pub demand: Resources,
    pub usage: Resources,
    pub fair_share: Share,
    /// Parts of the fair share, of the cores.
    pub strong: f64,
    pub integral: f64,
    /// Of the tree.
    pub total: Resources,
    /// A pool that has less than this part of its fair share is served badly.
    pub tolerance: f64,
    pub account: Option<Account>,
}

/// See the module page. Core-seconds, GiB-hours, GPU-seconds.
#[derive(Clone, Copy, Debug)]
pub struct Integrals {
    since: Time,
    pub fair_share: f64,
    /// Part of it that integral guarantees gave.
    integral: f64,
    pub usage: f64,
    demand: f64,
    usage_gib_h: f64,
    usage_gpu_s: f64,
    /// Of the tree.
    total: [f64; 3],
    /// Of |usage - fair share|.
    deviation: f64,
    /// Of min(demand, guarantee).
    guaranteed: f64,
    /// Of what was missing of that.
    violation: f64,
    /// The same without the time that starvation and preemption take.
    violation_after_timeout: f64,
    owed: f64,
    owed_since: Time,
    underserved: Periods,
    pub starved: Starved,
    pub volumes: Volumes,
}

const GIB_H: f64 = 3600.0 * (1u64 << 30) as f64;

impl Held {
    fn owed(&self) -> f64 {
        self.demand.cpu.as_f64().min((self.strong + self.integral) * self.total.cpu.as_f64())
    }

    /// Parts of the cluster: what is used and what would be fair, of the resource that there is most of.
    fn is_underserved(&self) -> bool {
        let part = |r: Resource| {
            let there = self.total.get(r);
            if there > 0.0 { self.usage.get(r) / there } else { 0.0 }
        };
        let fair = self.fair_share.max_component();
        fair > 1e-9 && Share::from_fn(part).max_component() < self.tolerance * fair * (1.0 - 1e-9)
    }
}

impl Integrals {
    /// Nothing yet.
    pub fn new(now: Time) -> Integrals {
        Integrals {
            since: now,
            fair_share: 0.0,
            integral: 0.0,
            usage: 0.0,
            demand: 0.0,
            usage_gib_h: 0.0,
            usage_gpu_s: 0.0,
            total: [0.0; 3],
            deviation: 0.0,
            guaranteed: 0.0,
            violation: 0.0,
            violation_after_timeout: 0.0,
            owed: 0.0,
            owed_since: now,
            underserved: Periods::default(),
            starved: Starved::default(),
            volumes: Volumes::default(),
        }
    }

    /// The values held until now. `patience`: time that may pass before what is owed is there.
    pub fn close(&mut self, now: Time, held: &Held, patience: Span) {
        let (from, seconds) = (self.since, now.since(self.since).as_secs_f64());
        self.since = self.since.max(now);
        if seconds == 0.0 {
            return;
        }
        let total = held.total.cpu.as_f64();
        let fair = held.fair_share[Resource::Cpu] * total;
        let (usage, demand, owed) = (held.usage.cpu.as_f64(), held.demand.cpu.as_f64(), held.owed());
        let missing = (owed - usage).max(0.0);
        self.fair_share += fair * seconds;
        self.integral += held.integral * total * seconds;
        self.usage += usage * seconds;
        self.demand += demand * seconds;
        self.usage_gib_h += held.usage.memory as f64 / GIB_H * seconds;
        self.usage_gpu_s += held.usage.gpu as f64 * seconds;
        let there = [total, held.total.memory as f64 / GIB_H, held.total.gpu as f64];
        self.total.iter_mut().zip(there).for_each(|(sum, there)| *sum += there * seconds);
        self.deviation += (usage - fair).abs() * seconds;
        self.guaranteed += owed * seconds;
        self.violation += missing * seconds;
        let late = now.since(from.max(self.owed_since + patience)).as_secs_f64();
        self.violation_after_timeout += missing * late;
        if let Some(account) = &held.account {
            self.volumes.held(account, seconds);
        }
    }

    /// Other values hold from now on.
    pub fn begin(&mut self, now: Time, held: &Held) {
        let owed = held.owed();
        if owed > self.owed * (1.0 + 1e-9) {
            self.owed_since = now;
        }
        self.owed = owed;
        self.underserved.now(now, held.is_underserved());
    }

    /// What the pool got less than its fair share, so far.
    pub fn deficit(&self) -> f64 {
        self.fair_share - self.usage
    }

    /// Of a pool, at the end of the run.
    pub fn to_map(self) -> Map {
        yson::map! {
            "demand_cpu_s" => round(self.demand),
            "usage_cpu_s" => round(self.usage),
            "usage_gib_h" => round(self.usage_gib_h),
            "usage_gpu_s" => round(self.usage_gpu_s),
            "fair_share_cpu_s" => round(self.fair_share),
            "integral_cpu_s" => round(self.integral),
            "usage_deviation_cpu_s" => round(self.deviation),
            "guaranteed_cpu_s" => round(self.guaranteed),
            "violation_cpu_s" => yson::map! {
                "raw" => round(self.violation),
                "after_timeout" => round(self.violation_after_timeout),
            },
            "underserved" => self.underserved.to_map(self.since),
            "starvation" => self.starved.to_map(),
        }
    }

    /// Of the root: what there was, and what part of it was allocated.
    pub fn utilisation(&self) -> Map {
        let part = |used: f64, all: f64| round(if all > 0.0 { used / all } else { 0.0 });
        let [cpu, memory, gpu] = self.total;
        yson::map! {
            "online_cpu_s" => round(cpu),
            "online_gib_h" => round(memory),
            "online_gpu_s" => round(gpu),
            "allocated_cpu" => part(self.usage, cpu),
            "allocated_memory" => part(self.usage_gib_h, memory),
            "allocated_gpu" => part(self.usage_gpu_s, gpu),
        }
    }

    /// Cores that were online, core-seconds.
    pub fn online(&self) -> f64 {
        self.total[0]
    }
}
