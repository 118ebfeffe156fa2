//! `models` and `output` (simulator.md 3, 5.6 to 5.8).

use super::{YEAR_MS, milliseconds};
use vocab::Span;
use yson::fields::{FieldError, Fields};

/// How the memory of jobs is modelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MemoryModel {
    /// Jobs never tell what they use.
    Off,
    /// One step to the peak, at a random time of the first half.
    #[default]
    Peak,
    /// By the curve of the task.
    Curve,
}

/// What is reserved for the memory of jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MemoryPolicy {
    /// What the digests say, as in production.
    #[default]
    Digest,
    /// The limit.
    Limit,
    /// The peak, as if it were known before: the best that there can be.
    Oracle,
}

/// How the CPU of jobs is modelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CpuModel {
    /// Jobs use what they use, and always get it.
    #[default]
    Off,
    /// Shared on the node, with the monitor's own checks.
    Exact,
    /// The same with so long between two checks.
    Coarse(Span),
}

/// How late things are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delays {
    /// From the submission to the scheduler.
    pub operation_prepare: Span,
    /// From the end of a job to the scheduler.
    pub job_end_to_scheduler: Span,
    /// From a heartbeat to what it starts: controllers answer so late.
    pub schedule_allocation: Span,
    /// From a change of pools or operations to the scheduler.
    pub watcher: Span,
}

/// What is modelled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Models {
    /// Memory of jobs.
    pub memory: MemoryModel,
    /// What is reserved.
    pub memory_policy: MemoryPolicy,
    /// CPU of jobs.
    pub cpu: CpuModel,
    /// How late things are known.
    pub delays: Delays,
}

pub(super) fn read_models(f: &mut Fields<'_>) -> Result<Models, FieldError> {
    let memory = f.take_parsed("memory", "\"off\", \"peak\" or \"curve\"", |s| match s {
        "off" => Some(MemoryModel::Off),
        "peak" => Some(MemoryModel::Peak),
        "curve" => Some(MemoryModel::Curve),
        _ => None,
    });
    let memory = memory.or(MemoryModel::Peak)?;
    let memory_policy = f.take_parsed("memory_policy", "\"digest\", \"limit\" or \"oracle\"", |s| match s {
        "digest" => Some(MemoryPolicy::Digest),
        "limit" => Some(MemoryPolicy::Limit),
        "oracle" => Some(MemoryPolicy::Oracle),
        _ => None,
    });
    let memory_policy = memory_policy.or(MemoryPolicy::Digest)?;
    const CPU: &str = "\"off\", \"exact\" or \"coarse:MS\" with 1 to 3600000 milliseconds between two checks";
    let cpu = f.take_parsed("cpu", CPU, |s| match s {
        "off" => Some(CpuModel::Off),
        "exact" => Some(CpuModel::Exact),
        _ => {
            let ms = s.strip_prefix("coarse:")?.parse().ok().filter(|ms| (1..=3_600_000).contains(ms))?;
            Some(CpuModel::Coarse(Span::from_millis(ms)))
        }
    });
    let cpu = cpu.or(CpuModel::Off)?;
    let delays = f.nested("delays", |f| {
        let mut delay =
            |name| Ok::<_, FieldError>(milliseconds(f, name, 0..=86_400_000)?.unwrap_or_default());
        Ok::<_, FieldError>(Delays {
            operation_prepare: delay("operation_prepare")?,
            job_end_to_scheduler: delay("job_end_to_scheduler")?,
            schedule_allocation: delay("schedule_allocation")?,
            watcher: delay("watcher")?,
        })
    })?;
    Ok(Models { memory, memory_policy, cpu, delays: delays.unwrap_or_default() })
}

/// What is written.
#[derive(Clone, Debug)]
pub struct Output {
    /// Between two rows of a pool.
    pub pool_series_period: Span,
    /// Of the first row.
    pub pool_series_shift: Span,
    /// Write `allocations.csv`.
    pub allocations: bool,
    /// Write `nodes.csv`.
    pub node_series: bool,
    /// Write `operation_series.csv`.
    pub operation_series: bool,
    /// Write `events.jsonl`.
    pub event_log: bool,
}

impl Default for Output {
    fn default() -> Output {
        Output {
            pool_series_period: Span::from_secs(60),
            pool_series_shift: Span::ZERO,
            allocations: true,
            node_series: false,
            operation_series: false,
            event_log: false,
        }
    }
}

pub(super) fn read_output(f: &mut Fields<'_>) -> Result<Output, FieldError> {
    let default = Output::default();
    let period = milliseconds(f, "pool_series_period_ms", 1..=YEAR_MS)?;
    let shift = milliseconds(f, "pool_series_shift_ms", 0..=YEAR_MS)?;
    Ok(Output {
        pool_series_period: period.unwrap_or(default.pool_series_period),
        pool_series_shift: shift.unwrap_or(default.pool_series_shift),
        allocations: f.take_bool("allocations").or(default.allocations)?,
        node_series: f.take_bool("node_series").or(default.node_series)?,
        operation_series: f.take_bool("operation_series").or(default.operation_series)?,
        event_log: f.take_bool("event_log").or(default.event_log)?,
    })
}
