//! What an isolated process may not do (jobs-and-nodes.md 4.7): no capabilities, also not by executing
//! something, and no system calls that reach past its namespaces.
//!
//! Runs in the child of a spawn: system calls only, nothing is allocated.

use std::ffi::c_long;

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

/// Denied with EPERM. What they do needs a capability anyway, or reaches into parts of the kernel
/// that no job has business with and that were often its weakest.
const DENIED: &[c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_SET: u16 = 0x45;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const FAIL: u32 = 0x0005_0000;

const LENGTH: usize = DENIED.len() + 13;
/// The filter, put together by the compiler.
static FILTER: [libc::sock_filter; LENGTH] = filter();

const fn filter() -> [libc::sock_filter; LENGTH] {
    const fn op(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code, jt, jf, k }
    }
    let mut out = [op(RETURN, 0, 0, ALLOW); LENGTH];
    // `struct seccomp_data`: number at 0, architecture at 4, first argument at 16.
    out[0] = op(LOAD, 0, 0, 4);
    // Another architecture has other numbers: fail all of it.
    out[1] = op(JUMP_IF_EQUAL, 1, 0, ARCHITECTURE);
    out[2] = op(RETURN, 0, 0, FAIL | libc::EPERM as u32);
    out[3] = op(LOAD, 0, 0, 0);
    // The x32 numbers of x86_64: the same calls by other names.
    out[4] = op(JUMP_IF_AT_LEAST, 0, 1, 0x4000_0000);
    out[5] = op(RETURN, 0, 0, FAIL | libc::EPERM as u32);
    // Its flags lie in memory, where a filter cannot look; the C library then takes `clone`.
    out[6] = op(JUMP_IF_EQUAL, 0, 1, libc::SYS_clone3 as u32);
    out[7] = op(RETURN, 0, 0, FAIL | libc::ENOSYS as u32);
    let mut i = 0;
    while i < DENIED.len() {
        // To the refusal behind the end of the list and the two lines after it.
        let forward = (DENIED.len() - i + 3) as u8;
        out[8 + i] = op(JUMP_IF_EQUAL, forward, 0, DENIED[i] as u32);
        i += 1;
    }
    let at = 8 + DENIED.len();
    out[at] = op(JUMP_IF_EQUAL, 0, 2, libc::SYS_clone as u32);
    out[at + 1] = op(LOAD, 0, 0, 16);
    out[at + 2] = op(JUMP_IF_SET, 1, 0, libc::CLONE_NEWUSER as u32);
    out[at + 3] = op(RETURN, 0, 0, ALLOW);
    out[at + 4] = op(RETURN, 0, 0, FAIL | libc::EPERM as u32);
    out
}

/// Installs the filter, for this process and all that come from it; needs `no_new_privs`. False with
/// `errno` set on failure.
pub(crate) fn filter_system_calls() -> bool {
    let program = libc::sock_fprog { len: LENGTH as u16, filter: FILTER.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program and does not write to it.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, std::ptr::from_ref(&program)) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the filter as the kernel would.
    fn verdict(architecture: u32, number: i64, argument: u32) -> u32 {
        let data = |at: u32| match at {
            0 => number as u32,
            4 => architecture,
            16 => argument,
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
                libc::SYS_clone3 => FAIL | libc::ENOSYS as u32,
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
        assert_eq!(verdict(ARCHITECTURE, 0x4000_0000, 0), refused);
        assert_eq!(verdict(ARCHITECTURE ^ 1, libc::SYS_read, 0), refused);
    }
}
