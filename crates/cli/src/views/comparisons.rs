//! What a run of the simulator came to, beside what was expected.

use super::table::{Grid, Text};
use crate::output::{Look, Output};
use comfy_table::Color;
use sim::check::Comparison;
use sim::what_if::SideBySide;
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

impl Output for VariantTable {
    fn human(&self, look: &Look) -> String {
        let mut grid = Grid::new(look, &["METRIC", "RUN", ">VALUE", ">BASE"]);
        let shown = |value: &Option<f64>| value.map_or("-".to_owned(), sim::output::number);
        for row in &self.0.rows {
            for (name, value) in self.0.names.iter().zip(&row.values).skip(1) {
                let metric = row.metric.as_str();
                grid.row([
                    metric.into(),
                    name.as_str().into(),
                    shown(value).into(),
                    shown(&row.values[0]).into(),
                ]);
            }
        }
        grid.finish()
    }

    fn json(&self) -> Value {
        let of_row = |row: &sim::what_if::Row| {
            let by_run = self.0.names.iter().zip(&row.values);
            by_run.map(|(name, value)| (name.as_str(), Value::from(*value))).collect::<Map>()
        };
        let rows = self.0.rows.iter().map(|row| (row.metric.as_str(), of_row(row)));
        rows.collect::<Map>().into()
    }

    fn quiet(&self) -> String {
        self.0.rows.iter().map(|row| row.metric.clone() + "\n").collect()
    }
}

/// `millpond sim shares`: rows of `pools.csv`.
pub struct ShareTable(pub Vec<Vec<sim::output::Cell>>);

impl ShareTable {
    /// Name of the column, and its value in a row.
    fn values(row: &[sim::output::Cell]) -> impl Iterator<Item = (&'static str, Value)> {
        use sim::output::{Cell, pools::COLUMNS};
        COLUMNS.iter().zip(row).skip(1).map(|(name, cell)| {
            let value = match cell {
                Cell::Empty => Value::Entity,
                Cell::Int(x) => Value::from(*x),
                Cell::Number(x) => Value::from((x * 1000.0).round() / 1000.0),
                Cell::Text(text) => Value::from(text.as_str()),
            };
            (*name, value)
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
