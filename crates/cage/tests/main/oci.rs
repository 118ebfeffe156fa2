//! The driver `oci`: whatever holds for the others holds for it, and what only a runtime can get wrong.

use super::conformance::{FREE, PATIENCE, World};
use super::isolation::{Place, USER, run};
use cage::{Driver, EnvironmentConfig, RootFs};
use std::fs;
use std::path::Path;
use std::process::Command;

const BUSYBOX: [&str; 2] = ["/bin/busybox", "/usr/bin/busybox"];
const TRIED: &str = "MILLPOND_TEST_OCI";

/// Is this the process that tries this driver and no other?
pub fn is_tried_here() -> bool {
    let here = std::env::var_os(TRIED).is_some();
    if here {
        cage::sys::become_subreaper().expect("everybody may");
    }
    here
}

fn usable() -> bool {
    if !is_tried_here() {
        println!("SKIPPED here: tried in a process of its own");
    }
    is_tried_here()
}

/// Does the runtime run anything here, without us? Some refuse hosts like this one.
fn runs_by_itself() -> Result<(), String> {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("rootfs/bin")).expect("made");
    let busybox =
        BUSYBOX.iter().find(|path| Path::new(path).exists()).ok_or("there is no busybox to try it with")?;
    fs::copy(busybox, at("rootfs/bin/busybox")).expect("copied");
    let runc = |arguments: &[&str]| {
        let done = Command::new("runc")
            .arg("--root")
            .arg(at("state"))
            .args(arguments)
            .current_dir(&directory)
            .output();
        let done = done.map_err(|e| format!("runc: {e}"))?;
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        if done.status.success() { Ok(()) } else { Err(text) }
    };
    runc(&["spec"])?;
    let config = fs::read_to_string(at("config.json")).expect("written");
    let config = config.replace("\"terminal\": true", "\"terminal\": false");
    fs::write(at("config.json"), config.replace("\"sh\"", "\"/bin/busybox\", \"true\"")).expect("ours");
    runc(&["run", &format!("millpond-test-{}", std::process::id())])
}

