//! `millpond sim ...`: files in, files out; the crate `sim` computes.

use super::snapshot;
use crate::args::{
    Common, Moment, SimCheckArgs, SimCommand, SimExplainArgs, SimFaultsArgs, SimFormat, SimImportArgs,
    SimLog, SimReportArgs, SimRunArgs, SimScenarioArgs, SimSharesArgs, SimWhatIfArgs,
};
use crate::error::{CliError, exit};
use crate::interrupt::Interrupt;
use crate::output::{Look, Output, Screen};
use crate::views::{ComparisonTable, OperationExplanation, ShareTable, VariantTable};
use ::sim::import::{Kind, Mapping};
use ::sim::live::Written;
use ::sim::output::Format;
use ::sim::what_if::{Plan, Variant};
use ::sim::{Meter, Options, Progress, Scenario, SimError, Stopped};
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};
use yson::{JsonFormat, Map, Value};

pub(super) fn run(common: &Common, screen: Screen, command: SimCommand) -> Result<(), CliError> {
    match command {
        SimCommand::Run(args) => simulate(screen, &args),
        SimCommand::Check(args) => check(screen, &args),
        SimCommand::WhatIf(args) => what_if(common, screen, &args),
        SimCommand::Snapshot(args) => {
            let written = snapshot::write(&super::client(common)?, args.assumed, &args.out)?;
            tell_snapshot(screen, &written, &args.out);
            screen.show(&Report(snapshot::to_map(&written)))
        }
        SimCommand::Faults(args) => faults(screen, &args),
        SimCommand::Import(args) => import(screen, &args),
        SimCommand::Report(args) => report(screen, &args),
        SimCommand::Explain(args) => explain(screen, &args),
        SimCommand::Shares(args) => shares(screen, &args),
        SimCommand::Validate(args) => {
            let found = ::sim::validate::validate(&load(&args, None)?).map_err(told)?;
            screen.show(&Report(found))
        }
    }
}

fn told(error: SimError) -> CliError {
    CliError::failed(error.to_string())
}

fn changes_of(args: &SimScenarioArgs) -> Result<Vec<(String, Value)>, CliError> {
    let mut changes = Vec::new();
    for text in &args.set {
        let usage = |why: &str| CliError::usage(format!("--set {text}: {why}"));
        let (pointer, value) = text.split_once('=').ok_or_else(|| usage("expected POINTER=VALUE"))?;
        let value = yson::json::from_json(value.as_bytes(), &JsonFormat::utf8())
            .map_err(|e| usage(&format!("the value is no JSON: {e}")))?;
        changes.push((pointer.to_owned(), value));
    }
    Ok(changes)
}

fn load(args: &SimScenarioArgs, seed: Option<u64>) -> Result<Scenario, CliError> {
    let mut changes = changes_of(args)?;
    changes.extend(seed.map(|seed| ("/seed".to_owned(), Value::from(seed))));
    Scenario::load(&args.scenario, &changes).map_err(told)
}

fn simulate(screen: Screen, args: &SimRunArgs) -> Result<(), CliError> {
    let scenario = load(&args.scenario, args.seed)?;
    let options = Options {
        format: match args.format {
            SimFormat::Csv => Format::Csv,
            SimFormat::Jsonl => Format::Jsonl,
            SimFormat::Parquet => Format::Parquet,
        },
        until: args.until.map(|moment| moment.since(scenario.start)),
        shortcuts: !args.no_shortcuts,
        check_invariants: args.check_invariants,
        threads: args.threads.map_or_else(cores, |threads| threads as usize),
        meter: Some(METER),
        faults: None,
        on_event: None,
    };
    let interrupt =
        Interrupt::install().map_err(|e| CliError::failed(format!("cannot wait for signals: {e}")))?;
    let begun = Instant::now();
    let mut told_at = begun;
    let mut watch = |progress: &Progress| {
        if told_at.elapsed() >= Duration::from_secs(1) {
            told_at = Instant::now();
            screen.tell(&line(progress, begun.elapsed()));
        }
        interrupt.count() == 0
    };
    let ran = ::sim::run(&scenario, &args.out, options, &mut watch, &mut |_| Map::new()).map_err(told)?;
    screen.tell(&line(&ran.progress, begun.elapsed()));
    ::sim::report::report(std::slice::from_ref(&args.out), None, &args.out.join("report.html"))
        .map_err(told)?;
    for violation in ran.violations.iter().take(20) {
        screen.complain(&CliError::failed(format!("invariant violated at {violation}")));
    }
    if !ran.violations.is_empty() {
        return Err(CliError::failed(format!("{} invariants were violated", ran.violations.len())));
    }
    if ran.interrupted {
        return Err(CliError::Silent(exit::INTERRUPTED));
    }
    screen.show(&Report(ran.summary))
}

