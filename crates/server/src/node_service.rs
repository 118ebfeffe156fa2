//! The server's side of the node protocol.

use crate::backend::{ServerBackend, wait};
use crate::core_thread::now;
use crate::hub::{Hub, Opened};
use crate::job_rows::{self, JobInput, unread_rows};
use crate::node_authority::{NodeAuthority, SigningRequest, key_of_certificate};
use crate::refusals::Refusals;
use crate::room::Room;
use crate::uploads::{Permit, Uploads};
use api::secrets::{same_secret, sha256};
use kernel::{Body, Command, FailContext, Input, JoinRequest, NodeKey, NodeProof, Upload};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use store::Store;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::service::Interceptor;
use tonic::{Request, Response, Status, Streaming};
use vocab::{Failure, JobId, ObjectId, Span, Time, code};
use wire::proto::pb::node_service_server::NodeService;
use wire::proto::{encoded_size, id_from, lost_blob, pb};
use wire::{NodeMessage, PROTOCOL_VERSION};
use yson::{Format, Style, Value};

/// See the module page.
#[derive(Clone)]
pub struct Nodes {
    pub(crate) backend: ServerBackend,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) authority: Arc<NodeAuthority>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) uploads: Arc<Uploads>,
}

/// When a node that waits for an approval asks again.
const PENDING_PERIOD: Span = Span::from_secs(3);

/// Bytes of messages that one stream of a node may have in the mailbox of the kernel, beside the last one. A Hello of a node with a
/// thousand finished jobs is as large.
const AHEAD: usize = 64 << 20;

/// How calls come in.
#[derive(Clone)]
pub(crate) enum Entrance {
    /// By the door for nodes: each call proves who it is from.
    Identities,
    /// In clear, because the operator wants it, with the token that all nodes share; `None`: the server asks for none.
    Insecure(Option<String>),
    /// In clear, and refused.
    Closed,
}

/// Refuses calls before anything of what they carry is read. While the store cannot be written all calls are refused: nodes keep
/// what they have and try again.
pub(crate) fn admission(
    entrance: Entrance,
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
        let shown = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        let from = peer(&request);
        let token = match &entrance {
            Entrance::Identities | Entrance::Insecure(None) => return Ok(request),
            Entrance::Insecure(Some(token)) => token,
            Entrance::Closed => {
                if shown.is_some() {
                    refusals.wrong_node_token(from);
                }
                return Err(Status::unauthenticated(
                    "The server speaks with nodes by TLS only, and each has an identity of its own in the place of node.token: \
                     give this node one with `millpond node join`, and leave out --insecure-plaintext",
                ));
            }
        };
        match shown.and_then(|text| text.strip_prefix("OAuth ")) {
            Some(shown) if same_secret(shown.trim(), token) => Ok(request),
            Some(_) => {
                refusals.wrong_node_token(from);
                Err(Status::unauthenticated("The server does not know the node's token"))
            }
            None => Err(Status::unauthenticated(
                "The server asks nodes for a token: give the node a copy of the server's node.token by --token-file",
            )),
        }
    }
}

fn peer<T>(request: &Request<T>) -> Option<IpAddr> {
    request.extensions().get::<api::Peer>().map(|peer| peer.0)
}

/// What is known of a call before its body.
struct Caller {
    /// It came by the door for nodes.
    has_link: bool,
    /// What that door has found.
    proof: Option<NodeProof>,
}

impl Caller {
    fn of<T>(request: &Request<T>) -> Caller {
        let known = request.extensions();
        Caller { has_link: known.get::<api::NodeLink>().is_some(), proof: known.get().cloned() }
    }

    /// What the connection of the call has proved.
    fn admitted(self) -> Result<NodeProof, Status> {
        match self.proof {
            Some(proof) => Ok(proof),
            // It came by the public door, and the interceptor has let it in.
            None if !self.has_link => Ok(NodeProof::Insecure),
            None => Err(Status::unauthenticated("This node has proved nothing")),
        }
    }
}

