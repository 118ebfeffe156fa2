//! Ids in paths: at their beginning (`#1-2-3-4/...`), and behind links on their way. An id says nothing of a place, so
//! there is no node above whose list could refuse it alike whatever is there. Instead, what a user may do nothing with
//! is to him what nobody bears: this is looked at before anything else, and both get the same answer.

use super::lists::Found;
use super::{Object, Who};
use crate::Kernel;
use crate::command::Command;
use crate::file_cache::place_in;
use cypress::{Last, Permission};
use std::borrow::Cow;
use vocab::{Failure, ObjectId};
use yson::Value;
use yson::ypath::{Root, YPath};

impl Kernel {
    /// The answer to a command that names something by an id that nobody bears, as far as this user may know.
    pub(crate) fn answer_about_nobody(&self, who: &Who, command: &Command) -> Option<Result<Value, Failure>> {
        if who.is_superuser() {
            return None;
        }
        let mut paths = paths_of(command).into_iter();
        let failure = paths.find_map(|(path, last)| self.borne_by_nobody(who, &path, last))?;
        Some(match command {
            Command::Exists { .. } => Ok(false.into()),
            Command::Remove { force: true, .. } => Ok(Value::Entity),
            _ => Err(failure),
        })
    }

    /// Where a path leads, as far as this user may know: not behind a link that he may not read to what is not there.
    /// That it leads nowhere would tell that there is a link.
    pub(super) fn find_as(&self, who: &Who, path: &YPath, last: Last) -> Result<Found, Failure> {
        self.find(path, last).or_else(|failure| {
            let mut links = self.tree.ids_on_the_way(path, last).into_iter().filter_map(|(_, link)| link);
            let closed = links.find(|link| !self.may_read(who, *link));
            closed.map(|link| Found { object: Object::Node(link), rest: Vec::new() }).ok_or(failure)
        })
    }

    fn may_read(&self, who: &Who, node: ObjectId) -> bool {
        self.decision(who, Permission::Read, &Object::Node(node)).is_allowed()
    }

    /// The error of a path with such an id.
    pub(super) fn borne_by_nobody(&self, who: &Who, path: &YPath, last: Last) -> Option<Failure> {
        if who.is_superuser() {
            return None;
        }
        let ids = self.tree.ids_on_the_way(path, last);
        // Who has no rights there may have some further down.
        if ids.is_empty() || self.find(path, last).is_ok_and(|found| self.is_known_to(who, &found.object)) {
            return None;
        }
        let is_unknown = |id: &ObjectId| {
            let bearer = YPath { root: Root::Object(id.to_string()), ..YPath::default() };
            // A link bears it itself.
            !self.find(&bearer, Last::Stay).is_ok_and(|found| self.is_known_to(who, &found.object))
        };
        // That a link is there, and where it leads, is told to who may read it.
        let is_told = |link: &Option<ObjectId>| link.is_none_or(|link| self.may_read(who, link));
        let mut told = ids.into_iter().take_while(|(_, link)| is_told(link)).map(|(id, _)| id);
        told.find(is_unknown).map(cypress::failures::no_object)
    }

    /// May this user do anything with it? Nothing is done with nodes that are being removed in slices. To use a pool that
    /// he may not read he needs its name, and not to see it.
    fn is_known_to(&self, who: &Who, object: &Object) -> bool {
        if matches!(object, Object::Node(node) if self.tree.is_discarded(*node)) {
            return false;
        }
        let tells = |permission: &&Permission| {
            **permission != Permission::Use || !matches!(object, Object::Pool(..) | Object::Tree(_))
        };
        let mut permissions = Permission::ALL.iter().filter(tells);
        permissions.any(|permission| self.decision(who, *permission, object).is_allowed())
    }
}

/// Paths of a command, and whether what they lead to may be a link. Operations, jobs, pools and users are named by
/// their names.
pub(crate) fn paths_of(command: &Command) -> Vec<(Cow<'_, YPath>, Last)> {
    use Command::*;
    use Last::{Follow, Stay};
    let own = |path, last| (Cow::Borrowed(path), last);
    match command {
        Authorize(command) => paths_of(command),
        Get { path, .. }
        | List { path, .. }
        | Exists { path }
        | Set { path, .. }
        | MultisetAttributes { path, .. }
        | Lock { path, .. }
        | Unlock { path }
        | FileWritten { path, .. }
        | LocateFile { path, .. }
        | TableWritten { path, .. }
        | LocateTable { path, .. }
        | AlterTable { path, .. }
        | CheckPermission { path, .. } => vec![own(path, Follow)],
        Remove { path, .. } => vec![own(path, Stay)],
        // What is there already is looked at, if that is fine.
        Create { path, ignore_existing, .. } => {
            path.iter().map(|path| own(path, if *ignore_existing { Follow } else { Stay })).collect()
        }
        CopyMove { source, destination, .. } => vec![own(source, Follow), own(destination, Stay)],
        // With force its target needs not be there.
        Link { link, force: true, .. } => vec![own(link, Stay)],
        Link { target, link, .. } => vec![own(target, Follow), own(link, Stay)],
        GetFileFromCache { md5, cache_path } => {
            vec![own(cache_path, Follow), (Cow::Owned(place_in(cache_path, md5)), Follow)]
        }
        PutFileToCache { path, md5, cache_path, .. } => {
            let place = (Cow::Owned(place_in(cache_path, md5)), Stay);
            vec![own(path, Follow), own(cache_path, Follow), place]
        }
        GetTableColumnarStatistics { paths } => paths.iter().map(|path| own(path, Follow)).collect(),
        Concatenate { sources, destination, .. } => {
            std::iter::once(destination).chain(sources).map(|path| own(path, Follow)).collect()
        }
        _ => Vec::new(),
    }
}
