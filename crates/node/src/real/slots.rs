//! A slot's life with a job: sandbox made, job started, everything cleaned up
//! (jobs-and-nodes.md 3.7, steps 3 to 7 and 10).

use std::path::PathBuf;
use std::sync::Arc;

use jobproxy::protocol::{DiskQuota, JobStart};
use nodecore::NodeInput;
use vocab::{Artifact, Failure, FileSystemRequest, JobId, Lease, code};
use wire::StartJob;

use super::cache::Key;
use super::clearing::remove_tree;
use super::layout::PASSABLE;
use super::remover::Remover;
use super::room::{self, Owner, Tenant};
use super::sandbox::{self, Condition, Placement};
use super::users::{Looked, Users, Verdict};
use super::{RealHands, RealNews, SandboxState, environment};
use crate::agent::News;
use crate::hands::Outcome;

/// A preparation that waits for the clerk of uids.
#[derive(Debug)]
pub(crate) struct Waiting {
    job_id: JobId,
    slot: u32,
    artifacts: Vec<Artifact>,
    request: FileSystemRequest,
}

impl RealHands {
    /// User of a job; `None`: the node's. `Ask` if the clerk of uids has to be asked first.
    fn owner_of(&mut self, job_id: JobId) -> Result<Option<Owner>, Verdict> {
        let Some(users) = &mut self.users else { return Ok(None) };
        let held = self.held.entry(job_id).or_default();
        match users.of(held.uid) {
            Verdict::Granted(owner) => {
                held.owner = Some(owner);
                if users.is_old(owner.0) {
                    self.look_at_uid(owner.0, None);
                }
                Ok(Some(owner))
            }
            other => Err(other),
        }
    }

    /// One question for all jobs of a user that come meanwhile.
    fn look_at_uid(&mut self, uid: u32, waiting: Option<Waiting>) {
        let (Some(users), news) = (&mut self.users, self.news.clone()) else { return };
        let is_asked = self.waiting_for_uid.contains_key(&uid);
        self.waiting_for_uid.entry(uid).or_default().extend(waiting);
        if !is_asked {
            users.look(uid, move |looked| {
                let _ = news.send(News::Hands(RealNews::UidLooked(looked)));
            });
        }
    }

    /// The clerk of uids has answered.
    pub(super) fn uid_looked(&mut self, looked: Looked, outcomes: &mut Vec<Outcome>) {
        let waiting = self.waiting_for_uid.remove(&looked.uid()).unwrap_or_default();
        let result = self.users.as_mut().map_or(Ok(()), |users| users.looked(looked));
        for Waiting { job_id, slot, artifacts, request } in waiting {
            match &result {
                Ok(()) => self.prepare_sandbox(job_id, slot, artifacts, request, outcomes),
                Err(_) => {
                    let result = result.clone();
                    outcomes.push(Outcome::Input(NodeInput::SandboxReady { job_id, result }));
                }
            }
        }
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
        let owner = match self.owner_of(job_id) {
            Ok(owner) => owner,
            Err(Verdict::Refused(error)) => return ready(Err(error)),
            Err(Verdict::Ask | Verdict::Granted(_)) => {
                let uid = self.held.get(&job_id).and_then(|held| held.uid).unwrap_or_default();
                return self.look_at_uid(uid, Some(Waiting { job_id, slot, artifacts, request }));
            }
        };
        let (sandbox, job) = (self.layout.sandbox(slot), self.layout.job(slot));
        let state = std::mem::replace(self.sandbox_state(slot), SandboxState::Used);
        let own_root = !request.layers.is_empty();
        if own_root && self.isolator.is_none() {
            return ready(Err(Failure::new(
                "Root file systems of layers need isolation of jobs, which this node does not have",
            )));
        }
        let plain = artifacts.is_empty() && request.tmpfs_volumes.is_empty() && !own_root;
        let bound = self.quotas.as_mut().and_then(|quotas| quotas.bound(slot, &request));
        if state == SandboxState::Empty && plain && bound.is_none() {
            let given = room::own(&sandbox, owner);
            return ready(given.map_err(|e| sandbox::directory_failure("give away", &sandbox, &e)));
        }
        let files: Vec<Placement> = artifacts
            .into_iter()
            .map(|artifact| Placement { cached: self.cache.path(&Key::for_job(&artifact, job_id)), artifact })
            .collect();
        let copy = self.copies_files(&request);
        let archives: Vec<PathBuf> =
            request.layers.iter().map(|l| self.cache.path(&Key::for_job(l, job_id))).collect();
        let (layers, layout) = (Arc::clone(&self.layers), self.layout.clone());
        let mounts = self.mounts_volumes();
        let volumes = room::volume_paths(&sandbox, &request);
        let in_memory = !volumes.is_empty() && !files.is_empty();
        let bypass = files.iter().any(|file| file.artifact.bypass_cache);
        let names = self.isolator.is_some().then(|| self.layout.files(slot));
        let work = move |quota: &mut Option<DiskQuota>| {
            if state == SandboxState::Used {
                sandbox::empty(&sandbox, owner)?;
                room::remove_changes(&layout, slot)
                    .and_then(|()| remove_tree(&layout.files(slot)))
                    .map_err(|e| sandbox::directory_failure("empty", &layout.slot(slot), &e))?;
            }
            sandbox::make(&layout, slot, owner)?;
            if own_root {
                room::make_rootfs(&layout, slot, request.writable_root, owner)?;
            }
            // Before anything is in them; mount points are not the job's yet, files are.
            let writable = room::written_to(&layout, slot, own_root && request.writable_root);
            let begun = bound.map(|bound| bound.begin(&writable).map(|()| bound));
            room::mount_volumes(&sandbox, &request, owner, mounts)?;
            let kept = begun.map(|begun| begun.and_then(|bound| bound.close(&job))).transpose();
            *quota = kept.unwrap_or_else(|e| {
                tracing::warn!(
                    "the kernel does not bound the disk space of {job_id}, its files are counted: {e}"
                );
                None
            });
            sandbox::place(&sandbox, names.as_deref(), &files, copy, &volumes, (owner, quota.is_some()))?;
            let archives = request.layers.iter().zip(&archives);
            archives.into_iter().try_for_each(|(layer, archive)| layers.unpack(layer, archive))
        };
        let work = move || {
            let mut quota = None;
            let result = work(&mut quota);
            (quota, result)
        };
        if copy || bypass || in_memory || bound.is_some() || state == SandboxState::Used {
            self.preparing(move || {
                let (quota, result) = work();
                RealNews::Prepared { job_id, slot, quota, result }
            });
        } else {
            ready(work().1);
        }
    }

