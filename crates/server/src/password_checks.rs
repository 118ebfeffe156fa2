//! Whose turn it is to have a password looked at. That costs a core a while, on purpose, so strangers could keep
//! everybody else from signing in.
//!
//! There are two lanes, each with one check at a time: one for those who have signed in from the same address
//! before, one for all others. In neither does one address, or one user, wait more than a few times at once. So
//! strangers delay strangers, and whoever knows a password is let in beside them from then on.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit};
use vocab::{Failure, code};

/// Checks of one address that nobody has signed in from, or of one user at one from which he has: running and
/// waiting.
const OF_ONE: usize = 8;
/// Of one lane: each waits for as long as all before it take.
const OF_ALL: usize = 1000;
/// Users with their addresses that are remembered; who was not heard of longest is forgotten first.
const REMEMBERED: usize = 10_000;

/// Who waits in a lane: an address, with a user in the lane of those who are known.
type Key = (Option<IpAddr>, Option<String>);

/// See the module page.
pub struct PasswordChecks {
    known: Semaphore,
    strangers: Semaphore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<Key, usize>,
    /// In both lanes.
    in_all: [usize; 2],
    /// Who has signed in from where, the latest last.
    signed_in: VecDeque<(String, Option<IpAddr>)>,
}

impl State {
    fn is_known(&self, user: &str, from: Option<IpAddr>) -> bool {
        self.signed_in.iter().any(|(name, address)| name == user && *address == from)
    }
}

/// A check that may be made now; over when it is dropped.
pub struct Turn<'a> {
    _place: Place<'a>,
    _permit: Option<SemaphorePermit<'a>>,
}

struct Place<'a> {
    checks: &'a PasswordChecks,
    key: Key,
}

impl Default for PasswordChecks {
    fn default() -> PasswordChecks {
        PasswordChecks { known: Semaphore::new(1), strangers: Semaphore::new(1), state: Mutex::default() }
    }
}

impl PasswordChecks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has this user signed in from this address before, in this life of the server?
    pub fn is_known(&self, user: &str, from: Option<IpAddr>) -> bool {
        self.state().is_known(user, from.map(network))
    }

    /// Waits until a password of this user may be looked at. Code 904 if too many wait already.
    pub async fn turn(&self, user: &str, from: Option<IpAddr>) -> Result<Turn<'_>, Failure> {
        let place = self.enter(user, from.map(network))?;
        let lane = if place.key.1.is_some() { &self.known } else { &self.strangers };
        let permit = lane.acquire().await.ok();
        Ok(Turn { _place: place, _permit: permit })
    }

    fn enter(&self, user: &str, from: Option<IpAddr>) -> Result<Place<'_>, Failure> {
        let mut state = self.state();
        let is_known = state.is_known(user, from);
        let key = (from, is_known.then(|| user.to_owned()));
        let of_one = state.waiting.get(&key).copied().unwrap_or(0);
        let of_all = &mut state.in_all[usize::from(is_known)];
        if of_one >= OF_ONE || *of_all >= OF_ALL {
            let text = "Too many people sign in at this moment: try again in a minute";
            return Err(Failure::coded(code::TOO_MANY_REQUESTS_OF_USER, text).with("retry_after", 60));
        }
        *of_all += 1;
        state.waiting.insert(key.clone(), of_one + 1);
        Ok(Place { checks: self, key })
    }

    /// The password was right.
    pub fn succeeded(&self, user: &str, from: Option<IpAddr>) {
        let from = from.map(network);
        let mut state = self.state();
        state.signed_in.retain(|(name, address)| name != user || *address != from);
        state.signed_in.push_back((user.to_owned(), from));
        if state.signed_in.len() > REMEMBERED {
            state.signed_in.pop_front();
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.checks.state();
        let of_all = &mut state.in_all[usize::from(self.key.1.is_some())];
        *of_all = of_all.saturating_sub(1);
        match state.waiting.get(&self.key).copied().unwrap_or(0) {
            0 | 1 => drop(state.waiting.remove(&self.key)),
            count => drop(state.waiting.insert(self.key.clone(), count - 1)),
        }
    }
}

/// Whoever has one address of version 6 has all of its network.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn at(address: &str) -> Option<IpAddr> {
        Some(address.parse().expect("an address"))
    }

    /// A turn that comes at once.
    fn now<'a>(
        checks: &'a PasswordChecks,
        user: &str,
        from: Option<IpAddr>,
    ) -> Option<Result<Turn<'a>, i64>> {
        match pin!(checks.turn(user, from)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn.map_err(|failure| failure.code)),
            Poll::Pending => None,
        }
    }

    #[test]
    fn strangers_do_not_delay_who_has_been_here() {
        let checks = PasswordChecks::default();
        checks.succeeded("ann", at("10.0.0.1"));
        let _stranger = now(&checks, "ann", at("10.0.0.2")).expect("nobody is before him").expect("a place");
        assert!(now(&checks, "bob", at("10.0.0.1")).is_none(), "who was not here is a stranger everywhere");
        let ann = now(&checks, "ann", at("10.0.0.1"));
        assert!(ann.expect("beside the strangers").is_ok());
    }

    #[test]
    fn one_address_takes_a_few_places_and_gives_them_back() {
        let checks = PasswordChecks::default();
        let places: Vec<_> =
            (0..OF_ONE).map(|_| checks.enter("x", at("10.0.0.2")).expect("a place")).collect();
        let refused = checks.enter("y", at("10.0.0.2")).err().map(|failure| failure.code);
        assert_eq!(refused, Some(code::TOO_MANY_REQUESTS_OF_USER));
        assert!(checks.enter("x", at("10.0.0.3")).is_ok(), "another address has places of its own");
        drop(places);
        assert!(checks.enter("y", at("10.0.0.2")).is_ok());
        assert!(checks.state().waiting.is_empty() && checks.state().in_all == [0, 0]);
    }

    #[test]
    fn all_together_wait_no_longer_than_the_lane_is() {
        let checks = PasswordChecks::default();
        let from = |n: usize| Some(IpAddr::from([10, 1, (n >> 8) as u8, n as u8]));
        let _places: Vec<_> = (0..OF_ALL).map(|n| checks.enter("x", from(n)).expect("a place")).collect();
        assert!(checks.enter("x", from(OF_ALL)).is_err());
        checks.succeeded("ann", at("10.0.0.1"));
        assert!(checks.enter("ann", at("10.0.0.1")).is_ok(), "the other lane is empty");
    }

    #[test]
    fn a_network_is_one_address() {
        assert_eq!(at("2001:db8::1").map(network), at("2001:db8::ffff:1").map(network));
        assert_ne!(at("2001:db8::1").map(network), at("2001:db8:0:1::1").map(network));
        assert_eq!(at("::ffff:10.0.0.1").map(network), at("10.0.0.1"));
    }

    #[test]
    fn who_was_not_heard_of_longest_is_forgotten() {
        let checks = PasswordChecks::default();
        checks.succeeded("ann", at("10.0.0.1"));
        for n in 0..REMEMBERED {
            checks.succeeded(&format!("user-{n}"), at("10.0.0.1"));
        }
        assert!(checks.enter("ann", at("10.0.0.1")).expect("a place").key.1.is_none());
        assert!(checks.enter("user-0", at("10.0.0.1")).expect("a place").key.1.is_some());
    }
}
