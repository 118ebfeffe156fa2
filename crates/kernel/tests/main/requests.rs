//! Requests about operations and their answers, as transcripts (http-api.md 8).

use crate::console::check;
use expect_test::expect;

#[test]
fn aliases() {
    check(
        "node n1 cpu=4
         pool create p
         op start p alias=*etl as o1
         op start p alias=*etl as o2
         op get *etl id state
         op abort *etl
         # the alias of a finished operation is free, and leads to the newest
         op get *etl id state
         op start p alias=*etl as o2
         op get *etl id state
         get //sys/operations/\\*etl/@state
         get //sys/scheduler/orchid/scheduler/operations/\\*etl/state
         crash
         restart
         op get *etl id state",
        expect![[r#"
            > node n1 cpu=4
              n1 <- welcome
            > pool create p
              ok, an object
            > op start p alias=*etl as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0
            > op start p alias=*etl as o2
              error 1: Operation alias "*etl" is already used by an operation o1
            > op get *etl id state
              {"id"="o1";"state"="running";}
            > op abort *etl
              n1 <- abort o1/0#0 operation_aborted
              ok
              n1 <- release o1/0#0
            # the alias of a finished operation is free, and leads to the newest
            > op get *etl id state
              {"id"="o1";"state"="aborted";}
            > op start p alias=*etl as o2
              {"operation_id"="o2";}
              n1 <- start o2/0#0
            > op get *etl id state
              {"id"="o2";"state"="running";}
            > get //sys/operations/\*etl/@state
              "running"
            > get //sys/scheduler/orchid/scheduler/operations/\*etl/state
              "running"
            > crash
            > restart
            > op get *etl id state
              {"id"="o2";"state"="reviving_jobs";}
        "#]],
    );
}

#[test]
fn a_repeated_mutation_is_answered_not_executed() {
    check(
        "pool create p
         op start p mid=7 as o1
         op start p mid=7 as o1
         ops
         op start p jobs=0 mid=8 as bad
         op start p mid=8 as bad
         as bob
         # ids of different users do not mix
         op start p mid=7 as o2
         as ann
         crash
         restart
         op start p mid=7 as o1
         ops counters=false
         # answers are kept for ten minutes
         tick 11m
         op start p mid=7 as o3",
        expect![[r#"
            > pool create p
              ok, an object
            > op start p mid=7 as o1
              {"operation_id"="o1";}
            > op start p mid=7 as o1
              {"operation_id"="o1";}
            > ops
              {"operations"=["o1";];"incomplete"=%false;}
            > op start p jobs=0 mid=8 as bad
              error 1(1): Error parsing operation spec: Invalid value of spec option /tasks/t/job_count: expected int64 in 1..=4294967295, found int64 0
            > op start p mid=8 as bad
              error 1(1): Error parsing operation spec: Invalid value of spec option /tasks/t/job_count: expected int64 in 1..=4294967295, found int64 0
            > as bob
            # ids of different users do not mix
            > op start p mid=7 as o2
              {"operation_id"="o2";}
            > as ann
            > crash
            > restart
            > op start p mid=7 as o1
              {"operation_id"="o1";}
            > ops counters=false
              {"operations"=["o1";"o2";];"incomplete"=%false;}
            # answers are kept for ten minutes
            > tick 11m
            > op start p mid=7 as o3
              {"operation_id"="o3";}
        "#]],
    );
}

#[test]
fn an_acknowledgement_waits_for_its_commit() {
    check(
        "node n1 cpu=1
         pool create p
         hold
         op start p mid=1 as o1
         # nothing was started and nobody was told, since it may yet be undone
         show nodes
         crash
         restart
         connect n1
         go
         ops counters=false
         # durable, but the reply was lost: the repeated request gets it
         hold
         op start p mid=1 as o1
         crash 1
         restart
         go
         op start p mid=1 as o1
         connect n1
         ops counters=false",
        expect![[r#"
            > node n1 cpu=1
              n1 <- welcome
            > pool create p
              ok, an object
            > hold
            > op start p mid=1 as o1
            # nothing was started and nobody was told, since it may yet be undone
            > show nodes
              n1 online
            > crash
              no reply to op start p mid=1 as o1
            > restart
            > connect n1
              n1 <- welcome
            > go
            > ops counters=false
              {"operations"=[];"incomplete"=%false;}
            # durable, but the reply was lost: the repeated request gets it
            > hold
            > op start p mid=1 as o1
            > crash 1
              no reply to op start p mid=1 as o1
            > restart
            > go
            > op start p mid=1 as o1
              {"operation_id"="o1";}
            > connect n1
              n1 <- welcome
              n1 <- start o1/0#1
            > ops counters=false
              {"operations"=["o1";];"incomplete"=%false;}
        "#]],
    );
}

#[test]
fn parameters_of_a_running_operation() {
    check(
        "node n1 cpu=2
         pool create p
         pool create q max_running=0
         pool create r
         op start p jobs=4 as o1
         op update o1 {pool=r;weight=2.5;annotations={note=moved}}
         op get o1 runtime_parameters
         show pools
         # all or nothing
         op update o1 {weight=3.0;pool=q}
         op update o1 {weight=3.0;color=red}
         op update o1 {weight=-1.0}
         op update o1 {weight=%nan}
         op update o1 {scheduling_options_per_pool_tree={physical={resource_limits={cpu=1.0}}}}
         op update o1 {scheduling_options_per_pool_tree={moon={weight=1.0}}}
         get //sys/scheduler/orchid/scheduler/operations/o1/runtime_parameters/scheduling_options_per_pool_tree
         finish o1/0
         show nodes
         # the number of jobs may change
         op update o1 {tasks={t={job_count=2}}}
         show ops
         show nodes
         crash
         restart
         connect n1
         op get o1 runtime_parameters
         show ops",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create p
              ok, an object
            > pool create q max_running=0
              ok, an object
            > pool create r
              ok, an object
            > op start p jobs=4 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0 o1/1#1
            > op update o1 {pool=r;weight=2.5;annotations={note=moved}}
              ok
            > op get o1 runtime_parameters
              {"runtime_parameters"={"acl"=[{"action"="allow";"subjects"=["ann";];"permissions"=["read";"manage";];};];"owners"=[];"annotations"={"note"="moved";};"scheduling_options_per_pool_tree"={"physical"={"pool"="r";"resource_limits"={};"tentative"=%false;"probing"=%false;"offloading"=%false;"weight"=2.5;};};"erased_trees"=[];"options_per_job_shell"={};};}
            > show pools
              <Root> operations=1 running=1 cpu=2 share=1.00
              p operations=0 running=0 cpu=0 share=0.00
              q operations=0 running=0 cpu=0 share=0.00
              r operations=1 running=1 cpu=2 share=1.00
            # all or nothing
            > op update o1 {weight=3.0;pool=q}
              error 202: Limit for the number of running operations 0 for pool "q" in tree "physical" has been reached
            > op update o1 {weight=3.0;color=red}
              error 1: Parameter /color: unknown parameter, expected one of acl, annotations, options_per_job_shell, owners, pool, resource_limits, scheduling_options_per_pool_tree, tasks, weight, found string "red"
            > op update o1 {weight=-1.0}
              error 1: Parameter /weight: expected a number from 1.4901161193847656e-8 to 6.7108864e7, found double -1.0
            > op update o1 {weight=%nan}
              error 1: Parameter /weight: expected a number from 1.4901161193847656e-8 to 6.7108864e7, found double NaN
            > op update o1 {scheduling_options_per_pool_tree={physical={resource_limits={cpu=1.0}}}}
              ok
            > op update o1 {scheduling_options_per_pool_tree={moon={weight=1.0}}}
              error 1: Parameter /scheduling_options_per_pool_tree/moon: expected a tree of the operation, one of ["physical"], found map {"weight": 1.0}
            > get //sys/scheduler/orchid/scheduler/operations/o1/runtime_parameters/scheduling_options_per_pool_tree
              {"physical"={"pool"="r";"resource_limits"={"cpu"=1.;};"tentative"=%false;"probing"=%false;"offloading"=%false;"weight"=2.5;};}
            > finish o1/0
              n1 <- release o1/0#0
            > show nodes
              n1 online o1/1#1
            # the number of jobs may change
            > op update o1 {tasks={t={job_count=2}}}
              ok
            > show ops
              o1 running total=2 running=1 completed=1 pending=0 failed=0 aborted=0
            > show nodes
              n1 online o1/1#1
            > crash
            > restart
            > connect n1
              n1 <- welcome
            > op get o1 runtime_parameters
              {"runtime_parameters"={"acl"=[{"action"="allow";"subjects"=["ann";];"permissions"=["read";"manage";];};];"owners"=[];"annotations"={"note"="moved";};"scheduling_options_per_pool_tree"={"physical"={"pool"="r";"resource_limits"={"cpu"=1.;};"tentative"=%false;"probing"=%false;"offloading"=%false;"weight"=2.5;};};"erased_trees"=[];"options_per_job_shell"={};};}
            > show ops
              o1 running total=2 running=1 completed=1 pending=0 failed=0 aborted=0
        "#]],
    );
}

#[test]
fn lists_of_operations() {
    check(
        "node n1 cpu=8
         pool create p
         pool create q
         op start p title=Nightly as o1
         tick 1s
         as bob
         op start q annotations={team=nightly} as o2
         tick 1s
         op start p max_failed_job_count=1 as o3
         fail o3/0
         ops counters=true
         ops user=bob counters=false
         ops pool=p counters=false
         ops state=failed counters=false
         ops failed=true counters=false
         ops filter=NIGHTLY counters=false
         ops limit=1 counters=false
         crash
         restart
         ops counters=true",
        expect![[r#"
            > node n1 cpu=8
              n1 <- welcome
            > pool create p
              ok, an object
            > pool create q
              ok, an object
            > op start p title=Nightly as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0
            > tick 1s
            > as bob
            > op start q annotations={team=nightly} as o2
              {"operation_id"="o2";}
              n1 <- start o2/0#0
            > tick 1s
            > op start p max_failed_job_count=1 as o3
              {"operation_id"="o3";}
              n1 <- start o3/0#0
            > fail o3/0
              n1 <- release o3/0#0
            > ops counters=true
              {"operations"=["o3";"o2";"o1";];"incomplete"=%false;"pool_tree_counts"={"physical"=3;};"pool_counts"={"p"=2;"q"=1;};"user_counts"={"ann"=1;"bob"=2;};"state_counts"={"failed"=1;"running"=2;};"type_counts"={"vanilla"=3;};"failed_jobs_count"=1;}
            > ops user=bob counters=false
              {"operations"=["o3";"o2";];"incomplete"=%false;}
            > ops pool=p counters=false
              {"operations"=["o3";"o1";];"incomplete"=%false;}
            > ops state=failed counters=false
              {"operations"=["o3";];"incomplete"=%false;}
            > ops failed=true counters=false
              {"operations"=["o3";];"incomplete"=%false;}
            > ops filter=NIGHTLY counters=false
              {"operations"=["o2";"o1";];"incomplete"=%false;}
            > ops limit=1 counters=false
              {"operations"=["o3";];"incomplete"=%true;}
            > crash
            > restart
            > ops counters=true
              {"operations"=["o3";"o2";"o1";];"incomplete"=%false;"pool_tree_counts"={"physical"=3;};"pool_counts"={"p"=2;"q"=1;};"user_counts"={"ann"=1;"bob"=2;};"state_counts"={"failed"=1;"reviving_jobs"=2;};"type_counts"={"vanilla"=3;};"failed_jobs_count"=1;}
        "#]],
    );
}
