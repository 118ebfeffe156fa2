//! The specification that `run` makes.

use clap::Parser;
use cli::{Cli, Command};
use expect_test::{Expect, expect};

fn check(line: &str, expected: Expect) {
    let Command::Run(args) = Cli::try_parse_from(line.split(' ')).expect(line).command else {
        panic!("{line}")
    };
    let spec = cli::commands::spec(&args, Vec::new());
    expected.assert_eq(&String::from_utf8_lossy(&yson::to_pretty(&spec.into())));
}

#[test]
fn the_least() {
    check(
        "millpond run -- true",
        expect![[r#"
        {
            "title" = "true";
            "tasks" = {
                "task" = {
                    "command" = "true";
                    "job_count" = 1;
                    "cpu_limit" = 1.;
                    "memory_limit" = 536870912;
                };
            };
        }"#]],
    );
}

#[test]
fn everything() {
    check(
        "millpond run --pool p --tree t --cpu 0.5 --memory 1GiB --gpu 1 --jobs 200 --name n --title T --alias a \
         --weight 2 --env A=1 --max-failed 3 --time-limit 1m --job-time-limit 5s -- sh -c $X"
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .as_str(),
        expect![[r#"
            {
                "title" = "T";
                "pool" = "p";
                "pool_trees" = [
                    "t";
                ];
                "alias" = "*a";
                "weight" = 2.;
                "max_failed_job_count" = 3;
                "time_limit" = 60000;
                "max_stderr_count" = 150;
                "tasks" = {
                    "n" = {
                        "command" = "sh -c '$X'";
                        "job_count" = 200;
                        "cpu_limit" = 0.5;
                        "memory_limit" = 1073741824;
                        "gpu_limit" = 1;
                        "job_time_limit" = 5000;
                        "environment" = {
                            "A" = "1";
                        };
                    };
                };
            }"#]],
    );
}
