//! Tokens of the configuration (http-api.md 2.9): a file with a line `USER TOKEN` for each, read once at the
//! start. For machines that must be let in before anybody could issue a token to them.

use anyhow::Context;
use api::secrets::sha256;
use std::collections::BTreeMap;
use std::path::Path;

/// See the module page. Only digests are kept.
#[derive(Default)]
pub struct ConfiguredTokens {
    users: BTreeMap<String, OfUser>,
}

struct OfUser {
    user: String,
    /// The token has less than [`ENOUGH`] characters.
    is_short: bool,
}

/// Characters of a token that is not to be guessed, however often it is tried.
pub const ENOUGH: usize = 32;

impl ConfiguredTokens {
    /// Empty lines and those that begin with `#` mean nothing.
    pub fn read(file: &Path) -> anyhow::Result<ConfiguredTokens> {
        let text = String::from_utf8(datadir::read_secret(file).context("cannot use tokens_file")?)
            .with_context(|| format!("the tokens in {} are not UTF-8", file.display()))?;
        ConfiguredTokens::parse(&text).with_context(|| format!("the tokens in {}", file.display()))
    }

    /// Reads the lines.
    pub fn parse(text: &str) -> anyhow::Result<ConfiguredTokens> {
        let mut users = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            // What is in the line may be secret: it is not shown.
            let words: Vec<&str> = line.split_whitespace().collect();
            let [user, token] = words[..] else {
                anyhow::bail!("line {number}: expected a user and a token, found {} words", words.len());
            };
            let of_user = OfUser { user: user.to_owned(), is_short: token.chars().count() < ENOUGH };
            if users.insert(sha256(token), of_user).is_some() {
                anyhow::bail!("line {number}: the same token as in a line before");
            }
        }
        Ok(ConfiguredTokens { users })
    }

    /// Whose the token with this digest is.
    pub fn user(&self, sha256: &str) -> Option<&str> {
        self.users.get(sha256).map(|of_user| of_user.user.as_str())
    }

    /// Could this token be found by trying? Then it is refused during a back-off, as passwords are.
    pub fn is_short(&self, sha256: &str) -> bool {
        self.users.get(sha256).is_some_and(|of_user| of_user.is_short)
    }

    /// Users with such a token.
    pub fn users_with_short_tokens(&self) -> Vec<&str> {
        self.users.values().filter(|of_user| of_user.is_short).map(|of_user| of_user.user.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let tokens = ConfiguredTokens::parse("# machines\n\n robot  abc\nann def\n").expect("good lines");
        assert_eq!(tokens.user(&sha256("abc")), Some("robot"));
        assert_eq!(tokens.user(&sha256("def")), Some("ann"));
        assert_eq!((tokens.user("abc"), tokens.user(&sha256("ghi"))), (None, None));
        let long = "x".repeat(ENOUGH);
        let tokens = ConfiguredTokens::parse(&format!("robot abc\nann {long}\n")).expect("good lines");
        assert_eq!(tokens.users_with_short_tokens(), ["robot"]);
        assert!(tokens.is_short(&sha256("abc")) && !tokens.is_short(&sha256(&long)));
        for (text, expected) in [
            ("ann", "line 1: expected a user and a token, found 1 words"),
            ("ann a\nbob b c", "line 2: expected a user and a token, found 3 words"),
            ("ann a\nbob a", "line 2: the same token"),
        ] {
            let refused = ConfiguredTokens::parse(text).err().expect(text).to_string();
            assert!(refused.starts_with(expected), "{refused}");
        }
    }
}
