//! Who may do what: the one place that decides (http-api.md 8.4).
//!
//! [`Kernel::authorize`] looks at a command before it runs; what only the command itself finds out (the
//! pools of a spec, the files of its tasks) asks [`Kernel::demand_pool`] and [`Kernel::demand_file`], and
//! what a recursive answer leaves out is [`Kernel::closed_to`]. Superusers pass everything. `lists` is what
//! objects and their lists are, `tree` what changes of the tree need. With [`Config::access_control`](crate::Config) off nobody is asked.
//!
//! A refusal names what was asked for, not what is there: it is the same whether a path exists or not,
//! as long as the user may not read the deepest node on the way that does. Ids in paths are seen to before, in
//! `ids`.

use crate::Kernel;
use crate::account_transfer::account_path;
use crate::command::{Command, LockMode, OperationRef};
use crate::file_cache::place_in;
use crate::mounts::{NODES, OPERATIONS, POOL_TREES};
use crate::pools::{PoolObject, ROOT};
use cypress::{Last, NodeType, Permission, Subjects};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::{Failure, JobId, ObjectId, code};
use yson::ypath::YPath;

mod columns;
mod ids;
mod lists;
mod names;
mod tree;

pub(crate) use ids::paths_of;
use lists::Found;
pub(crate) use lists::Object;

/// A user with all groups that he is in.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    pub user: String,
    groups: Arc<BTreeSet<String>>,
}

impl Who {
    fn subjects(&self) -> Subjects<'_> {
        Subjects { user: &self.user, groups: &self.groups }
    }
    pub fn is_superuser(&self) -> bool {
        self.subjects().is_superuser()
    }
    /// Is this a name of the user, or of a group that he is in?
    pub fn is(&self, subject: &str) -> bool {
        subject == self.user || self.groups.contains(subject)
    }
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().map(String::as_str)
    }
}

/// Groups of users as of one revision of the tree: a check costs look-ups, not a walk over all groups.
#[derive(Default)]
pub(crate) struct Closures {
    revision: u64,
    groups: BTreeMap<String, Arc<BTreeSet<String>>>,
}

impl Kernel {
    /// The user with his groups, into the cache.
    pub(crate) fn known_who(&mut self, user: &str) -> Who {
        let revision = self.tree.trunk().revision();
        if self.closures.revision != revision {
            self.closures = Closures { revision, groups: BTreeMap::new() };
        }
        let who = self.who(user);
        if !self.closures.groups.contains_key(user) {
            self.closures.groups.insert(user.to_owned(), Arc::clone(&who.groups));
        }
        who
    }

    /// The user with his groups.
    pub(crate) fn who(&self, user: &str) -> Who {
        let known = self.closures.groups.get(user).filter(|_| self.closures.revision == self.tree.revision());
        let groups = known.map_or_else(|| Arc::new(self.tree.trunk().member_of_closure(user)), Arc::clone);
        Who { user: user.to_owned(), groups }
    }

