//! The Orchid of a tree with 100,000 operations (http-api.md 11.2), as the kernel's thread spends it; and what it takes
//! those who make the large maps.
//! `cargo bench -p millpond-kernel --bench orchid`.

#![allow(missing_docs)]

use divan::Bencher;
use kernel::{Body, Command, Config, Effect, Input, Kernel, Records, Request};
use vocab::{OperationId, OperationType, Time};
use yson::Map;
use yson::ypath::YPath;

const OPERATIONS: u32 = 100_000;
const POOLS: u32 = 1_000;
const NOW: Time = Time::from_secs(2_000_000_000);

fn main() {
    divan::main();
}

fn ask(kernel: &mut Kernel, user: &str, command: Command) -> Body {
    let request = Request { id: 1, user: user.into(), mutation_id: None, command };
    let mut out = Vec::new();
    kernel.handle(NOW, Input::Request(request), &mut out);
    let reply = out.into_iter().find_map(|effect| match effect {
        Effect::Reply { body, .. } => Some(body),
        _ => None,
    });
    reply.expect("an answer").unwrap_or_else(|failure| panic!("{failure}"))
}

fn parsed(text: &str) -> Map {
    yson::parse(text.as_bytes()).expect("YSON").as_map().cloned().expect("a map")
}

/// A cluster with as many pools and operations, all of which are there and wait; the last operation.
fn cluster() -> (Kernel, OperationId) {
    let config = Config::new("server:9013", 1);
    let mut kernel = Kernel::recover(config, Records::default(), NOW, &mut Vec::new()).expect("no records");
    for n in 0..POOLS {
        let attributes = format!("{{name=pool-{n}; pool_tree=physical; max_operation_count=1000}}");
        let command = Command::Create {
            object_type: "scheduler_pool".into(),
            path: None,
            attributes: parsed(&attributes),
            recursive: false,
            ignore_existing: false,
            force: false,
            ignore_type_mismatch: false,
            lock_existing: false,
        };
        ask(&mut kernel, "root", command);
    }
    for limit in ["//sys/scheduler/config", "//sys/pool_trees/physical/@config"] {
        let command = Command::Set {
            path: YPath::parse(format!("{limit}/max_operation_count").as_bytes()).expect("a path"),
            value: 200_000.into(),
            recursive: false,
            force: false,
        };
        ask(&mut kernel, "root", command);
    }
    kernel.flush(NOW, true, &mut Vec::new());
    let mut last = OperationId::default();
    for n in 0..OPERATIONS {
        let spec = format!("{{pool=pool-{}; tasks={{t={{job_count=1; command=\"true\"}}}}}}", n % POOLS);
        let command = Command::StartOperation { operation_type: OperationType::Vanilla, spec: parsed(&spec) };
        if let Body::Value(reply) = ask(&mut kernel, "root", command) {
            let id = reply.get("operation_id").unwrap_or(&reply).as_str().and_then(|id| id.parse().ok());
            last = id.expect("an id");
        }
    }
    kernel.flush(NOW, true, &mut Vec::new());
    (kernel, last)
}

/// What is asked for, of what is below the tree.
fn query(kind: &str, last: OperationId) -> Command {
    let tree = "//sys/scheduler/orchid/scheduler/pool_trees/physical";
    let path = |rest: &str| YPath::parse(format!("{tree}/{rest}").as_bytes()).expect("a path");
    let pool = format!("operations_by_pool/pool-{}", (OPERATIONS - 1) % POOLS);
    let fields = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let get = |rest: &str, fields| Command::Get {
        path: path(rest),
        attributes: Vec::new(),
        max_size: None,
        fields,
    };
    let shares = fields(&["pool", "fair_share_ratio", "usage_ratio"]);
    match kind {
        "operations, 3 fields" => get("operations", shares),
        "operations, 3 fields, 1000 of them" => Command::Get {
            path: path("operations"),
            attributes: Vec::new(),
            max_size: Some(1_000),
            fields: shares,
        },
        "names of operations" => {
            Command::List { path: path("operations"), attributes: Vec::new(), max_size: None }
        }
        "1000 names of operations" => {
            Command::List { path: path("operations"), attributes: Vec::new(), max_size: Some(1_000) }
        }
        "one operation" => get(&format!("operations/{last}"), None),
        "one value of one operation" => get(&format!("operations/{last}/fair_share_ratio"), None),
        "operations of a pool" => get(&pool, None),
        "one operation of a pool" => get(&format!("{pool}/{last}/fair_share_ratio"), None),
        "pools, 3 fields" => get("pools", fields(&["parent", "fair_share_ratio", "usage_ratio"])),
        _ => get("pools", None),
    }
}

thread_local! {
    static CLUSTER: std::cell::RefCell<(Kernel, OperationId)> = std::cell::RefCell::new(cluster());
}

#[divan::bench(sample_count = 20, args = [
    "operations, 3 fields", "operations, 3 fields, 1000 of them", "names of operations", "1000 names of operations",
    "one operation", "one value of one operation", "operations of a pool", "one operation of a pool",
    "pools, 3 fields", "pools",
])]
fn orchid(bencher: Bencher<'_, '_>, kind: &str) {
    CLUSTER.with_borrow_mut(|(kernel, last)| {
        let command = query(kind, *last);
        bencher.bench_local(|| {
            let body = ask(kernel, "root", command.clone());
            match &body {
                Body::Value(value) => assert!(!value.is_entity()),
                Body::Snapshot(_) => {}
                other => panic!("{other:?}"),
            }
            body
        });
    });
}

#[divan::bench(sample_count = 20, args = [
    "operations, 3 fields", "operations, 3 fields, 1000 of them", "names of operations", "1000 names of operations",
    "operations of a pool", "pools, 3 fields", "pools",
])]
fn made_by_others(bencher: Bencher<'_, '_>, kind: &str) {
    CLUSTER.with_borrow_mut(|(kernel, last)| {
        let Body::Snapshot(query) = ask(kernel, "root", query(kind, *last)) else {
            panic!("not a large map")
        };
        bencher.bench_local(|| query.answer());
    });
}
