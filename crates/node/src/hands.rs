//! The seam between thought and action.

use nodecore::{NodeEffect, NodeInput};
use wire::NodeMessage;

/// What acting leads to.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // the large one is the usual one
pub enum Outcome {
    /// For the core.
    Input(NodeInput),
    /// For the server, past the core: answers that are data only.
    Send(NodeMessage),
}

/// Carries out effects. The real one has processes and files; another may only play them.
pub trait Hands {
    /// What work beside the loop reports; it goes through the agent's queue.
    type News: Send + 'static;

    /// Carries out one effect (never `Send`, `WakeAt` or `LeaseIsHalfOver`, which are the agent's own). What is known at
    /// once goes to `outcomes`, the rest comes later as news. Must not block.
    fn act(&mut self, effect: NodeEffect, outcomes: &mut Vec<Outcome>);

    /// Takes in a piece of news.
    fn hear(&mut self, news: Self::News, outcomes: &mut Vec<Outcome>);
}
