//! Vaults in real store files.

use super::*;
use std::path::PathBuf;
use std::sync::Arc;
use store::OpenOptions;
use vocab::{Guid, OperationId};
use yson::Value;

const MARKER: &[u8] = b"Marker-of-the-vault";

fn id(number: u32) -> OperationId {
    OperationId(Guid([number, 0, 0x103e8, 0]))
}

fn key(operation: OperationId, part: u8) -> Vec<u8> {
    [&operation.0.to_bytes()[..], &[part]].concat()
}

fn vault() -> Value {
    yson::map! { "word" => String::from_utf8_lossy(MARKER).into_owned() }.into()
}

/// What a version without encryption has written: operations with vaults, of which all but three are over.
fn clear_store(directory: &Path) {
    let store = RedbStore::open(directory).expect("a new store");
    for number in 0..200 {
        let mut batch = Batch::new();
        let record = yson::map! { "user" => "ann", "spec" => yson::map! { "number" => number }, "secure_vault" => vault() };
        batch.put(Table::Operations, key(id(number), b's'), yson::to_binary(&record.into()));
        batch.put(Table::Operations, key(id(number), b'd'), "changing");
        store.write(&[batch]).expect("written");
    }
    let mut batch = Batch::new();
    (3..200).for_each(|number| batch.delete_prefix(Table::Operations, id(number).0.to_bytes()));
    // One that was shown with its vault after a restart, and archived so.
    let spec = yson::map! { "title" => "archived", "secure_vault" => vault() };
    let archived = yson::map! { "spec" => spec.clone(), "provided_spec" => spec, "state" => "completed" };
    batch.put(Table::OperationArchive, id(3).0.to_bytes(), yson::to_binary(&archived.into()));
    store.write(&[batch]).expect("written");
}

fn has_marker(directory: &Path) -> bool {
    let bytes = std::fs::read(directory.join("store.redb")).expect("there");
    bytes.windows(MARKER.len()).any(|window| window == MARKER)
}

fn records(store: &dyn Store) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        all.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    };
    store.scan(Table::Operations, Bound::Unbounded, Bound::Unbounded, false, &mut visit).expect("read");
    all
}

const USUAL: Orders = Orders { new_key: false, abandon: false };
const ROTATE: Orders = Orders { new_key: true, abandon: false };
const ABANDON: Orders = Orders { new_key: false, abandon: true };

/// What a start does, without the kernel.
fn started(directory: &Path, orders: Orders) -> anyhow::Result<(RedbStore, VaultKeys)> {
    let store = RedbStore::look(directory, OpenOptions::default())?;
    let keys = prepare(directory, orders)?;
    let (_, found) = read(&store, &keys)?;
    if let Some(refusal) = found.refusal(&keys).filter(|_| !orders.abandon) {
        anyhow::bail!(refusal);
    }
    keys.write()?;
    store.start()?;
    keys.take_over(&store, &found, During::Start)?;
    Ok((store, keys))
}

/// Vaults lay in the store in clear, and in its free pages after the end of their operations.
#[test]
fn a_store_with_clear_vaults_is_taken_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    clear_store(path);
    assert!(has_marker(path));
    let (store, keys) = started(path, USUAL).expect("taken over");
    let all = records(&store);
    assert_eq!(all.len(), 9, "static and changing part and vault of three operations");
    for number in 0..3 {
        let record = yson::parse(&all[&key(id(number), b's')]).expect("a record");
        let spec = yson::map! {
            "user" => "ann", "spec" => yson::map! { "number" => number }, "has_secure_vault" => true,
        };
        assert_eq!(record, Value::Map(spec), "nothing else has changed");
        let sealed = &all[&key(id(number), b'v')];
        let clear = keys.open(&key(id(number), b'v'), sealed).expect("decrypted");
        assert_eq!(yson::parse(&clear).expect("a map"), vault());
        assert!(keys.open(&key(id(number + 1), b'v'), sealed).is_err(), "of another operation");
    }
    let archived = store.get(Table::OperationArchive, &id(3).0.to_bytes()).expect("read").expect("there");
    let archived = yson::parse(&archived).expect("a record");
    let spec = yson::map! { "title" => "archived" };
    let expected = yson::map! { "spec" => spec.clone(), "provided_spec" => spec, "state" => "completed" };
    assert_eq!(archived, Value::Map(expected));
    assert!(!has_marker(path), "while the store is open");
    drop(store);
    assert!(!has_marker(path));
    // Once is enough.
    let (store, _) = started(path, USUAL).expect("opened");
    let noted = store.note(ENCRYPTED).expect("read").expect("noted");
    assert_eq!(noted, keys.current().expect("a key").to_string().into_bytes());
    assert_eq!(records(&store), all);
}

