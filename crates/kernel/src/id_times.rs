//! When ids were made. Each has its number within the life of the server that made it ([`GuidGenerator`]), so it is
//! enough to write down from time to time how many there are.

use crate::Kernel;
use std::collections::VecDeque;
use vocab::batch::{Batch, Table};
use vocab::{Guid, GuidGenerator, Span, Time};

/// Marks are made so often, if there are new ids.
const PERIOD: Span = Span::from_secs(600);
/// Marks that are kept, and with them what is known of old ids: two months of work without a pause, or more.
const MARKS: usize = 10_000;
/// Numbers of ids that a life may have made after its last mark: larger ones are inventions.
const UNMARKED: u64 = 1 << 40;
/// Of keys in `Table::Meta`, before the number of the mark.
const PREFIX: &[u8] = b"id_time/";

/// So many ids there were at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    /// Of the life.
    seed: u64,
    /// In this life.
    made: u64,
    at: Time,
}

/// The marks, oldest first. A life begins with one.
#[derive(Default)]
pub(crate) struct IdTimes {
    marks: VecDeque<Mark>,
    /// Number of the next one.
    next: u64,
}

impl IdTimes {
    /// Takes a record of `Table::Meta`, if it is one of these.
    pub(crate) fn restore(&mut self, key: &[u8], value: &[u8]) {
        let Some(number) = key.strip_prefix(PREFIX).and_then(|rest| rest.try_into().ok()) else { return };
        if let Some(mark) = Mark::decode(value) {
            self.marks.push_back(mark);
            self.next = u64::from_be_bytes(number) + 1;
        }
    }

    /// A mark, if it is time for one.
    pub(crate) fn mark(&mut self, seed: u64, ids: &GuidGenerator, now: Time, batch: &mut Batch) {
        let mark = Mark { seed, made: ids.made(), at: now };
        let is_due = self
            .marks
            .back()
            .is_none_or(|last| last.seed != seed || (mark.made > last.made && now >= last.at + PERIOD));
        if !is_due {
            return;
        }
        batch.put(Table::Meta, key(self.next), mark.encode());
        self.next += 1;
        self.marks.push_back(mark);
        while self.marks.len() > MARKS {
            batch.delete(Table::Meta, key(self.next - self.marks.len() as u64));
            self.marks.pop_front();
        }
    }

    /// Between when and when it was made, as far as that is known. `ids` are those of this life.
    pub(crate) fn estimate(&self, id: Guid, ids: &GuidGenerator, now: Time) -> Option<(Time, Time)> {
        let of = |mark: &Mark| GuidGenerator::new(mark.seed).number_of(id);
        let (from, before, number) = self.marks.iter().enumerate().rev().find_map(|(index, mark)| {
            let number = of(mark)?;
            (mark.made < number).then_some((index, mark, number))
        })?;
        let after = self.marks.get(from + 1);
        let (until, limit) = match after {
            // Of the same life: it was made before.
            Some(after) if after.seed == before.seed => (after.at, u64::MAX),
            Some(next_life) => (next_life.at, before.made + UNMARKED),
            None => (now, ids.made()),
        };
        // A clock may have been set back.
        (number <= limit).then_some((before.at.min(until), before.at.max(until)))
    }
}

impl Mark {
    fn encode(self) -> Vec<u8> {
        [self.seed, self.made, self.at.as_micros()].map(u64::to_be_bytes).concat()
    }

    fn decode(record: &[u8]) -> Option<Mark> {
        let numbers: Vec<u64> =
            record.as_chunks().0.iter().map(|bytes: &[u8; 8]| u64::from_be_bytes(*bytes)).collect();
        match numbers[..] {
            [seed, made, at] => Some(Mark { seed, made, at: Time::from_micros(at) }),
            _ => None,
        }
    }
}

fn key(number: u64) -> Vec<u8> {
    [PREFIX, &number.to_be_bytes()].concat()
}

impl Kernel {
    /// Before the first id of this life.
    pub(crate) fn begin_id_times(&mut self, now: Time) {
        let none_yet = GuidGenerator::new(self.config.life);
        self.id_times.mark(self.config.life, &none_yet, now, &mut self.open.batch);
    }

    /// Housekeeping.
    pub(crate) fn mark_id_times(&mut self, now: Time) {
        self.id_times.mark(self.config.life, &self.ids, now, &mut self.open.batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::batch::Op;
    use vocab::object_type::OPERATION;

    fn at(minutes: u64) -> Time {
        Time::from_secs(60 * minutes)
    }

    /// What a store would have after this.
    fn stored(batch: &Batch) -> IdTimes {
        let mut kept = std::collections::BTreeMap::new();
        for op in &batch.ops {
            match op {
                Op::Put { key, value, .. } => drop(kept.insert(key.clone(), value.clone())),
                Op::Delete { key, .. } => drop(kept.remove(key).expect("it is there")),
                Op::DeletePrefix { .. } => unreachable!(),
            }
        }
        let mut times = IdTimes::default();
        times.restore(b"default_pool_tree", b"physical");
        kept.iter().for_each(|(key, value)| times.restore(key, value));
        times
    }

    #[test]
    fn between_two_marks_or_until_now() {
        let (mut batch, mut times, mut ids) = (Batch::new(), IdTimes::default(), GuidGenerator::new(5));
        times.mark(5, &ids, at(100), &mut batch);
        let first = ids.next(OPERATION);
        for minute in [101, 109, 110, 119, 120] {
            times.mark(5, &ids, at(minute), &mut batch);
        }
        let second = ids.next(OPERATION);
        assert_eq!(batch.ops.len(), 2, "no mark too early, and none without a new id");
        assert_eq!(times.estimate(first, &ids, at(125)), Some((at(100), at(110))));
        assert_eq!(times.estimate(second, &ids, at(125)), Some((at(110), at(125))));
        let never = ids.clone().next(OPERATION);
        assert_eq!(times.estimate(never, &ids, at(125)), None);
        assert_eq!(times.estimate(Guid([1, 2, 0x103e8, 4]), &ids, at(125)), None);

        // After a crash another life begins.
        let (mut times, ids) = (stored(&batch), GuidGenerator::new(6));
        times.mark(6, &ids, at(200), &mut batch);
        assert_eq!(times.estimate(first, &ids, at(225)), Some((at(100), at(110))));
        assert_eq!(times.estimate(second, &ids, at(225)), Some((at(110), at(200))));
        let [_, life, kind, _] = first.0;
        assert_eq!(times.estimate(Guid([77, life, kind, 88]), &ids, at(225)), None, "an invention");
        assert_eq!(stored(&batch).marks, times.marks);
    }

    #[test]
    fn old_marks_go() {
        let (mut batch, mut times, mut ids) = (Batch::new(), IdTimes::default(), GuidGenerator::new(5));
        times.mark(5, &ids, at(0), &mut batch);
        let (first, mut last) = (ids.next(OPERATION), Guid::NULL);
        for period in 1..=MARKS as u64 {
            times.mark(5, &ids, at(10 * period), &mut batch);
            last = ids.next(OPERATION);
        }
        let now = at(10 * MARKS as u64 + 1);
        assert_eq!((times.marks.len(), times.estimate(first, &ids, now)), (MARKS, None));
        assert_eq!(times.estimate(last, &ids, now), Some((at(10 * MARKS as u64), now)));
        let again = stored(&batch);
        assert_eq!((&again.marks, again.next), (&times.marks, times.next));
    }
}
