use super::*;

fn request(paths: &[&str]) -> FileSystemRequest {
    let volume = |path: &&str| TmpfsVolume { path: (*path).to_owned(), size: 1 << 20 };
    FileSystemRequest { tmpfs_volumes: paths.iter().map(volume).collect(), ..FileSystemRequest::default() }
}

#[test]
fn mount_points_are_as_the_mount_table_shows_them() {
    let check = |path: &str, want: &str| {
        assert_eq!(volume_paths(Path::new("/s"), &request(&[path])), [Path::new(want)], "{path}");
    };
    check("a", "/s/a");
    check("./a//b/", "/s/a/b");
    check(".", "/s");
    // Refused by the controller; a node trusts nobody with its host.
    check("/etc", "/s/etc");
    check("../../etc", "/s/etc");
}

/// Without root, or when the operator does not want mounts: directories of the same names.
#[test]
fn volumes_can_be_plain_directories() {
    let sandbox = tempfile::tempdir().expect("a directory");
    mount_volumes(sandbox.path(), &request(&["a/b", "a/c", "."]), None, false).expect("made");
    assert!(sandbox.path().join("a/b").is_dir() && sandbox.path().join("a/c").is_dir());
    assert_eq!(volumes::mounts_below(sandbox.path()).expect("readable"), Vec::<PathBuf>::new());
}

/// S4: a path of a memory file system that no node can make was an abort, without end.
#[test]
fn s4_mount_points_that_the_system_refuses_are_failures_of_the_job() {
    let sandbox = tempfile::tempdir().expect("a directory");
    std::fs::write(sandbox.path().join("file"), "").expect("written");
    for path in [&*"x".repeat(300), "file", "file/below"] {
        let failure = mount_volumes(sandbox.path(), &request(&[path]), None, false).expect_err("refused");
        assert!(failure.find_attribute("user_fault").is_some(), "{path}: {failure:?}");
    }
    let gone = sandbox.path().join("gone");
    let failure = mount_volumes(&gone, &request(&["v"]), None, false).expect_err("no sandbox");
    assert!(failure.find_attribute("user_fault").is_none(), "the node's own directory: {failure:?}");
}

#[test]
fn mounts_of_jobs_that_do_not_live_are_swept() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED mounts: they need root");
    }
    let data = tempfile::tempdir().expect("a directory");
    let layout = Layout::create(data.path()).expect("made");
    for slot in [3, 4] {
        fs::create_dir_all(layout.sandbox(slot)).expect("made");
        mount_volumes(&layout.sandbox(slot), &request(&["x", "y"]), Some((1, 1)), true).expect("root may");
    }
    assert_eq!(sweep(&layout, &|slot| slot == 4).expect("swept"), 2);
    let left = volumes::mounts_below(&layout.slots()).expect("readable");
    assert_eq!(left, ["y", "x"].map(|name| layout.sandbox(4).join(name)));
    assert_eq!(sweep(&layout, &|_| false).expect("swept"), 2);
    assert_eq!(volumes::mounts_below(&layout.slots()).expect("readable"), Vec::<PathBuf>::new());
}

#[test]
fn a_job_sees_its_sandbox_and_what_is_shared() {
    let data = tempfile::tempdir().expect("a directory");
    let layout = Layout::create(data.path()).expect("made");
    let shared = crate::SharedDirectory { path: "/data".into(), writable: true };
    let options = RoomOptions { shared_directories: vec![shared], ..RoomOptions::default() };
    let isolator = Isolator::new(&options, &[], &layout, false);
    let job_id = JobId(vocab::Guid([0xa1, 2, 3, 4]));
    let sandbox = layout.sandbox(7);
    let view = |linked, root| {
        let memory_limit = 1 << 30;
        isolator.isolation(Tenant {
            slot: 7,
            job_id,
            sandbox: &sandbox,
            memory_limit,
            linked,
            gpus: &[],
            root,
        })
    };
    let targets = |i: &Isolation| -> Vec<(PathBuf, bool)> {
        i.binds.iter().map(|b| (b.target.clone(), b.read_only)).collect()
    };
    assert!(isolator.gives_users());
    let plain = view(false, None);
    assert!(plain.hostname.starts_with("slot_7-") && plain.hostname.len() > 7);
    let own = |targets: Vec<(PathBuf, bool)>| -> Vec<(PathBuf, bool)> {
        targets.into_iter().filter(|(path, _)| !path.starts_with(RUN)).collect()
    };
    assert_eq!(own(targets(&plain)), [("/data".into(), false), (layout.sandbox(7), false)]);
    let linked = own(targets(&view(true, None)));
    assert_eq!(linked[1], (layout.files(7), true));
    assert!(plain.covers.contains(&PathBuf::from("/run")));
    let layered = view(true, Some(rootfs(&layout, 7, vec!["/l".into()], false)));
    assert_eq!(targets(&layered), [(SANDBOX_INSIDE.into(), false)]);
    let root = layered.root.expect("it has one");
    assert_eq!((root.layers, root.changes), (vec![layout.skeleton(), "/l".into()], None));
}

