//! The driver `oci`: groups as the best other driver of this host has them, and an OCI runtime (runc) that
//! puts a job's command into its namespaces and its root (jobs-and-nodes.md 4.1, 4.7).
//!
//! What a job sees is the same [`Isolation`] as everywhere, written down as a bundle ([`bundle`]). Three
//! things stay ours, because the promises of the other drivers hang on them:
//!
//! - *The pid namespace* has our init in it ([`crate::init`]) and the runtime joins it: the command is not its first
//!   process, and all die with the proxy.
//! - *The groups.* The runtime gets a place of its own to play with; before it is told to execute the command,
//!   the process is moved into the job's groups, which bound it, measure it and kill it.
//! - *The root file system* is mounted in a mount namespace that the runtime is started in, so nothing of it is
//!   ever to be seen, or to be unmounted, on the host.
//!
//! `create` leaves a process that waits; it becomes a child of this one, which adopts orphans for that moment, and
//! `start` lets it execute the command: whoever waits for the command waits for a child as ever.

mod bundle;

use crate::environment::CageError;
use crate::group::{Group, made_with_parents, named};
use crate::init::{Init, carry_out};
use crate::isolation::{Isolation, Kind, Plan};
use crate::mounts::MountTable;
use crate::spawn::{MAX_DESCRIPTORS, ProcessSpec, Spawned};
use crate::sys;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use vocab::JobId;

/// Where a runtime is looked for.
const PLACES: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const NAME: &str = "runc";
/// Its notes on containers, by node. In memory: what is in there does not outlive the host, and must not be
/// read by others (environments have secrets).
const STATE: &str = "/run/millpond-oci";
/// Of the root group: places for the runtime's own groups.
const GROUPS: &str = "oci";

/// An installed runtime, and where it may write.
pub(crate) struct Runtime {
    program: PathBuf,
    /// Of this node.
    state: PathBuf,
    /// Relative to the mount points.
    root_group: PathBuf,
    /// Of all hierarchies, used or not: the runtime makes groups in each of them.
    hierarchies: Vec<PathBuf>,
}

/// A path as one name: no two paths have the same.
fn one_name(path: &str) -> String {
    path.replace('%', "%25").replace('/', "%2F")
}

impl Runtime {
    /// Looks for one; the error says what is missing.
    pub fn find(root_group: &str, mounts: &MountTable) -> Result<Runtime, String> {
        let program = PLACES.iter().map(|place| Path::new(place).join(NAME)).find(|path| path.is_file());
        let program = program
            .ok_or_else(|| format!("no OCI runtime: there is no {NAME:?} in {}", PLACES.join(", ")))?;
        if !rustix::process::geteuid().is_root() {
            return Err("an OCI runtime needs root".to_owned());
        }
        Ok(Runtime {
            program,
            state: Path::new(STATE).join(one_name(root_group)),
            root_group: PathBuf::from(root_group),
            hierarchies: mounts.all(),
        })
    }

    fn bundle(&self, name: &str) -> PathBuf {
        self.state.join("bundles").join(name)
    }
    fn containers(&self) -> PathBuf {
        self.state.join("containers")
    }

    /// Starts a process as the isolation wants it, in the pid namespace of `init` and in `groups`.
    pub fn spawn(
        &self,
        name: &str,
        spec: &ProcessSpec<'_>,
        isolation: &Isolation,
        init: &Init,
        groups: &[&Group],
    ) -> Result<Spawned, CageError> {
        demand_executable(spec)?;
        let directory = self.bundle(name);
        let root = directory.join("rootfs");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&root)
            .map_err(CageError::io("create", &root))?;
        let group = Path::new("/").join(&self.root_group).join(GROUPS).join(name);
        let places = bundle::Places { root: &root, group: &group, pid_namespace: init.pid };
        let config = bundle::config(spec, isolation, &places, &Kind::of)
            .map_err(CageError::io("describe a container in", &directory))?;
        let file = directory.join("config.json");
        fs::write(&file, config).map_err(CageError::io("write", &file))?;
        let view = bundle::view(isolation, &root).map_err(CageError::io("plan the mounts of", &directory))?;

