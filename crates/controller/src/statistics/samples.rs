//! One job's numbers, dense: the system statistics are an array in the order of [`PATHS`].

use crate::memory::{Factors, MemoryRequest};
use crate::packed::{Packer, Unpacker};
use std::collections::BTreeMap;
use vocab::{Cpu, JobStatistics, PipeUse, Span, Summary};

/// Public paths of system statistics (jobs-and-nodes.md 7.2).
///
/// Append only: a statistic's place in this list is its name in durable records.
pub const PATHS: &[&str] = &[
    "time/total",
    "time/wait_for_resources",
    "time/prepare",
    "time/artifacts_download",
    "time/exec",
    "user_job/cpu/user",
    "user_job/cpu/system",
    "user_job/cpu/throttled",
    "job_proxy/cpu/user",
    "job_proxy/cpu/system",
    "user_job/max_memory",
    "user_job/current_memory/rss",
    "user_job/current_memory/mapped_file",
    "user_job/current_memory/major_page_faults",
    "user_job/cumulative_memory_mb_sec",
    "job_proxy/max_memory",
    "user_job/memory_limit",
    "user_job/memory_reserve",
    "user_job/memory_reserve_factor_x10000",
    "job_proxy/estimated_memory",
    "job_proxy/memory_reserve",
    "job_proxy/memory_reserve_factor_x10000",
    "user_job/cpu_reserve_millicores",
    "user_job/vcpu_reserve_millicores",
    "user_job/gpu_reserve",
    "user_job/cumulative_max_memory",
    "user_job/cumulative_memory_reserve",
    "job_proxy/cumulative_max_memory",
    "job_proxy/cumulative_memory_reserve",
    "job_proxy/cumulative_estimated_memory",
    "user_job/cpu/wait",
    "user_job/cpu/cfs_throttled",
    "user_job/cpu/context_switches",
    "user_job/block_io/bytes_read",
    "user_job/block_io/bytes_written",
    "job_proxy/cpu/context_switches",
    "job_proxy/block_io/bytes_read",
    "job_proxy/block_io/bytes_written",
    "user_job/tmpfs_size",
    "user_job/max_tmpfs_size",
    "job_proxy/smoothed_cpu_usage_x100",
    "job_proxy/preemptible_cpu_x100",
    "job_proxy/aggregated_smoothed_cpu_usage_x100",
    "job_proxy/aggregated_max_cpu_usage_x100",
    "job_proxy/aggregated_preemptible_cpu_x100",
    "job_proxy/aggregated_preempted_cpu_x100",
    "job_proxy/preemptable_cpu_x100",
    "job_proxy/aggregated_preemptable_cpu_x100",
    "user_job/disk/usage",
    "user_job/disk/max_usage",
    "user_job/disk/limit",
    "time/prepare_root_fs",
    "time/gpu_check",
    "job_proxy/cpu/wait",
    "job_proxy/cpu/throttled",
    "job_proxy/cpu/cfs_throttled",
    "user_job/cpu/burst",
    "exec_agent/artifacts/cache_hit_artifacts_size",
    "exec_agent/artifacts/cache_miss_artifacts_size",
    "exec_agent/artifacts/cache_bypassed_artifacts_size",
    "data/input/row_count",
    "data/input/data_weight",
    "data/input/uncompressed_data_size",
    "data/input/not_fully_consumed",
    "user_job/block_io/io_read",
    "user_job/block_io/io_write",
    "user_job/block_io/io_total",
    "user_job/pipes/input/bytes",
    "user_job/pipes/input/idle_time",
    "user_job/pipes/input/busy_time",
    "user_job/pipes/output/total/bytes",
    "user_job/pipes/output/total/idle_time",
    "user_job/pipes/output/total/busy_time",
];

/// Things of which a job may have several: they are numbered in the public paths, so they have no place in
/// [`PATHS`]. In durable records each kind follows from a place of its own on, `parts` for each thing.
struct Numbered {
    first: u64,
    path: &'static str,
    parts: &'static [&'static str],
}

