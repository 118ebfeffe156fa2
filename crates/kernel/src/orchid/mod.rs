//! `//sys/scheduler/orchid`: the state of the scheduler as a tree (http-api.md 11). Everything comes
//! from the newest snapshot, so a look never holds up a decision; only what a path asks for is built.
//!
//! Here are the root and the scheduler's own values, in [`trees`] the pool trees, in [`large`] what of them is made by
//! others, in [`allocations`] who holds what on which node.

mod allocations;
mod large;
mod trees;

pub use large::SnapshotQuery;

use crate::Kernel;
use crate::mounts::{dressed, missing, typed};
use cypress::walk::{value_get, value_list};
use cypress::{GetOptions, Mounted};
use scheduler::TreeSnapshot;
use vocab::{Failure, OperationId, Resources, Time};
use yson::ypath::Step;
use yson::{Map, Value};

/// How much of what is found is wanted.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    /// These fields of pools and operations; all when absent.
    fields: Option<&'a [&'a str]>,
    /// At most so many of the pools or operations of one map.
    children: usize,
}

impl Wanted<'_> {
    /// A map of pools or operations; no more of them are made than wanted.
    fn of(self, children: impl Iterator<Item = (String, Value)>) -> Value {
        let mut children = children;
        let map = Value::Map(children.by_ref().take(self.children).collect());
        match children.next() {
            Some(_) => map.with_attributes(yson::map! {"incomplete" => true}),
            None => map,
        }
    }
}

/// A value and how many keys lead to it. None: the key after those does not exist.
type Found = (Option<Value>, usize);

impl Kernel {
    pub(crate) fn get_orchid(
        &self,
        now: Time,
        at: &Mounted,
        options: &GetOptions,
        fields: Option<&[String]>,
    ) -> Result<Value, Failure> {
        if let [Step::Attribute(_) | Step::AllAttributes, ..] = at.rest.as_slice() {
            return self.tree.get(&at.as_place(), options);
        }
        let fields: Option<Vec<&str>> = fields.map(|f| f.iter().map(String::as_str).collect());
        let wanted = Wanted { fields: fields.as_deref(), children: options.max_size.unwrap_or(usize::MAX) };
        let keys: Vec<String> = at
            .rest
            .iter()
            .map_while(|step| step.key().map(|k| String::from_utf8_lossy(&k).into_owned()))
            .collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let (value, used) = self.orchid_node(now, &keys, wanted)?;
        let path = self.tree.path(at.node);
        let path = used_path(&path, &keys[..used]);
        match value {
            Some(value) => {
                let value =
                    typed(value_get(&value, &path, &at.rest[used..])?.into_owned(), &options.attributes);
                // What is inside are no nodes.
                let own = if at.rest.is_empty() { options.attributes.as_slice() } else { &[] };
                Ok(dressed(value, own, || self.tree.attributes(at.node, own)))
            }
            None => Err(match at.rest.get(used) {
                Some(step) => missing(&path, step),
                None => Failure::resolve(format!("{path} does not exist")).with("path", path),
            }),
        }
    }

    pub(crate) fn list_orchid(
        &self,
        now: Time,
        at: &Mounted,
        options: &GetOptions,
    ) -> Result<Value, Failure> {
        // Fields are not needed to list names: ask for none; and for one name more, to see whether it is there.
        let max_size = options.max_size.map(|size| size.saturating_add(1));
        let value = self.get_orchid(now, at, &GetOptions { max_size, ..GetOptions::default() }, Some(&[]))?;
        let keys = value_list(&value, &self.tree.show(&at.as_place()), &[])?;
        let all = keys.into_iter().map(|k| String::from_utf8_lossy(&k).into_owned());
        Ok(crate::mounts::names(all, &GetOptions { attributes: Vec::new(), ..options.clone() }, |_| {
            Map::new()
        }))
    }

