//! Invariants on random trees (fair-share.md 19). Each has the number of the specification.

use fairshare::{Cycle, ElementOutput, GuaranteeType, Input, IntegralState, Kind, Mode, Operation, Output};
use vocab::{Cpu, RESOURCES, Resources, Share, Span};

use crate::random::{Kinds, Random, some_time, tree, tree_count};

const EPS: f64 = 1e-9;
const ALL: Kinds = Kinds { integral: true, improved: true, gangs: true };

fn update(input: &Input, state: &mut [IntegralState], since_previous: Option<Span>) -> Output {
    fairshare::update(input, state, Cycle::Periodic { since_previous }).expect("a valid tree")
}

/// Trees that broke a rule once. 21245: a suggestion just behind the end of a function that ends in a jump.
const OF_OLD: [u64; 1] = [21_245];

/// A few updates of each of many trees; demand changes now and then.
fn for_each_update(kinds: Kinds, mut check: impl FnMut(&str, &Input, &[IntegralState], &Output)) {
    for seed in (0..tree_count()).chain(OF_OLD) {
        let (mut input, mut state) = tree(seed, kinds);
        // D10: by chance the reference gives a pool more integral share than fits.
        input.options.compat_strict = false;
        let mut random = Random(seed);
        for step in 0..2 {
            let before = state.clone();
            let time = (step > 0 || random.chance(0.5)).then(|| some_time(&mut random));
            let output = update(&input, &mut state, time);
            check(&format!("tree {seed}, step {step}"), &input, &before, &output);
            for e in &mut input.elements {
                if let Kind::Operation(operation) = &mut e.kind
                    && random.chance(0.3)
                {
                    operation.demand = operation.usage + operation.demand * random.unit();
                }
            }
        }
    }
}

fn children(input: &Input, parent: usize) -> impl Iterator<Item = usize> + '_ {
    (1..input.elements.len()).filter(move |e| input.elements[*e].parent == parent)
}

fn at_most(a: Share, b: Share, eps: f64) -> bool {
    RESOURCES.into_iter().all(|r| a[r] <= b[r] + eps)
}

fn sum(shares: impl Iterator<Item = Share>) -> Share {
    shares.fold(Share::ZERO, |sum, share| sum + share)
}

/// 3, 4, 6, 7, 10, 11.
#[test]
fn every_update_keeps_the_bounds() {
    for_each_update(ALL, |at, input, before, output| {
        for (e, out) in output.elements.iter().enumerate() {
            let at = format!("{at}, element {e}");
            bounds(&at, out);
            parts(&at, out);
            let guaranteed = out.strong_guarantee_share + out.proposed_integral_share;
            if e > 0 {
                assert!(
                    out.limits_share.dominates(&guaranteed),
                    "7: {at}: {guaranteed:?} {:?}",
                    out.limits_share
                );
            }
            if let Kind::Pool(pool) = &input.elements[e].kind {
                below_parent(&at, input, output, e);
                if pool.mode == Mode::Fifo
                    && !input.options.enable_improved_fair_share_by_fit_factor_computation
                {
                    fifo_in_turn(&at, input, output, e);
                }
                volumes(&at, out, &before[e]);
            }
        }
        assert!(at_most(output.elements[0].fair_share.total, Share::ONES, EPS), "3: {at}");
        let inconsistent = output.problems.iter().find(|p| p.code() == "fair_share_inconsistency");
        assert!(inconsistent.is_none(), "{at}: {inconsistent:?}");
    });
}

fn bounds(at: &str, out: &ElementOutput) {
    let fair = out.fair_share.total;
    assert!(at_most(fair, out.limits_share, EPS), "3: {at}: {fair:?} above limits {:?}", out.limits_share);
    assert!(
        at_most(fair, out.demand_share, 2.0 * EPS),
        "3: {at}: {fair:?} above demand {:?}",
        out.demand_share
    );
    assert!(at_most(Share::ZERO, fair, 0.0), "3: {at}: {fair:?}");
}

fn parts(at: &str, out: &ElementOutput) {
    for share in [out.fair_share, out.promised_guarantee_fair_share] {
        let whole = share.strong_guarantee + share.integral_guarantee + share.weight_proportional;
        assert!(at_most(whole, share.total, 1e-15) && at_most(share.total, whole, 1e-15), "4: {at}");
        assert!(out.strong_guarantee_share.dominates(&share.strong_guarantee), "4: {at}");
        assert!(at_most(share.integral_guarantee, out.proposed_integral_share, 0.0), "4: {at}");
    }
}

