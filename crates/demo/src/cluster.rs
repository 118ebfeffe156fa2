//! `millpond up` as a child process.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use client::{Client, Retries};
use rustix::process::{Pid, Signal, kill_process};

use crate::interrupt::Interrupt;
use crate::plan::Shape;

/// How long a cluster may take to be ready: a machine under load takes its time.
const START_TIMEOUT: Duration = Duration::from_secs(90);
/// How long it may take to stop before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// Preemption goes by heartbeats, and minutes stand for hours here.
const CONFIG: &str = "[server]\nheartbeat_period = \"500ms\"\n";
/// How often it is looked at.
const POLL: Duration = Duration::from_millis(50);
/// Lines of the log that are shown when something is wrong.
const TAIL: usize = 15;

/// What is started.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// The millpond program.
    pub program: PathBuf,
    /// Data of the cluster; the log is beside it.
    pub directory: PathBuf,
    /// Nodes and what they offer.
    pub shape: Shape,
    /// Driver of the nodes, if not the one that they choose.
    pub job_environment: Option<String>,
    /// Mark in the environment of every process of the cluster, `NAME` and value.
    pub mark: (String, String),
}

impl ClusterConfig {
    /// Where the cluster keeps its data.
    pub fn data(&self) -> PathBuf {
        self.directory.join("cluster")
    }
    fn file(&self) -> PathBuf {
        self.directory.join("millpond.toml")
    }
    fn log(&self) -> PathBuf {
        self.directory.join("up.log")
    }
    /// Arguments of the program, for us and for a user who wants to do it by hand.
    pub fn arguments(&self, listen: &str) -> Vec<String> {
        let data = self.data().display().to_string();
        let nodes = self.shape.nodes.to_string();
        let mut arguments: Vec<String> = ["up", "--listen", listen, "--data", &data, "--nodes", &nodes]
            .into_iter()
            .map(str::to_owned)
            .collect();
        arguments.extend(["--node-resources".to_owned(), self.shape.node_resources()]);
        arguments.extend(["--config".to_owned(), self.file().display().to_string()]);
        if let Some(driver) = &self.job_environment {
            arguments.extend(["--job-environment".to_owned(), driver.clone()]);
        }
        arguments
    }
}

/// A running cluster; dropping it stops it.
#[derive(Debug)]
pub struct Cluster {
    child: Child,
    address: String,
    log: PathBuf,
    ended: Option<ExitStatus>,
}

