//! Starting a process inside its groups.
//!
//! The child is made by `clone3` with `CLONE_VM | CLONE_VFORK` on a stack of its own, as
//! `posix_spawn` does: no page table is copied, the parent sleeps until the child has called exec (or
//! failed), and a failure comes back through plain memory. `CLONE_INTO_CGROUP` puts it into its v2
//! group before its first instruction; into v1 groups it writes itself before exec. So the user's
//! program is never outside.

use crate::environment::CageError;
use crate::init::{self, Init};
use crate::isolation::Isolation;
use crate::sealed::Sealed;
use crate::{privileges, sys};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

/// What to start.
#[derive(Debug)]
pub struct ProcessSpec<'a> {
    /// Path of the program.
    pub program: &'a CStr,
    /// Arguments, with the program's name first.
    pub arguments: &'a [CString],
    /// Whole environment, `NAME=value`.
    pub environment: &'a [CString],
    /// Working directory.
    pub working_directory: &'a CStr,
    /// Descriptors that the process gets, with their numbers (all below [`MAX_DESCRIPTORS`]); every other is closed.
    pub descriptors: &'a [(BorrowedFd<'a>, RawFd)],
    /// User and group; none: those of the caller.
    pub user: Option<(u32, u32)>,
    /// Most open files.
    pub open_files_limit: u64,
    /// Namespaces, mounts and privileges; none: those of the caller.
    pub isolation: Option<&'a Isolation>,
    /// Most processes and threads of the user; none: as the caller.
    pub processes_limit: Option<u64>,
    /// Descriptor 0 is a terminal, and becomes the one that the process is controlled by.
    pub terminal: bool,
}

/// Numbers of descriptors that a process may be given: a hundred output tables are 1, 4, 7, ..., 301
/// (jobs-and-nodes.md 5.2).
pub const MAX_DESCRIPTORS: RawFd = 310;

/// A started process. Not reaped on drop: the caller does.
#[derive(Debug)]
pub struct Spawned {
    /// Process id.
    pub pid: u32,
    /// Readable when it has ended.
    pub pidfd: OwnedFd,
}

/// Where a process is to be born.
#[derive(Debug, Default)]
pub(crate) struct Birthplace<'a> {
    /// Directory of a v2 group.
    pub v2_group: Option<BorrowedFd<'a>>,
    /// `tasks` or `cgroup.procs` files that the child writes itself into.
    pub join: &'a [CString],
    /// `cgroup.procs` of `v2_group`, for kernels that refuse `CLONE_INTO_CGROUP`.
    pub v2_procs: Option<&'a CStr>,
    /// It is killed when the calling thread ends.
    pub dies_with_caller: bool,
}

/// Steps of the child, for the error text.
const STAGES: [&str; 15] = [
    "",
    "cannot become a session leader",
    "cannot join its control groups",
    "cannot set limits",
    "cannot set no_new_privs",
    "cannot change user",
    "cannot change directory",
    "cannot arrange descriptors",
    "cannot execute",
    "cannot reset signals",
    "cannot join its namespaces",
    "cannot drop its capabilities",
    "cannot filter its system calls",
    "cannot take its terminal",
    "cannot be tied to its parent",
];
const SETSID: usize = 1;
const JOIN: usize = 2;
const LIMITS: usize = 3;
const NO_NEW_PRIVS: usize = 4;
const USER: usize = 5;
const DIRECTORY: usize = 6;
const DESCRIPTORS: usize = 7;
const EXEC: usize = 8;
const SIGNALS: usize = 9;
const NAMESPACES: usize = 10;
const CAPABILITIES: usize = 11;
const FILTER: usize = 12;
const TERMINAL: usize = 13;
const TIED: usize = 14;

/// Everything the child needs, prepared by the parent: the child must not allocate.
struct ChildContext<'a> {
    spec: &'a ProcessSpec<'a>,
    argv: Vec<*const libc::c_char>,
    envp: Vec<*const libc::c_char>,
    join: &'a [CString],
    join_v2: Option<&'a CStr>,
    /// Die with this process.
    parent: Option<i32>,
    /// Init of the namespaces to join.
    init: Option<RawFd>,
    failed_stage: usize,
    errno: i32,
}

/// `struct clone_args` of the kernel, version 2 (88 bytes).
#[repr(C, align(8))]
#[derive(Default)]
pub(crate) struct CloneArgs {
    pub flags: u64,
    pub pidfd: u64,
    pub child_tid: u64,
    pub parent_tid: u64,
    pub exit_signal: u64,
    pub stack: u64,
    pub stack_size: u64,
    pub tls: u64,
    pub set_tid: u64,
    pub set_tid_size: u64,
    pub cgroup: u64,
}