impl Nodes {
    /// What the connection of a call by the door for nodes has proved, if the kernel lets it in.
    pub(crate) async fn prove(&self, known: &axum::http::Extensions) -> Result<NodeProof, Status> {
        if let Some(failure) = self.backend.hub.failure() {
            return Err(Status::unavailable(failure.message));
        }
        let link = known.get::<api::NodeLink>();
        let link = link.ok_or_else(|| Status::internal("A call by the door for nodes has no connection"))?;
        let from = known.get::<api::Peer>().map(|peer| peer.0);
        let certificate = link.certificate.as_ref().ok_or_else(|| {
            Status::unauthenticated(
                "This node has shown no certificate: it must join before it can do anything else",
            )
        })?;
        let key_sha256 = key_of_certificate(certificate).map_err(Status::unauthenticated)?;
        let proof = NodeProof::Certificate { key_sha256: key_sha256.clone() };
        self.backend.hub.connected(&key_sha256, &link.hangup);
        match self.identify(&proof).await {
            Ok(()) => Ok(proof),
            Err(failure) => {
                if failure.code == code::INVALID_CREDENTIALS {
                    self.refusals.refused_node(from, &failure);
                    self.backend.hub.hang_up(&key_sha256);
                }
                Err(refusal(&failure))
            }
        }
    }

    /// Refuses a key that the kernel does not know or does not want.
    async fn identify(&self, proof: &NodeProof) -> Result<(), Failure> {
        let command = Command::IdentifyNode { from: proof.clone() };
        self.backend.value("root".into(), command).await.map(drop)
    }

    /// The stream of a node was closed. If its identity is refused, other connections with it must not go on either.
    async fn hang_up_if_refused(&self, proof: &NodeProof) {
        let NodeProof::Certificate { key_sha256 } = proof else { return };
        let refused = self.identify(proof).await.err();
        if refused.is_some_and(|failure| failure.code == code::INVALID_CREDENTIALS) {
            self.backend.hub.hang_up(key_sha256);
        }
    }

    /// Refuses an upload for a job of another node. `None` if nobody waits for it: the job was given up.
    async fn may_hand_in(
        &self,
        proof: &NodeProof,
        job_id: JobId,
        upload: Upload,
    ) -> Result<Option<Permit>, Status> {
        let command = Command::LocateUpload { from: proof.clone(), job_id, upload };
        let told = self.backend.value("root".into(), command).await.map_err(|failure| refusal(&failure))?;
        Ok(self.uploads.begin(&told, job_id, upload))
    }

    /// An upload was larger than its limit. The node gives it up: to send it again would not help.
    fn too_large(&self, from: &NodeProof, permit: &Permit) -> Status {
        let (job_id, upload, limit) = (permit.job_id(), permit.upload(), permit.limit());
        tracing::warn!(
            %job_id, upload = upload.as_str(), limit,
            "a node has uploaded more for a job than the job can have: dropped"
        );
        self.backend.measures.upload_refused(upload.as_str());
        self.backend.mailbox.send(Input::UploadTooLarge { from: from.clone(), job_id, upload });
        Status::out_of_range(format!(
            "{} of job {job_id}: expected at most {limit} bytes, found more; nothing of it was kept",
            upload.as_str()
        ))
    }

    /// The certificate that the kernel allows.
    fn certify(
        &self,
        name: &str,
        request: &SigningRequest,
        allowed: &Value,
    ) -> Result<pb::JoinReply, Status> {
        let authority = &self.authority;
        let valid_until = allowed.get("valid_until").and_then(Value::as_str).and_then(Time::parse);
        let valid_until =
            valid_until.ok_or_else(|| Status::internal("The kernel has told no end of a certificate"))?;
        let (certificate, valid_from) =
            authority.sign(name, request, now(), valid_until).map_err(|error| {
                tracing::error!(
                    error = format!("{error:#}"),
                    node = name,
                    "cannot make the certificate of a node"
                );
                Status::internal("The server cannot make a certificate: its log says why")
            })?;
        let certificate = pb::Certificate {
            certificate,
            authority: authority.certificate().to_vec(),
            valid_from: valid_from.0,
            valid_until: valid_until.0,
            authentication: allowed.get("authentication").and_then(Value::as_bool).unwrap_or(true),
        };
        Ok(pb::JoinReply { outcome: Some(pb::join_reply::Outcome::Certificate(certificate)) })
    }

