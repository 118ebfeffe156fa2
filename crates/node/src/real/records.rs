//! Job records on disk (jobs-and-nodes.md 9.2).
//!
//! Written by rename and without fsync: they must survive the death of processes, not of the host.
//! After a restart of the host no job lives, which the boot id tells.
//!
//! The environment of a job, which has the secure vault of its operation in it, is left out: only the start of the job needs
//! it, and a job that had not started when the agent died is lost.

use std::io;
use std::path::Path;
use std::sync::Arc;

use nodecore::JobRecord;
use prost::Message;
use vocab::{PreparationMeasures, Time};
use wire::proto::pb;

pub(crate) const NAME: &str = "record";
const NEW: &str = "record.new";
/// First bytes of the file, with the version of the format.
const MAGIC: &[u8; 8] = b"mprecrd1";

/// The file's content; the same messages as on the wire.
#[derive(Clone, PartialEq, prost::Message)]
struct RecordFile {
    #[prost(string, tag = "1")]
    boot_id: String,
    #[prost(message, optional, tag = "2")]
    start: Option<pb::StartJob>,
    #[prost(uint64, tag = "3")]
    accepted_time: u64,
    #[prost(uint64, tag = "4")]
    acquired_time: u64,
    #[prost(uint32, tag = "5")]
    slot: u32,
    #[prost(uint32, repeated, tag = "6")]
    gpus: Vec<u32>,
    #[prost(message, optional, tag = "7")]
    end: Option<pb::FinishedJob>,
    #[prost(uint32, repeated, tag = "8")]
    ports: Vec<u32>,
    #[prost(uint64, optional, tag = "9")]
    fetched_time: Option<u64>,
    #[prost(message, optional, tag = "10")]
    preparation: Option<pb::PreparationMeasures>,
}

/// A record as it was found.
#[derive(Debug)]
pub(crate) struct FoundRecord {
    pub record: JobRecord,
    /// Of the boot in which it was written.
    pub boot_id: String,
}

/// Replaces the record in a job's directory.
pub(crate) fn write(job_directory: &Path, record: &JobRecord, boot_id: &str) -> io::Result<()> {
    let mut start: pb::StartJob = record.start.as_ref().into();
    if let Some(description) = &mut start.description {
        description.environment.clear();
    }
    let file = RecordFile {
        boot_id: boot_id.to_owned(),
        start: Some(start),
        accepted_time: record.accepted_time.0,
        acquired_time: record.acquired_time.0,
        slot: record.slot,
        gpus: record.gpus.clone(),
        fetched_time: record.fetched_time.map(|time| time.0),
        preparation: (record.preparation != PreparationMeasures::default())
            .then(|| (&record.preparation).into()),
        ports: record.ports.iter().copied().map(u32::from).collect(),
        end: record.end.as_deref().map(Into::into),
    };
    let mut bytes = MAGIC.to_vec();
    file.encode(&mut bytes).map_err(io::Error::other)?;
    let new = job_directory.join(NEW);
    std::fs::write(&new, &bytes)?;
    std::fs::rename(new, job_directory.join(NAME))
}

