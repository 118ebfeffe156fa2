//! YPath: no panic, and canonical text is a fixed point.
#![no_main]

use libfuzzer_sys::fuzz_target;
use yson::ypath::YPath;

fuzz_target!(|input: &[u8]| {
    let Ok(path) = YPath::parse(input) else { return };
    let text = path.to_string();
    let again = YPath::parse(text.as_bytes()).expect("canonical text can be read");
    assert_eq!(again.steps, path.steps);
    assert_eq!(again.root, path.root);
    assert_eq!(again.to_string(), text);
});
