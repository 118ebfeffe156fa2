//! The first process of a job's namespaces.
//!
//! In a pid namespace the first process is special: signals without a handler do not reach it, and
//! when it dies the kernel kills all others. A user's command must be neither, so the namespaces get
//! an init of ours: a fork of the caller that arranges the mounts ([`crate::isolation`]) and then waits for
//! ever, while the kernel reaps what is orphaned in there (it ignores SIGCHLD). The command is then born
//! beside it, as a child of the caller, which waits for it as for any other process. It costs one
//! fork without exec; killing the init kills the job, whatever it did to hide
//! (jobs-and-nodes.md 4.6). A killed init stays until all of its namespace are reaped, the command by
//! the caller too.
//!
//! It dies with its caller, too: a job whose proxy is gone has nobody who measures or bounds it.

mod mounts_in_view;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags};
use std::time::Duration;

use crate::environment::CageError;
use crate::isolation::{Isolation, Kind, Plan, Step, plan};
use crate::spawn::{Birthplace, BlockedSignals, CloneArgs, Spawned, refuses_birth_in_group};
use crate::sys;

const NAMESPACES: u64 =
    (libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS) as u64;
/// All that a later process joins by itself; the pid namespace it must be born in.
const JOINED_LATER: libc::c_int = libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// Name of the process in `ps`.
const NAME: &std::ffi::CStr = c"mp-init";

/// A living init. Killed with its container; its parent reaps it.
#[derive(Debug)]
pub(crate) struct Init {
    pub pid: u32,
    pidfd: OwnedFd,
    /// Pid and watch of a process that has the other namespaces, where an OCI runtime made them.
    room: Option<(u32, OwnedFd)>,
    /// The caller's own pid namespace, to come back to.
    home: File,
    /// There is a user namespace, too.
    own_users: bool,
    /// The job's mounts. The kernel takes them apart when the last holder is gone, and waits for all
    /// processors meanwhile, for milliseconds on a busy machine. Were that the dying init, everybody who waits
    /// for its end would wait for that; so it is us, some time after.
    _mounts: File,
}

impl Init {
    /// Makes namespaces and mounts. In an error nothing is left but a zombie that is reaped here.
    pub fn start(isolation: &Isolation, place: &Birthplace<'_>) -> Result<Init, CageError> {
        let failed = |what: String| move |source| CageError::Isolation { what, source };
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let plan = plan(isolation, own, &Kind::of).map_err(failed("plan its mounts".to_owned()))?;
        Init::begin(&plan, NAMESPACES, isolation.own_users, place)
    }

    /// A pid namespace, and nothing else: the rest is made by an OCI runtime.
    pub fn of_processes_only(place: &Birthplace<'_>) -> Result<Init, CageError> {
        Init::begin(&Plan::default(), libc::CLONE_NEWPID as u64, false, place)
    }

