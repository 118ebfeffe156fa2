//! Accounts: what the nodes of each use, and the limits of that (http-api.md 6.3).
//!
//! The sums are part of the tree and change with every node, so that nothing is counted when a limit is checked. A
//! content that several nodes have counts at each of them. What transactions have made counts from the moment when they
//! make it ([`Tree::uncommitted`]), not from their commit.

use std::collections::BTreeMap;
use std::ops::{Add, AddAssign, Neg, Sub};

use vocab::{Failure, ObjectId, code};
use yson::{Map, Value};

use crate::acl::Acl;
use crate::limits::{Limits, size};
use crate::node::{Body, Node};
use crate::transactions::Forest;
use crate::tree::Tree;
use crate::types::NodeType;

/// Bytes that a node takes in memory besides its values.
const NODE_BYTES: i64 = 256;
/// The same of a chunk of a table.
const CHUNK_BYTES: i64 = 64;

/// Amounts of what accounts have limits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Nodes.
    pub nodes: i64,
    /// Pieces of files and tables.
    pub chunks: i64,
    /// Bytes of files and tables.
    pub disk_space: i64,
    /// Bytes of everything that the server keeps in memory: values, attributes, access control lists.
    pub memory: i64,
}

impl Usage {
    /// Nothing.
    pub const NONE: Usage = Usage { nodes: 0, chunks: 0, disk_space: 0, memory: 0 };

    /// A change of the values of a node.
    pub(crate) fn of_memory(bytes: i64) -> Usage {
        Usage { memory: bytes, ..Usage::NONE }
    }

    /// Bytes on the disk alone.
    pub(crate) fn of_disk(bytes: u64) -> Usage {
        Usage { disk_space: bytes as i64, ..Usage::NONE }
    }
}

impl Add for Usage {
    type Output = Usage;
    fn add(self, other: Usage) -> Usage {
        Usage {
            nodes: self.nodes + other.nodes,
            chunks: self.chunks + other.chunks,
            disk_space: self.disk_space.saturating_add(other.disk_space),
            memory: self.memory.saturating_add(other.memory),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        *self = *self + other;
    }
}

impl Neg for Usage {
    type Output = Usage;
    fn neg(self) -> Usage {
        Usage { nodes: -self.nodes, chunks: -self.chunks, disk_space: -self.disk_space, memory: -self.memory }
    }
}

impl Sub for Usage {
    type Output = Usage;
    fn sub(self, other: Usage) -> Usage {
        self + -other
    }
}

/// Most of each amount. Of pieces there may be any number, unless the account says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AccountLimits(Usage);

/// An amount by its name in errors and by that in `violated_resource_limits`.
type Amount = (&'static str, &'static str, fn(&Usage) -> i64);

const AMOUNTS: [Amount; 4] = [
    ("node count", "node_count", |usage| usage.nodes),
    ("chunk count", "chunk_count", |usage| usage.chunks),
    ("disk space", "disk_space", |usage| usage.disk_space),
    ("master memory", "master_memory", |usage| usage.memory),
];

/// Bytes of an attribute.
pub(crate) fn attribute_bytes(name: &[u8], value: Option<&Value>) -> i64 {
    value.map_or(0, |value| (name.len() + size(value)) as i64)
}

/// Bytes of an access control list.
pub(crate) fn acl_bytes(acl: &Acl) -> i64 {
    let words = |words: &[String]| words.iter().map(|word| word.len() as i64 + 8).sum::<i64>();
    acl.0.iter().map(|ace| 32 + words(&ace.subjects) + ace.columns.as_deref().map_or(0, words)).sum()
}

impl Node {
    /// What the node adds to the usage of its account. Users, groups, accounts and the maps of the system are nobody's.
    pub fn usage(&self) -> Usage {
        if !self.node_type.is_plain() {
            return Usage::NONE;
        }
        let (disk_space, chunks) = self.disk_space();
        let body = match &self.body {
            Body::Scalar(value) | Body::Document(value) => size(value) as i64,
            Body::Link(target) => target.len() as i64,
            Body::Table(table) => {
                let key = |key: &[Value]| key.iter().map(size).sum::<usize>() as i64;
                let bounds = table.chunks.iter().filter_map(|chunk| chunk.bounds.as_ref());
                let bounds: i64 = bounds.map(|(first, last)| key(first) + key(last)).sum();
                size(&table.schema) as i64 + bounds + CHUNK_BYTES * table.chunks.len() as i64
            }
            _ => 0,
        };
        let attributes = self.user_attributes.iter();
        let attributes: i64 = attributes.map(|(name, value)| attribute_bytes(name, Some(value))).sum();
        Usage {
            nodes: 1,
            chunks: chunks as i64,
            disk_space: disk_space as i64,
            memory: NODE_BYTES + self.key.len() as i64 + body + attributes + acl_bytes(&self.acl),
        }
    }
}

impl Tree {
    /// What the nodes of an account use, without what is in transactions.
    pub fn committed_usage(&self, account: &str) -> Usage {
        self.usage.get(account).copied().unwrap_or_default()
    }

