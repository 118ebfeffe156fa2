//! Which node is on which stream, and which requests wait for an answer.

use kernel::{Body, Effect, NodeKey};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot};
use vocab::{Failure, JobId, OperationId, ShellAnswer, ShellRequest};
use wire::ServerMessage;

type NodeStream = mpsc::UnboundedSender<ServerMessage>;
type StderrAnswer = oneshot::Sender<Result<Vec<u8>, Failure>>;
type ShellReply = oneshot::Sender<Result<ShellAnswer, Failure>>;
type Answer = oneshot::Sender<Result<Body, Failure>>;

/// Shared by the kernel's thread (which delivers), the API and the node service.
#[derive(Default)]
pub struct Hub {
    next: AtomicU64,
    requests: Mutex<HashMap<u64, Answer>>,
    nodes: Mutex<HashMap<NodeKey, NodeStream>>,
    stderr_requests: Mutex<HashMap<u64, StderrAnswer>>,
    shell_requests: Mutex<HashMap<u64, (NodeKey, ShellReply)>>,
    failed: AtomicBool,
    failures: AtomicU64,
    failure: Mutex<Option<Failure>>,
}

/// What the hub cannot do itself: it needs the store or other files.
pub enum Errand {
    /// Remove a blob from the store.
    DeleteBlob(u64),
    /// Remove everything that is archived of an operation.
    ForgetOperation(OperationId),
    /// Remove what the start has held back.
    CollectGarbage,
    /// Append to the event log: number of the first event, and the record of the store.
    Log(u64, Vec<u8>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Hub {
    /// A number for a request and the place where its answer will come.
    pub fn expect_answer(&self) -> (u64, oneshot::Receiver<Result<Body, Failure>>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        lock(&self.requests).insert(id, sender);
        (id, receiver)
    }

    /// A node has opened a stream.
    pub fn open(&self) -> (NodeKey, mpsc::UnboundedReceiver<ServerMessage>) {
        let key = NodeKey(self.next.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, receiver) = mpsc::unbounded_channel();
        lock(&self.nodes).insert(key, sender);
        (key, receiver)
    }

    /// The stream is gone.
    pub fn close(&self, key: NodeKey) {
        lock(&self.nodes).remove(&key);
        // Whoever waits for its shells asks again when it is back.
        lock(&self.shell_requests).retain(|_, (node, _)| *node != key);
    }

    /// Ends all streams: the server stops.
    pub fn close_all(&self) {
        lock(&self.nodes).clear();
    }

    /// Carries out an effect whose time has come; gives back what is not its own.
    pub fn deliver(&self, effect: Effect) -> Option<Errand> {
        match effect {
            Effect::Reply { request, body, .. } => {
                if let Some(answer) = lock(&self.requests).remove(&request) {
                    // Whoever asked may have gone.
                    let _ = answer.send(body);
                }
            }
            Effect::ToNode { node, message, .. } => {
                if let Some(stream) = lock(&self.nodes).get(&node) {
                    let _ = stream.send(message);
                }
            }
            Effect::Disconnect(node) => self.close(node),
            Effect::DeleteBlob { blob, .. } => return Some(Errand::DeleteBlob(blob)),
            Effect::ForgetOperation { id, .. } => return Some(Errand::ForgetOperation(id)),
            Effect::Events { first, stored, .. } => return Some(Errand::Log(first, stored)),
            Effect::CollectGarbage { .. } => return Some(Errand::CollectGarbage),
            Effect::Commit { .. } => {}
        }
        None
    }

    /// Asks a node for the stderr of a job that runs on it.
    pub fn ask_stderr(
        &self,
        node: NodeKey,
        job_id: JobId,
        offset: u64,
        limit: u64,
    ) -> Option<oneshot::Receiver<Result<Vec<u8>, Failure>>> {
        let request_id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        lock(&self.stderr_requests).insert(request_id, sender);
        let message = ServerMessage::ReadStderr { request_id, job_id, offset, limit };
        let sent = lock(&self.nodes).get(&node).is_some_and(|stream| stream.send(message).is_ok());
        if !sent {
            lock(&self.stderr_requests).remove(&request_id);
            return None;
        }
        Some(receiver)
    }

    /// A node's answer.
    pub fn stderr_answer(&self, request_id: u64, result: Result<Vec<u8>, Failure>) {
        if let Some(answer) = lock(&self.stderr_requests).remove(&request_id) {
            let _ = answer.send(result);
        }
    }

    /// Asks a node for a shell beside a job that runs on it. None if there is no answer to wait for, or
    /// the node leaves before it comes; a wait that is given up is forgotten.
    pub async fn ask_shell(
        &self,
        node: NodeKey,
        job_id: JobId,
        request: ShellRequest,
    ) -> Option<Result<ShellAnswer, Failure>> {
        let request_id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        lock(&self.shell_requests).insert(request_id, (node, sender));
        let _forgotten = Forgotten { hub: self, request_id };
        let message = ServerMessage::Shell { request_id, job_id, request };
        let sent = lock(&self.nodes).get(&node).is_some_and(|stream| stream.send(message).is_ok());
        if !sent {
            return None;
        }
        receiver.await.ok()
    }

    /// A node's answer.
    pub fn shell_answer(&self, request_id: u64, result: Result<ShellAnswer, Failure>) {
        if let Some((_, answer)) = lock(&self.shell_requests).remove(&request_id) {
            let _ = answer.send(result);
        }
    }

    /// The store cannot be written: nodes are sent away until it can be again.
    pub fn fail(&self, failure: &Failure) {
        *lock(&self.failure) = Some(failure.clone());
        self.failed.store(true, Ordering::Release);
        self.failures.fetch_add(1, Ordering::AcqRel);
        self.close_all();
        // Nobody else hears that the streams are closed.
        lock(&self.shell_requests).clear();
        lock(&self.stderr_requests).clear();
    }

    /// The store can be written again.
    pub fn recover(&self) {
        // A node may have come in the moment of the failure: its words went nowhere.
        self.close_all();
        self.failed.store(false, Ordering::Release);
        *lock(&self.failure) = None;
    }

    /// Grows with each failure of the store: what the kernel was told before is forgotten.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Acquire)
    }

    /// Why nothing can be changed at the moment.
    pub fn failure(&self) -> Option<Failure> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        lock(&self.failure).clone()
    }
}

/// Takes a question for a shell off the list, however the wait for its answer ends.
struct Forgotten<'a> {
    hub: &'a Hub,
    request_id: u64,
}

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        lock(&self.hub.shell_requests).remove(&self.request_id);
    }
}
