//! From resources to the user's process: files, sandbox, proxy (jobs-and-nodes.md 3.7, steps 3-7).

use std::collections::VecDeque;

use std::sync::Arc;

use vocab::{AbortReason, Failure, JobId, JobOutcome, Time, code};

use crate::core::aborted;
use crate::job::{Holds, Room, Stage};
use crate::{NodeCore, NodeEffect, Source, Supply};

impl NodeCore {
    /// Gives resources to waiting jobs, in the order of acceptance. A job that does not fit does not
    /// hold back later, smaller ones: the scheduler sends nothing to a node on which a job waits
    /// (scheduling.md 8.2, rule 6), so it cannot be starved by newcomers.
    pub(crate) fn start_waiting(&mut self, now: Time, fx: &mut Vec<NodeEffect>) {
        if self.starts_nothing() || !std::mem::take(&mut self.look_at_waiting) {
            return;
        }
        let mut still = VecDeque::new();
        for id in std::mem::take(&mut self.waiting) {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            if job.stage != Stage::Waiting {
                continue;
            }
            let job = if job.is_exclusive() {
                if self.must_wait_for_unit(id, &still) {
                    still.push_back(id);
                    continue;
                }
                let Some(job) = self.jobs.get_mut(&id) else { continue };
                job
            } else {
                job
            };
            if let Some(outcome) = self.disk.refusal(job).or_else(|| self.ports.refusal(job)) {
                self.stop(now, id, outcome, fx);
                continue;
            }
            if !fits_host(self.free_memory, self.settings.free_memory_watermark, job.usage.memory)
                || !self.disk.fits(job)
                || self.ports.free() < job.start.description.port_count as usize
                || !self.ledger.acquire(job.usage)
            {
                still.push_back(id);
                continue;
            }
            // It has taken nothing yet, and the next look at the host may come before it does.
            self.free_memory = self.free_memory.map(|free| free - job.usage.memory);
            self.disk.promise(job);
            job.holds = Holds::Acquired;
            job.acquired_time = Some(now);
            job.slot = Some(self.slots.take());
            job.gpus = (0..job.usage.gpu.max(0)).map(|_| self.gpus.take()).collect();
            let limit = job.prepare_time_limit(&self.settings);
            self.timers.set(job, Some(now + limit));
            job.ports = self.ports.take(job.start.description.port_count).unwrap_or_default();
            if job.ports.is_empty() {
                self.prepare(now, id, fx);
            } else {
                job.stage = Stage::ProbingPorts { tried: 0 };
                fx.push(NodeEffect::ProbePorts { job_id: id, ports: job.ports.clone() });
            }
        }
        self.waiting = still;
    }

    /// It has all that it can get without its files.
    pub(crate) fn prepare(&mut self, now: Time, id: JobId, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        // Before anything of the job exists, so that a restarted agent finds all of it.
        fx.extend(job.record().map(Box::new).map(NodeEffect::WriteRecord));
        self.fetch_artifacts(now, id, fx);
    }

    /// What others on the host take is not in the ledger (3.3).
    pub(crate) fn host_has_free(&mut self, bytes: i64) {
        self.free_memory = Some(bytes);
        self.look_at_waiting |= !self.waiting.is_empty();
    }

    fn fetch_artifacts(&mut self, now: Time, id: JobId, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let description = &job.start.description;
        let wanted = || description.files.iter().chain(&description.file_system.layers);
        let rows = description.tables.as_ref().and_then(|t| t.input_rows).and(job.slot);
        let missing = wanted().count() + usize::from(rows.is_some());
        if missing == 0 {
            return self.prepare_sandbox(now, id, fx);
        }
        fx.extend(
            wanted().map(|artifact| NodeEffect::FetchArtifact { job_id: id, artifact: artifact.clone() }),
        );
        fx.extend(rows.map(|slot| NodeEffect::FetchRows { job_id: id, slot }));
        job.stage = Stage::Fetching { missing };
    }

