//! What jobs have used.

use vocab::{
    CpuMonitorChange, CpuMonitorReport, CpuMonitorStatistics, DiskUsage, JobStatistics, PreparationMeasures,
    Span, StorageRequests, Summary, Time, TmpfsUsage,
};

use super::pb;

impl From<&JobStatistics> for pb::JobStatistics {
    fn from(s: &JobStatistics) -> pb::JobStatistics {
        let custom = |(name, x): &(String, Summary)| pb::CustomStatistic {
            name: name.clone(),
            sum: x.sum,
            count: x.count,
            min: x.min,
            max: x.max,
            last: x.last,
        };
        let tmpfs = |t: &TmpfsUsage| pb::TmpfsUsage { size: t.size, max_size: t.max_size };
        // Most jobs have none, and a message that is not there costs nothing.
        let has_tmpfs = s.user_job_tmpfs != TmpfsUsage::default();
        pb::JobStatistics {
            wait_for_resources: s.wait_for_resources.0,
            prepare: s.prepare.0,
            artifacts_download: s.artifacts_download.0,
            exec: s.exec.0,
            user_job_cpu_user: s.user_job_cpu_user.0,
            user_job_cpu_system: s.user_job_cpu_system.0,
            user_job_cpu_throttled: s.user_job_cpu_throttled.0,
            user_job_cpu_wait: s.user_job_cpu_wait.0,
            job_proxy_cpu_user: s.job_proxy_cpu_user.0,
            job_proxy_cpu_system: s.job_proxy_cpu_system.0,
            user_job_context_switches: s.user_job_context_switches,
            user_job_bytes_read: s.user_job_bytes_read,
            user_job_bytes_written: s.user_job_bytes_written,
            job_proxy_context_switches: s.job_proxy_context_switches,
            job_proxy_bytes_read: s.job_proxy_bytes_read,
            job_proxy_bytes_written: s.job_proxy_bytes_written,
            user_job_max_memory: s.user_job_max_memory,
            user_job_peak_memory: s.user_job_peak_memory,
            user_job_current_rss: s.user_job_current_rss,
            user_job_current_mapped_file: s.user_job_current_mapped_file,
            user_job_major_page_faults: s.user_job_major_page_faults,
            user_job_cumulative_memory_mb_sec: s.user_job_cumulative_memory_mb_sec,
            job_proxy_max_memory: s.job_proxy_max_memory,
            user_job_tmpfs: has_tmpfs.then(|| tmpfs(&s.user_job_tmpfs)),
            user_job_tmpfs_volumes: s.user_job_tmpfs_volumes.iter().map(tmpfs).collect(),
            user_job_disk: s.user_job_disk.as_ref().map(|d| pb::DiskUsage {
                usage: d.usage,
                max_usage: d.max_usage,
                limit: d.limit,
            }),
            cpu_monitor: s.cpu_monitor.as_ref().map(pb::CpuMonitorReport::from),
            job_proxy_cpu_wait: s.job_proxy_cpu_wait.0,
            preparation: s.preparation.as_deref().map(Into::into),
            custom: s.custom.iter().map(custom).collect(),
            tables: s.tables.as_deref().map(Into::into),
            user_job_requests: s
                .user_job_requests
                .map(|r| pb::StorageRequests { reads: r.reads, writes: r.writes }),
        }
    }
}
impl From<pb::JobStatistics> for JobStatistics {
    fn from(s: pb::JobStatistics) -> JobStatistics {
        let custom = |x: pb::CustomStatistic| {
            (x.name, Summary { sum: x.sum, count: x.count, min: x.min, max: x.max, last: x.last })
        };
        let tmpfs = |t: pb::TmpfsUsage| TmpfsUsage { size: t.size, max_size: t.max_size };
        JobStatistics {
            wait_for_resources: Span(s.wait_for_resources),
            prepare: Span(s.prepare),
            artifacts_download: Span(s.artifacts_download),
            exec: Span(s.exec),
            user_job_cpu_user: Span(s.user_job_cpu_user),
            user_job_cpu_system: Span(s.user_job_cpu_system),
            user_job_cpu_throttled: Span(s.user_job_cpu_throttled),
            user_job_cpu_wait: Span(s.user_job_cpu_wait),
            job_proxy_cpu_user: Span(s.job_proxy_cpu_user),
            job_proxy_cpu_system: Span(s.job_proxy_cpu_system),
            user_job_context_switches: s.user_job_context_switches,
            user_job_bytes_read: s.user_job_bytes_read,
            user_job_bytes_written: s.user_job_bytes_written,
            job_proxy_context_switches: s.job_proxy_context_switches,
            job_proxy_bytes_read: s.job_proxy_bytes_read,
            job_proxy_bytes_written: s.job_proxy_bytes_written,
            user_job_max_memory: s.user_job_max_memory,
            user_job_peak_memory: s.user_job_peak_memory,
            user_job_current_rss: s.user_job_current_rss,
            user_job_current_mapped_file: s.user_job_current_mapped_file,
            user_job_major_page_faults: s.user_job_major_page_faults,
            user_job_cumulative_memory_mb_sec: s.user_job_cumulative_memory_mb_sec,
            job_proxy_max_memory: s.job_proxy_max_memory,
            user_job_tmpfs: s.user_job_tmpfs.map(tmpfs).unwrap_or_default(),
            user_job_tmpfs_volumes: s.user_job_tmpfs_volumes.into_iter().map(tmpfs).collect(),
            user_job_disk: s
                .user_job_disk
                .map(|d| Box::new(DiskUsage { usage: d.usage, max_usage: d.max_usage, limit: d.limit })),
            cpu_monitor: s.cpu_monitor.map(CpuMonitorReport::from),
            job_proxy_cpu_wait: Span(s.job_proxy_cpu_wait),
            preparation: s.preparation.map(|p| Box::new(p.into())),
            custom: s.custom.into_iter().map(custom).collect(),
            tables: s.tables.map(|t| Box::new(t.into())),
            user_job_requests: s
                .user_job_requests
                .map(|r| StorageRequests { reads: r.reads, writes: r.writes }),
        }
    }
}

