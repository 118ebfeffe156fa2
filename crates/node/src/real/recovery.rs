//! What an earlier life of the node has left (jobs-and-nodes.md 9.2, steps 1-4). Runs before the
//! loop, so it may block.

use std::path::Path;
use std::time::Duration;

use cage::JobEnvironment;
use jobproxy::protocol::ProxyResult;
use jobproxy::record::{ProxyState, read_result, read_state};
use nodecore::{Fate, Holds, JobRecord, JobResult, KeptStderr, RecoveredJob};
use rustc_hash::FxHashSet;
use vocab::JobId;

use super::layout::Layout;
use super::records::FoundRecord;
use super::{processes, records, room};
use crate::NodeError;

/// A job found alive, and how to watch its proxy.
#[derive(Debug)]
pub(crate) struct LivingProxy {
    pub job_id: JobId,
    pub pid: u32,
    pub pid_start_time: u64,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub jobs: Vec<RecoveredJob>,
    pub living: Vec<LivingProxy>,
    /// Slots that exist, whether they hold a job or not.
    pub slots: Vec<u32>,
}

impl Found {
    /// Slots whose jobs run.
    pub fn living_slots(&self) -> impl Iterator<Item = u32> {
        let living = self.jobs.iter().filter(|job| matches!(job.fate, Fate::Alive { .. }));
        living.map(|job| job.record.slot)
    }
}

/// Reads all records, decides what became of their jobs, and kills what belongs to no job.
pub(crate) fn recover(
    layout: &Layout,
    environment: &dyn JobEnvironment,
    kill_timeout: Duration,
) -> Result<Found, NodeError> {
    let boot_id = cage::process::boot_id().unwrap_or_default();
    let mut found = Found::default();
    let directory = layout.slots();
    let mut cleaned = 0;
    for entry in std::fs::read_dir(&directory).map_err(NodeError::io("read", &directory))?.flatten() {
        let Some(slot) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        found.slots.push(slot);
        let job_directory = layout.job(slot);
        let (record, was_cleaned) = read_and_clean(slot, &job_directory);
        cleaned += u32::from(was_cleaned);
        if let Some(record) = record {
            let same_boot = record.boot_id == boot_id;
            let record = JobRecord { slot, ..record.record };
            let fate = fate(&record, same_boot, &job_directory, &mut found.living);
            found.jobs.push(RecoveredJob { record, fate, survivors: false });
        }
    }
    if cleaned > 0 {
        tracing::info!(
            "environments, with secure vaults, were removed from {cleaned} records of jobs of an earlier version"
        );
    }
    // In the order in which they came, whatever the file system says.
    found.jobs.sort_by_key(|job| (job.record.accepted_time, job.record.start.identity.job_id));
    let alive: FxHashSet<JobId> = found.living.iter().map(|proxy| proxy.job_id).collect();
    match environment.cleanup_leftovers(&|job_id| alive.contains(&job_id), kill_timeout) {
        Ok(removed) if removed.is_empty() => {}
        Ok(removed) => tracing::info!("killed what was left of {} jobs", removed.len()),
        Err(e) => {
            tracing::warn!("leftovers of jobs cannot be removed: {e}");
            // Those of our jobs keep what they hold, slots first of all, until they are dead (4.6).
            let survivors: FxHashSet<JobId> = environment.existing().into_iter().collect();
            for job in &mut found.jobs {
                let job_id = job.record.start.identity.job_id;
                job.survivors = survivors.contains(&job_id) && !alive.contains(&job_id);
            }
        }
    }
    let lives = |slot| found.living_slots().any(|living| living == slot);
    match room::sweep(layout, &lives) {
        Ok(0) => {}
        Ok(count) => tracing::info!("unmounted {count} file systems of jobs that are no more"),
        Err(e) => tracing::warn!("mounts of jobs cannot be removed: {e}"),
    }
    Ok(found)
}

