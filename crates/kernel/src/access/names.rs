//! Names of users, groups and accounts that are set: one that nobody has would be given away to whoever gets it later.

use crate::Kernel;
use crate::command::Command;
use crate::pools::canonical_name;
use vocab::Failure;
use yson::ypath::{Step, YPath};
use yson::{Map, Value};

const NO_SUCH_ACCOUNT: i64 = 905;
const NO_SUCH_SUBJECT: i64 = 907;

impl Kernel {
    /// Refuses names in attributes that nobody has.
    pub(crate) fn check_names(&self, command: &Command) -> Result<(), Failure> {
        match command {
            Command::Set { path, value, .. } => self.check_names_of_set(path, value),
            Command::MultisetAttributes { attributes, .. }
            | Command::Create { attributes, .. }
            | Command::Link { attributes, .. } => self.check_names_of_all(attributes),
            _ => Ok(()),
        }
    }

    fn check_names_of_set(&self, path: &YPath, value: &Value) -> Result<(), Failure> {
        let at = path.steps.iter().position(|step| matches!(step, Step::Attribute(_) | Step::AllAttributes));
        match at.map(|at| (&path.steps[at], &path.steps[at + 1..])) {
            None => self.check_names_of_nodes(value),
            Some((Step::AllAttributes, _)) => {
                value.as_map().map_or(Ok(()), |attributes| self.check_names_of_all(attributes))
            }
            Some((Step::Attribute(name), inside)) => self.check_names_in(name, inside, value),
            Some(_) => Ok(()),
        }
    }

    /// A value that becomes nodes, each with attributes of its own.
    fn check_names_of_nodes(&self, value: &Value) -> Result<(), Failure> {
        value.attributes().map_or(Ok(()), |attributes| self.check_names_of_all(attributes))?;
        children(value).try_for_each(|child| self.check_names_of_nodes(child))
    }

    fn check_names_of_all(&self, attributes: &Map) -> Result<(), Failure> {
        attributes.iter().try_for_each(|(name, value)| self.check_names_in(name, &[], value))
    }

    fn check_names_in(&self, attribute: &[u8], inside: &[Step], value: &Value) -> Result<(), Failure> {
        match &*canonical_name(attribute) {
            b"owner" => self.check_subject("owner", value),
            b"account" => match value.as_str() {
                Some(name) if self.tree.child(self.system_map(b"accounts"), name.as_bytes()).is_none() => {
                    let message = format!("Attribute \"account\": no such account \"{name}\"");
                    Err(Failure::coded(NO_SUCH_ACCOUNT, message).with("account", name))
                }
                _ => Ok(()),
            },
            b"acl" => {
                // `@acl/0/subjects` and what is in it are names, all else is a list, or an entry of one.
                let is_names = inside.iter().any(|step| step.key().is_some_and(|key| &*key == b"subjects"));
                self.check_subjects(value, is_names)
            }
            _ => Ok(()),
        }
    }

    fn check_subjects(&self, value: &Value, is_names: bool) -> Result<(), Failure> {
        if let Some(list) = value.as_list() {
            return list.iter().try_for_each(|item| self.check_subjects(item, is_names));
        }
        match value.get("subjects") {
            Some(subjects) => self.check_subjects(subjects, true),
            None if is_names => self.check_subject("acl", value),
            None => Ok(()),
        }
    }

    fn check_subject(&self, attribute: &str, value: &Value) -> Result<(), Failure> {
        match value.as_str() {
            Some(name) if !self.is_subject(name) => {
                let message = format!("Attribute \"{attribute}\": no such user or group \"{name}\"");
                Err(Failure::coded(NO_SUCH_SUBJECT, message).with("subject", name))
            }
            // What is no name is refused in other words.
            _ => Ok(()),
        }
    }
}

/// What is in a map or a list.
pub(super) fn children(value: &Value) -> impl Iterator<Item = &Value> {
    let in_map = value.as_map().into_iter().flat_map(Map::iter).map(|(_, child)| child);
    in_map.chain(value.as_list().into_iter().flatten())
}
