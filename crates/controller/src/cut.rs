//! Rows of input tables cut into units of work (jobs-and-nodes.md 6.2, 8.4).
//!
//! All rows that an operation reads, table after table and range after range, are numbered from 0. A unit is
//! a run of these numbers: so every row is in exactly one unit, and units in the order of their first rows
//! have the rows in order. Cutting depends on nothing but the pieces and the wish; what comes out is stored
//! with the operation and never computed again.

use std::ops::Range;

/// A part of the input of which only the whole is known: a chunk, or some rows of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// How many rows; not 0.
    pub rows: u64,
    /// Bytes that they weigh together.
    pub weight: u64,
}

/// How many units are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cutting {
    /// So many, if there are as many rows.
    pub job_count: Option<u32>,
    /// Else as many as make units of about so many bytes.
    pub data_weight_per_job: u64,
    /// Never more than so many.
    pub max_job_count: u32,
}

/// Ends of the units, in order: each goes from the end of the one before it to its own. No unit is empty, and
/// none is much heavier than the others as far as the pieces say where the weight lies.
pub fn cut(pieces: &[Piece], cutting: &Cutting) -> Vec<u64> {
    let rows: u64 = pieces.iter().map(|p| p.rows).sum();
    // A row is never for nothing: tables of empty rows are cut, too.
    let heavy = |p: &Piece| u128::from(p.weight) + u128::from(p.rows);
    let weight: u128 = pieces.iter().map(heavy).sum();
    let by_weight = weight.div_ceil(u128::from(cutting.data_weight_per_job.max(1)));
    let wanted = match cutting.job_count {
        Some(count) => u64::from(count),
        None => u64::try_from(by_weight).unwrap_or(u64::MAX),
    };
    let count = wanted.max(1).min(cutting.max_job_count.max(1).into()).min(rows);
    let mut ends = Vec::with_capacity(count as usize);
    let mut pieces = pieces.iter().filter(|p| p.rows > 0);
    let mut piece = pieces.next();
    // What lies in front of the piece.
    let (mut rows_before, mut weight_before) = (0u64, 0u128);
    for unit in 1..count {
        let target = weight * u128::from(unit) / u128::from(count);
        while let Some(p) = piece.filter(|p| weight_before + heavy(p) <= target) {
            rows_before += p.rows;
            weight_before += heavy(p);
            piece = pieces.next();
        }
        let inside = piece.map_or(0, |p| u128::from(p.rows) * (target - weight_before) / heavy(p));
        let end = rows_before + inside as u64;
        let last = ends.last().copied().unwrap_or(0);
        ends.push(end.clamp(last + 1, rows - (count - unit)));
    }
    if count > 0 {
        ends.push(rows);
    }
    ends
}

/// Which rows each unit has. A unit whose job was interrupted in the middle keeps what was read; the rest is a
/// new unit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct UnitRows(Vec<Range<u64>>);

impl UnitRows {
    /// From the ends that [`cut`] gave and the splits since, oldest first.
    pub fn new(ends: &[u64], splits: &[(u32, u64)]) -> UnitRows {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let mut units = UnitRows(starts.zip(ends).map(|(start, end)| start..*end).collect());
        splits.iter().for_each(|(cookie, row)| {
            units.split(*cookie, *row);
        });
        units
    }

    /// Rows of a unit.
    pub fn of(&self, cookie: u32) -> Range<u64> {
        self.0.get(cookie as usize).cloned().unwrap_or_default()
    }

