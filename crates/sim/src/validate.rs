//! What can be known of a scenario without running it: every line of the workload is read, totals are
//! summed up, guarantees are compared with the cluster.

use crate::error::SimError;
use crate::scenario::Scenario;
use crate::workload::Workload;
use yson::{Map, Value};

/// A scenario that can be run, and what is remarkable about it.
pub fn validate(scenario: &Scenario) -> Result<Map, SimError> {
    let total = scenario.total();
    let mut warnings: Vec<String> = Vec::new();
    let (mut operations, mut jobs, mut last) = (0u64, 0u64, 0u64);
    let mut workload = Workload::open(&scenario.workload, &scenario.inline, scenario.proxy_estimate())?;
    while let Some(operation) = workload.take_next()? {
        operations += 1;
        jobs += operation.tasks.iter().map(|t| t.job_count).sum::<u64>();
        last = last.max(operation.at.as_millis());
        for task in &operation.tasks {
            let fits = scenario.groups.iter().any(|g| {
                let l = &g.limits;
                l.cpu >= task.cpu && l.memory >= task.memory && l.gpu >= task.gpu
            });
            if !fits {
                warnings.push(format!("operation {:?}, task {:?}: fits on no node", operation.id, task.name));
            }
        }
    }
    if last >= scenario.duration.as_millis() {
        warnings.push(format!("workload: operations come up to {last} ms, after the end of the run"));
    }
    for tree in &scenario.trees {
        let cores = |pool: &crate::scenario::Pool, path: [&str; 2]| {
            let value = path.iter().filter(|key| !key.is_empty());
            let start = Value::Map(pool.attributes.clone());
            let mut at = &start;
            for key in value {
                let Some(next) = at.get(key) else { return 0.0 };
                at = next;
            }
            at.get("cpu").and_then(Value::as_f64).unwrap_or(0.0)
        };
        let roots = || tree.pools.iter().filter(|pool| pool.parent.is_none());
        let strong: f64 = roots().map(|p| cores(p, ["strong_guarantee_resources", ""])).sum();
        let flow: f64 = tree.pools.iter().map(|p| cores(p, ["integral_guarantees", "resource_flow"])).sum();
        let have = total.cpu.as_f64();
        if strong + flow > have {
            let what = format!(
                "tree {:?}: strong guarantees ({strong}) and flows ({flow}) exceed the {have} cores",
                tree.name
            );
            warnings.push(what);
        }
    }
    warnings.truncate(100);
    Ok(yson::map! {
        "scenario" => scenario.name.as_str(),
        "nodes" => scenario.node_count(),
        "total_resource_limits" => total.to_value(),
        "trees" => scenario.trees.len(),
        "pools" => scenario.trees.iter().map(|t| t.pools.len()).sum::<usize>(),
        "operations" => operations,
        "jobs" => jobs,
        "events" => scenario.events.len(),
        "warnings" => warnings.iter().map(String::as_str).collect::<Vec<_>>(),
    })
}
