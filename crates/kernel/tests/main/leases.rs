//! Exclusive work on nodes that are not heard (S19).

use crate::console::Console;
use kernel::{Body, Command, OperationRef};
use vocab::{Failure, Span};
use yson::Value;

/// A lease of five minutes and its margin.
const LEASE: &str = "362s";

fn console(script: &str) -> Console {
    let mut c = Console::new();
    c.run(script);
    assert!(!c.transcript().contains("VIOLATED"), "{}", c.transcript());
    c
}

/// What the commands of a script say.
fn said(c: &mut Console, script: &str) -> String {
    c.forget_transcript();
    c.run(script);
    assert!(!c.transcript().contains("VIOLATED"), "{}", c.transcript());
    c.transcript().to_owned()
}

/// `running=2 pending=0 aborted=1` of an operation.
fn counts(c: &mut Console, operation: &str) -> String {
    let ops = said(c, "show ops");
    let line = ops.lines().find(|line| line.trim().starts_with(operation)).unwrap_or_default().to_owned();
    let wanted = ["running=", "pending=", "aborted="];
    let words = line.split_whitespace().filter(|word| wanted.iter().any(|name| word.starts_with(name)));
    words.collect::<Vec<_>>().join(" ")
}

fn ask(c: &mut Console, command: Command) -> Result<Value, Failure> {
    match c.world.ask("root", command).expect("an answer")? {
        Body::Value(value) => Ok(value),
        other => panic!("{other:?}"),
    }
}

