//! Format descriptions and media types.

use yson::dsv::DsvFormat;
use yson::json::AttributesMode;
use yson::{Format, JsonFormat, Style, Value, map};

#[test]
fn descriptions() {
    let check = |text: &str, expected: Format| {
        assert_eq!(Format::parse(text.as_bytes()).as_ref(), Ok(&expected), "{text}");
    };
    let json = JsonFormat::default();
    check("yson", Format::Yson(Style::Binary));
    check("<format=text>yson", Format::Yson(Style::Text));
    check("<format=pretty>yson", Format::Yson(Style::Pretty));
    check(
        "<format=binary;lazy=%false;sort_keys=5;ignore_inner_attributes=x>yson",
        Format::Yson(Style::Binary),
    );
    check("json", Format::Json(json.clone()));
    check("<encode_utf8=%false>json", Format::Json(JsonFormat::utf8()));
    check("<encode_utf8=\"false\">json", Format::Json(JsonFormat::utf8()));
    check(
        "<format=pretty;attributes_mode=always;annotate_with_types=%true;stringify=%true;string_length_limit=5;\
         stringify_nan_and_infinity=%true;support_infinity=%true;plain=1>json",
        Format::Json(JsonFormat {
            encode_utf8: true,
            pretty: true,
            attributes_mode: AttributesMode::Always,
            annotate_with_types: true,
            stringify: true,
            string_length_limit: Some(5),
            stringify_nan_and_infinity: true,
            support_infinity: true,
            plain_keys: false,
        }),
    );
    check("dsv", Format::Dsv(DsvFormat::default()));
    check("<line_prefix=tskv>dsv", Format::Dsv(DsvFormat::tskv()));
    check(
        "<field_separator=\" \";key_value_separator=\":\";record_separator=\";\";enable_escaping=%false>dsv",
        Format::Dsv(DsvFormat {
            field_separator: b' ',
            key_value_separator: b':',
            record_separator: b';',
            enable_escaping: false,
            line_prefix: None,
        }),
    );
}

