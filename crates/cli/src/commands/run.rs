//! `run`: a command becomes a vanilla operation.

use super::follow::{self, Follow};
use super::{Session, files, pools};
use crate::args::{PoolTreeArgs, RunArgs};
use crate::error::CliError;
use crate::output::{Form, Look, Output};
use crate::quote::command_line;
use crate::views::Tree;
use vocab::{OperationType, Span, code};
use yson::{Map, Value, map};

/// The server keeps the output of ten jobs unless asked for more, up to this.
const MAX_KEPT_STDERRS: u32 = 150;
/// What the server keeps without being asked.
const KEPT_STDERRS: u32 = 10;

pub fn run(session: &Session, args: RunArgs) -> Result<(), CliError> {
    let file_paths = match args.dry_run {
        true => files::paths(&args.file)?,
        false => files::upload(session, &args.file)?,
    };
    let spec = spec(&args, file_paths);
    if args.dry_run {
        return session.screen.show(&Tree(spec.into()));
    }
    let id = session
        .client
        .start_operation(OperationType::Vanilla, spec)
        .map_err(|error| match &args.pool {
            Some(pool) if error.contains_code(code::RESOLVE_ERROR) => {
                let tree = pools::tree_name(&session.client, &PoolTreeArgs { tree: args.tree.clone() }).ok();
                let told = tree.and_then(|tree| pools::no_such_pool(&session.client, &tree, pool));
                told.unwrap_or_else(|| error.into())
            }
            _ => error.into(),
        })?
        .to_string();
    warn_of_new_pool(session, &args);
    if !args.follow {
        session.screen.show(&Started(id.clone()))?;
        session.screen.tell(&format!("follow it with `millpond op logs {id} --follow`"));
        return Ok(());
    }
    match session.screen.form {
        Form::Human => session.screen.tell(&format!("operation {id} started")),
        // The id is the one thing that a script cannot guess; stdout is the jobs'.
        Form::Quiet => eprintln!("{id}"),
        Form::Json => {}
    }
    follow::follow(
        session,
        &Follow { operation: id, only_failed: false, abort_on_interrupt: args.abort_on_interrupt },
    )
}

/// A pool that is not there is made for the operation, which is a surprise to who mistyped its name.
fn warn_of_new_pool(session: &Session, args: &RunArgs) {
    let (Some(pool), Form::Human) = (&args.pool, session.screen.form) else { return };
    let Ok(tree) = pools::tree_name(&session.client, &PoolTreeArgs { tree: args.tree.clone() }) else {
        return;
    };
    if let Some(error) = pools::no_such_pool(&session.client, &tree, pool) {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        session
            .screen
            .tell(&format!("note: there is no pool {pool:?}: the operation runs in a temporary one{hint}"));
    }
}

/// The specification of the operation.
pub fn spec(args: &RunArgs, file_paths: Vec<Value>) -> Map {
    let command = command_line(&args.command);
    let milliseconds = |t: Span| i64::try_from(t.as_millis()).unwrap_or(i64::MAX);
    let environment: Map = args.env.iter().map(|(key, value)| (key, value.as_str())).collect();
    let mut task = map! {
        "command" => command.as_str(),
        "job_count" => i64::from(args.jobs),
        "cpu_limit" => args.cpu.as_f64(),
        "memory_limit" => args.memory,
    }
    .with_some("gpu_limit", (args.gpu > 0).then_some(i64::from(args.gpu)))
    .with_some("job_time_limit", args.job_time_limit.map(milliseconds));
    if !environment.is_empty() {
        task.insert("environment", environment);
    }
    if !file_paths.is_empty() {
        task.insert("file_paths", file_paths);
    }
    let kept = (args.jobs > KEPT_STDERRS).then(|| i64::from(args.jobs.min(MAX_KEPT_STDERRS)));
    map! {"title" => args.title.clone().unwrap_or(command)}
        .with_some("pool", args.pool.as_deref())
        .with_some("pool_trees", args.tree.as_deref().map(|tree| vec![tree]))
        .with_some("alias", args.alias.as_deref().map(|a| format!("*{}", a.trim_start_matches('*'))))
        .with_some("weight", args.weight)
        .with_some("max_failed_job_count", args.max_failed.map(i64::from))
        .with_some("time_limit", args.time_limit.map(milliseconds))
        .with_some("max_stderr_count", kept)
        .with("tasks", map! {args.name.as_str() => task})
}

struct Started(String);

impl Output for Started {
    fn human(&self, _: &Look) -> String {
        self.0.clone()
    }
    fn json(&self) -> Value {
        map! {"operation_id" => self.0.as_str()}.into()
    }
    fn quiet(&self) -> String {
        self.0.clone()
    }
}
