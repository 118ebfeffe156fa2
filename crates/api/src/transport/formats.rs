//! Which formats a request speaks (http-api.md 2.2, 2.3).

use super::headers;
use crate::commands::Params;
use axum::http::{HeaderMap, header};
use vocab::Failure;
use yson::{Format, Style, Value};

/// The format of structured headers: YSON if the request says so, else JSON.
pub(super) struct HeaderFormat {
    format: Format,
    /// Nothing was said.
    implied: bool,
}

impl HeaderFormat {
    pub fn of(headers: &HeaderMap) -> Result<HeaderFormat, Failure> {
        match headers.get("X-YT-Header-Format") {
            None => Ok(HeaderFormat { format: Format::structured_default(), implied: true }),
            Some(value) => {
                let format = Format::parse(value.as_bytes())
                    .map_err(|e| Failure::new(format!("Cannot parse header X-YT-Header-Format: {e}")))?;
                Ok(HeaderFormat { format, implied: false })
            }
        }
    }

    /// The value of a structured header.
    pub fn read(&self, headers: &HeaderMap, name: &'static str) -> Result<Option<Value>, Failure> {
        let Some(bytes) = headers::structured(headers, name)? else { return Ok(None) };
        self.format
            .deserialize(&bytes)
            .map(Some)
            .map_err(|e| Failure::new(format!("Cannot parse header {name}: {e}")))
    }

    /// A format named by a header. People with curl write `<format=text>yson` without a header
    /// format: what is no JSON is tried as YSON.
    fn read_format(&self, headers: &HeaderMap, name: &'static str) -> Result<Option<Format>, Failure> {
        let value = match self.read(headers, name) {
            Ok(value) => value,
            Err(failure) => {
                let bytes = headers::structured(headers, name)?.filter(|_| self.implied);
                return bytes.and_then(|b| Format::parse(&b).ok()).map(Some).ok_or(failure);
            }
        };
        let parse = |v| Format::from_value(&v).map_err(|e| Failure::new(format!("Header {name}: {e}")));
        value.map(parse).transpose()
    }

    /// A value in the format of headers, for headers of the reply.
    pub fn write(&self, value: &Value) -> Vec<u8> {
        match self.format {
            Format::Yson(_) => yson::to_text(value),
            _ => self.format.serialize(value),
        }
    }
}

/// The format of the request's body: parameter, header, media type, default.
pub(super) fn input(
    headers: &HeaderMap,
    header_format: &HeaderFormat,
    params: &Params,
    default: fn() -> Format,
) -> Result<Format, Failure> {
    if let Some(format) = of_parameter(params, "input_format")? {
        return Ok(format);
    }
    body(headers, header_format, default)
}

/// [`input`] before there are parameters, because they are in the body.
pub(super) fn body(
    headers: &HeaderMap,
    header_format: &HeaderFormat,
    default: fn() -> Format,
) -> Result<Format, Failure> {
    if let Some(format) = header_format.read_format(headers, "X-YT-Input-Format")? {
        return Ok(format);
    }
    // Unknown types are ignored: curl and the job shell send `x-www-form-urlencoded`.
    let mime = headers::text(headers, header::CONTENT_TYPE.as_str());
    Ok(mime.and_then(Format::from_mime).unwrap_or_else(default))
}

/// The format of the reply's body: parameter, header, `Accept`, default.
pub(super) fn output(
    headers: &HeaderMap,
    header_format: &HeaderFormat,
    params: &Params,
    default: fn() -> Format,
) -> Result<Format, Failure> {
    if let Some(format) = of_parameter(params, "output_format")? {
        return Ok(format);
    }
    if let Some(format) = header_format.read_format(headers, "X-YT-Output-Format")? {
        return Ok(format);
    }
    let accept = headers::text(headers, header::ACCEPT.as_str());
    Ok(accept.and_then(Format::from_accept).unwrap_or_else(default))
}

/// The style of YSON in which a request wants its errors (`X-YT-Error-Format`). None: JSON, the default, also if what
/// it says makes no sense: an error about the format of errors would hide the one that it was to show.
pub(super) fn errors(headers: &HeaderMap) -> Option<Style> {
    let header_format = HeaderFormat::of(headers).ok()?;
    match header_format.read_format(headers, "X-YT-Error-Format") {
        Ok(Some(Format::Yson(style))) => Some(style),
        _ => None,
    }
}

fn of_parameter(params: &Params, name: &str) -> Result<Option<Format>, Failure> {
    let Some(value) = params.value(name) else { return Ok(None) };
    let format = match value {
        // `output_format=<format=text>yson` in a query string is one string.
        Value::String(text) if params.is_from_query(name) => Format::parse(text),
        value => Format::from_value(value),
    };
    format.map(Some).map_err(|e| Failure::new(format!("Parameter {name:?}: {e}")))
}
