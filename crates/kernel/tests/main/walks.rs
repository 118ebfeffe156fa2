//! The life of operations, as transcripts (scheduling.md 3, 4; jobs-and-nodes.md 6).

use crate::console::check;
use expect_test::expect;

#[test]
fn a_submitted_operation() {
    check(
        "node n1 cpu=2
         pool create p strong.cpu=2
         op start p jobs=3 as o1
         show ops
         show nodes
         finish o1/0
         tick 1s
         show pools
         finish o1/1
         finish o1/2
         show ops
         show events
         show jobs
         show nodes",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create p strong.cpu=2
              ok, an object
            > op start p jobs=3 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0 o1/1#1
            > show ops
              o1 running total=3 running=2 completed=0 pending=1 failed=0 aborted=0
            > show nodes
              n1 online o1/0#0 o1/1#1
            > finish o1/0
              n1 <- start o1/2#2
              n1 <- release o1/0#0
            > tick 1s
            > show pools
              <Root> operations=1 running=1 cpu=2 share=1.00
              p operations=1 running=1 cpu=2 share=1.00
            > finish o1/1
              n1 <- release o1/1#1
            > finish o1/2
              n1 <- release o1/2#2
            > show ops
              o1 completed total=3 running=0 completed=3 pending=0 failed=0 aborted=0
            > show events
              o1 starting waiting_for_agent initializing preparing pending materializing running completing completed
            > show jobs
              o1/0#0 completed n1
              o1/1#1 completed n1
              o1/2#2 completed n1
            > show nodes
              n1 online
        "#]],
    );
}

