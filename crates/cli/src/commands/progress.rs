//! One line about an operation that is being followed: alive on a terminal, now and then elsewhere.

use crate::output::{Form, Screen};
use crate::units::count;
use crate::views::{find, integer, text};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use yson::{Map, Value};

/// Time between plain lines.
const PERIOD: Duration = Duration::from_secs(5);

pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    screen: Screen,
    said: String,
    said_state: String,
    said_at: Instant,
}

impl Progress {
    pub fn new(screen: Screen) -> Progress {
        let alive = screen.form == Form::Human && std::io::stderr().is_terminal();
        let bar = alive.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Progress { bar, screen, said: String::new(), said_state: String::new(), said_at: Instant::now() }
    }

    /// Says how the operation is, if that is news.
    pub fn update(&mut self, operation: &Map) {
        let line = line(operation);
        if let Some(bar) = &self.bar {
            bar.set_message(line);
            return;
        }
        let state = text(operation, "state");
        if line != self.said && (state != self.said_state || self.said_at.elapsed() >= PERIOD) {
            self.screen.tell(&line);
            self.said_state = state.to_owned();
            self.said = line;
            self.said_at = Instant::now();
        }
    }

    /// Prints something else without tearing the line.
    pub fn around<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Takes the line away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// `running: 3/10 jobs done, 2 running, 5 waiting, 1 failed`.
pub(crate) fn line(operation: &Map) -> String {
    let jobs = |name: &str| integer(operation, &format!("brief_progress/jobs/{name}"));
    let mut line = text(operation, "state").to_owned();
    if find(operation, "suspended").and_then(Value::as_bool) == Some(true) {
        line.push_str(", suspended");
    }
    if jobs("total") == 0 {
        return line;
    }
    line.push_str(&format!(": {}/{} jobs done", count(jobs("completed")), count(jobs("total"))));
    for (name, shown) in
        [("running", "running"), ("pending", "waiting"), ("failed", "failed"), ("aborted", "aborted")]
    {
        if jobs(name) > 0 {
            line.push_str(&format!(", {} {shown}", count(jobs(name))));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines() {
        let check = |operation: &str, expected: &str| {
            let value = yson::parse(operation.as_bytes()).expect("good YSON");
            assert_eq!(super::line(value.as_map().expect("a map")), expected);
        };
        check("{state=pending}", "pending");
        check("{state=running;suspended=%true}", "running, suspended");
        check(
            "{state=running;brief_progress={jobs={total=12000;completed=3;running=2;pending=5;failed=1;aborted=0}}}",
            "running: 3/12 000 jobs done, 2 running, 5 waiting, 1 failed",
        );
    }
}
