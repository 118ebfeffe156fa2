//! All locks on one node, so that neither taking one nor the end of a transaction looks at all others.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use vocab::{Guid, ObjectId};

use super::locks::{Lock, Mode, Part};

/// Number of a lock on its node: those that were asked for earlier have smaller ones.
pub(crate) type Turn = u64;

const FIRST: ObjectId = ObjectId(Guid([0; 4]));

/// Locks on one node, in the order in which they were asked for. Clones share what is the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodeLocks {
    next: Turn,
    all: OrdMap<Turn, Arc<Lock>>,
    /// By whose they are.
    owned: OrdSet<(ObjectId, Turn)>,
    /// Those that are taken, by what they are against.
    taken: OrdSet<(Mode, ObjectId, Turn)>,
    /// How many each transaction has taken that are against anything.
    holders: OrdMap<ObjectId, usize>,
    /// Those that came with changes, by whose they are.
    implicit: OrdSet<(ObjectId, Mode, Turn)>,
    /// Those that wait to be exclusive, and to be shared, these also by what they name.
    waiting_exclusive: OrdSet<Turn>,
    waiting_shared: OrdSet<Turn>,
    waiting_for: OrdSet<(Part, Turn)>,
}

impl NodeLocks {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// In the order in which they were asked for.
    pub fn iter(&self) -> impl Iterator<Item = &Lock> {
        self.all.values().map(|lock| &**lock)
    }

    /// By its number.
    pub fn get(&self, turn: Turn) -> Option<&Lock> {
        self.all.get(&turn).map(|lock| &**lock)
    }

    /// Those of one transaction, taken or waited for.
    pub fn of(&self, transaction: ObjectId) -> impl Iterator<Item = (Turn, &Lock)> {
        let range = self.owned.range((Included((transaction, 0)), Included((transaction, Turn::MAX))));
        range.filter_map(|(_, turn)| Some((*turn, self.get(*turn)?)))
    }

    /// Has a transaction any?
    pub fn has_any_of(&self, transaction: ObjectId) -> bool {
        self.of(transaction).next().is_some()
    }

    /// The strongest that a transaction has taken.
    pub fn strongest_of(&self, transaction: ObjectId) -> Option<&Mode> {
        let shared = || self.of(transaction).filter(|(_, l)| l.acquired).map(|(_, l)| &l.mode).max();
        self.taken_by(&Mode::Exclusive, transaction).map(|lock| &lock.mode).or_else(shared)
    }

    /// Has a transaction a lock that came with a change and covers this one?
    pub fn is_covered(&self, transaction: ObjectId, mode: &Mode) -> bool {
        let has = |mode: Mode| self.has_implicit(transaction, mode.clone(), mode);
        match mode {
            Mode::Snapshot => has(Mode::Snapshot),
            Mode::Exclusive => has(Mode::Exclusive),
            Mode::Shared(Part::Unnamed) => {
                self.has_implicit(transaction, Mode::Shared(Part::Unnamed), Mode::Exclusive)
            }
            Mode::Shared(_) => has(mode.clone()) || has(Mode::Exclusive),
        }
    }

    fn has_implicit(&self, transaction: ObjectId, least: Mode, most: Mode) -> bool {
        let range = (Included((transaction, least, 0)), Included((transaction, most, Turn::MAX)));
        self.implicit.range(range).next().is_some()
    }

    /// May a transaction have changed all of the node, or only what its shared locks name?
    pub fn has_implicit_exclusive(&self, transaction: ObjectId) -> bool {
        self.is_covered(transaction, &Mode::Exclusive)
    }

    /// Has it added or removed a child under a shared lock?
    pub fn has_implicit_child(&self, transaction: ObjectId) -> bool {
        let (least, most) = (Part::Child(yson::Bytes::new()), Part::Attribute(yson::Bytes::new()));
        let range =
            (Included((transaction, Mode::Shared(least), 0)), Excluded((transaction, Mode::Shared(most), 0)));
        self.implicit.range(range).next().is_some()
    }

