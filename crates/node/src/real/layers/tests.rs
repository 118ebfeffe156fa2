use super::*;
use rustix::fs::{FileType, Mode};
use std::os::unix::fs::MetadataExt;

/// `kind` is `d`, `f`, `l` (symbolic link), `h` (hard link), `c` (device).
fn archive(entries: &[(char, &str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (kind, name, content) in entries {
        let mut header = tar::Header::new_gnu();
        // By hand: the builder refuses the names that are tested here.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_mode(if *kind == 'd' { 0o755 } else { 0o4755 });
        header.set_uid(1234);
        let data: &[u8] = if *kind == 'f' { content.as_bytes() } else { &[] };
        header.set_size(data.len() as u64);
        header.set_entry_type(match kind {
            'd' => tar::EntryType::Directory,
            'f' => tar::EntryType::Regular,
            'l' => tar::EntryType::Symlink,
            'h' => tar::EntryType::Link,
            'c' => tar::EntryType::Block,
            other => panic!("unknown kind {other}"),
        });
        if matches!(kind, 'l' | 'h') {
            header.as_old_mut().linkname[..content.len()].copy_from_slice(content.as_bytes());
        }
        header.set_cksum();
        tar.append(&header, data).expect("in memory");
    }
    tar.into_inner().expect("in memory")
}

/// Bytes of unpacked layers.
const LIMIT: u64 = 100_000;

struct Bench {
    directory: tempfile::TempDir,
    layers: Layers,
}

fn artifact(number: u32) -> Artifact {
    Artifact {
        file_id: vocab::ObjectId(vocab::Guid([number, 2, 3, 4])),
        revision: 7,
        size: 1,
        file_name: "layer.tar".to_owned(),
        executable: false,
        bypass_cache: false,
    }
}

impl Bench {
    fn new() -> Bench {
        let directory = tempfile::tempdir().expect("a directory");
        let remover = Remover::start().expect("started");
        let layers = Layers::open(&directory.path().join("layers"), LIMIT, remover).expect("opened");
        fs::write(directory.path().join("victim"), "safe").expect("written");
        Bench { directory, layers }
    }
    fn unpack(&self, bytes: &[u8]) -> Result<PathBuf, Failure> {
        self.unpack_as(1, bytes)
    }
    fn unpack_as(&self, number: u32, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let archive = self.directory.path().join("archive");
        fs::write(&archive, bytes).expect("written");
        let artifact = artifact(number);
        self.layers.unpack(&artifact, &archive)?;
        Ok(self.layers.path(&artifact))
    }
    /// What is in the directory, when everything that was thrown away is gone.
    fn names(&self) -> Vec<String> {
        loop {
            let entries = fs::read_dir(self.directory.path().join("layers")).expect("readable");
            let mut names: Vec<String> =
                entries.map(|e| e.expect("readable").file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            if !names.iter().any(|name| name.starts_with(OLD)) {
                return names;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

#[test]
fn an_archive_becomes_a_tree() {
    for compressed in [false, true] {
        let bench = Bench::new();
        let mut bytes = archive(&[
            ('d', "./", ""),
            ('d', "usr/bin", ""),
            ('l', "bin", "usr/bin"),
            ('f', "bin/tool", "in usr"),
            ('l', "abs", "/usr/bin"),
            ('f', "/abs/other", "in usr too"),
            ('h', "usr/again", "bin/tool"),
            ('f', "deep/er/file", "1"),
            ('f', "deep/er/file", "2"),
            ('c', "usr/disk", ""),
        ]);
        if compressed {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            io::Write::write_all(&mut gzip, &bytes).expect("in memory");
            bytes = gzip.finish().expect("in memory");
        }
        let root = bench.unpack(&bytes).expect("unpacked");
        let read = |name: &str| fs::read_to_string(root.join(name)).expect(name);
        assert_eq!((read("usr/bin/tool"), read("usr/bin/other")), ("in usr".into(), "in usr too".into()));
        assert_eq!((read("usr/again"), read("deep/er/file")), ("in usr".into(), "2".into()));
        assert!(!root.join("usr/disk").exists());
        let tool = fs::metadata(root.join("usr/bin/tool")).expect("it is there");
        assert_eq!((tool.mode() & 0o7777, tool.nlink()), (0o755, 2));
        assert_ne!(tool.uid(), 1234);
        assert_eq!(fs::metadata(root.parent().expect("it has one")).expect("there").mode() & 0o777, 0o700);
        // Another job, the same layer: nothing is done again.
        fs::remove_file(root.join("usr/again")).expect("removed");
        bench.unpack(b"no archive any more").expect("unpacked before");
        assert!(!root.join("usr/again").exists());
    }
}

#[test]
fn nothing_reaches_outside() {
    let check = |entries: &[(char, &str, &str)], words: &str| {
        let bench = Bench::new();
        let error = bench.unpack(&archive(entries)).expect_err(words);
        assert!(error.to_string().contains(words), "{words:?} is not in {error}");
        assert!(error.find_attribute("user_fault").is_some(), "{error}");
        let victim = bench.directory.path().join("victim");
        assert_eq!(fs::read_to_string(victim).expect("it is there"), "safe");
        assert_eq!(bench.names(), Vec::<String>::new());
    };
    check(&[('f', "../../victim", "x")], "\"..\"");
    check(&[('f', "a/../../../victim", "x")], "\"..\"");
    check(&[('l', "out", "../../victim"), ('f', "out", "x")], "leaves the root");
    check(&[('d', "a", ""), ('l', "a/out", "../../..")], "leaves the root");
    check(&[('h', "victim", "../../victim")], "\"..\"");
    check(&[('l', "tmp", "/no/such/place"), ('f', "tmp/x", "x")], "tmp/x");
    check(&[('d', "a", ""), ('h', "z", "a/y")], "z");
    check(&[], "empty");
}

/// An absolute link leads to the archive's own root, not to the host's.
#[test]
fn links_are_followed_inside() {
    let bench = Bench::new();
    let entries = [('d', "etc", ""), ('l', "e", "/etc"), ('f', "e/millpond-test", "mine")];
    let root = bench.unpack(&archive(&entries)).expect("unpacked");
    assert_eq!(fs::read_to_string(root.join("etc/millpond-test")).expect("there"), "mine");
    assert!(!Path::new("/etc/millpond-test").exists());
}

#[test]
fn other_files_are_refused() {
    for bytes in [&b"just text, and long enough to be looked at"[..], b"", b"\x1f\x8bxx"] {
        let error = Bench::new().unpack(bytes).expect_err("no archive");
        assert!(error.to_string().contains("layer.tar"), "{error}");
        assert!(error.find_attribute("user_fault").is_some(), "{error}");
    }
}

#[test]
fn whiteouts_are_the_kernels() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED whiteouts: they need root");
    }
    let bench = Bench::new();
    let root = bench
        .unpack(&archive(&[('f', "a/.wh.gone", ""), ('d', "b", ""), ('f', "b/.wh..wh..opq", "")]))
        .expect("unpacked");
    let gone = fs::symlink_metadata(root.join("a/gone")).expect("it is there");
    assert_eq!((gone.mode() & 0o170_000, gone.rdev()), (0o020_000, 0));
    assert_eq!(fs::read_dir(root.join("b")).expect("readable").count(), 0);
}

/// A zero is worth a thousand bytes, and a header may promise what it likes.
#[test]
fn an_archive_that_grows_without_end_is_its_users_fault() {
    let check = |bytes: &[u8], words: &str| {
        let bench = Bench::new();
        let error = bench.unpack(bytes).expect_err(words);
        assert!(error.to_string().contains(words), "{words:?} is not in {error}");
        assert!(error.find_attribute("user_fault").is_some(), "{error}");
        assert_eq!(bench.names(), Vec::<String>::new());
    };
    let gzip = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut gzip, bytes).expect("in memory");
        gzip.finish().expect("in memory")
    };
    let zeros = "0".repeat(LIMIT as usize + 1);
    check(&archive(&[('f', "big", &zeros)]), "larger than");
    check(&gzip(&archive(&[('f', "big", &zeros)])), "larger than");
    // What is not unpacked is read all the same.
    let mut header = tar::Header::new_gnu();
    let with = |header: &mut tar::Header, kind: tar::EntryType, size: u64| {
        header.set_path("x").expect("short");
        header.set_mode(0o644);
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.resize(bytes.len() + (3 << 20), b'x');
        bytes
    };
    check(&with(&mut header, tar::EntryType::Block, 2 << 20), "larger than");
    // Names are read into memory.
    check(&with(&mut header, tar::EntryType::GNULongName, 2 << 20), "headers");
    check(&with(&mut header, tar::EntryType::XHeader, 2 << 20), "headers");
}

/// A file that ends too early was written so by its user: the next node would find the same.
#[test]
fn a_cut_archive_is_its_users_fault() {
    let whole = archive(&[('f', "a", &"x".repeat(5000))]);
    for cut in [600, 2000, 4096] {
        let error = Bench::new().unpack(&whole[..cut]).expect_err("cut");
        assert!(error.find_attribute("user_fault").is_some(), "{cut}: {error}");
    }
}

#[test]
fn layers_stay_until_there_are_too_many_bytes() {
    let bench = Bench::new();
    let half = "x".repeat(LIMIT as usize / 2 - 10);
    let layer = |number: u32| {
        let bytes = archive(&[('f', "file", &half)]);
        bench.unpack_as(number, &bytes).expect("unpacked")
    };
    let job = |number: u32| JobId(vocab::Guid([number, 0, 0, 1]));
    let name = |number: u32| Key::of(&artifact(number)).name();
    bench.layers.pin(job(1), &[artifact(1)]);
    let first = layer(1);
    let second = layer(2);
    let third = layer(3);
    assert!(first.is_dir() && !second.is_dir() && third.is_dir(), "the idle one went");
    bench.layers.unpin(job(1));
    assert_eq!(bench.names(), [name(1), name(1) + SIZE, name(3), name(3) + SIZE]);

    // Another life of the node: what is complete stays, half of one does not.
    let directory = bench.directory.path().join("layers");
    fs::create_dir_all(directory.join("x.part/deep")).expect("made");
    fs::write(directory.join("lonely.size"), "1").expect("written");
    let again = Bench {
        layers: Layers::open(&directory, LIMIT, Remover::start().expect("started")).expect("opened"),
        directory: bench.directory,
    };
    while again.names().iter().any(|name| name.starts_with("x.part")) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(again.names(), [name(1), name(1) + SIZE, name(3), name(3) + SIZE]);
    again.unpack_as(1, b"no archive").expect("it is here");
    again.unpack_as(4, &archive(&[('f', "file", &half)])).expect("unpacked");
    assert_eq!(again.names().len(), 4);
}

/// By the real tool: owners, privileges, devices and size.
#[test]
fn squashfs_becomes_a_tree_of_the_nodes_own() {
    use std::process::{Command, Stdio};
    let tool = |name: &str| {
        Command::new(name).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    if !rustix::process::geteuid().is_root() || !tool("mksquashfs") || !tool("unsquashfs") {
        return println!("SKIPPED squashfs: it needs root and squashfs-tools");
    }
    let source = tempfile::tempdir().expect("a directory");
    let at = |name: &str| source.path().join(name);
    fs::create_dir_all(at("usr/bin")).expect("made");
    fs::write(at("usr/bin/tool"), "tool").expect("written");
    std::os::unix::fs::chown(at("usr/bin/tool"), Some(4321), Some(4321)).expect("root may");
    std::os::unix::fs::chown(at("usr"), Some(4321), Some(4321)).expect("root may");
    fs::set_permissions(at("usr/bin/tool"), fs::Permissions::from_mode(0o6755)).expect("ours");
    std::os::unix::fs::symlink("/etc/passwd", at("link")).expect("linked");
    let device = rustix::fs::makedev(8, 0);
    let flags = Mode::from_raw_mode(0o666);
    rustix::fs::mknodat(rustix::fs::CWD, at("disk"), FileType::BlockDevice, flags, device).expect("root may");
    let image = |name: &str| {
        let image = tempfile::tempdir().expect("a directory");
        let path = image.path().join(name);
        let made = Command::new("mksquashfs").arg(source.path()).arg(&path).stdout(Stdio::null()).status();
        assert!(made.expect("it runs").success());
        fs::read(path).expect("written")
    };
    let bytes = image("good");
    let root = Bench::new();
    let unpacked = root.unpack(&bytes).expect("unpacked");
    let found = fs::metadata(unpacked.join("usr/bin/tool")).expect("it is there");
    assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (0, 0, 0o755));
    for name in ["", "usr", "usr/bin", "link"] {
        let found = fs::symlink_metadata(unpacked.join(name)).expect("it is there");
        assert_eq!((found.uid(), found.gid()), (0, 0), "{name}");
    }
    assert!(fs::symlink_metadata(unpacked.join("disk")).is_err(), "no devices");
    assert_eq!(fs::metadata("/etc/passwd").expect("it is there").uid(), 0, "links are not followed");

    // Zeros take no place in the image.
    File::create(at("zeros")).and_then(|file| file.set_len(1 << 30)).expect("made");
    let error = root.unpack_as(2, &image("bomb")).expect_err("too large");
    assert!(error.to_string().contains("larger than"), "{error}");
    assert!(error.find_attribute("user_fault").is_some(), "{error}");
    for broken in [&bytes[..200], &b"hsqs and nothing that follows"[..], b"hsqs"] {
        let error = root.unpack_as(3, broken).expect_err("broken");
        assert!(error.find_attribute("user_fault").is_some(), "{error}");
    }
    assert_eq!(root.names().len(), 2);
}
