//! What a run of the simulator came to, beside what was expected.

use super::table::{Grid, Text};
use crate::output::{Look, Output};
use crate::units::span;
use comfy_table::Color;
use sim::check::Comparison;
use sim::effects::{OperationEffect, OperationFate, PoolEffect, PoolFate};
use sim::what_if::SideBySide;
use vocab::Span;
use yson::{Map, Value};

/// `millpond sim check`.
pub struct ComparisonTable(pub Vec<Comparison>);

impl Output for ComparisonTable {
    fn human(&self, look: &Look) -> String {
        let mut grid = Grid::new(look, &["", "WHAT", ">FOUND", "ALLOWED"]);
        for c in &self.0 {
            let (verdict, colour) = if c.holds { ("ok", Color::Green) } else { ("BROKEN", Color::Red) };
            grid.row([
                Text::coloured(verdict, Some(colour)),
                c.what.as_str().into(),
                sim::output::number(c.found).into(),
                c.allowed.as_str().into(),
            ]);
        }
        grid.finish()
    }

    fn json(&self) -> Value {
        let one = |c: &Comparison| -> Value {
            let what = c.what.as_str();
            yson::map! {"what" => what, "found" => c.found, "allowed" => c.allowed.as_str(), "holds" => c.holds}
                .into()
        };
        Value::List(self.0.iter().map(one).collect())
    }

    fn quiet(&self) -> String {
        self.0.iter().filter(|c| !c.holds).map(|c| c.what.clone() + "\n").collect()
    }
}

/// `millpond sim what-if`.
pub struct VariantTable(pub SideBySide);

impl VariantTable {
    /// Runs that are shown: all but the base, or the base if it is alone.
    fn shown(&self) -> impl Iterator<Item = (usize, &str)> {
        let from = usize::from(self.0.names.len() > 1);
        self.0.names.iter().enumerate().skip(from).map(|(i, name)| (i, name.as_str()))
    }

    fn pools(&self, look: &Look) -> String {
        let mut grid = Grid::new(look, &["POOL", "RUN", ">CORES", ">BASE", ">STARVING", ">BASE"]);
        let cores = |fate: &Option<PoolFate>| fate.map_or("-".to_owned(), |f| format!("{:.2}", f.usage_cpu));
        let starving =
            |fate: &Option<PoolFate>| fate.map_or("-".to_owned(), |f| format!("{:.0}%", 100.0 * f.starving));
        for pool in &self.0.pools {
            for (run, name) in self.shown() {
                let (fate, base) = (&pool.runs[run], &pool.runs[0]);
                grid.row([
                    pool.pool.as_str().into(),
                    name.into(),
                    cores(fate).into(),
                    cores(base).into(),
                    starving(fate).into(),
                    starving(base).into(),
                ]);
            }
        }
        grid.finish()
    }

    fn operations(&self, look: &Look) -> String {
        let headers =
            ["OPERATION", "RUN", "STATE", ">STARTS", ">BASE", ">ENDS", ">BASE", ">PREEMPTED", ">BASE"];
        let mut grid = Grid::new(look, &headers);
        let after = |ms: Option<i64>| {
            ms.map_or("-".to_owned(), |ms| span(Span::from_millis(ms.max(0).unsigned_abs())))
        };
        let of = |fate: &Option<OperationFate>, get: fn(&OperationFate) -> Option<i64>| {
            fate.as_ref().and_then(get)
        };
        let lost = |fate: &Option<OperationFate>| {
            of(fate, |f| Some(f.preempted)).map_or("-".to_owned(), |n| n.to_string())
        };
        for operation in &self.0.operations {
            for (run, name) in self.shown() {
                let (fate, base) = (&operation.runs[run], &operation.runs[0]);
                grid.row([
                    operation.id.as_str().into(),
                    name.into(),
                    fate.as_ref().map_or("-", |f| f.state.as_str()).into(),
                    after(of(fate, |f| f.wait_ms)).into(),
                    after(of(base, |f| f.wait_ms)).into(),
                    after(of(fate, |f| f.lasts_ms)).into(),
                    after(of(base, |f| f.lasts_ms)).into(),
                    lost(fate).into(),
                    lost(base).into(),
                ]);
            }
        }
        grid.finish()
    }

    fn metrics(&self, look: &Look) -> String {
        let mut grid = Grid::new(look, &["METRIC", "RUN", ">VALUE", ">BASE"]);
        let shown = |value: &Option<f64>| value.map_or("-".to_owned(), sim::output::number);
        for row in &self.0.rows {
            for (run, (name, value)) in self.0.names.iter().zip(&row.values).enumerate().skip(1) {
                let colour = row.is_noise(run).then_some(Color::DarkGrey);
                let cell = |text: &str| Text::coloured(text, colour);
                grid.row([cell(&row.metric), cell(name), cell(&shown(value)), cell(&shown(&row.values[0]))]);
            }
        }
        grid.finish()
    }
}

