//! Memory and CPU of a running job, once per period (jobs-and-nodes.md 4.8, 7.2).

use super::thrashing::Thrashing;
use crate::protocol::{JobStart, Progress, SpawnerConfig};
use cage::sys::{self, Usage};
use cage::{Container, CpuUsage, MemoryUsage, ProcessInfo, process};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};
use vocab::{Span, TmpfsUsage};

pub(super) struct Samples {
    taken_at: Instant,
    progress: Progress,
    cumulative_memory: f64,
    /// For the error of a job that used too much: when the kernel has killed there is nobody left to list.
    processes: Vec<ProcessInfo>,
    /// Usage when they were listed.
    listed_at: i64,
    oom_kills: u64,
    /// What the kernel has seen at most, once it has killed.
    kernel_peak: i64,
    thrashing: Option<Thrashing>,
    is_thrashing: bool,
    /// The job's memory file systems, by descriptor: a path of the job's making could lead to a file system
    /// that never answers. None: it could not be opened.
    volumes: Vec<Option<OwnedFd>>,
}

impl Samples {
    /// Before the job's first instruction.
    pub fn new(config: &SpawnerConfig, start: &JobStart) -> Samples {
        let now = Instant::now();
        Samples {
            taken_at: now,
            progress: Progress::default(),
            cumulative_memory: 0.0,
            processes: Vec::new(),
            listed_at: 0,
            oom_kills: 0,
            kernel_peak: 0,
            thrashing: Thrashing::new(&config.job_thrashing_detector, now),
            is_thrashing: false,
            volumes: start.tmpfs_volumes.iter().map(|path| hold(path)).collect(),
        }
    }

    /// Takes one. What cannot be read keeps its old value: a missing number must not end a job.
    pub fn take(&mut self, cpu: Option<CpuUsage>, container: &mut dyn Container, start: &JobStart) {
        let now = Instant::now();
        self.take_own();
        if let Ok(memory) = container.memory() {
            self.take_memory(now, &memory, start);
            self.list_processes(memory.oom_kills > 0, container, start.memory_limit);
            let faults = self.progress.statistics.user_job_major_page_faults;
            self.is_thrashing |= self.thrashing.as_mut().is_some_and(|t| t.look(now, faults));
        }
        let s = &mut self.progress.statistics;
        if let Some(cpu) = cpu {
            s.user_job_cpu_user = span(cpu.user);
            s.user_job_cpu_system = span(cpu.system);
            s.user_job_cpu_throttled = span(cpu.throttled);
        }
        if let Some(wait) = container.cpu_wait() {
            s.user_job_cpu_wait = span(wait);
        }
        if let Some(io) = container.block_io() {
            s.user_job_bytes_read = s.user_job_bytes_read.max(io.bytes_read);
            s.user_job_bytes_written = s.user_job_bytes_written.max(io.bytes_written);
            let known = s.user_job_requests.get_or_insert_default();
            known.reads = known.reads.max(io.reads);
            known.writes = known.writes.max(io.writes);
        }
        self.taken_at = now;
    }

    /// The proxy itself.
    fn take_own(&mut self) {
        let own = sys::own_usage();
        let s = &mut self.progress.statistics;
        s.job_proxy_cpu_user = span(own.user);
        s.job_proxy_cpu_system = span(own.system);
        s.job_proxy_cpu_wait = sys::own_cpu_wait().map_or(s.job_proxy_cpu_wait, span);
        s.job_proxy_context_switches = own.context_switches;
        s.job_proxy_bytes_read = own.bytes_read;
        s.job_proxy_bytes_written = own.bytes_written;
        if let Some((resident, shared)) = process::memory_of(std::process::id()) {
            self.progress.proxy_memory = resident - shared;
            s.job_proxy_max_memory = s.job_proxy_max_memory.max(resident - shared);
        }
    }

