//! Why a pool has the fair share that it has, in words: one situation each.

mod integral;
mod limits;

use crate::common::*;
use crate::random::Random;
use expect_test::{Expect, expect};
use scheduler::UpdateKind;
use scheduler::config::GuaranteeType;
use scheduler::explain_pool::{IntegralBound, Outcome};
use std::collections::BTreeSet;
use vocab::{RESOURCES, Span};

const BURST: &str =
    "integral_guarantees={guarantee_type=burst;resource_flow={cpu=1};burst_guarantee_resources={cpu=5}}";
const RELAXED: &str = "integral_guarantees={guarantee_type=relaxed;resource_flow={cpu=1}}";

/// Ten cores, and pools by name with their parent and options.
fn world(pools: &[(&str, &str, &str)]) -> World {
    let mut w = World::with(&map(""), &map("integral_guarantees={pool_capacity_saturation_period=1000000}"));
    w.node("n", 10.0, 100);
    for (name, parent, options) in pools {
        w.pool(name, parent, options).expect("a good pool");
    }
    w
}

/// Lets an operation of one-core jobs in each of the pools want so many of them.
fn demand(w: &mut World, wanted: &[(&str, i64)]) {
    for (n, (pool, count)) in wanted.iter().enumerate() {
        w.run(n as u32 + 1, pool, 1.0, *count);
    }
}

/// Updates once a second for so long.
fn pass(w: &mut World, seconds: u64) {
    for _ in 0..seconds {
        w.now += Span::from_secs(1);
        w.s.update(w.now, UpdateKind::Periodic);
    }
}

fn words(w: &mut World, pool: &str) -> String {
    let snapshot = w.update();
    let explanation = snapshot.tree(TREE).and_then(|t| t.explain_pool(pool)).expect("a pool");
    let value = explanation.to_value();
    assert!(value.get("outcome").and_then(|o| o.get("reason")).is_some(), "{value:?}");
    explanation.to_string()
}

#[track_caller]
fn check(w: &mut World, pool: &str, expected: Expect) {
    expected.assert_eq(&words(w, pool));
}

#[test]
fn no_nodes() {
    let mut w = World::new();
    w.pool("p", "", "strong_guarantee_resources={cpu=2}").unwrap();
    w.run(1, "p", 1.0, 5);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to nothing.
        Why: the tree has no nodes: there is nothing to share.
        Strong guarantee: 0 % (0 cores); nothing is guaranteed of cpu, which the cluster does not have.
        What would change it:
          - nodes that match the tree's nodes_filter
    "#]],
    );
}

#[test]
fn no_demand() {
    let mut w = world(&[("p", "", "strong_guarantee_resources={cpu=2}"), ("q", "", "")]);
    demand(&mut w, &[("q", 50)]);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 0 % of the cluster: 0 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  0 % (0 cores)
          by weight              0 % (0 cores)
          demand                 0 % (0 cores)
          usage                  0 % (0 cores)
        Why: nothing in it wants to run.
        Strong guarantee: 20 % (2 cores); not used.
        Shares of cpu in <Root>:
            q: 100 % of 100 % wanted, weight 1, satisfied
          * p: 0 % of 0 % wanted, weight 1, guaranteed 20 %, satisfied
        What would change it:
          - operations with pending jobs
    "#]],
    );
}

#[test]
fn waiting_operations_are_no_demand() {
    let mut w = world(&[("p", "", "max_running_operation_count=0")]);
    w.register(1, "p").unwrap();
    w.register(2, "p").unwrap();
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 0 % of the cluster: 0 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  0 % (0 cores)
          by weight              0 % (0 cores)
          demand                 0 % (0 cores)
          usage                  0 % (0 cores)
        Why: nothing in it wants to run: 2 operations wait for a limit of operation counts, which is no demand.
        What would change it:
          - a higher max_running_operation_count of the pool or of a pool above
    "#]],
    );
}

