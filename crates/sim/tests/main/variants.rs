//! Variants beside their base.

use crate::desk::Desk;
use sim::Options;
use sim::what_if::{Plan, Variant, what_if};

const WORK: &str = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":40,"cpu":1,"memory":1000000,"duration":{"uniform":[50000,70000]}}]}"#;

#[test]
fn more_nodes_are_faster_and_less_used() {
    let desk = Desk::new(2, 4, 3_600_000, &[WORK]);
    let variant = r#"{"format":"millpond-variant/1","name":"more","set":{"/cluster/node_groups/0/count":8}}"#;
    desk.write("more.json", variant);
    let variant = Variant::load(&desk.path().join("more.json")).unwrap_or_else(|e| panic!("{e}"));
    let (scenario, out) = (desk.path().join("scenario.json"), desk.path().join("out"));
    let found = what_if(&scenario, &[], &[variant], &out, Options::default(), Plan::default(), &|_, _| true);
    let found = found.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(found.names, ["base", "more"]);
    let row = |metric: &str| {
        let row = found.rows.iter().find(|row| row.metric == metric).expect("a metric");
        (row.values[0].expect("a number"), row.values[1].expect("a number"))
    };
    assert_eq!(row("cluster.cores"), (8.0, 32.0));
    let (base, more) = row("virtual_ms");
    assert!(base > 2.0 * more, "{base} {more}");
    // The same jobs with the same durations.
    assert_eq!(row("cluster.counts.jobs_completed"), (40.0, 40.0));
    let (base, more) = row("cluster.waste.allocated_cpu_s");
    assert!((base - more).abs() < 1.0, "{base} {more}");
    assert!(desk.read("out/comparison.csv").contains("cluster.cores,more,8.000,32.000,24.000,3.000"));
    assert!(desk.read("out/more/scenario.json").contains("\"count\": 8"));
}

/// Several seeds at a time, on one thread and on four: the same bytes, and a difference is told with how sure
/// it is.
#[test]
fn seeds_and_threads() {
    let desk = Desk::new(2, 4, 3_600_000, &[WORK]);
    let variant = |name: &str, set: &str| {
        desk.write("v.json", &format!(r#"{{"format":"millpond-variant/1","name":"{name}","set":{set}}}"#));
        Variant::load(&desk.path().join("v.json")).unwrap_or_else(|e| panic!("{e}"))
    };
    let variants = [
        variant("more", r#"{"/cluster/node_groups/0/count":8}"#),
        variant("same", r#"{"/description":"the same"}"#),
    ];
    let scenario = desk.path().join("scenario.json");
    let [one, four] = [1, 4].map(|threads| {
        let out = desk.path().join(format!("out{threads}"));
        let plan = Plan { seeds: 4, threads };
        let found = what_if(&scenario, &[], &variants, &out, Options::default(), plan, &|_, _| true);
        found.unwrap_or_else(|e| panic!("{e}"))
    });
    assert_eq!(one.rows, four.rows);
    for file in ["comparison.csv", "comparison.json", "more/allocations.csv", "base-seed-6/operations.csv"] {
        let text = desk.read(&format!("out1/{file}"));
        assert!(text.len() > 100 && text == desk.read(&format!("out4/{file}")), "{file}");
    }
    assert_ne!(desk.read("out1/base/operations.csv"), desk.read("out1/base-seed-4/operations.csv"));
    let row = one.rows.iter().find(|row| row.metric == "virtual_ms").expect("a metric");
    let (low, high) = row.intervals[1].expect("an interval");
    let mean = row.values[1].expect("a mean") - row.values[0].expect("a mean");
    assert!(low < mean && mean < high && high < 0.0 && !row.is_noise(1), "{low} {mean} {high}");
    // Nothing at all is no news, however often it was tried.
    assert_eq!(row.intervals[2], Some((0.0, 0.0)));
    assert!(row.is_noise(2));
}

/// Who wants to stop stops all of them.
#[test]
fn stopped_in_the_middle() {
    let desk = Desk::new(2, 4, 3_600_000, &[WORK]);
    let plan = Plan { seeds: 3, threads: 2 };
    let (scenario, out) = (desk.path().join("scenario.json"), desk.path().join("out"));
    let found = what_if(&scenario, &[], &[], &out, Options::default(), plan, &|_, _| false);
    assert!(found.unwrap_or_else(|e| panic!("{e}")).interrupted);
}

#[test]
fn refusals() {
    let desk = Desk::new(2, 4, 3_600_000, &[WORK]);
    let told = |text: &str| {
        desk.write("v.json", text);
        let variant = Variant::load(&desk.path().join("v.json"));
        let error = variant.and_then(|variant| {
            let (scenario, out) = (desk.path().join("scenario.json"), desk.path().join("out"));
            what_if(&scenario, &[], &[variant], &out, Options::default(), Plan::default(), &|_, _| true)
        });
        error.expect_err("refused").to_string().replace(&desk.path().display().to_string(), "DIR")
    };
    let found = [
        r#"{"format":"millpond-variant/2","name":"v","set":{}}"#,
        r#"{"format":"millpond-variant/1","name":"../v","set":{}}"#,
        r#"{"format":"millpond-variant/1","name":"v","sets":{}}"#,
        r#"{"format":"millpond-variant/1","name":"v","set":{"/cluster/node_groups/7/count":3}}"#,
        r#"{"format":"millpond-variant/1","name":"v","set":{"/cluster/node_groups/0/count":"many"}}"#,
    ]
    .map(told);
    expect_test::expect![[r#"
        DIR/v.json: /format: expected "millpond-variant/1", found string "millpond-variant/2"
        DIR/v.json: /name: expected a name of letters, digits, "_", "-" and "." that is not "base", found string "../v"
        DIR/v.json: /set: required, expected map
        --set: /cluster/node_groups/7/count: "7" is no item of a list of 1
        DIR/scenario.json: /cluster/node_groups/0/count: expected uint64, found string "many""#]].assert_eq(&found.join("\n"));
}
