//! Whole simulations take minutes each, so `make test` runs their beginnings and `make nightly` all of them.

use std::path::Path;
use yson::{JsonFormat, Map, Value};

/// Whether simulations run to their end: `make nightly` sets `MILLPOND_WHOLE`.
pub fn whole() -> bool {
    std::env::var_os("MILLPOND_WHOLE").is_some()
}

/// Checks of the first `seconds` of a scenario: the expected curves up to then. Totals are those of the whole run and
/// are left out.
pub fn of_beginning(checks: &Path, seconds: u64, folder: &Path) -> std::path::PathBuf {
    let text = std::fs::read(checks).unwrap_or_else(|e| panic!("{}: {e}", checks.display()));
    let document = yson::json::from_json(&text, &JsonFormat::utf8()).expect("JSON");
    let mut checks_of_curves = Map::new();
    for name in [
        "expected_series",
        "ignore_seconds_after_change",
        "change_points_s",
        "series_tolerances",
        "max_share_of_samples_outside",
    ] {
        if let Some(value) = document.get(name) {
            checks_of_curves.insert(name, value.clone());
        }
    }
    let series = document.get("expected_series").and_then(Value::as_str).expect("a file name").to_owned();
    let all = std::fs::read_to_string(checks.with_file_name(&series)).expect("the expected curves");
    let early = |line: &&str| {
        let second = line.split(',').next().and_then(|second| second.parse::<u64>().ok());
        // The first line has the names of the columns.
        second.is_none_or(|second| second < seconds)
    };
    let curves: String = all.lines().filter(early).map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.join(&series), curves).expect("written");
    let path = folder.join("checks.json");
    std::fs::write(&path, yson::json::to_json(&checks_of_curves.into(), &JsonFormat::utf8()))
        .expect("written");
    path
}