/// Memory file systems, output tables, and the pipes of these. Append only.
const NUMBERED: [Numbered; 3] = [
    Numbered { first: 1 << 10, path: "user_job/tmpfs_volumes", parts: &["size", "max_size"] },
    Numbered {
        first: 1 << 14,
        path: "data/output",
        parts: &["row_count", "data_weight", "uncompressed_data_size"],
    },
    Numbered { first: 1 << 15, path: "user_job/pipes/output", parts: &["bytes", "idle_time", "busy_time"] },
];
const VOLUMES: usize = 0;
const OUTPUTS: usize = 1;
const PIPES: usize = 2;
/// More than any job has of one kind; a bound for what is read from the store.
const MAX_NUMBER: usize = 1 << 10;

fn numbered_place(kind: usize, number: usize, part: usize) -> u64 {
    let Numbered { first, parts, .. } = NUMBERED[kind];
    first + (number * parts.len() + part) as u64
}

/// The path at a place of a durable record that is not in [`PATHS`].
pub(super) fn numbered_path(place: u64) -> Option<String> {
    NUMBERED.iter().find_map(|kind| {
        let offset = usize::try_from(place.checked_sub(kind.first)?).ok()?;
        let (number, part) = (offset / kind.parts.len(), offset % kind.parts.len());
        (number < MAX_NUMBER).then(|| format!("{}/{number}/{}", kind.path, kind.parts[part]))
    })
}

/// What the controller itself knows about a job.
#[derive(Clone, Copy, Debug)]
pub struct JobFacts {
    /// End minus start of the job; now minus start of a running one.
    pub total_time: Span,
    /// CPU guarantee at start.
    pub cpu_limit: Cpu,
    /// Devices.
    pub gpu_limit: i64,
    /// Limit of the spec.
    pub memory_limit: i64,
    /// Reserves at start.
    pub reserve: MemoryRequest,
    /// Factors the reserves were made with.
    pub factors: Factors,
    /// Estimate of the job proxy's memory.
    pub job_proxy_estimate: i64,
}

/// Samples of one job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobSamples {
    /// By place in [`PATHS`]; shorter if it comes from an older record.
    pub system: Vec<Option<i64>>,
    /// What a job may have several of, by the place in durable records.
    pub numbered: BTreeMap<u64, i64>,
    /// Custom statistics: name (one key, whatever it contains), summary.
    pub custom: Vec<(String, Summary)>,
}

