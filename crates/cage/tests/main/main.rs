//! One conformance suite for all drivers on the real kernel, and the drivers on a fake tree.

mod bomb;
mod conformance;
mod fake_tree;
mod isolation;
mod killed_probe;
mod neighbours;
mod oci;
mod proxies;
mod quota;
mod rootless;
mod sockets;
mod storage;
