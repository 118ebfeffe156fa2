//! Which node is on which stream, and which requests wait for an answer.

use api::Hangup;
use kernel::{Body, Effect, NodeKey};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use tokio::sync::{mpsc, oneshot};
use vocab::{Failure, JobId, OperationId, ShellAnswer, ShellRequest};
use wire::ServerMessage;

/// The stream of a node. Dropping it closes both of its halves.
struct NodeStream {
    orders: mpsc::UnboundedSender<ServerMessage>,
    /// The connection, if it is one of a node with an identity.
    hangup: Option<Arc<Hangup>>,
    _open: oneshot::Sender<()>,
}

impl NodeStream {
    fn send(&self, message: ServerMessage) -> bool {
        self.orders.send(message).is_ok()
    }
}

/// The server's ends of the stream of a node.
pub struct Opened {
    /// What the node is to be told.
    pub orders: mpsc::UnboundedReceiver<ServerMessage>,
    /// Resolves when the stream is closed: what the node says afterwards does not count.
    pub closed: oneshot::Receiver<()>,
}

type StderrAnswer = oneshot::Sender<Result<Vec<u8>, Failure>>;
/// With the bytes that it may have.
type BoundedAnswer = (u64, StderrAnswer);
type ShellReply = oneshot::Sender<Result<ShellAnswer, Failure>>;
type Answer = oneshot::Sender<Result<Body, Failure>>;

/// Longest answer of a node to a question about a stderr or a shell. Nodes answer with at most 8 MiB at a time.
const LONGEST_ANSWER: u64 = 16 << 20;

/// Shared by the kernel's thread (which delivers), the API and the node service.
#[derive(Default)]
pub struct Hub {
    next: AtomicU64,
    requests: Mutex<HashMap<u64, Answer>>,
    nodes: Mutex<HashMap<NodeKey, NodeStream>>,
    /// With the bytes that were asked for at most.
    stderr_requests: Mutex<HashMap<u64, (NodeKey, BoundedAnswer)>>,
    shell_requests: Mutex<HashMap<u64, (NodeKey, ShellReply)>>,
    /// Open connections by SHA-256 of the public key that they have proved to have.
    connections: Mutex<HashMap<String, Vec<Weak<Hangup>>>>,
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

/// The place for the answer to a question, if it was put to this node. Numbers of questions can be guessed.
fn take_of<T>(requests: &Mutex<HashMap<u64, (NodeKey, T)>>, node: NodeKey, request_id: u64) -> Option<T> {
    let mut requests = lock(requests);
    match requests.get(&request_id) {
        Some((asked, _)) if *asked == node => requests.remove(&request_id).map(|(_, place)| place),
        Some((asked, _)) => {
            tracing::warn!(node = node.0, asked = asked.0, "a node has answered a question to another one");
            None
        }
        None => None,
    }
}

impl Hub {
    /// A number for a request and the place where its answer will come.
    pub fn expect_answer(&self) -> (u64, oneshot::Receiver<Result<Body, Failure>>) {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        lock(&self.requests).insert(id, sender);
        (id, receiver)
    }

    /// A node has opened a stream on a connection.
    pub fn open(&self, hangup: Option<Arc<Hangup>>) -> (NodeKey, Opened) {
        let key = NodeKey(self.next.fetch_add(1, Ordering::Relaxed) + 1);
        let (sender, orders) = mpsc::unbounded_channel();
        let (open, closed) = oneshot::channel();
        lock(&self.nodes).insert(key, NodeStream { orders: sender, hangup, _open: open });
        (key, Opened { orders, closed })
    }

    /// A connection has proved to have a key.
    pub fn connected(&self, key_sha256: &str, hangup: &Arc<Hangup>) {
        let mut connections = lock(&self.connections);
        let of_key = connections.entry(key_sha256.to_owned()).or_default();
        if !of_key.iter().any(|known| known.as_ptr() == Arc::as_ptr(hangup)) {
            of_key.push(Arc::downgrade(hangup));
            connections.retain(|_, of_key| {
                of_key.retain(|known| known.strong_count() > 0);
                !of_key.is_empty()
            });
        }
    }

    /// The key is refused from now on: ends all of its connections.
    pub fn hang_up(&self, key_sha256: &str) {
        let of_key = lock(&self.connections).remove(key_sha256).unwrap_or_default();
        of_key.iter().filter_map(Weak::upgrade).for_each(|hangup| hangup.hang_up());
    }

    /// The stream is gone.
    pub fn close(&self, key: NodeKey) {
        lock(&self.nodes).remove(&key);
        // Whoever waits for its shells asks again when it is back.
        lock(&self.shell_requests).retain(|_, (node, _)| *node != key);
        lock(&self.stderr_requests).retain(|_, (node, _)| *node != key);
    }

