//! `millpond events`, `millpond audit`.

use super::epilogue;
use clap::Args;
use vocab::{Span, Time};

/// `millpond events`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue![
    "millpond events",
    "millpond events --follow",
    "millpond events --from 1 --limit 100000 --json > events.jsonl",
    "millpond events --since 1h --event operation_failed",
    "millpond events --last 10000 --operation 1-2-103e8-4",
])]
pub struct EventsArgs {
    /// Which part of the log.
    #[command(flatten)]
    pub range: EventRange,
    /// Begin so many before the end
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub last: u64,
    /// Only of this operation
    #[arg(long, value_name = "ID")]
    pub operation: Option<vocab::OperationId>,
    /// Only these: job_started, job_failed, operation_failed, audit, ...
    #[arg(long, value_name = "EVENT")]
    pub event: Option<String>,
}

/// `millpond audit`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue![
    "millpond audit",
    "millpond audit --path //sys/pool_trees --follow",
    "millpond audit --from 1 --user ann --action set --json",
    "millpond audit --since 2026-01-02T09:00:00Z --until 2026-01-02T10:00:00Z",
])]
pub struct AuditArgs {
    /// Which part of the log.
    #[command(flatten)]
    pub range: EventRange,
    /// Look through the last so many events of the event log
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100_000)]
    pub last: u64,
    /// Only by this user
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Only by this command: set, create, remove, abort_operation, add_member, ...
    #[arg(long, value_name = "COMMAND")]
    pub action: Option<String>,
    /// Only of this path and what is below it
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
}

/// A part of the event log.
#[derive(Args, Clone, Debug)]
pub struct EventRange {
    /// Look through the event log from this number on
    #[arg(long, value_name = "NUMBER", conflicts_with = "last")]
    pub from: Option<u64>,
    /// Only from this time on, of all that is kept: 2026-01-02T03:04:05Z, or 90s, 15m, 2h, 7d ago
    #[arg(long, value_name = "TIME", conflicts_with = "last", value_parser = moment)]
    pub since: Option<Moment>,
    /// Only before this time
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "follow")]
    pub until: Option<Moment>,
    /// Show at most so many
    #[arg(long, short, value_name = "N")]
    pub limit: Option<u64>,
    /// Go on with what happens
    #[arg(long, short, conflicts_with = "limit")]
    pub follow: bool,
}

/// A time as people say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// This one.
    At(Time),
    /// So long before now.
    Ago(Span),
}

impl Moment {
    /// As an instant.
    pub fn at(self, now: Time) -> Time {
        match self {
            Moment::At(time) => time,
            Moment::Ago(span) => now - span,
        }
    }
}

fn moment(text: &str) -> Result<Moment, String> {
    let ago = || Span::parse(text).filter(|_| text.ends_with(|c: char| c.is_alphabetic()));
    let time = Time::parse(text).map(Moment::At);
    time.or_else(|| ago().map(Moment::Ago)).ok_or_else(|| {
        "must be a time like 2026-01-02T03:04:05Z, or so long ago: 90s, 15m, 2h, 7d".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let now = Time::from_secs(100_000);
        for (text, expected) in
            [("1970-01-02T00:00:00Z", 86_400), ("2h", 92_800), ("90s", 99_910), ("9999d", 0)]
        {
            assert_eq!(moment(text).map(|m| m.at(now)), Ok(Time::from_secs(expected)), "{text}");
        }
        for text in ["", "yesterday", "-2h", "90", "2026-01-02"] {
            assert!(moment(text).is_err(), "{text}");
        }
    }
}
