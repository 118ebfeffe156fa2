//! Contents that transactions and operations hold.
//!
//! The branches of transactions hold contents, above all the branches of snapshot locks; unfinished operations hold the
//! contents that their jobs read and write. When the node of a held content is removed or written anew, the blob stays on
//! the disk, and accounts stay charged for it: each account whose nodes the content was held from, once, until nothing holds
//! it. A content that a node of the trunk still has, or that a branch is charged for, is not charged a second time. The charges
//! follow from the trunk, the branches and the operations, so a restart does not change them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vocab::ObjectId;

use super::Forest;
use super::charges::Changed;
use super::transaction::Branch;
use crate::accounts::{Payer, Usage};
use crate::edit::journal::{Difference, Journal};
use crate::node::Node;

/// A content that is needed whatever becomes of its node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hold {
    /// Number of the blob in the store of blobs; nothing is held for 0, which is no content.
    pub blob: u64,
    /// Bytes of the blob.
    pub size: u64,
    /// The payer of the node that had the content when it was taken hold of.
    pub payer: Arc<Payer>,
}

/// What holds one content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Holders {
    size: u64,
    /// Payers of the nodes that it was held from, each with the number of its holds; in the order of payers.
    payers: Vec<(Arc<Payer>, usize)>,
    /// They are charged: nothing else is.
    is_charged: bool,
}

impl Holders {
    fn usage(&self) -> Usage {
        Usage { chunks: 1, disk_space: i64::try_from(self.size).unwrap_or(i64::MAX), ..Usage::NONE }
    }

    fn find(&self, payer: &Payer) -> Result<usize, usize> {
        self.payers.binary_search_by(|(known, _)| (**known).cmp(payer))
    }
}

impl Branch {
    /// Contents that the branch holds.
    pub(super) fn holds(&self) -> Vec<Hold> {
        let Some(node) = self.node().filter(|node| node.contents().next().is_some()) else {
            return Vec::new();
        };
        let payer = Arc::new(Payer::of(node));
        node.contents().map(|(blob, size)| Hold { blob, size, payer: Arc::clone(&payer) }).collect()
    }
}

impl Forest {
    /// Contents that an operation needs until [`Forest::let_go`].
    pub fn hold(&mut self, holds: impl IntoIterator<Item = Hold>) {
        for hold in holds {
            let blob = hold.blob;
            self.add_hold(hold);
            self.settle_content(blob);
        }
    }

    /// The inverse of [`Forest::hold`]. Returns the contents that nothing needs any more.
    pub fn let_go(&mut self, holds: impl IntoIterator<Item = Hold>) -> Vec<u64> {
        let mut released = Vec::new();
        for hold in holds {
            self.remove_hold(&hold, &mut released);
        }
        released
    }

    /// Who pays for a node: as the entered transaction sees it, else as the trunk has it.
    pub fn payer(&self, node: ObjectId) -> Option<Arc<Payer>> {
        let node = self.node(node).or_else(|| self.trunk().node(node))?;
        Some(Arc::new(Payer::of(node)))
    }

    pub(super) fn add_hold(&mut self, hold: Hold) {
        let Hold { blob, size, payer } = hold;
        if blob == 0 {
            return;
        }
        let new = || Holders { size, payers: Vec::with_capacity(1), is_charged: false };
        let holders = self.holders.entry(blob).or_insert_with(new);
        match holders.find(&payer) {
            Ok(place) => holders.payers[place].1 += 1,
            Err(place) => {
                if holders.is_charged {
                    self.trunk.charge_uncommitted(&payer, holders.usage());
                }
                holders.payers.insert(place, (payer, 1));
            }
        }
    }

    /// A content that nothing needs any more is added to `released`.
    pub(super) fn remove_hold(&mut self, hold: &Hold, released: &mut Vec<u64>) {
        let Some(holders) = self.holders.get_mut(&hold.blob) else { return };
        let Ok(place) = holders.find(&hold.payer) else { return };
        holders.payers[place].1 -= 1;
        if holders.payers[place].1 > 0 {
            return;
        }
        if holders.is_charged {
            self.trunk.charge_uncommitted(&hold.payer, -holders.usage());
        }
        holders.payers.remove(place);
        if holders.payers.is_empty() {
            self.holders.remove(&hold.blob);
            if !self.trunk.has_blob(hold.blob) {
                released.push(hold.blob);
            }
        }
    }

    /// To be called when the trunk, or the charge of a branch, has got or lost a content.
    pub(super) fn settle_content(&mut self, blob: u64) {
        let is_due = self.is_charged_by_none(blob);
        let Some(holders) = self.holders.get_mut(&blob).filter(|h| h.is_charged != is_due) else { return };
        holders.is_charged = is_due;
        let usage = if is_due { holders.usage() } else { -holders.usage() };
        for (payer, _) in &holders.payers {
            self.trunk.charge_uncommitted(payer, usage);
        }
    }

    /// Is no node of the trunk charged for the content, and no branch?
    fn is_charged_by_none(&self, blob: u64) -> bool {
        !self.trunk.has_blob(blob) && !self.charged.contains_key(&blob)
    }

