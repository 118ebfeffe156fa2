//! The conversation with the server: Hello, heartbeats, and what is repeated after a reconnection.

use std::collections::BTreeSet;

use vocab::{JobId, Span, Time};
use wire::{Heartbeat, Hello, JobEvent, NodeMessage, PROTOCOL_VERSION};

use crate::job::{Job, Stage};
use crate::{NodeCore, NodeEffect};

/// Statistics of so many running jobs travel in one heartbeat at most, oldest-sent first: about a
/// megabyte (3.7).
const STATISTICS_PER_HEARTBEAT: usize = 1000;

/// How far the conversation has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Registration {
    #[default]
    Disconnected,
    /// `Hello` is sent, the server has not answered.
    Greeted,
    Registered {
        next_heartbeat: Time,
        period: Span,
    },
}

impl Registration {
    pub fn is_registered(&self) -> bool {
        matches!(self, Registration::Registered { .. })
    }
    pub fn is_disconnected(&self) -> bool {
        *self == Registration::Disconnected
    }
    pub fn next_heartbeat(&self) -> Option<Time> {
        match self {
            Registration::Registered { next_heartbeat, .. } => Some(*next_heartbeat),
            _ => None,
        }
    }
}

/// How long the news that a job has started may wait for other news.
const STARTS_HELD: Span = Span::from_millis(10);

/// The end of a job says when it started: the start need not be told beside it.
fn drop_told_starts(news: &mut Vec<JobEvent>) {
    let ended: BTreeSet<JobId> = news
        .iter()
        .filter_map(|event| match event {
            JobEvent::Finished(end) => Some(end.identity.job_id),
            _ => None,
        })
        .collect();
    if !ended.is_empty() {
        news.retain(|event| !matches!(event, JobEvent::Started { job_id, .. } if ended.contains(job_id)));
    }
}

impl NodeCore {
    /// News up to now is in the Hello, so what waited in the outbox is dropped.
    pub(crate) fn connected(&mut self, fx: &mut Vec<NodeEffect>) {
        self.outbox.clear();
        self.registration = Registration::Greeted;
        for job in self.jobs.values_mut() {
            if job.stage == Stage::Over && job.must_upload() && !job.released {
                // This may be another life of the server, which has not got it. What was released only waits
                // to be clean: nobody is to hear of it again.
                job.stage = Stage::Uploading;
            }
        }
        let jobs = || self.jobs.values().filter(|job| !job.released);
        fx.push(NodeEffect::Send(NodeMessage::Hello(Hello {
            protocol_version: PROTOCOL_VERSION,
            address: self.settings.address.clone(),
            incarnation: self.settings.incarnation,
            resource_limits: self.offered_limits(),
            tags: self.settings.tags.clone(),
            job_environment: self.settings.job_environment.clone(),
            alerts: self.all_alerts(),
            disk_capacity: self.settings.disk_capacity,
            stamp: self.leases.since_boot(),
            data_id: self.settings.data_id.clone(),
            knows_job_uids: true,
            authentication: Some(self.settings.authentication),
            running: jobs().filter(|job| !job.is_reportable()).map(|job| job.report()).collect(),
            finished: jobs()
                .filter(|job| job.is_reportable())
                .filter_map(|job| job.end.as_deref().cloned())
                .collect(),
        })));
    }

    pub(crate) fn disconnected(&mut self) {
        self.registration = Registration::Disconnected;
    }

    pub(crate) fn welcome(&mut self, now: Time, period: Span, fx: &mut Vec<NodeEffect>) {
        let first = self.settings.first_heartbeat.unwrap_or(period);
        self.registration = Registration::Registered { next_heartbeat: now + first, period };
        for (id, job) in &mut self.jobs {
            if let (Stage::Uploading, Some(slot)) = (job.stage, job.slot) {
                job.upload_attempts = 0;
                fx.push(job.upload(*id, slot));
            }
        }
    }

    /// What the node offers or lacks has changed: the server is told with the next flush.
    pub(crate) fn tell_limits_soon(&mut self, now: Time) {
        if let Registration::Registered { next_heartbeat, .. } = &mut self.registration {
            *next_heartbeat = now.min(*next_heartbeat);
        }
    }

