//! Commands of the tree: resolves the path, then the tree itself answers, or the owner of a mount.

use crate::access::Who;
use crate::command::LockMode;
use crate::{Body, Command, Effect, Kernel, SharedValue, Waits};
use controller::ControllerOptions;
use cypress::{
    Committed, Context, CreateOptions, Edit, GetOptions, Last, LinkOptions, LockOptions, NodeType, Place,
    RemoveOptions, Resolved, SetOptions,
};
use scheduler::config::SchedulerConfig;
use vocab::batch::Table;
use vocab::{Failure, ObjectId, Time, code};
use yson::ypath::{Step, YPath};
use yson::{Map, Value};

impl Kernel {
    pub(crate) fn get(
        &self,
        now: Time,
        path: &YPath,
        options: GetOptions,
        fields: Option<Vec<String>>,
    ) -> (Waits, Result<Body, Failure>) {
        match self.tree.resolve(path, Last::Follow) {
            Ok(Resolved::Local(place)) => match self.get_alerts(&place) {
                Some(alerts) => (Waits::Nothing, alerts.map(Body::Value)),
                None => {
                    // With attributes the answer is another value.
                    if options.attributes.is_empty()
                        && let Some(shared) = SharedValue::of(&self.tree, &place)
                    {
                        return (Waits::Tree, Ok(Body::Shared(shared)));
                    }
                    let value = self.tree.get(&place, &options);
                    (Waits::Tree, value.map(|value| Body::Value(self.with_alerts(&place, &options, value))))
                }
            },
            Ok(Resolved::Mount(mounted)) => self.mount_get(now, &mounted, &options, fields.as_deref()),
            Ok(Resolved::Foreign(foreign)) => self.foreign_get(now, &foreign, &options),
            Err(failure) => (Waits::Tree, Err(failure)),
        }
    }

