//! What monitoring is told: counts and amounts as they stand, gathered on the kernel's thread in no time,
//! turned into families of samples by whoever asked ([`Metrics::families`]).
//!
//! Names follow the habits of Prometheus: units at the end, counters without the `_total` that the text form
//! adds. How long things take is measured at the edge: there is no clock here.

use crate::access::Who;
use crate::pools::ROOT;
use crate::{Body, Kernel};
use controller::{JobRecord, Savings};
use scheduler::{
    Deactivation, PreemptionPriority, PreemptionRecord, Snapshot, Stage, TreeMetrics, TreeSnapshot,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::{JobState, OperationState, RESOURCES};
use yson::Value;

/// Is it a level, or does it only grow?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricKind {
    /// As it is now.
    Gauge,
    /// Since the start of the server.
    Counter,
}

/// All samples of one name.
#[derive(Clone, PartialEq, Debug)]
pub struct MetricFamily {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// Names of the labels.
    pub labels: &'static [&'static str],
    /// Values of the labels, and the value.
    pub samples: Vec<(Vec<String>, f64)>,
}

/// What only this module counts, since the start of the server.
#[derive(Clone, Default, Debug)]
pub(crate) struct Counters {
    /// By state and, of aborted ones, reason.
    ended_jobs: BTreeMap<(JobState, &'static str), u64>,
    ended_operations: BTreeMap<OperationState, u64>,
    started_operations: u64,
    /// By tree and kind.
    preemptions: BTreeMap<(Arc<str>, &'static str), u64>,
    updates: u64,
}

impl Counters {
    pub fn job_ended(&mut self, record: &JobRecord) {
        let reason = record.abort_reason.map_or("", |reason| reason.as_str());
        *self.ended_jobs.entry((record.state, reason)).or_default() += 1;
    }
    pub fn operation_entered(&mut self, state: OperationState) {
        match state {
            OperationState::Starting => self.started_operations += 1,
            ended if ended.is_finished() => *self.ended_operations.entry(ended).or_default() += 1,
            _ => {}
        }
    }
    pub fn preempted(&mut self, record: &PreemptionRecord) {
        *self.preemptions.entry((record.tree.clone(), record.cause.kind().as_str())).or_default() += 1;
    }
    pub fn updated(&mut self) {
        self.updates += 1;
    }
}

/// See the module page.
#[derive(Debug)]
pub struct Metrics {
    snapshot: Arc<Snapshot>,
    trees: Vec<OfTree>,
    counters: Counters,
    /// Pools that the asking user may not read; `None`: the user may read all.
    hidden: Option<Hidden>,
    operations: BTreeMap<OperationState, u64>,
    running_jobs: usize,
    nodes: BTreeMap<&'static str, u64>,
    archived_operations: usize,
    archived_bytes: u64,
    alerts: usize,
}

/// What a user may not be told.
#[derive(Debug)]
struct Hidden {
    /// Trees and names of pools, ephemeral ones as well.
    pools: BTreeSet<(String, String)>,
    /// The pools that there are. Others are not told of: whether they are hidden is not known.
    known: Arc<Snapshot>,
}

impl Hidden {
    /// An ephemeral pool is as secret as the pool that it is in.
    fn of(snapshot: &Arc<Snapshot>, mut pools: BTreeSet<(String, String)>) -> Hidden {
        let mut ephemeral = Vec::new();
        for tree in snapshot.trees() {
            for pool in tree.pool_names() {
                let Some(map) = tree.pool_attributes(pool, Some(&["parent", "is_ephemeral"])) else {
                    continue;
                };
                let parent = map.get("parent").and_then(Value::as_str).unwrap_or_default();
                let is_ephemeral = map.get("is_ephemeral").and_then(Value::as_bool).unwrap_or(false);
                if is_ephemeral && pools.contains(&(tree.name.to_string(), parent.to_owned())) {
                    ephemeral.push((tree.name.to_string(), pool.to_string()));
                }
            }
        }
        pools.extend(ephemeral);
        Hidden { pools, known: Arc::clone(snapshot) }
    }
}

#[derive(Debug)]
struct OfTree {
    name: Arc<str>,
    metrics: TreeMetrics,
    /// What was saved in each pool, without what is below it.
    savings: BTreeMap<String, Savings>,
}

impl Kernel {
    /// `GetMetrics`.
    pub(crate) fn metrics(&self, who: Option<&Who>) -> Body {
        let mut operations: BTreeMap<OperationState, u64> = BTreeMap::new();
        for operation in self.operations.values() {
            *operations.entry(operation.state).or_default() += 1;
        }
        let mut nodes: BTreeMap<&'static str, u64> = BTreeMap::from([("online", 0), ("offline", 0)]);
        for node in self.nodes.iter() {
            *nodes.entry(if node.key.is_some() { "online" } else { "offline" }).or_default() += 1;
        }
        let trees = self.scheduler.tree_names().filter_map(|name| {
            let savings = self.pool_savings.of_tree(name);
            Some(OfTree { name: name.clone(), metrics: self.scheduler.metrics(name).ok()?, savings })
        });
        let (archived_operations, archived_bytes) = self.finished.size();
        let snapshot = self.scheduler.snapshot();
        let hidden = self.hidden_pools(who).map(|pools| Hidden::of(&snapshot, pools));
        Body::Metrics(Box::new(Metrics {
            snapshot,
            trees: trees.collect(),
            counters: self.counters.clone(),
            hidden,
            operations,
            running_jobs: self.jobs.ids().count(),
            nodes,
            archived_operations,
            archived_bytes,
            alerts: self.alert_count(),
        }))
    }
}

/// Attributes of pools that are maps of resources.
const POOL_RESOURCES: &[(&str, &str, &str)] = &[
    ("resource_usage", "millpond_pool_resource_usage", "What the operations of the pool hold."),
    ("resource_demand", "millpond_pool_resource_demand", "What they hold and want."),
    ("fair_resources", "millpond_pool_fair_resources", "The fair share of the pool in resources."),
    (
        "effective_strong_guarantee_resources",
        "millpond_pool_strong_guarantee_resources",
        "What the pool is guaranteed, as far as the cluster has it.",
    ),
    (
        "accumulated_resource_volume",
        "millpond_pool_accumulated_resource_seconds",
        "Integral volume of the pool, resource by resource.",
    ),
];

/// Attributes of pools that are numbers.
const POOL_NUMBERS: &[(&str, &str, &str)] = &[
    ("usage_ratio", "millpond_pool_usage_ratio", "Dominant share of what is held."),
    ("demand_ratio", "millpond_pool_demand_ratio", "Dominant share of what is held and wanted."),
    ("fair_share_ratio", "millpond_pool_fair_share_ratio", "Dominant fair share."),
    (
        "satisfaction_ratio",
        "millpond_pool_satisfaction_ratio",
        "Usage over fair share; 1e9: there is no share.",
    ),
    (
        "accumulated_resource_ratio_volume",
        "millpond_pool_accumulated_cluster_seconds",
        "Integral volume of the pool, in seconds of the whole cluster.",
    ),
    ("operation_count", "millpond_pool_operations", "Unfinished operations of the pool and below it."),
    ("running_operation_count", "millpond_pool_running_operations", "Those of them that may run."),
];

/// Attributes that say who the pool is.
const POOL_WORDS: &[&str] = &["starvation_status"];

const BY_POOL: &[&str] = &["tree", "pool"];
const BY_RESOURCE: &[&str] = &["tree", "pool", "resource"];

/// Families under construction.
struct Families(Vec<MetricFamily>);

impl Families {
    fn add(
        &mut self,
        (kind, name, help): (MetricKind, &'static str, &'static str),
        labels: &'static [&'static str],
        samples: impl IntoIterator<Item = (Vec<String>, f64)>,
    ) {
        let samples: Vec<_> = samples.into_iter().collect();
        debug_assert!(samples.iter().all(|(values, _)| values.len() == labels.len()), "{name}: {labels:?}");
        self.0.push(MetricFamily { name, help, kind, labels, samples });
    }

    fn gauge(&mut self, name: &'static str, help: &'static str, value: f64) {
        self.add((MetricKind::Gauge, name, help), &[], [(Vec::new(), value)]);
    }
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

impl Metrics {
    /// Everything, by name.
    pub fn families(&self) -> Vec<MetricFamily> {
        let mut families = Families(Vec::new());
        self.pools(&mut families);
        self.savings(&mut families);
        self.trees(&mut families);
        self.passes(&mut families);
        self.cluster(&mut families);
        families.0
    }

    /// May the asking user be told of this pool?
    fn shows(&self, tree: &str, pool: &str) -> bool {
        let Some(hidden) = &self.hidden else { return true };
        let mut trees = hidden.known.trees();
        let is_known =
            trees.any(|known| &*known.name == tree && known.pool_attributes(pool, Some(&[])).is_some());
        is_known && !hidden.pools.contains(&(tree.to_owned(), pool.to_owned()))
    }

    /// Trees that the asking user may be told of.
    fn shown_trees(&self) -> impl Iterator<Item = &OfTree> {
        self.trees.iter().filter(|tree| self.shows(&tree.name, ROOT))
    }

    fn pools(&self, families: &mut Families) {
        let mut resources: Vec<Vec<(Vec<String>, f64)>> = vec![Vec::new(); POOL_RESOURCES.len()];
        let mut numbers: Vec<Vec<(Vec<String>, f64)>> = vec![Vec::new(); POOL_NUMBERS.len()];
        let mut starving = Vec::new();
        let fields: Vec<&str> = POOL_RESOURCES
            .iter()
            .chain(POOL_NUMBERS)
            .map(|(field, ..)| *field)
            .chain(POOL_WORDS.iter().copied())
            .collect();
        for tree in self.snapshot.trees() {
            for pool in tree.pool_names() {
                let Some(map) = tree.pool_attributes(pool, Some(&fields)) else { continue };
                let word = |name: &str| map.get(name).and_then(Value::as_str).unwrap_or_default();
                if !self.shows(&tree.name, pool) {
                    continue;
                }
                for ((field, ..), samples) in POOL_RESOURCES.iter().zip(&mut resources) {
                    let Some(amounts) = map.get(*field) else { continue };
                    samples.extend(RESOURCES.iter().filter_map(|resource| {
                        let amount = amounts.get(resource.as_str())?.as_f64()?;
                        Some((words([&tree.name, pool, resource.as_str()]), amount))
                    }));
                }
                for ((field, ..), samples) in POOL_NUMBERS.iter().zip(&mut numbers) {
                    if let Some(number) = map.get(*field).and_then(Value::as_f64) {
                        samples.push((words([&tree.name, pool]), number));
                    }
                }
                let level = match word("starvation_status") {
                    "starving" => 1.0,
                    "aggressively_starving" => 2.0,
                    _ => 0.0,
                };
                starving.push((words([&tree.name, pool]), level));
            }
        }
        for ((_, name, help), samples) in POOL_RESOURCES.iter().zip(resources) {
            families.add((MetricKind::Gauge, name, help), BY_RESOURCE, samples);
        }
        for ((_, name, help), samples) in POOL_NUMBERS.iter().zip(numbers) {
            families.add((MetricKind::Gauge, name, help), BY_POOL, samples);
        }
        let help = "0: not starving, 1: starving, 2: aggressively starving.";
        families.add((MetricKind::Gauge, "millpond_pool_starvation_level", help), BY_POOL, starving);
    }

    /// What the CPU monitors and the memory digests were good for.
    fn savings(&self, families: &mut Families) {
        type Figure = (&'static str, &'static str, fn(&Savings) -> f64);
        let figures: [Figure; 5] = [
            ("millpond_pool_ordered_core_seconds", "Cores that jobs ordered, over time.", |s| {
                s.max_cpu_x100 as f64 / 100.0
            }),
            ("millpond_pool_used_core_seconds", "Cores that the CPU monitors saw used, over time.", |s| {
                s.smoothed_cpu_x100 as f64 / 100.0
            }),
            (
                "millpond_pool_preemptible_core_seconds",
                "Cores that the CPU monitors could have given to others, over time.",
                |s| s.preemptible_cpu_x100 as f64 / 100.0,
            ),
            (
                "millpond_pool_reclaimed_core_seconds",
                "Cores that the CPU monitors gave to others, over time.",
                |s| s.reclaimed_cpu_x100 as f64 / 100.0,
            ),
            (
                "millpond_pool_unreserved_byte_seconds",
                "Memory that the memory digests did not reserve though jobs may use it, over time.",
                |s| s.unreserved_memory as f64,
            ),
        ];
        for (name, help, figure) in figures {
            let of_tree = |tree: &OfTree| {
                let visible = tree.savings.iter().filter(|(pool, _)| self.shows(&tree.name, pool));
                visible
                    .map(|(pool, savings)| (words([&tree.name, pool]), figure(savings)))
                    .collect::<Vec<_>>()
            };
            // Without what is below: sums over pools are right.
            families.add((MetricKind::Counter, name, help), BY_POOL, self.trees.iter().flat_map(of_tree));
        }
    }

    fn trees(&self, families: &mut Families) {
        type Amounts = fn(&TreeSnapshot) -> vocab::Resources;
        let figures: [(&'static str, &'static str, Amounts); 2] = [
            ("millpond_tree_resource_limits", "What the nodes of the tree have.", |t| t.resource_limits),
            ("millpond_tree_resource_usage", "What is taken of it.", |t| t.resource_usage),
        ];
        for (name, help, amounts) in figures {
            let samples =
                self.snapshot.trees().filter(|tree| self.shows(&tree.name, ROOT)).flat_map(|tree| {
                    let map = amounts(tree).to_value();
                    RESOURCES.map(|resource| {
                        let amount = map.get(resource.as_str()).and_then(Value::as_f64).unwrap_or(0.0);
                        (words([&tree.name, resource.as_str()]), amount)
                    })
                });
            families.add((MetricKind::Gauge, name, help), &["tree", "resource"], samples);
        }
        let nodes = self.snapshot.trees().filter(|t| self.shows(&t.name, ROOT));
        let nodes = nodes.map(|t| (words([&t.name]), t.node_names.len() as f64));
        families.add((MetricKind::Gauge, "millpond_tree_nodes", "Nodes of the tree."), &["tree"], nodes);
        let preemptions = self.counters.preemptions.iter().filter(|((tree, _), _)| self.shows(tree, ROOT));
        families.add(
            (MetricKind::Counter, "millpond_preemptions", "Allocations that were told to give way, by why."),
            &["tree", "kind"],
            preemptions.map(|((tree, kind), n)| (words([tree, *kind]), *n as f64)),
        );
        for (place, name, help) in [
            (0, "millpond_starvation_intervals", "Starvations of operations that are over."),
            (1, "millpond_starvation_seconds", "How long they lasted together."),
        ] {
            let of_tree = |tree: &OfTree| {
                let ends =
                    ["fair_share_decreased", "usage_increased"].into_iter().zip(tree.metrics.starvation);
                ends.map(|(end, intervals)| {
                    let value =
                        if place == 0 { intervals.count as f64 } else { intervals.duration.as_secs_f64() };
                    (words([&tree.name, end]), value)
                })
                .collect::<Vec<_>>()
            };
            let samples = self.shown_trees().flat_map(of_tree);
            families.add((MetricKind::Counter, name, help), &["tree", "end"], samples);
        }
        let hungry = self.shown_trees().flat_map(|tree| {
            let counts = tree.metrics.operation_count_by_preemption_priority;
            let named = PreemptionPriority::ALL.iter().zip(counts);
            named.map(|(p, n)| (words([&tree.name, p.as_str()]), n as f64)).collect::<Vec<_>>()
        });
        families.add(
            (
                MetricKind::Gauge,
                "millpond_operations_by_preemption_priority",
                "Operations by what they may have preempted.",
            ),
            &["tree", "priority"],
            hungry,
        );
    }

    /// Heartbeats: passes over nodes, and what became of them.
    fn passes(&self, families: &mut Families) {
        let passes = self.shown_trees().flat_map(|tree| {
            let kinds = ["non_preemptive", "preemptive"].into_iter().zip(tree.metrics.passes);
            kinds.map(|(kind, n)| (words([&tree.name, kind]), n as f64)).collect::<Vec<_>>()
        });
        let help = "Heartbeats: passes over nodes, without and with preemption.";
        families.add((MetricKind::Counter, "millpond_heartbeats", help), &["tree", "kind"], passes);
        let by_stage = |count: fn(&TreeMetrics, usize) -> u64| {
            self.shown_trees().flat_map(move |tree| {
                let counted = Stage::ALL.iter().map(move |stage| {
                    (words([&tree.name, stage.as_str()]), count(&tree.metrics, *stage as usize) as f64)
                });
                counted.collect::<Vec<_>>()
            })
        };
        families.add(
            (MetricKind::Counter, "millpond_scheduled_allocations", "Allocations started, by stage."),
            &["tree", "stage"],
            by_stage(|m, stage| m.scheduled_allocations[stage]),
        );
        families.add(
            (MetricKind::Counter, "millpond_tried_operations", "Operations tried on nodes, by stage."),
            &["tree", "stage"],
            by_stage(|m, stage| m.stages[stage].1),
        );
        let passed_over = self.shown_trees().flat_map(|tree| {
            let counted = Deactivation::ALL.iter().zip(tree.metrics.deactivations);
            counted.map(|(why, n)| (words([&tree.name, why.as_str()]), n as f64)).collect::<Vec<_>>()
        });
        let help = "Operations passed over on a node, by why.";
        families.add((MetricKind::Counter, "millpond_deactivations", help), &["tree", "reason"], passed_over);
    }

    fn cluster(&self, families: &mut Families) {
        use MetricKind::{Counter, Gauge};
        let count = |n: u64| n as f64;
        let counters = &self.counters;
        let operations = self.operations.iter().map(|(s, n)| (words([s.as_str()]), count(*n)));
        families.add((Gauge, "millpond_operations", "Unfinished operations."), &["state"], operations);
        let one = [(Vec::new(), count(counters.started_operations))];
        families.add((Counter, "millpond_started_operations", "Operations that were accepted."), &[], one);
        let ended = counters.ended_operations.iter().map(|(s, n)| (words([s.as_str()]), count(*n)));
        families.add((Counter, "millpond_ended_operations", "Operations that ended."), &["state"], ended);
        let jobs = counters.ended_jobs.iter();
        families.add(
            (Counter, "millpond_ended_jobs", "Jobs that ended; aborted ones by why."),
            &["state", "abort_reason"],
            jobs.map(|((state, why), n)| (words([state.as_str(), why]), count(*n))),
        );
        let one = [(Vec::new(), count(counters.updates))];
        families.add((Counter, "millpond_fair_share_updates", "Updates of fair shares."), &[], one);
        let nodes = self.nodes.iter().map(|(state, n)| (words([state]), count(*n)));
        families.add((Gauge, "millpond_nodes", "Exec nodes."), &["state"], nodes);
        families.gauge("millpond_jobs", "Unfinished jobs.", self.running_jobs as f64);
        families.gauge(
            "millpond_archived_operations",
            "Finished operations that are kept.",
            self.archived_operations as f64,
        );
        families.gauge(
            "millpond_archived_bytes",
            "What they take, with jobs and stderrs.",
            self.archived_bytes as f64,
        );
        families.gauge(
            "millpond_alerts",
            "Alerts of the scheduler (//sys/scheduler/@alerts).",
            self.alerts as f64,
        );
    }
}
