//! Integral guarantees: the volume, how fast it comes and goes, and what bounds the share it gives.

use super::{EPS, Subject};
use crate::config::GuaranteeType;
use vocab::Share;

/// Burst or relaxed guarantee of a pool (fair-share.md 6.6, 6.7, 7). Ratios are parts of the cluster,
/// volumes cluster-seconds.
#[derive(Clone, PartialEq, Debug)]
pub struct IntegralGuarantee {
    /// Kind.
    pub kind: GuaranteeType,
    /// Options without which the guarantee gives nothing.
    pub missing: Vec<&'static str>,
    /// Refill.
    pub flow_ratio: f64,
    /// Most that a burst pool is given; after an overcommitment was scaled away.
    pub burst_ratio: f64,
    /// As configured.
    pub specified_burst_ratio: f64,
    /// Most that a relaxed pool is given, as a ratio: flow x multiplier.
    pub relaxed_limit: f64,
    /// What is saved up.
    pub volume: f64,
    /// What can be saved up.
    pub capacity: f64,
    /// What the volume allows: volume / smooth period.
    pub share_by_volume: f64,
    /// Seconds over which a volume may be spent at the least.
    pub smooth_period: f64,
    /// What it is given, and spends: the largest component.
    pub given: f64,
    /// The part of the fair share that it covers.
    pub part: Share,
    /// Why not more.
    pub bound: IntegralBound,
    /// Where the volume goes.
    pub trend: Trend,
}

/// What bounds an integral share.
#[derive(Clone, PartialEq, Debug)]
pub enum IntegralBound {
    /// Options are missing, or the type is `none`.
    Inert,
    /// Nothing more is wanted.
    Demand,
    /// The burst guarantee.
    Burst,
    /// The volume, spread over the smooth period.
    Volume,
    /// The flow times the multiplier.
    Multiplier,
    /// What used guarantees of the first level leave to relaxed pools.
    Leftover {
        /// So much in all, in the pool's resource.
        available: f64,
        /// Relaxed pools that share it.
        pools: usize,
    },
    /// A limit of the pool itself.
    OwnLimit,
    /// A limit of a pool above.
    AncestorLimit {
        /// Its name.
        pool: String,
    },
}

/// Where the volume goes at the present rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Trend {
    /// It cannot grow: what flows in is lost, or goes to others.
    Full,
    /// It grows.
    Filling {
        /// Until it is full.
        seconds: f64,
    },
    /// As much comes as goes.
    Steady,
    /// More is spent than comes.
    Draining {
        /// How long the present share can be held; then it begins to sink.
        seconds: f64,
    },
    /// The volume bounds the share, and both approach what flows in (fair-share.md 7.2).
    Settling,
}

pub(super) fn explain(subject: Subject<'_>) -> Option<IntegralGuarantee> {
    let pool = subject.pool().filter(|_| !subject.is_root())?;
    let config = &pool.config.integral_guarantees;
    let kind = config.guarantee_type;
    if kind == GuaranteeType::None && !pool.config.has_integral_resources() {
        return None;
    }
    let out = &subject.element().output();
    let mut missing = Vec::new();
    if kind == GuaranteeType::None {
        missing.push("guarantee_type");
    }
    if config.resource_flow.is_empty() {
        missing.push("resource_flow");
    }
    if kind == GuaranteeType::Burst && config.burst_guarantee_resources.is_empty() {
        missing.push("burst_guarantee_resources");
    }
    let i = out.integral.unwrap_or_default();
    let mut guarantee = IntegralGuarantee {
        kind,
        missing,
        flow_ratio: out.resource_flow_ratio,
        burst_ratio: out.burst_ratio,
        specified_burst_ratio: i.specified_burst_ratio,
        relaxed_limit: i.share_limit,
        volume: i.accumulated_ratio_volume,
        capacity: i.ratio_capacity,
        share_by_volume: i.share_ratio_by_volume,
        smooth_period: subject.tree.config.integral_smooth_period.as_secs_f64(),
        given: i.last_share,
        part: out.fair_share.integral_guarantee,
        bound: IntegralBound::Inert,
        trend: Trend::Steady,
    };
    guarantee.bound = bound(subject, &guarantee);
    guarantee.trend = trend(&guarantee);
    Some(guarantee)
}

