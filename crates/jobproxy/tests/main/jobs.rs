//! The life of a job, for each driver that this host has.

use crate::bomb::Bomb;
use crate::harness::{Event, FakeNode, PATIENCE};
use cage::{Driver, EnvironmentConfig};
use jobproxy::protocol::{FromProxy, FromSpawner, ProxyResult, ToProxy};
use jobproxy::record::{read_result, read_state};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use vocab::{AbortReason, Cpu, Failure, InterruptionReason, JobOutcome, Span, code};
use yson::Value;

/// The drivers that work here; the others are named, so that a skip is never silent.
pub fn drivers() -> Vec<Driver> {
    static PROBES: AtomicU32 = AtomicU32::new(1);
    let number = PROBES.fetch_add(1, Ordering::Relaxed);
    let config = EnvironmentConfig::new(&format!("millpond/test-probe-{}-{number}", std::process::id()));
    let usable = |driver: &Driver| {
        let opened = cage::open(*driver, &config).and_then(|e| e.prepare().and_then(|()| e.remove_root()));
        if let Err(e) = &opened {
            println!("SKIPPED {driver}: {e}");
        }
        opened.is_ok()
    };
    Driver::ALL.into_iter().filter(usable).collect()
}

pub fn for_each(test: impl Fn(&mut FakeNode)) {
    for driver in drivers() {
        println!("driver {driver}");
        test(&mut FakeNode::new(driver));
    }
}

fn completed() -> JobOutcome {
    JobOutcome::Completed { interrupted: None, restart_needed: false }
}

pub fn failure(result: &ProxyResult) -> &Failure {
    match &result.outcome {
        JobOutcome::Failed { error } => error,
        other => panic!("must have failed: {other:?}"),
    }
}

pub fn aborted(result: &ProxyResult) -> (AbortReason, &Failure) {
    match &result.outcome {
        JobOutcome::Aborted { reason, error } => (*reason, error),
        other => panic!("must be aborted: {other:?}"),
    }
}

fn text(result: &ProxyResult) -> String {
    String::from_utf8_lossy(&result.stderr.as_ref().expect("short enough to be inline").0).into_owned()
}

#[test]
fn commands_end_as_the_specification_says() {
    for_each(|node| {
        // Command, outcome's text ("" is success), code inside, stderr.
        let table = [
            ("/bin/true", "", 0, ""),
            ("true", "", 0, ""),
            ("echo out; echo err >&2", "", 0, "out\nerr\n"),
            ("exit 42", "User job failed: Process exited with code 42", code::PROCESS_NON_ZERO_EXIT, ""),
            ("false", "User job failed: Process exited with code 1", code::PROCESS_NON_ZERO_EXIT, ""),
            ("kill -9 $$", "User job failed: Process terminated by signal 9", code::PROCESS_SIGNAL, ""),
            ("kill -TERM $$", "User job failed: Process terminated by signal 15", code::PROCESS_SIGNAL, ""),
            (
                "no-such-program a b",
                "User job failed: Process exited with code 127",
                code::PROCESS_NON_ZERO_EXIT,
                "bash: line 1: no-such-program: command not found\n",
            ),
            ("test -z \"$(cat)\" && ls -A", "", 0, ""),
            ("pwd | grep -q /sandbox$", "", 0, ""),
            ("sleep 0.05 & disown; exit 0", "", 0, ""),
        ];
        for (command, outcome, code, stderr) in table {
            let job = node.job(command);
            let directory = job.job_directory.clone();
            let result = node.run(job);
            match &result.outcome {
                JobOutcome::Failed { error } => {
                    assert_eq!(error.to_string(), outcome, "{command}");
                    assert_eq!(
                        (error.code, error.inner_errors[0].code),
                        (code::USER_JOB_FAILED, code),
                        "{command}"
                    );
                }
                other => assert_eq!((other, outcome), (&completed(), ""), "{command}"),
            }
            assert_eq!(text(&result), stderr, "{command}");
            assert_eq!(result.stderr_size, stderr.len() as u64, "{command}");
            assert!(result.start_time.is_some_and(|s| s <= result.finish_time), "{command}");
            assert_eq!(
                read_result(&directory).expect("readable"),
                Some(result),
                "{command}: file and message differ"
            );
            let state = read_state(&directory).expect("readable").expect("written");
            assert_eq!(
                (state.job_id, Some(&state.pid)),
                (node_job(&directory), node.proxies.get(&state.job_id))
            );
        }
    });
}

