//! The event log (scheduling.md 20) on disk: JSON lines in `<data>/event-log`, written behind
//! everybody's back.
//!
//! The kernel hands over events when they are durable in the store, and the store keeps them until the
//! log says that its files have them for good: so the store is the outbox. Three rules follow, and all
//! faults are met by them:
//!
//! - memory is bounded: what the queue has no room for is left out of it and read from the store later;
//! - after *any* error nothing is believed but what was synced: the log goes on behind that, in a new
//!   file, with what the store has ([`files`]);
//! - numbers grow by one, so what comes twice is known, and what is missing too. A gap that the store
//!   cannot fill is written down by the name of the next file, reported to the kernel, which raises an
//!   alert, and shown to readers ([`index`], [`read`]).
//!
//! Start with [`EventLog::start`]; `writer` is the thread, `queue` what it is fed from, `disk` the calls
//! that may fail. A reader may see an event whose file is not durable yet; if the machine dies then, it
//! comes again with the same number.

mod disk;
mod files;
mod index;
mod queue;
mod read;
#[cfg(test)]
mod tests;
mod writer;

pub use files::{EventFiles, Limits};
pub use read::{Reader, read};

use queue::Queue;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use writer::Writer;

/// Looks at the files of a directory. For fuzz targets alone.
#[cfg(fuzzing)]
pub fn look_through(directory: &std::path::Path) {
    let index = index::Index::open(directory).expect("files that can be read");
    let _ = (index.last(), index.oldest(), index.gaps().count());
}

/// What the writer has to say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum News {
    /// Everything up to this number is safe: the store may forget it.
    Written(u64),
    /// Nothing can be written at the moment, and why.
    Failing(String),
    /// These numbers will never be in the files.
    Lost {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
}

/// Records of the store that hold events from a number on, in order, about so many bytes of them; the
/// first one may begin before that number.
pub type Outbox = dyn Fn(u64, usize) -> std::io::Result<Vec<(u64, Vec<u8>)>> + Send;

/// The handle of the writer.
pub struct EventLog {
    reader: Reader,
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl EventLog {
    /// Starts the writer. Gaps that are in the files already are told first.
    pub fn start(
        files: EventFiles,
        outbox: Box<Outbox>,
        tell: impl Fn(News) + Send + 'static,
    ) -> std::io::Result<EventLog> {
        let queue = Arc::new(Queue::default());
        let reader = files.reader();
        let writer = Writer::new(files, Arc::clone(&queue), outbox, tell);
        let thread = std::thread::Builder::new().name("events".into()).spawn(move || writer.run())?;
        Ok(EventLog { reader, queue, thread: Mutex::new(Some(thread)) })
    }

    /// For those who ask.
    pub fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// Hands over events: the number of the first, and the record of the store. Never blocks.
    pub fn append(&self, first: u64, stored: Vec<u8>) {
        self.queue.push(first, stored);
    }

    /// Writes what was handed over if the disk takes it, and ends. What is not written stays in the store.
    pub fn stop(&self) {
        self.queue.stop();
        let thread = self.thread.lock().unwrap_or_else(|e| e.into_inner()).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the writer of the event log ended with a panic");
        }
    }
}
