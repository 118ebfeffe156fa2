//! Rows in and out of every format, cut anywhere.

use proptest::prelude::*;
use tables::row::Row;
use tables::{Checker, Columns, Intake, Printer};
use yson::{Format, Value};

const FORMATS: [&str; 6] = [
    "<format=binary>yson",
    "<format=text>yson",
    "<format=pretty>yson",
    "json",
    "<encode_utf8=%false>json",
    "dsv",
];

fn format(text: &str) -> Format {
    Format::parse(text.as_bytes()).expect("a format")
}

/// Rows that come of some bytes in pieces of `piece` bytes, in their inner form.
pub fn take(name: &str, input: &[u8], piece: usize) -> Result<Vec<u8>, vocab::Failure> {
    let mut intake = Intake::new(format(name));
    let mut out = Vec::new();
    let mut sink = |_: usize, row: Row<'_>| {
        assert_eq!(row, Row::new(row.bytes), "it weighs something else");
        out.extend_from_slice(row.bytes);
        Ok(())
    };
    for piece in input.chunks(piece) {
        intake.push(piece, &mut sink)?;
    }
    intake.finish(&mut sink)?;
    Ok(out)
}

fn print(name: &str, rows: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Printer::new(format(name), Columns::default()).print(rows, &mut out).expect("printable");
    out
}

fn text(rows: &[u8]) -> String {
    String::from_utf8(print("<format=text>yson", rows)).expect("text is ASCII")
}

#[test]
fn white_space_of_any_kind_and_length_is_nothing() {
    for space in *b" \t\n\x0b\x0c\r" {
        let gap = [space; 100];
        for (name, between) in [("json", ""), ("yson", ";")] {
            let input =
                [&gap, b"{}".as_slice(), between.as_bytes(), &gap, b"{}", between.as_bytes(), &gap].concat();
            for piece in [1, 7, 64, 1000] {
                let rows = take(name, &input, piece);
                assert_eq!(
                    rows.map(|rows| text(&rows)).as_deref(),
                    Ok("{};\n{};\n"),
                    "{name}, {space}, {piece}"
                );
            }
        }
    }
}

#[test]
fn rows_come_out_as_they_went_in() {
    for (name, input, expected) in [
        ("yson", "{a=1;b=\"x\\ty\"};{}", "{\"a\"=1;\"b\"=\"x\\ty\";};\n{};\n"),
        (
            "yson",
            " { a = [1;2u;%true;#] ; b = <x=1>{c=0.5} } ;\n",
            "{\"a\"=[1;2u;%true;#;];\"b\"=<\"x\"=1;>{\"c\"=0.5;};};\n",
        ),
        ("yson", "", ""),
        ("yson", " \n", ""),
        (
            "json",
            "{\"a\":1}{\"b\":\"}\\\"{\"}\n {\"c\":[{}]}",
            "{\"a\"=1;};\n{\"b\"=\"}\\\"{\";};\n{\"c\"=[{};];};\n",
        ),
        // A column that is there twice has its last value, as JSON has.
        (
            "yson",
            "{a=1;b=2};{b=3;a=1;b=4};{a=5;b=6}",
            "{\"a\"=1;\"b\"=2;};\n{\"b\"=4;\"a\"=1;};\n{\"a\"=5;\"b\"=6;};\n",
        ),
        ("yson", "{k=#;\"k\"=1};", "{\"k\"=1;};\n"),
        ("json", "{\"k\":1,\"k\":2}", "{\"k\"=2;};\n"),
        ("dsv", "a=1\tb=x\\ny\nc=2", "{\"a\"=\"1\";\"b\"=\"x\\ny\";};\n{\"c\"=\"2\";};\n"),
        ("dsv", "a=x\\\\\nb=1\n", "{\"a\"=\"x\\\\\";};\n{\"b\"=\"1\";};\n"),
    ] {
        for piece in [1, 2, 3, 7, 1000] {
            let rows = take(name, input.as_bytes(), piece).unwrap_or_else(|e| panic!("{input:?}: {e}"));
            assert_eq!(text(&rows), expected, "{input:?} in pieces of {piece}");
        }
    }
}