fn node_job(directory: &std::path::Path) -> vocab::JobId {
    directory.file_name().and_then(|n| n.to_str()).and_then(|n| n.parse().ok()).expect("named after the job")
}

#[test]
fn the_environment_is_exactly_what_was_given() {
    for_each(|node| {
        for command in ["env", "exec env"] {
            let mut job = node.job(command);
            job.environment =
                [("A", "1"), ("B", "x y"), ("A", "2")].map(|(n, v)| (n.to_owned(), v.to_owned())).to_vec();
            let job_id = job.job_id;
            let sandbox = job.sandbox.canonicalize().expect("it exists");
            let result = node.run(job);
            let kept = text(&result);
            // Set by bash for some commands only; that the short cut agrees is tested beside it.
            let mut lines: Vec<&str> =
                kept.lines().filter(|l| !l.starts_with("SHLVL=") && !l.starts_with("_=")).collect();
            lines.sort_unstable();
            let (id, pwd) = (format!("YT_JOB_ID={job_id}"), format!("PWD={}", sandbox.display()));
            let path = format!("PATH={}", jobproxy::command::DEFAULT_PATH);
            assert_eq!(lines, ["A=2", "B=x y", &path, &pwd, &id], "{command}");
        }
        let job = node
            .job("for f in /proc/self/fd/*; do readlink $f | sed 's/[0-9]//g'; done; ulimit -c; ulimit -n");
        let kept = text(&node.run(job));
        // 0, 1, 2, 5 and the directory that the glob has open.
        let pipes = kept.lines().filter(|l| l.starts_with("pipe:")).count();
        assert_eq!((pipes, kept.lines().filter(|l| *l == "/dev/null").count()), (3, 1), "{kept}");
        // Above the node's own hard limit only with a privilege.
        let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let allowed = [65_536, hard.min(65_536)].map(|n| format!("\n0\n{n}\n"));
        assert!(allowed.iter().any(|a| kept.ends_with(a)), "{kept}");
    });
}

#[test]
fn restart_code_and_custom_statistics() {
    for_each(|node| {
        let mut job = node.job("echo '{rows=5; phase={read=1}};{rows=7}' >&5; exit 17");
        job.restart_exit_code = Some(17);
        let result = node.run(job);
        assert_eq!(result.outcome, JobOutcome::Completed { interrupted: None, restart_needed: true });
        let names: Vec<&str> = result.statistics.custom.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["phase/read", "rows"]);
        assert_eq!((result.statistics.custom[1].1.sum, result.statistics.custom[1].1.count), (12, 2));
        let bad = node.job("echo '{rows=text}' >&5");
        assert!(failure(&node.run(bad)).to_string().contains("\"rows\" is of type string"));
    });
}

#[test]
fn statistics_are_of_the_job() {
    for_each(|node| {
        let job = node.job("i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done");
        let s = node.run(job).statistics;
        let cpu = s.user_job_cpu_user + s.user_job_cpu_system;
        assert!(cpu >= Span::from_millis(20) && cpu.as_micros() <= s.exec.as_micros() + 20_000, "{s:?}");
        assert!(s.user_job_max_memory > 1 << 20, "{s:?}");
        assert!((1..4 << 20).contains(&s.job_proxy_max_memory), "{s:?}");
    });
}

