//! Who may do what: the one place that decides (http-api.md 8.4).
//!
//! [`Kernel::authorize`] looks at a command before it runs; what only the command itself finds out (the
//! pools of a spec, the files of its tasks) asks [`Kernel::demand_pool`] and [`Kernel::demand_file`]. Superusers pass
//! everything. With [`Config::access_control`](crate::Config) off nobody is asked.
//!
//! A refusal names what was asked for, not what is there: it is the same whether a path exists or not,
//! as long as the user may not read the deepest node on the way that does.

use crate::Kernel;
use crate::command::{Command, OperationRef};
use crate::mounts::{OPERATIONS, POOL_TREES};
use crate::pools::{ROOT, canonical_name};
use cypress::acl::decide;
use cypress::{Ace, Acl, AclLink, Action, Decision, Last, NodeType, Permission, Resolved, Subjects};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::{Failure, JobId, ObjectId, OperationId, code};
use yson::ypath::{Step, YPath};
use yson::{Map, Value};

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
}

/// Groups of users as of one revision of the tree: a check costs look-ups, not a walk over all groups.
#[derive(Default)]
pub(crate) struct Closures {
    revision: u64,
    groups: BTreeMap<String, Arc<BTreeSet<String>>>,
}

/// Something with an access control list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Object {
    Node(ObjectId),
    Tree(String),
    /// Tree and name.
    Pool(String, String),
    Operation(OperationId),
}

/// Where a path leads: the deepest thing that exists, and what is left.
struct Found {
    object: Object,
    rest: Vec<Step>,
}

/// Options of a pool that permission `write` is enough for (http-api.md 8.8); the others need
/// `administer`.
const USER_MANAGED: [&str; 12] = [
    "weight",
    "max_operation_count",
    "max_running_operation_count",
    "strong_guarantee_resources",
    "forbid_immediate_operations",
    "mode",
    "fifo_sort_parameters",
    "resource_limits",
    "create_ephemeral_subpools",
    "ephemeral_subpool_config",
    "abc",
    "name",
];

impl Kernel {
    /// The user with his groups, from the cache.
    pub(crate) fn known_who(&mut self, user: &str) -> Who {
        let revision = self.tree.revision();
        if self.closures.revision != revision {
            self.closures = Closures { revision, groups: BTreeMap::new() };
        }
        if let Some(groups) = self.closures.groups.get(user) {
            return Who { user: user.to_owned(), groups: Arc::clone(groups) };
        }
        let who = self.who(user);
        self.closures.groups.insert(user.to_owned(), Arc::clone(&who.groups));
        who
    }

    /// The user with his groups.
    pub(crate) fn who(&self, user: &str) -> Who {
        Who { user: user.to_owned(), groups: Arc::new(self.tree.member_of_closure(user)) }
    }

