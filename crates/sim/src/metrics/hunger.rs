//! Who starves since when. Statuses change in share updates only, so what each update says is exact.

use std::collections::BTreeMap;
use vocab::{Span, Time};

/// See the module page. `K` names who.
#[derive(Clone, Debug)]
pub struct Hunger<K> {
    /// Those that starve.
    now: BTreeMap<K, Episode>,
}

impl<K> Default for Hunger<K> {
    fn default() -> Hunger<K> {
        Hunger { now: BTreeMap::new() }
    }
}

#[derive(Clone, Copy, Debug)]
struct Episode {
    since: Time,
    /// Since then it is so bad.
    aggressive_since: Option<Time>,
    aggressively: Span,
}

impl Episode {
    fn ends(mut self, now: Time) -> (Span, Span) {
        self.calms(now);
        (now.since(self.since), self.aggressively)
    }

    fn calms(&mut self, now: Time) {
        let since = self.aggressive_since.take();
        self.aggressively = self.aggressively + since.map_or(Span::ZERO, |since| now.since(since));
    }
}

impl<K: Ord + Clone> Hunger<K> {
    /// An update found these starving, and whether it is aggressively. Gives the episodes that are over:
    /// how long each was, and how much of it aggressively.
    pub fn now(&mut self, now: Time, who: impl Iterator<Item = (K, bool)>) -> Vec<(K, Span, Span)> {
        let mut before = std::mem::take(&mut self.now);
        for (key, aggressively) in who {
            let new = Episode { since: now, aggressive_since: None, aggressively: Span::ZERO };
            let mut episode = before.remove(&key).unwrap_or(new);
            match aggressively {
                true => drop(episode.aggressive_since.get_or_insert(now)),
                false => episode.calms(now),
            }
            self.now.insert(key, episode);
        }
        let over = before.into_iter().map(|(key, episode)| {
            let (time, aggressively) = episode.ends(now);
            (key, time, aggressively)
        });
        over.collect()
    }

    /// 0: no, 1: he starves, 2: aggressively.
    pub fn level(&self, key: &K) -> i64 {
        self.now.get(key).map_or(0, |episode| 1 + i64::from(episode.aggressive_since.is_some()))
    }

    /// Somebody is gone: his episode, if he starved.
    pub fn gone(&mut self, key: &K, now: Time) -> Option<(Span, Span)> {
        self.now.remove(key).map(|episode| episode.ends(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn episodes() {
        let mut hunger = Hunger::default();
        let at = Time::from_secs;
        assert!(hunger.now(at(10), [("a", false), ("b", true)].into_iter()).is_empty());
        assert!(hunger.now(at(15), [("a", true), ("b", false)].into_iter()).is_empty());
        let over = hunger.now(at(17), [("a", true)].into_iter());
        assert_eq!(over, [("b", Span::from_secs(7), Span::from_secs(5))]);
        assert_eq!(hunger.gone(&"a", at(20)), Some((Span::from_secs(10), Span::from_secs(5))));
        assert_eq!(hunger.gone(&"a", at(21)), None);
        assert!(hunger.now(at(30), std::iter::empty()).is_empty());
    }
}
