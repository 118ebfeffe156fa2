//! Memory reserves of a task's jobs, learned from those that ended (jobs-and-nodes.md 2), on virtual
//! time: what is asked for, what jobs are told, what is shown, and what survives a restart.

use crate::script::*;
use controller::{ControllerOptions, FinishedJob, HeldJob, JobVerdict, OperationController, StatePart};
use reserve::memory_digest::ClusterOptions;
use vocab::*;
use yson::Value;

const MIB: i64 = 1 << 20;
const FOOTPRINT: i64 = 128 * MIB;
/// What 256 MiB of 1 GiB teach: jobs-and-nodes.md 2.8, example 2.
const LEARNED: i64 = 269_111_605;

fn bench(options: &str) -> Bench {
    Bench::new(&format!("{{tasks={{t={{job_count=5; command=x; {options}}}}}}}"))
}

fn gib() -> Bench {
    bench("memory_limit=1073741824")
}

/// `group: memory x count` of everything that is wanted.
fn demand(b: &Bench) -> Vec<(u32, i64, i64)> {
    b.controller.demand().iter().map(|d| (d.task, d.min_needed.memory, d.count)).collect()
}

/// Starts the next unit of a group; gives its cookie and the user job's reserve.
fn start(b: &mut Bench, group: u32) -> (u32, i64) {
    let (identity, description) = b.settle(group).expect("a unit");
    assert_eq!(description.job_proxy_memory_reserve, FOOTPRINT, "nothing is buffered");
    (identity.cookie, description.user_job_memory_reserve)
}

/// The job ends two and a half seconds from now, with these peaks.
fn end(b: &mut Bench, job: u32, outcome: JobOutcome, user_job: i64, job_proxy: i64) -> JobVerdict {
    let statistics = JobStatistics {
        user_job_max_memory: user_job,
        job_proxy_max_memory: job_proxy,
        exec: Span::from_secs(2),
        ..JobStatistics::default()
    };
    b.now += Span::from_millis(2_500);
    let report = FinishedJob {
        job_id: Bench::job_id(job),
        outcome,
        exec_start_time: Some(b.now),
        finish_time: b.now,
        statistics: Some(statistics),
        stderr_size: 0,
        fail_context_size: 0,
    };
    b.controller.job_finished(b.now, report).expect("known")
}

fn overdraft() -> JobOutcome {
    aborted(AbortReason::ResourceOverdraft)
}

fn restart(b: &mut Bench, parts: &[StatePart]) {
    restart_with(b, parts, &ControllerOptions::default());
}

fn restart_with(b: &mut Bench, parts: &[StatePart], options: &ControllerOptions) {
    let restored = OperationController::restore(operation_id(), &b.parsed.spec, options, second(0), parts);
    b.controller = restored.expect("own state");
}

fn held() -> HeldJob<'static> {
    HeldJob {
        node_address: NODE,
        granted: Resources::INFINITE,
        start_time: second(0),
        exec_start_time: Some(second(0)),
        phase: JobPhase::Running,
    }
}

#[test]
fn new_jobs_reserve_what_completed_ones_needed() {
    let mut b = gib();
    assert_eq!(demand(&b), [(0, FOOTPRINT + 512 * MIB, 5)]);
    assert_eq!(start(&mut b, 0), (0, 512 * MIB));
    assert_eq!(start(&mut b, 0), (1, 512 * MIB));
    end(&mut b, 0, done(), 256 * MIB, 20 * MIB);
    assert_eq!(demand(&b), [(0, FOOTPRINT + LEARNED, 3)]);
    assert_eq!(start(&mut b, 0), (2, LEARNED));
    // A hungry one of two is more than one in twenty.
    end(&mut b, 1, done(), 900 * MIB, 20 * MIB);
    let (cookie, reserve) = start(&mut b, 0);
    assert!(cookie == 3 && (900 * MIB..909 * MIB).contains(&reserve), "{reserve}");
}