fn explain(c: &mut Console, operation: &str) -> String {
    let operation = OperationRef::Id(c.operation_id(operation));
    let told = ask(c, Command::ExplainOperation { operation }).expect("told");
    let text = told.get("text").and_then(Value::as_list).unwrap_or_default();
    text.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

fn alerts(c: &mut Console) -> Vec<String> {
    let path = yson::ypath::YPath::parse(b"//sys/scheduler/@alerts").expect("a path");
    let alerts = ask(c, Command::Get { path, attributes: Vec::new(), max_size: None, fields: None });
    let alerts = alerts.expect("a list");
    let of = |alert: &Value| {
        alert
            .get("attributes")
            .and_then(|a| a.get("alert_type")?.as_str().map(str::to_owned))
            .unwrap_or_default()
    };
    alerts.as_list().unwrap_or_default().iter().map(of).collect()
}

const CUT_OFF: &str = "node n1 cpu=1
    node n2 cpu=1
    pool create p
    op start p jobs=2 as exclusive
    node n3 cpu=2
    disconnect n1
    tick 65s";

/// S19: the job may run on n1 for as long as its lease is not over.
#[test]
fn a_unit_of_a_lost_node_waits_for_the_end_of_the_lease() {
    let mut c = console(CUT_OFF);
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=0");
    let told = explain(&mut c, "exclusive");
    assert!(told.contains("waits for the end of the lease of job") && told.contains("on node n1"), "{told}");
    assert!(told.contains("until 1970-"), "the time: {told}");
    assert_eq!(alerts(&mut c), ["exclusive_work_waits"]);
    said(&mut c, "tick 290s");
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=0");
    said(&mut c, "tick 15s");
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=1");
    assert!(said(&mut c, "show nodes").contains("n3 online exclusive/"));
    assert!(alerts(&mut c).is_empty() && !explain(&mut c, "exclusive").contains("lease"));
    assert!(!said(&mut c, "list //sys/cluster_nodes").contains("n1"), "it is forgotten");
}

/// S19.
#[test]
fn work_that_may_run_twice_is_given_away_when_the_node_is_lost() {
    let mut c = console(
        "node n1 cpu=1
         pool create p
         op start p jobs=1 allow_concurrent_attempts=%true as o1
         node n2 cpu=1
         disconnect n1
         tick 65s",
    );
    assert_eq!(counts(&mut c, "o1"), "running=1 pending=0 aborted=1");
}

/// S19: also its books are as they were.
#[test]
fn a_node_that_is_back_before_the_end_of_the_lease_goes_on_with_its_job() {
    let mut c = console(CUT_OFF);
    said(&mut c, "tick 200s\n connect n1\n tick 10s");
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=0");
    let booked = c.world.kernel().scheduler().node("n1").expect("known").allocation_count;
    assert_eq!(booked, 1);
    assert!(alerts(&mut c).is_empty());
    said(&mut c, &format!("tick {LEASE}\n tick {LEASE}"));
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=0");
    said(&mut c, "finish exclusive/0\n finish exclusive/1");
    assert!(
        said(&mut c, "show ops").contains("exclusive completed") || counts(&mut c, "exclusive").is_empty()
    );
}

/// S19: the host was restarted, or the job is gone: nobody needs to wait.
#[test]
fn a_node_that_is_back_without_the_job_frees_the_unit_at_once() {
    let mut c = console(CUT_OFF);
    said(&mut c, "reboot n1");
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=1");
}

/// S19.
#[test]
fn an_administrator_says_that_a_node_is_lost() {
    let mut c = console(CUT_OFF);
    let remove = |lost| Command::RemoveNode { address: "n1".to_owned(), lost };
    let refused = ask(&mut c, remove(false)).expect_err("it may still run the job");
    assert!(refused.message.contains("waits for the end of its lease"), "{refused}");
    assert!(refused.find_attribute("until").is_some());
    let connected = Command::RemoveNode { address: "n2".to_owned(), lost: true };
    assert!(ask(&mut c, connected).expect_err("it is there").message.contains("is connected"));
    let unknown = Command::RemoveNode { address: "n9".to_owned(), lost: true };
    assert!(ask(&mut c, unknown).is_err());
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=0");
    let done = ask(&mut c, remove(true)).expect("removed");
    assert_eq!(done.get("unit_count").and_then(Value::as_u64), Some(1));
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=1");
    assert!(!said(&mut c, "list //sys/cluster_nodes").contains("n1"));
    // A node that holds nothing needs no force.
    said(&mut c, "node n4 cpu=1\n disconnect n4");
    ask(&mut c, Command::RemoveNode { address: "n4".to_owned(), lost: false }).expect("removed");
}

/// S19: the next life of the server does not know which units run where.
#[test]
fn after_a_restart_the_lease_is_counted_anew() {
    let mut c = console(
        "node n1 cpu=2
         node n2 cpu=2
         pool create p
         op start p jobs=2 as exclusive
         op start p jobs=2 allow_concurrent_attempts=%true as loose
         tick 1s
         crash
         tick 200s
         restart
         connect n2
         tick 31s",
    );
    assert!(said(&mut c, "show ops").contains("exclusive reviving_jobs"));
    assert!(said(&mut c, "show ops").contains("loose running"));
    let told = explain(&mut c, "exclusive");
    assert!(told.contains("may still run on n1") && told.contains("until 1970-"), "{told}");
    assert_eq!(alerts(&mut c), ["exclusive_work_held_back"]);
    let command = Command::RemoveNode { address: "n1".to_owned(), lost: false };
    assert!(ask(&mut c, command).is_err(), "an operation waits for it");
    said(&mut c, "tick 320s");
    assert!(said(&mut c, "show ops").contains("exclusive reviving_jobs"));
    said(&mut c, "tick 15s");
    assert!(said(&mut c, "show ops").contains("exclusive running"));
    // The life after that does not wait for a node that never came back.
    said(&mut c, "crash\n restart\n connect n2\n tick 1s");
    assert!(said(&mut c, "show ops").contains("exclusive running"));
}

/// S19.
#[test]
fn after_a_restart_an_administrator_can_end_the_wait() {
    let mut c = console(
        "node n1 cpu=2
         node n2 cpu=2
         pool create p
         op start p jobs=2 as exclusive
         tick 1s
         crash
         restart
         connect n2
         tick 31s",
    );
    assert!(said(&mut c, "show ops").contains("exclusive reviving_jobs"));
    ask(&mut c, Command::RemoveNode { address: "n1".to_owned(), lost: true }).expect("removed");
    said(&mut c, "tick 1s");
    assert!(said(&mut c, "show ops").contains("exclusive running"));
}

/// S19.
#[test]
fn a_node_that_holds_exclusive_jobs_is_expected_after_a_restart_though_it_was_lost_before() {
    let mut c = console(CUT_OFF);
    said(&mut c, "crash\n restart\n connect n2\n connect n3\n tick 60s");
    assert!(said(&mut c, "show ops").contains("exclusive reviving_jobs"));
    said(&mut c, "connect n1\n tick 1s");
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=0");
}

/// S19: before planned work.
#[test]
fn extended_leases_are_over_later_also_after_a_restart() {
    let mut c = console(CUT_OFF);
    let extend = |period| Command::ExtendLeases { period };
    ask(&mut c, extend(Span::from_secs(3600))).expect("extended");
    ask(&mut c, extend(Span::from_secs(60))).expect("a shorter one changes nothing");
    for bad in [Span::ZERO, Span::from_secs(8 * 86_400)] {
        assert!(ask(&mut c, extend(bad)).expect_err("out of range").message.starts_with("period: "));
    }
    said(&mut c, "tick 3500s");
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=0");
    said(&mut c, "crash\n restart\n connect n2\n connect n3\n tick 300s");
    assert!(said(&mut c, "show ops").contains("exclusive reviving_jobs"), "the extension has survived");
    said(&mut c, "tick 200s");
    assert!(said(&mut c, "show ops").contains("exclusive running"));
}

/// S19: a job that was given up while its node was there and took its time.
#[test]
fn a_suspended_operation_waits_for_the_deaths_of_its_jobs() {
    let mut c = console("node n1 cpu=1\n node n2 cpu=1\n pool create p\n op start p jobs=1 as o1");
    let node =
        c.world.nodes.values().find(|node| !node.running.is_empty()).expect("one runs it").name.clone();
    c.world.nodes.get_mut(&node).expect("known").slow = true;
    said(&mut c, "op suspend o1 abort\n op resume o1\n tick 30s");
    assert_eq!(counts(&mut c, "o1"), "running=0 pending=1 aborted=1");
    let told = explain(&mut c, "o1");
    assert!(told.contains("which was given up: until its node tells that the job is over"), "{told}");
    let now = c.world.now;
    for report in c.world.nodes.get_mut(&node).expect("known").reap(now) {
        c.world.say(&node, wire::NodeMessage::Jobs(vec![wire::JobEvent::Finished(Box::new(report))]));
    }
    c.world.settle();
    assert_eq!(counts(&mut c, "o1"), "running=1 pending=0 aborted=1");
}

/// S19: the node that is to kill the job is cut off.
#[test]
fn a_job_that_was_given_up_on_a_lost_node_keeps_its_unit_for_the_lease() {
    let mut c = console(CUT_OFF);
    said(&mut c, "op suspend exclusive abort\n op resume exclusive\n tick 1s");
    assert_eq!(counts(&mut c, "exclusive"), "running=1 pending=1 aborted=2");
    said(&mut c, &format!("tick {LEASE}"));
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=2");
}

/// S19: it leaves with a job that its proxy has not ended yet.
#[test]
fn a_node_that_leaves_has_ended_what_it_has_told() {
    let mut c = console("node n1 cpu=1\n pool create p\n op start p jobs=1 as o1\n node n2 cpu=1");
    c.world.say("n1", wire::NodeMessage::Leaving);
    c.world.settle();
    said(&mut c, "disconnect n1\n tick 60s");
    assert_eq!(counts(&mut c, "o1"), "running=1 pending=0 aborted=0");
    said(&mut c, &format!("tick {LEASE}"));
    assert_eq!(counts(&mut c, "o1"), "running=1 pending=0 aborted=1");
}

/// S19: the tree takes the node away; the unit is free when the node has killed the job.
#[test]
fn a_job_on_a_node_that_changes_its_tree_keeps_its_unit_until_it_is_over() {
    let mut c = console("node n1 cpu=1\n pool create p\n op start p jobs=1 as o1\n node n2 cpu=1");
    c.world.nodes.get_mut("n1").expect("known").slow = true;
    said(&mut c, "set //sys/pool_trees/physical/@config/nodes_filter n2\n tick 20s");
    assert_eq!(counts(&mut c, "o1"), "running=0 pending=1 aborted=1");
    let now = c.world.now;
    for report in c.world.nodes.get_mut("n1").expect("known").reap(now) {
        c.world.say("n1", wire::NodeMessage::Jobs(vec![wire::JobEvent::Finished(Box::new(report))]));
    }
    c.world.settle();
    said(&mut c, "tick 5s");
    assert_eq!(counts(&mut c, "o1"), "running=1 pending=0 aborted=1");
}

/// S19.
#[test]
fn a_lease_that_cannot_be_confirmed_is_refused_and_one_of_its_own_is_kept() {
    let mut c =
        console("node n1 cpu=4\n node n2 cpu=4\n pool create p\n op start p job_lease_period=14999 as short");
    assert!(
        c.transcript().contains("at least three periods of heartbeats, 15s, found 14999ms"),
        "{}",
        c.transcript()
    );
    said(&mut c, "op start p jobs=8 job_lease_period=60000 as o1\n disconnect n1");
    said(&mut c, "tick 65s");
    assert_eq!(counts(&mut c, "o1"), "running=8 pending=0 aborted=0");
    said(&mut c, "set //sys/scheduler/config/max_node_unseen_period_to_abort_allocations 600000\n tick 20s");
    assert_eq!(counts(&mut c, "o1"), "running=4 pending=4 aborted=4", "its own lease and the margin");
}

/// What n1 is told about its stamps.
fn confirmed(c: &mut Console, script: &str) -> Vec<String> {
    let said = said(c, script);
    let heard = said.lines().filter_map(|line| line.trim().strip_prefix("n1 <- heard "));
    heard.map(str::to_owned).collect()
}

/// S19: with the stamp of the node, whatever the server's clock says; nodes without exclusive jobs are not answered.
#[test]
fn heartbeats_of_nodes_with_exclusive_jobs_are_confirmed() {
    let mut c = console("node n1 cpu=2\n pool create p");
    let stamp = |c: &mut Console, second: u64| {
        c.world.nodes.get_mut("n1").expect("known").stamp = Span::from_secs(second);
    };
    stamp(&mut c, 7);
    assert_eq!(confirmed(&mut c, "disconnect n1\n connect n1"), ["7s"], "the registration");
    stamp(&mut c, 12);
    let none = confirmed(&mut c, "tick 5s\n op start p jobs=1 allow_concurrent_attempts=%true as loose");
    assert!(none.is_empty(), "{none:?}");
    let before_the_start = confirmed(&mut c, "op start p jobs=1 as exclusive");
    assert_eq!(before_the_start, ["12s"], "with the newest heartbeat");
    stamp(&mut c, 17);
    assert_eq!(confirmed(&mut c, "tick 5s"), ["17s"]);
    ask(&mut c, Command::ExtendLeases { period: Span::from_secs(600) }).expect("extended");
    assert_eq!(confirmed(&mut c, "show nodes"), ["617s, extended"], "at once");
}

/// The next agent of a node has this data directory.
fn identify(c: &mut Console, node: &str, data: &str) {
    c.world.nodes.get_mut(node).expect("known").data_id = data.to_owned();
}

/// A node with a data directory that runs one of two units, and free nodes.
fn with_data_directory() -> Console {
    let mut c = console("node n1 cpu=1\n node n2 cpu=1\n pool create p");
    identify(&mut c, "n1", "data");
    said(&mut c, "disconnect n1\n connect n1\n op start p jobs=2 as o1\n node n3 cpu=2");
    assert_eq!(counts(&mut c, "o1"), "running=2 pending=0 aborted=0");
    c
}

/// S19: another agent with the node's name, on the same host or on a new one, knows nothing of jobs that may live without an
/// agent or on the old host.
#[test]
fn an_agent_with_another_data_directory_does_not_free_units() {
    let mut c = with_data_directory();
    identify(&mut c, "n1", "other data");
    said(&mut c, "reboot n1\n tick 60s");
    assert_eq!(counts(&mut c, "o1"), "running=1 pending=1 aborted=1");
    said(&mut c, "disconnect n1\n connect n1\n reboot n1\n tick 60s");
    assert_eq!(counts(&mut c, "o1"), "running=1 pending=1 aborted=1", "it is not believed the second time");
    said(&mut c, &format!("tick {LEASE}"));
    assert_eq!(counts(&mut c, "o1"), "running=2 pending=0 aborted=1");
    // From then on it is a node like others.
    let on_n1 = c.world.nodes["n1"].running.len();
    said(&mut c, "reboot n1\n tick 6s");
    assert_eq!(counts(&mut c, "o1"), format!("running=2 pending=0 aborted={}", 1 + on_n1));
}

/// S19: the life before had fences that this one does not know.
#[test]
fn an_agent_with_another_data_directory_does_not_free_units_after_a_restart_of_the_server() {
    let mut c = with_data_directory();
    identify(&mut c, "n1", "other data");
    said(&mut c, "reboot n1\n tick 60s\n crash\n restart\n connect n1\n connect n2\n connect n3\n tick 60s");
    assert!(said(&mut c, "show ops").contains("o1 reviving_jobs"));
    said(&mut c, "disconnect n1\n connect n1\n tick 60s");
    assert!(said(&mut c, "show ops").contains("o1 reviving_jobs"), "it is not believed the second time");
    said(&mut c, &format!("tick {LEASE}"));
    assert!(said(&mut c, "show ops").contains("o1 running"));
}

/// S19: the agent is another one since the life before.
#[test]
fn an_agent_with_another_data_directory_does_not_end_the_wait_after_a_restart() {
    let mut c = with_data_directory();
    said(&mut c, "crash");
    identify(&mut c, "n1", "other data");
    c.world.nodes.get_mut("n1").expect("known").running.clear();
    said(&mut c, "restart\n connect n2\n connect n3\n connect n1\n tick 40s");
    assert!(said(&mut c, "show ops").contains("o1 reviving_jobs"));
    said(&mut c, "disconnect n1\n connect n1\n tick 40s");
    assert!(said(&mut c, "show ops").contains("o1 reviving_jobs"), "it is not believed the second time");
    // It is lost meanwhile, and the server restarts again.
    said(
        &mut c,
        "disconnect n1\n tick 70s\n crash\n restart\n connect n1\n connect n2\n connect n3\n tick 40s",
    );
    assert!(said(&mut c, "show ops").contains("o1 reviving_jobs"), "nor by the next life");
    said(&mut c, &format!("tick {LEASE}"));
    assert!(said(&mut c, "show ops").contains("o1 running"));
    assert_eq!(counts(&mut c, "o1"), "running=2 pending=0 aborted=1");
}

/// S19: in the first seconds of a life no operation is held back yet.
#[test]
fn a_node_of_the_life_before_is_not_removed_in_the_grace_period() {
    let mut c = console(
        "node n1 cpu=2
         node n2 cpu=2
         pool create p
         op start p jobs=2 as exclusive
         tick 1s
         crash
         restart
         connect n2
         tick 5s",
    );
    let remove = |lost| Command::RemoveNode { address: "n1".to_owned(), lost };
    let refused = ask(&mut c, remove(false)).expect_err("it may run a unit");
    assert!(refused.message.contains("an operation waits for it, until 1970-"), "{refused}");
    said(&mut c, "tick 1s");
    assert!(said(&mut c, "show ops").contains("exclusive reviving_jobs"));
    ask(&mut c, remove(true)).expect("removed");
    said(&mut c, "tick 1s");
    assert!(said(&mut c, "show ops").contains("exclusive running"));
}

/// S19: its agent and its proxies were stopped, and the unit was given away.
#[test]
fn a_node_gets_no_lease_for_a_job_before_it_is_told_to_abort_it() {
    let mut c = console(CUT_OFF);
    said(&mut c, "tick 305s");
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=1");
    c.world.nodes.get_mut("n1").expect("known").stamp = Span::from_secs(5000);
    let slow = said(&mut c, "hold\n connect n1\n tick 5s");
    assert!(slow.contains("n1 <- welcome"), "{slow}");
    assert!(!slow.contains("n1 <- heard") && !slow.contains("n1 <- abort"), "{slow}");
    let durable = said(&mut c, "go");
    let place = |what: &str| durable.find(what).unwrap_or_else(|| panic!("{what}: {durable}"));
    assert!(place("n1 <- abort") < place("n1 <- heard"), "{durable}");
}

/// S19: a store that hangs after `server pause`.
#[test]
fn heartbeats_are_confirmed_while_an_extension_waits_for_the_store() {
    let mut c = console("node n1 cpu=2\n pool create p");
    c.world.nodes.get_mut("n1").expect("known").stamp = Span::from_secs(7);
    said(&mut c, "disconnect n1\n connect n1\n op start p jobs=1 as o1\n hold");
    c.world.send("root", None, Command::ExtendLeases { period: Span::from_secs(600) });
    c.world.settle();
    c.world.nodes.get_mut("n1").expect("known").stamp = Span::from_secs(12);
    assert_eq!(confirmed(&mut c, "tick 5s"), ["12s"]);
    assert!(confirmed(&mut c, "go").iter().any(|heard| heard.ends_with(", extended")));
    // What the node has confirmed is durable.
    c.world.nodes.get_mut("n1").expect("known").stamp = Span::from_secs(17);
    said(&mut c, "tick 5s");
    assert_eq!(confirmed(&mut c, "tick 5s").len(), 1);
}

/// S19: the agent of a node was given another name while it was down.
#[test]
fn a_job_that_another_node_reports_keeps_its_unit_until_it_is_over_there() {
    let mut c = console(CUT_OFF);
    said(&mut c, "node n4 cpu=1\n disconnect n4");
    let running = std::mem::take(&mut c.world.nodes.get_mut("n1").expect("known").running);
    assert_eq!(running.len(), 1);
    let job = *running.keys().next().expect("one");
    let renamed = c.world.nodes.get_mut("n4").expect("known");
    (renamed.running, renamed.slow) = (running, true);
    let told = said(&mut c, "connect n4\n tick 1s");
    assert!(told.contains("n4 <- abort"), "{told}");
    let remove = Command::RemoveNode { address: "n1".to_owned(), lost: true };
    let refused = ask(&mut c, remove).expect_err("the job lives");
    assert!(refused.message.contains("node \"n4\" reports its job"), "{refused}");
    said(&mut c, &format!("tick {LEASE}"));
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=0");
    let now = c.world.now;
    let ends = c.world.nodes.get_mut("n4").expect("known").reap(now);
    assert!(ends.iter().any(|end| end.identity.job_id == job));
    for end in ends {
        c.world.say("n4", wire::NodeMessage::Jobs(vec![wire::JobEvent::Finished(Box::new(end))]));
    }
    c.world.settle();
    said(&mut c, &format!("tick {LEASE}"));
    assert_eq!(counts(&mut c, "exclusive"), "running=2 pending=0 aborted=1");
}

/// S19: records of release 0.1 have no leases.
#[test]
fn the_lease_of_an_operation_of_release_0_1_is_chosen_once() {
    let mut c =
        console("node n1 cpu=1\n node n2 cpu=1\n pool create p\n op start p jobs=2 as o1\n tick 1s\n crash");
    let mut found = 0;
    for ((table, _), value) in &mut c.world.durable {
        if *table == vocab::batch::Table::Operations
            && let Ok(Value::Map(mut record)) = yson::parse(value)
            && record.remove("lease_period").is_some()
        {
            *value = yson::to_binary(&record.into());
            found += 1;
        }
    }
    assert_eq!(found, 1);
    said(&mut c, "restart\n connect n1\n connect n2\n tick 1s");
    said(&mut c, "set //sys/scheduler/config/max_node_unseen_period_to_abort_allocations 60000\n tick 1s");
    said(&mut c, "crash\n restart\n connect n1\n connect n2\n disconnect n1\n tick 200s");
    assert_eq!(counts(&mut c, "o1"), "running=2 pending=0 aborted=0", "the proxies have leases of 300 s");
    said(&mut c, "tick 165s");
    assert_eq!(counts(&mut c, "o1"), "running=1 pending=1 aborted=1");
}

/// S19: their nodes must be able to confirm them.
#[test]
fn a_longer_period_of_heartbeats_waits_for_the_end_of_operations_with_short_leases() {
    let mut c = console(
        "node n1 cpu=1\n pool create p\n op start p jobs=1 job_lease_period=15000 as o1\n tick 1s\n crash",
    );
    c.world.config.heartbeat_period = Span::from_secs(60);
    let told = said(&mut c, "restart\n connect n1\n op start p job_lease_period=14999 as short");
    assert!(told.contains("at least three periods of heartbeats, 15s, found 14999ms"), "{told}");
    said(&mut c, "op abort o1\n tick 1s\n crash");
    let told = said(&mut c, "restart\n connect n1\n op start p job_lease_period=14999 as short");
    assert!(told.contains("at least three periods of heartbeats, 180s, found 14999ms"), "{told}");
}

/// S19.
#[test]
fn a_banned_node_that_was_removed_is_still_banned() {
    let mut c = console(
        "node n1 cpu=1\n node n2 cpu=1\n set //sys/cluster_nodes/n1/@banned %true\n disconnect n1\n disconnect n2",
    );
    for address in ["n1", "n2"] {
        ask(&mut c, Command::RemoveNode { address: address.to_owned(), lost: true }).expect("removed");
    }
    let listed = said(&mut c, "list //sys/cluster_nodes");
    assert!(listed.contains("n1") && !listed.contains("n2"), "{listed}");
    assert!(
        said(&mut c, "crash\n restart\n connect n1\n get //sys/cluster_nodes/n1/@banned").contains("%true")
    );
}

/// S19: what a longer outage did is told afterwards.
#[test]
fn jobs_that_stopped_by_themselves_are_told_by_an_alert() {
    let mut c = console("node n1 cpu=1\n pool create p\n op start p jobs=1 as o1");
    let job = *c.world.nodes["n1"].running.keys().next().expect("one");
    let error = vocab::lease::over(Span::from_secs(300));
    let reason = vocab::AbortReason::NodeOffline;
    c.world.end_job("n1", job, vocab::JobOutcome::Aborted { reason, error });
    c.world.settle();
    assert_eq!(alerts(&mut c), ["jobs_stopped_by_lease"]);
    said(&mut c, "tick 90000s");
    assert!(alerts(&mut c).is_empty(), "a day later");
    // It was asked to stop, and has saved its state.
    let job = *c.world.nodes["n1"].running.keys().next().expect("the unit runs again");
    let interrupted = Some(vocab::InterruptionReason::Unknown);
    c.world.end_job("n1", job, vocab::JobOutcome::Completed { interrupted, restart_needed: true });
    c.world.settle();
    assert_eq!(alerts(&mut c), ["jobs_stopped_by_lease"]);
}
