//! A live cluster asked for all that a simulation of its future begins with. It is only read.

use crate::args::SimAssumptions;
use crate::error::CliError;
use client::{Client, ClientError};
use sim::live::{Assumptions, Cluster, Operation, Pool, Tree, Written};
use std::path::Path;
use vocab::{Time, code};
use yson::ypath::escape_literal;
use yson::{Map, Value, map};

const ORCHID: &str = "//sys/scheduler/orchid/scheduler";
/// Completed jobs of an operation that are asked for: enough for a mean.
const COMPLETED_JOBS: i64 = 200;

/// Writes the cluster as it is now as a scenario into a directory.
pub(super) fn write(client: &Client, assumed: SimAssumptions, folder: &Path) -> Result<Written, CliError> {
    let cluster = ask(client)?;
    let assumed = Assumptions { job_duration: assumed.job_duration, duration: assumed.duration };
    sim::live::write(&cluster, &assumed, folder).map_err(|error| CliError::failed(error.to_string()))
}

pub(super) fn to_map(written: &Written) -> Map {
    map! {
        "nodes" => written.nodes,
        "operations" => written.operations,
        "running_jobs" => written.running_jobs,
        "pending_jobs" => written.pending_jobs,
        "guessed_tasks" => written.guessed_tasks,
    }
}

fn ask(client: &Client) -> Result<Cluster, CliError> {
    let default_tree = client.get("//sys/pool_trees/@default_tree", &[])?;
    let default_tree = default_tree.as_str().unwrap_or_default().to_owned();
    let mut trees = Vec::new();
    for name in client.list("//sys/pool_trees", &[])? {
        if let Some(name) = name.as_str() {
            trees.push(tree(client, name)?);
        }
    }
    let operations = operations(client)?;
    Ok(Cluster {
        taken: last_update(client)?,
        default_tree,
        scheduler_config: map_at(client, &format!("{ORCHID}/config"))?,
        controller_config: map_at(client, "//sys/controller_agents/config")?,
        nodes: map_at(client, &format!("{ORCHID}/nodes"))?,
        trees,
        operations,
    })
}

/// When shares were last updated: the simulation has its updates at the same moments.
fn last_update(client: &Client) -> Result<Time, CliError> {
    let told = client.get(&format!("{ORCHID}/last_fair_share_update_time"), &[])?;
    told.as_str().and_then(Time::parse).ok_or_else(|| {
        CliError::failed(format!("the server's last_fair_share_update_time is no time: {told:?}"))
    })
}

fn tree(client: &Client, name: &str) -> Result<Tree, CliError> {
    let path = format!("//sys/pool_trees/{}", escape_literal(name));
    let orchid = format!("{ORCHID}/pool_trees/{}", escape_literal(name));
    let mut pools = Vec::new();
    if let Value::Map(children) = client.get(&path, &[])?.into_bare() {
        below(client, &path, None, &children, &mut pools)?;
    }
    Ok(Tree {
        name: name.to_owned(),
        config: map_at(client, &format!("{path}/@config"))?,
        pools,
        orchid: map_at(client, &format!("{orchid}/pools"))?,
        allocations: map_at(client, &format!("{orchid}/allocations"))?,
    })
}

fn below(
    client: &Client,
    path: &str,
    parent: Option<&str>,
    children: &Map,
    pools: &mut Vec<Pool>,
) -> Result<(), CliError> {
    for (name, value) in children.iter() {
        let name = String::from_utf8_lossy(name).into_owned();
        let path = format!("{path}/{}", escape_literal(&name));
        let attributes = map_at(client, &format!("{path}/@"))?;
        pools.push(Pool { name: name.clone(), parent: parent.map(str::to_owned), attributes });
        if let Some(children) = value.as_map() {
            below(client, &path, Some(&name), children, pools)?;
        }
    }
    Ok(())
}

fn operations(client: &Client) -> Result<Vec<Operation>, CliError> {
    let mut all = Vec::new();
    for id in client.list(&format!("{ORCHID}/operations"), &[])? {
        let Some(id) = id.as_str() else { continue };
        let attributes = match client.get_operation(id, Some(Operation::ATTRIBUTES)) {
            Ok(attributes) => attributes,
            // It has ended since the list was made.
            Err(error) if error.contains_code(code::NO_SUCH_OPERATION) => continue,
            Err(error) => return Err(error.into()),
        };
        let filters = map! {"state" => "completed", "limit" => COMPLETED_JOBS};
        let reply = client.list_jobs(id, filters)?;
        let jobs = reply.get("jobs").and_then(Value::as_list).unwrap_or_default();
        let completed = jobs.iter().filter_map(Value::as_map).cloned().collect();
        all.push(Operation { attributes, completed });
    }
    Ok(all)
}

/// A map of the metadata tree; empty if nobody has set it.
fn map_at(client: &Client, path: &str) -> Result<Map, ClientError> {
    match client.get(path, &[]) {
        Ok(value) => match value.into_bare() {
            Value::Map(map) => Ok(map),
            _ => Ok(Map::new()),
        },
        Err(error) if error.contains_code(code::RESOLVE_ERROR) => Ok(Map::new()),
        Err(error) => Err(error),
    }
}
