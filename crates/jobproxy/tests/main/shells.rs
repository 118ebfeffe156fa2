//! Shells beside jobs: on a terminal or not, typed once, bounded, and gone with their job.

use crate::harness::{Event, FakeNode, PATIENCE};
use crate::jobs::for_each;
use cage::{Bind, Isolation};
use jobproxy::protocol::{FromProxy, JobStart, ToProxy};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use vocab::shell::Terminal;
use vocab::{AbortReason, Failure, Guid, JobId, ShellAnswer, ShellRequest, Span, code};

/// Isolated; its sandbox is the one place where it may write.
fn isolated(node: &mut FakeNode, command: &str) -> JobStart {
    let mut job = node.job(command);
    let sandbox = Bind { source: job.sandbox.clone(), target: job.sandbox.clone(), read_only: false };
    job.isolation = Some(Isolation {
        hostname: "slot".to_owned(),
        binds: vec![sandbox],
        scratch_size: 1 << 20,
        ..Isolation::default()
    });
    job
}

/// A running job, and an end of the test without one where there is nobody to isolate it.
fn with_job(command: &str, test: impl Fn(&mut FakeNode, JobId)) {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED job shells: namespaces need root");
    }
    for_each(|node| {
        let mut job = isolated(node, command);
        job.environment =
            vec![("COLOUR".into(), "blue".into()), ("YT_SECURE_VAULT_key".into(), "hidden".into())];
        let id = node.start(job);
        node.started(id);
        test(node, id);
    });
}

/// Asks and waits for the answer.
fn ask(node: &mut FakeNode, job: JobId, request: ShellRequest) -> Result<ShellAnswer, Failure> {
    node.send(job, ToProxy::Shell { request_id: 7, request });
    node.wait("answer of a shell", |e| match e {
        Event::Proxy(_, FromProxy::Shell { request_id: 7, answer }) => Some(Ok(answer.clone())),
        Event::Proxy(_, FromProxy::ShellRefused { request_id: 7, error }) => Some(Err(error.clone())),
        _ => None,
    })
}

fn spawn_request(command: Option<&str>, terminal: Option<(u32, u32)>) -> ShellRequest {
    // What the server draws by lot.
    static SHELLS: AtomicU32 = AtomicU32::new(1);
    ShellRequest::Spawn {
        shell_id: Guid([SHELLS.fetch_add(1, Ordering::Relaxed), 9, 9, 9]),
        command: command.map(str::to_owned),
        terminal: terminal.map(|size| Terminal { name: "vt100".to_owned(), size }),
        environment: vec!["MORE=of it".to_owned()],
        secrets: false,
        inactivity_timeout: None,
    }
}

fn spawn(node: &mut FakeNode, job: JobId, command: Option<&str>, terminal: Option<(u32, u32)>) -> Guid {
    ask(node, job, spawn_request(command, terminal)).expect("a shell").shell_id
}

fn update(node: &mut FakeNode, job: JobId, shell_id: Guid, offset: u64, keys: &str) -> u64 {
    let keys = keys.as_bytes().to_vec();
    let request = ShellRequest::Update { shell_id, input_offset: offset, keys, size: (0, 0) };
    ask(node, job, request).expect("it lives").consumed_offset.expect("it counts")
}

/// What it prints until that is seen.
fn until(node: &mut FakeNode, job: JobId, shell_id: Guid, wanted: &str) -> String {
    let (mut seen, give_up) = (String::new(), Instant::now() + PATIENCE);
    while !seen.contains(wanted) {
        assert!(Instant::now() < give_up, "no {wanted:?} in {seen:?}");
        match ask(node, job, ShellRequest::Poll { shell_id }) {
            Ok(answer) => seen.push_str(&String::from_utf8_lossy(&answer.output)),
            Err(error) => panic!("{error:?} instead of {wanted:?} after {seen:?}"),
        }
    }
    seen
}

/// All that it prints, and how it ends.
fn to_the_end(node: &mut FakeNode, job: JobId, shell_id: Guid) -> (String, Failure) {
    let mut seen = Vec::new();
    loop {
        match ask(node, job, ShellRequest::Poll { shell_id }) {
            Ok(answer) => seen.extend(answer.output),
            Err(error) => return (String::from_utf8_lossy(&seen).into_owned(), error),
        }
    }
}

