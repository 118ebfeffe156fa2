//! Bad input is told by file, line or JSON pointer, with the value and what is allowed.

use crate::desk::Desk;
use expect_test::{Expect, expect};

const GOOD: &str =
    r#"{"id":"x","at":5,"user":"u","pool":"a","tasks":[{"name":"t","job_count":1,"duration":1000}]}"#;

fn told(desk: &Desk, error: &sim::SimError) -> String {
    error.to_string().replace(&desk.path().display().to_string(), "DIR")
}

fn scenarios(cases: &[(&str, &str)], expected: Expect) {
    let desk = Desk::new(1, 4, 1_000_000, &[GOOD]);
    let found: Vec<String> = cases
        .iter()
        .map(|(at, value)| match desk.run("out", &[(at, value)], sim::Options::default()) {
            Ok(_) => format!("{at} = {value} is taken"),
            Err(error) => told(&desk, &error),
        })
        .collect();
    expected.assert_eq(&found.join("\n"));
}

fn lines(cases: &[&str], expected: Expect) {
    let found: Vec<String> = cases
        .iter()
        .map(|line| {
            let desk = Desk::new(1, 4, 1_000_000, &[GOOD, line]);
            match desk.run("out", &[], sim::Options::default()) {
                Ok(_) => format!("{line} is taken"),
                Err(error) => told(&desk, &error),
            }
        })
        .collect();
    expected.assert_eq(&found.join("\n"));
}

