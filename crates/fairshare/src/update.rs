//! The steps of one update, in their order (fair-share.md 6).

use crate::check::InputError;
use crate::cumulative::OperationShares;
use crate::input::{Cycle, Input, IntegralState};
use crate::output::Output;
use crate::state::{Scope, Update};
use crate::updater::Updater;

/// Computes one update of a tree and moves the integral state on (fair-share.md 6).
///
/// Nothing is changed if the input is refused. Who updates the same tree again and again keeps an
/// [`Updater`], which does not start from nothing each time.
pub fn update(input: &Input, state: &mut [IntegralState], cycle: Cycle) -> Result<Output, InputError> {
    let mut updater = Updater::new(input.clone())?;
    Ok(updater.update(state, cycle)?.to_output())
}

impl Update<'_> {
    /// What depends on the configuration and on the total alone.
    fn prepare_guarantees(&mut self) {
        self.problems.clear();
        self.infer_strong_guarantees();
        self.compute_guarantee_shares();
        self.compute_limits_of_pools();
        self.adjust_guarantees();
        self.compute_weights_and_estimates();
        self.report_nested_promises();
    }

    /// What has to be known before anything is given.
    pub(crate) fn prepare(
        &mut self,
        scope: Scope,
        cycle: Cycle,
        show: impl FnMut(&mut Self, usize, &OperationShares),
    ) {
        self.compute_usage_and_demand(scope, show);
        if let Scope::All = scope {
            self.prepare_guarantees();
        }
        self.sort_fifo_pools(scope);
        self.reorder_fifo_pools(scope);
        self.forget_free_volumes();
        if let Cycle::Periodic { since_previous } = cycle {
            self.update_volumes(since_previous);
        }
        for &e in self.raised {
            self.out[e].proposed_integral_share = vocab::Share::ZERO;
        }
    }
}
