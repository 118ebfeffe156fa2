use super::*;
use crate::config::TreeConfig;
use crate::slab::{Key, LeafIdx, NodeIdx, OpIdx, TreeIdx};
use vocab::{AllocationId, Cpu, Guid, Time};

const TOTAL: Resources = Resources { user_slots: 10, cpu: Cpu(1_000), ..Resources::ZERO };
const ONE: Resources = Resources { user_slots: 1, cpu: Cpu(100), ..Resources::ZERO };

struct Running {
    order: BTreeMap<u64, AllocIdx>,
    allocations: Slab<AllocIdx, Allocation>,
    groups: Groups,
}

impl Running {
    fn new(count: u64) -> Running {
        let mut running =
            Running { order: BTreeMap::new(), allocations: Slab::default(), groups: Groups::default() };
        (1..=count).for_each(|sequence| running.push(sequence));
        running
    }

    fn push(&mut self, sequence: u64) {
        let index = self.allocations.insert(Allocation {
            id: AllocationId(Guid::NULL),
            operation: OpIdx::new(0),
            tree: TreeIdx::new(0),
            leaf: LeafIdx::new(0),
            node: NodeIdx::new(0),
            task: 0,
            held: ONE,
            ordered_cpu: ONE.cpu,
            sequence,
            since: Time::ZERO,
            confirmed: true,
            abort_ordered: false,
            preempted: None,
        });
        self.order.insert(sequence, index);
    }

    #[track_caller]
    fn check(&mut self, bounds: &Bounds, expected: [i64; 3]) {
        self.groups.rebalance(&self.order, &self.allocations, bounds, &TOTAL);
        assert_eq!(self.groups.counts(self.order.len()), expected);
        let scratch = Groups::from_scratch(&self.order, &self.allocations, bounds, &TOTAL);
        assert_eq!(scratch.0, expected, "from scratch");
    }
}

fn amounts(text: &str) -> Amounts {
    let options = format!("{{non_preemptible_resource_usage_threshold={text}}}");
    let options = yson::parse(options.as_bytes()).expect("good");
    let (config, _) = TreeConfig::parse(options.as_map().expect("a map")).expect("good");
    config.non_preemptible_resource_usage_threshold
}

fn bounds(thresholds: (f64, f64), fair: f64, demand: f64, t: &str) -> Bounds {
    let config = TreeConfig {
        aggressive_preemption_satisfaction_threshold: thresholds.0,
        preemption_satisfaction_threshold: thresholds.1,
        ..TreeConfig::default()
    };
    // The cluster has slots and cores only; shares of the others are zero.
    let share = |x: f64| Share([x, x, 0.0, 0.0, 0.0]);
    Bounds::new(&config, &share(fair), &share(demand), &amounts(t))
}

/// Worked example 23.1.
#[test]
fn thresholds_of_usage() {
    let mut running = Running::new(10);
    let mut check = |t: &str, expected| running.check(&bounds((0.4, 0.9), 1.0, 1.5, t), expected);
    check("{}", [4, 5, 1]);
    check("{cpu=1}", [4, 5, 1]);
    check("{cpu=1;user_slots=2}", [4, 5, 1]);
    check("{cpu=5;user_slots=2}", [4, 5, 1]);
    check("{cpu=5;user_slots=6}", [5, 4, 1]);
    check("{user_slots=7}", [7, 2, 1]);
    check("{cpu=10}", [10, 0, 0]);
    check("{user_slots=10}", [10, 0, 0]);
    check("{user_slots=0}", [4, 5, 1]);
    check("{user_slots=4}", [4, 5, 1]);
    check("{}", [4, 5, 1]);
}

/// Worked example 23.2.
#[test]
fn the_crossing_allocation_is_protected() {
    let mut running = Running::new(8);
    let mut check = |thresholds, fair, demand, expected| {
        running.check(&bounds(thresholds, fair, demand, "{}"), expected);
    };
    check((0.2, 1.0), 0.5, 1.2, [1, 4, 3]);
    check((0.5, 1.0), 0.5, 1.2, [3, 2, 3]);
    check((0.5, 1.0), 0.45, 1.2, [3, 2, 3]);
    check((0.5, 1.0), 0.0, 1.2, [0, 0, 8]);
    check((0.2, 1.0), 0.8, 0.8, [2, 6, 0]);
    // A fair share that is a rounding error too large or too small protects no more and no less [D1].
    check((0.2, 1.0), 0.5 + 1e-12, 1.2, [1, 4, 3]);
    check((0.2, 1.0), 0.5 - 1e-12, 1.2, [1, 4, 3]);
    check((0.2, 1.0), 0.5 + 1e-6, 1.2, [2, 4, 2]);
}

/// The variant of 7.3 in which the crossing allocation is taken; one that ends on the bound stays.
#[test]
fn the_crossing_allocation_is_taken() {
    let mut running = Running::new(8);
    let mut check = |fair: f64, t: &str, expected| {
        let bounds = Bounds { crossing_is_preemptible: true, ..bounds((0.5, 1.0), fair, 1.2, t) };
        running.check(&bounds, expected);
    };
    check(0.5, "{}", [2, 3, 3]);
    check(0.45, "{}", [2, 2, 4]);
    check(0.4, "{}", [2, 2, 4]);
    check(0.45, "{user_slots=5}", [5, 0, 3]);
}

#[test]
fn groups_follow_the_events() {
    let mut running = Running::new(8);
    let b = bounds((0.2, 1.0), 0.5, 1.2, "{}");
    running.check(&b, [1, 4, 3]);
    // The oldest ends: the others move up.
    let gone = running.order.remove(&1).expect("there");
    running.groups.removed(1, running.allocations[gone].charged());
    running.check(&b, [1, 4, 2]);
    // A new job in the third makes it the youngest.
    let index = running.order.remove(&3).expect("there");
    running.groups.removed(3, ONE);
    running.order.insert(9, index);
    running.check(&b, [1, 4, 2]);
    assert_eq!(running.groups.group(9), PreemptionGroup::Preemptible);
    assert_eq!(running.groups.group(2), PreemptionGroup::NonPreemptible);
    // The second grows: what comes after it moves to the right.
    let index = running.order[&2];
    let grown = ONE.times(4);
    running.groups.usage_changed(2, grown - ONE);
    running.allocations[index].held = grown;
    running.check(&b, [1, 1, 5]);
    // More fair share never moves anything to the right (24, 1).
    let mut before = [0, 0, 7];
    for fair in 0..=20 {
        let b = bounds((0.2, 1.0), f64::from(fair) / 20.0, 1.2, "{}");
        running.groups.rebalance(&running.order, &running.allocations, &b, &TOTAL);
        let now = running.groups.counts(running.order.len());
        assert!(now[0] >= before[0] && now[2] <= before[2], "{before:?} {now:?}");
        before = now;
    }
}
