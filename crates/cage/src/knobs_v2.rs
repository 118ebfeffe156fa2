//! Control files of the v2 hierarchy (jobs-and-nodes.md 4.3, 4.5, 4.8).

use crate::environment::{BlockIo, CageError, CpuUsage, MemoryUsage};
use crate::group::{Group, field, number};
use std::time::Duration;
use vocab::Cpu;

/// `clamp(round(100 * g), 1, 10000)`; a `Cpu` is in hundredths already.
pub(crate) fn weight(cores: Cpu) -> i64 {
    cores.0.clamp(1, 10_000)
}

pub(crate) fn set_cpu_guarantee(group: &Group, cores: Cpu) -> Result<(), CageError> {
    group.write("cpu.weight", &weight(cores).to_string())
}

pub(crate) fn set_cpu_cap(group: &Group, cores: Option<Cpu>) -> Result<(), CageError> {
    let quota = cores.map_or("max".to_owned(), |c| (c.0.max(1) * 1000).to_string());
    group.write("cpu.max", &format!("{quota} 100000"))
}

pub(crate) fn set_memory_limit(group: &Group, bytes: Option<i64>) -> Result<(), CageError> {
    if bytes.is_some() {
        group.write("memory.oom.group", "1")?;
        // Absent without swap.
        if group.has("memory.swap.max") {
            group.write("memory.swap.max", "0")?;
        }
    }
    group.write("memory.max", &bytes.map_or("max".to_owned(), |b| b.max(0).to_string()))
}

pub(crate) fn set_pids_limit(group: &Group, limit: Option<u32>) -> Result<(), CageError> {
    group.write("pids.max", &limit.map_or("max".to_owned(), |n| n.to_string()))
}

/// Works without any controller: `throttled_usec` is then missing and zero.
pub(crate) fn cpu(group: &Group) -> Result<CpuUsage, CageError> {
    let stat = group.read("cpu.stat")?;
    let get = |key| Duration::from_micros(field(&stat, key).unwrap_or(0));
    Ok(CpuUsage { user: get("user_usec"), system: get("system_usec"), throttled: get("throttled_usec") })
}

/// Pressure of the group (4.5); kernels can be without it, and it works without any controller too.
pub(crate) fn cpu_wait(group: &Group) -> Option<Duration> {
    let pressure = group.read("cpu.pressure").ok()?;
    let some = pressure.lines().find(|line| line.starts_with("some "))?;
    let total = some.rsplit_once("total=")?.1.trim().parse().ok()?;
    Some(Duration::from_micros(total))
}

/// A line for each device: `8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6`. The file is there if the
/// controller is.
pub(crate) fn block_io(group: &Group) -> Option<BlockIo> {
    let stat = group.read("io.stat").ok()?;
    let sum = |key: &str| {
        let of_device = |field: &str| field.strip_prefix(key)?.strip_prefix('=')?.parse::<i64>().ok();
        stat.split_ascii_whitespace().filter_map(of_device).fold(0, i64::saturating_add)
    };
    Some(BlockIo {
        bytes_read: sum("rbytes"),
        bytes_written: sum("wbytes"),
        reads: sum("rios"),
        writes: sum("wios"),
    })
}

pub(crate) fn memory(group: &Group) -> Result<MemoryUsage, CageError> {
    let stat = group.read("memory.stat")?;
    let get = |key| field(&stat, key).unwrap_or(0) as i64;
    let shared = get("shmem");
    let oom_kills = field(&group.read("memory.events")?, "oom_kill").unwrap_or(0);
    Ok(MemoryUsage {
        rss: get("anon"),
        mapped_file: (get("file_mapped") - shared).max(0),
        shared,
        major_page_faults: get("pgmajfault"),
        oom_kills,
        peak: if oom_kills > 0 { number(group, "memory.peak") } else { 0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guarantee_becomes_weight() {
        for (cores, want) in [(0.0, 1), (0.01, 1), (0.1, 10), (1.0, 100), (200.0, 10_000)] {
            assert_eq!(weight(Cpu::from_f64(cores)), want, "{cores}");
        }
    }
}
