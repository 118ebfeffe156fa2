//! A record that cannot be understood costs its operation, never the server.

use crate::console::Console;
use expect_test::expect;
use vocab::batch::Table;
use yson::{Map, Value};

/// Two operations that run on one node, and a server that is down.
fn down() -> Console {
    let mut c = Console::new();
    c.run(
        "node n1 cpu=4
         pool create p
         op start p jobs=2 title=Broken alias=*b as b
         op start p jobs=2 as a
         crash",
    );
    c.forget_transcript();
    c
}

/// Records of operation `name` of which the key goes on with `part`, changed.
fn damage(c: &mut Console, name: &str, part: u8, change: impl Fn(&[u8]) -> Vec<u8>) {
    let id = c.operation_id(name).0.to_bytes();
    let mut found = 0;
    for ((table, key), value) in &mut c.world.durable {
        if *table == Table::Operations && key.starts_with(&id) && key.get(16) == Some(&part) {
            *value = change(value);
            found += 1;
        }
    }
    assert!(found > 0, "{name} has records of part {part}");
}

fn edited(record: &[u8], edit: impl Fn(&mut Map)) -> Vec<u8> {
    let Ok(Value::Map(mut map)) = yson::parse(record) else { panic!("a record is a map") };
    edit(&mut map);
    yson::to_binary(&map.into())
}

const AFTERWARDS: &str = "restart
     connect n1
     show ops
     show nodes
     op get b state result
     op get *b id
     get //sys/scheduler/@alerts
     finish a/0
     finish a/1
     show ops";