    /// What transactions have made for an account that is not in the tree yet, and what the jobs of operations have
    /// written that have not ended.
    pub fn uncommitted(&self, account: &str) -> Usage {
        self.uncommitted.get(account).copied().unwrap_or_default()
    }

    /// All that an account uses.
    pub fn account_usage(&self, account: &str) -> Usage {
        self.committed_usage(account) + self.uncommitted(account)
    }

    /// Names of the accounts whose nodes are counted.
    pub fn used_accounts(&self) -> impl Iterator<Item = &str> {
        self.usage.keys().map(String::as_str)
    }

    /// What [`Tree::committed_usage`] must be of each account, counted from all nodes.
    pub fn recounted_usage(&self) -> BTreeMap<String, Usage> {
        let mut counted: BTreeMap<String, Usage> = BTreeMap::new();
        for node in self.nodes.values() {
            *counted.entry(node.account.clone()).or_default() += node.usage();
        }
        counted.retain(|_, usage| *usage != Usage::NONE);
        counted
    }

    /// A view shows what accounts use as the trunk has it: branches are in its sums already.
    pub(crate) fn take_sums(&mut self, trunk: &Tree) {
        self.usage = trunk.usage.clone();
        self.uncommitted = trunk.uncommitted.clone();
    }

    /// Adds to the usage of an account.
    pub(crate) fn charge(&mut self, account: &str, more: Usage) {
        add(&mut self.usage, account, more);
    }

    pub(crate) fn charge_uncommitted(&mut self, account: &str, more: Usage) {
        add(&mut self.uncommitted, account, more);
    }

    /// The node of an account. Nothing has a limit of an account that does not exist.
    fn account_node(&self, account: &str) -> Option<&Node> {
        let sys = self.child(self.root(), b"sys")?;
        let node = self.child(self.child(sys, b"accounts")?, account.as_bytes())?;
        self.node(node).filter(|node| node.node_type == NodeType::Account)
    }

    fn limits_of(&self, account: &str) -> Option<AccountLimits> {
        let limits = self.account_node(account)?.user_attributes.get("resource_limits");
        Some(AccountLimits::read(limits.and_then(Value::as_map), &self.limits))
    }

    /// 902 if an account has more than its limit of an amount of which it gets more.
    pub(crate) fn check_account(&self, account: &str, more: Usage, total: Usage) -> Result<(), Failure> {
        if more.nodes <= 0 && more.chunks <= 0 && more.disk_space <= 0 && more.memory <= 0 {
            return Ok(());
        }
        let Some(AccountLimits(limits)) = self.limits_of(account) else { return Ok(()) };
        for (what, name, of) in AMOUNTS {
            let (increase, usage, limit) = (of(&more), of(&total), of(&limits));
            if increase > 0 && usage > limit {
                let message = format!(
                    "Account \"{account}\" is over {what} limit: it would use {usage}, the limit is {limit}; remove \
                     something, or have an administrator raise //sys/accounts/{account}/@resource_limits"
                );
                return Err(Failure::coded(code::ACCOUNT_LIMIT, message)
                    .with("account", account)
                    .with("resource", name)
                    .with("usage", usage - increase)
                    .with("increase", increase)
                    .with("limit", limit));
            }
        }
        Ok(())
    }

