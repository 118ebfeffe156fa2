//! `pool list`: settings.

use crate::output::{Look, Output};
use crate::units::{count, resources};
use crate::views::pools::{PoolForest, PoolRow};
use crate::views::read::{amounts, integer, text};
use crate::views::table::{Grid, or_dash};
use yson::{Map, Value};

/// Pools of a tree with their settings.
pub struct PoolTable(pub PoolForest);

impl PoolTable {
    fn pool(&self, row: &PoolRow) -> &Map {
        self.0.pools.get(&row.name).and_then(Value::as_map).unwrap_or(Map::EMPTY)
    }
}

impl Output for PoolTable {
    fn human(&self, look: &Look) -> String {
        if self.0.rows.is_empty() {
            return format!("No pools in tree {}. Create one with `millpond pool create NAME`.", self.0.tree);
        }
        let headers =
            ["POOL", "PARENT", "MODE", ">WEIGHT", "GUARANTEE", "INTEGRAL", ">MAX RUNNING", ">MAX OPERATIONS"];
        let mut grid = Grid::new(look, &headers);
        for row in &self.0.rows {
            let pool = self.pool(row);
            let mode = match (text(pool, "mode"), row.is_ephemeral) {
                (mode, true) => format!("{mode}, ephemeral"),
                (mode, false) => mode.to_owned(),
            };
            let parent = match text(pool, "parent") {
                "<Root>" => "-",
                parent => or_dash(parent),
            };
            let integral = text(pool, "integral_guarantee_type");
            grid.row([
                row.name.as_str().into(),
                parent.into(),
                or_dash(&mode).into(),
                row.weight.to_string().into(),
                resources(&amounts(pool, "strong_guarantee_resources")).into(),
                if integral == "none" { "-" } else { or_dash(integral) }.into(),
                count(integer(pool, "max_running_operation_count")).into(),
                count(integer(pool, "max_operation_count")).into(),
            ]);
        }
        grid.finish()
    }
    fn json(&self) -> Value {
        let mut pools = self.0.pools.clone();
        pools.remove("<Root>");
        pools.into()
    }
    fn quiet(&self) -> String {
        self.0.quiet()
    }
}
