//! `pool explain`, `op explain` and `job explain`: the server says it in words already.

use crate::output::{Look, Output};
use crate::views::read::{find, text};
use yson::{Map, Value};

/// Why a pool has the fair share that it has.
pub struct PoolExplanation(pub Map);

impl Output for PoolExplanation {
    fn human(&self, _: &Look) -> String {
        words(&self.0)
    }
    fn json(&self) -> Value {
        self.0.clone().into()
    }
    /// What binds, in one word.
    fn quiet(&self) -> String {
        text(&self.0, "outcome/reason").to_owned()
    }
}

/// Why an operation has what it has.
pub struct OperationExplanation(pub Map);

impl Output for OperationExplanation {
    fn human(&self, _: &Look) -> String {
        words(&self.0)
    }
    fn json(&self) -> Value {
        self.0.clone().into()
    }
    /// The reason, in one word for each tree; of a finished operation its state.
    fn quiet(&self) -> String {
        let trees = self.0.get("trees").and_then(Value::as_map).unwrap_or(Map::EMPTY);
        let reasons: Vec<&str> =
            trees.iter().filter_map(|(_, tree)| Some(text(tree.as_map()?, "verdict/reason"))).collect();
        if reasons.is_empty() { text(&self.0, "state").to_owned() } else { reasons.join("\n") }
    }
}

/// What was learned about a job.
pub struct JobExplanation(pub Map);

impl Output for JobExplanation {
    fn human(&self, _: &Look) -> String {
        words(&self.0)
    }
    fn json(&self) -> Value {
        self.0.clone().into()
    }
    /// The CPU guarantee and the memory that the job is counted with.
    fn quiet(&self) -> String {
        let resource = |name: &str| find(&self.0, &format!("accounted/{name}")).cloned().unwrap_or_default();
        format!("{} {}", plain(&resource("cpu")), plain(&resource("memory")))
    }
}

fn plain(value: &Value) -> String {
    String::from_utf8_lossy(&yson::to_text(value)).into_owned()
}

fn words(explanation: &Map) -> String {
    let lines = explanation.get("text").and_then(Value::as_list).unwrap_or_default();
    lines.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}
