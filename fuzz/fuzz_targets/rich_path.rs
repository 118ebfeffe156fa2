//! Rich paths: attributes in front, columns and ranges behind, as text and as a value with attributes; what they
//! select of a table. No panic, and the text of what was read is read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tables::Selection;
use yson::ypath::YPath;

fuzz_target!(|input: &[u8]| {
    // A value with attributes, as clients send it.
    if let Ok(value) = yson::parse(input)
        && let Ok(path) = YPath::from_value(&value)
    {
        select(&path);
    }
    let Ok(path) = YPath::parse(input) else { return };
    select(&path);
    let again = YPath::parse(path.to_string().as_bytes()).expect("canonical text can be read");
    assert_eq!(again.to_string(), path.to_string());
    for rows in [0, 1, 100] {
        assert_eq!(Selection::of(&again, rows).ok(), Selection::of(&path, rows).ok());
    }
});

fn select(path: &YPath) {
    for rows in [0, 1, 100, u64::MAX] {
        let Ok(selection) = Selection::of(path, rows) else { continue };
        for range in selection.ranges {
            assert!(range.start <= range.end && range.end <= rows, "{range:?} of {rows} rows");
        }
    }
}
