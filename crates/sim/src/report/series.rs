//! Lines with few enough points to draw: of each stretch of time the smallest and the largest value, so
//! that no peak is lost.

use yson::Value;

/// Points of a line at most.
const POINTS: usize = 2_000;

/// Time and value.
pub(super) type Line = Vec<(f64, f64)>;

/// A line of at most [`POINTS`] points: the first, the last, and of each stretch the extremes in their order.
pub(super) fn thin(line: &Line) -> Line {
    if line.len() <= POINTS {
        return line.clone();
    }
    let stretch = line.len().div_ceil(POINTS / 2 - 1);
    let mut out = vec![line[0]];
    for part in line[1..line.len() - 1].chunks(stretch) {
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (Some(low), Some(high)) = (part.iter().min_by(by_value), part.iter().max_by(by_value)) else {
            continue;
        };
        let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
        out.push(*first);
        if first.0 != second.0 {
            out.push(*second);
        }
    }
    out.extend(line.last());
    out
}

/// Lines over common times, thinned to means: for areas that are stacked.
pub(super) fn means(lines: &[Line]) -> Vec<Line> {
    let stretch = lines.iter().map(Vec::len).max().unwrap_or(0).div_ceil(POINTS / 2).max(1);
    let mean = |part: &[(f64, f64)]| (part[0].0, part.iter().map(|p| p.1).sum::<f64>() / part.len() as f64);
    lines.iter().map(|line| line.chunks(stretch).map(mean).collect()).collect()
}

/// `[[times],[values]]`, with as many digits as can be seen.
pub(super) fn value(line: &Line) -> Value {
    let digits = |x: f64| -> Value {
        let scale = if x.abs() >= 1000.0 { 10.0 } else { 1000.0 };
        ((x * scale).round() / scale).into()
    };
    let times: Vec<Value> = line.iter().map(|p| digits(p.0)).collect();
    let values: Vec<Value> = line.iter().map(|p| digits(p.1)).collect();
    vec![Value::from(times), Value::from(values)].into()
}

/// Amounts that are held for a while, as means over equal stretches of time.
pub(super) struct Held {
    width: f64,
    /// Of stretches that are covered in part.
    parts: Vec<f64>,
    /// Differences from one stretch to the next, of those that are covered whole.
    steps: Vec<f64>,
}

impl Held {
    /// Over `end` seconds.
    pub fn new(end: f64) -> Held {
        let count = POINTS / 2;
        Held {
            width: (end / count as f64).max(1e-3),
            parts: vec![0.0; count + 1],
            steps: vec![0.0; count + 2],
        }
    }

    /// `amount` from a time to another one, seconds.
    pub fn add(&mut self, from: f64, to: f64, amount: f64) {
        let last = self.parts.len() - 1;
        let place = |at: f64| ((at / self.width) as usize).min(last);
        let (a, b) = (place(from), place(to));
        if a == b {
            self.parts[a] += amount * (to - from).max(0.0) / self.width;
            return;
        }
        self.parts[a] += amount * ((a + 1) as f64 * self.width - from) / self.width;
        self.parts[b] += amount * (to - b as f64 * self.width) / self.width;
        self.steps[a + 1] += amount;
        self.steps[b] -= amount;
    }

    /// Means at the middles of the stretches.
    pub fn line(&self) -> Line {
        let mut whole = 0.0;
        let each = self.parts[..self.parts.len() - 1].iter().zip(&self.steps).enumerate();
        each.map(|(i, (part, step))| {
            whole += step;
            ((i as f64 + 0.5) * self.width, whole + part)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_stay() {
        let mut line: Line = (0..100_000).map(|i| (f64::from(i), 1.0)).collect();
        (line[77_777].1, line[5].1) = (9.0, -3.0);
        let thin = thin(&line);
        assert!(thin.len() <= POINTS);
        assert!(thin.contains(&(77_777.0, 9.0)) && thin.contains(&(5.0, -3.0)));
        assert_eq!((thin.first(), thin.last()), (line.first(), line.last()));
        assert!(thin.is_sorted_by(|a, b| a.0 < b.0));
        let few: Line = vec![(0.0, 1.0), (1.0, 2.0)];
        assert_eq!(super::thin(&few), few);
    }

    #[test]
    fn integrals_are_kept() {
        let mut held = Held::new(1000.0);
        held.add(0.0, 1000.0, 2.0);
        held.add(10.25, 10.5, 8.0);
        held.add(333.3, 777.7, 1.5);
        let sum: f64 = held.line().iter().map(|p| p.1 * held.width).sum();
        let want = 2000.0 + 8.0 * 0.25 + 1.5 * 444.4;
        assert!((sum - want).abs() < 1e-6, "{sum} {want}");
    }
}