    /// Refuses a command that this user may not run.
    pub(crate) fn authorize(&self, who: &Who, command: &Command) -> Result<(), Failure> {
        use Permission::{Administer, Manage, Read, Write};
        if who.is_superuser() {
            return Ok(());
        }
        let demand = |permission, object: &Object, shown: &str| self.demand(who, permission, object, shown);
        match command {
            Command::Get { path, .. } | Command::List { path, .. } => {
                demand(Read, &self.find_as(who, path, Last::Follow)?.object, &path.text())
            }
            Command::LocateFile { path, to_write } | Command::LocateTable { path, to_write } => {
                let needed = if *to_write { Write } else { Read };
                demand(needed, &self.find_as(who, path, Last::Follow)?.object, &path.text())
            }
            Command::Exists { path } => match self.find_as(who, path, Last::Follow) {
                Ok(found) => demand(Read, &found.object, &path.text()),
                // It does not exist, which is what the answer will be.
                Err(_) => Ok(()),
            },
            Command::Set { path, value, force, .. } => {
                let found = self.find_as(who, path, Last::Follow)?;
                self.authorize_set(who, &found, value, *force, &path.text())
            }
            Command::MultisetAttributes { path, attributes } => {
                let found = self.find_as(who, path, Last::Follow)?;
                // Even nothing is not set on what one may not know of.
                if attributes.iter().next().is_none() {
                    demand(Write, &found.object, &path.text())?;
                }
                for (name, value) in attributes.iter() {
                    self.authorize_attribute(who, &found.object, name, Some(value), &path.text())?;
                }
                Ok(())
            }
            Command::Create {
                object_type, path, attributes, ignore_existing, force, lock_existing, ..
            } => match path {
                // Pools are where their attributes say: their path, if there is one, means nothing.
                Some(path) if !object_type.starts_with("scheduler_pool") => {
                    if let Ok(node_type) = NodeType::parse(object_type) {
                        self.authorize_subject(who, node_type, path)?;
                    }
                    let found = self.find_as(who, path, Last::Stay)?;
                    // What is there already keeps its attributes.
                    if !(found.rest.is_empty() && *ignore_existing) {
                        self.authorize_payer(who, &found, attributes, &path.text())?;
                        self.authorize_expiring(who, &found, attributes, &path.text())?;
                    }
                    if found.rest.is_empty() && !force {
                        let needed = if *ignore_existing && !lock_existing { Read } else { Write };
                        demand(needed, &found.object, &path.text())?;
                        if !ignore_existing {
                            return Ok(());
                        }
                        // What is there may be a link, and the answer is then about its target.
                        let behind = self.find_as(who, path, Last::Follow).map(|target| target.object);
                        return behind.map_or(Ok(()), |target| demand(needed, &target, &path.text()));
                    }
                    self.authorize_place(who, &found, &path.text())
                }
                _ => self.authorize_object(who, object_type, attributes),
            },
            Command::Remove { path, .. } => match self.find_as(who, path, Last::Stay) {
                Ok(found) => self.authorize_remove(who, &found, &path.text()),
                Err(failure) => Err(failure),
            },
            Command::CopyMove { source, destination, remove_source, options } => {
                let from = self.find_as(who, source, Last::Follow)?;
                // Before the lists of all that is below: what is too large is not copied whatever they say.
                if let Object::Node(node) = from.object
                    && self.decision(who, Read, &from.object).is_allowed()
                {
                    self.tree.check_copy_size(node)?;
                }
                if *remove_source {
                    self.authorize_remove(who, &from, &source.text())?;
                }
                // What is at the destination has new lists, so the content must be no secret.
                if let Object::Node(node) = from.object {
                    demand(Read, &from.object, &source.text())?;
                    self.demand_below(who, Read, node)?;
                    self.demand_all_columns_below(who, node, &source.text())?;
                    if options.preserve_account {
                        self.demand_accounts_below(who, node)?;
                    }
                }
                let to = self.find_as(who, destination, Last::Stay)?;
                let is_made = !(to.rest.is_empty() && options.ignore_existing);
                if let Object::Node(node) = from.object
                    && options.preserve_owner
                    && self.has_other_owners(who, node)
                {
                    demand(Administer, &to.object, &destination.text())?;
                }
                if is_made && (options.preserve_expiration_time || options.preserve_expiration_timeout) {
                    demand(Permission::Remove, &to.object, &destination.text())?;
                }
                self.authorize_place(who, &to, &destination.text())
            }
            Command::Link { target, link, force, ignore_existing, attributes, .. } => {
                // Without force the answer tells whether the target exists.
                if let (false, Ok(found)) = (force, self.find_as(who, target, Last::Follow)) {
                    demand(Read, &found.object, &target.text())?;
                }
                let place = self.find_as(who, link, Last::Stay)?;
                if !(place.rest.is_empty() && *ignore_existing) {
                    self.authorize_payer(who, &place, attributes, &link.text())?;
                    self.authorize_expiring(who, &place, attributes, &link.text())?;
                }
                self.authorize_place(who, &place, &link.text())
            }
            Command::GetFileFromCache { md5, cache_path } => {
                let place = place_in(cache_path, md5);
                demand(Read, &self.find_as(who, &place, Last::Follow)?.object, &place.text())
            }
            Command::PutFileToCache { path, md5, cache_path, .. } => {
                demand(Read, &self.find_as(who, path, Last::Follow)?.object, &path.text())?;
                demand(Write, &self.find_as(who, cache_path, Last::Follow)?.object, &cache_path.text())?;
                // A shelf of the cache may have a list of its own, or be a link to somewhere else.
                let place = place_in(cache_path, md5);
                let found = self.find_as(who, &place, Last::Stay)?;
                match &found.object {
                    Object::Node(node) if found.rest.is_empty() && self.is_file_with(*node, md5) => {
                        demand(Write, &found.object, &place.text())
                    }
                    _ => self.authorize_place(who, &found, &place.text()),
                }
            }
            // Who only wants to see something as it is now needs not be able to change it.
            Command::Lock { path, options } => {
                let needed = if options.mode == LockMode::Snapshot { Read } else { Write };
                demand(needed, &self.find_as(who, path, Last::Follow)?.object, &path.text())
            }
            Command::GetTableColumnarStatistics { paths } => {
                for path in paths {
                    let object = self.find_as(who, path, Last::Follow)?.object;
                    demand(Read, &object, &path.text())?;
                    self.demand_columns(who, &object, path)?;
                }
                Ok(())
            }
            Command::Concatenate { sources, destination, .. } => {
                for path in sources {
                    let object = self.find_as(who, path, Last::Follow)?.object;
                    demand(Read, &object, &path.text())?;
                    self.demand_columns(who, &object, path)?;
                }
                demand(Write, &self.find_as(who, destination, Last::Follow)?.object, &destination.text())
            }
            Command::FileWritten { path, .. }
            | Command::TableWritten { path, .. }
            | Command::AlterTable { path, .. } => {
                demand(Write, &self.find_as(who, path, Last::Follow)?.object, &path.text())
            }
            Command::AbortOperation { operation, .. }
            | Command::SuspendOperation { operation, .. }
            | Command::ResumeOperation { operation }
            | Command::CompleteOperation { operation }
            | Command::UpdateOperationParameters { operation, .. }
            | Command::PatchOperationSpec { operation, .. } => {
                self.demand_of_operation(who, Manage, operation)
            }
            Command::AbortJob { job_id, .. } | Command::AbandonJob { job_id, .. } => {
                self.demand_of_job(who, Manage, *job_id)
            }
            // A shell with owners is for them, and for nobody else: it looks itself.
            Command::OpenJobShell { job_id, shell_name, .. }
            | Command::LocateJobShell { job_id, shell_name, .. }
                if !self.shell_has_owners(*job_id, shell_name.as_deref()) =>
            {
                self.demand_of_job(who, Manage, *job_id)
            }
            Command::OpenJobShell { .. } | Command::LocateJobShell { .. } => Ok(()),
            Command::GetJobStderr { operation, job_id, .. }
            | Command::GetJobInput { operation, job_id }
            | Command::GetJobFailContext { operation, job_id } => {
                let of_job = self.jobs.get(*job_id).map(|job| OperationRef::Id(job.operation));
                // The operation that was named first: a job of another one is not found in it.
                match operation.clone().or(of_job) {
                    Some(operation) => self.demand_of_operation(who, Read, &operation),
                    None => Ok(()),
                }
            }
            Command::TransferPoolResources { source_pool, destination_pool, pool_tree, .. } => {
                for pool in [source_pool, destination_pool] {
                    let object = self.pool_or_tree(pool_tree, pool);
                    demand(Write, &object, &format!("pool \"{pool}\""))?;
                }
                Ok(())
            }
            Command::TransferAccountResources { source_account, destination_account, .. } => {
                for account in [source_account, destination_account] {
                    let found = self.find_as(who, &account_path(account), Last::Stay)?;
                    demand(Write, &found.object, &format!("account \"{account}\""))?;
                }
                Ok(())
            }
            // What pools, nodes and operations are doing together; single pools are looked at one by one.
            Command::GetMetrics => demand(Read, &Object::Node(self.scheduler_node), "the metrics"),
            // The log shows what everybody did.
            Command::GetEvents { .. } => demand(Manage, &self.mount_object(OPERATIONS), "the event log"),
            Command::AddMember { group, .. } | Command::RemoveMember { group, .. } => {
                // Whoever may write groups must not make himself one who may do everything.
                self.refuse_making_superusers(who, group)?;
                match self.tree.group(group) {
                    Some(node) => demand(Write, &Object::Node(node), &format!("group \"{group}\"")),
                    None => Ok(()),
                }
            }
            Command::IssueToken { user, .. }
            | Command::RotateToken { user, .. }
            | Command::RevokeToken { user, .. }
            | Command::ListUserTokens { user, .. }
            | Command::SetUserPassword { user, .. } => {
                if *user == who.user {
                    return Ok(());
                }
                // A token of a superuser makes one.
                let node = self.user_node(user).filter(|_| !self.who(user).is_superuser());
                let object = Object::Node(node.unwrap_or_default());
                demand(Administer, &object, &format!("user \"{user}\""))
            }
            Command::ExtendLeases { .. } => {
                demand(Administer, &Object::Node(self.tree.root()), "the leases of all jobs")
            }
            Command::RemoveNode { address, .. } => {
                demand(Administer, &self.mount_object(NODES), &format!("node \"{address}\""))
            }
            Command::CollectGarbage => {
                demand(Administer, &Object::Node(self.tree.root()), "the garbage collection")
            }
            Command::CreateJoinToken { .. }
            | Command::RevokeJoinToken { .. }
            | Command::ApproveNode { .. }
            | Command::RevokeNode { .. }
            | Command::ListNodeIdentities => {
                demand(Administer, &Object::Node(self.tree.root()), "the identities of nodes")
            }
            Command::Authorize(command) => self.authorize(who, command),
            // Only the server itself asks these, as `root`.
            Command::LocateArtifact { .. }
            | Command::LocateJobInput { .. }
            | Command::LocateUpload { .. }
            | Command::LocateInput { .. }
            | Command::JoinNode(_)
            | Command::RenewNode { .. }
            | Command::IdentifyNode { .. }
            | Command::Identify { .. }
            | Command::PasswordHash { .. } => Err(denied(who, Administer, "the server", None)),
            // Transactions are their owners'; the kernel looks at that when it enters one.
            Command::In { .. }
            | Command::StartTransaction(_)
            | Command::PingTransaction { .. }
            | Command::CommitTransaction { .. }
            | Command::AbortTransaction { .. } => Ok(()),
            Command::Unlock { path } => {
                demand(Read, &self.find_as(who, path, Last::Follow)?.object, &path.text())
            }
            // Pools and files of a specification are asked for when it has been read.
            Command::StartOperation { .. }
            | Command::StartReadOperation(_)
            | Command::GetOperation { .. }
            | Command::ListOperations(_)
            | Command::ListOperationEvents { .. }
            | Command::ListJobs(_)
            | Command::GetJob { .. }
            | Command::ExplainPool { .. }
            | Command::ExplainOperation { .. }
            | Command::ExplainJob { .. }
            | Command::GetPreemptionLog(_)
            | Command::GetPoolHistory { .. }
            | Command::GetHistory { .. }
            | Command::DescribeUser { .. }
            | Command::CheckPermission { .. }
            | Command::CheckPermissionByAcl { .. }
            | Command::CheckOperationPermission { .. } => Ok(()),
        }
    }

