//! How many certificates one identity gets (S7).
//!
//! A node renews its certificate when half of its life is over, and with each new connection. A node whose machine is taken over
//! could ask without a pause, and each answer is a signature. So an identity gets [`BURST`] certificates at once, for
//! connections that are lost again and again, and one more after each [`Signatures::period`].
//!
//! Not durable: after a restart of the server each identity has its burst again.

use std::collections::BTreeMap;
use vocab::{Failure, Span, Time, code};

/// Certificates that an identity gets at once.
pub(crate) const BURST: u64 = 10;
/// Another one after this time, at least.
const PERIOD: Span = Span::from_secs(60);
/// Short-lived certificates are renewed more often: this many in the life of one, though two are enough.
const IN_A_LIFE: u64 = 16;

/// See the module page.
#[derive(Default)]
pub(crate) struct Signatures {
    /// By the key of the identity: the time at which its whole burst is there again. Identities with the whole burst are absent.
    whole_at: BTreeMap<String, Time>,
}

impl Signatures {
    /// Time after which an identity gets one more certificate, if certificates live this long.
    pub fn period(ttl: Span) -> Span {
        PERIOD.min(Span(ttl.0 / IN_A_LIFE)).max(Span(1))
    }

    /// Refuses an identity that had too many certificates: it should try again later.
    pub fn demand(&self, now: Time, key_sha256: &str, ttl: Span) -> Result<(), Failure> {
        let period = Signatures::period(ttl);
        let Some(whole_at) = self.whole_at.get(key_sha256) else { return Ok(()) };
        let missing = whole_at.since(now);
        let allowed = Span(period.0.saturating_mul(BURST - 1));
        if missing <= allowed {
            return Ok(());
        }
        let wait = Span(missing.0 - allowed.0);
        let text = format!(
            "This node had {BURST} certificates in a short time, and gets one in {period} at most: try again in {wait}. Its last \
             certificate is good until then"
        );
        Err(Failure::coded(code::UNAVAILABLE, text))
    }

    /// The identity gets a certificate.
    pub fn count(&mut self, now: Time, key_sha256: &str, ttl: Span) {
        let period = Signatures::period(ttl);
        match self.whole_at.get_mut(key_sha256) {
            Some(whole_at) => *whole_at = (*whole_at).max(now) + period,
            None => drop(self.whole_at.insert(key_sha256.to_owned(), now + period)),
        }
    }

    /// Forgets identities that have their whole burst again.
    pub fn forget_old(&mut self, now: Time) {
        self.whole_at.retain(|_, whole_at| *whole_at > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONTH: Span = Span::from_secs(30 * 86_400);

    /// S7: one node could make the server sign without end.
    #[test]
    fn an_identity_gets_a_burst_and_then_one_certificate_a_minute() {
        let mut signatures = Signatures::default();
        let mut now = Time::from_secs(1_000_000);
        for _ in 0..BURST {
            signatures.demand(now, "a", MONTH).expect("in the burst");
            signatures.count(now, "a", MONTH);
        }
        let refused = signatures.demand(now, "a", MONTH).expect_err("too many");
        assert_eq!(refused.code, code::UNAVAILABLE, "not a refusal of the identity: {refused}");
        let later = format!("try again in {}", Span::from_secs(60));
        assert!(refused.message.contains(&later), "{refused}");
        signatures.demand(now, "b", MONTH).expect("another identity");
        now += Span::from_secs(59);
        signatures.demand(now, "a", MONTH).expect_err("not yet");
        let mut given = 0;
        for _ in 0..600 {
            now += Span::from_secs(1);
            if signatures.demand(now, "a", MONTH).is_ok() {
                signatures.count(now, "a", MONTH);
                given += 1;
            }
        }
        assert_eq!(given, 10, "one a minute");
        now += Span::from_secs(600);
        signatures.forget_old(now);
        assert!(signatures.whole_at.is_empty());
    }

    /// S7: certificates of a minute must be renewed more often than once a minute.
    #[test]
    fn short_lived_certificates_can_be_renewed_in_time() {
        let ttl = Span::from_secs(6);
        let (mut signatures, mut now) = (Signatures::default(), Time::from_secs(1_000_000));
        for _ in 0..1000 {
            signatures.demand(now, "a", ttl).expect("twice in a life is always allowed");
            signatures.count(now, "a", ttl);
            now += Span(ttl.0 / 2);
        }
    }
}
