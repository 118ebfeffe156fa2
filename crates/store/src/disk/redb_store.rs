//! [`Store`] over redb.
//!
//! One commit is one sync of the file (single-phase commit: the new root carries a checksum of the
//! tree, so a torn commit is recognised and the one before it is used). A clean exit leaves a file
//! that opens at once; after a crash redb walks the whole file to check it, two or three seconds for
//! a gigabyte. Its "quick repair" would avoid that walk but doubles the cost of every commit, so it
//! stays off.
//!
//! Keys that are near each other are cheap to write together: a group touches few pages. Random keys
//! in a table much larger than the cache cost ten times as much.

use super::blobs::{Blobs, sync_folder};
use super::errors::explain;
use super::lock::DirectoryLock;
use super::overlay::Overlay;
use crate::store::is_empty_range;
use crate::{BlobWriter, Result, Store, StoreError, prefix_end};
use redb::{
    Database, ReadableDatabase as _, ReadableTable as _, StorageBackend, TableDefinition, WriteTransaction,
};
use std::fs::{DirBuilder, File};
use std::ops::{Bound, ControlFlow};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use vocab::{Batch, Op, Table};

/// Layout of the data directory; another number is refused.
pub(super) const FORMAT_VERSION: u32 = 1;

/// Memory for pages of the file, read and written.
const CACHE_BYTES: usize = 128 << 20;

type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

/// The store's own records; not a [`Table`], so that no batch can touch them.
const OWN: Definition = TableDefinition::new("store");

const fn definition(table: Table) -> Definition {
    TableDefinition::new(table.as_str())
}

/// The durable store in one data directory; see the module page.
pub struct RedbStore {
    path: PathBuf,
    state: RwLock<State>,
    blobs: Blobs,
    life: u64,
    _lock: DirectoryLock,
}

struct State {
    database: Arc<Database>,
    /// The first failed write; `database` is then a view without the right to write.
    poisoned: Option<String>,
}

impl RedbStore {
    /// Opens a data directory, creating it if it does not exist (readable for this user only: it
    /// will hold users' secrets), and starts a new life in it.
    pub fn open(directory: &Path) -> Result<RedbStore> {
        RedbStore::open_with(directory, |file| Box::new(file))
    }

