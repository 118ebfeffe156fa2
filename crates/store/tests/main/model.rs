//! Random batches on both stores and on ordered maps: all three always agree.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use store::{Batch, MemoryStore, Op, RedbStore, Store, Table};

type Model = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

fn table() -> impl Strategy<Value = Table> {
    // The first, a middle and the last one: ranges must not run over into a neighbour.
    prop::sample::select(vec![
        Table::ALL[0],
        Table::Cypress,
        Table::Operations,
        *Table::ALL.last().expect("some"),
    ])
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0u8, 1, b'a', 0xfe, 0xff]), 0..4)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (table(), key(), prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(table, key, value)| Op::Put { table, key, value }),
        2 => (table(), key()).prop_map(|(table, key)| Op::Delete { table, key }),
        1 => (table(), key()).prop_map(|(table, prefix)| Op::DeletePrefix { table, prefix }),
    ]
}

fn batches() -> impl Strategy<Value = Vec<Batch>> {
    prop::collection::vec(prop::collection::vec(op(), 0..12).prop_map(|ops| Batch { ops }), 1..4)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded)]
}

fn apply(model: &mut Model, batches: &[Batch]) {
    for op in batches.iter().flat_map(|b| &b.ops) {
        match op {
            Op::Put { table, key, value } => {
                model.insert((*table, key.clone()), value.clone());
            }
            Op::Delete { table, key } => {
                model.remove(&(*table, key.clone()));
            }
            Op::DeletePrefix { table, prefix } => {
                model.retain(|(t, k), _| t != table || !k.starts_with(prefix));
            }
        }
    }
}

fn within(key: &[u8], from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    let above = match from {
        Bound::Unbounded => true,
        Bound::Included(b) => key >= b.as_slice(),
        Bound::Excluded(b) => key > b.as_slice(),
    };
    let below = match to {
        Bound::Unbounded => true,
        Bound::Included(b) => key <= b.as_slice(),
        Bound::Excluded(b) => key < b.as_slice(),
    };
    above && below
}

fn scan(
    store: &dyn Store,
    table: Table,
    from: &Bound<Vec<u8>>,
    to: &Bound<Vec<u8>>,
    reverse: bool,
    limit: usize,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let (from, to) = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
    let result = store.scan(table, from, to, reverse, &mut |k, v| {
        found.push((k.to_vec(), v.to_vec()));
        if found.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    result.expect("a healthy store");
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn stores_agree_with_maps(
        steps in prop::collection::vec(batches(), 1..12),
        scans in prop::collection::vec((table(), bound(), bound(), any::<bool>(), 1usize..30), 20),
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let redb = RedbStore::open(directory.path()).expect("a new store");
        let memory = MemoryStore::new();
        let mut model = Model::new();
        for batches in &steps {
            apply(&mut model, batches);
            redb.write(batches).expect("written");
            memory.write(batches).expect("written");
        }
        let redb = {
            drop(redb);
            RedbStore::open(directory.path()).expect("opened again")
        };
        for (table, from, to, reverse, limit) in &scans {
            let mut expected: Vec<_> = model
                .iter()
                .filter(|((t, k), _)| t == table && within(k, from, to))
                .map(|((_, k), v)| (k.clone(), v.clone()))
                .collect();
            if *reverse {
                expected.reverse();
            }
            expected.truncate(*limit);
            prop_assert_eq!(&scan(&redb, *table, from, to, *reverse, *limit), &expected);
            prop_assert_eq!(&scan(&memory, *table, from, to, *reverse, *limit), &expected);
        }
        for ((table, key), value) in &model {
            let found = redb.get(*table, key).expect("reads");
            prop_assert_eq!(found.as_ref(), Some(value));
            let found = memory.get(*table, key).expect("reads");
            prop_assert_eq!(found.as_ref(), Some(value));
        }
    }
}
