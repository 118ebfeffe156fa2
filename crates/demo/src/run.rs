//! The demo from start to end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use crate::cluster::{Cluster, ClusterConfig};
use crate::interrupt::Interrupt;
use crate::leftovers::{Found, Marks};
use crate::plan::{Machine, Plan, Shape, plan};
use crate::stage::{Replayed, Stage};
use crate::summary::Results;
use crate::words::{farewell, introduce, report_leftovers};
use crate::{pools, replay, swf};

/// First second and length of the window in the log: hours 451*6 to 452*6.
pub const WINDOW_TIMES: (u64, u64) = (451 * 6 * 3600, 6 * 3600);
/// Variable that marks every process of the demo.
const MARK: &str = "MILLPOND_DEMO";
/// Processes die and groups go a moment after the cluster has stopped, not at the same time.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_secs(10);

/// Settings of the demo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoConfig {
    /// About how long the replay takes.
    pub seconds: u64,
    /// Where the cluster keeps its data; none: a new directory among the temporary files.
    pub directory: Option<PathBuf>,
    /// Leave the cluster running after the summary, until Ctrl-C.
    pub keep: bool,
    /// Job environment of the nodes; none: the node chooses.
    pub job_environment: Option<String>,
    /// The millpond program; none: the one that runs.
    pub program: Option<PathBuf>,
}

impl Default for DemoConfig {
    fn default() -> DemoConfig {
        DemoConfig { seconds: 120, directory: None, keep: false, job_environment: None, program: None }
    }
}

/// Runs the demo. True: every operation completed and nothing is left behind.
pub fn run(config: DemoConfig) -> anyhow::Result<bool> {
    ensure!(
        (10..=3600).contains(&config.seconds),
        "seconds must be between 10 and 3600, got {}",
        config.seconds
    );
    let interrupt = Interrupt::install()?;
    let shape = Shape::DEMO;
    let jobs = swf::parse(crate::WINDOW)?;
    let plan = plan(&jobs, WINDOW_TIMES, config.seconds, &shape, &machine()?)?;
    let program = match config.program {
        Some(program) => program,
        None => std::env::current_exe().context("cannot find the program that runs")?,
    };
    let directory = make_directory(config.directory.as_deref())?;
    let mark = (MARK.to_owned(), directory.display().to_string());
    let cluster_config =
        ClusterConfig { program, directory, shape, job_environment: config.job_environment, mark };
    introduce(&plan, config.seconds, &cluster_config);

    let mut marks = Marks {
        environment: format!("{}={}", cluster_config.mark.0, cluster_config.mark.1),
        directory: cluster_config.directory.clone(),
        groups: Vec::new(),
    };
    let played = play(&cluster_config, &plan, config.keep, &mut marks, &interrupt);
    // The cluster is stopped by now, whatever happened.
    let (left, waited) = wait_for_nothing(&marks);
    let (success, during) = match played {
        Ok(played) => played,
        Err(error) => {
            report_leftovers(&left, None);
            eprintln!("Data and logs are in {}.", cluster_config.directory.display());
            return Err(error);
        }
    };
    report_leftovers(&left, Some(&during));
    if waited > Duration::from_secs(1) {
        println!("It took {:.1} s until everything was gone.", waited.as_secs_f64());
    }
    if interrupt.is_raised() && !config.keep {
        eprintln!("Interrupted: the cluster is stopped.");
        // What was not finished is of no use to anybody.
        if config.directory.is_none() && left.is_empty() {
            std::fs::remove_dir_all(&cluster_config.directory)
                .with_context(|| format!("cannot remove {}", cluster_config.directory.display()))?;
        }
        return Ok(false);
    }
    farewell(&cluster_config);
    Ok(success && left.is_empty())
}

/// From the start of the cluster to its end. Gives whether all operations completed, and what was
/// there while they ran.
fn play(
    config: &ClusterConfig,
    plan: &Plan,
    keep: bool,
    marks: &mut Marks,
    interrupt: &Interrupt,
) -> anyhow::Result<(bool, Found)> {
    let begin = Instant::now();
    let mut cluster = Cluster::start(config, interrupt)?;
    marks.groups =
        cluster.nodes()?.iter().map(|node| format!("millpond/{}", node.replace('/', "_"))).collect();
    let client = cluster.client()?;
    let tree = pools::create(&client, config.shape.cores()).context("cannot make the pools")?;
    replay::upload(&client, &config.program).context("cannot upload the program of the jobs")?;
    eprintln!(
        "The cluster is ready at {} after {:.1} s. In another terminal: millpond top --proxy {0}",
        cluster.address(),
        begin.elapsed().as_secs_f64()
    );

    let mut replayed = Replayed::new(plan);
    let result =
        replayed.run(&mut cluster, &Stage { client: &client, tree: &tree, config, marks, interrupt });
    if result.is_err() || interrupt.is_raised() {
        if interrupt.is_raised() {
            eprintln!("Interrupted: stopping the cluster; Ctrl-C again kills it.");
        }
        let stopped = cluster.stop(interrupt);
        result?;
        stopped?;
        return Ok((false, replayed.during));
    }
    let outcomes = replayed.outcomes(&client)?;
    let results = Results {
        plan,
        outcomes: &outcomes,
        meters: &replayed.meters,
        last: &replayed.last,
        seconds: replayed.seconds,
    };
    println!("\n{}", results.render());
    if keep {
        println!("The cluster goes on at {} until Ctrl-C.", cluster.address());
        while !interrupt.wait(0, Duration::from_secs(1)) {
            cluster.check()?;
        }
    }
    cluster.stop(interrupt)?;
    Ok((results.is_success(), replayed.during))
}

fn machine() -> anyhow::Result<Machine> {
    let cores =
        std::thread::available_parallelism().context("cannot count the cores of this machine")?.get() as f64;
    let info = std::fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
    let free_kib = info
        .lines()
        .find_map(|line| {
            line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
        })
        .context("/proc/meminfo does not say how much memory is available")?;
    Ok(Machine { cores, free_memory: free_kib << 10 })
}

/// An absolute path: marks and mounts are compared with what the kernel says.
fn make_directory(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let path = match given {
        Some(path) => {
            std::fs::create_dir_all(path)
                .with_context(|| format!("cannot make the directory {}", path.display()))?;
            path.to_owned()
        }
        None => {
            let since =
                std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let unique = format!("millpond-demo-{}-{}", since.as_secs(), std::process::id());
            let path = std::env::temp_dir().join(unique);
            datadir::private_directory(&path)?;
            path
        }
    };
    path.canonicalize().with_context(|| format!("cannot use the directory {}", path.display()))
}

/// Looks until nothing is left, or for a while; gives what is left and how long it took.
fn wait_for_nothing(marks: &Marks) -> (Found, Duration) {
    let start = Instant::now();
    loop {
        let found = Found::look(marks);
        if found.is_empty() || start.elapsed() > LEFTOVERS_TIMEOUT {
            return (found, start.elapsed());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_make_no_sense_are_refused_before_anything_is_started() {
        for seconds in [0, 9, 3601] {
            let error = run(DemoConfig { seconds, ..DemoConfig::default() }).expect_err("refused");
            assert!(error.to_string().contains(&format!("got {seconds}")), "{error}");
        }
    }

    #[test]
    fn this_machine_has_something() {
        let machine = machine().expect("machine");
        assert!(machine.cores >= 1.0 && machine.free_memory > 0);
    }
}
