//! What each event does to the world.
//!
//! An event either happens or is refused by the scheduler as a user's command would be (too many
//! operations, a pool in a FIFO pool): that is an answer like any other.

use super::event::{Event, NewOperation, Outcome};
use super::world::{Operation, Phase, TREE, World};
use scheduler::{OperationDesc, PoolDesc};
use std::collections::BTreeMap;
use vocab::{Failure, ObjectId, OperationId, code, object_type};

impl World {
    /// Does what a line says, and what follows from it.
    pub fn act(&mut self, event: Event) -> Result<(), Failure> {
        let updated_already = !event.describes() && self.start();
        let result = match event {
            Event::Update { count } => {
                // The update at the beginning is the first one.
                self.run_updates(count - u32::from(updated_already));
                Ok(())
            }
            Event::Advance { until } => {
                self.run_until(until);
                Ok(())
            }
            other => self.happen(other),
        };
        self.turn();
        result
    }

    fn happen(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Script { .. }
            | Event::Note
            | Event::Show(_)
            | Event::Explain(_)
            | Event::Update { .. }
            | Event::Advance { .. } => Ok(()),
            Event::Scheduler { options, config } => {
                self.scheduler_options = options;
                self.scheduler.set_config(*config);
                Ok(())
            }
            Event::Tree { options } => {
                let lost = self.scheduler.set_tree_config(TREE, &options)?;
                self.tree_options = options;
                self.lose(&lost);
                self.pools_changed();
                Ok(())
            }
            Event::Pool { name, parent, options } => {
                let id = ObjectId(self.names.next_object(object_type::SCHEDULER_POOL));
                let desc = PoolDesc { id, name: name.clone(), parent, options: options.clone() };
                self.scheduler.create_pool(TREE, &desc)?;
                self.pools.insert(name, options);
                self.pools_changed();
                Ok(())
            }
            Event::SetPool { name, options } => {
                self.scheduler.set_pool_options(TREE, &name, &options)?;
                self.pools.insert(name, options);
                self.pools_changed();
                Ok(())
            }
            Event::MovePool { name, parent } => {
                self.scheduler.move_pool(TREE, &name, &parent)?;
                self.pools_changed();
                Ok(())
            }
            Event::RenamePool { name, to } => {
                self.scheduler.rename_pool(TREE, &name, &to)?;
                let options = self.pools.remove(&name).unwrap_or_default();
                self.pools.insert(to, options);
                self.pools_changed();
                Ok(())
            }
            Event::RemovePool { name } => {
                self.scheduler.remove_pool(TREE, &name)?;
                self.pools.remove(&name);
                self.pools_changed();
                Ok(())
            }
            Event::Nodes { names, limits, tags } => {
                for name in names {
                    self.add_node(&name, limits, tags.clone());
                }
                Ok(())
            }
            Event::SetNode { name, limits, tags } => {
                if let Some(node) = self.nodes.get_mut(&name) {
                    node.limits = limits.unwrap_or(node.limits);
                    node.tags = tags.unwrap_or_else(|| std::mem::take(&mut node.tags));
                    node.admit();
                }
                self.heartbeat(&name);
                Ok(())
            }
            Event::Lost { node } => {
                self.remove_node(&node);
                Ok(())
            }
            Event::Place { operation, task, nodes, count, resources } => {
                for node in nodes {
                    for _ in 0..count {
                        self.place(operation, task, &node, resources)?;
                    }
                }
                Ok(())
            }
            Event::Finish { allocations, outcome } => {
                for id in allocations {
                    self.end_allocation(id, outcome.as_str(), outcome != Outcome::Completed);
                }
                Ok(())
            }
            Event::Gone { allocations } => {
                allocations.into_iter().for_each(|id| self.leave(id));
                Ok(())
            }
            Event::Usage { allocation, resources } => {
                self.set_usage(allocation, resources);
                Ok(())
            }
            Event::Heartbeat { nodes } => {
                nodes.iter().for_each(|node| self.heartbeat(node));
                Ok(())
            }
            other => self.happen_to_operation(other),
        }
    }

    fn happen_to_operation(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Operation(new) => self.register(*new),
            Event::SetOperation { id, pool, parameters } => {
                if let Some(pool) = pool {
                    self.scheduler.change_pool(id, TREE, &pool)?;
                }
                self.scheduler.set_parameters(id, TREE, parameters.clone())?;
                if let Some(operation) = self.operations.get_mut(&id) {
                    operation.parameters = parameters;
                }
                self.parameters_changed(id);
                Ok(())
            }
            Event::Demand { operation, tasks } => {
                if let Some(known) = self.operations.get_mut(&operation) {
                    known.tasks = tasks;
                }
                self.demand_changed(operation);
                Ok(())
            }
            Event::Suspend { operation, abort_running_jobs } => {
                self.set_suspended(operation, true)?;
                if abort_running_jobs {
                    self.end_all_of(operation, true);
                }
                Ok(())
            }
            Event::Resume { operation } => {
                if !self.operations.get(&operation).is_some_and(|o| o.suspended) {
                    return Err(wrong_state(operation, "it is not suspended"));
                }
                self.set_suspended(operation, false)
            }
            Event::Complete { operation } => {
                if self.operations.get(&operation).is_some_and(|o| o.phase == Phase::Pending) {
                    return Err(wrong_state(operation, "its state is \"pending\", expected \"running\""));
                }
                self.end_operation(operation, Phase::Completed)
            }
            Event::Abort { operation } => self.end_operation(operation, Phase::Aborted),
            _ => Ok(()),
        }
    }

    fn register(&mut self, new: NewOperation) -> Result<(), Failure> {
        let NewOperation { name, desc, tasks, gives_way, suspended } = new;
        let id = self.names.add_operation(&name);
        let parameters = desc.trees.first().map(|t| t.parameters.clone()).unwrap_or_default();
        let operation = Operation {
            name: name.clone(),
            phase: Phase::Pending,
            suspended,
            tasks,
            gives_way,
            parameters,
            named: 0,
        };
        let result = self.add_operation(OperationDesc { id, ..desc }, operation);
        if let Err(mut failure) = result {
            // The text speaks of it by name, and only as long as it has one.
            failure = self.named(failure);
            self.names.drop_operation(&name);
            return Err(failure);
        }
        Ok(())
    }

    /// A failure with names in the place of ids.
    fn named(&self, mut failure: Failure) -> Failure {
        failure.message = self.names.translate(&failure.message);
        failure.inner_errors = failure.inner_errors.into_iter().map(|f| self.named(f)).collect();
        failure
    }

    /// Counts of allocations by operation: running, told to go.
    pub fn allocation_counts(&self) -> BTreeMap<OperationId, [i64; 2]> {
        let mut counts: BTreeMap<OperationId, [i64; 2]> = BTreeMap::new();
        for node in self.nodes.values() {
            for held in &node.held {
                let Some(place) = self.places.get(&held.id) else { continue };
                let preempted = self.scheduler.allocation(held.id).is_some_and(|a| a.preempted.is_some());
                counts.entry(place.operation).or_default()[usize::from(preempted)] += 1;
            }
        }
        counts
    }
}

fn wrong_state(operation: OperationId, why: &str) -> Failure {
    Failure::coded(code::INVALID_OPERATION_STATE, format!("Operation {operation} cannot do that: {why}"))
}
