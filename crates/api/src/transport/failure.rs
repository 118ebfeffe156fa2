//! Errors as replies (http-api.md 3.1).
//!
//! Whatever goes wrong, a request is answered with a status of the 400s and an error tree: clients
//! repeat 500 and 503 for minutes.

use super::in_flight::Pieces;
use crate::api::{Api, now};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use std::collections::BTreeSet;
use vocab::{Failure, code};
use yson::{Format, JsonFormat, Style, Value};

/// The error travels in a header, and clients read lines of at most 64 KiB.
const MAX_ERROR_BYTES: usize = 48 << 10;

/// Where longer errors take too much memory: the clients do not read them.
const SHORT_ERROR_BYTES: usize = 1 << 10;

/// A failure and the status that it is answered with.
#[derive(Debug)]
pub(super) struct HttpFailure {
    pub status: StatusCode,
    /// Boxed, because results of everything here carry the room for it.
    pub failure: Box<Failure>,
    /// Methods for the `Allow` header of a 405.
    pub allow: Option<&'static str>,
    /// The client has not said who it is: it is not told about the host and the process.
    pub is_for_anybody: bool,
}

impl HttpFailure {
    pub fn new(status: StatusCode, failure: Failure) -> HttpFailure {
        HttpFailure { status, failure: Box::new(failure), allow: None, is_for_anybody: false }
    }

    /// A failure of authentication: clients turn any 401 into their own error about the token.
    pub fn of_authentication(failure: Failure) -> HttpFailure {
        const BANNED: i64 = 903;
        let status = match failure.code {
            109..=code::INVALID_CREDENTIALS => StatusCode::UNAUTHORIZED,
            BANNED => StatusCode::FORBIDDEN,
            code::TOO_MANY_REQUESTS_OF_USER => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::BAD_REQUEST,
        };
        let is_for_anybody = status == StatusCode::UNAUTHORIZED;
        HttpFailure { is_for_anybody, ..HttpFailure::new(status, failure) }
    }

    pub fn into_response(self, api: &Api) -> Response<Body> {
        self.into_response_in(api, None)
    }

