//! Output compared byte by byte with that of the reference client.

use crate::support::{show, unescape};
use yson::{Map, Style, Value, map, parse, write};

#[test]
fn the_three_styles_are_those_of_the_reference() {
    let mut seen = 0;
    let blocks = include_str!("../data/styles.txt").split("\n\n").skip(1);
    for block in blocks {
        let forms: Vec<Vec<u8>> = block
            .lines()
            .zip(["text   ", "pretty ", "binary "])
            .map(|(line, name)| unescape(line.strip_prefix(name).expect(line)))
            .collect();
        for form in &forms {
            let value = parse(form).unwrap_or_else(|e| panic!("{}: {e}", show(form)));
            let written = [yson::to_text(&value), yson::to_pretty(&value), yson::to_binary(&value)];
            for (got, expected) in written.iter().zip(&forms) {
                // The payload of a NaN is not the value's business.
                assert_eq!(show(got), show(expected), "from {}", show(form));
            }
        }
        seen += 1;
    }
    assert!(seen > 100, "the corpus is there: {seen}");
}

#[test]
fn acceptance_is_that_of_the_reference() {
    let mut seen = 0;
    for line in include_str!("../data/accept.txt").lines().filter(|l| !l.starts_with("# ")) {
        let (input, expected) = line.split_once(" => ").expect(line);
        let parsed = parse(&unescape(input));
        let got = parsed.as_ref().map(yson::to_text);
        match (expected, got) {
            ("error", Err(_)) => {}
            ("error", Ok(text)) => panic!("{input}: accepted as {}", show(&text)),
            (_, got) => assert_eq!(got.map(|t| show(&t)), Ok(show(&unescape(expected))), "{input}"),
        }
        seen += 1;
    }
    assert!(seen > 130, "the corpus is there: {seen}");
}

#[test]
fn rows_end_as_their_style_wants() {
    let check = |style, expected: &[u8]| {
        let mut out = Vec::new();
        write::write_row(&Value::Map(map! {"a" => 1i64}), style, &mut out);
        write::write_row(&Value::Entity.with_attributes(map! {"table_index" => 0i64}), style, &mut out);
        assert_eq!(show(&out), show(expected));
        assert_eq!(yson::parse_list_fragment(&out).unwrap().len(), 2);
    };
    check(Style::Text, b"{\"a\"=1;};\n<\"table_index\"=0;>#;\n");
    check(Style::Pretty, b"{\n    \"a\" = 1;\n};\n<\n    \"table_index\" = 0;\n> #;\n");
    check(Style::Binary, b"{\x01\x02a=\x02\x02;};<\x01\x16table_index=\x02\x00;>#;");
}

#[test]
fn map_fragments_have_no_braces() {
    let m = map! {"a" => 1i64, "b" => map!{"c" => true}};
    let check = |style, expected: &[u8]| {
        let mut out = Vec::new();
        write::write_map_fragment(&m, style, &mut out);
        assert_eq!(show(&out), show(expected));
        assert_eq!(yson::parse_map_fragment(&out).unwrap(), m);
    };
    check(Style::Text, b"\"a\"=1;\n\"b\"={\"c\"=%true;};\n");
    check(Style::Pretty, b"\"a\" = 1;\n\"b\" = {\n    \"c\" = %true;\n};\n");
    check(Style::Binary, b"\x01\x02a=\x02\x02;\x01\x02b={\x01\x02c=\x05;};");
    let mut out = Vec::new();
    write::write_map_fragment(&Map::new(), Style::Text, &mut out);
    assert!(out.is_empty());
}

#[test]
fn nan_is_written_in_every_style() {
    let nan = Value::Double(f64::NAN);
    assert_eq!(yson::to_text(&nan), b"%nan");
    for form in [yson::to_text(&nan), yson::to_binary(&nan)] {
        assert!(parse(&form).unwrap().as_f64().unwrap().is_nan());
    }
}
