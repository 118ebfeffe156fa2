//! Users of the host that jobs run as: ranges of their numbers.
//!
//! Each user of a cluster has one uid of the cluster's range on all nodes. Ranges of clusters that share hosts must not
//! overlap: by default a range follows from the id of the cluster, in a part of the numbers that no distribution gives to
//! accounts or containers.

use std::fmt;
use std::str::FromStr;

use crate::Guid;

/// The part from which default ranges are taken, from the first number to the one after the last. Up to 2,000,200,000 SSSD gives
/// numbers to accounts of directories, and from 0x7ffe_0000 on systemd has foreign uids.
const DEFAULTS_BEGIN: u32 = 0x7800_0000;
const DEFAULTS_END: u32 = 0x7ffe_0000;
/// Uids of a default range.
const DEFAULT_SIZE: u32 = 1 << 16;
/// Default ranges begin at multiples of this, and nodes claim uids in pieces of it.
pub const UID_BLOCK: u32 = 256;
/// Lower numbers belong to accounts of the system.
const SMALLEST: u32 = 1000;
/// User and group of the process by which a node tries at its start whether it can isolate jobs.
pub const PROBE_UID: u32 = 0x7fff_fff0;
/// `nobody` and "none" in 16 bits, the user of the self-check of nodes, and `nobody` in 32 bits.
const RESERVED: [u32; 4] = [65_534, 65_535, PROBE_UID, u32::MAX - 1];

/// Uids from `first` to `last`, both included. A job's group has the number of its user.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UidRange {
    first: u32,
    last: u32,
}

impl UidRange {
    /// A range that jobs may get; the error says what is allowed.
    pub fn new(first: u32, last: u32) -> Result<UidRange, String> {
        let found = format!("found {first}-{last}");
        if first > last {
            return Err(format!("expected the smaller number first, {found}"));
        }
        if first < SMALLEST || last == u32::MAX {
            return Err(format!("expected numbers from {SMALLEST} to {}, {found}", u32::MAX - 1));
        }
        let range = UidRange { first, last };
        match RESERVED.into_iter().find(|uid| range.contains(*uid)) {
            Some(uid) => Err(format!("expected a range without {uid}, which has another meaning, {found}")),
            None => Ok(range),
        }
    }

    /// The default range of a cluster: 65,536 uids between 0x78000000 and 0x7ffdffff.
    pub fn of_cluster(id: Guid) -> UidRange {
        let hash = id.to_bytes().into_iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let places = (DEFAULTS_END - DEFAULTS_BEGIN - DEFAULT_SIZE) / UID_BLOCK;
        // The low bits of the hash are the weaker ones.
        let place = u32::try_from((hash >> 16) % u64::from(places)).unwrap_or_default();
        let first = DEFAULTS_BEGIN + place * UID_BLOCK;
        UidRange { first, last: first + DEFAULT_SIZE - 1 }
    }

    /// The smallest uid.
    pub fn first(self) -> u32 {
        self.first
    }

    /// The largest uid.
    pub fn last(self) -> u32 {
        self.last
    }

    /// Number of uids.
    pub fn count(self) -> u64 {
        u64::from(self.last - self.first) + 1
    }

    /// Is the uid one of the range?
    pub fn contains(self, uid: u32) -> bool {
        (self.first..=self.last).contains(&uid)
    }

    /// Has it a uid in common with another range?
    pub fn overlaps(self, other: UidRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Its beginning, in whole blocks of [`UID_BLOCK`], up to the block that has `uid`; the whole range if it has no such uid.
    pub fn up_to_block_of(self, uid: u32) -> UidRange {
        if !self.contains(uid) {
            return self;
        }
        let blocks = (uid - self.first) / UID_BLOCK + 1;
        let last = u64::from(self.first) + u64::from(blocks) * u64::from(UID_BLOCK) - 1;
        UidRange { first: self.first, last: u32::try_from(last).unwrap_or(u32::MAX).min(self.last) }
    }
}

impl fmt::Display for UidRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl FromStr for UidRange {
    type Err = String;
    /// `first-last`.
    fn from_str(text: &str) -> Result<UidRange, String> {
        let wrong = || format!("expected two numbers, \"first-last\", found {text:?}");
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        UidRange::new(number(first)?, number(last)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S9.
    #[test]
    fn ranges_without_uids_of_the_system_are_accepted() {
        for text in ["1000-1000", "100000-165535", "65536-70000", "1000-65533", "4294967293-4294967293"] {
            assert_eq!(text.parse::<UidRange>().map(|range| range.to_string()), Ok(text.to_owned()));
        }
        for (text, why) in [
            ("0-10", "from 1000"),
            ("999-2000", "from 1000"),
            ("2000-1000", "smaller number first"),
            ("60000-70000", "65534"),
            ("65535-70000", "65535"),
            ("2147483600-2147483647", "2147483632"),
            ("4294967294-4294967294", "4294967294"),
            ("100000-4294967295", "from 1000 to 4294967294"),
            ("100000", "first-last"),
            ("a-b", "first-last"),
            ("-5-7", "first-last"),
        ] {
            let error = text.parse::<UidRange>().expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    /// S9: two clusters on one host.
    #[test]
    fn default_ranges_are_apart_from_accounts_and_from_each_other() {
        let ranges: Vec<UidRange> = (0..200).map(|n| UidRange::of_cluster(Guid([n, 7, 1, n * 3]))).collect();
        for range in &ranges {
            assert!(range.first() > 2_000_200_000 && range.last() < 0x7ffe_0000, "{range}");
            assert_eq!(range.count(), 65_536);
            assert_eq!(UidRange::new(range.first(), range.last()), Ok(*range));
        }
        assert_eq!(UidRange::of_cluster(Guid([1, 2, 3, 4])), UidRange::of_cluster(Guid([1, 2, 3, 4])));
        let starts: std::collections::BTreeSet<u32> = ranges.iter().map(|range| range.first()).collect();
        assert!(starts.len() >= 198, "{} different ones", starts.len());
    }

    #[test]
    fn a_range_is_claimed_by_blocks() {
        let range = UidRange::new(10_000, 10_600).expect("a range");
        let upto = |uid| range.up_to_block_of(uid).last();
        assert_eq!(
            [upto(10_000), upto(10_255), upto(10_256), upto(10_600)],
            [10_255, 10_255, 10_511, 10_600]
        );
        assert_eq!(range.up_to_block_of(5), range);
        let end = UidRange::new(u32::MAX - 10, u32::MAX - 2).expect("a range");
        assert_eq!(end.up_to_block_of(u32::MAX - 9), end);
        let other = UidRange::new(10_600, 11_000).expect("a range");
        assert!(range.overlaps(other) && other.overlaps(range));
        assert!(!range.up_to_block_of(10_000).overlaps(other));
    }
}
