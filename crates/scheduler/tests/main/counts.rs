//! Counters, queues, ephemeral pools, lightweight operations: scheduling.md 2.3, 4, 21.

use crate::common::*;
use scheduler::*;
use vocab::{OperationType, code};

#[track_caller]
fn standings(world: &World, expected: &[(u32, &str)]) {
    let got: Vec<(u32, String)> = expected.iter().map(|(n, _)| (*n, world.standing(*n))).collect();
    let expected: Vec<(u32, String)> = expected.iter().map(|(n, s)| (*n, (*s).to_owned())).collect();
    assert_eq!(got, expected);
}

/// Worked example 23.11.
#[test]
fn pending_queue() {
    let mut w = World::new();
    w.pool("P", "", "max_running_operation_count=3").unwrap();
    w.pool("P1", "P", "max_running_operation_count=2").unwrap();
    w.pool("P2", "P", "max_running_operation_count=2").unwrap();
    for (n, pool) in [(1, "P1"), (2, "P1"), (3, "P1"), (4, "P2"), (5, "P2"), (6, "P1")] {
        w.register(n, pool).unwrap();
    }
    let (r, p, p1) = ("running", "waits for P", "waits for P1");
    standings(&w, &[(1, r), (2, r), (3, p1), (4, r), (5, p), (6, p1)]);
    w.s.drain_events();
    w.unregister(1);
    standings(&w, &[(2, r), (3, r), (4, r), (5, p), (6, p1)]);
    assert_eq!(
        w.s.drain_events(),
        [Event::Running { operation: op(3), tree: TREE.into() }],
        "who runs now is told, and nothing else"
    );
    w.unregister(2);
    standings(&w, &[(3, r), (4, r), (5, p), (6, r)]);
    w.unregister(4);
    standings(&w, &[(3, r), (5, r), (6, r)]);
}

/// The place of who waits is told within the queue where it waits, and moves on with it.
#[test]
fn queue_positions() {
    let mut w = World::new();
    w.pool("P", "", "max_running_operation_count=2").unwrap();
    w.pool("P1", "P", "max_running_operation_count=1").unwrap();
    w.pool("P2", "P", "").unwrap();
    for (n, pool) in [(1, "P1"), (2, "P1"), (3, "P2"), (4, "P2"), (5, "P1"), (6, "P2"), (7, "P1")] {
        w.register(n, pool).unwrap();
    }
    let place = |w: &mut World, n: u32| -> Option<(String, i64)> {
        let by = w.attribute(n, "pending_by");
        let pool = by.get("pool")?.as_str()?.to_owned();
        Some((pool, by.get("queue_position")?.as_i64()?))
    };
    let places = |w: &mut World, expected: &[(u32, Option<(&str, i64)>)]| {
        w.update();
        for (n, expected) in expected {
            let found = place(w, *n);
            assert_eq!(found.as_ref().map(|(pool, at)| (&**pool, *at)), *expected, "operation {n}");
        }
    };
    let (p, p1) = (|at| Some(("P", at)), |at| Some(("P1", at)));
    places(&mut w, &[(1, None), (2, p1(0)), (3, None), (4, p(0)), (5, p1(1)), (6, p(1)), (7, p1(2))]);
    w.unregister(5);
    places(&mut w, &[(2, p1(0)), (4, p(0)), (6, p(1)), (7, p1(1))]);
    w.unregister(3);
    places(&mut w, &[(4, None), (6, p(0)), (7, p1(1))]);
}

