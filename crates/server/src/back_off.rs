//! Back-off after wrong passwords and tokens. A pure state machine: `now` is the time since the start of the server.
//!
//! Wrong secrets are counted three times, and each count has its own number of tries without a delay:
//!
//! - of an account at one address: [`FREE_OF_PAIR`], so that guesses from one place stay rare;
//! - of an address, for all accounts and tokens together: [`FREE_OF_ADDRESS`];
//! - of an account, from all addresses together: [`FREE_OF_ACCOUNT`].
//!
//! Each further wrong secret closes the count for 1 s, then 2 s, 4 s and so on, at most [`LONGEST`]. A count falls by
//! one every [`FORGIVEN`]. So a guesser gets about one try a minute, and a closed count opens again by itself. A try
//! while a count is closed is not looked at and does not make the delay longer.
//!
//! A user who has signed in from an address before is only delayed by the first count: guesses from elsewhere, or of
//! other accounts, do not keep that user out.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Wrong passwords of one account from one address before the first delay.
pub const FREE_OF_PAIR: u32 = 5;
/// Wrong passwords and tokens from one address before the first delay.
pub const FREE_OF_ADDRESS: u32 = 30;
/// Wrong passwords of one account from all addresses before the first delay.
pub const FREE_OF_ACCOUNT: u32 = 50;
/// The longest delay.
pub const LONGEST: Duration = Duration::from_secs(60);
/// Time after which one wrong secret does not count any more.
const FORGIVEN: Duration = Duration::from_secs(60);
/// Entries of one kind of count. The ones that were heard of longest ago are dropped first.
const REMEMBERED: usize = 10_000;

/// Digest of the name of an account: names in tries are of any length, and need not exist.
pub type Account = String;

/// See the module page. Addresses are those of networks ([`crate::password_checks::network`]).
#[derive(Default)]
pub struct BackOff {
    pairs: Counts<(Account, Option<IpAddr>)>,
    addresses: Counts<Option<IpAddr>>,
    accounts: Counts<Account>,
}

impl BackOff {
    /// How long a try with a password must wait; `None` if it may be made now. `is_known`: the user has signed in from
    /// this address before.
    pub fn delay_of_password(
        &self,
        now: Duration,
        account: &Account,
        from: Option<IpAddr>,
        is_known: bool,
    ) -> Option<Duration> {
        let of_pair = self.pairs.delay(now, &(account.clone(), from));
        if is_known {
            return of_pair;
        }
        of_pair.max(self.addresses.delay(now, &from)).max(self.accounts.delay(now, account))
    }

    /// How long a try with a token must wait.
    pub fn delay_of_token(&self, now: Duration, from: Option<IpAddr>) -> Option<Duration> {
        self.addresses.delay(now, &from)
    }

    /// Counts a wrong password, or a wrong name. Returns the delay before the next try, if there is one.
    pub fn wrong_password(
        &mut self,
        now: Duration,
        account: &Account,
        from: Option<IpAddr>,
    ) -> Option<Duration> {
        let of_pair = self.pairs.failed(now, (account.clone(), from), FREE_OF_PAIR);
        let of_address = self.addresses.failed(now, from, FREE_OF_ADDRESS);
        of_pair.max(of_address).max(self.accounts.failed(now, account.clone(), FREE_OF_ACCOUNT))
    }

    /// Counts a wrong token. Returns the delay before the next try, if there is one.
    pub fn wrong_token(&mut self, now: Duration, from: Option<IpAddr>) -> Option<Duration> {
        self.addresses.failed(now, from, FREE_OF_ADDRESS)
    }

    /// The password was right: typing errors before it are forgotten. The other counts stay, or a guesser could clear
    /// them with an account of their own.
    pub fn right_password(&mut self, account: &Account, from: Option<IpAddr>) {
        self.pairs.entries.remove(&(account.clone(), from));
    }
}

/// Counts of one kind, in bounded memory.
struct Counts<K> {
    entries: BTreeMap<K, Count>,
}

impl<K> Default for Counts<K> {
    fn default() -> Counts<K> {
        Counts { entries: BTreeMap::new() }
    }
}

#[derive(Clone, Copy)]
struct Count {
    /// Wrong secrets times [`FORGIVEN`], as of `at`; falls with time.
    debt: Duration,
    /// Time of the last wrong secret.
    at: Duration,
    /// End of the delay.
    closed_until: Duration,
}

impl<K: Ord + Clone> Counts<K> {
    fn delay(&self, now: Duration, key: &K) -> Option<Duration> {
        let left = self.entries.get(key)?.closed_until.saturating_sub(now);
        (!left.is_zero()).then_some(left)
    }

