//! Progress of an operation as the API shows it (http-api.md 9.2, 9.3; jobs-and-nodes.md 6.6).

use super::OperationController;
use crate::counter::Totals;
use crate::memory::digest_value;
use crate::spec::UserScript;
use crate::statistics::{JobSamples, TaskStatistics, tree};
use crate::task::Task;
use vocab::{JobState, OperationState, Time};
use yson::{Map, Value};

impl OperationController {
    /// Sums over tasks.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.tasks.iter().for_each(|t| totals.add(&t.totals()));
        totals
    }

    /// `brief_progress`.
    pub fn brief_progress(&self, now: Time, state: OperationState) -> Map {
        yson::map! {"state" => state, "jobs" => self.totals().to_brief(), "build_time" => now}
    }

    /// `progress`. What the scheduler knows (`scheduling_info_per_pool_tree`) is the caller's to add.
    ///
    /// Running jobs are aggregated anew at each call: cost grows with their number.
    pub fn progress(&self, now: Time, state: OperationState) -> Map {
        let jobs = self.totals().to_value();
        let statistics = self.statistics_with_running(now);
        let named: Vec<(&str, &TaskStatistics)> =
            self.tasks.iter().zip(&statistics).map(|(t, s)| (t.spec.name.as_str(), s)).collect();
        let tasks: Vec<Value> = self.tasks.iter().map(|t| task_value(t, now).into()).collect();
        let vertices: Map = self
            .tasks
            .iter()
            .map(|t| {
                let vertex =
                    yson::map! {"job_type" => t.spec.job_type, "job_counter" => t.totals().to_value()};
                (t.spec.name.as_str(), vertex)
            })
            .collect();
        yson::map! {
            "state" => state,
            "build_time" => now,
            "jobs" => jobs.clone(),
            "total_job_counter" => jobs,
            "tasks" => tasks,
            "data_flow_graph" => yson::map! {"vertices" => vertices},
            "job_statistics_v2" => tree::tagged(&named),
            "job_statistics" => tree::by_state(&named),
        }
    }

    fn statistics_with_running(&self, now: Time) -> Vec<TaskStatistics> {
        let mut statistics: Vec<TaskStatistics> = self.tasks.iter().map(|t| t.statistics.clone()).collect();
        // In order of start, so that `last` is the youngest job's.
        let mut running: Vec<_> = self.jobs.values().filter(|j| j.exec_start_time.is_some()).collect();
        running.sort_by_key(|j| j.identity.job_index);
        for joblet in running {
            let facts = joblet.facts(&self.tasks[joblet.task as usize], now);
            let samples = JobSamples::new(&facts, joblet.statistics.as_deref());
            let known = |name: &str| {
                let limit = self.options.custom_statistics_count_limit;
                self.custom_names.contains(name) || self.custom_names.len() < limit
            };
            let tree = &joblet.identity.tree;
            statistics[joblet.task as usize].add(JobState::Running, tree, &samples, known);
        }
        statistics
    }
}

fn task_value(task: &Task, now: Time) -> Map {
    let (ready, exhausted) = task.times(now);
    let factors = task.memory.current_factors();
    let settings = task.memory.settings();
    let title = match task.spec.job_type {
        "map" => "Map".to_owned(),
        "ordered_merge" => "Ordered merge".to_owned(),
        "sorted_merge" => "Sorted merge".to_owned(),
        "unordered_merge" => "Unordered merge".to_owned(),
        _ => format!("Vanilla({})", task.spec.name),
    };
    yson::map! {
        "task_name" => task.spec.name.as_str(),
        "job_type" => task.spec.job_type,
        "title" => title,
        "has_user_job" => task.spec.has_user_job(),
        "job_counter" => task.totals().to_value(),
        "speculative_job_counter" => task.copies.totals().to_value(),
        "probing_job_counter" => Totals::default().to_value(),
        "experiment_job_counter" => Totals::default().to_value(),
        "input_finished" => true,
        "completed" => task.is_complete(),
        "ready_time" => ready.as_millis(),
        "exhaust_time" => exhausted.as_millis(),
        "min_needed_resources" => task.needed(factors).to_value(),
        "job_proxy_memory_reserve_factor" => factors.job_proxy,
        "user_job_memory_reserve_factor" => factors.user_job,
        "job_proxy_memory_digest" => digest_value(task.memory.job_proxy(), settings.job_proxy.quantile),
        "user_job_memory_digest" => digest_value(task.memory.user_job(), settings.user_job.quantile),
    }
    .with_some("user_job_options", task.spec.has_user_job().then(|| user_job_options(&task.spec.script)))
    .with_some("start_time", task.start_time)
    .with_some("completion_time", task.completion_time)
}

fn user_job_options(script: &UserScript) -> Map {
    yson::map! {
        "cpu_limit" => script.cpu_limit.as_f64(),
        "gpu_limit" => script.gpu_limit,
        "memory_limit" => script.memory_limit,
    }
}
