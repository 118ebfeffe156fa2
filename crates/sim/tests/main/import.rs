//! Logs of others as workloads: nothing is lost, what cannot be used is told.

use crate::desk::{Desk, figure, json, rows};
use crate::whole::whole;
use sim::import::{Imported, Kind, Mapping, import};
use sim::{Options, Scenario, SimError};
use std::path::{Path, PathBuf};
use yson::{Map, Value};

fn trace(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces")).join(name)
}

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Bench {
        Bench(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).expect("a file");
        self.path(name)
    }

    fn import(&self, kind: Kind, text: &str, mapping: &str) -> Result<Imported, SimError> {
        let input = self.write("log", text);
        let mapping = Mapping::load(&self.write("mapping.json", mapping))?;
        import(kind, &[input], &mapping, &self.path("work.jsonl"), None)
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("work.jsonl")).expect("a workload");
        text.lines().map(json).collect()
    }
}

fn number(value: &Value, path: &str) -> f64 {
    let found = path.split('/').try_fold(value, |v, key| match v {
        Value::List(list) => list.get(key.parse::<usize>().ok()?),
        v => v.get(key),
    });
    found.and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path}: {value:?}"))
}

#[test]
fn swf_with_everything_that_is_wrong_with_it() {
    let log = "; Version: 2.2\r\n;\r\n\
        1 0 5 60 16 30 2048 -1 -1 4096 1 12 3 -1 3 1 -1 -1\r\n\
        2 10 -1 0 4 -1 -1 20 -1 -1 1 13 3 -1 3 1 -1 -1\n\
        3 20 -1 -1 4 -1 -1 4 -1 -1 5 13 3 -1 3 1 -1 -1\n\
        oops\n\n\
        4 30 0 7 -1 -1 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1\n";
    let bench = Bench::new();
    let mapping = r#"{"job_cpu":8,"queue_names":{"3":"normal"},"pool":"{queue}/u{user}"}"#;
    let found = bench.import(Kind::Swf, log, mapping).unwrap_or_else(|e| panic!("{e}"));
    let skipped: Vec<_> = found.skipped.iter().map(|(reason, count, _)| (reason, count)).collect();
    let want =
        [("a word that is no number", 1), ("no number of processors", 1), ("no run time: it never ran", 1)];
    assert_eq!(skipped, want);
    assert_eq!((found.totals.operations, found.totals.jobs), (2, 5));
    // A run of no seconds is one of one second.
    assert_eq!(found.totals.core_seconds, 16.0 * 60.0 + 20.0);
    assert_eq!(found.totals.used_core_seconds, 16.0 * 30.0 + 20.0);
    let lines = bench.lines();
    assert_eq!(lines[0].get("pool").and_then(Value::as_str), Some("normal-u12"));
    assert_eq!((number(&lines[0], "tasks/0/job_count"), number(&lines[0], "tasks/0/cpu")), (2.0, 8.0));
    assert_eq!(number(&lines[0], "tasks/0/memory"), 8.0 * 4096.0 * 1024.0);
    assert_eq!(number(&lines[0], "tasks/0/memory_usage"), 0.5);
    assert_eq!(number(&lines[0], "tasks/0/cpu_usage"), 4.0);
    assert_eq!(number(&lines[0], "meta/wait_s"), 5.0);
    // 20 cores are two jobs of eight and one of four.
    assert_eq!((number(&lines[1], "tasks/0/job_count"), number(&lines[1], "tasks/1/cpu")), (2.0, 4.0));
}

const TABLE: &str = "job_id,op_id,task,user,group,queue,node_class,submit_s,wait_s,run_s,task_count,cpu_req,cpu_used,mem_req_mib,mem_used_mib,gpu_req,gpu_model,time_limit_s,status\n\
    a,o1,map,ann,,,,10,,5,3,2,1.5,100,50,,,,completed\n\
    b,o1,map,ann,,,,12,,7,1,2,2,100,25,,,,completed\n\
    c,o1,map,ann,,,,12,,7,1,4,,200,,,,,completed\n\
    d,o2,,bob,,,,0,,100,1,,,,,0.5,,,failed\n\
    e,o3,,bob,,,,1,,,1,1,,,,,,,\n\
    f,o3,,bob,,,,1,,-4,1,1,,,,,,,\n\
    g,o3\n\
    h,o4,big,eve,,,,500,,10,2,,,,,20,,,\n";