    /// Text that a job has left, into a blob: whose, which, and how many bytes. `None` if nobody waits for it.
    async fn receive_text(
        &self,
        proof: &NodeProof,
        upload: Upload,
        mut incoming: Streaming<pb::TextChunk>,
    ) -> Result<Option<(JobId, u64, u64)>, Status> {
        let unavailable = |e: store::StoreError| Status::unavailable(e.to_string());
        let failures = self.backend.hub.failures();
        let first = incoming.message().await?;
        let first = first.ok_or_else(|| Status::invalid_argument("An upload without a chunk"))?;
        let job_id = JobId(id_from("job_id", &first.job_id)?);
        let Some(mut permit) = self.may_hand_in(proof, job_id, upload).await? else { return Ok(None) };
        let mut writer = self.store.begin_blob().map_err(unavailable)?;
        let mut next = Some(first);
        while let Some(chunk) = next {
            if !permit.allows(writer.len(), chunk.data.len()) {
                return Err(self.too_large(proof, &permit));
            }
            // The disk may be slow, and who else is served by this thread must not wait for it.
            let appended =
                tokio::task::spawn_blocking(move || writer.append(&chunk.data).map(|()| writer)).await;
            writer = appended.map_err(|e| Status::internal(e.to_string()))?.map_err(unavailable)?;
            next = permit.unless_displaced(incoming.message()).await?;
        }
        let size = writer.len();
        let finish = tokio::task::spawn_blocking(move || writer.finish());
        let blob = finish.await.map_err(|e| Status::internal(e.to_string()))?.map_err(unavailable)?;
        self.demand_same_life(failures)?;
        Ok(Some((job_id, blob, size)))
    }

    /// Hands on what a node says, until its stream ends.
    async fn listen(
        &self,
        proof: &NodeProof,
        key: NodeKey,
        incoming: &mut Streaming<pb::NodeMessage>,
    ) -> Result<(), Status> {
        let backend = &self.backend;
        let mut ahead = 0;
        while let Some(message) = incoming.message().await? {
            let size = encoded_size(&message);
            match NodeMessage::try_from(message)? {
                NodeMessage::Stderr { request_id, result } => {
                    backend.hub.stderr_answer(key, request_id, result);
                }
                NodeMessage::Shell { request_id, result } => {
                    backend.hub.shell_answer(key, request_id, result);
                }
                message => {
                    backend.mailbox.send(Input::Node { node: key, message });
                    ahead += size;
                }
            }
            // The mailbox takes everything. A node that speaks faster than the kernel reads waits for an answer, which comes
            // after all that was sent before.
            if ahead > AHEAD {
                self.identify(proof).await.map_err(|failure| refusal(&failure))?;
                ahead = 0;
            }
        }
        Ok(())
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
        let proof = Caller::of(&request).admitted()?;
        let hangup = request.extensions().get::<api::NodeLink>().map(|link| Arc::clone(&link.hangup));
        let mut incoming = request.into_inner();
        let (key, Opened { orders, closed }) = self.backend.hub.open(hangup);
        self.backend.mailbox.send(Input::NodeConnected { node: key, proof: proof.clone() });
        let nodes = self.clone();
        tokio::spawn(async move {
            let backend = &nodes.backend;
            tokio::select! {
                // What comes after the end does not count.
                biased;
                _ = closed => tracing::debug!(node = key.0, "stream of a node was closed"),
                ended = nodes.listen(&proof, key, &mut incoming) => {
                    if let Err(status) = ended {
                        tracing::debug!(node = key.0, %status, "stream of a node ended");
                    }
                }
            }
            backend.hub.close(key);
            backend.mailbox.send(Input::NodeDisconnected(key));
            nodes.hang_up_if_refused(&proof).await;
        });
        let outgoing =
            UnboundedReceiverStream::new(orders).map(|message| Ok(pb::ServerMessage::from(&message)));
        Ok(Response::new(Box::pin(outgoing)))
    }

