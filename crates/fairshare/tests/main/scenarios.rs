//! Scenarios of the reference's own unit tests (fair-share.md 17).

use fairshare::Problem;
use vocab::Span;

use crate::fixture::Fixture;

const MINUTE: Option<Span> = Some(Span::from_secs(60));

/// One update after a minute, in standard and in improved mode.
fn check(tree: &str, expected: &str) {
    for options in ["options strict", "options strict improved", "options", "options improved gap"] {
        let mut fixture = Fixture::parse(&format!("{options}\n{tree}"));
        let output = fixture.update(MINUTE);
        fixture.expect(&output, expected);
    }
}

#[test]
fn one_operation_follows_its_proportions() {
    check("op a demand=slots:200,cpu:200,memory:4000M", "a fair==0.5/0.5/1");
    check("op a demand=slots:30,cpu:30,memory:600M", "a fair==0.3/0.3/0.6");
}

#[test]
fn dominant_resources_of_siblings_are_equal() {
    check(
        "
pool A
  op a1 demand=slots:10,cpu:10,memory:200M
  op a2 demand=slots:1000,cpu:3000,memory:10000M
pool B
  op b1 demand=slots:2000,cpu:2000,memory:100000M",
        "
a1 fair=4:40/4:40/8:40
a2 fair=7:40/21:40/7:40
b1 fair=5:40/5:40/25:40",
    );
}

#[test]
fn a_share_may_exceed_one_by_rounding() {
    check(
        "
total slots:3,cpu:3,memory:8316576848
pool A strong=cpu:3
  op a usage=slots:2,cpu:2,memory:805306368 demand=slots:2,cpu:2,memory:805306368
  op b demand=slots:3,cpu:3,memory:1207959552",
        // Usage comes first, all resources equally: the memory of `a` is there before its last cores.
        "A strong=1/1/0.169455074\na fair=0.5/0.5/0.096831471",
    );
}

#[test]
fn promised_shares_below_a_pool_that_asks() {
    check(
        "
pool A strong=cpu:30 promised
  pool A1 strong=cpu:10
    op a1 demand=all
  pool A2
    op a2 demand=all
  pool A3
    op a3 demand=2%
pool B strong=cpu:30
  op b demand=all",
        "
A1 fair=0.29 promised=0.19
A2 fair=0.19 promised=0.09
A3 fair=0.02 promised=0.02
A promised=0.3
a1 promised=0.19
B fair=0.5 promised==0
b promised==0
root promised==0",
    );
}

/// The guarantee has no gpu, and right behind the jump of the gang the next operation takes some. So the
/// guarantee is exhausted at the jump, where functions have their value from the left (4.4): nothing is
/// promised. If nobody wanted gpu everything would be.
#[test]
fn a_jump_behind_which_the_guarantee_is_left_is_not_made() {
    let tree = |gpu: &str| {
        format!(
            "
total slots:100,cpu:100,gpu:10,memory:1000M
options gang
pool P strong=cpu:50,gpu:0 promised
  fifo Q
    gang a demand=slots:20,cpu:20,memory:200M start=1
    op b demand=slots:20,cpu:20,memory:200M{gpu} start=2"
        )
    };
    check(&tree(",gpu:5"), "P promised=0\na promised=0\nb promised=0");
    check(&tree(""), "P promised=0.4/0.4/0.4\na promised=0.2/0.2/0.2\nb promised=0.2/0.2/0.2");
}

#[test]
fn an_integral_pool_of_each_kind() {
    for kind in ["relaxed", "burst burst=cpu:10"] {
        check(
            &format!("pool A {kind} flow=cpu:10 strong=cpu:10\n  op a demand=30%"),
            "A strong==0.1 integral==0.1 by_weight=0.1",
        );
    }
}

#[test]
fn volume_is_saved_while_there_is_no_demand() {
    for options in ["strict", "improved"] {
        let mut fixture = Fixture::parse(&format!("options {options}\npool A relaxed flow=cpu:10\n  op a"));
        fixture.update(MINUTE);
        fixture.change("a", "demand=30%");
        let output = fixture.update(MINUTE);
        fixture.expect(&output, "A integral=0.2 by_weight=0.1");
    }
}

