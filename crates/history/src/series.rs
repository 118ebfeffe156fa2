//! The history of one name.

use crate::level::Level;
use crate::{LEVELS, Resolution};
use vocab::Time;

/// See the crate's page. Times of records rise; one that does not is passed over.
#[derive(Clone, Debug)]
pub struct Series<const N: usize> {
    pub(crate) levels: [Level<N>; LEVELS],
    /// What holds at present, since when.
    present: Option<(Time, [f64; N])>,
    /// Has the series ended, so that nothing holds at present?
    ended: bool,
    steps: [u64; LEVELS],
}

impl<const N: usize> Default for Series<N> {
    fn default() -> Self {
        Series { levels: Default::default(), present: None, ended: false, steps: [1; LEVELS] }
    }
}

impl<const N: usize> Series<N> {
    pub(crate) fn record(
        &mut self,
        now: Time,
        values: [f64; N],
        levels: &[Resolution; LEVELS],
        quanta: &[f64; N],
    ) {
        self.steps = levels.map(|l| l.step.as_micros());
        let values = values.map(|x| if x.is_finite() { x } else { 0.0 });
        if let Some((since, held)) = self.present {
            if now <= since {
                return;
            }
            if !self.ended {
                for (level, resolution) in self.levels.iter_mut().zip(levels) {
                    level.hold(since, now, &held, resolution, quanta);
                }
            }
        }
        self.ended = false;
        self.present = Some((now, values));
    }

    /// Nothing holds from the last record on, until there is another one.
    pub(crate) fn end(&mut self, quanta: &[f64; N]) {
        if self.ended {
            return;
        }
        self.ended = true;
        for level in &mut self.levels {
            level.end(quanta);
        }
    }

    /// What was recorded last has held until now; nothing does from now on.
    pub(crate) fn end_at(&mut self, now: Time, levels: &[Resolution; LEVELS], quanta: &[f64; N]) {
        if let Some((_, held)) = self.present.filter(|_| !self.ended) {
            self.record(now, held, levels, quanta);
            self.end(quanta);
        }
    }

    /// Does nothing hold at present?
    pub(crate) fn is_ended(&self) -> bool {
        self.ended
    }

    /// When the present values were recorded.
    pub fn last_record(&self) -> Option<Time> {
        self.present.map(|(at, _)| at)
    }

    /// Bytes, allocations included.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.levels.iter().map(Level::bytes).sum::<usize>()
    }

    /// End of the oldest chunk of a level that can be forgotten.
    pub(crate) fn oldest_full_chunk(&self, level: usize) -> Option<Time> {
        self.levels[level].oldest_full_chunk().map(|step| Time::from_micros(step * self.steps[level]))
    }

    pub(crate) fn forget_full_chunks(&mut self, level: usize, horizon: Time) {
        self.levels[level].forget_full_chunks(horizon.as_micros() / self.steps[level]);
    }
}