#[test]
fn only_the_ends_that_say_something_teach() {
    let mut b = gib();
    for job in 0..5 {
        start(&mut b, 0);
        assert_eq!(b.controller.running_jobs().len() as u32, job + 1);
    }
    let reason = |reason| aborted(reason);
    for (job, outcome) in [
        (0, failed(1)),
        (1, reason(AbortReason::Preemption)),
        (2, reason(AbortReason::NodeResourceOvercommit)),
        (3, reason(AbortReason::NodeOffline)),
    ] {
        end(&mut b, job, outcome, 900 * MIB, 900 * MIB);
    }
    assert_eq!(demand(&b), [(0, FOOTPRINT + 512 * MIB, 4)]);
    // A job that never ran has peaks of zero, and they are no measurements.
    end(&mut b, 4, done(), 0, 0);
    assert_eq!(demand(&b), [(0, FOOTPRINT + 512 * MIB, 4)]);
    // A job that was given up counts as completed, and teaches if it was measured.
    start(&mut b, 0);
    let measured = JobStatistics { user_job_max_memory: 256 * MIB, ..JobStatistics::default() };
    b.controller.job_statistics(Bench::job_id(5), JobPhase::Running, 0, Some(measured));
    b.controller.abandon_job(b.now, Bench::job_id(5)).expect("running");
    assert_eq!(demand(&b), [(0, FOOTPRINT + LEARNED, 3)]);
}

#[test]
fn tasks_do_not_learn_from_each_other() {
    let mut b = Bench::new("{tasks={a={job_count=2;command=x};b={job_count=2;command=x}}}");
    start(&mut b, 0);
    end(&mut b, 0, done(), 128 * MIB, MIB);
    let wanted = demand(&b);
    assert!(wanted[0].1 < FOOTPRINT + 130 * MIB, "{wanted:?}");
    assert_eq!(wanted[1], (1, FOOTPRINT + 256 * MIB, 2));
}

/// The unit is run again with the whole limit; the others learn 1.1 x what was used.
#[test]
fn after_an_overdraft() {
    let mut b = gib();
    start(&mut b, 0);
    let verdict = end(&mut b, 0, overdraft(), 600 * MIB, MIB);
    assert_eq!(verdict.record.predecessor, None);
    assert_eq!(b.counts(), "total=5 running=0 pending=5 completed=0 failed=0 aborted=1 lost=0");

    let wanted = demand(&b);
    let learned = wanted[1].1 - FOOTPRINT;
    assert!((660 * MIB..667 * MIB).contains(&learned), "{learned}");
    assert_eq!(wanted, [(1, FOOTPRINT + 1024 * MIB, 1), (0, FOOTPRINT + learned, 4)]);
    assert_eq!(b.settle(2).expect_err("no such group").reason(), "empty_input");

    // The others do not wait for it, and it does not take what is meant for them.
    assert_eq!(start(&mut b, 0), (1, learned));
    assert_eq!(start(&mut b, 1), (0, 1024 * MIB));
    assert_eq!(demand(&b), [(0, FOOTPRINT + learned, 3)]);
    assert_eq!(b.settle(1).expect_err("it runs").reason(), "empty_input");

    let first = Bench::job_id(0).to_string();
    let shown = Value::Map(b.controller.job(Bench::job_id(2)).expect("running").to_value());
    assert_eq!(at(&shown, "predecessor_type").as_str(), Some("resource_overdraft"));
    assert_eq!(at(&shown, "predecessor_job_id").as_str(), Some(first.as_str()));
    let other = Value::Map(b.controller.job(Bench::job_id(1)).expect("running").to_value());
    assert_eq!(other.get("predecessor_type"), None);

    // It failed for another reason: still the whole limit.
    end(&mut b, 2, failed(1), 600 * MIB, MIB);
    assert_eq!(demand(&b)[0], (1, FOOTPRINT + 1024 * MIB, 1));
    start(&mut b, 1);
    let verdict = end(&mut b, 3, done(), 620 * MIB, MIB);
    assert_eq!(verdict.record.predecessor, Some(Bench::job_id(0)));
    let record = controller::JobRecord::decode(&verdict.record.encode()).expect("own bytes");
    assert_eq!(record, verdict.record);
    let shown = Value::Map(record.to_value());
    assert_eq!(at(&shown, "predecessor_job_id").as_str(), Some(first.as_str()));
    assert_eq!(demand(&b).len(), 1, "its past does not matter any more");
}

