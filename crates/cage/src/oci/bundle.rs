//! What an [`Isolation`] is in the words of the OCI runtime specification, version 1.0.

use crate::isolation::{
    Isolation, KERNELS_OWN, Kind, PRIVATE, Plan, Step, as_in_the_mount_table, hidden_directories,
    hidden_files, overlay,
};
use crate::privileges;
use crate::spawn::{ProcessSpec, c_path};
use rustix::process::{Resource, getrlimit};
use std::io;
use std::path::{Path, PathBuf};
use yson::json::{JsonFormat, to_json};
use yson::{Map, Value, map};

/// What the bundle must not invent.
pub(super) struct Places<'a> {
    /// Where the root file system is, in the runtime's mount namespace.
    pub root: &'a Path,
    /// For the runtime's own groups.
    pub group: &'a Path,
    /// A process in the pid namespace to join.
    pub pid_namespace: u32,
}

/// What is mounted before the runtime begins: the root of the job, where nobody else sees it.
pub(super) fn view(isolation: &Isolation, root: &Path) -> io::Result<Plan> {
    let target = c_path(root)?;
    let mut steps = vec![Step::Unshare, Step::Detach];
    let Some(layers) = &isolation.root else {
        steps.push(Step::Hold { source: c"/".to_owned(), number: 0 });
        steps.push(Step::Put { number: 0, target, read_only: true });
        let inside = |cover: &PathBuf| root.join(cover.strip_prefix("/").unwrap_or(cover));
        let below = isolation.covers.iter().map(|cover| as_in_the_mount_table(&inside(cover))).collect();
        steps.push(Step::LetGo { below });
        return Ok(Plan { steps, held: 1 });
    };
    steps.push(Step::Mount { kind: c"overlay", target, options: overlay(layers, false)? });
    Ok(Plan { steps, held: 0 })
}

/// The file `config.json`.
pub(super) fn config(
    spec: &ProcessSpec<'_>,
    isolation: &Isolation,
    places: &Places<'_>,
    kind_of: &dyn Fn(&Path) -> Option<Kind>,
) -> io::Result<Vec<u8>> {
    let own_root = isolation.root.is_some();
    let writable = isolation.root.as_ref().is_some_and(|root| root.changes.is_some());
    let pid_namespace = format!("/proc/{}/ns/pid", places.pid_namespace);
    let namespaces = ["mount", "ipc", "uts"].map(|kind| Value::from(map! {"type" => kind}));
    let pid = Value::from(map! {"type" => "pid", "path" => pid_namespace});
    // A file of the host that must not be seen.
    let files = isolation.covers.iter().filter(|c| !own_root && kind_of(c) == Some(Kind::Other));
    let masked: Vec<Value> = hidden_files()
        .chain(hidden_directories().filter(|path| !own_root || path.starts_with("/proc")))
        .map(|path| Ok(Value::from(path)))
        .chain(files.map(|path| Ok(Value::from(text(path)?))))
        .collect::<io::Result<_>>()?;
    let frozen: Vec<Value> = KERNELS_OWN.iter().map(|name| Value::from(format!("/proc/{name}"))).collect();
    let linux = map! {
        "namespaces" => namespaces.into_iter().chain([pid]).collect::<Vec<_>>(),
        "cgroupsPath" => text(places.group)?,
        "maskedPaths" => masked,
        "readonlyPaths" => frozen,
        "seccomp" => privileges::as_seccomp_profile(),
    };
    let config = map! {
        "ociVersion" => "1.0.2",
        "root" => map! {"path" => text(places.root)?, "readonly" => !writable},
        "hostname" => isolation.hostname.as_str(),
        "process" => process(spec, own_root)?,
        "mounts" => mounts(isolation, kind_of)?,
        "linux" => linux,
    };
    Ok(to_json(&Value::from(config), &JsonFormat::utf8()))
}

/// A bundle has no other name for a program than its first argument, which the runtime looks for in `PATH`: the
/// name that the program is to see, if it is found by that, else its path.
fn name_of_program<'a>(spec: &'a ProcessSpec<'_>, own_root: bool) -> &'a [u8] {
    use std::os::unix::ffi::OsStrExt;
    let path = spec.program.to_bytes();
    let Some(name) = spec.arguments.first().map(|name| name.as_bytes()).filter(|_| !own_root) else {
        return path;
    };
    let places = spec.environment.iter().find_map(|variable| variable.as_bytes().strip_prefix(b"PATH="));
    let mut found = places
        .unwrap_or_default()
        .split(|byte| *byte == b':')
        .map(|place| Path::new(std::ffi::OsStr::from_bytes(place)).join(std::ffi::OsStr::from_bytes(name)));
    let first = found.find(|path| path.is_file());
    if !name.contains(&b'/') && first.is_some_and(|first| first.as_os_str().as_bytes() == path) {
        name
    } else {
        path
    }
}

