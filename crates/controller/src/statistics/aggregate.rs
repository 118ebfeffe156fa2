//! Sums over the jobs of one task (jobs-and-nodes.md 7.3).

use super::samples::{JobSamples, PATHS, numbered_path};
use crate::packed::{Packer, Unpacker};
use std::borrow::Cow;
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
    /// What a job may have several of, by the place in durable records.
    pub numbered: BTreeMap<u64, Summary>,
    /// By name.
    pub custom: BTreeMap<String, Summary>,
}

impl Group {
    /// Paths and summaries of everything but custom statistics.
    pub(crate) fn system_paths(&self) -> impl Iterator<Item = (Cow<'static, str>, &Summary)> {
        let system = PATHS.iter().map(|path| Cow::Borrowed(*path)).zip(&self.system);
        let numbered = self.numbered.iter();
        let numbered = numbered.filter_map(|(place, s)| Some((Cow::Owned(numbered_path(*place)?), s)));
        system.chain(numbered).filter(|(_, s)| s.count != 0)
    }
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
        for (place, sample) in &samples.numbered {
            group.numbered.entry(*place).or_default().add(*sample);
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
            self.groups.push(Group {
                state,
                tree: tree.to_owned(),
                system,
                numbered: BTreeMap::new(),
                custom: BTreeMap::new(),
            });
            self.groups.len() - 1
        });
        &mut self.groups[place]
    }

    /// Durable form: a list of `{state; tree; system; custom}`.
    pub(crate) fn to_value(&self) -> Value {
        let pack = |group: &Group| {
            let mut out = Packer::default();
            let system = (0..).zip(&group.system);
            let numbered = group.numbered.iter().map(|(place, s)| (*place, s));
            for (place, s) in system.chain(numbered).filter(|(_, s)| s.count != 0) {
                out.unsigned(place);
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
                "system" => Value::String(pack(g)),
                "custom" => custom.collect::<Map>(),
            }
        });
        groups.collect::<Vec<_>>().into()
    }

    pub(crate) fn from_value(value: &Value) -> Option<TaskStatistics> {
        let groups = value.as_list()?.iter().map(|g| {
            let mut system = vec![Summary::default(); PATHS.len()];
            let mut numbered = BTreeMap::new();
            let mut input = Unpacker::new(g.get("system")?.as_bytes()?);
            while !input.is_empty() {
                let place = input.unsigned()?;
                let summary = unpack_summary(&mut input)?;
                if numbered_path(place).is_some() {
                    numbered.insert(place, summary);
                } else if let Some(slot) = system.get_mut(usize::try_from(place).ok()?) {
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
                numbered,
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
