//! Specifications of operations of every type: the first byte chooses it, the rest is a map. No panic, no vault in what is
//! shown, and what is kept of a spec is accepted after a restart and means the same.
#![no_main]

use controller::ControllerOptions;
use controller::spec::{parse, with_plain_names};
use libfuzzer_sys::fuzz_target;
use vocab::OperationType;
use yson::Value;

const TYPES: [OperationType; 4] =
    [OperationType::Vanilla, OperationType::Map, OperationType::Merge, OperationType::Erase];

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    let operation_type = TYPES[usize::from(*kind) % TYPES.len()];
    let Ok(Value::Map(spec)) = yson::parse(input) else { return };
    let options = ControllerOptions::default();
    let Ok(parsed) = parse(operation_type, &with_plain_names(&spec), &options) else { return };
    for shown in [&parsed.provided, &parsed.full, &parsed.unrecognized, &parsed.brief] {
        assert!(!shown.contains("secure_vault"));
    }
    let mut kept = parsed.provided.clone();
    if let Some(vault) = &parsed.spec.root.secure_vault {
        kept.insert("secure_vault", vault.clone());
    }
    let again = parse(operation_type, &with_plain_names(&kept), &options.for_any_size());
    let again = again.expect("what was accepted once is accepted after a restart");
    // As text: a number that is none does not equal itself.
    assert_eq!(format!("{:?}", again.spec), format!("{:?}", parsed.spec));
});
