//! What the event log tells, as rows: attempts of jobs, operations, and sums of both.

use super::cpu::Figures;
use super::usage::Usage;
use super::work::Told;
use crate::error::SimError;
use crate::output::{Cell, Column, Sink, int, num, text as word};
use crate::workload::Operation;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{JobId, OperationId, Span, Time};
use yson::{Map, Value};

/// Columns of `operations.csv`.
pub const OPERATIONS: &[Column] = &[
    word("id"),
    word("tree"),
    word("pool"),
    word("user"),
    word("type"),
    word("state"),
    int("at_ms"),
    int("pending_ms"),
    int("first_allocation_ms"),
    int("finish_ms"),
    int("job_count"),
    int("completed"),
    int("failed"),
    int("aborted"),
    int("preempted_job_count"),
    int("interrupted"),
    num("preempted_cpu_s"),
    int("jobs_total_duration_ms"),
    int("job_max_duration_ms"),
    num("cpu_s"),
    int("starving_ms"),
];

/// Columns of `allocations.csv`.
pub const ALLOCATIONS: &[Column] = &[
    word("operation"),
    word("task"),
    int("job_index"),
    int("attempt"),
    word("node"),
    int("ordered_ms"),
    int("start_ms"),
    int("end_ms"),
    word("outcome"),
    word("reason"),
    word("preempted_for"),
    num("cpu"),
    int("memory_limit"),
    int("memory_reserve"),
    int("memory_peak"),
    num("cpu_limit_mean"),
    num("cpu_used_mean"),
    int("lost_ms"),
];

/// An operation on its way.
pub struct Life {
    pub operation: Arc<Operation>,
    at: Time,
    running_since: Option<Time>,
    first_allocation: Option<Time>,
    counts: Attempts,
    tree: String,
    pool: String,
    starving_since: Option<Time>,
    starving: Span,
    /// Attempts so far of units that have not completed.
    attempts: BTreeMap<(String, u64), u32>,
}

/// Sums over attempts.
#[derive(Clone, Copy, Default, Debug)]
pub struct Attempts {
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    pub aborted: u64,
    pub preempted: u64,
    pub interrupted: u64,
    pub overdrafted: u64,
    pub node_lost: u64,
    pub cpu_s: f64,
    pub preempted_cpu_s: f64,
    pub lost_cpu_s: f64,
    pub total_ms: u64,
    pub longest_ms: u64,
}

/// An attempt on its way.
pub(super) struct Attempt {
    operation: OperationId,
    task: String,
    cookie: u64,
    /// Number of the start in its task.
    index: u64,
    number: u32,
    /// Tree and pool.
    place: (String, String),
    node: String,
    ordered: Time,
    cpu: f64,
    pub(super) reserve: i64,
}

/// See the module page.
pub struct Ledger {
    start: Time,
    lives: BTreeMap<OperationId, Life>,
    attempts: BTreeMap<JobId, Attempt>,
    pub total: Attempts,
    pub states: BTreeMap<&'static str, u64>,
    pub reasons: BTreeMap<String, u64>,
    pub waits_ms: Vec<u64>,
    pub use_of: Usage,
    /// Allocations of now by tree and pool, those of operations directly in it.
    pub by_pool: BTreeMap<(String, String), i64>,
    /// Operations that have ended since somebody asked.
    /// With the number of units, if it completed.
    pub ended: Vec<(OperationId, Option<u64>)>,
    /// Operations that ended before their submission was answered.
    early: BTreeMap<OperationId, (Time, &'static str)>,
    /// Units that completed since somebody asked.
    pub completed: Vec<(OperationId, String, u64)>,
}

fn text<'a>(event: &'a Map, key: &str) -> &'a str {
    event.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn time(event: &Map, key: &str) -> Option<Time> {
    Time::parse(event.get(key)?.as_str()?)
}

fn id<T: std::str::FromStr>(event: &Map, key: &str) -> Option<T> {
    text(event, key).parse().ok()
}

impl Ledger {
    pub fn new(start: Time) -> Ledger {
        Ledger {
            start,
            lives: BTreeMap::new(),
            attempts: BTreeMap::new(),
            total: Attempts::default(),
            states: BTreeMap::new(),
            reasons: BTreeMap::new(),
            waits_ms: Vec::new(),
            by_pool: BTreeMap::new(),
            use_of: Usage::default(),
            ended: Vec::new(),
            early: BTreeMap::new(),
            completed: Vec::new(),
        }
    }

