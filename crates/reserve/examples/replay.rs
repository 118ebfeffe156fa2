//! What would have been saved on real workloads: recorded jobs are run through the CPU monitor and the memory
//! digests, with the default options. `cargo run --release -p millpond-reserve --example replay [DIR]`, where
//! DIR holds the workload traces (`../shared/traces` if nothing is said).
//!
//! The model is the simplest one. Memory: every node has enough, so nobody is aborted; a job reserves what the
//! digest of its kind says when it starts, and teaches it when it ends. A job that peaks above its reserve could
//! have been aborted: its whole run counts as the most that could have been lost. CPU: every job gets the cores
//! that it wants at once, whatever its guarantee is; what it wanted above the guarantee was at risk.

// It reads files; the crate does not.
#![allow(clippy::disallowed_methods)]

use flate2::read::GzDecoder;
use reserve::cpu_monitor::{Fate, Monitor, Options};
use reserve::memory_digest::{
    Bases, ClusterOptions, JobProxyOptions, Peaks, Reserves, ScriptOptions, Settings,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces");
    let traces = given.unwrap_or_else(|| PathBuf::from(shared));

    println!(
        "| memory | jobs | reserved / limits | peaks / limits | above their reserve | of their work at most lost |"
    );
    println!("|---|---|---|---|---|---|");
    for name in ["rnaseq", "chipseq", "mag"] {
        let jobs = nfcore(&traces.join(format!("nfcore-tasks/{name}.csv.gz")))?;
        memory(&format!("nf-core {name}, a digest per task type"), jobs);
    }
    let jobs = metacentrum(&traces.join("metacentrum-2009/metacentrum-2009.swf.gz"))?;
    memory("metacentrum-2009, a digest per user and queue", jobs);

    println!();
    println!(
        "| CPU, surf-lisa-2022 | core-hours ordered | used | given back | of the idle ones | wanted above the guarantee | changes per job-hour |"
    );
    println!("|---|---|---|---|---|---|---|");
    let curves = traces.join("surf-lisa-2022/cpu_curves.csv.gz");
    cpu("checks every second", &curves, 1)?;
    cpu("checks every 30 s", &curves, 30)
}

fn lines(path: &Path) -> Result<impl Iterator<Item = std::io::Result<String>>> {
    let file = File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(BufReader::new(GzDecoder::new(file)).lines())
}

// --- memory

struct Job {
    /// Jobs of one kind share a digest.
    kind: String,
    start: f64,
    run: f64,
    limit: f64,
    peak: f64,
}

/// The tables of the nf-core workflows, by the names of their columns.
fn nfcore(path: &Path) -> Result<Vec<Job>> {
    let mut lines = lines(path)?;
    let header = lines.next().ok_or("an empty table")??;
    let columns: Vec<&str> = header.split(',').collect();
    let place = |name: &str| columns.iter().position(|c| *c == name).ok_or(format!("no column {name}"));
    let (task, submit, wait) = (place("task")?, place("submit_s")?, place("wait_s")?);
    let (run, limit, peak) = (place("run_s")?, place("mem_req_mib")?, place("mem_used_mib")?);
    let mut jobs = Vec::new();
    for line in lines {
        let line = line?;
        let fields: Vec<&str> = line.split(',').collect();
        let number = |place: usize| fields.get(place).and_then(|f| f.parse::<f64>().ok());
        // Without both there is nothing to compare.
        if let (Some(limit), Some(peak), Some(run)) = (number(limit), number(peak), number(run)) {
            let start = number(submit).unwrap_or(0.0) + number(wait).unwrap_or(0.0);
            let kind = fields.get(task).copied().unwrap_or_default().to_owned();
            jobs.push(Job { kind, start, run, limit: limit * 1048576.0, peak: peak * 1048576.0 });
        }
    }
    Ok(jobs)
}

/// A log without limits: those of careful users are made up, the next power of two above 1.5 times the
/// 99th percentile of what jobs of the kind used.
fn metacentrum(path: &Path) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for line in lines(path)? {
        let line = line?;
        let fields: Vec<f64> = line.split_ascii_whitespace().map_while(|f| f.parse().ok()).collect();
        // Submission, wait, run time, kilobytes per processor; user 12, queue 15. Each processor's part is
        // taken for a job of its own.
        let [_, submit, wait, run, _, _, kilobytes, _, _, _, _, user, _, _, queue, ..] = fields[..] else {
            continue;
        };
        let peak = kilobytes * 1024.0;
        if peak > 0.0 && run > 0.0 {
            let kind = format!("{user} {queue}");
            jobs.push(Job { kind, start: submit + wait.max(0.0), run, limit: 0.0, peak });
        }
    }
    let mut peaks: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for job in &jobs {
        peaks.entry(job.kind.clone()).or_default().push(job.peak);
    }
    for job in &mut jobs {
        let of_kind = peaks.get_mut(&job.kind).ok_or("a kind without jobs")?;
        if !of_kind.is_sorted() {
            of_kind.sort_by(f64::total_cmp);
        }
        let rank = (0.99 * of_kind.len() as f64).ceil() as usize;
        job.limit = (1.5 * of_kind[rank.saturating_sub(1)]).log2().ceil().exp2();
    }
    Ok(jobs)
}