#[test]
fn only_rights_and_the_kernel_are_beyond_a_host() {
    let check = |errno: rustix::io::Errno, want: bool| {
        let error = CageError::Isolation { what: "try".to_owned(), source: errno.into() };
        assert_eq!(is_beyond_this_host(&error), want, "{errno:?}");
    };
    use rustix::io::Errno;
    for errno in [Errno::PERM, Errno::NOSYS, Errno::NODEV] {
        check(errno, true);
    }
    for errno in [Errno::NOSPC, Errno::NOMEM, Errno::MFILE, Errno::AGAIN, Errno::IO] {
        check(errno, false);
    }
}

/// A host that lets nobody make namespaces.
struct CannotIsolate(cage::Driver, Box<dyn JobEnvironment>);

impl JobEnvironment for CannotIsolate {
    fn driver(&self) -> cage::Driver {
        self.0
    }
    fn prepare(&self) -> Result<(), CageError> {
        self.1.prepare()
    }
    fn probe(&self) -> cage::Capabilities {
        self.1.probe()
    }
    fn enter_proxies(&self, memory: Option<i64>) -> Result<(), CageError> {
        self.1.enter_proxies(memory)
    }
    fn create(&self, _: JobId, _: &JobLimits) -> Result<Box<dyn cage::Container>, CageError> {
        Err(CageError::Isolation {
            what: "make namespaces".to_owned(),
            source: rustix::io::Errno::PERM.into(),
        })
    }
    fn reopen(&self, job_id: JobId) -> Option<Box<dyn cage::Container>> {
        self.1.reopen(job_id)
    }
    fn existing(&self) -> Vec<JobId> {
        self.1.existing()
    }
    fn remove_root(&self) -> Result<(), CageError> {
        self.1.remove_root()
    }
}

/// S5: with authentication users need not trust each other, and no job starts that is not kept apart from theirs.
#[test]
fn with_authentication_a_node_that_cannot_isolate_is_disabled() {
    let data = tempfile::tempdir().expect("a directory");
    let layout = Layout::create(data.path()).expect("made");
    for driver in [cage::Driver::Simple, cage::Driver::Rootless] {
        let config = cage::EnvironmentConfig::new("millpond/unused");
        let simple = cage::open(cage::Driver::Simple, &config).expect("it needs nothing");
        let environment = CannotIsolate(driver, simple);
        let choose = |isolation, token: Option<&str>| {
            let mut config = NodeConfig::new("s:1", "n", data.path(), vocab::Resources::ZERO);
            config.room.isolation = isolation;
            config.token_file = token.map(PathBuf::from);
            Isolator::choose_as(&config, &layout, &environment, false)
        };
        let chosen = choose(IsolationChoice::Auto, Some("/token")).expect("an answer");
        assert!(chosen.disabled && chosen.isolator.is_some(), "{driver}: {chosen:?}");
        let alert = chosen.alert.expect("it says why").to_string();
        assert!(alert.contains("--isolation none") && alert.contains("make namespaces"), "{alert}");
        assert!(choose(IsolationChoice::Full, Some("/token")).is_err());
        let asked_for = choose(IsolationChoice::None, Some("/token")).expect("an answer");
        assert!(!asked_for.disabled && asked_for.isolator.is_none());
        let trusting = choose(IsolationChoice::Auto, None).expect("an answer");
        assert!(!trusting.disabled && trusting.isolator.is_none(), "{driver}: {trusting:?}");
    }
}

