//! `@alerts` of `//sys/scheduler` and `//sys/controller_agents` (http-api.md 7.1): an attribute of ordinary nodes that is
//! not kept in the tree.

use crate::Kernel;
use cypress::failures::read_only_attribute;
use cypress::walk::value_get;
use cypress::{GetOptions, Place, list_reply};
use vocab::Failure;
use yson::ypath::Step;
use yson::{Map, Value};

const NAME: &str = "alerts";

impl Kernel {
    /// Of this node, if it has such.
    fn alerts_of(&self, place: &Place) -> Option<Value> {
        if place.node == self.scheduler_node {
            Some(self.alerts())
        } else {
            (place.node == self.controller_agents_node).then(|| Vec::<Value>::new().into())
        }
    }

    /// The attribute, if the place is it or is inside it.
    pub(crate) fn get_alerts(&self, place: &Place) -> Option<Result<Value, Failure>> {
        if !is_alerts(&place.rest) {
            return None;
        }
        let alerts = self.alerts_of(place)?;
        let at = format!("{}/@{NAME}", self.tree.path(place.node));
        Some(value_get(&alerts, &at, &place.rest[1..]).map(|value| value.into_owned()))
    }

    /// What the tree has at a place, with the attribute if it belongs to that.
    pub(crate) fn with_alerts(&self, place: &Place, options: &GetOptions, value: Value) -> Value {
        let wanted = &options.attributes;
        let is_wanted = wanted.iter().any(|name| name == NAME);
        match place.rest.as_slice() {
            [] if is_wanted => match self.alerts_of(place) {
                Some(alerts) => {
                    let own = value.attributes().cloned().unwrap_or_default();
                    value.with_attributes(own.with(NAME, alerts))
                }
                None => value,
            },
            [Step::AllAttributes] if is_wanted || wanted.is_empty() => match self.alerts_of(place) {
                Some(alerts) => value.as_map().cloned().unwrap_or_default().with(NAME, alerts).into(),
                None => value,
            },
            _ => value,
        }
    }

    /// Names of the attributes of a node that has it.
    pub(crate) fn list_with_alerts(&self, place: &Place, options: &GetOptions) -> Option<Value> {
        if !matches!(place.rest.as_slice(), [Step::AllAttributes]) {
            return None;
        }
        self.alerts_of(place)?;
        let all = self.tree.attributes(place.node, &[]).with(NAME, Value::Entity);
        let mut names: Vec<String> = all.key_strings().collect();
        names.sort();
        Some(list_reply(names.into_iter().map(Value::from).collect(), options.max_size))
    }

    /// Nobody sets it, and nobody removes it.
    pub(crate) fn keep_alerts(&self, place: &Place, attributes: &Map) -> Result<(), Failure> {
        let is_meant = is_alerts(&place.rest) || attributes.contains(NAME);
        match is_meant && self.alerts_of(place).is_some() {
            true => Err(read_only_attribute(&self.tree.path(place.node), NAME.as_bytes())),
            false => Ok(()),
        }
    }
}

fn is_alerts(rest: &[Step]) -> bool {
    matches!(rest.first(), Some(Step::Attribute(name)) if name == NAME.as_bytes())
}
