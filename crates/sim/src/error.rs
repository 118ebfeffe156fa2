//! What is wrong with an input: where it stands, what is there, what is allowed.

use std::path::Path;
use yson::fields::FieldError;

/// See the module page.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}{}: {}{message}", line_part(.line), pointer_part(.pointer))]
pub struct SimError {
    /// The file, as it was named.
    pub file: String,
    /// Line, from 1, of files that are read line by line.
    pub line: Option<u64>,
    /// JSON pointer (RFC 6901); empty: the whole file or line.
    pub pointer: String,
    /// What is wrong, with the value and what is allowed.
    pub message: String,
}

fn line_part(line: &Option<u64>) -> String {
    line.map_or(String::new(), |line| format!(", line {line}"))
}

fn pointer_part(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!("{pointer}: ") }
}

impl SimError {
    /// About a whole file.
    pub fn file(path: &Path, message: impl Into<String>) -> SimError {
        let file = path.display().to_string();
        SimError { file, line: None, pointer: String::new(), message: message.into() }
    }

    /// About an option in a file.
    pub fn field(path: &Path, line: Option<u64>, error: FieldError) -> SimError {
        // The reader names the option in its sentence; the pointer says it already.
        let prefix = format!("option \"{}\": ", error.path);
        let message = error.message.strip_prefix(&prefix).unwrap_or(&error.message).to_owned();
        let pointer = if error.path.is_empty() { String::new() } else { format!("/{}", error.path) };
        SimError { file: path.display().to_string(), line, pointer, message }
    }
}
