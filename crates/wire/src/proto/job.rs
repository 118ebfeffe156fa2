//! Jobs: identity, description, outcome.

use vocab::{
    AllocationId, Artifact, Cpu, FileSystemRequest, JobDescription, JobId, JobIdentity, JobOutcome,
    JobTicket, ObjectId, OperationId, Span, Time, TmpfsVolume,
};

use super::failure::{MAX_DEPTH, SENT_DEPTH, entries, map};
use super::{Malformed, bounds, id_bytes, id_from, name_from, pb, required};
use crate::{FinishedJob, JobReport, StartJob};

impl From<&JobIdentity> for pb::JobIdentity {
    fn from(j: &JobIdentity) -> pb::JobIdentity {
        pb::JobIdentity {
            job_id: id_bytes(j.job_id.0),
            allocation_id: id_bytes(j.allocation_id.0),
            operation_id: id_bytes(j.operation_id.0),
            tree: j.tree.to_string(),
            task: j.task.to_string(),
            cookie: j.cookie,
            job_index: j.job_index,
            task_job_index: j.task_job_index,
            ticket: j.ticket.map(|JobTicket(ticket)| ticket.to_vec()),
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
            tree: j.tree.into(),
            task: j.task.into(),
            cookie: j.cookie,
            job_index: j.job_index,
            task_job_index: j.task_job_index,
            ticket: j.ticket.as_deref().map(ticket_from).transpose()?,
        })
    }
}

fn ticket_from(bytes: &[u8]) -> Result<JobTicket, Malformed> {
    bytes.try_into().map(JobTicket).map_err(|_| Malformed::Id { field: "ticket", length: bytes.len() })
}

impl From<&Artifact> for pb::Artifact {
    fn from(a: &Artifact) -> pb::Artifact {
        pb::Artifact {
            file_id: id_bytes(a.file_id.0),
            revision: a.revision,
            size: a.size,
            file_name: a.file_name.clone(),
            executable: a.executable,
            bypass_cache: a.bypass_cache,
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
            bypass_cache: a.bypass_cache,
        })
    }
}

impl From<&JobDescription> for pb::JobDescription {
    fn from(d: &JobDescription) -> pb::JobDescription {
        let variable =
            |(name, value): (&str, &str)| pb::Variable { name: name.to_owned(), value: value.to_owned() };
        pb::JobDescription {
            command: d.command.clone(),
            environment: d.environment.iter().map(variable).collect(),
            files: d.files.iter().map(pb::Artifact::from).collect(),
            cpu_limit_hundredths: d.cpu_limit.0,
            cpu_cap_hundredths: d.cpu_cap.map(|cap| cap.0),
            memory_limit: d.memory_limit,
            user_job_memory_reserve: d.user_job_memory_reserve,
            job_proxy_memory_reserve: d.job_proxy_memory_reserve,
            job_time_limit: d.job_time_limit.map(|x| x.0),
            max_stderr_size: d.max_stderr_size,
            interruption_signal: d.interruption_signal.clone(),
            signal_root_process_only: d.signal_root_process_only,
            restart_exit_code: d.restart_exit_code,
            custom_statistics_count_limit: d.custom_statistics_count_limit,
            cpu_monitor: entries(&d.cpu_monitor, SENT_DEPTH),
            ignore_memory_mapped_files: !d.include_memory_mapped_files,
            job_proxy_memory_overcommit_limit: d.job_proxy_memory_overcommit_limit,
            prepare_time_limit: d.prepare_time_limit.map(|x| x.0),
            port_count: d.port_count,
            file_system: (d.file_system != FileSystemRequest::default()).then(|| (&d.file_system).into()),
            tables: d.tables.as_deref().map(Into::into),
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
            cpu_cap: d.cpu_cap_hundredths.map(Cpu),
            memory_limit: d.memory_limit,
            user_job_memory_reserve: d.user_job_memory_reserve,
            job_proxy_memory_reserve: d.job_proxy_memory_reserve,
            job_time_limit: d.job_time_limit.map(Span),
            max_stderr_size: d.max_stderr_size,
            interruption_signal: d.interruption_signal,
            signal_root_process_only: d.signal_root_process_only,
            restart_exit_code: d.restart_exit_code,
            custom_statistics_count_limit: d.custom_statistics_count_limit,
            cpu_monitor: map(d.cpu_monitor, MAX_DEPTH)?,
            include_memory_mapped_files: !d.ignore_memory_mapped_files,
            job_proxy_memory_overcommit_limit: d.job_proxy_memory_overcommit_limit,
            prepare_time_limit: d.prepare_time_limit.map(Span),
            port_count: d.port_count,
            file_system: d.file_system.map(TryInto::try_into).transpose()?.unwrap_or_default(),
            tables: d.tables.map(|t| t.try_into().map(Box::new)).transpose()?,
        })
    }
}