    /// An operation was accepted.
    pub fn accepted(
        &mut self,
        id: OperationId,
        operation: Arc<Operation>,
        at: Time,
        sink: &mut Sink,
    ) -> Result<(), SimError> {
        let life = Life {
            operation,
            at,
            running_since: None,
            first_allocation: None,
            counts: Attempts::default(),
            tree: String::new(),
            pool: String::new(),
            starving_since: None,
            starving: Span::ZERO,
            attempts: BTreeMap::new(),
        };
        self.lives.insert(id, life);
        match self.early.remove(&id) {
            Some((end, state)) => self.end(id, end, state, sink),
            None => Ok(()),
        }
    }

    /// Unfinished operations.
    pub fn unfinished(&self) -> usize {
        self.lives.len()
    }

    /// Jobs of which no end is known.
    pub fn running(&self) -> usize {
        self.attempts.len()
    }

    fn ms(&self, at: Time) -> Cell {
        Cell::Int(at.since(self.start).as_millis() as i64)
    }

    /// An event of the log.
    pub fn hear(&mut self, event: &Map, told: &mut Told, sink: &mut Sink) -> Result<(), SimError> {
        let at = time(event, "time").unwrap_or(self.start);
        match text(event, "event") {
            // The start of a job is not durable: the log may know it only from the next life of the server.
            "job_started" | "job_adopted" => self.job_started(event, at),
            "job_completed" => self.job_ended(event, at, "completed", told, sink)?,
            "job_failed" => self.job_ended(event, at, "failed", told, sink)?,
            "job_aborted" => self.job_ended(event, at, "aborted", told, sink)?,
            "operation_materialized" => {
                if let Some(life) = id(event, "operation_id").and_then(|id| self.lives.get_mut(&id)) {
                    life.running_since.get_or_insert(at);
                }
            }
            "operation_starvation_started" => {
                if let Some(life) = id(event, "operation_id").and_then(|id| self.lives.get_mut(&id)) {
                    life.starving_since = Some(at);
                }
            }
            "operation_starvation_finished" => {
                if let Some(life) = id(event, "operation_id").and_then(|id| self.lives.get_mut(&id)) {
                    let since = life.starving_since.take().unwrap_or(at);
                    life.starving = life.starving + at.since(since);
                }
            }
            "operation_completed" => self.operation_ended(event, at, "completed", sink)?,
            "operation_failed" => self.operation_ended(event, at, "failed", sink)?,
            "operation_aborted" => self.operation_ended(event, at, "aborted", sink)?,
            _ => {}
        }
        self.place(event);
        Ok(())
    }

    /// Where the operation is.
    fn place(&mut self, event: &Map) {
        let Some(trees) = event.get("trees").and_then(Value::as_map) else { return };
        let Some(life) = id(event, "operation_id").and_then(|id| self.lives.get_mut(&id)) else { return };
        if let Some((tree, place)) = trees.iter().next() {
            life.tree = String::from_utf8_lossy(tree).into_owned();
            life.pool = place.get("pool").and_then(Value::as_str).unwrap_or_default().to_owned();
        }
    }

    fn job_started(&mut self, event: &Map, at: Time) {
        let (Some(job), Some(operation)) = (id::<JobId>(event, "job_id"), id(event, "operation_id")) else {
            return;
        };
        if self.attempts.contains_key(&job) {
            return;
        }
        let limits = event.get("resource_limits");
        let cookie = event.get("job_cookie").and_then(Value::as_u64).unwrap_or_default();
        let task = text(event, "task_name").to_owned();
        let life = self.lives.get_mut(&operation);
        let mut number = 1;
        if let Some(life) = life {
            if life.first_allocation.is_none() {
                life.first_allocation = Some(at);
                self.waits_ms.push(at.since(life.at).as_millis());
            }
            life.counts.started += 1;
            number += life.attempts.get(&(task.clone(), cookie)).copied().unwrap_or(0);
        }
        self.total.started += 1;
        let attempt = Attempt {
            operation,
            task,
            cookie,
            index: event.get("task_job_index").and_then(Value::as_u64).unwrap_or_default(),
            number,
            place: (text(event, "tree_id").to_owned(), text(event, "pool").to_owned()),
            node: text(event, "node_address").to_owned(),
            ordered: at,
            cpu: limits.and_then(|l| l.get("cpu")?.as_f64()).unwrap_or_default(),
            reserve: limits.and_then(|l| l.get("memory")?.as_i64()).unwrap_or_default(),
        };
        *self.by_pool.entry(attempt.place.clone()).or_default() += 1;
        self.attempts.insert(job, attempt);
    }

