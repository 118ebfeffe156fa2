//! Jobs of a log that nobody measured: what is taken for their peaks of memory.
//!
//! A log that measures nearly all jobs leaves some out (those of less than a sampling period, those whose
//! node died). That they used their whole limit is the least likely of all: one job in a hundred like that
//! teaches a digest of the 95th percentile to reserve everything for users who have five of them in a
//! hundred. A job of the same user, queue and task says more.

use super::build::Sized;
use super::mapping::UnknownPeak;
use crate::random::{Kind, bits, name_hash};
use std::collections::BTreeMap;

/// User, queue and kind of job.
type Of = (Option<String>, Option<String>, String);

fn of(row: &Sized) -> Of {
    (row.row.user.clone(), row.row.queue.clone(), row.row.task.clone())
}

/// Gives peaks to rows without one, or leaves them out. In a log without any peaks there is nothing to
/// complete: its jobs use their limits.
pub(super) fn complete(rows: &mut Vec<Sized>, unknown: UnknownPeak, notes: &mut BTreeMap<&'static str, u64>) {
    let mut known: BTreeMap<Of, Vec<f64>> = BTreeMap::new();
    for (row, peak) in rows.iter().filter_map(|row| Some((row, row.peak?))) {
        known.entry(of(row)).or_default().push(peak);
    }
    if known.is_empty() {
        return;
    }
    let mut note = |what, count: u64| {
        if count > 0 {
            *notes.entry(what).or_default() += count;
        }
    };
    let missing = rows.iter().filter(|row| row.peak.is_none()).count() as u64;
    match unknown {
        UnknownPeak::Limit => note("without a known peak of memory, given their limit", missing),
        UnknownPeak::Skip => {
            note("without a known peak of memory, left out", missing);
            rows.retain(|row| row.peak.is_some());
        }
        UnknownPeak::Draw => {
            // The number of the job among those of its kind: other users change nothing.
            let mut drawn: BTreeMap<Of, u64> = BTreeMap::new();
            for row in rows.iter_mut().filter(|row| row.peak.is_none()) {
                let of = of(row);
                let Some(others) = known.get(&of) else { continue };
                let name = |part: &Option<String>| part.clone().unwrap_or_default();
                let name = format!("{}/{}/{}", name(&of.0), name(&of.1), of.2);
                let number = drawn.entry(of).or_default();
                let at = bits(0, Kind::Memory, name_hash(&name), *number) % others.len() as u64;
                *number += 1;
                row.peak = Some(others[at as usize]);
            }
            let given = drawn.values().sum();
            note("without a known peak of memory, given one of the same user, queue and task", given);
            note("without a known peak of memory, given their limit", missing - given);
        }
    }
}
