//! What is kept of a finished job: everything that list_jobs and get_job show, in a compact form
//! for the archive.

use crate::job::{exec_attributes, identity_value};
use crate::statistics::{JobSamples, tree};
use std::ops::Range;
use vocab::{
    AbortReason, AllocationId, Failure, Guid, InterruptionReason, JobId, JobIdentity, JobPhase, JobState,
    JobStatistics, OperationId, Summary, Time,
};
use yson::{Map, Value};

/// A finished job.
#[derive(Clone, PartialEq, Debug)]
pub struct JobRecord {
    /// Which job.
    pub identity: JobIdentity,
    /// `completed`, `failed` or `aborted`.
    pub state: JobState,
    /// `host:port` of its node.
    pub address: String,
    /// When it was settled into its allocation.
    pub start_time: Time,
    /// When the user's process started.
    pub exec_start_time: Option<Time>,
    /// When it was over.
    pub finish_time: Time,
    /// Of failed and aborted jobs.
    pub error: Option<Failure>,
    /// Of aborted jobs.
    pub abort_reason: Option<AbortReason>,
    /// It was asked to stop.
    pub interruption_reason: Option<InterruptionReason>,
    /// It had to make room for this allocation of this operation.
    pub preempted_for: Option<(AllocationId, OperationId)>,
    /// The run of the same unit that was aborted for its memory last.
    pub predecessor: Option<JobId>,
    /// It was one of two jobs of its unit that ran at the same time: the id of the first of them.
    pub competition: Option<JobId>,
    /// Bytes of stderr; 0 if it is not kept.
    pub stderr_size: u64,
    /// Bytes of what it was reading when it failed; 0 if it is not kept.
    pub fail_context_size: u64,
    /// Of the operation's input: what it was given to read.
    pub rows: Option<Range<u64>>,
    /// Incarnation of the operation that it ran in.
    pub operation_incarnation: String,
    /// Rank in its gang.
    pub gang_rank: Option<u32>,
    /// Final statistics.
    pub samples: JobSamples,
    /// `vanilla` or `map`.
    pub job_type: String,
    /// In which it ran; of older records it is not known.
    pub pool: Option<String>,
    /// Its place on the node, if it had one and lived to tell.
    pub slot_index: Option<u32>,
}

/// Bytes that are not a record, or of a version that this program does not know.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("Malformed archive record of a job: {0}")]
pub struct MalformedRecord(pub String);

/// First element of an encoded record.
const VERSION: i64 = 2;

impl JobRecord {
    /// Element of list_jobs (http-api.md 10.1).
    pub fn to_value(&self) -> Map {
        let interruption = self.interruption_reason.map(|r| interruption_value(r, self.preempted_for));
        identity_value(&self.identity, &self.job_type, self.predecessor, self.competition)
            .with("state", self.state)
            .with("controller_state", self.state)
            .with("archive_state", self.state)
            .with("address", self.address.as_str())
            .with("addresses", yson::map! { "default" => self.address.as_str() })
            .with("start_time", self.start_time)
            .with("finish_time", self.finish_time)
            .with("progress", 1.0)
            .with_some("pool", self.pool.as_deref())
            .with_some("exec_attributes", self.slot_index.map(exec_attributes))
            .with("operation_incarnation", self.operation_incarnation.as_str())
            .with_some("gang_rank", self.gang_rank)
            .with_some("stderr_size", (self.stderr_size > 0).then_some(self.stderr_size))
            .with_some("fail_context_size", (self.fail_context_size > 0).then_some(self.fail_context_size))
            .with_some("error", self.error.as_ref().map(Failure::to_value))
            .with_some("abort_reason", self.abort_reason)
            .with_some("interruption_info", interruption)
            .with("brief_statistics", tree::brief(&self.samples))
            .with("is_stale", false)
            .with("events", self.events())
    }

