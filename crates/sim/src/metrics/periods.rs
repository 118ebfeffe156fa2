//! Stretches of time in which something was so.

use super::round;
use vocab::{Span, Time};
use yson::Map;

/// See the module page.
#[derive(Clone, Copy, Default, Debug)]
pub struct Periods {
    since: Option<Time>,
    count: u64,
    total: Span,
    longest: Span,
    /// Seconds, squared: one long stretch is worse than many short ones.
    squares: f64,
}

impl Periods {
    /// From now on it is so, or not.
    pub fn now(&mut self, now: Time, is: bool) {
        match (self.since, is) {
            (None, true) => self.since = Some(now),
            (Some(since), false) => {
                self.since = None;
                // What came and went in one instant was never there.
                if now > since {
                    self.add(now.since(since));
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, time: Span) {
        self.count += 1;
        self.total = self.total + time;
        self.longest = self.longest.max(time);
        self.squares += time.as_secs_f64().powi(2);
    }

    /// All of it together, at the end of the run.
    pub fn total(mut self, now: Time) -> Span {
        self.now(now, false);
        self.total
    }

    /// For the summary, at the end of the run.
    pub fn to_map(mut self, now: Time) -> Map {
        self.now(now, false);
        yson::map! {
            "count" => self.count,
            "s" => round(self.total.as_secs_f64()),
            "longest_s" => round(self.longest.as_secs_f64()),
            "sum_of_squares_s2" => round(self.squares),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches() {
        let mut periods = Periods::default();
        for (at, is) in [(1, false), (2, true), (3, true), (5, false), (5, true), (5, false), (7, true)] {
            periods.now(Time::from_secs(at), is);
        }
        let map = periods.to_map(Time::from_secs(17));
        let found = ["count", "s", "longest_s", "sum_of_squares_s2"]
            .map(|key| map.get(key).and_then(yson::Value::as_f64));
        assert_eq!(found, [2.0, 13.0, 10.0, 109.0].map(Some));
    }
}
