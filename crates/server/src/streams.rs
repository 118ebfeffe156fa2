//! Bytes between clients and the disk. Reading and writing may wait for the disk, and is done on threads that may;
//! clients may be as slow as they like, and as many, for no thread waits for them: who is fast finds one free.

use api::ByteStream;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use vocab::Failure;

/// Pieces that may wait for a slow client: there may be many of them.
const READ_AHEAD: usize = 1;
/// Pieces or batches for one client before it is the turn of another one.
const IN_ONE_GO: usize = 64;
/// Bytes that may wait for the disk, beside as many on their way there and those that are being written.
const WRITTEN_LATER: usize = 512 << 10;

/// Where bytes come from.
pub trait Source: Send + 'static {
    /// The next piece; none at the end. It may wait for the disk.
    fn next(&mut self) -> Result<Option<Bytes>, Failure>;
}

/// Where bytes go to.
pub trait Sink: Send + Sized + 'static {
    /// What has become of them.
    type Written: Send + 'static;

    /// Takes a piece. It may wait for the disk.
    fn add(&mut self, piece: &[u8]) -> Result<(), Failure>;

    /// That was the end. Whoever is dropped without this leaves nothing.
    fn finish(self) -> Result<Self::Written, Failure>;
}

/// Work that may wait for the disk.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(|e| Failure::new(e.to_string()))?
}

/// What a source has, for a client.
pub fn stream(source: impl Source) -> ByteStream {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    tokio::spawn(async move {
        let mut rest = Some((source, sender));
        while let Some((source, sender)) = rest {
            // First a place for the piece: that is what a slow client leaves one waiting for.
            let Ok(place) = sender.reserve_owned().await else { return };
            let Ok(more) = blocking(move || Ok(fill(source, place))).await else { return };
            rest = more;
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}

type Place = mpsc::OwnedPermit<Result<Bytes, Failure>>;
type Places = mpsc::Sender<Result<Bytes, Failure>>;

/// Puts pieces where there is a place, as long as the client is fast enough: going back and forth between threads costs
/// more than a piece. Gives back what is needed to go on, if there is more.
fn fill<S: Source>(mut source: S, mut place: Place) -> Option<(S, Places)> {
    for _ in 0..IN_ONE_GO {
        let sender = match source.next() {
            Ok(Some(piece)) => place.send(Ok(piece)),
            Ok(None) => return None,
            Err(failure) => {
                place.send(Err(failure));
                return None;
            }
        };
        match sender.try_reserve_owned() {
            Ok(next) => place = next,
            Err(TrySendError::Full(sender) | TrySendError::Closed(sender)) => return Some((source, sender)),
        }
    }
    Some((source, place.release()))
}

/// What a client sends, for a sink, which is opened before anything has come. A client that dies in the middle leaves
/// nothing: the sink hears of the end only when that has come.
pub async fn pump<S: Sink>(
    mut body: ByteStream,
    open: impl FnOnce() -> Result<S, Failure> + Send + 'static,
) -> Result<S::Written, Failure> {
    let (sender, mut batches) = mpsc::channel(1);
    let feed = async move {
        let (mut held, mut bytes) = (Vec::new(), 0);
        loop {
            tokio::select! {
                // What is there already is taken first: handing over costs more than a few kilobytes are worth.
                biased;
                piece = body.next(), if bytes < WRITTEN_LATER => match piece {
                    Some(Ok(piece)) => {
                        bytes += piece.len();
                        held.push(piece);
                    }
                    Some(Err(failure)) => return drop(sender.send(Err(failure)).await),
                    None if held.is_empty() => return,
                    None => return drop(sender.send(Ok(held)).await),
                },
                place = sender.reserve(), if !held.is_empty() => match place {
                    Ok(place) => {
                        place.send(Ok(std::mem::take(&mut held)));
                        bytes = 0;
                    }
                    Err(_) => return,
                },
            }
        }
    };
    let write = async move {
        let mut sink = blocking(open).await?;
        while let Some(batch) = batches.recv().await {
            let batch: Vec<Bytes> = batch?;
            (sink, batches) = blocking(move || {
                batch.iter().try_for_each(|piece| sink.add(piece))?;
                for _ in 1..IN_ONE_GO {
                    let Ok(batch) = batches.try_recv() else { break };
                    batch?.iter().try_for_each(|piece| sink.add(piece))?;
                }
                Ok((sink, batches))
            })
            .await?;
        }
        blocking(move || sink.finish()).await
    };
    let mut write = std::pin::pin!(write);
    tokio::select! {
        // It fails before the client has sent everything.
        written = &mut write => written,
        () = feed => write.await,
    }
}

#[cfg(test)]
mod tests;
