//! Users and groups: who is in what (http-api.md 8.4).
//!
//! Groups are found by their type, wherever they are; members are names. `everyone` and `users`
//! have everybody (all but `guest`) without a list.

use std::collections::BTreeSet;

use vocab::{Failure, ObjectId, code};

use crate::edit::Edit;
use crate::node::Body;
use crate::tree::Tree;

/// Already a member of the group.
const ALREADY_PRESENT_IN_GROUP: i64 = 908;

/// The group of all subjects.
pub const EVERYONE: &str = "everyone";
/// The group of all users but [`GUEST`].
pub const USERS: &str = "users";
/// Who is not even a user.
pub const GUEST: &str = "guest";

impl Tree {
    /// A group by name.
    pub fn group(&self, name: &str) -> Option<ObjectId> {
        self.groups
            .range((name.to_owned(), ObjectId::default())..)
            .next()
            .filter(|(n, _)| n == name)
            .map(|(_, id)| *id)
    }

    /// Direct members of a group; nothing for other nodes.
    pub fn members(&self, group: ObjectId) -> impl Iterator<Item = &str> {
        let members = match self.node(group).map(|n| &n.body) {
            Some(Body::Group(members)) => Some(members),
            _ => None,
        };
        members.into_iter().flatten().map(String::as_str)
    }

    /// Groups that have this user or group as a direct member. The built-in groups, which have
    /// members without a list, are left to [`Tree::member_of_closure`] except for users.
    pub fn member_of(&self, name: &str) -> BTreeSet<String> {
        let mut groups: BTreeSet<String> = self
            .groups
            .iter()
            .filter(|(_, id)| self.members(*id).any(|m| m == name))
            .map(|(group, _)| group.clone())
            .collect();
        if self.group(name).is_none() {
            groups.insert(if name == GUEST { EVERYONE } else { USERS }.to_owned());
        }
        groups
    }

    /// All groups that a user (or group) is in, through other groups too. What a check of
    /// permissions wants to know; ask once per change of groups, not per check.
    pub fn member_of_closure(&self, name: &str) -> BTreeSet<String> {
        let mut closure = BTreeSet::new();
        let mut open: Vec<String> = self.member_of(name).into_iter().collect();
        while let Some(group) = open.pop() {
            if closure.insert(group.clone()) {
                open.extend(self.member_of(&group));
            }
        }
        closure.insert(EVERYONE.to_owned());
        closure
    }
}

impl Edit<'_> {
    /// `add_member`. That the member exists is for the caller to know: users are not known here.
    pub fn add_member(&mut self, group: ObjectId, member: &str) -> Result<(), Failure> {
        let name = self.group_name(group, "add_member")?;
        if self.members(group).any(|m| m == member) {
            let message = format!("\"{member}\" is already a member of group \"{name}\"");
            return Err(Failure::coded(ALREADY_PRESENT_IN_GROUP, message));
        }
        if member == name || self.member_of_closure(&name).contains(member) {
            return Err(Failure::new(format!(
                "Group \"{member}\" cannot become a member of \"{name}\": \"{name}\" is a member of it"
            )));
        }
        self.change_members(group, |members| {
            members.insert(member.to_owned());
        });
        Ok(())
    }

    /// `remove_member`.
    pub fn remove_member(&mut self, group: ObjectId, member: &str) -> Result<(), Failure> {
        let name = self.group_name(group, "remove_member")?;
        if !self.members(group).any(|m| m == member) {
            return Err(Failure::new(format!("\"{member}\" is not a member of group \"{name}\"")));
        }
        self.change_members(group, |members| {
            members.remove(member);
        });
        Ok(())
    }

    /// Takes a name out of all lists when nobody has it any more: who gets it later is somebody else.
    pub fn forget_subject(&mut self, name: &str) {
        let groups = self.groups.iter().map(|(_, id)| *id);
        let groups: Vec<ObjectId> = groups.filter(|id| self.members(*id).any(|m| m == name)).collect();
        for group in groups {
            self.change_members(group, |members| {
                members.remove(name);
            });
        }
        let named: Vec<ObjectId> =
            self.nodes.iter().filter(|(_, node)| node.acl.names(name)).map(|(id, _)| *id).collect();
        for id in named {
            self.change_acl(id, |acl| acl.forget(name));
        }
    }

    fn group_name(&self, group: ObjectId, command: &str) -> Result<String, Failure> {
        let node = self.expect_node(group)?;
        let name = String::from_utf8_lossy(&node.key).into_owned();
        match &node.body {
            Body::Group(_) if name == EVERYONE || name == USERS => {
                Err(Failure::new(format!("Members of group \"{name}\" cannot be changed")))
            }
            Body::Group(_) => Ok(name),
            _ => Err(Failure::coded(code::RESOLVE_ERROR, format!("No such group: {command}"))),
        }
    }
}