fn memory(title: &str, jobs: Vec<Job>) {
    // Starts and ends in order; at one instant ends come first, since what they teach is known then.
    let mut events: Vec<(f64, bool, usize)> = Vec::new();
    for (i, job) in jobs.iter().enumerate() {
        events.push((job.start, true, i));
        events.push((job.start + job.run, false, i));
    }
    events.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let mut kinds: BTreeMap<(&str, u64), Reserves> = BTreeMap::new();
    let (mut limits, mut reserved, mut peaks) = (0.0, 0.0, 0.0);
    let (mut above, mut work, mut at_risk) = (0_usize, 0.0, 0.0);
    for (_, starts, i) in events {
        let job = &jobs[i];
        // A digest learns parts of a limit.
        let reserves = kinds.entry((&job.kind, job.limit as u64)).or_insert_with(|| reserves_of(job.limit));
        if starts {
            let reserve = reserves.request(reserves.current_factors()).user_job_reserve as f64;
            limits += job.limit * job.run;
            reserved += reserve * job.run;
            peaks += job.peak * job.run;
            work += job.run;
            if job.peak > reserve {
                above += 1;
                at_risk += job.run;
            }
        } else {
            reserves.completed(Peaks { user_job: Some(job.peak as i64), job_proxy: None });
        }
    }
    println!(
        "| {title} | {} | {:.1} % | {:.1} % | {above} ({:.1} %) | {:.1} % |",
        jobs.len(),
        100.0 * reserved / limits,
        100.0 * peaks / limits,
        100.0 * above as f64 / jobs.len() as f64,
        100.0 * at_risk / work
    );
}

fn reserves_of(limit: f64) -> Reserves {
    let bases = Bases { footprint: 0, io_estimate: 0, memory_limit: (limit as i64).max(1), tmpfs_size: 0 };
    let proxy = JobProxyOptions::default();
    let (cluster, script) = (ClusterOptions::default(), ScriptOptions::default());
    Reserves::new(Settings::new(bases, &cluster, &script, &proxy, (&proxy, None)))
}

// --- CPU

fn cpu(title: &str, path: &Path, period: u32) -> Result<()> {
    let options = Options { enable_cpu_reclaim: true, ..Options::default() };
    let (mut ordered, mut used, mut given_back, mut at_risk) = (0.0, 0.0, 0.0, 0.0);
    let (mut changes, mut hours) = (0_u64, 0.0);
    for line in lines(path)?.skip(1) {
        let line = line?;
        let fields: Vec<&str> = line.split(',').collect();
        let [_, _, hard, sample, _, curve] = fields[..] else {
            return Err(format!("a strange row: {line}").into());
        };
        let (hard, sample): (f64, u32) = (hard.parse()?, sample.parse()?);
        let mut monitor = Monitor::new(options.clone(), hard);
        let (mut at, mut total) = (0_u32, 0.0);
        for run in curve.split_ascii_whitespace() {
            let (value, count) = run.split_once('x').unwrap_or((run, "1"));
            let (wanted, count) = (value.parse::<f64>()? / 100.0, count.parse::<u32>()?);
            for _ in 0..count * sample / period {
                // What is in force while the time goes by; the check comes at its end.
                let limit = monitor.limit();
                let seconds = f64::from(period);
                at += period;
                total += wanted * seconds;
                given_back += (hard - limit) * seconds;
                at_risk += (wanted - limit).max(0.0) * seconds;
                let check = monitor.check_at(f64::from(at), Some(total), |_| true);
                changes += u64::from(check.change.is_some_and(|c| c.fate == Fate::Applied));
            }
        }
        ordered += hard * f64::from(at);
        used += total;
        hours += f64::from(at) / 3600.0;
    }
    let core_hours = |core_seconds: f64| core_seconds / 3600.0;
    println!(
        "| {title} | {:.0} | {:.0} | {:.0} | {:.1} % | {:.0} | {:.1} |",
        core_hours(ordered),
        core_hours(used),
        core_hours(given_back),
        100.0 * given_back / (ordered - used),
        core_hours(at_risk),
        changes as f64 / hours
    );
    Ok(())
}
