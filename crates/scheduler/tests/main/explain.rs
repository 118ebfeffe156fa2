//! Explanations of operations, one golden text for each situation.

use crate::common::*;
use expect_test::{Expect, expect};
use scheduler::*;
use vocab::*;

#[track_caller]
fn check(w: &World, n: u32, expected: Expect) {
    let explanation = w.s.explain(op(n), w.now).expect("known");
    let text = explanation.to_string().replace(&op(1).to_string(), "ONE").replace(&op(2).to_string(), "TWO");
    expected.assert_eq(&text);
}

fn world(tree: &str) -> World {
    let mut w = World::with(&map(""), &map(tree));
    w.pool("p", "", "").unwrap();
    w.pool("q", "", "").unwrap();
    w.node("n", 4.0, 10);
    w
}

fn advice(w: &World, n: u32) -> Vec<Advice> {
    w.s.explain(op(n), w.now).expect("known").trees.remove(0).advice
}

#[test]
fn waits_for_a_pool() {
    let mut w = world("");
    w.pool("p1", "p", "max_running_operation_count=10").unwrap();
    w.s.set_pool_options(TREE, "p", &map("max_running_operation_count=1")).unwrap();
    for n in [5, 6, 1] {
        w.register(n, "p1").unwrap();
    }
    w.update();
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p/p1" of tree "physical": it waits to run: 1 operation runs in pool "p", at most 1 may; 1 operation is before it in the queue.
          It has 0 allocations, wants 0 more; usage 0 % of the cluster, fair share 0 %, demand 0 %.
          To change that: others in pool "p" finish, or its max_running_operation_count is at least 3.
    "#]],
    );
    assert_eq!(advice(&w, 1), [Advice::RaiseRunningLimit { pool: "p".into(), to: 3 }]);
    // What it says is right.
    w.s.set_pool_options(TREE, "p", &map("max_running_operation_count=3")).unwrap();
    assert_eq!(w.standing(1), "running");
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p/p1" of tree "physical": it is not running yet, so it takes no part in scheduling.
          It has 0 allocations, wants 0 more; usage 0 % of the cluster, fair share 0 %, demand 0 %.
          Nothing needs to be done: it is a matter of time.
    "#]],
    );
}

#[test]
fn suspended_and_satisfied() {
    let mut w = world("");
    w.run(1, "p", 1.0, 2);
    w.s.set_suspended(op(1), true).unwrap();
    w.update();
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": it is suspended.
          It has 0 allocations, wants 2 more; usage 0 % of the cluster, fair share 0 %, demand 0 %.
          To change that: resume it.
    "#]],
    );
    w.s.set_suspended(op(1), false).unwrap();
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": its demand is new: the next fair-share update counts it.
          It has 0 allocations, wants 2 more; usage 0 % of the cluster, fair share 0 %, demand 0 %.
          Nothing needs to be done: it is a matter of time.
    "#]],
    );
    w.update();
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": there is room on 1 node: something is started in the next pass.
          It has 0 allocations, wants 2 more; usage 0 % of the cluster, fair share 50 %, demand 50 %.
          Below its fair share for 0 s; it starves in 30 s.
          Of 1 node: 1 with room for it.
          Nothing needs to be done: it is a matter of time.
    "#]],
    );
    w.schedule("n");
    w.update();
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": all that it needs is started.
          It has 2 allocations, wants 0 more; usage 50 % of the cluster, fair share 50 %, demand 50 %. Of its allocations 1 are protected, 1 give way only to aggressively starving ones, 0 to any starving one.
    "#]],
    );
}

