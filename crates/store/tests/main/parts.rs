//! A data directory that is not that of one whole cluster (S17).

use std::fs;
use std::path::Path;
use store::{Batch, OpenOptions, RedbStore, Store, StoreError, Table};
use tempfile::TempDir;
use vocab::Guid;

const OPTIONS: OpenOptions<'static> =
    OpenOptions { traces: &["root.token", "event-log"], secrets: &["node.token"], new_cluster: false };
const NEW: OpenOptions<'static> = OpenOptions { new_cluster: true, ..OPTIONS };

/// A cluster with a record and a blob, and what the server puts beside them. Its id, and the number of the blob.
fn cluster() -> (TempDir, Guid, u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = RedbStore::open_as(directory.path(), OPTIONS).expect("a new cluster");
    let mut batch = Batch::new();
    batch.put(Table::Cypress, "key", "value");
    store.write(&[batch]).expect("written");
    let blob = blob(&store);
    fs::write(directory.path().join("root.token"), "secret").expect("written");
    fs::write(directory.path().join("node.token"), "secret").expect("written");
    fs::create_dir(directory.path().join("event-log")).expect("made");
    let id = store.cluster_id();
    drop(store);
    (directory, id, blob)
}

fn blob(store: &RedbStore) -> u64 {
    let mut writer = store.begin_blob().expect("space");
    writer.append(b"content").expect("space");
    writer.finish().expect("space")
}

/// Names of all files below a directory.
fn names(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let name = entry.file_name().into_string().expect("a text");
        match entry.path().is_dir() {
            true => found.extend(names(&entry.path()).iter().map(|below| format!("{name}/{below}"))),
            false => found.push(name),
        }
    }
    found.sort();
    found
}

/// It is refused with these words, twice, and nothing goes.
fn refused(directory: &TempDir, words: &[&str]) {
    let before = names(directory.path());
    for _ in 0..2 {
        let error = RedbStore::open_as(directory.path(), OPTIONS).err().expect("it is not whole");
        assert!(matches!(error, StoreError::NotWhole { .. }), "{error:?}");
        let text = error.to_string();
        let path = directory.path().display().to_string();
        for word in words.iter().chain(&[path.as_str(), "backup", "--new-cluster"]) {
            assert!(text.contains(word), "no {word:?} in {text}");
        }
    }
    let after = names(directory.path());
    assert!(before.iter().all(|name| after.contains(name)), "{before:?} {after:?}");
    for name in after.iter().filter(|name| !before.contains(name)) {
        assert!(["lock", "store.redb"].contains(&name.as_str()), "{name}");
    }
}

/// S17: a new cluster was begun in silence, and all blobs were removed.
#[test]
fn a_store_that_is_missing_or_empty_beside_blobs_or_tokens_is_refused() {
    let (directory, ..) = cluster();
    let store = directory.path().join("store.redb");
    fs::remove_file(&store).expect("it was there");
    refused(&directory, &["store.redb is missing", "cluster_id, blobs, root.token, event-log"]);
    for content in [vec![], vec![0; 1 << 16]] {
        fs::write(&store, content).expect("written");
        refused(&directory, &["store.redb is empty", "blobs"]);
    }
    for left in ["blobs", "root.token", "event-log", "cluster_id"] {
        let (directory, ..) = cluster();
        for name in ["store.redb", "blobs", "root.token", "event-log", "cluster_id"] {
            let path = directory.path().join(name);
            match path.is_dir() {
                _ if name == left => {}
                true => fs::remove_dir_all(path).expect("it was there"),
                false => fs::remove_file(path).expect("it was there"),
            }
        }
        refused(&directory, &["store.redb is missing", left]);
    }
}

