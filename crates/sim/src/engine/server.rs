//! The server without its edges: the shipped kernel, and a store that takes every batch at once.

use super::performance::{Meter, Took};
use crate::error::SimError;
use kernel::{Body, Command, Config, Effect, Input, Kernel, NodeKey, Phase, Records, Request};
use std::collections::{BTreeMap, VecDeque};
use vocab::batch::{Batch, Op, Table};
use vocab::planted::{Bug, strikes};
use vocab::{Failure, Guid, Time};
use wire::ServerMessage;

/// What a store holds.
pub type Store = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// Puts a batch into a store.
pub fn apply(store: &mut Store, batch: &Batch) {
    for op in &batch.ops {
        match op.clone() {
            Op::Put { table, key, value } => drop(store.insert((table, key), value)),
            Op::Delete { table, key } => drop(store.remove(&(table, key))),
            Op::DeletePrefix { table, prefix } => {
                let end = |key: &(Table, Vec<u8>)| key.0 == table && key.1.starts_with(&prefix);
                let gone: Vec<_> =
                    store.range((table, prefix.clone())..).map(|(k, _)| k.clone()).take_while(end).collect();
                gone.iter().for_each(|key| drop(store.remove(key)));
            }
        }
    }
}

/// What comes out of the server, in order.
#[derive(Debug)]
pub enum Outcome {
    /// A reply.
    Reply(u64, Result<Body, Failure>),
    /// A message for a node.
    ToNode(NodeKey, ServerMessage),
    /// A connection is closed.
    Closed(NodeKey),
    /// A record of the event log.
    Events {
        /// Number of its first event.
        first: u64,
        /// Events at its beginning that are known.
        known: usize,
        stored: Vec<u8>,
    },
}

/// See the module page.
pub struct Server {
    config: Config,
    kernel: Option<Kernel>,
    store: Option<Store>,
    effects: Vec<Effect>,
    held: VecDeque<(u64, Effect)>,
    durable: u64,
    logged: u64,
    next_request: u64,
    wake: Time,
    /// Batches on their way to the store.
    in_flight: VecDeque<(u64, Batch)>,
    /// They stay there.
    held_back: bool,
    /// It dies after so many effects more.
    fuse: Option<u64>,
    died: bool,
    /// Share updates are measured with it.
    meter: Option<Meter>,
    pub(super) took: Took,
}

impl Server {
    /// A new cluster. `restarts`: keep what is durable.
    pub fn start(config: Config, now: Time, restarts: bool) -> Result<Server, SimError> {
        let mut server = Server {
            config,
            kernel: None,
            store: restarts.then(Store::new),
            effects: Vec::new(),
            held: VecDeque::new(),
            durable: 0,
            logged: 0,
            next_request: 0,
            wake: now,
            in_flight: VecDeque::new(),
            held_back: false,
            fuse: None,
            died: false,
            meter: None,
            took: Took::default(),
        };
        server.restart(now)?;
        Ok(server)
    }

    /// The next life, from what is durable.
    pub fn restart(&mut self, now: Time) -> Result<(), SimError> {
        self.config.life += 1;
        let mut records = Records::default();
        for ((table, key), value) in self.store.iter().flatten() {
            if Records::TABLES.contains(table) {
                records.add(*table, key, value);
            }
        }
        let recovered = Kernel::recover(self.config.clone(), records, now, &mut self.effects);
        let kernel = recovered.map_err(|e| SimError::file(std::path::Path::new("store"), e.to_string()))?;
        self.kernel = Some(kernel);
        self.durable = 0;
        self.wake = now;
        Ok(())
    }

    /// Measures share updates from now on.
    pub fn measure(&mut self, meter: Option<Meter>) {
        self.meter = meter;
    }

    /// Dies after so many effects more.
    pub fn arm(&mut self, effects: u64) {
        self.fuse.get_or_insert(effects);
    }

    /// Nothing goes wrong from now on.
    pub fn disarm(&mut self) {
        self.fuse = None;
        self.held_back = false;
    }

    /// The store takes its time, or does not any more.
    pub fn hold(&mut self, hold: bool) {
        self.held_back = hold;
    }

    /// It has died in the last turn. Says so once.
    pub fn has_died(&mut self) -> bool {
        std::mem::take(&mut self.died)
    }

