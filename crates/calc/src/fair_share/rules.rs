//! What is refused (fair-share.md 11.1 and the last lines of 18).
//!
//! Numbers out of range are refused where they are read; here are the rules about several fields of a
//! pool, or about an element and its parent.

use super::element::Before;
use crate::Refusal;
use crate::read::{Node, Object, shown};
use fairshare::{Configured, GuaranteeType, Kind, Mode, Pool};
use vocab::{RESOURCES, Resource};
use yson::Value;

/// 2^26: beyond it, ratios of weights would leave the precision of floats (fair-share.md 5.3).
const MAX_WEIGHT: f64 = 67_108_864.0;

pub(super) fn weight(node: Node<'_>) -> Result<f64, Refusal> {
    node.number(1.0 / MAX_WEIGHT..=MAX_WEIGHT, "a number from 2^-26 to 2^26")
}

/// The id of an element: text that no element before it has.
pub(super) fn new_id<'a>(
    o: &Object<'_>,
    element: &'a Value,
    before: &Before<'_>,
) -> Result<&'a str, Refusal> {
    let node = o.required("id", "a string")?;
    node.text()?;
    // Taken from the value itself: the node lives shorter than the line.
    let id = element.get("id").and_then(Value::as_str).unwrap_or_default();
    match before.index.get(id) {
        None if id.is_empty() => Err(node.expected("a string that is not empty")),
        None => Ok(id),
        Some(0) => Err(node.expected("another id than that of the root")),
        Some(taken) => {
            Err(node.refuse(format!("expected another id, \"{id}\" is that of /elements/{}", taken - 1)))
        }
    }
}

/// The number of the parent, which is a pool that stands before the element. That also excludes cycles.
pub(super) fn parent(o: &Object<'_>, before: &Before<'_>) -> Result<usize, Refusal> {
    const ALLOWED: &str = "\"<root>\" or the id of a pool that stands before its children";
    let node = o.required("parent", ALLOWED)?;
    let id = node.text()?;
    let Some(parent) = before.index.get(id).copied() else {
        let later = before.all.iter().position(|n| n.value.get("id").and_then(Value::as_str) == Some(id));
        let mut refusal = node.expected(ALLOWED);
        refusal.message.push_str(&match later {
            Some(at) => format!(", which is /elements/{at}"),
            None => ", which is not in the list".to_owned(),
        });
        return Err(refusal);
    };
    match before.input.elements[parent].kind {
        Kind::Pool(_) => Ok(parent),
        Kind::Operation(_) => {
            let mut refusal = node.expected(ALLOWED);
            refusal.message.push_str(", which is an operation");
            Err(refusal)
        }
    }
}

/// The root divides by weight and has no integral guarantee (fair-share.md 1).
pub(super) fn root(o: &Object<'_>, pool: &Pool) -> Result<(), Refusal> {
    if pool.mode != Mode::FairShare {
        return Err(o.at("mode").expected("\"fair_share\", as the root always has it"));
    }
    if is_integral(pool) {
        let integral = o.at("integral_guarantees");
        return Err(integral
            .any_object()?
            .at("guarantee_type")
            .expected("\"none\", as the root always has it"));
    }
    Ok(())
}

/// Rules about one pool.
pub(super) fn pool(o: &Object<'_>, pool: &Pool, main: Resource) -> Result<(), Refusal> {
    let strong = &pool.strong_guarantee_resources;
    if *strong != Configured::NONE && strong.raw(main).is_none() {
        let found = names(strong);
        return Err(o.at("strong_guarantee_resources").refuse(format!(
            "expected a guarantee of {main}, the main resource, where any other is given, found {found}"
        )));
    }
    Ok(())
}

/// A relaxed pool has no burst, not even of 0.
pub(super) fn burst_of_relaxed(
    o: &Object<'_>,
    guarantee_type: GuaranteeType,
    burst: &Configured,
) -> Result<(), Refusal> {
    if guarantee_type == GuaranteeType::Relaxed && *burst != Configured::NONE {
        return Err(o.at("burst_guarantee_resources").refuse(format!(
            "burst guarantees cannot be specified for integral guarantee type \"relaxed\", found {}",
            names(burst)
        )));
    }
    Ok(())
}

/// Rules about a pool and what is above it. `place` is where it names its parent.
pub(super) fn below(
    o: &Object<'_>,
    place: &Node<'_>,
    pool: &Pool,
    parent: usize,
    before: &Before<'_>,
) -> Result<(), Refusal> {
    let Kind::Pool(above) = &before.input.elements[parent].kind else { return Ok(()) };
    if above.mode == Mode::Fifo {
        let found = shown(place.value);
        return Err(place.refuse(format!(
            "expected a pool that is not in FIFO mode, as those have operations only, found {found}"
        )));
    }
    let Some(integral) = o.get("integral_guarantees") else { return Ok(()) };
    let named = |key| integral.value.get(key).and_then(Value::as_map).is_some_and(|m| !m.is_empty());
    let configured = named("resource_flow") || named("burst_guarantee_resources");
    // 11.1: nothing integral directly below an integral pool; 18: no integral pool anywhere below it.
    let nearest = before.integral_above[parent];
    let outer = if is_integral(pool) { nearest } else { nearest.filter(|o| configured && *o == parent) };
    match outer {
        None => Ok(()),
        Some(outer) => Err(integral.refuse(format!(
            "expected no integral guarantees inside of an integral pool, and {} is one",
            before.name(outer)
        ))),
    }
}

/// Has the pool a guarantee type?
pub(super) fn is_integral(pool: &Pool) -> bool {
    pool.integral_guarantees.guarantee_type != GuaranteeType::None
}

fn names(amounts: &Configured) -> String {
    let named = RESOURCES.into_iter().filter(|r| amounts.raw(*r).is_some());
    named.map(Resource::as_str).collect::<Vec<_>>().join(", ")
}
