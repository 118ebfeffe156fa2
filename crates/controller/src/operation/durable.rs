//! What of an operation survives a crash, and how little is written for it.
//!
//! The state is cut into parts, each one record of the store under `(operation, part)`: part 0 is
//! the operation's own, part `n + 1` is task `n`'s. A change marks its part dirty; the caller asks
//! [`take_dirty`](OperationController::take_dirty) once per group commit and overwrites the records
//! that come out. However many jobs have ended since, each touched part is written once, and its
//! size does not grow with them: done units are runs, statistics are sums, and the only lists are
//! of what is open (one byte or two per running job).
//!
//! What a task has learned about memory is a field of its part: less than 2 KB, however many jobs.
//!
//! A job's record for the archive goes into the same batch as the parts that count its end: then a
//! node that was not told in time reports a job that is either wholly new or wholly known.
//!
//! Not in it: jobs, allocations, usage. Nodes hold those and say so ([`revive`](super::revive)).

use super::limits::Life;
use super::{OperationController, gang};
use crate::backoff::{FirstStart, Series};
use crate::copies::Copies;
use crate::counter::JobCounter;
use crate::durations::Durations;
use crate::memory::{MemoryReserve, Reserved};
use crate::open::OpenJobs;
use crate::options::ControllerOptions;
use crate::packed::{Packer, Unpacker};
use crate::spec::OperationSpec;
use crate::statistics::TaskStatistics;
use crate::task::{ReadyTime, Task};
use crate::units::UnitPool;
use std::collections::BTreeMap;
use std::str::FromStr;
use vocab::{Failure, OperationId, Span, Time};
use yson::{Map, Value};

/// One record of the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatePart {
    /// 0: the operation; `n + 1`: task `n`.
    pub part: u32,
    /// Replaces the part's older record.
    pub bytes: Vec<u8>,
}

/// Stored state that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("Malformed state of operation {operation}, part {part}: {why}")]
pub struct StateError {
    /// Which operation.
    pub operation: OperationId,
    /// Which part.
    pub part: u32,
    /// What is wrong.
    pub why: String,
}

impl OperationController {
    /// The parts that changed since the last call; empty if none did.
    pub fn take_dirty(&mut self) -> Vec<StatePart> {
        let mut parts = Vec::new();
        if std::mem::take(&mut self.dirty) {
            parts.push(StatePart { part: 0, bytes: yson::to_binary(&self.head().into()) });
        }
        for (part, task) in (1u32..).zip(&mut self.tasks) {
            if std::mem::take(&mut task.dirty) {
                parts.push(StatePart { part, bytes: yson::to_binary(&task_state(task).into()) });
            }
        }
        parts
    }

    /// Is there anything to commit?
    pub fn is_dirty(&self) -> bool {
        self.dirty || self.tasks.iter().any(|t| t.dirty)
    }

    /// All parts; nothing stays dirty or becomes so.
    pub fn export(&self) -> Vec<StatePart> {
        let head = std::iter::once(Value::Map(self.head()));
        let states = head.chain(self.tasks.iter().map(|t| task_state(t).into()));
        (0u32..).zip(states).map(|(part, v)| StatePart { part, bytes: yson::to_binary(&v) }).collect()
    }

    /// A controller that goes on where the stored parts were taken. Units that were at work are
    /// pending, and the jobs that were open wait to be adopted ([`revive`](super::revive)).
    ///
    /// A missing part is a task (or an operation) that nothing ever happened to.
    pub fn restore(
        id: OperationId,
        spec: &OperationSpec,
        options: &ControllerOptions,
        start_time: Time,
        parts: &[StatePart],
    ) -> Result<OperationController, StateError> {
        let mut controller = OperationController::new(id, spec, options, start_time);
        for StatePart { part, bytes } in parts {
            let broken = |why: String| StateError { operation: id, part: *part, why };
            let value = yson::parse_record(bytes).map_err(|e| broken(e.to_string()))?;
            let mut state = State { map: value.as_map(), missing: "" };
            let read = match part.checked_sub(1).map(|n| controller.tasks.get_mut(n as usize)) {
                None => controller.read_head(&mut state),
                Some(Some(task)) => read_task(task, &mut state),
                Some(None) => return Err(broken(format!("the spec has {} tasks", spec.tasks.len()))),
            };
            if read.is_none() {
                return Err(broken(format!("field {:?} is missing or malformed", state.missing)));
            }
        }
        controller.custom_names = controller
            .tasks
            .iter()
            .flat_map(|t| t.statistics.groups())
            .flat_map(|g| g.custom.keys().cloned())
            .collect();
        controller.reviving = true;
        controller.dirty = false;
        controller.tasks.iter_mut().for_each(|t| t.dirty = false);
        Ok(controller)
    }

