//! Figures of the CPU monitor, of memory file systems, storage and pipes: from the node to the public paths, into sums
//! and through the store.

use crate::script::*;
use controller::{ControllerOptions, FinishedJob, JobRecord, OperationController, Savings};
use vocab::{
    CpuMonitorChange, CpuMonitorReport, CpuMonitorStatistics, JobPhase, JobStatistics, OperationState,
    PipeUse, Resources, Span, StorageRequests, TableStatistics, Time, TmpfsUsage,
};
use yson::Value;

const MIB: i64 = 1 << 20;

fn measured() -> JobStatistics {
    JobStatistics {
        exec: Span::from_secs(2),
        user_job_max_memory: 100 * MIB,
        user_job_peak_memory: 130 * MIB,
        user_job_tmpfs: TmpfsUsage { size: 20 * MIB, max_size: 30 * MIB },
        user_job_tmpfs_volumes: vec![
            TmpfsUsage { size: 20 * MIB, max_size: 25 * MIB },
            TmpfsUsage { size: 0, max_size: 5 * MIB },
        ],
        cpu_monitor: Some(CpuMonitorReport {
            statistics: CpuMonitorStatistics {
                smoothed_cpu_usage_x100: 105,
                preemptible_cpu_x100: 190,
                aggregated_smoothed_cpu_usage_x100: 2_000,
                aggregated_max_cpu_usage_x100: 4_000,
                aggregated_preemptible_cpu_x100: 1_500,
                aggregated_preempted_cpu_x100: 1_500,
            },
            limit: 2_100_000,
            smoothed: 1_050_000,
            reclaims: true,
            votes: "--0".to_owned(),
            last_change: Some(CpuMonitorChange {
                time: second(7),
                from: 3_000_000,
                to: 2_100_000,
                applied: true,
            }),
        }),
        user_job_requests: Some(StorageRequests { reads: 3, writes: 4 }),
        tables: Some(Box::new(TableStatistics {
            input_pipe: PipeUse { bytes: 700, idle_time: Span(1_999), busy_time: Span(3_000_000) },
            output_pipes: vec![
                PipeUse { bytes: 10, idle_time: Span(1_000), busy_time: Span(2_000) },
                PipeUse { bytes: 5, idle_time: Span(1_500), busy_time: Span(0) },
            ],
            ..TableStatistics::default()
        })),
        ..JobStatistics::default()
    }
}

/// Where the figures are to be found, and what they are.
const SHOWN: &[(&str, i64)] = &[
    ("user_job/max_memory", 100 * MIB),
    ("user_job/block_io/io_read", 3),
    ("user_job/block_io/io_write", 4),
    ("user_job/block_io/io_total", 7),
    ("user_job/pipes/input/bytes", 700),
    ("user_job/pipes/input/idle_time", 1),
    ("user_job/pipes/input/busy_time", 3_000),
    ("user_job/pipes/output/0/bytes", 10),
    ("user_job/pipes/output/0/busy_time", 2),
    ("user_job/pipes/output/1/idle_time", 1),
    ("user_job/pipes/output/total/bytes", 15),
    ("user_job/pipes/output/total/idle_time", 2),
    ("user_job/pipes/output/total/busy_time", 2),
    ("user_job/tmpfs_size", 20 * MIB),
    ("user_job/max_tmpfs_size", 30 * MIB),
    ("user_job/tmpfs_volumes/0/size", 20 * MIB),
    ("user_job/tmpfs_volumes/0/max_size", 25 * MIB),
    ("user_job/tmpfs_volumes/1/max_size", 5 * MIB),
    ("job_proxy/smoothed_cpu_usage_x100", 105),
    ("job_proxy/preemptible_cpu_x100", 190),
    ("job_proxy/aggregated_smoothed_cpu_usage_x100", 2_000),
    ("job_proxy/aggregated_max_cpu_usage_x100", 4_000),
    ("job_proxy/aggregated_preemptible_cpu_x100", 1_500),
    ("job_proxy/aggregated_preempted_cpu_x100", 1_500),
    ("job_proxy/preemptable_cpu_x100", 190),
    ("job_proxy/aggregated_preemptable_cpu_x100", 1_500),
];

fn bench() -> Bench {
    Bench::new(
        "{job_cpu_monitor={enable_cpu_reclaim=%true};
          tasks={t={job_count=3; command=x; cpu_limit=4; memory_limit=1073741824;
                    tmpfs_volumes=[{path=a; size=26214400}; {path=b; size=5242880}]}}}",
    )
}

fn finish(b: &mut Bench, job: u32) -> controller::JobVerdict {
    b.now += Span::from_secs(10);
    let report = FinishedJob {
        job_id: Bench::job_id(job),
        outcome: done(),
        exec_start_time: Some(b.now),
        finish_time: b.now,
        statistics: Some(measured()),
        stderr_size: 0,
        fail_context_size: 0,
    };
    b.controller.job_finished(b.now, report).expect("known")
}

