//! What an update of fair shares leaves for the next one.

use fairshare::{Cycle, Input, InputError, IntegralState, Results, Updater};
use std::fmt;

/// The updater of a tree. It only saves work: results do not depend on what it has seen before. So a copy
/// of the tree starts without it.
#[derive(Default)]
pub(crate) struct FairShares(Option<Updater>);

impl FairShares {
    /// Computes one update and gives its results to somebody. If only operations differ from last time, what
    /// does not depend on them is kept.
    pub fn update<T>(
        &mut self,
        input: &Input,
        states: &mut [IntegralState],
        cycle: Cycle,
        take: impl FnOnce(&Results<'_>) -> T,
    ) -> Result<T, InputError> {
        let mut updater = match self.0.take() {
            Some(mut updater) => {
                updater.assign(input);
                updater
            }
            None => Updater::new(input.clone())?,
        };
        let taken = take(&updater.update(states, cycle)?);
        // After an input that was refused the next update starts anew.
        self.0 = Some(updater);
        Ok(taken)
    }
}

impl Clone for FairShares {
    fn clone(&self) -> FairShares {
        FairShares::default()
    }
}

impl fmt::Debug for FairShares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FairShares")
    }
}
