//! Schemas: what is let in, what is changed on the way, what is refused.

use tables::{Checker, Columns, Schema, Summary, Writer, inherit, inherit_the_same};
use yson::Format;

fn write(schema: &str, sorted_by: &[&str], rows: &str) -> Result<Summary, vocab::Failure> {
    let schema = Schema::parse(&yson::parse(schema.as_bytes()).expect("YSON"))?;
    let mut keys: Vec<String> = sorted_by.iter().map(|s| (*s).to_owned()).collect();
    if let Some(schema) = &schema {
        keys.extend(schema.key_columns());
    }
    let mut writer = Writer::new(Format::tabular_default(), Checker::new(schema, keys));
    let mut out = Vec::new();
    writer.push(rows.as_bytes(), &mut out)?;
    writer.finish(&mut out)
}

#[test]
fn rows_are_checked() {
    const AB: &str = "[{name=a;type=int64;required=%true};{name=b;type=string}]";
    for (schema, sorted_by, rows, error) in [
        ("#", &[][..], "{a=1};{b=2}", None),
        (AB, &[], "{a=1;b=x};{a=2};{a=3u;b=#}", None),
        (AB, &[], "{b=x}", Some("Row 0: required column \"a\" is missing")),
        (AB, &[], "{a=1};{a=#}", Some("Row 1: required column \"a\" is missing")),
        (AB, &[], "{a=<x=1>#}", Some("Row 0: required column \"a\" is missing")),
        (AB, &[], "{a=1;b=<x=1>#}", None),
        ("[{name=a;type_v3=null}]", &[], "{};{a=#}", None),
        (AB, &[], "{a=1;b=2}", Some("Row 0: column \"b\": expected string, found int64 2")),
        (AB, &[], "{a=1;c=2}", Some("Row 0: column \"c\" is not in the schema")),
        ("<strict=%false>[{name=a;type=int8}]", &[], "{a=127;c=2}", None),
        (
            "[{name=a;type=int8}]",
            &[],
            "{a=128}",
            Some("Row 0: column \"a\": expected an integer from -128 to 127"),
        ),
        (
            "[{name=a;type=uint16}]",
            &[],
            "{a=-1}",
            Some("Row 0: column \"a\": expected an integer from 0 to 65535"),
        ),
        ("[{name=a;type=double}]", &[], "{a=1};{a=0.5}", None),
        (
            "[{name=a;type=utf8}]",
            &[],
            "{a=\"\\xff\"}",
            Some("Row 0: column \"a\": expected a string in UTF-8"),
        ),
        ("[{name=a;type_v3={type_name=optional;item=string}}]", &[], "{};{a=x}", None),
        ("[{name=a;type_v3=string}]", &[], "{}", Some("Row 0: required column \"a\" is missing")),
        ("#", &["k"], "{k=1};{k=1};{k=2};{k=a}", None),
        ("#", &["k"], "{k=2};{k=1}", Some("Row 1: the table is sorted, but key [1;] comes behind [2;]")),
        ("#", &["k", "l"], "{k=1;l=2};{k=1;l=1}", Some("Row 1: the table is sorted")),
        (
            "[{name=k;type=int64;sort_order=ascending}]",
            &[],
            "{k=2};{k=1}",
            Some("Row 1: the table is sorted"),
        ),
        (
            "<unique_keys=%true>[{name=k;type=int64;sort_order=ascending}]",
            &[],
            "{k=1};{k=1}",
            Some("Row 1: key [1;] is there twice"),
        ),
    ] {
        match (write(schema, sorted_by, rows), error) {
            (Ok(_), None) => {}
            (Err(failure), Some(error)) => assert!(failure.message.starts_with(error), "{rows}: {failure}"),
            (other, _) => panic!("{schema} {rows}: {other:?}"),
        }
    }
}

/// The keys at the ends of a chunk are kept with the metadata.
#[test]
fn keys_have_a_length() {
    let row = |length: usize| format!("{{k=\"{}\"}}", "x".repeat(length));
    write("#", &["k"], &row(16 << 10)).expect("fits");
    let refused = write("#", &["k"], &row((16 << 10) + 1)).expect_err("too long").message;
    assert_eq!(refused, "Row 0: its key ([\"k\"]) has 16385 bytes, at most 16384 are allowed");
    write("#", &["l"], &row(1 << 20)).expect("no key");
}

#[test]
fn there_are_so_many_columns() {
    let schema = |count: usize| {
        let columns: Vec<String> = (0..count).map(|i| format!("{{name=c{i};type=any}}")).collect();
        Schema::parse(&yson::parse(format!("[{}]", columns.join(";")).as_bytes()).expect("YSON"))
    };
    let most = schema(32_768).expect("allowed");
    Schema::check_change(most.as_ref(), most.as_ref()).expect("the same");
    assert!(schema(32_769).expect_err("too many").message.contains("32769 columns, at most 32768"));
}

