//! Layers of root file systems: archives of users, unpacked by root. No panic, and nothing outside of the directory is made,
//! changed or removed: contents, mode, owner, times, links and inode of what lies there stay as they were.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// Inode, mode, owner, group, number of links, size, and times of the contents and of the inode.
fn state(path: &Path) -> [i64; 10] {
    let found = path.symlink_metadata().expect("still there");
    let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
    let rest = [found.ino() as i64, found.mode().into(), found.uid().into(), found.gid().into()];
    let [a, b, c, d] = rest;
    let [e, f, g, h] = times;
    [a, b, c, d, found.nlink() as i64, found.size() as i64, e, f, g, h]
}

fuzz_target!(|input: &[u8]| {
    let base = tempfile::tempdir().expect("a directory");
    let (outside, root) = (base.path().join("outside"), base.path().join("root"));
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("file"), "untouched").expect("written");
    std::os::unix::fs::symlink("file", outside.join("link")).expect("made");
    fs::create_dir(&root).expect("made");
    let watched = [base.path().to_owned(), outside.clone(), outside.join("file"), outside.join("link")];
    let before = watched.each_ref().map(|path| state(path));
    let _ = node::fuzzing::unpack_layer(input, &root);
    assert_eq!(watched.each_ref().map(|path| state(path)), before);
    assert_eq!(fs::read_to_string(outside.join("file")).expect("still there"), "untouched");
    assert_eq!(fs::read_dir(&outside).expect("a directory").count(), 2);
    assert_eq!(fs::read_dir(base.path()).expect("a directory").count(), 2);
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).expect("ours");
});
