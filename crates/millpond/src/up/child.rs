//! One child process: started, watched, started again, stopped.

use super::plan::ChildPlan;
use crate::bodies::START_AGAIN;
use cli::CliError;
use command_fds::{CommandFdExt, FdMapping};

use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Pause before the first new start; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Who has lived so long starts anew with the first pause.
const GOOD_LIFE: Duration = Duration::from_secs(30);
/// Lines of a log that are shown when its process could not be started.
const SHOWN_LINES: usize = 8;

/// What a child is to do. Orders only grow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Order {
    /// Run; an end is an end, unless the process asks for a new start ([`START_AGAIN`]).
    Try,
    /// Run; start again after an end.
    KeepAlive,
    /// End in good order.
    Stop,
    /// End now.
    Kill,
}

/// A child has ended without being told to.
#[derive(Debug)]
pub struct Event {
    /// Which.
    pub child: String,
    how: String,
    log: Option<PathBuf>,
    again_in: Option<Duration>,
}

impl Event {
    /// Has the child ended for good?
    pub fn is_final(&self) -> bool {
        self.again_in.is_none()
    }

    /// For people.
    pub fn describe(&self) -> String {
        let log = self.log.as_deref().map(|p| format!(" (log: {})", super::shown(p))).unwrap_or_default();
        let again = match self.again_in {
            Some(pause) => format!("; starting it again in {} s", pause.as_secs_f64()),
            None => String::new(),
        };
        format!("{} {}{log}{again}", self.child, self.how)
    }

    /// As the reason to give up, with the end of the log.
    pub fn into_error(self, what: &str) -> CliError {
        let mut message = format!("{} {what}: it {}", self.child, self.how);
        for line in self.log.as_deref().map(last_lines).unwrap_or_default() {
            message.push_str("\n  ");
            message.push_str(&line);
        }
        let error = CliError::failed(message);
        match &self.log {
            Some(log) => error.with_hint(format!("the whole log is {}", super::shown(log))),
            None => error,
        }
    }
}

/// A child and the task that watches it.
pub struct Child {
    orders: watch::Sender<Order>,
    task: Option<JoinHandle<()>>,
}

impl Child {
    /// Starts it. If it ends before [`Child::keep_alive`], it stays so. Each of its lives gets the listening socket, if there
    /// is one, as systemd would hand it over.
    pub fn start(plan: ChildPlan, socket: Option<Arc<TcpListener>>, events: UnboundedSender<Event>) -> Child {
        let (orders, receiver) = watch::channel(Order::Try);
        Child { orders, task: Some(tokio::spawn(live(plan, socket, receiver, events))) }
    }

    /// From now on it is started again when it ends.
    pub fn keep_alive(&self) {
        self.order(Order::KeepAlive);
    }

    /// Gives an order; weaker ones than before are ignored.
    pub fn order(&self, order: Order) {
        self.orders.send_if_modified(|now| {
            let stronger = order > *now;
            *now = (*now).max(order);
            stronger
        });
    }

    /// Waits until it has ended for good.
    pub async fn ended(&mut self) {
        if let Some(task) = &mut self.task {
            let _ = task.await;
            self.task = None;
        }
    }
}

