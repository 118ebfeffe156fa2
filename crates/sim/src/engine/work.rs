//! What happens to a job, by the workload: how long it runs, what it uses, how it fails. All of it belongs
//! to the unit of work and not to the attempt, except failures (simulator.md 5.4, 7).

use super::cpu::Figures;
use crate::random::{Draw, Kind, name_hash};
use crate::scenario::{CpuModel, MemoryModel, NodeGroup, Scenario};
use crate::workload::{CpuUsage, Curve, MemoryCurve, Operation, Task};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::{JobId, JobIdentity, OperationId, Span, Time};
use wire::StartJob;

/// Why a job fails that uses more than its limit.
pub(super) const OVER_LIMIT: &str = "Memory limit exceeded";

/// An operation that was accepted.
pub(super) struct Work {
    pub operation: Arc<Operation>,
    /// Hashes of `<operation>/<task>`, for random numbers.
    hashes: Vec<u64>,
    /// Units that are done, by task; kept where tasks wait for others.
    done: Vec<u64>,
    /// Since when each task may have jobs; none: it waits for others.
    pub ready: Vec<Option<Time>>,
    /// When jobs arrive next, as far as that is planned.
    pub planned: Option<Time>,
}

impl Work {
    fn new(operation: Arc<Operation>, now: Time) -> Work {
        let hash = |task: &Task| name_hash(&format!("{}/{}", operation.id, task.origin(0).0));
        Work {
            hashes: operation.tasks.iter().map(hash).collect(),
            done: vec![0; operation.tasks.len()],
            ready: operation.tasks.iter().map(|task| task.after.is_empty().then_some(now)).collect(),
            planned: None,
            operation,
        }
    }

    /// Tasks that may have jobs.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.operation
            .tasks
            .iter()
            .zip(&self.ready)
            .filter(|(_, ready)| ready.is_some())
            .map(|(task, _)| task)
    }

    /// A unit is done. True: tasks were waiting for that.
    fn unit_done(&mut self, task: &str, now: Time) -> bool {
        let tasks = &self.operation.tasks;
        if let Some(number) = tasks.iter().position(|t| t.name == task) {
            self.done[number] += 1;
        }
        let is_done = |number: &usize| self.done[*number] >= tasks[*number].job_count;
        let waiting = |(_, ready): &(&Task, &mut Option<Time>)| ready.is_none();
        let mut woken = false;
        for (task, ready) in tasks.iter().zip(&mut self.ready).filter(waiting) {
            if task.after.iter().all(is_done) {
                *ready = Some(now);
                woken = true;
            }
        }
        woken
    }
}

/// See the module page.
pub(super) struct Physics {
    seed: u64,
    memory: MemoryModel,
    /// Jobs need curves of their CPU.
    curves: bool,
    groups: Vec<NodeGroup>,
    /// Unfinished operations.
    pub works: BTreeMap<OperationId, Work>,
    /// Parts of units that are left after an interruption.
    rests: BTreeMap<(OperationId, u32, u32), f64>,
    /// Units done of operations whose submission nobody has answered yet.
    early: BTreeMap<OperationId, Vec<String>>,
    proxy_estimate: i64,
    pub told: Told,
}

/// What the log does not tell of jobs that ended, until their ends are in it.
#[derive(Default)]
pub struct Told {
    /// Jobs that stopped because they were asked to: one that was asked and came to its own end before is
    /// done, and the log does not tell them apart.
    pub yielded: BTreeSet<JobId>,
    /// What their CPU came to.
    pub cpu: BTreeMap<JobId, Figures>,
    /// Of their proxies: bytes reserved, and in use.
    pub proxies: BTreeMap<JobId, (i64, i64)>,
    /// When tasks that waited for others could first run.
    pub ready: BTreeMap<(OperationId, String), Time>,
    /// When jobs were asked to stop.
    pub asked: BTreeMap<JobId, Time>,
    /// How long their units run at full speed.
    pub full: BTreeMap<JobId, Span>,
}

/// All that is decided of an attempt when it starts.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    unit: (OperationId, u32, u32),
    pub start_delay: Span,
    /// At full speed, from the start of the user's process to its own end.
    pub runs_for: Span,
    /// Of the whole unit.
    full: Span,
    /// Why it fails at the end of that.
    pub failure: Option<&'static str>,
    /// Cores in use, on average.
    pub cpu_used: f64,
    /// The same over the work, if the CPU is modelled.
    pub curve: Option<Arc<Curve>>,
    /// Bytes at the peak.
    pub peak: i64,
    pub proxy_memory: i64,
    /// Steps of its memory that the node has to know, the next one last: when, and bytes with the proxy.
    pub steps: Vec<(Span, i64)>,
    pub interrupt_time: Span,
}

