//! The messages of the stream.

use vocab::{Failure, JobId, Span, Time, UidRange};

use super::{Malformed, bounds, id_bytes, id_from, name_from, pb, required, shell};
use crate::{AbortJob, Heartbeat, Hello, JobEvent, JobUids, NodeMessage, ServerMessage};

fn failures(list: &[Failure]) -> Vec<pb::Failure> {
    list.iter().map(Into::into).collect()
}

fn all<A, B: TryFrom<A, Error = Malformed>>(list: Vec<A>) -> Result<Vec<B>, Malformed> {
    list.into_iter().map(B::try_from).collect()
}

fn job_id(bytes: &[u8]) -> Result<JobId, Malformed> {
    id_from("job_id", bytes).map(JobId)
}

impl From<&NodeMessage> for pb::NodeMessage {
    fn from(m: &NodeMessage) -> pb::NodeMessage {
        use pb::node_message::Message;
        let message = match m {
            NodeMessage::Hello(h) => Message::Hello(h.into()),
            NodeMessage::Heartbeat(h) => Message::Heartbeat(h.into()),
            NodeMessage::Jobs(events) => {
                Message::Jobs(pb::JobEvents { events: events.iter().map(Into::into).collect() })
            }
            NodeMessage::Leaving => Message::Leaving(pb::Empty {}),
            NodeMessage::Stderr { request_id, result } => Message::Stderr(pb::StderrAnswer {
                request_id: *request_id,
                result: Some(match result {
                    Ok(data) => pb::stderr_answer::Result::Data(data.clone()),
                    Err(error) => pb::stderr_answer::Result::Error(error.into()),
                }),
            }),
            NodeMessage::Shell { request_id, result } => Message::Shell(shell::reply(*request_id, result)),
        };
        pb::NodeMessage { message: Some(message) }
    }
}
impl TryFrom<pb::NodeMessage> for NodeMessage {
    type Error = Malformed;
    fn try_from(m: pb::NodeMessage) -> Result<NodeMessage, Malformed> {
        use pb::node_message::Message;
        Ok(match required("node message", m.message)? {
            Message::Hello(h) => NodeMessage::Hello(h.try_into()?),
            Message::Heartbeat(h) => NodeMessage::Heartbeat(h.try_into()?),
            Message::Jobs(jobs) => NodeMessage::Jobs(all(jobs.events)?),
            Message::Leaving(pb::Empty {}) => NodeMessage::Leaving,
            Message::Stderr(s) => NodeMessage::Stderr {
                request_id: s.request_id,
                result: match required("stderr result", s.result)? {
                    pb::stderr_answer::Result::Data(data) => Ok(data),
                    pb::stderr_answer::Result::Error(error) => Err(error.try_into()?),
                },
            },
            Message::Shell(reply) => {
                NodeMessage::Shell { request_id: reply.request_id, result: shell::result_of(reply)? }
            }
        })
    }
}

impl From<&Hello> for pb::Hello {
    fn from(h: &Hello) -> pb::Hello {
        pb::Hello {
            protocol_version: h.protocol_version,
            address: h.address.clone(),
            incarnation: h.incarnation,
            resource_limits: Some((&h.resource_limits).into()),
            tags: h.tags.clone(),
            job_environment: h.job_environment.clone(),
            alerts: failures(&h.alerts),
            running: h.running.iter().map(Into::into).collect(),
            finished: h.finished.iter().map(Into::into).collect(),
            disk_capacity: h.disk_capacity,
            stamp: h.stamp.0,
            data_id: h.data_id.clone(),
            knows_job_uids: h.knows_job_uids,
            authentication: h.authentication,
        }
    }
}
impl TryFrom<pb::Hello> for Hello {
    type Error = Malformed;
    fn try_from(h: pb::Hello) -> Result<Hello, Malformed> {
        bounds::check_hello(&h)?;
        Ok(Hello {
            protocol_version: h.protocol_version,
            address: h.address,
            incarnation: h.incarnation,
            resource_limits: required("resource_limits", h.resource_limits)?.into(),
            tags: h.tags,
            job_environment: h.job_environment,
            alerts: all(h.alerts)?,
            running: all(h.running)?,
            finished: all(h.finished)?,
            disk_capacity: h.disk_capacity,
            stamp: Span(h.stamp),
            data_id: h.data_id,
            knows_job_uids: h.knows_job_uids,
            authentication: h.authentication,
        })
    }
}