fn bound(subject: Subject<'_>, g: &IntegralGuarantee) -> IntegralBound {
    if !g.missing.is_empty() {
        return IntegralBound::Inert;
    }
    let own = match g.kind {
        GuaranteeType::None => return IntegralBound::Inert,
        GuaranteeType::Burst => (g.burst_ratio, IntegralBound::Burst),
        GuaranteeType::Relaxed => (g.relaxed_limit, IntegralBound::Multiplier),
    };
    if g.given >= own.0.min(g.share_by_volume) - EPS {
        return if g.share_by_volume < own.0 { IntegralBound::Volume } else { own.1 };
    }
    let out = &subject.element().output();
    let needed = subject
        .present()
        .map(|r| out.limited_demand_share[r] - out.strong_guarantee_share[r])
        .fold(0.0, f64::max);
    let demanded =
        subject.present().map(|r| out.demand_share[r] - out.strong_guarantee_share[r]).fold(0.0, f64::max);
    if g.given >= demanded - EPS {
        return IntegralBound::Demand;
    }
    if let Some(full) =
        std::iter::once(subject).chain(subject.ancestors()).find(|a| !a.is_root() && is_full(*a))
    {
        return match full.pool() {
            Some(pool) if full.index != subject.index => {
                IntegralBound::AncestorLimit { pool: pool.name.to_string() }
            }
            _ => IntegralBound::OwnLimit,
        };
    }
    // A burst pool takes what its demand takes of the guarantee: the proportions of the demand count.
    if g.kind == GuaranteeType::Burst || g.given >= needed - EPS {
        return IntegralBound::Demand;
    }
    let (available, pools) = leftover(subject);
    IntegralBound::Leftover { available, pools }
}

/// Has the guarantee reached the limits in some resource that is wanted?
fn is_full(subject: Subject<'_>) -> bool {
    let out = &subject.element().output();
    let guarantee = out.strong_guarantee_share + out.proposed_integral_share;
    subject.present().any(|r| out.demand_share[r] > 0.0 && guarantee[r] >= out.limits_share[r] - EPS)
}

/// What the used guarantees of the first level leave to relaxed pools (fair-share.md 6.7), and how many
/// of those share it.
fn leftover(subject: Subject<'_>) -> (f64, usize) {
    let tree = subject.tree;
    let resource = subject.resource();
    let is_relaxed = |s: Subject<'_>| {
        s.pool().is_some_and(|p| p.config.integral_guarantees.guarantee_type == GuaranteeType::Relaxed)
    };
    let mut relaxed_below = vec![Share::ZERO; tree.elements.len()];
    let mut pools = 0;
    for index in 0..tree.elements.len() {
        let pool = Subject { tree, index };
        if !is_relaxed(pool) {
            continue;
        }
        let given = pool.element().output().proposed_integral_share;
        if pool.element().output().integral.is_some_and(|i| i.share_ratio_by_volume > 0.0) {
            pools += 1;
        }
        for above in std::iter::once(pool).chain(pool.ancestors()) {
            relaxed_below[above.index] += given;
        }
    }
    let root = Subject { tree, index: 0 };
    let available = root.children().fold(Share::ONES, |available, child| {
        let out = &child.element().output();
        let guarantee = out.strong_guarantee_share + out.proposed_integral_share - relaxed_below[child.index];
        (available - guarantee.min(out.demand_share)).max(Share::ZERO)
    });
    (available[resource], pools)
}

fn trend(g: &IntegralGuarantee) -> Trend {
    let surplus = g.flow_ratio - g.given;
    // Volumes are kept in hundredths of a core: an exact equality is not to be expected.
    let still = 1e-2 * g.flow_ratio.max(g.given);
    if g.bound == IntegralBound::Volume && surplus.abs() > still {
        return Trend::Settling;
    }
    if surplus > still {
        if g.volume >= g.capacity * (1.0 - 1e-6) {
            return Trend::Full;
        }
        return Trend::Filling { seconds: (g.capacity - g.volume) / surplus };
    }
    if surplus >= -still {
        return Trend::Steady;
    }
    // The share can be held until the volume over the smooth period falls below it.
    Trend::Draining { seconds: ((g.volume - g.given * g.smooth_period) / -surplus).max(0.0) }
}