#[test]
fn of_one_job_and_of_many() {
    let mut b = bench();
    let (_, description) = b.settle(0).expect("a unit");
    assert_eq!(description.cpu_monitor, yson::map! {"enable_cpu_reclaim" => true}, "the rest is as usual");
    b.settle(0).expect("a unit");
    let record = finish(&mut b, 0).record;
    finish(&mut b, 1);
    let shown = Value::Map(record.statistics());
    for (path, wanted) in SHOWN {
        assert_eq!(at(&shown, &format!("{path}/sum")).as_i64(), Some(*wanted), "{path}");
    }
    assert_eq!(JobRecord::decode(&record.encode()).expect("own bytes"), record);

    // Sums, before and after the store.
    let parts = b.controller.export();
    let options = ControllerOptions::default();
    let restored = OperationController::restore(operation_id(), &b.parsed.spec, &options, second(0), &parts);
    for controller in [&b.controller, &restored.expect("own state")] {
        let progress = Value::Map(controller.progress(b.now, OperationState::Running));
        for (path, wanted) in SHOWN {
            let list = at(&progress, &format!("job_statistics_v2/{path}")).as_list().expect("a list");
            let summary = at(&list[0], "summary");
            assert_eq!(at(summary, "sum").as_i64(), Some(2 * wanted), "{path}");
            assert_eq!(at(summary, "count").as_i64(), Some(2), "{path}");
        }
    }
}

#[test]
fn without_a_measurement_there_are_none() {
    let mut b = bench();
    b.settle(0).expect("a unit");
    let early = JobStatistics { cpu_monitor: None, ..measured() };
    b.controller.job_statistics(Bench::job_id(0), JobPhase::Running, 0, Some(early));
    let samples = b.controller.job(Bench::job_id(0)).expect("running").samples(b.now);
    for (path, _) in SHOWN.iter().filter(|(path, _)| path.contains("cpu")) {
        assert_eq!(samples.get(path), None, "{path}");
    }
}

/// Digests learn the peak with memory file systems, statistics show it without (2.3, 7.2).
#[test]
fn what_is_learned_counts_memory_file_systems() {
    let mut b = bench();
    b.settle(0).expect("a unit");
    finish(&mut b, 0);
    let (_, description) = b.settle(0).expect("a unit");
    let reserve = description.user_job_memory_reserve;
    assert!((130 * MIB..132 * MIB).contains(&reserve), "{reserve}");
}

#[test]
fn savings_and_their_explanation() {
    let mut b = bench();
    b.settle(0).expect("a unit");
    b.now += Span::from_secs(10);
    b.controller.job_statistics(Bench::job_id(0), JobPhase::Running, 0, Some(measured()));
    let view = b.controller.job(Bench::job_id(0)).expect("running");
    let savings = view.savings(b.now);
    let wanted = Savings {
        max_cpu_x100: 4_000,
        smoothed_cpu_x100: 2_000,
        preemptible_cpu_x100: 1_500,
        reclaimed_cpu_x100: 1_500,
        // Half of a GiB for ten seconds.
        unreserved_memory: 512 * MIB * 10,
    };
    assert_eq!(savings, wanted);
    let mut sum = savings;
    sum += savings;
    assert_eq!((sum - savings, savings - sum), (savings, Savings::default()), "sums never shrink");

    let accounted = Resources { cpu: vocab::Cpu(210), memory: 900 * MIB, ..Resources::ZERO };
    let shown = Value::Map(view.explain(b.now, accounted));
    let words: Vec<&str> =
        at(&shown, "text").as_list().expect("lines").iter().filter_map(Value::as_str).collect();
    expect_test::expect![[r#"
        Job 0-1-10384-5 of task "t" runs on node-1.example:9012 and is counted with 2.1 cores and 900 MiB.
        Its CPU guarantee is 2.10 of 4 cores; it uses 1.05 (smoothed), and it would be lowered below 1.26 and raised above 1.89.
        Votes since the last decision: --0 (5 of them are looked at, more than 3 must agree).
        Last decision, 1970-01-01T00:16:47.000000Z: from 3.00 to 2.10 cores, and the difference was given back to the pool.
        Reserved for its user processes: 512 MiB (50.0% of the limit of 1024 MiB), the default: no job of its task had ended yet.
        Seen so far: 130 MiB of its own, 0 MiB of its job proxy (128 MiB reserved).
        It is above its reserve: when its node runs out of memory it is one of the first to go, and its unit is run again with more.
        A new job of the task would get 50.0% (0 jobs have taught so far).
        Saved so far: 15.0 core-seconds given back of 15.0 that could have been, and 5.0 GiB-seconds of memory that was never reserved.
    "#]]
    .assert_eq(&(words.join("\n") + "\n"));
}

#[test]
fn where_a_reserve_comes_from() {
    let origin = |b: &Bench, job: u32| {
        let view = b.controller.job(Bench::job_id(job)).expect("running");
        let shown = Value::Map(view.explain(Time::ZERO, Resources::ZERO));
        at(&shown, "memory/user_job/origin").as_str().map(str::to_owned)
    };
    let mut b = bench();
    b.settle(0).expect("a unit");
    assert_eq!(origin(&b, 0).as_deref(), Some("default"));
    finish(&mut b, 0);
    b.settle(0).expect("a unit");
    assert_eq!(origin(&b, 1).as_deref(), Some("learned"));
    let mut b = Bench::new("{tasks={t={job_count=3; command=x; memory_reserve_factor=0.9}}}");
    b.settle(0).expect("a unit");
    finish(&mut b, 0);
    b.settle(0).expect("a unit");
    assert_eq!(origin(&b, 1).as_deref(), Some("lower_bound"));
}