#[test]
fn too_much_memory_fails_the_job() {
    for_each(|node| {
        // More than the kernel gives where it watches, and kept until somebody looks where it does not.
        let mut job = node.job("x=$(head -c 150000000 /dev/zero | tr '\\0' a); sleep 1000");
        job.memory_limit = 64 << 20;
        let result = node.run(job);
        let error = failure(&result);
        assert_eq!(error.to_string(), "User job failed: Memory limit exceeded");
        assert!(error.contains_code(code::MEMORY_LIMIT_EXCEEDED));
        assert_eq!(error.find_attribute("limit"), Some(&Value::Int(64 << 20)));
        let processes = error.find_attribute("processes").and_then(Value::as_list).expect("a list");
        let first = processes.first().expect("not empty");
        assert_eq!(first.get("name").and_then(Value::as_str), Some("bash"));
        assert!(first.get("rss").and_then(Value::as_i64).is_some_and(|r| r > 16 << 20), "{first:?}");
    });
}

#[test]
fn a_killed_child_counts_even_if_the_root_survives() {
    for driver in drivers().into_iter().filter(|d| d.has_groups()) {
        let mut node = FakeNode::new(driver);
        let mut job = node.job("head -c 300000000 /dev/zero | tail -n 1 > /dev/null; exit 0");
        job.memory_limit = 32 << 20;
        let result = node.run(job);
        assert_eq!(failure(&result).to_string(), "User job failed: Memory limit exceeded");
        assert_eq!(failure(&result).find_attribute("oom_killed"), Some(&Value::Bool(true)));
        // Whenever it was looked at: who took the memory is gone.
        let usage = failure(&result).find_attribute("usage").and_then(Value::as_i64).expect("a number");
        assert!(usage > 31 << 20 && usage <= 32 << 20, "{usage}");
    }
}

#[test]
fn the_time_limit_holds() {
    for_each(|node| {
        let mut job = node.job("trap '' TERM INT; while :; do sleep 1000; done");
        job.job_time_limit = Some(Span::from_millis(300));
        let result = node.run(job);
        assert_eq!(failure(&result).to_string(), "User job failed: Job time limit exceeded");
        assert!(failure(&result).contains_code(code::JOB_TIME_LIMIT_EXCEEDED));
        assert_eq!(failure(&result).find_attribute("limit"), Some(&Value::Int(300)));
        assert!(result.statistics.exec >= Span::from_millis(300));
    });
}

#[test]
fn interrupts() {
    for_each(|node| {
        let interrupt = |reason, timeout_ms| ToProxy::Interrupt {
            reason,
            timeout: Span::from_millis(timeout_ms),
            text: "make room".to_owned(),
        };
        // Asked and obeying.
        let mut job = node.job("trap 'exit 0' USR1; echo ready; while :; do sleep 0.02; done");
        job.interruption_signal = Some("SIGUSR1".to_owned());
        let id = node.start(job);
        wait_for_stderr(node, id, "ready\n");
        node.send(id, interrupt(InterruptionReason::Preemption, 600_000));
        let interrupted = Some(InterruptionReason::Preemption);
        assert_eq!(node.finished(id).outcome, JobOutcome::Completed { interrupted, restart_needed: false });

        // Asked and deaf.
        for (reason, ends_as) in [
            (InterruptionReason::Preemption, AbortReason::Preemption),
            (InterruptionReason::UserRequest, AbortReason::InterruptionTimeout),
        ] {
            let mut job = node.job("trap '' INT; echo ready; while :; do sleep 0.02; done");
            job.interruption_signal = Some("SIGINT".to_owned());
            let id = node.start(job);
            wait_for_stderr(node, id, "ready\n");
            node.send(id, interrupt(reason, 200));
            let result = node.finished(id);
            assert_eq!(aborted(&result).0, ends_as);
            assert!(aborted(&result).1.contains_code(code::INTERRUPTION_TIMEOUT));
        }

        // Cannot be asked.
        let job = node.job("sleep 1000");
        let id = node.start(job);
        node.started(id);
        node.send(id, interrupt(InterruptionReason::UserRequest, 0));
        node.send(id, interrupt(InterruptionReason::Preemption, 10_000));
        assert_eq!(aborted(&node.finished(id)).0, AbortReason::Preemption);
    });
}

