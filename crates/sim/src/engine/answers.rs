//! Controllers that take their time (`models.delays.schedule_allocation`): what a heartbeat starts is booked in
//! the scheduler at once, so other heartbeats see it, and reaches the node later (simulator.md 5.8).

use super::*;
use std::collections::VecDeque;
use wire::ServerMessage;

/// Messages on their way, by node. What was said later comes later, too.
#[derive(Default)]
pub(super) struct Answers(BTreeMap<u32, VecDeque<(Time, NodeKey, ServerMessage)>>);

impl Engine<'_> {
    /// The server says something to a node.
    pub(super) fn tell_node(&mut self, key: NodeKey, node: u32, message: ServerMessage) {
        let delay = match message {
            ServerMessage::Start(_) => self.scenario.models.delays.schedule_allocation,
            _ => Span::ZERO,
        };
        let last = self.answers.0.get(&node).and_then(|queue| queue.back()).map(|(at, ..)| *at);
        if delay == Span::ZERO && last.is_none() {
            return self.with_node(node, |node, around| node.hear(message, around));
        }
        let at = last.map_or(self.now + delay, |last| last.max(self.now + delay));
        self.answers.0.entry(node).or_default().push_back((at, key, message));
        self.queue.push(at, Due::NodeIsTold(node));
    }

    /// The next of them is there; what came over a connection that is gone is lost with it.
    pub(super) fn node_is_told(&mut self, node: u32) {
        let Some(queue) = self.answers.0.get_mut(&node) else { return };
        let told = queue.pop_front();
        if queue.is_empty() {
            self.answers.0.remove(&node);
        }
        if let Some((_, key, message)) = told
            && self.node_of(key) == Some(node)
        {
            self.with_node(node, |node, around| node.hear(message, around));
        }
    }
}
