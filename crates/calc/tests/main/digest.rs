//! `memory-digest`: answers as they are printed, what is refused, and random lines.

use calc::memory_digest::answer;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

const GIB: i64 = 1 << 30;

fn printed(line: &str) -> String {
    let answer = answer(line.as_bytes()).unwrap_or_else(|e| panic!("{e}: {line}"));
    String::from_utf8(answer).expect("UTF-8")
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

fn completed(peaks: impl IntoIterator<Item = f64>, limit: i64) -> Vec<Value> {
    let job = |part: f64| json!({"outcome": "completed", "max_memory": (part * limit as f64).round()});
    peaks.into_iter().map(job).collect()
}

/// The factor after all of the jobs, six digits.
fn last_factor(case: &Value) -> String {
    let answer = answered(case);
    let factors = answer["factors"].as_array().expect("a list");
    assert_eq!(factors.len(), case["jobs"].as_array().expect("a list").len() + 1);
    format!("{:.6}", factors.last().and_then(Value::as_f64).expect("a number"))
}

#[test]
fn first_steps() {
    assert_eq!(
        printed(r#"{"name":"x","memory_limit":1000,"jobs":[]}"#),
        "{\"name\":\"x\",\"reserves\":[500],\"factors\":[0.5],\"retry_reserves\":[]}\n"
    );
    let line = r#"{"name":"x","options":{},"memory_limit":1073741824,"tmpfs_size":0,"jobs":[
        {"outcome":"completed","max_memory":268435456},
        {"outcome":"failed"},
        {"outcome":"aborted","max_memory":1073741824},
        {"outcome":"resource_overdraft","max_memory":300000000},
        {"outcome":"completed","max_memory":300000000.0}]}"#;
    expect![[r#"
        {"name":"x","reserves":[536870912,269111605,269111605,269111605,331650973,331650973],"factors":[0.5,0.2506297131929406,0.2506297131929406,0.2506297131929406,0.30887403855057216,0.30887403855057216],"retry_reserves":[null,269111605,269111605,1073741824,null]}
    "#]].assert_eq(&printed(line));
}

/// jobs-and-nodes.md 2.8, through the door of the calculator.
#[test]
fn worked_examples() {
    let case = |options: Value, limit: i64, jobs: Vec<Value>| json!({"name": "2.8", "options": options, "memory_limit": limit, "jobs": jobs});
    let twenty = || completed((1..=20).map(|i| 0.04 * f64::from(i)), GIB);
    for (p, expected) in [
        (0.95, "0.763882"),
        (0.5, "0.400071"),
        (0.8, "0.645005"),
        (0.9, "0.726808"),
        (1.0, "0.802848"),
        (0.0, "0.050000"),
    ] {
        let options = json!({"user_job_memory_reserve_quantile": p});
        assert_eq!(last_factor(&case(options, GIB, twenty())), expected, "P = {p}");
    }
    let hungry = |n| completed(std::iter::repeat_n(0.3, 95).chain(std::iter::repeat_n(0.8, n)), GIB);
    assert_eq!(last_factor(&case(json!({}), GIB, hungry(5))), "0.302788");
    assert_eq!(last_factor(&case(json!({}), GIB, hungry(6))), "0.802848");
    assert_eq!(last_factor(&case(json!({}), GIB, completed([0.02], GIB))), "0.050500");
    let limit = 512 << 20;
    let job = json!({"outcome": "resource_overdraft", "max_memory": (0.55 * limit as f64) as i64});
    let overdraft = case(json!({}), limit, vec![job]);
    assert_eq!(last_factor(&overdraft), "0.607624");
    assert_eq!(answered(&overdraft)["retry_reserves"], json!([limit]), "its own unit gets all");
    let floor = |jobs| case(json!({"memory_reserve_factor": 0.8}), GIB, jobs);
    assert_eq!(last_factor(&floor(completed([0.3], GIB))), "0.808000");
    assert_eq!(last_factor(&floor(completed([0.3, 0.95, 0.95, 0.95, 0.95, 0.95], GIB))), "0.956918");
    let coarse = json!({"user_job_memory_digest_precision": 0.05, "user_job_memory_reserve_quantile": 0.8,
        "user_job_memory_digest_default_value": 0.9});
    let coarse = answered(&case(coarse, 400_000_000, completed([0.52, 0.52], 400_000_000)));
    let millions = |i: usize| format!("{:.2}", coarse["reserves"][i].as_f64().expect("bytes") / 1e6);
    assert_eq!([millions(0), millions(1), millions(2)], ["360.00", "208.03", "208.03"]);
}

/// jobs-and-nodes.md 2.5: runs of one unit, under both names of the multiplier.
#[test]
fn runs_of_one_unit() {
    for name in
        ["user_job_resource_overdraft_memory_multiplier", "resource_overdraft_memory_reserve_multiplier"]
    {
        let job = json!({"outcome": "resource_overdraft", "max_memory": 250_000_000, "cookie": 0});
        let case = json!({"name": "2.5", "memory_limit": 400_000_000,
            "options": {name: 1.5, "user_job_memory_digest_default_value": 0.4}, "jobs": [job, job, job]});
        let answer = answered(&case);
        let reserves = answer["reserves"].as_array().expect("a list");
        assert_eq!(reserves[..3], [160_000_000, 240_000_000, 400_000_000]);
        assert_eq!(answer["retry_reserves"], json!([240_000_000, 400_000_000, 400_000_000]));
    }
}

#[test]
fn memory_file_systems_are_always_reserved() {
    let case = json!({"name": "x", "memory_limit": 1000, "tmpfs_size": 700,
        "jobs": [{"outcome": "completed", "max_memory": 10}, {"outcome": "completed", "max_memory": 800}]});
    let answer = answered(&case);
    assert_eq!(answer["reserves"], json!([700, 707, 804]));
}

#[test]
fn refusals() {
    check("{}", expect!["/name: required, expected a string"]);
    let case = |field: &str, value: &str| {
        let mut fields = vec![("name", "\"x\""), ("memory_limit", "1000"), ("jobs", "[]")];
        match fields.iter_mut().find(|(name, _)| *name == field) {
            Some(known) => known.1 = value,
            None => fields.push((field, value)),
        }
        let fields = fields.iter().filter(|(_, v)| !v.is_empty()).map(|(n, v)| format!("{n:?}:{v}"));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    };
    check(
        &case("memory_limit", ""),
        expect!["/memory_limit: required, expected a whole number of bytes from 1 to 17592186044416"],
    );
    check(
        &case("memory_limit", "0"),
        expect!["/memory_limit: expected a whole number of bytes from 1 to 17592186044416, found 0"],
    );
    check(
        &case("memory_limit", "1.5"),
        expect!["/memory_limit: expected a whole number of bytes from 1 to 17592186044416, found 1.5"],
    );
    check(
        &case("tmpfs_size", "1001"),
        expect![
            "/tmpfs_size: expected a whole number of bytes from 0 to the memory limit, which is 1000, found 1001"
        ],
    );
    check(&case("jobs", ""), expect!["/jobs: required, expected a list of objects"]);
    check(&case("jobs", "[7]"), expect!["/jobs/0: expected an object, found 7"]);
    check(
        &case("jobs", "[{}]"),
        expect![[
            r#"/jobs/0/outcome: required, expected "completed" or "resource_overdraft" or "failed" or "aborted""#
        ]],
    );
    check(
        &case("jobs", r#"[{"outcome":"lost"}]"#),
        expect![[
            r#"/jobs/0/outcome: expected "completed" or "resource_overdraft" or "failed" or "aborted", found "lost""#
        ]],
    );
    check(
        &case("jobs", r#"[{"outcome":"failed"},{"outcome":"completed"}]"#),
        expect![
            "/jobs/1/max_memory: required, expected a whole number of bytes from 0 to 9223372036854775807"
        ],
    );
    check(
        &case("jobs", r#"[{"outcome":"completed","max_memory":-1}]"#),
        expect![
            "/jobs/0/max_memory: expected a whole number of bytes from 0 to 9223372036854775807, found -1"
        ],
    );
    check(
        &case("jobs", r#"[{"outcome":"failed","cookie":-1}]"#),
        expect!["/jobs/0/cookie: expected a whole number from 0 to 2147483647, found -1"],
    );
    check(
        &case("jobs", r#"[{"outcome":"failed","peak":1}]"#),
        expect!["/jobs/0/peak: unknown key, known are outcome, max_memory, cookie"],
    );
    check(
        &case("options", r#"{"memory_reserve_factor":0}"#),
        expect!["/options/memory_reserve_factor: expected a number greater than 0 and at most 1, found 0"],
    );
    check(
        &case("options", r#"{"user_job_memory_reserve_quantile":95}"#),
        expect!["/options/user_job_memory_reserve_quantile: expected a number from 0 to 1, found 95"],
    );
    check(
        &case("options", r#"{"user_job_memory_digest_precision":"x"}"#),
        expect![[
            r#"/options/user_job_memory_digest_precision: expected a finite number greater than 0, found string "x""#
        ]],
    );
    check(
        &case("options", r#"{"memory_digest_resource_overdraft_factor":0.5}"#),
        expect![
            "/options/memory_digest_resource_overdraft_factor: expected a number from 1 to 10, found double 0.5"
        ],
    );
    let unknown = answer(case("options", r#"{"precision":1}"#).as_bytes()).expect_err("refused").to_string();
    assert!(unknown.starts_with("/options/precision: unknown option, known are memory_reserve_factor, "));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_jobs(
        limit in 1i64..2_000,
        tmpfs in 0.0..=1.0f64,
        jobs in prop::collection::vec((0usize..4, 0i64..3_000, prop::option::weighted(0.3, 0u32..4)), 0..60),
    ) {
        const OUTCOMES: [&str; 4] = ["completed", "resource_overdraft", "failed", "aborted"];
        let tmpfs = (limit as f64 * tmpfs) as i64;
        let list: Vec<Value> = jobs
            .iter()
            .map(|(o, peak, cookie)| json!({"outcome": OUTCOMES[*o], "max_memory": peak, "cookie": cookie}))
            .collect();
        let case = json!({"name": "x", "memory_limit": limit, "tmpfs_size": tmpfs, "jobs": list});
        let answer = answered(&case);
        let reserves = answer["reserves"].as_array().expect("a list");
        prop_assert_eq!(reserves.len(), jobs.len() + 1);
        prop_assert!(reserves.iter().all(|r| r.as_i64().is_some_and(|r| (tmpfs..=limit).contains(&r))));
        for (i, (outcome, _, cookie)) in jobs.iter().enumerate() {
            let retry = &answer["retry_reserves"][i];
            prop_assert_eq!(retry.is_null(), *outcome == 0);
            if *outcome == 1 {
                prop_assert_eq!(retry, &json!(limit), "all there is");
            }
            // Nothing is learned from these.
            let alone = cookie.is_none() && jobs.get(i + 1).is_none_or(|next| next.2.is_none());
            if *outcome >= 2 && alone {
                prop_assert_eq!(&reserves[i], &reserves[i + 1]);
            }
        }
    }

    #[test]
    fn changed_bytes(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let line = r#"{"name":"x","options":{"memory_reserve_factor":0.5},"memory_limit":1000,"tmpfs_size":7,"jobs":[
            {"outcome":"completed","max_memory":268},{"outcome":"resource_overdraft","max_memory":900,"cookie":1}]}"#;
        let mut line = line.as_bytes().to_vec();
        for (place, byte) in changes {
            let place = place.index(line.len());
            line[place] = byte;
        }
        let _ = answer(&line);
    }
}
