//! What an isolated process sees and can do, on every driver (jobs-and-nodes.md 4.7). Needs root, but for
//! `rootless` with user namespaces: see also the module `rootless`.

use super::conformance::{FREE, PATIENCE, World, alive, for_each, until};
use super::rootless::in_user_namespaces;
use cage::{Bind, Isolation, JobLimits, ProcessSpec, volumes};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;

pub const USER: u32 = 54_321;

/// A sandbox of one user inside a directory that others may not enter.
pub struct Place {
    directory: tempfile::TempDir,
    pub isolation: Isolation,
}

/// Also when a test fails.
impl Drop for Place {
    fn drop(&mut self) {
        for mount in volumes::mounts_below(self.directory.path()).unwrap_or_default() {
            let _ = volumes::detach(&mount);
        }
    }
}

impl Place {
    pub fn new() -> Place {
        Place::within(tempfile::tempdir().expect("a directory"))
    }
    pub fn within(directory: tempfile::TempDir) -> Place {
        let data = directory.path().canonicalize().expect("it exists");
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).expect("ours");
        let sandbox = data.join("sandbox");
        fs::create_dir(&sandbox).expect("made");
        fs::write(data.join("secret"), b"secret").expect("written");
        if rustix::process::geteuid().is_root() {
            chown(&sandbox, Some(USER), Some(USER)).expect("root may");
        }
        let bind = Bind { source: sandbox.clone(), target: sandbox, read_only: false };
        let isolation = Isolation {
            hostname: "slot_0-test".to_owned(),
            root: None,
            covers: vec![cage::isolation::cover_for(&data, &cage::isolation::lets_others_pass)],
            binds: vec![bind],
            scratch_size: 1 << 20,
            own_users: false,
        };
        Place { directory, isolation }
    }
    /// Of the caller's own, in a user namespace.
    pub fn of_ours() -> Place {
        let mut place = Place::new();
        place.isolation.own_users = true;
        if rustix::process::geteuid().is_root() {
            chown(place.sandbox(), Some(0), Some(0)).expect("root may");
        }
        place
    }
    /// On the host.
    pub fn sandbox(&self) -> PathBuf {
        self.isolation.binds[0].source.clone()
    }
    /// In the job.
    pub fn inside(&self) -> PathBuf {
        self.isolation.binds[0].target.clone()
    }
}

/// Runs a script in a container; gives its exit code and what it wrote.
pub fn run(w: &mut World, place: &Place, user: Option<u32>, script: &str) -> (i32, String) {
    let (id, mut c) = w.container(JobLimits { pids: Some(100), ..FREE });
    let out = place.sandbox().join("out");
    let _ = fs::remove_file(&out);
    let script = format!("exec >out 2>&1\n{script}");
    let pid = w.spawn(id, c.as_mut(), &script, Some(&place.isolation), &place.inside(), user);
    let exit = cage::sys::reap(pid).expect("ours").0;
    c.kill_all(PATIENCE).expect("killed");
    // The init, a child of this process like the command.
    c.destroy().expect("removed");
    let text = fs::read_to_string(out).unwrap_or_default();
    match exit {
        cage::sys::Exit::Code(code) => (code, text),
        cage::sys::Exit::Signal(signal, _) => (-signal, text),
    }
}

/// As another user and as root, with the host's root file system; without groups also in a user namespace.
fn check(script: &str, want: &str) {
    in_user_namespaces(|w| {
        let (code, out) = run(w, &Place::of_ours(), None, script);
        assert_eq!((code, out.trim()), (0, want), "in a user namespace: {script}");
    });
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED isolation with groups: it needs root");
    }
    for_each(|w| {
        let place = Place::new();
        for user in [Some(USER), None] {
            if user.is_none() {
                chown(place.sandbox(), Some(0), Some(0)).expect("root may");
            }
            let (code, out) = run(w, &place, user, script);
            assert_eq!((code, out.trim()), (0, want), "user {user:?}: {script}");
        }
    });
}

