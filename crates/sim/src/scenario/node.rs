//! `node_config`: what nodes are told in production, under the same names (simulator.md 3).

use super::{YEAR_MS, milliseconds};
use nodecore::Settings;
use vocab::Span;
use yson::Map;
use yson::fields::{FieldError, Fields};

/// Options of all nodes; what is not said is what production does.
#[derive(Clone, Debug, Default)]
pub struct NodeOptions {
    /// Longest wait of a job for its resources on a node.
    pub waiting_jobs_timeout: Option<Span>,
    /// CPU above the limit is endured so long.
    pub cpu_overdraft_timeout: Option<Span>,
    /// Memory above the limit is endured so long.
    pub memory_overdraft_timeout: Option<Span>,
    /// A running job is counted with so many bytes more than it was seen with.
    pub ahead_memory_reserve: i64,
    /// A job above its reserve is aborted at once.
    pub always_abort_on_memory_reserve_overdraft: bool,
    /// The guarantee that the monitor sets is a cap as well.
    pub cpu_monitor_sets_cap: bool,
    /// `job_cpu_monitor` of operations that say nothing of it.
    pub cpu_monitor: Map,
}

impl NodeOptions {
    pub(super) fn read(f: &mut Fields<'_>) -> Result<NodeOptions, FieldError> {
        let cpu_monitor = f.take_map("job_cpu_monitor").or(&Map::new())?.clone();
        let mut options = Fields::new(&cpu_monitor, f.path_of("job_cpu_monitor"));
        reserve::cpu_monitor::Options::read(&mut options)?;
        options.finish()?;
        let mut time = |name| milliseconds(f, name, 1..=YEAR_MS);
        Ok(NodeOptions {
            waiting_jobs_timeout: time("waiting_jobs_timeout")?,
            cpu_overdraft_timeout: time("cpu_overdraft_timeout")?,
            memory_overdraft_timeout: time("memory_overdraft_timeout")?,
            ahead_memory_reserve: f.take_i64("ahead_memory_reserve").within(0..=1 << 50).or(0)?,
            always_abort_on_memory_reserve_overdraft: f
                .take_bool("always_abort_on_memory_reserve_overdraft")
                .or(false)?,
            cpu_monitor_sets_cap: f.take_bool("cpu_monitor_sets_cap").or(false)?,
            cpu_monitor,
        })
    }

    /// What the core of a node has to know.
    pub(crate) fn tell(&self, settings: &mut Settings) {
        let set = |to: &mut Span, from: Option<Span>| *to = from.unwrap_or(*to);
        set(&mut settings.waiting_jobs_timeout, self.waiting_jobs_timeout);
        set(&mut settings.cpu_overdraft_timeout, self.cpu_overdraft_timeout);
        set(&mut settings.memory_overdraft_timeout, self.memory_overdraft_timeout);
        settings.ahead_memory_reserve = self.ahead_memory_reserve;
        settings.always_abort_on_memory_reserve_overdraft = self.always_abort_on_memory_reserve_overdraft;
    }
}