#[test]
fn what_is_no_row_is_refused_where_it_is() {
    for (name, input, error) in [
        ("yson", "{a=1};5;", "Row 1 must be a map, found int64"),
        ("yson", "<x=1>{a=5};", "Row 0 must be a map, found a map with attributes"),
        ("yson", "<table_index=1>#;", "Row 0 must be a map, found entity"),
        ("yson", "{a=1};{b=", "Cannot parse row 1 as YSON"),
        ("yson", "{a=1} {b=2}", "Cannot parse row 0 as YSON"),
        ("yson", "{a=%maybe}", "Cannot parse row 0 as YSON"),
        ("json", "{\"a\":1}[2]", "Row 1 must be a map, found list"),
        ("json", "{\"a\":1}{\"b\"", "Cannot parse row 1 as JSON"),
        ("json", "{]", "Cannot parse row 0 as JSON"),
        ("json", "17", "Row 0 must be a map, found int64"),
        ("dsv", "a=1\nb\n", "Cannot parse row 1 as DSV"),
    ] {
        for piece in [1, 5, 1000] {
            let failure = take(name, input.as_bytes(), piece).expect_err(input);
            assert!(failure.message.starts_with(error), "{input:?} in pieces of {piece}: {failure}");
        }
    }
}

/// `table: rows` of a stream that begins in table 1 of 3.
fn switched(name: &str, input: &str, piece: usize) -> Result<String, vocab::Failure> {
    let mut intake = Intake::among(format(name), 1, 3);
    let mut out = String::new();
    let mut sink = |table: usize, row: Row<'_>| {
        out += &format!("{table}: {}", text(row.bytes));
        Ok(())
    };
    input.as_bytes().chunks(piece).try_for_each(|piece| intake.push(piece, &mut sink))?;
    intake.finish(&mut sink)?;
    Ok(out)
}

#[test]
fn whoever_has_several_tables_chooses_among_them() {
    let rows = "1: {\"a\"=1;};\n0: {\"a\"=2;};\n0: {\"a\"=3;};\n2: {\"a\"=4;};\n";
    let json = |n: u32| format!("{{\"$value\":null,\"$attributes\":{{\"table_index\":{n}}}}}\n");
    let json = format!("{{\"a\":1}}{}{{\"a\":2}}{{\"a\":3}}{}{{\"a\":4}}", json(0), json(2));
    let yson = "{a=1};<table_index=0>#;{a=2};{a=3};<table_index=1>#;<table_index=2u>#;{a=4};<table_index=0>#";
    for piece in [1, 2, 7, 1000] {
        assert_eq!(switched("yson", yson, piece).expect("rows"), rows);
        assert_eq!(switched("json", &json, piece).expect("rows"), rows);
        for (index, shown) in [("3", "3"), ("-1", "-1"), ("x", "\"x\""), ("1.5", "1.5"), ("#", "#")] {
            let refused = switched("yson", &format!("{{}};<table_index={index}>#;{{}}"), piece);
            let expected = format!(
                "\"table_index\" in front of row 1 must be the number of an output table, an \
                                    integer from 0 to 2, found {shown}"
            );
            assert_eq!(refused.expect_err(index).message, expected);
        }
        // Other marks that the job was given are no rows, and choose nothing.
        for (mark, found) in [
            ("<row_index=1>#", "entity"),
            ("<key_switch=%true>#", "entity"),
            ("<table_index=1;row_index=5>#", "entity"),
            ("#", "entity"),
            ("<table_index=1>{}", "a map with attributes"),
            ("<table_index=1>5", "int64"),
        ] {
            let refused = switched("yson", &format!("{mark};{{}}"), piece).expect_err(mark);
            assert_eq!(refused.message, format!("Row 0 must be a map, found {found}"), "{mark}");
        }
    }
}

#[test]
fn garbage_is_refused_before_it_fills_the_memory() {
    let mut intake = Intake::new(format("yson"));
    let piece = vec![b'!'; 1 << 16];
    assert!(intake.push(&piece, &mut |_, _| Ok(())).is_err());
    let mut intake = Intake::new(format("yson"));
    let endless = vec![b'a'; 1 << 20];
    assert!(intake.push(b"{a=\"", &mut |_, _| Ok(())).is_ok());
    let refused = (0..200).find_map(|_| intake.push(&endless, &mut |_, _| Ok(())).err());
    assert!(refused.expect("too long").message.contains("is too long"));
}

