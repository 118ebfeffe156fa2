//! The connection to the server: opened, listened to, opened again.
//!
//! It is TLS with the identity of this node ([`Holder`]). Only where the operator wants it, it is in clear with the token that all
//! nodes share ([`Link::Insecure`]).

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datadir::SecretError;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};
use wire::proto::{MAX_MESSAGE_SIZE, pb};
use wire::{NodeMessage, ServerMessage};

use crate::NodeError;
use crate::agent::{LinkEnds, News};
use crate::holder::{Holder, Unprepared};
use crate::join::host_and_port;

/// Client of the node service.
pub(crate) type Client = pb::node_service_client::NodeServiceClient<InterceptedService<Channel, Credential>>;

/// What every call carries so that the server lets this node in.
#[derive(Clone, Default)]
pub(crate) struct Credential(Option<MetadataValue<Ascii>>);

impl Credential {
    /// From the file with the token; nothing if there is none (yet): the server may not ask for one.
    fn read(file: Option<&Path>) -> Result<Credential, SecretError> {
        let Some(file) = file else { return Ok(Credential::default()) };
        match datadir::read_secret(file) {
            Ok(text) => {
                let text = String::from_utf8_lossy(&text);
                Ok(Credential(format!("OAuth {}", text.trim()).parse().ok()))
            }
            Err(SecretError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                Ok(Credential::default())
            }
            Err(unusable) => Err(unusable),
        }
    }
}

impl Interceptor for Credential {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(request)
    }
}

/// The client of the living connection, if there is one: downloads and uploads share it.
#[derive(Clone, Default)]
pub(crate) struct CurrentClient {
    client: Arc<Mutex<Option<Client>>>,
    connected: Arc<Notify>,
}

impl CurrentClient {
    /// A handle on the connection of this moment.
    pub fn get(&self) -> Option<Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// Waits for the next connection.
    pub async fn connected(&self) {
        self.connected.notified().await;
    }
    fn set(&self, client: Option<Client>) {
        let is_new = client.is_some();
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
        if is_new {
            self.connected.notify_one();
        }
    }
}

/// Delays between attempts: a restarted server is found again at once, an absent one is not hammered.
#[derive(Debug)]
struct Backoff {
    attempt: u32,
}

impl Backoff {
    fn next(&mut self) -> Duration {
        self.attempt += 1;
        match self.attempt {
            n @ 1..=5 => Duration::from_millis(50 << (n - 1)),
            6..=30 => Duration::from_secs(1),
            _ => Duration::from_secs(5),
        }
    }
}

/// Checks the address before anything is started.
pub(crate) fn endpoint(server: &str, ca_file: Option<&Path>) -> Result<Endpoint, NodeError> {
    let bad = |reason: String| NodeError::ServerAddress { address: server.to_owned(), reason };
    let url = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
    let is_secret = url.starts_with("https://");
    let mut endpoint = Endpoint::from_shared(url).map_err(|e| bad(e.to_string()))?;
    if is_secret {
        let file = ca_file.ok_or_else(|| bad("there are no authorities to trust: name a file".to_owned()))?;
        let pem = std::fs::read(file).map_err(|e| bad(format!("cannot read {}: {e}", file.display())))?;
        let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem));
        endpoint = endpoint.tls_config(tls).map_err(|e| bad(e.to_string()))?;
    }
    Ok(tuned(endpoint))
}

/// The same for a server that is to prove itself by this.
pub(crate) fn secure_endpoint(server: &str, tls: ClientTlsConfig) -> Result<Endpoint, NodeError> {
    let bad = |reason: String| NodeError::ServerAddress { address: server.to_owned(), reason };
    let endpoint = Endpoint::from_shared(format!("https://{}", host_and_port(server)));
    let endpoint =
        endpoint.map_err(|e| bad(e.to_string()))?.tls_config(tls).map_err(|e| bad(describe(&e)))?;
    Ok(tuned(endpoint))
}

/// Refuses what is no address before anything is started.
pub(crate) fn check_address(server: &str) -> Result<(), NodeError> {
    let endpoint = Endpoint::from_shared(format!("https://{}", host_and_port(server)));
    endpoint
        .map(drop)
        .map_err(|e| NodeError::ServerAddress { address: server.to_owned(), reason: e.to_string() })
}

