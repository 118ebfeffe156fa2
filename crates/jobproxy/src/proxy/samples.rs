//! Memory and CPU of a running job, once per period (jobs-and-nodes.md 4.8, 7.2).

use crate::protocol::{Progress, SpawnerConfig};
use cage::{Container, ProcessInfo, process, sys};
use std::time::{Duration, Instant};
use vocab::Span;

pub(super) struct Samples {
    include_mapped_files: bool,
    taken_at: Instant,
    progress: Progress,
    cumulative_memory: f64,
    /// Of the last sample in which the job used a good part of its limit: the kernel may leave
    /// nothing to list.
    processes: Vec<ProcessInfo>,
    oom_kills: u64,
}

impl Samples {
    pub fn new(config: &SpawnerConfig) -> Samples {
        Samples {
            include_mapped_files: config.include_memory_mapped_files,
            taken_at: Instant::now(),
            progress: Progress::default(),
            cumulative_memory: 0.0,
            processes: Vec::new(),
            oom_kills: 0,
        }
    }

    /// Takes one. What cannot be read keeps its old value: a missing number must not end a job.
    pub fn take(&mut self, container: &mut dyn Container, memory_limit: i64) {
        let now = Instant::now();
        let s = &mut self.progress.statistics;
        if let Ok(m) = container.memory() {
            let mapped = if self.include_mapped_files { m.mapped_file } else { 0 };
            let usage = m.rss + m.shared + mapped;
            let seconds = now.duration_since(self.taken_at).as_secs_f64();
            self.cumulative_memory += usage as f64 * seconds / f64::from(1 << 20);
            self.progress.user_memory = usage;
            s.user_job_cumulative_memory_mb_sec = self.cumulative_memory as i64;
            s.user_job_max_memory = s.user_job_max_memory.max(m.rss + m.shared + m.mapped_file);
            s.user_job_current_rss = m.rss;
            s.user_job_current_mapped_file = m.mapped_file;
            s.user_job_major_page_faults = s.user_job_major_page_faults.max(m.major_page_faults);
            self.oom_kills = self.oom_kills.max(m.oom_kills);
            if (usage > memory_limit / 4 || m.oom_kills > 0)
                && let Ok(processes) = container.processes()
                && !processes.is_empty()
            {
                self.processes = processes;
            }
        }
        if let Ok(cpu) = container.cpu() {
            s.user_job_cpu_user = span(cpu.user);
            s.user_job_cpu_system = span(cpu.system);
            s.user_job_cpu_throttled = span(cpu.throttled);
        }
        let own = sys::own_usage();
        s.job_proxy_cpu_user = span(own.user);
        s.job_proxy_cpu_system = span(own.system);
        if let Some((resident, shared)) = process::memory_of(std::process::id()) {
            self.progress.proxy_memory = resident - shared;
            s.job_proxy_max_memory = s.job_proxy_max_memory.max(resident - shared);
        }
        self.taken_at = now;
    }

    /// A job shorter than the period has no sample while it runs; what the kernel remembers of its
    /// largest process is then the best there is.
    pub fn add_peak_of_root(&mut self, max_rss: i64, memory_limit: i64) {
        let max = &mut self.progress.statistics.user_job_max_memory;
        *max = (*max).max(max_rss.min(memory_limit));
    }

    pub fn oom_kills(&self) -> u64 {
        self.oom_kills
    }
    pub fn processes(&self) -> &[ProcessInfo] {
        &self.processes
    }
    pub fn progress(&self) -> &Progress {
        &self.progress
    }
}

fn span(d: Duration) -> Span {
    Span(d.as_micros() as u64)
}
