//! Rows become operations: filters and scales, limits, pools, and jobs cut to the size of nodes.

use super::mapping::{Arrivals, Mapping, Memory, MissingRun};
use super::peaks;
use super::places;
use super::row::Row;
use super::totals::Totals;
use crate::dist::Dist;
use crate::random::{Kind, bits, name_hash};
use std::collections::BTreeMap;
use yson::{Map, Value};

/// Bytes of a job of which nothing is known: the default of the format.
const MEMORY: f64 = (1u64 << 30) as f64;

/// An operation that is to be written.
pub(super) struct Built {
    pub at_ms: u64,
    /// The path of its pool.
    pub place: Vec<String>,
    /// The line of the workload.
    pub line: Map,
    /// Of the rows that it was made of.
    pub totals: Totals,
}

/// Leaves out what is not wanted, and names, scales and repeats the rest.
pub(super) fn prepare(
    mut rows: Vec<Row>,
    mapping: &Mapping,
    notes: &mut BTreeMap<&'static str, u64>,
) -> Vec<Row> {
    for row in &mut rows {
        if let Some(name) = row.queue.as_ref().and_then(|queue| mapping.queue_names.get(queue)) {
            row.queue = Some(name.clone());
        }
    }
    let mut note = |what, count: usize| {
        if count > 0 {
            *notes.entry(what).or_default() += count as u64;
        }
    };
    let mut keep = |rows: &mut Vec<Row>, what, good: &dyn Fn(&Row) -> bool| {
        let before = rows.len();
        rows.retain(|row| good(row));
        note(what, before - rows.len());
    };
    keep(&mut rows, "filtered out", &|row| {
        let fits = |(column, words): (&String, &Vec<String>)| {
            row.column(column).is_some_and(|value| words.iter().any(|word| word == value))
        };
        mapping.filter.iter().all(fits)
    });
    if let Some((from, to)) = mapping.window {
        keep(&mut rows, "outside of the window", &|row| row.submit_s >= from && row.submit_s < to);
        rows.iter_mut().for_each(|row| row.submit_s -= from);
    }
    if mapping.sample < 1.0 {
        keep(&mut rows, "not in the sample", &|row| {
            let unit =
                (bits(0, Kind::Fault, name_hash(&row.operation), 0) >> 11) as f64 / (1u64 << 53) as f64;
            unit < mapping.sample
        });
    }
    match mapping.missing_run {
        MissingRun::Skip => keep(&mut rows, "without a run time, left out", &|row| row.run_s.is_some()),
        MissingRun::Seconds(seconds) => {
            let missing = rows.iter_mut().filter(|row| row.run_s.is_none());
            note("without a run time, given one", missing.map(|row| row.run_s = Some(seconds)).count());
        }
        MissingRun::Median => {
            let medians = by_key(&rows, &|row| Some((row.queue.clone(), row.run_s?)), 0.5);
            let mut given = 0;
            for row in rows.iter_mut().filter(|row| row.run_s.is_none()) {
                row.run_s = medians.get(&row.queue).copied();
                given += usize::from(row.run_s.is_some());
            }
            note("without a run time, given one", given);
            let before = rows.len();
            rows.retain(|row| row.run_s.is_some());
            note("without a run time, left out", before - rows.len());
        }
    }
    // What takes no time at all would never be seen.
    let mut longer = 0;
    for row in &mut rows {
        if let Some(template) = &mapping.operation {
            row.operation = places::operation(template, row);
        }
        if mapping.arrivals == Some(Arrivals::Start) {
            row.submit_s += row.wait_s.unwrap_or(0.0);
        }
        row.submit_s *= mapping.arrival_scale;
        let run = row.run_s.unwrap_or_default() * mapping.time_scale;
        longer += usize::from(run < 0.001);
        row.run_s = Some(run.max(0.001));
    }
    note("of less than a millisecond, made that long", longer);
    repeat(rows, mapping)
}

