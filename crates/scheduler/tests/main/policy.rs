//! Options and faults around starting and preempting that have no worked example.

use crate::common::*;
use scheduler::*;
use vocab::*;

fn operations(starts: &[Start]) -> Vec<u32> {
    starts.iter().map(|s| s.operation.0.0[0]).collect()
}

/// 11.2: operations below what their guarantees promise come first.
#[test]
fn guarantee_priority() {
    let run = |enabled: bool| {
        let mut w = World::with(&map(""), &map(&format!("enable_guarantee_priority_scheduling=%{enabled}")));
        let promised = "compute_promised_guarantee_fair_share=%true";
        w.pool("g", "", &format!("strong_guarantee_resources={{cpu=6}};{promised}")).unwrap();
        w.pool("f", "", "").unwrap();
        w.node("n", 8.0, 100);
        w.node("m", 2.0, 100);
        w.run(1, "g", 1.0, 20);
        w.run(2, "f", 1.0, 20);
        for n in 1..=5 {
            w.place(n, 1, "n", 1.0);
        }
        w.update();
        w
    };
    // 5 of 8 against nothing: without priorities F comes first.
    let mut w = run(false);
    assert_eq!(operations(&w.schedule("m")), [2, 2]);
    let mut w = run(true);
    assert_eq!(w.attribute(1, "scheduling_priority").as_str(), Some("high"));
    assert_eq!(w.attribute(2, "scheduling_priority").as_str(), Some("medium"));
    assert_eq!(
        (w.attribute(1, "scheduling_index").as_i64(), w.attribute(2, "scheduling_index").as_i64()),
        (Some(0), Some(1))
    );
    assert_eq!(operations(&w.schedule("m")), [1, 1]);
    let metrics = w.s.metrics(TREE).unwrap();
    assert_eq!(metrics.scheduled_allocations[Stage::RegularHighPriority as usize], 2);
}

/// 11.3: once a batch has started something, the next one wants more spare resources.
#[test]
fn batches() {
    let run = |batch: &str| {
        let mut w = World::with(&map(""), &map(batch));
        w.pool("p", "", "").unwrap();
        w.node("n", 6.0, 100);
        w.run(1, "p", 1.0, 2);
        w.run(2, "p", 1.0, 2);
        w.update();
        operations(&w.schedule("n"))
    };
    assert_eq!(run(""), [1, 2, 1, 2]);
    let small = "fallback_min_spare_allocation_resources={cpu=4}";
    assert_eq!(run(&format!("batch_operation_scheduling={{batch_size=1;{small}}}")), [1, 1, 2]);
    let large = "fallback_min_spare_allocation_resources={cpu=5}";
    assert_eq!(run(&format!("batch_operation_scheduling={{batch_size=1;{large}}}")), [1, 1]);
    assert_eq!(run(&format!("batch_operation_scheduling={{batch_size=2;{large}}}")), [1, 2, 1, 2]);
}

#[test]
fn options_are_checked() {
    let mut w = World::new();
    w.pool("p", "", "").unwrap();
    let tree = |text: &str, parts: &[&str]| {
        drop(refused(scheduler::config::TreeConfig::parse(&map(text)), parts));
    };
    tree(
        "aggressive_preemption_satisfaction_threshold=1.5",
        &["aggressive_preemption_satisfaction_threshold", "1.5 > 1", "less than or equal"],
    );
    tree(
        "fair_share_starvation_timeout=200000",
        &["fair_share_starvation_timeout", "fair_share_aggressive_starvation_timeout", "200s > 120s"],
    );
    tree("preemptive_scheduling_backoff=-1", &["preemptive_scheduling_backoff", "at least 0", "-1"]);
    tree("allocation_preemption_timeout=soon", &["allocation_preemption_timeout", "\"10s\"", "soon"]);
    tree("fair_share_starvation_tolerance=1.1", &["fair_share_starvation_tolerance", "0..=1", "1.1"]);
    tree("scheduling_preemption_priority_scope=all", &["operation_only", "operation_and_ancestors", "all"]);
    tree(
        "non_preemptible_resource_usage_threshold=#",
        &["non_preemptible_resource_usage_threshold", "not null"],
    );
    tree("non_preemptible_resource_usage_threshold={cpu=-1}", &["/cpu", "-1"]);
    let mut operation = |change: &dyn Fn(&mut OperationDesc), parts: &[&str]| {
        let mut desc = w.desc(1, "p");
        change(&mut desc);
        refused(w.register_desc(desc), parts);
    };
    operation(
        &|d| d.fair_share_starvation_tolerance = Some(1.5),
        &["fair_share_starvation_tolerance", "0..=1", "1.5"],
    );
    operation(
        &|d| d.fair_share_starvation_tolerance = Some(f64::NAN),
        &["fair_share_starvation_tolerance", "NaN"],
    );
    let mut negative = Amounts::NONE;
    negative.set(Resource::Cpu, Some(-150));
    operation(
        &|d| d.non_preemptible_resource_usage_threshold = Some(negative),
        &["non_preemptible_resource_usage_threshold/cpu", "at least 0", "-1.5"],
    );
    operation(&|d| d.trees[0].parameters.resource_limits = negative, &["resource_limits/cpu", "-1.5"]);
}

