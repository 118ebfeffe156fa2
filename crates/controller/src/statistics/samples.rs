//! One job's numbers, dense: the system statistics are an array in the order of [`PATHS`].

use crate::memory::{Factors, MemoryRequest};
use crate::packed::{Packer, Unpacker};
use vocab::{Cpu, JobStatistics, Span, Summary};

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
];

/// Memory file systems are numbered in the public paths, so they have no place in [`PATHS`]. In durable
/// records they follow from this place on, two for each.
const VOLUMES: usize = 1 << 10;

/// Parts of a memory file system's path, `user_job/tmpfs_volumes/<k>/<part>`, in the order of places.
pub(super) const VOLUME_PARTS: [&str; 2] = ["size", "max_size"];

/// Number of the volume, and of its part, at a place of a durable record.
pub(super) fn volume_at(place: u64) -> Option<(usize, usize)> {
    let offset = usize::try_from(place).ok()?.checked_sub(VOLUMES)?;
    (offset < 2 * MAX_VOLUMES).then_some((offset / 2, offset % 2))
}

/// Inverse of [`volume_at`].
pub(super) fn volume_place(volume: usize, part: usize) -> u64 {
    (VOLUMES + 2 * volume + part) as u64
}

/// More than any job has; a bound for what is read from the store.
const MAX_VOLUMES: usize = 1 << 10;

pub(super) fn volume_path(volume: usize, part: usize) -> String {
    format!("user_job/tmpfs_volumes/{volume}/{}", VOLUME_PARTS[part])
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
    /// Size and largest size of each memory file system.
    pub volumes: Vec<[i64; 2]>,
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
        let disk = measured.and_then(|m| m.user_job_disk);
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
        debug_assert_eq!(system.len(), PATHS.len());
        let volumes = measured.map(|m| m.user_job_tmpfs_volumes.as_slice()).unwrap_or_default();
        JobSamples {
            system,
            volumes: volumes.iter().map(|v| [v.size, v.max_size]).collect(),
            custom: measured.map(|m| m.custom.clone()).unwrap_or_default(),
        }
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
        for (volume, parts) in self.volumes.iter().enumerate() {
            for (part, value) in parts.iter().enumerate() {
                out.unsigned(volume_place(volume, part)).signed(*value);
            }
        }
        out.finish()
    }

    /// Inverse of [`JobSamples::pack_system`]. Places of a newer program are passed over.
    pub(crate) fn unpack_system(bytes: &[u8], custom: Vec<(String, Summary)>) -> Option<JobSamples> {
        let mut samples = JobSamples { system: vec![None; PATHS.len()], volumes: Vec::new(), custom };
        let mut input = Unpacker::new(bytes);
        while !input.is_empty() {
            let (place, value) = (input.unsigned()?, input.signed()?);
            if let Some((volume, part)) = volume_at(place) {
                samples.volumes.resize(samples.volumes.len().max(volume + 1), [0; 2]);
                samples.volumes[volume][part] = value;
            } else if let Some(slot) = usize::try_from(place).ok().and_then(|p| samples.system.get_mut(p)) {
                *slot = Some(value);
            }
        }
        Some(samples)
    }
}
