//! Where Millpond differs from the reference on purpose (fair-share.md 18), and what is refused.

use fairshare::{Cycle, GuaranteeType, Input, InputError, IntegralState, Kind, Mode};
use vocab::{Cpu, Resource, Span, Volume};

use crate::fixture::Fixture;

const MINUTE: Option<Span> = Some(Span::from_secs(60));

/// D1: a pool that was given a lot before a long pause.
#[test]
fn a_pool_without_volume_stops_spending() {
    let run = |options: &str| {
        let mut fixture = Fixture::parse(&format!(
            "{options}\npool A relaxed flow=cpu:10 volume=10 last=0.3\n  op a demand=all\npool B last=0.3"
        ));
        let hour = Some(Span::from_secs(3600));
        let output = fixture.update(hour);
        fixture.expect(&output, "A ratio_volume=0 integral=0");
        for _ in 0..5 {
            fixture.update(MINUTE);
        }
        fixture
    };
    let strict = run("options strict");
    assert_eq!(strict.state[1], IntegralState { last_share: 0.3, accumulated_volume: Volume::default() });
    let own = run("");
    assert!(own.state[1].accumulated_volume.cpu > Cpu(0), "{:?}", own.state[1]);
    assert!(own.state[1].last_share > 0.09, "{:?}", own.state[1]);
    assert_eq!(own.state[own.index("B")].last_share, 0.0);
}

/// D2: capacity of a small flow in a small cluster.
#[test]
fn a_small_flow_has_a_capacity() {
    let tree = "total slots:8,cpu:8,memory:1000M\npool A relaxed flow=cpu:0.4\n  op a demand=all";
    let mut fixture = Fixture::parse(&format!("options strict\n{tree}"));
    let output = fixture.update(MINUTE);
    fixture.expect(&output, "A integral=0");
    let mut fixture = Fixture::parse(tree);
    let output = fixture.update(MINUTE);
    fixture.expect(&output, "A integral=0.05");
}

/// D10: the numbers of the specification.
#[test]
fn a_limit_on_one_resource_does_not_raise_the_others() {
    let tree = |limit: u32| {
        format!(
            "total cpu:1000,gpu:94
pool A strong=cpu:100,gpu:8 limits=gpu:{limit} burst burst=cpu:200 flow=cpu:200 volume=100000
  op a demand=cpu:1000"
        )
    };
    let check = |options: &str, limit: u32, cpu: f64| {
        let mut fixture = Fixture::parse(&format!("{options}\n{}", tree(limit)));
        let output = fixture.update(None);
        let got = output.elements[1].proposed_integral_share[Resource::Cpu];
        assert!((got - cpu).abs() < 1e-8, "{options} {limit}: {got}, expected {cpu}");
    };
    check("options strict", 20, 0.9);
    check("options strict", 21, 0.2);
    check("", 20, 0.2);
    check("", 21, 0.2);
}

/// D4: ties of FIFO order.
#[test]
fn fifo_order_is_complete() {
    let mut fixture = Fixture::parse(
        "fifo A
  op a start=5 tie=3 demand=10%
  op b start=5 tie=1 demand=10%
  op c start=4 tie=9 demand=10%
  op d start=9 weight=2 demand=10%",
    );
    let output = fixture.update(None);
    fixture.expect(&output, "d fifo=0\nc fifo=1\nb fifo=2\na fifo=3");
    let pool = fixture.index("A");
    if let Kind::Pool(pool) = &mut fixture.input.elements[pool].kind {
        pool.fifo_sort_parameters = vec![fairshare::FifoSortParameter::PendingAllocationCount];
    }
    fixture.change("a", "pending=1");
    fixture.change("d", "pending=2");
    let output = fixture.update(None);
    fixture.expect(&output, "c fifo=0\nb fifo=1\na fifo=2\nd fifo=3");
}

/// 7.2: between two periodic updates nothing is refilled, spent or forgotten.
#[test]
fn an_extra_update_leaves_the_state_alone() {
    let mut fixture = Fixture::parse(
        "pool A burst flow=cpu:10 burst=cpu:50 volume=100
  op a demand=all
pool B relaxed flow=cpu:10 volume=5
  op b demand=20%",
    );
    let periodic = fixture.update(MINUTE);
    let state = fixture.state.clone();
    let same = fairshare::update(&fixture.input, &mut fixture.state, Cycle::Extra).expect("a valid tree");
    assert_eq!(fixture.state, state);
    for (a, b) in periodic.elements.iter().zip(&same.elements) {
        assert_eq!(a.fair_share, b.fair_share);
    }
    fixture.change("a", "demand=10%");
    let output = fairshare::update(&fixture.input, &mut fixture.state, Cycle::Extra).expect("a valid tree");
    fixture.expect(&output, "A integral=0.1 last_share=0.1 ratio_volume=106");
    assert_eq!(fixture.state, state, "the share that was given is spent until the next periodic update");
}

/// 5.3, 5.4
#[test]
fn historic_usage_lowers_weights() {
    let mut fixture = Fixture::parse(
        "pool A historic=1 weight=4
  op a demand=all
pool B historic=0
  op b demand=all",
    );
    let output = fixture.update(None);
    fixture.expect(&output, "A w=2 fair=2:3\nB w=1 fair=1:3");
}

