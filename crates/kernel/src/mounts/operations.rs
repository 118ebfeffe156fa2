//! `//sys/operations/<xx>/<id>/@...`: operations as nodes (http-api.md 9.6).

use super::{OPERATIONS, attribute_value, cut, dressed, missing, names};
use crate::access::Object;
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

    /// Of the map of the operations whose id ends so; their number is told in [`Kernel::counted_bucket`].
    fn bucket_attributes(&self, at: &Mounted, bucket: u8, wanted: &[String]) -> Map {
        let since = self.tree.node(at.node).map(|node| node.creation_time).unwrap_or_default();
        self.common_attributes_of(at, &format!("{bucket:02x}"), since, wanted)
            .with("type", "map_node")
            .with("opaque", true)
    }

    /// The same for who asks about one of them: for its number all operations are looked at.
    fn counted_bucket(&self, at: &Mounted, bucket: u8, wanted: &[String]) -> Map {
        let is_counted = wanted.is_empty() || wanted.iter().any(|name| name == "count");
        let count = is_counted.then(|| self.operations_in(bucket).count());
        self.bucket_attributes(at, bucket, wanted).with_some("count", count)
    }

    /// What can be told of an operation among many: of one that is over, what is in memory.
    fn listed_attributes(&self, now: Time, at: &Mounted, id: OperationId, wanted: &[String]) -> Map {
        let own = match (self.operations.get(&id), self.finished.get(id)) {
            (Some(operation), _) => self.operation_attributes(now, operation, Some(wanted)),
            (None, Some(summary)) => summary.attributes(),
            (None, None) => Map::new(),
        };
        self.node_attributes_of_operation(at, id, wanted).into_iter().chain(own).collect()
    }

    /// As those of any node, but that its list is all that counts for it.
    fn node_attributes_of_operation(&self, at: &Mounted, id: OperationId, wanted: &[String]) -> Map {
        let is_named = |name: &str| wanted.iter().any(|wanted| wanted == name);
        let acl = || self.effective_acl(&Object::Operation(id));
        self.common_attributes_of(at, &id.to_string(), self.start_of(id), wanted)
            .with("path", self.operation_path(id))
            .with_some("acl", (wanted.is_empty() || is_named("acl")).then(acl))
            .with_some("effective_acl", is_named("effective_acl").then(acl))
    }

    /// Where an operation is in the tree.
    pub(crate) fn operation_path(&self, id: OperationId) -> String {
        format!("{}/{:02x}/{id}", self.tree.path(self.mount_node(OPERATIONS)), bucket(id))
    }

    /// The operation that a path names, itself or an attribute of it.
    pub(crate) fn operation_at(&self, at: &Mounted) -> Result<Option<OperationId>, Failure> {
        match self.operation_target(at, &at.rest)? {
            (Target::Operation(id), [] | [Step::Attribute(_) | Step::AllAttributes, ..]) => Ok(Some(id)),
            (Target::Operation(id), [step, ..]) => Err(missing(&self.operation_path(id), step)),
            (Target::All | Target::Bucket(_), _) => Ok(None),
        }
    }

    fn start_of(&self, id: OperationId) -> Time {
        let live = self.operations.get(&id).map(|operation| operation.start_time);
        live.or_else(|| Some(self.finished.get(id)?.start_time)).unwrap_or_default()
    }

    pub(crate) fn get_operations_node(
        &self,
        now: Time,
        at: &Mounted,
        options: &GetOptions,
    ) -> Result<Body, Failure> {
        let (target, rest) = self.operation_target(at, &at.rest)?;
        let path = self.tree.path(at.node);
        let wanted = &options.attributes;
        match (target, rest) {
            (Target::All, []) => {
                let dress = |b| dressed(Value::Entity, wanted, || self.bucket_attributes(at, b, wanted));
                let buckets = (0..=u8::MAX).map(|b| (format!("{b:02x}"), dress(b)));
                Ok(Body::Value(self.root_value(at, options, BUCKETS, buckets)))
            }
            (Target::All, _) => self.root_attributes(at, options, BUCKETS).map(Body::Value),
            (Target::Bucket(b), []) => {
                let dress =
                    |id| dressed(Value::Entity, wanted, || self.listed_attributes(now, at, id, wanted));
                let all = self.operations_in(b).map(|id| (id.to_string(), dress(id)));
                Ok(Body::Value(dressed(cut(options, all), wanted, || self.counted_bucket(at, b, wanted))))
            }
            (Target::Bucket(b), [Step::AllAttributes]) => {
                let all = self.counted_bucket(at, b, wanted);
                Ok(Body::Value(crate::tree::only(all, wanted).into()))
            }
            (Target::Bucket(b), [Step::Attribute(name), inside @ ..]) => {
                let all = self.counted_bucket(at, b, &[String::from_utf8_lossy(name).into_owned()]);
                attribute_value(&format!("{path}/{b:02x}"), &all, name, inside).map(Body::Value)
            }
            (Target::Operation(id), rest) => {
                let wanted_below = match rest {
                    [Step::Attribute(name), ..] => vec![String::from_utf8_lossy(name).into_owned()],
                    _ => wanted.clone(),
                };
                let node = self.node_attributes_of_operation(at, id, &wanted_below);
                let steps = match rest {
                    [] => {
                        let listed = || self.listed_attributes(now, at, id, wanted);
                        return Ok(Body::Value(dressed(Map::new().into(), wanted, listed)));
                    }
                    [Step::AllAttributes] => Vec::new(),
                    [Step::Attribute(name), inside @ ..] => {
                        std::iter::once(Step::Child(name.clone())).chain(inside.iter().cloned()).collect()
                    }
                    [step, ..] => return Err(missing(&format!("{path}/{id}"), step)),
                };
                match self.operations.get(&id) {
                    None => {
                        let attributes = Some(wanted.clone()).filter(|wanted| !wanted.is_empty());
                        Ok(Body::ArchivedOperation { id, node, attributes, steps })
                    }
                    Some(operation) => {
                        let own = self.operation_attributes(now, operation, None);
                        let all: Map = node.into_iter().chain(own).collect();
                        let value = match steps.as_slice() {
                            [] => crate::tree::only(all, wanted).into(),
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
            (Target::All, []) => names((0..=u8::MAX).map(|b| format!("{b:02x}")), options, |name| {
                let bucket = u8::from_str_radix(name, 16).unwrap_or_default();
                self.bucket_attributes(at, bucket, &options.attributes)
            }),
            (Target::Bucket(b), []) => {
                let of = |id: &str| {
                    let id = OperationId(id.parse().ok()?);
                    Some(self.listed_attributes(now, at, id, &options.attributes))
                };
                names(self.operations_in(b).map(|id| id.to_string()), options, |id| {
                    of(id).unwrap_or_default()
                })
            }
            (Target::Operation(_), []) => names(Vec::new(), options, |_| Map::new()),
            _ => {
                let plain = GetOptions { attributes: Vec::new(), ..options.clone() };
                let Body::Value(value) = self.get_operations_node(now, at, &plain)? else {
                    let own = crate::operation::ATTRIBUTES.iter().map(|n| (*n).to_owned());
                    let common = super::common::names_of_all().map(str::to_owned);
                    let all: std::collections::BTreeSet<String> = own.chain(common).collect();
                    return Ok(Body::Value(names(all, &plain, |_| Map::new())));
                };
                let map = value.as_map().ok_or_else(|| {
                    cypress::failures::unsupported("list", &self.tree.show(&at.as_place()), value.type_name())
                })?;
                names(map.key_strings(), &plain, |_| Map::new())
            }
        };
        Ok(Body::Value(value))
    }
}
