//! An explanation as a YSON map: what programs read, and the sentences for people beside it.

use super::{Advice, Explanation, NodeReasons, Numbers, Starving, TreeExplanation, Verdict};
use crate::preemption::LimitedElement;
use vocab::{Resource, Resources};
use yson::{Map, Value, map};

/// `verdict/reason` of [`Verdict::NoSlots`].
pub const NO_SLOTS: &str = "no_slots";

impl Explanation {
    /// `{operation_id; time; text; trees}`; `text` are the lines of the explanation in words.
    pub fn to_value(&self) -> Value {
        let text: Vec<Value> = self.to_string().lines().map(Value::from).collect();
        map! {
            "operation_id" => self.operation,
            "time" => self.time,
            "text" => text,
            "trees" => self.trees.iter().map(|tree| (&*tree.tree, tree.to_map())).collect::<Map>(),
        }
        .into()
    }
}

impl TreeExplanation {
    fn to_map(&self) -> Map {
        map! {"pool" => self.pool.as_str(), "verdict" => self.verdict.to_map(), "numbers" => self.numbers.to_map()}
            .with_some("starvation", self.starvation.map(Starving::to_map))
            .with_some("nodes", self.nodes.as_ref().map(NodeReasons::to_map))
            .with("losses", self.losses.iter().map(|record| record.to_map().into()).collect::<Vec<Value>>())
            .with("loss_count", self.loss_count)
            .with("advice", self.advice.iter().map(|advice| advice.to_map().into()).collect::<Vec<Value>>())
    }
}

impl Numbers {
    fn to_map(self) -> Map {
        let [non_preemptible, aggressively_preemptible, preemptible] = self.groups;
        map! {
            "running" => self.running,
            "leaving" => self.leaving,
            "wanted" => self.wanted,
            "resource_usage" => self.usage.to_value(),
            "fair_share" => self.fair_share,
            "usage_share" => self.usage_share,
            "demand_share" => self.demand_share,
            "non_preemptible_job_count" => non_preemptible,
            "aggressively_preemptible_job_count" => aggressively_preemptible,
            "preemptible_job_count" => preemptible,
            "graceful" => self.graceful,
        }
    }
}

impl Starving {
    fn to_map(self) -> Map {
        map! {"below_since" => self.below_since}
            .with_some("starving_since", self.since)
            .with("aggressively", self.aggressively)
            .with("timeout", self.timeout.as_millis() as i64)
            .with_some("aggressive_timeout", self.aggressive_timeout.map(|t| t.as_millis() as i64))
    }
}

impl NodeReasons {
    fn to_map(&self) -> Map {
        map! {
            "total" => self.total,
            "ready" => self.ready,
            "waiting" => self.waiting,
            "offline" => self.offline,
            "preemptible" => self.preemptible,
            "disabled" => self.disabled,
            "no_spare" => self.no_spare,
            "by_reason" => self.by_reason.iter().map(|(reason, n)| (reason.as_str(), *n)).collect::<Map>(),
            "short" => self.short.iter().map(|(r, n)| (r.as_str(), *n)).collect::<Map>(),
        }
    }
}

