//! Operation specs: what users write, typed; and the forms in which it is shown.
//!
//! Start at [`parse`]. Every option of jobs-and-nodes.md 8.1-8.3 and scheduling.md 18.4 is known
//! here, with its default, range and aliases, even if its effect lives elsewhere.

mod reader;

mod files;
mod map;
mod memory;
mod merge;
mod old_names;
mod rewrite;
mod root;
mod scheduling;
mod script;
mod speculation;
mod task;

pub use files::{FileRequest, is_variable_name};
pub use map::MapSpec;
pub use memory::{CpuMonitorOptions, MemoryOptions, ProxyDigestOptions};
pub use merge::{MergeMode, MergeSpec, SchemaInference};
pub use old_names::with_plain_names;
pub use root::{RootOptions, annotations_size};
pub use scheduling::{PreemptionMode, ResourceLimits, SchedulingOptions, TreeOptions};
pub use script::UserScript;
pub use speculation::Speculation;
pub use task::TaskSpec;

use crate::options::ControllerOptions;
use merge::MAX_TABLES;
use reader::{Reader, child_path, expected, refuse_at};
use std::collections::BTreeMap;
use vocab::{Failure, OperationType};
use yson::ypath::YPath;
use yson::{Map, Value};

/// A spec, typed: what the controller works with.
#[derive(Clone, PartialEq, Debug)]
pub struct OperationSpec {
    /// Vanilla, map, merge or erase.
    pub operation_type: OperationType,
    /// Options of the whole operation.
    pub root: RootOptions,
    /// Tasks, in the order of the spec; a task's number is its place here. A merge without jobs has none.
    pub tasks: Vec<TaskSpec>,
    /// What a merge is to do. It has jobs if it has a map, too, but a sorted one needs none if its tables lie apart by
    /// keys and nothing must be written anew.
    pub merge: Option<MergeSpec>,
    /// The tables of a map, whose only task is its mapper, and of what is done like one.
    pub map: Option<MapSpec>,
    /// For the scheduler.
    pub scheduling: SchedulingOptions,
}

/// A typed spec and its public forms (http-api.md 9.1). None of them holds the secure vault.
#[derive(Clone, PartialEq, Debug)]
pub struct ParsedSpec {
    /// Typed.
    pub spec: OperationSpec,
    /// As given: attributes `spec` and `provided_spec`.
    pub provided: Map,
    /// Every known option with its effective value, canonical names: `full_spec`.
    pub full: Map,
    /// What nobody understood, same nesting: `unrecognized_spec`.
    pub unrecognized: Map,
    /// Short form: `brief_spec`.
    pub brief: Map,
}

/// Parses and checks a spec. The first error is returned: code 1, naming the option by its path.
pub fn parse(
    operation_type: OperationType,
    spec: &Map,
    options: &ControllerOptions,
) -> Result<ParsedSpec, Failure> {
    use OperationType::{Erase, Map as MapType, Merge, Vanilla};
    if !matches!(operation_type, Vanilla | MapType | Merge | Erase) {
        return Err(Failure::new(format!(
            "Operation type {operation_type:?} is not supported: only \"vanilla\", \"map\", \"merge\" and \"erase\" operations can be started",
            operation_type = operation_type.as_str()
        ))
        .with("operation_type", operation_type.as_str()));
    }
    let mut r = Reader::new(spec, "");
    let root = RootOptions::read(&mut r, options)?;
    let scheduling = SchedulingOptions::read(&mut r)?;
    for (name, count) in scheduling.name_counts() {
        r.check_count(name, count)?;
    }
    let (mut tasks, merge, map) = match operation_type {
        Merge => {
            let merge = MergeSpec::read(&mut r)?;
            let cutting = map::read_cutting(&mut r, options.max_total_job_count)?;
            match rewrite::of_merge(&merge, cutting, &root)? {
                Some((map, task)) => (vec![task], Some(merge), Some(map)),
                None => (Vec::new(), Some(merge), None),
            }
        }
        MapType => {
            let (map, task) = MapSpec::read(&mut r, &root, options.max_total_job_count)?;
            (vec![task], None, Some(map))
        }
        Erase => {
            let (map, task) = rewrite::read_erase(&mut r, &root, options.max_total_job_count)?;
            (vec![task], None, Some(map))
        }
        _ => (read_tasks(&mut r, &root, options)?, None, None),
    };
    check_gangs(&root, &tasks)?;
    set_exclusive(&mut r, operation_type, &root, &mut tasks)?;
    check_files(&tasks, options)?;
    let (full, unrecognized) = r.finish();
    let mut provided = spec.clone();
    provided.remove("secure_vault");
    let brief = brief(operation_type, (&root, &scheduling), &tasks, (merge.as_ref(), map.as_ref()));
    Ok(ParsedSpec {
        spec: OperationSpec { operation_type, root, tasks, merge, map, scheduling },
        provided,
        full,
        unrecognized,
        brief,
    })
}

