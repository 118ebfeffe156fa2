//! Rows that are written at the times of the pool series: of pools, and of nodes and operations, if asked for.

use super::*;
use crate::output::{Cell, Column, Which, int, num, text};
use vocab::Resource;

/// Columns of `nodes.csv`.
pub const NODES: &[Column] = &[
    int("t_ms"),
    text("node"),
    text("group"),
    int("online"),
    int("jobs"),
    num("usage_cpu"),
    num("limits_cpu"),
    num("usage_memory"),
    num("limits_memory"),
    num("usage_gpu"),
    num("limits_gpu"),
];

/// Columns of `operation_series.csv`.
pub const OPERATION_SERIES: &[Column] = &[
    int("t_ms"),
    text("id"),
    text("tree"),
    text("pool"),
    num("demand_cpu"),
    num("usage_cpu"),
    num("fair_share_cpu"),
    int("allocations"),
    int("starving"),
    num("satisfaction"),
    num("demand_memory"),
    num("usage_memory"),
    num("fair_share_memory"),
    num("demand_gpu"),
    num("usage_gpu"),
    num("fair_share_gpu"),
];

impl Engine<'_> {
    pub(super) fn sample(&mut self) -> Result<(), SimError> {
        if let Some(kernel) = self.server.kernel() {
            self.pools.look(self.now, kernel, &self.ledger.by_pool);
        }
        self.look_at_fragments();
        for row in self.pools.sample(self.now.since(self.scenario.start)) {
            self.sink.row(Which::Pools, row)?;
        }
        if self.sink.wants(Which::Nodes) {
            self.sample_nodes()?;
        }
        if self.sink.wants(Which::OperationSeries) {
            self.sample_operations()?;
        }
        self.queue.push(self.now + self.scenario.output.pool_series_period, Due::Sample);
        Ok(())
    }

    fn elapsed(&self) -> Cell {
        Cell::Int(self.now.since(self.scenario.start).as_millis() as i64)
    }

    /// What jobs hold on each node, by its own books.
    fn sample_nodes(&mut self) -> Result<(), SimError> {
        let elapsed = self.elapsed();
        for node in &self.nodes {
            let mut row = vec![
                elapsed.clone(),
                Cell::text(&node.name),
                Cell::text(&self.scenario.groups[node.group].name),
                Cell::Int(i64::from(node.online)),
                Cell::Int(node.jobs.len() as i64),
            ];
            let (holds, has) = (node.core.ledger().acquired(), node.settings.resource_limits);
            for r in [Resource::Cpu, Resource::Memory, Resource::Gpu] {
                row.push(Cell::Number(holds.get(r)));
                row.push(Cell::Number(has.get(r)));
            }
            self.sink.row(Which::Nodes, row)?;
        }
        Ok(())
    }

    /// Unfinished operations in the order of their ids, by the last share update.
    fn sample_operations(&mut self) -> Result<(), SimError> {
        let elapsed = self.elapsed();
        let Some(kernel) = self.server.kernel() else { return Ok(()) };
        let snapshot = kernel.scheduler().snapshot();
        for tree in snapshot.trees() {
            for id in tree.operation_ids() {
                let (Some(view), Some(life)) = (tree.operation(id), self.ledger.life(id)) else { continue };
                let finite = |x: f64| if x.is_finite() { Cell::Number(x) } else { Cell::Empty };
                let mut row = vec![
                    elapsed.clone(),
                    Cell::text(&life.operation.id),
                    Cell::text(&tree.name),
                    Cell::text(life.pool()),
                ];
                let of = |r: Resource| {
                    let fair = view.fair_share.total[r] * tree.resource_limits.get(r);
                    [view.resource_demand.get(r), view.resource_usage.get(r), fair].map(Cell::Number)
                };
                row.extend(of(Resource::Cpu));
                row.push(Cell::Int(life.running() as i64));
                row.push(Cell::Int(self.ledger.hunger_of(&id)));
                row.push(finite(view.satisfaction));
                row.extend(of(Resource::Memory));
                row.extend(of(Resource::Gpu));
                self.sink.row(Which::OperationSeries, row)?;
            }
        }
        Ok(())
    }
}