#[test]
fn too_many_failed_jobs() {
    check(
        "node n1 cpu=1
         pool create p
         op start p jobs=2 max_failed_job_count=2 as o1
         fail o1/0 exit=3
         show ops
         fail o1/0 exit=4
         show ops
         op get o1 result
         show jobs
         show nodes",
        expect![[r#"
            > node n1 cpu=1
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=2 max_failed_job_count=2 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0
            > fail o1/0 exit=3
              n1 <- start o1/0#1
              n1 <- release o1/0#0
            > show ops
              o1 running total=2 running=1 completed=0 pending=1 failed=1 aborted=0
            > fail o1/0 exit=4
              n1 <- release o1/0#1
            > show ops
              o1 failed total=2 running=0 completed=0 pending=2 failed=2 aborted=0 error 215(1205(10000)): Failed jobs limit exceeded: User job failed: Process exited with code 4
            > op get o1 result
              {"result"={"error"={"code"=215;"message"="Failed jobs limit exceeded";"attributes"={"max_failed_job_count"=2;};"inner_errors"=[{"code"=1205;"message"="User job failed";"attributes"={"stderr"="hi from o1/0#1";"job_id"="o1/0#1";"host"="n1";};"inner_errors"=[{"code"=10000;"message"="Process exited with code 4";"attributes"={"exit_code"=4;};"inner_errors"=[];};];};];};};}
            > show jobs
              o1/0#0 failed n1
              o1/0#1 failed n1
            > show nodes
              n1 online
        "#]],
    );
}

#[test]
fn suspend_and_resume() {
    check(
        "node n1 cpu=1
         pool create p
         op start p jobs=3 as o1
         op suspend o1
         # suspending twice is fine, and what runs goes on
         op suspend o1 nightly maintenance
         finish o1/0
         show ops
         op resume o1
         op resume o1
         op suspend o1 abort
         show ops
         show nodes
         op resume o1
         show ops",
        expect![[r#"
            > node n1 cpu=1
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=3 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0
            > op suspend o1
              ok
            # suspending twice is fine, and what runs goes on
            > op suspend o1 nightly maintenance
              ok
            > finish o1/0
              n1 <- release o1/0#0
            > show ops
              o1 running total=3 running=0 completed=1 pending=2 failed=0 aborted=0 suspended alert:operation_suspended
            > op resume o1
              n1 <- start o1/1#1
              ok
            > op resume o1
              error 201: Operation o1 is not suspended
            > op suspend o1 abort
              n1 <- abort o1/1#1 operation_suspended
              ok
              n1 <- release o1/1#1
            > show ops
              o1 running total=3 running=0 completed=1 pending=2 failed=0 aborted=1 suspended
            > show nodes
              n1 online
            > op resume o1
              n1 <- start o1/1#2
              ok
            > show ops
              o1 running total=3 running=1 completed=1 pending=1 failed=0 aborted=1
        "#]],
    );
}

#[test]
fn abort_and_complete() {
    check(
        "node n1 cpu=4
         pool create p
         op start p jobs=2 as o1
         op abort o1 enough of it
         show ops
         # finished: 200; unknown: 1915 with a 200 inside
         op abort o1
         op suspend o1
         op resume o1
         op complete o1
         op update o1 {weight=2.0}
         op abort 1-2-103e8-4
         op abort *nobody
         op get 1-2-103e8-4 state
         op start p jobs=2 as o2
         finish o2/0
         op complete o2
         show ops
         op get o2 alerts
         show jobs
         show nodes",
        expect![[r#"
            > node n1 cpu=4
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=2 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0 o1/1#1
            > op abort o1 enough of it
              n1 <- abort o1/1#1 operation_aborted
              n1 <- abort o1/0#0 operation_aborted
              ok
              n1 <- release o1/1#1 o1/0#0
            > show ops
              o1 aborted total=2 running=0 completed=0 pending=2 failed=0 aborted=2 error 1(1): Operation aborted by user request: enough of it
            # finished: 200; unknown: 1915 with a 200 inside
            > op abort o1
              error 200: Operation o1 is already finished: its state is "aborted"
            > op suspend o1
              error 200: Operation o1 is already finished: its state is "aborted"
            > op resume o1
              error 200: Operation o1 is already finished: its state is "aborted"
            > op complete o1
              error 200: Operation o1 is already finished: its state is "aborted"
            > op update o1 {weight=2.0}
              error 200: Operation o1 is already finished: its state is "aborted"
            > op abort 1-2-103e8-4
              error 1915(200): No such operation 1-2-103e8-4: No such operation 1-2-103e8-4
            > op abort *nobody
              error 1915(200): No such operation *nobody: No such operation *nobody
            > op get 1-2-103e8-4 state
              error 1915(200): No such operation 1-2-103e8-4: No such operation 1-2-103e8-4
            > op start p jobs=2 as o2
              {"operation_id"="o2";}
              n1 <- start o2/0#0 o2/1#1
            > finish o2/0
              n1 <- release o2/0#0
            > op complete o2
              n1 <- abort o2/1#1 operation_completed
              ok
              n1 <- release o2/1#1
            > show ops
              o1 aborted total=2 running=0 completed=0 pending=2 failed=0 aborted=2 error 1(1): Operation aborted by user request: enough of it
              o2 completed total=2 running=0 completed=1 pending=1 failed=0 aborted=1 alert:operation_completed_by_user_request
            > op get o2 alerts
              {"alerts"={"operation_completed_by_user_request"={"code"=1;"message"="Operation completed by user request";"attributes"={};"inner_errors"=[];};};}
            > show jobs
              o1/0#0 aborted n1 operation_aborted
              o1/1#1 aborted n1 operation_aborted
              o2/0#0 completed n1
              o2/1#1 aborted n1 operation_completed
            > show nodes
              n1 online
        "#]],
    );
}

#[test]
fn the_queue_of_a_pool() {
    check(
        "node n1 cpu=4
         pool create p max_running=1 max_ops=3
         op start p as o1
         op start p as o2
         op start p as o3
         op start p as o4
         show ops
         op get o2 alerts
         op complete o2
         finish o1/0
         show ops
         show events
         op abort o2
         show ops
         # a raised limit acts at once
         op start p jobs=2 as o5
         show ops
         set //sys/pool_trees/physical/p/@max_running_operation_count 2
         show ops
         # a lowered one does not touch those who run
         set //sys/pool_trees/physical/p/@max_running_operation_count 0
         show ops",
        expect![[r#"
            > node n1 cpu=4
              n1 <- welcome
            > pool create p max_running=1 max_ops=3
              ok, an object
            > op start p as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0
            > op start p as o2
              {"operation_id"="o2";}
            > op start p as o3
              {"operation_id"="o3";}
            > op start p as o4
              error 1(202): Operation could not be started: Limit for the number of concurrent operations 3 for pool "p" in tree "physical" has been reached
            > show ops
              o1 running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
              o2 pending total=1 running=0 completed=0 pending=1 failed=0 aborted=0 alert:operation_pending
              o3 pending total=1 running=0 completed=0 pending=1 failed=0 aborted=0 alert:operation_pending
            > op get o2 alerts
              {"alerts"={"operation_pending"={"code"=1;"message"="Operation is pending: max running operation count 1 is reached in pool \"p\" of tree \"physical\"";"attributes"={"pool"="p";"limit"=1;"pool_tree"="physical";};"inner_errors"=[];};};}
            > op complete o2
              error 201: Operation o2 cannot be completed: its state is "pending", expected "running"
            > finish o1/0
              n1 <- start o2/0#0
              n1 <- release o1/0#0
            > show ops
              o1 completed total=1 running=0 completed=1 pending=0 failed=0 aborted=0
              o2 running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
              o3 pending total=1 running=0 completed=0 pending=1 failed=0 aborted=0 alert:operation_pending
            > show events
              o1 starting waiting_for_agent initializing preparing pending materializing running completing completed
              o2 starting waiting_for_agent initializing preparing pending materializing running
              o3 starting waiting_for_agent initializing preparing pending
            > op abort o2
              n1 <- abort o2/0#0 operation_aborted
              n1 <- start o3/0#0
              ok
              n1 <- release o2/0#0
            > show ops
              o1 completed total=1 running=0 completed=1 pending=0 failed=0 aborted=0
              o2 aborted total=1 running=0 completed=0 pending=1 failed=0 aborted=1 error 1: Operation aborted by user request
              o3 running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
            # a raised limit acts at once
            > op start p jobs=2 as o5
              {"operation_id"="o5";}
            > show ops
              o1 completed total=1 running=0 completed=1 pending=0 failed=0 aborted=0
              o2 aborted total=1 running=0 completed=0 pending=1 failed=0 aborted=1 error 1: Operation aborted by user request
              o3 running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
              o5 pending total=2 running=0 completed=0 pending=2 failed=0 aborted=0 alert:operation_pending
            > set //sys/pool_trees/physical/p/@max_running_operation_count 2
              n1 <- start o5/0#0 o5/1#1
              ok
            > show ops
              o1 completed total=1 running=0 completed=1 pending=0 failed=0 aborted=0
              o2 aborted total=1 running=0 completed=0 pending=1 failed=0 aborted=1 error 1: Operation aborted by user request
              o3 running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
              o5 running total=2 running=2 completed=0 pending=0 failed=0 aborted=0
            # a lowered one does not touch those who run
            > set //sys/pool_trees/physical/p/@max_running_operation_count 0
              ok
            > show ops
              o1 completed total=1 running=0 completed=1 pending=0 failed=0 aborted=0
              o2 aborted total=1 running=0 completed=0 pending=1 failed=0 aborted=1 error 1: Operation aborted by user request
              o3 running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
              o5 running total=2 running=2 completed=0 pending=0 failed=0 aborted=0
        "#]],
    );
}

#[test]
fn a_start_that_is_refused_leaves_nothing() {
    check(
        "pool create p
         pool create f forbid_immediate_operations=%true
         op start p jobs=0 as bad
         op start p jobs=x as bad
         op start p weight=-1 as bad
         op start p type=sort as bad
         op start f as bad
         op start p alias=noasterisk as bad
         op start p file=//no/such/file as o1
         ops counters=false
         show ops",
        expect![[r#"
            > pool create p
              ok, an object
            > pool create f forbid_immediate_operations=%true
              ok, an object
            > op start p jobs=0 as bad
              error 1(1): Error parsing operation spec: Invalid value of spec option /tasks/t/job_count: expected int64 in 1..=4294967295, found int64 0
            > op start p jobs=x as bad
              error 1(1): Error parsing operation spec: Invalid value of spec option /tasks/t/job_count: expected int64 in 1..=4294967295, found string "x"
            > op start p weight=-1 as bad
              error 1(1): Error parsing operation spec: Invalid value of spec option /weight: expected number greater than 0, found int64 -1
            > op start p type=sort as bad
              error 1(1): Error parsing operation spec: Operation type "sort" is not supported: only "vanilla", "map", "merge" and "erase" operations can be started
            > op start f as bad
              error 1(1): Operation could not be started: Starting operations immediately in pool "f" of tree "physical" is forbidden
            > op start p alias=noasterisk as bad
              error 1(1): Error parsing operation spec: Invalid value of spec option /alias: expected string that starts with "*", found string "noasterisk"
            > op start p file=//no/such/file as o1
              {"operation_id"="o1";}
            > ops counters=false
              {"operations"=["o1";];"incomplete"=%false;}
            > show ops
              o1 failed total=1 running=0 completed=0 pending=1 failed=0 aborted=0 error 216(500): Operation has failed to prepare: Node / has no child with key "no"
        "#]],
    );
}