fn tuned(endpoint: Endpoint) -> Endpoint {
    endpoint
        .connect_timeout(Duration::from_secs(5))
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(Duration::from_secs(20))
        .keep_alive_while_idle(true)
        // The default windows of HTTP/2 are a few round trips of small files.
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
}

/// How the server knows this node.
pub(crate) enum Link {
    /// By its identity.
    Identity(Arc<Holder>),
    /// By the token that all nodes share, if the server asks for it.
    Insecure {
        endpoint: Box<Endpoint>,
        /// Read anew each time: a node may be there before its token is, and tokens are changed.
        token_file: Option<PathBuf>,
    },
}

impl Link {
    /// What the next connection is opened with; an error if there can be none yet.
    async fn ready(&self) -> Result<(Endpoint, Credential), String> {
        match self {
            Link::Identity(holder) => Ok((holder.endpoint().await?, Credential::default())),
            Link::Insecure { endpoint, token_file } => {
                // Nobody is shown a token that others may know or have written.
                let credential = Credential::read(token_file.as_deref()).map_err(|open| open.to_string())?;
                Ok(((**endpoint).clone(), credential))
            }
        }
    }

    /// What must be done on a new connection before the node says what it has.
    async fn prepare(&self, client: &mut Client) -> Result<(), Unprepared> {
        match self {
            Link::Identity(holder) => holder.prepare(client).await,
            Link::Insecure { .. } => Ok(()),
        }
    }

    /// Must the node be started again?
    fn wants_restart(&self) -> bool {
        matches!(self, Link::Identity(holder) if holder.wants_restart())
    }

    /// The server does not want this node.
    fn refused(&self, why: &vocab::Failure) {
        match self {
            Link::Identity(holder) if why.code == vocab::code::INVALID_CREDENTIALS => holder.refused(),
            _ => {}
        }
    }
}

/// Keeps a conversation open for ever.
pub(crate) async fn keep_connected<N: Send + 'static>(
    link: Link,
    current: CurrentClient,
    news: UnboundedSender<News<N>>,
) {
    let mut backoff = Backoff { attempt: 0 };
    // Each reason is told once: attempts are many.
    let mut told = String::new();
    loop {
        let end = match link.ready().await {
            Ok((endpoint, credential)) => converse(&link, &endpoint, credential, &current, &news).await,
            Err(why) => Err(Lost { welcomed: false, why }),
        };
        match end {
            Ok(End::ServerLeft) => {
                tracing::info!("the server has closed the connection");
                backoff = Backoff { attempt: 0 };
            }
            Ok(End::Refused(why)) => {
                tracing::warn!("the server refuses this node: {why}");
                link.refused(&why);
                backoff = Backoff { attempt: 30 };
            }
            Err(Lost { welcomed: true, why }) => {
                tracing::info!("connection to the server lost: {why}");
                backoff = Backoff { attempt: 0 };
            }
            Err(Lost { why, .. }) if why != told => {
                tracing::info!("no connection to the server: {why}");
                told = why;
            }
            Err(Lost { why, .. }) => tracing::debug!("still no connection to the server: {why}"),
        }
        if link.wants_restart() {
            tracing::warn!(
                "users of this cluster need not trust each other any more: the node ends, to look at its next start whether it can \
                 keep them apart"
            );
            let _ = news.send(News::Stop { stop_jobs: false });
            return;
        }
        if news.is_closed() {
            return;
        }
        tokio::time::sleep(backoff.next()).await;
    }
}

enum End {
    ServerLeft,
    Refused(vocab::Failure),
}

struct Lost {
    welcomed: bool,
    why: String,
}

