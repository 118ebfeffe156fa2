//! What the event stream is made of: topics change when, and only when, there is something new to see.

use crate::console::Console;
use expect_test::expect;
use kernel::{Topic, Versions};

/// Topics that a script changes.
fn changed(console: &mut Console, script: &str) -> String {
    let before: Versions = console.world.versions;
    console.run(script);
    let names: Vec<&str> = console.world.versions.changed_since(&before).iter().map(|t| t.name()).collect();
    names.join(" ")
}

#[test]
fn topics_change_with_what_they_show() {
    let mut console = Console::new();
    console.run("node n1 cpu=2\npool create p\ntick 2s");
    assert_eq!(changed(&mut console, "pool create q weight=2.0"), "pools");
    assert_eq!(changed(&mut console, "set //sys/pool_trees/physical/q/@weight 3.0\ntick 600ms"), "pools");
    assert_eq!(changed(&mut console, "remove //sys/pool_trees/physical/q"), "pools");
    assert_eq!(changed(&mut console, "op start p jobs=3 as o1\ntick 600ms"), "pools operations nodes");
    assert_eq!(changed(&mut console, "set //tmp/@x 1"), "");
    assert_eq!(changed(&mut console, "finish o1/0"), "operations nodes");
    console.run("finish o1/1\nfinish o1/2\ntick 5s");
    // Heartbeats come, updates are made, and there is nothing to look at but nodes.
    assert_eq!(changed(&mut console, "tick 20s"), "nodes");
    console.run("disconnect n1\ntick 2s");
    assert_eq!(changed(&mut console, "tick 5s"), "");
    let config = "set //sys/pool_trees/physical/@config/default_parent_pool nowhere\ntick 2s";
    assert!(changed(&mut console, config).contains("alerts"));
}

#[test]
fn names_are_those_of_the_stream() {
    assert_eq!(Topic::ALL.map(Topic::name), ["pools", "operations", "nodes", "preemptions", "alerts"]);
}

#[test]
fn who_holds_what() {
    let mut console = Console::new();
    console.run(
        "node n1 cpu=2
         node n2 cpu=1
         pool create p strong.cpu=2
         op start p jobs=3 as o1
         tick 1s
         list //sys/scheduler/orchid/scheduler/pool_trees/physical/allocations
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/allocations/n1/0/group
         get //sys/scheduler/orchid/scheduler/nodes/n2/allocations
         get //sys/scheduler/orchid/scheduler/nodes/n3/allocations
         finish o1/2
         get //sys/scheduler/orchid/scheduler/nodes/n2/allocations",
    );
    expect![[r#"
        > node n1 cpu=2
          n1 <- welcome
        > node n2 cpu=1
          n2 <- welcome
        > pool create p strong.cpu=2
          ok, an object
        > op start p jobs=3 as o1
          {"operation_id"="o1";}
          n1 <- start o1/0#0 o1/1#1
          n2 <- start o1/2#2
        > tick 1s
        > list //sys/scheduler/orchid/scheduler/pool_trees/physical/allocations
          ["n1";"n2";]
        > get //sys/scheduler/orchid/scheduler/pool_trees/physical/allocations/n1/0/group
          "aggressively_preemptible"
        > get //sys/scheduler/orchid/scheduler/nodes/n2/allocations
          [{"id"="place of o1/2#2";"job_id"="o1/2#2";"operation_id"="o1";"task_name"="t";"pool"="p";"pool_tree"="physical";"state"="running";"resources"={"user_slots"=1;"cpu"=1.;"gpu"=0;"memory"=402653184;"user_memory"=402653184;"network"=0;};"group"="aggressively_preemptible";"start_time"="1970-01-12T13:46:40.015000Z";"age"=1000;"preempting"=%false;};]
        > get //sys/scheduler/orchid/scheduler/nodes/n3/allocations
          error 500: Node //sys/scheduler/orchid/scheduler/nodes has no child with key "n3"
        > finish o1/2
          n2 <- release o1/2#2
        > get //sys/scheduler/orchid/scheduler/nodes/n2/allocations
          []
    "#]].assert_eq(console.transcript());
}

#[test]
fn counts_of_what_is_no_node() {
    let mut console = Console::new();
    console.run(
        "node n1 cpu=2
         pool create p
         pool create q parent=p
         op start q as o1
         get //sys/pool_trees/@count
         get //sys/pool_trees/physical/@count
         get //sys/pool_trees/physical/p/@count
         get //sys/cluster_nodes/@count
         get //sys/operations/@count
         get //sys/users/@count",
    );
    expect![[r#"
        > node n1 cpu=2
          n1 <- welcome
        > pool create p
          ok, an object
        > pool create q parent=p
          ok, an object
        > op start q as o1
          {"operation_id"="o1";}
          n1 <- start o1/0#0
        > get //sys/pool_trees/@count
          1
        > get //sys/pool_trees/physical/@count
          1
        > get //sys/pool_trees/physical/p/@count
          1
        > get //sys/cluster_nodes/@count
          1
        > get //sys/operations/@count
          256
        > get //sys/users/@count
          2
    "#]]
    .assert_eq(console.transcript());
}
