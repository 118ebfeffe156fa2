//! `//sys/operations/<xx>/<id>/@...`: operations as nodes (http-api.md 9.6).

use super::{attribute_value, missing, names};
use crate::{Body, Kernel, OperationRef};
use cypress::failures::no_child;
use cypress::{GetOptions, Mounted};
use vocab::{Failure, OperationId, Time};
use yson::ypath::Step;
use yson::{Map, Value};

/// What a path below `//sys/operations` means.
enum Target {
    All,
    /// All operations whose id ends so.
    Bucket(u8),
    Operation(OperationId),
}

/// Children of `//sys/operations`: one for each low byte of an id.
const BUCKETS: usize = 256;

/// Low byte of the last part of an id.
fn bucket(id: OperationId) -> u8 {
    id.0.0[3] as u8
}

impl Kernel {
    fn operation_target<'s>(&self, at: &Mounted, steps: &'s [Step]) -> Result<(Target, &'s [Step]), Failure> {
        let path = self.tree.path(at.node);
        let Some(key) = steps.first().and_then(Step::key) else { return Ok((Target::All, steps)) };
        let text = String::from_utf8_lossy(&key).into_owned();
        if text.len() == 2
            && let Ok(bucket_number) = u8::from_str_radix(&text, 16)
        {
            let Some(key) = steps.get(1).and_then(Step::key) else {
                return Ok((Target::Bucket(bucket_number), &steps[1..]));
            };
            let id = self.known_operation(&format!("{path}/{text}"), &key)?;
            if bucket(id) != bucket_number {
                return Err(no_child(&format!("{path}/{text}"), &key));
            }
            return Ok((Target::Operation(id), &steps[2..]));
        }
        Ok((Target::Operation(self.known_operation(&path, &key)?), &steps[1..]))
    }

    fn known_operation(&self, path: &str, key: &[u8]) -> Result<OperationId, Failure> {
        let text = String::from_utf8_lossy(key);
        let reference = match text.parse() {
            Ok(id) => OperationRef::Id(id),
            Err(_) => OperationRef::Alias(text.into_owned()),
        };
        self.find_operation(&reference).map_err(|_| no_child(path, key))
    }

    fn operations_in(&self, bucket_number: u8) -> impl Iterator<Item = OperationId> {
        self.operations
            .keys()
            .copied()
            .chain(self.finished.newest_first().map(|s| s.id))
            .filter(move |id| bucket(*id) == bucket_number)
    }

    pub(crate) fn get_operations_node(
        &self,
        now: Time,
        at: &Mounted,
        options: &GetOptions,
    ) -> Result<Body, Failure> {
        let (target, rest) = self.operation_target(at, &at.rest)?;
        let path = self.tree.path(at.node);
        match (target, rest) {
            (Target::All, []) => {
                let buckets: Map = (0..=u8::MAX).map(|b| (format!("{b:02x}"), Value::Entity)).collect();
                Ok(Body::Value(buckets.into()))
            }
            (Target::All, _) => self.root_attributes(at, options, BUCKETS).map(Body::Value),
            (Target::Bucket(b), []) => {
                let all: Map = self.operations_in(b).map(|id| (id.to_string(), Value::Entity)).collect();
                Ok(Body::Value(all.into()))
            }
            (Target::Operation(id), rest) => {
                let steps = match rest {
                    [] => return Ok(Body::Value(Map::new().into())),
                    [Step::AllAttributes] => Vec::new(),
                    [Step::Attribute(name), inside @ ..] => {
                        std::iter::once(Step::Child(name.clone())).chain(inside.iter().cloned()).collect()
                    }
                    [step, ..] => return Err(missing(&format!("{path}/{id}"), step)),
                };
                match self.operations.get(&id) {
                    None => Ok(Body::ArchivedOperation { id, attributes: None, steps }),
                    Some(operation) => {
                        let all = self.operation_attributes(now, operation, None);
                        let value = match steps.as_slice() {
                            [] => all.into(),
                            [Step::Child(name), inside @ ..] => {
                                attribute_value(&format!("{path}/{id}"), &all, name, inside)?
                            }
                            _ => return Err(missing(&path, &steps[0])),
                        };
                        Ok(Body::Value(value))
                    }
                }
            }
            (Target::Bucket(b), [step, ..]) => Err(missing(&format!("{path}/{b:02x}"), step)),
        }
    }

    pub(crate) fn list_operations_node(
        &self,
        now: Time,
        at: &Mounted,
        options: &GetOptions,
    ) -> Result<Body, Failure> {
        let (target, rest) = self.operation_target(at, &at.rest)?;
        let value = match (target, rest) {
            (Target::All, []) => names((0..=u8::MAX).map(|b| format!("{b:02x}")), options, |_| Map::new()),
            (Target::Bucket(b), []) => {
                names(self.operations_in(b).map(|id| id.to_string()), options, |_| Map::new())
            }
            (Target::Operation(_), []) => names(Vec::new(), options, |_| Map::new()),
            _ => {
                let Body::Value(value) = self.get_operations_node(now, at, options)? else {
                    let names = crate::operation::ATTRIBUTES.iter().map(|n| (*n).to_owned());
                    return Ok(Body::Value(super::names(names, options, |_| Map::new())));
                };
                let map = value.as_map().ok_or_else(|| {
                    cypress::failures::unsupported("list", &self.tree.show(&at.as_place()), value.type_name())
                })?;
                names(map.key_strings(), options, |_| Map::new())
            }
        };
        Ok(Body::Value(value))
    }
}
