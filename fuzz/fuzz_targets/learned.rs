//! Cases of the calculators of what is learned about jobs: an answer that is one line of JSON, or a
//! refusal with a place.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (answer, line) = match input.split_first() {
        Some((b'm', line)) => (calc::memory_digest::answer(line), line),
        _ => (calc::cpu_monitor::answer(input), input),
    };
    match answer {
        Ok(answer) => {
            assert_eq!(answer.iter().position(|b| *b == b'\n'), Some(answer.len() - 1), "{line:?}");
            serde_json::from_slice::<serde_json::Value>(&answer).expect("an answer is JSON");
        }
        Err(refusal) => assert!(!refusal.message.is_empty()),
    }
});
