//! Preemptions over a restart (scheduling.md 15.1, 21): a record as a value that a store can keep, and
//! the way back into the log.
//!
//! Not a public form: [`PreemptionRecord::to_map`] is what users see.

use crate::preemption::{
    LimitedElement, PreemptionCause, PreemptionGroup, PreemptionPriority, PreemptionRecord, Preemptor, Stage,
};
use crate::scheduler::Scheduler;
use std::str::FromStr;
use std::sync::Arc;
use vocab::{RESOURCES, Resources, Span, Time};
use yson::{Map, Value};

impl PreemptionRecord {
    /// For the store.
    pub fn to_stored(&self) -> Value {
        yson::map! {
            "time" => self.time.as_micros(),
            "tree" => &*self.tree,
            "node" => &*self.node,
            "allocation" => self.allocation.to_string(),
            "operation" => self.operation.to_string(),
            "pool" => &*self.pool,
            "resources" => RESOURCES.map(|r| self.resources.raw(r)).to_vec(),
            "group" => self.group,
            "level" => i64::from(self.level),
            "timeout" => self.timeout.as_micros(),
            "cause" => cause_to_stored(&self.cause),
        }
        .into()
    }

    /// Inverse of [`PreemptionRecord::to_stored`]; none if the value is not one.
    pub fn from_stored(value: &Value) -> Option<PreemptionRecord> {
        let map = value.as_map()?;
        let amounts = map.get("resources")?.as_list()?;
        let mut resources = Resources::ZERO;
        for (r, amount) in RESOURCES.into_iter().zip(amounts) {
            resources.set_raw(r, amount.as_i64()?);
        }
        Some(PreemptionRecord {
            time: Time(map.get("time")?.as_u64()?),
            tree: text(map, "tree")?.into(),
            node: text(map, "node")?.into(),
            allocation: parsed(map, "allocation")?,
            operation: parsed(map, "operation")?,
            pool: text(map, "pool")?.into(),
            resources,
            group: PreemptionGroup::parse(text(map, "group")?)?,
            level: map.get("level")?.as_u64()?.try_into().ok()?,
            timeout: Span(map.get("timeout")?.as_u64()?),
            cause: cause_from_stored(map.get("cause")?.as_map()?)?,
        })
    }
}

fn text<'m>(map: &'m Map, key: &str) -> Option<&'m str> {
    map.get(key)?.as_str()
}

fn parsed<T: FromStr>(map: &Map, key: &str) -> Option<T> {
    text(map, key)?.parse().ok()
}

/// A cause is told from the others by which of its keys is there.
fn cause_to_stored(cause: &PreemptionCause) -> Map {
    let mut map = Map::new().with_some("stage", cause.stage());
    match cause {
        PreemptionCause::Start { preemptor, .. } => {
            map.insert("allocation", preemptor.allocation.to_string());
            map.insert("operation", preemptor.operation.to_string());
            map.insert("own_priority", preemptor.own_priority);
        }
        PreemptionCause::ResourceLimits { violated: LimitedElement::Operation(id), .. } => {
            map.insert("violated_operation", id.to_string());
        }
        PreemptionCause::ResourceLimits { violated: LimitedElement::Pool(name), .. } => {
            map.insert("violated_pool", &**name);
        }
        PreemptionCause::NodeOvercommit { since } => {
            map.insert("since", since.as_micros());
        }
        PreemptionCause::NodeLimits { .. } | PreemptionCause::Graceful => {}
    }
    map
}

fn cause_from_stored(map: &Map) -> Option<PreemptionCause> {
    let stage = text(map, "stage").and_then(Stage::parse);
    let violated = match (text(map, "violated_operation"), text(map, "violated_pool")) {
        (Some(id), _) => Some(LimitedElement::Operation(id.parse().ok()?)),
        (None, name) => name.map(|name| LimitedElement::Pool(name.into())),
    };
    Some(match (stage, violated, map.get("since")) {
        (Some(stage), _, _) if map.get("own_priority").is_some() => {
            let own_priority = PreemptionPriority::parse(text(map, "own_priority")?)?;
            let preemptor = Preemptor {
                allocation: parsed(map, "allocation")?,
                operation: parsed(map, "operation")?,
                own_priority,
            };
            PreemptionCause::Start { stage, preemptor }
        }
        (Some(stage), Some(violated), _) => PreemptionCause::ResourceLimits { stage, violated },
        (Some(stage), None, _) => PreemptionCause::NodeLimits { stage },
        (None, _, Some(since)) => PreemptionCause::NodeOvercommit { since: Time(since.as_u64()?) },
        (None, _, None) => PreemptionCause::Graceful,
    })
}

impl Scheduler {
    /// Puts a record of an earlier life at the end of the log; to be called in their order, before
    /// anything is decided in this life.
    pub fn restore_preemption(&mut self, record: Arc<PreemptionRecord>) {
        self.preemption_log.push(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::{AllocationId, Cpu, Guid, OperationId};

    #[test]
    fn every_cause_survives() {
        let operation = OperationId(Guid([1, 2, 3, 4]));
        let preemptor = Preemptor {
            allocation: AllocationId(Guid([5, 6, 7, 8])),
            operation,
            own_priority: PreemptionPriority::None,
        };
        let (normal, aggressive) = (Stage::PreemptiveNormal, Stage::PreemptiveAggressive);
        let causes = [
            PreemptionCause::Start { stage: aggressive, preemptor },
            PreemptionCause::NodeLimits { stage: normal },
            PreemptionCause::ResourceLimits { stage: normal, violated: LimitedElement::Operation(operation) },
            PreemptionCause::ResourceLimits {
                stage: aggressive,
                violated: LimitedElement::Pool("<Root>".into()),
            },
            PreemptionCause::NodeOvercommit { since: Time(17) },
            PreemptionCause::Graceful,
        ];
        for cause in causes {
            let record = PreemptionRecord {
                time: Time(1_234_567),
                tree: "physical".into(),
                node: "n1".into(),
                allocation: AllocationId(Guid([9, 9, 9, 9])),
                operation,
                pool: "p".into(),
                resources: Resources { user_slots: 1, cpu: Cpu(150), memory: 1 << 40, ..Resources::ZERO },
                group: PreemptionGroup::AggressivelyPreemptible,
                level: 1,
                timeout: Span::from_secs(10),
                cause,
            };
            assert_eq!(PreemptionRecord::from_stored(&record.to_stored()), Some(record));
        }
        assert_eq!(PreemptionRecord::from_stored(&Value::Entity), None);
    }
}
