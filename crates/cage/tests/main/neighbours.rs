//! Nodes of one host share the parents of their groups: whoever goes last removes them, and nobody stumbles over it.

use super::conformance::for_each_with_groups;
use cage::EnvironmentConfig;
use std::path::{Path, PathBuf};

const NODES: usize = 3;
/// Few: handing controllers down takes an emulated machine a while.
const ROUNDS: usize = 6;

/// Groups of this name, in every hierarchy.
fn groups(name: &str) -> Vec<PathBuf> {
    let hierarchies = std::fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten().map(|e| e.path());
    let places = hierarchies.chain([PathBuf::from("/sys/fs/cgroup")]).map(|place| place.join(name));
    places.filter(|place| place.is_dir()).collect()
}

#[test]
fn they_come_and_go_without_disturbing_each_other() {
    for_each_with_groups(|w| {
        let driver = w.environment.driver();
        let shared = format!("millpond-neighbours-{}-{driver}", std::process::id());
        let node = |n: usize| {
            let config = EnvironmentConfig::new(&format!("{shared}/{n}"));
            let environment = cage::open(driver, &config).expect("was opened");
            for _ in 0..ROUNDS {
                environment.prepare().unwrap_or_else(|e| panic!("{driver}, node {n}: {e}"));
                environment.remove_root().unwrap_or_else(|e| panic!("{driver}, node {n}: {e}"));
            }
        };
        std::thread::scope(|scope| {
            for n in 0..NODES {
                scope.spawn(move || node(n));
            }
        });
        assert_eq!(groups(&shared), [] as [PathBuf; 0], "{driver}");
        let notes = Path::new("/run/millpond-oci").join(format!("{shared}%2F0"));
        assert!(!notes.exists(), "{}", notes.display());
    });
}
