//! Scripts over the [`World`]: one command per line, a transcript that a person can read.
//!
//! ```text
//! node n1 cpu=4                        a node connects
//! pool create p strong.cpu=2           attributes of the pool, dots go into maps
//! tree create t FILTER                 a pool tree for the nodes that match; a node's name is a tag of it
//! op start p jobs=3 cpu=1 as o1        a vanilla operation of one task; other words are options of the spec
//! op abort|suspend|resume|complete o1
//! finish o1/0     fail o1/1 exit=3     a job ends on its node; a job is named by its unit
//! overdraft o1/0                       its node needs the memory that it has beyond its reserve
//! disconnect n1   connect n1   reboot n1
//! crash   restart   stop               the server; `crash 1`: the first waiting commit has landed
//! hold    commit [n]    go             commits wait; n of them land; they wait no more
//! tick 1s                              time passes
//! get|list|exists|remove PATH   set PATH VALUE   move PATH PATH   do COMMAND...
//! show ops|events|pools|jobs|nodes|blobs|log
//! ```

mod show;

use crate::node::Node;
use crate::world::{Event, World};
use expect_test::Expect;
use kernel::command::CopyOptions;
use kernel::{Body, Command, ListOperations, OperationRef, OperationRow};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use vocab::batch::Table;
use vocab::{AbortReason, Failure, Guid, JobId, JobOutcome, OperationId, OperationType, Resources, Span};
use wire::{ServerMessage, StartJob};
use yson::ypath::YPath;
use yson::{Map, Value};

/// Runs a script and gives the transcript.
pub fn run(script: &str) -> String {
    let mut console = Console::new();
    console.run(script);
    console.transcript
}

/// Runs a script and compares the transcript.
pub fn check(script: &str, expected: Expect) {
    expected.assert_eq(&run(script));
}

/// See the module page.
pub struct Console {
    pub world: World,
    transcript: String,
    /// Names of operations by id and back.
    names: BTreeMap<String, String>,
    operations: BTreeMap<String, OperationId>,
    /// `operation/unit#run` by id of the job, the operation by id.
    jobs: BTreeMap<String, String>,
    /// Requests whose replies have not come.
    waiting: BTreeMap<u64, String>,
    /// Names for the operations that requests start.
    started: BTreeMap<u64, String>,
    user: String,
}

impl Console {
    pub fn new() -> Console {
        Console::with(|_| ())
    }

    /// Of a cluster with another configuration.
    pub fn with(change: impl FnOnce(&mut kernel::Config)) -> Console {
        Console {
            world: World::new(change),
            transcript: String::new(),
            names: BTreeMap::new(),
            operations: BTreeMap::new(),
            jobs: BTreeMap::new(),
            waiting: BTreeMap::new(),
            started: BTreeMap::new(),
            user: "ann".into(),
        }
    }

