//! A small blocking client of the HTTP API (http-api.md 2, 3, 8).
//!
//! ```ignore
//! let client = Client::new("127.0.0.1:8000", None)?;
//! let id = client.start_operation(OperationType::Vanilla, spec)?;
//! let state = client.get_operation(&id.to_string(), Some(&["state"]))?;
//! ```
//!
//! Every request ends in [`Client::command`] (values), [`Client::upload`] or [`Client::download`]
//! (streams): they choose the HTTP method from the [table of commands](commands), put the
//! parameters where they fit, speak binary YSON both ways, turn replies of every kind into a value
//! or a [`ClientError`], and repeat what failed on the way and may be repeated. The typed methods
//! in [`tree`], [`operations`], [`jobs`] and [`files`] add names of parameters and nothing else;
//! what has no method here is one call of `command` away.
//!
//! What it is not: no proxies, no async, no cache. It renders nothing; the command line
//! does.
#![forbid(unsafe_code)]

pub mod commands;
pub mod error;
pub mod files;
pub mod jobs;
pub mod node_identities;
pub mod operations;
pub mod questions;
pub mod tokens;
mod tree;

mod address;
mod headers;
mod mutation;
mod reply;
mod request;
mod trust;

pub use error::ClientError;
pub use files::WriteFileOptions;
pub use questions::{EventFilter, EventsFrom, EventsPage};
pub use request::{Client, Retries};
pub use tree::CreateFlags;
pub use trust::authorities;
