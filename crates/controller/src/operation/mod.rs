//! One operation: the controller that owns its tasks and running jobs.
//!
//! Reading order: this file (what it is, demand, looking at it), [`settle`](mod@settle) (a grant becomes a
//! job), [`finish`] (a job ends), [`rules`] (when that ends the operation), [`gang`], [`resize`],
//! [`limits`] (time), [`backoff`] (pauses after aborts), [`speculation`] (copies of slow jobs), [`fence`] (units that wait for a job that was given
//! up), [`alerts`], [`progress`], [`durable`] and [`revive`] (a restart).

pub mod alerts;
pub mod backoff;
pub mod durable;
pub mod fence;
pub mod finish;
pub mod gang;
pub mod limits;
pub mod progress;
pub mod resize;
pub mod revive;
pub mod rules;
pub mod settle;
pub mod speculation;

pub use backoff::Setback;
pub use durable::{StateError, StatePart};
pub use fence::FencedUnit;
pub use finish::{FinishedJob, JobVerdict, OperationEvent};
pub use gang::Reuse;
pub use limits::Deadline;
pub use resize::Resized;
pub use revive::{AdoptError, HeldJob};
pub use settle::{Grant, SettleError};

use crate::backoff::NodePauses;
use crate::cut::UnitRows;
use crate::job::{JobView, Joblet};
use crate::memory::Group;
use crate::memory::settings_of;
use crate::options::ControllerOptions;
use crate::spec::{FileRequest, OperationSpec, RootOptions};
use crate::task::{Task, TaskTables};
use crate::units::UnitPool;
use fence::Fence;
use limits::Life;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use vocab::{
    AllocationId, Artifact, Failure, InterruptionReason, JobId, JobPhase, JobStatistics, OperationId,
    Resources, TableIo, Time, sandbox_path,
};

/// Jobs that a task wants: what one needs at least, and how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demand {
    /// Task's number; the number of tasks more for its units whose job was aborted for its memory
    /// (`resource_overdraft`), because they need more of it than the others; twice the number of tasks more
    /// for copies of its slow jobs.
    pub task: u32,
    /// Needs of one job.
    pub min_needed: Resources,
    /// Pending units, or wanted copies.
    pub count: i64,
}

/// Controller of one operation; see the crate's page for the order of calls.
#[derive(Clone, PartialEq, Debug)]
pub struct OperationController {
    id: OperationId,
    options: ControllerOptions,
    root: RootOptions,
    start_time: Time,
    tasks: Vec<Task>,
    jobs: BTreeMap<JobId, Joblet>,
    next_job_index: u64,
    /// Number of the gangs' incarnation; constant without gangs.
    incarnation: u32,
    incarnation_name: String,
    failed_job_count: u64,
    /// Finished jobs whose stderr is kept.
    stored_stderr_count: u64,
    /// Finished jobs that are kept for their failure.
    retained_job_count: u64,
    /// Nodes that get no more jobs of this operation.
    banned_nodes: BTreeSet<String>,
    /// Nodes that get no job of this operation for a while.
    node_pauses: NodePauses,
    /// Custom statistics seen so far, bounded.
    custom_names: BTreeSet<String>,
    custom_names_overflow: bool,
    life: Life,
    /// Exclusive units whose last job may still run, by that job.
    fences: BTreeMap<JobId, Fence>,
    /// Jobs that were running before a restart may still be reported.
    reviving: bool,
    dirty: bool,
}

impl OperationController {
    /// A controller of a new operation. Everything is dirty: the first
    /// [`take_dirty`](OperationController::take_dirty) gives all of its state.
    pub fn new(id: OperationId, spec: &OperationSpec, options: &ControllerOptions, start_time: Time) -> Self {
        OperationController {
            id,
            options: options.clone(),
            root: spec.root.clone(),
            start_time,
            tasks: spec.tasks.iter().map(|t| Task::new(id, t.clone(), &spec.root, options)).collect(),
            jobs: BTreeMap::new(),
            next_job_index: 0,
            incarnation: 0,
            incarnation_name: gang::incarnation_name(id, 0),
            failed_job_count: 0,
            stored_stderr_count: 0,
            retained_job_count: 0,
            banned_nodes: BTreeSet::new(),
            node_pauses: NodePauses::default(),
            custom_names: BTreeSet::new(),
            custom_names_overflow: false,
            life: Life::Running,
            fences: BTreeMap::new(),
            reviving: false,
            dirty: true,
        }
    }

