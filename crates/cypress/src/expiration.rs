//! Nodes that are removed without being asked for: at a time, or when nobody has used them for so long.
//!
//! Uses are written down, or they would be forgotten with a restart, but not each of them: see
//! [`Expiration::needs_renewal`].

use vocab::{ObjectId, Span, Time};

use crate::node::Node;
use crate::tree::Tree;

/// When a node is to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiration {
    /// `expiration_time`: then.
    pub time: Option<Time>,
    /// `expiration_timeout`: when it was neither used nor changed for so long.
    pub timeout: Option<Span>,
    /// The last use that was written down.
    pub accessed: Option<Time>,
}

impl Expiration {
    /// Uses that follow the one that is known within this time are not written down.
    fn grain(timeout: Span) -> Span {
        Span(timeout.as_micros() / 16)
    }

    /// Is this use to be written down?
    pub(crate) fn needs_renewal(&self, now: Time) -> bool {
        let stale = |timeout| self.accessed.is_none_or(|last| now > last + Expiration::grain(timeout));
        self.timeout.is_some_and(stale)
    }
}

impl Node {
    /// When it is to be removed, as far as is known by now. Never earlier than its attributes say, and later by no
    /// more than the uses that were not written down.
    pub fn expires(&self) -> Option<Time> {
        let Expiration { time, timeout, accessed } = self.expiration;
        let unused = timeout.map(|timeout| {
            let used = accessed.map(|last| last + Expiration::grain(timeout)).unwrap_or_default();
            used.max(self.modification_time) + timeout
        });
        // The layout may have found a node of a user in the place of one of its own.
        time.into_iter().chain(unused).min().filter(|_| !self.builtin)
    }

    /// The last use that is known. Reads of nodes that stay leave no trace: a tree that writes when it is read is slow
    /// and surprising.
    pub fn access_time(&self) -> Time {
        self.expiration.accessed.unwrap_or_default().max(self.modification_time)
    }
}

impl Tree {
    /// The first node behind `after` that expires not later than this.
    pub fn next_expired(&self, now: Time, after: Option<(Time, ObjectId)>) -> Option<(Time, ObjectId)> {
        let from = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        self.expiring.range((from, std::ops::Bound::Unbounded)).next().copied().filter(|(at, _)| *at <= now)
    }

    /// Does anything?
    pub fn anything_expires(&self) -> bool {
        !self.expiring.is_empty()
    }

    /// Is it kept as long as it is used?
    pub fn expires_unused(&self, id: ObjectId) -> bool {
        self.node(id).is_some_and(|node| node.expiration.timeout.is_some())
    }
}
