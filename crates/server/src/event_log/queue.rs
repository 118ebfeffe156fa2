//! Between the kernel and the writer: bounded, since what does not fit is in the store anyway.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

/// Bytes that may wait in memory.
const ROOM: usize = 16 << 20;

/// Number of the first event, and the record of the store.
pub type Record = (u64, Vec<u8>);

/// See the module page.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    records: VecDeque<Record>,
    bytes: usize,
    /// Something was left out: the writer has to read the store. Until it does nothing more is kept.
    behind: bool,
    stopping: bool,
}

/// What the writer finds.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Taken {
    /// In order.
    pub records: VecDeque<Record>,
    /// There is more in the store.
    pub behind: bool,
    /// Nothing will come after this.
    pub stopping: bool,
}

impl Queue {
    /// Adds a record, or remembers that one is missing. Never waits.
    pub fn push(&self, first: u64, stored: Vec<u8>) {
        let mut state = self.lock();
        if state.behind || state.bytes + stored.len() > ROOM && !state.records.is_empty() {
            state.behind = true;
        } else {
            state.bytes += stored.len();
            state.records.push_back((first, stored));
        }
        drop(state);
        self.changed.notify_one();
    }

    /// The writer has not written what it took: it will look in the store.
    pub fn fall_behind(&self) {
        let mut state = self.lock();
        state.records = VecDeque::new();
        state.bytes = 0;
        state.behind = true;
    }

    /// Ends the writer when it has taken everything.
    pub fn stop(&self) {
        self.lock().stopping = true;
        self.changed.notify_one();
    }

    /// Everything that is there; waits for something until then. Records are not waited for by a writer
    /// that cannot write them (`only_stop`).
    pub fn take(&self, until: Option<Instant>, only_stop: bool) -> Taken {
        let mut state = self.lock();
        while !state.stopping && (only_stop || state.records.is_empty() && !state.behind) {
            state = match until {
                None => self.changed.wait(state).unwrap_or_else(|e| e.into_inner()),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    self.changed.wait_timeout(state, left).unwrap_or_else(|e| e.into_inner()).0
                }
            };
        }
        state.bytes = 0;
        Taken {
            records: std::mem::take(&mut state.records),
            behind: std::mem::take(&mut state.behind),
            stopping: state.stopping,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_what_is_left_out_is_known() {
        let queue = Queue::default();
        let record = vec![0u8; ROOM / 4];
        (0..10).for_each(|n| queue.push(n, record.clone()));
        let taken = queue.take(None, false);
        assert_eq!((taken.records.len(), taken.behind), (4, true));
        // From then on it takes records again.
        queue.push(10, record.clone());
        let taken = queue.take(None, false);
        assert_eq!((taken.records.len(), taken.behind), (1, false));
        queue.push(11, record.clone());
        queue.fall_behind();
        queue.push(12, record);
        assert_eq!(queue.take(None, false), Taken { behind: true, ..Taken::default() });
        queue.stop();
        assert_eq!(queue.take(None, false), Taken { stopping: true, ..Taken::default() });
    }

    /// A record that is larger than all room is written too.
    #[test]
    fn one_record_always_fits() {
        let queue = Queue::default();
        queue.push(1, vec![0; ROOM + 1]);
        assert_eq!(queue.take(None, false).records.len(), 1);
    }
}