#[test]
fn relaxed_pools_are_limited_by_their_multipliers() {
    for options in ["strict", "improved"] {
        let mut fixture = Fixture::parse(&format!(
            "options {options}
pool A relaxed flow=cpu:10 volume=100000
  op a demand=all
pool B relaxed flow=cpu:10 multiplier=5 volume=100000
  op b demand=all"
        ));
        let output = fixture.update(None);
        fixture.expect(&output, "A integral=0.3\nB integral=0.5");
    }
}

#[test]
fn a_flow_beyond_the_cluster_is_an_error_only() {
    let tree = "
pool A burst flow=cpu:100 burst=cpu:50
  op a demand=all
pool B strong=cpu:50
  op b demand=all";
    check(tree, "A integral=0.5 by_weight=0\nB strong=0.5 by_weight=0");
    let output = Fixture::parse(tree).update(MINUTE);
    assert!(
        matches!(output.problems[..], [Problem::OvercommitStrongAndFlow { .. }]),
        "{:?}",
        output.problems
    );
}

#[test]
fn integral_pools_side_by_side() {
    let check = |a: &str, b: &str, expected: &str| {
        check(&format!("pool A {a}\n  op a demand=all\npool B {b}\n  op b demand=all"), expected);
    };
    check("strong=cpu:50", "relaxed flow=cpu:100", "A strong=0.5\nB integral=0.5");
    check("burst flow=cpu:100 burst=cpu:100", "relaxed flow=cpu:100", "A integral=1\nB integral=0");
    check("burst flow=cpu:100 burst=cpu:50", "relaxed flow=cpu:100", "A integral=0.5\nB integral=0.5");
    check("strong=cpu:30", "strong=cpu:90", "A guarantee==0.25 strong=0.25\nB guarantee==0.75");
    check("strong=cpu:30", "strong=cpu:120", "A guarantee==0.2 strong=0.2\nB guarantee==0.8");
    check("strong=cpu:90", "burst flow=cpu:60 burst=cpu:60", "A strong=0.6\nB integral=0.4");
    check(
        "relaxed flow=cpu:100 strong=cpu:40",
        "relaxed flow=cpu:100",
        "A strong=0.4 integral=0.3\nB integral=0.3",
    );
}

#[test]
fn all_kinds_of_guarantee_and_weights() {
    check(
        "
pool A strong=cpu:10
  op a demand=all
pool B burst flow=cpu:10 burst=cpu:10
  op b demand=all
pool C relaxed flow=cpu:10 weight=2
  op c demand=all
pool D weight=3
  op d demand=all",
        "
A strong==0.1 by_weight=0.1
B integral==0.1 by_weight=0.1
C integral==0.1 by_weight=0.2
D by_weight=0.3
root integral==0.2",
    );
}

#[test]
fn relaxed_pools_share_by_volume() {
    for options in ["strict", "improved"] {
        let mut fixture = Fixture::parse(&format!(
            "options {options}
pool A relaxed flow=cpu:100 volume=6
  op a demand=all
pool B relaxed flow=cpu:100 volume=18
  op b demand=all"
        ));
        let output = fixture.update(None);
        fixture.expect(&output, "A integral=0.1 by_weight=0.3\nB integral=0.3 by_weight=0.3");
    }
}

#[test]
fn limits_of_ancestors() {
    let check = |parent: &str, child: &str, expected: &str| {
        check(&format!("pool P {parent}\n  pool C {child}\n    op c demand=all"), expected);
    };
    check("strong=cpu:100 limits=cpu:50", "strong=cpu:100", "P strong==0.5\nC guarantee==0.5 strong==0.5");
    check("limits=cpu:50", "burst flow=cpu:100 burst=cpu:100", "C integral==0.5");
    check("strong=cpu:50 limits=cpu:50", "burst flow=cpu:10 burst=cpu:10", "C integral==0 by_weight=0.5");
}