    pub(crate) fn artifact_fetched(
        &mut self,
        now: Time,
        id: JobId,
        result: Result<Supply, Failure>,
        fx: &mut Vec<NodeEffect>,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Stage::Fetching { missing } = &mut job.stage else { return };
        let supply = match result {
            Ok(supply) => supply,
            Err(error) => {
                // S20: what the server has lost no node can fetch.
                let reason = match error.find_attribute("missing_blob") {
                    Some(_) => AbortReason::FailedChunks,
                    None => AbortReason::Other,
                };
                let failure = Failure::coded(code::ARTIFACT_DOWNLOAD_FAILED, "Failed to download artifacts");
                return self.stop(now, id, aborted(reason, failure.because(error)), fx);
            }
        };
        let sizes = &mut job.preparation;
        let sum = match supply.source {
            Source::Cache => Some(&mut sizes.cache_hit_artifacts_size),
            Source::Server => Some(&mut sizes.cache_miss_artifacts_size),
            Source::Bypass => Some(&mut sizes.cache_bypassed_artifacts_size),
            Source::Rows => None,
        };
        if let Some(sum) = sum {
            *sum = sum.saturating_add_unsigned(supply.size);
        }
        *missing -= 1;
        if *missing == 0 {
            job.fetched_time = Some(now);
            self.prepare_sandbox(now, id, fx);
        }
    }

    fn prepare_sandbox(&mut self, now: Time, id: JobId, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(slot) = job.slot else { return };
        job.stage = Stage::PreparingSandbox;
        job.sandbox_time = Some(now);
        job.room = Room::Preparing;
        let artifacts = job.start.description.files.clone();
        let file_system = job.start.description.file_system.clone();
        fx.push(NodeEffect::PrepareSandbox { job_id: id, slot, artifacts, file_system });
    }

    pub(crate) fn sandbox_ready(
        &mut self,
        now: Time,
        id: JobId,
        result: Result<(), Failure>,
        fx: &mut Vec<NodeEffect>,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.room != Room::Preparing {
            return;
        }
        job.room = Room::Ready;
        if job.stage != Stage::PreparingSandbox {
            return self.tidy(now, id, fx);
        }
        if let (true, Some(begun)) = (job.has_own_root(), job.sandbox_time) {
            job.preparation.prepare_root_fs = now.since(begun);
        }
        if let Err(error) = result {
            // What the user asked for cannot be made, here or elsewhere (jobs-and-nodes.md 3.8).
            let users = error.find_attribute("user_fault").is_some();
            let outcome =
                if users { JobOutcome::Failed { error } } else { aborted(AbortReason::Other, error) };
            return self.stop(now, id, outcome, fx);
        }
        let Some(slot) = job.slot else { return };
        if job.fetched_time.is_some() {
            // From now on the job may outlive the agent, and what was measured must not change by that.
            fx.extend(job.record().map(Box::new).map(NodeEffect::WriteRecord));
        }
        job.stage = Stage::Spawning;
        fx.push(NodeEffect::SpawnProxy {
            job_id: id,
            slot,
            gpus: job.gpus.clone(),
            ports: job.ports.clone(),
            lease: self.leases.of(&job.start),
            start: Arc::clone(&job.start),
        });
        let own = now + self.settings.job_proxy_preparation_timeout;
        let deadline = job.deadline.map_or(own, |all| all.min(own));
        self.timers.set(job, Some(deadline));
    }

    pub(crate) fn spawn_failed(&mut self, now: Time, id: JobId, error: Failure, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.stage != Stage::Spawning {
            return;
        }
        let error = Failure::coded(code::JOB_PROXY_FAILED, "Failed to spawn job proxy").because(error);
        let outcome = job.stop.take().unwrap_or_else(|| aborted(AbortReason::Other, error));
        self.end_here(now, id, outcome, fx);
    }
}

/// Before the first look at the host a job waits: the answer is a second away.
fn fits_host(free: Option<i64>, watermark: Option<i64>, wanted: i64) -> bool {
    watermark.is_none_or(|kept| free.is_some_and(|free| free - kept >= wanted))
}
