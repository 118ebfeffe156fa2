//! Options: every name, default, range and alias; and random maps.

use proptest::prelude::*;
use reserve::cpu_monitor::{self, Options};
use reserve::error_parts;
use reserve::memory_digest::{ClusterOptions, JobProxyOptions, ScriptOptions};
use vocab::Span;
use yson::fields::{FieldError, Fields};
use yson::{Map, Value};

/// What is shown of the options in a map, and what nobody understood.
type Read = fn(&Map) -> Result<(Map, Map), FieldError>;

const READERS: [(&str, Read); 4] = [
    ("job_cpu_monitor", |map| {
        let mut f = Fields::new(map, "");
        Options::read(&mut f).map(|o| (o.to_map(), f.unrecognized()))
    }),
    ("cluster", |map| {
        let mut f = Fields::new(map, "");
        ClusterOptions::read(&mut f).map(|o| (o.to_map(), f.unrecognized()))
    }),
    ("script", |map| {
        let mut f = Fields::new(map, "");
        ScriptOptions::read(&mut f).map(|o| (o.to_map(), f.unrecognized()))
    }),
    ("job_proxy_memory_digest", |map| {
        let mut f = Fields::new(map, "");
        JobProxyOptions::read(&mut f, &JobProxyOptions::default()).map(|o| (o.to_map(), f.unrecognized()))
    }),
];

fn reader(name: &str) -> Read {
    READERS.iter().find(|(n, _)| *n == name).expect("a reader").1
}