impl Physics {
    pub fn new(scenario: &Scenario, proxy_estimate: i64) -> Physics {
        Physics {
            seed: scenario.seed,
            memory: scenario.models.memory,
            curves: scenario.models.cpu != CpuModel::Off,
            groups: scenario.groups.clone(),
            works: BTreeMap::new(),
            rests: BTreeMap::new(),
            early: BTreeMap::new(),
            proxy_estimate,
            told: Told::default(),
        }
    }

    /// An operation was accepted.
    pub fn add(&mut self, id: OperationId, operation: Arc<Operation>, now: Time) {
        self.works.insert(id, Work::new(operation, now));
        for task in self.early.remove(&id).into_iter().flatten() {
            self.unit_done(id, &task, now);
        }
    }

    /// A unit is done. True: tasks were waiting for that, and may have jobs now.
    pub fn unit_done(&mut self, id: OperationId, task: &str, now: Time) -> bool {
        let Some(work) = self.works.get_mut(&id) else {
            self.early.entry(id).or_default().push(task.to_owned());
            return false;
        };
        let woken = work.ready.contains(&None) && work.unit_done(task, now);
        if woken {
            let tasks = work.operation.tasks.iter().zip(&work.ready);
            let begins = tasks.filter(|(task, ready)| !task.after.is_empty() && **ready == Some(now));
            self.told.ready.extend(begins.map(|(task, _)| ((id, task.name.clone()), now)));
        }
        woken
    }

    /// Unknown: its submission has not been answered.
    pub fn is_gang(&self, id: OperationId) -> Option<bool> {
        self.works.get(&id).map(|work| work.operation.tasks.iter().any(|t| t.gang))
    }

    pub fn remove(&mut self, id: OperationId) {
        self.works.remove(&id);
        self.early.remove(&id);
        let told = self.told.ready.range((id, String::new())..).map(|(key, _)| key.clone());
        let told: Vec<_> = told.take_while(|(of, _)| *of == id).collect();
        for key in told {
            self.told.ready.remove(&key);
        }
        let rests = self.rests.range((id, 0, 0)..=(id, u32::MAX, u32::MAX));
        let gone: Vec<_> = rests.map(|(unit, _)| *unit).collect();
        for unit in gone {
            self.rests.remove(&unit);
        }
    }

    fn task(&self, identity: &JobIdentity) -> Option<(&Task, u64, u32)> {
        let work = self.works.get(&identity.operation_id)?;
        let number = work.operation.tasks.iter().position(|t| *t.name == *identity.task)?;
        Some((&work.operation.tasks[number], work.hashes[number], number as u32))
    }

