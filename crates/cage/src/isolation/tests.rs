use super::*;

fn show(step: &Step) -> String {
    let t = |c: &CString| c.to_string_lossy().into_owned();
    match step {
        Step::MapUsers { users, groups } => format!("map {} and {}", t(users), t(groups)),
        Step::Detach => "detach".to_owned(),
        Step::Hold { source, number } => format!("hold {number} {}", t(source)),
        Step::Put { number, target, read_only } => {
            format!("put {number} {}{}", t(target), if *read_only { " ro" } else { "" })
        }
        Step::ReadOnly { path } => format!("ro-all {}", t(path)),
        Step::ReadOnlyHere { path } => format!("ro {}", t(path)),
        Step::LetGo { below } => {
            format!("let go {}", below.iter().map(t).collect::<Vec<_>>().join(" "))
        }
        Step::Hide { path, under } => format!("hide {} under {}", t(path), t(under)),
        Step::Freeze { path } => format!("freeze {}", t(path)),
        Step::Tmpfs { target, options } => format!("tmpfs {} {}", t(target), t(options)),
        Step::Mount { kind, target, options } => {
            format!("{} {} {}", kind.to_string_lossy(), t(target), t(options)).trim_end().to_owned()
        }
        Step::Directory { path } => format!("mkdir {}", t(path)),
        Step::File { path } => format!("touch {}", t(path)),
        Step::Device { path, .. } => format!("device {}", t(path)),
        Step::Link { path, .. } => format!("link {}", t(path)),
        Step::Pivot { root } => format!("pivot {}", t(root)),
        Step::Unshare => "unshare".to_owned(),
        Step::Hostname { name } => format!("hostname {}", t(name)),
    }
}

fn shown(isolation: &Isolation) -> Vec<String> {
    let directories =
        |path: &Path| Some(if path.extension().is_some() { Kind::Other } else { Kind::Directory });
    let plan = plan(isolation, (12, 34), &directories).expect("no NUL");
    let uninteresting =
        |line: &String| ["device", "link", "devpts", "freeze", "hide"].iter().any(|w| line.starts_with(w));
    plan.steps.iter().map(show).filter(|line| !uninteresting(line)).collect()
}

fn bind(source: &str, target: &str, read_only: bool) -> Bind {
    Bind { source: source.into(), target: target.into(), read_only }
}

#[test]
fn the_hosts_root_is_read_only_and_the_sandbox_is_not() {
    let isolation = Isolation {
        hostname: "slot_3-1234".to_owned(),
        root: None,
        covers: vec!["/tmp/data".into()],
        binds: vec![
            bind("/tmp/data/slots/3/sandbox", "/tmp/data/slots/3/sandbox", false),
            bind("/c", "/c", true),
        ],
        scratch_size: 100,
        own_users: false,
    };
    assert_eq!(
        shown(&isolation),
        [
            "detach",
            "hold 0 /tmp/data/slots/3/sandbox",
            "hold 1 /c",
            "let go /tmp/data",
            "ro-all /",
            "tmpfs /tmp mode=1777,size=100",
            "tmpfs /var/tmp mode=1777,size=100",
            "mkdir /tmp/data",
            "tmpfs /tmp/data mode=0755,size=1m",
            "tmpfs /dev mode=0755,size=64k",
            "mkdir /dev/pts",
            "mkdir /dev/shm",
            "mkdir /dev/.nothing",
            "tmpfs /dev/shm mode=1777,size=100",
            "proc /proc",
            "mkdir /tmp/data/slots",
            "mkdir /tmp/data/slots/3",
            "mkdir /tmp/data/slots/3/sandbox",
            "put 0 /tmp/data/slots/3/sandbox",
            "put 1 /c ro",
            "ro /tmp/data",
            "hostname slot_3-1234",
        ]
    );
}

#[test]
fn a_root_of_layers_replaces_the_hosts() {
    let isolation = Isolation {
        hostname: String::new(),
        root: Some(RootFs {
            mount_point: "/n/root".into(),
            layers: vec!["/n/skeleton".into(), "/n/top".into(), "/n/base".into()],
            changes: Some(("/n/upper".into(), "/n/work".into())),
        }),
        covers: vec!["/n".into()],
        binds: vec![bind("/n/sandbox", "/slot/sandbox", false), bind("/n/f.x", "/tmp/f.x", true)],
        scratch_size: 100,
        own_users: false,
    };
    assert_eq!(
        shown(&isolation),
        [
            "detach",
            "hold 0 /n/sandbox",
            "hold 1 /n/f.x",
            "overlay /n/root lowerdir=/n/skeleton:/n/top:/n/base,upperdir=/n/upper,workdir=/n/work",
            "tmpfs /n/root/tmp mode=1777,size=100",
            "tmpfs /n/root/var/tmp mode=1777,size=100",
            "tmpfs /n/root/dev mode=0755,size=64k",
            "mkdir /n/root/dev/pts",
            "mkdir /n/root/dev/shm",
            "mkdir /n/root/dev/.nothing",
            "tmpfs /n/root/dev/shm mode=1777,size=100",
            "proc /n/root/proc",
            "put 0 /n/root/slot/sandbox",
            "touch /n/root/tmp/f.x",
            "put 1 /n/root/tmp/f.x ro",
            "pivot /n/root",
        ]
    );
}

