//! The HTTP API that the public `yt` client speaks (http-api.md 0-4, 8): it parses, authorises,
//! forwards and formats, and contains no rule of scheduling.
//!
//! ```text
//! connection --> transport --> commands --> Backend
//!                (headers,     (one table   (the server: kernel,
//!                 formats,      entry per    store, files)
//!                 errors)       command)
//! ```
//!
//! Where to start: [`commands::TABLE`] lists every command that is served; adding one is adding an
//! entry. [`Backend`] is what the server implements. `transport::command` is the life of a request.
//! [`Api::router`] gives the routes, [`serve`] runs them on a listener.
//!
//! What it does not do: it keeps no state between requests (replies by mutation id are the kernel's),
//! it never waits for anything but the network and the backend, and it never answers 500 or 503,
//! because clients repeat such requests for minutes.
#![forbid(unsafe_code)]

mod api;
pub mod auth;
pub mod backend;
mod batch;
pub mod commands;
mod job_commands;
mod limits;
mod openapi;
pub mod secrets;
mod transport;

pub use api::{Api, Settings};
pub use auth::{Authenticator, Credentials, OpenAccess, Proof, Session};
pub use backend::{
    Answer, Backend, BoxFuture, ByteStream, FileContent, JobData, JobDataRequest, JobShellRequest, ReadFile,
    ReadTable, StderrRequest, TableContent, WriteFile, WriteTable,
};
pub use commands::{is_command, is_question};
pub use limits::RequestLimits;
pub use openapi::document as openapi;
pub use transport::{Doors, Grace, Hangup, InFlightLimits, NodeDoor, NodeLink, Peer, Tls, serve};