/// Worked example 23.12.
#[test]
fn lightweight() {
    let mut w = World::new();
    w.pool("R", "", "max_running_operation_count=2;max_operation_count=5").unwrap();
    w.pool("N", "R", "").unwrap();
    w.pool("L", "R", "mode=fifo;enable_lightweight_operations=%true").unwrap();
    w.register(1, "N").unwrap();
    assert_eq!(w.counts("N"), (1, 1, 0));
    for n in 2..=5 {
        w.register(n, "L").unwrap();
    }
    assert_eq!((w.counts("L"), w.counts("R")), ((4, 0, 4), (5, 1, 4)));
    let e = refused(w.register(6, "L"), &["Operation could not be started", "5 for pool \"R\"", TREE]);
    assert!(e.contains_code(code::TOO_MANY_OPERATIONS) && e.code == code::GENERIC);

    // A map operation there counts as running and may wait.
    w.unregister(5);
    let map_operation = OperationDesc { operation_type: OperationType::Map, ..w.desc(7, "L") };
    w.register_desc(map_operation).unwrap();
    assert_eq!((w.counts("L"), w.counts("R")), ((4, 1, 3), (5, 2, 3)));
    w.unregister(4);
    w.register_desc(OperationDesc { operation_type: OperationType::Map, ..w.desc(8, "L") }).unwrap();
    standings(&w, &[(8, "waits for R")]);
    w.s.set_pool_options(TREE, "R", &map("max_running_operation_count=3;max_operation_count=9")).unwrap();
    standings(&w, &[(8, "running")]);

    // Switched off: they are counted like others, over the limit; switched on: back again.
    w.s.set_pool_options(TREE, "L", &map("mode=fifo")).unwrap();
    w.check();
    assert_eq!(w.counts("R"), (5, 5, 0));
    w.register(9, "L").unwrap();
    standings(&w, &[(9, "waits for R")]);
    w.s.set_pool_options(TREE, "L", &map("mode=fifo;enable_lightweight_operations=%true")).unwrap();
    w.check();
    standings(&w, &[(9, "running")]);
    assert_eq!(w.counts("R"), (6, 3, 3));
}

#[test]
fn refusals_at_start() {
    let mut w =
        World::with(&map("max_operation_count=4"), &map("allow_gang_operations_only_in_fifo_pools=%true"));
    w.pool("closed", "", "forbid_immediate_operations=%true").unwrap();
    w.pool("fair", "", "").unwrap();
    w.pool("line", "", "mode=fifo;max_operation_count=1").unwrap();
    refused(w.register(1, "closed"), &["forbidden", "\"closed\""]);
    refused(w.register(1, "<Root>"), &["forbidden", "<Root>"]);
    refused(w.register(1, "no such name!"), &["Bad name of an ephemeral pool", "[-_a-z0-9:A-Z]+"]);
    refused(w.register(1, "a$b"), &["Bad name of an ephemeral pool"]);
    let gang = OperationDesc { is_gang: true, ..w.desc(1, "fair") };
    refused(w.register_desc(gang.clone()), &["Gang", "\"fair\"", TREE]);
    let strict = OperationDesc { require_specified_pools_existence: Some(true), ..w.desc(1, "new") };
    refused(w.register_desc(strict), &["\"new\" does not exist"]);
    let mut elsewhere = w.desc(1, "fair");
    elsewhere.trees[0].tree = "moon".into();
    refused(w.register_desc(elsewhere), &["No such pool tree \"moon\""]);
    let mut heavy = w.desc(1, "fair");
    heavy.trees[0].parameters.weight = Some(1e10);
    refused(w.register_desc(heavy), &["\"weight\""]);

    w.register(1, "line").unwrap();
    refused(w.register(1, "fair"), &["registered already"]);
    let e = refused(w.register(2, "line"), &["1 for pool \"line\""]);
    assert!(e.contains_code(code::TOO_MANY_OPERATIONS));
    let forgiving = OperationDesc { erase_trees_with_pool_limit_violations: true, ..w.desc(2, "line") };
    refused(w.register_desc(forgiving), &["Operation could not be started", "line"]);
    for n in 2..=4 {
        w.register(n, "fair").unwrap();
    }
    let e = refused(w.register(5, "fair"), &["total number of concurrent operations 4"]);
    assert_eq!(e.code, code::TOO_MANY_OPERATIONS);
    assert!(w.s.admissions(op(5)).is_err(), "nothing is left of a refused operation");
}

