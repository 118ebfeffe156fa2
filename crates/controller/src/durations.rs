//! How long the completed jobs of a task took, as counts by size: what tells a slow job from the others.

use crate::packed::{Packer, Unpacker};
use std::collections::BTreeMap;
use vocab::Span;

/// Ratio of neighbouring edges. Whoever is called slow is slow by much more than this.
const STEP: f64 = 1.1;
/// Shorter ones are alike.
const SHORTEST: Span = Span::from_millis(100);
/// The last bucket ends beyond ten years.
const BUCKETS: u64 = 256;

/// Bucket `i` holds what is below `SHORTEST * STEP^(i + 1)` and not in an earlier one. Empty buckets take
/// no place.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Durations {
    counts: BTreeMap<u64, u64>,
}

impl Durations {
    pub fn add(&mut self, duration: Span) {
        let ratio = duration.as_secs_f64() / SHORTEST.as_secs_f64();
        let bucket = if ratio > 1.0 { (ratio.ln() / STEP.ln()) as u64 } else { 0 };
        *self.counts.entry(bucket.min(BUCKETS - 1)).or_default() += 1;
    }

    /// So many were counted.
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The upper edge of the bucket that holds the `p * count`-th shortest; none without any.
    pub fn quantile(&self, p: f64) -> Option<Span> {
        let wanted = p * self.count() as f64;
        let mut seen = 0;
        let bucket = self.counts.iter().find(|(_, count)| {
            seen += **count;
            seen as f64 >= wanted
        })?;
        let edge = SHORTEST.as_micros() as f64 * STEP.powf((bucket.0 + 1) as f64);
        Some(Span(edge as u64))
    }

    /// Durable form: pairs of bucket and count.
    pub fn pack(&self) -> Vec<u8> {
        let mut out = Packer::default();
        for (bucket, count) in &self.counts {
            out.unsigned(*bucket).unsigned(*count);
        }
        out.finish()
    }

    /// Inverse of [`Durations::pack`]; `None` if the bytes are malformed.
    pub fn unpack(bytes: &[u8]) -> Option<Durations> {
        let mut input = Unpacker::new(bytes);
        let mut counts = BTreeMap::new();
        let mut sum = 0u64;
        while !input.is_empty() {
            let (bucket, count) = (input.unsigned()?, input.unsigned()?);
            sum = sum.checked_add(count)?;
            let ascends = counts.last_key_value().is_none_or(|(last, _)| *last < bucket);
            if bucket >= BUCKETS || count == 0 || !ascends {
                return None;
            }
            counts.insert(bucket, count);
        }
        Some(Durations { counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_slow_before_anything_is_done() {
        assert_eq!(Durations::default().quantile(0.8), None);
    }

    #[test]
    fn ten_years_have_a_place() {
        let mut durations = Durations::default();
        durations.add(Span::from_secs(10 * 365 * 86_400));
        assert!(durations.quantile(1.0).expect("one") > Span::from_secs(10 * 365 * 86_400));
        durations.add(Span(u64::MAX));
        durations.add(Span::ZERO);
        assert_eq!(durations.count(), 3);
    }

    proptest! {
        #[test]
        fn quantiles_are_a_tenth_too_long_at_most(mut millis in prop::collection::vec(100u64..1 << 40, 1..50), p in 0.01..1.0) {
            let mut durations = Durations::default();
            millis.iter().for_each(|ms| durations.add(Span::from_millis(*ms)));
            millis.sort_unstable();
            let place = f64::ceil(p * millis.len() as f64) as usize;
            let exact = millis[place.max(1) - 1] as f64;
            let found = durations.quantile(p).expect("some").as_micros() as f64 / 1e3;
            prop_assert!(found >= exact * 0.999 && found <= exact * STEP * 1.001, "{found} for {exact}");
            prop_assert_eq!(Durations::unpack(&durations.pack()), Some(durations));
        }

        #[test]
        fn broken_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(durations) = Durations::unpack(&bytes) {
                prop_assert!(durations.quantile(0.8).is_some() || durations.count() == 0);
            }
        }
    }
}
