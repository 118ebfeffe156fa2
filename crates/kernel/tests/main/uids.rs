//! Users of the host that jobs run as (S9).

use crate::console::Console;
use kernel::{Body, Command, Config};
use vocab::batch::Table;
use vocab::{Guid, UidRange};
use yson::Value;
use yson::ypath::YPath;

fn range(first: u32, last: u32) -> UidRange {
    UidRange::new(first, last).expect("a range")
}

/// A cluster with one node and these uids.
fn cluster(uids: UidRange) -> Console {
    let mut c = Console::with(|config: &mut Config| config.job_uids = uids);
    c.run(
        "node n1 cpu=20
         pool create p",
    );
    c
}

/// A cluster with users, of whom some have accounts.
fn guarded(uids: UidRange) -> Console {
    let mut c = Console::with(|config: &mut Config| {
        (config.job_uids, config.access_control) = (uids, true);
    });
    for user in ["ann", "bob", "carl"] {
        create_user(&mut c, user);
    }
    c.run(
        "node n1 cpu=20
         pool create p",
    );
    c
}

/// The uid that the node is told for the jobs of an operation.
fn uid(c: &Console, operation: &str) -> Option<u32> {
    let id = c.operation_id(operation);
    let mut found: Vec<Option<u32>> = c.world.nodes["n1"]
        .running
        .values()
        .filter(|job| job.start.identity.operation_id == id)
        .map(|job| job.start.uid)
        .collect();
    found.dedup();
    assert_eq!(found.len(), 1, "{operation}: {found:?}");
    found[0]
}

fn ask(c: &mut Console, command: Command) -> Result<Value, vocab::Failure> {
    match c.world.ask("root", command).expect("an answer") {
        Ok(Body::Value(value)) => Ok(value),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure),
    }
}

fn path(text: &str) -> YPath {
    YPath::parse(text.as_bytes()).expect("a path")
}

fn create_user(c: &mut Console, name: &str) {
    let command = Command::Create {
        object_type: "user".into(),
        path: None,
        attributes: yson::map! {"name" => name},
        recursive: false,
        ignore_existing: false,
        force: false,
        ignore_type_mismatch: false,
        lock_existing: false,
    };
    ask(c, command).expect("created");
}

fn remove_user(c: &mut Console, name: &str) {
    let path = path(&format!("//sys/users/{name}"));
    ask(c, Command::Remove { path, recursive: false, force: false }).expect("removed");
}

/// `//sys/users/NAME/@job_uid`.
fn shown(c: &mut Console, name: &str) -> Option<u64> {
    let path = path(&format!("//sys/users/{name}/@job_uid"));
    ask(c, Command::Get { path, attributes: Vec::new(), max_size: None, fields: None }).ok()?.as_u64()
}

/// A user has one uid, whatever happens to the server, and shares it with no other user. It is never 0.
#[test]
fn every_user_has_a_uid() {
    let mut c = cluster(range(5000, 5999));
    create_user(&mut c, "ann");
    c.run(
        "as ann
         op start p jobs=2 as a1
         as bob
         op start p as b1
         as root
         op start p as r1
         as ann
         op start p as a2",
    );
    let given = ["a1", "b1", "r1", "a2"].map(|name| uid(&c, name));
    assert_eq!(given, [5000, 5001, 5002, 5000].map(Some));
    assert_eq!(
        [shown(&mut c, "ann"), shown(&mut c, "root"), shown(&mut c, "guest")],
        [Some(5000), Some(5002), None]
    );
    for life in ["crash\nrestart", "stop\nrestart"] {
        c.run(life);
        c.run(
            "connect n1
             as bob
             op start p as b2
             as root
             op start p as r2",
        );
        assert_eq!([uid(&c, "b2"), uid(&c, "r2"), uid(&c, "a1")], [5001, 5002, 5000].map(Some), "{life}");
        assert_eq!([shown(&mut c, "ann"), shown(&mut c, "root")], [Some(5000), Some(5002)], "{life}");
    }
    // The next jobs of an operation of an earlier life.
    c.run("fail a1/0");
    assert_eq!(uid(&c, "a1"), Some(5000));
}

