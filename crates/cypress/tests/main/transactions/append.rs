//! Rows put behind those of a table, in any transactions at once (http-api.md 8.2, 8.3): nobody hinders
//! others who do the same, and everybody's rows are there in the end. Whoever wants all of the table is alone.

use std::collections::{BTreeMap, BTreeSet};

use super::desk::{Desk, Tx, code, place};
use cypress::transactions::locks::{Mode, Part};
use cypress::*;
use proptest::prelude::*;
use vocab::{Failure, ObjectId};

const TABLE: &str = "//tmp/t";
const CONFLICT: i64 = vocab::code::LOCK_CONFLICT;

fn chunk(blob: u64) -> Chunk {
    Chunk { blob, size: 1, rows: 1, row_bytes: 1, weight: 1, bounds: None }
}

fn write(
    desk: &mut Desk,
    at: Tx,
    change: impl FnOnce(&mut TableContent),
    append: bool,
) -> Result<(), Failure> {
    desk.run(at, |forest, context| {
        let node = place(forest, TABLE, Last::Follow)?.node;
        let mut content = content(forest, node);
        change(&mut content);
        forest.edit(context, |edit| match append {
            true => edit.append_to_table(node, content),
            false => edit.set_table_content(node, content),
        })
    })
}

fn content(forest: &Forest, node: ObjectId) -> TableContent {
    match forest.node(node).map(|node| &node.body) {
        Some(Body::Table(table)) => table.clone(),
        other => panic!("{other:?} is not a table"),
    }
}

fn append(desk: &mut Desk, at: Tx, blob: u64) -> Result<(), Failure> {
    write(desk, at, |table| table.chunks.push(chunk(blob)), true)
}

fn overwrite(desk: &mut Desk, at: Tx, blob: u64) -> Result<(), Failure> {
    write(desk, at, |table| table.chunks = vec![chunk(blob)], false)
}

/// The numbers of the table's chunks.
fn rows(desk: &mut Desk, at: Tx) -> Vec<u64> {
    if let Some(id) = at {
        desk.forest.enter(id).expect("it is there");
    }
    let node = place(&desk.forest, TABLE, Last::Follow).expect("the table is there").node;
    let found = content(&desk.forest, node).chunks.iter().map(|chunk| chunk.blob).collect();
    desk.forest.leave();
    found
}

fn revision(desk: &Desk) -> u64 {
    let node = place(&desk.forest, TABLE, Last::Follow).expect("the table is there").node;
    desk.forest.node(node).expect("it is there").content_revision
}

fn with_table() -> Desk {
    let mut desk = Desk::new();
    desk.create(None, NodeType::Table, TABLE).expect("a table");
    append(&mut desk, None, 1).expect("nobody is in the way");
    desk
}

#[test]
fn those_who_append_are_not_in_each_others_way() {
    let mut desk = with_table();
    let (one, two) = (desk.start(None), desk.start(None));
    append(&mut desk, Some(one), 10).expect("it is the first");
    append(&mut desk, Some(two), 20).expect("rows are put behind others");
    append(&mut desk, None, 30).expect("outside of transactions as well");
    append(&mut desk, Some(one), 11).expect("once more");
    assert_eq!(rows(&mut desk, None), [1, 30]);
    assert_eq!(rows(&mut desk, Some(one)), [1, 30, 10, 11]);
    assert_eq!(rows(&mut desk, Some(two)), [1, 30, 20]);
    desk.commit(two).expect("nothing is in the way");
    assert_eq!(rows(&mut desk, Some(one)), [1, 30, 20, 10, 11]);
    let before = revision(&desk);
    desk.commit(one).expect("nothing is in the way");
    assert_eq!(rows(&mut desk, None), [1, 30, 20, 10, 11]);
    assert!(revision(&desk) > before, "caches know contents by their revisions");
}