impl From<&FileSystemRequest> for pb::FileSystemRequest {
    fn from(f: &FileSystemRequest) -> pb::FileSystemRequest {
        let volume = |v: &TmpfsVolume| pb::TmpfsVolume { path: v.path.clone(), size: v.size };
        pb::FileSystemRequest {
            tmpfs_volumes: f.tmpfs_volumes.iter().map(volume).collect(),
            copy_files: f.copy_files,
            disk_space: f.disk_space,
            inode_count: f.inode_count,
            layers: f.layers.iter().map(pb::Artifact::from).collect(),
            writable_root: f.writable_root,
        }
    }
}
impl TryFrom<pb::FileSystemRequest> for FileSystemRequest {
    type Error = Malformed;
    fn try_from(f: pb::FileSystemRequest) -> Result<FileSystemRequest, Malformed> {
        let volume = |v: pb::TmpfsVolume| TmpfsVolume { path: v.path, size: v.size };
        Ok(FileSystemRequest {
            tmpfs_volumes: f.tmpfs_volumes.into_iter().map(volume).collect(),
            copy_files: f.copy_files,
            disk_space: f.disk_space,
            inode_count: f.inode_count,
            layers: f.layers.into_iter().map(Artifact::try_from).collect::<Result<_, _>>()?,
            writable_root: f.writable_root,
        })
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
            granted: Some((&r.granted).into()),
            resource_usage: Some((&r.resource_usage).into()),
            phase: r.phase.as_str().to_owned(),
            accepted_time: r.accepted_time.0,
            start_time: r.start_time.map(|t| t.0),
            statistics: r.statistics.as_ref().map(Into::into),
            stderr_size: r.stderr_size,
            slot_index: r.slot_index,
        }
    }
}
impl TryFrom<pb::JobReport> for JobReport {
    type Error = Malformed;
    fn try_from(r: pb::JobReport) -> Result<JobReport, Malformed> {
        let resource_usage = required("resource_usage", r.resource_usage)?.into();
        Ok(JobReport {
            identity: required("identity", r.identity)?.try_into()?,
            granted: r.granted.map_or(resource_usage, Into::into),
            resource_usage,
            phase: name_from("phase", &r.phase)?,
            accepted_time: Time(r.accepted_time),
            start_time: r.start_time.map(Time),
            statistics: r.statistics.map(|s| bounds::cut_statistics(s).map(Into::into)).transpose()?,
            stderr_size: r.stderr_size,
            slot_index: r.slot_index,
        })
    }
}

impl From<&FinishedJob> for pb::FinishedJob {
    fn from(f: &FinishedJob) -> pb::FinishedJob {
        pb::FinishedJob {
            identity: Some((&f.identity).into()),
            granted: Some((&f.granted).into()),
            outcome: Some((&f.outcome).into()),
            start_time: f.start_time.map(|t| t.0),
            finish_time: f.finish_time.0,
            statistics: Some((&f.statistics).into()),
            stderr_size: f.stderr_size,
            stderr: f.stderr.clone(),
            fail_context_size: f.fail_context_size,
            slot_index: f.slot_index,
        }
    }
}
impl TryFrom<pb::FinishedJob> for FinishedJob {
    type Error = Malformed;
    fn try_from(f: pb::FinishedJob) -> Result<FinishedJob, Malformed> {
        bounds::check_inline_stderr(f.stderr.as_ref())?;
        Ok(FinishedJob {
            identity: required("identity", f.identity)?.try_into()?,
            granted: f.granted.map(Into::into).unwrap_or_default(),
            outcome: required("outcome", f.outcome)?.try_into()?,
            start_time: f.start_time.map(Time),
            finish_time: Time(f.finish_time),
            statistics: bounds::cut_statistics(f.statistics.unwrap_or_default())?.into(),
            stderr_size: f.stderr_size,
            stderr: f.stderr,
            fail_context_size: f.fail_context_size,
            slot_index: f.slot_index,
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
            has_started_elsewhere: s.has_started_elsewhere,
            lease: s.lease.map(|t| t.0),
            uid: s.uid,
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
            has_started_elsewhere: s.has_started_elsewhere,
            lease: s.lease.map(Span),
            uid: s.uid,
        })
    }
}