    async fn fetch_file(
        &self,
        request: Request<pb::FileRequest>,
    ) -> Result<Response<Self::FetchFileStream>, Status> {
        let from = Caller::of(&request).admitted()?;
        let request = request.into_inner();
        let file_id = ObjectId(id_from("file_id", &request.file_id)?);
        let command = Command::LocateArtifact { from, file_id, revision: request.revision };
        let answer =
            self.backend.ask("root".into(), None, command).map_err(|f| Status::unavailable(f.to_string()))?;
        let body = wait(answer).await.map_err(|f| match f.code {
            code::UNAVAILABLE => Status::unavailable(f.message),
            _ => Status::not_found(f.to_string()),
        })?;
        let Body::Value(located) = body else { return Err(Status::internal("not a location")) };
        let number = |key: &str| located.get(key).and_then(Value::as_u64).unwrap_or_default();
        let (blob, size) = (number("blob"), number("size"));
        let length = size.saturating_sub(request.offset);
        let stream = self.backend.files.stream(blob, request.offset, length);
        let chunks = stream.map(move |chunk| match chunk {
            Ok(data) => Ok(pb::Chunk { data }),
            // S20: trying again does not help. An error of the disk may pass.
            Err(failure) if failure.find_attribute("missing_blob").is_some() => {
                Err(lost_blob(blob, &format!("of {size} bytes: {failure}")))
            }
            Err(failure) => Err(Status::unavailable(failure.to_string())),
        });
        Ok(Response::new(Box::pin(chunks)))
    }

    async fn upload_stderr(
        &self,
        request: Request<Streaming<pb::TextChunk>>,
    ) -> Result<Response<pb::Empty>, Status> {
        let proof = Caller::of(&request).admitted()?;
        let received = self.receive_text(&proof, Upload::Stderr, request.into_inner()).await?;
        let Some((job_id, blob, size)) = received else { return Ok(Response::new(pb::Empty {})) };
        // The end of the job comes later on the stream of the node, so the kernel knows this first.
        self.backend.mailbox.send(Input::StderrUploaded { from: proof, job_id, blob, size });
        Ok(Response::new(pb::Empty {}))
    }

    async fn upload_fail_context(
        &self,
        request: Request<Streaming<pb::TextChunk>>,
    ) -> Result<Response<pb::Empty>, Status> {
        let proof = Caller::of(&request).admitted()?;
        let received = self.receive_text(&proof, Upload::FailContext, request.into_inner()).await?;
        let Some((job_id, blob, size)) = received else { return Ok(Response::new(pb::Empty {})) };
        let context = FailContext { blob, size };
        // As with stderr.
        self.backend.mailbox.send(Input::FailContextUploaded { from: proof, job_id, context });
        Ok(Response::new(pb::Empty {}))
    }

    async fn fetch_rows(
        &self,
        request: Request<pb::RowsRequest>,
    ) -> Result<Response<Self::FetchRowsStream>, Status> {
        let proof = Caller::of(&request).admitted()?;
        let job_id = JobId(id_from("job_id", &request.into_inner().job_id)?);
        let input = JobInput::locate(&self.backend, proof, job_id).await?;
        let rows = input.stream(Arc::clone(&self.store), Format::Yson(Style::Binary)).map_err(status)?;
        let pieces = rows.map(|piece| match piece {
            Ok(data) => Ok(pb::Chunk { data }),
            Err(failure) => Err(unread_rows(&failure)),
        });
        Ok(Response::new(Box::pin(pieces)))
    }

