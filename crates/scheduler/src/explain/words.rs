//! An explanation in plain English.

use super::{Advice, Explanation, NodeReasons, Numbers, Starving, TreeExplanation, Verdict};
use crate::preemption::{LimitedElement, PreemptionPriority};
use crate::reasons::Deactivation;
use std::fmt;
use vocab::{Cpu, RESOURCES, Resource, Resources, Span, Time};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Operation {}", self.operation)?;
        for tree in &self.trees {
            tree.write(f, self.time)?;
        }
        Ok(())
    }
}

impl TreeExplanation {
    fn write(&self, f: &mut fmt::Formatter<'_>, now: Time) -> fmt::Result {
        writeln!(f, "In pool \"{}\" of tree \"{}\": {}", self.pool, self.tree, self.verdict.text(now))?;
        writeln!(f, "  {}", self.numbers)?;
        if let Some(starving) = &self.starvation {
            writeln!(f, "  {}", starving.text(now))?;
        }
        if let Some(nodes) = &self.nodes {
            writeln!(f, "  {nodes}")?;
        }
        if self.loss_count > 0 {
            writeln!(
                f,
                "  {} taken away from it lately; the newest:",
                plural(self.loss_count, "allocation was", "allocations were")
            )?;
        }
        for record in &self.losses {
            writeln!(
                f,
                "    {} ago on node \"{}\", {}: {}",
                spell(now.since(record.time)),
                record.node,
                some(&record.resources),
                record.reason()
            )?;
        }
        for advice in &self.advice {
            writeln!(f, "  {}", advice.text(now))?;
        }
        Ok(())
    }
}

fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// An amount with its unit.
fn amount(r: Resource, raw: i64) -> String {
    match r {
        Resource::Cpu if raw == 100 => "1 core".to_owned(),
        Resource::Cpu => format!("{} cores", Cpu(raw)),
        Resource::UserSlots => plural(raw.max(0) as usize, "slot", "slots"),
        Resource::Gpu => format!("{raw} GPU"),
        Resource::Memory => bytes(raw),
        Resource::Network => format!("{raw} of network"),
    }
}

fn bytes(n: i64) -> String {
    const UNITS: [(i64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(size, _)| n >= *size) {
        Some((size, unit)) if n % size == 0 => format!("{} {unit}", n / size),
        Some((size, unit)) => format!("{:.1} {unit}", n as f64 / *size as f64),
        None => format!("{n} bytes"),
    }
}

/// A duration as people say it.
fn spell(span: Span) -> String {
    match span.as_secs_f64() {
        s if s < 180.0 => format!("{} s", (s * 10.0).round() / 10.0),
        s if s < 7_200.0 => format!("{} min", (s / 60.0).round()),
        s => format!("{} h", (s / 360.0).round() / 10.0),
    }
}

/// Amounts that are not zero.
fn some(resources: &Resources) -> String {
    let parts: Vec<String> = RESOURCES
        .into_iter()
        .filter(|r| resources.raw(*r) != 0)
        .map(|r| amount(r, resources.raw(r)))
        .collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

/// Amounts that are limited at all.
fn limited(limits: &Resources) -> String {
    let finite = |r: &Resource| limits.raw(*r) < Resources::INFINITE.raw(*r);
    let parts: Vec<String> = RESOURCES.into_iter().filter(finite).map(|r| amount(r, limits.raw(r))).collect();
    parts.join(", ")
}

fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = |n: i64| plural(n.max(0) as usize, "allocation", "allocations");
        write!(f, "It has {}", n(self.running))?;
        if self.leaving > 0 {
            write!(f, " and is losing {}", self.leaving)?;
        }
        write!(
            f,
            ", wants {} more; usage {} of the cluster, fair share {}, demand {}.",
            self.wanted,
            percent(self.usage_share),
            percent(self.fair_share),
            percent(self.demand_share)
        )?;
        let [protected, aggressively, preemptible] = self.groups;
        if self.running > 0 && self.graceful {
            let safe = protected + aggressively;
            write!(
                f,
                " Of its allocations {safe} are within its share and safe; {preemptible} are above it and are asked \
                 to go."
            )?;
        } else if self.running > 0 {
            write!(
                f,
                " Of its allocations {protected} are protected, {aggressively} give way only to aggressively \
                 starving ones, {preemptible} to any starving one."
            )?;
        }
        Ok(())
    }
}

