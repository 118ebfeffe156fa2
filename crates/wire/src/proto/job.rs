//! Jobs: identity, description, statistics, outcome.

use vocab::{
    AllocationId, Artifact, Cpu, JobDescription, JobId, JobIdentity, JobOutcome, JobStatistics, ObjectId,
    OperationId, Span, Summary, Time,
};

use super::{Malformed, id_bytes, id_from, name_from, pb, required};
use crate::{FinishedJob, JobReport, StartJob};

impl From<&JobIdentity> for pb::JobIdentity {
    fn from(j: &JobIdentity) -> pb::JobIdentity {
        pb::JobIdentity {
            job_id: id_bytes(j.job_id.0),
            allocation_id: id_bytes(j.allocation_id.0),
            operation_id: id_bytes(j.operation_id.0),
            tree: j.tree.clone(),
            task: j.task.clone(),
            cookie: j.cookie,
            job_index: j.job_index,
            task_job_index: j.task_job_index,
        }
    }
}
impl TryFrom<pb::JobIdentity> for JobIdentity {
    type Error = Malformed;
    fn try_from(j: pb::JobIdentity) -> Result<JobIdentity, Malformed> {
        Ok(JobIdentity {
            job_id: JobId(id_from("job_id", &j.job_id)?),
            allocation_id: AllocationId(id_from("allocation_id", &j.allocation_id)?),
            operation_id: OperationId(id_from("operation_id", &j.operation_id)?),
            tree: j.tree,
            task: j.task,
            cookie: j.cookie,
            job_index: j.job_index,
            task_job_index: j.task_job_index,
        })
    }
}

impl From<&Artifact> for pb::Artifact {
    fn from(a: &Artifact) -> pb::Artifact {
        pb::Artifact {
            file_id: id_bytes(a.file_id.0),
            revision: a.revision,
            size: a.size,
            file_name: a.file_name.clone(),
            executable: a.executable,
        }
    }
}
impl TryFrom<pb::Artifact> for Artifact {
    type Error = Malformed;
    fn try_from(a: pb::Artifact) -> Result<Artifact, Malformed> {
        Ok(Artifact {
            file_id: ObjectId(id_from("file_id", &a.file_id)?),
            revision: a.revision,
            size: a.size,
            file_name: a.file_name,
            executable: a.executable,
        })
    }
}

impl From<&JobDescription> for pb::JobDescription {
    fn from(d: &JobDescription) -> pb::JobDescription {
        let variable =
            |(name, value): &(String, String)| pb::Variable { name: name.clone(), value: value.clone() };
        pb::JobDescription {
            command: d.command.clone(),
            environment: d.environment.iter().map(variable).collect(),
            files: d.files.iter().map(pb::Artifact::from).collect(),
            cpu_limit_hundredths: d.cpu_limit.0,
            set_container_cpu_limit: d.set_container_cpu_limit,
            memory_limit: d.memory_limit,
            user_job_memory_reserve: d.user_job_memory_reserve,
            job_proxy_memory_reserve: d.job_proxy_memory_reserve,
            job_time_limit: d.job_time_limit.map(|x| x.0),
            max_stderr_size: d.max_stderr_size,
            interruption_signal: d.interruption_signal.clone(),
            signal_root_process_only: d.signal_root_process_only,
            restart_exit_code: d.restart_exit_code,
            custom_statistics_count_limit: d.custom_statistics_count_limit,
        }
    }
}
impl TryFrom<pb::JobDescription> for JobDescription {
    type Error = Malformed;
    fn try_from(d: pb::JobDescription) -> Result<JobDescription, Malformed> {
        Ok(JobDescription {
            command: d.command,
            environment: d.environment.into_iter().map(|v| (v.name, v.value)).collect(),
            files: d.files.into_iter().map(Artifact::try_from).collect::<Result<_, _>>()?,
            cpu_limit: Cpu(d.cpu_limit_hundredths),
            set_container_cpu_limit: d.set_container_cpu_limit,
            memory_limit: d.memory_limit,
            user_job_memory_reserve: d.user_job_memory_reserve,
            job_proxy_memory_reserve: d.job_proxy_memory_reserve,
            job_time_limit: d.job_time_limit.map(Span),
            max_stderr_size: d.max_stderr_size,
            interruption_signal: d.interruption_signal,
            signal_root_process_only: d.signal_root_process_only,
            restart_exit_code: d.restart_exit_code,
            custom_statistics_count_limit: d.custom_statistics_count_limit,
        })
    }
}

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
        pb::JobStatistics {
            wait_for_resources: s.wait_for_resources.0,
            prepare: s.prepare.0,
            artifacts_download: s.artifacts_download.0,
            exec: s.exec.0,
            user_job_cpu_user: s.user_job_cpu_user.0,
            user_job_cpu_system: s.user_job_cpu_system.0,
            user_job_cpu_throttled: s.user_job_cpu_throttled.0,
            job_proxy_cpu_user: s.job_proxy_cpu_user.0,
            job_proxy_cpu_system: s.job_proxy_cpu_system.0,
            user_job_max_memory: s.user_job_max_memory,
            user_job_current_rss: s.user_job_current_rss,
            user_job_current_mapped_file: s.user_job_current_mapped_file,
            user_job_major_page_faults: s.user_job_major_page_faults,
            user_job_cumulative_memory_mb_sec: s.user_job_cumulative_memory_mb_sec,
            job_proxy_max_memory: s.job_proxy_max_memory,
            custom: s.custom.iter().map(custom).collect(),
        }
    }
}
impl From<pb::JobStatistics> for JobStatistics {
    fn from(s: pb::JobStatistics) -> JobStatistics {
        let custom = |x: pb::CustomStatistic| {
            (x.name, Summary { sum: x.sum, count: x.count, min: x.min, max: x.max, last: x.last })
        };
        JobStatistics {
            wait_for_resources: Span(s.wait_for_resources),
            prepare: Span(s.prepare),
            artifacts_download: Span(s.artifacts_download),
            exec: Span(s.exec),
            user_job_cpu_user: Span(s.user_job_cpu_user),
            user_job_cpu_system: Span(s.user_job_cpu_system),
            user_job_cpu_throttled: Span(s.user_job_cpu_throttled),
            job_proxy_cpu_user: Span(s.job_proxy_cpu_user),
            job_proxy_cpu_system: Span(s.job_proxy_cpu_system),
            user_job_max_memory: s.user_job_max_memory,
            user_job_current_rss: s.user_job_current_rss,
            user_job_current_mapped_file: s.user_job_current_mapped_file,
            user_job_major_page_faults: s.user_job_major_page_faults,
            user_job_cumulative_memory_mb_sec: s.user_job_cumulative_memory_mb_sec,
            job_proxy_max_memory: s.job_proxy_max_memory,
            custom: s.custom.into_iter().map(custom).collect(),
        }
    }
}

