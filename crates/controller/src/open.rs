//! Jobs whose end has not been counted: running ones, and after a restart those that their nodes have
//! still to report. With each the factors that its memory was reserved with: the end of the job is
//! judged by them, and a node does not report them.

use crate::memory::Factors;
use crate::packed::{Packer, Unpacker};
use std::collections::BTreeMap;

/// Open jobs of a task by `task_job_index`.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct OpenJobs {
    factors: BTreeMap<u64, Factors>,
}

impl OpenJobs {
    pub fn insert(&mut self, index: u64, factors: Factors) {
        self.factors.insert(index, factors);
    }
    pub fn remove(&mut self, index: u64) {
        self.factors.remove(&index);
    }
    pub fn contains(&self, index: u64) -> bool {
        self.factors.contains_key(&index)
    }
    pub fn factors(&self, index: u64) -> Option<Factors> {
        self.factors.get(&index).copied()
    }
    pub fn len(&self) -> usize {
        self.factors.len()
    }
    /// Keeps only these.
    pub fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        self.factors.retain(|index, _| keep(*index));
    }

    /// Durable form: the indices, and their factors as runs. Few different factors are in use at a
    /// time, and jobs that were started one after another have the same, so this is short.
    pub fn pack(&self) -> (Vec<u8>, Vec<u8>) {
        let indices = Packer::default().ascending(self.factors.keys().copied()).finish();
        let mut known: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut table = Packer::default();
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for factors in self.factors.values() {
            let bits = (factors.user_job.to_bits(), factors.job_proxy.to_bits());
            let next = known.len() as u64;
            let place = *known.entry(bits).or_insert(next);
            if place == next {
                table.unsigned(bits.0).unsigned(bits.1);
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

    /// Inverse of [`OpenJobs::pack`]; `None` if the bytes are malformed. State of an older program has
    /// no factors: then they are the usual ones.
    pub fn unpack(indices: &[u8], factors: Option<&[u8]>, usual: Factors) -> Option<OpenJobs> {
        let indices = Unpacker::new(indices).ascending()?;
        let factors = match factors {
            None => vec![usual; indices.len()],
            Some(bytes) => unpack_factors(bytes, indices.len())?,
        };
        Some(OpenJobs { factors: indices.into_iter().zip(factors).collect() })
    }
}

fn unpack_factors(bytes: &[u8], count: usize) -> Option<Vec<Factors>> {
    let mut input = Unpacker::new(bytes);
    let factor = |bits: u64| Some(f64::from_bits(bits)).filter(|f| f.is_finite() && *f > 0.0);
    let mut table = Vec::new();
    for _ in 0..input.unsigned()? {
        let (user_job, job_proxy) = (factor(input.unsigned()?)?, factor(input.unsigned()?)?);
        table.push(Factors { user_job, job_proxy });
    }
    let mut factors = Vec::new();
    while !input.is_empty() {
        let place = usize::try_from(input.unsigned()?).ok()?;
        let length = usize::try_from(input.unsigned()?).ok()?;
        if length > count - factors.len() {
            return None;
        }
        factors.extend(std::iter::repeat_n(*table.get(place)?, length));
    }
    (factors.len() == count).then_some(factors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_jobs_come_back() {
        let usual = Factors { user_job: 0.5, job_proxy: 1.0 };
        let retry = Factors { user_job: 1.0, job_proxy: 1.0 };
        let mut open = OpenJobs::default();
        for index in 0..1_000 {
            open.insert(index * 3, if index % 500 == 7 { retry } else { usual });
        }
        let (indices, factors) = open.pack();
        assert_eq!(OpenJobs::unpack(&indices, Some(&factors), usual), Some(open.clone()));
        assert!(factors.len() < 60, "{} bytes", factors.len());
        let old = OpenJobs::unpack(&indices, None, usual).expect("own bytes");
        assert_eq!((old.len(), old.factors(21)), (1_000, Some(usual)));
        assert_eq!(open.factors(21), Some(retry));
        for cut in 0..factors.len() {
            assert_eq!(OpenJobs::unpack(&indices, Some(&factors[..cut]), usual), None);
        }
        assert_eq!(OpenJobs::unpack(&indices[1..], Some(&factors), usual), None);
    }
}