#[test]
fn a_changed_option_acts_at_the_next_update() {
    let mut w = World::with(&map(""), &map("fair_share_starvation_timeout=60000"));
    w.pool("p", "", "").unwrap();
    w.pool("q", "", "").unwrap();
    w.node("n", 4.0, 10);
    w.idle(1, "q");
    for n in 1..=4 {
        w.place(n, 1, "n", 1.0);
    }
    w.run(2, "p", 1.0, 4);
    w.update();
    w.wait(10.0);
    w.update();
    assert_eq!(w.pass("n"), (vec![], vec![]));
    w.s.set_pool_options(TREE, "p", &map("fair_share_starvation_timeout=5000")).unwrap();
    w.update();
    w.wait(5.0);
    let (starts, preempts) = w.pass("n");
    assert_eq!((starts.len(), preempts.len()), (1, 1));
    // Protected from now on.
    w.s.set_tree_config(
        TREE,
        &map("non_preemptible_resource_usage_threshold={user_slots=4};preemptive_scheduling_backoff=0"),
    )
    .unwrap();
    w.s.allocation_finished(preempts[0].allocation);
    w.update();
    assert_eq!(w.groups(1), [3, 0, 0]);
    assert_eq!(w.pass("n"), (vec![], vec![]));
}

#[test]
fn alerts() {
    let mut w = World::with(&map(""), &map("waiting_for_resources_on_node_timeout=5000"));
    w.pool("p", "", "waiting_for_resources_on_node_timeout=3000").unwrap();
    let texts: Vec<String> = w.s.alerts().iter().map(|a| format!("{}: {}", a.name, a.error)).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts.iter().all(|t| t.starts_with("waiting_timeout_below_preemption_timeout")), "{texts:?}");
    w.s.set_tree_config(TREE, &map("allocation_preemption_timeout=3000")).unwrap();
    assert_eq!(w.s.alerts(), []);
}

#[test]
fn news_of_starvation() {
    let mut w =
        World::with(&map(""), &map("fair_share_starvation_timeout=0;enable_detailed_starvation_logs=%true"));
    w.pool("p", "", "").unwrap();
    w.node("n", 4.0, 10);
    w.run(1, "p", 1.0, 4);
    w.update();
    assert_eq!(w.s.drain_starvation_notices(), []);
    w.update();
    let began = w.now;
    let news = w.s.drain_starvation_notices();
    assert_eq!(news.iter().map(|n| (n.operation, n.ended)).collect::<Vec<_>>(), [(op(1), None)]);
    w.schedule("n");
    w.wait(1.8);
    w.update();
    let ended = Some((StarvationEnd::UsageIncreased, w.now.since(began)));
    let news = w.s.drain_starvation_notices();
    assert_eq!(news.iter().map(|n| (n.operation, n.ended)).collect::<Vec<_>>(), [(op(1), ended)]);
    let intervals = w.s.metrics(TREE).unwrap().starvation;
    assert_eq!(intervals[StarvationEnd::UsageIncreased as usize].duration, Span::from_secs(2));
}

