//! Sums over the jobs of one task (jobs-and-nodes.md 7.3).

use super::samples::{JobSamples, PATHS, volume_at, volume_path, volume_place};
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
    /// Size and largest size of each memory file system.
    pub volumes: Vec<[Summary; 2]>,
    /// By name.
    pub custom: BTreeMap<String, Summary>,
}

impl Group {
    /// Paths and summaries of everything but custom statistics.
    pub(crate) fn system_paths(&self) -> impl Iterator<Item = (Cow<'static, str>, &Summary)> {
        let system = PATHS.iter().map(|path| Cow::Borrowed(*path)).zip(&self.system);
        let volumes = self.volumes.iter().enumerate().flat_map(|(volume, parts)| {
            let path = move |part| Cow::Owned(volume_path(volume, part));
            parts.iter().enumerate().map(move |(part, s)| (path(part), s))
        });
        system.chain(volumes).filter(|(_, s)| s.count != 0)
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
        let volumes = group.volumes.len().max(samples.volumes.len());
        group.volumes.resize(volumes, Default::default());
        for (summaries, sample) in group.volumes.iter_mut().zip(&samples.volumes) {
            summaries.iter_mut().zip(sample).for_each(|(summary, x)| summary.add(*x));
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
                volumes: Vec::new(),
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
            let volumes = group.volumes.iter().enumerate().flat_map(|(volume, parts)| {
                parts.iter().enumerate().map(move |(part, s)| (volume_place(volume, part), s))
            });
            for (place, s) in system.chain(volumes).filter(|(_, s)| s.count != 0) {
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
            let mut volumes: Vec<[Summary; 2]> = Vec::new();
            let mut input = Unpacker::new(g.get("system")?.as_bytes()?);
            while !input.is_empty() {
                let place = input.unsigned()?;
                let summary = unpack_summary(&mut input)?;
                if let Some((volume, part)) = volume_at(place) {
                    volumes.resize(volumes.len().max(volume + 1), Default::default());
                    volumes[volume][part] = summary;
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
                volumes,
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
