//! Tables (http-api.md 8.3): where their rows are, and what becomes of them when rows are written. The rows
//! themselves are in blobs that the edge reads and writes.

use crate::access::{Object, Who};
use crate::concatenate::demand_whole;
use crate::{Effect, Kernel};
use cypress::{Body, Chunk, TableContent};
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
        let (id, node) = self.tree_node(path, "a table")?;
        match &node.body {
            Body::Table(table) => Ok((id, table)),
            _ => Err(self.unexpected(id, "a table")),
        }
    }

    /// `{id, revision, schema, sorted_by, chunks, room, closed_columns}` of a table, as far as somebody may read it.
    pub(crate) fn locate_table(&self, who: Option<&Who>, path: &YPath) -> Result<Value, Failure> {
        let (id, table) = self.table(path)?;
        let closed = who.map(|who| self.closed_columns(who, &Object::Node(id))).unwrap_or_default();
        let chunks: Vec<Value> = table.chunks.iter().map(Chunk::to_value).collect();
        Ok(yson::map! {
            "id" => id,
            "revision" => self.tree.node(id).map_or(0, |n| n.content_revision),
            "schema" => table.schema.clone(),
            "sorted_by" => table.sorted_by.clone(),
            "chunks" => chunks,
            "room" => self.disk_room(id),
            "closed_columns" => closed.into_iter().collect::<Vec<_>>(),
        }
        .into())
    }

    /// The end of `write_table`: the answer is the blob that was taken, since what is asked twice is written twice.
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
        let append = rows.append;
        let content = settle(table, rows).map_err(|failure| {
            Failure::coded(failure.code, format!("Cannot write table {}", shown()))
                .with("path", shown())
                .because(failure)
        })?;
        self.edit(now, user, out, |edit| match append {
            true => edit.append_to_table(id, content),
            false => edit.set_table_content(id, content),
        })
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

    /// Chunks of tables, one table after another, whose rows may be those of a table with this schema.
    pub(crate) fn chunks_of(&self, sources: &[YPath], schema: &Value) -> Result<Vec<Chunk>, Failure> {
        let schema = Schema::parse(schema)?;
        let mut chunks = Vec::new();
        if sources.len() > MAX_CHUNKS {
            return Err(too_many_chunks(sources.len()));
        }
        for path in sources {
            let (id, source) = self.table(path)?;
            demand_whole(path, source.row_count(), "tables")?;
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
            // Before they are there: the same table may be named many times.
            if chunks.len() + source.chunks.len() > MAX_CHUNKS {
                return Err(too_many_chunks(chunks.len() + source.chunks.len()));
            }
            chunks.extend_from_slice(&source.chunks);
        }
        Ok(chunks)
    }
}

fn too_many_chunks(count: usize) -> Failure {
    let message =
        format!("The table would have {count} chunks, at most {MAX_CHUNKS} are allowed: merge it first");
    Failure::coded(code::ACCOUNT_LIMIT, message)
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
        return Err(too_many_chunks(all.len()));
    }
    let still_sorted = !sorted_by.is_empty() && (first_new == 0 || old.sorted_by.starts_with(&sorted_by));
    let parsed = Schema::parse(&schema)?;
    if !still_sorted && first_new > 0 && parsed.as_ref().is_some_and(|s| !s.key_columns().is_empty()) {
        return Err(Failure::new(format!(
            "The schema says that rows are sorted by {:?}, but those of the table are sorted by {:?} and those to be \
             appended by {sorted_by:?}",
            parsed.map(|s| s.key_columns()).unwrap_or_default(),
            old.sorted_by
        )));
    }
    if still_sorted {
        for (first, last) in all.iter_mut().filter_map(|chunk| chunk.bounds.as_mut()) {
            // By a part of the key rows are sorted, too.
            first.truncate(sorted_by.len());
            last.truncate(sorted_by.len());
        }
        // Only the seam has not been looked at.
        let unique = parsed.is_some_and(|s| s.unique_keys);
        in_order(&all[first_new.saturating_sub(1)..], unique)?;
    }
    let sorted_by = if still_sorted { sorted_by } else { Vec::new() };
    Ok(TableContent { chunks: all, sorted_by, schema })
}

