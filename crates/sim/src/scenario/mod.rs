//! `scenario.json` (simulator.md 3): what is simulated, checked as a whole before anything runs.

mod cluster;
mod events;
mod exported;
mod file;
mod integral;
mod models;
mod node;

pub use cluster::{Failures, NodeGroup};
pub use events::{Event, EventKind, Which};
pub(crate) use exported::keep_options;
pub use file::{Document, at_pointer, read_document, read_value, set_pointer};
pub use models::{CpuModel, Delays, MemoryModel, MemoryPolicy, Models, Output};
pub use node::NodeOptions;

use crate::error::SimError;
use std::path::{Path, PathBuf};
use vocab::{Span, Time};
use yson::fields::{FieldError, Fields};
use yson::{Map, Value};

/// Name and version of the format.
pub const FORMAT: &str = "millpond-scenario/1";

/// A scenario, read and checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The document with all changes of the command line applied.
    pub document: Document,
    /// For people.
    pub name: String,
    /// Of all random numbers.
    pub seed: u64,
    /// Virtual time 0.
    pub start: Time,
    /// Upper limit of the run.
    pub duration: Span,
    /// End when all operations have finished.
    pub stop_when_idle: bool,
    /// Nodes, by group.
    pub groups: Vec<NodeGroup>,
    /// Of nodes.
    pub failures: Option<Failures>,
    /// Name of the default tree.
    pub default_tree: String,
    /// Pool trees.
    pub trees: Vec<Tree>,
    /// Production options of the scheduler.
    pub scheduler_config: Map,
    /// Of nodes without one of their own.
    pub heartbeat_period: Span,
    /// Production options of the controllers.
    pub controller_config: Map,
    /// Production options of nodes.
    pub node_options: NodeOptions,
    /// Files of operations; `-` is standard input.
    pub workload: Vec<PathBuf>,
    /// Operations that stand in no file, as lines of the workload format.
    pub inline: Vec<u8>,
    /// In the order of their times; those of one time in the order of the file.
    pub events: Vec<Event>,
    /// Pools that operations name and no tree has are made below this one.
    pub fallback_parent: Option<String>,
    /// What is modelled.
    pub models: Models,
    /// What is written.
    pub output: Output,
}

/// A pool tree.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Its name.
    pub name: String,
    /// Production options.
    pub config: Map,
    /// Parents before children.
    pub pools: Vec<Pool>,
}

/// A pool.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Name of the pool above; none: the root.
    pub parent: Option<String>,
    /// Production attributes.
    pub attributes: Map,
    /// `accumulated_resource_ratio_volume` at the start: cluster-seconds.
    pub ratio_volume: Option<f64>,
}

impl Scenario {
    /// Reads a scenario with changes: JSON pointers and values (`--set`, variants).
    pub fn load(path: &Path, changes: &[(String, Value)]) -> Result<Scenario, SimError> {
        let mut document = read_document(path)?;
        for (pointer, value) in changes {
            set_pointer(&mut document.value, pointer, value.clone()).map_err(|why| SimError {
                file: "--set".into(),
                line: None,
                pointer: pointer.clone(),
                message: why,
            })?;
        }
        // A change may name a file, too.
        document.include()?;
        Scenario::from_document(document)
    }

    /// Reads a document.
    pub fn from_document(document: Document) -> Result<Scenario, SimError> {
        let path = document.path.clone();
        let map = document.value.as_map().ok_or_else(|| SimError::file(&path, "expected a JSON object"))?;
        let mut fields = Fields::new(map, "");
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let read = read(&mut fields, &folder).and_then(|s| fields.finish().map(|()| s));
        let mut scenario = read.map_err(|e| document.locate(e))?;
        scenario.document = document.clone();
        scenario.check().map_err(|e| document.locate(e))?;
        Ok(scenario)
    }

    /// The document as it can be run from anywhere: files of the workload by their whole paths.
    pub fn standalone(&self) -> Value {
        let mut value = self.document.value.clone();
        let whole = |path: &PathBuf| match path == Path::new("-") {
            true => path.clone(),
            false => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
        };
        let files = self.workload.iter().map(|path| Value::from(whole(path).display().to_string()));
        if let Some(map) = value.as_map_mut() {
            map.insert("workload", files.collect::<Vec<_>>());
        }
        value
    }

