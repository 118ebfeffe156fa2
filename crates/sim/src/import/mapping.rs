//! The mapping file: what the columns of a log mean here (simulator.md 6).

use super::row::COLUMNS;
use crate::dist::Dist;
use crate::error::SimError;
use crate::scenario::read_value;
use std::collections::BTreeMap;
use std::path::Path;
use vocab::Time;
use yson::fields::{FieldError, Fields};
use yson::{Map, Value};

/// See the module page. The file holds these keys, or has them under `import` beside the `cluster` and the
/// `pool_trees` of scenarios.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Path of the pool, with columns in braces.
    pub(super) pool: Option<String>,
    /// Rows with the same text are one operation, with columns in braces; none: those of one `op_id`.
    pub(super) operation: Option<String>,
    /// Jobs of an operation arrive one by one.
    pub(super) arrivals: Option<Arrivals>,
    /// Pools whose first part is in no tree go below this one.
    pub(super) fallback_parent: Option<String>,
    /// Multiplies run times.
    pub(super) time_scale: f64,
    /// Multiplies times of submission.
    pub(super) arrival_scale: f64,
    /// The moment that is 0 in the workload; none: the first event of the log.
    pub(super) start_time: Option<Time>,
    /// Submissions from and before, seconds.
    pub(super) window: Option<(f64, f64)>,
    /// Allowed values by column.
    pub(super) filter: BTreeMap<String, Vec<String>>,
    /// Processors of an SWF job are those that it used, not those that it asked for.
    pub(super) processors_used: bool,
    /// Cores of a job at most: bigger ones become several.
    pub(super) job_cpu: Option<f64>,
    pub(super) queue_names: BTreeMap<String, String>,
    pub(super) memory: Memory,
    /// Peaks of jobs that the log knows nothing of.
    pub(super) unknown_peak: UnknownPeak,
    /// Instead of what was measured.
    pub(super) cpu_usage: Option<(Dist, Value)>,
    /// Devices of a job at most: bigger ones become several.
    pub(super) split_gpus_per_job: Option<u64>,
    /// Cores and bytes to add for each device.
    pub(super) per_gpu: (f64, f64),
    pub(super) repeat: u64,
    /// Part of the operations that is kept.
    pub(super) sample: f64,
    /// Jobs that come from one run together or not at all.
    pub(super) gang: bool,
    /// Instead of a run time that is not known.
    pub(super) missing_run: MissingRun,
    /// `cluster` and `pool_trees` of the file.
    pub(super) cluster: Option<Value>,
    pub(super) pool_trees: Option<Value>,
}

/// When jobs of an operation arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrivals {
    /// When they were submitted.
    Submission,
    /// When they were started: the waits of the log are kept.
    Start,
}

/// Limits of memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Memory {
    /// What was asked for; nothing known: the default of the format.
    Requested,
    ConstPerCpu(f64),
    /// Of all that a user's jobs in a queue used per core.
    UserPercentile {
        p: f64,
        factor: f64,
        pow2: bool,
    },
}

/// Jobs whose peak of memory is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum UnknownPeak {
    /// That of another job of the same user, queue and task; without any, the whole limit.
    #[default]
    Draw,
    /// The whole limit.
    Limit,
    /// They are left out.
    Skip,
}

/// Rows without a run time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum MissingRun {
    Skip,
    /// The median of their queue.
    Median,
    Seconds(f64),
}