    fn begin(
        plan: &Plan,
        namespaces: u64,
        own_users: bool,
        place: &Birthplace<'_>,
    ) -> Result<Init, CageError> {
        let failed = |what: String| move |source| CageError::Isolation { what, source };
        let _unsealed = crate::sealed::unsealed();
        let home = File::open("/proc/self/ns/pid").map_err(failed("open /proc/self/ns/pid".to_owned()))?;
        let (report, theirs) = io::pipe().map_err(failed("create a pipe".to_owned()))?;
        let mut held = vec![-1; plan.held];
        let clone = |held: &mut [RawFd], group: Option<BorrowedFd<'_>>| {
            let ends = (report.as_raw_fd(), theirs.as_raw_fd());
            fork_into(group, namespaces, own_users, || {
                live(plan, place, group.is_none(), held, ends, own_users)
            })
        };
        let (pid, pidfd) = match clone(&mut held, place.v2_group) {
            Err(e) if place.v2_group.is_some() && refuses_birth_in_group(&e) => clone(&mut held, None),
            other => other,
        }
        .map_err(failed("create namespaces".to_owned()))?;
        drop(theirs);
        let (mut report, mut word) = (report, [0; 8]);
        let end = report.read_exact(&mut word);
        let (step, errno) = word.split_at(4);
        let number = |b: &[u8]| i32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        let (step, errno) = (number(step), number(errno));
        if end.is_ok() && errno == 0 {
            // It lives for as long as we do not kill it, so the pid is its own.
            let path = format!("/proc/{pid}/ns/mnt");
            match File::open(&path) {
                Ok(mounts) => return Ok(Init { pid, pidfd, room: None, home, own_users, _mounts: mounts }),
                Err(e) => {
                    let _ = sys::kill(pid, libc::SIGKILL);
                    let _ = sys::reap(pid);
                    return Err(failed(format!("open {path}"))(e));
                }
            }
        }
        let _ = sys::kill(pid, libc::SIGKILL);
        let _ = sys::reap(pid);
        let what = match (end, usize::try_from(step).ok().and_then(|i| plan.steps.get(i))) {
            (Err(_), _) => "prepare: the first process died".to_owned(),
            (_, Some(step)) => format!("carry out {step:?}"),
            (_, None) => "join its control groups".to_owned(),
        };
        Err(CageError::Isolation { what, source: io::Error::from_raw_os_error(errno) })
    }

    /// Kills it and with it all that is in its pid namespace.
    pub fn kill(&self) -> io::Result<()> {
        match rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::KILL) {
            Err(e) if e != rustix::io::Errno::SRCH => Err(e.into()),
            _ => Ok(()),
        }
    }

    /// Root directory of its mount namespace.
    pub fn root(&self) -> std::path::PathBuf {
        let pid = self.room.as_ref().map_or(self.pid, |(pid, _)| *pid);
        format!("/proc/{pid}/root").into()
    }

    /// Waits until it is dead, for so long at most.
    pub fn wait_for_death(&self, patience: Duration) {
        let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
        let mut ready = [PollFd::new(&self.pidfd, PollFlags::IN)];
        // Whatever it says, the caller looks for itself.
        let _ = rustix::event::poll(&mut ready, Some(&timeout));
    }

    /// Takes it off the system's hands, if it has ended and is a child of this process.
    pub fn bury(&self) {
        if sys::ended_child_is(self.pid) {
            let _ = sys::reap(self.pid);
        }
    }

    /// For [`join`] in a child.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.room.as_ref().map_or(&self.pidfd, |(_, pidfd)| pidfd).as_fd()
    }

    /// A runtime has made the other namespaces, and this process is in them.
    pub fn has_room(&mut self, process: &Spawned) -> io::Result<()> {
        self.room = Some((process.pid, process.pidfd.try_clone()?));
        Ok(())
    }

    /// Has it a user namespace? Then only who has joined that may join the others, and who has joined it
    /// cannot come back: the caller sends somebody.
    pub fn has_own_users(&self) -> bool {
        self.own_users
    }

    /// While the guard lives, children of this thread are born into the job's pid namespace.
    pub fn children_inside(&self) -> io::Result<ChildrenInside<'_>> {
        set_namespace(self.pidfd.as_raw_fd(), libc::CLONE_NEWPID)?;
        Ok(ChildrenInside(self))
    }
}

/// See [`Init::children_inside`].
pub(crate) struct ChildrenInside<'a>(&'a Init);

impl Drop for ChildrenInside<'_> {
    fn drop(&mut self) {
        set_namespace(self.0.home.as_raw_fd(), libc::CLONE_NEWPID)
            .expect("one's own namespace is always open");
    }
}

