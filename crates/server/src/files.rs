//! Contents of files: streamed into blobs, streamed out of them.

use crate::archive::unreadable;
use crate::backend::ServerBackend;
use api::{ByteStream, FileContent, ReadFile, WriteFile};
use bytes::Bytes;
use kernel::Command;
use md5::{Digest, Md5};
use std::fmt::Write as _;
use std::sync::Arc;
use store::{BlobWriter, Store};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use vocab::{Failure, ObjectId};
use yson::Value;
use yson::ypath::YPath;

/// Bytes read from a blob at a time.
const CHUNK: usize = 256 << 10;
/// Chunks that may wait for a slow reader or for the disk.
const CHUNKS_AHEAD: usize = 4;

/// The blobs of the store, seen as contents of files.
#[derive(Clone)]
pub struct Files {
    store: Arc<dyn Store>,
}

/// Where a file's content is.
struct Located {
    id: ObjectId,
    revision: u64,
    blob: u64,
    size: u64,
}

impl Files {
    /// Over this store.
    pub fn new(store: Arc<dyn Store>) -> Files {
        Files { store }
    }

    /// Streams a content into a blob, then makes it the file's: the file changes whole or not at all.
    pub async fn write(
        self,
        backend: &ServerBackend,
        user: String,
        request: WriteFile,
        body: ByteStream,
    ) -> Result<(), Failure> {
        let WriteFile { path, append, compute_md5, transaction } = request;
        // Before the content comes, not after gigabytes of it.
        let written = Command::FileWritten { path: path.clone(), blob: 0, size: 0, md5: None, append };
        let may = Command::Authorize(Box::new(written)).through(transaction);
        backend.value(user.clone(), may).await?;
        let old = locate(backend, &user, &path, transaction).await?;
        let store = Arc::clone(&self.store);
        let base = append.then_some(old).filter(|old| old.blob != 0);
        let Written { blob, size, md5 } =
            pump(body, move |pieces| write_blob(&*store, base, compute_md5, pieces)).await?;
        let command = Command::FileWritten { path, blob, size, md5, append }.through(transaction);
        let done = backend.value(user, command).await;
        // The node is gone, or may not be written: nobody will ever refer to this content. When the store has
        // failed that is not known, and the next start finds out.
        if done.is_err() && backend.hub.failure().is_none() {
            let _ = self.store.delete_blob(blob);
        }
        done.map(drop)
    }

    /// Opens a content.
    pub async fn read(
        self,
        backend: &ServerBackend,
        user: String,
        request: ReadFile,
    ) -> Result<FileContent, Failure> {
        let ReadFile { path, offset, length, transaction } = request;
        let located = locate(backend, &user, &path, transaction).await?;
        let offset = offset.min(located.size);
        let length = length.unwrap_or(u64::MAX).min(located.size - offset);
        let body = self.stream(located.blob, offset, length);
        Ok(FileContent { id: located.id, revision: located.revision, length, body })
    }

    /// Bytes of a blob, piece by piece. Blob 0 is the content of a file that was never written.
    pub fn stream(&self, blob: u64, offset: u64, length: u64) -> ByteStream {
        let (sender, receiver) = mpsc::channel::<Result<Bytes, Failure>>(CHUNKS_AHEAD);
        if blob == 0 || length == 0 {
            return Box::pin(ReceiverStream::new(receiver));
        }
        let store = Arc::clone(&self.store);
        tokio::task::spawn_blocking(move || {
            let end = offset + length;
            let mut at = offset;
            while at < end {
                let wanted = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
                let chunk = store.read_blob(blob, at, wanted).map_err(unreadable);
                let over = chunk.as_ref().map_or(true, Vec::is_empty);
                at += chunk.as_ref().map_or(0, |c| c.len() as u64);
                let chunk = match chunk {
                    Ok(bytes) if bytes.is_empty() => {
                        Err(Failure::new("The content of the file is shorter than it should be"))
                    }
                    other => other.map(Bytes::from),
                };
                if sender.blocking_send(chunk).is_err() || over {
                    return;
                }
            }
        });
        Box::pin(ReceiverStream::new(receiver))
    }
}

/// Feeds a writer, which may wait for the disk, with what a client sends. A client that dies in the
/// middle leaves nothing: the writer gets the end of its input only when that has come.
pub async fn pump<T: Send + 'static>(
    mut body: ByteStream,
    write: impl FnOnce(Pieces) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
    let writer = tokio::task::spawn_blocking(move || write(Pieces(receiver)));
    let mut whole = true;
    while let Some(piece) = body.next().await {
        whole = piece.is_ok();
        if sender.send(Some(piece)).await.is_err() || !whole {
            break; // the writer has failed and says why, or will
        }
    }
    if whole {
        let _ = sender.send(None).await;
    }
    drop(sender);
    writer.await.map_err(|e| Failure::new(format!("Writing the content failed: {e}")))?
}

/// What comes of a client, for a thread that may wait.
pub struct Pieces(mpsc::Receiver<Option<Result<Bytes, Failure>>>);

impl Pieces {
    /// The next piece; none at the end.
    pub fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        match self.0.blocking_recv() {
            Some(Some(piece)) => piece.map(Some),
            Some(None) => Ok(None),
            // Whoever fed this is gone, and it was not the end.
            None => Err(Failure::new("The content was cut")),
        }
    }
}

struct Written {
    blob: u64,
    size: u64,
    md5: Option<String>,
}

fn write_blob(
    store: &dyn Store,
    base: Option<Located>,
    compute_md5: bool,
    mut pieces: Pieces,
) -> Result<Written, Failure> {
    let mut writer = store.begin_blob().map_err(unreadable)?;
    let mut md5 = compute_md5.then(Md5::new);
    let mut add = |writer: &mut Box<dyn BlobWriter>, chunk: &[u8]| -> Result<(), Failure> {
        if let Some(md5) = &mut md5 {
            md5.update(chunk);
        }
        writer.append(chunk).map_err(unreadable)
    };
    if let Some(base) = base {
        let mut at = 0;
        while at < base.size {
            let chunk = store.read_blob(base.blob, at, CHUNK).map_err(unreadable)?;
            if chunk.is_empty() {
                break;
            }
            at += chunk.len() as u64;
            add(&mut writer, &chunk)?;
        }
    }
    while let Some(piece) = pieces.next()? {
        add(&mut writer, &piece)?;
    }
    let size = writer.len();
    let blob = writer.finish().map_err(unreadable)?;
    let md5 = md5.map(|md5| {
        md5.finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    });
    Ok(Written { blob, size, md5 })
}

async fn locate(
    backend: &ServerBackend,
    user: &str,
    path: &YPath,
    transaction: Option<ObjectId>,
) -> Result<Located, Failure> {
    let command = Command::LocateFile { path: path.clone() }.through(transaction);
    let value = backend.value(user.to_owned(), command).await?;
    let number = |key: &str| value.get(key).and_then(Value::as_u64).unwrap_or_default();
    let id = value.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
    Ok(Located {
        id: id.ok_or_else(|| Failure::new("Malformed id of a file"))?,
        revision: number("revision"),
        blob: number("blob"),
        size: number("size"),
    })
}
