//! kill -9: whatever was acknowledged is there afterwards.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use store::{Batch, GroupBounds, GroupCommit, RedbStore, Store, Table};

/// Names the data directory for the child.
const VARIABLE: &str = "MILLPOND_STORE_KILL_TEST";

fn key(round: u64, i: u64) -> Vec<u8> {
    [round.to_be_bytes(), i.to_be_bytes()].concat()
}

/// Three records that must appear together or not at all.
fn batch(round: u64, i: u64) -> Batch {
    let mut batch = Batch::new();
    for table in [Table::Cypress, Table::Operations, Table::Events] {
        batch.put(table, key(round, i), vec![i as u8; 100 + (i % 400) as usize]);
    }
    batch
}

/// Not a test: what the child process of the test below does. Writes until it is killed.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(VARIABLE) else { return };
    let store = Arc::new(RedbStore::open(Path::new(&directory)).expect("the store opens"));
    let round = store.life();
    let mut out = std::io::stdout();
    let (sender, receiver) = std::sync::mpsc::channel();
    let commit = GroupCommit::start(store, GroupBounds::default(), move |r| {
        sender.send(r.expect("a healthy disk")).expect("the child listens");
    });
    for i in 1..u64::MAX {
        commit.submit(i, batch(round, i));
        // Let some wait, so that groups form.
        if i % 16 == 0 {
            let mut durable = 0;
            while durable < i {
                durable = receiver.recv().expect("reports come");
            }
            writeln!(out, "ack {durable}").expect("the parent listens");
            out.flush().expect("the parent listens");
        }
    }
}

#[test]
fn acknowledged_writes_survive_a_kill() {
    let directory = tempfile::tempdir().expect("a directory");
    for round in 1..=10u64 {
        let mut child = Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", "kill::child", "--nocapture", "--test-threads=1"])
            .env(VARIABLE, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let mut acknowledged = 0;
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        // Another moment each round: after so many acknowledgements, somewhere in the next groups.
        let mut left = 3 + round * 4;
        for line in lines.lines().map_while(Result::ok) {
            // The test harness writes before the first of ours, on the same line.
            let Some((_, number)) = line.split_once("ack ") else { continue };
            acknowledged = number.parse().expect("a number");
            left -= 1;
            if left == 0 {
                child.kill().expect("it runs");
                // What it has printed meanwhile is in the pipe and counts as well.
                left = u64::MAX;
            }
        }
        child.wait().expect("it is dead");
        assert!(acknowledged >= 100, "round {round}: {acknowledged}");

        let store = RedbStore::open(directory.path()).expect("it opens after a kill");
        for old in (1..=round).map(|r| 2 * r - 1) {
            let end = if old == 2 * round - 1 { acknowledged } else { 100 };
            for i in 1..=end {
                let value = store.get(Table::Cypress, &key(old, i)).expect("reads");
                assert!(value.is_some(), "round {round}: record {i} of life {old} was acknowledged");
            }
        }
        // Behind the acknowledged ones: whole batches or nothing.
        for i in acknowledged + 1..acknowledged + 100 {
            let there: Vec<bool> = [Table::Cypress, Table::Operations, Table::Events]
                .iter()
                .map(|t| store.get(*t, &key(2 * round - 1, i)).expect("reads").is_some())
                .collect();
            assert!(there == [true; 3] || there == [false; 3], "batch {i} is torn: {there:?}");
        }
    }
}
