//! The records of the store, damaged: the input is a list of edits of the records of a small cluster. The kernel starts with them
//! or says which record is the reason; no panic, neither then nor in its first turns.
//!
//! An edit has five bytes: the record (two), what is done, and where (two); what is done may take the next byte or the rest.
#![no_main]

use kernel::command::StartOptions;
use kernel::{Command, Config, Effect, Input, Kernel, Records, Request};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use vocab::batch::{Op, Table};
use vocab::{Guid, OperationType, Span, Time};
use yson::Map;
use yson::ypath::YPath;

// The node of the kernel's own tests: it does what it is told.
#[allow(dead_code)]
#[path = "../../crates/kernel/tests/main/node.rs"]
mod node;

type Stored = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

const NOW: Time = Time::from_secs(1_000_000);

fn map(text: &str) -> Map {
    yson::parse(text.as_bytes()).expect("YSON").as_map().cloned().expect("a map")
}

fn path(text: &str) -> YPath {
    YPath::parse(text.as_bytes()).expect("a path")
}

fn keep(stored: &mut Stored, out: &mut Vec<Effect>) {
    for effect in out.drain(..) {
        let Effect::Commit { batch, .. } = effect else { continue };
        for op in batch.ops {
            match op {
                Op::Put { table, key, value } => drop(stored.insert((table, key), value)),
                Op::Delete { table, key } => drop(stored.remove(&(table, key))),
                Op::DeletePrefix { table, prefix } => {
                    stored.retain(|(t, key), _| *t != table || !key.starts_with(&prefix));
                }
            }
        }
    }
}

/// A cluster with pools, users, a node, operations with and without a vault, a running job, and a transaction with changes.
fn cluster() -> Stored {
    let mut stored = Stored::new();
    let mut out = Vec::new();
    let mut kernel = Kernel::recover(Config::new("server:9013", 1), Records::default(), NOW, &mut out)
        .expect("no records");
    let create = |object_type: &str, at: Option<&str>, attributes: &str| Command::Create {
        object_type: object_type.into(),
        path: at.map(path),
        attributes: map(attributes),
        recursive: true,
        ignore_existing: false,
        force: false,
        ignore_type_mismatch: false,
        lock_existing: false,
    };
    let start =
        |spec: &str| Command::StartOperation { operation_type: OperationType::Vanilla, spec: map(spec) };
    let mut commands = vec![
        create("scheduler_pool", None, "{name=p; pool_tree=physical; strong_guarantee_resources={cpu=1}}"),
        create("user", None, "{name=ann}"),
        create("map_node", Some("//home/ann"), "{a={b=[1;2.5;%true;#]}}"),
        create(
            "document",
            Some("//home/ann/d"),
            "{value={x=1}; acl=[{action=allow;subjects=[ann];permissions=[read]}]}",
        ),
        start(
            "{pool=p; title=one; secure_vault={word=secret}; tasks={t={job_count=3; command=true}; u={job_count=1; command=false}}}",
        ),
        start("{pool=p; alias=\"*two\"; tasks={g={job_count=2; gang_options={}; command=true}}}"),
    ];
    commands.push(Command::StartTransaction(Box::new(StartOptions {
        parent: None,
        timeout: Span::from_secs(3600),
        deadline: None,
        prerequisites: Vec::new(),
        attributes: map("{title=t}"),
    })));
    let mut node = node::Node::new(
        "node:9012",
        vocab::Resources { user_slots: 2, cpu: vocab::Cpu(200), memory: 8 << 30, ..vocab::Resources::ZERO },
    );
    node.key = Some(kernel::NodeKey(1));
    let mut said = vec![wire::NodeMessage::Hello(node.hello())];
    let mut now = NOW;
    for (number, command) in commands.into_iter().enumerate() {
        // A mutation that is answered when it is repeated.
        let mutation_id = Some(Guid([number as u32 + 1, 2, 3, 4]));
        let request = Request { id: 1, user: "root".into(), mutation_id, command };
        kernel.handle(now, Input::Request(request), &mut out);
        let transaction = out.iter().find_map(|effect| match effect {
            Effect::Reply { body: Err(error), .. } => panic!("{error}"),
            Effect::Reply { body: Ok(kernel::Body::Value(value)), .. } => value
                .get("transaction_id")
                .or(Some(value))
                .and_then(yson::Value::as_str)?
                .parse::<Guid>()
                .ok()
                .map(vocab::ObjectId),
            _ => None,
        });
        if number == 6
            && let Some(id) = transaction
        {
            let command = create("table", Some("//home/ann/in-a-transaction"), "{}").through(Some(id));
            kernel.handle(
                now,
                Input::Request(Request { id: 2, user: "root".into(), mutation_id: None, command }),
                &mut out,
            );
            let copy =
                Command::Set { path: path("//home/ann/@c"), value: 1.into(), recursive: false, force: false };
            kernel.handle(
                now,
                Input::Request(Request {
                    id: 3,
                    user: "root".into(),
                    mutation_id: None,
                    command: copy.through(Some(id)),
                }),
                &mut out,
            );
        }
        keep(&mut stored, &mut out);
    }
    for _ in 0..20 {
        now += Span::from_millis(500);
        for message in said.drain(..) {
            kernel.handle(now, Input::Node { node: kernel::NodeKey(1), message }, &mut out);
        }
        kernel.flush(now, true, &mut out);
        for effect in &out {
            if let Effect::ToNode { message, .. } = effect {
                said.extend(node.hear(now, message));
            }
        }
        keep(&mut stored, &mut out);
    }
    stored
}

