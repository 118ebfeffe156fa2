//! Guarantees that jobs give back, memory that is not reserved, and the options of both.

use crate::console::Console;
use kernel::{Body, Command, OperationRef};
use vocab::{Cpu, JobId, Resources, Span};
use wire::{JobEvent, NodeMessage};
use yson::{Map, Value, ypath::YPath};

fn console(script: &str) -> Console {
    let mut c = Console::new();
    c.run(script);
    c
}

/// Jobs that run on a node, in the order of their ids.
fn running(c: &Console, node: &str) -> Vec<JobId> {
    c.world.nodes[node].running.keys().copied().collect()
}

/// The CPU monitor of a job has moved its guarantee.
fn report(c: &mut Console, node: &str, job: JobId, cpu: Cpu) {
    let held = c.world.nodes.get_mut(node).and_then(|n| n.running.get_mut(&job)).expect("it runs");
    held.usage.cpu = cpu;
    let resource_usage: Resources = held.usage;
    c.world.say(node, NodeMessage::Jobs(vec![JobEvent::ResourceUsage { job_id: job, resource_usage }]));
    c.world.settle();
}

fn ask(c: &mut Console, command: Command) -> Result<Value, String> {
    match c.world.ask("root", command).expect("an answer") {
        Ok(Body::Value(value)) => Ok(value),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure.to_string()),
    }
}

fn get(c: &mut Console, path: &str) -> Value {
    let path = YPath::parse(path.as_bytes()).expect("a path");
    ask(c, Command::Get { path, attributes: Vec::new(), max_size: None, fields: None }).expect("there")
}

fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    path.split('/').fold(value, |v, key| v.get(key).unwrap_or_else(|| panic!("no {key} of {path} in {v:?}")))
}

#[test]
fn what_is_given_back_is_given_away_in_the_same_turn() {
    let mut c = console(
        "node n1 cpu=4
         pool create p
         pool create q
         op start p jobs=1 cpu=3 as o1
         op start q jobs=5 cpu=1 as o2",
    );
    let all = running(&c, "n1");
    assert_eq!(all.len(), 2, "3 + 1 cores");
    let wide = |id: &&JobId| c.world.nodes["n1"].running[*id].start.resources.cpu == Cpu(300);
    let wide = *all.iter().find(wide).expect("the wide one");
    // No time passes.
    report(&mut c, "n1", wide, Cpu(210));
    assert_eq!(running(&c, "n1").len(), 2, "0.9 cores are no core");
    report(&mut c, "n1", wide, Cpu(100));
    assert_eq!(running(&c, "n1").len(), 4);
    // Raising is a fact. Nothing is started on what is not there.
    report(&mut c, "n1", wide, Cpu(145));
    c.run("finish o2/0");
    assert_eq!(running(&c, "n1").len(), 3, "1.45 + 2 of 4 cores: no whole one is free");

    // The pool is counted with what its job holds now, and after a restart with the same.
    for restart in [false, true] {
        if restart {
            c.run("crash\nrestart\nconnect n1");
        }
        c.world.pass(Span::from_secs(2));
        let usage =
            get(&mut c, "//sys/scheduler/orchid/scheduler/pool_trees/physical/pools/p/resource_usage");
        assert_eq!(at(&usage, "cpu").as_f64(), Some(1.45), "restarted: {restart}");
    }
}

#[test]
fn a_running_job_is_explained_and_a_finished_one_is_not() {
    let mut c = console("node n1 cpu=4\npool create p\nop start p jobs=1 cpu=3 as o1");
    let job = running(&c, "n1")[0];
    report(&mut c, "n1", job, Cpu(210));
    let shown = ask(&mut c, Command::ExplainJob { job_id: job }).expect("it runs");
    assert_eq!(at(&shown, "accounted/cpu").as_f64(), Some(2.1));
    assert_eq!(at(&shown, "cpu/hard_limit").as_f64(), Some(3.0));
    assert_eq!(at(&shown, "memory/user_job/origin").as_str(), Some("default"));
    assert_eq!(at(&shown, "pool").as_str(), Some("p"));
    assert!(at(&shown, "text").as_list().is_some_and(|lines| lines.len() >= 4), "{shown:?}");
    let path = format!("//sys/cluster_nodes/n1/orchid/exec_node/job_controller/active_jobs/{job}");
    let on_node = get(&mut c, &path);
    assert_eq!(at(&on_node, "cpu"), at(&shown, "cpu"));
    assert_eq!(at(&on_node, "memory/user_job/reserve").as_i64(), Some(256 << 20));
    c.world.pass(Span::from_secs(10));
    c.run("finish o1/0");
    let refused = ask(&mut c, Command::ExplainJob { job_id: job }).expect_err("over");
    assert!(refused.contains("No such job"), "{refused}");
    // Half of its memory limit was never reserved, for ten seconds.
    let savings = get(&mut c, "//sys/scheduler/orchid/scheduler/pool_trees/physical/pool_savings");
    let saved = |pool: &str| at(&savings, &format!("{pool}/unreserved_byte_seconds")).as_i64();
    assert_eq!((saved("p"), saved("<Root>")), (saved("<Root>"), Some((256 << 20) * 10)));
}

