//! DSV rows.

use crate::support::show;
use yson::dsv::{DsvFormat, from_dsv, to_dsv, write_dsv_row};
use yson::parse;

fn written(row: &str, format: &DsvFormat) -> Result<String, String> {
    let mut out = Vec::new();
    write_dsv_row(&parse(row.as_bytes()).unwrap(), format, &mut out).map_err(|e| e.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn writing() {
    let check = |row: &str, expected: &str| {
        assert_eq!(written(row, &DsvFormat::default()).as_deref(), Ok(expected), "{row}");
    };
    check("{}", "\n");
    check("{a=1;b=x}", "a=1\tb=x\n");
    check("{a=-1;b=2u;c=2.5;d=%true;e=3.;f=%nan;g=%-inf}", "a=-1\tb=2\tc=2.5\td=true\te=3\tf=nan\tg=-inf\n");
    check("{a=#;b=1;c=#}", "b=1\n");
    check(r#"{"k=\t"="v=\t\n\r\\\0"}"#, "k\\=\\t=v=\\t\\n\\r\\\\\\0\n");
    check("<table_index=1>#", "");
    assert_eq!(written("{a=x}", &DsvFormat::tskv()).as_deref(), Ok("tskv\ta=x\n"));
    assert_eq!(written("{}", &DsvFormat::tskv()).as_deref(), Ok("tskv\n"));
    let plain = DsvFormat { enable_escaping: false, ..DsvFormat::default() };
    assert_eq!(written(r#"{a="b\\c"}"#, &plain).as_deref(), Ok("a=b\\c\n"));
    let odd = DsvFormat { field_separator: b',', record_separator: b';', ..DsvFormat::default() };
    assert_eq!(written(r#"{"a,b"="c;d";e=f}"#, &odd).as_deref(), Ok("a\\,b=c\\;d,e=f;"));
}

#[test]
fn what_has_no_form() {
    let error = |row: &str| written(row, &DsvFormat::default()).unwrap_err();
    assert_eq!(error("{a=1;b=[]}"), "column \"b\" holds a list, DSV has only scalars");
    assert_eq!(error("{a=<x=1>{}}"), "column \"a\" holds a map, DSV has only scalars");
    assert_eq!(error("5"), "a row must be a map, found int64");
}

#[test]
fn structured_values_are_shown_as_well_as_can_be() {
    let check = |yson: &str, expected: &str| {
        assert_eq!(
            show(&to_dsv(&parse(yson.as_bytes()).unwrap(), &DsvFormat::default())),
            show(expected.as_bytes())
        );
    };
    check("5", "5\n");
    check("[{a=1};{b=2}]", "a=1\nb=2\n");
    check("{a=[1;2]}", "a=[1;2;]\n");
}

#[test]
fn reading() {
    let check = |text: &str, format: &DsvFormat, expected: &str| {
        let rows: Vec<_> = from_dsv(text.as_bytes(), format).collect::<Result<_, _>>().unwrap();
        let expected = yson::parse_list_fragment(expected.as_bytes()).unwrap();
        assert_eq!(rows, expected, "{text}");
    };
    let plain = DsvFormat::default();
    check("", &plain, "");
    check("\n", &plain, "{}");
    check("a=1", &plain, r#"{a="1"}"#);
    check("a=1\tb=x=y\n\nc=\n", &plain, r#"{a="1";b="x=y"};{};{c=""}"#);
    check("a\\=\\t=\\n\\\\\\0\\r\\q\n", &plain, r#"{"a=\t"="\n\\\0\rq"}"#);
    check("a=1\ta=2\n", &plain, r#"{a="2"}"#);
    check("=1\n", &plain, r#"{""="1"}"#);
    check("tskv\ta=1\ntskv\n", &DsvFormat::tskv(), r#"{a="1"};{}"#);
    let odd = DsvFormat { field_separator: b' ', key_value_separator: b':', record_separator: b';', ..plain };
    check("a:1 b:2;c:3", &odd, r#"{a="1";b="2"};{c="3"}"#);
}

#[test]
fn refusals() {
    let check = |text: &str, format: &DsvFormat, offset: usize| {
        let error = from_dsv(text.as_bytes(), format).last().unwrap().unwrap_err();
        assert_eq!(error.offset, offset, "{text}: {error}");
    };
    let plain = DsvFormat::default();
    check("a=1\nb\n", &plain, 5);
    check("a=1\t\n", &plain, 4);
    check("a=\\", &plain, 3);
    check("a=1\n", &DsvFormat::tskv(), 0);
    check("tskva=1\n", &DsvFormat::tskv(), 4);
}