#[test]
fn schemaful_dsv() {
    let format = |text: &str| Format::parse(text.as_bytes()).expect(text);
    let plain = format("<columns=[a;b]>schemaful_dsv");
    let rows = plain.read_rows(b"1\tx\\ty\n\t\n2\tz").expect("three rows");
    let expected = yson::parse_list_fragment(br#"{a="1";b="x\ty"};{a="";b=""};{a="2";b=z}"#).expect("rows");
    assert_eq!(rows, expected);
    let mut out = Vec::new();
    plain.write_rows(&rows, &mut out).expect("they have both columns");
    assert_eq!(out, b"1\tx\\ty\n\t\n2\tz\n");
    for (text, input, error) in [
        ("<columns=[a;b]>schemaful_dsv", &b"1\n"[..], "a value for each column"),
        ("<columns=[a;b]>schemaful_dsv", b"1\t2\t3\n", "the end of the row"),
        ("<columns=[a]>schemaful_dsv", b"1\\", "escape sequence"),
    ] {
        let found = format(text).read_rows(input).expect_err(text).to_string();
        assert!(found.contains(error), "{found}");
    }
    let sentinel =
        format("<columns=[a;b];missing_value_mode=print_sentinel;missing_value_sentinel=\"-\">schemaful_dsv");
    let rows = sentinel.read_rows(b"-\t1\n").expect("one row");
    assert_eq!(rows, yson::parse_list_fragment(br#"{b="1"}"#).expect("a row"));
    let row = |text: &str| yson::parse(text.as_bytes()).expect(text);
    let write = |text: &str, value: &str| {
        let mut out = b"before\n".to_vec();
        let written = format(text).write_rows(&[row(value)], &mut out);
        assert!(out.starts_with(b"before\n"));
        out.drain(..7);
        (written.map_err(|e| e.to_string()), out)
    };
    assert_eq!(write("<columns=[a;b];missing_value_mode=print_sentinel>schemaful_dsv", "{b=2u}").1, b"\t2\n");
    assert_eq!(
        write("<columns=[a;b];missing_value_mode=skip_row>schemaful_dsv", "{a=2}"),
        (Ok(()), Vec::new())
    );
    for (value, error) in
        [("{a=1}", "column \"b\" is missing"), ("{a=1;b=[]}", "only scalars"), ("5", "must be a map")]
    {
        let (written, out) = write("<columns=[a;b]>schemaful_dsv", value);
        assert!(written.expect_err(value).contains(error), "{value}");
        assert!(out.is_empty(), "nothing of a row that is refused");
    }
}

#[test]
fn bad_descriptions() {
    let check = |text: &str, expected: &str| {
        assert_eq!(Format::parse(text.as_bytes()).unwrap_err().to_string(), expected);
    };
    check("xml", "unknown format \"xml\", expected one of \"yson\", \"json\", \"dsv\", \"schemaful_dsv\"");
    check(
        "<columns=[]>schemaful_dsv",
        "bad format description: option \"columns\": expected non-empty list of strings, found a list",
    );
    check("5", "a format must be a string such as \"json\" or \"<format=text>yson\", found int64");
    check(
        "<format=red>yson",
        "bad format description: option \"format\": expected one of \"text\", \"pretty\", \"binary\", found string \"red\"",
    );
    check("<stringify=1>json", "bad format description: option \"stringify\": expected boolean, found 1");
    check(
        "<field_separator=ab>dsv",
        "bad format description: option \"field_separator\": expected string of one byte, found string \"ab\"",
    );
    check(
        "<a",
        "cannot parse format description: expected `=` after a key, found end of input at offset 2 (line 1, column 3)",
    );
}

#[test]
fn media_types_go_both_ways() {
    for mime in [
        "application/json",
        "application/x-yt-yson-binary",
        "application/x-yt-yson-text",
        "application/x-yt-yson-pretty",
        "text/tab-separated-values",
        "text/x-tskv",
    ] {
        assert_eq!(Format::from_mime(mime).expect(mime).mime(), mime);
    }
    assert_eq!(Format::from_mime("Application/JSON; charset=utf-8"), Some(Format::structured_default()));
    for unknown in ["*/*", "", "application/x-www-form-urlencoded", "text/html"] {
        assert_eq!(Format::from_mime(unknown), None, "{unknown}");
    }
    let accept = |header| Format::from_accept(header).map(|f| f.mime());
    assert_eq!(accept("text/html, application/json;q=0.9, */*"), Some("application/json"));
    assert_eq!(accept("text/html,*/*"), None);
}

#[test]
fn structured_and_tabular_data() {
    let rows = vec![Value::Map(map! {"a" => "x"}), Value::Map(map! {"a" => "y", "b" => "z"})];
    for (description, text) in [
        ("<format=text>yson", "{\"a\"=\"x\";};\n{\"a\"=\"y\";\"b\"=\"z\";};\n"),
        ("json", "{\"a\":\"x\"}\n{\"a\":\"y\",\"b\":\"z\"}\n"),
        ("<format=pretty>json", "{\"a\":\"x\"}\n{\"a\":\"y\",\"b\":\"z\"}\n"),
        ("dsv", "a=x\na=y\tb=z\n"),
    ] {
        let format = Format::parse(description.as_bytes()).unwrap();
        let mut out = Vec::new();
        format.write_rows(&rows, &mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out), text, "{description}");
        assert_eq!(format.read_rows(text.as_bytes()).as_ref(), Ok(&rows), "{description}");
        let one = format.serialize(&rows[1]);
        assert_eq!(format.deserialize(&one).as_ref(), Ok(&rows[1]), "{description}");
    }
    let error = Format::structured_default().deserialize(b"{").unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot parse JSON: expected a key in quotes, found end of input at offset 1 (line 1, column 2)"
    );
}

#[test]
fn rows_that_a_format_cannot_hold_are_refused_whole() {
    let rows = [Value::Map(map! {"a" => "x"}), Value::Map(map! {"a" => &b"\xff"[..]})];
    let mut out = Vec::new();
    let error = Format::Json(JsonFormat::utf8()).write_rows(&rows, &mut out).unwrap_err();
    assert_eq!(out, b"{\"a\":\"x\"}\n");
    assert!(error.to_string().starts_with("cannot write row 1 as JSON"), "{error}");

    let rows = [Value::Map(map! {"a" => Value::List(vec![])})];
    let error = Format::Dsv(DsvFormat::default()).write_rows(&rows, &mut out).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot write a row as DSV: column \"a\" holds a list, DSV has only scalars"
    );
}
