//! `node identities`, `node token list`.

use crate::output::{Look, Output};
use crate::units::age;
use crate::views::read::{text, time};
use crate::views::table::{Grid, or_dash};
use yson::{Map, Value};

/// Identities of nodes, nodes that wait, join tokens.
pub struct IdentityTable {
    /// Answer of `list_node_identities`.
    pub identities: Map,
    /// Nothing but the tokens.
    pub only_tokens: bool,
}

impl IdentityTable {
    fn rows(&self, what: &str) -> impl Iterator<Item = &Map> {
        let rows = self.identities.get(what).and_then(Value::as_list).unwrap_or_default();
        rows.iter().filter_map(Value::as_map)
    }
}

/// The state of a join token in a word.
fn state_of_token(token: &Map) -> String {
    match (token.get("used").and_then(Value::as_bool), text(token, "used_by")) {
        (Some(true), "") => "used".to_owned(),
        (Some(true), node) => format!("used by {node}"),
        _ if token.get("replace").and_then(Value::as_bool) == Some(true) => "unused, replaces".to_owned(),
        _ => "unused".to_owned(),
    }
}

impl Output for IdentityTable {
    fn human(&self, look: &Look) -> String {
        let mut grid = Grid::new(look, &["KIND", "NODE", "STATE", "SHA-256", "SINCE", "VALID UNTIL", "FROM"]);
        let mut count = 0;
        let mut add = |kind: &str, row: &Map, state: &str, digest: &str| {
            count += 1;
            grid.row([
                kind.to_owned().into(),
                or_dash(text(row, "name")).into(),
                state.to_owned().into(),
                text(row, digest).to_owned().into(),
                time(row, "creation_time").map_or("-".to_owned(), |made| age(made, look.now)).into(),
                time(row, "valid_until").map_or("-".to_owned(), |end| end.to_string()).into(),
                or_dash(text(row, "address")).into(),
            ]);
        };
        if !self.only_tokens {
            self.rows("identities").for_each(|row| add("identity", row, text(row, "state"), "key_sha256"));
            self.rows("pending").for_each(|row| add("pending", row, "waits", "key_sha256"));
        }
        self.rows("tokens").for_each(|row| add("token", row, &state_of_token(row), "token_sha256"));
        match (count, self.only_tokens) {
            (0, true) => "No join tokens. Make one with `millpond node token create`.".to_owned(),
            (0, false) => {
                "No nodes have joined. Make a join token with `millpond node token create`.".to_owned()
            }
            _ => grid.finish(),
        }
    }
    fn json(&self) -> Value {
        match self.only_tokens {
            true => self.identities.get("tokens").cloned().unwrap_or_default(),
            false => self.identities.clone().into(),
        }
    }
    fn quiet(&self) -> String {
        let (what, digest) =
            if self.only_tokens { ("tokens", "token_sha256") } else { ("identities", "name") };
        self.rows(what).map(|row| text(row, digest)).collect::<Vec<_>>().join("\n")
    }
}
