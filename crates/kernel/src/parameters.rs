//! `update_operation_parameters` (http-api.md 8.5): all or nothing, visible at once.

use crate::operation::Operation;
use crate::operations::acl;
use crate::{Effect, Kernel, OperationRef};
use controller::spec::annotations_size;
use scheduler::config::{MAX_WEIGHT, MIN_WEIGHT};
use scheduler::{Amounts, RuntimeParameters};
use vocab::{AbortReason, Failure, OperationState, RESOURCES, Resource, Time, code};
use yson::{Map, Value};

/// A change of the operation in one tree.
#[derive(Clone, Default)]
struct TreeChange {
    pool: Option<String>,
    weight: Option<f64>,
    resource_limits: Option<Map>,
}

impl Kernel {
    pub(crate) fn update_operation_parameters(
        &mut self,
        now: Time,
        user: &str,
        operation: &OperationRef,
        parameters: &Map,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let id = self.live_operation(operation)?;
        let Some(operation) = self.operations.get(&id) else { return Ok(()) };
        if matches!(operation.state, OperationState::Materializing | OperationState::RevivingJobs) {
            let message = format!("Parameters cannot be changed in state \"{}\"", operation.state);
            return Err(Failure::coded(code::INVALID_OPERATION_STATE, message));
        }
        let limit = self.controller_options.max_annotations_size;
        let (trees, parsed) = Parsed::of(operation, parameters, limit)?;
        for (tree, change) in trees.iter().zip(&parsed.trees) {
            if let Some(pool) = &change.pool {
                self.demand_pool(user, tree, Some(pool))?;
            }
        }
        if let Some(acl) = &parsed.acl {
            let list = Value::List(acl.clone());
            self.tree
                .limits()
                .check_acl(&list)
                .and_then(|()| acl::check(&list))
                .map_err(|e| e.with("option", "acl"))?;
        }
        // Job counts are tried on a copy: if one is refused, nothing has changed.
        let mut controller = operation.controller.clone();
        let mut resized = controller::Resized::default();
        for (task, count) in &parsed.job_counts {
            let one = controller.set_job_count(now, task, *count)?;
            resized.jobs_to_abort.extend(one.jobs_to_abort);
            resized.operation_event = resized.operation_event.or(one.operation_event);
        }

        // The pool is what may be refused for reasons of others; with one tree (the usual case) it
        // is the first thing that changes, so an error leaves everything as it was.
        let mut moved = Vec::new();
        for (tree, change) in trees.iter().zip(&parsed.trees) {
            let Some(pool) = &change.pool else { continue };
            let before = self.operations.get(&id).and_then(|o| o.in_tree(tree)).map(|t| t.pool.clone());
            match self.scheduler.change_pool(id, tree, pool) {
                Ok(pool) => moved.push((tree.clone(), before, pool.to_string())),
                Err(failure) => {
                    for (tree, before, _) in moved {
                        if let Some(before) = before {
                            let _ = self.scheduler.change_pool(id, &tree, &before);
                        }
                    }
                    return Err(failure);
                }
            }
        }
        for (tree, change) in trees.iter().zip(&parsed.trees) {
            let Some(operation) = self.operations.get_mut(&id) else { continue };
            let filter = operation.spec.spec.scheduling.scheduling_tag_filter.clone();
            let Some(own) = operation.trees.iter_mut().find(|t| t.tree == *tree) else { continue };
            if let Some((_, _, pool)) = moved.iter().find(|(t, ..)| t == tree) {
                own.pool.clone_from(pool);
            }
            own.weight = change.weight.or(own.weight);
            if let Some(limits) = &change.resource_limits {
                own.resource_limits = limits.clone();
            }
            let parameters = RuntimeParameters {
                weight: own.weight,
                resource_limits: amounts(&own.resource_limits)?,
                scheduling_tag_filter: filter
                    .and_then(|text| scheduler::TagFilter::parse(&text).ok())
                    .unwrap_or_default(),
            };
            self.tell_scheduler(|s| s.set_parameters(id, tree, parameters));
        }
        if let Some(operation) = self.operations.get_mut(&id) {
            if let Some(acl) = parsed.acl {
                operation.acl = acl::whole(&operation.user, &operation.spec.spec.root, &acl);
            }
            if let Some(owners) = parsed.owners {
                operation.owners = owners;
            }
            if let Some(annotations) = parsed.annotations {
                operation.annotations = annotations;
            }
            if let Some(shells) = parsed.job_shells {
                operation.options_per_job_shell = shells;
            }
            operation.dirty = true;
            operation.controller = controller;
        }
        for job in resized.jobs_to_abort {
            self.order_abort(
                job,
                AbortReason::JobCountChangedByUserRequest,
                "The job is not wanted any more",
                out,
            );
        }
        self.pending_work.dirty.insert(id);
        self.pending_work.demand.insert(id);
        self.pending_work.update = true;
        self.pending_work.schedule = true;
        if let Some(event) = resized.operation_event {
            self.operation_event(now, id, event, out);
        }
        Ok(())
    }
}

