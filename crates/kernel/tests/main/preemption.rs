//! What becomes of the scheduler's decision to take something away (scheduling.md 12 to 15).

use crate::console::{Console, check};
use crate::node::Node;
use expect_test::expect;
use kernel::Command;
use vocab::batch::Table;
use vocab::{Cpu, Resources, Span};
use yson::ypath::YPath;

#[test]
fn the_latest_jobs_make_room() {
    check(
        "node n1 cpu=4
         pool create owner strong.cpu=2
         pool create guest
         op start guest jobs=4 as g
         op start owner jobs=2 as o
         tick 30s
         show ops
         tick 15s
         show ops
         show jobs
         # who had to go, and for whom, is known when both are long gone, and after a restart
         finish o/0
         stop
         restart
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/preemption_log/0/job_id
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/preemption_log/0/preempted_for/job_id",
        expect![[r#"
            > node n1 cpu=4
              n1 <- welcome
            > pool create owner strong.cpu=2
              ok, an object
            > pool create guest
              ok, an object
            > op start guest jobs=4 as g
              {"operation_id"="g";}
              n1 <- start g/0#0 g/1#1 g/2#2 g/3#3
            > op start owner jobs=2 as o
              {"operation_id"="o";}
            > tick 30s
            > show ops
              g running total=4 running=4 completed=0 pending=0 failed=0 aborted=0
              o running total=2 running=0 completed=0 pending=2 failed=0 aborted=0
            > tick 15s
              n1 <- start o/0#0
              n1 <- interrupt g/3#3 preemption
              n1 <- release g/3#3
              n1 <- start o/1#1
              n1 <- interrupt g/2#2 preemption
              n1 <- release g/2#2
            > show ops
              g running total=4 running=2 completed=0 pending=2 failed=0 aborted=2
              o running total=2 running=2 completed=0 pending=0 failed=0 aborted=0
            > show jobs
              g/2#2 aborted n1 preemption
              g/3#3 aborted n1 preemption
            # who had to go, and for whom, is known when both are long gone, and after a restart
            > finish o/0
              n1 <- start g/2#4
              n1 <- release o/0#0
            > stop
            > restart
            > get //sys/scheduler/orchid/scheduler/pool_trees/physical/preemption_log/0/job_id
              "g/3#3"
            > get //sys/scheduler/orchid/scheduler/pool_trees/physical/preemption_log/0/preempted_for/job_id
              "o/0#0"
        "#]],
    );
}

#[test]
fn an_interrupted_job_may_end_by_itself() {
    check(
        "node n1 cpu=2
         pool create owner strong.cpu=1
         pool create guest
         op start guest jobs=2 signal=SIGINT as g
         op start owner jobs=1 as o
         tick 40s
         show jobs
         finish g/1
         show jobs
         show ops",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create owner strong.cpu=1
              ok, an object
            > pool create guest
              ok, an object
            > op start guest jobs=2 signal=SIGINT as g
              {"operation_id"="g";}
              n1 <- start g/0#0 g/1#1
            > op start owner jobs=1 as o
              {"operation_id"="o";}
            > tick 40s
              n1 <- start o/0#0
              n1 <- interrupt g/1#1 preemption
            > show jobs
            > finish g/1
              n1 <- release g/1#1
            > show jobs
              g/1#1 completed n1
            > show ops
              g running total=3 running=1 completed=1 pending=1 failed=0 aborted=0
              o running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
        "#]],
    );
}

#[test]
fn a_node_that_comes_back_is_told_again() {
    check(
        "node n1 cpu=2
         pool create owner strong.cpu=1
         pool create guest
         op start guest jobs=2 signal=SIGINT as g
         op start owner jobs=1 as o
         tick 40s
         disconnect n1
         tick 1s
         connect n1
         show ops",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create owner strong.cpu=1
              ok, an object
            > pool create guest
              ok, an object
            > op start guest jobs=2 signal=SIGINT as g
              {"operation_id"="g";}
              n1 <- start g/0#0 g/1#1
            > op start owner jobs=1 as o
              {"operation_id"="o";}
            > tick 40s
              n1 <- start o/0#0
              n1 <- interrupt g/1#1 preemption
            > disconnect n1
            > tick 1s
            > connect n1
              n1 <- welcome
              n1 <- interrupt g/1#1 preemption
            > show ops
              g running total=2 running=2 completed=0 pending=0 failed=0 aborted=0
              o running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
        "#]],
    );
}

#[test]
fn a_restarted_server_repeats_its_orders() {
    check(
        "node n1 cpu=2
         pool create owner strong.cpu=1
         pool create guest
         op start guest jobs=2 signal=SIGINT as g
         op start owner jobs=1 as o
         tick 40s
         crash
         restart
         connect n1
         show ops
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/preemption_log/0/preempted_for/operation_id
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/guest/resource_usage/cpu
         tick 40s
         finish g/1
         show ops
         crash
         restart
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/preemption_log/0/preemption_kind",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create owner strong.cpu=1
              ok, an object
            > pool create guest
              ok, an object
            > op start guest jobs=2 signal=SIGINT as g
              {"operation_id"="g";}
              n1 <- start g/0#0 g/1#1
            > op start owner jobs=1 as o
              {"operation_id"="o";}
            > tick 40s
              n1 <- start o/0#0
              n1 <- interrupt g/1#1 preemption
            > crash
            > restart
            > connect n1
              n1 <- welcome
              n1 <- interrupt g/1#1 preemption
            > show ops
              g running total=2 running=2 completed=0 pending=0 failed=0 aborted=0
              o running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
            > get //sys/scheduler/orchid/scheduler/pool_trees/physical/preemption_log/0/preempted_for/operation_id
              "o"
            > get //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/guest/resource_usage/cpu
              1.
            > tick 40s
            > finish g/1
              n1 <- release g/1#1
            > show ops
              g running total=3 running=1 completed=1 pending=1 failed=0 aborted=0
              o running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
            > crash
            > restart
            > get //sys/scheduler/orchid/scheduler/pool_trees/physical/preemption_log/0/preemption_kind
              "preemption"
        "#]],
    );
}

/// The end of an interrupted job that no server heard: counted by the order it was given.
#[test]
fn an_interrupted_job_that_ends_while_the_server_is_down() {
    check(
        "node n1 cpu=2
         pool create owner strong.cpu=1
         pool create guest
         op start guest jobs=2 signal=SIGINT as g
         op start owner jobs=1 as o
         tick 40s
         crash
         finish g/1
         restart
         connect n1
         show ops",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create owner strong.cpu=1
              ok, an object
            > pool create guest
              ok, an object
            > op start guest jobs=2 signal=SIGINT as g
              {"operation_id"="g";}
              n1 <- start g/0#0 g/1#1
            > op start owner jobs=1 as o
              {"operation_id"="o";}
            > tick 40s
              n1 <- start o/0#0
              n1 <- interrupt g/1#1 preemption
            > crash
            > finish g/1
            > restart
            > connect n1
              n1 <- welcome
              n1 <- release g/1#1
            > show ops
              g running total=3 running=1 completed=1 pending=1 failed=0 aborted=0
              o running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
        "#]],
    );
}

/// Orders to a node that has not come back in time are forgotten with its jobs.
#[test]
fn a_node_that_does_not_come_back_in_time() {
    check(
        "node n1 cpu=2
         pool create owner strong.cpu=1
         pool create guest
         op start guest jobs=2 signal=SIGINT allow_concurrent_attempts=%true as g
         op start owner jobs=1 allow_concurrent_attempts=%true as o
         tick 40s
         crash
         restart
         tick 40s
         show ops
         connect n1
         tick 2s
         show ops",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create owner strong.cpu=1
              ok, an object
            > pool create guest
              ok, an object
            > op start guest jobs=2 signal=SIGINT allow_concurrent_attempts=%true as g
              {"operation_id"="g";}
              n1 <- start g/0#0 g/1#1
            > op start owner jobs=1 allow_concurrent_attempts=%true as o
              {"operation_id"="o";}
            > tick 40s
              n1 <- start o/0#0
              n1 <- interrupt g/1#1 preemption
            > crash
            > restart
            > tick 40s
            > show ops
              g running total=2 running=0 completed=0 pending=2 failed=0 aborted=2
              o running total=1 running=0 completed=0 pending=1 failed=0 aborted=1
            > connect n1
              n1 <- welcome
              n1 <- abort g/0#0 unconfirmed
              n1 <- abort g/1#1 unconfirmed
              n1 <- abort o/0#0 unconfirmed
              n1 <- start g/0#2 o/0#1
              n1 <- release g/0#0 g/1#1 o/0#0
            > tick 2s
            > show ops
              g running total=2 running=1 completed=0 pending=1 failed=0 aborted=2
              o running total=1 running=1 completed=0 pending=0 failed=0 aborted=1
        "#]],
    );
}

/// No order leaves before the next life would know of it.
#[test]
fn an_order_waits_for_its_record() {
    check(
        "node n1 cpu=2
         pool create owner strong.cpu=1
         pool create guest
         op start guest jobs=2 signal=SIGINT as g
         op start owner jobs=1 as o
         tick 25s
         hold
         tick 15s
         crash
         go
         restart
         connect n1
         tick 5s
         tick 40s
         show ops",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create owner strong.cpu=1
              ok, an object
            > pool create guest
              ok, an object
            > op start guest jobs=2 signal=SIGINT as g
              {"operation_id"="g";}
              n1 <- start g/0#0 g/1#1
            > op start owner jobs=1 as o
              {"operation_id"="o";}
            > tick 25s
            > hold
            > tick 15s
              n1 <- start o/0#0
            > crash
            > go
            > restart
            > connect n1
              n1 <- welcome
            > tick 5s
              n1 <- interrupt g/1#1 preemption
            > tick 40s
            > show ops
              g running total=2 running=2 completed=0 pending=0 failed=0 aborted=0
              o running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
        "#]],
    );
}

/// The option of the operation, else that of the tree (15.1).
#[test]
fn an_operation_says_how_long_its_jobs_need() {
    check(
        "node n1 cpu=2
         pool create owner strong.cpu=1
         pool create guest
         op start guest jobs=2 signal=SIGINT allocation_preemption_timeout=3000 as g
         op start owner jobs=1 as o
         tick 40s
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/preemption_log/0/timeout
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/operations/g/allocation_preemption_timeout
         op start guest jobs=1 allocation_preemption_timeout=-1 as x",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create owner strong.cpu=1
              ok, an object
            > pool create guest
              ok, an object
            > op start guest jobs=2 signal=SIGINT allocation_preemption_timeout=3000 as g
              {"operation_id"="g";}
              n1 <- start g/0#0 g/1#1
            > op start owner jobs=1 as o
              {"operation_id"="o";}
            > tick 40s
              n1 <- start o/0#0
              n1 <- interrupt g/1#1 preemption
            > get //sys/scheduler/orchid/scheduler/pool_trees/physical/preemption_log/0/timeout
              3000
            > get //sys/scheduler/orchid/scheduler/pool_trees/physical/operations/g/allocation_preemption_timeout
              3000
            > op start guest jobs=1 allocation_preemption_timeout=-1 as x
              error 1(1): Error parsing operation spec: Invalid value of spec option /allocation_preemption_timeout: expected duration (milliseconds, or text like "10s") of at least 0s and at most 86400s, found int64 -1
        "#]],
    );
}

/// The log is bounded, in memory and in the store; orders that stand are kept however many they are.
#[test]
fn the_log_keeps_the_newest() {
    // Without transcripts: thousands of orders would have to be written.
    let mut console = Console::new();
    console.run("pool create p");
    let world = &mut console.world;
    let plenty = Resources { user_slots: 5_000, cpu: Cpu(500_000), memory: 4 << 40, ..Resources::ZERO };
    world.nodes.insert("n1".to_owned(), Node::new("n1", plenty));
    world.connect("n1");
    world.settle();
    let task = yson::map! {
        "command" => "true", "job_count" => 4_200i64, "interruption_signal" => "SIGINT",
    };
    let tasks = yson::map! {"t" => task};
    let spec = yson::map! {"pool" => "p", "preemption_mode" => "graceful", "tasks" => tasks};
    let operation_type = vocab::OperationType::Vanilla;
    world.ask("ann", Command::StartOperation { operation_type, spec }).expect("an answer").expect("good");
    let path = YPath::parse(b"//sys/pool_trees/physical/p/@resource_limits").expect("a path");
    let value = yson::map! {"cpu" => 0.0}.into();
    let command = Command::Set { path, value, recursive: false, force: false };
    world.ask("root", command).expect("an answer").expect("good");
    world.pass(Span::from_secs(10));
    world.stop();
    world.restart();
    world.connect("n1");
    world.settle();
    let kept = |first: u8| {
        let of_kind = |(table, key): &&(Table, Vec<u8>)| *table == Table::Preemptions && key[0] == first;
        console.world.durable.keys().filter(of_kind).count()
    };
    assert_eq!((kept(b'l'), kept(b's')), (4_096, 4_200));
    let path = "//sys/scheduler/orchid/scheduler/pool_trees/physical/preemption_log";
    assert!(console.exists(&format!("{path}/4095")) && !console.exists(&format!("{path}/4096")));
    // All of them are on their way out still, and none is charged to its pool.
    assert_eq!(console.world.kernel().check_invariants(), [""; 0]);
    assert!(console.exists("//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/p/resource_usage"));
}
