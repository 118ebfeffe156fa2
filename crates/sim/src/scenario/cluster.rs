//! `cluster` (simulator.md 3.1).

use super::{YEAR_MS, milliseconds};
use crate::dist::Dist;
use vocab::{Cpu, Resources, Span};
use yson::Value;
use yson::fields::{FieldError, Fields};

/// Equal nodes: `<name>-0`, `<name>-1`, ...
#[derive(Clone, Debug)]
pub struct NodeGroup {
    /// Its name.
    pub name: String,
    /// How many nodes.
    pub count: u64,
    /// What they are called; none: by the name of the group and their numbers.
    pub names: Vec<String>,
    /// Tags of each.
    pub tags: Vec<String>,
    /// What each has.
    pub limits: Resources,
    /// Bytes that jobs of a node may use together before some have to go; none: its limit of memory.
    pub physical_memory: Option<i64>,
    /// Divides durations.
    pub cpu_speed: f64,
    /// Of its own.
    pub heartbeat_period: Option<Span>,
    /// From the start to the first heartbeat, node by node; none: by the seed.
    pub heartbeat_phases: Vec<Span>,
    /// From the order to the start of the user's process, ms.
    pub job_start_delay: Dist,
    /// Bytes of disk, if they are counted.
    pub disk: Option<i64>,
    /// Nodes of a rack; each node carries the tag `rack-<number>`.
    pub rack_size: Option<u64>,
}

impl NodeGroup {
    /// What a node of the group is called.
    pub fn node_name(&self, number: u64) -> String {
        match self.names.get(number as usize) {
            Some(name) => name.clone(),
            None => format!("{}-{number}", self.name),
        }
    }

    /// Is a node of this name in the group?
    pub fn has_node(&self, node: &str) -> bool {
        if !self.names.is_empty() {
            return self.names.iter().any(|name| name == node);
        }
        let (group, number) = node.rsplit_once('-').unwrap_or_default();
        group == self.name && number.parse::<u64>().is_ok_and(|n| n < self.count)
    }
}

/// Nodes break down and come back.
#[derive(Clone, Debug)]
pub struct Failures {
    /// Mean time to the next failure of a node, ms.
    pub mtbf_ms: f64,
    /// Mean time to its repair, ms.
    pub mttr_ms: f64,
    /// Other means for single groups.
    pub per_group: Vec<(String, f64, f64)>,
}

pub(super) fn read(f: &mut Fields<'_>) -> Result<(Vec<NodeGroup>, Option<Failures>), FieldError> {
    let list = f.take_list("node_groups").required()?;
    let mut groups: Vec<NodeGroup> = Vec::new();
    for (i, value) in list.iter().enumerate() {
        let path = f.path_of(&format!("node_groups/{i}"));
        let map = value.as_map().ok_or_else(|| FieldError::expected(path.as_str(), "map", value))?;
        let mut fields = Fields::new(map, path);
        let group = read_group(&mut fields)?;
        if groups.iter().any(|g| g.name == group.name) {
            return Err(fields.error("name", &format!("{:?} is the name of another group", group.name)));
        }
        fields.finish()?;
        groups.push(group);
    }
    check_names(&groups).map_err(|(i, what)| f.error(&format!("node_groups/{i}/names"), &what))?;
    let failures = f.nested("failures", |f| {
        let (mtbf_ms, mttr_ms) = means(f)?;
        f.take_parsed("distribution", "\"exp\"", |s| (s == "exp").then_some(())).optional()?;
        let at = f.path_of("per_group");
        let per_group = f.nested_each("per_group", |_, f| means(f))?;
        for (name, _) in &per_group {
            if !groups.iter().any(|g| g.name == *name) {
                return Err(FieldError::new(format!("{at}/{name}"), "no such node group"));
            }
        }
        let per_group = per_group.into_iter().map(|(name, (b, r))| (name.to_owned(), b, r)).collect();
        Ok(Failures { mtbf_ms, mttr_ms, per_group })
    })?;
    Ok((groups, failures))
}

/// Names of nodes differ in the whole cluster.
fn check_names(groups: &[NodeGroup]) -> Result<(), (usize, String)> {
    for (i, group) in groups.iter().enumerate() {
        let others = || groups.iter().enumerate().filter(|(other, _)| *other != i);
        let taken = |name: &&String| others().any(|(_, other)| other.has_node(name));
        if let Some(name) = group.names.iter().find(taken) {
            return Err((i, format!("{name:?} is a node of another group")));
        }
    }
    Ok(())
}