/// None if there is none.
pub(crate) fn read(job_directory: &Path) -> io::Result<Option<FoundRecord>> {
    let bytes = match std::fs::read(job_directory.join(NAME)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let body =
        bytes.strip_prefix(MAGIC).ok_or_else(|| invalid("not a job record of this version".to_owned()))?;
    let file = RecordFile::decode(body).map_err(|e| invalid(e.to_string()))?;
    let start = file.start.ok_or_else(|| invalid("a job record without a job".to_owned()))?;
    Ok(Some(FoundRecord {
        boot_id: file.boot_id,
        record: JobRecord {
            start: Arc::new(start.try_into().map_err(|e: wire::proto::Malformed| invalid(e.to_string()))?),
            accepted_time: Time(file.accepted_time),
            acquired_time: Time(file.acquired_time),
            slot: file.slot,
            gpus: file.gpus,
            fetched_time: file.fetched_time.map(Time),
            preparation: file.preparation.map(PreparationMeasures::from).unwrap_or_default(),
            ports: file.ports.into_iter().filter_map(|port| port.try_into().ok()).collect(),
            end: match file.end {
                Some(end) => Some(Box::new(
                    end.try_into().map_err(|e: wire::proto::Malformed| invalid(e.to_string()))?,
                )),
                None => None,
            },
        },
    }))
}

/// Removes a record that was being written when the agent died, whether or not there is a whole one: an earlier version has put
/// the environment of the job into it.
pub(crate) fn remove_unfinished(job_directory: &Path) -> io::Result<()> {
    remove_file(&job_directory.join(NEW))
}

/// Writes a record of an earlier version again, which had the environment of the job in it; says whether it did.
pub(crate) fn forget_environment(job_directory: &Path, found: &FoundRecord) -> io::Result<bool> {
    let is_old = !found.record.start.description.environment.is_empty();
    if is_old {
        write(job_directory, &found.record, &found.boot_id)?;
    }
    Ok(is_old)
}

/// Forgets the job. `proxy.state` and `result` name their job and are overwritten by the next one.
pub(crate) fn remove(job_directory: &Path) -> io::Result<()> {
    remove_file(&job_directory.join(NAME))
}

/// Removes the job's stderr: the next job's proxy makes the file only when there is something to
/// write, so an old one could be taken for its.
pub(crate) fn remove_stderr(job_directory: &Path) -> io::Result<()> {
    remove_file(&job_directory.join(jobproxy::stderr::STDERR_FILE))
}

fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::{AllocationId, Cpu, JobDescription, JobId, JobIdentity, OperationId, Resources};
    use wire::StartJob;

    const MARKER: &str = "of-the-vault";

    fn record() -> JobRecord {
        let description = JobDescription {
            command: "true".to_owned(),
            environment: [("YT_SECURE_VAULT_word".to_owned(), MARKER.to_owned())].into_iter().collect(),
            files: Vec::new(),
            cpu_limit: Cpu(100),
            cpu_cap: None,
            memory_limit: 1 << 20,
            user_job_memory_reserve: 1 << 20,
            job_proxy_memory_reserve: 1 << 20,
            job_time_limit: None,
            max_stderr_size: 1 << 20,
            interruption_signal: None,
            signal_root_process_only: false,
            restart_exit_code: None,
            custom_statistics_count_limit: 128,
            cpu_monitor: Default::default(),
            include_memory_mapped_files: true,
            job_proxy_memory_overcommit_limit: None,
            prepare_time_limit: None,
            port_count: 0,
            file_system: Default::default(),
            tables: None,
        };
        let identity = JobIdentity {
            job_id: JobId::default(),
            allocation_id: AllocationId::default(),
            operation_id: OperationId::default(),
            tree: "physical".into(),
            task: "t".into(),
            cookie: 0,
            job_index: 0,
            task_job_index: 0,
            ticket: Some(vocab::JobTicket([7; 16])),
        };
        let start = StartJob {
            identity,
            resources: Resources::ZERO,
            description,
            waiting_timeout: None,
            has_started_elsewhere: false,
            lease: None,
            uid: None,
        };
        JobRecord {
            start: Arc::new(start),
            accepted_time: Time(1),
            acquired_time: Time(2),
            slot: 3,
            gpus: Vec::new(),
            ports: vec![20_000],
            fetched_time: None,
            preparation: PreparationMeasures::default(),
            end: None,
        }
    }

    fn has_marker(directory: &Path) -> bool {
        let files = std::fs::read_dir(directory).expect("a directory").flatten();
        let contents = files.map(|file| std::fs::read(file.path()).expect("readable"));
        contents
            .into_iter()
            .any(|bytes| bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes()))
    }

    /// Vaults of operations lay on the disks of all nodes.
    #[test]
    fn a_record_has_all_of_its_job_but_the_environment() {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), &record(), "boot").expect("written");
        assert!(!has_marker(directory.path()));
        let found = read(directory.path()).expect("read").expect("there");
        assert_eq!((found.record.slot, found.record.ports.as_slice()), (3, [20_000].as_slice()));
        assert_eq!(found.record.start.description.command, "true");
        // S7: without it no restarted server adopts the job from a restarted agent.
        assert_eq!(found.record.start.identity.ticket, Some(vocab::JobTicket([7; 16])));
        assert!(found.record.start.description.environment.is_empty());
        assert!(!forget_environment(directory.path(), &found).expect("nothing to do"));
    }

    #[test]
    fn the_environment_goes_from_records_of_an_earlier_version() {
        let directory = tempfile::tempdir().expect("a directory");
        let record = record();
        let old = RecordFile {
            boot_id: "boot".to_owned(),
            start: Some(record.start.as_ref().into()),
            slot: record.slot,
            ..RecordFile::default()
        };
        let mut bytes = MAGIC.to_vec();
        old.encode(&mut bytes).expect("encoded");
        for name in [NAME, NEW] {
            std::fs::write(directory.path().join(name), &bytes).expect("written");
        }
        assert!(has_marker(directory.path()));
        let found = read(directory.path()).expect("read").expect("there");
        remove_unfinished(directory.path()).expect("removed");
        assert!(forget_environment(directory.path(), &found).expect("written"));
        assert!(!has_marker(directory.path()));
        let found = read(directory.path()).expect("read").expect("there");
        assert_eq!((found.boot_id.as_str(), found.record.slot), ("boot", 3));
        assert_eq!(found.record.start.description.command, "true");
    }
}
