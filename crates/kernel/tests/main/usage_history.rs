//! What jobs used and nodes gave, over time.

use crate::console::Console;
use kernel::{Body, Command, HistoryOf, Range};
use vocab::{CpuMonitorReport, JobId, JobStatistics, Span};
use yson::Value;

/// A column as text, one number for each ten seconds of the last minute; a dash where nothing is known.
fn column(c: &mut Console, of: &HistoryOf, name: &str) -> Result<String, String> {
    let ago = |seconds| Some(kernel::command::When::Ago(Span::from_secs(seconds)));
    let range = Range { start: ago(60), end: ago(0), step: Some(Span::from_secs(10)) };
    let command = Command::GetHistory { of: of.clone(), range };
    let chart = match c.world.ask("root", command).expect("an answer") {
        Ok(Body::Value(chart)) => chart,
        Ok(other) => panic!("{other:?}"),
        Err(failure) => return Err(failure.to_string()),
    };
    let points = chart.get("columns").and_then(|all| all.get(name)).and_then(Value::as_list);
    let shown = |v: &Value| v.as_f64().map_or_else(|| "-".to_owned(), |x| format!("{x}"));
    Ok(points.expect("a column").iter().map(shown).collect::<Vec<_>>().join(" "))
}

/// The job has run so long, spent so much processor time, and is watched.
fn reports(c: &mut Console, job: JobId, exec: u64, cpu: u64) {
    let cpu_monitor = CpuMonitorReport { limit: 1_500_000, smoothed: 750_000, ..Default::default() };
    let statistics = JobStatistics {
        exec: Span::from_secs(exec),
        user_job_cpu_user: Span::from_secs(cpu),
        user_job_current_rss: 40 << 20,
        user_job_max_memory: 64 << 20,
        cpu_monitor: Some(cpu_monitor),
        ..JobStatistics::default()
    };
    let node = c.world.nodes.get_mut("n1").expect("a node");
    node.running.get_mut(&job).expect("it runs").statistics = Some(statistics);
}

#[test]
fn a_job_has_a_past_when_somebody_looks_later() {
    let mut c = Console::new();
    // The clock stands at a multiple of ten seconds.
    c.run("node n1 cpu=4\npool create p\nop start p jobs=1 cpu=3 as o1");
    let job = *c.world.nodes["n1"].running.keys().next().expect("one runs");
    let of = HistoryOf::Job(job);
    let nothing = column(&mut c, &of, "cpu_usage").expect_err("no report yet");
    assert!(nothing.contains("has not reported yet"), "{nothing}");
    for (exec, cpu) in [(10, 20), (20, 25), (30, 25), (40, 55)] {
        reports(&mut c, job, exec, cpu);
        c.world.pass(Span::from_secs(10));
    }
    let usage = column(&mut c, &of, "cpu_usage").expect("known");
    let tenths = |shown: &str| -> String {
        let rounded = |x: &str| x.parse::<f64>().map_or_else(|_| "-".to_owned(), |x| format!("{x:.1}"));
        shown.split(' ').map(rounded).collect::<Vec<_>>().join(" ")
    };
    // Reports come in the middle of steps: 2 cores, then half of one, then none. The newest holds from now on.
    assert_eq!(tenths(&usage), "- - 2.0 1.3 0.3 0.0 -");
    for name in ["cpu_smoothed", "cpu_guarantee", "memory_usage", "memory_peak"] {
        let expected = match name {
            "cpu_smoothed" => "0.75",
            "cpu_guarantee" => "1.5",
            "memory_usage" => "41943040",
            _ => "67108864",
        };
        let shown = column(&mut c, &of, name).expect("known");
        assert!(shown.split(' ').filter(|x| *x != "-").all(|x| x == expected), "{name}: {shown}");
    }
    c.run("finish o1/0");
    c.world.pass(Span::from_secs(20));
    // It is over: its past stays, and nothing is added.
    let after = column(&mut c, &of, "cpu_guarantee").expect("known");
    assert!(after.starts_with("1.5") && after.ends_with("- -"), "{after}");
    let usage = column(&mut c, &of, "cpu_usage").expect("known");
    assert_eq!(tenths(&usage), "2.0 1.3 0.3 1.5 3.0 - -", "its last rate held until its end");
    c.run("crash\nrestart\nconnect n1");
    column(&mut c, &of, "cpu_usage").expect_err("it is in memory alone");
}

#[test]
fn a_node_has_a_past_and_gaps_while_it_is_away() {
    let mut c = Console::new();
    c.run("node n1 cpu=4\npool create p\nop start p jobs=1 cpu=3 as o1");
    let of = HistoryOf::Node("n1".to_owned());
    c.world.pass(Span::from_secs(30));
    let shown = column(&mut c, &of, "cpu_usage").expect("known");
    assert!(shown.ends_with("3 3"), "{shown}");
    assert!(column(&mut c, &of, "cpu_limit").expect("known").ends_with("4 4"));
    c.run("disconnect n1");
    c.world.pass(Span::from_secs(20));
    let shown = column(&mut c, &of, "cpu_usage").expect("known");
    assert!(shown.contains('3') && shown.ends_with("- -"), "{shown}");
    let nobody = column(&mut c, &HistoryOf::Node("n9".to_owned()), "cpu_usage").expect_err("unknown");
    assert!(nobody.contains("n9"), "{nobody}");
}