    /// What the node tells of the end of a job that was over already: its last figures, and its place there. The times
    /// are what they were, unless it had not been known that the process ran.
    pub fn complete(&mut self, start: Option<Time>, measured: &JobStatistics, slot_index: Option<u32>) {
        self.slot_index = slot_index.or(self.slot_index);
        self.exec_start_time = self.exec_start_time.or(start.filter(|start| *start <= self.finish_time));
        if *measured != JobStatistics::default() {
            self.samples = self.samples.measured_again(measured);
        }
    }

    /// The `statistics` of get_job.
    pub fn statistics(&self) -> Map {
        tree::of_job(&self.samples)
    }

    /// The `events` of get_job.
    pub fn events(&self) -> Value {
        events_value(
            self.start_time,
            self.exec_start_time,
            JobPhase::Finished,
            Some((self.finish_time, self.state)),
        )
    }

    /// Compact form: a list in binary YSON, fields in the order of the struct.
    pub fn encode(&self) -> Vec<u8> {
        let id = &self.identity;
        let guid = |g: Guid| Value::String(g.to_bytes().to_vec());
        let custom = self.samples.custom.iter().map(|(name, s)| -> Value {
            vec![
                name.as_str().into(),
                s.sum.into(),
                s.count.into(),
                s.min.into(),
                s.max.into(),
                Value::Int(s.last),
            ]
            .into()
        });
        let list: Vec<Value> = vec![
            VERSION.into(),
            guid(id.job_id.0),
            guid(id.allocation_id.0),
            guid(id.operation_id.0),
            id.tree.as_ref().into(),
            id.task.as_ref().into(),
            id.cookie.into(),
            id.job_index.into(),
            id.task_job_index.into(),
            self.state.into(),
            self.address.as_str().into(),
            self.start_time.as_micros().into(),
            self.exec_start_time.map(Time::as_micros).into(),
            self.finish_time.as_micros().into(),
            self.error.as_ref().map(Failure::to_value).into(),
            self.abort_reason.into(),
            self.interruption_reason.into(),
            self.stderr_size.into(),
            self.operation_incarnation.as_str().into(),
            self.gang_rank.into(),
            Value::String(self.samples.pack_system()),
            custom.collect::<Vec<_>>().into(),
            self.preempted_for.map(|(a, o)| vec![guid(a.0), guid(o.0)]).into(),
            self.predecessor.map(|job| guid(job.0)).into(),
            self.competition.map(|job| guid(job.0)).into(),
            self.job_type.as_str().into(),
            self.fail_context_size.into(),
            self.rows.as_ref().map(|rows| vec![Value::from(rows.start), rows.end.into()]).into(),
            self.pool.as_deref().into(),
            self.slot_index.into(),
        ];
        yson::to_binary(&list.into())
    }

    /// Inverse of [`JobRecord::encode`].
    pub fn decode(bytes: &[u8]) -> Result<JobRecord, MalformedRecord> {
        let value = yson::parse_record(bytes).map_err(|e| MalformedRecord(e.to_string()))?;
        let fields = value.as_list().ok_or_else(|| MalformedRecord("it is not a list".to_owned()))?;
        match fields.first().and_then(Value::as_i64) {
            Some(VERSION) => {}
            other => return Err(MalformedRecord(format!("version {other:?}, expected {VERSION}"))),
        }
        let mut at = 0;
        let mut next = || {
            at += 1;
            fields.get(at)
        };
        JobRecord::from_fields(&mut next)
            .ok_or_else(|| MalformedRecord(format!("field {at} is missing or of a wrong type")))
    }

