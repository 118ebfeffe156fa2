//! Blobs that a start of the server has not removed, since they are too many for what a crash leaves behind.
//!
//! The edge counts them ([`Input::GarbageHeld`](crate::Input::GarbageHeld)) and removes them; here are the alert, the
//! administrator's confirmation, and the record that keeps both over restarts.

use crate::{Effect, Kernel};
use vocab::batch::Table;
use vocab::{Failure, Time};
use yson::Value;

/// Key of the decision in `Table::Meta`.
const KEY: &[u8] = b"garbage_collection";

/// What was decided about garbage, as it is kept over restarts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GarbageDecision {
    /// It waits for a confirmation.
    Held,
    /// An administrator has confirmed that it is removed.
    Confirmed,
}

/// Garbage that waits for a confirmation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldGarbage {
    /// Blobs that nothing refers to.
    pub blobs: usize,
    /// All blobs.
    pub total: usize,
    /// Those of the first that were written after what the store knows of.
    pub newer: usize,
}

#[derive(Default)]
pub(crate) struct Garbage {
    decision: Option<GarbageDecision>,
    /// Since when, and what.
    held: Option<(Time, HeldGarbage)>,
}

impl Garbage {
    /// Takes a record of `Table::Meta`, if it is that of the decision.
    pub fn restore(&mut self, key: &[u8], value: &[u8]) {
        if key == KEY {
            // Whatever a later version may write there: asking once more removes nothing.
            let is_confirmed = value == b"confirmed";
            self.decision =
                Some(if is_confirmed { GarbageDecision::Confirmed } else { GarbageDecision::Held });
        }
    }

    /// `garbage_collection_held`.
    pub fn alert(&self) -> Option<Failure> {
        let (since, HeldGarbage { blobs, total, newer }) = self.held?;
        let message = format!(
            "Nothing refers to {blobs} of {total} blobs, of which {newer} are newer than the store: they are kept. If \
             store.redb is an older copy, stop the server and restore the newest one; if it is the right one, remove them \
             with \"millpond server gc --confirm\""
        );
        let alert = Failure::new(message).with("blob_count", blobs).with("total_blob_count", total);
        Some(alert.with("newer_blob_count", newer).with("since", since))
    }
}

impl Kernel {
    /// What an earlier start, or an administrator, has decided about garbage; `None` if there was nothing to decide.
    pub fn garbage_decision(&self) -> Option<GarbageDecision> {
        self.garbage.decision
    }

    /// The start has kept garbage.
    pub(crate) fn hold_garbage(&mut self, now: Time, held: HeldGarbage) {
        self.garbage.held = Some((now, held));
        self.decide_about_garbage(GarbageDecision::Held);
    }

    /// `gc_collect`: the garbage that was kept may be removed.
    pub(crate) fn collect_garbage(&mut self, out: &mut Vec<Effect>) -> Result<Value, Failure> {
        let Some((_, held)) = self.garbage.held.take() else {
            return Err(Failure::new("No garbage collection waits for a confirmation"));
        };
        self.decide_about_garbage(GarbageDecision::Confirmed);
        out.push(Effect::CollectGarbage { after: self.open.seq });
        Ok(yson::map! {"blob_count" => held.blobs}.into())
    }

    /// Nothing of it is left.
    pub(crate) fn garbage_collected(&mut self) {
        self.garbage = Garbage::default();
        self.open.batch.delete(Table::Meta, KEY);
    }

    fn decide_about_garbage(&mut self, decision: GarbageDecision) {
        if self.garbage.decision == Some(decision) {
            return;
        }
        self.garbage.decision = Some(decision);
        let value: &[u8] = match decision {
            GarbageDecision::Held => b"held",
            GarbageDecision::Confirmed => b"confirmed",
        };
        self.open.batch.put(Table::Meta, KEY, value);
    }
}
