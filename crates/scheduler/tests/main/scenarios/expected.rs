//! `expected.csv` and `checks.json`: the curves that must come out, and how closely.

use super::scenario::{Scenario, json, read};
use super::world::Numbers;
use std::collections::BTreeMap;
use yson::Value;

/// Names of the columns that are compared; all but the last in cores.
pub const COLUMNS: [&str; 6] =
    ["demand_cpu", "fair_share_cpu", "strong_cpu", "integral_cpu", "free_cpu", "accumulated_volume_cpu_s"];

pub fn columns(n: &Numbers) -> [f64; 6] {
    [n.demand, n.fair_share, n.strong, n.integral, n.free, n.volume]
}

/// What is expected of a run.
pub struct Expected {
    /// By second and pool.
    pub samples: BTreeMap<u64, BTreeMap<String, [f64; 6]>>,
    pub change_points_s: Vec<u64>,
    pub ignored_s: u64,
    checks: Value,
}

impl Expected {
    pub fn load(scenario: &Scenario) -> Expected {
        let path = scenario.folder.join("checks.json");
        let checks = json(&path, &read(&path));
        let number = |value: &Value| value.as_u64().expect("a number of seconds");
        let points = checks.get("change_points_s").and_then(Value::as_list).expect("change points");
        let file = checks.get("expected_series").and_then(Value::as_str).expect("a file");
        Expected {
            samples: samples(&read(&scenario.folder.join(file))),
            change_points_s: points.iter().map(number).collect(),
            ignored_s: checks.get("ignore_seconds_after_change").map(number).expect("seconds"),
            checks,
        }
    }

    /// Does a sample count?
    pub fn counts(&self, second: u64) -> bool {
        !self.change_points_s.iter().any(|p| (*p..*p + self.ignored_s).contains(&second))
    }

    /// Tolerance of a column for a pool, where the scenario names one.
    pub fn tolerance(&self, column: &str, pool: &str) -> Option<f64> {
        let column = self.checks.get("series_tolerances")?.get(column)?;
        column.get("abs").or_else(|| column.get(pool)?.get("abs")).and_then(Value::as_f64)
    }

    /// A total of a pool: its value and the relative tolerance.
    pub fn total(&self, pool: &str, name: &str) -> (f64, f64) {
        let totals = self.checks.get("totals").and_then(|t| t.get(pool)).expect("totals of the pool");
        let number = |name: &str| totals.get(name).and_then(Value::as_f64).expect("a number");
        (number(name), number("rel_tol"))
    }

    /// The largest part of all fair share that usage may differ by, over time.
    pub fn usage_tolerance(&self) -> f64 {
        let usage = self.checks.get("usage").and_then(|u| u.get("max_share_of_total_fair_share"));
        usage.and_then(Value::as_f64).expect("a number")
    }
}

fn samples(text: &str) -> BTreeMap<u64, BTreeMap<String, [f64; 6]>> {
    let mut lines = text.lines();
    let header = lines.next().expect("a header");
    assert_eq!(header, format!("t_s,pool,{}", COLUMNS.join(",")));
    let mut samples: BTreeMap<u64, BTreeMap<String, [f64; 6]>> = BTreeMap::new();
    for line in lines {
        let mut cells = line.split(',');
        let second = cells.next().and_then(|t| t.parse().ok()).expect("a second");
        let pool = cells.next().expect("a pool").to_owned();
        let values: Vec<f64> = cells.map(|c| c.parse().expect("a number")).collect();
        samples.entry(second).or_default().insert(pool, values.try_into().expect("six columns"));
    }
    samples
}