fn below_parent(at: &str, input: &Input, output: &Output, e: usize) {
    let of = |f: fn(&ElementOutput) -> Share| sum(children(input, e).map(|c| f(&output.elements[c])));
    let out = &output.elements[e];
    let fair = of(|c| c.fair_share.total);
    assert!(
        at_most(fair, out.fair_share.total, EPS),
        "3: {at}: children {fair:?}, {:?}",
        out.fair_share.total
    );
    let promised = of(|c| c.promised_guarantee_fair_share.total);
    let own = out.promised_guarantee_fair_share.total;
    if asks_for_promises(input, e) {
        assert!(at_most(promised, own, EPS), "8.3: {at}: children {promised:?}, {own:?}");
        let guaranteed = out.strong_guarantee_share + out.proposed_integral_share;
        let parent = input.elements[e].parent;
        if e == 0 || !asks_for_promises(input, parent) {
            assert!(at_most(own, guaranteed, EPS), "8.3: {at}: {own:?} of {guaranteed:?}");
        }
    } else {
        assert!(own.is_zero(), "8.3: {at}");
    }
    let strong = of(|c| c.strong_guarantee_share);
    assert!(at_most(strong, out.strong_guarantee_share, EPS), "6: {at}");
    assert!(out.limits_share.dominates(&out.strong_guarantee_share), "6: {at}");
}

/// The pool itself or one above it.
fn asks_for_promises(input: &Input, e: usize) -> bool {
    let asks = |e: usize| matches!(&input.elements[e].kind, Kind::Pool(pool) if pool.compute_promised_guarantee_fair_share);
    let mut a = e;
    while a != 0 && !asks(a) {
        a = input.elements[a].parent;
    }
    asks(a)
}

fn fifo_in_turn(at: &str, input: &Input, output: &Output, e: usize) {
    let mut order: Vec<usize> = children(input, e).collect();
    order.sort_by_key(|c| output.elements[*c].effective_fifo_index.or(output.elements[*c].fifo_index));
    let last = order.iter().rposition(|c| !output.elements[*c].fair_share.total.is_zero());
    for c in order.into_iter().take(last.unwrap_or(0)) {
        let out = &output.elements[c];
        assert_eq!(out.fair_share.total, out.limited_demand_share, "10: {at}: child {c} is not satisfied");
    }
}

fn volumes(at: &str, out: &ElementOutput, before: &IntegralState) {
    let Some(integral) = out.integral else { return };
    for r in RESOURCES {
        let (new, old) = (integral.accumulated_volume.get(r), before.accumulated_volume.get(r));
        assert!(new >= 0.0, "11: {at}: {new}");
        let most = old.max(integral.capacity.get(r));
        assert!(new <= most * (1.0 + 1e-12) + 0.01, "11: {at}: {new} above {most}");
    }
}

/// 11, second half.
#[test]
fn no_more_volume_is_accepted_than_overflows() {
    for_each_update(ALL, |at, _, _, output| {
        for r in RESOURCES {
            let of = |f: fn(&fairshare::IntegralOutput) -> vocab::Volume| -> f64 {
                output.elements.iter().filter_map(|e| e.integral.as_ref()).map(|i| f(i).get(r)).sum()
            };
            let (overflow, accepted) = (of(|i| i.overflow), of(|i| i.accepted_free_volume));
            assert!(accepted <= overflow * (1.0 + 1e-9) + 0.05, "11: {at}: {r}: {accepted} of {overflow}");
        }
    });
}

/// 5: with enough of everything wanted, everybody gets at least what is guaranteed.
#[test]
fn guarantees_are_kept() {
    let mut kept = 0;
    for seed in 0..tree_count() {
        let (mut input, mut state) = tree(seed, Kinds { integral: true, ..Kinds::default() });
        let total = input.total;
        for e in &mut input.elements {
            e.resource_limits = Resources::INFINITE;
            if let Kind::Operation(operation) = &mut e.kind {
                *operation = Operation { demand: total * 2.0, ..Operation::default() };
            }
        }
        let output = update(&input, &mut state, Some(Span::from_secs(60)));
        if output.problems.iter().any(|p| p.code() == "pool_tree_guarantees_overcommit") {
            continue;
        }
        // Pools with nothing to run below take nothing, which leaves guarantees of their parents idle.
        let mut operations: Vec<usize> =
            input.elements.iter().map(|e| usize::from(matches!(e.kind, Kind::Operation(_)))).collect();
        for e in (1..input.elements.len()).rev() {
            operations[input.elements[e].parent] += operations[e];
        }
        let busy = |e: usize| {
            (1..input.elements.len()).all(|c| {
                let mut a = c;
                while a != e && a != 0 {
                    a = input.elements[a].parent;
                }
                a != e || operations[c] > 0
            })
        };
        for (e, out) in
            output.elements.iter().enumerate().skip(1).filter(|(e, _)| operations[*e] > 0 && busy(*e))
        {
            let guaranteed = out.strong_guarantee_share + out.proposed_integral_share;
            // Within one resource: components of an explicit guarantee may be skewed.
            let least = guaranteed
                .0
                .iter()
                .zip(RESOURCES)
                .filter(|(_, r)| total.raw(*r) > 0)
                .map(|(x, _)| *x)
                .fold(f64::INFINITY, f64::min);
            for r in RESOURCES.into_iter().filter(|r| total.raw(*r) > 0) {
                let got = out.fair_share.total[r];
                assert!(got >= least - EPS, "5: tree {seed}, element {e}: {r} {got} of {guaranteed:?}");
            }
            kept += 1;
        }
    }
    assert!(kept as u64 > tree_count() / 4, "only {kept} guarantees were looked at");
}