/// The example of jobs-and-nodes.md 2.5, from the spec and from the cluster.
#[test]
fn retries_grow_step_by_step_with_a_multiplier() {
    let cluster = |from_spec: bool, multiplier: Option<f64>| ControllerOptions {
        memory_digest: ClusterOptions {
            use_resource_overdraft_memory_multiplier_from_spec: from_spec,
            user_job_resource_overdraft_memory_multiplier: multiplier,
            ..ClusterOptions::default()
        },
        ..ControllerOptions::default()
    };
    for (options, spec, second_run) in [
        (cluster(false, Some(1.5)), "", 240_000_000),
        (cluster(true, None), "resource_overdraft_memory_reserve_multiplier=1.5", 240_000_000),
        (cluster(false, None), "resource_overdraft_memory_reserve_multiplier=1.5", 400_000_000),
    ] {
        let text = format!(
            "{{tasks={{t={{job_count=1; command=x; memory_limit=400000000;
                user_job_memory_digest_default_value=0.4; {spec}}}}}}}"
        );
        let mut b = Bench::with(&text, &options);
        let mut reserves = vec![start(&mut b, 0).1];
        for run in 0..3 {
            end(&mut b, run, overdraft(), 250_000_000, MIB);
            reserves.push(start(&mut b, 1).1);
        }
        assert_eq!(reserves, [160_000_000, second_run, 400_000_000, 400_000_000], "{spec}");
    }
}

/// What jobs were reserved with is in their statistics, and does not move when the task learns.
#[test]
fn statistics() {
    let mut b = gib();
    start(&mut b, 0);
    start(&mut b, 0);
    end(&mut b, 0, done(), 256 * MIB, 20 * MIB);
    start(&mut b, 0);
    let sample = |b: &Bench, job: u32, path: &str| {
        b.controller.job(Bench::job_id(job)).expect("running").samples(b.now).get(path)
    };
    assert_eq!(sample(&b, 1, "user_job/memory_reserve"), Some(512 * MIB));
    assert_eq!(sample(&b, 1, "user_job/max_memory"), None, "not measured yet");
    assert_eq!(sample(&b, 1, "user_job/cumulative_memory_reserve"), Some(512 * MIB * 5 / 2));
    assert_eq!(sample(&b, 2, "user_job/memory_reserve"), Some(LEARNED));
    b.now += Span::from_secs(1);
    let samples = end(&mut b, 2, done(), 300 * MIB, 30 * MIB).record.samples;
    // 3.5 seconds from the grant.
    let seconds = |bytes: i64| Some(bytes * 7 / 2);
    for (path, expected) in [
        ("user_job/memory_limit", Some(1024 * MIB)),
        ("user_job/memory_reserve", Some(LEARNED)),
        ("user_job/memory_reserve_factor_x10000", Some(2506)),
        ("user_job/max_memory", Some(300 * MIB)),
        ("job_proxy/memory_reserve", Some(FOOTPRINT)),
        ("job_proxy/memory_reserve_factor_x10000", Some(5050)),
        ("job_proxy/estimated_memory", Some(FOOTPRINT)),
        ("job_proxy/max_memory", Some(30 * MIB)),
        ("user_job/cumulative_memory_reserve", seconds(LEARNED)),
        ("user_job/cumulative_max_memory", seconds(300 * MIB)),
        ("job_proxy/cumulative_memory_reserve", seconds(FOOTPRINT)),
        ("job_proxy/cumulative_max_memory", seconds(30 * MIB)),
        ("job_proxy/cumulative_estimated_memory", seconds(FOOTPRINT)),
    ] {
        assert_eq!(samples.get(path), expected, "{path}");
    }
    let progress = Value::Map(b.controller.progress(b.now, OperationState::Running));
    let task = &at(&progress, "tasks").as_list().expect("a list")[0];
    let factor = at(task, "user_job_memory_reserve_factor").as_f64().expect("a factor");
    assert_eq!(format!("{factor:.6}"), "0.293883", "300 of 1024, to the next edge");
    let needed = at(task, "min_needed_resources/memory").as_i64();
    assert_eq!(needed, Some(FOOTPRINT + (factor * 1024.0 * MIB as f64) as i64));
}

