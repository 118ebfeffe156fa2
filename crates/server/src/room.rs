//! Bytes of contents on their way to the disk, counted against the limits of accounts.
//!
//! The kernel counts a content when it becomes that of a file or table. Until then its bytes are counted here as they
//! come: many writers that begin at the same time share the room that their accounts have left. A writer compares the
//! room of the time when it began with the bytes that are under way, and with those that were settled since.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vocab::{Failure, code};
use yson::Value;

/// What is under way, by limit.
#[derive(Clone, Default)]
pub(crate) struct Rooms(Arc<Mutex<BTreeMap<String, Sums>>>);

/// Bytes that count towards one limit; kept while there are writers.
#[derive(Default)]
struct Sums {
    writers: usize,
    under_way: u64,
    /// Bytes that became part of files and tables since the first of the writers began.
    settled: u64,
}

/// One limit as a writer found it.
struct Bound {
    name: String,
    left: u64,
    settled_before: u64,
}

/// The room that a content has. Its bytes are under way until this is dropped.
pub(crate) struct Room {
    rooms: Rooms,
    bounds: Vec<Bound>,
    /// Bytes of the content that will be replaced.
    replaced: u64,
    taken: u64,
    is_settled: bool,
    /// The file or table, for errors.
    path: String,
}

impl Rooms {
    fn sums(&self) -> MutexGuard<'_, BTreeMap<String, Sums>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a content that replaces one of `replaced` bytes. `left` is `room` of an answer of the kernel: bytes by limit.
    pub(crate) fn open(&self, path: String, left: Option<&Value>, replaced: u64) -> Room {
        let mut sums = self.sums();
        let left = left.and_then(Value::as_map).into_iter().flat_map(yson::Map::iter);
        let bounds = left.filter_map(|(name, left)| {
            let (name, left) = (String::from_utf8_lossy(name).into_owned(), left.as_u64()?);
            let of = sums.entry(name.clone()).or_default();
            of.writers += 1;
            Some(Bound { left, settled_before: of.settled, name })
        });
        let bounds = bounds.collect();
        drop(sums);
        Room { rooms: self.clone(), bounds, replaced, taken: 0, is_settled: false, path }
    }
}

impl Room {
    /// Counts the content as having `size` bytes; 902 if there is no room for so many, and then nothing more is counted.
    pub(crate) fn grow_to(&mut self, size: u64) -> Result<(), Failure> {
        let more = size.saturating_sub(self.taken);
        let mut all = self.rooms.sums();
        for bound in &self.bounds {
            let Some(sums) = all.get(&bound.name) else { continue };
            let used = (sums.under_way + (sums.settled - bound.settled_before)).saturating_add(more);
            let limit = bound.left.saturating_add(self.replaced);
            if used > limit {
                let others = sums.under_way + (sums.settled - bound.settled_before) - self.taken;
                let text = format!(
                    "{} is over disk space limit: there is room for {limit} bytes, others take {others} of them at \
                     present, and {} has {size} so far; see @resource_limits and @resource_usage of the account",
                    bound.name, self.path
                );
                return Err(Failure::coded(code::ACCOUNT_LIMIT, text)
                    .with("resource", "disk_space")
                    .with("limit", limit));
            }
        }
        for bound in &self.bounds {
            if let Some(sums) = all.get_mut(&bound.name) {
                sums.under_way += more;
            }
        }
        drop(all);
        self.taken += more;
        Ok(())
    }

    /// The kernel counts the content from now on.
    pub(crate) fn settled(mut self) {
        self.is_settled = true;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut all = self.rooms.sums();
        for bound in &self.bounds {
            let Some(sums) = all.get_mut(&bound.name) else { continue };
            sums.writers -= 1;
            sums.under_way -= self.taken;
            sums.settled += if self.is_settled { self.taken } else { 0 };
            if sums.writers == 0 {
                all.remove(&bound.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(rooms: &Rooms, left: u64, replaced: u64) -> Room {
        let left = yson::map! {"account \"a\"" => left}.into();
        rooms.open("//tmp/f".to_owned(), Some(&left), replaced)
    }

    /// S15.
    #[test]
    fn writers_at_the_same_time_share_what_is_left() {
        let rooms = Rooms::default();
        let (mut first, mut second) = (open(&rooms, 100, 0), open(&rooms, 100, 0));
        first.grow_to(60).expect("room for 100");
        second.grow_to(40).expect("room for 40");
        second.grow_to(40).expect("nothing more");
        let refused = second.grow_to(41).expect_err("100 bytes are under way");
        assert_eq!(refused.code, code::ACCOUNT_LIMIT);
        assert!(refused.message.contains("others take 60"), "{refused}");
        assert!(first.grow_to(61).is_err());
        drop(first);
        second.grow_to(100).expect("the first was given up");
        drop(second);
        assert!(rooms.sums().is_empty());
    }

    /// S15. The room of a writer that began earlier does not know of them.
    #[test]
    fn bytes_that_were_settled_since_count() {
        let rooms = Rooms::default();
        let (mut first, mut second) = (open(&rooms, 100, 0), open(&rooms, 100, 0));
        first.grow_to(60).expect("room for 100");
        first.settled();
        assert!(second.grow_to(41).is_err());
        let mut third = open(&rooms, 40, 0);
        third.grow_to(40).expect("the kernel has counted the first one");
        assert!(second.grow_to(1).is_err());
    }

    /// S15.
    #[test]
    fn a_content_has_the_room_of_the_one_that_it_replaces() {
        let rooms = Rooms::default();
        let mut room = open(&rooms, 0, 50);
        room.grow_to(50).expect("as much as before");
        assert!(room.grow_to(51).is_err());
        let mut unlimited = rooms.open("//tmp/f".to_owned(), None, 0);
        unlimited.grow_to(u64::MAX).expect("there is no limit");
    }
}
