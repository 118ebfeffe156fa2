//! What a proxy measures while the job runs, and what it does about it: the CPU monitor, and memory
//! above what was asked for.

use crate::harness::{Event, FakeNode, PATIENCE};
use crate::jobs::{aborted, drivers, for_each};
use cage::Driver;
use jobproxy::protocol::{FromProxy, Holds, JobStart, Progress, ToProxy};
use jobproxy::record::read_state;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vocab::{AbortReason, Cpu, JobId, Span};
use yson::Map;

/// A monitor that decides after two checks alike, ten times a second.
fn quick(reclaim: bool) -> Map {
    yson::map! {
        "enable_cpu_reclaim" => reclaim,
        "check_period" => 100,
        "smoothing_factor" => 0.9,
        "vote_window_size" => 2,
        "vote_decision_threshold" => 1,
        "decrease_coefficient" => 0.5,
    }
}

fn progress(node: &mut FakeNode, id: JobId, what: &str, wanted: impl Fn(&Progress) -> bool) -> Progress {
    node.wait(what, |e| match e {
        Event::Proxy(j, FromProxy::Progress { progress }) if *j == id && wanted(progress) => {
            Some(progress.clone())
        }
        _ => None,
    })
}

/// Asks the proxy until it has measured what is wanted.
fn measured(node: &mut FakeNode, id: JobId, what: &str, wanted: impl Fn(&Progress) -> bool) {
    let give_up = Instant::now() + PATIENCE;
    loop {
        node.send(id, ToProxy::Poll {});
        let answer = progress(node, id, "answer", |_| true);
        if wanted(&answer) {
            return;
        }
        assert!(Instant::now() < give_up, "{what}: not within {PATIENCE:?}: {:?}", answer.statistics);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Only what is told at once arrives.
fn without_reports(driver: Driver) -> FakeNode {
    FakeNode::with(driver, |c| c.job_proxy_heartbeat_period = Span::from_secs(3600))
}

fn stop(node: &mut FakeNode, id: JobId) {
    node.send(id, ToProxy::Abort { reason: AbortReason::UserRequest, text: String::new() });
    node.finished(id);
}

/// An OCI runtime is used with the groups that the host has.
fn has_v2_groups(driver: Driver) -> bool {
    driver == Driver::CgroupV2
        || (driver == Driver::Oci && std::path::Path::new("/sys/fs/cgroup/cgroup.controllers").exists())
}

/// The file in which the kernel keeps the job's guarantee, and the text of it for so many cores.
fn weight_file(node: &FakeNode, id: JobId, cores: f64) -> Option<(PathBuf, String)> {
    let driver = node.environment.driver();
    let (hierarchy, name, text) = match (driver.has_groups(), has_v2_groups(driver)) {
        (true, true) => ("", "cpu.weight", format!("{}", (cores * 100.0) as i64)),
        (true, false) => ("cpu", "cpu.shares", format!("{}", (cores * 1024.0).round() as i64)),
        _ => return None,
    };
    let group = PathBuf::from("/sys/fs/cgroup").join(hierarchy).join(&node.config.root_group);
    Some((group.join("jobs").join(id.to_string()).join(name), text))
}

fn assert_weight(node: &FakeNode, id: JobId, cores: f64) {
    if let Some((file, wanted)) = weight_file(node, id, cores) {
        assert_eq!(std::fs::read_to_string(&file).expect("the group is there").trim(), wanted);
    }
}

#[test]
fn the_guarantee_follows_the_use_and_survives_the_node() {
    for driver in drivers() {
        println!("driver {driver}");
        let mut node = without_reports(driver);
        let mut job = node.job("while [ ! -e busy ]; do sleep 0.2; done; while :; do :; done");
        job.cpu_guarantee = Cpu(200);
        // A fifth of a core is busy here: as much as a host gives that does much else at the same time.
        job.cpu_monitor = quick(true);
        job.cpu_monitor.insert("relative_lower_bound", 0.1);
        job.cpu_monitor.insert("relative_upper_bound", 0.1);
        let (sandbox, directory) = (job.sandbox.clone(), job.job_directory.clone());
        let id = node.start(job);
        // Idle: down to the floor. It is said at once: no other report is due for an hour.
        let idle = progress(&mut node, id, "lower guarantee", |p| p.holds.cpu == Cpu(100));
        let report = idle.statistics.cpu_monitor.expect("it has measured");
        assert_eq!((report.limit, report.reclaims), (1_000_000, true));
        let change = report.last_change.expect("that was one");
        assert_eq!((change.from, change.to, change.applied), (2_000_000, 1_000_000, true));
        assert_eq!(report.statistics.preemptible_cpu_x100, 100);
        assert_weight(&node, id, 1.0);

        // The node dies. What the job holds is on disk, and in the first words to the next node.
        node.vanish();
        let kept = read_state(&directory).expect("readable").expect("written");
        assert_eq!(kept.holds.cpu, Cpu(100));
        node.come_back();
        let said = node.wait("hello", |e| match e {
            Event::Proxy(j, FromProxy::Hello { holds, .. }) if *j == id => Some(*holds),
            _ => None,
        });
        assert_eq!(said, kept.holds);

        // Busy: up in steps, to what it was started with.
        std::fs::write(sandbox.join("busy"), b"").expect("written");
        let busy = progress(&mut node, id, "higher guarantee", |p| p.holds.cpu > Cpu(100));
        assert_eq!(busy.holds.cpu, Cpu(145));
        let most = progress(&mut node, id, "the whole guarantee", |p| p.holds.cpu > Cpu(145));
        assert_eq!(most.holds.cpu, Cpu(200));
        assert_weight(&node, id, 2.0);
        stop(&mut node, id);
    }
}

#[test]
fn without_reclaim_nothing_moves_and_everything_is_counted() {
    for_each(|node| {
        let mut job = node.job("while [ ! -e go ]; do sleep 0.2; done");
        job.cpu_guarantee = Cpu(200);
        job.cpu_monitor = quick(false);
        let sandbox = job.sandbox.clone();
        let id = node.start(job);
        node.started(id);
        assert_weight(node, id, 2.0);
        // Two cores over a measured part of at least half a second.
        progress(node, id, "some measures", |p| {
            p.statistics.cpu_monitor.as_ref().is_some_and(|report| {
                let s = &report.statistics;
                s.aggregated_max_cpu_usage_x100 >= 100 && s.aggregated_preemptible_cpu_x100 > 0
            })
        });
        std::fs::write(sandbox.join("go"), b"").expect("written");
        let end = node.finished(id).statistics;
        let report = end.cpu_monitor.expect("it has measured");
        assert_eq!((report.reclaims, report.limit), (false, 1_000_000), "what it would be");
        let s = report.statistics;
        assert!(s.aggregated_preemptible_cpu_x100 >= s.aggregated_preempted_cpu_x100, "{s:?}");
        assert_eq!(s.aggregated_preempted_cpu_x100, 0);
        let most = 2 * end.exec.as_micros() / 10_000 + 1;
        assert!(
            (100..=i128::from(most)).contains(&i128::from(s.aggregated_max_cpu_usage_x100)),
            "{s:?}, {most}"
        );
    });
}

#[test]
fn a_job_without_a_guarantee_has_no_monitor() {
    for_each(|node| {
        let mut job = node.job("sleep 0.3");
        job.cpu_guarantee = Cpu(0);
        job.cpu_monitor = quick(true);
        assert_eq!(node.run(job).statistics.cpu_monitor, None);
    });
}

/// In the hard mode the quota is the limit (4.5), but only where the limit is real.
#[test]
fn the_cap_follows_where_the_node_wants_it() {
    for driver in drivers().into_iter().filter(|d| d.has_groups()) {
        let mut node = FakeNode::with(driver, |c| c.cpu_monitor_sets_cap = true);
        let quota = |node: &FakeNode, id: JobId| {
            let (file, _) = weight_file(node, id, 1.0).expect("a group");
            let name = if has_v2_groups(driver) { "cpu.max" } else { "cpu.cfs_quota_us" };
            let text = std::fs::read_to_string(file.with_file_name(name)).expect("the group is there");
            text.split_ascii_whitespace().next().unwrap_or_default().to_owned()
        };
        let job = |node: &mut FakeNode, reclaim: bool| {
            let mut job = node.job("sleep 1000");
            job.cpu_guarantee = Cpu(200);
            job.cpu_monitor = quick(reclaim);
            job
        };
        let reclaimed = job(&mut node, true);
        let reclaimed = node.start(reclaimed);
        node.started(reclaimed);
        progress(&mut node, reclaimed, "lower guarantee", |p| p.holds.cpu == Cpu(100));
        assert_eq!(quota(&node, reclaimed), "100000");
        let other = job(&mut node, false);
        let other = node.start(other);
        node.started(other);
        assert!(["max", "-1"].contains(&quota(&node, other).as_str()), "nothing bounds it");
        stop(&mut node, reclaimed);
        stop(&mut node, other);
    }
}

/// A job that holds what the command makes it hold, in bash's own memory.
fn holding(node: &mut FakeNode, megabytes: u32) -> JobStart {
    let bytes = megabytes << 20;
    let mut job = node
        .job(&format!("sleep 0.3; x=$(head -c {bytes} /dev/zero | tr '\\0' a); sleep 1000; echo ${{#x}}"));
    job.memory_limit = 1 << 30;
    job.memory_request = 24 << 20;
    job
}

#[test]
fn memory_above_the_request_is_said_at_once() {
    for driver in drivers() {
        println!("driver {driver}");
        let mut node = without_reports(driver);
        let job = holding(&mut node, 40);
        let directory = job.job_directory.clone();
        let id = node.start(job);
        // Job and proxy together are above it a moment before the job alone is.
        let above = |p: &Progress| p.statistics.user_job_peak_memory > 40 << 20;
        let grown = progress(&mut node, id, "growth", above);
        assert!(grown.holds.total_peak > 40 << 20, "{grown:?}");
        assert!(grown.holds.total_peak <= grown.statistics.user_job_peak_memory + (4 << 20), "{grown:?}");
        let kept = read_state(&directory).expect("readable").expect("written");
        assert!(kept.holds.total_peak > 24 << 20, "{kept:?}");
        stop(&mut node, id);
    }
}

#[test]
fn below_the_request_nobody_is_bothered() {
    for_each(|node| {
        let mut job = holding(node, 8);
        job.memory_request = 256 << 20;
        let directory = job.job_directory.clone();
        let id = node.start(job);
        node.started(id);
        std::thread::sleep(std::time::Duration::from_millis(600));
        let kept = read_state(&directory).expect("readable").expect("written");
        assert_eq!(kept.holds, Holds { cpu: Cpu(100), total_peak: 0 });
        stop(node, id);
    });
}

#[test]
fn a_proxy_far_above_its_reserve_gives_up() {
    for_each(|node| {
        let mut job = node.job("sleep 1000");
        job.job_proxy_memory_reserve = 0;
        job.job_proxy_memory_overcommit_limit = Some(1 << 10);
        let result = node.run(job);
        let (reason, error) = aborted(&result);
        assert_eq!(reason, AbortReason::ResourceOverdraft);
        assert_eq!(error.message, "Job proxy exceeded its memory reserve");
    });
}

#[test]
fn waiting_switching_and_storage_are_counted() {
    for driver in drivers() {
        let mut node = FakeNode::new(driver);
        let job = node.job("head -c 4194304 /dev/urandom > f; sync f; for i in 1 2 3; do sleep 0.05; done");
        let s = node.run(job).statistics;
        assert!(s.user_job_context_switches >= 3, "{s:?}");
        assert!(s.user_job_bytes_written >= 4 << 20, "{s:?}");
        assert!(s.job_proxy_context_switches > 0, "{s:?}");
    }
}

/// A process above its reserve is one of the first that the kernel takes, and one below it is not.
#[test]
fn processes_above_their_reserve_have_a_score() {
    for driver in drivers() {
        println!("driver {driver}");
        let mut node = FakeNode::with(driver, |c| c.oom_score_adj_on_exceeded_memory_reserve = Some(700));
        let mut job = node.job(
            "python3 -c \"x = bytearray(48 << 20); x[::4096] = b'1' * len(x[::4096])\nimport os, time\n\
             while not os.path.exists('small'): time.sleep(0.02)\nx = None\ntime.sleep(1000)\"; :",
        );
        job.user_job_memory_reserve = 24 << 20;
        let sandbox = job.sandbox.clone();
        let id = node.start(job);
        let pid = node.started(id);
        let score = |wanted: &str| {
            let path = format!("/proc/{pid}/oom_score_adj");
            let give_up = Instant::now() + PATIENCE;
            while std::fs::read_to_string(&path).expect("it lives").trim() != wanted {
                assert!(Instant::now() < give_up, "not {wanted}");
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        score("700");
        std::fs::write(sandbox.join("small"), b"").expect("written");
        score("0");
        stop(&mut node, id);
    }
}

/// Who asks often does not make the proxy measure often.
#[test]
fn a_question_is_answered_by_a_sample_that_is_young_enough() {
    for driver in drivers() {
        for (cache, measures) in [(3600, false), (0, true)] {
            let mut node = FakeNode::with(driver, |c| {
                c.memory_watchdog_period = Span::from_secs(3600);
                c.memory_tracker_cache_period = Span::from_secs(cache);
                // The first report is the answer, however late the question comes.
                c.job_proxy_heartbeat_period = Span::from_secs(3600);
            });
            let job = node.job("sleep 1000");
            let id = node.start(job);
            node.started(id);
            node.send(id, ToProxy::Poll {});
            let answer = progress(&mut node, id, "answer", |_| true);
            assert_eq!(answer.proxy_memory > 0, measures, "driver {driver}, cache of {cache} s");
            stop(&mut node, id);
        }
    }
}

/// Pages of a memory file system are counted, once, as files.
#[test]
fn memory_file_systems_are_measured() {
    for driver in drivers() {
        println!("driver {driver}");
        let mut node = FakeNode::new(driver);
        let mount = node.directory.path().join("tmpfs");
        std::fs::create_dir(&mount).expect("created");
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=32m", "tmpfs"])
            .arg(&mount)
            .status()
            .is_ok_and(|status| status.success());
        if !mounted {
            println!("SKIPPED: memory file systems cannot be mounted here");
            return;
        }
        let _guard = Unmount(mount.clone());
        let mut job = node.job(&format!(
            "head -c 8388608 /dev/zero > {0}/f; while [ ! -e measured ]; do sleep 0.05; done; rm {0}/f; \
             while [ ! -e removed ]; do sleep 0.05; done",
            mount.display()
        ));
        job.tmpfs_volumes = vec![mount];
        let sandbox = job.sandbox.clone();
        let id = node.start(job);
        measured(&mut node, id, "a full volume", |p| p.statistics.user_job_tmpfs.max_size == 8 << 20);
        std::fs::write(sandbox.join("measured"), b"").expect("written");
        measured(&mut node, id, "an empty volume", |p| p.statistics.user_job_tmpfs.size == 0);
        std::fs::write(sandbox.join("removed"), b"").expect("written");
        let s = node.finished(id).statistics;
        assert_eq!(s.user_job_tmpfs.max_size, 8 << 20, "{s:?}");
        assert_eq!(s.user_job_tmpfs.size, 0, "it was removed: {s:?}");
        assert_eq!(s.user_job_tmpfs_volumes, [s.user_job_tmpfs]);
        assert!(s.user_job_peak_memory >= 8 << 20, "{s:?}");
        assert!(s.user_job_max_memory < 8 << 20, "net of them: {s:?}");
    }
}

/// The way to a volume is the job's to change: it is asked by a descriptor that was opened before.
#[test]
fn a_volume_is_measured_wherever_the_job_has_moved_it() {
    for driver in drivers() {
        println!("driver {driver}");
        let mut node = FakeNode::new(driver);
        let way = node.directory.path().join("way");
        let mount = way.join("tmpfs");
        std::fs::create_dir_all(&mount).expect("created");
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=32m", "tmpfs"])
            .arg(&mount)
            .status()
            .is_ok_and(|status| status.success());
        if !mounted {
            println!("SKIPPED: memory file systems cannot be mounted here");
            return;
        }
        let moved = node.directory.path().join("moved");
        let _guard = Unmount(moved.join("tmpfs"));
        let mut job = node.job(&format!(
            "mv {way} {moved} && ln -s /dev/shm {way}; head -c 8388608 /dev/zero > {moved}/tmpfs/f; \
             while [ ! -e measured ]; do sleep 0.05; done",
            way = way.display(),
            moved = moved.display()
        ));
        job.tmpfs_volumes = vec![mount];
        let sandbox = job.sandbox.clone();
        let id = node.start(job);
        measured(&mut node, id, "a full volume", |p| p.statistics.user_job_tmpfs.max_size == 8 << 20);
        std::fs::write(sandbox.join("measured"), b"").expect("written");
        let s = node.finished(id).statistics;
        assert_eq!(s.user_job_tmpfs.max_size, 8 << 20, "{s:?}");
    }
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
