//! The same rows in every form of the tables.

use crate::desk::{Desk, json, rows};
use parquet::basic::{Repetition, Type as Physical};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use sim::Options;
use sim::output::Format;
use yson::Value;

const FIRST: &str = r#"{"id":"first, \"quoted\"","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":60,"cpu":2.5,"memory":1000000,"duration":{"uniform":[100000,250000]}}]}"#;
const SECOND: &str = r#"{"id":"second","at":20000,"user":"v","pool":"b","tasks":[{"name":"t","job_count":60,"cpu":2,"memory":1000000,"duration":250000}]}"#;

type Rows = Vec<Vec<(String, Option<String>)>>;

/// What stands in a file, by whoever reads Parquet: names, and texts of what is there.
fn parquet(path: &std::path::Path) -> Rows {
    let file = SerializedFileReader::new(std::fs::File::open(path).expect("a file")).expect("parquet");
    let rows = file.get_row_iter(None).expect("rows").map(|row| {
        let row = row.expect("a row");
        let cells = row.get_column_iter().map(|(name, field)| {
            let text = match field {
                Field::Null => None,
                Field::Long(x) => Some(x.to_string()),
                Field::Double(x) => Some(format!("{x:.3}")),
                Field::Str(text) => Some(text.clone()),
                other => panic!("{name}: {other:?}"),
            };
            (name.clone(), text)
        });
        cells.collect()
    });
    rows.collect()
}

