//! Section 14 of simulator.md on the shared traces and scenarios, points 7 to 9: figures that others worked
//! out from the same data, and what the run comes to.

use crate::desk::figure;
use crate::runs::shared;
use crate::whole::whole;
use sim::import::{Kind, Mapping, import};
use sim::what_if::{Plan, Variant, what_if};
use sim::{Options, Ran, Scenario};
use std::path::{Path, PathBuf};
use yson::Map;

fn trace(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces")).join(name)
}

/// Mappings are those of the documentation.
fn mapping(name: &str) -> Mapping {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/simulator")).join(name);
    Mapping::load(&path).unwrap_or_else(|e| panic!("{e}"))
}

/// The same for a part of a log, in seconds of the log.
fn mapping_of_window(name: &str, from: u64, to: u64) -> Mapping {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/simulator")).join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let windowed = text.replacen(r#"{"import":{"#, &format!(r#"{{"import":{{"window":[{from},{to}],"#), 1);
    let desk = tempfile::tempdir().expect("a directory");
    std::fs::write(desk.path().join("mapping.json"), windowed).expect("written");
    Mapping::load(&desk.path().join("mapping.json")).unwrap_or_else(|e| panic!("{e}"))
}

/// Imports a trace and runs it with each of the changes.
fn play(kind: Kind, name: &str, mapping: &Mapping, all: &[&[(&str, &str)]]) -> Vec<Ran> {
    let desk = tempfile::tempdir().expect("a directory");
    let (work, path) = (desk.path().join("work.jsonl"), desk.path().join("scenario.json"));
    import(kind, &[trace(name)], mapping, &work, Some(&path)).unwrap_or_else(|e| panic!("{e}"));
    let run = |changes: &&[(&str, &str)]| {
        let changes: Vec<_> =
            changes.iter().map(|(at, value)| ((*at).to_owned(), crate::desk::json(value))).collect();
        let scenario = Scenario::load(&path, &changes).unwrap_or_else(|e| panic!("{e}"));
        let out = desk.path().join("out");
        let ran = sim::run(&scenario, &out, Options::default(), &mut |_| true, &mut |_| Map::new());
        let ran = ran.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(figure(&ran, "cluster/counts/refused_submissions"), 0.0, "{:?}", ran.summary);
        let refusals = ran.summary.get("refusals").and_then(yson::Value::as_list).map(<[_]>::len);
        assert_eq!(refusals, Some(0), "{:?}", ran.summary);
        ran
    };
    all.iter().map(run).collect()
}

/// Nobody needs shares or heartbeats more often.
const CALM: (&str, &str) = ("/scheduler_config/fair_share_update_period", "60000");
const QUIET: (&str, &str) = ("/scheduler_config/node_heartbeat_period", "60000");

/// Point 7, first half: one digest for each kind of task, jobs start when they did, and nothing is short.
/// The reserve and the peak, as parts of the limits, in percent.
#[test]
fn memory_of_three_workflows() {
    let nfcore = "memory-starts.json";
    let want = [
        (Kind::Mjobs, "nfcore-tasks/rnaseq.csv.gz", nfcore, 38.3, 34.2),
        (Kind::Mjobs, "nfcore-tasks/chipseq.csv.gz", nfcore, 58.2, 58.6),
        (Kind::Mjobs, "nfcore-tasks/mag.csv.gz", nfcore, 30.8, 15.5),
    ];
    let mut broken = Vec::new();
    for (kind, name, map, reserve, peak) in want.into_iter().take(if whole() { 3 } else { 1 }) {
        let ran = &play(kind, name, &mapping(map), &[&[CALM, QUIET]])[0];
        let part = |what: &str| 100.0 * figure(ran, &format!("cluster/memory/user_job_{what}_by_limit"));
        let found = (part("reserved"), part("peak"));
        println!("{name}: {:.1} % reserved of {reserve}, {:.1} % used of {peak}", found.0, found.1);
        assert_eq!(figure(ran, "cluster/counts/jobs_aborted"), 0.0, "{name}");
        if (found.0 - reserve).abs() > 4.0 || (found.1 - peak).abs() > 0.2 {
            broken.push((name, found));
        }
    }
    assert!(broken.is_empty(), "{broken:?}");
}

/// Point 7, the log of 125 days: an operation for each user and queue, whose jobs arrive when they did.
#[test]
fn memory_of_users_over_months() {
    let name = "metacentrum-2009/metacentrum-2009.swf.gz";
    // Or two busy days: too few jobs have ended to compare what was learned.
    const DAY: u64 = 86_400;
    let users = "memory-users.json";
    let mapping = if whole() { mapping(users) } else { mapping_of_window(users, 33 * DAY, 35 * DAY) };
    let ran = &play(Kind::Swf, name, &mapping, &[&[CALM, QUIET]])[0];
    let part = |what: &str| 100.0 * figure(ran, &format!("cluster/memory/user_job_{what}_by_limit"));
    let found = (part("reserved"), part("peak"));
    println!("{name}: {:.1} % reserved of 21.9 %, {:.1} % used of 10.5 %", found.0, found.1);
    assert_eq!(figure(ran, "cluster/counts/jobs_aborted"), 0.0);
    if whole() {
        assert!((found.0 - 21.9).abs() <= 4.0 && (found.1 - 10.5).abs() <= 1.0, "{found:?}");
    } else {
        assert!(figure(ran, "cluster/counts/jobs_completed") > 100.0, "{:?}", ran.summary);
    }
}

/// Point 7, second half: four nodes with memory for half of the limits that ran at a time in the log, and all
/// jobs come at once. With digests everything is done earlier than with limits, and little of it twice.
#[test]
fn limits_that_fill_memory_twice() {
    // The most that limits of running jobs came to in the log, GiB.
    let workflows = [("rnaseq", 840u64), ("chipseq", 871), ("mag", 860)];
    for (name, most) in workflows.into_iter().take(if whole() { 3 } else { 1 }) {
        let node = (most << 30) / 2 / 4;
        let nodes = format!(
            r#"[{{"name":"n","count":4,"resource_limits":{{"cpu":48,"memory":{node},"user_slots":10000}}}}]"#
        );
        let changes = [
            ("/cluster/node_groups", nodes.as_str()),
            ("/scheduler_config/fair_share_update_period", "10000"),
            ("/scheduler_config/node_heartbeat_period", "10000"),
        ];
        let limit: Vec<_> =
            changes.iter().copied().chain([("/models", r#"{"memory_policy":"limit"}"#)]).collect();
        let file = format!("nfcore-tasks/{name}.csv.gz");
        let ran = play(Kind::Mjobs, &file, &mapping("memory.json"), &[&changes, &limit]);
        let lost = figure(&ran[0], "cluster/waste/lost_cpu_s");
        let waste = lost / figure(&ran[0], "cluster/waste/allocated_cpu_s");
        let again = figure(&ran[0], "cluster/waste/overdrafted_jobs");
        let hours: Vec<f64> = ran.iter().map(|ran| figure(ran, "virtual_ms") / 3.6e6).collect();
        println!(
            "{name}: {hours:.2?} h with digests and limits, {again} jobs again, {:.2} % lost",
            100.0 * waste
        );
        for ran in &ran {
            assert_eq!(figure(ran, "cluster/counts/operations/completed"), 1.0, "{name}");
        }
        assert!(hours[0] < hours[1] && waste < 0.02, "{name}");
    }
}

/// Point 8: the shipped monitor on all measured curves, checks every second.
#[test]
fn cpu_of_surf_lisa() {
    let rare = [
        ("/scheduler_config/fair_share_update_period", "60000"),
        ("/scheduler_config/node_heartbeat_period", "600000"),
        ("/scheduler_config/node_heartbeat_timeout", "36000000"),
        ("/models", r#"{"cpu":"exact","memory":"off"}"#),
        ("/node_config", r#"{"job_cpu_monitor":{"enable_cpu_reclaim":true}}"#),
        // The first six hours.
        ("/duration_ms", "21600000"),
    ];
    let changes = if whole() { &rare[..5] } else { &rare };
    let ran = &play(Kind::Mjobs, "surf-lisa-2022/cpu_curves.csv.gz", &mapping("cpu.json"), &[changes])[0];
    let found = |what: &str| figure(ran, &format!("cluster/cpu/{what}"));
    println!("{:?}", ran.summary.get("cluster").and_then(|c| c.get("cpu")));
    if !whole() {
        let reclaimed = found("reclaimed_core_h") / found("specified_core_h");
        assert!((0.05..0.9).contains(&reclaimed), "{reclaimed} of what was asked for");
        assert!(found("used_core_h") < found("guaranteed_core_h"));
        return;
    }
    assert_eq!(figure(ran, "cluster/counts/jobs_completed"), 2037.0);
    for (what, want, within) in [
        ("specified_core_h", 217_003.0, 0.001),
        ("used_core_h", 153_292.0, 0.001),
        ("reclaimed_core_h", 45_111.0, 0.02),
        ("wanted_above_guarantee_core_h", 27.0, 0.1),
        ("changes_per_job_hour", 21.0, 0.05),
    ] {
        assert!((found(what) / want - 1.0).abs() <= within, "{what}: {} {want}", found(what));
    }
}

/// Point 9: what the two processes of `burst-and-relaxed` cost with strong guarantees alone. Violations and
/// utilisation of the three runs side by side.
#[test]
fn burst_and_relaxed_against_strong() {
    let load = |name: &str| {
        let file = shared("burst-and-relaxed").join(format!("variant-{name}.json"));
        Variant::load(&file).unwrap_or_else(|e| panic!("{e}"))
    };
    let variants = [load("strong-3000"), load("strong-2000")];
    let out = tempfile::tempdir().expect("a directory");
    let scenario = shared("burst-and-relaxed").join("scenario.json");
    let beginning = [("/duration_ms".to_owned(), (2 * 3_600_000).into())];
    let changes = if whole() { &[][..] } else { &beginning };
    let found =
        what_if(&scenario, changes, &variants, out.path(), Options::default(), Plan::default(), &|_, _| true);
    let found = found.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(found.names, ["base", "strong-3000", "strong-2000"]);
    let of = |metric: &str| -> Vec<f64> {
        let row = found.rows.iter().find(|row| row.metric == metric);
        let values = &row.unwrap_or_else(|| panic!("no {metric}")).values;
        values.iter().map(|value| value.unwrap_or_else(|| panic!("no {metric}"))).collect()
    };
    let burst = |what: &str| of(&format!("pools.physical.burst.{what}"));
    let relaxed = |what: &str| of(&format!("pools.physical.relaxed.{what}"));
    let (demand, usage) = (burst("demand_cpu_s"), burst("usage_cpu_s"));
    let cores = of("cluster.cores");
    let used = of("cluster.utilisation");
    println!("cores {cores:?}, used {used:?}, of the peaks {usage:?} of {demand:?}");
    assert_eq!(cores, [2000.0, 3000.0, 2000.0]);
    // Hardly anything of what is guaranteed is missing, in any of them ...
    for (violation, guaranteed) in [
        (burst("violation_cpu_s.after_timeout"), burst("guaranteed_cpu_s")),
        (relaxed("violation_cpu_s.after_timeout"), relaxed("guaranteed_cpu_s")),
    ] {
        println!("violations {violation:?} of {guaranteed:?}");
        for (violation, guaranteed) in violation.iter().zip(guaranteed) {
            assert!(*violation <= 0.001 * guaranteed, "{violation} of {guaranteed}");
        }
    }
    if !whole() {
        return;
    }
    // ... but a third more cores are idle for a sixth of the time, or a part of the peak is cut.
    assert!(used[0] > 0.999 && used[1] < 0.9 && used[2] > 0.999, "{used:?}");
    let served: Vec<f64> = usage.iter().zip(&demand).map(|(usage, demand)| usage / demand).collect();
    assert!(served[0] > 0.998 && served[1] > 0.998 && served[2] < 0.7, "{served:?}");
}
