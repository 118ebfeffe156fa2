//! What is written and summed up of pools (simulator.md 8, 9): shares hold from an update to the next, usage
//! until something starts or ends.

use super::column::{Column, int, num, text};
use super::table::Cell;
use crate::metrics::pool::{Held, Integrals};
use crate::metrics::volume::Account;
use crate::metrics::{Hunger, Window, round};
use kernel::Kernel;
use scheduler::{PoolLook, Starved};
use std::collections::BTreeMap;
use vocab::{ObjectId, Resource, Span, Time, Volume};
use yson::{Map, Value};

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
#[derive(Clone, Debug)]
struct State {
    held: Held,
    free: f64,
    volume: f64,
    satisfaction: f64,
    now: Now,
    parent: Option<String>,
    /// No pools are below it.
    is_leaf: bool,
    integrals: Integrals,
    /// Of the samples: smallest, largest and last volume.
    volumes: Option<(f64, f64, f64)>,
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

/// Tree and pool.
type Place = (String, String);

/// All pools of all trees.
pub struct Pools {
    pools: BTreeMap<Place, State>,
    /// Time that may pass before what is owed is there.
    patience: Span,
    hunger: Hunger<Place>,
    windows: [(&'static str, Window<Place>); 2],
}

impl Pools {
    /// Nothing yet. `patience`: starvation timeout, preemption timeout and two heartbeats.
    pub fn new(now: Time, patience: Span) -> Pools {
        let window = |minutes: u64| Window::new(now, Span::from_secs(60 * minutes));
        Pools {
            pools: BTreeMap::new(),
            patience,
            hunger: Hunger::default(),
            windows: [("5m", window(5)), ("1h", window(60))],
        }
    }

    /// Shares were computed: new values hold.
    pub fn updated(&mut self, now: Time, kernel: &Kernel) {
        for state in self.pools.values_mut() {
            state.integrals.close(now, &state.held, self.patience);
        }
        for (_, window) in &mut self.windows {
            if window.is_due(now) {
                let leaves = self.pools.iter().filter(|(_, state)| state.is_leaf);
                window.look(now, leaves.map(|(place, state)| (place.clone(), state.integrals.deficit())));
            }
        }
        let scheduler = kernel.scheduler();
        let volumes: BTreeMap<ObjectId, Volume> =
            scheduler.export_volumes(None).into_iter().map(|(_, pool, volume)| (pool, volume)).collect();
        let snapshot = scheduler.snapshot();
        for tree in snapshot.trees() {
            let tolerance = scheduler
                .tree_config(&tree.name)
                .map_or(1.0, |config| config.fair_share_starvation_tolerance);
            let mut usages = scheduler.pool_usages(&tree.name).into_iter().flatten().peekable();
            let mut held_of = |look: &PoolLook<'_>| {
                while usages.next_if(|(name, _)| *name < look.name).is_some() {}
                let usage = usages.next_if(|(name, _)| *name == look.name);
                let strong = look.view.fair_share.strong_guarantee;
                let wanted = look.view.demand_share.max_component() - strong.max_component();
                let cores = tree.resource_limits.cpu.as_f64();
                Held {
                    demand: look.view.resource_demand,
                    usage: usage.map_or(look.view.resource_usage, |(_, usage)| usage),
                    fair_share: look.view.fair_share.total,
                    strong: strong[Resource::Cpu],
                    integral: look.view.fair_share.integral_guarantee[Resource::Cpu],
                    total: tree.resource_limits,
                    tolerance,
                    account: look.integral.map(|out| Account::of(out, wanted, cores)),
                }
            };
            let volume_of = |look: &PoolLook<'_>| {
                let id = if volumes.is_empty() { None } else { kernel.pool_id(&tree.name, look.name) };
                id.and_then(|id| volumes.get(&id)).map_or(0.0, |volume| volume.cpu.as_f64())
            };
            // Pools that are gone hold nothing.
            let gone = |state: &mut State| {
                state.held = Held { total: tree.resource_limits, ..Held::default() };
                state.integrals.begin(now, &state.held);
            };
            let mut newcomers = Vec::new();
            // Both lists are sorted by name: nobody is looked for.
            let first = (tree.name.to_string(), String::new());
            let of_tree = self.pools.range_mut(first..).take_while(|(place, _)| *place.0 == *tree.name);
            let mut states = of_tree.peekable();
            for look in tree.pools() {
                while let Some((_, state)) = states.next_if(|(place, _)| *place.1 < **look.name) {
                    gone(state);
                }
                let (held, volume) = (held_of(&look), volume_of(&look));
                match states.next_if(|(place, _)| *place.1 == **look.name) {
                    Some((_, state)) => state.updated(now, held, volume, &look),
                    None => newcomers.push((look, held, volume)),
                }
            }
            states.for_each(|(_, state)| gone(state));
            for (look, held, volume) in newcomers {
                let mut state = State::new(now);
                state.updated(now, held, volume, &look);
                self.pools.insert((tree.name.to_string(), look.name.to_string()), state);
            }
        }
        let hungry = snapshot.trees().flat_map(|tree| {
            tree.starving().filter_map(|(who, aggressively)| match who {
                Starved::Pool(name) => Some(((tree.name.to_string(), name.to_string()), aggressively)),
                Starved::Operation(_) => None,
            })
        });
        self.fed(now, hungry);
    }

    fn fed(&mut self, now: Time, hungry: impl Iterator<Item = (Place, bool)>) {
        for (place, time, aggressively) in self.hunger.now(now, hungry) {
            if let Some(state) = self.pools.get_mut(&place) {
                state.integrals.starved.add(time, aggressively);
            }
        }
    }