impl From<&JobOutcome> for pb::JobOutcome {
    fn from(o: &JobOutcome) -> pb::JobOutcome {
        use pb::job_outcome::{Aborted, Completed, Outcome};
        let outcome = match o {
            JobOutcome::Completed { interrupted, restart_needed } => Outcome::Completed(Completed {
                interrupted: interrupted.map_or(String::new(), |r| r.as_str().to_owned()),
                restart_needed: *restart_needed,
            }),
            JobOutcome::Failed { error } => Outcome::Failed(error.into()),
            JobOutcome::Aborted { reason, error } => {
                Outcome::Aborted(Aborted { reason: reason.as_str().to_owned(), error: Some(error.into()) })
            }
        };
        pb::JobOutcome { outcome: Some(outcome) }
    }
}
impl TryFrom<pb::JobOutcome> for JobOutcome {
    type Error = Malformed;
    fn try_from(o: pb::JobOutcome) -> Result<JobOutcome, Malformed> {
        use pb::job_outcome::Outcome;
        Ok(match required("outcome", o.outcome)? {
            Outcome::Completed(c) => JobOutcome::Completed {
                interrupted: match c.interrupted.as_str() {
                    "" => None,
                    name => Some(name_from("interrupted", name)?),
                },
                restart_needed: c.restart_needed,
            },
            Outcome::Failed(error) => JobOutcome::Failed { error: error.try_into()? },
            Outcome::Aborted(a) => JobOutcome::Aborted {
                reason: name_from("abort reason", &a.reason)?,
                error: required("error", a.error)?.try_into()?,
            },
        })
    }
}

impl From<&JobReport> for pb::JobReport {
    fn from(r: &JobReport) -> pb::JobReport {
        pb::JobReport {
            identity: Some((&r.identity).into()),
            resource_usage: Some((&r.resource_usage).into()),
            phase: r.phase.as_str().to_owned(),
            accepted_time: r.accepted_time.0,
            start_time: r.start_time.map(|t| t.0),
            statistics: r.statistics.as_ref().map(Into::into),
            stderr_size: r.stderr_size,
        }
    }
}
impl TryFrom<pb::JobReport> for JobReport {
    type Error = Malformed;
    fn try_from(r: pb::JobReport) -> Result<JobReport, Malformed> {
        Ok(JobReport {
            identity: required("identity", r.identity)?.try_into()?,
            resource_usage: required("resource_usage", r.resource_usage)?.into(),
            phase: name_from("phase", &r.phase)?,
            accepted_time: Time(r.accepted_time),
            start_time: r.start_time.map(Time),
            statistics: r.statistics.map(Into::into),
            stderr_size: r.stderr_size,
        })
    }
}

impl From<&FinishedJob> for pb::FinishedJob {
    fn from(f: &FinishedJob) -> pb::FinishedJob {
        pb::FinishedJob {
            identity: Some((&f.identity).into()),
            outcome: Some((&f.outcome).into()),
            start_time: f.start_time.map(|t| t.0),
            finish_time: f.finish_time.0,
            statistics: Some((&f.statistics).into()),
            stderr_size: f.stderr_size,
            stderr: f.stderr.clone(),
        }
    }
}
impl TryFrom<pb::FinishedJob> for FinishedJob {
    type Error = Malformed;
    fn try_from(f: pb::FinishedJob) -> Result<FinishedJob, Malformed> {
        Ok(FinishedJob {
            identity: required("identity", f.identity)?.try_into()?,
            outcome: required("outcome", f.outcome)?.try_into()?,
            start_time: f.start_time.map(Time),
            finish_time: Time(f.finish_time),
            statistics: f.statistics.unwrap_or_default().into(),
            stderr_size: f.stderr_size,
            stderr: f.stderr,
        })
    }
}

impl From<&StartJob> for pb::StartJob {
    fn from(s: &StartJob) -> pb::StartJob {
        pb::StartJob {
            identity: Some((&s.identity).into()),
            resources: Some((&s.resources).into()),
            description: Some((&s.description).into()),
            waiting_timeout: s.waiting_timeout.map(|t| t.0),
        }
    }
}
impl TryFrom<pb::StartJob> for StartJob {
    type Error = Malformed;
    fn try_from(s: pb::StartJob) -> Result<StartJob, Malformed> {
        Ok(StartJob {
            identity: required("identity", s.identity)?.try_into()?,
            resources: required("resources", s.resources)?.into(),
            description: required("description", s.description)?.try_into()?,
            waiting_timeout: s.waiting_timeout.map(Span),
        })
    }
}
