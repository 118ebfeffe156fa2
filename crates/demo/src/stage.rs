//! The replay while it runs: one thread submits, this one looks and shows.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context;
use client::{Client, ClientError};
use vocab::OperationId;

use crate::cluster::{Cluster, ClusterConfig};
use crate::interrupt::Interrupt;
use crate::leftovers::{Found, Marks};
use crate::meter::PoolMeter;
use crate::plan::Plan;
use crate::pools::POOLS;
use crate::replay;
use crate::screen::{Counts, Screen};
use crate::watch::{self, Outcome, PoolNow};

/// How often pools are looked at.
const SAMPLE_PERIOD: Duration = Duration::from_millis(200);
/// Operations are looked at with every so many-th look at the pools.
const OPERATIONS_EVERY: u32 = 3;

/// Where the replay takes place.
pub(crate) struct Stage<'a> {
    pub client: &'a Client,
    /// Name of the pool tree.
    pub tree: &'a str,
    pub config: &'a ClusterConfig,
    pub marks: &'a Marks,
    pub interrupt: &'a Interrupt,
}

/// What the submitting thread tells: place in the plan, and the operation.
type Submitted = (usize, Result<OperationId, ClientError>);

/// The replay while it runs.
pub(crate) struct Replayed<'a> {
    plan: &'a Plan,
    /// By the operation's place in the plan: its id, or why it was refused.
    submitted: Vec<Option<Result<OperationId, String>>>,
    /// In the order of [`POOLS`].
    pub meters: Vec<PoolMeter>,
    /// The newest look at the pools.
    pub last: Vec<PoolNow>,
    /// What there was of the demo on this machine while jobs ran.
    pub during: Found,
    /// How long it took.
    pub seconds: f64,
}

impl<'a> Replayed<'a> {
    pub fn new(plan: &'a Plan) -> Replayed<'a> {
        Replayed {
            plan,
            submitted: vec![None; plan.operations.len()],
            meters: vec![PoolMeter::default(); POOLS.len()],
            last: vec![PoolNow::default(); POOLS.len()],
            during: Found::default(),
            seconds: 0.0,
        }
    }

    /// Plays until everything has finished, the user asks to stop, or it takes much too long.
    pub fn run(&mut self, cluster: &mut Cluster, stage: &Stage<'_>) -> anyhow::Result<()> {
        let mut screen = Screen::new(self.plan.operations.len());
        let start = Instant::now();
        let (sender, submitted) = mpsc::channel();
        let plan = self.plan;
        let result = std::thread::scope(|scope| {
            scope.spawn(move || {
                let Stage { client, config, interrupt, .. } = stage;
                replay::submit_all(client, plan, &config.mark, start, interrupt, |index, result| {
                    // The other side is gone only when the replay has been given up.
                    let _ = sender.send((index, result));
                });
            });
            let result = self.watch(cluster, stage, &submitted, &mut screen, start);
            if result.is_err() {
                // The submitting thread would go on for the rest of the window.
                stage.interrupt.raise();
            }
            result
        });
        self.seconds = start.elapsed().as_secs_f64();
        screen.finish();
        result
    }

    fn watch(
        &mut self,
        cluster: &mut Cluster,
        stage: &Stage<'_>,
        submitted: &mpsc::Receiver<Submitted>,
        screen: &mut Screen,
        start: Instant,
    ) -> anyhow::Result<()> {
        let total = self.plan.operations.len();
        let last_arrival = self.plan.operations.last().map_or(Duration::ZERO, |last| last.at);
        let give_up = last_arrival * 4 + Duration::from_secs(60);
        let mut counts = Counts { total, ..Counts::default() };
        let mut sampled = start;
        for round in 0u32.. {
            for (index, result) in submitted.try_iter() {
                counts.submitted += 1;
                if let Err(error) = &result {
                    let number = self.plan.operations[index].logged.number;
                    screen.say(&format!("job {number} of the log was refused: {error}"));
                }
                self.submitted[index] = Some(result.map_err(|error| error.to_string()));
            }
            self.last = watch::pools(stage.client, stage.tree)?;
            let now = Instant::now();
            for (meter, pool) in self.meters.iter_mut().zip(&self.last) {
                meter.add((now - sampled).as_secs_f64(), pool);
            }
            sampled = now;
            if round % OPERATIONS_EVERY == 0 {
                counts.finished = self.finished(stage.client)?;
                cluster.check()?;
                // Somewhere in the middle, where there is most to see.
                if counts.finished * 4 > total && self.during.is_empty() {
                    self.during = Found::look(stage.marks);
                }
            }
            screen.update(start.elapsed(), counts, &self.last, stage.config.shape.cores());
            let is_over = counts.finished == total || start.elapsed() > give_up;
            if is_over || stage.interrupt.wait(0, SAMPLE_PERIOD) {
                break;
            }
        }
        Ok(())
    }

    /// Operations that will not change any more; a refused one is as finished as it can be.
    fn finished(&self, client: &Client) -> anyhow::Result<usize> {
        let states = watch::operations(client)?;
        let is_finished = |entry: &Option<Result<OperationId, String>>| match entry {
            None => false,
            Some(Err(_)) => true,
            Some(Ok(id)) => states.get(id).is_some_and(|state| state.is_finished()),
        };
        Ok(self.submitted.iter().filter(|entry| is_finished(entry)).count())
    }

    /// What became of each operation of the plan, in its order.
    pub fn outcomes(&self, client: &Client) -> anyhow::Result<Vec<Outcome>> {
        let outcome = |entry: &Option<Result<OperationId, String>>| match entry {
            Some(Ok(id)) => {
                watch::outcome(client, *id).with_context(|| format!("cannot look at operation {id}"))
            }
            Some(Err(error)) => {
                Ok(Outcome { problem: Some(format!("refused: {error}")), ..Outcome::default() })
            }
            None => Ok(Outcome { problem: Some("not submitted".to_owned()), ..Outcome::default() }),
        };
        self.submitted.iter().map(outcome).collect()
    }
}