    /// The narrowest value on the way of `keys`.
    fn orchid_node(&self, now: Time, keys: &[&str], wanted: Wanted<'_>) -> Result<Found, Failure> {
        Ok(match keys {
            [] => {
                let scheduler = self.orchid_node(now, &["scheduler"], wanted)?.0;
                (Some(yson::map! { "scheduler" => scheduler, "service" => self.orchid_service() }.into()), 0)
            }
            ["service", ..] => (Some(self.orchid_service()), 1),
            ["scheduler"] => {
                let mut map: Map = SCALARS
                    .iter()
                    .filter_map(|name| Some((*name, self.orchid_scheduler_value(name)?)))
                    .collect();
                // Large ones are opaque from above: they are there when asked for by name.
                for name in [
                    "operations",
                    "operation_explanations",
                    "nodes",
                    "pool_trees",
                    "scheduling_info_per_pool_tree",
                ] {
                    map.insert(name, Value::Entity);
                }
                (Some(map.into()), 1)
            }
            ["scheduler", "operations" | "operation_explanations"] => {
                let all = self.operations.keys().map(|id| (id.to_string(), Value::Entity));
                (Some(wanted.of(all)), 2)
            }
            ["scheduler", "operation_explanations", name, ..] => {
                let id = name
                    .parse()
                    .ok()
                    .filter(|id| self.operations.contains_key(id) || self.finished.contains(*id));
                match id {
                    Some(id) => (Some(self.operation_explanation(now, id)?), 3),
                    None => (None, 2),
                }
            }
            ["scheduler", "operations", name, ..] => (self.orchid_operation(now, name), 3).or_parent(2),
            ["scheduler", "nodes"] => {
                let all: Map =
                    self.nodes.iter().map(|n| (n.address.as_str(), self.orchid_exec_node(n))).collect();
                (Some(all.into()), 2)
            }
            ["scheduler", "nodes", address, "allocations", ..] => {
                (self.allocations_on_node(now, address), 4).or_parent(2)
            }
            ["scheduler", "nodes", address, ..] => {
                (self.nodes.get(address).map(|n| self.orchid_exec_node(n)), 3).or_parent(2)
            }
            ["scheduler", "pool_trees"] => {
                let snapshot = self.scheduler.snapshot();
                let all: Map = snapshot.trees().map(|t| (&*t.name, Value::Entity)).collect();
                (Some(all.into()), 2)
            }
            ["scheduler", "pool_trees", tree, rest @ ..] => match self.scheduler.snapshot().tree(tree) {
                Some(tree) => self.orchid_tree(now, tree, rest, wanted, 3)?,
                None => (None, 2),
            },
            ["scheduler", "scheduling_info_per_pool_tree"] => {
                let snapshot = self.scheduler.snapshot();
                let all: Map = snapshot.trees().map(|t| (&*t.name, Value::Entity)).collect();
                (Some(all.into()), 2)
            }
            ["scheduler", "scheduling_info_per_pool_tree", tree, rest @ ..] => {
                match (self.scheduler.snapshot().tree(tree), rest) {
                    (None, _) => (None, 2),
                    (Some(tree), []) => {
                        let (value, used) = self.orchid_tree(now, tree, &[], wanted, 3)?;
                        let map = value.as_ref().and_then(Value::as_map).cloned().unwrap_or_default();
                        (Some(map.with("fair_share_info", Value::Entity).into()), used)
                    }
                    (Some(tree), ["fair_share_info", rest @ ..]) => {
                        self.orchid_tree(now, tree, rest, wanted, 4)?
                    }
                    (Some(tree), rest) => self.orchid_tree(now, tree, rest, wanted, 3)?,
                }
            }
            ["scheduler", name, ..] => (self.orchid_scheduler_value(name), 2).or_parent(1),
            [_, ..] => (None, 0),
        })
    }

    fn orchid_service(&self) -> Value {
        yson::map! { "version" => self.config.version.as_str(), "start_time" => self.started }.into()
    }

    /// Small values directly below `scheduler`.
    fn orchid_scheduler_value(&self, name: &str) -> Option<Value> {
        Some(match name {
            "connected" => true.into(),
            "default_pool_tree" | "default_fair_share_tree" => self.pools.default_tree.as_str().into(),
            "cell" | "cluster" => {
                let snapshot = self.scheduler.snapshot();
                let sum = |f: fn(&TreeSnapshot) -> Resources| {
                    snapshot.trees().fold(Resources::ZERO, |a, t| a + f(t))
                };
                let online = self.nodes.iter().filter(|n| n.key.is_some()).count();
                yson::map! {
                    "resource_limits" => sum(|t| t.resource_limits).to_value(),
                    "resource_usage" => sum(|t| t.resource_usage).to_value(),
                    "exec_node_count" => online,
                    "total_node_count" => self.nodes.iter().count(),
                    "resource_limits_by_tags" => Map::new(),
                }
                .into()
            }
            "config" => self.scheduler.config().effective().into(),
            "last_fair_share_update_time" => self.periodic.last_update.into(),
            "suspicious_jobs" => Map::new().into(),
            "controller_agents" => {
                let ids: Vec<Value> = self.operations.keys().map(|id| (*id).into()).collect();
                let agent = yson::map! {
                    "state" => "registered",
                    "incarnation_id" => self.config.life.to_string(),
                    "operation_ids" => ids,
                };
                yson::map! { self.config.address.as_str() => agent }.into()
            }
            "alerts" => self.alerts(),
            "invariants" => self.audit.to_map().into(),
            _ => return None,
        })
    }

    /// Alerts of the scheduler, `//sys/scheduler/@alerts`.
    pub(crate) fn alerts(&self) -> Value {
        let list: Vec<Value> = self.all_alerts().map(|error| error.to_value()).collect();
        list.into()
    }

    pub(crate) fn alert_count(&self) -> usize {
        self.all_alerts().count()
    }

