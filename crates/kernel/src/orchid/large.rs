//! Large maps of a pool tree (http-api.md 11.1, 11.2): all that is in them lies in the published snapshot. So the kernel
//! says only which map of which snapshot is asked for, and whoever wants it makes it when and where he likes: nobody
//! waits for a hundred thousand operations that somebody else looks at.

use super::Wanted;
use crate::Kernel;
use cypress::{GetOptions, Mounted};
use scheduler::TreeSnapshot;
use std::fmt;
use std::sync::Arc;
use vocab::OperationId;
use yson::{Map, Value};

/// `get` or `list` of a large map.
pub struct SnapshotQuery {
    tree: Arc<TreeSnapshot>,
    map: LargeMap,
    fields: Option<Vec<String>>,
    max_size: Option<usize>,
    names_only: bool,
    /// Attributes that are wanted of what is in it.
    attributes: Vec<String>,
}

/// Which map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LargeMap {
    Pools,
    Operations,
    OperationsOf(String),
    ChildPoolsOf(String),
}

impl LargeMap {
    /// The map that keys below a tree lead to, or into, and how many of them it takes.
    pub fn named(tree: &TreeSnapshot, keys: &[&str]) -> Option<(LargeMap, usize)> {
        let known = |name: &str| tree.pool(name).map(|_| name.to_owned());
        Some(match keys {
            ["pools", ..] => (LargeMap::Pools, 1),
            ["operations", ..] => (LargeMap::Operations, 1),
            ["operations_by_pool", name, ..] => (LargeMap::OperationsOf(known(name)?), 2),
            ["child_pools_by_pool", name, ..] => (LargeMap::ChildPoolsOf(known(name)?), 2),
            _ => return None,
        })
    }

    /// The map, or what is wanted of it.
    pub fn of(&self, tree: &TreeSnapshot, wanted: Wanted<'_>) -> Value {
        let pool = |name: &Arc<str>| {
            Some((name.to_string(), tree.pool_attributes(name, wanted.fields).map(Value::from)?))
        };
        let operation = |id: OperationId| {
            Some((id.to_string(), tree.operation_attributes(id, wanted.fields).map(Value::from)?))
        };
        match self {
            LargeMap::Pools => wanted.of(tree.pool_names().filter_map(pool)),
            LargeMap::Operations => wanted.of(tree.operation_ids().filter_map(operation)),
            LargeMap::OperationsOf(pool) => {
                let inside = tree.operations_of_pool(pool).unwrap_or_default();
                wanted.of(inside.into_iter().filter_map(operation))
            }
            LargeMap::ChildPoolsOf(parent) => {
                let inside = tree.child_pools(parent).unwrap_or_default();
                wanted.of(inside.iter().filter_map(pool))
            }
        }
    }

    fn names(&self, tree: &TreeSnapshot, options: &GetOptions) -> Value {
        let names = |all: &mut dyn Iterator<Item = String>| {
            // One more, to see whether it is there.
            let some = all.take(options.max_size.unwrap_or(usize::MAX).saturating_add(1));
            crate::mounts::names(some, options, |_| Map::new())
        };
        match self {
            LargeMap::Pools => names(&mut tree.pool_names().map(|name| name.to_string())),
            LargeMap::Operations => names(&mut tree.operation_ids().map(|id| id.to_string())),
            LargeMap::OperationsOf(pool) => {
                let inside = tree.operations_of_pool(pool).unwrap_or_default();
                names(&mut inside.iter().map(OperationId::to_string))
            }
            LargeMap::ChildPoolsOf(parent) => {
                let inside = tree.child_pools(parent).unwrap_or_default();
                names(&mut inside.iter().map(|name| name.to_string()))
            }
        }
    }
}

impl SnapshotQuery {
    /// The answer; it takes as long as the map is large.
    pub fn answer(&self) -> Value {
        if self.names_only {
            let options = GetOptions { max_size: self.max_size, ..GetOptions::default() };
            return self.map.names(&self.tree, &options);
        }
        let fields: Option<Vec<&str>> = self.fields.as_ref().map(|f| f.iter().map(String::as_str).collect());
        let children = self.max_size.unwrap_or(usize::MAX);
        let value = self.map.of(&self.tree, Wanted { fields: fields.as_deref(), children });
        crate::mounts::typed(value, &self.attributes)
    }
}

impl fmt::Debug for SnapshotQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of the snapshot of {} of {:?}", self.map, self.tree.name, self.tree.time)
    }
}

impl Kernel {
    /// A large map that a path leads to, not into.
    pub(crate) fn large_map(
        &self,
        at: &Mounted,
        options: &GetOptions,
        fields: Option<&[String]>,
        names_only: bool,
    ) -> Option<SnapshotQuery> {
        let keys = at.rest.iter().map(|step| Some(String::from_utf8_lossy(&step.key()?).into_owned()));
        let keys = keys.collect::<Option<Vec<String>>>()?;
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let (tree, below) = match keys.as_slice() {
            ["scheduler", "scheduling_info_per_pool_tree", tree, "fair_share_info", below @ ..]
            | ["scheduler", "pool_trees" | "scheduling_info_per_pool_tree", tree, below @ ..] => {
                (tree, below)
            }
            _ => return None,
        };
        let tree = Arc::clone(self.scheduler.snapshot().tree(tree)?);
        let (map, used) = LargeMap::named(&tree, below)?;
        let fields = fields.map(<[String]>::to_vec);
        (used == below.len()).then_some(SnapshotQuery {
            tree,
            map,
            fields,
            max_size: options.max_size,
            names_only,
            attributes: options.attributes.clone(),
        })
    }
}
