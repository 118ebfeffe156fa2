//! Counters and queues against a slow twin that keeps no counters: it counts operations whenever it
//! needs a number (scheduling.md 4).

use crate::common::*;
use crate::random::{Random, scripts};
use scheduler::OperationDesc;
use std::collections::BTreeMap;
use vocab::OperationType;

#[derive(Clone, Debug)]
struct TwinPool {
    name: String,
    parent: Option<usize>,
    max_running: usize,
    max_all: usize,
    lightweight: bool,
    queue: Vec<u32>,
}

#[derive(Clone, Debug)]
struct TwinOperation {
    pool: usize,
    vanilla: bool,
    /// None: runs.
    waits_for: Option<usize>,
}

#[derive(Clone, Debug)]
struct Twin {
    pools: Vec<TwinPool>,
    operations: BTreeMap<u32, TwinOperation>,
}

impl Twin {
    fn chain(&self, pool: usize) -> Vec<usize> {
        std::iter::successors(Some(pool), |p| self.pools[*p].parent).collect()
    }

    fn path(&self, pool: usize) -> String {
        self.chain(pool).iter().rev().map(|p| format!("/{}", self.pools[*p].name)).collect()
    }

    fn is_lightweight(&self, o: &TwinOperation) -> bool {
        o.vanilla && self.pools[o.pool].lightweight
    }

    fn running(&self, pool: usize) -> usize {
        let counted = |o: &&TwinOperation| o.waits_for.is_none() && !self.is_lightweight(o);
        self.operations.values().filter(counted).filter(|o| self.chain(o.pool).contains(&pool)).count()
    }

    fn all(&self, pool: usize) -> usize {
        self.operations.values().filter(|o| self.chain(o.pool).contains(&pool)).count()
    }

    fn violated(&self, pool: usize) -> Option<usize> {
        self.chain(pool).into_iter().find(|p| self.running(*p) >= self.pools[*p].max_running)
    }

    /// Decides about an operation that stands nowhere.
    fn admit(&mut self, n: u32) {
        let o = self.operations[&n].clone();
        // It must not count itself.
        self.operations.get_mut(&n).unwrap().waits_for = Some(usize::MAX);
        let violated = self.violated(o.pool).filter(|_| !self.is_lightweight(&o));
        self.operations.get_mut(&n).unwrap().waits_for = violated;
        if let Some(v) = violated {
            self.pools[v].queue.push(n);
        }
    }

    fn release(&mut self, pool: usize) {
        for c in self.chain(pool) {
            let mut room = self.pools[c].max_running.saturating_sub(self.running(c));
            while room > 0 && !self.pools[c].queue.is_empty() {
                let n = self.pools[c].queue.remove(0);
                self.admit(n);
                room -= usize::from(self.operations[&n].waits_for.is_none());
            }
        }
    }

    fn scan(&mut self) {
        let mut order: Vec<usize> =
            (0..self.pools.len()).filter(|p| !self.pools[*p].queue.is_empty()).collect();
        order.sort_by_key(|p| if *p == 0 { String::new() } else { self.path(*p) });
        for pool in order {
            for n in self.pools[pool].queue.clone() {
                let o = self.operations[&n].clone();
                if self.violated(o.pool) != Some(pool) || self.is_lightweight(&o) {
                    self.pools[pool].queue.retain(|q| *q != n);
                    self.admit(n);
                }
            }
        }
    }

    fn leave_queue(&mut self, n: u32) {
        if let Some(p) = self.operations[&n].waits_for {
            self.pools[p].queue.retain(|q| *q != n);
        }
    }

    fn unregister(&mut self, n: u32) {
        self.leave_queue(n);
        let o = self.operations.remove(&n).unwrap();
        if o.waits_for.is_none() {
            self.release(o.pool);
        }
    }

    /// True if the operation may be moved, in which case it has been.
    fn change_pool(&mut self, n: u32, to: usize) -> bool {
        let o = self.operations[&n].clone();
        if o.pool == to {
            return true;
        }
        let lightweight_there = o.vanilla && self.pools[to].lightweight;
        let old = self.chain(o.pool);
        let counted = o.waits_for.is_none() && !self.is_lightweight(&o);
        for c in self.chain(to) {
            let common = old.contains(&c);
            if !common && self.all(c) >= self.pools[c].max_all {
                return false;
            }
            if !(lightweight_there || common && counted) && self.running(c) >= self.pools[c].max_running {
                return false;
            }
        }
        self.leave_queue(n);
        let moved = self.operations.get_mut(&n).unwrap();
        (moved.pool, moved.waits_for) = (to, None);
        if o.waits_for.is_none() {
            self.release(o.pool);
        }
        true
    }

    /// The switch lets waiting operations that became lightweight run, before the scan.
    fn switch_lightweight(&mut self, pool: usize, on: bool) {
        self.pools[pool].lightweight = on;
        let inside: Vec<u32> = self
            .operations
            .iter()
            .filter(|(_, o)| o.pool == pool && o.waits_for.is_some())
            .map(|(n, _)| *n)
            .collect();
        for n in inside {
            if self.is_lightweight(&self.operations[&n].clone()) {
                self.leave_queue(n);
                self.operations.get_mut(&n).unwrap().waits_for = None;
            }
        }
    }

