//! The drivers on a tree of plain files: what is written where, and what is made of what is read.
//! The only test of `cgroup_v2` on hosts without it, and of counters that are hard to provoke.

use cage::{BlockIo, Container, Driver, EnvironmentConfig, JobEnvironment, JobLimits};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vocab::{Cpu, Guid, JobId};

const JOB: JobId = JobId(Guid([1, 2, 0x10384, 3]));
const LIMITS: JobLimits =
    JobLimits { cpu_guarantee: Cpu(250), cpu_cap: Some(Cpu(25)), memory: Some(64 << 20), pids: Some(77) };

struct Tree {
    directory: tempfile::TempDir,
}

impl Tree {
    /// Mounts of the given v1 controllers, and a v2 mount with controllers of its own.
    fn new(v1: &[&str], v2_controllers: Option<&str>) -> Tree {
        let tree = Tree { directory: tempfile::tempdir().expect("a directory") };
        let at = |name: &str| tree.directory.path().join(name);
        let mut table = String::from("23 1 8:1 / / rw - ext4 /dev/vda rw\n");
        for name in v1 {
            table += &format!(
                "32 31 0:29 / {} rw,relatime shared:3 - cgroup cgroup rw,{name}\n",
                at(name).display()
            );
            fs::create_dir(at(name)).expect("created");
        }
        if let Some(controllers) = v2_controllers {
            table += &format!("41 31 0:38 / {} rw - cgroup2 cgroup2 rw\n", at("unified").display());
            fs::create_dir(at("unified")).expect("created");
            fs::write(at("unified/cgroup.controllers"), controllers).expect("written");
        }
        fs::write(at("mountinfo"), table).expect("written");
        tree
    }

    fn open(&self, driver: Driver) -> Result<Box<dyn JobEnvironment>, cage::CageError> {
        let mount_table = self.directory.path().join("mountinfo");
        cage::open(driver, &EnvironmentConfig { root_group: "millpond/n1".to_owned(), mount_table })
    }

    fn job(&self, hierarchy: &str) -> PathBuf {
        self.directory.path().join(hierarchy).join("millpond/n1/jobs").join(JOB.to_string())
    }

    /// A plain directory has no control files: they are put there beforehand.
    fn files(&self, hierarchy: &str, files: &[(&str, &str)]) {
        let group = self.job(hierarchy);
        fs::create_dir_all(&group).expect("created");
        for (name, content) in files {
            fs::write(group.join(name), content).expect("written");
        }
    }

    fn read(&self, hierarchy: &str, file: &str) -> String {
        fs::read_to_string(self.job(hierarchy).join(file)).expect("readable")
    }
}

fn v1_files(tree: &Tree) {
    tree.files("cpu", &[("cpu.shares", ""), ("cpu.cfs_period_us", ""), ("cpu.cfs_quota_us", "")]);
    tree.files(
        "memory",
        &[
            ("memory.limit_in_bytes", ""),
            (
                "memory.stat",
                "rss 1\ntotal_rss 1000\ntotal_shmem 200\ntotal_mapped_file 500\ntotal_pgmajfault 7\n",
            ),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
            ("memory.max_usage_in_bytes", "67100672\n"),
        ],
    );
    tree.files("pids", &[("pids.max", "")]);
}

fn check_v1_writes(tree: &Tree, container: &mut dyn Container) {
    assert_eq!(tree.read("cpu", "cpu.shares"), "2560");
    assert_eq!(
        (tree.read("cpu", "cpu.cfs_period_us"), tree.read("cpu", "cpu.cfs_quota_us")),
        ("100000".into(), "25000".into())
    );
    assert_eq!(tree.read("memory", "memory.limit_in_bytes"), "67108864");
    assert_eq!(tree.read("pids", "pids.max"), "77");
    let m = container.memory().expect("readable");
    assert_eq!((m.rss, m.shared, m.mapped_file, m.major_page_faults, m.oom_kills), (1000, 200, 300, 7, 3));
    assert_eq!(m.peak, 67_100_672);
}

