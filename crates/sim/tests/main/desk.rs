//! Small scenarios, written in a test and run in a directory of their own.

use sim::{Options, Ran, Scenario, SimError};
use std::path::Path;
use tempfile::TempDir;
use yson::{JsonFormat, Map, Value};

/// A scenario in files.
pub struct Desk {
    pub folder: TempDir,
}

pub fn json(text: &str) -> Value {
    yson::json::from_json(text.as_bytes(), &JsonFormat::utf8()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

impl Desk {
    /// One tree with pools `a` and `b`, and nodes of `cpu` cores.
    pub fn new(nodes: u64, cpu: u64, duration_ms: u64, workload: &[&str]) -> Desk {
        let folder = tempfile::tempdir().expect("a directory");
        let scenario = format!(
            r#"{{"format":"millpond-scenario/1","name":"desk","seed":3,"duration_ms":{duration_ms},"stop":"when_idle",
             "cluster":{{"node_groups":[{{"name":"n","count":{nodes},
               "resource_limits":{{"cpu":{cpu},"memory":1000000000000,"user_slots":1000}}}}]}},
             "pool_trees":{{"default_tree":"physical","trees":{{"physical":{{
               "config":{{"default_parent_pool":"<Root>","fair_share_starvation_timeout":30000}},
               "pools":{{"a":{{}},"b":{{}}}}}}}}}},
             "scheduler_config":{{"fair_share_update_period":1000,"node_heartbeat_period":5000}},
             "workload":["workload.jsonl"]}}"#
        );
        let desk = Desk { folder };
        desk.write("scenario.json", &scenario);
        desk.write("workload.jsonl", &(workload.join("\n") + "\n"));
        desk
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).expect("a file");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub fn load(&self, changes: &[(&str, &str)]) -> Result<Scenario, SimError> {
        let changes: Vec<_> = changes.iter().map(|(at, value)| ((*at).to_owned(), json(value))).collect();
        Scenario::load(&self.path().join("scenario.json"), &changes)
    }

    /// Runs it into a folder of that name.
    pub fn run(&self, out: &str, changes: &[(&str, &str)], options: Options) -> Result<Ran, SimError> {
        let scenario = self.load(changes)?;
        sim::run(&scenario, &self.path().join(out), options, &mut |_| true, &mut |_| Map::new())
    }

    /// Runs it with all invariants checked, and they hold.
    pub fn checked(&self, out: &str, changes: &[(&str, &str)]) -> Ran {
        let options = Options { check_invariants: true, ..Options::default() };
        let ran = self.run(out, changes, options).unwrap_or_else(|e| panic!("{e}"));
        assert!(ran.violations.is_empty(), "{:#?}", ran.violations);
        ran
    }
}

/// A number of a summary.
pub fn figure(ran: &Ran, path: &str) -> f64 {
    let start = Value::Map(ran.summary.clone());
    let found = path.split('/').try_fold(&start, |value, key| value.get(key));
    found.and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path}: {:?}", ran.summary))
}

/// Rows of a CSV file by column.
pub fn rows(text: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let row = |line: &str| {
        header.iter().zip(line.split(',')).map(|(name, cell)| ((*name).to_owned(), cell.to_owned())).collect()
    };
    lines.map(row).collect()
}
