//! Worked examples of preemption on whole clusters (scheduling.md 23.3 to 23.10, 23.13), and what they
//! leave out.

use crate::common::*;
use scheduler::*;
use vocab::*;

fn numbers(preempts: &[Preempt]) -> Vec<u32> {
    preempts.iter().map(|p| p.allocation.0.0[0]).collect()
}

fn kinds(preempts: &[Preempt]) -> Vec<PreemptionKind> {
    preempts.iter().map(|p| p.kind).collect()
}

/// The node of 23.3: A holds a1..a6 (two of them in each group), B holds b1 (number 10), started between a5
/// and a6. C wants allocations of `c` cores and is starving after the second update.
fn example_23_3(tree: &str, pool_a: &str, c: f64) -> World {
    let tree = format!(
        "fair_share_starvation_timeout=0;aggressive_preemption_satisfaction_threshold=0.5;\
         fair_share_aggressive_starvation_timeout=60000;{tree}"
    );
    let mut w = World::with(&map(""), &map(&tree));
    w.pool("a", "", &format!("strong_guarantee_resources={{cpu=4}};{pool_a}")).unwrap();
    w.pool("b", "", "").unwrap();
    w.pool("c", "", "strong_guarantee_resources={cpu=4}").unwrap();
    w.node("n", 8.0, 100);
    w.idle(1, "a");
    w.idle(2, "b");
    w.run(3, "c", c, 4);
    for n in 1..=5 {
        w.place(n, 1, "n", 1.0);
    }
    w.place(10, 2, "n", 2.0);
    w.place(6, 1, "n", 1.0);
    w.update();
    assert_eq!(w.groups(1), [2, 2, 2]);
    assert_eq!(w.groups(2), [0, 0, 1]);
    w.update();
    w
}

#[test]
fn normal_preemption_23_3() {
    let mut w = example_23_3("", "", 2.0);
    assert_eq!(w.attribute(3, "starvation_status").as_str(), Some("starving"));
    let (starts, preempts) = w.pass("n");
    assert_eq!(starts.len(), 1);
    assert_eq!((starts[0].operation, starts[0].resources.cpu), (op(3), Cpu(200)));
    assert_eq!(numbers(&preempts), [6, 10], "a5 stays although a5 and a6 would have been enough");
    assert_eq!(kinds(&preempts), [PreemptionKind::Preemption; 2]);

    let first = &preempts[0];
    let id = starts[0].allocation;
    assert!(first.reason.starts_with(&format!("Preempted to start allocation {id} of operation {}", op(3))));
    assert_eq!(first.preempted_for, Some((id, op(3))));
    assert_eq!(first.timeout, Span::from_secs(10));
    assert_eq!(first.deadline, w.now + Span::from_secs(10));

    // Nothing is put on the node while C's allocation waits there.
    assert_eq!(w.s.plan(w.now, "n").skipped, Some(Skipped::WaitingAllocations));
    // The pools are given what they have lost at once, the node when it is gone.
    assert_eq!(w.s.pool_usage(TREE, "a").unwrap().cpu, Cpu(500));
    assert_eq!(w.s.pool_usage(TREE, "b").unwrap().cpu, Cpu(0));
    assert_eq!(w.s.pool_usage(TREE, "c").unwrap().cpu, Cpu(200));
    assert_eq!(w.s.node("n").unwrap().resource_usage.cpu, Cpu(1000));
    // Later reports of a preempted allocation do not bring its usage back [D5].
    w.s.allocation_usage(allocation(10), cores(1.5));
    w.check();
    assert_eq!(w.s.pool_usage(TREE, "b").unwrap().cpu, Cpu(0));
    assert_eq!(w.s.node("n").unwrap().resource_usage.cpu, Cpu(950));
    // The orders are repeated to a node that comes back.
    let standing = w.s.standing_orders("n");
    assert_eq!(standing.iter().map(|o| o.allocation().0.0[0]).collect::<Vec<_>>(), [10, 6]);

    // They leave; the free CPU is given out by a regular stage.
    assert!(w.s.allocation_finished(allocation(6)));
    assert_eq!(w.s.plan(w.now, "n").skipped, Some(Skipped::WaitingAllocations));
    assert!(w.s.allocation_finished(allocation(10)));
    w.check();
    assert_eq!(w.s.plan(w.now, "n").skipped, None);
    assert_eq!(w.s.node("n").unwrap().resource_usage.cpu, Cpu(700));
}

