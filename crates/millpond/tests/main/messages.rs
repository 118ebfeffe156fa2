//! The texts of errors and alerts, as the sources have them.

use std::fs;
use std::path::{Path, PathBuf};

/// Blanks that the indentation of a second line has at least.
const INDENTATION: usize = 8;
/// Characters of a line that `cargo fmt` could not break because a text is longer. Tables and figures in texts are narrower.
const UNBROKEN: usize = 150;

/// A text over two lines needs a backslash at the end of the first. Without one its readers see the indentation, and once the
/// lines are joined nothing warns of it.
#[test]
fn no_message_has_the_indentation_of_its_second_line_in_it() {
    let mut found = Vec::new();
    let mut seen = 0;
    for file in sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))) {
        let text = fs::read_to_string(&file).expect("a source");
        seen += 1;
        let odd = text.lines().enumerate().filter(|(_, line)| has_indentation_inside(line));
        found.extend(odd.map(|(number, line)| format!("{}:{}: {}", file.display(), number + 1, line.trim())));
    }
    assert!(seen > 300, "{seen} sources: the search looks in the wrong place");
    assert!(found.is_empty(), "{found:#?}");
}

fn has_indentation_inside(line: &str) -> bool {
    let text = line.trim_start();
    if line.chars().count() < UNBROKEN || text.starts_with("//") {
        return false;
    }
    let blanks = " ".repeat(INDENTATION);
    text.match_indices(&blanks).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at..].trim_start_matches(' ').chars().next();
        before.is_some_and(|c| c.is_alphabetic() || ",.;:".contains(c))
            && after.is_some_and(|c| c.is_alphabetic() || c == '`')
    })
}

#[test]
fn the_search_finds_such_a_message() {
    let message = |gap: &str| {
        format!("            \"{}: correct it, or make{gap}the token again\"", "x".repeat(UNBROKEN))
    };
    assert!(has_indentation_inside(&message(&" ".repeat(18))));
    assert!(!has_indentation_inside(&message(" ")));
}

/// All Rust files below the crates.
fn sources(crates: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), Vec::new());
    for member in fs::read_dir(crates).expect("the crates") {
        open.push(member.expect("readable").path().join("src"));
    }
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}