fn wait_for_stderr(node: &mut FakeNode, id: vocab::JobId, wanted: &str) {
    node.started(id);
    let give_up = Instant::now() + PATIENCE;
    loop {
        node.send(id, ToProxy::ReadStderr { request_id: 1, offset: 0, limit: 0 });
        let got = node.wait("stderr", |e| match e {
            Event::Proxy(_, FromProxy::Stderr { data, .. }) => Some(data.0.clone()),
            _ => None,
        });
        if got == wanted.as_bytes() {
            return;
        }
        assert!(Instant::now() < give_up, "stderr is {:?}", String::from_utf8_lossy(&got));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn abort_at_once_and_fail_by_request() {
    for_each(|node| {
        // A tree with a daemon that has left its session and its parent.
        let job = node.job("setsid sleep 1000 </dev/null >/dev/null 2>&1 5>&- & (sleep 1000 &) ; sleep 1000");
        let id = node.start(job);
        node.wait("hello", |e| matches!(e, Event::Proxy(_, FromProxy::Hello { .. })).then_some(()));
        let by_hand = ToProxy::Abort { reason: AbortReason::UserRequest, text: "by hand".to_owned() };
        let too_late = ToProxy::Abort { reason: AbortReason::Other, text: "too late".to_owned() };
        node.send_together(id, &[by_hand, too_late]);
        let result = node.finished(id);
        assert_eq!(
            (aborted(&result).0, aborted(&result).1.message.as_str()),
            (AbortReason::UserRequest, "by hand")
        );

        let job = node.job("sleep 1000");
        let id = node.start(job);
        node.started(id);
        node.send(id, ToProxy::Fail { error: None });
        assert_eq!(failure(&node.finished(id)).to_string(), "Job failed by external request");
    });
}

#[test]
fn a_daemon_does_not_survive_its_job() {
    for_each(|node| {
        let job = node.job("setsid sleep 4321 </dev/null >/dev/null 2>&1 5>&- & echo $! ; exit 0");
        let result = node.run(job);
        assert_eq!(result.outcome, completed());
        let pid: u32 = text(&result).trim().parse().expect("a pid");
        assert!(!cage::ProcessId::of(pid).is_some_and(|p| p.is_alive()), "daemon {pid} lives");
    });
}

#[test]
fn lots_of_stderr_is_cut_quickly_and_exactly() {
    for_each(|node| {
        let mut job = node.job("echo begin; head -c 1000000000 /dev/zero; echo end");
        job.max_stderr_size = 100_000;
        let directory = job.job_directory.clone();
        let start = Instant::now();
        let result = node.run(job);
        println!("1 GB of stderr in {:?}", start.elapsed());
        assert_eq!((&result.outcome, result.stderr_size), (&completed(), 1_000_000_010));
        assert!(result.stderr.is_none(), "too long to be inline");
        let kept =
            jobproxy::stderr::read(&directory, 100_000, result.stderr_size, 0, u64::MAX).expect("readable");
        assert_eq!(kept.len(), 100_000 + jobproxy::stderr::SKIPPED.len());
        assert!(kept.starts_with(b"begin\n\0") && kept.ends_with(b"\0end\n"));
        assert!(kept[50_000..].starts_with(jobproxy::stderr::SKIPPED));
    });
}

#[test]
fn a_fork_bomb_is_contained() {
    for driver in drivers().into_iter().filter(|d| d.has_groups()) {
        let mut node = FakeNode::new(driver);
        let bomb = Bomb::new();
        let mut job = node.job(&bomb.script());
        job.pids_limit = 100;
        let id = node.start(job);
        node.started(id);
        let most = bomb.most(90);
        assert!((90..=100).contains(&most), "{driver}: {most} processes under a limit of 100");
        let start = Instant::now();
        node.send(id, ToProxy::Abort { reason: AbortReason::UserRequest, text: "enough".to_owned() });
        assert_eq!(aborted(&node.finished(id)).0, AbortReason::UserRequest);
        println!("{driver}: a fork bomb of {most} killed in {:?}", start.elapsed());
        assert_eq!(bomb.size(), 0, "{driver}: what is left of it");
    }
}

#[test]
fn a_killed_proxy_is_noticed_and_its_job_can_be_killed() {
    for_each(|node| {
        let job = node.job("sleep 1000 & sleep 1000");
        let directory = job.job_directory.clone();
        let id = node.start(job);
        let user = node.started(id);
        cage::sys::kill(node.proxies[&id], 9).expect("it lives");
        let (mut closed, mut died) = (false, None);
        node.wait("death", |e| {
            match e {
                Event::Closed(j) => closed |= *j == id,
                Event::Spawner(FromSpawner::ProxyDied { job_id, exit, .. }) if *job_id == id => {
                    died = Some(*exit)
                }
                _ => {}
            }
            (closed && died.is_some()).then_some(())
        });
        assert_eq!(died, Some(-9));
        assert_eq!(read_result(&directory).expect("no file is no error"), None);
        assert!(!read_state(&directory).expect("readable").expect("written").is_alive());
        jobproxy::recovery::kill_job(node.environment.as_ref(), id, PATIENCE).expect("killed");
        assert!(!cage::ProcessId::of(user).is_some_and(|p| p.is_alive()));
        let outcome = jobproxy::recovery::outcome_of_dead_proxy(died, false);
        assert!(matches!(outcome, JobOutcome::Failed { .. }), "{outcome:?}");
        let outcome = jobproxy::recovery::outcome_of_dead_proxy(died, true);
        assert!(
            matches!(outcome, JobOutcome::Aborted { reason: AbortReason::JobProxyFailed, .. }),
            "{outcome:?}"
        );
    });
}

#[test]
fn a_job_outlives_its_node() {
    for_each(|node| {
        let job = node.job("echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 3");
        let (sandbox, directory) = (job.sandbox.clone(), job.job_directory.clone());
        let id = node.start(job);
        let user = node.started(id);
        // Node and spawner die.
        node.vanish();
        node.spawner.take().expect("it lives").stop().expect("it ends with its socket");
        std::thread::sleep(Duration::from_millis(250));
        assert!(read_state(&directory).expect("readable").expect("written").is_alive());
        // The new node gets the same job with its start time.
        node.come_back();
        let again = node.wait("hello", |e| match e {
            Event::Proxy(j, FromProxy::Hello { start_time, .. }) if *j == id => Some(*start_time),
            _ => None,
        });
        assert!(again.is_some());
        assert!(cage::ProcessId::of(user).is_some_and(|p| p.is_alive()));
        node.send(id, ToProxy::SetCpuCap { cores: Some(Cpu(50)) });
        node.send(id, ToProxy::Poll {});
        std::fs::write(sandbox.join("go"), b"").expect("written");
        let result = node.finished(id);
        assert_eq!(failure(&result).find_attribute("exit_code"), Some(&Value::Int(3)));
        assert_eq!((text(&result).as_str(), result.start_time), ("one\ntwo\n", again));
    });
}

#[test]
fn a_result_waits_for_an_absent_node() {
    for_each(|node| {
        let job = node.job("while [ ! -e go ]; do sleep 0.05; done; echo done");
        let (sandbox, directory) = (job.sandbox.clone(), job.job_directory.clone());
        let id = node.start(job);
        node.started(id);
        node.vanish();
        std::fs::write(sandbox.join("go"), b"").expect("written");
        let give_up = Instant::now() + PATIENCE;
        let result = loop {
            if let Some(result) = read_result(&directory).expect("readable") {
                break result;
            }
            assert!(Instant::now() < give_up, "no result");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!((result.outcome.clone(), text(&result).as_str()), (completed(), "done\n"));
    });
}

#[test]
fn a_lost_supervisor_ends_the_job_in_the_end() {
    for driver in drivers() {
        let mut node = FakeNode::with(driver, |c| c.supervisor_lost_timeout = Span::from_millis(400));
        let job = node.job("sleep 1000");
        let directory = job.job_directory.clone();
        let id = node.start(job);
        node.started(id);
        node.vanish();
        let exit = node.wait("exit", |e| match e {
            Event::Spawner(FromSpawner::ProxyDied { exit, .. }) => Some(*exit),
            _ => None,
        });
        assert_eq!(exit, jobproxy::proxy::exit::SUPERVISOR_LOST);
        let result = read_result(&directory).expect("readable").expect("written");
        assert_eq!(aborted(&result).0, AbortReason::Other);
    }
}

#[test]
fn what_cannot_start_says_why() {
    for_each(|node| {
        let mut job = node.job("true");
        job.sandbox = job.job_directory.join("nowhere");
        let result = node.run(job);
        assert_eq!((aborted(&result).0, result.start_time), (AbortReason::Other, None));
        assert!(aborted(&result).1.message.contains("enter the sandbox"), "{result:?}");

        let job = node.job("true\0");
        assert!(failure(&node.run(job)).to_string().contains("NUL byte"));

        let mut job = node.job("true");
        job.environment = vec![("BIG".to_owned(), "x".repeat(3 << 20))];
        assert!(failure(&node.run(job)).to_string().contains("too long"));
    });
}

#[test]
fn an_idle_proxy_is_small_and_sleeps() {
    for driver in drivers() {
        let mut node = FakeNode::with(driver, |c| c.memory_watchdog_period = Span::from_secs(1));
        let job = node.job("sleep 1000");
        let id = node.start(job);
        node.started(id);
        let proxy = node.proxies[&id];
        let number = |file: &str, key: &str| -> u64 {
            let text = std::fs::read_to_string(format!("/proc/{proxy}/{file}")).expect("readable");
            let line = text.lines().find(|l| l.starts_with(key)).expect("there");
            line.split_ascii_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
        };
        // Waits for locks of the kernel's count as well, and a busy host has some: a proxy that wakes too often does so
        // in every window.
        let mut window = || {
            let (before, start) = (number("status", "voluntary_ctxt_switches:"), Instant::now());
            while start.elapsed() < Duration::from_secs(3) {
                node.pump(Duration::from_millis(100));
            }
            (number("status", "voluntary_ctxt_switches:") - before, start.elapsed().as_secs() + 1)
        };
        let mut windows = Vec::new();
        let is_quiet = (0..10).any(|_| {
            let (woken, seconds) = window();
            windows.push((woken, seconds));
            woken <= seconds
        });
        assert!(is_quiet, "woken, in less than seconds: {windows:?}");
        let private = number("smaps_rollup", "Private_Dirty:") + number("smaps_rollup", "Private_Clean:");
        println!("{driver}: private memory of a proxy {private} KB");
        assert!(private <= 4096, "{private} KB");
        node.send(id, ToProxy::Abort { reason: AbortReason::Other, text: String::new() });
        node.finished(id);
    }
}

/// Under a load of many jobs nothing is lost and nothing is left.
#[test]
fn many_jobs_at_once() {
    for_each(|node| {
        let ids: Vec<_> = (0..60)
            .map(|i| {
                let job = node.job(&format!("exit {}", i % 3));
                node.start(job)
            })
            .collect();
        let mut ends = std::collections::BTreeMap::new();
        while ends.len() < ids.len() {
            let (id, outcome) = node.wait("end", |e| match e {
                Event::Proxy(id, FromProxy::Finished { result }) => Some((*id, result.outcome.clone())),
                _ => None,
            });
            assert!(ends.insert(id, outcome).is_none(), "finished twice");
        }
        for (i, id) in ids.iter().enumerate() {
            assert_eq!(ends[id] == completed(), i % 3 == 0, "job {i}");
        }
    });
}
