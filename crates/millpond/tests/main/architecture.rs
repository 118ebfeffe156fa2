//! One direction of dependency: every edge between our crates stands in this table, which is the
//! table of ARCHITECTURE.md.

use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};

/// Crate and what it may use, from the ground up.
const MAY_USE: &[(&str, &[&str])] = &[
    ("yson", &[]),
    ("vocab", &["yson"]),
    ("wire", &["yson", "vocab"]),
    ("tables", &["yson", "vocab"]),
    ("reserve", &["yson", "vocab"]),
    ("fairshare", &["yson", "vocab"]),
    ("scheduler", &["yson", "vocab", "fairshare"]),
    ("controller", &["yson", "vocab", "reserve"]),
    ("cypress", &["yson", "vocab", "tables"]),
    ("history", &["vocab"]),
    ("nodecore", &["yson", "vocab", "wire"]),
    ("kernel", &["yson", "vocab", "wire", "scheduler", "controller", "cypress", "history", "tables"]),
    ("calc", &["yson", "vocab", "reserve", "fairshare", "scheduler", "controller"]),
    ("store", &["vocab"]),
    ("datadir", &[]),
    ("cage", &["yson", "vocab"]),
    ("api", &["yson", "vocab", "kernel", "datadir"]),
    ("client", &["yson", "vocab"]),
    ("jobproxy", &["yson", "vocab", "reserve", "cage", "tables"]),
    ("server", &["yson", "vocab", "wire", "kernel", "datadir", "store", "api", "tables"]),
    ("node", &["yson", "vocab", "wire", "nodecore", "datadir", "cage", "jobproxy"]),
    ("sim", &["yson", "vocab", "wire", "reserve", "controller", "scheduler", "kernel", "nodecore"]),
    ("cli", &["yson", "vocab", "client", "datadir", "calc", "sim"]),
    ("demo", &["yson", "vocab", "client", "datadir"]),
    ("millpond", &["yson", "vocab", "client", "datadir", "cli", "demo", "server", "node", "jobproxy"]),
];

/// Crates that think: they must not get an async runtime, a socket or a disk through the back door.
const PURE: &[&str] = &[
    "yson",
    "vocab",
    "reserve",
    "fairshare",
    "scheduler",
    "controller",
    "tables",
    "cypress",
    "history",
    "nodecore",
    "kernel",
    "calc",
];
const EDGE_LIBRARIES: &[&str] =
    &["tokio", "axum", "hyper", "tonic", "redb", "rustix", "libc", "ureq", "rand"];

#[test]
fn edges_between_crates_are_those_of_the_architecture_page() {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata runs");
    let table: BTreeMap<&str, BTreeSet<&str>> =
        MAY_USE.iter().map(|(name, uses)| (*name, uses.iter().copied().collect())).collect();
    let short = |name: &str| name.strip_prefix("millpond-").unwrap_or(name).to_owned();

    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    // Programs that only measure lie outside of crates/ and may use everything.
    for package in metadata.packages.iter().filter(|p| p.manifest_path.as_str().contains("/crates/")) {
        let name = short(&package.name);
        let Some(allowed) = table.get(name.as_str()) else {
            wrong.push(format!("{name} is not in the table"));
            continue;
        };
        seen.insert(name.clone());
        for dependency in package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development) {
            let used = short(&dependency.name);
            if dependency.path.is_some() && !allowed.contains(used.as_str()) {
                wrong.push(format!("{name} -> {used}"));
            }
            if PURE.contains(&name.as_str()) && EDGE_LIBRARIES.contains(&dependency.name.as_str()) {
                wrong.push(format!("pure crate {name} -> {}", dependency.name));
            }
        }
    }
    assert!(wrong.is_empty(), "edges that are not in the architecture: {wrong:?}");
    assert_eq!(seen.len(), MAY_USE.len(), "a crate of the table is missing: have {seen:?}");
}

#[test]
fn the_architecture_page_has_a_row_for_every_crate() {
    let page = include_str!("../../../../ARCHITECTURE.md");
    for (name, _) in MAY_USE {
        assert!(page.contains(&format!("| `{name}` |")), "ARCHITECTURE.md has no row for `{name}`");
    }
}

#[test]
fn unsafe_code_lives_in_one_crate() {
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    for entry in std::fs::read_dir(crates).expect("crates/") {
        let path = entry.expect("entry").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        if matches!(name.as_str(), "cage" | "millpond") {
            continue;
        }
        let front = std::fs::read_to_string(path.join("src/lib.rs")).expect("src/lib.rs");
        assert!(front.contains("#![forbid(unsafe_code)]"), "{name} does not forbid unsafe code");
    }
}
