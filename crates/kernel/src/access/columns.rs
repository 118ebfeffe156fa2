//! Entries of lists that speak of single columns of a table (http-api.md 8.4: `columns`).

use super::{Object, Who, denied};
use crate::Kernel;
use cypress::{NodeType, Permission};
use std::collections::BTreeSet;
use tables::Columns;
use vocab::{Failure, ObjectId};
use yson::ypath::YPath;

impl Kernel {
    /// Columns that this user may not read, though he may read the table.
    pub(crate) fn closed_columns(&self, who: &Who, object: &Object) -> BTreeSet<String> {
        match object {
            Object::Node(node) => cypress::acl::closed_columns(who.subjects(), self.tree.acl_chain(*node)),
            _ => BTreeSet::new(),
        }
    }

    /// Refuses to read columns of a table that are closed: those that the path selects, or all.
    pub(super) fn demand_columns(&self, who: &Who, object: &Object, path: &YPath) -> Result<(), Failure> {
        // What is no table has no columns, whatever its map says of those below.
        let is_table = matches!(object, Object::Node(id) if self.is_table(*id));
        let mut closed = self.closed_columns(who, object);
        if closed.is_empty() || !is_table {
            return Ok(());
        }
        let columns = Columns::of(path)?;
        closed.retain(|column| columns.reads(column.as_bytes()));
        refuse(who, &closed, &path.text())
    }

    fn is_table(&self, id: ObjectId) -> bool {
        self.tree.node(id).is_some_and(|node| node.node_type == NodeType::Table)
    }

    /// Copies have lists of their own: who may not read a column may not copy its table.
    pub(super) fn demand_all_columns_below(
        &self,
        who: &Who,
        top: ObjectId,
        shown: &str,
    ) -> Result<(), Failure> {
        refuse(who, &self.closed_columns_below(who, top)?, shown)
    }
}

fn refuse(who: &Who, closed: &BTreeSet<String>, shown: &str) -> Result<(), Failure> {
    match closed.first() {
        None => Ok(()),
        Some(column) => Err(denied(who, Permission::Read, &format!("column \"{column}\" of {shown}"), None)),
    }
}
