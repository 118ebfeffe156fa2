//! The room a job works in: its user, what it sees of the host, its memory file systems
//! (jobs-and-nodes.md 3.7, 4.7, 4.9).

use std::fs;
use std::io;
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cage::isolation::{PRIVATE, SKELETON, cover_for, lets_others_pass};
use cage::{Bind, CageError, Isolation, JobEnvironment, JobLimits, ProcessSpec, RootFs, volumes};
use vocab::{Cpu, Failure, FileSystemRequest, JobId, TmpfsVolume, code};

use yson::Value;

use super::beneath::Directory;
use super::clearing::remove_tree;
use super::layout::{Layout, make_with_mode};
use super::sandbox::{is_of_the_name, of_the_user};
use super::users::PROBE;
use crate::NodeConfig;
use crate::isolation::{IsolationChoice, RoomOptions};

/// The sandbox in a root file system of layers (jobs-and-nodes.md 4.7).
pub(crate) const SANDBOX_INSIDE: &str = "/slot/sandbox";

/// Makes the directories that a root file system of layers needs besides them.
pub(crate) fn make_rootfs(
    layout: &Layout,
    slot: u32,
    writable: bool,
    owner: Option<Owner>,
) -> Result<(), Failure> {
    let skeleton = layout.skeleton();
    let made = (|| {
        make_with_mode(&skeleton, SHOWN)?;
        for name in SKELETON.iter().copied().chain([SANDBOX_INSIDE.trim_start_matches('/')]) {
            let mut at = skeleton.clone();
            for part in Path::new(name) {
                at.push(part);
                make_with_mode(&at, SHOWN)?;
            }
        }
        fs::create_dir_all(layout.rootfs(slot))?;
        if writable {
            remove_changes(layout, slot)?;
            let (upper, work) = changes(layout, slot);
            // The kernel makes this one anew when it mounts: so it is there when the slot's own are counted.
            fs::create_dir_all(work.join(KERNELS))?;
            fs::create_dir_all(&upper)?;
            own(&upper, owner)?;
        }
        Ok(())
    })();
    made.map_err(|e: io::Error| {
        Failure::coded(
            code::NODE_DIRECTORY_PREPARATION_FAILED,
            format!("Cannot make directories for a root file system: {e}"),
        )
    })
}

/// What an overlay makes in its work directory.
const KERNELS: &str = "work";
/// Mode of directories that are a part of the root file systems of all jobs.
const SHOWN: u32 = 0o755;

/// Upper and work directory of an overlay.
fn changes(layout: &Layout, slot: u32) -> (PathBuf, PathBuf) {
    let directory = layout.changes(slot);
    (directory.join("upper"), directory.join("work"))
}

/// All directories of a slot, with nothing else in them, that its job writes to on disk, and those that the kernel does for it.
pub(crate) fn written_to(layout: &Layout, slot: u32, writable_root: bool) -> Vec<PathBuf> {
    let mut directories = vec![layout.sandbox(slot)];
    if writable_root {
        // From one to the other files are moved, which is refused between projects.
        let (upper, work) = changes(layout, slot);
        directories.extend([upper, work.join(KERNELS), work]);
    }
    directories
}

/// Forgets what a job wrote into its root file system.
pub(crate) fn remove_changes(layout: &Layout, slot: u32) -> io::Result<()> {
    remove_tree(&layout.changes(slot))
}

/// The root file system of a job with layers; `unpacked` has their directories, topmost first.
pub(crate) fn rootfs(layout: &Layout, slot: u32, unpacked: Vec<PathBuf>, writable: bool) -> RootFs {
    RootFs {
        mount_point: layout.rootfs(slot),
        layers: [layout.skeleton()].into_iter().chain(unpacked).collect(),
        changes: writable.then(|| changes(layout, slot)),
    }
}

/// User and group.
pub(crate) type Owner = (u32, u32);

