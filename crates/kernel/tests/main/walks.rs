//! The life of operations, as transcripts (scheduling.md 3, 4; jobs-and-nodes.md 6).

use crate::console::run;
use expect_test::{Expect, expect};

fn check(script: &str, expected: Expect) {
    expected.assert_eq(&run(script));
}

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
              {"result"={"error"={"code"=215;"message"="Failed jobs limit exceeded";"attributes"={"max_failed_job_count"=2;};"inner_errors"=[{"code"=1205;"message"="User job failed";"attributes"={"job_id"="o1/0#1";"host"="n1";};"inner_errors"=[{"code"=10000;"message"="Process exited with code 4";"attributes"={"exit_code"=4;};"inner_errors"=[];};];};];};};}
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
              error 1(1): Error parsing operation spec: Operation type "sort" is not supported: only "vanilla" operations can be started
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
              error 1: Job o1/2#2 cannot be interrupted: its task has no "interruption_signal"
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
