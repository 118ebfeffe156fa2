//! What a second start finds, and what a second process is told.

use redb::ReadableTable as _;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use store::{Batch, MemoryStore, OpenOptions, RedbStore, Store, StoreError, Table};

fn blob(store: &dyn Store, chunks: &[&[u8]]) -> u64 {
    let mut writer = store.begin_blob().expect("space");
    for chunk in chunks {
        writer.append(chunk).expect("space");
    }
    writer.finish().expect("space")
}

fn blobs_behave(store: &dyn Store) {
    let a = blob(store, &[b"hello ", b"", b"world"]);
    let b = blob(store, &[]);
    let c = store.begin_blob().expect("space");
    assert!(a < b && b < c.id());
    let (c_id, _) = (c.id(), drop(c));
    assert_eq!(store.blob_ids().expect("listed"), [a, b]);
    assert_eq!(store.blob_len(a).expect("there"), 11);
    for (offset, len, expected) in [
        (0, 100, "hello world"),
        (6, 3, "wor"),
        (11, 1, ""),
        (u64::MAX, usize::MAX, ""),
        (0, 0, ""),
        (2, usize::MAX, "llo world"),
    ] {
        assert_eq!(store.read_blob(a, offset, len).expect("there"), expected.as_bytes(), "{offset} {len}");
    }
    for missing in [c_id, 17] {
        assert!(matches!(store.read_blob(missing, 0, 1), Err(StoreError::NoSuchBlob(id)) if id == missing));
        assert!(matches!(store.blob_len(missing), Err(StoreError::NoSuchBlob(_))));
    }
    store.delete_blob(b).expect("gone");
    store.delete_blob(b).expect("gone twice");
    assert_eq!(store.blob_ids().expect("listed"), [a]);
}

#[test]
fn blobs() {
    blobs_behave(&MemoryStore::new());
    let directory = tempfile::tempdir().expect("a directory");
    blobs_behave(&RedbStore::open(directory.path()).expect("a new store"));
}

#[test]
fn a_new_life_keeps_blobs_and_gives_new_ids() {
    let directory = tempfile::tempdir().expect("a directory");
    let (id, unfinished) = {
        let store = RedbStore::open(directory.path()).expect("a new store");
        assert_eq!(store.life(), 1);
        let id = blob(&store, &[b"kept"]);
        let mut unfinished = store.begin_blob().expect("space");
        unfinished.append(b"lost").expect("space");
        // As a crash would: the file stays behind.
        let left = unfinished.id();
        std::mem::forget(unfinished);
        (id, left)
    };
    let store = RedbStore::open(directory.path()).expect("opened again");
    assert_eq!(store.life(), 2);
    assert_eq!(store.blob_ids().expect("listed"), [id]);
    assert_eq!(store.read_blob(id, 0, 10).expect("there"), b"kept");
    let new = blob(&store, &[b"new"]);
    assert!(new != id && new != unfinished);
    let files = std::fs::read_dir(directory.path().join("blobs")).expect("a folder").flatten();
    let mut files: Vec<_> = files.map(|file| file.file_name().into_string().expect("a text")).collect();
    files.sort();
    let expected = [format!("{id:016x}"), format!("{new:016x}"), "cluster_id".to_owned()];
    assert_eq!(files, expected, "unfinished blobs are swept");
}

#[test]
fn a_second_process_is_told_who_has_the_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = RedbStore::open(directory.path()).expect("a new store");
    let error = RedbStore::open(directory.path()).err().expect("it is in use");
    let text = error.to_string();
    assert!(text.contains(&format!("in use by another millpond (pid {})", std::process::id())), "{text}");
    assert!(text.contains(&directory.path().display().to_string()), "{text}");
    drop(store);
    RedbStore::open(directory.path()).expect("free again");
}

#[test]
fn another_version_and_another_file_are_refused_with_reasons() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(RedbStore::open(directory.path()).expect("a new store"));
    {
        let database = redb::Database::create(directory.path().join("store.redb")).expect("a database");
        let transaction = database.begin_write().expect("a transaction");
        let definition = redb::TableDefinition::<&[u8], &[u8]>::new("store");
        transaction
            .open_table(definition)
            .expect("a table")
            .insert(b"format_version".as_slice(), b"77".as_slice())
            .expect("put");
        transaction.commit().expect("committed");
    }
    let text = RedbStore::open(directory.path()).err().expect("too new").to_string();
    assert!(text.contains("format version 77") && text.contains("reads 1 to 2"), "{text}");

    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("store.redb"), b"this is not a database, it is a sentence")
        .expect("written");
    let error = RedbStore::open(directory.path()).err().expect("not a store");
    assert!(error.to_string().contains("store.redb"), "{error}");

    let file = directory.path().join("file");
    std::fs::write(&file, b"").expect("written");
    let text = RedbStore::open(&file.join("data")).err().expect("not a directory").to_string();
    assert!(text.contains("Cannot create") && text.contains("file/data"), "{text}");
}

