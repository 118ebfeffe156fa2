//! The server's side of the node protocol.

use crate::backend::{ServerBackend, wait};
use crate::hub::Hub;
use crate::job_rows::{self, JobInput};
use crate::refusals::Refusals;
use api::secrets::same_secret;
use kernel::{Body, Command, FailContext, Input, NodeKey};
use std::pin::Pin;
use std::sync::Arc;
use store::Store;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::service::Interceptor;
use tonic::{Request, Response, Status, Streaming};
use vocab::{JobId, ObjectId};
use wire::NodeMessage;
use wire::proto::pb::node_service_server::NodeService;
use wire::proto::{id_from, pb};
use yson::{Format, Style, Value};

/// See the module page.
pub struct Nodes {
    pub(crate) backend: ServerBackend,
    pub(crate) store: Arc<dyn Store>,
}

/// Refuses calls without the token of the nodes, before anything of what they carry is read; none: everybody
/// may be one. While the store cannot be written all calls are refused: nodes keep what they have and try again.
pub(crate) fn admission(
    token: Option<String>,
    refusals: Arc<Refusals>,
    hub: Arc<Hub>,
) -> impl Interceptor + Clone {
    move |request: Request<()>| {
        if let Some(failure) = hub.failure() {
            return Err(Status::unavailable(failure.message));
        }
        // A browser can be made to send this by any page, and where nodes show no token that would be enough.
        if ["origin", "sec-fetch-site"].iter().any(|name| request.metadata().contains_key(*name)) {
            return Err(Status::permission_denied("Pages are not nodes"));
        }
        let Some(token) = &token else { return Ok(request) };
        let shown = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        match shown.and_then(|text| text.strip_prefix("OAuth ")) {
            Some(shown) if same_secret(shown.trim(), token) => Ok(request),
            Some(_) => {
                refusals.wrong_node_token(request.extensions().get::<api::Peer>().map(|peer| peer.0));
                Err(Status::unauthenticated("The server does not know the node's token"))
            }
            None => Err(Status::unauthenticated(
                "The server asks nodes for a token: give the node a copy of the server's node.token by --token-file",
            )),
        }
    }
}

impl Nodes {
    /// Text that a job has left, into a blob: whose, which, and how many bytes.
    async fn receive_text(
        &self,
        mut incoming: Streaming<pb::TextChunk>,
    ) -> Result<(JobId, u64, u64), Status> {
        let mut job_id = None;
        let failures = self.backend.hub.failures();
        let mut writer = self.store.begin_blob().map_err(|e| Status::unavailable(e.to_string()))?;
        while let Some(chunk) = incoming.message().await? {
            if job_id.is_none() {
                job_id = Some(JobId(id_from("job_id", &chunk.job_id)?));
            }
            // A few megabytes in all: not worth a thread of their own.
            writer.append(&chunk.data).map_err(|e| Status::unavailable(e.to_string()))?;
        }
        let job_id = job_id.ok_or_else(|| Status::invalid_argument("An upload without a chunk"))?;
        let size = writer.len();
        let finish = tokio::task::spawn_blocking(move || writer.finish());
        let blob = finish
            .await
            .map_err(|e| Status::internal(e.to_string()))?
            .map_err(|e| Status::unavailable(e.to_string()))?;
        self.demand_same_life(failures)?;
        Ok((job_id, blob, size))
    }

    /// Refuses an upload that began before a failure of the store: the next kernel does not know what it belongs to.
    fn demand_same_life(&self, failures: u64) -> Result<(), Status> {
        match self.backend.hub.failures() == failures {
            true => Ok(()),
            false => Err(Status::unavailable("The server had to start anew from its store")),
        }
    }
}

