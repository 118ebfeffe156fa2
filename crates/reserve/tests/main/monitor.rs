//! The CPU monitor on scripted use: the worked example of jobs-and-nodes.md 1.7 to its last digit,
//! and the properties of 1.4 on random lives.

use proptest::prelude::*;
use reserve::cpu_monitor::{Change, Check, Fate, Monitor, Options, Statistics};
use vocab::Span;

/// A job that is looked at every second.
struct Job {
    monitor: Monitor,
    now: u64,
    cpu: f64,
}

impl Job {
    fn new(cpu_limit: f64) -> Job {
        Job::with(Options { enable_cpu_reclaim: true, ..Options::default() }, cpu_limit)
    }
    fn with(options: Options, cpu_limit: f64) -> Job {
        Job { monitor: Monitor::new(options, cpu_limit), now: 0, cpu: 0.0 }
    }
    /// A second in which so many cores were used.
    fn second(&mut self, cores: f64) -> Check {
        self.now += 1;
        self.cpu += cores;
        self.monitor.check_at(self.now as f64, Some(self.cpu), |_| true)
    }
    /// A job whose baseline is taken.
    fn started(cpu_limit: f64) -> Job {
        let mut job = Job::new(cpu_limit);
        let baseline = job.monitor.check_at(0.0, Some(0.0), |_| true);
        assert_eq!(baseline.usage, None);
        job
    }
    /// `smoothed ratio vote S limit` as the table prints them.
    fn row(&mut self, cores: f64) -> String {
        let before = self.monitor.limit();
        let c = self.second(cores);
        let smoothed = c.smoothed.expect("measured");
        let sum = c.votes_sum.map_or("-".to_owned(), |s| s.to_string());
        let limit = format!("{:.6}", c.limit);
        let limit = limit.trim_end_matches('0').trim_end_matches('.');
        format!("{smoothed:.6} {:.4} {} {sum} {limit}", smoothed / before, c.vote.expect("measured"))
    }
}

#[test]
fn worked_example() {
    let mut job = Job::started(4.0);
    let expected = [
        "4.000000 1.0000 1 - 4",
        "3.700000 0.9250 1 - 4",
        "3.430000 0.8575 0 - 4",
        "3.187000 0.7968 0 - 4",
        "2.968300 0.7421 0 2 4",
        "2.771470 0.6929 0 1 4",
        "2.594323 0.6486 0 0 4",
        "2.434891 0.6087 0 0 4",
        "2.291402 0.5729 -1 -1 4",
        "2.162261 0.5406 -1 -2 4",
        "2.046035 0.5115 -1 -3 4",
        "1.941432 0.4854 -1 -4 3.88",
    ];
    for (i, expected) in expected.iter().enumerate() {
        assert_eq!(job.row(1.0), *expected, "check {}", i + 1);
    }
    // The table gives three digits of the first and the last of these.
    let rows: Vec<String> = (13..=16).map(|_| job.row(1.0)).collect();
    for (row, smoothed, ratio) in [(&rows[0], "1.847", "0.476"), (&rows[3], "1.618", "0.417")] {
        let numbers: Vec<f64> = row.split(' ').take(2).map(|x| x.parse().expect("a number")).collect();
        assert_eq!([format!("{:.3}", numbers[0]), format!("{:.3}", numbers[1])], [smoothed, ratio]);
    }
    assert!(rows.iter().all(|row| row.ends_with(" -1 - 3.88")), "{rows:?}");
    for (check, smoothed, ratio, limit) in [
        (17, "1.555906", "0.4010", "3.7636"),
        (22, "1.328257", "0.3529", "3.650692"),
        (27, "1.193832", "0.3270", "3.541171"),
    ] {
        let mut last = String::new();
        while job.now < check {
            last = job.row(1.0);
        }
        assert_eq!(last, format!("{smoothed} {ratio} -1 -5 {limit}"), "check {check}");
    }
    let mut changes = Vec::new();
    while job.now < 1_000 {
        if job.second(1.0).change.is_some() {
            changes.push(job.now);
        }
    }
    assert!(changes.windows(2).all(|w| w[1] - w[0] == 5), "one step every five checks: {changes:?}");
    assert_eq!(changes.last(), Some(&152));
    assert_eq!(format!("{:.6} {:.4}", job.monitor.limit(), 1.0 / job.monitor.limit()), "1.653637 0.6047");
}

