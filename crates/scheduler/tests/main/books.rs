//! Resources of allocations, operations, pools and nodes: scheduling.md 8.2, 16, 17.3, 21.

use crate::common::*;
use scheduler::*;
use std::collections::BTreeSet;
use vocab::*;

fn world() -> World {
    let mut w = World::new();
    w.pool("p", "", "").unwrap();
    w.node("n", 10.0, 10);
    w.run(1, "p", 2.0, 3);
    w.update();
    w
}

fn node_cpu(w: &World, name: &str) -> f64 {
    w.s.node(name).expect("known").resource_usage.cpu.as_f64()
}

fn pool_cpu(w: &mut World) -> f64 {
    w.update().tree(TREE).unwrap().pool("p").unwrap().resource_usage.cpu.as_f64()
}

fn report(w: &World, usage: f64) -> NodeReport {
    NodeReport {
        resource_limits: w.s.node("n").unwrap().resource_limits,
        resource_usage: cores(usage),
        ..NodeReport::default()
    }
}

#[test]
fn usage_is_followed() {
    let mut w = world();
    let starts = w.schedule("n");
    assert_eq!((node_cpu(&w, "n"), pool_cpu(&mut w)), (6.0, 6.0));
    assert!(w.s.allocation_usage(starts[0].allocation, cores(0.5)));
    w.check();
    assert_eq!((node_cpu(&w, "n"), pool_cpu(&mut w)), (4.5, 4.5));
    assert!(w.s.allocation_finished(starts[1].allocation));
    w.check();
    assert_eq!((node_cpu(&w, "n"), pool_cpu(&mut w)), (2.5, 2.5));
    assert!(!w.s.allocation_finished(starts[1].allocation), "only once");
    assert!(!w.s.allocation_usage(starts[1].allocation, cores(1.0)), "later reports are ignored");
    assert_eq!(w.s.allocation(starts[2].allocation).unwrap().resource_usage, cores(2.0));
}

#[test]
fn an_order_on_its_way_counts_and_so_does_what_is_being_released() {
    let mut w = world();
    let starts = w.schedule("n");
    // The report is older than the order: nothing is used there yet.
    let r = report(&w, 0.0);
    w.s.heartbeat(w.now, "n", &r);
    w.check();
    assert_eq!(node_cpu(&w, "n"), 6.0);
    // Two have arrived; two more cores are held by something that the scheduler has forgotten.
    for start in &starts[..2] {
        w.s.allocation_usage(start.allocation, cores(2.0));
    }
    let r = report(&w, 6.0);
    w.s.heartbeat(w.now, "n", &r);
    w.check();
    assert_eq!(node_cpu(&w, "n"), 8.0);
    // The operation is gone at once; its places are free when the node says so.
    let dropped = w.s.unregister_operation(op(1)).unwrap();
    w.check();
    assert_eq!(dropped.len(), 3);
    assert_eq!((node_cpu(&w, "n"), pool_cpu(&mut w)), (8.0, 0.0));
    let r = report(&w, 1.0);
    w.s.heartbeat(w.now, "n", &r);
    assert_eq!(node_cpu(&w, "n"), 1.0);
}

#[test]
fn overcommit_is_dated() {
    let mut w = world();
    let r = report(&w, 12.0);
    w.s.heartbeat(w.now, "n", &r);
    let since = w.now;
    w.now += Span::from_secs(5);
    w.s.heartbeat(w.now, "n", &r);
    assert_eq!(w.s.node("n").unwrap().overcommitted_since, Some(since));
    let r = report(&w, 3.0);
    w.s.heartbeat(w.now, "n", &r);
    assert_eq!(w.s.node("n").unwrap().overcommitted_since, None);
}

#[test]
fn failed_allocations_give_everything_back() {
    let mut w = world();
    let starts = w.schedule("n");
    let demand = |w: &World| w.s.demand_of(op(1)).unwrap()[0].count;
    assert_eq!(demand(&w), 0);
    w.s.allocation_failed(w.now, starts[0].allocation, SettleFailure::Backoff);
    w.check();
    assert_eq!((demand(&w), node_cpu(&w, "n")), (1, 4.0));
    let plan = w.s.plan(w.now, "n");
    assert_eq!(plan.refusals[0].reason, Deactivation::RecentScheduleAllocationFailed);
    w.now += Span::from_millis(100);
    let again = w.schedule("n");
    assert_eq!(again.len(), 1);
    // Throttling backs off longer each time: 100 ms, 110 ms, ...
    w.s.allocation_failed(w.now, again[0].allocation, SettleFailure::Throttled);
    w.s.allocation_failed(w.now, starts[1].allocation, SettleFailure::Throttled);
    let waits = |w: &World, ms| w.s.plan(w.now + Span::from_millis(ms), "n").starts.is_empty();
    assert!(waits(&w, 109) && !waits(&w, 110));
    w.s.allocation_failed(w.now, starts[2].allocation, SettleFailure::Other);
    assert_eq!((demand(&w), node_cpu(&w, "n")), (3, 0.0));
}

