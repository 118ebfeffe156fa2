//! Ctrl-C and SIGTERM as something to ask for and to wait on.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

/// How often the user has asked to stop. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<(Mutex<u32>, Condvar)>);

impl Interrupt {
    /// Catches SIGINT and SIGTERM from now on.
    pub fn install() -> anyhow::Result<Interrupt> {
        let interrupt = Interrupt::default();
        let shared = interrupt.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .context("cannot catch signals")?;
        let (mut int, mut term) = {
            let _entered = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    loop {
                        tokio::select! { _ = int.recv() => {}, _ = term.recv() => {} }
                        shared.raise();
                    }
                });
            })
            .context("cannot catch signals")?;
        Ok(interrupt)
    }

    /// As if the user had asked.
    pub fn raise(&self) {
        let (count, changed) = &*self.0;
        *count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        changed.notify_all();
    }

    /// How often so far.
    pub fn count(&self) -> u32 {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the user asked to stop?
    pub fn is_raised(&self) -> bool {
        self.count() > 0
    }

    /// Sleeps, but not longer than until the user asks once more than `already` times. True: he did.
    pub fn wait(&self, already: u32, timeout: Duration) -> bool {
        let (count, changed) = &*self.0;
        let guard = count.lock().unwrap_or_else(PoisonError::into_inner);
        let (guard, _) = changed
            .wait_timeout_while(guard, timeout, |count| *count <= already)
            .unwrap_or_else(PoisonError::into_inner);
        *guard > already
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_with_time_or_with_the_signal() {
        let interrupt = Interrupt::default();
        assert!(!interrupt.wait(0, Duration::from_millis(1)));
        let other = interrupt.clone();
        std::thread::spawn(move || other.raise());
        assert!(interrupt.wait(0, Duration::from_secs(60)));
        assert!(interrupt.is_raised());
        assert!(!interrupt.wait(1, Duration::from_millis(1)));
    }
}