#[test]
fn whoever_wants_all_of_the_table_is_alone() {
    let mut desk = with_table();
    let (one, two) = (desk.start(None), desk.start(None));
    append(&mut desk, Some(one), 10).expect("it is the first");
    assert_eq!(code(overwrite(&mut desk, Some(two), 20)), CONFLICT);
    assert_eq!(code(overwrite(&mut desk, None, 20)), CONFLICT);
    assert_eq!(code(desk.remove(None, TABLE)), CONFLICT);
    assert_eq!(code(desk.lock(Some(two), TABLE, Mode::Exclusive, false)), CONFLICT);
    desk.lock(Some(two), TABLE, Mode::Shared(Part::Unnamed), false).expect("one of those who may append");
    // That lock of another is in the way of the first one's overwriting, not of its appending.
    assert_eq!(code(overwrite(&mut desk, Some(one), 11)), CONFLICT);
    append(&mut desk, Some(one), 12).expect("rows are put behind others");
    desk.abort(two);
    overwrite(&mut desk, Some(one), 13).expect("it is alone now");
    let three = desk.start(None);
    assert_eq!(code(append(&mut desk, Some(three), 30)), CONFLICT);
    append(&mut desk, Some(one), 14).expect("the table is its own");
    desk.commit(one).expect("nothing is in the way");
    assert_eq!(rows(&mut desk, None), [13, 14]);
}

/// Only rows that nobody expects in an order can come from several at once.
#[test]
fn sorted_rows_are_appended_alone() {
    let mut desk = with_table();
    let by_k = |table: &mut TableContent| table.sorted_by = vec!["k".to_owned()];
    write(&mut desk, None, by_k, false).expect("nobody is in the way");
    let (one, two) = (desk.start(None), desk.start(None));
    write(&mut desk, Some(one), |table| table.chunks.push(chunk(10)), true).expect("it is the first");
    assert_eq!(code(append(&mut desk, Some(two), 20)), CONFLICT, "the seam of the first one would not hold");
    desk.abort(one);
    let no_order = |blob| {
        move |table: &mut TableContent| {
            table.chunks.push(chunk(blob));
            table.sorted_by.clear();
        }
    };
    let three = desk.start(None);
    write(&mut desk, Some(two), no_order(20), true).expect("nobody is in the way");
    write(&mut desk, Some(three), no_order(30), true).expect("rows are put behind others");
    desk.commit(two).expect("nothing is in the way");
    desk.commit(three).expect("nothing is in the way");
    assert_eq!(rows(&mut desk, None), [1, 20, 30]);
    assert_eq!(desk.get(None, "//tmp/t/@sorted_by"), "500", "it is not sorted any more");
}

/// What somebody has begun to change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Item {
    Rows,
    Attribute,
    All,
}

#[derive(Clone, Default, Debug)]
struct Layer {
    parent: Tx,
    /// Rows instead of those below, or behind them.
    whole: bool,
    rows: Vec<u64>,
    attribute: Option<u64>,
    begun: BTreeSet<Item>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Start,
    Commit,
    Abort,
    Append,
    Overwrite,
    Attribute,
}

/// A model that knows no views: who has put which rows where, and who has begun to change what.
#[derive(Default)]
struct Model {
    trunk: Layer,
    layers: BTreeMap<ObjectId, Layer>,
}

impl Model {
    fn layer(&mut self, at: Tx) -> &mut Layer {
        match at {
            Some(id) => self.layers.get_mut(&id).expect("it is active"),
            None => &mut self.trunk,
        }
    }

    fn line(&self, at: Tx) -> Vec<ObjectId> {
        std::iter::successors(at, |id| self.layers[id].parent).collect()
    }

    /// The rows and the attribute as a transaction sees them.
    fn seen(&self, at: Tx) -> (Vec<u64>, Option<u64>) {
        let line = self.line(at);
        let layers = [&self.trunk].into_iter().chain(line.iter().rev().map(|id| &self.layers[id]));
        layers.fold((Vec::new(), None), |(mut rows, attribute), layer| {
            if layer.whole {
                rows.clear();
            }
            rows.extend(&layer.rows);
            (rows, layer.attribute.or(attribute))
        })
    }