    /// Bytes that are reserved for a job proxy.
    pub fn proxy_estimate(&self) -> i64 {
        self.controller_config.get("footprint_memory").and_then(Value::as_i64).unwrap_or(PROXY_ESTIMATE)
    }

    /// Number of nodes.
    pub fn node_count(&self) -> u64 {
        self.groups.iter().map(|g| g.count).sum()
    }

    /// Sum of what all nodes have.
    pub fn total(&self) -> vocab::Resources {
        self.groups.iter().fold(vocab::Resources::ZERO, |sum, g| sum + g.limits.times(g.count as i64))
    }

    fn check(&self) -> Result<(), FieldError> {
        if self.node_count() > 1_000_000 {
            let what = format!("expected at most 1000000 nodes altogether, found {}", self.node_count());
            return Err(FieldError::new("cluster/node_groups", &what));
        }
        if !self.trees.iter().any(|t| t.name == self.default_tree) {
            let names: Vec<&str> = self.trees.iter().map(|t| t.name.as_str()).collect();
            let what = format!("no such tree {:?}, known are {names:?}", self.default_tree);
            return Err(FieldError::new("pool_trees/default_tree", &what));
        }
        for event in &self.events {
            event.check(self).map_err(|(field, what)| {
                FieldError::new(format!("events/{}/{field}", event.position), &what)
            })?;
        }
        Ok(())
    }
}

fn read(f: &mut Fields<'_>, folder: &Path) -> Result<Scenario, FieldError> {
    f.take_parsed("format", "\"millpond-scenario/1\"", |s| (s == FORMAT).then_some(())).required()?;
    f.take_str("description").optional()?;
    let start = "time like \"2026-01-01T00:00:00Z\"";
    let (groups, failures) =
        f.nested("cluster", cluster::read)?.ok_or_else(|| f.error("cluster", "required, expected map"))?;
    let (default_tree, trees) =
        f.nested("pool_trees", read_trees)?.ok_or_else(|| f.error("pool_trees", "required, expected map"))?;
    let mut scenario = Scenario {
        document: Document { path: PathBuf::new(), value: Value::Entity, included: Vec::new() },
        name: f.take_str("name").required()?.to_owned(),
        seed: f.take_u64("seed").or(1)?,
        start: f.take_parsed("start_time", start, Time::parse).or(Time::from_secs(1_767_225_600))?,
        duration: milliseconds(f, "duration_ms", 1..=10 * YEAR_MS)?
            .ok_or_else(|| f.error("duration_ms", "required, expected milliseconds"))?,
        stop_when_idle: f
            .take_parsed("stop", "\"at_duration\" or \"when_idle\"", |s| match s {
                "at_duration" => Some(false),
                "when_idle" => Some(true),
                _ => None,
            })
            .or(false)?,
        groups,
        failures,
        default_tree,
        trees,
        scheduler_config: f.take_map("scheduler_config").or(&Map::new())?.clone(),
        heartbeat_period: Span::from_secs(5),
        controller_config: f.take_map("controller_config").or(&Map::new())?.clone(),
        node_options: f.nested("node_config", NodeOptions::read)?.unwrap_or_default(),
        workload: f
            .take_str_list("workload")
            .required()?
            .into_iter()
            .map(|name| place(folder, name))
            .collect(),
        inline: Vec::new(),
        events: events::read(f)?,
        fallback_parent: read_import(f)?,
        models: f.nested("models", models::read_models)?.unwrap_or_default(),
        output: f.nested("output", models::read_output)?.unwrap_or_default(),
    };
    if let Some(period) = scenario.scheduler_config.remove("node_heartbeat_period") {
        let good = period.as_u64().filter(|ms| (100..=3_600_000).contains(ms));
        let expected = "milliseconds from 100 to 3600000";
        let wrong = || FieldError::expected("scheduler_config/node_heartbeat_period", expected, &period);
        scenario.heartbeat_period = Span::from_millis(good.ok_or_else(wrong)?);
    }
    read_volumes(f, &mut scenario.trees)?;
    if let Some(parent) = &scenario.fallback_parent {
        put_strays_below(parent, &scenario.default_tree, &mut scenario.trees)?;
    }
    Ok(scenario)
}

fn read_import(f: &mut Fields<'_>) -> Result<Option<String>, FieldError> {
    let Some(map) = f.take_map("import").optional()? else { return Ok(None) };
    let mut import = Fields::new(map, f.path_of("import"));
    let parent = import.take_str("fallback_parent").optional()?.map(str::to_owned);
    import.finish()?;
    Ok(parent)
}

