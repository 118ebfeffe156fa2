//! Memory of the snapshot before this one.
//!
//! A snapshot has a few hundred bytes in several pieces for each operation, and there is a new one every
//! second: to ask for all of it and to give it back was a quarter of an update. If nobody reads the old
//! snapshot any more, its pieces serve again.

use super::{ElementInfo, KindInfo, OperationInfo, Outcome, PoolInfo, Snapshot};
use fairshare::ElementOutput;
use std::sync::Arc;

/// Pieces that may be used again. What is in them means nothing.
#[derive(Default)]
pub(crate) struct Spare {
    pub elements: Vec<ElementInfo>,
    pub pools: Boxes<PoolInfo>,
    pub operations: Boxes<OperationInfo>,
    pub results: Boxes<ElementOutput>,
}

/// Boxes that may be used again.
pub(crate) struct Boxes<T>(Vec<Box<T>>);

impl<T> Default for Boxes<T> {
    fn default() -> Boxes<T> {
        Boxes(Vec::new())
    }
}

impl<T> Boxes<T> {
    /// Like [`Box::new`], in memory that is there if there is some.
    pub fn put(&mut self, value: T) -> Box<T> {
        match self.0.pop() {
            Some(mut used) => {
                *used = value;
                used
            }
            None => Box::new(value),
        }
    }
}

impl Spare {
    /// Of a tree of a snapshot, which is empty afterwards; nothing if somebody has it.
    pub fn of(snapshot: &mut Arc<Snapshot>, tree: usize) -> Spare {
        let trees = Arc::get_mut(snapshot).map(|s| &mut s.trees);
        let Some(tree) = trees.and_then(|trees| trees.get_mut(tree)).and_then(Arc::get_mut) else {
            return Spare::default();
        };
        let mut spare = Spare { elements: std::mem::take(&mut tree.elements), ..Spare::default() };
        // From the end, so that an element that is still there gets what it had: that is still at hand.
        for ElementInfo { outcome, kind, .. } in spare.elements.drain(..).rev() {
            match kind {
                KindInfo::Pool(pool) => spare.pools.0.push(pool),
                KindInfo::Operation(operation) => spare.operations.0.push(operation),
            }
            if let Outcome::Pool(result) = outcome {
                spare.results.0.push(result);
            }
        }
        spare
    }
}
