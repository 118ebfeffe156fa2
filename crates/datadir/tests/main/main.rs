//! S2, S3: only the user of the process can read a data directory, for every umask and for directories of earlier releases.

mod secret;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("ours");
}

#[test]
fn a_new_directory_is_closed() {
    let root = tempfile::tempdir().expect("a directory");
    let data = root.path().join("deep/data");
    let was_open = datadir::take(&data, &|_| false).expect("made");
    assert_eq!((mode(&data), was_open.count, was_open.warning(&data)), (0o700, 0, None));
}

#[test]
fn what_was_open_is_closed_and_told() {
    let root = tempfile::tempdir().expect("a directory");
    let (data, outside) = (root.path().join("data"), root.path().join("outside"));
    for directory in [&data, &data.join("blobs"), &data.join("sandbox"), &outside] {
        fs::create_dir(directory).expect("made");
        set_mode(directory, 0o755);
    }
    let (blob, own, script, other) =
        (data.join("blobs/1"), data.join("sandbox/file"), data.join("script"), outside.join("file"));
    for file in [&blob, &own, &script, &other] {
        fs::write(file, "x").expect("written");
        set_mode(file, 0o644);
    }
    set_mode(&script, 0o755);
    symlink(&outside, data.join("link")).expect("linked");
    let sandbox = data.join("sandbox");
    let was_open = datadir::take(&data, &|path| path == sandbox).expect("ours");
    let modes =
        [&data, &data.join("blobs"), &blob, &script, &sandbox, &own, &outside, &other].map(|path| mode(path));
    assert_eq!(modes, [0o700, 0o700, 0o600, 0o700, 0o755, 0o644, 0o755, 0o644]);
    assert_eq!(was_open.count, 4);
    assert!(was_open.warning(&data).is_some_and(|text| text.contains("4 files and directories")));
    assert_eq!(datadir::take(&data, &|path| path == sandbox).expect("ours").count, 0);
}

#[test]
fn a_directory_of_somebody_else_is_refused() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can give directories away");
        return;
    }
    let root = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::chown(root.path(), Some(12_345), None).expect("root may");
    let error = datadir::take(root.path(), &|_| false).expect_err("refused").to_string();
    assert!(error.contains("belongs to user 12345, not to user 0"), "{error}");
    assert_ne!(mode(root.path()) & 0o700, 0, "nothing was changed");
}

/// S3.
#[test]
fn announced_directories_are_known_until_they_are_removed() {
    let root = tempfile::tempdir().expect("a directory");
    let data = root.path().join("data");
    datadir::take(&data, &|_| false).expect("made");
    let data = data.canonicalize().expect("it is there");
    for _ in 0..2 {
        datadir::announce(&data).expect("announced");
        assert_eq!(datadir::announced().iter().filter(|path| **path == data).count(), 1);
    }
    fs::remove_dir(&data).expect("empty");
    assert!(!datadir::announced().contains(&data));
}

/// Mount points have `lost+found`, and operators copy files as root.
#[test]
fn what_belongs_to_others_is_left_and_told() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: only root can give directories away");
    }
    let root = tempfile::tempdir().expect("a directory");
    let foreign = root.path().join("lost+found");
    fs::create_dir(&foreign).expect("made");
    std::os::unix::fs::chown(&foreign, Some(12_345), None).expect("root may");
    set_mode(&foreign, 0o755);
    let was_open = datadir::take(root.path(), &|_| false).expect("ours");
    assert_eq!((mode(root.path()), mode(&foreign)), (0o700, 0o755));
    assert!(was_open.warning(root.path()).is_some_and(|text| text.contains("lost+found")));
}

/// S3: another user may have put a link, or a directory of his own, where ours is to be.
#[test]
fn a_private_directory_is_ours() {
    let root = tempfile::tempdir().expect("a directory");
    let (private, link) = (root.path().join("private"), root.path().join("link"));
    for open in [false, true] {
        datadir::private_directory(&private).expect("ours");
        assert_eq!(mode(&private), 0o700);
        if !open {
            set_mode(&private, 0o755);
        }
    }
    symlink(&private, &link).expect("linked");
    datadir::private_directory(&link).expect_err("a link");
    datadir::private_directory(&root.path().join("none/private")).expect_err("no parent");
}

/// S3: what lies below a door belongs to users of jobs, and so may the door itself.
#[test]
fn doors_are_closed_and_what_lies_behind_them_is_left() {
    let root = tempfile::tempdir().expect("a directory");
    let data = root.path().join("data");
    let [sandbox, files, cache] = ["slots/3/sandbox", "slots/3/files", "cache"].map(|name| data.join(name));
    for directory in [&sandbox, &files, &cache] {
        fs::create_dir_all(directory).expect("made");
        set_mode(directory, 0o755);
    }
    let [inside, cached] = [sandbox.join("file"), cache.join("file")];
    for file in [&inside, &cached] {
        fs::write(file, "x").expect("written");
        set_mode(file, 0o644);
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&sandbox, Some(12_345), Some(12_345)).expect("root may");
    }
    let care = |path: &Path| match path.to_str() {
        Some("slots/3/sandbox") => datadir::Care::Door { permitted: 0 },
        Some("slots/3/files") => datadir::Care::Door { permitted: 0o011 },
        Some("cache/file") => datadir::Care::Nothing,
        _ => datadir::Care::Whole,
    };
    let was_open = datadir::take_with(&data, &care).expect("ours");
    let modes = [&data.join("slots/3"), &sandbox, &inside, &files, &cache, &cached].map(|path| mode(path));
    assert_eq!(modes, [0o700, 0o700, 0o644, 0o711, 0o700, 0o644]);
    assert!(was_open.warning(&data).is_some_and(|text| text.contains("were open")));
    let again = datadir::take_with(&data, &care).expect("ours");
    assert_eq!((again.count, again.foreign), (0, None));
}
