//! Sums over the jobs of one task (jobs-and-nodes.md 7.3).

use super::samples::{JobSamples, PATHS};
use crate::packed::{Packer, Unpacker};
use std::collections::BTreeMap;
use vocab::{JobState, Summary};
use yson::{Map, Value};

/// Jobs of one task with the same state and pool tree.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// Tag `job_state`.
    pub state: JobState,
    /// Tag `pool_tree`.
    pub tree: String,
    /// By place in [`PATHS`].
    pub system: Vec<Summary>,
    /// By name.
    pub custom: BTreeMap<String, Summary>,
}

/// Aggregates of one task. Its groups are few (states x trees), so they are searched one by one.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TaskStatistics {
    groups: Vec<Group>,
}

impl TaskStatistics {
    /// Adds one job. Custom names that `accept` refuses are left out.
    pub fn add(
        &mut self,
        state: JobState,
        tree: &str,
        samples: &JobSamples,
        mut accept: impl FnMut(&str) -> bool,
    ) {
        let group = self.group(state, tree);
        for (summary, sample) in group.system.iter_mut().zip(&samples.system) {
            if let Some(x) = sample {
                summary.add(*x);
            }
        }
        for (name, summary) in &samples.custom {
            match group.custom.get_mut(name) {
                Some(old) => old.merge(summary),
                None if accept(name) => {
                    group.custom.insert(name.clone(), *summary);
                }
                None => {}
            }
        }
    }

    /// All groups, in order of their first job.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter()
    }

    fn group(&mut self, state: JobState, tree: &str) -> &mut Group {
        let place = self.groups.iter().position(|g| g.state == state && g.tree == tree);
        let place = place.unwrap_or_else(|| {
            let system = vec![Summary::default(); PATHS.len()];
            self.groups.push(Group { state, tree: tree.to_owned(), system, custom: BTreeMap::new() });
            self.groups.len() - 1
        });
        &mut self.groups[place]
    }

    /// Durable form: a list of `{state; tree; system; custom}`.
    pub(crate) fn to_value(&self) -> Value {
        let pack = |summaries: &mut dyn Iterator<Item = (usize, &Summary)>| {
            let mut out = Packer::default();
            for (place, s) in summaries.filter(|(_, s)| s.count != 0) {
                out.unsigned(place as u64);
                pack_summary(&mut out, s);
            }
            out.finish()
        };
        let groups = self.groups.iter().map(|g| {
            let custom = g.custom.iter().map(|(name, s)| {
                let mut out = Packer::default();
                pack_summary(&mut out, s);
                (name.as_str(), Value::String(out.finish()))
            });
            yson::map! {
                "state" => g.state,
                "tree" => g.tree.as_str(),
                "system" => Value::String(pack(&mut g.system.iter().enumerate())),
                "custom" => custom.collect::<Map>(),
            }
        });
        groups.collect::<Vec<_>>().into()
    }

    pub(crate) fn from_value(value: &Value) -> Option<TaskStatistics> {
        let groups = value.as_list()?.iter().map(|g| {
            let mut system = vec![Summary::default(); PATHS.len()];
            let mut input = Unpacker::new(g.get("system")?.as_bytes()?);
            while !input.is_empty() {
                let place = usize::try_from(input.unsigned()?).ok()?;
                let summary = unpack_summary(&mut input)?;
                if let Some(slot) = system.get_mut(place) {
                    *slot = summary;
                }
            }
            let custom = g.get("custom")?.as_map()?.iter().map(|(name, packed)| {
                let summary = unpack_summary(&mut Unpacker::new(packed.as_bytes()?))?;
                Some((String::from_utf8_lossy(name).into_owned(), summary))
            });
            Some(Group {
                state: g.get("state")?.as_str()?.parse().ok()?,
                tree: g.get("tree")?.as_str()?.to_owned(),
                system,
                custom: custom.collect::<Option<_>>()?,
            })
        });
        Some(TaskStatistics { groups: groups.collect::<Option<_>>()? })
    }
}

fn pack_summary(out: &mut Packer, s: &Summary) {
    out.signed(s.sum).signed(s.count).signed(s.min).signed(s.max).signed(s.last);
}

fn unpack_summary(input: &mut Unpacker<'_>) -> Option<Summary> {
    let mut next = || input.signed();
    Some(Summary { sum: next()?, count: next()?, min: next()?, max: next()?, last: next()? })
}
