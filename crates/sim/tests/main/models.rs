//! Memory, CPU and delays of jobs, driven through the shipped digests, node and monitor (simulator.md 5.6 to
//! 5.9).

use crate::desk::{Desk, figure, rows};
use reserve::cpu_monitor::Monitor;
use sim::Options;
use vocab::{Cpu, Span};

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// Jobs that use a quarter of their limits: what is reserved comes down to that.
#[test]
fn digests_learn_and_limits_do_not() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":300,"cpu":1,"memory":10737418240,"duration":{"uniform":[50000,70000]},"memory_usage":{"uniform":[0.2,0.25]}}]}"#;
    let desk = Desk::new(2, 10, 3_600_000, &[work]);
    let part = |models: &str| {
        let ran =
            desk.checked("out", &[("/models", models), ("/controller_config", r#"{"footprint_memory":1}"#)]);
        assert_eq!(figure(&ran, "cluster/counts/jobs_completed"), 300.0);
        let all = figure(&ran, "cluster/memory/completed/limit_gib_h");
        (
            figure(&ran, "cluster/memory/completed/reserved_gib_h") / all,
            figure(&ran, "cluster/memory/completed/peak_gib_h") / all,
        )
    };
    let (learnt, peak) = part(r#"{"memory":"peak"}"#);
    assert!((0.2..0.25).contains(&peak) && (0.24..0.35).contains(&learnt), "{learnt} {peak}");
    let (limit, _) = part(r#"{"memory":"peak","memory_policy":"limit"}"#);
    assert!((limit - 1.0).abs() < 1e-3, "{limit}");
}

/// Who knows the peaks before reserves just that; jobs last and use what they do without it.
#[test]
fn an_oracle_reserves_the_peaks() {
    let work = [
        r#"{"id":"x","at":0,"user":"u","pool":"a","spec":{"max_failed_job_count":100},"tasks":[
            {"name":"many","job_count":60,"cpu":1,"memory":8000000000,"duration":{"uniform":[20000,90000]},"memory_usage":{"beta":{"a":2,"b":2}},"cpu_usage":{"uniform":[0.1,1]},"fail_probability":0.05},
            {"name":"same","job_count":5,"cpu":1,"memory":8000000000,"duration":30000,"memory_usage":0.3},
            {"name":"then","job_count":3,"cpu":1,"memory":8000000000,"duration":10000,"after":["many","same"]},
            {"name":"told","job_count":4,"cpu":1,"memory":1000000000,"duration":1}],
            "jobs":[["told",5000,0.5,1],["told",6000,0.25,0.5],["told",7000,0.5,0.1,60000],["told",8000,0.0,0.1,120000]]}"#,
        r#"{"id":"gang","at":1000,"user":"u","pool":"b","tasks":[{"name":"g","job_count":4,"cpu":1,"memory":1000000000,"duration":30000,"memory_usage":{"list":[0.2,0.4]},"gang":true}]}"#,
    ]
    .map(|line| line.replace('\n', ""));
    let desk = Desk::new(4, 8, 3_600_000, &[&work[0], &work[1]]);
    let run = |policy: &str| {
        let models = format!(r#"{{"memory":"peak","memory_policy":"{policy}"}}"#);
        let ran = desk
            .checked(policy, &[("/models", &models), ("/controller_config", r#"{"footprint_memory":0}"#)]);
        assert_eq!(figure(&ran, "cluster/counts/operations/completed"), 2.0);
        let done = rows(&desk.read(&format!("{policy}/allocations.csv")));
        done.into_iter().filter(|r| r["outcome"] == "completed").collect::<Vec<_>>()
    };
    let (known, learnt) = (run("oracle"), run("digest"));
    for row in &known {
        let (reserve, peak) = (number(&row["memory_reserve"]), number(&row["memory_peak"]));
        // One of `told` uses nothing, and jobs of a gang are alike.
        let least = if peak.is_nan() { 1e-4 * number(&row["memory_limit"]) } else { peak };
        let most = if row["task"] == "g" { 4e8 } else { least * 1.0201 + 1.0 };
        assert!((least..=most).contains(&reserve), "{row:?}");
    }
    // The same jobs: how long they run and what they use at their peak.
    let jobs = |rows: &[std::collections::BTreeMap<String, String>]| {
        let job = |r: &std::collections::BTreeMap<String, String>| {
            let task = r["task"].split('~').next().unwrap_or_default().to_owned();
            let ms = number(&r["end_ms"]) - number(&r["start_ms"]);
            (task, r["memory_peak"].clone(), ms as u64)
        };
        let mut all: Vec<_> = rows.iter().map(job).collect();
        all.sort();
        all
    };
    assert_eq!(known.len(), 76);
    for (one, other) in jobs(&known).iter().zip(jobs(&learnt)) {
        // Both ends are cut to milliseconds.
        assert!(one.0 == other.0 && one.1 == other.1 && one.2.abs_diff(other.2) <= 1, "{one:?} {other:?}");
    }
    let begins = |rows: &[std::collections::BTreeMap<String, String>]| {
        let of = |then: bool, column: &'static str| {
            let rows = rows.iter().filter(move |r| (r["task"] == "then") == then && r["operation"] == "x");
            rows.filter(|r| !r["task"].starts_with("told")).map(move |r| number(&r[column]))
        };
        of(true, "start_ms").fold(f64::INFINITY, f64::min) >= of(false, "end_ms").fold(0.0, f64::max)
    };
    assert!(begins(&known) && begins(&learnt), "a task began before those that it waits for were complete");
}

/// A node has memory for two jobs at their peaks and gets more of them: somebody must go, and does his work
/// again with his whole limit reserved.
#[test]
fn overdraft_of_a_curve() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":12,"cpu":1,"memory":10000000000,"duration":60000,"memory_usage":0.9,"memory_curve":[[0,0.1],[0.5,1],[0.75,0.3]]}]}"#;
    let desk = Desk::new(1, 10, 36_000_000, &[work]);
    let node = ("/cluster/node_groups/0/resource_limits/memory", "20000000000");
    let ran = desk.checked("curve", &[node, ("/models", r#"{"memory":"curve"}"#)]);
    assert_eq!(figure(&ran, "cluster/counts/jobs_completed"), 12.0);
    let over = figure(&ran, "cluster/waste/overdrafted_jobs");
    assert!(over > 0.0, "nobody had to go");
    let attempts = rows(&desk.read("curve/allocations.csv"));
    for row in attempts.iter().filter(|r| r["reason"] == "resource_overdraft") {
        // The step comes at half of the run, and not before.
        assert_eq!(number(&row["end_ms"]) - number(&row["start_ms"]), 30_000.0, "{row:?}");
        let again =
            attempts.iter().find(|r| r["job_index"] == row["job_index"] && r["outcome"] == "completed");
        let reserve = number(&again.expect("done in the end")["memory_reserve"]);
        assert!(reserve >= 9_000_000_000.0, "{reserve}");
    }
    // A step above the limit is a failure, at its time.
    let limit = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":1,"cpu":1,"memory":10000000,"duration":80000,"memory_usage":1.2,"memory_curve":"ramp"}]}"#;
    desk.write("workload.jsonl", &(limit.to_owned() + "\n"));
    desk.checked("limit", &[("/models", r#"{"memory":"curve"}"#)]);
    let row = &rows(&desk.read("limit/allocations.csv"))[0];
    // Seven eighths of 1.2 are above 1.
    assert_eq!((&*row["outcome"], number(&row["end_ms"])), ("failed", 60_000.0), "{row:?}");
}

/// Two jobs that want the whole node: by their guarantees they get three quarters and a quarter of it.
#[test]
fn too_little_cpu_prolongs() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[
        {"name":"big","job_count":1,"cpu":3,"memory":1000000,"duration":30000,"cpu_usage":4},
        {"name":"small","job_count":1,"cpu":1,"memory":1000000,"duration":30000,"cpu_usage":4}]}"#
        .replace('\n', "");
    let desk = Desk::new(1, 4, 3_600_000, &[&work]);
    let end = |out: &str, task: &str| {
        let found = rows(&desk.read(&format!("{out}/allocations.csv")));
        number(&found.iter().find(|r| r["task"] == task).expect("a row")["end_ms"])
    };
    let ran = desk.checked("exact", &[("/models", r#"{"cpu":"exact"}"#)]);
    // Times end on the next microsecond.
    assert!((end("exact", "big") - 40_000.0).abs() <= 1.0 && (end("exact", "small") - 60_000.0).abs() <= 1.0);
    assert!((figure(&ran, "cluster/cpu/used_core_h") * 3600.0 - 240.0).abs() < 4.0, "{:?}", ran.summary);
    desk.checked("off", &[]);
    assert_eq!((end("off", "big"), end("off", "small")), (30_000.0, 30_000.0));
}

/// Where the controllers or the nodes cap jobs, idle cores are nobody's.
#[test]
fn caps_of_cpu() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":1,"cpu":2,"memory":1000000,"duration":30000,"cpu_usage":5}]}"#;
    let desk = Desk::new(1, 8, 3_600_000, &[work]);
    let end = |change: (&str, &str)| {
        desk.checked("out", &[("/models", r#"{"cpu":"exact"}"#), change]);
        number(&rows(&desk.read("out/allocations.csv"))[0]["end_ms"])
    };
    assert_eq!(end(("/node_config", "{}")), 30_000.0);
    // Times end on the next microsecond.
    let close = |found: f64, want: f64| assert!((found - want).abs() <= 1.0, "{found} {want}");
    close(end(("/node_config", r#"{"cpu_monitor_sets_cap":true}"#)), 75_000.0);
    let cap =
        r#"{"vanilla_operation_options":{"set_container_cpu_limit":true,"initial_cpu_limit_overcommit":1}}"#;
    close(end(("/controller_config", cap)), 50_000.0);
}

/// What is reserved for proxies, and what they use.
#[test]
fn memory_of_proxies() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":2,"cpu":2,"memory":1073741824,"duration":3600000,"memory_usage":0.4,"job_proxy_memory":{"estimate":134217728,"usage":67108864}}]}"#;
    let desk = Desk::new(1, 8, 36_000_000, &[work]);
    let ran = desk.checked("out", &[("/controller_config", r#"{"footprint_memory":134217728}"#)]);
    let found = |what: &str| figure(&ran, &format!("cluster/memory/job_proxies/{what}"));
    assert!((found("reserved_gib_h") - 0.25).abs() < 1e-3 && (found("used_gib_h") - 0.125).abs() < 1e-3);
}

/// What the workload says of an operation besides is beside the results.
#[test]
fn meta_of_operations() {
    let line = |id: &str, meta: &str| {
        format!(
            r#"{{"id":"{id}","at":0,"user":"u","pool":"a"{meta},"tasks":[{{"name":"t","job_count":1,"duration":1000}}]}}"#
        )
    };
    let with = [line("x", r#","meta":{"wait_s":5,"from":["a","b"]}"#), line("y", "")];
    let desk = Desk::new(1, 8, 600_000, &[&with[0], &with[1]]);
    desk.checked("out", &[]);
    assert_eq!(
        desk.read("out/meta.jsonl"),
        "{\"id\":\"x\",\"meta\":{\"wait_s\":5,\"from\":[\"a\",\"b\"]}}\n"
    );
    // The next run in that directory has none.
    desk.write("workload.jsonl", &line("x", ""));
    desk.checked("out", &[]);
    assert!(!desk.path().join("out/meta.jsonl").exists());
}

/// A node with more memory than may be reserved on it bears more.
#[test]
fn memory_beyond_the_limit() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":4,"cpu":1,"memory":1000000000,"duration":30000,"memory_usage":0.8}]}"#;
    let desk = Desk::new(1, 8, 3_600_000, &[work]);
    let limit = ("/cluster/node_groups/0/resource_limits/memory", "2000000000");
    let config = ("/controller_config", r#"{"footprint_memory":0}"#);
    let over = |physical: &str| {
        let physical = ("/cluster/node_groups/0/physical_memory", physical);
        figure(&desk.checked("out", &[limit, physical, config]), "cluster/waste/overdrafted_jobs")
    };
    // Four halves may be reserved, and come to 3.2 GB.
    assert!(over("2000000000") > 0.0);
    assert!(over("3000000000") > 0.0);
    assert_eq!(over("3200000000"), 0.0);
}

/// Failures of one group are not those of the others.
#[test]
fn failures_of_a_group() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","spec":{"allow_concurrent_attempts":true},"tasks":[{"name":"t","job_count":16,"cpu":4,"memory":1000000,"duration":1000000}]}"#;
    let desk = Desk::new(2, 8, 36_000_000, &[work]);
    let groups = r#"[{"name":"good","count":2,"resource_limits":{"cpu":8,"memory":1000000000,"user_slots":10}},{"name":"bad","count":2,"resource_limits":{"cpu":8,"memory":1000000000,"user_slots":10}}]"#;
    let failures = r#"{"node_mtbf_ms":1e15,"node_mttr_ms":1000,"distribution":"exp","per_group":{"bad":{"node_mtbf_ms":400000,"node_mttr_ms":20000}}}"#;
    desk.checked("out", &[("/cluster/node_groups", groups), ("/cluster/failures", failures)]);
    let lost = rows(&desk.read("out/allocations.csv"));
    let lost: Vec<_> =
        lost.iter().filter(|r| r["reason"] == "node_offline").map(|r| r["node"].clone()).collect();
    assert!(lost.len() > 2 && lost.iter().all(|node| node.starts_with("bad-")), "{lost:?}");
}

/// Nodes that are strict abort what is above its reserve, though there is memory enough.
#[test]
fn strict_nodes() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":1,"cpu":2,"memory":1000000000,"duration":30000,"memory_usage":0.8}]}"#;
    let desk = Desk::new(1, 8, 3_600_000, &[work]);
    let over = |config: &str| {
        figure(&desk.checked("out", &[("/node_config", config)]), "cluster/waste/overdrafted_jobs")
    };
    assert_eq!(over("{}"), 0.0);
    assert_eq!(over(r#"{"always_abort_on_memory_reserve_overdraft":true}"#), 1.0);
}

/// An idle job gives its cores back, and more jobs run on the node at the same time.
#[test]
fn the_monitor_makes_room() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":4,"cpu":4,"memory":1000000,"duration":3600000,"cpu_usage":0.5}]}"#;
    let desk = Desk::new(1, 8, 36_000_000, &[work]);
    let hours = |out: &str, config: &str| {
        let ran = desk.checked(out, &[("/models", r#"{"cpu":"exact"}"#), ("/node_config", config)]);
        assert_eq!(figure(&ran, "cluster/counts/jobs_completed"), 4.0);
        (figure(&ran, "virtual_ms") / 3.6e6, figure(&ran, "cluster/cpu/reclaimed_core_h"))
    };
    let (alone, nothing) = hours("off", "{}");
    assert!((alone - 2.0).abs() < 0.1 && nothing == 0.0, "{alone} {nothing}");
    let (together, reclaimed) = hours("on", r#"{"job_cpu_monitor":{"enable_cpu_reclaim":true}}"#);
    assert!(together < 1.8 && reclaimed > 1.0, "{together} {reclaimed}");
    let row = &rows(&desk.read("on/allocations.csv"))[0];
    assert!(
        number(&row["cpu_limit_mean"]) < 4.0 && (number(&row["cpu_used_mean"]) - 0.5).abs() < 0.01,
        "{row:?}"
    );
}

/// The promise of the CPU monitor: cores that a job gives back are another operation's within a second. Neither
/// a heartbeat (once an hour here) nor an update of shares (once a minute) brings them there: the change goes
/// from the node to the server at once, and the order to start comes back.
#[test]
fn freed_cores_are_used_within_a_second() {
    let idle = r#"{"id":"idle","at":0,"user":"u","pool":"a","spec":{"job_cpu_monitor":{"enable_cpu_reclaim":true}},"tasks":[{"name":"t","job_count":1,"cpu":4,"memory":1000000,"duration":3000000,"cpu_usage":0}]}"#;
    let other = r#"{"id":"other","at":10000,"user":"u","pool":"b","tasks":[{"name":"t","job_count":5,"cpu":1,"memory":1000000,"duration":3000000}]}"#;
    let desk = Desk::new(1, 4, 7_200_000, &[idle, other]);
    let rare = [
        ("/models", r#"{"cpu":"exact"}"#),
        ("/scheduler_config/node_heartbeat_period", "3600000"),
        ("/scheduler_config/node_heartbeat_timeout", "36000000"),
        ("/scheduler_config/fair_share_update_period", "60000"),
    ];
    desk.checked("out", &rare);
    let starts = |operation: &str| {
        let found = rows(&desk.read("out/allocations.csv"));
        let mut times: Vec<f64> =
            found.iter().filter(|r| r["operation"] == operation).map(|r| number(&r["start_ms"])).collect();
        times.sort_by(f64::total_cmp);
        times
    };

    // When the shipped monitor of such a job has given back one core, two and three.
    let mut monitor = Monitor::new(Default::default(), 4.0);
    let mut given_back = Vec::new();
    for second in 1..1000 {
        monitor.check(Span::from_secs(second), Some(Span(0)), |_| true);
        if Cpu::from_f64(4.0 - monitor.limit()) >= Cpu(100 * (given_back.len() as i64 + 1)) {
            given_back.push(second as f64 * 1000.0);
        }
    }
    assert_eq!(given_back.len(), 3, "down to the floor of one core: {given_back:?}");

    let [began] = starts("idle")[..] else { panic!("one job") };
    let waited: Vec<f64> =
        starts("other").iter().zip(&given_back).map(|(start, freed)| start - began - freed).collect();
    assert!(waited.len() == 3 && waited.iter().all(|ms| (0.0..1000.0).contains(ms)), "{waited:?}");
    println!("a freed core was used after {waited:?} ms");
}

/// Steps of a curve, and curves of a file.
#[test]
fn curves_of_cpu() {
    let lines = [
        r#"{"id":"steps","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":1,"cpu":4,"memory":1000000,"duration":40000,"cpu_usage":{"curve":[[0,1],[10000,3],[30000,0]]}}]}"#,
        r#"{"id":"file","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":2,"cpu":4,"memory":1000000,"duration":60000,"cpu_usage":{"curves":"c.csv"}}]}"#,
        r#"{"id":"key","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":1,"cpu":4,"memory":1000000,"duration":60000,"cpu_usage":{"curves":"c.csv","key":"two"}}]}"#,
    ];
    let desk = Desk::new(4, 4, 3_600_000, &lines);
    desk.write(
        "c.csv",
        "job_id,submit_s,cpu_req,period_s,samples,curve\none,0,4,30,2,100 300\ntwo,0,4,30,2,50x2\n",
    );
    desk.checked("out", &[("/models", r#"{"cpu":"exact"}"#)]);
    let mut used: Vec<(String, f64)> = rows(&desk.read("out/allocations.csv"))
        .iter()
        .map(|r| (format!("{}.{}", r["operation"], r["job_index"]), number(&r["cpu_used_mean"])))
        .collect();
    used.sort_by(|a, b| a.0.cmp(&b.0));
    let want = [("file.0", 2.0), ("file.1", 0.5), ("key.0", 0.5), ("steps.0", 1.75)];
    for ((name, found), (want_name, want)) in used.iter().zip(want) {
        assert!(name == want_name && (found - want).abs() < 0.001, "{used:?}");
    }
}

#[test]
fn delays() {
    let work = r#"{"id":"x","at":5000,"user":"u","pool":"a","tasks":[{"name":"t","job_count":2,"cpu":4,"memory":1000000,"duration":20000}]}"#;
    let desk = Desk::new(1, 4, 3_600_000, &[work]);
    let models = r#"{"delays":{"operation_prepare":3000,"job_end_to_scheduler":2000}}"#;
    desk.checked("out", &[("/models", models)]);
    let found = rows(&desk.read("out/allocations.csv"));
    let times: Vec<_> = found.iter().map(|r| (number(&r["start_ms"]), number(&r["end_ms"]))).collect();
    // The second job starts when the scheduler has heard of the end of the first one.
    assert_eq!(times, [(8_000.0, 28_000.0), (30_000.0, 50_000.0)]);
}

/// Controllers answer two seconds late: what they start is booked meanwhile, and starts later. Changes of pools
/// are seen ten seconds late.
#[test]
fn late_answers_and_late_looks() {
    let work = r#"{"id":"x","at":5000,"user":"u","pool":"a","tasks":[{"name":"t","job_count":4,"cpu":2,"memory":1000000,"duration":20000}]}"#;
    let desk = Desk::new(1, 4, 3_600_000, &[work]);
    let ends = |out: &str, changes: &[(&str, &str)]| {
        desk.checked(out, changes);
        let found = rows(&desk.read(&format!("{out}/allocations.csv")));
        found.iter().map(|r| number(&r["end_ms"])).collect::<Vec<_>>()
    };
    let late = ("/models", r#"{"delays":{"schedule_allocation":2000}}"#);
    assert_eq!(ends("late", &[late]), [27_000.0, 27_000.0, 49_000.0, 49_000.0]);
    // A pool that may run one operation at a time from 7 s on: what comes at 8 s waits for the first to end,
    // unless the scheduler looks ten seconds later.
    let other = r#"{"id":"y","at":8000,"user":"u","pool":"a","tasks":[{"name":"t","job_count":1,"cpu":2,"memory":1000000,"duration":20000}]}"#;
    let desk = Desk::new(3, 4, 3_600_000, &[work, other]);
    let limit = (
        "/events",
        r#"[{"at":7000,"type":"set_pool","pool":"a","attributes":{"max_running_operation_count":1}}]"#,
    );
    let end_of_other = |out: &str, changes: &[(&str, &str)]| {
        desk.checked(out, changes);
        let found = rows(&desk.read(&format!("{out}/allocations.csv")));
        number(&found.iter().find(|r| r["operation"] == "y").expect("a row")["end_ms"])
    };
    let soon = end_of_other("soon", &[limit]);
    assert!((45_000.0..47_000.0).contains(&soon), "{soon}");
    let watcher = ("/models", r#"{"delays":{"watcher":10000}}"#);
    assert_eq!(end_of_other("looks", &[limit, watcher]), 28_000.0);
}

/// Everything at once, twice, and in the long way: the same bytes.
#[test]
fn the_same_each_time() {
    let work: Vec<String> = (0..12)
        .map(|i| {
            format!(
                r#"{{"id":"o{i}","at":{},"user":"u","pool":"{}","spec":{{"max_failed_job_count":100}},"tasks":[{{"name":"t","job_count":30,"cpu":2,"memory":4000000000,"duration":{{"lognormal":{{"median":60000,"sigma":0.8}}}},"memory_usage":{{"beta":{{"a":3,"b":3}}}},"memory_curve":"ramp","cpu_usage":{{"uniform":[0.2,3]}},"interruptible":{},"interrupt_time":{{"uniform":[0,5000]}},"fail_probability":0.02}}]}}"#,
                i * 20_000,
                if i % 2 == 0 { "a" } else { "b" },
                i % 3 == 0,
            )
        })
        .collect();
    let lines: Vec<&str> = work.iter().map(String::as_str).collect();
    let desk = Desk::new(6, 8, 7_200_000, &lines);
    let changes = [
        (
            "/models",
            r#"{"memory":"curve","cpu":"exact","delays":{"schedule_allocation":150,"watcher":1000}}"#,
        ),
        ("/node_config", r#"{"job_cpu_monitor":{"enable_cpu_reclaim":true}}"#),
        ("/cluster/node_groups/0/resource_limits/memory", "14000000000"),
        ("/cluster/failures", r#"{"node_mtbf_ms":900000,"node_mttr_ms":60000}"#),
        (
            "/events",
            r#"[{"at":300000,"type":"scheduler_restart","downtime_ms":5000},{"at":400000,"type":"nodes_offline","group":"n","count":1},{"at":500000,"type":"nodes_online","group":"n","count":1},{"at":200000,"type":"set_pool","pool":"a","attributes":{"weight":3.0}}]"#,
        ),
        ("/output", r#"{"event_log":true}"#),
    ];
    let run = |out: &str, options: Options| {
        desk.run(out, &changes, options).unwrap_or_else(|e| panic!("{e}"));
        ["pools.csv", "operations.csv", "allocations.csv", "events.jsonl", "summary.json"]
            .map(|name| desk.read(&format!("{out}/{name}")))
    };
    let first = run("one", Options { check_invariants: true, ..Options::default() });
    assert!(
        first[2].contains("node_offline") && first[2].lines().count() > 360,
        "a run in which little happens"
    );
    assert!(first == run("two", Options::default()));
    let slow = run("slow", Options { shortcuts: false, ..Options::default() });
    for (quick, slow) in first.iter().zip(&slow).take(4) {
        assert!(quick == slow);
    }
}

/// Who wants to stop gets complete files up to that time.
#[test]
fn an_early_end_leaves_valid_files() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":2000,"cpu":1,"memory":1000000,"duration":{"uniform":[1000,9000]}}]}"#;
    let desk = Desk::new(4, 10, 36_000_000, &[work]);
    let scenario = desk.load(&[]).unwrap_or_else(|e| panic!("{e}"));
    let mut looks = 0;
    let mut watch = |_: &sim::Progress| {
        looks += 1;
        looks < 2
    };
    let out = desk.path().join("out");
    let ran = sim::run(&scenario, &out, Options::default(), &mut watch, &mut |_| yson::Map::new());
    let ran = ran.unwrap_or_else(|e| panic!("{e}"));
    assert!(ran.interrupted);
    let summary = crate::desk::json(&desk.read("out/summary.json"));
    assert_eq!(summary.get("interrupted").and_then(yson::Value::as_bool), Some(true));
    let attempts = rows(&desk.read("out/allocations.csv"));
    assert!(
        attempts.iter().any(|r| r["outcome"] == "completed")
            && attempts.iter().any(|r| r["outcome"] == "running")
    );
    assert_eq!(rows(&desk.read("out/operations.csv"))[0]["state"], "running");
    assert_eq!(figure(&ran, "cluster/counts/jobs_started"), attempts.len() as f64);
}