#[test]
fn lost_nodes() {
    let mut w = world();
    let ids: Vec<AllocationId> = w.schedule("n").into_iter().map(|s| s.allocation).collect();
    assert_eq!(w.s.allocations_on("n"), ids);
    assert_eq!(w.s.remove_node("n"), ids);
    w.check();
    assert_eq!(pool_cpu(&mut w), 0.0);
    assert!(w.s.node("n").is_none() && w.s.remove_node("n").is_empty());
    assert!(w.update().tree(TREE).unwrap().resource_limits.is_zero());
}

#[test]
fn a_node_changes_its_tree() {
    let mut w = World::with(&map(""), &map("nodes_filter=\"!gpu\""));
    w.s.create_tree("gpu", &map("nodes_filter=gpu")).unwrap();
    w.pool("p", "", "").unwrap();
    w.node("n", 10.0, 10);
    w.run(1, "p", 2.0, 3);
    w.update();
    let ids: Vec<AllocationId> = w.schedule("n").into_iter().map(|s| s.allocation).collect();
    let mut r = report(&w, 6.0);
    r.tags = BTreeSet::from(["gpu".to_owned()]).into();
    let change = w.s.heartbeat(w.now, "n", &r);
    w.check();
    assert_eq!(change, NodeUpdate { tree: Some("gpu".into()), lost: ids });
    // Both filters match now: it stays, and somebody is told.
    assert!(w.s.set_tree_config(TREE, &map("")).unwrap().is_empty());
    w.check();
    assert_eq!(w.s.node("n").unwrap().tree.as_deref(), Some("gpu"));
    assert_eq!(w.s.alerts()[0].name, "nodes_in_several_trees");
    // Nobody wants it.
    w.s.set_tree_config(TREE, &map("nodes_filter=ssd")).unwrap();
    w.s.set_tree_config("gpu", &map("nodes_filter=\"gpu & ssd\"")).unwrap();
    w.check();
    assert_eq!(w.s.node("n").unwrap().tree, None);
}

#[test]
fn order_of_last_job_start() {
    let mut w = world();
    let ids: Vec<AllocationId> = w.schedule("n").into_iter().map(|s| s.allocation).collect();
    assert!(w.s.allocation_job_started(ids[0]));
    w.check();
    assert_eq!(w.s.allocations_of(op(1)).unwrap(), [ids[1], ids[2], ids[0]]);
}

#[test]
fn revived_allocations_are_forced_in() {
    let mut w = World::new();
    w.pool("p", "", "resource_limits={cpu=1}").unwrap();
    w.node("n", 10.0, 10);
    let r = report(&w, 6.0);
    w.s.heartbeat(w.now, "n", &r);
    let desc = w.desc(1, "p");
    w.s.revive_operations(vec![desc]);
    let id = |n| AllocationId(Guid([n, 1, 1, 1]));
    let revived = |n: u32| RevivedAllocation {
        allocation: id(n),
        operation: op(1),
        tree: TREE.into(),
        node: "n".into(),
        task: 0,
        resources: cores(3.0),
        ordered_cpu: cores(3.0).cpu,
        preempted: None,
    };
    w.s.revive_allocation(&revived(1)).unwrap();
    w.s.revive_allocation(&revived(2)).unwrap();
    w.check();
    assert_eq!(node_cpu(&w, "n"), 6.0, "they are what the node holds");
    refused(w.s.revive_allocation(&revived(2)), &["known already"]);
    refused(w.s.revive_allocation(&RevivedAllocation { node: "m".into(), ..revived(3) }), &["node \"m\""]);
    let stranger = RevivedAllocation { operation: op(7), ..revived(3) };
    refused(w.s.revive_allocation(&stranger), &["No such operation"]);
    w.s.set_enabled(op(1), true).unwrap();
    w.want(1, 1.0, 5);
    w.update();
    assert!(w.schedule("n").is_empty(), "above its limit");
    // The younger one has to go for the limit; the older one crosses the fair share and is protected.
    assert_eq!(pool_cpu(&mut w), 3.0);
    assert_eq!(node_cpu(&w, "n"), 6.0, "until it is gone");
}

/// S12: jobs of an operation were aborted on one node more than 100 times a second.
#[test]
fn s12_an_operation_leaves_a_node_alone_for_a_while() {
    let mut w = world();
    w.node("other", 2.0, 10);
    w.run(2, "p", 2.0, 1);
    w.update();
    let until = w.now + Span::from_secs(2);
    w.s.back_off_on_node(w.now, op(1), "n", until);
    // An earlier end does not shorten the pause, and what is not known does no harm.
    w.s.back_off_on_node(w.now, op(1), "n", w.now + Span::from_secs(1));
    w.s.back_off_on_node(w.now, op(1), "nowhere", until);
    w.s.back_off_on_node(w.now, op(7), "n", until);
    let owners = |w: &mut World, node: &str| -> Vec<OperationId> {
        w.schedule(node).iter().map(|start| start.operation).collect()
    };
    assert_eq!(owners(&mut w, "n"), [op(2)], "others are not held back");
    assert_eq!(owners(&mut w, "other"), [op(1)], "nor is it, elsewhere");
    let plan = w.s.plan(until - Span::from_micros(1), "n");
    assert_eq!(plan.refusals[0].reason, Deactivation::RecentScheduleAllocationFailed);
    let told = w.s.explain(op(1), w.now).unwrap().to_string();
    assert!(told.contains("1 that it leaves alone for a while"), "{told}");
    w.now = until;
    assert_eq!(owners(&mut w, "n"), [op(1), op(1)]);
}
