//! `transfer_account_resources`: limits of one account become those of another. Accounts are names with limits that
//! are kept and shown; nothing else depends on them.

use crate::{Effect, Kernel};
use cypress::{Last, Place, Resolved, SetOptions};
use vocab::{Failure, Time};
use yson::ypath::{Step, YPath};
use yson::{Map, Value};

/// Where an account is.
pub(crate) fn account_path(name: &str) -> YPath {
    YPath::default().child("sys").child("accounts").child(name)
}

impl Kernel {
    /// Both change or none; what the source has not cannot be taken from it.
    pub(crate) fn transfer_account_resources(
        &mut self,
        now: Time,
        user: &str,
        (source, destination): (&str, &str),
        delta: &Map,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let (from, to) = (self.account_limits(source)?, self.account_limits(destination)?);
        let mut taken = self.limits_at(&from);
        let mut given = self.limits_at(&to);
        add(&mut taken, delta, -1, "")?;
        // To itself is no change, but it must have what was to be taken.
        if from.node == to.node {
            return Ok(());
        }
        add(&mut given, delta, 1, "")?;
        self.edit(now, user, out, |edit| {
            edit.set(&from, taken.into(), SetOptions::default())?;
            edit.set(&to, given.into(), SetOptions::default())
        })
    }

    fn account_limits(&self, name: &str) -> Result<Place, Failure> {
        match self.tree.resolve(&account_path(name), Last::Stay)? {
            Resolved::Local(place) if place.rest.is_empty() => {
                Ok(Place { rest: vec![Step::Attribute(b"resource_limits".to_vec())], ..place })
            }
            Resolved::Local(place) => Err(self.tree.missing(&place)),
            _ => Err(Failure::resolve(format!("No such account \"{name}\""))),
        }
    }

    fn limits_at(&self, place: &Place) -> Map {
        let limits = self.tree.attribute(place.node, b"resource_limits");
        limits.as_ref().and_then(Value::as_map).cloned().unwrap_or_default()
    }
}

/// Adds `sign x delta`, also inside of maps (limits per medium); nothing may become negative.
fn add(limits: &mut Map, delta: &Map, sign: i64, at: &str) -> Result<(), Failure> {
    for (key, change) in delta.iter() {
        let path = format!("{at}/{}", String::from_utf8_lossy(key));
        let refuse = |why: String| {
            Err(Failure::new(format!("resource_delta{path}: {why}")).with("path", path.as_str()))
        };
        if let Some(inner) = change.as_map() {
            match limits.entry_or_insert(key, || Map::new().into()).as_map_mut() {
                Some(map) => add(map, inner, sign, &path)?,
                None => return refuse("the account has a number there".to_owned()),
            }
            continue;
        }
        let Some(amount) = change.as_i64().filter(|amount| *amount >= 0) else {
            return refuse(format!("expected an integer of at least 0, found {change:?}"));
        };
        let old = match limits.get(key) {
            None => 0,
            Some(value) => match value.as_i64() {
                Some(old) => old,
                None => return refuse(format!("the account has {value:?}, which is no integer")),
            },
        };
        let new = old.checked_add(sign * amount).filter(|new| *new >= 0);
        let Some(new) = new else {
            return refuse(format!("the account has {old}, {} cannot be added", sign * amount));
        };
        limits.insert(key, new);
    }
    Ok(())
}