    /// `resource_usage` and `committed_resource_usage` of an account.
    pub(crate) fn shown_usage(usage: Usage) -> Value {
        yson::map! {
            "node_count" => usage.nodes,
            "chunk_count" => usage.chunks,
            "disk_space" => usage.disk_space,
            "disk_space_per_medium" => yson::map! {"default" => usage.disk_space},
            "master_memory" => usage.memory,
            "tablet_count" => 0,
            "tablet_static_memory" => 0,
        }
        .into()
    }

    /// `violated_resource_limits` of an account: what it has more of than it may.
    pub(crate) fn violated_limits(&self, account: &str) -> Option<Value> {
        let (usage, AccountLimits(limits)) = (self.account_usage(account), self.limits_of(account)?);
        let violated = |(_, name, of): &Amount| (*name, of(&usage) > of(&limits));
        let all: Map = AMOUNTS.iter().map(violated).collect();
        let disk = usage.disk_space > limits.disk_space;
        Some(all.with("disk_space_per_medium", yson::map! {"default" => disk}).into())
    }
}

fn add(sums: &mut imbl::OrdMap<String, Usage>, account: &str, more: Usage) {
    if more == Usage::NONE {
        return;
    }
    let total = sums.get(account).copied().unwrap_or_default() + more;
    match total == Usage::NONE {
        true => drop(sums.remove(account)),
        false => drop(sums.insert(account.to_owned(), total)),
    }
}

/// `resource_limits` of an account of which nobody has set them.
pub(crate) fn default_limits(limits: &Limits) -> Value {
    yson::map! {
        "node_count" => limits.account_node_count,
        "disk_space_per_medium" => yson::map! {"default" => limits.account_disk_space},
        "master_memory" => yson::map! {"total" => limits.account_memory},
    }
    .into()
}

/// Amounts that `resource_limits` may have and that are no maps.
const PLAIN: [&str; 5] = ["node_count", "chunk_count", "disk_space", "tablet_count", "tablet_static_memory"];
/// Those that are maps of amounts.
const MAPS: [&str; 2] = ["disk_space_per_medium", "master_memory"];

/// Refuses limits that are no amounts: what cannot be read would not be enforced.
pub(crate) fn check_limits(limits: &Map, path: &str) -> Result<(), Failure> {
    let amount = |at: String, value: &Value| match value.as_i64().filter(|amount| *amount >= 0) {
        Some(_) => Ok(()),
        None => {
            let message = format!("Attribute {at}: expected an integer of at least 0, found {value:?}");
            Err(Failure::new(message).with("path", at))
        }
    };
    for (key, value) in limits.iter() {
        let name = String::from_utf8_lossy(key);
        let at = format!("{path}/{name}");
        match value.as_map() {
            Some(inner) if MAPS.contains(&&*name) => {
                for (key, value) in inner.iter() {
                    // Limits of single cells: there is one.
                    if key != b"per_cell" {
                        amount(format!("{at}/{}", String::from_utf8_lossy(key)), value)?;
                    }
                }
            }
            None if PLAIN.contains(&&*name) || name == "master_memory" => amount(at, value)?,
            _ => {
                let known = [&PLAIN[..], &MAPS].concat().join(", ");
                let message = format!(
                    "Attribute {at}: expected one of {known}, each an integer or a map of integers, found {}",
                    value.type_name()
                );
                return Err(Failure::new(message).with("path", at));
            }
        }
    }
    Ok(())
}

impl AccountLimits {
    /// What is not said has the default; what cannot be read was set by an older version and is not said.
    fn read(limits: Option<&Map>, usual: &Limits) -> AccountLimits {
        let number = |value: Option<&Value>| value.and_then(Value::as_i64).filter(|amount| *amount >= 0);
        let of = |name: &str| limits.and_then(|limits| limits.get(name));
        let inner = |name: &str, key: &str| number(of(name).and_then(|value| value.get(key)));
        let disk = [number(of("disk_space")), inner("disk_space_per_medium", "default")];
        let memory = number(of("master_memory")).or_else(|| inner("master_memory", "total"));
        AccountLimits(Usage {
            nodes: number(of("node_count")).unwrap_or(usual.account_node_count),
            chunks: number(of("chunk_count")).unwrap_or(i64::MAX),
            disk_space: disk.into_iter().flatten().min().unwrap_or(usual.account_disk_space),
            memory: memory.unwrap_or(usual.account_memory),
        })
    }
}

impl Forest {
    /// 902 if the account of a node of the trunk has no room for so many bytes more on the disk.
    pub fn check_disk_space(&self, node: ObjectId, bytes: u64) -> Result<(), Failure> {
        let Some(account) = self.account_of(node) else { return Ok(()) };
        let more = Usage::of_disk(bytes);
        self.trunk().check_account(account, more, self.trunk().account_usage(account) + more)
    }

