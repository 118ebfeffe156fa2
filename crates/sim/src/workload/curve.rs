//! Use of CPU over the work of a job: cores, from one position to the next.

use crate::error::SimError;
use crate::workload::open;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use yson::Value;
use yson::fields::FieldError;

/// See the module page.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// Where a part ends, seconds of work, and the cores in it. The last part goes on for ever.
    parts: Vec<(f64, f64)>,
}

impl Curve {
    /// The same from beginning to end.
    pub fn constant(cores: f64) -> Curve {
        Curve { parts: vec![(f64::INFINITY, cores)] }
    }

    /// `[[ms, cores], ...]`: from that position on.
    pub(super) fn read(path: &str, value: &Value) -> Result<Curve, FieldError> {
        let expected = "pairs [ms, cores], ms from 0 and ascending, cores from 0";
        let wrong = || FieldError::expected(path, expected, value);
        let pair = |v: &Value| match v.as_list()? {
            [ms, cores] => Some((ms.as_f64()? / 1000.0, cores.as_f64()?)),
            _ => None,
        };
        let list = value.as_list().ok_or_else(wrong)?;
        let points: Vec<_> = list.iter().map(pair).collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
        let good = points.first().is_some_and(|p| p.0 == 0.0)
            && points.windows(2).all(|w| w[0].0 < w[1].0)
            && points.iter().all(|p| p.0.is_finite() && p.1.is_finite() && p.1 >= 0.0);
        if !good {
            return Err(wrong());
        }
        let ends = points.iter().skip(1).map(|p| p.0).chain([f64::INFINITY]);
        Ok(Curve { parts: ends.zip(points.iter().map(|p| p.1)).collect() })
    }

    /// Hundredths of a core for each period, with runs: `93 118x3`.
    fn parse(text: &str, period: f64) -> Option<Curve> {
        let mut parts = Vec::new();
        let mut at = 0.0;
        for word in text.split_ascii_whitespace() {
            let (cores, times) = word.split_once('x').unwrap_or((word, "1"));
            at += period * times.parse::<u32>().ok()? as f64;
            let cores = cores.parse::<f64>().ok().filter(|c| c.is_finite() && *c >= 0.0)?;
            parts.push((at, cores / 100.0));
        }
        (!parts.is_empty()).then_some(Curve { parts })
    }

    fn part(&self, position: f64) -> usize {
        // Positions are sums of rounded times: who has reached the end of a part is in the next one.
        self.parts.partition_point(|(end, _)| *end <= position + 2e-6).min(self.parts.len() - 1)
    }

    /// Cores at a position.
    pub fn at(&self, position: f64) -> f64 {
        self.parts[self.part(position)].1
    }

    /// Where the cores change next.
    pub fn next_step(&self, position: f64) -> f64 {
        let part = self.part(position);
        if part + 1 == self.parts.len() { f64::INFINITY } else { self.parts[part].0 }
    }

    /// Mean over so many seconds of work.
    pub fn mean(&self, seconds: f64) -> f64 {
        let (mut sum, mut from) = (0.0, 0.0);
        for (number, (end, cores)) in self.parts.iter().enumerate() {
            let end = if number + 1 == self.parts.len() { seconds } else { end.min(seconds) };
            sum += (end - from).max(0.0) * cores;
            from = end.max(from);
        }
        if seconds > 0.0 { sum / seconds } else { self.at(0.0) }
    }
}

/// Measured curves of a file, by the names of their jobs, in the order of the file.
#[derive(Debug)]
pub struct Curves {
    list: Vec<Arc<Curve>>,
    by_key: BTreeMap<String, usize>,
}

impl Curves {
    /// Reads a table with the columns `job_id`, `period_s` and `curve`.
    pub(super) fn load(path: &Path) -> Result<Curves, SimError> {
        let wrong = |line: u64, what: &str| SimError::file(path, format!("line {line}: {what}"));
        let mut table = csv::Reader::from_reader(open(path)?);
        let header = table.headers().map_err(|e| wrong(1, &e.to_string()))?.clone();
        let place = |name: &str| {
            let found = header.iter().position(|h| h == name);
            found.ok_or_else(|| wrong(1, &format!("expected a column {name:?}, found {header:?}")))
        };
        let (id, period, curve) = (place("job_id")?, place("period_s")?, place("curve")?);
        let mut curves = Curves { list: Vec::new(), by_key: BTreeMap::new() };
        for record in table.into_records() {
            let line = curves.list.len() as u64 + 2;
            let record = record.map_err(|e| wrong(line, &e.to_string()))?;
            let seconds = record.get(period).and_then(|p| p.parse::<f64>().ok()).filter(|p| *p > 0.0);
            let read = seconds.and_then(|seconds| Curve::parse(record.get(curve)?, seconds));
            let read =
                read.ok_or_else(|| wrong(line, "expected a period above 0, and numbers like 93 118x3"))?;
            curves.by_key.insert(record.get(id).unwrap_or_default().to_owned(), curves.list.len());
            curves.list.push(Arc::new(read));
        }
        Ok(curves)
    }

    /// Those of a key: one, or with `cycle` all of them, job by job.
    pub(super) fn of(&self, key: &str) -> Option<Vec<Arc<Curve>>> {
        match key {
            "cycle" => Some(self.list.clone()),
            key => self.by_key.get(key).map(|place| vec![self.list[*place].clone()]),
        }
    }
}

/// The mean of a measured curve that is written as in such a file.
pub(crate) fn mean_of(text: &str, period: f64, seconds: f64) -> Option<f64> {
    Curve::parse(text, period).map(|curve| curve.mean(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_curve() {
        let curve = Curve::parse("100 300x2 0", 30.0).expect("a curve");
        let at: Vec<f64> = [0.0, 29.9, 30.0, 89.0, 90.0, 500.0].map(|p| curve.at(p)).to_vec();
        assert_eq!(at, [1.0, 1.0, 3.0, 3.0, 0.0, 0.0]);
        let next: Vec<f64> = [0.0, 30.0, 95.0].map(|p| curve.next_step(p)).to_vec();
        assert_eq!(next, [30.0, 90.0, f64::INFINITY]);
        assert_eq!(curve.mean(120.0), (30.0 + 180.0) / 120.0);
        assert_eq!(curve.mean(60.0), (30.0 + 90.0) / 60.0);
        assert_eq!(Curve::parse("1 x", 30.0), None);
    }
}
