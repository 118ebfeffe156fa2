//! The table at the end.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use crate::meter::{PoolMeter, percentile};
use crate::plan::Plan;
use crate::pools::{POOLS, Pool};
use crate::watch::{Outcome, PoolNow};

/// A line below the header and no others.
const PRESET: &str = "     \u{2500}\u{2500}            ";

/// Everything that the table is made of.
#[derive(Clone, Debug)]
pub struct Results<'a> {
    /// What was to be done.
    pub plan: &'a Plan,
    /// What became of each operation of the plan, in its order.
    pub outcomes: &'a [Outcome],
    /// In the order of [`POOLS`].
    pub meters: &'a [PoolMeter],
    /// The last look at the pools: guarantees.
    pub last: &'a [PoolNow],
    /// Seconds of the replay.
    pub seconds: f64,
}

/// Sums over the operations of a pool and of those below it.
#[derive(Clone, Debug, Default)]
struct Sum {
    operations: usize,
    waits: Vec<f64>,
    done: u64,
    failed: u64,
    aborted: u64,
}

impl Results<'_> {
    /// Did every operation complete?
    pub fn is_success(&self) -> bool {
        self.outcomes.len() == self.plan.operations.len() && self.outcomes.iter().all(|o| o.problem.is_none())
    }

    /// The table and what is to be said below it.
    pub fn render(&self) -> String {
        format!("{}\n\n{}\n", self.table(), self.sentences().join("\n"))
    }

    fn sum(&self, belongs: impl Fn(&Pool) -> bool) -> Sum {
        let mut sum = Sum::default();
        for (planned, outcome) in self.plan.operations.iter().zip(self.outcomes) {
            if belongs(planned.pool) {
                sum.operations += 1;
                sum.waits.extend(outcome.wait);
                sum.done += outcome.completed;
                sum.failed += outcome.failed;
                sum.aborted += outcome.aborted;
            }
        }
        sum
    }

    fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(PRESET).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header([
            "pool",
            "guarantee",
            "usage",
            "fair\nshare",
            "below\nguarantee",
            "wait\np50",
            "wait\np95",
            "operations",
            "jobs\ndone",
            "jobs\nfailed",
            "jobs run\nagain",
        ]);
        for ((pool, meter), last) in POOLS.iter().zip(self.meters).zip(self.last) {
            let sum = self.sum(|other| other.name == pool.name || other.parent == Some(pool.name));
            let has_guarantee = last.guarantee > 0.0;
            let name = if pool.parent.is_some() { format!("  {}", pool.name) } else { pool.name.to_owned() };
            let below = meter.below_guarantee().filter(|_| has_guarantee);
            table.add_row(row(
                &name,
                has_guarantee.then(|| format!("{:.1}", last.guarantee)),
                Some((meter.mean_usage(), meter.mean_fair_share())),
                below.map(|part| format!("{:.1} %", part * 100.0)),
                &sum,
            ));
        }
        let usage = self.top_level(|meter| meter.mean_usage());
        let fair = self.top_level(|meter| meter.mean_fair_share());
        table.add_row(row("all", None, Some((usage, fair)), None, &self.sum(|_| true)));
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let text = table.to_string();
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    fn top_level(&self, value: impl Fn(&PoolMeter) -> f64) -> f64 {
        POOLS
            .iter()
            .zip(self.meters)
            .filter(|(pool, _)| pool.parent.is_none())
            .map(|(_, meter)| value(meter))
            .sum()
    }

    fn sentences(&self) -> Vec<String> {
        let all = self.sum(|_| true);
        let completed = self.outcomes.iter().filter(|outcome| outcome.problem.is_none()).count();
        let burnt: f64 = self.outcomes.iter().map(|outcome| outcome.cpu).sum();
        let wanted: f64 = self
            .plan
            .operations
            .iter()
            .map(|o| o.job_count as f64 * o.run.as_secs_f64() * self.plan.cpu)
            .sum();
        let most = |values: &mut dyn Iterator<Item = u64>| values.max().unwrap_or(0) >> 20;
        let mut sentences = vec![
            format!(
                "{completed} of {} operations completed in {:.1} s: {} of {} jobs done, {} failed,\n\
                 {} preempted or otherwise stopped and run again.",
                self.plan.operations.len(),
                self.seconds,
                all.done,
                self.plan.job_count(),
                all.failed,
                all.aborted
            ),
            format!(
                "Completed jobs burnt {burnt:.1} s of CPU (planned {wanted:.1} s); the largest held {} MiB\n\
                 (planned {} MiB).",
                most(&mut self.outcomes.iter().map(|outcome| outcome.memory)),
                most(&mut self.plan.operations.iter().map(|operation| operation.memory)),
            ),
            "Guarantee, mean usage and mean fair share in cores; waits in seconds, from the submission of an\n\
             operation to the start of its first process; \"below guarantee\": the part of the time with demand\n\
             in which the pool had less than its guarantee and wanted more."
                .to_owned(),
        ];
        for (planned, outcome) in self.plan.operations.iter().zip(self.outcomes) {
            if let Some(problem) = &outcome.problem {
                sentences
                    .push(format!("Job {} of the log did not complete: {problem}", planned.logged.number));
            }
        }
        sentences
    }
}

