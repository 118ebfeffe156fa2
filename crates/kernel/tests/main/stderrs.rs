//! What is left of jobs that the server ends (jobs-and-nodes.md 5.4): their nodes tell it later.

use crate::console::Console;
use kernel::{Body, Command, Input, NodeKey, NodeProof, Retention, StderrPlace};
use vocab::batch::Table;
use vocab::{JobId, JobOutcome, Span};
use wire::{JobEvent, NodeMessage};
use yson::Value;

/// Two jobs that take a while to die, and have printed one line each.
fn two_jobs(change: impl FnOnce(&mut kernel::Config), options: &str) -> Console {
    let mut c = Console::with(change);
    c.run(&format!("node n1 cpu=2\npool create p\nop start p jobs=2 {options} as o"));
    let node = c.world.nodes.get_mut("n1").expect("there");
    node.slow = true;
    for (number, job) in node.running.values_mut().enumerate() {
        job.stderr = format!("line of {number}").into_bytes();
    }
    c
}

fn running(c: &Console) -> Vec<JobId> {
    c.world.nodes["n1"].running.keys().copied().collect()
}

/// What is dying on the node is dead.
fn reap(c: &mut Console) {
    let now = c.world.now;
    let ends = c.world.nodes.get_mut("n1").expect("there").reap(now);
    let ends = ends.into_iter().map(Box::new).map(JobEvent::Finished).collect();
    c.world.say("n1", NodeMessage::Jobs(ends));
    c.world.settle();
}

/// Of an archived job: its state, the size of its stderr, its stderr.
fn kept(c: &Console, job: JobId) -> (String, Option<u64>, Option<String>) {
    let key = kernel::job_key(c.operation_id("o"), job);
    let record = kernel::archived_job(&c.world.durable[&(Table::JobArchive, key.clone())]).expect("readable");
    let stderr = c.world.durable.get(&(Table::Stderr, key));
    (
        record.get("state").and_then(Value::as_str).expect("a state").to_owned(),
        record.get("stderr_size").and_then(Value::as_u64),
        stderr.map(|record| String::from_utf8_lossy(&record[1..]).into_owned()),
    )
}

fn place(c: &mut Console, job_id: JobId) -> StderrPlace {
    place_in(c, "o", job_id)
}

fn place_in(c: &mut Console, operation: &str, job_id: JobId) -> StderrPlace {
    let operation = Some(kernel::OperationRef::Id(c.operation_id(operation)));
    match c.world.ask("root", Command::GetJobStderr { operation, job_id, limit: None, offset: None }) {
        Some(Ok(Body::Stderr { place, .. })) => place,
        other => panic!("{other:?}"),
    }
}

fn owed(c: &Console) -> usize {
    c.world.durable.keys().filter(|(table, _)| *table == Table::OwedEnds).count()
}

/// The bytes that the archive of an operation that is over is said to have.
fn counted(c: &Console) -> u64 {
    let key = (Table::OperationIndex, c.operation_id("o").0.to_bytes().to_vec());
    let record = yson::parse(&c.world.durable[&key]).expect("readable");
    record.get("archived_bytes").and_then(Value::as_u64).expect("counted")
}

/// When the node tells the end, if the server is killed in between.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Killed {
    No,
    /// The job dies meanwhile.
    NodeFirst,
    /// The job is still dying when the node is back.
    NodeLast,
}

#[test]
fn whatever_ended_them() {
    let ways = ["op abort o", "op complete o", "op suspend o abort", "abandon", "fail o/0"];
    for way in ways {
        for killed in [Killed::No, Killed::NodeFirst, Killed::NodeLast] {
            let mut c = two_jobs(|_| (), "max_failed_job_count=1");
            let jobs = running(&c);
            match way {
                "abandon" => {
                    for job_id in &jobs {
                        let done =
                            c.world.ask("ann", Command::AbandonJob { operation: None, job_id: *job_id });
                        done.expect("an answer").expect("done");
                    }
                }
                _ => c.run(way),
            }
            let dying: Vec<JobId> = c.world.nodes["n1"].dying.keys().copied().collect();
            assert_eq!((dying.len(), owed(&c)), if way == "fail o/0" { (1, 1) } else { (2, 2) }, "{way}");
            let state = if way == "abandon" { "completed" } else { "aborted" };
            for job in &dying {
                assert_eq!(kept(&c, *job), (state.to_owned(), None, None), "{way}");
                assert!(matches!(
                    place(&mut c, *job),
                    StderrPlace::Node { key: Some(NodeKey(_)), began: true }
                ));
            }
            match killed {
                Killed::No => {}
                Killed::NodeFirst => {
                    c.run("crash");
                    reap(&mut c);
                    c.run("restart\nconnect n1");
                }
                Killed::NodeLast => c.run("crash\nrestart\nconnect n1"),
            }
            reap(&mut c);
            c.world.pass(Span::from_secs(1));
            for (number, job) in jobs.iter().enumerate() {
                let text = format!("line of {number}");
                let state = if way == "fail o/0" && !dying.contains(job) { "failed" } else { state };
                let expected = (state.to_owned(), Some(text.len() as u64), Some(text));
                assert_eq!(kept(&c, *job), expected, "{way} {killed:?}");
                assert_eq!(place(&mut c, *job), StderrPlace::Archive);
            }
            assert_eq!(owed(&c), 0, "{way} {killed:?}");
            assert!(c.world.nodes["n1"].finished.is_empty(), "{way} {killed:?}: released");
            assert_eq!(c.world.violations, [""; 0]);
        }
    }
}

