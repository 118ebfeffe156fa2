//! Memory that stays in the process: tokens, vaults and keys must not get to the disk in a core dump.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use std::io;

/// Forbids core files of this process and of all its children: the limit of the size of core files becomes 0.
///
/// A `core_pattern` that is a pipe to a program is not bound by the limit; [`close_memory`] forbids these dumps as well.
pub fn no_core_files() -> io::Result<()> {
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
}

/// Forbids core dumps of this process of any kind, and keeps other processes of its user from reading its memory. A
/// program that the process executes is not bound by this.
pub fn close_memory() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// May this process look into others of any user? Then it can still look after children that it forks with closed memory.
pub fn may_look_into_processes() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_PTRACE))
}
