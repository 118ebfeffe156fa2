//! Servers come and go; what they were told stays (jobs-and-nodes.md 9, scheduling.md 21).

use crate::console::check;
use expect_test::expect;

#[test]
fn a_server_that_was_killed_adopts_what_runs() {
    check(
        "node n1 cpu=2
         node n2 cpu=2
         pool create p
         op start p jobs=6 max_failed_job_count=5 as o1
         finish o1/0
         fail o1/1
         show ops
         show nodes
         crash
         restart
         show ops
         connect n1
         # nothing is started before all nodes are back
         show ops
         connect n2
         show ops
         show nodes
         show events
         show jobs",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > node n2 cpu=2
              n2 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=6 max_failed_job_count=5 as o1
              {"operation_id"="o1";}
              n2 <- start o1/0#0 o1/1#1
              n1 <- start o1/2#2 o1/3#3
            > finish o1/0
              n2 <- start o1/4#4
              n2 <- release o1/0#0
            > fail o1/1
              n2 <- start o1/1#5
              n2 <- release o1/1#1
            > show ops
              o1 running total=6 running=4 completed=1 pending=1 failed=1 aborted=0
            > show nodes
              n1 online o1/2#2 o1/3#3
              n2 online o1/1#5 o1/4#4
            > crash
            > restart
            > show ops
              o1 reviving_jobs total=6 running=0 completed=1 pending=5 failed=1 aborted=0
            > connect n1
              n1 <- welcome
            # nothing is started before all nodes are back
            > show ops
              o1 reviving_jobs total=6 running=2 completed=1 pending=3 failed=1 aborted=0
            > connect n2
              n2 <- welcome
            > show ops
              o1 running total=6 running=4 completed=1 pending=1 failed=1 aborted=0
            > show nodes
              n1 online o1/2#2 o1/3#3
              n2 online o1/1#5 o1/4#4
            > show events
              o1 starting waiting_for_agent initializing preparing pending materializing running orphaned revive_initializing reviving reviving_jobs running
            > show jobs
              o1/0#0 completed n2
              o1/1#1 failed n2
        "#]],
    );
}

