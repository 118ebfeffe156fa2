//! The five scenarios with expected curves: every sample of every column, the totals, and that what is
//! used follows what is due.
//!
//! The scheduler is updated as often as the scenario says (once a second: 637,200 times altogether), and
//! every job is started and ended.

use super::expected::{COLUMNS, Expected, columns};
use super::scenario::{Scenario, at_pointer};
use super::world::World;
use vocab::Span;

#[test]
fn burst_and_relaxed() {
    follows_the_curves("burst-and-relaxed");
}

#[test]
fn burst_500_100() {
    follows_the_curves("burst-500-100");
}

#[test]
fn volume_drain() {
    follows_the_curves("volume-drain");
}

#[test]
fn relaxed_pair() {
    follows_the_curves("relaxed-pair");
}

#[test]
fn strong_and_burst() {
    follows_the_curves("strong-and-burst");
}

/// How far a sample may be off: in cores, and in core-seconds. The curves have three decimals, and
/// volumes of CPU are kept in hundredths, which rounds every refill. The scenarios themselves allow a
/// hundredth of the cores and more.
const CORES: f64 = 0.05;
const CORE_SECONDS: f64 = 5.0;

fn tolerance(column: &str) -> f64 {
    if column.ends_with("cpu_s") { CORE_SECONDS } else { CORES }
}

fn follows_the_curves(name: &str) {
    compare(name, &Scenario::load(name));
}

fn compare(name: &str, scenario: &Scenario) {
    let expected = Expected::load(scenario);
    let mut world = World::new(scenario);
    let mut sums = vec![Sums::default(); scenario.pools.len()];
    let mut worst: [(f64, String); 6] = Default::default();
    let mut compared = 0;

    let period = scenario.update_period();
    let seconds = period.as_secs_f64();
    let mut elapsed = Span::ZERO;
    while elapsed < scenario.duration {
        world.advance_to(elapsed);
        let numbers = world.numbers();
        for (sum, n) in sums.iter_mut().zip(&numbers) {
            sum.fair_share += n.fair_share * seconds;
            sum.integral += n.integral * seconds;
            sum.usage_difference += (n.usage - n.fair_share).abs() * seconds;
        }
        if scenario.is_sampled(elapsed) {
            let second = elapsed.as_secs_f64() as u64;
            let rows = expected.samples.get(&second).unwrap_or_else(|| panic!("no sample at {second} s"));
            compared += 1;
            for ((pool, n), sum) in scenario.pools.iter().zip(&numbers).zip(&mut sums) {
                sum.sample(n.volume);
                let want = rows.get(&pool.name).unwrap_or_else(|| panic!("no pool {}", pool.name));
                if !expected.counts(second) {
                    continue;
                }
                for (((got, want), worst), column) in
                    columns(n).into_iter().zip(want).zip(&mut worst).zip(COLUMNS)
                {
                    let own = expected.tolerance(column, &pool.name).unwrap_or(f64::INFINITY);
                    assert!(own >= tolerance(column), "{column}: the scenario is stricter, {own}");
                    if (got - want).abs() > worst.0 || got.is_nan() {
                        let at = format!("{} at {second} s: {got:.3} instead of {want:.3}", pool.name);
                        *worst = ((got - want).abs(), at);
                    }
                }
            }
        }
        elapsed = elapsed + period;
    }
    world.check();
    assert_eq!(compared, expected.samples.len(), "every sample is compared");
    assert!(world.started > 1000, "only {} jobs were started", world.started);

    let World { started, preempted, .. } = world;
    println!("{name}: {started} jobs, {preempted} preempted; largest differences in {compared} samples:");
    for (column, (difference, place)) in COLUMNS.iter().zip(&worst) {
        println!("  {column:<26}{difference:>10.4}  {place}");
    }
    for (column, (difference, place)) in COLUMNS.iter().zip(&worst) {
        assert!(*difference <= tolerance(column), "{column} is off by {difference}: {place}");
    }
    check_totals(scenario, &expected, &sums);
}

/// What is summed up over a run, by pool.
#[derive(Clone, Copy, Default)]
struct Sums {
    fair_share: f64,
    integral: f64,
    usage_difference: f64,
    /// Of the samples: smallest, largest and last.
    volume: Option<(f64, f64, f64)>,
}

impl Sums {
    fn sample(&mut self, volume: f64) {
        let (min, max, _) = self.volume.unwrap_or((volume, volume, volume));
        self.volume = Some((min.min(volume), max.max(volume), volume));
    }
}

fn check_totals(scenario: &Scenario, expected: &Expected, sums: &[Sums]) {
    for (pool, sum) in scenario.pools.iter().zip(sums) {
        let (min, max, last) = sum.volume.expect("samples");
        for (what, got) in [
            ("fair_share_cpu_s", sum.fair_share),
            ("integral_cpu_s", sum.integral),
            ("min_volume_cpu_s", min),
            ("max_volume_cpu_s", max),
            ("final_volume_cpu_s", last),
        ] {
            let (want, tolerance) = expected.total(&pool.name, what);
            assert!(
                (got - want).abs() <= tolerance * want.abs(),
                "{what} of {}: {got}, not {want}",
                pool.name
            );
        }
    }
    let due: f64 = sums.iter().map(|s| s.fair_share).sum();
    let difference: f64 = sums.iter().map(|s| s.usage_difference).sum();
    let part = difference / due;
    println!("  usage differs from fair share by {:.2} % of it", 100.0 * part);
    assert!(part <= expected.usage_tolerance(), "usage differs from fair share by {part} of it");
}

/// Everything passes if nothing is compared: other settings must not follow the curves.
#[test]
#[should_panic(expected = "is off by")]
fn another_flow_is_noticed() {
    let scenario = Scenario::with_changes("volume-drain", |scenario| {
        let flow = "/pool_trees/trees/physical/pools/burst50/integral_guarantees/resource_flow/cpu";
        *at_pointer(scenario, flow) = 2.into();
    });
    compare("volume-drain with twice the flow", &scenario);
}