/// Prints the words of those attempts that succeed.
fn check_all_fail(attempts: &[(&str, &str)]) {
    let script: String =
        attempts.iter().map(|(what, how)| format!("( {how} ) 2>/dev/null && echo {what}\n")).collect();
    check(&format!("{script}true"), "");
}

#[test]
fn it_sees_its_own_processes_only() {
    check(
        "echo $$ $(cat /proc/1/comm); n=$(ls -d /proc/[0-9]* | wc -l); [ $n -lt 8 ] && echo few",
        "2 mp-init\nfew",
    );
}

#[test]
fn it_has_a_name_of_its_own() {
    check("cat /proc/sys/kernel/hostname", "slot_0-test");
}

#[test]
fn the_host_cannot_be_written_to() {
    check_all_fail(&[
        ("root", "touch /millpond-test"),
        ("etc", "touch /etc/millpond-test"),
        ("bin", "touch /bin/millpond-test"),
        ("group", "mkdir /sys/fs/cgroup/millpond-test"),
        ("hostname", "echo x >/proc/sys/kernel/hostname"),
        ("sysrq", "echo h >/proc/sysrq-trigger"),
        ("remount", "mount -o remount,rw /"),
        ("unmount", "umount /tmp"),
        ("namespace", "unshare -m true"),
        ("user_namespace", "unshare -U true"),
        ("init", "kill -9 1 && sleep 0.2 && ! kill -0 1"),
        ("device", "mknod disk b 8 0"),
        ("cover", "touch ../mine"),
    ]);
}

/// Also for root without capabilities, whom permissions would let.
#[test]
fn what_is_about_the_kernel_is_out_of_reach() {
    check(
        "for f in kcore keys key-users kmsg timer_list sched_debug; do \
         [ ! -e /proc/$f ] || [ -z \"$(head -c 1 /proc/$f)\" ] || echo reads $f; done\n\
         ls -A /proc/acpi /proc/scsi /sys/firmware 2>/dev/null | grep -v ':$' | head -3\n\
         for f in $(find /proc/sys/vm /proc/irq /proc/bus /proc/fs -type f 2>/dev/null | head -100); do \
         ( : >>$f ) 2>/dev/null && echo writes $f; done; true",
        "",
    );
}

/// What is unmounted on the host is gone: no job pins the memory of another.
#[test]
fn mounts_below_a_cover_are_let_go() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED mounts below a cover: they need root");
    }
    for_each(|w| {
        let place = Place::new();
        let other = place.directory.path().join("an other");
        for path in [other.clone(), other.join("in it")] {
            fs::create_dir(&path).expect("made");
            volumes::mount_tmpfs(&path, 1 << 20, (0, 0)).expect("root may");
        }
        let (id, mut c) = w.container(FREE);
        let pid = w.spawn(id, c.as_mut(), "sleep 100", Some(&place.isolation), &place.inside(), Some(USER));
        let table = fs::read_to_string(format!("/proc/{pid}/mountinfo")).expect("it runs");
        assert!(!table.contains("other") && table.contains("/sandbox "), "{table}");
        assert_eq!(volumes::mounts_below(place.directory.path()).expect("readable").len(), 2, "of the host");
        c.kill_all(PATIENCE).expect("killed");
        cage::sys::reap(pid).expect("ours");
        c.destroy().expect("removed");
    });
}

#[test]
fn the_nodes_data_is_covered() {
    check("ls -A .. | tr '\\n' ' '; cat ../secret 2>/dev/null; true", "sandbox");
}

#[test]
fn its_directories_are_its_own_and_bounded() {
    check(
        "for d in /tmp /var/tmp /dev/shm; do touch $d/x && ls $d | wc -l | tr -d ' '\n\
         dd if=/dev/zero of=$d/y bs=1024 count=2000 2>/dev/null; [ $(wc -c <$d/y) -le 1048576 ] || echo unbounded; done",
        "1\n1\n1",
    );
}