#[test]
fn tables_of_tasks() {
    let bench = Bench::new();
    let mapping =
        r#"{"split_gpus_per_job":8,"per_gpu":{"cpu":7,"memory":1073741824},"pool":"p{op_id%2}","gang":true}"#;
    let found = bench.import(Kind::Mjobs, TABLE, mapping).unwrap_or_else(|e| panic!("{e}"));
    let skipped: Vec<_> = found.skipped.iter().map(|(reason, count, _)| (reason, count)).collect();
    assert_eq!(skipped, [("a number that is none or below 0", 1), ("another number of columns", 1)]);
    assert_eq!(found.notes.get("without a run time, left out"), Some(&1));
    let lines = bench.lines();
    let ids: Vec<_> = lines.iter().map(|l| l.get("id").and_then(Value::as_str).unwrap_or("?")).collect();
    assert_eq!(ids, ["o2", "o1", "o4"]);
    // Jobs that ask for the same are one task; each of them has its own time and use.
    assert_eq!(number(&lines[1], "tasks/0/job_count"), 4.0);
    assert_eq!(number(&lines[1], "tasks/1/job_count"), 1.0);
    let jobs = lines[1].get("jobs").and_then(Value::as_list).expect("jobs");
    let row = |i: usize| {
        jobs[i]
            .as_list()
            .expect("a row")
            .iter()
            .skip(1)
            .map(|v| v.as_f64().expect("a number"))
            .collect::<Vec<_>>()
    };
    assert_eq!((row(0), row(3), jobs.len()), (vec![5000.0, 0.5, 1.5], vec![7000.0, 0.25, 2.0], 4));
    // Half a device is one; twenty are two jobs of eight and one of four, and that twice.
    assert_eq!((number(&lines[0], "tasks/0/gpu"), number(&lines[0], "tasks/0/cpu")), (1.0, 7.0));
    assert_eq!((number(&lines[2], "tasks/0/job_count"), number(&lines[2], "tasks/0/gpu")), (4.0, 8.0));
    assert_eq!((number(&lines[2], "tasks/1/job_count"), number(&lines[2], "tasks/1/gpu")), (2.0, 4.0));
    assert_eq!(found.totals.gpu_seconds, 100.0 + 2.0 * 20.0 * 10.0);
}

/// Rows of one user and queue are one operation, whose jobs arrive when they did.
#[test]
fn operations_of_users_whose_jobs_arrive() {
    let bench = Bench::new();
    let log = "1 0 5 60 2 -1 -1 2 -1 1024 1 12 3 -1 3 1 -1 -1\n\
        2 10 90 60 1 -1 -1 1 -1 1024 1 12 3 -1 3 1 -1 -1\n\
        3 20 0 30 1 -1 -1 1 -1 1024 1 12 3 -1 3 1 -1 -1\n\
        4 30 0 30 1 -1 -1 1 -1 1024 1 7 3 -1 3 1 -1 -1\n";
    let mapping = r#"{"operation":"{user}-{queue}","arrivals":"start","job_cpu":1}"#;
    let found = bench.import(Kind::Swf, log, mapping).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((found.totals.operations, found.totals.jobs), (2, 5));
    let lines = bench.lines();
    let texts = |value: &Value| value.as_list().expect("a list").iter().map(|v| format!("{v:?}")).collect();
    let jobs: Vec<Vec<String>> =
        lines[0].get("jobs").and_then(Value::as_list).expect("jobs").iter().map(texts).collect();
    assert_eq!(lines[0].get("id").and_then(Value::as_str), Some("12-3"));
    assert_eq!((number(&lines[0], "at"), number(&lines[0], "tasks/0/job_count")), (5000.0, 4.0));
    let last: Vec<(&str, &str, usize)> =
        jobs.iter().map(|row| (row[1].as_str(), row[row.len() - 1].as_str(), row.len())).collect();
    // Two of the first row, which has two processors; the third one started before the second.
    assert_eq!(last[2..], [("30000", "15000", 5), ("60000", "95000", 5)], "{last:?}");
    assert_eq!((last[0].0, last[0].2, last[1].2), ("60000", 4, 4));
    // A single job that is there when its operation is needs no list.
    assert_eq!((number(&lines[1], "at"), lines[1].get("jobs")), (30_000.0, None));
}

