//! Bytes of replies that wait for their readers.
//!
//! The server keeps a reply in memory until the client has read it, and a client may never read. The bytes of one user's
//! unread replies therefore have a bound, and so have those of all users together. A reply that would exceed a bound is
//! refused before it is serialized. A user without other unread replies may get one that is larger than the bound.
//!
//! A [`Reservation`] lives as long as the bytes that it stands for: until the last of them was handed to the system, in
//! whatever buffer of the connection they wait. There are three accounts of them, so that the replies of one kind that a
//! user does not read do not shut the user out from the others:
//!
//! - replies of more than [`SMALL`] bytes have the whole bounds;
//! - smaller ones have a part of them;
//! - bodies that come piece by piece ([`super::metered`]) count with the most that they may hold.

use axum::body::HttpBody;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use vocab::{Failure, code};

/// Bounds, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InFlightLimits {
    /// Of the replies to one user.
    pub per_user: u64,
    /// Of all replies together.
    pub total: u64,
}

impl Default for InFlightLimits {
    fn default() -> InFlightLimits {
        InFlightLimits { per_user: 64 << 20, total: 512 << 20 }
    }
}

/// Most bytes of a small reply.
const SMALL: u64 = 4 << 10;
/// Small replies have this part of the bounds.
const PART_OF_SMALL: u64 = 8;

/// What the replies that are under way take.
#[derive(Debug)]
pub(crate) struct InFlight {
    large: Arc<Account>,
    small: Arc<Account>,
    streams: Arc<Account>,
}

/// Replies of one kind.
#[derive(Debug)]
struct Account {
    /// The kind.
    what: &'static str,
    limits: InFlightLimits,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    total: u64,
    users: BTreeMap<String, u64>,
}

/// What was counted for one request before its reply is written out.
#[derive(Debug, Default)]
pub(crate) struct Counted(Mutex<Vec<Reservation>>);

impl Counted {
    /// Keeps a reservation until the reply takes it over.
    pub(crate) fn add(&self, reservation: Reservation) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(reservation);
    }

    /// All reservations that were added.
    pub(crate) fn take_all(&self) -> Vec<Reservation> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The reservation for the reply: of the value in it, or of all results of a batch. `None`, and all reservations end,
    /// if there is not exactly one.
    pub(super) fn take(&self) -> Option<Reservation> {
        let mut all = self.take_all();
        if all.len() == 1 { all.pop() } else { None }
    }
}

/// Bytes that count towards the bounds until this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    of: Arc<Account>,
    user: String,
    bytes: u64,
}

impl InFlight {
    pub(crate) fn new(limits: InFlightLimits) -> InFlight {
        let account = |what, limits| Arc::new(Account { what, limits, taken: Mutex::default() });
        let InFlightLimits { per_user, total } = limits;
        let small = InFlightLimits { per_user: per_user / PART_OF_SMALL, total: total / PART_OF_SMALL };
        // One user may have many slow readers, and not all that there may be.
        let streams = InFlightLimits { per_user: total / 4 * 3, total };
        InFlight {
            large: account("replies", limits),
            small: account("small replies", small),
            streams: account("streams", streams),
        }
    }

    /// Counts a reply of about `bytes` bytes to a user.
    pub(crate) fn reserve(&self, user: &str, bytes: u64) -> Result<Reservation, Failure> {
        let account = if bytes > SMALL { &self.large } else { &self.small };
        account.reserve(user, bytes)
    }

    /// Counts a body that comes piece by piece, of which at most `bytes` bytes are kept at a time.
    pub(super) fn open_stream(&self, user: &str, bytes: u64) -> Result<Reservation, Failure> {
        self.streams.reserve(user, bytes)
    }

    /// The reservation of a reply that is made in parts, which has none yet.
    pub(crate) fn begin(&self, user: &str) -> Reservation {
        Reservation { of: Arc::clone(&self.large), user: user.to_owned(), bytes: 0 }
    }
}

impl Account {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserve(self: &Arc<Self>, user: &str, bytes: u64) -> Result<Reservation, Failure> {
        self.count(user, bytes)?;
        Ok(Reservation { of: Arc::clone(self), user: user.to_owned(), bytes })
    }

