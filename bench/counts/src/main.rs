//! Fixed pieces of work whose instructions and allocations `make bench-check` counts.
//!
//! `bench-counts list` prints the names of the pieces, `bench-counts NAME` does one of them. Preparations are not
//! counted. Everything is deterministic: the same binary does the same instructions on every run.

mod codecs;
mod fair_share;
mod heartbeat;
mod kernel_turns;
mod large_requests;
mod meter;
mod node;
mod random;
mod stores;

use meter::Meter;
use std::process::ExitCode;

type Piece = fn(&mut Meter);

/// Pieces of work by their names in `bench/baseline.toml`.
const PIECES: &[(&str, Piece)] = &[
    ("fair_share.full", fair_share::full),
    ("fair_share.incremental", fair_share::incremental),
    ("scheduler.fill", heartbeat::fill),
    ("scheduler.heartbeat", heartbeat::nothing_to_start),
    ("scheduler.preemption", heartbeat::preemption),
    ("scheduler.snapshot", heartbeat::snapshot),
    ("kernel.submit", kernel_turns::submit),
    ("kernel.schedule", kernel_turns::schedule),
    ("kernel.finish", kernel_turns::finish),
    ("kernel.heartbeats", kernel_turns::heartbeats),
    ("kernel.idle", kernel_turns::idle),
    ("kernel.list_operations", kernel_turns::list_operations),
    ("kernel.recovery", kernel_turns::recovery),
    ("kernel.large.changes", large_requests::changes),
    ("kernel.large.removal", large_requests::removal),
    ("kernel.large.commit", large_requests::commit),
    ("kernel.large.questions", large_requests::questions),
    ("kernel.large.specification", large_requests::specification),
    ("node.jobs", node::jobs),
    ("store.write", stores::write),
    ("store.load", stores::load),
    ("codec.yson_read", codecs::yson_read),
    ("codec.yson_write", codecs::yson_write),
    ("codec.json", codecs::json),
    ("codec.rows_in", codecs::rows_in),
    ("codec.rows_out", codecs::rows_out),
    ("codec.wire", codecs::wire),
    ("codec.digest", codecs::digest),
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    if name == "list" {
        PIECES.iter().for_each(|(name, _)| println!("{name}"));
        return ExitCode::SUCCESS;
    }
    let Some((_, work)) = PIECES.iter().find(|(known, _)| *known == name) else {
        eprintln!("bench-counts: {name:?} is not one of the pieces; `bench-counts list` prints them");
        return ExitCode::from(2);
    };
    let mut meter = Meter::default();
    work(&mut meter);
    println!("{}", meter.report());
    ExitCode::SUCCESS
}
