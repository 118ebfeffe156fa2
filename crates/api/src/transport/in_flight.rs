//! Bytes of replies that wait for their readers.
//!
//! The server keeps a reply in memory until the client has read it. Large replies are therefore counted: the bytes of one
//! user's unread replies have a bound, and so have those of all users together. A reply that would exceed a bound is refused
//! before it is serialized. A user without other unread replies may get one that is larger than the bound.

use axum::body::HttpBody;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use vocab::{Failure, code};
use yson::Value;

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

/// Smaller replies are not counted: a connection has one at a time, and connections are bounded.
const COUNTED: u64 = 64 << 10;

/// What the replies that are under way take.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
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
    pub(crate) fn add(&self, reservation: Option<Reservation>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(reservation);
    }

    /// All reservations that were added.
    pub(crate) fn take_all(&self) -> Vec<Reservation> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The reservation for a reply of `bytes` bytes. `None`, and all reservations end, if there is not exactly one or if
    /// it is too small.
    pub(super) fn take(&self, bytes: u64) -> Option<Reservation> {
        let mut all = self.take_all();
        let only = if all.len() == 1 { all.pop() } else { None };
        only.filter(|reservation| bytes <= reservation.bytes + COUNTED)
    }
}

/// Bytes that count towards the bounds until this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    of: Arc<InFlight>,
    user: String,
    bytes: u64,
}

impl InFlight {
    pub(crate) fn new(limits: InFlightLimits) -> Arc<InFlight> {
        Arc::new(InFlight { limits, taken: Mutex::default() })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a reply of about `bytes` bytes to a user. `None`: the reply is too small to be counted.
    pub(crate) fn reserve(self: &Arc<Self>, user: &str, bytes: u64) -> Result<Option<Reservation>, Failure> {
        if bytes <= COUNTED {
            return Ok(None);
        }
        self.count(user, bytes)?;
        Ok(Some(Reservation { of: Arc::clone(self), user: user.to_owned(), bytes }))
    }

    /// The reservation of a reply that is made in parts, which has none yet.
    pub(crate) fn begin(self: &Arc<Self>, user: &str) -> Reservation {
        Reservation { of: Arc::clone(self), user: user.to_owned(), bytes: 0 }
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
            let text = format!(
                "{unread} bytes of replies to {whose} are not read yet, and this one has about {bytes}: at most {limit} are \
                 kept; read them, and try again"
            );
            return Err(Failure::coded(code::TOO_MANY_REQUESTS_OF_USER, text)
                .with("limit", limit)
                .with("retry_after", RETRY_AFTER));
        }
        taken.total += bytes;
        *taken.users.entry(user.to_owned()).or_default() += bytes;
        Ok(())
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
    pub(crate) fn absorb(&mut self, mut other: Reservation) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Seconds.
const RETRY_AFTER: u64 = 1;

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        taken.total -= self.bytes;
        let left = taken.users.get(&self.user).map_or(0, |bytes| bytes - self.bytes);
        if left == 0 {
            taken.users.remove(&self.user);
        } else {
            taken.users.insert(self.user.clone(), left);
        }
    }
}

/// What a value takes when it is written out, from below: strings as they are, all else eight bytes.
pub(crate) fn weight(value: &Value) -> u64 {
    let own = match value {
        Value::String(text) => text.len() as u64,
        _ => 8,
    };
    let of_map = |map: &yson::Map| map.iter().map(|(key, value)| key.len() as u64 + weight(value)).sum();
    let below = match value {
        Value::List(items) => items.iter().map(weight).sum(),
        Value::Map(map) => of_map(map),
        Value::Attributed(both) => of_map(&both.0) + weight(&both.1),
        _ => 0u64,
    };
    own + below
}

/// A body that is given to the connection piece by piece, as the client reads.
pub(super) struct Pieces {
    rest: Bytes,
    _reservation: Option<Reservation>,
}

/// A connection keeps a few of these.
const PIECE: usize = 64 << 10;

impl Pieces {
    pub fn new(bytes: Bytes, reservation: Option<Reservation>) -> Pieces {
        Pieces { rest: bytes, _reservation: reservation }
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.rest.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Arc<InFlight> {
        InFlight::new(InFlightLimits { per_user: 1 << 20, total: 2 << 20 })
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
        assert!(reserve("ann", 1000).expect("small replies do not count").is_none());
        drop(again);
        assert_eq!(in_flight.taken().users.len(), 2);
    }

    /// S14.
    #[test]
    fn what_was_counted_before_the_copy_is_not_counted_again() {
        let in_flight = limits();
        let counted = Counted::default();
        counted.add(in_flight.reserve("ann", 700_000).expect("room"));
        let kept = counted.take(700_010).expect("the reply is this value");
        assert!(counted.take(700_010).is_none(), "it is taken once");
        drop(kept);
        // Of a batch the whole reply is counted.
        for _ in 0..2 {
            counted.add(in_flight.reserve("ann", 300_000).expect("room"));
        }
        assert!(counted.take(600_000).is_none());
        assert_eq!(in_flight.taken().total, 0, "the parts do not count any more");
    }

    /// S14.
    #[test]
    fn a_reply_that_is_made_in_parts_counts_with_all_of_them() {
        let in_flight = limits();
        let mut parts = in_flight.begin("ann");
        (0..10).for_each(|_| parts.grow(100_000).expect("room"));
        assert!(parts.grow(100_000).is_err(), "parts are counted although each is small");
        assert_eq!((parts.bytes(), in_flight.taken().total), (1_000_000, 1_000_000));
        let mut whole = in_flight.begin("ann");
        whole.absorb(parts);
        assert_eq!((whole.bytes(), in_flight.taken().total), (1_000_000, 1_000_000));
        drop(whole);
        assert!(in_flight.taken().users.is_empty());
    }

    #[test]
    fn one_reply_may_be_larger_than_the_bound() {
        let in_flight = limits();
        let _huge = in_flight.reserve("ann", 10 << 20).expect("nothing else is under way");
        assert!(in_flight.reserve("ann", 100_000).is_err());
    }

    #[test]
    fn a_value_weighs_what_its_strings_weigh() {
        let text = Value::from("x".repeat(1000));
        let value = Value::Map(yson::map! {"key" => vec![text.clone(), text]});
        assert_eq!(weight(&value), 8 + 3 + 8 + 2000);
    }
}
