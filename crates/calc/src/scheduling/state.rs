//! The state of everything, element by element, and what of it is new.

use super::world::{BEGINNING, Phase, TREE, World};
use std::collections::BTreeMap;
use vocab::{OperationId, RESOURCES, Resource, Resources, Time};
use yson::{Map, Value};

/// Elements by name, each with its fields.
pub(super) type Elements = BTreeMap<String, Map>;

/// All that an answer may show of the world.
#[derive(Clone, Default, Debug)]
pub(super) struct State {
    pub operations: Elements,
    pub pools: Elements,
    pub nodes: Elements,
}

/// Fields of an operation that are those of the newest update, under their names in the Orchid.
const OF_OPERATION: [&str; 9] = [
    "pool",
    "dominant_fair_share",
    "dominant_usage_share",
    "dominant_demand_share",
    "scheduling_status",
    "starvation_status",
    "starving_since",
    "preemption_priority",
    "unschedulable_reason",
];
/// The same of a pool.
const OF_POOL: [&str; 10] = [
    "parent",
    "is_ephemeral",
    "total_operation_count",
    "running_operation_count",
    "lightweight_running_operation_count",
    "dominant_fair_share",
    "dominant_usage_share",
    "dominant_demand_share",
    "scheduling_status",
    "starvation_status",
];

impl State {
    /// Everything as it is now.
    pub fn of(world: &World) -> State {
        let mut state = State::default();
        let counts = world.allocation_counts();
        for (id, operation) in &world.operations {
            let map = operation_map(world, *id, counts.get(id).copied().unwrap_or_default());
            state.operations.insert(operation.name.clone(), map);
        }
        let snapshot = world.scheduler.snapshot();
        if let Some(tree) = snapshot.tree(TREE) {
            for name in tree.pool_names() {
                let map = tree.pool_attributes(name, Some(&OF_POOL)).unwrap_or_default();
                let mut map = tidy(map, &OF_POOL);
                if let Ok(usage) = world.scheduler.pool_usage(TREE, name) {
                    map.insert("usage", amounts(&usage));
                }
                state.pools.insert(name.to_string(), map);
            }
        }
        for name in world.nodes.keys() {
            state.nodes.insert(name.clone(), node_map(world, name));
        }
        state
    }

    /// What is new or other than before. Fields that are gone are null, and so are elements.
    pub fn since(&self, before: &State) -> State {
        State {
            operations: changes(&before.operations, &self.operations),
            pools: changes(&before.pools, &self.pools),
            nodes: changes(&before.nodes, &self.nodes),
        }
    }
}

fn changes(before: &Elements, now: &Elements) -> Elements {
    let none = Map::new();
    let mut changes = Elements::new();
    for (name, map) in now {
        let old = before.get(name).unwrap_or(&none);
        let mut change = Map::new();
        // What has not been told is nothing: no number, no amounts, no group.
        let is_new = |(key, value): &(&[u8], &Value)| match old.get(key) {
            Some(old) => old != *value,
            None => !is_nothing(value),
        };
        for (key, value) in map.iter().filter(is_new) {
            change.insert(key, value.clone());
        }
        // Of what has ended only that is left, and what it had is gone without saying.
        let has_ended = map.len() == 1;
        for (key, _) in
            old.iter().filter(|(key, value)| !has_ended && !map.contains(key) && !is_nothing(value))
        {
            change.insert(key, Value::Entity);
        }
        if !change.is_empty() || !before.contains_key(name) {
            changes.insert(name.clone(), change);
        }
    }
    for name in before.keys().filter(|name| !now.contains_key(*name)) {
        changes.insert(name.clone(), Map::new().with("gone", true));
    }
    changes
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Int(0) => true,
        Value::Double(x) => *x == 0.0,
        Value::Map(map) => map.is_empty(),
        Value::List(list) => list.iter().all(is_nothing),
        _ => false,
    }
}

