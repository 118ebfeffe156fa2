//! The exec node's process: acts for [`nodecore`].
//!
//! ```text
//!   server  <-- gRPC stream -->  link ----+
//!                                         v
//!   [`agent`]:  news --> NodeCore::handle --> effects --> [`hands::Hands`] --> news --> ...
//!                                         ^
//!   proxies <-- unix socket -->  real ----+    spawner, sandboxes, file cache, records
//! ```
//!
//! One thread, one loop, one queue: whatever happens becomes a piece of news in the queue, the core
//! decides, the hands act. What may take long (downloads, killing, deleting trees) runs beside the
//! loop and ends as another piece of news.
//!
//! [`run`] is the whole process, [`spawn`] the same in a thread of another one. Both return only when
//! the node has ended, and leave jobs running unless told otherwise: proxies do not need us.
//!
//! No rule of a job's life is here; `nodecore` has them all. No cgroup either; that is `cage`.
//!
//! Where to start: [`config`], [`agent`], then `real`.
#![forbid(unsafe_code)]

pub mod agent;
pub mod config;
pub mod hands;

mod accounting;
mod error;
mod holder;
mod identity;
mod isolation;
mod join;
mod link;
mod listener;
mod real;
mod start;

pub use accounting::Accounting;
pub use config::{DriverChoice, NodeConfig};
pub use error::NodeError;
pub use isolation::{IsolationChoice, RoomOptions, SharedDirectory};
pub use jobproxy::protocol::ThrashingDetector;
pub use join::join;
pub use start::{NodeHandle, Stop, run, spawn};

/// For fuzz targets alone.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::real::unpack_layer;

    /// Reads bytes as the identity of a node.
    pub fn look_at(input: &[u8]) {
        let _ = crate::identity::Identity::parse(input);
    }
}
