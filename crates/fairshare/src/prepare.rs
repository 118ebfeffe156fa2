//! Two inputs of an update that need a rule of their own (fair-share.md 5.1, 5.2).

use vocab::{Resource, Resources, Share};

/// Demand of an operation with `apply_specified_resource_limits_to_demand`: what is wanted beyond the
/// usage only as far as the limits allow. It still dominates the usage.
pub fn demand_within_limits(usage: Resources, demand: Resources, specified_limits: Resources) -> Resources {
    usage + (demand.min(specified_limits) - usage).max(Resources::ZERO)
}

/// `best_allocation_share`: what the nodes could hold of an operation if all their memory were cut into
/// jobs of its average size.
///
/// `node_memory` are the memory limits of the nodes that match the operation's filter.
pub fn best_allocation_share(
    total: &Resources,
    demand: &Resources,
    node_memory: impl IntoIterator<Item = i64>,
) -> Share {
    let mut best = *total;
    if demand.user_slots > 0 {
        let each = demand.memory / demand.user_slots;
        if each != 0 {
            let usable = node_memory.into_iter().map(|memory| memory / each * each);
            best.set_raw(Resource::Memory, usable.sum());
        }
    }
    best.share_of(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::Cpu;

    fn amounts(user_slots: i64, memory: i64) -> Resources {
        Resources { user_slots, memory, cpu: Cpu(100), ..Resources::ZERO }
    }

    #[test]
    fn limits_cut_demand_but_not_usage() {
        let check = |usage: i64, demand: i64, limit: i64, expected: i64| {
            let got = demand_within_limits(amounts(usage, 0), amounts(demand, 0), amounts(limit, 0));
            assert_eq!(got.user_slots, expected, "usage {usage}, demand {demand}, limit {limit}");
        };
        check(1, 10, 20, 10);
        check(1, 10, 5, 5);
        check(7, 10, 5, 7);
    }

    #[test]
    fn memory_counts_in_whole_jobs() {
        let total = amounts(10, 1000);
        let check = |slots: i64, memory: i64, expected: f64| {
            let got = best_allocation_share(&total, &amounts(slots, memory), [600, 400]);
            assert_eq!(got, Share([1.0, 1.0, 0.0, expected, 0.0]), "{slots} jobs of {memory} together");
        };
        check(2, 600, 0.9);
        check(1, 500, 0.5);
        check(1, 700, 0.0);
        // Without a job to measure by, all the memory counts.
        check(0, 600, 1.0);
        check(3, 2, 1.0);
    }
}