#[test]
fn ends_that_nobody_heard_count_once() {
    check(
        "node n1 cpu=3
         pool create p
         op start p jobs=4 as o1
         crash
         # one ends while the server is away
         finish o1/0
         restart
         connect n1
         show ops
         # one was heard and not written down
         hold
         finish o1/1
         crash
         restart
         go
         connect n1
         show ops
         # one was written down, the node does not know
         hold
         finish o1/2
         tick 10ms
         crash 1
         restart
         go
         show ops
         connect n1
         show ops
         show nodes
         finish o1/3
         show ops
         show jobs",
        expect![[r#"
            > node n1 cpu=3
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=4 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0 o1/1#1 o1/2#2
            > crash
            # one ends while the server is away
            > finish o1/0
            > restart
            > connect n1
              n1 <- welcome
              n1 <- start o1/3#3
              n1 <- release o1/0#0
            > show ops
              o1 running total=4 running=3 completed=1 pending=0 failed=0 aborted=0
            # one was heard and not written down
            > hold
            > finish o1/1
            > crash
            > restart
            > go
            > connect n1
              n1 <- welcome
              n1 <- release o1/1#1
            > show ops
              o1 running total=4 running=2 completed=2 pending=0 failed=0 aborted=0
            # one was written down, the node does not know
            > hold
            > finish o1/2
            > tick 10ms
            > crash 1
            > restart
            > go
            > show ops
              o1 reviving_jobs total=4 running=0 completed=3 pending=1 failed=0 aborted=0
            > connect n1
              n1 <- welcome
              n1 <- release o1/2#2
            > show ops
              o1 running total=4 running=1 completed=3 pending=0 failed=0 aborted=0
            > show nodes
              n1 online o1/3#3
            > finish o1/3
              n1 <- release o1/3#3
            > show ops
              o1 completed total=4 running=0 completed=4 pending=0 failed=0 aborted=0
            > show jobs
              o1/0#0 completed n1
              o1/1#1 completed n1
              o1/2#2 completed n1
              o1/3#3 completed n1
        "#]],
    );
}

#[test]
fn a_late_node_and_the_grace_period() {
    check(
        "node n1 cpu=1
         node n2 cpu=1
         pool create p
         op start p jobs=2 allow_concurrent_attempts=%true as o1
         crash
         restart
         connect n1
         tick 25s
         show ops
         show nodes
         # half a minute of grace
         tick 6s
         show ops
         finish o1/0
         show nodes
         connect n2
         show ops
         show nodes
         finish o1/1@n1
         show ops
         show jobs",
        expect![[r#"
            > node n1 cpu=1
              n1 <- welcome
            > node n2 cpu=1
              n2 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=2 allow_concurrent_attempts=%true as o1
              {"operation_id"="o1";}
              n2 <- start o1/0#0
              n1 <- start o1/1#1
            > crash
            > restart
            > connect n1
              n1 <- welcome
            > tick 25s
            > show ops
              o1 reviving_jobs total=2 running=1 completed=0 pending=1 failed=0 aborted=0
            > show nodes
              n1 online o1/1#1
              n2 offline o1/0#0
            # half a minute of grace
            > tick 6s
            > show ops
              o1 running total=2 running=1 completed=0 pending=1 failed=0 aborted=1
            > finish o1/0
            > show nodes
              n1 online o1/1#1
              n2 offline (o1/0#0)
            > connect n2
              n2 <- welcome
              n2 <- start o1/0#2
              n2 <- release o1/0#0
            > show ops
              o1 running total=2 running=2 completed=0 pending=0 failed=0 aborted=1
            > show nodes
              n1 online o1/1#1
              n2 online o1/0#2
            > finish o1/1@n1
              n1 <- release o1/1#1
            > show ops
              o1 running total=2 running=1 completed=1 pending=0 failed=0 aborted=1
            > show jobs
              o1/1#1 completed n1
        "#]],
    );
}

#[test]
fn a_late_node_keeps_its_unit_within_the_grace_period() {
    check(
        "node n1 cpu=2
         node n2 cpu=1
         pool create p
         op start p jobs=3 as o1
         crash
         restart
         connect n1
         # there is room on n1 for a unit that runs on n2
         finish o1/0
         tick 20s
         show nodes
         connect n2
         show ops
         show nodes",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > node n2 cpu=1
              n2 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=3 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0 o1/1#1
              n2 <- start o1/2#2
            > crash
            > restart
            > connect n1
              n1 <- welcome
            # there is room on n1 for a unit that runs on n2
            > finish o1/0
              n1 <- release o1/0#0
            > tick 20s
            > show nodes
              n1 online o1/1#1
              n2 offline o1/2#2
            > connect n2
              n2 <- welcome
            > show ops
              o1 running total=3 running=2 completed=1 pending=0 failed=0 aborted=0
            > show nodes
              n1 online o1/1#1
              n2 online o1/2#2
        "#]],
    );
}

#[test]
fn a_server_that_was_stopped() {
    check(
        "node n1 cpu=2
         pool create p integral_guarantees={guarantee_type=relaxed;resource_flow={cpu=1.0}}
         op start p jobs=3 as o1
         op start p as o2
         op suspend o2 for later
         tick 10s
         finish o1/0
         stop
         restart
         show ops
         connect n1
         show ops
         op get o2 suspended alerts
         show nodes
         finish o1/1
         finish o1/2
         show ops
         op resume o2
         show ops",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create p integral_guarantees={guarantee_type=relaxed;resource_flow={cpu=1.0}}
              ok, an object
            > op start p jobs=3 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0 o1/1#1
            > op start p as o2
              {"operation_id"="o2";}
            > op suspend o2 for later
              ok
            > tick 10s
            > finish o1/0
              n1 <- start o1/2#2
              n1 <- release o1/0#0
            > stop
            > restart
            > show ops
              o1 reviving_jobs total=3 running=0 completed=1 pending=2 failed=0 aborted=0
              o2 reviving_jobs total=1 running=0 completed=0 pending=1 failed=0 aborted=0 suspended alert:operation_suspended
            > connect n1
              n1 <- welcome
            > show ops
              o1 running total=3 running=2 completed=1 pending=0 failed=0 aborted=0
              o2 running total=1 running=0 completed=0 pending=1 failed=0 aborted=0 suspended alert:operation_suspended
            > op get o2 suspended alerts
              {"suspended"=%true;"alerts"={"operation_suspended"={"code"=1;"message"="Operation suspended by user request: for later";"attributes"={};"inner_errors"=[];};};}
            > show nodes
              n1 online o1/1#1 o1/2#2
            > finish o1/1
              n1 <- release o1/1#1
            > finish o1/2
              n1 <- release o1/2#2
            > show ops
              o1 completed total=3 running=0 completed=3 pending=0 failed=0 aborted=0
              o2 running total=1 running=0 completed=0 pending=1 failed=0 aborted=0 suspended alert:operation_suspended
            > op resume o2
              n1 <- start o2/0#0
              ok
            > show ops
              o1 completed total=3 running=0 completed=3 pending=0 failed=0 aborted=0
              o2 running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
        "#]],
    );
}

#[test]
fn the_queue_survives() {
    check(
        "node n1 cpu=4
         pool create p max_running=1
         op start p as o1
         tick 1s
         op start p as o2
         tick 1s
         op start p as o3
         crash
         restart
         connect n1
         show ops
         finish o1/0
         show ops
         finish o2/0
         show ops",
        expect![[r#"
            > node n1 cpu=4
              n1 <- welcome
            > pool create p max_running=1
              ok, an object
            > op start p as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0
            > tick 1s
            > op start p as o2
              {"operation_id"="o2";}
            > tick 1s
            > op start p as o3
              {"operation_id"="o3";}
            > crash
            > restart
            > connect n1
              n1 <- welcome
            > show ops
              o1 running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
              o2 pending total=1 running=0 completed=0 pending=1 failed=0 aborted=0 alert:operation_pending
              o3 pending total=1 running=0 completed=0 pending=1 failed=0 aborted=0 alert:operation_pending
            > finish o1/0
              n1 <- start o2/0#0
              n1 <- release o1/0#0
            > show ops
              o1 completed total=1 running=0 completed=1 pending=0 failed=0 aborted=0
              o2 running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
              o3 pending total=1 running=0 completed=0 pending=1 failed=0 aborted=0 alert:operation_pending
            > finish o2/0
              n1 <- start o3/0#0
              n1 <- release o2/0#0
            > show ops
              o1 completed total=1 running=0 completed=1 pending=0 failed=0 aborted=0
              o2 completed total=1 running=0 completed=1 pending=0 failed=0 aborted=0
              o3 running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
        "#]],
    );
}

#[test]
fn files_of_running_operations_survive_their_removal_and_a_crash() {
    check(
        "node n1 cpu=1
         pool create p
         file //tmp/tool 7
         op start p jobs=2 file=//tmp/tool as o1
         remove //tmp/tool
         crash
         restart
         connect n1
         show blobs
         finish o1/0
         finish o1/1
         show ops
         show blobs",
        expect![[r#"
            > node n1 cpu=1
              n1 <- welcome
            > pool create p
              ok, an object
            > file //tmp/tool 7
              ok, an object
              ok
            > op start p jobs=2 file=//tmp/tool as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0
            > remove //tmp/tool
              ok
            > crash
            > restart
            > connect n1
              n1 <- welcome
            > show blobs
              [7]
            > finish o1/0
              n1 <- start o1/1#1
              n1 <- release o1/0#0
            > finish o1/1
              blob 7 deleted
              n1 <- release o1/1#1
            > show ops
              o1 completed total=2 running=0 completed=2 pending=0 failed=0 aborted=0
            > show blobs
              []
        "#]],
    );
}

#[test]
fn what_was_accepted_is_not_asked_again() {
    check(
        "node n1 cpu=3
         pool create line mode=fifo
         pool create later
         op start anywhere jobs=1 as o1
         op start later jobs=1 as o2
         op update o1 {weight=1e300}
         set //sys/scheduler/config/ephemeral_pool_name_regex \"[a-d]+\"
         set //sys/pool_trees/physical/@config/default_parent_pool line
         set //sys/pools/later/@create_ephemeral_subpools %true
         crash
         restart
         connect n1
         show ops
         show pools",
        expect![[r#"
            > node n1 cpu=3
              n1 <- welcome
            > pool create line mode=fifo
              ok, an object
            > pool create later
              ok, an object
            > op start anywhere jobs=1 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0
            > op start later jobs=1 as o2
              {"operation_id"="o2";}
              n1 <- start o2/0#0
            > op update o1 {weight=1e300}
              error 1: Parameter /weight: expected a number from 1.4901161193847656e-8 to 6.7108864e7, found double 1e300
            > set //sys/scheduler/config/ephemeral_pool_name_regex "[a-d]+"
              ok
            > set //sys/pool_trees/physical/@config/default_parent_pool line
              ok
            > set //sys/pools/later/@create_ephemeral_subpools %true
              ok
            > crash
            > restart
            > connect n1
              n1 <- welcome
            > show ops
              o1 running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
              o2 running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
            > show pools
              <Root> operations=2 running=2 cpu=2 share=0.67
              anywhere operations=1 running=1 cpu=1 share=0.33
              later operations=1 running=1 cpu=1 share=0.33
              line operations=0 running=0 cpu=0 share=0.00
        "#]],
    );
}
