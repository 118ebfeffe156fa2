//! Scenarios of our own, of the kinds of those that the specification comes with and with other numbers:
//! the curves that must come out are computed here, by a model without jobs and nodes.
//!
//! The model knows one resource and a handful of rules: a volume changes by `flow - integral share`, is never
//! below 0 and does not grow above `flow * k`; a burst pool gets `min(burst, volume / smoothing)`, a relaxed
//! one at most that or `m * flow`, of what strong guarantees and bursts leave, in proportion to the volumes;
//! the rest goes by weight, and is not charged.

use crate::whole::whole;
use sim::{Options, Scenario};
use std::fmt::Write;
use std::path::Path;
use yson::Map;

/// A pool in units of the dominant resource.
#[derive(Clone, Copy)]
struct Pool {
    name: &'static str,
    weight: f64,
    strong: f64,
    /// 0: relaxed, if there is a flow.
    burst: f64,
    flow: f64,
    /// At the start, units times seconds.
    volume: f64,
}

const PLAIN: Pool = Pool { name: "", weight: 1.0, strong: 0.0, burst: 0.0, flow: 0.0, volume: 0.0 };

/// Jobs that are wanted in a pool from a second to another one.
type Phase = (&'static str, u64, u64, u64);

/// A scenario.
struct Setting {
    name: &'static str,
    seconds: u64,
    nodes: u64,
    /// Units and cores of a node.
    node: (f64, f64),
    /// Units and cores of a job.
    job: (f64, f64),
    job_seconds: u64,
    /// What the units are.
    resource: &'static str,
    smoothing: f64,
    saturation: f64,
    multiplier: f64,
    pools: Vec<Pool>,
    phases: Vec<Phase>,
}

/// Shares of one moment, units: strong, integral, free.
type Shares = [f64; 3];

/// Divides `total` in proportion to the first numbers, nobody above the second.
fn divide(total: f64, wishes: &[(f64, f64)]) -> Vec<f64> {
    let mut given = vec![0.0; wishes.len()];
    let mut open: Vec<usize> =
        (0..wishes.len()).filter(|i| wishes[*i].0 > 0.0 && wishes[*i].1 > 0.0).collect();
    let mut left = total;
    while !open.is_empty() {
        let sum: f64 = open.iter().map(|i| wishes[*i].0).sum();
        let (full, rest): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|i| left * wishes[**i].0 / sum >= wishes[**i].1);
        if full.is_empty() {
            rest.iter().for_each(|i| given[*i] = left * wishes[*i].0 / sum);
            break;
        }
        for i in full {
            given[i] = wishes[i].1;
            left -= wishes[i].1;
        }
        open = rest;
    }
    given
}

impl Setting {
    fn total(&self) -> f64 {
        self.nodes as f64 * self.node.0
    }

    fn demand(&self, pool: &Pool, second: u64) -> f64 {
        let wanted = self
            .phases
            .iter()
            .filter(|(name, from, to, _)| *name == pool.name && (*from..*to).contains(&second));
        wanted.map(|(.., jobs)| *jobs as f64 * self.job.0).sum()
    }

    fn shares(&self, second: u64, volumes: &[f64]) -> Vec<Shares> {
        let demand: Vec<f64> = self.pools.iter().map(|pool| self.demand(pool, second)).collect();
        let mut shares: Vec<Shares> = vec![[0.0; 3]; self.pools.len()];
        let mut left = self.total();
        for (i, pool) in self.pools.iter().enumerate() {
            let strong = demand[i].min(pool.strong);
            let burst = (demand[i] - strong).min(pool.burst).min(volumes[i] / self.smoothing);
            shares[i] = [strong, burst, 0.0];
            left -= strong + burst;
        }
        let relaxed: Vec<(f64, f64)> = (0..self.pools.len())
            .map(|i| match &self.pools[i] {
                pool if pool.burst == 0.0 && pool.flow > 0.0 => {
                    let most = (volumes[i] / self.smoothing).min(self.multiplier * pool.flow);
                    (volumes[i], most.min(demand[i] - shares[i][0]))
                }
                _ => (0.0, 0.0),
            })
            .collect();
        for (i, given) in divide(left, &relaxed).into_iter().enumerate() {
            shares[i][1] += given;
            left -= given;
        }
        let free: Vec<(f64, f64)> = (0..self.pools.len())
            .map(|i| (self.pools[i].weight, demand[i] - shares[i][0] - shares[i][1]))
            .collect();
        for (i, given) in divide(left, &free).into_iter().enumerate() {
            shares[i][2] = given;
        }
        shares
    }

