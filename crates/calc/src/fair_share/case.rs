//! A line of the corpus as a value.

use super::element::{self, Before, ROOT, Read};
use super::rules;
use crate::Refusal;
use crate::read::{self, Node, Object};
use fairshare::{Input, IntegralState, Kind, TreeOptions};
use rustc_hash::FxHashMap;
use vocab::{Resource, Resources, Span};

/// One tree and what happens to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Names the answer.
    pub name: String,
    /// By element: its id; that of the root is `<root>`.
    pub ids: Vec<String>,
    /// The tree before the first step.
    pub input: Input,
    /// By element: volumes before the first step.
    pub state: Vec<IntegralState>,
    /// The updates.
    pub steps: Vec<Step>,
}

/// One update and what changes before it.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Time since the previous update; none if there was none.
    pub since_previous: Option<Span>,
    /// A new total from here on.
    pub total: Option<Resources>,
    /// Operations (elements) with their new demand and usage.
    pub changes: Vec<Change>,
}

/// What is new about an operation; both amounts are replaced as a whole.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// Which.
    pub element: usize,
    /// Usage included.
    pub demand: Resources,
    /// At most the demand.
    pub usage: Resources,
}

type Index<'a> = FxHashMap<&'a str, usize>;

impl Case {
    /// Reads a line and refuses what cannot be computed.
    pub fn parse(line: &[u8]) -> Result<Case, Refusal> {
        let value = read::parse(line)?;
        let node = Node::root(&value);
        let case = node.object(&[
            "name",
            "seed",
            "quirks",
            "total_resource_limits",
            "options",
            "root",
            "elements",
            "steps",
            "reference_warnings",
        ])?;
        let name = case.required("name", "a string")?.text()?.to_owned();
        let total = read::resources(case.required("total_resource_limits", "an object")?)?;
        let options = case.optional("options", options)?.unwrap_or_else(strict);
        let root = element::root(case.get("root"))?;

        let list = case.required("elements", "a list")?;
        let nodes: Vec<Node<'_>> = list.list()?.collect();
        let mut before = Before {
            index: FxHashMap::from_iter([(ROOT, 0)]),
            input: Input { total, options, elements: vec![root.element] },
            integral_above: vec![None],
            all: &nodes,
        };
        let mut ids: Vec<String> = vec![ROOT.to_owned()];
        let mut state = vec![root.state];
        for node in &nodes {
            let Read { id, element, state: s } = element::read(node, &before)?;
            let integral = matches!(&element.kind, Kind::Pool(pool) if rules::is_integral(pool));
            let above = before.integral_above[element.parent];
            before.integral_above.push(if integral { Some(ids.len()) } else { above });
            before.index.insert(id, ids.len());
            before.input.elements.push(element);
            ids.push(id.to_owned());
            state.push(s);
        }
        let Before { index, input, .. } = before;

        let mut steps = Vec::new();
        for node in case.required("steps", "a list")?.list()? {
            steps.push(step(&node, &index, &input)?);
        }
        Ok(Case { name, ids, input, state, steps })
    }
}

/// Options that are not given.
fn strict() -> TreeOptions {
    TreeOptions { compat_strict: true, ..TreeOptions::default() }
}

fn options(node: Node<'_>) -> Result<TreeOptions, Refusal> {
    let o = node.object(&[
        "main_resource",
        "pool_capacity_saturation_period",
        "smooth_period",
        "enable_step_function_for_gang_operations",
        "enable_improved_fair_share_by_fit_factor_computation",
        "enable_improved_fair_share_by_fit_factor_computation_distribution_gap",
        "enable_fast_fifo_fair_share_by_fit_factor_computation",
        "enable_fifo_children_reordering_for_guarantee_utilization",
    ])?;
    // The fast computation of FIFO pools changes no result; here it is the only one.
    o.flag_or("enable_fast_fifo_fair_share_by_fit_factor_computation", false)?;
    let default = strict();
    Ok(TreeOptions {
        main_resource: o.optional("main_resource", main_resource)?.unwrap_or(default.main_resource),
        pool_capacity_saturation_period: o
            .optional("pool_capacity_saturation_period", read::seconds)?
            .unwrap_or(default.pool_capacity_saturation_period),
        smooth_period: o.optional("smooth_period", positive_seconds)?.unwrap_or(default.smooth_period),
        enable_step_function_for_gang_operations: o
            .flag_or("enable_step_function_for_gang_operations", false)?,
        enable_improved_fair_share_by_fit_factor_computation: o
            .flag_or("enable_improved_fair_share_by_fit_factor_computation", false)?,
        enable_improved_fair_share_by_fit_factor_computation_distribution_gap: o
            .flag_or("enable_improved_fair_share_by_fit_factor_computation_distribution_gap", false)?,
        enable_fifo_children_reordering_for_guarantee_utilization: o
            .flag_or("enable_fifo_children_reordering_for_guarantee_utilization", false)?,
        ..default
    })
}

fn main_resource(node: Node<'_>) -> Result<Resource, Refusal> {
    node.choice(&vocab::RESOURCES.map(|r| (r.as_str(), r)))
}

fn positive_seconds(node: Node<'_>) -> Result<Span, Refusal> {
    match read::seconds(node)? {
        Span::ZERO => Err(node.expected("at least a microsecond")),
        span => Ok(span),
    }
}

fn step(node: &Node<'_>, index: &Index<'_>, input: &Input) -> Result<Step, Refusal> {
    let step = node.object(&["time_since_previous_update", "changes", "total_resource_limits", "expect"])?;
    let mut changes = Vec::new();
    if let Some(map) = step.get("changes") {
        for (id, node) in map.any_object()?.entries() {
            changes.push(change(id, &node, index, input)?);
        }
    }
    Ok(Step {
        since_previous: step.optional("time_since_previous_update", read::seconds)?,
        total: step.optional("total_resource_limits", read::resources)?,
        changes,
    })
}

fn change(id: &str, node: &Node<'_>, index: &Index<'_>, input: &Input) -> Result<Change, Refusal> {
    let element = index.get(id).copied();
    let Some(element) = element.filter(|e| matches!(input.elements[*e].kind, Kind::Operation(_))) else {
        let what = if element.is_some() { "a pool" } else { "none" };
        return Err(node.refuse(format!("expected the id of an operation of \"elements\", this is {what}")));
    };
    let change: Object<'_> = node.object(&["resource_demand", "resource_usage"])?;
    let (demand, usage) = element::demand_and_usage(&change)?;
    Ok(Change { element, demand, usage })
}
