//! What a heartbeat starts, and why not more: scheduling.md 8.3, 9, 10, 11.1, 16.

use crate::common::*;
use scheduler::*;
use vocab::*;

/// Starts per operation, in order of the operations.
fn given(starts: &[Start]) -> Vec<(OperationId, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    for start in starts {
        *counts.entry(start.operation).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}

#[test]
fn the_least_satisfied_comes_first() {
    let mut w = World::new();
    w.pool("p", "", "").unwrap();
    w.pool("heavy", "", "weight=3").unwrap();
    for i in 0..4 {
        w.node(&format!("n{i}"), 4.0, 10);
    }
    w.run(1, "p", 1.0, 100);
    w.run(2, "heavy", 1.0, 100);
    w.update();
    let order: Vec<u32> = w.schedule("n0").iter().map(|s| if s.operation == op(1) { 1 } else { 2 }).collect();
    // Nobody has anything: the pool whose name comes first. Then 1/4 of 16 cores against 3/4.
    assert_eq!(order, [2, 1, 2, 2]);
    for i in 1..4 {
        w.schedule(&format!("n{i}"));
    }
    assert_eq!(w.s.allocations_of(op(1)).unwrap().len(), 4);
    assert_eq!(w.s.allocations_of(op(2)).unwrap().len(), 12);
}

#[test]
fn fifo_gives_the_first_what_it_wants() {
    let mut w = World::new();
    w.pool("line", "", "mode=fifo").unwrap();
    w.node("n", 10.0, 10);
    for n in [3, 1, 2] {
        w.run(n, "line", 1.0, 6);
    }
    w.update();
    assert_eq!(given(&w.schedule("n")), [(op(1), 6), (op(2), 4)]);
}

#[test]
fn work_conserving_beyond_the_fair_share() {
    let mut w = World::new();
    w.pool("a", "", "weight=1000").unwrap();
    w.pool("b", "", "").unwrap();
    w.tagged_node("n", 4.0, 10, &["x"]);
    w.run(1, "a", 1.0, 100);
    let wants_others = RuntimeParameters {
        scheduling_tag_filter: TagFilter::parse("!x").unwrap(),
        ..RuntimeParameters::default()
    };
    w.s.set_parameters(op(1), TREE, wants_others).unwrap();
    w.run(2, "b", 1.0, 100);
    w.update();
    let plan = w.s.plan(w.now, "n");
    assert_eq!(plan.starts.len(), 4);
    assert!(plan.starts.iter().all(|s| s.operation == op(2)));
    assert_eq!(
        plan.refusals.iter().map(|r| (r.operation, r.reason)).collect::<Vec<_>>(),
        [(op(1), Deactivation::UnmatchedSchedulingTag)]
    );
}

/// The reason for which operation 1 gets nothing more on node "n", after what it got.
#[track_caller]
fn reason(w: &mut World, started: usize, expected: Deactivation) {
    let plan = w.s.plan(w.now, "n");
    assert_eq!(plan.starts.len(), started);
    let misfits = plan.misfits.iter().map(|_| Deactivation::MinNeededResourcesUnsatisfied);
    let reasons: Vec<Deactivation> = plan.refusals.iter().map(|r| r.reason).chain(misfits).collect();
    assert_eq!(reasons, [expected]);
    w.s.apply(plan, || AllocationId(Guid::NULL));
    w.check();
}

fn one_operation(options: &str, cpu: f64, count: i64) -> World {
    let mut w = World::new();
    w.pool("p", "", options).unwrap();
    w.node("n", 10.0, 100);
    w.run(1, "p", cpu, count);
    w.update();
    w
}

#[test]
fn reasons() {
    reason(&mut one_operation("", 11.0, 1), 0, Deactivation::MinNeededResourcesUnsatisfied);
    reason(&mut one_operation("resource_limits={cpu=0.5}", 1.0, 5), 0, Deactivation::ResourceLimitsExceeded);
    reason(&mut one_operation("", 1.0, 1), 1, Deactivation::NoAvailableDemand);
    reason(&mut one_operation("scheduling_tag_filter=ssd", 1.0, 1), 0, Deactivation::UnmatchedSchedulingTag);

    // The demand grew since the update: only what the update knew is given.
    let mut w = one_operation("", 1.0, 1);
    w.want(1, 1.0, 5);
    reason(&mut w, 1, Deactivation::NoAvailableDemand);

    // A graceful operation with its share is not given more.
    let mut w = World::new();
    w.pool("p", "", "resource_limits={cpu=0}").unwrap();
    w.node("n", 10.0, 100);
    let graceful = OperationDesc { preemption_mode: PreemptionMode::Graceful, ..w.desc(1, "p") };
    w.register_desc(graceful).unwrap();
    w.s.set_enabled(op(1), true).unwrap();
    w.want(1, 1.0, 5);
    w.update();
    reason(&mut w, 0, Deactivation::FairShareExceeded);
}

#[test]
fn shortages_are_counted() {
    let mut w = one_operation("", 11.0, 1);
    w.schedule("n");
    let snapshot = w.update();
    let shown = snapshot.tree(TREE).unwrap().operation_attributes(
        op(1),
        Some(&["min_needed_resources_unsatisfied_count", "deactivation_reasons"]),
    );
    assert_eq!(
        shown,
        Some(map(
            "deactivation_reasons={min_needed_resources_unsatisfied=1};min_needed_resources_unsatisfied_count={cpu=1}"
        ))
    );
}

#[test]
fn limits_along_the_chain() {
    let mut w = World::new();
    w.pool("top", "", "resource_limits={cpu=7}").unwrap();
    w.pool("a", "top", "resource_limits={cpu=5}").unwrap();
    w.pool("b", "top", "").unwrap();
    w.node("n", 100.0, 100);
    w.run(1, "a", 1.0, 50);
    w.run(2, "a", 1.0, 50);
    w.run(3, "b", 1.0, 50);
    let own = RuntimeParameters {
        resource_limits: {
            let mut limits = Amounts::NONE;
            limits.set(Resource::UserSlots, Some(1));
            limits
        },
        ..RuntimeParameters::default()
    };
    w.s.set_parameters(op(2), TREE, own).unwrap();
    w.update();
    let started = given(&w.schedule("n"));
    let of = |n| started.iter().find(|(id, _)| *id == op(n)).map_or(0, |(_, c)| *c);
    assert!(of(2) <= 1 && of(1) + of(2) <= 5, "{started:?}");
    assert_eq!(of(1) + of(2) + of(3), 7, "{started:?}");
}

#[test]
fn groups_by_availability() {
    let mut w = World::new();
    w.pool("p", "", "").unwrap();
    w.node("n", 10.0, 100);
    w.run(1, "p", 1.0, 0);
    let group = |task, cpu, count| DemandGroup { task, min_needed: cores(cpu), count };
    w.s.set_demand(op(1), &[group(5, 6.0, 2), group(3, 1.5, 9)]).unwrap();
    w.update();
    let tasks: Vec<u32> = w.schedule("n").iter().map(|s| s.task).collect();
    assert_eq!(tasks, [5, 3, 3], "the first group that fits");
    assert_eq!(w.s.demand_of(op(1)).unwrap(), [group(5, 6.0, 1), group(3, 1.5, 7)]);
    let bad = [group(1, 1.0, 1), group(1, 2.0, 1)];
    refused(w.s.set_demand(op(1), &bad), &["task 1"]);
    refused(w.s.set_demand(op(1), &[group(1, 1.0, -1)]), &["-1"]);
}

#[test]
fn spare_resources_and_caps() {
    let mut w = World::with(&map("max_started_allocations_per_heartbeat=3"), &map(""));
    w.pool("p", "", "").unwrap();
    w.node("n", 4.5, 100);
    w.run(1, "p", 0.5, 100);
    w.update();
    assert_eq!(w.schedule("n").len(), 3);
    assert_eq!(w.schedule("n").len(), 3);
    // Two cores left: after 3 x 0.5 there is less than the spare core.
    w.s.set_config(scheduler::config::SchedulerConfig::default());
    assert_eq!(w.schedule("n").len(), 2, "1.5 and 1.0 cores free let two more in, 0.5 does not");
    assert!(w.s.plan(w.now, "n").refusals.is_empty(), "a full node costs nothing");
    assert_eq!(w.s.nodes_with_room(TREE, Resources::ZERO).unwrap().count(), 0);
}

#[test]
fn nodes_that_are_not_planned_for() {
    let mut w = one_operation("", 1.0, 5);
    assert_eq!(w.s.plan(w.now, "nobody").skipped, Some(Skipped::NotInTree));
    let report = NodeReport {
        resource_limits: w.s.node("n").unwrap().resource_limits,
        has_waiting_allocations: true,
        ..NodeReport::default()
    };
    w.s.heartbeat(w.now, "n", &report);
    w.check();
    assert_eq!(w.s.plan(w.now, "n").skipped, Some(Skipped::WaitingAllocations));
    assert!(w.schedule("n").is_empty());
}

#[test]
fn whom_to_serve_first() {
    let mut w = World::new();
    for (name, cpu) in [("small", 2.0), ("big", 9.0), ("middle", 5.0), ("full", 0.5)] {
        w.node(name, cpu, 10);
    }
    let names = |w: &World, need| -> Vec<String> {
        w.s.nodes_with_room(TREE, need).unwrap().map(|n| n.to_string()).collect()
    };
    assert_eq!(names(&w, Resources::ZERO), ["big", "middle", "small"]);
    assert_eq!(names(&w, cores(4.0)), ["big", "middle"]);
    w.pool("p", "", "").unwrap();
    w.run(1, "p", 9.0, 1);
    assert!(!w.s.has_candidates(TREE).unwrap(), "not before an update");
    w.update();
    assert!(w.s.has_candidates(TREE).unwrap());
    w.schedule("big");
    assert!(!w.s.has_candidates(TREE).unwrap());
    assert_eq!(names(&w, Resources::ZERO), ["middle", "small"]);
}

#[test]
fn a_stale_plan_is_checked_again() {
    let mut w = World::new();
    w.pool("p", "", "").unwrap();
    w.node("n", 10.0, 10);
    w.run(1, "p", 1.0, 5);
    w.run(2, "p", 1.0, 5);
    w.update();
    let plan = w.s.plan(w.now, "n");
    assert_eq!(plan.starts.len(), 10);
    w.unregister(1);
    w.want(2, 1.0, 2);
    let mut ids = GuidGenerator::new(9);
    let starts = w.s.apply(plan, || AllocationId(ids.next(object_type::OTHER)));
    w.check();
    assert_eq!(given(&starts), [(op(2), 2)]);
}

#[test]
fn suspended_and_disabled_operations_get_nothing() {
    let mut w = one_operation("", 1.0, 5);
    w.s.set_suspended(op(1), true).unwrap();
    assert!(w.schedule("n").is_empty());
    let unschedulable = |w: &mut World| {
        let snapshot = w.update();
        let tree = snapshot.tree(TREE).unwrap();
        tree.operation_attributes(op(1), Some(&["unschedulable_reason"])).unwrap()
    };
    assert_eq!(unschedulable(&mut w), map("unschedulable_reason=suspended"));
    w.s.set_suspended(op(1), false).unwrap();
    w.update();
    assert_eq!(w.schedule("n").len(), 5);
    assert_eq!(unschedulable(&mut w), map("unschedulable_reason=no_pending_allocations"));
    assert_eq!(w.s.set_enabled(op(1), false).unwrap().len(), 5);
    w.check();
    assert_eq!(unschedulable(&mut w), map("unschedulable_reason=is_not_running"));
}

#[test]
fn far_behind_in_a_line() {
    let mut w = World::with(&map(""), &map("max_schedulable_element_count_in_fifo_pool=2"));
    w.pool("line", "", "mode=fifo").unwrap();
    w.node("n", 10.0, 10);
    for n in 1..=5 {
        w.run(n, "line", 1.0, 4);
    }
    let snapshot = w.update();
    let tree = snapshot.tree(TREE).unwrap();
    let schedulable: Vec<bool> = (1..=5).map(|n| tree.operation(op(n)).unwrap().schedulable).collect();
    // The third has a share (10 cores for 4 + 4 + 2), the others have none.
    assert_eq!(schedulable, [true, true, true, false, false]);
}

/// Many small allocations on one node, many nodes: a bound that only a change of the order of growth
/// would break.
#[test]
fn filling_is_quick() {
    let mut w = World::with(&map("min_spare_allocation_resources_on_node={user_slots=1}"), &map(""));
    for p in 0..10 {
        w.pool(&format!("p{p}"), "", "max_running_operation_count=50").unwrap();
    }
    for n in 0..100 {
        w.run(n, &format!("p{}", n % 10), 0.01, 1_000);
    }
    for n in 0..100 {
        let resource_limits =
            Resources { user_slots: 500, cpu: Cpu(100_000), memory: 1 << 50, ..Resources::ZERO };
        let report = NodeReport { resource_limits, ..NodeReport::default() };
        w.s.heartbeat(w.now, &format!("n{n}"), &report);
    }
    w.update();
    let mut ids = GuidGenerator::new(9);
    let start = std::time::Instant::now();
    let mut total = 0;
    for n in 0..100 {
        total += w.s.schedule(w.now, &format!("n{n}"), || AllocationId(ids.next(object_type::OTHER))).len();
    }
    let filling = start.elapsed();
    assert_eq!(total, 50_000);
    w.check();
    let start = std::time::Instant::now();
    for _ in 0..100 {
        for n in 0..100 {
            assert!(w.s.plan(w.now, &format!("n{n}")).starts.is_empty());
        }
    }
    println!("50,000 allocations in {filling:?}; 10,000 heartbeats of full nodes in {:?}", start.elapsed());
    assert!(filling.as_secs() < 20, "{filling:?}");
}
