//! `pool explain`: the server says it in words already.

use crate::output::{Look, Output};
use crate::views::read::text;
use yson::{Map, Value};

/// Why a pool has the fair share that it has.
pub struct PoolExplanation(pub Map);

impl Output for PoolExplanation {
    fn human(&self, _: &Look) -> String {
        let lines = self.0.get("text").and_then(Value::as_list).unwrap_or_default();
        lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
    }
    fn json(&self) -> Value {
        self.0.clone().into()
    }
    /// What binds, in one word.
    fn quiet(&self) -> String {
        text(&self.0, "outcome/reason").to_owned()
    }
}
