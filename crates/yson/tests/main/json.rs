//! The JSON mapping of http-api.md 4.3, option by option.

use crate::support::show;
use yson::json::{AttributesMode, JsonFormat, from_json, from_json_stream, to_json};
use yson::{Value, map, parse};

fn yson_of(text: &str) -> Value {
    parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn written(yson: &str, format: &JsonFormat) -> String {
    String::from_utf8(to_json(&yson_of(yson), format)).unwrap()
}

#[test]
fn plain_values() {
    let check = |yson: &str, json: &str| {
        assert_eq!(written(yson, &JsonFormat::default()), json);
        let back = from_json(json.as_bytes(), &JsonFormat::default()).unwrap();
        assert_eq!(back, yson_of(yson), "{json}");
    };
    check("#", "null");
    check("%true", "true");
    check("-5", "-5");
    check("9223372036854775807", "9223372036854775807");
    check("-9223372036854775808", "-9223372036854775808");
    check("18446744073709551615u", "18446744073709551615");
    check("2.", "2.0");
    check("0.1", "0.1");
    check("-1e300", "-1e+300");
    check("1e-11", "1e-11");
    check(r#""a\"\\/\n\r\t\b\f\0\x1f\x7f""#, "\"a\\\"\\\\/\\n\\r\\t\\b\\f\\u0000\\u001f\x7f\"");
    check("[]", "[]");
    check("{}", "{}");
    check("[1;[2;{}]]", "[1,[2,{}]]");
    check("{b=1;a={c=2}}", r#"{"b":1,"a":{"c":2}}"#);
    check(
        "<a=1;b=<c=2>#>x",
        r#"{"$attributes":{"a":1,"b":{"$attributes":{"c":2},"$value":null}},"$value":"x"}"#,
    );
    check(r#"{"$value"=1;"$$"=2;"$"=3;"a$"=4}"#, r#"{"$$value":1,"$$$":2,"$$":3,"a$":4}"#);
}

#[test]
fn encode_utf8_makes_a_code_point_of_each_byte() {
    let bytes: Vec<u8> = (0..=255).collect();
    let value = Value::from(&bytes[..]);
    let json = to_json(&value, &JsonFormat::default());
    assert_eq!(from_json(&json, &JsonFormat::default()).unwrap(), value);
    assert_eq!(written(r#""é""#, &JsonFormat::default()), "\"Ã©\"");
    assert_eq!(written(r#"{"é"=1}"#, &JsonFormat::default()), "{\"Ã©\":1}");
    assert_eq!(written(r#""é""#, &JsonFormat::utf8()), "\"é\"");

    let check = |json: &str, format: &JsonFormat, expected: Result<&[u8], &str>| {
        let got = from_json(json.as_bytes(), format).map_err(|e| e.expected);
        assert_eq!(got, expected.map(Value::from).map_err(str::to_owned), "{json}");
    };
    let (latin, utf8) = (JsonFormat::default(), JsonFormat::utf8());
    let wide = "a code point below 256 (the format has encode_utf8=%true)";
    check(r#""\u00e9é""#, &latin, Ok(&[0xe9, 0xe9]));
    check(r#""\u00e9é""#, &utf8, Ok("éé".as_bytes()));
    check(r#""\u0416""#, &latin, Err(wide));
    check("\"aЖ\"", &latin, Err(wide));
    check(r#""\ud83d\ude00""#, &utf8, Ok("😀".as_bytes()));
    check(r#""\ud83d""#, &utf8, Err("a whole surrogate pair"));
    check(r#""\ude00""#, &utf8, Err("a whole surrogate pair"));
    check(r#""\ud83d\u0041""#, &utf8, Err("a whole surrogate pair"));
    assert!(from_json(b"\"\xff\"", &utf8).is_err());
    assert!(from_json(b"\"\xff\"", &latin).is_err());

    // A page must not die of a bad byte.
    assert_eq!(to_json(&Value::from(&b"a\xffb"[..]), &utf8), "\"a\u{fffd}b\"".as_bytes());
}

#[test]
fn pretty() {
    let format = JsonFormat { pretty: true, ..JsonFormat::default() };
    assert_eq!(
        written("{a=[1;{}];b=<c=1>[]}", &format),
        "{\n    \"a\": [\n        1,\n        {}\n    ],\n    \"b\": {\n        \"$attributes\": {\n            \"c\": 1\n        },\n        \"$value\": []\n    }\n}"
    );
}

#[test]
fn attributes_modes() {
    let with = |attributes_mode| JsonFormat { attributes_mode, ..JsonFormat::default() };
    let yson = "[1;<a=2>3]";
    assert_eq!(written(yson, &with(AttributesMode::OnDemand)), r#"[1,{"$attributes":{"a":2},"$value":3}]"#);
    assert_eq!(written(yson, &with(AttributesMode::Never)), "[1,3]");
    assert_eq!(
        written("[1]", &with(AttributesMode::Always)),
        r#"{"$attributes":{},"$value":[{"$attributes":{},"$value":1}]}"#
    );
}

#[test]
fn types_strings_and_limits() {
    let base = JsonFormat::default();
    let types = JsonFormat { annotate_with_types: true, ..base.clone() };
    assert_eq!(
        written("[1;2u;3.;x;%true;#;[]]", &types),
        concat!(
            r#"[{"$type":"int64","$value":1},{"$type":"uint64","$value":2},{"$type":"double","$value":3.0},"#,
            r#"{"$type":"string","$value":"x"},{"$type":"boolean","$value":true},null,[]]"#
        )
    );
    assert_eq!(
        written("<a=1>2", &types),
        r#"{"$attributes":{"a":{"$type":"int64","$value":1}},"$type":"int64","$value":2}"#
    );
    let stringify = JsonFormat { stringify: true, ..base.clone() };
    assert_eq!(written("[1;2u;3.;x;%true;#;%nan]", &stringify), r#"["1","2","3.0","x","true",null,"nan"]"#);
    let limit = JsonFormat { string_length_limit: Some(3), ..base };
    assert_eq!(
        written("{abcd=[abc;abcd]}", &limit),
        r#"{"abcd":["abc",{"$incomplete":true,"$value":"abc"}]}"#
    );
    // A character is not cut in two where characters matter.
    let limit = JsonFormat { string_length_limit: Some(3), ..JsonFormat::utf8() };
    assert_eq!(written("\"éé\"", &limit), r#"{"$incomplete":true,"$value":"é"}"#);
}

#[test]
fn keys_of_others() {
    let plain = JsonFormat { plain_keys: true, ..JsonFormat::utf8() };
    assert_eq!(written("{\"$ref\"=1}", &plain), r#"{"$ref":1}"#);
    assert_eq!(written("{\"$ref\"=1}", &JsonFormat::utf8()), r#"{"$$ref":1}"#);
}

#[test]
fn nan_and_infinity() {
    let base = JsonFormat::default();
    let yson = "[%nan;%inf;%-inf]";
    assert_eq!(written(yson, &base), "[null,null,null]");
    let strings = JsonFormat { stringify_nan_and_infinity: true, ..base.clone() };
    assert_eq!(written(yson, &strings), r#"["nan","inf","-inf"]"#);
    let words = JsonFormat { support_infinity: true, ..base.clone() };
    assert_eq!(written(yson, &words), "[null,inf,-inf]");
    assert_eq!(from_json(b"[inf,-inf]", &words), Ok(yson_of("[%inf;%-inf]")));
    assert!(from_json(b"[inf]", &base).is_err());
    let types = JsonFormat { annotate_with_types: true, ..base.clone() };
    assert_eq!(written("[%nan;1.]", &types), r#"[null,{"$type":"double","$value":1.0}]"#);
    let typed = r#"{"$type":"double","$value":"nan"}"#;
    assert!(from_json(typed.as_bytes(), &base).unwrap().as_f64().unwrap().is_nan());
}

#[test]
fn reading() {
    let check = |json: &str, yson: &str| {
        assert_eq!(from_json(json.as_bytes(), &JsonFormat::default()), Ok(yson_of(yson)), "{json}");
    };
    check(" { \"a\" : [ 1 , 2 ] } \n", "{a=[1;2]}");
    check(r#"{"a":1,"a":2}"#, "{a=2}");
    check("1e2", "100.");
    check("1E+2", "100.");
    check("1.5", "1.5");
    check("-0", "0");
    check("9223372036854775808", "9223372036854775808u");
    check(r#"{"$value":1,"$attributes":{"a":2}}"#, "<a=2>1");
    check(r#"{"$value":{"$value":1,"$attributes":{"b":3}},"$attributes":{"a":2}}"#, "<a=2;b=3>1");
    check(r#"{"$type":"uint64","$value":5}"#, "5u");
    check(r#"{"$type":"int64","$value":"-5"}"#, "-5");
    check(r#"{"$type":"double","$value":5}"#, "5.");
    check(r#"{"$type":"boolean","$value":"true"}"#, "%true");
    check(r#"{"$type":"string","$value":"x","$incomplete":true}"#, "x");
    check(r#"{"$value":null}"#, "#");
    check(r#"{"$type":"double","$value":null}"#, "#");
    check(r#"{"$value":1,"$attributes":null}"#, "1");
}

#[test]
fn refusals() {
    let check = |json: &str, expected: &str| {
        let error = from_json(json.as_bytes(), &JsonFormat::default()).expect_err(json);
        assert_eq!(
            error.to_string(),
            format!("expected {expected} (line 1, column {})", error.offset + 1),
            "{json}"
        );
    };
    check("", "a JSON value, found end of input at offset 0");
    check("nul", "a JSON value, found `nul` at offset 0");
    check("[1,]", "a JSON value, found `]` at offset 3");
    check("[1 2]", "`,` or `]`, found `2` at offset 3");
    check("{\"a\":1,}", "a key in quotes, found `}` at offset 7");
    check("{a:1}", "a key in quotes, found `a` at offset 1");
    check("{\"a\" 1}", "`:` after a key, found `1` at offset 5");
    check("1 1", "end of input, found `1` at offset 2");
    check(
        "18446744073709551616",
        "an integer within int64 or uint64, found `18446744073709551616` at offset 0",
    );
    check("\"a\nb\"", "no raw control characters in a string, found byte 0x0a at offset 2");
    check("\"a", "the closing `\"` of a string, found end of input at offset 2");
    check(r#""\q""#, r#"one of the escapes \" \\ \/ \b \f \n \r \t \uXXXX, found `\\q` at offset 1"#);
    check(r#"{"$type":"int64","$value":1.0}"#, "an int64, as `$type` says, found `1` at offset 26");
    check(
        r#"{"$type":"int65","$value":1}"#,
        "one of the types `string`, `int64`, `uint64`, `double`, `boolean`, found `\"` at offset 9",
    );
    check(
        r#"{"$attributes":{}}"#,
        "an object with `$value` beside its other `$` keys, found `{` at offset 0",
    );
    check(r#"{"$value":1,"a":2}"#, "no other keys beside `$value` and `$attributes`, found `{` at offset 0");
    check(r#"{"$attributes":5,"$value":1}"#, "a map of attributes, found `5` at offset 15");
    // Control characters are seen wherever they are among the eight bytes that are scanned at once.
    for at in 0..20 {
        let mut text = format!("\"{}\"", "x".repeat(20)).into_bytes();
        text[at + 1] = b'\t';
        assert_eq!(from_json(&text, &JsonFormat::default()).unwrap_err().offset, at + 1);
    }
    for bad in [
        "01",
        "1.",
        ".5",
        "-",
        "+1",
        "1e",
        "0x1",
        "1.e5",
        "NaN",
        "inf",
        "'a'",
        "{\"$x\":1}",
        "{\"$\":1}",
        "\"\\u12g4\"",
    ] {
        assert!(from_json(bad.as_bytes(), &JsonFormat::default()).is_err(), "{bad}");
    }
}

#[test]
fn nesting_is_limited() {
    let nested = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
    assert!(from_json(&nested(256), &JsonFormat::default()).is_ok());
    let error = from_json(&nested(257), &JsonFormat::default()).unwrap_err();
    assert_eq!(error.expected, "at most 256 levels of nesting");
    assert!(from_json(&vec![b'['; 1_000_000], &JsonFormat::default()).is_err());
}

#[test]
fn rows_with_any_white_space_or_none() {
    let format = JsonFormat::default();
    let expected = vec![Value::Map(map! {"a" => 1i64}), Value::Map(map! {"a" => 2i64})];
    for text in [r#"{"a":1}{"a":2}"#, "{\"a\":1}\n{\"a\":2}\n", " {\"a\":1} \t\r\n {\"a\":2}"] {
        let rows: Result<Vec<Value>, _> = from_json_stream(text.as_bytes(), &format).collect();
        assert_eq!(rows.as_ref(), Ok(&expected), "{}", show(text.as_bytes()));
    }
    assert_eq!(from_json_stream(b" \n", &format).count(), 0);
    let mut rows = from_json_stream(b"{\"a\":1},{\"a\":2}", &format);
    assert!(rows.next().unwrap().is_ok());
    assert_eq!(rows.next().unwrap().unwrap_err().offset, 7);
    assert!(rows.next().is_none(), "an error is the end");
}
