//! Submits what is due: one vanilla operation for each job of the log.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use client::{Client, CreateFlags, WriteFileOptions};
use vocab::{OperationId, OperationType};
use yson::{Map, Value, map};

use crate::interrupt::Interrupt;
use crate::plan::{Plan, Planned};

/// The demo's directory in the cluster.
pub const DIRECTORY: &str = "//tmp/millpond-demo";
/// Name of the program in the sandbox of a job.
const PROGRAM: &str = "millpond";

/// Stores the program in the cluster, from where nodes fetch it like any file of a user: a job sees
/// its sandbox, and not necessarily the directory in which we were built.
pub fn upload(client: &Client, program: &Path) -> anyhow::Result<()> {
    let flags = CreateFlags { recursive: true, ignore_existing: true, force: false };
    let path = format!("{DIRECTORY}/{PROGRAM}");
    client.create("file", &path, Map::new(), flags)?;
    let mut content = File::open(program).with_context(|| format!("cannot read {}", program.display()))?;
    client.write_file(&path, &mut content, WriteFileOptions::default())?;
    Ok(())
}

/// Submits all operations of a plan at their times, in this thread, and tells `submitted` about each.
/// Ends early when the user asks to stop.
pub fn submit_all(
    client: &Client,
    plan: &Plan,
    mark: &(String, String),
    start: Instant,
    interrupt: &Interrupt,
    mut submitted: impl FnMut(usize, Result<OperationId, client::ClientError>),
) {
    for (index, operation) in plan.operations.iter().enumerate() {
        if interrupt.wait(0, operation.at.saturating_sub(start.elapsed())) {
            return;
        }
        let result = client.acting_as(&user_name(operation)).and_then(|client| {
            client.start_operation(OperationType::Vanilla, spec(operation, plan.cpu, mark))
        });
        submitted(index, result);
    }
}

/// Users of the log have numbers for names.
fn user_name(operation: &Planned) -> String {
    format!("user{}", operation.logged.user)
}

/// The spec of one operation.
pub fn spec(operation: &Planned, cpu: f64, mark: &(String, String)) -> Map {
    let logged = &operation.logged;
    let program = Value::from(format!("{DIRECTORY}/{PROGRAM}"))
        .with_attributes(map! {"file_name" => PROGRAM, "executable" => true});
    let command = format!(
        "exec ./{PROGRAM} burn --seconds {:.3} --memory {} --cpu {cpu:.4}",
        operation.run.as_secs_f64(),
        operation.memory
    );
    let task = map! {
        "command" => command,
        "job_count" => operation.job_count,
        "cpu_limit" => 1.0,
        "memory_limit" => operation.memory_limit,
        "file_paths" => vec![program],
        "environment" => map! {mark.0.as_str() => mark.1.as_str()},
    };
    map! {
        "title" => format!("job {} of the log", logged.number),
        "pool" => operation.pool.name,
        "annotations" => map! {"queue" => logged.queue, "number" => logged.number},
        // Nothing here is expected to fail: the first failure is to be seen and not repeated.
        "max_failed_job_count" => 1i64,
        "tasks" => map! {"burn" => task},
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Machine, Shape, plan};

    #[test]
    fn a_spec() {
        let jobs = crate::swf::parse(crate::WINDOW).expect("window");
        let machine = Machine { cores: 2.0, free_memory: 16 << 30 };
        let plan = plan(&jobs, crate::run::WINDOW_TIMES, 120, &Shape::DEMO, &machine).expect("plan");
        let mark = ("MILLPOND_DEMO".to_owned(), "here".to_owned());
        let text = yson::to_pretty(&spec(&plan.operations[0], plan.cpu, &mark).into());
        expect_test::expect![[r#"
            {
                "title" = "job 47775 of the log";
                "pool" = "simulation";
                "annotations" = {
                    "queue" = 6u;
                    "number" = 47775u;
                };
                "max_failed_job_count" = 1;
                "tasks" = {
                    "burn" = {
                        "command" = "exec ./millpond burn --seconds 1.374 --memory 108934266 --cpu 0.0938";
                        "job_count" = 8u;
                        "cpu_limit" = 1.;
                        "memory_limit" = 268435456u;
                        "file_paths" = [
                            <
                                "file_name" = "millpond";
                                "executable" = %true;
                            > "//tmp/millpond-demo/millpond";
                        ];
                        "environment" = {
                            "MILLPOND_DEMO" = "here";
                        };
                    };
                };
            }"#]]
        .assert_eq(&String::from_utf8(text).expect("text"));
    }

    #[test]
    fn nothing_is_submitted_after_the_user_asked_to_stop() {
        let plan =
            Plan { operations: Vec::new(), arrival_scale: 1.0, run_scale: 1.0, memory_scale: 1.0, cpu: 0.1 };
        let jobs = crate::swf::parse(crate::WINDOW).expect("window");
        let machine = Machine { cores: 2.0, free_memory: 16 << 30 };
        let full =
            crate::plan::plan(&jobs, crate::run::WINDOW_TIMES, 120, &Shape::DEMO, &machine).expect("plan");
        let interrupt = Interrupt::default();
        interrupt.raise();
        // No server listens there: an attempt would be an error and a long one.
        let client = Client::new("127.0.0.1:1", None).expect("client");
        let mark = (String::new(), String::new());
        for plan in [plan, full] {
            submit_all(&client, &plan, &mark, Instant::now(), &interrupt, |_, result| panic!("{result:?}"));
        }
    }
}
