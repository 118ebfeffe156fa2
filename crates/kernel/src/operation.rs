//! One unfinished operation, as the kernel keeps it: the controller, the life cycle around it, and
//! what the tree shows of it.

use crate::alerts::Alerts;
use crate::operations::tables::WorkTables;
use crate::summary::Summary;
use controller::OperationController;
use controller::spec::ParsedSpec;
use cypress::{Hold, Payer};
use std::sync::Arc;
use vocab::{Artifact, Failure, ObjectId, OperationId, OperationState, OperationType, Span, Time};
use yson::{Map, Value};

/// See the module page.
pub(crate) struct Operation {
    pub id: OperationId,
    pub operation_type: OperationType,
    /// Lease of its exclusive jobs; `None` if it has no exclusive task. It never changes.
    pub lease: Option<Span>,
    /// Orders to start its jobs have had tickets from the first one on. False for operations that began under release 0.1.
    pub has_job_tickets: bool,
    pub user: String,
    /// The user's node at the start; `None` if the user had none. A later user of the same name is another one.
    pub user_id: Option<ObjectId>,
    /// Of the host, that its jobs run as.
    pub uid: u32,
    /// The transaction that it was started in, and does not outlive.
    pub user_transaction: Option<ObjectId>,
    pub start_time: Time,
    pub finish_time: Option<Time>,
    pub state: OperationState,
    pub suspended: bool,
    /// One per transition, oldest first.
    pub events: Vec<Event>,
    /// Those that the kernel raises, and what the controller has found at the last look.
    pub alerts: Alerts,
    pub spec: ParsedSpec,
    /// Without the provided form of the spec the secure vault would be lost in a restart.
    pub secure_vault: Option<Map>,
    pub controller: OperationController,
    /// Trees that it is in.
    pub trees: Vec<InTree>,
    /// Trees that it has left for good.
    pub erased_trees: Vec<String>,
    pub acl: Vec<Value>,
    pub owners: Vec<Value>,
    pub annotations: Map,
    /// Of each shell of the spec: what was changed at run time.
    pub options_per_job_shell: Map,
    /// How it ended.
    pub result: Option<Failure>,
    /// Contents of files that its jobs may still fetch.
    pub pinned: Vec<Pinned>,
    /// What its jobs read and write.
    pub tables: Option<WorkTables>,
    /// Since when no online node could hold one of its jobs.
    pub unsuitable_since: Option<Time>,
    /// The batch that has the static part of its record: what the operation leads to waits for it.
    pub spec_seq: Option<crate::Seq>,
    /// The changing part has changed.
    pub dirty: bool,
    /// Bytes that its finished jobs and their stderrs take in the archive.
    pub archived_bytes: u64,
    /// That number has changed.
    pub has_archived: bool,
}

/// The operation in one tree.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct InTree {
    pub tree: String,
    pub pool: String,
    pub weight: Option<f64>,
    /// As the user wrote them.
    pub resource_limits: Map,
    pub slot_index: u32,
    pub running: bool,
    pub tentative: bool,
}

/// A file of a task's jobs as it was when the operation was prepared. Its content must not go away,
/// or become another, while the operation lives: so this is durable, and the path is not looked at again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pinned {
    pub task: u32,
    pub artifact: Artifact,
    pub blob: u64,
    /// Is charged for the content when the file has it no more.
    pub payer: Arc<Payer>,
}

/// Is charged for contents that a user's operation needs and whose node is not known.
pub(crate) fn unknown_payer(user: &str) -> Payer {
    Payer { account: cypress::accounts::DEFAULT_ACCOUNT.to_owned(), owner: user.to_owned() }
}

/// A transition.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Event {
    pub time: Time,
    pub state: OperationState,
    pub attributes: Map,
}

impl Operation {
    /// Gives the controller the files of its tasks and keeps their contents.
    pub fn pin(&mut self, pinned: Vec<Pinned>) -> Result<(), Failure> {
        for chunk in pinned.chunk_by(|a, b| a.task == b.task) {
            let artifacts = chunk.iter().map(|p| p.artifact.clone()).collect();
            self.controller.set_artifacts(chunk[0].task, artifacts)?;
        }
        self.pinned = pinned;
        Ok(())
    }

    /// Contents of files and tables that must stay.
    pub fn holds(&self) -> impl Iterator<Item = Hold> {
        let of_file = |file: &Pinned| {
            let payer = Arc::clone(&file.payer);
            Hold { blob: file.blob, size: file.artifact.size, payer }
        };
        self.pinned.iter().map(of_file).chain(self.tables.iter().flat_map(WorkTables::holds))
    }

    /// Enters a state; every one is recorded.
    pub fn enter(&mut self, now: Time, state: OperationState) {
        self.state = state;
        self.events.push(Event { time: now, state, attributes: Map::new() });
        self.dirty = true;
    }

    pub fn alias(&self) -> Option<&str> {
        self.spec.spec.root.alias.as_deref()
    }

    pub fn has_failed_jobs(&self) -> bool {
        self.controller.failed_job_count() > 0
    }

