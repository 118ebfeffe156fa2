//! Inputs that are refused before anything is computed (fair-share.md 18, last lines).

use vocab::{RESOURCES, Resource};

use crate::input::{Element, GuaranteeType, Input, IntegralState, Kind, Mode, Operation};

/// 2^-26
const MIN_WEIGHT: f64 = 1.0 / MAX_WEIGHT;
/// 2^26
const MAX_WEIGHT: f64 = 67_108_864.0;

/// Why an input is refused. Elements are named by their index.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum InputError {
    /// The first element must exist, be a pool, divide by weight and have no integral guarantee.
    #[error("element 0 must be the root: a fair_share pool without integral guarantees")]
    NoRoot,
    /// Parents come before children.
    #[error("parent {parent} of element {element} must come before it in the list")]
    ParentAfterChild {
        /// The child.
        element: usize,
        /// Its parent.
        parent: usize,
    },
    /// Operations are leaves.
    #[error("parent {parent} of element {element} must be a pool, it is an operation")]
    ParentIsOperation {
        /// The child.
        element: usize,
        /// Its parent.
        parent: usize,
    },
    /// A FIFO pool has only operations below.
    #[error("pool {element} cannot be a child of pool {parent}, which is in FIFO mode")]
    PoolInFifoPool {
        /// The inner pool.
        element: usize,
        /// The FIFO pool.
        parent: usize,
    },
    /// Integral pools do not nest.
    #[error("integral pool {element} cannot be inside of integral pool {ancestor}")]
    NestedIntegralPools {
        /// The inner pool.
        element: usize,
        /// The outer pool.
        ancestor: usize,
    },
    /// Usage is part of demand.
    #[error("{resource} usage {usage} of operation {element} exceeds its demand {demand}")]
    UsageAboveDemand {
        /// The operation.
        element: usize,
        /// The first resource for which it is so.
        resource: Resource,
        /// In the integer unit of the resource.
        usage: i64,
        /// In the integer unit of the resource.
        demand: i64,
    },
    /// Amounts, limits and guarantees are not negative.
    #[error("{what} of element {element} must not be negative")]
    Negative {
        /// The element; 0 for the total.
        element: usize,
        /// Which amount.
        what: &'static str,
    },
    /// A number is NaN, infinite or out of its range.
    #[error("{what} of element {element} must be {allowed}, it is {value}")]
    BadNumber {
        /// The element; 0 for tree options.
        element: usize,
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        allowed: &'static str,
    },
    /// One integral state for each element.
    #[error("{states} integral states for {elements} elements, the numbers must be equal")]
    StateCount {
        /// Length of the slice.
        states: usize,
        /// Number of elements.
        elements: usize,
    },
}

/// Refuses what the computation could not make sense of.
pub(crate) fn check(input: &Input) -> Result<(), InputError> {
    let elements = &input.elements;
    match elements.first().map(|e| &e.kind) {
        Some(Kind::Pool(root))
            if root.mode == Mode::FairShare
                && root.integral_guarantees.guarantee_type == GuaranteeType::None => {}
        _ => return Err(InputError::NoRoot),
    }
    check_options(input)?;
    // Index of the nearest integral pool at or above each element.
    let mut integral_above: Vec<Option<usize>> = vec![None; elements.len()];
    for (index, element) in elements.iter().enumerate() {
        if index > 0 {
            integral_above[index] = integral_above[placed(elements, index)?];
        }
        numbers(index, element)?;
        match &element.kind {
            Kind::Pool(pool) => {
                if pool.integral_guarantees.guarantee_type != GuaranteeType::None {
                    if let Some(ancestor) = integral_above[index] {
                        return Err(InputError::NestedIntegralPools { element: index, ancestor });
                    }
                    integral_above[index] = Some(index);
                }
            }
            Kind::Operation(operation) => demand(index, operation)?,
        }
    }
    Ok(())
}

/// One operation of an input that is fine otherwise.
pub(crate) fn check_operation(input: &Input, index: usize) -> Result<(), InputError> {
    let element = &input.elements[index];
    numbers(index, element)?;
    match &element.kind {
        Kind::Pool(_) => Ok(()),
        Kind::Operation(operation) => demand(index, operation),
    }
}