/// The record of a slot. Whether or not it can be used, no secure vault stays in the job's directory; says whether one was
/// removed from it.
fn read_and_clean(slot: u32, job_directory: &Path) -> (Option<FoundRecord>, bool) {
    if let Err(e) = records::remove_unfinished(job_directory) {
        tracing::warn!("an unfinished record of slot {slot} may hold a secure vault in clear: {e}");
    }
    match records::read(job_directory) {
        Ok(None) => (None, false),
        Ok(Some(record)) => match records::forget_environment(job_directory, &record) {
            Ok(was_there) => (Some(record), was_there),
            Err(e) => {
                tracing::warn!("record of slot {slot} may hold a secure vault in clear: {e}");
                (Some(record), false)
            }
        },
        Err(e) => {
            tracing::warn!("record of slot {slot} cannot be used, its job is lost: {e}");
            let removed = records::remove(job_directory).and_then(|()| records::remove_stderr(job_directory));
            if let Err(e) = removed {
                tracing::warn!("record of slot {slot} may hold a secure vault in clear: {e}");
            }
            (None, false)
        }
    }
}

fn fate(record: &JobRecord, same_boot: bool, job_directory: &Path, living: &mut Vec<LivingProxy>) -> Fate {
    let job_id = record.start.identity.job_id;
    if record.end.is_some() {
        return Fate::Lost("The node had decided its end".to_owned());
    }
    if !same_boot {
        return Fate::Lost("The host was restarted".to_owned());
    }
    if let Some(result) = result_of(job_id, job_directory) {
        return Fate::Ended(job_result(result));
    }
    let state: Option<ProxyState> =
        read_state(job_directory).ok().flatten().filter(|state| state.job_id == job_id);
    let Some(state) = state else {
        return Fate::Lost("Its job proxy had not started".to_owned());
    };
    if state.is_alive() {
        living.push(LivingProxy { job_id, pid: state.pid, pid_start_time: state.pid_start_time });
        let holds = Holds { cpu: state.holds.cpu, total_peak: state.holds.total_peak };
        return Fate::Alive { start_time: state.start_time, holds: Some(holds) };
    }
    // It may have ended between the two looks.
    match result_of(job_id, job_directory) {
        Some(result) => Fate::Ended(job_result(result)),
        None => {
            processes::kill(state.pid, state.pid_start_time);
            Fate::Lost(format!("Job proxy {} died without a result", state.pid))
        }
    }
}

/// The result of this very job; the file may be that of an earlier one in the same slot.
pub(crate) fn result_of(job_id: JobId, job_directory: &Path) -> Option<ProxyResult> {
    match read_result(job_directory) {
        Ok(result) => result.filter(|result| result.job_id == job_id),
        Err(e) => {
            tracing::warn!("result of job {job_id} cannot be read: {e}");
            None
        }
    }
}

/// From the proxy's words to the core's.
pub(crate) fn job_result(result: ProxyResult) -> JobResult {
    JobResult {
        outcome: result.outcome,
        start_time: result.start_time,
        finish_time: result.finish_time,
        statistics: result.statistics,
        stderr_size: result.stderr_size,
        stderr: match result.stderr {
            Some(bytes) if bytes.0.is_empty() => KeptStderr::None,
            Some(bytes) => KeptStderr::Inline(bytes.0),
            None if result.stderr_size == 0 => KeptStderr::None,
            None => KeptStderr::OnDisk,
        },
        survivors: result.survivors,
        fail_context_size: result.fail_context_size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record that was being written stayed where there was no whole one, or a damaged one: with the vault of its job.
    #[test]
    fn an_unfinished_record_goes_whatever_lies_beside_it() {
        const MARKER: &[u8] = b"YT_SECURE_VAULT_word";
        for beside in [None, Some(b"damaged, with YT_SECURE_VAULT_word".as_slice()), Some(b"")] {
            let directory = tempfile::tempdir().expect("a directory");
            std::fs::write(directory.path().join("record.new"), MARKER).expect("written");
            if let Some(bytes) = beside {
                std::fs::write(directory.path().join("record"), bytes).expect("written");
            }
            let (record, was_cleaned) = read_and_clean(3, directory.path());
            assert!(record.is_none() && !was_cleaned, "{beside:?}");
            let left: Vec<_> = std::fs::read_dir(directory.path()).expect("a directory").flatten().collect();
            assert!(left.is_empty(), "{beside:?}: {left:?}");
        }
    }
}
