//! What the event log tells, as rows: attempts of jobs, operations, and sums of both.

use super::cpu::Figures;
use super::life::Life;
use super::usage::Usage;
use super::work::{OVER_LIMIT, Told};
use crate::error::SimError;
use crate::metrics::{Attempts, End, Group, Hunger, Starved};
use crate::output::{Cell, Sink, Which};
use crate::workload::Operation;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{JobId, OperationId, Span, Time};
use yson::{Map, Value};

/// Of an attempt that is over: its start if there was one, its end, how long its unit runs at full speed, and
/// since when its task may have jobs if that waited for others.
struct Times {
    start: Option<Time>,
    end: Time,
    full: Option<Span>,
    freed: Option<Time>,
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
    gpu: f64,
    pub(super) reserve: i64,
}

/// See the module page.
pub struct Ledger {
    start: Time,
    lives: BTreeMap<OperationId, Life>,
    attempts: BTreeMap<JobId, Attempt>,
    /// Of the cluster, of pools by tree and name (what is directly in them), of users.
    pub all: Group,
    pub pools: BTreeMap<Place, Group>,
    pub users: BTreeMap<String, Group>,
    pub reasons: BTreeMap<String, u64>,
    /// Orders to give way by kind.
    pub preemptions: BTreeMap<String, u64>,
    pub use_of: Usage,
    /// Allocations of now by tree and pool, those of operations directly in it.
    pub by_pool: BTreeMap<Place, i64>,
    /// Pools with a start or an end since somebody asked.
    pub touched: Vec<Place>,
    /// Operations that have ended since somebody asked.
    /// With the number of units, if it completed.
    pub ended: Vec<(OperationId, Option<u64>)>,
    /// Operations that ended before their submission was answered.
    early: BTreeMap<OperationId, (Time, &'static str)>,
    /// Units that completed since somebody asked.
    pub completed: Vec<(OperationId, String, u64)>,
    hunger: Hunger<OperationId>,
}

/// Tree and pool.
type Place = (String, String);

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
            all: Group::default(),
            pools: BTreeMap::new(),
            users: BTreeMap::new(),
            reasons: BTreeMap::new(),
            preemptions: BTreeMap::new(),
            by_pool: BTreeMap::new(),
            touched: Vec::new(),
            use_of: Usage::default(),
            ended: Vec::new(),
            early: BTreeMap::new(),
            completed: Vec::new(),
            hunger: Hunger::default(),
        }
    }

    /// The groups that an operation of a pool and a user belongs to.
    fn groups(&mut self, place: &Place, user: &str) -> [&mut Group; 3] {
        if !self.pools.contains_key(place) {
            self.pools.insert(place.clone(), Group::default());
        }
        if !self.users.contains_key(user) {
            self.users.insert(user.to_owned(), Group::default());
        }
        let of_pool = self.pools.get_mut(place).expect("just put there");
        [&mut self.all, of_pool, self.users.get_mut(user).expect("just put there")]
    }

    /// An unfinished operation.
    pub fn life(&self, id: OperationId) -> Option<&Life> {
        self.lives.get(&id)
    }

    /// 0: it does not starve, 1: it does, 2: aggressively.
    pub fn hunger_of(&self, id: &OperationId) -> i64 {
        self.hunger.level(id)
    }

    /// Shares were computed: who starves now, and is it aggressively?
    pub fn starving(&mut self, now: Time, who: impl Iterator<Item = (OperationId, bool)>) {
        for (id, time, aggressively) in self.hunger.now(now, who) {
            self.fed(id, time, aggressively);
        }
    }

    fn fed(&mut self, id: OperationId, time: Span, aggressively: Span) {
        if let Some(life) = self.lives.get_mut(&id) {
            life.starved.add(time, aggressively);
        }
    }

    /// An operation was accepted.
    pub fn accepted(
        &mut self,
        id: OperationId,
        operation: Arc<Operation>,
        sink: &mut Sink,
    ) -> Result<(), SimError> {
        let tasks = operation.tasks.len();
        let life = Life {
            at: self.start + operation.at,
            operation,
            running_since: None,
            first_allocation: None,
            counts: Attempts::default(),
            tree: String::new(),
            pool: String::new(),
            starved: Starved::default(),
            attempts: BTreeMap::new(),
            longest: vec![Span::ZERO; tasks],
            most_reserved: None,
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
            "allocation_preempted" => {
                *self.preemptions.entry(text(event, "preemption_kind").to_owned()).or_default() += 1;
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
        let place = (text(event, "tree_id").to_owned(), text(event, "pool").to_owned());
        let mut number = 1;
        let (mut user, mut wait) = (None, None);
        if let Some(life) = self.lives.get_mut(&operation) {
            if life.first_allocation.is_none() {
                life.first_allocation = Some(at);
                wait = Some(at.since(life.at).as_millis());
            }
            life.counts.started += 1;
            number += life.attempts.get(&(task.clone(), cookie)).copied().unwrap_or(0);
            user = Some(life.operation.clone());
        }
        let user = user.as_ref().map_or("", |operation| &operation.user);
        for group in self.groups(&place, user) {
            group.attempts.started += 1;
            wait.iter().for_each(|wait| group.operation_wait.add(*wait, 1.0));
        }
        let amount = |name: &str| limits.and_then(|l| l.get(name)?.as_f64()).unwrap_or_default();
        let attempt = Attempt {
            operation,
            task,
            cookie,
            index: event.get("task_job_index").and_then(Value::as_u64).unwrap_or_default(),
            number,
            place,
            node: text(event, "node_address").to_owned(),
            ordered: at,
            cpu: amount("cpu"),
            gpu: amount("gpu"),
            reserve: limits.and_then(|l| l.get("memory")?.as_i64()).unwrap_or_default(),
        };
        *self.by_pool.entry(attempt.place.clone()).or_default() += 1;
        self.touched.push(attempt.place.clone());
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
        let asked = job.and_then(|job| told.asked.remove(&job));
        let full = job.and_then(|job| told.full.remove(&job));
        let Some(attempt) = job.and_then(|job| self.attempts.remove(&job)) else {
            return Ok(());
        };
        if let Some(count) = self.by_pool.get_mut(&attempt.place) {
            *count -= 1;
        }
        self.touched.push(attempt.place.clone());
        let end = time(event, "finish_time").unwrap_or(at).max(attempt.ordered);
        let start = time(event, "start_time").filter(|_| event.contains("start_time"));
        let reason = text(event, "reason");
        let ran = end.since(attempt.ordered);
        let interrupted = gave_way && outcome == "completed";
        let peak = statistic(event, &["user_job", "max_memory"]);
        let over = End {
            outcome,
            reason,
            stopped_after: interrupted.then(|| end.since(asked.unwrap_or(end))),
            over_limit: outcome == "failed" && event.get("error").is_some_and(is_over_limit),
            ran,
            cpu: attempt.cpu,
            gpu: attempt.gpu,
            used_cpu_s: statistic(event, &["user_job", "cpu", "user"]).unwrap_or_default() as f64 / 1000.0,
        };
        let freed = told.ready.get(&(attempt.operation, attempt.task.clone())).copied();
        let times = Times { start, end, full, freed };
        let limit = self.life_ends(&attempt, &over, &times, proxy);
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
        if sink.wants(Which::Allocations) {
            let preempted_for = event.get("preempted_for").map(|v| self.preemptor(v)).unwrap_or_default();
            let row = self.row(&attempt, start, Some(end), outcome, reason, preempted_for, peak, cpu);
            sink.row(Which::Allocations, row)?;
        }
        Ok(())
    }

    /// What an attempt adds to its operation and the groups of that. Gives its memory limit.
    fn life_ends(
        &mut self,
        attempt: &Attempt,
        over: &End<'_>,
        &Times { start, end, full, freed }: &Times,
        proxy: Option<(i64, i64)>,
    ) -> Option<i64> {
        let (mut wait, mut slow, mut limit, mut operation) = (None, None, None, None);
        if let Some(life) = self.lives.get_mut(&attempt.operation) {
            let ready = life.ready(&attempt.task, attempt.cookie, freed);
            life.counts.add(over);
            if let Some((place, task)) = life.task(&attempt.task) {
                limit = Some(task.memory);
                let reserved = proxy.map(|(proxy, _)| (attempt.reserve - proxy) as f64 / task.memory as f64);
                life.most_reserved = life.most_reserved.into_iter().chain(reserved).reduce(f64::max);
                life.longest[place] = life.longest[place].max(full.unwrap_or_default());
            }
            if attempt.number == 1 {
                wait = Some(start.unwrap_or(attempt.ordered).since(ready).as_millis());
            }
            if over.outcome == "completed" && over.stopped_after.is_none() {
                slow = full.map(|full| slowdown(end.since(ready), full));
            }
            operation = Some(life.operation.clone());
        }
        let weight = full.unwrap_or(over.ran).as_secs_f64() * attempt.cpu;
        for group in self.groups(&attempt.place, operation.as_ref().map_or("", |o| &o.user)) {
            group.attempts.add(over);
            wait.iter().for_each(|wait| group.job_wait.add(*wait, weight));
            slow.iter().for_each(|slow| group.job_slowdown.add(*slow, weight));
        }
        limit
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
        if let Some((time, aggressively)) = self.hunger.gone(&id, at) {
            self.fed(id, time, aggressively);
        }
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
        let c = &life.counts;
        let pending = life.running_since.map(|t| t.since(life.at));
        let ideal = life.ideal();
        let done = end.zip(ideal).filter(|_| state == "completed");
        let slow = done.map(|(end, ideal)| slowdown(end.since(life.at), ideal));
        let place = (life.tree.clone(), life.pool.clone());
        for group in self.groups(&place, &life.operation.user) {
            *group.states.entry(state).or_default() += 1;
            pending.iter().for_each(|pending| group.pending.add(pending.as_millis(), 1.0));
            slow.iter().for_each(|slow| group.operation_slowdown.add(*slow, 1.0));
            group.starved.merge(&life.starved);
        }
        let jobs: u64 = life.operation.tasks.iter().map(|t| t.job_count).sum();
        let int = |x: u64| Cell::Int(x as i64);
        let row = vec![
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
            ideal.map_or(Cell::Empty, |ideal| int(ideal.as_millis())),
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
            int(life.starved.time.as_millis()),
            int(life.starved.aggressively.as_millis()),
            life.most_reserved.map_or(Cell::Empty, Cell::Number),
        ];
        sink.row(Which::Operations, row)
    }

    /// The end of the run: rows of what has not ended.
    pub fn finish(&mut self, now: Time, sink: &mut Sink) -> Result<(), SimError> {
        self.starving(now, std::iter::empty());
        for attempt in std::mem::take(&mut self.attempts).into_values() {
            if sink.wants(Which::Allocations) {
                let row = self.row(&attempt, None, None, "running", "", String::new(), None, None);
                sink.row(Which::Allocations, row)?;
            }
        }
        for life in std::mem::take(&mut self.lives).into_values() {
            let state = if life.running_since.is_some() { "running" } else { "pending" };
            self.finish_life(&life, None, state, sink)?;
        }
        Ok(())
    }
}

/// `max(1, time / max(full, 10 s))` in thousandths.
fn slowdown(time: Span, full: Span) -> u64 {
    let least = full.max(Span::from_secs(10)).as_secs_f64();
    ((time.as_secs_f64() / least).max(1.0) * 1000.0).round() as u64
}

fn is_over_limit(error: &Value) -> bool {
    let message = error.get("message").and_then(Value::as_str);
    let inner = error.get("inner_errors").and_then(Value::as_list).into_iter().flatten();
    message == Some(OVER_LIMIT) || inner.into_iter().any(is_over_limit)
}

/// The largest value of a column of statistics.
fn statistic(event: &Map, path: &[&str]) -> Option<i64> {
    let statistics = event.get("statistics")?;
    let leaf = path.iter().try_fold(statistics, |v, key| v.get(key))?;
    leaf.as_i64().or_else(|| leaf.get("max")?.as_i64()).or_else(|| {
        let by_state = leaf.get("$")?;
        by_state.as_map()?.iter().next()?.1.as_map()?.iter().next()?.1.get("max")?.as_i64()
    })
}