#[test]
fn all_of_it_holds() {
    if is_tried_here() {
        return;
    }
    let config = EnvironmentConfig::new(&format!("millpond/cage-oci-{}", std::process::id()));
    if let Err(e) = cage::open(Driver::Oci, &config).and_then(|e| e.prepare().and_then(|()| e.remove_root()))
    {
        return println!("SKIPPED oci: {e}");
    }
    if let Err(e) = runs_by_itself() {
        return println!("SKIPPED oci: the runtime does not work here: {e}");
    }
    let output = Command::new("/proc/self/exe")
        .args(["isolation::", "conformance::", "neighbours::", "oci::", "--test-threads=2"])
        .env(TRIED, "1")
        .env_remove("MILLPOND_REQUIRED_DRIVERS")
        .output()
        .expect("started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("test result: ok"), "{text}");
    let left: Vec<_> = fs::read_dir("/run/millpond-oci").into_iter().flatten().flatten().collect();
    let ours = |e: &fs::DirEntry| e.file_name().to_string_lossy().contains("cage-test-");
    assert!(!left.iter().any(ours), "nothing is left of it: {left:?}");
}

/// A root of one static shell.
fn busybox(place: &mut Place, writable: bool) -> bool {
    let Some(program) = BUSYBOX.iter().find(|path| Path::new(path).exists()) else {
        println!("SKIPPED a root of its own: there is no busybox");
        return false;
    };
    let data = place.sandbox().parent().expect("it has one").to_owned();
    let (layer, skeleton) = (data.join("layer"), data.join("skeleton"));
    fs::create_dir_all(layer.join("bin")).expect("made");
    fs::copy(program, layer.join("bin/busybox")).expect("copied");
    for name in ["sh", "cat", "ls", "id", "sleep", "mkdir", "true"] {
        std::os::unix::fs::symlink("busybox", layer.join("bin").join(name)).expect("made");
    }
    fs::write(layer.join("made-of"), "layers").expect("written");
    for name in cage::isolation::SKELETON.iter().chain(&["slot/sandbox"]) {
        fs::create_dir_all(skeleton.join(name)).expect("made");
    }
    let (upper, work) = (data.join("upper"), data.join("work"));
    for directory in [&upper, &work] {
        fs::create_dir_all(directory).expect("made");
    }
    std::os::unix::fs::chown(&upper, Some(USER), Some(USER)).expect("root may");
    fs::create_dir(data.join("rootfs")).expect("made");
    let changes = writable.then_some((upper, work));
    place.isolation.root =
        Some(RootFs { mount_point: data.join("rootfs"), layers: vec![skeleton, layer], changes });
    place.isolation.binds[0].target = "/slot/sandbox".into();
    true
}

#[test]
fn a_root_of_layers() {
    if !usable() {
        return;
    }
    for writable in [false, true] {
        let mut w = World::new(Driver::Oci);
        let mut place = Place::new();
        if !busybox(&mut place, writable) {
            return;
        }
        let script = "cat /made-of; ls /; [ -e /etc ] && echo etc; (echo x >/new) 2>/dev/null && cat /new; id -u; cat /proc/1/comm";
        let (code, out) = run(&mut w, &place, Some(USER), script);
        assert_eq!(code, 0, "{out}");
        assert!(
            out.starts_with("layers") && !out.contains("etc") && out.ends_with("54321\nmp-init\n"),
            "{out}"
        );
        assert_eq!(out.contains("x\n54321"), writable, "{out}");
        let left =
            cage::volumes::mounts_below(place.sandbox().parent().expect("it has one")).expect("readable");
        assert!(left.is_empty(), "seen outside: {left:?}");
    }
}

/// A shell beside the command is started without the runtime, in what the runtime has made.
#[test]
fn a_second_process_is_in_the_same_room() {
    if !usable() {
        return;
    }
    let (mut w, place) = (World::new(Driver::Oci), Place::new());
    let (id, mut c) = w.container(FREE);
    let script = "echo $HOSTNAME >/tmp/first; cat /proc/sys/kernel/hostname >name; while [ ! -e done ]; do sleep 0.01; done";
    let first = w.spawn(id, c.as_mut(), script, Some(&place.isolation), &place.inside(), Some(USER));
    let script = "while [ ! -e /tmp/first ]; do sleep 0.01; done; cat /proc/sys/kernel/hostname >second; : >done; \
                  grep -c . /proc/self/status >/dev/null; grep ^Seccomp: /proc/self/status >>second";
    let second = w.spawn(id, c.as_mut(), script, Some(&place.isolation), &place.inside(), Some(USER));
    for pid in [second, first] {
        assert_eq!(cage::sys::reap(pid).expect("ours").0, cage::sys::Exit::Code(0));
    }
    let text = fs::read_to_string(place.sandbox().join("second")).expect("written");
    assert_eq!(text, "slot_0-test\nSeccomp:\t2\n");
    c.kill_all(PATIENCE).expect("killed");
    c.destroy().expect("removed");
}

#[test]
fn what_cannot_be_executed_is_named() {
    if !usable() {
        return;
    }
    let (mut w, mut place) = (World::new(Driver::Oci), Place::new());
    if !busybox(&mut place, false) {
        return;
    }
    let (_, mut c) = w.container(FREE);
    let error = c
        .spawn(&cage::ProcessSpec {
            program: c"/bin/bash",
            arguments: &[c"bash".to_owned()],
            environment: &[],
            working_directory: c"/slot/sandbox",
            descriptors: &[],
            user: None,
            open_files_limit: 64,
            isolation: Some(&place.isolation),
            processes_limit: None,
            terminal: false,
        })
        .expect_err("there is none");
    assert!(matches!(error, cage::CageError::Spawn { .. }), "{error:?}");
    assert!(error.to_string().contains("/bin/bash"), "{error}");
    c.kill_all(PATIENCE).expect("killed");
    c.destroy().expect("removed");
}