#[test]
fn far_behind_in_a_line() {
    let mut w = world("max_schedulable_element_count_in_fifo_pool=1");
    w.pool("line", "", "mode=fifo;resource_limits={cpu=2}").unwrap();
    w.run(1, "line", 1.0, 5);
    w.run(2, "line", 1.0, 5);
    w.update();
    check(
        &w,
        2,
        expect![[r#"
        Operation TWO
        In pool "/line" of tree "physical": it is too far behind in its FIFO pool (number 2): without a fair share only the first 1 are looked at.
          It has 0 allocations, wants 5 more; usage 0 % of the cluster, fair share 0 %, demand 125 %.
          Nothing needs to be done: it is a matter of time.
    "#]],
    );
}

#[test]
fn no_nodes_and_no_matching_node() {
    let mut w = world("node_reconnection_timeout=0");
    w.pool("picky", "", "scheduling_tag_filter=\"ssd & big\"").unwrap();
    w.run(1, "picky", 1.0, 5);
    w.update();
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/picky" of tree "physical": no node matches the filter "ssd & big" of pool "picky".
          It has 0 allocations, wants 5 more; usage 0 % of the cluster, fair share 0 %, demand 125 %.
          To change that: change the filter, or a node comes that matches "ssd & big".
    "#]],
    );
    w.s.remove_node("n");
    w.update();
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/picky" of tree "physical": the tree has no nodes.
          It has 0 allocations, wants 5 more; usage 0 % of the cluster, fair share 0 %, demand 0 %.
          To change that: nodes must come.
    "#]],
    );
}

#[test]
fn too_large() {
    let mut w = world("");
    w.run(1, "p", 6.0, 1);
    w.update();
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": no node is large enough for one allocation (1 slot, 6 cores, 1 GiB): the largest it may use has 4 cores.
          It has 0 allocations, wants 1 more; usage 0 % of the cluster, fair share 100 %, demand 150 %.
          Below its fair share for 0 s; it starves in 30 s.
          To change that: its jobs ask for at most 4 cores, or a larger node comes.
    "#]],
    );
    assert_eq!(advice(&w, 1), [Advice::NeedLess { resource: Resource::Cpu, at_most: 400 }]);
}

#[test]
fn limits() {
    let mut w = world("");
    w.run(1, "p", 1.5, 3);
    w.s.set_pool_options(TREE, "p", &map("resource_limits={cpu=1}")).unwrap();
    w.update();
    check(
        &w,
        1,
        expect![[r#"
            Operation ONE
            In pool "/p" of tree "physical": the limits of pool "p" (1 core) are smaller than one allocation (1 slot, 1.5 cores, 1 GiB).
              It has 0 allocations, wants 3 more; usage 0 % of the cluster, fair share 25 %, demand 112.5 %.
              Below its fair share for 0 s; it starves in 30 s.
              To change that: the limit of pool "p" for cpu is at least 1.5 cores.
        "#]],
    );
    w.s.set_pool_options(TREE, "p", &map("resource_limits={cpu=2.5}")).unwrap();
    w.update();
    assert_eq!(w.schedule("n").len(), 1);
    w.update();
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": the limits of pool "p" (2.5 cores) are reached: 1 slot, 1.5 cores, 1 GiB in use, one allocation needs 1 slot, 1.5 cores, 1 GiB.
          It has 1 allocation, wants 2 more; usage 37.5 % of the cluster, fair share 62.5 %, demand 112.5 %. Of its allocations 1 are protected, 0 give way only to aggressively starving ones, 0 to any starving one.
          Below its fair share for 0.4 s; it starves in 29.6 s.
          To change that: others finish, or the limit of pool "p" for cpu is at least 3 cores.
    "#]],
    );
}

/// Its own limit is filled by nobody but itself.
#[test]
fn its_own_limit() {
    let mut w = world("");
    let mut desc = w.desc(1, "p");
    desc.trees[0].parameters.resource_limits.set(Resource::Cpu, Some(250));
    w.register_desc(desc).unwrap();
    w.s.set_enabled(op(1), true).unwrap();
    w.want(1, 1.5, 3);
    w.update();
    assert_eq!(w.schedule("n").len(), 1);
    w.update();
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": the limits of the operation itself (2.5 cores) are reached: 1 slot, 1.5 cores, 1 GiB in use, one allocation needs 1 slot, 1.5 cores, 1 GiB.
          It has 1 allocation, wants 2 more; usage 37.5 % of the cluster, fair share 62.5 %, demand 112.5 %. Of its allocations 1 are protected, 0 give way only to aggressively starving ones, 0 to any starving one.
          Below its fair share for 0.2 s; it starves in 29.8 s.
          To change that: its own jobs finish, or the limit of the operation itself for cpu is at least 3 cores.
    "#]],
    );
}