    /// Starts alone are not urgent: most short jobs are over before anybody could have looked, and
    /// then one message says all. Everything else leaves at once, and takes the starts along.
    pub(crate) fn starts_held_until(&mut self, now: Time) -> Option<Time> {
        let only_starts = self.outbox.iter().all(|event| matches!(event, JobEvent::Started { .. }));
        if self.outbox.is_empty() || !only_starts {
            return None;
        }
        let until = *self.outbox_since.get_or_insert(now) + STARTS_HELD;
        (now < until).then_some(until)
    }

    /// Lets go what has gathered.
    pub(crate) fn send_news(&mut self, fx: &mut Vec<NodeEffect>) {
        self.outbox_since = None;
        if self.registration.is_disconnected() {
            self.outbox.clear(); // the next Hello says it all
        } else if self.registration.is_registered() && !self.outbox.is_empty() {
            let mut news = std::mem::take(&mut self.outbox);
            drop_told_starts(&mut news);
            fx.push(NodeEffect::Send(NodeMessage::Jobs(news)));
        }
    }

    /// Sends a heartbeat if one is due. News goes before it: a job that the heartbeat does not name
    /// must have been reported finished already, or the server would take it for lost.
    pub(crate) fn heartbeat(&mut self, now: Time, fx: &mut Vec<NodeEffect>) {
        let Registration::Registered { next_heartbeat, period } = self.registration else { return };
        if now < next_heartbeat {
            return;
        }
        self.registration = Registration::Registered { next_heartbeat: now + period, period };
        self.send_news(fx);
        let with_statistics = self.choose_statistics(now);
        let mut jobs = Vec::new();
        for (id, job) in self.jobs.iter_mut().filter(|(_, job)| !job.is_reportable()) {
            let mut report = job.report();
            if with_statistics.binary_search(id).is_ok() {
                job.statistics_fresh = false;
                job.statistics_sent = now;
                report.statistics = job.statistics.as_deref().cloned();
            }
            jobs.push(report);
        }
        fx.push(NodeEffect::Send(NodeMessage::Heartbeat(Heartbeat {
            resource_limits: self.offered_limits(),
            resource_usage: self.ledger.usage(),
            alerts: self.all_alerts(),
            jobs,
            unreleased: self
                .jobs
                .values()
                .filter(|job| !job.released && job.is_reportable())
                .map(Job::id)
                .collect(),
            stamp: self.leases.since_boot(),
            leases_extended_until: self.leases.extended_until,
        })));
        self.nothing_new = true;
    }

    /// Instead of [`NodeInput::Wake`](crate::NodeInput::Wake): if nothing but a heartbeat is due, and nothing
    /// has happened since the last one, it counts as sent, and its server can be told just that. Gives the
    /// time of the next one.
    pub fn skip_heartbeat(&mut self, now: Time) -> Option<Time> {
        let Registration::Registered { next_heartbeat, period } = self.registration else { return None };
        let others = [
            self.timers.next(),
            self.overdraft.next(&self.settings),
            self.mistrust.ends(),
            self.uids.next_claim(),
            self.leases.wake(now),
        ];
        let alone = others.into_iter().flatten().all(|other| other > now);
        if now < next_heartbeat || !alone || !self.nothing_new {
            return None;
        }
        self.registration = Registration::Registered { next_heartbeat: now + period, period };
        let next = others.into_iter().flatten().fold(now + period, Time::min);
        self.last_wake = Some(next);
        Some(next)
    }

    /// Jobs whose statistics go out now, sorted by id.
    fn choose_statistics(&self, now: Time) -> Vec<JobId> {
        let backoff = self.settings.running_job_statistics_sending_backoff;
        let mut due: Vec<(Time, JobId)> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.statistics_fresh && now.since(job.statistics_sent) >= backoff)
            .map(|(id, job)| (job.statistics_sent, *id))
            .collect();
        due.sort_unstable();
        due.truncate(STATISTICS_PER_HEARTBEAT);
        let mut ids: Vec<JobId> = due.into_iter().map(|(_, id)| id).collect();
        ids.sort_unstable();
        ids
    }

    fn all_alerts(&self) -> Vec<vocab::Failure> {
        let known = self.settings.alerts.iter().chain(&self.alerts).cloned();
        known.chain(self.alert_of_mistrust()).chain(self.uids.alert()).collect()
    }
}
