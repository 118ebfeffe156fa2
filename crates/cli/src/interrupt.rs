//! Ctrl-C as a fact to look at, for loops that wait.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Counts signals instead of dying of them. Without it Ctrl-C ends the process as usual, so commands
/// that have nothing to tidy up do not install it.
#[derive(Debug)]
pub struct Interrupt {
    /// How many signals `sleep` has told of.
    told: AtomicU32,
}

impl Interrupt {
    /// From now on SIGINT and SIGTERM only count.
    pub fn install() -> std::io::Result<Interrupt> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let guard = runtime.enter();
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        drop(guard);
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
                    COUNT.fetch_add(1, Ordering::Relaxed);
                }
            });
        })?;
        Ok(Interrupt { told: AtomicU32::new(0) })
    }

    /// How many signals have come.
    pub fn count(&self) -> u32 {
        COUNT.load(Ordering::Relaxed)
    }

    /// Sleeps, but not over a signal. True if there was one; each signal is told once, also one that came before.
    pub fn sleep(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while self.count() == self.told.load(Ordering::Relaxed) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        self.told.fetch_add(1, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_between_two_sleeps_are_told_one_by_one() {
        let interrupt = Interrupt { told: AtomicU32::new(0) };
        assert!(!interrupt.sleep(Duration::ZERO));
        COUNT.fetch_add(2, Ordering::Relaxed);
        assert!(interrupt.sleep(Duration::ZERO));
        assert!(interrupt.sleep(Duration::ZERO));
        assert!(!interrupt.sleep(Duration::ZERO));
    }
}
