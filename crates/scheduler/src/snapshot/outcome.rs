//! What an update of fair shares found for an element, in little room: a tree has many more operations than
//! pools, and an operation has no guarantees.

use super::spare::Boxes;
use fairshare::{ElementOutput, FairShare, IntegralOutput, OperationOutput, Results};
use std::borrow::Cow;
use vocab::{Resources, Share};

/// Result of an element.
#[expect(clippy::large_enum_variant, reason = "nearly all are operations, and a box for each is room too")]
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// Of a pool.
    Pool(Box<ElementOutput>),
    /// Of an operation.
    Operation(OperationOutput),
}

impl Outcome {
    /// Of one element of an update.
    pub fn of(results: &Results<'_>, e: usize, spare: &mut Boxes<ElementOutput>) -> Outcome {
        match results.operation(e) {
            Some(operation) => Outcome::Operation(operation),
            None => Outcome::Pool(spare.put(results.element(e))),
        }
    }

    /// All attributes. For a reader who wants one number of many elements the methods below cost less.
    pub fn all(&self) -> Cow<'_, ElementOutput> {
        match self {
            Outcome::Pool(out) => Cow::Borrowed(out),
            Outcome::Operation(out) => Cow::Owned((*out).into()),
        }
    }

    /// Volume and what it gives, of a pool.
    pub fn integral(&self) -> Option<&IntegralOutput> {
        match self {
            Outcome::Pool(out) => out.integral.as_ref(),
            Outcome::Operation(_) => None,
        }
    }

    /// The fair share and its parts.
    pub fn detailed_fair_share(&self) -> FairShare {
        match self {
            Outcome::Pool(out) => out.fair_share,
            Outcome::Operation(out) => FairShare::of_operation(out.fair_share),
        }
    }

    /// The fair share.
    pub fn fair_share(&self) -> Share {
        match self {
            Outcome::Pool(out) => out.fair_share.total,
            Outcome::Operation(out) => out.fair_share,
        }
    }

    /// What guarantees alone give.
    pub fn promised_guarantee(&self) -> Share {
        match self {
            Outcome::Pool(out) => out.promised_guarantee_fair_share.total,
            Outcome::Operation(out) => out.promised_guarantee_fair_share,
        }
    }

    /// Usage over total.
    pub fn usage_share(&self) -> Share {
        match self {
            Outcome::Pool(out) => out.usage_share,
            Outcome::Operation(out) => out.usage_share,
        }
    }

    /// Demand over total.
    pub fn demand_share(&self) -> Share {
        match self {
            Outcome::Pool(out) => out.demand_share,
            Outcome::Operation(out) => out.demand_share,
        }
    }

    /// Amount in use.
    pub fn resource_usage(&self) -> Resources {
        match self {
            Outcome::Pool(out) => out.resource_usage,
            Outcome::Operation(out) => out.resource_usage,
        }
    }

    /// Amount wanted.
    pub fn resource_demand(&self) -> Resources {
        match self {
            Outcome::Pool(out) => out.resource_demand,
            Outcome::Operation(out) => out.resource_demand,
        }
    }

    /// Effective weight.
    pub fn weight(&self) -> f64 {
        match self {
            Outcome::Pool(out) => out.weight,
            Outcome::Operation(out) => out.weight,
        }
    }

    /// Position in a FIFO parent.
    pub fn fifo_index(&self) -> Option<u32> {
        match self {
            Outcome::Pool(_) => None,
            Outcome::Operation(out) => out.fifo_index,
        }
    }
}
