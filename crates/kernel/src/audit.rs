//! Counters of violated invariants in production (scheduling.md 24): a mistake of the program shows in
//! the Orchid and as an alert, not only in tests.

use crate::Kernel;
use std::collections::BTreeMap;
use vocab::{Failure, Time};
use yson::{Map, Value};

/// Facts that are looked at each time: a cluster of 5,000 nodes is through in five minutes.
const STEPS: usize = 8;

/// What the audit has found since the start.
#[derive(Default)]
pub(crate) struct Audit {
    checks: u64,
    /// By name of the invariant, `SCHED-10`.
    violations: BTreeMap<String, u64>,
    last: Option<(Time, String)>,
}

impl Audit {
    /// `//sys/scheduler/orchid/scheduler/invariants`.
    pub fn to_map(&self) -> Map {
        yson::map! {
            "checks" => self.checks,
            "violations" => self.violations.iter().map(|(name, n)| (name.as_str(), *n)).collect::<Map>(),
        }
        .with_some(
            "last",
            self.last.as_ref().map(|(time, text)| yson::map! {"time" => *time, "text" => text}),
        )
    }

    /// The alert, if anything was ever wrong: it does not go away, since what follows from a wrong sum
    /// does not either.
    pub fn alert(&self) -> Option<Failure> {
        let (time, text) = self.last.as_ref()?;
        let message =
            "The scheduler has contradicted itself: this is a mistake of the program, please report it";
        Some(
            Failure::new(message)
                .with("time", *time)
                .with("violations", Value::Map(self.to_map()))
                .because(Failure::new(text.as_str())),
        )
    }

    /// Was anything wrong?
    pub fn found(&self) -> impl Iterator<Item = &str> {
        self.last.iter().map(|(_, text)| text.as_str())
    }
}

impl Kernel {
    /// Looks at the next few facts.
    pub(crate) fn audit(&mut self, now: Time) {
        for _ in 0..STEPS {
            self.audit.checks += 1;
            for text in self.scheduler.audit() {
                let name = text.split(':').next().unwrap_or_default().to_owned();
                *self.audit.violations.entry(name).or_default() += 1;
                self.audit.last = Some((now, text));
            }
        }
    }
}
