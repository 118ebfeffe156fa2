//! Values of keys, and the refusal of unknown names.

use crate::Refusal;
use crate::read::{Node, configured, resources, shown};
use scheduler::Amounts;
use std::collections::BTreeSet;
use vocab::{Resource, Resources, Span};

/// What a node has of what is not named: enough not to matter.
const USUAL_NODE: Resources = Resources { user_slots: 1_000, memory: 1 << 40, ..Resources::ZERO };

/// One text, or a list of texts that is not empty.
pub fn one_or_more<T>(
    node: &Node<'_>,
    mut read: impl FnMut(&Node<'_>) -> Result<T, Refusal>,
) -> Result<Vec<T>, Refusal> {
    match node.value.as_list() {
        Some([]) => Err(node.refuse("expected at least one name, found an empty list".to_owned())),
        Some(_) => node.list()?.map(|n| read(&n)).collect(),
        None => Ok(vec![read(node)?]),
    }
}

pub fn texts(node: Node<'_>) -> Result<BTreeSet<String>, Refusal> {
    node.list()?.map(|n| n.text().map(str::to_owned)).collect()
}

pub fn whole(node: &Node<'_>, from: i64, to: i64) -> Result<i64, Refusal> {
    let exact = |x: &f64| x.fract() == 0.0 && x.abs() < 9e15;
    let found = node.value.as_i64().or_else(|| node.value.as_f64().filter(exact).map(|x| x as i64));
    found
        .filter(|x| (from..=to).contains(x))
        .ok_or_else(|| node.expected(&format!("a whole number from {from} to {to}")))
}

pub fn amounts(node: Node<'_>) -> Result<Amounts, Refusal> {
    configured(node).map(|amounts| Amounts(amounts.0))
}

/// What a job needs: one slot if nothing else is said.
pub fn job(node: Node<'_>) -> Result<Resources, Refusal> {
    let mut needed = resources(node)?;
    if configured(node)?.raw(Resource::UserSlots).is_none() {
        needed.user_slots = 1;
    }
    bounded(node, needed)
}

pub fn node_limits(node: Node<'_>) -> Result<Resources, Refusal> {
    let amounts = configured(node)?;
    bounded(node, Resources::from_raw(|r| amounts.raw(r).unwrap_or(USUAL_NODE.raw(r))))
}

/// Amounts of which a hundred thousand can be added up.
pub fn bounded(node: Node<'_>, amounts: Resources) -> Result<Resources, Refusal> {
    const LARGEST: i64 = 1 << 45;
    match vocab::RESOURCES.into_iter().find(|r| amounts.raw(*r) > LARGEST) {
        None => Ok(amounts),
        Some(r) => {
            let most = if r == Resource::Cpu { LARGEST / 100 } else { LARGEST };
            Err(node.any_object()?.at(r.as_str()).expected(&format!("a number of at most {most}")))
        }
    }
}

/// A duration as specs have it.
pub fn span(node: Node<'_>) -> Result<Span, Refusal> {
    let milliseconds = node.value.as_u64().filter(|ms| *ms <= 1 << 40).map(Span::from_millis);
    milliseconds
        .or_else(|| node.value.as_str().and_then(Span::parse))
        .ok_or_else(|| node.expected("a duration: milliseconds, or a string such as \"10s\""))
}

/// An unknown name, with a few of the known ones.
pub fn unknown<'a>(node: &Node<'_>, what: &str, known: impl Iterator<Item = &'a str>) -> Refusal {
    const SHOWN: usize = 8;
    let known: Vec<&str> = known.collect();
    let more = if known.len() > SHOWN { ", ..." } else { "" };
    let names = known[..known.len().min(SHOWN)].join(", ");
    let known =
        if known.is_empty() { "there is none".to_owned() } else { format!("known are {names}{more}") };
    node.refuse(format!("no such {what} {}, {known}", shown(node.value)))
}
