//! `scheduling`: scripts of what happens in a cluster through the shipped scheduler (scheduling.md).
//!
//! ```text
//! {"node":"n","limits":{"cpu":4}}
//! {"pool":"p"}
//! {"operation":"A","pool":"p","job":{"cpu":1},"count":6}
//! {"advance":10}
//! ```
//!
//! One line goes in, what was decided and what has changed comes out: [`Script::answer`]. Time is the
//! script's, nothing reads a clock, and ids are counted: the same script gives the same answers to the
//! byte.
//!
//! What it is: the scheduler that the server runs, called through its public interface in the order in
//! which the kernel calls it, with nodes that report on time and controllers that want what the script
//! says. What it is not: a simulator of a workload. Jobs end when a line says so (and when they were told
//! to go), and there is one pool tree.
//!
//! Modules in reading order: `event` is a line as a value and `read` reads it (`options` those of the
//! scheduler), `world` is the server and `node` a node of it, `act` does what a line says, `log` keeps what
//! was decided, `state` finds what has changed, `answer` puts both together and `print` prints it. `names`
//! are those of operations and allocations.

mod act;
mod answer;
mod event;
mod log;
mod names;
mod node;
mod options;
mod print;
mod read;
mod state;
mod world;

use crate::Refusal;
use crate::read::{Node, parse};
use answer::Answer;
use event::Event;
use state::State;
use world::{HEARTBEAT_PERIOD, World};

/// How answers look.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Form {
    /// One JSON object a line.
    #[default]
    Json,
    /// A transcript for people.
    Text,
}

/// A script on its way, line after line.
#[derive(Clone, Debug)]
pub struct Script {
    form: Form,
    world: World,
    /// What has been shown so far.
    shown: State,
    answers: u64,
}

impl Script {
    /// Before the first line.
    pub fn new(form: Form) -> Script {
        Script { form, world: World::new(Some(HEARTBEAT_PERIOD)), shown: State::default(), answers: 0 }
    }

    /// Answers the next line. A line that is refused has changed nothing.
    pub fn answer(&mut self, line: &[u8]) -> Result<Vec<u8>, Refusal> {
        let value = parse(line)?;
        let line = read::line(&Node::root(&value), &self.world)?;
        if let Event::Script { heartbeat_period } = line.event {
            *self = Script { world: World::new(heartbeat_period), ..Script::new(self.form) };
        }
        let question = line.event.clone();
        let refused = self.world.act(line.event).err();
        self.answers += 1;
        let log = std::mem::take(&mut self.world.log);
        let mut answer = Answer::new(self.answers, &line.did, line.note.as_deref(), self.world.now);
        answer.decisions(&log, refused.as_ref(), &self.world);
        let state = State::of(&self.world);
        answer.changes(state.since(&self.shown));
        match &question {
            Event::Explain(subject) => answer.explanation(subject, &self.world),
            Event::Show(shown) => answer.shown(shown, &state, &self.world),
            _ => {}
        }
        self.shown = state;
        debug_assert_eq!(self.world.scheduler.check_invariants(), Vec::<String>::new());
        let answer = answer.finish();
        Ok(match self.form {
            Form::Json => print::json(&answer),
            Form::Text => print::transcript(&answer),
        })
    }
}
