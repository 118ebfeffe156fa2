//! The answer to a line as one map, from which both forms are printed.

use super::event::{Shown, Subject};
use super::log::Log;
use super::state::{Elements, State, amounts, seconds};
use super::world::{TREE, World};
use vocab::{Failure, Time};
use yson::{Map, Value};

/// Fields of an answer in their order; what is empty is left out.
pub(super) struct Answer {
    map: Map,
    now: Time,
}

impl Answer {
    /// The `number`th answer of the script.
    pub fn new(number: u64, did: &str, note: Option<&str>, now: Time) -> Answer {
        let map = yson::map! { "event" => number as i64, "t" => seconds(now), "did" => did };
        Answer { map: map.with_some("note", note), now }
    }

    /// What came of the event.
    pub fn decisions(&mut self, log: &Log, refused: Option<&Failure>, world: &World) {
        if let Some(failure) = refused {
            let mut all = Vec::new();
            flatten(failure, world, &mut all);
            self.map.insert("refused", all);
        }
        let [periodic, extra] = log.updates.map(i64::from);
        if periodic + extra > 0 {
            self.map.insert("updates", yson::map! { "periodic" => periodic, "extra" => extra });
        }
        let [regular, preemptive] = log.passes.map(i64::from);
        if regular + preemptive > 0 {
            self.map.insert("passes", yson::map! { "regular" => regular, "preemptive" => preemptive });
        }
        let starvation = log
            .starvation
            .iter()
            .map(|s| self.at(s.time, Map::new().with(s.kind, &*s.name).with("status", &*s.status)));
        let starvation = starvation.collect();
        self.list("starvation", starvation);
        let starts: Vec<Value> = log
            .starts
            .iter()
            .map(|s| {
                let map = yson::map! {
                    "allocation" => &*s.allocation, "node" => &*s.node, "resources" => amounts(&s.resources),
                };
                self.at(s.time, map.with_some("stage", s.stage))
            })
            .collect();
        self.list("starts", starts);
        let preemptions: Vec<Value> = log
            .preemptions
            .iter()
            .map(|p| {
                let map = yson::map! { "allocation" => &*p.allocation, "node" => &*p.node, "kind" => p.kind }
                    .with_some("stage", p.stage)
                    .with_some("group", p.group)
                    .with_some("level", p.level.map(i64::from))
                    .with_some("for", p.preemptor.as_deref())
                    .with("timeout", p.timeout.as_secs_f64())
                    .with("reason", &*p.reason);
                self.at(p.time, map)
            })
            .collect();
        self.list("preemptions", preemptions);
        let aborts = log.aborts.iter().map(|(time, allocation, reason)| {
            self.at(*time, yson::map! { "allocation" => &**allocation, "reason" => *reason })
        });
        let aborts = aborts.collect();
        self.list("aborts", aborts);
        let ends = log
            .ends
            .iter()
            .map(|e| self.at(e.time, yson::map! { "allocation" => &*e.allocation, "outcome" => e.outcome }));
        let ends = ends.collect();
        self.list("ends", ends);
        let failures = log.failures.iter().map(|(time, operation, reason)| {
            self.at(*time, yson::map! { "operation" => &**operation, "reason" => &**reason })
        });
        let failures = failures.collect();
        self.list("failures", failures);
        self.section("skipped", log.skipped.iter().map(|(k, v)| (k.as_str(), Value::from(*v))).collect());
        let counts = log.deactivations.iter().map(|(k, n)| (*k, Value::from(*n as i64)));
        self.section("deactivations", counts.collect());
    }

    /// A time of its own, if it is not that of the answer.
    fn at(&self, time: Time, map: Map) -> Value {
        if time == self.now {
            return map.into();
        }
        let mut timed = yson::map! { "t" => seconds(time) };
        for (key, value) in map.iter() {
            timed.insert(key, value.clone());
        }
        timed.into()
    }

    fn list(&mut self, name: &str, list: Vec<Value>) {
        if !list.is_empty() {
            self.map.insert(name, list);
        }
    }

    fn section(&mut self, name: &str, map: Map) {
        if !map.is_empty() {
            self.map.insert(name, map);
        }
    }

    /// What has changed.
    pub fn changes(&mut self, changes: State) {
        for (name, elements) in
            [("operations", changes.operations), ("pools", changes.pools), ("nodes", changes.nodes)]
        {
            self.section(name, elements.into_iter().map(|(k, v)| (k, Value::Map(v))).collect());
        }
    }

    /// Sentences of the scheduler about an operation or a pool.
    pub fn explanation(&mut self, subject: &Subject, world: &World) {
        let text = match subject {
            Subject::Operation(id) => world.scheduler.explain(*id, world.now).map(|e| e.to_string()).ok(),
            Subject::Pool(name) => {
                let snapshot = world.scheduler.snapshot();
                let explained = snapshot.tree(TREE).and_then(|t| t.explain_pool(name));
                explained.map(|e| e.to_string())
            }
        };
        let lines = world.names.translate(&text.unwrap_or_default());
        self.list("explanation", lines.lines().map(Value::from).collect());
    }

    /// Elements in full.
    pub fn shown(&mut self, shown: &Shown, state: &State, world: &World) {
        let operations = shown.operations.iter().filter_map(|id| world.operations.get(id));
        let operations: Vec<&str> = operations.map(|o| o.name.as_str()).collect();
        let snapshot = world.scheduler.snapshot();
        let tree = snapshot.tree(TREE);
        let mut map = Map::new();
        let of = |elements: &Elements, names: &[&str]| -> Map {
            let known = names.iter().filter_map(|name| Some((*name, elements.get(*name)?)));
            known.map(|(name, map)| (name, Value::Map(map.clone()))).collect()
        };
        let pools: Vec<&str> = shown.pools.iter().map(String::as_str).collect();
        let nodes: Vec<&str> = shown.nodes.iter().map(String::as_str).collect();
        match &shown.attributes {
            None => {
                map.insert("operations", of(&state.operations, &operations));
                map.insert("pools", of(&state.pools, &pools));
            }
            Some(fields) => {
                let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
                let wanted = |map: Option<Map>| {
                    let map = map.unwrap_or_default();
                    let value = |f: &str| map.get(f).cloned().unwrap_or(Value::Entity);
                    Value::Map(fields.iter().map(|f| (*f, value(f))).collect())
                };
                let ids = shown.operations.iter();
                let of_operations: Map = ids
                    .map(|id| {
                        let attributes = tree.and_then(|t| t.operation_attributes(*id, Some(&fields)));
                        (world.names.operation(*id), wanted(attributes))
                    })
                    .collect();
                let of_pools: Map = pools
                    .iter()
                    .map(|name| (*name, wanted(tree.and_then(|t| t.pool_attributes(name, Some(&fields))))))
                    .collect();
                map.insert("operations", of_operations);
                map.insert("pools", of_pools);
            }
        }
        map.insert("nodes", of(&state.nodes, &nodes));
        let filled = map.iter().filter(|(_, v)| v.as_map().is_some_and(|m| !m.is_empty()));
        let filled: Map = filled.map(|(k, v)| (k.to_vec(), v.clone())).collect();
        self.map.insert("shown", filled);
    }

    pub fn finish(self) -> Map {
        self.map
    }
}

/// An error and those inside of it, outer ones first.
fn flatten(failure: &Failure, world: &World, out: &mut Vec<Value>) {
    out.push(
        yson::map! { "code" => failure.code, "message" => world.names.translate(&failure.message) }.into(),
    );
    for inner in &failure.inner_errors {
        flatten(inner, world, out);
    }
}
