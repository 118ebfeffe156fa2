//! A tree that is updated again and again.

use crate::check::{InputError, check, check_operation, check_options, check_states};
use crate::cumulative::Change;
use crate::fast::{Engine, FEW};
use crate::input::{Cycle, Element, Input, IntegralState, Kind, Operation, TreeOptions};
use crate::results::Results;
use crate::state::{Scope, Work};
use vocab::Resources;

/// One pool tree with everything that is worth keeping between updates.
///
/// It owns its input: a change goes through a method that notes it, so none can be forgotten.
/// [`operation_mut`](Updater::operation_mut) is the cheap one: what is above the operation is computed
/// again, and what its share depends on; the rest is kept. Every other change makes the next update a
/// full one. [`assign`](Updater::assign) finds out itself what differs.
///
/// ```text
/// let mut updater = Updater::new(input)?;
/// loop {
///     updater.operation_mut(e).expect("an operation").demand = demand;
///     let results = updater.update(&mut volumes, Cycle::Periodic { since_previous })?;
/// }
/// ```
///
/// An update gives the same bits whatever was computed before. If only operations have changed it asks for
/// no memory, once it has seen what the tree is like.
pub struct Updater {
    input: Input,
    work: Work,
    engine: Engine,
    /// What the next update has to look at.
    stale: Stale,
    /// Operations that were changed, as they were before.
    changed: Vec<Change>,
    /// By element: in `changed`, or a pool above one of them.
    marked: Vec<bool>,
    /// Marked pools, bottom-up.
    above: Vec<usize>,
    /// Problems of the configuration; they come first in the output.
    standing_problems: usize,
    /// Pools of so many operations are worked out at once. Tests of the other way make it small.
    few: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stale {
    /// The operations in the list.
    Operations,
    /// Everything, in a tree of the same shape.
    Everything,
    /// Everything; the shape may differ too.
    Shape,
}

impl Updater {
    /// For an input that makes sense.
    pub fn new(input: Input) -> Result<Updater, InputError> {
        check(&input)?;
        let mut updater = Updater {
            input,
            work: Work::default(),
            engine: Engine::default(),
            stale: Stale::Shape,
            changed: Vec::new(),
            marked: Vec::new(),
            above: Vec::new(),
            standing_problems: 0,
            few: FEW,
        };
        updater.build();
        Ok(updater)
    }

    /// One that searches even pools of a few operations, which takes longer.
    #[cfg(test)]
    pub(crate) fn searching(input: Input) -> Result<Updater, InputError> {
        let mut updater = Updater::new(input)?;
        updater.few = 0;
        updater.build();
        Ok(updater)
    }

    #[cfg(test)]
    pub(crate) fn tables_begun(&self) -> usize {
        self.engine.tables_begun()
    }

    /// The input of the next update.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// An operation that is about to change; `None` if the element is a pool or does not exist.
    pub fn operation_mut(&mut self, element: usize) -> Option<&mut Operation> {
        match &mut self.input.elements.get_mut(element)?.kind {
            Kind::Pool(_) => None,
            Kind::Operation(operation) => {
                // After a change of the shape everything is looked at, and the tables are not for this tree.
                if self.stale != Stale::Shape && !self.marked[element] {
                    self.marked[element] = true;
                    self.changed.push(Change::new(element, operation));
                }
                Some(operation)
            }
        }
    }

    /// Any part of an element. The next update is a full one.
    pub fn element_mut(&mut self, element: usize) -> Option<&mut Element> {
        self.stale = Stale::Shape;
        self.input.elements.get_mut(element)
    }

    /// Elements may be added and removed. The next update is a full one.
    pub fn elements_mut(&mut self) -> &mut Vec<Element> {
        self.stale = Stale::Shape;
        &mut self.input.elements
    }

    /// Resources of the cluster. If they differ the next update is a full one.
    pub fn set_total(&mut self, total: Resources) {
        if self.input.total != total {
            self.input.total = total;
            self.stale = self.stale.max(Stale::Everything);
        }
    }