#[test]
fn a_scan_sees_one_snapshot_and_may_use_the_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let redb = RedbStore::open(directory.path()).expect("a new store");
    let memory = MemoryStore::new();
    for store in [&redb as &dyn Store, &memory] {
        let mut batch = Batch::new();
        batch.put(Table::Pools, "a", "1");
        batch.put(Table::Pools, "b", "2");
        store.write(&[batch]).expect("written");
        let mut seen = 0;
        let result =
            store.scan(Table::Pools, Bound::Unbounded, Bound::Unbounded, false, &mut |key, value| {
                assert_eq!(store.get(Table::Pools, key).expect("reads").as_deref(), Some(value));
                let mut more = Batch::new();
                more.put(Table::Pools, "c", "3");
                store.write(&[more]).expect("written");
                seen += 1;
                ControlFlow::Continue(())
            });
        result.expect("scanned");
        assert_eq!(seen, 2);
    }
}

/// What was removed stays in free pages of the file until they are used again.
#[test]
fn a_rewritten_store_has_its_records_and_nothing_that_was_removed() {
    const REMOVED: &[u8] = b"removed and still readable";
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let has_removed = || {
        let bytes = std::fs::read(path.join("store.redb")).expect("there");
        bytes.windows(REMOVED.len()).any(|window| window == REMOVED)
    };
    let blob = {
        let store = RedbStore::open(path).expect("a new store");
        let mut batch = Batch::new();
        (0..1000u32).for_each(|n| batch.put(Table::Meta, n.to_be_bytes(), REMOVED));
        (0..1000u32).for_each(|n| batch.put(Table::Nodes, n.to_be_bytes(), n.to_string()));
        store.write(&[batch]).expect("written");
        let mut batch = Batch::new();
        batch.delete_prefix(Table::Meta, b"".as_slice());
        store.write(&[batch]).expect("written");
        blob(&store, &[b"kept"])
    };
    assert!(has_removed(), "otherwise this test shows nothing");
    std::fs::write(path.join("store.redb.draft"), "left by a crash").expect("written");
    let store = RedbStore::open(path).expect("a store");
    assert!(!path.join("store.redb.draft").exists());
    let (life, id) = (store.life(), store.cluster_id());
    // Not while somebody reads.
    let mut refused = None;
    store
        .scan(Table::Nodes, Bound::Unbounded, Bound::Unbounded, false, &mut |_, _| {
            refused = Some(store.rewrite_once("test", b"1"));
            ControlFlow::Break(())
        })
        .expect("read");
    assert!(matches!(refused, Some(Err(StoreError::Poisoned { .. }))), "{refused:?}");
    assert!(has_removed() && store.rewrite_once("test", b"1").expect("rewritten"));
    assert!(!has_removed());
    assert!(!store.rewrite_once("test", b"1").expect("noted"), "once");
    assert!(store.rewrite_once("test", b"2").expect("rewritten"));
    let check = |store: &RedbStore| {
        let mut count = 0u32;
        let mut visit = |key: &[u8], value: &[u8]| {
            assert_eq!((key, value), (count.to_be_bytes().as_slice(), count.to_string().as_bytes()));
            count += 1;
            ControlFlow::Continue(())
        };
        store.scan(Table::Nodes, Bound::Unbounded, Bound::Unbounded, false, &mut visit).expect("read");
        assert_eq!(count, 1000);
        assert_eq!(store.read_blob(blob, 0, 100).expect("there"), b"kept");
        assert_eq!(store.cluster_id(), id);
    };
    check(&store);
    assert_eq!(store.life(), life);
    let mut batch = Batch::new();
    batch.put(Table::Meta, b"k".as_slice(), "written after it");
    store.write(&[batch]).expect("written");
    drop(store);
    let store = RedbStore::open(path).expect("opened again");
    check(&store);
    assert_eq!(store.life(), life + 1);
    assert_eq!(store.get(Table::Meta, b"k").expect("read").as_deref(), Some(&b"written after it"[..]));
    assert!(!store.rewrite_once("test", b"2").expect("noted"), "over a restart, too");
}

/// Every file of a directory with its bytes, but the lock, which has the process in it.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                all.insert(path.clone(), Vec::new());
                folders.push(path);
            } else if entry.file_name() != "lock" {
                all.insert(path.clone(), std::fs::read(&path).expect("read"));
            }
        }
    }
    all
}

