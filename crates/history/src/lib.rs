//! What numbers were over the last hours, in memory and in bounded space.
//!
//! ```ignore
//! let mut history = History::<7>::new(Settings::new(QUANTA, 160 << 20));
//! history.record(now, snapshot.pools().map(|p| (p.name, p.numbers)));   // at each update
//! let chart = history.read("pool", start, end, Some(step))?;            // means over steps
//! ```
//!
//! A history holds one [`Series`] of `N` columns for each name. Values are a step function: what is
//! recorded holds until the next record. A series keeps it at several resolutions, its *levels*: means
//! over seconds for some hours, over minutes for a day, over quarters of an hour for two weeks
//! ([`Settings`]). A level writes a point only when a mean differs from the one before, as differences
//! of small integers ([`chunk`]), so that what does not change costs nothing.
//!
//! Space is bounded twice: each level reaches so far back and no further, and all series together
//! have a budget of bytes; over it, the finest level gives up its oldest points first. An idle series
//! takes 2 KB; one of which two columns change every second by anything 75 KB for three hours.
//!
//! Where everybody is recorded together, that is all; [`Lives`] are for those who come, speak and go each
//! by themselves.
//!
//! What this is not: durable (a restart begins an empty history), exact (means are rounded to a
//! quantum per column), or aware of what the columns mean.
#![forbid(unsafe_code)]

mod chunk;
mod level;
mod lives;
mod read;
mod series;

pub use lives::Lives;
pub use read::{Chart, ReadError};
pub use series::Series;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;
use vocab::{Span, Time};

/// Number of resolutions.
pub const LEVELS: usize = 3;

/// A resolution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resolution {
    /// One mean for each of these.
    pub step: Span,
    /// How far back.
    pub reach: Span,
}

/// See the fields.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings<const N: usize> {
    /// From fine to coarse.
    pub levels: [Resolution; LEVELS],
    /// Smallest difference that a column shows.
    pub quanta: [f64; N],
    /// Bytes that all series together may take, but for what comes in within ten seconds.
    pub budget: usize,
}

impl<const N: usize> Settings<N> {
    /// Seconds for three hours, minutes for a day, quarters of an hour for two weeks.
    pub fn new(quanta: [f64; N], budget: usize) -> Settings<N> {
        let hours = |n: u64| Span::from_secs(n * 3600);
        let levels = [
            Resolution { step: Span::from_secs(1), reach: hours(3) },
            Resolution { step: Span::from_secs(60), reach: hours(24) },
            Resolution { step: Span::from_secs(900), reach: hours(14 * 24) },
        ];
        Settings { levels, quanta, budget }
    }
}

/// See the crate's page.
#[derive(Clone, Debug)]
pub struct History<const N: usize> {
    settings: Settings<N>,
    /// Found by hash: nodes and jobs are many, and each is looked up at every report.
    series: IndexMap<Arc<str>, Series<N>, FxBuildHasher>,
    /// When the bytes were counted last.
    counted: Time,
}

/// Bytes are counted this often: it takes a walk over everything.
const COUNT_PERIOD: Span = Span::from_secs(10);

impl<const N: usize> History<N> {
    /// An empty one.
    pub fn new(settings: Settings<N>) -> History<N> {
        History { settings, series: IndexMap::default(), counted: Time::ZERO }
    }

    /// Changes the budget; acts at the next record.
    pub fn set_budget(&mut self, bytes: usize) {
        self.settings.budget = bytes;
    }

    /// Records the values of everybody who is there, sorted by name. Who is not among them has ended:
    /// the series stays for as long as the finest level reaches, and then is forgotten.
    pub fn record<'a>(&mut self, now: Time, values: impl Iterator<Item = (&'a Arc<str>, [f64; N])>) {
        let Settings { levels, quanta, .. } = &self.settings;
        for (name, values) in values {
            match self.series.get_mut(name) {
                Some(series) => series.record(now, values, levels, quanta),
                None => {
                    let mut series = Series::default();
                    series.record(now, values, levels, quanta);
                    self.series.insert(name.clone(), series);
                }
            }
        }
        let reach = levels[0].reach;
        self.series.retain(|_, series| match series.last_record() {
            Some(last) if last < now => {
                series.end(quanta);
                now.since(last) < reach
            }
            _ => true,
        });
        self.count_now_and_then(now);
    }

    fn count_now_and_then(&mut self, now: Time) {
        if now.since(self.counted) >= COUNT_PERIOD {
            self.counted = now;
            self.keep_to_the_budget();
        }
    }

    /// A series gets another name; one that had it is forgotten.
    pub fn rename(&mut self, old: &str, new: &str) {
        if let Some(series) = self.series.swap_remove(old) {
            self.series.insert(new.into(), series);
        }
    }

    /// Is there anything about this name?
    pub fn contains(&self, name: &str) -> bool {
        self.series.contains_key(name)
    }

    /// Names, sorted.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        let mut names: Vec<&Arc<str>> = self.series.keys().collect();
        names.sort_unstable();
        names.into_iter()
    }

    /// One series.
    pub fn series(&self, name: &str) -> Option<&Series<N>> {
        self.series.get(name)
    }

    /// Bytes of all series together, allocations included.
    pub fn bytes(&self) -> usize {
        let names = self.series.keys().map(|name| name.len() + 3 * size_of::<usize>());
        names.sum::<usize>() + self.series.values().map(Series::bytes).sum::<usize>()
    }

    /// Means over steps between two instants: see [`Series::read`]. None: nothing about this name.
    pub fn read(
        &self,
        name: &str,
        start: Time,
        end: Time,
        step: Option<Span>,
    ) -> Option<Result<Chart<N>, ReadError>> {
        let series = self.series.get(name)?;
        Some(series.read(&self.settings, start, end, step))
    }

    /// Oldest points of the finest level go first, everybody's of the same age together.
    fn keep_to_the_budget(&mut self) {
        let mut bytes = self.bytes();
        for (level, resolution) in self.settings.levels.iter().enumerate() {
            while bytes > self.settings.budget {
                let oldest = self.series.values().filter_map(|s| s.oldest_full_chunk(level)).min();
                let Some(oldest) = oldest else { break };
                // A little more than needed, so that few walks do; not much more, so that none takes long.
                let horizon = oldest + Span::from_micros(resolution.reach.as_micros() / 256);
                for series in self.series.values_mut() {
                    series.forget_full_chunks(level, horizon);
                }
                bytes = self.bytes();
            }
        }
    }
}