/// Checks until the limit is at its floor.
#[test]
fn an_idle_job_goes_down_to_its_floor() {
    for (cpu_limit, floor, check) in [(4.0, 1.0, 234), (8.0, 1.0, 349)] {
        let mut job = Job::started(cpu_limit);
        while job.monitor.limit() > floor {
            job.second(0.0);
        }
        assert_eq!((job.monitor.limit(), job.now), (floor, check), "cpu_limit {cpu_limit}");
    }
    for cpu_limit in [0.5, 1.0] {
        let mut job = Job::started(cpu_limit);
        (0..500).for_each(|_| assert_eq!(job.second(0.0).change, None));
    }
}

#[test]
fn a_job_that_wakes_up_grows_in_twenty_seconds() {
    let mut job = Job::started(4.0);
    while job.monitor.limit() > 1.0 || job.monitor.votes().len() > 0 {
        job.second(0.0);
    }
    let checks: Vec<Check> = (0..21).map(|_| job.second(4.0)).collect();
    let votes: Vec<i8> = checks[..5].iter().filter_map(|c| c.vote).collect();
    assert_eq!((votes, checks[4].votes_sum), (vec![-1, 0, 1, 1, 1], Some(2)));
    assert_eq!(checks[5].votes_sum, Some(4));
    let changes: Vec<(usize, String)> = checks
        .iter()
        .zip(1..)
        .filter_map(|(c, n)| c.change.map(|change| (n, format!("{:.4}", change.to))))
        .collect();
    let text = |s: &str| s.to_owned();
    assert_eq!(
        changes,
        [(6, text("1.4500")), (11, text("2.1025")), (16, text("3.0486")), (21, text("4.0000"))]
    );
}

#[test]
fn what_was_not_measured_changes_nothing() {
    let mut job = Job::new(2.0);
    let options = Options { start_delay: Span::from_secs(3), ..job.monitor.options().clone() };
    job = Job::with(options, 2.0);
    let before = job.monitor.clone();
    for _ in 0..2 {
        job.second(1.0);
        assert_eq!(job.monitor, before, "the start is not looked at");
    }
    job.second(1.0);
    assert_eq!(job.second(1.0).smoothed, Some(2.0), "baseline at 3 s, seed at 4 s");
    // A reading that failed: the next good one spans two seconds.
    let before = job.monitor.clone();
    let blind = job.monitor.check_at(5.0, None, |_| true);
    assert_eq!((blind.usage, blind.vote, blind.votes_sum, blind.change), (None, None, None, None));
    assert_eq!((blind.smoothed, blind.limit), (Some(2.0), 2.0));
    assert_eq!(job.monitor, before);
    let wide = job.monitor.check_at(6.0, Some(job.cpu + 3.0), |_| true);
    assert_eq!(wide.usage, Some(1.5));
    // A counter that went backwards: a new baseline, no vote.
    let votes = job.monitor.votes().len();
    assert_eq!(job.monitor.check_at(7.0, Some(0.5), |_| true).usage, None);
    assert_eq!(job.monitor.votes().len(), votes);
    assert_eq!(job.monitor.check_at(8.0, Some(1.25), |_| true).usage, Some(0.75));
    // The same instant twice.
    assert_eq!(job.monitor.check_at(8.0, Some(1.3), |_| true).usage, None);
    assert_eq!(job.monitor.check_at(9.0, Some(1.5), |_| true).usage, Some(0.25));
}

#[test]
fn values_on_a_bound_do_not_vote() {
    let options = Options { smoothing_factor: 1.0, ..Options::default() };
    for (cores, vote) in [(1.2, 0), (1.1999, -1), (1.8, 0), (1.8001, 1), (1.5, 0)] {
        let mut job = Job::with(options.clone(), 2.0);
        job.second(0.0);
        job.second(0.0);
        // One second of its own, so that nothing is rounded on the way.
        let last = job.monitor.check_at(3.0, Some(cores), |_| true);
        assert_eq!((last.usage, last.vote), (Some(cores), Some(vote)), "{cores}");
    }
}