/// What was acknowledged with a uid survives with it; what was not is nobody's.
#[test]
fn a_uid_is_durable_with_the_operation() {
    let mut c = cluster(range(5000, 5999));
    c.run(
        "hold
         as ann
         op start p as lost",
    );
    assert!(c.world.nodes["n1"].running.is_empty(), "a job with a uid that may not last");
    c.run(
        "crash
         restart
         go
         connect n1
         as bob
         op start p as b
         as ann
         op start p as a",
    );
    assert_eq!([uid(&c, "b"), uid(&c, "a")], [5000, 5001].map(Some));
}

#[test]
fn nobody_sets_a_uid() {
    let mut c = cluster(range(5000, 5999));
    create_user(&mut c, "ann");
    let set = |path: YPath| Command::Set { path, value: Value::from(0i64), recursive: false, force: false };
    ask(&mut c, set(path("//sys/users/ann/@job_uid"))).expect_err("it is the system's");
    let mut attributes = yson::map! {"name" => "bob"};
    attributes.insert("job_uid", 0i64);
    let command = Command::Create {
        object_type: "user".into(),
        path: None,
        attributes,
        recursive: false,
        ignore_existing: false,
        force: false,
        ignore_type_mismatch: false,
        lock_existing: false,
    };
    ask(&mut c, command).expect_err("it is the system's");
}

/// Files with the uid of a removed user may still lie on nodes.
#[test]
fn a_uid_of_a_removed_user_is_used_last() {
    let mut c = cluster(range(5000, 5002));
    create_user(&mut c, "ann");
    c.run("as ann\nop start p as a1\nfinish a1/0");
    assert_eq!(shown(&mut c, "ann"), Some(5000));
    remove_user(&mut c, "ann");
    create_user(&mut c, "ann");
    assert_eq!(shown(&mut c, "ann"), None, "another user of the same name");
    c.run("crash\nrestart\nconnect n1\nas ann\nop start p as a2\nas bob\nop start p as b1");
    assert_eq!([uid(&c, "a2"), uid(&c, "b1")], [5001, 5002].map(Some));
    c.run("as carl\nop start p as c1");
    assert_eq!(uid(&c, "c1"), Some(5000), "there is no other");
    c.forget_transcript();
    c.run("as dora\nop start p as d1");
    let said = c.transcript();
    assert!(
        said.contains("cannot run jobs: all 3 uids of the range 5000-5002 belong to other users")
            && said.contains("job_uids"),
        "{said}"
    );
    assert!(c.world.nodes["n1"].running.values().all(|job| job.start.uid.is_some()));
    // Users that have one go on.
    c.run("as bob\nop start p as b2");
    assert_eq!(uid(&c, "b2"), Some(5002));
    // S9: 65,536 names, which anybody can make up without authentication, were enough to keep all others out.
    c.run("finish b1/0\nfinish b2/0\nas dora\nop start p as d2\nas bob\nop start p as b3");
    assert_eq!(uid(&c, "d2"), Some(5002), "no operation has it, and bob is but a name");
    assert!(c.transcript().contains("User \"bob\" cannot run jobs"), "{}", c.transcript());
}

/// S9: files of a removed user went to the next new user when the range was used up.
#[test]
fn a_uid_of_a_removed_account_is_never_given_again() {
    let mut c = guarded(range(5000, 5001));
    c.run("as ann\nop start p as a1\nfinish a1/0");
    remove_user(&mut c, "ann");
    c.run("as bob\nop start p as b1\nas carl\nop start p as c1");
    assert_eq!(uid(&c, "b1"), Some(5001));
    let said = c.transcript();
    assert!(said.contains("all 2 uids of the range 5000-5001") && said.contains("removed ones"), "{said}");
}

