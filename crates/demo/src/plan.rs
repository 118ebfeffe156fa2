//! The jobs of the log with time and sizes of this machine. Pure.
//!
//! * **Arrivals**: the six hours of the window become the first part of the run, linearly: bursts stay
//!   bursts.
//! * **Processors**: a job of P processors becomes an operation of P jobs with one core each, at most
//!   as many as the cluster has.
//! * **Run times**: divided by one number for all, chosen so that the window offers the cluster as
//!   much work as [`OFFERED_LOAD`] says; then clipped. The grid of the log had many more cores than
//!   the cluster here, so this number is larger than that of the arrivals.
//! * **Memory**: multiplied by one number for all, such that the largest job of the log on every core
//!   at once fits what the demo may use of this machine.
//! * **CPU**: the cluster advertises more cores than the machine has. A job burns the fraction of a
//!   real core that a core of the cluster stands for, with a quarter left to the cluster itself.

use std::time::Duration;

use anyhow::Context;

use crate::pools::{self, Pool};
use crate::swf::LoggedJob;

/// Part of the run in which jobs arrive; the rest is for the last ones to end.
const ARRIVALS: f64 = 0.72;
/// Work offered while jobs arrive, as a part of what the cluster can do in that time.
const OFFERED_LOAD: f64 = 0.9;
/// Shortest run time in seconds; the log has jobs of 0.
const SHORTEST: f64 = 0.05;
/// Longest run time as a part of the run: a job of days must not outlast the demo.
const LONGEST: f64 = 1.0 / 24.0;
/// Least memory of a job: the program itself needs more.
const LEAST_MEMORY: f64 = (64 << 10) as f64;
/// Least memory limit of a job: room for the shell and the program.
const LEAST_LIMIT: u64 = 128 << 20;
/// Part of the machine that the jobs burn when all cores of the cluster are in use.
const CPU_FOR_JOBS: f64 = 0.75;

/// The cluster that the demo makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Exec nodes.
    pub nodes: u16,
    /// Cores that each advertises.
    pub cores_per_node: u16,
    /// User slots that each advertises.
    pub slots_per_node: u16,
    /// Memory that each advertises.
    pub memory_per_node: u64,
}

impl Shape {
    /// Two nodes of eight cores, on whatever machine: the same demo everywhere.
    pub const DEMO: Shape =
        Shape { nodes: 2, cores_per_node: 8, slots_per_node: 16, memory_per_node: 4 << 30 };

    /// Cores of the cluster.
    pub fn cores(&self) -> f64 {
        f64::from(self.nodes) * f64::from(self.cores_per_node)
    }

    /// `--node-resources` of `millpond up`.
    pub fn node_resources(&self) -> String {
        format!(
            "cpu={},memory={}MiB,user_slots={}",
            self.cores_per_node,
            self.memory_per_node >> 20,
            self.slots_per_node
        )
    }
}

/// What the machine has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Cores.
    pub cores: f64,
    /// Memory that is free, in bytes.
    pub free_memory: u64,
}

/// An operation of the demo: one job of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The job of the log.
    pub logged: LoggedJob,
    /// Where it goes.
    pub pool: &'static Pool,
    /// When it is submitted, from the start of the replay.
    pub at: Duration,
    /// Jobs of the operation, one core each.
    pub job_count: u64,
    /// How long each runs.
    pub run: Duration,
    /// What each holds, in bytes.
    pub memory: u64,
    /// `memory_limit` of each.
    pub memory_limit: u64,
}

/// The whole replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In the order of submission.
    pub operations: Vec<Planned>,
    /// Seconds of the log in one second of the demo, for arrivals.
    pub arrival_scale: f64,
    /// The same for run times.
    pub run_scale: f64,
    /// Bytes of the log in one byte of the demo.
    pub memory_scale: f64,
    /// Fraction of a real core that a job burns.
    pub cpu: f64,
}

impl Plan {
    /// Jobs of all operations.
    pub fn job_count(&self) -> u64 {
        self.operations.iter().map(|operation| operation.job_count).sum()
    }
}

