//! Runs of scenarios: what comes out, and that it is the same each time.

use crate::whole::{of_beginning, whole};
use sim::{Options, Ran, Scenario};
use std::path::{Path, PathBuf};
use yson::Map;

pub fn shared(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/scenarios")).join(name)
}

fn run(scenario: &Scenario, folder: &Path, options: Options) -> Ran {
    sim::run(scenario, folder, options, &mut |_| true, &mut |_| Map::new()).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a shared scenario, or its first seconds, and the checks that it comes with.
fn holds(name: &str, seconds: Option<u64>) {
    let seconds = seconds.filter(|_| !whole());
    let duration = seconds.map(|seconds| ("/duration_ms".to_owned(), (1000 * seconds).into()));
    let scenario = Scenario::load(&shared(name).join("scenario.json"), duration.as_slice());
    let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
    let folder = tempfile::tempdir().expect("a directory");
    let ran = run(&scenario, folder.path(), Options::default());
    assert!(ran.violations.is_empty(), "{:?}", ran.violations);
    let desk = tempfile::tempdir().expect("a directory");
    let checks = shared(name).join("checks.json");
    let checks = seconds.map_or(checks.clone(), |seconds| of_beginning(&checks, seconds, desk.path()));
    let found = sim::check::check(folder.path(), &checks).unwrap_or_else(|e| panic!("{e}"));
    assert!(found.len() > if seconds.is_none() { 10 } else { 5 }, "{found:?}");
    let broken: Vec<_> = found.iter().filter(|c| !c.holds).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn volume_drain() {
    holds("volume-drain", None);
}

#[test]
fn strong_and_burst() {
    holds("strong-and-burst", Some(4 * 3600));
}

#[test]
fn burst_500_100() {
    holds("burst-500-100", Some(6 * 3600));
}

#[test]
fn relaxed_pair() {
    holds("relaxed-pair", Some(6 * 3600));
}

#[test]
fn burst_and_relaxed() {
    holds("burst-and-relaxed", Some(4 * 3600));
}

/// Half a day of a thousand nodes and a hundred thousand jobs, or its first hour: the long way and the short way are the same.
#[test]
fn scale_1k() {
    let beginning = [("/duration_ms".to_owned(), (60 * 60_000).into())];
    let changes = if whole() { &[][..] } else { &beginning };
    let scenario = Scenario::load(&shared("scale-1k").join("scenario.json"), changes);
    let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
    let folders = [true, false].map(|shortcuts| {
        let folder = tempfile::tempdir().expect("a directory");
        let ran = run(&scenario, folder.path(), Options { shortcuts, ..Options::default() });
        assert!(ran.violations.is_empty(), "{:?}", ran.violations);
        folder
    });
    for name in ["pools.csv", "operations.csv", "allocations.csv"] {
        let [quick, slow] = [0, 1].map(|i| std::fs::read(folders[i].path().join(name)).expect("a file"));
        assert!(quick == slow && quick.len() > if whole() { 10_000 } else { 1_000 }, "{name}");
    }
}
