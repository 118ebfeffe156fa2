//! A desk to try the tree at: commands as text, replies as text.
//!
//! After every command three things are checked, whatever the test is about: a failed command
//! changed nothing, the records written so far restore to the same tree, and the blobs in use are
//! those that nodes refer to.

use std::collections::{BTreeMap, BTreeSet};

use cypress::*;
use vocab::{Failure, GuidGenerator, Time};
use yson::ypath::YPath;
use yson::{Map, Value};

/// The mount that [`Console::new`] puts on `//sys/scheduler/orchid`.
pub const ORCHID: MountId = MountId(7);

pub struct Console {
    pub tree: Tree,
    pub ids: GuidGenerator,
    pub now: Time,
    pub records: BTreeMap<Vec<u8>, Vec<u8>>,
    pub released: Vec<u64>,
}

impl Console {
    pub fn new() -> Console {
        Console::with_limits(Limits::default())
    }

    pub fn with_limits(limits: Limits) -> Console {
        let mut ids = GuidGenerator::new(1);
        let now = Time::from_secs(1_767_323_045);
        let done = Tree::new(Context { now, user: "root", ids: &mut ids }, limits);
        let mut console =
            Console { tree: done.value, ids, now, records: BTreeMap::new(), released: Vec::new() };
        console.store(&done.changes);
        let context = Context { now, user: "root", ids: &mut console.ids };
        let done = console.tree.ensure_layout(context, &Layout::default()).expect("the layout is sound");
        console.store(&done.changes);
        let orchid = console.place("//sys/scheduler/orchid", Last::Stay).expect("a node of the layout");
        console.tree.mount(orchid.node, ORCHID);
        console
    }

    fn store(&mut self, changes: &[Change]) {
        for change in changes {
            match &change.value {
                Some(value) => drop(self.records.insert(change.key.clone(), value.clone())),
                None => drop(self.records.remove(&change.key)),
            }
        }
    }

