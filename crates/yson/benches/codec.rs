//! Throughput of parsers and writers. The promise: hundreds of megabytes a second for YSON, so that
//! a specification of 64 MB is a matter of a fraction of a second.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use yson::json::{from_json, to_json};
use yson::{JsonFormat, Rows, Style, Value, map, write};

fn main() {
    divan::main();
}

/// Rows of a table: a few short columns and one string of a hundred bytes.
fn table() -> Vec<Value> {
    let row = |i: i64| {
        Value::Map(map! {
            "key" => format!("key-{i:08}"),
            "count" => i * 7919 % 100_003,
            "share" => i as f64 / 1024.0,
            "enabled" => i % 3 == 0,
            "text" => "The quick brown fox jumps over the lazy dog, again and again, until it is dark in the wood.",
        })
    };
    (0..10_000).map(row).collect()
}

/// A specification: nested maps, environment, file paths with attributes.
fn spec() -> Value {
    let path = |i: i64| Value::from(format!("//home/files/{i}")).with_attributes(map! {"executable" => true});
    let task = |i: i64| {
        map! {
            "command" => format!("./run --shard {i} --verbose > \"$OUT/log.{i}\" 2>&1"),
            "job_count" => i,
            "memory_limit" => i * 1_048_576,
            "cpu_limit" => 1.5,
            "environment" => map! {"SHARD" => i.to_string(), "PATH" => "/usr/local/bin:/usr/bin:/bin"},
            "file_paths" => Value::List((0..5).map(path).collect()),
        }
    };
    let tasks = (0..2_000).map(|i| (format!("task_{i}"), Value::Map(task(i)))).collect::<yson::Map>();
    Value::Map(map! {"pool" => "research", "title" => "bench", "tasks" => tasks})
}

fn rows_in(style: Style) -> Vec<u8> {
    let mut out = Vec::new();
    table().iter().for_each(|row| write::write_row(row, style, &mut out));
    out
}

const STYLES: [Style; 3] = [Style::Text, Style::Pretty, Style::Binary];

fn name(style: &Style) -> String {
    style.name().to_owned()
}

#[divan::bench(args = STYLES.iter().map(name))]
fn read_rows(bencher: Bencher<'_, '_>, style: &str) {
    let input = rows_in(STYLES.into_iter().find(|s| s.name() == style).unwrap());
    bencher
        .counter(BytesCount::new(input.len()))
        .bench_local(|| Rows::new(black_box(&input)).filter(|r| r.as_ref().unwrap().is_entity()).count());
}

#[divan::bench(args = STYLES.iter().map(name))]
fn write_rows(bencher: Bencher<'_, '_>, style: &str) {
    let style = STYLES.into_iter().find(|s| s.name() == style).unwrap();
    let rows = table();
    let mut out = rows_in(style);
    bencher.counter(BytesCount::new(out.len())).bench_local(|| {
        out.clear();
        rows.iter().for_each(|row| write::write_row(black_box(row), style, &mut out));
        out.len()
    });
}

#[divan::bench(args = STYLES.iter().map(name))]
fn parse_spec(bencher: Bencher<'_, '_>, style: &str) {
    let mut input = Vec::new();
    write::write(&spec(), STYLES.into_iter().find(|s| s.name() == style).unwrap(), &mut input);
    bencher.counter(BytesCount::new(input.len())).bench_local(|| yson::parse(black_box(&input)).unwrap());
}

#[divan::bench]
fn parse_spec_json(bencher: Bencher<'_, '_>) {
    let input = to_json(&spec(), &JsonFormat::default());
    bencher
        .counter(BytesCount::new(input.len()))
        .bench_local(|| from_json(black_box(&input), &JsonFormat::default()).unwrap());
}

#[divan::bench]
fn write_spec_json(bencher: Bencher<'_, '_>) {
    let value = spec();
    let size = to_json(&value, &JsonFormat::default()).len();
    bencher.counter(BytesCount::new(size)).bench_local(|| to_json(black_box(&value), &JsonFormat::default()));
}

#[divan::bench]
fn parse_one_long_string(bencher: Bencher<'_, '_>) {
    let input = yson::to_text(&Value::from("x".repeat(1 << 20)));
    bencher.counter(BytesCount::new(input.len())).bench_local(|| yson::parse(black_box(&input)).unwrap());
}
