//! Identities of nodes: join tokens, approvals, revocations.

use crate::{Client, ClientError};
use vocab::Span;
use yson::{Map, Value, map};

impl Client {
    /// `create_join_token`: the token, which one node can exchange for its identity. `name`: the only node that may use it; `ttl`:
    /// time until its end, 24 hours without one; `replace`: the node takes its name over from the identity that has it.
    pub fn create_join_token(
        &self,
        name: Option<&str>,
        ttl: Option<Span>,
        replace: bool,
    ) -> Result<String, ClientError> {
        let ttl = ttl.map(|ttl| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        let parameters = map! {"replace" => replace}.with_some("name", name).with_some("ttl", ttl);
        let reply = self.command("create_join_token", parameters, None)?;
        reply.as_str().map(str::to_owned).ok_or_else(|| self.odd("create_join_token", "a string", &reply))
    }

    /// `revoke_join_token`.
    pub fn revoke_join_token(&self, token_sha256: &str) -> Result<(), ClientError> {
        self.command("revoke_join_token", map! {"token_sha256" => token_sha256}, None).map(drop)
    }

    /// `approve_node`. `key_sha256`: which of the nodes that wait under this name.
    pub fn approve_node(&self, name: &str, key_sha256: Option<&str>) -> Result<(), ClientError> {
        let parameters = map! {"name" => name}.with_some("key_sha256", key_sha256);
        self.command("approve_node", parameters, None).map(drop)
    }

    /// `revoke_node`.
    pub fn revoke_node(&self, name: &str) -> Result<(), ClientError> {
        self.command("revoke_node", map! {"name" => name}, None).map(drop)
    }

    /// `list_node_identities`: `identities`, `pending` and `tokens`, each a list of maps.
    pub fn node_identities(&self) -> Result<Map, ClientError> {
        match self.command("list_node_identities", Map::new(), None)?.into_bare() {
            Value::Map(identities) => Ok(identities),
            other => Err(self.odd("list_node_identities", "a map", &other)),
        }
    }
}
