//! Sums of a workload, and the proof that nothing was lost on the way into the file.

use super::build::constant;
use crate::error::SimError;
use crate::workload::{CpuUsage, Operation, Reader, Task};
use std::path::Path;
use yson::Map;

/// How far sums may be apart: times are whole milliseconds and cores whole hundredths in the file.
const TOLERANCE: f64 = 1e-3;

/// Sums over operations.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Totals {
    /// Operations.
    pub operations: u64,
    /// Tasks.
    pub tasks: u64,
    /// Jobs.
    pub jobs: u64,
    /// Cores asked for, times run time.
    pub core_seconds: f64,
    /// Cores in use, times run time; all of them, where nothing else is known.
    pub used_core_seconds: f64,
    /// Devices, times run time.
    pub gpu_seconds: f64,
    /// Limits of memory, times run time.
    pub gib_hours: f64,
    /// Peaks of memory, times run time; the limits, where nothing else is known.
    pub used_gib_hours: f64,
    /// Cores that all jobs ask for together.
    pub cores: f64,
    /// Devices that all jobs ask for together.
    pub gpus: u64,
    /// First submission.
    pub first_ms: u64,
    /// Last submission.
    pub last_ms: u64,
}

impl Totals {
    /// Adds equal jobs.
    #[allow(clippy::too_many_arguments)] // the columns of a row
    pub(super) fn add(
        &mut self,
        cpu: f64,
        used: f64,
        gpu: u64,
        memory: f64,
        peak: f64,
        jobs: u64,
        run_s: f64,
    ) {
        let seconds = run_s * jobs as f64;
        let gib_hours = memory / (1u64 << 30) as f64 * seconds / 3600.0;
        self.jobs += jobs;
        self.core_seconds += cpu * seconds;
        self.used_core_seconds += used * seconds;
        self.gpu_seconds += gpu as f64 * seconds;
        self.gib_hours += gib_hours;
        self.used_gib_hours += gib_hours * peak;
        self.cores += cpu * jobs as f64;
        self.gpus += gpu * jobs;
    }

    /// Both together.
    pub(super) fn and(&self, other: &Totals) -> Totals {
        let both = self.operations > 0 && other.operations > 0;
        let (early, late) = if self.operations > 0 { (self, other) } else { (other, self) };
        Totals {
            operations: self.operations + other.operations,
            tasks: self.tasks + other.tasks,
            jobs: self.jobs + other.jobs,
            core_seconds: self.core_seconds + other.core_seconds,
            used_core_seconds: self.used_core_seconds + other.used_core_seconds,
            gpu_seconds: self.gpu_seconds + other.gpu_seconds,
            gib_hours: self.gib_hours + other.gib_hours,
            used_gib_hours: self.used_gib_hours + other.used_gib_hours,
            cores: self.cores + other.cores,
            gpus: self.gpus + other.gpus,
            first_ms: if both { self.first_ms.min(other.first_ms) } else { early.first_ms },
            last_ms: if both { self.last_ms.max(late.last_ms) } else { early.last_ms },
        }
    }

    /// The sums of the file are those of the rows.
    pub(super) fn must_be(&self, want: &Totals, file: &Path) -> Result<(), SimError> {
        let counts = [("operations", self.operations, want.operations), ("jobs", self.jobs, want.jobs)];
        for (name, found, want) in counts {
            if found != want {
                return Err(SimError::file(
                    file,
                    format!("{found} {name} were written of {want} that were read"),
                ));
            }
        }
        let sums = [
            ("core-seconds", self.core_seconds, want.core_seconds),
            ("used core-seconds", self.used_core_seconds, want.used_core_seconds),
            ("GPU-seconds", self.gpu_seconds, want.gpu_seconds),
            ("GiB-hours", self.gib_hours, want.gib_hours),
        ];
        for (name, found, want) in sums {
            if (found - want).abs() > TOLERANCE * want.abs() {
                return Err(SimError::file(
                    file,
                    format!("{found} {name} were written of {want} that were read"),
                ));
            }
        }
        Ok(())
    }

    pub(super) fn to_map(self) -> Map {
        let round = |x: f64| (x * 10.0).round() / 10.0;
        yson::map! {
            "operations" => self.operations,
            "tasks" => self.tasks,
            "jobs" => self.jobs,
            "core_seconds" => round(self.core_seconds),
            "used_core_seconds" => round(self.used_core_seconds),
            "gpu_seconds" => round(self.gpu_seconds),
            "gib_hours" => round(self.gib_hours),
            "used_gib_hours" => round(self.used_gib_hours),
            "cores_of_all_jobs" => round(self.cores),
            "gpus_of_all_jobs" => self.gpus,
            "first_submission_ms" => self.first_ms,
            "last_submission_ms" => self.last_ms,
        }
    }
}

/// Sums of a workload file, read as a run reads it.
pub(super) fn of_file(path: &Path) -> Result<Totals, SimError> {
    let mut reader = Reader::open(path)?;
    let mut sum = Totals::default();
    while let Some(operation) = reader.take_next()? {
        sum = sum.and(&of(&operation));
    }
    Ok(sum)
}

fn of(operation: &Operation) -> Totals {
    let at = operation.at.as_millis();
    let mut sum = Totals {
        operations: 1,
        tasks: operation.tasks.len() as u64,
        first_ms: at,
        last_ms: at,
        ..Totals::default()
    };
    for task in &operation.tasks {
        add_task(task, &mut sum);
    }
    sum
}

fn add_task(task: &Task, sum: &mut Totals) {
    let (cpu, gpu, memory) = (task.cpu.as_f64(), task.gpu as u64, task.memory as f64);
    for job in &task.explicit {
        sum.add(cpu, job.cpu, gpu, memory, job.peak, 1, job.duration_ms / 1000.0);
    }
    let rest = task.job_count - task.explicit.len() as u64;
    let ms = constant(&task.duration).unwrap_or_default();
    let used = match &task.cpu_usage {
        Some(CpuUsage::Even(dist)) => constant(dist).unwrap_or(cpu),
        Some(CpuUsage::Curves(curves)) => curves[0].mean(ms / 1000.0),
        _ => cpu,
    };
    let peak = constant(&task.memory_usage).unwrap_or(1.0);
    sum.add(cpu, used, gpu, memory, peak, rest, ms / 1000.0);
}