#[test]
fn of_scenarios() {
    scenarios(
        &[
            ("/format", r#""millpond-scenario/2""#),
            ("/durration_ms", "5"),
            ("/duration_ms", "0"),
            ("/stop", r#""later""#),
            ("/cluster/node_groups/0/count", "-1"),
            ("/cluster/node_groups/0/resource_limits/cpus", "4"),
            ("/cluster/node_groups/0/physical_memory", "5"),
            ("/cluster/failures", r#"{"node_mtbf_ms":5,"node_mttr_ms":2000}"#),
            ("/pool_trees/default_tree", r#""other""#),
            ("/pool_trees/trees/physical/pools/a", r#"{"weight":-1}"#),
            ("/pool_trees/trees/physical/pools/a", r#"{"pools":{"b":{}}}"#),
            ("/pool_trees/trees/physical/config/max_operation_count", r#""many""#),
            ("/scheduler_config/fair_share_update_perod", "5"),
            ("/controller_config/footprint_memory", "-5"),
            ("/initial_state", r#"{"physical":{"pools":{"z":{"accumulated_resource_ratio_volume":1}}}}"#),
            ("/events", r#"[{"at":1,"type":"nodes_offline","group":"m","count":1}]"#),
            ("/events", r#"[{"at":1,"type":"earthquake"}]"#),
            ("/workload", r#"["nowhere.jsonl"]"#),
            ("/models", r#"{"cpu":"coarse:0"}"#),
            ("/models", r#"{"memory":"curves"}"#),
            ("/models", r#"{"memory_policy":"guess"}"#),
            ("/import", r#"{"fallback_parent":"z"}"#),
            ("/import", r#"{"fallback":"a"}"#),
            ("/models", r#"{"delays":{"operation_prepare":-1}}"#),
            ("/node_config", r#"{"job_cpu_monitor":{"smoothing_factor":2}}"#),
            ("/node_config", r#"{"job_cpu_monitor":{"smooth":0.5}}"#),
        ],
        expect![[r#"
            DIR/scenario.json: /format: expected "millpond-scenario/1", found string "millpond-scenario/2"
            DIR/scenario.json: /durration_ms: unknown option
            DIR/scenario.json: /duration_ms: expected milliseconds from 1 to 316224000000, found 0
            DIR/scenario.json: /stop: expected "at_duration" or "when_idle", found string "later"
            DIR/scenario.json: /cluster/node_groups/0/count: expected uint64, found -1
            DIR/scenario.json: /cluster/node_groups/0/resource_limits/cpus: unknown option
            DIR/scenario.json: /cluster/node_groups/0/physical_memory: expected at least the limit of memory (1000000000000), found 5
            DIR/scenario.json: /cluster/failures/node_mtbf_ms: expected double in 1000.0..=1000000000000000.0, found 5
            DIR/scenario.json: /pool_trees/default_tree: no such tree "other", known are ["physical"]
            DIR/scenario.json: /pool_trees/trees/physical/pools/a: Bad value of the pool option "weight": expected a number in 1.4901161193847656e-8..=67108864, found int64 -1
            DIR/scenario.json: /pool_trees/trees/physical/pools/b: there is a pool of this name already
            DIR/scenario.json: /pool_trees/trees/physical/config: Bad value of the pool tree option "max_operation_count": expected an integer in 1..=2147483647, found string "many"
            DIR/scenario.json: /scheduler_config: Unknown scheduler option "fair_share_update_perod"
            DIR/scenario.json: /controller_config: //sys/controller_agents/config is refused: option "footprint_memory": expected an integer from 0 to 1099511627776, found -5
            DIR/scenario.json: /initial_state/physical/pools/z: no such pool
            DIR/scenario.json: /events/0/group: no such node group "m", known are ["n"]
            DIR/scenario.json: /events/0/type: expected one of "nodes_offline", "nodes_online", "nodes_limits", "set_pool", "create_pool", "remove_pool", "set_tree_config", "set_scheduler_config", "update_operation", "suspend", "resume", "abort", "scheduler_restart", "controller_restart", "snapshot", found "earthquake"
            DIR/nowhere.jsonl: cannot be read: No such file or directory (os error 2)
            DIR/scenario.json: /models/cpu: expected "off", "exact" or "coarse:MS" with 1 to 3600000 milliseconds between two checks, found string "coarse:0"
            DIR/scenario.json: /models/memory: expected "off", "peak" or "curve", found string "curves"
            DIR/scenario.json: /models/memory_policy: expected "digest", "limit" or "oracle", found string "guess"
            DIR/scenario.json: /import/fallback_parent: no such pool "z" in tree "physical", known are ["a", "b"]
            DIR/scenario.json: /import/fallback: unknown option
            DIR/scenario.json: /models/delays/operation_prepare: expected uint64, found -1
            DIR/scenario.json: /node_config/job_cpu_monitor/smoothing_factor: expected a number from 0 to 1, found 2
            DIR/scenario.json: /node_config/job_cpu_monitor/smooth: unknown option"#]],
    );
}

#[test]
fn of_workloads() {
    lines(
        &[
            "{",
            "[]",
            r#"{"at":4,"user":"u","tasks":[{"name":"t","job_count":1,"duration":1}]}"#,
            r#"{"at":9,"user":"u","tasks":[]}"#,
            r#"{"at":9,"user":"u","tasks":[{"name":"t","job_count":0,"duration":1}]}"#,
            r#"{"at":9,"user":"u","tasks":[{"name":"t","job_count":1,"duration":{"exp":{"mean":-1}}}]}"#,
            r#"{"at":9,"user":"u","tasks":[{"name":"t","job_count":1,"duration":1,"colour":"red"}]}"#,
            r#"{"id":"x","at":9,"user":"u","tasks":[{"name":"t","job_count":1,"duration":1}]}"#,
            r#"{"at":9,"user":"u","tasks":[{"name":"t","job_count":1,"duration":1,"job_proxy_memory":{"estimate":1000,"usage":5}}]}"#,
            r#"{"at":9,"user":"u","tasks":[{"name":"t","job_count":1,"duration":1,"job_proxy_memory":{"estimate":268435456,"use":5}}]}"#,
            r#"{"at":9,"user":"u","until":3,"tasks":[{"name":"t","job_count":1,"duration":1}]}"#,
            r#"{"at":9,"user":"u","tasks":[{"name":"t","job_count":1,"duration":1,"after":["s"]}]}"#,
            r#"{"at":9,"user":"u","tasks":[{"name":"t","job_count":1,"duration":1,"after":["t"]}]}"#,
            r#"{"at":9,"user":"u","tasks":[{"name":"s","job_count":1,"duration":1,"after":["t"]},{"name":"t","job_count":1,"duration":1,"after":["s"]}]}"#,
            r#"{"at":9,"user":"u","tasks":[{"name":"s","job_count":1,"duration":1,"gang":true},{"name":"t","job_count":1,"duration":1,"after":["s"]}]}"#,
            r#"{"at":9,"user":"u","tasks":[{"name":"s","job_count":1,"duration":1,"restart_completed_jobs":true},{"name":"t","job_count":1,"duration":1,"after":["s"]}]}"#,
            r#"{"at":9,"user":"u","tasks":[{"name":"s","job_count":1,"duration":1},{"name":"t","job_count":1,"duration":1,"restart_completed_jobs":true,"after":["s"]}]}"#,
            r#"{"at":9,"user":"u","tasks":[{"name":"t","job_count":1,"duration":1}],"jobs":[["t",5,1,1],["t",5,1,1]]}"#,
        ],
        expect![[r#"
            DIR/workload.jsonl, line 2: expected a key in quotes, found end of input at offset 1 (line 1, column 2)
            DIR/workload.jsonl, line 2: expected a JSON object
            DIR/workload.jsonl, line 2: /at: operations must be sorted: expected at least 5, found 4
            DIR/workload.jsonl, line 2: /tasks: expected at least one task
            DIR/workload.jsonl, line 2: /tasks/0/job_count: expected uint64 in 1..=10000000, found 0
            DIR/workload.jsonl, line 2: /tasks/0/duration/exp/mean: expected a number greater than 0, found -1
            DIR/workload.jsonl, line 2: /tasks/0/colour: unknown option
            DIR/workload.jsonl, line 2: /id: expected an id of its own, found "x" again
            DIR/workload.jsonl, line 2: /tasks/0/job_proxy_memory/estimate: expected 268435456, which is reserved for all job proxies (footprint_memory of controller_config), found 1000 in operation "2"
            DIR/workload.jsonl, line 2: /tasks/0/job_proxy_memory/use: unknown option
            DIR/workload.jsonl, line 2: /until: expected at least "at" (9)
            DIR/workload.jsonl, line 2: /tasks/0/after/0: no such task "s", known are ["t"]
            DIR/workload.jsonl, line 2: /tasks/0/after: tasks wait for each other in a circle: t after t
            DIR/workload.jsonl, line 2: /tasks/0/after: tasks wait for each other in a circle: s after t after s
            DIR/workload.jsonl, line 2: /tasks/1/after: tasks of an operation with gangs cannot wait: task "s" is one
            DIR/workload.jsonl, line 2: /tasks/1/after/0: task "s" has "restart_completed_jobs": it is never complete
            DIR/workload.jsonl, line 2: /tasks/1/after: a task with "restart_completed_jobs" cannot wait for others
            DIR/workload.jsonl, line 2: /jobs/1: task "t" has only 1 jobs"#]],
    );
}