#[test]
fn hybrid_limits_in_v1_and_counts_in_v2() {
    let tree = Tree::new(&["cpu", "memory", "pids", "blkio"], Some(""));
    let requests = "blkio.throttle.io_serviced_recursive";
    fs::write(tree.directory.path().join("blkio").join(requests), "8:0 Read 9\nTotal 9\n").expect("written");
    let environment = tree.open(Driver::Hybrid).expect("all is there");
    environment.prepare().expect("directories");
    v1_files(&tree);
    tree.files(
        "blkio",
        &[
            (
                "blkio.throttle.io_service_bytes_recursive",
                "8:0 Read 10\n8:0 Write 20\n8:0 Sync 30\n8:0 Total 30\n8:16 Read 5\n8:16 Write 6\nTotal 41\n",
            ),
            (requests, "8:0 Read 1\n8:0 Write 2\n8:0 Total 3\nTotal 3\n"),
        ],
    );
    tree.files(
        "unified",
        &[("cpu.stat", "usage_usec 30\nuser_usec 20\nsystem_usec 10\n"), ("cgroup.procs", "")],
    );
    let mut container = environment.create(JOB, &LIMITS).expect("created");
    check_v1_writes(&tree, container.as_mut());
    fs::write(tree.job("cpu").join("cpu.stat"), "nr_throttled 2\nthrottled_time 5000\n").expect("written");
    let cpu = container.cpu().expect("readable");
    assert_eq!((cpu.user, cpu.system, cpu.throttled), (micros(20), micros(10), micros(5)));
    let io = BlockIo { bytes_read: 15, bytes_written: 26, reads: 1, writes: 2 };
    assert_eq!(container.block_io(), Some(io));
    assert_eq!(environment.existing(), [JOB]);
    assert!(tree.directory.path().join("unified/millpond/n1/proxies").is_dir());
}

#[test]
fn groups_of_dead_probes_are_removed_at_start() {
    let tree = Tree::new(&["cpu", "memory", "pids"], Some(""));
    let environment = tree.open(Driver::Hybrid).expect("all is there");
    // No pid is that large; the other one is ours.
    let own = cage::ProcessId::own().expect("it runs");
    let (dead, living) = ("probe-4194999-1-1".to_owned(), format!("probe-{}-{}-1", own.pid, own.start_time));
    // Another process has that pid now; and a name as an older program gave it.
    let (earlier, older) =
        (format!("probe-{}-{}-1", own.pid, own.start_time - 1), format!("probe-{}-1", own.pid));
    for name in [&dead, &living, &earlier, &older] {
        for hierarchy in ["unified", "cpu", "memory", "pids"] {
            let jobs = tree.directory.path().join(hierarchy).join("millpond/n1/jobs");
            fs::create_dir_all(jobs.join(name)).expect("created");
        }
    }
    environment.prepare().expect("directories");
    for hierarchy in ["unified", "cpu", "memory", "pids"] {
        let jobs = tree.directory.path().join(hierarchy).join("millpond/n1/jobs");
        for gone in [&dead, &earlier, &older] {
            assert!(!jobs.join(gone).exists(), "{gone} in {hierarchy}");
        }
        assert!(jobs.join(&living).exists(), "{hierarchy}");
    }
}

#[test]
fn v1_divides_exact_time_by_ticks() {
    let tree = Tree::new(&["cpu", "cpuacct", "memory", "pids", "freezer", "blkio"], None);
    // A kernel that counts only what it throttles.
    let requests = tree.directory.path().join("blkio/blkio.throttle.io_serviced_recursive");
    fs::write(requests, "Total 0\n").expect("written");
    let environment = tree.open(Driver::CgroupV1).expect("all is there");
    environment.prepare().expect("directories");
    v1_files(&tree);
    tree.files("cpuacct", &[("cpuacct.stat", "user 3\nsystem 1\n"), ("cpuacct.usage", "40000000\n")]);
    tree.files("freezer", &[("freezer.state", "THAWED\n")]);
    let mut container = environment.create(JOB, &LIMITS).expect("created");
    check_v1_writes(&tree, container.as_mut());
    fs::write(tree.job("cpu").join("cpu.stat"), "").expect("written");
    let cpu = container.cpu().expect("readable");
    assert_eq!((cpu.user, cpu.system), (micros(30_000), micros(10_000)));
    assert_eq!(container.block_io(), None, "nobody counts");
    assert!(!tree.job("blkio").exists());
}

