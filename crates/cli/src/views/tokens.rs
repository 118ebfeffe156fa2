//! `token list`.

use crate::output::{Look, Output};
use crate::units::age;
use crate::views::read::{text, time};
use crate::views::table::{Grid, or_dash};
use yson::{Map, Value};

/// Tokens of a user by SHA-256.
pub struct TokenTable {
    /// Answer of `list_user_tokens`.
    pub tokens: Map,
}

impl Output for TokenTable {
    fn human(&self, look: &Look) -> String {
        if self.tokens.is_empty() {
            return "No tokens. Create one with `millpond token create`.".to_owned();
        }
        let mut grid = Grid::new(look, &["SHA-256", "CREATED", "VALID UNTIL", "DESCRIPTION"]);
        for (digest, facts) in self.tokens.iter() {
            let facts = facts.as_map().unwrap_or(Map::EMPTY);
            let end = match time(facts, "valid_until") {
                Some(end) if end <= look.now => format!("{end} (expired)"),
                Some(end) => end.to_string(),
                None => "-".to_owned(),
            };
            grid.row([
                String::from_utf8_lossy(digest).into_owned().into(),
                time(facts, "creation_time").map_or("-".to_owned(), |made| age(made, look.now)).into(),
                end.into(),
                or_dash(text(facts, "description")).into(),
            ]);
        }
        grid.finish()
    }
    fn json(&self) -> Value {
        self.tokens.clone().into()
    }
    fn quiet(&self) -> String {
        self.tokens.key_strings().collect::<Vec<_>>().join("\n")
    }
}
