//! Integral guarantees: what is left of the volume, and what holds it back.

use super::*;

#[test]
fn burst_with_volume() {
    let mut w = world(&[("p", "", BURST), ("q", "", "strong_guarantee_resources={cpu=5}")]);
    pass(&mut w, 500);
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
        Integral guarantee (burst): 0 % (0 cores), nothing is wanted beyond the strong guarantee.
        Volume: 49.9 of 100 cluster-seconds; 10 % (1 core) flows in, 0 % (0 cores) is spent; full in 8.3 min.
        What would change it:
          - operations with pending jobs
    "#]],
    );
    demand(&mut w, &[("p", 50), ("q", 50)]);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 50 % of the cluster: 5 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  50 % (5 cores)
          by weight              0 % (0 cores)
          demand                 500 % (50 cores)
          demand within limits   100 % (10 cores)
          usage                  0 % (0 cores)
        Why: nothing is left of the cluster's cpu; what guarantees leave over is divided by weight in <Root>.
        Integral guarantee (burst): 50 % (5 cores), its burst guarantee.
        Volume: 49.9 of 100 cluster-seconds; 10 % (1 core) flows in, 50 % (5 cores) is spent; at this rate the share can be held for 49.8 s.
        Shares of cpu in <Root>:
          * p: 50 % of 100 % wanted, weight 1, guaranteed 50 %
            q: 50 % of 100 % wanted, weight 1, guaranteed 50 %
        What would change it:
          - a strong guarantee, or a larger one
          - less demand of siblings, or more nodes
          - for the integral guarantee: a larger integral_guarantees/burst_guarantee_resources
    "#]],
    );
}

#[test]
fn burst_exhausted() {
    let mut w = world(&[("p", "", BURST), ("q", "", "strong_guarantee_resources={cpu=5}")]);
    demand(&mut w, &[("p", 50), ("q", 50)]);
    pass(&mut w, 900);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 30 % of the cluster: 3 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  10 % (1 core)
          by weight              20 % (2 cores)
          demand                 500 % (50 cores)
          demand within limits   100 % (10 cores)
          usage                  0 % (0 cores)
        Why: nothing is left of the cluster's cpu; what guarantees leave over is divided by weight in <Root>.
        Integral guarantee (burst): 10 % (1 core), what flows in: nothing is saved up.
        Volume: 6 of 100 cluster-seconds; 10 % (1 core) flows in, 10 % (1 core) is spent; as much flows in as is spent.
        Shares of cpu in <Root>:
            q: 70 % of 100 % wanted, weight 1, guaranteed 50 %
          * p: 30 % of 100 % wanted, weight 1, guaranteed 10 %
        What would change it:
          - a higher weight: 1 sibling of the same parent wants more too
          - a strong guarantee, or a larger one
          - less demand of siblings, or more nodes
          - for the integral guarantee: a larger integral_guarantees/resource_flow, or a time without demand in which the volume fills up
    "#]],
    );
}

#[test]
fn burst_that_sinks_with_its_volume() {
    let mut w = world(&[("p", "", BURST), ("q", "", "strong_guarantee_resources={cpu=5}")]);
    pass(&mut w, 200);
    demand(&mut w, &[("p", 50), ("q", 50)]);
    pass(&mut w, 15);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 39.2 % of the cluster: 3.92 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  28.4 % (2.84 cores)
          by weight              10.8 % (1.08 cores)
          demand                 500 % (50 cores)
          demand within limits   100 % (10 cores)
          usage                  0 % (0 cores)
        Why: nothing is left of the cluster's cpu; what guarantees leave over is divided by weight in <Root>.
        Integral guarantee (burst): 28.4 % (2.84 cores), what the volume allows, spread over 60 s.
        Volume: 17 of 100 cluster-seconds; 10 % (1 core) flows in, 28.4 % (2.84 cores) is spent; it sinks, and the share with it, to what flows in.
        Shares of cpu in <Root>:
            q: 60.8 % of 100 % wanted, weight 1, guaranteed 50 %
          * p: 39.2 % of 100 % wanted, weight 1, guaranteed 28.4 %
        What would change it:
          - a higher weight: 1 sibling of the same parent wants more too
          - a strong guarantee, or a larger one
          - less demand of siblings, or more nodes
          - for the integral guarantee: a larger integral_guarantees/resource_flow, or a time without demand in which the volume fills up
    "#]],
    );
}

#[test]
fn relaxed_limited_by_the_multiplier() {
    let mut w = world(&[("p", "", RELAXED), ("q", "", "weight=100.0")]);
    pass(&mut w, 900);
    demand(&mut w, &[("p", 50), ("q", 50)]);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 30.7 % of the cluster: 3.07 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  30 % (3 cores)
          by weight              0.7 % (0.07 cores)
          demand                 500 % (50 cores)
          demand within limits   100 % (10 cores)
          usage                  0 % (0 cores)
        Why: nothing is left of the cluster's cpu; what guarantees leave over is divided by weight in <Root>.
        Integral guarantee (relaxed): 30 % (3 cores), 3 times its flow, the most that a relaxed pool is given.
        Volume: 89.9 of 100 cluster-seconds; 10 % (1 core) flows in, 30 % (3 cores) is spent; at this rate the share can be held for 6 min.
        Shares of cpu in <Root>:
            q: 69.3 % of 100 % wanted, weight 100
          * p: 30.7 % of 100 % wanted, weight 1, guaranteed 30 %
        What would change it:
          - a higher weight: 1 sibling of the same parent wants more too
          - a strong guarantee, or a larger one
          - less demand of siblings, or more nodes
          - for the integral guarantee: a larger integral_guarantees/relaxed_share_multiplier_limit (at most 10) or integral_guarantees/resource_flow
    "#]],
    );
}

