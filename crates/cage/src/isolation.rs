//! What a job is cut off from, and how that is done, as data (jobs-and-nodes.md 4.7).
//!
//! [`Isolation`] says what a job sees. [`plan`] turns it into a list of [`Step`]s, which a new process
//! carries out in mount, pid, ipc and uts namespaces of its own before anything of the user's
//! starts ([`crate::init`]). The list is made by the parent, because the new process must not allocate.
//!
//! By default the job sees the host's root, read-only, at the same paths: whatever works on the host
//! works in the job. Over it lie private `/tmp`, `/var/tmp` and `/dev/shm`, a `/dev` of six devices, a
//! `/proc` of its own processes, and, writable, its sandbox. Directories that are not its business (the
//! node's data, the sockets of the host's services) are covered, and what is mounted in them is let go of:
//! what the node unmounts must not live on in the view of a job. What the job needs of them is put back
//! by binds. With a root file system of its own the same things are put into that, and the host's root
//! is gone.
//!
//! A node without privileges makes the same view in a user namespace of the job's own (4.10), with three
//! differences that the kernel wants: device files cannot be made there, so the host's are put in; what was
//! mounted on the host cannot be unmounted, only covered; and overlays keep their notes elsewhere.

use std::ffi::{CString, OsStr};
use std::io;
use std::path::{Path, PathBuf};

use crate::spawn::c_path;

/// What a job sees of the host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Isolation {
    /// Name of the host, inside.
    pub hostname: String,
    /// Root file system; none: the host's, read-only.
    pub root: Option<RootFs>,
    /// Directories that an empty one covers, and files that are hidden. Those that contain others come
    /// first.
    pub covers: Vec<PathBuf>,
    /// Directories and files that are put in after the covers.
    pub binds: Vec<Bind>,
    /// Bytes that each of the private directories may take.
    pub scratch_size: u64,
    /// In a user namespace of its own, in which the caller's user and group are mapped to themselves and
    /// nobody else is: what a caller without privileges needs for all of this.
    pub own_users: bool,
}

/// A directory or file of the host that a job sees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bind {
    /// On the host.
    pub source: PathBuf,
    /// In the job.
    pub target: PathBuf,
    /// Cannot be written to.
    pub read_only: bool,
}

/// A root file system made of layers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RootFs {
    /// Existing empty directory of the host where it is put together; nobody outside sees it there.
    pub mount_point: PathBuf,
    /// Directories, topmost first. The first has a directory for each target of a bind and for each
    /// private directory: layers need not have them.
    pub layers: Vec<PathBuf>,
    /// Directories for changes and for the kernel's work, on one file system; none: read-only.
    pub changes: Option<(PathBuf, PathBuf)>,
}

/// Directories of a job that are its own and vanish with it.
pub const PRIVATE: [&str; 2] = ["/tmp", "/var/tmp"];
/// Directories that [`RootFs::layers`]' first must have, besides targets of binds.
pub const SKELETON: [&str; 5] = ["dev", "proc", "sys", "tmp", "var/tmp"];

/// One thing to do in the new namespaces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A mount namespace of one's own.
    Unshare,
    /// The user and group of the new user namespace, as the kernel's files want them.
    MapUsers { users: CString, groups: CString },
    /// Nothing that is mounted from here on is seen outside, or the other way round.
    Detach,
    /// Lets go of all that is mounted at and below these, which are written as in the mount table.
    LetGo { below: Vec<CString> },
    /// Takes hold of a tree of mounts before something covers it; [`Step::Put`] has its number.
    Hold { source: CString, number: usize },
    /// A held tree, at a place.
    Put { number: usize, target: CString, read_only: bool },
    /// All that is mounted at and below becomes read-only.
    ReadOnly { path: CString },
    /// The mount at a path becomes read-only; those below it stay as they are.
    ReadOnlyHere { path: CString },
    /// A directory or file that is there becomes read-only.
    Freeze { path: CString },
    /// A file or directory that is there is covered by another.
    Hide { path: CString, under: CString },
    /// An empty file system in memory.
    Tmpfs { target: CString, options: CString },
    /// Another file system.
    Mount { kind: &'static std::ffi::CStr, target: CString, options: CString },
    /// Directory; one that is there is fine.
    Directory { path: CString },
    /// Empty file, to put a file over.
    File { path: CString },
    /// Character device.
    Device { path: CString, minor: u32, major: u32 },
    /// Symbolic link.
    Link { path: CString, to: &'static std::ffi::CStr },
    /// This directory becomes the root; the old one is gone.
    Pivot { root: CString },
    /// Name of the host.
    Hostname { name: CString },
}

/// The list, and how many trees it holds at a time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub steps: Vec<Step>,
    pub held: usize,
}

