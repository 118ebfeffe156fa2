//! Deficits in a moving window (simulator.md 9): what somebody got less than the fair share within the last
//! minutes, without what was made good in them. Looked at sixty times a window, at share updates; what
//! is compared are the exact integrals of those instants.

use super::round;
use std::collections::{BTreeMap, VecDeque};
use vocab::{Span, Time};
use yson::Map;

/// See the module page. `K` names who.
#[derive(Clone, Debug)]
pub struct Window<K> {
    length: Span,
    next: Time,
    /// Of everybody, integrals of fair share less usage so far.
    seen: BTreeMap<K, VecDeque<(Time, f64)>>,
    of_all: Deficit,
    of_each: BTreeMap<K, Deficit>,
}

/// Core-seconds.
#[derive(Clone, Copy, Default, Debug)]
struct Deficit {
    now: f64,
    /// Sum over looks.
    sum: f64,
    most: f64,
    looks: u64,
}

/// Looks in a window.
const LOOKS: u64 = 60;

impl Deficit {
    fn look(&mut self) {
        self.sum += self.now;
        self.most = self.most.max(self.now);
        self.looks += 1;
    }

    fn to_map(self) -> Map {
        let mean = if self.looks > 0 { self.sum / self.looks as f64 } else { 0.0 };
        yson::map! {"mean" => round(mean), "max" => round(self.most)}
    }
}

impl<K: Ord + Clone> Window<K> {
    pub fn new(start: Time, length: Span) -> Window<K> {
        Window {
            length,
            next: start,
            seen: BTreeMap::new(),
            of_all: Deficit::default(),
            of_each: BTreeMap::new(),
        }
    }

    /// Is it time for a look?
    pub fn is_due(&self, now: Time) -> bool {
        now >= self.next
    }

    /// A look at everybody's integral.
    pub fn look(&mut self, now: Time, integrals: impl Iterator<Item = (K, f64)>) {
        self.next = now + Span(self.length.0 / LOOKS);
        self.of_all.now = 0.0;
        for (key, integral) in integrals {
            let seen = self.seen.entry(key.clone()).or_default();
            // The newest that is as old as the window, or the first one.
            while seen.get(1).is_some_and(|(at, _)| now.since(*at) >= self.length) {
                seen.pop_front();
            }
            let before = seen.front().map_or(0.0, |(_, before)| *before);
            seen.push_back((now, integral));
            let deficit = self.of_each.entry(key).or_default();
            deficit.now = (integral - before).max(0.0);
            deficit.look();
            self.of_all.now += deficit.now;
        }
        self.of_all.look();
    }

    /// The sum over all of them.
    pub fn of_all(&self) -> Map {
        self.of_all.to_map()
    }

    /// Of one.
    pub fn of(&self, key: &K) -> Map {
        self.of_each.get(key).copied().unwrap_or_default().to_map()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yson::Value;

    #[test]
    fn what_is_made_good_counts_no_more() {
        let at = Time::from_secs;
        let mut window = Window::new(at(0), Span::from_secs(60));
        // One core is missing from 100 to 130 s; from 130 to 145 s there are two too many.
        let integral = |t: u64| match t {
            0..=100 => 0.0,
            101..=130 => (t - 100) as f64,
            131..=145 => 30.0 - 2.0 * (t - 130) as f64,
            _ => 0.0,
        };
        for second in 0..=400 {
            assert!(window.is_due(at(second)));
            // The other one has what is missing: never less than its share.
            window.look(at(second), [("a", integral(second)), ("b", -integral(second))].into_iter());
            assert!(window.seen["a"].len() <= 62);
        }
        let found = |map: Map, key: &str| map.get(key).and_then(Value::as_f64).expect("a number");
        assert_eq!(found(window.of(&"a"), "max"), 30.0);
        // Of `b`, when the window has only what was taken back: 30 of its surplus, 15 s later.
        assert_eq!(found(window.of(&"b"), "max"), 30.0);
        assert_eq!(found(window.of_all(), "max"), 30.0);
        assert!(found(window.of_all(), "mean") < 10.0);
        assert_eq!(found(window.of(&"nobody"), "max"), 0.0);
    }
}