/// What a job writes is closed to other users unless the job opens it.
const UMASK: u64 = 0o077;

fn process(spec: &ProcessSpec<'_>, own_root: bool) -> io::Result<Map> {
    let words = |list: &[std::ffi::CString]| -> io::Result<Vec<Value>> {
        list.iter().map(|word| Ok(Value::from(utf8(word.as_bytes())?))).collect()
    };
    let mut arguments = vec![Value::from(utf8(name_of_program(spec, own_root))?)];
    arguments.extend(words(spec.arguments.get(1..).unwrap_or_default())?);
    let (uid, gid) = spec
        .user
        .unwrap_or_else(|| (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()));
    // A runtime gives up where it may not raise a limit: then there is no more than we have.
    let limit = |kind: &str, resource: Resource, value: u64| {
        let value = value.min(getrlimit(resource).maximum.unwrap_or(u64::MAX));
        Value::from(map! {"type" => kind, "hard" => value, "soft" => value})
    };
    let limits = [
        limit("RLIMIT_CORE", Resource::Core, privileges::NO_CORE_DUMP),
        limit("RLIMIT_NOFILE", Resource::Nofile, spec.open_files_limit),
    ];
    let processes = spec.processes_limit.map(|most| limit("RLIMIT_NPROC", Resource::Nproc, most));
    let none = || Value::List(Vec::new());
    let capabilities: Map = ["bounding", "effective", "inheritable", "permitted", "ambient"]
        .map(|set| (set, none()))
        .into_iter()
        .collect();
    Ok(map! {
        "terminal" => false,
        "user" => map! {"uid" => u64::from(uid), "gid" => u64::from(gid), "umask" => UMASK},
        "args" => arguments,
        "env" => words(spec.environment)?,
        "cwd" => utf8(spec.working_directory.to_bytes())?,
        "capabilities" => capabilities,
        "rlimits" => limits.into_iter().chain(processes).collect::<Vec<_>>(),
        "noNewPrivileges" => true,
    })
}

/// In the order of [`crate::isolation::plan`]: what covers, then what is put back.
fn mounts(isolation: &Isolation, kind_of: &dyn Fn(&Path) -> Option<Kind>) -> io::Result<Vec<Value>> {
    let own_root = isolation.root.is_some();
    let size = isolation.scratch_size;
    let mount = |target: &str, kind: &str, options: &[&str]| {
        let options: Vec<Value> = options.iter().map(|option| Value::from(*option)).collect();
        Value::from(map! {"destination" => target, "type" => kind, "source" => kind, "options" => options})
    };
    let size = format!("size={size}");
    let scratch = ["nosuid", "nodev", "mode=1777", size.as_str()];
    let mut out = vec![mount("/proc", "proc", &["nosuid", "nodev", "noexec"])];
    for path in PRIVATE {
        if own_root || kind_of(Path::new(path)) == Some(Kind::Directory) {
            out.push(mount(path, "tmpfs", &scratch));
        }
    }
    let mut covered: Vec<&Path> = PRIVATE.map(Path::new).to_vec();
    for cover in isolation.covers.iter().filter(|_| !own_root) {
        if kind_of(cover) != Some(Kind::Other)
            && (kind_of(cover).is_some() || covered.iter().any(|over| cover.starts_with(over)))
        {
            // Read-only once all is in its place.
            out.push(mount(text(cover)?, "tmpfs", &["nosuid", "nodev", "mode=0755", "size=1m", "ro"]));
            covered.push(cover);
        }
    }
    out.push(mount("/dev", "tmpfs", &["nosuid", "mode=0755", "size=64k"]));
    let terminals = ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"];
    out.push(mount("/dev/pts", "devpts", &terminals));
    out.push(mount("/dev/shm", "tmpfs", &scratch));
    for bind in &isolation.binds {
        let options = if bind.read_only { ["rbind", "rro"] } else { ["rbind", "rw"] };
        let options: Vec<Value> = options.map(Value::from).to_vec();
        let (target, source) = (text(&bind.target)?, text(&bind.source)?);
        out.push(Value::from(map! {
            "destination" => target, "type" => "bind", "source" => source, "options" => options,
        }));
    }
    Ok(out)
}

/// The file is JSON.
fn utf8(bytes: &[u8]) -> io::Result<&str> {
    std::str::from_utf8(bytes)
        .map_err(|_| io::Error::other(format!("{:?} is not UTF-8", String::from_utf8_lossy(bytes))))
}

fn text(path: &Path) -> io::Result<&str> {
    use std::os::unix::ffi::OsStrExt;
    utf8(path.as_os_str().as_bytes())
}
