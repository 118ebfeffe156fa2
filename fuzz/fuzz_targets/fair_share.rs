//! Cases of the fair-share calculator: an answer that is one line of JSON, or a refusal that the
//! reader gave, never the update.
#![no_main]

use calc::fair_share::{Settings, answer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (sparse, line) = match input.split_first() {
        Some((b's', line)) => (true, line),
        _ => (false, input),
    };
    // Volumes of text buy nothing: a tree of a few dozen elements has all that there is.
    if line.len() > 8192 {
        return;
    }
    let mut clock = || panic!("nothing is measured");
    match answer(line, &Settings { repeat: None, sparse }, &mut clock) {
        Ok(answer) => {
            assert_eq!(answer.iter().position(|b| *b == b'\n'), Some(answer.len() - 1));
            // Another reader than that of cases: ours gives keys that begin with `$` a meaning.
            serde_json::from_slice::<serde_json::Value>(&answer).expect("an answer is JSON");
        }
        Err(refusal) => assert!(!refusal.message.contains("the update refuses"), "{refusal}"),
    }
});