/// A job, as far as it matters to what it sees.
#[derive(Debug)]
pub(crate) struct Tenant<'a> {
    pub slot: u32,
    pub job_id: JobId,
    /// On the host.
    pub sandbox: &'a Path,
    pub memory_limit: i64,
    /// Files in the sandbox are links to their other names in the slot.
    pub linked: bool,
    pub gpus: &'a [u32],
    pub root: Option<RootFs>,
}

/// Alerts of nodes that offer nothing because they cannot isolate jobs.
const NOT_ISOLATED_NOW: &str = "Job environment is disabled: jobs cannot be isolated now, although this host can do it; \
     it is tried again every few seconds";
const NOT_ISOLATED_HERE: &str = "Job environment is disabled: this node cannot isolate jobs, and with authentication it starts \
     none without isolation; it is tried again every few seconds; --isolation none starts jobs as the user of the node";
const NOT_ISOLATED_AS_ROOT: &str = "Job environment is disabled: this node runs as root and cannot isolate jobs, which would run as \
     root of this host; it is tried again every few seconds; run the node as another user, or give --isolation none to start jobs \
     as root";

/// What became of the wish to isolate jobs.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    /// None: jobs are not kept apart from the host.
    pub isolator: Option<Isolator>,
    /// What is not enforced, or why nothing runs.
    pub alert: Option<Failure>,
    /// The node must not offer slots (jobs-and-nodes.md 3.2).
    pub disabled: bool,
}

/// Is it the kernel or a lack of rights that says no? A full disk, or too many of something, is neither.
fn is_beyond_this_host(error: &CageError) -> bool {
    use rustix::io::Errno;
    let beyond = [
        Errno::PERM,
        Errno::ACCESS,
        Errno::NOSYS,
        Errno::OPNOTSUPP,
        // Not a file system, a flag or a kind of namespace that this kernel knows.
        Errno::NODEV,
        Errno::INVAL,
        // It has no user or process namespaces, or none are allowed.
        Errno::USERS,
    ];
    match error {
        CageError::Isolation { source, .. }
        | CageError::Spawn { source, .. }
        | CageError::Io { source, .. } => {
            Errno::from_io_error(source).is_some_and(|errno| beyond.contains(&errno))
        }
        _ => false,
    }
}

/// Where an operator allows none, the kernel says that there is no room for one more.
fn no_user_namespaces(error: &CageError) -> bool {
    use rustix::io::Errno;
    matches!(error, CageError::Isolation { source, .. } if Errno::from_io_error(source) == Some(Errno::NOSPC))
}

/// A directory of the host that all jobs see.
#[derive(Clone, Debug)]
struct Shared {
    bind: Bind,
    /// Its path without links.
    real: PathBuf,
}

impl Shared {
    fn of(directory: &crate::SharedDirectory) -> Shared {
        let path = &directory.path;
        Shared {
            bind: Bind { source: path.clone(), target: path.clone(), read_only: !directory.writable },
            real: path.canonicalize().unwrap_or_else(|_| path.clone()),
        }
    }

    /// Where a job sees a path of the host that lies in it.
    fn place_of(&self, path: &Path) -> Option<PathBuf> {
        // Without an empty last part, which would be one more way to write the same path.
        Some(self.bind.target.join(path.strip_prefix(&self.real).ok()?).components().collect())
    }
}

