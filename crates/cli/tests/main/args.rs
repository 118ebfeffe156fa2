//! What parses and what does not.

use clap::Parser;
use cli::args::{Common, DEFAULT_PROXY, JobCommand, NodeCommand, OpCommand, PoolCommand, ServerCommand};
use cli::{Cli, Command};

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn parse(line: &str) -> Command {
    match Cli::try_parse_from(words(line)) {
        Ok(cli) => cli.command,
        Err(error) => panic!("{line}: {error}"),
    }
}

#[test]
fn lines_that_parse() {
    for line in [
        "millpond up",
        "millpond up --listen :0 --data /d --nodes 2 --node-resources cpu=8,memory=16GiB,user_slots=32 --config f",
        "millpond server --listen 0.0.0.0:8000 --data /d --config f",
        "millpond node --server :8000 --name n --data /d --resources cpu=8 --tags a,b --job-environment simple",
        "millpond node",
        "millpond node list --json",
        "millpond run -- true",
        "millpond run --pool p --cpu 0.5 --memory 1GiB --jobs 3 --name t --title x --env A=1 -f -- echo --follow",
        "millpond op list --state running -q",
        "millpond operation get *nightly --attribute state",
        "millpond op abort 1-2-3-4 5-6-7-8 --message why",
        "millpond op logs 1-2-3-4 --job 1-2-384-4",
        "millpond job stderr 1-2-3-4 1-2-384-4",
        "millpond pool create p --parent q --guarantee cpu=8,memory=1GiB weight=2",
        "millpond pool set p strong_guarantee_resources/cpu=16 --tree gpu",
        "millpond pool tree",
        "millpond --proxy h:1 --json pool list",
        "millpond set //tmp/x -5",
        "millpond set //tmp/x -",
        "millpond create scheduler_pool_tree --attributes {name=gpu}",
        "millpond top --once --every 500ms",
        "millpond completions fish",
        "millpond version",
    ] {
        parse(line);
    }
}

#[test]
fn lines_that_do_not() {
    let check = |line: &str, said: &str| {
        let error = Cli::try_parse_from(words(line)).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(said), "{line}: {said:?} is not in {error}");
    };
    check("millpond up --node-resources cores=8", "expected one of user_slots, cpu, gpu, memory, network");
    check("millpond up --node-resources memory=lots", "expected a number of bytes");
    check("millpond up --node-resources cpu=1,cpu=2", "given twice");
    check("millpond up --listen 8000", "expected IP:PORT");
    check("millpond up --nodes 1000", "0..=100");
    check("millpond run --pool p", "COMMAND");
    check("millpond run --cpu many -- true", "expected a number of cores");
    check("millpond run --jobs 0 -- true", "1..");
    check("millpond run --time-limit 30 -- true", "unit");
    check("millpond run --abort-on-interrupt -- true", "--follow");
    check("millpond run --folow -- true", "--follow");
    check("millpond node --job-environment docker", "cgroup_v2");
    check("millpond op abort", "OPERATIONS");
    check("millpond op update 1-2-3-4", "--pool");
    check("millpond job get 1-2-3-4 nonsense", "JOB");
    check("millpond pool set p weight", "SETTING=VALUE");
    check("millpond pool set p weight={", "not YSON");
    check("millpond create map_node //x --attributes 5", "expected a map");
    check("millpond create map_node //x --force --ignore-existing", "cannot be used with");
    check("millpond list", "PATH");
    check("millpond pool lst", "list");
    check("millpond top --json --quiet", "cannot be used with");
}

#[test]
fn arguments_land_where_they_should() {
    match parse("millpond run -p research --env A=b=c --file Cargo.toml:dir/x -f -j 4 -m 1g -- sh -c ls") {
        Command::Run(args) => {
            assert_eq!(args.pool.as_deref(), Some("research"));
            assert_eq!(args.env, [("A".to_owned(), "b=c".to_owned())]);
            assert_eq!(
                (args.file[0].path.to_str(), args.file[0].name.as_str()),
                (Some("Cargo.toml"), "dir/x")
            );
            assert_eq!((args.follow, args.jobs, args.memory), (true, 4, 1 << 30));
            assert_eq!(args.command, ["sh", "-c", "ls"]);
        }
        other => panic!("{other:?}"),
    }
    match parse("millpond pool set p a/b={x=1} weight=2 --max-running 3") {
        Command::Pool(PoolCommand::Set { name, options, .. }) => {
            assert_eq!((name.as_str(), options.max_running), ("p", Some(3)));
            assert_eq!(options.settings.len(), 2);
        }
        other => panic!("{other:?}"),
    }
    match parse("millpond job abort 1-2-384-4 --interrupt-timeout 10s") {
        Command::Job(JobCommand::Abort { jobs, interrupt_timeout }) => {
            assert_eq!(jobs[0].to_string(), "1-2-384-4");
            assert_eq!(interrupt_timeout.map(|t| t.as_millis()), Some(10_000));
        }
        other => panic!("{other:?}"),
    }
    match parse("millpond node list") {
        Command::Node(args) => assert!(matches!(args.command, Some(NodeCommand::List))),
        other => panic!("{other:?}"),
    }
    match parse("millpond server gc --confirm") {
        Command::Server(args) => {
            assert!(matches!(args.command, Some(ServerCommand::Gc { confirm: true })));
        }
        other => panic!("{other:?}"),
    }
    match parse("millpond server pause --for 2h") {
        Command::Server(args) => {
            let Some(ServerCommand::Pause { period }) = args.command else { panic!("{args:?}") };
            assert_eq!(period.as_millis(), 7_200_000);
        }
        other => panic!("{other:?}"),
    }
    match parse("millpond node remove n1 --lost") {
        Command::Node(args) => {
            let Some(NodeCommand::Remove { name, lost }) = args.command else { panic!("{args:?}") };
            assert_eq!((name.as_str(), lost), ("n1", true));
        }
        other => panic!("{other:?}"),
    }
    match parse("millpond op suspend a b --abort-jobs") {
        Command::Op(OpCommand::Suspend { operations, abort_jobs, .. }) => {
            assert_eq!((operations.len(), abort_jobs), (2, true));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_server_is_found_in_this_order() {
    let check = |option: Option<&str>, env: &[(&str, &str)], expected: &str| {
        let common = Common { proxy: option.map(str::to_owned), ..Common::default() };
        let get = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        assert_eq!(common.address(get), expected, "{option:?} {env:?}");
    };
    let both = [("YT_PROXY", "y:1"), ("MILLPOND_PROXY", "m:1")];
    check(Some("o:1"), &both, "o:1");
    check(None, &both, "m:1");
    check(None, &both[..1], "y:1");
    check(None, &[("MILLPOND_PROXY", "")], DEFAULT_PROXY);
}