#[test]
fn a_guarantee_that_cannot_be_written_stays() {
    let mut job = Job::started(4.0);
    let mut refused = 0;
    while refused < 3 {
        job.now += 1;
        let check = job.monitor.check_at(job.now as f64, Some(0.0), |limit| {
            assert_eq!(limit, 4.0 * 0.97);
            false
        });
        if let Some(change) = check.change {
            assert_eq!(change, Change { from: 4.0, to: 4.0 * 0.97, fate: Fate::Refused });
            assert_eq!((check.limit, job.monitor.votes().len()), (4.0, 0), "the votes are gone all the same");
            refused += 1;
        }
    }
    assert_eq!(job.monitor.statistics().expect("measured").aggregated_preemptible_cpu_x100, 0);
}

#[test]
fn statistics_are_kept_with_reclaim_off() {
    let run = |enable_cpu_reclaim: bool| {
        let mut job = Job::with(Options { enable_cpu_reclaim, ..Options::default() }, 4.0);
        assert_eq!(job.monitor.statistics(), None);
        job.second(1.0);
        assert_eq!(job.monitor.statistics(), None, "a baseline is no measurement");
        let mut written = 0;
        for _ in 0..17 {
            job.now += 1;
            job.cpu += 1.0;
            job.monitor.check_at(job.now as f64, Some(job.cpu), |_| {
                written += 1;
                true
            });
        }
        (job.monitor.statistics().expect("measured"), job.monitor.limit(), written)
    };
    let (off, limit, written) = run(false);
    // Five seconds at 3.88 and the last one at 3.7636.
    assert_eq!((limit, written), (3.7636, 0));
    let expected = Statistics {
        smoothed_cpu_usage_x100: 155,
        preemptible_cpu_x100: 23,
        aggregated_smoothed_cpu_usage_x100: 4199,
        aggregated_max_cpu_usage_x100: 6800,
        aggregated_preemptible_cpu_x100: 83,
        aggregated_preempted_cpu_x100: 0,
    };
    assert_eq!(off, expected);
    let (on, limit, written) = run(true);
    assert_eq!((limit, written), (3.7636, 2));
    assert_eq!(on, Statistics { aggregated_preempted_cpu_x100: 83, ..expected });
    let names: Vec<&str> = on.samples().iter().map(|(name, _)| *name).collect();
    assert!(names.iter().all(|n| n.starts_with("job_proxy/") && n.ends_with("_x100")));
    assert_eq!(on.samples()[6].1, on.preemptible_cpu_x100);
    assert_eq!(on.samples()[7].1, on.aggregated_preemptible_cpu_x100);
}

#[test]
fn a_job_without_cpu_is_not_watched() {
    let mut job = Job::new(0.0);
    let before = job.monitor.clone();
    for _ in 0..20 {
        assert_eq!(job.second(1.0).smoothed, None);
    }
    assert_eq!(job.monitor, before);
    assert_eq!(job.monitor.statistics(), None);
}

#[test]
fn production_readings_give_the_same() {
    let (mut coarse, mut fine) = (Job::started(4.0), Job::started(4.0));
    coarse.monitor = Monitor::new(coarse.monitor.options().clone(), 4.0);
    coarse.monitor.check(Span::ZERO, Some(Span::ZERO), |_| true);
    for second in 1..200u64 {
        let check =
            coarse.monitor.check(Span::from_secs(second), Some(Span::from_millis(500 * second)), |_| true);
        assert_eq!(check, fine.second(0.5));
    }
}

fn options() -> impl Strategy<Value = Options> {
    let part = || prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0f64];
    ((any::<bool>(), 0u64..4_000, part(), part(), part()), (1.0..=2.0f64, part(), 1i64..8, 1i64..8, part()))
        .prop_map(|((reclaim, delay, smoothing, upper, lower), (up, down, window, threshold, min))| Options {
            enable_cpu_reclaim: reclaim,
            check_period: Span::from_secs(1),
            start_delay: Span::from_millis(delay),
            smoothing_factor: smoothing,
            relative_upper_bound: upper,
            relative_lower_bound: lower,
            increase_coefficient: up,
            decrease_coefficient: down,
            vote_window_size: window,
            vote_decision_threshold: threshold,
            min_cpu_limit: min,
        })
}

/// What happens at one check: how long after the one before, cores used, is the reading good, is the
/// guarantee written.
type Event = (f64, f64, bool, bool);

