//! Logs of the processes: lines on stderr, JSON with `--json`.

use cli::args::Common;
use std::io::IsTerminal;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Crates of ours that log. What libraries say is heard from warnings on: at finer levels their frames
/// and buffers would drown everything else.
const OURS: [&str; 9] =
    ["api", "cage", "jobproxy", "kernel", "millpond", "node", "nodecore", "server", "store"];

/// From now on what happens is written down. `MILLPOND_LOG` sets the level: error, warn, info, debug
/// or trace.
pub fn init(common: &Common) {
    let asked = std::env::var("MILLPOND_LOG").ok().and_then(|text| text.parse::<Level>().ok());
    let level = asked.unwrap_or(if common.quiet { Level::WARN } else { Level::INFO });
    let filter =
        Targets::new().with_default(level.min(Level::WARN)).with_targets(OURS.map(|name| (name, level)));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match common.json {
        true => lines.json().with_filter(filter).boxed(),
        false => lines.with_ansi(colour).with_target(false).with_filter(filter).boxed(),
    };
    tracing_subscriber::registry().with(lines).init();
}
