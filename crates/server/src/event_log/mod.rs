//! The event log (scheduling.md 20) on disk: JSON lines in `<data>/event-log`, written behind
//! everybody's back.
//!
//! The kernel hands over events when they are durable in the store; a thread of its own appends them
//! and, once a second, makes the files durable and says so, so that the store may forget. After a
//! crash the kernel hands over again what it was never told about, and what is in the files already
//! is passed over by its number: each event is there once. A reader may see an event whose file is
//! not durable yet; if the machine dies then, it comes again with the same number.

mod files;

pub use files::{EventFiles, Limits, read};

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often files are made durable. The store keeps events until then.
const SYNC_PERIOD: Duration = Duration::from_secs(1);
/// How long to wait when the disk does not take more.
const RETRY: Duration = Duration::from_secs(1);

/// The handle of the writer.
pub struct EventLog {
    directory: PathBuf,
    sender: Mutex<Option<Sender<Message>>>,
    /// A disk that takes nothing does not keep the process from ending.
    stopping: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Number of the first event, and the record of the store.
type Message = (u64, Vec<u8>);

impl EventLog {
    /// Starts the writer. `written` is told up to which number all is safe.
    pub fn start(
        directory: &Path,
        files: EventFiles,
        written: impl Fn(u64) + Send + 'static,
    ) -> std::io::Result<EventLog> {
        let (sender, receiver) = channel();
        let stopping = Arc::new(AtomicBool::new(false));
        let writer = Writer { files, written, unsynced: None, stopping: Arc::clone(&stopping) };
        let thread =
            std::thread::Builder::new().name("events".into()).spawn(move || writer.run(&receiver))?;
        Ok(EventLog {
            directory: directory.to_owned(),
            sender: Mutex::new(Some(sender)),
            stopping,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Where the files are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Hands over events. Never blocks.
    pub fn append(&self, first: u64, stored: Vec<u8>) {
        if let Some(sender) = &*lock(&self.sender) {
            let _ = sender.send((first, stored));
        }
    }

    /// Writes what was handed over, and ends.
    pub fn stop(&self) {
        drop(lock(&self.sender).take());
        self.stopping.store(true, Ordering::Release);
        if let Some(thread) = lock(&self.thread).take()
            && thread.join().is_err()
        {
            tracing::error!("the writer of the event log ended with a panic");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

struct Writer<F> {
    files: EventFiles,
    written: F,
    /// Since when something is in the files that may be lost with the machine.
    unsynced: Option<Instant>,
    stopping: Arc<AtomicBool>,
}

impl<F: Fn(u64)> Writer<F> {
    fn run(mut self, receiver: &Receiver<Message>) {
        loop {
            let wait = self.unsynced.map_or(Duration::from_secs(3600), |since| {
                (since + SYNC_PERIOD).saturating_duration_since(Instant::now())
            });
            match receiver.recv_timeout(wait) {
                Ok(message) => {
                    self.append(message);
                    // All that has come meanwhile goes with one write.
                    while let Ok(message) = receiver.try_recv() {
                        self.append(message);
                    }
                    self.insist(EventFiles::flush);
                    self.unsynced.get_or_insert_with(Instant::now);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.sync(),
            }
            if self.unsynced.is_some_and(|since| since.elapsed() >= SYNC_PERIOD) {
                self.sync();
            }
        }
    }

    fn append(&mut self, (first, stored): Message) {
        let events = match kernel::events_of(first, &stored) {
            Ok(events) => events,
            Err(failure) => return tracing::error!(%failure, "events are lost"),
        };
        for (number, event) in (first..).zip(&events) {
            self.insist(|files| files.append(number, event));
        }
    }

    fn sync(&mut self) {
        if self.insist(EventFiles::flush) && self.insist(EventFiles::sync) {
            (self.written)(self.files.last());
        }
        self.unsynced = None;
    }

    /// A disk that is full may have room later; until then events wait in the store. False: not done
    /// before the end of the process.
    fn insist(&mut self, mut action: impl FnMut(&mut EventFiles) -> std::io::Result<()>) -> bool {
        let mut told = false;
        while let Err(error) = action(&mut self.files) {
            if self.stopping.load(Ordering::Acquire) {
                return false;
            }
            if !std::mem::replace(&mut told, true) {
                tracing::error!(%error, "the event log cannot be written: trying again every second");
            }
            std::thread::sleep(RETRY);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn says_what_is_safe_and_takes_it_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let safe = Arc::new(AtomicU64::new(0));
        let start = || {
            let files = EventFiles::open(directory.path(), Limits::default()).expect("a directory");
            let safe = Arc::clone(&safe);
            EventLog::start(directory.path(), files, move |n| safe.store(n, Ordering::SeqCst))
                .expect("a thread")
        };
        let two: Vec<yson::Value> =
            vec![yson::map! {"event" => "a"}.into(), yson::map! {"event" => "b"}.into()];
        let stored = yson::to_binary(&two.into());
        let log = start();
        log.append(1, stored.clone());
        log.append(3, stored.clone());
        log.stop();
        assert_eq!(safe.load(Ordering::SeqCst), 4);
        let log = start();
        log.append(3, stored.clone());
        log.append(5, stored);
        log.stop();
        let page = read(directory.path(), kernel::command::EventsFrom::Oldest, 100).expect("readable");
        let kinds: Vec<&str> = page.events.iter().filter_map(|e| e.get("event")?.as_str()).collect();
        assert_eq!((kinds, page.next), (vec!["a", "b", "a", "b", "a", "b"], 7));
    }
}
