//! Worked examples (fair-share.md 16) as far as they are visible from outside. Those of single functions
//! are with the functions.

use fairshare::{Problem, local_satisfaction};
use vocab::{Cpu, RESOURCES, Resource, Resources, Share, Span, Volume};

use crate::fixture::{Fixture, cluster_seconds};

const MINUTE: Option<Span> = Some(Span::from_secs(60));

fn check(tree: &str, expected: &str) {
    let mut fixture = Fixture::parse(&format!("options strict\n{tree}"));
    let output = fixture.update(MINUTE);
    fixture.expect(&output, expected);
}

/// 16.1, last part: exact floats.
#[test]
fn one_operation_under_a_limit() {
    check(
        "
pool A limits=cpu:30
  op a usage=slots:20,cpu:10,memory:100M demand=slots:60,cpu:40,memory:500M",
        "A fair=0.46666666666666656/0.29999999999999993/0.36666666666666659",
    );
}

/// 16.2
#[test]
fn two_complementary_operations() {
    check(
        "
pool A
  op x demand=slots:100,cpu:100,memory:2000M
  op y demand=slots:100,cpu:200,memory:1000M",
        "
x fair=1:3/1:3/2:3
y fair=1:3/2:3/1:3
A fair=2:3/1/1",
    );
}

/// 16.3, exact floats.
#[test]
fn weights() {
    check(
        "
pool A weight=1
  op a demand=all
pool B weight=2
  op b demand=10%
pool C weight=3
  op c demand=all",
        "
A fair==0.22499999999999998
B fair==0.10000000000000001
C fair==0.67499999999999993
root fair==0.99999999999999989",
    );
}

/// 16.4, exact floats.
#[test]
fn fifo_with_a_limit() {
    check(
        "
fifo A limits=cpu:70
  op a demand=50% start=1
  op b demand=40% start=2
  op c demand=30% start=3",
        "a fair==0.5 fifo=0\nb fair==0.19999999999999996 fifo=1\nc fair==0 fifo=2",
    );
}

/// 16.5
#[test]
fn integral_timeline() {
    let mut fixture = Fixture::parse(
        "options strict
pool S strong=cpu:40
  op s demand=all
pool B burst flow=cpu:10 burst=cpu:50
  op b
pool R relaxed flow=cpu:10
  op r demand=all",
    );
    // Time, volume of B in core-seconds, then integral + weight of B and R, weight of S.
    let third = 1.0 / 15.0;
    let mut rows = vec![(0, 0.0, [0.0, 0.0], [0.0, 0.3], 0.3)];
    rows.extend((1..=10).map(|i| (60 * i, 600.0 * f64::from(i), [0.0, 0.0], [0.1, 0.25], 0.25)));
    rows.extend([
        (660, 6600.0, [0.5, 0.0], [0.1, 0.0], 0.0),
        (720, 4200.0, [0.5, 0.0], [0.1, 0.0], 0.0),
        (780, 1800.0, [0.3, third], [0.1, third], third),
        (840, 600.0, [0.1, 2.0 * third], [0.1, 2.0 * third], 2.0 * third),
        (900, 600.0, [0.1, 2.0 * third], [0.1, 2.0 * third], 2.0 * third),
    ]);
    for (t, volume, b, r, s) in rows {
        if t == 660 {
            fixture.change("b", "demand=all");
        }
        let output = fixture.update(if t == 0 { None } else { MINUTE });
        fixture.expect(
            &output,
            &format!(
                "B cpu_volume={volume} ratio_volume={} integral={} by_weight={}",
                volume / 100.0,
                b[0],
                b[1]
            ),
        );
        let r_volume = if t == 0 { 0.0 } else { 600.0 };
        fixture.expect(&output, &format!("R cpu_volume={r_volume} integral={} by_weight={}", r[0], r[1]));
        fixture.expect(&output, &format!("S strong=0.4 by_weight={s}"));
        if t == 600 {
            fixture.expect(&output, "B ratio_capacity=8640");
            let integral = output.elements[fixture.index("B")].integral.expect("an integral pool");
            let seconds =
                integral.estimated_burst_usage_duration_seconds().expect("it will not last for ever");
            assert!((seconds - 150.0).abs() < 1e-9, "{seconds}");
            let relaxed = output.elements[fixture.index("R")].integral.expect("an integral pool");
            assert_eq!(relaxed.estimated_burst_usage_duration_seconds(), None);
        }
    }
}

/// 16.6
#[test]
fn free_volume() {
    let mut fixture = Fixture::parse(
        "options strict
pool a distribute
  pool x relaxed flow=cpu:10
  pool y relaxed flow=cpu:20
  pool z burst flow=cpu:10 burst=cpu:10",
    );
    let total = fixture.input.total;
    // Of 8640, 17280 and 8640 cluster-seconds.
    for (id, seconds) in [("x", 8640.0), ("y", 17280.0 - 30.0), ("z", 8640.0 - 7.0)] {
        let index = fixture.index(id);
        fixture.state[index].accumulated_volume = cluster_seconds(&total, seconds);
    }
    let output = fixture.update(MINUTE);
    fixture.expect(&output, "x cpu_volume=864000\ny cpu_volume=1726700\nz cpu_volume=864000");
    let integral = |id: &str| output.elements[fixture.index(id)].integral.expect("an integral pool");
    assert_eq!(integral("x").overflow.cpu, Cpu(60_000));
    assert_eq!(integral("y").accepted_free_volume.cpu, Cpu(50_000));
    assert_eq!(integral("z").accepted_free_volume.cpu, Cpu(10_000));
    assert_eq!(integral("z").overflow, Volume::default());
}