    /// A job that nobody has reported after a restart is told without its id.
    fn unreported(&self, event: &Map) -> Option<JobId> {
        let operation: OperationId = id(event, "operation_id")?;
        let index = event.get("task_job_index")?.as_u64()?;
        let is_it =
            |a: &Attempt| a.operation == operation && a.index == index && a.task == text(event, "task_name");
        self.attempts.iter().find(|(_, attempt)| is_it(attempt)).map(|(job, _)| *job)
    }

    fn job_ended(
        &mut self,
        event: &Map,
        at: Time,
        outcome: &'static str,
        told: &mut Told,
        sink: &mut Sink,
    ) -> Result<(), SimError> {
        let job = id::<JobId>(event, "job_id").or_else(|| self.unreported(event));
        let gave_way = job.is_some_and(|job| told.yielded.remove(&job));
        let cpu = job.and_then(|job| told.cpu.remove(&job));
        let proxy = job.and_then(|job| told.proxies.remove(&job));
        let Some(attempt) = job.and_then(|job| self.attempts.remove(&job)) else {
            return Ok(());
        };
        if let Some(count) = self.by_pool.get_mut(&attempt.place) {
            *count -= 1;
        }
        let end = time(event, "finish_time").unwrap_or(at).max(attempt.ordered);
        let start = time(event, "start_time").filter(|_| event.contains("start_time"));
        let reason = text(event, "reason");
        let ran = end.since(attempt.ordered);
        let (ms, cpu_s) = (ran.as_millis(), ran.as_secs_f64() * attempt.cpu);
        let interrupted = gave_way && outcome == "completed";
        let life = self.lives.get_mut(&attempt.operation);
        for counts in life.map(|l| &mut l.counts).into_iter().chain([&mut self.total]) {
            match outcome {
                "completed" => counts.completed += 1,
                "failed" => counts.failed += 1,
                _ => counts.aborted += 1,
            }
            counts.interrupted += u64::from(interrupted);
            match reason {
                "preemption" => {
                    counts.preempted += 1;
                    counts.preempted_cpu_s += cpu_s;
                }
                "resource_overdraft" => counts.overdrafted += 1,
                "node_offline" => counts.node_lost += 1,
                _ => {}
            }
            if outcome != "completed" {
                counts.lost_cpu_s += cpu_s;
            }
            counts.cpu_s += cpu_s;
            counts.total_ms += ms;
            counts.longest_ms = counts.longest_ms.max(ms);
        }
        let peak = peak(event);
        let limit = self
            .lives
            .get(&attempt.operation)
            .and_then(|life| life.operation.tasks.iter().find(|t| t.name == attempt.task).map(|t| t.memory));
        self.use_of.add(&attempt, limit, peak, ran, outcome, cpu.as_ref());
        self.use_of.add_proxy(proxy.unwrap_or_default(), ran);
        if !reason.is_empty() {
            *self.reasons.entry(reason.to_owned()).or_default() += 1;
        }
        if outcome == "completed" && !interrupted {
            self.completed.push((attempt.operation, attempt.task.clone(), attempt.cookie));
        }
        if let Some(life) = self.lives.get_mut(&attempt.operation) {
            let unit = (attempt.task.clone(), attempt.cookie);
            if outcome == "completed" && !interrupted {
                life.attempts.remove(&unit);
            } else {
                *life.attempts.entry(unit).or_default() += 1;
            }
        }
        if sink.wants_allocations() {
            let preempted_for = event.get("preempted_for").map(|v| self.preemptor(v)).unwrap_or_default();
            let row = self.row(&attempt, start, Some(end), outcome, reason, preempted_for, peak, cpu);
            sink.allocation(&row)?;
        }
        Ok(())
    }

    /// Of the workload, by the name that it has there.
    fn preemptor(&self, value: &Value) -> String {
        let id = value.get("operation_id").and_then(Value::as_str).unwrap_or_default();
        let life = id.parse().ok().and_then(|id: OperationId| self.lives.get(&id));
        life.map_or_else(|| id.to_owned(), |life| life.operation.id.clone())
    }