    /// The definitions of 4.8. Pages of memory file systems are shared memory to the kernel and are
    /// counted once, as files; so are they if they lie in the memory of another job's group.
    fn take_memory(&mut self, now: Instant, memory: &MemoryUsage, start: &JobStart) {
        self.take_tmpfs();
        let s = &mut self.progress.statistics;
        let tmpfs = s.user_job_tmpfs.size;
        let net = memory.rss + (memory.shared - tmpfs).max(0);
        let counted = if start.include_memory_mapped_files { memory.mapped_file } else { 0 };
        let usage = net + tmpfs + counted;
        let seconds = now.duration_since(self.taken_at).as_secs_f64();
        self.cumulative_memory += usage as f64 * seconds / f64::from(1 << 20);
        s.user_job_cumulative_memory_mb_sec = self.cumulative_memory as i64;
        s.user_job_max_memory = s.user_job_max_memory.max(net + memory.mapped_file);
        s.user_job_peak_memory = s.user_job_peak_memory.max(net + tmpfs + memory.mapped_file);
        s.user_job_current_rss = memory.rss;
        s.user_job_current_mapped_file = memory.mapped_file;
        s.user_job_major_page_faults = s.user_job_major_page_faults.max(memory.major_page_faults);
        self.oom_kills = self.oom_kills.max(memory.oom_kills);
        self.kernel_peak = self.kernel_peak.max(memory.peak);
        self.progress.user_memory = usage;
        let total = usage.saturating_add(self.progress.proxy_memory);
        self.progress.holds.total_peak = self.progress.holds.total_peak.max(total);
    }

    fn take_tmpfs(&mut self) {
        let s = &mut self.progress.statistics;
        s.user_job_tmpfs_volumes.resize(self.volumes.len(), TmpfsUsage::default());
        for (volume, mount) in s.user_job_tmpfs_volumes.iter_mut().zip(&self.volumes) {
            if let Some(size) = mount.as_ref().and_then(used_of) {
                volume.size = size;
                volume.max_size = volume.max_size.max(size);
            }
        }
        let all = &mut s.user_job_tmpfs;
        all.size = s.user_job_tmpfs_volumes.iter().map(|volume| volume.size).sum();
        all.max_size = all.max_size.max(all.size);
    }

    /// Listing costs three files for each process, so it is done when the job comes near its limit, and
    /// again only when it has grown. The dead and the dying have nothing to tell.
    fn list_processes(&mut self, oom_killed: bool, container: &mut dyn Container, memory_limit: i64) {
        let usage = self.progress.user_memory;
        let near = usage > memory_limit / 4 && usage >= self.listed_at.saturating_add(memory_limit / 16);
        let late = oom_killed && self.processes.is_empty();
        if (near || late)
            && let Ok(processes) = container.processes()
            && processes.first().is_some_and(|largest| largest.rss > 0)
        {
            self.processes = processes;
            self.listed_at = usage;
        }
    }

    /// What the kernel says of the root process and of those that were waited for, at its end.
    ///
    /// A job shorter than the period has no sample while it runs; the largest process is then the best
    /// there is to know of its memory.
    pub fn add_end_of_root(&mut self, usage: &Usage, memory_limit: i64) {
        let s = &mut self.progress.statistics;
        let peak = usage.max_rss.min(memory_limit);
        s.user_job_max_memory = s.user_job_max_memory.max(peak);
        s.user_job_peak_memory = s.user_job_peak_memory.max(peak);
        s.user_job_context_switches = usage.context_switches;
        // Groups are not charged with what is written for them later, and see what was not waited for.
        s.user_job_bytes_read = s.user_job_bytes_read.max(usage.bytes_read);
        s.user_job_bytes_written = s.user_job_bytes_written.max(usage.bytes_written);
    }

    /// Of the last sample.
    pub fn age(&self) -> Duration {
        self.taken_at.elapsed()
    }
    pub fn oom_kills(&self) -> u64 {
        self.oom_kills
    }
    /// Usage of a job that took too much, bytes. After a kill by the kernel the dead have given it back already; what
    /// they had together the kernel knows.
    pub fn excess(&self, memory_limit: i64) -> i64 {
        self.progress.user_memory.max(self.kernel_peak.min(memory_limit))
    }
    /// It has been reading its own pages again for too long.
    pub fn is_thrashing(&self) -> bool {
        self.is_thrashing
    }
    pub fn processes(&self) -> &[ProcessInfo] {
        &self.processes
    }
    pub fn progress(&self) -> &Progress {
        &self.progress
    }
}

/// A directory, without any right but to ask about it; links are not followed.
fn hold(path: &Path) -> Option<OwnedFd> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS).ok()
}

/// Bytes taken in a memory file system; none if it is another one.
fn used_of(mount: &OwnedFd) -> Option<i64> {
    const TMPFS: u64 = 0x0102_1994;
    let fs = rustix::fs::fstatfs(mount).ok().filter(|fs| fs.f_type as u64 == TMPFS)?;
    i64::try_from((fs.f_blocks - fs.f_bfree).saturating_mul(fs.f_bsize as u64)).ok()
}

fn span(d: Duration) -> Span {
    Span(d.as_micros() as u64)
}
