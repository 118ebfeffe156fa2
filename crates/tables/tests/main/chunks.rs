//! Chunks: what was written is what is read, whichever rows are asked for.

use tables::{Checker, Index, Selection, TRAILER, Writer};
use yson::ypath::YPath;
use yson::{Format, Value};

fn chunk(rows: u64) -> (Vec<u8>, tables::Summary) {
    let mut writer = Writer::new(Format::tabular_default(), Checker::new(None, Vec::new()));
    let mut out = Vec::new();
    for n in 0..rows {
        let row = format!("{{n={n};text=\"{}\"}};", "x".repeat((n % 300) as usize));
        writer.push(row.as_bytes(), &mut out).expect("a row");
    }
    let summary = writer.finish(&mut out).expect("rows");
    (out, summary)
}

fn index(chunk: &[u8]) -> Result<Index, vocab::Failure> {
    let trailer = &chunk[chunk.len() - TRAILER..];
    let place = Index::place(trailer, chunk.len() as u64)?;
    Index::parse(&chunk[place.start as usize..place.end as usize], trailer, place.start)
}

fn read(chunk: &[u8], wanted: std::ops::Range<u64>) -> Vec<u64> {
    let index = index(chunk).expect("a whole chunk");
    let mut found = Vec::new();
    for block in index.blocks_with(&wanted) {
        let bytes = &chunk[block.offset as usize..block.offset as usize + block.size];
        for row in tables::row::rows(block.rows(bytes, &wanted).expect("a whole block")) {
            let n = yson::parse(tables::row::column(row, b"n").expect("n")).expect("a number");
            found.push(n.as_u64().expect("not negative"));
        }
    }
    found
}

#[test]
fn every_range_is_what_was_written() {
    let (bytes, summary) = chunk(10_000);
    assert_eq!(summary.rows, 10_000);
    assert!(index(&bytes).expect("whole").blocks.len() > 3);
    for (from, to) in
        [(0, 10_000), (0, 0), (0, 1), (9_999, 10_000), (5, 6), (1_234, 4_321), (10_000, 10_000), (7, 20_000)]
    {
        let expected: Vec<u64> = (from..to.min(10_000)).collect();
        assert_eq!(read(&bytes, from..to), expected, "{from}..{to}");
    }
    let (empty, summary) = chunk(0);
    assert_eq!((summary.rows, read(&empty, 0..5)), (0, vec![]));
}

#[test]
fn damage_is_seen() {
    let (bytes, _) = chunk(2_000);
    for at in [10, bytes.len() - TRAILER - 5, bytes.len() - 20, bytes.len() - 1] {
        let mut broken = bytes.clone();
        broken[at] ^= 1;
        let seen = match index(&broken) {
            Err(_) => true,
            Ok(index) => index.blocks.iter().any(|b| {
                b.rows(&broken[b.offset as usize..b.offset as usize + b.size], &(0..u64::MAX)).is_err()
            }),
        };
        assert!(seen, "byte {at}");
    }
}

/// A chunk with these bytes as blocks and an index of `[rows; bytes; crc32]` with good checksums.
fn chunk_with_index(blocks: &[u8], entries: &[[u64; 3]]) -> Vec<u8> {
    let entries = entries.iter().map(|e| Value::List(e.iter().map(|n| Value::Uint(*n)).collect()));
    let index = yson::to_binary(&yson::map! {"blocks" => Value::List(entries.collect())}.into());
    let mut chunk = [blocks, &index, &(index.len() as u64).to_le_bytes()].concat();
    chunk.extend(crc32fast::hash(&index).to_le_bytes());
    chunk.extend(1_u32.to_le_bytes());
    chunk.extend(b"MPROWS\0\0");
    chunk
}