    /// Whether a job's files are copied into its sandbox. Links into the cache lead nowhere in another root.
    fn copies_files(&self, request: &FileSystemRequest) -> bool {
        self.config.copy_files || request.copy_files || !request.layers.is_empty()
    }

    /// A sandbox was made beside the loop.
    pub(super) fn prepared(&mut self, job_id: JobId, slot: u32, quota: Option<DiskQuota>) {
        if let Some(held) = self.held.get_mut(&job_id) {
            held.quota = quota;
        }
        if let (None, Some(quotas)) = (quota, &mut self.quotas) {
            quotas.forget(slot);
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
        devices: (&[u32], &[u16]),
        lease: Option<Lease>,
        start: &StartJob,
        outcomes: &mut Vec<Outcome>,
    ) {
        let (gpus, ports) = devices;
        let owner = self.held.get(&job_id).and_then(|held| held.owner);
        // The claim may have been lost since the sandbox was made.
        let is_claimed = |users: &Users| owner.is_some_and(|(uid, _)| users.has(uid));
        if self.users.as_ref().is_some_and(|users| !is_claimed(users)) {
            let error = Failure::new("The job has no user of the host that this node has claimed");
            outcomes.push(Outcome::Input(NodeInput::SpawnFailed { job_id, error }));
            return;
        }
        let (sandbox, job) = (self.layout.sandbox(slot), self.layout.job(slot));
        let host = environment::host_of(&self.config.address);
        let description = &start.description;
        let request = &description.file_system;
        let root = (!request.layers.is_empty()).then(|| {
            let unpacked = request.layers.iter().map(|layer| self.layers.path(layer)).collect();
            room::rootfs(&self.layout, slot, unpacked, request.writable_root)
        });
        let inside = root.as_ref().map_or(sandbox.clone(), |_| PathBuf::from(room::SANDBOX_INSIDE));
        let variables = environment::variables(start, &inside, host, gpus, ports);
        let mut order = JobStart::new(job_id, &job, &sandbox, variables, description);
        // Up to there the job is counted with its request, whatever it uses (3.4).
        let ahead = self.config.accounting.ahead_memory_reserve;
        order.lease = lease;
        order.disk_quota = self.held.get(&job_id).and_then(|held| held.quota);
        order.memory_request = start.resources.memory.saturating_sub(ahead);
        if self.mounts_volumes() {
            order.tmpfs_volumes = room::volume_paths(&sandbox, request);
        }
        if let Some(isolator) = &self.isolator {
            let linked = !description.files.is_empty() && !self.copies_files(request);
            let memory_limit = description.memory_limit;
            order.user = owner;
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
        if let Some(quotas) = &mut self.quotas {
            quotas.release(slot);
        }
        let sandbox = self.layout.sandbox(slot);
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
        let held = self.held.get(&job_id);
        let mut full = Vec::new();
        if held.is_some_and(|held| held.writes_root) {
            full.push(self.layout.changes(slot));
        }
        let files = self.layout.files(slot);
        if held.is_some_and(|held| held.has_files)
            && self.isolator.is_some()
            && !matches!(sandbox::tidy(&files, PASSABLE), Ok(Condition::Empty))
        {
            full.push(files);
        }
        if matches!(sandbox::recycle(&sandbox), Ok(Condition::Empty)) {
            if full.is_empty() {
                *self.sandbox_state(slot) = SandboxState::Empty;
                return outcomes.push(Outcome::Input(NodeInput::CleanedUp { job_id, result: Ok(()) }));
            }
        } else {
            full.push(sandbox.clone());
        }
        self.empty_beside(job_id, slot, full, sandbox);
    }

    /// One directory after the other, in turns with those of other slots.
    fn empty_beside(&self, job_id: JobId, slot: u32, mut full: Vec<PathBuf>, sandbox: PathBuf) {
        let news = self.news.clone();
        let tell = move |result| {
            let _ = news.send(News::Hands(RealNews::Emptied(job_id, slot, result)));
        };
        let Some(directory) = full.pop() else { return tell(sandbox::renew(&sandbox, None)) };
        empty_all(self.remover.clone(), directory, full, move |emptied| {
            let emptied = emptied.map_err(|(path, e)| sandbox::directory_failure("empty", &path, &e));
            // Its next job gets it.
            tell(emptied.and_then(|()| sandbox::renew(&sandbox, None)));
        });
    }
}

fn empty_all(
    remover: Remover,
    directory: PathBuf,
    mut rest: Vec<PathBuf>,
    done: impl FnOnce(Result<(), (PathBuf, std::io::Error)>) + Send + 'static,
) {
    let path = directory.clone();
    remover.clone().empty(directory, move |emptied| match (emptied, rest.pop()) {
        (Err(e), _) => done(Err((path, e))),
        (Ok(()), None) => done(Ok(())),
        (Ok(()), Some(next)) => empty_all(remover, next, rest, done),
    });
}
