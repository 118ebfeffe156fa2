//! The durable form of what a task has learned: a byte string that is written whole whenever the
//! task's state is, so it has to be short. With the defaults a full digest takes less than 2 KB.
//!
//! ```text
//! Reserves   version, digest of user jobs, digest of job proxies, overdrafts
//! digest     lower, default, upper, precision, step: doubles, little-endian
//!            number of buckets, number of filled ones, then for each: empty ones before it, count
//! overdrafts number, then for each: cookies since the one before, statuses, factors of those that
//!            overdrew once, id of the aborted job
//! ```
//! Numbers without a width are varints. The bounds are stored, not taken from the options: what the
//! options say acts on new digests only (jobs-and-nodes.md 10).

use super::digest::Bucket;
use super::reserves::{Overdraft, Status};
use super::{Bounds, LogDigest, Reserves, Settings};
use std::collections::BTreeMap;
use vocab::{Guid, JobId};

/// First byte of the stored form.
pub const VERSION: u8 = 1;

/// Bytes that are not what was learned, or of a version that this program does not know.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BrokenDigest {
    /// Written by another program.
    #[error("version {0} of stored memory digests is not known, expected {VERSION}")]
    Version(u8),
    /// Cut off or changed.
    #[error("stored memory digests are malformed at byte {0}")]
    Malformed(usize),
}

impl Reserves {
    /// The durable form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer(vec![VERSION]);
        out.digest(&self.user_job);
        out.digest(&self.job_proxy);
        out.number(self.overdrafts.len() as u64);
        let mut next = 0;
        for (&cookie, state) in &self.overdrafts {
            out.number(u64::from(cookie - next));
            next = cookie.saturating_add(1);
            out.0.push(tag(state.user_job) | tag(state.job_proxy) << 2);
            for status in [state.user_job, state.job_proxy] {
                if let Status::Once(factor) = status {
                    out.double(factor);
                }
            }
            out.0.extend_from_slice(&state.predecessor.0.to_bytes());
        }
        out.0
    }

    /// Inverse of [`Reserves::encode`], for a task with these settings.
    pub fn decode(settings: Settings, bytes: &[u8]) -> Result<Reserves, BrokenDigest> {
        match bytes.first() {
            Some(&VERSION) => {}
            Some(&other) => return Err(BrokenDigest::Version(other)),
            None => return Err(BrokenDigest::Malformed(0)),
        }
        let mut input = Reader { bytes, at: 1 };
        let read = read(settings, &mut input);
        read.ok_or(BrokenDigest::Malformed(input.at))
    }
}

fn read(settings: Settings, input: &mut Reader<'_>) -> Option<Reserves> {
    let user_job = input.digest()?;
    let job_proxy = input.digest()?;
    let mut overdrafts = BTreeMap::new();
    let mut next = 0u32;
    for _ in 0..input.number()? {
        let cookie = next.checked_add(u32::try_from(input.number()?).ok()?)?;
        next = cookie.saturating_add(1);
        let [tags] = input.array()?;
        if tags >> 4 != 0 {
            return None;
        }
        let user_job = input.status(tags & 3)?;
        let proxy = input.status(tags >> 2)?;
        let predecessor = JobId(Guid::from_bytes(input.array()?));
        overdrafts.insert(cookie, Overdraft { user_job, job_proxy: proxy, predecessor });
    }
    let whole = input.at == input.bytes.len();
    whole.then(|| Reserves::with(settings, user_job, job_proxy, overdrafts))
}

fn tag(status: Status) -> u8 {
    match status {
        Status::None => 0,
        Status::Once(_) => 1,
        Status::MultipleTimes => 2,
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, mut x: u64) {
        while x >= 0x80 {
            self.0.push(x as u8 | 0x80);
            x >>= 7;
        }
        self.0.push(x as u8);
    }
    fn double(&mut self, x: f64) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }
    fn digest(&mut self, digest: &LogDigest) {
        let Bounds { lower, default, upper, precision } = *digest.bounds();
        for x in [lower, default, upper, precision, digest.step()] {
            self.double(x);
        }
        self.number(u64::from(digest.buckets()));
        self.number(digest.filled().len() as u64);
        let mut next = 0;
        for bucket in digest.filled() {
            self.number(u64::from(bucket.index - next));
            self.number(u64::from(bucket.count));
            next = bucket.index + 1;
        }
    }
}

/// Never trusts a length.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, _) = self.bytes.get(self.at..)?.split_first_chunk()?;
        self.at += N;
        Some(*head)
    }
    fn number(&mut self) -> Option<u64> {
        let mut x = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                return None;
            }
            x |= part << shift;
            if byte & 0x80 == 0 {
                return Some(x);
            }
        }
        None
    }
    fn double(&mut self) -> Option<f64> {
        self.array().map(f64::from_le_bytes)
    }
    fn status(&mut self, tag: u8) -> Option<Status> {
        match tag {
            0 => Some(Status::None),
            1 => self.double().filter(|x| x.is_finite() && *x > 0.0).map(Status::Once),
            2 => Some(Status::MultipleTimes),
            _ => None,
        }
    }
    fn digest(&mut self) -> Option<LogDigest> {
        let (lower, default) = (self.double()?, self.double()?);
        let (upper, precision) = (self.double()?, self.double()?);
        let step = self.double()?;
        let buckets = u32::try_from(self.number()?).ok()?;
        let mut filled = Vec::new();
        let mut next = 0u32;
        for _ in 0..self.number()? {
            let index = next.checked_add(u32::try_from(self.number()?).ok()?)?;
            let count = u32::try_from(self.number()?).ok()?;
            filled.push(Bucket { index, count });
            next = index.checked_add(1)?;
        }
        LogDigest::from_parts(Bounds { lower, default, upper, precision }, step, buckets, filled)
    }
}