fn means(f: &mut Fields<'_>) -> Result<(f64, f64), FieldError> {
    let mtbf = f.take_f64("node_mtbf_ms").within(1000.0..=1e15).required()?;
    Ok((mtbf, f.take_f64("node_mttr_ms").within(1000.0..=1e15).required()?))
}

fn read_group(f: &mut Fields<'_>) -> Result<NodeGroup, FieldError> {
    let name = f
        .take_str("name")
        .check("letters, digits, \"_\", \"-\" and \".\"", |s| {
            !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        })
        .required()?
        .to_owned();
    let limits = f
        .nested("resource_limits", read_resources)?
        .ok_or_else(|| f.error("resource_limits", "required, expected map"))?;
    let physical_memory = f.take_i64("physical_memory").within(0..=1 << 50).optional()?;
    if let Some(bytes) = physical_memory.filter(|bytes| *bytes < limits.memory) {
        let what = format!("expected at least the limit of memory ({}), found {bytes}", limits.memory);
        return Err(f.error("physical_memory", &what));
    }
    let job_start_delay = match f.take_value("job_start_delay").optional()? {
        Some(value) => Dist::read(&f.path_of("job_start_delay"), value)?,
        None => Dist::Const(0.0),
    };
    let mut disk = None;
    let list = f.take_list("disk").or(&[])?;
    for (i, medium) in list.iter().enumerate() {
        let path = f.path_of(&format!("disk/{i}"));
        let map = medium.as_map().ok_or_else(|| FieldError::expected(path.as_str(), "map", medium))?;
        let mut fields = Fields::new(map, path);
        fields
            .take_parsed("medium", "\"default\": nodes have one medium", |s| (s == "default").then_some(()))
            .required()?;
        disk = Some(fields.take_i64("limit").within(0..=i64::MAX / 4).required()?);
        fields.finish()?;
    }
    let names = read_names(f)?;
    let count = match names.len() as u64 {
        0 => f.take_u64("count").within(0..=1_000_000).required()?,
        named => f.take_u64("count").within(named..=named).or(named)?,
    };
    let phases = read_phases(f, count)?;
    Ok(NodeGroup {
        name,
        count,
        names,
        tags: f.take_str_list("tags").or(Vec::new())?.into_iter().map(str::to_owned).collect(),
        limits,
        physical_memory,
        cpu_speed: f.take_f64("cpu_speed").within(0.01..=100.0).or(1.0)?,
        heartbeat_period: milliseconds(f, "heartbeat_period", 100..=YEAR_MS)?,
        heartbeat_phases: phases,
        job_start_delay,
        disk,
        rack_size: f.take_u64("rack_size").within(1..=1_000_000).optional()?,
    })
}

fn read_phases(f: &mut Fields<'_>, count: u64) -> Result<Vec<Span>, FieldError> {
    let Some(list) = f.take_list("heartbeat_phases").optional()? else { return Ok(Vec::new()) };
    let phase = |value: &Value| {
        let ms = value.as_f64().filter(|ms| (0.0..=YEAR_MS as f64).contains(ms))?;
        Some(Span::from_micros((ms * 1000.0).round() as u64))
    };
    let phases: Option<Vec<Span>> = list.iter().map(phase).collect();
    phases.filter(|phases| phases.len() as u64 == count).ok_or_else(|| {
        let what = format!("expected {count} numbers of milliseconds, one for each node");
        f.error("heartbeat_phases", &what)
    })
}

fn read_names(f: &mut Fields<'_>) -> Result<Vec<String>, FieldError> {
    let names: Vec<String> =
        f.take_str_list("names").or(Vec::new())?.into_iter().map(str::to_owned).collect();
    let mut seen = std::collections::BTreeSet::new();
    match names.iter().find(|name| name.is_empty() || !seen.insert(name.as_str())) {
        Some(name) => {
            Err(f.error("names", &format!("expected names that differ, found {name:?} again or empty")))
        }
        None => Ok(names),
    }
}

/// Amounts by the product's names; what is not there is 0.
pub(crate) fn read_resources(f: &mut Fields<'_>) -> Result<Resources, FieldError> {
    let mut amount = |name: &str, max: i64| f.take_i64(name).within(0..=max).or(0);
    let mut resources = Resources {
        memory: amount("memory", 1 << 50)?,
        user_slots: amount("user_slots", 1_000_000)?,
        network: amount("network", 1_000_000)?,
        gpu: amount("gpu", 1_000_000)?,
        ..Resources::ZERO
    };
    resources.cpu = Cpu::from_f64(f.take_f64("cpu").within(0.0..=1e6).or(0.0)?);
    Ok(resources)
}