#[test]
fn an_intermediate_pool_inherits_what_pools_below_are_given() {
    check(
        "
pool P flow=cpu:100 burst=cpu:100
  pool A burst flow=cpu:50 burst=cpu:100
    op a demand=all
  pool B relaxed flow=cpu:50
    op b demand=all",
        "A integral==0.5\nB integral==0.5\nP integral==1",
    );
}

#[test]
fn burst_pools_are_served_in_order() {
    check(
        "
pool P strong=cpu:50 limits=cpu:55
  pool A burst flow=cpu:10 burst=cpu:10
    op a demand=5%
  pool B burst flow=cpu:10 burst=cpu:10
    op b demand=5%",
        "A integral=0.05\nB integral=0 by_weight=0.05",
    );
}

#[test]
fn guarantees_used_up_leave_nothing_for_relaxed_pools() {
    check(
        "
pool A strong=cpu:60
  op a usage=60% demand=60%
pool B strong=cpu:50
  op b usage=50% demand=50%
pool C relaxed flow=cpu:10 volume=100000
  op c demand=all",
        "C integral=0",
    );
}

#[test]
fn flows_alone_give_no_estimate() {
    let tree = "
pool A burst flow=cpu:10 burst=cpu:20
  op a demand=all
pool B relaxed flow=cpu:10
  op b demand=all";
    check(tree, "root estimated==0\nA estimated==0\nB estimated==0\na estimated==0");
}

#[test]
fn gangs_that_do_not_fit_together() {
    let check = |options: &str, first: &str, second: &str, expected: &str| {
        let mut fixture = Fixture::parse(&format!(
            "options strict {options}
pool A
  gang a demand={first}
pool B
  gang b demand={second}"
        ));
        let output = fixture.update(MINUTE);
        fixture.expect(&output, expected);
    };
    check("gang", "60%", "60%", "a fair==0\nb fair==0");
    check("gang", "30%", "30%", "a fair==0.3\nb fair==0.3");
    check("gang", "60%", "45%", "a fair==0\nb fair==0.45");
    check("gang improved", "60%", "60%", "a fair=0.6\nb fair==0");
    check("", "60%", "60%", "a fair=0.5\nb fair=0.5");
}

#[test]
fn gangs_in_fifo_pools_with_improved_mode() {
    let mut fixture = Fixture::parse(
        "options gang improved
fifo A
  gang a1 demand=30% start=1
  gang a2 demand=30% start=2
fifo B
  gang b1 demand=30% start=1
  gang b2 demand=30% start=2",
    );
    let output = fixture.update(MINUTE);
    fixture.expect(&output, "A fair=0.6\na1 fair=0.3\na2 fair=0.3\nB fair=0.3\nb1 fair=0.3\nb2 fair=0");
}

#[test]
fn a_long_queue() {
    let mut text = "fifo A limits=cpu:50\n".to_owned();
    for i in 0..2000 {
        text += &format!("  op a{i} demand=1% start={i}\n");
    }
    let mut fixture = Fixture::parse(&text);
    let output = fixture.update(MINUTE);
    fixture.expect(&output, "A fair=0.5\na0 fair=0.01\na49 fair=0.01 fifo=49\na50 fair=0\na1999 fair==0");
}

/// Half for the operation of a level, half for the pool below; deeper than the functions are solved ahead,
/// and deeper than recursion should go.
#[test]
fn a_deep_tree() {
    let levels = 400;
    let mut tree = String::new();
    for level in 0..levels {
        let indent = "  ".repeat(level);
        tree.push_str(&format!("{indent}pool p{level}\n{indent}  op o{level} demand=all\n"));
    }
    let mut fixture = Fixture::parse(&tree);
    let output = fixture.update(MINUTE);
    fixture.expect(&output, "o0 fair=0.5\no1 fair=0.25\np2 fair=0.25\no9 fair=0.0009765625\np0 limited=1");
}