impl From<&PreparationMeasures> for pb::PreparationMeasures {
    fn from(p: &PreparationMeasures) -> pb::PreparationMeasures {
        pb::PreparationMeasures {
            prepare_root_fs: p.prepare_root_fs.0,
            cache_hit_artifacts_size: p.cache_hit_artifacts_size,
            cache_miss_artifacts_size: p.cache_miss_artifacts_size,
            cache_bypassed_artifacts_size: p.cache_bypassed_artifacts_size,
        }
    }
}
impl From<pb::PreparationMeasures> for PreparationMeasures {
    fn from(p: pb::PreparationMeasures) -> PreparationMeasures {
        PreparationMeasures {
            prepare_root_fs: Span(p.prepare_root_fs),
            cache_hit_artifacts_size: p.cache_hit_artifacts_size,
            cache_miss_artifacts_size: p.cache_miss_artifacts_size,
            cache_bypassed_artifacts_size: p.cache_bypassed_artifacts_size,
        }
    }
}

impl From<&CpuMonitorReport> for pb::CpuMonitorReport {
    fn from(r: &CpuMonitorReport) -> pb::CpuMonitorReport {
        let s = &r.statistics;
        pb::CpuMonitorReport {
            smoothed_cpu_usage: s.smoothed_cpu_usage_x100,
            preemptible_cpu: s.preemptible_cpu_x100,
            aggregated_smoothed_cpu_usage: s.aggregated_smoothed_cpu_usage_x100,
            aggregated_max_cpu_usage: s.aggregated_max_cpu_usage_x100,
            aggregated_preemptible_cpu: s.aggregated_preemptible_cpu_x100,
            aggregated_preempted_cpu: s.aggregated_preempted_cpu_x100,
            limit: r.limit,
            smoothed: r.smoothed,
            reclaims: r.reclaims,
            votes: r.votes.clone(),
            last_change: r.last_change.map(|c| pb::CpuMonitorChange {
                time: c.time.0,
                from: c.from,
                to: c.to,
                applied: c.applied,
            }),
        }
    }
}
impl From<pb::CpuMonitorReport> for CpuMonitorReport {
    fn from(r: pb::CpuMonitorReport) -> CpuMonitorReport {
        CpuMonitorReport {
            statistics: CpuMonitorStatistics {
                smoothed_cpu_usage_x100: r.smoothed_cpu_usage,
                preemptible_cpu_x100: r.preemptible_cpu,
                aggregated_smoothed_cpu_usage_x100: r.aggregated_smoothed_cpu_usage,
                aggregated_max_cpu_usage_x100: r.aggregated_max_cpu_usage,
                aggregated_preemptible_cpu_x100: r.aggregated_preemptible_cpu,
                aggregated_preempted_cpu_x100: r.aggregated_preempted_cpu,
            },
            limit: r.limit,
            smoothed: r.smoothed,
            reclaims: r.reclaims,
            votes: r.votes,
            last_change: r.last_change.map(|c| CpuMonitorChange {
                time: Time(c.time),
                from: c.from,
                to: c.to,
                applied: c.applied,
            }),
        }
    }
}