impl Kernel {
    /// Would these be understood as parameters of that operation?
    pub(crate) fn read_parameters(&self, operation: &OperationRef, parameters: &Map) -> Result<(), Failure> {
        let id = self.live_operation(operation)?;
        let limit = self.controller_options.max_annotations_size;
        let read = |operation: &Operation| Parsed::of(operation, parameters, limit).map(drop);
        self.operations.get(&id).map_or(Ok(()), read)
    }
}

/// The parameters, checked.
struct Parsed {
    /// One for each tree of the operation.
    trees: Vec<TreeChange>,
    acl: Option<Vec<Value>>,
    owners: Option<Vec<Value>>,
    annotations: Option<Map>,
    job_shells: Option<Map>,
    job_counts: Vec<(String, i64)>,
}

const KNOWN: &str = "acl, annotations, options_per_job_shell, owners, pool, resource_limits, \
                     scheduling_options_per_pool_tree, tasks, weight";

impl Parsed {
    /// The trees of an operation, and its parameters; `limit` is that of the annotations.
    fn of(operation: &Operation, parameters: &Map, limit: usize) -> Result<(Vec<String>, Parsed), Failure> {
        let trees: Vec<String> = operation.trees.iter().map(|t| t.tree.clone()).collect();
        let parsed = Parsed::read(parameters, &trees, &operation.job_shell_names(), limit)?;
        Ok((trees, parsed))
    }

    /// For an operation in these trees whose jobs have these shells.
    fn read(
        parameters: &Map,
        trees: &[String],
        known_shells: &[&str],
        limit: usize,
    ) -> Result<Parsed, Failure> {
        let mut common = TreeChange::default();
        let mut out = Parsed {
            trees: Vec::new(),
            acl: None,
            owners: None,
            annotations: None,
            job_shells: None,
            job_counts: Vec::new(),
        };
        let mut per_tree = None;
        for (key, value) in parameters.iter() {
            let name = String::from_utf8_lossy(key).into_owned();
            if read_tree_option(&mut common, &name, value, &format!("/{name}"))? {
                continue;
            }
            match name.as_str() {
                "acl" => out.acl = Some(list(value, "/acl")?),
                "owners" => out.owners = Some(names(value, "/owners")?),
                "annotations" => out.annotations = Some(annotations(value, limit)?),
                "options_per_job_shell" => out.job_shells = Some(job_shells(value, known_shells)?),
                "scheduling_options_per_pool_tree" => {
                    per_tree = Some(map(value, "/scheduling_options_per_pool_tree")?);
                }
                "tasks" => {
                    for (task, options) in map(value, "/tasks")?.iter() {
                        let task = String::from_utf8_lossy(task).into_owned();
                        for (option, value) in map(options, &format!("/tasks/{task}"))?.iter() {
                            let count = value.as_i64().filter(|_| option == b"job_count");
                            let count = count.ok_or_else(|| {
                                let path = format!("/tasks/{task}/{}", String::from_utf8_lossy(option));
                                bad(&path, "only job_count of a task can be changed, to an int64", value)
                            })?;
                            out.job_counts.push((task.clone(), count));
                        }
                    }
                }
                other => {
                    let path = format!("/{other}");
                    return Err(bad(&path, &format!("unknown parameter, expected one of {KNOWN}"), value));
                }
            }
        }
        out.trees = vec![common; trees.len()];
        for (tree, options) in per_tree.into_iter().flat_map(Map::iter) {
            let tree = String::from_utf8_lossy(tree).into_owned();
            let path = format!("/scheduling_options_per_pool_tree/{tree}");
            let Some(place) = trees.iter().position(|t| *t == tree) else {
                return Err(bad(
                    &path,
                    &format!("expected a tree of the operation, one of {trees:?}"),
                    options,
                ));
            };
            for (option, value) in map(options, &path)?.iter() {
                let name = String::from_utf8_lossy(option).into_owned();
                let path = format!("{path}/{name}");
                let known = read_tree_option(&mut out.trees[place], &name, value, &path)?;
                if !known && name != "enable_detailed_logs" {
                    return Err(bad(&path, "expected one of pool, resource_limits, weight", value));
                }
            }
        }
        Ok(out)
    }
}

