//! A server that a test can talk through: real gRPC, no brain.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream, UnboundedReceiverStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};
use vocab::{Guid, JobId, Span};
use wire::proto::{MAX_MESSAGE_SIZE, id_from, pb};
use wire::{NodeMessage, ServerMessage};

type Orders = UnboundedSender<Result<pb::ServerMessage, Status>>;

/// What survives a restart of the server.
#[derive(Default)]
pub struct World {
    pub files: Mutex<HashMap<(Guid, u64), Vec<u8>>>,
    pub fetches: Mutex<Vec<(Guid, u64)>>,
    /// Files whose content is gone.
    pub lost: Mutex<Vec<(Guid, u64)>>,
    pub uploads: Mutex<HashMap<JobId, Vec<u8>>>,
    orders: Mutex<Option<Orders>>,
}

/// One life of the server. Dropping it cuts all connections.
pub struct Server {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Where the node's messages come out; the same through all lives.
pub struct Ear(pub Receiver<NodeMessage>);

pub fn ear() -> (Sender<NodeMessage>, Ear) {
    let (sender, receiver) = channel();
    (sender, Ear(receiver))
}

impl Server {
    pub fn start(world: &Arc<World>, heard: Sender<NodeMessage>, address: Option<SocketAddr>) -> Server {
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = channel();
        let service = Service { world: Arc::clone(world), heard };
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let wanted = address.unwrap_or_else(own_address);
                let listener = tokio::net::TcpListener::bind(wanted).await.expect("the port is free");
                ready.send(listener.local_addr().expect("an address")).expect("the test waits");
                let server = pb::node_service_server::NodeServiceServer::new(service)
                    .max_decoding_message_size(MAX_MESSAGE_SIZE);
                let serve = tonic::transport::Server::builder()
                    .add_service(server)
                    .serve_with_incoming(TcpListenerStream::new(listener));
                // Not gracefully: a server that dies says no farewell.
                tokio::select! { r = serve => r.expect("serving"), _ = stopped => {} }
            });
        });
        let address = started.recv().expect("the server starts");
        Server { address, stop: Some(stop), thread: Some(thread) }
    }
}

/// An address that nobody else has, so that the port is still free when the server comes back: connections of others
/// leave from 127.0.0.1, and may be given any port there.
fn own_address() -> SocketAddr {
    static COUNT: AtomicU8 = AtomicU8::new(1);
    let process = std::process::id().to_le_bytes();
    ([127, 64 | (process[1] & 0x3f), process[0], COUNT.fetch_add(1, Ordering::Relaxed)], 0).into()
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl World {
    /// To the node that is connected now.
    pub fn order(&self, message: &ServerMessage) {
        let orders = self.orders.lock().expect("not poisoned");
        orders.as_ref().expect("a node is connected").send(Ok(message.into())).expect("it listens");
    }
}

/// The same for all servers of these tests: their nodes are of one cluster to the host.
pub fn job_uids() -> wire::JobUids {
    let range = vocab::UidRange::new(0x7fff_1000, 0x7fff_10ff).expect("a range");
    wire::JobUids { cluster_id: vocab::Guid([1, 2, 3, 4]), range, claim: range }
}

struct Service {
    world: Arc<World>,
    heard: Sender<NodeMessage>,
}

type Reply<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl pb::node_service_server::NodeService for Service {
    type ConnectStream = Reply<pb::ServerMessage>;
    type FetchFileStream = Reply<pb::Chunk>;
    type FetchRowsStream = Reply<pb::Chunk>;

    async fn connect(
        &self,
        request: Request<Streaming<pb::NodeMessage>>,
    ) -> Result<Response<Self::ConnectStream>, Status> {
        let (sender, receiver) = unbounded_channel();
        let (world, heard) = (Arc::clone(&self.world), self.heard.clone());
        let mut incoming = request.into_inner();
        tokio::spawn(async move {
            while let Ok(Some(message)) = incoming.message().await {
                let message = NodeMessage::try_from(message).expect("nodes speak properly");
                if let NodeMessage::Hello(_) = message {
                    let welcome = ServerMessage::Welcome {
                        heartbeat_period: Span::from_millis(300),
                        job_uids: Some(job_uids()),
                    };
                    let _ = sender.send(Ok((&welcome).into()));
                    *world.orders.lock().expect("not poisoned") = Some(sender.clone());
                }
                if heard.send(message).is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(receiver))))
    }

    async fn fetch_file(
        &self,
        request: Request<pb::FileRequest>,
    ) -> Result<Response<Self::FetchFileStream>, Status> {
        let request = request.into_inner();
        let key = (id_from("file_id", &request.file_id)?, request.revision);
        self.world.fetches.lock().expect("not poisoned").push(key);
        if self.world.lost.lock().expect("not poisoned").contains(&key) {
            return Err(Status::data_loss("blob 7 of 10 bytes: there is no blob 7"));
        }
        let files = self.world.files.lock().expect("not poisoned");
        let content = files.get(&key).ok_or_else(|| Status::not_found("no such file"))?;
        let rest = content[request.offset as usize..].to_vec();
        let (sender, receiver) = tokio::sync::mpsc::channel(2);
        tokio::spawn(async move {
            for piece in rest.chunks(1000) {
                if sender.send(Ok(pb::Chunk { data: piece.to_vec().into() })).await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn fetch_rows(
        &self,
        _: Request<pb::RowsRequest>,
    ) -> Result<Response<Self::FetchRowsStream>, Status> {
        Err(Status::not_found("this world has no tables"))
    }

    async fn join(&self, _: Request<pb::JoinRequest>) -> Result<Response<pb::JoinReply>, Status> {
        Err(Status::unimplemented("this world has no identities"))
    }

    async fn renew(&self, _: Request<pb::RenewRequest>) -> Result<Response<pb::JoinReply>, Status> {
        Err(Status::unimplemented("this world has no identities"))
    }

    async fn upload_rows(&self, _: Request<Streaming<pb::RowsChunk>>) -> Result<Response<pb::Empty>, Status> {
        Err(Status::not_found("this world has no tables"))
    }

    async fn upload_fail_context(
        &self,
        request: Request<Streaming<pb::TextChunk>>,
    ) -> Result<Response<pb::Empty>, Status> {
        self.upload_stderr(request).await
    }

    async fn upload_stderr(
        &self,
        request: Request<Streaming<pb::TextChunk>>,
    ) -> Result<Response<pb::Empty>, Status> {
        let mut chunks = request.into_inner();
        let mut all = Vec::new();
        let mut job_id = None;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            if job_id.is_none() {
                job_id = Some(JobId(id_from("job_id", &chunk.job_id)?));
            }
            all.extend_from_slice(&chunk.data);
        }
        let job_id = job_id.ok_or_else(|| Status::invalid_argument("an empty upload"))?;
        self.world.uploads.lock().expect("not poisoned").insert(job_id, all);
        Ok(Response::new(pb::Empty {}))
    }
}
