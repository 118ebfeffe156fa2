//! What happens while commits take their time: nothing leaves before its time, and nothing waits for ever.

use crate::console::check;
use expect_test::expect;

#[test]
fn an_order_that_is_younger_than_the_store() {
    check(
        "node n1 cpu=1
         node n2 cpu=1
         pool create p
         op start p jobs=3 as o1
         hold
         # the next unit is started at once, its record is on its way
         finish o1/0
         show nodes
         crash
         restart
         go
         connect n2
         show ops
         connect n1
         show ops
         show nodes",
        expect![[r#"
            > node n1 cpu=1
              n1 <- welcome
            > node n2 cpu=1
              n2 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=3 as o1
              {"operation_id"="o1";}
              n2 <- start o1/0#0
              n1 <- start o1/1#1
            > hold
            # the next unit is started at once, its record is on its way
            > finish o1/0
              n2 <- start o1/2#2
            > show nodes
              n1 online o1/1#1
              n2 online (o1/0#0) o1/2#2
            > crash
            > restart
            > go
            > connect n2
              n2 <- welcome
              n2 <- release o1/0#0
            > show ops
              o1 reviving_jobs total=3 running=1 completed=1 pending=1 failed=0 aborted=0
            > connect n1
              n1 <- welcome
            > show ops
              o1 running total=3 running=2 completed=1 pending=0 failed=0 aborted=0
            > show nodes
              n1 online o1/1#1
              n2 online o1/2#2
        "#]],
    );
}

#[test]
fn a_node_that_the_store_does_not_know_yet() {
    check(
        "node n1 cpu=1
         pool create p
         op start p jobs=2 as o1
         hold
         # it is told to start something when its registration is durable, not before
         node n2 cpu=1
         show nodes
         crash
         restart
         go
         connect n1
         show nodes
         connect n2
         show ops
         show nodes",
        expect![[r#"
            > node n1 cpu=1
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=2 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0
            > hold
            # it is told to start something when its registration is durable, not before
            > node n2 cpu=1
              n2 <- welcome
            > show nodes
              n1 online o1/0#0
              n2 online
            > crash
            > restart
            > go
            > connect n1
              n1 <- welcome
            > show nodes
              n1 online o1/0#0
              n2 unknown
            > connect n2
              n2 <- welcome
              n2 <- start o1/1#1
            > show ops
              o1 running total=2 running=2 completed=0 pending=0 failed=0 aborted=0
            > show nodes
              n1 online o1/0#0
              n2 online o1/1#1
        "#]],
    );
}

#[test]
fn a_store_that_stands_still() {
    check(
        "node n1 cpu=1
         pool create p
         hold
         op start p as o1
         # the node says that it has no such job: the order is still on its way
         tick 20s
         go
         show nodes
         finish o1/0
         show ops",
        expect![[r#"
            > node n1 cpu=1
              n1 <- welcome
            > pool create p
              ok, an object
            > hold
            > op start p as o1
            # the node says that it has no such job: the order is still on its way
            > tick 20s
            > go
              {"operation_id"="o1";}
              n1 <- start o1/0#0
            > show nodes
              n1 online o1/0#0
            > finish o1/0
              n1 <- release o1/0#0
            > show ops
              o1 completed total=1 running=0 completed=1 pending=0 failed=0 aborted=0
        "#]],
    );
}

/// An order that nobody has confirmed is given up after a while, and the operation says so for a
/// quarter of an hour (scheduling.md 17.3).
#[test]
fn an_order_that_takes_too_long() {
    check(
        "node n1 cpu=4
         pool create p
         hold
         op start p jobs=1 allow_concurrent_attempts=%true as o1
         tick 45s
         go
         show ops
         exists //sys/scheduler/orchid/scheduler/operations/o1/alerts/schedule_job_timed_out
         get //sys/scheduler/orchid/scheduler/invariants/violations
         # it counted as a failed call, and the next one waited
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/metrics/deactivation_count
         tick 16m
         exists //sys/scheduler/orchid/scheduler/operations/o1/alerts/schedule_job_timed_out
         finish o1/0
         show ops",
        expect![[r#"
            > node n1 cpu=4
              n1 <- welcome
            > pool create p
              ok, an object
            > hold
            > op start p jobs=1 allow_concurrent_attempts=%true as o1
            > tick 45s
            > go
              {"operation_id"="o1";}
              n1 <- start o1/0#0
              n1 <- abort o1/0#0 scheduling_timeout
              n1 <- start o1/0#1
              n1 <- release o1/0#0
            > show ops
              o1 running total=1 running=1 completed=0 pending=0 failed=0 aborted=1 alert:schedule_job_timed_out
            > exists //sys/scheduler/orchid/scheduler/operations/o1/alerts/schedule_job_timed_out
              %true
            > get //sys/scheduler/orchid/scheduler/invariants/violations
              {}
            # it counted as a failed call, and the next one waited
            > get //sys/scheduler/orchid/scheduler/pool_trees/physical/metrics/deactivation_count
              {"schedule_allocation_failed"=1;"no_available_demand"=2;"recent_schedule_allocation_failed"=1;}
            > tick 16m
            > exists //sys/scheduler/orchid/scheduler/operations/o1/alerts/schedule_job_timed_out
              %false
            > finish o1/0
              n1 <- release o1/0#1
            > show ops
              o1 completed total=1 running=0 completed=1 pending=0 failed=0 aborted=1 alert:low_cpu_usage
        "#]],
    );
}
