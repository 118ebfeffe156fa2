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

use super::blobs::{self, Blobs, sync_folder};
use super::errors::explain;
use super::identity::{self, OwnRecord, Parts, StoreFile};
use super::lock::DirectoryLock;
use super::overlay::Overlay;
use crate::store::is_empty_range;
use crate::{BlobWriter, Result, Store, StoreError, prefix_end};
use redb::{
    Database, ReadableDatabase as _, ReadableTable as _, StorageBackend, TableDefinition, TableHandle as _,
    WriteTransaction,
};
use std::fs::{self, DirBuilder, File};
use std::io::Write as _;
use std::ops::{Bound, ControlFlow};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use vocab::{Batch, Guid, Op, Table};

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

/// How a data directory is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenOptions<'a> {
    /// Names in the data directory that only a cluster that has run leaves there, beside the store's own. A directory
    /// with one of them and without a store is refused.
    pub traces: &'a [&'a str],
    /// Other names that go with a cluster when it is moved aside.
    pub secrets: &'a [&'a str],
    /// If the directory does not hold one whole cluster: move what is there aside, and begin a new one. A whole cluster
    /// is opened as without this.
    pub new_cluster: bool,
}

/// The durable store in one data directory; see the module page.
pub struct RedbStore {
    directory: PathBuf,
    path: PathBuf,
    state: RwLock<State>,
    blobs: Blobs,
    life: AtomicU64,
    wrap: Box<Wrap>,
    /// The number of lives that the store knew of before this one.
    known_life: u64,
    id: Guid,
    adopted: AtomicBool,
    moved_aside: Option<PathBuf>,
    _lock: DirectoryLock,
}

struct State {
    /// `None` if the file cannot even be read.
    database: Option<Arc<Database>>,
    /// The first failed write; `database` is then a view without the right to write.
    poisoned: Option<String>,
}

/// Puts something between redb and its file.
type Wrap = dyn Fn(redb::backends::FileBackend) -> Box<dyn StorageBackend> + Send + Sync;

impl RedbStore {
    /// Opens a data directory, creating it if it does not exist (readable for this user only: it
    /// will hold users' secrets), and starts a new life in it. A directory that does not hold one whole cluster is
    /// refused ([`StoreError::NotWhole`]); one with nothing of a cluster in it gets a new one.
    ///
    /// On a full disk the store opens for reading ([`RedbStore::failure`]), until [`RedbStore::reopen`] succeeds.
    pub fn open(directory: &Path) -> Result<RedbStore> {
        RedbStore::open_as(directory, OpenOptions::default())
    }

    /// [`RedbStore::open`] with options.
    pub fn open_as(directory: &Path, options: OpenOptions<'_>) -> Result<RedbStore> {
        RedbStore::open_with(directory, options, |file| Box::new(file))
    }

    /// [`RedbStore::open_as`] with something between redb and its file.
    pub(super) fn open_with(
        directory: &Path,
        options: OpenOptions<'_>,
        wrap: impl Fn(redb::backends::FileBackend) -> Box<dyn StorageBackend> + Send + Sync + 'static,
    ) -> Result<RedbStore> {
        let wrap: Box<Wrap> = Box::new(wrap);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(StoreError::io("create", directory))?;
        let lock = DirectoryLock::acquire(directory)?;
        let path = directory.join(identity::STORE);
        let mut moved_aside = None;
        let mut poisoned = None;
        let (parts, database, begun) = loop {
            match begin(directory, &path, options.traces, &*wrap) {
                Err(StoreError::NotWhole { .. }) if options.new_cluster && moved_aside.is_none() => {
                    let names = [options.traces, options.secrets].concat();
                    moved_aside = Some(identity::move_aside(directory, &names)?);
                }
                Err(error) if error.is_lack_of_room() => {
                    poisoned = Some(error.to_string());
                    // Another error would hide the cause.
                    break begin_to_read(directory, &path, options.traces).map_err(|_| error)?;
                }
                begun => break begun?,
            }
        };
        // What an interrupted copy has left.
        let _ = fs::remove_file(directory.join(DRAFT));
        sync_folder(directory)?;
        let store = RedbStore {
            state: RwLock::new(State { database: Some(Arc::new(database)), poisoned }),
            blobs: Blobs::open(directory.join(identity::BLOBS), begun.life)?,
            directory: directory.to_owned(),
            path,
            life: AtomicU64::new(begun.life),
            wrap,
            known_life: begun.own.life.unwrap_or_default(),
            id: begun.id,
            adopted: AtomicBool::new(begun.own.placed),
            moved_aside,
            _lock: lock,
        };
        // A new cluster has nothing that might not fit; ids that somebody has written by hand are an answer.
        if store.failure().is_none() && (begun.own.life.is_none() || parts.has_ids(begun.id)) {
            store.adopt()?;
        }
        Ok(store)
    }

