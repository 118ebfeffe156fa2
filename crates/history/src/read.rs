//! Charts out of a history: means over equal steps.

use crate::series::Series;
use crate::{LEVELS, Settings};
use vocab::{Span, Time};

/// Points of a chart, at most.
pub const MAX_POINTS: u64 = 20_000;
/// A chart whose step was not asked for has about this many.
const USUAL_POINTS: u64 = 720;

/// Means over `step`, the first from `start` on; nothing where nothing is known.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart<const N: usize> {
    /// A multiple of the step.
    pub start: Time,
    /// Distance of the points.
    pub step: Span,
    /// Resolution of what they were computed from.
    pub source_step: Span,
    /// One for each step.
    pub points: Vec<Option<[f64; N]>>,
}

/// What cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// The end is not after the start.
    EmptyRange,
    /// More than [`MAX_POINTS`].
    TooManyPoints {
        /// How many.
        points: u64,
        /// A step that is long enough.
        enough: Span,
    },
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::EmptyRange => write!(f, "the end of the range must be after its start"),
            ReadError::TooManyPoints { points, enough } => write!(
                f,
                "the range has {points} steps, at most {MAX_POINTS} are allowed: a step of {enough} is long enough"
            ),
        }
    }
}

impl std::error::Error for ReadError {}

impl<const N: usize> Series<N> {
    /// Means over steps between two instants.
    ///
    /// They come from the finest level that reaches back to `start` and is not finer than needed; a
    /// step that is not given is chosen so that a chart has a sensible number of points. Steps are
    /// multiples of the level's, and begin at multiples of themselves.
    pub fn read(
        &self,
        settings: &Settings<N>,
        start: Time,
        end: Time,
        step: Option<Span>,
    ) -> Result<Chart<N>, ReadError> {
        if end <= start {
            return Err(ReadError::EmptyRange);
        }
        let length = end.since(start).as_micros();
        let wanted = step.map_or(length / USUAL_POINTS, Span::as_micros).clamp(1, 1 << 60);
        let level = self.level_for(settings, start, wanted);
        let source = settings.levels[level].step.as_micros();
        let width = wanted.div_ceil(source) * source;
        let first = start.as_micros() / width;
        let points = end.as_micros().div_ceil(width) - first;
        if points > MAX_POINTS {
            let enough = (length.div_ceil(MAX_POINTS - 1)).div_ceil(1_000_000) * 1_000_000;
            return Err(ReadError::TooManyPoints { points, enough: Span::from_micros(enough) });
        }
        let per_point = width / source;
        let mut sums = vec![(0u64, [0.0; N]); points as usize];
        for run in self.levels[level].runs(&settings.quanta) {
            let (from, to) = (run.from.max(first * per_point), run.to.min((first + points) * per_point));
            let mut at = from;
            while at < to {
                let point = at / per_point;
                let until = to.min((point + 1) * per_point);
                let (count, sum) = &mut sums[(point - first) as usize];
                *count += until - at;
                for (sum, value) in sum.iter_mut().zip(run.values) {
                    *sum += value as f64 * (until - at) as f64;
                }
                at = until;
            }
        }
        let mean = |(count, sum): (u64, [f64; N])| {
            (count > 0).then(|| std::array::from_fn(|i| sum[i] / count as f64 * settings.quanta[i]))
        };
        Ok(Chart {
            start: Time::from_micros(first * width),
            step: Span::from_micros(width),
            source_step: Span::from_micros(source),
            points: sums.into_iter().map(mean).collect(),
        })
    }

    /// The finest level that knows `start` or is the one that reaches back furthest, then a coarser one
    /// as long as it is fine enough.
    fn level_for(&self, settings: &Settings<N>, start: Time, wanted: u64) -> usize {
        let known_since = |level: usize| {
            let width = settings.levels[level].step.as_micros();
            self.levels[level].first().map_or(u64::MAX, |step| step * width)
        };
        let oldest = (0..LEVELS).map(known_since).min().unwrap_or(u64::MAX);
        let coarsest_width = settings.levels[LEVELS - 1].step.as_micros();
        // All levels begin with the series; a coarse one seems older by its rounding only.
        let goal = start.as_micros().max(oldest.saturating_add(coarsest_width));
        let reaching = (0..LEVELS).find(|level| known_since(*level) <= goal).unwrap_or(LEVELS - 1);
        let fine_enough = |level: &usize| settings.levels[*level].step.as_micros() <= wanted;
        (reaching..LEVELS).rfind(fine_enough).unwrap_or(reaching)
    }
}
