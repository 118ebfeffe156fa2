//! Pools as nodes of the tree (http-api.md 8.8).

use crate::console::check;
use expect_test::expect;

#[test]
fn create_read_change_remove() {
    check(
        "pool create a strong.cpu=10 weight=2.0
         pool create b parent=a strong.cpu=4
         list //sys/pool_trees
         list //sys/pool_trees/physical
         get //sys/pool_trees/physical
         get //sys/pool_trees/physical/a/@weight
         get //sys/pool_trees/physical/a/@name
         get //sys/pool_trees/physical/a/b/@parent_name
         get //sys/pool_trees/physical/a/b/@path
         get //sys/pools/a/@weight
         # options are visible only if they were set
         get //sys/pool_trees/physical/a/@mode
         exists //sys/pool_trees/physical/a/@mode
         set //sys/pool_trees/physical/a/@mode fifo
         set //sys/pool_trees/physical/a/@color blue
         get //sys/pool_trees/physical/a/@color
         remove //sys/pool_trees/physical/a/@weight
         exists //sys/pool_trees/physical/a/@weight
         remove //sys/pool_trees/physical/a/@weight
         remove //sys/pool_trees/physical/a
         remove //sys/pool_trees/physical/a recursive
         list //sys/pool_trees/physical
         get //sys/pool_trees/physical/a",
        expect![[r#"
            > pool create a strong.cpu=10 weight=2.0
              ok, an object
            > pool create b parent=a strong.cpu=4
              ok, an object
            > list //sys/pool_trees
              ["physical";]
            > list //sys/pool_trees/physical
              ["a";]
            > get //sys/pool_trees/physical
              {"a"={"b"={};};}
            > get //sys/pool_trees/physical/a/@weight
              2.
            > get //sys/pool_trees/physical/a/@name
              "a"
            > get //sys/pool_trees/physical/a/b/@parent_name
              "a"
            > get //sys/pool_trees/physical/a/b/@path
              "//sys/pool_trees/physical/a/b"
            > get //sys/pools/a/@weight
              2.
            # options are visible only if they were set
            > get //sys/pool_trees/physical/a/@mode
              error 500: Attribute "mode" of //sys/pool_trees/physical/a is not found
            > exists //sys/pool_trees/physical/a/@mode
              %false
            > set //sys/pool_trees/physical/a/@mode fifo
              error 1: Pool cannot have subpools since it is in FIFO mode: pool "a"
            > set //sys/pool_trees/physical/a/@color blue
              ok
            > get //sys/pool_trees/physical/a/@color
              "blue"
            > remove //sys/pool_trees/physical/a/@weight
              ok
            > exists //sys/pool_trees/physical/a/@weight
              %false
            > remove //sys/pool_trees/physical/a/@weight
              error 500: Attribute "weight" of //sys/pool_trees/physical/a is not found
            > remove //sys/pool_trees/physical/a
              error 1: Cannot remove //sys/pool_trees/physical/a: it has 1 subpools, use "recursive" to remove them too
            > remove //sys/pool_trees/physical/a recursive
              ok
            > list //sys/pool_trees/physical
              []
            > get //sys/pool_trees/physical/a
              error 500: Node //sys/pool_trees/physical has no child with key "a"
        "#]],
    );
}

#[test]
fn nested_sets_and_hyphens() {
    check(
        "pool create a
         set //sys/pool_trees/physical/a/@integral_guarantees/guarantee_type relaxed
         set //sys/pool_trees/physical/a/@integral-guarantees/resource-flow {cpu=3.0}
         get //sys/pool_trees/physical/a/@integral-guarantees
         get //sys/pool_trees/physical/a/@integral_guarantees/resource_flow/cpu
         set //sys/pool_trees/physical/a/@strong_guarantee_resources/cpu 2
         get //sys/pool_trees/physical/a/@strong_guarantee_resources
         multiset //sys/pool_trees/physical/a {weight=3.0;max-running-operation-count=5}
         get //sys/pool_trees/physical/a/@max_running_operation_count
         # all or none
         multiset //sys/pool_trees/physical/a {weight=4.0;max-running-operation-count=-5}
         get //sys/pool_trees/physical/a/@weight
         set //sys/pool_trees/physical/@config/max_operation_count 77
         get //sys/pool_trees/physical/@config
         set //sys/pool_trees/physical/@max_operation_count 77
         set //sys/pool_trees/@default_tree moon
         crash
         restart
         get //sys/pool_trees/physical/a/@integral_guarantees
         get //sys/pool_trees/physical/@config",
        expect![[r#"
            > pool create a
              ok, an object
            > set //sys/pool_trees/physical/a/@integral_guarantees/guarantee_type relaxed
              ok
            > set //sys/pool_trees/physical/a/@integral-guarantees/resource-flow {cpu=3.0}
              ok
            > get //sys/pool_trees/physical/a/@integral-guarantees
              {"guarantee_type"="relaxed";"resource_flow"={"cpu"=3.;};}
            > get //sys/pool_trees/physical/a/@integral_guarantees/resource_flow/cpu
              3.
            > set //sys/pool_trees/physical/a/@strong_guarantee_resources/cpu 2
              ok
            > get //sys/pool_trees/physical/a/@strong_guarantee_resources
              {"cpu"=2.;}
            > multiset //sys/pool_trees/physical/a {weight=3.0;max-running-operation-count=5}
              ok
            > get //sys/pool_trees/physical/a/@max_running_operation_count
              5
            # all or none
            > multiset //sys/pool_trees/physical/a {weight=4.0;max-running-operation-count=-5}
              error 1: Bad value of the pool option "max_running_operation_count": expected an integer in 0..=2147483647, found int64 -5
            > get //sys/pool_trees/physical/a/@weight
              3.
            > set //sys/pool_trees/physical/@config/max_operation_count 77
              ok
            > get //sys/pool_trees/physical/@config
              {"max_operation_count"=77;}
            > set //sys/pool_trees/physical/@max_operation_count 77
              error 1: Attribute "max_operation_count" of pool tree "physical" cannot be set: its options are in @config
            > set //sys/pool_trees/@default_tree moon
              error 500: Node //sys/pool_trees has no child with key "moon"
            > crash
            > restart
            > get //sys/pool_trees/physical/a/@integral_guarantees
              {"guarantee_type"="relaxed";"resource_flow"={"cpu"=3.;};}
            > get //sys/pool_trees/physical/@config
              {"max_operation_count"=77;}
        "#]],
    );
}

#[test]
fn move_and_rename() {
    check(
        "node n1 cpu=2
         pool create a
         pool create b
         pool create c parent=a
         op start c jobs=1 as o1
         move //sys/pool_trees/physical/a/c //sys/pool_trees/physical/b/d
         get //sys/pool_trees/physical
         tick 1s
         show pools
         op get o1 runtime_parameters
         set //sys/pool_trees/physical/b/d/@parent_name a
         set //sys/pool_trees/physical/a/d/@name e
         get //sys/pool_trees/physical
         # into itself, onto another, out of the tree
         move //sys/pool_trees/physical/a //sys/pool_trees/physical/a/e/a
         move //sys/pool_trees/physical/a //sys/pool_trees/physical/b
         move //sys/pool_trees/physical/a //tmp/a
         crash
         restart
         get //sys/pool_trees/physical
         finish o1/0
         connect n1
         show ops",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create a
              ok, an object
            > pool create b
              ok, an object
            > pool create c parent=a
              ok, an object
            > op start c jobs=1 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0
            > move //sys/pool_trees/physical/a/c //sys/pool_trees/physical/b/d
              ok, an object
            > get //sys/pool_trees/physical
              {"a"={};"b"={"d"={};};}
            > tick 1s
            > show pools
              <Root> operations=1 running=1 cpu=1 share=0.50
              a operations=0 running=0 cpu=0 share=0.00
              b operations=0 running=0 cpu=0 share=0.00
              c operations=1 running=1 cpu=1 share=0.50
              d operations=0 running=0 cpu=0 share=0.00
            > op get o1 runtime_parameters
              {"runtime_parameters"={"acl"=[{"action"="allow";"subjects"=["ann";];"permissions"=["read";"manage";];};];"owners"=[];"annotations"={};"scheduling_options_per_pool_tree"={"physical"={"pool"="c";"resource_limits"={};"tentative"=%false;"probing"=%false;"offloading"=%false;};};"erased_trees"=[];"options_per_job_shell"={};};}
            > set //sys/pool_trees/physical/b/d/@parent_name a
              ok
            > set //sys/pool_trees/physical/a/d/@name e
              ok
            > get //sys/pool_trees/physical
              {"a"={"e"={};};"b"={};}
            # into itself, onto another, out of the tree
            > move //sys/pool_trees/physical/a //sys/pool_trees/physical/a/e/a
              error 1: Pool "a" cannot be moved to "e": that is the pool itself or inside of it
            > move //sys/pool_trees/physical/a //sys/pool_trees/physical/b
              error 501: Node //sys/pool_trees/physical/b already exists
            > move //sys/pool_trees/physical/a //tmp/a
              error 1: Cannot move //sys/pool_trees/physical/a: it is not an ordinary node
            > crash
            > restart
            > get //sys/pool_trees/physical
              {"a"={"e"={};};"b"={};}
            > finish o1/0
            > connect n1
              n1 <- welcome
              n1 <- release o1/0#0
            > show ops
              o1 completed total=1 running=0 completed=1 pending=0 failed=0 aborted=0
        "#]],
    );
}

#[test]
fn a_pool_goes_and_its_operations_stay() {
    check(
        "node n1 cpu=2
         pool create a
         op start a jobs=2 as o1
         remove //sys/pool_trees/physical/a
         tick 1s
         show pools
         show ops
         finish o1/0
         finish o1/1
         show ops
         tick 1s
         show pools",
        expect![[r#"
            > node n1 cpu=2
              n1 <- welcome
            > pool create a
              ok, an object
            > op start a jobs=2 as o1
              {"operation_id"="o1";}
              n1 <- start o1/0#0 o1/1#1
            > remove //sys/pool_trees/physical/a
              ok
            > tick 1s
            > show pools
              <Root> operations=1 running=1 cpu=2 share=1.00
              a operations=1 running=1 cpu=2 share=1.00
            > show ops
              o1 running total=2 running=2 completed=0 pending=0 failed=0 aborted=0
            > finish o1/0
              n1 <- release o1/0#0
            > finish o1/1
              n1 <- release o1/1#1
            > show ops
              o1 completed total=2 running=0 completed=2 pending=0 failed=0 aborted=0
            > tick 1s
            > show pools
              <Root> operations=0 running=0 cpu=0 share=0.00
        "#]],
    );
}

/// An operation of two trees, and one that keeps the better of them (scheduling.md 2.5).
#[test]
fn one_tree_of_several() {
    check(
        "set //sys/pool_trees/physical/@config/nodes_filter small
         tree create other big
         node small cpu=2
         node big cpu=8
         op start p jobs=4 pool_trees=[physical;other] as both
         op start p jobs=4 pool_trees=[physical;other] schedule_in_single_tree=%true as one
         op get one runtime_parameters
         show jobs
         show nodes
         crash
         restart
         connect small
         connect big
         get //sys/scheduler/orchid/scheduler/operations/one/runtime_parameters/erased_trees
         show ops",
        expect![[r#"
            > set //sys/pool_trees/physical/@config/nodes_filter small
              ok
            > tree create other big
              ok, an object
            > node small cpu=2
              small <- welcome
            > node big cpu=8
              big <- welcome
            > op start p jobs=4 pool_trees=[physical;other] as both
              {"operation_id"="both";}
              small <- start both/0#0 both/1#1
              big <- start both/2#2 both/3#3
            > op start p jobs=4 pool_trees=[physical;other] schedule_in_single_tree=%true as one
              {"operation_id"="one";}
              big <- start one/0#0 one/1#1 one/2#2 one/3#3
            > op get one runtime_parameters
              {"runtime_parameters"={"acl"=[{"action"="allow";"subjects"=["ann";];"permissions"=["read";"manage";];};];"owners"=[];"annotations"={};"scheduling_options_per_pool_tree"={"other"={"pool"="p";"resource_limits"={};"tentative"=%false;"probing"=%false;"offloading"=%false;};};"erased_trees"=["physical";];"options_per_job_shell"={};};}
            > show jobs
            > show nodes
              big online both/2#2 both/3#3 one/0#0 one/1#1 one/2#2 one/3#3
              small online both/0#0 both/1#1
            > crash
            > restart
            > connect small
              small <- welcome
            > connect big
              big <- welcome
            > get //sys/scheduler/orchid/scheduler/operations/one/runtime_parameters/erased_trees
              ["physical";]
            > show ops
              both running total=4 running=4 completed=0 pending=0 failed=0 aborted=0
              one running total=4 running=4 completed=0 pending=0 failed=0 aborted=0
        "#]],
    );
}
