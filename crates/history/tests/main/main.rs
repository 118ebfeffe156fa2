//! A history against a plain list of everything that was recorded.

use history::{Chart, History, ReadError, Resolution, Settings};
use proptest::prelude::*;
use std::sync::Arc;
use vocab::{Span, Time};

const QUANTA: [f64; 2] = [1e-6, 1e-3];
/// A multiple of all steps.
const START: u64 = 1_000_000_800;

fn settings(budget: usize) -> Settings<2> {
    Settings::new(QUANTA, budget)
}

fn at(seconds: f64) -> Time {
    Time::from_micros(START * 1_000_000 + (seconds * 1e6).round() as u64)
}

/// Everything that was recorded, and nothing clever.
#[derive(Default)]
struct Model {
    records: Vec<(f64, Option<[f64; 2]>)>,
}

impl Model {
    /// Mean of a column between two instants, as far as something holds.
    fn mean(&self, from: f64, to: f64, column: usize) -> Option<f64> {
        let (mut sum, mut time) = (0.0, 0.0);
        for pair in self.records.windows(2) {
            let ((a, values), (b, _)) = (pair[0], pair[1]);
            let (a, b) = (a.max(from), b.min(to));
            if let (Some(values), true) = (values, a < b) {
                sum += values[column] * (b - a);
                time += b - a;
            }
        }
        (time > 1e-9).then(|| sum / time)
    }
}

