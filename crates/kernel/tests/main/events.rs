//! The event log (scheduling.md 20).

use crate::console::{Console, check};
use expect_test::expect;

#[test]
fn what_happens_is_written_down() {
    check(
        "node n1 cpu=2
         pool create p
         op start p jobs=2 as a
         finish a/0
         fail a/1
         op start p jobs=1 title=gone as b
         op abort b enough
         show log",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=2 as a
              {"operation_id"="a";}
              n1 <- start a/0#0 a/1#1
            > finish a/0
              n1 <- release a/0#0
            > fail a/1
              n1 <- start a/1#2
              n1 <- release a/1#1
            > op start p jobs=1 title=gone as b
              {"operation_id"="b";}
              n1 <- start b/0#0
            > op abort b enough
              n1 <- abort b/0#0 operation_aborted
              ok
              n1 <- release b/0#0
            > show log
              number=1u event="audit" user="ann" action="create" type="scheduler_pool" attributes={"name": "p", "pool_tree": "physical"}
              number=2u event="operation_started" operation_id="a" operation_type="vanilla" trees={"physical": {"pool": "p", "resource_limits": {}}}
              number=3u event="operation_prepared" operation_id="a" operation_type="vanilla" trees={"physical": {"pool": "p", "resource_limits": {}}}
              number=4u event="operation_materialized" operation_id="a" operation_type="vanilla" trees={"physical": {"pool": "p", "resource_limits": {}}}
              number=5u event="job_started" job_id="a/0#0" operation_id="a" task_name="t" job_type="vanilla" job_cookie=0u task_job_index=0u tree_id="physical" pool="p" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=6u event="job_started" job_id="a/1#1" operation_id="a" task_name="t" job_type="vanilla" job_cookie=1u task_job_index=1u tree_id="physical" pool="p" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=7u event="job_completed" job_id="a/0#0" operation_id="a" task_name="t" job_type="vanilla" job_cookie=0u tree_id="physical" node_address="n1" task_job_index=0u pool="p" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=8u event="job_failed" job_id="a/1#1" operation_id="a" task_name="t" job_type="vanilla" job_cookie=1u tree_id="physical" node_address="n1" error={"code": 1205, "message": "User job failed", "attributes": {"stderr": "hi from a/1#1", "job_id": "a/1#1", "host": "n1"}, "inner_errors": [{"code": 10000, "message": "Process exited with code 1", "attributes": {"exit_code": 1}, "inner_errors": []}]} task_job_index=1u pool="p" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=9u event="job_started" job_id="a/1#2" operation_id="a" task_name="t" job_type="vanilla" job_cookie=1u task_job_index=2u tree_id="physical" pool="p" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=10u event="operation_started" operation_id="b" operation_type="vanilla" trees={"physical": {"pool": "p", "resource_limits": {}}}
              number=11u event="operation_prepared" operation_id="b" operation_type="vanilla" trees={"physical": {"pool": "p", "resource_limits": {}}}
              number=12u event="operation_materialized" operation_id="b" operation_type="vanilla" trees={"physical": {"pool": "p", "resource_limits": {}}}
              number=13u event="job_started" job_id="b/0#0" operation_id="b" task_name="t" job_type="vanilla" job_cookie=0u task_job_index=0u tree_id="physical" pool="p" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=14u event="job_aborted" job_id="b/0#0" operation_id="b" task_name="t" job_type="vanilla" job_cookie=0u tree_id="physical" node_address="n1" error={"code": 1, "message": "Job aborted", "attributes": {"abort_reason": "operation_aborted", "job_id": "b/0#0", "host": "n1"}, "inner_errors": []} reason="operation_aborted" task_job_index=0u pool="p" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=15u event="operation_aborted" operation_id="b" operation_type="vanilla" trees={"physical": {"pool": "p", "resource_limits": {}}} error={"code": 1, "message": "Operation aborted by user request", "attributes": {}, "inner_errors": [{"code": 1, "message": "enough", "attributes": {}, "inner_errors": []}]} jobs={"total": 1, "running": 0, "completed": 0, "pending": 1, "failed": 0, "aborted": 1, "lost": 0, "suspended": 0, "invalidated": 0, "uncategorized": 0, "blocked": 0}
              number=16u event="audit" user="ann" action="abort_operation" operation="b"
        "#]],
    );
}

