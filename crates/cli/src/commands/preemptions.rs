//! `op preemptions`.

use super::Session;
use crate::error::CliError;
use crate::views::{PreemptionTable, find, text};
use yson::Value;

/// Shows the newest lines of the preemption log that are wanted.
pub fn run(
    session: &Session,
    operation: Option<&str>,
    pool: Option<&str>,
    limit: usize,
) -> Result<(), CliError> {
    let trees = session.client.list("//sys/scheduler/orchid/scheduler/pool_trees", &[])?;
    let mut records = Vec::new();
    for tree in trees.iter().filter_map(Value::as_str) {
        let tree = yson::ypath::escape_literal(tree);
        let path = format!("//sys/scheduler/orchid/scheduler/pool_trees/{tree}/preemption_log");
        let Value::List(log) = session.client.get(&path, &[])?.into_bare() else {
            return Err(CliError::failed("the server's preemption log is not a list"));
        };
        records.extend(log.into_iter().filter(|record| wanted(record, operation, pool)));
    }
    records.sort_by(|a, b| a.get("time").and_then(Value::as_str).cmp(&b.get("time").and_then(Value::as_str)));
    let first = records.len().saturating_sub(limit);
    session.screen.show(&PreemptionTable { records: records.split_off(first) })
}

fn wanted(record: &Value, operation: Option<&str>, pool: Option<&str>) -> bool {
    let Some(record) = record.as_map() else { return false };
    let preemptor = find(record, "preempted_for/operation_id").and_then(Value::as_str);
    operation.is_none_or(|id| text(record, "operation_id") == id || preemptor == Some(id))
        && pool.is_none_or(|pool| text(record, "pool") == pool)
}
