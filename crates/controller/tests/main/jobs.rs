//! What one job gets, and what is shown and kept of it.

use crate::script::*;
use controller::statistics::PATHS;
use controller::{ControllerOptions, FinishedJob, Grant, JobRecord, OperationController, SettleError};
use expect_test::expect;
use vocab::*;
use yson::Value;

const MIB: i64 = 1 << 20;

/// (options of the task, memory of one job, user job's reserve): jobs-and-nodes.md 2.1.
#[test]
fn demand_of_one_job() {
    for (options, memory, reserve) in [
        ("", 384 * MIB, 256 * MIB),
        ("memory_limit=1000; memory_reserve_factor=1", 128 * MIB + 1000, 1000),
        ("memory_limit=1001", 128 * MIB + 500, 500),
        ("memory_limit=1000; tmpfs_path=t; tmpfs_size=700", 128 * MIB + 700, 700),
    ] {
        let mut b = Bench::new(&format!(
            "{{tasks={{t={{job_count=7; command=x; cpu_limit=1.5; gpu_limit=2; {options}}}}}}}"
        ));
        let demand = b.controller.demand();
        assert_eq!((demand.len(), demand[0].task, demand[0].count), (1, 0, 7));
        let needed = Resources { user_slots: 1, cpu: Cpu(150), gpu: 2, memory, network: 0 };
        assert_eq!(demand[0].min_needed, needed, "{options}");
        let (_, description) = b.settle(0).expect("a unit");
        assert_eq!(description.user_job_memory_reserve, reserve, "{options}");
        assert_eq!(description.job_proxy_memory_reserve, 128 * MIB);
        assert_eq!(b.controller.demand()[0].count, 6);
    }
}

#[test]
fn a_grant_that_is_too_small_takes_no_unit() {
    let mut b = Bench::new("{tasks={t={job_count=1; command=x}}}");
    let before = b.controller.clone();
    let needed = b.controller.demand()[0].min_needed;
    let grant = Grant {
        task: 0,
        allocation_id: AllocationId::default(),
        job_id: Bench::job_id(0),
        resources: Resources { memory: needed.memory - 1, ..needed },
        tree: TREE,
        node_address: NODE,
    };
    let refused = b.controller.settle(b.now, grant).expect_err("too small");
    assert!(matches!(refused, SettleError::NotEnoughResources { needed: n, .. } if n == needed));
    assert_eq!(refused.reason(), "not_enough_resources");
    assert_eq!(b.controller, before);
}