    /// `kill -9`: what was not carried out is gone. Of the batches on their way to the store the first half
    /// has made it, and nobody heard of that.
    pub fn crash(&mut self) {
        let landed = self.in_flight.len().div_ceil(2);
        for (_, batch) in self.in_flight.drain(..).take(landed) {
            if let Some(store) = &mut self.store {
                apply(store, &batch);
            }
        }
        self.fuse = None;
        self.kernel = None;
        self.effects.clear();
        self.held.clear();
        self.wake = Time::MAX;
    }

    /// When it wants to be called again.
    pub fn wake(&self) -> Time {
        self.wake
    }

    /// The kernel, while it lives.
    pub fn kernel(&self) -> Option<&Kernel> {
        self.kernel.as_ref()
    }

    /// The kernel, to set up a cluster.
    pub fn kernel_mut(&mut self) -> Option<&mut Kernel> {
        self.kernel.as_mut()
    }

    /// A request; its number comes back with the reply.
    pub fn request(&mut self, user: &str, mutation_id: Option<Guid>, command: Command) -> (u64, Input) {
        self.next_request += 1;
        let request = Request { id: self.next_request, user: user.to_owned(), mutation_id, command };
        (self.next_request, Input::Request(request))
    }

    /// Hears what came in and decides. True if shares were computed.
    pub fn turn(&mut self, now: Time, inputs: &mut Vec<Input>, out: &mut Vec<Outcome>) -> bool {
        let Some(kernel) = &mut self.kernel else {
            inputs.clear();
            return false;
        };
        for input in inputs.drain(..) {
            kernel.handle(now, input, &mut self.effects);
        }
        let flushed = match self.meter {
            None => kernel.flush(now, true, &mut self.effects),
            Some(meter) => {
                let (mut before, took) = ((meter.now)(), &mut self.took);
                let mut over = |phase| {
                    let at = (meter.now)();
                    if phase == Phase::Shares {
                        took.add(at - before);
                    }
                    before = at;
                };
                kernel.flush_in_phases(now, true, &mut self.effects, &mut over)
            }
        };
        self.wake = flushed.wake;
        self.land(now, out);
        for effect in std::mem::take(&mut self.effects) {
            match &mut self.fuse {
                Some(0) => {
                    self.died = true;
                    break;
                }
                Some(left) => *left -= 1,
                None => {}
            }
            self.carry_out(now, effect, out);
        }
        flushed.updated
    }

    fn carry_out(&mut self, now: Time, effect: Effect, out: &mut Vec<Outcome>) {
        let after = match effect {
            Effect::Commit { seq, batch } => {
                self.in_flight.push_back((seq, batch));
                self.land(now, out);
                return;
            }
            Effect::Reply { after, .. }
            | Effect::ToNode { after, .. }
            | Effect::Events { after, .. }
            | Effect::ForgetOperation { after, .. }
            | Effect::DeleteBlob { after, .. }
            | Effect::CollectGarbage { after } => after,
            Effect::Disconnect(_) => 0,
        };
        match after > self.durable {
            true => self.held.push_back((after, effect)),
            false => self.deliver(now, effect, out),
        }
    }

    /// Batches become durable, and what waited for them goes out.
    fn land(&mut self, now: Time, out: &mut Vec<Outcome>) {
        if self.held_back {
            return;
        }
        while let Some((seq, batch)) = self.in_flight.pop_front() {
            if let Some(store) = self.store.as_mut().filter(|_| !strikes(Bug::LostBatch, 15)) {
                apply(store, &batch);
            }
            self.durable = seq;
            while let Some((after, effect)) = self.held.pop_front() {
                if after > seq {
                    self.held.push_front((after, effect));
                    break;
                }
                self.deliver(now, effect, out);
            }
        }
    }

    fn deliver(&mut self, now: Time, effect: Effect, out: &mut Vec<Outcome>) {
        match effect {
            Effect::Reply { request, body, .. } => out.push(Outcome::Reply(request, body)),
            Effect::ToNode { node, message, .. } => out.push(Outcome::ToNode(node, message)),
            Effect::Disconnect(node) => out.push(Outcome::Closed(node)),
            Effect::Events { first, end, stored, .. } => {
                // After a restart what was not acknowledged comes again.
                if end > self.logged + 1 {
                    let known = (self.logged + 1).saturating_sub(first) as usize;
                    out.push(Outcome::Events { first, known, stored });
                    self.logged = end - 1;
                }
                if let Some(kernel) = &mut self.kernel {
                    kernel.handle(now, Input::EventsWritten(self.logged), &mut self.effects);
                }
            }
            Effect::Commit { .. }
            | Effect::ForgetOperation { .. }
            | Effect::DeleteBlob { .. }
            | Effect::CollectGarbage { .. } => {}
        }
    }
}
