//! The thread that empties directories, in turns.
//!
//! A tree of millions of files takes minutes. It must keep neither the kill of a job waiting, which has
//! threads of its own, nor the small trees of others: each gets a slice of work, then the next has its turn.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use super::clearing::Clearing;

/// Entries removed before another directory gets its turn.
const SLICE: usize = 1000;

/// A directory to empty, and whom to tell.
struct Task {
    directory: PathBuf,
    clearing: Option<Clearing>,
    done: Box<dyn FnOnce(io::Result<()>) + Send>,
}

/// The way to the thread, which ends when this is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Remover(Sender<Task>);

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Remover {
    /// Starts the thread.
    pub fn start() -> io::Result<Remover> {
        let (sender, receiver) = channel();
        std::thread::Builder::new().name("remover".to_owned()).spawn(move || serve(&receiver))?;
        Ok(Remover(sender))
    }

    /// Empties the directory and tells; one that is not there is empty.
    pub fn empty(&self, directory: PathBuf, done: impl FnOnce(io::Result<()>) + Send + 'static) {
        let task = Task { directory, clearing: None, done: Box::new(done) };
        if let Err(unsent) = self.0.send(task) {
            (unsent.0.done)(Err(io::Error::other("the thread that empties directories has ended")));
        }
    }

    /// Removes a tree that nobody waits for.
    pub fn discard(&self, directory: PathBuf) {
        let path = directory.clone();
        self.empty(directory, move |emptied| match emptied.and_then(|()| std::fs::remove_dir(&path)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                tracing::warn!("cannot remove {}: {e}", path.display());
            }
            _ => {}
        });
    }
}

fn serve(receiver: &Receiver<Task>) {
    let mut tasks = VecDeque::new();
    loop {
        if tasks.is_empty() {
            match receiver.recv() {
                Ok(task) => tasks.push_back(task),
                Err(_) => return,
            }
        }
        loop {
            match receiver.try_recv() {
                Ok(task) => tasks.push_back(task),
                Err(TryRecvError::Empty) => break,
                // The next life of the node begins where this one stopped.
                Err(TryRecvError::Disconnected) => return,
            }
        }
        let Some(mut task) = tasks.pop_front() else { continue };
        match slice(&mut task.clearing, &task.directory) {
            Ok(false) => tasks.push_back(task),
            Ok(true) => (task.done)(Ok(())),
            Err(e) => (task.done)(Err(e)),
        }
    }
}

fn slice(clearing: &mut Option<Clearing>, directory: &Path) -> io::Result<bool> {
    if clearing.is_none() {
        match Clearing::of(directory) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
            opened => *clearing = Some(opened?),
        }
    }
    clearing.as_mut().map_or(Ok(true), |clearing| clearing.step(SLICE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A small tree behind a big one is done first.
    #[test]
    fn small_trees_do_not_wait_for_big_ones() {
        let directory = tempfile::tempdir().expect("a directory");
        let (sender, tasks) = channel();
        let (told, order) = channel();
        for (name, files) in [("big", 3 * SLICE), ("small", 3), ("missing", 0)] {
            let path = directory.path().join(name);
            if files > 0 {
                fs::create_dir(&path).expect("made");
            }
            (0..files).for_each(|n| fs::write(path.join(n.to_string()), b"").expect("written"));
            let told = told.clone();
            let done: Box<dyn FnOnce(io::Result<()>) + Send> =
                Box::new(move |result| told.send((name, result.is_ok())).expect("we listen"));
            sender.send(Task { directory: path, clearing: None, done }).expect("we hold it");
        }
        let thread = std::thread::spawn(move || serve(&tasks));
        let names: Vec<_> = order.iter().take(3).collect();
        assert_eq!(names, [("small", true), ("missing", true), ("big", true)]);
        drop(sender);
        thread.join().expect("it ends");
        assert_eq!(fs::read_dir(directory.path().join("big")).expect("it stays").count(), 0);
    }
}
