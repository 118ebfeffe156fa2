//! Decaying average of usage, from which weights may be inferred (fair-share.md 5.4).

use vocab::{Span, Time};

/// Historic usage of one child of a pool with `infer_children_weights_from_historic_usage`.
///
/// The owner of the tree keeps one for each such child, feeds it before every update and passes
/// [`HistoricUsage::average`] as [`Element::historic_usage`](crate::Element::historic_usage).
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct HistoricUsage {
    numerator: f64,
    denominator: f64,
    updated: Option<Time>,
}

impl HistoricUsage {
    /// Takes in the largest component of the usage share at `now`. An older `now` is ignored.
    pub fn observe(&mut self, now: Time, dominant_usage_share: f64, half_life: Span) {
        let previous = self.updated;
        if previous.is_some_and(|at| now < at) {
            return;
        }
        self.updated = Some(now);
        match previous {
            Some(at) if half_life > Span::ZERO => {
                let q = (-(now.since(at).as_secs_f64() / half_life.as_secs_f64())).exp2();
                self.denominator = 1.0 + self.denominator * q;
                self.numerator = dominant_usage_share + self.numerator * q;
            }
            _ => {
                self.denominator = 1.0;
                self.numerator = dominant_usage_share;
            }
        }
    }

    /// The average; 0 before the first observation.
    pub fn average(&self) -> f64 {
        if self.denominator == 0.0 { 0.0 } else { self.numerator / self.denominator }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_past_is_forgotten_in_a_half_life() {
        let mut usage = HistoricUsage::default();
        assert_eq!(usage.average(), 0.0);
        usage.observe(Time::from_secs(100), 0.9, Span::from_secs(10));
        assert_eq!(usage.average(), 0.9);
        usage.observe(Time::from_secs(110), 0.0, Span::from_secs(10));
        assert!((usage.average() - 0.45 / 1.5).abs() < 1e-15);
        let before = usage;
        usage.observe(Time::from_secs(105), 1.0, Span::from_secs(10));
        assert_eq!(usage, before, "time does not run backwards");
        usage.observe(Time::from_secs(111), 0.25, Span::ZERO);
        assert_eq!(usage.average(), 0.25, "without a half-life only the present counts");
    }
}
