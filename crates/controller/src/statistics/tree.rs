//! Statistics as the API shows them: nested maps by parts of the path (http-api.md 9.3, 10.1).

use super::aggregate::TaskStatistics;
use super::samples::{JobSamples, PATHS, numbered_path};
use std::borrow::Cow;
use std::collections::BTreeMap;
use vocab::Summary;
use yson::{Map, Value};

/// `statistics` of one job: leaves are summaries.
pub fn of_job(samples: &JobSamples) -> Map {
    let mut tree = Map::new();
    for (path, sample) in PATHS.iter().zip(&samples.system) {
        if let Some(x) = sample {
            *leaf(&mut tree, path) = full_summary(&Summary::of(*x)).into();
        }
    }
    for (place, x) in &samples.numbered {
        if let Some(path) = numbered_path(*place) {
            *leaf(&mut tree, &path) = full_summary(&Summary::of(*x)).into();
        }
    }
    for (name, summary) in &samples.custom {
        custom(&mut tree).insert(name, full_summary(summary));
    }
    tree
}

/// Statistics that every row of `list_jobs` carries: what a table of jobs shows beside their states.
const BRIEF: [&str; 14] = [
    "time/total",
    "time/exec",
    "user_job/cpu/user",
    "user_job/cpu/system",
    "user_job/max_memory",
    "user_job/current_memory/rss",
    "user_job/memory_limit",
    "user_job/memory_reserve",
    "user_job/cpu_reserve_millicores",
    "user_job/gpu_reserve",
    "job_proxy/smoothed_cpu_usage_x100",
    "job_proxy/preemptible_cpu_x100",
    "job_proxy/max_memory",
    "job_proxy/memory_reserve",
];

/// `brief_statistics` of one job (http-api.md 10.1): the newest number by path, one level deep.
pub fn brief(samples: &JobSamples) -> Map {
    let all = PATHS.iter().zip(&samples.system);
    all.filter(|(path, _)| BRIEF.contains(path)).filter_map(|(path, x)| Some((*path, (*x)?))).collect()
}

/// `job_statistics_v2`: leaves are lists of `{summary; tags}`.
pub fn tagged(tasks: &[(&str, &TaskStatistics)]) -> Map {
    let mut tree = Map::new();
    for (task, statistics) in tasks {
        for group in statistics.groups() {
            let entry = |summary: &Summary| -> Value {
                let tags = yson::map! {
                    "job_state" => group.state, "job_type" => *task, "pool_tree" => group.tree.as_str(),
                };
                yson::map! {"summary" => full_summary(summary), "tags" => tags}.into()
            };
            for (path, summary) in group.system_paths() {
                push(leaf(&mut tree, &path), entry(summary));
            }
            for (name, summary) in &group.custom {
                push(custom(&mut tree).entry_or_insert(name, || Value::Entity), entry(summary));
            }
        }
    }
    tree
}

/// `job_statistics`, the old form: leaves are `{"$" = {<state> = {<type> = summary}}}`, trees merged.
pub fn by_state(tasks: &[(&str, &TaskStatistics)]) -> Map {
    let mut tree = Map::new();
    for (task, statistics) in tasks {
        let mut merged: BTreeMap<(Cow<'_, str>, &str, bool), Summary> = BTreeMap::new();
        for group in statistics.groups() {
            let state = group.state.as_str();
            for (path, summary) in group.system_paths() {
                merged.entry((path, state, false)).or_default().merge(summary);
            }
            for (name, summary) in &group.custom {
                merged.entry((name.as_str().into(), state, true)).or_default().merge(summary);
            }
        }
        for ((path, state, is_custom), s) in merged {
            let leaf = match is_custom {
                true => custom(&mut tree).entry_or_insert(&*path, || Value::Entity),
                false => leaf(&mut tree, &path),
            };
            let shown = yson::map! {"sum" => s.sum, "count" => s.count, "min" => s.min, "max" => s.max};
            let states = into_map(leaf, "$");
            if let Some(types) = into_map(states, state).as_map_mut() {
                types.insert(task, shown);
            }
        }
    }
    tree
}

fn full_summary(s: &Summary) -> Map {
    yson::map! {"sum" => s.sum, "count" => s.count, "min" => s.min, "max" => s.max, "last" => s.last}
}

/// The place of a path in a tree of maps; `#` when new.
fn leaf<'t>(tree: &'t mut Map, path: &str) -> &'t mut Value {
    match path.split_once('/') {
        None => tree.entry_or_insert(path, || Value::Entity),
        Some((head, rest)) => {
            let child = tree.entry_or_insert(head, || Value::Map(Map::new()));
            leaf(child.as_map_mut().expect("no path in PATHS is a prefix of another"), rest)
        }
    }
}

/// Custom names stay one key each, even with slashes (jobs-and-nodes.md 7.3).
fn custom(tree: &mut Map) -> &mut Map {
    let child = tree.entry_or_insert("custom", || Value::Map(Map::new()));
    child.as_map_mut().expect("\"custom\" is not the head of a path in PATHS")
}

fn push(place: &mut Value, entry: Value) {
    match place {
        Value::List(list) => list.push(entry),
        _ => *place = Value::List(vec![entry]),
    }
}

/// The child map of a value that is or becomes a map.
fn into_map<'v>(place: &'v mut Value, key: &str) -> &'v mut Value {
    if place.as_map().is_none() {
        *place = Value::Map(Map::new());
    }
    let map = place.as_map_mut().expect("just made one");
    map.entry_or_insert(key, || Value::Map(Map::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brief_statistics_are_statistics() {
        for path in BRIEF {
            assert!(PATHS.contains(&path), "{path}");
        }
        let system = PATHS.iter().map(|path| (*path == "time/exec").then_some(7)).collect();
        let samples = JobSamples { system, ..JobSamples::default() };
        assert_eq!(brief(&samples), yson::map! {"time/exec" => 7});
    }

    #[test]
    fn no_path_is_inside_another() {
        for (i, a) in PATHS.iter().enumerate() {
            assert_ne!(a.split('/').next(), Some("custom"));
            for (j, b) in PATHS.iter().enumerate() {
                assert!(i == j || !format!("{b}/").starts_with(&format!("{a}/")), "{a} and {b}");
            }
        }
    }
}
