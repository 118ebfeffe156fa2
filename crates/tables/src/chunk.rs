//! How rows lie on the disk: a chunk is a blob that never changes.
//!
//! ```text
//! block, block, ...     rows in their inner form, about 256 KiB each
//! index                 binary YSON: {blocks=[[rows;bytes;crc32];...]}
//! trailer, 24 bytes     bytes of the index u64, its crc32 u32, version u32, "MPROWS" and two zeros
//! ```
//!
//! A reader takes the trailer, then the index, then only the blocks with rows that it wants.

use std::ops::Range;
use vocab::Failure;
use yson::Value;

/// Bytes of the trailer.
pub const TRAILER: usize = 24;

/// A block is closed when it has so many bytes.
const BLOCK: usize = 256 << 10;
const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"MPROWS\0\0";

/// Puts rows into the bytes of a chunk.
#[derive(Default)]
pub struct ChunkBuilder {
    block: Vec<u8>,
    block_rows: u64,
    blocks: Vec<Block>,
    rows: u64,
    offset: u64,
}

/// Where a block is and what is in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// Number of its first row in the chunk.
    pub first_row: u64,
    /// How many rows.
    pub rows: u64,
    /// Where it begins.
    pub offset: u64,
    /// How many bytes.
    pub size: usize,
    crc: u32,
}

impl ChunkBuilder {
    /// Adds a row in its inner form; a block that is full is appended to `out`.
    pub fn add(&mut self, row: &[u8], out: &mut Vec<u8>) {
        self.block.extend_from_slice(row);
        self.block_rows += 1;
        if self.block.len() >= BLOCK {
            self.close(out);
        }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows + self.block_rows
    }

    /// Appends the rest of the chunk.
    pub fn finish(mut self, out: &mut Vec<u8>) {
        self.close(out);
        let blocks = self
            .blocks
            .iter()
            .map(|b| Value::List(vec![b.rows.into(), (b.size as u64).into(), u64::from(b.crc).into()]));
        let index = yson::to_binary(&yson::map! {"blocks" => Value::List(blocks.collect())}.into());
        out.extend_from_slice(&index);
        out.extend_from_slice(&(index.len() as u64).to_le_bytes());
        out.extend_from_slice(&crc32fast::hash(&index).to_le_bytes());
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(MAGIC);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.block.is_empty() {
            return;
        }
        self.blocks.push(Block {
            first_row: self.rows,
            rows: self.block_rows,
            offset: self.offset,
            size: self.block.len(),
            crc: crc32fast::hash(&self.block),
        });
        self.rows += self.block_rows;
        self.offset += self.block.len() as u64;
        self.block_rows = 0;
        if out.is_empty() {
            std::mem::swap(out, &mut self.block);
        } else {
            out.append(&mut self.block);
        }
    }
}

fn damaged(what: &str) -> Failure {
    Failure::new(format!("A chunk of the table is damaged: {what}"))
}

/// What lies where in a chunk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Index {
    /// In order.
    pub blocks: Vec<Block>,
}

impl Index {
    /// Where the index of a chunk of `size` bytes is, read from its last [`TRAILER`] bytes.
    pub fn place(trailer: &[u8], size: u64) -> Result<Range<u64>, Failure> {
        let trailer: &[u8; TRAILER] = trailer.try_into().map_err(|_| damaged("it is too short"))?;
        if &trailer[16..] != MAGIC || trailer[12..16] != VERSION.to_le_bytes() {
            return Err(damaged("it does not end as a chunk does"));
        }
        let length = u64::from_le_bytes(trailer[..8].try_into().expect("eight bytes"));
        let end = size.checked_sub(TRAILER as u64).ok_or_else(|| damaged("it is too short"))?;
        let start = end.checked_sub(length).ok_or_else(|| damaged("its index is longer than itself"))?;
        // An entry of the index has less than 50 bytes, and a block that is not the last one at least `BLOCK`: the bound is
        // many times more, so that a damaged trailer does not let a reader take a whole large blob into memory.
        if length > 1024 + start / 256 {
            return Err(damaged(&format!("its index has {length} bytes for {start} bytes of rows")));
        }
        Ok(start..end)
    }

    /// Reads the index that begins at `start` of the chunk ([`Index::place`]). Its blocks fill the `start` bytes before
    /// it, and a block has no more rows than bytes: no sum of an accepted index overflows, and no reader asks for more
    /// than the chunk has.
    pub fn parse(index: &[u8], trailer: &[u8], start: u64) -> Result<Index, Failure> {
        let bad = || damaged("its index has another checksum");
        let crc = trailer.get(8..12).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        if crc != Some(crc32fast::hash(index)) {
            return Err(bad());
        }
        let value = yson::parse(index).map_err(|_| bad())?;
        let list = value.get("blocks").and_then(Value::as_list).ok_or_else(bad)?;
        let (mut first_row, mut offset) = (0, 0_u64);
        let mut blocks = Vec::with_capacity(list.len());
        for entry in list {
            let number = |at: usize| entry.as_list().and_then(|l| l.get(at)?.as_u64()).ok_or_else(bad);
            let (rows, size) = (number(0)?, number(1)?);
            let crc = u32::try_from(number(2)?).map_err(|_| bad())?;
            let end = offset.checked_add(size).filter(|end| *end <= start).ok_or_else(|| {
                damaged(&format!(
                    "the block at {offset} has {size} bytes by its index, but the index begins at {start}"
                ))
            })?;
            if rows > size {
                return Err(damaged(&format!(
                    "the block at {offset} has {rows} rows in {size} bytes by its index"
                )));
            }
            blocks.push(Block { first_row, rows, offset, size: size as usize, crc });
            first_row += rows;
            offset = end;
        }
        if offset != start {
            return Err(damaged(&format!(
                "its blocks have {offset} bytes by its index, but the index begins at {start}"
            )));
        }
        Ok(Index { blocks })
    }

    /// Blocks that have some of these rows.
    pub fn blocks_with(&self, rows: &Range<u64>) -> &[Block] {
        let from = self.blocks.partition_point(|b| b.first_row + b.rows <= rows.start);
        let to = self.blocks.partition_point(|b| b.first_row < rows.end);
        self.blocks.get(from..to).unwrap_or_default()
    }
}

impl Block {
    /// Those of `bytes`, which are this block, that are the wanted rows of the chunk.
    pub fn rows<'a>(&self, bytes: &'a [u8], wanted: &Range<u64>) -> Result<&'a [u8], Failure> {
        if bytes.len() != self.size || crc32fast::hash(bytes) != self.crc {
            return Err(damaged(&format!("the block at {} has another checksum", self.offset)));
        }
        let skip = wanted.start.saturating_sub(self.first_row).min(self.rows);
        let take = wanted.end.saturating_sub(self.first_row).min(self.rows).saturating_sub(skip);
        if skip == 0 && take == self.rows {
            return Ok(bytes);
        }
        let mut rows = crate::row::rows(bytes);
        if skip > 0 {
            rows.nth(skip as usize - 1);
        }
        let start = rows.rest();
        if take > 0 {
            rows.nth(take as usize - 1);
        }
        Ok(&start[..start.len() - rows.rest().len()])
    }
}
