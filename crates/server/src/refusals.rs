//! Wrong passwords and tokens: the back-off after them, their metric, and their records in the audit log.

use crate::back_off::BackOff;
use crate::core_thread::Mailbox;
use crate::metrics::Measures;
use crate::password_checks::network;
use api::secrets::sha256;
use kernel::{Input, RefusedSignIn};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vocab::{Failure, Span, code};

/// What a client has shown, as the metric and the audit log name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    Password,
    Token,
    NodeToken,
    JoinToken,
    NodeCertificate,
}

impl Shown {
    const fn as_str(self) -> &'static str {
        match self {
            Shown::Password => "password",
            Shown::Token => "token",
            Shown::NodeToken => "node_token",
            Shown::JoinToken => "join_token",
            Shown::NodeCertificate => "node_certificate",
        }
    }
}

/// Names of users in records are cut: they come from the client.
const NAME: usize = 100;

/// See the module page.
pub struct Refusals {
    measures: Arc<Measures>,
    mailbox: Mailbox,
    start: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    back_off: BackOff,
    records: Records,
}

impl Refusals {
    /// Nothing has been refused yet.
    pub fn new(measures: Arc<Measures>, mailbox: Mailbox) -> Refusals {
        Refusals { measures, mailbox, start: Instant::now(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Refuses a try with a password during a back-off: code 904 with `retry_after`. The answer is the same for a right
    /// and for a wrong password. `is_known`: the user has signed in from this address before.
    pub fn demand_password(&self, user: &str, from: Option<IpAddr>, is_known: bool) -> Result<(), Failure> {
        let delay =
            self.state().back_off.delay_of_password(self.now(), &sha256(user), from.map(network), is_known);
        delay.map_or(Ok(()), |delay| Err(self.too_early(Shown::Password, delay)))
    }

    /// Refuses a try with a token that can be guessed during a back-off, as for passwords.
    pub fn demand_token(&self, from: Option<IpAddr>) -> Result<(), Failure> {
        let delay = self.state().back_off.delay_of_token(self.now(), from.map(network));
        delay.map_or(Ok(()), |delay| Err(self.too_early(Shown::Token, delay)))
    }

    fn too_early(&self, shown: Shown, delay: Duration) -> Failure {
        self.measures.refused(shown.as_str(), "too_many_tries");
        self.state().records.unreported += 1;
        too_many_tries(delay)
    }

    /// Counts a wrong password, or a name that no user has.
    pub fn wrong_password(&self, user: &str, from: Option<IpAddr>, failure: &Failure) {
        let now = self.now();
        let delay = self.state().back_off.wrong_password(now, &sha256(user), from.map(network));
        self.refused((Shown::Password, "wrong"), Some(user), from, failure, delay);
    }

    /// Counts an unknown token and returns the refusal: the given one, or 904 during a back-off.
    pub fn wrong_token(&self, from: Option<IpAddr>, failure: Failure) -> Failure {
        if let Err(too_early) = self.demand_token(from) {
            return too_early;
        }
        let now = self.now();
        let delay = self.state().back_off.wrong_token(now, from.map(network));
        self.refused((Shown::Token, "wrong"), None, from, &failure, delay);
        failure
    }

    /// Counts a wrong token of a node. It is random, so guesses at it need no back-off.
    pub fn wrong_node_token(&self, from: Option<IpAddr>) {
        let failure = Failure::coded(code::INVALID_CREDENTIALS, "Invalid credentials: wrong token of a node");
        self.refused((Shown::NodeToken, "wrong"), None, from, &failure, None);
    }

    /// Counts a join token that was refused. It is random, so guesses at it need no back-off.
    pub fn wrong_join_token(&self, from: Option<IpAddr>, failure: &Failure) {
        self.refused((Shown::JoinToken, "wrong"), None, from, failure, None);
    }

    /// Counts a node whose identity is not known, was revoked or has ended.
    pub fn refused_node(&self, from: Option<IpAddr>, failure: &Failure) {
        self.refused((Shown::NodeCertificate, "refused"), None, from, failure, None);
    }

    /// The password was right.
    pub fn right_password(&self, user: &str, from: Option<IpAddr>) {
        self.state().back_off.right_password(&sha256(user), from.map(network));
    }

    /// The secret was right, and its user may not come in (`banned`), or not as the other user (`act_as`).
    pub fn not_admitted(&self, shown: Shown, from: Option<IpAddr>, failure: &Failure) {
        let user = failure.attributes.get("user").and_then(yson::Value::as_str);
        let why = if failure.code == code::AUTHENTICATION { "act_as" } else { "banned" };
        self.refused((shown, why), user, from, failure, None);
    }

    fn refused(
        &self,
        (shown, why): (Shown, &'static str),
        user: Option<&str>,
        from: Option<IpAddr>,
        error: &Failure,
        delay: Option<Duration>,
    ) {
        self.measures.refused(shown.as_str(), why);
        let Some(unreported) = self.state().records.next(self.now()) else { return };
        self.mailbox.send(Input::SignInRefused(Box::new(RefusedSignIn {
            shown: shown.as_str(),
            user: user.map(|user| user.chars().take(NAME).collect()),
            address: from.map(|address| address.to_canonical()),
            error: error.clone(),
            retry_after: delay.map(|delay| Span::from_secs(whole_seconds(delay))),
            unreported,
        })));
    }
}

/// The answer during a back-off. It does not tell whether the password was right.
fn too_many_tries(delay: Duration) -> Failure {
    let seconds = whole_seconds(delay);
    let text = format!("Too many wrong passwords or tokens: try again in {seconds} s");
    Failure::coded(code::TOO_MANY_REQUESTS_OF_USER, text).with("retry_after", seconds)
}

fn whole_seconds(delay: Duration) -> u64 {
    delay.as_secs() + u64::from(delay.subsec_nanos() > 0)
}

/// Records of the audit log at once, and one more after each [`RECORD_PERIOD`]: strangers must not push everything
/// else out of the event log.
const RECORDS: u32 = 100;
const RECORD_PERIOD: Duration = Duration::from_secs(1);

/// How many records may be written.
struct Records {
    left: u32,
    /// Until when `left` was filled up.
    filled: Duration,
    /// Refusals without a record since the last record.
    unreported: u64,
}

impl Default for Records {
    fn default() -> Records {
        Records { left: RECORDS, filled: Duration::ZERO, unreported: 0 }
    }
}

impl Records {
    /// May one more record be written? Then: how many refusals had none since the last one.
    fn next(&mut self, now: Duration) -> Option<u64> {
        let periods = now.saturating_sub(self.filled).as_nanos() / RECORD_PERIOD.as_nanos();
        let periods = u32::try_from(periods).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(periods).min(RECORDS);
        self.filled += RECORD_PERIOD * periods;
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Some(std::mem::take(&mut self.unreported))
            }
            None => {
                self.unreported += 1;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S11.
    #[test]
    fn refusals_do_not_flood_the_audit_log() {
        let mut records = Records::default();
        let at_once = (0..10_000).filter(|_| records.next(Duration::from_millis(1)).is_some()).count();
        assert_eq!(at_once, RECORDS as usize);
        assert_eq!(records.next(Duration::from_millis(1_500)), Some(10_000 - u64::from(RECORDS)));
        assert_eq!(records.next(Duration::from_millis(1_600)), None);
        assert_eq!(records.next(Duration::from_secs(2)), Some(1));
        // A quiet day allows no more than the beginning.
        let later = Duration::from_secs(86_400);
        let at_once = (0..10_000).filter(|_| records.next(later).is_some()).count();
        assert_eq!(at_once, RECORDS as usize);
    }

    /// S11.
    #[test]
    fn a_hint_is_whole_seconds_and_never_too_short() {
        for (delay, seconds) in [(1, 1), (999, 1), (1_000, 1), (1_001, 2), (60_000, 60)] {
            let failure = too_many_tries(Duration::from_millis(delay));
            assert_eq!(failure.attributes.get("retry_after").and_then(yson::Value::as_u64), Some(seconds));
            assert_eq!(failure.code, 904);
        }
    }
}