        let started = self.create_and_start(name, spec, view, groups);
        // It has told what it had to tell, and it has secrets.
        let _ = fs::remove_file(&file);
        if started.is_err() {
            let _ = self.delete(name);
        }
        started
    }

    fn create_and_start(
        &self,
        name: &str,
        spec: &ProcessSpec<'_>,
        view: Plan,
        groups: &[&Group],
    ) -> Result<Spawned, CageError> {
        let directory = self.bundle(name);
        let pid_file = directory.join("pid");
        let most = spec.descriptors.iter().map(|(_, target)| *target).max().unwrap_or(2).max(2);
        let null = File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .map_err(CageError::io("open", "/dev/null"))?;
        let mut sources = [null.as_raw_fd(); MAX_DESCRIPTORS as usize];
        for (source, target) in spec.descriptors {
            sources[*target as usize] = source.as_raw_fd();
        }
        let mut create = self.command("create", name);
        create.arg("--bundle").arg(&directory).arg("--pid-file").arg(&pid_file);
        create.arg("--preserve-fds").arg((most - 2).to_string()).arg(name);
        let mut held = vec![-1; view.held];
        let prepare = move || {
            // The runtime makes directories that the job's user passes through. The process itself gets its umask by the bundle.
            // SAFETY: sets a number of this process.
            unsafe { libc::umask(0o022) };
            let done = view.steps.iter().all(|step| carry_out(step, &mut held)) && arrange(&sources, most);
            if done { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        // SAFETY: between fork and exec there are system calls on memory that was prepared before, and no others.
        unsafe { create.pre_exec(prepare) };
        {
            let _orphans = Adopting::begin().map_err(CageError::io("adopt the child of", &self.program))?;
            self.run(create).map_err(|text| self.failure("create", &text, spec))?;
        }
        let pid = fs::read_to_string(&pid_file).ok().and_then(|text| text.trim().parse::<u32>().ok());
        let pid = pid.ok_or_else(|| self.failure("create", "it tells no process", spec))?;
        let process = started(pid).map_err(CageError::io("watch the process of", &directory))?;
        let moved = groups.iter().try_for_each(|group| group.write("cgroup.procs", &pid.to_string()));
        let ran = moved.and_then(|()| {
            let mut start = self.command("start", name);
            start.arg(name).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            self.run(start).map_err(|text| self.failure("start", &text, spec))
        });
        if let Err(e) = ran {
            let _ = sys::kill(pid, libc::SIGKILL);
            let _ = sys::reap(pid);
            return Err(e);
        }
        Ok(process)
    }

    fn command(&self, verb: &str, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().env("PATH", PLACES.join(":")).current_dir("/");
        command.arg("--root").arg(self.containers());
        command.arg("--log").arg(self.log(name)).arg("--log-format").arg("text");
        command.arg(verb);
        command
    }

    fn log(&self, name: &str) -> PathBuf {
        self.bundle(name).join("log")
    }

    /// Runs it to its end; the error is what it says.
    fn run(&self, mut command: Command) -> Result<(), String> {
        let log = command.get_args().skip_while(|a| *a != "--log").nth(1).map(PathBuf::from);
        let status = command.status().map_err(|e| format!("cannot run {}: {e}", self.program.display()))?;
        if status.success() {
            return Ok(());
        }
        let text = log.and_then(|log| fs::read_to_string(log).ok()).unwrap_or_default();
        Err(said(&text).unwrap_or_else(|| format!("it ended with {status}")))
    }

    fn failure(&self, verb: &str, text: &str, spec: &ProcessSpec<'_>) -> CageError {
        if text.contains("argument list too long") {
            return too_long(spec);
        }
        let source = io::Error::other(text.to_owned());
        // What it cannot execute is the doing of whoever wanted that executed.
        if text.contains("exec:") || text.contains("exec /") {
            let program = spec.program.to_string_lossy().into_owned();
            return CageError::Spawn { program, stage: "the OCI runtime refuses", source };
        }
        CageError::Isolation { what: format!("{verb} a container with {}", self.program.display()), source }
    }

    /// Forgets a container whose processes are dead. One that it does not know is fine.
    pub fn delete(&self, name: &str) -> Result<(), CageError> {
        if self.containers().join(name).exists() {
            let mut delete = self.command("delete", name);
            delete.args(["--force", name]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            self.run(delete)
                .map_err(io::Error::other)
                .map_err(CageError::io("delete the container in", self.containers().join(name)))?;
        }
        // What a runtime that was killed has not tidied up.
        for hierarchy in &self.hierarchies {
            Group::new(hierarchy.join(&self.root_group).join(GROUPS).join(name)).remove()?;
        }
        match fs::remove_dir_all(self.bundle(name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(CageError::io("remove", self.bundle(name))(e))
            }
            _ => Ok(()),
        }
    }

    /// Jobs of which something is left.
    pub fn existing(&self) -> Vec<JobId> {
        [self.containers(), self.state.join("bundles")].iter().flat_map(|place| named(place)).collect()
    }

    /// Makes the places for the runtime's groups and notes. It would make them itself, but not twice: as long as
    /// they are there no other node can remove what is shared, which is not empty then.
    pub fn prepare(&self) -> Result<(), CageError> {
        for hierarchy in &self.hierarchies {
            // The runtime may be able to do without one that nobody can write to.
            let _ = Group::new(hierarchy.join(&self.root_group).join(GROUPS)).make_all();
        }
        for place in [self.containers(), self.state.join("bundles")] {
            made_with_parents(|| DirBuilder::new().recursive(true).mode(0o700).create(&place))
                .map_err(CageError::io("create", &place))?;
        }
        Ok(())
    }

    /// Removes all places for groups and notes; an error is about those of this node. What nodes share goes
    /// with the last one. The node's own groups in hierarchies of `others` are removed by somebody else.
    pub fn remove_root(&self, others: &[&Group]) -> Result<(), CageError> {
        let mut worst = Ok(());
        for hierarchy in &self.hierarchies {
            let root = Group::new(hierarchy.join(&self.root_group));
            worst = worst.and(root.child(GROUPS).remove_if_empty());
            if !others.contains(&&root) {
                worst = worst.and(root.remove_if_empty());
                for parent in self.root_group.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty())
                {
                    let _ = fs::remove_dir(hierarchy.join(parent));
                }
            }
        }
        for name in ["containers", "bundles", ""] {
            let _ = fs::remove_dir(self.state.join(name));
        }
        let _ = fs::remove_dir(STATE);
        worst
    }
}

/// Bytes of an argument or a variable that the kernel executes, with the NUL (`MAX_ARG_STRLEN`).
const MAX_STRING: usize = 32 * 4096;

/// Refuses strings that the kernel would refuse. A runtime reports that a command has started before it executes it, and
/// does not report that this failed.
fn demand_executable(spec: &ProcessSpec<'_>) -> Result<(), CageError> {
    let mut strings = spec.arguments.iter().chain(spec.environment);
    match strings.any(|text| text.as_bytes_with_nul().len() > MAX_STRING) {
        true => Err(too_long(spec)),
        false => Ok(()),
    }
}

fn too_long(spec: &ProcessSpec<'_>) -> CageError {
    CageError::Spawn {
        program: spec.program.to_string_lossy().into_owned(),
        stage: "cannot execute",
        source: io::Error::from_raw_os_error(libc::E2BIG),
    }
}

/// A child of ours, and watched.
fn started(pid: u32) -> io::Result<Spawned> {
    let raw = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let raw = raw.ok_or_else(|| io::Error::other(format!("{pid} is no process")))?;
    let pidfd = rustix::process::pidfd_open(raw, rustix::process::PidfdFlags::empty())?;
    Ok(Spawned { pid, pidfd })
}

/// The last thing that a runtime wrote about an error.
fn said(log: &str) -> Option<String> {
    let line = log.lines().rfind(|line| line.contains("level=error"))?;
    let (_, text) = line.split_once("msg=")?;
    Some(text.trim_matches('"').replace("\\\"", "\""))
}

/// Descriptors below `most` are these, all others are closed at the next exec. False with `errno` set.
fn arrange(sources: &[RawFd; MAX_DESCRIPTORS as usize], most: RawFd) -> bool {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    let mut copies: [RawFd; MAX_DESCRIPTORS as usize] = [-1; MAX_DESCRIPTORS as usize];
    // SAFETY (the block): plain system calls on descriptors, in a process of our own.
    unsafe {
        for (copy, source) in copies.iter_mut().zip(sources).take(most as usize + 1) {
            *copy = libc::fcntl(*source, libc::F_DUPFD_CLOEXEC, MAX_DESCRIPTORS);
            if *copy < 0 {
                return false;
            }
        }
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC) == 0
            && (0..=most).all(|target| libc::dup2(copies[target as usize], target) >= 0)
    }
}

/// While it lives, orphans become children of this process.
struct Adopting {
    always: bool,
}

impl Adopting {
    fn begin() -> io::Result<Adopting> {
        let always = sys::is_subreaper();
        sys::become_subreaper()?;
        Ok(Adopting { always })
    }
}

impl Drop for Adopting {
    fn drop(&mut self) {
        if !self.always {
            sys::stop_being_subreaper();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_do_not_share_a_directory() {
        let names: Vec<String> = ["a_b/c", "a/b_c", "a%2Fb_c", "a", "a_b"].map(one_name).to_vec();
        assert_eq!(names, ["a_b%2Fc", "a%2Fb_c", "a%252Fb_c", "a", "a_b"]);
    }

    #[test]
    fn the_last_error_is_told() {
        let log = "time=\"2026\" level=warning msg=\"no\"\ntime=\"2026\" level=error msg=\"exec: \\\"/x\\\": not there\"\n";
        assert_eq!(said(log).as_deref(), Some("exec: \"/x\": not there"));
        assert_eq!(said("nothing"), None);
    }
}