impl Verdict {
    fn text(&self, now: Time) -> String {
        match self {
            Verdict::WaitsForPool { pool, limit, running, ahead } => format!(
                "it waits to run: {} in pool \"{pool}\", at most {limit} may; {} before it in the queue.",
                plural((*running).max(0) as usize, "operation runs", "operations run"),
                plural(*ahead, "operation is", "operations are")
            ),
            Verdict::NotRunning => "it is not running yet, so it takes no part in scheduling.".to_owned(),
            Verdict::Suspended => "it is suspended.".to_owned(),
            Verdict::NothingToStart => "all that it needs is started.".to_owned(),
            Verdict::BehindInFifo { index, limit } => format!(
                "it is too far behind in its FIFO pool{}: without a fair share only the first {limit} are looked at.",
                index.map(|i| format!(" (number {})", i + 1)).unwrap_or_default()
            ),
            Verdict::WaitsForUpdate => "its demand is new: the next fair-share update counts it.".to_owned(),
            Verdict::NoNodes => "the tree has no nodes.".to_owned(),
            Verdict::NoSlots { nodes: 1 } => {
                "jobs are disabled on the only node that it may use, or it offers no slots: `millpond node list` says why.".to_owned()
            }
            Verdict::NoSlots { nodes } => {
                format!("jobs are disabled on all {nodes} nodes that it may use, or they offer no slots: `millpond node list` says why.")
            }
            Verdict::NoMatchingNode { filter, element } => {
                format!("no node matches the filter \"{filter}\" of {}.", whose(element))
            }
            Verdict::TooLarge { needed, short } if short.is_empty() => {
                format!("no node is large enough for one allocation ({}) in all resources.", some(needed))
            }
            Verdict::TooLarge { needed, short } => {
                let short: Vec<String> = short.iter().map(|(r, most)| amount(*r, *most)).collect();
                format!(
                    "no node is large enough for one allocation ({}): the largest it may use has {}.",
                    some(needed),
                    short.join(", ")
                )
            }
            Verdict::LimitTooSmall { element, limits, needed } => format!(
                "the limits of {} ({}) are smaller than one allocation ({}).",
                whose(element),
                limited(limits),
                some(needed)
            ),
            Verdict::LimitReached { element, limits, usage, needed } => format!(
                "the limits of {} ({}) are reached: {} in use, one allocation needs {}.",
                whose(element),
                limited(limits),
                some(usage),
                some(needed)
            ),
            Verdict::Backoff { until } => format!(
                "its controller could not use a place a moment ago; it is tried again in {}.",
                spell(until.since(now))
            ),
            Verdict::GracefulHasItsShare => {
                "it has its fair share, and a graceful operation gets nothing above it.".to_owned()
            }
            Verdict::HasItsShare => "the nodes are taken, and it has its fair share.".to_owned(),
            Verdict::BelowShare => {
                "the nodes are taken. It is entitled to more, but has not waited long enough to have others \
                 preempted."
                    .to_owned()
            }
            Verdict::Preempts { priority, for_ancestor } => {
                let whom = match priority {
                    PreemptionPriority::Aggressive => "all that is not protected",
                    _ => "what others have above their fair share",
                };
                let why = match for_ancestor {
                    Some(pool) => format!("its pool \"{pool}\" starves"),
                    None => "it starves".to_owned(),
                };
                format!("the nodes are taken; {why}, so {whom} is preempted for it.")
            }
            Verdict::CannotPreempt { priority, for_ancestor } => {
                let whom = match priority {
                    PreemptionPriority::Aggressive => "all that is not protected",
                    _ => "what others have above their fair share",
                };
                let why = match for_ancestor {
                    Some(pool) => format!("its pool \"{pool}\" starves"),
                    None => "it starves".to_owned(),
                };
                format!(
                    "the nodes are taken; {why}, but {whom} is not enough to make room for it on any node."
                )
            }
            Verdict::Starts { nodes } => format!(
                "there is room on {}: something is started in the next pass.",
                plural(*nodes, "node", "nodes")
            ),
        }
    }
}

fn whose(element: &LimitedElement) -> String {
    match element {
        LimitedElement::Operation(_) => "the operation itself".to_owned(),
        LimitedElement::Pool(name) => format!("pool \"{name}\""),
    }
}

