//! CPU of the jobs of a node (simulator.md 5.7): what each wants, what it gets, and the shipped monitor that
//! moves its guarantee.
//!
//! A job wants `d` cores at a position of its work. If all wishes fit on the node everybody gets what it
//! wants (cut at its cap, if it has one); otherwise the cores are divided by guarantees, and nobody gets less than its part of them unless it
//! wants less. The position moves at the speed `received / d`: lack of CPU prolongs the job. Between two
//! events (a start, an end, a step of a curve, a check of a monitor) nothing changes, so sums are exact.

use crate::workload::Curve;
use reserve::cpu_monitor::{Fate, Monitor, Options};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{Cpu, JobId, Span, Time};
use yson::Map;
use yson::fields::Fields;

/// Positions closer than this are one: times are whole microseconds.
const NEAR: f64 = 2e-6;
/// A job without a guarantee has this one when cores are divided: not nothing.
const LEAST: f64 = 0.01;

/// What a job may use at most, whatever is idle (jobs-and-nodes.md 4.5).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Cap {
    /// All that is left.
    None,
    /// So many cores.
    Cores(f64),
    /// Its guarantee of the moment.
    Guarantee,
}

/// The smallest cap there is, cores.
const LEAST_CAP: f64 = 0.01;

/// What a job came to, core-seconds.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Figures {
    /// By its specification.
    pub specified: f64,
    /// By its guarantee of the moment.
    pub guaranteed: f64,
    /// What it got.
    pub used: f64,
    /// What it wanted above its guarantee.
    pub at_risk: f64,
    /// What it wanted and did not get.
    pub missing: f64,
    /// Times that the guarantee was moved.
    pub changes: u64,
    /// How long it ran, seconds.
    pub ran: f64,
    /// How long it would have run with all that it wanted.
    pub work: f64,
}

impl Figures {
    /// Sums of both.
    pub fn add(&mut self, other: &Figures) {
        self.specified += other.specified;
        self.guaranteed += other.guaranteed;
        self.used += other.used;
        self.at_risk += other.at_risk;
        self.missing += other.missing;
        self.changes += other.changes;
        self.ran += other.ran;
        self.work += other.work;
    }
}

struct Job {
    curve: Arc<Curve>,
    /// Seconds of work at full speed that are done, and after which it ends.
    position: f64,
    end: f64,
    hard: f64,
    guarantee: f64,
    cap: Cap,
    /// Of the moment: wish and receipt, cores.
    wish: f64,
    rate: f64,
    start: Time,
    monitor: Monitor,
    period: Span,
    next_check: Option<Time>,
    figures: Figures,
}

impl Job {
    /// What it can use of what it wants.
    fn usable(&self) -> f64 {
        match self.cap {
            Cap::None => self.wish,
            Cap::Cores(cores) => self.wish.min(cores.max(LEAST_CAP)),
            Cap::Guarantee => self.wish.min(self.guarantee.max(LEAST_CAP)),
        }
    }

    fn speed(&self) -> f64 {
        if self.wish > 0.0 { self.rate / self.wish } else { 1.0 }
    }

    /// When something of its own happens next.
    fn next(&self, now: Time) -> Time {
        let to = self.end.min(self.curve.next_step(self.position));
        let speed = self.speed();
        let check = self.next_check.unwrap_or(Time::MAX);
        if speed <= 0.0 {
            return check;
        }
        let us = ((to - self.position).max(0.0) / speed * 1e6).ceil();
        check.min(now + Span::from_micros(us.clamp(1.0, 1e15) as u64))
    }
}

/// What happened at an instant.
#[derive(Default)]
pub(super) struct Happened {
    /// Jobs whose work is done.
    pub ended: Vec<JobId>,
    /// New guarantees.
    pub moved: Vec<(JobId, Cpu)>,
}

/// See the module page.
pub(super) struct Division {
    cores: f64,
    /// Between checks, instead of what the options say.
    coarse: Option<Span>,
    jobs: BTreeMap<JobId, Job>,
    last: Time,
    /// Events of the queue with another number are void.
    version: u32,
    stale: bool,
}

impl Division {
    pub fn new(cores: f64, coarse: Option<Span>) -> Division {
        Division { cores, coarse, jobs: BTreeMap::new(), last: Time::ZERO, version: 0, stale: false }
    }

    pub fn set_cores(&mut self, now: Time, cores: f64) {
        self.advance(now);
        self.cores = cores;
        self.stale = true;
    }

