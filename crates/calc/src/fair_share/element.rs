//! An element of the list: a pool or an operation.

use super::rules;
use crate::Refusal;
use crate::read::{self, Node, Object, shown};
use fairshare::{
    Element, GuaranteeType, Input, IntegralGuarantees, IntegralState, Kind, Mode, Operation, Pool,
};
use rustc_hash::FxHashMap;
use vocab::{RESOURCES, Resources, Share, Time};

/// Id of the root.
pub(super) const ROOT: &str = "<root>";

/// An element as it stands in the list.
pub(super) struct Read<'a> {
    pub id: &'a str,
    pub element: Element,
    pub state: IntegralState,
}

const COMMON_KEYS: [&str; 5] = ["id", "parent", "type", "weight", "resource_limits"];
const POOL_KEYS: [&str; 10] = [
    "mode",
    "strong_guarantee_resources",
    "integral_guarantees",
    "accumulated_resource_volume",
    "last_integral_share_ratio",
    "compute_promised_guarantee_fair_share",
    "enable_priority_strong_guarantee_adjustment",
    "enable_priority_strong_guarantee_adjustment_donorship",
    "enable_step_function_for_gang_operations",
    "enable_fifo_children_reordering_for_guarantee_utilization",
];
const OPERATION_KEYS: [&str; 5] =
    ["resource_demand", "resource_usage", "start_time", "best_allocation_share", "gang"];
const INTEGRAL_KEYS: [&str; 6] = [
    "guarantee_type",
    "resource_flow",
    "burst_guarantee_resources",
    "relaxed_share_multiplier_limit",
    "can_accept_free_volume",
    "should_distribute_free_volume_among_children",
];

/// The root: settings of a pool, or none.
pub(super) fn root(node: Option<Node<'_>>) -> Result<Read<'static>, Refusal> {
    let (pool, state) = match node {
        None => (Pool::default(), IntegralState::default()),
        Some(node) => {
            let object = node.object(&POOL_KEYS)?;
            let (pool, state) = pool(&object)?;
            rules::root(&object, &pool)?;
            (pool, state)
        }
    };
    let kind = Kind::Pool(Box::new(pool));
    let resource_limits = Resources::INFINITE;
    let element = Element { parent: 0, weight: None, historic_usage: None, resource_limits, kind };
    Ok(Read { id: ROOT, element, state })
}

/// What has been read of a case when an element is.
pub(super) struct Before<'a> {
    /// By id, the number of the element. Looked up only. Ids are borrowed from the line.
    pub index: FxHashMap<&'a str, usize>,
    /// The elements so far.
    pub input: Input,
    /// By element: the nearest integral pool, itself or above it.
    pub integral_above: Vec<Option<usize>>,
    /// The whole list, to tell a parent that comes later from one that does not exist.
    pub all: &'a [Node<'a>],
}

impl Before<'_> {
    /// An element in an error.
    pub fn name(&self, element: usize) -> String {
        let node = element.checked_sub(1).and_then(|i| self.all.get(i));
        let id = node.and_then(|n| n.value.get("id")).map(shown);
        format!("{} (/elements/{})", id.unwrap_or_default(), element.saturating_sub(1))
    }
}

/// An element below the root, all of whose predecessors have been read.
pub(super) fn read<'a>(node: &'a Node<'a>, before: &Before<'_>) -> Result<Read<'a>, Refusal> {
    // The kind first: it says which keys are known.
    let kind = node
        .any_object()?
        .required("type", "\"pool\" or \"operation\"")?
        .choice(&[("pool", &POOL_KEYS[..]), ("operation", &OPERATION_KEYS[..])])?;
    let keys: Vec<&str> = COMMON_KEYS.iter().chain(kind).copied().collect();
    let object = node.object(&keys)?;
    let id = rules::new_id(&object, node.value, before)?;
    let parent = rules::parent(&object, before)?;
    let place = object.required("parent", "an id")?;
    let weight = object.optional("weight", rules::weight)?.unwrap_or(1.0);
    let resource_limits = object.optional("resource_limits", read::limits)?.unwrap_or(Resources::INFINITE);
    let (kind, state) = if kind == POOL_KEYS {
        let (pool, state) = pool(&object)?;
        rules::pool(&object, &pool, before.input.options.main_resource)?;
        rules::below(&object, &place, &pool, parent, before)?;
        (Kind::Pool(Box::new(pool)), state)
    } else {
        // The place in the list is the last tie-breaker of FIFO pools.
        let tie = before.input.elements.len() as u128;
        (Kind::Operation(Operation { tie, ..operation(&object)? }), IntegralState::default())
    };
    let element = Element { parent, weight: Some(weight), historic_usage: None, resource_limits, kind };
    Ok(Read { id, element, state })
}

