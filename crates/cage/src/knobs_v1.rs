//! Control files of v1 controllers (jobs-and-nodes.md 4.4, 4.5, 4.8).

use crate::environment::{BlockIo, CageError, MemoryUsage};
use crate::group::{Group, field, number};
use std::path::Path;
use std::time::Duration;
use vocab::Cpu;

const PERIOD_US: i64 = 100_000;

/// `max(2, round(1024 * g))`.
pub(crate) fn shares(cores: Cpu) -> i64 {
    ((cores.0.saturating_mul(1024) + 50) / 100).clamp(2, 262_144)
}

/// Quota of a period; at least 0.01 core (4.5).
pub(crate) fn quota_us(cores: Cpu) -> i64 {
    cores.0.max(1).saturating_mul(PERIOD_US / 100)
}

pub(crate) fn set_cpu_guarantee(cpu: &Group, cores: Cpu) -> Result<(), CageError> {
    cpu.write("cpu.shares", &shares(cores).to_string())
}

pub(crate) fn set_cpu_cap(cpu: &Group, cores: Option<Cpu>) -> Result<(), CageError> {
    match cores {
        Some(cores) => {
            cpu.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
            cpu.write("cpu.cfs_quota_us", &quota_us(cores).to_string())
        }
        None => cpu.write("cpu.cfs_quota_us", "-1"),
    }
}

/// Bounds that the v1 controller of memory has on this host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct MemoryBounds {
    /// Of memory and swap together.
    pub swap: bool,
    /// Of buffers of sockets, which the bound of memory leaves out.
    pub sockets: bool,
}

impl MemoryBounds {
    /// As the files at the mount point of the hierarchy say.
    pub fn of(mount: &Path) -> MemoryBounds {
        let has = |file| mount.join(file).exists();
        MemoryBounds { swap: has("memory.memsw.limit_in_bytes"), sockets: has(SOCKETS) }
    }
}

/// The kernel counts buffers of all protocols here, not only of TCP.
const SOCKETS: &str = "memory.kmem.tcp.limit_in_bytes";

/// Buffers of sockets get as much again. Memory and memory + swap may never cross, so the order depends on the direction;
/// trying both orders is simpler than knowing the old value.
pub(crate) fn set_memory_limit(
    memory: &Group,
    bounds: MemoryBounds,
    bytes: Option<i64>,
) -> Result<(), CageError> {
    let text = bytes.map_or("-1".to_owned(), |b| b.max(0).to_string());
    if bounds.sockets {
        memory.write(SOCKETS, &text)?;
    }
    if !bounds.swap {
        return memory.write("memory.limit_in_bytes", &text);
    }
    let first = memory.write("memory.limit_in_bytes", &text);
    memory.write("memory.memsw.limit_in_bytes", &text)?;
    if first.is_err() { memory.write("memory.limit_in_bytes", &text) } else { Ok(()) }
}

pub(crate) fn set_pids_limit(pids: &Group, limit: Option<u32>) -> Result<(), CageError> {
    pids.write("pids.max", &limit.map_or("max".to_owned(), |n| n.to_string()))
}

pub(crate) fn throttled(cpu: &Group) -> Result<Duration, CageError> {
    Ok(Duration::from_nanos(field(&cpu.read("cpu.stat")?, "throttled_time").unwrap_or(0)))
}

/// User and system time; `cpuacct.stat` counts ticks, the total in ns is exact, so the ticks give
/// the proportion only.
pub(crate) fn cpu_times(cpuacct: &Group) -> Result<(Duration, Duration), CageError> {
    let stat = cpuacct.read("cpuacct.stat")?;
    let (user, system) = (field(&stat, "user").unwrap_or(0), field(&stat, "system").unwrap_or(0));
    let total: u64 = cpuacct.read("cpuacct.usage")?.trim().parse().unwrap_or(0);
    let user_ns = match user + system {
        0 => total,
        ticks => (u128::from(total) * u128::from(user) / u128::from(ticks)) as u64,
    };
    Ok((Duration::from_nanos(user_ns), Duration::from_nanos(total - user_ns)))
}

const REQUESTS: &str = "blkio.throttle.io_serviced_recursive";

/// Is anything counted for groups of this hierarchy? A host has always read something.
pub(crate) fn counts_io(mount: &Path) -> bool {
    Group::new(mount).read(REQUESTS).is_ok_and(|text| text.lines().any(|line| line.contains(':')))
}

/// Lines of each device, `8:0 Read 4096`, and a total that is not needed.
pub(crate) fn block_io(blkio: &Group) -> Option<BlockIo> {
    let bytes = blkio.read("blkio.throttle.io_service_bytes_recursive").ok()?;
    let requests = blkio.read(REQUESTS).ok()?;
    let sum = |text: &str, kind: &str| {
        let of_device = |line: &str| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            (fields.next() == Some(kind)).then(|| fields.next()?.parse::<i64>().ok()).flatten()
        };
        text.lines().filter_map(of_device).fold(0, i64::saturating_add)
    };
    Some(BlockIo {
        bytes_read: sum(&bytes, "Read"),
        bytes_written: sum(&bytes, "Write"),
        reads: sum(&requests, "Read"),
        writes: sum(&requests, "Write"),
    })
}

pub(crate) fn memory(memory: &Group) -> Result<MemoryUsage, CageError> {
    let stat = memory.read("memory.stat")?;
    let get = |key| field(&stat, key).unwrap_or(0) as i64;
    let shared = get("total_shmem");
    let oom_kills = oom_kills(memory)?;
    Ok(MemoryUsage {
        rss: get("total_rss"),
        mapped_file: (get("total_mapped_file") - shared).max(0),
        shared,
        major_page_faults: get("total_pgmajfault"),
        oom_kills,
        peak: if oom_kills > 0 { number(memory, "memory.max_usage_in_bytes") } else { 0 },
    })
}

fn oom_kills(memory: &Group) -> Result<u64, CageError> {
    Ok(field(&memory.read("memory.oom_control")?, "oom_kill").unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S16: what the hierarchy has no file for is not enforced, and is found out before a job starts.
    #[test]
    fn s16_a_kernel_without_a_bound_of_socket_buffers_is_recognised() {
        let hierarchy = tempfile::tempdir().expect("a directory");
        let group = Group::new(hierarchy.path());
        let file = hierarchy.path().join(SOCKETS);
        std::fs::write(hierarchy.path().join("memory.limit_in_bytes"), "").expect("room");
        let without = MemoryBounds::of(hierarchy.path());
        assert_eq!(without, MemoryBounds { swap: false, sockets: false });
        set_memory_limit(&group, without, Some(1 << 20)).expect("set");
        assert!(!file.exists(), "a write to a file that is not there would fail every job");
        std::fs::write(&file, "").expect("room");
        let with = MemoryBounds::of(hierarchy.path());
        assert_eq!(with, MemoryBounds { swap: false, sockets: true });
        set_memory_limit(&group, with, Some(1 << 20)).expect("set");
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "1048576");
    }

    #[test]
    fn guarantees_and_caps() {
        for (cores, want) in [(0.0, 2), (0.01, 10), (0.1, 102), (1.0, 1024), (2.5, 2560)] {
            assert_eq!(shares(Cpu::from_f64(cores)), want, "{cores}");
        }
        for (cores, want) in [(0.0, 1000), (0.01, 1000), (0.1, 10_000), (0.25, 25_000), (4.0, 400_000)] {
            assert_eq!(quota_us(Cpu::from_f64(cores)), want, "{cores}");
        }
    }
}
