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
/// Nodes that are named in a message.
const NAMED: usize = 10;

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

/// Extends the leases, and waits until all nodes that run exclusive jobs, or may, have confirmed it.
pub fn pause(session: &Session, period: Span) -> Result<(), CliError> {
    let until = session.client.extend_leases(period)?;
    let give_up = Instant::now() + CONFIRMED_WITHIN;
    loop {
        let Nodes { waiting, old } = nodes_at(session, &until)?;
        if waiting.is_empty() {
            session.screen.tell("all nodes have confirmed it: leases begin at this time");
            if !old.is_empty() {
                session.screen.tell(&format!(
                    "{} nodes have agents of release 0.1, which know no leases: their exclusive jobs may run twice: {}",
                    old.len(),
                    first(old)
                ));
            }
            return session.screen.show(&Scalar(until.into()));
        }
        if Instant::now() >= give_up {
            let count = waiting.len();
            let names = first(waiting);
            return Err(CliError::failed(format!(
                "Leases are extended until {until}, but {count} nodes have not confirmed it in 30 s: {names}. Their jobs may stop \
                 if the server is away for longer than their leases"
            )));
        }
        std::thread::sleep(LOOK_PERIOD);
    }
}

fn first(names: Vec<String>) -> String {
    names.into_iter().take(NAMED).collect::<Vec<_>>().join(", ")
}

/// What nodes say about an extension.
#[derive(Debug, Default, PartialEq)]
struct Nodes {
    /// They have not confirmed it.
    waiting: Vec<String>,
    /// They cannot.
    old: Vec<String>,
}

fn nodes_at(session: &Session, until: &str) -> Result<Nodes, CliError> {
    let attributes = ["state", "leases_extended_until", "knows_leases", "waiting_until"];
    Ok(sorted(&session.client.list("//sys/cluster_nodes", &attributes)?, until))
}

/// Sorts nodes by what they say about an extension to this time. A node that is away for a moment counts if its jobs may live.
fn sorted(nodes: &[Value], until: &str) -> Nodes {
    let mut sorted = Nodes::default();
    for node in nodes {
        let attribute = |name: &str| node.attributes().and_then(|attributes| attributes.get(name));
        let text = |name: &str| attribute(name).and_then(Value::as_str).unwrap_or_default();
        let Some(name) = node.bare().as_str() else { continue };
        let is_online = text("state") == "online";
        let may_run = is_online || attribute("waiting_until").is_some();
        if is_online && attribute("knows_leases").and_then(Value::as_bool) == Some(false) {
            sorted.old.push(name.to_owned());
        } else if may_run && text("leases_extended_until") < until {
            // Times in this form are ordered as texts.
            sorted.waiting.push(name.to_owned());
        }
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S19.
    #[test]
    fn a_node_that_may_run_exclusive_jobs_must_confirm_an_extension() {
        let nodes = b"[<state=online; leases_extended_until=\"2030-01-01T02:00:00Z\">done;
            <state=online; leases_extended_until=\"2030-01-01T01:00:00Z\">behind; <state=online>silent;
            <state=online; knows_leases=%false>old; <state=offline; waiting_until=\"2030-01-01T00:10:00Z\">away;
            <state=offline>idle]";
        let nodes = yson::parse(nodes).expect("a list");
        let sorted = sorted(nodes.as_list().expect("a list"), "2030-01-01T02:00:00Z");
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(sorted, Nodes { waiting: names(&["behind", "silent", "away"]), old: names(&["old"]) });
    }
}