/// Copies follow one another.
fn repeat(mut rows: Vec<Row>, mapping: &Mapping) -> Vec<Row> {
    if mapping.repeat < 2 {
        return rows;
    }
    let length = match mapping.window {
        Some((from, to)) => (to - from) * mapping.arrival_scale,
        None => rows.iter().map(|row| row.submit_s).fold(0.0, f64::max) + 1.0,
    };
    let first = rows.clone();
    for copy in 1..mapping.repeat {
        rows.extend(first.iter().cloned().map(|mut row| {
            row.submit_s += length * copy as f64;
            row.operation = format!("{}#{copy}", row.operation);
            row
        }));
    }
    rows
}

/// The percentile of a number by a key.
fn by_key<K: Ord>(rows: &[Row], number: &dyn Fn(&Row) -> Option<(K, f64)>, p: f64) -> BTreeMap<K, f64> {
    let mut all: BTreeMap<K, Vec<f64>> = BTreeMap::new();
    for (key, x) in rows.iter().filter_map(number) {
        all.entry(key).or_default().push(x);
    }
    let at = |mut list: Vec<f64>| {
        list.sort_by(f64::total_cmp);
        list[((p * list.len() as f64).ceil() as usize).saturating_sub(1)]
    };
    all.into_iter().map(|(key, list)| (key, at(list))).collect()
}

/// A row whose numbers are complete.
pub(super) struct Sized {
    pub row: Row,
    run_s: f64,
    cpu: f64,
    gpu: u64,
    memory: f64,
    /// Cores in use, of all of `cpu`; none: not known.
    used: Option<f64>,
    /// Part of `memory` at the peak; none: not known.
    pub peak: Option<f64>,
}

fn sizes(rows: Vec<Row>, mapping: &Mapping, notes: &mut BTreeMap<&'static str, u64>) -> Vec<Sized> {
    let limits = match mapping.memory {
        Memory::UserPercentile { p, .. } => {
            let per_core = |row: &Row| {
                let cpu = row.cpu.filter(|cpu| *cpu > 0.0)?;
                Some(((row.user.clone(), row.queue.clone()), row.memory_used? / cpu))
            };
            by_key(&rows, &per_core, p)
        }
        _ => BTreeMap::new(),
    };
    let mut count = |what| *notes.entry(what).or_default() += 1;
    let mut size = |row: Row| {
        let gpu = row.gpu.ceil() as u64;
        if row.gpu.fract() > 0.0 {
            count("with a part of a device, given a whole one");
        }
        let own = row.cpu.unwrap_or(if gpu > 0 && mapping.per_gpu.0 > 0.0 { 0.0 } else { 1.0 });
        let cpu = own + mapping.per_gpu.0 * gpu as f64;
        let asked = match mapping.memory {
            Memory::Requested => row.memory,
            Memory::ConstPerCpu(bytes) => Some(bytes * own),
            Memory::UserPercentile { factor, pow2, .. } => {
                let of_user = limits.get(&(row.user.clone(), row.queue.clone()));
                of_user.map(|bytes| {
                    let limit = bytes * factor;
                    own * if pow2 { limit.log2().ceil().exp2() } else { limit }
                })
            }
        };
        if asked.is_none() && mapping.per_gpu.1 == 0.0 {
            count("without a limit of memory, given 1 GiB");
        }
        let own_memory = asked.unwrap_or(if mapping.per_gpu.1 > 0.0 { 0.0 } else { MEMORY });
        let memory = (own_memory + mapping.per_gpu.1 * gpu as f64).max(1.0).ceil();
        let peak = row.memory_used.map(|used| used / memory);
        if peak.is_some_and(|peak| peak > 1.0) {
            count("above their limit of memory, cut to it");
        }
        let used = row.cpu_used.map(|used| used.min(cpu));
        if row.cpu_used.is_some_and(|used| used > cpu) {
            count("above their cores, cut to them");
        }
        let run_s = row.run_s.unwrap_or_default();
        Sized { row, run_s, cpu, gpu, memory, used, peak: peak.map(|peak| peak.min(1.0)) }
    };
    let mut sized: Vec<Sized> = rows.into_iter().map(&mut size).collect();
    peaks::complete(&mut sized, mapping.unknown_peak, notes);
    sized
}