/// S17: a start that is refused leaves everything as it was.
#[test]
fn a_look_reads_what_a_start_finds_and_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let looked = RedbStore::look(path, OpenOptions::default()).expect("an empty directory");
    assert_eq!(contents(path), BTreeMap::new(), "of a first start");
    assert!(looked.blob_ids().expect("none").is_empty() && looked.is_whole() && looked.failure().is_some());
    let id = looked.cluster_id();
    looked.start().expect("started");
    assert_eq!((looked.cluster_id(), looked.life()), (id, 1));
    let mut batch = Batch::new();
    batch.put(Table::Nodes, b"k".as_slice(), "v");
    looked.write(&[batch.clone()]).expect("written");
    let kept = blob(&looked, &[b"kept"]);
    drop(looked);
    for left in ["blobs/7.part", "store.redb.draft"] {
        std::fs::write(path.join(left), "left by a crash").expect("written");
    }
    let before = contents(path);
    let looked = RedbStore::look(path, OpenOptions::default()).expect("a store");
    assert_eq!(looked.get(Table::Nodes, b"k").expect("read").as_deref(), Some(&b"v"[..]));
    assert_eq!((looked.life(), looked.cluster_id()), (2, id));
    assert_eq!(looked.blob_ids().expect("listed"), [kept]);
    assert!(
        matches!(looked.write(&[batch]), Err(StoreError::Poisoned { .. })) && looked.begin_blob().is_err()
    );
    drop(looked);
    assert_eq!(contents(path), before);
    let store = RedbStore::open(path).expect("opened");
    assert_eq!((store.life(), store.cluster_id()), (2, id));
    let left = contents(path);
    assert!(!left.keys().any(|file| file.to_string_lossy().contains(".part") || file.to_string_lossy().contains(".draft")));
}

fn format_version(directory: &Path, wanted: Option<&str>) -> Vec<u8> {
    let database = redb::Database::create(directory.join("store.redb")).expect("a database");
    let definition = redb::TableDefinition::<&[u8], &[u8]>::new("store");
    let transaction = database.begin_write().expect("a transaction");
    let found = {
        let mut table = transaction.open_table(definition).expect("a table");
        if let Some(wanted) = wanted {
            table.insert(b"format_version".as_slice(), wanted.as_bytes()).expect("put");
        }
        let found = table.get(b"format_version".as_slice()).expect("read").expect("there");
        found.value().to_vec()
    };
    transaction.commit().expect("committed");
    found
}

/// A program of release 0.1 takes encrypted vaults for damaged records: it must refuse the store.
#[test]
fn a_store_of_release_0_1_gets_the_version_that_release_0_1_refuses() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    drop(RedbStore::open(path).expect("a new store"));
    assert_eq!(format_version(path, Some("1")), b"1");
    drop(RedbStore::look(path, OpenOptions::default()).expect("a store of release 0.1"));
    assert_eq!(format_version(path, None), b"1", "a look takes nothing over");
    drop(RedbStore::open(path).expect("a store of release 0.1"));
    assert_eq!(format_version(path, None), b"2");
    drop(RedbStore::open(path).expect("opened again"));
}

/// The store may lie on another disk: its copy must not move to that of the link.
#[test]
fn a_store_behind_a_link_is_rewritten_where_it_lies() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, disk) = (directory.path().join("data"), directory.path().join("disk"));
    std::fs::create_dir(&disk).expect("made");
    drop(RedbStore::open(&path).expect("a new store"));
    let (link, target) = (path.join("store.redb"), disk.join("far.redb"));
    std::fs::rename(&link, &target).expect("moved");
    std::os::unix::fs::symlink("../disk/far.redb", &link).expect("linked");
    std::fs::write(disk.join("far.redb.draft"), "left by a crash").expect("written");
    let inode = || std::os::unix::fs::MetadataExt::ino(&target.metadata().expect("there"));
    let before = inode();
    let store = RedbStore::open(&path).expect("opened through the link");
    assert!(!disk.join("far.redb.draft").exists());
    assert!(store.rewrite_once("test", b"1").expect("rewritten"));
    assert!(link.symlink_metadata().expect("there").is_symlink(), "the link stays");
    assert_ne!(inode(), before, "another file");
    drop(store);
    let store = RedbStore::open(&path).expect("opened again");
    assert!(!store.rewrite_once("test", b"1").expect("noted"));
    assert_eq!(std::fs::read_dir(&disk).expect("a folder").count(), 1);
}
