//! What is shown of operations and jobs: `get_operation`, `list_operations`, `list_jobs`, `get_job`.

use crate::access::Object;
use crate::command::{AccessFilter, ListJobs, ListOperations};
use crate::jobs::no_such_job;
use crate::operation::{ATTRIBUTES, Operation, no_such_attribute};
use crate::records::event_value;
use crate::summary::{self, Listed};
use crate::{Body, Kernel, OperationRef, OperationRow, StderrPlace};
use cypress::Permission;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use vocab::{Failure, JobId, JobState, OperationId, Resources, Time, code};
use yson::write::{Style, write_row};
use yson::{Map, Value};

/// Attributes of `list_operations` when none are asked for (http-api.md 8.5).
pub(crate) const LISTED: &[&str] = &[
    "authenticated_user",
    "brief_progress",
    "brief_spec",
    "experiment_assignment_names",
    "finish_time",
    "id",
    "type",
    "runtime_parameters",
    "start_time",
    "state",
    "suspended",
];

impl Kernel {
    pub(crate) fn get_operation(
        &self,
        now: Time,
        operation: &OperationRef,
        attributes: Option<Vec<String>>,
    ) -> Result<Body, Failure> {
        // An empty list of attributes is what clients send for "all".
        let attributes = attributes.filter(|a| !a.is_empty());
        if let Some(unknown) = attributes.iter().flatten().find(|a| !ATTRIBUTES.contains(&a.as_str())) {
            return Err(no_such_attribute(unknown));
        }
        let id = self.find_operation(operation)?;
        match self.operations.get(&id) {
            Some(operation) => {
                Ok(Body::Value(self.operation_attributes(now, operation, attributes.as_deref()).into()))
            }
            None => {
                let node = Map::new();
                Ok(Body::ArchivedOperation { id, node, attributes, steps: Vec::new() })
            }
        }
    }

    pub(crate) fn list_operations(&self, now: Time, mut query: ListOperations) -> Result<Body, Failure> {
        let attributes = query.attributes.take().filter(|a| !a.is_empty());
        if let Some(unknown) = attributes.iter().flatten().find(|a| !ATTRIBUTES.contains(&a.as_str())) {
            return Err(no_such_attribute(unknown));
        }
        let mut wanted = attributes.unwrap_or_else(|| LISTED.iter().map(|name| (*name).to_owned()).collect());
        for always in ["id", "start_time"] {
            if !wanted.iter().any(|w| w == always) {
                wanted.push(always.to_owned());
            }
        }
        // The times beside the operations: those are all over the memory, and this is sorted with every list.
        let mut live: Vec<_> = self.operations.values().map(|o| (Reverse((o.start_time, o.id)), o)).collect();
        live.sort_unstable_by_key(|(newest, _)| *newest);
        let live = live.into_iter().map(|(_, operation)| Listed::Live(operation));
        let merged = merge_newest_first(live, self.finished.newest_first().map(Listed::Finished));
        let may_access = self.access_filter(query.access.as_ref())?;
        let page = summary::list(merged, &query, may_access)?;
        let rows = page
            .ids
            .into_iter()
            .map(|id| match self.operations.get(&id) {
                Some(operation) => {
                    OperationRow::Live(self.operation_attributes(now, operation, Some(&wanted)))
                }
                None => OperationRow::Archived(id),
            })
            .collect();
        Ok(Body::OperationList { rows, attributes: Some(wanted), rest: page.rest })
    }

