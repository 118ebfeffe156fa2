//! What a live cluster says about itself, as a scenario that begins there (simulator.md 11): pools with
//! their volumes, nodes, unfinished operations, and the jobs that run now on the nodes where they run.
//!
//! Whoever has asked the cluster fills a [`Cluster`]; nothing is asked here. How long jobs will run nobody
//! knows: [`durations`] guesses by those that are done, and says where it had none.

mod durations;
mod operations;

use crate::error::SimError;
use crate::output::{cannot_write, write_json};
use crate::scenario::keep_options;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use vocab::{Span, Time};
use yson::{JsonFormat, Map, Value};

/// What a cluster has said.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// When: the scenario begins then, with an update of shares.
    pub taken: Time,
    /// Name of the default tree.
    pub default_tree: String,
    /// Options of the scheduler that were set.
    pub scheduler_config: Map,
    /// `//sys/controller_agents/config`.
    pub controller_config: Map,
    /// Nodes by address, as the Orchid has them.
    pub nodes: Map,
    /// Pool trees.
    pub trees: Vec<Tree>,
    /// Unfinished operations.
    pub operations: Vec<Operation>,
}

/// A pool tree.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Its name.
    pub name: String,
    /// Options that were set.
    pub config: Map,
    /// Parents before children.
    pub pools: Vec<Pool>,
    /// Pools by name, as the Orchid has them.
    pub orchid: Map,
    /// Allocations by node, as the Orchid has them.
    pub allocations: Map,
}

/// A pool of the metadata tree.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// The pool above; none: the root.
    pub parent: Option<String>,
    /// All attributes.
    pub attributes: Map,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// As `get_operation` gives them; [`Operation::ATTRIBUTES`] are needed.
    pub attributes: Map,
    /// Some of its completed jobs, as `list_jobs` gives them.
    pub completed: Vec<Map>,
}

impl Operation {
    /// What is read of an operation.
    pub const ATTRIBUTES: &[&str] = &[
        "id",
        "state",
        "authenticated_user",
        "start_time",
        "suspended",
        "provided_spec",
        "runtime_parameters",
        "progress",
    ];
}

