//! What would give a pool more: advice that follows from what binds it.

use super::units::{amount, counted};
use super::{GuaranteeCut, IntegralBound, IntegralGuarantee, Limit, LimitSource, Outcome, PoolExplanation};

/// What would give a pool more.
pub(super) fn of(e: &PoolExplanation) -> Vec<String> {
    let mut list = Vec::new();
    let raise = |pool: &str, limit: &Limit| match limit.source {
        LimitSource::ResourceLimits => {
            let r = limit.resource;
            format!("a higher resource_limits/{r} of {pool} (now {})", amount(r, limit.amount))
        }
        LimitSource::MaxShareRatio(ratio) => format!("a higher max_share_ratio of {pool} (now {ratio})"),
        LimitSource::TagFilter => {
            format!("more nodes that match the scheduling_tag_filter of {pool}, or a wider filter")
        }
        LimitSource::BestAllocation => format!("jobs of {pool} with memory that fills the nodes better"),
    };
    match &e.outcome {
        Outcome::NoNodes => list.push("nodes that match the tree's nodes_filter".to_owned()),
        Outcome::NoDemand { waiting: 0 } => list.push("operations with pending jobs".to_owned()),
        Outcome::NoDemand { .. } => {
            list.push("a higher max_running_operation_count of the pool or of a pool above".to_owned());
        }
        Outcome::Satisfied => {}
        Outcome::OwnLimit(limit) => list.push(raise("the pool", limit)),
        Outcome::AncestorLimit { pool, limit } => list.push(raise(&format!("pool \"{pool}\""), limit)),
        Outcome::Inside { limits, gangs } => {
            list.extend(limits.iter().map(|(name, limit)| raise(name, limit)));
            if !gangs.is_empty() {
                list.push("smaller gangs, or limits into which they fit".to_owned());
            }
        }
        Outcome::ClusterFull { .. } | Outcome::NothingFits => {
            let others = e.siblings.iter().filter(|s| !s.is_self && s.wants_more).count();
            let by_weight = e.siblings.iter().any(|s| s.fair_share > s.guarantee + super::EPS);
            if others > 0 && by_weight {
                list.push(format!(
                    "a higher weight: {} of the same parent {} more too",
                    counted(others as i64, "sibling", "siblings"),
                    if others == 1 { "wants" } else { "want" },
                ));
            }
            if e.parent.is_none() {
                list.push("more nodes".to_owned());
            } else {
                if e.strong.as_ref().is_none_or(|s| s.cut.is_none()) {
                    list.push("a strong guarantee, or a larger one".to_owned());
                }
                list.push("less demand of siblings, or more nodes".to_owned());
            }
        }
    }
    if let Some(cut) = e.strong.as_ref().and_then(|s| s.cut.as_ref()) {
        list.push(match cut {
            GuaranteeCut::OwnLimit(limit) => {
                format!("for the strong guarantee: {}", raise("the pool", limit))
            }
            GuaranteeCut::Overcommit { .. } => {
                "for the strong guarantee: smaller guarantees of the first level, or more nodes".to_owned()
            }
            GuaranteeCut::Parent { pool, .. } => {
                format!("for the strong guarantee: a larger one of pool \"{pool}\"")
            }
        });
    }
    if let Some(g) = &e.integral {
        list.extend(integral_change(g, e));
    }
    list
}

fn integral_change(g: &IntegralGuarantee, e: &PoolExplanation) -> Option<String> {
    let short = !matches!(e.outcome, Outcome::NoNodes | Outcome::NoDemand { .. } | Outcome::Satisfied);
    Some(match &g.bound {
        IntegralBound::Inert => {
            let missing: Vec<String> =
                g.missing.iter().map(|m| format!("integral_guarantees/{m}")).collect();
            format!("for the integral guarantee: {}", missing.join(" and "))
        }
        _ if !short => return None,
        IntegralBound::Demand => return None,
        IntegralBound::Burst => {
            "for the integral guarantee: a larger integral_guarantees/burst_guarantee_resources".to_owned()
        }
        IntegralBound::Volume => {
            "for the integral guarantee: a larger integral_guarantees/resource_flow, or a time without demand in \
             which the volume fills up"
                .to_owned()
        }
        IntegralBound::Multiplier => "for the integral guarantee: a larger \
             integral_guarantees/relaxed_share_multiplier_limit (at most 10) or integral_guarantees/resource_flow"
            .to_owned(),
        IntegralBound::Leftover { .. } => {
            "for the integral guarantee: the type burst, which is served before relaxed pools".to_owned()
        }
        IntegralBound::OwnLimit => "for the integral guarantee: higher limits of the pool".to_owned(),
        IntegralBound::AncestorLimit { pool } => {
            format!("for the integral guarantee: higher limits of pool \"{pool}\"")
        }
    })
}
