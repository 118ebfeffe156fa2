//! Readers of blobs, for which the removal of a blob waits.
//!
//! The kernel decides that nothing refers to a content any more; a reader may be about to read it, or in the middle of it. So a
//! reader announces itself before it asks the kernel where the content is ([`Readers::begin`]), and says then which blobs
//! it has been told of ([`Reading::of`]). A removal waits for the readers of the blob, and for those that had asked and were
//! not answered when it was decided.
//!
//! Nobody is charged for a blob that waits, so waiting has bounds: a reader that takes nothing for [`STALL`] is not waited
//! for, no removal waits for longer than [`LONGEST`], and all blobs that wait have at most [`MOST_BYTES`]: of more, those that wait
//! longest go. A reader whose blob is gone gets an error.

use api::ByteStream;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_stream::StreamExt;

/// A reader that has taken nothing for this long is not waited for.
const STALL: Duration = Duration::from_secs(60);
/// No removal waits longer.
const LONGEST: Duration = Duration::from_secs(3600);
/// Bytes of all blobs whose removal waits.
const MOST_BYTES: u64 = 16 << 30;

/// All that read blobs at present.
#[derive(Clone, Default)]
pub struct Readers(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Number of the next reader.
    next: u64,
    readers: BTreeMap<u64, Reader>,
    /// Blobs that are to be removed.
    waiting: BTreeMap<u64, Waiting>,
}

struct Reader {
    /// What it reads; `None` if it has not been told yet.
    blobs: Option<BTreeSet<u64>>,
    /// When it took something.
    seen: Instant,
}

/// A removal that waits.
struct Waiting {
    since: Instant,
    size: u64,
    /// Readers from this number on have asked after the removal was decided: they are not told of the blob.
    next: u64,
}

impl State {
    fn is_awaited(&self, blob: u64, waiting: &Waiting, now: Instant) -> bool {
        let reads = |number: u64, reader: &Reader| match &reader.blobs {
            Some(blobs) => blobs.contains(&blob),
            None => number < waiting.next,
        };
        let mut readers = self.readers.iter();
        now.saturating_duration_since(waiting.since) < LONGEST
            && readers.any(|(number, reader)| {
                now.saturating_duration_since(reader.seen) < STALL && reads(*number, reader)
            })
    }
}

impl Readers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reader that is about to ask the kernel where a content is.
    pub fn begin(&self) -> Reading {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.readers.insert(number, Reader { blobs: None, seen: Instant::now() });
        drop(state);
        Reading { of: self.clone(), number }
    }

    /// Must the removal of a blob wait? Then it is one of [`Readers::due`] when it need not any more. `size` is asked for
    /// only if it must.
    pub fn postpones(&self, now: Instant, blob: u64, size: impl FnOnce() -> u64) -> bool {
        let mut state = self.state();
        if state.readers.is_empty() {
            return false;
        }
        let mut waiting = Waiting { since: now, size: 0, next: state.next };
        if !state.is_awaited(blob, &waiting, now) {
            return false;
        }
        waiting.size = size();
        state.waiting.insert(blob, waiting);
        true
    }

    /// Does any removal wait?
    pub fn delays_any(&self) -> bool {
        !self.state().waiting.is_empty()
    }

    /// Removals that need not wait any more; they are forgotten here.
    pub fn due(&self, now: Instant) -> Vec<u64> {
        let mut state = self.state();
        let is_due = |(blob, waiting): &(&u64, &Waiting)| !state.is_awaited(**blob, waiting, now);
        let mut due: Vec<u64> = state.waiting.iter().filter(is_due).map(|(blob, _)| *blob).collect();
        for blob in &due {
            state.waiting.remove(blob);
        }
        let mut bytes: u64 = state.waiting.values().map(|waiting| waiting.size).sum();
        while bytes > MOST_BYTES
            && let Some((blob, size)) = state
                .waiting
                .iter()
                .min_by_key(|(blob, w)| (w.since, **blob))
                .map(|(blob, w)| (*blob, w.size))
        {
            state.waiting.remove(&blob);
            bytes -= size;
            due.push(blob);
        }
        due
    }

    /// All removals that wait: nothing is read any more.
    pub fn all(&self) -> Vec<u64> {
        std::mem::take(&mut self.state().waiting).into_keys().collect()
    }
}