/// What is assumed of the future.
#[derive(Clone, Copy, Debug)]
pub struct Assumptions {
    /// Jobs of a task of which nothing is known run so long.
    pub job_duration: Span,
    /// The simulation ends then at the latest.
    pub duration: Span,
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Written {
    /// Nodes that are online.
    pub nodes: u64,
    /// Operations with work left.
    pub operations: u64,
    /// Jobs that run.
    pub running_jobs: u64,
    /// Jobs that wait.
    pub pending_jobs: u64,
    /// Tasks without a completed job: how long theirs run is assumed.
    pub guessed_tasks: u64,
}

/// Resources of nodes that scenarios know.
const OF_NODES: &[&str] = &["cpu", "memory", "user_slots", "gpu", "network"];

/// Writes `scenario.json` and `workload.jsonl` into a directory, which is made if it is not there.
pub fn write(cluster: &Cluster, assumed: &Assumptions, folder: &Path) -> Result<Written, SimError> {
    std::fs::create_dir_all(folder).map_err(|e| cannot_write(folder, &e))?;
    let mut written = Written::default();
    let (groups, online) = groups(cluster);
    written.nodes = online.len() as u64;
    let mut lines = Vec::new();
    let mut events = Vec::new();
    let running = operations::running(cluster, &online);
    for operation in operations::in_order(cluster) {
        let Some(line) = operations::line(operation, &running, assumed, &mut written) else { continue };
        if operation.attributes.get("suspended").and_then(Value::as_bool) == Some(true) {
            let id = line.get("id").cloned().unwrap_or_default();
            events.push(Value::Map(yson::map! {"at" => 0i64, "type" => "suspend", "operation" => id}));
        }
        lines.extend(yson::json::to_json(&line.into(), &JsonFormat::utf8()));
        lines.push(b'\n');
    }
    let trees: Map = cluster.trees.iter().map(|tree| (tree.name.as_str(), tree_of(tree))).collect();
    let volumes = cluster.trees.iter().map(|tree| (tree.name.as_str(), volumes_of(tree)));
    let scenario = yson::map! {
        "format" => crate::scenario::FORMAT,
        "name" => "live",
        "start_time" => cluster.taken.to_string(),
        "duration_ms" => assumed.duration.as_millis(),
        "stop" => "when_idle",
        "cluster" => yson::map! {"node_groups" => groups},
        "pool_trees" => yson::map! {"default_tree" => cluster.default_tree.as_str(), "trees" => trees},
        "scheduler_config" => cluster.scheduler_config.clone(),
        "controller_config" => controller_config(cluster),
        "initial_state" => volumes.collect::<Map>(),
        "workload" => vec!["workload.jsonl"],
        "events" => events,
        // Short enough for a job that waits a moment.
        "output" => yson::map! {"pool_series_period_ms" => 10_000i64},
    };
    let path = folder.join("workload.jsonl");
    let file = std::fs::File::create(&path).and_then(|mut file| file.write_all(&lines));
    file.map_err(|e| cannot_write(&path, &e))?;
    write_json(&folder.join("scenario.json"), &scenario.into())?;
    Ok(written)
}

/// The simulator has an estimate of its own for job proxies; here it is production's.
fn controller_config(cluster: &Cluster) -> Map {
    let mut config = cluster.controller_config.clone();
    let usual = controller::ControllerOptions::default().footprint_memory;
    config.entry_or_insert("footprint_memory", || usual.into());
    config
}

/// Equal nodes that follow one another.
struct Group {
    /// See [`common`].
    own: Map,
    names: Vec<String>,
    phases: Vec<Option<f64>>,
}

impl Group {
    fn into_value(self, number: usize) -> Value {
        let phases: Option<Vec<f64>> = self.phases.into_iter().collect();
        let map = yson::map! {"name" => format!("nodes{}", number + 1), "names" => self.names};
        Value::Map(map.with_some("heartbeat_phases", phases).into_iter().chain(self.own).collect())
    }
}

/// Nodes that are online, in the order in which the scheduler counts them.
fn groups(cluster: &Cluster) -> (Vec<Value>, BTreeSet<String>) {
    let is_online = |node: &Value| node.get("state").and_then(Value::as_str) == Some("online");
    let mut online: Vec<(String, &Value)> = cluster
        .nodes
        .iter()
        .filter(|(_, node)| is_online(node))
        .map(|(address, node)| (String::from_utf8_lossy(address).into_owned(), node))
        .collect();
    let index = |node: &Value| node.get("index").and_then(Value::as_u64);
    online.sort_by_cached_key(|(address, node)| (index(node), address.clone()));
    let mut groups: Vec<Group> = Vec::new();
    for (address, node) in &online {
        let own = common(node);
        if groups.last().is_none_or(|group| group.own != own) {
            groups.push(Group { own, names: Vec::new(), phases: Vec::new() });
        }
        if let Some(group) = groups.last_mut() {
            group.names.push(address.clone());
            group.phases.push(next_heartbeat(node, cluster.taken));
        }
    }
    let groups = groups.into_iter().enumerate().map(|(number, group)| group.into_value(number)).collect();
    (groups, online.into_iter().map(|(address, _)| address).collect())
}

/// What equal nodes have in common.
fn common(node: &Value) -> Map {
    let limits = node.get("resource_limits").and_then(Value::as_map).cloned().unwrap_or_default();
    let limits: Map = OF_NODES.iter().filter_map(|name| Some((*name, limits.get(name)?.clone()))).collect();
    let tags = node.get("tags").and_then(Value::as_list).unwrap_or_default().to_vec();
    yson::map! {"resource_limits" => limits, "tags" => tags}
        .with_some("heartbeat_period", heartbeat_period(node).map(|period| period.as_millis()))
}

fn heartbeat_period(node: &Value) -> Option<Span> {
    node.get("heartbeat_period")?.as_u64().map(|ms| Span::from_millis(ms + LATENESS_MS))
}

/// A node's timer is late, and the next heartbeat is a period after the late one: on the wire periods are 5.001 s
/// and not 5, so that a backoff of preemption (5 s) is over when a heartbeat comes (scheduling.md 12.1).
const LATENESS_MS: u64 = 1;

/// Milliseconds from the snapshot to the next heartbeat of a node, if one has come before.
fn next_heartbeat(node: &Value, taken: Time) -> Option<f64> {
    let last = Time::parse(node.get("last_heartbeat_time")?.as_str()?).filter(|last| *last > Time::ZERO)?;
    let period = heartbeat_period(node)?.as_micros();
    // The cluster was asked a moment after `taken`.
    let to_next = match last > taken {
        true => last.since(taken).as_micros() % period,
        false => period - taken.since(last).as_micros() % period,
    };
    Some(to_next as f64 / 1000.0)
}

fn tree_of(tree: &Tree) -> Map {
    yson::map! {"config" => tree.config.clone(), "pools" => pools_below(tree, None)}
}

fn pools_below(tree: &Tree, parent: Option<&str>) -> Map {
    let children = tree.pools.iter().filter(|pool| pool.parent.as_deref() == parent);
    let one = |pool: &Pool| {
        let mut attributes = pool.attributes.clone();
        keep_options(&mut attributes);
        let below = pools_below(tree, Some(&pool.name));
        if !below.is_empty() {
            attributes.insert("pools", below);
        }
        (pool.name.clone(), Value::Map(attributes))
    };
    children.map(one).collect()
}

fn volumes_of(tree: &Tree) -> Map {
    const VOLUME: &str = "accumulated_resource_ratio_volume";
    let volume = |pool: &Pool| {
        let ratio = tree.orchid.get(&pool.name)?.get(VOLUME)?.as_f64()?;
        Some((pool.name.clone(), Value::Map(yson::map! {VOLUME => ratio})))
    };
    yson::map! {"pools" => tree.pools.iter().filter_map(volume).collect::<Map>()}
}