/// Refuses shared directories that are not there, or that would show what is this node's alone: the sandbox of a job lies in
/// the node's data, so nothing can be put over that.
fn check_shared(
    options: &RoomOptions,
    secrets: &[PathBuf],
    layout: &Layout,
    own_users: bool,
) -> Result<(), CageError> {
    // From jobs with users of their own a token is kept by its mode.
    let has_our_user = own_users || options.do_not_set_user_id;
    for shared in &options.shared_directories {
        let refused = |source| {
            let what = format!("share {} with jobs (shared_directories)", shared.path.display());
            CageError::Isolation { what, source }
        };
        let real = fs::canonicalize(&shared.path).map_err(refused)?;
        let data = layout.root();
        if data.starts_with(&real) || real.starts_with(data) {
            let text = format!(
                "jobs must not see the node's data directory {}: share directories that neither contain it nor lie in it",
                data.display()
            );
            return Err(refused(io::Error::other(text)));
        }
        let mut shown =
            secrets.iter().filter(|_| has_our_user).filter_map(|secret| secret.canonicalize().ok());
        if let Some(secret) = shown.find(|secret| secret.starts_with(&real)) {
            let text = format!(
                "it contains the token {}, which jobs with the node's user could read: move the file",
                secret.display()
            );
            return Err(refused(io::Error::other(text)));
        }
    }
    Ok(())
}

/// What is hidden from jobs while the announced data directories stay the same.
#[derive(Debug)]
struct Hidden {
    mark: datadir::Mark,
    since: Instant,
    announced: Vec<PathBuf>,
    covers: Vec<PathBuf>,
}

/// [`Hidden`] is made anew after this time in any case.
const HIDDEN_KEPT: Duration = Duration::from_secs(10);

/// Makes rooms that are kept apart from the host.
#[derive(Clone, Debug)]
pub(crate) struct Isolator {
    /// Jobs have users of their own.
    gives_users: bool,
    /// By user namespaces, because the node has no privileges (4.10).
    own_users: bool,
    /// The node's data and what lies around it that jobs could not enter anyway, and the host's sockets.
    covers: Vec<PathBuf>,
    hidden: Arc<Mutex<Option<Hidden>>>,
    shared: Vec<Shared>,
    /// [`RESOLVER`], if it lies in a covered directory.
    resolver: Option<Bind>,
    layout: Layout,
}

/// Where the services of a host have their sockets.
const RUN: &str = "/run";
/// Who answers for names; on many hosts a link into [`RUN`].
const RESOLVER: &str = "/etc/resolv.conf";

impl Isolator {
    /// As the options want it and this host can. Two kinds of nodes start no job that they cannot isolate, unless
    /// `--isolation none` says so: those of a cluster with authentication, whose users need not trust each other, and those of
    /// root, whose jobs would be root of the host.
    pub fn choose(
        config: &NodeConfig,
        layout: &Layout,
        environment: &dyn JobEnvironment,
    ) -> Result<Chosen, CageError> {
        Isolator::choose_as(config, layout, environment, rustix::process::geteuid().is_root())
    }

    fn choose_as(
        config: &NodeConfig,
        layout: &Layout,
        environment: &dyn JobEnvironment,
        is_root: bool,
    ) -> Result<Chosen, CageError> {
        let options = &config.room;
        let is_authenticated = config.authentication || config.token_file.is_some();
        let simple = environment.driver() == cage::Driver::Simple;
        let by_runtime = environment.driver() == cage::Driver::Oci;
        if by_runtime && options.isolation == IsolationChoice::None {
            let missing = "with isolation = \"none\" an OCI runtime has nothing to do".to_owned();
            return Err(CageError::Unsupported { driver: cage::Driver::Oci, missing });
        }
        if options.isolation == IsolationChoice::None
            || (simple && options.isolation == IsolationChoice::Auto && !is_authenticated && !is_root)
        {
            return Ok(Chosen::default());
        }
        // Also for root of a user namespace: outside it is somebody else.
        let own_users = environment.driver() == cage::Driver::Rootless;
        let secrets: Vec<PathBuf> =
            config.token_file.iter().chain(&config.join_token_file).cloned().collect();
        check_shared(options, &secrets, layout, own_users)?;
        let isolator = Isolator::new(options, &secrets, layout, own_users);
        let disabled = |text: &str, error: &CageError| {
            let alert = Failure::new(text)
                .because(Failure::new(error.to_string()))
                .with("alert_type", "job_environment_disabled");
            Chosen { isolator: Some(isolator.clone()), alert: Some(alert), disabled: true }
        };
        match isolator.probe(layout, environment) {
            Ok(()) => Ok(Chosen { isolator: Some(isolator), ..Chosen::default() }),
            Err(e) if options.isolation == IsolationChoice::Full => Err(e),
            // Whoever asked for a runtime did not ask for jobs without it.
            Err(e) if by_runtime && is_beyond_this_host(&e) => Err(e),
            Err(e) if is_beyond_this_host(&e) || (own_users && no_user_namespaces(&e)) => {
                if is_authenticated {
                    return Ok(disabled(NOT_ISOLATED_HERE, &e));
                }
                if is_root {
                    return Ok(disabled(NOT_ISOLATED_AS_ROOT, &e));
                }
                let text = "Jobs are not isolated: they run as the user of the node and see all that it sees";
                let cause = Failure::new(e.to_string());
                let what: Vec<Value> = ["users", "namespaces", "privileges"].map(Value::from).to_vec();
                let alert = Failure::new(text).because(cause).with("not_enforced", what);
                Ok(Chosen { alert: Some(alert), ..Chosen::default() })
            }
            // The host could do it yesterday and will be able to tomorrow: no job must see more today.
            Err(e) => Ok(disabled(NOT_ISOLATED_NOW, &e)),
        }
    }

