use super::*;
use proptest::prelude::*;
use yson::Style;

const KIB: usize = 1 << 10;
/// Ten of what is ten mebibytes elsewhere.
const ROWS_MAX: u64 = 10 * KIB as u64;

fn item(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    yson::write::write_row(value, Style::Binary, &mut out);
    out
}

fn text(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    Printer::new(Format::Yson(Style::Text), Columns::default())
        .print(&item(value), &mut out)
        .expect("printed");
    out
}

fn mark(name: &str, value: i64) -> Value {
    Value::Entity.with_attributes(Map::new().with(name, value))
}

fn row_of(size: usize) -> Value {
    yson::map! {"s" => "x".repeat(size)}.into()
}

/// Saves what is left of a trail along pieces of rows and marks.
fn saved(pieces: &[Vec<Value>], taken_back: bool) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let (input, to) = (directory.path().join("input"), directory.path().join("saved"));
    let mut trail = Trail::keeping(ROWS_MAX);
    let mut all = Vec::new();
    for piece in pieces {
        let rows = piece.iter().flat_map(item).collect::<Vec<_>>();
        trail.add(&rows, piece.iter().map(|value| text(value).len()).sum());
        all.extend(rows);
    }
    std::fs::write(&input, all).expect("written");
    if taken_back {
        trail.take_back();
    }
    let size = trail.save(&input, &Format::Yson(Style::Text), &to).expect("saved");
    let found = std::fs::read(&to).unwrap_or_default();
    assert_eq!((found.len() as u64, to.exists()), (size, size > 0));
    found
}

fn joined<'v>(values: impl IntoIterator<Item = &'v Value>) -> Vec<u8> {
    values.into_iter().flat_map(text).collect()
}

#[test]
fn everything_if_it_is_little() {
    let pieces =
        [vec![mark("table_index", 0), row_of(1)], vec![row_of(2), mark("table_index", 1), row_of(3)]];
    assert_eq!(saved(&pieces, false), joined(pieces.iter().flatten()));
    assert_eq!(saved(&pieces, true), joined(&pieces[0]));
    assert_eq!(saved(&[], false), b"");
    assert_eq!(saved(&pieces[..1], true), b"");
}

#[test]
fn the_last_rows_and_what_the_marks_before_them_say() {
    let beginning = vec![mark("table_index", 3), mark("range_index", 1), mark("row_index", 10)];
    let many: Vec<Vec<Value>> = (0..6).map(|_| vec![row_of(KIB), row_of(KIB)]).collect();
    let pieces = [&[beginning][..], &many].concat();
    let found = saved(&pieces, false);
    let [table, range, row] = [mark("table_index", 3), mark("range_index", 1), mark("row_index", 14)];
    let kept = [&[table, range, row][..], &vec![row_of(KIB); 8]].concat();
    assert!(found == joined(&kept), "{} bytes of {}", found.len(), joined(&kept).len());
}

#[test]
fn one_piece_that_is_too_long_gives_its_last_rows_or_the_beginning_of_one() {
    let (large, small) = (row_of(11 * KIB), row_of(7));
    let found = saved(&[vec![mark("row_index", 5), large.clone(), small.clone(), small.clone()]], false);
    assert_eq!(found, joined(&[mark("row_index", 6), small.clone(), small.clone()]));
    let found = saved(&[vec![small], vec![mark("row_index", 5), large.clone()]], false);
    assert_eq!(found.len() as u64, ROWS_MAX + MARKS_MAX);
    assert!(joined(&[mark("row_index", 5), large]).starts_with(&found));
}

proptest! {
    /// Whole rows from the end, at most so many bytes, and no fewer than a piece less than that.
    #[test]
    fn as_much_as_fits(sizes in prop::collection::vec(prop::collection::vec(1_usize..3_000, 1..4), 1..10)) {
        let pieces: Vec<Vec<Value>> =
            sizes.iter().map(|piece| piece.iter().map(|size| row_of(*size)).collect()).collect();
        let found = saved(&pieces, false);
        let all = joined(pieces.iter().flatten());
        prop_assert!(found.len() as u64 <= ROWS_MAX + MARKS_MAX && all.ends_with(&found) && found.first() == text(&row_of(1)).first());
        let next = pieces.iter().rev().scan(0, |sum, piece| { *sum += joined(piece).len(); Some(*sum) })
            .find(|sum| *sum > found.len());
        prop_assert!(next.is_none_or(|more| more as u64 > ROWS_MAX));
    }
}
