//! The working state of updates, which the steps read and write.

use std::ops::{Index, IndexMut};

use vocab::{RESOURCES, Resources, Share};

use crate::cumulative::{Change, Sums};
use crate::input::{GuaranteeType, Input, IntegralGuarantees, IntegralState, Kind, Mode, Operation, Pool};
use crate::output::{ElementOutput, Problem};
use crate::promised::promising_pools;
use crate::tree::{NO_PLACE, Tree};
use crate::volume::{FreeVolume, Hungry};

/// What belongs to one tree and lives from update to update, except the functions.
#[derive(Default)]
pub(crate) struct Work {
    pub(crate) tree: Tree,
    /// Attributes of pools as far as they are known. What operations show is a function of these, of the
    /// input and of little else, and is worked out for who asks (see [`crate::Results`]).
    pub(crate) out: Rows,
    pub(crate) problems: Vec<Problem>,
    /// By row.
    pub(crate) sums: Vec<Sums>,
    /// By row: what estimates divide by weight among the children, and the sum of the weights.
    pub(crate) rests: Vec<Rests>,
    /// By row, of the update under way; the caller's copy is replaced at the end.
    pub(crate) state: Vec<IntegralState>,
    /// Children by slot (see [`Tree::slots`]), those of a FIFO pool in the order in which they are served.
    served: Vec<usize>,
    /// By slot: place in a FIFO parent, and the one after reordering if that changed anything.
    pub(crate) places: Vec<[u32; 2]>,
    /// By slot.
    weights: Vec<f64>,
    /// By element: weight of the lightest child, who is offered everything at fit factor 1.
    smallest_weight: Vec<f64>,
    /// By row.
    guarantees: Vec<Guarantee>,
    /// Topmost pools that want to know what guarantees alone give, in pre-order.
    promising: Vec<usize>,
    /// Burst pools in pre-order.
    pub(crate) burst_pools: Vec<usize>,
    /// Relaxed pools in pre-order.
    pub(crate) relaxed_pools: Vec<usize>,
    /// Integral pools and the pools above them, to which shares rise.
    raised: Vec<usize>,
    /// By row.
    free_volume: Vec<FreeVolume>,
    hungry: Vec<Hungry>,
    order: Vec<usize>,
}

impl Work {
    /// Takes over the states of pools, by element.
    pub(crate) fn read_states(&mut self, states: &[IntegralState]) {
        for (mine, e) in self.state.iter_mut().zip(&self.tree.pools) {
            *mine = states[*e];
        }
    }

    /// The other way round.
    pub(crate) fn write_states(&self, states: &mut [IntegralState]) {
        for (mine, e) in self.state.iter().zip(&self.tree.pools) {
            states[*e] = *mine;
        }
    }

    /// For a tree of this shape; everything computed starts from zero.
    pub(crate) fn new(input: &Input) -> Work {
        let n = input.elements.len();
        let tree = Tree::new(&input.elements);
        let guarantee_type = |e: &usize| match &input.elements[*e].kind {
            Kind::Pool(pool) => pool.integral_guarantees.guarantee_type,
            Kind::Operation(_) => GuaranteeType::None,
        };
        let of_type = |wanted: GuaranteeType| {
            tree.pools.iter().copied().filter(|e| guarantee_type(e) == wanted).collect()
        };
        Work {
            out: Rows::of_pools(&tree, n),
            problems: Vec::new(),
            sums: vec![Sums::default(); tree.pools.len()],
            rests: vec![Rests::default(); tree.pools.len()],
            state: vec![IntegralState::default(); tree.pools.len()],
            served: tree.all_children().to_vec(),
            places: vec![[NO_PLACE; 2]; tree.all_children().len()],
            weights: vec![1.0; tree.all_children().len()],
            smallest_weight: vec![1.0; n],
            guarantees: tree.pools.iter().map(|e| Guarantee::new(&input.elements[*e].kind)).collect(),
            promising: promising_pools(input, &tree),
            burst_pools: of_type(GuaranteeType::Burst),
            relaxed_pools: of_type(GuaranteeType::Relaxed),
            raised: raised(input, &tree),
            free_volume: vec![FreeVolume::default(); tree.pools.len()],
            hungry: Vec::new(),
            order: Vec::new(),
            tree,
        }
    }

