//! Resource maps, volumes, shares and times, in the units of the cases.

use super::Node;
use crate::Refusal;
use fairshare::Configured;
use vocab::{Cpu, RESOURCES, Resource, Resources, Share, Span, Volume};

const NAMES: [&str; 5] = {
    let mut names = [""; 5];
    let mut i = 0;
    while i < 5 {
        names[i] = RESOURCES[i].as_str();
        i += 1;
    }
    names
};

/// The largest amount that may be written: that of an unspecified limit, in the integer unit.
const LARGEST: i64 = i64::MAX / 4;
/// The longest time, in seconds: more does not fit into microseconds.
const LONGEST: f64 = (u64::MAX / 1_000_000) as f64;

/// Amounts; a resource that is not named is absent, which is not the same as 0.
pub(crate) fn configured(node: Node<'_>) -> Result<Configured, Refusal> {
    let map = node.object(&NAMES)?;
    let mut amounts = Configured::NONE;
    for r in RESOURCES {
        amounts.0[r as usize] = map.optional(r.as_str(), |n| amount(n, r))?;
    }
    Ok(amounts)
}

/// Amounts; a resource that is not named is 0.
pub(crate) fn resources(node: Node<'_>) -> Result<Resources, Refusal> {
    configured(node).map(|amounts| amounts.or_zero())
}

/// Amounts; a resource that is not named is not limited.
pub(crate) fn limits(node: Node<'_>) -> Result<Resources, Refusal> {
    let amounts = configured(node)?;
    Ok(Resources::from_raw(|r| amounts.raw(r).unwrap_or(Resources::INFINITE.raw(r))))
}

/// In the integer unit of the resource. A whole number may be written with a point.
fn amount(node: Node<'_>, r: Resource) -> Result<i64, Refusal> {
    if r == Resource::Cpu {
        let most = (LARGEST / 100) as f64;
        return Ok(Cpu::from_f64(node.number(0.0..=most, "a number of cores from 0 to 2.3e16")?).0);
    }
    // Beyond 2^53 a double may have lost the units that were meant.
    let exact = |x: &f64| x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_992.0;
    let whole = node.value.as_i64().or_else(|| node.value.as_f64().filter(exact).map(|x| x as i64));
    whole
        .filter(|x| (0..=LARGEST).contains(x))
        .ok_or_else(|| node.expected(&format!("a whole number from 0 to {LARGEST}")))
}

/// Amounts x seconds; a resource that is not named is 0.
pub(crate) fn volume(node: Node<'_>) -> Result<Volume, Refusal> {
    let map = node.object(&NAMES)?;
    let mut volume = Volume::default();
    for r in RESOURCES {
        let read = |n: Node<'_>| match r {
            // Volumes of cpu are kept in hundredths in 64 bits.
            Resource::Cpu => n.number(0.0..=(LARGEST / 100) as f64, "a number from 0 to 2.3e16"),
            // More than all amounts for all time, and far from the end of doubles.
            _ => n.number(0.0..=1e32, "a number from 0 to 1e32"),
        };
        volume.set(r, map.optional(r.as_str(), read)?.unwrap_or(0.0));
    }
    Ok(volume)
}

/// A fraction of a cluster.
pub(crate) fn ratio(node: Node<'_>) -> Result<f64, Refusal> {
    node.number(0.0..=1e9, "a number from 0 to 1e9")
}

/// A vector of five numbers of at least 0.
pub(crate) fn share(node: Node<'_>) -> Result<Share, Refusal> {
    const ALLOWED: &str = "a list of five numbers: user_slots, cpu, gpu, memory, network";
    let items = node.list().map_err(|_| node.expected(ALLOWED))?;
    if items.len() != RESOURCES.len() {
        let found = items.len();
        return Err(node.refuse(format!("expected {ALLOWED}, found a list of {found}")));
    }
    let mut share = Share::ZERO;
    for (item, r) in items.zip(RESOURCES) {
        share[r] = ratio(item)?;
    }
    Ok(share)
}

/// Seconds, rounded to microseconds.
pub(crate) fn seconds(node: Node<'_>) -> Result<Span, Refusal> {
    let seconds = node.number(0.0..=LONGEST, "a number of seconds from 0 to 1.8e13")?;
    Ok(Span::from_micros((seconds * 1e6).round() as u64))
}