    /// Refuses a command that this user may not run.
    pub(crate) fn authorize(&self, who: &Who, command: &Command) -> Result<(), Failure> {
        use Permission::{Administer, Manage, Read, Write};
        if who.is_superuser() {
            return Ok(());
        }
        let demand = |permission, object: &Object, shown: &str| self.demand(who, permission, object, shown);
        match command {
            Command::Get { path, .. } | Command::List { path, .. } | Command::LocateFile { path } => {
                let found = self.find(path, Last::Follow)?;
                demand(Read, &found.object, &path.text())?;
                match (command, &found) {
                    (Command::Get { .. }, Found { object: Object::Node(node), rest }) if rest.is_empty() => {
                        self.demand_below(who, Read, *node)
                    }
                    _ => Ok(()),
                }
            }
            Command::Exists { path } => match self.find(path, Last::Follow) {
                Ok(found) => demand(Read, &found.object, &path.text()),
                // It does not exist, which is what the answer will be.
                Err(_) => Ok(()),
            },
            Command::Set { path, value, .. } => {
                let found = self.find(path, Last::Follow)?;
                self.authorize_set(who, &found, value, &path.text())
            }
            Command::MultisetAttributes { path, attributes } => {
                let found = self.find(path, Last::Follow)?;
                for (name, value) in attributes.iter() {
                    let rest = vec![Step::Attribute(name.to_vec())];
                    let one = Found { object: found.object.clone(), rest };
                    self.authorize_set(who, &one, value, &path.text())?;
                }
                Ok(())
            }
            Command::Create { object_type, path, attributes, ignore_existing, force, .. } => match path {
                None => self.authorize_object(who, object_type, attributes),
                Some(path) => {
                    // Groups and users count wherever they are.
                    if NodeType::parse(object_type).is_ok_and(|t| !t.is_plain()) {
                        demand(Administer, &Object::Node(self.tree.root()), &path.text())?;
                    }
                    let found = self.find(path, Last::Stay)?;
                    if found.rest.is_empty() && !force {
                        let needed = if *ignore_existing { Read } else { Write };
                        return demand(needed, &found.object, &path.text());
                    }
                    self.authorize_place(who, &found, &path.text())
                }
            },
            Command::Remove { path, .. } => match self.find(path, Last::Stay) {
                Ok(found) => self.authorize_remove(who, &found, &path.text()),
                Err(failure) => Err(failure),
            },
            Command::CopyMove { source, destination, remove_source, .. } => {
                let from = self.find(source, Last::Follow)?;
                if *remove_source {
                    self.authorize_remove(who, &from, &source.text())?;
                } else {
                    demand(Read, &from.object, &source.text())?;
                    if let Object::Node(node) = from.object {
                        self.demand_below(who, Read, node)?;
                    }
                }
                self.authorize_place(who, &self.find(destination, Last::Stay)?, &destination.text())
            }
            Command::Link { link, .. } => {
                self.authorize_place(who, &self.find(link, Last::Stay)?, &link.text())
            }
            Command::FileWritten { path, .. } => {
                demand(Write, &self.find(path, Last::Follow)?.object, &path.text())
            }
            Command::AbortOperation { operation, .. }
            | Command::SuspendOperation { operation, .. }
            | Command::ResumeOperation { operation }
            | Command::CompleteOperation { operation }
            | Command::UpdateOperationParameters { operation, .. } => {
                self.demand_of_operation(who, Manage, operation)
            }
            Command::AbortJob { job_id, .. } | Command::AbandonJob { job_id } => {
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
            Command::GetJobStderr { operation, job_id, .. } => {
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
            // The log shows what everybody did.
            Command::GetEvents { .. } => demand(Manage, &self.mount_object(OPERATIONS), "the event log"),
            Command::AddMember { group, .. } | Command::RemoveMember { group, .. } => {
                // Whoever may write groups must not make himself one who may do everything.
                if group == "superusers" {
                    return Err(denied(who, Administer, "group \"superusers\"", None));
                }
                match self.tree.group(group) {
                    Some(node) => demand(Write, &Object::Node(node), &format!("group \"{group}\"")),
                    None => Ok(()),
                }
            }
            Command::IssueToken { user, .. }
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
            // Only the server itself asks these, as `root`.
            Command::LocateArtifact { .. } | Command::Identify { .. } | Command::PasswordHash { .. } => {
                Err(denied(who, Administer, "the server", None))
            }
            // Pools and files of a specification are asked for when it has been read.
            Command::StartOperation { .. }
            | Command::GetOperation { .. }
            | Command::ListOperations(_)
            | Command::ListJobs(_)
            | Command::GetJob { .. }
            | Command::ExplainPool { .. }
            | Command::ExplainOperation { .. }
            | Command::ExplainJob { .. }
            | Command::GetPreemptionLog(_)
            | Command::GetPoolHistory { .. }
            | Command::CheckPermission { .. }
            | Command::CheckPermissionByAcl { .. }
            | Command::CheckOperationPermission { .. } => Ok(()),
        }
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
        if !self.config.access_control {
            return Ok(());
        }
        let found = self.find(path, Last::Follow)?;
        self.demand(&self.who(user), Permission::Read, &found.object, &path.text())
    }

    fn demand(&self, who: &Who, permission: Permission, object: &Object, shown: &str) -> Result<(), Failure> {
        let decision = self.decision(who, permission, object);
        match decision.is_allowed() {
            true => Ok(()),
            false => Err(denied(who, permission, shown, decision.subject.as_deref())),
        }
    }

    /// What the lists say about this user, permission and object.
    pub(crate) fn decision(&self, who: &Who, permission: Permission, object: &Object) -> Decision {
        if let Object::Node(node) = object
            && self.is_secret(*node)
            && !who.is_superuser()
        {
            return Decision { action: Action::Deny, object: None, subject: None };
        }
        let chain = self.acl_chain(object);
        decide(who.subjects(), permission, chain.iter().map(|(object, acl)| AclLink { object: *object, acl }))
    }

    /// Lists that count for an object, nearest first.
    fn acl_chain(&self, object: &Object) -> Vec<(ObjectId, Acl)> {
        let of_node = |node: ObjectId| self.tree.acl_chain(node).map(|link| (link.object, link.acl.clone()));
        match object {
            Object::Node(node) => of_node(*node).collect(),
            Object::Tree(tree) => self.chain_above_pools(tree).collect(),
            Object::Pool(tree, pool) => {
                let mut chain = Vec::new();
                let mut name = pool.as_str();
                while let Some(pool) = self.pools.pool(tree, name) {
                    chain.push((pool.id, read_acl(&pool.acl)));
                    if !pool.inherit_acl {
                        return chain;
                    }
                    name = &pool.parent;
                }
                chain.extend(self.chain_above_pools(tree));
                chain
            }
            Object::Operation(id) => {
                let (acl, owners) = match (self.operations.get(id), self.finished.get(*id)) {
                    (Some(o), _) => (o.acl.clone(), o.owners.clone()),
                    (None, Some(summary)) => (summary.acl.clone(), summary.owners.clone()),
                    (None, None) => return Vec::new(),
                };
                let mut acl = read_acl(&acl);
                let owners = owners.iter().filter_map(Value::as_str);
                acl.0.extend(owners.map(|o| Ace::allow(o, &[Permission::Read, Permission::Manage])));
                // Only the list of the map itself: what everybody may read of the tree is not meant.
                let map = self.mount_node(OPERATIONS);
                let of_all = self.tree.node(map).map(|node| (map, node.acl.clone()));
                std::iter::once((ObjectId(id.0), acl)).chain(of_all).collect()
            }
        }
    }

    fn chain_above_pools(&self, tree: &str) -> impl Iterator<Item = (ObjectId, Acl)> {
        let tree = self.pools.trees.get(tree).map(|tree| (tree.id, Acl::default()));
        let above = self.tree.acl_chain(self.mount_node(POOL_TREES));
        tree.into_iter().chain(above.map(|link| (link.object, link.acl.clone())))
    }

    /// The object that a path means, for `check_permission`.
    pub(crate) fn object_at(&self, path: &YPath) -> Result<Object, Failure> {
        let found = self.find(path, Last::Follow)?;
        match found.rest.first() {
            None | Some(Step::Attribute(_) | Step::AllAttributes) => Ok(found.object),
            Some(_) => match self.tree.resolve(path, Last::Follow)? {
                Resolved::Local(place) => Err(self.tree.missing(&place)),
                _ => Ok(found.object),
            },
        }
    }

    fn find(&self, path: &YPath, last: Last) -> Result<Found, Failure> {
        let mounted = match self.tree.resolve(path, last)? {
            Resolved::Local(place) => {
                return Ok(Found { object: Object::Node(place.node), rest: place.rest });
            }
            Resolved::Mount(mounted) => mounted,
            Resolved::Foreign(foreign) => self.foreign_mount(&foreign)?,
        };
        if mounted.mount != POOL_TREES {
            return Ok(Found { object: Object::Node(mounted.node), rest: mounted.rest });
        }
        let ((tree, pool), rest) = self.pool_place(&mounted.rest)?;
        let object = match (tree, pool) {
            (Some(tree), Some(pool)) => Object::Pool(tree, pool),
            (Some(tree), None) => Object::Tree(tree),
            (None, _) => Object::Node(mounted.node),
        };
        Ok(Found { object, rest })
    }

    fn pool_or_tree(&self, tree: &str, pool: &str) -> Object {
        match pool {
            ROOT => Object::Tree(tree.to_owned()),
            pool => Object::Pool(tree.to_owned(), pool.to_owned()),
        }
    }

    fn mount_object(&self, mount: cypress::MountId) -> Object {
        Object::Node(self.mount_node(mount))
    }

    /// What an object is in.
    fn parent_of(&self, object: &Object) -> Object {
        match object {
            Object::Node(node) => Object::Node(self.tree.node(*node).map(|n| n.parent).unwrap_or_default()),
            Object::Tree(_) => self.mount_object(POOL_TREES),
            Object::Pool(tree, pool) => match self.pools.pool(tree, pool) {
                Some(pool) => self.pool_or_tree(tree, &pool.parent),
                None => Object::Tree(tree.clone()),
            },
            Object::Operation(_) => self.mount_object(OPERATIONS),
        }
    }

    /// May a node be put here? Over one that is there only if that may be removed.
    fn authorize_place(&self, who: &Who, found: &Found, shown: &str) -> Result<(), Failure> {
        if found.rest.is_empty() {
            return self.authorize_remove(who, found, shown);
        }
        self.demand(who, Permission::Write, &found.object, shown)
    }

    fn authorize_set(&self, who: &Who, found: &Found, value: &Value, shown: &str) -> Result<(), Failure> {
        let name = match found.rest.first() {
            Some(Step::Attribute(name)) => String::from_utf8_lossy(&canonical_name(name)).into_owned(),
            _ => String::new(),
        };
        let permission = match (name.as_str(), &found.object) {
            ("acl" | "inherit_acl" | "owner", _) => Permission::Administer,
            ("parent_name", Object::Pool(tree, _)) => {
                let target = self.pool_or_tree(tree, value.as_str().unwrap_or(ROOT));
                self.demand(who, Permission::Write, &target, shown)?;
                self.demand(who, Permission::Write, &self.parent_of(&found.object), shown)?;
                Permission::Write
            }
            (name, Object::Pool(..)) if USER_MANAGED.contains(&name) => Permission::Write,
            (_, Object::Pool(..) | Object::Tree(_)) => Permission::Administer,
            _ => Permission::Write,
        };
        self.demand(who, permission, &found.object, shown)
    }

    fn authorize_remove(&self, who: &Who, found: &Found, shown: &str) -> Result<(), Failure> {
        if let ([Step::AllChildren], Object::Node(node)) = (found.rest.as_slice(), &found.object) {
            self.demand(who, Permission::Write, &found.object, shown)?;
            self.demand(who, Permission::Remove, &found.object, shown)?;
            return self.demand_below(who, Permission::Remove, *node);
        }
        if !found.rest.is_empty() {
            return self.authorize_set(who, found, &Value::Entity, shown);
        }
        self.demand(who, Permission::Write, &self.parent_of(&found.object), shown)?;
        let Object::Node(node) = found.object else { return Ok(()) };
        self.demand(who, Permission::Remove, &found.object, shown)?;
        self.demand_below(who, Permission::Remove, node)
    }

    /// Objects that have no path of their own when they are made.
    fn authorize_object(&self, who: &Who, object_type: &str, attributes: &Map) -> Result<(), Failure> {
        let text = |name: &str| attributes.get(name).and_then(Value::as_str);
        let (object, permission) = match object_type {
            "scheduler_pool" => {
                let tree = text("pool_tree").map_or_else(|| self.default_tree(), str::to_owned);
                (self.pool_or_tree(&tree, text("parent_name").unwrap_or(ROOT)), Permission::Write)
            }
            "scheduler_pool_tree" => (self.mount_object(POOL_TREES), Permission::Administer),
            "user" => (Object::Node(self.system_map(b"users")), Permission::Write),
            "group" => (Object::Node(self.system_map(b"groups")), Permission::Write),
            _ => (Object::Node(self.tree.root()), Permission::Administer),
        };
        self.demand(who, permission, &object, &format!("new {object_type}"))
    }

    /// The same permission for everything below a node that has a list of its own and that a recursive
    /// command would touch. What is opaque is not shown, but it is removed.
    fn demand_below(&self, who: &Who, permission: Permission, top: ObjectId) -> Result<(), Failure> {
        let mut open = self.tree.child_ids(top);
        while let Some(id) = open.pop() {
            let Some(node) = self.tree.node(id) else { continue };
            if permission == Permission::Read && self.tree.is_opaque(node) {
                continue;
            }
            if !node.inherit_acl || !node.acl.0.is_empty() {
                self.demand(who, permission, &Object::Node(id), &self.tree.path(top))?;
            }
            open.extend(self.tree.child_ids(id));
        }
        Ok(())
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

/// A stored list; what cannot be read allows nothing.
fn read_acl(list: &[Value]) -> Acl {
    Acl::parse(&Value::List(list.to_vec())).unwrap_or_default()
}

/// The refusal (code 901).
fn denied(who: &Who, permission: Permission, shown: &str, by: Option<&str>) -> Failure {
    let user = &who.user;
    let why = match by {
        Some(subject) => format!("it is denied for \"{subject}\""),
        None => "no entry of an access control list allows it".to_owned(),
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
