//! What the user sees when something is wrong: what it is, what can be done, and an exit code.

use client::ClientError;
use std::io;
use vocab::Failure;

/// Exit codes, as every `--help` says.
pub mod exit {
    /// Done.
    pub const DONE: u8 = 0;
    /// The server refused, or the operation failed.
    pub const FAILED: u8 = 1;
    /// The command line makes no sense.
    pub const USAGE: u8 = 2;
    /// The operation was aborted.
    pub const ABORTED: u8 = 3;
    /// There is no server, or none that can be understood.
    pub const NO_SERVER: u8 = 4;
    /// Ctrl-C.
    pub const INTERRUPTED: u8 = 130;
}

/// Why a command ends early.
#[derive(Debug)]
pub enum CliError {
    /// To be told to the user.
    Told {
        /// What is wrong.
        message: String,
        /// The server's reasons below it.
        reasons: Vec<Failure>,
        /// What can be done.
        hint: Option<String>,
        /// Exit code.
        code: u8,
    },
    /// Everything has been said already; only the exit code is left.
    Silent(u8),
    /// Nobody reads our output any more, which is fine.
    OutputClosed,
}

impl CliError {
    /// The user's mistake.
    pub fn usage(message: impl Into<String>) -> CliError {
        CliError::Told { message: message.into(), reasons: Vec::new(), hint: None, code: exit::USAGE }
    }

    /// Anything else.
    pub fn failed(message: impl Into<String>) -> CliError {
        CliError::Told { message: message.into(), reasons: Vec::new(), hint: None, code: exit::FAILED }
    }

    /// The same with another hint.
    #[must_use]
    pub fn with_hint(mut self, new: impl Into<String>) -> CliError {
        if let CliError::Told { hint, .. } = &mut self {
            *hint = Some(new.into());
        }
        self
    }

    /// What can be done.
    pub fn hint(&self) -> Option<&str> {
        match self {
            CliError::Told { hint, .. } => hint.as_deref(),
            _ => None,
        }
    }

    /// Exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::Told { code, .. } | CliError::Silent(code) => *code,
            CliError::OutputClosed => exit::DONE,
        }
    }

    /// A failed write to stdout.
    pub fn output(error: &io::Error) -> CliError {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::OutputClosed,
            _ => CliError::failed(format!("cannot write the output: {error}")),
        }
    }

    /// The text for stderr, without colours if `plain`.
    pub fn render(&self, colour: bool) -> Option<String> {
        let CliError::Told { message, reasons, hint, .. } = self else { return None };
        let (red, cyan, off) = if colour { ("\x1b[1;31m", "\x1b[36m", "\x1b[0m") } else { ("", "", "") };
        let mut text = format!("{red}error:{off} {message}\n");
        for reason in reasons {
            render_reason(reason, message, 1, &mut text);
        }
        if let Some(hint) = hint {
            text.push_str(&format!("{cyan}hint:{off} {hint}\n"));
        }
        Some(text)
    }
}

/// One line for each reason. One that only repeats what stands above it, with another code for another
/// reader, is left out.
fn render_reason(failure: &Failure, above: &str, depth: usize, text: &mut String) {
    let repeats = above.starts_with(&failure.message);
    if !repeats {
        text.push_str(&format!("{}{} (code {})\n", "  ".repeat(depth), failure.message, failure.code));
    }
    for inner in &failure.inner_errors {
        render_reason(inner, &failure.message, depth + usize::from(!repeats), text);
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> CliError {
        let hint = error.hint();
        match error {
            ClientError::Server(failure) => CliError::Told {
                message: match failure.code {
                    vocab::code::GENERIC => failure.message,
                    code => format!("{} (code {code})", failure.message),
                },
                reasons: failure.inner_errors,
                hint,
                code: exit::FAILED,
            },
            ClientError::Output(error) => CliError::output(&error),
            other => CliError::Told {
                message: other.to_string(),
                reasons: Vec::new(),
                code: match other {
                    ClientError::Connection { .. } | ClientError::Protocol { .. } => exit::NO_SERVER,
                    ClientError::Usage(_) => exit::USAGE,
                    _ => exit::FAILED,
                },
                hint,
            },
        }
    }
}

/// The names that are likely meant by `wanted`, nearest first.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    // One slip for short names, a third of the letters for long ones.
    let allowed = (wanted.chars().count() / 3).max(1);
    let mut close: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let distance = edits(&wanted, &lower);
            let part =
                wanted.len() >= 3 && (lower.contains(&wanted) || wanted.contains(&lower) && lower.len() >= 3);
            (distance <= allowed || part).then_some((distance, name))
        })
        .collect();
    close.sort();
    close.into_iter().map(|(_, name)| name).take(3).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_meant() {
        let names = ["research", "prod", "production", "batch", "analytics"];
        let check =
            |wanted: &str, expected: &[&str]| assert_eq!(nearest(wanted, names), expected, "{wanted}");
        check("reserach", &["research"]);
        check("Prod", &["prod", "production"]);
        check("bach", &["batch"]);
        check("zzz", &[]);
        check("analytic", &["analytics"]);
    }

    #[test]
    fn server_errors_keep_their_reasons() {
        let failure = Failure::coded(500, "No such pool").because(Failure::new("the tree has none"));
        let error = CliError::from(ClientError::Server(failure)).with_hint("look again");
        assert_eq!(error.exit_code(), exit::FAILED);
        assert_eq!(
            error.render(false).as_deref(),
            Some("error: No such pool (code 500)\n  the tree has none (code 1)\nhint: look again\n")
        );
        assert_eq!(CliError::OutputClosed.render(true), None);
    }

    #[test]
    fn what_is_said_twice_is_shown_once() {
        let twice =
            Failure::coded(1915, "No such operation").because(Failure::coded(200, "No such operation"));
        let error = CliError::from(ClientError::Server(twice));
        assert_eq!(error.render(false).as_deref(), Some("error: No such operation (code 1915)\n"));
    }

    #[test]
    fn no_server_has_a_code_of_its_own() {
        let lost = ClientError::Connection { address: "http://x".into(), cause: "refused".into() };
        let error = CliError::from(lost);
        assert_eq!(error.exit_code(), exit::NO_SERVER);
        assert!(error.render(false).unwrap_or_default().contains("millpond up"));
    }
}