/// 8
#[test]
fn equal_operations_get_equal_shares() {
    for seed in 0..tree_count() {
        let (mut input, mut state) = tree(seed, Kinds { integral: true, improved: false, gangs: true });
        let Some(twin) = (1..input.elements.len()).find(|e| {
            let fair_share = |p: &Kind| matches!(p, Kind::Pool(pool) if pool.mode == Mode::FairShare);
            matches!(input.elements[*e].kind, Kind::Operation(_))
                && fair_share(&input.elements[input.elements[*e].parent].kind)
        }) else {
            continue;
        };
        input.elements.push(input.elements[twin].clone());
        state.push(IntegralState::default());
        let output = update(&input, &mut state, None);
        let (a, b) = (&output.elements[twin], &output.elements[input.elements.len() - 1]);
        assert_eq!(a.fair_share, b.fair_share, "8: tree {seed}, element {twin}");
    }
}

/// 9, first half: for operations that want something of everything. A pool in which nobody wants more of
/// one resource jumps at that place (16.11), and more demand may make the jump too large to fit.
#[test]
fn more_demand_is_never_less_share() {
    for seed in 0..tree_count() {
        let (mut input, mut state) = tree(seed, Kinds::default());
        let mut random = Random(seed);
        let a_little = Resources::from_raw(|r| (input.total.raw(r) / 50).max(input.total.raw(r).min(1)));
        for e in &mut input.elements {
            if let Kind::Operation(operation) = &mut e.kind {
                operation.usage = Resources::ZERO;
                operation.demand = operation.demand.max(a_little);
            }
        }
        let before = update(&input, &mut state, None);
        let operations: Vec<usize> = (1..input.elements.len())
            .filter(|e| matches!(input.elements[*e].kind, Kind::Operation(_)))
            .collect();
        if operations.is_empty() {
            continue;
        }
        let e = operations[random.below(operations.len() as u64) as usize];
        if let Kind::Operation(operation) = &mut input.elements[e].kind {
            // A whole factor, so that rounding does not change the proportions.
            operation.demand = operation.demand.times(2 + random.below(3) as i64);
        }
        let after = update(&input, &mut state, None);
        let (a, b) = (before.elements[e].fair_share.total, after.elements[e].fair_share.total);
        assert!(at_most(a, b, EPS), "9: tree {seed}, element {e}: {a:?} became {b:?}");
    }
}

/// 9, second half.
#[test]
fn only_proportions_matter() {
    for seed in 0..tree_count() {
        let (input, mut state) = tree(seed, ALL);
        let mut larger = input.clone();
        let times = |amounts: Resources| amounts.times(4);
        let limits = |amounts: Resources| {
            Resources::from_raw(|r| {
                let raw = amounts.raw(r);
                if raw == Resources::INFINITE.raw(r) { raw } else { raw * 4 }
            })
        };
        larger.total = times(larger.total);
        let mut integral = false;
        for e in &mut larger.elements {
            e.resource_limits = limits(e.resource_limits);
            match &mut e.kind {
                Kind::Operation(operation) => {
                    operation.usage = times(operation.usage);
                    operation.demand = times(operation.demand);
                }
                Kind::Pool(pool) => {
                    integral |= pool.integral_guarantees.guarantee_type != GuaranteeType::None;
                    // Derived components are truncated to whole units, which does not scale.
                    pool.strong_guarantee_resources.0 =
                        pool.strong_guarantee_resources.0.map(|raw| raw.map(|raw| raw * 4).or(Some(0)));
                }
            }
        }
        if integral {
            continue;
        }
        let mut smaller = input.clone();
        for e in &mut smaller.elements {
            if let Kind::Pool(pool) = &mut e.kind {
                pool.strong_guarantee_resources.0 =
                    pool.strong_guarantee_resources.0.map(|raw| raw.or(Some(0)));
            }
        }
        let a = update(&smaller, &mut state.clone(), None);
        let b = update(&larger, &mut state, None);
        for (e, (a, b)) in a.elements.iter().zip(&b.elements).enumerate() {
            assert_eq!(a.fair_share, b.fair_share, "9: tree {seed}, element {e}");
        }
    }
}

