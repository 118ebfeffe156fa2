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
        assert_eq!(told, [("ex", true, 0.0), ("a:", false, 25.0), ("b:", true, 0.0)], "{format:?}");
    }
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
