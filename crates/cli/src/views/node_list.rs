//! `node list`.

use crate::output::{Look, Output};
use crate::units::{age, count, resource};
use crate::views::read::{amounts, find, integer, text, time};
use crate::views::table::{Grid, Text, or_dash, state_colour};
use vocab::{Resource, Resources, Time};
use yson::{Map, Value};

/// Exec nodes as the scheduler sees them.
pub struct NodeTable {
    /// Orchid of nodes by address (http-api.md 11.5).
    pub nodes: Map,
    /// Nodes that wait for an approval, of `list_node_identities`.
    pub pending: Vec<Value>,
}

impl Output for NodeTable {
    fn human(&self, look: &Look) -> String {
        if self.nodes.is_empty() && self.pending.is_empty() {
            return "No nodes. Make a join token with `millpond node token create`, and start one with \
                    `millpond node --server HOST:PORT --join-token-file FILE`."
                .to_owned();
        }
        let mut grid = Grid::new(
            look,
            &["NODE", "STATE", ">JOBS", ">CPU", ">MEMORY", ">SLOTS", ">GPU", "JOBS HELD BY", "TAGS", "SEEN"],
        );
        for (address, node) in self.nodes.iter() {
            let node = node.as_map().unwrap_or(Map::EMPTY);
            let state = text(node, "state");
            let (usage, limits) = (amounts(node, "resource_usage"), amounts(node, "resource_limits"));
            let tags = find(node, "tags").and_then(Value::as_list).unwrap_or_default();
            let tags: Vec<&str> = tags.iter().filter_map(Value::as_str).collect();
            grid.row([
                String::from_utf8_lossy(address).into_owned().into(),
                Text::coloured(or_dash(state), state_colour(state)),
                count(integer(node, "running_job_count")).into(),
                part(Resource::Cpu, &usage, &limits).into(),
                part(Resource::Memory, &usage, &limits).into(),
                part(Resource::UserSlots, &usage, &limits).into(),
                part(Resource::Gpu, &usage, &limits).into(),
                or_dash(text(node, "job_environment")).into(),
                or_dash(&tags.join(",")).into(),
                match time(node, "last_seen_time").filter(|t| *t > Time::ZERO) {
                    Some(seen) => age(seen, look.now),
                    // Known from an earlier life of the server.
                    None => "-".to_owned(),
                }
                .into(),
            ]);
        }
        let mut out = grid.finish();
        for (address, node) in self.nodes.iter() {
            let node = node.as_map().unwrap_or(Map::EMPTY);
            if let Some(message) = disabled(node) {
                out.push_str(&format!("\n{}: {message}", String::from_utf8_lossy(address)));
            }
            let units = integer(node, "waiting_unit_count");
            if units > 0 {
                let (address, until) = (String::from_utf8_lossy(address), text(node, "waiting_until"));
                out.push_str(&format!(
                    "\n{address}: {units} units of exclusive work wait for it until {until}"
                ));
            }
        }
        for waiting in self.pending.iter().filter_map(Value::as_map) {
            let (name, key) = (text(waiting, "name"), text(waiting, "key_sha256"));
            let from = or_dash(text(waiting, "address"));
            out.push_str(&format!(
                "\n{name} waits for an approval: key {key}, from {from}. If its log says the same key: millpond node approve {name}"
            ));
        }
        out
    }
    fn json(&self) -> Value {
        self.nodes.clone().into()
    }
    fn quiet(&self) -> String {
        self.nodes.key_strings().collect::<Vec<_>>().join("\n")
    }
}

/// Why the node starts no jobs, if its alerts say so.
fn disabled(node: &Map) -> Option<&str> {
    let alerts = find(node, "alerts").and_then(Value::as_list)?;
    let is_it = |alert: &&Value| {
        let kind = alert.get("attributes").and_then(|attributes| attributes.get("alert_type"));
        matches!(
            kind.and_then(Value::as_str),
            Some("job_environment_disabled" | "job_uids_refused" | "job_uids_not_supported")
        )
    };
    alerts.iter().find(is_it)?.get("message")?.as_str()
}

/// `3.5/8`.
pub(crate) fn part(r: Resource, usage: &Resources, limits: &Resources) -> String {
    match (usage.raw(r), limits.raw(r)) {
        (0, 0) => "-".to_owned(),
        (used, all) => format!("{}/{}", resource(r, used), resource(r, all)),
    }
}