/// 12: what a pool is given in the long run is its flow, and what it had saved.
#[test]
fn in_the_long_run_a_pool_gets_its_flow() {
    for kind in ["burst burst=cpu:50", "relaxed"] {
        let mut fixture = crate::fixture::Fixture::parse(&format!(
            "pool A {kind} flow=cpu:10 volume=100\n  op a demand=all\npool B strong=cpu:30\n  op b demand=all"
        ));
        let step = Span::from_secs(5);
        let (mut given, mut time) = (0.0, 0.0);
        for i in 0..2000 {
            let output = fixture.update((i > 0).then_some(step));
            let share = output.elements[1].fair_share.integral_guarantee.max_component();
            given += share * 5.0;
            time += 5.0;
            assert!(given <= 100.0 + 0.1 * time + 5.0 * 0.5 + 1e-6, "12: {kind}: {given} after {time} s");
        }
        let mean = given / time;
        assert!((mean - 0.1).abs() < 0.012, "12: {kind}: mean share {mean}");
    }
}

/// 13
#[test]
fn two_halves_refill_as_much_as_the_whole() {
    let tree = "pool A burst flow=cpu:10 burst=cpu:50 volume=100 last=0.2\n  op a\npool B relaxed flow=cpu:7";
    let (mut once, mut twice) = (crate::fixture::Fixture::parse(tree), crate::fixture::Fixture::parse(tree));
    // The same share is spent in both halves.
    once.update(Some(Span::from_secs(60)));
    twice.update(Some(Span::from_secs(30)));
    twice.change("A", "last=0.2");
    twice.update(Some(Span::from_secs(30)));
    for e in [1, 2] {
        let (a, b) = (once.state[e].accumulated_volume, twice.state[e].accumulated_volume);
        assert!((a.cpu.0 - b.cpu.0).abs() <= Cpu(4).0, "13: {a:?} {b:?}");
        assert!((a.memory - b.memory).abs() <= 1e-9 * a.memory.abs() + 1e-6, "13: {a:?} {b:?}");
    }
}

#[test]
fn an_update_is_a_function_of_its_input() {
    for seed in 0..tree_count() / 4 {
        let (input, state) = tree(seed, ALL);
        let (mut first, mut second) = (state.clone(), state);
        let a = update(&input, &mut first, Some(Span::from_secs(1)));
        let b = update(&input, &mut second, Some(Span::from_secs(1)));
        assert_eq!(a, b, "tree {seed}");
        assert_eq!(first, second, "tree {seed}");
    }
}

/// The decisions of section 18 concern integral guarantees only.
#[test]
fn strict_mode_changes_nothing_without_integral_pools() {
    for seed in 0..tree_count() / 2 {
        let (mut input, mut state) = tree(seed, Kinds { integral: false, ..ALL });
        input.options.compat_strict = true;
        let strict = update(&input, &mut state.clone(), None);
        input.options.compat_strict = false;
        assert_eq!(update(&input, &mut state, None), strict, "tree {seed}");
    }
}

/// Amounts from one unit to beyond any cluster: nothing breaks, nothing is handed out twice.
#[test]
fn extreme_amounts() {
    for seed in 0..tree_count() / 2 {
        let (mut input, mut state) = tree(seed, ALL);
        let mut random = Random(seed);
        let mut extreme = |amounts: Resources| {
            let factor = [0.0, 1e-9, 1e-3, 1.0, 1e3, 1e9][random.below(6) as usize];
            (amounts * factor).min(Resources::INFINITE)
        };
        if seed % 2 == 0 {
            input.total = extreme(input.total);
        }
        for e in &mut input.elements {
            e.resource_limits = extreme(e.resource_limits);
            match &mut e.kind {
                Kind::Operation(operation) => {
                    operation.demand = extreme(operation.demand);
                    operation.usage = operation.usage.min(operation.demand);
                }
                Kind::Pool(pool) => {
                    let integral = &mut pool.integral_guarantees;
                    integral.resource_flow = extreme(integral.resource_flow);
                    integral.burst_guarantee_resources = extreme(integral.burst_guarantee_resources);
                }
            }
        }
        for _ in 0..3 {
            let output = update(&input, &mut state, Some(Span::from_secs(3600)));
            for (e, out) in output.elements.iter().enumerate() {
                let fair = out.fair_share.total;
                let sane = RESOURCES.into_iter().all(|r| fair[r].is_finite() && fair[r] >= 0.0);
                assert!(sane && at_most(fair, Share::ONES, EPS), "tree {seed}, element {e}: {fair:?}");
            }
        }
    }
}
