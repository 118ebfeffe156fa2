//! `memory-digest`: ends of jobs through the shipped memory digest of user jobs (jobs-and-nodes.md 2).
//!
//! ```text
//! {"name":..., "options":{...}, "memory_limit":bytes, "tmpfs_size":bytes,
//!  "jobs":[{"outcome":"completed", "max_memory":bytes}, ...]}
//! {"name":..., "reserves":[bytes, ...], "factors":[number, ...], "retry_reserves":[bytes or null, ...]}
//! ```
//!
//! `reserves` has one more element than `jobs`: what the first job gets, and after each of the jobs what
//! the next one gets; `factors` are the parts of the limit that these were made with. Each job is a
//! unit of work of its own. A job that was aborted for its memory is run again with more than the others
//! get: `retry_reserves` says how much, for every job that has to be run again. Jobs with the same
//! `cookie` are runs of one unit, and then it is the later run that gets that much.
//!
//! Options are those of the user script and of the controllers, under their names there. One multiplier
//! is taken for the other: in a case nobody can be told apart from the cluster's administrator.

use crate::read::{Node, Object, parse};
use crate::write::{comma, number, put, text};
use crate::{Refusal, options};
use reserve::memory_digest::{
    Bases, ClusterOptions, Ended, JobProxyOptions, Peaks, Reserves, ScriptOptions, Settings,
};
use vocab::JobId;
use yson::fields::{FieldError, Fields};

/// A line, read.
struct Case {
    name: String,
    reserves: Reserves,
    jobs: Vec<Job>,
}

struct Job {
    outcome: Outcome,
    max_memory: Option<i64>,
    cookie: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Completed,
    ResourceOverdraft,
    Failed,
    Aborted,
}

const OUTCOMES: [(&str, Outcome); 4] = [
    ("completed", Outcome::Completed),
    ("resource_overdraft", Outcome::ResourceOverdraft),
    ("failed", Outcome::Failed),
    ("aborted", Outcome::Aborted),
];

/// Largest memory limit of a user script (jobs-and-nodes.md 8.2).
const LARGEST_LIMIT: i64 = 16 << 40;
/// Cookies from here on are those of jobs that name none.
const UNNAMED: u32 = 1 << 31;

impl Case {
    fn parse(line: &[u8]) -> Result<Case, Refusal> {
        let value = parse(line)?;
        let root = Node::root(&value);
        let case = root.object(&["name", "options", "memory_limit", "tmpfs_size", "jobs"])?;
        let name = case.required("name", "a string")?.text()?.to_owned();
        let (cluster, script) = options::read(&case, &known(), read_options)?;
        let allowed = format!("a whole number of bytes from 1 to {LARGEST_LIMIT}");
        let limit = bytes(&case.required("memory_limit", &allowed)?, 1..=LARGEST_LIMIT, &allowed)?;
        let allowed = format!("a whole number of bytes from 0 to the memory limit, which is {limit}");
        let tmpfs_size = case.optional("tmpfs_size", |n| bytes(&n, 0..=limit, &allowed))?.unwrap_or(0);
        let proxy = JobProxyOptions::default();
        // Nothing is known of a job proxy here, so none is reserved for.
        let bases = Bases { footprint: 0, io_estimate: 0, memory_limit: limit, tmpfs_size };
        let settings = Settings::new(bases, &cluster, &script, &proxy, (&proxy, None));
        Ok(Case { name, reserves: Reserves::new(settings), jobs: jobs(&case)? })
    }
}

fn known() -> Vec<&'static str> {
    let mut known: Vec<&str> = ScriptOptions::NAMES.to_vec();
    known.extend(ClusterOptions::NAMES.iter().filter(|name| !ScriptOptions::NAMES.contains(name)));
    known
}

fn read_options(f: &mut Fields<'_>) -> Result<(ClusterOptions, ScriptOptions), FieldError> {
    let script = ScriptOptions::read(f)?;
    let cluster = ClusterOptions::read(f)?;
    Ok((ClusterOptions { use_resource_overdraft_memory_multiplier_from_spec: true, ..cluster }, script))
}

