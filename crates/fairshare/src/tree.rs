//! The shape of a tree: children, and an order in which every subtree is one stretch.

use std::ops::Range;

use crate::input::Element;

/// See the module.
pub(crate) struct Tree {
    /// By element, in the order of the input.
    pub(crate) children: Vec<Vec<usize>>,
    /// Every element after its parent, children in order: first the whole subtree of one, then the next.
    /// Forwards it is a top-down pass, backwards a bottom-up one; no recursion is needed anywhere.
    pub(crate) preorder: Vec<usize>,
    /// By element, its place in `preorder`.
    pub(crate) position: Vec<usize>,
    /// By element, the place after the last one of its subtree.
    end: Vec<usize>,
}

impl Tree {
    /// Elements must have been checked: parents come first.
    pub(crate) fn new(elements: &[Element]) -> Tree {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); elements.len()];
        for (e, element) in elements.iter().enumerate().skip(1) {
            children[element.parent].push(e);
        }
        let mut preorder = Vec::with_capacity(elements.len());
        let mut stack = vec![0];
        while let Some(e) = stack.pop() {
            preorder.push(e);
            stack.extend(children[e].iter().rev());
        }
        let mut position = vec![0; elements.len()];
        for (place, e) in preorder.iter().enumerate() {
            position[*e] = place;
        }
        let mut end = vec![0; elements.len()];
        for &e in preorder.iter().rev() {
            end[e] = children[e].last().map_or(position[e] + 1, |last| end[*last]);
        }
        Tree { children, preorder, position, end }
    }

    /// Places of the subtree of an element in `preorder`, itself first.
    pub(crate) fn subtree(&self, e: usize) -> Range<usize> {
        self.position[e]..self.end[e]
    }
}