/// Nothing of a vault gets into the file of a store that is written through [`SealingStore`].
#[test]
fn vaults_are_encrypted_before_the_store_gets_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, keys) = started(directory.path(), USUAL).expect("a new store");
    let (store, keys) = (Arc::new(store), Arc::new(keys));
    let sealing = SealingStore::new(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&keys));
    let clear = yson::to_binary(&vault());
    let mut batch = Batch::new();
    batch.put(Table::Operations, key(id(1), b's'), "static");
    batch.put(Table::Operations, key(id(1), b'v'), clear.clone());
    batch.put(Table::OperationArchive, key(id(1), b'v'), "no vault");
    sealing.write(&[Batch::new(), batch]).expect("written");
    let of_vault = key(id(1), b'v');
    let lies = sealing.get(Table::Operations, &of_vault).expect("read").expect("there");
    assert_eq!(keys.open(&of_vault, &lies).expect("decrypted"), clear);
    assert_eq!(
        sealing.get(Table::Operations, &key(id(1), b's')).expect("read").as_deref(),
        Some(&b"static"[..])
    );
    assert_eq!(
        sealing.get(Table::OperationArchive, &of_vault).expect("read").as_deref(),
        Some(&b"no vault"[..])
    );
    drop(sealing);
    drop(store);
    assert!(!has_marker(directory.path()));
}

fn with_vault(directory: &Path) {
    let (store, keys) = started(directory, USUAL).expect("a new store");
    let of_vault = key(id(1), b'v');
    let mut batch = Batch::new();
    batch.put(Table::Operations, of_vault.clone(), keys.seal(&of_vault, b"{a=b}").expect("sealed"));
    store.write(&[batch]).expect("written");
}

#[test]
fn a_server_without_the_key_of_a_vault_does_not_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    with_vault(path);
    let file = path.join(FILE);
    let right = std::fs::read_to_string(&file).expect("there");
    std::fs::remove_file(&file).expect("removed");
    let refusal = started(path, USUAL).err().expect("refused").to_string();
    for part in ["unfinished operations (1)", "vault.key is missing", "--abandon-locked-vaults", "backup"] {
        assert!(refusal.contains(part), "{part:?} is not in {refusal:?}");
    }
    assert!(!file.exists(), "no key is made that would hide the loss");
    datadir::write_secret(&file, "ab".repeat(32)).expect("another key");
    let refusal = started(path, USUAL).err().expect("refused").to_string();
    assert!(refusal.contains("does not have that key"), "{refusal:?}");
    // A new key would not help, and must not cost the operations.
    let keys = std::fs::read(&file).expect("there");
    let refusal = started(path, ROTATE).err().expect("refused").to_string();
    assert!(refusal.contains("--abandon-locked-vaults"), "{refusal:?}");
    assert_eq!(std::fs::read(&file).expect("there"), keys, "nothing was changed");
    datadir::write_secret(&file, &right[..right.len() - 10]).expect("a damaged file");
    let refusal = started(path, USUAL).err().expect("refused").to_string();
    assert!(refusal.contains("line 3") && refusal.contains("--abandon-locked-vaults"), "{refusal:?}");
    // The right file again, and all is well.
    datadir::write_secret(&file, &right).expect("restored");
    let (store, keys) = started(path, USUAL).expect("started");
    let of_vault = key(id(1), b'v');
    let lies = store.get(Table::Operations, &of_vault).expect("read").expect("there");
    assert_eq!(keys.open(&of_vault, &lies).expect("decrypted"), b"{a=b}");
}

