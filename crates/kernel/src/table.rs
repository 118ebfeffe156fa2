//! Tables (http-api.md 8.3): where their rows are, and what becomes of them when rows are written. The rows
//! themselves are in blobs that the edge reads and writes.

use crate::{Effect, Kernel};
use cypress::{Body, Chunk, Last, Resolved, TableContent};
use tables::Schema;
use vocab::{Failure, ObjectId, Time, code};
use yson::Value;
use yson::ypath::YPath;

/// More pieces make the record of a table a burden: every write writes it anew.
const MAX_CHUNKS: usize = 10_000;

/// Rows that are durable in blobs and are to become those of a table.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TableRows {
    /// In order.
    pub chunks: Vec<Chunk>,
    /// Behind the rows that are there, not instead of them.
    pub append: bool,
    /// They were found to be sorted by these columns.
    pub sorted_by: Vec<String>,
    /// They were found to be of this schema; an entity if nothing was asked of them.
    pub schema: Value,
    /// The table gets that schema; else it must have it.
    pub replace_schema: bool,
}

impl Kernel {
    /// A table by its path.
    pub(crate) fn table(&self, path: &YPath) -> Result<(ObjectId, &TableContent), Failure> {
        let place = match self.tree.resolve(path, Last::Follow)? {
            Resolved::Local(place) if place.rest.is_empty() => place,
            Resolved::Local(place) => return Err(self.tree.missing(&place)),
            Resolved::Mount(mounted) => {
                return Err(Failure::new(format!("{} is not a table", self.tree.show(&mounted.as_place()))));
            }
            Resolved::Foreign(foreign) => return Err(foreign.failure()),
        };
        let node = self.tree.expect_node(place.node)?;
        match &node.body {
            Body::Table(table) => Ok((place.node, table)),
            _ => {
                let path = self.tree.path(place.node);
                let message = format!("{path} is of type {}, expected a table", node.node_type.name());
                Err(Failure::new(message).with("path", path))
            }
        }
    }

    /// `{id, revision, schema, sorted_by, chunks}` of a table.
    pub(crate) fn locate_table(&self, path: &YPath) -> Result<Value, Failure> {
        let (id, table) = self.table(path)?;
        let chunks: Vec<Value> = table.chunks.iter().map(Chunk::to_value).collect();
        Ok(yson::map! {
            "id" => id,
            "revision" => self.tree.node(id).map_or(0, |n| n.content_revision),
            "schema" => table.schema.clone(),
            "sorted_by" => table.sorted_by.clone(),
            "chunks" => chunks,
        }
        .into())
    }

    /// The end of `write_table`.
    pub(crate) fn table_written(
        &mut self,
        now: Time,
        user: &str,
        path: &YPath,
        rows: TableRows,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let (id, table) = self.table(path)?;
        let shown = || self.tree.path(id);
        let content = settle(table, rows).map_err(|failure| {
            Failure::coded(failure.code, format!("Cannot write table {}", shown()))
                .with("path", shown())
                .because(failure)
        })?;
        self.edit(now, user, out, |edit| edit.set_table_content(id, content))
    }

    /// `alter_table`.
    pub(crate) fn alter_table(
        &mut self,
        now: Time,
        user: &str,
        path: &YPath,
        schema: Value,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let (id, _) = self.table(path)?;
        self.edit(now, user, out, |edit| edit.alter_table(id, schema))
    }

    /// `concatenate` of tables: their rows one after another, without copying them.
    pub(crate) fn concatenate(
        &mut self,
        now: Time,
        user: &str,
        (sources, destination): (&[YPath], &YPath),
        append: bool,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let (_, target) = self.table(destination)?;
        let schema = Schema::parse(&target.schema)?;
        let mut rows = TableRows { append, schema: target.schema.clone(), ..TableRows::default() };
        for path in sources {
            let (id, source) = self.table(path)?;
            if source.chunks.is_empty() {
                continue;
            }
            let found = Schema::parse(&source.schema)?;
            Schema::check_change(found.as_ref(), schema.as_ref()).map_err(|failure| {
                let path = self.tree.path(id);
                Failure::new(format!("Rows of {path} are not of the destination's schema"))
                    .with("path", path)
                    .because(failure)
            })?;
            rows.chunks.extend_from_slice(&source.chunks);
        }
        rows.sorted_by = schema.map(|s| s.key_columns()).unwrap_or_default();
        in_order(&rows.chunks)?;
        self.table_written(now, user, destination, rows, out)
    }
}

/// What a table is after rows were written.
pub(crate) fn settle(old: &TableContent, rows: TableRows) -> Result<TableContent, Failure> {
    let TableRows { chunks, append, sorted_by, schema, replace_schema } = rows;
    if !replace_schema && old.schema != schema {
        return Err(Failure::new("The schema of the table was changed while rows were written"));
    }
    if append && replace_schema && !old.chunks.is_empty() {
        Schema::check_change(Schema::parse(&old.schema)?.as_ref(), Schema::parse(&schema)?.as_ref())?;
    }
    let mut all = if append { old.chunks.clone() } else { Vec::new() };
    let first_new = all.len();
    all.extend(chunks.into_iter().filter(|c| c.rows > 0));
    if all.len() > MAX_CHUNKS {
        return Err(Failure::coded(
            code::ACCOUNT_LIMIT,
            format!(
                "The table would have {} chunks, at most {MAX_CHUNKS} are allowed: merge it first",
                all.len()
            ),
        ));
    }
    let still_sorted = !sorted_by.is_empty() && (first_new == 0 || old.sorted_by == sorted_by);
    if still_sorted {
        // Only the seam has not been looked at.
        in_order(&all[first_new.saturating_sub(1)..])?;
    }
    let sorted_by = if still_sorted { sorted_by } else { Vec::new() };
    Ok(TableContent { chunks: all, sorted_by, schema })
}

/// Do sorted chunks follow each other in the order of their keys?
fn in_order(chunks: &[Chunk]) -> Result<(), Failure> {
    for pair in chunks.windows(2) {
        let (Some((_, last)), Some((first, _))) = (&pair[0].bounds, &pair[1].bounds) else { continue };
        if tables::compare_keys(last, first).is_gt() {
            let shown = |key: &[Value]| yson::write::to_text_string(&key.to_vec().into());
            return Err(Failure::new(format!(
                "The table is sorted, but key {} comes behind {}",
                shown(first),
                shown(last)
            )));
        }
    }
    Ok(())
}