/// S17.
#[test]
fn a_store_without_its_blobs_or_ids_is_refused() {
    let (directory, id, _) = cluster();
    let (blobs, elsewhere) = (directory.path().join("blobs"), directory.path().join("elsewhere"));
    fs::rename(&blobs, &elsewhere).expect("moved");
    refused(&directory, &["blobs is missing"]);
    // A disk that is not mounted.
    fs::create_dir(&blobs).expect("made");
    refused(&directory, &["blobs/cluster_id is missing", &id.to_string()]);
    fs::remove_dir(&blobs).expect("empty");
    fs::rename(&elsewhere, &blobs).expect("moved back");
    let file = directory.path().join("cluster_id");
    fs::remove_file(&file).expect("it was there");
    refused(&directory, &["cluster_id is missing", &id.to_string()]);
    // What the error says.
    fs::write(&file, format!("{id}\n")).expect("written");
    let store = RedbStore::open_as(directory.path(), OPTIONS).expect("whole again");
    assert_eq!((store.cluster_id(), store.get(Table::Cypress, b"key").expect("reads").is_some()), (id, true));
    drop(store);
    fs::write(&file, "not an id").expect("written");
    let text = RedbStore::open_as(directory.path(), OPTIONS).err().expect("damaged").to_string();
    assert!(text.contains("cluster_id") && text.contains("not an id"), "{text}");
}

/// S17.
#[test]
fn parts_of_different_clusters_are_refused() {
    for part in ["store.redb", "cluster_id", "blobs/cluster_id"] {
        let ((first, id, _), (second, other, _)) = (cluster(), cluster());
        fs::copy(second.path().join(part), first.path().join(part)).expect("copied");
        refused(&first, &[&id.to_string(), &other.to_string()]);
    }
}

/// S17.
#[test]
fn a_new_cluster_is_begun_on_purpose_and_keeps_what_was_there() {
    let (directory, id, blob) = cluster();
    fs::write(directory.path().join("own.toml"), "of the operator").expect("written");
    fs::remove_file(directory.path().join("store.redb")).expect("it was there");
    let store = RedbStore::open_as(directory.path(), NEW).expect("a new cluster");
    assert!(store.cluster_id() != id && store.is_adopted());
    assert_eq!((store.life(), store.get(Table::Cypress, b"key").expect("reads")), (1, None));
    let folder = store.moved_aside().expect("there was something").to_owned();
    assert!(folder.starts_with(directory.path()));
    let blob = format!("blobs/{blob:016x}");
    assert_eq!(names(&folder), [&blob, "blobs/cluster_id", "cluster_id", "node.token", "root.token"]);
    assert!(directory.path().join("own.toml").exists());
    let id = store.cluster_id();
    drop(store);
    // The option stays in the configuration of a service.
    let store = RedbStore::open_as(directory.path(), NEW).expect("whole");
    assert_eq!((store.cluster_id(), store.moved_aside()), (id, None));
}

/// S17: an empty directory, whatever else lies in it, is a new cluster's; so is one whose first start was killed.
#[test]
fn an_empty_directory_starts_a_new_cluster() {
    let interrupted: [&dyn Fn(&Path); 4] = [
        &|_| {},
        &|path| fs::write(path.join("store.redb"), "").expect("written"),
        &|path| fs::write(path.join("store.redb"), vec![0; 1 << 20]).expect("written"),
        &|path| {
            drop(redb::Database::create(path.join("store.redb")).expect("a database"));
            fs::create_dir(path.join("lost+found")).expect("made");
            fs::write(path.join("node.token"), "prepared").expect("written");
        },
    ];
    for prepare in interrupted {
        let directory = tempfile::tempdir().expect("a directory");
        prepare(directory.path());
        let id = RedbStore::open_as(directory.path(), OPTIONS).expect("a new cluster").cluster_id();
        let text = |name: &str| fs::read_to_string(directory.path().join(name)).expect("written");
        assert_eq!((text("cluster_id"), text("blobs/cluster_id")), (format!("{id}\n"), format!("{id}\n")));
        let store = RedbStore::open_as(directory.path(), OPTIONS).expect("opened again");
        assert_eq!((store.cluster_id(), store.life(), store.is_adopted()), (id, 2, true));
    }
}

/// Makes the directory one of release 0.1, which has no ids.
fn of_release_0_1(directory: &Path) {
    for file in ["cluster_id", "blobs/cluster_id"] {
        fs::remove_file(directory.join(file)).expect("it was there");
    }
    forget(directory, &["cluster_id", "cluster_id_placed"]);
}

fn forget(directory: &Path, keys: &[&str]) {
    let database = redb::Database::open(directory.join("store.redb")).expect("a database");
    let transaction = database.begin_write().expect("a transaction");
    let own = redb::TableDefinition::<&[u8], &[u8]>::new("store");
    {
        let mut own = transaction.open_table(own).expect("a table");
        for key in keys {
            own.remove(key.as_bytes()).expect("removed");
        }
    }
    transaction.commit().expect("committed");
}

