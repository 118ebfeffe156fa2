//! A grant of the scheduler becomes a job (jobs-and-nodes.md 6.2, 5.3).

use super::OperationController;
use super::limits::Life;
use crate::job::Joblet;
use crate::memory::{Group, MemoryRequest, Reserved};
use crate::task::Task;
use std::borrow::Cow;
use std::sync::Arc;
use vocab::{
    AllocationId, Environment, FileSystemRequest, JobDescription, JobId, JobIdentity, JobPhase, Resources,
    TableIo, Time,
};

/// Resources on a node that the scheduler gave to a task.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// Task's number, as in the demand.
    pub task: u32,
    /// Where the job will run.
    pub allocation_id: AllocationId,
    /// Fresh id of the job.
    pub job_id: JobId,
    /// What was granted.
    pub resources: Resources,
    /// Pool tree of the allocation.
    pub tree: &'a str,
    /// `host:port` of the node.
    pub node_address: &'a str,
}

/// Why a grant cannot be used; the allocation is to be given back.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SettleError {
    /// No pending unit.
    #[error("Task has nothing to start")]
    EmptyInput,
    /// The demand has grown since the grant.
    #[error("Granted resources {granted:?} are less than the needed {needed:?}")]
    NotEnoughResources {
        /// Needs of one job now.
        needed: Resources,
        /// What was granted.
        granted: Resources,
    },
    /// A job of the operation failed on this node (`ban_nodes_with_failed_jobs`).
    #[error("Node {0:?} is banned for this operation")]
    NodeBanned(String),
    /// The operation starts no more jobs.
    #[error("Operation is not running")]
    NotRunning,
    /// Jobs of the task were aborted before one of them started, and it pauses.
    #[error("Task waits before it starts another job")]
    Paused,
}

impl SettleError {
    /// Name of the reason in counters of schedule failures.
    pub fn reason(&self) -> &'static str {
        match self {
            SettleError::EmptyInput => "empty_input",
            SettleError::NotEnoughResources { .. } => "not_enough_resources",
            SettleError::NodeBanned(_) => "node_banned",
            SettleError::NotRunning => "operation_not_running",
            SettleError::Paused => "task_paused",
        }
    }
}

impl OperationController {
    /// Settles a job into an allocation: the smallest pending unit of the task starts, or the copy of a
    /// slow job.
    ///
    /// The order to the node need not wait until the state that [`take_dirty`](Self::take_dirty) then
    /// gives is durable: [`adopt_job`](Self::adopt_job) finds forgotten indices again.
    pub fn settle(
        &mut self,
        now: Time,
        grant: Grant<'_>,
    ) -> Result<(JobIdentity, JobDescription), SettleError> {
        self.check_place(&grant)?;
        let (task_number, group) = self.group(grant.task).ok_or(SettleError::EmptyInput)?;
        let task = self.tasks.get(task_number as usize).ok_or(SettleError::EmptyInput)?;
        let cookie = task.peek(group).ok_or(SettleError::EmptyInput)?;
        self.settle_unit(now, grant, (task_number, group, cookie))
    }

    /// Settles a certain unit into an allocation that the operation has already: its job there was aborted
    /// with its gang ([`JobVerdict::reuse`](super::JobVerdict::reuse)) or has completed
    /// ([`JobVerdict::next`](super::JobVerdict::next)). `grant.task` is the task's number.
    pub fn settle_again(
        &mut self,
        now: Time,
        grant: Grant<'_>,
        cookie: u32,
    ) -> Result<(JobIdentity, JobDescription), SettleError> {
        self.check_place(&grant)?;
        let task = self.tasks.get(grant.task as usize).ok_or(SettleError::EmptyInput)?;
        if !task.units.is_pending(cookie) || !self.may_follow(grant.task, cookie, grant.node_address) {
            return Err(SettleError::EmptyInput);
        }
        self.settle_unit(now, grant, (grant.task, Group::Usual, cookie))
    }

    /// Whatever is to be started: may it start there?
    fn check_place(&self, grant: &Grant<'_>) -> Result<(), SettleError> {
        if self.life != Life::Running {
            return Err(SettleError::NotRunning);
        }
        if self.banned_nodes.contains(grant.node_address) {
            return Err(SettleError::NodeBanned(grant.node_address.to_owned()));
        }
        Ok(())
    }