fn close(chart: &Chart<2>, model: &Model) -> Result<(), TestCaseError> {
    let step = chart.step.as_secs_f64();
    let first = chart.start.as_micros() as f64 / 1e6 - START as f64;
    for (i, point) in chart.points.iter().enumerate() {
        let (from, to) = (first + i as f64 * step, first + (i + 1) as f64 * step);
        for (column, quantum) in QUANTA.iter().enumerate() {
            match (point, model.mean(from, to, column)) {
                (Some(point), Some(mean)) => prop_assert!(
                    (point[column] - mean).abs() <= *quantum,
                    "column {column} of {from}..{to}: {} and not {mean}",
                    point[column],
                ),
                (None, None) => {}
                other => prop_assert!(false, "{from}..{to}: {other:?}"),
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn means_are_those_of_what_was_recorded(
        steps in prop::collection::vec(
            (prop_oneof![9 => 1u64..30, 1 => 100u64..6_000], 0u8..12, 0u64..1000, 0u64..100_000), 2..120),
        step in prop_oneof![Just(1u64), Just(7), Just(60), Just(900)],
    ) {
        let mut history = History::new(settings(1 << 30));
        let name: Arc<str> = "p".into();
        let mut model = Model::default();
        let mut now = 0.0;
        let mut values = [0.0; 2];
        for (tenths, change, a, b) in steps {
            match change {
                0..=3 => values[0] = a as f64 / 1000.0,
                4..=6 => values[1] = b as f64 / 7.0,
                _ => {}
            }
            history.record(at(now), [(&name, values)].into_iter());
            model.records.push((now, Some(values)));
            now = (now * 10.0 + tenths as f64).round() / 10.0;
        }
        history.record(at(now), [(&name, values)].into_iter());
        model.records.push((now, None));
        let step = if now > 15_000.0 { step.max(60) } else { step };
        // Means are exact up to a quantum if the steps of the source are known altogether.
        let chart = history.read("p", at(0.0), at(now.max(1.0)), Some(Span::from_secs(step))).unwrap().unwrap();
        let whole = |seconds: f64| (seconds.fract()).abs() < 1e-9;
        if chart.source_step == Span::from_secs(1) && whole(now) {
            close(&chart, &model)?;
        }
        let again = history.read("p", at(0.0), at(now.max(1.0)), Some(Span::from_secs(step))).unwrap().unwrap();
        prop_assert_eq!(chart, again);
    }
}

fn filled(seconds: u64, mut values: impl FnMut(u64) -> [f64; 2], settings: Settings<2>) -> History<2> {
    let mut history = History::new(settings);
    let name: Arc<str> = "p".into();
    for second in 0..=seconds {
        history.record(at(second as f64), [(&name, values(second))].into_iter());
    }
    history
}

#[test]
fn old_times_are_seen_through_coarser_levels() {
    let day = 24 * 3600;
    let history = filled(day, |s| [s as f64 / day as f64, 0.0], settings(1 << 30));
    let source = |start: u64, step: Option<u64>| {
        let chart = history.read("p", at(start as f64), at(day as f64), step.map(Span::from_secs));
        let chart = chart.unwrap().unwrap();
        let (i, point) = chart.points.iter().enumerate().find(|(_, p)| p.is_some()).unwrap();
        let middle = chart.start.since(at(0.0)).as_secs_f64() + (i as f64 + 0.5) * chart.step.as_secs_f64();
        // A value is recorded at the beginning of its second.
        assert!((point.unwrap()[0] - (middle - 0.5) / day as f64).abs() < 1e-3);
        (chart.source_step.as_secs_f64(), chart.step.as_secs_f64(), chart.points.len())
    };
    assert_eq!(source(day - 600, None), (1.0, 1.0, 600));
    assert_eq!(source(day - 600, Some(5)), (1.0, 5.0, 120));
    assert_eq!(source(day - 3600, Some(60)), (60.0, 60.0, 60), "no finer than needed");
    assert_eq!(source(day - 5 * 3600, Some(1)), (60.0, 60.0, 300), "seconds do not reach so far");
    assert_eq!(source(3600, None).0, 60.0);
}

#[test]
fn what_does_not_change_costs_nothing() {
    let idle = filled(20_000, |_| [0.25, 7.0], settings(1 << 30));
    let busy = filled(20_000, |s| [(s % 97) as f64 / 97.0, s as f64], settings(1 << 30));
    assert!(idle.bytes() < 1_500, "{}", idle.bytes());
    assert!(busy.bytes() > 40_000, "{}", busy.bytes());
    let chart = idle.read("p", at(10_000.0), at(20_000.0), Some(Span::from_secs(1))).unwrap().unwrap();
    assert_eq!(chart.points.len(), 10_000);
    assert!(chart.points.iter().all(|p| p.is_some_and(|p| (p[0] - 0.25).abs() < 1e-9)));
}

#[test]
fn the_budget_holds_and_the_newest_stays() {
    let budget = 200_000;
    let mut history = History::new(settings(budget));
    let names: Vec<Arc<str>> = (0..20).map(|i| Arc::from(format!("pool-{i:02}"))).collect();
    for second in 0..8_000u64 {
        let values = |i: usize| [((second * 7919 + i as u64 * 31) % 1000) as f64 / 1000.0, second as f64];
        history.record(at(second as f64), names.iter().enumerate().map(|(i, n)| (n, values(i))));
        assert!(history.bytes() <= budget + 20_000, "{} at {second}", history.bytes());
    }
    let chart = history.read("pool-07", at(7_900.0), at(7_999.0), Some(Span::from_secs(1))).unwrap().unwrap();
    assert_eq!(chart.source_step, Span::from_secs(1));
    assert!(chart.points.iter().all(Option::is_some));
    let old = history.read("pool-07", at(0.0), at(7_999.0), None).unwrap().unwrap();
    assert_eq!(old.source_step, Span::from_secs(60), "the minutes of the beginning are still there");
    assert!(old.points.iter().take(100).all(Option::is_some));
}

/// Three columns of shares that move every second, and a volume: 2,000 pools like that fit.
#[test]
fn two_thousand_busy_pools_fit() {
    let mut history = History::new(Settings::<7>::new([1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-3], 1 << 40));
    let name: Arc<str> = "p".into();
    for second in 0..4 * 3600u64 {
        let wave = |k: u64| ((second * k * 7919) % 10_007) as f64 / 10_007.0;
        let values = [wave(1), wave(2), wave(3), 0.1, wave(4), wave(3) * 0.5, second as f64 * 0.173];
        history.record(at(second as f64), [(&name, values)].into_iter());
    }
    let bytes = history.bytes();
    println!("{bytes} bytes for a pool of which six columns change every second, by anything");
    // The worst case is above what the budget allows for 2,000 pools; then seconds reach back less far.
    let reach = 3.0 * 80_000.0 / bytes as f64;
    println!("2,000 such pools in 160 MB: seconds of the last {reach:.1} h");
    assert!(reach > 1.0);
}

#[test]
fn gaps_and_renames() {
    let mut history = History::new(settings(1 << 30));
    let (p, q): (Arc<str>, Arc<str>) = ("p".into(), "q".into());
    for second in 0..10 {
        history.record(at(f64::from(second)), [(&p, [1.0, 0.0]), (&q, [2.0, 0.0])].into_iter());
    }
    for second in 10..20 {
        history.record(at(f64::from(second)), [(&q, [2.0, 0.0])].into_iter());
    }
    for second in 20..30 {
        history.record(at(f64::from(second)), [(&p, [1.0, 0.0]), (&q, [2.0, 0.0])].into_iter());
    }
    let known = |history: &History<2>, name: &str| -> String {
        let chart = history.read(name, at(0.0), at(30.0), Some(Span::from_secs(1))).unwrap().unwrap();
        chart.points.iter().map(|p| p.map_or('.', |p| char::from(b'0' + p[0] as u8))).collect()
    };
    assert_eq!(known(&history, "p"), "111111111...........111111111.", "nothing holds after the last record");
    assert_eq!(known(&history, "q"), "22222222222222222222222222222.");
    history.rename("p", "r");
    assert!(!history.contains("p"));
    assert_eq!(known(&history, "r"), "111111111...........111111111.");
    // What is gone for as long as the finest level reaches is forgotten.
    for hour in 1..5 {
        history.record(at(f64::from(hour) * 3600.0), [(&q, [2.0, 0.0])].into_iter());
    }
    assert_eq!(history.names().map(|n| &**n).collect::<Vec<_>>(), ["q"]);
}

#[test]
fn refusals() {
    let history = filled(100, |_| [0.0, 0.0], settings(1 << 30));
    assert!(history.read("nobody", at(0.0), at(1.0), None).is_none());
    assert_eq!(history.read("p", at(5.0), at(5.0), None), Some(Err(ReadError::EmptyRange)));
    let Some(Err(ReadError::TooManyPoints { enough, .. })) =
        history.read("p", at(0.0), at(1e6), Some(Span::from_secs(1)))
    else {
        panic!("a million points");
    };
    assert!(history.read("p", at(0.0), at(1e6), Some(enough)).unwrap().is_ok());
}

#[test]
fn odd_numbers_and_times() {
    let mut history = History::new(Settings {
        levels: [1, 2, 3].map(|s| Resolution { step: Span::from_secs(s), reach: Span::from_secs(60) }),
        ..settings(1 << 30)
    });
    let p: Arc<str> = "p".into();
    for (second, value) in
        [(0.0, f64::NAN), (1.0, f64::INFINITY), (2.0, 1e300), (1.5, 5.0), (2.0, 6.0), (3.0, -1.0)]
    {
        history.record(at(second), [(&p, [value, value])].into_iter());
    }
    history.record(at(4.0), [(&p, [0.0, 0.0])].into_iter());
    let chart = history.read("p", at(0.0), at(4.0), Some(Span::from_secs(1))).unwrap().unwrap();
    let first: Vec<f64> = chart.points.iter().map(|p| p.unwrap()[0]).collect();
    assert_eq!(first[..2], [0.0, 0.0]);
    assert!(first[2] > 1e11 && first[2].is_finite(), "{first:?}");
    assert!((first[3] + 1.0).abs() < 1e-6);
}

/// What is known of a name, second by second: the first column as a digit, a dot where nothing is.
fn digits(lives: &history::Lives<2>, name: &str, seconds: f64) -> Option<String> {
    let chart = lives.read(name, at(0.0), at(seconds), Some(Span::from_secs(1)))?.unwrap();
    Some(chart.points.iter().map(|p| p.map_or('.', |p| char::from(b'0' + p[0].round() as u8))).collect())
}

#[test]
fn lives_begin_end_and_come_back() {
    let mut lives = history::Lives::new(settings(1 << 30), 10);
    lives.record(at(2.0), "a", [1.0, 0.0]);
    lives.record(at(4.0), "a", [3.0, 0.0]);
    // What it was at its last word holds until its end.
    lives.end(at(7.0), "a");
    lives.end(at(8.0), "a");
    lives.record(at(11.0), "a", [5.0, 0.0]);
    lives.record(at(13.0), "a", [5.0, 0.0]);
    assert_eq!(digits(&lives, "a", 14.0).as_deref(), Some("..11333....55."));
    lives.end(at(13.0), "nobody");
    assert_eq!(digits(&lives, "nobody", 14.0), None);
}

#[test]
fn who_ended_first_makes_room_first_and_the_living_stay() {
    let mut lives = history::Lives::new(settings(1 << 30), 3);
    for name in ["a", "b", "c", "d"] {
        lives.record(at(1.0), name, [1.0, 0.0]);
    }
    let there = |lives: &history::Lives<2>| -> String {
        "abcdef".chars().filter(|c| digits(lives, &c.to_string(), 9.0).is_some()).collect()
    };
    assert_eq!(there(&lives), "abc", "all live: there is no room for d");
    lives.end(at(2.0), "c");
    lives.end(at(3.0), "a");
    // c is back, so a is the first that has ended.
    lives.record(at(4.0), "c", [1.0, 0.0]);
    lives.record(at(5.0), "e", [1.0, 0.0]);
    assert_eq!((there(&lives).as_str(), lives.len()), ("bce", 3));
    // After the reach of the seconds whoever ended is forgotten, wanted or not.
    lives.end(at(6.0), "b");
    lives.end(at(4.0 * 3600.0), "e");
    assert_eq!(there(&lives), "ce");
}

#[test]
fn many_lives_stay_in_their_budget() {
    let budget = 300_000;
    let mut lives = history::Lives::new(settings(budget), 100);
    for second in 0..20_000u64 {
        let name = format!("job-{}", second / 400);
        lives.record(at(second as f64), &name, [(second * 7919 % 1000) as f64, second as f64]);
        if second % 400 == 399 {
            lives.end(at(second as f64 + 0.5), &name);
        }
        assert!(lives.bytes() <= budget + 20_000, "{} at {second}", lives.bytes());
        assert!(lives.len() <= 100);
    }
}
