//! What a run of the simulator came to, beside what was expected.

use super::table::{Grid, Text};
use crate::output::{Look, Output};
use comfy_table::Color;
use sim::check::Comparison;
use yson::Value;

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
