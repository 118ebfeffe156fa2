//! Memory that stays in the process: tokens, vaults and keys must not get to the disk in a core dump.

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use std::io;

/// Limit of the size of core files, in bytes, with which there is no core dump. With 0 the kernel would still write one to
/// a `core_pattern` that is a pipe to a program; 1 byte is too small for a file and closes the pipe (Linux `fs/coredump.c`).
pub const NO_CORE_DUMP: u64 = 1;

/// Forbids core dumps of this process and of all its children by their limit, which a process can only make smaller.
pub fn no_core_dumps() -> io::Result<()> {
    // One that is 0 already cannot be raised.
    let most = getrlimit(Resource::Core).maximum.unwrap_or(NO_CORE_DUMP).min(NO_CORE_DUMP);
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Forbids core dumps of this process for good, and keeps other processes of its user from reading its memory. A
/// program that the process executes is not bound by this.
pub fn close_memory() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// May this process look into others of any user? Then it can still look after children that it forks with closed memory.
pub fn may_look_into_processes() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_PTRACE))
}