#[test]
fn it_has_no_capabilities_and_gains_none() {
    check(
        "sed -n 's/^Cap[PEBA][a-z]*:\\t//p' /proc/self/status | sort -u; grep -c '^NoNewPrivs:.1' /proc/self/status; \
         sed -n 's/^Seccomp:\\t//p' /proc/self/status",
        "0000000000000000\n1\n2",
    );
}

#[test]
fn devices_work() {
    check(
        "ls /dev | tr '\\n' ' '; echo; head -c 3 /dev/zero | wc -c | tr -d ' '; echo x >/dev/null; \
         [ $(head -c 5 /dev/urandom | wc -c) = 5 ] && echo random",
        "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero \n3\nrandom",
    );
}

#[test]
fn a_kill_reaches_daemons_and_leaves_no_mount() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED isolation: it needs root");
    }
    for_each(|w| {
        let place = Place::new();
        let (id, mut c) = w.container(FREE);
        let script = "(setsid sleep 4321 &) ; exec env -i sleep 4322";
        let root = w.spawn(id, c.as_mut(), script, Some(&place.isolation), &place.inside(), Some(USER));
        until("both", || c.processes().expect("readable").iter().filter(|p| p.name == "sleep").count() == 2);
        let pids = c.pids().expect("readable");
        assert!(pids.contains(&root) && pids.len() == 3, "{pids:?}");
        assert!(c.processes().expect("readable").iter().all(|p| p.name != "mp-init"));
        c.kill_all(PATIENCE).expect("killed");
        // A pid namespace ends when its last zombie has gone.
        cage::sys::reap(root).expect("ours");
        until("their deaths", || !pids.iter().any(|p| alive(*p)));
        assert_eq!(volumes::mounts_below(place.directory.path()).expect("readable"), Vec::<PathBuf>::new());
    });
}

#[test]
fn a_memory_file_system_is_bounded_and_goes() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED memory file systems: they need root");
    }
    for_each(|w| {
        let place = Place::new();
        let volume = place.sandbox().join("volume");
        fs::create_dir(&volume).expect("made");
        volumes::mount_tmpfs(&volume, 1 << 20, (USER, USER)).expect("root may");
        assert_eq!(
            volumes::mounts_below(place.directory.path()).expect("readable"),
            std::slice::from_ref(&volume)
        );
        let fill = "dd if=/dev/zero of=volume/x bs=1024 count=2000; wc -c <volume/x | tr -d ' '";
        let (code, out) = run(w, &place, Some(USER), fill);
        assert_eq!(code, 0);
        assert!(out.contains("No space left") && out.trim().ends_with("1048576"), "{out}");
        volumes::detach(&volume).expect("unmounted");
        volumes::detach(&volume).expect("twice is fine");
        assert_eq!(volumes::mounts_below(place.directory.path()).expect("readable"), Vec::<PathBuf>::new());
        assert_eq!(fs::read_dir(&volume).expect("readable").count(), 0);
    });
}

#[test]
fn what_cannot_be_isolated_is_an_error_with_its_step() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED isolation: it needs root");
    }
    for_each(|w| {
        let (_, mut c) = w.container(FREE);
        let isolation = Isolation {
            binds: vec![Bind { source: "/no/such".into(), target: "/no/such".into(), read_only: true }],
            ..Isolation::default()
        };
        let arguments = [c"true".to_owned()];
        let spec = ProcessSpec {
            program: c"/bin/true",
            arguments: &arguments,
            environment: &[],
            working_directory: c"/",
            descriptors: &[],
            user: None,
            open_files_limit: 1024,
            isolation: Some(&isolation),
            processes_limit: None,
            terminal: false,
        };
        let error = c.spawn(&spec).expect_err("there is no such directory").to_string();
        assert!(
            // A runtime has words of its own.
            (error.contains("Hold") || error.contains("mounting"))
                && error.contains("/no/such")
                && error.to_lowercase().contains("no such file"),
            "{error}"
        );
        assert_eq!(c.pids().expect("readable"), Vec::<u32>::new());
    });
}