fn operation_map(world: &World, id: OperationId, [running, leaving]: [i64; 2]) -> Map {
    let operation = &world.operations[&id];
    let mut map = Map::new();
    map.insert("state", operation.phase.as_str());
    if !matches!(operation.phase, Phase::Pending | Phase::Running) {
        return map;
    }
    if operation.suspended {
        map.insert("suspended", true);
    }
    for (_, admission) in world.scheduler.admissions(id).unwrap_or_default() {
        if let scheduler::Admission::Pending { pool, limit } = admission {
            map.insert("pending_by", yson::map! { "pool" => &*pool, "limit" => limit });
        }
    }
    map.insert("running", running);
    if leaving > 0 {
        map.insert("leaving", leaving);
    }
    map.insert("wanted", operation.tasks.iter().map(|t| t.count).sum::<i64>());
    if let Some(groups) = world.scheduler.preemption_groups_of(id).ok().and_then(|g| g.into_iter().next()) {
        map.insert("groups", groups.sizes.map(Value::from).to_vec());
    }
    let snapshot = world.scheduler.snapshot();
    let published = snapshot.tree(TREE).and_then(|t| t.operation_attributes(id, Some(&OF_OPERATION)));
    for (key, value) in tidy(published.unwrap_or_default(), &OF_OPERATION).iter() {
        map.insert(key, value.clone());
    }
    map
}

fn node_map(world: &World, name: &str) -> Map {
    let node = &world.nodes[name];
    let mut map = yson::map! { "limits" => amounts(&node.limits) };
    let Some(state) = world.scheduler.node(name) else { return map };
    map.insert("usage", amounts(&state.resource_usage));
    let waiting: Vec<Value> =
        node.held.iter().filter(|h| h.waiting).map(|h| world.names.allocation(h.id).into()).collect();
    if !waiting.is_empty() {
        map.insert("waiting", waiting);
    }
    if let Some(pass) = state.last_preemptive_heartbeat_statistics
        && !pass.resource_usage_discount.is_zero()
    {
        map.insert("discount", amounts(&pass.resource_usage_discount));
    }
    if let Some(since) = state.overcommitted_since {
        map.insert("overcommitted_since", seconds(since));
    }
    map
}

/// Fields in their order, without what is null or says nothing, with names and numbers as scripts have
/// them.
fn tidy(map: Map, fields: &[&str]) -> Map {
    const SAYS_NOTHING: [(&str, &str); 3] = [
        ("starvation_status", "non_starving"),
        ("scheduling_status", "normal"),
        ("preemption_priority", "none"),
    ];
    let mut out = Map::new();
    for field in fields {
        let Some(value) = map.get(field).filter(|v| !v.is_entity()) else { continue };
        let text = value.as_str();
        let idle = SAYS_NOTHING.iter().any(|(f, v)| f == field && text == Some(*v));
        if idle || value.as_bool() == Some(false) || *field == "parent" && text == Some("<Root>") {
            continue;
        }
        let (name, value) = match (*field, value) {
            ("starving_since", value) => {
                ("starving_since", value.as_str().and_then(Time::parse).map(seconds).into())
            }
            ("dominant_fair_share", Value::Double(x)) => ("fair_share", rounded(*x)),
            ("dominant_usage_share", Value::Double(x)) => ("usage_share", rounded(*x)),
            ("dominant_demand_share", Value::Double(x)) => ("demand_share", rounded(*x)),
            (field, value) => (field, value.clone()),
        };
        out.insert(name, value);
    }
    out
}

/// Seconds since the beginning of the script.
pub(super) fn seconds(time: Time) -> Value {
    Value::Double(time.since(BEGINNING).as_secs_f64())
}

/// Six decimals: what is behind them is rounding of the computer's, or too little for an allocation.
fn rounded(x: f64) -> Value {
    Value::Double((x * 1e6).round() / 1e6)
}

/// Amounts that are not zero.
pub(super) fn amounts(resources: &Resources) -> Map {
    let there = RESOURCES.into_iter().filter(|r| resources.raw(*r) != 0);
    let value = |r: Resource| match r {
        Resource::Cpu => Value::Double(resources.cpu.as_f64()),
        _ => Value::Int(resources.raw(r)),
    };
    there.map(|r| (r.as_str(), value(r))).collect()
}
