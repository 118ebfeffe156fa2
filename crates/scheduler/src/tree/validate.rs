//! Rules about a pool, its parent and its children (fair-share.md 11.1).

use crate::amounts::{Amounts, amount_value};
use crate::config::{GuaranteeType, Mode, PoolConfig};
use vocab::{Failure, RESOURCES, Resource};

/// A pool in the eyes of the rules.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub name: &'a str,
    pub config: &'a PoolConfig,
}

/// A kind of guarantee, for the rules about sums: its name, the option that holds it, its amounts.
type Kind = (&'static str, &'static str, fn(&PoolConfig) -> &Amounts);

const KINDS: [Kind; 3] = [
    ("Strong guarantee", "strong_guarantee_resources", |c| &c.strong_guarantee_resources),
    ("Burst guarantee", "integral_guarantees/burst_guarantee_resources", |c| {
        &c.integral_guarantees.burst_guarantee_resources
    }),
    ("Resource flow", "integral_guarantees/resource_flow", |c| &c.integral_guarantees.resource_flow),
];

/// The main resource must be guaranteed if any is.
pub(crate) fn main_resource(pool: View<'_>, main: Resource) -> Result<(), Failure> {
    let guarantee = &pool.config.strong_guarantee_resources;
    if guarantee.is_empty() || guarantee.get(main).is_some() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "Main resource guarantee must be specified in order to set guarantees for any other resource: \
         pool \"{}\" has no guarantee of \"{main}\"",
        pool.name
    ))
    .with("pool_name", pool.name)
    .with("main_resource", main.as_str())
    .with("guarantee_config", guarantee.to_map())
    .with("option", format!("strong_guarantee_resources/{main}")))
}

/// What a parent demands of its children; `is_root` because the root has no configuration.
pub(crate) fn children<'a>(
    parent: View<'_>,
    is_root: bool,
    children: impl Iterator<Item = View<'a>> + Clone,
) -> Result<(), Failure> {
    if parent.config.mode == Mode::Fifo && !is_root && children.clone().next().is_some() {
        return Err(Failure::new(format!(
            "Pool cannot have subpools since it is in FIFO mode: pool \"{}\"",
            parent.name
        ))
        .with("pool_name", parent.name)
        .with("option", "mode"));
    }
    if is_root {
        return Ok(());
    }
    if parent.config.integral_guarantees.guarantee_type != GuaranteeType::None
        && let Some(child) = children.clone().find(|c| c.config.has_integral_resources())
    {
        return Err(Failure::new(format!(
            "Integral pool \"{}\" cannot have children with integral resources: pool \"{}\" has them",
            parent.name, child.name
        ))
        .with("pool_name", parent.name)
        .with("child_name", child.name)
        .with("option", "integral_guarantees/guarantee_type"));
    }
    for kind in KINDS {
        for resource in RESOURCES {
            sums(kind, resource, parent, children.clone())?;
        }
    }
    Ok(())
}

fn sums<'a>(
    (kind, option, amounts): Kind,
    resource: Resource,
    parent: View<'_>,
    children: impl Iterator<Item = View<'a>> + Clone,
) -> Result<(), Failure> {
    let bound = amounts(parent.config).get(resource);
    if bound.is_none()
        && let Some(child) = children.clone().find(|c| amounts(c.config).get(resource).is_some())
    {
        return Err(Failure::new(format!(
            "{kind} is explicitly configured at child pool \"{}\" but is not configured at parent \"{}\": \
             resource \"{resource}\"",
            child.name, parent.name
        ))
        .with("pool_name", child.name)
        .with("parent_name", parent.name)
        .with("resource_type", resource.as_str())
        .with("resource_guarantee", kind)
        .with("option", format!("{option}/{resource}")));
    }
    let bound = bound.unwrap_or(0);
    let sum = children.fold(0i64, |s, c| s.saturating_add(amounts(c.config).get(resource).unwrap_or(0)));
    if bound >= sum {
        return Ok(());
    }
    let (bound, sum) = (amount_value(resource, bound), amount_value(resource, sum));
    Err(Failure::new(format!(
        "{kind} of resource for pool \"{}\" is less than the sum of children guarantees: \
         \"{resource}\" {bound:?} < {sum:?}",
        parent.name
    ))
    .with("resource_type", resource.as_str())
    .with("pool_name", parent.name)
    .with("parent_resource", bound)
    .with("children_resource_sum", sum)
    .with("option", format!("{option}/{resource}")))
}