    /// Nodes of which a `get` (with all that is below), or a `list` (with the asked attributes of the
    /// children), must not tell this user more than that they are there.
    pub(crate) fn closed_to(
        &self,
        who: Option<&Who>,
        path: &YPath,
        deep: bool,
    ) -> Result<BTreeSet<ObjectId>, Failure> {
        let Some(who) = who.filter(|who| !who.is_superuser()) else { return Ok(BTreeSet::new()) };
        match self.find(path, Last::Follow) {
            Ok(Found { object, rest })
                if rest.is_empty()
                    && (matches!(object, Object::Tree(_) | Object::Pool(..))
                        || object == self.mount_object(POOL_TREES)) =>
            {
                Ok(self.unreadable_pools(who).map(|(_, pool)| pool.id).collect())
            }
            Ok(Found { object: Object::Node(node), rest }) if rest.is_empty() => match deep {
                true => self.closed_below(who, node),
                false => self.closed_children(who, node),
            },
            _ => Ok(BTreeSet::new()),
        }
    }

    /// Pools that this user must not be told of, with tree and name.
    fn unreadable_pools(&self, who: &Who) -> impl Iterator<Item = (&(String, String), &PoolObject)> {
        self.pools.pools.iter().filter(|((tree, name), _)| {
            let object = Object::Pool(tree.clone(), name.clone());
            !self.decision(who, Permission::Read, &object).is_allowed()
        })
    }

