//! What the server said: a result or an error, in whichever of its forms (http-api.md 3.1).

use std::io::Read;

use ureq::Body;
use ureq::http::Response;
use vocab::Failure;
use yson::Value;
use yson::json::{JsonFormat, from_json};

use crate::ClientError;

/// Longest reply that is taken as one value.
const MAX_VALUE: u64 = 1 << 30;
/// Longest error.
const MAX_ERROR: u64 = 1 << 20;

/// Tells replies that carry a result from those that carry an error.
pub(crate) fn check(mut response: Response<Body>, address: &str) -> Result<Response<Body>, ClientError> {
    let status = response.status();
    let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok());
    let code = header("X-YT-Response-Code").unwrap_or("0");
    if status.is_success() && code == "0" {
        return Ok(response);
    }
    if let Some(failure) = header("X-YT-Error").and_then(|json| parse_failure(json.as_bytes())) {
        return Err(ClientError::Server(failure));
    }
    // The header has it all, unless it was too long for a header or somebody on the way dropped it.
    let mut body = Vec::new();
    let _ = response.body_mut().as_reader().take(MAX_ERROR).read_to_end(&mut body);
    if let Some(failure) = parse_failure(&body) {
        return Err(ClientError::Server(failure));
    }
    if status.as_u16() == 503 {
        let cause = "it is not available at the moment (503)".to_owned();
        return Err(ClientError::Connection { address: address.to_owned(), cause });
    }
    let start: String = String::from_utf8_lossy(&body).chars().take(200).collect();
    let problem = format!("status {status} without an error in it, but with {start:?}");
    Err(ClientError::Protocol { address: address.to_owned(), problem })
}

fn parse_failure(json: &[u8]) -> Option<Failure> {
    let value = from_json(json, &JsonFormat::utf8()).ok()?;
    (value.get("code").is_some() && value.get("message").is_some()).then(|| Failure::from_value(&value))
}

/// The whole body as a value.
pub(crate) fn value(mut response: Response<Body>, address: &str) -> Result<Value, ClientError> {
    let mut body = Vec::new();
    response.body_mut().as_reader().take(MAX_VALUE).read_to_end(&mut body).map_err(|e| {
        ClientError::Connection { address: address.to_owned(), cause: format!("the reply broke off: {e}") }
    })?;
    yson::parse(&body)
        .map_err(|e| ClientError::Protocol { address: address.to_owned(), problem: e.to_string() })
}

/// The whole body, which is JSON.
pub(crate) fn json(mut response: Response<Body>, address: &str) -> Result<Value, ClientError> {
    let mut body = Vec::new();
    response.body_mut().as_reader().take(MAX_VALUE).read_to_end(&mut body).map_err(|e| {
        ClientError::Connection { address: address.to_owned(), cause: format!("the reply broke off: {e}") }
    })?;
    from_json(&body, &JsonFormat::utf8())
        .map_err(|e| ClientError::Protocol { address: address.to_owned(), problem: e.to_string() })
}