#[test]
fn marks_are_values_of_the_format_and_columns_are_cut() {
    let rows = take("yson", b"{a=1;b=2};{b=3}", 100).expect("rows");
    let control = tables::Control { row_index: true, ..Default::default() };
    let marks: Vec<Value> = control.marks(0, 0, 5).collect();
    assert_eq!(marks.len(), 1);
    for (name, expected) in [
        ("<format=text>yson", "<\"row_index\"=5;>#;\n{\"a\"=1;};\n{};\n"),
        ("json", "{\"$attributes\":{\"row_index\":5},\"$value\":null}\n{\"a\":1}\n{}\n"),
    ] {
        let mut printer =
            Printer::new(format(name), Columns { only: Some(vec![b"a".to_vec()]), ..Columns::default() });
        let mut out = Vec::new();
        printer.mark(&marks[0], &mut out).expect("printable");
        printer.print(&rows, &mut out).expect("printable");
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::Uint),
        any::<bool>().prop_map(Value::Bool),
        (-1e9..1e9).prop_map(Value::Double),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::String),
        Just(Value::Entity),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        let map = prop::collection::vec(("[a-z]{0,3}", inner.clone()), 0..4)
            .prop_map(|pairs| Value::Map(pairs.into_iter().collect()));
        let with = (map.clone(), inner.clone()).prop_map(|(attributes, value)| match attributes {
            Value::Map(map) if !matches!(value, Value::Attributed(_)) => value.with_attributes(map),
            _ => value,
        });
        prop_oneof![prop::collection::vec(inner, 0..4).prop_map(Value::List), map, with]
    })
}

fn row() -> impl Strategy<Value = Value> {
    prop::collection::vec(("[a-z]{1,4}", value()), 0..5).prop_map(|p| Value::Map(p.into_iter().collect()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_rows_survive_any_yson_cut_anywhere(rows in prop::collection::vec(row(), 0..5), piece in 1usize..40) {
        let mut inner = Vec::new();
        for row in &rows {
            yson::write::write_row(row, yson::Style::Binary, &mut inner);
        }
        // JSON cannot tell all types apart.
        for name in &FORMATS[..3] {
            let printed = print(name, &inner);
            prop_assert!(take(name, &printed, piece).expect("own output") == inner, "{}", name);
        }
        prop_assert_eq!(tables::row::rows(&inner).count(), rows.len());
        for (item, row) in tables::row::rows(&inner).zip(&rows) {
            let columns = row.as_map().expect("a row");
            prop_assert_eq!(tables::row::columns(item).count(), columns.len());
            for (name, value) in tables::row::columns(item) {
                prop_assert_eq!(Some(&yson::parse(value).expect("a value")), columns.get(name));
            }
        }
    }

    #[test]
    fn any_bytes_are_taken_or_refused(input in prop::collection::vec(any::<u8>(), 0..200), piece in 1usize..50) {
        for name in FORMATS {
            if let Ok(rows) = take(name, &input, piece) {
                prop_assert!(take(name, &input, 1000).expect("taken in small pieces") == rows);
                let mut checker = Checker::new(None, vec!["a".into()]);
                for row in tables::row::rows(&rows) {
                    let _ = checker.check(Row::new(row));
                }
            }
            // What is read from a disk that fails must not bring anything down.
            tables::row::rows(&input).for_each(|row| assert!(tables::row::weight(row) > 0));
            let mut out = Vec::new();
            let _ = Printer::new(format("<format=text>yson"), Columns::default()).print(&input, &mut out);
        }
    }
}

/// Every kind of value in text is what the writer of values makes of it.
#[test]
fn text_of_any_value_is_that_of_the_writer() {
    const VALUES: &[u8] =
        b"[-7;0;9223372036854775807;-9223372036854775808;0u;18446744073709551615u;1.5;-0.;1e300;%nan;\
        %-inf;%true;%false;#;\"\";\"plain\";\"a string with more than thirty-two bytes in it\";\
        \"thirty-two bytes are looked at: \\n\\x001\";\"quote \\\" behind some more than thirty-two bytes\";\
        \"\\xff\\x80;}\";[1;[];{}];{a={b=[#]}};<x=1>5;<x={}>#;<>[<y=2>#]]";
    let values = yson::parse(VALUES).expect("YSON");
    for value in values.as_list().expect("a list") {
        let row: yson::Value = yson::map! {"a" => value.clone(), "b c\n" => 1i64}.into();
        let (mut inner, mut expected) = (Vec::new(), Vec::new());
        yson::write::write_row(&row, yson::Style::Binary, &mut inner);
        yson::write::write_row(&row, yson::Style::Text, &mut expected);
        let expected = String::from_utf8(expected).expect("ASCII");
        assert_eq!(text(&inner.repeat(2)), expected.repeat(2));
    }
}
