//! `--help` of every command. The snapshot is a file: it is the manual.

use clap::CommandFactory;
use cli::Cli;
use expect_test::expect_file;

/// Every command with its path, parents first.
fn all(command: &clap::Command, path: &str, out: &mut Vec<(String, clap::Command)>) {
    let path = format!("{path}{}", command.get_name());
    out.push((path.clone(), command.clone()));
    for sub in command.get_subcommands().filter(|c| c.get_name() != "help") {
        all(sub, &format!("{path} "), out);
    }
}

fn commands() -> Vec<(String, clap::Command)> {
    let mut root = Cli::command().term_width(100);
    root.build();
    let mut out = Vec::new();
    all(&root, "", &mut out);
    out
}

#[test]
fn the_manual() {
    let mut text = String::new();
    for (path, command) in commands() {
        // The global options are the same everywhere: they stand under the first command.
        let mut command = command.bin_name(path.clone());
        if path != "millpond" {
            command = command.mut_args(|a| if a.is_global_set() { a.hide(true) } else { a });
        }
        text.push_str(&format!("=== {path}\n\n{}\n\n", command.render_long_help().to_string().trim_end()));
    }
    let text: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    expect_file!["help.txt"].assert_eq(&text);
}

#[test]
fn every_command_has_examples_and_exit_codes() {
    for (path, command) in commands() {
        if command.has_subcommands()
            && !command.get_arguments().any(|a| a.get_id() == "server")
            && path != "millpond"
        {
            continue;
        }
        if path == "millpond version" {
            continue;
        }
        let help = command.clone().render_long_help().to_string();
        assert!(help.contains("Exit codes:"), "{path} says nothing of exit codes");
        assert!(help.contains("Examples:") || path == "millpond", "{path} has no examples");
        assert!(command.get_about().is_some(), "{path} says nothing of itself");
    }
}

#[test]
fn examples_parse() {
    use clap::Parser;
    let mut seen = 0;
    for (path, command) in commands() {
        let epilogue = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in epilogue
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("millpond ") && !line.contains("$("))
        {
            let line = line.split(" | ").next().unwrap_or(line).split(" > ").next().unwrap_or(line);
            let line = line.split("   ").next().unwrap_or(line);
            let words = split(line);
            // A file that is not there is not a mistake of the command line.
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{path}: the example {line:?} does not parse: {error}");
            }
            seen += 1;
        }
    }
    assert!(seen > 40, "only {seen} examples were found");
}

/// Words as a shell sees them, as far as examples need it.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(q), c) if q == c => quote = None,
            (None, ' ') => words.push(String::new()),
            (_, c) => words.last_mut().expect("never empty").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