    /// An edit of the trunk has changed which contents its nodes have.
    pub(super) fn settle_contents(&mut self, journal: &Journal) {
        if self.holders.is_empty() {
            return;
        }
        let blobs = |d: Difference<'_>| {
            let (old, new) = (d.old.into_iter(), d.new.map(|new| &**new));
            old.chain(new).flat_map(Node::blobs).collect::<Vec<_>>()
        };
        let touched: BTreeSet<u64> = journal.differences(&self.trunk).flat_map(blobs).collect();
        touched.into_iter().for_each(|blob| self.settle_content(blob));
    }

    /// By how much an edit of the trunk, which has it already, changes the charges for contents that are held.
    pub(super) fn grown_held(&self, journal: &Journal) -> BTreeMap<Payer, Usage> {
        let mut grown = BTreeMap::new();
        if self.holders.is_empty() {
            return grown;
        }
        let mut seen = BTreeSet::new();
        for Difference { old, new, .. } in journal.differences(&self.trunk) {
            for blob in old.into_iter().chain(new.map(|new| &**new)).flat_map(Node::blobs) {
                let Some(holders) = self.holders.get(&blob).filter(|_| seen.insert(blob)) else { continue };
                let usage = match (holders.is_charged, self.is_charged_by_none(blob)) {
                    (false, true) => holders.usage(),
                    (true, false) => -holders.usage(),
                    _ => continue,
                };
                for (payer, _) in &holders.payers {
                    *grown.entry(Payer::clone(payer)).or_default() += usage;
                }
            }
        }
        grown
    }

    /// The same when an edit of a view becomes branches of a transaction. `charged` are the contents that each of the
    /// changed nodes will be charged for.
    pub(super) fn grown_held_by_branches(
        &self,
        transaction: ObjectId,
        changed: &[(&Changed, BTreeMap<u64, usize>)],
    ) -> BTreeMap<Payer, Usage> {
        let mut grown: BTreeMap<Payer, Usage> = BTreeMap::new();
        let entering: BTreeSet<u64> =
            changed.iter().flat_map(|(_, contents)| contents.keys().copied()).collect();
        for holders in entering.iter().filter_map(|blob| self.holders.get(blob)).filter(|h| h.is_charged) {
            for (payer, _) in &holders.payers {
                *grown.entry(Payer::clone(payer)).or_default() += -holders.usage();
            }
        }
        let branches = self.transactions.get(&transaction).map(|entry| &entry.branches);
        let mut leaving: BTreeMap<u64, usize> = BTreeMap::new();
        let mut dropped: Vec<Hold> = Vec::new();
        for (changed, _) in changed {
            let charge = self.charges.get(&(transaction, changed.id));
            for (blob, count) in charge.iter().flat_map(|charge| &charge.contents) {
                *leaving.entry(*blob).or_default() += count;
            }
            dropped
                .extend(branches.and_then(|b| b.get(&changed.id)).iter().flat_map(|branch| branch.holds()));
        }
        leaving.retain(|blob, count| {
            !entering.contains(blob) && self.charged.get(blob) == Some(count) && !self.trunk.has_blob(*blob)
        });
        if leaving.is_empty() {
            return grown;
        }
        let mut own: BTreeMap<(u64, Arc<Payer>), usize> = BTreeMap::new();
        for hold in dropped {
            *own.entry((hold.blob, hold.payer)).or_default() += 1;
        }
        for blob in leaving.keys() {
            let Some(holders) = self.holders.get(blob) else { continue };
            let is_other = |(payer, count): &&(Arc<Payer>, usize)| {
                *count > own.get(&(*blob, Arc::clone(payer))).copied().unwrap_or_default()
            };
            for (payer, _) in holders.payers.iter().filter(is_other) {
                *grown.entry(Payer::clone(payer)).or_default() += holders.usage();
            }
        }
        grown
    }

    /// What is charged for contents that are held, counted from all of them, and what of it is not as it must be. `held`
    /// are the contents that operations need.
    pub(super) fn recount_held(
        &self,
        held: impl IntoIterator<Item = Hold>,
        found: &mut Vec<String>,
    ) -> BTreeMap<Payer, Usage> {
        let mut counted: BTreeMap<u64, BTreeMap<Payer, usize>> = BTreeMap::new();
        let branches = self.transactions.values().flat_map(|t| t.branches.values());
        for hold in branches.flat_map(Branch::holds).chain(held).filter(|hold| hold.blob != 0) {
            let payers = counted.entry(hold.blob).or_default();
            *payers.entry(Payer::clone(&hold.payer)).or_default() += 1;
        }
        let kept = self.holders.iter().map(|(blob, holders)| {
            (*blob, holders.payers.iter().map(|(payer, n)| (Payer::clone(payer), *n)).collect())
        });
        let kept: BTreeMap<u64, BTreeMap<Payer, usize>> = kept.collect();
        if counted != kept {
            found.push(format!("contents are held {counted:?}, kept is {kept:?}"));
        }
        let mut charged: BTreeMap<u64, usize> = BTreeMap::new();
        for (blob, count) in self.charges.values().flat_map(|charge| &charge.contents) {
            *charged.entry(*blob).or_default() += count;
        }
        if charged != self.charged {
            found.push(format!("branches are charged for {charged:?}, kept is {:?}", self.charged));
        }
        let mut usage: BTreeMap<Payer, Usage> = BTreeMap::new();
        for (blob, holders) in &self.holders {
            let is_due = !self.trunk.has_blob(*blob) && !charged.contains_key(blob);
            if is_due != holders.is_charged {
                found.push(format!("content {blob} is charged to its holders: {}", holders.is_charged));
            }
            for (payer, _) in holders.payers.iter().filter(|_| is_due) {
                *usage.entry(Payer::clone(payer)).or_default() += holders.usage();
            }
        }
        usage
    }
}