#[test]
fn options_of_the_controllers_act_at_once_and_survive() {
    let mut c = console("node n1 cpu=1\npool create p\nop start p jobs=3 cpu=1 alias=*a as o1");
    let needed = |c: &mut Console| {
        let command = Command::GetOperation {
            operation: OperationRef::Alias("*a".to_owned()),
            attributes: Some(vec!["progress".to_owned()]),
        };
        let shown = ask(c, command).expect("known");
        let task = at(&shown, "progress/tasks").as_list().expect("a list")[0].clone();
        at(&task, "min_needed_resources/memory").as_i64().expect("bytes") >> 20
    };
    assert_eq!(needed(&mut c), 128 + 256);
    let set = |value: Map| Command::Set {
        path: YPath::parse(b"//sys/controller_agents/config").expect("a path"),
        value: value.into(),
        recursive: false,
        force: false,
    };
    ask(&mut c, set(yson::map! {"footprint_memory" => 16 << 20})).expect("good");
    assert_eq!(needed(&mut c), 16 + 256);
    let refused = ask(&mut c, set(yson::map! {"footprint_memory" => "much"})).expect_err("not a number");
    assert!(refused.contains("footprint_memory") && refused.contains("controller_agents"), "{refused}");
    c.run("crash\nrestart\nconnect n1");
    assert_eq!(needed(&mut c), 16 + 256);
    // Fewer jobs than the operation has: that is for new operations.
    let fewer = yson::map! {"vanilla_operation_options" => yson::map! {"max_total_job_count" => 2}};
    ask(&mut c, set(fewer)).expect("good");
    c.run("crash\nrestart\nconnect n1");
    assert_eq!(needed(&mut c), 128 + 256);
}

/// What was saved in pools that are gone is kept, and their names are not.
#[test]
fn savings_do_not_grow_with_names_of_pools() {
    let mut c = console("node n1 cpu=4\npool create p");
    let savings = |c: &mut Console| {
        let shown = get(c, "//sys/scheduler/orchid/scheduler/pool_trees/physical/pool_savings");
        let Value::Map(map) = shown else { panic!("a map: {shown:?}") };
        let root = map.get("<Root>").and_then(|s| s.get("unreserved_byte_seconds")?.as_i64());
        (map.key_strings().collect::<Vec<_>>(), root.unwrap_or_default())
    };
    let mut total = 0;
    for n in 0..20 {
        c.run(&format!(
            "as user{n}\npool create p{n}\nop start p{n} jobs=1 as o{n}\ntick 10s\nfinish o{n}/0"
        ));
        c.run(&format!("remove //sys/pools/p{n}\ntick 2s"));
        let (names, sum) = savings(&mut c);
        assert_eq!(names, ["<Root>"], "after {n}");
        assert!(sum > total, "{sum} after {total}");
        total = sum;
    }
    assert_eq!(total, 20 * 10 * (256 << 20));
}

/// A node is looked at when something has become free there, not when something has become scarcer.
#[test]
fn only_room_that_appears_is_looked_at() {
    let mut c = console(
        "node n1 cpu=4
         pool create p
         op start p jobs=1 cpu=2 as o1
         op start p jobs=5 cpu=3 as o2
         tick 1s",
    );
    let job = running(&c, "n1")[0];
    let passes = |c: &mut Console| {
        let metrics = get(c, "//sys/scheduler/orchid/scheduler/pool_trees/physical/metrics");
        at(&metrics, "non_preemptive_pass_count").as_i64().expect("a number")
    };
    let before = passes(&mut c);
    report(&mut c, "n1", job, Cpu(150));
    let shrunk = passes(&mut c);
    assert!(shrunk > before, "{before} passes before, {shrunk} after");
    report(&mut c, "n1", job, Cpu(160));
    report(&mut c, "n1", job, Cpu(160));
    assert_eq!(passes(&mut c), shrunk);
}

/// What a job was granted is known after a restart too, whatever it holds by then, and if it has ended.
#[test]
fn events_of_adopted_jobs_say_what_was_granted() {
    let mut c = console("node n1 cpu=8\npool create p\nop start p jobs=2 cpu=3 as o1");
    for job in running(&c, "n1") {
        report(&mut c, "n1", job, Cpu(110));
    }
    c.run("crash\nfinish o1/0\nrestart\nconnect n1\nfinish o1/1");
    let granted = |kind: &str| -> Vec<f64> {
        let of_kind = |e: &&Map| e.get("event").and_then(Value::as_str) == Some(kind);
        let cpu = |e: &Map| e.get("resource_limits")?.get("cpu")?.as_f64();
        c.world.log.iter().filter(of_kind).filter_map(cpu).collect()
    };
    for kind in ["job_started", "job_adopted", "job_completed"] {
        assert_eq!(granted(kind), [3.0, 3.0], "{kind}");
    }
}
