//! Updates of a tree that keeps its shape ask for no memory.

#![allow(unsafe_code)] // An allocator that counts is a trait with unsafe methods.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use fairshare::{Cycle, IntegralState, Kind, Updater};
use vocab::{Resources, Span};

use crate::random::{Kinds, Random, tree};

thread_local! {
    /// Requests for memory of this thread: tests run side by side.
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the allocator of the system as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        REQUESTS.with(|n| n.set(n.get() + 1));
        unsafe { System.alloc(layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        REQUESTS.with(|n| n.set(n.get() + 1));
        unsafe { System.realloc(memory, layout, size) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests during one update.
fn requests(updater: &mut Updater, state: &mut [IntegralState]) -> u64 {
    let cycle = Cycle::Periodic { since_previous: Some(Span::from_millis(200)) };
    let before = REQUESTS.with(Cell::get);
    updater.update(state, cycle).expect("a valid tree");
    REQUESTS.with(Cell::get) - before
}

/// New demand and usage of one operation out of so many.
fn change(updater: &mut Updater, random: &mut Random, one_of: u64) {
    let total = updater.input().total;
    for e in 0..updater.input().elements.len() {
        if random.below(one_of) != 0 {
            continue;
        }
        let Some(operation) = updater.operation_mut(e) else { continue };
        let part = random.unit() * random.unit() / 20.0;
        operation.demand = Resources::from_raw(|r| (total.raw(r) as f64 * part * random.unit()) as i64);
        operation.usage = operation.demand * (random.unit() * 0.5);
    }
}

/// A few dozen random trees side by side under one root.
fn forest() -> (fairshare::Input, Vec<IntegralState>) {
    let (mut input, mut state) = tree(1, Kinds { integral: true, improved: false, gangs: true });
    for seed in 2..40 {
        let (other, states) = tree(seed, Kinds { integral: true, improved: false, gangs: true });
        let first = input.elements.len() - 1;
        for (mut element, state_of) in other.elements.into_iter().zip(states).skip(1) {
            element.parent = if element.parent == 0 { 0 } else { element.parent + first };
            if let Kind::Pool(pool) = &mut element.kind {
                pool.strong_guarantee_resources = fairshare::Configured::NONE;
                pool.integral_guarantees.burst_guarantee_resources = input.total * 0.001;
                pool.integral_guarantees.resource_flow = input.total * 0.001;
            }
            input.elements.push(element);
            state.push(state_of);
        }
    }
    (input, state)
}

#[test]
fn steady_updates_ask_for_no_memory() {
    let (input, mut state) = forest();
    assert!(input.elements.len() > 400, "{} elements", input.elements.len());
    for improved in [false, true] {
        let mut input = input.clone();
        input.options.enable_improved_fair_share_by_fit_factor_computation = improved;
        let mut random = Random(5);
        let mut updater = Updater::new(input).expect("a valid tree");
        assert!(requests(&mut updater, &mut state) > 0, "the first update makes room, and it is counted");
        for _ in 0..10 {
            change(&mut updater, &mut random, 1);
            requests(&mut updater, &mut state);
        }
        for one_of in [1, 10, 100, 1, 10, 100] {
            for _ in 0..10 {
                change(&mut updater, &mut random, one_of);
                let n = requests(&mut updater, &mut state);
                assert_eq!(n, 0, "one of {one_of} operations changed, improved {improved}");
            }
        }
    }
}
