//! The shape of a tree: children, and an order in which every subtree is one stretch.

use std::ops::Range;

use crate::input::{Element, Kind};

/// See the module.
#[derive(Default)]
pub(crate) struct Tree {
    /// All children, those of one parent side by side, in the order of the input.
    child: Vec<usize>,
    /// By element and one more: where its children start.
    start: Vec<usize>,
    /// The pools among all children, and where those of an element start.
    child_pool: Vec<usize>,
    pool_start: Vec<usize>,
    /// Every element after its parent, children in order: first the whole subtree of one, then the next.
    /// Forwards it is a top-down pass, backwards a bottom-up one; no recursion is needed anywhere.
    pub(crate) preorder: Vec<usize>,
    /// The pools of `preorder`.
    pub(crate) pools: Vec<usize>,
    /// By element, its place in `preorder`.
    pub(crate) position: Vec<usize>,
    /// By element, the place after the last one of its subtree.
    end: Vec<usize>,
    /// By element: its place among all children; of the root, which is nobody's child, [`NO_PLACE`].
    slot_of: Vec<u32>,
    /// By element: its place in `pools`, [`NO_PLACE`] for operations.
    row_of: Vec<u32>,
}

/// Of an element that is not in a list.
pub(crate) const NO_PLACE: u32 = u32::MAX;

impl Tree {
    /// Elements must have been checked: parents come first.
    pub(crate) fn new(elements: &[Element]) -> Tree {
        let n = elements.len();
        let mut start = vec![0; n + 1];
        for element in elements.iter().skip(1) {
            start[element.parent + 1] += 1;
        }
        for e in 0..n {
            start[e + 1] += start[e];
        }
        let mut child = vec![0; n.saturating_sub(1)];
        let mut next = start.clone();
        for (e, element) in elements.iter().enumerate().skip(1) {
            child[next[element.parent]] = e;
            next[element.parent] += 1;
        }
        let mut tree = Tree { child, start, ..Tree::default() };
        let mut stack = vec![0];
        while let Some(e) = stack.pop() {
            tree.preorder.push(e);
            stack.extend(tree.children(e).iter().rev());
        }
        tree.position = vec![0; n];
        for (place, e) in tree.preorder.iter().enumerate() {
            tree.position[*e] = place;
        }
        tree.end = vec![0; n];
        for &e in tree.preorder.iter().rev() {
            tree.end[e] = tree.children(e).last().map_or(tree.position[e] + 1, |last| tree.end[*last]);
        }
        let is_pool = |e: &usize| matches!(elements[*e].kind, Kind::Pool(_));
        tree.pool_start = Vec::with_capacity(n + 1);
        for e in 0..n {
            tree.pool_start.push(tree.child_pool.len());
            let pools = tree.child[tree.start[e]..tree.start[e + 1]].iter().copied().filter(is_pool);
            tree.child_pool.extend(pools);
        }
        tree.pool_start.push(tree.child_pool.len());
        tree.pools = tree.preorder.iter().copied().filter(is_pool).collect();
        tree.row_of = places(n, &tree.pools);
        tree.slot_of = places(n, &tree.child);
        tree
    }

    /// In the order of the input.
    #[inline]
    pub(crate) fn children(&self, e: usize) -> &[usize] {
        &self.child[self.slots(e)]
    }
    /// Those that are pools.
    #[inline]
    pub(crate) fn child_pools(&self, e: usize) -> &[usize] {
        &self.child_pool[self.pool_start[e]..self.pool_start[e + 1]]
    }
    /// Where the children of an element are among all children; a table by child can be laid out alike.
    #[inline]
    pub(crate) fn slots(&self, e: usize) -> Range<usize> {
        self.start[e]..self.start[e + 1]
    }
    /// Where an element is among all children.
    #[inline]
    pub(crate) fn slot_of(&self, e: usize) -> Option<usize> {
        Some(self.slot_of[e]).filter(|slot| *slot != NO_PLACE).map(|slot| slot as usize)
    }
    /// Where a pool is among the pools; tables of pools alone are laid out alike.
    #[inline]
    pub(crate) fn row_of(&self, e: usize) -> Option<usize> {
        Some(self.row_of[e]).filter(|row| *row != NO_PLACE).map(|row| row as usize)
    }
    /// All children, by slot.
    pub(crate) fn all_children(&self) -> &[usize] {
        &self.child
    }
    /// Places of the subtree of an element in `preorder`, itself first.
    pub(crate) fn subtree(&self, e: usize) -> Range<usize> {
        self.position[e]..self.end[e]
    }
}

/// Where each of `n` elements is in a list.
fn places(n: usize, list: &[usize]) -> Vec<u32> {
    let mut places = vec![NO_PLACE; n];
    for (place, e) in list.iter().enumerate() {
        places[*e] = place as u32;
    }
    places
}