/// Scales the jobs of a window that begins at `window_start` and is `window_length` seconds long to a
/// run of about `seconds`.
pub fn plan(
    jobs: &[LoggedJob],
    (window_start, window_length): (u64, u64),
    seconds: u64,
    shape: &Shape,
    machine: &Machine,
) -> anyhow::Result<Plan> {
    let arrivals = seconds as f64 * ARRIVALS;
    let arrival_scale = window_length as f64 / arrivals;
    let longest = seconds as f64 * LONGEST;
    let run_scale = run_scale(jobs, shape.cores(), arrivals, longest);
    let largest = jobs.iter().map(|job| job.memory).max().context("the log has no jobs")? << 10;
    // Never more than 2 GiB, or than a quarter of what is free, with a job on every core.
    let for_jobs = (machine.free_memory / 4).min(2 << 30) as f64;
    let memory_scale = (largest as f64 * shape.cores() / for_jobs).max(1.0);
    let operations = jobs
        .iter()
        .map(|logged| {
            let pool = pools::of_queue(logged.queue)
                .with_context(|| format!("job {}: queue {} has no pool", logged.number, logged.queue))?;
            let memory = ((logged.memory << 10) as f64 / memory_scale).max(LEAST_MEMORY) as u64;
            let after = logged.submit.saturating_sub(window_start) as f64;
            Ok(Planned {
                logged: *logged,
                pool,
                at: Duration::from_secs_f64(after / arrival_scale),
                job_count: cores_of(logged, shape.cores()),
                run: Duration::from_secs_f64(run_seconds(logged, run_scale, longest)),
                memory,
                memory_limit: (memory + memory / 2).next_power_of_two().max(LEAST_LIMIT),
            })
        })
        .collect::<anyhow::Result<_>>()?;
    let cpu = (CPU_FOR_JOBS * machine.cores / shape.cores()).min(1.0);
    Ok(Plan { operations, arrival_scale, run_scale, memory_scale, cpu })
}

fn cores_of(job: &LoggedJob, cores: f64) -> u64 {
    job.processors.min(cores as u64)
}

fn run_seconds(job: &LoggedJob, scale: f64, longest: f64) -> f64 {
    (job.run as f64 / scale).min(longest).max(SHORTEST)
}

/// The number that makes the window offer the wanted load. Work falls as the number grows, so it is
/// found by halving; where no number reaches the load, every job is as long as it may be.
fn run_scale(jobs: &[LoggedJob], cores: f64, arrivals: f64, longest: f64) -> f64 {
    let wanted = OFFERED_LOAD * cores * arrivals;
    let work = |scale: f64| -> f64 {
        jobs.iter().map(|job| cores_of(job, cores) as f64 * run_seconds(job, scale, longest)).sum()
    };
    let (mut low, mut high) = (1.0f64, 1e9f64);
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        if work(middle) > wanted { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::WINDOW_TIMES;

    const MACHINE: Machine = Machine { cores: 2.0, free_memory: 16 << 30 };

    fn demo(seconds: u64, machine: Machine) -> Plan {
        let jobs = crate::swf::parse(crate::WINDOW).expect("window");
        plan(&jobs, WINDOW_TIMES, seconds, &Shape::DEMO, &machine).expect("plan")
    }

    #[test]
    fn the_window_becomes_two_minutes() {
        let plan = demo(120, MACHINE);
        assert_eq!(plan.operations.len(), 190);
        assert!(plan.operations.is_sorted_by_key(|operation| operation.at));
        assert!(plan.operations.iter().all(|o| o.at < Duration::from_secs_f64(120.0 * ARRIVALS)));
        assert!(plan.operations.iter().all(|o| (0.05..=5.0).contains(&o.run.as_secs_f64())));
        assert!(plan.operations.iter().all(|o| (1..=16).contains(&o.job_count)));
        let work: f64 = plan.operations.iter().map(|o| o.job_count as f64 * o.run.as_secs_f64()).sum();
        let can = 16.0 * 120.0 * ARRIVALS;
        assert!((work / can - OFFERED_LOAD).abs() < 0.01, "{work} of {can}");
        assert!((plan.arrival_scale - 250.0).abs() < 1e-9, "{}", plan.arrival_scale);
        assert!((plan.cpu - 0.09375).abs() < 1e-9, "{}", plan.cpu);
    }

    #[test]
    fn order_of_run_times_and_memory_is_that_of_the_log() {
        let plan = demo(120, MACHINE);
        for a in &plan.operations {
            for b in &plan.operations {
                assert!(a.logged.run < b.logged.run || a.run >= b.run);
                assert!(a.logged.memory < b.logged.memory || a.memory >= b.memory);
            }
        }
    }

    #[test]
    fn memory_fits_the_machine_and_the_nodes() {
        for free_memory in [256 << 20, 2 << 30, 16 << 30, 512 << 30] {
            let plan = demo(120, Machine { cores: 2.0, free_memory });
            let largest = plan.operations.iter().map(|o| o.memory).max().expect("some");
            assert!(largest * 16 <= (free_memory / 4).min(2 << 30) + (16 << 20), "{largest}");
            for operation in &plan.operations {
                assert!(operation.memory < operation.memory_limit);
                assert!(
                    operation.memory_limit * u64::from(Shape::DEMO.cores_per_node)
                        <= Shape::DEMO.memory_per_node
                );
            }
        }
    }

    #[test]
    fn a_large_machine_burns_no_more_than_a_core_per_job() {
        assert_eq!(demo(120, Machine { cores: 256.0, free_memory: 1 << 40 }).cpu, 1.0);
    }

    #[test]
    fn other_lengths_scale() {
        let (short, long) = (demo(60, MACHINE), demo(240, MACHINE));
        assert!(long.operations[100].at.as_secs_f64() / short.operations[100].at.as_secs_f64() > 3.99);
        assert!(long.run_scale < short.run_scale);
    }
}