fn map(text: &str) -> Map {
    let value = yson::parse(format!("{{{text}}}").as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"));
    value.as_map().expect("a map").clone()
}

fn show(map: Map) -> String {
    String::from_utf8(yson::to_text(&map.into())).expect("text")
}

#[test]
fn defaults() {
    let shown = |name| show(reader(name)(&Map::new()).expect("defaults").0);
    assert_eq!(
        shown("job_cpu_monitor"),
        "{\"enable_cpu_reclaim\"=%false;\"check_period\"=1000;\"start_delay\"=0;\"smoothing_factor\"=0.1;\
         \"relative_upper_bound\"=0.9;\"relative_lower_bound\"=0.6;\"increase_coefficient\"=1.45;\
         \"decrease_coefficient\"=0.97;\"vote_window_size\"=5;\"vote_decision_threshold\"=3;\
         \"min_cpu_limit\"=1.;}"
    );
    assert_eq!(
        shown("cluster"),
        "{\"user_job_memory_digest_precision\"=0.01;\"user_job_memory_reserve_quantile\"=0.95;\
         \"job_proxy_memory_reserve_quantile\"=0.95;\"memory_digest_resource_overdraft_factor\"=1.1;\
         \"use_resource_overdraft_memory_multiplier_from_spec\"=%false;}"
    );
    assert_eq!(
        shown("script"),
        "{\"user_job_memory_digest_default_value\"=0.5;\"user_job_memory_digest_lower_bound\"=0.05;\
         \"ignore_memory_reserve_factor_less_than_one\"=%false;}"
    );
    assert_eq!(
        shown("job_proxy_memory_digest"),
        "{\"lower_bound\"=0.5;\"default_value\"=1.;\"upper_bound\"=2.;\"relative_precision\"=0.01;}"
    );
}

/// (reader, option, what is taken, what is refused, what would have been taken).
type Row = (&'static str, &'static str, &'static [&'static str], &'static [&'static str], &'static str);
const RANGES: &[Row] = &[
    ("job_cpu_monitor", "enable_cpu_reclaim", &["%true", "%false"], &["1", "\"true\"", "{}"], "boolean"),
    (
        "job_cpu_monitor",
        "check_period",
        &["1", "\"10s\"", "\"5m\"", "\"500ms\"", "250u"],
        &["0", "-1", "1.0", "x", "\"-1s\"", "\"999us\"", "%true"],
        "duration",
    ),
    ("job_cpu_monitor", "start_delay", &["0", "\"10s\""], &["-1", "1.0", "[]"], "duration"),
    (
        "job_cpu_monitor",
        "smoothing_factor",
        &["0", "1", "0.5"],
        &["-0.1", "1.1", "x", "%nan", "%inf"],
        "from 0 to 1",
    ),
    ("job_cpu_monitor", "relative_upper_bound", &["0", "1."], &["-0.1", "1.01", "{}"], "from 0 to 1"),
    ("job_cpu_monitor", "relative_lower_bound", &["0", "1."], &["-0.1", "1.01", "%true"], "from 0 to 1"),
    ("job_cpu_monitor", "increase_coefficient", &["1", "2"], &["0.99", "2.01"], "from 1 to 2"),
    ("job_cpu_monitor", "decrease_coefficient", &["0", "1"], &["-0.01", "1.01"], "from 0 to 1"),
    ("job_cpu_monitor", "vote_window_size", &["1", "1000"], &["0", "-5", "2.5", "x"], "at least 1"),
    ("job_cpu_monitor", "vote_decision_threshold", &["1", "1000"], &["0", "-5", "2.5"], "at least 1"),
    ("job_cpu_monitor", "votes_decision_threshold", &["4"], &["0", "x"], "at least 1"),
    ("job_cpu_monitor", "min_cpu_limit", &["0", "1", "0.25"], &["-1", "1.5", "2"], "from 0 to 1"),
    (
        "cluster",
        "user_job_memory_digest_precision",
        &["0.05", "5"],
        &["0", "-1", "%inf", "x"],
        "greater than 0",
    ),
    ("cluster", "user_job_memory_reserve_quantile", &["0", "1"], &["-0.1", "1.1"], "from 0 to 1"),
    ("cluster", "job_proxy_memory_reserve_quantile", &["0", "1"], &["-0.1", "1.1"], "from 0 to 1"),
    ("cluster", "memory_digest_resource_overdraft_factor", &["1", "10"], &["0.9", "10.1"], "from 1 to 10"),
    (
        "cluster",
        "user_job_resource_overdraft_memory_multiplier",
        &["1", "10"],
        &["0.9", "11"],
        "from 1 to 10",
    ),
    (
        "cluster",
        "job_proxy_resource_overdraft_memory_multiplier",
        &["1", "10"],
        &["0.9", "11"],
        "from 1 to 10",
    ),
    ("cluster", "use_resource_overdraft_memory_multiplier_from_spec", &["%true"], &["1"], "boolean"),
    ("script", "memory_reserve_factor", &["1", "0.3"], &["0", "1.01", "-1"], "greater than 0 and at most 1"),
    ("script", "user_job_memory_digest_default_value", &["1"], &["0", "1.1"], "greater than 0 and at most 1"),
    ("script", "user_job_memory_digest_lower_bound", &["1"], &["0", "1.1"], "greater than 0 and at most 1"),
    ("script", "ignore_memory_reserve_factor_less_than_one", &["%true"], &["1"], "boolean"),
    ("script", "user_job_resource_overdraft_memory_multiplier", &["1.5"], &["0.5", "11"], "from 1 to 10"),
    ("script", "resource_overdraft_memory_reserve_multiplier", &["1.5"], &["0.5", "11"], "from 1 to 10"),
    ("script", "job_proxy_resource_overdraft_memory_multiplier", &["1.5"], &["0.5", "11"], "from 1 to 10"),
    ("job_proxy_memory_digest", "lower_bound", &["0.1", "1"], &["0", "-1", "%inf", "3"], ""),
    ("job_proxy_memory_digest", "default_value", &["2", "0.5"], &["0", "0.4", "2.1"], ""),
    ("job_proxy_memory_digest", "upper_bound", &["1", "5"], &["0", "x", "%inf"], "greater than 0"),
    ("job_proxy_memory_digest", "relative_precision", &["0.5"], &["0", "-1"], "greater than 0"),
];

#[test]
fn ranges() {
    for (section, option, good, bad, allowed) in RANGES {
        let read = reader(section);
        for value in *good {
            let (shown, left) = read(&map(&format!("{option}={value}"))).unwrap_or_else(|e| panic!("{e}"));
            assert!(left.is_empty(), "{option}");
            assert!(shown.iter().all(|(key, _)| key != b"votes_decision_threshold"), "canonical names only");
        }
        for value in *bad {
            let text = format!("{option}={value}");
            let error = read(&map(&text)).expect_err(&text);
            let (path, why) = error_parts(&error);
            assert_eq!(path, *option, "{text}");
            assert!(why.contains(allowed) && !why.contains("option"), "{text}: {why}");
        }
        // `#` is an absent value.
        assert_eq!(read(&map(&format!("{option}=#"))), read(&Map::new()), "{option}");
    }
}

