//! Accounts: what the nodes of each use, and the limits of that (http-api.md 6.3).
//!
//! The sums are part of the tree and change with every node, so that nothing is counted when a limit is checked. A
//! content that several nodes have counts at each of them. What transactions have made counts from the moment when they
//! make it ([`Tree::uncommitted`]), not from their commit. When a node is removed or
//! written anew, its account stays charged for contents that snapshot locks or operations hold ([`crate::transactions::Hold`]).

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Add, AddAssign, Neg, Sub};

use vocab::{Failure, ObjectId, code};
use yson::{Map, Value};

use crate::acl::{Acl, Subjects};
use crate::limits::{Limits, size};
use crate::node::{Body, Chunk, Node};
use crate::transactions::Forest;
use crate::tree::Tree;
use crate::types::NodeType;

/// Account of the system's own nodes.
pub const SYSTEM_ACCOUNT: &str = "sys";
/// Account of nodes that have no other: the root's, which its children inherit.
pub const DEFAULT_ACCOUNT: &str = "default";
/// Accounts in which all users make nodes. No user has more than [`SHARE`] of one.
const SHARED: [&str; 2] = [DEFAULT_ACCOUNT, "tmp"];
/// One user's nodes have at most this part, a half, of each limit of a shared account.
const SHARE: i64 = 2;
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

    /// This usage divided by `of`, rounded towards zero.
    fn part(self, of: i64) -> Usage {
        Usage {
            nodes: self.nodes / of,
            chunks: self.chunks / of,
            disk_space: self.disk_space / of,
            memory: self.memory / of,
        }
    }

    /// A chunk of a table.
    pub fn of_chunk(chunk: &Chunk) -> Usage {
        let key = |key: &[Value]| key.iter().map(size).sum::<usize>() as i64;
        let bounds = chunk.bounds.as_ref().map_or(0, |(first, last)| key(first) + key(last));
        Usage { nodes: 0, chunks: 1, disk_space: chunk.size as i64, memory: CHUNK_BYTES + bounds }
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

/// The account and the owner that a node counts for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Payer {
    /// Name of the account.
    pub account: String,
    /// Name of the owner.
    pub owner: String,
}

impl Payer {
    pub(crate) fn of(node: &Node) -> Payer {
        Payer { account: node.account.clone(), owner: node.owner.clone() }
    }

