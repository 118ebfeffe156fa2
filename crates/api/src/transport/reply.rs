//! Successful replies (http-api.md 2.5, 2.6).

use super::encoding::Encoding;
use super::in_flight::{Pieces, Reservation};
use super::metered::{HELD, metered};
use super::{headers, trailers};
use crate::api::Caller;
use crate::{ByteStream, FileContent};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, Version, header};
use tokio_stream::StreamExt as _;
use vocab::Failure;
use yson::{Format, Value};

/// Larger bodies are parsed, formatted and compressed away from the threads that serve connections.
pub(super) const LARGE: usize = 1 << 20;

/// A value in a format. Refused while too many bytes wait for this user, or for all.
pub(super) async fn structured(
    caller: &Caller,
    request: &HeaderMap,
    format: Format,
    value: Value,
) -> Result<Response<Body>, Failure> {
    let mime = HeaderValue::from_static(format.mime());
    let weight = value.weight();
    let reservation = match caller.counted.take() {
        Some(reservation) => reservation,
        None => caller.api.in_flight.reserve(&caller.user, weight as u64)?,
    };
    let body = away_if(weight > LARGE, move || format.serialize(&value)).await;
    Ok(buffered(request, mime, body, reservation).await)
}

/// Bytes of no format. Refused as a value is.
pub(super) async fn binary(
    caller: &Caller,
    request: &HeaderMap,
    body: Vec<u8>,
) -> Result<Response<Body>, Failure> {
    text(caller, request, HeaderValue::from_static("application/octet-stream"), body).await
}

/// Bytes of a type. Refused as a value is.
pub(super) async fn text(
    caller: &Caller,
    request: &HeaderMap,
    mime: HeaderValue,
    body: Vec<u8>,
) -> Result<Response<Body>, Failure> {
    let reservation = caller.api.in_flight.reserve(&caller.user, body.len() as u64)?;
    Ok(buffered(request, mime, body, reservation).await)
}

/// A reply without a body, as v3 has them.
pub(super) fn empty() -> Response<Body> {
    common(Response::new(Body::empty()))
}

async fn buffered(
    request: &HeaderMap,
    mime: HeaderValue,
    body: Vec<u8>,
    reservation: Reservation,
) -> Response<Body> {
    let accept = headers::text(request, header::ACCEPT_ENCODING.as_str());
    let encoding = Encoding::choose(accept, body.len());
    let large = body.len() > LARGE && encoding != Encoding::Identity;
    let body = away_if(large, move || encoding.compress(body)).await;
    let mut response = common(Response::new(Body::new(Pieces::new(reservation.hold(body)))));
    response.headers_mut().insert(header::CONTENT_TYPE, mime);
    if let Some(name) = encoding.name() {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
    }
    response
}

/// The same bytes. What goes wrong before the first of them is said properly: what was to be read may have gone since
/// it was found.
async fn begun(mut body: ByteStream) -> Result<ByteStream, Failure> {
    let first = body.next().await.transpose()?;
    Ok(Box::pin(tokio_stream::iter(first.map(Ok)).chain(body)))
}

/// Who asks, and whom: how a body may end depends on both.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub caller: &'a Caller,
    /// Of the request.
    pub version: Version,
    /// Of the request.
    pub headers: &'a HeaderMap,
}

/// What was there when it was asked for.
pub(super) async fn kept(reader: Reader<'_>, body: ByteStream) -> Result<Response<Body>, Failure> {
    streamed(reader, begun(body).await?)
}

/// Bytes as they come. Refused while this user, or all, have too many bodies that are under way.
pub(super) fn streamed(reader: Reader<'_>, body: ByteStream) -> Result<Response<Body>, Failure> {
    let Caller { api, user, .. } = reader.caller;
    let body = metered(body, api.in_flight.open_stream(user, HELD)?);
    let with_trailers = trailers::are_read(reader.version, reader.headers);
    let body = if with_trailers { trailers::body(body, api) } else { Body::from_stream(body) };
    let mut response = common(Response::new(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if with_trailers {
        headers.insert(header::TRAILER, trailers::NAMES);
    }
    Ok(response)
}

/// The content of a file, piece by piece.
pub(super) async fn file(
    reader: Reader<'_>,
    content: FileContent,
    parameters: Vec<u8>,
) -> Result<Response<Body>, Failure> {
    let mut response = kept(reader, content.body).await?;
    let headers = response.headers_mut();
    // A body of a known length ends with it: nothing can follow.
    if !headers.contains_key(header::TRAILER) {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(content.length));
    }
    if let Ok(value) = HeaderValue::from_bytes(&parameters) {
        headers.insert("x-yt-response-parameters", value);
    }
    Ok(response)
}

/// Rows as they come.
pub(super) async fn table(
    reader: Reader<'_>,
    body: ByteStream,
    mime: &'static str,
    parameters: Vec<u8>,
) -> Result<Response<Body>, Failure> {
    let mut response = kept(reader, body).await?;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
    if let Ok(value) = HeaderValue::from_bytes(&parameters) {
        headers.insert("x-yt-response-parameters", value);
    }
    Ok(response)
}

fn common(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("Content-Encoding"));
    response
}

/// Does work here, or on a thread for long work.
pub(crate) async fn away_if<T: Send + 'static>(large: bool, work: impl FnOnce() -> T + Send + 'static) -> T {
    if !large {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