#[test]
fn relaxed_limited_by_what_is_left() {
    let mut w =
        world(&[("p", "", RELAXED), ("other", "", RELAXED), ("q", "", "strong_guarantee_resources={cpu=8}")]);
    pass(&mut w, 900);
    demand(&mut w, &[("p", 50), ("other", 50), ("q", 50)]);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 10 % of the cluster: 1 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  10 % (1 core)
          by weight              0 % (0 cores)
          demand                 500 % (50 cores)
          demand within limits   100 % (10 cores)
          usage                  0 % (0 cores)
        Why: nothing is left of the cluster's cpu; what guarantees leave over is divided by weight in <Root>.
        Integral guarantee (relaxed): 10 % (1 core), its part of the 20 % that used guarantees leave to 2 relaxed pools.
        Volume: 89.9 of 100 cluster-seconds; 10 % (1 core) flows in, 10 % (1 core) is spent; as much flows in as is spent.
        Shares of cpu in <Root>:
            q: 80 % of 100 % wanted, weight 1, guaranteed 80 %
            other: 10 % of 100 % wanted, weight 1, guaranteed 10 %
          * p: 10 % of 100 % wanted, weight 1, guaranteed 10 %
        What would change it:
          - a strong guarantee, or a larger one
          - less demand of siblings, or more nodes
          - for the integral guarantee: the type burst, which is served before relaxed pools
    "#]],
    );
}

#[test]
fn volume_is_full() {
    let mut w = world(&[("p", "", BURST)]);
    pass(&mut w, 1_100);
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
        Integral guarantee (burst): 0 % (0 cores), nothing is wanted beyond the strong guarantee.
        Volume: 100 of 100 cluster-seconds; 10 % (1 core) flows in, 0 % (0 cores) is spent; it is full: what flows in is not kept.
        What would change it:
          - operations with pending jobs
    "#]],
    );
}

#[test]
fn integral_options_are_missing() {
    let mut w = world(&[
        ("p", "", "integral_guarantees={guarantee_type=burst;burst_guarantee_resources={cpu=5}}"),
        ("typeless", "", "integral_guarantees={resource_flow={cpu=5}}"),
    ]);
    demand(&mut w, &[("p", 50), ("typeless", 50)]);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 50 % of the cluster: 5 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  0 % (0 cores)
          by weight              50 % (5 cores)
          demand                 500 % (50 cores)
          demand within limits   100 % (10 cores)
          usage                  0 % (0 cores)
        Why: nothing is left of the cluster's cpu; what guarantees leave over is divided by weight in <Root>.
        Integral guarantee (burst): without effect, integral_guarantees/resource_flow is not set.
        Shares of cpu in <Root>:
          * p: 50 % of 100 % wanted, weight 1
            typeless: 50 % of 100 % wanted, weight 1
        What would change it:
          - a higher weight: 1 sibling of the same parent wants more too
          - a strong guarantee, or a larger one
          - less demand of siblings, or more nodes
          - for the integral guarantee: integral_guarantees/resource_flow
    "#]],
    );
    check(
        &mut w,
        "typeless",
        expect![[r#"
        Pool "typeless" of tree "physical" is entitled to 50 % of the cluster: 5 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  0 % (0 cores)
          by weight              50 % (5 cores)
          demand                 500 % (50 cores)
          demand within limits   100 % (10 cores)
          usage                  0 % (0 cores)
        Why: nothing is left of the cluster's cpu; what guarantees leave over is divided by weight in <Root>.
        Integral guarantee (none): without effect, integral_guarantees/guarantee_type is not set.
        Shares of cpu in <Root>:
            p: 50 % of 100 % wanted, weight 1
          * typeless: 50 % of 100 % wanted, weight 1
        What would change it:
          - a higher weight: 1 sibling of the same parent wants more too
          - a strong guarantee, or a larger one
          - less demand of siblings, or more nodes
          - for the integral guarantee: integral_guarantees/guarantee_type
    "#]],
    );
}

#[test]
fn burst_limited_by_its_own_limits() {
    let options = format!("{BURST};resource_limits={{cpu=3}}");
    let mut w = world(&[("p", "", &options), ("q", "", "")]);
    pass(&mut w, 900);
    demand(&mut w, &[("p", 50), ("q", 50)]);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 30 % of the cluster: 3 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  30 % (3 cores)
          by weight              0 % (0 cores)
          demand                 500 % (50 cores)
          demand within limits   30 % (3 cores)
          usage                  0 % (0 cores)
        Why: it has reached its own limit: resource_limits/cpu is 3 cores.
        Integral guarantee (burst): 30 % (3 cores), as much as its own limits allow.
        Volume: 89.9 of 100 cluster-seconds; 10 % (1 core) flows in, 30 % (3 cores) is spent; at this rate the share can be held for 6 min.
        Shares of cpu in <Root>:
            q: 70 % of 100 % wanted, weight 1
          * p: 30 % of 30 % wanted, weight 1, guaranteed 30 %, satisfied
        What would change it:
          - a higher resource_limits/cpu of the pool (now 3 cores)
          - for the integral guarantee: higher limits of the pool
    "#]],
    );
}
