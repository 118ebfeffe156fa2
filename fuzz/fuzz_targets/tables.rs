//! Rows of tables: no panic in any format, however the input is cut, and what is taken weighs what it must and comes
//! back the same. Rows in YSON are what the parser of values makes of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tables::row::{self, Row};
use tables::{Columns, Intake, Printer};
use yson::{Format, JsonFormat, Style};

fn take(format: &Format, input: &[u8], piece: usize) -> Option<Vec<u8>> {
    let mut intake = Intake::new(format.clone());
    let mut rows = Vec::new();
    let mut sink = |_: usize, row: Row<'_>| {
        assert_eq!(row, Row::new(row.bytes));
        rows.extend_from_slice(row.bytes);
        Ok(())
    };
    input.chunks(piece).try_for_each(|piece| intake.push(piece, &mut sink)).ok()?;
    intake.finish(&mut sink).ok()?;
    Some(rows)
}

/// By the other parser. Rows keep what means nothing: `<>`, and keys of inner maps that are repeated.
fn values(rows: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for row in yson::Rows::new(rows) {
        yson::write::write_row(&row.expect("it was taken"), Style::Binary, &mut out);
    }
    out
}

fuzz_target!(|input: &[u8]| {
    let Some((piece, input)) = input.split_first() else { return };
    // What is read from a disk that fails.
    row::rows(input).for_each(|row| assert!(row::weight(row) > 0));
    let _ = Printer::new(Format::Yson(Style::Text), Columns::default()).print(input, &mut Vec::new());
    let formats = [
        Format::tabular_default(),
        Format::Json(JsonFormat::default()),
        Format::Dsv(Default::default()),
        Format::parse(b"<columns=[a;b]>schemaful_dsv").expect("a format"),
    ];
    for format in formats {
        let Some(rows) = take(&format, input, usize::from(*piece) + 1) else { continue };
        assert_eq!(take(&format, input, input.len().max(1)).as_ref(), Some(&rows));
        if matches!(format, Format::Yson(_)) {
            assert_eq!(values(&rows), values(input));
        }
        let printed = |rows: &[u8], style| {
            let mut out = Vec::new();
            Printer::new(Format::Yson(style), Columns::default()).print(rows, &mut out).expect("any row is YSON");
            out
        };
        assert_eq!(
            take(&Format::Yson(Style::Binary), &printed(&rows, Style::Binary), 7).as_ref(),
            Some(&rows)
        );
        // Text has one word for all numbers that are none, so it is compared as text.
        let text = printed(&rows, Style::Text);
        let again = take(&Format::Yson(Style::Text), &text, 7).expect("what was printed is read");
        assert_eq!(printed(&again, Style::Text), text);
    }
});