    pub fn summary(&self) -> Summary {
        let mut search = String::new();
        for key in SEARCHED {
            if let Some(value) = self.spec.provided.get(key) {
                match value.as_str() {
                    Some(text) => search.push_str(&text.to_lowercase()),
                    None => search.push_str(&String::from_utf8_lossy(&yson::to_text(value)).to_lowercase()),
                }
                search.push('\n');
            }
        }
        Summary {
            id: self.id,
            start_time: self.start_time,
            finish_time: self.finish_time,
            user: self.user.clone(),
            operation_type: self.operation_type,
            state: self.state,
            alias: self.alias().map(str::to_owned),
            pools: self.trees.iter().map(|t| (t.tree.clone(), t.pool.clone())).collect(),
            has_failed_jobs: self.has_failed_jobs(),
            acl: self.acl.as_slice().into(),
            owners: self.owners.as_slice().into(),
            search,
            archived_bytes: self.archived_bytes,
            text: String::new(),
        }
        .complete()
    }

    /// `runtime_parameters` (http-api.md 9.1): what is in force now.
    pub fn runtime_parameters(&self) -> Map {
        let trees: Map = self
            .trees
            .iter()
            .map(|t| {
                let options = yson::map! {
                    "pool" => t.pool.as_str(),
                    "resource_limits" => t.resource_limits.clone(),
                    "tentative" => t.tentative,
                    "probing" => false,
                    "offloading" => false,
                }
                .with_some("weight", t.weight);
                (t.tree.as_str(), options)
            })
            .collect();
        yson::map! {
            "acl" => self.acl.clone(),
            "owners" => self.owners.clone(),
            "annotations" => self.annotations.clone(),
            "scheduling_options_per_pool_tree" => trees,
            "erased_trees" => self.erased_trees.iter().map(String::as_str).collect::<Vec<_>>(),
            "options_per_job_shell" => self.options_per_job_shell.clone(),
        }
        .with_some("scheduling_tag_filter", self.spec.spec.scheduling.scheduling_tag_filter.as_deref())
    }

    fn job_shells(&self) -> &[Value] {
        self.spec.provided.get("job_shells").and_then(Value::as_list).unwrap_or_default()
    }

    /// Names of the shells that the spec describes.
    pub fn job_shell_names(&self) -> Vec<&str> {
        self.job_shells().iter().filter_map(|shell| shell.get("name")?.as_str()).collect()
    }

    /// Who alone may open a shell of the spec, if it says so or was changed to say so.
    pub fn owners_of_shell(&self, name: &str) -> Option<&[Value]> {
        let described =
            self.job_shells().iter().find(|s| s.get("name").and_then(Value::as_str) == Some(name));
        let changed = self.options_per_job_shell.get(name).and_then(|options| options.get("owners"));
        changed.or_else(|| described?.get("owners"))?.as_list()
    }

    /// Raises an alert, or changes what one that is there says; false if nothing is new.
    pub fn raise_alert(&mut self, now: Time, name: &str, error: Failure) -> bool {
        let changed = self.alerts.raise(now, name, error);
        self.dirty |= changed;
        changed
    }

    /// Takes an alert away; false if there was none.
    pub fn clear_alert(&mut self, now: Time, name: &str) -> bool {
        let changed = self.alerts.clear(now, name);
        self.dirty |= changed;
        changed
    }

    /// `result` (http-api.md 9.5); absent before the end.
    pub fn result_map(&self) -> Option<Map> {
        if !self.state.is_finished() {
            return None;
        }
        let fine = || Failure::coded(vocab::code::OK, "");
        Some(yson::map! { "error" => self.result.clone().unwrap_or_else(fine).to_value() })
    }

    pub fn in_tree(&self, tree: &str) -> Option<&InTree> {
        self.trees.iter().find(|t| t.tree == tree)
    }
}

/// Options of a specification that the substring filter of `list_operations` looks into.
const SEARCHED: &[&str] = &[
    "title",
    "alias",
    "annotations",
    "description",
    "input_table_paths",
    "output_table_paths",
    "output_table_path",
];

/// Names of all attributes of operations (http-api.md 9.1), in the order in which they are shown.
pub(crate) const ATTRIBUTES: &[&str] = &[
    "id",
    "type",
    "operation_type",
    "state",
    "authenticated_user",
    "start_time",
    "finish_time",
    "suspended",
    "spec",
    "provided_spec",
    "full_spec",
    "unrecognized_spec",
    "brief_spec",
    "runtime_parameters",
    "brief_progress",
    "progress",
    "result",
    "alerts",
    "alert_events",
    "events",
    "slot_index_per_pool_tree",
    "scheduling_attributes_per_pool_tree",
    "task_names",
    "has_failed_jobs",
    "memory_usage",
    "controller_features",
    "experiment_assignments",
    "experiment_assignment_names",
    "controller_agent_address",
];

/// An unknown name (code 1920).
pub(crate) fn no_such_attribute(name: &str) -> Failure {
    Failure::coded(vocab::code::NO_SUCH_ATTRIBUTE, format!("Operations have no attribute \"{name}\""))
        .with("attribute_name", name)
}