fn row(
    name: &str,
    guarantee: Option<String>,
    means: Option<(f64, f64)>,
    below: Option<String>,
    sum: &Sum,
) -> Vec<Cell> {
    let dash = || "-".to_owned();
    let wait = |hundredths| percentile(&sum.waits, hundredths).map_or_else(dash, |wait| format!("{wait:.2}"));
    let (usage, fair) =
        means.map_or_else(|| (dash(), dash()), |(u, f)| (format!("{u:.1}"), format!("{f:.1}")));
    [
        name.to_owned(),
        guarantee.unwrap_or_else(dash),
        usage,
        fair,
        below.unwrap_or_else(dash),
        wait(50.0),
        wait(95.0),
        sum.operations.to_string(),
        sum.done.to_string(),
        sum.failed.to_string(),
        sum.aborted.to_string(),
    ]
    .into_iter()
    .map(Cell::new)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Machine, Shape, plan};
    use expect_test::expect;

    fn results<'a>(
        plan: &'a Plan,
        outcomes: &'a [Outcome],
        meters: &'a [PoolMeter],
        last: &'a [PoolNow],
    ) -> Results<'a> {
        Results { plan, outcomes, meters, last, seconds: 112.34 }
    }

    #[test]
    fn the_table_sums_up_subpools_and_names_what_failed() {
        let jobs = crate::swf::parse(crate::WINDOW).expect("window");
        let machine = Machine { cores: 2.0, free_memory: 16 << 30 };
        let plan = plan(&jobs, crate::run::WINDOW_TIMES, 120, &Shape::DEMO, &machine).expect("plan");
        let mut outcomes: Vec<Outcome> = plan
            .operations
            .iter()
            .enumerate()
            .map(|(i, o)| Outcome {
                wait: Some(i as f64 / 10.0),
                completed: o.job_count,
                cpu: o.job_count as f64 * o.run.as_secs_f64() * plan.cpu,
                memory: o.memory,
                ..Outcome::default()
            })
            .collect();
        let mut meters = [PoolMeter::default(); POOLS.len()];
        let last: Vec<PoolNow> = POOLS
            .iter()
            .map(|pool| PoolNow { guarantee: pool.guarantee * 16.0, ..PoolNow::default() })
            .collect();
        for (meter, last) in meters.iter_mut().zip(&last) {
            meter.add(9.0, &PoolNow { usage: 2.0, demand: 2.0, fair: 2.5, ..*last });
            meter.add(1.0, &PoolNow { usage: 1.0, demand: 3.0, ..*last });
        }
        assert!(results(&plan, &outcomes, &meters, &last).is_success());
        assert!(!results(&plan, &outcomes[1..], &meters, &last).is_success(), "one is missing");
        outcomes[1] =
            Outcome { problem: Some("failed: User job failed".to_owned()), failed: 1, ..Outcome::default() };
        let results = results(&plan, &outcomes, &meters, &last);
        assert!(!results.is_success());
        expect![[r#"
             pool           guarantee   usage    fair       below    wait    wait   operations   jobs     jobs   jobs run
                                                share   guarantee     p50     p95                done   failed      again
            ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
             production           8.0     1.9     2.2      10.0 %   10.60   16.50           47    142        0          0
             research             2.0     1.9     2.2      10.0 %   13.60   18.30           37    272        1          0
               simulation           -     1.9     2.2           -   11.40   13.40           10     96        1          0
               methods              -     1.9     2.2           -   15.40   18.30           27    176        0          0
             analytics              -     1.9     2.2           -   12.50   18.50           41     50        0          0
             batch                  -     1.9     2.2           -    4.40    7.30           65     65        0          0
             all                    -     7.6     9.0           -    9.50   18.00          190    529        1          0

            189 of 190 operations completed in 112.3 s: 529 of 537 jobs done, 1 failed,
            0 preempted or otherwise stopped and run again.
            Completed jobs burnt 116.2 s of CPU (planned 116.6 s); the largest held 128 MiB
            (planned 128 MiB).
            Guarantee, mean usage and mean fair share in cores; waits in seconds, from the submission of an
            operation to the start of its first process; "below guarantee": the part of the time with demand
            in which the pool had less than its guarantee and wanted more.
            Job 47776 of the log did not complete: failed: User job failed
        "#]].assert_eq(&results.render());
    }
}