#[test]
fn every_name_is_listed() {
    let lists: [(&str, &[&str]); 3] = [
        ("job_cpu_monitor", &cpu_monitor::NAMES),
        ("cluster", &ClusterOptions::NAMES),
        ("script", &ScriptOptions::NAMES),
    ];
    for (section, names) in lists {
        for name in names {
            assert!(RANGES.iter().any(|r| r.0 == section && r.1 == *name), "{name} has no row");
        }
        let rows = RANGES.iter().filter(|r| r.0 == section);
        assert!(rows.clone().all(|r| names.contains(&r.1)));
        assert_eq!(rows.count(), names.len());
    }
}

#[test]
fn errors_say_what_is_allowed_and_what_was_found() {
    for (section, given, expected) in [
        (
            "job_cpu_monitor",
            "smoothing_factor=1.5",
            "option \"smoothing_factor\": expected a number from 0 to 1, found double 1.5",
        ),
        (
            "job_cpu_monitor",
            "check_period=0",
            "option \"check_period\": expected a duration (milliseconds, or text like \"10s\") of at least 1 ms, found 0",
        ),
        (
            "job_cpu_monitor",
            "vote_window_size=x",
            "option \"vote_window_size\": expected an integer of at least 1, found string \"x\"",
        ),
        (
            "job_cpu_monitor",
            "vote_decision_threshold=3; votes_decision_threshold=4",
            "option \"votes_decision_threshold\": the same option is also given as \"vote_decision_threshold\"",
        ),
        (
            "script",
            "memory_reserve_factor=0",
            "option \"memory_reserve_factor\": expected a number greater than 0 and at most 1, found 0",
        ),
        (
            "job_proxy_memory_digest",
            "lower_bound=3",
            "option \"lower_bound\": 3 is greater than upper_bound 2",
        ),
        (
            "job_proxy_memory_digest",
            "default_value=0.2",
            "option \"default_value\": 0.2 is not between lower_bound 0.5 and upper_bound 2",
        ),
    ] {
        let error = reader(section)(&map(given)).expect_err(given);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn durations_have_units_and_aliases_are_shown_by_their_names() {
    let read = |text: &str| {
        let map = map(text);
        Options::read(&mut Fields::new(&map, "")).expect("good options")
    };
    let options = read("check_period=\"500ms\"; start_delay=\"2m\"; votes_decision_threshold=4");
    assert_eq!(options.check_period, Span::from_millis(500));
    assert_eq!(options.start_delay, Span::from_secs(120));
    assert_eq!(options.vote_decision_threshold, 4);
    assert!(show(options.to_map()).contains("\"vote_decision_threshold\"=4;"));
    // A section of a script stands on that of the operation.
    let root = JobProxyOptions { upper_bound: 5.0, ..JobProxyOptions::default() };
    let map = map("default_value=4");
    let script = JobProxyOptions::read(&mut Fields::new(&map, ""), &root).expect("good options");
    assert_eq!(script, JobProxyOptions { default_value: 4.0, ..root });
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3i64..12).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-0.5..2.5f64).prop_map(Value::from),
        prop::sample::select(vec!["", "x", "1s", "5m", "-1s", "99999999999999999999d", "1.5s"])
            .prop_map(Value::from),
        Just(Value::Entity),
        Just(Value::List(Vec::new())),
        Just(Value::Map(Map::new())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is in the map: either an error that names an option of it, or options whose shown form
    /// reads back as itself.
    #[test]
    fn random_maps(
        reader in 0..READERS.len(),
        entries in prop::collection::vec((0..RANGES.len(), value()), 0..6),
        stranger in prop::option::of(value()),
    ) {
        let read = READERS[reader].1;
        let section = READERS[reader].0;
        let rows: Vec<_> = RANGES.iter().filter(|r| r.0 == section).collect();
        let mut given = Map::new();
        for (row, value) in entries {
            given.insert(rows[row % rows.len()].1, value);
        }
        if let Some(value) = &stranger {
            given.insert("stranger", value.clone());
        }
        match read(&given) {
            Ok((shown, left)) => {
                prop_assert_eq!(left.len(), usize::from(stranger.is_some()));
                prop_assert_eq!(read(&shown), Ok((shown.clone(), Map::new())));
            }
            Err(e) => {
                let (path, why) = error_parts(&e);
                prop_assert!(given.contains(path) || section == "job_proxy_memory_digest", "{e}");
                prop_assert!(!why.is_empty());
            }
        }
    }
}
