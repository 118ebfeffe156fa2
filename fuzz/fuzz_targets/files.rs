//! Files of the data directories of servers and nodes: tokens of the configuration, keys of vaults and encrypted vaults, the
//! event log, certificates and keys; what a node sends to join. No panic, and a vault that is encrypted comes back.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let directory = tempfile::tempdir().expect("a directory");
    server::fuzzing::look_at(input, directory.path());
    node::fuzzing::look_at(input);
});
