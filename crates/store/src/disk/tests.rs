//! The disk fails under redb.

use super::{OpenOptions, RedbStore};
use crate::{Batch, Store as _, StoreError, Table};
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file whose disk is full as soon as the switch is on.
#[derive(Debug)]
struct FullDisk {
    file: redb::backends::FileBackend,
    full: Arc<AtomicBool>,
    /// Refuse the sync only: all bytes are handed over, but the system cannot keep them.
    only_sync: bool,
}

impl FullDisk {
    fn check(&self, sync: bool) -> Result<()> {
        if self.full.load(Ordering::SeqCst) && (sync || !self.only_sync) {
            return Err(Error::from(ErrorKind::StorageFull));
        }
        Ok(())
    }
}

impl redb::StorageBackend for FullDisk {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file.read(offset, out)
    }
    fn set_len(&self, len: u64) -> Result<()> {
        self.check(false)?;
        self.file.set_len(len)
    }
    fn sync_data(&self) -> Result<()> {
        self.check(true)?;
        self.file.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.check(false)?;
        self.file.write(offset, data)
    }
}

fn put(key: &str, value: &str) -> Batch {
    let mut batch = Batch::new();
    batch.put(Table::Cypress, key, value);
    batch
}

fn a_full_disk_stops_writes_but_not_reads(only_sync: bool, reopen: bool) {
    let directory = tempfile::tempdir().expect("a directory");
    let full = Arc::new(AtomicBool::new(false));
    let switch = full.clone();
    let store = RedbStore::open_with(directory.path(), OpenOptions::default(), move |file| {
        Box::new(FullDisk { file, full: full.clone(), only_sync })
    })
    .expect("a new store");
    for i in 0..100 {
        store.write(&[put(&format!("k{i}"), &"v".repeat(1000))]).expect("there is space");
    }
    switch.store(true, Ordering::SeqCst);

    let error = store.write(&[put("k5", &"w".repeat(100_000))]).expect_err("the disk is full");
    let text = error.to_string();
    assert!(text.contains("store.redb") && text.contains("free some space"), "{text}");
    let again = store.write(&[put("k6", "w")]).expect_err("poisoned");
    assert!(matches!(&again, StoreError::Poisoned { cause } if cause.contains("store.redb")), "{again}");
    assert!(matches!(store.begin_blob(), Err(StoreError::Poisoned { .. })));

    // Space comes back, but what the disk holds is not known before the file is opened again.
    switch.store(false, Ordering::SeqCst);
    assert!(store.write(&[put("k6", "w")]).is_err());
    let value = store.get(Table::Cypress, b"k99").expect("reads go on").expect("it was acknowledged");
    assert_eq!(value, "v".repeat(1000).into_bytes());
    if !only_sync {
        assert_eq!(store.get(Table::Cypress, b"k5").expect("reads").map(|v| v.len()), Some(1000));
    }

    let store = match reopen {
        true => {
            let life = store.life();
            store.reopen().expect("there is space");
            assert!(store.failure().is_none() && store.life() > life);
            store.write(&[put("k7", "again")]).expect("writes again");
            assert!(store.begin_blob().is_ok());
            store
        }
        false => {
            drop(store);
            RedbStore::open(directory.path()).expect("the restart recovers")
        }
    };
    for i in 0..100 {
        let value = store.get(Table::Cypress, format!("k{i}").as_bytes()).expect("reads");
        assert!(value.is_some(), "k{i} was acknowledged");
    }
    store.write(&[put("k5", "new")]).expect("writes again");
}

#[test]
fn a_write_that_fails() {
    a_full_disk_stops_writes_but_not_reads(false, false);
}

#[test]
fn a_sync_that_fails() {
    a_full_disk_stops_writes_but_not_reads(true, false);
}

/// S18: the store took no writes until the process was started again.
#[test]
fn after_a_failure_the_store_can_be_opened_again() {
    a_full_disk_stops_writes_but_not_reads(false, true);
    a_full_disk_stops_writes_but_not_reads(true, true);
}

/// A store with a switch that makes its disk full.
fn with_switch(directory: &std::path::Path, is_full: bool) -> (crate::Result<RedbStore>, Arc<AtomicBool>) {
    let full = Arc::new(AtomicBool::new(is_full));
    let switch = full.clone();
    let store = RedbStore::open_with(directory, OpenOptions::default(), move |file| {
        Box::new(FullDisk { file, full: full.clone(), only_sync: false })
    });
    (store, switch)
}

