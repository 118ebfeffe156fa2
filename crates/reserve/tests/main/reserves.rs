//! Reserves of a task: the worked numbers of jobs-and-nodes.md 2.1, 2.5 and 2.8, and random lives.

use proptest::prelude::*;
use reserve::memory_digest::{
    Bases, Blame, ClusterOptions, Ended, Factors, JobProxyOptions, Peaks, Reserves, ScriptOptions, Settings,
};
use vocab::{Guid, JobId};

const MIB: i64 = 1 << 20;
const VANILLA: Bases = Bases { footprint: 128 * MIB, io_estimate: 0, memory_limit: 512 * MIB, tmpfs_size: 0 };

pub(crate) fn task(bases: Bases, cluster: &ClusterOptions, script: &ScriptOptions) -> Reserves {
    let proxy = JobProxyOptions::default();
    Reserves::new(Settings::new(bases, cluster, script, &proxy, (&proxy, None)))
}

fn vanilla(memory_limit: i64) -> Reserves {
    let bases = Bases { memory_limit, ..VANILLA };
    task(bases, &ClusterOptions::default(), &ScriptOptions::default())
}

fn user(peak: i64) -> Peaks {
    Peaks { user_job: Some(peak), job_proxy: Some(10 * MIB) }
}

pub(crate) fn job(n: u32) -> JobId {
    JobId(Guid([n, 1, 0x10384, 5]))
}

/// The user job's reserve of the next run of a unit.
fn reserve(task: &Reserves, cookie: u32) -> i64 {
    task.request(task.factors(cookie)).user_job_reserve
}

fn overdraft(task: &mut Reserves, cookie: u32, peaks: Peaks) -> Blame {
    let factors = task.factors(cookie);
    let reserve = task.request(factors);
    task.overdrafted(&Ended { job_id: job(cookie), cookie, factors, reserve, peaks })
}

#[test]
fn the_first_jobs_of_a_vanilla_task() {
    let task = vanilla(512 * MIB);
    let request = task.request(task.factors(0));
    assert_eq!(
        (request.total, request.user_job_reserve, request.job_proxy_reserve),
        (384 * MIB, 256 * MIB, 128 * MIB)
    );
}

#[test]
fn the_reserve_follows_completed_jobs() {
    let mut task = vanilla(1 << 30);
    assert_eq!(reserve(&task, 0), 512 * MIB);
    task.completed(user(256 * MIB));
    assert_eq!(reserve(&task, 1), 269_111_605);
    assert_eq!(task.current_factors().job_proxy, 0.5 * 1.01, "it used less than half of its base");
    // Nobody measured it: nothing is learned.
    let before = task.clone();
    task.completed(Peaks::default());
    task.completed(Peaks { user_job: Some(0), job_proxy: Some(0) });
    assert_eq!(task, before);
}

/// Example 8: a coarse digest with a lower quantile.
#[test]
fn options_of_the_cluster_count() {
    let cluster = ClusterOptions {
        user_job_memory_digest_precision: 0.05,
        user_job_memory_reserve_quantile: 0.8,
        ..ClusterOptions::default()
    };
    let script = ScriptOptions { user_job_memory_digest_default_value: 0.9, ..ScriptOptions::default() };
    let mut task = task(Bases { memory_limit: 400_000_000, ..VANILLA }, &cluster, &script);
    assert_eq!(reserve(&task, 0), 360_000_000);
    for _ in 0..10 {
        task.completed(user(208_000_000));
        assert_eq!(format!("{:.2}", reserve(&task, 0) as f64 / 1e6), "208.03");
    }
}

/// Example 6: what a job that was aborted for its memory teaches the others, and what its unit gets.
#[test]
fn an_overdraft_by_default() {
    let mut task = vanilla(512 * MIB);
    let blame = overdraft(&mut task, 7, user((0.55 * 512.0 * MIB as f64) as i64));
    assert_eq!(blame, Blame { user_job: true, job_proxy: false });
    assert_eq!(format!("{:.6}", task.current_factors().user_job), "0.607624");
    assert_eq!(task.factors(7).user_job, 1.0);
    assert_eq!(task.factors(8), task.current_factors());
    assert_eq!(task.factors(7).job_proxy, task.current_factors().job_proxy, "the proxy was not to blame");
    assert_eq!(task.predecessor(7), Some(job(7)));
    assert_eq!((task.predecessor(8), task.is_overdrafted(8)), (None, false));
    assert_eq!(task.overdrafted_units().collect::<Vec<_>>(), [7]);
    task.unit_done(7);
    assert_eq!(task.factors(7), task.current_factors());
}

