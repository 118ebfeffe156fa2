//! Any commands in any transactions, compared with a model that knows no trees: a few keys and
//! attributes, whole copies of what each transaction changed, and who has begun to change what.

use std::collections::{BTreeMap, BTreeSet};

use super::desk::{Desk, Tx, code};
use cypress::NodeType;
use proptest::prelude::*;
use vocab::ObjectId;

/// What somebody can have begun to change.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Item {
    /// Which child has the key.
    Key(usize),
    /// The value of this child.
    Child(u64),
    /// An attribute of the parent.
    Attribute(usize),
}

/// What is at a key: which child it is, and its value.
type Slot = Option<(u64, u8)>;

#[derive(Clone, Default, Debug)]
struct Layer {
    parent: Tx,
    keys: BTreeMap<usize, Slot>,
    attributes: BTreeMap<usize, Option<u8>>,
    begun: BTreeSet<Item>,
}

#[derive(Default, Debug)]
struct Model {
    trunk: Layer,
    layers: BTreeMap<ObjectId, Layer>,
    children: u64,
}

impl Model {
    fn line(&self, at: Tx) -> Vec<ObjectId> {
        std::iter::successors(at, |id| self.layers[id].parent).collect()
    }

    fn layer(&mut self, at: Tx) -> &mut Layer {
        match at {
            Some(id) => self.layers.get_mut(&id).expect("it is active"),
            None => &mut self.trunk,
        }
    }

    /// The innermost layers first, the trunk last.
    fn seen(&self, at: Tx) -> Vec<&Layer> {
        self.line(at).iter().map(|id| &self.layers[id]).chain([&self.trunk]).collect()
    }

    fn slot(&self, at: Tx, key: usize) -> Slot {
        self.seen(at).iter().find_map(|layer| layer.keys.get(&key)).copied().flatten()
    }

    fn attribute(&self, at: Tx, name: usize) -> Option<u8> {
        self.seen(at).iter().find_map(|layer| layer.attributes.get(&name)).copied().flatten()
    }

    /// May it begin to change these?
    fn may(&self, at: Tx, items: &[Item]) -> bool {
        let line = self.line(at);
        let others = self.layers.iter().filter(|(id, _)| !line.contains(id));
        others.flat_map(|(_, layer)| &layer.begun).all(|begun| !items.contains(begun))
    }

    fn begin(&mut self, at: Tx, items: &[Item]) {
        if at.is_some() {
            self.layer(at).begun.extend(items.iter().cloned());
        }
    }