impl From<&Heartbeat> for pb::Heartbeat {
    fn from(h: &Heartbeat) -> pb::Heartbeat {
        pb::Heartbeat {
            resource_limits: Some((&h.resource_limits).into()),
            resource_usage: Some((&h.resource_usage).into()),
            alerts: failures(&h.alerts),
            jobs: h.jobs.iter().map(Into::into).collect(),
            unreleased: h.unreleased.iter().map(|id| id_bytes(id.0)).collect(),
            stamp: h.stamp.0,
            leases_extended_until: h.leases_extended_until.0,
        }
    }
}
impl TryFrom<pb::Heartbeat> for Heartbeat {
    type Error = Malformed;
    fn try_from(h: pb::Heartbeat) -> Result<Heartbeat, Malformed> {
        bounds::check_alerts(&h.alerts)?;
        Ok(Heartbeat {
            resource_limits: required("resource_limits", h.resource_limits)?.into(),
            resource_usage: required("resource_usage", h.resource_usage)?.into(),
            alerts: all(h.alerts)?,
            jobs: all(h.jobs)?,
            unreleased: h.unreleased.iter().map(|bytes| job_id(bytes)).collect::<Result<_, _>>()?,
            stamp: Span(h.stamp),
            leases_extended_until: Time(h.leases_extended_until),
        })
    }
}

impl From<&JobEvent> for pb::JobEvent {
    fn from(e: &JobEvent) -> pb::JobEvent {
        use pb::job_event::{Event, ResourceUsage, Started};
        let event = match e {
            JobEvent::Started { job_id, start_time, slot_index } => {
                let (job_id, start_time) = (id_bytes(job_id.0), start_time.0);
                Event::Started(Started { job_id, start_time, slot_index: *slot_index })
            }
            JobEvent::ResourceUsage { job_id, resource_usage } => Event::ResourceUsage(ResourceUsage {
                job_id: id_bytes(job_id.0),
                resource_usage: Some(resource_usage.into()),
            }),
            JobEvent::Finished(job) => Event::Finished(job.as_ref().into()),
        };
        pb::JobEvent { event: Some(event) }
    }
}
impl TryFrom<pb::JobEvent> for JobEvent {
    type Error = Malformed;
    fn try_from(e: pb::JobEvent) -> Result<JobEvent, Malformed> {
        use pb::job_event::Event;
        Ok(match required("job event", e.event)? {
            Event::Started(s) => {
                let (job_id, start_time) = (job_id(&s.job_id)?, Time(s.start_time));
                JobEvent::Started { job_id, start_time, slot_index: s.slot_index }
            }
            Event::ResourceUsage(u) => JobEvent::ResourceUsage {
                job_id: job_id(&u.job_id)?,
                resource_usage: required("resource_usage", u.resource_usage)?.into(),
            },
            Event::Finished(job) => JobEvent::Finished(Box::new(job.try_into()?)),
        })
    }
}

impl TryFrom<pb::JobUids> for JobUids {
    type Error = Malformed;
    fn try_from(u: pb::JobUids) -> Result<JobUids, Malformed> {
        let range =
            |field, last| UidRange::new(u.first, last).map_err(|error| Malformed::Uids { field, error });
        Ok(JobUids {
            cluster_id: id_from("cluster_id", &u.cluster_id)?,
            range: range("last", u.last)?,
            claim: range("claim_last", u.claim_last.min(u.last))?,
        })
    }
}

