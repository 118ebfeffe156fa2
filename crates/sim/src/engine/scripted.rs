//! Events of the scenario, failures of nodes, restarts of the server.

use super::setup::{create, set};
use super::*;
use crate::random::{Draw, Kind, name_hash};
use crate::scenario::{EventKind, Which};
use yson::ypath::{YPath, escape_literal};

impl Engine<'_> {
    pub(super) fn scripted(&mut self, number: usize) -> Result<(), SimError> {
        let scenario = self.scenario;
        let event = &scenario.events[number];
        let tree = |tree: &Option<String>| tree.clone().unwrap_or_else(|| scenario.default_tree.clone());
        let reference = |engine: &Self, name: &str| engine.by_name.get(name).map(|id| OperationRef::Id(*id));
        let mut commands = Vec::new();
        match &event.kind {
            EventKind::NodesOffline { nodes, graceful } => {
                for node in self.chosen(nodes, true) {
                    self.node_fails(node, *graceful);
                }
            }
            EventKind::NodesOnline { nodes } => {
                for node in self.chosen(nodes, false) {
                    self.node_repaired(node);
                }
            }
            EventKind::NodesLimits { nodes, limits } => {
                for node in self.chosen(nodes, true) {
                    self.with_node(node, |node, around| node.set_limits(*limits, around));
                }
            }
            EventKind::SetPool { tree: at, pool, attributes } => {
                let path = self.pool_path(&tree(at), pool);
                let each = attributes.iter().map(|(name, value)| {
                    let name = String::from_utf8_lossy(name);
                    set(&format!("{path}/@{}", escape_literal(&*name)), value.clone())
                });
                commands.extend(each);
            }
            EventKind::CreatePool { tree: at, pool, parent, attributes } => {
                let attributes = attributes.clone().with("name", pool.as_str());
                let attributes = attributes.with("pool_tree", tree(at));
                let attributes = attributes.with_some("parent_name", parent.as_deref());
                commands.push(create("scheduler_pool", attributes));
            }
            EventKind::RemovePool { tree: at, pool } => {
                let path = self.pool_path(&tree(at), pool);
                if let Ok(path) = YPath::parse(path.as_bytes()) {
                    commands.push(Command::Remove { path, recursive: true, force: false });
                }
            }
            EventKind::SetTreeConfig { tree: at, config } => {
                let at = format!("//sys/pool_trees/{}/@config", escape_literal(tree(at)));
                commands.extend(options(&at, config));
            }
            EventKind::SetSchedulerConfig { config } => {
                commands.extend(options("//sys/scheduler/config", config));
            }
            EventKind::UpdateOperation { operation, parameters } => {
                let command = reference(self, operation).map(|operation| {
                    Command::UpdateOperationParameters { operation, parameters: parameters.clone() }
                });
                self.or_note(number, operation, command, &mut commands);
            }
            EventKind::Suspend { operation } => {
                let command = reference(self, operation).map(|operation| Command::SuspendOperation {
                    operation,
                    abort_running_jobs: false,
                    reason: None,
                });
                self.or_note(number, operation, command, &mut commands);
            }
            EventKind::Resume { operation } => {
                let command = reference(self, operation).map(|o| Command::ResumeOperation { operation: o });
                self.or_note(number, operation, command, &mut commands);
            }
            EventKind::Abort { operation } => {
                let command = reference(self, operation)
                    .map(|operation| Command::AbortOperation { operation, message: None });
                self.or_note(number, operation, command, &mut commands);
            }
            // Scheduler and controllers are one process: a restart of one is a restart of the other.
            EventKind::SchedulerRestart { downtime } | EventKind::ControllerRestart { downtime } => {
                self.server_dies(*downtime);
            }
            EventKind::Snapshot => self.take_snapshot(number),
        }
        for command in commands {
            if self.server.kernel().is_none() {
                self.note(number, "the server is down");
            }
            self.ask("root", command, Asked::Scripted(number));
        }
        Ok(())
    }

    /// A refused command is recorded.
    pub(super) fn scripted_done(&mut self, number: usize, failure: Option<Failure>) {
        if let Some(failure) = failure {
            self.note(number, &in_full(&failure));
        }
    }

    pub(super) fn note(&mut self, number: usize, why: &str) {
        let position = self.scenario.events[number].position;
        self.refusals.push(format!("events/{position}: {why}"));
    }

    fn or_note(&mut self, number: usize, name: &str, command: Option<Command>, out: &mut Vec<Command>) {
        match command {
            Some(command) => out.push(command),
            None => self.note(number, &format!("no operation {name:?} was accepted so far")),
        }
    }

    fn pool_path(&self, tree: &str, pool: &str) -> String {
        let found = self.server.kernel().and_then(|kernel| kernel.pool_path(tree, pool));
        found.unwrap_or_else(|| format!("//sys/pool_trees/{}/{}", escape_literal(tree), escape_literal(pool)))
    }

    /// Nodes that an event means, of those that are online or not.
    fn chosen(&self, which: &Which, online: bool) -> Vec<u32> {
        let of = self.nodes.iter().filter(|node| node.online == online);
        match which {
            Which::Named(names) => of.filter(|n| names.contains(&n.name)).map(|n| n.number).collect(),
            Which::Lowest(group, count) => {
                let is_of = |n: &&Node| self.scenario.groups[n.group].name == *group;
                of.filter(is_of).map(|n| n.number).take(*count as usize).collect()
            }
        }
    }

    /// All jobs of a node are lost. The server sees at once that a graceful one goes; of another one it
    /// hears nothing any more.
    pub(super) fn node_fails(&mut self, number: u32, graceful: bool) {
        let node = &mut self.nodes[number as usize];
        if !node.online {
            return;
        }
        if graceful {
            // Their ends are told before the connection closes.
            self.with_node(number, Node::shut_down);
        }
        self.nodes[number as usize].break_down(self.now);
        if !graceful {
            let next = self.failures.entry(number).or_default();
            *next += 1;
            if let Some((_, mttr)) = self.means(number) {
                let after = self.exponential(number, mttr, 1);
                self.queue.push(self.now + after, Due::NodeRepaired(number));
            }
        } else if let Some(key) = self.nodes[number as usize].key.take() {
            self.keys[key.0 as usize] = None;
            self.inputs.push(Input::NodeDisconnected(key));
        }
    }

    /// It comes again, empty.
    pub(super) fn node_repaired(&mut self, number: u32) {
        let node = &mut self.nodes[number as usize];
        if node.online {
            return;
        }
        node.online = true;
        if let Some(key) = node.key.take() {
            self.keys[key.0 as usize] = None;
            self.inputs.push(Input::NodeDisconnected(key));
        }
        self.node_connects(number);
        self.plan_failure(number);
    }

    /// When a node fails next, if the cluster has failures.
    pub(super) fn plan_failure(&mut self, number: u32) {
        if let Some((mtbf, _)) = self.means(number) {
            let after = self.exponential(number, mtbf, 0);
            self.queue.push(self.now + after, Due::NodeFails(number));
        }
    }

    fn means(&self, number: u32) -> Option<(f64, f64)> {
        let failures = self.scenario.failures.as_ref()?;
        let group = &self.scenario.groups[self.nodes[number as usize].group].name;
        let own = failures.per_group.iter().find(|(name, ..)| name == group);
        Some(own.map_or((failures.mtbf_ms, failures.mttr_ms), |(_, mtbf, mttr)| (*mtbf, *mttr)))
    }

    fn exponential(&self, number: u32, mean_ms: f64, kind: u64) -> Span {
        let name = name_hash(&self.nodes[number as usize].name);
        let index = self.failures.get(&number).copied().unwrap_or(0) * 2 + kind;
        let unit = Draw::new(self.scenario.seed, Kind::NodeFailure, name, index).unit();
        Span::from_micros((-mean_ms * unit.ln() * 1000.0) as u64)
    }

    /// The server dies; nodes lose their connections and go on.
    pub(super) fn server_dies(&mut self, downtime: Span) {
        self.note_stages();
        self.server.crash();
        self.inputs.clear();
        // Clients without an answer ask again.
        for asked in std::mem::take(&mut self.asked).into_values() {
            match asked {
                Asked::Start(operation) => self.lost.push(*operation),
                Asked::Arrival(id) => self.queue.push(self.now + downtime, Due::Arrival(id)),
                Asked::Setup | Asked::Scripted(_) | Asked::Snapshot(..) | Asked::Other => {}
            }
        }
        for (event, _) in std::mem::take(&mut self.snapshots) {
            self.note(event, "the server went down");
        }
        self.keys.iter_mut().for_each(|key| *key = None);
        for number in 0..self.nodes.len() as u32 {
            self.with_node(number, Node::disconnected);
        }
        self.queue.push(self.now + downtime, Due::ServerStarts);
    }

    pub(super) fn server_starts(&mut self) -> Result<(), SimError> {
        self.server.restart(self.now)?;
        for number in 0..self.nodes.len() as u32 {
            self.node_connects(number);
        }
        self.queue.push(self.now, Due::Resubmit);
        Ok(())
    }
}

fn options(at: &str, config: &yson::Map) -> Vec<Command> {
    let each = config.iter().map(|(name, value)| {
        let name = String::from_utf8_lossy(name);
        set(&format!("{at}/{}", escape_literal(&*name)), value.clone())
    });
    each.collect()
}
