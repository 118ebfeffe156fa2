//! `scenario.json` and `workload.jsonl` (simulator.md 3 and 4), as far as the scenarios with expected
//! curves use them: whatever else they say is refused, so that nothing is silently left out.

use std::fs;
use std::path::{Path, PathBuf};
use vocab::{Cpu, Resources, Span, Time};
use yson::fields::{FieldError, Fields};
use yson::{JsonFormat, Map, Value};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/scenarios");

/// A cluster, a tree of pools, and what runs.
pub struct Scenario {
    pub folder: PathBuf,
    pub start: Time,
    pub duration: Span,
    /// Nodes by name.
    pub nodes: Vec<(String, Resources)>,
    pub tree: String,
    pub tree_options: Map,
    pub pools: Vec<Pool>,
    pub scheduler_options: Map,
    /// Of nodes.
    pub heartbeat_period: Span,
    pub operations: Vec<Operation>,
    /// Samples are taken every minute, this much later.
    pub series_shift: Span,
}

pub struct Pool {
    pub name: String,
    pub parent: String,
    pub options: Map,
    /// Volume at the start, in clusters x seconds.
    pub ratio_volume: f64,
}

/// An operation with a constant demand: its jobs are restarted for ever.
pub struct Operation {
    pub at: Span,
    pub until: Span,
    pub user: String,
    pub pool: String,
    pub job_count: i64,
    pub job: Resources,
    pub job_duration: Span,
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

pub fn json(path: &Path, text: &str) -> Value {
    yson::json::from_json(text.as_bytes(), &JsonFormat::utf8())
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn map<'a>(value: &'a Value, what: &str) -> &'a Map {
    value.as_map().unwrap_or_else(|| panic!("{what} is not a map"))
}

impl Scenario {
    pub fn load(name: &str) -> Scenario {
        Scenario::with_changes(name, |_| {})
    }

    /// With the changes of a variant: JSON pointers and new values (simulator.md 11).
    pub fn variant(name: &str, variant: &str) -> Scenario {
        let path = Path::new(FOLDER).join(name).join(format!("variant-{variant}.json"));
        let file = json(&path, &read(&path));
        Scenario::with_changes(name, |scenario| {
            for (pointer, value) in map(file.get("set").expect("set"), "set").iter() {
                let pointer = std::str::from_utf8(pointer).expect("UTF-8");
                *at_pointer(scenario, pointer) = value.clone();
            }
        })
    }

    /// With changes to the description.
    pub fn with_changes(name: &str, change: impl FnOnce(&mut Value)) -> Scenario {
        let folder = Path::new(FOLDER).join(name);
        let path = folder.join("scenario.json");
        let mut value = json(&path, &read(&path));
        change(&mut value);
        let mut fields = Fields::new(map(&value, "the scenario"), "");
        let scenario = Scenario::read(&mut fields, folder).and_then(|s| fields.finish().map(|()| s));
        scenario.unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    fn read(f: &mut Fields<'_>, folder: PathBuf) -> Result<Scenario, FieldError> {
        for name in ["format", "name", "description", "seed", "stop"] {
            f.ignore(name);
        }
        let start = f.take_str("start_time").required()?;
        let events = f.take_list("events").required()?;
        assert!(events.is_empty(), "events are not read");
        let workload = f.take_str_list("workload").required()?;
        let cluster = f.nested("cluster", |f| {
            let groups = f.take_list("node_groups").required()?;
            Ok::<_, FieldError>(groups.iter().flat_map(nodes).collect())
        })?;
        let (tree, tree_options, mut pools) = f
            .nested("pool_trees", |f| {
                let tree = f.take_str("default_tree").required()?.to_owned();
                let trees = f.take_map("trees").required()?;
                assert_eq!(trees.len(), 1, "one tree is read");
                let tree_map = trees.get(&tree).expect("the default tree");
                let config = map(tree_map.get("config").expect("config"), "config").clone();
                let mut pools = Vec::new();
                children(tree_map, "<Root>", &mut pools);
                Ok::<_, FieldError>((tree, config, pools))
            })?
            .expect("pool_trees");
        let initial = f.take_map("initial_state").required()?;
        let volumes = initial.get(&tree).and_then(|t| t.get("pools"));
        for (name, state) in volumes.and_then(Value::as_map).into_iter().flat_map(Map::iter) {
            let pool = pools.iter_mut().find(|p| p.name.as_bytes() == name).expect("a pool with a volume");
            let volume = state.get("accumulated_resource_ratio_volume").and_then(Value::as_f64);
            pool.ratio_volume = volume.expect("a volume");
        }
        let mut scheduler_options = f.take_map("scheduler_config").required()?.clone();
        let heartbeat_period = scheduler_options.remove("node_heartbeat_period");
        let heartbeat_period = heartbeat_period.and_then(|v| v.as_u64()).expect("node_heartbeat_period");
        let series_shift = f.nested("output", |f| {
            assert_eq!(f.take_u64("pool_series_period_ms").required()?, 60_000);
            f.take_u64("pool_series_shift_ms").required()
        })?;
        let operations = workload.iter().flat_map(|file| {
            let path = folder.join(file);
            let text = read(&path);
            text.lines().map(|line| operation(&path, line)).collect::<Vec<_>>()
        });
        Ok(Scenario {
            operations: operations.collect(),
            start: Time::parse(start).expect("start_time"),
            duration: Span::from_millis(f.take_u64("duration_ms").required()?),
            nodes: cluster.expect("cluster"),
            tree,
            tree_options,
            pools,
            scheduler_options,
            heartbeat_period: Span::from_millis(heartbeat_period),
            series_shift: Span::from_millis(series_shift.expect("output")),
            folder,
        })
    }

    /// Is there a sample at this time?
    pub fn is_sampled(&self, elapsed: Span) -> bool {
        elapsed.as_millis() % 60_000 == self.series_shift.as_millis()
    }

    /// Time between two updates.
    pub fn update_period(&self) -> Span {
        let period = self.scheduler_options.get("fair_share_update_period").and_then(Value::as_u64);
        Span::from_millis(period.expect("fair_share_update_period"))
    }

    pub fn total(&self) -> Resources {
        self.nodes.iter().fold(Resources::ZERO, |sum, (_, node)| sum + *node)
    }
}

/// The place of a JSON pointer.
pub fn at_pointer<'a>(value: &'a mut Value, pointer: &str) -> &'a mut Value {
    pointer.split('/').skip(1).fold(value, |value, key| match value {
        Value::List(items) => &mut items[key.parse::<usize>().expect("an index")],
        Value::Map(map) => map.get_mut(key).unwrap_or_else(|| panic!("no {key} in {pointer}")),
        _ => panic!("nothing below {key} in {pointer}"),
    })
}

