//! Options out of maps.

use std::time::Duration;
use yson::fields::{FieldError, Fields};
use yson::{Map, Value, parse};

fn map(text: &str) -> Map {
    parse(text.as_bytes()).unwrap().as_map().unwrap().clone()
}

#[test]
fn values_are_taken_by_type() {
    let m = map(r#"{s=text; i=-5; u=7u; d=2.5; b=%true; m={x=1}; l=[1;2]; n=#; "ы"=1; a=<q=1>3; w=[p;q]}"#);
    let mut f = Fields::new(&m, "");
    assert_eq!(f.take_str("s").required(), Ok("text"));
    assert_eq!(f.take_bytes("s").required(), Ok(&b"text"[..]));
    assert_eq!(f.take_i64("i").required(), Ok(-5));
    assert_eq!(f.take_i64("u").required(), Ok(7));
    assert_eq!(f.take_u64("u").required(), Ok(7));
    assert_eq!(f.take_f64("d").required(), Ok(2.5));
    assert_eq!(f.take_f64("i").required(), Ok(-5.0));
    assert_eq!(f.take_bool("b").required(), Ok(true));
    assert_eq!(f.take_map("m").required().map(Map::len), Ok(1));
    assert_eq!(f.take_list("l").required().map(<[Value]>::len), Ok(2));
    assert_eq!(f.take_str_list("w").required(), Ok(vec!["p", "q"]));
    assert_eq!(f.take_i64("a").required(), Ok(3), "attributes are ignored");
    assert_eq!(f.take_i64("n").optional(), Ok(None), "an entity is not given");
    assert_eq!(f.take_i64("n").or(4), Ok(4));
    assert_eq!(f.take_i64("missing").or(4), Ok(4));
    assert_eq!(f.take_str("missing").optional(), Ok(None));
    assert_eq!(f.take_value("ы").required(), Ok(&Value::Int(1)));
    let mut place = 1;
    f.take_i64("missing").into(&mut place).unwrap();
    assert_eq!(place, 1);
    f.take_i64("i").into(&mut place).unwrap();
    assert_eq!(place, -5);
    assert_eq!(f.take_parsed("s", "\"text\"", |s| (s == "text").then_some(1)).required(), Ok(1));
    assert_eq!(f.take_i64("i").map(i64::abs).required(), Ok(5));
    assert!(f.unrecognized().is_empty());
    assert_eq!(f.finish(), Ok(()));
}

#[test]
fn errors_name_option_expectation_and_finding() {
    let m = map(
        r#"{i=-5; s=abc; d=2.; big=9223372036854775808u; neg=-1; l=[]; nan=%nan; long="0123456789012345678901234567890123456789012345678901234567890123456789"}"#,
    );
    let mut f = Fields::new(&m, "spec");
    let check =
        |got: Result<(), FieldError>, expected: &str| assert_eq!(got.unwrap_err().to_string(), expected);
    check(
        f.take_i64("i").within(1..=100).optional().map(drop),
        "option \"spec/i\": expected int64 in 1..=100, found -5",
    );
    check(
        f.take_i64("i").within(0..).optional().map(drop),
        "option \"spec/i\": expected int64 of at least 0, found -5",
    );
    check(f.take_i64("s").or(1).map(drop), "option \"spec/s\": expected int64, found string \"abc\"");
    check(f.take_i64("d").or(1).map(drop), "option \"spec/d\": expected int64, found double 2.");
    check(
        f.take_i64("big").or(1).map(drop),
        "option \"spec/big\": expected int64, found uint64 9223372036854775808u",
    );
    check(f.take_u64("neg").or(1).map(drop), "option \"spec/neg\": expected uint64, found -1");
    check(f.take_str("l").or("").map(drop), "option \"spec/l\": expected string, found a list");
    check(f.take_f64("nan").or(1.0).map(drop), "option \"spec/nan\": expected double, found double %nan");
    check(
        f.take_f64("d").within(0.0..1.0).or(0.5).map(drop),
        "option \"spec/d\": expected double in 0.0..1.0 (the end excluded), found double 2.",
    );
    check(f.take_bool("gone").required().map(drop), "option \"spec/gone\": required, expected boolean");
    check(
        f.take_i64("long").or(1).map(drop),
        "option \"spec/long\": expected int64, found string \"01234567890123456789012345678901234567890123456789012345678...",
    );
    check(
        f.take_str("s").check("string of two bytes", |s| s.len() == 2).optional().map(drop),
        "option \"spec/s\": expected string of two bytes, found string \"abc\"",
    );
    let parsed = f.take_parsed("s", "one of \"fifo\", \"fair_share\"", |_| None::<u8>).optional();
    check(
        parsed.map(drop),
        "option \"spec/s\": expected one of \"fifo\", \"fair_share\", found string \"abc\"",
    );
    check(Err(f.error("i", "clashes with \"s\"")), "option \"spec/i\": clashes with \"s\"");
    assert_eq!(f.take_i64("s").optional().unwrap_err().path, "spec/s");
}

#[test]
fn durations() {
    let check = |text: &str, expected: Option<Duration>| {
        let m = map(&format!("{{t={text}}}"));
        assert_eq!(Fields::new(&m, "").take_duration_ms("t").optional().ok().flatten(), expected, "{text}");
    };
    check("1500", Some(Duration::from_millis(1500)));
    check("0", Some(Duration::ZERO));
    check("5u", Some(Duration::from_millis(5)));
    check("\"500ms\"", Some(Duration::from_millis(500)));
    check("\"250\"", Some(Duration::from_millis(250)));
    check("\"10s\"", Some(Duration::from_secs(10)));
    check("\"5m\"", Some(Duration::from_secs(300)));
    check("\"1h\"", Some(Duration::from_secs(3600)));
    check("\"2d\"", Some(Duration::from_secs(172_800)));
    check("\"7us\"", Some(Duration::from_micros(7)));
    for bad in [
        "-1",
        "1.5",
        "\"\"",
        "\"s\"",
        "\"1w\"",
        "\"-1s\"",
        "\"1.5s\"",
        "%true",
        "18446744073709551615u",
        "\"99999999999999d\"",
    ] {
        check(bad, None);
    }
    let m = map("{t=5}");
    let error =
        Fields::new(&m, "").take_duration_ms("t").within(Duration::from_secs(1)..).optional().unwrap_err();
    assert_eq!(error.message, "option \"t\": expected duration of at least 1s, found 5");
}

#[test]
fn aliases() {
    let names = ["max_failed_job_count", "max-failed-job-count"];
    let check = |text: &str, expected: Result<Option<i64>, &str>| {
        let m = map(text);
        let mut f = Fields::new(&m, "");
        let got = f.take_i64(names).within(0..).optional().map_err(|e| e.message);
        assert_eq!(got, expected.map_err(str::to_owned), "{text}");
        assert!(f.unrecognized().is_empty(), "{text}");
    };
    check("{max_failed_job_count=1}", Ok(Some(1)));
    check("{max-failed-job-count=2}", Ok(Some(2)));
    check("{max-failed-job-count=2;max_failed_job_count=1}", Ok(Some(1)));
    check("{max-failed-job-count=2;max_failed_job_count=#}", Ok(Some(2)));
    check("{}", Ok(None));
    // The error speaks of the name that was used.
    check(
        "{max-failed-job-count=-2}",
        Err("option \"max-failed-job-count\": expected int64 of at least 0, found -2"),
    );
}

#[test]
fn what_is_left_keeps_its_nesting() {
    let m = map(
        "{a=1; typo=2; monitor={enable=%true; tpyo={x=1}}; tasks={t={foo=1; job_count=2}; u={job_count=1}}; free={any=1}; ignored=5; full={a=1}}",
    );
    let mut f = Fields::new(&m, "");
    f.take_i64("a").required().unwrap();
    f.take_map("free").required().unwrap();
    f.ignore("ignored");
    let enable: Option<bool> = f.nested("monitor", |f| f.take_bool("enable").or(false)).unwrap();
    assert_eq!(enable, Some(true));
    let counts: Vec<(&str, i64)> = f.nested_each("tasks", |_, f| f.take_i64("job_count").required()).unwrap();
    assert_eq!(counts, [("t", 2), ("u", 1)]);
    let full: Option<i64> = f.nested("full", |f| f.take_i64("a").required()).unwrap();
    assert_eq!(full, Some(1));
    assert_eq!(f.nested("absent", |f| f.take_i64("x").required()), Ok(None));
    assert!(f.nested_each("absent", |_, f| f.take_i64("x").required()).unwrap().is_empty());
    assert_eq!(f.unrecognized(), map("{typo=2; monitor={tpyo={x=1}}; tasks={t={foo=1}}}"));
    assert_eq!(f.finish().unwrap_err().message, "option \"typo\": unknown option");
}

#[test]
fn nested_errors_have_the_whole_path() {
    let m = map("{tasks={t={job_count=x}; v=5}; monitor=[]; strict={deep={known=1; odd=2}}}");
    let mut f = Fields::new(&m, "spec");
    let error = f.nested_each("tasks", |_, f| f.take_i64("job_count").required()).unwrap_err();
    assert_eq!(error.message, "option \"spec/tasks/t/job_count\": expected int64, found string \"x\"");
    let error = f.nested_each("tasks", |_, _| Ok::<_, FieldError>(())).unwrap_err();
    assert_eq!(error.message, "option \"spec/tasks/v\": expected map, found 5");
    let error = f.nested("monitor", |_| Ok::<_, FieldError>(())).unwrap_err();
    assert_eq!(error.message, "option \"spec/monitor\": expected map, found a list");
    f.ignore("tasks");
    f.ignore("monitor");
    let read = |f: &mut Fields<'_>| f.nested("deep", |f| f.take_i64("known").required());
    f.nested("strict", read).unwrap();
    assert_eq!(f.finish().unwrap_err().path, "spec/strict/deep/odd");

    // A map that nobody knows is one unknown option, not as many as it has keys.
    let m = map("{unknown={a=1;b=2}}");
    assert_eq!(Fields::new(&m, "").finish().unwrap_err().path, "unknown");
}

#[test]
fn presence() {
    let m = map("{a=1;n=#}");
    let f = Fields::new(&m, "");
    assert!(f.has("a") && !f.has("n") && !f.has("x"));
    assert_eq!(f.unrecognized().len(), 2, "looking is not taking");
}