    fn standing(&self, n: u32) -> String {
        match self.operations[&n].waits_for {
            None => "running".to_owned(),
            Some(p) => format!("waits for {}", self.pools[p].name),
        }
    }

    fn options(&self, pool: usize) -> yson::Map {
        let p = &self.pools[pool];
        let mode = if p.name.starts_with("line") { "fifo" } else { "fair_share" };
        map(&format!(
            "max_running_operation_count={};max_operation_count={};mode={mode};enable_lightweight_operations=%{}",
            p.max_running, p.max_all, p.lightweight
        ))
    }
}

/// A tree of pools; `line*` are FIFO leaves that may be lightweight.
const POOLS: [(&str, usize); 9] = [
    ("<Root>", 0),
    ("a", 0),
    ("b", 0),
    ("a1", 1),
    ("a2", 1),
    ("b1", 2),
    ("line1", 3),
    ("line2", 2),
    ("deep", 3),
];

fn script(seed: u64) {
    let mut random = Random::new(seed);
    let mut w = World::with(&map(""), &map("max_running_operation_count=7"));
    let mut twin = Twin { pools: Vec::new(), operations: BTreeMap::new() };
    for (i, (name, parent)) in POOLS.into_iter().enumerate() {
        let max_running = if i == 0 { 7 } else { random.below(4) };
        twin.pools.push(TwinPool {
            name: name.to_owned(),
            parent: (i > 0).then_some(parent),
            max_running,
            max_all: if i == 0 { 50_000 } else { max_running + random.below(8) },
            lightweight: name.starts_with("line") && random.chance(50),
            queue: Vec::new(),
        });
        if i > 0 {
            w.pool(name, POOLS[parent].0, "mode=fair_share").unwrap();
            w.s.set_pool_options(TREE, name, &twin.options(i)).unwrap();
        }
    }
    for step in 0..60u32 {
        let live: Vec<u32> = twin.operations.keys().copied().collect();
        let pool = 1 + random.below(POOLS.len() - 1);
        match random.below(10) {
            0..=4 => {
                let vanilla = random.chance(70);
                let operation_type = if vanilla { OperationType::Vanilla } else { OperationType::Map };
                let desc = OperationDesc { operation_type, ..w.desc(step, POOLS[pool].0) };
                let fits = twin.chain(pool).iter().all(|c| twin.all(*c) < twin.pools[*c].max_all);
                assert_eq!(w.register_desc(desc).is_ok(), fits, "seed {seed} step {step}");
                if fits {
                    twin.operations.insert(step, TwinOperation { pool, vanilla, waits_for: None });
                    twin.admit(step);
                }
            }
            5 | 6 => {
                if let Some(n) = random.pick(&live) {
                    w.unregister(*n);
                    twin.unregister(*n);
                }
            }
            7 => {
                let p = &mut twin.pools[pool];
                p.max_running = random.below(5);
                p.max_all = p.max_running + random.below(8);
                let on = p.name.starts_with("line") && random.chance(50);
                twin.switch_lightweight(pool, on);
                twin.scan();
                w.s.set_pool_options(TREE, POOLS[pool].0, &twin.options(pool)).unwrap();
            }
            8 => {
                if let Some(n) = random.pick(&live) {
                    let moved = twin.change_pool(*n, pool);
                    let result = w.s.change_pool(op(*n), TREE, POOLS[pool].0);
                    assert_eq!(result.is_ok(), moved, "seed {seed} step {step}: {result:?}");
                }
            }
            _ => {
                let parent = random.below(POOLS.len());
                let to = &twin.pools[parent];
                let possible = !to.name.starts_with("line") && !twin.chain(parent).contains(&pool);
                let result = w.s.move_pool(TREE, POOLS[pool].0, &to.name.clone());
                assert_eq!(result.is_ok(), possible, "seed {seed} step {step}: {result:?}");
                if possible && twin.pools[pool].parent != Some(parent) {
                    twin.pools[pool].parent = Some(parent);
                    twin.scan();
                }
            }
        }
        w.check();
        for n in twin.operations.keys() {
            assert_eq!(w.standing(*n), twin.standing(*n), "seed {seed} step {step} operation {n}");
        }
    }
    for (i, (name, _)) in POOLS.iter().enumerate() {
        let lightweight = |o: &&TwinOperation| {
            o.waits_for.is_none() && twin.is_lightweight(o) && twin.chain(o.pool).contains(&i)
        };
        let expected = (
            twin.all(i) as i64,
            twin.running(i) as i64,
            twin.operations.values().filter(lightweight).count() as i64,
        );
        assert_eq!(w.counts(name), expected, "seed {seed} pool {name}");
    }
}

#[test]
fn the_slow_twin_agrees() {
    for seed in 0..scripts(1_500) {
        script(seed);
    }
}
