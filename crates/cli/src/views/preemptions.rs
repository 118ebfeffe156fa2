//! `op preemptions`: who lost what for whom.

use crate::output::{Look, Output};
use crate::units::{age, resource};
use crate::views::read::{amounts, text, time};
use crate::views::table::{Grid, or_dash};
use vocab::{RESOURCES, Time};
use yson::{Map, Value};

/// Lines of the preemption log.
pub struct PreemptionTable {
    /// Oldest first.
    pub records: Vec<Value>,
}

impl PreemptionTable {
    fn maps(&self) -> impl Iterator<Item = &Map> {
        self.records.iter().filter_map(Value::as_map)
    }
}

impl Output for PreemptionTable {
    fn human(&self, look: &Look) -> String {
        if self.records.is_empty() {
            return "Nothing has been preempted.".to_owned();
        }
        let mut grid =
            Grid::new(look, &["WHEN", "POOL", "OPERATION", "LOST", "GROUP", "KIND", "FOR OPERATION", "NODE"]);
        for record in self.maps() {
            let lost = amounts(record, "resources");
            let lost: Vec<String> = RESOURCES
                .into_iter()
                .filter(|r| lost.raw(*r) != 0)
                .map(|r| format!("{}={}", r.as_str(), resource(r, lost.raw(r))))
                .collect();
            grid.row([
                age(time(record, "time").unwrap_or(Time::ZERO), look.now).into(),
                or_dash(text(record, "pool")).into(),
                or_dash(text(record, "operation_id")).into(),
                lost.join(",").into(),
                or_dash(text(record, "group")).into(),
                or_dash(text(record, "preemption_kind")).into(),
                or_dash(text(record, "preempted_for/operation_id")).into(),
                or_dash(text(record, "node")).into(),
            ]);
        }
        grid.finish()
    }
    fn json(&self) -> Value {
        self.records.clone().into()
    }
    /// The allocations that were lost.
    fn quiet(&self) -> String {
        self.maps().map(|record| text(record, "allocation_id")).collect::<Vec<_>>().join("\n")
    }
}
