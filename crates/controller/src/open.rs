//! Jobs whose end has not been counted: running ones, and after a restart those that their nodes have
//! still to report. With each what was reserved for its memory: the end of the job is judged by that, a
//! node does not report it, and options may have changed since.

use crate::memory::{Factors, MemoryRequest, Reserved};
use crate::packed::{Packer, Unpacker};
use std::collections::BTreeMap;

/// Open jobs of a task by `task_job_index`.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct OpenJobs {
    reserved: BTreeMap<u64, Reserved>,
}

impl OpenJobs {
    pub fn insert(&mut self, index: u64, reserved: Reserved) {
        self.reserved.insert(index, reserved);
    }
    pub fn remove(&mut self, index: u64) {
        self.reserved.remove(&index);
    }
    pub fn contains(&self, index: u64) -> bool {
        self.reserved.contains_key(&index)
    }
    pub fn get(&self, index: u64) -> Option<Reserved> {
        self.reserved.get(&index).copied()
    }
    pub fn indices(&self) -> impl Iterator<Item = u64> + '_ {
        self.reserved.keys().copied()
    }
    pub fn len(&self) -> usize {
        self.reserved.len()
    }
    /// Keeps only these.
    pub fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        self.reserved.retain(|index, _| keep(*index));
    }

    /// Durable form: the indices, and what was reserved as runs. Few different reserves are in use at a
    /// time, and jobs that were started one after another have the same, so this is short.
    pub fn pack(&self) -> (Vec<u8>, Vec<u8>) {
        let indices = Packer::default().ascending(self.reserved.keys().copied()).finish();
        let mut known: BTreeMap<[u64; 5], u64> = BTreeMap::new();
        let mut table = Packer::default();
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for reserved in self.reserved.values() {
            let row = row(reserved);
            let next = known.len() as u64;
            let place = *known.entry(row).or_insert(next);
            if place == next {
                for number in row {
                    table.unsigned(number);
                }
            }
            match runs.last_mut() {
                Some((last, length)) if *last == place => *length += 1,
                _ => runs.push((place, 1)),
            }
        }
        let mut out = Packer::default();
        out.unsigned(known.len() as u64);
        let mut bytes = out.finish();
        bytes.extend(table.finish());
        for (place, length) in runs {
            out.unsigned(place).unsigned(length);
        }
        bytes.extend(out.finish());
        (indices, bytes)
    }

    /// Inverse of [`OpenJobs::pack`]; `None` if the bytes are malformed. State of an older program does
    /// not say what was reserved: then it was the usual.
    pub fn unpack(indices: &[u8], reserves: Option<&[u8]>, usual: Reserved) -> Option<OpenJobs> {
        let indices = Unpacker::new(indices).ascending()?;
        let reserved = match reserves {
            None => vec![usual; indices.len()],
            Some(bytes) => unpack_reserves(bytes, indices.len())?,
        };
        Some(OpenJobs { reserved: indices.into_iter().zip(reserved).collect() })
    }
}

/// Equal rows are equal reserves.
fn row(reserved: &Reserved) -> [u64; 5] {
    let Reserved { factors, request } = reserved;
    let bytes = [request.total, request.user_job_reserve, request.job_proxy_reserve];
    let [total, user_job, job_proxy] = bytes.map(i64::cast_unsigned);
    [factors.user_job.to_bits(), factors.job_proxy.to_bits(), total, user_job, job_proxy]
}

fn unpack_row(input: &mut Unpacker<'_>) -> Option<Reserved> {
    let factor = |bits: u64| Some(f64::from_bits(bits)).filter(|f| f.is_finite() && *f > 0.0);
    let factors = Factors { user_job: factor(input.unsigned()?)?, job_proxy: factor(input.unsigned()?)? };
    let mut bytes = || i64::try_from(input.unsigned()?).ok();
    let request = MemoryRequest { total: bytes()?, user_job_reserve: bytes()?, job_proxy_reserve: bytes()? };
    Some(Reserved { factors, request })
}

fn unpack_reserves(bytes: &[u8], count: usize) -> Option<Vec<Reserved>> {
    let mut input = Unpacker::new(bytes);
    let mut table = Vec::new();
    for _ in 0..input.unsigned()? {
        table.push(unpack_row(&mut input)?);
    }
    let mut reserves = Vec::new();
    while !input.is_empty() {
        let place = usize::try_from(input.unsigned()?).ok()?;
        let length = usize::try_from(input.unsigned()?).ok()?;
        if length > count - reserves.len() {
            return None;
        }
        reserves.extend(std::iter::repeat_n(*table.get(place)?, length));
    }
    (reserves.len() == count).then_some(reserves)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserved(user_job: f64, job_proxy_reserve: i64) -> Reserved {
        let user_job_reserve = (user_job * 512.0) as i64;
        let total = user_job_reserve + job_proxy_reserve;
        let request = MemoryRequest { total, user_job_reserve, job_proxy_reserve };
        Reserved { factors: Factors { user_job, job_proxy: 1.0 }, request }
    }

    #[test]
    fn open_jobs_come_back() {
        let (usual, retry, older) = (reserved(0.5, 128), reserved(1.0, 128), reserved(0.5, 64));
        let mut open = OpenJobs::default();
        for index in 0..1_000 {
            let reserved = match index {
                0..100 => older,
                _ if index % 500 == 7 => retry,
                _ => usual,
            };
            open.insert(index * 3, reserved);
        }
        let (indices, reserves) = open.pack();
        assert_eq!(OpenJobs::unpack(&indices, Some(&reserves), usual), Some(open.clone()));
        assert!(reserves.len() < 100, "{} bytes", reserves.len());
        let old = OpenJobs::unpack(&indices, None, usual).expect("own bytes");
        assert_eq!((old.len(), old.get(507 * 3)), (1_000, Some(usual)));
        assert_eq!((open.get(507 * 3), open.get(0)), (Some(retry), Some(older)));
        for cut in 0..reserves.len() {
            assert_eq!(OpenJobs::unpack(&indices, Some(&reserves[..cut]), usual), None);
        }
        assert_eq!(OpenJobs::unpack(&indices[1..], Some(&reserves), usual), None);
    }
}
