//! What an update of fair shares leaves for the next one.

use crate::snapshot::Outcome;
use fairshare::{Cycle, Input, InputError, IntegralState, Problem, Updater};
use std::fmt;

/// The updater of a tree. It only saves work: results do not depend on what it has seen before. So a copy
/// of the tree starts without it.
#[derive(Default)]
pub(crate) struct FairShares(Option<Updater>);

impl FairShares {
    /// Computes one update. If only operations differ from last time, what does not depend on them is kept.
    pub fn update(
        &mut self,
        input: &Input,
        states: &mut [IntegralState],
        cycle: Cycle,
    ) -> Result<(Vec<Outcome>, Vec<Problem>), InputError> {
        let mut updater = match self.0.take() {
            Some(mut updater) => {
                updater.assign(input);
                updater
            }
            None => Updater::new(input.clone())?,
        };
        let results = updater.update(states, cycle)?;
        let outcomes = (0..input.elements.len()).map(|e| Outcome::of(&results, e)).collect();
        let problems = results.problems().to_vec();
        // After an input that was refused the next update starts anew.
        self.0 = Some(updater);
        Ok((outcomes, problems))
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
