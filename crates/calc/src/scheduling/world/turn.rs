//! What the kernel does after whatever has come in: its `flush`.

use super::{NOT_STARVING, Phase, Place, TREE, WORD_TRAVELS, World};
use crate::scheduling::log::{Preempted, Started, Starvation};
use scheduler::{DemandGroup, Event, Order, Start, UpdateKind};
use std::collections::BTreeMap;
use vocab::{AllocationId, OperationId, Resources, Span};

impl World {
    /// What the kernel does after whatever has come in.
    pub fn turn(&mut self) {
        if self.started {
            self.fail_stuck_operations();
        }
        self.advance_operations();
        if self.started {
            self.update_shares();
            self.schedule();
        }
    }

    /// Operations that the scheduler can do nothing for any more (scheduling.md 20); it looks once in
    /// `operation_hangup_check_period`.
    fn fail_stuck_operations(&mut self) {
        for (id, error) in self.scheduler.stuck_operations(self.now) {
            let name = self.names.operation(id).to_owned();
            let reasons = [&error].into_iter().chain(&error.inner_errors);
            let reasons = reasons.map(|e| self.names.translate(&e.message)).collect::<Vec<_>>().join(": ");
            self.log.failures.push((self.now, name, reasons));
            let known = self.end_operation(id, Phase::Failed);
            debug_assert!(known.is_ok());
        }
    }

    /// Operations that the scheduler has let in go on; demand that has changed is told.
    fn advance_operations(&mut self) {
        for event in self.scheduler.drain_events() {
            match event {
                Event::Running { operation, .. } => self.materialize(operation),
                Event::Pending { .. }
                | Event::EphemeralPoolCreated { .. }
                | Event::EphemeralPoolRemoved { .. } => {}
            }
        }
        for id in std::mem::take(&mut self.demand) {
            let Some(operation) = self.operations.get(&id) else { continue };
            let groups: Vec<DemandGroup> = (0..)
                .zip(&operation.tasks)
                .filter(|(_, t)| t.count > 0)
                .map(|(task, t)| DemandGroup { task, min_needed: t.job, count: t.count })
                .collect();
            if let Ok(true) = self.scheduler.set_demand(id, &groups) {
                self.want_all();
            }
        }
    }

    fn update_shares(&mut self) {
        let kind = if self.now >= self.next_update {
            self.next_update = self.now + self.scheduler.config().fair_share_update_period;
            UpdateKind::Periodic
        } else if self.update_wanted {
            UpdateKind::Extra
        } else {
            return;
        };
        self.scheduler.update(self.now, kind);
        // The same for operations alone, and only with an option: events of the log.
        drop(self.scheduler.drain_starvation_notices());
        self.note_starvation();
        self.log.updates[usize::from(kind == UpdateKind::Extra)] += 1;
        self.update_wanted = false;
        self.schedule_wanted = true;
    }

    /// Compares the starvation statuses of the newest update with those before.
    fn note_starvation(&mut self) {
        let snapshot = self.scheduler.snapshot();
        let Some(tree) = snapshot.tree(TREE) else { return };
        const STATUS: &[&str] = &["starvation_status"];
        let of_operations = tree.operation_ids().map(|id| {
            let name = self.names.operation(id).to_owned();
            ("operation", name, tree.operation_attributes(id, Some(STATUS)))
        });
        let of_pools = tree
            .pool_names()
            .map(|name| ("pool", name.to_string(), tree.pool_attributes(name, Some(STATUS))));
        let mut starving = BTreeMap::new();
        for (kind, name, attributes) in of_operations.chain(of_pools) {
            let status = attributes.as_ref().and_then(|a| a.get(STATUS[0])?.as_str());
            if let Some(status) = status.filter(|s| *s != NOT_STARVING) {
                starving.insert((kind, name), status.to_owned());
            }
        }
        let before = std::mem::replace(&mut self.starving, starving);
        let ended = before.keys().filter(|key| !self.starving.contains_key(*key));
        let ended = ended.map(|key| (key, NOT_STARVING));
        let begun = self.starving.iter().filter(|(key, status)| before.get(*key) != Some(*status));
        for ((kind, name), status) in ended.chain(begun.map(|(key, status)| (key, status.as_str()))) {
            let (name, status) = (name.clone(), status.to_owned());
            self.log.starvation.push(Starvation { time: self.now, kind, name, status });
        }
    }