    pub fn run(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|l| !l.is_empty()) {
            if line.starts_with('#') {
                let _ = writeln!(self.transcript, "{line}");
                continue;
            }
            let _ = writeln!(self.transcript, "> {line}");
            self.command(line);
            self.report();
            let mut broken = std::mem::take(&mut self.world.violations);
            if self.world.is_up() {
                broken.extend(self.world.kernel().check_invariants());
            }
            for violation in broken {
                let violation = self.named(&violation);
                let _ = writeln!(self.transcript, "  VIOLATED {violation}");
            }
        }
    }

    /// What was said so far, without what was forgotten.
    pub fn transcript(&self) -> &str {
        &self.transcript
    }

    /// What comes before does not matter to the test.
    pub fn forget_transcript(&mut self) {
        self.transcript.clear();
    }

    /// The id of an operation that a script has named.
    pub fn operation_id(&self, name: &str) -> OperationId {
        self.operations[name]
    }

    /// `exists`, with names of operations as in scripts.
    pub fn exists(&mut self, path: &str) -> bool {
        let command = Command::Exists { path: ypath(&self.with_ids(path)) };
        match self.world.ask("root", command) {
            Some(Ok(Body::Value(value))) => value.as_bool() == Some(true),
            other => panic!("exists {path}: {other:?}"),
        }
    }

    /// Names of operations replaced by their ids, where they are a step of a path.
    fn with_ids(&self, path: &str) -> String {
        let step = |step: &str| match self.operations.get(step) {
            Some(id) => id.to_string(),
            None => step.to_owned(),
        };
        path.split('/').map(step).collect::<Vec<_>>().join("/")
    }

    fn say(&mut self, line: impl AsRef<str>) {
        let line = self.named(line.as_ref());
        let _ = writeln!(self.transcript, "  {line}");
    }

    /// Ids replaced by names.
    pub fn named(&self, text: &str) -> String {
        let text = self.jobs.iter().fold(text.to_owned(), |text, (id, name)| text.replace(id, name));
        self.names.iter().fold(text, |text, (id, name)| text.replace(id, name))
    }

    fn command(&mut self, line: &str) {
        let replaced = self.with_ids(line);
        let words: Vec<&str> = replaced.split_whitespace().collect();
        match words.as_slice() {
            ["node", name, options @ ..] => {
                let mut limits = Resources { user_slots: 100, memory: 64 << 30, ..Resources::ZERO };
                for (key, value) in pairs(options) {
                    match key {
                        "cpu" => limits.cpu = vocab::Cpu::from_f64(value.parse().expect("a number of cores")),
                        "slots" => limits.user_slots = value.parse().expect("a number of slots"),
                        "memory" => limits.memory = value.parse().expect("bytes"),
                        _ => panic!("node: unknown option {key}"),
                    }
                }
                self.world.nodes.insert((*name).to_owned(), Node::new(name, limits));
                self.connect(name);
            }
            ["connect", name] => self.connect(name),
            ["impostor", name] => {
                self.world.impostor(name);
                self.world.settle();
            }
            ["reboot", name] => {
                // The host restarts: what ran there is gone, and so is all memory of it.
                if let Some(node) = self.world.nodes.get_mut(*name) {
                    node.running.clear();
                    node.finished.clear();
                    node.incarnation += 1;
                }
                self.world.disconnect(name);
                self.connect(name);
            }
            ["disconnect", name] => {
                self.world.disconnect(name);
                self.world.settle();
            }
            ["finish", job] => {
                let (node, id) = self.job(job);
                let interrupted = self.world.nodes[&node].running.get(&id).and_then(|j| j.interrupted);
                self.end(&node, id, JobOutcome::Completed { interrupted, restart_needed: false });
            }
            ["fail", job, options @ ..] => {
                let code =
                    pairs(options).find(|(key, _)| *key == "exit").map_or(1, |(_, v)| v.parse().unwrap_or(1));
                let inner =
                    Failure::coded(10000, format!("Process exited with code {code}")).with("exit_code", code);
                let (node, id) = self.job(job);
                self.end(
                    &node,
                    id,
                    JobOutcome::Failed { error: Failure::coded(1205, "User job failed").because(inner) },
                );
            }
            ["overdraft", job] => {
                let (node, id) = self.job(job);
                let reason = AbortReason::ResourceOverdraft;
                let error = Failure::new("The job uses more memory than is reserved for it")
                    .with("abort_reason", reason);
                self.end(&node, id, JobOutcome::Aborted { reason, error });
            }
            ["again", name] => {
                // The network repeats the newest ends.
                let ends = self.world.nodes[*name]
                    .finished
                    .values()
                    .map(|k| wire::JobEvent::Finished(Box::new(k.report.clone())));
                let ends = ends.collect();
                self.world.say(name, wire::NodeMessage::Jobs(ends));
                self.world.settle();
            }
            ["crash", landed @ ..] => {
                self.world.crash(landed.first().map_or(0, |n| n.parse().expect("a number of commits")));
                for (_, what) in std::mem::take(&mut self.waiting) {
                    self.say(format!("no reply to {what}"));
                }
            }
            ["restart"] => self.world.restart(),
            ["stop"] => self.world.stop(),
            ["hold"] => self.world.hold = true,
            ["go"] => {
                self.world.hold = false;
                self.world.settle();
            }
            ["commit", count @ ..] => {
                self.world
                    .commit(count.first().map_or(usize::MAX, |n| n.parse().expect("a number of commits")));
                self.world.settle();
            }
            ["tick", span] => self.world.pass(Span::parse(span).expect("a span like 500ms, 10s, 1m")),
            ["as", user] => self.user = (*user).to_owned(),
            ["show", what] => self.show(what),
            ["op", "start", rest @ ..] => self.start(rest, line),
            ["op", verb, name, rest @ ..] => {
                let operation = self.operation(name);
                let text = (!rest.is_empty()).then(|| rest.join(" "));
                let command = match *verb {
                    "abort" => Command::AbortOperation { operation, message: text },
                    "suspend" => Command::SuspendOperation {
                        operation,
                        abort_running_jobs: text.as_deref() == Some("abort"),
                        reason: text.filter(|t| t != "abort"),
                    },
                    "resume" => Command::ResumeOperation { operation },
                    "complete" => Command::CompleteOperation { operation },
                    "update" => {
                        Command::UpdateOperationParameters { operation, parameters: map(&rest.join(" ")) }
                    }
                    "get" => {
                        let attributes = Some(rest.iter().map(|a| (*a).to_owned()).collect());
                        Command::GetOperation { operation, attributes }
                    }
                    _ => panic!("op: unknown verb {verb}"),
                };
                self.send(line, None, command);
            }
            ["ops", options @ ..] => {
                let mut query = ListOperations { limit: 100, ..ListOperations::default() };
                for (key, value) in pairs(options) {
                    let text = Some(value.to_owned());
                    match key {
                        "state" => query.state = text,
                        "user" => query.user = text,
                        "pool" => query.pool = text,
                        "filter" => query.filter = text,
                        "limit" => query.limit = value.parse().expect("a limit"),
                        "failed" => query.with_failed_jobs = Some(value == "true"),
                        "counters" => query.include_counters = value == "true",
                        _ => panic!("ops: unknown filter {key}"),
                    }
                }
                self.send(line, None, Command::ListOperations(Box::new(query)));
            }
            ["job", verb, job] => {
                let (_, job_id) = self.job(job);
                let command = match *verb {
                    "abort" => Command::AbortJob { operation: None, job_id, interrupt_timeout: None },
                    "interrupt" => Command::AbortJob {
                        operation: None,
                        job_id,
                        interrupt_timeout: Some(Span::from_secs(5)),
                    },
                    "abandon" => Command::AbandonJob { operation: None, job_id },
                    _ => panic!("job: unknown verb {verb}"),
                };
                self.send(line, None, command);
            }
            ["pool", "create", name, options @ ..] => {
                let mut attributes = yson::map! { "name" => *name, "pool_tree" => "physical" };
                attributes.extend_with(options);
                self.create(line, "scheduler_pool", None, attributes);
            }
            ["tree", "create", name, filter] => {
                let config = yson::map! { "nodes_filter" => *filter };
                let attributes = yson::map! { "name" => *name, "config" => config };
                self.create(line, "scheduler_pool_tree", None, attributes);
            }
            ["file", path, blob] => {
                self.create(line, "file", Some(ypath(path)), Map::new());
                let blob = blob.parse().expect("the number of a blob");
                let command =
                    Command::FileWritten { path: ypath(path), blob, size: 10, md5: None, behind: None };
                self.send(line, None, command);
            }
            ["get", path, attributes @ ..] => {
                let attributes = attributes.iter().map(|a| (*a).to_owned()).collect();
                self.send(
                    line,
                    None,
                    Command::Get { path: ypath(path), attributes, max_size: None, fields: None },
                );
            }
            ["list", path] => {
                self.send(
                    line,
                    None,
                    Command::List { path: ypath(path), attributes: Vec::new(), max_size: None },
                );
            }
            ["exists", path] => self.send(line, None, Command::Exists { path: ypath(path) }),
            ["remove", path, options @ ..] => {
                let recursive = options.contains(&"recursive");
                self.send(line, None, Command::Remove { path: ypath(path), recursive, force: false });
            }
            ["set", path, value @ ..] => {
                let value = value_of(&value.join(" "));
                self.send(
                    line,
                    None,
                    Command::Set { path: ypath(path), value, recursive: false, force: false },
                );
            }
            ["multiset", path, value @ ..] => {
                let attributes = map(&value.join(" "));
                self.send(line, None, Command::MultisetAttributes { path: ypath(path), attributes });
            }
            ["move", source, destination] => {
                let command = Command::CopyMove {
                    source: ypath(source),
                    destination: ypath(destination),
                    remove_source: true,
                    options: CopyOptions::default(),
                };
                self.send(line, None, command);
            }
            ["create", object_type, path, options @ ..] => {
                let mut attributes = Map::new();
                attributes.extend_with(options);
                self.create(line, object_type, Some(ypath(path)), attributes);
            }
            _ => panic!("unknown command: {line}"),
        }
    }

    fn connect(&mut self, name: &str) {
        self.world.connect(name);
        self.world.settle();
    }

    fn create(&mut self, line: &str, object_type: &str, path: Option<YPath>, attributes: Map) {
        let command = Command::Create {
            object_type: object_type.into(),
            path,
            attributes,
            recursive: false,
            ignore_existing: false,
            force: false,
            ignore_type_mismatch: false,
            lock_existing: false,
        };
        self.send(line, None, command);
    }

    fn start(&mut self, words: &[&str], line: &str) {
        let (words, name) = match words {
            [words @ .., "as", name] => (words, *name),
            _ => panic!("op start ... as NAME"),
        };
        let [pool, options @ ..] = words else { panic!("op start POOL ...") };
        let mut task = yson::map! { "command" => "true", "job_count" => 1i64, "cpu_limit" => 1.0 };
        let mut spec = yson::map! { "pool" => *pool };
        let (mut mutation_id, mut operation_type) = (None, OperationType::Vanilla);
        for (key, value) in pairs(options) {
            match key {
                "jobs" => drop(task.insert("job_count", value_of(value))),
                "cpu" => drop(task.insert("cpu_limit", value_of(value))),
                "file" => drop(task.insert("file_paths", vec![value])),
                "stderr" => drop(task.insert("max_stderr_size", value_of(value))),
                "signal" => drop(task.insert("interruption_signal", value)),
                "gang" => drop(task.insert("gang_options", yson::map! { "size" => value_of(value) })),
                "mid" => mutation_id = Some(Guid([value.parse().expect("a number"), 0, 0, 0])),
                "type" => operation_type = value.parse().expect("a type of operations"),
                _ => drop(spec.insert(key, value_of(value))),
            }
        }
        spec.insert("tasks", yson::map! { "t" => task });
        let request =
            self.world.send(&self.user, mutation_id, Command::StartOperation { operation_type, spec });
        self.waiting.insert(request, line.to_owned());
        self.started.insert(request, name.to_owned());
        self.world.settle();
    }

    /// Operations are named before anything is written about them.
    fn learn_names(&mut self) {
        for (request, name) in &self.started {
            if let Some(Ok(Body::Value(value))) = self.world.replies.get(request)
                && let Some(id) = value.get("operation_id").and_then(Value::as_str)
            {
                let id: OperationId = id.parse().expect("an id of an operation");
                self.names.entry(id.to_string()).or_insert_with(|| name.clone());
                self.operations.insert(name.clone(), id);
            }
        }
    }

    /// A name for the operation that `start_operation` has answered with.
    pub fn name_operation(&mut self, name: &str, answer: &Value) {
        let id = answer.get("operation_id").and_then(Value::as_str).expect("an id");
        self.names.insert(id.to_owned(), name.to_owned());
        self.operations.insert(name.to_owned(), id.parse().expect("an id of an operation"));
    }

    fn send(&mut self, line: &str, mutation_id: Option<Guid>, command: Command) {
        let request = self.world.send(&self.user, mutation_id, command);
        self.waiting.insert(request, line.to_owned());
        self.world.settle();
    }

    fn end(&mut self, node: &str, id: JobId, outcome: JobOutcome) {
        self.world.end_job(node, id, outcome);
        self.world.settle();
    }

    fn operation(&self, name: &str) -> OperationRef {
        match self.operations.get(name) {
            Some(id) => OperationRef::Id(*id),
            None if name.starts_with('*') => OperationRef::Alias(name.into()),
            None => OperationRef::Id(name.parse().expect("the name or id of an operation")),
        }
    }

    /// The node and id of a running job, named `operation/unit`, perhaps with `@node`.
    fn job(&self, name: &str) -> (String, JobId) {
        let (unit, at) = name.split_once('@').map_or((name, None), |(unit, node)| (unit, Some(node)));
        let found = self.world.nodes.values().filter(|n| at.is_none_or(|at| at == n.name)).find_map(|node| {
            let job = node.running.values().find(|j| self.job_name(&j.start.identity) == unit)?;
            Some((node.name.clone(), job.start.identity.job_id))
        });
        found.unwrap_or_else(|| panic!("no job {name} runs"))
    }

    fn job_name(&self, identity: &vocab::JobIdentity) -> String {
        format!("{}/{}", self.named(&identity.operation_id.to_string()), identity.cookie)
    }

    // --- what is written down

    fn report(&mut self) {
        self.learn_names();
        // Jobs are named when they are ordered.
        for event in std::mem::take(&mut self.world.events) {
            match event {
                Event::Ordered(ServerMessage::Start(starts)) => {
                    for StartJob { identity: id, .. } in starts {
                        let name = format!("{}/{}#{}", id.operation_id, id.cookie, id.job_index);
                        self.jobs.insert(id.allocation_id.to_string(), format!("place of {name}"));
                        self.jobs.insert(id.job_id.to_string(), name);
                    }
                }
                Event::Ordered(_) => {}
                Event::Arrived(node, message) => self.order(&node, &message),
                Event::Replied(request) => {
                    if self.waiting.remove(&request).is_none() {
                        continue;
                    }
                    let body = self.world.replies.remove(&request).expect("a reply that arrived is there");
                    self.reply(body);
                }
                Event::Deleted(what) => self.say(format!("{what} deleted")),
                Event::Closed(node) => self.say(format!("{node}: connection closed by the server")),
            }
        }
    }

    fn order(&mut self, node: &str, message: &ServerMessage) {
        let jobs = |jobs: Vec<String>| jobs.join(" ");
        let text = match message {
            ServerMessage::Welcome { .. } => "welcome".to_owned(),
            ServerMessage::Refuse(failure) => format!("refused: {failure}"),
            ServerMessage::Heard { from, extended_until } if extended_until.0 > 0 => {
                format!("heard {from}, extended")
            }
            ServerMessage::Heard { from, .. } => format!("heard {from}"),
            ServerMessage::Start(starts) => {
                format!("start {}", jobs(starts.iter().map(|s| s.identity.job_id.to_string()).collect()))
            }
            ServerMessage::Abort(orders) => {
                let one = |o: &wire::AbortJob| format!("{} {}", o.job_id, o.reason);
                format!("abort {}", jobs(orders.iter().map(one).collect()))
            }
            ServerMessage::Interrupt { job_id, reason, .. } => format!("interrupt {job_id} {reason}"),
            ServerMessage::Fail { job_id, error } => format!("fail {job_id} {error}"),
            ServerMessage::Release(ids) => {
                format!("release {}", jobs(ids.iter().map(JobId::to_string).collect()))
            }
            ServerMessage::ReadStderr { .. } => "read stderr".to_owned(),
            ServerMessage::Shell { .. } => "shell".to_owned(),
        };
        self.say(format!("{node} <- {text}"));
    }

    fn reply(&mut self, body: Result<Body, Failure>) {
        let line = match body {
            Ok(body) => match self.read(body) {
                Ok(Value::Entity) => "ok".to_owned(),
                Ok(Value::Map(map))
                    if map.len() == 1 && (map.contains("object_id") || map.contains("node_id")) =>
                {
                    "ok, an object".to_owned()
                }
                Ok(value) => String::from_utf8_lossy(&yson::to_text(&value)).into_owned(),
                Err(failure) => error_line(&failure),
            },
            Err(failure) => error_line(&failure),
        };
        let line = match line.len() {
            0..=600 => line,
            n => format!("{}... ({n} bytes)", line.chars().take(600).collect::<String>()),
        };
        self.say(line);
    }

    /// What the edge does with an answer: reads archives.
    pub fn read(&self, body: Body) -> Result<Value, Failure> {
        let archived = |id: OperationId| -> Value {
            let record = self.world.durable.get(&(Table::OperationArchive, id.0.to_bytes().to_vec()));
            record.map(|bytes| yson::parse(bytes).expect("records are YSON")).unwrap_or_default()
        };
        let only = |value: Value, wanted: &Option<Vec<String>>| -> Value {
            let map = value.as_map().cloned().unwrap_or_default();
            let wanted = |key: &[u8]| wanted.as_ref().is_none_or(|w| w.iter().any(|x| x.as_bytes() == key));
            Value::Map(map.into_iter().filter(|(key, _)| wanted(key)).collect())
        };
        match body {
            Body::Value(value) => Ok(value),
            Body::ArchivedOperation { id, node, attributes, steps } => {
                let record = archived(id).as_map().cloned().unwrap_or_default();
                let map: Map = node.into_iter().chain(record).collect();
                kernel::walk(&only(map.into(), &attributes), "operation", &steps)
            }
            Body::OperationList { rows, attributes: _, rest } => {
                let id = |row: &OperationRow| match row {
                    OperationRow::Live(map) => map.get("id").cloned().unwrap_or_default(),
                    OperationRow::Archived(id) => (*id).into(),
                };
                let ids: Vec<Value> = rows.iter().map(id).collect();
                Ok(Value::Map(yson::map! { "operations" => ids }.into_iter().chain(rest).collect()))
            }
            other => panic!("the console does not read {other:?}"),
        }
    }

    /// Attributes of an operation now, live or archived.
    pub fn attributes(&mut self, id: OperationId, attributes: &[&str]) -> Result<Map, Failure> {
        let attributes = Some(attributes.iter().map(|a| (*a).to_owned()).collect());
        let command = Command::GetOperation { operation: OperationRef::Id(id), attributes };
        let request = self.world.send("root", None, command);
        self.world.settle();
        let reply = self.world.replies.remove(&request);
        let body = reply.unwrap_or_else(|| Err(Failure::new("no reply, commits are held")))?;
        Ok(self.read(body)?.as_map().cloned().unwrap_or_default())
    }
}