    pub(crate) fn is_in_shared_account(&self) -> bool {
        SHARED.contains(&self.account.as_str())
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
    /// What the node adds to the usage of its account. Users, groups, accounts and the
    /// maps of the system add nothing.
    pub fn usage(&self) -> Usage {
        if !self.node_type.is_plain() {
            return Usage::NONE;
        }
        let (disk_space, chunks) = self.disk_space();
        let body = match &self.body {
            Body::Scalar(value) | Body::Document(value) => size(value) as i64,
            Body::Link(target) => target.len() as i64,
            Body::Table(table) => {
                let chunks = table.chunks.iter().map(|chunk| Usage::of_chunk(chunk).memory);
                size(&table.schema) as i64 + chunks.sum::<i64>()
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

    /// What transactions have made for an account that is not in the tree yet, what the jobs of operations have
    /// written that have not ended, and the contents that are held and no longer in the tree.
    pub fn uncommitted(&self, account: &str) -> Usage {
        self.uncommitted.get(account).copied().unwrap_or_default()
    }

    /// All that an account uses.
    pub fn account_usage(&self, account: &str) -> Usage {
        self.committed_usage(account) + self.uncommitted(account)
    }

    /// Names of the accounts that are charged for something.
    pub fn used_accounts(&self) -> BTreeSet<&str> {
        self.usage.keys().chain(self.uncommitted.keys()).map(String::as_str).collect()
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

    /// What the nodes of each owner use, counted from all nodes.
    pub(crate) fn recounted_shares(&self) -> BTreeMap<Payer, Usage> {
        let mut counted: BTreeMap<Payer, Usage> = BTreeMap::new();
        for node in self.nodes.values() {
            *counted.entry(Payer::of(node)).or_default() += node.usage();
        }
        counted
    }

    /// A view shows what accounts use as the trunk has it: branches are in its sums already.
    pub(crate) fn take_sums(&mut self, trunk: &Tree) {
        self.usage = trunk.usage.clone();
        self.uncommitted = trunk.uncommitted.clone();
        self.shares = trunk.shares.clone();
    }

    /// Adds to the usage of an account, and to the share of an owner in it.
    pub(crate) fn charge(&mut self, payer: &Payer, more: Usage) {
        add(&mut self.usage, payer.account.as_str(), more);
        self.add_to_share(payer, more);
    }

    pub(crate) fn charge_uncommitted(&mut self, payer: &Payer, more: Usage) {
        add(&mut self.uncommitted, payer.account.as_str(), more);
        self.add_to_share(payer, more);
    }

    fn add_to_share(&mut self, payer: &Payer, more: Usage) {
        if payer.is_in_shared_account() {
            add(&mut self.shares, payer, more);
        }
    }

    /// All that the nodes of one owner use in a shared account.
    pub(crate) fn share(&self, payer: &Payer) -> Usage {
        self.shares.get(payer).copied().unwrap_or_default()
    }

    /// Is it a node of the system itself, which is made and changed however full accounts are? Tokens, passwords,
    /// options and discarded subtrees are such. Ordinary users have no permission to write below `//sys`.
    pub(crate) fn is_exempt(&self, node: ObjectId) -> bool {
        self.child(self.root(), b"sys").is_some_and(|sys| self.is_within(node, sys))
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
        let Some(over) = Over::find(more, total, limits) else { return Ok(()) };
        let Over { what, usage, limit, .. } = over;
        let message = format!(
            "Account \"{account}\" is over {what} limit: it would use {usage}, the limit is {limit}; remove \
             something, or have an administrator raise //sys/accounts/{account}/@resource_limits"
        );
        Err(over.refusal(account, message))
    }

    /// 902 if an owner has more than a user may have of a shared account, of an amount of which it gets more.
    pub(crate) fn check_share(&self, payer: &Payer, more: Usage, total: Usage) -> Result<(), Failure> {
        let Payer { account, owner } = payer;
        if !payer.is_in_shared_account() {
            return Ok(());
        }
        let Some(AccountLimits(limits)) = self.limits_of(account) else { return Ok(()) };
        let Some(over) = Over::find(more, total, limits.part(SHARE)) else { return Ok(()) };
        // Looked at last: the groups of a user cost a walk.
        if self.is_superuser(owner) {
            return Ok(());
        }
        let Over { what, usage, limit, .. } = over;
        let message = format!(
            "User \"{owner}\" is over {what} limit of one user in account \"{account}\": the user's nodes would use \
             {usage}, the limit is {limit}, a half of the account's; remove something, or use another account"
        );
        Err(over.refusal(account, message).with("user", owner.as_str()))
    }

    fn is_superuser(&self, user: &str) -> bool {
        Subjects { user, groups: &self.member_of_closure(user) }.is_superuser()
    }

    /// Bytes on the disk that nodes of this account and owner may still get: of the account, and of the owner in it. Each
    /// with a name of what has the limit.
    fn disk_room(&self, payer: &Payer) -> Vec<(String, u64)> {
        let Payer { account, owner } = payer;
        let Some(AccountLimits(limits)) = self.limits_of(account) else { return Vec::new() };
        let left = |limit: i64, used: Usage| limit.saturating_sub(used.disk_space).max(0).unsigned_abs();
        let mut room =
            vec![(format!("account \"{account}\""), left(limits.disk_space, self.account_usage(account)))];
        if payer.is_in_shared_account() && !self.is_superuser(owner) {
            let of_owner = left(limits.part(SHARE).disk_space, self.share(payer));
            room.push((format!("user \"{owner}\" in account \"{account}\""), of_owner));
        }
        room
    }

    /// Refuses to remove an account that nodes belong to: they would have no limit, and an account that is made later
    /// under the same name would have them.
    pub(crate) fn check_unused(&self, account: &Node) -> Result<(), Failure> {
        let name = String::from_utf8_lossy(&account.key).into_owned();
        let usage = self.account_usage(&name);
        if account.node_type != NodeType::Account || usage == Usage::NONE {
            return Ok(());
        }
        let message = match usage.nodes {
            0 => format!(
                "Account \"{name}\" cannot be removed: it is charged for contents of removed nodes that snapshot locks or \
                 running operations need; end those first"
            ),
            nodes => format!(
                "Account \"{name}\" cannot be removed: {nodes} nodes belong to it; remove them, or set their @account first"
            ),
        };
        Err(Failure::new(message).with("account", name).with("node_count", usage.nodes))
    }

    /// Names of accounts that use more than they may, each with the name of the first such amount, usage and limit. An
    /// account is over its limit if the limit was lowered or is newer than its nodes.
    pub fn accounts_over_limits(&self) -> Vec<(String, &'static str, i64, i64)> {
        let sys = self.child(self.root(), b"sys").and_then(|sys| self.child(sys, b"accounts"));
        let accounts = sys.into_iter().flat_map(|map| self.map_children(map));
        let over = accounts.filter_map(|(name, _)| {
            let name = String::from_utf8_lossy(name).into_owned();
            let (usage, AccountLimits(limits)) = (self.account_usage(&name), self.limits_of(&name)?);
            let (what, _, of) = AMOUNTS.into_iter().find(|(_, _, of)| of(&usage) > of(&limits))?;
            Some((name, what, of(&usage), of(&limits)))
        });
        over.collect()
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

fn add<K, Q>(sums: &mut imbl::OrdMap<K, Usage>, key: &Q, more: Usage)
where
    K: Ord + Clone + Borrow<Q>,
    Q: Ord + ToOwned<Owned = K> + ?Sized,
{
    if more == Usage::NONE {
        return;
    }
    let total = sums.get(key).copied().unwrap_or_default() + more;
    match total == Usage::NONE {
        true => drop(sums.remove(key)),
        false => drop(sums.insert(key.to_owned(), total)),
    }
}

/// The first amount that is over a limit.
struct Over {
    what: &'static str,
    name: &'static str,
    increase: i64,
    usage: i64,
    limit: i64,
}

impl Over {
    /// Of the amounts that grow.
    fn find(more: Usage, total: Usage, limits: Usage) -> Option<Over> {
        AMOUNTS.into_iter().find_map(|(what, name, of)| {
            let (increase, usage, limit) = (of(&more), of(&total), of(&limits));
            (increase > 0 && usage > limit).then_some(Over { what, name, increase, usage, limit })
        })
    }

    fn refusal(&self, account: &str, message: String) -> Failure {
        Failure::coded(code::ACCOUNT_LIMIT, message)
            .with("account", account)
            .with("resource", self.name)
            .with("usage", self.usage - self.increase)
            .with("increase", self.increase)
            .with("limit", self.limit)
    }
}

/// `resource_limits` of an account that has none of its own.
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
    /// 902 if the account of a table has no room for a chunk more.
    pub fn check_chunk(&self, node: ObjectId, chunk: &Chunk) -> Result<(), Failure> {
        let Some(payer) = self.payer_of(node) else { return Ok(()) };
        let (more, trunk) = (Usage::of_chunk(chunk), self.trunk());
        trunk.check_account(&payer.account, more, trunk.account_usage(&payer.account) + more)?;
        trunk.check_share(&payer, more, trunk.share(&payer) + more)
    }

    /// Who has a limit of bytes on the disk that a node counts towards, and how many are left of each: of the node's
    /// account, and of its owner if users share the account.
    pub fn disk_room(&self, node: ObjectId) -> Vec<(String, u64)> {
        self.payer_of(node).map_or_else(Vec::new, |payer| self.trunk().disk_room(&payer))
    }

    /// As the entered transaction sees it, else that of the trunk. Nobody pays for nodes of the system.
    fn payer_of(&self, node: ObjectId) -> Option<Payer> {
        let payer = Payer::of(self.node(node).or_else(|| self.trunk().node(node))?);
        (!self.is_exempt(node)).then_some(payer)
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
