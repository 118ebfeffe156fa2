//! Options of pools: spellings, ranges, what is refused and what is said about it (scheduling.md 18.3).

use crate::console::check;
use expect_test::expect;

#[test]
fn what_is_refused_leaves_everything_as_it_was() {
    check(
        "pool create a strong.cpu=10
         pool create b parent=a strong.cpu=6
         pool create c parent=a strong.cpu=6
         exists //sys/pool_trees/physical/a/c
         set //sys/pool_trees/physical/a/@strong_guarantee_resources/cpu 5
         get //sys/pool_trees/physical/a/@strong_guarantee_resources/cpu
         set //sys/pool_trees/physical/a/@weight -1
         set //sys/pool_trees/physical/a/@weight heavy
         set //sys/pool_trees/physical/a/@mode lifo
         set //sys/pool_trees/physical/a/@mode fifo
         set //sys/pool_trees/physical/a/@id 1-2-3-4
         pool create b
         pool create x parent=nowhere
         pool create <Root>
         pool create bad$name
         pool create x max_ops=1 max_running=2
         get //sys/pool_trees/physical",
        expect![[r#"
            > pool create a strong.cpu=10
              ok, an object
            > pool create b parent=a strong.cpu=6
              ok, an object
            > pool create c parent=a strong.cpu=6
              error 1: Strong guarantee of resource for pool "a" is less than the sum of children guarantees: "cpu" 10.0 < 12.0
            > exists //sys/pool_trees/physical/a/c
              %false
            > set //sys/pool_trees/physical/a/@strong_guarantee_resources/cpu 5
              error 1: Strong guarantee of resource for pool "a" is less than the sum of children guarantees: "cpu" 5.0 < 6.0
            > get //sys/pool_trees/physical/a/@strong_guarantee_resources/cpu
              10.
            > set //sys/pool_trees/physical/a/@weight -1
              error 1: Bad value of the pool option "weight": expected a number in 1.4901161193847656e-8..=67108864, found int64 -1
            > set //sys/pool_trees/physical/a/@weight heavy
              error 1: Bad value of the pool option "weight": expected a number in 1.4901161193847656e-8..=67108864, found string "heavy"
            > set //sys/pool_trees/physical/a/@mode lifo
              error 1: Bad value of the pool option "mode": expected one of "fair_share", "fifo", found string "lifo"
            > set //sys/pool_trees/physical/a/@mode fifo
              error 1: Pool cannot have subpools since it is in FIFO mode: pool "a"
            > set //sys/pool_trees/physical/a/@id 1-2-3-4
              error 1: Attribute "id" of //sys/pool_trees/physical/a cannot be changed: it is a system attribute
            > pool create b
              error 501: Node //sys/pool_trees/physical/a/b already exists
            > pool create x parent=nowhere
              error 500: No such pool "nowhere" in tree "physical" to be the parent of "x"
            > pool create <Root>
              error 1: Bad pool name "<Root>": expected 1 to 100 characters of letters, digits, "-", "_", ":"
            > pool create bad$name
              error 1: Bad pool name "bad$name": expected 1 to 100 characters of letters, digits, "-", "_", ":"
            > pool create x max_ops=1 max_running=2
              error 1: "max_operation_count" must be greater than or equal to "max_running_operation_count", but 1 < 2
            > get //sys/pool_trees/physical
              {"a"={"b"={};};}
        "#]],
    );
}

#[test]
fn spellings() {
    check(
        "pool create a
         # older names, and hyphens in them
         set //sys/pools/a/@min-share-resources {cpu=2}
         set //sys/pools/a/@min_share_resources/cpu 3
         get //sys/pools/a/@min_share_resources
         get //sys/pools/a/@strong-guarantee-resources/cpu
         set //sys/pools/a/@integral-guarantees {guarantee-type=burst;resource-flow={cpu=1};burst-guarantee-resources={cpu=2}}
         get //sys/pools/a/@integral-guarantees/burst-guarantee-resources/cpu
         remove //sys/pools/a/@integral-guarantees/burst-guarantee-resources
         get //sys/pools/a/@integral_guarantees
         get //sys/pool_trees/physical integral-guarantees
         multiset //sys/pools/a {integral_guarantees={};integral-guarantees={}}
         # names that are no options stay as they are
         set //sys/pools/a/@my-colour {light-blue=1}
         get //sys/pools/a/@my-colour/light-blue
         get //sys/pools/a/@my_colour
         # presets have names of their own
         set //sys/pool_trees/physical/@config/pool-config-presets {small={resource-limits={cpu=1}}}
         set //sys/pool_trees/physical/@config/pool-config-presets/small/resource-limits/cpu 2
         get //sys/pool_trees/physical/@config/pool-config-presets
         # what moves a pool is set by itself; the access list is not an option
         multiset //sys/pools/a {parent_name=b;weight=2.0}
         multiset //sys/pools/a {inherit_acl=yes;weight=2.0}
         exists //sys/pools/a/@weight
         multiset //sys/pools/a {inherit_acl=%false;weight=2.0}
         get //sys/pools/a/@inherit_acl
         get //sys/pools/a/@weight",
        expect![[r#"
            > pool create a
              ok, an object
            # older names, and hyphens in them
            > set //sys/pools/a/@min-share-resources {cpu=2}
              ok
            > set //sys/pools/a/@min_share_resources/cpu 3
              ok
            > get //sys/pools/a/@min_share_resources
              {"cpu"=3.;}
            > get //sys/pools/a/@strong-guarantee-resources/cpu
              3.
            > set //sys/pools/a/@integral-guarantees {guarantee-type=burst;resource-flow={cpu=1};burst-guarantee-resources={cpu=2}}
              ok
            > get //sys/pools/a/@integral-guarantees/burst-guarantee-resources/cpu
              2.
            > remove //sys/pools/a/@integral-guarantees/burst-guarantee-resources
              ok
            > get //sys/pools/a/@integral_guarantees
              {"guarantee_type"="burst";"resource_flow"={"cpu"=1.;};}
            > get //sys/pool_trees/physical integral-guarantees
              {"a"=<"integral_guarantees"={"guarantee_type"="burst";"resource_flow"={"cpu"=1.;};};>{};}
            > multiset //sys/pools/a {integral_guarantees={};integral-guarantees={}}
              error 1: The pool option "integral_guarantees" is given twice: also as "integral-guarantees"
            # names that are no options stay as they are
            > set //sys/pools/a/@my-colour {light-blue=1}
              ok
            > get //sys/pools/a/@my-colour/light-blue
              1
            > get //sys/pools/a/@my_colour
              error 500: Attribute "my_colour" of //sys/pool_trees/physical/a is not found
            # presets have names of their own
            > set //sys/pool_trees/physical/@config/pool-config-presets {small={resource-limits={cpu=1}}}
              ok
            > set //sys/pool_trees/physical/@config/pool-config-presets/small/resource-limits/cpu 2
              ok
            > get //sys/pool_trees/physical/@config/pool-config-presets
              {"small"={"resource_limits"={"cpu"=2;};};}
            # what moves a pool is set by itself; the access list is not an option
            > multiset //sys/pools/a {parent_name=b;weight=2.0}
              error 1: Attribute "parent_name" of a pool is set by itself: it moves the pool
            > multiset //sys/pools/a {inherit_acl=yes;weight=2.0}
              error 1: Attribute "inherit_acl": expected boolean, found string
            > exists //sys/pools/a/@weight
              %false
            > multiset //sys/pools/a {inherit_acl=%false;weight=2.0}
              ok
            > get //sys/pools/a/@inherit_acl
              %false
            > get //sys/pools/a/@weight
              2.
        "#]],
    );
}

#[test]
fn numbers_at_the_edge() {
    // Sums of what is legal do not overflow, with and without nodes.
    check(
        "pool create a strong.cpu=1000000000000000 integral_guarantees={guarantee_type=burst;resource_flow={cpu=1000000000000000};burst_guarantee_resources={cpu=1000000000000000}}
         pool create b strong_guarantee_resources={cpu=1000000000000000;memory=2305843009213693951;user_slots=2305843009213693951}
         pool create c strong_guarantee_resources={cpu=1000000000000000;memory=2305843009213693951;user_slots=2305843009213693951}
         pool create d strong_guarantee_resources={cpu=1000000000000000;memory=2305843009213693951;user_slots=2305843009213693951}
         pool create e strong_guarantee_resources={cpu=1000000000000000;memory=2305843009213693951;user_slots=2305843009213693951}
         pool create f strong_guarantee_resources={cpu=1000000000000000;memory=2305843009213693951;user_slots=2305843009213693951}
         pool create g resource_limits={cpu=0;memory=0} max_share_ratio=0.0
         pool create x strong_guarantee_resources={cpu=0;memory=2305843009213693952}
         tick 1s
         node n1 cpu=4
         op start g jobs=2 as o1
         tick 2s
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/a/detailed_dominant_fair_share
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_explanations/g/outcome
         show ops
         disconnect n1
         tick 2m
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_explanations/g/outcome",
        expect![[r#"
            > pool create a strong.cpu=1000000000000000 integral_guarantees={guarantee_type=burst;resource_flow={cpu=1000000000000000};burst_guarantee_resources={cpu=1000000000000000}}
              ok, an object
            > pool create b strong_guarantee_resources={cpu=1000000000000000;memory=2305843009213693951;user_slots=2305843009213693951}
              ok, an object
            > pool create c strong_guarantee_resources={cpu=1000000000000000;memory=2305843009213693951;user_slots=2305843009213693951}
              ok, an object
            > pool create d strong_guarantee_resources={cpu=1000000000000000;memory=2305843009213693951;user_slots=2305843009213693951}
              ok, an object
            > pool create e strong_guarantee_resources={cpu=1000000000000000;memory=2305843009213693951;user_slots=2305843009213693951}
              ok, an object
            > pool create f strong_guarantee_resources={cpu=1000000000000000;memory=2305843009213693951;user_slots=2305843009213693951}
              ok, an object
            > pool create g resource_limits={cpu=0;memory=0} max_share_ratio=0.0
              ok, an object
            > pool create x strong_guarantee_resources={cpu=0;memory=2305843009213693952}
              error 1: Bad value of the pool option "strong_guarantee_resources/memory": expected an integer in 0..=2305843009213693951, found int64 2305843009213693952
            > tick 1s
            > node n1 cpu=4
              n1 <- welcome
            > op start g jobs=2 as o1
              {"operation_id"="o1";}
            > tick 2s
            > get //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/a/detailed_dominant_fair_share
              {"strong_guarantee"=0.;"integral_guarantee"=0.;"weight_proportional"=0.;"total"=0.;}
            > get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_explanations/g/outcome
              {"reason"="own_limit";"limit"={"resource"="cpu";"amount"=0.;"share"=0.;"source"="resource_limits";};}
            > show ops
              o1 running total=2 running=0 completed=0 pending=2 failed=0 aborted=0
            > disconnect n1
            > tick 2m
            > get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_explanations/g/outcome
              {"reason"="no_nodes";}
        "#]],
    );
}

#[test]
fn refusals_name_pool_resource_sum_and_bound() {
    check(
        "pool create a strong.cpu=10 integral_guarantees={resource_flow={cpu=4};burst_guarantee_resources={cpu=6}}
         pool create b parent=a strong.cpu=6 integral_guarantees={guarantee_type=burst;resource_flow={cpu=3};burst_guarantee_resources={cpu=5}}
         pool create c parent=a integral_guarantees={resource_flow={cpu=2}}
         pool create c parent=a integral_guarantees={resource_flow={cpu=1};burst_guarantee_resources={cpu=2}}
         pool create c parent=a integral_guarantees={resource_flow={gpu=1}}
         pool create c parent=b integral_guarantees={resource_flow={cpu=1}}
         pool create c parent=b integral_guarantees={guarantee_type=relaxed}
         set //sys/pools/a/@integral_guarantees/guarantee_type relaxed
         set //sys/pools/a/b/@integral_guarantees/guarantee_type relaxed
         set //sys/pools/a/@strong_guarantee_resources/cpu 5
         pool create d strong_guarantee_resources={gpu=1}
         pool create d mode=fifo create_ephemeral_subpools=%true
         pool create d fifo_sort_parameters=[]
         pool create d config_preset=x config_presets=[x]
         pool create d weight=%nan
         pool create d integral_guarantees={flow={cpu=1}}
         get //sys/pool_trees/physical",
        expect![[r#"
            > pool create a strong.cpu=10 integral_guarantees={resource_flow={cpu=4};burst_guarantee_resources={cpu=6}}
              ok, an object
            > pool create b parent=a strong.cpu=6 integral_guarantees={guarantee_type=burst;resource_flow={cpu=3};burst_guarantee_resources={cpu=5}}
              ok, an object
            > pool create c parent=a integral_guarantees={resource_flow={cpu=2}}
              error 1: Resource flow of resource for pool "a" is less than the sum of children guarantees: "cpu" 4.0 < 5.0
            > pool create c parent=a integral_guarantees={resource_flow={cpu=1};burst_guarantee_resources={cpu=2}}
              error 1: Burst guarantee of resource for pool "a" is less than the sum of children guarantees: "cpu" 6.0 < 7.0
            > pool create c parent=a integral_guarantees={resource_flow={gpu=1}}
              error 1: Resource flow is explicitly configured at child pool "c" but is not configured at parent "a": resource "gpu"
            > pool create c parent=b integral_guarantees={resource_flow={cpu=1}}
              error 1: Integral pool "b" cannot have children with integral resources: pool "c" has them
            > pool create c parent=b integral_guarantees={guarantee_type=relaxed}
              error 1: Integral pool "b" cannot have integral pool "c" inside
            > set //sys/pools/a/@integral_guarantees/guarantee_type relaxed
              error 1: Burst guarantees cannot be specified for integral guarantee type "relaxed"
            > set //sys/pools/a/b/@integral_guarantees/guarantee_type relaxed
              error 1: Burst guarantees cannot be specified for integral guarantee type "relaxed"
            > set //sys/pools/a/@strong_guarantee_resources/cpu 5
              error 1: Strong guarantee of resource for pool "a" is less than the sum of children guarantees: "cpu" 5.0 < 6.0
            > pool create d strong_guarantee_resources={gpu=1}
              error 1: Main resource guarantee must be specified in order to set guarantees for any other resource: pool "d" has no guarantee of "cpu"
            > pool create d mode=fifo create_ephemeral_subpools=%true
              error 1: Fifo pool cannot create ephemeral subpools
            > pool create d fifo_sort_parameters=[]
              error 1: Bad value of the pool option "fifo_sort_parameters": expected a non-empty list of "weight", "start_time", "pending_job_count", found list []
            > pool create d config_preset=x config_presets=[x]
              error 1: "config_preset" ("x") and "config_presets" cannot be specified together
            > pool create d weight=%nan
              error 1: Bad value of the pool option "weight": expected a number in 1.4901161193847656e-8..=67108864, found double NaN
            > pool create d integral_guarantees={flow={cpu=1}}
              error 1: Unknown pool option "integral_guarantees/flow"
            > get //sys/pool_trees/physical
              {"a"={"b"={};};}
        "#]],
    );
}

/// Mistakes that are not refused, since they hurt only later, and one that is.
#[test]
fn what_administrators_are_told() {
    check(
        "pool create queue mode=fifo
         set //sys/pool_trees/physical/@config/default_parent_pool queue
         get //sys/scheduler/@alerts
         op start nowhere jobs=1 as o
         remove //sys/pool_trees/physical
         remove //sys/pool_trees
         set //sys/pool_trees/physical/queue/@resource_limits {cpu=1e300}
         op start queue jobs=1 resource_limits={cpu=1e300} as p
         op start queue jobs=1 as q
         op update q {resource_limits={cpu=1e300}}",
        expect![[r#"
            > pool create queue mode=fifo
              ok, an object
            > set //sys/pool_trees/physical/@config/default_parent_pool queue
              ok
            > get //sys/scheduler/@alerts
              [{"code"=1;"message"="Default parent pool \"queue\" of tree \"physical\" is in FIFO mode and can have no pools: operations that need a new pool there are refused";"attributes"={"pool_tree"="physical";"alert_type"="update_pools";};"inner_errors"=[];};]
            > op start nowhere jobs=1 as o
              error 1(1): Operation could not be started: Pool "nowhere" cannot be created in the default parent pool "queue", which is in FIFO mode
            > remove //sys/pool_trees/physical
              error 1: //sys/pool_trees/physical cannot be removed: a pool tree cannot be removed: operations, nodes and volumes belong to it for good. Its pools can be removed, and a "nodes_filter" that no node satisfies takes its nodes away
            > remove //sys/pool_trees
              error 1: //sys/pool_trees cannot be removed: it holds the pool trees of the cluster
            > set //sys/pool_trees/physical/queue/@resource_limits {cpu=1e300}
              error 1: Bad value of the pool option "resource_limits/cpu": expected a number in 0..=1e15, found double 1e300
            > op start queue jobs=1 resource_limits={cpu=1e300} as p
              error 1(1): Error parsing operation spec: Invalid value of spec option /resource_limits: cpu: expected number in 0..=1e12, found double 1e300
            > op start queue jobs=1 as q
              {"operation_id"="q";}
            > op update q {resource_limits={cpu=1e300}}
              error 1: Parameter /resource_limits/cpu: expected a number in 0..=1e12, found double 1e300
        "#]],
    );
}