    /// `expected.csv` and `checks.json`: shares of the resource that is short, and volumes, which are told in
    /// cores whatever that is.
    fn expected(&self) -> (String, String) {
        let resource = self.resource;
        let mut csv = format!(
            "t_s,pool,demand_{resource},fair_share_{resource},strong_{resource},integral_{resource},free_{resource},accumulated_volume_cpu_s\n"
        );
        let cores = self.node.1 / self.node.0;
        let mut volumes: Vec<f64> = self.pools.iter().map(|pool| pool.volume).collect();
        let mut sums: Vec<[f64; 2]> = vec![[0.0; 2]; self.pools.len()];
        for second in 0..self.seconds {
            let shares = self.shares(second, &volumes);
            for (i, pool) in self.pools.iter().enumerate() {
                let [strong, integral, free] = shares[i];
                if second % 60 == 30 {
                    let _ = writeln!(
                        csv,
                        "{second},{},{:.3},{:.3},{strong:.3},{integral:.3},{free:.3},{:.3}",
                        pool.name,
                        self.demand(pool, second),
                        strong + integral + free,
                        volumes[i] * cores,
                    );
                }
                sums[i][0] += strong + integral + free;
                sums[i][1] += integral;
                let cap = (pool.flow * self.saturation).max(volumes[i]);
                volumes[i] = (volumes[i] + pool.flow - integral).clamp(0.0, cap);
            }
        }
        let ends = self.phases.iter().flat_map(|(_, from, to, _)| [*from, *to]);
        let changes: Vec<u64> = std::collections::BTreeSet::from_iter(ends.chain([0])).into_iter().collect();
        let part = 0.01 * self.total();
        let with_flow = || self.pools.iter().filter(|pool| pool.flow > 0.0);
        let volume = |pool: &Pool| {
            format!(r#""{}":{{"abs":{}}}"#, pool.name, 0.002 * pool.flow * self.saturation * cores)
        };
        let volume_tolerances: Vec<String> = with_flow().map(volume).collect();
        // Integrals of shares are told of cores only.
        let of_cores = |[fair, integral]: [f64; 2]| match resource {
            "cpu" => format!(r#""fair_share_cpu_s":{fair},"integral_cpu_s":{integral},"#),
            _ => String::new(),
        };
        // The minute in which the first jobs start weighs more in a shorter run.
        let tolerance = if whole() { 0.01 } else { 0.03 };
        let total = |i: usize| {
            let (name, volume) = (self.pools[i].name, volumes[i] * cores);
            let of_cores = of_cores(sums[i]);
            format!(r#""{name}":{{{of_cores}"final_volume_cpu_s":{volume},"rel_tol":{tolerance}}}"#)
        };
        let totals: Vec<String> = (0..self.pools.len()).map(total).collect();
        let integral =
            if resource == "cpu" { format!(r#""integral_cpu":{{"abs":{part}}},"#) } else { String::new() };
        let checks = format!(
            r#"{{"expected_series":"expected.csv","ignore_seconds_after_change":90,"change_points_s":{changes:?},
             "series_tolerances":{{"fair_share_{resource}":{{"abs":{part}}},{integral}
               "accumulated_volume_cpu_s":{{{}}}}},"max_share_of_samples_outside":0.005,"totals":{{{}}},
             "usage":{{"max_share_of_total_fair_share":0.03}},
             "guarantee_violation_after_starvation_timeout_cpu_s":{{"per_pool_max_share_of_guaranteed":0.03}}}}"#,
            volume_tolerances.join(","),
            totals.join(","),
        );
        (csv, checks)
    }

    fn scenario(&self) -> String {
        let pool = |pool: &Pool| {
            let amount = |x: f64| format!(r#"{{"{}":{x}}}"#, self.resource);
            let mut text = format!(r#""{}":{{"weight":{:?}"#, pool.name, pool.weight);
            if pool.strong > 0.0 {
                let _ = write!(text, r#","strong_guarantee_resources":{}"#, amount(pool.strong));
            }
            if pool.flow > 0.0 {
                let kind = if pool.burst > 0.0 { "burst" } else { "relaxed" };
                let _ = write!(
                    text,
                    r#","integral_guarantees":{{"guarantee_type":"{kind}","resource_flow":{}"#,
                    amount(pool.flow)
                );
                if pool.burst > 0.0 {
                    let _ = write!(text, r#","burst_guarantee_resources":{}"#, amount(pool.burst));
                }
                text.push('}');
            }
            text + "}"
        };
        let pools: Vec<String> = self.pools.iter().map(pool).collect();
        let volumes: Vec<String> = self
            .pools
            .iter()
            .filter(|pool| pool.volume > 0.0)
            .map(|pool| {
                format!(
                    r#""{}":{{"accumulated_resource_ratio_volume":{}}}"#,
                    pool.name,
                    pool.volume / self.total()
                )
            })
            .collect();
        let (units, cores) = self.node;
        let own =
            if self.resource == "cpu" { String::new() } else { format!(r#","{}":{units}"#, self.resource) };
        format!(
            r#"{{"format":"millpond-scenario/1","name":"{}","duration_ms":{},
             "cluster":{{"node_groups":[{{"name":"n","count":{},"resource_limits":{{"cpu":{cores},"memory":1099511627776,"user_slots":500{own}}}}}]}},
             "pool_trees":{{"default_tree":"physical","trees":{{"physical":{{"config":{{"default_parent_pool":"<Root>",
               "fair_share_starvation_timeout":30000,"fair_share_starvation_tolerance":0.8,"preemption_satisfaction_threshold":1.0,
               "preemptive_scheduling_backoff":5000,"integral_guarantees":{{"smooth_period":{},
               "pool_capacity_saturation_period":{},"relaxed_share_multiplier_limit":{}}}}},"pools":{{{}}}}}}}}},
             "scheduler_config":{{"fair_share_update_period":1000,"node_heartbeat_period":5000,
               "min_spare_allocation_resources_on_node":{{"user_slots":1,"cpu":1,"memory":268435456}}}},
             "initial_state":{{"physical":{{"pools":{{{}}}}}}},
             "workload":["workload.jsonl"],"output":{{"pool_series_period_ms":60000,"pool_series_shift_ms":30000,"allocations":false}}}}"#,
            self.name,
            self.seconds * 1000,
            self.nodes,
            self.smoothing * 1000.0,
            self.saturation * 1000.0,
            self.multiplier,
            pools.join(","),
            volumes.join(","),
        )
    }

    fn workload(&self) -> String {
        let mut phases = self.phases.clone();
        phases.sort_by_key(|(_, from, ..)| *from);
        let (units, cores) = self.job;
        let own =
            if self.resource == "cpu" { String::new() } else { format!(r#","{}":{units}"#, self.resource) };
        let lines = phases.iter().enumerate().map(|(i, (pool, from, to, jobs))| {
            format!(
                r#"{{"id":"op-{i}","at":{},"until":{},"user":"u","pool":"{pool}","tasks":[{{"name":"t","job_count":{jobs},"restart_completed_jobs":true,"cpu":{cores}{own},"duration":{}}}]}}"#,
                from * 1000,
                to * 1000,
                self.job_seconds * 1000,
            ) + "\n"
        });
        lines.collect()
    }

    /// The first three hours, unless whole simulations are wanted.
    fn beginning(self) -> Setting {
        let seconds = if whole() { self.seconds } else { self.seconds.min(3 * 3600) };
        let phases = self.phases.into_iter().filter(|(_, from, ..)| *from < seconds);
        Setting { seconds, phases: phases.collect(), ..self }
    }

    fn holds(&self) {
        let folder = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        let (csv, checks) = self.expected();
        write("scenario.json", &self.scenario());
        write("workload.jsonl", &self.workload());
        write("expected.csv", &csv);
        write("checks.json", &checks);
        let scenario =
            Scenario::load(&folder.path().join("scenario.json"), &[]).unwrap_or_else(|e| panic!("{e}"));
        let out = folder.path().join("out");
        let ran = sim::run(&scenario, &out, Options::default(), &mut |_| true, &mut |_| Map::new());
        let ran = ran.unwrap_or_else(|e| panic!("{e}"));
        assert!(ran.violations.is_empty(), "{:?}", ran.violations);
        self.compare(&out, &folder.path().join("checks.json"));
    }

    fn compare(&self, out: &Path, checks: &Path) {
        let found = sim::check::check(out, checks).unwrap_or_else(|e| panic!("{e}"));
        let broken: Vec<_> = found.iter().filter(|comparison| !comparison.holds).collect();
        assert!(broken.is_empty(), "{}: {broken:#?}", self.name);
        // Series and totals of each pool, and what is said of all.
        let least = if self.resource == "cpu" { 5 } else { 2 };
        assert!(found.len() > least * self.pools.len(), "{found:?}");
        // Curves that never bend prove nothing.
        let (mut integral, mut empty) = (0u64, 0u64);
        let mut volumes: Vec<f64> = self.pools.iter().map(|pool| pool.volume).collect();
        for second in 0..self.seconds {
            let shares = self.shares(second, &volumes);
            for (i, pool) in self.pools.iter().enumerate().filter(|(_, pool)| pool.flow > 0.0) {
                integral += u64::from(shares[i][1] > pool.flow * 1.1);
                empty += u64::from(volumes[i] < 1.2 * pool.flow * self.smoothing && shares[i][1] > 0.0);
                let cap = (pool.flow * self.saturation).max(volumes[i]);
                volumes[i] = (volumes[i] + pool.flow - shares[i][1]).clamp(0.0, cap);
            }
        }
        // A volume may be spent only later than in the beginning.
        assert!(integral > 300 && (empty > 300 || !whole()), "{}: {integral} {empty}", self.name);
    }
}

/// A burst that outlives its volume, beside one who always wants more and weighs twice as much.
fn drained() -> Setting {
    Setting {
        name: "drained",
        seconds: 3600,
        nodes: 5,
        node: (16.0, 16.0),
        job: (2.0, 2.0),
        job_seconds: 60,
        resource: "cpu",
        smoothing: 30.0,
        saturation: 7200.0,
        multiplier: 3.0,
        pools: vec![
            Pool { name: "b", burst: 40.0, flow: 8.0, volume: 20_000.0, ..PLAIN },
            Pool { name: "w", weight: 2.0, strong: 20.0, ..PLAIN },
        ],
        phases: vec![("w", 0, 3600, 40), ("b", 600, 2400, 40), ("b", 3000, 3600, 10)],
    }
}

#[test]
fn a_burst_outlives_its_volume() {
    drained().holds();
}

macro_rules! long_runs {
    ($($name:ident => $setting:expr),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                $setting.beginning().holds();
            }
        )*
    };
}

long_runs! {
    // Longer smoothing, a smaller cap that is reached again, another burst pool beside it.
    two_bursts => Setting {
        name: "two-bursts",
        seconds: 43_200,
        nodes: 30,
        node: (24.0, 24.0),
        job: (3.0, 3.0),
        job_seconds: 240,
        resource: "cpu",
        smoothing: 120.0,
        saturation: 10_800.0,
        multiplier: 3.0,
        pools: vec![
            Pool { name: "b1", burst: 300.0, flow: 90.0, volume: 972_000.0, ..PLAIN },
            Pool { name: "b2", burst: 240.0, flow: 60.0, volume: 100_000.0, ..PLAIN },
            Pool { name: "rest", weight: 3.0, strong: 120.0, ..PLAIN },
        ],
        phases: vec![
            ("rest", 0, 43_200, 240),
            ("b1", 1800, 12_600, 120),
            ("b2", 3600, 9000, 100),
            ("b1", 27_000, 30_600, 60),
            ("b2", 36_000, 41_400, 30),
        ],
    },
    // A multiplier of two, flows and volumes as unequal as can be.
    relaxed_and_unequal => Setting {
        name: "relaxed-and-unequal",
        seconds: 43_200,
        nodes: 40,
        node: (15.0, 15.0),
        job: (5.0, 5.0),
        job_seconds: 200,
        resource: "cpu",
        smoothing: 60.0,
        saturation: 43_200.0,
        multiplier: 2.0,
        pools: vec![
            Pool { name: "prod", strong: 250.0, ..PLAIN },
            Pool { name: "r1", flow: 150.0, volume: 1_500_000.0, ..PLAIN },
            Pool { name: "r2", weight: 2.0, flow: 50.0, volume: 2_160_000.0, ..PLAIN },
        ],
        phases: vec![
            ("prod", 0, 18_000, 60),
            ("r1", 0, 36_000, 90),
            ("r2", 5400, 43_200, 80),
            ("prod", 25_200, 32_400, 50),
        ],
    },
    // Strong and burst in one pool, and a relaxed one that gets what both leave.
    strong_burst_and_relaxed => Setting {
        name: "strong-burst-and-relaxed",
        seconds: 36_000,
        nodes: 20,
        node: (32.0, 32.0),
        job: (4.0, 4.0),
        job_seconds: 180,
        resource: "cpu",
        smoothing: 90.0,
        saturation: 21_600.0,
        multiplier: 3.0,
        pools: vec![
            Pool { name: "p", strong: 160.0, burst: 280.0, flow: 40.0, volume: 864_000.0, ..PLAIN },
            Pool { name: "r", flow: 120.0, volume: 600_000.0, ..PLAIN },
            Pool { name: "others", weight: 4.0, ..PLAIN },
        ],
        phases: vec![
            ("others", 0, 36_000, 160),
            ("r", 900, 30_000, 100),
            ("p", 3600, 7200, 30),
            ("p", 9000, 14_400, 120),
            ("p", 20_000, 25_000, 70),
        ],
    },
    // Devices are what is short, and guarantees are told in them. Nothing is left by weight for pools with a
    // flow: how that is shared by pools that need other resources, too, is more than this model knows.
    devices_dominate => Setting {
        name: "devices",
        seconds: 28_800,
        nodes: 25,
        node: (8.0, 64.0),
        job: (1.0, 5.0),
        job_seconds: 300,
        resource: "gpu",
        smoothing: 60.0,
        saturation: 14_400.0,
        multiplier: 3.0,
        pools: vec![
            Pool { name: "b", burst: 120.0, flow: 30.0, volume: 432_000.0, ..PLAIN },
            Pool { name: "r", flow: 40.0, volume: 80_000.0, ..PLAIN },
            Pool { name: "others", weight: 1e6, ..PLAIN },
        ],
        phases: vec![
            ("others", 0, 28_800, 200),
            ("r", 1200, 28_800, 150),
            ("b", 3600, 10_800, 180),
            ("b", 20_000, 26_000, 60),
        ],
    },
}