    /// The fate of an attempt on a node of a group.
    pub fn fate(&mut self, start: &StartJob, group: usize, node: &str) -> Fate {
        let identity = &start.identity;
        let group = &self.groups[group];
        let delay = group.job_start_delay.draw(
            &mut Draw::new(self.seed, Kind::StartDelay, name_hash(node), identity.job_index),
            identity.job_index,
        );
        let Some((task, hash, number)) = self.task(identity) else {
            // An operation that ended while the order was on its way: nothing of it will be counted.
            return Fate::of_nobody(identity);
        };
        let index = task.origin(identity.cookie).1;
        let draw = |kind, index| Draw::new(self.seed, kind, hash, index);
        let explicit = task.explicit.get(identity.cookie as usize);
        let ms = match explicit {
            Some(job) => job.duration_ms,
            None => task.duration.draw(&mut draw(Kind::Duration, index), index),
        };
        let unit = (identity.operation_id, number, identity.cookie);
        let rest = self.rests.get(&unit).copied().unwrap_or(1.0);
        let full = ms * 1000.0 / group.cpu_speed;
        let mut runs_for = full * rest;
        let mut failure = None;
        // Attempts are counted by task: parts of one have different luck.
        let attempt =
            task.part.as_ref().map_or(0, |part| u64::from(part.jobs[0]) << 32) + identity.task_job_index;
        let mut luck = draw(Kind::Failure, attempt);
        if task.fail_probability > 0.0 && luck.unit() < task.fail_probability {
            let part = match &task.fail_after {
                Some(dist) => dist.draw(&mut luck, index).min(1.0),
                None => luck.unit(),
            };
            runs_for *= part;
            failure = Some("The workload lets this attempt fail");
        }
        let even = match (explicit, &task.cpu_usage) {
            (Some(job), None) => Some(job.cpu),
            (_, Some(CpuUsage::Even(dist))) if explicit.is_none() => {
                Some(dist.draw(&mut draw(Kind::Cpu, index), index))
            }
            (Some(job), Some(CpuUsage::Even(_))) => Some(job.cpu),
            (_, Some(CpuUsage::Curve(_) | CpuUsage::Curves(_))) => None,
            (_, _) => Some(task.cpu.as_f64()),
        };
        let curve = match (&task.cpu_usage, even) {
            (_, Some(cores)) => self.curves.then(|| Arc::new(Curve::constant(cores))),
            (Some(CpuUsage::Curve(curve)), None) => Some(curve.clone()),
            (Some(CpuUsage::Curves(all)), None) => Some(all[(index % all.len() as u64) as usize].clone()),
            _ => None,
        };
        let seconds = runs_for / 1e6;
        let cpu = even.or(curve.as_ref().map(|curve| curve.mean(seconds))).unwrap_or_default();
        let (mut peak, mut steps, mut proxy_memory) = (0, Vec::new(), 0);
        if self.memory != MemoryModel::Off {
            let part = match explicit {
                Some(job) => job.peak,
                None => task.memory_usage.draw(&mut draw(Kind::Memory, index), index),
            };
            peak = (part * task.memory as f64) as i64;
            proxy_memory = match &task.proxy {
                Some(dist) => dist.draw(&mut draw(Kind::ProxyMemory, index), index) as i64,
                None => self.proxy_estimate,
            };
            let at = 0.5 * draw(Kind::MemoryStep, index).unit();
            let curve = match self.memory {
                MemoryModel::Curve => &task.memory_curve,
                _ => &MemoryCurve::Peak,
            };
            // Below the reserve nobody would notice it.
            let mut noticed = start.resources.memory;
            for (at, part) in curve.steps(at) {
                let (at, bytes) = (full * at, (peak as f64 * part) as i64);
                if at >= runs_for {
                    break;
                }
                if bytes > task.memory {
                    // The proxy sees it and ends the job (5.6, rule 1).
                    runs_for = at;
                    failure = Some(OVER_LIMIT);
                    break;
                }
                if bytes + proxy_memory > noticed {
                    noticed = bytes + proxy_memory;
                    steps.push((micros(at), noticed));
                }
            }
            steps.reverse();
        }
        let interrupt = task.interrupt_time.draw(&mut draw(Kind::Interruption, attempt), index);
        if self.memory != MemoryModel::Off {
            let reserved = start.description.job_proxy_memory_reserve;
            self.told.proxies.insert(identity.job_id, (reserved, proxy_memory));
        }
        self.told.full.insert(identity.job_id, micros(full));
        Fate {
            unit,
            start_delay: micros(delay * 1000.0),
            runs_for: micros(runs_for.max(1.0)),
            full: micros(full.max(1.0)),
            failure,
            cpu_used: cpu,
            curve: curve.filter(|_| self.curves),
            peak,
            proxy_memory,
            steps,
            interrupt_time: micros(interrupt * 1000.0),
        }
    }

    /// A unit was interrupted after this long: the next run does the rest.
    pub fn keep_rest(&mut self, fate: &Fate, done: Span) {
        if self.works.contains_key(&fate.unit.0) {
            let before = self.rests.get(&fate.unit).copied().unwrap_or(1.0);
            let part = done.as_micros() as f64 / fate.full.as_micros() as f64;
            self.rests.insert(fate.unit, (before - part).max(0.0));
        }
    }

    /// The unit has completed: its next run, if there is one, is whole.
    pub fn forget_rest(&mut self, operation: OperationId, task: &str, cookie: u32) {
        if self.rests.is_empty() {
            return;
        }
        let work = self.works.get(&operation);
        if let Some(number) = work.and_then(|w| w.operation.tasks.iter().position(|t| t.name == task)) {
            self.rests.remove(&(operation, number as u32, cookie));
        }
    }
}

impl Fate {
    fn of_nobody(identity: &JobIdentity) -> Fate {
        Fate {
            unit: (identity.operation_id, 0, identity.cookie),
            start_delay: Span::ZERO,
            runs_for: Span::from_secs(1),
            full: Span::from_secs(1),
            failure: None,
            cpu_used: 0.0,
            curve: None,
            peak: 0,
            proxy_memory: 0,
            steps: Vec::new(),
            interrupt_time: Span::ZERO,
        }
    }
}

fn micros(us: f64) -> Span {
    Span::from_micros(us.round().clamp(0.0, 1e17) as u64)
}
