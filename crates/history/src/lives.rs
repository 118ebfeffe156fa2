//! Histories of what comes and goes by itself: jobs, nodes.

use crate::{Chart, History, ReadError, Settings};
use std::collections::VecDeque;
use std::sync::Arc;
use vocab::{Span, Time};

/// A series for each life, recorded whenever there is news of it, and kept for a while after its end.
///
/// Bounded like a [`History`], and in the number of series besides: where there is no room for one more,
/// those go first that ended first; what lives is not forgotten, so above the bound new lives have no
/// history.
#[derive(Clone, Debug)]
pub struct Lives<const N: usize> {
    history: History<N>,
    /// Who ended when, in that order. Who came back since is among them still.
    ended: VecDeque<(Time, Arc<str>)>,
    most: usize,
}

impl<const N: usize> Lives<N> {
    /// None yet; `most` series at a time.
    pub fn new(settings: Settings<N>, most: usize) -> Lives<N> {
        Lives { history: History::new(settings), ended: VecDeque::new(), most }
    }

    /// These values hold from now on.
    pub fn record(&mut self, now: Time, name: &str, values: [f64; N]) {
        let History { settings, series, .. } = &mut self.history;
        if let Some(series) = series.get_mut(name) {
            series.record(now, values, &settings.levels, &settings.quanta);
        } else {
            while self.history.series.len() >= self.most {
                if !self.forget_the_first_ended() {
                    return;
                }
            }
            let History { settings, series, .. } = &mut self.history;
            let new = series.entry(name.into()).or_default();
            new.record(now, values, &settings.levels, &settings.quanta);
        }
        self.history.count_now_and_then(now);
    }

    /// Nothing holds any more.
    pub fn end(&mut self, now: Time, name: &str) {
        let History { settings, series, .. } = &mut self.history;
        if let Some(series) = series.get_mut(name) {
            series.end_at(now, &settings.levels, &settings.quanta);
            self.ended.push_back((now, name.into()));
        }
        let reach = self.history.settings.levels[0].reach;
        while self.ended.front().is_some_and(|(ended, _)| now.since(*ended) >= reach) {
            self.forget_the_first_ended();
        }
    }

    /// False if all live.
    fn forget_the_first_ended(&mut self) -> bool {
        let Some((at, name)) = self.ended.pop_front() else { return false };
        let series = &mut self.history.series;
        // Who came back is among the living, or has ended again later.
        if series.get(&name).is_some_and(|s| s.is_ended() && s.last_record().is_none_or(|last| last <= at)) {
            series.swap_remove(&name);
        }
        true
    }

    /// How many series there are.
    pub fn len(&self) -> usize {
        self.history.series.len()
    }

    /// Has nobody lived?
    pub fn is_empty(&self) -> bool {
        self.history.series.is_empty()
    }

    /// See [`History::bytes`].
    pub fn bytes(&self) -> usize {
        self.history.bytes()
    }

    /// See [`History::read`].
    pub fn read(
        &self,
        name: &str,
        start: Time,
        end: Time,
        step: Option<Span>,
    ) -> Option<Result<Chart<N>, ReadError>> {
        self.history.read(name, start, end, step)
    }
}