#[test]
fn v2_writes_and_reads() {
    let tree = Tree::new(&[], Some("cpuset cpu io memory pids\n"));
    let environment = tree.open(Driver::CgroupV2).expect("all is there");
    for level in ["unified", "unified/millpond", "unified/millpond/n1", "unified/millpond/n1/jobs"] {
        let level = tree.directory.path().join(level);
        fs::create_dir_all(&level).expect("created");
        fs::write(level.join("cgroup.subtree_control"), "").expect("written");
    }
    environment.prepare().expect("delegated");
    assert_eq!(
        fs::read_to_string(tree.directory.path().join("unified/millpond/n1/jobs/cgroup.subtree_control"))
            .expect("there"),
        "+cpu +memory +pids"
    );
    let files = [
        "cpu.weight",
        "cpu.max",
        "memory.max",
        "memory.oom.group",
        "memory.swap.max",
        "pids.max",
        "cgroup.procs",
    ];
    tree.files("unified", &files.map(|f| (f, "")));
    tree.files(
        "unified",
        &[
            ("cpu.stat", "user_usec 5\nsystem_usec 6\nthrottled_usec 7\n"),
            ("memory.stat", "anon 10\nfile 99\nfile_mapped 30\nshmem 12\npgmajfault 4\n"),
            ("memory.events", "low 0\nmax 2\noom 1\noom_kill 1\noom_group_kill 1\n"),
            ("memory.peak", "4096\n"),
            (
                "io.stat",
                "8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=9 dios=9\n8:16 rbytes=5 wbytes=6 rios=3 wios=4\n",
            ),
        ],
    );
    let mut container = environment.create(JOB, &LIMITS).expect("created");
    for (file, want) in [
        ("cpu.weight", "250"),
        ("cpu.max", "25000 100000"),
        ("memory.max", "67108864"),
        ("memory.oom.group", "1"),
        ("memory.swap.max", "0"),
        ("pids.max", "77"),
    ] {
        assert_eq!(tree.read("unified", file), want, "{file}");
    }
    let (cpu, m) = (container.cpu().expect("readable"), container.memory().expect("readable"));
    assert_eq!((cpu.user, cpu.system, cpu.throttled), (micros(5), micros(6), micros(7)));
    let io = BlockIo { bytes_read: 15, bytes_written: 26, reads: 4, writes: 6 };
    assert_eq!(container.block_io(), Some(io));
    assert_eq!((m.rss, m.shared, m.mapped_file, m.major_page_faults, m.oom_kills), (10, 12, 18, 4, 1));
    assert_eq!(m.peak, 4096);
}

#[test]
fn what_is_missing_is_named() {
    let hybrid = Tree::new(&["cpu"], Some(""));
    for (driver, want) in [
        (Driver::Hybrid, "no cgroup v1 hierarchy with controller \"memory\""),
        (Driver::CgroupV1, "controller \"freezer\""),
        (Driver::CgroupV2, "no controller \"cpu\""),
    ] {
        let error = hybrid.open(driver).err().expect("must be refused").to_string();
        assert!(error.contains(want), "{error}");
    }
    for root_group in ["", "/x", "../x", "a/../b"] {
        let mount_table = hybrid.directory.path().join("mountinfo");
        let config = EnvironmentConfig { root_group: root_group.to_owned(), mount_table };
        assert!(cage::open(Driver::Hybrid, &config).is_err(), "{root_group:?}");
    }
    let nowhere =
        EnvironmentConfig { root_group: "x".to_owned(), mount_table: Path::new("/no/such").to_owned() };
    assert!(cage::open(Driver::Hybrid, &nowhere).err().expect("no table").to_string().contains("/no/such"));
}

fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}