const CLONE_VM: u64 = 0x100;
const CLONE_FILES: u64 = 0x400;
const CLONE_PIDFD: u64 = 0x1000;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_PARENT: u64 = 0x8000;
pub(crate) const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
pub(crate) const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// The child needs a few frames of libc calls; the rest is headroom for unoptimised builds.
const CHILD_STACK: usize = 32 << 10;

/// With an init the process joins its namespaces: they were made by `spec.isolation`.
pub(crate) fn spawn(
    spec: &ProcessSpec<'_>,
    place: &Birthplace<'_>,
    init: Option<&Init>,
) -> Result<Spawned, CageError> {
    assert!(
        spec.descriptors.len() <= MAX_DESCRIPTORS as usize
            && spec.descriptors.iter().all(|(_, n)| (0..MAX_DESCRIPTORS).contains(n)),
        "descriptor numbers must be below {MAX_DESCRIPTORS}"
    );
    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let mut context = ChildContext {
        spec,
        argv: pointers(spec.arguments),
        envp: pointers(spec.environment),
        join: place.join,
        join_v2: None,
        parent: place.dies_with_caller.then(|| std::process::id() as i32),
        init: init.filter(|i| !i.has_own_users()).map(|i| i.as_fd().as_raw_fd()),
        failed_stage: 0,
        errno: 0,
    };
    let failed = |stage: &'static str| {
        let program = spec.program.to_string_lossy().into_owned();
        move |source: io::Error| CageError::Spawn { program, stage, source }
    };
    // A child with the caller's user joins processes that have it, too.
    let _sealed = init.filter(|i| i.has_own_users() || spec.user.is_none()).map(|_| Sealed::new());
    if let Some(init) = init.filter(|i| i.has_own_users()) {
        let started = through_a_messenger(&mut context, init).map_err(failed(STAGES[NAMESPACES]))?;
        return started_or_failed(started, &context, failed);
    }
    let _inside = init.map(Init::children_inside).transpose().map_err(failed(STAGES[NAMESPACES]))?;
    let started = match clone_child(&mut context, place.v2_group) {
        Err(e) if place.v2_group.is_some() && refuses_birth_in_group(&e) => {
            context.join_v2 = place.v2_procs;
            clone_child(&mut context, None)
        }
        other => other,
    }
    .map_err(failed("cannot create a process"))?;
    started_or_failed(started, &context, failed)
}

