//! Pieces of JSON, written by hand straight into the line: values of a large answer, held as a JSON tree
//! first, would take many times the memory.

use std::io::Write;
use yson::{JsonFormat, Value};

/// The shortest digits that give the same double back; whole numbers without a point. What is not a
/// number has no JSON form and becomes null, which compares equal to nothing.
pub(crate) fn number(x: f64, out: &mut Vec<u8>) {
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

/// A string.
pub(crate) fn text(text: &str, out: &mut Vec<u8>) {
    yson::json::write_json(&Value::from(text), &JsonFormat::utf8(), out);
}

/// Between elements: before all but the first.
pub(crate) fn comma(position: usize, out: &mut Vec<u8>) {
    if position > 0 {
        out.push(b',');
    }
}

/// Formatted text.
pub(crate) fn put(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
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