    fn count(&self, user: &str, bytes: u64) -> Result<(), Failure> {
        let mut taken = self.taken();
        let of_user = taken.users.get(user).copied().unwrap_or(0);
        let InFlightLimits { per_user, total } = self.limits;
        let too_much = if of_user > 0 && of_user.saturating_add(bytes) > per_user {
            Some((format!("user {user:?}"), of_user, per_user))
        } else if taken.total > 0 && taken.total.saturating_add(bytes) > total {
            Some(("all users".to_owned(), taken.total, total))
        } else {
            None
        };
        if let Some((whose, unread, limit)) = too_much {
            let what = self.what;
            let text = format!(
                "{unread} bytes of {what} to {whose} are not read yet, and this one has about {bytes}: at most {limit} are \
                 kept; read them, and try again"
            );
            return Err(Failure::coded(code::TOO_MANY_REQUESTS_OF_USER, text)
                .with("limit", limit)
                .with("retry_after", RETRY_AFTER));
        }
        taken.add(user, bytes);
        Ok(())
    }
}

impl Taken {
    fn add(&mut self, user: &str, bytes: u64) {
        self.total += bytes;
        match self.users.get_mut(user) {
            Some(of_user) => *of_user += bytes,
            None => {
                self.users.insert(user.to_owned(), bytes);
            }
        }
    }

    fn remove(&mut self, user: &str, bytes: u64) {
        self.total -= bytes;
        match self.users.get_mut(user) {
            Some(of_user) if *of_user > bytes => *of_user -= bytes,
            _ => {
                self.users.remove(user);
            }
        }
    }
}