#[test]
fn aggressive_preemption_23_4() {
    let aggressive = "enable_aggressive_starvation=%true";
    let mut w = example_23_3(aggressive, "", 6.0);
    w.wait(61.0);
    w.update();
    assert_eq!(w.attribute(3, "starvation_status").as_str(), Some("aggressively_starving"));
    let (starts, preempts) = w.pass("n");
    assert_eq!(starts.len(), 1);
    assert_eq!(numbers(&preempts), [6, 10, 5, 4, 3]);
    assert_eq!(kinds(&preempts), [PreemptionKind::AggressivePreemption; 5]);
    let log: Vec<_> = w.s.preemption_log().map(|r| (r.group, r.level)).collect();
    let (two, one) = (PreemptionGroup::Preemptible, PreemptionGroup::AggressivelyPreemptible);
    assert_eq!(log, [(two, 2), (two, 2), (two, 2), (one, 1), (one, 1)]);

    let mut w = example_23_3(aggressive, "allow_aggressive_preemption=%false", 6.0);
    w.wait(61.0);
    w.update();
    let plan = w.s.plan(w.now, "n");
    assert!(plan.preemptive);
    assert_eq!((plan.starts.len(), plan.preemptions.len()), (0, 0));
    assert_eq!(plan.statistics.resource_usage_discount.cpu, Cpu(400));
}

#[test]
fn a_pool_that_gives_nothing_to_the_normal_stage() {
    let mut w = example_23_3("", "allow_normal_preemption=%false", 2.0);
    let (starts, preempts) = w.pass("n");
    assert_eq!((starts.len(), numbers(&preempts)), (1, vec![10]));
    // The aggressive one takes it nevertheless.
    let aggressive = "enable_aggressive_starvation=%true";
    let mut w = example_23_3(aggressive, "allow_normal_preemption=%false", 2.0);
    w.wait(61.0);
    w.update();
    let (starts, preempts) = w.pass("n");
    assert_eq!((starts.len(), numbers(&preempts)), (1, vec![6, 10]));
}

/// 13: among those that are not preemptible anyway, whoever uses less CPU than ordered goes first.
#[test]
fn a_gap_of_cpu_makes_expendable() {
    let mut w = example_23_3("enable_aggressive_starvation=%true", "", 5.0);
    w.wait(61.0);
    w.update();
    // The CPU monitor has lowered the third, so the fifth begins below the fair share.
    w.s.allocation_usage(allocation(3), Resources { cpu: Cpu(99), ..cores(1.0) });
    w.check();
    assert_eq!(w.groups(1), [2, 3, 1]);
    let (starts, preempts) = w.pass("n");
    assert_eq!((starts.len(), numbers(&preempts)), (1, vec![6, 10, 3, 5]));
}

/// A restart does not close the gap: nodes say what was granted, besides what is held.
#[test]
fn a_gap_of_cpu_survives_a_restart() {
    let mut w = example_23_3("enable_aggressive_starvation=%true", "", 5.0);
    let in_order = [1, 2, 3, 4, 5, 10, 6];
    in_order.iter().for_each(|n| assert!(w.s.allocation_finished(allocation(*n))));
    for n in in_order {
        let (operation, granted) = if n == 10 { (2, cores(2.0)) } else { (1, cores(1.0)) };
        let held = if n == 3 { Cpu(99) } else { granted.cpu };
        let revived = RevivedAllocation {
            allocation: allocation(n),
            operation: op(operation),
            tree: TREE.into(),
            node: "n".into(),
            task: 0,
            resources: Resources { cpu: held, ..granted },
            ordered_cpu: granted.cpu,
            preempted: None,
        };
        w.s.revive_allocation(&revived).expect("good");
    }
    w.wait(61.0);
    w.update();
    assert_eq!(w.groups(1), [2, 3, 1]);
    let (starts, preempts) = w.pass("n");
    assert_eq!((starts.len(), numbers(&preempts)), (1, vec![6, 10, 3, 5]));
}

