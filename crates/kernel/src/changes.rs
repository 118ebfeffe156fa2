//! What has changed, by topic: so that whoever shows it asks again only then.
//!
//! A topic's number grows when something of it may look different now. Numbers begin anew with each
//! life of the kernel; they say that there was a change, never which.

use crate::Kernel;
use yson::Value;

/// What a page shows apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Topic {
    /// Pools: their settings, and what an update gave them.
    Pools,
    /// Operations and their jobs.
    Operations,
    /// Nodes and what is on them.
    Nodes,
    /// Lines of the preemption log.
    Preemptions,
    /// Alerts of the scheduler.
    Alerts,
}

impl Topic {
    /// All, in the order of [`Versions`].
    pub const ALL: [Topic; 5] =
        [Topic::Pools, Topic::Operations, Topic::Nodes, Topic::Preemptions, Topic::Alerts];

    /// Public name.
    pub const fn name(self) -> &'static str {
        match self {
            Topic::Pools => "pools",
            Topic::Operations => "operations",
            Topic::Nodes => "nodes",
            Topic::Preemptions => "preemptions",
            Topic::Alerts => "alerts",
        }
    }
}

/// A number for each topic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Versions(pub [u64; Topic::ALL.len()]);

impl Versions {
    /// Topics that are not what they were.
    pub fn changed_since(&self, earlier: &Versions) -> Vec<Topic> {
        Topic::ALL.into_iter().filter(|t| self.0[*t as usize] != earlier.0[*t as usize]).collect()
    }
}

/// What the kernel keeps to know it.
#[derive(Default)]
pub(crate) struct Changes {
    versions: Versions,
    /// Digest of the figures of all pools, as of the newest update.
    figures: u64,
    alerts: Value,
}

impl Changes {
    pub fn versions(&self) -> Versions {
        self.versions
    }

    pub fn touch(&mut self, topic: Topic) {
        self.versions.0[topic as usize] += 1;
    }

    /// An update gave these figures: in an idle cluster they are what they were.
    pub fn pools_are(&mut self, figures: u64) {
        if self.figures != figures {
            self.figures = figures;
            self.touch(Topic::Pools);
        }
    }
}

/// A digest of numbers, in their order (FNV-1a).
#[derive(Clone, Copy)]
pub(crate) struct Digest(u64);

impl Digest {
    pub fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
    pub fn add(&mut self, number: f64) {
        self.0 = (self.0 ^ number.to_bits()).wrapping_mul(0x0100_0000_01b3);
    }
    pub fn get(self) -> u64 {
        self.0
    }
}

impl Kernel {
    /// Notes alerts that came or went.
    pub(crate) fn note_alerts(&mut self) {
        let alerts = self.alerts();
        if self.changes.alerts != alerts {
            self.changes.alerts = alerts;
            self.changes.touch(Topic::Alerts);
        }
    }
}
