//! The tree against a naive twin: nested maps without ids, journal or indices.

use std::collections::BTreeMap;

use crate::console::Console;
use proptest::prelude::*;
use yson::{Map, Value};

/// All that the twin knows: a map, or a number.
#[derive(Clone, Debug, PartialEq)]
enum Twin {
    Map(BTreeMap<&'static str, Twin>),
    Number(i64),
}

#[derive(Clone, Debug)]
enum Act {
    SetNumber { path: Vec<&'static str>, number: i64, recursive: bool },
    SetMap { path: Vec<&'static str>, keys: Vec<&'static str>, force: bool },
    Create { path: Vec<&'static str>, recursive: bool, ignore_existing: bool, force: bool },
    Remove { path: Vec<&'static str>, recursive: bool, force: bool },
    Empty { path: Vec<&'static str> },
    Copy { from: Vec<&'static str>, to: Vec<&'static str>, recursive: bool, force: bool, moves: bool },
}

fn text(path: &[&str]) -> String {
    format!("//tmp/{}", path.join("/"))
}

impl Act {
    fn line(&self) -> String {
        let keys = |keys: &[&str]| keys.iter().map(|k| format!("{k}=1;")).collect::<String>();
        match self {
            Act::SetNumber { path, number, recursive } => {
                format!("set {} {number} -- recursive=%{recursive}", text(path))
            }
            Act::SetMap { path, keys: k, force } => {
                format!("set {} {{{}}} -- force=%{force}", text(path), keys(k))
            }
            Act::Create { path, recursive, ignore_existing, force } => format!(
                "create map_node {} -- recursive=%{recursive};ignore_existing=%{ignore_existing};force=%{force}",
                text(path)
            ),
            Act::Remove { path, recursive, force } => {
                format!("remove {} -- recursive=%{recursive};force=%{force}", text(path))
            }
            Act::Empty { path } => format!("remove {}/*", text(path)),
            Act::Copy { from, to, recursive, force, moves } => format!(
                "{} {} {} -- recursive=%{recursive};force=%{force}",
                if *moves { "move" } else { "copy" },
                text(from),
                text(to)
            ),
        }
    }
}

impl Twin {
    fn find(&self, path: &[&'static str]) -> Option<&Twin> {
        path.iter().try_fold(self, |here, key| match here {
            Twin::Map(map) => map.get(key),
            Twin::Number(_) => None,
        })
    }

    /// The map in which the last key of the path is, made if `recursive`.
    fn parent(
        &mut self,
        path: &[&'static str],
        recursive: bool,
    ) -> Result<&mut BTreeMap<&'static str, Twin>, i64> {
        let mut here = self;
        for key in &path[..path.len() - 1] {
            let Twin::Map(map) = here else { return Err(500) };
            if recursive {
                map.entry(key).or_insert_with(|| Twin::Map(BTreeMap::new()));
            }
            here = map.get_mut(key).ok_or(500)?;
        }
        match here {
            Twin::Map(map) => Ok(map),
            Twin::Number(_) => Err(500),
        }
    }

    fn put(&mut self, path: &[&'static str], new: Twin, recursive: bool) -> Result<(), i64> {
        self.parent(path, recursive)?.insert(path[path.len() - 1], new);
        Ok(())
    }

    /// The command, or the code of its error.
    fn act(&mut self, act: &Act) -> Result<(), i64> {
        match act {
            Act::SetNumber { path, number, recursive } => match self.find(path) {
                Some(Twin::Map(_)) => Err(1),
                _ => self.put(path, Twin::Number(*number), *recursive),
            },
            Act::SetMap { path, keys, force } => match self.find(path) {
                Some(Twin::Number(_)) => Err(1),
                Some(Twin::Map(_)) if !force => Err(1),
                _ => {
                    let map = keys.iter().map(|k| (*k, Twin::Number(1))).collect();
                    self.put(path, Twin::Map(map), false)
                }
            },
            Act::Create { ignore_existing: true, force: true, .. } => Err(1),
            Act::Create { path, recursive, ignore_existing, force } => match self.find(path) {
                Some(Twin::Map(_)) if *ignore_existing => Ok(()),
                Some(_) if !force => Err(501),
                _ => self.put(path, Twin::Map(BTreeMap::new()), *recursive),
            },
            Act::Remove { path, recursive, force } => match self.find(path) {
                None => {
                    if *force {
                        Ok(())
                    } else {
                        Err(500)
                    }
                }
                Some(Twin::Map(map)) if !map.is_empty() && !recursive => Err(1),
                Some(_) => {
                    self.parent(path, false)?.remove(path[path.len() - 1]);
                    Ok(())
                }
            },
            Act::Empty { path } => match self.find(path) {
                Some(Twin::Map(_)) => self.put(path, Twin::Map(BTreeMap::new()), false),
                Some(Twin::Number(_)) | None => Err(500),
            },
            Act::Copy { from, to, recursive, force, moves } => {
                let copy = self.find(from).cloned().ok_or(500)?;
                let exists = self.find(to).is_some();
                if exists && !force {
                    return Err(501);
                }
                if to.starts_with(from) || exists && from.starts_with(to) {
                    return Err(1);
                }
                let mut after = self.clone();
                after.put(to, copy, *recursive)?;
                if *moves {
                    after.parent(from, false)?.remove(from[from.len() - 1]);
                }
                *self = after;
                Ok(())
            }
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Twin::Number(n) => Value::Int(*n),
            Twin::Map(map) => map.iter().map(|(k, v)| (k, v.to_value())).collect::<Map>().into(),
        }
    }
}

fn acts() -> impl Strategy<Value = Act> {
    let key = || prop::sample::select(vec!["a", "b", "c"]);
    let path = move || prop::collection::vec(key(), 1..4);
    prop_oneof![
        3 => (path(), 0..9i64, any::<bool>())
            .prop_map(|(path, number, recursive)| Act::SetNumber { path, number, recursive }),
        2 => (path(), prop::collection::vec(key(), 0..3), any::<bool>())
            .prop_map(|(path, keys, force)| Act::SetMap { path, keys, force }),
        3 => (path(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(path, recursive, ignore_existing, force)| Act::Create { path, recursive, ignore_existing, force }
        ),
        2 => (path(), any::<bool>(), any::<bool>())
            .prop_map(|(path, recursive, force)| Act::Remove { path, recursive, force }),
        1 => path().prop_map(|path| Act::Empty { path }),
        4 => (path(), path(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(from, to, recursive, force, moves)| Act::Copy { from, to, recursive, force, moves }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_twin(acts in prop::collection::vec(acts(), 1..25)) {
        let mut console = Console::new();
        let mut twin = Twin::Map(BTreeMap::new());
        for act in acts {
            let line = act.line();
            let mut next = twin.clone();
            let expected = next.act(&act);
            let got = console.run(&line).map(drop);
            prop_assert_eq!(got.as_ref().map_err(|f| f.code), expected.as_ref().map_err(|c| *c), "{} {:?}", line, got);
            if expected.is_ok() {
                twin = next;
            }
            let shown = console.run("get //tmp").map_err(|f| f.message);
            let wanted = String::from_utf8_lossy(&yson::to_text(&twin.to_value())).into_owned();
            prop_assert_eq!(shown, Ok(wanted), "{}", line);
        }
    }
}
