//! A fork bomb that cannot take the machine with it, for tests of what bounds fork bombs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

static COUNTER: AtomicU32 = AtomicU32::new(1);

/// Of four processes each: the bound if the driver under test has none, as a test of containment must not trust
/// what it tests.
const CHILDREN: u32 = 250;
/// A bomb that has reached its least size has stopped growing when its size is unchanged for this long.
const STILL: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(120);

/// Processes that make others for as long as they may; all but who was refused one stay.
pub struct Bomb {
    /// Nobody else sleeps for so long.
    mark: String,
}

impl Bomb {
    pub fn new() -> Bomb {
        Bomb { mark: format!("sleep 321{}.{}", COUNTER.fetch_add(1, Ordering::Relaxed), std::process::id()) }
    }

    pub fn script(&self) -> String {
        let mark = &self.mark;
        let many =
            format!("m() {{ i=0; while [ $i -lt {CHILDREN} ]; do {mark} & i=$((i+1)); done; exec {mark}; }}");
        // A shell that is refused a process ends: the first one makes only one, when there is room.
        format!("{many}; s() {{ m & m & m & m; }}; s & exec {mark}")
    }

    /// Its processes now, counted without the driver.
    pub fn size(&self) -> usize {
        let is_one = |pid: &str| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " ").contains(&self.mark))
        };
        let names = std::fs::read_dir("/proc").expect("mounted").flatten().map(|e| e.file_name());
        names
            .filter_map(|name| name.into_string().ok())
            .filter(|n| n.parse::<u32>().is_ok() && is_one(n))
            .count()
    }

    /// Most of them at a time, once it has gone off: at least `least`, below which it only waits for a processor.
    pub fn most(&self, least: usize) -> usize {
        let give_up = Instant::now() + PATIENCE;
        let (mut most, mut last, mut since) = (0, 0, Instant::now());
        while most < least || since.elapsed() < STILL {
            assert!(
                Instant::now() < give_up,
                "a fork bomb of {last} processes, {most} at most, neither stays nor grows to {least}"
            );
            let size = self.size();
            if size != last {
                (last, since) = (size, Instant::now());
            }
            most = most.max(size);
            std::thread::sleep(Duration::from_millis(5));
        }
        most
    }
}
