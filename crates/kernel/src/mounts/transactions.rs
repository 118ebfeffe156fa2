//! `//sys/transactions/<id>` and `//sys/locks/<id>`: what has begun and not ended (http-api.md 8.2).

use super::{TRANSACTIONS, attribute_value, dressed, missing, names};
use crate::Kernel;
use cypress::failures::{no_child, unsupported};
use cypress::{GetOptions, Mounted};
use vocab::{Failure, ObjectId};
use yson::ypath::Step;
use yson::{Map, Value};

impl Kernel {
    /// Attributes of one of them, if it exists.
    fn passing(&self, at: &Mounted, id: ObjectId, wanted: &[String]) -> Option<Map> {
        let (own, since) = if at.mount == TRANSACTIONS {
            (self.tree.transaction(id).ok()?, self.tree.transaction_start(id)?)
        } else {
            let lock = self.tree.lock_by_id(id)?;
            let more = yson::map! { "type" => "lock", "node_id" => lock.node, "implicit" => lock.implicit };
            (lock.to_map().into_iter().chain(more).collect(), lock.creation_time)
        };
        let common = self.common_attributes_of(at, &id.to_string(), since, wanted);
        Some(common.into_iter().chain(own).collect())
    }

    fn all_passing(&self, at: &Mounted) -> Vec<ObjectId> {
        match at.mount {
            TRANSACTIONS => self.tree.transactions().collect(),
            _ => self.tree.lock_ids().collect(),
        }
    }

    pub(crate) fn get_passing(&self, at: &Mounted, options: &GetOptions) -> Result<Value, Failure> {
        let wanted = &options.attributes;
        let (step, rest) = match at.rest.as_slice() {
            [] => {
                let all = self.all_passing(at);
                let shown = all.iter().map(|id| {
                    let attributes = || self.passing(at, *id, wanted).unwrap_or_default();
                    (id.to_string(), dressed(Value::Entity, wanted, attributes))
                });
                return Ok(self.root_value(at, options, all.len(), shown));
            }
            [Step::Attribute(_) | Step::AllAttributes, ..] => {
                return self.root_attributes(at, options, self.all_passing(at).len());
            }
            [step, rest @ ..] => (step, rest),
        };
        let path = self.tree.path(at.node);
        let key = step.key().ok_or_else(|| missing(&path, step))?;
        let id: Option<ObjectId> = std::str::from_utf8(&key).ok().and_then(|text| text.parse().ok());
        let asked = match rest {
            [Step::Attribute(name), ..] => vec![String::from_utf8_lossy(name).into_owned()],
            _ => wanted.clone(),
        };
        let attributes =
            id.and_then(|id| self.passing(at, id, &asked)).ok_or_else(|| no_child(&path, &key))?;
        let path = format!("{path}/{}", String::from_utf8_lossy(&key));
        match rest {
            [] => Ok(dressed(Value::Entity, wanted, || attributes)),
            [Step::AllAttributes] => Ok(crate::tree::only(attributes, wanted).into()),
            [Step::Attribute(name), inside @ ..] => attribute_value(&path, &attributes, name, inside),
            [step, ..] => Err(missing(&path, step)),
        }
    }

    pub(crate) fn list_passing(&self, at: &Mounted, options: &GetOptions) -> Result<Value, Failure> {
        if !at.rest.is_empty() {
            let kind = if at.mount == TRANSACTIONS { "transaction" } else { "lock" };
            if !matches!(at.rest.last(), Some(Step::Attribute(_) | Step::AllAttributes)) && at.rest.len() == 1
            {
                return Err(unsupported("list", &self.tree.show(&at.as_place()), kind));
            }
            let value = self.get_passing(at, &GetOptions::default())?;
            let map = value
                .as_map()
                .ok_or_else(|| unsupported("list", &self.tree.show(&at.as_place()), value.type_name()))?;
            let plain = GetOptions { attributes: Vec::new(), ..options.clone() };
            return Ok(names(map.key_strings(), &plain, |_| Map::new()));
        }
        let all = self.all_passing(at).into_iter().map(|id| id.to_string());
        let of = |id: &str| self.passing(at, id.parse().ok()?, &options.attributes);
        Ok(names(all, options, |id| of(id).unwrap_or_default()))
    }
}