#[test]
fn bad_schemas_are_refused_by_name() {
    for (schema, error) in [
        ("5", "expected a list of columns, found int64"),
        ("[5]", "column 0: expected a map, found int64"),
        ("[{type=string}]", "column 0: \"name\" must be a non-empty string"),
        ("[{name=a}]", "column 0: column \"a\" needs a \"type\""),
        ("[{name=a;type=blob}]", "column 0: unknown type \"blob\""),
        ("[{name=a;type=any};{name=a;type=any}]", "column \"a\" is there twice"),
        (
            "[{name=a;type=any};{name=b;type=any;sort_order=ascending}]",
            "key column \"b\" must stand in front",
        ),
        (
            "[{name=a;type=any;sort_order=descending}]",
            "column 0: \"sort_order\" of \"a\" must be \"ascending\"",
        ),
        ("<unique_keys=%true>[{name=a;type=any}]", "\"unique_keys\" needs a key column"),
        ("<strict=1>[]", "\"strict\" must be boolean, found int64"),
    ] {
        let value = yson::parse(schema.as_bytes()).expect("YSON");
        let failure = Schema::parse(&value).expect_err(schema);
        assert!(failure.message.contains(error), "{schema}: {failure}");
    }
}

#[test]
fn weights_count_values() {
    let summary = write("#", &["k"], "{k=1;s=abc};{k=2;b=%true;n=#;l=[1;]}").expect("rows");
    assert_eq!(summary.rows, 2);
    // 1 + 8 + 3, and 1 + 8 + 1 + 0 + the five bytes of the list.
    assert_eq!(summary.weight, 12 + 15);
    let (first, last) = summary.bounds.expect("sorted");
    assert_eq!((first, last), (vec![1.into()], vec![2.into()]));
}

#[test]
fn schemas_are_handed_down() {
    let value = |text: &str| yson::parse(text.as_bytes()).expect("YSON");
    let given = value(
        "<unique_keys=%true>[{name=k;type=int64;sort_order=ascending;group=g};{name=l;type=int64;sort_order=ascending};\
         {name=v;type_v3=string}]",
    );
    let handed = |path: &str, keys: &[&str]| {
        let columns = Columns::of(&format!("{path}//t").parse().expect("a path")).expect("columns");
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        inherit(&given, &columns, &keys).expect("a schema")
    };
    let (k, l) = ("{name=k;type=int64", "{name=l;type=int64");
    let v = "{name=v;type=string;required=%true}";
    for (path, keys, expected) in [
        ("", &[][..], format!("[{k}}};{l}}};{v}]")),
        ("", &["k"], format!("[{k};sort_order=ascending}};{l}}};{v}]")),
        ("", &["l", "k"], format!("[{l};sort_order=ascending}};{k};sort_order=ascending}};{v}]")),
        ("<columns=[k]>", &[], format!("[{k}}}]")),
        ("<rename_columns={v=k}>", &[], format!("[{l}}};{}]", v.replace("name=v", "name=k"))),
    ] {
        let (found, expected) = (handed(path, keys), value(&expected));
        assert_eq!(Schema::parse(&found), Schema::parse(&expected), "{path} {keys:?}");
        let expected = inherit(&expected, &Columns::default(), &[]).expect("a schema");
        assert!(!keys.is_empty() || inherit_the_same(&found, &expected), "{path}");
    }
    assert!(handed("", &["x"]).is_entity() && handed("<columns=[v]>", &["k"]).is_entity());
    assert!(inherit(&value("#"), &Columns::default(), &[]).expect("weak").is_entity());

    let plain = |text: &str| inherit(&value(text), &Columns::default(), &[]).expect("a schema");
    for (one, other, same) in [
        ("[{name=a;type=int64};{name=b;type=any}]", "[{name=b;type=any};{name=a;type=int64}]", true),
        ("[{name=a;type=string}]", "[{name=a;type_v3={type_name=optional;item=string};lock=x}]", true),
        ("[{name=a;type=string}]", "[{name=a;type=string;required=%true}]", false),
        ("[{name=a;type=string}]", "<strict=%false>[{name=a;type=string}]", false),
        (
            "[{name=a;type=any}]",
            "[{name=a;type_v3={type_name=optional;item={type_name=list;item=int8}}}]",
            false,
        ),
        ("[{name=a;type=string}]", "#", false),
    ] {
        assert_eq!(inherit_the_same(&plain(one), &plain(other)), same, "{one} {other}");
    }
}
