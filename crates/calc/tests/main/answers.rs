//! Answers as they are printed, and the examples of the guide.

use crate::corpus::no_clock;
use calc::fair_share::{FIELDS, Settings, answer};
use expect_test::expect;
use serde_json::Value;
use std::collections::BTreeSet;

/// Binary fractions only: the digits do not depend on the order of the additions.
const CASE: &str = r#"{"name":"weights","total_resource_limits":{"cpu":128},"elements":[
    {"id":"a","parent":"<root>","type":"pool","weight":3,"strong_guarantee_resources":{"cpu":32}},
    {"id":"a1","parent":"a","type":"operation","resource_demand":{"cpu":128}},
    {"id":"b","parent":"<root>","type":"operation","resource_demand":{"cpu":128}}],
    "steps":[{"time_since_previous_update":null}CHANGE]}"#;
const CHANGE: &str = r#",{"changes":{"b":{"resource_demand":{"cpu":16}}}}"#;

fn printed(case: &str, sparse: bool) -> String {
    let settings = Settings { repeat: None, sparse };
    let answer = answer(case.as_bytes(), &settings, &mut no_clock).unwrap_or_else(|e| panic!("{e}"));
    String::from_utf8(answer).expect("UTF-8")
}

/// One element a line, to be read.
fn broken(answer: &str) -> String {
    answer.replace("},\"", "},\n\"").replace("\"elements\":{", "\"elements\":{\n")
}

