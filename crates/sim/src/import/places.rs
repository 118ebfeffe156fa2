//! Pools and names of operations: a template with columns in braces gives the path of one, `normal/u12`.
//!
//! Names of pools are unique in a tree: below the first part a pool bears the whole path, `normal-u12`.

use super::row::{COLUMNS, Row};
use crate::random::name_hash;

/// Whether a template can be filled in.
pub(super) fn check(template: &str) -> Result<(), String> {
    let empty = Row::default();
    let known = |name: &str| COLUMNS.contains(&name);
    fill(template, &empty, &known).map(|_| ())
}

/// The parts of the path. Templates were checked when they were read.
pub(super) fn path(template: &str, row: &Row) -> Vec<String> {
    let filled = fill(template, row, &|_| true).unwrap_or_default();
    filled.split('/').filter(|part| !part.is_empty()).map(clean).collect()
}

/// The name of an operation. Templates were checked when they were read.
pub(super) fn operation(template: &str, row: &Row) -> String {
    fill(template, row, &|_| true).unwrap_or_default()
}

/// The name of the pool at the end of a path.
pub(super) fn name(path: &[String]) -> String {
    path.join("-")
}

/// Letters that names of pools can have.
fn clean(part: &str) -> String {
    let good = |c: char| if c.is_ascii_alphanumeric() || "_-.:".contains(c) { c } else { '_' };
    part.chars().map(good).collect()
}

/// `{column}`, and `{column%n}`: a number below n that belongs to the value.
fn fill(template: &str, row: &Row, known: &dyn Fn(&str) -> bool) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (name, after) = after.split_once('}').ok_or("a \"{\" without a \"}\"")?;
        rest = after;
        let (name, modulus) = match name.split_once('%') {
            Some((name, number)) => {
                let number = number.parse::<u64>().ok().filter(|n| *n > 0);
                (
                    name,
                    Some(
                        number
                            .ok_or_else(|| format!("expected a number above 0 behind % in {{{name}%...}}"))?,
                    ),
                )
            }
            None => (name, None),
        };
        if !known(name) {
            return Err(format!("no column {name:?}, known are {COLUMNS:?}"));
        }
        let value = row.column(name).unwrap_or("unknown");
        match modulus {
            Some(n) => out.push_str(&(value.parse().unwrap_or_else(|_| name_hash(value)) % n).to_string()),
            None => out.push_str(value),
        }
    }
    out.push_str(rest);
    match out.contains('}') {
        true => Err("a \"}\" without a \"{\"".to_owned()),
        false => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates() {
        let row = Row {
            operation: "1750".into(),
            user: Some("12".into()),
            queue: Some("low prio".into()),
            ..Row::default()
        };
        let of = |template: &str| path(template, &row).join("/");
        assert_eq!(of("{queue}/u{user}"), "low_prio/u12");
        assert_eq!(of("p{op_id%8}/{group}"), "p6/unknown");
        assert_eq!(name(&path("{queue}/u{user}", &row)), "low_prio-u12");
        for (template, why) in [
            ("{que}", "no column \"que\""),
            ("{user", "a \"{\" without a \"}\""),
            ("user}", "a \"}\" without a \"{\""),
            ("{user%0}", "expected a number above 0"),
        ] {
            assert!(check(template).is_err_and(|found| found.starts_with(why)), "{template}");
        }
    }
}
