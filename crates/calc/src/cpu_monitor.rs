//! `cpu-monitor`: readings of a job's CPU time through the shipped CPU monitor (jobs-and-nodes.md 1).
//!
//! ```text
//! {"name":..., "options":{...}, "cpu_limit":4, "samples":[[seconds, cumulative CPU seconds or null], ...]}
//! {"name":..., "checks":[{"t","usage","smoothed","vote","votes_sum","limit"}, ...], "statistics":{...}}
//! ```
//!
//! Each sample is one check, at so many seconds from the job's start; null says that the counters could
//! not be read. Guarantees can always be written. What does not exist is null: the use without two
//! readings, the filtered use before the first measurement, the vote of a check that measured nothing,
//! the sum of a window that is not full. `statistics` has the public paths, and is empty before the first
//! measurement.

use crate::read::{Node, Object, parse};
use crate::write::{comma, number, put, text};
use crate::{Refusal, options};
use reserve::cpu_monitor::{Check, Monitor, NAMES, Options};

/// A line, read.
#[derive(Clone, PartialEq, Debug)]
struct Case {
    name: String,
    options: Options,
    cpu_limit: f64,
    /// Time and CPU, both in seconds since the start.
    samples: Vec<(f64, Option<f64>)>,
}

/// The longest life of a job, and the most CPU: far beyond both, far below what loses digits.
const LONGEST: f64 = 1e12;

impl Case {
    fn parse(line: &[u8]) -> Result<Case, Refusal> {
        let value = parse(line)?;
        let root = Node::root(&value);
        let case = root.object(&["name", "options", "cpu_limit", "samples"])?;
        let name = case.required("name", "a string")?.text()?.to_owned();
        let options = options::read(&case, &NAMES, Options::read)?;
        const CORES: &str = "a number of cores from 0 to 1e9";
        let cpu_limit = case.required("cpu_limit", CORES)?.number(0.0..=1e9, CORES)?;
        Ok(Case { name, options, cpu_limit, samples: samples(&case)? })
    }
}

fn samples(case: &Object<'_>) -> Result<Vec<(f64, Option<f64>)>, Refusal> {
    const PAIRS: &str = "a list of pairs [seconds, cumulative CPU seconds or null]";
    let list = case.required("samples", PAIRS)?;
    let mut samples: Vec<(f64, Option<f64>)> = Vec::new();
    for sample in list.list()? {
        const PAIR: &str = "a pair [seconds, cumulative CPU seconds or null]";
        let mut pair = sample.list().map_err(|_| sample.expected(PAIR))?;
        let (Some(time), Some(cpu), None) = (pair.next(), pair.next(), pair.next()) else {
            return Err(sample.expected(PAIR));
        };
        let at = time.number(0.0..=LONGEST, "a number of seconds from 0 to 1e12")?;
        if let Some((before, _)) = samples.last()
            && at <= *before
        {
            return Err(time.expected(&format!("a time after that of the sample before, {before}")));
        }
        let cpu = match cpu.value.is_entity() {
            true => None,
            false => Some(cpu.number(0.0..=LONGEST, "a number of CPU seconds from 0 to 1e12, or null")?),
        };
        samples.push((at, cpu));
    }
    Ok(samples)
}

/// Answers one line. The answer is one line too, with its line feed.
pub fn answer(line: &[u8]) -> Result<Vec<u8>, Refusal> {
    let case = Case::parse(line)?;
    let mut monitor = Monitor::new(case.options, case.cpu_limit);
    let mut out = b"{\"name\":".to_vec();
    text(&case.name, &mut out);
    out.extend_from_slice(b",\"checks\":[");
    for (i, (at, cpu)) in case.samples.iter().enumerate() {
        comma(i, &mut out);
        print(*at, &monitor.check_at(*at, *cpu, |_| true), &mut out);
    }
    out.extend_from_slice(b"],\"statistics\":{");
    for (i, (path, value)) in monitor.statistics().iter().flat_map(|s| s.samples()).enumerate() {
        comma(i, &mut out);
        put(&mut out, format_args!("\"{path}\":{value}"));
    }
    out.extend_from_slice(b"}}\n");
    Ok(out)
}

fn print(at: f64, check: &Check, out: &mut Vec<u8>) {
    let whole = |x: Option<i64>| x.map(|x| x as f64);
    let fields = [
        ("t", Some(at)),
        ("usage", check.usage),
        ("smoothed", check.smoothed),
        ("vote", whole(check.vote.map(i64::from))),
        ("votes_sum", whole(check.votes_sum)),
        ("limit", Some(check.limit)),
    ];
    out.push(b'{');
    for (i, (name, value)) in fields.into_iter().enumerate() {
        comma(i, out);
        put(out, format_args!("\"{name}\":"));
        number(value.unwrap_or(f64::NAN), out);
    }
    out.push(b'}');
}
