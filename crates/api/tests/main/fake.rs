//! A backend that remembers what it was asked and answers by rule.

use api::{
    Backend, BoxFuture, ByteStream, FileContent, JobDataRequest, JobShellRequest, ReadFile, ReadTable,
    StderrRequest, TableContent, WriteFile, WriteTable,
};
use bytes::Bytes;
use kernel::Versions;
use kernel::command::Command;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_stream::StreamExt as _;
use vocab::{Failure, Guid, ObjectId, ShellAnswer};
use yson::Value;
use yson::ypath::YPath;

/// Answers of a kind that the kernel would give. Paths name the rule:
///
/// - `//missing`: a resolve error; `//panic`, `//panic_later`: programmer's errors;
/// - `//slow`: after 1.5 s; `//held`: once that is let go; `//big`: a large list; `//long_error`: a huge error;
/// - anything that has been set: its value; else the path itself. What was set at `//events` and `//metrics` is the answer
///   about events and metrics.
#[derive(Clone, Default)]
pub struct Fake(Arc<Mutex<State>>);

#[derive(Default)]
pub struct State {
    /// `user [mutation] Command` of each call.
    pub calls: Vec<String>,
    /// Slow and held ones that have come to their end.
    pub finished: usize,
    /// Held ones may end.
    pub is_let_go: bool,
    /// Slow ones that are under way, and the most there ever were at a time.
    pub waiting: usize,
    pub most_waiting: usize,
    pub files: BTreeMap<String, Vec<u8>>,
    values: BTreeMap<String, Value>,
    ids: u32,
    pub changes: tokio::sync::watch::Sender<Versions>,
}

impl Fake {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has been asked since the last time.
    #[allow(dead_code)] // the example does not need it
    pub fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().calls)
    }

    fn is_let_go(&self) -> bool {
        self.lock().is_let_go
    }

    fn note(&self, user: &str, mutation_id: Option<Guid>, what: &dyn std::fmt::Debug) {
        let mutation = mutation_id.map(|id| format!(" [{id}]")).unwrap_or_default();
        let call = readable(&format!("{user}{mutation} {what:?}"));
        if std::env::var_os("FAKE_PRINT").is_some() {
            println!("{call}");
        }
        self.lock().calls.push(call);
    }

    fn id(&self) -> String {
        let mut state = self.lock();
        state.ids += 1;
        format!("{:x}-1-1012f-1", state.ids)
    }

    fn get(&self, path: &YPath) -> Result<Value, Failure> {
        let path = path.text();
        match path.as_str() {
            "//missing" => {
                Err(Failure::resolve("Node / has no child with key \"missing\"").with("path", path))
            }
            "//panic" => panic!("the kernel has a bug"),
            "//big" => Ok(Value::from((0..50_000i64).collect::<Vec<_>>())),
            "//long_error" => {
                Err(Failure::new("x".repeat(200_000)).because(Failure::coded(1205, "y".repeat(100_000))))
            }
            _ => Ok(self.lock().values.get(&path).cloned().unwrap_or_else(|| path.clone().into())),
        }
    }

    fn answer(&self, command: Command) -> Result<Value, Failure> {
        let command = command.inner().clone();
        Ok(match command {
            Command::Get { path, .. } => self.get(&path)?,
            Command::List { .. } => vec!["a", "b"].into(),
            Command::Exists { path } => (path.text() != "//missing").into(),
            Command::Set { path, value, .. } => {
                self.lock().values.insert(path.text(), value);
                Value::Entity
            }
            Command::Create { path: Some(_), .. } | Command::CopyMove { .. } | Command::Link { .. } => {
                yson::map! {"node_id" => self.id()}.into()
            }
            Command::Create { path: None, .. } => yson::map! {"object_id" => self.id()}.into(),
            Command::StartOperation { .. } => yson::map! {"operation_id" => "9f-38-103e8-5e"}.into(),
            Command::GetOperation { attributes, .. } => operation(attributes),
            Command::ListOperations(_) => {
                yson::map! {"operations" => vec![operation(None)], "incomplete" => false}.into()
            }
            Command::ListJobs(_) => {
                yson::map! {"jobs" => Vec::<Value>::new(), "errors" => Vec::<Value>::new()}.into()
            }
            Command::GetJob { job_id, .. } => yson::map! {"job_id" => job_id, "state" => "running"}.into(),
            Command::Authorize(command) => match *command {
                Command::SetUserPassword { user, .. } if user == "forbidden" => {
                    return Err(Failure::coded(vocab::code::ACCESS_DENIED, "Access denied"));
                }
                _ => Value::Entity,
            },
            Command::DescribeUser { user } => yson::map! {"superuser" => user == "root"}.into(),
            Command::CheckPermission { .. } => yson::map! {"action" => "allow"}.into(),
            Command::GetEvents { .. } => self.lock().values.get("//events").cloned().unwrap_or(Value::Entity),
            _ => Value::Entity,
        })
    }
}

