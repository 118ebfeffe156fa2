//! Limits of pools, of those above, and of what is inside.

use super::*;

#[test]
fn own_resource_limits() {
    let mut w = world(&[("p", "", "resource_limits={cpu=2.5}")]);
    demand(&mut w, &[("p", 50)]);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 25 % of the cluster: 2.5 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  0 % (0 cores)
          by weight              25 % (2.5 cores)
          demand                 500 % (50 cores)
          demand within limits   25 % (2.5 cores)
          usage                  0 % (0 cores)
        Why: it has reached its own limit: resource_limits/cpu is 2.5 cores.
        What would change it:
          - a higher resource_limits/cpu of the pool (now 2.5 cores)
    "#]],
    );
}

#[test]
fn max_share_ratio() {
    let mut w = world(&[("p", "", "max_share_ratio=0.25")]);
    demand(&mut w, &[("p", 50)]);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 25 % of the cluster: 2.5 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  0 % (0 cores)
          by weight              25 % (2.5 cores)
          demand                 500 % (50 cores)
          demand within limits   25 % (2.5 cores)
          usage                  0 % (0 cores)
        Why: it has reached its own limit: max_share_ratio 0.25 is 2.5 cores of cpu.
        What would change it:
          - a higher max_share_ratio of the pool (now 0.25)
    "#]],
    );
}

#[test]
fn limit_of_an_ancestor() {
    let mut w =
        world(&[("top", "", "resource_limits={cpu=4}"), ("p", "top", ""), ("q", "top", "weight=3.0")]);
    demand(&mut w, &[("p", 50), ("q", 50)]);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 10 % of the cluster: 1 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  0 % (0 cores)
          by weight              10 % (1 core)
          demand                 500 % (50 cores)
          demand within limits   100 % (10 cores)
          usage                  0 % (0 cores)
        Why: pool "top" above it has reached its limit: resource_limits/cpu is 4 cores.
        Shares of cpu in top:
            q: 30 % of 100 % wanted, weight 3
          * p: 10 % of 100 % wanted, weight 1
        What would change it:
          - a higher resource_limits/cpu of pool "top" (now 4 cores)
    "#]],
    );
}

#[test]
fn limit_of_an_operation_inside() {
    let mut w = world(&[("p", "", "")]);
    let mut desc = w.desc(1, "p");
    desc.trees[0].parameters.resource_limits =
        scheduler::config::PoolConfig::parse(&map("resource_limits={cpu=3}")).unwrap().0.resource_limits;
    w.register_desc(desc).unwrap();
    w.s.set_enabled(op(1), true).unwrap();
    w.want(1, 1.0, 9);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 30 % of the cluster: 3 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  0 % (0 cores)
          by weight              30 % (3 cores)
          demand                 90 % (9 cores)
          demand within limits   30 % (3 cores)
          usage                  0 % (0 cores)
        Why: what is inside cannot take more (operation 1-0-103e8-7: resource_limits/cpu is 3 cores).
        What would change it:
          - a higher resource_limits/cpu of operation 1-0-103e8-7 (now 3 cores)
    "#]],
    );
}

#[test]
fn fifo() {
    let mut w = world(&[("line", "", "mode=fifo;resource_limits={cpu=7}")]);
    demand(&mut w, &[("line", 5), ("line", 4), ("line", 3), ("line", 1)]);
    check(
        &mut w,
        "line",
        expect![[r#"
        Pool "line" of tree "physical" is entitled to 70 % of the cluster: 7 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  0 % (0 cores)
          by weight              70 % (7 cores)
          demand                 130 % (13 cores)
          demand within limits   70 % (7 cores)
          usage                  0 % (0 cores)
        Why: it has reached its own limit: resource_limits/cpu is 7 cores.
        Order: first in, first out; of 4 operations the first 1 has all it wants, 2-0-103e8-7 has 2 cores of 4 cores, 2 have nothing.
        What would change it:
          - a higher resource_limits/cpu of the pool (now 7 cores)
    "#]],
    );
}

#[test]
fn a_gang_that_does_not_fit() {
    let mut w = World::with(&map(""), &map("enable_step_function_for_gang_operations=%true"));
    w.node("n", 10.0, 100);
    w.pool("p", "", "resource_limits={cpu=5}").unwrap();
    let mut desc = w.desc(1, "p");
    desc.is_gang = true;
    w.register_desc(desc).unwrap();
    w.s.set_enabled(op(1), true).unwrap();
    w.want(1, 1.0, 6);
    check(
        &mut w,
        "p",
        expect![[r#"
        Pool "p" of tree "physical" is entitled to 0 % of the cluster: 0 of 10 cores.
          by strong guarantee    0 % (0 cores)
          by integral guarantee  0 % (0 cores)
          by weight              0 % (0 cores)
          demand                 60 % (6 cores)
          demand within limits   0 % (0 cores)
          usage                  0 % (0 cores)
        Why: what is inside cannot take more (operation 1-0-103e8-7 runs all at once or not at all, and does not fit).
        What would change it:
          - smaller gangs, or limits into which they fit
    "#]],
    );
}
