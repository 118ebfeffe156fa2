//! `events` (simulator.md 3.3): what happens to the cluster, and what administrators do.

use super::cluster::read_resources;
use super::{Scenario, YEAR_MS, milliseconds};
use vocab::{Resources, Span};
use yson::Map;
use yson::fields::{FieldError, Fields};

/// One event.
#[derive(Clone, Debug)]
pub struct Event {
    /// From the start.
    pub at: Span,
    /// Its place in the file.
    pub position: usize,
    /// What.
    pub kind: EventKind,
}

/// Which nodes.
#[derive(Clone, Debug)]
pub enum Which {
    /// The `count` lowest numbers of a group that are in the other state.
    Lowest(String, u64),
    /// These.
    Named(Vec<String>),
}

/// What happens.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // names and meanings are those of the format
pub enum EventKind {
    NodesOffline { nodes: Which, graceful: bool },
    NodesOnline { nodes: Which },
    NodesLimits { nodes: Which, limits: Resources },
    SetPool { tree: Option<String>, pool: String, attributes: Map },
    CreatePool { tree: Option<String>, pool: String, parent: Option<String>, attributes: Map },
    RemovePool { tree: Option<String>, pool: String },
    SetTreeConfig { tree: Option<String>, config: Map },
    SetSchedulerConfig { config: Map },
    UpdateOperation { operation: String, parameters: Map },
    Suspend { operation: String },
    Resume { operation: String },
    Abort { operation: String },
    SchedulerRestart { downtime: Span },
    ControllerRestart { downtime: Span },
    Snapshot,
}

const TYPES: &str = "one of \"nodes_offline\", \"nodes_online\", \"nodes_limits\", \"set_pool\", \
    \"create_pool\", \"remove_pool\", \"set_tree_config\", \"set_scheduler_config\", \"update_operation\", \
    \"suspend\", \"resume\", \"abort\", \"scheduler_restart\", \"controller_restart\", \"snapshot\"";

pub(super) fn read(f: &mut Fields<'_>) -> Result<Vec<Event>, FieldError> {
    let list = f.take_list("events").or(&[])?;
    let mut events = Vec::with_capacity(list.len());
    for (position, value) in list.iter().enumerate() {
        let path = f.path_of(&format!("events/{position}"));
        let map = value.as_map().ok_or_else(|| FieldError::expected(path.as_str(), "map", value))?;
        let mut fields = Fields::new(map, path);
        let at = milliseconds(&mut fields, "at", 0..=10 * YEAR_MS)?
            .ok_or_else(|| fields.error("at", "required, expected milliseconds from the start"))?;
        let kind = read_kind(&mut fields)?;
        fields.finish()?;
        events.push(Event { at, position, kind });
    }
    events.sort_by_key(|event| (event.at, event.position));
    Ok(events)
}

