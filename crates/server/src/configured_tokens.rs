//! Tokens of the configuration (http-api.md 2.9): a file with a line `USER TOKEN` for each, read once at the
//! start. For machines that must be let in before anybody could issue a token to them.

use anyhow::Context;
use api::secrets::sha256;
use std::collections::BTreeMap;
use std::path::Path;

/// See the module page. Only digests are kept.
#[derive(Default)]
pub struct ConfiguredTokens {
    users: BTreeMap<String, String>,
}

impl ConfiguredTokens {
    /// Empty lines and those that begin with `#` mean nothing.
    pub fn read(file: &Path) -> anyhow::Result<ConfiguredTokens> {
        let text = String::from_utf8(datadir::read_secret(file).context("cannot use tokens_file")?)
            .with_context(|| format!("the tokens in {} are not UTF-8", file.display()))?;
        ConfiguredTokens::parse(&text).with_context(|| format!("the tokens in {}", file.display()))
    }

    fn parse(text: &str) -> anyhow::Result<ConfiguredTokens> {
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
            if users.insert(sha256(token), user.to_owned()).is_some() {
                anyhow::bail!("line {number}: the same token as in a line before");
            }
        }
        Ok(ConfiguredTokens { users })
    }

    /// Whose the token with this digest is.
    pub fn user(&self, sha256: &str) -> Option<&str> {
        self.users.get(sha256).map(String::as_str)
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
