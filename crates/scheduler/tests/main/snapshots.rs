//! Snapshots use the memory of the ones before them, if nobody reads those: that must not be seen.

use crate::common::*;
use crate::random::{Random, scripts};
use scheduler::Snapshot;
use std::sync::Arc;

/// Everything that is in it.
fn text(snapshot: &Snapshot) -> String {
    format!("{snapshot:?}")
}

/// One story: pools, nodes and operations come and go, and shares are computed in between. The snapshots of
/// all updates, told to somebody as they are made.
fn story(seed: u64, tell: &mut dyn FnMut(Arc<Snapshot>)) {
    let mut random = Random::new(seed);
    let mut w = World::new();
    let mut pools = vec![String::new()];
    let mut operations: Vec<u32> = Vec::new();
    for step in 1..60u32 {
        match random.below(8) {
            0 => {
                let parent = random.pick(&pools).cloned().unwrap_or_default();
                let options = ["", "weight=2.", "max_running_operation_count=1"][random.below(3)];
                let name = format!("p{step}");
                if w.pool(&name, &parent, options).is_ok() {
                    pools.push(name);
                }
            }
            1 if pools.len() > 1 => {
                let pool = pools[1 + random.below(pools.len() - 1)].clone();
                if w.s.remove_pool(TREE, &pool).is_ok() {
                    pools.retain(|p| *p != pool);
                }
            }
            2 => w.node(&format!("n{}", random.below(4)), 4.0, 8),
            3 => drop(w.s.remove_node(&format!("n{}", random.below(4)))),
            4 if !operations.is_empty() => {
                let n = operations.swap_remove(random.below(operations.len()));
                w.unregister(n);
            }
            5 | 6 => {
                let pool = random.pick(&pools).filter(|p| !p.is_empty()).cloned();
                let pool = pool.unwrap_or_else(|| "alice".to_owned());
                if w.register(step, &pool).is_ok() {
                    w.s.set_enabled(op(step), true).expect("known");
                    w.want(step, 1.0, 3);
                    operations.push(step);
                }
            }
            _ => drop(w.schedule(&format!("n{}", random.below(4)))),
        }
        if random.chance(60) {
            tell(w.update());
        }
    }
}

/// A snapshot that somebody has stays as it is, and those after it are what they are without him.
#[test]
fn who_holds_a_snapshot_changes_nothing() {
    for seed in 0..scripts(200) {
        let mut alone = Vec::new();
        story(seed, &mut |snapshot| alone.push(text(&snapshot)));
        let mut held = Vec::new();
        story(seed, &mut |snapshot| held.push(snapshot));
        let held: Vec<String> = held.iter().map(|snapshot| text(snapshot)).collect();
        assert_eq!(alone, held, "seed {seed}");
    }
}