    /// Runs commands as user `alice`, one second later than the last ones, with all checks.
    pub fn edit<T>(
        &mut self,
        commands: impl FnOnce(&mut Edit<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.now = Time(self.now.0 + 1_000_000);
        let before = self.tree.clone();
        let result = self.tree.edit(Context { now: self.now, user: "alice", ids: &mut self.ids }, commands);
        let result = match result {
            Ok(done) => {
                self.store(&done.changes);
                self.released.extend(done.released_blobs);
                Ok(done.value)
            }
            Err(failure) => {
                assert_eq!(self.tree, before, "a failed command must change nothing: {failure}");
                Err(failure)
            }
        };
        self.check();
        result
    }

    fn check(&self) {
        let mut restored = Tree::restore(&self.records, self.tree.limits().clone()).expect("good records");
        for id in self.tree.subtree(self.tree.root()) {
            if let Some(mount) = self.tree.mount_at(id) {
                restored.mount(id, mount);
            }
        }
        assert_eq!(restored, self.tree, "records must restore to the same tree");
        let used: BTreeSet<u64> = self
            .tree
            .subtree(self.tree.root())
            .iter()
            .filter_map(|id| self.tree.node(*id))
            .flat_map(Node::blobs)
            .collect();
        assert_eq!(self.tree.blobs().collect::<BTreeSet<_>>(), used);
        assert_eq!(self.tree.node_count(), self.tree.subtree(self.tree.root()).len());
    }

    pub fn place(&self, path: &str, last: Last) -> Result<Place, Failure> {
        match self.tree.resolve(&parse_path(path)?, last)? {
            Resolved::Local(place) => Ok(place),
            Resolved::Mount(mounted) => Err(Failure::new(format!("mount {}", mounted.mount.0))),
            Resolved::Foreign(foreign) => Err(foreign.failure()),
        }
    }

    /// Runs one line: `command argument... [-- option=value;...]`.
    pub fn run(&mut self, line: &str) -> Result<String, Failure> {
        let (call, options) = line.split_once(" -- ").unwrap_or((line, ""));
        let options = yson::parse_map_fragment(options.as_bytes()).expect("options are a map fragment");
        let mut words = call.splitn(3, ' ');
        let (command, first, second) =
            (words.next().unwrap_or(""), words.next().unwrap_or("/"), words.next().unwrap_or(""));
        let flag = |name: &str| options.get(name).and_then(Value::as_bool).unwrap_or(false);
        let attributes = || options.get("attributes").and_then(Value::as_map).cloned().unwrap_or_default();
        let read = || GetOptions {
            attributes: options.get("attributes").and_then(Value::as_list).map_or(Vec::new(), |names| {
                names.iter().map(|n| n.as_str().expect("names are text").to_owned()).collect()
            }),
            max_size: options.get("max_size").and_then(Value::as_u64).map(|n| n as usize),
            ..GetOptions::default()
        };
        match command {
            "get" => self.tree.get(&self.place(first, Last::Follow)?, &read()).map(|v| text(&v)),
            "list" => self.tree.list(&self.place(first, Last::Follow)?, &read()).map(|v| text(&v)),
            "exists" => {
                let found = self.place(first, Last::Follow).is_ok_and(|place| self.tree.exists(&place));
                Ok(found.to_string())
            }
            "set" => {
                let place = self.place(first, Last::Follow)?;
                let set = SetOptions { recursive: flag("recursive"), force: flag("force") };
                self.edit(|edit| edit.set(&place, value(second), set)).map(done)
            }
            "multiset" => {
                let place = self.place(first, Last::Follow)?;
                let map: Map = value(second).as_map().cloned().expect("a map");
                self.edit(|edit| edit.multiset_attributes(&place, map)).map(done)
            }
            "create" => {
                let place = self.place(second, Last::Stay)?;
                let create = CreateOptions {
                    attributes: attributes(),
                    recursive: flag("recursive"),
                    ignore_existing: flag("ignore_existing"),
                    force: flag("force"),
                    ignore_type_mismatch: flag("ignore_type_mismatch"),
                    ..CreateOptions::new(NodeType::parse(first)?)
                };
                self.edit(|edit| edit.create(&place, &create)).map(done)
            }
            "link" => {
                let (target, place) = (parse_path(first)?, self.place(second, Last::Stay)?);
                let link = LinkOptions {
                    attributes: attributes(),
                    recursive: flag("recursive"),
                    ignore_existing: flag("ignore_existing"),
                    force: flag("force"),
                };
                self.edit(|edit| edit.link(&target, &place, &link)).map(done)
            }
            "remove" => {
                let place = self.place(first, Last::Stay)?;
                let remove = RemoveOptions { recursive: flag("recursive"), force: flag("force") };
                self.edit(|edit| edit.remove(&place, remove)).map(done)
            }
            "copy" | "move" => {
                let source = self.place(first, Last::Follow)?;
                let destination = self.place(second, Last::Stay)?;
                let copy = CopyOptions {
                    recursive: flag("recursive"),
                    force: flag("force"),
                    ignore_existing: flag("ignore_existing"),
                    preserve_account: flag("preserve_account"),
                    preserve_acl: flag("preserve_acl"),
                    preserve_owner: flag("preserve_owner"),
                    preserve_creation_time: flag("preserve_creation_time"),
                    preserve_modification_time: flag("preserve_modification_time"),
                    preserve_expiration_time: flag("preserve_expiration_time"),
                    preserve_expiration_timeout: flag("preserve_expiration_timeout"),
                };
                self.edit(|edit| match command {
                    "copy" => edit.copy(&source, &destination, copy),
                    _ => edit.move_node(&source, &destination, copy),
                })
                .map(done)
            }
            "write" => {
                let place = self.place(first, Last::Follow)?;
                let blob: u64 = second.parse().expect("number of a blob");
                let content = Content { blob, size: blob * 10, md5: Some("d41d".to_owned()) };
                self.edit(|edit| edit.set_file_content(place.node, Some(content))).map(done)
            }
            other => panic!("no such command on this console: {other}"),
        }
    }

    /// One line with its reply.
    pub fn say(&mut self, line: &str) -> String {
        let released = self.released.len();
        let mut reply = match self.run(line) {
            Ok(reply) => reply,
            Err(failure) => show(&failure),
        };
        if self.released.len() > released {
            reply = format!("{reply} released {:?}", &self.released[released..]);
        }
        format!("{line}\n    {reply}\n")
    }
}

fn parse_path(path: &str) -> Result<YPath, Failure> {
    YPath::parse(path.as_bytes()).map_err(|e| Failure::new(e.to_string()))
}

fn value(source: &str) -> Value {
    yson::parse(source.as_bytes()).expect("values are YSON")
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(&yson::to_text(value)).into_owned()
}

fn done<T>(_: T) -> String {
    "ok".to_owned()
}

fn show(failure: &Failure) -> String {
    let inner: String = failure.inner_errors.iter().map(|i| format!(" <- {}", show(i))).collect();
    format!("{}: {}{inner}", failure.code, failure.message)
}

/// Runs a script, one command a line, on a fresh tree; the transcript is the result.
pub fn check(script: &str, expected: expect_test::Expect) {
    check_on(&mut Console::new(), script, expected);
}

pub fn check_on(console: &mut Console, script: &str, expected: expect_test::Expect) {
    let lines = script.lines().map(str::trim).filter(|l| !l.is_empty());
    let transcript: String = lines.map(|line| console.say(line)).collect();
    expected.assert_eq(&transcript);
}
