//! `cpu-monitor`: answers as they are printed, what is refused, and random lines.

use calc::cpu_monitor::answer;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

fn printed(line: &str) -> String {
    let answer = answer(line.as_bytes()).unwrap_or_else(|e| panic!("{e}: {line}"));
    String::from_utf8(answer).expect("UTF-8")
}

/// One check a line, to be read.
fn broken(answer: &str) -> String {
    answer.replace("},", "},\n").replace("[{", "[\n{")
}

#[track_caller]
fn check(line: &str, expected: Expect) {
    match answer(line.as_bytes()) {
        Ok(_) => panic!("not refused: {line}"),
        Err(refusal) => expected.assert_eq(&refusal.to_string()),
    }
}

fn answered(case: &Value) -> Value {
    let answer = printed(&case.to_string());
    assert_eq!(answer.matches('\n').count(), 1);
    serde_json::from_str(&answer).expect("JSON")
}

/// Readings of a job that uses the same all the time.
fn steady(cores: f64, seconds: usize) -> Vec<Value> {
    (0..=seconds).map(|s| json!([s, s as f64 * cores])).collect()
}

#[test]
fn every_kind_of_check() {
    let line = r#"{"name":"a\"b","options":{"smoothing_factor":0.5,"vote_window_size":2,"vote_decision_threshold":1,
        "increase_coefficient":2,"decrease_coefficient":0.5,"min_cpu_limit":0.25,"start_delay":500,
        "enable_cpu_reclaim":true},"cpu_limit":2,
        "samples":[[0,0],[0.5,0],[1.5,1],[2.5,1.5],[3,null],[4.5,1.5],[5.5,1.5],[6.5,0.5],[7.5,8.5],[8.5,16.5]]}"#;
    expect![[r#"
        {"name":"a\"b","checks":[
        {"t":0,"usage":null,"smoothed":null,"vote":null,"votes_sum":null,"limit":2},
        {"t":0.5,"usage":null,"smoothed":null,"vote":null,"votes_sum":null,"limit":2},
        {"t":1.5,"usage":1,"smoothed":2,"vote":1,"votes_sum":null,"limit":2},
        {"t":2.5,"usage":0.5,"smoothed":1.25,"vote":0,"votes_sum":1,"limit":2},
        {"t":3,"usage":null,"smoothed":1.25,"vote":null,"votes_sum":null,"limit":2},
        {"t":4.5,"usage":0,"smoothed":0.625,"vote":-1,"votes_sum":-1,"limit":2},
        {"t":5.5,"usage":0,"smoothed":0.3125,"vote":-1,"votes_sum":-2,"limit":1},
        {"t":6.5,"usage":null,"smoothed":0.3125,"vote":null,"votes_sum":null,"limit":1},
        {"t":7.5,"usage":8,"smoothed":4.15625,"vote":1,"votes_sum":null,"limit":1},
        {"t":8.5,"usage":8,"smoothed":6.078125,"vote":1,"votes_sum":2,"limit":2}],"statistics":{"job_proxy/smoothed_cpu_usage_x100":607,"job_proxy/preemptible_cpu_x100":0,"job_proxy/aggregated_smoothed_cpu_usage_x100":1504,"job_proxy/aggregated_max_cpu_usage_x100":1400,"job_proxy/aggregated_preemptible_cpu_x100":200,"job_proxy/aggregated_preempted_cpu_x100":200,"job_proxy/preemptable_cpu_x100":0,"job_proxy/aggregated_preemptable_cpu_x100":200}}
    "#]].assert_eq(&broken(&printed(line)));
}

#[test]
fn nothing_to_do() {
    let line = r#"{"name":"x","cpu_limit":0,"samples":[]}"#;
    assert_eq!(printed(line), "{\"name\":\"x\",\"checks\":[],\"statistics\":{}}\n");
    let line = r#"{"name":"x","options":{},"cpu_limit":0,"samples":[[0,0],[1,1],[2,2]]}"#;
    expect![[r#"
        {"name":"x","checks":[
        {"t":0,"usage":null,"smoothed":null,"vote":null,"votes_sum":null,"limit":0},
        {"t":1,"usage":null,"smoothed":null,"vote":null,"votes_sum":null,"limit":0},
        {"t":2,"usage":null,"smoothed":null,"vote":null,"votes_sum":null,"limit":0}],"statistics":{}}
    "#]]
    .assert_eq(&broken(&printed(line)));
}

/// jobs-and-nodes.md 1.7, through the door of the calculator.
#[test]
fn worked_example() {
    let case = json!({"name": "1.7", "cpu_limit": 4, "samples": steady(1.0, 160)});
    let answer = answered(&case);
    let limit = |check: usize| answer["checks"][check]["limit"].as_f64().expect("a number");
    let printed = [11, 12, 17, 22, 27, 151, 152, 160].map(|check| format!("{:.6}", limit(check)));
    let last = "1.653637";
    assert_eq!(printed[..5], ["4.000000", "3.880000", "3.763600", "3.650692", "3.541171"]);
    assert!(printed[5] != last && printed[6..] == [last, last], "{printed:?}");
    assert_eq!(answer["statistics"]["job_proxy/aggregated_preempted_cpu_x100"], 0, "reclaim is off");
    // The alias of the documentation, and durations with a unit.
    let mut other = case.clone();
    other["options"] = json!({"votes_decision_threshold": 3, "check_period": "1s", "start_delay": null});
    assert_eq!(answered(&other), answer);
}

#[test]
fn refusals() {
    check("{", expect!["expected a key in quotes, found end of input in column 2"]);
    check("[]", expect!["expected an object, found a list"]);
    check("{}", expect!["/name: required, expected a string"]);
    let case = |field: &str, value: &str| {
        let mut fields = vec![("name", "\"x\""), ("options", "{}"), ("cpu_limit", "4"), ("samples", "[]")];
        match fields.iter_mut().find(|(name, _)| *name == field) {
            Some(known) => known.1 = value,
            None => fields.push((field, value)),
        }
        let fields = fields.iter().filter(|(_, v)| !v.is_empty()).map(|(n, v)| format!("{n:?}:{v}"));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    };
    check(&case("cpu_limit", ""), expect!["/cpu_limit: required, expected a number of cores from 0 to 1e9"]);
    check(
        &case("cpu_limit", "-1"),
        expect!["/cpu_limit: expected a number of cores from 0 to 1e9, found -1"],
    );
    check(
        &case("cpu_limit", "1e999"),
        expect!["/cpu_limit: expected a number of cores from 0 to 1e9, found an infinite number"],
    );
    check(
        &case("samples", ""),
        expect!["/samples: required, expected a list of pairs [seconds, cumulative CPU seconds or null]"],
    );
    check(&case("samples", "7"), expect!["/samples: expected a list, found 7"]);
    check(
        &case("samples", "[[0,0],[1]]"),
        expect!["/samples/1: expected a pair [seconds, cumulative CPU seconds or null], found a list"],
    );
    check(
        &case("samples", "[0]"),
        expect!["/samples/0: expected a pair [seconds, cumulative CPU seconds or null], found 0"],
    );
    check(
        &case("samples", "[[0,0,0]]"),
        expect!["/samples/0: expected a pair [seconds, cumulative CPU seconds or null], found a list"],
    );
    check(
        &case("samples", "[[-1,0]]"),
        expect!["/samples/0/0: expected a number of seconds from 0 to 1e12, found -1"],
    );
    check(
        &case("samples", "[[null,0]]"),
        expect!["/samples/0/0: expected a number of seconds from 0 to 1e12, found null"],
    );
    check(
        &case("samples", "[[0,0],[0,1]]"),
        expect!["/samples/1/0: expected a time after that of the sample before, 0, found 0"],
    );
    check(
        &case("samples", "[[0,0],[1,\"1\"]]"),
        expect![[r#"/samples/1/1: expected a number of CPU seconds from 0 to 1e12, or null, found "1""#]],
    );
    check(
        &case("samples", "[[0,NaN]]"),
        expect!["/samples/0/1: expected a JSON value, found `NaN` in column 54"],
    );
    check(
        &case("sample", "[]"),
        expect!["/sample: unknown key, known are name, options, cpu_limit, samples"],
    );
    check(&case("options", "[]"), expect!["/options: expected an object, found a list"]);
    check(
        &case("options", "{\"smothing_factor\":1}"),
        expect![
            "/options/smothing_factor: unknown option, known are enable_cpu_reclaim, check_period, start_delay, smoothing_factor, relative_upper_bound, relative_lower_bound, increase_coefficient, decrease_coefficient, vote_window_size, vote_decision_threshold, votes_decision_threshold, min_cpu_limit"
        ],
    );
    check(
        &case("options", "{\"smoothing_factor\":1.5}"),
        expect!["/options/smoothing_factor: expected a number from 0 to 1, found double 1.5"],
    );
    check(
        &case("options", "{\"vote_window_size\":0}"),
        expect!["/options/vote_window_size: expected an integer of at least 1, found 0"],
    );
    check(
        &case("options", "{\"votes_decision_threshold\":-2}"),
        expect!["/options/votes_decision_threshold: expected an integer of at least 1, found -2"],
    );
    check(
        &case("options", "{\"check_period\":0}"),
        expect![[
            r#"/options/check_period: expected a duration (milliseconds, or text like "10s") of at least 1 ms, found 0"#
        ]],
    );
    check(
        &case("options", "{\"enable_cpu_reclaim\":1}"),
        expect!["/options/enable_cpu_reclaim: expected boolean, found 1"],
    );
}

fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!("x")),
        Just(json!([])),
        Just(json!({})),
        Just(json!(true)),
        (-2i64..20).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-0.5..2.5f64).prop_map(Value::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is in the line: a refusal with a place, or as many checks as samples and only numbers.
    #[test]
    fn random_cases(
        options in prop::collection::vec((0..reserve::cpu_monitor::NAMES.len(), odd()), 0..3),
        cpu_limit in prop_oneof![4 => (0.0..9.0f64).prop_map(Value::from), 1 => odd()],
        samples in prop::collection::vec(
            prop_oneof![
                20 => (0.001..3.0f64, prop::option::weighted(0.9, 0.0..20.0f64)).prop_map(|(dt, cpu)| json!([dt, cpu])),
                1 => odd(),
            ],
            0..40,
        ),
    ) {
        let options: serde_json::Map<String, Value> =
            options.into_iter().map(|(i, v)| (reserve::cpu_monitor::NAMES[i].to_owned(), v)).collect();
        let mut now = 0.0;
        let mut total = 0.0;
        let samples: Vec<Value> = samples
            .into_iter()
            .map(|sample| match (sample[0].as_f64(), sample[1].as_f64()) {
                (Some(dt), cpu) => {
                    now += dt;
                    total += cpu.unwrap_or(0.0);
                    json!([now, cpu.map(|_| total)])
                }
                _ => sample,
            })
            .collect();
        let count = samples.len();
        let line = json!({"name": "x", "options": options, "cpu_limit": cpu_limit, "samples": samples}).to_string();
        match answer(line.as_bytes()) {
            Ok(answer) => {
                let answer: Value = serde_json::from_slice(&answer).expect("JSON");
                let checks = answer["checks"].as_array().expect("a list");
                prop_assert_eq!(checks.len(), count);
                let hard = cpu_limit.as_f64().expect("accepted");
                for check in checks {
                    prop_assert!(check["limit"].as_f64().is_some_and(|l| (0.0..=hard).contains(&l)), "{check}");
                    prop_assert_eq!(check["usage"].is_null(), check["vote"].is_null());
                }
            }
            Err(refusal) => prop_assert!(refusal.pointer.starts_with('/'), "{refusal}"),
        }
    }

    #[test]
    fn changed_bytes(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let options = r#"{"smoothing_factor":0.5,"start_delay":"1s"}"#;
        let line = format!(r#"{{"name":"x","options":{options},"cpu_limit":2.5,"samples":[[0,0],[1,0.5],[2.25,null],[3,1e1]]}}"#);
        let mut line = line.into_bytes();
        for (place, byte) in changes {
            let place = place.index(line.len());
            line[place] = byte;
        }
        let _ = answer(&line);
    }
}
