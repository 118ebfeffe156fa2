//! Setting attributes: `set path/@...`, `multiset_attributes`, attributes of new nodes.

use vocab::{Failure, ObjectId};
use yson::ypath::Step;
use yson::{Map, Value};

use super::{Edit, SetOptions};
use crate::accounts::{Payer, check_limits};
use crate::acl::Acl;
use crate::attributes::{is_kept, is_settable, is_system};
use crate::failures::{odd_step_after, read_only_attribute, wrong_type};
use crate::limits::{count_values, size};
use crate::resolve::Place;
use crate::types::NodeType;
use crate::walk::value_set;

impl Edit<'_> {
    /// `multiset_attributes`: sets all of them or none. The place is a node or its `/@`.
    pub fn multiset_attributes(&mut self, place: &Place, attributes: Map) -> Result<(), Failure> {
        match place.rest.as_slice() {
            [] | [Step::AllAttributes] => {
                self.attempt(|edit| edit.set_all_attributes(place.node, attributes))
            }
            [Step::Attribute(_), ..] => {
                let at = self.show(place);
                Err(Failure::new(format!("\"multiset_attributes\" is for a node or its \"/@\", found {at}"))
                    .with("path", at))
            }
            _ => Err(self.missing(place)),
        }
    }

    pub(super) fn set_attribute(
        &mut self,
        place: &Place,
        value: Value,
        options: SetOptions,
    ) -> Result<(), Failure> {
        let id = place.node;
        match place.rest.as_slice() {
            [Step::AllAttributes] => {
                let found = value.into_bare();
                let Value::Map(attributes) = found else {
                    return Err(wrong_type(&self.show(place), "map", &found));
                };
                self.remove_user_attributes(id);
                self.set_all_attributes(id, attributes)
            }
            [Step::Attribute(name)] => self.set_node_attribute(id, name, value),
            [first @ Step::Attribute(name), inside @ ..] => {
                self.check_writable(id, name)?;
                let mut whole = self.expect_attribute(id, name)?;
                let at = self.show(&Place { node: id, rest: vec![first.clone()] });
                value_set(&mut whole, &at, inside, value, options.recursive)?;
                self.set_node_attribute(id, name, whole)
            }
            [first, ..] => Err(odd_step_after(&self.path(id), first)),
            [] => Err(self.missing(place)),
        }
    }

    /// All attributes of a node together are as large as one may be: each change of the node copies and writes all of
    /// them, and so does each change of its children. A node of an older release may have more, and get fewer.
    fn check_all_user_attributes(&self, id: ObjectId, name: &[u8], value: &Value) -> Result<(), Failure> {
        let node = self.expect_node(id)?;
        let old = node.user_attributes.get(name);
        if old.is_some_and(|old| size(value) <= size(old) && count_values(value) <= count_values(old)) {
            return Ok(());
        }
        let others = || node.user_attributes.iter().filter(|(other, _)| *other != name);
        let bytes: usize = others().map(|(other, value)| other.len() + size(value)).sum();
        let values: usize = others().map(|(_, value)| count_values(value)).sum();
        let (bytes, values) = (bytes + name.len() + size(value), values + count_values(value));
        self.limits.check_attributes(values, bytes, || self.path(id))
    }

    /// Has a node count for another account or owner.
    fn charge_to(&mut self, id: ObjectId, change: impl FnOnce(&mut Payer)) -> Result<(), Failure> {
        let node = self.expect_node(id)?;
        let (before, usage) = (Payer::of(node), node.usage());
        let mut payer = before.clone();
        change(&mut payer);
        self.tree.charge(&before, -usage);
        self.tree.charge(&payer, usage);
        self.update_attributes(id, |node| (node.account, node.owner) = (payer.account, payer.owner));
        Ok(())
    }

    /// The layout: attributes of nodes have not changed, so neither have their times.
    pub(crate) fn change_account(&mut self, id: ObjectId, account: &str) {
        let Some(node) = self.node(id) else { return };
        let (before, usage) = (Payer::of(node), node.usage());
        self.tree.charge(&before, -usage);
        self.tree.charge(&Payer { account: account.to_owned(), ..before }, usage);
        self.remember(id);
        self.tree.change_node(id, |node| node.account = account.to_owned());
    }

    /// Sets one attribute, whichever kind it is of.
    pub(crate) fn set_node_attribute(
        &mut self,
        id: ObjectId,
        name: &[u8],
        value: Value,
    ) -> Result<(), Failure> {
        self.check_writable(id, name)?;
        let path = || format!("{}/@{}", self.path(id), crate::walk::literal(name));
        self.limits.check_value(&value, path)?;
        let node_type = self.expect_node(id)?.node_type;
        let wrong = |expected: &str| {
            wrong_type(&format!("Attribute {}", path()), expected, &value).with("path", path())
        };
        let text = || value.as_str().map(str::to_owned).ok_or_else(|| wrong("string"));
        let flag = || value.as_bool().ok_or_else(|| wrong("boolean"));
        if !is_system(node_type, name) {
            self.limits.check_key(name, "an attribute's name")?;
            match name {
                b"banned"
                    if flag()? && node_type == NodeType::User && self.expect_node(id)?.key == b"root" =>
                {
                    return Err(Failure::new("User \"root\" cannot be banned: nobody could undo it"));
                }
                b"executable" | b"banned" => drop(flag()?),
                b"file_name" => drop(text()?),
                b"compression_codec" | b"erasure_codec" | b"optimize_for" if is_kept(node_type, name) => {
                    drop(text()?);
                }
                b"replication_factor" if is_kept(node_type, name) => {
                    value.as_i64().filter(|count| *count > 0).ok_or_else(|| wrong("positive integer"))?;
                }
                b"resource_limits" if is_kept(node_type, name) => {
                    check_limits(value.as_map().ok_or_else(|| wrong("map"))?, &path())?;
                }
                _ => {}
            }
            let node = self.expect_node(id)?;
            if !node.user_attributes.contains(name) {
                let count = node.user_attributes.len() + 1;
                self.limits.check_attribute_count(count, || self.path(id))?;
            }
            self.check_all_user_attributes(id, name, &value)?;
            self.change_user_attribute(id, name, Some(value));
            return Ok(());
        }
        match name {
            b"owner" => {
                let owner = text()?;
                self.charge_to(id, |payer| payer.owner = owner)?;
            }
            b"account" => {
                let account = text()?;
                self.charge_to(id, |payer| payer.account = account)?;
            }
            b"inherit_acl" => {
                let inherit = flag()?;
                self.update_attributes(id, |node| node.inherit_acl = inherit);
            }
            b"opaque" => {
                let opaque = flag()?;
                if !opaque && node_type.is_opaque_by_nature() {
                    let what = format!("{} is a {}", self.path(id), node_type.name());
                    let message = format!("{what}: that it is shown as \"#\" from above cannot be changed");
                    return Err(Failure::new(message).with("path", path()));
                }
                self.update_attributes(id, |node| node.opaque = opaque);
            }
            b"acl" => {
                let given = self.limits.check_acl(&value).and_then(|()| Acl::given(&value));
                let given = given.map_err(|cause| {
                    Failure::new(format!("Attribute {} cannot be set", path()))
                        .with("path", path())
                        .because(cause)
                })?;
                self.change_acl(id, |acl| *acl = given);
            }
            b"schema" => {
                if value.as_list().is_none() {
                    return Err(wrong("list"));
                }
                self.alter_table(id, value)?;
            }
            b"value" => self.set_value(id, value)?,
            b"expiration_time" | b"expiration_timeout" => self.set_expiration(id, name, &value)?,
            _ => return Err(read_only_attribute(&self.path(id), name)),
        }
        Ok(())
    }

    /// System attributes that are not settable are refused (http-api.md 6.3).
    pub(super) fn check_writable(&self, id: ObjectId, name: &[u8]) -> Result<(), Failure> {
        let node_type = self.expect_node(id)?.node_type;
        if is_system(node_type, name) && !is_settable(node_type, name) {
            return Err(read_only_attribute(&self.path(id), name));
        }
        Ok(())
    }
}
