//! What an isolated process may not do (jobs-and-nodes.md 4.7): no capabilities, also not by executing
//! something, and no system calls that reach past its namespaces.
//!
//! Runs in the child of a spawn: system calls only, nothing is allocated.

use std::ffi::{c_int, c_long};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::quota;
use yson::{Map, Value, map};

/// Limit of the size of core files, in bytes: too small for a file, and the value with which the kernel gives none to a
/// `core_pattern` that is a pipe either (Linux `fs/coredump.c`; 0 would not hold there).
pub(crate) const NO_CORE_DUMP: u64 = 1;

/// Empties the bounding and the ambient set, so that no program gives a capability back. Needs the
/// privilege itself, so it comes before the change of user.
pub(crate) fn drop_bounding_set() {
    for capability in 0..64 {
        // SAFETY: plain system call. Fails at the first number that the kernel does not know.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            break;
        }
    }
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
}

/// Empties the process's own sets; a change of user from root does that too, but the user may stay
/// root. False with `errno` set on failure.
pub(crate) fn drop_capabilities() -> bool {
    const VERSION_3: u32 = 0x2008_0522;
    let header: [u32; 2] = [VERSION_3, 0];
    let nothing = [0_u32; 6];
    // SAFETY: the kernel reads header and data, whose sizes are those of version 3.
    unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), nothing.as_ptr()) == 0 }
}

