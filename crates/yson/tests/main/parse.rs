//! Limits and errors of the YSON parser.

use crate::support::show;
use yson::{ParseOptions, Position, Rows, Value, parse, parse_list_fragment, parse_map_fragment, parse_with};

#[test]
fn errors_say_where_what_and_what_else() {
    let check = |input: &[u8], expected: &str| {
        assert_eq!(parse(input).unwrap_err().to_string(), expected, "{}", show(input));
    };
    check(b"", "expected a value, found end of input at offset 0 (line 1, column 1)");
    check(b"{a=1;\n  b:2}", "expected `=` after a key, found `:` at offset 9 (line 2, column 4)");
    check(b"[1;2", "expected `;` or `]`, found end of input at offset 4 (line 1, column 5)");
    check(b"<a=1]x", "expected `;` or `>`, found `]` at offset 4 (line 1, column 5)");
    check(b"{5=1}", "expected a key, found `5` at offset 1 (line 1, column 2)");
    check(b"1 1", "expected end of input, found `1` at offset 2 (line 1, column 3)");
    check(b"[\x01\x02a;\x07]", "expected a value, found byte 0x07 at offset 5");
    check(
        b"12x4",
        "expected a number: int64, uint64 ending in `u`, or double, found `12x4` at offset 0 (line 1, column 1)",
    );
    check(
        b"%yes",
        "expected one of `%true`, `%false`, `%nan`, `%inf`, `%-inf`, found `%yes` at offset 0 (line 1, column 1)",
    );
    check(
        b"99999999999999999999u",
        "expected a uint64: 0u..18446744073709551615u, found `99999999999999999999u` at offset 0 (line 1, column 1)",
    );
    check(
        b"\"abc",
        "expected the closing `\"` of a string, found end of input at offset 4 (line 1, column 5)",
    );
    check(b"\x03\0\0", "expected the 8 bytes of a binary double, found end of input at offset 3");
}

#[test]
fn a_length_is_checked_before_anything_is_allocated() {
    // 2 GB announced in 10 bytes.
    let error = parse(b"[\x01\xfe\xff\xff\xff\x0fabc").unwrap_err();
    assert_eq!(error.expected, "a string within the 3 bytes that are left");
    assert_eq!(error.found, "length 2147483647");
    let error = parse(b"\x01\x01").unwrap_err();
    assert_eq!((error.found.as_str(), error.offset), ("length -1", 1));
    // The greatest possible length must not overflow either.
    assert!(parse(b"\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01").is_err());
}

#[test]
fn varints_have_64_bits() {
    assert_eq!(parse(b"\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), Ok(Value::Uint(u64::MAX)));
    assert!(parse(b"\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02").is_err());
    assert!(parse(b"\x06\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00").is_err());
    assert_eq!(parse(b"\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), Ok(Value::Int(i64::MIN)));
}

#[test]
fn nesting_is_limited() {
    let nested =
        |open: &str, close: &str, n: usize| [open.repeat(n), "1".to_owned(), close.repeat(n)].concat();
    for (open, close) in [("[", "]"), ("{a=", "}"), ("<a=", ">1")] {
        let parse_nested = |n, options| parse_with(nested(open, close, n).as_bytes(), options);
        assert!(parse_nested(256, ParseOptions::default()).is_ok(), "{open}");
        let error = parse_nested(257, ParseOptions::default()).unwrap_err();
        assert_eq!(error.expected, "at most 256 levels of nesting");
        assert!(parse_nested(3, ParseOptions { max_depth: 2 }).is_err());
        assert!(parse_nested(2, ParseOptions { max_depth: 2 }).is_ok());
        // An endless nesting is refused where the limit is, whatever limit was asked for.
        assert!(parse_nested(1_000_000, ParseOptions { max_depth: usize::MAX }).is_err());
    }
    // Closing a level gives back that level and no more.
    for closed in ["[1];", "{a=1};", "<a=1>1;"] {
        let late = format!("{}{}", closed.repeat(10), nested("[", "]", 3));
        let rows =
            |max_depth| Rows::with_options(late.as_bytes(), ParseOptions { max_depth }).all(|r| r.is_ok());
        assert!(rows(3) && !rows(2), "{closed}");
    }
    // Closed levels do not count.
    let wide = format!("[{}]", "[[1]];{a=<b=1>2};".repeat(1000));
    assert!(parse_with(wide.as_bytes(), ParseOptions { max_depth: 3 }).is_ok());
}

#[test]
fn rows_come_one_by_one_until_the_first_error() {
    let rows: Vec<_> = Rows::new(b"{a=1};\n{a=2};\n<table_index=1>#; \n").collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2].as_ref().unwrap().attribute("table_index"), Some(&Value::Int(1)));

    let mut rows = Rows::new(b"1;2;\n]3;4");
    assert_eq!(rows.next(), Some(Ok(Value::Int(1))));
    assert_eq!(rows.offset(), 2);
    assert_eq!(rows.next(), Some(Ok(Value::Int(2))));
    let error = rows.next().unwrap().unwrap_err();
    assert_eq!((error.offset, error.position), (5, Some(Position { line: 2, column: 1 })));
    assert_eq!(rows.next(), None);

    for (input, count) in [("", 0), (" \n", 0), ("1", 1), ("1;", 1), ("1;2", 2)] {
        assert_eq!(parse_list_fragment(input.as_bytes()).unwrap().len(), count, "{input:?}");
    }
    for input in [";", "1;;2", "1 2", "[1"] {
        assert!(parse_list_fragment(input.as_bytes()).is_err(), "{input:?}");
    }
}

#[test]
fn map_fragments() {
    for (input, count) in [("", 0), ("a=1", 1), (" a=1; \"b\"=2; ", 2), ("a=1;a=2", 1)] {
        assert_eq!(parse_map_fragment(input.as_bytes()).unwrap().len(), count, "{input:?}");
    }
    for input in ["a", "a=", ";", "a=1;;", "a=1}", "{a=1}"] {
        assert!(parse_map_fragment(input.as_bytes()).is_err(), "{input:?}");
    }
}

#[test]
fn a_repeated_key_keeps_its_place_and_takes_the_last_value() {
    let value = parse(b"{a=1;b=2;a=3}").unwrap();
    assert_eq!(yson::to_text(&value), b"{\"a\"=3;\"b\"=2;}");
}

#[test]
fn long_strings_and_runs_of_escapes() {
    // Lengths around the eight bytes that are scanned at once, with the quote at every place.
    for length in 0..40 {
        for at in 0..=length {
            let mut bytes = vec![b'x'; length];
            bytes.insert(at, b'"');
            bytes.push(0x80);
            let value = Value::from(&bytes[..]);
            assert_eq!(parse(&yson::to_text(&value)), Ok(value.clone()));
            assert_eq!(parse(&yson::to_binary(&value)), Ok(value));
        }
    }
}