/// Who had to go says for whom.
#[test]
fn preemption_is_written_down() {
    check(
        "node n1 cpu=2
         pool create owner strong.cpu=1
         pool create guest
         set //sys/pool_trees/physical/@config/enable_detailed_starvation_logs %true
         op start guest jobs=2 as g
         op start owner jobs=1 as o
         tick 40s
         show log",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create owner strong.cpu=1
              ok, an object
            > pool create guest
              ok, an object
            > set //sys/pool_trees/physical/@config/enable_detailed_starvation_logs %true
              ok
            > op start guest jobs=2 as g
              {"operation_id"="g";}
              n1 <- start g/0#0 g/1#1
            > op start owner jobs=1 as o
              {"operation_id"="o";}
            > tick 40s
              n1 <- start o/0#0
              n1 <- interrupt g/1#1 preemption
              n1 <- release g/1#1
            > show log
              number=1u event="audit" user="ann" action="create" type="scheduler_pool" attributes={"name": "owner", "pool_tree": "physical", "strong_guarantee_resources": {"cpu": 1}}
              number=2u event="audit" user="ann" action="create" type="scheduler_pool" attributes={"name": "guest", "pool_tree": "physical"}
              number=3u event="audit" user="ann" action="set" path="//sys/pool_trees/physical/@config/enable_detailed_starvation_logs" after=%true
              number=4u event="operation_started" operation_id="g" operation_type="vanilla" trees={"physical": {"pool": "guest", "resource_limits": {}}}
              number=5u event="operation_prepared" operation_id="g" operation_type="vanilla" trees={"physical": {"pool": "guest", "resource_limits": {}}}
              number=6u event="operation_materialized" operation_id="g" operation_type="vanilla" trees={"physical": {"pool": "guest", "resource_limits": {}}}
              number=7u event="job_started" job_id="g/0#0" operation_id="g" task_name="t" job_type="vanilla" job_cookie=0u task_job_index=0u tree_id="physical" pool="guest" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=8u event="job_started" job_id="g/1#1" operation_id="g" task_name="t" job_type="vanilla" job_cookie=1u task_job_index=1u tree_id="physical" pool="guest" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=9u event="operation_started" operation_id="o" operation_type="vanilla" trees={"physical": {"pool": "owner", "resource_limits": {}}}
              number=10u event="operation_prepared" operation_id="o" operation_type="vanilla" trees={"physical": {"pool": "owner", "resource_limits": {}}}
              number=11u event="operation_materialized" operation_id="o" operation_type="vanilla" trees={"physical": {"pool": "owner", "resource_limits": {}}}
              number=12u event="operation_starvation_started" operation_id="o" tree_id="physical"
              number=13u event="job_started" job_id="o/0#0" operation_id="o" task_name="t" job_type="vanilla" job_cookie=0u task_job_index=0u tree_id="physical" pool="owner" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=14u event="allocation_preempted" pool_tree="physical" node="n1" operation_id="g" pool="guest" resources={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0} group="preemptible" level=2 timeout=10000 preemption_kind="preemption" stage="preemptive_normal" preemption_reason="Preempted to start allocation place of o/0#0 of operation o; the victim was preemptible (level 2), own priority of the preemptor: normal, priority of the stage: normal" properly_starving=%true preempted_for={"allocation_id": "place of o/0#0", "operation_id": "o", "job_id": "o/0#0"} job_id="g/1#1"
              number=15u event="job_aborted" job_id="g/1#1" operation_id="g" task_name="t" job_type="vanilla" job_cookie=1u tree_id="physical" node_address="n1" error={"code": 1, "message": "Preempted to start allocation place of o/0#0 of operation o; the victim was preemptible (level 2), own priority of the preemptor: normal, priority of the stage: normal", "attributes": {"preemption_reason": "Preempted to start allocation place of o/0#0 of operation o; the victim was preemptible (level 2), own priority of the preemptor: normal, priority of the stage: normal", "job_id": "g/1#1", "host": "n1"}, "inner_errors": []} reason="preemption" interruption_reason="preemption" task_job_index=1u pool="guest" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0} preempted_for={"operation_id": "o", "allocation_id": "place of o/0#0", "job_id": "o/0#0"}
              number=16u event="operation_starvation_finished" operation_id="o" tree_id="physical" reason="usage_increased" duration=0
        "#]],
    );
}