    async fn upload_rows(
        &self,
        request: Request<Streaming<pb::RowsChunk>>,
    ) -> Result<Response<pb::Empty>, Status> {
        let proof = Caller::of(&request).admitted()?;
        let failures = self.backend.hub.failures();
        let mut incoming = request.into_inner();
        let first = incoming.message().await?;
        let first = first.ok_or_else(|| Status::invalid_argument("An upload without a chunk"))?;
        let (job_id, table) = (JobId(id_from("job_id", &first.job_id)?), first.table);
        let upload = Upload::Rows { table };
        let Some(mut permit) = self.may_hand_in(&proof, job_id, upload).await? else {
            return Ok(Response::new(pb::Empty {}));
        };
        let received = job_rows::receive(&self.backend, &self.store, &mut permit, first, incoming).await?;
        let Some((chunk, room)) = received else { return Err(self.too_large(&proof, &permit)) };
        self.demand_same_life(failures)?;
        // As with stderr: the end of the job comes later.
        let chunk = Box::new(chunk);
        self.backend.mailbox.send(Input::RowsUploaded { from: proof, job_id, table, chunk });
        // The kernel counts them when it reads its mailbox.
        room.into_iter().for_each(Room::settled);
        Ok(Response::new(pb::Empty {}))
    }

    async fn join(&self, request: Request<pb::JoinRequest>) -> Result<Response<pb::JoinReply>, Status> {
        if request.extensions().get::<api::NodeLink>().is_none() {
            return Err(Status::permission_denied("Nodes join by TLS only"));
        }
        let from = peer(&request);
        let pb::JoinRequest { protocol_version, address: name, secret, request } = request.into_inner();
        if protocol_version != PROTOCOL_VERSION {
            return Err(Status::failed_precondition(format!(
                "Node {name} speaks version {protocol_version} of the node protocol, this server speaks {PROTOCOL_VERSION}"
            )));
        }
        let request = SigningRequest::read(&request).map_err(Status::invalid_argument)?;
        let token_sha256 = (!secret.is_empty()).then(|| sha256(&secret));
        let shows_token = token_sha256.is_some();
        let key_sha256 = request.key_sha256.clone();
        let wanted = JoinRequest { name: name.clone(), key_sha256, token_sha256, address: from };
        match self.backend.value("root".into(), Command::JoinNode(Box::new(wanted))).await {
            Ok(answer) if answer.get("state").and_then(Value::as_str) == Some("pending") => {
                let outcome = pb::join_reply::Outcome::Pending(PENDING_PERIOD.as_micros());
                Ok(Response::new(pb::JoinReply { outcome: Some(outcome) }))
            }
            Ok(allowed) => self.certify(&name, &request, &allowed).map(Response::new),
            Err(failure) => {
                if shows_token && failure.code == code::INVALID_CREDENTIALS {
                    self.refusals.wrong_join_token(from, &failure);
                }
                Err(refusal(&failure))
            }
        }
    }

    async fn renew(&self, request: Request<pb::RenewRequest>) -> Result<Response<pb::JoinReply>, Status> {
        let NodeProof::Certificate { key_sha256 } = Caller::of(&request).admitted()? else {
            return Err(Status::permission_denied("A certificate is renewed by TLS only"));
        };
        let request =
            SigningRequest::read(&request.into_inner().request).map_err(Status::invalid_argument)?;
        if request.key_sha256 != key_sha256 {
            return Err(Status::invalid_argument(
                "request: expected the key of this connection's certificate, found another one",
            ));
        }
        let allowed = self.backend.value("root".into(), Command::RenewNode { key_sha256 }).await;
        let allowed = allowed.map_err(|failure| refusal(&failure))?;
        let name = allowed.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.certify(&name, &request, &allowed).map(Response::new)
    }
}

/// What a node is answered that is refused: it tries again only if that may help.
fn refusal(failure: &Failure) -> Status {
    let text = failure.message.clone();
    match failure.code {
        code::INVALID_CREDENTIALS => Status::unauthenticated(text),
        code::UNAVAILABLE => Status::unavailable(text),
        _ => Status::failed_precondition(text),
    }
}

fn status(failure: vocab::Failure) -> Status {
    Status::invalid_argument(failure.to_string())
}