fn read_tasks(
    r: &mut Reader<'_>,
    root: &RootOptions,
    options: &ControllerOptions,
) -> Result<Vec<TaskSpec>, Failure> {
    let map = r.raw("tasks")?;
    if map.is_none() {
        return Err(Failure::new("Missing required option /tasks of the spec").with("path", "/tasks"));
    }
    let (max_tasks, max_jobs) = (options.max_task_count, options.max_total_job_count);
    // Before they are read: a hundred thousand of them would hold up everybody (S13; jobs-and-nodes.md 6.12).
    let count = map.and_then(Value::as_map).map_or(0, Map::len);
    check_task_count(count, max_tasks)?;
    let tasks = r.section("tasks", |r| {
        let mut tasks = Vec::new();
        for (name, value) in r.entries() {
            if name.is_empty() {
                return Err(refuse_at("/tasks", "the name of a task must not be empty"));
            }
            let path = r.path_of(&name);
            let map = value.as_map().ok_or_else(|| refuse_at(&path, expected("map", value)))?;
            let mut inner = Reader::new(map, path);
            tasks.push(TaskSpec::read(&mut inner, &name, root, max_jobs)?);
            r.keep(&name, inner);
        }
        Ok(tasks)
    })?;
    if tasks.is_empty() {
        return Err(refuse_at("/tasks", "expected at least one task"));
    }
    check_total_job_count(&tasks, max_jobs)?;
    check_shared_outputs(&tasks)?;
    Ok(tasks)
}

/// The same path in two tasks must have equal attributes (jobs-and-nodes.md 6.12).
fn check_shared_outputs(tasks: &[TaskSpec]) -> Result<(), Failure> {
    let mut seen: BTreeMap<String, &YPath> = BTreeMap::new();
    for task in tasks {
        for path in &task.outputs {
            match seen.get(&path.text()) {
                Some(other) if *other != path => {
                    let at = child_path("/tasks", task.name.as_bytes()) + "/output_table_paths";
                    let path = path.to_value();
                    let why = format!("path {path:?} has other attributes in another task");
                    return Err(refuse_at(&at, why));
                }
                Some(_) => {}
                None => drop(seen.insert(path.text(), path)),
            }
        }
    }
    if seen.len() > MAX_TABLES {
        let why = format!(
            "at most {MAX_TABLES} output tables are allowed in all tasks together, found {}",
            seen.len()
        );
        return Err(refuse_at("/tasks", why).with("limit", MAX_TABLES));
    }
    Ok(())
}

