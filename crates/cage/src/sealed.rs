//! Keeping a job out of our memory while a child of ours is born among its processes.
//!
//! Until its exec that child runs on our memory, with the user and in the user namespace of the job, so the
//! kernel would let any process of the job open its `/proc/N/mem`, and with that ours. Memory that is not
//! dumpable is nobody's to open.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Taken for as long as the mark on our memory matters: a process forked meanwhile would inherit it.
static MARK: Mutex<()> = Mutex::new(());

/// Our memory cannot be opened by others while this lives.
pub(crate) struct Sealed {
    before: libc::c_int,
    _mark: MutexGuard<'static, ()>,
}

impl Sealed {
    pub fn new() -> Sealed {
        let mark = unsealed();
        // SAFETY: reads and sets a flag of the process.
        let before = unsafe { libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0) };
        set(0);
        Sealed { before, _mark: mark }
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        // 2 (readable by root) cannot be set by hand; without any right to set it anew, sealed is what stays.
        set(if self.before == 1 { 1 } else { 0 });
    }
}

/// Nobody seals our memory while this is held: what is forked now can be looked up in `/proc` by us.
pub(crate) fn unsealed() -> MutexGuard<'static, ()> {
    MARK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn set(dumpable: libc::c_ulong) {
    // SAFETY: sets a flag of the process; 0 and 1 are always allowed.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, dumpable, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::Sealed;

    #[test]
    fn memory_is_sealed_for_as_long_as_it_matters() {
        // SAFETY: reads a flag of the process.
        let dumpable = || unsafe { libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0) };
        let before = dumpable();
        let sealed = Sealed::new();
        assert_eq!(dumpable(), 0);
        drop(sealed);
        assert_eq!(dumpable(), if before == 1 { 1 } else { 0 });
    }
}