impl Cluster {
    /// Starts a cluster and waits until all nodes are there.
    pub fn start(config: &ClusterConfig, interrupt: &Interrupt) -> anyhow::Result<Cluster> {
        let address = free_address()?;
        let log = config.log();
        std::fs::write(config.file(), CONFIG)
            .with_context(|| format!("cannot write {}", config.file().display()))?;
        let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = Command::new(&config.program)
            .args(config.arguments(&address))
            .env(&config.mark.0, &config.mark.1)
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("cannot share the log")?)
            .stderr(output)
            // A group of its own: Ctrl-C is for the demo, which stops the cluster when it is ready to.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", config.program.display()))?;
        let mut cluster = Cluster { child, address, log, ended: None };
        cluster.wait_until_ready(config.shape.nodes, interrupt)?;
        Ok(cluster)
    }

    /// `HOST:PORT` of the server.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A client of the cluster.
    pub fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&self.address, None)?)
    }

    /// Addresses of its nodes.
    pub fn nodes(&self) -> anyhow::Result<Vec<String>> {
        let names = self.client()?.list("//sys/cluster_nodes", &[])?;
        Ok(names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
    }

    /// Complains if the cluster has ended by itself.
    pub fn check(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait().context("cannot look at the cluster")? {
            self.ended = Some(status);
            bail!("the cluster ended by itself ({status}); its last words:\n{}", self.last_words());
        }
        Ok(())
    }

    /// Stops the cluster and waits for it: first kindly; by force when it takes too long or when the
    /// user asks again.
    pub fn stop(&mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        let Some(pid) = self.pid() else { return Ok(()) };
        let _ = kill_process(pid, Signal::TERM);
        let (already, deadline) = (interrupt.count(), Instant::now() + STOP_TIMEOUT);
        while !interrupt.wait(already, POLL) && Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().context("cannot look at the cluster")? {
                self.ended = Some(status);
                if !status.success() {
                    bail!("the cluster stopped with {status}; its last words:\n{}", self.last_words());
                }
                return Ok(());
            }
        }
        // A second signal is the supervisor's order to kill what is left.
        let _ = kill_process(pid, Signal::TERM);
        for _ in 0..100 {
            if self.child.try_wait().context("cannot look at the cluster")?.is_some() {
                break;
            }
            std::thread::sleep(POLL);
        }
        let _ = self.child.kill();
        self.ended = Some(self.child.wait().context("cannot wait for the cluster")?);
        bail!(
            "the cluster did not stop when it was told to and was killed; its last words:\n{}",
            self.last_words()
        );
    }

    fn pid(&self) -> Option<Pid> {
        if self.ended.is_some() { None } else { Some(Pid::from_child(&self.child)) }
    }

    fn wait_until_ready(&mut self, nodes: u16, interrupt: &Interrupt) -> anyhow::Result<()> {
        let client = self.client()?.with_retries(Retries::NONE);
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            self.check()?;
            let count = client.get("//sys/scheduler/orchid/scheduler/cell/exec_node_count", &[]);
            match count.as_ref().map(|count| count.as_i64()) {
                Ok(Some(count)) if count >= i64::from(nodes) => return Ok(()),
                _ if Instant::now() < deadline => {}
                _ => bail!(
                    "the cluster is not ready after {START_TIMEOUT:?}; its last words:\n{}",
                    self.last_words()
                ),
            }
            if interrupt.wait(0, POLL) {
                bail!("interrupted");
            }
        }
    }

    fn last_words(&self) -> String {
        tail(&self.log, TAIL)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.ended.is_none()
            && let Err(error) = self.stop(&Interrupt::default())
        {
            eprintln!("{error:#}");
        }
    }
}

/// The last lines of a file.
fn tail(path: &Path, lines: usize) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].iter().map(|line| format!("  {line}\n")).collect()
}

/// A free port of this machine. Somebody else could take it before the server does; then the server
/// says so.
fn free_address() -> anyhow::Result<String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("there is no free port")?;
    Ok(listener.local_addr().context("there is no free port")?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(program: &str, directory: &Path) -> ClusterConfig {
        ClusterConfig {
            program: program.into(),
            directory: directory.to_owned(),
            shape: Shape::DEMO,
            job_environment: Some("simple".to_owned()),
            mark: ("MILLPOND_DEMO".to_owned(), "test".to_owned()),
        }
    }

    #[test]
    fn the_command_line_is_complete() {
        assert_eq!(
            config("millpond", Path::new("/d")).arguments("127.0.0.1:9").join(" "),
            "up --listen 127.0.0.1:9 --data /d/cluster --nodes 2 --node-resources \
             cpu=8,memory=4096MiB,user_slots=16 --config /d/millpond.toml --job-environment simple"
        );
    }

    #[test]
    fn a_cluster_that_ends_at_once_is_an_error_with_its_last_words() {
        let directory = std::env::temp_dir();
        let error =
            Cluster::start(&config("/bin/echo", &directory), &Interrupt::default()).expect_err("no cluster");
        let text = format!("{error:#}");
        assert!(text.contains("ended by itself") && text.contains("--node-resources"), "{text}");
        let error = Cluster::start(&config("/no/such/program", &directory), &Interrupt::default());
        assert!(format!("{:#}", error.expect_err("no program")).contains("/no/such/program"));
    }

    #[test]
    fn tails() {
        let file = std::env::temp_dir().join(format!("millpond-demo-tail-{}", std::process::id()));
        std::fs::write(&file, "a\nb\nc\n").expect("write");
        assert_eq!(tail(&file, 2), "  b\n  c\n");
        assert_eq!(tail(&file, 9), "  a\n  b\n  c\n");
        std::fs::remove_file(&file).expect("remove");
        assert_eq!(tail(&file, 2), "");
    }
}
