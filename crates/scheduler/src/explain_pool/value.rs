//! An explanation for programs.

use super::{
    GuaranteeCut, IntegralBound, IntegralGuarantee, Limit, LimitSource, Outcome, PoolExplanation,
    StrongGuarantee, Trend,
};
use crate::config::guarantee_type_name;
use yson::{Map, Value};

impl PoolExplanation {
    /// As a map; `text` is the explanation in words, line by line.
    pub fn to_value(&self) -> Value {
        let fair = &self.fair_share;
        let siblings: Vec<Value> = self
            .siblings
            .iter()
            .map(|s| {
                yson::map! {
                    "id" => s.id.as_str(),
                    "is_self" => s.is_self,
                    "is_pool" => s.is_pool,
                    "weight" => s.weight,
                    "demand" => s.demand,
                    "guarantee" => s.guarantee,
                    "fair_share" => s.fair_share,
                    "wants_more" => s.wants_more,
                }
                .into()
            })
            .collect();
        let text = self.to_string();
        yson::map! {
            "pool" => &*self.pool,
            "pool_tree" => &*self.tree,
            "time" => self.time,
            "total_resource_limits" => self.total.to_value(),
            "dominant_resource" => self.resource.as_str(),
            "demand_share" => self.demand.to_value(),
            "limited_demand_share" => self.limited_demand.to_value(),
            "usage_share" => self.usage.to_value(),
            "detailed_fair_share" => yson::map! {
                "strong_guarantee" => fair.strong_guarantee.to_value(),
                "integral_guarantee" => fair.integral_guarantee.to_value(),
                "weight_proportional" => fair.weight_proportional.to_value(),
                "total" => fair.total.to_value(),
            },
            "outcome" => outcome(&self.outcome),
            "siblings" => siblings,
            "more_siblings" => self.more_siblings,
            "changes" => self.changes.iter().map(String::as_str).collect::<Vec<_>>(),
            "text" => text.lines().collect::<Vec<_>>(),
        }
        .with_some("parent", self.parent.as_deref())
        .with_some("strong_guarantee", self.strong.as_ref().map(strong))
        .with_some("integral_guarantee", self.integral.as_ref().map(integral))
        .with_some(
            "fifo",
            self.fifo.as_ref().map(|f| {
                let first_short = f.first_short.as_ref().map(|(id, share, demand)| {
                    yson::map! { "id" => id.as_str(), "fair_share" => *share, "demand" => *demand }
                });
                yson::map! { "operations" => f.operations, "satisfied" => f.satisfied, "empty" => f.empty }
                    .with_some("first_short", first_short)
            }),
        )
        .into()
    }
}

fn limit(limit: &Limit) -> Map {
    let (source, ratio) = match limit.source {
        LimitSource::ResourceLimits => ("resource_limits", None),
        LimitSource::MaxShareRatio(ratio) => ("max_share_ratio", Some(ratio)),
        LimitSource::TagFilter => ("scheduling_tag_filter", None),
        LimitSource::BestAllocation => ("best_allocation_share", None),
    };
    yson::map! {
        "resource" => limit.resource.as_str(),
        "amount" => limit.amount,
        "share" => limit.share,
        "source" => source,
    }
    .with_some("max_share_ratio", ratio)
}

fn outcome(outcome: &Outcome) -> Map {
    let named = |name: &str| yson::map! { "reason" => name };
    match outcome {
        Outcome::NoNodes => named("no_nodes"),
        Outcome::NoDemand { waiting } => named("no_demand").with("waiting_operation_count", *waiting),
        Outcome::Satisfied => named("satisfied"),
        Outcome::OwnLimit(l) => named("own_limit").with("limit", limit(l)),
        Outcome::Inside { limits, gangs } => {
            let limits: Vec<Value> =
                limits.iter().map(|(name, l)| limit(l).with("element", name.as_str()).into()).collect();
            named("limits_inside")
                .with("limits", limits)
                .with("gangs", gangs.iter().map(String::as_str).collect::<Vec<_>>())
        }
        Outcome::AncestorLimit { pool, limit: l } => {
            named("ancestor_limit").with("pool", pool.as_str()).with("limit", limit(l))
        }
        Outcome::ClusterFull { resources } => {
            named("cluster_full").with("resources", resources.iter().map(|r| r.as_str()).collect::<Vec<_>>())
        }
        Outcome::NothingFits => named("nothing_fits"),
    }
}

fn strong(s: &StrongGuarantee) -> Map {
    let cut = s.cut.as_ref().map(|cut| match cut {
        GuaranteeCut::OwnLimit(l) => yson::map! { "reason" => "own_limit", "limit" => limit(l) },
        GuaranteeCut::Overcommit { factor, promised } => {
            yson::map! { "reason" => "overcommit", "factor" => *factor, "promised_share" => *promised }
        }
        GuaranteeCut::Parent { pool, factor } => {
            yson::map! { "reason" => "parent", "pool" => pool.as_str(), "factor" => *factor }
        }
    });
    yson::map! {
        "configured" => s.configured.clone(),
        "inferred" => s.inferred.to_value(),
        "promised_share" => s.promised.to_value(),
        "effective_share" => s.effective.to_value(),
        "given_share" => s.given.to_value(),
        "absent_resources" => s.absent.iter().map(|r| r.as_str()).collect::<Vec<_>>(),
    }
    .with_some("cut", cut)
}

fn integral(g: &IntegralGuarantee) -> Map {
    let named = |name: &str| yson::map! { "reason" => name };
    let bound = match &g.bound {
        IntegralBound::Inert => named("options_missing"),
        IntegralBound::Demand => named("demand"),
        IntegralBound::Burst => named("burst_guarantee_resources"),
        IntegralBound::Volume => named("accumulated_volume"),
        IntegralBound::Multiplier => named("relaxed_share_multiplier_limit"),
        IntegralBound::Leftover { available, pools } => {
            named("leftover").with("available", *available).with("relaxed_pool_count", *pools)
        }
        IntegralBound::OwnLimit => named("own_limit"),
        IntegralBound::AncestorLimit { pool } => named("ancestor_limit").with("pool", pool.as_str()),
    };
    let (trend, seconds) = match g.trend {
        Trend::Full => ("full", None),
        Trend::Filling { seconds } => ("filling", Some(seconds)),
        Trend::Steady => ("steady", None),
        Trend::Draining { seconds } => ("draining", Some(seconds)),
        Trend::Settling => ("settling", None),
    };
    yson::map! {
        "guarantee_type" => guarantee_type_name(g.kind),
        "missing_options" => g.missing.clone(),
        "resource_flow_ratio" => g.flow_ratio,
        "burst_ratio" => g.burst_ratio,
        "specified_burst_ratio" => g.specified_burst_ratio,
        "relaxed_share_limit" => g.relaxed_limit,
        "accumulated_ratio_volume" => g.volume,
        "ratio_capacity" => g.capacity,
        "share_by_volume" => g.share_by_volume,
        "smooth_period_seconds" => g.smooth_period,
        "given_ratio" => g.given,
        "given_share" => g.part.to_value(),
        "bound" => bound,
        "trend" => trend,
    }
    .with_some("trend_seconds", seconds)
}
