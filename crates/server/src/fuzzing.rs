//! Parsers of this crate, for fuzz targets alone.

use crate::configured_tokens::ConfiguredTokens;
use crate::event_log;
use crate::node_authority::{NodeAuthority, SigningRequest, key_of_certificate};
use crate::vaults::{self, VaultKeys};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Reads bytes as each file that an operator or an earlier life of the server has left, and as what a node sends to join.
/// `directory` is empty.
pub fn look_at(input: &[u8], directory: &Path) {
    if let Ok(text) = std::str::from_utf8(input) {
        let _ = ConfiguredTokens::parse(text);
    }
    let _ = NodeAuthority::parse(input);
    let _ = SigningRequest::read(input);
    let _ = key_of_certificate(input);
    let file = directory.join(vaults::FILE);
    let mut out = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file)
        .expect("an empty directory");
    out.write_all(input).expect("written");
    if let Ok(keys) = VaultKeys::read(&file) {
        assert!(!keys.is_empty(), "a file without a key is refused");
        let sealed = keys.seal(b"record", input).expect("a key and random numbers");
        assert_eq!(keys.open(b"record", &sealed).as_deref(), Ok(input));
        let _ = keys.open(b"record", input);
    }
    let log = directory.join("event-log");
    std::fs::create_dir(&log).expect("made");
    std::fs::write(log.join("1.jsonl"), input).expect("written");
    std::fs::write(log.join("5.jsonl"), input).expect("written");
    event_log::look_through(&log);
}