fn end_job(node: &mut FakeNode, job: JobId) {
    node.send(job, ToProxy::Abort { reason: AbortReason::UserRequest, text: "enough".to_owned() });
    node.finished(job);
}

#[test]
fn a_shell_is_where_its_job_is() {
    with_job("sleep 1000", |node, job| {
        let shell = spawn(node, job, None, Some((24, 80)));
        let keys = "echo $((6*7)) $COLOUR $MORE $YT_JOB_ID [$YT_SECURE_VAULT_key] $TERM; pwd; tty; stty size; \
                    hostname; cat /proc/[0-9]*/comm | sort -u | tr '\\n' ' '; echo end''ed\n";
        assert_eq!(update(node, job, shell, 0, keys), keys.len() as u64);
        let seen = until(node, job, shell, "ended");
        let sandbox = node.job_directory(job).join("sandbox").canonicalize().expect("it is there");
        for wanted in [
            format!("42 blue of it {job} [] vt100"),
            sandbox.display().to_string(),
            "/dev/pts/".to_owned(),
            "24 80".to_owned(),
            "slot".to_owned(),
            "mp-init".to_owned(),
            "sleep".to_owned(),
        ] {
            assert!(seen.contains(&wanted), "no {wanted:?} in {seen}");
        }
        let groups = node.environment.reopen(job).expect("it runs").pids().expect("readable");
        // Without groups another process than the proxy sees a job by what its processes were given.
        let least = if node.environment.driver().has_groups() { 3 } else { 2 };
        assert!(groups.len() >= least, "init, command and shell are in the job's container: {groups:?}");
        end_job(node, job);
    });
}

#[test]
fn each_byte_is_taken_once_and_sizes_change() {
    with_job("sleep 1000", |node, job| {
        let shell = spawn(node, job, None, Some((24, 80)));
        assert_eq!(update(node, job, shell, 0, "echo on"), 7);
        assert_eq!(update(node, job, shell, 0, "echo on"), 7, "a repeated request");
        assert_eq!(update(node, job, shell, 50, "gap"), 7, "bytes that would leave a gap");
        assert_eq!(update(node, job, shell, 5, "one; echo th''ere\n"), 23, "an overlap");
        let seen = until(node, job, shell, "there");
        assert!(seen.contains("\rone\r\n"), "{seen}");
        let request =
            ShellRequest::Update { shell_id: shell, input_offset: 23, keys: Vec::new(), size: (30, 100) };
        ask(node, job, request).expect("it lives");
        update(node, job, shell, 23, "stty size; echo d''one; exit 3\n");
        assert!(until(node, job, shell, "done").contains("30 100"));
        let (_, error) = to_the_end(node, job, shell);
        assert_eq!(error.code, code::SHELL_EXITED, "{error:?}");
        assert_eq!(error.find_attribute("exit_code").and_then(|v| v.as_i64()), Some(3));
        let again = ask(node, job, ShellRequest::Poll { shell_id: shell }).expect_err("it is gone");
        assert_eq!(again.code, code::SHELL_EXITED);
        let unknown = ask(node, job, ShellRequest::Poll { shell_id: Guid([1, 2, 3, 4]) }).expect_err("none");
        assert!(unknown.message.contains("No such shell"), "{unknown:?}");
        end_job(node, job);
    });
}

#[test]
fn a_command_without_a_terminal_prints_what_it_prints() {
    with_job("sleep 1000", |node, job| {
        let shell = spawn(node, job, Some("printf 'a\\nb'; echo oh >&2; tty; cat; exit 5"), None);
        let (seen, error) = to_the_end(node, job, shell);
        assert_eq!(seen, "a\nboh\nnot a tty\n");
        assert_eq!(
            (error.code, error.find_attribute("exit_code").and_then(|v| v.as_i64())),
            (code::SHELL_EXITED, Some(5))
        );
        // Far more than is kept at a time: it waits for the reader, and nothing is lost.
        let shell = spawn(node, job, Some("seq 1 200000"), None);
        let (seen, _) = to_the_end(node, job, shell);
        assert_eq!(seen.lines().count(), 200_000);
        assert!(seen.ends_with("\n200000\n"));
        end_job(node, job);
    });
}

