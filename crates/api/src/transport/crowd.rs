//! How many connections there are at a time. A process may have only so many files open, and the store needs some,
//! so whoever comes when there are too many sends away the one of whom nothing was heard for longest: what it was
//! asked for is answered, and then, or at once if there is nothing, its connection is closed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::time::Instant;

/// All connections of a listener.
pub(super) struct Crowd {
    most: usize,
    began: Instant,
    members: Mutex<BTreeMap<u64, Arc<Signs>>>,
    next: AtomicU64,
}

/// What is known of one of them.
struct Signs {
    /// Milliseconds from the beginning of the crowd to its last request, or to when it came.
    heard: AtomicU64,
    has_asked: AtomicBool,
    sent_away: watch::Sender<bool>,
}

/// One connection; it leaves when this is dropped.
pub(super) struct Member {
    crowd: Arc<Crowd>,
    number: u64,
    signs: Arc<Signs>,
}

impl Crowd {
    pub(super) fn new(most: usize) -> Arc<Crowd> {
        let (members, next) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Crowd { most: most.max(1), began: Instant::now(), members, next })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn members(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Signs>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn join(self: &Arc<Self>) -> Member {
        let signs = Arc::new(Signs {
            heard: AtomicU64::new(self.now()),
            has_asked: AtomicBool::new(false),
            sent_away: watch::Sender::new(false),
        });
        let number = self.next.fetch_add(1, Relaxed);
        let mut members = self.members();
        if members.len() >= self.most {
            // Those who are on their way out already make no more room by being told again.
            let staying = members.values().filter(|signs| !*signs.sent_away.borrow());
            if let Some(quietest) = staying.min_by_key(|signs| signs.heard.load(Relaxed)) {
                quietest.sent_away.send_replace(true);
            }
        }
        members.insert(number, signs.clone());
        drop(members);
        Member { crowd: self.clone(), number, signs }
    }
}

impl Member {
    /// A request begins.
    pub(super) fn asks(&self) {
        self.signs.heard.store(self.crowd.now(), Relaxed);
        self.signs.has_asked.store(true, Relaxed);
    }

    pub(super) fn has_asked(&self) -> bool {
        self.signs.has_asked.load(Relaxed)
    }

    /// Waits until it is to go.
    pub(super) async fn sent_away(&self) {
        // The sender is ours, so it is there.
        let _ = self.signs.sent_away.subscribe().wait_for(|told| *told).await;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.crowd.members().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn is_sent_away(member: &Member) -> bool {
        *member.signs.sent_away.borrow()
    }

    #[tokio::test]
    async fn who_was_heard_of_last_stays() {
        let crowd = Crowd::new(3);
        let members = [crowd.join(), crowd.join(), crowd.join()];
        tokio::time::sleep(Duration::from_millis(5)).await;
        members[0].asks();
        members[2].asks();
        assert!(!members.iter().any(is_sent_away));
        let fourth = crowd.join();
        assert_eq!(members.each_ref().map(is_sent_away), [false, true, false]);
        members[1].sent_away().await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        members[2].asks();
        // The one who was told is still there: another one is told.
        let fifth = crowd.join();
        assert_eq!(members.each_ref().map(is_sent_away), [true, true, false]);
        drop(members);
        drop((fourth, fifth));
        assert!(crowd.members().is_empty());
    }
}