    /// Has it put rows behind those of a table under a shared lock?
    pub fn has_implicit_rows(&self, transaction: ObjectId) -> bool {
        let rows = Mode::Shared(Part::Rows);
        self.has_implicit(transaction, rows.clone(), rows)
    }

    /// The attributes that it has changed under shared locks.
    pub fn implicit_attributes(&self, transaction: ObjectId) -> impl Iterator<Item = &[u8]> {
        let least = Mode::Shared(Part::Attribute(yson::Bytes::new()));
        let range = (Included((transaction, least, 0)), Excluded((transaction, Mode::Exclusive, 0)));
        self.implicit.range(range).filter_map(|(_, mode, _)| match mode {
            Mode::Shared(Part::Attribute(name)) => Some(name.as_slice()),
            _ => None,
        })
    }

    /// The lock that keeps a transaction (or a change outside of all) from taking another. `line` is
    /// the transaction with those around it: their locks are not in its way.
    pub fn in_the_way(&self, line: &[ObjectId], mode: &Mode) -> Option<&Lock> {
        if *mode == Mode::Snapshot {
            // What one has changed is not what it was.
            return line.first().and_then(|me| self.held_by(*me));
        }
        // What is kept as it was cannot be changed as well, neither by who keeps it nor by those inside.
        if let Some(kept) = line.iter().find_map(|id| self.taken_by(&Mode::Snapshot, *id)) {
            return Some(kept);
        }
        match mode {
            Mode::Exclusive => {
                let holder = self.holders.keys().find(|id| !line.contains(id))?;
                self.held_by(*holder)
            }
            _ => self.taken_outside(&Mode::Exclusive, line).or_else(|| match mode {
                Mode::Shared(Part::Unnamed | Part::Rows) => None,
                named => self.taken_outside(named, line),
            }),
        }
    }

    /// The first that a transaction has taken in this mode.
    fn taken_by(&self, mode: &Mode, id: ObjectId) -> Option<&Lock> {
        let range = (Included((mode.clone(), id, 0)), Included((mode.clone(), id, Turn::MAX)));
        self.get(self.taken.range(range).next()?.2)
    }

    /// The first that a transaction has taken and that is against anything.
    fn held_by(&self, id: ObjectId) -> Option<&Lock> {
        self.holders.get(&id)?;
        self.of(id).map(|(_, lock)| lock).find(|lock| lock.acquired && lock.mode != Mode::Snapshot)
    }

    /// One that is taken in this mode by somebody who is not in the line.
    fn taken_outside(&self, mode: &Mode, line: &[ObjectId]) -> Option<&Lock> {
        let mut from = Included((mode.clone(), FIRST, 0));
        loop {
            let (found, id, turn) = self.taken.range((from, Unbounded)).next()?;
            if found != mode {
                return None;
            }
            if !line.contains(id) {
                return self.get(*turn);
            }
            // However many of one transaction there are, they are one step.
            from = Excluded((mode.clone(), *id, Turn::MAX));
        }
    }

    /// Puts one behind all others; its number.
    pub fn push(&mut self, lock: Lock) -> Turn {
        let turn = self.next;
        self.next += 1;
        self.index(turn, &lock, true);
        self.all.insert(turn, Arc::new(lock));
        turn
    }

    /// Takes one out.
    pub fn remove(&mut self, turn: Turn) -> Option<Arc<Lock>> {
        let lock = self.all.remove(&turn)?;
        self.index(turn, &lock, false);
        Some(lock)
    }

    /// Changes one; what it is now.
    pub fn change(&mut self, turn: Turn, change: impl FnOnce(&mut Lock)) -> Option<Lock> {
        let old = self.remove(turn)?;
        let mut lock = Arc::unwrap_or_clone(old);
        change(&mut lock);
        self.index(turn, &lock, true);
        self.all.insert(turn, Arc::new(lock.clone()));
        Some(lock)
    }

