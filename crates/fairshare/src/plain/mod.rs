//! The plain form of the functions and of the distribution (fair-share.md 3, 4, 8).
//!
//! Written to be compared with the specification line by line: explicit piecewise linear functions of
//! every element, built bottom-up and sampled top-down, nothing kept from update to update. It is the
//! oracle that the shipped form ([`crate::fast`]) is tested against, and exists in tests only.

mod build;
mod distribute;
mod improved;
mod max_fit;
mod piecewise;

use vocab::Share;

use crate::burst::grant_burst_guarantees;
use crate::check::{InputError, check, check_states};
use crate::input::{Cycle, Input, IntegralState};
use crate::integral::Taking;
use crate::output::Output;
use crate::relaxed::grant_relaxed_guarantees;
use crate::state::{Rows, Scope, Update, Work};
use build::Functions;

/// As [`crate::update()`].
pub(crate) fn update(input: &Input, state: &mut [IntegralState], cycle: Cycle) -> Result<Output, InputError> {
    update_nudged(input, state, cycle, &mut |x| x)
}

/// What rounding makes of a number.
type Nudge<'a> = &'a mut dyn FnMut(f64) -> f64;

/// As if rounding had made something else of shares: of those that the functions and the integral guarantees
/// start from, of granted ones, and of what a pool compares the sum of its children with. Each number is
/// replaced by what is given for it.
pub(crate) fn update_nudged(
    input: &Input,
    state: &mut [IntegralState],
    cycle: Cycle,
    nudge: Nudge,
) -> Result<Output, InputError> {
    check(input)?;
    let mut work = Work::new(input);
    check_states(input, &work.tree.pools, state)?;
    work.read_states(state);
    Plain::compute(&mut work, input, cycle, nudge);
    if let Cycle::Periodic { .. } = cycle {
        work.write_states(state);
    }
    Ok(Output { elements: work.out.rows, problems: work.problems })
}

/// An update with all functions.
pub(crate) struct Plain<'a> {
    u: Update<'a>,
    /// By element; missing until they are built.
    functions: Vec<Functions>,
    nudge: Nudge<'a>,
}

impl<'a> Plain<'a> {
    /// All the steps, on an input that has been checked.
    fn compute(work: &'a mut Work, input: &'a Input, cycle: Cycle, nudge: Nudge<'a>) -> Plain<'a> {
        // Here functions are kept for all elements, and so are their attributes.
        work.out = Rows::of_all(input.elements.len());
        let functions = (0..input.elements.len()).map(|_| Functions::default()).collect();
        let mut plain = Plain { u: work.update(input), functions, nudge };
        plain.u.prepare(Scope::All, cycle, |_, _, _| {});
        for e in 0..input.elements.len() {
            if let Some(operation) = plain.u.operation_output(e) {
                plain.u.out[e] = operation.into();
            }
        }
        plain.nudge_shares();
        grant_burst_guarantees(&mut plain);
        grant_relaxed_guarantees(&mut plain, &mut Vec::new());
        for &p in plain.u.relaxed_pools {
            plain.drop_own_functions(p);
        }
        plain.nudge_granted_shares();
        plain.u.forget_shares_without_guarantee();
        plain.build_tree();
        plain.distribute();
        plain.distribute_promised();
        plain.publish_functions();
        for e in plain.u.integral_pools() {
            plain.u.out[e].integral = plain.u.integral_output(e);
        }
        plain
    }

    fn nudged(&mut self, share: Share) -> Share {
        Share(share.0.map(&mut self.nudge))
    }

    /// What the steps before have made sure of, that usage lies within demand and guarantees within limits,
    /// stays so.
    fn nudge_shares(&mut self) {
        for e in 0..self.u.input.elements.len() {
            let out = &self.u.out[e];
            let (usage, demand) = (out.usage_share, out.demand_share);
            let (limits, strong) = (out.limits_share, out.strong_guarantee_share);
            let (usage, demand) = (self.nudged(usage), self.nudged(demand));
            let (limits, strong) = (self.nudged(limits), self.nudged(strong));
            let burst_ratio = (self.nudge)(self.u.out[e].burst_ratio);
            let out = &mut self.u.out[e];
            (out.usage_share, out.demand_share) = (usage, demand.max(usage));
            (out.limits_share, out.strong_guarantee_share) = (limits, strong.min(limits));
            out.burst_ratio = burst_ratio;
        }
    }

    /// A granted share is the difference of what is taken and of the strong guarantee, so that the sum of both
    /// is where a function bends, or an ulp beside it.
    fn nudge_granted_shares(&mut self) {
        for e in 0..self.u.input.elements.len() {
            let proposed = self.nudged(self.u.out[e].proposed_integral_share);
            let fitted = if e == 0 { proposed } else { self.u.fit_under_limits(e, proposed) };
            self.u.out[e].proposed_integral_share = fitted;
        }
    }
}

impl<'a> Taking<'a> for Plain<'a> {
    fn update(&mut self) -> &mut Update<'a> {
        &mut self.u
    }

    fn within(&mut self, pool: usize, guarantee: Share) -> Share {
        self.build_below(pool);
        self.build_by_fit(pool);
        self.within_guarantee(pool, guarantee)
    }

    fn under(&mut self, pool: usize, limits: Share, suggestion: f64) -> Share {
        let own = std::mem::replace(&mut self.u.out[pool].limits_share, limits);
        self.build_below(pool);
        self.build(pool);
        self.u.out[pool].limits_share = own;
        self.by_suggestion(pool, suggestion)
    }
}
