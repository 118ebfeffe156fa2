//! Following an operation to its end: output of its jobs, progress, and its result as our own.

use super::Session;
use super::logs::Tail;
use super::operations::explain;
use super::progress::Progress;
use crate::error::{CliError, exit};
use crate::interrupt::Interrupt;
use crate::output::{Form, Look, Output};
use crate::views::{error_of, find, integer, text};
use client::ClientError;
use std::io::Write;
use std::time::{Duration, Instant};
use vocab::OperationState;
use yson::{Map, Value, map};

/// What to follow, and how.
pub(crate) struct Follow {
    /// Id or alias.
    pub operation: String,
    /// Output of failed jobs only.
    pub only_failed: bool,
    /// Ctrl-C aborts it.
    pub abort_on_interrupt: bool,
}

const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Lists of so many jobs are not asked for ten times a second.
const MANY_JOBS: usize = 1000;
/// A server that is away for so long will not be waited for. The operation does not mind.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn follow(session: &Session, follow: &Follow) -> Result<(), CliError> {
    let interrupt =
        Interrupt::install().map_err(|e| CliError::failed(format!("signals cannot be caught: {e}")))?;
    let mut progress = Progress::new(session.screen);
    let result = watch(session, follow, &interrupt, &mut progress);
    progress.finish();
    let operation = result?;
    conclude(session, &operation)
}

/// Until the operation is finished; gives its last state.
fn watch(
    session: &Session,
    follow: &Follow,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Result<Map, CliError> {
    let client = &session.client;
    let mut tail = Tail::new(follow.only_failed);
    let mut pause = SHORTEST_PAUSE;
    let mut away_since: Option<Instant> = None;
    let mut aborted = false;
    loop {
        let round = round(session, follow, &mut tail, progress);
        match round {
            Ok((operation, moved)) => {
                away_since = None;
                if is_finished(&operation) {
                    return Ok(operation);
                }
                pause = match moved && tail.len() <= MANY_JOBS {
                    true => SHORTEST_PAUSE,
                    false => (pause * 5 / 4).min(LONGEST_PAUSE),
                };
            }
            Err(error) if error.exit_code() == exit::NO_SERVER && matches!(error, CliError::Told { .. }) => {
                match away_since {
                    None => {
                        progress.around(|| session.screen.tell("the server does not answer; waiting for it"));
                        away_since = Some(Instant::now());
                    }
                    Some(since) if since.elapsed() > PATIENCE => return Err(error),
                    Some(_) => {}
                }
                pause = LONGEST_PAUSE;
            }
            Err(error) => return Err(error),
        }
        if !interrupt.sleep(pause) {
            continue;
        }
        progress.finish();
        if !follow.abort_on_interrupt || aborted {
            let name = &follow.operation;
            session.screen.tell(&format!(
                "no longer following; the operation goes on\nhint: `millpond op logs {name} --follow` follows it \
                 again, `millpond op abort {name}` aborts it"
            ));
            return Err(CliError::Silent(exit::INTERRUPTED));
        }
        session.screen.tell("aborting the operation; Ctrl-C again leaves it alone");
        match client.abort_operation(&follow.operation, Some("Interrupted by the user who followed it")) {
            // It may have finished by itself just now.
            Ok(()) | Err(ClientError::Server(_)) => aborted = true,
            Err(error) => return Err(error.into()),
        }
    }
}

/// One look at everything. The state is asked before the output, so that at the end nothing is missed.
fn round(
    session: &Session,
    follow: &Follow,
    tail: &mut Tail,
    progress: &mut Progress,
) -> Result<(Map, bool), CliError> {
    let attributes = ["id", "state", "suspended", "brief_progress", "result", "start_time", "finish_time"];
    let operation = session.client.get_operation(&follow.operation, Some(&attributes)).map_err(explain)?;
    progress.update(&operation);
    let several = integer(&operation, "brief_progress/jobs/total") > 1;
    let is_json = session.screen.form == Form::Json;
    let mut sink = |bytes: &[u8]| {
        progress.around(|| match is_json {
            // Stdout belongs to the result.
            true => std::io::stderr().write_all(bytes).map_err(|e| CliError::output(&e)),
            false => session.screen.print(bytes),
        })
    };
    let mut moved = tail.pump(&session.client, &follow.operation, several, &mut sink)?;
    if is_finished(&operation) {
        // The tail itself gives up what cannot be had.
        while moved {
            std::thread::sleep(SHORTEST_PAUSE / 2);
            moved = tail.pump(&session.client, &follow.operation, several, &mut sink)?;
        }
    }
    Ok((operation, moved))
}

fn is_finished(operation: &Map) -> bool {
    text(operation, "state").parse().is_ok_and(OperationState::is_finished)
}

/// Says how it ended, and ends alike.
fn conclude(session: &Session, operation: &Map) -> Result<(), CliError> {
    let (id, state) = (text(operation, "id"), text(operation, "state"));
    if session.screen.form == Form::Json {
        session.screen.show(&Ended(operation))?;
    }
    let code = match state {
        "completed" => {
            session.screen.tell(&format!("operation {id} {}", super::progress::line(operation)));
            return Ok(());
        }
        "aborted" => exit::ABORTED,
        _ => exit::FAILED,
    };
    Err(CliError::Told {
        message: format!("operation {id} {state}"),
        reasons: error_of(operation, "result/error").into_iter().collect(),
        hint: (code == exit::FAILED)
            .then(|| format!("`millpond op logs {id} --failed` prints what failed jobs said")),
        code,
    })
}

struct Ended<'a>(&'a Map);

impl Output for Ended<'_> {
    fn human(&self, _: &Look) -> String {
        self.quiet()
    }
    fn json(&self) -> Value {
        let error = error_of(self.0, "result/error").map(|e| e.to_value());
        map! {
            "operation_id" => text(self.0, "id"),
            "state" => text(self.0, "state"),
            "jobs" => find(self.0, "brief_progress/jobs").cloned().unwrap_or_default(),
            "error" => error.unwrap_or_default(),
        }
        .into()
    }
    fn quiet(&self) -> String {
        text(self.0, "state").to_owned()
    }
}
