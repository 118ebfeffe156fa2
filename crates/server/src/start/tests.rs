//! Starts over real directories.

use super::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use store::Batch;
use vocab::{Guid, OperationId};

fn config(data: &Path) -> ServerConfig {
    ServerConfig::new(ADDRESS.parse().expect("an address"), data.to_owned())
}

const ADDRESS: &str = "127.0.0.1:1";

fn started(config: &ServerConfig) -> anyhow::Result<Started> {
    start(config, ADDRESS.parse().expect("an address"))
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

const MARKER: &str = "Marker-of-the-vault";

/// A cluster with a vault in clear, as release 0.1 has written it.
fn with_clear_vault(data: &Path) {
    let first = started(&config(data)).expect("a first start");
    let vault = yson::map! { "word" => MARKER };
    let record =
        yson::map! { "user" => "ann", "spec" => yson::map! { "title" => "t" }, "secure_vault" => vault };
    let id = OperationId(Guid([7, 0, 0x103e8, 0]));
    let mut batch = Batch::new();
    batch.put(Table::Operations, [&id.0.to_bytes()[..], b"s"].concat(), yson::to_binary(&record.into()));
    first.store.write(&[batch]).expect("written");
}

fn put(data: &Path, table: Table, key: &[u8], value: Option<&str>) {
    let store = RedbStore::open(data).expect("a store");
    let mut batch = Batch::new();
    match value {
        Some(value) => batch.put(table, key, value),
        None => batch.delete(table, key),
    }
    store.write(&[batch]).expect("written");
}

/// The error said that nothing was changed, when all vaults had been encrypted and an earlier version had lost them.
#[test]
fn a_start_that_is_refused_leaves_every_byte_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path();
    with_clear_vault(data);
    put(data, Table::Pools, b"no id of an object", Some("damaged"));
    for left in ["vault.key.draft", "store.redb.draft", "blobs/7.part"] {
        std::fs::write(data.join(left), "left by a crash").expect("written");
    }
    let before = contents(data);
    for (new_vault_key, abandon_locked_vaults) in [(false, false), (true, false), (true, true)] {
        let config = ServerConfig { new_vault_key, abandon_locked_vaults, ..config(data) };
        let refusal = format!("{:#}", started(&config).err().expect("a damaged record"));
        assert!(refusal.contains("Nothing was changed"), "{refusal}");
        assert_eq!(contents(data).keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
        assert!(contents(data) == before, "the bytes of a file have changed");
    }
    // The other reasons.
    put(data, Table::Pools, b"no id of an object", None);
    let authority = data.join(node_authority::FILE);
    let right = std::fs::read(&authority).expect("there");
    std::fs::write(&authority, "damaged").expect("written");
    let before = contents(data);
    started(&config(data)).err().expect("a damaged authority");
    assert!(contents(data) == before, "the bytes of a file have changed");
    std::fs::write(&authority, right).expect("restored");
    let tokens = directory.path().join("tokens");
    let wrong = ServerConfig { tokens_file: Some(tokens), ..config(data) };
    let before = contents(data);
    started(&wrong).err().expect("no tokens");
    assert!(contents(data) == before, "the bytes of a file have changed");
    // And a start that is not refused.
    let store = started(&config(data)).expect("started").store;
    assert!(store.failure().is_none());
    drop(store);
    let after = contents(data);
    assert!(!after.keys().any(|file| file.to_string_lossy().ends_with(".draft")));
    let has_marker = |bytes: &Vec<u8>| bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes());
    assert!(!after.values().any(has_marker), "the vault is encrypted now");
}

/// A first start writes what it needs, and the next one finds it.
#[test]
fn a_first_start_and_the_next_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = started(&config(directory.path())).expect("a first start");
    let (id, key) = (first.store.cluster_id(), first.vaults.current());
    let digest = first.authority.digest();
    assert!(first.begin.is_ok() && key.is_some());
    drop(first);
    let next = started(&config(directory.path())).expect("the next one");
    assert_eq!((next.store.cluster_id(), next.vaults.current(), next.store.life()), (id, key, 2));
    assert_eq!(next.authority.digest(), digest);
}

/// S18: what a start does with the store when the key of vaults does not fit on the disk. tests/faults/test_full_disk.py does so
/// with a disk that is full.
#[test]
fn a_store_that_was_started_to_read_is_written_when_there_is_room() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path();
    drop(started(&config(data)).expect("a first start"));
    let store = RedbStore::look(data, OpenOptions::default()).expect("a store");
    store.start_to_read("No space left on device".to_owned()).expect("for reading");
    let refused = store.write(&[Batch::new()]).expect_err("it cannot be written").to_string();
    assert!(refused.contains("No space left"), "{refused}");
    store.reopen().expect("there is room");
    store.write(&[Batch::new()]).expect("written");
    assert!(is_lack_of_room(&ErrorKind::StorageFull.into()) && !is_lack_of_room(&ErrorKind::NotFound.into()));
}