fn nodes(group: &Value) -> Vec<(String, Resources)> {
    let text = |name: &str| group.get(name).and_then(Value::as_str).expect("a string");
    let count = group.get("count").and_then(Value::as_i64).expect("count");
    let limits = resources(group.get("resource_limits").expect("resource_limits"));
    (0..count).map(|i| (format!("{}-{i}", text("name")), limits)).collect()
}

fn resources(value: &Value) -> Resources {
    let amount = |name: &str| value.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    Resources {
        user_slots: amount("user_slots") as i64,
        cpu: Cpu::from_f64(amount("cpu")),
        gpu: amount("gpu") as i64,
        memory: amount("memory") as i64,
        network: amount("network") as i64,
    }
}

fn children(node: &Value, parent: &str, out: &mut Vec<Pool>) {
    let Some(pools) = node.get("pools") else { return };
    for (name, value) in map(pools, "pools").iter() {
        let name = String::from_utf8(name.to_vec()).expect("UTF-8");
        let mut options = map(value, "a pool").clone();
        options.remove("pools");
        out.push(Pool { name: name.clone(), parent: parent.to_owned(), options, ratio_volume: 0.0 });
        children(value, &name, out);
    }
}

fn operation(path: &Path, line: &str) -> Operation {
    let value = json(path, line);
    let mut fields = Fields::new(map(&value, "an operation"), "");
    read_operation(&mut fields)
        .and_then(|o| fields.finish().map(|()| o))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn read_operation(f: &mut Fields<'_>) -> Result<Operation, FieldError> {
    f.ignore("id");
    assert_eq!(f.take_str("type").required()?, "vanilla");
    assert!(f.take_map("spec").required()?.is_empty(), "specs are not read");
    let tasks = f.take_list("tasks").required()?;
    assert_eq!(tasks.len(), 1, "one task is read");
    let mut task = Fields::new(map(&tasks[0], "a task"), "tasks/0");
    // Usage of memory and CPU concern nodes and controllers, not the scheduler.
    for name in ["name", "memory_usage", "cpu_usage"] {
        task.ignore(name);
    }
    assert!(task.take_bool("restart_completed_jobs").required()?, "demand must be constant");
    assert!(!task.take_bool("interruptible").required()?, "interruption is not simulated");
    let duration = task.take_map("duration").required()?.get("const").and_then(Value::as_u64);
    // The estimate of the job proxy's memory is part of what a job needs (simulator.md 4).
    let memory = task.take_i64("memory").required()? + (256 << 20);
    let cpu = Cpu::from_f64(task.take_f64("cpu").required()?);
    let job_count = task.take_i64("job_count").required()?;
    task.finish()?;
    Ok(Operation {
        at: Span::from_millis(f.take_u64("at").required()?),
        until: Span::from_millis(f.take_u64("until").required()?),
        user: f.take_str("user").required()?.to_owned(),
        pool: f.take_str("pool").required()?.to_owned(),
        job_count,
        job: Resources { user_slots: 1, cpu, memory, ..Resources::ZERO },
        job_duration: Span::from_millis(duration.expect("a constant duration")),
    })
}
