//! What the tables of operations and of attempts say; rows are made by the [ledger](super::ledger).

use crate::output::{Column, int, num, text as word};

/// Columns of `operations.csv`.
pub const OPERATIONS: &[Column] = &[
    word("id"),
    word("tree"),
    word("pool"),
    word("user"),
    word("type"),
    word("state"),
    int("at_ms"),
    int("pending_ms"),
    int("first_allocation_ms"),
    int("finish_ms"),
    int("ideal_ms"),
    int("job_count"),
    int("completed"),
    int("failed"),
    int("aborted"),
    int("preempted_job_count"),
    int("interrupted"),
    num("preempted_cpu_s"),
    int("jobs_total_duration_ms"),
    int("job_max_duration_ms"),
    num("cpu_s"),
    int("starving_ms"),
    int("aggressively_starving_ms"),
    num("max_memory_reserve_fraction"),
];

/// Columns of `allocations.csv`.
pub const ALLOCATIONS: &[Column] = &[
    word("operation"),
    word("task"),
    int("job_index"),
    int("attempt"),
    word("node"),
    int("ordered_ms"),
    int("start_ms"),
    int("end_ms"),
    word("outcome"),
    word("reason"),
    word("preempted_for"),
    num("cpu"),
    int("memory_limit"),
    int("memory_reserve"),
    int("memory_peak"),
    num("cpu_limit_mean"),
    num("cpu_used_mean"),
    int("lost_ms"),
];