#[test]
fn nodes_without_slots() {
    let mut w = World::with(&map(""), &map("node_reconnection_timeout=0"));
    w.pool("p", "", "").unwrap();
    w.node("n", 4.0, 0);
    w.run(1, "p", 1.0, 3);
    w.update();
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": jobs are disabled on the only node that it may use, or it offers no slots: `millpond node list` says why.
          It has 0 allocations, wants 3 more; usage 0 % of the cluster, fair share 75 %, demand 75 %.
          Below its fair share for 0 s; it starves in 30 s.
          To change that: jobs are enabled on a node, or nodes come.
    "#]],
    );
    w.node("m", 8.0, 0);
    w.update();
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": jobs are disabled on all 2 nodes that it may use, or they offer no slots: `millpond node list` says why.
          It has 0 allocations, wants 3 more; usage 0 % of the cluster, fair share 25 %, demand 25 %.
          Below its fair share for 0.2 s; it starves in 29.8 s.
          To change that: jobs are enabled on a node, or nodes come.
    "#]],
    );
    assert_eq!(advice(&w, 1), [Advice::EnableNodes]);
}

#[test]
fn a_pause_of_the_controller() {
    let mut w = world("");
    w.run(1, "p", 1.0, 1);
    w.update();
    let start = w.schedule("n").remove(0);
    w.s.allocation_failed(w.now, start.allocation, SettleFailure::Throttled);
    w.update();
    w.s.allocation_failed(w.now, start.allocation, SettleFailure::Throttled);
    w.now = Time(w.now.0 - 150_000);
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": its controller could not use a place a moment ago; it is tried again in 0.1 s.
          It has 0 allocations, wants 1 more; usage 0 % of the cluster, fair share 25 %, demand 25 %.
          Below its fair share for 0.1 s; it starves in 30 s.
          Nothing needs to be done before 0.1 s have passed.
    "#]],
    );
}

