use super::*;
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

struct Bench {
    directory: tempfile::TempDir,
    layers: Layers,
}

impl Bench {
    fn new() -> Bench {
        let directory = tempfile::tempdir().expect("a directory");
        let layers = Layers::open(&directory.path().join("layers"), &[]).expect("opened");
        fs::write(directory.path().join("victim"), "safe").expect("written");
        Bench { directory, layers }
    }
    fn unpack(&self, bytes: &[u8]) -> Result<PathBuf, Failure> {
        let archive = self.directory.path().join("archive");
        fs::write(&archive, bytes).expect("written");
        let artifact = Artifact {
            file_id: vocab::ObjectId(vocab::Guid([1, 2, 3, 4])),
            revision: 7,
            size: bytes.len() as u64,
            file_name: "layer.tar".to_owned(),
            executable: false,
        };
        self.layers.unpack(&artifact, &archive)?;
        Ok(self.layers.path(&artifact))
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
        let left: Vec<_> = fs::read_dir(bench.directory.path().join("layers")).expect("readable").collect();
        assert!(left.is_empty(), "{left:?}");
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