#[test]
fn a_lost_key_is_given_up_on_demand() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    with_vault(path);
    datadir::write_secret(&path.join(FILE), "damaged").expect("written");
    let (store, keys) = started(path, ABANDON).expect("started");
    let of_vault = key(id(1), b'v');
    let lies = store.get(Table::Operations, &of_vault).expect("read").expect("there");
    let failure = keys.open(&of_vault, &lies).expect_err("its key is lost");
    assert!(failure.message.contains("which is not in vault.key"), "{failure}");
    let aside = std::fs::read_dir(path).expect("there").flatten();
    let aside = aside.filter(|entry| entry.file_name().to_string_lossy().starts_with("vault.key.damaged-"));
    assert_eq!(aside.count(), 1, "the damaged file is kept");
}

#[test]
fn a_new_key_encrypts_all_vaults_and_the_old_one_still_decrypts_a_backup() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    with_vault(path);
    let backup = std::fs::read(path.join("store.redb")).expect("there");
    let before = VaultKeys::read(&path.join(FILE)).expect("read").current();
    let (store, keys) = started(path, ROTATE).expect("started");
    assert_ne!(keys.current(), before);
    let of_vault = key(id(1), b'v');
    let lies = store.get(Table::Operations, &of_vault).expect("read").expect("there");
    assert_eq!(key_of(&lies), keys.current(), "encrypted anew");
    drop(store);
    std::fs::write(path.join("store.redb"), backup).expect("restored");
    let (store, keys) = started(path, USUAL).expect("started");
    let lies = store.get(Table::Operations, &of_vault).expect("read").expect("there");
    assert_eq!(keys.open(&of_vault, &lies).expect("decrypted"), b"{a=b}");
}

/// Rotation dropped the oldest key before the vaults were encrypted with the new one.
#[test]
fn many_new_keys_lose_no_vault() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    with_vault(path);
    let of_vault = key(id(1), b'v');
    // The store could not be written meanwhile: the vault stays with the first key.
    let mut keys = prepare(path, ROTATE).expect("prepared");
    for _ in 0..KEPT + 5 {
        keys.add_new().expect("random numbers");
    }
    keys.write().expect("written");
    let (store, keys) = started(path, ROTATE).expect("started");
    let lies = store.get(Table::Operations, &of_vault).expect("read").expect("there");
    assert_eq!(keys.open(&of_vault, &lies).expect("decrypted"), b"{a=b}");
    assert_eq!(key_of(&lies), keys.current());
    assert_eq!(VaultKeys::read(&path.join(FILE)).expect("read").len(), KEPT, "no record needs the others");
}

/// Free pages hold what an older key has encrypted, and a key that was changed may be known to others.
#[test]
fn after_a_new_key_no_page_has_what_the_old_one_encrypted() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    with_vault(path);
    let of_vault = key(id(1), b'v');
    let has = |sealed: &[u8]| {
        let bytes = std::fs::read(path.join("store.redb")).expect("there");
        bytes.windows(sealed.len()).any(|window| window == sealed)
    };
    let lies = {
        let (store, _) = started(path, USUAL).expect("started");
        store.get(Table::Operations, &of_vault).expect("read").expect("there")
    };
    assert!(has(&lies), "otherwise this test shows nothing");
    drop(started(path, ROTATE).expect("started"));
    assert!(!has(&lies));
}

/// The key was on a disk that is not mounted: a new one was made, and the link replaced.
#[test]
fn a_link_to_a_key_that_is_not_there_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, elsewhere) = (directory.path().join("data"), directory.path().join("mounted.key"));
    std::fs::create_dir(&path).expect("made");
    with_vault(&path);
    let file = path.join(FILE);
    let right: PathBuf = path.join("right");
    std::fs::rename(&file, &right).expect("moved");
    std::os::unix::fs::symlink(&elsewhere, &file).expect("linked");
    for orders in [USUAL, ROTATE, ABANDON] {
        let refusal = started(&path, orders).err().expect("refused").to_string();
        assert!(refusal.contains("vault.key"), "{refusal:?}");
    }
    std::fs::rename(&right, &elsewhere).expect("mounted");
    drop(started(&path, USUAL).expect("started through the link"));
    let refusal = started(&path, ROTATE).err().expect("a link is not replaced").to_string();
    assert!(refusal.contains("symbolic link"), "{refusal:?}");
    assert!(file.is_symlink());
}
