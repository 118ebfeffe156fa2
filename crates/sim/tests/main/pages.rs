//! What people look at: the page of runs, explanations at a time, shares of a described tree.

use crate::desk::{Desk, json, rows};
use sim::output::Format;
use sim::{Options, Stopped};
use std::path::PathBuf;
use vocab::Span;
use yson::Value;

const FIRST: &str = r#"{"id":"first","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":60,"cpu":2,"memory":1000000,"duration":250000}]}"#;
const SECOND: &str = r#"{"id":"second","at":20000,"user":"v","pool":"b","tasks":[{"name":"t","job_count":60,"cpu":2,"memory":1000000,"duration":250000}]}"#;
const BURST: &str = r#"{"integral_guarantees":{"guarantee_type":"burst","resource_flow":{"cpu":5},"burst_guarantee_resources":{"cpu":20}}}"#;

/// The data in a page.
fn data_of(page: &str) -> Value {
    let from = page.split_once("id=\"data\">").expect("data").1;
    json(&from.split_once("</script>").expect("an end").0.replace("<\\/", "</"))
}

#[test]
fn a_page_of_two_runs() {
    let desk = Desk::new(5, 10, 3_600_000, &[FIRST, SECOND]);
    let burst = ("/pool_trees/trees/physical/pools/b", BURST);
    desk.checked("plain", &[]);
    desk.checked("burst", &[burst]);
    let folders: Vec<PathBuf> = ["plain", "burst"].map(|name| desk.path().join(name)).into();
    desk.write("checks.json", r#"{"bounds":[{"metric":"cluster.counts.jobs_completed","max":1}]}"#);
    let (checks, out) = (desk.path().join("checks.json"), desk.path().join("page.html"));
    sim::report::report(&folders, Some(&checks), &out).unwrap_or_else(|e| panic!("{e}"));
    let page = desk.read("page.html");
    // Nothing from outside.
    for word in ["http://", "https://", "src=", "@import", "url("] {
        let found = page.matches(word).count()
            - page.matches("http://www.w3.org/2000/svg").count() * usize::from(word == "http://");
        assert!(found == 0 || word == "url(" && page.contains("url(#"), "{word}");
    }
    let data = data_of(&page);
    let runs = data.get("runs").and_then(Value::as_list).expect("runs");
    assert_eq!(runs.len(), 2);
    let at = |run: usize, path: &str| {
        let found = path.split('/').try_fold(&runs[run], |v, key| match v {
            Value::List(list) => list.get(key.parse::<usize>().ok()?),
            v => v.get(key),
        });
        found.cloned().unwrap_or_default()
    };
    let names: Vec<_> = at(0, "trees/physical/pools")
        .as_list()
        .expect("pools")
        .iter()
        .map(|p| p.get("name").cloned())
        .collect();
    assert_eq!(names.len(), 3);
    // Volumes are drawn of pools that have them.
    assert!(at(0, "trees/physical/pools/2/lines/accumulated_volume_cpu_s").is_entity());
    let volume = at(1, "trees/physical/pools/2/lines/accumulated_volume_cpu_s");
    assert!(volume.as_list().is_some_and(|l| l[0].as_list().is_some_and(|t| t.len() > 5)), "{volume:?}");
    // The first one lost jobs to the second one, and that is what the tables say.
    let lost = at(0, "attempts/lost/0");
    let text = |key: &str| lost.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    assert_eq!((text("loser"), text("winner")), ("a".to_owned(), "b".to_owned()));
    let preempted =
        rows(&desk.read("plain/allocations.csv")).iter().filter(|r| r["reason"] == "preemption").count();
    assert_eq!(lost.get("jobs").and_then(Value::as_u64), Some(preempted as u64));
    assert_eq!(at(0, "attempts/waits/a/jobs").as_u64(), Some(60));
    assert_eq!(at(0, "checks/0/holds").as_bool(), Some(true), "invariants");
    assert_eq!(at(0, "checks/1/holds").as_bool(), Some(false));
    // All nodes are in one of the bands at any time, and all of them are full while both want more.
    let bands = at(0, "attempts/nodes/bands").as_map().cloned().expect("bands");
    let counts: Vec<Vec<f64>> = bands
        .iter()
        .map(|(_, line)| {
            let values = line.as_list().expect("a line")[1].as_list().expect("values");
            values.iter().map(|x| x.as_f64().expect("a number")).collect()
        })
        .collect();
    assert_eq!(counts.len(), 4);
    assert!(
        (0..counts[0].len()).all(|i| counts.iter().map(|band| band[i]).sum::<f64>() == 5.0),
        "{counts:?}"
    );
    assert_eq!((counts[3][counts[3].len() / 2], counts[3].len()), (5.0, 301));
    // Of sixty jobs of the first one twenty-five start at once; all of them at the end of the curve.
    let curve = at(0, "attempts/waits/a/curve");
    let curve = curve.as_list().expect("a curve");
    let point = |i: usize| curve[i].as_list().map(|p| (p[0].as_f64(), p[1].as_f64())).expect("a point");
    assert_eq!((curve.len(), point(59).1), (60, Some(1.0)));
    assert!(point(24).0.is_some_and(|s| s < 10.0) && point(25).0.is_some_and(|s| s > 200.0), "{curve:?}");
    // With a burst guarantee the second one starts and ends at other times, and the page tells when.
    let moved = data.get("moved").and_then(Value::as_list).expect("operations");
    assert_eq!(moved.len(), 2);
    for one in moved {
        let id = one.get("id").and_then(Value::as_str).expect("an id");
        for (run, name) in ["plain", "burst"].iter().enumerate() {
            let table = rows(&desk.read(&format!("{name}/operations.csv")));
            let row = table.iter().find(|row| row["id"] == id).expect("a row").clone();
            let of = |column: &str| row[column].parse::<i64>().expect("a number");
            let fate = &one.get("runs").and_then(Value::as_list).expect("runs")[run];
            let told = |key: &str| fate.get(key).and_then(Value::as_i64);
            assert_eq!(told("lasts_ms"), Some(of("finish_ms") - of("at_ms")));
            assert_eq!(told("preempted"), Some(of("preempted_job_count") + of("interrupted")));
        }
    }
    // How fast it was is no part of a page: it would never be the same.
    assert!(!page.contains("wall_s") && at(0, "summary/performance").is_entity());
}

/// Tables of the other forms make the same page.
#[test]
fn json_lines_and_parquet_do_as_well() {
    let desk = Desk::new(5, 10, 3_600_000, &[FIRST, SECOND]);
    desk.run("out", &[], Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let page = |desk: &Desk| {
        let out = desk.path().join("page.html");
        sim::report::report(&[desk.path().join("out")], None, &out).unwrap_or_else(|e| panic!("{e}"));
        desk.read("page.html")
    };
    let first = page(&desk);
    for format in [Format::Jsonl, Format::Parquet] {
        // Tables of the run before are gone: nobody reads the wrong ones.
        desk.run("out", &[], Options { format, ..Options::default() }).unwrap_or_else(|e| panic!("{e}"));
        assert!(!desk.path().join("out/pools.csv").exists());
        assert!(first == page(&desk), "{format:?}");
    }
}

#[test]
fn columns_of_pools() {
    let desk = Desk::new(5, 10, 3_600_000, &[FIRST, SECOND]);
    desk.checked("out", &[("/pool_trees/trees/physical/pools/b", BURST)]);
    let rows = rows(&desk.read("out/pools.csv"));
    let at = |t: &str, pool: &str| {
        rows.iter().find(|r| r["t_ms"] == t && r["pool"] == pool).expect("a row").clone()
    };
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    let b = at("120000", "b");
    assert_eq!(number(&b["integral_pool_capacity_cpu_s"]), 5.0 * 86_400.0);
    let burst_s = number(&b["accumulated_volume_cpu_s"]) / 15.0;
    assert!((number(&b["estimated_burst_usage_duration_s"]) / burst_s - 1.0).abs() < 0.05, "{b:?}");
    assert_eq!(
        (&*b["running_operations"], &*b["pending_operations"], number(&b["limits_cpu"])),
        ("1", "0", 50.0)
    );
    // Every core is in use by jobs of two cores, and the root has those of both pools.
    let (a, root) = (at("120000", "a"), at("120000", "<Root>"));
    let jobs = |row: &std::collections::BTreeMap<String, String>| number(&row["allocations"]);
    assert_eq!(jobs(&root), 25.0);
    assert_eq!(jobs(&a) + jobs(&b), 25.0);
    assert_eq!((&*a["integral_pool_capacity_cpu_s"], &*a["estimated_burst_usage_duration_s"]), ("", ""));
}

#[test]
fn an_explanation_at_a_time() {
    let desk = Desk::new(5, 10, 3_600_000, &[FIRST, SECOND]);
    desk.checked("out", &[]);
    // The directory of the run says all that is needed to repeat it.
    let scenario =
        sim::Scenario::load(&desk.path().join("out/scenario.json"), &[]).unwrap_or_else(|e| panic!("{e}"));
    let explain = |ms: u64, operation: &str| {
        let stopped =
            Stopped::at(&scenario, Span::from_millis(ms), &mut |_| true).unwrap_or_else(|e| panic!("{e}"));
        stopped.expect("not stopped").explain(operation)
    };
    let text = |ms: u64, operation: &str| {
        let map = explain(ms, operation).unwrap_or_else(|e| panic!("{e}"));
        String::from_utf8(yson::to_text(&map.into())).expect("text")
    };
    // At 21 s the second one has nothing yet: no node has room; at 100 s it has.
    let early = text(21_000, "second");
    let late = text(100_000, "second");
    assert!(early != late, "{early}");
    assert!(early.contains("running"), "{early}");
    let error = explain(10_000, "second").expect_err("not there yet").to_string();
    assert!(error.contains("no operation \"second\" of the workload was submitted by then"), "{error}");
    assert!(text(3_500_000, "first").contains("completed"));
}

#[test]
fn shares_of_a_tree() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("tree.json");
    let tree = r#"{"cluster":{"node_groups":[{"name":"n","count":10,"resource_limits":{"cpu":10,"memory":1000000000000,"user_slots":1000,"gpu":1}}]},
        "pool_trees":{"default_tree":"physical","trees":{"physical":{"pools":{
            "a":{"weight":3.0},"b":{},"c":{"strong_guarantee_resources":{"cpu":40}},
            "d":{"integral_guarantees":{"guarantee_type":"relaxed","resource_flow":{"cpu":10}}}}}}},
        "initial_state":{"physical":{"pools":{"d":{"accumulated_resource_ratio_volume":600}}}},
        "demand":{"a":{"cpu":80},"b":{"cpu":80},"c":{"cpu":35.5},"d":{"cpu":20,"memory":20000000000}}}"#;
    std::fs::write(&path, tree).expect("a file");
    let (rows, refused) = sim::shares::shares(&path).unwrap_or_else(|e| panic!("{e}"));
    assert!(refused.is_empty(), "{refused:?}");
    let column =
        |name: &str| sim::output::pools::COLUMNS.iter().position(|c| c.name == name).expect("a column");
    let share = |pool: &str, name: &str| {
        let row = rows.iter().find(|row| row[2] == sim::output::Cell::text(pool)).expect("a pool");
        match row[column(name)] {
            sim::output::Cell::Number(x) => (x * 10.0).round() / 10.0,
            ref other => panic!("{other:?}"),
        }
    };
    // Strong 35.5, by volume 20 (ten are its flow, three times that may be burst); 44.5 by weight, 3 : 1.
    assert_eq!((share("c", "strong_cpu"), share("d", "integral_cpu")), (35.5, 20.0));
    assert_eq!((share("a", "fair_share_cpu"), share("b", "fair_share_cpu")), (33.4, 11.1));
    assert_eq!(share("a", "demand_cpu"), 80.0);

    let told = |from: &str, to: &str| {
        std::fs::write(&path, tree.replace(from, to)).expect("a file");
        let error = sim::shares::shares(&path).expect_err(to).to_string();
        error.replace(&folder.path().display().to_string(), "DIR")
    };
    let found = [
        told(r#""a":{"cpu":80}"#, r#""a":{"cores":80}"#),
        told(r#""a":{"cpu":80}"#, r#""a":80"#),
        told(r#""weight":3.0"#, r#""wait":3.0,"weight":-3.0"#),
        told(r#""demand""#, r#""demands""#),
    ];
    expect_test::expect![[r#"
        DIR/tree.json: /demand/a/cores: unknown option
        DIR/tree.json: /demand/a: expected map, found 80
        DIR/tree.json: /pool_trees/trees/physical/pools/a: Bad value of the pool option "weight": expected a number in 1.4901161193847656e-8..=67108864, found double -3.0
        DIR/tree.json: /demands: unknown option"#]]
    .assert_eq(&found.join("\n"));
}