async fn live(
    plan: ChildPlan,
    socket: Option<Arc<TcpListener>>,
    mut orders: watch::Receiver<Order>,
    events: UnboundedSender<Event>,
) {
    let mut pause = FIRST_PAUSE;
    let mut first = true;
    while *orders.borrow() < Order::Stop {
        let started = Instant::now();
        let (how, wants_start) = match spawn(&plan, std::mem::take(&mut first), socket.as_deref()) {
            Ok(process) => match run(process, &mut orders).await {
                Some(status) => (ended(status), status.code() == Some(i32::from(START_AGAIN))),
                None => return,
            },
            Err(e) => (format!("cannot be started: {e}"), false),
        };
        let again = wants_start || *orders.borrow() == Order::KeepAlive;
        if started.elapsed() >= GOOD_LIFE {
            pause = FIRST_PAUSE;
        }
        let again_in = again.then_some(pause);
        let _ = events.send(Event { child: plan.name.clone(), how, log: plan.log.clone(), again_in });
        if !again {
            return;
        }
        tokio::select! {
            () = sleep(pause) => {}
            _ = orders.wait_for(|order| *order >= Order::Stop) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Until it ends by itself (its status), or was told to and has.
async fn run(mut process: tokio::process::Child, orders: &mut watch::Receiver<Order>) -> Option<ExitStatus> {
    // Held open for as long as the child is to live.
    let _stdin = process.stdin.take();
    loop {
        tokio::select! {
            status = process.wait() => {
                let told = *orders.borrow() >= Order::Stop;
                return status.ok().filter(|_| !told);
            }
            changed = orders.changed() => {
                let order = if changed.is_err() { Order::Stop } else { *orders.borrow_and_update() };
                let signal = match order {
                    Order::Kill => Signal::KILL,
                    Order::Stop => Signal::TERM,
                    Order::Try | Order::KeepAlive => continue,
                };
                if let Some(pid) = process.id().and_then(|id| Pid::from_raw(id as i32)) {
                    // It may have ended just now; the next turn sees it.
                    let _ = kill_process(pid, signal);
                }
                if changed.is_err() {
                    let _ = process.wait().await;
                    return None;
                }
            }
        }
    }
}

/// Where a process finds the first socket that is handed to it.
const FIRST_SOCKET: i32 = 3;

fn spawn(
    plan: &ChildPlan,
    is_first: bool,
    socket: Option<&TcpListener>,
) -> io::Result<tokio::process::Child> {
    let mut command = Command::new("/proc/self/exe");
    // Whatever has become of the file since we were started, it is this program that runs; `ps` shall
    // show its name.
    command.arg0("millpond").args(&plan.arguments).stdin(Stdio::piped()).process_group(0);
    if is_first {
        command.args(&plan.first_arguments);
    }
    if let Some(log) = &plan.log {
        let file = File::options().create(true).append(true).open(log)?;
        command.stdout(file.try_clone()?).stderr(file);
    }
    // What was handed to this process is not for its children.
    for variable in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] {
        command.env_remove(variable);
    }
    if let Some(socket) = socket {
        let mapping = FdMapping { parent_fd: socket.try_clone()?.into(), child_fd: FIRST_SOCKET };
        command.env("LISTEN_FDS", "1").fd_mappings(vec![mapping]).map_err(io::Error::other)?;
    }
    command.spawn()
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "has ended".to_owned(),
        (Some(code), _) if code == i32::from(START_AGAIN) => "has to be started again".to_owned(),
        (Some(code), _) => format!("has ended with exit code {code}"),
        (_, Some(signal)) => format!("was killed by signal {signal}"),
        _ => "has ended".to_owned(),
    }
}

/// Logs of the life before, one of each, beside the new ones.
pub fn keep_old_logs(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "log") {
            std::fs::rename(&path, path.with_extension("log.old"))?;
        }
    }
    Ok(())
}

fn last_lines(log: &Path) -> Vec<String> {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_logs_are_kept_once() {
        let directory = tempfile::tempdir().expect("a directory");
        for round in ["one", "two", "three"] {
            keep_old_logs(directory.path()).expect("renamed");
            std::fs::write(directory.path().join("server.log"), round).expect("written");
        }
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).expect("there");
        assert_eq!((read("server.log").as_str(), read("server.log.old").as_str()), ("three", "two"));
    }

    #[test]
    fn the_reason_to_give_up_has_the_end_of_the_log() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("server.log");
        std::fs::write(&log, (1..=20).map(|i| format!("line {i}\n")).collect::<String>()).expect("written");
        let event = Event {
            child: "server".into(),
            how: "has ended with exit code 1".into(),
            log: Some(log),
            again_in: None,
        };
        let text = event.into_error("could not be started").render(false).unwrap_or_default();
        assert!(
            text.starts_with(
                "error: server could not be started: it has ended with exit code 1\n  line 13\n"
            ),
            "{text}"
        );
        assert!(text.contains("  line 20\nhint: the whole log is "), "{text}");
    }
}
