//! What is refused and how it is said; and what is not, though it looks odd (fair-share.md 11).

use crate::corpus::no_clock;
use calc::fair_share::{Settings, answer};
use expect_test::expect_file;
use serde_json::Value;

/// A case in which something stands for the `@` of the template.
fn line(template: &str, value: &str) -> String {
    template.replace('@', value)
}

/// Answered; gives the elements of the last step.
#[track_caller]
fn answered(line: &str) -> Value {
    let answer = answer(line.as_bytes(), &Settings::default(), &mut no_clock);
    let answer = answer.unwrap_or_else(|e| panic!("{e}: {line}"));
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    answer["steps"].as_array().and_then(|s| s.last()).expect("a step")["elements"].clone()
}

const TOTAL: &str = r#"{"name":"x","total_resource_limits":@,"elements":[],"steps":[]}"#;
const OPTIONS: &str =
    r#"{"name":"x","total_resource_limits":{"cpu":1},"options":{@},"elements":[],"steps":[]}"#;
const ROOT: &str = r#"{"name":"x","total_resource_limits":{"cpu":1},"root":{@},"elements":[],"steps":[]}"#;
const ELEMENTS: &str = r#"{"name":"x","total_resource_limits":{"cpu":100,"memory":1000},"elements":[@],
    "steps":[{"time_since_previous_update":null}]}"#;
const POOL: &str = r#"{"name":"x","total_resource_limits":{"cpu":100,"memory":1000},"elements":[
    {"id":"p","parent":"<root>","type":"pool",@}],"steps":[{"time_since_previous_update":60}]}"#;
const OPERATION: &str = r#"{"name":"x","total_resource_limits":{"cpu":100,"memory":1000},"elements":[
    {"id":"p","parent":"<root>","type":"pool"},{"id":"o","parent":"p","type":"operation",@}],
    "steps":[{"time_since_previous_update":60}]}"#;
const STEP: &str = r#"{"name":"x","total_resource_limits":{"cpu":100},"elements":[
    {"id":"p","parent":"<root>","type":"pool"},{"id":"a/o~","parent":"p","type":"operation"}],"steps":[{},{@}]}"#;

/// A heading, a template, and what is put into it, one a line. Elements of a tree are written short:
/// `pool a <root> "mode":"fifo"`.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "lines",
        "@",
        r#"
