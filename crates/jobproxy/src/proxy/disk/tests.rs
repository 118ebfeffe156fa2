use super::*;
use std::fs;
use std::os::fd::AsFd;

fn watch(directories: &[&Path], space: Option<i64>, inodes: Option<i64>) -> DiskWatch {
    DiskWatch::of(Bounds { space, inodes }, directories.iter().copied(), Instant::now())
}

fn at_end(directories: &[&Path], space: Option<i64>, inodes: Option<i64>) -> Option<Taken> {
    watch(directories, space, inodes).excess(Instant::now(), true, Vec::new)
}

/// Of a walk while the job runs.
fn soon(watch: &mut DiskWatch, processes: &[u32]) -> Option<Taken> {
    let begun = Instant::now();
    loop {
        let found = watch.excess(Instant::now(), false, || processes.to_vec());
        if found.is_some() || watch.running.is_none() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "the walk does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn too_much_is_found_and_enough_is_not() {
    let sandbox = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(sandbox.path().join("a/b")).expect("made");
    fs::write(sandbox.path().join("a/b/file"), vec![1; 100_000]).expect("written");
    std::os::unix::fs::symlink("/", sandbox.path().join("root")).expect("linked");
    let check = |space, inodes, too_much: bool| {
        let found = at_end(&[sandbox.path()], space, inodes);
        assert_eq!(found.is_some(), too_much, "{space:?} {inodes:?}: {found:?}");
        let found = soon(&mut watch(&[sandbox.path()], space, inodes), &[]);
        assert_eq!(found.is_some(), too_much, "{space:?} {inodes:?}: {found:?}");
    };
    check(None, None, false);
    check(Some(200_000), Some(4), false);
    check(Some(90_000), None, true);
    check(None, Some(3), true);
    check(Some(0), None, true);
}

#[test]
fn it_looks_at_its_times_and_at_the_end() {
    let sandbox = tempfile::tempdir().expect("a directory");
    fs::write(sandbox.path().join("file"), vec![1; 10_000]).expect("written");
    let now = Instant::now();
    let mut watch = watch(&[sandbox.path()], Some(1), None);
    watch.next = now + PERIOD;
    assert_eq!(watch.excess(now, false, Vec::new), None);
    assert!(watch.running.is_none(), "it is not time");
    assert!(watch.excess(now, true, Vec::new).is_some());
    assert_eq!(at_end(&[Path::new("/no/such/place")], Some(0), None), None);
}

/// Deeper than any path can name.
#[test]
fn a_tree_of_any_depth_is_counted() {
    let sandbox = tempfile::tempdir().expect("a directory");
    let name = "d".repeat(200);
    let mut at = OwnedFd::from(File::open(sandbox.path()).expect("there"));
    let mut levels = vec![];
    for _ in 0..100 {
        rustix::fs::mkdirat(&at, &name, rustix::fs::Mode::RWXU).expect("made");
        let flags = rustix::fs::OFlags::DIRECTORY;
        let inner = rustix::fs::openat(&at, &name, flags, rustix::fs::Mode::empty()).expect("made");
        levels.push(std::mem::replace(&mut at, inner));
    }
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    let file = rustix::fs::openat(&at, "file", flags, rustix::fs::Mode::RUSR).expect("made");
    std::io::Write::write_all(&mut File::from(file), &vec![1; 100_000]).expect("written");
    assert_eq!(at_end(&[sandbox.path()], Some(200_000), Some(101)), None);
    assert!(at_end(&[sandbox.path()], Some(90_000), None).is_some());
    assert!(at_end(&[sandbox.path()], None, Some(100)).is_some());
    // From the bottom, for whoever removes the rest by paths.
    rustix::fs::unlinkat(&at, "file", rustix::fs::AtFlags::empty()).expect("removed");
    while let Some(above) = levels.pop() {
        rustix::fs::unlinkat(above.as_fd(), &name, rustix::fs::AtFlags::REMOVEDIR).expect("removed");
    }
}

#[test]
fn files_without_a_name_are_counted_where_they_are_open() {
    let sandbox = tempfile::tempdir().expect("a directory");
    let path = sandbox.path().join("file");
    fs::write(&path, vec![1; 100_000]).expect("written");
    let held = File::open(&path).expect("there");
    fs::remove_file(&path).expect("removed");
    let look = |processes: &[u32]| soon(&mut watch(&[sandbox.path()], Some(90_000), None), processes);
    assert_eq!(look(&[]), None);
    assert!(look(&[std::process::id()]).is_some());
    drop(held);
    assert_eq!(look(&[std::process::id()]), None);
}

/// A root file system that the job can write to is disk as well.
#[test]
fn all_directories_count_together() {
    let [a, b] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    for directory in [&a, &b] {
        fs::write(directory.path().join("file"), vec![1; 100_000]).expect("written");
    }
    assert_eq!(at_end(&[a.path()], Some(150_000), None), None);
    assert!(at_end(&[a.path(), b.path()], Some(150_000), None).is_some());
}

fn kept(directory: &Path) -> Kept {
    let quota = crate::protocol::DiskQuota { project: 0x7fff_0002, own_space: 4096, own_inodes: 1 };
    Kept::open(directory, quota).expect("it is there")
}

/// A write is refused as a whole, so something is left when nothing more fits.
#[test]
fn a_bound_is_reached_when_hardly_anything_is_left() {
    let sandbox = tempfile::tempdir().expect("a directory");
    let check = |(space, inodes), taken: (i64, i64), want: bool| {
        let mut watch = watch(&[sandbox.path()], space, inodes);
        assert_eq!(watch.filled(), None, "nobody keeps it");
        watch.kept = Some((kept(sandbox.path()), Taken { space: taken.0, inodes: taken.1 }));
        assert_eq!(watch.filled().is_some(), want, "{space:?} {inodes:?}: {taken:?}");
    };
    check((Some(1_000_000), None), (1_000_000, 9), true);
    check((Some(1_000_000), None), (940_000, 9), true);
    check((Some(1_000_000), None), (930_000, 9), false);
    check((Some(1 << 40), None), ((1 << 40) - (2 << 20), 9), true);
    check((Some(1 << 40), None), ((1 << 40) - (3 << 20), 9), false);
    check((Some(0), None), (0, 0), true);
    check((None, Some(5)), (1 << 40, 4), false);
    check((None, Some(5)), (0, 5), true);
    check((Some(1 << 40), Some(5)), (0, 4), false);
}

#[test]
fn walks_take_over_when_the_kernel_does_not_count() {
    // In memory: no kernel that this is for has quotas of projects there.
    let Ok(sandbox) = tempfile::tempdir_in("/dev/shm") else {
        return println!("SKIPPED a kernel that does not count: no /dev/shm");
    };
    fs::write(sandbox.path().join("file"), vec![1; 100_000]).expect("written");
    let mut watch = watch(&[sandbox.path()], Some(90_000), None);
    watch.kept = Some((kept(sandbox.path()), Taken::default()));
    assert!(watch.excess(Instant::now(), true, Vec::new).is_some_and(|taken| taken.space >= 100_000));
    assert!(watch.kept.is_none() && watch.filled().is_none());
}