/// Applies the edits.
fn edit(records: &mut [(Table, Vec<u8>, Vec<u8>)], mut input: &[u8]) {
    while let [low, high, what, at_low, at_high, rest @ ..] = input {
        let count = records.len();
        let (_, key, value) = &mut records[usize::from(u16::from_le_bytes([*low, *high])) % count];
        let bytes = if what & 0x80 == 0 { value } else { key };
        let at = usize::from(u16::from_le_bytes([*at_low, *at_high]));
        let at = if bytes.is_empty() { 0 } else { at % (bytes.len() + 1) };
        input = rest;
        match what & 7 {
            0 | 1 => {
                if let (Some(byte), [new, rest @ ..]) = (bytes.get_mut(at), input) {
                    *byte = *new;
                    input = rest;
                }
            }
            2 => bytes.truncate(at),
            3 => bytes.splice(at.., input.iter().copied()).for_each(drop),
            4 => drop((at < bytes.len()).then(|| bytes.remove(at))),
            5 => {
                if let [new, rest @ ..] = input {
                    bytes.insert(at.min(bytes.len()), *new);
                    input = rest;
                }
            }
            // A value of one type in the place of another.
            6 => *bytes = input.to_vec(),
            _ => bytes.clear(),
        }
    }
}

fuzz_target!(|input: &[u8]| {
    static CLUSTER: OnceLock<Vec<(Table, Vec<u8>, Vec<u8>)>> = OnceLock::new();
    let cluster = CLUSTER
        .get_or_init(|| cluster().into_iter().map(|((table, key), value)| (table, key, value)).collect());
    let mut records = cluster.clone();
    edit(&mut records, input);
    // As a store gives them: in the order of keys, each key once.
    let sorted: BTreeMap<(Table, Vec<u8>), Vec<u8>> =
        records.into_iter().map(|(table, key, value)| ((table, key), value)).collect();
    let mut given = Records::default();
    for ((table, key), value) in &sorted {
        if Records::TABLES.contains(table) {
            given.add(*table, key, value);
        }
    }
    let mut out = Vec::new();
    match Kernel::recover(Config::new("server:9013", 2), given, NOW + Span::from_secs(60), &mut out) {
        Ok(mut kernel) => {
            for second in 60..70 {
                kernel.flush(NOW + Span::from_secs(second), true, &mut out);
            }
        }
        Err(_) => assert!(!input.is_empty(), "records as they were written"),
    }
});