/// The example of 2.5.
#[test]
fn an_overdraft_with_a_multiplier() {
    let multiplier = Some(1.5);
    let in_cluster = ClusterOptions {
        user_job_resource_overdraft_memory_multiplier: multiplier,
        ..ClusterOptions::default()
    };
    let default = ScriptOptions { user_job_memory_digest_default_value: 0.4, ..ScriptOptions::default() };
    let in_script =
        ScriptOptions { user_job_resource_overdraft_memory_multiplier: multiplier, ..default.clone() };
    let from_spec = ClusterOptions {
        use_resource_overdraft_memory_multiplier_from_spec: true,
        ..ClusterOptions::default()
    };
    let both =
        ClusterOptions { use_resource_overdraft_memory_multiplier_from_spec: true, ..in_cluster.clone() };
    let none = ClusterOptions::default();
    for (cluster, script, expected) in [
        (&in_cluster, &default, [160_000_000, 240_000_000, 400_000_000]),
        (&from_spec, &in_script, [160_000_000, 240_000_000, 400_000_000]),
        (&none, &in_script, [160_000_000, 400_000_000, 400_000_000]),
        (&both, &default, [160_000_000, 400_000_000, 400_000_000]),
    ] {
        let mut task = task(Bases { memory_limit: 400_000_000, ..VANILLA }, cluster, script);
        let mut reserves = Vec::new();
        for _ in 0..3 {
            reserves.push(reserve(&task, 0));
            overdraft(&mut task, 0, user(250_000_000));
        }
        assert_eq!(reserves, expected, "{cluster:?} {script:?}");
    }
}

/// A multiplier never leads beyond the upper bound.
#[test]
fn dedicated_factors_are_bounded() {
    let cluster = ClusterOptions {
        user_job_resource_overdraft_memory_multiplier: Some(10.0),
        job_proxy_resource_overdraft_memory_multiplier: Some(1.5),
        ..ClusterOptions::default()
    };
    let bases = Bases { io_estimate: 100 * MIB, ..VANILLA };
    let mut task = task(bases, &cluster, &ScriptOptions::default());
    let peaks = Peaks { user_job: Some(300 * MIB), job_proxy: Some(400 * MIB) };
    assert_eq!(overdraft(&mut task, 0, peaks), Blame { user_job: true, job_proxy: true });
    assert_eq!(task.factors(0), Factors { user_job: 1.0, job_proxy: 1.5 });
    overdraft(&mut task, 0, Peaks { user_job: Some(1), job_proxy: Some(400 * MIB) });
    assert_eq!(task.factors(0), Factors { user_job: 1.0, job_proxy: 2.0 });
    assert_eq!(task.request(task.factors(0)).job_proxy_reserve, 328 * MIB);
}

#[test]
fn who_is_to_blame() {
    let mut task = vanilla(512 * MIB);
    let factors = task.factors(0);
    let (user_job, job_proxy) = (256 * MIB, 128 * MIB);
    for (user_peak, proxy_peak, user_blamed, proxy_blamed) in [
        (Some(user_job + 1), Some(0), true, false),
        (Some(0), Some(job_proxy + 1), false, true),
        (Some(user_job + 1), Some(job_proxy + 1), true, true),
        // Nobody, as it seems: whoever was nearer.
        (Some(user_job - 5), Some(job_proxy - 6), true, false),
        (Some(user_job - 6), Some(job_proxy - 5), false, true),
        (Some(user_job), Some(job_proxy), false, true),
        // Somebody was not measured.
        (Some(1), None, true, false),
        (None, Some(1), false, true),
        (None, None, false, true),
    ] {
        let peaks = Peaks { user_job: user_peak, job_proxy: proxy_peak };
        let reserve = task.request(factors);
        let blame = task.overdrafted(&Ended { job_id: job(0), cookie: 0, factors, reserve, peaks });
        assert_eq!(blame, Blame { user_job: user_blamed, job_proxy: proxy_blamed }, "{peaks:?}");
    }
}

/// Statistics may be older than the abort: the reserve is what was used at least. The other process
/// teaches its plain part.
#[test]
fn samples_of_an_overdraft() {
    let mut task = vanilla(1000 * MIB);
    overdraft(&mut task, 0, Peaks { user_job: Some(499 * MIB), job_proxy: Some(100 * MIB) });
    let answers = |task: &Reserves| (task.user_job().quantile(1.0), task.job_proxy().quantile(1.0));
    let (user_job, job_proxy) = answers(&task);
    assert!((0.55..0.55 * 1.01).contains(&user_job), "{user_job}");
    assert!((100.0 / 128.0..1.01 * 100.0 / 128.0).contains(&job_proxy), "{job_proxy}");
    // Not measured at all: the unit gets more, and nothing is learned.
    let mut task = vanilla(1000 * MIB);
    overdraft(&mut task, 0, Peaks::default());
    assert_eq!((task.user_job().count(), task.job_proxy().count()), (0, 0));
    assert_eq!(task.factors(0).job_proxy, 2.0);
}

