//! Writing small messages to a socket from the loop: at once if there is room, else in a task.

use std::io;
use std::sync::Arc;

use tokio::net::UnixStream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// The sending side of a socket. Messages keep their order.
#[derive(Clone, Debug)]
pub(crate) struct Outlet {
    stream: Arc<UnixStream>,
    /// Exists once the socket was full; from then on everything goes through it.
    backlog: Option<UnboundedSender<Vec<u8>>>,
}

impl Outlet {
    pub fn new(stream: Arc<UnixStream>) -> Outlet {
        Outlet { stream, backlog: None }
    }

    /// Hands the bytes over; an error is found by whoever reads the same socket.
    pub fn send(&mut self, mut bytes: Vec<u8>) {
        if self.backlog.is_none() {
            let mut sent = 0;
            loop {
                match self.stream.try_write(&bytes[sent..]) {
                    Ok(n) => sent += n,
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => return,
                }
                if sent == bytes.len() {
                    return;
                }
            }
            bytes.drain(..sent);
        }
        let backlog = self.backlog.get_or_insert_with(|| {
            let (sender, mut receiver) = unbounded_channel::<Vec<u8>>();
            let stream = Arc::clone(&self.stream);
            tokio::spawn(async move {
                while let Some(bytes) = receiver.recv().await {
                    if write_all(&stream, &bytes).await.is_err() {
                        return;
                    }
                }
            });
            sender
        });
        let _ = backlog.send(bytes);
    }
}

async fn write_all(stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
