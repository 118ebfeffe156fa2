//! Secure vaults in durable records: each has a record of its own, which the server encrypts, and lies nowhere else.

use crate::console::Console;
use kernel::{Command, OperationRef};
use vocab::Failure;
use vocab::batch::Table;
use yson::Value;

const MARKER: &str = "Marker4711";

/// An operation with a vault and one without, on a node, and a server that is down.
fn down() -> Console {
    let mut c = Console::new();
    c.run(&format!(
        "node n1 cpu=4
         pool create p
         op start p jobs=1 secure_vault={{word={MARKER}}} as b
         op start p jobs=1 as a
         crash"
    ));
    c.forget_transcript();
    c
}

/// Tables and keys of durable records with the marker in them.
fn places(c: &Console) -> Vec<(Table, Vec<u8>)> {
    let has_marker = |bytes: &[u8]| bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes());
    let all = c.world.durable.iter();
    all.filter(|(_, value)| has_marker(value)).map(|(place, _)| place.clone()).collect()
}

/// What the job of operation `b` was given, when it starts.
fn vault_of_job(c: &Console) -> Option<String> {
    let id = c.operation_id("b");
    let jobs = c.world.nodes.values().flat_map(|node| node.running.values());
    let mut of_b = jobs.filter(|job| job.start.identity.operation_id == id);
    of_b.next()?.start.description.environment.get("YT_SECURE_VAULT_word").map(str::to_owned)
}

/// Vaults are encrypted by the server, record by record: what it does not know of stays readable.
#[test]
fn a_vault_lies_in_a_record_of_its_own_and_nowhere_else() {
    let mut c = down();
    let id = c.operation_id("b");
    let found = places(&c);
    assert_eq!(found.len(), 1, "{found:?}");
    let (table, key) = &found[0];
    assert_eq!(kernel::operation_of_vault(*table, key), Some(id));
    let vaults =
        c.world.durable.keys().filter(|(table, key)| kernel::operation_of_vault(*table, key).is_some());
    assert_eq!(vaults.count(), 1, "operation a has none");
    // A patch of the spec writes it again, and a restart knows it.
    c.run("restart\nconnect n1");
    let patches = vec![("/max_failed_job_count".to_owned(), Value::from(3))];
    let patch = Command::PatchOperationSpec { operation: OperationRef::Id(id), patches };
    c.world.ask("ann", patch).expect("a reply").expect("patched");
    c.run("crash\nrestart\nconnect n1");
    assert_eq!(places(&c), found);
    // After a restart it was in the spec that everybody sees, and with that in the archive.
    c.run("op get b spec provided_spec full_spec unrecognized_spec brief_spec runtime_parameters");
    assert!(!c.transcript().contains(MARKER), "{}", c.transcript());
    c.run("fail b/0 exit=1");
    assert_eq!(
        vault_of_job(&c).as_deref(),
        Some(MARKER),
        "the next run of the unit has it: {}",
        c.transcript()
    );
    // The end of the operation takes it away, and the archive does not have it.
    c.run("op abort b");
    assert_eq!(places(&c), []);
}

/// Records of versions before the encryption of vaults.
#[test]
fn a_vault_in_the_static_record_is_moved_into_its_own() {
    let mut c = down();
    let id = c.operation_id("b");
    let (place, vault) = {
        let found = places(&c);
        (found[0].clone(), c.world.durable.remove(&found[0]).expect("there"))
    };
    let static_key = (Table::Operations, [&id.0.to_bytes()[..], b"s"].concat());
    let record = c.world.durable[&static_key].clone();
    assert_eq!(kernel::split_clear_vault(static_key.0, &static_key.1, &record), None, "there is none in it");
    let Ok(Value::Map(old)) = yson::parse(&record) else { panic!("a record is a map") };
    // After a restart it was in the spec, too.
    let vault_map = yson::parse(&vault).expect("a map");
    let spec = old.get("spec").and_then(Value::as_map).cloned().expect("it has a spec");
    let old = old.with("spec", spec.with("secure_vault", vault_map.clone())).with("secure_vault", vault_map);
    let old = yson::to_binary(&old.into());
    // What the server does with it before the kernel reads it.
    let split = kernel::split_clear_vault(static_key.0, &static_key.1, &old).expect("it has one");
    assert_eq!(split[1], (place.1.clone(), vault));
    assert_eq!(split[0].0, static_key.1);
    let parsed = |record: &[u8]| yson::parse(record).expect("a record");
    assert_eq!(parsed(&split[0].1), parsed(&record));
    // A kernel that reads the old form, since the store could not be written.
    c.world.durable.insert(static_key, old);
    c.run("restart\nconnect n1");
    assert_eq!(places(&c), [place], "{}", c.transcript());
    c.run("fail b/0 exit=1");
    assert_eq!(vault_of_job(&c).as_deref(), Some(MARKER), "{}", c.transcript());
}

/// A wrong key, or a damaged record.
#[test]
fn an_operation_whose_vault_cannot_be_decrypted_fails_and_the_others_go_on() {
    let mut c = down();
    c.world
        .locked_vaults
        .insert(c.operation_id("b"), Failure::new("The vault was encrypted with another key"));
    c.run("restart\nconnect n1\nshow ops\nget //sys/scheduler/@alerts\nfinish a/0\nshow ops");
    let transcript = c.transcript();
    for part in [
        "b failed alert:operation_not_restored",
        "The vault was encrypted with another key",
        "operations_not_restored",
        "a completed total=1",
    ] {
        assert!(transcript.contains(part), "{part:?} is not in {transcript}");
    }
    assert!(!transcript.contains(MARKER) && !transcript.contains("VIOLATED"), "{transcript}");
    assert_eq!(places(&c), []);
}

/// Its jobs would run without their secrets, and could take that for an answer.
#[test]
fn an_operation_whose_vault_is_missing_fails_and_the_others_go_on() {
    let mut c = down();
    let place = places(&c)[0].clone();
    c.world.durable.remove(&place).expect("there");
    c.run("restart\nconnect n1\nshow ops");
    let transcript = c.transcript();
    assert!(transcript.contains("b failed") && transcript.contains("a running"), "{transcript}");
    assert!(
        transcript.contains("operation_not_restored") && !transcript.contains("VIOLATED"),
        "{transcript}"
    );
}

#[test]
fn damaged_bytes_of_a_vault_fail_its_operation() {
    for damaged in [b"".as_slice(), b"{", b"\xff\xff", b"7"] {
        let mut c = down();
        let place = places(&c)[0].clone();
        c.world.durable.insert(place, damaged.to_vec());
        c.run("restart\nconnect n1\nshow ops");
        let transcript = c.transcript();
        assert!(
            transcript.contains("b failed") && transcript.contains("a running"),
            "{damaged:?}: {transcript}"
        );
    }
}