/// 16.7
#[test]
fn inferred_guarantees() {
    let mut fixture = Fixture::parse(
        "options strict
total slots:1000,cpu:500,gpu:16,memory:2000G
pool A strong=cpu:100
  pool A1 strong=cpu:33.33
  pool A2 strong=cpu:50,memory:300G
  pool A3",
    );
    let output = fixture.update(MINUTE);
    let check = |id: &str, slots: i64, cpu: f64, gpu: i64, memory_gib: i64| {
        let got = output.elements[fixture.index(id)].inferred_strong_guarantee_resources;
        let want = Resources {
            user_slots: slots,
            cpu: Cpu::from_f64(cpu),
            gpu,
            memory: memory_gib << 30,
            network: 0,
        };
        let close = RESOURCES
            .into_iter()
            .all(|r| (got.raw(r) - want.raw(r)).abs() <= i64::from(r == Resource::Memory));
        assert!(close, "{id}: {got}, expected {want}");
    };
    check("A", 200, 100.0, 3, 400);
    check("A1", 66, 33.33, 0, 100);
    check("A2", 100, 50.0, 1, 300);
    check("A3", 0, 0.0, 0, 0);
    fixture.expect(&output, "A guarantee=0.2/0.2/0.1875/0.2/0\nA1 guarantee=0.066/0.06666/0/0.05/0");
}

/// 16.8
#[test]
fn priority_tiers() {
    let tree = |donor: &str, priority: &str| {
        format!(
            "options strict
pool D strong=cpu:60 {donor}
  pool P strong=cpu:30 {priority}
  pool Q strong=cpu:30
pool O strong=cpu:60"
        )
    };
    let mut fixture = Fixture::parse(&tree("donor", "priority"));
    let output = fixture.update(MINUTE);
    fixture.expect(&output, "D guarantee=0.5\nO guarantee=0.5\nP guarantee=0.3\nQ guarantee=0.2");
    assert!(
        matches!(
            output.problems[..],
            [Problem::OvercommitStrongAndFlow { .. }, Problem::OvercommitStrongAndBurst { .. }]
        ),
        "{:?}",
        output.problems
    );
    let tiers = output.elements[fixture.index("P")].strong_guarantee_share_by_tier;
    assert_eq!(tiers.regular_pools, Share::ZERO);

    let output = Fixture::parse(&tree("", "")).update(MINUTE);
    fixture.expect(&output, "D guarantee=0.5\nP guarantee=0.25\nQ guarantee=0.25");

    // Without a donor above, priority is ignored and reported.
    let output = Fixture::parse(&tree("", "priority")).update(MINUTE);
    fixture.expect(&output, "P guarantee=0.25\nQ guarantee=0.25");
    let pools = vec![fixture.index("P")];
    assert!(output.problems.contains(&Problem::PriorityStrongGuaranteeAdjustmentPoolsWithoutDonor { pools }));
}

/// 16.9
#[test]
fn estimated_shares_and_inferred_weights() {
    check(
        "
pool A strong=cpu:20
pool B strong=cpu:10 weight=3
pool C relaxed flow=cpu:10",
        "
A promised_share=0.32 estimated=0.2
B promised_share=0.46 estimated=0.1
C promised_share=0.22 estimated=0 estimated_with_flow=0",
    );
    check(
        "
options infer=10
pool A strong=cpu:20
  op a
pool B strong=cpu:10
pool C relaxed flow=cpu:10",
        "A w=5\nB w=2.5\nC w=2.5\na w=1",
    );
}

/// 16.10
#[test]
fn gangs_of_equal_weight() {
    let tree = "
pool A
  gang a demand=60%
pool B
  gang b demand=60%";
    check(&format!("options gang\n{tree}"), "A fair==0\nB fair==0");
    check(&format!("options gang improved\n{tree}"), "A fair=0.6\nB fair==0");
    // Standing exactly at the jump: a gang that wants everything never gets it and blocks nobody.
    check(
        "
options gang
fifo A
  gang a demand=all start=1
  op b demand=10% start=2",
        "a fair==0\nb fair=0.1",
    );
}

/// 16.11
#[test]
fn left_continuity() {
    let tree = |limits: &str| {
        format!(
            "
total slots:100000,cpu:100,memory:100G,network:100
pool P {limits}
  pool Q
    op x weight=10 demand=slots:10,cpu:10,memory:10G,network:40
    op y weight=1 demand=slots:1000,cpu:1000,memory:1000G"
        )
    };
    check(
        &tree("limits=cpu:40"),
        "
P fair=0.00014/0.14/0/0.14/0.4
x fair=0.0001/0.1/0/0.1/0.4
y fair=0.00004/0.04/0/0.04/0",
    );
    check(&tree(""), "x fair=0.0001/0.1/0/0.1/0.4\ny fair=0.0009/0.9/0/0.9/0");
}

/// 16.12
#[test]
fn satisfaction() {
    let mut fixture = Fixture::parse(
        "options strict
pool A
  op x usage=slots:15,cpu:20,memory:100M demand=slots:60,cpu:60,memory:100M
  op y usage=slots:30,cpu:40,memory:300M demand=all",
    );
    let output = fixture.update(MINUTE);
    fixture.expect(&output, "x fair=0.4875/0.5/0.1\ny fair=0.41666667/0.5/0.41666667");
    for (id, expected) in [("x", 0.4), ("y", 0.8), ("A", 0.4 / (0.1 + 5.0 / 12.0))] {
        let e = &output.elements[fixture.index(id)];
        let got = local_satisfaction(&e.fair_share.total, &e.usage_share, &e.demand_share);
        assert!((got - expected).abs() < 1e-9, "{id}: {got}, expected {expected}");
    }
}