    fn head(&self) -> Map {
        yson::map! {
            "next_job_index" => self.next_job_index,
            "incarnation" => u64::from(self.incarnation),
            "failed_job_count" => self.failed_job_count,
            "stored_stderr_count" => self.stored_stderr_count,
            "retained_job_count" => self.retained_job_count,
            "banned_nodes" => self.banned_nodes().collect::<Vec<_>>(),
            "over" => self.life == Life::Over,
        }
    }

    fn read_head(&mut self, state: &mut State<'_>) -> Option<()> {
        self.next_job_index = state.number("next_job_index")?;
        self.incarnation = state.number("incarnation")?.try_into().ok()?;
        self.incarnation_name = gang::incarnation_name(self.id, self.incarnation);
        self.failed_job_count = state.number("failed_job_count")?;
        self.stored_stderr_count = state.number("stored_stderr_count")?;
        self.retained_job_count = state.number("retained_job_count")?;
        let banned = state.get("banned_nodes")?.as_list()?.iter();
        self.banned_nodes = banned.map(|n| n.as_str().map(str::to_owned)).collect::<Option<_>>()?;
        if state.get("over")?.as_bool()? {
            self.life = Life::Over;
        }
        Some(())
    }
}

fn task_state(task: &Task) -> Map {
    let (done, open_units) = task.units.pack();
    let (open_jobs, open_reserves) = task.open.pack();
    let own = yson::map! {
        "job_count" => u64::from(task.job_count),
        "done" => Value::String(done),
        "open_units" => Value::String(open_units),
        "next_job_index" => task.next_job_index,
        "open_jobs" => Value::String(open_jobs),
        "open_reserves" => Value::String(open_reserves),
        "memory" => Value::String(task.memory.encode()),
        "races" => Value::String(task.copies.pack()),
        "copies" => counter(&task.copies.ends),
        "durations" => Value::String(task.copies.durations.pack()),
        "statistics" => task.statistics.to_value(),
        "start_time" => task.start_time.map(Time::as_micros),
        "completion_time" => task.completion_time.map(Time::as_micros),
        "splits" => Value::String(pack_splits(&task.splits)),
        "ready_time" => task.ready.past.as_micros(),
        "ready_since" => task.ready.since.map(Time::as_micros),
        "started_on" => task.first_start.started_on().iter().map(|n| n.as_str().into()).collect::<Vec<Value>>(),
    };
    let own = own.with_some("aborts", pack_aborts(&task.first_start));
    own.into_iter().chain(counter(&task.counter)).collect()
}

fn counter(counter: &JobCounter) -> Map {
    yson::map! {
        "completed" => reasons(&counter.completed),
        "made_room" => reasons(&counter.made_room),
        "aborted" => reasons(&counter.aborted),
        "failed" => counter.failed,
        "lost" => counter.lost,
    }
}

fn read_counter(state: &mut State<'_>) -> Option<JobCounter> {
    Some(JobCounter {
        completed: read_reasons(state.get("completed")?)?,
        made_room: read_reasons(state.get("made_room")?)?,
        aborted: read_reasons(state.get("aborted")?)?,
        failed: state.number("failed")?,
        lost: state.number("lost")?,
    })
}

/// State of older programs does not speak of copies.
fn read_copies(state: &mut State<'_>) -> Option<Copies> {
    let Some(races) = state.later("races") else { return Some(Copies::default()) };
    let ends = read_counter(&mut State { map: state.get("copies")?.as_map(), missing: "" })?;
    let durations = Durations::unpack(state.bytes("durations")?)?;
    Copies::unpack(races.as_bytes()?, ends, durations)
}

