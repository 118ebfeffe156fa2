//! Live progress on stderr: bars on a terminal, a few plain lines every five seconds elsewhere.
//!
//! A bar of a pool is as wide as the cluster: full blocks are what it uses, dots what its fair share
//! would let it have besides, the bar `|` stands at its guarantee.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::pools::POOLS;
use crate::watch::PoolNow;

/// Cells of a pool's bar.
const WIDTH: usize = 32;
/// How often plain lines are printed.
const PLAIN_PERIOD: Duration = Duration::from_secs(5);

/// Operations so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In the window.
    pub total: usize,
    /// Submitted.
    pub submitted: usize,
    /// Finished.
    pub finished: usize,
}

/// Where progress is shown.
#[derive(Debug)]
pub enum Screen {
    /// A terminal.
    Bars {
        /// Line of operations.
        operations: ProgressBar,
        /// One line per pool.
        pools: Vec<ProgressBar>,
        /// Keeps the lines together.
        all: MultiProgress,
    },
    /// Anything else: a file, a pipe, a log of a build.
    Plain {
        /// When lines were printed last.
        last: Option<Instant>,
    },
}

impl Screen {
    /// For what stderr is.
    pub fn new(total: usize) -> Screen {
        if !std::io::stderr().is_terminal() {
            return Screen::Plain { last: None };
        }
        let all = MultiProgress::new();
        let style = |template: &str| {
            // The templates are constants; the fallback is for the type only.
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        let operations = all.add(ProgressBar::new(total as u64));
        operations.set_style(style("  operations    {wide_bar} {pos}/{len} done, {msg}  {elapsed_precise}"));
        let pools = POOLS
            .iter()
            .map(|_| {
                let line = all.add(ProgressBar::new(0));
                line.set_style(style("{msg}"));
                line
            })
            .collect();
        Screen::Bars { operations, pools, all }
    }

    /// Shows the newest figures.
    pub fn update(&mut self, elapsed: Duration, counts: Counts, now: &[PoolNow], cores: f64) {
        match self {
            Screen::Bars { operations, pools, .. } => {
                operations.set_position(counts.finished as u64);
                operations.set_message(format!("{} in the cluster", counts.submitted - counts.finished));
                for (line, (pool, now)) in pools.iter().zip(POOLS.iter().zip(now)) {
                    line.set_message(pool_line(pool.name, pool.parent.is_some(), now, cores));
                }
            }
            Screen::Plain { last } => {
                if last.is_none_or(|last| last.elapsed() >= PLAIN_PERIOD) {
                    *last = Some(Instant::now());
                    eprintln!("{}", plain_line(elapsed, counts, now));
                }
            }
        }
    }

    /// Says something between the lines.
    pub fn say(&self, text: &str) {
        match self {
            Screen::Bars { all, .. } => {
                // A terminal that is gone is no reason to stop.
                let _ = all.println(text);
            }
            Screen::Plain { .. } => eprintln!("{text}"),
        }
    }

    /// Leaves the last state on the terminal.
    pub fn finish(&self) {
        if let Screen::Bars { operations, pools, .. } = self {
            operations.abandon();
            pools.iter().for_each(ProgressBar::abandon);
        }
    }
}

fn pool_line(name: &str, is_child: bool, now: &PoolNow, cores: f64) -> String {
    let name = if is_child { format!("  {name}") } else { name.to_owned() };
    let guarantee = match now.guarantee > 0.0 {
        true => format!("guarantee {:>2.0}", now.guarantee),
        false => " ".repeat(12),
    };
    format!(
        "  {name:<13} {} {:>4.1} of {cores:.0} cores  {guarantee}  fair share {:>4.1}  {:>2} running, {} pending",
        bar(now, cores),
        now.usage,
        now.fair,
        now.running,
        now.pending
    )
}

fn bar(now: &PoolNow, cores: f64) -> String {
    let cell = |amount: f64| (amount / cores * WIDTH as f64).round().clamp(0.0, WIDTH as f64) as usize;
    let (usage, fair, guarantee) = (cell(now.usage), cell(now.fair), cell(now.guarantee));
    let cells = (0..WIDTH).map(|i| match i {
        _ if guarantee > 0 && i + 1 == guarantee => '|',
        i if i < usage => '\u{2588}',
        i if i < fair => '\u{b7}',
        _ => ' ',
    });
    format!("[{}]", cells.collect::<String>())
}

fn plain_line(elapsed: Duration, counts: Counts, now: &[PoolNow]) -> String {
    let pools: Vec<String> = POOLS
        .iter()
        .zip(now)
        .map(|(pool, now)| match now.guarantee > 0.0 {
            true => {
                format!("{} {:.1}/{:.1} (guarantee {:.0})", pool.name, now.usage, now.fair, now.guarantee)
            }
            false => format!("{} {:.1}/{:.1}", pool.name, now.usage, now.fair),
        })
        .collect();
    format!(
        "{:>4} s  {}/{} operations done, {} in the cluster; cores used/fair share: {}",
        elapsed.as_secs(),
        counts.finished,
        counts.total,
        counts.submitted - counts.finished,
        pools.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const BUSY: PoolNow =
        PoolNow { usage: 9.0, demand: 20.0, fair: 12.0, guarantee: 8.0, running: 4, pending: 1 };

    #[test]
    fn lines() {
        let lines = [
            pool_line("production", false, &BUSY, 16.0),
            pool_line(
                "methods",
                true,
                &PoolNow { usage: 2.5, fair: 2.0, running: 12, ..PoolNow::default() },
                16.0,
            ),
            pool_line("batch", false, &PoolNow::default(), 16.0),
            plain_line(
                Duration::from_secs(65),
                Counts { total: 190, submitted: 100, finished: 90 },
                &[BUSY, PoolNow::default()],
            ),
        ];
        expect![[r#"
            Lines:
              production    [███████████████|██······        ]  9.0 of 16 cores  guarantee  8  fair share 12.0   4 running, 1 pending
                methods     [█████                           ]  2.5 of 16 cores                fair share  2.0  12 running, 0 pending
              batch         [                                ]  0.0 of 16 cores                fair share  0.0   0 running, 0 pending
              65 s  90/190 operations done, 10 in the cluster; cores used/fair share: production 9.0/12.0 (guarantee 8), research 0.0/0.0"#]].assert_eq(&format!("Lines:\n{}", lines.join("\n")));
    }

    #[test]
    fn a_bar_is_never_longer_than_the_cluster() {
        for usage in [0.0, 0.1, 8.0, 16.0, 99.0] {
            let now = PoolNow { usage, fair: 99.0, guarantee: 99.0, ..PoolNow::default() };
            assert_eq!(bar(&now, 16.0).chars().count(), WIDTH + 2, "{usage}");
        }
    }
}
