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
}

/// What is modelled.
#[derive(Clone, Debug, Default)]
pub struct Models {
    /// Memory of jobs.
    pub memory: MemoryModel,
}

pub(super) fn read_models(f: &mut Fields<'_>) -> Result<Models, FieldError> {
    let memory = f.take_parsed("memory", "\"off\" or \"peak\"", |s| match s {
        "off" => Some(MemoryModel::Off),
        "peak" => Some(MemoryModel::Peak),
        _ => None,
    });
    let memory = memory.or(MemoryModel::Peak)?;
    f.take_parsed("cpu", "\"off\"", |s| (s == "off").then_some(())).optional()?;
    Ok(Models { memory })
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
    /// Write `events.jsonl`.
    pub event_log: bool,
}

impl Default for Output {
    fn default() -> Output {
        Output {
            pool_series_period: Span::from_secs(60),
            pool_series_shift: Span::ZERO,
            allocations: true,
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
        event_log: f.take_bool("event_log").or(default.event_log)?,
    })
}
