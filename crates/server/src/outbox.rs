//! Holds replies and orders back until what they depend on is durable.
//!
//! The kernel's effects come in order; those whose number is durable already (most reads) pass at
//! once, the others wait here for the commit thread's word.

use kernel::{Effect, Seq};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module page. `deliver` is called for each effect exactly once, from either thread.
pub struct Outbox<D> {
    durable: AtomicU64,
    held: Mutex<VecDeque<(Seq, Effect)>>,
    deliver: D,
}

impl<D: Fn(Effect)> Outbox<D> {
    /// Nothing is durable yet but number 0, on which nothing depends.
    pub fn new(deliver: D) -> Outbox<D> {
        Outbox { durable: AtomicU64::new(0), held: Mutex::new(VecDeque::new()), deliver }
    }

    /// Delivers now or later.
    pub fn offer(&self, after: Seq, effect: Effect) {
        if after > self.durable.load(Ordering::Acquire) {
            let mut held = self.held.lock().unwrap_or_else(|e| e.into_inner());
            // Looked at again under the lock: the commit may have finished in between, and nobody
            // would come back for this effect.
            if after > self.durable.load(Ordering::Acquire) {
                held.push_back((after, effect));
                return;
            }
        }
        (self.deliver)(effect);
    }

    /// Everything up to `seq` is durable. That is said only when what waited has been delivered: an effect
    /// that need not wait may not overtake it.
    pub fn committed(&self, seq: Seq) {
        let mut held = self.held.lock().unwrap_or_else(|e| e.into_inner());
        // Numbers are almost sorted (a repeated mutation may wait for an older one), and an effect behind a
        // waiting one may not overtake it: take from the front only.
        let n = held.iter().take_while(|(after, _)| *after <= seq).count();
        held.drain(..n).for_each(|(_, effect)| (self.deliver)(effect));
        self.durable.store(seq, Ordering::Release);
    }

    /// The store is broken: nothing that waits will ever be durable.
    pub fn take_held(&self) -> Vec<Effect> {
        let mut held = self.held.lock().unwrap_or_else(|e| e.into_inner());
        held.drain(..).map(|(_, effect)| effect).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn reply(request: u64) -> Effect {
        Effect::Reply { request, after: 0, body: Ok(kernel::Body::Value(yson::Value::Entity)) }
    }

    #[test]
    fn effects_wait_for_their_number_and_keep_their_order() {
        let (sender, receiver) = channel();
        let outbox = Outbox::new(move |effect| {
            if let Effect::Reply { request, .. } = effect {
                sender.send(request).expect("the receiver lives");
            }
        });
        let delivered = || receiver.try_iter().collect::<Vec<_>>();
        outbox.offer(0, reply(1));
        outbox.offer(2, reply(2));
        outbox.offer(0, reply(3));
        outbox.offer(3, reply(4));
        assert_eq!(delivered(), [1, 3]);
        outbox.committed(1);
        assert_eq!(delivered(), [0u64; 0]);
        outbox.committed(2);
        assert_eq!(delivered(), [2]);
        outbox.offer(2, reply(5));
        assert_eq!(delivered(), [5]);
        assert_eq!(outbox.take_held().len(), 1);
    }
}