/// Work whose results are committed once by a transaction may run twice at once, and so may a task whose owner asks for
/// copies of its slow jobs. All other work is exclusive, unless the spec says otherwise (S19).
fn set_exclusive(
    r: &mut Reader<'_>,
    operation_type: OperationType,
    root: &RootOptions,
    tasks: &mut [TaskSpec],
) -> Result<(), Failure> {
    let by_type = operation_type != OperationType::Vanilla && !root.try_avoid_duplicating_jobs;
    let concurrent = root.allow_concurrent_attempts.unwrap_or(by_type);
    r.show_effective("allow_concurrent_attempts", concurrent);
    let is_vanilla = operation_type == OperationType::Vanilla;
    for task in tasks {
        if root.allow_concurrent_attempts == Some(false) && task.speculation.is_some() {
            if is_vanilla {
                let at = child_path("/tasks", task.name.as_bytes()) + "/enable_speculative_jobs";
                let why = "expected %false, or \"allow_concurrent_attempts\" of the spec %true or left out, found %true with \
                           allow_concurrent_attempts=%false";
                return Err(refuse_at(&at, why));
            }
            task.speculation = None;
        }
        task.exclusive = !concurrent && task.speculation.is_none();
    }
    Ok(())
}

/// Each file is looked up when the operation starts.
fn check_files(tasks: &[TaskSpec], options: &ControllerOptions) -> Result<(), Failure> {
    let mut total = 0;
    for task in tasks {
        let count = task.script.files.len();
        total += count;
        if count > options.max_user_file_count {
            let limit = options.max_user_file_count;
            let why = format!(
                "maximum number of files and layers of a task is {limit} (max_user_file_count), found {count}"
            );
            let at = child_path("/tasks", task.name.as_bytes()) + "/file_paths";
            return Err(refuse_at(&at, why).with("max_user_file_count", limit));
        }
    }
    if total > options.max_total_user_file_count {
        let limit = options.max_total_user_file_count;
        let why = format!(
            "maximum number of files and layers of all tasks is {limit} (max_total_user_file_count), found {total}"
        );
        return Err(refuse_at("/tasks", why).with("max_total_user_file_count", limit));
    }
    Ok(())
}

/// Refuses a specification that was read by larger limits than those in force.
pub fn check_limits(parsed: &mut ParsedSpec, options: &ControllerOptions) -> Result<(), Failure> {
    let spec = &parsed.spec;
    if let Some(title) = spec.root.title.as_ref().filter(|title| title.len() > options.max_title_length) {
        return Err(refuse_at("/title", root::too_long_title(title, options.max_title_length)));
    }
    let size = annotations_size(&spec.root.annotations, options.max_annotations_size);
    if size > options.max_annotations_size {
        return Err(refuse_at(
            "/annotations",
            root::too_large_annotations(size, options.max_annotations_size),
        ));
    }
    // In the order in which they are read.
    cut_within_limits(parsed, options)?;
    let spec = &parsed.spec;
    let (max_tasks, max_jobs) = (options.max_task_count, options.max_total_job_count);
    check_task_count(spec.tasks.len(), max_tasks)?;
    if let Some(task) = spec.tasks.iter().find(|task| task.job_count.max(task.expected_job_count) > max_jobs)
    {
        let at = child_path("/tasks", task.name.as_bytes()) + "/job_count";
        let found = task.job_count.max(task.expected_job_count);
        let why = format!("maximum total job count is {max_jobs}, found {found}");
        return Err(refuse_at(&at, why).with("max_total_job_count", i64::from(max_jobs)));
    }
    check_total_job_count(&spec.tasks, max_jobs)?;
    check_files(&spec.tasks, options)
}

/// Reads the options by which the rows of tables are cut into jobs once more: their limits and defaults are those in force.
fn cut_within_limits(parsed: &mut ParsedSpec, options: &ControllerOptions) -> Result<(), Failure> {
    if parsed.spec.map.is_none() && parsed.spec.merge.is_none() {
        return Ok(());
    }
    let given =
        parsed.provided.iter().filter(|(name, _)| map::CUTTING.iter().any(|of| of.as_bytes() == *name));
    let given: Map = given.map(|(name, value)| (name, value.clone())).collect();
    let mut r = Reader::new(&given, "");
    let cutting = map::read_cutting(&mut r, options.max_total_job_count)?;
    for (name, value) in r.finish().0 {
        parsed.full.insert(name, value);
    }
    if let Some(map) = &mut parsed.spec.map {
        map.cutting = cutting;
    }
    Ok(())
}

