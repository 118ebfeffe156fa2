//! What goes wrong, by a seed: connections break, messages are late or come twice, nodes die, the clock
//! jumps, the store is slow, and the server dies between any two things that it wanted done.
//!
//! Faults stop after a while; then everybody comes back, and all work must end. What must hold besides
//! the invariants of the core, by name:
//!
//! - `NODE-1`: the jobs of a node never hold more than the node has.
//! - `UNIT-3`: no unit of exclusive work runs twice at once, on whatever nodes (S19).
//! - `UNIT-1`: a unit of work is done once.
//! - `UNIT-2`: an operation that completed has done all its units.
//! - `LIVE-1`: when nothing goes wrong any more, all operations end.

use super::*;
use crate::random::{Draw, Kind};
use std::collections::{BTreeSet, VecDeque};
use wire::{NodeMessage, ServerMessage};

/// See the module page.
pub(super) struct Faults {
    draw: Draw,
    /// Faults stop then.
    until: Time,
    /// Messages on their way to nodes whose stream is slow.
    late: BTreeMap<u32, VecDeque<(NodeKey, ServerMessage)>>,
    /// Nodes that are cut off.
    cuts: BTreeMap<u32, Cut>,
    /// What was said last, to be said again.
    last_starts: Vec<(Time, NodeKey, ServerMessage)>,
    last_ends: Vec<(NodeKey, NodeMessage)>,
    /// Units that are done.
    done: BTreeMap<OperationId, BTreeSet<(String, u64)>>,
    /// How many faults of each kind there were.
    pub seen: BTreeMap<&'static str, u64>,
}

/// A connection through which nothing comes in one direction or both, and neither side is told.
#[derive(Default)]
struct Cut {
    to_server: bool,
    to_node: bool,
    /// On its way to the server.
    held: Vec<Input>,
}

/// Orders to start are not repeated later than this (jobs-and-nodes.md 9.4).
const REPEATED_WITHIN: Span = Span::from_secs(60);

/// How long things go wrong.
const STORM: Span = Span::from_secs(300);

impl Faults {
    pub fn new(seed: u64, start: Time) -> Faults {
        Faults {
            draw: Draw::new(seed, Kind::Fault, 0, 0),
            until: start + STORM,
            late: BTreeMap::new(),
            cuts: BTreeMap::new(),
            last_starts: Vec::new(),
            last_ends: Vec::new(),
            done: BTreeMap::new(),
            seen: BTreeMap::new(),
        }
    }

    /// Does the node hear nothing that comes over its connection?
    pub fn is_deaf(&self, node: u32) -> bool {
        self.cuts.get(&node).is_some_and(|cut| cut.to_node)
    }

    /// What cut-off nodes say does not arrive now.
    pub fn hold_back(&mut self, keys: &[Option<u32>], inputs: &mut Vec<Input>) {
        if self.cuts.is_empty() {
            return;
        }
        let node_of = |key: &NodeKey| keys.get(key.0 as usize).copied().flatten();
        for input in std::mem::take(inputs) {
            let node = match &input {
                Input::Node { node: key, .. } | Input::NodeUnchanged(key) => node_of(key),
                _ => None,
            };
            match node.and_then(|node| self.cuts.get_mut(&node)).filter(|cut| cut.to_server) {
                Some(cut) => cut.held.push(input),
                None => inputs.push(input),
            }
        }
    }

    fn millis(&mut self, max: u64) -> Span {
        Span::from_micros(self.draw.below(max * 1000))
    }

    /// Units are counted by the log, which is durable.
    pub fn completed(&mut self, id: OperationId, task: &str, cookie: u64) -> Option<String> {
        let new = self.done.entry(id).or_default().insert((task.to_owned(), cookie));
        (!new).then(|| format!("UNIT-1: unit {cookie} of task {task} of operation {id} is done twice"))
    }

    pub fn operation_completed(&self, id: OperationId, units: u64) -> Option<String> {
        let done = self.done.get(&id).map_or(0, |done| done.len() as u64);
        (done != units).then(|| format!("UNIT-2: operation {id} completed with {done} of {units} units done"))
    }

    pub fn note_input(&mut self, input: &Input) {
        if let Input::Node { node, message: message @ NodeMessage::Jobs(_) } = input {
            self.last_ends.push((*node, message.clone()));
            if self.last_ends.len() > 8 {
                self.last_ends.remove(0);
            }
        }
    }
}