/// `name, major, minor`.
const DEVICES: [(&str, u32, u32); 6] =
    [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)];
const LINKS: [(&str, &std::ffi::CStr); 5] = [
    ("fd", c"/proc/self/fd"),
    ("stdin", c"/proc/self/fd/0"),
    ("stdout", c"/proc/self/fd/1"),
    ("stderr", c"/proc/self/fd/2"),
    ("ptmx", c"pts/ptmx"),
];

/// What of `/proc` is about the kernel and can be written to, by root at least, which a job may be by
/// name.
pub(crate) const KERNELS_OWN: [&str; 5] = ["sys", "sysrq-trigger", "bus", "fs", "irq"];
/// What tells about the kernel, the machine or others what a job need not know.
const HIDDEN_FILES: [&str; 8] = [
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/kmsg",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/timer_list",
    "/proc/timer_stats",
];
const HIDDEN_DIRECTORIES: [&str; 5] =
    ["/proc/acpi", "/proc/asound", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"];
/// Files that are there but are not to be read.
pub(crate) fn hidden_files() -> impl Iterator<Item = &'static str> {
    HIDDEN_FILES.into_iter()
}
/// And directories.
pub(crate) fn hidden_directories() -> impl Iterator<Item = &'static str> {
    HIDDEN_DIRECTORIES.into_iter()
}
/// An empty directory in `/dev`, to cover others.
const NOTHING: &str = "/dev/.nothing";

/// How to do it. `kind_of` says what is at a path of the host.
pub(crate) fn plan(
    isolation: &Isolation,
    (uid, gid): (u32, u32),
    kind_of: &dyn Fn(&Path) -> Option<Kind>,
) -> io::Result<Plan> {
    let own_users = isolation.own_users;
    let mut plan = Planner { steps: Vec::new(), made: Vec::new(), prefix: PathBuf::new(), held: 0 };
    if own_users {
        let map = |id: u32| CString::new(format!("{id} {id} 1"));
        plan.steps.push(Step::MapUsers { users: map(uid)?, groups: map(gid)? });
    }
    plan.steps.push(Step::Detach);
    // Before anything is covered.
    for bind in &isolation.binds {
        plan.hold(&bind.source)?;
    }
    let devices = DEVICES.map(|(name, ..)| Path::new("/dev").join(name));
    let devices: Vec<&PathBuf> =
        devices.iter().filter(|path| own_users && kind_of(path) == Some(Kind::Other)).collect();
    for device in &devices {
        plan.hold(device)?;
    }
    match &isolation.root {
        None => {
            // In a user namespace what came from outside is locked.
            if !own_users {
                let below = isolation.covers.iter().map(|cover| as_in_the_mount_table(cover)).collect();
                plan.steps.push(Step::LetGo { below });
            }
            plan.steps.push(Step::ReadOnly { path: c"/".to_owned() });
        }
        Some(root) => plan.overlay(root, own_users)?,
    }
    let size = isolation.scratch_size;
    for path in PRIVATE.map(Path::new) {
        // Missing on the host, or a link to another of them.
        if isolation.root.is_some() || kind_of(path) == Some(Kind::Directory) {
            plan.tmpfs(path, &format!("mode=1777,size={size}"))?;
        }
    }
    for cover in isolation.covers.iter().filter(|_| isolation.root.is_none()) {
        if kind_of(cover) == Some(Kind::Other) {
            continue;
        }
        if kind_of(cover).is_some() || plan.is_inside_made(cover) {
            plan.directories(cover)?;
            plan.tmpfs(cover, "mode=0755,size=1m")?;
        }
    }
    plan.devices(size, !own_users)?;
    for (place, device) in devices.into_iter().enumerate() {
        let bind = Bind { source: device.clone(), target: device.clone(), read_only: false };
        plan.place(isolation.binds.len() + place, &bind, Some(Kind::Other))?;
    }
    // Needs a device to hide them under.
    let files =
        isolation.covers.iter().filter(|c| kind_of(c) == Some(Kind::Other) && isolation.root.is_none());
    for file in files {
        plan.steps.push(Step::Hide { path: c_path(file)?, under: c"/dev/null".to_owned() });
    }
    plan.tree_of_processes()?;
    for (number, bind) in isolation.binds.iter().enumerate() {
        plan.place(number, bind, kind_of(&bind.source))?;
    }
    for cover in isolation.covers.iter().filter(|_| isolation.root.is_none()) {
        if plan.made.contains(cover) {
            let path = plan.inside(cover)?;
            plan.steps.push(Step::ReadOnlyHere { path });
        }
    }
    if let Some(root) = &isolation.root {
        plan.steps.push(Step::Pivot { root: c_path(&root.mount_point)? });
    }
    let name = CString::new(isolation.hostname.as_str())?;
    if !name.is_empty() {
        plan.steps.push(Step::Hostname { name });
    }
    Ok(Plan { steps: plan.steps, held: plan.held })
}

