//! `get_table_columnar_statistics` (http-api.md 8.3). Chunks here count rows and what they weigh, not columns: in
//! the words of the reference all of them are legacy chunks, which clients know to deal with.

use crate::Kernel;
use tables::Selection;
use vocab::Failure;
use yson::ypath::YPath;
use yson::{Map, Value};

impl Kernel {
    /// A map for each path, in order.
    pub(crate) fn table_columnar_statistics(&self, paths: &[YPath]) -> Result<Value, Failure> {
        let of_table = |path: &YPath| -> Result<Value, Failure> {
            let (_, table) = self.table(path)?;
            let row_count = table.row_count();
            let selected = Selection::of(path, row_count)?.row_count();
            let weight: u128 = table.chunks.iter().map(|chunk| u128::from(chunk.weight)).sum();
            // Of a part of the rows, their share: nobody has weighed them one by one.
            let weight = weight * u128::from(selected) / u128::from(row_count.max(1));
            Ok(yson::map! {
                "column_data_weights" => Map::new(),
                "legacy_chunks_data_weight" => i64::try_from(weight).unwrap_or(i64::MAX),
                "chunk_row_count" => 0i64,
                "legacy_chunk_row_count" => i64::try_from(selected).unwrap_or(i64::MAX),
            }
            .into())
        };
        paths.iter().map(of_table).collect::<Result<Vec<_>, _>>().map(Value::from)
    }
}
