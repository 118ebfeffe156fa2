//! Unfinished operations as lines of a workload: what is left of them.

use super::durations::{self, of_running, of_task};
use super::{Assumptions, Cluster, Operation, Written};
use std::collections::{BTreeMap, BTreeSet};
use vocab::Span;
use yson::{Map, Value};

/// Root options of a spec that change scheduling; the rest is about data, or about what jobs do.
const ROOT_OPTIONS: &[&str] = &[
    "title",
    "alias",
    "scheduling_tag_filter",
    "fair_share_starvation_timeout",
    "fair_share_starvation_tolerance",
    "non_preemptible_resource_usage_threshold",
    "preemption_mode",
    "apply_specified_resource_limits_to_demand",
    "allocation_preemption_timeout",
    "allocation_graceful_preemption_timeout",
    "waiting_job_timeout",
    "max_failed_job_count",
    "fail_on_job_restart",
    "is_gang",
];

/// A job that runs now.
pub(super) struct Running {
    task: String,
    node: String,
    tree: String,
    age: Span,
    cpu: f64,
    memory: i64,
}

/// Running jobs by operation, oldest first; of those that are on their way out the units wait already.
pub(super) fn running(cluster: &Cluster, online: &BTreeSet<String>) -> BTreeMap<String, Vec<Running>> {
    let mut all: BTreeMap<String, Vec<Running>> = BTreeMap::new();
    for tree in &cluster.trees {
        for (node, rows) in tree.allocations.iter() {
            let node = String::from_utf8_lossy(node).into_owned();
            for row in rows.as_list().unwrap_or_default().iter().filter(|_| online.contains(&node)) {
                if row.get("preempting").and_then(Value::as_bool) == Some(true) {
                    continue;
                }
                let resource = |name: &str| row.get("resources").and_then(|r| r.get(name));
                all.entry(text(row, "operation_id")).or_default().push(Running {
                    task: text(row, "task_name"),
                    node: node.clone(),
                    tree: tree.name.clone(),
                    age: Span::from_millis(row.get("age").and_then(Value::as_u64).unwrap_or_default()),
                    cpu: resource("cpu").and_then(Value::as_f64).unwrap_or_default(),
                    memory: resource("memory").and_then(Value::as_i64).unwrap_or_default().max(1),
                });
            }
        }
    }
    for jobs in all.values_mut() {
        jobs.sort_by(|a, b| b.age.cmp(&a.age).then_with(|| a.node.cmp(&b.node)));
    }
    all
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Those that run come first, so that nobody who waits takes their places; within each half by their start.
pub(super) fn in_order(cluster: &Cluster) -> Vec<&Operation> {
    let mut all: Vec<&Operation> = cluster.operations.iter().collect();
    let key = |operation: &&Operation| {
        let text = |key: &str| operation.attributes.get(key).and_then(Value::as_str).unwrap_or_default();
        (text("state") == "pending", text("start_time").to_owned(), text("id").to_owned())
    };
    all.sort_by_key(key);
    all
}

/// A line of the workload; none if nothing is left to do.
pub(super) fn line(
    operation: &Operation,
    running: &BTreeMap<String, Vec<Running>>,
    assumed: &Assumptions,
    written: &mut Written,
) -> Option<Map> {
    let attributes = &operation.attributes;
    let id = attributes.get("id")?.as_str()?;
    let spec = attributes.get("provided_spec").and_then(Value::as_map).unwrap_or(Map::EMPTY);
    let progress = attributes.get("progress")?.get("tasks").and_then(Value::as_list)?;
    let jobs = running.get(id).map(Vec::as_slice).unwrap_or_default();
    let (mut tasks, mut rows, mut now) = (Vec::new(), Vec::new(), Vec::new());
    let mut default_reserve: f64 = 0.0;
    for shown in progress {
        let name = text(shown, "task_name");
        let of_task: Vec<&Running> = jobs.iter().filter(|job| job.task == name).collect();
        let count = |key: &str| shown.get("job_counter").and_then(|c| c.get(key)?.as_u64()).unwrap_or(0);
        let left = (count("running") + count("pending")).max(of_task.len() as u64);
        if left == 0 {
            continue;
        }
        let options = |key: &str| shown.get("user_job_options").and_then(|o| o.get(key));
        let cpu = options("cpu_limit").and_then(Value::as_f64).unwrap_or(1.0);
        let memory = options("memory_limit").and_then(Value::as_i64).unwrap_or(512 << 20).max(1);
        let gpu = options("gpu_limit").and_then(Value::as_i64).unwrap_or(0);
        let reserve = shown.get("user_job_memory_reserve_factor").and_then(Value::as_f64);
        let reserve = reserve.unwrap_or(1.0).clamp(0.0, 1.0);
        default_reserve = default_reserve.max(reserve);
        let guess = of_task_guess(operation, &name, &of_task, assumed);
        written.guessed_tasks += u64::from(guess.blind);
        for job in &of_task {
            rows.push(Value::List(vec![
                name.as_str().into(),
                of_running(guess, job.age).into(),
                reserve.into(),
                cpu.into(),
            ]));
            now.push(Value::Map(yson::map! {
                "task" => name.as_str(),
                "node" => job.node.as_str(),
                "tree" => job.tree.as_str(),
                "ran_ms" => job.age.as_millis(),
                "cpu" => job.cpu,
                "memory" => job.memory,
            }));
        }
        let own = spec.get("tasks").and_then(|tasks| tasks.get(&name));
        let says = |key: &str| own.or_else(|| spec.get(&name)).and_then(|task| task.get(key));
        written.running_jobs += of_task.len() as u64;
        written.pending_jobs += left - of_task.len() as u64;
        tasks.push(Value::Map(yson::map! {
            "name" => name.as_str(),
            "job_count" => left,
            "cpu" => cpu,
            "memory" => memory,
            "gpu" => gpu,
            "duration" => guess.ms,
            "memory_usage" => reserve,
            "restart_completed_jobs" => says("restart_completed_jobs").and_then(Value::as_bool).unwrap_or(false),
            "interruptible" => says("interruption_signal").is_some(),
            "gang" => says("gang_options").is_some(),
        }));
    }
    if tasks.is_empty() {
        return None;
    }
    written.operations += 1;
    let mut kept: Map =
        ROOT_OPTIONS.iter().filter_map(|name| Some((*name, spec.get(name)?.clone()))).collect();
    // What the cluster has learned is where the simulated digests begin.
    kept.insert("user_job_memory_digest_default_value", default_reserve);
    place(attributes, &mut kept);
    let user = attributes.get("authenticated_user").and_then(Value::as_str).unwrap_or("root");
    Some(yson::map! {
        "id" => id,
        "at" => 0i64,
        "user" => user,
        "spec" => kept,
        "tasks" => tasks,
        "jobs" => rows,
        "running" => now,
    })
}

fn of_task_guess(
    operation: &Operation,
    task: &str,
    running: &[&Running],
    assumed: &Assumptions,
) -> durations::Guess {
    of_task(operation, task, running.iter().map(|job| job.age).max(), assumed.job_duration)
}

/// Trees and pools where it is now, with what was changed since its start.
fn place(attributes: &Map, spec: &mut Map) {
    let parameters = attributes.get("runtime_parameters");
    let trees = parameters.and_then(|p| p.get("scheduling_options_per_pool_tree")).and_then(Value::as_map);
    let Some(trees) = trees else { return };
    let names: Vec<String> =
        trees.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
    let own = |options: &Value| {
        let kept = ["pool", "weight", "resource_limits"];
        let said = kept.iter().filter_map(|name| Some((*name, options.get(name)?.clone())));
        let said = said.filter(|(_, value)| value.as_map().is_none_or(|map| !map.is_empty()));
        Value::Map(said.collect::<Map>())
    };
    let options: Map = trees.iter().map(|(name, options)| (name, own(options))).collect();
    spec.insert("pool_trees", names);
    spec.insert("scheduling_options_per_pool_tree", options);
}
