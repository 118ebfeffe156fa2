//! The histogram: the worked numbers of jobs-and-nodes.md 2.8, and what 2.2 says of its answers.

use proptest::prelude::*;
use reserve::memory_digest::{Bounds, JobProxyOptions, LogDigest, MAX_BUCKETS, ScriptOptions};

const USER: Bounds = Bounds { lower: 0.05, default: 0.5, upper: 1.0, precision: 0.01 };

fn digest(samples: impl IntoIterator<Item = f64>) -> LogDigest {
    let mut digest = LogDigest::new(USER);
    samples.into_iter().for_each(|x| digest.add(x));
    digest
}

#[track_caller]
fn check(digest: &LogDigest, p: f64, expected: &str) {
    let decimals = expected.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    assert_eq!(format!("{:.decimals$}", digest.quantile(p)), expected, "P = {p}");
}

#[test]
fn worked_examples() {
    check(&digest([]), 0.95, "0.5");
    check(&digest([0.25]), 0.95, "0.250630");
    assert_eq!((digest([0.25]).quantile(0.95) * f64::from(1 << 30)) as i64, 269_111_605);

    let twenty = digest((1..=20).map(|i| 0.04 * f64::from(i)));
    for (p, expected) in [
        (0.95, "0.763882"),
        (0.5, "0.400071"),
        (0.8, "0.645005"),
        (0.9, "0.726808"),
        (1.0, "0.802848"),
        (0.0, "0.05"),
    ] {
        check(&twenty, p, expected);
    }

    let mut hungry = digest(std::iter::repeat_n(0.30, 95).chain(std::iter::repeat_n(0.80, 5)));
    check(&hungry, 0.95, "0.302788");
    hungry.add(0.80);
    check(&hungry, 0.95, "0.802848");

    check(&digest([0.02]), 0.95, "0.0505");
    check(&digest([0.605]), 0.95, "0.607624");

    let floor = ScriptOptions { memory_reserve_factor: Some(0.8), ..ScriptOptions::default() };
    let mut digest = LogDigest::new(floor.bounds(0, 1 << 30, 0.01));
    check(&digest, 0.95, "0.8");
    digest.add(0.3);
    check(&digest, 0.95, "0.808");
    (0..5).for_each(|_| digest.add(0.95));
    check(&digest, 0.95, "0.956918");
    let all = ScriptOptions { memory_reserve_factor: Some(1.0), ..ScriptOptions::default() };
    let mut digest = LogDigest::new(all.bounds(0, 1 << 30, 0.01));
    for sample in [0.3, 0.95, 2.0] {
        assert_eq!(digest.quantile(0.95), 1.0);
        digest.add(sample);
    }
    assert_eq!(digest.quantile(0.95), 1.0);
}

#[test]
fn numbers_of_buckets() {
    assert_eq!(LogDigest::new(USER).buckets(), 302);
    assert_eq!(LogDigest::new(JobProxyOptions::default().bounds()).buckets(), 140);
    let one = Bounds { lower: 1.0, default: 1.0, upper: 1.0, precision: 0.01 };
    assert_eq!(LogDigest::new(one).buckets(), 1);
    // An option cannot ask for more than there is.
    for precision in [1e-5, 1e-12, 1e-300] {
        let mut digest = LogDigest::new(Bounds { precision, ..USER });
        assert_eq!(digest.buckets(), MAX_BUCKETS);
        digest.add(0.3);
        let answer = digest.quantile(0.5);
        assert!((0.3..0.3 * 1.0002).contains(&answer), "{answer}");
    }
    let widest = Bounds { lower: 1e-150, default: 1.0, upper: 1e150, precision: 0.01 };
    let mut digest = LogDigest::new(widest);
    [0.0, 1e-150, 1.0, 1e151].iter().for_each(|x| digest.add(*x));
    assert_eq!((digest.count(), digest.quantile(1.0)), (3, 1e150));
}

#[test]
fn what_is_no_size_is_ignored() {
    let mut d = digest([0.3]);
    let before = d.clone();
    for odd in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        d.add(odd);
        assert_eq!(d, before, "{odd}");
    }
    d.add(1e300);
    assert_eq!(d.quantile(1.0), 1.0, "above the bounds is at the bound");
    d.add(5e-324);
    assert_eq!((d.count(), d.quantile(0.1)), (3, 0.05 * 1.01));
}

#[test]
fn a_full_digest_is_small() {
    let d = digest((0..=10_000).map(|i| 0.05 * 20f64.powf(f64::from(i) / 10_000.0)));
    assert_eq!((d.count(), d.buckets()), (10_001, 302));
    assert!(d.size() <= 4096, "{} bytes", d.size());
}

/// The pseudo-code of jobs-and-nodes.md 2.2, literally.
struct Model {
    bounds: Bounds,
    step: f64,
    buckets: Vec<u64>,
    count: u64,
}

