//! Puts a long file on the disk while it is still being written, so that the sync at its end has little left to
//! wait for.

use std::fs::File;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// A thread that syncs a file when asked to.
pub(super) struct Ahead {
    asked: SyncSender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl Ahead {
    pub fn of(file: &File) -> io::Result<Ahead> {
        let file = file.try_clone()?;
        // One may be asked for while another is being done; more would not be more.
        let (asked, requests) = sync_channel(1);
        let work = move || requests.iter().try_for_each(|()| file.sync_data());
        let thread = std::thread::Builder::new().name("sync-ahead".to_owned()).spawn(work)?;
        Ok(Ahead { asked, thread })
    }

    /// Does not wait. What goes wrong is said at the end.
    pub fn ask(&self) {
        let _ = self.asked.try_send(());
    }

    /// The system says only once that it has lost something of a file: the last sync would not hear of it again.
    pub fn finish(self) -> io::Result<()> {
        drop(self.asked);
        self.thread.join().expect("syncing does not panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn many_requests_end_well() {
        let mut file = tempfile::tempfile().expect("a file");
        let ahead = Ahead::of(&file).expect("a thread");
        for _ in 0..100 {
            file.write_all(b"something").expect("written");
            ahead.ask();
        }
        ahead.finish().expect("synced");
    }

    #[test]
    fn what_went_wrong_is_said_at_the_end() {
        // A pipe cannot be synced.
        let (reader, _writer) = io::pipe().expect("a pipe");
        let ahead = Ahead::of(&File::from(std::os::fd::OwnedFd::from(reader))).expect("a thread");
        ahead.ask();
        assert_eq!(ahead.finish().expect_err("refused").kind(), io::ErrorKind::InvalidInput);
    }
}