/// Memory file systems cannot be taken back, whatever was learned.
#[test]
fn tmpfs_is_always_reserved() {
    let mut b = bench("memory_limit=1000000000; tmpfs_path=t; tmpfs_size=700000000");
    for job in 0..4 {
        let (_, reserve) = start(&mut b, 0);
        assert!((700_000_000..=707_000_001).contains(&reserve), "{reserve}");
        end(&mut b, job, done(), MIB, MIB);
    }
    let mut b = bench("memory_reserve_factor=1");
    for job in 0..4 {
        assert_eq!(start(&mut b, 0).1, 512 * MIB);
        end(&mut b, job, done(), MIB, MIB);
    }
}

#[test]
fn what_was_learned_survives_a_restart() {
    let mut b = gib();
    let mut identities = Vec::new();
    // The store, written at every commit.
    let mut store: Vec<StatePart> = Vec::new();
    let mut commit = |b: &mut Bench| {
        for part in b.controller.take_dirty() {
            store.retain(|old| old.part != part.part);
            store.push(part);
        }
        store.clone()
    };
    for _ in 0..3 {
        identities.push(b.settle(0).expect("a unit").0);
    }
    end(&mut b, 0, done(), 256 * MIB, MIB);
    end(&mut b, 1, overdraft(), 600 * MIB, MIB);
    identities.push(b.settle(0).expect("a unit").0);
    let (before, factors) = (demand(&b), shown_factors(&b));
    let stored = commit(&mut b);
    restart(&mut b, &stored);
    assert_eq!((shown_factors(&b), b.controller.is_dirty()), (factors, false));
    for identity in &identities[2..] {
        b.controller.adopt_job(identity, held()).expect("awaited");
    }
    assert_eq!(b.controller.end_revival(b.now), (vec![], None));
    assert_eq!(demand(&b), before);
    // What they were reserved with is known, though much was learned since.
    let reserve = |b: &Bench, job: u32| {
        b.controller.job(Bench::job_id(job)).expect("running").samples(b.now).get("user_job/memory_reserve")
    };
    assert_eq!(reserve(&b, 2), Some(512 * MIB));
    assert_eq!(reserve(&b, 3), Some(before[1].1 - FOOTPRINT));
    // 513 MiB are above that, and below what a new job gets: the user's processes are to blame.
    end(&mut b, 2, overdraft(), 513 * MIB, MIB);
    assert_eq!(demand(&b)[0], (1, FOOTPRINT + 1024 * MIB, 2));
    let (retry, _) = b.settle(1).expect("a unit");
    assert_eq!(retry.cookie, identities[1].cookie);
    let stored = commit(&mut b);
    restart(&mut b, &stored);
    b.controller.adopt_job(&retry, held()).expect("awaited");
    assert_eq!(reserve(&b, 4), Some(1024 * MIB));
    let verdict = end(&mut b, 4, done(), 600 * MIB, MIB);
    assert_eq!(verdict.record.predecessor, Some(Bench::job_id(1)));
}

