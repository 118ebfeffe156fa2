//! Paths that begin with an id (`#1-2-3-4/...`). Such a path says nothing of a place, so there is no node on the way
//! whose list could refuse it alike whatever is there. Instead, what a user may do nothing with is to him what nobody
//! bears: this is looked at before anything else, and both get the same answer.

use super::Who;
use crate::Kernel;
use crate::command::Command;
use cypress::{Last, Permission};
use vocab::{Failure, ObjectId};
use yson::Value;
use yson::ypath::{Root, YPath};

impl Kernel {
    /// The answer to a command that names something by an id that nobody bears, as far as this user may know.
    pub(crate) fn answer_about_nobody(&self, who: &Who, command: &Command) -> Option<Result<Value, Failure>> {
        let failure = paths_of(command).find_map(|path| self.borne_by_nobody(who, path))?;
        Some(match command {
            Command::Exists { .. } => Ok(false.into()),
            Command::Remove { force: true, .. } => Ok(Value::Entity),
            _ => Err(failure),
        })
    }

    /// The error of a path that begins with such an id.
    pub(super) fn borne_by_nobody(&self, who: &Who, path: &YPath) -> Option<Failure> {
        let Root::Object(text) = &path.root else { return None };
        if who.is_superuser() {
            return None;
        }
        // What is no id at all has an error of its own.
        let id: ObjectId = text.parse().ok()?;
        let bearer = YPath { root: path.root.clone(), ..YPath::default() };
        // A link bears it itself.
        let is_known = self.find(&bearer, Last::Stay).is_ok_and(|found| {
            let may = |permission: &Permission| self.decision(who, *permission, &found.object).is_allowed();
            Permission::ALL.iter().any(may)
        });
        (!is_known).then(|| cypress::failures::no_object(id))
    }
}

/// Paths of a command.
fn paths_of(command: &Command) -> impl Iterator<Item = &YPath> {
    use Command::*;
    let command = if let Authorize(inner) = command { inner } else { command };
    let (few, many): ([Option<&YPath>; 2], &[YPath]) = match command {
        Get { path, .. }
        | List { path, .. }
        | Exists { path }
        | Set { path, .. }
        | MultisetAttributes { path, .. }
        | Remove { path, .. }
        | Lock { path, .. }
        | Unlock { path }
        | FileWritten { path, .. }
        | LocateFile { path, .. }
        | TableWritten { path, .. }
        | LocateTable { path, .. }
        | AlterTable { path, .. }
        | CheckPermission { path, .. } => ([Some(path), None], &[]),
        Create { path, .. } => ([path.as_ref(), None], &[]),
        CopyMove { source, destination, .. } => ([Some(source), Some(destination)], &[]),
        Link { target, link, .. } => ([Some(target), Some(link)], &[]),
        GetFileFromCache { cache_path, .. } => ([Some(cache_path), None], &[]),
        PutFileToCache { path, cache_path, .. } => ([Some(path), Some(cache_path)], &[]),
        GetTableColumnarStatistics { paths } => ([None, None], paths),
        Concatenate { sources, destination, .. } => ([Some(destination), None], sources),
        _ => ([None, None], &[]),
    };
    few.into_iter().flatten().chain(many)
}
