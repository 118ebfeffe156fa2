//! Counts what happens inside of [`Meter::measure`] and nothing else.
//!
//! Allocations are counted by the allocator of this program. Instructions are counted by callgrind, which is told
//! when to count by requests that do nothing outside of valgrind.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The allocator of the released binary, with a count of calls.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(size: usize) {
    if COUNTING.load(Relaxed) {
        ALLOCATIONS.fetch_add(1, Relaxed);
        BYTES.fetch_add(size as u64, Relaxed);
    }
}

// SAFETY: every call is passed on to mimalloc unchanged, so its guarantees hold.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { mimalloc::MiMalloc.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { mimalloc::MiMalloc.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { mimalloc::MiMalloc.realloc(at, layout, size) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { mimalloc::MiMalloc.dealloc(at, layout) }
    }
}

/// Requests of callgrind (`callgrind.h`): the letters "CT" and a number.
const TOGGLE_COLLECT: u64 = 0x4354_0002;
const START_INSTRUMENTATION: u64 = 0x4354_0004;

/// Says something to valgrind; without valgrind the instructions have no effect.
#[cfg(target_arch = "x86_64")]
fn request(number: u64) {
    let arguments = [number, 0, 0, 0, 0, 0];
    // SAFETY: the rotations come to 128 bits and the exchange is of a register with itself, so nothing changes but
    // rdx, which is declared; valgrind recognises the sequence and reads `arguments`.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") 0u64 => _,
            inout("rdi") 0u64 => _,
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn request(_number: u64) {}

/// What was counted so far.
#[derive(Default)]
pub struct Meter {
    started: bool,
}

impl Meter {
    /// Runs a piece of the work that is to be counted.
    pub fn measure<R>(&mut self, work: impl FnOnce() -> R) -> R {
        if !std::mem::replace(&mut self.started, true) {
            request(START_INSTRUMENTATION);
        }
        COUNTING.store(true, Relaxed);
        request(TOGGLE_COLLECT);
        let result = work();
        request(TOGGLE_COLLECT);
        COUNTING.store(false, Relaxed);
        result
    }

    /// One line for `bench/check.py`.
    pub fn report(&self) -> String {
        format!("allocations {} bytes {}", ALLOCATIONS.load(Relaxed), BYTES.load(Relaxed))
    }
}
