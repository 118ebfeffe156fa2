//! Parameters in headers: text YSON, cut into base64 parts when they are long (http-api.md 2.2).

use yson::Value;

/// Header that tells how the other structured headers are written.
pub(crate) const HEADER_FORMAT: (&str, &str) = ("X-YT-Header-Format", "<format=text>yson");
/// Format of bodies in both directions.
pub(crate) const BODY_FORMAT: &str = "<format=binary>yson";
const PARAMETERS: &str = "X-YT-Parameters";
/// Longest value in one header.
const MAX_VALUE: usize = 8 << 10;
/// Longest parameters in all headers together: servers take headers of 256 KiB at least, and base64
/// makes a third more of them.
pub(crate) const MAX_TOTAL: usize = 150 << 10;

/// Text form of parameters, as long as headers can take them.
pub(crate) fn parameters_text(parameters: &Value) -> Option<String> {
    let text = yson::to_text(parameters);
    // Text YSON escapes everything outside of printable ASCII, so it is a legal header.
    String::from_utf8(text).ok().filter(|text| text.len() <= MAX_TOTAL)
}

/// The headers that carry parameters.
pub(crate) fn parameter_headers(text: &str) -> Vec<(String, String)> {
    if text.len() <= MAX_VALUE {
        return vec![(PARAMETERS.to_owned(), text.to_owned())];
    }
    let encoded = base64(text.as_bytes());
    let parts = encoded.as_bytes().chunks(MAX_VALUE);
    parts
        .enumerate()
        .map(|(i, part)| (format!("{PARAMETERS}{i}"), String::from_utf8_lossy(part).into_owned()))
        .collect()
}

/// Standard base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, b| word << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= chunk.len() { digit as char } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_the_rfc() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn long_parameters_are_cut() {
        let short = parameter_headers("{}");
        assert_eq!(short, [("X-YT-Parameters".to_owned(), "{}".to_owned())]);
        let long = parameter_headers(&"x".repeat(20_000));
        assert_eq!(
            long.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["X-YT-Parameters0", "X-YT-Parameters1", "X-YT-Parameters2", "X-YT-Parameters3"]
        );
        assert!(long.iter().all(|(_, value)| value.len() <= MAX_VALUE));
    }

    #[test]
    fn parameters_are_legal_headers() {
        let text = parameters_text(&yson::map! {"path" => "//tmp/ключ\n\r\0"}.into()).expect("short enough");
        assert!(text.bytes().all(|b| (b' '..=b'~').contains(&b)), "{text}");
        assert_eq!(parameters_text(&yson::map! {"x" => "x".repeat(MAX_TOTAL)}.into()), None);
    }
}