impl Verdict {
    /// Its name, as in `verdict/reason`.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::WaitsForPool { .. } => "waits_for_pool",
            Verdict::NotRunning => "is_not_running",
            Verdict::Suspended => "suspended",
            Verdict::NothingToStart => "nothing_to_start",
            Verdict::BehindInFifo { .. } => "behind_in_fifo",
            Verdict::WaitsForUpdate => "waits_for_update",
            Verdict::NoNodes => "no_nodes",
            Verdict::NoSlots { .. } => NO_SLOTS,
            Verdict::NoMatchingNode { .. } => "no_matching_node",
            Verdict::TooLarge { .. } => "too_large",
            Verdict::LimitTooSmall { .. } => "limit_too_small",
            Verdict::LimitReached { .. } => "limit_reached",
            Verdict::Backoff { .. } => "backoff",
            Verdict::GracefulHasItsShare => "graceful_has_its_share",
            Verdict::HasItsShare => "has_its_share",
            Verdict::BelowShare => "below_share",
            Verdict::Preempts { .. } => "preempts",
            Verdict::CannotPreempt { .. } => "cannot_preempt",
            Verdict::Starts { .. } => "starts",
        }
    }

    fn to_map(&self) -> Map {
        let map = map! {"reason" => self.name()};
        match self {
            Verdict::WaitsForPool { pool, limit, running, ahead } => map
                .with("pool", &**pool)
                .with("limit", *limit)
                .with("running", *running)
                .with("ahead", *ahead),
            Verdict::BehindInFifo { index, limit } => {
                map.with_some("fifo_index", *index).with("limit", *limit)
            }
            Verdict::NoMatchingNode { filter, element } => {
                map.with("filter", filter.as_str()).with("element", of(element))
            }
            Verdict::TooLarge { needed, short } => map.with("needed", needed.to_value()).with(
                "largest_node",
                short.iter().map(|(r, most)| (r.as_str(), amount(*r, *most))).collect::<Map>(),
            ),
            Verdict::LimitTooSmall { element, limits, needed } => map
                .with("element", of(element))
                .with("limits", limits.to_value())
                .with("needed", needed.to_value()),
            Verdict::LimitReached { element, limits, usage, needed } => map
                .with("element", of(element))
                .with("limits", limits.to_value())
                .with("usage", usage.to_value())
                .with("needed", needed.to_value()),
            Verdict::Backoff { until } => map.with("until", *until),
            Verdict::Preempts { priority, for_ancestor }
            | Verdict::CannotPreempt { priority, for_ancestor } => {
                map.with("priority", *priority).with_some("for_pool", for_ancestor.as_deref())
            }
            Verdict::Starts { nodes } | Verdict::NoSlots { nodes } => map.with("nodes", *nodes),
            Verdict::NotRunning
            | Verdict::Suspended
            | Verdict::NothingToStart
            | Verdict::WaitsForUpdate
            | Verdict::NoNodes
            | Verdict::GracefulHasItsShare
            | Verdict::HasItsShare
            | Verdict::BelowShare => map,
        }
    }
}

impl Advice {
    fn to_map(&self) -> Map {
        let action = |name: &str| map! {"action" => name};
        match self {
            Advice::RaiseRunningLimit { pool, to } => {
                action("raise_running_limit").with("pool", &**pool).with("to", *to)
            }
            Advice::Resume => action("resume"),
            Advice::RaiseLimit { element, in_use, resource, to } => action("raise_limit")
                .with("element", of(element))
                .with("in_use", *in_use)
                .with("resource", resource.as_str())
                .with("to", amount(*resource, *to)),
            Advice::NeedLess { resource, at_most } => action("need_less")
                .with("resource", resource.as_str())
                .with("at_most", amount(*resource, *at_most)),
            Advice::MatchFilter { filter } => action("match_filter").with("filter", filter.as_str()),
            Advice::EnableNodes => action("enable_nodes"),
            Advice::AddNodes => action("add_nodes"),
            Advice::MoreShare => action("more_share"),
            Advice::Wait { until } => action("wait").with_some("until", *until),
            Advice::LowerSpare => action("lower_spare"),
            Advice::OthersFinish => action("others_finish"),
            Advice::EnableAggressiveStarvation => action("enable_aggressive_starvation"),
        }
    }
}

fn of(element: &LimitedElement) -> Map {
    match element {
        LimitedElement::Operation(id) => map! {"operation_id" => *id},
        LimitedElement::Pool(name) => map! {"pool" => &**name},
    }
}

/// In public units: cores, bytes, pieces.
fn amount(resource: Resource, raw: i64) -> Value {
    let one = Resources::from_raw(|r| if r == resource { raw } else { 0 }).to_value();
    one.get(resource.as_str()).cloned().unwrap_or(Value::Int(raw))
}