/// True if the option is one of a tree.
fn read_tree_option(change: &mut TreeChange, name: &str, value: &Value, path: &str) -> Result<bool, Failure> {
    match name {
        "pool" => {
            let pool = value.as_str().ok_or_else(|| bad(path, "expected a string", value))?;
            change.pool = Some(pool.to_owned());
        }
        "weight" => {
            let weight = value.as_f64().filter(|w| (MIN_WEIGHT..=MAX_WEIGHT).contains(w));
            change.weight = Some(weight.ok_or_else(|| {
                bad(path, &format!("expected a number from {MIN_WEIGHT:e} to {MAX_WEIGHT:e}"), value)
            })?);
        }
        "resource_limits" => {
            let limits = map(value, path)?;
            amounts_at(limits, path)?;
            change.resource_limits = Some(limits.clone());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Amounts of some resources, from what users write.
pub(crate) fn amounts(limits: &Map) -> Result<Amounts, Failure> {
    amounts_at(limits, "/resource_limits")
}

fn amounts_at(limits: &Map, path: &str) -> Result<Amounts, Failure> {
    let mut out = Amounts::default();
    for (key, value) in limits.iter() {
        let path = format!("{path}/{}", String::from_utf8_lossy(key));
        let r = Resource::parse(key).ok_or_else(|| {
            bad(&path, &format!("expected one of {:?}", RESOURCES.map(Resource::as_str)), value)
        })?;
        let raw = match r {
            Resource::Cpu => {
                value.as_f64().filter(|x| (0.0..=1e12).contains(x)).map(|x| vocab::Cpu::from_f64(x).0)
            }
            _ => value.as_i64().filter(|x| *x >= 0),
        };
        let allowed = match r {
            Resource::Cpu => "expected a number in 0..=1e12",
            _ => "expected an integer of at least 0",
        };
        out.set(r, Some(raw.ok_or_else(|| bad(&path, allowed, value))?));
    }
    Ok(out)
}

fn map<'a>(value: &'a Value, path: &str) -> Result<&'a Map, Failure> {
    value.as_map().ok_or_else(|| bad(path, "expected a map", value))
}

fn list(value: &Value, path: &str) -> Result<Vec<Value>, Failure> {
    value.as_list().map(<[Value]>::to_vec).ok_or_else(|| bad(path, "expected a list", value))
}

fn names(value: &Value, path: &str) -> Result<Vec<Value>, Failure> {
    let list = list(value, path)?;
    match list.iter().find(|name| name.as_str().is_none()) {
        None => Ok(list),
        Some(odd) => Err(bad(path, "expected a list of strings", odd)),
    }
}

/// As long as those of a start may be.
fn annotations(value: &Value, limit: usize) -> Result<Map, Failure> {
    let annotations = map(value, "/annotations")?;
    let size = annotations_size(annotations, limit);
    if size > limit {
        let message = format!(
            "Parameter /annotations: expected at most {limit} bytes of text YSON (max_annotations_size), found {size}"
        );
        return Err(Failure::new(message).with("path", "/annotations"));
    }
    Ok(annotations.clone())
}

/// `{<shell>={owners=[..]}}`: who may open a shell that the spec describes.
fn job_shells(value: &Value, known: &[&str]) -> Result<Map, Failure> {
    let shells = map(value, "/options_per_job_shell")?;
    for (shell, options) in shells.iter() {
        let path = format!("/options_per_job_shell/{}", String::from_utf8_lossy(shell));
        if !known.iter().any(|name| name.as_bytes() == shell) {
            return Err(bad(
                &path,
                &format!("expected one of the spec's \"job_shells\", {known:?}"),
                options,
            ));
        }
        for (option, value) in map(options, &path)?.iter() {
            let path = format!("{path}/{}", String::from_utf8_lossy(option));
            if option != b"owners" {
                return Err(bad(&path, "unknown option of a job shell, expected owners", value));
            }
            names(value, &path)?;
        }
    }
    Ok(shells.clone())
}

fn bad(path: &str, why: &str, value: &Value) -> Failure {
    Failure::new(format!("Parameter {path}: {why}, found {} {value:?}", value.type_name())).with("path", path)
}
