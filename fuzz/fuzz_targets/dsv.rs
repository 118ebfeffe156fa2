//! DSV: no panic, and what is taken comes back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use yson::Value;
use yson::dsv::{DsvFormat, from_dsv, write_dsv_row};

fuzz_target!(|input: &[u8]| {
    for format in [DsvFormat::default(), DsvFormat::tskv()] {
        let Ok(rows) = from_dsv(input, &format).collect::<Result<Vec<Value>, _>>() else { continue };
        let mut text = Vec::new();
        rows.iter().for_each(|row| write_dsv_row(row, &format, &mut text).expect("strings can be written"));
        let again = from_dsv(&text, &format).collect::<Result<Vec<Value>, _>>();
        assert_eq!(again.as_ref(), Ok(&rows));
    }
});
