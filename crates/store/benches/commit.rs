//! Promises of the store: the latency of one commit, and records per second in bulk.

use std::sync::Arc;
use store::{Batch, GroupBounds, GroupCommit, RedbStore, Store, Table};

fn main() {
    divan::main();
}

fn batch(i: u64, records: u64) -> Batch {
    let mut batch = Batch::new();
    for r in 0..records {
        let key = (i * records + r).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        batch.put(Table::Cypress, key, vec![r as u8; 200]);
    }
    batch
}

/// One small batch, one commit, nobody else waiting: well below 2 ms.
#[divan::bench(sample_count = 200, sample_size = 1)]
fn one_commit(bencher: divan::Bencher) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = RedbStore::open(directory.path()).expect("a new store");
    let mut i = 0;
    bencher.bench_local(|| {
        i += 1;
        store.write(&[batch(i, 3)]).expect("written");
    });
}

/// 20,000 records of 200 bytes in batches of three through group commit: below a second.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn twenty_thousand_records(bencher: divan::Bencher) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(RedbStore::open(directory.path()).expect("a new store"));
    let mut i = 0;
    bencher.bench_local(|| {
        let commit = GroupCommit::start(store.clone(), GroupBounds::default(), |r| {
            r.expect("a healthy disk");
        });
        for seq in 1..=20_000 / 3 {
            i += 1;
            commit.submit(seq, batch(i, 3));
        }
    });
}