    /// Tree and name of pools that the asking user must not be told of. The root pool stands for a tree that the user may
    /// not read. `None`: all may be told.
    pub(crate) fn hidden_pools(&self, who: Option<&Who>) -> Option<BTreeSet<(String, String)>> {
        let who = who.filter(|who| !who.is_superuser())?;
        let pools = self.unreadable_pools(who).map(|(place, _)| place.clone());
        let trees = self.scheduler.tree_names().filter(|tree| {
            !self.decision(who, Permission::Read, &Object::Tree(tree.to_string())).is_allowed()
        });
        let roots: Vec<_> = trees.map(|tree| (tree.to_string(), ROOT.to_owned())).collect();
        Some(pools.chain(roots).collect())
    }

    /// Permission `use` of the pools that an operation of this user would be put into; of ephemeral
    /// ones, of the nearest pool above that somebody has made (scheduling.md 2.3).
    pub(crate) fn demand_pool(&self, user: &str, tree: &str, pool: Option<&str>) -> Result<(), Failure> {
        if !self.config.access_control {
            return Ok(());
        }
        // A place that does not exist is refused by the scheduler, with its own words.
        let Ok(pool) = self.scheduler.pool_for_permission(tree, pool, user) else { return Ok(()) };
        let object = self.pool_or_tree(tree, &pool);
        self.demand(&self.who(user), Permission::Use, &object, &format!("pool \"{pool}\""))
    }