    fn end(&mut self, id: ObjectId, commit: bool) {
        let family: Vec<ObjectId> =
            self.layers.keys().copied().filter(|other| self.line(Some(*other)).contains(&id)).collect();
        let layer = self.layers[&id].clone();
        self.layers.retain(|other, _| !family.contains(other));
        if commit {
            let items: Vec<Item> = layer.begun.into_iter().collect();
            self.begin(layer.parent, &items);
            let above = self.layer(layer.parent);
            above.keys.extend(layer.keys);
            above.attributes.extend(layer.attributes);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Start,
    Commit,
    Abort,
    Set(usize, u8),
    Remove(usize),
    Attribute(usize, u8),
    Strip(usize),
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let step = prop_oneof![
        3 => Just(Step::Start),
        2 => Just(Step::Commit),
        1 => Just(Step::Abort),
        6 => (0..3usize, any::<u8>()).prop_map(|(key, value)| Step::Set(key, value)),
        3 => (0..3usize).prop_map(Step::Remove),
        3 => (0..2usize, any::<u8>()).prop_map(|(name, value)| Step::Attribute(name, value)),
        2 => (0..2usize).prop_map(Step::Strip),
    ];
    (any::<usize>(), step)
}

/// Runs one change in both; the locks of the model say whether it is refused.
fn change(
    desk: &mut Desk,
    model: &mut Model,
    at: Tx,
    items: &[Item],
    real: impl FnOnce(&mut Desk) -> i64,
    modelled: impl FnOnce(&mut Layer),
) {
    let expected = if model.may(at, items) { 0 } else { vocab::code::LOCK_CONFLICT };
    assert_eq!(real(desk), expected, "{items:?} in {at:?}: {model:?}");
    if expected == 0 {
        model.begin(at, items);
        modelled(model.layer(at));
    }
}

fn play(steps: Vec<(usize, Step)>) {
    let mut desk = Desk::new();
    desk.create(None, NodeType::MapNode, "//tmp/m").expect("a map");
    let mut model = Model::default();
    for (choice, step) in steps {
        let all: Vec<Tx> = std::iter::once(None).chain(model.layers.keys().copied().map(Some)).collect();
        let at = all[choice % all.len()];
        let (d, m) = (&mut desk, &mut model);
        match (step, at) {
            (Step::Start, _) if all.len() < 6 => {
                let id = d.start(at);
                m.layers.insert(id, Layer { parent: at, ..Layer::default() });
            }
            (Step::Commit, Some(id)) => {
                d.commit(id).expect("locks have seen to it");
                m.end(id, true);
            }
            (Step::Abort, Some(id)) => {
                d.abort(id);
                m.end(id, false);
            }
            (Step::Set(key, value), _) => {
                let slot = m.slot(at, key);
                // Setting what is there already needs nothing.
                if slot.is_some_and(|(_, old)| old == value) {
                    continue;
                }
                m.children += 1;
                let child = slot.map_or(m.children, |(child, _)| child);
                let mut items = vec![Item::Child(child)];
                items.extend(slot.is_none().then_some(Item::Key(key)));
                let path = format!("//tmp/m/k{key}");
                let real = |d: &mut Desk| code(d.set(at, &path, &value.to_string()));
                change(d, m, at, &items, real, |layer| {
                    layer.keys.insert(key, Some((child, value)));
                });
            }
            (Step::Remove(key), _) => {
                let Some((child, _)) = m.slot(at, key) else { continue };
                let real = |d: &mut Desk| code(d.remove(at, &format!("//tmp/m/k{key}")));
                let items = [Item::Key(key), Item::Child(child)];
                change(d, m, at, &items, real, |layer| {
                    layer.keys.insert(key, None);
                });
            }
            (Step::Attribute(name, value), _) if m.attribute(at, name) != Some(value) => {
                let path = format!("//tmp/m/@a{name}");
                let real = |d: &mut Desk| code(d.set(at, &path, &value.to_string()));
                let modelled = |layer: &mut Layer| {
                    layer.attributes.insert(name, Some(value));
                };
                change(d, m, at, &[Item::Attribute(name)], real, modelled);
            }
            (Step::Strip(name), _) if m.attribute(at, name).is_some() => {
                let real = |d: &mut Desk| code(d.remove(at, &format!("//tmp/m/@a{name}")));
                let modelled = |layer: &mut Layer| {
                    layer.attributes.insert(name, None);
                };
                change(d, m, at, &[Item::Attribute(name)], real, modelled);
            }
            _ => continue,
        }
        compare(&mut desk, &model);
    }
}

fn compare(desk: &mut Desk, model: &Model) {
    for at in std::iter::once(None).chain(model.layers.keys().copied().map(Some)) {
        for key in 0..3 {
            let expected = model.slot(at, key).map_or("500".to_owned(), |(_, value)| value.to_string());
            assert_eq!(desk.get(at, &format!("//tmp/m/k{key}")), expected, "key {key} seen from {at:?}");
        }
        for name in 0..2 {
            let expected = model.attribute(at, name).map_or("500".to_owned(), |value| value.to_string());
            assert_eq!(desk.get(at, &format!("//tmp/m/@a{name}")), expected, "attribute {name} from {at:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn transactions_do_what_the_model_does(steps in prop::collection::vec(step(), 1..40)) {
        play(steps);
    }
}