    /// Ends a stream and its connection: the node is refused, or has another stream.
    fn disconnect(&self, key: NodeKey) {
        if let Some(hangup) = lock(&self.nodes).get(&key).and_then(|stream| stream.hangup.clone()) {
            hangup.hang_up();
        }
        self.close(key);
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
                    stream.send(message);
                }
            }
            Effect::Disconnect(node) => self.disconnect(node),
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
        lock(&self.stderr_requests).insert(request_id, (node, (limit.min(LONGEST_ANSWER), sender)));
        let message = ServerMessage::ReadStderr { request_id, job_id, offset, limit };
        let sent = lock(&self.nodes).get(&node).is_some_and(|stream| stream.send(message));
        if !sent {
            lock(&self.stderr_requests).remove(&request_id);
            return None;
        }
        Some(receiver)
    }

    /// The answer of a node. It counts only if this node was asked.
    pub fn stderr_answer(&self, node: NodeKey, request_id: u64, result: Result<Vec<u8>, Failure>) {
        if let Some((limit, answer)) = take_of(&self.stderr_requests, node, request_id) {
            let result = result.and_then(|bytes| match bytes.len() as u64 > limit {
                false => Ok(bytes),
                true => Err(Failure::new(format!(
                    "The node has answered with {} bytes of stderr, and was asked for at most {limit}",
                    bytes.len()
                ))),
            });
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
        let sent = lock(&self.nodes).get(&node).is_some_and(|stream| stream.send(message));
        if !sent {
            return None;
        }
        receiver.await.ok()
    }

    /// The answer of a node. It counts only if this node was asked.
    pub fn shell_answer(&self, node: NodeKey, request_id: u64, result: Result<ShellAnswer, Failure>) {
        if let Some(answer) = take_of(&self.shell_requests, node, request_id) {
            let is_long = |answer: &ShellAnswer| answer.output.len() as u64 > LONGEST_ANSWER;
            let result = match result {
                Ok(answer) if is_long(&answer) => {
                    let text = format!("The node has answered with more than {LONGEST_ANSWER} bytes");
                    Err(Failure::new(text))
                }
                result => result,
            };
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

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::Guid;

    fn is_closed(opened: &mut Opened) -> bool {
        !matches!(opened.closed.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    /// S7: a node could answer for another one by guessing the number of the question.
    #[test]
    fn an_answer_counts_only_from_the_node_that_was_asked() {
        let hub = Hub::default();
        let (asked, mut of_asked) = hub.open(None);
        let (liar, _of_liar) = hub.open(None);
        let job_id = JobId(Guid([1, 2, 3, 4]));
        let mut answer = hub.ask_stderr(asked, job_id, 0, 10).expect("the node is there");
        let question = of_asked.orders.try_recv().expect("the question");
        let ServerMessage::ReadStderr { request_id, .. } = question else { panic!("{question:?}") };
        hub.stderr_answer(liar, request_id, Ok(b"a lie".to_vec()));
        assert!(answer.try_recv().is_err(), "nobody has answered yet");
        hub.stderr_answer(asked, request_id, Ok(b"the truth".to_vec()));
        assert_eq!(answer.try_recv().expect("an answer").expect("bytes"), b"the truth");
        // S7: nor does it count if it is longer than what was asked for.
        let mut answer = hub.ask_stderr(asked, job_id, 0, 3).expect("the node is there");
        let question = of_asked.orders.try_recv().expect("the question");
        let ServerMessage::ReadStderr { request_id, .. } = question else { panic!("{question:?}") };
        hub.stderr_answer(asked, request_id, Ok(b"four".to_vec()));
        let refused = answer.try_recv().expect("an answer").expect_err("it is too long").to_string();
        assert!(refused.contains("asked for at most 3"), "{refused}");
        // The same for shells.
        let (sender, mut shell) = oneshot::channel();
        lock(&hub.shell_requests).insert(99, (asked, sender));
        hub.shell_answer(liar, 99, Err(Failure::new("a lie")));
        assert!(shell.try_recv().is_err(), "nobody has answered yet");
        hub.shell_answer(asked, 99, Err(Failure::new("the truth")));
        assert!(shell.try_recv().expect("an answer").is_err_and(|why| why.message == "the truth"));
    }

    /// S7: a node that was revoked was listened to for as long as it kept its half of the stream open.
    #[test]
    fn a_disconnected_node_is_not_listened_to_and_its_connection_ends() {
        let hub = Hub::default();
        let hangup = Arc::new(Hangup::default());
        let (node, mut opened) = hub.open(Some(Arc::clone(&hangup)));
        let waits = hub.ask_stderr(node, JobId(Guid([1, 2, 3, 4])), 0, 10);
        assert!(!is_closed(&mut opened) && !hangup.is_ordered());
        hub.deliver(Effect::Disconnect(node));
        assert!(is_closed(&mut opened) && hangup.is_ordered());
        assert!(
            waits.expect("it was asked").try_recv().is_err_and(|e| e == oneshot::error::TryRecvError::Closed)
        );
        // A stream that ends by itself says nothing about its connection; a stop of the server ends all streams.
        let hangup = Arc::new(Hangup::default());
        let (node, _) = hub.open(Some(Arc::clone(&hangup)));
        hub.close(node);
        let (_, mut opened) = hub.open(None);
        hub.close_all();
        assert!(is_closed(&mut opened) && !hangup.is_ordered());
    }

    /// S7: other connections of a refused key go, too; those of other keys stay.
    #[test]
    fn all_connections_of_a_refused_key_end() {
        let hub = Hub::default();
        let [first, second, other] = [(); 3].map(|()| Arc::new(Hangup::default()));
        hub.connected("bad", &first);
        hub.connected("bad", &second);
        hub.connected("bad", &second);
        hub.connected("good", &other);
        hub.hang_up("bad");
        assert!(first.is_ordered() && second.is_ordered() && !other.is_ordered());
        drop((first, second, other));
        hub.connected("new", &Arc::default());
        hub.connected("new", &Arc::default());
        let left = lock(&hub.connections);
        assert_eq!((left.len(), left["new"].len()), (1, 1), "closed connections are forgotten");
    }
}
