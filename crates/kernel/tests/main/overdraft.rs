//! Jobs that had to go because they used more memory than was reserved for them (jobs-and-nodes.md 2.4).

use crate::console::{Console, run};
use expect_test::expect;
use yson::Value;

/// The unit runs again at once, with its whole limit reserved, and says after which run.
#[test]
fn the_next_run_has_its_whole_limit() {
    let mut console = Console::new();
    console.run(
        "node n1 cpu=4
         pool create p
         op start p jobs=2 as a
         overdraft a/0
         finish a/0
         finish a/1",
    );
    let events = |kind: &str| -> Vec<&yson::Map> {
        let of_kind = |e: &&yson::Map| e.get("event").and_then(Value::as_str) == Some(kind);
        console.world.log.iter().filter(of_kind).collect()
    };
    let text =
        |event: &yson::Map, key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let memory = |event: &yson::Map| event.get("resource_limits").and_then(|r| r.get("memory")?.as_i64());
    let [aborted] = events("job_aborted")[..] else { panic!("one job was aborted") };
    assert_eq!(text(aborted, "reason"), "resource_overdraft");
    let starts = events("job_started");
    let [first, second, again] = starts[..] else { panic!("three starts: {starts:?}") };
    assert_eq!(
        (text(again, "predecessor_job_id"), text(again, "predecessor_type")),
        (text(aborted, "job_id"), "resource_overdraft".to_owned(),)
    );
    assert_eq!(first.get("predecessor_job_id").or(second.get("predecessor_job_id")), None);
    // Half of the limit of 512 MiB at first, and 128 MiB for the process beside it.
    assert_eq!((memory(first), memory(again)), (Some(384 << 20), Some(640 << 20)));
    let ends = events("job_completed");
    let with_predecessor: Vec<String> = ends.iter().map(|e| text(e, "predecessor_job_id")).collect();
    assert!(with_predecessor.contains(&text(aborted, "job_id")), "{with_predecessor:?}");
}

/// It is not a failure, and a crash in between does not make it forget.
#[test]
fn a_crash_does_not_make_it_forget() {
    let transcript = run("node n1 cpu=1
         pool create p
         op start p jobs=1 max_failed_job_count=1 as a
         overdraft a/0
         crash
         restart
         connect n1
         show ops
         overdraft a/0
         show ops
         finish a/0
         show ops
         show jobs");
    let expected = expect![[r#"
        > node n1 cpu=1
          n1 <- welcome
        > pool create p
          ok, an object
        > op start p jobs=1 max_failed_job_count=1 as a
          {"operation_id"="a";}
          n1 <- start a/0#0
        > overdraft a/0
          n1 <- start a/0#1
          n1 <- release a/0#0
        > crash
        > restart
        > connect n1
          n1 <- welcome
        > show ops
          a running total=1 running=1 completed=0 pending=0 failed=0 aborted=1
        > overdraft a/0
          n1 <- start a/0#2
          n1 <- release a/0#1
        > show ops
          a running total=1 running=1 completed=0 pending=0 failed=0 aborted=2
        > finish a/0
          n1 <- release a/0#2
        > show ops
          a completed total=1 running=0 completed=1 pending=0 failed=0 aborted=2
        > show jobs
          a/0#0 aborted n1 resource_overdraft
          a/0#1 aborted n1 resource_overdraft
          a/0#2 completed n1
    "#]];
    expected.assert_eq(&transcript);
}
