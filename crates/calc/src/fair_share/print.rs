//! Answers as JSON.

use super::case::Case;
use super::fields::{Cell, FIELDS, error_name};
use super::run::Timing;
use crate::write::{comma, number, put, text};
use fairshare::Output;
use std::collections::BTreeSet;
use vocab::RESOURCES;

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