#[test]
fn satisfied() {
    let mut w = world(&[("p", "", "strong_guarantee_resources={cpu=2}"), ("q", "", "")]);
    demand(&mut w, &[("p", 3), ("q", 3)]);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 30 % of the cluster: 3 of 10 cores.
          by strong guarantee    20 % (2 cores)
          by integral guarantee  0 % (0 cores)
          by weight              10 % (1 core)
          demand                 30 % (3 cores)
          usage                  0 % (0 cores)
        Why: it is entitled to all that it wants.
        Strong guarantee: 20 % (2 cores).
        Shares of cpu in <Root>:
          * p: 30 % of 30 % wanted, weight 1, guaranteed 20 %, satisfied
            q: 30 % of 30 % wanted, weight 1, satisfied
    "#]],
    );
}

#[test]
fn strong_guarantee_and_weights() {
    let mut w = world(&[
        ("p", "", "strong_guarantee_resources={cpu=4}"),
        ("q", "", "weight=2.0"),
        ("small", "", "weight=0.5"),
    ]);
    demand(&mut w, &[("p", 50), ("q", 50), ("small", 1)]);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 57.1 % of the cluster: 5.71 of 10 cores.
          by strong guarantee    40 % (4 cores)
          by integral guarantee  0 % (0 cores)
          by weight              17.1 % (1.71 cores)
          demand                 500 % (50 cores)
          demand within limits   100 % (10 cores)
          usage                  0 % (0 cores)
        Why: nothing is left of the cluster's cpu; what guarantees leave over is divided by weight in <Root>.
        Strong guarantee: 40 % (4 cores).
        Shares of cpu in <Root>:
          * p: 57.1 % of 100 % wanted, weight 1, guaranteed 40 %
            q: 34.3 % of 100 % wanted, weight 2
            small: 8.6 % of 10 % wanted, weight 0.5
        What would change it:
          - a higher weight: 2 siblings of the same parent want more too
          - a strong guarantee, or a larger one
          - less demand of siblings, or more nodes
    "#]],
    );
    check(
        &mut w,
        "q",
        expect![[r#"
        Pool "q" of tree "physical" is entitled to 34.3 % of the cluster: 3.43 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  0 % (0 cores)
          by weight              34.3 % (3.43 cores)
          demand                 500 % (50 cores)
          demand within limits   100 % (10 cores)
          usage                  0 % (0 cores)
        Why: nothing is left of the cluster's cpu; what guarantees leave over is divided by weight in <Root>.
        Shares of cpu in <Root>:
            p: 57.1 % of 100 % wanted, weight 1, guaranteed 40 %
          * q: 34.3 % of 100 % wanted, weight 2
            small: 8.6 % of 10 % wanted, weight 0.5
        What would change it:
          - a higher weight: 2 siblings of the same parent want more too
          - a strong guarantee, or a larger one
          - less demand of siblings, or more nodes
    "#]],
    );
}

#[test]
fn strong_guarantee_scaled_by_overcommitment() {
    let mut w = world(&[
        ("p", "", "strong_guarantee_resources={cpu=12}"),
        ("q", "", "strong_guarantee_resources={cpu=8}"),
    ]);
    demand(&mut w, &[("p", 50), ("q", 50)]);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 60 % of the cluster: 6 of 10 cores.
          by strong guarantee    60 % (6 cores)
          by integral guarantee  0 % (0 cores)
          by weight              0 % (0 cores)
          demand                 500 % (50 cores)
          demand within limits   100 % (10 cores)
          usage                  0 % (0 cores)
        Why: nothing is left of the cluster's cpu; what guarantees leave over is divided by weight in <Root>.
        Strong guarantee: 120 % (12 cores), scaled by 0.5 to 60 % (6 cores): guarantees of the first level are 200 % of the cluster.
        Shares of cpu in <Root>:
          * p: 60 % of 100 % wanted, weight 1, guaranteed 60 %
            q: 40 % of 100 % wanted, weight 1, guaranteed 40 %
        What would change it:
          - less demand of siblings, or more nodes
          - for the strong guarantee: smaller guarantees of the first level, or more nodes
    "#]],
    );
}