fn read_task(task: &mut Task, state: &mut State<'_>) -> Option<()> {
    task.job_count = state.number("job_count")?.try_into().ok()?;
    // Cookies are never above the largest job count that the task has had; the bound only keeps
    // broken bytes from asking for gigabytes.
    let units = UnitPool::unpack(state.bytes("done")?, state.bytes("open_units")?, 1 << 24)?;
    task.next_job_index = state.number("next_job_index")?;
    // What tasks have learned is newer than the rest: a state without it is that of an older program.
    if let Some(bytes) = state.later("memory") {
        task.memory = MemoryReserve::decode(task.memory.settings().clone(), bytes.as_bytes()?).ok()?;
    }
    let reserves = match state.later("open_reserves") {
        Some(bytes) => Some(bytes.as_bytes()?),
        None => None,
    };
    let usual = Reserved::new(&task.memory, task.memory.current_factors());
    task.open = OpenJobs::unpack(state.bytes("open_jobs")?, reserves, usual)?;
    task.counter = read_counter(state)?;
    task.copies = read_copies(state)?;
    task.statistics = TaskStatistics::from_value(state.get("statistics")?)?;
    task.start_time = state.time("start_time")?;
    task.completion_time = state.time("completion_time")?;
    // Not in states of older programs, whose jobs had no tables.
    if let Some(splits) = state.later("splits") {
        task.splits = unpack_splits(splits.as_bytes()?)?;
    }
    // Programs that did not count it say nothing.
    if let Some(past) = state.later("ready_time") {
        task.ready = ReadyTime { past: Span(past.as_u64()?), since: state.time("ready_since")? };
    }
    task.first_start = read_first_start(state)?;
    state.missing = "done";
    let agree = task.counter.completed.values().sum::<u64>() == u64::from(units.done());
    task.units = units;
    agree.then_some(())
}

/// Aborts before the first start of a job, if there were any.
fn pack_aborts(first: &FirstStart) -> Option<Map> {
    let Series { rounds, until, last } = &first.aborts;
    (*rounds > 0).then(|| {
        let map = yson::map! {
            "rounds" => u64::from(*rounds), "until" => until.as_micros(), "paused" => first.is_paused(),
        };
        map.with_some("last", last.as_ref().map(|error| error.to_value()))
    })
}

/// Older programs did not write it. Jobs that run are adopted, and tell that they have started.
fn read_first_start(state: &mut State<'_>) -> Option<FirstStart> {
    let Some(nodes) = state.later("started_on") else { return Some(FirstStart::default()) };
    let nodes = nodes.as_list()?.iter().map(|node| node.as_str().map(str::to_owned));
    let started_on = nodes.collect::<Option<_>>()?;
    let Some(aborts) = state.later("aborts") else {
        return Some(FirstStart::restored(started_on, Series::default(), false));
    };
    let series = Series {
        rounds: aborts.get("rounds")?.as_u64()?.try_into().ok()?,
        until: Time(aborts.get("until")?.as_u64()?),
        last: aborts.get("last").map(|error| Box::new(Failure::from_value(error))),
    };
    Some(FirstStart::restored(started_on, series, aborts.get("paused")?.as_bool()?))
}

fn pack_splits(splits: &[(u32, u64)]) -> Vec<u8> {
    let mut out = Packer::default();
    for (cookie, row) in splits {
        out.unsigned(u64::from(*cookie)).unsigned(*row);
    }
    out.finish()
}

fn unpack_splits(bytes: &[u8]) -> Option<Vec<(u32, u64)>> {
    let (mut splits, mut input) = (Vec::new(), Unpacker::new(bytes));
    while !input.is_empty() {
        splits.push((input.unsigned()?.try_into().ok()?, input.unsigned()?));
    }
    Some(splits)
}

fn reasons<K: Copy + Into<Value> + std::fmt::Display>(map: &BTreeMap<K, u64>) -> Map {
    map.iter().map(|(reason, n)| (reason.to_string(), *n)).collect()
}

fn read_reasons<K: FromStr + Ord>(value: &Value) -> Option<BTreeMap<K, u64>> {
    let pairs = value.as_map()?.iter();
    pairs.map(|(k, n)| Some((std::str::from_utf8(k).ok()?.parse().ok()?, n.as_u64()?))).collect()
}

/// Fields of a stored map; remembers which one was asked for last, for the error.
struct State<'a> {
    map: Option<&'a Map>,
    missing: &'static str,
}

impl<'a> State<'a> {
    fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.missing = name;
        self.map?.get(name)
    }
    /// A field that older programs do not write.
    fn later(&mut self, name: &'static str) -> Option<&'a Value> {
        self.missing = name;
        self.map?.get(name)
    }
    fn number(&mut self, name: &'static str) -> Option<u64> {
        self.get(name)?.as_u64()
    }
    fn bytes(&mut self, name: &'static str) -> Option<&'a [u8]> {
        self.get(name)?.as_bytes()
    }
    fn time(&mut self, name: &'static str) -> Option<Option<Time>> {
        let value = self.get(name)?;
        if value.is_entity() { Some(None) } else { value.as_u64().map(|us| Some(Time(us))) }
    }
}