impl Starving {
    fn text(&self, now: Time) -> String {
        let below = format!("Below its fair share for {}", spell(now.since(self.below_since)));
        let in_time = |at: Time| {
            if at > now { format!("in {}", spell(at.since(now))) } else { "at the next update".to_owned() }
        };
        match (self.since, self.aggressively, self.aggressive_timeout) {
            (None, ..) => format!("{below}; it starves {}.", in_time(self.below_since + self.timeout)),
            (Some(since), true, _) => {
                format!("{below}, aggressively starving for {}.", spell(now.since(since)))
            }
            (Some(since), false, Some(timeout)) => format!(
                "{below}, starving for {}; aggressively {}.",
                spell(now.since(since)),
                in_time(self.below_since + timeout)
            ),
            (Some(since), false, None) => format!("{below}, starving for {}.", spell(now.since(since))),
        }
    }
}

impl fmt::Display for NodeReasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut add = |n: usize, text: String| {
            if n > 0 {
                parts.push(format!("{n} {text}"));
            }
        };
        add(self.ready, "with room for it".to_owned());
        add(self.waiting, "where an allocation waits for resources".to_owned());
        add(self.offline, "offline".to_owned());
        add(self.disabled, "with jobs disabled or without slots".to_owned());
        add(self.no_spare, "without the spare resources that scheduling wants to see".to_owned());
        for (reason, n) in &self.by_reason {
            add(*n, self.reason_text(*reason));
        }
        write!(f, "Of {}: {}.", plural(self.total, "node", "nodes"), parts.join("; "))
    }
}

impl NodeReasons {
    fn reason_text(&self, reason: Deactivation) -> String {
        match reason {
            Deactivation::MinNeededResourcesUnsatisfied => {
                let short: Vec<String> = self.short.iter().map(|(r, n)| format!("{r} on {n}")).collect();
                format!("with too little free ({})", short.join(", "))
            }
            Deactivation::UnmatchedSchedulingTag => "that filters exclude".to_owned(),
            Deactivation::ResourceLimitsExceeded => "where limits of pools stop it".to_owned(),
            Deactivation::RecentScheduleAllocationFailed => "that it leaves alone for a while".to_owned(),
            Deactivation::ScheduleAllocationFailed => "where no kind of its jobs fits".to_owned(),
            other => format!("passed over ({other})"),
        }
    }
}

impl Advice {
    fn text(&self, now: Time) -> String {
        match self {
            Advice::RaiseRunningLimit { pool, to } => format!(
                "To change that: others in pool \"{pool}\" finish, or its max_running_operation_count is at least {to}."
            ),
            Advice::Resume => "To change that: resume it.".to_owned(),
            Advice::RaiseLimit { element, in_use, resource, to } => {
                let finish = match (in_use, element) {
                    (false, _) => "",
                    (true, LimitedElement::Operation(_)) => "its own jobs finish, or ",
                    (true, LimitedElement::Pool(_)) => "others finish, or ",
                };
                format!(
                    "To change that: {finish}the limit of {} for {resource} is at least {}.",
                    whose(element),
                    amount(*resource, *to)
                )
            }
            Advice::NeedLess { resource, at_most } => format!(
                "To change that: its jobs ask for at most {}, or a larger node comes.",
                amount(*resource, *at_most)
            ),
            Advice::LowerSpare => {
                "To change that: lower min_spare_allocation_resources_on_node, an option of the \
                                   scheduler: nodes with less free are not looked at."
                    .to_owned()
            }
            Advice::OthersFinish => {
                "To change that: others finish; they are protected from preemption.".to_owned()
            }
            Advice::MatchFilter { filter } => {
                format!("To change that: change the filter, or a node comes that matches \"{filter}\".")
            }
            Advice::EnableNodes => "To change that: jobs are enabled on a node, or nodes come.".to_owned(),
            Advice::AddNodes => "To change that: nodes must come.".to_owned(),
            Advice::MoreShare => {
                "To change that: others finish, or its pool is given a guarantee or a larger weight."
                    .to_owned()
            }
            Advice::Wait { until: Some(at) } if *at > now => {
                format!("Nothing needs to be done before {} have passed.", spell(at.since(now)))
            }
            Advice::Wait { .. } => "Nothing needs to be done: it is a matter of time.".to_owned(),
            Advice::EnableAggressiveStarvation => {
                "If it takes too long: enable_aggressive_starvation of its pool lets it preempt more."
                    .to_owned()
            }
        }
    }
}