fn events() -> impl Strategy<Value = Vec<Event>> {
    let cores = prop_oneof![Just(0.0), 0.0..1.0f64, 0.0..20.0f64, Just(f64::NEG_INFINITY)];
    prop::collection::vec((0.0..3.0f64, cores, prop::bool::weighted(0.9), prop::bool::weighted(0.9)), 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lives(options in options(), hard in prop_oneof![Just(0.5), 0.01..16.0f64], events in events()) {
        let (window, threshold) = (options.vote_window_size, options.vote_decision_threshold);
        let reclaim = options.enable_cpu_reclaim;
        let floor = hard.min(options.min_cpu_limit);
        let mut monitor = Monitor::new(options, hard);
        let (mut now, mut cpu, mut since_emptied) = (0.0, 0.0, 0i64);
        for (dt, cores, good, writable) in events {
            now += dt;
            // A counter that starts anew.
            cpu = if cores < 0.0 { 0.0 } else { cpu + cores * dt };
            let before = monitor.clone();
            let mut asked = None;
            let check = monitor.check_at(now, good.then_some(cpu), |limit| {
                assert!(asked.replace(limit).is_none(), "asked twice");
                writable
            });
            // (d)
            prop_assert!((floor..=hard).contains(&check.limit), "{} of {floor}..={hard}", check.limit);
            prop_assert_eq!(check.limit, monitor.limit());
            prop_assert!(monitor.votes().len() as i64 <= window);
            let Some(vote) = check.vote else {
                prop_assert_eq!(check.change, None);
                prop_assert_eq!(monitor.votes().len(), before.votes().len());
                prop_assert_eq!(monitor.smoothed(), before.smoothed());
                continue;
            };
            prop_assert!((-1..=1).contains(&vote));
            since_emptied += 1;
            let sum: i64 = before.votes().map(i64::from).sum::<i64>() + i64::from(vote);
            prop_assert_eq!(check.votes_sum, (since_emptied >= window).then_some(sum));
            match check.change {
                Some(change) => {
                    // (b), (e)
                    prop_assert!(since_emptied >= window && sum.abs() > threshold && window > threshold);
                    prop_assert_eq!(sum > 0, change.to > change.from);
                    prop_assert_ne!(change.to, change.from);
                    prop_assert_eq!(change.from, before.limit());
                    prop_assert_eq!(asked, reclaim.then_some(change.to));
                    let fate = match (reclaim, writable) {
                        (false, _) => Fate::Imagined,
                        (true, true) => Fate::Applied,
                        (true, false) => Fate::Refused,
                    };
                    prop_assert_eq!(change.fate, fate);
                    prop_assert_eq!(check.limit, if fate == Fate::Refused { change.from } else { change.to });
                }
                None => prop_assert_eq!((asked, check.limit), (None, before.limit())),
            }
            if since_emptied >= window && sum.abs() > threshold {
                prop_assert_eq!(monitor.votes().len(), 0);
                since_emptied = 0;
            }
            let s = monitor.statistics().expect("measured");
            // Truncated one by one.
            prop_assert!(s.aggregated_preemptible_cpu_x100 <= s.aggregated_max_cpu_usage_x100);
            prop_assert!(s.aggregated_preemptible_cpu_x100 >= 0 && s.smoothed_cpu_usage_x100 >= 0);
            let preempted = if reclaim { s.aggregated_preemptible_cpu_x100 } else { 0 };
            prop_assert_eq!(s.aggregated_preempted_cpu_x100, preempted);
        }
    }

    /// 1.6: a job within its guarantee is never said to use more of it than there is, and one that keeps
    /// its cores busy from the start has nothing to give.
    #[test]
    fn sums(hard in 0.1..16.0f64, parts in prop::collection::vec(0.0..=1.0f64, 1..300)) {
        let mut job = Job::started(hard);
        let mut busy = Job::started(hard);
        for part in parts {
            job.second(hard * part);
            busy.second(hard * (0.9 + 0.1 * part) + 1e-9);
            let s = job.monitor.statistics().expect("measured");
            prop_assert!(s.aggregated_smoothed_cpu_usage_x100 <= s.aggregated_max_cpu_usage_x100);
            prop_assert_eq!(busy.monitor.statistics().expect("measured").aggregated_preemptible_cpu_x100, 0);
        }
    }
}
