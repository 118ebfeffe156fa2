//! What one port serves: the API to everybody, and the node protocol to nodes.
//!
//! Nodes always speak TLS. Their connections are told from others by the first byte, and among those with TLS by the name of
//! the server that they ask for: only there a certificate is asked for, so that no browser shows its user a choice of some.

use super::tls::Tls;
use axum::Router;
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::server::TlsStream;

/// A client whose handshake takes longer is cut off.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a connection that is to end lives on, so that its last messages reach the client.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// First byte of a TLS connection: a record of the handshake. No request of HTTP begins with it.
pub(super) const HANDSHAKE_RECORD: u8 = 0x16;

/// See the module page.
pub struct Doors {
    /// For everybody.
    pub public: Router,
    /// Certificate of the public door; `None`: it speaks plain HTTP.
    pub tls: Option<Tls>,
    /// For nodes; `None`: there is no such door.
    pub nodes: Option<NodeDoor>,
}

/// The door for nodes.
pub struct NodeDoor {
    /// Name of the server that nodes ask for.
    pub server_name: &'static str,
    /// Certificates and demands of the moment; a failure refuses the connection.
    pub config: Box<dyn Fn() -> Result<Arc<ServerConfig>> + Send + Sync>,
    /// What is served behind it. Each request has a [`NodeLink`].
    pub router: Router,
}

/// What is known of the connection of a node: with each of its requests, as an extension.
#[derive(Clone, Debug)]
pub struct NodeLink {
    /// Certificate of the node (DER), verified in the handshake; `None`: it has shown none.
    pub certificate: Option<Arc<[u8]>>,
    /// Ends the connection.
    pub hangup: Arc<Hangup>,
}

/// Ends a connection from the server's side. It lives as long as the connection.
#[derive(Debug)]
pub struct Hangup(watch::Sender<bool>);

impl Default for Hangup {
    fn default() -> Hangup {
        Hangup(watch::Sender::new(false))
    }
}

impl Hangup {
    /// Orders the end. The last words to the client get a moment to leave, then the connection is cut.
    pub fn hang_up(&self) {
        self.0.send_replace(true);
    }

    /// Has the end been ordered?
    pub fn is_ordered(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the order, and for the moment.
    pub(super) async fn is_over(&self) {
        // The sender lives as long as this waits.
        let _ = self.0.subscribe().wait_for(|ordered| *ordered).await;
        tokio::time::sleep(LAST_WORDS).await;
    }
}

impl Doors {
    /// The API alone, in plain HTTP.
    pub fn plain(public: Router) -> Doors {
        Doors { public, tls: None, nodes: None }
    }

    /// Does any door speak TLS?
    pub(super) fn speak_tls(&self) -> bool {
        self.tls.is_some() || self.nodes.is_some()
    }

    /// The handshake. The door is the one for nodes if there is a [`NodeLink`].
    pub(super) async fn shake_hands<S>(&self, stream: S) -> Result<(TlsStream<S>, Option<NodeLink>)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        tokio::time::timeout(HANDSHAKE, self.choose(stream))
            .await
            .unwrap_or_else(|_| Err(Error::new(ErrorKind::TimedOut, "slow handshake")))
    }

    async fn choose<S>(&self, stream: S) -> Result<(TlsStream<S>, Option<NodeLink>)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let asked_for = start.client_hello().server_name().map(str::to_owned);
        let is_asked_for = |door: &&NodeDoor| {
            asked_for.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(door.server_name))
        };
        if let Some(door) = self.nodes.as_ref().filter(is_asked_for) {
            let stream = start.into_stream((door.config)()?).await?;
            let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
            let certificate = shown.map(|certificate| Arc::from(&certificate[..]));
            return Ok((stream, Some(NodeLink { certificate, hangup: Arc::default() })));
        }
        let tls = self.tls.as_ref().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidInput,
                "only nodes speak TLS here, and this client asked for another name",
            )
        })?;
        Ok((start.into_stream(tls.current()).await?, None))
    }
}
