//! The functions themselves: worked examples (fair-share.md 16) and invariants 1 and 2 (19).

use vocab::{Share, Span};

use crate::fixture::Fixture;
use crate::input::{Cycle, Kind, Mode};
use crate::plain::Plain;
use crate::plain::max_fit::closed_form;
use crate::plain::piecewise::{Function, sum};
use crate::random::{Kinds, Random, tree, tree_count};
use crate::state::Work;

const CYCLE: Cycle = Cycle::Periodic { since_previous: Some(Span::from_secs(60)) };
const DELTA: f64 = 1e-12;

/// Builds the tree and shows its functions by name.
fn with_functions(text: &str, check: impl Fn(&dyn Fn(&str) -> Functions)) {
    let fixture = Fixture::parse(&format!("options strict\n{text}"));
    let mut as_it_is = |x| x;
    let mut work = Work::new(&fixture.input);
    work.read_states(&fixture.state);
    let mut update = Plain::compute(&mut work, &fixture.input, CYCLE, &mut as_it_is);
    update.build(0);
    check(&|id| Functions::of(&update, fixture.index(id)));
}

struct Functions {
    by_fit: Function<Share>,
    max_fit: Function<f64>,
    by_sugg: Function<Share>,
}

impl Functions {
    fn of(update: &Plain, e: usize) -> Functions {
        let functions = &update.functions[e];
        Functions {
            by_fit: functions.by_fit.clone().expect("built"),
            max_fit: functions.max_fit.clone().expect("built"),
            by_sugg: functions.by_sugg.clone().expect("built"),
        }
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

fn check_scalar(f: &Function<f64>, expected: &[(f64, f64)]) {
    let same = f.points().len() == expected.len()
        && f.points().iter().zip(expected).all(|(p, (x, y))| near(p.x, *x) && near(p.y, *y));
    assert!(same, "{:?}\nexpected {expected:?}", f.points());
}

/// Expected values are those of slots, cpu, memory.
fn check_vector(f: &Function<Share>, expected: &[(f64, [f64; 3])]) {
    let same = f.points().len() == expected.len()
        && f.points().iter().zip(expected).all(|(p, (x, [slots, cpu, memory]))| {
            near(p.x, *x) && near(p.y.0[0], *slots) && near(p.y.0[1], *cpu) && near(p.y.0[3], *memory)
        });
    assert!(same, "{:?}\nexpected {expected:?}", f.points());
}

/// 16.1
#[test]
fn functions_of_one_operation() {
    let operation = "op a usage=slots:20,cpu:10,memory:100M demand=slots:60,cpu:40,memory:500M";
    with_functions(operation, |functions| {
        let a = functions("a");
        let (middle, usage, demand) = ([0.1, 0.1, 0.1], [0.2, 0.1, 0.1], [0.6, 0.4, 0.5]);
        check_vector(&a.by_fit, &[(0.0, [0.0; 3]), (0.5, middle), (1.0, usage), (2.0, demand)]);
        let bends = [(0.0, 0.0), (0.1, 0.5), (0.2, 1.0), (0.4, 1.5), (0.5, 1.75), (0.6, 2.0), (1.0, 2.0)];
        check_scalar(&a.max_fit, &bends);
        check_vector(
            &a.by_sugg,
            &[(0.0, [0.0; 3]), (0.1, middle), (0.2, usage), (0.6, demand), (1.0, demand)],
        );
    });
    with_functions(&format!("pool A limits=cpu:30\n  {operation}"), |functions| {
        let last =
            functions("A").max_fit.points().iter().rev().take(2).map(|p| (p.x, p.y)).collect::<Vec<_>>();
        assert_eq!(
            last,
            [(1.0, 0.466_666_666_666_666_56), (0.466_666_666_666_666_6, 0.466_666_666_666_666_56)]
        );
    });
}

/// 16.2
#[test]
fn two_complementary_operations() {
    let text = "
pool A
  op x demand=slots:100,cpu:100,memory:2000M
  op y demand=slots:100,cpu:200,memory:1000M";
    with_functions(text, |functions| {
        let last = functions("A").by_fit.last();
        check_vector(&functions("A").by_fit, &[(0.0, [0.0; 3]), (1.0, [1.0, 1.5, 1.5])]);
        assert_eq!(last.x, 1.0);
        let reached = functions("A").max_fit.last();
        assert!(near(reached.y, 2.0 / 3.0), "{reached:?}");
    });
}

/// 16.3
#[test]
fn the_root_bends_where_a_child_is_full() {
    let text = "
pool A weight=1
  op a demand=all
pool B weight=2
  op b demand=10%
pool C weight=3
  op c demand=all";
    with_functions(text, |functions| {
        check_scalar(&functions("root").max_fit, &[(0.0, 0.0), (0.3, 0.05), (1.0, 0.225)]);
    });
}

/// 16.4
#[test]
fn a_fifo_pool_jumps_over_a_child_that_is_full() {
    let text = "
fifo A limits=cpu:70
  op a demand=50% start=1
  op b demand=40% start=2
  op c demand=30% start=3";
    with_functions(text, |functions| {
        let bends = [(0.0, 0.0), (0.5, 0.5), (0.5, 1.0), (0.7, 1.2), (1.0, 1.2)];
        check_scalar(&functions("A").max_fit, &bends);
    });
}

/// 16.10
#[test]
fn gangs_jump() {
    let text = "
pool A
  gang a demand=60%
pool B
  gang b demand=60%";
    with_functions(&format!("options gang\n{text}"), |functions| {
        check_scalar(&functions("a").max_fit, &[(0.0, 1.0), (0.6, 1.0), (0.6, 2.0), (1.0, 2.0)]);
        let (none, all) = ([0.0; 3], [0.6; 3]);
        check_vector(&functions("a").by_sugg, &[(0.0, none), (0.6, none), (0.6, all), (1.0, all)]);
        check_vector(
            &functions("root").by_fit,
            &[(0.0, none), (0.6, none), (0.6, [1.2; 3]), (1.0, [1.2; 3])],
        );
        assert!(near(functions("root").max_fit.last().y, 0.6));
    });
    with_functions(&format!("options gang improved\n{text}"), |functions| {
        let (none, one, both) = ([0.0; 3], [0.6; 3], [1.2; 3]);
        let points = [(0.0, none), (2.0, none), (2.0, one), (3.0, one), (3.0, both), (5.0, both)];
        check_vector(&functions("root").by_fit, &points);
        check_scalar(&functions("root").max_fit, &[(0.0, 2.0), (0.6, 2.0), (0.6, 3.0), (1.0, 3.0)]);
    });
}

fn for_each_pool(mut check: impl FnMut(&str, &Plain, usize)) {
    for seed in 0..tree_count() / 40 {
        let (input, state) = tree(seed, Kinds { integral: true, improved: true, gangs: true });
        let mut as_it_is = |x| x;
        let mut work = Work::new(&input);
        work.read_states(&state);
        let mut update = Plain::compute(&mut work, &input, CYCLE, &mut as_it_is);
        update.build(0);
        for e in 0..input.elements.len() {
            check(&format!("tree {seed}, element {e}"), &update, e);
        }
    }
}

/// Invariant 1.
#[test]
fn functions_never_decrease() {
    for_each_pool(|at, update, e| {
        let Functions { by_fit, max_fit, by_sugg } = Functions::of(update, e);
        for f in [&by_fit, &by_sugg] {
            for pair in f.points().windows(2) {
                let ascends =
                    pair[0].x <= pair[1].x && (0..5).all(|r| pair[0].y.0[r] <= pair[1].y.0[r] + 1e-15);
                assert!(ascends, "1: {at}: {pair:?}");
            }
        }
        for pair in max_fit.points().windows(2) {
            assert!(pair[0].x <= pair[1].x && pair[0].y <= pair[1].y, "1: {at}: {pair:?}");
        }
        assert_eq!((max_fit.first().x, max_fit.last().x), (0.0, 1.0), "1: {at}");
        assert_eq!((by_sugg.first().x, by_sugg.last().x), (0.0, 1.0), "1: {at}");
        if let [.., before, last] = max_fit.points() {
            assert!(before.x < last.x, "1: {at}: a jump at the end");
        }
    });
}

/// Invariant 2. Samples on both sides keep clear of ties.
#[test]
fn functions_agree_with_the_closed_form() {
    let mut random = Random(1);
    for_each_pool(|at, update, e| {
        let Functions { by_fit, max_fit, by_sugg } = Functions::of(update, e);
        let (guarantee, limits) = (update.u.guarantee_share(e), update.u.out[e].limits_share);
        for _ in 0..8 {
            let s = random.unit();
            let (below, above) = ((s - DELTA).max(0.0), (s + DELTA).min(1.0));
            let least = closed_form(&by_fit, guarantee, limits, below) - DELTA;
            let most = closed_form(&by_fit, guarantee, limits, above) + DELTA;
            let got = max_fit.value(s);
            assert!(least <= got && got <= most, "2: {at}: max_fit({s}) = {got}, not {least} .. {most}");
            let least = by_fit.value(max_fit.value(below));
            let most = by_fit.right_limit(max_fit.right_limit(above));
            let got = by_sugg.value(s);
            let between = (0..5).all(|r| least.0[r] - 1e-11 <= got.0[r] && got.0[r] <= most.0[r] + 1e-11);
            assert!(between, "2: {at}: by_sugg({s}) = {got:?}, not {least:?} .. {most:?}");
        }
    });
}

/// Section 17, row "FIFO fast path against sum": bit for bit.
#[test]
fn concatenation_is_the_sum() {
    let mut seen = 0;
    for_each_pool(|at, update, e| {
        let fifo = matches!(&update.u.input.elements[e].kind, Kind::Pool(pool) if pool.mode == Mode::Fifo);
        let order = update.u.served(e);
        if !fifo || order.is_empty() {
            return;
        }
        let n = order.len() as f64;
        let children: Vec<_> = order
            .iter()
            .enumerate()
            .map(|(i, c)| {
                let by_sugg = update.by_sugg(*c).clone().shift(i as f64);
                let mut f = Function::builder(8);
                f.add_point(0.0, by_sugg.first().y);
                by_sugg.points().iter().for_each(|p| f.add_point(p.x, p.y));
                f.extend_right(n)
            })
            .collect();
        let plain = sum(&children, 0.0, n);
        assert_eq!(update.by_fit(e).points(), plain.points(), "{at}");
        seen += 1;
    });
    assert!(seen > 50, "only {seen} FIFO pools");
}