[]
{}
{"name":"x"
{"name":"x","elements":[{"id":"a"},{"id":"b","weight":NaN}]}
{"name":"x","elements":[{"id":"a"}]} {}
{"name":"x","elements":[{"id":'a'}]}
{"name":7,"total_resource_limits":{},"elements":[],"steps":[]}
{"name":"x","total_resource_limits":{"cpu":1,"\u0063pu":2},"elements":[],"steps":[]}
{"name":"x","total_resource_limits":{},"elements":[],"steps":[],"name":"y"}
{"nme":"x","total_resource_limits":{},"elements":[],"steps":[]}
{"name":"x","total_resource_limits":{},"steps":[]}
{"name":"x","total_resource_limits":{},"elements":{},"steps":[]}
{"name":"x","total_resource_limits":{},"elements":[],"steps":[[]]}"#,
    ),
    (
        "amounts",
        TOTAL,
        r#"
{"cpu":-1}
{"cpu":1e999}
{"cpu":-Infinity}
{"cpu":NaN}
{"cpu":1e17}
{"cpu":"4"}
{"memory":1.5}
{"memory":-1024}
{"memory":9223372036854775807}
{"memory":99999999999999999999999}
{"memory":1e18}
{"gpu":[]}
{"user_memory":1}
{"disk":1}
{"$attributes":{"a":1},"$value":{}}
7
null"#,
    ),
    (
        "options",
        OPTIONS,
        r#"
"main_resource":"disk"
"smooth_period":0
"smooth_period":-60
"pool_capacity_saturation_period":1e300
"enable_step_function_for_gang_operations":1
"compat_strict":false"#,
    ),
    (
        "root",
        ROOT,
        r#"
"mode":"fifo"
"integral_guarantees":{"guarantee_type":"burst"}
"weight":1"#,
    ),
    (
        "pools",
        POOL,
        r#"
"weight":0
"weight":1e9
"mode":"lifo"
"resource_demand":{}
"strong_guarantee_resources":{"memory":5}
"strong_guarantee_resources":{"cpu":-5}
"resource_limits":{"tpu":5}
"accumulated_resource_volume":{"memory":-0.5}
"accumulated_resource_volume":{"gpu":1e300}
"last_integral_share_ratio":-0.1
"last_integral_share_ratio":1e999
"compute_promised_guarantee_fair_share":"yes"
"integral_guarantees":{"guarantee_type":"bursty"}
"integral_guarantees":{"guarantee_type":"relaxed","burst_guarantee_resources":{"cpu":0}}
"integral_guarantees":{"relaxed_share_multiplier_limit":0.5}
"integral_guarantees":{"relaxed_share_multiplier_limit":11}
"integral_guarantees":{"flow":{"cpu":1}}
"integral_guarantees":{"resource_flow":{"cpu":-1}}"#,
    ),
    (
        "operations",
        OPERATION,
        r#"
"mode":"fifo"
"resource_demand":{"cpu":1},"resource_usage":{"cpu":2}
"resource_usage":{"memory":2}
"best_allocation_share":[1,1,1]
"best_allocation_share":[1,1,1,1,-1]
"start_time":-1
"gang":null,"gnag":true"#,
    ),
    (
        "places in the tree",
        ELEMENTS,
        r#"
7
{"id":"a","type":"pool"}
{"id":"a","parent":"<root>"}
{"id":"a","parent":"<root>","type":"queue"}
pool a <root>; pool a <root>
pool <root> <root>
{"id":"","parent":"<root>","type":"pool"}
pool a b
pool a b; pool b <root>
pool a a
pool a b; pool b a
operation o <root>; operation q o
pool f <root> "mode":"fifo"; pool a f
pool a <root> "integral_guarantees":{"guarantee_type":"burst"}; pool b a; pool c b "integral_guarantees":{"guarantee_type":"relaxed"}
pool a <root> "integral_guarantees":{"guarantee_type":"burst"}; pool b a "integral_guarantees":{"resource_flow":{"cpu":1}}"#,
    ),
    (
        "steps",
        STEP,
        r#"
"time_since_previous_update":-1
"time_since_previous_update":"60"
"dt":60
"total_resource_limits":{"cpu":-7}
"changes":{"p":{}}
"changes":{"z":{}}
"changes":{"a/o~":{"demand":{}}}
"changes":{"a/o~":{"resource_usage":{"cpu":1}}}"#,
    ),
];

