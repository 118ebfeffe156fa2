//! Join tokens: with one of them a new node gets its own key and certificate, once.

use std::fmt;
use std::str::FromStr;

/// Name of the server in its certificate for nodes. Nodes ask for it in the TLS handshake (SNI), so that the server tells them
/// from browsers, which are not asked for a certificate.
pub const NODE_SERVER_NAME: &str = "node.millpond.internal";

/// How a token begins, with the version of its form.
const PREFIX: &str = "millpond-join-1";

/// See the module page. Text form: `millpond-join-1.<authority_sha256>.<secret>`.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// SHA-256 of the certificate (DER) of the server's authority for nodes: 64 lower-case hexadecimal digits. By it a node
    /// knows the server before it shows the secret.
    pub authority_sha256: String,
    /// 64 lower-case hexadecimal digits. The server keeps their SHA-256 only.
    pub secret: String,
}

/// A text that is no join token. The text itself is not repeated: it may be a secret.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "expected a join token as `millpond node token create` prints it, millpond-join-1.DIGEST.SECRET with 64 hexadecimal \
     digits each, found {found}"
)]
pub struct NoJoinToken {
    found: String,
}

impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}.{}.{}", self.authority_sha256, self.secret)
    }
}

impl fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinToken({})", self.authority_sha256)
    }
}

impl FromStr for JoinToken {
    type Err = NoJoinToken;

    fn from_str(text: &str) -> Result<JoinToken, NoJoinToken> {
        let text = text.trim();
        let wrong = |found: String| Err(NoJoinToken { found });
        let parts: Vec<&str> = text.split('.').collect();
        match parts[..] {
            [PREFIX, authority, secret] if is_sha256(authority) && is_sha256(secret) => {
                Ok(JoinToken { authority_sha256: authority.to_owned(), secret: secret.to_owned() })
            }
            [""] => wrong("nothing".to_owned()),
            [PREFIX, ..] => wrong(format!("{} parts of other lengths or with other characters", parts.len())),
            _ => wrong(format!("{} bytes that begin otherwise", text.len())),
        }
    }
}

/// Is it a SHA-256 as it is written everywhere: 64 lower-case hexadecimal digits?
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S7.
    #[test]
    fn a_join_token_is_read_as_it_was_written_and_not_shown_in_logs() {
        let token = JoinToken { authority_sha256: "a".repeat(64), secret: "0".repeat(64) };
        assert_eq!(format!("{token}\n").parse(), Ok(token.clone()));
        assert!(!format!("{token:?}").contains(&token.secret));
        let (digest, short) = ("a".repeat(64), "0".repeat(63));
        for text in
            ["", "secret-of-another-kind", "millpond-join-2.a.b", &format!("{PREFIX}.{digest}.{short}")]
        {
            let refused = text.parse::<JoinToken>().expect_err(text).to_string();
            assert!(refused.contains("millpond node token create"), "{refused}");
            assert!(text.is_empty() || !refused.contains(text), "{refused}");
        }
    }
}