    /// Options of the tree. If they differ the next update is a full one.
    pub fn set_options(&mut self, options: TreeOptions) {
        if self.input.options != options {
            self.input.options = options;
            self.stale = self.stale.max(Stale::Everything);
        }
    }

    /// Takes over a whole input, and notes what differs from the present one. It has to read all of both,
    /// which in a large tree takes longer than an update of a few operations.
    pub fn assign(&mut self, input: &Input) {
        self.set_total(input.total);
        self.set_options(input.options.clone());
        if self.input.elements.len() != input.elements.len() {
            self.elements_mut().clone_from(&input.elements);
            return;
        }
        for (e, new) in input.elements.iter().enumerate() {
            let old = &mut self.input.elements[e];
            if old == new {
                continue;
            }
            let same_frame = old.parent == new.parent
                && old.weight == new.weight
                && old.historic_usage == new.historic_usage
                && old.resource_limits == new.resource_limits;
            match &new.kind {
                Kind::Operation(operation) if same_frame && matches!(old.kind, Kind::Operation(_)) => {
                    if let Some(old) = self.operation_mut(e) {
                        old.clone_from(operation);
                    }
                }
                _ => {
                    old.clone_from(new);
                    self.stale = Stale::Shape;
                }
            }
        }
    }

    /// Makes the next update a full one even if nothing has changed: for measurements.
    pub fn forget(&mut self) {
        self.stale = self.stale.max(Stale::Everything);
    }

    /// Computes one update (fair-share.md 6) and moves the integral state on, one for each element.
    ///
    /// If the input is refused nothing is changed, and the changes are still to be taken in.
    pub fn update(&mut self, state: &mut [IntegralState], cycle: Cycle) -> Result<Results<'_>, InputError> {
        self.check(state)?;
        self.work.read_states(state);
        let full = self.stale != Stale::Operations;
        if !full {
            self.mark_above();
            self.work.problems.truncate(self.standing_problems);
        }
        let mut update = self.work.update(&self.input);
        let scope =
            if full { Scope::All } else { Scope::Changed { operations: &self.changed, pools: &self.above } };
        update.prepare(scope, cycle, |update, e, shares| {
            self.engine.take_operation(update, scope, e, shares);
        });
        if full {
            self.standing_problems = update.problems.len();
        }
        self.engine.run(update, scope);
        self.forget_changes();
        if let Cycle::Periodic { .. } = cycle {
            self.work.write_states(state);
        }
        Ok(Results::new(self.work.update(&self.input), &self.engine))
    }

    /// A tree of another shape is laid out anew before states are looked at; otherwise nothing changes here.
    fn check(&mut self, state: &[IntegralState]) -> Result<(), InputError> {
        if self.stale == Stale::Shape {
            check(&self.input)?;
            self.build();
        }
        check_options(&self.input)?;
        for change in &self.changed {
            check_operation(&self.input, change.element)?;
        }
        check_states(&self.input, &self.work.tree.pools, state)
    }

    /// Pools above changed operations, bottom-up.
    fn mark_above(&mut self) {
        for change in &self.changed {
            let mut e = change.element;
            while e != 0 {
                e = self.input.elements[e].parent;
                if std::mem::replace(&mut self.marked[e], true) {
                    break;
                }
            }
        }
        let pools = self.work.tree.pools.iter().rev().copied();
        self.above.extend(pools.filter(|e| self.marked[*e]));
    }

    fn forget_changes(&mut self) {
        for e in self.changed.drain(..).map(|change| change.element).chain(self.above.drain(..)) {
            self.marked[e] = false;
        }
        self.stale = Stale::Operations;
    }

    /// Lays everything out for the input.
    fn build(&mut self) {
        let n = self.input.elements.len();
        self.work = Work::new(&self.input);
        self.engine = Engine::new(&self.work.update(&self.input), self.few);
        self.changed = Vec::new();
        self.marked = vec![false; n];
        self.above = Vec::with_capacity(self.work.tree.pools.len());
        self.stale = Stale::Everything;
    }
}