#[test]
fn why_aggressive_preemption_is_needed_23_5() {
    let tree = "fair_share_starvation_timeout=0;fair_share_aggressive_starvation_timeout=60000";
    let mut w = World::with(&map(""), &map(tree));
    w.pool("a", "", "").unwrap();
    w.pool("b", "", "").unwrap();
    w.pool("c", "", "strong_guarantee_resources={cpu=2};enable_aggressive_starvation=%true").unwrap();
    for n in 1..=4 {
        w.node(&format!("n{n}"), 2.0, 10);
    }
    w.idle(1, "a");
    w.idle(2, "b");
    w.run(3, "c", 2.0, 1);
    for n in 0..8 {
        w.place(n + 1, 1 + n / 4, &format!("n{}", 1 + n / 2), 1.0);
    }
    w.update();
    w.update();
    assert_eq!((w.groups(1), w.groups(2)), ([1, 2, 1], [1, 2, 1]));
    for n in 1..=4 {
        assert_eq!(w.pass(&format!("n{n}")), (vec![], vec![]), "never two preemptible ones on one node");
    }
    w.wait(61.0);
    w.update();
    assert_eq!(w.pass("n1"), (vec![], vec![]), "the oldest of A is there");
    let (starts, preempts) = w.pass("n2");
    assert_eq!((starts.len(), numbers(&preempts)), (1, vec![4, 3]));
    // One allocation was all that C wanted.
    assert_eq!(w.pass("n4"), (vec![], vec![]));
}

/// Pool F (number 1) runs 5 allocations; pool S has X (2), which fits nowhere, and G (3) with two
/// allocations of 2 cores.
pub fn scope_world(scope: &str) -> World {
    let tree = format!(
        "fair_share_starvation_timeout=0;fair_share_starvation_tolerance=0.95;\
         preemption_satisfaction_threshold=0.8;preemptive_scheduling_backoff=0;\
         scheduling_preemption_priority_scope={scope}"
    );
    let mut w = World::with(&map(""), &map(&tree));
    w.pool("f", "", "strong_guarantee_resources={cpu=4.9}").unwrap();
    w.pool("s", "", "strong_guarantee_resources={cpu=5.1}").unwrap();
    w.node("n", 10.0, 100);
    w.idle(1, "f");
    w.run(2, "s", 1.0, 1);
    // The node has no network.
    let min_needed = Resources { network: 1, ..cores(1.0) };
    w.s.set_demand(op(2), &[DemandGroup { task: 0, min_needed, count: 1 }]).unwrap();
    w.run(3, "s", 2.0, 10);
    for n in 1..=5 {
        w.place(n, 1, "n", 1.0);
    }
    w.place(11, 3, "n", 2.0);
    w.place(12, 3, "n", 2.0);
    w.update();
    w.update();
    w
}

#[test]
fn scope_23_8() {
    let status = |w: &World, n: u32| w.attribute(n, "starvation_status").as_str().map(str::to_owned);
    let priority = |w: &World, n: u32| w.attribute(n, "preemption_priority").as_str().map(str::to_owned);
    let mut w = scope_world("operation_and_ancestors");
    assert_eq!(w.groups(1), [1, 3, 1]);
    assert_eq!(status(&w, 2).as_deref(), Some("starving"));
    assert_eq!(status(&w, 3).as_deref(), Some("non_starving"));
    let pool = w.s.snapshot().tree(TREE).unwrap().pool_attributes("s", Some(&["starvation_status"]));
    assert_eq!(pool, Some(map("starvation_status=starving")));
    assert_eq!(w.attribute(3, "lowest_starving_ancestor").as_str(), Some("s"));
    assert_eq!(priority(&w, 3).as_deref(), Some("normal"));
    let (starts, preempts) = w.pass("n");
    assert_eq!((starts.len(), starts[0].operation, numbers(&preempts)), (1, op(3), vec![5]));
    assert!(preempts[0].reason.contains("own priority of the preemptor: none"), "{}", preempts[0].reason);
    assert_eq!(w.s.metrics(TREE).unwrap().improperly_preempted_resources.cpu, Cpu(100));
    assert_eq!(w.s.pool_usage(TREE, "s").unwrap().cpu, Cpu(600));

    let mut w = scope_world("operation_only");
    assert_eq!((priority(&w, 2).as_deref(), priority(&w, 3).as_deref()), (Some("normal"), Some("none")));
    assert_eq!(w.pass("n"), (vec![], vec![]));
}