    /// Bytes on the disk that the account of a node may still use.
    pub fn disk_space_left(&self, node: ObjectId) -> u64 {
        let left = self.account_of(node).and_then(|account| {
            let AccountLimits(limits) = self.trunk().limits_of(account)?;
            Some(limits.disk_space.saturating_sub(self.trunk().account_usage(account).disk_space).max(0))
        });
        left.map_or(u64::MAX, i64::unsigned_abs)
    }

    /// As the entered transaction sees it, else that of the trunk.
    fn account_of(&self, node: ObjectId) -> Option<&str> {
        let node = self.node(node).or_else(|| self.trunk().node(node))?;
        Some(node.account.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str) -> Usage {
        let map = yson::parse(text.as_bytes()).expect("YSON");
        let usual =
            Limits { account_node_count: 7, account_disk_space: 8, account_memory: 9, ..Limits::default() };
        AccountLimits::read(map.as_map(), &usual).0
    }

    /// S15.
    #[test]
    fn limits_are_read_in_all_their_forms() {
        let usual = Usage { nodes: 7, chunks: i64::MAX, disk_space: 8, memory: 9 };
        assert_eq!(limits("{}"), usual);
        assert_eq!(limits("{node_count=1;chunk_count=2}"), Usage { nodes: 1, chunks: 2, ..usual });
        assert_eq!(limits("{disk_space=5}").disk_space, 5);
        assert_eq!(limits("{disk_space_per_medium={default=3}}").disk_space, 3);
        assert_eq!(limits("{disk_space=5;disk_space_per_medium={default=3}}").disk_space, 3);
        assert_eq!(limits("{master_memory={total=4;chunk_host=1}}").memory, 4);
        assert_eq!(limits("{master_memory=4}").memory, 4);
    }

    #[test]
    fn limits_that_are_no_amounts_are_refused() {
        let check = |text: &str| {
            let map = yson::parse(text.as_bytes()).expect("YSON");
            check_limits(map.as_map().expect("a map"), "//a/@resource_limits").map_err(|e| e.message)
        };
        assert_eq!(check("{node_count=1;disk_space_per_medium={default=1;ssd=2};tablet_count=0}"), Ok(()));
        assert_eq!(check("{master_memory={total=1;per_cell={}}}"), Ok(()));
        let refused = check("{node_count=-1}").expect_err("negative");
        assert_eq!(
            refused,
            "Attribute //a/@resource_limits/node_count: expected an integer of at least 0, found -1"
        );
        assert!(
            check("{disk_space_per_medium={default=x}}").expect_err("text").contains("per_medium/default")
        );
        assert!(check("{node_cuont=1}").expect_err("a typing error").contains("node_cuont"));
        assert!(check("{node_count={default=1}}").is_err());
    }
}