fn pool(o: &Object<'_>) -> Result<(Pool, IntegralState), Refusal> {
    let integral = o.optional("integral_guarantees", integral_guarantees)?.unwrap_or_default();
    let pool = Pool {
        mode: o
            .optional("mode", |n| n.choice(&[("fair_share", Mode::FairShare), ("fifo", Mode::Fifo)]))?
            .unwrap_or_default(),
        strong_guarantee_resources: o
            .optional("strong_guarantee_resources", read::configured)?
            .unwrap_or_default(),
        integral_guarantees: integral,
        compute_promised_guarantee_fair_share: o.flag_or("compute_promised_guarantee_fair_share", false)?,
        enable_priority_strong_guarantee_adjustment: o
            .flag_or("enable_priority_strong_guarantee_adjustment", false)?,
        enable_priority_strong_guarantee_adjustment_donorship: o
            .flag_or("enable_priority_strong_guarantee_adjustment_donorship", false)?,
        enable_step_function_for_gang_operations: o
            .flag_or("enable_step_function_for_gang_operations", true)?,
        enable_fifo_children_reordering_for_guarantee_utilization: o
            .flag_or("enable_fifo_children_reordering_for_guarantee_utilization", false)?,
        ..Pool::default()
    };
    let state = IntegralState {
        accumulated_volume: o.optional("accumulated_resource_volume", read::volume)?.unwrap_or_default(),
        last_share: o.optional("last_integral_share_ratio", read::ratio)?.unwrap_or(0.0),
    };
    Ok((pool, state))
}

fn integral_guarantees(node: Node<'_>) -> Result<IntegralGuarantees, Refusal> {
    let o = node.object(&INTEGRAL_KEYS)?;
    let types =
        [("none", GuaranteeType::None), ("burst", GuaranteeType::Burst), ("relaxed", GuaranteeType::Relaxed)];
    let guarantee_type = o.optional("guarantee_type", |n| n.choice(&types))?.unwrap_or_default();
    let burst = o.optional("burst_guarantee_resources", read::configured)?.unwrap_or_default();
    rules::burst_of_relaxed(&o, guarantee_type, &burst)?;
    Ok(IntegralGuarantees {
        guarantee_type,
        resource_flow: o.optional("resource_flow", read::resources)?.unwrap_or_default(),
        burst_guarantee_resources: burst.or_zero(),
        relaxed_share_multiplier_limit: o
            .optional("relaxed_share_multiplier_limit", |n| n.number(1.0..=10.0, "a number from 1 to 10"))?,
        can_accept_free_volume: o.flag_or("can_accept_free_volume", true)?,
        should_distribute_free_volume_among_children: o
            .optional("should_distribute_free_volume_among_children", |n| n.flag())?,
    })
}

fn operation(o: &Object<'_>) -> Result<Operation, Refusal> {
    let (demand, usage) = demand_and_usage(o)?;
    let start = o.optional("start_time", read::seconds)?.unwrap_or_default();
    Ok(Operation {
        usage,
        demand,
        start_time: Time::from_micros(start.as_micros()),
        gang: o.flag_or("gang", false)?,
        best_allocation_share: o.optional("best_allocation_share", read::share)?.unwrap_or(Share::ONES),
        ..Operation::default()
    })
}

/// `resource_demand` and `resource_usage`, the second within the first (fair-share.md 5.1).
pub(super) fn demand_and_usage(o: &Object<'_>) -> Result<(Resources, Resources), Refusal> {
    let demand = o.optional("resource_demand", read::resources)?.unwrap_or_default();
    let usage = o.optional("resource_usage", read::resources)?.unwrap_or_default();
    if let Some(r) = RESOURCES.into_iter().find(|r| usage.raw(*r) > demand.raw(*r)) {
        let map = o.at("resource_usage");
        let demand = demand.get(r);
        let allowed = format!("at most the demand of the operation, which is {demand}");
        return Err(map.any_object()?.at(r.as_str()).expected(&allowed));
    }
    Ok((demand, usage))
}
