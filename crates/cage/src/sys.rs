//! Thin, safe faces of the few system calls that `rustix` does not offer safely.
//!
//! Each `unsafe` block says why it is sound. [`crate::spawn`] has the remaining ones.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Which side of a [`fork`] this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// The new process.
    Child,
    /// The old one, with the pid of the new.
    Parent(u32),
}

/// Copies the calling process, which must have one thread only.
///
/// With more threads the copy could find a lock of the allocator taken for ever, so this is refused.
pub fn fork() -> io::Result<Fork> {
    debug_assert_eq!(
        std::fs::read_dir("/proc/self/task").map(Iterator::count).ok(),
        Some(1),
        "fork with threads"
    );
    // SAFETY: the process is single-threaded (contract above), so the child's memory is consistent;
    // fork itself has no other preconditions.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid as u32)),
    }
}

/// Number of threads of this process, for callers of [`fork`] that want to check once.
pub fn thread_count() -> io::Result<usize> {
    std::fs::read_dir("/proc/self/task").map(Iterator::count)
}

/// Ends the process at once, without destructors and exit handlers: those belong to the process
/// that was forked.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: never returns, touches no memory.
    unsafe { libc::_exit(code) }
}

/// Takes over a descriptor by number, once, at the start of a process that was given it.
///
/// Fails if it is not open.
pub fn adopt_fd(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD only looks; the result tells whether `fd` is open.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open; only makes a new descriptor.
    match unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the duplicate was made just now and is owned by nobody else.
        new => Ok(unsafe { OwnedFd::from_raw_fd(new) }),
    }
}

/// Makes `target` (0, 1 or 2) a copy of `source`.
pub fn replace_standard_fd(source: BorrowedFd<'_>, target: RawFd) -> io::Result<()> {
    assert!((0..=2).contains(&target), "only standard descriptors may be replaced, not {target}");
    // SAFETY: standard descriptors are owned by no Rust object, so no owner's descriptor changes.
    if unsafe { libc::dup2(source.as_raw_fd(), target) } < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Writes `0`, "me", into a file of a control group. For children that must not allocate: false with
/// `errno` set on failure.
pub(crate) fn write_zero(path: &std::ffi::CStr) -> bool {
    write_word(path, c"0")
}

/// The same for any word.
pub(crate) fn write_word(path: &std::ffi::CStr, word: &std::ffi::CStr) -> bool {
    let length = word.count_bytes();
    // SAFETY: two terminated strings; the descriptor is closed here.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        let written = fd >= 0 && libc::write(fd, word.as_ptr().cast(), length) == length as isize;
        if written {
            libc::close(fd);
        }
        written
    }
}

/// All signals to their default action but SIGPIPE, which is ignored (writes then fail with EPIPE);
/// nothing blocked. A process can inherit ignored signals, and its children would too.
pub fn reset_signals() {
    for signal in 1..=64 {
        let action = if signal == libc::SIGPIPE { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: installs no handler, only the two constant actions; fails harmlessly for SIGKILL,
        // SIGSTOP and those that the C library reserves.
        unsafe { libc::signal(signal, action) };
    }
    unblock_signals();
}

/// Nothing blocked, as a new program expects it.
pub fn unblock_signals() {
    // SAFETY: a zeroed sigset_t is a valid object for sigemptyset; the mask is only read.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// A descriptor that becomes readable when a child of this process ends; the signal itself is blocked.
pub fn child_signal_fd() -> io::Result<OwnedFd> {
    // SAFETY: a zeroed sigset_t is valid for sigemptyset; all pointers are to this local.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) < 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// End of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Exit code.
    Code(i32),
    /// Signal, and whether a core was written.
    Signal(i32, bool),
}

/// What the kernel counted for a process (and its reaped children).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// CPU in user mode.
    pub user: Duration,
    /// CPU in the kernel.
    pub system: Duration,
    /// Largest resident size of one process, bytes.
    pub max_rss: i64,
    /// Bytes read from storage.
    pub bytes_read: i64,
    /// Bytes written to storage.
    pub bytes_written: i64,
    /// How often a processor was left, by will or not.
    pub context_switches: i64,
}

/// Reaps one ended child; none if none has ended (or there are no children).
pub fn reap_any() -> io::Result<Option<(u32, Exit, Usage)>> {
    wait4(-1, libc::WNOHANG)
}

/// Waits for one child; only call it when the child has ended or was killed.
pub fn reap(pid: u32) -> io::Result<(Exit, Usage)> {
    wait4(pid as i32, 0)?
        .map(|(_, exit, usage)| (exit, usage))
        .ok_or_else(|| io::ErrorKind::WouldBlock.into())
}

fn wait4(pid: i32, flags: i32) -> io::Result<Option<(u32, Exit, Usage)>> {
    loop {
        let mut status = 0;
        // SAFETY: rusage is plain numbers, zero is valid; both pointers live through the call.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let got = unsafe { libc::wait4(pid, &mut status, flags, &mut usage) };
        if got < 0 {
            let e = io::Error::last_os_error();
            match e.raw_os_error() {
                Some(libc::EINTR) => continue,
                Some(libc::ECHILD) if pid == -1 => return Ok(None),
                _ => return Err(e),
            }
        }
        if got == 0 {
            return Ok(None);
        }
        let exit = if libc::WIFEXITED(status) {
            Exit::Code(libc::WEXITSTATUS(status))
        } else {
            Exit::Signal(libc::WTERMSIG(status), libc::WCOREDUMP(status))
        };
        return Ok(Some((got as u32, exit, usage_of(&usage))));
    }
}

/// Of this process.
pub fn own_usage() -> Usage {
    rusage(libc::RUSAGE_SELF)
}

/// How long this process was ready to run and had no processor; none if the kernel does not count that.
pub fn own_cpu_wait() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// Of reaped children and theirs.
pub fn children_usage() -> Usage {
    rusage(libc::RUSAGE_CHILDREN)
}

fn rusage(who: i32) -> Usage {
    // SAFETY: as in wait4; the call cannot fail with these constants.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    unsafe { libc::getrusage(who, &mut usage) };
    usage_of(&usage)
}

fn usage_of(u: &libc::rusage) -> Usage {
    let span =
        |t: libc::timeval| Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64);
    Usage {
        user: span(u.ru_utime),
        system: span(u.ru_stime),
        max_rss: u.ru_maxrss * 1024,
        // Counted in blocks of 512 bytes, whatever the file system's are.
        bytes_read: u.ru_inblock.saturating_mul(512),
        bytes_written: u.ru_oublock.saturating_mul(512),
        context_switches: u.ru_nvcsw.saturating_add(u.ru_nivcsw),
    }
}