/// One line of progress.
fn line(progress: &Progress, wall: Duration) -> String {
    let hours = |span: vocab::Span| span.as_secs_f64() / 3600.0;
    let speed = progress.elapsed.as_secs_f64() / wall.as_secs_f64().max(1e-3);
    format!(
        "{:.2} of {:.2} h, {speed:.0} x real time, {} jobs run, {} operations",
        hours(progress.elapsed),
        hours(progress.duration),
        progress.running_jobs,
        progress.operations,
    )
}

/// Nanoseconds since the first call.
fn nanoseconds() -> u64 {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Most memory that this process has had.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

const METER: Meter = Meter { now: nanoseconds, peak_memory };

/// Threads, if nothing is said.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn signals() -> Result<Interrupt, CliError> {
    Interrupt::install().map_err(|e| CliError::failed(format!("cannot wait for signals: {e}")))
}

/// Rows that people see; the files have all.
const SHOWN: usize = 40;

fn tell_snapshot(screen: Screen, written: &Written, folder: &Path) {
    screen.tell(&format!(
        "{} nodes, {} operations with {} running and {} waiting jobs are in {}",
        written.nodes,
        written.operations,
        written.running_jobs,
        written.pending_jobs,
        folder.display()
    ));
    if written.guessed_tasks > 0 {
        screen.tell(&format!(
            "of {} tasks no job has completed: how long theirs run is assumed (see --job-duration)",
            written.guessed_tasks
        ));
    }
}

/// The scenario of a comparison: a file, or what a live cluster is now.
fn start_of(common: &Common, screen: Screen, args: &SimWhatIfArgs) -> Result<SimScenarioArgs, CliError> {
    let set = args.set.clone();
    let Some(address) = &args.from else {
        return Ok(SimScenarioArgs { scenario: args.scenario.clone().unwrap_or_default(), set });
    };
    let folder = args.out.join("snapshot");
    let client = super::client(&Common { proxy: Some(address.clone()), ..common.clone() })?;
    let written = snapshot::write(&client, args.assumed, &folder)?;
    tell_snapshot(screen, &written, &folder);
    Ok(SimScenarioArgs { scenario: folder.join("scenario.json"), set })
}

fn what_if(common: &Common, screen: Screen, args: &SimWhatIfArgs) -> Result<(), CliError> {
    let mut variants = Vec::new();
    for file in &args.variant {
        variants.push(Variant::load(file).map_err(told)?);
    }
    let start = start_of(common, screen, args)?;
    let interrupt = signals()?;
    let (begun, told_at) = (Instant::now(), Mutex::new(Instant::now()));
    let watch = |name: &str, progress: &Progress| {
        // Whoever does not get it is not needed: somebody else is telling.
        if let Ok(mut told_at) = told_at.try_lock()
            && told_at.elapsed() >= Duration::from_secs(1)
        {
            *told_at = Instant::now();
            screen.tell(&format!("{name}: {}", line(progress, begun.elapsed())));
        }
        interrupt.count() == 0
    };
    let until = match args.until {
        Some(moment @ Moment::Date(_)) => Some(moment.since(load(&start, None)?.start)),
        Some(Moment::After(span)) => Some(span),
        None => None,
    };
    let options = Options { until, meter: Some(METER), ..Options::default() };
    let changes = changes_of(&start)?;
    let threads = args.threads.map_or_else(cores, |threads| threads as usize);
    let plan = Plan { seeds: args.seeds, threads };
    let mut found =
        ::sim::what_if::what_if(&start.scenario, &changes, &variants, &args.out, options, plan, &watch)
            .map_err(told)?;
    if found.interrupted {
        return Err(CliError::Silent(exit::INTERRUPTED));
    }
    let runs: Vec<_> = found.names.iter().map(|name| args.out.join(name)).collect();
    ::sim::report::report(&runs, None, &args.out.join("report.html")).map_err(told)?;
    // How often the scheduler tried what moves with everything, and is of use to nobody here.
    found.rows.retain(|row| row.change() > 0.0 && !row.metric.contains(".scheduling."));
    found.rows.sort_by(|a, b| b.change().total_cmp(&a.change()));
    found.rows.truncate(SHOWN);
    if found.names.len() > 1 {
        found.pools.retain(|pool| pool.change() >= 0.005);
        found.operations.retain(|operation| operation.change() > 0);
    }
    found.pools.truncate(SHOWN);
    found.operations.truncate(SHOWN);
    screen.show(&VariantTable(found))
}

