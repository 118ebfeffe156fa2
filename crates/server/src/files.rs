//! Contents of files: streamed into blobs, streamed out of them.

use crate::archive::unreadable;
use crate::backend::{ServerBackend, is_unknown, stopping};
use crate::readers::Readers;
use crate::room::{Room, Rooms};
use crate::streams::{self, Sink, Source, pump};
use api::{ByteStream, FileContent, ReadFile, WriteFile};
use bytes::Bytes;
use kernel::{Body, Command};
use md5::{Digest, Md5};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;
use store::{BlobWriter, Store};
use tokio::sync::{Mutex, MutexGuard, oneshot};
use vocab::{Failure, ObjectId};
use yson::Value;
use yson::ypath::YPath;

/// Bytes read from a blob at a time.
const CHUNK: usize = 256 << 10;
/// How often contents are joined anew when they are replaced again and again meanwhile.
pub(crate) const ATTEMPTS: usize = 100;
/// Turns of those who join contents for a file, by its id.
static TURNS: [Mutex<()>; 64] = [const { Mutex::const_new(()) }; 64];

/// One after another: of many that join contents for a file at once each would else copy for nothing until all others
/// are through.
pub(crate) async fn turn(file: ObjectId) -> MutexGuard<'static, ()> {
    TURNS[file.0.0[3] as usize % TURNS.len()].lock().await
}

/// The blobs of the store, seen as contents of files.
#[derive(Clone)]
pub struct Files {
    store: Arc<dyn Store>,
    rooms: Rooms,
    readers: Readers,
}

/// Where a file's content is.
struct Located {
    id: ObjectId,
    revision: u64,
    blob: u64,
    size: u64,
    /// Bytes that it may get, by limit.
    room: Option<Value>,
}

impl Files {
    /// Over this store.
    pub(crate) fn new(store: Arc<dyn Store>, rooms: Rooms, readers: Readers) -> Files {
        Files { store, rooms, readers }
    }

    /// What other contents on their way to the disk are counted in, too.
    pub(crate) fn rooms(&self) -> &Rooms {
        &self.rooms
    }

    /// Streams a content into a blob, then makes it the file's: the file changes whole or not at all. Once all of
    /// it has come this goes on to its end whether the client waits or not.
    pub async fn write(
        self,
        backend: &ServerBackend,
        user: String,
        request: WriteFile,
        body: ByteStream,
    ) -> Result<(), Failure> {
        let WriteFile { path, append, compute_md5, transaction } = request;
        let of = |blob: u64, size: u64, md5: Option<String>, behind: Option<u64>| {
            Command::FileWritten { path: path.clone(), blob, size, md5, behind }.through(transaction)
        };
        // Before the content comes, not after gigabytes of it.
        let may = Command::FileWritten { path: path.clone(), blob: 0, size: 0, md5: None, behind: None };
        backend.value(user.clone(), Command::Authorize(Box::new(may)).through(transaction)).await?;
        let target = locate(backend, &user, &path, transaction, true).await?;
        let store = Arc::clone(&self.store);
        // What is appended may have to be joined with another content than there is now.
        let digest = compute_md5 && !append;
        let replaced = if append { 0 } else { target.size };
        let room = self.rooms.open(path.text(), target.room.as_ref(), replaced);
        let written = pump(body, move || Draft::begin(&*store, digest, room)).await?;
        if !append {
            let Written { blob, size, md5, room } = written;
            let asked = backend.ask(user, None, of(blob, size, md5, None));
            return self.settle(asked, blob, room).await.map(drop);
        }
        // The tail is a part of what is joined from now on, and is counted there.
        let Written { blob: tail, size: tail_size, room, .. } = written;
        drop(room);
        let _turn = turn(target.id).await;
        let mut attempt = 0;
        let done = loop {
            attempt += 1;
            let base = match locate(backend, &user, &path, transaction, true).await {
                Ok(base) => base,
                Err(failure) => break Err(failure),
            };
            let behind = base.blob;
            let room = self.rooms.open(path.text(), base.room.as_ref(), base.size);
            let parts = [(base.blob, base.size), (tail, tail_size)];
            let joined = match self.join(&parts, compute_md5, room).await {
                Ok(Written { blob, size, md5, room }) => {
                    let asked = backend.ask(user.clone(), None, of(blob, size, md5, Some(behind)));
                    self.settle(asked, blob, room).await.map(drop)
                }
                Err(failure) => Err(failure),
            };
            match joined {
                // Somebody has written the file meanwhile: behind that, then.
                Err(_)
                    if attempt < ATTEMPTS
                        && locate(backend, &user, &path, transaction, true)
                            .await
                            .is_ok_and(|now| now.blob != behind) => {}
                done => break done,
            }
        };
        let _ = self.store.delete_blob(tail);
        done
    }

    /// Waits until a blob is the content of a file. One that is refused is removed: nobody will ever refer to it. When
    /// it is not known what became of the change the blob stays, and the next start finds out.
    pub(crate) async fn settle(
        &self,
        asked: Result<oneshot::Receiver<Result<Body, Failure>>, Failure>,
        blob: u64,
        room: Room,
    ) -> Result<Body, Failure> {
        let done = match asked {
            Ok(answer) => match answer.await {
                Ok(done) => done,
                Err(_) => return Err(stopping()),
            },
            Err(failure) => Err(failure),
        };
        // A change that was made before has taken another one.
        let is_taken =
            matches!(&done, Ok(Body::Value(taken)) if taken.as_u64().is_none_or(|taken| taken == blob));
        if !is_taken && !done.as_ref().is_err_and(is_unknown) {
            let _ = self.store.delete_blob(blob);
        } else {
            room.settled();
        }
        done
    }