/// 9.5
#[test]
fn small_operations_go_ahead_of_a_gang_that_does_not_fit() {
    let tree = |options: &str| {
        format!(
            "options gang {options}
fifo A strong=cpu:30 reorder
  gang big demand=40% start=1
  op one demand=10% start=2
  gang two demand=20% start=3
  op three demand=20% start=4
  op four demand=1% start=5
pool B strong=cpu:70
  op b demand=all"
        )
    };
    let mut fixture = Fixture::parse(&tree("reorder"));
    let output = fixture.update(None);
    fixture.expect(
        &output,
        "
one fifo=1 effective=0 fair=0.1
two fifo=2 effective=1
three fifo=3 effective=2
big fifo=0 effective=3 fair=0
four fifo=4 effective=4",
    );
    let output = Fixture::parse(&tree("")).update(None);
    fixture.expect(&output, "big fifo=0 effective=-1\none fifo=1 effective=-1 fair=0");
}

#[test]
fn inputs_that_make_no_sense_are_refused() {
    let tree = "fifo F\n  op a demand=10%\npool P relaxed flow=cpu:10\n  pool Q\n    op b demand=10%";
    let check = |spoil: &dyn Fn(&mut Input), expected: &str| {
        let mut fixture = Fixture::parse(tree);
        spoil(&mut fixture.input);
        let before = fixture.state.clone();
        let cycle = Cycle::Periodic { since_previous: MINUTE };
        let error = fairshare::update(&fixture.input, &mut fixture.state, cycle).expect_err(expected);
        assert_eq!(error.to_string(), expected);
        assert_eq!(fixture.state, before);
    };
    fn pool(input: &mut Input, e: usize) -> &mut fairshare::Pool {
        match &mut input.elements[e].kind {
            Kind::Pool(pool) => pool,
            Kind::Operation(_) => panic!("not a pool"),
        }
    }
    let root = "element 0 must be the root: a fair_share pool without integral guarantees";
    check(&|input| pool(input, 0).mode = Mode::Fifo, root);
    check(&|input| pool(input, 0).integral_guarantees.guarantee_type = GuaranteeType::Burst, root);
    check(
        &|input| pool(input, 4).integral_guarantees.guarantee_type = GuaranteeType::Burst,
        "integral pool 4 cannot be inside of integral pool 3",
    );
    check(
        &|input| pool(input, 3).mode = Mode::Fifo,
        "pool 4 cannot be a child of pool 3, which is in FIFO mode",
    );
    check(&|input| input.elements[3].parent = 5, "parent 5 of element 3 must come before it in the list");
    check(&|input| input.elements[3].parent = 2, "parent 2 of element 3 must be a pool, it is an operation");
    check(
        &|input| {
            if let Kind::Operation(operation) = &mut input.elements[2].kind {
                operation.usage = operation.demand;
                operation.usage.gpu = 1;
            }
        },
        "gpu usage 1 of operation 2 exceeds its demand 0",
    );
    check(
        &|input| input.elements[2].weight = Some(f64::NAN),
        "weight of element 2 must be between 2^-26 and 2^26, it is NaN",
    );
    check(
        &|input| input.elements[1].resource_limits.cpu = Cpu(-1),
        "resource limits of element 1 must not be negative",
    );
    check(&|input| input.total.memory = -1, "total of element 0 must not be negative");
    let mut fixture = Fixture::parse(tree);
    fixture.state.pop();
    let error = fairshare::update(&fixture.input, &mut fixture.state, Cycle::Extra);
    assert_eq!(error, Err(InputError::StateCount { states: 5, elements: 6 }));
}

/// Nothing at all, and a cluster without nodes.
#[test]
fn empty_trees() {
    let mut fixture = Fixture::parse("");
    let output = fixture.update(MINUTE);
    fixture.expect(&output, "root fair==0 limited==0");
    for options in ["options strict", "options improved gang"] {
        let mut fixture = Fixture::parse(&format!(
            "{options}
total cpu:0
pool A strong=cpu:10 burst flow=cpu:10 burst=cpu:20
  op a demand=cpu:5 usage=cpu:1
fifo B
  gang b demand=cpu:5"
        ));
        let output = fixture.update(MINUTE);
        fixture.expect(&output, "root fair==0\nA fair==0 guarantee==0\nb fair==0");
    }
}

/// A FIFO pool is followed up to where it stands: of each operation one segment that grows and one to the next
/// whole fit factor. A pool that takes all it wants is not followed.
#[test]
fn how_far_functions_were_followed_is_told_where_they_were() {
    let mut fixture = Fixture::parse(
        "
fifo A
  op a1 demand=cpu:10
  op a2 demand=cpu:200
pool B
  op b demand=cpu:5",
    );
    let output = fixture.update(None);
    let size = |id| output.elements[fixture.index(id)].function_size;
    assert_eq!([size("A"), size("a1"), size("B"), size("b")], [Some(3), None, None, None]);
}
