//! A digest of numbers: how many fell into each of the buckets whose edges grow by a constant factor
//! (jobs-and-nodes.md 2.2). It stores counts and no samples.

use super::Bounds;

/// Most buckets that a digest has, whatever precision is asked for: a quantile has to walk over them.
///
/// With fewer than about half a percent of precision over a range of 1 to 20 nobody notices; the
/// bound keeps an option of one user from costing everybody time and memory.
pub const MAX_BUCKETS: u32 = 1 << 14;

/// How a list of filled buckets grows: it stays small, so tightly.
const GROWTH: usize = 16;

/// Counts of samples by size.
///
/// Empty buckets take no place: jobs of one task are much alike, and few of the buckets are ever used.
#[derive(Clone, PartialEq, Debug)]
pub struct LogDigest {
    bounds: Bounds,
    /// Ratio of neighbouring edges; 1 + precision.
    step: f64,
    /// Its logarithm.
    ln_step: f64,
    buckets: u32,
    filled: Vec<Bucket>,
    count: u64,
}

/// A bucket with samples in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bucket {
    pub index: u32,
    pub count: u32,
}

impl LogDigest {
    /// An empty digest. The bounds are positive and finite, the lower one is not above the upper one.
    pub fn new(bounds: Bounds) -> LogDigest {
        debug_assert!(bounds.are_sound(), "{bounds:?}");
        let width = bounds.upper.ln() - bounds.lower.ln();
        let mut step = 1.0 + bounds.precision;
        // The formula of the specification; with a finer precision than there is, not a number.
        let wanted = ((bounds.upper / bounds.lower).ln() / step.ln()).ceil().max(1.0);
        let mut buckets = MAX_BUCKETS;
        if wanted <= f64::from(MAX_BUCKETS) {
            buckets = wanted as u32;
        } else {
            step = (width / f64::from(MAX_BUCKETS)).exp();
        }
        LogDigest { bounds, step, ln_step: step.ln(), buckets, filled: Vec::new(), count: 0 }
    }

    /// From stored parts; `None` if they do not fit together.
    pub(super) fn from_parts(bounds: Bounds, step: f64, buckets: u32, filled: Vec<Bucket>) -> Option<Self> {
        let ascending = filled.windows(2).all(|w| w[0].index < w[1].index);
        let inside = filled.iter().all(|b| b.index < buckets && b.count > 0);
        let sound =
            bounds.are_sound() && step.is_finite() && step > 1.0 && (1..=MAX_BUCKETS).contains(&buckets);
        // As many as lead from the lower bound to the upper one, but for what logarithms lose.
        let wanted = ((bounds.upper.ln() - bounds.lower.ln()) / step.ln()).max(1.0);
        let fit = (f64::from(buckets) - wanted.ceil()).abs() <= 1.0 + wanted / 100.0;
        if !(ascending && inside && sound && fit) {
            return None;
        }
        let count = filled.iter().map(|b| u64::from(b.count)).sum();
        Some(LogDigest { bounds, step, ln_step: step.ln(), buckets, filled, count })
    }

    /// Adds a sample. What is not a positive number is ignored; what lies outside the bounds goes
    /// into the bucket at that end.
    pub fn add(&mut self, sample: f64) {
        let place = (sample / self.bounds.lower).ln() / self.ln_step;
        // NaN is in no range. Numbers beyond any place of an `i32` are not sizes of anything.
        if !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&place) {
            return;
        }
        let index = (place.trunc().max(0.0) as u32).min(self.buckets - 1);
        match self.filled.binary_search_by_key(&index, |b| b.index) {
            Ok(at) => match self.filled[at].count.checked_add(1) {
                Some(more) => self.filled[at].count = more,
                // Four thousand million samples alike: one more says nothing.
                None => return,
            },
            Err(at) => {
                if self.filled.len() == self.filled.capacity() {
                    self.filled.reserve_exact(GROWTH);
                }
                self.filled.insert(at, Bucket { index, count: 1 });
            }
        }
        self.count += 1;
    }

    /// The upper edge of the bucket that holds the `p * count`-th smallest sample, rounded up; the
    /// default without samples. For samples inside the bounds the answer is at most the precision
    /// above the true quantile, and never below it.
    pub fn quantile(&self, p: f64) -> f64 {
        if self.count == 0 {
            return self.bounds.default;
        }
        let wanted = p * self.count as f64;
        if wanted <= 0.0 {
            return self.bounds.lower;
        }
        let mut seen = 0u64;
        for bucket in &self.filled {
            seen += u64::from(bucket.count);
            if seen as f64 >= wanted {
                return self.upper_edge(bucket.index);
            }
        }
        self.bounds.upper
    }

    /// Does the quantile lie in the first bucket, where everything is that is too small?
    pub fn is_at_lower_bound(&self, p: f64) -> bool {
        let first = self.filled.first().filter(|bucket| bucket.index == 0);
        self.count > 0 && first.map_or(0, |b| b.count) as f64 >= p * self.count as f64
    }

    fn upper_edge(&self, index: u32) -> f64 {
        if index + 1 >= self.buckets {
            return self.bounds.upper;
        }
        // Multiplied one by one, as the specification does: a power would differ in the last digits,
        // and so, now and then, would the bytes that are reserved.
        (0..=index).fold(self.bounds.lower, |edge, _| edge * self.step)
    }

    /// For pictures: neighbouring buckets taken together so that there are at most `bars`, each with its
    /// lower edge, its upper edge and how many samples it has; empty ones are left out.
    pub fn histogram(&self, bars: u32) -> Vec<(f64, f64, u64)> {
        let per_bar = self.buckets.div_ceil(bars.max(1));
        let edge = |index: u32| {
            // A picture needs no more: see `upper_edge` for what does.
            let edge = self.bounds.lower * (f64::from(index) * self.ln_step).exp();
            if index >= self.buckets { self.bounds.upper } else { edge }
        };
        self.filled
            .chunk_by(|a, b| a.index / per_bar == b.index / per_bar)
            .map(|bar| {
                let first = bar[0].index / per_bar * per_bar;
                (edge(first), edge(first + per_bar), bar.iter().map(|b| u64::from(b.count)).sum())
            })
            .collect()
    }

    /// Samples that were counted.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// Buckets, empty ones included.
    pub fn buckets(&self) -> u32 {
        self.buckets
    }
    /// Its bounds.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }
    pub(super) fn step(&self) -> f64 {
        self.step
    }
    pub(super) fn filled(&self) -> &[Bucket] {
        &self.filled
    }
    /// Bytes in memory.
    pub fn size(&self) -> usize {
        size_of::<LogDigest>() + self.filled.capacity() * size_of::<Bucket>()
    }
}