    /// Something was started or has ended in a pool: its usage is another one, and that of all above.
    pub fn touched(&mut self, now: Time, kernel: &Kernel, place: Place) {
        let mut at = Some(place);
        while let Some(place) = at {
            let Some(state) = self.pools.get_mut(&place) else { return };
            state.integrals.close(now, &state.held, self.patience);
            if let Ok(usage) = kernel.scheduler().pool_usage(&place.0, &place.1) {
                state.held.usage = usage;
            }
            state.integrals.begin(now, &state.held);
            at = state.parent.clone().map(|parent| (place.0, parent));
        }
    }

    /// What is in use now, before a sample is taken of it. `allocations`: of operations that are directly in
    /// a pool, by tree and pool.
    pub fn look(&mut self, now: Time, kernel: &Kernel, allocations: &BTreeMap<(String, String), i64>) {
        let mut parents: BTreeMap<(&str, &str), String> = BTreeMap::new();
        for ((tree, pool), state) in &mut self.pools {
            if let Ok(usage) = kernel.scheduler().pool_usage(tree, pool) {
                state.integrals.close(now, &state.held, self.patience);
                state.held.usage = usage;
                state.integrals.begin(now, &state.held);
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
        for (key, state) in &mut self.pools {
            state.now.allocations = sums.get(key).copied().unwrap_or_default();
        }
    }

    /// Rows of all pools.
    pub fn sample(&mut self, elapsed: Span) -> Vec<Vec<Cell>> {
        let rows = self.pools.iter_mut().map(|((tree, pool), state)| {
            let (v, now, held) = (state.volume, state.now, state.held);
            let (min, max, _) = state.volumes.unwrap_or((v, v, v));
            state.volumes = Some((min.min(v), max.max(v), v));
            let share = |r: Resource| held.fair_share[r] * held.total.get(r);
            let cores = |part: f64| part * held.total.cpu.as_f64();
            let finite = |x: f64| if x.is_finite() { Cell::Number(x) } else { Cell::Empty };
            let mut row = vec![
                Cell::Int(elapsed.as_millis() as i64),
                Cell::text(tree),
                Cell::text(pool),
                Cell::Number(held.demand.cpu.as_f64()),
                Cell::Number(held.usage.cpu.as_f64()),
                Cell::Number(share(Resource::Cpu)),
                Cell::Number(cores(held.strong)),
                Cell::Number(cores(held.integral)),
                Cell::Number(cores(state.free)),
                Cell::Number(cores(held.strong + held.integral)),
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
                row.push(Cell::Number(held.demand.get(r)));
                row.push(Cell::Number(held.usage.get(r)));
                row.push(Cell::Number(share(r)));
            }
            row
        });
        rows.collect()
    }

    /// The end of the run.
    pub fn finish(mut self, now: Time) -> Totals {
        self.fed(now, std::iter::empty());
        for state in self.pools.values_mut() {
            state.integrals.close(now, &state.held, self.patience);
        }
        Totals(self)
    }
}

/// What pools came to.
pub struct Totals(Pools);

impl Totals {
    /// Roots of all trees.
    pub fn roots(&self) -> impl Iterator<Item = (&str, &Integrals)> {
        let roots = self.0.pools.iter().filter(|((_, pool), _)| pool == "<Root>");
        roots.map(|((tree, _), state)| (tree.as_str(), &state.integrals))
    }

    /// Deficits in windows, of the pools of a tree that have no pools below them, by the length of the window.
    pub fn deficits(&self) -> Map {
        self.0.windows.iter().map(|(name, window)| (*name, window.of_all())).collect()
    }

    /// Pools of a tree.
    pub fn of_tree(&self, tree: &str) -> impl Iterator<Item = (&Place, Map)> {
        self.0.pools.iter().filter(move |((t, _), _)| t == tree).map(|(place, state)| {
            let mut map = state.integrals.to_map();
            if let Some((min, max, last)) = state.volumes {
                map.insert("min_volume_cpu_s", round(min));
                map.insert("max_volume_cpu_s", round(max));
                map.insert("final_volume_cpu_s", round(last));
            }
            if state.held.account.is_some() {
                map.insert("integral", state.integrals.volumes.to_map());
            }
            if state.is_leaf {
                let windows = self.0.windows.iter();
                let deficits: Map = windows.map(|(name, window)| (*name, window.of(place))).collect();
                map.insert("windowed_deficit_cpu_s", deficits);
            }
            (place, map)
        })
    }
}

impl State {
    /// Shares were computed.
    fn updated(&mut self, now: Time, held: Held, volume: f64, look: &PoolLook<'_>) {
        self.held = held;
        self.free = look.view.fair_share.weight_proportional[Resource::Cpu];
        self.volume = volume;
        self.satisfaction = look.view.satisfaction;
        let parent = look.parent.map(|parent| &**parent);
        if self.parent.as_deref() != parent {
            self.parent = parent.map(str::to_owned);
        }
        self.is_leaf = look.is_leaf;
        self.integrals.begin(now, &self.held);
        if let Some(out) = look.integral {
            self.integrals.volumes.refilled(out);
        }
    }

    fn new(now: Time) -> State {
        State {
            held: Held::default(),
            free: 0.0,
            volume: 0.0,
            satisfaction: 0.0,
            now: Now::default(),
            parent: None,
            is_leaf: true,
            integrals: Integrals::new(now),
            volumes: None,
        }
    }
}
