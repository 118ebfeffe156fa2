//! Bodies that come piece by piece, as fast as their readers take them.
//!
//! A connection takes pieces of a body up to a mebibyte before it waits for its client. Here the next piece comes when the
//! ones before were handed to the system, so that a body without a reader keeps little: what is under way here, and what
//! its source has read ahead.

use super::in_flight::Reservation;
use crate::ByteStream;
use bytes::Bytes;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio_stream::Stream;
use vocab::Failure;

/// The next piece of a body is taken when fewer bytes than these wait in the connection.
const UNDER_WAY: usize = 128 << 10;
/// What one body counts with: a piece of the usual size, up to 256 KiB, that is under way, and one that waits behind it.
pub(super) const HELD: u64 = 512 << 10;

/// The same body, which counts until it and its pieces are gone.
pub(super) fn metered(body: ByteStream, reservation: Reservation) -> ByteStream {
    let window = Window { state: Mutex::default(), _reservation: reservation };
    Box::pin(Metered { body, window: Arc::new(window) })
}

struct Metered {
    body: ByteStream,
    window: Arc<Window>,
}

struct Window {
    state: Mutex<State>,
    _reservation: Reservation,
}

#[derive(Default)]
struct State {
    under_way: usize,
    /// The reader that waits for the pieces under way.
    waiting: Option<Waker>,
}

impl Window {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream for Metered {
    type Item = Result<Bytes, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut state = self.window.state();
        if state.under_way >= UNDER_WAY {
            state.waiting = Some(context.waker().clone());
            return Poll::Pending;
        }
        drop(state);
        let piece = match self.body.as_mut().poll_next(context) {
            Poll::Ready(Some(Ok(piece))) => piece,
            other => return other,
        };
        self.window.state().under_way += piece.len();
        let window = Arc::clone(&self.window);
        Poll::Ready(Some(Ok(Bytes::from_owner(Piece { bytes: piece, window }))))
    }
}

/// A piece under way.
struct Piece {
    bytes: Bytes,
    window: Arc<Window>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let mut state = self.window.state();
        state.under_way -= self.bytes.len();
        let waiting = state.waiting.take();
        drop(state);
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{InFlight, InFlightLimits};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    /// S14. A connection took 1 MiB of each body before its client had read anything.
    #[test]
    fn the_next_piece_comes_when_those_before_are_on_their_way() {
        let in_flight = InFlight::new(InFlightLimits { per_user: 1 << 20, total: 1 << 20 });
        let reservation = in_flight.open_stream("ann", HELD).expect("room");
        let pieces = (0..4u8).map(|i| Ok::<_, Failure>(Bytes::from(vec![i; UNDER_WAY])));
        let mut body = metered(Box::pin(tokio_stream::iter(pieces)), reservation);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut next = || body.as_mut().poll_next(&mut Context::from_waker(&waker));
        let Poll::Ready(Some(Ok(mut first))) = next() else { panic!("the first piece comes at once") };
        assert!(next().is_pending());
        let rest = first.split_off(10);
        drop(first);
        assert!(!woken.0.load(Ordering::SeqCst), "a part of it is under way");
        drop(rest);
        assert!(woken.0.load(Ordering::SeqCst));
        for i in 1..4 {
            let Poll::Ready(Some(Ok(piece))) = next() else { panic!("piece {i} follows") };
            assert_eq!(piece, vec![i; UNDER_WAY]);
        }
        assert!(matches!(next(), Poll::Ready(None)));
    }

    /// S14.
    #[test]
    fn bodies_without_readers_are_bounded_and_count_until_they_are_gone() {
        let in_flight = InFlight::new(InFlightLimits { per_user: 1, total: 2 << 20 });
        let open = |user| in_flight.open_stream(user, HELD);
        let body = || -> ByteStream { Box::pin(tokio_stream::iter([Ok(Bytes::from_static(b"piece"))])) };
        let mut bodies: Vec<_> = (0..3).map(|_| metered(body(), open("ann").expect("room"))).collect();
        let refused = open("ann").expect_err("one user cannot have all of them");
        assert!(refused.message.contains("1572864 bytes of streams to user \"ann\""), "{refused}");
        let other = open("bob").expect("room for another one");
        assert!(open("carl").expect_err("too much of all").message.contains("all users"));
        drop(other);
        let mut last = bodies.pop().expect("three");
        let piece = last.as_mut().poll_next(&mut Context::from_waker(Waker::noop()));
        drop(last);
        assert!(open("ann").is_err(), "its piece is under way");
        drop(piece);
        assert!(open("ann").is_ok());
    }
}
