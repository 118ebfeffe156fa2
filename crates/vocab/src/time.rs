//! Instants and durations as data: the core never asks a clock, it is told.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// An instant: microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

/// A duration in microseconds, never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

impl Time {
    /// The epoch; also "long ago".
    pub const ZERO: Time = Time(0);
    /// Later than everything.
    pub const MAX: Time = Time(u64::MAX);

    /// From microseconds since the epoch.
    pub const fn from_micros(us: u64) -> Time {
        Time(us)
    }
    /// From seconds since the epoch.
    pub const fn from_secs(s: u64) -> Time {
        Time(s * 1_000_000)
    }
    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }
    /// Time since `earlier`; zero if `earlier` is in fact later.
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
    /// Year, month, day of the proleptic Gregorian calendar and microseconds in the day.
    fn civil(self) -> (u64, u64, u64, u64) {
        let days = self.0 / 86_400_000_000;
        // Howard Hinnant's days-to-civil for the years after 1970.
        let z = days + 719_468;
        let era = z / 146_097;
        let doe = z - era * 146_097;
        let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
        let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        let mp = (5 * doy + 2) / 153;
        let d = doy - (153 * mp + 2) / 5 + 1;
        let m = if mp < 10 { mp + 3 } else { mp - 9 };
        let y = yoe + era * 400 + u64::from(m <= 2);
        (y, m, d, self.0 % 86_400_000_000)
    }

    /// Parses `2026-01-02T03:04:05.678901Z`; fraction and `Z` may be missing.
    pub fn parse(text: &str) -> Option<Time> {
        let text = text.strip_suffix('Z').unwrap_or(text);
        let (date, clock) = text.split_once('T')?;
        let mut d = date.split('-').map(|p| p.parse::<u64>().ok());
        let (y, m, day) = (d.next()??, d.next()??, d.next()??);
        if d.next().is_some()
            || !(1970..=9999).contains(&y)
            || !(1..=12).contains(&m)
            || !(1..=31).contains(&day)
        {
            return None;
        }
        let (hms, fraction) = clock.split_once('.').unwrap_or((clock, ""));
        let mut c = hms.split(':').map(|p| p.parse::<u64>().ok());
        let (h, min, s) = (c.next()??, c.next()??, c.next()??);
        if c.next().is_some() || h > 23 || min > 59 || s > 60 || fraction.len() > 9 {
            return None;
        }
        let mut micros = 0;
        for i in 0..6 {
            let digit = match fraction.as_bytes().get(i) {
                Some(b) if b.is_ascii_digit() => u64::from(b - b'0'),
                Some(_) => return None,
                None => 0,
            };
            micros = micros * 10 + digit;
        }
        let (yy, mp) = if m <= 2 { (y - 1, m + 9) } else { (y, m - 3) };
        let era = yy / 400;
        let yoe = yy - era * 400;
        let doy = (153 * mp + 2) / 5 + day - 1;
        let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
        let days = (era * 146_097 + doe).checked_sub(719_468)?;
        Some(Time((days * 86_400 + h * 3_600 + min * 60 + s) * 1_000_000 + micros))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// From microseconds.
    pub const fn from_micros(us: u64) -> Span {
        Span(us)
    }
    /// From milliseconds.
    pub const fn from_millis(ms: u64) -> Span {
        Span(ms * 1_000)
    }
    /// From seconds.
    pub const fn from_secs(s: u64) -> Span {
        Span(s * 1_000_000)
    }
    /// Microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }
    /// Whole milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }
    /// Seconds with fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Parses `"500ms"`, `"10s"`, `"5m"`, `"1h"`, `"2d"`; a bare number is milliseconds
    /// (jobs-and-nodes.md 0).
    pub fn parse(text: &str) -> Option<Span> {
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text[..split].parse().ok()?;
        let unit_us = match &text[split..] {
            "" | "ms" => 1_000,
            "us" => 1,
            "s" => 1_000_000,
            "m" => 60_000_000,
            "h" => 3_600_000_000,
            "d" => 86_400_000_000,
            _ => return None,
        };
        number.checked_mul(unit_us).map(Span)
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}
impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

/// ISO form with microseconds, UTC: `2026-01-02T03:04:05.678901Z` (http-api.md 6.3).
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (y, m, d, us) = self.civil();
        let s = us / 1_000_000;
        write!(
            f,
            "{y:04}-{m:02}-{d:02}T{:02}:{:02}:{:02}.{:06}Z",
            s / 3_600,
            s / 60 % 60,
            s % 60,
            us % 1_000_000
        )
    }
}
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            us if us % 1_000_000 == 0 => write!(f, "{}s", us / 1_000_000),
            us if us % 1_000 == 0 => write!(f, "{}ms", us / 1_000),
            us => write!(f, "{us}us"),
        }
    }
}
impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl From<Time> for yson::Value {
    fn from(t: Time) -> yson::Value {
        t.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_form_round_trips() {
        for us in
            [0, 1, 951_782_399_999_999, 951_782_400_000_000, 1_767_323_045_678_901, 4_102_444_800_000_000]
        {
            let t = Time(us);
            assert_eq!(Time::parse(&t.to_string()), Some(t), "{t}");
        }
        assert_eq!(Time(951_782_400_000_000).to_string(), "2000-02-29T00:00:00.000000Z");
        assert_eq!(Time::parse("2026-13-01T00:00:00Z"), None);
    }

    #[test]
    fn spans_parse_with_units() {
        assert_eq!(Span::parse("500ms"), Some(Span::from_millis(500)));
        assert_eq!(Span::parse("1500"), Some(Span::from_millis(1500)));
        assert_eq!(Span::parse("1h"), Some(Span::from_secs(3600)));
        assert_eq!(Span::parse("x"), None);
        assert_eq!(Span::parse("99999999999999999h"), None);
    }
}