    /// Id of the cluster, the same for all its lives.
    pub fn cluster_id(&self) -> Guid {
        self.id
    }

    /// Whether the id of the cluster lies beside store and blobs. Without that whoever knows the references to blobs
    /// looks whether they fit, and then says so by [`RedbStore::adopt`].
    pub fn is_adopted(&self) -> bool {
        self.adopted.load(Ordering::Acquire)
    }

    /// Writes the id of the cluster beside store and blobs: they belong together.
    pub fn adopt(&self) -> Result<()> {
        if self.is_adopted() {
            return Ok(());
        }
        identity::place(&self.directory, self.id)?;
        self.put_own(PLACED, b"1")?;
        self.adopted.store(true, Ordering::Release);
        Ok(())
    }

    /// An error about the parts of this data directory.
    pub fn not_whole(&self, detail: String) -> StoreError {
        StoreError::NotWhole { path: self.directory.clone(), detail }
    }

    /// How many lives the store knew of when it was opened. A blob of a later life was written by a newer store than this
    /// one, which is then an older copy.
    pub fn known_life(&self) -> u64 {
        self.known_life
    }

    /// Where the parts of an earlier cluster were moved to by [`OpenOptions::new_cluster`].
    pub fn moved_aside(&self) -> Option<&Path> {
        self.moved_aside.as_deref()
    }

    /// Copies the store into a new file, which takes the place of the old one, unless that was done before for the same
    /// `reason`; says whether it did. Pages of the file that are free hold what was removed until they are used again, and a
    /// copy has none of them. A store that this process has begun needs no copy.
    ///
    /// To be called before others use the store: an error if reads are under way. After an error the store is as it was.
    pub fn rewrite_once(&self, reason: &str) -> Result<bool> {
        self.refuse_if_poisoned()?;
        if self.has_own(reason)? {
            return Ok(false);
        }
        let is_old = self.known_life > 0;
        if is_old {
            self.rewrite()?;
        }
        self.put_own(reason, b"1")?;
        Ok(is_old)
    }

    fn rewrite(&self) -> Result<()> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let busy = || StoreError::Poisoned { cause: "reads are under way".to_owned() };
        let database = state.database.take().ok_or_else(busy)?;
        if Arc::strong_count(&database) > 1 {
            state.database = Some(database);
            return Err(busy());
        }
        let draft = self.directory.join(DRAFT);
        if let Err(error) = copy(&database, &draft) {
            state.database = Some(database);
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        // redb holds a lock on the file until then.
        drop(database);
        let replaced = fs::rename(&draft, &self.path).map_err(StoreError::io("replace", &self.path));
        let opened = open_database(&self.path, &*self.wrap);
        match opened {
            Ok(database) => state.database = Some(Arc::new(database)),
            Err(error) => {
                state.poisoned = Some(error.to_string());
                state.database = view(&self.path);
                return Err(error);
            }
        }
        replaced.and_then(|()| sync_folder(&self.directory))
    }

    /// Would [`RedbStore::rewrite_once`] copy the store for this reason?
    pub fn needs_rewrite(&self, reason: &str) -> Result<bool> {
        Ok(self.known_life > 0 && !self.has_own(reason)?)
    }

    fn has_own(&self, key: &str) -> Result<bool> {
        let database = self.database()?;
        let read = || -> std::result::Result<bool, redb::Error> {
            Ok(database.begin_read()?.open_table(OWN)?.get(key.as_bytes())?.is_some())
        };
        read().map_err(explain("read", &self.path))
    }

    fn put_own(&self, key: &str, value: &[u8]) -> Result<()> {
        let database = self.database()?;
        let write = || -> std::result::Result<(), redb::Error> {
            let transaction = database.begin_write()?;
            transaction.open_table(OWN)?.insert(key.as_bytes(), value)?;
            transaction.commit()?;
            Ok(())
        };
        write().map_err(explain("write", &self.path))
    }