impl From<&ServerMessage> for pb::ServerMessage {
    fn from(m: &ServerMessage) -> pb::ServerMessage {
        use pb::server_message::Message;
        let message = match m {
            ServerMessage::Welcome { heartbeat_period, job_uids } => Message::Welcome(pb::Welcome {
                heartbeat_period: heartbeat_period.0,
                job_uids: job_uids.map(|uids| pb::JobUids {
                    first: uids.range.first(),
                    last: uids.range.last(),
                    claim_last: uids.claim.last(),
                    cluster_id: id_bytes(uids.cluster_id),
                }),
            }),
            ServerMessage::Refuse(error) => Message::Refuse(error.into()),
            ServerMessage::Heard { from, extended_until } => {
                Message::Heard(pb::Heard { from: from.0, extended_until: extended_until.0 })
            }
            ServerMessage::Start(jobs) => {
                Message::Start(pb::StartJobs { jobs: jobs.iter().map(Into::into).collect() })
            }
            ServerMessage::Abort(jobs) => {
                Message::Abort(pb::AbortJobs { jobs: jobs.iter().map(Into::into).collect() })
            }
            ServerMessage::Interrupt { job_id, timeout, reason, text } => Message::Interrupt(pb::Interrupt {
                job_id: id_bytes(job_id.0),
                timeout: timeout.0,
                reason: reason.as_str().to_owned(),
                text: text.clone(),
            }),
            ServerMessage::Fail { job_id, error } => {
                Message::Fail(pb::Fail { job_id: id_bytes(job_id.0), error: Some(error.into()) })
            }
            ServerMessage::Release(jobs) => {
                Message::Release(pb::Release { job_ids: jobs.iter().map(|id| id_bytes(id.0)).collect() })
            }
            ServerMessage::ReadStderr { request_id, job_id, offset, limit } => {
                Message::ReadStderr(pb::ReadStderr {
                    request_id: *request_id,
                    job_id: id_bytes(job_id.0),
                    offset: *offset,
                    limit: *limit,
                })
            }
            ServerMessage::Shell { request_id, job_id, request } => Message::Shell(pb::Shell {
                request_id: *request_id,
                job_id: id_bytes(job_id.0),
                request: Some(request.into()),
            }),
        };
        pb::ServerMessage { message: Some(message) }
    }
}
impl TryFrom<pb::ServerMessage> for ServerMessage {
    type Error = Malformed;
    fn try_from(m: pb::ServerMessage) -> Result<ServerMessage, Malformed> {
        use pb::server_message::Message;
        Ok(match required("server message", m.message)? {
            Message::Welcome(w) => ServerMessage::Welcome {
                heartbeat_period: Span(w.heartbeat_period),
                job_uids: w.job_uids.map(JobUids::try_from).transpose()?,
            },
            Message::Refuse(error) => ServerMessage::Refuse(error.try_into()?),
            Message::Heard(h) => {
                ServerMessage::Heard { from: Span(h.from), extended_until: Time(h.extended_until) }
            }
            Message::Start(s) => ServerMessage::Start(all(s.jobs)?),
            Message::Abort(a) => ServerMessage::Abort(all(a.jobs)?),
            Message::Interrupt(i) => ServerMessage::Interrupt {
                job_id: job_id(&i.job_id)?,
                timeout: Span(i.timeout),
                reason: name_from("interruption reason", &i.reason)?,
                text: i.text,
            },
            Message::Fail(f) => ServerMessage::Fail {
                job_id: job_id(&f.job_id)?,
                error: required("error", f.error)?.try_into()?,
            },
            Message::Release(r) => {
                ServerMessage::Release(r.job_ids.iter().map(|bytes| job_id(bytes)).collect::<Result<_, _>>()?)
            }
            Message::ReadStderr(r) => ServerMessage::ReadStderr {
                request_id: r.request_id,
                job_id: job_id(&r.job_id)?,
                offset: r.offset,
                limit: r.limit,
            },
            Message::Shell(s) => ServerMessage::Shell {
                request_id: s.request_id,
                job_id: job_id(&s.job_id)?,
                request: required("shell request", s.request)?.try_into()?,
            },
        })
    }
}

impl From<&AbortJob> for pb::AbortJob {
    fn from(a: &AbortJob) -> pb::AbortJob {
        pb::AbortJob {
            job_id: id_bytes(a.job_id.0),
            reason: a.reason.as_str().to_owned(),
            text: a.text.clone(),
        }
    }
}
impl TryFrom<pb::AbortJob> for AbortJob {
    type Error = Malformed;
    fn try_from(a: pb::AbortJob) -> Result<AbortJob, Malformed> {
        Ok(AbortJob {
            job_id: job_id(&a.job_id)?,
            reason: name_from("abort reason", &a.reason)?,
            text: a.text,
        })
    }
}