/// What is durable comes again after a crash, what is not has not happened; a job that runs in spite of
/// that is written down when it is found.
#[test]
fn a_crash_leaves_no_gap() {
    check(
        "node n1 cpu=4
         pool create p
         op start p jobs=4 as a
         hold
         finish a/0
         crash 1
         go
         restart
         connect n1
         finish a/1
         finish a/2
         finish a/3
         show log",
        expect![[r#"
            > node n1 cpu=4
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=4 as a
              {"operation_id"="a";}
              n1 <- start a/0#0 a/1#1 a/2#2 a/3#3
            > hold
            > finish a/0
            > crash 1
            > go
            > restart
            > connect n1
              n1 <- welcome
              n1 <- release a/0#0
            > finish a/1
              n1 <- release a/1#1
            > finish a/2
              n1 <- release a/2#2
            > finish a/3
              n1 <- release a/3#3
            > show log
              number=1u event="audit" user="ann" action="create" type="scheduler_pool" attributes={"name": "p", "pool_tree": "physical"}
              number=2u event="operation_started" operation_id="a" operation_type="vanilla" trees={"physical": {"pool": "p", "resource_limits": {}}}
              number=3u event="operation_prepared" operation_id="a" operation_type="vanilla" trees={"physical": {"pool": "p", "resource_limits": {}}}
              number=4u event="operation_materialized" operation_id="a" operation_type="vanilla" trees={"physical": {"pool": "p", "resource_limits": {}}}
              number=5u event="job_started" job_id="a/0#0" operation_id="a" task_name="t" job_type="vanilla" job_cookie=0u task_job_index=0u tree_id="physical" pool="p" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=6u event="job_started" job_id="a/1#1" operation_id="a" task_name="t" job_type="vanilla" job_cookie=1u task_job_index=1u tree_id="physical" pool="p" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=7u event="job_started" job_id="a/2#2" operation_id="a" task_name="t" job_type="vanilla" job_cookie=2u task_job_index=2u tree_id="physical" pool="p" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=8u event="job_started" job_id="a/3#3" operation_id="a" task_name="t" job_type="vanilla" job_cookie=3u task_job_index=3u tree_id="physical" pool="p" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=9u event="job_completed" job_id="a/0#0" operation_id="a" task_name="t" job_type="vanilla" job_cookie=0u tree_id="physical" node_address="n1" task_job_index=0u pool="p" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=10u event="job_adopted" job_id="a/2#2" operation_id="a" task_name="t" job_type="vanilla" job_cookie=2u task_job_index=2u tree_id="physical" pool="p" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=11u event="job_adopted" job_id="a/1#1" operation_id="a" task_name="t" job_type="vanilla" job_cookie=1u task_job_index=1u tree_id="physical" pool="p" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=12u event="job_adopted" job_id="a/3#3" operation_id="a" task_name="t" job_type="vanilla" job_cookie=3u task_job_index=3u tree_id="physical" pool="p" node_address="n1" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=13u event="job_completed" job_id="a/1#1" operation_id="a" task_name="t" job_type="vanilla" job_cookie=1u tree_id="physical" node_address="n1" task_job_index=1u pool="p" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=14u event="job_completed" job_id="a/2#2" operation_id="a" task_name="t" job_type="vanilla" job_cookie=2u tree_id="physical" node_address="n1" task_job_index=2u pool="p" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=15u event="job_completed" job_id="a/3#3" operation_id="a" task_name="t" job_type="vanilla" job_cookie=3u tree_id="physical" node_address="n1" task_job_index=3u pool="p" resource_limits={"user_slots": 1, "cpu": 1.0, "gpu": 0, "memory": 402653184, "user_memory": 402653184, "network": 0}
              number=16u event="operation_completed" operation_id="a" operation_type="vanilla" trees={"physical": {"pool": "p", "resource_limits": {}}} jobs={"total": 4, "running": 0, "completed": 4, "pending": 0, "failed": 0, "aborted": 0, "lost": 0, "suspended": 0, "invalidated": 0, "uncategorized": 0, "blocked": 0}
        "#]],
    );
}

/// The store keeps an event only until the writer has it.
#[test]
fn the_store_does_not_keep_events() {
    let mut console = Console::new();
    console.run("node n1 cpu=4\npool create p\nop start p jobs=20 as a\ntick 1s");
    for unit in 0..20 {
        console.run(&format!("finish a/{unit}\ntick 1s"));
    }
    let kept =
        console.world.durable.keys().filter(|(table, _)| *table == vocab::batch::Table::Events).count();
    assert!(kept <= 2, "{kept} records are left");
    // The pool that was created, 20 starts and ends, four events of the operation.
    let is_audit = |e: &&yson::Map| e.get("event").and_then(|v| v.as_str()) == Some("audit");
    assert_eq!(console.world.log.iter().filter(is_audit).count(), 1);
    assert_eq!(console.world.log.len(), 1 + 20 + 20 + 4);
}

/// A node that never comes back takes its jobs with it, and each of them has an end in the log, whether the
/// server has seen it go or not.
#[test]
fn every_start_has_an_end() {
    for (story, reason) in [
        ("disconnect n1\ntick 10m", "node_offline"),
        ("crash\nrestart\nconnect n2\ntick 10m", "revival_confirmation_timeout"),
        ("crash\nrestart\nop abort a\nconnect n2\ntick 10m", "operation_aborted"),
    ] {
        let mut c = Console::new();
        c.run("node n1 cpu=2\npool create p\nop start p jobs=2 as a\ntick 1s\nnode n2 cpu=0");
        c.run(story);
        let of_jobs = |kinds: &[&str]| -> Vec<(String, u64)> {
            let text =
                |e: &yson::Map, key: &str| e.get(key).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
            let wanted = |e: &&yson::Map| kinds.contains(&&*text(e, "event"));
            let index = |e: &yson::Map| e.get("task_job_index").and_then(|v| v.as_u64()).expect("an index");
            c.world.log.iter().filter(wanted).map(|e| (text(e, "reason"), index(e))).collect()
        };
        assert_eq!(of_jobs(&["job_started"]), [(String::new(), 0), (String::new(), 1)]);
        let mut ends = of_jobs(&["job_aborted", "job_failed", "job_completed"]);
        ends.sort();
        assert_eq!(ends, [(reason.to_owned(), 0), (reason.to_owned(), 1)], "{story}");
    }
}

/// What the writer says is an alert while it lasts; what is lost stays said.
#[test]
fn a_log_that_is_not_written_raises_an_alert() {
    let mut c = Console::new();
    c.run("node n1 cpu=1");
    c.world.inputs.push_back(kernel::Input::EventsFailing(vocab::Failure::new("No space left on device")));
    c.world.inputs.push_back(kernel::Input::EventsLost { from: 3, to: 9 });
    c.run("tick 1s");
    c.forget_transcript();
    c.run("get //sys/scheduler/@alerts");
    c.world.inputs.push_back(kernel::Input::EventsWritten(9));
    c.run("tick 1s\nget //sys/scheduler/@alerts");
    expect![[r#"
        > get //sys/scheduler/@alerts
          [{"code"=1;"message"="The event log is not written: events wait in the store";"attributes"={"alert_type"="event_log_failing";"since"="1970-01-12T13:46:40.510000Z";"waiting_events"=0u;};"inner_errors"=[{"code"=1;"message"="No space left on device";"attributes"={};"inner_errors"=[];};];};{"code"=1;"message"="7 events are missing in the event log";"attributes"={"alert_type"="events_lost";"lost"=[{"from"=3u;"to"=9u;};];};"inner_errors"=[];};]
        > tick 1s
        > get //sys/scheduler/@alerts
          [{"code"=1;"message"="7 events are missing in the event log";"attributes"={"alert_type"="events_lost";"lost"=[{"from"=3u;"to"=9u;};];};"inner_errors"=[];};]
    "#]].assert_eq(c.transcript());
}
