//! Runs of scenarios: what comes out, and that it is the same each time.

use sim::{Options, Ran, Scenario};
use std::path::{Path, PathBuf};
use yson::Map;

pub fn shared(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/scenarios")).join(name)
}

fn run(scenario: &Scenario, folder: &Path, options: Options) -> Ran {
    sim::run(scenario, folder, options, &mut |_| true, &mut |_| Map::new()).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a shared scenario and its checks.
fn holds(name: &str) {
    let scenario = Scenario::load(&shared(name).join("scenario.json"), &[]).unwrap_or_else(|e| panic!("{e}"));
    let folder = tempfile::tempdir().expect("a directory");
    let ran = run(&scenario, folder.path(), Options::default());
    assert!(ran.violations.is_empty(), "{:?}", ran.violations);
    let checks = shared(name).join("checks.json");
    let found = sim::check::check(folder.path(), &checks).unwrap_or_else(|e| panic!("{e}"));
    assert!(found.len() > 10, "{found:?}");
    let broken: Vec<_> = found.iter().filter(|c| !c.holds).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn volume_drain() {
    holds("volume-drain");
}

macro_rules! long_runs {
    ($($name:ident => $folder:literal),* $(,)?) => {
        $(
            #[test]
            #[cfg_attr(debug_assertions, ignore = "days of cluster time: in a release build")]
            fn $name() {
                holds($folder);
            }
        )*
    };
}

long_runs! {
    strong_and_burst => "strong-and-burst",
    burst_500_100 => "burst-500-100",
    relaxed_pair => "relaxed-pair",
    burst_and_relaxed => "burst-and-relaxed",
}

/// Half a day of a thousand nodes and a hundred thousand jobs: the long way and the short way are the same.
#[test]
#[cfg_attr(debug_assertions, ignore = "a hundred thousand jobs: in a release build")]
fn scale_1k() {
    let scenario = Scenario::load(&shared("scale-1k").join("scenario.json"), &[]);
    let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
    let folders = [true, false].map(|shortcuts| {
        let folder = tempfile::tempdir().expect("a directory");
        let ran = run(&scenario, folder.path(), Options { shortcuts, ..Options::default() });
        assert!(ran.violations.is_empty(), "{:?}", ran.violations);
        folder
    });
    for name in ["pools.csv", "operations.csv", "allocations.csv"] {
        let [quick, slow] = [0, 1].map(|i| std::fs::read(folders[i].path().join(name)).expect("a file"));
        assert!(quick == slow && quick.len() > 10_000, "{name}");
    }
}
