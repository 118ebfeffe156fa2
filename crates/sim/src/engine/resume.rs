//! A beginning in the middle: operations whose jobs run already at time 0, as a snapshot of a live cluster
//! has them (simulator.md 11).
//!
//! Nothing is put into the core's books from outside. The nodes report, the operations are submitted while
//! all nodes are away, the server restarts, and the nodes come back with what runs: the core takes their
//! jobs over as it does after every restart in production.

use super::*;
use crate::workload::RunningJob;
use vocab::{AllocationId, JobDescription, JobId, JobIdentity, Resources};
use wire::StartJob;

impl Engine<'_> {
    pub(super) fn resume(&mut self) -> Result<(), SimError> {
        self.settle()?;
        for number in 0..self.nodes.len() as u32 {
            self.send_away(number);
        }
        self.settle()?;
        let mut names = Vec::new();
        while self.workload.next_time() == Some(Span::ZERO) {
            let Some(operation) = self.next_operation()? else { break };
            self.note_owner(&operation);
            names.push(operation.id.clone());
            self.start(operation);
            self.settle()?;
        }
        self.server.crash();
        self.inputs.clear();
        self.server.restart(self.now)?;
        self.set_volumes()?;
        let places = self.places_of_running(&names);
        for (number, jobs) in (0..).zip(places) {
            self.with_node(number, |node, around| node.wake_up_with(jobs, around));
            self.connect(number);
        }
        Ok(())
    }

    /// Lets the server finish what it was told.
    fn settle(&mut self) -> Result<(), SimError> {
        while !self.inputs.is_empty() || self.server.wake() <= self.now {
            self.turn()?;
        }
        Ok(())
    }

    fn send_away(&mut self, number: u32) {
        let node = &mut self.nodes[number as usize];
        if let Some(key) = node.key.take() {
            self.keys[key.0 as usize] = None;
            self.inputs.push(Input::NodeDisconnected(key));
        }
        node.break_down(self.now);
        node.online = true;
    }

    /// Jobs by node, with how long they have run. What ran on a node that is not there is lost with it: the
    /// units of work wait.
    fn places_of_running(&mut self, names: &[String]) -> Vec<Vec<(StartJob, Span)>> {
        let numbers: BTreeMap<String, usize> =
            self.nodes.iter().enumerate().map(|(i, node)| (node.name.clone(), i)).collect();
        let mut places: Vec<Vec<(StartJob, Span)>> = self.nodes.iter().map(|_| Vec::new()).collect();
        for name in names {
            let Some(id) = self.by_name.get(name).copied() else { continue };
            let Some(operation) = self.physics.works.get(&id).map(|work| work.operation.clone()) else {
                continue;
            };
            let mut of_task = vec![0u32; operation.tasks.len()];
            for (index, job) in (0u64..).zip(&operation.running) {
                let cookie = of_task[job.task];
                of_task[job.task] += 1;
                match numbers.get(&job.node) {
                    Some(node) => {
                        let start = self.start_of(id, &operation, job, cookie, index);
                        places[*node].push((start, job.ran));
                    }
                    None => self.refusals.push(format!(
                        "operation {name:?}: its job {index} ran on node {:?}, which is not there",
                        job.node
                    )),
                }
            }
        }
        places
    }

    /// The order that the job was started with.
    fn start_of(
        &self,
        id: OperationId,
        operation: &Operation,
        job: &RunningJob,
        cookie: u32,
        index: u64,
    ) -> StartJob {
        let task = &operation.tasks[job.task];
        let of_operation = operation.pools.first().map(|(tree, _)| tree.clone());
        let tree = job.tree.clone().or(of_operation).unwrap_or_else(|| self.scenario.default_tree.clone());
        let hash = name_hash(&format!("{}/{index}", operation.id));
        let guid = |kind| Guid([hash as u32, (hash >> 32) as u32, kind, index as u32]);
        let resources = Resources {
            cpu: job.cpu.unwrap_or(task.cpu),
            memory: job.memory.unwrap_or(task.memory),
            gpu: task.gpu,
            user_slots: 1,
            ..Resources::ZERO
        };
        let identity = JobIdentity {
            job_id: JobId(guid(2)),
            allocation_id: AllocationId(guid(3)),
            operation_id: id,
            tree: tree.into(),
            task: task.name.as_str().into(),
            cookie,
            job_index: index,
            task_job_index: u64::from(cookie),
            ticket: None,
        };
        let description = JobDescription {
            cpu_limit: resources.cpu,
            memory_limit: task.memory,
            user_job_memory_reserve: resources.memory,
            interruption_signal: task.interruptible.then(|| "SIGTERM".to_owned()),
            restart_exit_code: task.interruptible.then_some(85),
            command: "simulated".to_owned(),
            environment: Default::default(),
            files: Vec::new(),
            cpu_cap: None,
            job_proxy_memory_reserve: 0,
            job_time_limit: None,
            max_stderr_size: 0,
            signal_root_process_only: false,
            custom_statistics_count_limit: 0,
            cpu_monitor: self.scenario.node_options.cpu_monitor.clone(),
            include_memory_mapped_files: false,
            job_proxy_memory_overcommit_limit: None,
            prepare_time_limit: None,
            port_count: 0,
            file_system: Default::default(),
            tables: None,
        };
        StartJob {
            identity,
            resources,
            description,
            waiting_timeout: None,
            has_started_elsewhere: false,
            lease: None,
            uid: None,
        }
    }
}