/// S9: who had used a name without authentication left its files to the account that was made later.
#[test]
fn an_account_does_not_inherit_the_uid_of_a_name() {
    let mut c = cluster(range(5000, 5999));
    c.run("as ann\nop start p as a1\nop start p jobs=2 as a2\nfinish a1/0\ncrash");
    c.world.config.access_control = true;
    c.run("restart\nconnect n1");
    create_user(&mut c, "ann");
    c.run("as ann\nop start p as a3");
    assert_eq!(uid(&c, "a3"), Some(5001));
    assert_eq!(shown(&mut c, "ann"), Some(5001));
    // What runs keeps what it has, also over the next restart.
    c.run("crash\nrestart\nconnect n1\nas root\nfail a2/0");
    assert_eq!(uid(&c, "a2"), Some(5000));
    // And is not the account's after a change of the range.
    c.run("crash");
    c.world.config.job_uids = range(7000, 7999);
    c.run("restart\nconnect n1\nfail a2/0\nas ann\nop start p as a4");
    assert_ne!(uid_of_newest(&c, "a2"), uid_of_newest(&c, "a4"));
}

/// S9: the account was removed and made again while an operation ran.
#[test]
fn an_operation_of_a_removed_account_is_not_the_next_ones() {
    let mut c = guarded(range(5000, 5999));
    c.run("as ann\nop start p jobs=2 as a1");
    remove_user(&mut c, "ann");
    create_user(&mut c, "ann");
    c.run("as ann\nop start p as a2\ncrash");
    c.world.config.job_uids = range(7000, 7999);
    c.run("restart\nconnect n1\nas root\nfail a1/0\nas ann\nop start p as a3");
    assert_ne!(uid_of_newest(&c, "a1"), uid_of_newest(&c, "a3"));
    assert_eq!(Some(u64::from(uid_of_newest(&c, "a3"))), shown(&mut c, "ann"));
}

/// S9: operations that could not get a uid of the new range were ended as broken.
#[test]
fn a_range_that_is_too_small_loses_no_operation() {
    let mut c = cluster(range(5000, 5999));
    c.run("as ann\nop start p jobs=2 as a1\nas bob\nop start p jobs=2 as b1\nas carl\nop start p jobs=2 as c1\ncrash");
    let before = c.world.durable.clone();
    c.world.config.job_uids = range(7000, 7001);
    let refused = c.world.try_restart().expect_err("two uids for three users");
    assert!(
        ["job_uids", "each of 3 users", "Nothing was changed"]
            .iter()
            .all(|part| refused.message.contains(part))
            && !refused.message.contains("backup"),
        "{}",
        refused.message
    );
    assert!(c.world.durable == before, "a start that fails changes nothing");
    c.world.config.job_uids = range(7000, 7002);
    c.run("restart\nconnect n1\nfail a1/0\nfail b1/0\nfail c1/0");
    let given: std::collections::BTreeSet<u32> =
        ["a1", "b1", "c1"].map(|name| uid_of_newest(&c, name)).into();
    assert_eq!(given, [7000, 7001, 7002].into());
}

/// S9: the uid of an operation that is read later must not be given to the user of one that is read before.
#[test]
fn uids_that_operations_have_are_noted_before_others_are_given() {
    for without in ["a1", "b1"] {
        let mut c = cluster(range(5000, 5999));
        c.run("as ann\nop start p jobs=2 as a1\nas bob\nop start p jobs=2 as b1");
        let id = c.operation_id(without);
        c.run("crash");
        c.world.durable.retain(|(table, _), _| *table != Table::JobUids);
        for ((table, key), value) in &mut c.world.durable {
            if *table == Table::Operations && key.get(16) == Some(&b'd') && key[..16] == id.0.to_bytes() {
                let Ok(Value::Map(mut record)) = yson::parse(value) else { panic!("a record is a map") };
                assert!(record.remove("uid").is_some(), "the record has the uid");
                *value = yson::to_binary(&record.into());
            }
        }
        c.run("restart\nconnect n1\nfail a1/0\nfail b1/0");
        assert_ne!(uid_of_newest(&c, "a1"), uid_of_newest(&c, "b1"), "{without} had none");
    }
}

