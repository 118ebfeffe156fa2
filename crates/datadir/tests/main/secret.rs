//! S2: keys and tokens that others can read are refused.

use super::set_mode;
use std::os::unix::fs::{chown, symlink};

fn refused(path: &std::path::Path) -> Option<String> {
    datadir::read_secret(path).err().map(|error| error.to_string())
}

#[test]
fn a_secret_is_closed_to_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, link) = (directory.path().join("key"), directory.path().join("link"));
    std::fs::write(&file, "secret").expect("written");
    symlink(&file, &link).expect("linked");
    for mode in [0o600, 0o400, 0o640] {
        set_mode(&file, mode);
        assert_eq!(datadir::read_secret(&file).expect("closed"), b"secret", "{mode:o}");
        assert_eq!(datadir::read_secret(&link).expect("closed"), b"secret", "{mode:o}");
    }
    for mode in [0o644, 0o604, 0o602, 0o601] {
        set_mode(&file, mode);
        let error = refused(&file).expect("open");
        assert!(
            error.contains(&format!("key has mode {mode:04o}")) && error.contains("chmod 600"),
            "{error}"
        );
        assert!(refused(&link).is_some());
    }
    assert!(refused(&directory.path().join("none")).is_some_and(|error| error.starts_with("cannot read")));
}

#[test]
fn a_group_that_is_not_ours_is_others() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: only root can give files to other groups");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("key");
    std::fs::write(&file, "secret").expect("written");
    chown(&file, None, Some(12_345)).expect("root may");
    set_mode(&file, 0o640);
    assert!(refused(&file).is_some_and(|error| error.contains("group 12345")));
    set_mode(&file, 0o600);
    assert_eq!(refused(&file), None);
    chown(&file, Some(12_345), None).expect("root may");
    assert!(refused(&file).is_some_and(|error| error.contains("owner 12345")), "its owner can replace it");
}