/// The child has called exec, or has said what it failed at and is to be reaped.
fn started_or_failed<F: FnOnce(io::Error) -> CageError>(
    started: Spawned,
    context: &ChildContext<'_>,
    failed: impl FnOnce(&'static str) -> F,
) -> Result<Spawned, CageError> {
    if context.failed_stage != 0 {
        let _ = sys::reap(started.pid);
        return Err(failed(STAGES[context.failed_stage])(io::Error::from_raw_os_error(context.errno)));
    }
    Ok(started)
}

/// Old kernels, seccomp filters and emulators; not "no memory" and the like.
pub(crate) fn refuses_birth_in_group(e: &io::Error) -> bool {
    matches!(
        e.raw_os_error(),
        Some(libc::ENOSYS | libc::EINVAL | libc::E2BIG | libc::EPERM | libc::EOPNOTSUPP)
    )
}

fn clone_child(context: &mut ChildContext<'_>, group: Option<BorrowedFd<'_>>) -> io::Result<Spawned> {
    let mut stack = vec![0_u128; CHILD_STACK / 16];
    let mut pidfd: RawFd = -1;
    let args = CloneArgs {
        flags: CLONE_VM
            | CLONE_VFORK
            | CLONE_PIDFD
            | CLONE_CLEAR_SIGHAND
            | if group.is_some() { CLONE_INTO_CGROUP } else { 0 },
        pidfd: (&raw mut pidfd) as u64,
        exit_signal: libc::SIGCHLD as u64,
        stack: stack.as_mut_ptr() as u64,
        stack_size: CHILD_STACK as u64,
        cgroup: group.map_or(0, |g| g.as_raw_fd() as u64),
        ..CloneArgs::default()
    };
    // No handler of ours may run in the child: it would run on our memory. The child unblocks.
    let _blocked = BlockedSignals::all();
    // SAFETY: the child shares our memory and runs `child_entry` on `stack`, which lives until this
    // function returns; CLONE_VFORK suspends this thread until the child has left our memory by exec
    // or exit. The child touches `context`, its stack and nothing else of ours that is written
    // concurrently: it neither allocates nor takes locks. `context` is exclusively borrowed.
    let pid = unsafe { clone3(&args, child_entry, std::ptr::from_mut(context).cast()) };
    if pid < 0 {
        return Err(io::Error::from_raw_os_error(-pid as i32));
    }
    // SAFETY: with CLONE_PIDFD the kernel stored a new descriptor there that nobody else owns.
    Ok(Spawned { pid: pid as u32, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
}

/// What a messenger needs and brings back.
struct Message {
    /// Of the init whose namespaces are to be joined.
    init: RawFd,
    args: CloneArgs,
    context: *mut libc::c_void,
    /// What the second clone said, or minus the error of joining.
    result: i64,
}

/// A child of this process in the namespaces of an init that has a user namespace, too. Who joins that
/// cannot come back, so a messenger joins it, makes the child *as a child of ours*, and ends.
fn through_a_messenger(context: &mut ChildContext<'_>, init: &Init) -> io::Result<Spawned> {
    let mut stacks = vec![0_u128; 2 * CHILD_STACK / 16];
    let (first, second) = stacks.split_at_mut(CHILD_STACK / 16);
    let mut pidfd: RawFd = -1;
    let mut message = Message {
        init: init.as_fd().as_raw_fd(),
        args: CloneArgs {
            // The signal at its end is that of the messenger: it has the same parent.
            flags: CLONE_VM | CLONE_VFORK | CLONE_PARENT | CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
            pidfd: (&raw mut pidfd) as u64,
            stack: second.as_mut_ptr() as u64,
            stack_size: CHILD_STACK as u64,
            ..CloneArgs::default()
        },
        context: std::ptr::from_mut(context).cast(),
        result: 0,
    };
    let args = CloneArgs {
        // With our descriptors: that of the child is to be ours.
        flags: CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_CLEAR_SIGHAND,
        exit_signal: libc::SIGCHLD as u64,
        stack: first.as_mut_ptr() as u64,
        stack_size: CHILD_STACK as u64,
        ..CloneArgs::default()
    };
    let _blocked = BlockedSignals::all();
    // SAFETY: as in `clone_child`, twice: this thread sleeps until the messenger is gone, and the messenger
    // until the child has called exec or is gone. Both stacks and the message live until then.
    let messenger = unsafe { clone3(&args, messenger_entry, (&raw mut message).cast()) };
    if messenger < 0 {
        return Err(io::Error::from_raw_os_error(-messenger as i32));
    }
    let _ = sys::reap(messenger as u32);
    if message.result <= 0 {
        return Err(io::Error::from_raw_os_error(-message.result as i32));
    }
    // SAFETY: with CLONE_PIDFD the kernel stored a new descriptor there that nobody else owns.
    Ok(Spawned { pid: message.result as u32, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
}

extern "C" fn messenger_entry(message: *mut libc::c_void) -> ! {
    // SAFETY: `through_a_messenger` passes its exclusive reference and sleeps until we are gone.
    let message = unsafe { &mut *message.cast::<Message>() };
    message.result = match init::join_all(message.init) {
        // SAFETY: see there.
        true => unsafe { clone3(&message.args, child_entry, message.context) },
        // SAFETY: reads the thread's errno.
        false => -i64::from(unsafe { *libc::__errno_location() }),
    };
    sys::exit_now(0)
}

/// All signals blocked in this thread while it lives.
pub(crate) struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    pub fn all() -> BlockedSignals {
        // SAFETY: sigset_t is plain data; both sets are locals.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut old: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
            BlockedSignals(old)
        }
    }
}
impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: restores the mask that was read by `all`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// The system call; in the child `entry(argument)` is called on the new stack and never returns.
///
/// Written by hand because the C library has no `clone3`, and because after the call two processes
/// would return from the same frame: the child must leave it without touching our stack.
///
/// # Safety
/// See the one caller.
#[cfg(target_arch = "x86_64")]
unsafe fn clone3(
    args: &CloneArgs,
    entry: extern "C" fn(*mut libc::c_void) -> !,
    argument: *mut libc::c_void,
) -> i64 {
    let result: i64;
    // SAFETY: the parent's path is one syscall with its documented clobbers; the child's path has a
    // 16-byte aligned stack (kernel: stack + stack_size) and calls a function that does not return.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") std::ptr::from_ref(args),
            in("rsi") size_of::<CloneArgs>(),
            in("r12") argument,
            in("r13") entry,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// As above for 64-bit ARM.
///
/// # Safety
/// See the one caller.
#[cfg(target_arch = "aarch64")]
unsafe fn clone3(
    args: &CloneArgs,
    entry: extern "C" fn(*mut libc::c_void) -> !,
    argument: *mut libc::c_void,
) -> i64 {
    let result: i64;
    // SAFETY: as for x86_64; `svc` clobbers x0 only.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, {argument}",
            "blr {entry}",
            "brk #1",
            "2:",
            inlateout("x0") std::ptr::from_ref(args) => result,
            in("x1") size_of::<CloneArgs>(),
            in("x8") libc::SYS_clone3,
            argument = in(reg) argument,
            entry = in(reg) entry,
        );
    }
    result
}

extern "C" fn child_entry(context: *mut libc::c_void) -> ! {
    // SAFETY: `clone_child` passes its exclusive reference; the parent sleeps until we are gone.
    let context = unsafe { &mut *context.cast::<ChildContext<'_>>() };
    if let Err(stage) = become_user_process(context) {
        // SAFETY: reads the thread's errno.
        context.errno = unsafe { *libc::__errno_location() };
        context.failed_stage = stage;
    }
    sys::exit_now(127)
}

/// Returns only on failure, with the stage. Async-signal-safe calls only.
fn become_user_process(context: &ChildContext<'_>) -> Result<(), usize> {
    let spec = context.spec;
    // SAFETY (whole block): plain system calls on memory that the parent prepared and that outlives
    // them; no allocation, no locks. The raw `syscall` for ids avoids the C library's versions, which
    // would signal the parent's other threads.
    unsafe {
        let check = |ok: bool, stage: usize| if ok { Ok(()) } else { Err(stage) };
        check(libc::setsid() >= 0, SETSID)?;
        if let Some(parent) = context.parent {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) == 0, TIED)?;
            // It may have died before.
            check(libc::getppid() == parent, TIED)?;
        }
        for path in context.join.iter().map(CString::as_c_str).chain(context.join_v2) {
            check(sys::write_zero(path), JOIN)?;
        }
        check(context.init.is_none_or(init::join), NAMESPACES)?;
        let processes = spec.processes_limit.map(|n| (libc::RLIMIT_NPROC, n));
        let limits =
            [(libc::RLIMIT_CORE, privileges::NO_CORE_DUMP), (libc::RLIMIT_NOFILE, spec.open_files_limit)];
        for (resource, value) in limits.into_iter().chain(processes) {
            let mut limit = libc::rlimit { rlim_cur: value, rlim_max: value };
            if libc::setrlimit(resource, &limit) != 0 {
                // Raising needs a privilege: take what there is.
                check(libc::getrlimit(resource, &mut limit) == 0, LIMITS)?;
                limit.rlim_cur = limit.rlim_max.min(value);
                check(libc::setrlimit(resource, &limit) == 0, LIMITS)?;
            }
        }
        check(libc::chdir(spec.working_directory.as_ptr()) == 0, DIRECTORY)?;
        let confined = spec.isolation.is_some();
        if confined {
            privileges::drop_bounding_set();
        }
        if let Some((uid, gid)) = spec.user {
            let (uid, gid) = (libc::c_long::from(uid), libc::c_long::from(gid));
            let nothing = std::ptr::null::<libc::gid_t>();
            check(libc::syscall(libc::SYS_setgroups, 0, nothing) == 0, USER)?;
            check(libc::syscall(libc::SYS_setresgid, gid, gid, gid) == 0, USER)?;
            check(libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0, USER)?;
        }
        check(!confined || privileges::drop_capabilities(), CAPABILITIES)?;
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, NO_NEW_PRIVS)?;

        // First copies above all targets, so that no target overwrites a later source.
        let mut copies: [RawFd; MAX_DESCRIPTORS as usize] = [-1; MAX_DESCRIPTORS as usize];
        for (copy, (source, _)) in copies.iter_mut().zip(spec.descriptors) {
            *copy = libc::fcntl(source.as_raw_fd(), libc::F_DUPFD_CLOEXEC, MAX_DESCRIPTORS);
            check(*copy >= 0, DESCRIPTORS)?;
        }
        const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
        let everything = libc::c_uint::MAX;
        check(libc::syscall(libc::SYS_close_range, 0, everything, CLOSE_RANGE_CLOEXEC) == 0, DESCRIPTORS)?;
        for (copy, (_, target)) in copies.iter().zip(spec.descriptors) {
            check(libc::dup2(*copy, *target) >= 0, DESCRIPTORS)?;
        }
        // A leader of a session without a terminal, so this cannot take one from anybody.
        check(!spec.terminal || libc::ioctl(0, libc::TIOCSCTTY, 0) == 0, TERMINAL)?;

        check(libc::signal(libc::SIGPIPE, libc::SIG_DFL) != libc::SIG_ERR, SIGNALS)?;
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        check(libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) == 0, SIGNALS)?;
        check(!confined || privileges::filter_system_calls(), FILTER)?;
        libc::execve(spec.program.as_ptr(), context.argv.as_ptr(), context.envp.as_ptr());
    }
    Err(EXEC)
}

/// A path as the system wants it; a NUL inside is an error.
pub fn c_path(path: &Path) -> io::Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    Ok(CString::new(path.as_os_str().as_bytes())?)
}