#[test]
fn graceful() {
    let mut w = world("");
    let graceful = OperationDesc { preemption_mode: PreemptionMode::Graceful, ..w.desc(1, "p") };
    w.register_desc(graceful).unwrap();
    w.s.set_enabled(op(1), true).unwrap();
    w.want(1, 1.0, 8);
    w.run(2, "q", 1.0, 8);
    for n in 0..3 {
        w.place(n + 1, 1, "n", 0.9);
    }
    w.update();
    check(
        &w,
        1,
        expect![[r#"
            Operation ONE
            In pool "/p" of tree "physical": it has its fair share, and a graceful operation gets nothing above it.
              It has 3 allocations, wants 8 more; usage 67.5 % of the cluster, fair share 50 %, demand 267.5 %. Of its allocations 3 are within its share and safe; 0 are above it and are asked to go.
              To change that: others finish, or its pool is given a guarantee or a larger weight.
        "#]],
    );
}

/// The node is full of operation 2; operation 1 has waited for `seconds`.
fn full(tree: &str, seconds: f64) -> World {
    let mut w = world(tree);
    w.idle(2, "q");
    for n in 0..4 {
        w.place(n + 1, 2, "n", 1.0);
    }
    w.run(1, "p", 1.0, 8);
    w.update();
    w.wait(seconds);
    w.update();
    w
}

#[test]
fn below_its_share() {
    check(
        &full("", 10.0),
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": the nodes are taken. It is entitled to more, but has not waited long enough to have others preempted.
          It has 0 allocations, wants 8 more; usage 0 % of the cluster, fair share 50 %, demand 200 %.
          Below its fair share for 10.2 s; it starves in 19.8 s.
          Of 1 node: 1 with too little free (cpu on 1).
          Nothing needs to be done before 19.8 s have passed.
    "#]],
    );
}

#[test]
fn starving_and_preempting() {
    let mut w = full("", 31.0);
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": the nodes are taken; it starves, so what others have above their fair share is preempted for it.
          It has 0 allocations, wants 8 more; usage 0 % of the cluster, fair share 50 %, demand 200 %.
          Below its fair share for 31.2 s, starving for 0 s.
          Of 1 node: 1 with too little free (cpu on 1).
          Nothing needs to be done: it is a matter of time.
          If it takes too long: enable_aggressive_starvation of its pool lets it preempt more.
    "#]],
    );
    let (starts, preempts) = w.pass("n");
    assert_eq!((starts.len(), preempts.len()), (1, 1));
    w.wait(2.0);
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": the nodes are taken; it starves, so what others have above their fair share is preempted for it.
          It has 1 allocation, wants 7 more; usage 25 % of the cluster, fair share 50 %, demand 200 %. Of its allocations 1 are protected, 0 give way only to aggressively starving ones, 0 to any starving one.
          Below its fair share for 33.2 s, starving for 2 s.
          Of 1 node: 1 where an allocation waits for resources.
          Nothing needs to be done: it is a matter of time.
          If it takes too long: enable_aggressive_starvation of its pool lets it preempt more.
    "#]],
    );
    check(
        &w,
        2,
        expect![[r#"
            Operation TWO
            In pool "/q" of tree "physical": all that it needs is started.
              It has 3 allocations and is losing 1, wants 0 more; usage 75 % of the cluster, fair share 50 %, demand 100 %. Of its allocations 1 are protected, 1 give way only to aggressively starving ones, 1 to any starving one.
              1 allocation was taken away from it lately; the newest:
                2 s ago on node "n", 1 slot, 1 core, 1 GiB: Preempted to start allocation 1d0b14e4-100b05e5-17fff-db018fed of operation ONE; the victim was preemptible (level 2), own priority of the preemptor: normal, priority of the stage: normal
        "#]],
    );
}

#[test]
fn aggressively_starving() {
    check(
        &full("enable_aggressive_starvation=%true", 125.0),
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": the nodes are taken; it starves, so all that is not protected is preempted for it.
          It has 0 allocations, wants 8 more; usage 0 % of the cluster, fair share 50 %, demand 200 %.
          Below its fair share for 125.2 s, aggressively starving for 0 s.
          Of 1 node: 1 with too little free (cpu on 1).
          Nothing needs to be done: it is a matter of time.
    "#]],
    );
}

#[test]
fn for_its_pool() {
    let w = crate::preemption::scope_world("operation_and_ancestors");
    check(
        &w,
        3,
        expect![[r#"
        Operation 3-0-103e8-7
        In pool "/s" of tree "physical": the nodes are taken; its pool "s" starves, so what others have above their fair share is preempted for it.
          It has 2 allocations, wants 10 more; usage 40 % of the cluster, fair share 41 %, demand 240 %. Of its allocations 1 are protected, 1 give way only to aggressively starving ones, 0 to any starving one.
          Of 1 node: 1 with too little free (cpu on 1).
          Nothing needs to be done: it is a matter of time.
          If it takes too long: enable_aggressive_starvation of its pool lets it preempt more.
    "#]],
    );
}

#[test]
fn has_its_share() {
    let mut w = world("");
    w.idle(2, "q");
    for n in 0..2 {
        w.place(n + 1, 2, "n", 1.0);
    }
    w.run(1, "p", 1.0, 8);
    for n in 4..6 {
        w.place(n, 1, "n", 1.0);
    }
    w.update();
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": the nodes are taken, and it has its fair share.
          It has 2 allocations, wants 8 more; usage 50 % of the cluster, fair share 50 %, demand 250 %. Of its allocations 1 are protected, 1 give way only to aggressively starving ones, 0 to any starving one.
          Of 1 node: 1 with too little free (cpu on 1).
          To change that: others finish, or its pool is given a guarantee or a larger weight.
    "#]],
    );
}

#[test]
fn what_nodes_say() {
    let mut w = world("node_reconnection_timeout=0");
    w.tagged_node("ssd1", 2.0, 10, &["ssd"]);
    w.tagged_node("ssd2", 2.0, 10, &["ssd"]);
    w.node("off", 2.0, 0);
    w.pool("picky", "", "scheduling_tag_filter=ssd").unwrap();
    w.idle(2, "q");
    w.place(1, 2, "ssd1", 1.5);
    w.place(2, 2, "ssd2", 1.5);
    w.run(1, "picky", 1.0, 8);
    w.update();
    check(
        &w,
        1,
        expect![[r#"
            Operation ONE
            In pool "/picky" of tree "physical": the nodes are taken. It is entitled to more, but has not waited long enough to have others preempted.
              It has 0 allocations, wants 8 more; usage 0 % of the cluster, fair share 40 %, demand 80 %.
              Below its fair share for 0 s; it starves in 30 s.
              Of 4 nodes: 1 with jobs disabled or without slots; 1 that filters exclude; 2 with too little free (cpu on 2).
              Nothing needs to be done before 30 s have passed.
        "#]],
    );
}

#[test]
fn unknown_operation() {
    let w = world("");
    assert_eq!(w.s.explain(op(77), w.now).unwrap_err().code, code::NO_SUCH_OPERATION);
}

#[test]
fn preemption_that_cannot_help() {
    // All that the other one has is protected.
    let mut w = world("");
    let protected = "non_preemptible_resource_usage_threshold={user_slots=100}";
    w.s.set_pool_options(TREE, "q", &map(protected)).unwrap();
    w.run(2, "q", 1.0, 4);
    w.update();
    assert_eq!(w.schedule("n").len(), 4);
    w.run(1, "p", 1.0, 2);
    w.update();
    w.wait(31.0);
    w.update();
    check(
        &w,
        1,
        expect![[r#"
            Operation ONE
            In pool "/p" of tree "physical": the nodes are taken; it starves, but what others have above their fair share is not enough to make room for it on any node.
              It has 0 allocations, wants 2 more; usage 0 % of the cluster, fair share 50 %, demand 50 %.
              Below its fair share for 31.2 s, starving for 0 s.
              Of 1 node: 1 with too little free (cpu on 1).
              To change that: others finish; they are protected from preemption.
        "#]],
    );
    assert!(advice(&w, 1).contains(&Advice::OthersFinish));
    let (starts, preempts) = w.pass("n");
    assert_eq!((starts.len(), preempts.len()), (0, 0), "what it says is right");
    w.s.set_pool_options(TREE, "q", &map("")).unwrap();
    w.update();
    let verdict = w.s.explain(op(1), w.now).expect("known").trees.remove(0).verdict;
    assert!(matches!(verdict, Verdict::Preempts { .. }), "{verdict:?}");
}

#[test]
fn too_little_is_spare() {
    // The default wants a whole core to be free before it looks at a node.
    let mut w = World::with(&map("min_spare_allocation_resources_on_node={cpu=1}"), &map(""));
    w.pool("p", "", "").unwrap();
    w.node("n", 4.0, 20);
    w.run(1, "p", 0.5, 8);
    w.update();
    assert_eq!(w.schedule("n").len(), 7);
    w.update();
    w.wait(31.0);
    w.update();
    check(
        &w,
        1,
        expect![[r#"
            Operation ONE
            In pool "/p" of tree "physical": the nodes are taken; it starves, but what others have above their fair share is not enough to make room for it on any node.
              It has 7 allocations, wants 1 more; usage 87.5 % of the cluster, fair share 100 %, demand 100 %. Of its allocations 2 are protected, 5 give way only to aggressively starving ones, 0 to any starving one.
              Below its fair share for 31.4 s, starving for 0 s.
              Of 1 node: 1 without the spare resources that scheduling wants to see.
              To change that: lower min_spare_allocation_resources_on_node, an option of the scheduler: nodes with less free are not looked at.
              To change that: others finish; they are protected from preemption.
        "#]],
    );
    assert!(advice(&w, 1).contains(&Advice::LowerSpare));
}

#[test]
fn a_node_that_is_away() {
    let mut w = world("");
    w.run(1, "p", 1.0, 2);
    w.update();
    w.s.set_away("n");
    check(
        &w,
        1,
        expect![[r#"
        Operation ONE
        In pool "/p" of tree "physical": the nodes are taken. It is entitled to more, but has not waited long enough to have others preempted.
          It has 0 allocations, wants 2 more; usage 0 % of the cluster, fair share 50 %, demand 50 %.
          Below its fair share for 0 s; it starves in 30 s.
          Of 1 node: 1 offline.
          Nothing needs to be done before 30 s have passed.
    "#]],
    );
}