/// The state of pools; that of operations is not looked at.
pub(crate) fn check_states(
    input: &Input,
    pools: &[usize],
    state: &[IntegralState],
) -> Result<(), InputError> {
    if state.len() != input.elements.len() {
        return Err(InputError::StateCount { states: state.len(), elements: input.elements.len() });
    }
    for &element in pools {
        let s = &state[element];
        number(element, "last share", s.last_share, "finite and not negative", |x| x >= 0.0)?;
        for r in RESOURCES {
            let x = s.accumulated_volume.get(r);
            number(element, "accumulated volume", x, "finite and not negative", |x| x >= 0.0)?;
        }
    }
    Ok(())
}

/// The parent of an element, if that is where a parent may be.
fn placed(elements: &[Element], element: usize) -> Result<usize, InputError> {
    let parent = elements[element].parent;
    if parent >= element {
        return Err(InputError::ParentAfterChild { element, parent });
    }
    match &elements[parent].kind {
        Kind::Operation(_) => Err(InputError::ParentIsOperation { element, parent }),
        Kind::Pool(pool) if pool.mode == Mode::Fifo && matches!(elements[element].kind, Kind::Pool(_)) => {
            Err(InputError::PoolInFifoPool { element, parent })
        }
        Kind::Pool(_) => Ok(parent),
    }
}

fn number(
    element: usize,
    what: &'static str,
    value: f64,
    allowed: &'static str,
    in_range: impl Fn(f64) -> bool,
) -> Result<(), InputError> {
    if value.is_finite() && in_range(value) {
        Ok(())
    } else {
        Err(InputError::BadNumber { element, what, value, allowed })
    }
}

/// What does not belong to an element.
pub(crate) fn check_options(input: &Input) -> Result<(), InputError> {
    let options = &input.options;
    let positive = "finite and positive";
    number(0, "smooth period", options.smooth_period.as_secs_f64(), positive, |x| x > 0.0)?;
    let limit = options.relaxed_share_multiplier_limit;
    number(0, "relaxed share multiplier limit", limit, positive, |x| x > 0.0)?;
    if let Some(k) = options.infer_weight_from_guarantees_share_multiplier {
        number(0, "infer weight from guarantees share multiplier", k, "at least 1", |x| x >= 1.0)?;
    }
    if RESOURCES.into_iter().any(|r| input.total.raw(r) < 0) {
        return Err(InputError::Negative { element: 0, what: "total" });
    }
    Ok(())
}

fn numbers(element: usize, e: &Element) -> Result<(), InputError> {
    let not_negative = |what, amount: &dyn Fn(Resource) -> i64| {
        if RESOURCES.into_iter().any(|r| amount(r) < 0) {
            Err(InputError::Negative { element, what })
        } else {
            Ok(())
        }
    };
    if let Some(weight) = e.weight {
        // 5.3: beyond these bounds ratios of weights would leave the range of floats' precision.
        let allowed = "between 2^-26 and 2^26";
        number(element, "weight", weight, allowed, |x| (MIN_WEIGHT..=MAX_WEIGHT).contains(&x))?;
    }
    if let Some(usage) = e.historic_usage {
        number(element, "historic usage", usage, "finite and not negative", |x| x >= 0.0)?;
    }
    not_negative("resource limits", &|r| e.resource_limits.raw(r))?;
    match &e.kind {
        Kind::Pool(pool) => {
            let integral = &pool.integral_guarantees;
            not_negative("strong guarantee", &|r| pool.strong_guarantee_resources.raw(r).unwrap_or(0))?;
            not_negative("resource flow", &|r| integral.resource_flow.raw(r))?;
            not_negative("burst guarantee", &|r| integral.burst_guarantee_resources.raw(r))?;
            if let Some(k) = integral.relaxed_share_multiplier_limit {
                number(element, "relaxed share multiplier limit", k, "finite and positive", |x| x > 0.0)?;
            }
            Ok(())
        }
        Kind::Operation(operation) => {
            not_negative("usage", &|r| operation.usage.raw(r))?;
            for r in RESOURCES {
                let x = operation.best_allocation_share[r];
                number(element, "best allocation share", x, "finite and not negative", |x| x >= 0.0)?;
            }
            Ok(())
        }
    }
}

fn demand(element: usize, operation: &Operation) -> Result<(), InputError> {
    match RESOURCES.into_iter().find(|r| operation.usage.raw(*r) > operation.demand.raw(*r)) {
        None => Ok(()),
        Some(resource) => Err(InputError::UsageAboveDemand {
            element,
            resource,
            usage: operation.usage.raw(resource),
            demand: operation.demand.raw(resource),
        }),
    }
}