    /// Does an operation pass the filter `access`? Most have one of a few lists, so each is read once.
    fn access_filter<'a>(
        &'a self,
        filter: Option<&AccessFilter>,
    ) -> Result<impl FnMut(Listed<'a>) -> bool, Failure> {
        let permissions: Vec<Permission> = match filter {
            None => Vec::new(),
            Some(filter) => {
                filter.permissions.iter().map(|name| Permission::parse(name)).collect::<Result<_, _>>()?
            }
        };
        let who = filter.map(|filter| self.who(&filter.subject));
        // Those of finished operations are known by where they are: looking into a hundred thousand of them takes
        // several times as long as the rest.
        let mut at: FxHashMap<[*const Value; 2], bool> = FxHashMap::default();
        // Users choose the lists: in a hash table without a seed they could let all of them collide.
        let mut known: BTreeMap<Vec<u8>, bool> = BTreeMap::new();
        Ok(move |listed: Listed<'a>| {
            let Some(who) = &who else { return true };
            let (acl, owners) = listed.access_lists();
            *at.entry([acl.as_ptr(), owners.as_ptr()]).or_insert_with(|| {
                let mut lists = Vec::new();
                for list in [acl, owners] {
                    list.iter().for_each(|item| write_row(item, Style::Binary, &mut lists));
                    lists.push(b'|');
                }
                *known.entry(lists).or_insert_with(|| {
                    let object = Object::Operation(listed.id());
                    permissions.iter().all(|p| self.decision(who, *p, &object).is_allowed())
                })
            })
        })
    }

    /// `list_operation_events`: transitions of its state.
    pub(crate) fn list_operation_events(
        &self,
        operation: &OperationRef,
        query: EventsOfOperation,
    ) -> Result<Body, Failure> {
        let id = self.find_operation(operation)?;
        Ok(match self.operations.get(&id) {
            Some(operation) => {
                let events: Vec<Value> = operation.events.iter().map(event_value).collect();
                Body::Value(query.of(&events))
            }
            None => Body::ArchivedEvents { id, query },
        })
    }

    /// Attributes of an unfinished operation, or of one that is just being archived.
    pub(crate) fn operation_attributes(&self, now: Time, o: &Operation, wanted: Option<&[String]>) -> Map {
        let names = ATTRIBUTES.iter().filter(|name| wanted.is_none_or(|w| w.iter().any(|x| x == *name)));
        names.filter_map(|name| Some((*name, self.operation_attribute(now, o, name)?))).collect()
    }

    fn operation_attribute(&self, now: Time, o: &Operation, name: &str) -> Option<Value> {
        Some(match name {
            "id" => o.id.into(),
            "type" | "operation_type" => o.operation_type.into(),
            "state" => o.state.into(),
            "authenticated_user" => o.user.as_str().into(),
            "start_time" => o.start_time.into(),
            "finish_time" => o.finish_time?.into(),
            "suspended" => o.suspended.into(),
            "spec" | "provided_spec" => o.spec.provided.clone().into(),
            "full_spec" => self.full_spec(o).into(),
            "unrecognized_spec" => o.spec.unrecognized.clone().into(),
            "brief_spec" => o.spec.brief.clone().into(),
            "runtime_parameters" => o.runtime_parameters().into(),
            "brief_progress" => o.controller.brief_progress(now, o.state).into(),
            "progress" => {
                let mut progress = o.controller.progress(now, o.state);
                if !o.state.is_finished() {
                    progress.insert("scheduling_info_per_pool_tree", self.scheduling_info(o.id));
                    let waits = self.lease_waits(o.id);
                    if !waits.is_empty() {
                        progress
                            .insert("lease_waits", waits.into_iter().map(Value::from).collect::<Vec<_>>());
                    }
                }
                progress.into()
            }
            "result" => o.result_map()?.into(),
            "alerts" => o.alerts.to_map().into(),
            "alert_events" => o.alerts.events_to_value().into(),
            "experiment_assignments" | "experiment_assignment_names" => Vec::<Value>::new().into(),
            "events" => o.events.iter().map(event_value).collect::<Vec<_>>().into(),
            "slot_index_per_pool_tree" => {
                o.trees.iter().map(|t| (t.tree.as_str(), i64::from(t.slot_index))).collect::<Map>().into()
            }
            "scheduling_attributes_per_pool_tree" => self.scheduling_attributes(o).into(),
            "task_names" => o.controller.task_names().collect::<Vec<_>>().into(),
            "has_failed_jobs" => (o.controller.failed_job_count() > 0).into(),
            "memory_usage" => 0i64.into(),
            "controller_features" => Map::new().into(),
            "controller_agent_address" => self.config.address.as_str().into(),
            _ => return None,
        })
    }

    /// With what the spec leaves to the scheduler.
    fn full_spec(&self, o: &Operation) -> Map {
        let existence = "require_specified_pools_existence";
        let said = o.spec.spec.scheduling.require_specified_pools_existence;
        let in_force = said.unwrap_or(self.scheduler.config().require_specified_operation_pools_existence);
        o.spec.full.clone().with(existence, in_force)
    }

    fn scheduling_info(&self, id: OperationId) -> Map {
        let snapshot = self.scheduler.snapshot();
        snapshot.trees().filter_map(|t| Some((&*t.name, t.operation_attributes(id, None)?))).collect()
    }

    fn scheduling_attributes(&self, o: &Operation) -> Map {
        let snapshot = self.scheduler.snapshot();
        let one = |t: &crate::operation::InTree| {
            let tree = snapshot.tree(&t.tree);
            let flag = |map: Option<Map>, name: &str| {
                map.and_then(|m| m.get(name).and_then(Value::as_bool)).unwrap_or(false)
            };
            let in_tree = tree.and_then(|tree| tree.operation_attributes(o.id, Some(&["lightweight"])));
            let pool = tree.and_then(|tree| tree.pool_attributes(&t.pool, Some(&["is_ephemeral"])));
            yson::map! {
                "slot_index" => i64::from(t.slot_index),
                "running_in_ephemeral_pool" => flag(pool, "is_ephemeral"),
                "running_in_lightweight_pool" => flag(in_tree, "lightweight"),
            }
        };
        o.trees.iter().map(|t| (t.tree.as_str(), one(t))).collect()
    }

    pub(crate) fn list_jobs(&self, now: Time, query: Box<ListJobs>) -> Result<Body, Failure> {
        let Some(operation) = &query.operation else {
            return Err(Failure::new("Either \"operation_id\" or \"operation_alias\" is required"));
        };
        let operation_id = self.find_operation(operation)?;
        let live = match self.operations.get(&operation_id) {
            Some(operation) => operation
                .controller
                .running_jobs()
                .map(|view| self.job_fields(now, operation, view, false))
                .collect(),
            None => Vec::new(),
        };
        Ok(Body::JobList { operation_id, live, query })
    }

    pub(crate) fn get_job(
        &self,
        now: Time,
        operation: Option<OperationRef>,
        job_id: JobId,
        attributes: Option<Vec<String>>,
    ) -> Result<Body, Failure> {
        let operation_id = match &operation {
            Some(reference) => Some(self.find_operation(reference)?),
            None => self.jobs.get(job_id).map(|job| job.operation),
        };
        let live = operation_id
            .and_then(|id| self.operations.get(&id))
            .and_then(|o| Some(self.job_fields(now, o, o.controller.job(job_id)?, true)));
        if operation_id.is_none() {
            return Err(no_such_job(job_id));
        }
        let attributes = attributes.filter(|a| !a.is_empty());
        Ok(Body::Job { operation_id, operation, job_id, live, attributes })
    }

    pub(crate) fn get_job_stderr(
        &self,
        operation: Option<OperationRef>,
        job_id: JobId,
        limit: Option<u64>,
        offset: Option<u64>,
    ) -> Result<Body, Failure> {
        let operation_id = self.operation_of_job(operation.as_ref(), job_id)?;
        let at = |address: &str, began: bool| {
            let key = self.nodes.get(address).and_then(|node| node.key);
            StderrPlace::Node { key, began }
        };
        let view = self.operations.get(&operation_id).and_then(|o| o.controller.job(job_id));
        // Of this operation: whoever may read another one's has not asked for that.
        let owed = self.owed.get(job_id).filter(|record| record.identity.operation_id == operation_id);
        let place = match (view, owed) {
            (Some(view), _) => {
                at(view.address(), view.state() == JobState::Running || view.stderr_size() > 0)
            }
            (None, Some(record)) => {
                at(&record.address, record.exec_start_time.is_some() || record.stderr_size > 0)
            }
            (None, None) => StderrPlace::Archive,
        };
        Ok(Body::Stderr { operation_id: Some(operation_id), job_id, place, limit, offset })
    }

    pub(crate) fn get_job_fail_context(
        &self,
        operation: Option<OperationRef>,
        job_id: JobId,
    ) -> Result<Body, Failure> {
        let operation_id = self.operation_of_job(operation.as_ref(), job_id)?;
        if self.jobs.get(job_id).is_some() {
            return Err(no_fail_context(operation_id, job_id));
        }
        Ok(Body::FailContext { operation_id, job_id })
    }

    /// The operation that was named, or that of a job that runs. A running job of another one is not found.
    pub(crate) fn operation_of_job(
        &self,
        operation: Option<&OperationRef>,
        job_id: JobId,
    ) -> Result<OperationId, Failure> {
        let running = self.jobs.get(job_id).map(|job| job.operation);
        let named = operation.map(|reference| self.find_operation(reference)).transpose()?;
        match named.or(running) {
            Some(id) if running.is_none_or(|running| running == id) => Ok(id),
            _ => Err(no_such_job(job_id)),
        }
    }

    fn job_fields(&self, now: Time, o: &Operation, view: controller::JobView<'_>, all: bool) -> Map {
        let mut map = view.to_value().with("brief_statistics", view.brief_statistics(now));
        if let Some(job) = self.jobs.get(view.identity().job_id) {
            map.insert("pool", job.pool.as_str());
        }
        if all {
            map.insert("job_id", view.identity().job_id);
            map.insert("statistics", view.statistics(now));
            let usage = self.scheduler.allocation(view.identity().allocation_id).map(|a| a.resource_usage);
            map.insert("resource_usage", usage.unwrap_or(Resources::ZERO).to_value());
        }
        debug_assert_eq!(view.identity().operation_id, o.id, "a view of another operation's job");
        map
    }
}

