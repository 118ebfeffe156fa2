//! Events on their way to the writer: numbered, in the store until they are written for good, bounded.

use crate::{Effect, Seq};
use std::collections::VecDeque;
use vocab::batch::{Batch, Table};
use vocab::{Failure, Span, Time};
use yson::{Map, Value};

/// Records, and bytes of them, that wait in the store for the writer at most: behind a writer that is stuck
/// for longer the oldest are lost.
const UNWRITTEN_RECORDS: usize = 50_000;
const UNWRITTEN_BYTES: usize = 256 << 20;
/// A writer that has not written for so long is stuck, whatever it says.
const STUCK: Span = Span::from_secs(30);
/// Ranges of lost events that the alert shows.
const SHOWN: usize = 16;

/// See the module page.
#[derive(Default)]
pub(crate) struct Events {
    enabled: bool,
    /// The time of this turn.
    now: Time,
    /// Number of the next event.
    next: u64,
    /// How many are not in the batch yet, and the list of them but for its end: as trees they would take many times
    /// the room, and the start of a large operation is a hundred thousand events in one turn.
    added: u64,
    pending: Vec<u8>,
    /// Records in the store, oldest first.
    stored: VecDeque<Stored>,
    /// Bytes of those.
    bytes: usize,
    /// The writer has everything up to here.
    written: u64,
    /// Why the writer does not write.
    failing: Option<(Time, Failure)>,
    lost: Lost,
}

/// A record in the store.
struct Stored {
    /// Numbers of its first event and behind its last one.
    first: u64,
    end: u64,
    bytes: usize,
    since: Time,
}

/// Numbers that are missing in the files for good, as far as this life of the server knows.
#[derive(Default)]
struct Lost {
    count: u64,
    /// From, to; the newest ones.
    ranges: VecDeque<(u64, u64)>,
}

impl Lost {
    /// What was known is not counted again: the kernel drops records, and the writer misses them.
    fn add(&mut self, from: u64, to: u64) {
        let known = |n: u64| self.ranges.iter().find(|(a, b)| (*a..=*b).contains(&n)).map(|(_, b)| *b);
        let mut next = from;
        while let Some(end) = known(next) {
            next = end + 1;
        }
        if next > to {
            return;
        }
        self.count += to - next + 1;
        match self.ranges.back_mut() {
            Some((_, end)) if *end + 1 == next => *end = to,
            _ => self.ranges.push_back((next, to)),
        }
        if self.ranges.len() > SHOWN {
            self.ranges.pop_front();
        }
    }
}

impl Events {
    pub fn new(enabled: bool, first: u64) -> Events {
        Events { enabled, next: first.max(1), ..Events::default() }
    }

    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    pub fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    pub fn now(&self) -> Time {
        self.now
    }

    /// One more event of this turn.
    pub fn add(&mut self, event: Map) {
        if self.added == 0 {
            self.pending.push(b'[');
        }
        self.added += 1;
        yson::write::write_row(&event.into(), yson::Style::Binary, &mut self.pending);
    }

    /// Is there anything for the next batch?
    pub fn is_empty(&self) -> bool {
        self.added == 0
    }

    /// The writer has everything up to this number, safely.
    pub fn written(&mut self, number: u64) {
        self.written = self.written.max(number);
        self.failing = None;
    }

    /// The writer cannot write at the moment.
    pub fn failing(&mut self, why: Failure) {
        let since = self.failing.take().map_or(self.now, |(since, _)| since);
        self.failing = Some((since, why));
    }

    /// The writer has found that these numbers are missing.
    pub fn lost(&mut self, from: u64, to: u64) {
        self.lost.add(from, to);
    }

    /// Moves what has happened into the batch with this number.
    pub fn close(&mut self, seq: Seq, batch: &mut Batch) -> Option<Effect> {
        let effect = (self.added > 0).then(|| {
            let first = self.next;
            self.next += std::mem::take(&mut self.added);
            let mut stored = std::mem::take(&mut self.pending);
            stored.push(b']');
            self.keep(first, self.next, stored.len());
            batch.put(Table::Events, first.to_be_bytes(), stored.clone());
            Effect::Events { after: seq, first, end: self.next, stored }
        });
        // The newest stays: it says which number is the next.
        while self.stored.len() > 1
            && let Some(oldest) = self.stored.front()
        {
            let is_written = oldest.end <= self.written + 1;
            if !is_written && self.stored.len() <= UNWRITTEN_RECORDS && self.bytes <= UNWRITTEN_BYTES {
                break;
            }
            if let Some(gone) = self.stored.pop_front() {
                self.bytes -= gone.bytes;
                batch.delete(Table::Events, gone.first.to_be_bytes());
                if !is_written {
                    self.lost.add(gone.first.max(self.written + 1), gone.end - 1);
                }
            }
        }
        effect
    }

