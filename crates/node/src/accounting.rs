//! How jobs are measured and counted while they run (jobs-and-nodes.md 1.5, 3.4-3.6, 4.8, 10).

use jobproxy::protocol::{SpawnerConfig, ThrashingDetector};
use nodecore::Settings;
use vocab::Span;

/// Options of a node about what its jobs use.
#[derive(Clone, PartialEq, Debug)]
pub struct Accounting {
    /// Period of reports of a job proxy; what changes the job's resources is told at once. Default 5 s.
    pub job_proxy_heartbeat_period: Span,
    /// The CPU monitor's limit is written as a hard quota as well, not as a weight only. Default false.
    pub cpu_monitor_sets_cap: bool,
    /// A running job is counted with so many bytes more than it was seen with. Default 0.
    pub ahead_memory_reserve: i64,
    /// A job above its reserve is aborted at once, whether the node has memory or not. Default false.
    pub always_abort_on_memory_reserve_overdraft: bool,
    /// CPU above the node's limit is endured this long. Default 10 min.
    pub cpu_overdraft_timeout: Span,
    /// Memory above the node's limit is endured this long. Default 5 min.
    pub memory_overdraft_timeout: Span,
    /// Statistics of one running job are sent to the server at most this often. Default 30 s.
    pub running_job_statistics_sending_backoff: Span,
    /// Percentage of time that all processes of the host waited for memory in the last ten seconds (PSI,
    /// `memory full avg10`) above which a job above its reserve is aborted. Default: none.
    pub memory_pressure_abort_threshold: Option<f64>,
    /// After more aborts in a row, not ordered by anybody, the node starts no jobs for ten minutes. Default 500.
    pub max_consecutive_job_aborts: u32,
    /// Free memory of the host, bytes, that is left alone when jobs start (3.3). Default: none, and the host
    /// is not asked.
    pub free_memory_watermark: Option<i64>,
    /// What is said of a running job between two samples is not older than this. Default 100 ms.
    pub memory_tracker_cache_period: Span,
    /// `oom_score_adj` of processes above their memory reserve, -1000 to 1000. Default: none.
    pub oom_score_adj_on_exceeded_memory_reserve: Option<i32>,
    /// The kernel slows a job down at 98 % of its memory limit; needs `cgroup_v2`. Default false.
    pub use_memory_high: bool,
    /// Aborts jobs that read their own pages again and again. Default: disabled.
    pub job_thrashing_detector: ThrashingDetector,
}

impl Default for Accounting {
    fn default() -> Accounting {
        Accounting {
            job_proxy_heartbeat_period: Span::from_secs(5),
            cpu_monitor_sets_cap: false,
            ahead_memory_reserve: 0,
            always_abort_on_memory_reserve_overdraft: false,
            cpu_overdraft_timeout: Span::from_secs(600),
            memory_overdraft_timeout: Span::from_secs(300),
            running_job_statistics_sending_backoff: Span::from_secs(30),
            memory_pressure_abort_threshold: None,
            max_consecutive_job_aborts: 500,
            free_memory_watermark: None,
            memory_tracker_cache_period: Span::from_millis(100),
            oom_score_adj_on_exceeded_memory_reserve: None,
            use_memory_high: false,
            job_thrashing_detector: ThrashingDetector::default(),
        }
    }
}

impl Accounting {
    /// What job proxies have to know.
    pub(crate) fn tell_proxies(&self, config: &mut SpawnerConfig) {
        config.job_proxy_heartbeat_period = self.job_proxy_heartbeat_period;
        config.cpu_monitor_sets_cap = self.cpu_monitor_sets_cap;
        config.memory_tracker_cache_period = self.memory_tracker_cache_period;
        config.oom_score_adj_on_exceeded_memory_reserve = self.oom_score_adj_on_exceeded_memory_reserve;
        config.use_memory_high = self.use_memory_high;
        config.job_thrashing_detector = self.job_thrashing_detector.clone();
    }

    /// What the core has to know.
    pub(crate) fn tell_core(&self, settings: &mut Settings) {
        settings.ahead_memory_reserve = self.ahead_memory_reserve;
        settings.always_abort_on_memory_reserve_overdraft = self.always_abort_on_memory_reserve_overdraft;
        settings.max_consecutive_job_aborts = self.max_consecutive_job_aborts;
        settings.free_memory_watermark = self.free_memory_watermark;
        settings.cpu_overdraft_timeout = self.cpu_overdraft_timeout;
        settings.memory_overdraft_timeout = self.memory_overdraft_timeout;
        settings.running_job_statistics_sending_backoff = self.running_job_statistics_sending_backoff;
    }
}