impl Model {
    fn new(bounds: Bounds) -> Model {
        let step = 1.0 + bounds.precision;
        let n = ((bounds.upper / bounds.lower).ln() / step.ln()).ceil().max(1.0) as usize;
        Model { bounds, step, buckets: vec![0; n], count: 0 }
    }
    fn add(&mut self, v: f64) {
        let x = (v / self.bounds.lower).ln() / self.step.ln();
        if x.is_nan() || x < f64::from(i32::MIN) || x > f64::from(i32::MAX) {
            return;
        }
        let i = (x.trunc() as i64).clamp(0, self.buckets.len() as i64 - 1);
        self.buckets[i as usize] += 1;
        self.count += 1;
    }
    fn quantile(&self, p: f64) -> f64 {
        if self.count == 0 {
            return self.bounds.default;
        }
        let (mut value, mut acc) = (self.bounds.lower, 0);
        for n in &self.buckets {
            if acc as f64 >= p * self.count as f64 {
                return value;
            }
            acc += n;
            value *= self.step;
        }
        self.bounds.upper
    }
}

fn bounds() -> impl Strategy<Value = Bounds> {
    (0.001..1.0f64, 1.0..4.0f64, 0.0..=1.0f64, 0.002..0.5f64).prop_map(|(lower, ratio, at, precision)| {
        let upper = lower * ratio;
        Bounds { lower, default: (lower + (upper - lower) * at).clamp(lower, upper), upper, precision }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn same_answers_as_the_specification(
        bounds in bounds(),
        samples in prop::collection::vec(prop_oneof![8 => 0.0..5.0f64, 1 => any::<f64>()], 0..80),
        p in prop_oneof![Just(0.0), Just(1.0), Just(0.95), 0.0..=1.0f64],
    ) {
        let (mut digest, mut model) = (LogDigest::new(bounds), Model::new(bounds));
        prop_assert_eq!(digest.buckets() as usize, model.buckets.len());
        for x in samples {
            digest.add(x);
            model.add(x);
            prop_assert_eq!(digest.count(), model.count);
            prop_assert_eq!(digest.quantile(p).to_bits(), model.quantile(p).to_bits());
        }
    }

    /// `true <= X <= true * (1 + precision)`, capped by the upper bound.
    #[test]
    fn answers_are_above_the_truth_and_near_it(
        bounds in bounds(),
        places in prop::collection::vec(0.0..=1.0f64, 1..200),
        p in 0.001..=1.0f64,
    ) {
        let mut digest = LogDigest::new(bounds);
        let mut samples: Vec<f64> =
            places.iter().map(|at| (bounds.lower * (bounds.upper / bounds.lower).powf(*at)).min(bounds.upper)).collect();
        samples.iter().for_each(|x| digest.add(*x));
        samples.sort_unstable_by(f64::total_cmp);
        let rank = (p * samples.len() as f64).ceil() as usize;
        let truth = samples[rank.clamp(1, samples.len()) - 1];
        let answer = digest.quantile(p);
        let slack = 1e-9 * truth;
        prop_assert!(answer >= truth - slack, "{answer} for {truth}");
        prop_assert!(answer <= (truth * (1.0 + bounds.precision) + slack).min(bounds.upper + slack), "{answer} for {truth}");
    }

    /// The picture: every sample is in one bar, bars ascend without overlap within the bounds, and there are
    /// no more than asked for.
    #[test]
    fn bars_hold_all_samples(bounds in bounds(), samples in prop::collection::vec(0.001..5.0f64, 0..100), bars in 1..80u32) {
        let mut digest = LogDigest::new(bounds);
        samples.iter().for_each(|x| digest.add(*x));
        let histogram = digest.histogram(bars);
        prop_assert!(histogram.len() <= bars as usize);
        prop_assert_eq!(histogram.iter().map(|bar| bar.2).sum::<u64>(), digest.count());
        prop_assert!(histogram.iter().all(|(lower, upper, count)| lower < upper && *count > 0));
        prop_assert!(histogram.windows(2).all(|w| w[0].1 <= w[1].0 * (1.0 + 1e-9)));
        if let [(first, ..), .., (_, last, _)] = histogram.as_slice() {
            prop_assert!(*first >= bounds.lower * (1.0 - 1e-9) && *last <= bounds.upper);
        }
    }

    #[test]
    fn quantiles_ascend(bounds in bounds(), samples in prop::collection::vec(0.0..5.0f64, 1..100)) {
        let mut digest = LogDigest::new(bounds);
        samples.iter().for_each(|x| digest.add(*x));
        let answers: Vec<f64> = (0..=20).map(|i| digest.quantile(f64::from(i) / 20.0)).collect();
        prop_assert!(answers.windows(2).all(|w| w[0] <= w[1]), "{answers:?}");
        prop_assert!(answers.iter().all(|x| (bounds.lower..=bounds.upper).contains(x)));
        prop_assert_eq!(answers[0], bounds.lower);
    }
}
