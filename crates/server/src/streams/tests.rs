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