#[test]
fn variables_of_a_job() {
    let mut b = Bench::new(
        "{secure_vault={token=secret; n=5; deep={a=1}};
          tasks={t={job_count=3; command=\"run me\"; redirect_stdout_to_stderr=%true; environment={A=b; HOME=\"/h\"}}}}",
    );
    b.settle(0).expect("a unit");
    let (_, description) = b.settle(0).expect("a unit");
    let shown: String = description.environment.iter().map(|(n, v)| format!("{n}={v}\n")).collect();
    expect![[r#"
        HOME=$(SandboxPath)
        TMPDIR=$(SandboxPath)
        PYTHONPATH=$(SandboxPath)
        PYTHONUSERBASE=$(SandboxPath)/.local
        PYTHON_EGG_CACHE=$(SandboxPath)/.python-eggs
        A=b
        HOME=/h
        YT_OPERATION_ID=7-1-103e8-9
        YT_TASK_NAME=t
        YT_FIRST_OUTPUT_TABLE_FD=4
        YT_SECURE_VAULT={"token"="secret";"n"=5;"deep"={"a"=1;};}
        YT_SECURE_VAULT_token=secret
        YT_SECURE_VAULT_n=5
        YT_JOB_ID=1-1-10384-5
        YT_JOB_INDEX=1
        YT_TASK_JOB_INDEX=1
        YT_JOB_COOKIE=1
        YT_POOL_TREE=default
        YT_NODE_HOST=node-1.example
        YT_START_ROW_INDEX=0
        YT_OPERATION_INCARNATION=7-9-0
        YT_TASK_JOB_COUNT=3
    "#]]
    .assert_eq(&shown);
    assert_eq!(description.command, "run me");
}

fn statistics() -> JobStatistics {
    JobStatistics {
        prepare: Span::from_millis(250),
        exec: Span::from_millis(7_000),
        user_job_cpu_user: Span::from_millis(3_000),
        user_job_max_memory: 300_000_000,
        job_proxy_max_memory: 1_000,
        custom: vec![("a/b".to_owned(), Summary { sum: 5, count: 2, min: 1, max: 4, last: 4 })],
        ..JobStatistics::default()
    }
}

fn finish(b: &mut Bench, job: u32, outcome: JobOutcome, stderr_size: u64) -> controller::JobVerdict {
    let report = FinishedJob {
        job_id: Bench::job_id(job),
        outcome,
        exec_start_time: Some(second(1)),
        finish_time: second(0) + Span::from_millis(7_350),
        statistics: Some(statistics()),
        stderr_size,
        fail_context_size: 0,
    };
    b.controller.job_finished(b.now, report).expect("known")
}

/// `path sum/count` of every leaf.
fn flat(tree: &Value) -> Vec<String> {
    let map = tree.as_map().expect("a map");
    if let (Some(sum), Some(count)) = (map.get("sum"), map.get("count")) {
        return vec![format!(" {sum:?}/{count:?}")];
    }
    let children = map.iter().flat_map(|(key, child)| {
        let key = String::from_utf8_lossy(key).into_owned();
        flat(child).into_iter().map(move |leaf| {
            let separator = if leaf.starts_with(' ') { "" } else { "/" };
            format!("{key}{separator}{leaf}")
        })
    });
    children.collect()
}

#[test]
fn a_failed_job_as_it_is_shown() {
    let mut b = Bench::new("{tasks={t={job_count=1; command=x}}}");
    b.settle(0).expect("a unit");
    let verdict = finish(&mut b, 0, failed(3), 4);
    let pretty = |v: Value| String::from_utf8(yson::to_pretty(&v)).expect("text");
    expect![[r#"
        {
            "id" = "0-1-10384-5";
            "operation_id" = "7-1-103e8-9";
            "type" = "vanilla";
            "task_name" = "t";
            "pool_tree" = "default";
            "job_cookie" = 0u;
            "allocation_id" = "0-2-17fff-5";
            "has_spec" = %true;
            "has_competitors" = %false;
            "state" = "failed";
            "controller_state" = "failed";
            "archive_state" = "failed";
            "address" = "node-1.example:9012";
            "addresses" = {
                "default" = "node-1.example:9012";
            };
            "start_time" = "1970-01-01T00:16:40.000000Z";
            "finish_time" = "1970-01-01T00:16:47.350000Z";
            "progress" = 1.;
            "operation_incarnation" = "7-9-0";
            "stderr_size" = 4u;
            "error" = {
                "code" = 1205;
                "message" = "User job failed";
                "attributes" = {
                    "job_id" = "0-1-10384-5";
                    "host" = "node-1.example:9012";
                };
                "inner_errors" = [
                    {
                        "code" = 10000;
                        "message" = "Process exited with code 3";
                        "attributes" = {
                            "exit_code" = 3;
                        };
                        "inner_errors" = [];
                    };
                ];
            };
            "brief_statistics" = {
                "time/total" = 7350;
                "time/exec" = 7000;
                "user_job/cpu/user" = 3000;
                "user_job/cpu/system" = 0;
                "user_job/max_memory" = 300000000;
                "user_job/current_memory/rss" = 0;
                "job_proxy/max_memory" = 1000;
                "user_job/memory_limit" = 536870912;
                "user_job/memory_reserve" = 268435456;
                "job_proxy/memory_reserve" = 134217728;
                "user_job/cpu_reserve_millicores" = 1000;
                "user_job/gpu_reserve" = 0;
            };
            "is_stale" = %false;
            "events" = [
                {
                    "time" = "1970-01-01T00:16:40.000000Z";
                    "state" = "waiting";
                    "phase" = "created";
                };
                {
                    "time" = "1970-01-01T00:16:41.000000Z";
                    "state" = "running";
                    "phase" = "running";
                };
                {
                    "time" = "1970-01-01T00:16:47.350000Z";
                    "state" = "failed";
                    "phase" = "finished";
                };
            ];
        }"#]]
    .assert_eq(&pretty(verdict.record.to_value().into()));
    let leaves: String = flat(&verdict.record.statistics().into()).iter().map(|l| format!("{l}\n")).collect();
    expect![[r#"
        time/total 7350/1
        time/wait_for_resources 0/1
        time/prepare 250/1
        time/artifacts_download 0/1
        time/exec 7000/1
        time/prepare_root_fs 0/1
        time/gpu_check 0/1
        user_job/cpu/user 3000/1
        user_job/cpu/system 0/1
        user_job/cpu/throttled 0/1
        user_job/cpu/wait 0/1
        user_job/cpu/cfs_throttled 0/1
        user_job/cpu/context_switches 0/1
        user_job/cpu/burst 0/1
        user_job/max_memory 300000000/1
        user_job/current_memory/rss 0/1
        user_job/current_memory/mapped_file 0/1
        user_job/current_memory/major_page_faults 0/1
        user_job/cumulative_memory_mb_sec 0/1
        user_job/memory_limit 536870912/1
        user_job/memory_reserve 268435456/1
        user_job/memory_reserve_factor_x10000 5000/1
        user_job/cpu_reserve_millicores 1000/1
        user_job/vcpu_reserve_millicores 1000/1
        user_job/gpu_reserve 0/1
        user_job/cumulative_max_memory 2205000000/1
        user_job/cumulative_memory_reserve 1973000601/1
        user_job/block_io/bytes_read 0/1
        user_job/block_io/bytes_written 0/1
        user_job/tmpfs_size 0/1
        user_job/max_tmpfs_size 0/1
        job_proxy/cpu/user 0/1
        job_proxy/cpu/system 0/1
        job_proxy/cpu/context_switches 0/1
        job_proxy/cpu/wait 0/1
        job_proxy/cpu/throttled 0/1
        job_proxy/cpu/cfs_throttled 0/1
        job_proxy/max_memory 1000/1
        job_proxy/estimated_memory 134217728/1
        job_proxy/memory_reserve 134217728/1
        job_proxy/memory_reserve_factor_x10000 10000/1
        job_proxy/cumulative_max_memory 7350/1
        job_proxy/cumulative_memory_reserve 986500300/1
        job_proxy/cumulative_estimated_memory 986500300/1
        job_proxy/block_io/bytes_read 0/1
        job_proxy/block_io/bytes_written 0/1
        exec_agent/artifacts/cache_hit_artifacts_size 0/1
        exec_agent/artifacts/cache_miss_artifacts_size 0/1
        exec_agent/artifacts/cache_bypassed_artifacts_size 0/1
        custom/a/b 5/2
    "#]]
    .assert_eq(&leaves);
}

#[test]
fn a_running_job_as_it_is_shown() {
    let mut b = Bench::new("{tasks={t={job_count=1; command=x}}}");
    b.settle(0).expect("a unit");
    let id = Bench::job_id(0);
    assert_eq!(b.controller.job(id).expect("known").state(), JobState::Waiting);
    assert!(b.controller.job_started(id, second(1)));
    assert!(b.controller.job_statistics(id, JobPhase::Running, 17, Some(statistics())));
    let view = b.controller.job(id).expect("known");
    expect![[r#"{"id"="0-1-10384-5";"operation_id"="7-1-103e8-9";"type"="vanilla";"task_name"="t";"pool_tree"="default";"job_cookie"=0u;"allocation_id"="0-2-17fff-5";"has_spec"=%true;"has_competitors"=%false;"state"="running";"controller_state"="running";"address"="node-1.example:9012";"addresses"={"default"="node-1.example:9012";};"start_time"="1970-01-01T00:16:40.000000Z";"progress"=0.;"operation_incarnation"="7-9-0";"stderr_size"=17u;"is_stale"=%false;"events"=[{"time"="1970-01-01T00:16:40.000000Z";"state"="waiting";"phase"="created";};{"time"="1970-01-01T00:16:41.000000Z";"state"="running";"phase"="running";};];}"#]].assert_eq(&show(view.to_value()));
    assert_eq!(view.samples(second(3)).get("time/total"), Some(3_000));
    assert_eq!(b.controller.running_jobs().len(), 1);
    assert!(!b.controller.job_started(Bench::job_id(9), second(1)));
    assert!(!b.controller.job_statistics(Bench::job_id(9), JobPhase::Running, 0, None));
}

#[test]
fn records_come_back_from_the_archive() {
    let mut b = Bench::new("{tasks={t={job_count=9; command=x; gang_options={size=5}}}}");
    for (job, outcome) in
        [done(), interrupted(false), failed(3), aborted(AbortReason::UserRequest)].into_iter().enumerate()
    {
        b.settle(0).expect("a unit");
        let record = finish(&mut b, job as u32, outcome, 4).record;
        let bytes = record.encode();
        assert!(bytes.len() < 700, "{} bytes", bytes.len());
        assert_eq!(JobRecord::decode(&bytes).as_ref(), Ok(&record));
        for cut in 0..bytes.len() {
            assert!(JobRecord::decode(&bytes[..cut]).is_err());
        }
    }
    let newer = yson::to_binary(&Value::List(vec![Value::Int(99)]));
    assert!(JobRecord::decode(&newer).expect_err("refused").to_string().contains("version Some(99)"));
}

#[test]
fn cumulative_statistics() {
    let mut b = Bench::new("{tasks={t={job_count=1; command=x}}}");
    b.settle(0).expect("a unit");
    let samples = finish(&mut b, 0, done(), 0).record.samples;
    // The example of jobs-and-nodes.md 7.2.
    assert_eq!(samples.get("user_job/cumulative_max_memory"), Some(2_205_000_000));
    assert_eq!(samples.get("user_job/memory_reserve_factor_x10000"), Some(5_000));
    assert_eq!(samples.get("job_proxy/memory_reserve"), Some(128 * MIB));
    assert_eq!(samples.system.len(), PATHS.len());
}

#[test]
fn a_job_that_never_ran_has_no_measurements() {
    let mut b = Bench::new("{tasks={t={job_count=1; command=x}}}");
    b.settle(0).expect("a unit");
    let report = FinishedJob {
        job_id: Bench::job_id(0),
        outcome: aborted(AbortReason::WaitingTimeout),
        exec_start_time: None,
        finish_time: second(30),
        statistics: Some(JobStatistics::default()),
        stderr_size: 0,
        fail_context_size: 0,
    };
    let samples = b.controller.job_finished(second(30), report).expect("known").record.samples;
    assert_eq!(samples.get("user_job/max_memory"), None);
    assert_eq!(samples.get("time/total"), Some(30_000));
}

/// An abandoned job is in the aggregates only if it has measurements (jobs-and-nodes.md 7.3).
#[test]
fn abandoned_jobs_count_with_what_they_reported() {
    for reported in [false, true] {
        let mut b = Bench::new("{tasks={t={job_count=2; command=x}}}");
        b.settle(0).expect("a unit");
        let id = Bench::job_id(0);
        if reported {
            b.controller.job_statistics(id, JobPhase::Running, 0, Some(statistics()));
        }
        let verdict = b.controller.abandon_job(b.now, id).expect("known");
        assert_eq!(verdict.record.state, JobState::Completed);
        let progress = b.controller.progress(b.now, OperationState::Running);
        let aggregates = progress.get("job_statistics_v2").expect("there").as_map().expect("a map");
        assert_eq!(!aggregates.is_empty(), reported);
    }
}

/// (max_stderr_count, ends of jobs with their stderr size, which are kept): jobs-and-nodes.md 5.4.
#[test]
fn whose_stderr_is_kept() {
    let options = ControllerOptions { max_job_nodes_per_operation: 3, ..ControllerOptions::default() };
    type Case<'a> = (i64, &'a [(fn() -> JobOutcome, u64)], &'a str);
    let by_user: fn() -> JobOutcome = || aborted(AbortReason::UserRequest);
    let preempted: fn() -> JobOutcome = || aborted(AbortReason::Preemption);
    let bad: fn() -> JobOutcome = || failed(1);
    let cases: [Case<'_>; 4] = [
        (2, &[(done, 5), (done, 0), (done, 5), (done, 5)], "+-+-"),
        (0, &[(bad, 5), (by_user, 5), (preempted, 5), (bad, 5), (bad, 5)], "++-+-"),
        (1, &[(preempted, 5), (preempted, 5), (bad, 5)], "+-+"),
        (0, &[(bad, 0), (bad, 0), (bad, 0), (bad, 5)], "----"),
    ];
    for (limit, ends, expected) in cases {
        let spec = format!(
            "{{max_stderr_count={limit}; max_failed_job_count=1000; tasks={{t={{job_count=9; command=x}}}}}}"
        );
        let mut b = Bench::with(&spec, &options);
        let kept: String = ends
            .iter()
            .enumerate()
            .map(|(job, (outcome, size))| {
                b.settle(0).expect("a unit");
                let verdict = finish(&mut b, job as u32, outcome(), *size);
                assert_eq!(verdict.record.stderr_size, if verdict.keep_stderr { *size } else { 0 });
                if verdict.keep_stderr { '+' } else { '-' }
            })
            .collect();
        assert_eq!(kept, expected);
    }
}

/// A job that is ended without its node has a place as well, and gives it back if nothing comes. Who is known to have
/// printed something goes first.
#[test]
fn whose_stderr_is_awaited() {
    let spec = "{max_stderr_count=1; tasks={t={job_count=9; command=x}}}";
    let mut b = Bench::new(spec);
    for _ in 0..3 {
        b.settle(0).expect("a unit");
    }
    b.controller.job_statistics(Bench::job_id(1), JobPhase::Running, 5, None);
    let (verdicts, _) = b.controller.abort_all(b.now, AbortReason::OperationSuspended);
    let told = verdicts.iter().map(|v| (v.record.identity.job_id, v.is_owed, v.record.stderr_size));
    let told: Vec<_> = told.collect();
    assert_eq!(told, [1, 0, 2].map(|job| (Bench::job_id(job), job == 1, if job == 1 { 5 } else { 0 })));
    for (job, kept) in [(3, false), (4, true), (5, false)] {
        b.settle(0).expect("a unit");
        assert_eq!(finish(&mut b, job, done(), 5).keep_stderr, kept, "job {job}");
        if job == 3 {
            b.controller.give_back_stderr();
        }
    }
}

/// Figures that come after the end replace the last ones; what the controller knew stays.
#[test]
fn a_record_is_made_complete() {
    let mut b = Bench::new("{tasks={t={job_count=1; command=x}}}");
    b.settle(0).expect("a unit");
    b.now = second(7) + Span::from_millis(350);
    let expected = {
        let mut b = Bench::new("{tasks={t={job_count=1; command=x}}}");
        b.settle(0).expect("a unit");
        finish(&mut b, 0, done(), 0).record.samples
    };
    let mut record = b.controller.abandon_job(b.now, Bench::job_id(0)).expect("known").record;
    assert_ne!(record.samples, expected);
    record.complete(Some(second(1)), &JobStatistics::default(), Some(3));
    record.complete(Some(second(2)), &statistics(), None);
    assert_eq!(record.samples, expected);
    assert_eq!((record.exec_start_time, record.slot_index), (Some(second(1)), Some(3)));
}

/// Of failed jobs that were reading something, as many as have their stderr kept for that (5.5).
#[test]
fn whose_fail_context_is_kept() {
    let options = ControllerOptions { max_job_nodes_per_operation: 3, ..ControllerOptions::default() };
    let spec = "{max_failed_job_count=1000; max_stderr_count=0; tasks={t={job_count=9; command=x}}}";
    let mut b = Bench::with(spec, &options);
    let ends = [
        (done(), 0, 7, false),
        (aborted(AbortReason::Preemption), 0, 7, false),
        (failed(1), 0, 0, false),
        (failed(1), 5, 7, true),
        (failed(1), 0, 7, true),
        (failed(1), 5, 7, false),
    ];
    for (job, (outcome, stderr_size, fail_context_size, kept)) in (0..).zip(ends) {
        b.settle(0).expect("a unit");
        let report = FinishedJob {
            job_id: Bench::job_id(job),
            outcome,
            exec_start_time: None,
            finish_time: b.now,
            statistics: None,
            stderr_size,
            fail_context_size,
        };
        let verdict = b.controller.job_finished(b.now, report).expect("known");
        let shown = verdict.record.to_value().get("fail_context_size").and_then(Value::as_u64);
        assert_eq!((verdict.keep_fail_context, shown), (kept, kept.then_some(7)), "job {job}");
        let stored = controller::JobRecord::decode(&verdict.record.encode()).expect("readable");
        assert_eq!(stored, verdict.record);
    }
}

#[test]
fn aggregates_are_tagged() {
    let mut b = Bench::new("{tasks={t={job_count=9; command=x}}}");
    for _ in 0..4 {
        b.settle(0).expect("a unit");
    }
    finish(&mut b, 0, done(), 0);
    finish(&mut b, 1, done(), 0);
    finish(&mut b, 2, aborted(AbortReason::SchedulingOther), 0);
    assert!(b.controller.job_started(Bench::job_id(3), second(2)));
    let progress: Value = b.controller.progress(second(10), OperationState::Running).into();
    expect![[r#"[{"summary"={"sum"=14700;"count"=2;"min"=7350;"max"=7350;"last"=7350;};"tags"={"job_state"="completed";"job_type"="t";"pool_tree"="default";};};{"summary"={"sum"=10000;"count"=1;"min"=10000;"max"=10000;"last"=10000;};"tags"={"job_state"="running";"job_type"="t";"pool_tree"="default";};};]"#]].assert_eq(&show(at(&progress, "job_statistics_v2/time/total").clone()));
    expect![[r#"{"a/b"=[{"summary"={"sum"=10;"count"=4;"min"=1;"max"=4;"last"=4;};"tags"={"job_state"="completed";"job_type"="t";"pool_tree"="default";};};];}"#]].assert_eq(&show(at(&progress, "job_statistics_v2/custom").clone()));
    expect![[r#"{"$"={"completed"={"t"={"sum"=14000;"count"=2;"min"=7000;"max"=7000;};};};}"#]]
        .assert_eq(&show(at(&progress, "job_statistics/time/exec").clone()));
    expect![[r#"{"a/b"={"$"={"completed"={"t"={"sum"=10;"count"=4;"min"=1;"max"=4;};};};};}"#]]
        .assert_eq(&show(at(&progress, "job_statistics/custom").clone()));
}

#[test]
fn custom_names_are_bounded_with_an_alert() {
    let options = ControllerOptions { custom_statistics_count_limit: 3, ..ControllerOptions::default() };
    let mut b = Bench::with("{tasks={t={job_count=9; command=x}}}", &options);
    for job in 0..4 {
        b.settle(0).expect("a unit");
        let custom = vec![(format!("name{job}"), Summary::of(1)), ("common".to_owned(), Summary::of(1))];
        let report = FinishedJob {
            job_id: Bench::job_id(job),
            outcome: done(),
            exec_start_time: None,
            finish_time: b.now,
            statistics: Some(JobStatistics { custom, ..JobStatistics::default() }),
            stderr_size: 0,
            fail_context_size: 0,
        };
        assert_eq!(b.controller.alerts().is_empty(), job < 3);
        b.controller.job_finished(b.now, report).expect("known");
    }
    let progress: Value = b.controller.progress(b.now, OperationState::Running).into();
    let names = at(&progress, "job_statistics_v2/custom").as_map().expect("a map").key_strings();
    assert_eq!(names.collect::<Vec<_>>(), ["common", "name0", "name1"]);
    assert_eq!(b.controller.alerts()[0].0, "custom_statistics_limit_exceeded");
}

/// Time with pending units and without, from the first start to the end; a restart in between changes nothing.
#[test]
fn time_with_pending_units_and_without() {
    let mut b = Bench::new("{tasks={t={job_count=2; command=x}}}");
    let mut times = Vec::new();
    let mut pass = |b: &mut Bench, seconds: u64| {
        b.now += Span::from_secs(seconds);
        let parts = b.controller.export();
        let options = ControllerOptions::default();
        let back = OperationController::restore(operation_id(), &b.parsed.spec, &options, second(0), &parts);
        let shown = [&b.controller, &back.expect("own state")].map(|controller| {
            let progress = controller.progress(b.now, OperationState::Running).into();
            let task = &at(&progress, "tasks").as_list().expect("a list")[0];
            ["ready_time", "exhaust_time"].map(|name| at(task, name).as_u64().expect("a time"))
        });
        assert_eq!(shown[0], shown[1]);
        times.push(shown[0]);
    };
    pass(&mut b, 100); // nothing has started yet
    b.settle(0).expect("a unit");
    pass(&mut b, 5); // one is pending
    b.settle(0).expect("a unit");
    pass(&mut b, 7); // none is
    b.finish(0, failed(1)).expect("known");
    pass(&mut b, 11); // the first one again
    b.settle(0).expect("a unit");
    pass(&mut b, 13);
    (1..3).for_each(|job| drop(b.finish(job, done()).expect("known")));
    pass(&mut b, 1000); // it is over
    assert_eq!(
        times,
        [[0, 0], [5_000, 0], [5_000, 7_000], [16_000, 7_000], [16_000, 20_000], [16_000, 20_000]]
    );
}

#[test]
fn progress_has_the_shape_of_the_api() {
    let mut b = Bench::new("{tasks={t={job_count=4; command=x}}}");
    for _ in 0..3 {
        b.settle(0).expect("a unit");
    }
    finish(&mut b, 0, interrupted(false), 0);
    finish(&mut b, 1, aborted(AbortReason::Preemption), 0);
    let brief = b.controller.brief_progress(second(9), OperationState::Running);
    expect![[r#"{"state"="running";"jobs"={"total"=5;"running"=1;"completed"=1;"pending"=3;"failed"=0;"aborted"=1;"lost"=0;"suspended"=0;"invalidated"=0;"uncategorized"=0;"blocked"=0;};"build_time"="1970-01-01T00:16:49.000000Z";}"#]].assert_eq(&show(brief));
    let progress: Value = b.controller.progress(second(9), OperationState::Running).into();
    let pretty = |v: &Value| String::from_utf8(yson::to_pretty(v)).expect("text");
    let jobs = at(&progress, "jobs");
    expect![[r#"
        {
            "total" = 5;
            "running" = 1;
            "pending" = 3;
            "suspended" = 0;
            "failed" = 0;
            "lost" = 0;
            "invalidated" = 0;
            "uncategorized" = 0;
            "blocked" = 0;
            "completed" = {
                "total" = 1;
                "interrupted" = {
                    "preemption" = 1;
                    "user_request" = 0;
                    "job_split" = 0;
                    "unknown" = 0;
                    "jobs_disabled_on_node" = 0;
                    "total" = 1;
                };
                "non-interrupted" = {
                    "none" = 0;
                    "total" = 0;
                };
            };
            "aborted" = {
                "total" = 1;
                "scheduled" = {
                    "preemption" = 1;
                    "total" = 1;
                };
                "non_scheduled" = {
                    "total" = 0;
                };
            };
        }"#]]
    .assert_eq(&pretty(jobs));
    for same in ["total_job_counter", "data_flow_graph/vertices/t/job_counter"] {
        assert_eq!(at(&progress, same), jobs, "{same}");
    }
    let [task] = at(&progress, "tasks").as_list().expect("a list") else { panic!("one task") };
    assert_eq!(at(task, "job_counter"), jobs);
    let mut task = task.as_map().expect("a map").clone();
    for counter in ["job_counter", "speculative_job_counter", "probing_job_counter", "experiment_job_counter"]
    {
        task.remove(counter).expect(counter);
    }
    expect![[r#"
        {
            "task_name" = "t";
            "job_type" = "vanilla";
            "title" = "Vanilla(t)";
            "has_user_job" = %true;
            "input_finished" = %true;
            "completed" = %false;
            "ready_time" = 9000u;
            "exhaust_time" = 0u;
            "min_needed_resources" = {
                "user_slots" = 1;
                "cpu" = 1.;
                "gpu" = 0;
                "memory" = 435472342;
                "user_memory" = 435472342;
                "network" = 0;
            };
            "job_proxy_memory_reserve_factor" = 0.505;
            "user_job_memory_reserve_factor" = 0.561130446106982;
            "job_proxy_memory_digest" = {
                "samples" = 1u;
                "quantile" = 0.95;
                "value" = 0.505;
                "lower_bound" = 0.5;
                "default_value" = 1.;
                "upper_bound" = 2.;
                "histogram" = [
                    {
                        "lower" = 0.5;
                        "upper" = 0.5151505000000001;
                        "count" = 1u;
                    };
                ];
            };
            "user_job_memory_digest" = {
                "samples" = 1u;
                "quantile" = 0.95;
                "value" = 0.561130446106982;
                "lower_bound" = 0.05;
                "default_value" = 0.5;
                "upper_bound" = 1.;
                "histogram" = [
                    {
                        "lower" = 0.5446276826936812;
                        "upper" = 0.5781332597544702;
                        "count" = 1u;
                    };
                ];
            };
            "user_job_options" = {
                "cpu_limit" = 1.;
                "gpu_limit" = 0;
                "memory_limit" = 536870912;
            };
            "start_time" = "1970-01-01T00:16:40.000000Z";
        }"#]]
    .assert_eq(&pretty(&task.into()));
}

/// What passes rows on is ours.
#[test]
fn tasks_without_user_jobs() {
    let options = ControllerOptions::default();
    let tables = "input_table_paths=[\"//a\"]; output_table_path=\"//b\"; output_table_paths=[\"//b\"]";
    for (operation_type, more, expected) in [
        (OperationType::Map, "mapper={command=cat; cpu_limit=2}", Some(2.0)),
        (OperationType::Merge, "combine_chunks=%true", None),
        (OperationType::Merge, "mode=sorted; merge_by=[k]", None),
        (OperationType::Erase, "table_path=\"//a\"", None),
    ] {
        let text = format!("{{{tables}; {more}}}");
        let parsed = controller::spec::parse(operation_type, &map(&text), &options).expect(more);
        let controller = OperationController::new(operation_id(), &parsed.spec, &options, second(0));
        let progress: Value = controller.progress(second(1), OperationState::Running).into();
        let [task] = at(&progress, "tasks").as_list().expect("a list") else { panic!("one task: {more}") };
        let cpu_limit = task.get("user_job_options").map(|shown| at(shown, "cpu_limit").clone());
        assert_eq!(cpu_limit.as_ref().and_then(Value::as_f64), expected, "{more}");
        assert_eq!(at(task, "has_user_job").as_bool(), Some(expected.is_some()), "{more}");
    }
}

#[test]
fn files_are_asked_for_and_handed_on() {
    let text = "{tasks={t={job_count=1; command=x; file_paths=[<executable=%true>\"<file_name=\\\"d/f\\\">//tmp/f\"]}}}";
    let mut b = Bench::new(text);
    let requests: Vec<_> = b.controller.file_requests().collect();
    let [(0, [file])] = requests[..] else { panic!("{requests:?}") };
    assert_eq!(
        (Some(file.path.text().as_str()), file.file_name.as_deref(), file.executable),
        (Some("//tmp/f"), Some("d/f"), Some(true))
    );
    let artifact = Artifact {
        file_id: ObjectId::default(),
        revision: 3,
        size: 9,
        file_name: "d/f".to_owned(),
        executable: true,
        bypass_cache: false,
    };
    for bad in ["../x", "/x", "d/f", "d//f", "d/./f", "d", "d/f/g"] {
        let other = Artifact { file_name: bad.to_owned(), ..artifact.clone() };
        let refused = b.controller.set_artifacts(0, vec![artifact.clone(), other]).expect_err("refused");
        assert!(refused.message.contains("Bad file name"), "{bad}: {refused}");
    }
    b.controller.set_artifacts(0, vec![artifact.clone()]).expect("good names");
    assert_eq!(b.settle(0).expect("a unit").1.files, [artifact]);
}

#[test]
fn a_running_job_is_small() {
    // Everything of one job except its custom statistics; 16 bytes of it are the ticket of S7.
    let mut b = Bench::new("{tasks={t={job_count=1; command=x}}}");
    b.settle(0).expect("a unit");
    let fixed = OperationController::running_job_size();
    assert!(fixed <= 784, "{fixed} bytes");
}
