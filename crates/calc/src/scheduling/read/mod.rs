//! Lines of a script: verbs, their keys, the names in them.
//!
//! A line is an object with exactly one verb among its keys; the value of the verb is what the line is
//! about. (A word such as `pool` is a verb only where it is not a key of another verb.) Names of operations, allocations, nodes and pools are looked up here, so that an unknown one is
//! refused where it stands and nothing happens.

mod operations;
mod values;

use super::event::{Event, Line, Outcome, Shown, Subject};
use super::options;
use super::world::{BEGINNING, HEARTBEAT_PERIOD, TREE, World};
use crate::Refusal;
use crate::read::{Node, Object, configured, seconds, shown};
use scheduler::config::{ROOT_NAME, SchedulerConfig};
use values::{node_limits, one_or_more, texts, unknown, whole};
use vocab::{Resources, Span};

/// Verbs and the keys that may stand beside them. `*`: options of a pool.
pub(super) const VERBS: [(&str, &[&str]); 26] = [
    ("script", &["heartbeat_period"]),
    ("scheduler", &[]),
    ("tree", &[]),
    ("pool", &["parent", "*"]),
    ("set_pool", &["*"]),
    ("move_pool", &["parent"]),
    ("rename_pool", &["to"]),
    ("remove_pool", &[]),
    ("node", &["limits", "tags", "count"]),
    ("set_node", &["limits", "tags"]),
    ("lost", &[]),
    ("operation", OPERATION),
    ("set_operation", &["pool", "weight", "resource_limits", "scheduling_tag_filter"]),
    ("place", &["node", "nodes", "count", "task", "resources"]),
    ("demand", &["job", "count", "tasks"]),
    ("suspend", &["abort_running_jobs"]),
    ("resume", &[]),
    ("complete", &[]),
    ("abort", &[]),
    ("finish", &["outcome"]),
    ("gone", &[]),
    ("usage", &["resources"]),
    ("heartbeat", &[]),
    ("update", &[]),
    ("advance", &[]),
    ("until", &[]),
];
/// Verbs that only ask.
pub(super) const QUESTIONS: [(&str, &[&str]); 4] =
    [("explain", &[]), ("explain_pool", &[]), ("show", &["attributes"]), ("note", &[])];

const OPERATION: &[&str] = &[
    "pool",
    "user",
    "type",
    "job",
    "count",
    "tasks",
    "gives_way",
    "suspended",
    "weight",
    "resource_limits",
    "scheduling_tag_filter",
    "is_gang",
    "preemption_mode",
    "apply_specified_resource_limits_to_demand",
    "require_specified_pools_existence",
    "fair_share_starvation_timeout",
    "fair_share_starvation_tolerance",
    "non_preemptible_resource_usage_threshold",
    "allocation_preemption_timeout",
    "allocation_graceful_preemption_timeout",
];

/// The longest time that one line lets pass.
const LONGEST: f64 = 86_400.0;
/// Nodes and allocations that one script can have.
const MANY: i64 = 100_000;

fn verbs() -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
    VERBS.iter().chain(&QUESTIONS)
}

/// Reads a line.
pub(super) fn line(node: &Node<'_>, world: &World) -> Result<Line, Refusal> {
    let any = node.any_object()?;
    let here: Vec<_> = verbs().filter(|(verb, _)| any.contains(verb)).collect();
    // Some words are a verb of their own and a key of others; a note may stand beside every verb.
    let is_key = |word: &str| {
        here.iter().any(|(other, keys)| keys.contains(&word) || (*other != word && word == "note"))
    };
    let main: Vec<_> = here.iter().copied().filter(|(verb, _)| !is_key(verb)).collect();
    let (verb, keys) = match main[..] {
        [one] => one,
        [] => {
            let all: Vec<&str> = verbs().map(|(verb, _)| *verb).collect();
            return Err(node.refuse(format!("no verb, expected one of {}", all.join(", "))));
        }
        [first, second, ..] => {
            return Err(any
                .at(second.0)
                .refuse(format!("expected one verb in a line, {} is one too", first.0)));
        }
    };
    // What follows is about options of a pool, or unknown.
    if !keys.contains(&"*") {
        let known: Vec<&str> = [*verb, "note"].into_iter().chain(keys.iter().copied()).collect();
        node.object(&known)?;
    }
    let note = any.optional("note", |n| n.text().map(str::to_owned))?;
    let about = any.at(verb);
    let reader = Reader { line: &any, about, world };
    let did = match about.value.as_str() {
        Some(name) => format!("{verb} {name}"),
        None if about.value.as_f64().is_some() => format!("{verb} {}", shown(about.value)),
        None => {
            let names = about.value.as_list().unwrap_or_default().iter().filter_map(yson::Value::as_str);
            let names: Vec<&str> = names.take(8).collect();
            [*verb, &names.join(", ")].join(" ").trim_end().to_owned()
        }
    };
    Ok(Line { did, note, event: reader.event(verb)? })
}

struct Reader<'a> {
    line: &'a Object<'a>,
    /// What stands at the verb.
    about: Node<'a>,
    world: &'a World,
}