#[test]
fn without_zeros() {
    expect![[r#"
        {"name":"weights","steps":[{"errors":[],"elements":{
        "<root>":{"demand_share":[0,2,0,0,0],"limits_share":[0,1,0,0,0],"strong_guarantee_share":[0,0.25,0,0,0],"fair_share":[0,1,0,0,0],"fair_share_strong":[0,0.25,0,0,0],"fair_share_weight_proportional":[0,0.75,0,0,0],"promised_fair_share":[0,1,0,0,0],"estimated_guarantee_share":[0,0.25,0,0,0],"estimated_guarantee_share_without_flow":[0,0.25,0,0,0],"limited_demand_share":[0,1,0,0,0],"dominant_resource":"cpu"},
        "a":{"demand_share":[0,1,0,0,0],"limits_share":[0,1,0,0,0],"inferred_strong_guarantee_resources":[0,32,0,0,0],"strong_guarantee_share":[0,0.25,0,0,0],"fair_share":[0,0.8125,0,0,0],"fair_share_strong":[0,0.25,0,0,0],"fair_share_weight_proportional":[0,0.5625,0,0,0],"promised_fair_share":[0,0.8125,0,0,0],"estimated_guarantee_share":[0,0.25,0,0,0],"estimated_guarantee_share_without_flow":[0,0.25,0,0,0],"limited_demand_share":[0,1,0,0,0],"dominant_resource":"cpu"},
        "a1":{"demand_share":[0,1,0,0,0],"limits_share":[0,1,0,0,0],"fair_share":[0,0.8125,0,0,0],"fair_share_weight_proportional":[0,0.8125,0,0,0],"promised_fair_share":[0,0.8125,0,0,0],"estimated_guarantee_share":[0,0.25,0,0,0],"estimated_guarantee_share_without_flow":[0,0.25,0,0,0],"limited_demand_share":[0,1,0,0,0],"dominant_resource":"cpu"},
        "b":{"demand_share":[0,1,0,0,0],"limits_share":[0,1,0,0,0],"fair_share":[0,0.1875,0,0,0],"fair_share_weight_proportional":[0,0.1875,0,0,0],"promised_fair_share":[0,0.1875,0,0,0],"limited_demand_share":[0,1,0,0,0],"dominant_resource":"cpu"}}},{"errors":[],"elements":{
        "<root>":{"demand_share":[0,1.125,0,0,0],"limits_share":[0,1,0,0,0],"strong_guarantee_share":[0,0.25,0,0,0],"fair_share":[0,1,0,0,0],"fair_share_strong":[0,0.25,0,0,0],"fair_share_weight_proportional":[0,0.75,0,0,0],"promised_fair_share":[0,1,0,0,0],"estimated_guarantee_share":[0,0.25,0,0,0],"estimated_guarantee_share_without_flow":[0,0.25,0,0,0],"limited_demand_share":[0,1,0,0,0],"dominant_resource":"cpu"},
        "a":{"demand_share":[0,1,0,0,0],"limits_share":[0,1,0,0,0],"inferred_strong_guarantee_resources":[0,32,0,0,0],"strong_guarantee_share":[0,0.25,0,0,0],"fair_share":[0,0.875,0,0,0],"fair_share_strong":[0,0.25,0,0,0],"fair_share_weight_proportional":[0,0.625,0,0,0],"promised_fair_share":[0,0.8125,0,0,0],"estimated_guarantee_share":[0,0.25,0,0,0],"estimated_guarantee_share_without_flow":[0,0.25,0,0,0],"limited_demand_share":[0,1,0,0,0],"dominant_resource":"cpu"},
        "a1":{"demand_share":[0,1,0,0,0],"limits_share":[0,1,0,0,0],"fair_share":[0,0.875,0,0,0],"fair_share_weight_proportional":[0,0.875,0,0,0],"promised_fair_share":[0,0.8125,0,0,0],"estimated_guarantee_share":[0,0.25,0,0,0],"estimated_guarantee_share_without_flow":[0,0.25,0,0,0],"limited_demand_share":[0,1,0,0,0],"dominant_resource":"cpu"},
        "b":{"demand_share":[0,0.125,0,0,0],"limits_share":[0,1,0,0,0],"fair_share":[0,0.125,0,0,0],"fair_share_weight_proportional":[0,0.125,0,0,0],"promised_fair_share":[0,0.1875,0,0,0],"limited_demand_share":[0,0.125,0,0,0],"dominant_resource":"cpu"}}}]}
    "#]].assert_eq(&broken(&printed(&CASE.replace("CHANGE", CHANGE), true)));
}

#[test]
fn every_field() {
    expect![[r#"
        {"name":"weights","steps":[{"errors":[],"elements":{
        "<root>":{"demand_share":[0,2,0,0,0],"limits_share":[0,1,0,0,0],"inferred_strong_guarantee_resources":[0,0,0,0,0],"strong_guarantee_share":[0,0.25,0,0,0],"proposed_integral_share":[0,0,0,0,0],"fair_share":[0,1,0,0,0],"fair_share_strong":[0,0.25,0,0,0],"fair_share_integral":[0,0,0,0,0],"fair_share_weight_proportional":[0,0.75,0,0,0],"promised_guarantee_fair_share":[0,0,0,0,0],"promised_fair_share":[0,1,0,0,0],"estimated_guarantee_share":[0,0.25,0,0,0],"estimated_guarantee_share_without_flow":[0,0.25,0,0,0],"limited_demand_share":[0,1,0,0,0],"dominant_resource":"cpu","fifo_index":null,"effective_fifo_index":null,"resource_flow_ratio":0,"burst_ratio":0,"total_resource_flow_ratio":0,"total_burst_ratio":0,"accumulated_volume":[0,0,0,0,0],"integral_pool_capacity":[0,0,0,0,0],"share_ratio_by_volume":0,"integral_share_limit":0,"last_integral_share_ratio":0},
        "a":{"demand_share":[0,1,0,0,0],"limits_share":[0,1,0,0,0],"inferred_strong_guarantee_resources":[0,32,0,0,0],"strong_guarantee_share":[0,0.25,0,0,0],"proposed_integral_share":[0,0,0,0,0],"fair_share":[0,0.8125,0,0,0],"fair_share_strong":[0,0.25,0,0,0],"fair_share_integral":[0,0,0,0,0],"fair_share_weight_proportional":[0,0.5625,0,0,0],"promised_guarantee_fair_share":[0,0,0,0,0],"promised_fair_share":[0,0.8125,0,0,0],"estimated_guarantee_share":[0,0.25,0,0,0],"estimated_guarantee_share_without_flow":[0,0.25,0,0,0],"limited_demand_share":[0,1,0,0,0],"dominant_resource":"cpu","fifo_index":null,"effective_fifo_index":null,"resource_flow_ratio":0,"burst_ratio":0,"total_resource_flow_ratio":0,"total_burst_ratio":0,"accumulated_volume":[0,0,0,0,0],"integral_pool_capacity":[0,0,0,0,0],"share_ratio_by_volume":0,"integral_share_limit":0,"last_integral_share_ratio":0},
        "a1":{"demand_share":[0,1,0,0,0],"limits_share":[0,1,0,0,0],"inferred_strong_guarantee_resources":[0,0,0,0,0],"strong_guarantee_share":[0,0,0,0,0],"proposed_integral_share":[0,0,0,0,0],"fair_share":[0,0.8125,0,0,0],"fair_share_strong":[0,0,0,0,0],"fair_share_integral":[0,0,0,0,0],"fair_share_weight_proportional":[0,0.8125,0,0,0],"promised_guarantee_fair_share":[0,0,0,0,0],"promised_fair_share":[0,0.8125,0,0,0],"estimated_guarantee_share":[0,0.25,0,0,0],"estimated_guarantee_share_without_flow":[0,0.25,0,0,0],"limited_demand_share":[0,1,0,0,0],"dominant_resource":"cpu","fifo_index":null,"effective_fifo_index":null,"resource_flow_ratio":0,"burst_ratio":0,"total_resource_flow_ratio":0,"total_burst_ratio":0,"accumulated_volume":[0,0,0,0,0],"integral_pool_capacity":[0,0,0,0,0],"share_ratio_by_volume":0,"integral_share_limit":0,"last_integral_share_ratio":0},
        "b":{"demand_share":[0,1,0,0,0],"limits_share":[0,1,0,0,0],"inferred_strong_guarantee_resources":[0,0,0,0,0],"strong_guarantee_share":[0,0,0,0,0],"proposed_integral_share":[0,0,0,0,0],"fair_share":[0,0.1875,0,0,0],"fair_share_strong":[0,0,0,0,0],"fair_share_integral":[0,0,0,0,0],"fair_share_weight_proportional":[0,0.1875,0,0,0],"promised_guarantee_fair_share":[0,0,0,0,0],"promised_fair_share":[0,0.1875,0,0,0],"estimated_guarantee_share":[0,0,0,0,0],"estimated_guarantee_share_without_flow":[0,0,0,0,0],"limited_demand_share":[0,1,0,0,0],"dominant_resource":"cpu","fifo_index":null,"effective_fifo_index":null,"resource_flow_ratio":0,"burst_ratio":0,"total_resource_flow_ratio":0,"total_burst_ratio":0,"accumulated_volume":[0,0,0,0,0],"integral_pool_capacity":[0,0,0,0,0],"share_ratio_by_volume":0,"integral_share_limit":0,"last_integral_share_ratio":0}}}]}
    "#]].assert_eq(&broken(&printed(&CASE.replace("CHANGE", ""), false)));
}

#[test]
fn fields_have_one_name_each() {
    let names: BTreeSet<&str> = FIELDS.iter().map(|f| f.name).collect();
    assert_eq!(names.len(), FIELDS.len());
}

#[test]
fn nothing_to_do() {
    let empty = r#"{"name":"x","total_resource_limits":{},"elements":[],"steps":[]}"#;
    assert_eq!(printed(empty, false), "{\"name\":\"x\",\"steps\":[]}\n");
}

/// An answer is one line, whatever the names.
#[test]
fn names_are_quoted() {
    let odd = r#"{"name":"a\n\"b\u0000\ud83d\ude00","total_resource_limits":{},"elements":[
        {"id":"$x\r\n","parent":"<root>","type":"pool"}],"steps":[{}]}"#;
    let answer = printed(odd, true);
    assert_eq!(answer.matches('\n').count(), 1);
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["name"], "a\n\"b\0\u{1f600}");
    assert!(answer["steps"][0]["elements"]["$x\r\n"].is_object());
}

/// The guide's example, and what it says of the answer.
#[test]
fn the_example_of_the_guide() {
    let guide = include_str!("../../../../docs/calculators.md");
    let mut blocks = guide.split("```json\n").skip(1).map(|b| b.split("```").next().unwrap_or_default());
    let case = blocks.next().expect("the case");
    let shown: Value = serde_json::from_str(blocks.next().expect("an element")).expect("JSON");
    let answer: Value = serde_json::from_str(&printed(case, true)).expect("JSON");
    let peaks = &answer["steps"][1]["elements"]["peaks"];
    let keys = |v: &Value| v.as_object().map(|m| m.keys().cloned().collect::<Vec<_>>());
    assert_eq!(keys(peaks), keys(&shown));
    let mut compared = 0;
    for (field, value) in shown.as_object().expect("fields") {
        close(value, &peaks[field], field);
        compared += 1;
    }
    assert!(compared > 10);
    // The table: four digits.
    for row in guide.lines().filter(|l| l.starts_with("| 1 |") || l.starts_with("| 2 |")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let step: usize = cells[1].parse().expect("a step");
        let element = &answer["steps"][step - 1]["elements"][cells[2].trim_matches('`')];
        for (cell, field) in cells[3..].iter().zip([
            "fair_share_strong",
            "fair_share_integral",
            "fair_share_weight_proportional",
            "accumulated_volume",
        ]) {
            let want: f64 = if cell.is_empty() { 0.0 } else { cell.parse().expect("a number") };
            let got = element[field][1].as_f64().unwrap_or(0.0);
            assert!((got - want).abs() < 5e-5, "{row}: {field} is {got}");
            compared += 1;
        }
    }
    assert!(compared > 10 + 24, "{compared}");
    // Every field is explained.
    for field in FIELDS {
        assert!(guide.contains(&format!("`{}`", field.name)), "{} is not in the guide", field.name);
    }
}

/// Up to the last digits, which the order of additions may change.
fn close(want: &Value, got: &Value, field: &str) {
    match (want, got) {
        (Value::Array(a), Value::Array(b)) => a.iter().zip(b).for_each(|(a, b)| close(a, b, field)),
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            assert!((a - b).abs() <= 1e-12 * a.abs().max(1.0), "{field}: {b}, not {a}");
        }
        _ => assert_eq!(want, got, "{field}"),
    }
}
