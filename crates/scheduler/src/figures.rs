//! The few numbers of each pool that are worth remembering over time.

use crate::config::GuaranteeType;
use crate::snapshot::{KindInfo, TreeSnapshot};
use std::sync::Arc;

/// Largest components, as parts of the cluster: the Orchid's `dominant_*` attributes (fair-share.md 12).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PoolFigures {
    /// `dominant_demand_share`.
    pub demand: f64,
    /// `dominant_usage_share`.
    pub usage: f64,
    /// `detailed_dominant_fair_share/total`.
    pub fair_share: f64,
    /// `detailed_dominant_fair_share/strong_guarantee`.
    pub strong_guarantee: f64,
    /// `detailed_dominant_fair_share/integral_guarantee`.
    pub integral_guarantee: f64,
    /// `detailed_dominant_fair_share/weight_proportional`.
    pub weight_proportional: f64,
    /// `accumulated_resource_ratio_volume`, cluster-seconds; 0 without an integral guarantee.
    pub volume: f64,
}

impl TreeSnapshot {
    /// Figures of all pools, by name.
    pub fn pool_figures(&self) -> impl Iterator<Item = (&Arc<str>, PoolFigures)> {
        self.pools.iter().map(|(name, index)| {
            let element = &self.elements[index];
            let out = &element.output();
            let integral = match &element.kind {
                KindInfo::Pool(p) => p.config.integral_guarantees.guarantee_type != GuaranteeType::None,
                KindInfo::Operation(_) => false,
            };
            let volume = out.integral.filter(|_| integral).map_or(0.0, |i| i.accumulated_ratio_volume);
            let fair = &out.fair_share;
            let figures = PoolFigures {
                demand: out.demand_share.max_component(),
                usage: out.usage_share.max_component(),
                fair_share: fair.total.max_component(),
                strong_guarantee: fair.strong_guarantee.max_component(),
                integral_guarantee: fair.integral_guarantee.max_component(),
                weight_proportional: fair.weight_proportional.max_component(),
                volume,
            };
            (name, figures)
        })
    }
}