    /// A job starts: `options` are those of its order, `hard` what it was granted, with what it may use.
    pub fn start(
        &mut self,
        now: Time,
        id: JobId,
        curve: Arc<Curve>,
        runs_for: Span,
        (hard, cap): (Cpu, Cap),
        options: &Map,
    ) {
        self.advance(now);
        // The controller has read and written them: they are good.
        let options = Options::read(&mut Fields::new(options, "")).unwrap_or_default();
        let period = self.coarse.unwrap_or(options.check_period).max(Span::from_millis(1));
        let hard = hard.as_f64();
        let job = Job {
            curve,
            position: 0.0,
            end: runs_for.as_secs_f64(),
            hard,
            guarantee: hard,
            cap,
            wish: 0.0,
            rate: 0.0,
            start: now,
            monitor: Monitor::new(options, hard),
            period,
            next_check: (hard > 0.0).then(|| now + period),
            figures: Figures::default(),
        };
        self.jobs.insert(id, job);
        self.stale = true;
    }

    /// A job is gone; gives what it came to.
    pub fn stop(&mut self, now: Time, id: JobId) -> Option<Figures> {
        self.advance(now);
        let job = self.jobs.remove(&id)?;
        self.stale = true;
        Some(Figures { work: job.position, ran: now.since(job.start).as_secs_f64(), ..job.figures })
    }

    /// How far the work of a job is.
    pub fn worked(&self, now: Time, id: JobId) -> Option<Span> {
        let job = self.jobs.get(&id)?;
        let position = job.position + now.since(self.last).as_secs_f64() * job.speed();
        Some(Span::from_micros((position * 1e6).round() as u64))
    }

    /// All jobs are gone.
    pub fn clear(&mut self) {
        self.jobs.clear();
        self.stale = true;
    }

    fn advance(&mut self, now: Time) {
        let dt = now.since(self.last).as_secs_f64();
        self.last = now;
        if dt == 0.0 {
            return;
        }
        for job in self.jobs.values_mut() {
            job.position += dt * job.speed();
            let f = &mut job.figures;
            f.specified += job.hard * dt;
            f.guaranteed += job.guarantee * dt;
            f.used += job.rate * dt;
            f.at_risk += (job.wish - job.guarantee).max(0.0) * dt;
            f.missing += (job.wish - job.rate).max(0.0) * dt;
        }
    }

    /// The event with this number is due: what happens?
    pub fn wake(&mut self, now: Time, version: u32) -> Happened {
        let mut happened = Happened::default();
        if version != self.version {
            return happened;
        }
        self.advance(now);
        self.stale = true;
        for (id, job) in &mut self.jobs {
            if job.position >= job.end - NEAR {
                happened.ended.push(*id);
                continue;
            }
            if job.next_check.is_none_or(|at| at > now) {
                continue;
            }
            job.next_check = Some(now + job.period);
            let at = now.since(job.start).as_secs_f64();
            let check = job.monitor.check_at(at, Some(job.figures.used), |_| true);
            if let Some(change) = check.change.filter(|change| change.fate == Fate::Applied) {
                job.guarantee = change.to;
                job.figures.changes += 1;
                happened.moved.push((*id, Cpu::from_f64(change.to)));
            }
        }
        happened
    }

    /// Divides the cores anew, if something has changed; gives when to call next, with the number of the event.
    pub fn settle(&mut self, now: Time) -> Option<(Time, u32)> {
        if !std::mem::take(&mut self.stale) {
            return None;
        }
        for job in self.jobs.values_mut() {
            job.wish = job.curve.at(job.position);
        }
        self.divide();
        self.version += 1;
        let next = self.jobs.values().map(|job| job.next(now)).min()?;
        Some((next, self.version))
    }

    fn divide(&mut self) {
        let wishes: f64 = self.jobs.values().map(Job::usable).sum();
        if wishes <= self.cores {
            self.jobs.values_mut().for_each(|job| job.rate = job.usable());
            return;
        }
        // Who wants least for its guarantee is served first; the rest of the others grows by what it leaves.
        let weight = |job: &Job| job.guarantee.max(LEAST);
        let mut order: Vec<&mut Job> = self.jobs.values_mut().collect();
        order.sort_by(|a, b| (a.usable() / weight(a)).total_cmp(&(b.usable() / weight(b))));
        let mut left = self.cores;
        let mut weights: f64 = order.iter().map(|job| weight(job)).sum();
        for job in order {
            job.rate = job.usable().min(left * weight(job) / weights).max(0.0);
            left -= job.rate;
            weights -= weight(job);
        }
    }
}

#[cfg(test)]
mod tests;
