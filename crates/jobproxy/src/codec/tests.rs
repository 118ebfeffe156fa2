use super::*;
use crate::protocol::{FromProxy, ProxyResult, ToProxy, ToSpawner};
use proptest::prelude::*;
use vocab::{AbortReason, InterruptionReason, JobOutcome, JobStatistics};

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Entity),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::Uint),
        (-1e9..1e9).prop_map(Value::Double),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 30, 5, |inner| {
        let map = prop::collection::vec(("[a-z]{0,5}", inner.clone()), 0..5).prop_map(Map::from_iter);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::List),
            map.clone().prop_map(Value::Map),
            (map, inner).prop_map(|(attributes, v)| v.with_attributes(attributes)),
        ]
    })
}

fn result(details: Value) -> ProxyResult {
    let inner = Failure::coded(10000, "Process exited with code 1").with("details", details);
    ProxyResult {
        job_id: JobId(Guid([1, 2, 3, 4])),
        outcome: JobOutcome::Aborted {
            reason: AbortReason::Preemption,
            error: Failure::new("outer").because(inner),
        },
        start_time: Some(Time(5)),
        finish_time: Time(6),
        statistics: JobStatistics { custom: vec![("a/b".to_owned(), Summary::of(-3))], ..Default::default() },
        stderr_size: 7,
        stderr: Some(Blob(b"text\xff".to_vec())),
        survivors: false,
        fail_context_size: 9,
    }
}

proptest! {
    #[test]
    fn messages_survive_any_cut_of_the_stream(details in values(), step in 1_usize..40) {
        let messages = [
            FromProxy::Finished { result: Box::new(result(details)) },
            FromProxy::Started { start_time: Time(1), user_pid: 2 },
        ];
        let mut stream = Vec::new();
        messages.iter().for_each(|m| encode_frame(m, &mut stream));
        let mut reader = FrameReader::default();
        let mut got = Vec::new();
        for chunk in stream.chunks(step) {
            reader.push(chunk);
            while let Some(m) = reader.next_message::<FromProxy>().expect("good frames") {
                got.push(m);
            }
        }
        prop_assert_eq!(got, messages);
    }

    #[test]
    fn garbage_is_an_error_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_all::<FromProxy>(&bytes);
        let _ = decode_all::<ToProxy>(&bytes);
        let _ = decode_all::<ToSpawner>(&bytes);
        let _ = decode_all::<ProxyResult>(&bytes);
    }

    #[test]
    fn truncation_is_an_error(details in values(), cut in any::<prop::sample::Index>()) {
        let mut whole = Vec::new();
        result(details).encode(&mut whole);
        let short = &whole[..cut.index(whole.len())];
        prop_assert!(decode_all::<ProxyResult>(short).is_err());
    }
}

/// Seeds of the fuzz targets `proxy` and `stored` with messages of many fields.
///
/// `MILLPOND_WRITE_SEEDS=1 cargo test -p millpond-jobproxy --lib seeds` writes them anew, after a change of the protocol.
#[test]
fn seeds_of_the_fuzz_targets_are_messages_with_many_fields() {
    let details = yson::map! {"list" => vec!["x", "y"], "map" => yson::map! {"n" => 1.5}}.into();
    let end = result(details);
    let mut record = Vec::new();
    end.encode(&mut record);
    // The first byte says who sends, the second one how the stream is cut.
    let mut from_proxy = vec![3, 6];
    encode_frame(&FromProxy::Started { start_time: Time(1), user_pid: 2 }, &mut from_proxy);
    encode_frame(&FromProxy::Finished { result: Box::new(end) }, &mut from_proxy);
    let mut to_proxy = vec![2, 9];
    for reason in AbortReason::ALL {
        encode_frame(&ToProxy::Abort { reason: *reason, text: "x".to_owned() }, &mut to_proxy);
    }
    encode_frame(
        &ToProxy::Fail { error: Some(Failure::new("outer").because(Failure::new("inner"))) },
        &mut to_proxy,
    );
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let seeds = [
        ("proxy/from-proxy-finished", from_proxy),
        ("proxy/to-proxy-aborts", to_proxy),
        ("stored/proxy-result", record),
    ];
    for (name, bytes) in seeds {
        let path = folder.join(name);
        if std::env::var_os("MILLPOND_WRITE_SEEDS").is_some() {
            std::fs::write(&path, &bytes).expect("written");
        }
        assert!(
            std::fs::read(&path).is_ok_and(|seed| seed == bytes),
            "{name} is of another protocol: write the seeds anew"
        );
    }
}

#[test]
fn every_reason_has_a_form() {
    for reason in AbortReason::ALL {
        let message = ToProxy::Abort { reason: *reason, text: "x".to_owned() };
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        assert_eq!(decode_all::<ToProxy>(&bytes), Ok(message));
    }
    for reason in InterruptionReason::ALL {
        let mut bytes = Vec::new();
        reason.encode(&mut bytes);
        assert_eq!(decode_all::<InterruptionReason>(&bytes), Ok(*reason));
    }
}

#[test]
fn lengths_are_not_believed() {
    let mut reader = FrameReader::default();
    reader.push(&u32::MAX.to_le_bytes());
    assert_eq!(reader.next_message::<ToProxy>(), Err(CodecError::TooLong(u32::MAX as usize)));
    // A list of four billion values in a message of five bytes.
    let message = [&[6_u8][..], &u32::MAX.to_le_bytes()].concat();
    assert!(matches!(decode_all::<Value>(&message), Err(CodecError::Truncated { .. })));
    // Deep nesting must not be a deep stack.
    let deep = [6_u8, 1, 0, 0, 0].repeat(100_000);
    assert_eq!(decode_all::<Value>(&deep), Err(CodecError::TooDeep));
}
