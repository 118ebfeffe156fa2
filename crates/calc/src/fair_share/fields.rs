//! What is printed of an element: one table.

use fairshare::{ElementOutput, Problem};
use vocab::{Resources, Share, Volume};

/// A printed attribute of an element.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name in the corpus.
    pub name: &'static str,
    /// Its value. `true` for the root, which has no configuration of its own.
    pub value: fn(&ElementOutput, bool) -> Cell,
}

/// A value of a field.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell {
    /// `[user_slots, cpu, gpu, memory, network]`, fractions of the total.
    Share(Share),
    /// The same five, in natural units.
    Resources(Resources),
    /// The same five, in natural units x seconds.
    Volume(Volume),
    /// A ratio.
    Number(f64),
    /// Name of a resource.
    Name(&'static str),
    /// A position; printed as null if there is none.
    Index(Option<usize>),
}

impl Cell {
    /// Is it what an absent field of the corpus means?
    pub fn is_zero(&self) -> bool {
        match self {
            Cell::Share(s) => s.is_zero(),
            Cell::Resources(r) => r.is_zero(),
            Cell::Volume(v) => *v == Volume::default(),
            Cell::Number(x) => *x == 0.0,
            Cell::Name(_) => false,
            Cell::Index(i) => i.is_none(),
        }
    }
}

/// The fields of the corpus in its order. Those that only pools or only operations have are zero, or
/// none, for the others, so that every element has all of them.
pub const FIELDS: [Field; 26] = [
    field("demand_share", |e, _| Cell::Share(e.demand_share)),
    field("limits_share", |e, _| Cell::Share(e.limits_share)),
    field("inferred_strong_guarantee_resources", |e, root| {
        // The update takes the total for the root; the corpus has nothing there.
        Cell::Resources(if root { Resources::ZERO } else { e.inferred_strong_guarantee_resources })
    }),
    field("strong_guarantee_share", |e, _| Cell::Share(e.strong_guarantee_share)),
    field("proposed_integral_share", |e, _| Cell::Share(e.proposed_integral_share)),
    field("fair_share", |e, _| Cell::Share(e.fair_share.total)),
    field("fair_share_strong", |e, _| Cell::Share(e.fair_share.strong_guarantee)),
    field("fair_share_integral", |e, _| Cell::Share(e.fair_share.integral_guarantee)),
    field("fair_share_weight_proportional", |e, _| Cell::Share(e.fair_share.weight_proportional)),
    field("promised_guarantee_fair_share", |e, _| Cell::Share(e.promised_guarantee_fair_share.total)),
    field("promised_fair_share", |e, _| Cell::Share(e.promised_fair_share)),
    // The corpus has the older rule under the plain name (fair-share.md 6.5).
    field("estimated_guarantee_share", |e, _| Cell::Share(e.estimated_guarantee_share_with_flow)),
    field("estimated_guarantee_share_without_flow", |e, _| Cell::Share(e.estimated_guarantee_share)),
    field("limited_demand_share", |e, _| Cell::Share(e.limited_demand_share)),
    field("dominant_resource", |e, _| Cell::Name(e.dominant_resource.as_str())),
    field("fifo_index", |e, _| Cell::Index(e.fifo_index)),
    field("effective_fifo_index", |e, _| Cell::Index(e.effective_fifo_index)),
    field("resource_flow_ratio", |e, _| Cell::Number(e.resource_flow_ratio)),
    field("burst_ratio", |e, _| Cell::Number(e.burst_ratio)),
    field("total_resource_flow_ratio", |e, _| Cell::Number(e.total_resource_flow_ratio)),
    field("total_burst_ratio", |e, _| Cell::Number(e.total_burst_ratio)),
    field("accumulated_volume", |e, _| Cell::Volume(e.integral.unwrap_or_default().accumulated_volume)),
    field("integral_pool_capacity", |e, _| Cell::Volume(e.integral.unwrap_or_default().capacity)),
    field("share_ratio_by_volume", |e, _| Cell::Number(e.integral.unwrap_or_default().share_ratio_by_volume)),
    field("integral_share_limit", |e, _| Cell::Number(e.integral.unwrap_or_default().share_limit)),
    field("last_integral_share_ratio", |e, _| Cell::Number(e.integral.unwrap_or_default().last_share)),
];

const fn field(name: &'static str, value: fn(&ElementOutput, bool) -> Cell) -> Field {
    Field { name, value }
}

/// Name of a problem among the errors of a step.
pub fn error_name(problem: &Problem) -> &'static str {
    match problem {
        Problem::OvercommitStrongAndFlow { .. } => "overcommit_strong_and_flow",
        Problem::OvercommitStrongAndBurst { .. } => "overcommit_strong_and_burst",
        Problem::NestedPromisedGuaranteeFairSharePools { .. } => "nested_promised_guarantee_fair_share_pools",
        Problem::PriorityStrongGuaranteeAdjustmentPoolsWithoutDonor { .. } => "priority_pools_without_donors",
        // Not of the corpus: a rule of the update itself was broken, which is a bug worth a report.
        Problem::Inconsistency { .. } => "inconsistency",
    }
}
