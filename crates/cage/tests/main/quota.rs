//! Bounds of disk space that the kernel keeps (jobs-and-nodes.md 4.9), where a file system can: in the machine of
//! `tests/vm`, or in the directory that `MILLPOND_QUOTA_DIRECTORY` names.

use super::conformance::{PATIENCE, World, for_each_with_groups};
use super::isolation::{Place, USER, run};
use cage::RootFs;
use cage::quota::{self, DiskLimits, claim, limit, limits, try_out, usage};
use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Tells the [`helper`] which directory to give to which project.
const ORDER: &str = "MILLPOND_TEST_PROJECT";

/// A project of nobody else.
fn project() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    0x5000_0000 + (std::process::id() << 6) + NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A directory on a file system with quotas, or the reason why there is none.
fn directory() -> Result<tempfile::TempDir, String> {
    let base = std::env::var_os("MILLPOND_QUOTA_DIRECTORY");
    let made = base.as_ref().map_or_else(tempfile::tempdir, tempfile::tempdir_in).expect("a directory");
    let probe = made.path().join("probe");
    fs::create_dir(&probe).expect("made");
    let tried = try_out(&probe, project());
    assert!(base.is_none() || tried.is_ok(), "MILLPOND_QUOTA_DIRECTORY has no quotas: {tried:?}");
    assert_eq!(fs::read_dir(&probe).expect("it stays").count(), 0);
    fs::remove_dir(&probe).expect("empty");
    tried.map(|()| made).map_err(|e| e.to_string())
}

/// On each driver with groups, where the kernel keeps bounds; else it says why not.
fn where_there_are_quotas(test: impl Fn(&mut World)) {
    match directory() {
        Ok(_) => for_each_with_groups(test),
        Err(e) => println!("SKIPPED quotas of projects: {e}"),
    }
}

/// A bounded place of a job, whose limits go with it.
struct Bounded {
    place: Place,
    project: u32,
}

impl Bounded {
    fn new() -> Bounded {
        let place = Place::within(directory().expect("was tried"));
        let project = project();
        claim(&[&place.sandbox()], project).expect("nobody else's");
        // What `run` keeps what was said in.
        fs::write(place.sandbox().join("out"), "").expect("written");
        Bounded { place, project }
    }

    fn on(&self) -> File {
        File::open(self.place.sandbox()).expect("it is there")
    }

