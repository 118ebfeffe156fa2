//! The embedded store: batches written one by one, and everything read as at a start.

use crate::meter::Meter;
use std::ops::{Bound, ControlFlow};
use store::{Batch, RedbStore, Store, Table};

const BATCHES: u64 = 40;
const RECORDS: u64 = 10;

fn batch(number: u64) -> Batch {
    let mut batch = Batch::new();
    for record in 0..RECORDS {
        let key = (number * RECORDS + record).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        batch.put(Table::Operations, key, vec![record as u8; 400]);
    }
    batch
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

pub fn write(meter: &mut Meter) {
    let directory = directory();
    let store = RedbStore::open(directory.path()).expect("a new store");
    for number in 0..BATCHES {
        let batch = batch(number);
        meter.measure(|| store.write(std::slice::from_ref(&batch)).expect("written"));
    }
}

pub fn load(meter: &mut Meter) {
    let directory = directory();
    let store = RedbStore::open(directory.path()).expect("a new store");
    for number in 0..BATCHES {
        store.write(&[batch(number)]).expect("written");
    }
    drop(store);
    let (mut count, mut bytes) = (0, 0);
    meter.measure(|| {
        let store = RedbStore::open(directory.path()).expect("the same store");
        for table in Table::ALL {
            let mut visit = |key: &[u8], value: &[u8]| {
                count += 1;
                bytes += key.len() + value.len();
                ControlFlow::Continue(())
            };
            store.scan(*table, Bound::Unbounded, Bound::Unbounded, false, &mut visit).expect("readable");
        }
    });
    assert_eq!((count, bytes), (BATCHES * RECORDS, (BATCHES * RECORDS) as usize * 408));
}