/// A job that ends at once was never reported as running: its place comes with its end. The same if the server has
/// ended it before.
#[test]
fn places_on_nodes_come_with_the_end() {
    let mut c = two_jobs(|_| (), "");
    let jobs = running(&c);
    let place = |c: &mut Console, job: JobId, slot: u32| {
        let node = c.world.nodes.get_mut("n1").expect("there");
        node.running.get_mut(&job).expect("runs").slot = Some(slot);
    };
    place(&mut c, jobs[0], 4);
    c.world.end_job("n1", jobs[0], JobOutcome::Completed { interrupted: None, restart_needed: false });
    c.world.settle();
    c.run("op abort o");
    place(&mut c, jobs[1], 5);
    let slot = |c: &Console, job: JobId| {
        let key = kernel::job_key(c.operation_id("o"), job);
        let record = &c.world.durable[&(Table::JobArchive, key)];
        let record = kernel::archived_job(record).expect("readable");
        record.get("exec_attributes").and_then(|told| told.get("slot_index")?.as_i64())
    };
    assert_eq!([slot(&c, jobs[0]), slot(&c, jobs[1])], [Some(4), None]);
    reap(&mut c);
    assert_eq!([slot(&c, jobs[0]), slot(&c, jobs[1])], [Some(4), Some(5)]);
}

#[test]
fn a_node_that_tells_nothing_leaves_nothing() {
    for lost in
        ["reboot n1", "disconnect n1\ntick 5m", "crash\nrestart\ntick 5m", "crash\nrestart\nreboot n1"]
    {
        let mut c = two_jobs(|_| (), "max_stderr_count=1");
        let jobs = running(&c);
        // The server knows of what they have printed.
        c.world.pass(Span::from_secs(6));
        c.run("op suspend o abort");
        let claimed = jobs.iter().filter(|job| kept(&c, **job).1.is_some()).count();
        assert_eq!((claimed, owed(&c)), (1, 1), "as many as have a place");
        c.run(lost);
        assert_eq!(owed(&c), 0, "{lost}");
        for job in &jobs {
            assert_eq!(kept(&c, *job), ("aborted".to_owned(), None, None), "{lost}");
        }
        // And another one has the place.
        if !lost.contains("reboot") {
            c.run("reboot n1");
        }
        c.run("op resume o");
        c.world.pass(Span::from_secs(1));
        let job = running(&c)[0];
        c.world.nodes.get_mut("n1").expect("there").running.get_mut(&job).expect("it").stderr = b"x".to_vec();
        let end = vocab::JobOutcome::Completed { interrupted: None, restart_needed: false };
        c.world.end_job("n1", job, end);
        c.world.settle();
        assert_eq!(kept(&c, job), ("completed".to_owned(), Some(1), Some("x".to_owned())), "{lost}");
    }
}

#[test]
fn what_comes_late_counts_in_the_archive_and_is_not_wanted_of_the_forgotten() {
    let mut c = two_jobs(|_| (), "");
    let job = running(&c)[0];
    c.run("op start p jobs=1 as other\nop abort o");
    assert_eq!(place_in(&mut c, "other", job), StderrPlace::Archive, "it is not there");
    let before = counted(&c);
    reap(&mut c);
    assert!(counted(&c) >= before + 2 * (32 + 9), "{before}, then {}", counted(&c));

    let mut c =
        two_jobs(|config| config.retention = Retention { max_operations: 0, ..Retention::default() }, "");
    c.run("op abort o");
    c.world.pass(Span::from_secs(1));
    reap(&mut c);
    let left = |table: Table| c.world.durable.keys().filter(|(t, _)| *t == table).count();
    let tables = [Table::JobArchive, Table::Stderr, Table::OwedEnds, Table::OperationIndex];
    assert_eq!(tables.map(left), [0; 4]);
}

/// S15: a user could fill the disk of the server with long stderrs of operations that do not end.
#[test]
fn long_stderrs_of_unfinished_operations_have_a_bound_for_each_user() {
    const LONG: u64 = 1 << 20;
    let most = LONG * 3 / 2;
    let bound = Retention { max_unfinished_bytes_per_user: most, ..Retention::default() };
    let mut c = Console::with(|config| config.retention = bound);
    c.run("node n1 cpu=3\npool create p\nop start p jobs=3 as o");
    let jobs = running(&c);
    for (job_id, blob) in jobs.iter().copied().zip(101..) {
        let from = NodeProof::Insecure;
        c.world.inputs.push_back(Input::StderrUploaded { from, job_id, blob, size: LONG });
    }
    c.world.settle();
    c.run("finish o/0");
    let sizes = |c: &Console| -> Vec<u64> {
        let archive = jobs.iter().filter_map(|job| {
            let key = (Table::JobArchive, kernel::job_key(c.operation_id("o"), *job));
            kernel::archived_job(c.world.durable.get(&key)?).ok()
        });
        archive.map(|job| job.get("stderr_size").and_then(Value::as_u64).unwrap_or(0)).collect()
    };
    assert_eq!(sizes(&c), [LONG], "there is room for the first one");
    let alerts = |c: &mut Console| format!("{:?}", c.attributes(c.operation_id("o"), &["alerts"]));
    let before = alerts(&mut c);
    c.forget_transcript();
    c.run("finish o/1");
    let told = c.transcript().to_owned();
    assert_eq!(sizes(&c).iter().sum::<u64>(), LONG, "there is no room for the second one");
    let deleted = (101..104).filter(|blob| told.contains(&format!("blob {blob} deleted"))).count();
    assert_eq!(deleted, 1, "{told}");
    assert!(!before.contains("job_output_not_kept"), "{before}");
    let after = alerts(&mut c);
    assert!(after.contains("job_output_not_kept") && after.contains("archive_size_per_user"), "{after}");
}
