//! Node and server die and come back; jobs do not notice.

use std::time::{Duration, Instant};

use cage::Driver;
use jobproxy::record::{read_result, read_state};
use vocab::*;
use wire::JobEvent;

use crate::harness::*;

/// Counts its runs in a file beside the data directory, then waits for another file.
fn patient(b: &Bench, name: &str) -> String {
    let place = b.shared().join(name);
    let place = place.display();
    format!("echo run >> {place}.runs; while [ ! -e {place}.go ]; do sleep 0.05; done; echo done; exit 5")
}
fn let_go(b: &Bench, name: &str) {
    std::fs::write(b.shared().join(format!("{name}.go")), "").expect("written");
}
fn runs(b: &Bench, name: &str) -> usize {
    let text = std::fs::read_to_string(b.shared().join(format!("{name}.runs"))).unwrap_or_default();
    text.lines().count()
}

/// Directories of the jobs that slots hold, or have held.
fn job_directories(b: &Bench) -> Vec<std::path::PathBuf> {
    let slots = std::fs::read_dir(b.data().join("slots")).expect("readable");
    slots.flatten().map(|slot| slot.path().join("job")).collect()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < give_up, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Until the proxy of the one job that has been let go has written down how it ended, and is gone.
fn wait_for_a_result(b: &Bench) {
    until("a result", || {
        job_directories(b).iter().any(|job| {
            let ended = read_result(job).is_ok_and(|result| result.is_some());
            ended && !read_state(job).ok().flatten().is_some_and(|proxy| proxy.is_alive())
        })
    });
}

fn exit_code(end: &wire::FinishedJob) -> Option<i64> {
    match &end.outcome {
        JobOutcome::Failed { error } => error.find_attribute("exit_code")?.as_i64(),
        _ => None,
    }
}

#[test]
fn jobs_survive_a_killed_agent() {
    for driver in drivers() {
        let mut b = Bench::new(driver, 3);
        let (stays, ends) = (b.run(&patient(&b, "stays")), b.run(&patient(&b, "ends")));
        let start_time = b.started(stays);
        b.started(ends);
        b.kill_agent();
        let_go(&b, "ends");
        wait_for_a_result(&b);
        b.start_agent();
        let hello = b.hello();
        let running: Vec<JobId> = hello.running.iter().map(|j| j.identity.job_id).collect();
        assert_eq!(running, [stays]);
        assert_eq!(hello.running[0].phase, JobPhase::Running);
        assert_eq!(hello.running[0].start_time, Some(start_time));
        let finished: Vec<JobId> = hello.finished.iter().map(|j| j.identity.job_id).collect();
        assert_eq!(finished, [ends]);
        assert_eq!(exit_code(&hello.finished[0]), Some(5));
        assert_eq!(hello.finished[0].stderr.as_deref(), Some(b"done\n".as_slice()));
        b.release(&[ends]);
        assert_eq!(b.stderr(stays, 0, 100).expect("the adopted proxy answers"), b"");
        let_go(&b, "stays");
        let end = b.finished(stays);
        assert_eq!((exit_code(&end), end.start_time), (Some(5), Some(start_time)));
        assert_eq!(b.ends_within(Duration::from_millis(300)), [], "each end is told once");
        assert_eq!((runs(&b, "stays"), runs(&b, "ends")), (1, 1), "nothing ran twice");
        b.release(&[stays]);
        until("the node to forget it", || b.stderr(stays, 0, 10).is_err());
        b.kill_agent();
        b.start_agent();
        let hello = b.hello();
        assert!(hello.running.is_empty() && hello.finished.is_empty(), "released is forgotten");
        assert!(b.stop_agent());
        b.assert_clean();
    }
}

#[test]
fn an_agent_killed_at_any_moment_loses_no_job_and_runs_none_twice() {
    for driver in drivers() {
        let mut b = Bench::new(driver, 2);
        for i in 0..6u64 {
            let place = b.shared().join(format!("job{i}"));
            let id = b.run(&format!("echo run >> {}.runs; sleep 0.3; exit 5", place.display()));
            std::thread::sleep(Duration::from_millis(i * i * 2));
            b.kill_agent();
            b.start_agent();
            let hello = b.hello();
            if let Some(end) = hello.finished.iter().find(|f| f.identity.job_id == id) {
                assert_outcome(end, runs(&b, &format!("job{i}")));
                b.release(&[id]);
            } else if hello.running.iter().any(|j| j.identity.job_id == id) {
                let end = b.finished(id);
                assert_outcome(&end, runs(&b, &format!("job{i}")));
                b.release(&[id]);
            } else {
                assert_eq!(runs(&b, &format!("job{i}")), 0, "a job that was never written down has not run");
            }
        }
        assert!(b.stop_agent());
        b.assert_clean();
    }
}

/// Its own end if it ran to it; else aborted. Never more than one run.
fn assert_outcome(end: &wire::FinishedJob, runs: usize) {
    match &end.outcome {
        JobOutcome::Failed { .. } => assert_eq!((exit_code(end), runs), (Some(5), 1)),
        JobOutcome::Aborted { reason: AbortReason::Other, .. } => assert!(runs <= 1),
        other => panic!("{other:?}"),
    }
}

/// S12. The agent was killed while it made the directories of a slot.
#[test]
fn directories_of_a_slot_that_are_missing_are_made_again() {
    for driver in drivers() {
        let mut b = Bench::new(driver, 1);
        let first = b.run("true");
        b.finished(first);
        b.release(&[first]);
        until("the slot to be free", || !b.data().join("slots/0/job/record").exists());
        b.kill_agent();
        for name in ["job", "files"] {
            std::fs::remove_dir_all(b.data().join("slots/0").join(name)).expect("removed");
        }
        b.start_agent();
        b.hello();
        let second = b.run("true");
        assert!(matches!(b.finished(second).outcome, JobOutcome::Completed { .. }));
    }
}

#[test]
fn a_server_that_is_away() {
    let mut b = Bench::new(Driver::Simple, 2);
    let (first, second) = (b.run(&patient(&b, "first")), b.run(&patient(&b, "second")));
    b.started(first);
    b.started(second);
    b.server_dies();
    let_go(&b, "first");
    wait_for_a_result(&b);
    // The node hears of it a moment after it is written.
    let give_up = Instant::now() + PATIENCE;
    let hello = loop {
        b.server_returns();
        let hello = b.hello();
        if !hello.finished.is_empty() {
            break hello;
        }
        let running = hello.running.len();
        assert!(Instant::now() < give_up, "no end is told within {PATIENCE:?}, {running} jobs run");
        b.server_dies();
    };
    assert_eq!(hello.finished.iter().map(|j| j.identity.job_id).collect::<Vec<_>>(), [first]);
    assert_eq!(exit_code(&hello.finished[0]), Some(5));
    assert_eq!(hello.running.iter().map(|j| j.identity.job_id).collect::<Vec<_>>(), [second]);
    let_go(&b, "second");
    assert_eq!(exit_code(&b.finished(second)), Some(5));
    // Not released: told again to every server that comes.
    b.server_dies();
    b.server_returns();
    let mut told: Vec<JobId> = b.hello().finished.iter().map(|j| j.identity.job_id).collect();
    told.sort_unstable();
    assert_eq!(told, [first, second]);
    b.release(&[first, second]);
    assert!(b.stop_agent());
    b.assert_clean();
}

#[test]
fn a_long_stderr_waits_for_the_server() {
    let mut b = Bench::new(Driver::Simple, 1);
    let go = b.shared().join("go");
    let id = b.start(JobDescription {
        max_stderr_size: 1 << 20,
        ..description(&format!(
            "while [ ! -e {} ]; do sleep 0.05; done; head -c 500000 /dev/zero",
            go.display()
        ))
    });
    b.started(id);
    b.server_dies();
    std::fs::write(go, "").expect("written");
    std::thread::sleep(Duration::from_millis(500));
    b.server_returns();
    let hello = b.hello();
    assert!(hello.finished.is_empty(), "not before its stderr is there");
    assert_eq!(hello.running.len(), 1);
    let end = b.finished(id);
    assert_eq!(end.stderr_size, 500_000);
    assert_eq!(b.world.uploads.lock().expect("not poisoned").get(&id).map(Vec::len), Some(500_000));
    b.release(&[id]);
    assert!(b.stop_agent());
    b.assert_clean();
}

#[test]
fn one_node_per_directory() {
    let b = Bench::new(Driver::Simple, 1);
    let second = b.command().output().expect("it starts");
    assert!(!second.status.success());
    let words = String::from_utf8_lossy(&second.stderr).into_owned();
    let expected = format!("Another node runs on the directory {:?}, pid {}", b.data(), b.agent_pid());
    assert!(words.contains(&expected), "{words}");
}

#[test]
fn a_spawner_that_dies_is_replaced() {
    let mut b = Bench::new(Driver::Simple, 3);
    let survivor = b.run(&patient(&b, "survivor"));
    b.started(survivor);
    let spawner = children_of(b.agent_pid());
    assert_eq!(spawner.len(), 1, "the spawner is the agent's only child");
    cage::sys::kill(spawner[0], 9).expect("killed");
    until("another spawner", || {
        let children = children_of(b.agent_pid());
        children.len() == 1 && children != spawner
    });
    let next = b.run("true");
    assert!(matches!(b.finished(next).outcome, JobOutcome::Completed { .. }));
    let_go(&b, "survivor");
    assert_eq!(exit_code(&b.finished(survivor)), Some(5));
    let no_more = b.wait_quietly();
    assert!(no_more.is_empty(), "{no_more:?}");
    b.release(&[next, survivor]);
    assert!(b.stop_agent());
    b.assert_clean();
}

impl Bench {
    fn wait_quietly(&mut self) -> Vec<JobId> {
        self.ends_within(Duration::from_millis(500))
    }
}

fn children_of(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("readable");
    text.split_whitespace().filter_map(|p| p.parse().ok()).collect()
}

#[test]
fn usage_is_reported_while_a_job_runs() {
    let mut b = Bench::new(Driver::Simple, 1);
    // 32 MiB were granted; `tail` keeps 100 million bytes that have no line: what is used counts.
    let mut start = start_job(description("head -c 100000000 /dev/zero | tail -n 1 | sleep 1000"));
    start.resources.memory = 32 << 20;
    let id = start.identity.job_id;
    b.world.order(&wire::ServerMessage::Start(vec![start]));
    let usage = b.wait("a usage above the grant", |e| match e {
        JobEvent::ResourceUsage { job_id, resource_usage } if *job_id == id => Some(*resource_usage),
        _ => None,
    });
    assert!(usage.memory > 32 << 20, "{usage}");
    b.abort(id);
    b.finished(id);
    b.release(&[id]);
    assert!(b.stop_agent());
    b.assert_clean();
}

/// Every file below a directory that has a text in it.
fn files_with(directory: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(path),
                Ok(kind) if kind.is_file() => {
                    let bytes = std::fs::read(&path).unwrap_or_default();
                    if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                        found.push(path);
                    }
                }
                _ => {}
            }
        }
    }
    found
}

