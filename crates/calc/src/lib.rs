//! Calculators: the code that is shipped, run by hand on cases that are written down.
//!
//! ```text
//! a line (JSON)  -->  Case  -->  the crate that decides  -->  a line (JSON)
//!                       \-->  Refusal: which field, what it is, what is allowed
//! ```
//!
//! There is one calculator so far, [`fair_share`]: a pool tree and a sequence of updates in, the
//! attributes of every element out. Others will stand beside it, one module each.
//!
//! What this crate is: readers of cases, writers of answers, and nothing in between but a call of the
//! crate whose answer is asked for. What it is not: it has no rule of its own about shares, reads no
//! file and no clock (one that measures is passed in), and keeps nothing from line to line.
//!
//! Where to start: [`fair_share::answer`]. Below it, `read` turns JSON values into amounts and numbers
//! and says where in the line a bad one stands.
#![forbid(unsafe_code)]

mod read;
mod refusal;

pub mod fair_share;

pub use refusal::Refusal;
