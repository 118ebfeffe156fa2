//! How values are spread, in memory that does not grow with their number: they are counted in classes
//! that are a thousandth of the value wide, and of each class the largest value is kept. Whole numbers
//! below 2,048 have a class each, so few or small values come out exactly.

use super::round;
use std::collections::BTreeMap;
use yson::Map;

/// See the module page.
#[derive(Clone, Default, Debug)]
pub struct Spread {
    classes: BTreeMap<u32, Class>,
    count: u64,
    weight: f64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Class {
    count: u64,
    weight: f64,
    most: u64,
}

/// Bits of a value that tell classes apart.
const BITS: u32 = 10;

fn class(value: u64) -> u32 {
    let shift = (64 - value.leading_zeros()).saturating_sub(BITS + 1);
    (shift << BITS) + (value >> shift) as u32
}

impl Spread {
    /// One more value, with its weight in the weighted percentiles.
    pub fn add(&mut self, value: u64, weight: f64) {
        let class = self.classes.entry(class(value)).or_default();
        class.count += 1;
        class.weight += weight;
        class.most = class.most.max(value);
        self.count += 1;
        self.weight += weight;
    }

    /// The value that this part of them does not exceed; 0 if there are none.
    pub fn at(&self, part: f64) -> u64 {
        let want = ((self.count as f64 * part).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.classes.values().find(|class| {
            seen += class.count;
            seen >= want
        });
        found.map_or(0, |class| class.most)
    }

    /// The same by weight.
    pub fn at_weight(&self, part: f64) -> u64 {
        let want = self.weight * part;
        let mut seen = 0.0;
        let found = self.classes.values().find(|class| {
            seen += class.weight;
            seen >= want && class.weight > 0.0
        });
        let last = || self.classes.values().next_back();
        found.or_else(last).map_or(0, |class| class.most)
    }

    /// Of thousandths (milliseconds, say).
    pub fn to_map(&self) -> Map {
        let mut map = yson::map! {"count" => self.count};
        self.put(&mut map, &|part| self.at(part));
        map
    }

    /// The same, and by weight.
    pub fn to_weighted_map(&self, name: &str) -> Map {
        let mut weighted = Map::new();
        self.put(&mut weighted, &|part| self.at_weight(part));
        self.to_map().with(name, weighted)
    }

    fn put(&self, map: &mut Map, at: &dyn Fn(f64) -> u64) {
        for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)] {
            map.insert(name, round(at(part) as f64 / 1000.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ones_are_exact() {
        let mut spread = Spread::default();
        assert_eq!((spread.at(0.5), spread.at_weight(0.5)), (0, 0));
        (1..=1000).rev().for_each(|x| spread.add(x, 1.0));
        let found = [0.0, 0.0005, 0.5, 0.9, 0.999, 1.0].map(|part| spread.at(part));
        assert_eq!(found, [1, 1, 500, 900, 999, 1000]);
    }

    #[test]
    fn large_ones_are_near() {
        let mut spread = Spread::default();
        let mut all: Vec<u64> =
            (0..20_000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (i % 40)).collect();
        all.iter().for_each(|x| spread.add(*x, 1.0));
        all.sort_unstable();
        for part in [0.01, 0.5, 0.9, 0.99, 1.0] {
            let want = all[((all.len() as f64 * part).ceil() as usize) - 1];
            let found = spread.at(part);
            assert!(found >= want && found as f64 <= want as f64 * 1.001, "{part}: {found} {want}");
        }
        assert_eq!(spread.at(1.0), *all.last().expect("some"));
        assert!(spread.classes.len() <= 64 << BITS);
    }

    #[test]
    fn weights_count() {
        let mut spread = Spread::default();
        (0..9).for_each(|_| spread.add(1, 1.0));
        spread.add(100, 91.0);
        assert_eq!((spread.at(0.9), spread.at_weight(0.05), spread.at_weight(0.1)), (1, 1, 100));
        let mut nothing = Spread::default();
        nothing.add(7, 0.0);
        assert_eq!(nothing.at_weight(0.5), 7);
    }
}
