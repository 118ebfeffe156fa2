//! Messages between node, spawner and job proxies, and custom statistics, which jobs write: the first byte says which, the second
//! how the stream is cut. No panic, and how it is cut does not matter.
#![no_main]

use jobproxy::codec::{FrameReader, Wire, encode_frame};
use jobproxy::custom::CustomStatistics;
use jobproxy::protocol::{FromProxy, FromSpawner, ToProxy, ToSpawner};
use libfuzzer_sys::fuzz_target;

/// The messages of a stream, in bytes, and whether it ended with an error.
fn frames<M: Wire>(input: &[u8], piece: usize) -> (Vec<u8>, bool) {
    let (mut reader, mut taken) = (FrameReader::default(), Vec::new());
    for piece in input.chunks(piece) {
        reader.push(piece);
        loop {
            match reader.next_message::<M>() {
                Ok(Some(message)) => encode_frame(&message, &mut taken),
                Ok(None) => break,
                Err(_) => return (taken, true),
            }
        }
    }
    (taken, false)
}

fn check<M: Wire>(input: &[u8], piece: usize) {
    let (taken, is_bad) = frames::<M>(input, piece);
    assert_eq!(frames::<M>(input, input.len().max(1)), (taken.clone(), is_bad));
    assert_eq!(frames::<M>(&taken, piece), (taken.clone(), false), "what was read can be sent");
}

fn statistics(input: &[u8], piece: usize) -> String {
    let mut custom = CustomStatistics::new(100);
    input.chunks(piece).for_each(|piece| custom.push(piece));
    custom.finish();
    // What came before an error depends on the pieces.
    match custom.error() {
        Some(_) => "an error".to_owned(),
        None => format!("{:?}", custom.summaries()),
    }
}

fuzz_target!(|input: &[u8]| {
    let [kind, piece, input @ ..] = input else { return };
    let piece = usize::from(*piece) + 1;
    match kind % 5 {
        0 => check::<ToSpawner>(input, piece),
        1 => check::<FromSpawner>(input, piece),
        2 => check::<ToProxy>(input, piece),
        3 => check::<FromProxy>(input, piece),
        _ => assert_eq!(statistics(input, piece), statistics(input, input.len().max(1))),
    }
});
