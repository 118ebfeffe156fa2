//! Bytes between clients and the disk. Reading and writing may wait for the disk, and is done on threads that may;
//! clients may be as slow as they like, and as many, for no thread waits for them: who is fast finds one free.

use api::ByteStream;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use vocab::Failure;

/// Pieces that may wait for a slow client.
const READ_AHEAD: usize = 4;
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
mod tests {
    use super::*;
    use tokio::time::{Duration, timeout};

    /// With one thread for everything that waits for the disk.
    fn run(work: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(1)
            .enable_time()
            .build()
            .expect("a runtime");
        let over = runtime.block_on(async { timeout(Duration::from_secs(120), work).await });
        over.expect("somebody waits for a client");
    }

    struct Count(u8);

    impl Source for Count {
        fn next(&mut self) -> Result<Option<Bytes>, Failure> {
            self.0 += 1;
            match self.0 {
                1..=9 => Ok(Some(Bytes::from(vec![self.0]))),
                10 => Ok(None),
                _ => Err(Failure::new("read behind the end")),
            }
        }
    }

    /// Takes so many pieces.
    struct Limited(Vec<u8>, usize);

    impl Sink for Limited {
        type Written = Vec<u8>;

        fn add(&mut self, piece: &[u8]) -> Result<(), Failure> {
            self.0.extend_from_slice(piece);
            self.1 = self.1.checked_sub(1).ok_or_else(|| Failure::new("it is full"))?;
            Ok(())
        }

        fn finish(self) -> Result<Vec<u8>, Failure> {
            Ok(self.0)
        }
    }

    type Sent = Result<Bytes, Failure>;

    fn upload(limit: usize) -> (mpsc::Sender<Sent>, impl Future<Output = Result<Vec<u8>, Failure>>) {
        let (sender, receiver) = mpsc::channel(100);
        let body: ByteStream = Box::pin(ReceiverStream::new(receiver));
        (sender, pump(body, move || Ok(Limited(Vec::new(), limit))))
    }

    fn piece(text: &'static str) -> Sent {
        Ok(Bytes::from(text))
    }

    #[test]
    fn clients_that_wait_keep_no_thread() {
        run(async {
            let mut readers: Vec<ByteStream> = (0..10).map(|_| stream(Count(0))).collect();
            for reader in &mut readers {
                assert_eq!(reader.next().await.expect("a piece").expect("read"), vec![1]);
            }
            let (senders, uploads): (Vec<_>, Vec<_>) = (0..10).map(|_| upload(100)).unzip();
            let uploads: Vec<_> = uploads.into_iter().map(tokio::spawn).collect();
            for sender in &senders {
                sender.send(piece("a")).await.expect("it listens");
            }
            assert_eq!(blocking(|| Ok(7)).await.expect("done"), 7);
            for sender in senders {
                sender.send(piece("b")).await.expect("it listens");
            }
            for upload in uploads {
                assert_eq!(upload.await.expect("it ends").expect("written"), b"ab");
            }
            for reader in &mut readers {
                let mut rest = Vec::new();
                while let Some(piece) = reader.next().await {
                    rest.extend_from_slice(&piece.expect("read"));
                }
                assert_eq!(rest, (2..=9).collect::<Vec<u8>>());
            }
        });
    }

    #[test]
    fn what_was_cut_is_not_finished() {
        run(async {
            let (sender, upload) = upload(100);
            sender.send(piece("a")).await.expect("sent");
            sender.send(Err(Failure::new("the client is gone"))).await.expect("sent");
            drop(sender);
            assert_eq!(upload.await.expect_err("it was cut").message, "the client is gone");
        });
    }

    #[test]
    fn who_sends_what_cannot_be_taken_is_told_before_the_end() {
        run(async {
            let (sender, upload) = upload(1);
            for _ in 0..2 {
                sender.send(piece("a")).await.expect("sent");
            }
            assert_eq!(upload.await.expect_err("refused").message, "it is full");
            drop(sender);
        });
    }
}