    /// The failed write after which all others are refused.
    pub fn failure(&self) -> Option<StoreError> {
        self.refuse_if_poisoned().err()
    }

    /// After a failed write: opens the file again and begins a new life in it, so that the store takes writes. What of the
    /// failed write is in the file is known then, and seen by reads. An error leaves the store as it was; it is one while
    /// reads are under way that began before.
    pub fn reopen(&self) -> Result<()> {
        if self.failure().is_none() {
            return Ok(());
        }
        // Opening may read the whole file, and reads wait meanwhile: not without a chance.
        self.probe()?;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.database.as_ref().is_some_and(|view| Arc::strong_count(view) > 1) {
            // They read pages that a writer takes for free.
            return Err(StoreError::Poisoned { cause: "reads are under way".to_owned() });
        }
        state.database = None;
        match begin(&self.directory, &self.path, &[], &*self.wrap) {
            Ok((_, database, begun)) => {
                *state = State { database: Some(Arc::new(database)), poisoned: None };
                self.life.store(begun.life, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                state.database = view(&self.path);
                Err(error)
            }
        }
    }

    /// Is there room for a little?
    fn probe(&self) -> Result<()> {
        let path = self.directory.join("store.probe");
        let write = || {
            let mut file = File::create(&path)?;
            file.write_all(&vec![0; PROBE_BYTES])?;
            file.sync_all()
        };
        let written = write().map_err(StoreError::io("write", &path));
        let removed = fs::remove_file(&path).map_err(StoreError::io("remove", &path));
        written.and(removed)
    }

    fn database(&self) -> Result<Arc<Database>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.database.clone().ok_or_else(|| {
            let cause = state.poisoned.clone().unwrap_or_else(|| "the file cannot be opened".to_owned());
            StoreError::Poisoned { cause }
        })
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
        // First the old one goes, with its lock.
        state.database = None;
        state.database = view(&self.path);
    }
}

/// A copy of the store that is not whole yet.
const DRAFT: &str = "store.redb.draft";
/// Bytes of records that are copied in one transaction.
const COPIED_AT_ONCE: usize = 64 << 20;

/// Copies all tables, also those of a later version, into a new file.
fn copy(from: &Database, path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(StoreError::io("remove", path)(e)),
        _ => {}
    }
    let options = File::options().read(true).write(true).create_new(true).mode(0o600).clone();
    let file = options.open(path).map_err(StoreError::io("create", path))?;
    let backend = redb::backends::FileBackend::new(file).map_err(explain("open", path))?;
    let to = builder().create_with_backend(backend).map_err(explain("open", path))?;
    let copied = || -> std::result::Result<(), redb::Error> {
        let read = from.begin_read()?;
        for table in read.list_tables()? {
            let definition: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(table.name());
            let source = read.open_table(definition)?;
            let mut left = source.range::<&[u8]>(..)?;
            let mut is_whole = false;
            while !is_whole {
                let write = to.begin_write()?;
                {
                    let mut target = write.open_table(definition)?;
                    let mut bytes = 0;
                    is_whole = true;
                    for pair in left.by_ref() {
                        let (key, value) = pair?;
                        target.insert(key.value(), value.value())?;
                        bytes += key.value().len() + value.value().len();
                        if bytes > COPIED_AT_ONCE {
                            is_whole = false;
                            break;
                        }
                    }
                }
                write.commit()?;
            }
        }
        Ok(())
    };
    copied().map_err(explain("write", path))
}

fn open_database(path: &Path, wrap: &Wrap) -> Result<Database> {
    let file = File::options().read(true).write(true).open(path).map_err(StoreError::io("open", path))?;
    let backend = wrap(redb::backends::FileBackend::new(file).map_err(explain("open", path))?);
    builder().create_with_backend(Boxed(backend)).map_err(explain("open", path))
}

/// What the file holds, with changes in memory only.
fn view(path: &Path) -> Option<Arc<Database>> {
    let overlay = File::open(path).and_then(Overlay::new).ok()?;
    builder().create_with_backend(overlay).ok().map(Arc::new)
}