    fn new(options: &RoomOptions, secrets: &[PathBuf], layout: &Layout, own_users: bool) -> Isolator {
        let gives_users = !options.do_not_set_user_id && !own_users;
        let private = |path: &Path| cover_for(path, &lets_others_pass);
        let cover = match own_users {
            // Permissions keep nothing from who is the same user: all of ours is covered.
            true => cover_for(layout.root(), &|path| !is_ours(path)),
            // Of root's only what is private: nearly all of a system is root's.
            false => private(layout.root()),
        };
        // The outer one first.
        let mut covers = vec![PathBuf::from(RUN), cover];
        if !gives_users {
            covers.extend(
                secrets.iter().filter_map(|path| path.canonicalize().ok()).map(|path| private(&path)),
            );
        }
        if own_users {
            let home = std::env::var_os("HOME").and_then(|home| fs::canonicalize(home).ok());
            covers.extend(home.filter(|home| is_ours(home)));
        }
        let resolver = fs::canonicalize(RESOLVER).ok().filter(|real| real.starts_with(RUN));
        let resolver = resolver.map(|path| Bind { source: path.clone(), target: path, read_only: true });
        Isolator {
            gives_users,
            own_users,
            covers,
            hidden: Arc::default(),
            shared: options.shared_directories.iter().map(Shared::of).collect(),
            resolver,
            layout: layout.clone(),
        }
    }

    /// Jobs run as the users that the server names, and not as the node's.
    pub fn gives_users(&self) -> bool {
        self.gives_users
    }

    /// What the job in this slot sees. With a root file system of its own the sandbox is at
    /// [`SANDBOX_INSIDE`], else where it is on the host.
    pub fn isolation(&self, tenant: Tenant<'_>) -> Isolation {
        let Tenant { slot, job_id, sandbox, memory_limit, linked, gpus, root } = tenant;
        let inside = if root.is_some() { PathBuf::from(SANDBOX_INSIDE) } else { sandbox.to_owned() };
        let (announced, covers) = self.hidden_now();
        // The host's paths are not there in another root.
        let mut binds = if root.is_some() { Vec::new() } else { self.shared_binds(&announced) };
        if linked && root.is_none() {
            let files = self.layout.files(slot);
            binds.push(Bind { source: files.clone(), target: files, read_only: true });
        }
        binds.push(Bind { source: sandbox.to_owned(), target: inside, read_only: false });
        for device in gpu_devices(Path::new("/dev"), gpus) {
            binds.push(Bind { source: device.clone(), target: device, read_only: false });
        }
        let id = job_id.to_string();
        let prefix = id.split('-').next().unwrap_or_default();
        Isolation {
            hostname: format!("slot_{slot}-{prefix}"),
            root,
            covers,
            binds,
            scratch_size: memory_limit.max(1 << 20).unsigned_abs(),
            own_users: self.own_users,
        }
    }