/// What is at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Directory,
    Other,
}

impl Kind {
    /// Links are not followed: a mount over one would be somewhere else.
    pub fn of(path: &Path) -> Option<Kind> {
        let found = std::fs::symlink_metadata(path).ok()?;
        Some(if found.is_dir() { Kind::Directory } else { Kind::Other })
    }
}

struct Planner {
    steps: Vec<Step>,
    /// Fresh file systems, by their path inside: only in these can and must directories be made.
    made: Vec<PathBuf>,
    /// Where the root of the job is while it is being made.
    prefix: PathBuf,
    /// Trees that are held.
    held: usize,
}

impl Planner {
    fn hold(&mut self, source: &Path) -> io::Result<()> {
        self.steps.push(Step::Hold { source: c_path(source)?, number: self.held });
        self.held += 1;
        Ok(())
    }

    /// Path of the new root's `path`, seen from the host's root.
    fn inside(&self, path: &Path) -> io::Result<CString> {
        if self.prefix.as_os_str().is_empty() {
            return c_path(path);
        }
        c_path(&self.prefix.join(path.strip_prefix("/").unwrap_or(path)))
    }

    fn is_inside_made(&self, path: &Path) -> bool {
        self.made.iter().any(|made| path.starts_with(made))
    }

    fn tmpfs(&mut self, path: &Path, options: &str) -> io::Result<()> {
        let (target, options) = (self.inside(path)?, CString::new(options)?);
        self.steps.push(Step::Tmpfs { target, options });
        self.made.push(path.to_owned());
        Ok(())
    }

    /// A directory with its parents, as far as they lie in a fresh file system.
    fn directories(&mut self, path: &Path) -> io::Result<()> {
        let Some(base) =
            self.made.iter().filter(|made| path.starts_with(made)).max_by_key(|m| m.as_os_str().len())
        else {
            return Ok(());
        };
        let mut at = base.clone();
        for part in path.strip_prefix(base).unwrap_or(Path::new("")).components() {
            at.push(part);
            let path = self.inside(&at)?;
            self.steps.push(Step::Directory { path });
        }
        Ok(())
    }

    fn overlay(&mut self, root: &RootFs, own_users: bool) -> io::Result<()> {
        let target = c_path(&root.mount_point)?;
        self.steps.push(Step::Mount { kind: c"overlay", target, options: overlay(root, own_users)? });
        self.prefix.clone_from(&root.mount_point);
        Ok(())
    }