/// Jobs that a job of a row is cut into: how many, and which part of it each is.
fn cut(row: &Sized, mapping: &Mapping) -> Vec<(u64, f64)> {
    let (size, most) = match (mapping.split_gpus_per_job, mapping.job_cpu) {
        (Some(most), _) if row.gpu > most => (row.gpu as f64, most as f64),
        (_, Some(most)) if row.cpu > most => (row.cpu, most),
        _ => return vec![(1, 1.0)],
    };
    let whole = (size / most).floor();
    let rest = size - whole * most;
    let mut parts = vec![(whole as u64, most / size)];
    // Hundredths of a core are the finest there is.
    if rest > 0.005 {
        parts.push((1, rest / size));
    }
    parts
}

/// Jobs that ask for the same are one task.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Debug)]
struct Ask {
    task: String,
    cpu_hundredths: u64,
    memory: u64,
    gpu: u64,
}

/// Equal jobs.
struct Batch {
    jobs: u64,
    /// Microseconds: jobs that were started together end apart, and what waits for two free cores sees the difference.
    us: u64,
    used: Option<f64>,
    peak: Option<f64>,
    curve: Option<(String, String)>,
    /// After the submission of the operation.
    arrives_ms: u64,
}

/// Operations by time.
pub(super) fn operations(
    rows: Vec<Row>,
    mapping: &Mapping,
    notes: &mut BTreeMap<&'static str, u64>,
) -> Vec<Built> {
    let mut groups: BTreeMap<String, Vec<Sized>> = BTreeMap::new();
    for row in sizes(rows, mapping, notes) {
        groups.entry(row.row.operation.clone()).or_default().push(row);
    }
    if mapping.arrivals.is_some() {
        let by_arrival = |rows: &mut Vec<Sized>| {
            rows.sort_by(|a, b| a.row.submit_s.total_cmp(&b.row.submit_s));
        };
        groups.values_mut().for_each(by_arrival);
    }
    let mut built: Vec<Built> = groups.into_iter().map(|(id, rows)| operation(&id, &rows, mapping)).collect();
    built.sort_by_key(|operation| operation.at_ms);
    built
}

