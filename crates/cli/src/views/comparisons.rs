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