#[test]
fn reports_twice_late_and_too_large() {
    let mut w = World::with(&map(""), &map("preemptive_scheduling_backoff=0"));
    w.pool("p", "", "").unwrap();
    w.node("n", 4.0, 10);
    w.run(1, "p", 1.0, 10);
    w.update();
    let starts = w.schedule("n");
    assert_eq!(starts.len(), 4);
    // It holds more than it has: nothing is started, and nothing is preempted for what nobody holds.
    let limits = Resources { user_slots: 10, cpu: Cpu(400), memory: 1000 << 30, ..Resources::ZERO };
    let report = NodeReport {
        resource_limits: limits,
        resource_usage: Resources { cpu: Cpu(900), ..Resources::ZERO },
        ..NodeReport::default()
    };
    for s in &starts {
        assert!(w.s.allocation_usage(s.allocation, s.resources));
    }
    for _ in 0..2 {
        w.s.heartbeat(w.now, "n", &report);
        w.check();
    }
    let since = w.s.node("n").unwrap().overcommitted_since;
    assert_eq!(since, Some(w.now));
    // An older message arrives late: time does not go back.
    w.s.heartbeat(Time(w.now.0 - 3_000_000), "n", &report);
    assert_eq!(w.s.node("n").unwrap().overcommitted_since, since);
    assert!(w.schedule("n").is_empty());
    w.s.drain_orders();
    // Nobody knows these.
    let stranger = allocation(99);
    assert!(!w.s.allocation_usage(stranger, limits));
    assert!(!w.s.allocation_job_started(stranger));
    assert!(!w.s.allocation_finished(stranger));
    assert!(!w.s.allocation_failed(w.now, stranger, SettleFailure::Backoff));
    w.check();
    // Ends are heard twice.
    assert!(w.s.allocation_finished(starts[0].allocation));
    assert!(!w.s.allocation_finished(starts[0].allocation));
    w.check();
}

#[test]
fn a_node_that_grows_again_keeps_what_it_has() {
    let mut w = World::with(&map(""), &map("preemptive_scheduling_backoff=0"));
    w.pool("p", "", "").unwrap();
    w.pool("q", "", "strong_guarantee_resources={cpu=4}").unwrap();
    w.node("n", 4.0, 10);
    w.idle(1, "p");
    for n in 1..=4 {
        w.place(n, 1, "n", 1.0);
    }
    w.run(2, "q", 4.0, 1);
    w.update();
    w.node("n", 3.0, 10);
    w.wait(14.0);
    w.node("n", 4.0, 10);
    w.wait(14.0);
    w.node("n", 3.0, 10);
    w.wait(2.0);
    // P has no fair share at all, so one goes for the node's limits, by the soft rule.
    let (_, preempts) = w.pass("n");
    assert_eq!(preempts.iter().map(|p| p.kind).collect::<Vec<_>>(), [PreemptionKind::Preemption]);
}

/// D4: an operation above its share does not preempt itself for its starving pool.
#[test]
fn nobody_preempts_himself() {
    let tree =
        "fair_share_starvation_timeout=0;preemptive_scheduling_backoff=0;fair_share_starvation_tolerance=1";
    let mut w = World::with(&map(""), &map(tree));
    w.pool("p", "", "strong_guarantee_resources={cpu=6}").unwrap();
    w.pool("q", "", "strong_guarantee_resources={cpu=4}").unwrap();
    w.node("n", 5.0, 100);
    w.node("m", 7.0, 100);
    // X cannot be placed; Y has more than its share while their pool has less.
    w.run(1, "p", 1.0, 4);
    let min_needed = Resources { network: 1, ..cores(1.0) };
    w.s.set_demand(op(1), &[DemandGroup { task: 0, min_needed, count: 4 }]).unwrap();
    w.run(2, "p", 1.0, 8);
    w.idle(3, "q");
    for n in 1..=5 {
        w.place(n, 2, "n", 1.0);
    }
    for n in 6..=11 {
        w.place(n, 3, "m", 1.0);
    }
    w.place(12, 2, "m", 1.0);
    w.update();
    w.update();
    assert_eq!(w.attribute(2, "preemption_priority").as_str(), Some("normal"));
    assert!(w.groups(2)[2] > 0, "{:?}", w.groups(2));
    assert_eq!(w.pass("n"), (vec![], vec![]), "only its own are there");
    let (starts, preempts) = w.pass("m");
    let victims: Vec<u32> = preempts.iter().map(|p| p.allocation.0.0[0]).collect();
    assert_eq!((operations(&starts), victims), (vec![2], vec![11]), "Q's youngest, not its own");
}