#[test]
fn a_shell_ends_with_its_job_and_does_not_hold_it_up() {
    with_job("sleep 1000", |node, job| {
        let shell = spawn(node, job, None, Some((24, 80)));
        update(node, job, shell, 0, "trap '' HUP TERM; echo rea''dy; sleep 1000\n");
        until(node, job, shell, "ready");
        // It waits while the job ends.
        node.send(job, ToProxy::Shell { request_id: 9, request: ShellRequest::Poll { shell_id: shell } });
        end_job_and_hear(node, job, 9);
    });
    with_job("while [ ! -e go ]; do sleep 0.05; done", |node, job| {
        spawn(node, job, Some("sleep 1000"), None);
        std::fs::write(node.job_directory(job).join("sandbox/go"), b"").expect("written");
        let result = node.finished(job);
        assert!(matches!(result.outcome, vocab::JobOutcome::Completed { .. }), "{:?}", result.outcome);
    });
}

fn end_job_and_hear(node: &mut FakeNode, job: JobId, request: u64) {
    node.send(job, ToProxy::Abort { reason: AbortReason::UserRequest, text: "enough".to_owned() });
    let error = node.wait("last words of the shell", |e| match e {
        Event::Proxy(_, FromProxy::ShellRefused { request_id, error }) if *request_id == request => {
            Some(error.clone())
        }
        _ => None,
    });
    assert!([code::SHELL_MANAGER_SHUT_DOWN, code::SHELL_EXITED].contains(&error.code), "{error:?}");
    node.finished(job);
}

#[test]
fn terminated_and_forgotten_shells_are_gone() {
    with_job("sleep 1000", |node, job| {
        let processes =
            |node: &FakeNode| node.environment.reopen(job).expect("it runs").processes().expect("readable");
        let give_up = Instant::now() + PATIENCE;
        let pids = |node: &FakeNode| processes(node).iter().map(|p| p.pid).collect::<Vec<_>>();
        // The job is what it is to be: nothing that comes after this is its own.
        while !processes(node).iter().any(|p| p.cmdline == ["sleep", "1000"]) {
            assert!(Instant::now() < give_up, "{:?}", processes(node));
            node.pump(Duration::from_millis(20));
        }
        let before = pids(node);
        let stubborn = "trap '' HUP TERM INT; while :; do sleep 1; done";
        let shell = spawn(node, job, Some(stubborn), Some((24, 80)));
        ask(node, job, ShellRequest::Terminate { shell_id: shell }).expect("it lives");
        let mut forgotten = spawn_request(Some(stubborn), Some((24, 80)));
        if let ShellRequest::Spawn { inactivity_timeout, .. } = &mut forgotten {
            *inactivity_timeout = Some(Span::from_millis(100));
        }
        ask(node, job, forgotten).expect("a shell");
        let give_up = Instant::now() + PATIENCE;
        while pids(node).iter().any(|pid| !before.contains(pid)) {
            assert!(Instant::now() < give_up, "{:?}, before {before:?}", processes(node));
            node.pump(Duration::from_millis(20));
        }
        end_job(node, job);
    });
}

#[test]
fn a_shell_outlives_the_node() {
    with_job("sleep 1000", |node, job| {
        let shell = spawn(node, job, None, Some((24, 80)));
        update(node, job, shell, 0, "x=kept; echo rea''dy\n");
        until(node, job, shell, "ready");
        node.vanish();
        std::thread::sleep(Duration::from_millis(300));
        node.come_back();
        node.wait("return of the proxy", |e| {
            matches!(e, Event::Proxy(_, FromProxy::Hello { .. })).then_some(())
        });
        update(node, job, shell, 21, "echo [$x]\n");
        until(node, job, shell, "[kept]");
        end_job(node, job);
    });
}

#[test]
fn there_is_a_bound_and_a_reason() {
    with_job("sleep 1000", |node, job| {
        for _ in 0..16 {
            spawn(node, job, Some("sleep 1000"), None);
        }
        let error = ask(node, job, spawn_request(None, None)).expect_err("one too many");
        assert!(error.message.contains("at most 16"), "{error:?}");
        end_job(node, job);
    });
    for_each(|node| {
        let job = node.job("sleep 1000");
        let id = node.start(job);
        node.started(id);
        let error = ask(node, id, spawn_request(None, None)).expect_err("no namespaces");
        assert!(error.message.contains("need namespaces"), "{error:?}");
        end_job(node, id);
    });
}
