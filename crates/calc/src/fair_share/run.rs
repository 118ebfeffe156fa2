//! The steps of a case, computed; and how long that takes.

use super::case::Case;
use crate::Refusal;
use fairshare::{Cycle, Input, IntegralState, Kind, Output};
use std::num::NonZeroU32;

/// A case on its way through its steps: [`Replay::enter`] one, then [`Replay::update`].
#[derive(Debug)]
pub struct Replay<'a> {
    case: &'a Case,
    input: Input,
    state: Vec<IntegralState>,
    entered: usize,
}

impl<'a> Replay<'a> {
    /// Before the first step.
    pub fn new(case: &'a Case) -> Replay<'a> {
        Replay { case, input: case.input.clone(), state: case.state.clone(), entered: 0 }
    }

    /// Makes the changes of the next step, if there is one.
    pub fn enter(&mut self) -> Option<Cycle> {
        let step = self.case.steps.get(self.entered)?;
        self.entered += 1;
        if let Some(total) = step.total {
            self.input.total = total;
        }
        for change in &step.changes {
            if let Kind::Operation(operation) = &mut self.input.elements[change.element].kind {
                operation.demand = change.demand;
                operation.usage = change.usage;
            }
        }
        Some(Cycle::Periodic { since_previous: step.since_previous })
    }

    /// The update of the step that was entered.
    ///
    /// What it would refuse was refused when the case was read; the error is for the day when a check is
    /// missing there.
    pub fn update(&mut self, cycle: Cycle) -> Result<Output, Refusal> {
        fairshare::update(&self.input, &mut self.state, cycle).map_err(|error| Refusal {
            pointer: format!("/steps/{}", self.entered.saturating_sub(1)),
            message: format!("the update refuses the tree: {error}"),
        })
    }
}

/// How long the updates of a case take, all steps together, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Of the shortest run.
    pub min: u64,
    /// Of the run in the middle, the lower of two.
    pub median: u64,
    /// Of the longest run.
    pub max: u64,
}

impl Timing {
    /// Runs the case so many times, each time from its beginning. Only the updates are measured, not
    /// what is made ready before them or taken away after.
    pub fn measure(
        case: &Case,
        times: NonZeroU32,
        clock: &mut dyn FnMut() -> u64,
    ) -> Result<Timing, Refusal> {
        let mut runs = Vec::new();
        for _ in 0..times.get() {
            let mut replay = Replay::new(case);
            let mut total = 0u64;
            while let Some(cycle) = replay.enter() {
                let begin = clock();
                let output = replay.update(cycle)?;
                total = total.saturating_add(clock().saturating_sub(begin));
                drop(output);
            }
            runs.push(total);
        }
        runs.sort_unstable();
        Ok(Timing { min: runs[0], median: runs[(runs.len() - 1) / 2], max: runs[runs.len() - 1] })
    }
}
