//! Addresses of servers as users write them.

use crate::ClientError;

/// `http://host:port` from `host:port`, `host`, `http://host:port/` or `:port`; `https` if it is said.
pub(crate) fn normalise(text: &str) -> Result<String, ClientError> {
    let usage = |problem: &str| {
        ClientError::Usage(format!(
            "{text:?} is not the address of a server: {problem} (expected HOST:PORT or https://HOST:PORT)"
        ))
    };
    let (scheme, bare) = match text.trim().split_once("://") {
        None => ("http", text.trim()),
        Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
        Some((scheme, _)) => return Err(usage(&format!("{scheme} is not supported"))),
    };
    let bare = bare.trim_end_matches('/');
    if bare.is_empty() {
        return Err(usage("it is empty"));
    }
    if let Some(odd) = bare.chars().find(|c| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '@')) {
        return Err(usage(&format!("it has {odd:?} in it")));
    }
    let (host, port) = match bare.rsplit_once(':') {
        // Colons inside brackets belong to an IPv6 address.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (bare, None),
    };
    if let Some(port) = port
        && port.parse::<u16>().is_err()
    {
        return Err(usage(&format!("{port:?} is not a port")));
    }
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Ok(match port {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    })
}

#[cfg(test)]
mod tests {
    use super::normalise;

    #[test]
    fn forms() {
        for (text, expected) in [
            ("127.0.0.1:8000", Some("http://127.0.0.1:8000")),
            ("http://a.example:80/", Some("http://a.example:80")),
            ("a.example", Some("http://a.example")),
            (":8000", Some("http://127.0.0.1:8000")),
            ("[::1]:8000", Some("http://[::1]:8000")),
            ("[::1]", Some("http://[::1]")),
            (" a:1 ", Some("http://a:1")),
            ("https://a", Some("https://a")),
            ("https://a.example:8443/", Some("https://a.example:8443")),
            ("ftp://a", None),
            ("", None),
            ("http://", None),
            ("a:b", None),
            ("a:99999", None),
            ("a b:1", None),
            ("a:1/x", None),
        ] {
            assert_eq!(normalise(text).ok().as_deref(), expected, "{text}");
        }
    }
}
