//! The whole binary as a user has it: `up`, then commands against it, then Ctrl-C.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const MILLPOND: &str = env!("CARGO_BIN_EXE_millpond");
/// Longer than anything takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A cluster that ends with the test, whatever its outcome.
struct Cluster {
    up: Child,
    address: String,
    data: tempfile::TempDir,
    started: Instant,
}

impl Cluster {
    fn start() -> Cluster {
        let started = Instant::now();
        let data = tempfile::tempdir().expect("a directory");
        let mut up = Command::new(MILLPOND)
            .args(["up", "--quiet", "--listen", "127.0.0.1:0", "--job-environment", "simple"])
            // On a host without namespaces root would get no slots.
            .args(["--isolation", "none", "--data"])
            .arg(data.path())
            .args(["--node-resources", "cpu=4,memory=4GiB"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the supervisor starts");
        // Quiet: nothing but the address, and only when everything is there.
        let mut address = String::new();
        let mut stdout = BufReader::new(up.stdout.take().expect("a pipe"));
        stdout.read_line(&mut address).expect("it says something");
        Cluster { up, address: address.trim().to_owned(), data, started }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        // Shown with the output of a test that fails: where the time went.
        println!("{:>8.3} s  millpond {}", self.started.elapsed().as_secs_f64(), arguments.join(" "));
        Command::new(MILLPOND)
            .args(arguments)
            .env("MILLPOND_PROXY", &self.address)
            .stdin(Stdio::null())
            .output()
            .expect("it runs")
    }

    /// Runs a command that succeeds; gives its output.
    fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Runs a command that fails with this code; gives what it says.
    fn bad(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    }

    /// Waits until a server answers that is not this one. A command repeats its requests for about three seconds, and
    /// a restart takes longer on a busy machine.
    fn wait_for_another_server(&self, dead: u32) {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let is_dead = processes(self.data.path()).iter().all(|(pid, _)| *pid != dead);
            let output = self.run(&["pool", "list", "-q"]);
            if is_dead && output.status.success() {
                return;
            }
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(Instant::now() < give_up, "the server does not answer after {PATIENCE:?}: {said}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn signal(&self, pid: u32, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("not zero");
        rustix::process::kill_process(pid, signal).expect("it is there");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if matches!(self.up.try_wait(), Ok(None)) {
            let pid = self.up.id();
            self.signal(pid, rustix::process::Signal::TERM);
            let _ = self.up.wait();
        }
    }
}

/// Processes with this directory among their arguments: pid and arguments.
fn processes(directory: &Path) -> Vec<(u32, String)> {
    let needle = directory.to_string_lossy().into_owned();
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let of = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(&needle).then_some((pid, line))
    };
    entries.filter_map(of).collect()
}

/// Waits until there is no process with this directory among its arguments.
fn wait_for_the_end_of_all(directory: &Path) {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let left = processes(directory);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < give_up, "left behind after {PATIENCE:?}: {left:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_cluster_from_start_to_end() {
    let mut cluster = Cluster::start();
    assert!(cluster.address.starts_with("127.0.0.1:"), "{:?}", cluster.address);

    // Pools.
    cluster.good(&["pool", "create", "research", "--weight", "2"]);
    assert_eq!(cluster.good(&["pool", "list", "-q"]), "research");
    cluster.good(&["pool", "set", "research", "strong_guarantee_resources/cpu=1", "weight=3"]);
    assert_eq!(cluster.good(&["get", "//sys/pool_trees/physical/research/@weight", "-q"]), "3.");
    assert!(cluster.bad(1, &["pool", "set", "reserch", "weight=1"]).contains("did you mean research?"));

    // Operations, and exit codes as theirs.
    assert_eq!(cluster.good(&["run", "-p", "research", "-f", "--", "echo", "a  b", "$HOME"]), "a  b $HOME");
    let said =
        cluster.bad(1, &["run", "-p", "research", "-f", "--max-failed", "0", "--", "sh", "-c", "exit 7"]);
    assert!(said.contains("Process exited with code 7"), "{said}");
    let id = cluster.good(&["run", "-q", "-p", "research", "--", "sleep", "1000"]);
    cluster.good(&["op", "abort", &id]);
    cluster.bad(3, &["op", "logs", &id, "--follow"]);
    let labelled =
        cluster.good(&["run", "-p", "research", "-f", "--jobs", "2", "--name", "t", "--", "echo", "x"]);
    let mut lines: Vec<&str> = labelled.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[t/0] x", "[t/1] x"]);

    // Mistakes.
    assert!(cluster.bad(4, &["--proxy", "127.0.0.1:1", "op", "list"]).contains("millpond up"));
    cluster.bad(2, &["op", "lst"]);
    let data = cluster.data.path().to_str().expect("UTF-8").to_owned();
    assert!(cluster.bad(1, &["up", "--data", &data]).contains("in use by another `millpond up`"));
    let other = tempfile::tempdir().expect("a directory");
    let other = other.path().to_str().expect("UTF-8");
    let port = cluster.bad(1, &["up", "--listen", &cluster.address, "--data", other]);
    assert!(port.contains("is in use by another program"), "{port}");

    // A server that dies is there again, and so is what it knew.
    let (server, _) = processes(cluster.data.path())
        .into_iter()
        .find(|(_, line)| line.starts_with("millpond server"))
        .expect("the server runs");
    cluster.signal(server, rustix::process::Signal::KILL);
    cluster.wait_for_another_server(server);
    assert_eq!(cluster.good(&["pool", "list", "-q"]), "research");

    // The end takes everything along.
    cluster.good(&["run", "-q", "-p", "research", "--", "sleep", "1000"]);
    let up = cluster.up.id();
    cluster.signal(up, rustix::process::Signal::INT);
    assert_eq!(cluster.up.wait().expect("it ends").code(), Some(0));
    wait_for_the_end_of_all(cluster.data.path());
}

#[test]
fn a_supervisor_that_is_killed_leaves_nobody_behind() {
    let mut cluster = Cluster::start();
    let up = cluster.up.id();
    cluster.signal(up, rustix::process::Signal::KILL);
    let _ = cluster.up.wait();
    wait_for_the_end_of_all(cluster.data.path());
}

#[test]
fn a_node_that_cannot_run_is_a_reason_to_stop() {
    let data = tempfile::tempdir().expect("a directory");
    // A file where the node wants a directory.
    std::fs::write(data.path().join("node-1"), "").expect("written");
    let output = Command::new(MILLPOND)
        .args(["up", "--listen", "127.0.0.1:0", "--job-environment", "simple", "--data"])
        .arg(data.path())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: node-1 could not be started"), "{said}");
    assert!(said.contains("node-1.log"), "{said}");
    wait_for_the_end_of_all(data.path());
}