fn jsonl(text: &str) -> Rows {
    let rows = text.lines().map(|line| {
        let value = json(line);
        let cells = value.as_map().expect("a map").iter().map(|(name, value)| {
            let text = match value {
                Value::Entity => None,
                Value::Double(x) => Some(format!("{x:.3}")),
                Value::String(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
                other => Some(other.as_i64().expect("a number").to_string()),
            };
            (String::from_utf8_lossy(name).into_owned(), text)
        });
        cells.collect()
    });
    rows.collect()
}

#[test]
fn parquet_has_the_rows_of_the_others() {
    let desk = Desk::new(5, 10, 3_600_000, &[FIRST, SECOND]);
    let run = |out: &str, format| {
        desk.run(out, &[], Options { format, ..Options::default() }).unwrap_or_else(|e| panic!("{e}"));
    };
    run("csv", Format::Csv);
    run("jsonl", Format::Jsonl);
    run("parquet", Format::Parquet);
    run("again", Format::Parquet);
    for (table, least) in [("pools", 20), ("operations", 2), ("allocations", 120)] {
        let found = parquet(&desk.path().join(format!("parquet/{table}.parquet")));
        assert!(found.len() >= least, "{table}: {} rows", found.len());
        assert_eq!(found, jsonl(&desk.read(&format!("jsonl/{table}.jsonl"))), "{table}");
        let bytes =
            |out: &str| std::fs::read(desk.path().join(format!("{out}/{table}.parquet"))).expect("a file");
        assert!(bytes("parquet") == bytes("again"), "{table}: other bytes");
    }
    // Names in the order of the header line; a number is a number.
    let header = desk.read("csv/pools.csv").lines().next().expect("a header").to_owned();
    let file = std::fs::File::open(desk.path().join("parquet/pools.parquet")).expect("a file");
    let file = SerializedFileReader::new(file).expect("parquet");
    let columns = file.metadata().file_metadata().schema().get_fields();
    let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    assert_eq!(names.join(","), header);
    let kind = |name: &str| {
        let column = columns.iter().find(|column| column.name() == name).expect("a column");
        assert_eq!(column.get_basic_info().repetition(), Repetition::OPTIONAL);
        column.get_physical_type()
    };
    assert_eq!(
        [kind("t_ms"), kind("usage_cpu"), kind("pool")],
        [Physical::INT64, Physical::DOUBLE, Physical::BYTE_ARRAY]
    );
    assert_eq!(
        rows(&desk.read("csv/pools.csv")).len(),
        parquet(&desk.path().join("parquet/pools.parquet")).len()
    );
}

/// Checks read whatever form is there.
#[test]
fn checks_of_every_form() {
    let desk = Desk::new(5, 10, 300_000, &[FIRST, SECOND]);
    desk.write("expected.csv", "t_s,pool,demand_cpu\n60,a,125\n60,b,120\n");
    desk.write(
        "checks.json",
        r#"{"expected_series":"expected.csv","series_tolerances":{"demand_cpu":{"abs":0.5}}}"#,
    );
    for format in Format::ALL {
        desk.run("out", &[], Options { format, ..Options::default() }).unwrap_or_else(|e| panic!("{e}"));
        let found = sim::check::check(&desk.path().join("out"), &desk.path().join("checks.json"));
        let found = found.unwrap_or_else(|e| panic!("{e}"));
        // Pool `a` wants 150 cores.
        let told: Vec<_> = found.iter().map(|c| (&c.what[..2], c.holds, c.found)).collect();
        assert_eq!(
            told,
            [("vi", true, 0.0), ("ex", true, 0.0), ("a:", false, 25.0), ("b:", true, 0.0)],
            "{format:?}"
        );
    }
}

/// Without a file of checks there is one thing that must be so.
#[test]
fn violated_invariants_are_told() {
    let desk = Desk::new(5, 10, 60_000, &[FIRST]);
    desk.checked("out", &[]);
    let look = || sim::check::invariants(&desk.path().join("out")).unwrap_or_else(|e| panic!("{e}"));
    let told =
        |found: Vec<sim::check::Comparison>| found.iter().map(|c| (c.found, c.holds)).collect::<Vec<_>>();
    assert_eq!(told(look()), [(0.0, true)]);
    let summary = desk.read("out/summary.json");
    let broken = summary.replace(r#""violations": []"#, r#""violations": ["1 ms: SCHED-1: x"]"#);
    assert!(broken != summary, "{summary}");
    desk.write("out/summary.json", &broken);
    assert_eq!(told(look()), [(1.0, false)]);
}

/// Whoever ends a run early can read its tables, in every form.
#[test]
fn an_early_end_leaves_whole_tables() {
    let desk = Desk::new(5, 10, 3_600_000, &[FIRST, SECOND]);
    for format in Format::ALL {
        let scenario = desk.load(&[]).unwrap_or_else(|e| panic!("{e}"));
        let options = Options { format, shortcuts: false, ..Options::default() };
        let mut looks = 0;
        let mut watch = |_: &sim::Progress| {
            looks += 1;
            looks < 2
        };
        let out = desk.path().join("out");
        let ran = sim::run(&scenario, &out, options, &mut watch, &mut |_| yson::Map::new());
        let ran = ran.unwrap_or_else(|e| panic!("{e}"));
        assert!(ran.interrupted, "{format:?}: {:?}", ran.progress);
        let summary = json(&desk.read("out/summary.json"));
        assert_eq!(summary.get("interrupted").and_then(Value::as_bool), Some(true));
        let read = match format {
            Format::Csv => rows(&desk.read("out/allocations.csv")).len(),
            Format::Jsonl => jsonl(&desk.read("out/allocations.jsonl")).len(),
            Format::Parquet => parquet(&desk.path().join("out/allocations.parquet")).len(),
        };
        assert_eq!(read as u64, ran.progress.counts.jobs_ordered, "{format:?}");
    }
}

/// A thread that writes changes nothing, in no form; nor does somebody with a clock, but for the one section.
#[test]
fn threads_and_clocks_change_nothing() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NANOSECONDS: AtomicU64 = AtomicU64::new(0);
    let desk = Desk::new(5, 10, 3_600_000, &[FIRST, SECOND]);
    let all = r#"{"event_log":true,"node_series":true,"operation_series":true,"pool_series_period_ms":1000}"#;
    let meter = sim::Meter {
        // A millisecond passes between any two looks.
        now: || NANOSECONDS.fetch_add(1_000_000, Ordering::Relaxed),
        peak_memory: || Some(77),
    };
    for format in Format::ALL {
        let run = |out: &str, threads, meter| {
            let options = Options { format, threads, meter, ..Options::default() };
            desk.run(out, &[("/output", all)], options).unwrap_or_else(|e| panic!("{e}"));
            let names = ["pools", "operations", "allocations", "nodes", "operation_series"];
            let files = names.map(|name| {
                let path = desk.path().join(format!("{out}/{name}.{}", format.ending()));
                let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert!(bytes.len() > 300, "{name}");
                bytes
            });
            (files, desk.read(&format!("{out}/events.jsonl")), desk.read(&format!("{out}/summary.json")))
        };
        let one = run("one", 1, None);
        let four = run("four", 4, Some(meter));
        assert!(one.0 == four.0, "{format:?}: tables differ");
        assert!(one.1 == four.1 && one.1.len() > 10_000, "{format:?}: events differ");
        let [plain, measured] = [one.2, four.2].map(|text| json(&text));
        let performance = measured.get("performance").and_then(Value::as_map).expect("a section").clone();
        let of = |path: &[&str]| {
            let start = Value::Map(performance.clone());
            path.iter()
                .try_fold(&start, |value, key| value.get(key))
                .and_then(Value::as_f64)
                .expect("a number")
        };
        assert_eq!(of(&["update_ms", "mean"]), 1.0);
        assert_eq!(of(&["update_ms", "p99"]), 1.0);
        assert_eq!((of(&["threads"]), of(&["peak_memory_bytes"])), (2.0, 77.0));
        assert!(of(&["updates_share_of_time"]) > 0.0 && of(&["updates_share_of_time"]) < 1.0);
        assert!(of(&["heartbeats_elided"]) > 0.0 && of(&["wall_s"]) > 0.0);
        let without = |value: &Value| {
            let mut map = value.as_map().expect("a map").clone();
            map.remove("performance");
            map
        };
        assert!(without(&plain) == without(&measured), "{format:?}: summaries differ");
    }
}

/// Rows of nodes and operations are those of the attempts at that time.
#[test]
fn series_of_nodes_and_operations() {
    let desk = Desk::new(3, 10, 3_600_000, &[&FIRST.replace(r#", \"quoted\""#, ""), SECOND]);
    let changes = [
        ("/output", r#"{"node_series":true,"operation_series":true,"pool_series_shift_ms":500}"#),
        ("/events", r#"[{"at":90000,"type":"nodes_offline","group":"n","count":1}]"#),
    ];
    desk.checked("out", &changes);
    let number = |row: &std::collections::BTreeMap<String, String>, name: &str| {
        row[name].parse::<f64>().expect("a number")
    };
    let attempts = rows(&desk.read("out/allocations.csv"));
    let held = |at: f64, column: &str, name: &str| {
        let here = attempts.iter().filter(|row| row[column] == name);
        let here = here.filter(|row| number(row, "ordered_ms") <= at && number(row, "end_ms") > at);
        (here.clone().count() as f64, here.map(|row| number(row, "cpu")).sum::<f64>())
    };
    let nodes = rows(&desk.read("out/nodes.csv"));
    assert!(nodes.len() > 3 * 10);
    for row in &nodes {
        let found = (number(row, "jobs"), number(row, "usage_cpu"));
        assert_eq!(found, held(number(row, "t_ms"), "node", &row["node"]), "{row:?}");
        let away = row["node"] == "n-0" && number(row, "t_ms") > 90_000.0;
        assert_eq!((&*row["online"], &*row["limits_cpu"]), (if away { "0" } else { "1" }, "10.000"));
    }
    let operations = rows(&desk.read("out/operation_series.csv"));
    assert!(operations.iter().any(|row| row["starving"] == "1"), "{operations:?}");
    for row in &operations {
        let (jobs, _) = held(number(row, "t_ms"), "operation", &row["id"].replace('"', ""));
        assert_eq!(number(row, "allocations"), jobs, "{row:?}");
        assert!(number(row, "fair_share_cpu") <= 30.0 && number(row, "demand_cpu") > 0.0, "{row:?}");
    }
}