/// Production has a rule for pools that nobody has made: they are ephemeral, below `default_parent_pool` of
/// their tree. `import/fallback_parent` says which pool that is, in all trees that have it.
fn put_strays_below(parent: &str, default_tree: &str, trees: &mut [Tree]) -> Result<(), FieldError> {
    let has_it = |tree: &Tree| tree.pools.iter().any(|pool| pool.name == parent);
    if let Some(tree) = trees.iter().find(|tree| tree.name == default_tree && !has_it(tree)) {
        let known: Vec<&str> = tree.pools.iter().map(|pool| pool.name.as_str()).collect();
        let what = format!("no such pool {parent:?} in tree {default_tree:?}, known are {known:?}");
        return Err(FieldError::new("import/fallback_parent", &what));
    }
    for tree in trees.iter_mut().filter(|tree| has_it(tree)) {
        tree.config.insert("default_parent_pool", parent);
    }
    Ok(())
}

/// What a job proxy is reserved with, if the scenario does not say it (simulator.md 4).
const PROXY_ESTIMATE: i64 = 256 << 20;
const YEAR_MS: u64 = 366 * 86_400_000;

fn place(folder: &Path, name: &str) -> PathBuf {
    if name == "-" { PathBuf::from(name) } else { folder.join(name) }
}

/// A duration: an integer of milliseconds.
pub(crate) fn milliseconds(
    f: &mut Fields<'_>,
    name: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Result<Option<Span>, FieldError> {
    let expected = format!("milliseconds from {} to {}", range.start(), range.end());
    Ok(f.take_u64(name).check(&expected, |ms| range.contains(ms)).optional()?.map(Span::from_millis))
}

fn read_trees(f: &mut Fields<'_>) -> Result<(String, Vec<Tree>), FieldError> {
    let default = f.take_str("default_tree").required()?.to_owned();
    let trees = f.nested_each("trees", |name, f| {
        let config = f.take_map("config").or(&Map::new())?.clone();
        let mut pools = Vec::new();
        read_pools(f, None, &mut pools)?;
        integral::pass_on(&mut pools);
        Ok::<_, FieldError>(Tree { name: name.to_owned(), config, pools })
    })?;
    Ok((default, trees.into_iter().map(|(_, tree)| tree).collect()))
}

/// Attributes of pools are not looked at here: the product's own commands check them.
fn read_pools(f: &mut Fields<'_>, parent: Option<&str>, out: &mut Vec<Pool>) -> Result<(), FieldError> {
    let Some(pools) = f.take_map("pools").optional()? else { return Ok(()) };
    let at = f.path_of("pools");
    for (name, value) in pools.iter() {
        let name = String::from_utf8_lossy(name).into_owned();
        let path = format!("{at}/{name}");
        let map = value.as_map().ok_or_else(|| FieldError::expected(path.as_str(), "map", value))?;
        if out.iter().any(|pool| pool.name == name) {
            return Err(FieldError::new(path, "there is a pool of this name already"));
        }
        let mut attributes = map.clone();
        attributes.remove("pools");
        let parent = parent.map(str::to_owned);
        out.push(Pool { name: name.clone(), parent, attributes, ratio_volume: None });
        let mut fields = Fields::new(map, path);
        read_pools(&mut fields, Some(&name), out)?;
    }
    Ok(())
}

fn read_volumes(f: &mut Fields<'_>, trees: &mut [Tree]) -> Result<(), FieldError> {
    f.nested_each("initial_state", |tree, f| {
        let at = f.path_of("pools");
        let volumes = f.nested_each("pools", |_, f| {
            f.take_f64("accumulated_resource_ratio_volume").within(0.0..=1e12).optional()
        })?;
        let Some(tree) = trees.iter_mut().find(|t| t.name == tree) else {
            return Err(FieldError::new(format!("initial_state/{tree}"), "no such tree"));
        };
        for (name, volume) in volumes {
            let pool = tree.pools.iter_mut().find(|p| p.name == name);
            let pool = pool.ok_or_else(|| FieldError::new(format!("{at}/{name}"), "no such pool"))?;
            pool.ratio_volume = volume;
        }
        Ok(())
    })?;
    Ok(())
}