async fn converse<N: Send + 'static>(
    link: &Link,
    endpoint: &Endpoint,
    credential: Credential,
    current: &CurrentClient,
    news: &UnboundedSender<News<N>>,
) -> Result<End, Lost> {
    let lost = |why: String| Lost { welcomed: false, why };
    let channel = endpoint.connect().await.map_err(|e| lost(describe(&e)))?;
    let mut client = Client::new(InterceptedService::new(channel, credential))
        .max_decoding_message_size(MAX_MESSAGE_SIZE)
        .max_encoding_message_size(MAX_MESSAGE_SIZE);
    match link.prepare(&mut client).await {
        Ok(()) => {}
        Err(Unprepared::Refused(why)) => {
            return Ok(End::Refused(vocab::Failure::coded(vocab::code::INVALID_CREDENTIALS, why)));
        }
        Err(Unprepared::Lost(why)) => return Err(lost(why)),
    }
    let (messages, receiver) = unbounded_channel::<NodeMessage>();
    let (reconnect, wanted) = oneshot::channel();
    // Hello is the first thing in the stream, before the server says anything: it may wait for it.
    let _ = news.send(News::LinkUp(LinkEnds { messages, reconnect }));
    current.set(Some(client.clone()));
    let outgoing = UnboundedReceiverStream::new(receiver).map(|message| pb::NodeMessage::from(&message));
    // An agent that only drops its end has said its last words, and they are to arrive.
    let silent = async {
        if wanted.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let end = tokio::select! {
        end = listen(&mut client, outgoing, news) => end,
        () = silent => Err(Lost { welcomed: true, why: "the server has confirmed nothing for half of a lease".to_owned() }),
    };
    current.set(None);
    let _ = news.send(News::LinkDown);
    end
}

async fn listen<N: Send + 'static>(
    client: &mut Client,
    outgoing: impl tokio_stream::Stream<Item = pb::NodeMessage> + Send + 'static,
    news: &UnboundedSender<News<N>>,
) -> Result<End, Lost> {
    let mut welcomed = false;
    let mut incoming = match client.connect(outgoing).await {
        Ok(answer) => answer.into_inner(),
        Err(status) if status.code() == Code::Unauthenticated => {
            let text = status.message();
            return Ok(End::Refused(vocab::Failure::coded(vocab::code::INVALID_CREDENTIALS, text)));
        }
        Err(status) => return Err(Lost { welcomed, why: status.message().to_owned() }),
    };
    loop {
        let message = match incoming.message().await {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(End::ServerLeft),
            Err(status) => return Err(Lost { welcomed, why: status.message().to_owned() }),
        };
        match ServerMessage::try_from(message) {
            Ok(ServerMessage::Refuse(why)) => {
                let _ = news.send(News::Server(ServerMessage::Refuse(why.clone())));
                return Ok(End::Refused(why));
            }
            Ok(message) => {
                welcomed |= matches!(message, ServerMessage::Welcome { .. });
                if news.send(News::Server(message)).is_err() {
                    return Ok(End::ServerLeft);
                }
            }
            // To skip one order would leave the server waiting for its effect: start the conversation anew.
            Err(malformed) => return Err(Lost { welcomed: false, why: malformed.to_string() }),
        }
    }
}

/// The innermost cause is the one that helps ("connection refused").
pub(crate) fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S19: a peer that says nothing more, as behind a firewall that has forgotten the connection.
    #[tokio::test]
    async fn a_silent_connection_is_opened_again_when_the_agent_wants_it() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let silent = tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                kept.push(connection);
            }
        });
        let endpoint = Box::new(endpoint(&address, None).expect("an endpoint"));
        let link = Link::Insecure { endpoint, token_file: None };
        let (news, mut queue) = unbounded_channel::<News<()>>();
        let connected = tokio::spawn(keep_connected(link, CurrentClient::default(), news));
        // Less than the time in which a dead connection is noticed.
        let patience = Duration::from_secs(8);
        for _ in 0..2 {
            let up = tokio::time::timeout(patience, queue.recv()).await.expect("in time");
            let Some(News::LinkUp(ends)) = up else { panic!("{up:?}") };
            ends.reconnect.send(()).expect("somebody listens");
            let down = tokio::time::timeout(patience, queue.recv()).await.expect("in time");
            assert!(matches!(down, Some(News::LinkDown)), "{down:?}");
        }
        connected.abort();
        silent.abort();
    }
}
