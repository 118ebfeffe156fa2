//! What expires: only the trunk counts.

use super::desk::{Desk, code, place};
use cypress::*;
use vocab::{Span, Time};

fn expiring(desk: &Desk) -> Vec<String> {
    let trunk = desk.forest.trunk();
    let mut all = Vec::new();
    let mut after = None;
    while let Some(next) = trunk.next_expired(Time::MAX, after) {
        all.push(trunk.path(next.1));
        after = Some(next);
    }
    all
}

#[test]
fn what_a_transaction_says_counts_when_it_is_committed() {
    let mut desk = Desk::new();
    for path in ["//tmp/a", "//tmp/b", "//tmp/c"] {
        desk.create(None, NodeType::Table, path).expect("a table");
        desk.set(None, &format!("{path}/@expiration_timeout"), "60000").expect("a good value");
    }
    let (tx, other) = (desk.start(None), desk.start(None));
    let inner = desk.start(Some(tx));
    desk.remove(Some(tx), "//tmp/a").expect("it can go");
    desk.remove(Some(inner), "//tmp/b/@expiration_timeout").expect("it is there");
    desk.create(Some(inner), NodeType::Table, "//tmp/d").expect("a table");
    desk.set(Some(inner), "//tmp/d/@expiration_time", "\"2030-01-02T03:04:05Z\"").expect("a good value");
    desk.set(Some(other), "//tmp/b/@expiration_time", "5").expect("another attribute");
    let conflict = desk.set(Some(other), "//tmp/b/@expiration_timeout", "5");
    assert_eq!(code(conflict), vocab::code::LOCK_CONFLICT);
    assert_eq!(expiring(&desk), ["//tmp/a", "//tmp/b", "//tmp/c"]);
    desk.commit(inner).expect("nothing is in the way");
    assert_eq!(expiring(&desk), ["//tmp/a", "//tmp/b", "//tmp/c"]);
    desk.commit(tx).expect("nothing is in the way");
    assert_eq!(expiring(&desk), ["//tmp/c", "//tmp/d"]);
    desk.commit(other).expect("nothing is in the way");
    assert_eq!(expiring(&desk), ["//tmp/b", "//tmp/c", "//tmp/d"]);
    assert_eq!(desk.get(None, "//tmp/b/@expiration_time"), "\"1970-01-01T00:00:00.005000Z\"");
}

#[test]
fn a_commit_is_a_use() {
    let mut desk = Desk::new();
    let tx = desk.start(None);
    desk.create(Some(tx), NodeType::Table, "//tmp/t").expect("a table");
    desk.set(Some(tx), "//tmp/t/@expiration_timeout", "60000").expect("a good value");
    desk.now += Span::from_secs(3600);
    desk.commit(tx).expect("nothing is in the way");
    let node = place(&desk.forest, "//tmp/t", Last::Stay).expect("it is there").node;
    let ends = desk.forest.node(node).and_then(Node::expires).expect("it expires");
    assert!(ends >= desk.now + Span::from_secs(60), "a transaction may last longer");
}