    /// Data directories that are announced, and what is covered because of them. They are looked up anew when another one is
    /// announced, and now and then, since modes of directories change: each job would pay for all of them.
    fn hidden_now(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let mark = datadir::Mark::now();
        let mut kept = self.hidden.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hidden) = &*kept
            && mark.as_ref() == Some(&hidden.mark)
            && hidden.since.elapsed() < HIDDEN_KEPT
        {
            return (hidden.announced.clone(), hidden.covers.clone());
        }
        let announced = datadir::announced();
        let covers = self.covers_with(&announced);
        *kept = mark.map(|mark| Hidden {
            mark,
            since: Instant::now(),
            announced: announced.clone(),
            covers: covers.clone(),
        });
        (announced, covers)
    }

    /// With the data directories that other processes of this host have announced, also after this node had started. Modes
    /// keep jobs with users of their own out of these, and covers even if an operator has opened one.
    fn covers_with(&self, announced: &[PathBuf]) -> Vec<PathBuf> {
        let private = |path: &PathBuf| match self.own_users {
            true => cover_for(path, &|path| !is_ours(path)),
            false => cover_for(path, &lets_others_pass),
        };
        let mut others: Vec<PathBuf> = announced.iter().map(private).collect();
        others.sort_by_key(|path| path.components().count());
        let mut covers = self.covers.clone();
        for other in others {
            let is_hidden = |above: &Path| other.starts_with(above);
            // Each cover is a mount in the view of each job.
            if !covers.iter().any(|cover| is_hidden(cover))
                && !PRIVATE.map(Path::new).into_iter().any(is_hidden)
            {
                covers.push(other);
            }
        }
        covers.sort_by_key(|path| path.components().count());
        covers
    }

    /// Shared directories, with an empty directory over each data directory in them.
    fn shared_binds(&self, announced: &[PathBuf]) -> Vec<Bind> {
        let mut binds: Vec<Bind> = self.shared.iter().map(|shared| shared.bind.clone()).collect();
        let inside =
            self.shared.iter().flat_map(|shared| announced.iter().filter_map(|path| shared.place_of(path)));
        let mut hidden: Vec<PathBuf> = inside.filter(|path| path.is_dir()).collect();
        hidden.sort();
        hidden.dedup();
        let nothing = self.layout.nothing();
        binds.extend(hidden.into_iter().map(|target| Bind {
            source: nothing.clone(),
            target,
            read_only: true,
        }));
        binds.extend(self.resolver.clone());
        binds
    }

    /// By doing: a process as a job would have it (jobs-and-nodes.md 4.2).
    fn probe(&self, layout: &Layout, environment: &dyn JobEnvironment) -> Result<(), CageError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |source| CageError::Isolation { what, source }
        };
        let directory = layout.probe();
        fs::create_dir_all(&directory).map_err(failed("make a directory"))?;
        let user = self.gives_users.then_some(PROBE);
        own(&directory, user).map_err(failed("give a directory to another user"))?;
        let job_id = JobId(vocab::Guid([std::process::id(), 0x9_0be, 0, 0]));
        let (sandbox, memory_limit) = (directory.as_path(), 1 << 20);
        let isolation = self.isolation(Tenant {
            slot: 0,
            job_id,
            sandbox,
            memory_limit,
            linked: false,
            gpus: &[],
            root: None,
        });
        let limits = JobLimits { cpu_guarantee: Cpu(100), cpu_cap: None, memory: None, pids: Some(16) };
        let mut container = environment.create(job_id, &limits)?;
        let working_directory = cage::spawn::c_path(&directory).map_err(failed("name a directory"))?;
        let spec = ProcessSpec {
            program: c"/bin/sh",
            arguments: &[c"sh".to_owned(), c"-c".to_owned(), c": >probe".to_owned()],
            environment: &[],
            working_directory: &working_directory,
            descriptors: &[],
            user,
            open_files_limit: 64,
            isolation: Some(&isolation),
            processes_limit: None,
            terminal: false,
        };
        let exit = container.spawn(&spec).map(|process| cage::sys::reap(process.pid));
        let removed =
            container.kill_all(std::time::Duration::from_secs(20)).and_then(|()| container.destroy());
        let _ = fs::remove_dir_all(&directory);
        match exit? {
            Ok((cage::sys::Exit::Code(0), _)) => removed,
            other => {
                let text = format!("an isolated process ended with {other:?} instead of success");
                Err(failed("run a process")(io::Error::other(text)))
            }
        }
    }
}