#[test]
fn limits_23_9() {
    let check = |limit: i64, threshold: &str, expected: &[u32]| {
        let tree = format!("preemption_satisfaction_threshold=0.99;{threshold}");
        let mut w = World::with(&map(""), &map(&tree));
        w.pool("p", "", "").unwrap();
        w.node("n", 10.0, 10);
        w.idle(1, "p");
        for n in 1..=3 {
            w.place(n, 1, "n", 1.0);
        }
        w.update();
        assert_eq!(w.pass("n"), (vec![], vec![]));
        let mut limits = Amounts::NONE;
        limits.set(Resource::UserSlots, Some(limit));
        let parameters = RuntimeParameters { resource_limits: limits, ..RuntimeParameters::default() };
        w.s.set_parameters(op(1), TREE, parameters).unwrap();
        w.update();
        assert_eq!(w.pass("n"), (vec![], vec![]), "the backoff of the node");
        w.wait(5.0);
        let (starts, preempts) = w.pass("n");
        assert!(starts.is_empty());
        assert_eq!(numbers(&preempts), expected);
        for p in &preempts {
            assert_eq!(p.kind, PreemptionKind::ResourceLimitsViolated);
            assert!(p.reason.contains(&format!("of operation {}", op(1))), "{}", p.reason);
        }
        w.wait(6.0);
        assert_eq!(w.pass("n"), (vec![], vec![]), "exactly these");
    };
    check(1, "", &[3, 2]);
    check(0, "", &[3, 2, 1]);
    check(1, "non_preemptible_resource_usage_threshold={user_slots=3}", &[]);
}

