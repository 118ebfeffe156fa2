//! The account of an integral pool (simulator.md 9): what its volume was given, what it spent, what it
//! lost at the cap. The volumes themselves are the core's.

use super::round;
use vocab::Resource;
use yson::Map;

/// A pool at an update.
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Account {
    /// Parts of the cluster: flow, burst (or what a relaxed pool may have at most), the share that its
    /// volume gives it now, and what it wants of it.
    pub flow: f64,
    pub burst: f64,
    pub share: f64,
    pub wanted: f64,
    /// Cores of the cluster.
    pub cores: f64,
    /// The volume is spent: not more than the flow in the time of the smoothing.
    pub is_spent: bool,
    pub is_full: bool,
}

/// See the module page. Core-seconds and seconds.
#[derive(Clone, Copy, Default, Debug)]
pub struct Volumes {
    granted: f64,
    spent: f64,
    lost: f64,
    accepted: f64,
    at_zero_s: f64,
    at_cap_s: f64,
    full_burst_s: f64,
    burst_owed: f64,
    burst_given: f64,
}

/// Volume is near nothing if it is this much above what a pool that always spends holds.
const NEAR: f64 = 1.01;

impl Account {
    /// Of what the core says of a pool. `wanted`: demand less the strong guarantee, a part of the cluster.
    pub fn of(out: &scheduler::IntegralOutput, wanted: f64, cores: f64) -> Account {
        let burst = out.specified_burst_ratio.max(out.share_limit);
        Account {
            flow: out.specified_resource_flow_ratio,
            burst,
            share: out.last_share,
            wanted: wanted.clamp(0.0, burst),
            cores,
            is_spent: out.share_ratio_by_volume <= out.specified_resource_flow_ratio * NEAR,
            is_full: out.accumulated_ratio_volume >= out.ratio_capacity * (1.0 - 1e-6),
        }
    }
}

impl Volumes {
    /// That held for so many seconds.
    pub fn held(&mut self, account: &Account, seconds: f64) {
        let core_s = account.cores * seconds;
        self.granted += account.flow * core_s;
        self.spent += account.share * core_s;
        self.burst_owed += account.wanted * core_s;
        self.burst_given += account.share.min(account.wanted) * core_s;
        let time = |is: bool| if is { seconds } else { 0.0 };
        self.at_zero_s += time(account.is_spent);
        self.at_cap_s += time(account.is_full);
        let has_all = account.wanted > 0.0 && account.share >= account.burst * (1.0 - 1e-6);
        self.full_burst_s += time(has_all);
    }

    /// An update has refilled and cut the volume.
    pub fn refilled(&mut self, out: &scheduler::IntegralOutput) {
        self.lost += out.overflow.get(Resource::Cpu);
        self.accepted += out.accepted_free_volume.get(Resource::Cpu);
    }

    /// `integral` of a pool in the summary.
    pub fn to_map(self) -> Map {
        let part = if self.burst_owed > 0.0 { self.burst_given / self.burst_owed } else { 1.0 };
        yson::map! {
            "granted_cpu_s" => round(self.granted),
            "spent_cpu_s" => round(self.spent),
            "lost_at_cap_cpu_s" => round(self.lost),
            "accepted_cpu_s" => round(self.accepted),
            "at_zero_s" => round(self.at_zero_s),
            "at_cap_s" => round(self.at_cap_s),
            "full_burst_s" => round(self.full_burst_s),
            "burst_granted_share_of_owed" => round(part),
        }
    }
}