    #[allow(clippy::too_many_arguments)] // the columns of a row
    fn row(
        &self,
        attempt: &Attempt,
        start: Option<Time>,
        end: Option<Time>,
        outcome: &str,
        reason: &str,
        preempted_for: String,
        peak: Option<i64>,
        cpu: Option<Figures>,
    ) -> Vec<Cell> {
        let mean = |sum: &dyn Fn(&Figures) -> f64| match cpu.as_ref().filter(|f| f.ran > 0.0) {
            Some(figures) => Cell::Number(sum(figures) / figures.ran),
            None => Cell::Empty,
        };
        let life = self.lives.get(&attempt.operation);
        let task = life.and_then(|l| l.operation.tasks.iter().find(|t| t.name == attempt.task));
        let some = |text: &str| if text.is_empty() { Cell::Empty } else { Cell::text(text) };
        let lost = end.filter(|_| outcome != "completed").map(|end| end.since(attempt.ordered).as_millis());
        vec![
            life.map_or(Cell::Empty, |l| Cell::text(&l.operation.id)),
            Cell::text(&attempt.task),
            Cell::Int(attempt.cookie as i64),
            Cell::Int(i64::from(attempt.number)),
            Cell::text(&attempt.node),
            self.ms(attempt.ordered),
            start.map_or(Cell::Empty, |t| self.ms(t)),
            end.map_or(Cell::Empty, |t| self.ms(t)),
            Cell::text(outcome),
            some(reason),
            some(&preempted_for),
            Cell::Number(attempt.cpu),
            task.map_or(Cell::Empty, |t| Cell::Int(t.memory)),
            Cell::Int(attempt.reserve),
            peak.filter(|p| *p > 0).map_or(Cell::Empty, Cell::Int),
            mean(&|f| f.guaranteed),
            mean(&|f| f.used),
            lost.map_or(Cell::Int(0), |ms| Cell::Int(ms as i64)),
        ]
    }

    fn operation_ended(
        &mut self,
        event: &Map,
        at: Time,
        state: &'static str,
        sink: &mut Sink,
    ) -> Result<(), SimError> {
        self.place(event);
        let Some(id) = id::<OperationId>(event, "operation_id") else { return Ok(()) };
        self.end(id, at, state, sink)
    }

    fn end(
        &mut self,
        id: OperationId,
        at: Time,
        state: &'static str,
        sink: &mut Sink,
    ) -> Result<(), SimError> {
        let Some(life) = self.lives.remove(&id) else {
            self.early.insert(id, (at, state));
            return Ok(());
        };
        let units = life.operation.tasks.iter().map(|t| t.job_count).sum();
        self.ended.push((id, (state == "completed").then_some(units)));
        self.finish_life(&life, Some(at), state, sink)
    }

    fn finish_life(
        &mut self,
        life: &Life,
        end: Option<Time>,
        state: &'static str,
        sink: &mut Sink,
    ) -> Result<(), SimError> {
        *self.states.entry(state).or_default() += 1;
        let c = &life.counts;
        let until = end.unwrap_or(self.start);
        let starving = life.starving_since.map_or(Span::ZERO, |since| until.since(since)) + life.starving;
        let pending = life.running_since.map(|t| t.since(life.at));
        let jobs: u64 = life.operation.tasks.iter().map(|t| t.job_count).sum();
        let int = |x: u64| Cell::Int(x as i64);
        sink.operation(&[
            Cell::text(&life.operation.id),
            Cell::text(&life.tree),
            Cell::text(&life.pool),
            Cell::text(&life.operation.user),
            Cell::text("vanilla"),
            Cell::text(state),
            self.ms(life.at),
            pending.map_or(Cell::Empty, |s| int(s.as_millis())),
            life.first_allocation.map_or(Cell::Empty, |t| self.ms(t)),
            end.map_or(Cell::Empty, |t| self.ms(t)),
            int(jobs),
            int(c.completed),
            int(c.failed),
            int(c.aborted),
            int(c.preempted),
            int(c.interrupted),
            Cell::Number(c.preempted_cpu_s),
            int(c.total_ms),
            int(c.longest_ms),
            Cell::Number(c.cpu_s),
            int(starving.as_millis()),
        ])
    }

    /// The end of the run: rows of what has not ended.
    pub fn finish(&mut self, sink: &mut Sink) -> Result<(), SimError> {
        for attempt in std::mem::take(&mut self.attempts).into_values() {
            if sink.wants_allocations() {
                let row = self.row(&attempt, None, None, "running", "", String::new(), None, None);
                sink.allocation(&row)?;
            }
        }
        for life in std::mem::take(&mut self.lives).into_values() {
            let state = if life.running_since.is_some() { "running" } else { "pending" };
            self.finish_life(&life, None, state, sink)?;
        }
        Ok(())
    }
}

fn peak(event: &Map) -> Option<i64> {
    let statistics = event.get("statistics")?;
    let leaf = ["user_job", "max_memory"].iter().try_fold(statistics, |v, key| v.get(key))?;
    leaf.as_i64().or_else(|| leaf.get("max")?.as_i64()).or_else(|| {
        let by_state = leaf.get("$")?;
        by_state.as_map()?.iter().next()?.1.as_map()?.iter().next()?.1.get("max")?.as_i64()
    })
}