    /// The administrator has changed the cluster's options. They act on what comes: jobs that run were
    /// counted with what was in force, and digests keep their buckets (jobs-and-nodes.md 10). The demand
    /// may be another one now.
    pub fn set_options(&mut self, options: &ControllerOptions) {
        self.options = options.clone();
        for task in &mut self.tasks {
            task.memory.set_settings(settings_of(&task.spec.script, &self.root, options));
        }
    }

    /// The operation.
    pub fn id(&self) -> OperationId {
        self.id
    }

    /// Files that each task wants, to be resolved against the metadata tree.
    pub fn file_requests(&self) -> impl Iterator<Item = (u32, &[FileRequest])> {
        (0u32..).zip(self.tasks.iter().map(|t| t.spec.script.files.as_slice()))
    }

    /// The resolved files of a task, its layers at the end; call it before the first grant, and after a restore. Fails if
    /// a name leaves the sandbox or is there twice; nothing is set then.
    pub fn set_artifacts(&mut self, task: u32, mut artifacts: Vec<Artifact>) -> Result<(), Failure> {
        let task = &mut self.tasks[task as usize];
        let layers = artifacts.split_off(artifacts.len().saturating_sub(task.spec.script.layer_count));
        let names = || artifacts.iter().map(|artifact| artifact.file_name.as_str());
        let volumes = task.spec.script.tmpfs_volumes.iter().map(|volume| volume.path.as_str());
        let checked = names()
            .try_for_each(|name| sandbox_path::check_file_name(name).map_err(|why| (name, why)))
            .and_then(|()| sandbox_path::check_together(names(), volumes));
        if let Err((name, fault)) = checked {
            let task = &task.spec.name;
            let failure = Failure::new(format!("Bad file name {name:?} in task {task:?}: {fault}"));
            return Err(failure.with("file_name", name).with("task_name", task));
        }
        task.artifacts = artifacts;
        task.layers = layers;
        Ok(())
    }

    /// The tables of a task and the ends of its units, as [`crate::cut::cut`] gave them when the operation was
    /// prepared; call it before the first grant, and after a restore with the same ends.
    pub fn set_tables(&mut self, task: u32, io: TableIo, ends: &[u64]) {
        let task = &mut self.tasks[task as usize];
        let rows = UnitRows::new(ends, &task.splits);
        // After a restore the state knows what is done.
        if task.job_count == 0 {
            task.job_count = ends.len() as u32;
            task.units = UnitPool::new(task.job_count);
            task.dirty = true;
        }
        task.tables = Some(TaskTables { io, rows: Some(rows) });
    }

    /// The output tables of a task that reads none; as above.
    pub fn set_outputs(&mut self, task: u32, io: TableIo) {
        self.tasks[task as usize].tables = Some(TaskTables { io, rows: None });
    }

    /// Rows of the input that a running job is to read.
    pub fn rows_of_job(&self, job_id: JobId) -> Option<Range<u64>> {
        let joblet = self.jobs.get(&job_id)?;
        self.tasks[joblet.task as usize].rows_of(joblet.identity.cookie)
    }

    /// Rows of the input that a unit of a task has.
    pub fn rows_of_unit(&self, task: &str, cookie: u32) -> Option<Range<u64>> {
        self.tasks.iter().find(|t| t.spec.name == task)?.rows_of(cookie)
    }

    /// Nothing is to be done and nothing is at work: an operation whose input is empty is over when it begins.
    pub fn is_done(&self) -> bool {
        self.tasks.iter().all(Task::is_complete)
    }

    /// Completed, failed or closed: nothing is started any more.
    pub fn is_over(&self) -> bool {
        self.life == Life::Over
    }