impl Reader<'_> {
    fn event(&self, verb: &str) -> Result<Event, Refusal> {
        Ok(match verb {
            "script" => self.script()?,
            "scheduler" => {
                let (options, config) =
                    options::merged(&self.world.scheduler_options, &self.about, &[], SchedulerConfig::parse)?;
                Event::Scheduler { options, config: Box::new(config) }
            }
            "tree" => {
                let parse = scheduler::config::TreeConfig::parse;
                let (options, _) = options::merged(&self.world.tree_options, &self.about, &[], parse)?;
                Event::Tree { options }
            }
            "pool" => self.pool()?,
            "set_pool" => {
                let name = self.known_pool(&self.about)?;
                let options = self.pool_options(&self.world.pools[&name], "set_pool")?;
                Event::SetPool { name, options }
            }
            "move_pool" => {
                let parent = self.line.required("parent", "the name of a pool")?;
                Event::MovePool { name: self.known_pool(&self.about)?, parent: self.parent(&parent)? }
            }
            "rename_pool" => {
                let to = self.line.required("to", "a string")?.text()?.to_owned();
                Event::RenamePool { name: self.known_pool(&self.about)?, to }
            }
            "remove_pool" => Event::RemovePool { name: self.known_pool(&self.about)? },
            "node" => self.nodes()?,
            "set_node" => Event::SetNode {
                name: self.node(&self.about)?,
                limits: self.line.optional("limits", node_limits)?,
                tags: self.line.optional("tags", texts)?,
            },
            "lost" => Event::Lost { node: self.node(&self.about)? },
            "operation" => Event::Operation(Box::new(self.operation()?)),
            "set_operation" => self.set_operation()?,
            "place" => self.place()?,
            "demand" => {
                let operation = self.live(&self.about)?;
                let old = &self.world.operations[&operation].tasks;
                Event::Demand { operation, tasks: self.tasks(Some(old))? }
            }
            "suspend" => Event::Suspend {
                operation: self.live(&self.about)?,
                abort_running_jobs: self.line.flag_or("abort_running_jobs", false)?,
            },
            "resume" => Event::Resume { operation: self.live(&self.about)? },
            "complete" => Event::Complete { operation: self.live(&self.about)? },
            "abort" => Event::Abort { operation: self.live(&self.about)? },
            "finish" => Event::Finish {
                allocations: one_or_more(&self.about, |n| self.allocation(n))?,
                outcome: self
                    .line
                    .optional("outcome", |n| n.choice(&Outcome::ALL))?
                    .unwrap_or(Outcome::Completed),
            },
            "gone" => Event::Gone { allocations: one_or_more(&self.about, |n| self.leaving(n))? },
            "usage" => {
                let allocation = self.allocation(&self.about)?;
                let old = self.world.scheduler.allocation(allocation).map(|a| a.resource_usage);
                let new = configured(self.line.required("resources", "an object")?)?;
                let old = old.unwrap_or_default();
                let resources = Resources::from_raw(|r| new.raw(r).unwrap_or(old.raw(r)));
                Event::Usage { allocation, resources }
            }
            "heartbeat" => Event::Heartbeat { nodes: self.some_nodes(&self.about)? },
            "update" => Event::Update { count: whole(&self.about, 1, 10_000)? as u32 },
            "advance" => Event::Advance { until: self.world.now + self.time(&self.about)? },
            "until" => self.until()?,
            "explain" => Event::Explain(Subject::Operation(self.live(&self.about)?)),
            "explain_pool" => Event::Explain(Subject::Pool(self.any_pool(&self.about)?)),
            "show" => Event::Show(self.show()?),
            _ => {
                self.about.text()?;
                Event::Note
            }
        })
    }

    fn script(&self) -> Result<Event, Refusal> {
        self.about.text()?;
        let given = self.line.contains("heartbeat_period");
        let period = self.line.optional("heartbeat_period", |n| {
            const ALLOWED: &str = "a number of seconds from 0.1 to 86400, or null";
            n.number(0.1..=LONGEST, ALLOWED).map(|s| Span((s * 1e6).round() as u64))
        })?;
        Ok(Event::Script { heartbeat_period: if given { period } else { Some(HEARTBEAT_PERIOD) } })
    }

    // --- time

    fn time(&self, node: &Node<'_>) -> Result<Span, Refusal> {
        node.number(0.0..=LONGEST, "a number of seconds from 0 to 86400")?;
        seconds(*node)
    }

    fn until(&self) -> Result<Event, Refusal> {
        let until = BEGINNING + seconds(self.about)?;
        let now = self.world.now;
        if until < now || until.since(now) > Span::from_secs(LONGEST as u64) {
            let passed = now.since(BEGINNING).as_secs_f64();
            return Err(self.about.expected(&format!(
                "a number of seconds since the beginning that is at least {passed} (now) and within a day"
            )));
        }
        Ok(Event::Advance { until })
    }

    // --- pools

    fn pool(&self) -> Result<Event, Refusal> {
        let name = self.about.text()?.to_owned();
        if self.world.pools.contains_key(&name) {
            return Err(self.about.expected("a new name; options of a pool are changed with set_pool"));
        }
        let parent = self.line.get("parent").map(|n| self.parent(&n)).transpose()?;
        let options = self.pool_options(&yson::Map::new(), "pool")?;
        Ok(Event::Pool { name, parent: parent.unwrap_or_else(|| ROOT_NAME.to_owned()), options })
    }

    fn pool_options(&self, old: &yson::Map, verb: &str) -> Result<yson::Map, Refusal> {
        let parse = scheduler::config::PoolConfig::parse;
        let own = [verb, "parent", "note"];
        let own = if verb == "pool" { &own[..] } else { &[verb, "note"][..] };
        options::merged(old, &self.line.as_node(), own, parse).map(|(options, _)| options)
    }

    /// A pool that the script has made.
    fn known_pool(&self, node: &Node<'_>) -> Result<String, Refusal> {
        let name = node.text()?;
        match self.world.pools.contains_key(name) {
            true => Ok(name.to_owned()),
            false => Err(unknown(node, "pool", self.world.pools.keys().map(String::as_str))),
        }
    }

    fn parent(&self, node: &Node<'_>) -> Result<String, Refusal> {
        match node.text()? {
            ROOT_NAME => Ok(ROOT_NAME.to_owned()),
            _ => self.known_pool(node),
        }
    }

    /// A pool that there is, also one that the scheduler has made.
    fn any_pool(&self, node: &Node<'_>) -> Result<String, Refusal> {
        let snapshot = self.world.scheduler.snapshot();
        let name = node.text()?;
        let known = |tree: &scheduler::TreeSnapshot| tree.pool(name).is_some();
        match name == ROOT_NAME || snapshot.tree(TREE).is_some_and(|t| known(t)) {
            true => Ok(name.to_owned()),
            false => self.known_pool(node),
        }
    }

    // --- nodes

    fn nodes(&self) -> Result<Event, Refusal> {
        let name = self.about.text()?;
        if name.is_empty() || name == "*" {
            return Err(self.about.expected("a name, which is neither empty nor \"*\""));
        }
        let count = self.line.optional("count", |n| whole(&n, 1, MANY))?;
        let names: Vec<String> = match count {
            None => vec![name.to_owned()],
            Some(count) => (1..=count).map(|i| format!("{name}{i}")).collect(),
        };
        if let Some(taken) = names.iter().find(|n| self.world.nodes.contains_key(*n)) {
            let why = format!("expected a new name, \"{taken}\" is there; set_node changes a node");
            return Err(self.about.refuse(why));
        }
        if names.len() + self.world.nodes.len() > MANY as usize {
            return Err(self.about.refuse(format!("expected at most {MANY} nodes in a script")));
        }
        let limits = node_limits(self.line.required("limits", "an object")?)?;
        let tags = self.line.optional("tags", texts)?.unwrap_or_default();
        Ok(Event::Nodes { names, limits, tags })
    }

    fn node(&self, node: &Node<'_>) -> Result<String, Refusal> {
        let name = node.text()?;
        match self.world.nodes.contains_key(name) {
            true => Ok(name.to_owned()),
            false => Err(unknown(node, "node", self.world.nodes.keys().map(String::as_str))),
        }
    }

    /// Names of nodes, or "*" for all of them.
    fn some_nodes(&self, node: &Node<'_>) -> Result<Vec<String>, Refusal> {
        match node.value.as_str() {
            Some("*") => Ok(self.world.nodes.keys().cloned().collect()),
            _ => one_or_more(node, |n| self.node(n)),
        }
    }

    // --- questions

    fn show(&self) -> Result<Shown, Refusal> {
        let attributes = |n: Node<'_>| one_or_more(&n, |n| n.text().map(str::to_owned));
        let attributes = self.line.optional("attributes", attributes)?;
        let mut all = Shown { attributes, ..Shown::default() };
        if self.about.value.as_str() == Some("all") {
            all.operations = self.world.operations.keys().copied().collect();
            let snapshot = self.world.scheduler.snapshot();
            let pools = snapshot.tree(TREE).map(|t| t.pool_names().map(|n| n.to_string()).collect());
            all.pools = pools.unwrap_or_default();
            all.nodes = self.world.nodes.keys().cloned().collect();
            return Ok(all);
        }
        const ALLOWED: &str = "\"all\", or an object with operations, pools, nodes";
        let what = self.about.object(&["operations", "pools", "nodes"]).map_err(|refusal| {
            if self.about.value.as_map().is_some() { refusal } else { self.about.expected(ALLOWED) }
        })?;
        let operations = what.optional("operations", |n| one_or_more(&n, |n| self.live(n)))?;
        all.operations = operations.unwrap_or_default();
        all.pools = what.optional("pools", |n| one_or_more(&n, |n| self.any_pool(n)))?.unwrap_or_default();
        all.nodes = what.optional("nodes", |n| one_or_more(&n, |n| self.node(n)))?.unwrap_or_default();
        Ok(all)
    }
}