/// Do sorted chunks follow each other in the order of their keys?
pub(crate) fn in_order(chunks: &[Chunk], unique: bool) -> Result<(), Failure> {
    for pair in chunks.windows(2) {
        let (Some((_, last)), Some((first, _))) = (&pair[0].bounds, &pair[1].bounds) else { continue };
        let order = tables::compare_keys(last, first);
        let shown = |key: &[Value]| yson::write::to_text_string(&key.to_vec().into());
        if order.is_eq() && unique {
            return Err(Failure::new(format!("Keys are unique, but key {} is there twice", shown(first))));
        }
        if order.is_gt() {
            return Err(Failure::new(format!(
                "The table is sorted, but key {} comes behind {}",
                shown(first),
                shown(last)
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(rows: u64, first: i64, last: i64) -> Chunk {
        let bounds = Some((vec![first.into()], vec![last.into()]));
        Chunk { blob: 1, size: 1, rows, row_bytes: 1, weight: 1, bounds }
    }

    fn keyed(unique: bool) -> Value {
        let list = yson::parse(b"[{name=k;type=int64;sort_order=ascending}]").expect("YSON");
        list.with_attributes(yson::map! {"unique_keys" => unique})
    }

    /// `k` sorted rows `first..=last` are written to a table that has `0..=5`.
    fn after(
        append: bool,
        schema: &Value,
        sorted: bool,
        first: i64,
        last: i64,
    ) -> Result<(u64, bool), Failure> {
        let by = |on: bool| if on { vec!["k".to_owned()] } else { Vec::new() };
        let old = TableContent { chunks: vec![chunk(6, 0, 5)], sorted_by: by(true), schema: schema.clone() };
        let schema = schema.clone();
        let rows = TableRows {
            chunks: vec![chunk(2, first, last)],
            append,
            sorted_by: by(sorted),
            schema,
            replace_schema: false,
        };
        settle(&old, rows).map(|table| (table.row_count(), !table.sorted_by.is_empty()))
    }

    #[test]
    fn rows_replace_and_extend() {
        let weak = Value::Entity;
        assert_eq!(after(false, &weak, true, 1, 2), Ok((2, true)));
        assert_eq!(after(false, &weak, false, 1, 2), Ok((2, false)));
        assert_eq!(after(true, &weak, true, 5, 9), Ok((8, true)));
        assert_eq!(after(true, &weak, false, 1, 2), Ok((8, false)));
        let refused = after(true, &weak, true, 4, 9).expect_err("out of order");
        assert_eq!(refused.message, "The table is sorted, but key [4;] comes behind [5;]");
        assert_eq!(after(true, &keyed(false), true, 5, 9), Ok((8, true)));
        let refused = after(true, &keyed(true), true, 5, 9).expect_err("twice");
        assert_eq!(refused.message, "Keys are unique, but key [5;] is there twice");
    }

    /// Rows that are sorted by two columns are sorted by the first of them.
    #[test]
    fn keys_become_shorter() {
        let wide = |a: i64, b: i64| vec![Value::from(a), b.into()];
        let mut old_chunk = chunk(2, 0, 0);
        old_chunk.bounds = Some((wide(1, 1), wide(5, 9)));
        let old = TableContent {
            chunks: vec![old_chunk],
            sorted_by: vec!["k".to_owned(), "l".to_owned()],
            schema: keyed(false),
        };
        let append = |first| TableRows {
            chunks: vec![chunk(1, first, 7)],
            append: true,
            sorted_by: vec!["k".to_owned()],
            schema: keyed(false),
            replace_schema: false,
        };
        let table = settle(&old, append(5)).expect("5 comes behind 5, 9");
        assert_eq!(table.sorted_by, ["k"]);
        assert_eq!(table.chunks[0].bounds, Some((vec![1.into()], vec![5.into()])));
        assert!(settle(&old, append(4)).is_err());
        let unsorted = TableContent { sorted_by: Vec::new(), ..old };
        let refused = settle(&unsorted, append(5)).expect_err("nobody knows how they are sorted");
        assert!(refused.message.contains("sorted by [\"k\"], but those of the table"), "{}", refused.message);
    }

    #[test]
    fn a_schema_that_changed_meanwhile_is_seen_and_too_many_chunks_are_refused() {
        let old = TableContent { schema: keyed(false), ..TableContent::default() };
        let refused = settle(&old, TableRows::default()).expect_err("another schema");
        assert!(refused.message.contains("was changed while rows were written"));
        let many = TableRows { chunks: vec![chunk(1, 0, 0); MAX_CHUNKS + 1], ..TableRows::default() };
        assert_eq!(settle(&TableContent::default(), many).expect_err("too many").code, code::ACCOUNT_LIMIT);
    }
}
