//! `op list`.

use crate::output::{Look, Output};
use crate::units::{age, bar, count, span};
use crate::views::read::{find, flag, integer, text, time};
use crate::views::table::{Grid, Text, or_dash, shorten, state_colour};
use yson::{Map, Value};

/// A page of operations, newest first.
pub struct OperationTable {
    /// The reply of `list_operations`.
    pub reply: Map,
}

impl OperationTable {
    /// Attributes that the table needs.
    pub const ATTRIBUTES: [&'static str; 10] = [
        "id",
        "type",
        "state",
        "authenticated_user",
        "start_time",
        "finish_time",
        "suspended",
        "brief_spec",
        "runtime_parameters",
        "brief_progress",
    ];

    fn operations(&self) -> impl Iterator<Item = &Map> {
        let list = self.reply.get("operations").and_then(Value::as_list).unwrap_or_default();
        list.iter().filter_map(Value::as_map)
    }
}

/// State, or that it is suspended, which is what matters then.
pub(crate) fn shown_state(operation: &Map) -> &str {
    match text(operation, "state") {
        "running" | "pending" if flag(operation, "suspended") => "suspended",
        state => state,
    }
}

/// Pools of all trees, most often one.
pub(crate) fn pools(operation: &Map) -> String {
    let trees =
        find(operation, "runtime_parameters/scheduling_options_per_pool_tree").and_then(Value::as_map);
    let mut names: Vec<&str> = Vec::new();
    for (_, options) in trees.into_iter().flat_map(Map::iter) {
        if let Some(pool) = options.get("pool").and_then(Value::as_str)
            && !names.contains(&pool)
        {
            names.push(pool);
        }
    }
    names.join(",")
}

/// Alias, else title, else the beginning of nothing.
pub(crate) fn title(operation: &Map) -> &str {
    match text(operation, "brief_spec/alias") {
        "" => text(operation, "brief_spec/title"),
        alias => alias,
    }
}

impl Output for OperationTable {
    fn human(&self, look: &Look) -> String {
        let headers = [
            "ID", "TITLE", "USER", "POOL", "STATE", "PROGRESS", ">DONE", ">RUNNING", ">FAILED", "STARTED",
            ">TIME",
        ];
        let mut grid = Grid::new(look, &headers);
        let mut rows = 0;
        for operation in self.operations() {
            rows += 1;
            let jobs = |name: &str| integer(operation, &format!("brief_progress/jobs/{name}"));
            let (done, total) = (jobs("completed"), jobs("total"));
            let ratio = if total == 0 { 0.0 } else { done as f64 / total as f64 };
            let state = shown_state(operation);
            let start = time(operation, "start_time");
            let end = time(operation, "finish_time").unwrap_or(look.now);
            grid.row([
                text(operation, "id").into(),
                or_dash(&shorten(title(operation), 32)).into(),
                or_dash(text(operation, "authenticated_user")).into(),
                or_dash(&pools(operation)).into(),
                Text::coloured(or_dash(state), state_colour(state)),
                bar(ratio, 10).into(),
                format!("{}/{}", count(done), count(total)).into(),
                count(jobs("running")).into(),
                count(jobs("failed")).into(),
                start.map_or("-".to_owned(), |t| age(t, look.now)).into(),
                start.map_or("-".to_owned(), |t| span(end.since(t))).into(),
            ]);
        }
        if rows == 0 {
            return "No operations.".to_owned();
        }
        let more = if flag(&self.reply, "incomplete") { "\n(more with --limit)" } else { "" };
        grid.finish() + more
    }
    fn json(&self) -> Value {
        self.reply.get("operations").cloned().unwrap_or_default()
    }
    fn quiet(&self) -> String {
        self.operations().map(|o| text(o, "id")).collect::<Vec<_>>().join("\n")
    }
}