#[test]
fn what_separates_options_of_a_mount_is_refused_in_layers() {
    for bad in ["/a:b", "/a,upperdir=/etc", "/a\\b"] {
        let root = RootFs { mount_point: "/r".into(), layers: vec![bad.into()], changes: None };
        let isolation = Isolation { root: Some(root), ..Isolation::default() };
        assert!(plan(&isolation, (0, 0), &|_| None).is_err(), "{bad}");
    }
}

#[test]
fn a_private_home_is_covered_as_a_whole() {
    let check = |path: &str, closed: &str, want: &str| {
        assert_eq!(
            cover_for(Path::new(path), &|p| p != Path::new(closed)),
            Path::new(want),
            "{path} {closed}"
        );
    };
    check("/root/.local/share/millpond", "/root", "/root");
    check("/root/.local/share/millpond", "/root/.local", "/root/.local");
    check("/var/lib/millpond", "/none", "/var/lib/millpond");
}

#[test]
fn a_path_is_written_as_the_kernel_writes_it() {
    assert_eq!(as_in_the_mount_table(Path::new("/a b\\c")).to_str(), Ok("/a\\040b\\134c"));
}

/// What is about the kernel is read-only or not there, with both kinds of roots.
#[test]
fn the_kernels_own_is_out_of_reach() {
    for root in [None, Some(RootFs { mount_point: "/r".into(), ..RootFs::default() })] {
        let prefix = if root.is_some() { "/r" } else { "" };
        let isolation = Isolation { root, ..Isolation::default() };
        let steps: Vec<String> = plan(&isolation, (0, 0), &|_| Some(Kind::Directory))
            .expect("no NUL")
            .steps
            .iter()
            .map(show)
            .collect();
        for wanted in [
            format!("freeze {prefix}/proc/sys"),
            format!("freeze {prefix}/proc/sysrq-trigger"),
            format!("hide {prefix}/proc/kcore under {prefix}/dev/null"),
            format!("hide {prefix}/proc/keys under {prefix}/dev/null"),
            format!("hide {prefix}/proc/acpi under {prefix}/dev/.nothing"),
        ] {
            assert!(steps.contains(&wanted), "{wanted} is not in {steps:?}");
        }
        let firmware = "hide /sys/firmware under /dev/.nothing".to_owned();
        assert_eq!(steps.contains(&firmware), prefix.is_empty(), "{steps:?}");
    }
}

/// jobs-and-nodes.md 4.10: no device is made and nothing is unmounted in a user namespace.
#[test]
fn in_a_user_namespace_the_hosts_devices_are_put_in() {
    let isolation = Isolation {
        covers: vec!["/data".into(), "/home/me/token".into()],
        binds: vec![bind("/data/sandbox", "/data/sandbox", false)],
        own_users: true,
        ..Isolation::default()
    };
    let kind = |path: &Path| match path.to_str() {
        Some("/dev/full") => None,
        Some(text) if text.starts_with("/dev/") || text.ends_with("token") => Some(Kind::Other),
        _ => Some(Kind::Directory),
    };
    let plan = plan(&isolation, (12, 34), &kind).expect("no NUL");
    let steps: Vec<String> = plan.steps.iter().map(show).collect();
    assert_eq!(steps[..4], ["map 12 12 1 and 34 34 1", "detach", "hold 0 /data/sandbox", "hold 1 /dev/null"]);
    assert_eq!(plan.held, 6, "the sandbox and all devices but one: {steps:?}");
    assert!(!steps.iter().any(|s| s.starts_with("device") || s.starts_with("let go")), "{steps:?}");
    let at = |wanted: &str| {
        steps.iter().position(|s| s == wanted).unwrap_or_else(|| panic!("{wanted}: {steps:?}"))
    };
    assert!(at("tmpfs /dev mode=0755,size=64k") < at("touch /dev/null"));
    assert!(at("touch /dev/null") < at("put 1 /dev/null"));
    assert!(at("put 1 /dev/null") < at("hide /home/me/token under /dev/null"));
}
