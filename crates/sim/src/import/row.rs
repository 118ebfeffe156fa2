//! What all formats come to: equal jobs that somebody submitted.

/// See the module page. None: unknown.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// Rows of one name form an operation.
    pub operation: String,
    pub task: String,
    pub user: Option<String>,
    pub group: Option<String>,
    pub queue: Option<String>,
    /// Partition, or class of nodes.
    pub partition: Option<String>,
    pub status: Option<String>,
    /// A path of pools, where the format tells one.
    pub pool: Option<String>,
    pub submit_s: f64,
    pub wait_s: Option<f64>,
    pub run_s: Option<f64>,
    pub time_limit_s: Option<f64>,
    pub jobs: u64,
    /// Cores of a job.
    pub cpu: Option<f64>,
    /// On average, of a job.
    pub cpu_used: Option<f64>,
    /// Bytes of a job.
    pub memory: Option<f64>,
    /// Bytes of a job at the peak.
    pub memory_used: Option<f64>,
    /// Devices of a job.
    pub gpu: f64,
    /// A measured curve: the file and the name in it.
    pub curve: Option<(String, String)>,
}

impl Row {
    /// A column by the name that templates and filters use.
    pub fn column(&self, name: &str) -> Option<&str> {
        match name {
            "user" => self.user.as_deref(),
            "group" => self.group.as_deref(),
            "queue" => self.queue.as_deref(),
            "partition" | "node_class" => self.partition.as_deref(),
            "status" => self.status.as_deref(),
            "op_id" => Some(&self.operation),
            "task" => Some(&self.task),
            _ => None,
        }
    }
}

/// Names that [`Row::column`] knows.
pub(super) const COLUMNS: &[&str] =
    &["user", "group", "queue", "partition", "node_class", "status", "op_id", "task"];