#[test]
fn ephemeral_pools() {
    let tree = map("default_parent_pool=home;max_ephemeral_pools_per_user=2;max_operation_count_per_pool=9");
    let mut w = World::with(&map(""), &tree);
    assert_eq!(w.s.alerts()[0].name, "update_pools", "the default parent is missing");
    w.pool("home", "", "forbid_immediate_operations=%true").unwrap();
    assert!(w.s.alerts().is_empty());
    w.pool("hub", "", "create_ephemeral_subpools=%true;ephemeral_subpool_config={mode=fifo;max_operation_count=2;max_running_operation_count=1}").unwrap();

    let mut unnamed = w.desc(1, "");
    unnamed.trees[0].pool = None;
    let joined = w.register_desc(unnamed).unwrap();
    assert_eq!(&*joined.trees[0].pool, "alice");
    w.register(2, "other").unwrap();
    refused(w.register(3, "third"), &["limit 2", "\"alice\"", TREE, "other"]);
    let joined = w.register(3, "hub").unwrap();
    assert_eq!(&*joined.trees[0].pool, "hub$alice");
    assert_eq!(&*w.s.pool_for_permission(TREE, Some("hub"), "bob").unwrap(), "hub");
    assert_eq!(&*w.s.pool_for_permission(TREE, None, "bob").unwrap(), "home");
    w.register(4, "hub").unwrap();
    standings(&w, &[(3, "running"), (4, "waits for hub$alice")]);
    refused(w.register(5, "hub"), &["2 for pool \"hub$alice\""]);

    let snapshot = w.update();
    let tree = snapshot.tree(TREE).unwrap();
    let fields = ["is_ephemeral", "parent", "full_path", "mode"];
    assert_eq!(
        tree.pool_attributes("hub$alice", Some(&fields)),
        Some(map("full_path=\"/hub/hub$alice\";parent=hub;mode=fifo;is_ephemeral=%true"))
    );
    assert_eq!(
        tree.pool_attributes("other", Some(&fields)),
        Some(map("full_path=\"/home/other\";parent=home;mode=fair_share;is_ephemeral=%true"))
    );
    w.s.drain_events();
    w.unregister(2);
    assert_eq!(w.s.drain_events(), [Event::EphemeralPoolRemoved { tree: TREE.into(), pool: "other".into() }]);
    w.register(2, "third").expect("there is place for another one");
    // Created by hand: it is no longer one of the user's.
    w.pool("third", "", "").unwrap();
    w.register(6, "fourth").unwrap();
}

#[test]
fn default_parents_of_users() {
    let mut w = World::with(&map(""), &map("use_user_default_parent_pool_map=%true"));
    w.pool("team", "", "").unwrap();
    w.s.set_user_to_default_pool([("alice".into(), "team".into()), ("bob".into(), "gone".into())].into());
    assert_eq!(w.s.alerts()[0].name, "update_user_to_default_pool_map");
    w.register(1, "mine").unwrap();
    assert_eq!(w.counts("team"), (1, 1, 0));
}

#[test]
fn changing_the_pool() {
    let mut w = World::new();
    w.pool("P", "", "max_running_operation_count=2;max_operation_count=4").unwrap();
    w.pool("a", "P", "max_running_operation_count=1").unwrap();
    w.pool("b", "P", "max_running_operation_count=1;max_operation_count=2").unwrap();
    w.pool("c", "", "").unwrap();
    w.register(1, "a").unwrap();
    w.register(2, "a").unwrap();
    standings(&w, &[(2, "waits for a")]);
    // A waiting operation runs at once in its new pool.
    w.s.change_pool(op(2), TREE, "b").unwrap();
    w.check();
    standings(&w, &[(2, "running")]);
    refused(w.s.change_pool(op(1), TREE, "b"), &["running operations 1", "\"b\""]);
    w.register(3, "b").unwrap();
    refused(w.s.change_pool(op(1), TREE, "b"), &["concurrent operations 2", "\"b\""]);
    standings(&w, &[(1, "running"), (3, "waits for b")]);
    // Room in the old pool is used at once.
    w.s.change_pool(op(2), TREE, "c").unwrap();
    w.check();
    standings(&w, &[(2, "running"), (3, "running")]);
    refused(w.s.change_pool(op(3), TREE, "x$y"), &["Bad name"]);
    w.s.change_pool(op(3), TREE, "fresh").unwrap();
    w.check();
    assert_eq!(w.counts("P"), (1, 1, 0));
}

