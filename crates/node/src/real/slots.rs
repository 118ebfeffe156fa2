//! A slot's life with a job: sandbox made, job started, everything cleaned up
//! (jobs-and-nodes.md 3.7, steps 3 to 7 and 10).

use std::path::PathBuf;
use std::sync::Arc;

use jobproxy::protocol::JobStart;
use nodecore::NodeInput;
use vocab::{Artifact, Failure, FileSystemRequest, JobId, code};
use wire::StartJob;

use super::cache::Key;
use super::room::{self, Owner, Tenant};
use super::sandbox::{self, Condition, Placement};
use super::{RealHands, RealNews, SandboxState, environment};
use crate::hands::Outcome;

impl RealHands {
    /// User of the jobs of a slot; none: the node's.
    pub(super) fn owner(&self, slot: u32) -> Option<Owner> {
        self.isolator.as_ref().and_then(|isolator| isolator.user(slot))
    }

    pub(super) fn mounts_volumes(&self) -> bool {
        self.config.room.enable_tmpfs && rustix::process::geteuid().is_root()
    }

    pub(super) fn prepare_sandbox(
        &mut self,
        job_id: JobId,
        slot: u32,
        artifacts: Vec<Artifact>,
        request: FileSystemRequest,
        outcomes: &mut Vec<Outcome>,
    ) {
        let mut ready = |result| outcomes.push(Outcome::Input(NodeInput::SandboxReady { job_id, result }));
        if let Err(error) = self.check_free_space() {
            return ready(Err(error));
        }
        let (sandbox, job) = (self.layout.sandbox(slot), self.layout.job(slot));
        let state = std::mem::replace(self.sandbox_state(slot), SandboxState::Used);
        let own_root = !request.layers.is_empty();
        if own_root && self.isolator.is_none() {
            return ready(Err(Failure::new(
                "Root file systems of layers need isolation of jobs, which this node does not have",
            )));
        }
        let plain = artifacts.is_empty() && request.tmpfs_volumes.is_empty() && !own_root;
        if state == SandboxState::Empty && plain {
            return ready(Ok(()));
        }
        let files: Vec<Placement> = artifacts
            .into_iter()
            .map(|artifact| Placement { cached: self.cache.path(&Key::of(&artifact)), artifact })
            .collect();
        // Links into the cache lead nowhere in another root.
        let copy = self.config.copy_files || request.copy_files || own_root;
        let archives: Vec<PathBuf> = request.layers.iter().map(|l| self.cache.path(&Key::of(l))).collect();
        let (layers, layout) = (Arc::clone(&self.layers), self.layout.clone());
        let (owner, mounts) = (self.owner(slot), self.mounts_volumes());
        let volumes = room::volume_paths(&sandbox, &request);
        let in_memory = !volumes.is_empty() && !files.is_empty();
        let work = move || {
            if state == SandboxState::Used {
                sandbox::empty(&sandbox, owner)?;
            }
            sandbox::make(&sandbox, &job, owner)?;
            room::mount_volumes(&sandbox, &request, owner, mounts)?;
            sandbox::place(&sandbox, &files, copy, &volumes, owner)?;
            if own_root {
                room::make_rootfs(&layout, slot, request.writable_root, owner)?;
            }
            request
                .layers
                .iter()
                .zip(&archives)
                .try_for_each(|(layer, archive)| layers.unpack(layer, archive))
        };
        if copy || in_memory || state == SandboxState::Used {
            self.blocking(move || RealNews::Input(NodeInput::SandboxReady { job_id, result: work() }));
        } else {
            ready(work());
        }
    }

    /// jobs-and-nodes.md 4.9.
    pub(super) fn check_free_space(&self) -> Result<(), Failure> {
        let required = self.config.room.min_required_disk_space;
        match room::free_space(&self.layout.slots()) {
            Ok(free) if free < required => Err(Failure::coded(
                code::NOT_ENOUGH_DISK_SPACE,
                "Not enough disk space on the node to start a job",
            )
            .with("free_space", free as i64)
            .with("min_required_disk_space", required as i64)),
            // Not knowing is no reason to refuse.
            _ => Ok(()),
        }
    }

