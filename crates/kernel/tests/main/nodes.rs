//! Nodes that come, go, come back, and say strange things (jobs-and-nodes.md 9).

use crate::console::check;
use expect_test::expect;

#[test]
fn a_lost_node() {
    check(
        "node n1 cpu=1
         node n2 cpu=1
         pool create p
         op start p jobs=2 allow_concurrent_attempts=%true as o1
         disconnect n2
         tick 30s
         show ops
         show nodes
         # the timeout is a minute
         tick 35s
         show ops
         show nodes
         finish o1/0
         show nodes
         # back again, with a job that counts no more
         connect n2
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
            > disconnect n2
            > tick 30s
            > show ops
              o1 running total=2 running=2 completed=0 pending=0 failed=0 aborted=0
            > show nodes
              n1 online o1/1#1
              n2 offline o1/0#0
            # the timeout is a minute
            > tick 35s
            > show ops
              o1 running total=2 running=1 completed=0 pending=1 failed=0 aborted=1
            > show nodes
              n1 online o1/1#1
              n2 unknown o1/0#0
            > finish o1/0
            > show nodes
              n1 online o1/1#1
              n2 unknown (o1/0#0)
            # back again, with a job that counts no more
            > connect n2
              n2 <- welcome
              n2 <- start o1/0#2
              n2 <- release o1/0#0
            > show nodes
              n1 online o1/1#1
              n2 online o1/0#2
            > finish o1/1@n1
              n1 <- release o1/1#1
            > show ops
              o1 running total=2 running=1 completed=1 pending=0 failed=0 aborted=1
            > show jobs
              o1/0#0 aborted n2 node_offline
              o1/1#1 completed n1
        "#]],
    );
}

#[test]
fn each_is_lost_when_its_own_time_is_up() {
    check(
        "node n1 cpu=1
         node n2 cpu=1
         node n3 cpu=1
         pool create p
         op start p jobs=3 allow_concurrent_attempts=%true as o1
         disconnect n1
         tick 40s
         disconnect n2
         show nodes
         tick 30s
         show nodes
         tick 40s
         show nodes",
        expect![[r#"
            > node n1 cpu=1
              n1 <- welcome
            > node n2 cpu=1
              n2 <- welcome
            > node n3 cpu=1
              n3 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=3 allow_concurrent_attempts=%true as o1
              {"operation_id"="o1";}
              n3 <- start o1/0#0
              n2 <- start o1/1#1
              n1 <- start o1/2#2
            > disconnect n1
            > tick 40s
            > disconnect n2
            > show nodes
              n1 offline o1/2#2
              n2 offline o1/1#1
              n3 online o1/0#0
            > tick 30s
            > show nodes
              n1 unknown o1/2#2
              n2 offline o1/1#1
              n3 online o1/0#0
            > tick 40s
            > show nodes
              n1 unknown o1/2#2
              n2 unknown o1/1#1
              n3 online o1/0#0
        "#]],
    );
}

#[test]
fn a_short_absence_of_a_node_loses_nothing() {
    check(
        "node n1 cpu=2
         pool create p
         op start p jobs=3 as o1
         disconnect n1
         finish o1/0
         tick 20s
         show ops
         connect n1
         show ops
         show nodes",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=3 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0 o1/1#1
            > disconnect n1
            > finish o1/0
            > tick 20s
            > show ops
              o1 running total=3 running=2 completed=0 pending=1 failed=0 aborted=0
            > connect n1
              n1 <- welcome
              n1 <- start o1/2#2
              n1 <- release o1/0#0
            > show ops
              o1 running total=3 running=2 completed=1 pending=0 failed=0 aborted=0
            > show nodes
              n1 online o1/1#1 o1/2#2
        "#]],
    );
}

#[test]
fn orders_that_were_lost_with_the_connection() {
    check(
        "node n1 cpu=1
         pool create p
         hold
         op start p as o1
         disconnect n1
         # the order waited for its commit, the connection did not
         go
         show nodes
         show ops
         connect n1
         show ops
         show nodes
         finish o1/0
         show ops
         show jobs",
        expect![[r#"
            > node n1 cpu=1
              n1 <- welcome
            > pool create p
              ok, an object
            > hold
            > op start p as o1
            > disconnect n1
            # the order waited for its commit, the connection did not
            > go
              {"operation_id"="o1";}
            > show nodes
              n1 offline
            > show ops
              o1 running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
            > connect n1
              n1 <- welcome
              n1 <- abort o1/0#0 disappeared_from_node
              n1 <- start o1/0#1
              n1 <- release o1/0#0
            > show ops
              o1 running total=1 running=1 completed=0 pending=0 failed=0 aborted=1
            > show nodes
              n1 online o1/0#1
            > finish o1/0
              n1 <- release o1/0#1
            > show ops
              o1 completed total=1 running=0 completed=1 pending=0 failed=0 aborted=1
            > show jobs
              o1/0#0 aborted n1 disappeared_from_node
              o1/0#1 completed n1
        "#]],
    );
}

#[test]
fn unknown_jobs_are_killed() {
    check(
        "node n1 cpu=2
         pool create p
         op start p jobs=2 as o1
         disconnect n1
         op abort o1
         show nodes
         connect n1
         show nodes
         show jobs",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=2 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0 o1/1#1
            > disconnect n1
            > op abort o1
              ok
            > show nodes
              n1 offline o1/0#0 o1/1#1
            > connect n1
              n1 <- welcome
              n1 <- abort o1/1#1 unconfirmed
              n1 <- abort o1/0#0 unconfirmed
              n1 <- release o1/1#1 o1/0#0
            > show nodes
              n1 online
            > show jobs
              o1/0#0 aborted n1 operation_aborted
              o1/1#1 aborted n1 operation_aborted
        "#]],
    );
}

#[test]
fn a_host_that_was_rebooted() {
    check(
        "node n1 cpu=2
         pool create p
         op start p jobs=2 as o1
         reboot n1
         show ops
         show nodes",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=2 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0 o1/1#1
            > reboot n1
              n1 <- welcome
              n1 <- abort o1/1#1 disappeared_from_node
              n1 <- abort o1/0#0 disappeared_from_node
              n1 <- start o1/0#2 o1/1#3
              n1 <- release o1/1#1 o1/0#0
            > show ops
              o1 running total=2 running=2 completed=0 pending=0 failed=0 aborted=2
            > show nodes
              n1 online o1/0#2 o1/1#3
        "#]],
    );
}

#[test]
fn an_end_that_is_told_twice_counts_once() {
    check(
        "node n1 cpu=1
         pool create p
         op start p jobs=3 as o1
         hold
         finish o1/0
         again n1
         again n1
         go
         again n1
         show ops
         show nodes
         show jobs",
        expect![[r#"
            > node n1 cpu=1
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=3 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0
            > hold
            > finish o1/0
              n1 <- start o1/1#1
            > again n1
            > again n1
            > go
              n1 <- release o1/0#0
              n1 <- release o1/0#0
              n1 <- release o1/0#0
            > again n1
            > show ops
              o1 running total=3 running=1 completed=1 pending=1 failed=0 aborted=0
            > show nodes
              n1 online o1/1#1
            > show jobs
              o1/0#0 completed n1
        "#]],
    );
}

#[test]
fn two_nodes_with_one_name() {
    check(
        "node n1 cpu=2
         # the same one on a new connection, before the server has noticed that the old one is dead
         connect n1
         impostor n1
         show nodes",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            # the same one on a new connection, before the server has noticed that the old one is dead
            > connect n1
              n1: connection closed by the server
              n1 <- welcome
            > impostor n1
              impostor of n1 <- refused: Another node with the name n1 is connected: names of nodes must be unique
              impostor of n1: connection closed by the server
            > show nodes
              n1 online
        "#]],
    );
}

#[test]
fn jobs_are_asked_to_leave_a_node_that_is_disabled() {
    check(
        "node n1 cpu=3
         pool create p
         op start p jobs=1 signal=SIGINT as polite
         op start p jobs=2 as plain
         set //sys/cluster_nodes/n1/@disable_scheduler_jobs %true
         # nothing new starts, and what was asked has its time
         tick 6s
         show nodes
         finish polite/0
         tick 6s
         show nodes
         show ops
         set //sys/cluster_nodes/n1/@disable_scheduler_jobs %false
         tick 6s
         show nodes",
        expect![[r#"
            > node n1 cpu=3
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=1 signal=SIGINT as polite
              {"operation_id"="polite";}
              n1 <- start polite/0#0
            > op start p jobs=2 as plain
              {"operation_id"="plain";}
              n1 <- start plain/0#0 plain/1#1
            > set //sys/cluster_nodes/n1/@disable_scheduler_jobs %true
              n1 <- interrupt plain/1#1 jobs_disabled_on_node
              n1 <- interrupt polite/0#0 jobs_disabled_on_node
              n1 <- interrupt plain/0#0 jobs_disabled_on_node
              ok
              n1 <- release plain/1#1 plain/0#0
            # nothing new starts, and what was asked has its time
            > tick 6s
            > show nodes
              n1 online polite/0#0
            > finish polite/0
              n1 <- release polite/0#0
            > tick 6s
            > show nodes
              n1 online
            > show ops
              plain running total=2 running=0 completed=0 pending=2 failed=0 aborted=2 alert:no_suitable_node
              polite running total=2 running=0 completed=1 pending=1 failed=0 aborted=0 alert:no_suitable_node
            > set //sys/cluster_nodes/n1/@disable_scheduler_jobs %false
              ok
            > tick 6s
              n1 <- start plain/0#2 polite/0#1 plain/1#3
            > show nodes
              n1 online plain/0#2 plain/1#3 polite/0#1
        "#]],
    );
}

#[test]
fn jobs_of_an_operation_whose_time_is_up_fail() {
    check(
        "node n1 cpu=3
         pool create p
         op start p jobs=4 time_limit=5000 signal=SIGINT as o
         tick 4s
         show ops
         tick 2s
         show ops",
        expect![[r#"
            > node n1 cpu=3
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=4 time_limit=5000 signal=SIGINT as o
              {"operation_id"="o";}
              n1 <- start o/0#0 o/1#1 o/2#2
            > tick 4s
            > show ops
              o running total=4 running=3 completed=0 pending=1 failed=0 aborted=0
            > tick 2s
              n1 <- fail o/0#0 Operation time limit exceeded
              n1 <- fail o/1#1 Operation time limit exceeded
              n1 <- fail o/2#2 Operation time limit exceeded
              n1 <- release o/0#0 o/1#1 o/2#2
            > show ops
              o failed total=4 running=0 completed=0 pending=4 failed=3 aborted=0 error 1: Operation is running for too long, aborted
        "#]],
    );
}

#[test]
fn administrators_and_nodes() {
    check(
        "node n1 cpu=2
         pool create p
         op start p jobs=2 as o1
         set //sys/cluster_nodes/n1/@ban_message smoke
         set //sys/cluster_nodes/n1/@banned %true
         show ops
         show nodes
         get //sys/cluster_nodes/n1/@ban_message
         set //sys/cluster_nodes/n1/@state online
         set //sys/cluster_nodes/n1/@color red
         set //sys/cluster_nodes/n1/@resource_limits_overrides {cpu=-1}
         get //sys/cluster_nodes/n9/@state
         # it is remembered
         crash
         restart
         connect n1
         show nodes
         set //sys/cluster_nodes/n1/@banned %false
         tick 6s
         show nodes",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=2 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0 o1/1#1
            > set //sys/cluster_nodes/n1/@ban_message smoke
              ok
            > set //sys/cluster_nodes/n1/@banned %true
              n1 <- abort o1/1#1 node_banned
              n1 <- abort o1/0#0 node_banned
              ok
              n1 <- release o1/1#1 o1/0#0
            > show ops
              o1 running total=2 running=0 completed=0 pending=2 failed=0 aborted=2
            > show nodes
              n1 online
            > get //sys/cluster_nodes/n1/@ban_message
              "smoke"
            > set //sys/cluster_nodes/n1/@state online
              error 1: Attribute "state" of //sys/cluster_nodes/n1/@state cannot be changed: it is a system attribute
            > set //sys/cluster_nodes/n1/@color red
              error 1: Attribute "color" of a node cannot be set: expected one of banned, ban_message, disable_scheduler_jobs, resource_limits_overrides, user_tags
            > set //sys/cluster_nodes/n1/@resource_limits_overrides {cpu=-1}
              error 1: Attribute "resource_limits_overrides" of a node: expected a map from cpu, memory, user_slots, gpu, network to amounts of at least 0, found map {"cpu": -1}
            > get //sys/cluster_nodes/n9/@state
              error 500: Node //sys/cluster_nodes has no child with key "n9"
            # it is remembered
            > crash
            > restart
            > connect n1
              n1 <- welcome
            > show nodes
              n1 online
            > set //sys/cluster_nodes/n1/@banned %false
              ok
            > tick 6s
              n1 <- start o1/0#2 o1/1#3
            > show nodes
              n1 online o1/0#2 o1/1#3
        "#]],
    );
}
