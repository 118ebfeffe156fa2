//! Who may have others preempted for it (scheduling.md 6.6).

use super::arena::{Arena, Item};
use super::starvation::{StarvationStatus, Starving};
use crate::config::PriorityScope;
use crate::preemption::PreemptionPriority;
use crate::tree::Tree;

/// Priorities of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Priorities {
    /// By the scope of the tree.
    pub effective: PreemptionPriority,
    /// By its own starvation alone.
    pub own: PreemptionPriority,
}

const NOBODY: Priorities = Priorities { effective: PreemptionPriority::None, own: PreemptionPriority::None };

/// Priorities by element; those of pools mean nothing.
pub(super) fn of_elements(
    tree: &Tree,
    arena: &Arena,
    starving: &Starving,
    schedulable: &[bool],
) -> Vec<Priorities> {
    let with_ancestors =
        tree.config.scheduling_preemption_priority_scope == PriorityScope::OperationAndAncestors;
    let of = |(i, item): (usize, &Item)| {
        if matches!(item, Item::Pool(_)) || !schedulable[i] {
            return NOBODY;
        }
        let own = match starving.of[i].status {
            StarvationStatus::NonStarving => PreemptionPriority::None,
            StarvationStatus::Starving => PreemptionPriority::Normal,
            StarvationStatus::AggressivelyStarving => PreemptionPriority::Aggressive,
        };
        if !with_ancestors {
            return Priorities { effective: own, own };
        }
        let effective = if starving.lowest_aggressive[i].is_some() {
            PreemptionPriority::Aggressive
        } else if starving.lowest[i].is_some() {
            PreemptionPriority::Normal
        } else {
            PreemptionPriority::None
        };
        Priorities { effective, own }
    };
    arena.items.iter().enumerate().map(of).collect()
}