    fn failed(&mut self, now: Duration, key: K, free: u32) -> Option<Duration> {
        if self.entries.len() >= REMEMBERED && !self.entries.contains_key(&key) {
            self.make_room(now);
        }
        let count = self.entries.entry(key).or_insert(Count {
            debt: Duration::ZERO,
            at: now,
            closed_until: Duration::ZERO,
        });
        count.debt = count.debt.saturating_sub(now.saturating_sub(count.at)) + FORGIVEN;
        count.at = now;
        // Rounded up: a part of a wrong secret counts.
        let failures =
            u32::try_from(count.debt.as_micros().div_ceil(FORGIVEN.as_micros())).unwrap_or(u32::MAX);
        let doublings = failures.checked_sub(free + 1)?;
        let delay = Duration::from_secs(1 << doublings.min(30)).min(LONGEST);
        count.closed_until = count.closed_until.max(now + delay);
        Some(delay)
    }

    /// Drops what is forgiven, and if that is not enough the quarter that was heard of longest ago.
    fn make_room(&mut self, now: Duration) {
        self.entries.retain(|_, count| count.debt > now.saturating_sub(count.at));
        if self.entries.len() >= REMEMBERED {
            let mut times: Vec<Duration> = self.entries.values().map(|count| count.at).collect();
            times.sort_unstable();
            let oldest = times[REMEMBERED / 4];
            let mut left = REMEMBERED / 4;
            self.entries.retain(|_, count| {
                let goes = left > 0 && count.at <= oldest;
                left -= usize::from(goes);
                !goes
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60;

    fn at(address: &str) -> Option<IpAddr> {
        Some(address.parse().expect("an address"))
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Tries as often as it is let, for so many seconds; returns how many tries were looked at.
    fn guess(
        back_off: &mut BackOff,
        begin: u64,
        seconds: u64,
        mut one: impl FnMut(&mut BackOff, Duration) -> bool,
    ) -> usize {
        (begin * 10..(begin + seconds) * 10)
            .filter(|tenth| one(back_off, Duration::from_millis(tenth * 100)))
            .count()
    }

    fn guess_password(
        back_off: &mut BackOff,
        begin: u64,
        seconds: u64,
        user: &str,
        from: Option<IpAddr>,
    ) -> usize {
        guess(back_off, begin, seconds, |back_off, now| {
            let may = back_off.delay_of_password(now, &user.to_owned(), from, false).is_none();
            if may {
                back_off.wrong_password(now, &user.to_owned(), from);
            }
            may
        })
    }

    /// S11.
    #[test]
    fn guesses_at_one_account_from_one_address_become_one_a_minute() {
        let mut back_off = BackOff::default();
        let first = guess_password(&mut back_off, 0, 10 * MINUTE, "root", at("10.0.0.1"));
        assert!((FREE_OF_PAIR as usize..25).contains(&first), "{first} guesses in ten minutes");
        let later = guess_password(&mut back_off, 10 * MINUTE, 60 * MINUTE, "root", at("10.0.0.1"));
        assert!((50..=61).contains(&later), "{later} guesses in an hour");
    }

    /// S11.
    #[test]
    fn no_delay_is_longer_than_a_minute_and_all_of_it_is_forgotten() {
        let mut back_off = BackOff::default();
        let (root, from) = ("root".to_owned(), at("10.0.0.1"));
        guess_password(&mut back_off, 0, 60 * MINUTE, "root", from);
        // Whatever the past was, the correct password is looked at a minute later.
        let end = secs(60 * MINUTE);
        assert!(back_off.delay_of_password(end, &root, from, false).is_none_or(|delay| delay <= LONGEST));
        assert_eq!(back_off.delay_of_password(end + LONGEST, &root, from, false), None);
        // Later, as many errors are free as in the beginning.
        let later = end + secs(u64::from(FREE_OF_PAIR + 8) * MINUTE);
        for _ in 0..FREE_OF_PAIR {
            assert_eq!(back_off.wrong_password(later, &root, from), None);
        }
        assert_eq!(back_off.wrong_password(later, &root, from), Some(secs(1)));
        assert_eq!(back_off.wrong_password(later, &root, from), Some(secs(2)));
    }

    /// S11: a stranger cannot keep root out.
    #[test]
    fn a_stranger_elsewhere_does_not_delay_the_user_of_an_account() {
        let mut back_off = BackOff::default();
        let root = "root".to_owned();
        for hour in 0..24 {
            guess_password(&mut back_off, hour * 60 * MINUTE, 60 * MINUTE, "root", at("203.0.113.9"));
            let now = secs((hour + 1) * 60 * MINUTE);
            // Not even where root has never signed in.
            assert_eq!(back_off.delay_of_password(now, &root, at("10.0.0.1"), false), None, "hour {hour}");
        }
    }

    /// S11: many strangers together.
    #[test]
    fn many_addresses_together_guess_little_more_and_do_not_delay_a_known_user() {
        let mut back_off = BackOff::default();
        let root = "root".to_owned();
        let mut looked_at = 0;
        for tenth in 0..10 * 60 * MINUTE {
            let now = Duration::from_millis(tenth * 100);
            let from = Some(IpAddr::from([10, 9, (tenth >> 8) as u8, tenth as u8]));
            if back_off.delay_of_password(now, &root, from, false).is_none() {
                back_off.wrong_password(now, &root, from);
                looked_at += 1;
            }
        }
        let most = FREE_OF_ACCOUNT as usize + 6 + 61;
        assert!((FREE_OF_ACCOUNT as usize..=most).contains(&looked_at), "{looked_at} guesses in an hour");
        let now = secs(60 * MINUTE);
        assert_eq!(back_off.delay_of_password(now, &root, at("192.0.2.1"), true), None);
    }

    /// S11: an office behind one address.
    #[test]
    fn guesses_at_one_account_do_not_delay_others_behind_the_same_address() {
        let mut back_off = BackOff::default();
        let office = at("10.0.0.1");
        guess_password(&mut back_off, 0, 20, "root", office);
        let now = secs(20);
        assert!(back_off.delay_of_password(now, &"root".to_owned(), office, false).is_some());
        assert_eq!(back_off.delay_of_password(now, &"ann".to_owned(), office, false), None);
        // Guesses at many accounts do, but not those who were there before.
        for n in 0..40 {
            guess_password(&mut back_off, 20 + n, 1, &format!("user-{n}"), office);
        }
        let now = secs(60);
        let delay = back_off.delay_of_password(now, &"ann".to_owned(), office, false);
        assert!(delay.is_some_and(|delay| delay <= LONGEST), "{delay:?}");
        assert_eq!(back_off.delay_of_password(now, &"ann".to_owned(), office, true), None);
    }

    /// S11: the back-off of an account does not depend on whether there is such a user, and a right password of
    /// another account does not clear it.
    #[test]
    fn an_own_account_does_not_clear_the_counts_of_others() {
        let mut back_off = BackOff::default();
        let from = at("10.0.0.1");
        let (root, own) = ("root".to_owned(), "mallory".to_owned());
        for _ in 0..=FREE_OF_PAIR {
            back_off.wrong_password(Duration::ZERO, &root, from);
            back_off.right_password(&own, from);
        }
        assert!(back_off.delay_of_password(Duration::ZERO, &root, from, false).is_some());
        // A typing error is forgotten with the right password.
        back_off.right_password(&root, from);
        assert_eq!(back_off.delay_of_password(Duration::ZERO, &root, from, false), None);
    }

    /// S11.
    #[test]
    fn wrong_tokens_close_their_address_and_no_other() {
        let mut back_off = BackOff::default();
        let looked_at = guess(&mut back_off, 0, 60 * MINUTE, |back_off, now| {
            let may = back_off.delay_of_token(now, at("10.0.0.1")).is_none();
            if may {
                back_off.wrong_token(now, at("10.0.0.1"));
            }
            may
        });
        assert!((FREE_OF_ADDRESS as usize..=105).contains(&looked_at), "{looked_at} tokens in an hour");
        let now = secs(60 * MINUTE);
        assert!(back_off.delay_of_token(now, at("10.0.0.1")).is_some());
        assert_eq!(back_off.delay_of_token(now, at("10.0.0.2")), None);
        assert_eq!(back_off.delay_of_token(now, None), None, "no address is an address of its own");
    }

    /// S11.
    #[test]
    fn memory_is_bounded_and_the_latest_are_kept() {
        let mut back_off = BackOff::default();
        for n in 0..5 * REMEMBERED as u64 {
            let from = Some(IpAddr::from([10, (n >> 16) as u8, (n >> 8) as u8, n as u8]));
            back_off.wrong_password(Duration::from_millis(n), &format!("user-{n}"), from);
        }
        let sizes =
            [back_off.pairs.entries.len(), back_off.addresses.entries.len(), back_off.accounts.entries.len()];
        assert!(sizes.iter().all(|size| (REMEMBERED / 2..=REMEMBERED).contains(size)), "{sizes:?}");
        let last = format!("user-{}", 5 * REMEMBERED as u64 - 1);
        assert!(back_off.accounts.entries.contains_key(&last));
        // Also when all of them came at the same moment.
        for n in 0..2 * REMEMBERED as u64 {
            back_off.wrong_password(secs(90_000), &format!("again-{n}"), None);
        }
        assert!(back_off.accounts.entries.len() <= REMEMBERED);
    }
}