/// Secure vaults reach jobs as variables.
#[test]
fn the_environment_of_a_job_is_on_no_disk_and_its_job_is_adopted_without_it() {
    for driver in drivers() {
        let mut b = Bench::new(driver, 3);
        let secret = format!("secret-{}", new_id(1));
        let mut description = description(&patient(&b, "stays"));
        description.environment = [("YT_SECURE_VAULT_word".to_owned(), secret.clone())].into_iter().collect();
        let job = b.start(description);
        b.started(job);
        assert_eq!(files_with(&b.data(), &secret), Vec::<std::path::PathBuf>::new());
        b.kill_agent();
        assert_eq!(files_with(&b.data(), &secret), Vec::<std::path::PathBuf>::new());
        b.start_agent();
        let hello = b.hello();
        assert_eq!(hello.running.iter().map(|j| j.identity.job_id).collect::<Vec<_>>(), [job]);
        let_go(&b, "stays");
        let end = b.finished(job);
        assert_eq!(exit_code(&end), Some(5));
        b.release(&[job]);
        assert_eq!(runs(&b, "stays"), 1);
        assert_eq!(files_with(&b.data(), &secret), Vec::<std::path::PathBuf>::new());
    }
}

/// The self-check of a node has groups of its own. A node that was stopped in the middle of it left them behind, and with them
/// the groups above.
#[test]
fn a_node_that_is_stopped_while_it_starts_leaves_no_groups() {
    for driver in drivers().into_iter().filter(|driver| *driver != Driver::Simple) {
        let mut b = Bench::new(driver, 3);
        assert!(b.stop_agent());
        b.assert_clean();
        let mut caught = 0;
        for _ in 0..10 {
            b.start_agent();
            let mut was_probing = false;
            until("a self-check, or the end of the start", || {
                was_probing = b.has_probe();
                was_probing || b.has_said_hello()
            });
            assert!(b.stop_agent(), "it was killed by the signal instead of stopping");
            b.assert_clean();
            caught += usize::from(was_probing);
            if caught == 3 {
                break;
            }
        }
        assert!(caught > 0, "no self-check of driver {driver} was ever seen");
    }
}
