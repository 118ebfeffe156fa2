//! Bodies of requests: whole with a bound, or as a stream.

use super::encoding::{DecodeError, Decoder};
use super::failure::HttpFailure;
use super::headers;
use crate::ByteStream;
use axum::body::{Body, BodyDataStream, HttpBody as _};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_stream::{Stream, StreamExt as _};
use vocab::Failure;

/// Pieces that are decompressed at once: bounds what one piece may become.
const PIECE: usize = 64 << 10;
/// What one piece of a streamed body may become.
const MAX_PIECE: usize = 64 << 20;
/// A refused body is read on up to here, so that the client gets to read the reply.
const MAX_DRAINED: usize = 1 << 30;
/// And as long as this, for a client that sends without a pause: one that waits may be waiting for the reply.
const MAX_DRAINING: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(1);

/// Decompresses a whole body of at most `limit` bytes; `what` names it in the error.
pub(super) async fn whole(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    what: &str,
) -> Result<Vec<u8>, HttpFailure> {
    let mut decoder = decoder(headers)?;
    let mut stream = body.into_data_stream();
    let mut out = Vec::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(broken)?;
        for piece in chunk.chunks(PIECE) {
            match decoder.push(piece, limit - out.len()) {
                Ok(bytes) if out.is_empty() => out = bytes,
                Ok(bytes) => out.extend_from_slice(&bytes),
                Err(error) => return Err(refused(error, limit, what)),
            }
        }
    }
    out.extend(decoder.finish(limit - out.len()).map_err(|e| refused(e, limit, what))?);
    Ok(out)
}

fn refused(error: DecodeError, limit: usize, what: &str) -> HttpFailure {
    let message = match error {
        DecodeError::TooLarge { .. } => format!("{what} is too large: at most {limit} bytes are allowed"),
        other => other.to_string(),
    };
    Failure::new(message).into()
}

fn broken(error: axum::Error) -> Failure {
    Failure::new(format!("Cannot read the body of the request: {error}"))
}

/// An unknown `Content-Encoding` is answered with 415 (http-api.md 2.6).
fn decoder(headers: &HeaderMap) -> Result<Decoder, HttpFailure> {
    Decoder::new(headers::text(headers, header::CONTENT_ENCODING.as_str()))
        .map_err(|e| HttpFailure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Failure::new(e.to_string())))
}

/// The body as a stream of decompressed pieces, as slow as the client is.
pub(super) fn streamed(headers: &HeaderMap, body: Body) -> Result<ByteStream, HttpFailure> {
    let decoder = decoder(headers)?;
    Ok(Box::pin(Decompressed {
        body: body.into_data_stream(),
        decoder,
        waiting: VecDeque::new(),
        over: false,
    }))
}

struct Decompressed {
    body: BodyDataStream,
    decoder: Decoder,
    /// Pieces that have come and are not decompressed yet.
    waiting: VecDeque<Bytes>,
    over: bool,
}

impl Stream for Decompressed {
    type Item = Result<Bytes, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let failed = |error: DecodeError| Poll::Ready(Some(Err(Failure::new(error.to_string()))));
        loop {
            if this.over {
                return Poll::Ready(None);
            }
            if let Some(mut chunk) = this.waiting.pop_front() {
                let piece = chunk.split_to(chunk.len().min(PIECE));
                if !chunk.is_empty() {
                    this.waiting.push_front(chunk);
                }
                match this.decoder.push(&piece, MAX_PIECE) {
                    Ok(bytes) if bytes.is_empty() => continue,
                    Ok(bytes) => return Poll::Ready(Some(Ok(bytes.into()))),
                    Err(error) => {
                        this.over = true;
                        return failed(error);
                    }
                }
            }
            match Pin::new(&mut this.body).poll_next(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(chunk))) => this.waiting.push_back(chunk),
                Poll::Ready(Some(Err(error))) => {
                    this.over = true;
                    return Poll::Ready(Some(Err(broken(error))));
                }
                Poll::Ready(None) => {
                    this.over = true;
                    return match this.decoder.finish(MAX_PIECE) {
                        Ok(bytes) if bytes.is_empty() => Poll::Ready(None),
                        Ok(bytes) => Poll::Ready(Some(Ok(bytes.into()))),
                        Err(error) => failed(error),
                    };
                }
            }
        }
    }
}

/// Gives a body away so that what its user leaves comes back.
pub(super) fn lend(headers: &HeaderMap, body: Body) -> (Body, Option<Rest>) {
    if body.is_end_stream() {
        return (body, None);
    }
    let (back, rest) = oneshot::channel();
    // Who asks first whether to send it at all does so when it is read.
    let is_coming = !headers.contains_key(header::EXPECT);
    let lent = Lent { stream: Some(body.into_data_stream()), is_coming, back: Some(back) };
    (Body::from_stream(lent), Some(Rest(rest)))
}

/// What is left of a lent body that is on its way.
pub(super) struct Rest(oneshot::Receiver<BodyDataStream>);

impl Rest {
    /// Reads on to the end, as far as the body has been given back, within bounds.
    pub async fn drain(mut self) {
        let Ok(mut stream) = self.0.try_recv() else { return };
        let mut left = MAX_DRAINED;
        let all = async {
            while let Ok(Some(Ok(chunk))) = timeout(PAUSE, stream.next()).await {
                match left.checked_sub(chunk.len()) {
                    Some(rest) => left = rest,
                    None => return,
                }
            }
        };
        // Whatever it was, the reply is next.
        let _ = timeout(MAX_DRAINING, all).await;
    }
}

struct Lent {
    stream: Option<BodyDataStream>,
    is_coming: bool,
    back: Option<oneshot::Sender<BodyDataStream>>,
}

impl Stream for Lent {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.is_coming = true;
        match &mut self.stream {
            Some(stream) => Pin::new(stream).poll_next(context),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(stream), Some(back), true) = (self.stream.take(), self.back.take(), self.is_coming) {
            // Nobody waits for the rest of a body that was accepted.
            let _ = back.send(stream);
        }
    }
}