    /// In a style of YSON, or in JSON.
    pub fn into_response_in(self, api: &Api, style: Option<Style>) -> Response<Body> {
        let failure = if self.is_for_anybody { *self.failure } else { with_details(*self.failure, api) };
        let failure = fit(failure, MAX_ERROR_BYTES);
        let written = Written::new(&failure, style);
        // Nobody is denied an error, but a long one may become a short one.
        let (failure, written, reservation) = match api.in_flight.reserve(NOBODY, written.size()) {
            Ok(reservation) => (failure, written, Some(reservation)),
            Err(_) => {
                let failure = fit(failure, SHORT_ERROR_BYTES);
                let written = Written::new(&failure, style);
                (failure, written, None)
            }
        };
        let Written { line, line_type, body, body_type } = written;
        let body = match reservation {
            Some(reservation) => Body::new(Pieces::new(reservation.hold(body))),
            None => Body::from(body),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        say(headers, &failure, &line);
        headers.insert("x-yt-error-content-type", HeaderValue::from_static(line_type));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(body_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = failure.attributes.get("retry_after").and_then(Value::as_u64) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

/// The user whose replies errors are counted with: many are not for a user that is known.
const NOBODY: &str = "";

/// An error as it is sent.
struct Written {
    /// A header is a line of text, whatever the body is.
    line: String,
    line_type: &'static str,
    body: Vec<u8>,
    body_type: &'static str,
}

impl Written {
    /// In a style of YSON, or in JSON.
    fn new(failure: &Failure, style: Option<Style>) -> Written {
        match style {
            None => {
                let line = ascii_json(failure);
                let body = line.clone().into_bytes();
                Written { line, line_type: "application/json", body, body_type: "application/json" }
            }
            Some(style) => {
                let (value, text, format) =
                    (failure.to_value(), Format::Yson(Style::Text), Format::Yson(style));
                let line = String::from_utf8_lossy(&text.serialize(&value)).into_owned();
                let body = format.serialize(&value);
                Written { line, line_type: text.mime(), body, body_type: format.mime() }
            }
        }
    }

    fn size(&self) -> u64 {
        (self.line.len() + self.body.len()) as u64
    }
}

/// What is said of an error that comes in the middle of a body (http-api.md 2.7).
pub(super) fn as_trailers(failure: Failure, api: &Api) -> HeaderMap {
    let failure = fit(with_details(failure, api), MAX_ERROR_BYTES);
    let mut headers = HeaderMap::new();
    say(&mut headers, &failure, &ascii_json(&failure));
    headers
}

fn say(headers: &mut HeaderMap, failure: &Failure, line: &str) {
    headers.insert("x-yt-error", ascii_header(line));
    headers.insert("x-yt-response-code", HeaderValue::from(failure.code));
    headers.insert("x-yt-response-message", ascii_header(&failure.message));
}

impl From<Failure> for HttpFailure {
    fn from(failure: Failure) -> HttpFailure {
        HttpFailure::new(StatusCode::BAD_REQUEST, failure)
    }
}

/// A programmer's error: the user gets to see what there is to see, and does not repeat it.
pub(crate) fn panic_failure(error: tokio::task::JoinError) -> Failure {
    let detail = match error.try_into_panic() {
        Ok(payload) => match payload.downcast::<String>() {
            Ok(text) => *text,
            Err(payload) => {
                payload.downcast::<&str>().map_or_else(|_| "no message".to_owned(), |s| s.to_string())
            }
        },
        Err(error) => error.to_string(),
    };
    tracing::error!(detail, "a request has panicked");
    Failure::new(format!("Internal error: {detail}"))
}

/// Where and when; clients print it.
fn with_details(mut failure: Failure, api: &Api) -> Failure {
    let details: [(&str, Value); 3] = [
        ("host", api.settings.host_name.as_str().into()),
        ("datetime", now().into()),
        ("pid", i64::from(std::process::id()).into()),
    ];
    for (name, value) in details {
        if !failure.attributes.contains(name) {
            failure.attributes.insert(name, value);
        }
    }
    failure
}

/// One line of JSON in plain ASCII, fit for a header.
fn ascii_json(failure: &Failure) -> String {
    let json = Format::Json(JsonFormat::utf8()).serialize(&failure.to_value());
    let text = String::from_utf8_lossy(&json);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => out.push(c),
            // Outside strings JSON is ASCII, so this is inside one.
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out
}

/// A header's value: one line of visible characters.
fn ascii_header(text: &str) -> HeaderValue {
    let line: String = text
        .chars()
        .map(|c| match c {
            ' '..='~' => c,
            '\n' | '\r' | '\t' => ' ',
            _ => '?',
        })
        .collect();
    HeaderValue::from_str(&line).expect("only visible ASCII is left")
}

/// Cuts an error until its JSON fits: first long texts, then causes, at last attributes. The codes
/// of causes that are cut stay, as causes without words, because clients search the tree for them.
fn fit(failure: Failure, limit: usize) -> Failure {
    let fits = |f: &Failure| take_failure(f, &mut { limit }) && ascii_json(f).len() <= limit;
    if fits(&failure) {
        return failure;
    }
    // Each step is a smaller budget per text, causes per error and depth.
    for (text, width, depth) in [(4096, 100, 30), (1024, 20, 10), (256, 5, 5), (100, 2, 3)] {
        let cut = cut(&failure, text, width, depth);
        if fits(&cut) {
            return cut;
        }
    }
    let mut bare = cut(&failure, 100, 0, 0);
    bare.attributes = yson::map! {"truncated" => true};
    bare
}

fn cut(failure: &Failure, text: usize, width: usize, depth: usize) -> Failure {
    let mut out = Failure::coded(failure.code, shorten(&failure.message, text));
    for (key, value) in failure.attributes.iter().take(50) {
        match value {
            _ if take_value(value, &mut { text }) => out.attributes.insert(key, value.clone()),
            Value::String(s) => {
                let start = &s[..s.len().min(4 * text)];
                out.attributes.insert(key, shorten(&String::from_utf8_lossy(start), text))
            }
            _ => out.attributes.insert(key, "(cut)"),
        };
    }
    let kept = if depth == 0 { 0 } else { width };
    out.inner_errors =
        failure.inner_errors.iter().take(kept).map(|e| cut(e, text, width, depth - 1)).collect();
    let mut lost = BTreeSet::new();
    failure.inner_errors.iter().skip(kept).for_each(|e| collect_codes(e, &mut lost));
    let lost = lost.into_iter().take(50);
    out.inner_errors.extend(lost.map(|code| Failure::coded(code, "(error cut because of its size)")));
    out
}

/// Takes what an error needs at least from a budget; false if it does not suffice. Stops counting
/// then: an error may be far larger than what is worth formatting.
fn take_failure(failure: &Failure, left: &mut usize) -> bool {
    take(failure.message.len() + 20, left)
        && failure.attributes.iter().all(|(key, value)| take(key.len(), left) && take_value(value, left))
        && failure.inner_errors.iter().all(|e| take_failure(e, left))
}

fn take_value(value: &Value, left: &mut usize) -> bool {
    match value {
        Value::String(s) => take(s.len() + 2, left),
        Value::List(items) => take(2, left) && items.iter().all(|v| take_value(v, left)),
        Value::Map(map) => map.iter().all(|(key, v)| take(key.len() + 4, left) && take_value(v, left)),
        Value::Attributed(both) => {
            both.0.iter().all(|(key, v)| take(key.len() + 4, left) && take_value(v, left))
                && take_value(&both.1, left)
        }
        _ => take(1, left),
    }
}

fn take(size: usize, left: &mut usize) -> bool {
    match left.checked_sub(size) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}

fn collect_codes(failure: &Failure, codes: &mut BTreeSet<i64>) {
    codes.insert(failure.code);
    failure.inner_errors.iter().for_each(|e| collect_codes(e, codes));
}

fn shorten(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_one_line_of_ascii() {
        let failure = Failure::new("привет\n\"\u{1f600}\"\u{7f}").with("bytes", b"\xff\x00".as_slice());
        let json = ascii_json(&failure);
        assert!(json.bytes().all(|b| (b' '..=b'~').contains(&b)), "{json}");
        let back = Format::Json(JsonFormat::utf8()).deserialize(json.as_bytes()).expect("good JSON");
        assert_eq!(back.get("message").and_then(Value::as_str), Some("привет\n\"\u{1f600}\"\u{7f}"));
        assert_eq!(
            back.as_map().map(|m| m.key_strings().collect::<Vec<_>>()).unwrap_or_default(),
            ["code", "message", "attributes", "inner_errors"]
        );
    }

    #[test]
    fn long_errors_are_cut_and_keep_their_codes() {
        let long = "ы".repeat(100_000);
        let leaf = |code| Failure::coded(code, "leaf").with("stderr", long.as_str());
        let mut deep = Failure::coded(10_000, "deep");
        for i in 0..200 {
            deep = Failure::coded(1205, format!("level {i}")).because(deep);
        }
        let mut wide = Failure::coded(215, long.as_str()).with("list", vec![long.as_str(); 10]);
        for i in 0..500 {
            wide = wide.because(leaf(if i == 432 { 402 } else { 1 }));
        }
        for (failure, codes) in
            [(leaf(500), vec![500]), (deep, vec![1205, 10_000]), (wide, vec![215, 402, 1])]
        {
            let short = fit(failure, MAX_ERROR_BYTES);
            assert!(ascii_json(&short).len() <= MAX_ERROR_BYTES);
            for code in codes {
                assert!(short.contains_code(code), "{code}");
            }
        }
    }
}
