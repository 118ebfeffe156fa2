//! What the last update of a tree found.
//!
//! Pools have their attributes at hand. An operation is one of many thousand, and most of what it shows
//! follows from its own amounts, from a few numbers of its parent, and from nothing else: keeping all that
//! for each of them would cost more than computing it for those that somebody looks at.

use vocab::Share;

use crate::Input;
use crate::cumulative::dominant_resource;
use crate::fast::Engine;
use crate::output::{ElementOutput, FairShare, Output, Problem};
use crate::state::Update;
use crate::tree::NO_PLACE;

/// Results of an update, until the tree changes again. Elements are named by their index in the input.
pub struct Results<'a> {
    update: Update<'a>,
    engine: &'a Engine,
}

impl<'a> Results<'a> {
    pub(crate) fn new(update: Update<'a>, engine: &'a Engine) -> Results<'a> {
        Results { update, engine }
    }

    /// What the update was computed from.
    pub fn input(&self) -> &'a Input {
        self.update.input
    }

    /// What operators should hear of; the numbers are valid nevertheless.
    pub fn problems(&self) -> &[Problem] {
        self.update.problems
    }

    /// The fair share of an element.
    pub fn fair_share(&self, e: usize) -> FairShare {
        match self.update.operation(e) {
            None => self.update.out[e].fair_share,
            Some(_) => FairShare::of_operation(self.engine.fair_share(&self.update, e)),
        }
    }

    /// All attributes of an element. Of an operation they are computed now, in constant time.
    pub fn element(&self, e: usize) -> ElementOutput {
        if self.update.operation(e).is_none() {
            return self.update.out[e].clone();
        }
        let mut out = self.update.operation_output(e);
        out.limited_demand_share = self.engine.limited_demand_share(&self.update, e);
        out.fair_share = self.fair_share(e);
        let promised = self.engine.promised_share(&self.update, e);
        out.promised_guarantee_fair_share = FairShare::of_operation(promised);
        out
    }

    /// Everything, in one piece.
    pub fn to_output(&self) -> Output {
        let elements = (0..self.update.input.elements.len()).map(|e| self.element(e)).collect();
        Output { elements, problems: self.update.problems.clone() }
    }
}

impl FairShare {
    /// Operations have no guarantees.
    pub(crate) fn of_operation(total: Share) -> FairShare {
        FairShare { total, weight_proportional: total, ..FairShare::default() }
    }
}

impl Update<'_> {
    /// What an operation shows, except what functions tell.
    pub(crate) fn operation_output(&self, e: usize) -> ElementOutput {
        let mut out = ElementOutput::default();
        let (Some(operation), Some(slot)) = (self.operation(e), self.tree.slot_of(e)) else { return out };
        let shares = self.operation_shares(e, operation);
        let used = !operation.usage.is_zero();
        out.dominant_resource = dominant_resource(if used { &shares.usage } else { &shares.demand });
        out.resource_usage = operation.usage;
        out.resource_demand = operation.demand;
        (out.usage_share, out.demand_share, out.limits_share) = (shares.usage, shares.demand, shares.limits);
        out.weight = self.weights[slot];
        let place = |place: u32| (place != NO_PLACE).then_some(place as usize);
        [out.fifo_index, out.effective_fifo_index] = self.places[slot].map(place);
        self.estimate_operation(self.parent(e), &mut out);
        out
    }
}