    /// How many units.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes the rows from this one on out of a unit; the new unit that has them. None if that would leave
    /// one of the two empty.
    pub fn split(&mut self, cookie: u32, row: u64) -> Option<u32> {
        let fresh = u32::try_from(self.0.len()).ok()?;
        let unit = self.0.get_mut(cookie as usize)?;
        if row <= unit.start || row >= unit.end {
            return None;
        }
        let rest = row..std::mem::replace(&mut unit.end, row);
        self.0.push(rest);
        Some(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(pieces: &[(u64, u64)], cutting: Cutting, expected: &[u64]) {
        let pieces: Vec<Piece> =
            pieces.iter().map(|(rows, weight)| Piece { rows: *rows, weight: *weight }).collect();
        assert_eq!(cut(&pieces, &cutting), expected, "{pieces:?} {cutting:?}");
    }

    const BY_WEIGHT: Cutting = Cutting { job_count: None, data_weight_per_job: 110, max_job_count: 100 };
    const THREE: Cutting = Cutting { job_count: Some(3), ..BY_WEIGHT };

    #[test]
    fn units_are_as_many_as_wanted_and_as_heavy_as_wanted() {
        check(&[], BY_WEIGHT, &[]);
        check(&[], THREE, &[]);
        check(&[(10, 100)], BY_WEIGHT, &[10]);
        check(&[(10, 100), (10, 100)], BY_WEIGHT, &[10, 20]);
        check(&[(10, 200)], BY_WEIGHT, &[5, 10]);
        check(&[(9, 0)], THREE, &[3, 6, 9]);
        check(&[(2, 5)], THREE, &[1, 2]);
        check(&[(1, 1000), (5, 0)], THREE, &[1, 2, 6]);
        check(&[(5, 0), (1, 1000)], THREE, &[4, 5, 6]);
        check(&[(1000, 1_000_000)], Cutting { max_job_count: 2, ..BY_WEIGHT }, &[500, 1000]);
    }

    proptest! {
        /// Every row is in exactly one unit, in order, whatever the pieces and the wish, and stays so when
        /// units are split wherever their jobs are interrupted.
        #[test]
        fn every_row_is_in_one_unit(
            pieces in prop::collection::vec((1u64..200, 0u64..5_000), 0..12),
            job_count in prop::option::of(1u32..300),
            data_weight_per_job in 1u64..4_000,
            max_job_count in 1u32..300,
            interruptions in prop::collection::vec((any::<prop::sample::Index>(), 0u64..250), 0..20),
        ) {
            let pieces: Vec<Piece> = pieces.into_iter().map(|(rows, weight)| Piece { rows, weight }).collect();
            let rows: u64 = pieces.iter().map(|p| p.rows).sum();
            let cutting = Cutting { job_count, data_weight_per_job, max_job_count };
            let ends = cut(&pieces, &cutting);
            prop_assert!(ends.windows(2).all(|w| w[0] < w[1]) && ends.first() != Some(&0));
            prop_assert_eq!(ends.last().copied().unwrap_or(0), rows);
            prop_assert!(ends.len() <= max_job_count as usize);
            if let Some(count) = job_count {
                prop_assert_eq!(ends.len() as u64, u64::from(count.min(max_job_count)).min(rows));
            }
            let mut units = UnitRows::new(&ends, &[]);
            let mut splits = Vec::new();
            for (which, read) in interruptions {
                if units.len() == 0 {
                    break;
                }
                let cookie = which.index(units.len()) as u32;
                let row = units.of(cookie).start + read;
                let before = units.of(cookie);
                match units.split(cookie, row) {
                    Some(fresh) => {
                        prop_assert_eq!(units.of(cookie), before.start..row);
                        prop_assert_eq!(units.of(fresh), row..before.end);
                        splits.push((cookie, row));
                    }
                    None => prop_assert_eq!(units.of(cookie), before),
                }
            }
            let mut all: Vec<Range<u64>> = (0..units.len() as u32).map(|cookie| units.of(cookie)).collect();
            all.sort_by_key(|unit| unit.start);
            let mut next = 0;
            for unit in all {
                prop_assert!(unit.start == next && unit.end > unit.start);
                next = unit.end;
            }
            prop_assert_eq!(next, rows);
            prop_assert_eq!(UnitRows::new(&ends, &splits), units);
        }
    }
}