    /// One update of the tree.
    pub(crate) fn update<'a>(&'a mut self, input: &'a Input) -> Update<'a> {
        let total = &input.total;
        Update {
            input,
            // So that a resource which the tree does not have has share 0 (2.2).
            divisors: RESOURCES.map(|r| if total.raw(r) == 0 { f64::INFINITY } else { total.get(r) }),
            whole: Share(RESOURCES.map(|r| if total.raw(r) == 0 { 0.0 } else { 1.0 })),
            tree: &self.tree,
            out: &mut self.out,
            problems: &mut self.problems,
            sums: &mut self.sums,
            rests: &mut self.rests,
            state: &mut self.state,
            served: &mut self.served,
            places: &mut self.places,
            weights: &mut self.weights,
            smallest_weight: &mut self.smallest_weight,
            guarantees: &self.guarantees,
            promising: &self.promising,
            burst_pools: &self.burst_pools,
            relaxed_pools: &self.relaxed_pools,
            raised: &self.raised,
            free_volume: &mut self.free_volume,
            hungry: &mut self.hungry,
            order: &mut self.order,
        }
    }
}

/// One update under way. Each step of fair-share.md 6 is a method, kept in the module of its subject.
pub(crate) struct Update<'a> {
    pub(crate) input: &'a Input,
    /// Amounts over these are shares.
    pub(crate) divisors: [f64; 5],
    /// Share of the total itself.
    pub(crate) whole: Share,
    pub(crate) tree: &'a Tree,
    pub(crate) out: &'a mut Rows,
    pub(crate) problems: &'a mut Vec<Problem>,
    pub(crate) sums: &'a mut [Sums],
    pub(crate) rests: &'a mut [Rests],
    pub(crate) state: &'a mut [IntegralState],
    pub(crate) served: &'a mut [usize],
    pub(crate) places: &'a mut [[u32; 2]],
    pub(crate) weights: &'a mut [f64],
    pub(crate) smallest_weight: &'a mut [f64],
    pub(crate) guarantees: &'a [Guarantee],
    pub(crate) promising: &'a [usize],
    pub(crate) burst_pools: &'a [usize],
    pub(crate) relaxed_pools: &'a [usize],
    pub(crate) raised: &'a [usize],
    pub(crate) free_volume: &'a mut [FreeVolume],
    /// Empty between uses.
    pub(crate) hungry: &'a mut Vec<Hungry>,
    /// Empty between uses.
    pub(crate) order: &'a mut Vec<usize>,
}