/// S9: without authentication, too, no job of a node of root is root of the host, unless that was asked for.
#[test]
fn s9_a_node_of_root_that_cannot_isolate_is_disabled() {
    let data = tempfile::tempdir().expect("a directory");
    let layout = Layout::create(data.path()).expect("made");
    for driver in [cage::Driver::Simple, cage::Driver::Hybrid] {
        let config = cage::EnvironmentConfig::new("millpond/unused");
        let simple = cage::open(cage::Driver::Simple, &config).expect("it needs nothing");
        let environment = CannotIsolate(driver, simple);
        let choose = |isolation, is_root| {
            let mut config = NodeConfig::new("s:1", "n", data.path(), vocab::Resources::ZERO);
            config.room.isolation = isolation;
            Isolator::choose_as(&config, &layout, &environment, is_root).expect("an answer")
        };
        let chosen = choose(IsolationChoice::Auto, true);
        assert!(chosen.disabled && chosen.isolator.is_some(), "{driver}: {chosen:?}");
        let alert = chosen.alert.expect("it says why").to_string();
        for words in ["as root of this host", "--isolation none", "make namespaces"] {
            assert!(alert.contains(words), "{driver}: {alert}");
        }
        let asked_for = choose(IsolationChoice::None, true);
        assert!(!asked_for.disabled && asked_for.isolator.is_none(), "{driver}: {asked_for:?}");
        let of_a_user = choose(IsolationChoice::Auto, false);
        assert!(!of_a_user.disabled && of_a_user.isolator.is_none(), "{driver}: {of_a_user:?}");
    }
}

/// S3: modes alone kept jobs with users of their own out of the data of the server and of other nodes.
#[test]
fn s3_announced_data_directories_are_covered_for_all_jobs() {
    let data = tempfile::tempdir().expect("a directory");
    let layout = Layout::create(data.path()).expect("made");
    let announced: Vec<PathBuf> = ["/nowhere/up/node-1", "/nowhere/up", "/tmp/up", "/run/millpond", "/else"]
        .map(PathBuf::from)
        .to_vec();
    for do_not_set_user_id in [false, true] {
        for own_users in [false, true] {
            let options = RoomOptions { do_not_set_user_id, ..RoomOptions::default() };
            let covers = Isolator::new(&options, &[], &layout, own_users).covers_with(&announced);
            // `/tmp` is every job's own; the node of this test may lie in it.
            let mut of_others: Vec<PathBuf> = covers
                .into_iter()
                .filter(|path| path != Path::new("/tmp"))
                .filter(|path| announced.iter().any(|other| other.starts_with(path)))
                .collect();
            of_others.sort();
            // Others cannot enter a directory that is not there, and it is nobody's.
            let nowhere = if own_users { "/nowhere/up" } else { "/nowhere" };
            assert_eq!(of_others, ["/else", nowhere, "/run"].map(PathBuf::from));
        }
    }
}

/// S3: a shared directory is put over the covers, and showed what lies in it.
#[test]
fn s3_data_directories_in_a_shared_one_are_hidden() {
    let (data, host) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let layout = Layout::create(data.path()).expect("made");
    let real = host.path().canonicalize().expect("it is there");
    let [server, link] = ["shared/a/server", "link"].map(|name| real.join(name));
    fs::create_dir_all(&server).expect("made");
    std::os::unix::fs::symlink(real.join("shared"), &link).expect("made");
    let shared =
        [real.join("shared"), link.clone()].map(|path| crate::SharedDirectory { path, writable: true });
    let options = RoomOptions { shared_directories: shared.to_vec(), ..RoomOptions::default() };
    let isolator = Isolator::new(&options, &[], &layout, false);
    let announced = [server.clone(), real.join("shared/gone"), real.join("beside")];
    let binds: Vec<(PathBuf, PathBuf, bool)> = isolator
        .shared_binds(&announced)
        .into_iter()
        .filter(|bind| !bind.target.starts_with(RUN))
        .map(|bind| (bind.source, bind.target, bind.read_only))
        .collect();
    let nothing = layout.nothing();
    assert_eq!(
        binds,
        [
            (real.join("shared"), real.join("shared"), false),
            (link.clone(), link.clone(), false),
            (nothing.clone(), link.join("a/server"), true),
            (nothing.clone(), server, true),
        ]
    );
    assert_eq!(fs::read_dir(nothing).expect("it is there").count(), 0);
}

