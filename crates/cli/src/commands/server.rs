//! `server gc`, `server pause`.

use super::Session;
use crate::error::CliError;
use crate::views::{Done, Scalar, find, text};
use std::time::{Duration, Instant};
use vocab::Span;
use yson::Value;

/// Nodes confirm with their next heartbeat.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(30);
const LOOK_PERIOD: Duration = Duration::from_millis(200);

/// Shows the alert about garbage that waits for a confirmation, or confirms it.
pub fn gc(session: &Session, confirm: bool) -> Result<(), CliError> {
    if confirm {
        let removed = session.client.collect_garbage()?;
        return session.screen.show(&Done { verb: "removed", names: vec![format!("{removed} blobs")] });
    }
    let alerts = session.client.get("//sys/scheduler/@alerts", &[])?.into_bare();
    let alerts = alerts.as_list().unwrap_or_default().iter().filter_map(Value::as_map);
    let is_held = |alert: &&yson::Map| {
        find(alert, "attributes/alert_type").and_then(Value::as_str) == Some("garbage_collection_held")
    };
    match alerts.into_iter().find(is_held) {
        Some(alert) => session.screen.show(&Scalar(text(alert, "message").into())),
        None => session.screen.show(&Scalar("nothing waits for a confirmation".into())),
    }
}

/// Extends the leases, and waits until all nodes that are online have confirmed it.
pub fn pause(session: &Session, period: Span) -> Result<(), CliError> {
    let until = session.client.extend_leases(period)?;
    let give_up = Instant::now() + CONFIRMED_WITHIN;
    loop {
        let waiting = unconfirmed(session, &until)?;
        if waiting.is_empty() {
            session.screen.tell("all nodes have confirmed it: leases begin at this time");
            return session.screen.show(&Scalar(until.into()));
        }
        if Instant::now() >= give_up {
            let count = waiting.len();
            let names = waiting.into_iter().take(10).collect::<Vec<_>>().join(", ");
            return Err(CliError::failed(format!(
                "Leases are extended until {until}, but {count} nodes have not confirmed it in 30 s: {names}. Their jobs may stop \
                 if the server is away for longer than their leases"
            )));
        }
        std::thread::sleep(LOOK_PERIOD);
    }
}

/// Nodes that are online and have not confirmed an extension to this time.
fn unconfirmed(session: &Session, until: &str) -> Result<Vec<String>, CliError> {
    let nodes = session.client.list("//sys/cluster_nodes", &["state", "leases_extended_until"])?;
    let attribute = |node: &Value, name: &str| {
        let value = node.attributes().and_then(|attributes| attributes.get(name));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    // Times in this form are ordered as texts.
    let waits = |node: &&Value| {
        attribute(node, "state") == "online" && attribute(node, "leases_extended_until").as_str() < until
    };
    Ok(nodes.iter().filter(waits).filter_map(|node| node.bare().as_str().map(str::to_owned)).collect())
}