    /// Removes what the job wrote. xfs counts that until it comes round to it.
    fn clear(&self) {
        for entry in fs::read_dir(self.place.sandbox()).expect("it is there") {
            let path = entry.expect("read").path();
            let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            removed.expect("root may");
        }
        let begun = Instant::now();
        loop {
            let counted = usage(self.on(), self.project).expect("counted");
            if counted.inodes <= 1 {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "what was removed is counted after {PATIENCE:?}: {counted:?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// So much more than there is.
    fn allow(&self, space: Option<u64>, inodes: Option<u64>) {
        let own = usage(self.on(), self.project).expect("counted");
        let limits = DiskLimits {
            space: space.map(|bytes| bytes + own.space),
            inodes: inodes.map(|files| files + own.inodes),
        };
        limit(self.on(), self.project, limits).expect("root may");
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        let _ = limit(self.on(), self.project, DiskLimits::default());
    }
}

#[test]
fn a_job_is_refused_what_is_beyond_its_bounds() {
    where_there_are_quotas(|w| {
        let bounded = Bounded::new();
        let run = |w: &mut World, script: &str| run(w, &bounded.place, Some(USER), script).0;
        let write = "dd if=/dev/zero of=big bs=64k count=32 2>&1";
        let files = "mkdir d && for i in 1 2 3 4 5 6; do : >d/$i || exit 9; done";
        for script in [write, files] {
            assert_eq!(run(w, script), 0, "nothing is bounded yet: {script}");
        }
        bounded.clear();
        bounded.allow(Some(1 << 20), None);
        // What it says has no room either.
        assert_ne!(run(w, write), 0);
        let taken = usage(bounded.on(), bounded.project).expect("counted");
        assert!((1 << 19..1 << 21).contains(&taken.space), "{taken:?}");
        assert_eq!(
            run(w, files) != 0,
            taken.space >= (1 << 20),
            "what is left may be enough for a directory"
        );
        bounded.clear();
        bounded.allow(None, Some(5));
        assert_ne!(run(w, files), 0);
        bounded.clear();
        assert_eq!(run(w, write), 0, "it is one file");
        bounded.clear();
        limit(bounded.on(), bounded.project, DiskLimits::default()).expect("root may");
        assert_eq!(run(w, files), 0, "nothing is bounded any more");
    });
}

/// What is written into a root file system counts too, and the kernel's moves between its directories work.
#[test]
fn changes_of_a_root_file_system_count() {
    where_there_are_quotas(|w| {
        let mut bounded = Bounded::new();
        let slot = bounded.place.sandbox().parent().expect("the slot").to_owned();
        let [root, upper, work, kernels] = ["root", "upper", "work", "work/work"].map(|name| slot.join(name));
        for directory in [&root, &upper, &work, &kernels] {
            fs::create_dir(directory).expect("made");
        }
        let layer = tempfile::tempdir().expect("a directory");
        for name in cage::isolation::SKELETON.iter().copied().chain(["slot/sandbox", "etc", "bin"]) {
            fs::create_dir_all(layer.path().join(name)).expect("made");
        }
        fs::write(layer.path().join("etc/lower"), "lower").expect("written");
        let Some(shell) = ["/bin/busybox", "/usr/bin/busybox"].iter().find(|path| Path::new(path).exists())
        else {
            return println!("SKIPPED quotas of root file systems: no busybox");
        };
        for name in ["sh", "dd", "mv", "rm", "mkdir", "cat"] {
            fs::copy(shell, layer.path().join("bin").join(name)).expect("copied");
        }
        let mut directories = vec![upper.as_path(), kernels.as_path(), work.as_path()];
        // With the sandbox, whose file `out` is one too many.
        fs::remove_file(bounded.place.sandbox().join("out")).expect("there");
        let sandbox = bounded.place.sandbox();
        // Of the user that the job is in there.
        chown(&sandbox, Some(0), Some(0)).expect("root may");
        directories.push(&sandbox);
        claim(&directories, bounded.project).expect("nobody else's");
        bounded.place.isolation.root = Some(RootFs {
            mount_point: root,
            layers: vec![layer.path().to_owned()],
            changes: Some((upper, work)),
        });
        bounded.place.isolation.binds[0].target = "/slot/sandbox".into();
        bounded.place.isolation.covers.clear();
        bounded.allow(Some(1 << 20), None);
        let mut run = |script: &str| run(w, &bounded.place, None, script);
        let moves = "echo new >>/etc/lower && mv /etc/lower /etc/moved && mkdir /etc/d && mv /etc/moved /etc/d/x && \
                     rm /etc/d/x && mkdir /etc/lower && cat /dev/null";
        let (code, out) = run(moves);
        assert_eq!((code, out.trim()), (0, ""));
        assert_ne!(run("dd if=/dev/zero of=/etc/big bs=64k count=32 2>/dev/null").0, 0);
        let taken = usage(bounded.on(), bounded.project).expect("counted").space;
        assert!((1 << 19..1 << 21).contains(&taken), "{taken}");
    });
}

/// Not a test: what a job would do to leave its project, in a process of this program.
#[test]
#[ignore = "run by the test below, in a container"]
fn helper() {
    let order = std::env::var(ORDER).expect("an order");
    let (directory, project) = order.split_once(' ').expect("two words");
    let _ = quota::give(Path::new(directory), project.parse().expect("a number"));
}

#[test]
fn a_job_cannot_leave_its_project() {
    where_there_are_quotas(|w| {
        let bounded = Bounded::new();
        let sandbox = bounded.place.sandbox();
        let program = sandbox.join("helper");
        fs::copy(std::env::current_exe().expect("it runs"), &program).expect("copied");
        let [inside, outside] = [project(), project()];
        assert_eq!(run(w, &bounded.place, Some(USER), "mkdir mine").0, 0);
        let arguments = "--ignored --exact quota::helper";
        let order = |project: u32| format!("{} {project}", sandbox.join("mine").display());
        let script = format!("{ORDER}='{}' ./helper {arguments}", order(inside));
        let (code, out) = run(w, &bounded.place, Some(USER), &script);
        assert!(code == 0 && out.contains("1 passed"), "{code} {out}");
        let taken = |project| usage(bounded.on(), project).expect("counted").inodes;
        assert_eq!(taken(inside), 0, "it is where it was");
        // The same attempt without isolation shows that it was one. The way there is closed to the job's user.
        let data = sandbox.parent().expect("the data");
        fs::set_permissions(data, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
        let mut child = Command::new(&program);
        child.args(arguments.split(' ')).env(ORDER, order(outside)).uid(USER).gid(USER).current_dir(&sandbox);
        let ended = child.stdout(std::process::Stdio::null()).status().expect("started");
        assert!(ended.success(), "{ended}");
        assert_eq!(taken(outside), 1, "whoever owns a directory may give it away");
    });
}

/// Two nodes of a host with the same numbers: neither counts what is the other's.
#[test]
fn a_project_of_somebody_else_is_not_taken() {
    if let Err(e) = directory() {
        return println!("SKIPPED quotas of projects: {e}");
    }
    let bounded = Bounded::new();
    bounded.allow(Some(1 << 20), Some(3));
    let (taken, allowed) = (usage(bounded.on(), bounded.project), limits(bounded.on(), bounded.project));
    let other = bounded.place.sandbox().parent().expect("the data").join("other");
    fs::create_dir(&other).expect("made");
    let error = claim(&[&other], bounded.project).expect_err("it has a sandbox already");
    assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(quota::project(&other).expect("asked"), 0);
    fs::write(other.join("file"), vec![1; 10_000]).expect("not its bound");
    assert_eq!(usage(bounded.on(), bounded.project).expect("counted"), taken.expect("counted"));
    assert_eq!(limits(bounded.on(), bounded.project).expect("asked"), allowed.expect("asked"));
    // What is found wrong only after it was done is undone: these are one, and not two.
    let mine = project();
    claim(&[&other, &other], mine).expect_err("what is in it is not counted either");
    assert_eq!(
        (quota::project(&other).expect("asked"), usage(bounded.on(), mine).expect("counted").inodes),
        (0, 0)
    );
}