fn read_kind(f: &mut Fields<'_>) -> Result<EventKind, FieldError> {
    let name = f.take_str("type").required()?.to_owned();
    let text = |f: &mut Fields<'_>, name: &str| Ok::<_, FieldError>(f.take_str(name).required()?.to_owned());
    let some =
        |f: &mut Fields<'_>, name: &str| Ok::<_, FieldError>(f.take_str(name).optional()?.map(str::to_owned));
    let map = |f: &mut Fields<'_>, name: &str| Ok::<_, FieldError>(f.take_map(name).required()?.clone());
    Ok(match name.as_str() {
        "nodes_offline" => {
            EventKind::NodesOffline { nodes: read_which(f)?, graceful: f.take_bool("graceful").or(true)? }
        }
        "nodes_online" => EventKind::NodesOnline { nodes: read_which(f)? },
        "nodes_limits" => EventKind::NodesLimits {
            nodes: read_which(f)?,
            limits: f
                .nested("resource_limits", read_resources)?
                .ok_or_else(|| f.error("resource_limits", "required, expected map"))?,
        },
        "set_pool" => EventKind::SetPool {
            tree: some(f, "tree")?,
            pool: text(f, "pool")?,
            attributes: map(f, "attributes")?,
        },
        "create_pool" => EventKind::CreatePool {
            tree: some(f, "tree")?,
            pool: text(f, "pool")?,
            parent: some(f, "parent")?,
            attributes: f.take_map("attributes").or(&Map::new())?.clone(),
        },
        "remove_pool" => EventKind::RemovePool { tree: some(f, "tree")?, pool: text(f, "pool")? },
        "set_tree_config" => EventKind::SetTreeConfig { tree: some(f, "tree")?, config: map(f, "config")? },
        "set_scheduler_config" => EventKind::SetSchedulerConfig { config: map(f, "config")? },
        "update_operation" => {
            EventKind::UpdateOperation { operation: text(f, "operation")?, parameters: map(f, "parameters")? }
        }
        "suspend" => EventKind::Suspend { operation: text(f, "operation")? },
        "resume" => EventKind::Resume { operation: text(f, "operation")? },
        "abort" => EventKind::Abort { operation: text(f, "operation")? },
        "scheduler_restart" => EventKind::SchedulerRestart {
            downtime: milliseconds(f, "downtime_ms", 0..=YEAR_MS)?.unwrap_or_default(),
        },
        "controller_restart" => EventKind::ControllerRestart {
            downtime: milliseconds(f, "downtime_ms", 0..=YEAR_MS)?.unwrap_or_default(),
        },
        "snapshot" => EventKind::Snapshot,
        _ => return Err(f.error("type", &format!("expected {TYPES}, found {name:?}"))),
    })
}

fn read_which(f: &mut Fields<'_>) -> Result<Which, FieldError> {
    if f.has("nodes") {
        if f.has("group") || f.has("count") {
            return Err(f.error("nodes", "it excludes \"group\" and \"count\""));
        }
        let names = f.take_str_list("nodes").required()?;
        return Ok(Which::Named(names.into_iter().map(str::to_owned).collect()));
    }
    let group = f.take_str("group").required()?.to_owned();
    Ok(Which::Lowest(group, f.take_u64("count").required()?))
}

impl Event {
    /// It changes what the scheduler looks at now and then, and not at once: options of pools and of operations.
    pub(crate) fn is_watched(&self) -> bool {
        use EventKind::*;
        match &self.kind {
            SetPool { .. } | CreatePool { .. } | RemovePool { .. } | SetTreeConfig { .. } => true,
            SetSchedulerConfig { .. } | UpdateOperation { .. } => true,
            NodesOffline { .. } | NodesOnline { .. } | NodesLimits { .. } => false,
            Suspend { .. } | Resume { .. } | Abort { .. } => false,
            SchedulerRestart { .. } | ControllerRestart { .. } | Snapshot => false,
        }
    }

    /// References to nodes and trees; the error names the field and says what is wrong.
    pub(super) fn check(&self, scenario: &Scenario) -> Result<(), (&'static str, String)> {
        use EventKind::*;
        let (nodes, tree) = match &self.kind {
            NodesOffline { nodes, .. } | NodesOnline { nodes } | NodesLimits { nodes, .. } => {
                (Some(nodes), &None)
            }
            SetPool { tree, .. }
            | CreatePool { tree, .. }
            | RemovePool { tree, .. }
            | SetTreeConfig { tree, .. } => (None, tree),
            _ => (None, &None),
        };
        if let Some(tree) = tree
            && !scenario.trees.iter().any(|t| t.name == *tree)
        {
            return Err(("tree", format!("no such tree {tree:?}")));
        }
        match nodes {
            Some(Which::Lowest(group, _)) if !scenario.groups.iter().any(|g| g.name == *group) => {
                let known: Vec<&str> = scenario.groups.iter().map(|g| g.name.as_str()).collect();
                Err(("group", format!("no such node group {group:?}, known are {known:?}")))
            }
            Some(Which::Named(names)) => {
                let is_node = |name: &String| scenario.groups.iter().any(|g| g.has_node(name));
                match names.iter().find(|name| !is_node(name)) {
                    Some(name) => Err(("nodes", format!("no such node {name:?}"))),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
