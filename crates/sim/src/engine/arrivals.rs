//! Jobs that come after their operation: the owner raises the `job_count` of its tasks as work comes, or when
//! the tasks are complete that others wait for, with the command that production has for it (simulator.md 4).

use super::*;
use vocab::code;

/// After a refusal that means "not now".
const AGAIN: Span = Span::from_millis(100);

impl Engine<'_> {
    /// Plans the first arrival of an operation that has just been accepted.
    pub(super) fn first_arrival(&mut self, id: OperationId) {
        let Some(work) = self.physics.works.get(&id) else { return };
        // Units of it were done before anybody heard that it was accepted.
        let woken =
            work.operation.tasks.iter().zip(&work.ready).any(|(t, r)| !t.after.is_empty() && r.is_some());
        match woken {
            true => self.queue.push(self.now, Due::Arrival(id)),
            false => self.plan_arrival(id, Span::ZERO),
        }
    }

    /// A job has completed: other tasks may have waited for its unit.
    pub(super) fn owner_hears(&mut self, event: &yson::Map) {
        let text = |key: &str| event.get(key).and_then(yson::Value::as_str).unwrap_or_default();
        let (Ok(id), task) = (text("operation_id").parse::<OperationId>(), text("task_name")) else { return };
        // Who stopped because he was asked to is not done.
        let gave_way = text("job_id").parse().is_ok_and(|job| self.physics.told.yielded.contains(&job));
        let known = self.physics.works.contains_key(&id) || self.is_somebody_unanswered();
        if known && !gave_way && self.physics.unit_done(id, task, self.now) {
            self.queue.push(self.now, Due::Arrival(id));
        }
    }

    /// An operation may have been accepted, and nobody has heard of it.
    fn is_somebody_unanswered(&self) -> bool {
        !self.lost.is_empty() || self.asked.values().any(|asked| matches!(asked, Asked::Start(_)))
    }

    /// Plans the next arrival of an operation after `after`, which counts from its submission.
    fn plan_arrival(&mut self, id: OperationId, after: Span) {
        let Some(work) = self.physics.works.get_mut(&id) else { return };
        let Some(next) = work.tasks().filter_map(|task| task.next_arrival(after)).min() else { return };
        let at = (self.scenario.start + work.operation.at + next).max(self.now);
        // A task that has just stopped waiting may find it planned by another one.
        if work.planned.replace(at) != Some(at) {
            self.queue.push(at, Due::Arrival(id));
        }
    }

    /// Jobs arrive. What is told is how many there are by now, so telling it twice does no harm.
    pub(super) fn arrival(&mut self, id: OperationId) {
        let Some(work) = self.physics.works.get(&id) else { return };
        if self.server.kernel().is_none() {
            self.queue.push(self.now + AGAIN, Due::Arrival(id));
            return;
        }
        let operation = work.operation.clone();
        let since = self.now.since(self.scenario.start + operation.at);
        let grown = work.tasks().filter(|task| task.arrived(since) > task.at_once());
        let counts: yson::Map =
            grown.map(|task| (task.name.as_str(), yson::map! {"job_count" => task.arrived(since)})).collect();
        if counts.is_empty() {
            return self.plan_arrival(id, since);
        }
        let parameters = yson::map! {"tasks" => counts};
        let command = Command::UpdateOperationParameters { operation: OperationRef::Id(id), parameters };
        self.ask(&operation.user, command, Asked::Arrival(id));
        self.plan_arrival(id, since);
    }

    /// The answer.
    pub(super) fn arrival_told(&mut self, id: OperationId, failure: Option<Failure>) {
        let Some(failure) = failure.filter(|_| self.physics.works.contains_key(&id)) else { return };
        if failure.code == code::INVALID_OPERATION_STATE {
            self.queue.push(self.now + AGAIN, Due::Arrival(id));
        } else if self.refusals.len() < 100 {
            self.refusals.push(format!("jobs of operation {id}: {}", in_full(&failure)));
        }
    }
}