    /// Contents one behind another, in one of their own. There must be room for all of it before any is copied.
    pub(crate) async fn join(
        &self,
        parts: &[(u64, u64)],
        compute_md5: bool,
        mut room: Room,
    ) -> Result<Written, Failure> {
        room.grow_to(parts.iter().fold(0, |sum, (_, size)| sum.saturating_add(*size)))?;
        let contents = Contents(parts.iter().map(|(blob, size)| self.content(*blob, 0, *size)).collect());
        let store = Arc::clone(&self.store);
        let written =
            pump(streams::stream(contents), move || Draft::begin(&*store, compute_md5, room)).await?;
        if written.size == parts.iter().map(|(_, size)| size).sum() {
            return Ok(written);
        }
        // Of a server that stops the reading end may go first.
        let _ = self.store.delete_blob(written.blob);
        Err(too_short())
    }

    /// Opens a content.
    pub async fn read(
        self,
        backend: &ServerBackend,
        user: String,
        request: ReadFile,
    ) -> Result<FileContent, Failure> {
        let ReadFile { path, offset, length, transaction } = request;
        // A writer may replace the content at any time from now on.
        let reading = self.readers.begin();
        let located = locate(backend, &user, &path, transaction, false).await?;
        let reading = reading.of([located.blob]);
        let offset = offset.min(located.size);
        let length = length.unwrap_or(u64::MAX).min(located.size - offset);
        let body = reading.guard(self.stream(located.blob, offset, length));
        Ok(FileContent { id: located.id, revision: located.revision, length, body })
    }

    /// Bytes of a blob, piece by piece. Blob 0 is the content of a file that was never written.
    pub fn stream(&self, blob: u64, offset: u64, length: u64) -> ByteStream {
        streams::stream(self.content(blob, offset, length))
    }

    fn content(&self, blob: u64, offset: u64, length: u64) -> Content {
        let end = if blob == 0 { offset } else { offset + length };
        Content { store: Arc::clone(&self.store), blob, at: offset, end }
    }
}

/// A part of a blob that is being read.
struct Content {
    store: Arc<dyn Store>,
    blob: u64,
    at: u64,
    end: u64,
}

impl Source for Content {
    fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        if self.at == self.end {
            return Ok(None);
        }
        let wanted = usize::try_from(self.end - self.at).unwrap_or(CHUNK).min(CHUNK);
        let chunk = self.store.read_blob(self.blob, self.at, wanted).map_err(unreadable)?;
        if chunk.is_empty() {
            return Err(too_short().with("missing_blob", self.blob));
        }
        self.at += chunk.len() as u64;
        Ok(Some(chunk.into()))
    }
}

/// One behind another.
struct Contents(VecDeque<Content>);

impl Source for Contents {
    fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while let Some(first) = self.0.front_mut() {
            if let Some(piece) = first.next()? {
                return Ok(Some(piece));
            }
            self.0.pop_front();
        }
        Ok(None)
    }
}

/// A content that is durable in a blob, and not yet that of a file.
pub(crate) struct Written {
    pub(crate) blob: u64,
    pub(crate) size: u64,
    md5: Option<String>,
    pub(crate) room: Room,
}

/// A blob on its way to be a content.
struct Draft {
    writer: Box<dyn BlobWriter>,
    md5: Option<Md5>,
    room: Room,
}

impl Draft {
    fn begin(store: &dyn Store, compute_md5: bool, room: Room) -> Result<Draft, Failure> {
        let writer = store.begin_blob().map_err(unreadable)?;
        Ok(Draft { writer, md5: compute_md5.then(Md5::new), room })
    }
}

impl Sink for Draft {
    type Written = Written;

    fn add(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        if let Some(md5) = &mut self.md5 {
            md5.update(chunk);
        }
        self.room.grow_to(self.writer.len() + chunk.len() as u64)?;
        self.writer.append(chunk).map_err(unreadable)
    }

    fn finish(self) -> Result<Written, Failure> {
        let size = self.writer.len();
        let blob = self.writer.finish().map_err(unreadable)?;
        let md5 = self.md5.map(|md5| {
            md5.finalize().iter().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
        });
        Ok(Written { blob, size, md5, room: self.room })
    }
}

fn too_short() -> Failure {
    Failure::new("The content of the file is shorter than it should be")
}

async fn locate(
    backend: &ServerBackend,
    user: &str,
    path: &YPath,
    transaction: Option<ObjectId>,
    to_write: bool,
) -> Result<Located, Failure> {
    let command = Command::LocateFile { path: path.clone(), to_write }.through(transaction);
    let value = backend.value(user.to_owned(), command).await?;
    let number = |key: &str| value.get(key).and_then(Value::as_u64).unwrap_or_default();
    let id = value.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
    Ok(Located {
        id: id.ok_or_else(|| Failure::new("Malformed id of a file"))?,
        revision: number("revision"),
        blob: number("blob"),
        size: number("size"),
        room: value.get("room").cloned(),
    })
}
