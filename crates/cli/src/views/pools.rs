//! The tree of pools: who wants, has, should have and was promised how much.

use crate::output::{Look, Output};
use crate::units::{bar, count, percent, resources};
use crate::views::read::{amounts, flag, integer, number, text};
use crate::views::table::{Grid, Text, or_dash};
use comfy_table::Color;
use std::collections::BTreeMap;
use vocab::Resources;
use yson::{Map, Value};

/// Fields that are asked of the Orchid (http-api.md 11.3).
pub const POOL_FIELDS: [&str; 26] = [
    "parent",
    "full_path",
    "mode",
    "is_ephemeral",
    "weight",
    "dominant_resource",
    "resource_usage",
    "resource_demand",
    "usage_ratio",
    "demand_ratio",
    "fair_share_ratio",
    "min_share_ratio",
    "strong_guarantee_resources",
    "effective_strong_guarantee_resources",
    "detailed_dominant_fair_share",
    "operation_count",
    "running_operation_count",
    "max_operation_count",
    "max_running_operation_count",
    "satisfaction_ratio",
    "starvation_status",
    "integral_guarantee_type",
    "accumulated_resource_ratio_volume",
    "estimated_burst_usage_duration_seconds",
    "specified_resource_flow_ratio",
    "specified_burst_ratio",
];

/// Name of the root in `pools` of the Orchid.
pub const ROOT: &str = "<Root>";

/// One pool in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolRow {
    /// Name.
    pub name: String,
    /// The lines that lead to it.
    pub branch: String,
    /// Divides by arrival.
    pub is_fifo: bool,
    /// Made by the scheduler.
    pub is_ephemeral: bool,
    /// Among its siblings.
    pub weight: f64,
    /// Share of the cluster that its operations could use.
    pub demand: f64,
    /// Share that they use.
    pub usage: f64,
    /// Share that they should use.
    pub fair_share: f64,
    /// Share that was promised.
    pub guarantee: f64,
    /// Flow, burst or relaxed: share that it earns all the time.
    pub flow: f64,
    /// Amounts in use.
    pub used: Resources,
    /// Operations that run.
    pub running: i64,
    /// Operations that wait for their turn.
    pub pending: i64,
    /// At most so many may run.
    pub max_running: i64,
    /// Starving, as the scheduler says.
    pub is_starving: bool,
}

impl PoolRow {
    fn new(name: &str, branch: &str, pool: &Map) -> PoolRow {
        let (all, running) = (integer(pool, "operation_count"), integer(pool, "running_operation_count"));
        PoolRow {
            name: name.to_owned(),
            branch: branch.to_owned(),
            is_fifo: text(pool, "mode") == "fifo",
            is_ephemeral: flag(pool, "is_ephemeral"),
            weight: number(pool, "weight"),
            demand: number(pool, "demand_ratio"),
            usage: number(pool, "usage_ratio"),
            fair_share: number(pool, "fair_share_ratio"),
            guarantee: number(pool, "min_share_ratio"),
            flow: number(pool, "specified_resource_flow_ratio"),
            used: amounts(pool, "resource_usage"),
            running,
            pending: (all - running).max(0),
            max_running: integer(pool, "max_running_operation_count"),
            is_starving: !matches!(text(pool, "starvation_status"), "" | "non_starving"),
        }
    }

    /// It wants more than it has, and has less than it should.
    pub fn is_short(&self) -> bool {
        const NOTICEABLE: f64 = 0.01;
        self.usage + NOTICEABLE < self.fair_share && self.usage + NOTICEABLE < self.demand
    }

    /// Name with the lines before it and marks after it.
    pub fn label(&self) -> String {
        let fifo = if self.is_fifo { " [fifo]" } else { "" };
        let ephemeral = if self.is_ephemeral { " [ephemeral]" } else { "" };
        format!("{}{}{fifo}{ephemeral}", self.branch, self.name)
    }

