//! Why a line is refused.

/// A case that cannot be computed: the place in its line, what is there, what would have been taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{}{message}", .pointer, if .pointer.is_empty() { "" } else { ": " })]
pub struct Refusal {
    /// JSON pointer (RFC 6901) into the line; empty if it is about the whole line.
    pub pointer: String,
    /// One sentence: what was expected and what was found.
    pub message: String,
}
