//! A clock that shows the time of day and never jumps, as arithmetic: the edges read clocks, this says what
//! they show.
//!
//! The time of day is set by people and programs: an hour forward, and every node would look as if it had
//! been silent for an hour; an hour back, and nothing would be due for an hour. What is measured since
//! the host was started only ever grows, at its own pace. So the time of day is taken once, goes on by what
//! was measured, and comes nearer to the host's so slowly that no timeout notices.

use crate::{Span, Time};

/// One part in so many of what has passed is the most that is corrected.
const SLOWNESS: u64 = 1000;
/// What may be corrected at a time, after a long silence. Above the granularity of all timeouts it
/// would be a jump.
const CORRECTION_MAX: u64 = 1_000;

/// See the module page.
#[derive(Clone, Copy, Debug, Default)]
pub struct SteadyClock {
    shown: Option<Shown>,
}

#[derive(Clone, Copy, Debug)]
struct Shown {
    time: Time,
    since_start: Span,
    /// Microseconds that have passed and were not used for a correction.
    credit: u64,
}

impl SteadyClock {
    /// What it shows when the host's time of day is `wall`, and `since_start` has passed since the host was
    /// started (or since anything else that stays the same).
    pub fn show(&mut self, wall: Time, since_start: Span) -> Time {
        let Some(shown) = &mut self.shown else {
            self.shown = Some(Shown { time: wall, since_start, credit: 0 });
            return wall;
        };
        let passed = since_start.0.saturating_sub(shown.since_start.0);
        shown.since_start = Span(shown.since_start.0.max(since_start.0));
        shown.credit = shown.credit.saturating_add(passed).min(SLOWNESS * CORRECTION_MAX);
        let ideal = shown.time.0.saturating_add(passed);
        let allowed = shown.credit / SLOWNESS;
        let difference = wall.0.abs_diff(ideal).min(allowed);
        // Less than has passed, so it does not go back.
        let back = difference.min(passed);
        let correction = if wall.0 >= ideal { difference } else { back };
        shown.credit -= correction * SLOWNESS;
        shown.time =
            Time(if wall.0 >= ideal { ideal.saturating_add(correction) } else { ideal - correction });
        shown.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hours of wall and of what was measured, and how far the clock may be from `expected` seconds.
    fn check(steps: &[(u64, u64, u64)]) {
        let mut clock = SteadyClock::default();
        let mut last = Time::ZERO;
        for (wall, passed, expected) in steps {
            let shown = clock.show(Time::from_secs(*wall), Span::from_secs(*passed));
            assert!(shown >= last, "it goes back at {wall} s");
            assert!(
                shown.0.abs_diff(expected * 1_000_000) <= CORRECTION_MAX * steps.len() as u64,
                "{shown:?}"
            );
            last = shown;
        }
    }

    #[test]
    fn jumps_are_not_followed() {
        check(&[(1_000_000, 50, 1_000_000), (1_000_010, 60, 1_000_010)]);
        check(&[(1_000_000, 50, 1_000_000), (1_003_610, 60, 1_000_010), (1_003_611, 61, 1_000_011)]);
        check(&[
            (1_000_000, 50, 1_000_000),
            (996_410, 60, 1_000_010),
            (996_411, 61, 1_000_011),
            (996_411, 61, 1_000_011),
        ]);
        // Somebody has set the clock to 1970.
        check(&[(1_000_000, 50, 1_000_000), (0, 51, 1_000_001), (1, 52, 1_000_002)]);
    }

    #[test]
    fn a_host_that_slept_has_lost_that_time() {
        check(&[(1_000_000, 50, 1_000_000), (1_030_000, 30_050, 1_030_000)]);
    }

    #[test]
    fn a_clock_that_runs_a_little_differently_is_followed() {
        let mut clock = SteadyClock::default();
        // 50 parts in a million fast, as quartz is; asked a hundred times a second for half an hour.
        let (mut shown, mut wall) = (Time::ZERO, Time::ZERO);
        for step in 0..180_000_u64 {
            wall = Time::from_secs(1_000_000) + Span(step * 10_000 + step / 2);
            shown = clock.show(wall, Span(step * 10_000));
        }
        assert!(shown.0.abs_diff(wall.0) <= 1_000, "{} µs", shown.0.abs_diff(wall.0));
        // Set right by two seconds, it is there after an hour.
        for step in 0..360_000_u64 {
            wall = Time::from_secs(1_001_802) + Span(step * 10_000);
            shown = clock.show(wall, Span(1_800_000_000 + step * 10_000));
        }
        assert!(shown.0.abs_diff(wall.0) <= 1_000, "{} µs", shown.0.abs_diff(wall.0));
    }
}
