//! Cost of one full update of the benchmark trees of the conformance corpus.
//!
//! `cargo bench -p millpond-fairshare`. The trees have two levels of pools (three with the root), or one
//! wide pool (`flat`).

// Steps and names are not needed here.
#[allow(dead_code)]
#[path = "../tests/main/case.rs"]
mod case;

use std::io::Read;

use case::Case;
use fairshare::Cycle;
use vocab::Span;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/fair_share");

fn main() {
    divan::main();
}

#[divan::bench(args = ["100", "1000", "10000", "100000", "flat_3000", "flat_10000"], sample_count = 5, sample_size = 1)]
fn standard(bencher: divan::Bencher, tree: &str) {
    run(bencher, tree, false);
}

#[divan::bench(args = ["100", "1000", "10000", "flat_3000"], sample_count = 3, sample_size = 1)]
fn improved(bencher: divan::Bencher, tree: &str) {
    run(bencher, tree, true);
}

fn run(bencher: divan::Bencher, tree: &str, improved: bool) {
    let mut case = load(tree);
    case.input.options.enable_improved_fair_share_by_fit_factor_computation = improved;
    let since_previous = Some(Span::from_millis(200));
    bencher.with_inputs(|| case.state.clone()).bench_local_values(|mut state| {
        fairshare::update(&case.input, &mut state, Cycle::Periodic { since_previous }).expect("valid input")
    });
}

#[allow(clippy::disallowed_methods)] // The crate does no IO, its bench has to.
fn load(tree: &str) -> Case {
    let path = format!("{FOLDER}/bench_{tree}.jsonl.gz");
    let file = std::fs::File::open(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut line = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut line).expect("gzip");
    Case::parse(line.trim())
}