/// A list of system calls, as numbers and, for runtimes that want them so, as names.
macro_rules! calls {
    ($(#[doc = $why:literal])* $numbers:ident, $names:ident: $($(#[$on:meta])? $call:path),* $(,)?) => {
        $(#[doc = $why])*
        const $numbers: &[c_long] = &[$($(#[$on])? $call),*];
        const $names: &[&str] = &[$($(#[$on])? stringify!($call)),*];
    };
}

/// The same number on every architecture; newer than the C library's list.
#[allow(non_upper_case_globals)]
mod newer {
    use std::ffi::c_long;
    pub const SYS_file_setattr: c_long = 469;
    pub const SYS_open_tree_attr: c_long = 467;
    pub const SYS_quotactl_fd: c_long = 443;
}

calls! {
    /// Denied as if the kernel had been built without them, because programs that would like to use them ask
    /// first and then take another way. A ring of system calls is not seen by this filter at all.
    ABSENT, ABSENT_NAMES:
    libc::SYS_clone3,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
}

calls! {
    /// Denied with EPERM. What they do needs a capability anyway, or reaches into parts of the kernel
    /// that no job has business with and that were often its weakest.
    DENIED, DENIED_NAMES:
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    newer::SYS_file_setattr,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    newer::SYS_open_tree_attr,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    newer::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
}

/// Flags of `clone` that make a namespace: of users, that gives capabilities back; the others need one.
const NEW_NAMESPACES: c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Requests of `ioctl` that are denied with EPERM: the owner of a file may change its project with them, and whoever
/// does leaves the [quota](crate::quota) of its sandbox. The kernel looks at the lower half only.
const LEAVE_PROJECT: [u32; 2] = [quota::SET_ATTRIBUTES, quota::SET_FLAGS];

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_SET: u16 = 0x45;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const FAIL: u32 = 0x0005_0000;

/// Before the lists, and behind them.
const HEAD: usize = 6;
const TAIL: usize = 13;
const LENGTH: usize = HEAD + ABSENT.len() + DENIED.len() + TAIL;
/// The filter, put together by the compiler.
static FILTER: [libc::sock_filter; LENGTH] = filter();

const fn filter() -> [libc::sock_filter; LENGTH] {
    const fn op(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code, jt, jf, k }
    }
    const REFUSE: u32 = FAIL | libc::EPERM as u32;
    let mut out = [op(RETURN, 0, 0, ALLOW); LENGTH];
    // `struct seccomp_data`: number at 0, architecture at 4, first argument at 16, second at 24.
    out[0] = op(LOAD, 0, 0, 4);
    // Another architecture has other numbers: fail all of it.
    out[1] = op(JUMP_IF_EQUAL, 1, 0, ARCHITECTURE);
    out[2] = op(RETURN, 0, 0, REFUSE);
    out[3] = op(LOAD, 0, 0, 0);
    // The x32 numbers of x86_64: the same calls by other names.
    out[4] = op(JUMP_IF_AT_LEAST, 0, 1, 0x4000_0000);
    out[5] = op(RETURN, 0, 0, REFUSE);
    let (allow, refuse, absent) = (LENGTH - 3, LENGTH - 2, LENGTH - 1);
    let mut at = HEAD;
    // `clone3` is among them: its flags lie in memory, where a filter cannot look; the C library then takes
    // `clone`.
    while at < HEAD + ABSENT.len() {
        out[at] = op(JUMP_IF_EQUAL, (absent - at - 1) as u8, 0, ABSENT[at - HEAD] as u32);
        at += 1;
    }
    while at < LENGTH - TAIL {
        out[at] = op(JUMP_IF_EQUAL, (refuse - at - 1) as u8, 0, DENIED[at - HEAD - ABSENT.len()] as u32);
        at += 1;
    }
    out[at] = op(JUMP_IF_EQUAL, 0, 2, libc::SYS_clone as u32);
    out[at + 1] = op(LOAD, 0, 0, 16);
    out[at + 2] = op(JUMP_IF_SET, (refuse - at - 3) as u8, (allow - at - 3) as u8, NEW_NAMESPACES as u32);
    // Sockets to the hypervisor leave the machine past its network.
    out[at + 3] = op(JUMP_IF_EQUAL, 0, 2, libc::SYS_socket as u32);
    out[at + 4] = op(LOAD, 0, 0, 16);
    out[at + 5] = op(JUMP_IF_EQUAL, (refuse - at - 6) as u8, (allow - at - 6) as u8, libc::AF_VSOCK as u32);
    out[at + 6] = op(JUMP_IF_EQUAL, 0, 3, libc::SYS_ioctl as u32);
    out[at + 7] = op(LOAD, 0, 0, 24);
    out[at + 8] = op(JUMP_IF_EQUAL, (refuse - at - 9) as u8, 0, LEAVE_PROJECT[0]);
    out[at + 9] = op(JUMP_IF_EQUAL, (refuse - at - 10) as u8, 0, LEAVE_PROJECT[1]);
    out[allow] = op(RETURN, 0, 0, ALLOW);
    out[refuse] = op(RETURN, 0, 0, REFUSE);
    out[absent] = op(RETURN, 0, 0, FAIL | libc::ENOSYS as u32);
    out
}

/// `struct landlock_ruleset_attr` of the kernel.
#[repr(C)]
struct Landlock {
    files: u64,
    ports: u64,
    scoped: u64,
}

/// From here on this process, and all that come from it, reach no socket with an abstract name but each other's: such
/// names are of a network, not of a file system, so no cover hides those of the host's services. False on kernels
/// (before 6.12, or without Landlock) that cannot do it.
///
/// One call for a job and its shells: each call makes a world of its own, whose processes nobody of another one may
/// trace, and a debugger in a shell is there to do just that. Privileges are not given up by it, but no program
/// gives new ones after it.
pub fn leave_abstract_sockets() -> io::Result<bool> {
    const VERSION: libc::c_uint = 1;
    const FIRST_WITH_SCOPES: c_long = 6;
    const ABSTRACT_UNIX_SOCKET: u64 = 1;
    let rules = Landlock { files: 0, ports: 0, scoped: ABSTRACT_UNIX_SOCKET };
    // SAFETY (the block): plain system calls; the kernel reads the structure, of the size that it is told, and the
    // descriptor is nobody else's.
    unsafe {
        let nothing = std::ptr::null::<Landlock>();
        if libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, VERSION) < FIRST_WITH_SCOPES {
            return Ok(false);
        }
        let size = size_of::<Landlock>();
        let fd = libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::from_ref(&rules), size, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = OwnedFd::from_raw_fd(fd as RawFd);
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::syscall(libc::SYS_landlock_restrict_self, fd.as_raw_fd(), 0) != 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(true)
}

/// Installs the filter, for this process and all that come from it; needs `no_new_privs`. False with
/// `errno` set on failure.
pub(crate) fn filter_system_calls() -> bool {
    let program = libc::sock_fprog { len: LENGTH as u16, filter: FILTER.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program and does not write to it.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, std::ptr::from_ref(&program)) == 0 }
}

/// The filter in the words of the OCI runtime specification.
pub(crate) fn as_seccomp_profile() -> Map {
    const ERRNO: &str = "SCMP_ACT_ERRNO";
    let names = |list: &[&'static str]| -> Vec<Value> {
        list.iter().filter_map(|path| path.rsplit("SYS_").next()).map(Value::from).collect()
    };
    let refused =
        |names: Vec<Value>, errno: i32| map! {"names" => names, "action" => ERRNO, "errnoRet" => errno};
    // Of all these arguments the kernel looks at the lower half only, so must the comparison.
    let with_argument = |name: &'static str, index: i64, mask: u32, value: u32| {
        let (mask, value) = (u64::from(mask), u64::from(value));
        let argument =
            map! {"index" => index, "value" => mask, "valueTwo" => value, "op" => "SCMP_CMP_MASKED_EQ"};
        refused(vec![Value::from(name)], libc::EPERM).with("args", vec![argument])
    };
    // One rule for each flag: a rule holds if all of its bits are set.
    let flags = (0..32).map(|bit| 1_u32 << bit).filter(|flag| NEW_NAMESPACES as u32 & flag != 0);
    let rules = [refused(names(ABSENT_NAMES), libc::ENOSYS), refused(names(DENIED_NAMES), libc::EPERM)];
    let rules = rules
        .into_iter()
        .chain(flags.map(|flag| with_argument("clone", 0, flag, flag)))
        .chain([with_argument("socket", 0, u32::MAX, libc::AF_VSOCK as u32)])
        .chain(LEAVE_PROJECT.map(|request| with_argument("ioctl", 1, u32::MAX, request)));
    let architecture = if cfg!(target_arch = "aarch64") { "SCMP_ARCH_AARCH64" } else { "SCMP_ARCH_X86_64" };
    map! {
        "defaultAction" => "SCMP_ACT_ALLOW",
        "architectures" => vec![Value::from(architecture)],
        "syscalls" => rules.collect::<Vec<_>>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter as the kernel would.
    fn verdict(architecture: u32, number: i64, argument: u32) -> u32 {
        verdict_of_two(architecture, number, [argument, 0])
    }

    fn verdict_of_two(architecture: u32, number: i64, arguments: [u32; 2]) -> u32 {
        let data = |at: u32| match at {
            0 => number as u32,
            4 => architecture,
            16 => arguments[0],
            24 => arguments[1],
            other => panic!("nothing is at {other}"),
        };
        let (mut accumulator, mut at) = (0, 0);
        loop {
            let op = &FILTER[at];
            at += 1;
            let jump = |yes| usize::from(if yes { op.jt } else { op.jf });
            match op.code {
                LOAD => accumulator = data(op.k),
                JUMP_IF_EQUAL => at += jump(accumulator == op.k),
                JUMP_IF_SET => at += jump(accumulator & op.k != 0),
                JUMP_IF_AT_LEAST => at += jump(accumulator >= op.k),
                RETURN => return op.k,
                other => panic!("unknown code {other}"),
            }
        }
    }

    #[test]
    fn the_filter_denies_its_list_and_nothing_else() {
        let refused = FAIL | libc::EPERM as u32;
        for number in 0..600 {
            let want = match number {
                n if ABSENT.contains(&n) => FAIL | libc::ENOSYS as u32,
                n if DENIED.contains(&n) => refused,
                _ => ALLOW,
            };
            assert_eq!(verdict(ARCHITECTURE, number, 0), want, "call {number}");
        }
        assert_eq!(verdict(ARCHITECTURE, libc::SYS_clone, libc::SIGCHLD as u32), ALLOW);
        assert_eq!(
            verdict(ARCHITECTURE, libc::SYS_clone, (libc::CLONE_NEWUSER | libc::SIGCHLD) as u32),
            refused
        );
        for family in 0..50 {
            let want = if family == libc::AF_VSOCK { refused } else { ALLOW };
            assert_eq!(verdict(ARCHITECTURE, libc::SYS_socket, family as u32), want, "family {family}");
        }
        const TERMINAL_SIZE: u32 = 0x5413;
        for (request, want) in [(0x401c_5820, refused), (0x4008_6602, refused), (TERMINAL_SIZE, ALLOW)] {
            assert_eq!(verdict_of_two(ARCHITECTURE, libc::SYS_ioctl, [1, request]), want, "{request:#x}");
        }
        assert_eq!(verdict(ARCHITECTURE, 0x4000_0000, 0), refused);
        assert_eq!(verdict(ARCHITECTURE ^ 1, libc::SYS_read, 0), refused);
    }
}