/// Device files of these GPUs and what all GPUs need, as far as this host has them: a job's own `/dev`
/// has none (jobs-and-nodes.md 3.10).
fn gpu_devices(dev: &Path, gpus: &[u32]) -> Vec<PathBuf> {
    if gpus.is_empty() {
        return Vec::new();
    }
    let common = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"].map(str::to_owned);
    let own = gpus.iter().map(|gpu| format!("nvidia{gpu}"));
    common.into_iter().chain(own).map(|name| dev.join(name)).filter(|path| path.exists()).collect()
}

/// Does it belong to the node's user?
fn is_ours(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
}

/// Gives a file or directory to its user.
pub(crate) fn own(path: &Path, owner: Option<Owner>) -> io::Result<()> {
    owner.map_or(Ok(()), |(uid, gid)| lchown(path, Some(uid), Some(gid)))
}

/// Mount points of a job's memory file systems.
pub(crate) fn volume_paths(sandbox: &Path, request: &FileSystemRequest) -> Vec<PathBuf> {
    // Without dots: what the mount table shows is compared with these.
    let clean = |v: &TmpfsVolume| {
        let parts = Path::new(&v.path).components();
        sandbox.join(parts.filter(|c| matches!(c, std::path::Component::Normal(_))).collect::<PathBuf>())
    };
    request.tmpfs_volumes.iter().map(clean).collect()
}

/// Mounts them in a fresh sandbox.
pub(crate) fn mount_volumes(
    sandbox: &Path,
    request: &FileSystemRequest,
    owner: Option<Owner>,
    mounts: bool,
) -> Result<(), Failure> {
    for (path, volume) in volume_paths(sandbox, request).iter().zip(&request.tmpfs_volumes) {
        let below = path.strip_prefix(sandbox).unwrap_or(Path::new(""));
        let made = Directory::open(sandbox).and_then(|top| top.make(below, owner));
        let mounted = made.and_then(|directory| match mounts {
            true => volumes::mount_tmpfs(&directory.as_path(), volume.size, owner.unwrap_or((0, 0))),
            false => Ok(()),
        });
        mounted.map_err(|e| {
            let text =
                format!("Cannot mount memory file system {:?} of {} bytes: {e}", volume.path, volume.size);
            let failure = Failure::coded(code::NODE_DIRECTORY_PREPARATION_FAILED, text);
            if is_of_the_name(&e) { of_the_user(failure) } else { failure }
        })?;
    }
    Ok(())
}

/// Takes away all mounts of slots whose job does not live (jobs-and-nodes.md 9.2 step 4).
pub(crate) fn sweep(layout: &Layout, lives: &dyn Fn(u32) -> bool) -> io::Result<usize> {
    let slots = layout.slots();
    let mut count = 0;
    for point in volumes::mounts_below(&slots)? {
        let slot = point.strip_prefix(&slots).ok().and_then(|p| p.iter().next()?.to_str()?.parse().ok());
        if !slot.is_some_and(lives) {
            volumes::detach(&point)?;
            count += 1;
        }
    }
    Ok(count)
}

/// Bytes that can still be written where the slots are.
pub(crate) fn free_space(directory: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(directory)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests;