#[test]
fn strong_guarantee_cut_by_a_limit_and_by_the_parent() {
    let mut w = world(&[
        ("p", "", "strong_guarantee_resources={cpu=6;gpu=2};resource_limits={cpu=4}"),
        ("in", "p", "strong_guarantee_resources={cpu=3;gpu=2}"),
        ("out", "p", "strong_guarantee_resources={cpu=3}"),
    ]);
    demand(&mut w, &[("in", 50), ("out", 50)]);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 40 % of the cluster: 4 of 10 cores.
          by strong guarantee    40 % (4 cores)
          by integral guarantee  0 % (0 cores)
          by weight              0 % (0 cores)
          demand                 1000 % (100 cores)
          demand within limits   40 % (4 cores)
          usage                  0 % (0 cores)
        Why: it has reached its own limit: resource_limits/cpu is 4 cores.
        Strong guarantee: 60 % (6 cores), of which the pool's limit leaves 40 % (4 cores): resource_limits/cpu is 4 cores; nothing is guaranteed of gpu, which the cluster does not have.
        What would change it:
          - a higher resource_limits/cpu of the pool (now 4 cores)
          - for the strong guarantee: a higher resource_limits/cpu of the pool (now 4 cores)
    "#]],
    );
    check(
        &mut w,
        "in",
        expect![[r#"
        Pool "in" of tree "physical" is entitled to 20 % of the cluster: 2 of 10 cores.
          by strong guarantee    20 % (2 cores)
          by integral guarantee  0 % (0 cores)
          by weight              0 % (0 cores)
          demand                 500 % (50 cores)
          demand within limits   100 % (10 cores)
          usage                  0 % (0 cores)
        Why: pool "p" above it has reached its limit: resource_limits/cpu is 4 cores.
        Strong guarantee: 30 % (3 cores), scaled by 0.667 to 20 % (2 cores): pool "p" has no more to guarantee; nothing is guaranteed of gpu, which the cluster does not have.
        Shares of cpu in p:
          * in: 20 % of 100 % wanted, weight 1, guaranteed 20 %
            out: 20 % of 100 % wanted, weight 1, guaranteed 20 %
        What would change it:
          - a higher resource_limits/cpu of pool "p" (now 4 cores)
          - for the strong guarantee: a larger one of pool "p"
    "#]],
    );
}

#[test]
fn the_root_and_nobody() {
    let mut w = world(&[("p", "", "")]);
    demand(&mut w, &[("p", 50)]);
    check(
        &mut w,
        "<Root>",
        expect![[r#"
        Pool "<Root>" of tree "physical" is entitled to 100 % of the cluster: 10 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  0 % (0 cores)
          by weight              100 % (10 cores)
          demand                 500 % (50 cores)
          demand within limits   100 % (10 cores)
          usage                  0 % (0 cores)
        Why: nothing is left of the cluster's cpu.
        What would change it:
          - more nodes
    "#]],
    );
    let snapshot = w.update();
    assert!(snapshot.tree(TREE).unwrap().explain_pool("nobody").is_none());
}

/// Whatever the tree looks like, the explanation of each pool fits its numbers.
#[test]
fn explanations_fit_the_numbers() {
    let mut seen = BTreeSet::new();
    for seed in 0..1_000 {
        let mut random = Random::new(seed);
        let mut w = World::with(&map(""), &map("integral_guarantees={smooth_period=2000}"));
        w.node("n", 10.0, 30);
        let mut pools = vec![String::new()];
        for i in 0..random.below(6) + 1 {
            let parent = pools[random.below(pools.len())].clone();
            let options: Vec<&str> = [
                "resource_limits={cpu=3}",
                "resource_limits={user_slots=2;cpu=6}",
                "max_share_ratio=0.3",
                "weight=5.0",
                "strong_guarantee_resources={cpu=4}",
                "integral_guarantees={guarantee_type=burst;resource_flow={cpu=1};burst_guarantee_resources={cpu=3}}",
                "integral_guarantees={guarantee_type=relaxed;resource_flow={cpu=2}}",
                "mode=fifo",
            ]
            .into_iter()
            .filter(|_| random.below(3) == 0)
            .collect();
            let mut names: Vec<&str> = Vec::new();
            let options: Vec<&str> = options
                .into_iter()
                .filter(|o| {
                    let name = o.split('=').next().unwrap_or_default();
                    let new = !names.contains(&name);
                    names.push(name);
                    new
                })
                .collect();
            let name = format!("p{i}");
            // Many combinations are refused, and that is fine.
            if w.pool(&name, &parent, &options.join(";")).is_ok() {
                pools.push(name);
            }
        }
        pass(&mut w, random.below(60) as u64);
        for n in 0..random.below(7) as u32 {
            let pool = &pools[random.below(pools.len())];
            if !pool.is_empty() && w.register(n + 1, pool).is_ok() {
                w.s.set_enabled(op(n + 1), true).unwrap();
                w.want(n + 1, [0.5, 1.0, 3.0][random.below(3)], 1 + random.below(12) as i64);
            }
            pass(&mut w, random.below(4) as u64);
        }
        let snapshot = w.update();
        let tree = snapshot.tree(TREE).expect("the tree");
        for name in tree.pool_names() {
            let e = tree.explain_pool(name).expect("a pool");
            let text = e.to_string();
            let at = format!("seed {seed}, {text}");
            assert!(!text.contains("NaN") && !text.contains("inf"), "{at}");
            let short = RESOURCES
                .iter()
                .any(|r| tree.resource_limits.raw(*r) > 0 && e.demand[*r] > e.fair_share.total[*r] + 1e-6);
            let takes_all = RESOURCES.iter().all(|r| e.limited_demand[*r] <= e.fair_share.total[*r] + 1e-6);
            match &e.outcome {
                Outcome::NoDemand { .. } => assert!(e.demand.is_zero(), "{at}"),
                Outcome::Satisfied => assert!(!short, "{at}"),
                Outcome::OwnLimit(limit) => {
                    let share = e.fair_share.total[limit.resource];
                    assert!(short && takes_all && (share - limit.share).abs() < 1e-5, "{at}");
                }
                Outcome::Inside { limits, gangs } => {
                    assert!(short && !limits.is_empty() && gangs.is_empty(), "{at}");
                }
                Outcome::AncestorLimit { pool, limit } => {
                    let above = tree.explain_pool(pool).expect("a pool");
                    let share = above.fair_share.total[limit.resource];
                    assert!(short && !takes_all && (share - limit.share).abs() < 1e-5, "{at}");
                }
                Outcome::ClusterFull { resources } => {
                    let root = tree.explain_pool("<Root>").expect("the root").fair_share.total;
                    assert!(short && resources.iter().all(|r| root[*r] > 1.0 - 1e-5), "{at}");
                }
                Outcome::NoNodes | Outcome::NothingFits => panic!("{at}"),
            }
            if let Some(g) = &e.integral {
                let most = match g.kind {
                    GuaranteeType::None => 0.0,
                    GuaranteeType::Burst => g.burst_ratio.min(g.share_by_volume),
                    GuaranteeType::Relaxed => g.relaxed_limit.min(g.share_by_volume),
                };
                assert!(g.given <= most + 1e-6, "{at}");
                let bounded = matches!(
                    g.bound,
                    IntegralBound::Volume | IntegralBound::Burst | IntegralBound::Multiplier
                );
                assert_eq!(bounded, g.given >= most - 1e-6 && g.kind != GuaranteeType::None, "{at}");
                seen.insert(format!("{:?}", g.bound).split([' ', '(']).next().unwrap_or_default().to_owned());
            }
            seen.insert(format!("{:?}", e.outcome).split([' ', '(']).next().unwrap_or_default().to_owned());
        }
    }
    // Otherwise this would show little.
    for kind in [
        "NoDemand",
        "Satisfied",
        "OwnLimit",
        "Inside",
        "AncestorLimit",
        "ClusterFull",
        "Volume",
        "Burst",
        "Multiplier",
        "Demand",
        "Leftover",
    ] {
        assert!(seen.contains(kind), "{kind} was never seen: {seen:?}");
    }
}
