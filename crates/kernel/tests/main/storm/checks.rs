//! What must hold after every step.

use super::*;

impl Storm {
    pub(super) fn check(&mut self) {
        if self.world.is_up() {
            let found = self.world.kernel().check_invariants();
            self.world.violations.extend(found);
        }
        self.check_units();
        self.check_records();
    }

    /// KERNEL-1, on the nodes themselves.
    pub(super) fn check_units(&mut self) {
        let patience = self.world.config.node_recovery_grace;
        let now = self.world.now;
        let mut units: BTreeMap<(OperationId, String, u32), (JobId, String)> = BTreeMap::new();
        for node in self.world.nodes.values() {
            let away = node.away_since.map(|since| now.since(since)).unwrap_or_default();
            // The proxy of an exclusive job stops it at the end of its lease (S19).
            let is_overdue = |job: &crate::node::Job| away >= job.start.lease.unwrap_or(patience);
            let overdue = node.running.iter().filter(|(_, job)| is_overdue(job)).map(|(id, _)| *id);
            self.overdue.extend(overdue);
            for (id, job) in &node.running {
                if node.key.is_none() && self.loose.contains(&job.start.identity.operation_id) {
                    self.world.given_up.insert(*id);
                }
                // Nodes here start the next run of a gang's rank beside the one that dies.
                let is_gang = self.gangs.contains(&job.start.identity.operation_id);
                let may_overlap = job.start.lease.is_none() || is_gang;
                if self.overdue.contains(id) || (may_overlap && self.world.given_up.contains(id)) {
                    continue;
                }
                let identity = &job.start.identity;
                let unit = (identity.operation_id, identity.task.to_string(), identity.cookie);
                if let Some((other, place)) = units.insert(unit, (*id, node.name.clone())) {
                    self.world.violations.push(format!(
                        "KERNEL-1: unit {} of operation {} runs twice: job {other} on {place}, job {id} on {}",
                        identity.cookie, identity.operation_id, node.name
                    ));
                }
            }
        }
    }

    /// KERNEL-2, on the records.
    pub(super) fn check_records(&mut self) {
        let mut broken = Vec::new();
        for wish in &self.wishes {
            let Some(id) = wish.id else { continue };
            let key = |table: Table| (table, id.0.to_bytes().to_vec());
            let archived = self.world.durable.contains_key(&key(Table::OperationArchive));
            let mut live = key(Table::Operations);
            live.1.push(b's');
            if !archived && !self.world.durable.contains_key(&live) {
                broken.push(format!("KERNEL-2: operation {id} was acknowledged and is gone"));
            }
            if wish.ended && !archived {
                broken.push(format!("KERNEL-2: operation {id} had ended and lives again"));
            }
        }
        for job in self.world.completed.drain(..).filter(|job| !self.done.contains(job)) {
            broken.push(format!("KERNEL-2: job {job} counts as completed and is not"));
        }
        self.world.violations.extend(broken);
    }
}