/// S17: whoever knows the references says whether store and blobs fit, at this start or at a later one.
#[test]
fn data_of_release_0_1_is_adopted_once() {
    let (directory, _, blob) = cluster();
    of_release_0_1(directory.path());
    let store = RedbStore::open_as(directory.path(), OPTIONS).expect("of release 0.1");
    assert_eq!((store.is_adopted(), store.known_life()), (false, 1));
    assert!(!directory.path().join("cluster_id").exists(), "nobody has looked yet");
    let id = store.cluster_id();
    drop(store);
    let store = RedbStore::open_as(directory.path(), OPTIONS).expect("still not adopted");
    assert_eq!((store.is_adopted(), store.cluster_id()), (false, id));
    store.adopt().expect("space");
    assert!(store.is_adopted());
    drop(store);
    let store = RedbStore::open_as(directory.path(), OPTIONS).expect("adopted");
    assert_eq!((store.is_adopted(), store.cluster_id()), (true, id));
    assert_eq!(store.blob_ids().expect("listed"), [blob]);
}

/// S17.
#[test]
fn data_of_release_0_1_without_blobs_or_with_those_of_another_cluster_is_refused() {
    let (directory, ..) = cluster();
    of_release_0_1(directory.path());
    fs::rename(directory.path().join("blobs"), directory.path().join("elsewhere")).expect("moved");
    refused(&directory, &["blobs is missing"]);
    let (other, id, _) = cluster();
    fs::rename(other.path().join("blobs"), directory.path().join("blobs")).expect("moved");
    refused(&directory, &["release 0.1", &id.to_string()]);
}

/// S17: the operator looked, and wrote the ids as the error says.
#[test]
fn ids_that_are_written_by_hand_are_an_answer() {
    let (directory, ..) = cluster();
    of_release_0_1(directory.path());
    let id = RedbStore::open_as(directory.path(), OPTIONS).expect("of release 0.1").cluster_id();
    fs::write(directory.path().join("cluster_id"), id.to_string()).expect("written");
    fs::write(directory.path().join("blobs/cluster_id"), id.to_string()).expect("written");
    assert!(RedbStore::open_as(directory.path(), OPTIONS).expect("adopted").is_adopted());
    // A start that was refused has told an id, and has not put it into the store.
    let (directory, _, blob) = cluster();
    of_release_0_1(directory.path());
    let id = RedbStore::look(directory.path(), OPTIONS).expect("of release 0.1").cluster_id();
    fs::write(directory.path().join("cluster_id"), id.to_string()).expect("written");
    fs::write(directory.path().join("blobs/cluster_id"), id.to_string()).expect("written");
    let store = RedbStore::open_as(directory.path(), OPTIONS).expect("adopted");
    assert_eq!((store.is_adopted(), store.cluster_id()), (true, id));
    drop(store);
    // A store of release 0.1 among the blobs of a cluster that has gone on is not that cluster's.
    of_release_0_1(directory.path());
    let name = format!("{:016x}", blob + (7 << 32));
    fs::write(directory.path().join("blobs").join(name), "of a later life").expect("written");
    for folder in ["", "blobs/"] {
        fs::write(directory.path().join(folder).join("cluster_id"), id.to_string()).expect("written");
    }
    refused(&directory, &["release 0.1", &id.to_string()]);
}

/// S17: a blob of a newer store must not be overwritten by the older copy's next one.
#[test]
fn an_older_copy_of_the_store_gives_no_id_twice() {
    let (directory, ..) = cluster();
    let (path, copy) = (directory.path().join("store.redb"), directory.path().join("copy"));
    fs::copy(&path, &copy).expect("copied");
    let lives = 5;
    let newest =
        (1..lives).map(|_| blob(&RedbStore::open_as(directory.path(), OPTIONS).expect("whole"))).max();
    fs::rename(&copy, &path).expect("restored");
    let store = RedbStore::open_as(directory.path(), OPTIONS).expect("the same cluster");
    assert_eq!((store.known_life(), store.life()), (1, lives + 1));
    assert!(store.get(Table::Cypress, b"key").expect("reads").is_some());
    assert!(Some(blob(&store)) > newest);
}
