//! Crashes of the memory store, at every write.

use store::{Batch, Fault, MemoryStore, Store, StoreError, Table};

fn record(i: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put(Table::Operations, i.to_be_bytes(), "spec");
    batch.put(Table::Meta, "last", i.to_be_bytes());
    if i % 5 == 4 {
        batch.delete_prefix(Table::Operations, (i - 2).to_be_bytes());
    }
    batch
}

/// What a store that has taken records `0..n` holds.
fn expect_prefix(store: &MemoryStore, n: u64) {
    let last = store.get(Table::Meta, b"last").expect("reads");
    assert_eq!(last, n.checked_sub(1).map(|i| i.to_be_bytes().to_vec()));
    for i in 0..n {
        let deleted = i % 5 == 2 && i + 2 < n;
        let found = store.get(Table::Operations, &i.to_be_bytes()).expect("reads").is_some();
        assert_eq!(found, !deleted, "record {i} of {n}");
    }
}

#[test]
fn a_crash_leaves_a_prefix_of_batches() {
    const TOTAL: u64 = 12;
    for settled in 0..=TOTAL {
        for kept in 0..=TOTAL - settled {
            let store = MemoryStore::new();
            store.hold_durability(true);
            // Two batches in a transaction: a crash may fall between them.
            for i in (0..TOTAL).step_by(2) {
                store.write(&[record(i), record(i + 1)]).expect("written");
            }
            expect_prefix(&store, TOTAL);
            store.settle(settled as usize);
            assert_eq!(store.tail_len() as u64, TOTAL - settled);
            let next = store.crash(kept as usize);
            expect_prefix(&next, settled + kept);
            assert_eq!(next.life(), 2);
            assert!(matches!(store.write(&[record(1)]), Err(StoreError::Poisoned { .. })));
            next.write(&[record(settled + kept)]).expect("the new life writes");
        }
    }
}

#[test]
fn a_failed_write_is_there_or_not_and_ends_all_writing() {
    for (fault, present) in [(Fault::Refused, 2), (Fault::LostAnswer, 3)] {
        let store = MemoryStore::new();
        store.fail_write(3, fault);
        store.write(&[record(0)]).expect("the first");
        store.write(&[record(1)]).expect("the second");
        assert!(matches!(store.write(&[record(2)]), Err(StoreError::Io { .. })));
        assert!(matches!(store.write(&[record(3)]), Err(StoreError::Poisoned { .. })));
        assert!(matches!(store.begin_blob(), Err(StoreError::Poisoned { .. })));
        expect_prefix(&store, present);
        expect_prefix(&store.crash(0), present);
    }
}

#[test]
fn blobs_survive_a_crash_only_when_finished() {
    let store = MemoryStore::new();
    let mut a = store.begin_blob().expect("space");
    a.append(b"abc").expect("space");
    let mut b = store.begin_blob().expect("space");
    b.append(b"xyz").expect("space");
    let id = a.finish().expect("space");
    let next = store.crash(0);
    assert_eq!(next.blob_ids().expect("listed"), [id]);
    assert!(b.finish().is_err(), "the old process is dead");
    assert!(next.begin_blob().expect("space").id() > id);
}