type Out<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl NodeService for Nodes {
    type ConnectStream = Out<pb::ServerMessage>;
    type FetchFileStream = Out<pb::Chunk>;
    type FetchRowsStream = Out<pb::Chunk>;

    async fn connect(
        &self,
        request: Request<Streaming<pb::NodeMessage>>,
    ) -> Result<Response<Self::ConnectStream>, Status> {
        let mut incoming = request.into_inner();
        let (key, orders) = self.backend.hub.open();
        let backend = self.backend.clone();
        tokio::spawn(async move {
            if let Err(status) = listen(&backend, key, &mut incoming).await {
                tracing::debug!(node = key.0, %status, "stream of a node ended");
            }
            backend.hub.close(key);
            backend.mailbox.send(Input::NodeDisconnected(key));
        });
        let outgoing =
            UnboundedReceiverStream::new(orders).map(|message| Ok(pb::ServerMessage::from(&message)));
        Ok(Response::new(Box::pin(outgoing)))
    }

    async fn fetch_file(
        &self,
        request: Request<pb::FileRequest>,
    ) -> Result<Response<Self::FetchFileStream>, Status> {
        let request = request.into_inner();
        let file_id = ObjectId(id_from("file_id", &request.file_id)?);
        let command = Command::LocateArtifact { file_id, revision: request.revision };
        let answer =
            self.backend.ask("root".into(), None, command).map_err(|f| Status::unavailable(f.to_string()))?;
        let body = wait(answer).await.map_err(|f| Status::not_found(f.to_string()))?;
        let Body::Value(located) = body else { return Err(Status::internal("not a location")) };
        let number = |key: &str| located.get(key).and_then(Value::as_u64).unwrap_or_default();
        let (blob, size) = (number("blob"), number("size"));
        let length = size.saturating_sub(request.offset);
        let stream = self.backend.files.stream(blob, request.offset, length);
        let chunks = stream.map(move |chunk| match chunk {
            Ok(data) => Ok(pb::Chunk { data }),
            // S20: trying again does not help. An error of the disk may pass.
            Err(failure) if failure.find_attribute("missing_blob").is_some() => {
                Err(Status::data_loss(format!("blob {blob} of {size} bytes: {failure}")))
            }
            Err(failure) => Err(Status::unavailable(failure.to_string())),
        });
        Ok(Response::new(Box::pin(chunks)))
    }

    async fn upload_stderr(
        &self,
        request: Request<Streaming<pb::TextChunk>>,
    ) -> Result<Response<pb::Empty>, Status> {
        let (job_id, blob, size) = self.receive_text(request.into_inner()).await?;
        // The end of the job comes later on the stream of the node, so the kernel knows this first.
        self.backend.mailbox.send(Input::StderrUploaded { job_id, blob, size });
        Ok(Response::new(pb::Empty {}))
    }

    async fn upload_fail_context(
        &self,
        request: Request<Streaming<pb::TextChunk>>,
    ) -> Result<Response<pb::Empty>, Status> {
        let (job_id, blob, size) = self.receive_text(request.into_inner()).await?;
        let context = FailContext { blob, size };
        // As with stderr.
        self.backend.mailbox.send(Input::FailContextUploaded { job_id, context });
        Ok(Response::new(pb::Empty {}))
    }

    async fn fetch_rows(
        &self,
        request: Request<pb::RowsRequest>,
    ) -> Result<Response<Self::FetchRowsStream>, Status> {
        let job_id = JobId(id_from("job_id", &request.into_inner().job_id)?);
        let input = JobInput::locate(&self.backend, job_id).await?;
        let rows = input.stream(Arc::clone(&self.store), Format::Yson(Style::Binary)).map_err(status)?;
        let pieces = rows.map(|piece| match piece {
            Ok(data) => Ok(pb::Chunk { data }),
            Err(failure) => Err(Status::data_loss(failure.to_string())),
        });
        Ok(Response::new(Box::pin(pieces)))
    }

    async fn upload_rows(
        &self,
        request: Request<Streaming<pb::RowsChunk>>,
    ) -> Result<Response<pb::Empty>, Status> {
        let failures = self.backend.hub.failures();
        let (job_id, table, chunk) =
            job_rows::receive(&self.backend, &self.store, request.into_inner()).await?;
        self.demand_same_life(failures)?;
        // As with stderr: the end of the job comes later.
        self.backend.mailbox.send(Input::RowsUploaded { job_id, table, chunk: Box::new(chunk) });
        Ok(Response::new(pb::Empty {}))
    }
}

fn status(failure: vocab::Failure) -> Status {
    Status::invalid_argument(failure.to_string())
}

async fn listen(
    backend: &ServerBackend,
    key: NodeKey,
    incoming: &mut Streaming<pb::NodeMessage>,
) -> Result<(), Status> {
    while let Some(message) = incoming.message().await? {
        match NodeMessage::try_from(message)? {
            NodeMessage::Stderr { request_id, result } => backend.hub.stderr_answer(request_id, result),
            NodeMessage::Shell { request_id, result } => backend.hub.shell_answer(request_id, result),
            message => backend.mailbox.send(Input::Node { node: key, message }),
        }
    }
    Ok(())
}
