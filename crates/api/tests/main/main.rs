//! The API over a fake backend, spoken to through real sockets.

mod fake;
mod http;
mod own;

mod access;
mod batch;
mod bytes;
mod contract;
mod files;
mod grace;
mod panics;
mod recorded;
mod stream;
mod tokens;
mod unread;
mod version3;