    /// What the operation wants now; empty once it is over. Changes with every settled and every
    /// finished job: push it to the scheduler after each.
    pub fn demand(&self) -> Vec<Demand> {
        if self.life != Life::Running {
            return Vec::new();
        }
        let mut demand = Vec::new();
        let tasks = self.tasks.len() as u32;
        let wants = |t: &Task| !t.first_start.is_paused() && (t.units.pending() > 0 || t.copies.wanted() > 0);
        for (number, task) in (0u32..).zip(&self.tasks).filter(|(_, t)| wants(t)) {
            // Units that were begun before come first, what is at work already last.
            let groups = [
                (Group::Retries, number + tasks),
                (Group::Usual, number),
                (Group::Copies, number + 2 * tasks),
            ];
            for (group, task_and_group) in groups {
                if let Some((min_needed, count)) = task.demand(group) {
                    demand.push(Demand { task: task_and_group, min_needed, count: count.into() });
                }
            }
        }
        demand
    }

    /// Bytes of disk that a job of a demand's or grant's task asks for.
    pub fn disk_space(&self, task: u32) -> i64 {
        let task = task as usize % self.tasks.len().max(1);
        self.tasks.get(task).and_then(|task| task.spec.script.disk.0).unwrap_or(0)
    }

    /// Names of tasks, by number.
    pub fn task_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.tasks.iter().map(|t| t.spec.name.as_str())
    }

    /// Running jobs, ordered by id.
    pub fn running_jobs(&self) -> impl ExactSizeIterator<Item = JobView<'_>> {
        self.jobs.values().map(|joblet| self.view(joblet))
    }

    /// One running job.
    pub fn job(&self, job_id: JobId) -> Option<JobView<'_>> {
        self.jobs.get(&job_id).map(|joblet| self.view(joblet))
    }

    fn view<'a>(&'a self, joblet: &'a Joblet) -> JobView<'a> {
        JobView {
            joblet,
            task: &self.tasks[joblet.task as usize],
            root: &self.root,
            incarnation: &self.incarnation_name,
        }
    }

    /// Bytes that a running job costs here, without its texts and custom statistics.
    pub fn running_job_size() -> usize {
        size_of::<(JobId, Joblet)>() + size_of::<JobStatistics>()
    }

    /// Failed jobs so far (attribute `has_failed_jobs`).
    pub fn failed_job_count(&self) -> u64 {
        self.failed_job_count
    }

    /// Nodes that get no more jobs of this operation (jobs-and-nodes.md 6.4).
    pub fn banned_nodes(&self) -> impl Iterator<Item = &str> {
        self.banned_nodes.iter().map(String::as_str)
    }

    /// The user's process of a job runs. False: no such job here.
    pub fn job_started(&mut self, job_id: JobId, start_time: Time) -> bool {
        let Some(joblet) = self.jobs.get_mut(&job_id) else { return false };
        let is_news = joblet.exec_start_time.is_none();
        joblet.exec_start_time.get_or_insert(start_time);
        joblet.phase = joblet.phase.max(JobPhase::Running);
        if is_news {
            let (task, node) = (joblet.task, joblet.node.clone());
            self.note_start(task, &node);
        }
        true
    }

    /// A job has its place on its node; `None`: that is not known.
    pub fn job_placed(&mut self, job_id: JobId, slot_index: Option<u32>) {
        if let Some(joblet) = self.jobs.get_mut(&job_id) {
            joblet.slot_index = slot_index.or(joblet.slot_index);
        }
    }

    /// A job is told to stop; what it does about it comes with its end. False: no such job here.
    pub fn job_interrupted(
        &mut self,
        job_id: JobId,
        reason: InterruptionReason,
        preempted_for: Option<(AllocationId, OperationId)>,
    ) -> bool {
        let Some(joblet) = self.jobs.get_mut(&job_id) else { return false };
        joblet.interruption.get_or_insert(reason);
        joblet.preempted_for = joblet.preempted_for.or(preempted_for);
        true
    }

    /// A report of a running job: its phase, size of its stderr, and statistics if they came along.
    /// False: no such job here.
    pub fn job_statistics(
        &mut self,
        job_id: JobId,
        phase: JobPhase,
        stderr_size: u64,
        statistics: Option<JobStatistics>,
    ) -> bool {
        let Some(joblet) = self.jobs.get_mut(&job_id) else { return false };
        joblet.phase = phase;
        joblet.stderr_size = stderr_size;
        if let Some(statistics) = statistics {
            joblet.statistics = Some(Box::new(statistics));
        }
        true
    }
}