impl Reservation {
    /// Counts another part of the reply, however small it is.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), Failure> {
        self.of.count(&self.user, bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes over the bytes of another reservation for the same user.
    pub(crate) fn absorb(&mut self, other: Reservation) {
        let bytes = other.bytes;
        drop(other);
        self.of.taken().add(&self.user, bytes);
        self.bytes += bytes;
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// From now on it counts with the bytes that there are, more or less than was thought.
    fn settle(&mut self, bytes: u64) {
        let mut taken = self.of.taken();
        taken.remove(&self.user, self.bytes);
        taken.add(&self.user, bytes);
        self.bytes = bytes;
    }

    /// The bytes of the reply. They count until the last part of them is dropped, wherever that is.
    pub(super) fn hold(mut self, mut body: Vec<u8>) -> Bytes {
        // What a buffer has grown to is up to twice what is in it.
        if body.capacity() - body.len() > body.len() / 4 {
            body.shrink_to_fit();
        }
        self.settle(body.len() as u64);
        Bytes::from_owner(Held { body, _reservation: self })
    }
}

struct Held {
    body: Vec<u8>,
    _reservation: Reservation,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

/// Seconds.
const RETRY_AFTER: u64 = 1;

impl Drop for Reservation {
    fn drop(&mut self) {
        self.of.taken().remove(&self.user, self.bytes);
    }
}

/// A body that is given to the connection piece by piece, as the client reads.
pub(super) struct Pieces(Bytes);

/// A connection keeps a few of these.
const PIECE: usize = 64 << 10;

impl Pieces {
    pub fn new(bytes: Bytes) -> Pieces {
        Pieces(bytes)
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0.is_empty() {
            return Poll::Ready(None);
        }
        // The last one takes the bytes along: nothing of them stays here.
        let piece = if self.0.len() > PIECE { self.0.split_to(PIECE) } else { std::mem::take(&mut self.0) };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> InFlight {
        InFlight::new(InFlightLimits { per_user: 1 << 20, total: 2 << 20 })
    }

    fn total(in_flight: &InFlight) -> [u64; 3] {
        [&in_flight.large, &in_flight.small, &in_flight.streams].map(|account| account.taken().total)
    }

    /// S14.
    #[test]
    fn bytes_that_nobody_reads_are_bounded_for_each_user_and_for_all() {
        let in_flight = limits();
        let reserve = |user: &str, bytes| in_flight.reserve(user, bytes);
        let first = reserve("ann", 700_000).expect("room");
        let refused = reserve("ann", 700_000).expect_err("too much of ann");
        assert_eq!(refused.code, code::TOO_MANY_REQUESTS_OF_USER);
        assert!(refused.message.contains("700000 bytes of replies to user \"ann\""), "{refused}");
        let _others: Vec<_> = ["bob", "carl"].map(|user| reserve(user, 600_000).expect("room")).into();
        assert!(reserve("dan", 600_000).expect_err("too much of all").message.contains("all users"));
        drop(first);
        let again = reserve("ann", 700_000).expect("it was read");
        drop(again);
        assert_eq!(in_flight.large.taken().users.len(), 2);
    }

    /// S14. Replies below some bytes were not counted: any number of them could wait.
    #[test]
    fn small_replies_are_bounded_too_and_not_shut_out_by_large_ones() {
        let in_flight = limits();
        let _large = in_flight.reserve("ann", 1 << 20).expect("room");
        assert!(in_flight.reserve("ann", SMALL + 1).is_err());
        let small: Vec<_> = (0..32).map(|_| in_flight.reserve("ann", SMALL).expect("room")).collect();
        let refused = in_flight.reserve("ann", 1).expect_err("too many small ones");
        assert!(refused.message.contains("131072 bytes of small replies to user \"ann\""), "{refused}");
        assert_eq!(total(&in_flight), [1 << 20, 131_072, 0]);
        drop(small);
        assert!(in_flight.reserve("ann", 1).is_ok());
    }

    /// S14. Connections and HTTP/2 take all pieces of a reply out of its body long before they are read.
    #[test]
    fn a_reply_counts_until_its_last_piece_is_dropped() {
        let in_flight = limits();
        let reservation = in_flight.reserve("ann", 100_000).expect("room");
        let mut body = Pieces::new(reservation.hold(vec![7; 300_000]));
        assert_eq!(total(&in_flight), [300_000, 0, 0], "what was written counts, not what was expected");
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut pieces = Vec::new();
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) {
            pieces.push(frame.into_data().expect("data"));
        }
        assert!(body.is_end_stream());
        drop(body);
        assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [PIECE, PIECE, PIECE, PIECE, 37_856]);
        let last = pieces.pop();
        drop(pieces);
        assert_eq!(total(&in_flight), [300_000, 0, 0]);
        drop(last);
        assert_eq!(total(&in_flight), [0, 0, 0]);
    }

    /// S14.
    #[test]
    fn what_was_counted_before_the_copy_is_not_counted_again() {
        let in_flight = limits();
        let counted = Counted::default();
        counted.add(in_flight.reserve("ann", 700_000).expect("room"));
        let kept = counted.take().expect("the reply is this value");
        assert!(counted.take().is_none(), "it is taken once");
        drop(kept);
        for _ in 0..2 {
            counted.add(in_flight.reserve("ann", 300_000).expect("room"));
        }
        assert!(counted.take().is_none(), "the whole reply is to be counted");
        assert_eq!(total(&in_flight), [0, 0, 0], "the parts do not count any more");
    }

    /// S14.
    #[test]
    fn a_reply_that_is_made_in_parts_counts_with_all_of_them() {
        let in_flight = limits();
        let mut parts = in_flight.begin("ann");
        (0..10).for_each(|_| parts.grow(100_000).expect("room"));
        assert!(parts.grow(100_000).is_err(), "parts are counted although each is small");
        assert_eq!((parts.bytes(), total(&in_flight)), (1_000_000, [1_000_000, 0, 0]));
        let mut whole = in_flight.begin("ann");
        whole.absorb(parts);
        whole.absorb(in_flight.reserve("ann", 1000).expect("room"));
        assert_eq!((whole.bytes(), total(&in_flight)), (1_001_000, [1_001_000, 0, 0]));
        drop(whole);
        assert!(in_flight.large.taken().users.is_empty());
    }

    #[test]
    fn one_reply_may_be_larger_than_the_bound() {
        let in_flight = limits();
        let _huge = in_flight.reserve("ann", 10 << 20).expect("nothing else is under way");
        assert!(in_flight.reserve("ann", 100_000).is_err());
    }
}