    fn schedule(&mut self) {
        let everywhere = std::mem::take(&mut self.schedule_wanted);
        let heard = std::mem::take(&mut self.heard);
        for node in &heard {
            self.schedule_on(node);
        }
        if !everywhere || !self.has_candidates() {
            return;
        }
        let with_room = self.scheduler.nodes_with_room(TREE, Resources::ZERO);
        let with_room: Vec<String> = with_room.into_iter().flatten().map(|n| n.to_string()).collect();
        for node in with_room.iter().filter(|n| !heard.contains(*n)) {
            self.schedule_on(node);
            if !self.has_candidates() {
                break;
            }
        }
    }

    fn has_candidates(&self) -> bool {
        self.scheduler.has_candidates(TREE).unwrap_or(false)
    }

    fn schedule_on(&mut self, node: &str) {
        if !self.nodes.contains_key(node) {
            return;
        }
        let plan = self.scheduler.plan(self.now, node);
        debug_assert_eq!(self.scheduler.check_plan(&plan), Vec::<String>::new());
        self.log.note_pass(&plan);
        let planned: Vec<_> = plan.starts.iter().map(|s| (s.operation, s.task, s.stage)).collect();
        let names = &mut self.names;
        let starts = self.scheduler.apply(plan, || names.next_allocation());
        let mut planned = planned.into_iter();
        for start in starts {
            // Starts come in the order of the plan; one that is not possible any more would be left out.
            let found =
                planned.find(|(operation, task, _)| (*operation, *task) == (start.operation, start.task));
            self.settle(node, &start, found.map(|(_, _, stage)| stage));
        }
        self.carry_out_orders();
    }

    /// The controller puts a job into the allocation. It always can: this is what a script cannot say.
    fn settle(&mut self, node: &str, start: &Start, stage: Option<scheduler::Stage>) {
        let Some(operation) = self.operations.get_mut(&start.operation) else { return };
        if let Some(task) = operation.tasks.get_mut(start.task as usize) {
            task.count -= 1;
        }
        let name = self.add_allocation(start.allocation, start.operation, start.task, node);
        self.demand.insert(start.operation);
        if let Some(n) = self.nodes.get_mut(node) {
            n.accept(start.allocation, start.resources);
        }
        self.log.starts.push(Started {
            time: self.now,
            allocation: name,
            node: node.to_owned(),
            stage,
            resources: start.resources,
        });
    }

    pub(super) fn add_allocation(
        &mut self,
        id: AllocationId,
        operation: OperationId,
        task: u32,
        node: &str,
    ) -> String {
        let number = self.operations.get_mut(&operation).map_or(0, |o| {
            o.named += 1;
            o.named
        });
        self.places.insert(id, Place { operation, task, node: node.to_owned() });
        self.names.name_allocation(id, operation, number)
    }

    fn carry_out_orders(&mut self) {
        for order in self.scheduler.drain_orders() {
            let id = order.allocation();
            let own = self.places.get(&id).and_then(|p| self.operations.get(&p.operation)?.gives_way);
            let state = self.scheduler.allocation(id);
            let Some(held) = self.nodes.get_mut(&**order.node()).and_then(|n| n.get_mut(id)) else {
                continue;
            };
            let mut after = match &order {
                Order::Preempt(p) if !held.waiting => own.unwrap_or(p.timeout).min(p.timeout),
                _ => Span::ZERO,
            };
            after = after.max(WORD_TRAVELS);
            let leaves = self.now + after;
            held.leaves = Some(held.leaves.map_or(leaves, |earlier| earlier.min(leaves)));
            let name = self.names.allocation(id).to_owned();
            match order {
                Order::Preempt(p) => {
                    let record = state.and_then(|s| s.preempted);
                    self.log.preemptions.push(Preempted {
                        time: self.now,
                        allocation: name,
                        node: p.node.to_string(),
                        kind: p.kind,
                        stage: record.as_ref().and_then(|r| r.cause.stage()),
                        group: record.as_ref().map(|r| r.group),
                        level: record.as_ref().map(|r| r.level),
                        preemptor: p.preempted_for.map(|(a, _)| self.names.allocation(a).to_owned()),
                        timeout: p.timeout,
                        reason: self.names.translate(&p.reason),
                    });
                }
                Order::Abort { reason, .. } => self.log.aborts.push((self.now, name, reason.as_str())),
            }
        }
    }
}
