//! Structured headers, possibly split into parts (http-api.md 2.2).

use axum::http::HeaderMap;
use vocab::Failure;

/// The text of a header; none if it is absent or not visible ASCII.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The bytes of a header that may be too long for one: then `Name0`, `Name1`, ... or `Name-0`,
/// `Name-1`, ... hold pieces whose concatenation is base64 of the value.
pub(super) fn structured(headers: &HeaderMap, name: &str) -> Result<Option<Vec<u8>>, Failure> {
    if let Some(value) = headers.get(name) {
        return Ok(Some(value.as_bytes().to_vec()));
    }
    for separator in ["", "-"] {
        let mut joined = Vec::new();
        let mut count = 0;
        while let Some(part) = headers.get(format!("{name}{separator}{count}")) {
            joined.extend_from_slice(part.as_bytes());
            count += 1;
        }
        if count > 0 {
            return decode_base64(&joined).map(Some).ok_or_else(|| {
                Failure::new(format!(
                    "Headers {name}{separator}0..{} together must be base64 of the value",
                    count - 1
                ))
            });
        }
    }
    Ok(None)
}

/// Standard alphabet; padding may be missing, white space between parts is skipped.
pub(super) fn decode_base64(input: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(input.len() / 4 * 3 + 3);
    let (mut bits, mut held) = (0u32, 0);
    let mut padding = 0;
    for byte in input.iter().filter(|b| !b.is_ascii_whitespace()) {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' if padding < 2 => {
                padding += 1;
                continue;
            }
            _ => return None,
        };
        if padding > 0 {
            return None;
        }
        bits = bits << 6 | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    // A single digit holds less than a byte.
    (held < 6).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64() {
        let cases: [(&str, Option<&[u8]>); 9] = [
            ("", Some(b"")),
            ("Zg==", Some(b"f")),
            ("Zm8=", Some(b"fo")),
            ("Zm8", Some(b"fo")),
            ("Zm9v\r\nYmFy", Some(b"foobar")),
            ("+/+/", Some(&[0xfb, 0xff, 0xbf])),
            ("Z", None),
            ("Zm=v", None),
            ("Zm9-", None),
        ];
        for (input, expected) in cases {
            assert_eq!(decode_base64(input.as_bytes()).as_deref(), expected, "{input}");
        }
    }

    #[test]
    fn parts_are_joined() {
        for separator in ["", "-"] {
            let mut headers = HeaderMap::new();
            for (i, part) in ["e2E9", "MX0="].iter().enumerate() {
                let name = format!("x-yt-parameters{separator}{i}");
                headers.insert(
                    axum::http::HeaderName::try_from(name).expect("a name"),
                    part.parse().expect("a value"),
                );
            }
            assert_eq!(structured(&headers, "x-yt-parameters"), Ok(Some(b"{a=1}".to_vec())));
            headers.insert("x-yt-parameters", "{}".parse().expect("a value"));
            assert_eq!(structured(&headers, "x-yt-parameters"), Ok(Some(b"{}".to_vec())));
        }
        let mut headers = HeaderMap::new();
        headers.insert("x-yt-parameters0", "!".parse().expect("a value"));
        assert!(structured(&headers, "x-yt-parameters").is_err());
    }
}
