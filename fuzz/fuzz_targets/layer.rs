//! Layers of root file systems: archives of users, unpacked by root. No panic, and nothing outside of the directory is made,
//! changed or removed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

fuzz_target!(|input: &[u8]| {
    let base = tempfile::tempdir().expect("a directory");
    let (outside, root) = (base.path().join("outside"), base.path().join("root"));
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("file"), "untouched").expect("written");
    fs::create_dir(&root).expect("made");
    let _ = node::fuzzing::unpack_layer(input, &root);
    assert_eq!(fs::read_to_string(outside.join("file")).expect("still there"), "untouched");
    let mode = outside.join("file").metadata().expect("there").permissions().mode();
    assert_eq!(mode & 0o7777 & !0o666, 0, "mode {mode:o}");
    assert_eq!(fs::read_dir(&outside).expect("a directory").count(), 1);
    assert_eq!(fs::read_dir(base.path()).expect("a directory").count(), 2);
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).expect("ours");
});