/// One reader; the removals of its blobs wait until it is dropped.
pub struct Reading {
    of: Readers,
    number: u64,
}

impl Reading {
    /// It was told where the content is.
    pub fn of(self, blobs: impl IntoIterator<Item = u64>) -> Reading {
        if let Some(reader) = self.of.state().readers.get_mut(&self.number) {
            *reader = Reader { blobs: Some(blobs.into_iter().collect()), seen: Instant::now() };
        }
        self
    }

    /// Goes on until the end of a stream of these contents.
    pub fn guard(self, body: ByteStream) -> ByteStream {
        Box::pin(body.map(move |piece| {
            self.touch();
            piece
        }))
    }

    /// It takes something.
    fn touch(&self) {
        if let Some(reader) = self.of.state().readers.get_mut(&self.number) {
            reader.seen = Instant::now();
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.of.state().readers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn postpones(readers: &Readers, now: Instant, blob: u64) -> bool {
        readers.postpones(now, blob, || 1)
    }

    /// S15.
    #[test]
    fn a_removal_waits_for_the_readers_of_the_blob_alone() {
        let (readers, now) = (Readers::default(), Instant::now());
        assert!(!postpones(&readers, now, 1), "nothing is read");
        let (first, second) = (readers.begin().of([1, 2]), readers.begin().of([2]));
        assert!(!postpones(&readers, now, 3));
        assert!(postpones(&readers, now, 1) && postpones(&readers, now, 2));
        assert_eq!(readers.due(now), [0; 0]);
        drop(first);
        assert_eq!(readers.due(now), [1]);
        drop(second);
        assert_eq!(readers.due(now), [2]);
        assert!(!readers.delays_any());
    }

    #[test]
    fn a_removal_waits_for_readers_that_have_asked_before() {
        let (readers, now) = (Readers::default(), Instant::now());
        let early = readers.begin();
        assert!(postpones(&readers, now, 1), "it may be told of this one");
        let late = readers.begin();
        let early = early.of([2]);
        assert_eq!(readers.due(now), [1], "the late one asks when the kernel does not know it any more");
        assert!(postpones(&readers, now, 2));
        drop((early, late));
        assert_eq!(readers.all(), [2]);
    }

    #[test]
    fn waiting_has_bounds() {
        let (readers, now) = (Readers::default(), Instant::now());
        let _reading = readers.begin().of([1, 2, 3]);
        assert!(postpones(&readers, now, 1));
        assert_eq!(readers.due(now + STALL / 2), [0; 0]);
        assert_eq!(readers.due(now + STALL * 2), [1], "it has taken nothing for too long");
        assert!(readers.postpones(now, 2, || MOST_BYTES));
        assert_eq!(readers.due(now), [0; 0]);
        assert!(readers.postpones(now, 3, || 1));
        assert_eq!(readers.due(now), [2], "too many bytes");
        let later = now + LONGEST;
        readers.state().readers.values_mut().for_each(|reader| reader.seen = later);
        assert_eq!(readers.due(later - STALL / 2), [0; 0]);
        assert_eq!(readers.due(later), [3], "it has waited long enough");
    }

    #[tokio::test]
    async fn a_stream_holds_its_blobs_to_its_end() {
        let readers = Readers::default();
        let pieces: Vec<Result<bytes::Bytes, vocab::Failure>> = vec![Ok("a".into()), Ok("b".into())];
        let mut body = readers.begin().of([1]).guard(Box::pin(tokio_stream::iter(pieces)));
        assert!(body.next().await.is_some());
        assert!(postpones(&readers, Instant::now(), 1));
        drop(body);
        assert_eq!(readers.due(Instant::now()), [1]);
    }
}
