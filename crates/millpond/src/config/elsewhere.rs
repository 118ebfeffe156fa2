//! Options of nodes that other clusters have and this program has not: whoever brings such a
//! configuration is told why, instead of being told that a key is unknown.

use toml::Table;

/// Name in `[node]`, and why it is not there. The same list, in the same words, is in `docs/options.md`.
pub const ELSEWHERE: &[(&str, &str)] = &[
    ("detached_tmpfs_umount", "memory file systems are always unmounted at once, also when they are busy"),
    (
        "idle_cpu_fraction",
        "no part of a node is set aside for jobs without a guarantee: they may use all idle cores",
    ),
    (
        "slot_release_timeout",
        "a slot is not used before it is clean; waiting_for_job_cleanup_timeout says when that is an alert",
    ),
    (
        "resource_adjustment_period",
        "an excess is watched by its deadline, cpu_overdraft_timeout or memory_overdraft_timeout, not by a period",
    ),
    (
        "disabled_jobs_interruption_timeout",
        "it is 60 s everywhere: the server, not the node, asks jobs to leave a disabled node",
    ),
    (
        "unknown_operation_jobs_removal_delay",
        "the server names the jobs that it does not know when the node registers, and they are removed at once",
    ),
    (
        "user_job_container_creation_throttler",
        "containers are made by the job proxies, in parallel and in a millisecond; max_started_allocations_per_heartbeat of the scheduler bounds starts",
    ),
    (
        "statistics_throttler",
        "running_job_statistics_sending_backoff bounds what statistics cost: one report per job and period",
    ),
    (
        "settle_jobs_timeout",
        "the order to start a job contains the job: there is nothing to ask for afterwards",
    ),
    (
        "job_staleness_delay",
        "all jobs are in every registration and every heartbeat: none can be forgotten by the server",
    ),
    (
        "smaps_memory_tracker_cache_period",
        "memory is read from the job's group; maps of single processes are not read",
    ),
    (
        "supervisor_rpc_timeout",
        "node and job proxies share a socket of the host: a connection that ends is seen at once",
    ),
    ("job_proxy_send_heartbeat_before_abort", "the result of a job always contains its last statistics"),
    (
        "max_consecutive_gpu_job_failures",
        "devices are counted and not checked; max_consecutive_job_aborts watches all jobs",
    ),
    ("cpu_to_vcpu_factor", "cores of all hosts count the same"),
];

/// The text for the first option of the list in a file, wherever in `[node]` it stands.
pub fn explain(text: &str) -> Option<String> {
    let file: Table = text.parse().ok()?;
    let (name, why) = find(file.get("node")?.as_table()?)?;
    Some(format!("node.{name} is not an option here: {why}"))
}

fn find(section: &Table) -> Option<(&'static str, &'static str)> {
    section.iter().find_map(|(key, value)| {
        let here = ELSEWHERE.iter().find(|(name, _)| name == key).copied();
        here.or_else(|| find(value.as_table()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_other_clusters_are_explained() {
        let error = explain("[node]\nname = \"n\"\nidle_cpu_fraction = 0.1").expect("it is one of them");
        assert!(error.contains("node.idle_cpu_fraction") && error.contains("idle cores"), "{error}");
        assert!(explain("[node.slot_manager]\nslot_release_timeout = 1").is_some(), "in a section as well");
        assert_eq!(explain("[node]\nkill_timeout = \"5s\""), None);
        assert_eq!(explain("[server]\nidle_cpu_fraction = 1"), None);
        assert_eq!(explain("nonsense"), None);
    }

    #[test]
    fn the_page_of_options_has_the_same_words() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
        let page = std::fs::read_to_string(page).expect("the page of options");
        for (name, why) in ELSEWHERE {
            let row = format!("| `{name}` | {why} |");
            assert!(page.contains(&row), "no row {row}");
        }
        let rows = page.split("\n## Node\n").nth(1).and_then(|node| node.split("Not here:").nth(1));
        let rows = rows.expect("the part of the page").lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, ELSEWHERE.len());
    }
}
