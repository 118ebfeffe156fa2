//! Operations: specs, tasks, jobs, retries, statistics.