    /// Permission to read a file that a job is to have.
    pub(crate) fn demand_file(&self, user: &str, path: &YPath) -> Result<(), Failure> {
        self.demand_path(user, Permission::Read, path)
    }

    /// Refuses what this user may not do with what is there.
    pub(crate) fn demand_path(
        &self,
        user: &str,
        permission: Permission,
        path: &YPath,
    ) -> Result<(), Failure> {
        if !self.config.access_control {
            return Ok(());
        }
        let who = self.who(user);
        if let Some(failure) = self.borne_by_nobody(&who, path, Last::Follow) {
            return Err(failure);
        }
        let found = self.find_as(&who, path, Last::Follow)?;
        self.demand(&who, permission, &found.object, &path.text())?;
        match permission {
            Permission::Read => self.demand_columns(&who, &found.object, path),
            _ => Ok(()),
        }
    }

    /// Whoever may write a map may put things into it and take them out, and so may whom this alone is allowed.
    fn demand_children(&self, who: &Who, map: &Object, shown: &str) -> Result<(), Failure> {
        match self.decision(who, Permission::ModifyChildren, map).is_allowed() {
            true => Ok(()),
            false => self.demand(who, Permission::Write, map, shown),
        }
    }

    fn demand(&self, who: &Who, permission: Permission, object: &Object, shown: &str) -> Result<(), Failure> {
        let decision = self.decision(who, permission, object);
        if decision.is_allowed() {
            return Ok(());
        }
        // Whose entry it was tells that there is a list, and so something that has it.
        let may_look = self.decision(who, Permission::Read, object).is_allowed();
        Err(denied(who, permission, shown, decision.subject.as_deref().filter(|_| may_look)))
    }

    fn demand_of_job(&self, who: &Who, permission: Permission, job: JobId) -> Result<(), Failure> {
        match self.jobs.get(job) {
            Some(job) => self.demand_of_operation(who, permission, &OperationRef::Id(job.operation)),
            None => Ok(()),
        }
    }

    fn demand_of_operation(
        &self,
        who: &Who,
        permission: Permission,
        operation: &OperationRef,
    ) -> Result<(), Failure> {
        // One that is not there is reported as such: what operations there are is no secret.
        let Ok(id) = self.find_operation(operation) else { return Ok(()) };
        self.demand(who, permission, &Object::Operation(id), &format!("operation {id}"))
    }
}

/// The refusal (code 901).
pub(crate) fn denied(who: &Who, permission: Permission, shown: &str, by: Option<&str>) -> Failure {
    let user = &who.user;
    let why = match by {
        Some(subject) => format!("it is denied for \"{subject}\""),
        None => "access control lists do not allow it".to_owned(),
    };
    let message =
        format!("Access denied for user \"{user}\": \"{permission}\" permission for {shown}: {why}");
    Failure::coded(code::ACCESS_DENIED, message)
        .with("user", user.as_str())
        .with("permission", permission.name())
        .with("object_name", shown)
        .with_some_subject(by)
}

/// The subject of the entry that denied.
trait WithSubject {
    fn with_some_subject(self, subject: Option<&str>) -> Self;
}
impl WithSubject for Failure {
    fn with_some_subject(self, subject: Option<&str>) -> Failure {
        match subject {
            Some(subject) => self.with("denied_for", subject),
            None => self,
        }
    }
}