/// Bytes that must fit on a disk before a store that has failed is opened again.
const PROBE_BYTES: usize = 1 << 20;

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Keys of the store's own records.
const ID: &str = "cluster_id";
const PLACED: &str = "cluster_id_placed";

/// A life that has begun.
struct Begun {
    life: u64,
    id: Guid,
    /// What the store said before it.
    own: OwnRecord,
}

/// Looks whether the directory holds one whole cluster or nothing of one, opens the database, begins a life.
fn begin(directory: &Path, path: &Path, traces: &[&str], wrap: &Wrap) -> Result<(Parts, Database, Begun)> {
    let parts = Parts::look(directory, traces)?;
    parts.demand_store()?;
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        // Of an empty one nothing is lost, and redb takes zeros for a damaged database.
        .truncate(parts.store == StoreFile::Empty)
        .open(path)
        .map_err(StoreError::io("open", path))?;
    let backend = wrap(redb::backends::FileBackend::new(file).map_err(explain("open", path))?);
    let database = builder().create_with_backend(Boxed(backend)).map_err(explain("open", path))?;
    let begun = begin_life(&database, &parts, directory, path)?;
    Ok((parts, database, begun))
}

/// As [`begin`], and the file stays as it is: the life begins in memory only.
fn begin_to_read(directory: &Path, path: &Path, traces: &[&str]) -> Result<(Parts, Database, Begun)> {
    let parts = Parts::look(directory, traces)?;
    parts.demand_store()?;
    let overlay = File::open(path).and_then(Overlay::new).map_err(StoreError::io("open", path))?;
    let database = builder().create_with_backend(overlay).map_err(explain("open", path))?;
    let begun = begin_life(&database, &parts, directory, path)?;
    // Of a first start there is nothing to read.
    match begun.own.life {
        Some(_) => Ok((parts, database, begun)),
        None => Err(parts.refusal(format!("{} is empty", identity::STORE))),
    }
}

/// Checks version and parts, creates the tables, counts the life up.
fn begin_life(database: &Database, parts: &Parts, directory: &Path, path: &Path) -> Result<Begun> {
    let transaction = database.begin_write().map_err(explain("open", path))?;
    let begun = {
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
        let corrupt = |name: &str, found: usize, expected: usize| StoreError::Corrupt {
            path: path.to_owned(),
            detail: format!("the record of {name} has {found} bytes instead of {expected}"),
        };
        let life = match read("life")? {
            None => None,
            Some(bytes) => {
                let array = <[u8; 8]>::try_from(bytes.as_slice());
                Some(u64::from_be_bytes(array.map_err(|_| corrupt("lives", bytes.len(), 8))?))
            }
        };
        let id = match read(ID)? {
            None => None,
            Some(bytes) => {
                let array = <[u8; 16]>::try_from(bytes.as_slice());
                Some(Guid::from_bytes(array.map_err(|_| corrupt("the cluster's id", bytes.len(), 16))?))
            }
        };
        let found = OwnRecord { life, id, placed: read(PLACED)?.is_some() };
        parts.demand_whole(found)?;
        let id = id.map_or_else(identity::new_id, Ok)?;
        // An older copy of the store knows of fewer lives than the blobs: no id is given twice.
        let newest_blob = blobs::newest_life(&directory.join(identity::BLOBS))?;
        let life = life.unwrap_or_default().max(newest_blob) + 1;
        own.insert(b"format_version".as_slice(), supported.as_bytes()).map_err(explain("write", path))?;
        own.insert(b"life".as_slice(), life.to_be_bytes().as_slice()).map_err(explain("write", path))?;
        own.insert(ID.as_bytes(), id.to_bytes().as_slice()).map_err(explain("write", path))?;
        Begun { life, id, own: found }
    };
    for table in Table::ALL {
        transaction.open_table(definition(*table)).map_err(explain("open", path))?;
    }
    transaction.commit().map_err(explain("write", path))?;
    Ok(begun)
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
        let database = self.database()?;
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
        let database = self.database()?;
        let read = || -> std::result::Result<_, redb::Error> {
            let table = database.begin_read()?.open_table(definition(table))?;
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
        let database = self.database()?;
        let mut read = || -> std::result::Result<(), redb::Error> {
            let table = database.begin_read()?.open_table(definition(table))?;
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
        self.life.load(Ordering::Acquire)
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
