//! `list_operations` over 100,000 finished operations, as the kernel's thread spends it (the page itself is
//! read from the store by others). `cargo bench -p millpond-kernel --bench listing`.

#![allow(missing_docs)]

use divan::Bencher;
use kernel::command::{AccessFilter, ListOperations};
use kernel::{Command, Config, Effect, Input, Kernel, Records, Request};
use vocab::batch::Table;
use vocab::{Guid, OperationId, Time};
use yson::Value;

const OPERATIONS: u32 = 100_000;

fn main() {
    divan::main();
}

/// A cluster with many finished operations of 100 users in 300 pools.
fn kernel() -> Kernel {
    let mut records = Records::default();
    for n in 1..=OPERATIONS {
        let id = OperationId(Guid([n, n.wrapping_mul(0x9e37_79b9), 0x103e8, n ^ 0x5555]));
        let user = format!("user-{}", n % 100);
        let ace = yson::map! {
            "action" => "allow", "subjects" => vec![user.as_str()], "permissions" => vec!["read", "manage"],
        };
        let start = 1_000_000_000_000_000 + u64::from(n) * 1_000_000;
        let summary = yson::map! {
            "id" => id, "start_time" => start, "finish_time" => start + 30_000_000,
            "user" => user, "type" => "vanilla", "has_failed_jobs" => n.is_multiple_of(7),
            "state" => ["completed", "failed", "aborted"][(n % 3) as usize],
            "pools" => vec![Value::from(vec!["physical".to_owned(), format!("pool-{}", n % 300)])],
            "acl" => vec![Value::from(ace)],
            "search" => format!("nightly report of department {}\n{{\"team\"=\"analytics\";\"run\"={n};}}\n", n % 40),
        };
        records.add(Table::OperationIndex, &id.0.to_bytes(), &yson::to_binary(&summary.into()));
    }
    let mut config = Config::new("server:9013", 1);
    config.retention.max_age = None;
    Kernel::recover(config, records, Time::from_secs(2_000_000_000), &mut Vec::new()).expect("good records")
}

#[divan::bench(args = ["plain", "filter", "pool and state", "access", "no counters"], sample_count = 50)]
fn list_operations(bencher: Bencher<'_, '_>, kind: &str) {
    let mut kernel = kernel();
    let query = ListOperations { limit: 100, include_counters: true, ..ListOperations::default() };
    let query = match kind {
        "filter" => ListOperations { filter: Some("department 17".into()), ..query },
        "pool and state" => {
            ListOperations { pool: Some("pool-17".into()), state: Some("failed".into()), ..query }
        }
        "access" => {
            let access = AccessFilter { subject: "user-3".into(), permissions: vec!["manage".into()] };
            ListOperations { access: Some(access), ..query }
        }
        "no counters" => ListOperations { filter: Some("run\"=5;".into()), include_counters: false, ..query },
        _ => query,
    };
    bencher.bench_local(|| {
        let command = Command::ListOperations(Box::new(query.clone()));
        let request = Request { id: 1, user: "root".into(), mutation_id: None, command };
        let mut out = Vec::new();
        kernel.handle(Time::from_secs(2_000_000_000), Input::Request(request), &mut out);
        assert!(matches!(out.as_slice(), [Effect::Reply { body: Ok(_), .. }]), "{out:?}");
        out
    });
}
