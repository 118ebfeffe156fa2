//! Rows that are nearly alike, however they are spelled, are what they are alone.

use crate::formats::take;
use proptest::prelude::*;

/// Ways to write a name: all mean `a`, `b` or `c c`.
const NAMES: [&[&[u8]]; 3] = [
    &[b"\"a\"", b"\"a\"", b"a", b"\x01\x02a", b"\x01\x02a", b"\x01\x82\x00a", b"\"\\x61\""],
    &[b"\"b\"", b"\"b\"", b"b", b"\x01\x02b", b"\x01\x02b"],
    &[b"\"c c\"", b"\"c c\"", b"\x01\x06c c"],
];

const VALUES: &[&[u8]] = &[
    b"0",
    b"-0",
    b"+7",
    b"-12",
    b"007",
    b"12345",
    b"999999999999999999",
    b"1000000000000000000",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"9223372036854775808",
    b"18446744073709551615u",
    b"5u",
    b"-5u",
    b"1.5",
    b"-.5e10",
    b"1e5",
    b"12a",
    b"1_0",
    b"-",
    b"%true",
    b"%false",
    b"%nan",
    b"%-inf",
    b"%maybe",
    b"#",
    b"\"\"",
    b"\"a\\nb\"",
    b"\"plain ; } text\"",
    b"\"\\\"quoted\\\"\"",
    b"\"\xff\x00\n\"",
    b"bare",
    b"[1;2]",
    b"{x=1}",
    b"<x=1>5",
    b"<>#",
    b"\x01\x06xyz",
    b"\x01\x00",
    b"\x01\x01",
    b"\x01\x86\x00xyz",
    b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x",
    b"\x02\x00",
    b"\x02\x92\x02",
    b"\x02\x92\x80\x00",
    b"\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
    b"\x03\x00\x00\x00\x00\x00\x00\xf8\x7f",
    b"\x03;};};};}",
    b"\x03xxxxxxx;",
    b"\x04",
    b"\x05",
    b"\x06\x80\x01",
    b"\x06\x80\x81\x00",
    b"\x07",
];

/// What may stand between two tokens: nearly always nothing.
fn gap() -> impl Strategy<Value = &'static [u8]> {
    prop_oneof![20 => Just(b"".as_slice()), 1 => Just(b" \n".as_slice())]
}

/// One of these, the first few more often.
fn one_of(all: &'static [&'static [u8]], often: usize) -> impl Strategy<Value = &'static [u8]> {
    prop_oneof![4 => 0..often, 1 => 0..all.len()].prop_map(|at| all[at])
}

fn value() -> impl Strategy<Value = &'static [u8]> {
    const OFTEN: &[&[u8]] = &[b"12345", b"\"plain ; } text\"", b"\x02\x92\x02", b"\x01\x06xyz", b"1.5", b"#"];
    prop_oneof![6 => (0..OFTEN.len()).prop_map(|at| OFTEN[at]), 1 => (0..VALUES.len()).prop_map(|at| VALUES[at])]
}

/// A column in one spelling, with what is behind it.
fn column(which: usize) -> impl Strategy<Value = Vec<u8>> {
    (one_of(NAMES[which], 2), gap(), value(), gap())
        .prop_map(|(name, before, value, behind)| [name, before, b"=", value, behind, b";"].concat())
}

fn row() -> impl Strategy<Value = Vec<u8>> {
    let columns = prop_oneof![
        8 => Just(vec![0, 1]),
        2 => Just(vec![0]),
        1 => Just(vec![1, 0]),
        1 => Just(vec![0, 0]),
        1 => Just(vec![0, 1, 2]),
        1 => Just(vec![]),
    ];
    let columns = columns.prop_flat_map(|which| which.into_iter().map(column).collect::<Vec<_>>());
    let end: &[&[u8]] = &[b";", b";", b";\n", b" ; "];
    (columns, prop::bool::weighted(0.9), prop::sample::select(end)).prop_map(|(columns, last, end)| {
        let mut columns = columns.concat();
        if !last {
            columns.pop();
        }
        [b"{", columns.as_slice(), b"}", end].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_row_is_the_same_behind_others(rows in prop::collection::vec(row(), 1..12), piece in 1usize..200) {
        let alone: Vec<_> = rows.iter().map(|row| take("yson", row, 1000)).collect();
        let together = take("yson", &rows.concat(), piece);
        match alone.iter().position(Result::is_err) {
            None => {
                let alone: Vec<u8> = alone.into_iter().flatten().flatten().collect();
                prop_assert_eq!(together, Ok(alone));
            }
            Some(at) => {
                let said = together.expect_err("a row that is refused alone").message.to_lowercase();
                prop_assert!(said.contains(&format!("row {at} ")), "{}", said);
            }
        }
    }
}

/// Each value in each spelling, behind rows that were taken without the parser.
#[test]
fn what_is_different_is_seen() {
    let leads: [&[u8]; 2] = [b"{\"a\"=1;\"b\"=2;};", b"{\x01\x02a=\x02\x02;\x01\x02b=\x02\x04;};"];
    for lead in leads.map(|row| row.repeat(3)) {
        let before = take("yson", &lead, 1000).expect("rows");
        for (name, value) in NAMES[0].iter().flat_map(|name| VALUES.iter().map(move |value| (*name, *value)))
        {
            for behind in [b"".as_slice(), b";", b" ", b";;", b"x", b"_;"] {
                let row = [b"{", name, b"=", value, behind, b"};"].concat();
                let shown = row.escape_ascii();
                let together = take("yson", &[lead.as_slice(), &row].concat(), 1000);
                match take("yson", &row, 1000) {
                    Ok(alone) => assert_eq!(together, Ok([before.as_slice(), &alone].concat()), "{shown}"),
                    Err(_) => assert!(together.is_err(), "{shown}"),
                }
            }
        }
    }
}

/// As many rows come as are sent, whatever is between them and wherever they are cut.
#[test]
fn no_row_is_lost_between_others() {
    for row in [
        &b"{\"a\"=1;\"b\"=\"x\";};\n"[..],
        b"{\"a\"=1;\"b\"=\"x\"};",
        b"{\x01\x02a=\x02\x02;\x01\x02b=\x01\x02x;};",
    ] {
        for piece in [1, 5, 64, 100_000] {
            let rows = take("yson", &row.repeat(1000), piece).expect("rows");
            assert_eq!(rows, b"{\x01\x02a=\x02\x02;\x01\x02b=\x01\x02x;};".repeat(1000));
        }
    }
}