    fn keep(&mut self, first: u64, end: u64, bytes: usize) {
        self.stored.push_back(Stored { first, end, bytes, since: self.now });
        self.bytes += bytes;
    }

    /// Reads a record back; its events are handed out again.
    pub fn restore(&mut self, key: &[u8], value: Vec<u8>) -> Result<Effect, Failure> {
        let broken = || Failure::new(format!("Malformed record of the event log: {key:?}"));
        let first = u64::from_be_bytes(key.try_into().map_err(|_| broken())?);
        let count = super::full::count(&value).ok_or_else(broken)?;
        let end = first + count as u64;
        self.keep(first, end, value.len());
        self.next = self.next.max(end);
        Ok(Effect::Events { after: 0, first, end, stored: value })
    }

    /// `event_log_failing`: events wait, and will be lost one day; `events_lost`: some are.
    pub fn alerts(&self) -> Vec<Failure> {
        let waiting = self.stored.iter().find(|record| record.end > self.written + 1);
        let since = waiting.map_or(self.now, |record| record.since);
        let stuck = || {
            let is_stuck = self.enabled && self.now.since(since) > STUCK;
            is_stuck.then(|| (since, Failure::new("The writer of the event log does not answer")))
        };
        let failing = self.failing.clone().or_else(stuck).map(|(since, why)| {
            Failure::new("The event log is not written: events wait in the store")
                .with("alert_type", "event_log_failing")
                .with("since", since)
                .with(
                    "waiting_events",
                    self.next - waiting.map_or(self.next, |r| r.first.max(self.written + 1)),
                )
                .because(why)
        });
        let lost = (self.lost.count > 0).then(|| {
            let range = |(from, to): &(u64, u64)| yson::map! {"from" => *from, "to" => *to}.into();
            Failure::new(format!("{} events are missing in the event log", self.lost.count))
                .with("alert_type", "events_lost")
                .with("lost", self.lost.ranges.iter().map(range).collect::<Vec<Value>>())
        });
        failing.into_iter().chain(lost).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_counted_once() {
        let mut lost = Lost::default();
        lost.add(5, 9);
        lost.add(10, 12);
        // The writer misses what the kernel has dropped, in one piece, and one more.
        lost.add(5, 13);
        assert_eq!((lost.count, lost.ranges.make_contiguous()), (9, [(5, 13)].as_mut_slice()));
        lost.add(20, 20);
        lost.add(6, 8);
        assert_eq!((lost.count, lost.ranges.len()), (10, 2));
    }

    /// Nobody writes: the store takes so much and no more, and what is dropped is told.
    #[test]
    fn a_stuck_writer_costs_bounded_room() {
        let mut events = Events::new(true, 1);
        let (mut there, mut seq) = (std::collections::BTreeSet::new(), 0);
        let mut turn = |events: &mut Events, size: usize| {
            events.add(yson::map! {"event" => "x".repeat(size)});
            let mut batch = Batch::new();
            seq += 1;
            events.close(seq, &mut batch);
            for op in batch.ops {
                match op {
                    vocab::batch::Op::Put { key, .. } => drop(there.insert(key)),
                    vocab::batch::Op::Delete { key, .. } => drop(there.remove(&key)),
                    vocab::batch::Op::DeletePrefix { .. } => panic!("not of events"),
                }
            }
            there.len()
        };
        events.set_time(Time::from_secs(100));
        for _ in 0..UNWRITTEN_RECORDS + 10 {
            assert!(turn(&mut events, 1) <= UNWRITTEN_RECORDS);
        }
        assert_eq!((events.lost.count, events.lost.ranges.len()), (10, 1));
        // Large ones are fewer.
        for _ in 0..300 {
            turn(&mut events, 1 << 20);
        }
        assert!(events.bytes <= UNWRITTEN_BYTES && events.stored.len() < 300, "{}", events.bytes);
        events.set_time(Time::from_secs(131));
        let names: Vec<Option<&str>> = vec![Some("event_log_failing"), Some("events_lost")];
        let alerts = events.alerts();
        let types = alerts.iter().map(|a| a.attributes.get("alert_type").and_then(Value::as_str));
        assert_eq!(types.collect::<Vec<_>>(), names);
        events.written(u64::MAX - 1);
        assert_eq!(turn(&mut events, 1), 1);
        assert_eq!(events.alerts().len(), 1, "what is lost is lost");
    }
}