    pub(super) fn spawn(
        &mut self,
        job_id: JobId,
        slot: u32,
        gpus: &[u32],
        start: &StartJob,
        outcomes: &mut Vec<Outcome>,
    ) {
        let (sandbox, job) = (self.layout.sandbox(slot), self.layout.job(slot));
        let host = environment::host_of(&self.config.address);
        let description = &start.description;
        let request = &description.file_system;
        let root = (!request.layers.is_empty()).then(|| {
            let unpacked = request.layers.iter().map(|layer| self.layers.path(layer)).collect();
            room::rootfs(&self.layout, slot, unpacked, request.writable_root)
        });
        let inside = root.as_ref().map_or(sandbox.clone(), |_| PathBuf::from(room::SANDBOX_INSIDE));
        let variables = environment::variables(start, &inside, host, gpus);
        let mut order = JobStart::new(job_id, &job, &sandbox, variables, description);
        order.memory_request = start.resources.memory;
        if self.mounts_volumes() {
            order.tmpfs_volumes = room::volume_paths(&sandbox, request);
        }
        if let Some(isolator) = &self.isolator {
            let (linked, memory_limit) = (!description.files.is_empty(), description.memory_limit);
            order.user = isolator.user(slot);
            order.working_directory = inside;
            let tenant = Tenant { slot, job_id, sandbox: &sandbox, memory_limit, linked, gpus, root };
            order.isolation = Some(isolator.isolation(tenant));
        }
        let Some(spawner) = &mut self.spawner else {
            let error = Failure::new("The spawner of job proxies does not run");
            outcomes.push(Outcome::Input(NodeInput::SpawnFailed { job_id, error }));
            return;
        };
        spawner.start_job(order);
        if let Some(held) = self.held.get_mut(&job_id) {
            held.spawned = true;
        }
    }

    pub(super) fn cleanup(&mut self, job_id: JobId, slot: u32, outcomes: &mut Vec<Outcome>) {
        self.cache.unpin(job_id);
        let (sandbox, owner) = (self.layout.sandbox(slot), self.owner(slot));
        // Where they are now, as the mount table has it: the job may have renamed the directories above a
        // volume and put links in their place, and a path of its making is not one to unmount by.
        let has_volumes = self.held.get(&job_id).is_some_and(|held| !held.volumes.is_empty());
        let volumes = match has_volumes && self.mounts_volumes() {
            true => sandbox.canonicalize().and_then(|real| cage::volumes::mounts_below(&real)),
            false => Ok(Vec::new()),
        };
        let volumes = volumes.unwrap_or_else(|e| {
            tracing::warn!("cannot find the volumes of {job_id}: {e}");
            Vec::new()
        });
        for volume in &volumes {
            // One that stays keeps the directory busy: then emptying fails, and says so.
            if let Err(e) = cage::volumes::detach(volume) {
                tracing::warn!("cannot unmount {}: {e}", volume.display());
            }
        }
        if self.held.get(&job_id).is_some_and(|held| held.writes_root) {
            let layout = self.layout.clone();
            return self.blocking(move || {
                let emptied = room::remove_changes(&layout, slot)
                    .map_err(|e| Failure::new(format!("Cannot remove changes of a root file system: {e}")))
                    .and_then(|()| sandbox::empty(&sandbox, owner));
                RealNews::Emptied(job_id, slot, emptied)
            });
        }
        if let Ok(Condition::Empty) = sandbox::tidy(&sandbox) {
            *self.sandbox_state(slot) = SandboxState::Empty;
            outcomes.push(Outcome::Input(NodeInput::CleanedUp { job_id, result: Ok(()) }));
        } else {
            self.blocking(move || RealNews::Emptied(job_id, slot, sandbox::empty(&sandbox, owner)));
        }
    }
}