    /// Refuses a question about more nodes than one may be about, before it is looked at what of them may be shown.
    pub(crate) fn check_read(
        &self,
        who: Option<&Who>,
        path: &YPath,
        attributes: &[String],
        max_size: Option<usize>,
    ) -> Result<(), Failure> {
        if who.is_none_or(Who::is_superuser) {
            return Ok(());
        }
        match self.tree.resolve(path, Last::Follow) {
            Ok(Resolved::Local(place)) if place.rest.is_empty() => {
                let options =
                    GetOptions { attributes: attributes.to_vec(), max_size, ..GetOptions::default() };
                let shown = self.tree.shown_values(place.node, &options);
                self.tree.limits().check_read(shown, || self.tree.path(place.node))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn list(
        &self,
        now: Time,
        path: &YPath,
        options: GetOptions,
    ) -> (Waits, Result<Body, Failure>) {
        match self.tree.resolve(path, Last::Follow) {
            Ok(Resolved::Local(place)) => {
                let list = self.list_with_alerts(&place, &options);
                let list = list.map_or_else(|| self.tree.list(&place, &options), Ok);
                (Waits::Tree, list.map(Body::Value))
            }
            Ok(Resolved::Mount(mounted)) => self.mount_list(now, &mounted, &options),
            Ok(Resolved::Foreign(foreign)) => match self.foreign_mount(&foreign) {
                Ok(mounted) => self.mount_list(now, &mounted, &options),
                Err(failure) => (Waits::All, Err(failure)),
            },
            Err(failure) => (Waits::Tree, Err(failure)),
        }
    }

    /// Every way in which something is not there is `false`, not an error.
    pub(crate) fn exists(&self, now: Time, path: &YPath) -> (Waits, Result<Body, Failure>) {
        let (waits, found) = match self.tree.resolve(path, Last::Follow) {
            Ok(Resolved::Local(place)) => match self.get_alerts(&place) {
                Some(alerts) => (Waits::Nothing, alerts.is_ok()),
                None => (Waits::Tree, self.tree.exists(&place)),
            },
            Ok(Resolved::Mount(mounted)) => self.mount_exists(now, &mounted),
            Ok(Resolved::Foreign(foreign)) => {
                let (waits, got) = self.foreign_get(now, &foreign, &GetOptions::default());
                (waits, got.is_ok())
            }
            Err(_) => (Waits::Tree, false),
        };
        (waits, Ok(Body::Value(found.into())))
    }

    /// `set`, `create`, `remove`, ... wherever the path leads.
    pub(crate) fn tree_command(
        &mut self,
        now: Time,
        user: &str,
        command: Command,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        let replaced = self.subjects_replaced_by(&command);
        if !replaced.is_empty() && self.tree.entered().is_some() {
            let message = "Users and groups are outside of transactions: remove or replace them without one";
            return Err(Failure::new(message));
        }
        let done = self.change_tree(now, user, command, out)?;
        self.forget_subjects(now, replaced, out);
        Ok(done)
    }

    fn change_tree(
        &mut self,
        now: Time,
        user: &str,
        command: Command,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        match command {
            Command::Set { path, value, recursive, force } => match self.resolve(&path, Last::Follow)? {
                Target::Local(place) => {
                    let given = match (place.rest.as_slice(), &value) {
                        ([Step::AllAttributes], Value::Map(given)) => given.clone(),
                        _ => Map::new(),
                    };
                    self.keep_alerts(&place, &given)?;
                    self.edit(now, user, out, |edit| {
                        edit.set(&place, value, SetOptions { recursive, force })
                    })?;
                    Ok(Value::Entity)
                }
                Target::Mount(mounted) => self.mount_set(now, user, &mounted, value, out),
            },
            Command::MultisetAttributes { path, attributes } => match self.resolve(&path, Last::Follow)? {
                Target::Local(place) => {
                    self.keep_alerts(&place, &attributes)?;
                    self.edit(now, user, out, |edit| edit.multiset_attributes(&place, attributes))?;
                    Ok(Value::Entity)
                }
                Target::Mount(mounted) => self.mount_multiset(now, user, &mounted, attributes, out),
            },
            Command::Create { .. } => self.create(now, user, command, out),
            Command::Remove { path, recursive, force } => {
                let target = match self.resolve(&path, Last::Stay) {
                    Ok(target) => target,
                    Err(failure) if force && failure.code == vocab::code::RESOLVE_ERROR => {
                        return Ok(Value::Entity);
                    }
                    Err(failure) => return Err(failure),
                };
                match target {
                    Target::Local(place) => {
                        let options = RemoveOptions { recursive, force };
                        self.keep_alerts(&place, &Map::new())?;
                        self.edit(now, user, out, |edit| edit.remove(&place, options))?;
                        Ok(Value::Entity)
                    }
                    Target::Mount(mounted) => self.mount_remove(now, user, &mounted, recursive, force, out),
                }
            }
            Command::CopyMove { .. } => self.copy_move(now, user, command, out),
            Command::Link { target, link, recursive, ignore_existing, force, attributes } => {
                let place = self.resolve_local(&link, Last::Stay, "link")?;
                // What is no node is somebody else's to know.
                if !force
                    && !matches!(self.tree.resolve(&target, Last::Follow), Ok(Resolved::Local(_)) | Err(_))
                    && !matches!(self.exists(now, &target), (_, Ok(Body::Value(Value::Bool(true)))))
                {
                    let message = format!("Link target {} does not exist", target.text());
                    return Err(Failure::resolve(message).with("path", target.text()));
                }
                let options = LinkOptions { recursive, ignore_existing, force, attributes };
                let id = self.edit(now, user, out, |edit| edit.link(&target, &place, &options))?;
                Ok(node_id(id))
            }
            Command::FileWritten { path, blob, size, md5, behind } => {
                let place = self.resolve_local(&path, Last::Follow, "write_file")?;
                if !place.rest.is_empty() {
                    return Err(self.tree.missing(&place));
                }
                if let Some(behind) = behind {
                    self.check_unchanged(place.node, behind)?;
                }
                self.edit(now, user, out, |edit| {
                    edit.set_file_content(place.node, Some(cypress::Content { blob, size, md5 }))
                })?;
                Ok(Value::Entity)
            }
            other => Err(Failure::new(format!("{other:?} is not a command of the tree"))),
        }
    }

    fn create(
        &mut self,
        now: Time,
        user: &str,
        command: Command,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        let Command::Create {
            object_type,
            path,
            attributes,
            recursive,
            ignore_existing,
            force,
            ignore_type_mismatch,
            lock_existing,
        } = command
        else {
            unreachable!("the caller matched on Create");
        };
        if lock_existing && !ignore_existing {
            let message = "\"lock_existing\" is for what \"ignore_existing\" leaves as it is: give both";
            return Err(Failure::new(message));
        }
        match (object_type.as_str(), path) {
            ("scheduler_pool", _) => self.create_pool(now, attributes, ignore_existing).map(object_id),
            ("scheduler_pool_tree", _) => {
                self.create_pool_tree(now, attributes, ignore_existing).map(object_id)
            }
            ("user" | "group" | "account", None) => {
                let node_type = NodeType::parse(&object_type)?;
                self.create_subject(now, user, node_type, attributes, ignore_existing, out).map(object_id)
            }
            (_, Some(path)) => {
                let node_type = NodeType::parse(&object_type)?;
                match self.resolve(&path, Last::Stay)? {
                    Target::Local(place) => {
                        let options = CreateOptions {
                            node_type,
                            attributes,
                            recursive,
                            ignore_existing,
                            force,
                            ignore_type_mismatch,
                        };
                        let existed = place.rest.is_empty();
                        let id = self.edit(now, user, out, |edit| edit.create(&place, &options))?;
                        if lock_existing && existed {
                            let options = LockOptions { mode: LockMode::Exclusive, waitable: false };
                            let context = Context { now, user, ids: &mut self.ids };
                            let done = self.tree.lock(context, id, options)?;
                            self.absorb(done, out);
                        }
                        Ok(node_id(id))
                    }
                    Target::Mount(mounted) => Err(read_only(&self.tree.show(&mounted.as_place()))),
                }
            }
            (_, None) => {
                NodeType::parse(&object_type)?;
                Err(Failure::new(format!("\"path\" is required to create a {object_type}")))
            }
        }
    }

    fn copy_move(
        &mut self,
        now: Time,
        user: &str,
        command: Command,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        let Command::CopyMove { source, destination, remove_source, options } = command else {
            unreachable!("the caller matched on CopyMove");
        };
        let name = if remove_source { "move" } else { "copy" };
        match (self.resolve(&source, Last::Follow)?, self.resolve(&destination, Last::Stay)?) {
            (Target::Local(from), Target::Local(to)) => self
                .edit(now, user, out, |edit| {
                    if remove_source {
                        edit.move_node(&from, &to, options)
                    } else {
                        edit.copy(&from, &to, options)
                    }
                })
                .map(node_id),
            (Target::Mount(from), Target::Mount(to)) if remove_source => self.move_mounted(&from, &to),
            (Target::Mount(at), _) | (_, Target::Mount(at)) => {
                let shown = self.tree.show(&at.as_place());
                Err(Failure::new(format!("Cannot {name} {shown}: it is not an ordinary node"))
                    .with("path", shown))
            }
        }
    }

    /// 402 if a file has another content than the one that more was appended to: that of somebody else would be
    /// lost.
    fn check_unchanged(&self, node: ObjectId, content: u64) -> Result<(), Failure> {
        let found = match &self.tree.expect_node(node)?.body {
            cypress::Body::File(found) => found.as_ref().map_or(0, |found| found.blob),
            // What is no file is refused in other words.
            _ => return Ok(()),
        };
        if found == content {
            return Ok(());
        }
        let path = self.tree.path(node);
        let message = format!("The content of {path} was changed while more was appended to it");
        Err(Failure::coded(code::LOCK_CONFLICT, message).with("path", path))
    }

    /// Runs commands of the tree and puts what changed into the batch. A change that would make the
    /// options of the scheduler or of the controllers unreadable is refused as a whole; one inside of
    /// a transaction is not in force before its commit.
    pub(crate) fn edit<T>(
        &mut self,
        now: Time,
        user: &str,
        out: &mut Vec<Effect>,
        commands: impl FnOnce(&mut Edit<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let inside = self.tree.entered().is_some();
        let mut wanted = WantedOptions::default();
        let in_force = (&self.scheduler_config, &self.controller_config);
        let done = self.tree.edit(Context { now, user, ids: &mut self.ids }, |edit| {
            let value = commands(edit)?;
            if !inside {
                wanted = WantedOptions::read(edit, in_force)?;
            }
            Ok(value)
        })?;
        self.put_in_force(wanted);
        Ok(self.absorb(done, out))
    }

    /// The options that stand in the tree are those by which everybody acts.
    pub(crate) fn put_in_force(&mut self, wanted: WantedOptions) {
        if let Some((config, document)) = wanted.scheduler {
            self.scheduler.set_config(config);
            self.scheduler_config = document;
            self.pending_work.update = true;
            self.pending_work.schedule = true;
        }
        if let Some((options, document)) = wanted.controllers {
            self.controller_config = document;
            self.set_controller_options(options);
        }
    }

    /// All operations act by other options from now on.
    fn set_controller_options(&mut self, options: ControllerOptions) {
        for (id, operation) in &mut self.operations {
            operation.controller.set_options(&options);
            self.pending_work.demand.insert(*id);
        }
        self.controller_options = options;
        self.pending_work.schedule = true;
    }

    /// Puts the controllers' options that stand in the tree in force, before there is any operation.
    pub(crate) fn recover_controller_options(&mut self) -> Result<(), Failure> {
        self.controller_config = config_document(&self.tree, CONTROLLERS);
        self.controller_options = read_controller_options(&self.controller_config)?;
        Ok(())
    }

    /// Puts the records of an edit into the batch; its result.
    pub(crate) fn absorb<T>(&mut self, done: Committed<T>, out: &mut Vec<Effect>) -> T {
        let batch = &mut self.open.batch;
        let mut changed = false;
        let mut write = |table: Table, changes: Vec<cypress::Change>| {
            for change in changes {
                match change.value {
                    Some(value) => batch.put(table, change.key, value),
                    None => batch.delete(table, change.key),
                }
                changed = true;
            }
        };
        write(Table::Cypress, done.changes);
        write(Table::Transactions, done.transactions);
        for id in done.ended {
            self.open.batch.delete_prefix(Table::Transactions, id.0.to_bytes());
            changed = true;
        }
        if changed {
            self.open.tree_seq = self.open.seq;
        }
        for blob in done.released_blobs {
            self.delete_blob(blob, out);
        }
        done.value
    }

    /// `//sys/scheduler/config` as it stands in the tree.
    pub(crate) fn wanted_scheduler_config(&self) -> Value {
        config_document(&self.tree, SCHEDULER)
    }

    pub(crate) fn resolve(&self, path: &YPath, last: Last) -> Result<Target, Failure> {
        match self.tree.resolve(path, last)? {
            Resolved::Local(place) => Ok(Target::Local(place)),
            Resolved::Mount(mounted) => Ok(Target::Mount(mounted)),
            Resolved::Foreign(foreign) => self.foreign_mount(&foreign).map(Target::Mount),
        }
    }

    /// A node of the tree that is to be what is expected, which the caller looks at.
    pub(crate) fn tree_node(
        &self,
        path: &YPath,
        expected: &str,
    ) -> Result<(ObjectId, &cypress::Node), Failure> {
        match self.tree.resolve(path, Last::Follow)? {
            Resolved::Local(place) if place.rest.is_empty() => {
                Ok((place.node, self.tree.expect_node(place.node)?))
            }
            Resolved::Local(place) => Err(self.tree.missing(&place)),
            Resolved::Mount(mounted) => {
                let shown = self.tree.show(&mounted.as_place());
                Err(Failure::new(format!("{shown} is not {expected}")))
            }
            Resolved::Foreign(foreign) => Err(foreign.failure()),
        }
    }

    /// The refusal of a node of another type.
    pub(crate) fn unexpected(&self, id: ObjectId, expected: &str) -> Failure {
        let path = self.tree.path(id);
        let found = self.tree.node(id).map_or("no node", |node| node.node_type.name());
        Failure::new(format!("{path} is of type {found}, expected {expected}")).with("path", path)
    }

    pub(crate) fn resolve_local(&self, path: &YPath, last: Last, command: &str) -> Result<Place, Failure> {
        match self.resolve(path, last)? {
            Target::Local(place) => Ok(place),
            Target::Mount(mounted) => {
                let shown = self.tree.show(&mounted.as_place());
                Err(Failure::new(format!("Command \"{command}\" has no meaning for {shown}"))
                    .with("path", shown))
            }
        }
    }
}

/// Options that a change of the tree would put in force.
#[derive(Default)]
pub(crate) struct WantedOptions {
    scheduler: Option<(SchedulerConfig, Value)>,
    controllers: Option<(ControllerOptions, Value)>,
}

impl WantedOptions {
    /// Those of a tree that are not `in_force`: the scheduler's and the controllers' documents.
    pub(crate) fn read(tree: &cypress::Tree, in_force: (&Value, &Value)) -> Result<WantedOptions, Failure> {
        let mut wanted = WantedOptions::default();
        let document = config_document(tree, SCHEDULER);
        if document != *in_force.0 {
            wanted.scheduler = Some((read_scheduler_config(&document)?, document));
        }
        let document = config_document(tree, CONTROLLERS);
        if document != *in_force.1 {
            wanted.controllers = Some((read_controller_options(&document)?, document));
        }
        Ok(wanted)
    }
}

const SCHEDULER: &[u8] = b"scheduler";
const CONTROLLERS: &[u8] = b"controller_agents";

/// Content of `//sys/<owner>/config`; an empty map if somebody has removed it.
fn config_document(tree: &cypress::Tree, owner: &[u8]) -> Value {
    let child = |parent, key: &[u8]| tree.child(parent, key);
    let node = child(tree.root(), b"sys").and_then(|sys| child(sys, owner)).and_then(|s| child(s, b"config"));
    match node.and_then(|id| tree.node(id)).map(|node| &node.body) {
        Some(cypress::Body::Document(value)) if !value.is_entity() => value.clone(),
        _ => Value::Map(Map::new()),
    }
}

/// Options of the scheduler; unknown ones are refused, so that a typing error does not go unseen.
pub(crate) fn read_scheduler_config(document: &Value) -> Result<SchedulerConfig, Failure> {
    let map = document.as_map().ok_or_else(|| {
        Failure::new(format!("//sys/scheduler/config: expected map, found {}", document.type_name()))
    })?;
    let (config, unknown) = SchedulerConfig::parse(map)?;
    match unknown.key_strings().next() {
        Some(name) => Err(Failure::new(format!("Unknown scheduler option \"{name}\"")).with("option", name)),
        None => Ok(config),
    }
}

/// Options of the controllers.
fn read_controller_options(document: &Value) -> Result<ControllerOptions, Failure> {
    let at = "//sys/controller_agents/config";
    let map = document
        .as_map()
        .ok_or_else(|| Failure::new(format!("{at}: expected map, found {}", document.type_name())))?;
    ControllerOptions::parse(map).map_err(|e| Failure::new(format!("{at} is refused")).because(e))
}

/// Where a command that changes something goes.
pub(crate) enum Target {
    Local(Place),
    Mount(cypress::Mounted),
}

/// Error of everything that cannot be changed by users.
pub(crate) fn read_only(path: &str) -> Failure {
    Failure::new(format!("{path} cannot be changed: it shows the state of the system")).with("path", path)
}

fn node_id(id: ObjectId) -> Value {
    Value::Map(yson::map! { "node_id" => id })
}

fn object_id(id: ObjectId) -> Value {
    Value::Map(yson::map! { "object_id" => id })
}

/// A map of attributes cut to the wanted ones; everything if nothing was wanted in particular.
pub(crate) fn only(map: Map, wanted: &[String]) -> Map {
    if wanted.is_empty() {
        return map;
    }
    map.into_iter().filter(|(key, _)| wanted.iter().any(|w| w.as_bytes() == key.as_slice())).collect()
}