/// A job that runs, or that did not fail; one that has failed and had not read anything, or of so many that it was
/// not kept of this one.
pub fn no_fail_context(operation: OperationId, job_id: JobId) -> Failure {
    Failure::coded(code::NO_SUCH_JOB, format!("Job {job_id} has no fail context"))
        .with("job_id", job_id)
        .with("operation_id", operation)
}

/// Is all of this in the records of finished operations that are made for lists?
pub fn is_listed(attributes: Option<&[String]>) -> bool {
    attributes.is_some_and(|wanted| wanted.iter().all(|name| LISTED.contains(&name.as_str())))
}

/// Which events of an operation are asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventsOfOperation {
    /// Only of this type.
    pub event_type: Option<String>,
    /// At most so many, oldest first.
    pub limit: Option<usize>,
}

/// The only type of events there is so far.
const STATE_CHANGED: &str = "state_changed";

impl EventsOfOperation {
    /// The answer, of the attribute `events`.
    pub fn of(&self, events: &[Value]) -> Value {
        if self.event_type.as_deref().is_some_and(|wanted| wanted != STATE_CHANGED) {
            return Vec::<Value>::new().into();
        }
        let listed = events.iter().take(self.limit.unwrap_or(usize::MAX)).map(|event| {
            let part = |name: &str| event.get(name).cloned().unwrap_or_default();
            let attributes = event.get("attributes").and_then(Value::as_map).cloned().unwrap_or_default();
            let known = yson::map! {
                "timestamp" => part("time"), "event_type" => STATE_CHANGED, "state" => part("state"),
            };
            Value::from(known.into_iter().chain(attributes).collect::<Map>())
        });
        listed.collect::<Vec<Value>>().into()
    }
}

/// Two sequences that are newest first, as one.
fn merge_newest_first<'a>(
    a: impl Iterator<Item = Listed<'a>>,
    b: impl Iterator<Item = Listed<'a>>,
) -> impl Iterator<Item = Listed<'a>> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    let newness = |listed: &Listed<'_>| (listed.start_time(), listed.id());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(x), Some(y)) if newness(x) < newness(y) => b.next(),
        (Some(_), _) => a.next(),
        (None, _) => b.next(),
    })
}