fn set_namespace(fd: RawFd, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: changes where this thread's children are born; touches no memory.
    if unsafe { libc::setns(fd, kind) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// In a child that does not share its directories with anybody: into the namespaces of the process of
/// `pidfd`. False with `errno` set on failure.
pub(crate) fn join(pidfd: RawFd) -> bool {
    // SAFETY: a plain system call.
    unsafe { libc::setns(pidfd, JOINED_LATER) == 0 }
}

/// The same with its user namespace, and children are born into its pid namespace.
pub(crate) fn join_all(pidfd: RawFd) -> bool {
    // SAFETY: a plain system call.
    unsafe { libc::setns(pidfd, JOINED_LATER | libc::CLONE_NEWUSER | libc::CLONE_NEWPID) == 0 }
}

/// A fork into new namespaces and, if given, into a v2 group. `child` must not return, allocate or
/// panic: the copy of a process with threads has their locks, too.
fn fork_into(
    group: Option<BorrowedFd<'_>>,
    namespaces: u64,
    own_users: bool,
    child: impl FnOnce(),
) -> io::Result<(u32, OwnedFd)> {
    let mut pidfd: RawFd = -1;
    let args = CloneArgs {
        flags: namespaces
            | libc::CLONE_PIDFD as u64
            | crate::spawn::CLONE_CLEAR_SIGHAND
            | if own_users { libc::CLONE_NEWUSER as u64 } else { 0 }
            | if group.is_some() { crate::spawn::CLONE_INTO_CGROUP } else { 0 },
        pidfd: (&raw mut pidfd) as u64,
        exit_signal: libc::SIGCHLD as u64,
        cgroup: group.map_or(0, |g| g.as_raw_fd() as u64),
        ..CloneArgs::default()
    };
    // No handler of ours may run in the child before the kernel has cleared them.
    let blocked = BlockedSignals::all();
    // SAFETY: without CLONE_VM this is a fork: the child has a copy of everything, returns from the call
    // like the parent, and runs `child` only, which keeps to the contract above.
    match unsafe { libc::syscall(libc::SYS_clone3, std::ptr::from_ref(&args), size_of::<CloneArgs>()) } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            child();
            sys::exit_now(127)
        }
        pid => {
            drop(blocked);
            // SAFETY: with CLONE_PIDFD the kernel stored a new descriptor there that nobody else owns.
            Ok((pid as u32, unsafe { OwnedFd::from_raw_fd(pidfd) }))
        }
    }
}

/// The init's whole life. Plain system calls on prepared memory only.
fn live(
    plan: &Plan,
    place: &Birthplace<'_>,
    join_v2: bool,
    held: &mut [RawFd],
    (parents_end, report): (RawFd, RawFd),
    reap: bool,
) {
    let say = |step: i32, errno: i32| {
        let (mut word, (a, b)) = ([0; 8], (step.to_le_bytes(), errno.to_le_bytes()));
        word[..4].copy_from_slice(&a);
        word[4..].copy_from_slice(&b);
        // SAFETY: writes eight bytes of a local.
        unsafe { libc::write(report, word.as_ptr().cast(), word.len()) == 8 }
    };
    // SAFETY: reads the thread's errno.
    let errno = || unsafe { *libc::__errno_location() };
    // SAFETY (the block): as for each call; constants and prepared paths only.
    unsafe {
        libc::setsid();
        // The job's user passes through the directories of its view; this process makes nothing else.
        libc::umask(0o022);
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr(), 0, 0, 0);
        // A caller that has died before this line reads no more: then the report is what ends us.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        libc::close(parents_end);
    }
    for path in place.join.iter().map(std::ffi::CString::as_c_str).chain(place.v2_procs.filter(|_| join_v2)) {
        if !sys::write_zero(path) {
            say(-1, errno());
            return;
        }
    }
    for (number, step) in plan.steps.iter().enumerate() {
        if !carry_out(step, held) {
            say(number as i32, errno());
            return;
        }
    }
    // SAFETY: the copy of the caller's memory is used by nobody else; descriptors are ours. All signals are
    // blocked since the fork, so that none is lost between a look and the wait.
    unsafe {
        if !reap {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        }
        if !say(0, 0) {
            return;
        }
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
        let mut child_ended: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut child_ended);
        libc::sigaddset(&mut child_ended, libc::SIGCHLD);
        loop {
            // Where no group counts, what an orphan has used is counted by who waits for it (4.10).
            while reap && libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) > 0 {}
            libc::sigwaitinfo(&child_ended, std::ptr::null_mut());
        }
    }
}

