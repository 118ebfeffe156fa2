//! Records without which the server cannot start: it says which one is damaged, and what to do.

use crate::console::Console;
use cypress::StartOptions;
use kernel::{Command, Kernel, Records};
use vocab::batch::Table;
use vocab::{ObjectId, Span};
use yson::ypath::YPath;
use yson::{Map, Value};

/// A server that is down, with a record in every table that it reads.
fn down() -> Console {
    let mut c = Console::new();
    c.run(
        "node n1 cpu=4
         pool create owner strong.cpu=2
         pool create guest
         pool create burst integral_guarantees={guarantee_type=relaxed;resource_flow={cpu=1}}
         tick 60s
         op start guest jobs=4 as g
         op start owner jobs=2 as o
         tick 45s",
    );
    let mut ask = |command| c.world.ask("root", command).expect("an answer").expect("done");
    let options = StartOptions { timeout: Span::from_secs(600), ..StartOptions::default() };
    let kernel::Body::Value(answer) = ask(Command::StartTransaction(Box::new(options))) else {
        panic!("no value")
    };
    let transaction: ObjectId =
        answer.get("transaction_id").and_then(|id| id.as_str()?.parse().ok()).expect("an id");
    let path = |text: &str| YPath::parse(text.as_bytes()).expect("a path");
    ask(Command::Create {
        object_type: "map_node".into(),
        path: Some(path("//tmp/a")),
        attributes: Map::new(),
        recursive: false,
        ignore_existing: false,
        force: false,
        ignore_type_mismatch: false,
        lock_existing: false,
    });
    // It takes a lock and makes a branch of the node.
    let set = Command::Set {
        path: path("//tmp/a/@mine"),
        value: Value::from(1i64),
        recursive: false,
        force: false,
    };
    ask(set.through(Some(transaction)));
    c.world.commit(usize::MAX);
    c.world.crash(usize::MAX);
    c
}

/// What the start of the server says about the records of the world.
fn start(c: &Console) -> Result<(), String> {
    let mut records = Records::default();
    for ((table, key), value) in &c.world.durable {
        if Records::TABLES.contains(table) {
            records.add(*table, key, value);
        }
    }
    let recovered = Kernel::recover(c.world.config.clone(), records, c.world.now, &mut Vec::new());
    recovered.map(drop).map_err(|error| error.to_string())
}

/// A damaged record of an order to give way, of a transaction or of the tree kept the server from starting, and nobody
/// was told which one.
#[test]
fn a_start_that_fails_names_the_record_and_what_to_do() {
    let mut c = down();
    start(&c).expect("all is well");
    // Tables whose damaged records cost themselves or their operation alone.
    let endured = [Table::Meta, Table::Operations, Table::OperationIndex, Table::Mutations, Table::OwedEnds];
    let places: Vec<(Table, Vec<u8>)> = c.world.durable.keys().cloned().collect();
    let mut named = std::collections::BTreeMap::<Table, usize>::new();
    for (table, key) in places.iter().filter(|(table, _)| Records::TABLES.contains(table)) {
        let place = (*table, key.clone());
        let good = c.world.durable[&place].clone();
        for damaged in [b"".as_slice(), b"{", b"\xff\xff", b"7", &good[..good.len() - 1]] {
            c.world.durable.insert(place.clone(), damaged.to_vec());
            let about = format!("{} {key:02x?} is {damaged:02x?}", table.as_str());
            match start(&c) {
                // Some records are read as far as they can be.
                Ok(()) => {}
                Err(text) => {
                    assert!(!endured.contains(table), "{about}: {text}");
                    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
                    let id = key.first_chunk().map(|id| vocab::Guid::from_bytes(*id).to_string());
                    let is_named = text.contains(&format!("Record {hex} of table {:?}", table.as_str()))
                        || text.contains(&format!("Table {:?}", table.as_str()))
                            && id.is_some_and(|id| text.contains(&id));
                    assert!(is_named, "{about}: {text}");
                    for part in ["cannot be recovered", "Nothing was changed", "from a backup"] {
                        assert!(text.contains(part), "{about}: {part:?} is not in {text}");
                    }
                    *named.entry(*table).or_default() += 1;
                }
            }
        }
        c.world.durable.insert(place, good);
    }
    for table in [
        Table::Cypress,
        Table::PoolTrees,
        Table::Pools,
        Table::Volumes,
        Table::Nodes,
        Table::Preemptions,
        Table::Transactions,
    ] {
        assert!(named.contains_key(&table), "no damaged record of {} was noticed: {named:?}", table.as_str());
    }
}

/// Keys that are none.
#[test]
fn a_key_that_is_none_is_named() {
    for table in [Table::Pools, Table::Volumes, Table::Preemptions, Table::Events] {
        let mut c = down();
        c.world.durable.insert((table, b"odd".to_vec()), b"{}".to_vec());
        let text = start(&c).expect_err("a damaged key");
        assert!(text.contains(&format!("Record 6f6464 of table {:?}", table.as_str())), "{text}");
    }
    for (table, words) in [(Table::Cypress, "key of 3 bytes"), (Table::Transactions, "key of 3 bytes")] {
        let mut c = down();
        c.world.durable.insert((table, b"odd".to_vec()), b"{}".to_vec());
        let text = start(&c).expect_err("a damaged key");
        assert!(text.contains(words) && text.contains(table.as_str()), "{text}");
    }
}
