//! Units of work that end, begin anew, or need something, as transcripts (jobs-and-nodes.md 6, 9).

use crate::console::check;
use expect_test::expect;

#[test]
fn jobs_that_users_end() {
    check(
        "node n1 cpu=4
         pool create p
         op start p jobs=3 as o1
         job abort o1/0
         show ops
         show nodes
         job abandon o1/1
         job interrupt o1/2
         show ops
         op start p signal=SIGINT as o2
         job interrupt o2/0
         # without restart_exit_code an interrupted job has only made room (6.8)
         finish o2/0
         show ops
         show jobs
         show nodes",
        expect![[r#"
            > node n1 cpu=4
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=3 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0 o1/1#1 o1/2#2
            > job abort o1/0
              n1 <- abort o1/0#0 user_request
              ok
              n1 <- start o1/0#3
              n1 <- release o1/0#0
            > show ops
              o1 running total=3 running=3 completed=0 pending=0 failed=0 aborted=1
            > show nodes
              n1 online o1/0#3 o1/1#1 o1/2#2
            > job abandon o1/1
              n1 <- abort o1/1#1 abandoned
              ok
              n1 <- release o1/1#1
            > job interrupt o1/2
              error 1209: Job o1/2#2 cannot be interrupted: its task has no "interruption_signal"
            > show ops
              o1 running total=3 running=2 completed=1 pending=0 failed=0 aborted=1
            > op start p signal=SIGINT as o2
              {"operation_id"="o2";}
              n1 <- start o2/0#0
            > job interrupt o2/0
              n1 <- interrupt o2/0#0 user_request
              ok
            # without restart_exit_code an interrupted job has only made room (6.8)
            > finish o2/0
              n1 <- start o2/0#1
              n1 <- release o2/0#0
            > show ops
              o1 running total=3 running=2 completed=1 pending=0 failed=0 aborted=1
              o2 running total=2 running=1 completed=1 pending=0 failed=0 aborted=0
            > show jobs
              o1/0#0 aborted n1 user_request
              o1/1#1 completed n1
              o2/0#0 completed n1
            > show nodes
              n1 online o1/0#3 o1/2#2 o2/0#1
        "#]],
    );
}

#[test]
fn a_gang_begins_anew_when_one_is_lost() {
    check(
        "node n1 cpu=4
         pool create p
         op start p jobs=2 gang=2 as g
         finish g/0
         fail g/1
         show ops
         show nodes
         finish g/0
         finish g/1
         show ops",
        expect![[r#"
            > node n1 cpu=4
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=2 gang=2 as g
              {"operation_id"="g";}
              n1 <- start g/0#0 g/1#1
            > finish g/0
              n1 <- release g/0#0
            > fail g/1
              n1 <- start g/0#2 g/1#3
              n1 <- release g/1#1
            > show ops
              g running total=2 running=2 completed=0 pending=0 failed=1 aborted=0 lost=1
            > show nodes
              n1 online g/0#2 g/1#3
            > finish g/0
              n1 <- release g/0#2
            > finish g/1
              n1 <- release g/1#3
            > show ops
              g completed total=2 running=0 completed=2 pending=0 failed=1 aborted=0 lost=1
        "#]],
    );
}

/// Nobody comes in between, though somebody waits for every place that gets free.
#[test]
fn a_gang_stays_where_it_is() {
    check(
        "node n1 cpu=2
         node n2 cpu=1
         pool create p
         pool create q
         op start p jobs=3 gang=3 as g
         op start q jobs=3 as o
         show nodes
         fail g/1
         show ops
         show nodes
         op suspend g
         fail g/0
         show ops
         show nodes",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > node n2 cpu=1
              n2 <- welcome
            > pool create p
              ok, an object
            > pool create q
              ok, an object
            > op start p jobs=3 gang=3 as g
              {"operation_id"="g";}
              n1 <- start g/0#0 g/1#1
              n2 <- start g/2#2
            > op start q jobs=3 as o
              {"operation_id"="o";}
            > show nodes
              n1 online g/0#0 g/1#1
              n2 online g/2#2
            > fail g/1
              n1 <- abort g/0#0 operation_incarnation_changed
              n2 <- abort g/2#2 operation_incarnation_changed
              n1 <- start g/0#3
              n2 <- start g/2#4
              n1 <- start o/0#0
              n1 <- release g/1#1 g/0#0
              n2 <- release g/2#2
            > show ops
              g running total=3 running=2 completed=0 pending=1 failed=1 aborted=2
              o running total=3 running=1 completed=0 pending=2 failed=0 aborted=0
            > show nodes
              n1 online g/0#3 o/0#0
              n2 online g/2#4
            > op suspend g
              ok
            > fail g/0
              n2 <- abort g/2#4 operation_incarnation_changed
              n1 <- start o/1#1
              n2 <- start o/2#2
              n1 <- release g/0#3
              n2 <- release g/2#4
            > show ops
              g running total=3 running=0 completed=0 pending=3 failed=2 aborted=3 suspended
              o running total=3 running=3 completed=0 pending=0 failed=0 aborted=0
            > show nodes
              n1 online o/0#0 o/1#1
              n2 online o/2#2
        "#]],
    );
}

/// A node that is to run no more jobs gets none back.
#[test]
fn a_gang_leaves_a_node_that_is_banned() {
    check(
        "node n1 cpu=2
         node n2 cpu=1
         pool create p
         op start p jobs=3 gang=3 as g
         set //sys/cluster_nodes/n2/@banned %true
         show nodes
         show ops",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > node n2 cpu=1
              n2 <- welcome
            > pool create p
              ok, an object
            > op start p jobs=3 gang=3 as g
              {"operation_id"="g";}
              n1 <- start g/0#0 g/1#1
              n2 <- start g/2#2
            > set //sys/cluster_nodes/n2/@banned %true
              n2 <- abort g/2#2 node_banned
              ok
              n1 <- abort g/1#1 operation_incarnation_changed
              n1 <- abort g/0#0 operation_incarnation_changed
              n1 <- start g/0#3
              n1 <- start g/1#4
              n1 <- release g/1#1 g/0#0
              n2 <- release g/2#2
            > show nodes
              n1 online g/0#3 g/1#4
              n2 online
            > show ops
              g running total=3 running=2 completed=0 pending=1 failed=0 aborted=3
        "#]],
    );
}

/// Who has completed is followed in its place, though somebody waits for one; who has failed is not.
#[test]
fn jobs_follow_each_other_in_their_places() {
    check(
        "node n1 cpu=2
         pool create p
         pool create q
         op start p jobs=5 allocation={enable_multiple_jobs=%true} as a
         op start q jobs=2 as o
         finish a/0
         show nodes
         op suspend a
         finish a/1
         op resume a
         fail a/2
         finish o/0
         finish o/1
         show ops
         finish a/2
         finish a/3
         finish a/4
         show ops
         op start p jobs=3 allocation={enable_multiple_jobs=5} as b",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create p
              ok, an object
            > pool create q
              ok, an object
            > op start p jobs=5 allocation={enable_multiple_jobs=%true} as a
              {"operation_id"="a";}
              n1 <- start a/0#0 a/1#1
            > op start q jobs=2 as o
              {"operation_id"="o";}
            > finish a/0
              n1 <- start a/2#2
              n1 <- release a/0#0
            > show nodes
              n1 online a/1#1 a/2#2
            > op suspend a
              ok
            > finish a/1
              n1 <- start o/0#0
              n1 <- release a/1#1
            > op resume a
              ok
            > fail a/2
              n1 <- start a/2#3
              n1 <- release a/2#2
            > finish o/0
              n1 <- start o/1#1
              n1 <- release o/0#0
            > finish o/1
              n1 <- start a/3#4
              n1 <- release o/1#1
            > show ops
              a running total=5 running=2 completed=2 pending=1 failed=1 aborted=0
              o completed total=2 running=0 completed=2 pending=0 failed=0 aborted=0
            > finish a/2
              n1 <- start a/4#5
              n1 <- release a/2#3
            > finish a/3
              n1 <- release a/3#4
            > finish a/4
              n1 <- release a/4#5
            > show ops
              a completed total=5 running=0 completed=5 pending=0 failed=1 aborted=0
              o completed total=2 running=0 completed=2 pending=0 failed=0 aborted=0
            > op start p jobs=3 allocation={enable_multiple_jobs=5} as b
              error 1(1): Error parsing operation spec: Invalid value of spec option /allocation/enable_multiple_jobs: expected boolean, found int64 5
        "#]],
    );
}

#[test]
fn files_are_kept_for_those_who_need_them() {
    check(
        "node n1 cpu=1
         pool create p
         file //tmp/tool 7
         op start p jobs=2 file=//tmp/tool as o1
         op start p file=//tmp/tool as o2
         # removed by its user: the content stays while somebody may fetch it
         remove //tmp/tool
         op abort o2
         finish o1/0
         finish o1/1
         show ops
         file //tmp/free 8
         remove //tmp/free
         file //tmp/kept 9
         op start p file=//tmp/kept as o3
         op abort o3
         exists //tmp/kept",
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
            > op start p file=//tmp/tool as o2
              {"operation_id"="o2";}
            # removed by its user: the content stays while somebody may fetch it
            > remove //tmp/tool
              ok
            > op abort o2
              ok
            > finish o1/0
              n1 <- start o1/1#1
              n1 <- release o1/0#0
            > finish o1/1
              blob 7 deleted
              n1 <- release o1/1#1
            > show ops
              o1 completed total=2 running=0 completed=2 pending=0 failed=0 aborted=0
              o2 aborted total=1 running=0 completed=0 pending=1 failed=0 aborted=0 error 1: Operation aborted by user request
            > file //tmp/free 8
              ok, an object
              ok
            > remove //tmp/free
              blob 8 deleted
              ok
            > file //tmp/kept 9
              ok, an object
              ok
            > op start p file=//tmp/kept as o3
              {"operation_id"="o3";}
              n1 <- start o3/0#0
            > op abort o3
              n1 <- abort o3/0#0 operation_aborted
              ok
              n1 <- release o3/0#0
            > exists //tmp/kept
              %true
        "#]],
    );
}
