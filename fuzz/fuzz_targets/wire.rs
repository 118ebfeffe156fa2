//! Messages of the node protocol: the first byte says which side sends. No panic, and what is accepted comes back the same: a
//! node, or who has its token, sends what it likes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prost::Message;
use wire::proto::pb;
use wire::{NodeMessage, ServerMessage};

/// Compared in bytes: a number that is none does not equal itself.
macro_rules! comes_back {
    ($input:expr, $plain:ty, $message:ty) => {{
        let Ok(message) = <$message>::decode($input) else { return };
        let Ok(plain) = <$plain>::try_from(message) else { return };
        let sent = <$message>::from(&plain).encode_to_vec();
        let message = <$message>::decode(sent.as_slice()).expect("what was sent");
        let again = <$plain>::try_from(message).expect("a good message");
        assert_eq!(<$message>::from(&again).encode_to_vec(), sent);
    }};
}

fuzz_target!(|input: &[u8]| {
    let Some((side, input)) = input.split_first() else { return };
    match side % 2 {
        0 => comes_back!(input, NodeMessage, pb::NodeMessage),
        _ => comes_back!(input, ServerMessage, pb::ServerMessage),
    }
});