    fn all_alerts(&self) -> impl Iterator<Item = Failure> {
        self.scheduler
            .alerts()
            .into_iter()
            .map(|a| a.error.with("alert_type", a.name))
            .chain(self.audit.alert().map(|error| error.with("alert_type", "invariant_violated")))
            .chain(self.not_restored.alert().map(|error| error.with("alert_type", "operations_not_restored")))
            .chain(self.store_failing_alert())
            .chain(self.garbage.alert().map(|error| error.with("alert_type", "garbage_collection_held")))
            .chain(self.events.alerts())
            .chain(self.config.alerts.iter().cloned())
            .chain(self.alerts_of_lost_contents())
            .chain(self.alerts_of_leases())
            .chain(self.insecure_links_alert())
            .chain(self.alert_of_foreign_reports())
            .chain(self.alert_of_oversized_uploads())
            .chain(self.unconfirmed_identities_alert(self.events.now()))
            .chain(self.alerts_of_accounts())
    }

    /// Accounts that have more than their limits. New nodes are refused there; an administrator can make room or raise
    /// the limit.
    fn alerts_of_accounts(&self) -> impl Iterator<Item = Failure> {
        self.tree.trunk().accounts_over_limits().into_iter().map(|(account, what, usage, limit)| {
            let message = format!(
                "Account \"{account}\" is over {what} limit: it uses {usage}, the limit is {limit}; nothing more can be \
                 made in it: remove something, or raise //sys/accounts/{account}/@resource_limits"
            );
            Failure::new(message).with("alert_type", "account_over_limit").with("account", account)
        })
    }

    fn store_failing_alert(&self) -> Option<Failure> {
        let (since, why) = self.store_failing.as_ref()?;
        let message =
            "The store cannot be written: what is shown is what was durable then, and changes are refused";
        let alert = Failure::new(message).with("alert_type", "store_failing").with("since", *since);
        Some(alert.because(why.clone()))
    }

    fn orchid_operation(&self, now: Time, name: &str) -> Option<Value> {
        let id = match name.parse::<OperationId>() {
            Ok(id) => id,
            Err(_) => *self.aliases.get(name)?,
        };
        self.operations.get(&id).map(|o| self.operation_attributes(now, o, None).into())
    }

    fn orchid_exec_node(&self, node: &crate::nodes::Node) -> Value {
        let state = self.scheduler.node(&node.address);
        let usage = state.as_ref().map(|s| s.resource_usage).unwrap_or_default();
        let tree = state.as_ref().and_then(|s| s.tree.as_deref());
        let snapshot = self.scheduler.snapshot();
        // Out of how many operations a heartbeat may have to choose.
        let complexity =
            tree.and_then(|tree| snapshot.tree(tree)).map_or(0, |t| t.schedulable_operation_count());
        let waits = node.key.is_none().then(|| self.waits_of_node(node)).filter(|waits| waits.units > 0);
        yson::map! {
            "scheduler_state" => node.state(),
            "master_state" => node.state(),
            "state" => node.state(),
            "resource_usage" => usage.to_value(),
            "resource_limits" => node.report.resource_limits.to_value(),
            "tags" => node.report.tags.iter().map(String::as_str).collect::<Vec<_>>(),
            "job_environment" => node.job_environment.as_str(),
            "alerts" => node.alerts.iter().map(Failure::to_value).collect::<Vec<_>>(),
            "running_job_count" => node.jobs.len(),
            "last_seen_time" => node.last_seen,
            "last_heartbeat_time" => node.last_heartbeat,
            "heartbeat_period" => self.config.heartbeat_period.as_millis(),
            "index" => state.as_ref().map(|s| s.index),
            "tree" => tree,
            "scheduling_heartbeat_complexity" => complexity,
            // All nodes are in one; nobody says where they stand.
            "scheduling_segment" => "default",
            "data_center" => Value::Entity,
            "infiniband_cluster" => Value::Entity,
            "overcommitted_since" => state.as_ref().and_then(|s| s.overcommitted_since),
            "running_job_statistics" => state.as_ref().map(|s| s.running_job_statistics.to_map()),
            "last_preemptive_heartbeat_statistics" =>
                state.as_ref().and_then(|s| Some(s.last_preemptive_heartbeat_statistics.as_ref()?.to_map())),
            "last_non_preemptive_heartbeat_statistics" =>
                state.as_ref().and_then(|s| Some(s.last_non_preemptive_heartbeat_statistics.as_ref()?.to_map())),
        }
        .with_some("waiting_unit_count", waits.map(|waits| waits.units))
        .with_some("waiting_until", waits.and_then(|waits| waits.until))
        .into()
    }
}

const SCALARS: &[&str] = &[
    "connected",
    "default_pool_tree",
    "default_fair_share_tree",
    "cell",
    "cluster",
    "config",
    "last_fair_share_update_time",
    "suspicious_jobs",
    "controller_agents",
    "alerts",
    "invariants",
];
/// What is missing is missing below the parent.
trait OrParent {
    fn or_parent(self, used: usize) -> Self;
}
impl OrParent for Found {
    fn or_parent(self, used: usize) -> Self {
        if self.0.is_some() { self } else { (None, used) }
    }
}

fn used_path(base: &str, keys: &[&str]) -> String {
    keys.iter().fold(base.to_owned(), |path, key| format!("{path}/{}", yson::ypath::escape_literal(key)))
}
