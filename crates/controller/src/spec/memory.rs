//! Options whose reader is the crate that acts on them (jobs-and-nodes.md 1.2, 2.2, 2.7): the CPU
//! monitor's and the memory digests'. Here they only get their place in the spec.

use super::reader::Reader;
use vocab::Failure;

pub use reserve::cpu_monitor::Options as CpuMonitorOptions;
pub use reserve::memory_digest::{JobProxyOptions as ProxyDigestOptions, ScriptOptions as MemoryOptions};

/// The section `job_cpu_monitor`.
pub(super) fn cpu_monitor(r: &mut Reader<'_>) -> Result<CpuMonitorOptions, Failure> {
    r.section(reserve::cpu_monitor::SECTION, |r| {
        r.options(&reserve::cpu_monitor::NAMES, CpuMonitorOptions::read, CpuMonitorOptions::to_map)
    })
}

/// The section `job_proxy_memory_digest`; what it leaves out is taken from `base`.
pub(super) fn job_proxy_digest(
    r: &mut Reader<'_>,
    base: &ProxyDigestOptions,
) -> Result<ProxyDigestOptions, Failure> {
    r.section(ProxyDigestOptions::SECTION, |r| {
        r.options(
            &ProxyDigestOptions::NAMES,
            |f| ProxyDigestOptions::read(f, base),
            ProxyDigestOptions::to_map,
        )
    })
}

/// Options of a script about its jobs' memory.
pub(super) fn script_memory(r: &mut Reader<'_>) -> Result<MemoryOptions, Failure> {
    r.options(&MemoryOptions::NAMES, MemoryOptions::read, MemoryOptions::to_map)
}