#[test]
fn several_trees() {
    let mut w = World::new();
    w.s.create_tree("gpu", &map("nodes_filter=gpu;max_running_operation_count_per_pool=1")).unwrap();
    refused(w.s.create_tree("gpu", &map("")), &["already exists"]);
    let desc = |w: &World, n| {
        let mut desc = w.desc(n, "x");
        desc.trees.push(TreeParameters { tentative: true, ..TreeParameters::new("gpu", "y") });
        desc
    };
    let d = desc(&w, 1);
    w.register_desc(d).unwrap();
    let d = desc(&w, 2);
    let registered = w.register_desc(d).unwrap();
    assert_eq!(registered.trees.iter().map(|t| &*t.tree).collect::<Vec<_>>(), [TREE, "gpu"]);
    assert_eq!(w.s.admissions(op(2)).unwrap()[1].1, Admission::Pending { pool: "y".into(), limit: 1 });
    assert!(w.s.is_running_in_strategy(op(2)));
    w.s.erase_tree(op(1), "gpu").unwrap();
    w.check();
    assert_eq!(w.s.admissions(op(2)).unwrap()[1].1, Admission::Running);
    // A violated limit of a tentative tree erases it silently.
    w.s.set_tree_config("gpu", &map("max_operation_count_per_pool=1;nodes_filter=gpu")).unwrap();
    let d = desc(&w, 3);
    let registered = w.register_desc(d).unwrap();
    assert_eq!(&*registered.erased[0].0, "gpu");
    assert!(registered.erased[0].1.contains_code(code::TOO_MANY_OPERATIONS));
}

#[test]
fn revival_goes_without_checks_and_running_ones_first() {
    let mut w = World::with(
        &map("max_operation_count=1"),
        &map("max_operation_count_per_pool=1;max_running_operation_count_per_pool=1"),
    );
    w.pool("p", "", "forbid_immediate_operations=%true").unwrap();
    w.pool("hub", "", "create_ephemeral_subpools=%true").unwrap();
    let mut descs: Vec<OperationDesc> = (1..=3).map(|n| w.desc(n, "p")).collect();
    descs[2].trees[0].was_running = true;
    descs[2].trees[0].slot_index = Some(7);
    descs.push(w.desc(4, "hub$alice"));
    let revived = w.s.revive_operations(descs);
    w.check();
    assert_eq!(revived.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [op(3), op(1), op(2), op(4)]);
    let (r, p) = ("running", "waits for p");
    standings(&w, &[(1, p), (2, p), (3, r), (4, r)]);
    assert_eq!(revived[0].1.as_ref().unwrap().trees[0].slot_index, 7);
    assert_eq!(&*revived[3].1.as_ref().unwrap().trees[0].pool, "hub$alice");
}

#[test]
fn raised_limits_act_at_once() {
    let mut w = World::new();
    w.pool("p", "", "max_running_operation_count=0").unwrap();
    for n in 1..=3 {
        w.register(n, "p").unwrap();
    }
    w.s.set_pool_options(TREE, "p", &map("max_running_operation_count=2")).unwrap();
    w.check();
    standings(&w, &[(1, "running"), (2, "running"), (3, "waits for p")]);
    w.s.drain_events();
    w.s.scan_pending();
    assert_eq!(w.s.drain_events(), [], "who goes on waiting for the same pool keeps his turn, silently");
    // The limit of the tree's root, too [D2].
    w.s.set_pool_options(TREE, "p", &map("")).unwrap();
    w.s.set_tree_config(TREE, &map("max_running_operation_count=3")).unwrap();
    w.register(4, "p").unwrap();
    standings(&w, &[(3, "running"), (4, "waits for <Root>")]);
    w.s.set_tree_config(TREE, &map("max_running_operation_count=4")).unwrap();
    w.check();
    standings(&w, &[(4, "running")]);
}
