//! What the last update of a tree found.
//!
//! Pools have their attributes at hand. An operation is one of many thousand, and most of what it shows
//! follows from its own amounts, from a few numbers of its parent, and from nothing else: keeping all that
//! for each of them would cost more than computing it for those that somebody looks at.

use crate::Input;
use crate::cumulative::dominant_resource;
use crate::fast::Engine;
use crate::output::{ElementOutput, FairShare, OperationOutput, Output, Problem};
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
            None => self.engine.given(&self.update, e).0,
            Some(_) => FairShare::of_operation(self.engine.fair_share(&self.update, e)),
        }
    }

    /// All attributes of an element.
    pub fn element(&self, e: usize) -> ElementOutput {
        match self.operation(e) {
            None => {
                let (fair_share, function_size) = self.engine.given(&self.update, e);
                let integral = self.update.integral_output(e);
                ElementOutput { fair_share, function_size, integral, ..self.update.out[e].clone() }
            }
            Some(operation) => operation.into(),
        }
    }

    /// Attributes of an operation, computed now, in constant time; `None` for a pool.
    pub fn operation(&self, e: usize) -> Option<OperationOutput> {
        let own = self.update.operation_output(e)?;
        Some(OperationOutput {
            fair_share: self.engine.fair_share(&self.update, e),
            limited_demand_share: self.engine.limited_demand_share(&self.update, e),
            promised_guarantee_fair_share: self.engine.promised_share(&self.update, e),
            ..own
        })
    }

    /// Everything, in one piece.
    pub fn to_output(&self) -> Output {
        let elements = (0..self.update.input.elements.len()).map(|e| self.element(e)).collect();
        Output { elements, problems: self.update.problems.clone() }
    }
}

impl Update<'_> {
    /// What an operation shows, except what functions tell.
    pub(crate) fn operation_output(&self, e: usize) -> Option<OperationOutput> {
        let (operation, slot) = (self.operation(e)?, self.tree.slot_of(e)?);
        let shares = self.operation_shares(e, operation);
        let used = !operation.usage.is_zero();
        let weight = self.weights[slot];
        let estimates = self.estimates_of_operation(self.parent(e), weight);
        let place = |place: u32| (place != NO_PLACE).then_some(place);
        let [fifo_index, effective_fifo_index] = self.places[slot].map(place);
        Some(OperationOutput {
            dominant_resource: dominant_resource(if used { &shares.usage } else { &shares.demand }),
            resource_usage: operation.usage,
            resource_demand: operation.demand,
            usage_share: shares.usage,
            demand_share: shares.demand,
            limits_share: shares.limits,
            weight,
            promised_fair_share: estimates[0],
            estimated_guarantee_share: estimates[1],
            estimated_guarantee_share_with_flow: estimates[2],
            fifo_index,
            effective_fifo_index,
            ..OperationOutput::default()
        })
    }
}
