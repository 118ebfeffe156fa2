//! Options of all controllers of a cluster (jobs-and-nodes.md 10).

use reserve::memory_digest::ClusterOptions;

/// Cluster-wide settings; see the field docs for defaults.
#[derive(Clone, PartialEq, Debug)]
pub struct ControllerOptions {
    /// Memory of a job proxy that is not scaled by any factor, bytes. Default 128 MiB.
    pub footprint_memory: i64,
    /// How memory reserves are learned.
    pub memory_digest: ClusterOptions,
    /// Most tasks of a vanilla operation. Default 100.
    pub max_task_count: usize,
    /// Most jobs of a vanilla operation. Default 100,000.
    pub max_total_job_count: u32,
    /// Failed and user-aborted jobs of one operation whose stderr is kept. Default 200.
    pub max_job_nodes_per_operation: u64,
    /// Different custom statistics of one operation. Default 1024.
    pub custom_statistics_count_limit: usize,
    /// Default of the task option of the same name. Default false.
    pub set_container_cpu_limit: bool,
    /// A gang may begin a new incarnation; otherwise its first failure ends the operation. Default true.
    pub gang_manager_enabled: bool,
}

impl Default for ControllerOptions {
    fn default() -> ControllerOptions {
        ControllerOptions {
            footprint_memory: 128 << 20,
            memory_digest: ClusterOptions::default(),
            max_task_count: 100,
            max_total_job_count: 100_000,
            max_job_nodes_per_operation: 200,
            custom_statistics_count_limit: 1024,
            set_container_cpu_limit: false,
            gang_manager_enabled: true,
        }
    }
}