fn shown_factors(b: &Bench) -> String {
    let progress = Value::Map(b.controller.progress(b.now, OperationState::Running));
    let task = &at(&progress, "tasks").as_list().expect("a list")[0];
    let factor = |name: &str| at(task, name).as_f64().expect("a factor").to_bits();
    format!("{} {}", factor("user_job_memory_reserve_factor"), factor("job_proxy_memory_reserve_factor"))
}

/// State that was stored before anything was learned: everything starts at the defaults.
#[test]
fn state_of_an_older_program() {
    let mut b = gib();
    let identity = b.settle(0).expect("a unit").0;
    b.settle(0).expect("a unit");
    end(&mut b, 1, done(), 256 * MIB, MIB);
    let mut parts = b.controller.export();
    let mut task = yson::parse(&parts[1].bytes).expect("YSON");
    let map = task.as_map_mut().expect("a map");
    for field in ["memory", "open_reserves"] {
        assert!(map.remove(field).is_some(), "{field}");
    }
    parts[1].bytes = yson::to_binary(&task);
    restart(&mut b, &parts);
    b.controller.adopt_job(&identity, held()).expect("awaited");
    assert_eq!(demand(&b), [(0, FOOTPRINT + 512 * MIB, 3)]);
}

#[test]
fn state_of_another_version_is_refused() {
    let b = gib();
    let mut parts = b.controller.export();
    let mut task = yson::parse(&parts[1].bytes).expect("YSON");
    task.as_map_mut().expect("a map").insert("memory", Value::String(vec![99]));
    parts[1].bytes = yson::to_binary(&task);
    let options = ControllerOptions::default();
    let refused = OperationController::restore(operation_id(), &b.parsed.spec, &options, second(0), &parts);
    let text = refused.expect_err("refused").to_string();
    assert!(text.contains("part 1: field \"memory\""), "{text}");
}

/// All the units of a large task were aborted for their memory: the demand is one group, and the
/// state stays in proportion.
#[test]
fn many_overdrafts() {
    let mut b = Bench::new("{tasks={t={job_count=2000; command=x}}}");
    for job in 0..2_000 {
        start(&mut b, 0);
        end(&mut b, job, overdraft(), 500 * MIB, MIB);
    }
    assert_eq!(demand(&b), [(1, FOOTPRINT + 512 * MIB, 2_000)]);
    let size: usize = b.controller.export().iter().map(|p| p.bytes.len()).sum();
    assert!(size < 2_000 * 20, "{size} bytes");
    for job in 2_000..4_000 {
        assert_eq!(start(&mut b, 1), (job - 2_000, 512 * MIB));
        end(&mut b, job, done(), 500 * MIB, MIB);
    }
    assert!(b.controller.is_over());
}

/// Options that change while a job runs, or while the server is away, do not change what the job was
/// promised: who is to blame is decided by that.
#[test]
fn an_overdraft_is_judged_by_what_the_job_had() {
    let roomy = ControllerOptions { footprint_memory: 1 << 30, ..ControllerOptions::default() };
    for (restarted, forgotten) in [(false, false), (true, false), (true, true)] {
        let mut b = gib();
        let before = b.controller.export();
        let (identity, _) = b.settle(0).expect("a unit");
        if restarted {
            let parts = if forgotten { before } else { b.controller.export() };
            // What a crash has made the server forget can only be the usual of the moment.
            let options = if forgotten { ControllerOptions::default() } else { roomy.clone() };
            restart_with(&mut b, &parts, &options);
            b.controller.adopt_job(&identity, held()).expect("open");
            b.controller.end_revival(b.now);
        }
        b.controller.set_options(&roomy);
        // The proxy needed more than the footprint of its time; of the new one it is far away, and the
        // user's processes would be nearer to theirs.
        end(&mut b, 0, overdraft(), 500 * MIB, 200 * MIB);
        let (_, description) = b.settle(1).expect("the retry");
        let reserve = description.user_job_memory_reserve;
        assert!(reserve < 600 * MIB, "restarted: {restarted}: the user's job was blamed: {reserve}");
    }
}