    fn settle_unit(
        &mut self,
        now: Time,
        grant: Grant<'_>,
        (task_number, group, cookie): (u32, Group, u32),
    ) -> Result<(JobIdentity, JobDescription), SettleError> {
        let host = host_of(grant.node_address);
        let task = &mut self.tasks[task_number as usize];
        if task.first_start.is_paused() {
            return Err(SettleError::Paused);
        }
        let factors = task.memory.factors(cookie);
        let needed = task.needed(factors);
        if !grant.resources.dominates(&needed) {
            return Err(SettleError::NotEnoughResources { needed, granted: grant.resources });
        }
        match group {
            Group::Copies => task.copies.start(cookie, grant.job_id, task.next_job_index),
            Group::Usual | Group::Retries => drop(task.units.start(cookie)),
        }
        task.start_time.get_or_insert(now);
        task.note_time(now);
        let identity = JobIdentity {
            job_id: grant.job_id,
            allocation_id: grant.allocation_id,
            operation_id: self.id,
            tree: grant.tree.into(),
            task: task.spec.name.as_str().into(),
            cookie,
            job_index: self.next_job_index,
            task_job_index: task.next_job_index,
            ticket: None,
        };
        self.next_job_index += 1;
        let reserved = Reserved::new(&task.memory, factors);
        task.open.insert(task.next_job_index, reserved);
        task.next_job_index += 1;
        (self.dirty, task.dirty) = (true, true);
        let reserve = reserved.request;
        let predecessor = task.memory.predecessor(cookie);
        let origins = Some(task.memory.origins(cookie));
        let task = &self.tasks[task_number as usize];
        let environment = self.environment(task, &identity, host);
        let description = self.describe(task, cookie, reserve, environment);
        let joblet = Joblet {
            identity: identity.clone(),
            task: task_number,
            predecessor,
            node: grant.node_address.into(),
            granted: grant.resources,
            factors,
            origins,
            reserve,
            start_time: now,
            exec_start_time: None,
            phase: JobPhase::Created,
            slot_index: None,
            statistics: None,
            stderr_size: 0,
            interruption: None,
            preempted_for: None,
        };
        let previous = self.jobs.insert(grant.job_id, joblet);
        assert!(previous.is_none(), "job id {} is not fresh", grant.job_id);
        Ok((identity, description))
    }

    /// Variables of a job, in the order of jobs-and-nodes.md 5.3 but for one thing: those of the task come first. No
    /// name of ours is among both, and all of ours stand behind what the spec sets.
    fn environment(&self, task: &Task, id: &JobIdentity, host: &str) -> Environment {
        let mut own = Vec::with_capacity(10);
        let mut put = |name: &'static str, value: String| own.push((Cow::Borrowed(name), value));
        put("YT_JOB_ID", id.job_id.to_string());
        put("YT_JOB_INDEX", id.job_index.to_string());
        put("YT_TASK_JOB_INDEX", id.task_job_index.to_string());
        put("YT_JOB_COOKIE", id.cookie.to_string());
        put("YT_POOL_TREE", id.tree.to_string());
        put("YT_NODE_HOST", host.to_owned());
        let first_row = task.rows_of(id.cookie).map_or(0, |rows| rows.start);
        put("YT_START_ROW_INDEX", first_row.to_string());
        put("YT_OPERATION_INCARNATION", self.incarnation_name.clone());
        put("YT_TASK_JOB_COUNT", task.job_count.to_string());
        if let Some(rank) = task.rank_of(id.cookie) {
            put("YT_GANG_RANK", rank.to_string());
        }
        Environment::new(Arc::clone(&task.environment), own)
    }

    /// What a node has to know of a job.
    fn describe(
        &self,
        task: &Task,
        cookie: u32,
        reserve: MemoryRequest,
        environment: Environment,
    ) -> JobDescription {
        let (script, root, options) = (&task.spec.script, &self.root, &self.options);
        JobDescription {
            command: script.command.clone(),
            environment,
            files: task.artifacts.clone(),
            cpu_limit: script.cpu_limit,
            cpu_cap: options.cpu_cap(script.set_container_cpu_limit, script.cpu_limit),
            memory_limit: script.memory_limit,
            user_job_memory_reserve: reserve.user_job_reserve,
            job_proxy_memory_reserve: reserve.job_proxy_reserve,
            job_time_limit: script.job_time_limit,
            max_stderr_size: script.max_stderr_size,
            interruption_signal: script.interruption_signal.clone(),
            signal_root_process_only: script.signal_root_process_only,
            restart_exit_code: script.restart_exit_code,
            custom_statistics_count_limit: script.custom_statistics_count_limit,
            cpu_monitor: root.job_cpu_monitor.differences(),
            include_memory_mapped_files: script.include_memory_mapped_files,
            job_proxy_memory_overcommit_limit: root.job_proxy_memory_overcommit_limit,
            prepare_time_limit: Some(script.prepare_time_limit),
            port_count: script.port_count,
            file_system: FileSystemRequest {
                tmpfs_volumes: script.tmpfs_volumes.clone(),
                copy_files: script.copy_files,
                disk_space: script.disk.0,
                inode_count: script.disk.1,
                layers: task.layers.clone(),
                writable_root: script.make_rootfs_writable,
            },
            tables: task.tables.as_ref().map(|tables| {
                let input_rows = task.rows_of(cookie).map(|rows| rows.end - rows.start);
                Box::new(TableIo { input_rows, ..tables.io.clone() })
            }),
        }
    }
}

/// `host` of `host:port`.
fn host_of(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}
