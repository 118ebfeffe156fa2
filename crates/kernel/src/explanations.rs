//! Answers to "why": of an operation, and who lost what for whom.

use crate::command::OperationRef;
use crate::leases::wait_text;
use crate::nodes::Node;
use crate::{Body, Kernel};
use controller::Setback;
use scheduler::{PreemptionRecord, StarvationNotice};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use vocab::{Failure, JobId, OperationId, Span, Time, code};
use yson::{Map, Value, map};

/// Which preemptions are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreemptionQuery {
    /// Only of this tree.
    pub tree: Option<String>,
    /// Only of or for this operation.
    pub operation: Option<OperationId>,
    /// Only of operations of this pool.
    pub pool: Option<String>,
    /// At most so many, the newest.
    pub limit: Option<usize>,
}

impl PreemptionQuery {
    fn wants(&self, record: &PreemptionRecord) -> bool {
        let involves = |id: OperationId| {
            record.operation == id || record.cause.preemptor().is_some_and(|p| p.operation == id)
        };
        self.tree.as_deref().is_none_or(|tree| *record.tree == *tree)
            && self.pool.as_deref().is_none_or(|pool| *record.pool == *pool)
            && self.operation.is_none_or(involves)
    }
}

/// The newest beginnings and ends of starvation, of trees that want them (option
/// `enable_detailed_starvation_logs`).
#[derive(Default)]
pub(crate) struct StarvationLog(VecDeque<StarvationNotice>);

impl StarvationLog {
    const LIMIT: usize = 1_000;

    pub fn extend(&mut self, notices: Vec<StarvationNotice>) {
        self.0.extend(notices);
        let excess = self.0.len().saturating_sub(Self::LIMIT);
        self.0.drain(..excess);
    }

    /// Oldest first.
    pub fn of_tree(&self, tree: &str) -> Value {
        let notices = self.0.iter().filter(|notice| *notice.tree == *tree);
        let value = |notice: &StarvationNotice| -> Value {
            let event = match notice.ended {
                None => "operation_starvation_started",
                Some(_) => "operation_starvation_finished",
            };
            let map = map! {"time" => notice.time, "event" => event, "operation_id" => notice.operation};
            match notice.ended {
                None => map.into(),
                Some((reason, lasted)) => {
                    map.with("reason", reason.as_str()).with("duration", lasted.as_millis() as i64).into()
                }
            }
        };
        notices.map(value).collect::<Vec<_>>().into()
    }
}

/// Pauses that are told of one operation.
const SETBACKS_SHOWN: usize = 20;

