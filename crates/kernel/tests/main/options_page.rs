//! `docs/options.md` and the code know the same options.

use scheduler::config::{OptionInfo, PoolConfig, SchedulerConfig, TreeConfig};
use std::collections::{BTreeMap, BTreeSet};
use vocab::OperationType;
use yson::{Map, Value};

fn read(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Rows of the tables of a section: names, and the type.
fn rows(section: &str) -> BTreeMap<Vec<String>, String> {
    let page = read("docs/options.md");
    let (_, rest) = page.split_once(&format!("\n## {section}\n")).expect("the section is there");
    let section = rest.split("\n## ").next().unwrap_or(rest);
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 4, "four cells: {line}");
        assert!(!cells[2].is_empty() && !cells[3].is_empty(), "default and effect are said: {line}");
        let names = cells[0].split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (names, cells[1].to_owned())
    })
    .collect()
}

/// What is allowed, as the page writes it.
fn short(allowed: &str) -> String {
    let allowed = allowed.replace(" (milliseconds, or a string such as \"10s\")", "");
    let whole = [
        ("", "anything"),
        ("a boolean formula over node tags", "formula over node tags"),
        ("a duration of at least 0s", "duration"),
        ("a map of resources to amounts of at least 0", "map of resources"),
    ];
    if let Some((_, short)) = whole.iter().find(|(long, _)| *long == allowed) {
        return (*short).to_owned();
    }
    let starts = [
        ("a duration of at least ", "duration >= "),
        ("an integer of at least ", "integer >= "),
        ("a finite number of at least ", "number >= "),
        ("a finite number greater than ", "number > "),
        ("one of ", ""),
        ("an ", ""),
        ("a ", ""),
    ];
    let (long, short) = starts.iter().find(|(long, _)| allowed.starts_with(long)).expect("a known form");
    let rest = &allowed[long.len()..];
    format!("{short}{rest}").replace("..=", "..").replace(" in ", " ").replace('"', "`")
}

fn check(section: &str, options: Vec<OptionInfo>) {
    let known: BTreeMap<Vec<String>, String> =
        options.into_iter().map(|o| (o.names, short(&o.allowed))).collect();
    let page = rows(section);
    for (names, allowed) in &known {
        let said = page.get(names).unwrap_or_else(|| panic!("{section}: no row for {names:?}: {allowed}"));
        assert_eq!(said, allowed, "{section}: {names:?}");
    }
    let unknown: Vec<_> = page.keys().filter(|names| !known.contains_key(*names)).collect();
    assert!(unknown.is_empty(), "{section}: the code knows no option {unknown:?}");
}

#[test]
fn trees_pools_and_the_scheduler() {
    check("Pool tree", TreeConfig::options());
    check("Pool", PoolConfig::options());
    check("Scheduler", SchedulerConfig::options());
}

/// Does the reader of specs look at this option? It is given as "not set", so any option may be.
fn is_known(name: &str) -> bool {
    let task = yson::map! {"command" => "true", "job_count" => 1i64};
    let spec = yson::map! {"tasks" => yson::map! {"t" => task}, name => Value::Entity};
    let parsed = controller::spec::parse(OperationType::Vanilla, &spec, &Default::default());
    !parsed.expect("nothing is wrong with it").unrecognized.contains(name)
}

#[test]
fn specifications() {
    let page: BTreeSet<String> = rows("Operation").into_keys().flatten().collect();
    for name in &page {
        assert!(is_known(name), "no reader of specs knows {name:?}");
    }
    // The other way round: whatever the reader of scheduling options spells out and looks at.
    let source = read("crates/controller/src/spec/scheduling.rs");
    let code = source.split("#[cfg(test)]").next().unwrap_or(&source);
    let literals = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let literals = literals.flat_map(|line| line.split('"').skip(1).step_by(2));
    let is_name = |text: &&str| text.len() > 2 && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let missing: BTreeSet<&str> =
        literals.filter(is_name).filter(|name| is_known(name) && !page.contains(*name)).collect();
    assert!(missing.is_empty(), "not in docs/options.md: {missing:?}");
}

/// Defaults of the page that are plain values are those of the code.
#[test]
fn defaults() {
    let of = |section: &str| -> BTreeMap<String, String> {
        let page = read("docs/options.md");
        let (_, rest) = page.split_once(&format!("\n## {section}\n")).expect("the section is there");
        let section = rest.split("\n## ").next().unwrap_or(rest).to_owned();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        rows.map(|line| {
            let cells: Vec<&str> = line.split(" | ").collect();
            let name = cells[0].split('`').nth(1).unwrap_or_default();
            (name.to_owned(), cells[2].trim_matches('`').to_owned())
        })
        .collect()
    };
    // A default that is written out changes nothing: the two configurations are one.
    let tree = |options: &Map| TreeConfig {
        specified: Map::new(),
        ..TreeConfig::parse(options).expect("a good default").0
    };
    let scheduler = |options: &Map| SchedulerConfig {
        specified: Map::new(),
        ..SchedulerConfig::parse(options).expect("a good default").0
    };
    let plain = |text: &str| -> Option<Value> {
        let text = match text {
            "true" | "false" => format!("%{text}"),
            _ if text.ends_with('s') && text.as_bytes()[0].is_ascii_digit() => format!("\"{text}\""),
            _ if text.parse::<f64>().is_ok() || text == "{}" => text.to_owned(),
            _ => return None,
        };
        yson::parse(text.as_bytes()).ok()
    };
    let mut checked = 0;
    for (name, default) in of("Pool tree") {
        if let Some(value) = plain(&default) {
            let given = Map::from_iter([(name.as_str(), value)]);
            assert_eq!(tree(&given), tree(&Map::new()), "{name} = {default}");
            checked += 1;
        }
    }
    for (name, default) in of("Scheduler") {
        if let Some(value) = plain(&default) {
            let given = Map::from_iter([(name.as_str(), value)]);
            assert_eq!(scheduler(&given), scheduler(&Map::new()), "{name} = {default}");
            checked += 1;
        }
    }
    assert!(checked > 60, "only {checked} defaults could be read");
}