/// A job that nobody measured has the peak of another one of the same user and queue, unless the mapping says
/// something else; a user of whom nothing is known uses the limit.
#[test]
fn peaks_that_are_not_known() {
    let bench = Bench::new();
    let job = |number: u32, kib: i32, user: u32| {
        format!("{number} {number} 0 3600 1 -1 {kib} 1 -1 1048576 1 {user} 3 -1 3 1 -1 -1\n")
    };
    let measured = [262_144, 524_288].into_iter().cycle().take(40);
    let mut log: String = (0..).zip(measured).map(|(i, kib)| job(i, kib, 12)).collect();
    log.extend((40..60).map(|i| job(i, -1, 12)));
    log.push_str(&job(60, -1, 13));
    let peaks = |mapping: &str| {
        let found = bench.import(Kind::Swf, &log, mapping).unwrap_or_else(|e| panic!("{e}"));
        let peak =
            |line: &Value| line.get("tasks").and_then(|t| t.as_list()?[0].get("memory_usage")?.as_f64());
        let notes: Vec<(&str, u64)> =
            found.notes.iter().filter(|(what, _)| what.contains("peak")).map(|(w, n)| (*w, *n)).collect();
        (bench.lines().iter().map(peak).skip(40).collect::<Vec<_>>(), notes)
    };
    let (drawn, notes) = peaks("{}");
    assert_eq!(
        notes,
        [
            ("without a known peak of memory, given one of the same user, queue and task", 20),
            ("without a known peak of memory, given their limit", 1)
        ]
    );
    let small = drawn.iter().filter(|peak| **peak == Some(0.25)).count();
    let large = drawn.iter().filter(|peak| **peak == Some(0.5)).count();
    assert!(small > 3 && large > 3 && small + large == 20 && drawn[20].is_none(), "{drawn:?}");
    assert_eq!(peaks(r#"{"memory":{"unknown_peak":"draw"}}"#).0, drawn, "the same each time");
    let (limits, notes) = peaks(r#"{"memory":{"unknown_peak":"limit"}}"#);
    assert_eq!(notes, [("without a known peak of memory, given their limit", 21)]);
    assert_eq!(limits, vec![None; 21]);
    let (left, notes) = peaks(r#"{"memory":{"const_per_cpu":1073741824,"unknown_peak":"skip"}}"#);
    assert_eq!(notes, [("without a known peak of memory, left out", 21)]);
    assert!(left.is_empty());
}

#[test]
fn windows_filters_and_copies() {
    let bench = Bench::new();
    let log: String = (0..100)
        .map(|i| format!("{i} {} -1 60 2 -1 -1 2 -1 -1 1 {} 1 1 1 1 -1 -1\n", i * 10, i % 4))
        .collect();
    let ops = |mapping: &str| {
        let found = bench.import(Kind::Swf, &log, mapping).unwrap_or_else(|e| panic!("{e}"));
        (found.totals.operations, found.totals.first_ms, found.totals.last_ms, found.totals.core_seconds)
    };
    assert_eq!(ops("{}"), (100, 0, 990_000, 12_000.0));
    assert_eq!(ops(r#"{"window":[100,200]}"#), (10, 0, 90_000, 1200.0));
    assert_eq!(ops(r#"{"filter":{"user":[1]}}"#), (25, 10_000, 970_000, 3000.0));
    assert_eq!(ops(r#"{"window":[100,200],"repeat":3}"#), (30, 0, 290_000, 3600.0));
    assert_eq!(ops(r#"{"arrival_scale":0.5,"time_scale":2}"#), (100, 0, 495_000, 24_000.0));
    let (kept, ..) = ops(r#"{"sample":0.5}"#);
    assert!((30..70).contains(&kept), "{kept}");
}

/// A run writes its own event log; the work in it is the work that was done.
#[test]
fn our_own_event_log() {
    let desk = Desk::new(
        2,
        4,
        3_600_000,
        &[
            r#"{"id":"x","at":5000,"user":"ann","pool":"a","spec":{"max_failed_job_count":100},"tasks":[{"name":"t","job_count":40,"cpu":1,"memory":1000000000,"duration":{"uniform":[50000,70000]},"memory_usage":0.25,"cpu_usage":0.5,"fail_probability":0.1}]}"#,
            r#"{"id":"y","at":20000,"user":"bob","pool":"b","tasks":[{"name":"t","job_count":8,"cpu":2,"memory":1000000000,"duration":30000}]}"#,
        ],
    );
    let ran = desk.checked("out", &[("/output", r#"{"event_log":true}"#)]);
    let out = desk.path().join("again.jsonl");
    let log = [desk.path().join("out/events.jsonl")];
    let found = import(Kind::EventLog, &log, &Mapping::plain(), &out, None).unwrap_or_else(|e| panic!("{e}"));
    let figure = |name: &str| figure(&ran, &format!("cluster/counts/{name}"));
    let preempted = figure("jobs_preempted");
    assert!(preempted > 0.0 && figure("jobs_failed") > 0.0, "nothing to leave out");
    assert_eq!(found.totals.operations, 2);
    assert_eq!(found.totals.jobs as f64, figure("jobs_started") - preempted);
    let text = std::fs::read_to_string(&out).expect("a workload");
    let x = json(text.lines().next().expect("a line"));
    let (cpu, memory) = (number(&x, "tasks/0/cpu"), number(&x, "tasks/0/memory"));
    assert_eq!((cpu, memory), (1.0, 1e9));
    assert_eq!(x.get("pool").and_then(Value::as_str), Some("a"));
    assert_eq!(x.get("user").and_then(Value::as_str), Some("ann"));
    let jobs = x.get("jobs").and_then(Value::as_list).expect("jobs");
    let full = |job: &&Value| (50_000.0..=70_000.0).contains(&number(job, "1"));
    assert!(jobs.iter().filter(full).count() >= 40);
    // What the jobs used is known again.
    assert!((number(&jobs[0], "2") - 0.25).abs() < 0.01, "{:?}", jobs[0]);
    assert!((number(&jobs[0], "3") - 0.5).abs() < 0.01, "{:?}", jobs[0]);
}

/// What a log says of a cluster, played again on this cluster: the same jobs at the same times, on the same nodes.
#[test]
fn our_own_event_log_plays_as_it_did() {
    let task = |cpu: u64, jobs: u64, least: u64, most: u64| {
        format!(
            r#"[{{"name":"t","job_count":{jobs},"cpu":{cpu},"memory":1000000000,"memory_usage":0.25,"cpu_usage":0.5,
            "duration":{{"uniform":[{least},{most}]}}}}]"#
        )
        .replace('\n', "")
    };
    let operation = |id: &str, at: u64, pool: &str, tasks: &str| {
        format!(r#"{{"id":"{id}","at":{at},"user":"ann","pool":"{pool}","tasks":{tasks}}}"#)
    };
    let lines = [
        operation("x", 5_003, "a", &task(1, 60, 20_000, 70_000)),
        operation("y", 20_007, "b", &task(2, 14, 10_000, 90_000)),
        operation("z", 41_011, "a", &task(3, 5, 30_000, 60_000)),
    ];
    let desk = Desk::new(3, 4, 3_600_000, &lines.each_ref().map(String::as_str));
    let first = desk.checked("first", &[("/output", r#"{"event_log":true}"#)]);
    assert!(figure(&first, "cluster/counts/jobs_preempted") > 0.0);
    let scenario = desk.load(&[]).unwrap_or_else(|e| panic!("{e}"));
    desk.write("mapping.json", &format!(r#"{{"start_time":"{}"}}"#, scenario.start));
    let mapping = Mapping::load(&desk.path().join("mapping.json")).unwrap_or_else(|e| panic!("{e}"));
    let log = [desk.path().join("first/events.jsonl")];
    import(Kind::EventLog, &log, &mapping, &desk.path().join("again.jsonl"), None)
        .unwrap_or_else(|e| panic!("{e}"));
    desk.checked("again", &[("/workload", r#"["again.jsonl"]"#)]);
    let attempts = |run: &str| {
        let mut attempts: Vec<_> = rows(&desk.read(&format!("{run}/allocations.csv")))
            .iter()
            .map(|row| {
                ["job_index", "attempt", "node", "ordered_ms", "end_ms", "outcome", "cpu"]
                    .map(|column| row[column].clone())
            })
            .collect();
        attempts.sort();
        attempts
    };
    assert!(attempts("first").len() > 79);
    assert_same(&attempts("first"), &attempts("again"));
}

/// The first ones that differ say more than all.
fn assert_same(want: &[[String; 7]], found: &[[String; 7]]) {
    assert_eq!(want.len(), found.len());
    for (want, found) in want.iter().zip(found) {
        assert_eq!(want, found);
    }
}

#[test]
fn broken_lines_of_an_event_log() {
    let bench = Bench::new();
    let end = |job: &str, from: &str, to: &str| {
        format!(
            r#"{{"event":"job_completed","time":"{to}","operation_id":"1-2-3e8-4","task_name":"t","job_id":"{job}","pool":"a","start_time":"{from}","finish_time":"{to}","resource_limits":{{"cpu":2.0,"memory":1000}}}}"#
        )
    };
    let log = [
        r#"{"event":"node_online","time":"2026-01-01T00:00:10.000000Z"}"#.to_owned(),
        "{".to_owned(),
        r#"{"event":"job_failed","time":"2026-01-01T00:01:00.000000Z"}"#.to_owned(),
        // It began before the log: ten seconds of it are left.
        end("1", "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:20.000000Z"),
        end("2", "2026-01-01T00:00:15.000000Z", "2026-01-01T00:00:20.000000Z"),
    ];
    let found = bench.import(Kind::EventLog, &log.join("\n"), "{}").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(found.skipped.count(), 2);
    assert_eq!((found.totals.operations, found.totals.jobs), (1, 2));
    assert_eq!(found.totals.core_seconds, 2.0 * (10.0 + 5.0));
    let later = r#"{"start_time":"2026-01-01T00:00:12Z"}"#;
    let found = bench.import(Kind::EventLog, &log.join("\n"), later).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(found.totals.core_seconds, 2.0 * (8.0 + 5.0));
    assert_eq!(found.skipped.count(), 2);
    // What was over is no work.
    let after = end("3", "2026-01-01T00:00:20.000000Z", "2026-01-01T00:00:50.000000Z");
    let log = [log.as_slice(), &[after]].concat().join("\n");
    let found = bench.import(Kind::EventLog, &log, r#"{"start_time":"2026-01-01T00:00:30Z"}"#);
    let found = found.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((found.totals.jobs, found.totals.core_seconds), (1, 2.0 * 20.0));
    assert_eq!(found.skipped.count(), 2 + 2);
}

#[test]
fn refusals() {
    let bench = Bench::new();
    let told = |mapping: &str| {
        let error = bench.import(Kind::Swf, "", mapping).expect_err(mapping);
        error.to_string().replace(&bench.0.path().display().to_string(), "DIR")
    };
    let found = [
        r#"{"pol":"a"}"#,
        r#"{"pool":"{quue}"}"#,
        r#"{"window":[5,1]}"#,
        r#"{"start_time":"noon"}"#,
        r#"{"operation":"{jobs}"}"#,
        r#"{"arrivals":"never"}"#,
        r#"{"sample":0}"#,
        r#"{"memory":{"per_core":5}}"#,
        r#"{"processors":"all"}"#,
        r#"{"memory":{"user_percentile":{"p":2}}}"#,
        r#"{"memory":{}}"#,
        r#"{"memory":{"unknown_peak":"guess"}}"#,
        r#"{"memory":{"const_per_cpu":5,"user_percentile":{"p":0.5}}}"#,
        r#"{"filter":{"colour":["red"]}}"#,
        r#"{"cpu_usage":{"uniform":[2,1]}}"#,
        r#"{"import":{"job_cpu":-1}}"#,
        r#"{"import":{},"clutser":{}}"#,
    ]
    .map(told);
    expect_test::expect![[r#"
        DIR/mapping.json: /pol: unknown option
        DIR/mapping.json: /pool: no column "quue", known are ["user", "group", "queue", "partition", "node_class", "status", "op_id", "task"]
        DIR/mapping.json: /window: expected [from, to], seconds of the log, from < to
        DIR/mapping.json: /start_time: expected a date, found string "noon"
        DIR/mapping.json: /operation: no column "jobs", known are ["user", "group", "queue", "partition", "node_class", "status", "op_id", "task"]
        DIR/mapping.json: /arrivals: expected "submission" or "start", found string "never"
        DIR/mapping.json: /sample: expected a part from 0 to 1, not 0, found 0
        DIR/mapping.json: /memory/per_core: unknown option
        DIR/mapping.json: /processors: expected "requested" or "used", found string "all"
        DIR/mapping.json: /memory/user_percentile/p: expected double in 0.0..=1.0, found 2
        DIR/mapping.json: /memory: expected "req_mem_per_proc", or a map with at most one of {"const_per_cpu": bytes} and {"user_percentile": {"p", "factor", "round": "pow2"}}, and "unknown_peak", found a map
        DIR/mapping.json: /memory/unknown_peak: expected "draw", "limit" or "skip", found string "guess"
        DIR/mapping.json: /memory: expected "req_mem_per_proc", or a map with at most one of {"const_per_cpu": bytes} and {"user_percentile": {"p", "factor", "round": "pow2"}}, and "unknown_peak", found a map
        DIR/mapping.json: /filter/colour: no such column, known are ["user", "group", "queue", "partition", "node_class", "status", "op_id", "task"]
        DIR/mapping.json: /cpu_usage/uniform: expected two numbers [a, b] with a <= b
        DIR/mapping.json: /import/job_cpu: expected double in 0.01..=1000000.0, found -1
        DIR/mapping.json: /clutser: unknown option, known beside "import" are ["import", "cluster", "pool_trees", "comment"]"#]].assert_eq(&found.join("\n"));
    let error =
        import(Kind::Mjobs, &[bench.write("t.csv", "a,b\n1,2\n")], &Mapping::plain(), &bench.path("o"), None);
    assert!(error.expect_err("no header").to_string().contains("a column \"job_id\""));
}

/// Within a thousandth, or within what the description was rounded by.
fn close(name: &str, found: f64, want: f64) {
    assert!((found - want).abs() <= (1e-3 * want).max(0.5), "{name}: {found} of {want}");
}

/// Totals of the traces' descriptions; logs of other schedulers come in whole.
#[test]
fn the_shared_traces() {
    let bench = Bench::new();
    let check = |name: &str, mapping: Option<&str>, operations: u64, jobs: u64| {
        let mapping = match mapping {
            Some(text) => Mapping::load(&bench.write("mapping.json", text)),
            None => Ok(Mapping::plain()),
        };
        let mapping = mapping.unwrap_or_else(|e| panic!("{e}"));
        let found = import(Kind::Mjobs, &[trace(name)], &mapping, &bench.path("o.jsonl"), None);
        let found = found.unwrap_or_else(|e| panic!("{name}: {e}"));
        let counts = (found.totals.operations, found.totals.jobs, found.skipped.count());
        assert_eq!(counts, (operations, jobs, 0), "{name}: {:?} {:?}", found.skipped, found.notes);
        found
    };
    for (name, jobs, asked, used) in
        [("rnaseq", 1308, 2515.0, 861.0), ("chipseq", 2938, 838.0, 491.0), ("mag", 6242, 6272.0, 975.0)]
    {
        let found = check(&format!("nfcore-tasks/{name}.csv.gz"), None, 1, jobs).totals;
        close(name, found.gib_hours, asked);
        close(name, found.used_gib_hours, used);
    }
    // Pods that never started have the median of their class.
    let found = check("openb-2023/jobs.csv.gz", Some(r#"{"missing_run_s":"median_of_queue"}"#), 8152, 8152);
    close("openb-2023", found.totals.cores, 85_436.0);
    // 6,087 devices are asked for in parts of one, too; a part is a whole one here.
    assert_eq!(found.notes.get("with a part of a device, given a whole one"), Some(&3078));
    assert_eq!(found.notes.get("without a run time, given one"), Some(&(8152 - 7255)));
}

/// The big ones: of the logs only the first, unless everything is wanted.
#[test]
fn the_big_traces() {
    let bench = Bench::new();
    let load = |name: &str, kind, mapping: Mapping| {
        import(kind, &[trace(name)], &mapping, &bench.path("o.jsonl.gz"), None)
            .unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    let mapping = |name: &str| Mapping::load(&trace(name)).unwrap_or_else(|e| panic!("{e}"));
    // Processors as the descriptions count them.
    let used = || {
        let path = bench.write("used.json", r#"{"processors":"used"}"#);
        Mapping::load(&path).unwrap_or_else(|e| panic!("{e}"))
    };
    let mean = |found: &Imported, seconds: f64| {
        seconds / ((found.totals.last_ms - found.totals.first_ms) as f64 / 1000.0)
    };
    let cores = |found: &Imported| mean(found, found.totals.core_seconds);
    if whole() {
        let found = load("alibaba-batch-2017/jobs.csv.gz", Kind::Mjobs, Mapping::plain());
        assert_eq!(
            (found.totals.operations, found.totals.tasks, found.totals.jobs),
            (5216, 31756, 2_551_075)
        );
        close("alibaba-batch-2017", cores(&found), 1885.0);
    }
    for (name, jobs, mean) in [
        ("sdsc-blue-2000", 129_630, 850.0),
        ("ricc-2010", 146_909, 7540.0),
        ("metacentrum-2009", 60_529, 293.0),
    ]
    .into_iter()
    .take(if whole() { 3 } else { 1 })
    {
        let file = format!("{name}/{name}.swf.gz");
        let found = load(&file, Kind::Swf, used());
        assert_eq!(found.totals.operations + found.skipped.count(), jobs, "{name}: {:?}", found.skipped);
        close(name, cores(&found), mean);
        // Nothing but what was cancelled before its start, and that is 5.7 % of one log.
        let cancelled = if name == "sdsc-blue-2000" { 0.057 * jobs as f64 } else { 0.0 };
        assert!(
            (found.skipped.count() as f64 - cancelled).abs() <= 0.0005 * jobs as f64,
            "{:?}",
            found.skipped
        );
        if name != "metacentrum-2009" {
            load(&file, Kind::Swf, mapping(&format!("{name}/pools.json")));
        }
    }
    let found = load("philly-2017/jobs.csv.gz", Kind::Mjobs, mapping("philly-2017/pools.json"));
    assert_eq!(found.totals.operations, 35_824);
    close("philly-2017", mean(&found, found.totals.gpu_seconds), 411.0);
    let found = load("surf-lisa-2022/jobs.csv.gz", Kind::Mjobs, Mapping::plain());
    assert_eq!((found.totals.operations, found.totals.jobs), (98_845, 98_845));
    let found = load("surf-lisa-2022/cpu_curves.csv.gz", Kind::Mjobs, Mapping::plain());
    assert_eq!(found.totals.jobs, 2037);
    close("curves", found.totals.core_seconds / 3600.0, 217_003.0);
    close("curves", found.totals.used_core_seconds / 3600.0, 153_292.0);
}

/// The pools of a log are made, and the work is done.
#[test]
fn a_scenario_of_a_log() {
    let bench = Bench::new();
    let log: String = (0..40)
        .map(|i| format!("{i} {i} -1 60 16 -1 -1 16 -1 -1 1 {} 1 1 {} 1 -1 -1\n", i % 3, i % 2))
        .collect();
    let mapping = r#"{"import":{"queue_names":{"0":"high"},"pool":"{queue}/u{user}","fallback_parent":"others","job_cpu":8},
        "cluster":{"node_groups":[{"name":"n","count":4,"resource_limits":{"cpu":8,"memory":64000000000,"user_slots":40}}]},
        "pool_trees":{"default_tree":"physical","trees":{"physical":{"config":{},"pools":{"high":{"weight":4.0},"others":{}}}}}}"#;
    let input = bench.write("log.swf", &log);
    let mapping = Mapping::load(&bench.write("mapping.json", mapping)).unwrap_or_else(|e| panic!("{e}"));
    let path = bench.path("scenario.json");
    let found = import(Kind::Swf, &[input], &mapping, &bench.path("work.jsonl.gz"), Some(&path));
    let found = found.unwrap_or_else(|e| panic!("{e}"));
    assert!((found.load.expect("a load") - 40.0 * 16.0 * 60.0 / (32.0 * 39.0)).abs() < 1e-3);
    let scenario = Scenario::load(&path, &[]).unwrap_or_else(|e| panic!("{e}"));
    let pools: Vec<_> =
        scenario.trees[0].pools.iter().map(|p| (p.name.as_str(), p.parent.as_deref())).collect();
    let want = [
        ("high", None),
        ("high-u0", Some("high")),
        ("high-u2", Some("high")),
        ("high-u1", Some("high")),
        ("others", None),
        ("1", Some("others")),
        ("1-u1", Some("1")),
        ("1-u0", Some("1")),
        ("1-u2", Some("1")),
    ];
    assert_eq!(pools, want);
    let ran = sim::run(&scenario, &bench.path("out"), Options::default(), &mut |_| true, &mut |_| Map::new());
    let ran = ran.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(figure(&ran, "cluster/counts/operations/completed"), 40.0);
}
