//! What is written and summed up of pools (simulator.md 8, 9): values hold from an update to the next.

use super::column::{Column, int, num, text};
use super::table::Cell;
use kernel::Kernel;
use std::collections::BTreeMap;
use vocab::{ObjectId, Resource, Resources, Share, Span, Time, Volume};
use yson::Value;

/// Columns of `pools.csv`.
pub const COLUMNS: &[Column] = &[
    int("t_ms"),
    text("tree"),
    text("pool"),
    num("demand_cpu"),
    num("usage_cpu"),
    num("fair_share_cpu"),
    num("strong_cpu"),
    num("integral_cpu"),
    num("free_cpu"),
    num("guarantee_cpu"),
    num("accumulated_volume_cpu_s"),
    num("integral_pool_capacity_cpu_s"),
    num("estimated_burst_usage_duration_s"),
    num("limits_cpu"),
    int("running_operations"),
    int("pending_operations"),
    int("lightweight_operations"),
    int("allocations"),
    int("starving"),
    num("satisfaction"),
    num("demand_memory"),
    num("usage_memory"),
    num("fair_share_memory"),
    num("demand_gpu"),
    num("usage_gpu"),
    num("fair_share_gpu"),
];

/// A pool since its last update.
#[derive(Clone, Copy, Default, Debug)]
pub struct State {
    demand: Resources,
    usage: Resources,
    fair_share: Share,
    strong: f64,
    integral: f64,
    free: f64,
    volume: f64,
    satisfaction: f64,
    total: Resources,
    now: Now,
}

/// What is asked for only when a sample is taken.
#[derive(Clone, Copy, Default, Debug)]
struct Now {
    capacity: Option<f64>,
    burst_s: Option<f64>,
    limits_cpu: f64,
    operations: i64,
    running: i64,
    lightweight: i64,
    allocations: i64,
    /// 0: no, 1: it starves, 2: aggressively.
    starving: i64,
}

/// Attributes of a pool that [`Now`] is made of.
const OF_NOW: &[&str] = &[
    "integral_pool_capacity",
    "estimated_burst_usage_duration_seconds",
    "resource_limits",
    "operation_count",
    "running_operation_count",
    "lightweight_running_operation_count",
    "starvation_status",
    "parent",
];

/// Of a pool, over the whole run. Core-seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    /// Sum of the fair share.
    pub fair_share: f64,
    /// Part of it that integral guarantees gave.
    pub integral: f64,
    /// Sum of the usage.
    pub usage: f64,
    /// Sum of the demand.
    pub demand: f64,
    /// Sum of |usage - fair share|.
    pub usage_deviation: f64,
    /// Sum of min(demand, guarantee).
    pub guaranteed: f64,
    /// Sum of what was missing of that.
    pub violation: f64,
    /// The same without the time that starvation and preemption take.
    pub violation_after_timeout: f64,
    /// Of the samples: smallest, largest and last volume.
    pub volume: Option<(f64, f64, f64)>,
    owed: f64,
    owed_since: Time,
}

/// All pools of all trees.
pub struct Pools {
    pools: BTreeMap<(String, String), (State, Sums)>,
    since: Time,
    /// Time that may pass before what is owed is there.
    patience: Span,
}

impl Pools {
    /// Nothing yet. `patience`: starvation timeout, preemption timeout and two heartbeats.
    pub fn new(now: Time, patience: Span) -> Pools {
        Pools { pools: BTreeMap::new(), since: now, patience }
    }

    /// The values up to now are over.
    fn close(&mut self, now: Time) {
        let seconds = now.since(self.since).as_secs_f64();
        self.since = now;
        if seconds == 0.0 {
            return;
        }
        for (state, sums) in self.pools.values_mut() {
            let total = state.total.cpu.as_f64();
            let fair = state.fair_share[Resource::Cpu] * total;
            let (usage, demand) = (state.usage.cpu.as_f64(), state.demand.cpu.as_f64());
            let owed = demand.min((state.strong + state.integral) * total);
            let missing = (owed - usage).max(0.0);
            sums.fair_share += fair * seconds;
            sums.integral += state.integral * total * seconds;
            sums.usage += usage * seconds;
            sums.demand += demand * seconds;
            sums.usage_deviation += (usage - fair).abs() * seconds;
            sums.guaranteed += owed * seconds;
            sums.violation += missing * seconds;
            if now.since(sums.owed_since) > self.patience {
                sums.violation_after_timeout += missing * seconds;
            }
        }
    }

