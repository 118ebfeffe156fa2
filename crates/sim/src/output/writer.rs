//! A thread that writes what the simulation hands over, in the order in which it does: the files are the
//! same, and the making of text is not in the way of the next event.

use super::files::Files;
use super::{Cell, Which};
use crate::error::SimError;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use yson::Map;

/// Something to write.
pub(super) enum Piece {
    Row(Which, Vec<Cell>),
    Event(Map),
}

/// See the module page.
pub(super) struct Writer {
    pieces: Vec<Piece>,
    sender: SyncSender<Vec<Piece>>,
    thread: JoinHandle<Result<(), SimError>>,
}

/// Pieces that are handed over together, and so many of these may wait: a slow disk slows the run, it does not
/// fill the memory.
const TOGETHER: usize = 512;
const WAITING: usize = 64;

impl Writer {
    pub fn start(files: Files) -> Writer {
        let (sender, receiver) = sync_channel(WAITING);
        let thread = std::thread::spawn(move || write(files, &receiver));
        Writer { pieces: Vec::with_capacity(TOGETHER), sender, thread }
    }

    pub fn send(&mut self, piece: Piece) -> Result<(), SimError> {
        self.pieces.push(piece);
        if self.pieces.len() < TOGETHER {
            return Ok(());
        }
        let pieces = std::mem::replace(&mut self.pieces, Vec::with_capacity(TOGETHER));
        // A thread that hears no more has failed, and says why when it is asked.
        if self.sender.send(pieces).is_err() && self.thread.is_finished() {
            let idle = Writer {
                pieces: Vec::new(),
                sender: sync_channel(1).0,
                thread: std::thread::spawn(|| Ok(())),
            };
            return std::mem::replace(self, idle).finish();
        }
        Ok(())
    }

    /// Everything is in the files after this.
    pub fn finish(self) -> Result<(), SimError> {
        let Writer { pieces, sender, thread } = self;
        let _ = sender.send(pieces);
        drop(sender);
        // A panic over there is a mistake of the simulator: it goes on here.
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn write(mut files: Files, receiver: &Receiver<Vec<Piece>>) -> Result<(), SimError> {
    for piece in receiver.iter().flatten() {
        match piece {
            Piece::Row(which, row) => files.row(which, &row)?,
            Piece::Event(event) => files.event(&event)?,
        }
    }
    files.finish()
}
