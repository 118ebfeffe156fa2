//! Rows in and out, in bytes per second: `cargo bench -p millpond-tables --bench rows`.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use tables::{Checker, Columns, Printer, Schema, Writer};
use yson::Format;

fn main() {
    divan::main();
}

const ROWS: u64 = 20_000;
const SCHEMA: &[u8] =
    b"[{name=id;type=int64;sort_order=ascending};{name=name;type=string};{name=half;type=double}]";

/// About a hundred bytes each.
fn rows(format: &str) -> Vec<u8> {
    let format = Format::parse(format.as_bytes()).expect("a format");
    let mut text = Vec::new();
    for n in 0..ROWS {
        let row = yson::map! {"id" => n as i64, "name" => "x".repeat(60 + n as usize % 20), "half" => n as f64 / 2.0};
        format.write_rows([&row.into()], &mut text).expect("printable");
    }
    text
}

const FORMATS: [&str; 4] = ["<format=binary>yson", "<format=text>yson", "json", "dsv"];

fn write(bencher: Bencher<'_, '_>, format: &str, checker: impl Fn() -> Checker) {
    let input = rows(format);
    let format = Format::parse(format.as_bytes()).expect("a format");
    bencher.counter(BytesCount::of_slice(&input)).bench_local(|| {
        let mut writer = Writer::new(format.clone(), checker());
        let (mut out, mut written) = (Vec::new(), 0);
        for piece in black_box(input.as_slice()).chunks(64 << 10) {
            writer.push(piece, &mut out).expect("rows");
            written += out.len();
            out.clear();
        }
        writer.finish(&mut out).expect("rows");
        written + out.len()
    });
}

#[divan::bench(args = FORMATS)]
fn in_any_columns(bencher: Bencher<'_, '_>, format: &str) {
    write(bencher, format, || Checker::new(None, Vec::new()));
}

#[divan::bench(args = &FORMATS[..3])]
fn in_sorted_schema(bencher: Bencher<'_, '_>, format: &str) {
    let schema = Schema::parse(&yson::parse(SCHEMA).expect("YSON")).expect("a schema");
    write(bencher, format, || Checker::new(schema.clone(), vec!["id".to_owned()]));
}

#[divan::bench(args = FORMATS)]
fn out(bencher: Bencher<'_, '_>, format: &str) {
    let rows = rows(FORMATS[0]);
    let format = Format::parse(format.as_bytes()).expect("a format");
    bencher.counter(BytesCount::of_slice(&rows)).bench_local(|| {
        let mut printer = Printer::new(format.clone(), Columns::default());
        let mut out = Vec::new();
        printer.print(black_box(&rows), &mut out).expect("printable");
        out
    });
}

#[divan::bench]
fn out_of_one_column(bencher: Bencher<'_, '_>) {
    let rows = rows(FORMATS[0]);
    bencher.counter(BytesCount::of_slice(&rows)).bench_local(|| {
        let mut printer = Printer::new(
            Format::tabular_default(),
            Columns { only: Some(vec![b"id".to_vec()]), ..Columns::default() },
        );
        let mut out = Vec::new();
        printer.print(black_box(&rows), &mut out).expect("printable");
        out
    });
}