/// S9: nodes of release 0.1 run jobs as the users of slots, whatever the server says.
#[test]
fn a_node_without_users_of_the_cluster_starts_nothing_where_users_are_kept_apart() {
    for is_guarded in [true, false] {
        let mut c = Console::with(|config| config.access_control = is_guarded);
        c.run("node n1 cpu=20\npool create p\nop start p jobs=2 as a\ndisconnect n1");
        let attributes = |c: &mut Console| {
            let path = path("//sys/cluster_nodes/n1/@alerts");
            let get = Command::Get { path, attributes: Vec::new(), max_size: None, fields: None };
            format!("{:?}", ask(c, get).expect("a list"))
        };
        let jobs = |c: &Console| c.world.nodes["n1"].running.len();
        c.world.nodes.get_mut("n1").expect("it is there").knows_job_uids = false;
        c.run("connect n1\nop start p as b\ntick 20s");
        assert_eq!(jobs(&c), if is_guarded { 2 } else { 3 }, "what runs goes on");
        c.run("fail a/0\ntick 20s");
        assert_eq!(jobs(&c), if is_guarded { 1 } else { 3 });
        assert_eq!(attributes(&mut c).contains("job_uids_not_supported"), is_guarded);
        c.run("crash\nrestart\nconnect n1\ntick 60s");
        assert_eq!(jobs(&c), if is_guarded { 1 } else { 3 });
        c.run("disconnect n1");
        c.world.nodes.get_mut("n1").expect("it is there").knows_job_uids = true;
        c.run("connect n1\ntick 20s");
        assert_eq!(jobs(&c), 3, "it was updated");
        assert!(!attributes(&mut c).contains("job_uids_not_supported"));
    }
}

/// A store of release 0.1 has no uids, and its operations have none.
#[test]
fn a_store_without_uids_is_taken_over() {
    let mut c = cluster(range(5000, 5999));
    c.run("as ann\nop start p jobs=2 as a1\nas bob\nop start p as b1\ncrash");
    c.world.durable.retain(|(table, _), _| *table != Table::JobUids);
    for ((table, key), value) in &mut c.world.durable {
        if *table == Table::Operations && key.get(16) == Some(&b'd') {
            let Ok(Value::Map(mut record)) = yson::parse(value) else { panic!("a record is a map") };
            assert!(record.remove("uid").is_some(), "the record has the uid");
            *value = yson::to_binary(&record.into());
        }
    }
    c.run("restart\nconnect n1");
    assert_eq!(c.world.kernel().operations_with_new_uids(), 2);
    c.run("fail a1/0\nfail b1/0");
    let given: std::collections::BTreeSet<_> = ["a1", "b1"].map(|name| uid_of_newest(&c, name)).into();
    assert_eq!(given, [5000, 5001].into());
    c.run("crash\nrestart\nconnect n1");
    assert_eq!(c.world.kernel().operations_with_new_uids(), 0);
}

fn uid_of_newest(c: &Console, operation: &str) -> u32 {
    let id = c.operation_id(operation);
    let jobs = c.world.nodes["n1"].running.values().filter(|job| job.start.identity.operation_id == id);
    let newest = jobs.max_by_key(|job| job.start.identity.job_index).expect("it runs");
    newest.start.uid.expect("it has one")
}

/// Another range in the configuration: users get uids of it, operations that run as well.
#[test]
fn a_range_can_be_changed() {
    let mut c = cluster(range(5000, 5999));
    create_user(&mut c, "ann");
    c.run("as ann\nop start p jobs=2 as a1\ncrash");
    c.world.config.job_uids = range(7000, 7999);
    c.run("restart\nconnect n1\nfail a1/0\nas ann\nop start p as a2");
    assert_eq!([uid_of_newest(&c, "a1"), uid_of_newest(&c, "a2")], [7000, 7000]);
    assert_eq!(shown(&mut c, "ann"), Some(7000));
}

/// Nodes are told what to claim on their hosts.
#[test]
fn nodes_are_told_the_uids_of_the_cluster() {
    for claims_all in [false, true] {
        let mut c = Console::with(|config| {
            config.job_uids = range(100_000, 165_535);
            config.claim_all_uids = claims_all;
            config.cluster_id = Guid([1, 2, 3, 4]);
        });
        c.run("node n1 cpu=4\npool create p\nas ann\nop start p as a1");
        let told = c.world.nodes["n1"].job_uids.expect("it was welcome");
        assert_eq!((told.range, told.cluster_id), (range(100_000, 165_535), Guid([1, 2, 3, 4])));
        assert_eq!(told.claim, range(100_000, if claims_all { 165_535 } else { 100_255 }));
        assert!(told.claim.contains(uid(&c, "a1").expect("it has one")));
    }
}