fn operation(attributes: Option<Vec<String>>) -> Value {
    let jobs = yson::map! {
        "running" => 0i64, "completed" => 2i64, "pending" => 0i64, "failed" => 0i64, "aborted" => 0i64,
        "lost" => 0i64, "total" => 2i64,
    };
    let error = yson::map! {"code" => 0i64, "message" => "", "attributes" => yson::Map::new()};
    let all = yson::map! {
        "id" => "9f-38-103e8-5e",
        "type" => "vanilla",
        "state" => "completed",
        "start_time" => "2026-01-02T03:04:05.678901Z",
        "suspended" => false,
        "alerts" => yson::Map::new(),
        "unrecognized_spec" => yson::Map::new(),
        "brief_progress" => yson::map! {"state" => "completed", "jobs" => jobs, "build_time" => "2026-01-02T03:04:06.000000Z"},
        "result" => yson::map! {"error" => error},
    };
    match attributes {
        None => all.into(),
        Some(names) => {
            let known = names.iter().filter_map(|n| Some((n, all.get(n)?.clone())));
            known.collect::<yson::Map>().into()
        }
    }
}

impl Backend for Fake {
    fn execute(
        &self,
        user: String,
        mutation_id: Option<Guid>,
        command: Command,
    ) -> BoxFuture<Result<Value, Failure>> {
        self.note(&user, mutation_id, &command);
        let path = match &command {
            Command::Get { path, .. } => path.text(),
            _ => String::new(),
        };
        let answer = self.answer(command);
        let fake = self.clone();
        Box::pin(async move {
            match path.as_str() {
                "//slow" => {
                    {
                        let mut state = fake.lock();
                        state.waiting += 1;
                        state.most_waiting = state.most_waiting.max(state.waiting);
                    }
                    tokio::time::sleep(Duration::from_millis(1500)).await;
                    let mut state = fake.lock();
                    state.waiting -= 1;
                    state.finished += 1;
                }
                "//held" => {
                    while !fake.is_let_go() {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    fake.lock().finished += 1;
                }
                "//panic_later" => panic!("{}", "the kernel has another bug"),
                _ => {}
            }
            answer
        })
    }

    fn changes(&self) -> tokio::sync::watch::Receiver<Versions> {
        self.lock().changes.subscribe()
    }

    fn metrics(&self, user: String) -> BoxFuture<Result<String, Failure>> {
        self.note(&user, None, &"metrics");
        let text =
            self.lock().values.get("//metrics").and_then(Value::as_str).unwrap_or("# EOF\n").to_owned();
        Box::pin(std::future::ready(Ok(text)))
    }

    fn read_stderr(&self, user: String, request: StderrRequest) -> BoxFuture<Result<Bytes, Failure>> {
        self.note(&user, None, &request);
        Box::pin(std::future::ready(Ok(Bytes::from_static(b"stderr \xff of a job\n"))))
    }

    fn read_job_data(&self, user: String, request: JobDataRequest) -> BoxFuture<Result<ByteStream, Failure>> {
        self.note(&user, None, &request);
        let pieces = [Ok(Bytes::from_static(b"rows ")), Ok(Bytes::from_static(b"\xff of a job\n"))];
        Box::pin(std::future::ready(Ok(Box::pin(tokio_stream::iter(pieces)) as ByteStream)))
    }

    fn job_input_paths(&self, user: String, request: JobDataRequest) -> BoxFuture<Result<Value, Failure>> {
        self.note(&user, None, &request);
        Box::pin(std::future::ready(Ok(vec![Value::from("//tmp/t")].into())))
    }

    fn shell(&self, user: String, request: JobShellRequest) -> BoxFuture<Result<ShellAnswer, Failure>> {
        self.note(&user, None, &request);
        let output = b"$ \xff".to_vec();
        let shell_id = Guid([9, 8, 7, 6]);
        let answer = ShellAnswer { shell_id, shell_index: 1, output, consumed_offset: None };
        Box::pin(std::future::ready(Ok(answer)))
    }

    fn run_shell_command(
        &self,
        user: String,
        request: JobShellRequest,
    ) -> BoxFuture<Result<ByteStream, Failure>> {
        self.note(&user, None, &request);
        let pieces = [Ok(Bytes::from_static(b"out ")), Ok(Bytes::from_static(b"\xff put\n"))];
        Box::pin(std::future::ready(Ok(Box::pin(tokio_stream::iter(pieces)) as ByteStream)))
    }

    fn write_file(
        &self,
        user: String,
        request: WriteFile,
        mut body: ByteStream,
    ) -> BoxFuture<Result<(), Failure>> {
        self.note(&user, None, &request);
        let fake = self.clone();
        Box::pin(async move {
            let path = request.path.text();
            if path == "//missing" {
                return Err(Failure::resolve("Node / has no child with key \"missing\""));
            }
            let mut content = Vec::new();
            while let Some(piece) = body.next().await {
                content.extend_from_slice(&piece?);
            }
            fake.lock().files.insert(path, content);
            Ok(())
        })
    }

    /// What was sent is kept as it came.
    fn write_table(
        &self,
        user: String,
        request: WriteTable,
        body: ByteStream,
    ) -> BoxFuture<Result<(), Failure>> {
        let WriteTable { path, transaction, .. } = request;
        let request = WriteFile { path, append: request.append, compute_md5: false, transaction };
        self.write_file(user, request, body)
    }

    fn read_table(&self, user: String, request: ReadTable) -> BoxFuture<Result<TableContent, Failure>> {
        let ReadTable { path, transaction, .. } = request;
        let content = self.read_file(user, ReadFile { path, offset: 0, length: None, transaction });
        Box::pin(async move {
            let FileContent { body, .. } = content.await?;
            Ok(TableContent { start_row_index: 0, row_count: 2, omitted_columns: Vec::new(), body })
        })
    }

    fn read_file(&self, user: String, request: ReadFile) -> BoxFuture<Result<FileContent, Failure>> {
        let ReadFile { path, offset, length, transaction } = request;
        self.note(&user, None, &("read_file", path.text(), offset, length, transaction));
        let content = self.lock().files.get(&path.text()).cloned();
        Box::pin(async move {
            let content = content.ok_or_else(|| Failure::resolve("No such file"))?;
            let from = (offset as usize).min(content.len());
            let to = length.map_or(content.len(), |l| from.saturating_add(l as usize).min(content.len()));
            let mut pieces: Vec<_> =
                content[from..to].chunks(1000).map(|c| Ok(Bytes::copy_from_slice(c))).collect();
            if path.text() == "//breaks" {
                let half = pieces.len() / 2;
                pieces[half] = Err(Failure::new("the disk is gone"));
            }
            Ok(FileContent {
                id: ObjectId(Guid([1, 2, 0x10190, 3])),
                revision: 17,
                length: (to - from) as u64,
                body: Box::pin(tokio_stream::iter(pieces)),
            })
        })
    }
}

/// Byte strings of keys as text: `[116, 109, 112]` becomes `tmp`.
fn readable(debug: &str) -> String {
    let mut out = String::new();
    let mut rest = debug;
    while let Some(start) = rest.find("([") {
        let Some(length) = rest[start..].find("])") else { break };
        let inside = &rest[start + 2..start + length];
        let bytes: Option<Vec<u8>> = inside.split(", ").map(|b| b.parse().ok()).collect();
        match bytes {
            Some(bytes) => {
                out.push_str(&rest[..=start]);
                out.push_str(&String::from_utf8_lossy(&bytes));
                rest = &rest[start + length + 1..];
            }
            None => {
                out.push_str(&rest[..start + 2]);
                rest = &rest[start + 2..];
            }
        }
    }
    out + rest
}