    fn devices(&mut self, shm_size: u64, make: bool) -> io::Result<()> {
        let dev = Path::new("/dev");
        self.tmpfs(dev, "mode=0755,size=64k")?;
        for (name, major, minor) in DEVICES.into_iter().filter(|_| make) {
            let path = self.inside(&dev.join(name))?;
            self.steps.push(Step::Device { path, minor, major });
        }
        for (name, to) in LINKS {
            let path = self.inside(&dev.join(name))?;
            self.steps.push(Step::Link { path, to });
        }
        for name in ["pts", "shm", NOTHING] {
            self.directories(&dev.join(name))?;
        }
        let (target, options) =
            (self.inside(&dev.join("pts"))?, c"newinstance,ptmxmode=0666,mode=0620".to_owned());
        self.steps.push(Step::Mount { kind: c"devpts", target, options });
        self.tmpfs(&dev.join("shm"), &format!("mode=1777,size={shm_size}"))
    }

    fn tree_of_processes(&mut self) -> io::Result<()> {
        let target = self.inside(Path::new("/proc"))?;
        self.steps.push(Step::Mount { kind: c"proc", target, options: CString::default() });
        for name in KERNELS_OWN {
            let path = self.inside(&Path::new("/proc").join(name))?;
            self.steps.push(Step::Freeze { path });
        }
        let hidden = HIDDEN_FILES.map(|path| (path, "/dev/null"));
        // Another root has no `/sys` of the host, and what it has there instead may be a link.
        let host = self.prefix.as_os_str().is_empty();
        let directories = HIDDEN_DIRECTORIES.into_iter().filter(|path| host || path.starts_with("/proc"));
        for (path, under) in hidden.into_iter().chain(directories.map(|path| (path, NOTHING))) {
            let (path, under) = (self.inside(Path::new(path))?, self.inside(Path::new(under))?);
            self.steps.push(Step::Hide { path, under });
        }
        Ok(())
    }

    fn place(&mut self, number: usize, bind: &Bind, kind: Option<Kind>) -> io::Result<()> {
        if kind == Some(Kind::Directory) {
            self.directories(&bind.target)?;
        } else if self.is_inside_made(&bind.target) {
            if let Some(parent) = bind.target.parent() {
                self.directories(parent)?;
            }
            let path = self.inside(&bind.target)?;
            self.steps.push(Step::File { path });
        }
        let target = self.inside(&bind.target)?;
        self.steps.push(Step::Put { number, target, read_only: bind.read_only });
        Ok(())
    }
}

/// Options of the mount that puts layers together.
pub(crate) fn overlay(root: &RootFs, own_users: bool) -> io::Result<CString> {
    // Colons and commas separate things in the options of a mount.
    let text = |path: &PathBuf| match path.to_str() {
        Some(text) if !text.contains([':', ',', '\\', '"']) => Ok(text.to_owned()),
        _ => Err(io::Error::other(format!("path {} cannot be a layer", path.display()))),
    };
    let layers = root.layers.iter().map(text).collect::<io::Result<Vec<_>>>()?;
    let mut options = format!("lowerdir={}", layers.join(":"));
    if let Some((upper, work)) = &root.changes {
        options += &format!(",upperdir={},workdir={}", text(upper)?, text(work)?);
    }
    if own_users {
        // The usual attributes are root's.
        options += ",userxattr";
    }
    Ok(CString::new(options)?)
}

/// The kernel's way to write a path in its mount table.
pub(crate) fn as_in_the_mount_table(path: &Path) -> CString {
    use std::os::unix::ffi::OsStrExt;
    let mut out = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => out.extend(format!("\\{byte:03o}").into_bytes()),
            0 => {}
            other => out.push(*other),
        }
    }
    CString::new(out).expect("zeros were left out")
}

/// The directory to cover so that a user who is not root gets through to `path`: the first ancestor
/// that does not let others pass, else `path` itself. Others could see nothing in there anyway. (Or by
/// another criterion than that of passing.)
pub fn cover_for(path: &Path, lets_others_pass: &dyn Fn(&Path) -> bool) -> PathBuf {
    let mut at = PathBuf::new();
    for part in path.components() {
        at.push(part);
        if at != Path::new("/") && at.as_os_str() != OsStr::new("") && !lets_others_pass(&at) {
            return at;
        }
    }
    path.to_owned()
}

/// Others have the right to search this directory.
pub fn lets_others_pass(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|m| m.permissions().mode() & 0o001 != 0)
}

#[cfg(test)]
mod tests;