/// `pool a <root> "mode":"fifo"` as the element that it means.
fn element(short: &str) -> String {
    let mut words = short.trim().splitn(4, ' ');
    match words.next() {
        Some(kind @ ("pool" | "operation")) => {
            let (id, parent) = (words.next().expect("an id"), words.next().expect("a parent"));
            let more = words.next().map(|more| format!(",{more}")).unwrap_or_default();
            format!(r#"{{"id":"{id}","parent":"{parent}","type":"{kind}"{more}}}"#)
        }
        _ => short.to_owned(),
    }
}

#[test]
fn refusals() {
    let mut text = String::new();
    for (heading, template, values) in REFUSED {
        text.push_str(&format!("=== {heading}\n\n"));
        for value in values.trim_start().lines() {
            let elements: Vec<String> = value.split("; ").map(element).collect();
            let line = line(template, &elements.join(","));
            match answer(line.as_bytes(), &Settings::default(), &mut no_clock) {
                Ok(_) => panic!("not refused: {value}"),
                Err(refusal) => text.push_str(&format!("{value}\n    {refusal}\n")),
            }
        }
        text.push('\n');
    }
    expect_file!["refusals.txt"].assert_eq(&text);
}

#[test]
fn nesting_is_bounded() {
    let deep = answer("[".repeat(100_000).as_bytes(), &Settings::default(), &mut no_clock);
    let deep = deep.expect_err("too deep").to_string();
    assert!(deep.ends_with("expected at most 256 levels of nesting, found a deeper one in column 257"));
}

/// A burst pool without a flow, or without a burst, is not refused: it gets no integral share
/// (fair-share.md 11.1, last paragraph).
#[test]
fn half_configured_integral_pools() {
    let tree = |integral: &str| {
        let pool = format!(
            r#"{{"id":"p","parent":"<root>","type":"pool","accumulated_resource_volume":{{"cpu":6000,"memory":60000}},
                "integral_guarantees":{{{integral}}}}},
               {{"id":"o","parent":"p","type":"operation","resource_demand":{{"cpu":50,"memory":500}}}}"#
        );
        answered(&line(ELEMENTS, &pool))["p"].clone()
    };
    let zero = serde_json::json!([0, 0, 0, 0, 0]);
    let half = serde_json::json!([0, 0.5, 0, 0.5, 0]);
    for integral in [
        r#""guarantee_type":"burst","resource_flow":{"cpu":10}"#,
        r#""guarantee_type":"relaxed""#,
        r#""resource_flow":{"cpu":10},"burst_guarantee_resources":{"cpu":50}"#,
    ] {
        let pool = tree(integral);
        assert_eq!(pool["fair_share_integral"], zero, "{integral}");
        assert_eq!(pool["fair_share"], half, "{integral}");
    }
    // The saved volume may be spent without a flow that fills it up.
    let pool = tree(r#""guarantee_type":"burst","burst_guarantee_resources":{"cpu":50}"#);
    assert_eq!(pool["fair_share_integral"], half);
}

/// A resource that the cluster does not have constrains nobody and is guaranteed to nobody (2.2).
#[test]
fn totals_of_zero() {
    let elements = r#"{"id":"p","parent":"<root>","type":"pool","strong_guarantee_resources":{"cpu":50,"gpu":3}},
        {"id":"o","parent":"p","type":"operation","resource_demand":{"cpu":50,"gpu":7,"memory":500}}"#;
    let elements = answered(&line(ELEMENTS, elements));
    let half = serde_json::json!([0, 0.5, 0, 0.5, 0]);
    assert_eq!(elements["o"]["fair_share"], half);
    assert_eq!(elements["p"]["strong_guarantee_share"], half);
    // And a cluster that has nothing at all gives nothing.
    let empty = r#"{"name":"x","total_resource_limits":{},"elements":[
        {"id":"o","parent":"<root>","type":"operation","resource_demand":{"cpu":50}}],"steps":[{}]}"#;
    assert_eq!(answered(empty)["o"]["fair_share"], serde_json::json!([0, 0, 0, 0, 0]));
}

/// Limits of 0 are legal (10), and so are guarantees of children beyond those of their parent: the
/// rules about sums concern the configuration, an update is defined without them.
#[test]
fn odd_but_legal() {
    let elements = r#"{"id":"p","parent":"<root>","type":"pool","resource_limits":{"cpu":0},
            "strong_guarantee_resources":{"cpu":10}},
        {"id":"c","parent":"p","type":"pool","strong_guarantee_resources":{"cpu":80.0}},
        {"id":"o","parent":"c","type":"operation","resource_demand":{"cpu":50}},
        {"id":"q","parent":"<root>","type":"operation","resource_demand":{"cpu":50.0,"memory":10.0}}"#;
    let elements = answered(&line(ELEMENTS, elements));
    assert_eq!(elements["o"]["fair_share"], serde_json::json!([0, 0, 0, 0, 0]));
    assert_eq!(elements["q"]["fair_share"], serde_json::json!([0, 0.5, 0, 0.01, 0]));
    // Null is as good as absent, and ids are any text.
    let elements = r#"{"id":"\u00fc/\"","parent":"<root>","type":"pool","weight":null,"mode":null}"#;
    assert!(answered(&line(ELEMENTS, elements))["\u{fc}/\""].is_object());
    // `expect` and the notes of the corpus are not looked at.
    let line =
        line(STEP, r#""expect":7"#).replacen('{', r#"{"seed":[],"quirks":7,"reference_warnings":{},"#, 1);
    assert!(answered(&line)["<root>"].is_object());
}