fn operation(id: &str, rows: &[Sized], mapping: &Mapping) -> Built {
    let mut tasks: BTreeMap<Ask, Vec<Batch>> = BTreeMap::new();
    let mut order: Vec<Ask> = Vec::new();
    let mut totals = Totals { operations: 1, ..Totals::default() };
    let at_of = |row: &Sized| (row.row.submit_s * 1000.0).round() as u64;
    let at_ms = rows.iter().map(at_of).min().unwrap_or(0);
    for row in rows {
        let parts = cut(row, mapping);
        let jobs = row.row.jobs;
        totals.add(
            row.cpu,
            row.used.unwrap_or(row.cpu),
            row.gpu,
            row.memory,
            row.peak.unwrap_or(1.0),
            jobs,
            row.run_s,
        );
        totals.jobs += jobs * parts.iter().map(|(count, _)| count).sum::<u64>() - jobs;
        for (count, part) in parts {
            let ask = Ask {
                task: row.row.task.clone(),
                cpu_hundredths: (row.cpu * part * 100.0).round() as u64,
                memory: (row.memory * part).ceil() as u64,
                gpu: (row.gpu as f64 * part).round() as u64,
            };
            let batch = Batch {
                jobs: jobs * count,
                us: (row.run_s * 1e6).round().max(1000.0) as u64,
                used: row.used.map(|used| used * part),
                peak: row.peak,
                // A curve is of a whole job.
                curve: row.row.curve.clone().filter(|_| part == 1.0),
                arrives_ms: if mapping.arrivals.is_some() { at_of(row) - at_ms } else { 0 },
            };
            if !tasks.contains_key(&ask) {
                order.push(ask.clone());
            }
            tasks.entry(ask).or_default().push(batch);
        }
    }
    let first = &rows[0].row;
    (totals.first_ms, totals.last_ms) = (at_ms, at_ms);
    let place = match (&mapping.pool, &first.pool) {
        (Some(template), _) => places::path(template, first),
        (None, Some(pool)) => vec![pool.clone()],
        (None, None) => Vec::new(),
    };
    let mut line = yson::map! {
        "id" => id,
        "at" => at_ms,
        "user" => first.user.as_ref().map_or("unknown".to_owned(), |user| match user.parse::<u64>() {
            Ok(number) => format!("u{number}"),
            Err(_) => user.clone(),
        }),
    };
    if !place.is_empty() {
        line.insert("pool", places::name(&place));
    }
    let (mut list, mut explicit) = (Vec::new(), Vec::new());
    for (number, ask) in order.iter().enumerate() {
        // Tasks of one name that ask for different things.
        let same = order[..number].iter().filter(|other| other.task == ask.task).count();
        let name = if same == 0 { ask.task.clone() } else { format!("{}.{}", ask.task, same + 1) };
        let batches = &tasks[ask];
        list.push(Value::Map(task(&name, ask, batches, mapping)));
        if batches.len() > 1 || batches[0].arrives_ms > 0 {
            for batch in batches {
                let cpu = batch.used.unwrap_or(ask.cpu_hundredths as f64 / 100.0);
                let mut row = vec![
                    Value::from(name.as_str()),
                    milliseconds(batch.us),
                    rounded(batch.peak.unwrap_or(1.0)),
                    rounded(cpu),
                ];
                if batch.arrives_ms > 0 {
                    row.push(batch.arrives_ms.into());
                }
                let row = Value::from(row);
                explicit.extend((0..batch.jobs).map(|_| row.clone()));
            }
        }
    }
    totals.tasks = list.len() as u64;
    line.insert("tasks", Value::from(list));
    if !explicit.is_empty() {
        line.insert("jobs", Value::from(explicit));
    }
    let meta = Map::new()
        .with_some("wait_s", first.wait_s.map(rounded))
        .with_some("time_limit_s", first.time_limit_s.map(rounded))
        .with_some("status", first.status.as_deref())
        .with_some("group", first.group.as_deref())
        .with_some("queue", first.queue.as_deref())
        .with_some("partition", first.partition.as_deref());
    if !meta.is_empty() {
        line.insert("meta", meta);
    }
    Built { at_ms, place, line, totals }
}

/// Whole ones as they are in most traces.
fn milliseconds(us: u64) -> Value {
    if us.is_multiple_of(1000) { (us / 1000).into() } else { (us as f64 / 1000.0).into() }
}

fn task(name: &str, ask: &Ask, batches: &[Batch], mapping: &Mapping) -> Map {
    let jobs: u64 = batches.iter().map(|b| b.jobs).sum();
    let first = &batches[0];
    let mut map = yson::map! {
        "name" => name,
        "job_count" => jobs,
        "cpu" => ask.cpu_hundredths as f64 / 100.0,
        "memory" => ask.memory,
        "duration" => milliseconds(first.us),
    };
    if ask.gpu > 0 {
        map.insert("gpu", ask.gpu);
    }
    if mapping.gang && jobs > 1 {
        map.insert("gang", true);
    }
    match (&mapping.cpu_usage, &first.curve) {
        (Some((_, value)), _) => drop(map.insert("cpu_usage", value.clone())),
        (None, Some((file, key))) => {
            map.insert("cpu_usage", yson::map! {"curves" => file.as_str(), "key" => key.as_str()});
        }
        (None, None) => drop(first.used.map(|used| map.insert("cpu_usage", rounded(used)))),
    }
    if let Some(peak) = first.peak {
        map.insert("memory_usage", rounded(peak));
    }
    map
}

/// Six digits are plenty.
fn rounded(x: f64) -> Value {
    ((x * 1e6).round() / 1e6).into()
}

/// What a distribution of used cores comes to, if it is one number.
pub(super) fn constant(dist: &Dist) -> Option<f64> {
    match dist {
        Dist::Const(x) => Some(*x),
        _ => None,
    }
}