    fn from_fields<'v>(next: &mut dyn FnMut() -> Option<&'v Value>) -> Option<JobRecord> {
        let guid = |v: &Value| Some(Guid::from_bytes(v.as_bytes()?.try_into().ok()?));
        let text = |v: &Value| v.as_str().map(str::to_owned);
        let identity = JobIdentity {
            job_id: JobId(guid(next()?)?),
            allocation_id: AllocationId(guid(next()?)?),
            operation_id: OperationId(guid(next()?)?),
            tree: next()?.as_str()?.into(),
            task: next()?.as_str()?.into(),
            cookie: next()?.as_u64()?.try_into().ok()?,
            job_index: next()?.as_u64()?,
            task_job_index: next()?.as_u64()?,
            ticket: None,
        };
        Some(JobRecord {
            identity,
            state: next()?.as_str()?.parse().ok()?,
            address: text(next()?)?,
            start_time: Time(next()?.as_u64()?),
            exec_start_time: optional(next()?, |v| v.as_u64().map(Time))?,
            finish_time: Time(next()?.as_u64()?),
            error: optional(next()?, |v| v.as_map().map(|_| Failure::from_value(v)))?,
            abort_reason: optional(next()?, |v| v.as_str()?.parse().ok())?,
            interruption_reason: optional(next()?, |v| v.as_str()?.parse().ok())?,
            stderr_size: next()?.as_u64()?,
            operation_incarnation: text(next()?)?,
            gang_rank: optional(next()?, |v| v.as_u64()?.try_into().ok())?,
            samples: {
                let system = next()?.as_bytes()?;
                let custom = next()?.as_list()?.iter().map(custom_from).collect::<Option<_>>()?;
                JobSamples::unpack_system(system, custom)?
            },
            preempted_for: optional(next()?, |v| {
                let [allocation, operation] = v.as_list()? else { return None };
                Some((AllocationId(guid(allocation)?), OperationId(guid(operation)?)))
            })?,
            predecessor: optional(next()?, |v| guid(v).map(JobId))?,
            // Records of older programs end here.
            competition: match next() {
                None => None,
                Some(v) => optional(v, |v| guid(v).map(JobId))?,
            },
            // None of these is in records of older programs, which knew of no other type.
            job_type: next().map_or(Some("vanilla".to_owned()), text)?,
            fail_context_size: next().map_or(Some(0), Value::as_u64)?,
            rows: match next() {
                None => None,
                Some(v) => optional(v, |v| {
                    let [start, end] = v.as_list()? else { return None };
                    Some(start.as_u64()?..end.as_u64()?)
                })?,
            },
            pool: next().map_or(Some(None), |v| optional(v, text))?,
            slot_index: next().map_or(Some(None), |v| optional(v, |v| v.as_u64()?.try_into().ok()))?,
        })
    }
}

/// `interruption_info` of a job (http-api.md 10.1).
pub(crate) fn interruption_value(
    reason: InterruptionReason,
    preempted_for: Option<(AllocationId, OperationId)>,
) -> Map {
    let preemptor = preempted_for.map(
        |(allocation, operation)| yson::map! {"allocation_id" => allocation, "operation_id" => operation},
    );
    yson::map! {"interruption_reason" => reason}.with_some("preempted_for", preemptor)
}

/// `#` is an absent value; anything else must be readable.
fn optional<T>(v: &Value, read: impl FnOnce(&Value) -> Option<T>) -> Option<Option<T>> {
    if v.is_entity() { Some(None) } else { read(v).map(Some) }
}

fn custom_from(v: &Value) -> Option<(String, Summary)> {
    let [name, sum, count, min, max, last] = v.as_list()? else { return None };
    let summary = Summary {
        sum: sum.as_i64()?,
        count: count.as_i64()?,
        min: min.as_i64()?,
        max: max.as_i64()?,
        last: last.as_i64()?,
    };
    Some((name.as_str()?.to_owned(), summary))
}

/// `events` of a job: one entry per thing that the controller has seen.
pub(crate) fn events_value(
    start: Time,
    exec_start: Option<Time>,
    phase: JobPhase,
    end: Option<(Time, JobState)>,
) -> Value {
    let event = |time: Time, state: JobState, phase: JobPhase| -> Value {
        yson::map! {"time" => time, "state" => state, "phase" => phase}.into()
    };
    let mut events = vec![event(start, JobState::Waiting, JobPhase::Created)];
    if let Some(time) = exec_start {
        let phase = if end.is_some() { JobPhase::Running } else { phase };
        events.push(event(time, JobState::Running, phase));
    }
    if let Some((time, state)) = end {
        events.push(event(time, state, phase));
    }
    Value::List(events)
}