    fn may(&self, at: Tx, item: Item) -> bool {
        let line = self.line(at);
        let others = self.layers.iter().filter(|(id, _)| !line.contains(id));
        let excludes = |begun: &Item| {
            *begun == Item::All || item == Item::All || (*begun, item) == (Item::Attribute, Item::Attribute)
        };
        !others.flat_map(|(_, layer)| &layer.begun).any(excludes)
    }

    fn end(&mut self, id: ObjectId, commit: bool) {
        let family: Vec<ObjectId> =
            self.layers.keys().copied().filter(|other| self.line(Some(*other)).contains(&id)).collect();
        let layer = self.layers[&id].clone();
        self.layers.retain(|other, _| !family.contains(other));
        if commit {
            let above = self.layer(layer.parent);
            if layer.whole {
                (above.whole, above.rows) = (true, Vec::new());
            }
            above.rows.extend(&layer.rows);
            above.attribute = layer.attribute.or(above.attribute);
            if layer.parent.is_some() {
                above.begun.extend(&layer.begun);
            }
        }
    }
}

fn play(steps: &[(usize, Step)]) {
    let mut desk = Desk::new();
    desk.create(None, NodeType::Table, TABLE).expect("a table");
    let mut model = Model::default();
    for (number, (choice, step)) in (1..).zip(steps) {
        let all: Vec<Tx> = std::iter::once(None).chain(model.layers.keys().copied().map(Some)).collect();
        let at = all[choice % all.len()];
        let item = match step {
            Step::Append => Item::Rows,
            Step::Overwrite => Item::All,
            Step::Attribute => Item::Attribute,
            Step::Start if all.len() < 7 => {
                let id = desk.start(at);
                model.layers.insert(id, Layer { parent: at, ..Layer::default() });
                continue;
            }
            Step::Commit | Step::Abort => {
                let Some(id) = at else { continue };
                let commit = matches!(step, Step::Commit);
                match commit {
                    true => desk.commit(id).expect("locks have seen to it"),
                    false => desk.abort(id),
                }
                model.end(id, commit);
                continue;
            }
            Step::Start => continue,
        };
        let expected = if model.may(at, item) { 0 } else { CONFLICT };
        let found = match item {
            Item::Rows => code(append(&mut desk, at, number)),
            Item::All => code(overwrite(&mut desk, at, number)),
            Item::Attribute => code(desk.set(at, "//tmp/t/@x", &number.to_string())),
        };
        assert_eq!(found, expected, "{item:?} in {at:?} of {:?}", model.layers);
        if expected == 0 {
            let layer = model.layer(at);
            match item {
                Item::Rows => layer.rows.push(number),
                Item::All => (layer.whole, layer.rows) = (true, vec![number]),
                Item::Attribute => layer.attribute = Some(number),
            }
            if at.is_some() {
                layer.begun.insert(item);
            }
        }
        let all: Vec<Tx> = std::iter::once(None).chain(model.layers.keys().copied().map(Some)).collect();
        for at in all {
            let (expected, attribute) = model.seen(at);
            assert_eq!(rows(&mut desk, at), expected, "seen from {at:?}");
            let attribute = attribute.map_or("500".to_owned(), |value| value.to_string());
            assert_eq!(desk.get(at, "//tmp/t/@x"), attribute, "seen from {at:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn rows_are_where_they_were_put(
        steps in prop::collection::vec(
            (any::<usize>(), prop_oneof![
                4 => Just(Step::Start),
                3 => Just(Step::Commit),
                1 => Just(Step::Abort),
                8 => Just(Step::Append),
                1 => Just(Step::Overwrite),
                2 => Just(Step::Attribute),
            ]),
            1..60,
        )
    ) {
        play(&steps);
    }
}