/// S3: what lies in the node's own data cannot be covered inside of a shared directory, since the sandbox is there.
#[test]
fn s3_a_shared_directory_that_shows_the_nodes_data_is_refused() {
    let host = tempfile::tempdir().expect("a directory");
    let layout = Layout::create(&host.path().join("data")).expect("made");
    let token = host.path().join("secret/token");
    for name in ["beside", "secret"] {
        fs::create_dir(host.path().join(name)).expect("made");
    }
    fs::write(&token, "").expect("written");
    let check = |name: &str, own_users: bool, do_not_set_user_id: bool| {
        let shared = crate::SharedDirectory { path: host.path().join(name), writable: false };
        let options =
            RoomOptions { do_not_set_user_id, shared_directories: vec![shared], ..RoomOptions::default() };
        let checked = check_shared(&options, std::slice::from_ref(&token), &layout, own_users);
        checked.err().map(|error| error.to_string())
    };
    for name in ["", "data", "data/slots"] {
        let refused = check(name, false, false).expect("it shows the data");
        for words in ["shared_directories", "data directory", layout.root().to_str().expect("text")] {
            assert!(refused.contains(words), "{name:?}: {refused}");
        }
    }
    assert_eq!(check("beside", false, false), None);
    assert_eq!(check("secret", false, false), None, "its mode keeps it from other users");
    assert!(check("secret", true, false).is_some_and(|refused| refused.contains("token")));
    assert!(check("secret", false, true).is_some_and(|refused| refused.contains("token")));
    assert!(check("missing", false, false).is_some_and(|refused| refused.contains("missing")));
}

/// Something in the way at the start must not be the end of isolation.
#[test]
fn a_passing_fault_disables_the_node_and_not_the_isolation() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED a passing fault: it needs root");
    }
    let data = tempfile::tempdir().expect("a directory");
    let layout = Layout::create(data.path()).expect("made");
    fs::write(layout.probe(), "where the self-check wants a directory").expect("written");
    let group = format!("millpond/test-fault-{}", std::process::id());
    let environment = cage::environment::open_auto(&cage::EnvironmentConfig::new(&group)).expect("any").0;
    let choose = |isolation| {
        let mut config = NodeConfig::new("s:1", "n", data.path(), vocab::Resources::ZERO);
        config.room.isolation = isolation;
        Isolator::choose(&config, &layout, environment.as_ref())
    };
    if environment.driver().has_groups() {
        let chosen = choose(IsolationChoice::Auto).expect("an answer");
        assert!(chosen.disabled && chosen.isolator.is_some(), "{chosen:?}");
        assert!(choose(IsolationChoice::Full).is_err());
    }
    environment.remove_root().expect("empty");
}

#[test]
fn only_its_own_gpus_are_in_dev() {
    let dev = tempfile::tempdir().expect("a directory");
    for name in ["nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1", "nvidia2", "sda"] {
        fs::write(dev.path().join(name), "").expect("written");
    }
    let names = |gpus: &[u32]| -> Vec<String> {
        let found = gpu_devices(dev.path(), gpus);
        found.iter().map(|p| p.file_name().expect("a name").to_string_lossy().into_owned()).collect()
    };
    assert_eq!(names(&[]), Vec::<String>::new());
    assert_eq!(names(&[1]), ["nvidiactl", "nvidia-uvm", "nvidia1"]);
    assert_eq!(names(&[0, 2, 9]), ["nvidiactl", "nvidia-uvm", "nvidia0", "nvidia2"]);
}