impl<'a> Update<'a> {
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
        self.tree.row_of(e).map_or(GuaranteeType::None, |row| self.guarantees[row].guarantee_type)
    }
    /// Burst, then relaxed pools.
    pub(crate) fn integral_pools(&self) -> impl Iterator<Item = usize> + use<'a> {
        self.burst_pools.iter().chain(self.relaxed_pools).copied()
    }
    /// Of a pool.
    #[inline]
    pub(crate) fn row(&self, e: usize) -> usize {
        self.tree.row_of(e).expect("operations have no row")
    }
    pub(crate) fn integral_state(&mut self, e: usize) -> &mut IntegralState {
        let row = self.row(e);
        &mut self.state[row]
    }
    /// Parent of an element below the root.
    pub(crate) fn parent(&self, e: usize) -> usize {
        self.input.elements[e].parent
    }
    /// Children in the order of the input.
    pub(crate) fn children(&self, e: usize) -> &'a [usize] {
        self.tree.children(e)
    }
    /// Those that are pools: operations have no guarantees and no volumes.
    pub(crate) fn child_pools(&self, e: usize) -> &'a [usize] {
        self.tree.child_pools(e)
    }
    /// Children in the order in which they are served and sums are taken.
    pub(crate) fn served(&self, e: usize) -> &[usize] {
        &self.served[self.tree.slots(e)]
    }
    /// An operation that takes everything at once or nothing (4.1).
    pub(crate) fn steps(&self, e: usize, operation: &Operation) -> bool {
        operation.gang
            && self.input.options.enable_step_function_for_gang_operations
            && self.pool(self.parent(e)).is_some_and(|pool| pool.enable_step_function_for_gang_operations)
    }
    pub(crate) fn is_fifo(&self, e: usize) -> bool {
        self.pool(e).is_some_and(|pool| pool.mode == Mode::Fifo)
    }
    /// 4.6.
    pub(crate) fn improved(&self) -> bool {
        self.input.options.enable_improved_fair_share_by_fit_factor_computation
    }
    /// Strong guarantee and what was given as integral guarantee.
    pub(crate) fn guarantee_share(&self, e: usize) -> Share {
        self.out[e].strong_guarantee_share + self.out[e].proposed_integral_share
    }

    /// A rule that must hold, up to rounding, whatever the input (D6): a bug stops a debug build; in a
    /// release the caller goes on with the nearest feasible value and operators hear of it.
    pub(crate) fn require(&mut self, holds: bool, element: usize, rule: &'static str) {
        if holds {
            return;
        }
        debug_assert!(holds, "element {element}: {rule}");
        let problem = Problem::Inconsistency { element, rule };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// What every update needs to know of how a pool's integral guarantee is configured, side by side: the
/// configurations themselves are all over the memory.
#[derive(Clone, Copy)]
pub(crate) struct Guarantee {
    pub(crate) guarantee_type: GuaranteeType,
    pub(crate) can_accept_free_volume: bool,
    /// Overrides the tree's value.
    pub(crate) should_distribute_free_volume_among_children: Option<bool>,
    /// Overrides the tree's value.
    pub(crate) relaxed_share_multiplier_limit: Option<f64>,
}

impl Guarantee {
    fn new(kind: &Kind) -> Guarantee {
        let guarantees = match kind {
            Kind::Pool(pool) => &pool.integral_guarantees,
            Kind::Operation(_) => &IntegralGuarantees::default(),
        };
        Guarantee {
            guarantee_type: guarantees.guarantee_type,
            can_accept_free_volume: guarantees.can_accept_free_volume,
            should_distribute_free_volume_among_children: guarantees
                .should_distribute_free_volume_among_children,
            relaxed_share_multiplier_limit: guarantees.relaxed_share_multiplier_limit,
        }
    }
}

/// What estimates divide by weight among the children of a pool (6.5).
#[derive(Clone, Copy, Default)]
pub(crate) struct Rests {
    /// In the order of [`crate::estimates::ESTIMATES`].
    pub(crate) shares: [Share; 3],
    /// Sum over the children.
    pub(crate) weights: f64,
}

/// Attributes of pools, by element; of operations too for those who want to keep theirs.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<ElementOutput>,
    of: Vec<u32>,
}

impl Rows {
    fn of_pools(tree: &Tree, n: usize) -> Rows {
        let of = (0..n).map(|e| tree.row_of(e).map_or(NO_PLACE, |row| row as u32)).collect();
        Rows { rows: vec![ElementOutput::default(); tree.pools.len()], of }
    }

    /// A row for each of `n` elements.
    #[cfg(test)]
    pub(crate) fn of_all(n: usize) -> Rows {
        Rows { rows: vec![ElementOutput::default(); n], of: (0..n as u32).collect() }
    }
}

impl Index<usize> for Rows {
    type Output = ElementOutput;
    #[inline]
    fn index(&self, e: usize) -> &ElementOutput {
        &self.rows[self.of[e] as usize]
    }
}

impl IndexMut<usize> for Rows {
    #[inline]
    fn index_mut(&mut self, e: usize) -> &mut ElementOutput {
        &mut self.rows[self.of[e] as usize]
    }
}

/// Integral pools and all that is above them.
fn raised(input: &Input, tree: &Tree) -> Vec<usize> {
    let mut is_raised = vec![false; input.elements.len()];
    for &e in tree.pools.iter().rev() {
        let Kind::Pool(pool) = &input.elements[e].kind else { continue };
        is_raised[e] |= pool.integral_guarantees.guarantee_type != GuaranteeType::None;
        if is_raised[e] && e != 0 {
            is_raised[input.elements[e].parent] = true;
        }
    }
    tree.pools.iter().copied().filter(|e| is_raised[*e]).collect()
}

/// Which elements a step has to look at.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'s> {
    /// All of them.
    All,
    /// What changed since the previous update.
    Changed {
        /// Operations.
        operations: &'s [Change],
        /// Every pool above one of them, bottom-up.
        pools: &'s [usize],
    },
}