fn millis(span: Span) -> Option<i64> {
    Some(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
}

/// Bytes over time: trunc(value * duration_ms / 1000).
fn cumulative(value: i64, time: Span) -> Option<i64> {
    let product = i128::from(value) * i128::from(time.as_millis()) / 1_000;
    Some(i64::try_from(product).unwrap_or(i64::MAX))
}

fn x10000(factor: f64) -> Option<i64> {
    Some((factor * 10_000.0).trunc() as i64)
}

/// Bytes, idle and busy time.
fn pipe_values(pipe: PipeUse) -> [i64; 3] {
    let spent = |span: Span| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    [pipe.bytes, spent(pipe.idle_time), spent(pipe.busy_time)]
}

/// All pipes as if they were one.
fn all_of(pipes: &[PipeUse]) -> PipeUse {
    pipes.iter().fold(PipeUse::default(), |all, pipe| PipeUse {
        bytes: all.bytes.saturating_add(pipe.bytes),
        idle_time: Span(all.idle_time.0.saturating_add(pipe.idle_time.0)),
        busy_time: Span(all.busy_time.0.saturating_add(pipe.busy_time.0)),
    })
}

impl JobSamples {
    /// Samples of a job; without `measured` (it never reported) only what the controller knows.
    pub fn new(facts: &JobFacts, measured: Option<&JobStatistics>) -> JobSamples {
        let of = |f: fn(&JobStatistics) -> Option<i64>| measured.and_then(f);
        let reserve = &facts.reserve;
        let millicores = Some(facts.cpu_limit.0.saturating_mul(10));
        let mut system = vec![
            millis(facts.total_time),
            of(|m| millis(m.wait_for_resources)),
            of(|m| millis(m.prepare)),
            of(|m| millis(m.artifacts_download)),
            of(|m| millis(m.exec)),
            of(|m| millis(m.user_job_cpu_user)),
            of(|m| millis(m.user_job_cpu_system)),
            of(|m| millis(m.user_job_cpu_throttled)),
            of(|m| millis(m.job_proxy_cpu_user)),
            of(|m| millis(m.job_proxy_cpu_system)),
            of(|m| Some(m.user_job_max_memory)),
            of(|m| Some(m.user_job_current_rss)),
            of(|m| Some(m.user_job_current_mapped_file)),
            of(|m| Some(m.user_job_major_page_faults)),
            of(|m| Some(m.user_job_cumulative_memory_mb_sec)),
            of(|m| Some(m.job_proxy_max_memory)),
            Some(facts.memory_limit),
            Some(reserve.user_job_reserve),
            x10000(reserve.user_job_reserve as f64 / facts.memory_limit as f64),
            Some(facts.job_proxy_estimate),
            Some(reserve.job_proxy_reserve),
            x10000(facts.factors.job_proxy),
            millicores,
            millicores,
            Some(facts.gpu_limit),
            measured.and_then(|m| cumulative(m.user_job_max_memory, facts.total_time)),
            cumulative(reserve.user_job_reserve, facts.total_time),
            measured.and_then(|m| cumulative(m.job_proxy_max_memory, facts.total_time)),
            cumulative(reserve.job_proxy_reserve, facts.total_time),
            cumulative(facts.job_proxy_estimate, facts.total_time),
            of(|m| millis(m.user_job_cpu_wait)),
            of(|m| millis(m.user_job_cpu_throttled)),
            of(|m| Some(m.user_job_context_switches)),
            of(|m| Some(m.user_job_bytes_read)),
            of(|m| Some(m.user_job_bytes_written)),
            of(|m| Some(m.job_proxy_context_switches)),
            of(|m| Some(m.job_proxy_bytes_read)),
            of(|m| Some(m.job_proxy_bytes_written)),
            of(|m| Some(m.user_job_tmpfs.size)),
            of(|m| Some(m.user_job_tmpfs.max_size)),
        ];
        // The monitor has something to say only once it has measured (1.6).
        let monitor = measured.and_then(|m| m.cpu_monitor.as_ref()).map(|m| m.statistics.samples());
        system.extend((0..8).map(|i| monitor.as_ref().map(|samples| samples[i].1)));
        // Of a job whose disk space nobody counts nothing is known.
        let disk = measured.and_then(|m| m.user_job_disk.as_deref());
        system.extend([disk.map(|d| d.usage), disk.map(|d| d.max_usage), disk.and_then(|d| d.limit)]);
        let preparation = measured.map(|m| m.preparation.as_deref().copied().unwrap_or_default());
        system.extend([
            preparation.and_then(|p| millis(p.prepare_root_fs)),
            // Devices are not tried out before a job, no cap holds a job proxy back, and caps let nobody save up
            // for a burst: nothing is what these take.
            of(|_| Some(0)),
            of(|m| millis(m.job_proxy_cpu_wait)),
            of(|_| Some(0)),
            of(|_| Some(0)),
            of(|_| Some(0)),
            preparation.map(|p| p.cache_hit_artifacts_size),
            preparation.map(|p| p.cache_miss_artifacts_size),
            preparation.map(|p| p.cache_bypassed_artifacts_size),
        ]);
        let tables = measured.and_then(|m| m.tables.as_deref());
        system.extend([
            tables.map(|t| t.input.row_count),
            tables.map(|t| t.input.data_weight),
            tables.map(|t| t.input.uncompressed_data_size),
            tables.map(|t| t.not_fully_consumed.into()),
        ]);
        let requests = measured.and_then(|m| m.user_job_requests);
        system.extend([
            requests.map(|r| r.reads),
            requests.map(|r| r.writes),
            requests.map(|r| r.reads.saturating_add(r.writes)),
        ]);
        for pipe in [tables.map(|t| t.input_pipe), tables.map(|t| all_of(&t.output_pipes))] {
            let values = pipe.map(pipe_values);
            system.extend((0..3).map(|i| values.map(|values| values[i])));
        }
        debug_assert_eq!(system.len(), PATHS.len());
        let mut numbered = BTreeMap::new();
        let mut put = |kind: usize, number: usize, values: &[i64]| {
            for (part, value) in values.iter().enumerate().filter(|_| number < MAX_NUMBER) {
                numbered.insert(numbered_place(kind, number, part), *value);
            }
        };
        for (number, v) in measured.iter().flat_map(|m| m.user_job_tmpfs_volumes.iter().enumerate()) {
            put(VOLUMES, number, &[v.size, v.max_size]);
        }
        for (number, o) in tables.iter().flat_map(|t| t.outputs.iter().enumerate()) {
            put(OUTPUTS, number, &[o.row_count, o.data_weight, o.uncompressed_data_size]);
        }
        for (number, pipe) in tables.iter().flat_map(|t| t.output_pipes.iter().enumerate()) {
            put(PIPES, number, &pipe_values(*pipe));
        }
        JobSamples { system, numbered, custom: measured.map(|m| m.custom.clone()).unwrap_or_default() }
    }

    /// The same job with newer figures of its node; what the controller itself knows stays.
    pub(crate) fn measured_again(&self, measured: &JobStatistics) -> JobSamples {
        let total_time = self.get("time/total").and_then(|millis| u64::try_from(millis).ok()).unwrap_or(0);
        let facts = JobFacts {
            total_time: Span::from_millis(total_time),
            cpu_limit: Cpu(0),
            gpu_limit: 0,
            memory_limit: 0,
            reserve: MemoryRequest { total: 0, user_job_reserve: 0, job_proxy_reserve: 0 },
            factors: Factors { user_job: 0.0, job_proxy: 0.0 },
            job_proxy_estimate: 0,
        };
        let mut samples = JobSamples::new(&facts, Some(measured));
        let known = JobSamples::new(&facts, None).system;
        for (place, _) in known.iter().enumerate().filter(|(_, value)| value.is_some()) {
            samples.system[place] = self.system.get(place).copied().flatten();
        }
        samples
    }

    /// The system sample at a path.
    pub fn get(&self, path: &str) -> Option<i64> {
        let place = PATHS.iter().position(|p| *p == path)?;
        self.system.get(place).copied().flatten()
    }

    /// Places and values of what is there, packed.
    pub(crate) fn pack_system(&self) -> Vec<u8> {
        let mut out = Packer::default();
        for (place, value) in self.system.iter().enumerate() {
            if let Some(value) = value {
                out.unsigned(place as u64).signed(*value);
            }
        }
        for (place, value) in &self.numbered {
            out.unsigned(*place).signed(*value);
        }
        out.finish()
    }

    /// Inverse of [`JobSamples::pack_system`]. Places of a newer program are passed over.
    pub(crate) fn unpack_system(bytes: &[u8], custom: Vec<(String, Summary)>) -> Option<JobSamples> {
        let mut samples = JobSamples { system: vec![None; PATHS.len()], numbered: BTreeMap::new(), custom };
        let mut input = Unpacker::new(bytes);
        while !input.is_empty() {
            let (place, value) = (input.unsigned()?, input.signed()?);
            if numbered_path(place).is_some() {
                samples.numbered.insert(place, value);
            } else if let Some(slot) = usize::try_from(place).ok().and_then(|p| samples.system.get_mut(p)) {
                *slot = Some(value);
            }
        }
        Some(samples)
    }
}
