//! The working state of one update, which the steps read and write.

use vocab::{Resources, Share};

use crate::build::Functions;
use crate::input::{GuaranteeType, Input, IntegralState, Kind, Operation, Pool};
use crate::output::{ElementOutput, Problem};
use crate::tree::Tree;
use crate::volume::FreeVolume;

/// One update under way. Each step of fair-share.md 6 is a method, kept in the module of its subject.
pub(crate) struct Update<'a> {
    pub(crate) input: &'a Input,
    pub(crate) tree: Tree,
    /// Attributes as far as they are known; they become the output.
    pub(crate) out: Vec<ElementOutput>,
    /// Copy of the caller's state, copied back at the end.
    pub(crate) state: Vec<IntegralState>,
    pub(crate) problems: Vec<Problem>,
    /// By element; missing until they are built.
    pub(crate) functions: Vec<Functions>,
    /// By element: children of a FIFO pool in the order in which they are served.
    pub(crate) service_order: Vec<Vec<usize>>,
    /// By element: weight of the lightest child, who is offered everything at fit factor 1.
    pub(crate) smallest_weight: Vec<f64>,
    /// Burst pools in pre-order.
    pub(crate) burst_pools: Vec<usize>,
    /// Relaxed pools in pre-order.
    pub(crate) relaxed_pools: Vec<usize>,
    /// By element.
    pub(crate) free_volume: Vec<FreeVolume>,
}

impl<'a> Update<'a> {
    /// Everything computed starts from zero.
    pub(crate) fn new(input: &'a Input, state: &[IntegralState]) -> Update<'a> {
        let n = input.elements.len();
        let mut update = Update {
            input,
            tree: Tree::new(&input.elements),
            out: vec![ElementOutput::default(); n],
            state: state.to_vec(),
            problems: Vec::new(),
            functions: (0..n).map(|_| Functions::default()).collect(),
            service_order: vec![Vec::new(); n],
            smallest_weight: vec![1.0; n],
            burst_pools: Vec::new(),
            relaxed_pools: Vec::new(),
            free_volume: vec![FreeVolume::default(); n],
        };
        for &e in &update.tree.preorder {
            match update.guarantee_type(e) {
                GuaranteeType::None => {}
                GuaranteeType::Burst => update.burst_pools.push(e),
                GuaranteeType::Relaxed => update.relaxed_pools.push(e),
            }
        }
        update
    }

    pub(crate) fn total(&self) -> &'a Resources {
        &self.input.total
    }
    pub(crate) fn pool(&self, e: usize) -> Option<&'a Pool> {
        match &self.input.elements[e].kind {
            Kind::Pool(pool) => Some(pool),
            Kind::Operation(_) => None,
        }
    }
    pub(crate) fn operation(&self, e: usize) -> Option<&'a Operation> {
        match &self.input.elements[e].kind {
            Kind::Pool(_) => None,
            Kind::Operation(operation) => Some(operation),
        }
    }
    /// `None` for operations too.
    pub(crate) fn guarantee_type(&self, e: usize) -> GuaranteeType {
        self.pool(e).map_or(GuaranteeType::None, |pool| pool.integral_guarantees.guarantee_type)
    }
    /// Parent of an element below the root.
    pub(crate) fn parent(&self, e: usize) -> usize {
        self.input.elements[e].parent
    }
    /// Strong guarantee and what was given as integral guarantee.
    pub(crate) fn guarantee_share(&self, e: usize) -> Share {
        self.out[e].strong_guarantee_share + self.out[e].proposed_integral_share
    }

    /// A rule that must hold, up to rounding, whatever the input (D6): a bug stops a debug build; in a
    /// release the caller goes on with the nearest feasible value and operators hear of it.
    pub(crate) fn require(&mut self, holds: bool, element: usize, rule: &'static str) {
        debug_assert!(holds, "element {element}: {rule}");
        let problem = Problem::Inconsistency { element, rule };
        if !holds && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}