#[test]
fn limits_of_a_pool_over_several_nodes() {
    // The same limit is watched by all nodes; together they take just what is too much (16.5).
    let thresholds =
        "preemption_satisfaction_threshold=0.01;aggressive_preemption_satisfaction_threshold=0.01";
    let mut w = World::with(&map(""), &map(&format!("preemptive_scheduling_backoff=0;{thresholds}")));
    w.pool("p", "", "").unwrap();
    w.idle(1, "p");
    for n in 0..6 {
        w.node(&format!("n{n}"), 10.0, 10);
        w.place(n + 1, 1, &format!("n{n}"), 1.0);
    }
    w.update();
    w.s.set_pool_options(TREE, "p", &map("resource_limits={cpu=4}")).unwrap();
    w.update();
    // Plans made from one state, carried out one after another.
    let plans: Vec<Plan> = (0..6).map(|n| w.s.plan(w.now, &format!("n{n}"))).collect();
    assert_eq!(plans.iter().map(|p| p.preemptions.len()).collect::<Vec<_>>(), [0, 1, 1, 1, 1, 1]);
    for plan in plans {
        w.s.apply(plan, || unreachable!("nothing is started"));
        w.check();
    }
    let orders = w.s.drain_orders();
    assert_eq!(orders.iter().map(|o| o.allocation().0.0[0]).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(w.s.pool_usage(TREE, "p").unwrap().cpu, Cpu(400));
}

#[test]
fn hard_overcommit_23_10() {
    let mut w = example_23_3("", "", 2.0);
    // C gives up; the groups are still those of the newest update.
    w.s.set_demand(op(3), &[]).unwrap();
    let limits = |w: &mut World, cpu: f64, slots: i64| w.node("n", cpu, slots);
    limits(&mut w, 3.0, 100);
    let since = w.now;
    let (starts, preempts) = w.pass("n");
    assert!(starts.is_empty());
    assert_eq!(numbers(&preempts), [6, 10, 5]);
    assert!(preempts.iter().all(|p| p.reason.contains("limits of node \"n\" are violated")));
    for n in [6, 10, 5] {
        w.s.allocation_finished(allocation(n));
    }
    limits(&mut w, 3.0, 100);
    assert_eq!(w.s.node("n").unwrap().resource_usage.cpu, Cpu(400));
    w.now = since + Span::from_secs(15);
    assert_eq!(w.pass("n"), (vec![], vec![]), "not longer than 15 s yet");
    w.wait(0.1);
    let (starts, preempts) = w.pass("n");
    assert!(starts.is_empty());
    assert_eq!((numbers(&preempts), kinds(&preempts)), (vec![4], vec![PreemptionKind::ResourceOvercommit]));
}

#[test]
fn throughput_23_13() {
    // Every node starts at most one allocation by preemption in 5 s.
    let mut w = World::with(&map(""), &map("fair_share_starvation_timeout=0"));
    w.pool("old", "", "").unwrap();
    w.pool("new", "", "strong_guarantee_resources={cpu=12}").unwrap();
    for n in 0..3 {
        w.node(&format!("n{n}"), 4.0, 10);
    }
    w.idle(1, "old");
    for n in 0..12 {
        w.place(n + 1, 1, &format!("n{}", n % 3), 1.0);
    }
    w.run(2, "new", 1.0, 12);
    w.update();
    w.update();
    let begin = w.now;
    let mut started = Vec::new();
    while started.len() < 12 {
        for n in 0..3 {
            let name = format!("n{n}");
            let (starts, preempts) = w.pass(&name);
            for p in &preempts {
                w.s.allocation_finished(p.allocation);
            }
            w.check();
            assert!(starts.len() <= 1);
            started.extend(starts.iter().map(|_| w.now.since(begin).as_secs_f64()));
        }
        w.wait(0.9);
        w.update();
    }
    // Four on each node: the first at once, the others 5 s apart.
    assert!(started[2] < 1.0 && started[3] > 5.0 && started[6] > 10.0 && started[9] > 15.0, "{started:?}");
}

#[test]
fn graceful_preemption_14_4() {
    let mut w = World::new();
    w.pool("p", "", "resource_limits={cpu=2}").unwrap();
    w.node("n", 10.0, 10);
    let graceful = OperationDesc { preemption_mode: PreemptionMode::Graceful, ..w.desc(1, "p") };
    w.register_desc(graceful).unwrap();
    w.s.set_enabled(op(1), true).unwrap();
    for n in 1..=4 {
        w.place(n, 1, "n", 1.0);
    }
    assert_eq!(w.pass("n"), (vec![], vec![]), "nothing before the first update");
    w.update();
    // Also while an allocation waits on the node, and whatever the backoff.
    let report = NodeReport {
        resource_limits: Resources { cpu: Cpu(1000), user_slots: 10, memory: 1000 << 30, ..Resources::ZERO },
        has_waiting_allocations: true,
        ..NodeReport::default()
    };
    w.s.heartbeat(w.now, "n", &report);
    let (_, preempts) = w.pass("n");
    assert_eq!(
        (numbers(&preempts), kinds(&preempts)),
        (vec![4, 3], vec![PreemptionKind::GracefulPreemption; 2])
    );
    assert_eq!(preempts[0].timeout, Span::from_secs(60));
    assert_eq!(w.pass("n"), (vec![], vec![]), "once");
}

#[test]
fn starving_operations_are_spared() {
    // B starves itself: nothing is taken from it unless the tree allows it.
    let run = |tree: &str| {
        let tree = format!("fair_share_starvation_timeout=0;enable_pool_starvation=%false;{tree}");
        let mut w = World::with(&map(""), &map(&tree));
        w.pool("b", "", "strong_guarantee_resources={cpu=4}").unwrap();
        w.pool("c", "", "strong_guarantee_resources={cpu=4}").unwrap();
        w.tagged_node("n", 4.0, 10, &["n"]);
        w.tagged_node("m", 4.0, 10, &["m"]);
        w.run(1, "b", 1.0, 4);
        w.run(2, "c", 1.0, 4);
        // C's operation can only use node n, where B has something beyond its aggressive bound.
        w.place(1, 1, "n", 1.0);
        w.place(2, 1, "n", 1.0);
        w.place(3, 1, "n", 1.0);
        w.idle(3, "c");
        w.place(4, 3, "m", 4.0);
        w.update();
        w.update();
        w
    };
    let w = run("enable_aggressive_starvation=%true;fair_share_aggressive_starvation_timeout=0");
    assert_eq!(w.attribute(1, "starvation_status").as_str(), Some("aggressively_starving"));
    let plan = w.s.plan(w.now, "n");
    assert_eq!(plan.preemptions, vec![]);
}

#[test]
fn the_tolerance_of_limits_12_4() {
    let run = |tolerance: &str| {
        let tree = "fair_share_starvation_timeout=0;preemptive_scheduling_backoff=0";
        let mut w = World::with(&map(""), &map(tree));
        w.pool("top", "", &format!("resource_limits={{cpu=4}};{tolerance}")).unwrap();
        w.pool("a", "top", "").unwrap();
        w.pool("b", "top", "weight=3").unwrap();
        w.node("n", 10.0, 10);
        w.idle(1, "a");
        for n in 1..=4 {
            w.place(n, 1, "n", 1.0);
        }
        w.run(2, "b", 1.0, 4);
        w.update();
        w.update();
        w
    };
    // The pool is full: without a tolerance its operations cannot preempt each other.
    let mut w = run("");
    assert_eq!(w.attribute(2, "starvation_status").as_str(), Some("starving"));
    assert_eq!(w.pass("n"), (vec![], vec![]));
    // With it one starts, and another one has to go for the limit.
    let mut w = run("resource_limits_overcommit_tolerance={cpu=1}");
    let (starts, preempts) = w.pass("n");
    assert_eq!((starts.len(), numbers(&preempts)), (1, vec![4]));
    assert_eq!(kinds(&preempts), [PreemptionKind::ResourceLimitsViolated]);
    assert!(preempts[0].reason.contains("of pool \"top\""), "{}", preempts[0].reason);
    assert_eq!(w.s.pool_usage(TREE, "top").unwrap().cpu, Cpu(400));
}

#[test]
fn disabled_nodes_8_2() {
    let mut w = World::new();
    w.pool("p", "", "").unwrap();
    w.node("n", 4.0, 10);
    w.idle(1, "p");
    w.place(1, 1, "n", 1.0);
    w.update();
    w.node("n", 4.0, 0);
    let plan = w.s.plan(w.now, "n");
    assert_eq!((plan.skipped, plan.aborts.len()), (Some(Skipped::NoSlots), 1));
    assert!(w.schedule("n").is_empty());
    let orders = w.s.drain_orders();
    let reason = AbortReason::NodeWithDisabledJobs;
    let expected = Order::Abort { allocation: allocation(1), operation: op(1), node: "n".into(), reason };
    assert_eq!(orders, std::slice::from_ref(&expected));
    w.schedule("n");
    assert_eq!(w.s.drain_orders(), [], "once");
    assert_eq!(w.s.standing_orders("n"), [expected]);
}

#[test]
fn a_stale_preemption_happens_as_a_whole_or_not_at_all() {
    // The preemptor is gone: its victims stay.
    let mut w = example_23_3("", "", 2.0);
    let plan = w.s.plan(w.now, "n");
    assert_eq!((plan.starts.len(), plan.preemptions.len()), (1, 2));
    w.unregister(3);
    assert!(w.s.apply(plan.clone(), || unreachable!()).is_empty());
    w.check();
    assert_eq!(w.s.drain_orders(), []);

    // One victim has ended meanwhile: the rest is enough.
    let mut w = example_23_3("", "", 2.0);
    let plan = w.s.plan(w.now, "n");
    w.s.allocation_finished(allocation(10));
    let starts = w.s.apply(plan, || allocation(100));
    w.check();
    assert_eq!((starts.len(), w.s.drain_orders().len()), (1, 0));

    // The limits have dropped: the victims would not be enough, so nothing happens.
    let mut w = example_23_3("", "", 2.0);
    let plan = w.s.plan(w.now, "n");
    w.node("n", 6.0, 100);
    assert!(w.s.apply(plan, || unreachable!()).is_empty());
    w.check();
    assert_eq!(w.s.drain_orders(), []);
}

#[test]
fn a_preemptor_that_comes_to_nothing_spares_its_victims() {
    let mut w = example_23_3("preemptive_scheduling_backoff=0", "", 2.0);
    let starts = w.schedule("n");
    assert_eq!(starts.len(), 1);
    assert_eq!(w.s.preemption_log().len(), 2);
    // Its controller has no use for it, and nobody was told yet.
    w.s.allocation_failed(w.now, starts[0].allocation, SettleFailure::Other);
    w.check();
    assert_eq!((w.s.drain_orders(), w.s.preemption_log().len()), (vec![], 0));
    assert_eq!(w.s.pool_usage(TREE, "a").unwrap().cpu, Cpu(600));
    assert_eq!(w.s.pool_usage(TREE, "b").unwrap().cpu, Cpu(200));
    assert_eq!(w.s.metrics(TREE).unwrap().preempted[&("b".into(), PreemptionKind::Preemption)].0, 0);
    // The next one is sent: then it is too late.
    let (starts, preempts) = w.pass("n");
    assert_eq!((starts.len(), preempts.len()), (1, 2));
    w.s.allocation_failed(w.now, starts[0].allocation, SettleFailure::Other);
    w.check();
    assert_eq!(w.s.pool_usage(TREE, "b").unwrap().cpu, Cpu(0));
    assert_eq!(w.s.plan(w.now, "n").skipped, None, "nobody waits there any more");
}

#[test]
fn a_node_lost_in_the_middle_of_a_preemption() {
    let mut w = example_23_3("", "", 2.0);
    let (starts, preempts) = w.pass("n");
    assert_eq!((starts.len(), preempts.len()), (1, 2));
    let lost = w.s.remove_node("n");
    w.check();
    assert_eq!(lost.len(), 8);
    for pool in ["a", "b", "c", "<Root>"] {
        assert!(w.s.pool_usage(TREE, pool).unwrap().is_zero(), "{pool}");
    }
    // The log remembers.
    assert_eq!(w.s.preemption_log().len(), 2);
    w.update();
}

#[test]
fn options_of_operations() {
    let mut w = example_23_3("", "", 2.0);
    let refuse = |text: &str, parts: &[&str]| drop(refused(OperationOptions::parse(&map(text)), parts));
    refuse("allocation_preemption_timeout=-5", &["allocation_preemption_timeout", "-5", "at least"]);
    refuse("enable_limiting_ancestor_check=3", &["enable_limiting_ancestor_check", "boolean", "3"]);
    refuse("no_such_option=3", &["no_such_option"]);
    let options = OperationOptions::parse(&map("allocation_preemption_timeout=\"3s\"")).unwrap();
    w.s.set_operation_options(op(1), options.clone()).unwrap();
    assert_eq!(w.s.operation_options(op(1)).unwrap(), options);
    let (_, preempts) = w.pass("n");
    let timeouts: Vec<_> = preempts.iter().map(|p| (p.allocation.0.0[0], p.timeout.as_millis())).collect();
    assert_eq!(timeouts, [(6, 3_000), (10, 10_000)]);
    w.update();
    assert_eq!(w.attribute(1, "allocation_preemption_timeout").as_i64(), Some(3_000));
    // The text is for users; nodes need not hear it.
    let (config, _) =
        scheduler::config::SchedulerConfig::parse(&map("send_preemption_reason_in_node_heartbeat=%false"))
            .unwrap();
    w.s.set_config(config);
    assert!(w.s.standing_orders("n").iter().all(|o| matches!(o, Order::Preempt(p) if p.reason.is_empty())));
}

#[test]
fn counters_and_statistics() {
    let mut w = example_23_3("", "", 2.0);
    let (_, preempts) = w.pass("n");
    assert_eq!(preempts.len(), 2);
    let metrics = w.s.metrics(TREE).unwrap();
    assert_eq!(metrics.scheduled_allocations, [0, 0, 0, 1]);
    assert_eq!(metrics.operation_count_by_preemption_priority, [2, 1, 0]);
    let kind = PreemptionKind::Preemption;
    assert_eq!(metrics.preempted[&("a".into(), kind)], (1, cores(1.0)));
    assert_eq!(metrics.preempted[&("b".into(), kind)], (1, cores(2.0)));
    assert!(metrics.improperly_preempted_resources.is_zero(), "C itself starves");
    let state = w.s.node("n").unwrap();
    let pass = state.last_preemptive_heartbeat_statistics.expect("one");
    assert_eq!((pass.scheduled_during_preemption, pass.preempted), (1, 2));
    assert_eq!((pass.preemptible_allocation_count, pass.resource_usage_discount.cpu), (3, Cpu(400)));
    assert_eq!(state.last_non_preemptive_heartbeat_statistics, None);
    w.wait(2.0);
    w.node("n", 8.0, 100);
    let cpu_time = w.s.node("n").unwrap().running_job_statistics.cpu_time;
    assert!(cpu_time[2] > 0.0 && cpu_time[0] > 0.0, "{cpu_time:?}");
    let record = w.s.preemptions_of(op(1)).next().expect("one").to_map();
    assert_eq!(record.get("pool").and_then(|v| v.as_str()), Some("a"));
    assert_eq!(record.get("properly_starving").and_then(|v| v.as_bool()), Some(true));
}