/// `error 1915(200): message`.
fn error_line(failure: &Failure) -> String {
    fn codes(failure: &Failure) -> String {
        let inner: Vec<String> = failure.inner_errors.iter().map(codes).collect();
        if inner.is_empty() {
            failure.code.to_string()
        } else {
            format!("{}({})", failure.code, inner.join(" "))
        }
    }
    format!("error {}: {failure}", codes(failure))
}

fn pairs<'a>(words: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a str)> {
    words
        .iter()
        .map(|word| word.split_once('=').unwrap_or_else(|| panic!("expected key=value, found {word}")))
}

/// A YSON value; bare words are strings.
fn value_of(text: &str) -> Value {
    yson::parse(text.as_bytes()).unwrap_or_else(|_| text.into())
}

fn map(text: &str) -> Map {
    value_of(text).as_map().cloned().unwrap_or_else(|| panic!("expected a map, found {text}"))
}

fn ypath(text: &str) -> YPath {
    YPath::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

trait Extend {
    /// `a=1 strong.cpu=2`: dots go into maps.
    fn extend_with(&mut self, options: &[&str]);
}

impl Extend for Map {
    fn extend_with(&mut self, options: &[&str]) {
        for (key, value) in pairs(options) {
            let key = match key.split_once('.') {
                Some(("strong", r)) => format!("strong_guarantee_resources.{r}"),
                Some(("limits", r)) => format!("resource_limits.{r}"),
                _ => match key {
                    "max_running" => "max_running_operation_count".to_owned(),
                    "max_ops" => "max_operation_count".to_owned(),
                    "parent" => "parent_name".to_owned(),
                    other => other.to_owned(),
                },
            };
            match key.split_once('.') {
                Some((outer, inner)) => {
                    let map = self.entry_or_insert(outer, || Map::new().into());
                    map.as_map_mut().expect("a map").insert(inner, value_of(value));
                }
                None => drop(self.insert(key, value_of(value))),
            }
        }
    }
}
