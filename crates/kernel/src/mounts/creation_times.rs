//! `//sys/estimated_creation_time/<id>`: between when and when an id was made (http-api.md 12, `yt explain-id`). It
//! follows from the id alone, and tells nothing of whether anything bears it still.

use super::{missing, names};
use crate::Kernel;
use cypress::failures::no_child;
use cypress::{GetOptions, Mounted};
use vocab::{Failure, Guid, Time};
use yson::ypath::Step;
use yson::{Map, Value};

impl Kernel {
    pub(crate) fn get_creation_time(
        &self,
        now: Time,
        at: &Mounted,
        options: &GetOptions,
    ) -> Result<Value, Failure> {
        let (step, rest) = match at.rest.as_slice() {
            // Ids that could be asked for are too many to be shown.
            [] => return Ok(self.root_value(at, options, 0, std::iter::empty::<(&str, Value)>())),
            [Step::Attribute(_) | Step::AllAttributes, ..] => return self.root_attributes(at, options, 0),
            [step, rest @ ..] => (step, rest),
        };
        let path = self.tree.path(at.node);
        let key = step.key().ok_or_else(|| missing(&path, step))?;
        let id: Option<Guid> = std::str::from_utf8(&key).ok().and_then(|text| text.parse().ok());
        let made = id.and_then(|id| self.id_times.estimate(id, &self.ids, now));
        let (min, max) = made.ok_or_else(|| no_child(&path, &key))?;
        let value = yson::map! { "min" => min, "max" => max }.into();
        let path = format!("{path}/{}", String::from_utf8_lossy(&key));
        Ok(cypress::walk::value_get(&value, &path, rest)?.into_owned())
    }

    pub(crate) fn list_creation_time(
        &self,
        now: Time,
        at: &Mounted,
        options: &GetOptions,
    ) -> Result<Value, Failure> {
        let value = self.get_creation_time(now, at, &GetOptions::default())?;
        let map = value.as_map().ok_or_else(|| {
            cypress::failures::unsupported("list", &self.tree.show(&at.as_place()), value.type_name())
        })?;
        Ok(names(map.key_strings(), options, |_| Map::new()))
    }
}
