//! Nodes that expire: who uses them puts that off, and what has expired is removed.

use crate::access::paths_of;
use crate::{Command, Effect, Kernel};
use cypress::{Context, Place, RemoveOptions, Resolved};
use vocab::batch::Table;
use vocab::{ObjectId, Span, Time};
use yson::ypath::{Step, YPath};

/// Nodes that one pass looks at, with those below them: however many have expired, others get their turn.
const NODES_PER_PASS: usize = 1000;
/// Nodes of a discarded subtree that one turn removes.
const NODES_PER_SLICE: usize = 500;
/// A large node that somebody has locked is gone over no more often.
const LOOK_AGAIN: Span = Span::from_secs(60);
/// It removes what has expired.
const REMOVER: &str = "root";

impl Kernel {
    /// Whatever a command reads or writes is used. Whether it is there, what its attributes are, and who may do what
    /// with it can be asked without using it.
    pub(crate) fn note_use(&mut self, command: &Command) {
        let only_asks = matches!(
            command,
            Command::Exists { .. } | Command::CheckPermission { .. } | Command::Authorize(_)
        );
        if only_asks || !self.tree.trunk().anything_expires() {
            return;
        }
        let node = |resolved| match resolved {
            Ok(Resolved::Local(Place { node, rest })) => {
                (!matches!(rest.first(), Some(Step::Attribute(_) | Step::AllAttributes))).then_some(node)
            }
            _ => None,
        };
        let paths = paths_of(command);
        self.note_use_of(
            paths.iter().filter_map(|(path, last)| node(self.tree.resolve(path, *last))).collect(),
        );
    }

    /// These nodes are used.
    pub(crate) fn note_use_of(&mut self, nodes: Vec<ObjectId>) {
        let trunk = self.tree.trunk();
        self.pending_work.used.extend(nodes.into_iter().filter(|id| trunk.expires_unused(*id)));
    }

    /// Writes down what was used in this turn. Nobody waits for that: only a crash could tell.
    pub(crate) fn renew_used(&mut self, now: Time) {
        let used = std::mem::take(&mut self.pending_work.used);
        if used.is_empty() {
            return;
        }
        let context = Context { now, user: REMOVER, ids: &mut self.ids };
        let done = self.tree.overrule(context, |edit| {
            used.into_iter().for_each(|id| edit.renew(id));
            Ok(())
        });
        for change in done.into_iter().flat_map(|done| done.changes) {
            if let Some(record) = change.value {
                self.open.batch.put(Table::Cypress, change.key, record);
            }
        }
    }

    /// Removes the next nodes that have expired. What somebody has locked waits until he has ended.
    pub(crate) fn remove_expired(&mut self, now: Time, out: &mut Vec<Effect>) {
        let mut room = NODES_PER_PASS;
        let mut after = self.expired_until.take();
        self.expired_later.retain(|_, at| now < *at);
        while let Some(next) = self.tree.trunk().next_expired(now, after) {
            if room == 0 {
                self.expired_until = after;
                return;
            }
            after = Some(next);
            let (_, id) = next;
            if self.expired_later.contains_key(&id) {
                room -= 1;
                continue;
            }
            let trunk = self.tree.trunk();
            // Of those with more nodes only the locks are gone through, and they leave in slices.
            let is_large = trunk.subtree_exceeds(id, NODES_PER_PASS);
            let nodes = if is_large { Vec::new() } else { trunk.subtree(id) };
            let is_free = match is_large {
                true => !trunk.has_locks_within(id),
                false => nodes.iter().all(|node| trunk.lock_count(*node) == 0),
            };
            room = if is_large { 0 } else { room.saturating_sub(nodes.len()) };
            let is_removed = is_free && self.remove_expired_node(now, id, out);
            if !is_removed && is_large {
                self.expired_later.insert(id, now + LOOK_AGAIN);
            }
        }
    }

    /// Removes a slice of what was too large to be removed in one go.
    pub(crate) fn empty_trash(&mut self, now: Time, out: &mut Vec<Effect>) {
        if !self.tree.trunk().has_discarded() {
            return;
        }
        let context = Context { now, user: REMOVER, ids: &mut self.ids };
        let done = self.tree.overrule(context, |edit| Ok(edit.take_discarded(NODES_PER_SLICE)));
        // It refuses nothing.
        if let Ok(done) = done {
            self.absorb(done, out);
        }
    }

    fn remove_expired_node(&mut self, now: Time, id: ObjectId, out: &mut Vec<Effect>) -> bool {
        let Ok(path) = YPath::parse(self.tree.path(id).as_bytes()) else { return false };
        let command = Command::Remove { path, recursive: true, force: true };
        let audited = self.before_change(now, &command);
        let place = Place { node: id, rest: Vec::new() };
        let options = RemoveOptions { recursive: true, force: true };
        // A lock on what it is in is a reason to wait, too.
        let is_removed = self.edit(now, REMOVER, out, |edit| edit.remove(&place, options)).is_ok();
        if let Some(audited) = audited.filter(|_| is_removed) {
            self.after_change(now, REMOVER, audited.because("expired"));
        }
        is_removed
    }
}
