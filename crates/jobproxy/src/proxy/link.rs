//! The connection to the node: connects, reconnects, never blocks the job.

use crate::codec::{CodecError, FrameReader, encode_frame};
use crate::protocol::{FromProxy, SpawnerConfig, ToProxy};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Unsent bytes beyond which progress reports are left out: the node does not read.
const BACKLOG: usize = 1 << 20;

/// How long the last message may take; the result is in the file anyway.
const LAST_WORDS: Duration = Duration::from_secs(5);

pub(super) struct Link {
    path: PathBuf,
    hello: Vec<u8>,
    stream: Option<UnixStream>,
    frames: FrameReader,
    unsent: Vec<u8>,
    lost_since: Option<Instant>,
}

impl Link {
    pub fn new(config: &SpawnerConfig) -> Link {
        Link {
            path: config.node_socket.clone(),
            hello: Vec::new(),
            stream: None,
            frames: FrameReader::default(),
            unsent: Vec::new(),
            lost_since: None,
        }
    }

    /// First message of every connection from now on.
    pub fn set_hello(&mut self, hello: FromProxy) {
        self.hello.clear();
        encode_frame(&hello, &mut self.hello);
    }

    /// To poll, and whether to wait for room as well.
    pub fn fd(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.stream.as_ref().map(|s| (s.as_fd(), !self.unsent.is_empty()))
    }

    /// Since when the node is away.
    pub fn lost_since(&self) -> Option<Instant> {
        self.lost_since
    }

    /// Is there room for messages that may be left out?
    pub fn has_room(&self) -> bool {
        self.stream.is_some() && self.unsent.len() < BACKLOG
    }

    /// Connects if necessary. One attempt; the caller's clock makes the next.
    pub fn connect(&mut self) {
        if self.stream.is_some() {
            return;
        }
        match connect(&self.path) {
            Ok(stream) => {
                self.stream = Some(stream);
                self.frames = FrameReader::default();
                self.unsent.clone_from(&self.hello);
                self.lost_since = None;
            }
            Err(_) => self.lose(),
        }
    }

    /// Sends, as far as the node is there; what does not fit waits.
    pub fn send(&mut self, message: &FromProxy) {
        self.connect();
        if self.stream.is_some() {
            encode_frame(message, &mut self.unsent);
            self.flush();
        }
    }

    /// Writes what waits.
    pub fn flush(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        while !self.unsent.is_empty() {
            match stream.write(&self.unsent) {
                Ok(n) => {
                    self.unsent.drain(..n);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.lose(),
            }
        }
    }

    /// Messages that have come.
    pub fn receive(&mut self) -> Vec<ToProxy> {
        let mut messages = Vec::new();
        let Some(stream) = &mut self.stream else { return messages };
        let mut buffer = [0; 4096];
        let ended = loop {
            match stream.read(&mut buffer) {
                Ok(0) => break true,
                Ok(n) => self.frames.push(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => break e.kind() != io::ErrorKind::WouldBlock,
            }
            if take_frames(&mut self.frames, &mut messages).is_err() {
                break true;
            }
        };
        if ended {
            self.lose();
        }
        messages
    }

    /// The last message, waiting for it to be taken over by the kernel. True if it was.
    pub fn send_last(&mut self, message: &FromProxy) -> bool {
        let give_up = Instant::now() + LAST_WORDS;
        // A node that is only busy is worth some waiting; one that is away finds the file.
        while self.stream.is_none() && Instant::now() < give_up {
            match connect(&self.path) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(5))
                }
                _ => break,
            }
        }
        self.send(message);
        if self.stream.is_some() && !self.unsent.is_empty() {
            let Some(stream) = &mut self.stream else { return false };
            let sent = stream
                .set_nonblocking(false)
                .and_then(|()| stream.set_write_timeout(Some(LAST_WORDS)))
                .and_then(|()| stream.write_all(&self.unsent));
            return sent.is_ok();
        }
        self.stream.is_some()
    }

    fn lose(&mut self) {
        self.stream = None;
        self.unsent.clear();
        self.lost_since.get_or_insert_with(Instant::now);
    }
}

/// Without waiting: a node that does not accept must not keep us from the job.
fn connect(path: &Path) -> io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

fn take_frames(frames: &mut FrameReader, messages: &mut Vec<ToProxy>) -> Result<(), CodecError> {
    while let Some(message) = frames.next_message()? {
        messages.push(message);
    }
    Ok(())
}