/// Another value of the option `max_failed_job_count`. The rest of the spec, which may be large, is not read again.
pub fn set_max_failed_job_count(
    parsed: &mut ParsedSpec,
    value: &Value,
    options: &ControllerOptions,
) -> Result<(), Failure> {
    const NAME: &str = "max_failed_job_count";
    let given = Map::new().with(NAME, value.clone());
    let mut r = Reader::new(&given, "");
    let limit = RootOptions::read(&mut r, options)?.max_failed_job_count;
    let read = r.finish().0.remove(NAME);
    parsed.spec.root.max_failed_job_count = limit;
    parsed.provided.insert(NAME, value.clone());
    if let Some(read) = read {
        parsed.full.insert(NAME, read);
    }
    Ok(())
}

fn check_task_count(count: usize, max_tasks: usize) -> Result<(), Failure> {
    if count <= max_tasks {
        return Ok(());
    }
    let why = format!("maximum number of tasks is {max_tasks}, found {count}");
    Err(refuse_at("/tasks", why).with("max_task_count", max_tasks))
}

fn check_total_job_count(tasks: &[TaskSpec], max_jobs: u32) -> Result<(), Failure> {
    let total: u64 = tasks.iter().map(|t| u64::from(t.job_count)).sum();
    if total <= u64::from(max_jobs) {
        return Ok(());
    }
    let why = format!("maximum total job count is {max_jobs}, found {total}");
    Err(refuse_at("/tasks", why).with("max_total_job_count", i64::from(max_jobs)))
}

fn check_gangs(root: &RootOptions, tasks: &[TaskSpec]) -> Result<(), Failure> {
    match tasks.iter().find(|t| t.gang_size.is_some()) {
        Some(task) if root.fail_on_job_restart => {
            let at = child_path("/tasks", task.name.as_bytes()) + "/gang_options";
            Err(refuse_at(&at, "it excludes \"fail_on_job_restart\""))
        }
        _ => Ok(()),
    }
}

/// Paths are cut to the first (http-api.md 9.1).
fn brief_paths(paths: &[YPath]) -> Value {
    let first: Vec<Value> = paths.iter().take(1).map(|path| path.to_value()).collect();
    Value::List(first).with_attributes(yson::map! {"count" => paths.len()})
}

fn brief(
    operation_type: OperationType,
    (root, scheduling): (&RootOptions, &SchedulingOptions),
    tasks: &[TaskSpec],
    (merge, map): (Option<&MergeSpec>, Option<&MapSpec>),
) -> Map {
    let scripts: Map = tasks
        .iter()
        .map(|t| {
            let count = map.is_none().then_some(i64::from(t.job_count));
            let script = yson::map! {"command" => t.script.command.as_str()}.with_some("job_count", count);
            (t.name.as_str(), script)
        })
        .collect();
    let is_map = operation_type == OperationType::Map;
    let mapper = scripts.iter().next().map(|(_, script)| script.clone()).filter(|_| is_map);
    let inputs = merge.map(|m| &m.inputs).or(map.map(|m| &m.inputs));
    let outputs = merge
        .map(|m| std::slice::from_ref(&m.output))
        .or(map.and(tasks.first()).map(|task| task.outputs.as_slice()));
    Map::new()
        .with_some("title", root.title.as_deref())
        .with_some("alias", root.alias.as_deref())
        .with_some("pool", scheduling.pool.as_deref())
        .with_some("tasks", (merge.is_none() && map.is_none()).then_some(scripts))
        .with_some("mapper", mapper)
        .with_some("input_table_paths", inputs.map(|paths| brief_paths(paths)))
        .with_some("output_table_paths", outputs.map(brief_paths))
}
