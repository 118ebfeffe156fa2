//! Pool trees in the Orchid (http-api.md 11.2); and, of our own, explanations and histories of pools.

use super::large::LargeMap;
use super::{Found, OrParent, Wanted};
use crate::explanations::PreemptionQuery;
use crate::history_chart::Range;
use crate::{Body, Kernel};
use scheduler::TreeSnapshot;
use vocab::{Failure, OperationId, Time};
use yson::{Map, Value};

/// Subtrees that are shown when they are asked for by name.
const OPAQUE: [&str; 11] = [
    "allocations",
    "pools",
    "operations",
    "operations_by_pool",
    "child_pools_by_pool",
    "pool_explanations",
    "pool_history",
    "pool_savings",
    "preemption_log",
    "starvation_log",
    "metrics",
];

impl Kernel {
    /// `ExplainPool`.
    pub(crate) fn explain_pool(&self, tree: Option<String>, pool: &str) -> Result<Body, Failure> {
        let tree = tree.unwrap_or_else(|| self.default_tree());
        let snapshot = self.scheduler.snapshot();
        let explanation = snapshot.tree(&tree).and_then(|t| t.explain_pool(pool)).ok_or_else(|| {
            Failure::resolve(format!("No such pool \"{pool}\" in tree \"{tree}\""))
                .with("pool", pool)
                .with("pool_tree", tree.as_str())
        })?;
        Ok(Body::Value(explanation.to_value()))
    }

    /// `pool_trees/<tree>` in both forms. `used` keys have led here.
    pub(super) fn orchid_tree(
        &self,
        now: Time,
        tree: &TreeSnapshot,
        rest: &[&str],
        wanted: Wanted<'_>,
        used: usize,
    ) -> Result<Found, Failure> {
        let pool = |name: &str| tree.pool_attributes(name, wanted.fields).map(Value::from);
        let operation = |id: OperationId| tree.operation_attributes(id, wanted.fields).map(Value::from);
        Ok(match rest {
            [] => {
                let mut map: Map =
                    TREE_SCALARS.iter().filter_map(|name| Some((*name, tree_value(tree, name)?))).collect();
                // Large ones are opaque from above: they are there when asked for by name.
                for name in OPAQUE {
                    map.insert(name, Value::Entity);
                }
                (Some(map.into()), used)
            }
            ["pools"] => (Some(LargeMap::Pools.of(tree, wanted)), used + 1),
            ["pools", name, ..] => (pool(name), used + 2).or_parent(used + 1),
            ["operations"] => (Some(LargeMap::Operations.of(tree, wanted)), used + 1),
            ["operations", id, ..] => (id.parse().ok().and_then(operation), used + 2).or_parent(used + 1),
            ["operations_by_pool"] | ["child_pools_by_pool"] => {
                let all: Map = tree.pool_names().map(|name| (&**name, Value::Entity)).collect();
                (Some(all.into()), used + 1)
            }
            ["operations_by_pool", name, id, ..] if tree.pool(name).is_some() => {
                let id = id.parse().ok().filter(|id| tree.is_in_pool(*id, name));
                (id.and_then(operation), used + 3).or_parent(used + 2)
            }
            ["operations_by_pool" | "child_pools_by_pool", ..] => match LargeMap::named(tree, rest) {
                Some((map, keys)) => (Some(map.of(tree, wanted)), used + keys),
                None => (None, used + 1),
            },
            ["pool_explanations"] => {
                let all: Map = tree.pool_names().map(|name| (&**name, Value::Entity)).collect();
                (Some(all.into()), used + 1)
            }
            ["pool_explanations", name, ..] => {
                (tree.explain_pool(name).map(|e| e.to_value()), used + 2).or_parent(used + 1)
            }
            ["allocations", ..] => (Some(self.allocations_of_tree(now, &tree.name)), used + 1),
            ["metrics", ..] => (self.scheduler.metrics(&tree.name).ok().map(|m| m.to_map().into()), used + 1),
            ["starvation_log", ..] => (Some(self.starvations.of_tree(&tree.name)), used + 1),
            ["preemption_log", ..] => {
                let query =
                    PreemptionQuery { tree: Some(tree.name.to_string()), ..PreemptionQuery::default() };
                (Some(self.preemptions(&query)), used + 1)
            }
            ["pool_savings", ..] => (Some(self.savings_of_pools(tree).into()), used + 1),
            ["pool_history"] => {
                let all: Map = self.pools_with_history(&tree.name).map(|n| (&**n, Value::Entity)).collect();
                (Some(all.into()), used + 1)
            }
            ["pool_history", name, query @ ..] => {
                let (range, taken) = Range::from_path(query);
                match self.pool_history(now, &tree.name, name, range) {
                    Some(chart) => (Some(chart?), used + 2 + taken),
                    None => (None, used + 1),
                }
            }
            [name, ..] => (tree_value(tree, name), used + 1).or_parent(used),
        })
    }
}

const TREE_SCALARS: &[&str] = &[
    "config",
    "resource_usage",
    "resource_limits",
    "node_count",
    "node_addresses",
    "pool_count",
    "resource_distribution_info",
    "user_to_ephemeral_pools",
];

fn tree_value(tree: &TreeSnapshot, name: &str) -> Option<Value> {
    Some(match name {
        "config" => tree.config().into(),
        "resource_usage" => tree.resource_usage.to_value(),
        "resource_limits" => tree.resource_limits.to_value(),
        "node_count" => tree.node_names.len().into(),
        "node_addresses" => tree.node_names.iter().map(|n| &**n).collect::<Vec<_>>().into(),
        "pool_count" => tree.pool_names().len().into(),
        "resource_distribution_info" => tree.resource_distribution_info().into(),
        "user_to_ephemeral_pools" => {
            let map: Map = tree
                .user_to_ephemeral_pools()
                .map(|(user, pools)| (user, Value::from(pools.collect::<Vec<_>>())))
                .collect();
            map.into()
        }
        _ => return None,
    })
}