/// 2.7, in its order: (options, tmpfs size of 1000, lower bound, default).
#[test]
fn bounds_follow_options_and_tmpfs() {
    let o = ScriptOptions::default();
    let factor = |f| ScriptOptions { memory_reserve_factor: Some(f), ..ScriptOptions::default() };
    let ignoring = |f| ScriptOptions { ignore_memory_reserve_factor_less_than_one: true, ..factor(f) };
    for (options, tmpfs, lower, default) in [
        (o.clone(), 0, 0.05, 0.5),
        (factor(0.3), 0, 0.3, 0.3),
        (ignoring(0.3), 0, 0.05, 0.5),
        (ignoring(1.0), 0, 1.0, 1.0),
        (o.clone(), 100, 0.1, 0.5),
        (o.clone(), 800, 0.8, 0.8),
        (o.clone(), 1000, 1.0, 1.0),
        (factor(0.3), 700, 0.7, 0.7),
        (ScriptOptions { user_job_memory_digest_lower_bound: 0.7, ..o.clone() }, 0, 0.7, 0.7),
    ] {
        let bounds = options.bounds(tmpfs, 1000, 0.01);
        assert_eq!((bounds.lower, bounds.default, bounds.upper), (lower, default, 1.0), "{options:?}");
        assert!(bounds.are_sound());
    }
    // Whatever is learned, memory file systems are reserved.
    let bases = Bases { memory_limit: 1000, tmpfs_size: 333, ..VANILLA };
    let mut task = task(bases, &ClusterOptions::default(), &o);
    for _ in 0..10 {
        task.completed(user(1));
        assert!(reserve(&task, 0) >= 333);
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Complete(u32, Peaks),
    Overdraw(u32, Peaks),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let peak = || prop::option::weighted(0.9, 0..700 * MIB);
    let peaks = (peak(), peak()).prop_map(|(user_job, job_proxy)| Peaks { user_job, job_proxy });
    let step = (any::<bool>(), 0u32..6, peaks).prop_map(|(done, cookie, p)| {
        if done { Step::Complete(cookie, p) } else { Step::Overdraw(cookie, p) }
    });
    prop::collection::vec(step, 0..60)
}

/// A task that lived through these steps.
pub(crate) fn lived(multiplier: Option<f64>, steps: &[Step]) -> Reserves {
    let cluster = ClusterOptions {
        user_job_resource_overdraft_memory_multiplier: multiplier,
        ..ClusterOptions::default()
    };
    let mut task = task(VANILLA, &cluster, &ScriptOptions::default());
    for step in steps {
        match step {
            Step::Complete(cookie, peaks) => {
                task.completed(*peaks);
                task.unit_done(*cookie);
            }
            Step::Overdraw(cookie, peaks) => {
                overdraft(&mut task, *cookie, *peaks);
            }
        }
    }
    task
}

pub(crate) fn lives() -> impl Strategy<Value = (Option<f64>, Vec<Step>)> {
    (prop::option::of(1.0..=10.0f64), steps())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reserves_stay_in_bounds((multiplier, steps) in lives()) {
        let task = lived(multiplier, &steps);
        for cookie in 0..8 {
            let factors = task.factors(cookie);
            prop_assert!((0.05..=1.0).contains(&factors.user_job), "{factors:?}");
            prop_assert!((0.5..=2.0).contains(&factors.job_proxy), "{factors:?}");
            let request = task.request(factors);
            prop_assert!(request.user_job_reserve <= VANILLA.memory_limit);
            prop_assert_eq!(request.total, request.user_job_reserve + request.job_proxy_reserve);
        }
    }

    /// The run after an overdraft of the user job never has less than the one before, and the second
    /// overdraft leads to the limit.
    #[test]
    fn retries_grow((multiplier, steps) in lives(), excess in 1..100 * MIB) {
        let mut task = lived(multiplier, &steps);
        let cookie = 100;
        let mut reserves = Vec::new();
        for _ in 0..3 {
            reserves.push(reserve(&task, cookie));
            let peak = reserve(&task, cookie) + excess;
            overdraft(&mut task, cookie, Peaks { user_job: Some(peak), job_proxy: None });
        }
        prop_assert!(reserves.windows(2).all(|w| w[0] <= w[1]), "{reserves:?}");
        prop_assert_eq!(reserves[2], VANILLA.memory_limit);
        if multiplier.is_none() {
            prop_assert_eq!(reserves[1], VANILLA.memory_limit);
        }
    }
}