/// Issue 31, each parser has a fuzz target: a chunk of a foreign writer with good checksums, but sums that no chunk has.
#[test]
fn sums_of_an_index_that_no_chunk_has_are_damage() {
    let blocks = b"{a=1};{a=2};";
    let good = index(&chunk_with_index(blocks, &[[1, 6, 0], [1, 6, 0]])).expect("sums of this chunk");
    assert_eq!((good.blocks[1].first_row, good.blocks[1].offset), (1, 6));
    for (entries, expected) in [
        (
            &[[1, 6, 0], [1, u64::MAX, 0]][..],
            "the block at 6 has 18446744073709551615 bytes by its index, but the index begins at 12",
        ),
        (&[[1, 6, 0], [1, 7, 0]], "the block at 6 has 7 bytes by its index, but the index begins at 12"),
        (
            &[[u64::MAX, 6, 0], [1, 6, 0]],
            "the block at 0 has 18446744073709551615 rows in 6 bytes by its index",
        ),
        (&[[1, 6, 0]], "its blocks have 6 bytes by its index, but the index begins at 12"),
        (&[], "its blocks have 0 bytes by its index, but the index begins at 12"),
    ] {
        let refused = index(&chunk_with_index(blocks, entries)).expect_err(expected);
        assert_eq!(refused.message, format!("A chunk of the table is damaged: {expected}"));
    }
}

/// An index that is longer than the rows allow is refused before it is read.
#[test]
fn the_length_of_an_index_is_bounded_before_it_is_read() {
    let (bytes, _) = chunk(10);
    let mut trailer = bytes[bytes.len() - TRAILER..].to_vec();
    trailer[..8].copy_from_slice(&(1_u64 << 30).to_le_bytes());
    let refused = Index::place(&trailer, 2 << 30).expect_err("a gigabyte of index");
    assert!(refused.message.contains("its index has 1073741824 bytes for"), "{refused}");
    trailer[..8].copy_from_slice(&(1_u64 << 20).to_le_bytes());
    assert!(Index::place(&trailer, 2 << 30).is_ok());
}

#[test]
fn paths_say_which_rows() {
    for (path, ranges, columns) in [
        ("//t", &[(0, 10)][..], None),
        ("//t[#2:#5]", &[(2, 5)], None),
        ("//t[#2]", &[(2, 3)], None),
        ("//t{a,b}[#8:]", &[(8, 10)], Some(["a", "b"])),
        ("//t[:#3,#9:#20]", &[(0, 3), (9, 10)], None),
        ("//t[#7:#3]", &[(7, 7)], None),
        ("<upper_limit={row_index=4}>//t", &[(0, 4)], None),
    ] {
        let parsed = path.parse::<YPath>().expect(path);
        let selection = Selection::of(&parsed, 10).expect(path);
        let found: Vec<(u64, u64)> = selection.ranges.iter().map(|r| (r.start, r.end)).collect();
        assert_eq!(found, ranges, "{path}");
        let names = columns.map(|c| c.map(|n| n.as_bytes().to_vec()).to_vec());
        assert_eq!(selection.columns.only, names, "{path}");
    }
    let outside = |path: &str| {
        let parsed = path.parse::<YPath>().expect(path);
        let left = Selection::of(&parsed, 10).expect(path).outside(10);
        left.iter().map(|r| (r.start, r.end)).collect::<Vec<_>>()
    };
    assert_eq!(outside("//t"), []);
    // An empty range takes nothing away.
    assert_eq!(outside("//t[#3:#3]"), [(0, 3), (3, 10)]);
    assert_eq!(outside("//t[#2:#5]"), [(0, 2), (5, 10)]);
    assert_eq!(outside("//t[#8:,#1:#3,#2:#4,#1]"), [(0, 1), (4, 8)]);
    for path in [
        "//t[a:b]",
        "<ranges=5>//t",
        "<columns=a>//t",
        "<lower_limit={row_index=-1}>//t",
        // Half understood, these would be the whole table.
        "<ranges=[{lower={row_index=5}}]>//t",
        "<ranges=[{exact={row_index=5};lower_limit={row_index=1}}]>//t",
        "<ranges=[{exact={}}]>//t",
        "<exact={row_index=1}>//t[#5]",
        "<ranges=[{exact={row_index=5}}];upper_limit={row_index=1}>//t",
    ] {
        let parsed = path.parse::<YPath>().expect(path);
        let refused = Selection::of(&parsed, 10).expect_err(path);
        assert!(refused.message.starts_with("//t: "), "{refused}");
    }
    let by_key = "//t[zz:]".parse::<YPath>().expect("a path");
    let refused = Selection::of(&by_key, 10).expect_err("not by row numbers");
    let expected = "//t: Attribute \"lower_limit\" of a range must be {row_index=...}: limits by \"key\" are not \
                    supported, found {\"key\"=[\"zz\";];}";
    assert_eq!(refused.message, expected);
}
