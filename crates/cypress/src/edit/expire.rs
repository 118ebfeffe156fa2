//! `expiration_time` and `expiration_timeout`, and uses that put the end off.

use vocab::{Failure, ObjectId, Span, Time};
use yson::Value;

use super::Edit;
use crate::failures::{no_attribute, show};

/// 9999-12-31T23:59:59: later times could not be written.
const MAX_MILLIS: u64 = 253_402_300_799_000;

impl Edit<'_> {
    pub(super) fn set_expiration(&mut self, id: ObjectId, name: &[u8], value: &Value) -> Result<(), Failure> {
        let node = self.expect_node(id)?;
        let at = || format!("{}/@{}", self.path(id), show(name));
        let found = || show(&yson::to_text(value));
        // Behind users, groups and accounts is more than their nodes.
        if node.builtin || node.is_root() || !node.node_type.is_plain() {
            let message =
                format!("Attribute {} cannot be set to {}: the node is part of the system", at(), found());
            return Err(Failure::new(message).with("path", at()));
        }
        let wrong = |expected: &str| {
            Failure::new(format!("Attribute {}: expected {expected}, found {}", at(), found()))
                .with("path", at())
        };
        let millis = value.as_u64().filter(|millis| *millis <= MAX_MILLIS);
        let mut expiration = node.expiration;
        if name == b"expiration_time" {
            let parsed = value.as_str().and_then(Time::parse);
            let time = parsed.or(millis.map(|millis| Time::ZERO + Span::from_millis(millis)));
            expiration.time = Some(time.ok_or_else(|| {
                wrong(
                    "a time such as \"2026-01-02T03:04:05.000000Z\" or milliseconds since 1970, not after the year 9999",
                )
            })?);
        } else {
            let timeout = millis.filter(|millis| *millis > 0).map(Span::from_millis);
            let expected = || wrong(&format!("milliseconds, an integer from 1 to {MAX_MILLIS}"));
            expiration.timeout = Some(timeout.ok_or_else(expected)?);
        }
        self.update_attributes(id, |node| node.expiration = expiration);
        Ok(())
    }

    pub(super) fn clear_expiration(&mut self, id: ObjectId, name: &[u8], force: bool) -> Result<(), Failure> {
        let mut expiration = self.expect_node(id)?.expiration;
        let had = match name {
            b"expiration_time" => expiration.time.take().is_some(),
            _ => expiration.timeout.take().is_some(),
        };
        if had {
            self.update_attributes(id, |node| node.expiration = expiration);
            return Ok(());
        }
        if force { Ok(()) } else { Err(no_attribute(&self.path(id), name)) }
    }

    /// The node is in use: what expires unused begins anew. This is no change of the node.
    pub fn renew(&mut self, id: ObjectId) {
        let now = self.context.now;
        if self.node(id).is_some_and(|node| node.expiration.needs_renewal(now)) {
            self.remember(id);
            self.tree.change_node(id, |node| node.expiration.accessed = Some(now));
        }
    }
}
