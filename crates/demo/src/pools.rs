//! The tree of pools of the demo, and the queues of the log that use it.
//!
//! The log tells queues apart by number only; the roles that they get here are ours. What each pool
//! is to show:
//!
//! * `production` has a strong guarantee of half the cluster: whatever the others do, it gets that
//!   much as soon as it asks for it;
//! * `research` has two subpools that share what it gets by weight, and a small guarantee;
//! * `analytics` has many short jobs: fair share serves them although others have queues;
//! * `batch` is FIFO: one user submits a flood of jobs, they run in the order in which they came.

use client::{Client, ClientError};
use yson::{Map, Value, map};

/// A pool of the demo.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pool {
    /// Name, unique in the tree.
    pub name: &'static str,
    /// The pool above; none: the root.
    pub parent: Option<&'static str>,
    /// Strong guarantee as a part of the cluster's cores.
    pub guarantee: f64,
    /// Weight among its siblings.
    pub weight: f64,
    /// Operations run in the order in which they came.
    pub fifo: bool,
    /// Operations that run at once; the others are pending.
    pub max_running: i64,
    /// Queues of the log whose jobs come here.
    pub queues: &'static [u64],
}

/// All pools, parents first.
///
/// Of small operations whose fair share is less than one job, the number that runs at once is limited,
/// as on real clusters, such that a share is a job at least.
pub const POOLS: &[Pool] = &[
    Pool { guarantee: 0.5, queues: &[3], ..pool("production") },
    Pool { guarantee: 0.125, weight: 2.0, ..pool("research") },
    Pool { parent: Some("research"), weight: 2.0, max_running: 2, queues: &[6], ..pool("simulation") },
    Pool { parent: Some("research"), max_running: 2, queues: &[5], ..pool("methods") },
    Pool { max_running: 2, queues: &[4, 1], ..pool("analytics") },
    Pool { fifo: true, max_running: 16, queues: &[2], ..pool("batch") },
];

const fn pool(name: &'static str) -> Pool {
    Pool {
        name,
        parent: None,
        guarantee: 0.0,
        weight: 1.0,
        fifo: false,
        max_running: MAX_OPERATIONS,
        queues: &[],
    }
}

impl Pool {
    /// Path without the root: `research/simulation`.
    pub fn path(&self) -> String {
        match self.parent {
            Some(parent) => format!("{parent}/{}", self.name),
            None => self.name.to_owned(),
        }
    }

    fn options(&self, tree: &str, cores: f64) -> Map {
        let guarantee = (self.guarantee > 0.0).then(|| map! {"cpu" => self.guarantee * cores});
        map! {"name" => self.name, "pool_tree" => tree, "weight" => self.weight}
            .with_some("parent_name", self.parent)
            .with_some("mode", self.fifo.then_some("fifo"))
            .with("max_operation_count", MAX_OPERATIONS)
            .with("max_running_operation_count", self.max_running)
            .with_some("strong_guarantee_resources", guarantee)
    }
}

/// Where the jobs of a queue go.
pub fn of_queue(queue: u64) -> Option<&'static Pool> {
    POOLS.iter().find(|pool| pool.queues.contains(&queue))
}

/// Operations that a pool takes: more than the window has.
const MAX_OPERATIONS: i64 = 1000;
/// Options of the tree. Two minutes stand for six hours here: what the default of 30 seconds would wait
/// for an hour and a half, half a second does.
const TREE_OPTIONS: &[(&str, f64)] = &[
    ("fair_share_starvation_timeout", 500.0),
    ("fair_share_starvation_tolerance", 0.95),
    ("preemptive_scheduling_backoff", 250.0),
];

/// Makes the pools; gives the name of the tree.
pub fn create(client: &Client, cores: f64) -> Result<String, ClientError> {
    let tree = client.get("//sys/scheduler/orchid/scheduler/default_pool_tree", &[])?;
    let tree = tree.as_str().unwrap_or("physical").to_owned();
    let config = format!("//sys/pool_trees/{tree}/@config");
    for (option, value) in TREE_OPTIONS {
        // Times are whole milliseconds.
        let value = if value.fract() == 0.0 { Value::from(*value as i64) } else { Value::from(*value) };
        client.set(&format!("{config}/{option}"), &value, false, false)?;
    }
    for pool in POOLS {
        client.create_object("scheduler_pool", pool.options(&tree, cores), true)?;
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_of_the_window_has_one_pool_and_it_is_a_leaf() {
        let jobs = crate::swf::parse(crate::WINDOW).expect("window");
        for job in &jobs {
            let pools: Vec<_> = POOLS.iter().filter(|pool| pool.queues.contains(&job.queue)).collect();
            assert_eq!(pools.len(), 1, "queue {}", job.queue);
            assert!(
                POOLS.iter().all(|pool| pool.parent != Some(pools[0].name)),
                "{} has subpools",
                pools[0].name
            );
        }
    }

    #[test]
    fn parents_come_first_and_guarantees_fit() {
        for (index, pool) in POOLS.iter().enumerate() {
            if let Some(parent) = pool.parent {
                assert!(
                    POOLS[..index].iter().any(|other| other.name == parent),
                    "{parent} is not before {}",
                    pool.name
                );
            }
        }
        let top: f64 = POOLS.iter().filter(|pool| pool.parent.is_none()).map(|pool| pool.guarantee).sum();
        assert!(top <= 1.0);
    }

    #[test]
    fn options_are_those_of_the_api() {
        let text = |name: &str| {
            let pool = POOLS.iter().find(|pool| pool.name == name).expect("pool");
            String::from_utf8(yson::to_text(&pool.options("physical", 16.0).into())).expect("text")
        };
        assert_eq!(
            text("production"),
            "{\"name\"=\"production\";\"pool_tree\"=\"physical\";\"weight\"=1.;\"max_operation_count\"=1000;\
             \"max_running_operation_count\"=1000;\"strong_guarantee_resources\"={\"cpu\"=8.;};}"
        );
        assert!(text("batch").contains(r#""mode"="fifo""#));
        assert!(text("methods").contains(r#""parent_name"="research""#));
    }
}
