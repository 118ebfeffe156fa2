//! Jobs that arrive one by one: the owner of an operation raises the `job_count` of its tasks as work comes,
//! with the command that production has for it (simulator.md 4).

use super::*;
use vocab::code;

/// After a refusal that means "not now".
const AGAIN: Span = Span::from_millis(100);

impl Engine<'_> {
    /// Plans the next arrival of an operation after `after`, which counts from its submission.
    pub(super) fn plan_arrival(&mut self, id: OperationId, after: Span) {
        let Some(work) = self.physics.works.get(&id) else { return };
        let next = work.operation.tasks.iter().filter_map(|task| task.next_arrival(after)).min();
        if let Some(next) = next {
            let at = self.scenario.start + work.operation.at + next;
            self.queue.push(at.max(self.now), Due::Arrival(id));
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
        let grown = operation.tasks.iter().filter(|task| task.arrived(since) > task.arrived(Span::ZERO));
        let counts: yson::Map =
            grown.map(|task| (task.name.as_str(), yson::map! {"job_count" => task.arrived(since)})).collect();
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
