//! The steps of one update, in their order.

use crate::check::{InputError, check};
use crate::input::{Cycle, Input, IntegralState};
use crate::output::Output;
use crate::state::Update;

/// Computes one update of a tree and moves the integral state on (fair-share.md 6).
///
/// Nothing is changed if the input is refused.
pub fn update(input: &Input, state: &mut [IntegralState], cycle: Cycle) -> Result<Output, InputError> {
    check(input, state)?;
    let done = compute(input, state, cycle);
    if let Cycle::Periodic { .. } = cycle {
        state.copy_from_slice(&done.state);
    }
    Ok(Output { elements: done.out, problems: done.problems })
}

/// All the steps, on an input that has been checked.
pub(crate) fn compute<'a>(input: &'a Input, state: &[IntegralState], cycle: Cycle) -> Update<'a> {
    let mut update = Update::new(input, state);
    update.infer_strong_guarantees();
    update.compute_cumulative_attributes();
    update.sort_fifo_pools();
    if let Cycle::Periodic { since_previous } = cycle {
        update.update_volumes(since_previous);
    }
    update.adjust_guarantees();
    update.reorder_fifo_pools();
    update.compute_weights();
    update.estimate_guarantees();
    update.grant_burst_guarantees();
    update.grant_relaxed_guarantees();
    update.forget_shares_without_guarantee();
    update.build_tree();
    update.distribute();
    update.distribute_promised();
    update.publish_functions();
    update.publish_integral_attributes();
    update
}