/// Adds `job_aborts`, and a sentence for each behind the first line of `text`.
fn tell_setbacks(explanation: &mut Map, now: Time, setbacks: &[Setback<'_>]) {
    if setbacks.is_empty() {
        return;
    }
    let shown = &setbacks[..setbacks.len().min(SETBACKS_SHOWN)];
    let maps: Vec<Value> = shown.iter().map(|setback| setback_map(setback).into()).collect();
    let mut text: Vec<Value> = explanation.get("text").and_then(Value::as_list).unwrap_or_default().to_vec();
    let at = text.len().min(1);
    text.splice(at..at, shown.iter().map(|setback| setback_text(now, setback).into()));
    if shown.len() < setbacks.len() {
        let rest = setbacks.len() - shown.len();
        text.insert(
            at + shown.len(),
            format!("  {rest} more nodes pause for the same kind of reason").into(),
        );
    }
    explanation.insert("text", text);
    explanation.insert("job_aborts", maps);
    explanation.insert("job_abort_count", setbacks.len());
}

/// Adds `lease_waits`, and a sentence for each behind the first line of `text` (S19).
fn tell_lease_waits(explanation: &mut Map, waits: Vec<Map>) {
    if waits.is_empty() {
        return;
    }
    let mut text: Vec<Value> = explanation.get("text").and_then(Value::as_list).unwrap_or_default().to_vec();
    let at = text.len().min(1);
    text.splice(at..at, waits.iter().map(|wait| wait_text(wait).into()));
    explanation.insert("text", text);
    explanation.insert("lease_waits", waits.into_iter().map(Value::from).collect::<Vec<_>>());
}

/// Reasons of nodes without slots that are told of one operation, and the names of nodes with the same reason.
const REASONS_SHOWN: usize = 5;
const NODES_SHOWN: usize = 3;

/// Adds `disabled_nodes`, and a sentence for each reason behind the first line of `text` (S5).
fn tell_disabled_nodes<'a>(explanation: &mut Map, nodes: impl Iterator<Item = &'a Node>) {
    let without_slots = |tree: &Value| {
        tree.get("verdict").and_then(|v| v.get("reason")).and_then(Value::as_str) == Some(scheduler::NO_SLOTS)
    };
    let trees = explanation.get("trees").and_then(Value::as_map).cloned().unwrap_or_default();
    let trees: Vec<&[u8]> =
        trees.iter().filter(|(_, tree)| without_slots(tree)).map(|(name, _)| name).collect();
    if trees.is_empty() {
        return;
    }
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for node in nodes.filter(|node| node.tree.as_deref().is_some_and(|tree| trees.contains(&tree.as_bytes())))
    {
        if let Some(why) = node.why_no_slots() {
            reasons.entry(whole_message(&why)).or_default().push(&node.address);
        }
    }
    if reasons.is_empty() {
        return;
    }
    let sentence = |(why, nodes): (&String, &Vec<&str>)| {
        let names: Vec<String> = nodes.iter().take(NODES_SHOWN).map(|name| format!("\"{name}\"")).collect();
        let more = match nodes.len().saturating_sub(NODES_SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (nodes, offer) = if nodes.len() == 1 { ("Node", "offers") } else { ("Nodes", "offer") };
        format!("  {nodes} {}{more} {offer} no slots: {why}", names.join(", "))
    };
    let mut sentences: Vec<String> = reasons.iter().take(REASONS_SHOWN).map(sentence).collect();
    if let more @ 1.. = reasons.len().saturating_sub(REASONS_SHOWN) {
        sentences.push(format!("  {more} more reasons of other nodes: `millpond node list` has them"));
    }
    let maps: Vec<Value> = reasons
        .iter()
        .take(REASONS_SHOWN)
        .map(|(why, nodes)| {
            let names: Vec<Value> = nodes.iter().take(NODES_SHOWN).map(|name| Value::from(*name)).collect();
            map! {"reason" => why.as_str(), "nodes" => names, "node_count" => nodes.len()}.into()
        })
        .collect();
    let mut text: Vec<Value> = explanation.get("text").and_then(Value::as_list).unwrap_or_default().to_vec();
    let at = text.len().min(1);
    text.splice(at..at, sentences.into_iter().map(Value::from));
    explanation.insert("text", text);
    explanation.insert("disabled_nodes", maps);
}

fn setback_map(setback: &Setback<'_>) -> Map {
    let map = map! {"aborts" => i64::from(setback.aborts), "until" => setback.until};
    map.with_some("task_name", setback.task)
        .with_some("node", setback.node)
        .with_some("max_aborts_before_start", setback.limit.map(i64::from))
        .with_some("last_abort", setback.last.map(Failure::to_value))
}

fn setback_text(now: Time, setback: &Setback<'_>) -> String {
    let Setback { aborts, until, last, .. } = setback;
    let times = if *aborts == 1 { "once".to_owned() } else { format!("{aborts} times in a row") };
    let pause = match until.since(now) {
        Span::ZERO => "it is tried again now".to_owned(),
        rest => format!("it is tried again in {rest}"),
    };
    let last = last.map(|error| format!("; the last abort: {}", whole_message(error))).unwrap_or_default();
    match (setback.task, setback.node, setback.limit) {
        (Some(task), _, Some(limit)) => format!(
            "  No job of task \"{task}\" has started: its jobs were aborted {times}, {pause}; {limit} times fail the operation{last}"
        ),
        (_, node, _) => format!(
            "  Jobs on node \"{}\" were aborted {times}, {pause} there{last}",
            node.unwrap_or_default()
        ),
    }
}

/// The messages of an error and of what led to it.
fn whole_message(error: &Failure) -> String {
    let mut messages = vec![error.message.as_str()];
    let mut at = error;
    while let (Some(inner), true) = (at.inner_errors.first(), messages.len() < 5) {
        messages.push(&inner.message);
        at = inner;
    }
    messages.join(": ")
}

impl Kernel {
    /// `ExplainOperation`.
    pub(crate) fn explain_operation(&self, now: Time, operation: &OperationRef) -> Result<Body, Failure> {
        self.operation_explanation(now, self.find_operation(operation)?).map(Body::Value)
    }

    pub(crate) fn operation_explanation(&self, now: Time, id: OperationId) -> Result<Value, Failure> {
        if let Some(summary) = self.finished.get(id) {
            let text = format!("Operation {id} is {}: it takes no part in scheduling.", summary.state);
            return Ok(map! {
                "operation_id" => id, "time" => now, "state" => summary.state, "text" => vec![text],
                "trees" => yson::Map::new(),
            }
            .into());
        }
        let mut explanation = self.scheduler.explain(id, now)?.to_value();
        if let (Value::Map(map), Some(operation)) = (&mut explanation, self.operations.get(&id)) {
            map.insert("state", operation.state);
            tell_setbacks(map, now, &operation.controller.setbacks(now));
            tell_lease_waits(map, self.lease_waits(id));
            tell_disabled_nodes(map, self.nodes.iter());
        }
        Ok(explanation)
    }

    /// `ExplainJob`. What a job that is over has left is in its statistics.
    pub(crate) fn explain_job(&self, now: Time, job_id: JobId) -> Result<Body, Failure> {
        let job = self.jobs.get(job_id);
        let view = job.and_then(|job| self.operations.get(&job.operation)?.controller.job(job_id));
        let (Some(job), Some(view)) = (job, view) else {
            let text = format!(
                "No such job {job_id} is running; what a job that is over has left is in its statistics (get_job)"
            );
            return Err(Failure::coded(code::NO_SUCH_JOB, text).with("job_id", job_id));
        };
        let accounted = self.scheduler.allocation(job.allocation).map(|a| a.resource_usage);
        let explanation = view.explain(now, accounted.unwrap_or(view.granted()));
        Ok(Body::Value(explanation.with("pool", job.pool.as_str()).into()))
    }

    /// `GetPreemptionLog`: oldest first.
    pub(crate) fn preemptions(&self, query: &PreemptionQuery) -> Value {
        let limit = query.limit.unwrap_or(usize::MAX);
        let newest = self.scheduler.preemption_log().rev().filter(|record| query.wants(record)).take(limit);
        let mut records: Vec<&Arc<PreemptionRecord>> = newest.collect();
        records.reverse();
        records.into_iter().map(|r| self.preemption_map(r).into()).collect::<Vec<Value>>().into()
    }
}