impl Engine<'_> {
    /// Something goes wrong now, and again later.
    pub(super) fn fault(&mut self) {
        let Some(mut faults) = self.faults.take() else { return };
        let over = self.now >= faults.until;
        if !over {
            let kind = self.one_fault(&mut faults);
            *faults.seen.entry(kind).or_default() += 1;
            let next = Span::from_millis(20) + faults.millis(8_000);
            self.queue.push(self.now + next, Due::Fault);
        } else {
            self.server.disarm();
            self.faults = Some(faults);
            for node in 0..self.nodes.len() as u32 {
                self.cut_ends(node);
                self.agent_revives(node);
                self.node_repaired(node);
                self.node_connects(node);
            }
            return;
        }
        self.faults = Some(faults);
    }

    fn one_fault(&mut self, faults: &mut Faults) -> &'static str {
        let node = faults.draw.below(self.nodes.len() as u64) as u32;
        match faults.draw.below(14) {
            0 | 1 => {
                self.server.arm(faults.draw.below(16));
                "server dies soon"
            }
            2 => {
                let noticed = faults.draw.below(10) < 7;
                self.cut(node, noticed);
                let back = faults.millis(60_000);
                self.queue.push(self.now + back, Due::NodeConnects(node));
                "connection lost"
            }
            3 => {
                self.node_fails(node, false);
                let back = faults.millis(90_000);
                self.queue.push(self.now + back, Due::NodeRepaired(node));
                "node dies"
            }
            4 => {
                let is_well = self.nodes[node as usize].agent_lives() && !faults.cuts.contains_key(&node);
                self.node_fails(node, is_well);
                let back = faults.millis(30_000);
                self.queue.push(self.now + back, Due::NodeRepaired(node));
                "node leaves"
            }
            5 => {
                faults.late.entry(node).or_default();
                let late = faults.millis(3_000);
                self.queue.push(self.now + late, Due::NodeHears(node));
                "messages late"
            }
            6 => {
                for (at, key, message) in std::mem::take(&mut faults.last_starts) {
                    // Nodes know for a minute what they have started.
                    if let Some(node) = self.node_of(key).filter(|_| self.now.since(at) < REPEATED_WITHIN) {
                        self.with_node(node, |node, around| node.hear(message, around));
                    }
                }
                for (node, message) in std::mem::take(&mut faults.last_ends) {
                    if self.node_of(node).is_some() {
                        self.inputs.push(Input::Node { node, message });
                    }
                }
                "messages repeated"
            }
            7 => {
                self.server.hold(true);
                let slow = faults.millis(500);
                self.queue.push(self.now + slow, Due::StoreLands);
                "store slow"
            }
            8 => {
                let away = Span::from_secs(1) + faults.millis(150_000);
                if self.server.kernel().is_some() {
                    self.server_dies(away);
                }
                "server away"
            }
            kind @ (9 | 10) => {
                let (one_way, back) = (kind == 10, faults.millis(200_000));
                let direction = faults.draw.below(2) == 0;
                let cut = faults.cuts.entry(node).or_default();
                cut.to_server |= !one_way || direction;
                cut.to_node |= !one_way || !direction;
                if cut.to_node {
                    faults.late.entry(node).or_default();
                }
                self.queue.push(self.now + back, Due::CutEnds(node));
                if one_way { "cut one way" } else { "cut both ways" }
            }
            11 => {
                if self.nodes[node as usize].online && self.nodes[node as usize].agent_lives() {
                    self.with_node(node, Node::stop_agent);
                }
                let back = faults.millis(200_000);
                self.queue.push(self.now + back, Due::AgentRevives(node));
                "agent stopped"
            }
            12 => {
                if self.nodes[node as usize].online {
                    self.agent_dies(faults, node);
                }
                let back = faults.millis(150_000);
                self.queue.push(self.now + back, Due::AgentRevives(node));
                "agent killed"
            }
            _ => {
                let jump = faults.millis(20_000);
                self.now += jump;
                "clock jumps"
            }
        }
    }

    /// True if the message waits in a slow stream.
    pub(super) fn is_late(&mut self, key: NodeKey, node: u32, message: &ServerMessage) -> bool {
        let Some(faults) = &mut self.faults else { return false };
        if let ServerMessage::Start(_) = message {
            faults.last_starts.push((self.now, key, message.clone()));
            if faults.last_starts.len() > 8 {
                faults.last_starts.remove(0);
            }
        }
        match faults.late.get_mut(&node) {
            Some(queue) => {
                queue.push_back((key, message.clone()));
                true
            }
            None => false,
        }
    }

    /// The stream of a node is fast again: it hears what waited, unless the connection is gone.
    pub(super) fn node_hears(&mut self, number: u32) {
        if self.faults.as_ref().is_some_and(|faults| faults.is_deaf(number)) {
            return;
        }
        let waiting = self.faults.as_mut().and_then(|faults| faults.late.remove(&number));
        for (key, message) in waiting.into_iter().flatten() {
            if self.node_of(key) == Some(number) {
                self.with_node(number, |node, around| node.hear(message, around));
            }
        }
    }

    /// The connection of a node breaks; the server may not see it.
    fn cut(&mut self, number: u32, noticed: bool) {
        let Some(key) = self.nodes[number as usize].key else { return };
        self.keys[key.0 as usize] = None;
        self.with_node(number, Node::disconnected);
        if noticed {
            self.inputs.push(Input::NodeDisconnected(key));
        }
    }

    /// A node that has no connection opens one; if it cannot, it tries again.
    pub(super) fn node_connects(&mut self, number: u32) {
        let node = &self.nodes[number as usize];
        if !node.online || node.key.is_some() || self.server.kernel().is_none() {
            return;
        }
        let is_cut = self.faults.as_ref().is_some_and(|faults| faults.cuts.contains_key(&number));
        if is_cut || !node.agent_lives() {
            self.queue.push(self.now + Span::from_secs(1), Due::NodeConnects(number));
            return;
        }
        self.connect(number);
    }

    /// The process of an agent is gone, and its connection with it, which the server sees unless it is cut off.
    fn agent_dies(&mut self, faults: &Faults, number: u32) {
        let key = self.nodes[number as usize].key;
        self.with_node(number, Node::kill_agent);
        if let Some(key) = key {
            self.keys[key.0 as usize] = None;
            if faults.cuts.get(&number).is_none_or(|cut| !cut.to_server) {
                self.inputs.push(Input::NodeDisconnected(key));
            }
        }
    }

    /// An agent that was stopped or killed lives again.
    pub(super) fn agent_revives(&mut self, number: u32) {
        if !self.nodes[number as usize].online {
            return;
        }
        self.with_node(number, Node::revive_agent);
        self.node_connects(number);
    }

    /// What was on its way arrives, unless the connection is gone, of which the node hears now.
    pub(super) fn cut_ends(&mut self, number: u32) {
        let Some(cut) = self.faults.as_mut().and_then(|faults| faults.cuts.remove(&number)) else { return };
        let key = self.nodes[number as usize].key;
        let is_open = key.is_some_and(|key| self.keys[key.0 as usize] == Some(number));
        if is_open {
            let still_there = |input: &Input| match input {
                Input::Node { node, .. } | Input::NodeUnchanged(node) => Some(*node) == key,
                _ => true,
            };
            self.inputs.extend(cut.held.into_iter().filter(still_there));
            self.node_hears(number);
            return;
        }
        if let Some(faults) = &mut self.faults {
            faults.late.remove(&number);
        }
        if key.is_some() {
            self.with_node(number, Node::disconnected);
        }
        self.queue.push(self.now + Span::from_secs(1), Due::NodeConnects(number));
    }

    /// `UNIT-3`.
    pub(super) fn check_exclusive_units(&mut self) {
        let mut units = BTreeMap::new();
        for node in &self.nodes {
            let exclusive = node.jobs.iter().filter(|(_, job)| job.lease.is_some() && job.start.is_some());
            for (id, job) in exclusive {
                if let Some((other, place)) = units.insert(&job.unit, (*id, &node.name)) {
                    let at = self.now.since(self.scenario.start).as_millis();
                    let (operation, task, cookie) = &job.unit;
                    let what = format!(
                        "{at} ms: UNIT-3: unit {cookie} of task {task} of operation {operation} runs twice: job {other} on \
                         {place}, job {id} on {}",
                        node.name
                    );
                    self.violations.push(what);
                }
            }
        }
    }

    /// What must hold between any two turns.
    pub(super) fn check_nodes(&mut self) {
        for node in self.nodes.iter().filter(|node| node.online) {
            let (has, holds) = (node.settings.resource_limits, node.core.ledger().acquired());
            let fits = vocab::RESOURCES.iter().all(|r| {
                // Memory may grow above what was granted, limits may shrink.
                *r == vocab::Resource::Memory || holds.raw(*r) <= has.raw(*r)
            });
            if !fits && !node.shrunk {
                let at = self.now.since(self.scenario.start).as_millis();
                let what = format!("{at} ms: NODE-1: jobs of {} hold {holds} of {has}", node.name);
                self.violations.push(what);
            }
        }
    }
}
