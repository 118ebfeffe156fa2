//! `op get`: everything about one operation on one screen.

use crate::output::{Look, Output};
use crate::units::{age, count, percent, span};
use crate::views::operations::{pools, shown_state};
use crate::views::read::{error_lines, error_of, find, integer, number, text, time};
use crate::views::table::{Grid, Text, card, or_dash, state_colour};
use vocab::Failure;
use yson::{Map, Value};

/// One operation.
pub struct OperationCard {
    /// Reply of `get_operation`.
    pub operation: Map,
}

impl Output for OperationCard {
    fn human(&self, look: &Look) -> String {
        let parts = [
            self.facts(look),
            self.tasks(look),
            self.scheduling(),
            self.lease_waits(),
            self.alerts(),
            self.events(),
            self.result(),
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
    fn json(&self) -> Value {
        self.operation.clone().into()
    }
    fn quiet(&self) -> String {
        text(&self.operation, "state").to_owned()
    }
}

impl OperationCard {
    fn facts(&self, look: &Look) -> String {
        let o = &self.operation;
        let start = time(o, "start_time");
        let end = time(o, "finish_time");
        let lasted = start.map(|t| span(end.unwrap_or(look.now).since(t))).unwrap_or_default();
        let state = shown_state(o);
        let shown = match (state, text(o, "state")) {
            ("suspended", state) => format!("{state}, suspended"),
            (state, _) => state.to_owned(),
        };
        card(&[
            ("Operation", text(o, "id").to_owned()),
            ("Title", text(o, "brief_spec/title").to_owned()),
            ("Alias", text(o, "brief_spec/alias").to_owned()),
            ("Type", text(o, "type").to_owned()),
            ("State", shown),
            ("User", text(o, "authenticated_user").to_owned()),
            ("Pool", self.places()),
            ("Started", start.map(|t| format!("{t} ({})", age(t, look.now))).unwrap_or_default()),
            ("Finished", end.map(|t| format!("{t} ({})", age(t, look.now))).unwrap_or_default()),
            ("Time", lasted),
        ])
    }

    /// `research (tree physical, weight 2)`.
    fn places(&self) -> String {
        let path = "runtime_parameters/scheduling_options_per_pool_tree";
        let Some(trees) = find(&self.operation, path).and_then(Value::as_map) else {
            return pools(&self.operation);
        };
        let place = |(tree, options): (&[u8], &Value)| {
            let options = options.as_map().unwrap_or(Map::EMPTY);
            let weight = match find(options, "weight").and_then(Value::as_f64) {
                Some(weight) => format!(", weight {weight}"),
                None => String::new(),
            };
            format!("{} (tree {}{weight})", text(options, "pool"), String::from_utf8_lossy(tree))
        };
        trees.iter().map(place).collect::<Vec<_>>().join(", ")
    }

    fn tasks(&self, look: &Look) -> String {
        let tasks = find(&self.operation, "progress/tasks").and_then(Value::as_list).unwrap_or_default();
        if tasks.is_empty() {
            return String::new();
        }
        let headers = ["TASK", ">JOBS", ">COMPLETED", ">RUNNING", ">PENDING", ">FAILED", ">ABORTED"];
        let mut grid = Grid::new(look, &headers);
        for task in tasks.iter().filter_map(Value::as_map) {
            let jobs = |name: &str| count(integer(task, &format!("job_counter/{name}")));
            grid.row([
                text(task, "task_name").into(),
                jobs("total").into(),
                jobs("completed/total").into(),
                jobs("running").into(),
                jobs("pending").into(),
                Text::coloured(
                    jobs("failed"),
                    state_colour(if integer(task, "job_counter/failed") > 0 { "failed" } else { "" }),
                ),
                jobs("aborted/total").into(),
            ]);
        }
        grid.finish()
    }

    /// Units that may still run on nodes that are not heard (S19).
    fn lease_waits(&self) -> String {
        let waits =
            find(&self.operation, "progress/lease_waits").and_then(Value::as_list).unwrap_or_default();
        let line = |wait: &Map| {
            let until = match text(wait, "until") {
                "" => "until its node tells its end".to_owned(),
                until => format!("until {until} at the latest"),
            };
            match text(wait, "reason") {
                "revival" => {
                    let nodes = find(wait, "nodes").and_then(Value::as_list).unwrap_or_default();
                    let nodes: Vec<&str> = nodes.iter().filter_map(Value::as_str).collect();
                    format!("Waits for nodes {}, which may still run its jobs, {until}", nodes.join(", "))
                }
                _ => format!(
                    "Waits for job {} on node {}, which may still run unit {} of task {}, {until}",
                    text(wait, "job_id"),
                    text(wait, "node"),
                    integer(wait, "job_cookie"),
                    text(wait, "task_name"),
                ),
            }
        };
        waits.iter().filter_map(Value::as_map).map(line).collect::<Vec<_>>().join("\n")
    }

    /// What it gets, and why not more.
    fn scheduling(&self) -> String {
        let Some(trees) =
            find(&self.operation, "progress/scheduling_info_per_pool_tree").and_then(Value::as_map)
        else {
            return String::new();
        };
        let mut lines = Vec::new();
        for (tree, info) in trees.iter() {
            let info = info.as_map().unwrap_or(Map::EMPTY);
            lines.push(format!(
                "Share in {}: usage {}, fair share {}, demand {}",
                String::from_utf8_lossy(tree),
                percent(number(info, "usage_ratio")),
                percent(number(info, "fair_share_ratio")),
                percent(number(info, "demand_ratio")),
            ));
            if let Some(by) = find(info, "pending_by").and_then(Value::as_map) {
                lines.push(format!("  waits for {} of pool {}", text(by, "limit"), text(by, "pool")));
            }
            if let Some(reason) = find(info, "unschedulable_reason").and_then(Value::as_str) {
                lines.push(format!("  not scheduled: {}", reason.replace('_', " ")));
            }
            let refused = find(info, "deactivation_reasons").and_then(Value::as_map);
            let refused: Vec<String> = refused
                .into_iter()
                .flat_map(Map::iter)
                .map(|(reason, n)| {
                    let reason = String::from_utf8_lossy(reason).replace('_', " ");
                    format!("{reason} ({})", count(n.as_i64().unwrap_or_default()))
                })
                .collect();
            if !refused.is_empty() {
                lines.push(format!("  refused by nodes: {}", refused.join(", ")));
            }
        }
        lines.join("\n")
    }

    fn alerts(&self) -> String {
        let Some(alerts) = find(&self.operation, "alerts").and_then(Value::as_map) else {
            return String::new();
        };
        let mut lines = Vec::new();
        for (name, alert) in alerts.iter() {
            lines.push(format!("Alert {}:", String::from_utf8_lossy(name)));
            error_lines(&Failure::from_value(alert), 1, &mut lines);
        }
        lines.join("\n")
    }

    fn events(&self) -> String {
        let events = find(&self.operation, "events").and_then(Value::as_list).unwrap_or_default();
        let line = |event: &Map| format!("  {}  {}", or_dash(text(event, "time")), text(event, "state"));
        let lines: Vec<String> = events.iter().filter_map(Value::as_map).map(line).collect();
        if lines.is_empty() { String::new() } else { format!("Events:\n{}", lines.join("\n")) }
    }

    fn result(&self) -> String {
        let Some(failure) = error_of(&self.operation, "result/error") else { return String::new() };
        let mut lines = vec!["Result:".to_owned()];
        error_lines(&failure, 1, &mut lines);
        if let Some(stderr) = failure.find_attribute("stderr").and_then(Value::as_str)
            && !stderr.trim().is_empty()
        {
            lines.push("Last output of the failed job:".to_owned());
            let all: Vec<&str> = stderr.trim_end().lines().collect();
            lines.extend(all.iter().skip(all.len().saturating_sub(10)).map(|line| format!("  {line}")));
        }
        lines.join("\n")
    }
}
