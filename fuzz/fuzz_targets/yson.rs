//! YSON: no panic, and what is taken comes back the same from every style.
#![no_main]

use libfuzzer_sys::fuzz_target;
use yson::{Style, write};

fuzz_target!(|input: &[u8]| {
    let _ = yson::parse_map_fragment(input);
    let rows: Result<Vec<_>, _> = yson::Rows::new(input).collect();
    assert_eq!(rows.is_ok(), yson::parse_list_fragment(input).is_ok());
    let Ok(value) = yson::parse(input) else { return };
    // Compared as text: NaN differs from itself.
    let text = yson::to_text(&value);
    for style in [Style::Text, Style::Pretty, Style::Binary] {
        let mut form = Vec::new();
        write::write(&value, style, &mut form);
        let again = yson::parse(&form).expect("what was written can be read");
        assert_eq!(yson::to_text(&again), text);
    }
});