/// Are there children, running or not yet reaped? Cheap, unlike a walk of `/proc`.
pub fn has_children() -> bool {
    peek(libc::P_ALL, 0).is_ok()
}

/// A child that has ended and is not reaped yet.
pub fn ended_child() -> Option<u32> {
    peek(libc::P_ALL, 0).ok().flatten()
}

/// Has this child ended, without being reaped yet?
pub fn ended_child_is(pid: u32) -> bool {
    peek(libc::P_PID, pid) == Ok(Some(pid))
}

/// Looks for an ended child and leaves it as it is; an error if there is no such child at all.
fn peek(kind: libc::idtype_t, id: u32) -> Result<Option<u32>, ()> {
    // SAFETY: siginfo_t is plain data, zero is valid and means "none"; `si_pid` is valid for the
    // SIGCHLD information that waitid writes.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        match libc::waitid(kind, id, &mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) {
            0 => Ok(u32::try_from(info.si_pid()).ok().filter(|p| *p != 0)),
            _ => Err(()),
        }
    }
}

/// Orphans among the descendants become children of this process instead of init's.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: sets a flag of the process.
    if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Orphans are init's again; those that are here stay.
pub(crate) fn stop_being_subreaper() {
    // SAFETY: clears a flag of the process; fails never.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) };
}

/// Was [`become_subreaper`] called in this process?
pub fn is_subreaper() -> bool {
    let mut flag: libc::c_int = 0;
    // SAFETY: the kernel writes one int to the local.
    unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &mut flag, 0, 0, 0) == 0 && flag == 1 }
}

/// Name of the process in `ps` and `top`; at most 15 bytes are kept.
pub fn set_process_name(name: &std::ffi::CStr) {
    // SAFETY: the kernel copies a terminated string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
}

/// Sends a signal; a process that is gone is no error.
pub fn kill(pid: u32, signal: i32) -> io::Result<()> {
    assert!(pid > 0 && i32::try_from(pid).is_ok(), "pid {pid} would address a group");
    // SAFETY: kill touches no memory of ours.
    if unsafe { libc::kill(pid as i32, signal) } == 0 {
        return Ok(());
    }
    let e = io::Error::last_os_error();
    if e.raw_os_error() == Some(libc::ESRCH) { Ok(()) } else { Err(e) }
}

/// Number of a signal by its name, with or without `SIG`.
pub fn signal_by_name(name: &str) -> Option<i32> {
    let name = name.strip_prefix("SIG").unwrap_or(name);
    let known = [
        ("HUP", libc::SIGHUP),
        ("INT", libc::SIGINT),
        ("QUIT", libc::SIGQUIT),
        ("ABRT", libc::SIGABRT),
        ("ALRM", libc::SIGALRM),
        ("TERM", libc::SIGTERM),
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
        ("CONT", libc::SIGCONT),
        ("STOP", libc::SIGSTOP),
        ("TSTP", libc::SIGTSTP),
        ("WINCH", libc::SIGWINCH),
        ("URG", libc::SIGURG),
        ("KILL", libc::SIGKILL),
    ];
    known.into_iter().find(|(n, _)| *n == name).map(|(_, s)| s)
}
