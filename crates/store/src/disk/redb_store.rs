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
use std::ops::{Bound, ControlFlow, RangeInclusive};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use vocab::{Batch, Guid, Op, Table};

/// Layout of the data directory that is written. Version 2 encrypts secure vaults: a program that reads version 1 only
/// would fail their operations and write new vaults in clear.
const FORMAT_VERSION: u32 = 2;
/// Layouts that are read; any other number is refused.
pub(super) const SUPPORTED: RangeInclusive<u32> = 1..=FORMAT_VERSION;

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
    /// Nothing speaks against it that store and blobs belong together.
    is_whole: bool,
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
        let store = RedbStore::look_with(directory, options, wrap)?;
        store.start()?;
        Ok(store)
    }

    /// Looks at a data directory as [`RedbStore::open_as`] does, and leaves it as it is, but for its lock and for what
    /// [`OpenOptions::new_cluster`] moves aside. Reads give what a start would find. Writes are refused until
    /// [`RedbStore::start`]: there is time for all checks before the first change.
    pub fn look(directory: &Path, options: OpenOptions<'_>) -> Result<RedbStore> {
        RedbStore::look_with(directory, options, |file| Box::new(file))
    }

    fn look_with(
        directory: &Path,
        options: OpenOptions<'_>,
        wrap: impl Fn(redb::backends::FileBackend) -> Box<dyn StorageBackend> + Send + Sync + 'static,
    ) -> Result<RedbStore> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(StoreError::io("create", directory))?;
        let lock = DirectoryLock::acquire(directory)?;
        let path = directory.join(identity::STORE);
        let mut moved_aside = None;
        let (parts, database, begun) = loop {
            match begin_in_memory(directory, &path, options.traces) {
                Err(StoreError::NotWhole { .. }) if options.new_cluster && moved_aside.is_none() => {
                    let names = [options.traces, options.secrets].concat();
                    moved_aside = Some(identity::move_aside(directory, &names)?);
                }
                begun => break begun?,
            }
        };
        let poisoned = Some(NOT_STARTED.to_owned());
        Ok(RedbStore {
            state: RwLock::new(State { database: Some(Arc::new(database)), poisoned }),
            blobs: Blobs::new(directory.join(identity::BLOBS), begun.life),
            directory: directory.to_owned(),
            path,
            life: AtomicU64::new(begun.life),
            wrap: Box::new(wrap),
            known_life: begun.own.life.unwrap_or_default(),
            id: begun.id,
            // A new cluster has nothing that might not fit; ids that somebody has written by hand are an answer.
            is_whole: begun.own.placed || begun.own.life.is_none() || parts.has_ids(begun.id),
            adopted: AtomicBool::new(begun.own.placed),
            moved_aside,
            _lock: lock,
        })
    }

    /// Begins the life that [`RedbStore::look`] has looked at: from now on the store takes writes. On a full disk it goes on
    /// as a store for reading ([`RedbStore::failure`]), until [`RedbStore::reopen`] succeeds. A first start, which has nothing
    /// to read, fails then.
    pub fn start(&self) -> Result<()> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match self.begin(&mut state) {
            Err(error) if error.is_lack_of_room() && self.known_life > 0 => {
                state.poisoned = Some(error.to_string());
            }
            begun => begun?,
        }
        drop(state);
        self.clean()?;
        if self.failure().is_none() && self.is_whole {
            self.adopt()?;
        }
        Ok(())
    }

    /// Instead of [`RedbStore::start`], when something else that a start needs does not fit on the disk: the store is for
    /// reading until [`RedbStore::reopen`] succeeds.
    pub fn start_to_read(&self, cause: String) -> Result<()> {
        self.state.write().unwrap_or_else(PoisonError::into_inner).poisoned = Some(cause);
        self.clean()
    }

    /// Removes what an earlier life has left unfinished, which also makes room.
    fn clean(&self) -> Result<()> {
        if let Ok(draft) = self.draft() {
            let _ = fs::remove_file(draft);
        }
        let _ = fs::remove_file(self.directory.join(DRAFT));
        sync_folder(&self.directory)?;
        self.blobs.open()
    }

    /// Opens the file for writing in place of the view of it.
    fn begin(&self, state: &mut State) -> Result<()> {
        if state.database.as_ref().is_some_and(|view| Arc::strong_count(view) > 1) {
            // They read pages that a writer takes for free.
            return Err(StoreError::Poisoned { cause: "reads are under way".to_owned() });
        }
        state.database = None;
        match begin(&self.directory, &self.path, self.id, &*self.wrap) {
            Ok((database, begun)) => {
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

    /// Id of the cluster, the same for all its lives.
    pub fn cluster_id(&self) -> Guid {
        self.id
    }

    /// Whether the id of the cluster lies beside store and blobs. Without that whoever knows the references to blobs
    /// looks whether they fit, and then says so by [`RedbStore::adopt`].
    pub fn is_adopted(&self) -> bool {
        self.adopted.load(Ordering::Acquire)
    }

    /// Whether there is nothing to look at before [`RedbStore::adopt`]: the cluster is new, or has its id in all places.
    pub fn is_whole(&self) -> bool {
        self.is_whole
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

    /// Copies the store into a new file, which takes the place of the old one, unless the store has a note of this `name`
    /// with this `value`; says whether it did, and leaves the note. Pages of the file that are free hold what was removed until
    /// they are used again, and a copy has none of them. A store that this process has begun needs no copy.
    ///
    /// To be called before others use the store: an error if reads are under way. After an error the store is as it was.
    pub fn rewrite_once(&self, name: &str, value: &[u8]) -> Result<bool> {
        self.refuse_if_poisoned()?;
        if self.note(name)?.as_deref() == Some(value) {
            return Ok(false);
        }
        let is_old = self.known_life > 0;
        if is_old {
            self.rewrite()?;
        }
        self.put_own(name, value)?;
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
        let (target, draft) = match self.copy_to_draft(&database) {
            Ok(paths) => paths,
            Err(error) => {
                state.database = Some(database);
                return Err(error);
            }
        };
        // redb holds a lock on the file until then.
        drop(database);
        let replaced = fs::rename(&draft, &target).map_err(StoreError::io("replace", &target));
        let opened = open_database(&self.path, &*self.wrap);
        match opened {
            Ok(database) => state.database = Some(Arc::new(database)),
            Err(error) => {
                state.poisoned = Some(error.to_string());
                state.database = view(&self.path);
                return Err(error);
            }
        }
        replaced?;
        sync_folder(folder_of(&target))
    }

    /// The file of the store, and the whole copy that lies beside it.
    fn copy_to_draft(&self, database: &Database) -> Result<(PathBuf, PathBuf)> {
        let (target, draft) = (self.target()?, self.draft()?);
        let folder = folder_of(&target);
        let size = fs::metadata(&target).map_err(StoreError::io("read", &target))?.len();
        let disk =
            rustix::fs::statvfs(folder).map_err(|error| StoreError::io("read", folder)(error.into()))?;
        if disk.f_bavail.saturating_mul(disk.f_frsize) < size.saturating_add(RESERVE) {
            let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(StoreError::io("copy", &target)(full));
        }
        if let Err(error) = copy(database, &draft) {
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        Ok((target, draft))
    }

    /// The file of the store. An operator may have put a link to another disk at its usual place.
    fn target(&self) -> Result<PathBuf> {
        self.path.canonicalize().map_err(StoreError::io("resolve", &self.path))
    }

    /// Where a copy is made: a rename must not leave the file's disk.
    fn draft(&self) -> Result<PathBuf> {
        let mut name = self.target()?.into_os_string();
        name.push(".draft");
        Ok(name.into())
    }

    /// The note that [`RedbStore::rewrite_once`] has left.
    pub fn note(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let database = self.database()?;
        let read = || -> std::result::Result<Option<Vec<u8>>, redb::Error> {
            let found = database.begin_read()?.open_table(OWN)?.get(name.as_bytes())?;
            Ok(found.map(|value| value.value().to_vec()))
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
        self.begin(&mut self.state.write().unwrap_or_else(PoisonError::into_inner))
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

/// Why a store takes no writes before [`RedbStore::start`].
const NOT_STARTED: &str = "it was opened to be looked at";
/// A copy of the store that is not whole yet, where the store is no link.
const DRAFT: &str = "store.redb.draft";
/// Bytes that a copy of the store leaves free on its disk.
const RESERVE: u64 = 64 << 20;
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

/// Looks whether the directory holds one whole cluster or nothing of one, opens the database, begins a life. `id` is for a
/// cluster that has none.
fn begin(directory: &Path, path: &Path, id: Guid, wrap: &Wrap) -> Result<(Database, Begun)> {
    let parts = Parts::look(directory, &[])?;
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
    let begun = begin_life(&database, &parts, id, (directory, path))?;
    Ok((database, begun))
}

/// As [`begin`], and the file stays as it is: the life begins in memory only.
fn begin_in_memory(directory: &Path, path: &Path, traces: &[&str]) -> Result<(Parts, Database, Begun)> {
    let parts = Parts::look(directory, traces)?;
    parts.demand_store()?;
    let backend: Box<dyn StorageBackend> = match parts.store {
        StoreFile::Missing | StoreFile::Empty => Box::new(redb::backends::InMemoryBackend::new()),
        StoreFile::There => {
            Box::new(File::open(path).and_then(Overlay::new).map_err(StoreError::io("open", path))?)
        }
    };
    let database = builder().create_with_backend(Boxed(backend)).map_err(explain("open", path))?;
    let begun = begin_life(&database, &parts, identity::new_id()?, (directory, path))?;
    Ok((parts, database, begun))
}

/// Checks version and parts, creates the tables, counts the life up.
fn begin_life(
    database: &Database,
    parts: &Parts,
    new_id: Guid,
    (directory, path): (&Path, &Path),
) -> Result<Begun> {
    let transaction = database.begin_write().map_err(explain("open", path))?;
    let begun = {
        let mut own = transaction.open_table(OWN).map_err(explain("open", path))?;
        let read = |key: &str| -> Result<Option<Vec<u8>>> {
            let found = own.get(key.as_bytes()).map_err(explain("read", path))?;
            Ok(found.map(|v| v.value().to_vec()))
        };
        let is_supported = |found: &[u8]| SUPPORTED.into_iter().any(|v| v.to_string().as_bytes() == found);
        if let Some(found) = read("format_version")?.filter(|found| !is_supported(found)) {
            let found = String::from_utf8_lossy(&found).into_owned();
            return Err(StoreError::Version { path: directory.to_owned(), found, supported: SUPPORTED });
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
        // An older copy of the store knows of fewer lives than the blobs: no id is given twice.
        let newest_blob = blobs::newest_life(&directory.join(identity::BLOBS))?;
        // A refused start has put no id into a store of release 0.1: that of the operator counts, unless the blobs are newer.
        let by_hand = parts.written_id().filter(|_| life.is_some_and(|life| newest_blob <= life));
        let id = id.or(by_hand);
        let found = OwnRecord { life, id, placed: read(PLACED)?.is_some() };
        parts.demand_whole(found)?;
        let id = id.unwrap_or(new_id);
        let life = life.unwrap_or_default().max(newest_blob) + 1;
        own.insert(b"format_version".as_slice(), FORMAT_VERSION.to_string().as_bytes())
            .map_err(explain("write", path))?;
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

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
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