    /// [`RedbStore::open`] with something between redb and its file.
    pub(super) fn open_with(
        directory: &Path,
        wrap: impl FnOnce(redb::backends::FileBackend) -> Box<dyn StorageBackend>,
    ) -> Result<RedbStore> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(StoreError::io("create", directory))?;
        let lock = DirectoryLock::acquire(directory)?;
        let path = directory.join("store.redb");
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(StoreError::io("open", &path))?;
        let backend = wrap(redb::backends::FileBackend::new(file).map_err(explain("open", &path))?);
        let database = builder().create_with_backend(Boxed(backend)).map_err(explain("open", &path))?;
        let life = begin_life(&database, directory, &path)?;
        sync_folder(directory)?;
        Ok(RedbStore {
            state: RwLock::new(State { database: Arc::new(database), poisoned: None }),
            blobs: Blobs::open(directory.join("blobs"), life)?,
            path,
            life,
            _lock: lock,
        })
    }

    fn database(&self) -> Arc<Database> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).database.clone()
    }

    fn refuse_if_poisoned(&self) -> Result<()> {
        match &self.state.read().unwrap_or_else(PoisonError::into_inner).poisoned {
            Some(cause) => Err(StoreError::Poisoned { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Remembers the failure and goes on with a view of what the file holds.
    fn poison(&self, cause: &StoreError) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.poisoned.is_some() {
            return;
        }
        state.poisoned = Some(cause.to_string());
        let view = File::open(&self.path)
            .and_then(Overlay::new)
            .map_err(|_| ())
            .and_then(|overlay| builder().create_with_backend(overlay).map_err(|_| ()));
        // If even this fails the disk is gone, and reads give their own errors.
        if let Ok(view) = view {
            state.database = Arc::new(view);
        }
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Checks the version, creates the tables, counts the life up.
fn begin_life(database: &Database, directory: &Path, path: &Path) -> Result<u64> {
    let transaction = database.begin_write().map_err(explain("open", path))?;
    let life = {
        let mut own = transaction.open_table(OWN).map_err(explain("open", path))?;
        let read = |key: &str| -> Result<Option<Vec<u8>>> {
            let found = own.get(key.as_bytes()).map_err(explain("read", path))?;
            Ok(found.map(|v| v.value().to_vec()))
        };
        let supported = FORMAT_VERSION.to_string();
        let version = read("format_version")?;
        if let Some(found) = version.filter(|v| v != supported.as_bytes()) {
            let found = String::from_utf8_lossy(&found).into_owned();
            return Err(StoreError::Version { path: directory.to_owned(), found, supported: FORMAT_VERSION });
        }
        let life = match read("life")? {
            None => 1,
            Some(bytes) => match <[u8; 8]>::try_from(bytes.as_slice()) {
                Ok(b) => u64::from_be_bytes(b) + 1,
                Err(_) => {
                    let detail = format!("the record of lives has {} bytes instead of 8", bytes.len());
                    return Err(StoreError::Corrupt { path: path.to_owned(), detail });
                }
            },
        };
        own.insert(b"format_version".as_slice(), supported.as_bytes()).map_err(explain("write", path))?;
        own.insert(b"life".as_slice(), life.to_be_bytes().as_slice()).map_err(explain("write", path))?;
        life
    };
    for table in Table::ALL {
        transaction.open_table(definition(*table)).map_err(explain("open", path))?;
    }
    transaction.commit().map_err(explain("write", path))?;
    Ok(life)
}

fn apply(transaction: &WriteTransaction, batches: &[Batch]) -> std::result::Result<(), redb::Error> {
    // Opening a table is a look-up; each one is opened once for a whole group.
    let mut tables = std::collections::BTreeMap::new();
    for op in batches.iter().flat_map(|b| &b.ops) {
        let (Op::Put { table, .. } | Op::Delete { table, .. } | Op::DeletePrefix { table, .. }) = op;
        let table = match tables.entry(*table) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(transaction.open_table(definition(*table))?)
            }
        };
        match op {
            Op::Put { key, value, .. } => {
                table.insert(key.as_slice(), value.as_slice())?;
            }
            Op::Delete { key, .. } => {
                table.remove(key.as_slice())?;
            }
            Op::DeletePrefix { prefix, .. } => {
                let end = prefix_end(prefix);
                let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
                table.retain_in::<&[u8], _>((Bound::Included(prefix.as_slice()), end), |_, _| false)?;
            }
        }
    }
    Ok(())
}

impl Store for RedbStore {
    fn write(&self, batches: &[Batch]) -> Result<()> {
        self.refuse_if_poisoned()?;
        let database = self.database();
        let write = || -> std::result::Result<(), redb::Error> {
            let transaction = database.begin_write()?;
            apply(&transaction, batches)?;
            transaction.commit()?;
            Ok(())
        };
        write().map_err(|error| {
            let error = explain("write", &self.path)(error);
            self.poison(&error);
            error
        })
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let read = || -> std::result::Result<_, redb::Error> {
            let table = self.database().begin_read()?.open_table(definition(table))?;
            Ok(table.get(key)?.map(|v| v.value().to_vec()))
        };
        read().map_err(explain("read", &self.path))
    }

    fn scan(
        &self,
        table: Table,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        if is_empty_range(from, to) {
            return Ok(());
        }
        let mut read = || -> std::result::Result<(), redb::Error> {
            let table = self.database().begin_read()?.open_table(definition(table))?;
            let mut range = table.range::<&[u8]>((from, to))?;
            while let Some(pair) = if reverse { range.next_back() } else { range.next() } {
                let (key, value) = pair?;
                if visit(key.value(), value.value()).is_break() {
                    break;
                }
            }
            Ok(())
        };
        read().map_err(explain("read", &self.path))
    }

    fn begin_blob(&self) -> Result<Box<dyn BlobWriter>> {
        self.refuse_if_poisoned()?;
        self.blobs.begin()
    }

    fn read_blob(&self, id: u64, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.blobs.read(id, offset, len)
    }

    fn blob_len(&self, id: u64) -> Result<u64> {
        self.blobs.len(id)
    }

    fn delete_blob(&self, id: u64) -> Result<()> {
        self.blobs.delete(id)
    }

    fn blob_ids(&self) -> Result<Vec<u64>> {
        self.blobs.ids()
    }

    fn life(&self) -> u64 {
        self.life
    }
}

/// redb takes its backend by type; this one is chosen at run time.
#[derive(Debug)]
struct Boxed(Box<dyn StorageBackend>);

impl StorageBackend for Boxed {
    fn len(&self) -> std::io::Result<u64> {
        self.0.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.0.read(offset, out)
    }
    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.set_len(len)
    }
    fn sync_data(&self) -> std::io::Result<()> {
        self.0.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.0.write(offset, data)
    }
    fn close(&self) -> std::io::Result<()> {
        self.0.close()
    }
}