    fn index(&mut self, turn: Turn, lock: &Lock, there: bool) {
        let (id, mode) = (lock.transaction, &lock.mode);
        put(&mut self.owned, (id, turn), there);
        if lock.implicit {
            put(&mut self.implicit, (id, mode.clone(), turn), there);
        }
        match (lock.acquired, mode) {
            (true, mode) => {
                put(&mut self.taken, (mode.clone(), id, turn), there);
                if *mode != Mode::Snapshot {
                    let count = self.holders.get(&id).copied().unwrap_or(0);
                    let count = if there { count + 1 } else { count.saturating_sub(1) };
                    match count {
                        0 => drop(self.holders.remove(&id)),
                        count => drop(self.holders.insert(id, count)),
                    }
                }
            }
            (false, Mode::Shared(part)) => {
                put(&mut self.waiting_shared, turn, there);
                put(&mut self.waiting_for, (part.clone(), turn), there);
            }
            (false, _) => put(&mut self.waiting_exclusive, turn, there),
        }
    }

    /// Does any wait?
    pub fn any_waits(&self) -> bool {
        !(self.waiting_exclusive.is_empty() && self.waiting_shared.is_empty())
    }

    /// The next that waits, behind `after`, and may perhaps be taken now that some of the modes `dropped` are gone.
    /// Only who is inside of a transaction that has the node can have it beside that one: `inside` gives these, with
    /// the transaction itself.
    pub fn next_waiting(
        &self,
        after: Option<Turn>,
        dropped: &BTreeSet<Mode>,
        inside: &dyn Fn(ObjectId) -> Vec<ObjectId>,
    ) -> Option<Turn> {
        let behind = || (after.map_or(Unbounded, Excluded), Unbounded);
        let family = |holder: ObjectId, wanted: &dyn Fn(&Mode) -> bool| {
            let theirs = inside(holder).into_iter().flat_map(|id| self.of(id).collect::<Vec<_>>());
            let waits = |(turn, lock): &(Turn, &Lock)| {
                !lock.acquired && after.is_none_or(|after| *turn > after) && wanted(&lock.mode)
            };
            theirs.filter(waits).map(|(turn, _)| turn).min()
        };
        if let Some(holder) = self.holder_in(&Mode::Exclusive) {
            return family(holder, &|_| true);
        }
        let exclusive = match self.holders.keys().next() {
            Some(holder) => family(*holder, &|mode| !matches!(mode, Mode::Shared(_))),
            None => self.waiting_exclusive.range(behind()).next().copied(),
        };
        let all = dropped.iter().any(|mode| matches!(mode, Mode::Exclusive | Mode::Snapshot));
        let shared = if all || dropped.len() > FEW {
            self.waiting_shared.range(behind()).next().copied()
        } else {
            let parts = dropped.iter().filter_map(|mode| match mode {
                Mode::Shared(part) => Some(part),
                _ => None,
            });
            let of_part = |part: &Part| match self.holder_in(&Mode::Shared(part.clone())) {
                Some(holder) if !matches!(part, Part::Unnamed | Part::Rows) => {
                    family(holder, &|mode| *mode == Mode::Shared(part.clone()))
                }
                _ => {
                    let first = after.map_or(Included((part.clone(), 0)), |a| Excluded((part.clone(), a)));
                    let range = (first, Included((part.clone(), Turn::MAX)));
                    self.waiting_for.range(range).next().map(|(_, turn)| *turn)
                }
            };
            parts.filter_map(of_part).min()
        };
        exclusive.into_iter().chain(shared).min()
    }

    fn holder_in(&self, mode: &Mode) -> Option<ObjectId> {
        let (found, id, _) = self.taken.range((Included((mode.clone(), FIRST, 0)), Unbounded)).next()?;
        (found == mode).then_some(*id)
    }
}

/// Modes that are looked at one by one.
const FEW: usize = 16;

fn put<T: Ord + Clone>(set: &mut OrdSet<T>, item: T, there: bool) {
    match there {
        true => drop(set.insert(item)),
        false => drop(set.remove(&item)),
    }
}