    /// Promised share: the strong part, and what flows in.
    pub fn promised(&self) -> String {
        match (self.guarantee > 0.0, self.flow > 0.0) {
            (false, false) => "-".to_owned(),
            (true, false) => percent(self.guarantee),
            (false, true) => format!("{} flow", percent(self.flow)),
            (true, true) => format!("{} + {} flow", percent(self.guarantee), percent(self.flow)),
        }
    }
}

/// Pools of a tree, parents before children, siblings by name.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolForest {
    /// Name of the tree.
    pub tree: String,
    /// Pools in order.
    pub rows: Vec<PoolRow>,
    /// The root's row: the whole cluster.
    pub root: PoolRow,
    /// As they came.
    pub pools: Map,
}

impl PoolForest {
    /// From `pool_trees/<tree>/pools`.
    pub fn new(tree: &str, pools: Map) -> PoolForest {
        let mut children: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let names: Vec<String> = pools.key_strings().collect();
        for name in &names {
            let pool = pools.get(name).and_then(Value::as_map).unwrap_or(Map::EMPTY);
            if name != ROOT {
                let parent = match text(pool, "parent") {
                    // A parent that is not there any more: the pool is still to be seen.
                    parent if pools.contains(parent) => parent,
                    _ => ROOT,
                };
                children.entry(parent).or_default().push(name);
            }
        }
        for list in children.values_mut() {
            list.sort_unstable();
        }
        let mut rows = Vec::new();
        walk(&pools, &children, ROOT, "", &mut rows);
        let root = PoolRow::new(ROOT, "", pools.get(ROOT).and_then(Value::as_map).unwrap_or(Map::EMPTY));
        PoolForest { tree: tree.to_owned(), rows, root, pools }
    }
}

fn walk(
    pools: &Map,
    children: &BTreeMap<&str, Vec<&str>>,
    parent: &str,
    lead: &str,
    rows: &mut Vec<PoolRow>,
) {
    let list = children.get(parent).map(Vec::as_slice).unwrap_or_default();
    for (at, name) in list.iter().enumerate() {
        let pool = pools.get(name).and_then(Value::as_map).unwrap_or(Map::EMPTY);
        let is_last = at + 1 == list.len();
        let (own, below) = match (parent == ROOT, is_last) {
            (true, _) => (String::new(), String::new()),
            (false, false) => (format!("{lead}├─ "), format!("{lead}│  ")),
            (false, true) => (format!("{lead}└─ "), format!("{lead}   ")),
        };
        rows.push(PoolRow::new(name, &own, pool));
        walk(pools, children, name, &below, rows);
    }
}

impl Output for PoolForest {
    fn human(&self, look: &Look) -> String {
        let headers = [
            "POOL",
            ">WEIGHT",
            ">DEMAND",
            ">USAGE",
            "",
            ">FAIR SHARE",
            ">PROMISED",
            ">RUNNING",
            ">WAITING",
            "IN USE",
        ];
        let mut grid = Grid::new(look, &headers);
        for row in self.rows.iter().chain([&self.root]) {
            let is_root = row.name == ROOT;
            let short = row.is_short().then_some(Color::Yellow);
            grid.row([
                if is_root { format!("all of {}", self.tree) } else { row.label() }.into(),
                if is_root { "-".to_owned() } else { format!("{}", row.weight) }.into(),
                percent(row.demand).into(),
                Text::coloured(percent(row.usage), short),
                bar(row.usage, 10).into(),
                percent(row.fair_share).into(),
                if is_root { "-".to_owned() } else { row.promised() }.into(),
                count(row.running).into(),
                count(row.pending).into(),
                or_dash(&resources(&row.used)).into(),
            ]);
        }
        grid.finish()
    }
    fn json(&self) -> Value {
        self.pools.clone().into()
    }
    fn quiet(&self) -> String {
        self.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>().join("\n")
    }
}