impl Output for VariantTable {
    fn human(&self, look: &Look) -> String {
        let all = &self.0;
        let parts = [
            (!all.pools.is_empty()).then(|| self.pools(look)),
            (!all.operations.is_empty()).then(|| self.operations(look)),
            (all.names.len() > 1 && !all.rows.is_empty()).then(|| self.metrics(look)),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "Nothing changes.".to_owned() } else { parts.join("\n\n") }
    }

    fn json(&self) -> Value {
        let of_row = |row: &sim::what_if::Row| {
            let by_run = self.0.names.iter().zip(&row.values);
            by_run.map(|(name, value)| (name.as_str(), Value::from(*value))).collect::<Map>()
        };
        let rows = self.0.rows.iter().map(|row| (row.metric.as_str(), of_row(row)));
        yson::map! {
            "pools" => self.0.pools.iter().map(|pool| pool_value(pool, &self.0.names)).collect::<Vec<Value>>(),
            "operations" =>
                self.0.operations.iter().map(|o| operation_value(o, &self.0.names)).collect::<Vec<Value>>(),
            "metrics" => rows.collect::<Map>(),
        }
        .into()
    }

    fn quiet(&self) -> String {
        self.0.rows.iter().map(|row| row.metric.clone() + "\n").collect()
    }
}

fn pool_value(pool: &PoolEffect, names: &[String]) -> Value {
    let of_run = |fate: &PoolFate| yson::map! {"usage_cpu" => fate.usage_cpu, "starving" => fate.starving};
    let runs = names.iter().zip(&pool.runs);
    let runs: Map = runs.filter_map(|(name, fate)| Some((name.as_str(), of_run(fate.as_ref()?)))).collect();
    yson::map! {"tree" => pool.tree.as_str(), "pool" => pool.pool.as_str(), "runs" => runs}.into()
}

fn operation_value(operation: &OperationEffect, names: &[String]) -> Value {
    let of_run = |fate: &OperationFate| {
        yson::map! {
            "state" => fate.state.as_str(),
            "wait_ms" => fate.wait_ms,
            "lasts_ms" => fate.lasts_ms,
            "preempted_job_count" => fate.preempted,
            "starving_ms" => fate.starving_ms,
        }
    };
    let runs = names.iter().zip(&operation.runs);
    let runs: Map = runs.filter_map(|(name, fate)| Some((name.as_str(), of_run(fate.as_ref()?)))).collect();
    yson::map! {"id" => operation.id.as_str(), "runs" => runs}.into()
}

/// `millpond sim shares`: rows of `pools.csv`.
pub struct ShareTable(pub Vec<Vec<sim::output::Cell>>);

impl ShareTable {
    /// Name of the column, and its value in a row.
    fn values(row: &[sim::output::Cell]) -> impl Iterator<Item = (&'static str, Value)> {
        use sim::output::{Cell, pools::COLUMNS};
        COLUMNS.iter().map(|column| column.name).zip(row).skip(1).map(|(name, cell)| {
            let value = match cell {
                Cell::Empty => Value::Entity,
                Cell::Int(x) => Value::from(*x),
                Cell::Number(x) => Value::from((x * 1000.0).round() / 1000.0),
                Cell::Text(text) => Value::from(text.as_str()),
            };
            (name, value)
        })
    }
}

impl Output for ShareTable {
    fn human(&self, look: &Look) -> String {
        let names = [
            "tree",
            "pool",
            "demand_cpu",
            "fair_share_cpu",
            "strong_cpu",
            "integral_cpu",
            "free_cpu",
            "fair_share_memory",
            "fair_share_gpu",
        ];
        let header = [
            "TREE",
            "POOL",
            ">DEMAND CPU",
            ">FAIR SHARE",
            ">STRONG",
            ">INTEGRAL",
            ">FREE",
            ">MEMORY",
            ">GPU",
        ];
        let mut grid = Grid::new(look, &header);
        for row in &self.0 {
            let map: Map = ShareTable::values(row).collect();
            grid.row(names.map(|name| {
                match map.get(name) {
                    Some(value) => value
                        .as_str()
                        .map_or_else(
                            || value.as_f64().map_or("-".to_owned(), sim::output::number),
                            str::to_owned,
                        )
                        .into(),
                    None => "-".into(),
                }
            }));
        }
        grid.finish()
    }

    fn json(&self) -> Value {
        self.0.iter().map(|row| Value::Map(ShareTable::values(row).collect())).collect::<Vec<_>>().into()
    }

    fn quiet(&self) -> String {
        let line = |row: &Vec<sim::output::Cell>| {
            let map: Map = ShareTable::values(row).collect();
            let share = map.get("fair_share_cpu").and_then(Value::as_f64).unwrap_or_default();
            format!("{} {share}\n", map.get("pool").and_then(Value::as_str).unwrap_or_default())
        };
        self.0.iter().map(line).collect()
    }
}