    /// Shares were computed: new values hold.
    pub fn updated(&mut self, now: Time, kernel: &Kernel) {
        self.close(now);
        let scheduler = kernel.scheduler();
        let volumes: BTreeMap<ObjectId, Volume> =
            scheduler.export_volumes(None).into_iter().map(|(_, pool, volume)| (pool, volume)).collect();
        let snapshot = scheduler.snapshot();
        for tree in snapshot.trees() {
            for name in tree.pool_names() {
                let Some(view) = tree.pool(name) else { continue };
                let volume = kernel.pool_id(&tree.name, name).and_then(|id| volumes.get(&id));
                let state = State {
                    demand: view.resource_demand,
                    usage: scheduler.pool_usage(&tree.name, name).unwrap_or(view.resource_usage),
                    fair_share: view.fair_share.total,
                    strong: view.fair_share.strong_guarantee[Resource::Cpu],
                    integral: view.fair_share.integral_guarantee[Resource::Cpu],
                    free: view.fair_share.weight_proportional[Resource::Cpu],
                    volume: volume.map_or(0.0, |v| v.cpu.as_f64()),
                    satisfaction: view.satisfaction,
                    total: tree.resource_limits,
                    now: Now::default(),
                };
                let key = (tree.name.to_string(), name.to_string());
                let (old, sums) = self.pools.entry(key).or_default();
                let total = state.total.cpu.as_f64();
                let owed = state.demand.cpu.as_f64().min((state.strong + state.integral) * total);
                if owed > sums.owed * (1.0 + 1e-9) {
                    sums.owed_since = now;
                }
                sums.owed = owed;
                *old = state;
            }
        }
    }

    /// What is in use now, before a sample is taken of it. `allocations`: of operations that are directly in
    /// a pool, by tree and pool.
    pub fn look(&mut self, kernel: &Kernel, allocations: &BTreeMap<(String, String), i64>) {
        let mut parents: BTreeMap<(&str, &str), String> = BTreeMap::new();
        for ((tree, pool), (state, _)) in &mut self.pools {
            if let Ok(usage) = kernel.scheduler().pool_usage(tree, pool) {
                state.usage = usage;
            }
            let snapshot = kernel.scheduler().snapshot();
            let attributes = snapshot.tree(tree).and_then(|t| t.pool_attributes(pool, Some(OF_NOW)));
            let Some(attributes) = attributes else { continue };
            let inner = |name: &str| attributes.get(name)?.get("cpu")?.as_f64();
            let count = |name: &str| attributes.get(name).and_then(Value::as_i64).unwrap_or_default();
            state.now = Now {
                capacity: inner("integral_pool_capacity"),
                burst_s: attributes.get("estimated_burst_usage_duration_seconds").and_then(Value::as_f64),
                limits_cpu: inner("resource_limits").unwrap_or_default(),
                operations: count("operation_count"),
                running: count("running_operation_count"),
                lightweight: count("lightweight_running_operation_count"),
                allocations: 0,
                starving: match attributes.get("starvation_status").and_then(Value::as_str) {
                    Some("starving") => 1,
                    Some("aggressively_starving") => 2,
                    _ => 0,
                },
            };
            let parent = attributes.get("parent").and_then(Value::as_str).unwrap_or_default();
            parents.insert((tree, pool), parent.to_owned());
        }
        let mut sums: BTreeMap<(String, String), i64> = BTreeMap::new();
        for ((tree, pool), count) in allocations {
            let mut at = pool.clone();
            while let Some(parent) = parents.get(&(tree.as_str(), at.as_str())).cloned() {
                *sums.entry((tree.clone(), at)).or_default() += count;
                at = parent;
            }
        }
        for (key, (state, _)) in &mut self.pools {
            state.now.allocations = sums.get(key).copied().unwrap_or_default();
        }
    }

    /// Rows of all pools.
    pub fn sample(&mut self, elapsed: Span) -> Vec<Vec<Cell>> {
        let rows = self.pools.iter_mut().map(|((tree, pool), (state, sums))| {
            let (v, now) = (state.volume, state.now);
            let (min, max, _) = sums.volume.unwrap_or((v, v, v));
            sums.volume = Some((min.min(v), max.max(v), v));
            let share = |r: Resource| state.fair_share[r] * state.total.get(r);
            let cores = |part: f64| part * state.total.cpu.as_f64();
            let finite = |x: f64| if x.is_finite() { Cell::Number(x) } else { Cell::Empty };
            let mut row = vec![
                Cell::Int(elapsed.as_millis() as i64),
                Cell::text(tree),
                Cell::text(pool),
                Cell::Number(state.demand.cpu.as_f64()),
                Cell::Number(state.usage.cpu.as_f64()),
                Cell::Number(share(Resource::Cpu)),
                Cell::Number(cores(state.strong)),
                Cell::Number(cores(state.integral)),
                Cell::Number(cores(state.free)),
                Cell::Number(cores(state.strong + state.integral)),
                Cell::Number(v),
                now.capacity.map_or(Cell::Empty, Cell::Number),
                now.burst_s.map_or(Cell::Empty, Cell::Number),
                Cell::Number(now.limits_cpu),
                Cell::Int(now.running),
                Cell::Int(now.operations - now.running),
                Cell::Int(now.lightweight),
                Cell::Int(now.allocations),
                Cell::Int(now.starving),
                finite(state.satisfaction),
            ];
            for r in [Resource::Memory, Resource::Gpu] {
                row.push(Cell::Number(state.demand.get(r)));
                row.push(Cell::Number(state.usage.get(r)));
                row.push(Cell::Number(share(r)));
            }
            row
        });
        rows.collect()
    }

    /// The end of the run.
    pub fn finish(mut self, now: Time) -> BTreeMap<(String, String), Sums> {
        self.close(now);
        self.pools.into_iter().map(|(key, (_, sums))| (key, sums)).collect()
    }
}
