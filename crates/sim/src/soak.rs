//! Small clusters on which everything goes wrong that can, by a seed: the core keeps its invariants, and
//! all work is done in the end, each unit of it once.
//!
//! A seed makes the cluster, the pools, the workload and the faults. The same seed is the same story.

use crate::engine::{Options, Ran};
use crate::error::SimError;
use crate::output::cannot_write;
use crate::random::{Draw, Kind};
use crate::scenario::Scenario;
use std::fmt::Write;
use std::path::Path;
use yson::{Map, Value};

/// Plays the story of a seed in a directory. The log has one line for every change of a state, in fixed columns.
pub fn play(seed: u64, folder: &Path) -> Result<Ran, SimError> {
    std::fs::create_dir_all(folder).map_err(|e| cannot_write(folder, &e))?;
    let mut draw = Draw::new(seed, Kind::Fault, 1, 0);
    write(folder, "workload.jsonl", &workload(&mut draw))?;
    write(folder, "scenario.json", &scenario(seed, &mut draw))?;
    let scenario = Scenario::load(&folder.join("scenario.json"), &[])?;
    let options =
        Options { check_invariants: true, faults: Some(seed), on_event: Some(line), ..Options::default() };
    crate::engine::run(&scenario, &folder.join("out"), options, &mut |_| true, &mut |_| Map::new())
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), SimError> {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(|e| cannot_write(&path, &e))
}

fn scenario(seed: u64, draw: &mut Draw) -> String {
    let nodes = 2 + draw.below(5);
    let cpu = 2 + draw.below(8);
    let running = 1 + draw.below(3);
    let strong = draw.below(cpu * nodes + 1) / 2;
    let period = [500, 1000, 3000][draw.below(3) as usize];
    format!(
        r#"{{"format":"millpond-scenario/1","name":"faults","seed":{seed},"duration_ms":14400000,"stop":"when_idle",
"cluster":{{"node_groups":[{{"name":"n","count":{nodes},"resource_limits":{{"cpu":{cpu},"memory":64000000000,"user_slots":100}}}}]}},
"pool_trees":{{"default_tree":"physical","trees":{{"physical":{{"config":{{"fair_share_starvation_timeout":5000,"preemptive_scheduling_backoff":1000,"default_parent_pool":"<Root>"}},
"pools":{{"a":{{"strong_guarantee_resources":{{"cpu":{strong}}}}},"b":{{"max_running_operation_count":{running}}},
"c":{{"integral_guarantees":{{"guarantee_type":"burst","resource_flow":{{"cpu":1}},"burst_guarantee_resources":{{"cpu":2}}}}}}}}}}}}}},
"scheduler_config":{{"fair_share_update_period":{period},"node_heartbeat_period":5000,"node_heartbeat_timeout":30000,"max_node_unseen_period_to_abort_allocations":60000}},
"workload":["workload.jsonl"]}}
"#
    )
}

fn workload(draw: &mut Draw) -> String {
    let mut at = 0;
    let mut text = String::new();
    for number in 0..2 + draw.below(5) {
        at += draw.below(60_000);
        let pool = ["a", "b", "c"][draw.below(3) as usize];
        let (jobs, cpu) = (1 + draw.below(30), 1 + draw.below(2));
        let mean = 1_000 + draw.below(40_000);
        let interruptible = draw.below(3) == 0;
        let gang = draw.below(8) == 0;
        let (jobs, memory) = if gang { (2, 1_000_000) } else { (jobs, 1_000_000_000 * (1 + draw.below(4))) };
        // Every third one has a task that waits for the other.
        let then = 1 + jobs / 4;
        let waits = match !gang && jobs % 3 == 0 {
            true => format!(
                r#",{{"name":"then","job_count":{then},"cpu":1,"memory":1000000,"duration":{{"uniform":[500,20000]}},"fail_probability":0.03,"after":["t"]}}"#
            ),
            false => String::new(),
        };
        let line = format!(
            r#"{{"id":"op-{number}","at":{at},"user":"u","pool":"{pool}","spec":{{"max_failed_job_count":1000}},"tasks":[{{"name":"t","job_count":{jobs},"cpu":{cpu},"memory":{memory},"gang":{gang},"duration":{{"exp":{{"mean":{mean},"max":120000}}}},"memory_usage":{{"uniform":[0.1,1]}},"interruptible":{interruptible},"interrupt_time":{{"uniform":[0,8000]}},"fail_probability":0.03}}{waits}]}}"#
        );
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Time, event, operation, job, node, reason.
fn line(log: &mut String, event: &Map) {
    let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or("-");
    if text("event") == "audit" {
        return;
    }
    let (operation, job, node) = (text("operation_id"), text("job_id"), text("node_address"));
    let (time, event, reason) = (text("time"), text("event"), text("reason"));
    let _ = writeln!(log, "{time:<28} {event:<30} {operation:<36} {job:<36} {node:<6} {reason}");
}
