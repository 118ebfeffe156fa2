//! Answers as JSON. Written by hand, straight into the line: values of a large tree, held as a JSON
//! tree first, would take many times the memory.

use super::case::Case;
use super::fields::{Cell, FIELDS, error_name};
use super::run::Timing;
use fairshare::Output;
use std::collections::BTreeSet;
use std::io::Write;
use vocab::RESOURCES;
use yson::{JsonFormat, Value};

/// Up to the first step.
pub(super) fn beginning(name: &str) -> Vec<u8> {
    let mut out = b"{\"name\":".to_vec();
    text(name, &mut out);
    out.extend_from_slice(b",\"steps\":[");
    out
}

/// From behind the last step.
pub(super) fn end(timing: Option<&Timing>, out: &mut Vec<u8>) {
    out.push(b']');
    if let Some(Timing { min, median, max }) = timing {
        put(out, format_args!(",\"update_ns\":{{\"min\":{min},\"median\":{median},\"max\":{max}}}"));
    }
    out.extend_from_slice(b"}\n");
}

/// One step.
pub(super) fn step(case: &Case, output: &Output, sparse: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"errors\":[");
    let errors: BTreeSet<&str> = output.problems.iter().map(error_name).collect();
    for (i, error) in errors.into_iter().enumerate() {
        comma(i, out);
        put(out, format_args!("\"{error}\""));
    }
    out.extend_from_slice(b"],\"elements\":{");
    for (index, (id, element)) in case.ids.iter().zip(&output.elements).enumerate() {
        comma(index, out);
        text(id, out);
        out.extend_from_slice(b":{");
        let mut printed = 0;
        for field in &FIELDS {
            let value = (field.value)(element, index == 0);
            if sparse && value.is_zero() {
                continue;
            }
            comma(printed, out);
            printed += 1;
            put(out, format_args!("\"{}\":", field.name));
            cell(&value, out);
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"}}");
}

fn cell(cell: &Cell, out: &mut Vec<u8>) {
    match cell {
        Cell::Share(share) => vector(|r| share[r], out),
        Cell::Resources(resources) => vector(|r| resources.get(r), out),
        Cell::Volume(volume) => vector(|r| volume.get(r), out),
        Cell::Number(x) => number(*x, out),
        Cell::Name(name) => put(out, format_args!("\"{name}\"")),
        Cell::Index(Some(index)) => put(out, format_args!("{index}")),
        Cell::Index(None) => out.extend_from_slice(b"null"),
    }
}

fn vector(component: impl Fn(vocab::Resource) -> f64, out: &mut Vec<u8>) {
    out.push(b'[');
    for (i, r) in RESOURCES.into_iter().enumerate() {
        comma(i, out);
        number(component(r), out);
    }
    out.push(b']');
}

/// The shortest digits that give the same double back; whole numbers without a point. What is not a
/// number has no JSON form and becomes null, which compares equal to nothing.
fn number(x: f64, out: &mut Vec<u8>) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if x == 0.0 {
        out.push(b'0');
    } else if x.fract() == 0.0 && x.abs() < EXACT {
        put(out, format_args!("{}", x as i64));
    } else if x.is_finite() {
        put(out, format_args!("{x:?}"));
    } else {
        out.extend_from_slice(b"null");
    }
}

fn text(text: &str, out: &mut Vec<u8>) {
    yson::json::write_json(&Value::from(text), &JsonFormat::utf8(), out);
}

fn comma(position: usize, out: &mut Vec<u8>) {
    if position > 0 {
        out.push(b',');
    }
}

fn put(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("a vector takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_exactly() {
        let check = |x: f64, expected: &str| {
            let mut out = Vec::new();
            number(x, &mut out);
            let got = String::from_utf8(out).expect("ASCII");
            assert_eq!(got, expected);
            assert_eq!(got.parse(), Ok(x));
        };
        check(0.0, "0");
        check(-0.0, "0");
        check(1.0, "1");
        check(-3.0, "-3");
        check(0.1 + 0.2, "0.30000000000000004");
        check(1.0 / 3.0, "0.3333333333333333");
        check(2.5e-9, "2.5e-9");
        check(1e300, "1e300");
        check(9_007_199_254_740_992.0, "9007199254740992.0");
        for x in [f64::NAN, f64::INFINITY] {
            let mut out = Vec::new();
            number(x, &mut out);
            assert_eq!(out, b"null");
        }
    }
}
