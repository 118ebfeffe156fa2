//! HTTP itself: routes, headers, formats, encodings, errors.
//!
//! [`command`] is the life of a request to `/api/v4/<command>`; the other modules are its parts, in
//! the order in which it uses them.

mod command;
mod crowd;
mod doors;
mod origin;
mod own;
mod routes;
mod serve;
mod session;
mod stream;
mod tls;

mod headers;
mod query;

mod body;
mod encoding;
mod formats;

mod failure;
mod in_flight;
mod metered;
mod reply;
mod trailers;

pub use doors::{Doors, Hangup, NodeDoor, NodeLink};
pub(crate) use failure::panic_failure;
pub use in_flight::InFlightLimits;
pub(crate) use in_flight::{Counted, InFlight, Reservation};
pub(crate) use reply::away_if;
pub use serve::{Grace, Peer, serve};
pub use tls::Tls;
