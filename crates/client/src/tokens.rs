//! Tokens of users (http-api.md 8.4).

use crate::{Client, ClientError};
use vocab::Span;
use yson::{Map, Value, map};

impl Client {
    /// `issue_token`: the token. `ttl`: time until its end; `None`: it has none.
    pub fn issue_token(
        &self,
        user: &str,
        ttl: Option<Span>,
        description: Option<&str>,
    ) -> Result<String, ClientError> {
        let parameters =
            map! {"user" => user}.with_some("ttl", ttl.map(millis)).with_some("description", description);
        self.token("issue_token", parameters)
    }

    /// `rotate_token`: the new token. `grace`: time for which the old one stays valid.
    pub fn rotate_token(
        &self,
        user: &str,
        token_sha256: &str,
        ttl: Option<Span>,
        grace: Option<Span>,
    ) -> Result<String, ClientError> {
        let parameters = map! {"user" => user, "token_sha256" => token_sha256}
            .with_some("ttl", ttl.map(millis))
            .with_some("grace", grace.map(millis));
        self.token("rotate_token", parameters)
    }

    /// `revoke_token`.
    pub fn revoke_token(&self, user: &str, token_sha256: &str) -> Result<(), ClientError> {
        let parameters = map! {"user" => user, "token_sha256" => token_sha256};
        self.command("revoke_token", parameters, None).map(drop)
    }

    /// `list_user_tokens`: by SHA-256, with `description`, `creation_time` and `valid_until` where there are such.
    pub fn tokens(&self, user: &str) -> Result<Map, ClientError> {
        let parameters = map! {"user" => user, "with_metadata" => true};
        match self.command("list_user_tokens", parameters, None)?.into_bare() {
            Value::Map(tokens) => Ok(tokens),
            other => Err(self.odd("list_user_tokens", "a map", &other)),
        }
    }

    fn token(&self, command: &str, parameters: Map) -> Result<String, ClientError> {
        let reply = self.command(command, parameters, None)?;
        reply.as_str().map(str::to_owned).ok_or_else(|| self.odd(command, "a string", &reply))
    }
}

fn millis(span: Span) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