/// False with `errno` set on failure.
pub(crate) fn carry_out(step: &Step, held: &mut [RawFd]) -> bool {
    use libc::{MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_REC};
    let null = std::ptr::null();
    let mount =
        |kind: &std::ffi::CStr, target: &std::ffi::CStr, flags: libc::c_ulong, options: &std::ffi::CStr| {
            // SAFETY: terminated strings that outlive the call.
            unsafe {
                libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
                    == 0
            }
        };
    // SAFETY (all blocks): system calls on terminated strings of the plan; no memory is written.
    match step {
        Step::Unshare => unsafe { libc::unshare(libc::CLONE_NEWNS) == 0 },
        // Whoever could change groups could lose one that forbids something; hence the second word.
        Step::MapUsers { users, groups } => {
            sys::write_word(c"/proc/self/uid_map", users)
                && sys::write_word(c"/proc/self/setgroups", c"deny")
                && sys::write_word(c"/proc/self/gid_map", groups)
        }
        Step::Detach => unsafe {
            libc::mount(null, c"/".as_ptr(), null, MS_REC | MS_PRIVATE, null.cast()) == 0
        },
        Step::LetGo { below } => mounts_in_view::let_go(below),
        Step::Hold { source, number } => {
            let fd = unsafe {
                libc::syscall(
                    libc::SYS_open_tree,
                    libc::AT_FDCWD,
                    source.as_ptr(),
                    OPEN_TREE_CLONE | libc::O_CLOEXEC as u32 | libc::AT_RECURSIVE as u32,
                )
            };
            held[*number] = fd as RawFd;
            fd >= 0
        }
        Step::Put { number, target, read_only } => unsafe {
            let fd = held[*number];
            (!read_only || set_read_only(fd, c"", true))
                && libc::syscall(
                    libc::SYS_move_mount,
                    fd,
                    c"".as_ptr(),
                    libc::AT_FDCWD,
                    target.as_ptr(),
                    MOVE_MOUNT_F_EMPTY_PATH,
                ) == 0
                && libc::close(fd) == 0
        },
        Step::ReadOnly { path } => set_read_only(libc::AT_FDCWD, path, true),
        Step::ReadOnlyHere { path } => set_read_only(libc::AT_FDCWD, path, false),
        // What this kernel was built without needs no protection.
        Step::Freeze { path } => unsafe {
            if libc::mount(path.as_ptr(), path.as_ptr(), null, libc::MS_BIND, null.cast()) == 0 {
                set_read_only(libc::AT_FDCWD, path, false)
            } else {
                *libc::__errno_location() == libc::ENOENT
            }
        },
        Step::Hide { path, under } => unsafe {
            libc::mount(under.as_ptr(), path.as_ptr(), null, libc::MS_BIND, null.cast()) == 0
                || *libc::__errno_location() == libc::ENOENT
        },
        Step::Tmpfs { target, options } => mount(c"tmpfs", target, MS_NOSUID, options),
        Step::Mount { kind, target, options } => {
            let flags = match kind.to_bytes() {
                b"proc" => MS_NOSUID | MS_NODEV | MS_NOEXEC,
                b"devpts" => MS_NOSUID | MS_NOEXEC,
                // The root of a job: an image brings neither devices nor privileges.
                _ => MS_NOSUID | MS_NODEV,
            };
            mount(kind, target, flags, options)
        }
        Step::Directory { path } => unsafe { libc::mkdir(path.as_ptr(), 0o755) == 0 || exists() },
        Step::File { path } => unsafe {
            libc::mknod(path.as_ptr(), libc::S_IFREG | 0o444, 0) == 0 || exists()
        },
        Step::Device { path, major, minor } => unsafe {
            libc::mknod(path.as_ptr(), libc::S_IFCHR, libc::makedev(*major, *minor)) == 0
                && libc::chmod(path.as_ptr(), 0o666) == 0
        },
        Step::Link { path, to } => unsafe { libc::symlink(to.as_ptr(), path.as_ptr()) == 0 },
        Step::Pivot { root } => unsafe {
            libc::chdir(root.as_ptr()) == 0
                && libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) == 0
                && libc::umount2(c".".as_ptr(), libc::MNT_DETACH) == 0
                && libc::chdir(c"/".as_ptr()) == 0
        },
        Step::Hostname { name } => unsafe { libc::sethostname(name.as_ptr(), name.count_bytes()) == 0 },
    }
}

/// Was the last error "it is there already"?
fn exists() -> bool {
    // SAFETY: reads the thread's errno.
    unsafe { *libc::__errno_location() == libc::EEXIST }
}

const OPEN_TREE_CLONE: u32 = 1;
const MOVE_MOUNT_F_EMPTY_PATH: u32 = 4;
const MOUNT_ATTR_RDONLY: u64 = 1;

/// `struct mount_attr` of the kernel.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

fn set_read_only(at: RawFd, path: &std::ffi::CStr, and_below: bool) -> bool {
    let attributes = MountAttributes { set: MOUNT_ATTR_RDONLY, clear: 0, propagation: 0, user_namespace: 0 };
    let flags = libc::AT_EMPTY_PATH | if and_below { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the kernel reads the structure, of the size that it is told.
    unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at,
            path.as_ptr(),
            flags,
            std::ptr::from_ref(&attributes),
            size_of::<MountAttributes>(),
        ) == 0
    }
}
