//! Errors behind the beginning of a body: in trailers, for whoever says that he reads them (http-api.md 2.7).
//!
//! The others are cut off. The public client is one of them: it looks at trailers but does not ask for them, and
//! takes the cut as an incomplete read.

use super::failure::as_trailers;
use crate::ByteStream;
use crate::api::Api;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Version, header};
use http_body_util::StreamBody;
use hyper::body::Frame;
use std::convert::Infallible;
use std::sync::Arc;
use tokio_stream::StreamExt as _;

/// What [`body`] may end with.
pub(super) const NAMES: HeaderValue =
    HeaderValue::from_static("X-YT-Error, X-YT-Response-Code, X-YT-Response-Message");

/// Does the client read trailers? In HTTP/2 browsers say so of all they ask, and mean other things; there a stream
/// that is reset is unmistakable. HTTP/1.0 has none.
pub(super) fn are_read(version: Version, request: &HeaderMap) -> bool {
    if version != Version::HTTP_11 {
        return false;
    }
    let values = request.get_all(header::TE).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| coding.trim().eq_ignore_ascii_case("trailers"))
}

/// The pieces, and an error as what follows them.
pub(super) fn body(pieces: ByteStream, api: &Arc<Api>) -> Body {
    let api = api.clone();
    let frames = pieces.map(move |piece| {
        let frame = piece.map_or_else(|failure| Frame::trailers(as_trailers(failure, &api)), Frame::data);
        Ok::<_, Infallible>(frame)
    });
    Body::new(StreamBody::new(frames))
}