#[test]
fn the_best_of_several_trees() {
    let mut w = World::new();
    w.s.create_tree("other", &map("nodes_filter=other")).unwrap();
    let pool = PoolDesc {
        id: ObjectId(Guid([9, 9, 9, 9])),
        name: "p".into(),
        parent: "<Root>".into(),
        options: map("strong_guarantee_resources={cpu=3}"),
    };
    w.s.create_pool("other", &pool).unwrap();
    w.s.set_tree_config(TREE, &map("nodes_filter=\"!other\"")).unwrap();
    w.pool("p", "", "").unwrap();
    w.node("n", 4.0, 10);
    let mut desc = w.desc(1, "p");
    desc.trees.push(TreeParameters::new("other", "p"));
    w.register_desc(desc).unwrap();
    w.s.set_enabled(op(1), true).unwrap();
    w.want(1, 1.0, 2);
    w.update();
    // The other one has no nodes.
    assert_eq!(w.s.best_tree(op(1), false).unwrap().as_deref(), Some(TREE));
    w.tagged_node("m", 4.0, 10, &["other"]);
    w.update();
    assert_eq!(w.s.best_tree(op(1), true).unwrap().as_deref(), Some("other"));
    let alone = w.desc(2, "p");
    w.register_desc(alone).unwrap();
    assert_eq!(w.s.best_tree(op(2), true).unwrap(), None, "nothing to choose from");
}

#[test]
fn lowered_limits_pools_removed_and_moved_while_they_run() {
    let mut w = World::with(&map(""), &map("preemptive_scheduling_backoff=0"));
    w.pool("top", "", "resource_limits={cpu=4}").unwrap();
    w.pool("p", "top", "").unwrap();
    w.pool("line", "", "mode=fifo").unwrap();
    w.node("n", 10.0, 20);
    w.run(1, "p", 1.0, 9);
    w.update();
    assert_eq!(w.schedule("n").len(), 4);
    refused(w.s.move_pool(TREE, "p", "line"), &["FIFO"]);
    // Moved out of the limit with its usage, and back below a smaller one.
    w.s.move_pool(TREE, "p", "<Root>").unwrap();
    w.check();
    w.update();
    assert_eq!(w.schedule("n").len(), 5);
    w.s.move_pool(TREE, "p", "top").unwrap();
    w.check();
    assert_eq!(w.s.pool_usage(TREE, "top").unwrap().cpu, Cpu(900));
    w.update();
    let (starts, preempts) = w.pass("n");
    assert!(starts.is_empty());
    assert_eq!(preempts.len(), 5, "back to the limit of its new parent");
    assert_eq!(w.s.pool_usage(TREE, "top").unwrap().cpu, Cpu(400));
    // Limits of counts below what runs stop nothing that runs.
    w.s.set_pool_options(TREE, "p", &map("max_running_operation_count=0")).unwrap();
    w.s.remove_pool(TREE, "p").unwrap();
    w.check();
    w.update();
    assert_eq!(w.standing(1), "running");
    assert_eq!(w.s.pool_usage(TREE, "top").unwrap(), Resources::ZERO);
    assert_eq!(w.s.pool_usage(TREE, "p").unwrap().cpu, Cpu(400), "what is left of it holds on");
}

/// Operations that need the same are passed over together; each is counted once, for its own reason.
#[test]
fn refusals_of_a_class() {
    let mut w = World::new();
    w.pool("p", "", "").unwrap();
    w.node("n", 3.0, 100);
    w.run(1, "p", 2.0, 2);
    let filter = TagFilter::parse("elsewhere").unwrap();
    let elsewhere = RuntimeParameters { scheduling_tag_filter: filter, ..RuntimeParameters::default() };
    w.s.set_parameters(op(1), TREE, elsewhere).unwrap();
    w.run(2, "p", 2.0, 2);
    w.run(3, "p", 2.0, 2);
    w.update();
    assert_eq!(operations(&w.schedule("n")), [2]);
    w.schedule("n");
    w.update();
    let shown = |n| w.attribute(n, "deactivation_reasons");
    // The second pass: one core is free, all three need two.
    assert_eq!(shown(1), map("unmatched_scheduling_tag=1;min_needed_resources_unsatisfied=1").into());
    assert_eq!(shown(2), map("min_needed_resources_unsatisfied=2").into());
    assert_eq!(shown(3), map("min_needed_resources_unsatisfied=2").into());
    let counted = w.s.metrics(TREE).unwrap().deactivations;
    assert_eq!(counted[Deactivation::MinNeededResourcesUnsatisfied as usize], 5);
    assert_eq!(counted[Deactivation::UnmatchedSchedulingTag as usize], 1);
}