/// S18: a disk that stays full, and fills up again and again.
#[test]
fn attempts_without_room_change_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, full) = with_switch(directory.path(), false);
    let store = store.expect("a new store");
    store.reopen().expect("nothing to do");
    assert_eq!(store.life(), 1);
    for round in 0..5 {
        let key = format!("round {round}");
        store.write(&[put(&key, &"v".repeat(10_000))]).expect("there is space");
        full.store(true, Ordering::SeqCst);
        store.write(&[put("lost", &"w".repeat(100_000))]).expect_err("the disk is full");
        for _ in 0..3 {
            store.reopen().expect_err("the disk is still full");
            assert!(store.failure().is_some());
            assert_eq!(
                store.get(Table::Cypress, key.as_bytes()).expect("reads").map(|v| v.len()),
                Some(10_000)
            );
            assert_eq!(store.get(Table::Cypress, b"lost").expect("reads"), None);
        }
        full.store(false, Ordering::SeqCst);
        store.reopen().expect("there is space");
        assert_eq!(store.get(Table::Cypress, b"lost").expect("reads"), None);
    }
    assert_eq!(store.life(), 6);
}

/// S18: reads that began before see what they began with; a writer would take their pages for free.
#[test]
fn reads_that_are_under_way_are_not_disturbed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, full) = with_switch(directory.path(), false);
    let store = store.expect("a new store");
    for i in 0..100 {
        store.write(&[put(&format!("k{i:02}"), &"v".repeat(1000))]).expect("there is space");
    }
    full.store(true, Ordering::SeqCst);
    store.write(&[put("lost", "w")]).expect_err("the disk is full");
    full.store(false, Ordering::SeqCst);
    let mut seen = 0;
    let all = std::ops::Bound::Unbounded;
    let scan = store.scan(Table::Cypress, all, all, false, &mut |_, value| {
        let refused = store.reopen().expect_err("a read is under way").to_string();
        assert!(refused.contains("reads are under way"), "{refused}");
        seen += usize::from(value.len() == 1000);
        std::ops::ControlFlow::Continue(())
    });
    scan.expect("read to its end");
    assert_eq!(seen, 100);
    store.reopen().expect("nobody reads");
}

/// S18: a start on a full disk failed, so nothing could be asked until somebody made room.
#[test]
fn a_store_on_a_full_disk_opens_for_reading() {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, _) = with_switch(directory.path(), true);
    assert!(store.is_err(), "there is nothing to read");
    let (store, _) = with_switch(directory.path(), false);
    let store = store.expect("a new store");
    store.write(&[put("k", "v")]).expect("there is space");
    let id = store.cluster_id();
    drop(store);
    for _ in 0..2 {
        let (store, full) = with_switch(directory.path(), true);
        let store = store.expect("it can be read");
        assert!(store.failure().is_some() && store.begin_blob().is_err());
        assert_eq!(store.get(Table::Cypress, b"k").expect("reads").as_deref(), Some(b"v".as_slice()));
        store.write(&[put("k", "w")]).expect_err("the disk is full");
        store.reopen().expect_err("the disk is full");
        full.store(false, Ordering::SeqCst);
        store.reopen().expect("there is space");
        store.write(&[put("k", "v")]).expect("there is space");
        assert_eq!(store.cluster_id(), id);
    }
}

/// The overlay against a plain vector.
#[test]
fn the_overlay_behaves_like_a_file() {
    use redb::StorageBackend as _;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("file");
    let mut model: Vec<u8> = (0..20_000u32).map(|i| (i * 7) as u8).collect();
    std::fs::write(&path, &model).expect("written");
    let original = model.clone();
    let overlay = super::overlay::Overlay::new(std::fs::File::open(&path).expect("open")).expect("overlay");
    let mut random = 1u64;
    for _ in 0..2000 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (a, b) = ((random >> 33) as usize % 30_000, (random >> 20) as usize % 9000);
        match random >> 61 {
            0 => {
                overlay.set_len(a as u64).expect("any length");
                model.resize(a, 0);
            }
            1..=3 if a + b <= model.len() => {
                let data = vec![random as u8; b];
                overlay.write(a as u64, &data).expect("within the length");
                model[a..a + b].copy_from_slice(&data);
            }
            _ => {
                let mut out = vec![0; b];
                let result = overlay.read(a as u64, &mut out);
                assert_eq!(result.is_ok(), a + b <= model.len());
                if result.is_ok() {
                    assert_eq!(out, model[a..a + b]);
                }
            }
        }
    }
    assert_eq!(std::fs::read(&path).expect("still there"), original, "the file itself never changes");
}