fn jobs(case: &Object<'_>) -> Result<Vec<Job>, Refusal> {
    let list = case.required("jobs", "a list of objects")?;
    let mut jobs = Vec::new();
    for (job, number) in list.list()?.zip(UNNAMED..) {
        let fields = job.object(&["outcome", "max_memory", "cookie"])?;
        let names = "\"completed\" or \"resource_overdraft\" or \"failed\" or \"aborted\"";
        let outcome = fields.required("outcome", names)?.choice(&OUTCOMES)?;
        let allowed = format!("a whole number of bytes from 0 to {}", i64::MAX);
        let max_memory = match outcome {
            // Nothing is learned from these, measured or not.
            Outcome::Failed | Outcome::Aborted => fields.get("max_memory"),
            _ => Some(fields.required("max_memory", &allowed)?),
        };
        let max_memory = max_memory.map(|n| bytes(&n, 0..=i64::MAX, &allowed)).transpose()?;
        let allowed = format!("a whole number from 0 to {}", UNNAMED - 1);
        let cookie = fields.optional("cookie", |n| bytes(&n, 0..=i64::from(UNNAMED) - 1, &allowed))?;
        jobs.push(Job { outcome, max_memory, cookie: cookie.map_or(number, |c| c as u32) });
    }
    Ok(jobs)
}

/// A whole number, which may be written with a point.
fn bytes(node: &Node<'_>, range: std::ops::RangeInclusive<i64>, allowed: &str) -> Result<i64, Refusal> {
    // Beyond 2^53 a double may have lost the units that were meant.
    let exact = |x: &f64| x.fract() == 0.0 && x.abs() <= 9_007_199_254_740_992.0;
    let whole = node.value.as_i64().or_else(|| node.value.as_f64().filter(exact).map(|x| x as i64));
    whole.filter(|x| range.contains(x)).ok_or_else(|| node.expected(allowed))
}

/// Answers one line. The answer is one line too, with its line feed.
pub fn answer(line: &[u8]) -> Result<Vec<u8>, Refusal> {
    let Case { name, mut reserves, jobs } = Case::parse(line)?;
    let mut given = Vec::new();
    let mut retries = Vec::new();
    for job in &jobs {
        let factors = reserves.factors(job.cookie);
        given.push(factors);
        let peaks = Peaks { user_job: job.max_memory, job_proxy: None };
        match job.outcome {
            Outcome::Completed => {
                reserves.completed(peaks);
                reserves.unit_done(job.cookie);
            }
            Outcome::ResourceOverdraft => {
                let reserve = reserves.request(factors);
                let ended = Ended { job_id: JobId::default(), cookie: job.cookie, factors, reserve, peaks };
                reserves.overdrafted(&ended);
            }
            Outcome::Failed | Outcome::Aborted => {}
        }
        let retry = reserves.request(reserves.factors(job.cookie)).user_job_reserve;
        retries.push((job.outcome != Outcome::Completed).then_some(retry));
    }
    given.push(reserves.current_factors());

    let mut out = b"{\"name\":".to_vec();
    text(&name, &mut out);
    list("reserves", &given, &mut out, |factors, out| {
        put(out, format_args!("{}", reserves.request(*factors).user_job_reserve));
    });
    list("factors", &given, &mut out, |factors, out| number(factors.user_job, out));
    list("retry_reserves", &retries, &mut out, |retry, out| match retry {
        Some(bytes) => put(out, format_args!("{bytes}")),
        None => out.extend_from_slice(b"null"),
    });
    out.extend_from_slice(b"}\n");
    Ok(out)
}

fn list<T>(name: &str, items: &[T], out: &mut Vec<u8>, print: impl Fn(&T, &mut Vec<u8>)) {
    put(out, format_args!(",\"{name}\":["));
    for (i, item) in items.iter().enumerate() {
        comma(i, out);
        print(item, out);
    }
    out.push(b']');
}