#[test]
fn a_spec_that_is_not_accepted_any_more() {
    let mut c = down();
    damage(&mut c, "b", b's', |record| {
        edited(record, |map| {
            let Some(Value::Map(spec)) = map.get_mut("spec") else { panic!("it has a spec") };
            spec.insert("tasks", 7i64);
        })
    });
    c.run(AFTERWARDS);
    expect![[r#"
        > restart
        > connect n1
          n1 <- welcome
          n1 <- abort b/1#1 unconfirmed
          n1 <- abort b/0#0 unconfirmed
          n1 <- release b/1#1 b/0#0
        > show ops
          a running total=2 running=2 completed=0 pending=0 failed=0 aborted=0
          b failed alert:operation_not_restored error 1(1): Operation could not be restored after a restart of the scheduler: Invalid value of spec option /tasks: expected map, found int64 7
        > show nodes
          n1 online a/0#0 a/1#1
        > op get b state result
          {"state"="failed";"result"={"error"={"code"=1;"message"="Operation could not be restored after a restart of the scheduler";"attributes"={"operation_id"="b";};"inner_errors"=[{"code"=1;"message"="Invalid value of spec option /tasks: expected map, found int64 7";"attributes"={"path"="/tasks";};"inner_errors"=[];};];};};}
        > op get *b id
          {"id"="b";}
        > get //sys/scheduler/@alerts
          [{"code"=1;"message"="Operations that could not be restored at the last start: 1";"attributes"={"count"=1;"alert_type"="operations_not_restored";};"inner_errors"=[{"code"=1;"message"="Operation could not be restored after a restart of the scheduler";"attributes"={"operation_id"="b";};"inner_errors"=[{"code"=1;"message"="Invalid value of spec option /tasks: expected map, found int64 7";"attributes"={"path"="/tasks";};"inner_errors"=[];};];};];};]
        > finish a/0
          n1 <- release a/0#0
        > finish a/1
          n1 <- release a/1#1
        > show ops
          a completed total=2 running=0 completed=2 pending=0 failed=0 aborted=0
          b failed alert:operation_not_restored error 1(1): Operation could not be restored after a restart of the scheduler: Invalid value of spec option /tasks: expected map, found int64 7
    "#]].assert_eq(c.transcript());
}

/// Earlier versions have not looked into these options: who was let in with them goes on.
#[test]
fn options_that_were_taken_unseen() {
    let odd = [
        ("add_authenticated_user_to_acl", Value::from("false")),
        ("tentative_tree_eligibility", yson::map! {"sample_job_count" => 0}.into()),
        ("tentative_tree_eligibility", 5i64.into()),
    ];
    for (name, value) in odd {
        let mut c = down();
        damage(&mut c, "b", b's', |record| {
            edited(record, |map| {
                let Some(Value::Map(spec)) = map.get_mut("spec") else { panic!("it has a spec") };
                spec.insert(name, value.clone());
            })
        });
        c.run("restart\nconnect n1\nop get b state spec");
        let transcript = c.transcript();
        assert!(transcript.contains("{\"state\"=\"running\";") && transcript.contains(name), "{transcript}");
    }
}

#[test]
fn damaged_bytes_of_any_part() {
    for part in [b's', b'd', b'c'] {
        for damaged in [b"".as_slice(), b"{", b"\xff\xff\xff", b"{}"] {
            let mut c = down();
            damage(&mut c, "b", part, |_| damaged.to_vec());
            c.run(AFTERWARDS);
            let transcript = c.transcript();
            let about = format!("part {} is {damaged:?}:\n{transcript}", part as char);
            assert!(transcript.contains("a completed total=2 running=0 completed=2"), "{about}");
            // The controller's parts may be readable by chance; then it went on.
            assert!(transcript.contains("b failed") || part == b'c', "{about}");
            assert!(!transcript.contains("VIOLATED"), "{about}");
        }
    }
}

/// Its end is durable: the next start finds it where finished operations are.
#[test]
fn it_fails_once() {
    let mut c = down();
    damage(&mut c, "b", b'd', |_| b"{".to_vec());
    c.run("restart\nconnect n1\ncrash");
    c.forget_transcript();
    c.run("restart\nconnect n1\nshow ops\nget //sys/scheduler/@alerts\nop get b state");
    expect![[r#"
        > restart
        > connect n1
          n1 <- welcome
        > show ops
          a running total=2 running=2 completed=0 pending=0 failed=0 aborted=0
          b failed alert:operation_not_restored error 1(1): Operation could not be restored after a restart of the scheduler: Malformed record: expected a key, found end of input at offset 1 (line 1, column 2)
        > get //sys/scheduler/@alerts
          []
        > op get b state
          {"state"="failed";}
    "#]].assert_eq(c.transcript());
}

/// Keys that name no operation, summaries that say nothing.
#[test]
fn records_of_nobody() {
    let mut c = down();
    c.world.durable.insert((Table::Operations, b"short".to_vec()), b"x".to_vec());
    c.world.durable.insert((Table::OperationIndex, b"short".to_vec()), b"{".to_vec());
    c.run("restart\nconnect n1\nshow ops\nget //sys/scheduler/@alerts");
    expect![[r#"
        > restart
        > connect n1
          n1 <- welcome
        > show ops
          a running total=2 running=2 completed=0 pending=0 failed=0 aborted=0
          b running total=2 running=2 completed=0 pending=0 failed=0 aborted=0
        > get //sys/scheduler/@alerts
          [{"code"=1;"message"="Operations that could not be restored at the last start: 2";"attributes"={"count"=2;"alert_type"="operations_not_restored";};"inner_errors"=[{"code"=1;"message"="Malformed summary of a finished operation: it is not listed; key [73, 68, 6f, 72, 74]";"attributes"={};"inner_errors"=[];};{"code"=1;"message"="Malformed key of an operation: [73, 68, 6f, 72, 74]";"attributes"={};"inner_errors"=[];};];};]
    "#]].assert_eq(c.transcript());
}

/// The tree that it ran in was removed behind the server's back.
#[test]
fn no_tree_is_left() {
    let mut c = Console::new();
    c.run(
        "tree create t n2
         set //sys/pool_trees/t/@config/default_parent_pool \"<Root>\"
         node n1 cpu=4
         pool create p
         op start p jobs=1 pool_trees=[t] as b
         op start p jobs=1 as a
         crash",
    );
    c.forget_transcript();
    let trees: Vec<_> =
        c.world.durable.iter().filter(|((t, _), v)| *t == Table::PoolTrees && !v.is_empty()).collect();
    let gone: Vec<_> =
        trees.iter().filter(|((_, key), _)| key != b"physical").map(|(k, _)| (*k).clone()).collect();
    assert_eq!(gone.len(), 1, "{gone:?}");
    c.world.durable.remove(&gone[0]);
    c.run("restart\nconnect n1\nshow ops\nop get b state result");
    expect![[r#"
        > restart
        > connect n1
          n1 <- welcome
        > show ops
          a running total=1 running=1 completed=0 pending=0 failed=0 aborted=0
          b failed alert:operation_not_restored error 1(1(500)): Operation could not be restored after a restart of the scheduler: Operation has no pool tree left after restart: No such pool tree "t"
        > op get b state result
          {"state"="failed";"result"={"error"={"code"=1;"message"="Operation could not be restored after a restart of the scheduler";"attributes"={"operation_id"="b";};"inner_errors"=[{"code"=1;"message"="Operation has no pool tree left after restart";"attributes"={"operation_id"="b";};"inner_errors"=[{"code"=500;"message"="No such pool tree \"t\"";"attributes"={"pool_tree"="t";};"inner_errors"=[];};];};];};};}
    "#]].assert_eq(c.transcript());
}
