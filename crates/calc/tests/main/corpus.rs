//! The whole conformance corpus through the calculator, compared with its expectations as its
//! README says. What is compared is the printed JSON, as anybody else would do it.

use calc::fair_share::{Settings, answer};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Read;
use std::num::NonZeroU32;
use std::path::Path;

pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/fair_share");

const FULL: Settings = Settings { repeat: None, sparse: false };
const SPARSE: Settings = Settings { repeat: None, sparse: true };

pub fn read(file: &str) -> String {
    let path = Path::new(FOLDER).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub fn no_clock() -> u64 {
    panic!("nothing is measured, so nobody may look at the clock")
}

fn json(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(line)))
}

fn conforms(file: &str, at_least: usize) {
    let mut cases = 0;
    let mut wrong = Vec::new();
    for line in read(file).lines() {
        let want = json(line.as_bytes());
        let name = want["name"].as_str().expect("a name");
        for settings in [FULL, SPARSE] {
            let got = answer(line.as_bytes(), &settings, &mut no_clock);
            let got = json(&got.unwrap_or_else(|e| panic!("{name}: {e}")));
            let mut differences = Vec::new();
            compare(&want, &got, settings.sparse, &mut differences);
            if !differences.is_empty() {
                differences.truncate(8);
                wrong.push(format!("{name}\n  {}", differences.join("\n  ")));
            }
        }
        cases += 1;
    }
    assert!(wrong.is_empty(), "{file}: {} of {cases} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases >= at_least, "{file}: {cases} cases, there should be {at_least}");
}

#[derive(Clone, Copy)]
enum Kind {
    Share,
    Ratio,
    Volume,
    Amount,
    Exact,
}

/// The table of the README.
const TABLE: [(&str, Kind); 26] = [
    ("demand_share", Kind::Share),
    ("limits_share", Kind::Share),
    ("inferred_strong_guarantee_resources", Kind::Amount),
    ("strong_guarantee_share", Kind::Share),
    ("proposed_integral_share", Kind::Share),
    ("fair_share", Kind::Share),
    ("fair_share_strong", Kind::Share),
    ("fair_share_integral", Kind::Share),
    ("fair_share_weight_proportional", Kind::Share),
    ("promised_guarantee_fair_share", Kind::Share),
    ("promised_fair_share", Kind::Share),
    ("estimated_guarantee_share", Kind::Share),
    ("estimated_guarantee_share_without_flow", Kind::Share),
    ("limited_demand_share", Kind::Share),
    ("dominant_resource", Kind::Exact),
    ("fifo_index", Kind::Exact),
    ("effective_fifo_index", Kind::Exact),
    ("resource_flow_ratio", Kind::Ratio),
    ("burst_ratio", Kind::Ratio),
    ("total_resource_flow_ratio", Kind::Ratio),
    ("total_burst_ratio", Kind::Ratio),
    ("accumulated_volume", Kind::Volume),
    ("integral_pool_capacity", Kind::Volume),
    ("share_ratio_by_volume", Kind::Ratio),
    ("integral_share_limit", Kind::Ratio),
    ("last_integral_share_ratio", Kind::Ratio),
];

fn compare(want: &Value, got: &Value, sparse: bool, differences: &mut Vec<String>) {
    assert_eq!(want["name"], got["name"]);
    let steps = |case: &Value| case["steps"].as_array().expect("steps").clone();
    let (want, got) = (steps(want), steps(got));
    assert_eq!(want.len(), got.len(), "number of steps");
    for (number, (want, got)) in want.iter().zip(&got).enumerate() {
        let want = &want["expect"];
        let errors = |step: &Value| -> BTreeSet<String> {
            let names = step["errors"].as_array().expect("errors").iter();
            names.map(|e| e.as_str().expect("a name").to_owned()).collect()
        };
        if errors(want) != errors(got) {
            differences.push(format!("step {number}: {:?} for {:?}", errors(got), errors(want)));
        }
        let elements = |step: &Value| step["elements"].as_object().expect("elements").clone();
        let (want, got) = (elements(want), elements(got));
        assert!(want.keys().all(|id| got.contains_key(id)), "an element is missing");
        for (id, got) in &got {
            let want = want.get(id).cloned().unwrap_or_default();
            let known: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
            for key in got.as_object().expect("fields").keys() {
                assert!(known.contains(&key.as_str()), "{key} is not in the table");
            }
            for (field, kind) in TABLE {
                let present = got.get(field);
                assert!(sparse || present.is_some(), "{field} of {id} is missing");
                let got = present.unwrap_or(&Value::Null);
                if !close(kind, &want[field], got) {
                    let want = &want[field];
                    differences.push(format!("step {number}, {id}: {field} is {got}, expected {want}"));
                }
            }
        }
    }
}

/// Absent is zero; tolerances of the README.
fn close(kind: Kind, want: &Value, got: &Value) -> bool {
    let vector = |v: &Value| -> [f64; 5] {
        let at = |i: usize| v.get(i).map_or(0.0, |x| x.as_f64().expect("a number"));
        std::array::from_fn(at)
    };
    let ratio = |v: &Value| if v.is_null() { 0.0 } else { v.as_f64().expect("a number") };
    let by_component = |tolerance: &dyn Fn(usize, f64) -> f64| {
        let (want, got) = (vector(want), vector(got));
        (0..5).all(|i| (want[i] - got[i]).abs() <= tolerance(i, want[i]))
    };
    const CPU: usize = 1;
    match kind {
        Kind::Exact => want == got,
        Kind::Ratio => (ratio(want) - ratio(got)).abs() <= 1e-8,
        Kind::Share => by_component(&|_, _| 1e-8),
        // The corpus has 12 digits: what was rounded there by less than one of them is not a difference.
        Kind::Volume => by_component(&|i, w| 1e-8 * w.abs() + if i == CPU { 0.02 } else { 1e-9 }),
        Kind::Amount => by_component(&|i, w| 1e-11 * w.abs() + if i == CPU { 0.010_001 } else { 1.0 }),
    }
}

#[test]
fn strong_and_weight() {
    conforms("strong_and_weight.jsonl", 115);
}

#[test]
fn integral_single() {
    conforms("integral_single.jsonl", 55);
}

#[test]
fn integral_sequence() {
    conforms("integral_sequence.jsonl", 25);
}

#[test]
fn improved() {
    conforms("improved.jsonl", 105);
}

#[test]
fn fifo_reordering() {
    conforms("fifo_reordering.jsonl", 13);
}

/// Everything passes if nothing is compared: each kind of difference must be seen.
#[test]
fn differences_are_noticed() {
    let check = |file: &str, field: &str, other: Value| {
        let text = read(file);
        let line = text.lines().find(|line| line.matches(&format!("\"{field}\"")).count() > 0);
        let mut want = json(line.unwrap_or_else(|| panic!("no case with {field}")).as_bytes());
        let got = json(&answer(line.expect("a case").as_bytes(), &FULL, &mut no_clock).expect("an answer"));
        let elements = want["steps"][0]["expect"]["elements"].as_object_mut().expect("elements");
        let element = elements.values_mut().find(|e| !e[field].is_null()).expect("an element with the field");
        element[field] = other;
        let mut differences = Vec::new();
        compare(&want, &got, false, &mut differences);
        assert_eq!(differences.len(), 1, "{field}: {differences:?}");
    };
    check("strong_and_weight.jsonl", "fair_share", serde_json::json!([0.125, 0, 0, 0, 0.25]));
    check("strong_and_weight.jsonl", "dominant_resource", "disk".into());
    check("strong_and_weight.jsonl", "inferred_strong_guarantee_resources", serde_json::json!([0, 0.5]));
    check("integral_single.jsonl", "accumulated_volume", serde_json::json!([1, 2, 3, 4, 5]));
    check("integral_single.jsonl", "last_integral_share_ratio", Value::Null);
}

/// One of the trees for benchmarks: no expectation, but figures.
#[test]
fn a_benchmark_tree_is_measured() {
    let path = format!("{FOLDER}/bench_1000.jsonl.gz");
    let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut line = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut line).expect("gzip");
    let mut now = 0;
    let mut clock = || {
        now += 7;
        now
    };
    let settings = Settings { repeat: NonZeroU32::new(3), sparse: true };
    let got = json(&answer(&line, &settings, &mut clock).expect("an answer"));
    assert_eq!(got["update_ns"], serde_json::json!({"min": 7, "median": 7, "max": 7}));
    assert_eq!(now, 7 * 2 * 3, "the clock is looked at twice for each update");
    assert_eq!(got["steps"][0]["elements"].as_object().map(|e| e.len()), Some(1 + 100 + 1000));
}