fn faults(screen: Screen, args: &SimFaultsArgs) -> Result<(), CliError> {
    let interrupt = signals()?;
    let folder = std::env::temp_dir().join(format!("millpond-faults-{}", std::process::id()));
    datadir::private_directory(&folder).map_err(|e| CliError::failed(e.to_string()))?;
    let last = if args.forever { u64::MAX } else { args.seed.saturating_add(args.count) };
    let (begun, mut told_at) = (Instant::now(), Instant::now());
    let (mut stories, mut jobs) = (0u64, 0u64);
    let mut result = Ok(());
    for seed in args.seed..last {
        let story = match ::sim::soak::play(seed, &folder) {
            Ok(story) => story,
            Err(error) => {
                result = Err(CliError::failed(format!("seed {seed}: {error}")));
                break;
            }
        };
        stories += 1;
        jobs += story.progress.counts.jobs_ordered;
        let violations = &story.violations;
        if args.log || !violations.is_empty() {
            screen.print(story.log.as_bytes())?;
        }
        if !violations.is_empty() {
            let what: Vec<&str> = violations.iter().take(10).map(String::as_str).collect();
            let again = format!("again: millpond sim faults --seed {seed}");
            result = Err(CliError::failed(format!("seed {seed}: {}\n{again}", what.join("\n"))));
            break;
        }
        if told_at.elapsed() >= Duration::from_secs(1) {
            told_at = Instant::now();
            screen.tell(&format!("{stories} seeds in {:.0} s, {jobs} jobs", begun.elapsed().as_secs_f64()));
        }
        if interrupt.count() > 0 {
            break;
        }
    }
    // What is left of it nobody needs: a seed makes it again.
    let _ = std::fs::remove_dir_all(&folder);
    result?;
    screen.tell(&format!("{stories} seeds, {jobs} jobs, no violation"));
    Ok(())
}

fn import(screen: Screen, args: &SimImportArgs) -> Result<(), CliError> {
    let kind = match args.kind {
        SimLog::Swf => Kind::Swf,
        SimLog::Mjobs => Kind::Mjobs,
        SimLog::EventLog => Kind::EventLog,
    };
    let mapping = args.mapping.as_ref().map_or(Ok(Mapping::plain()), |path| Mapping::load(path));
    let mapping = mapping.map_err(told)?;
    let scenario = args.scenario.as_deref();
    let found = ::sim::import::import(kind, &args.inputs, &mapping, &args.out, scenario).map_err(told)?;
    for (reason, count, first) in found.skipped.iter() {
        screen.tell(&format!("{count} lines skipped: {reason} (the first: {first})"));
    }
    screen.show(&Report(found.to_map()))
}

fn report(screen: Screen, args: &SimReportArgs) -> Result<(), CliError> {
    ::sim::report::report(&args.runs, args.checks.as_deref(), &args.out).map_err(told)?;
    screen.tell(&format!("{} runs are in {}", args.runs.len(), args.out.display()));
    Ok(())
}

fn explain(screen: Screen, args: &SimExplainArgs) -> Result<(), CliError> {
    let scenario = Scenario::load(&args.run.join("scenario.json"), &[]).map_err(told)?;
    let interrupt = signals()?;
    let at = args.at.since(scenario.start);
    let stopped = Stopped::at(&scenario, at, &mut |_| interrupt.count() == 0).map_err(told)?;
    let mut stopped = stopped.ok_or(CliError::Silent(exit::INTERRUPTED))?;
    screen.show(&OperationExplanation(stopped.explain(&args.operation).map_err(told)?))
}

fn shares(screen: Screen, args: &SimSharesArgs) -> Result<(), CliError> {
    let (rows, refused) = ::sim::shares::shares(&args.tree).map_err(told)?;
    for why in refused {
        screen.complain(&CliError::failed(why));
    }
    screen.show(&ShareTable(rows))
}

fn check(screen: Screen, args: &SimCheckArgs) -> Result<(), CliError> {
    let own = args.run.join("checks.json");
    let found = match args.checks.as_deref().or_else(|| own.exists().then_some(&own)) {
        Some(checks) => ::sim::check::check(&args.run, checks),
        None => ::sim::check::invariants(&args.run),
    };
    let found = found.map_err(told)?;
    let broken = found.iter().filter(|c| !c.holds).count();
    let all = found.len();
    screen.show(&ComparisonTable(found))?;
    match broken {
        0 => Ok(()),
        _ => Err(CliError::failed(format!("{broken} of {all} checks do not hold"))),
    }
}

/// A document: indented JSON for people, too.
struct Report(Map);

impl Output for Report {
    fn human(&self, _: &Look) -> String {
        crate::output::json_text(&self.0.clone().into())
    }

    fn json(&self) -> Value {
        self.0.clone().into()
    }

    fn quiet(&self) -> String {
        String::new()
    }
}
