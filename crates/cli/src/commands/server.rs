//! `server gc`.

use super::Session;
use crate::error::CliError;
use crate::views::{Done, Scalar, find, text};
use yson::Value;

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