impl Mapping {
    /// Everything as the log has it.
    pub fn plain() -> Mapping {
        Mapping {
            pool: None,
            operation: None,
            arrivals: None,
            fallback_parent: None,
            time_scale: 1.0,
            arrival_scale: 1.0,
            start_time: None,
            window: None,
            filter: BTreeMap::new(),
            processors_used: false,
            job_cpu: None,
            queue_names: BTreeMap::new(),
            memory: Memory::Requested,
            unknown_peak: UnknownPeak::default(),
            cpu_usage: None,
            split_gpus_per_job: None,
            per_gpu: (0.0, 0.0),
            repeat: 1,
            sample: 1.0,
            gang: false,
            missing_run: MissingRun::Skip,
            cluster: None,
            pool_trees: None,
        }
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Mapping, SimError> {
        let document = read_value(path)?;
        let (at, inner) = match document.get("import") {
            Some(inner) => ("import", inner),
            None => ("", &document),
        };
        let map = inner.as_map().ok_or_else(|| SimError::file(path, "expected a JSON object"))?;
        let mut fields = Fields::new(map, at);
        let mapping = read(&mut fields).and_then(|m| fields.finish().map(|()| m));
        let mut mapping = mapping.map_err(|e| SimError::field(path, None, e))?;
        if at == "import" {
            let known = ["import", "cluster", "pool_trees", "comment"];
            let unknown =
                document.as_map().and_then(|m| m.key_strings().find(|k| !known.contains(&k.as_str())));
            if let Some(key) = unknown {
                let what = format!("unknown option, known beside \"import\" are {known:?}");
                return Err(SimError::field(path, None, FieldError::new(key, &what)));
            }
            mapping.cluster = document.get("cluster").cloned();
            mapping.pool_trees = document.get("pool_trees").cloned();
        }
        Ok(mapping)
    }

    /// Cores of the file's cluster.
    pub(super) fn cores(&self) -> Option<f64> {
        let groups = self.cluster.as_ref()?.get("node_groups")?.as_list()?;
        let cores = |g: &Value| {
            Some(g.get("count")?.as_f64()? * g.get("resource_limits").and_then(|l| l.get("cpu")?.as_f64())?)
        };
        Some(groups.iter().filter_map(cores).sum())
    }
}

fn read(f: &mut Fields<'_>) -> Result<Mapping, FieldError> {
    // Said for people: what to read is on the command line.
    f.take_parsed("format", "\"swf\", \"mjobs\" or \"event-log\"", |s| {
        ["swf", "mjobs", "event-log"].contains(&s).then_some(())
    })
    .optional()?;
    let scale = |f: &mut Fields<'_>, name: &str| f.take_f64(name).within(1e-6..=1e6).or(1.0);
    let pool = f.take_str("pool").optional()?;
    if let Some(pool) = pool {
        super::places::check(pool).map_err(|why| f.error("pool", &why))?;
    }
    let operation = f.take_str("operation").optional()?;
    if let Some(template) = operation {
        super::places::check(template).map_err(|why| f.error("operation", &why))?;
    }
    let arrivals = f.take_parsed("arrivals", "\"submission\" or \"start\"", |s| match s {
        "submission" => Some(Arrivals::Submission),
        "start" => Some(Arrivals::Start),
        _ => None,
    });
    let arrivals = arrivals.optional()?;
    let window = match f.take_list("window").optional()? {
        None => None,
        Some(list) => match list.iter().map(Value::as_f64).collect::<Option<Vec<_>>>().as_deref() {
            Some([from, to]) if *from >= 0.0 && from < to => Some((*from, *to)),
            _ => return Err(f.error("window", "expected [from, to], seconds of the log, from < to")),
        },
    };
    let (memory, unknown_peak) = read_memory(f)?;
    let cpu_usage = match f.take_value("cpu_usage").optional()? {
        None => None,
        Some(value) if value.as_str() == Some("avg_cpu") => None,
        Some(value) if value.as_str().is_some() => {
            return Err(f.expected("cpu_usage", "\"avg_cpu\" or a distribution of cores", value));
        }
        Some(value) => Some((Dist::read(&f.path_of("cpu_usage"), value)?, value.clone())),
    };
    let per_gpu = f.nested("per_gpu", |f| {
        let cpu = f.take_f64("cpu").within(0.0..=1e4).or(0.0)?;
        Ok::<_, FieldError>((cpu, f.take_f64("memory").within(0.0..=1e15).or(0.0)?))
    })?;
    Ok(Mapping {
        pool: pool.map(str::to_owned),
        operation: operation.map(str::to_owned),
        arrivals,
        fallback_parent: f.take_str("fallback_parent").optional()?.map(str::to_owned),
        time_scale: scale(f, "time_scale")?,
        arrival_scale: scale(f, "arrival_scale")?,
        start_time: f.take_parsed("start_time", "a date", Time::parse).optional()?,
        window,
        filter: read_filter(f)?,
        processors_used: f
            .take_parsed("processors", "\"requested\" or \"used\"", |s| match s {
                "requested" => Some(false),
                "used" => Some(true),
                _ => None,
            })
            .or(false)?,
        job_cpu: f.take_f64("job_cpu").within(0.01..=1e6).optional()?,
        queue_names: read_names(f)?,
        memory,
        unknown_peak,
        cpu_usage,
        split_gpus_per_job: f.take_u64("split_gpus_per_job").within(1..=1024).optional()?,
        per_gpu: per_gpu.unwrap_or_default(),
        repeat: f.take_u64("repeat").within(1..=1000).or(1)?,
        sample: f.take_f64("sample").check("a part from 0 to 1, not 0", |s| *s > 0.0 && *s <= 1.0).or(1.0)?,
        gang: f.take_bool("gang").or(false)?,
        missing_run: match f.take_value("missing_run_s").optional()? {
            None => MissingRun::Skip,
            Some(value) => match (value.as_str(), value.as_f64()) {
                (Some("median_of_queue"), _) => MissingRun::Median,
                (None, Some(s)) if s > 0.0 && s.is_finite() => MissingRun::Seconds(s),
                _ => {
                    return Err(f.expected(
                        "missing_run_s",
                        "seconds above 0, or \"median_of_queue\"",
                        value,
                    ));
                }
            },
        },
        cluster: None,
        pool_trees: None,
    })
}

fn read_filter(f: &mut Fields<'_>) -> Result<BTreeMap<String, Vec<String>>, FieldError> {
    let mut filter = BTreeMap::new();
    let empty = Map::new();
    for (name, values) in f.take_map("filter").or(&empty)?.iter() {
        let name = String::from_utf8_lossy(name).into_owned();
        let at = f.path_of(&format!("filter/{name}"));
        if !COLUMNS.contains(&name.as_str()) {
            return Err(FieldError::new(at, &format!("no such column, known are {COLUMNS:?}")));
        }
        let words = values.as_list().and_then(|list| {
            list.iter()
                .map(|v| v.as_str().map(str::to_owned).or_else(|| Some(v.as_i64()?.to_string())))
                .collect()
        });
        filter.insert(name, words.ok_or_else(|| FieldError::expected(at, "a list of words", values))?);
    }
    Ok(filter)
}

fn read_names(f: &mut Fields<'_>) -> Result<BTreeMap<String, String>, FieldError> {
    let empty = Map::new();
    let map = f.take_map("queue_names").or(&empty)?;
    let each = map.iter().map(|(number, name)| {
        let number = String::from_utf8_lossy(number).into_owned();
        let at = f.path_of(&format!("queue_names/{number}"));
        let name = name.as_str().filter(|n| !n.is_empty());
        let name = name.ok_or_else(|| FieldError::new(at, "expected a name that is not empty"))?;
        Ok((number, name.to_owned()))
    });
    each.collect()
}

fn read_memory(f: &mut Fields<'_>) -> Result<(Memory, UnknownPeak), FieldError> {
    let expected = "\"req_mem_per_proc\", or a map with at most one of {\"const_per_cpu\": bytes} and \
                    {\"user_percentile\": {\"p\", \"factor\", \"round\": \"pow2\"}}, and \"unknown_peak\"";
    let nothing = (Memory::Requested, UnknownPeak::default());
    let Some(value) = f.take_value("memory").optional()? else { return Ok(nothing) };
    let wrong = || FieldError::expected(f.path_of("memory"), expected, value);
    if value.as_str() == Some("req_mem_per_proc") {
        return Ok(nothing);
    }
    let map = value.as_map().filter(|m| !m.is_empty()).ok_or_else(wrong)?;
    let mut inner = Fields::new(map, f.path_of("memory"));
    let bytes = inner.take_f64("const_per_cpu").within(1.0..=1e15).optional()?;
    let percentile = inner.nested("user_percentile", |f| {
        let p = f.take_f64("p").within(0.0..=1.0).required()?;
        let factor = f.take_f64("factor").within(0.01..=1000.0).or(1.0)?;
        let pow2 = f.take_parsed("round", "\"pow2\"", |s| (s == "pow2").then_some(())).optional()?.is_some();
        Ok::<_, FieldError>(Memory::UserPercentile { p, factor, pow2 })
    })?;
    let unknown = inner.take_parsed("unknown_peak", "\"draw\", \"limit\" or \"skip\"", |s| match s {
        "draw" => Some(UnknownPeak::Draw),
        "limit" => Some(UnknownPeak::Limit),
        "skip" => Some(UnknownPeak::Skip),
        _ => None,
    });
    let unknown = unknown.or(UnknownPeak::default())?;
    inner.finish()?;
    let memory = match (percentile, bytes) {
        (Some(_), Some(_)) => return Err(wrong()),
        (Some(percentile), None) => percentile,
        (None, Some(bytes)) => Memory::ConstPerCpu(bytes),
        (None, None) => Memory::Requested,
    };
    Ok((memory, unknown))
}
