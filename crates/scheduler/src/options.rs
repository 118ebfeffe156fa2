//! Options of one operation that an operator may change while it runs (scheduling.md 18.4, 6.2).

use crate::config::options::{ANY_SPAN, Options};
use crate::scheduler::Scheduler;
use std::sync::Arc;
use vocab::{Failure, OperationId, Span};
use yson::Map;

/// Changeable options of an operation. They come over what its description says.
#[derive(Clone, PartialEq, Debug)]
pub struct OperationOptions {
    /// How long an interrupted job may go on; null: the description's, else the tree's.
    pub allocation_preemption_timeout: Option<Span>,
    /// The same for graceful preemption.
    pub allocation_graceful_preemption_timeout: Option<Span>,
    /// Fail the operation if limits above it do not allow a single allocation for too long
    /// (scheduling.md 20); the tree has an option of the same name, and both must be on.
    pub enable_limiting_ancestor_check: bool,
}

impl Default for OperationOptions {
    fn default() -> Self {
        OperationOptions {
            allocation_preemption_timeout: None,
            allocation_graceful_preemption_timeout: None,
            enable_limiting_ancestor_check: true,
        }
    }
}

impl OperationOptions {
    /// Reads the options; an unknown one is refused.
    pub fn parse(map: &Map) -> Result<OperationOptions, Failure> {
        let mut o = Options::new("operation option", map)?;
        let options = OperationOptions {
            allocation_preemption_timeout: o
                .span(&["allocation_preemption_timeout", "job_interrupt_timeout"], ANY_SPAN)?,
            allocation_graceful_preemption_timeout: o.span(
                &["allocation_graceful_preemption_timeout", "job_graceful_interrupt_timeout"],
                ANY_SPAN,
            )?,
            enable_limiting_ancestor_check: o.boolean(&["enable_limiting_ancestor_check"])?.unwrap_or(true),
        };
        o.finish()?;
        Ok(options)
    }
}

impl Scheduler {
    /// Replaces the changeable options of an operation.
    pub fn set_operation_options(
        &mut self,
        id: OperationId,
        options: OperationOptions,
    ) -> Result<(), Failure> {
        let index = self.operation_index(id)?;
        let options = Arc::new(options);
        for (tree, leaf) in self.operations[index].leaves.clone() {
            self.trees[crate::slab::Key::index(tree)].leaves[leaf].options = options.clone();
        }
        Ok(())
    }

    /// The changeable options of an operation.
    pub fn operation_options(&self, id: OperationId) -> Result<OperationOptions, Failure> {
        let index = self.operation_index(id)?;
        let first = self.operations[index].leaves.first();
        Ok(first
            .map(|(tree, leaf)| (*self.trees[crate::slab::Key::index(*tree)].leaves[*leaf].options).clone())
            .unwrap_or_default())
    }
}
