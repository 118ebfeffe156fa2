//! The event `snapshot`: all that the scheduler shows of itself at a time, as its Orchid has it, in a file of
//! its own (simulator.md 3.3). It says what was so at the last share update: looking changes nothing.

use super::*;
use yson::ypath::{YPath, escape_literal};
use yson::{Map, Value};

const ORCHID: &str = "//sys/scheduler/orchid/scheduler";
/// Of a pool tree: what is shown from above, and what has to be asked for by name.
const OF_TREE: [&str; 4] = ["pools", "operations", "allocations", "metrics"];

/// What has been told so far.
pub(super) struct Snapshot {
    at: Span,
    map: Map,
    /// Parts that are still to come.
    missing: usize,
}

impl Engine<'_> {
    /// Asks for all parts of it.
    pub(super) fn take_snapshot(&mut self, event: usize) {
        if self.server.kernel().is_none() {
            return self.note(event, "the server is down");
        }
        let mut paths = vec![String::new(), "/nodes".to_owned()];
        for tree in &self.scenario.trees {
            let tree = format!("/pool_trees/{}", escape_literal(&tree.name));
            paths.push(tree.clone());
            paths.extend(OF_TREE.iter().map(|part| format!("{tree}/{part}")));
        }
        let at = self.now.since(self.scenario.start);
        self.snapshots.insert(event, Snapshot { at, map: Map::new(), missing: paths.len() });
        for part in paths {
            let path = YPath::parse(format!("{ORCHID}{part}").as_bytes()).expect("a path of our own");
            let command = Command::Get { path, attributes: Vec::new(), max_size: None, fields: None };
            self.ask("root", command, Asked::Snapshot(event, part));
        }
    }

    /// A part of it; the last one completes the file.
    pub(super) fn snapshot_told(
        &mut self,
        event: usize,
        part: &str,
        body: Result<Body, Failure>,
    ) -> Result<(), SimError> {
        let value = match body {
            Ok(Body::Value(value)) => value,
            Ok(Body::Snapshot(query)) => query.answer(),
            Ok(_) => Value::Entity,
            Err(failure) => {
                self.note(event, &format!("{part}: {}", in_full(&failure)));
                Value::Entity
            }
        };
        let Some(snapshot) = self.snapshots.get_mut(&event) else { return Ok(()) };
        put(&mut snapshot.map, part, value);
        snapshot.missing -= 1;
        if snapshot.missing > 0 {
            return Ok(());
        }
        let Some(Snapshot { at, map, .. }) = self.snapshots.remove(&event) else { return Ok(()) };
        let names = self.physics.works.iter().map(|(id, work)| (id.to_string(), &work.operation.id));
        let document = yson::map! {
            "at_ms" => at.as_millis(),
            "time" => self.scenario.start + at,
            // Operations bear ids here; this is what the workload calls them.
            "workload_ids" => names.map(|(id, name)| (id, name.as_str())).collect::<Map>(),
            "scheduler" => map,
        };
        let position = self.scenario.events[event].position;
        self.beside.snapshot(at.as_millis(), position, &document.into())
    }
}

/// Puts a value where a path of keys leads; parents come before what is in them.
fn put(map: &mut Map, path: &str, value: Value) {
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let Some(last) = parts.pop() else {
        // The whole, from above.
        *map = value.as_map().cloned().unwrap_or_default();
        return;
    };
    let mut at = map;
    for part in parts {
        let inner = at.entry_or_insert(part, || Value::Map(Map::new()));
        if !matches!(inner, Value::Map(_)) {
            *inner = Value::Map(Map::new());
        }
        let Some(inner) = inner.as_map_mut() else { return };
        at = inner;
    }
    at.insert(last, value);
}
