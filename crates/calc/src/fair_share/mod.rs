//! `fair-share`: pool trees and sequences of updates through the shipped fair-share update.
//!
//! A line is a [`Case`]: a tree with its settings and the steps to be computed one after another, in
//! the format of the conformance corpus of the fair-share specification. [`answer`] gives the line with
//! the results: for each step the errors, and by element every field of [`FIELDS`].
//!
//! The update runs with `compat_strict` (fair-share.md 18): the numbers are those of the reference, its
//! quirks included, because the cases are there to be compared with it.
//!
//! What is refused is what fair-share.md 11.1 refuses in one pool and between a pool and its children,
//! and what no update can be made of (18, last lines). The two rules about sums (what the children are
//! guaranteed must be configured at the parent, and fit into it) are *not* applied: they concern the
//! configuration of a cluster, an update is defined without them, and cases of the corpus break them.
//!
//! Modules in reading order: `case` and `element` read, `rules` refuses, `run` computes, `fields` says
//! what is printed, `print` prints it.

mod case;
mod element;
mod fields;
mod print;
mod rules;
mod run;

pub use case::{Case, Change, Step};
pub use fields::{Cell, FIELDS, Field, error_name};
pub use run::{Replay, Timing};

use crate::Refusal;
use std::num::NonZeroU32;

/// How lines are answered.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Settings {
    /// Compute every line so many times and say how long the updates took.
    pub repeat: Option<NonZeroU32>,
    /// Leave out what is zero or none, as the corpus does.
    pub sparse: bool,
}

/// Answers one line. The answer is one line too, with its line feed.
///
/// `clock` gives nanoseconds from any beginning; it is looked at only if [`Settings::repeat`] is given.
pub fn answer(line: &[u8], settings: &Settings, clock: &mut dyn FnMut() -> u64) -> Result<Vec<u8>, Refusal> {
    let case = Case::parse(line)?;
    let mut out = print::beginning(&case.name);
    let mut replay = Replay::new(&case);
    let mut first = true;
    while let Some(cycle) = replay.enter() {
        let output = replay.update(cycle)?;
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        print::step(&case, &output, settings.sparse, &mut out);
    }
    let timing = settings.repeat.map(|times| Timing::measure(&case, times, clock)).transpose()?;
    print::end(timing.as_ref(), &mut out);
    Ok(out)
}
