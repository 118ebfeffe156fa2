//! One resolution of a series: means over steps, written down when a step is over.

use crate::Resolution;
use crate::chunk::{Chunk, Run};
use std::collections::VecDeque;
use vocab::Time;

/// See the module page.
#[derive(Clone, Debug)]
pub(crate) struct Level<const N: usize> {
    chunks: VecDeque<Chunk<N>>,
    open: Option<Open<N>>,
}

impl<const N: usize> Default for Level<N> {
    fn default() -> Self {
        Level { chunks: VecDeque::new(), open: None }
    }
}

/// The step that is not over: integral of the values so far.
#[derive(Clone, Copy, Debug)]
struct Open<const N: usize> {
    step: u64,
    seconds: f64,
    sums: [f64; N],
}

impl<const N: usize> Open<N> {
    fn new(step: u64) -> Open<N> {
        Open { step, seconds: 0.0, sums: [0.0; N] }
    }

    fn add(&mut self, values: &[f64; N], seconds: f64) {
        self.seconds += seconds;
        for (sum, value) in self.sums.iter_mut().zip(values) {
            *sum += value * seconds;
        }
    }

    fn mean(&self, quanta: &[f64; N]) -> Option<[i64; N]> {
        (self.seconds > 0.0)
            .then(|| std::array::from_fn(|i| quantised(self.sums[i] / self.seconds, quanta[i])))
    }
}

/// A number as a count of quanta; what is no number is nothing.
fn quantised(x: f64, quantum: f64) -> i64 {
    // Far from the ends of i64, so that differences are exact.
    let limit = (1i64 << 60) as f64;
    (x / quantum).round().clamp(-limit, limit) as i64
}

impl<const N: usize> Level<N> {
    /// `values` have held from one instant to another.
    pub fn hold(
        &mut self,
        from: Time,
        to: Time,
        values: &[f64; N],
        resolution: &Resolution,
        quanta: &[f64; N],
    ) {
        let width = resolution.step.as_micros();
        let seconds = |us: u64| us as f64 / 1e6;
        let (mut at, to) = (from.as_micros(), to.as_micros());
        while at < to {
            let step = at / width;
            let open = match &mut self.open {
                Some(open) if open.step == step => open,
                _ => {
                    self.close_step(quanta);
                    self.open.insert(Open::new(step))
                }
            };
            let boundary = (step + 1) * width;
            open.add(values, seconds(to.min(boundary) - at));
            at = to.min(boundary);
            // Steps that lie within the time altogether are all alike: one run stands for them.
            let whole = to / width;
            if at == boundary && whole > step + 1 {
                let values: [i64; N] = std::array::from_fn(|i| quantised(values[i], quanta[i]));
                self.close_step(quanta);
                self.write(step + 1, whole, values);
                at = whole * width;
            }
        }
        let horizon = (to / width).saturating_sub(resolution.reach.as_micros() / width);
        while self.chunks.front().is_some_and(|c| c.end <= horizon) {
            self.chunks.pop_front();
        }
    }

    fn close_step(&mut self, quanta: &[f64; N]) {
        let Some(open) = self.open.take() else { return };
        if let Some(mean) = open.mean(quanta) {
            self.write(open.step, open.step + 1, mean);
        }
    }

    /// Nothing more comes for a while: what comes then is not joined to what there is.
    pub fn end(&mut self, quanta: &[f64; N]) {
        self.close_step(quanta);
        if let Some(last) = self.chunks.back_mut() {
            last.close();
        }
    }

    /// Values of some steps, which follow those that are there, or begin after a gap.
    fn write(&mut self, from: u64, to: u64, values: [i64; N]) {
        match self.chunks.back_mut() {
            // A name that went and came back within one step: that step has its mean already.
            Some(last) if from < last.end => {}
            Some(last) if from == last.end && !last.is_full() => last.push(from, to, values),
            other => {
                if let Some(full) = other {
                    full.close();
                }
                self.chunks.push_back(Chunk::new(from, to, values));
            }
        }
    }

    /// Everything known, in order; the step that is not over too.
    pub fn runs<'a>(&'a self, quanta: &[f64; N]) -> impl Iterator<Item = Run<N>> + 'a {
        let open = self.open.as_ref().and_then(|open| {
            let values = open.mean(quanta)?;
            Some(Run { from: open.step, to: open.step + 1, values })
        });
        self.chunks.iter().flat_map(Chunk::runs).chain(open)
    }

    /// First step of which something is known.
    pub fn first(&self) -> Option<u64> {
        self.chunks.front().map(|c| c.first).or(self.open.as_ref().map(|o| o.step))
    }

    /// End of the oldest chunk that can be forgotten.
    pub fn oldest_full_chunk(&self) -> Option<u64> {
        self.chunks.front().filter(|c| c.is_full() || self.chunks.len() > 1).map(|c| c.end)
    }

    pub fn forget_full_chunks(&mut self, horizon: u64) {
        while self.oldest_full_chunk().is_some_and(|end| end <= horizon) {
            self.chunks.pop_front();
        }
    }

    pub fn bytes(&self) -> usize {
        let slots = (self.chunks.capacity() - self.chunks.len()) * size_of::<Chunk<N>>();
        slots + self.chunks.iter().map(Chunk::bytes).sum::<usize>()
    }
}
