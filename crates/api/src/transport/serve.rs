//! Connections.

use super::crowd::{Crowd, Member};
use super::doors::{Doors, HANDSHAKE_RECORD, NodeLink};
use axum::Router;
use axum::body::Body;
use axum::http::{Extensions, Request};
use axum::middleware::map_request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

/// All headers of a request together; clients put parameters there (http-api.md 2.2 asks for 256 KiB
/// at least).
const MAX_HEADER_BYTES: usize = 1 << 20;
/// Headers of a request; long ones come in parts.
const MAX_HEADERS: usize = 1024;
/// How long a connection may be idle between requests, or a client may take to send the headers of
/// one. Clients keep connections for reuse: closing them early costs these clients seconds.
const IDLE: Duration = Duration::from_secs(600);
/// How long a client may take to say something, and then, to send the headers of its first request: until then
/// nothing else bounds it.
const FIRST_WORDS: Duration = Duration::from_secs(30);
/// Bytes that are taken before it is known what they are.
const FIRST_PIECE: usize = 4 << 10;
/// What HTTP/2 begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Between two looks at a client that has begun to say it.
const LOOK: Duration = Duration::from_millis(50);
/// A peer that vanished without a word is noticed after two of these.
const HTTP2_PING_PERIOD: Duration = Duration::from_secs(10);
/// Bytes in flight on one stream, and on one connection: more than the protocol's small defaults.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// The same on a connection of a node without a certificate, which has one small question: to join.
const STRANGER_WINDOW: u32 = 64 << 10;
/// Requests at a time on such a connection.
const STRANGER_STREAMS: u32 = 4;
/// Requests at a time on an HTTP/2 connection of a client, as many as the protocol asks for at least. Their replies are
/// counted ([`super::in_flight`]); this bounds what the connection keeps beside them.
const CLIENT_STREAMS: u32 = 100;
/// The same of a node with a certificate: its link, and what it fetches and uploads for all of its jobs.
const NODE_STREAMS: u32 = 200;
/// After a failed accept (no file descriptors left) it is no use to try again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What a server that stops waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grace {
    /// Requests that run end within this time, or are cut off.
    pub running: Duration,
    /// A connection that is not older when the server stops may still ask its first question: its client, who was let in, could
    /// not know. Older ones on which nothing was said are closed: that is what clients of idle connections expect.
    pub fresh: Duration,
}

impl Grace {
    /// For a server whose listening socket may outlive it: clients ask right after they have connected.
    pub const fn of_requests(running: Duration) -> Grace {
        Grace { running, fresh: Duration::from_secs(1) }
    }
}

/// Where a request comes from, as far as the connection tells: with each request, as an extension.
#[derive(Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Address of the connection that brought a request.
pub(super) fn peer(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<Peer>().map(|peer| peer.0)
}

/// Serves connections until `shutdown` resolves, at most `most_connections` at a time. Then it takes no new ones, waits for
/// running requests and for the first requests of new connections as long as `grace` allows, and returns.
pub async fn serve(
    listener: TcpListener,
    doors: Doors,
    most_connections: usize,
    shutdown: impl Future<Output = ()>,
    grace: Grace,
) {
    let doors = Arc::new(doors);
    let crowd = Crowd::new(most_connections);
    // Connections watch this; when the last of them has gone nobody holds a receiver any more.
    let (stop, stopped) = watch::channel(false);
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let member = Arc::new(crowd.join());
                let (doors, stopped) = (doors.clone(), stopped.clone());
                drop(tokio::spawn(async move {
                    tokio::select! {
                        () = connection(stream, Peer(peer.ip()), &doors, (stopped, grace.fresh), member.clone()) => {}
                        () = must_go(&member) => {}
                    }
                }));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    drop(stopped);
    stop.send_replace(true);
    let _ = tokio::time::timeout(grace.running, stop.closed()).await;
}

/// Waits until a connection without a request is sent away: one with requests ends by itself.
async fn must_go(member: &Member) {
    member.sent_away().await;
    if member.has_asked() {
        std::future::pending().await
    }
}

/// What a connection is served with: each request tells where it comes from.
fn served(router: &Router, member: &Arc<Member>, peer: Peer, link: Option<NodeLink>) -> Router {
    let member = member.clone();
    router.clone().layer(map_request(move |mut request: Request<Body>| {
        member.asks();
        request.extensions_mut().insert(peer);
        if let Some(link) = &link {
            request.extensions_mut().insert(link.clone());
        }
        std::future::ready(request)
    }))
}

async fn connection(
    stream: TcpStream,
    peer: Peer,
    doors: &Doors,
    (mut stopped, fresh): (watch::Receiver<bool>, Duration),
    member: Arc<Member>,
) {
    let fresh_until = Instant::now() + fresh;
    // Replies are written in one piece; waiting for more would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let is_tls = if doors.speak_tls() {
        let begun = tokio::select! {
            begun = tokio::time::timeout(FIRST_WORDS, first_byte(&stream)) => begun,
            () = stopped_while_silent(&mut stopped, fresh_until) => return,
        };
        match begun {
            Ok(Some(byte)) => byte == HANDSHAKE_RECORD,
            Ok(None) => return,
            Err(_) => return tracing::debug!("a client that said nothing is cut off"),
        }
    } else {
        false
    };
    match is_tls {
        false if doors.tls.is_some() => tracing::debug!("a client that does not speak TLS is cut off"),
        false => {
            let router = served(&doors.public, &member, peer, None);
            let spoken = tokio::select! {
                spoken = tokio::time::timeout(FIRST_WORDS, has_spoken(&stream)) => spoken,
                () = stopped_while_silent(&mut stopped, fresh_until) => Ok(false),
            };
            match spoken {
                Ok(true) => speak(stream, Language::Any, router, stopped, &member).await,
                Ok(false) => {}
                Err(_) => tracing::debug!("a client that said nothing is cut off"),
            }
        }
        true => match doors.shake_hands(stream).await {
            Ok((stream, link)) => {
                let router =
                    if link.is_some() { doors.nodes.as_ref().map(|door| &door.router) } else { None };
                let is_node = link.is_some();
                let is_stranger = link.as_ref().is_some_and(|link| link.certificate.is_none());
                let hangup = link.as_ref().map(|link| Arc::clone(&link.hangup));
                let router = served(router.unwrap_or(&doors.public), &member, peer, link);
                // Agreed on in the handshake.
                let language = match stream.get_ref().1.alpn_protocol() {
                    _ if is_stranger => Language::Stranger,
                    Some(b"h2") if is_node => Language::Node,
                    Some(b"h2") => Language::Http2,
                    _ => Language::Http1,
                };
                // What is said under TLS cannot be looked at without taking it, so it goes through a buffer.
                let mut stream = BufReader::with_capacity(FIRST_PIECE, stream);
                let spoken = tokio::select! {
                    spoken = tokio::time::timeout(FIRST_WORDS, stream.fill_buf()) => spoken,
                    () = stopped_while_silent(&mut stopped, fresh_until) => return,
                };
                match spoken {
                    Ok(Ok(words)) if !words.is_empty() => {
                        let over = async {
                            match &hangup {
                                Some(hangup) => hangup.is_over().await,
                                None => std::future::pending().await,
                            }
                        };
                        tokio::select! {
                            () = speak(stream, language, router, stopped, &member) => {}
                            () = over => tracing::debug!("a connection of a node is cut off"),
                        }
                    }
                    Ok(_) => {}
                    Err(_) => tracing::debug!("a client that said nothing under TLS is cut off"),
                }
            }
            Err(error) => tracing::debug!(%error, "no TLS connection came about"),
        },
    }
}

/// Waits for the first byte, and leaves it there. `None` if the client hangs up before.
async fn first_byte(stream: &TcpStream) -> Option<u8> {
    let mut byte = [0];
    match stream.peek(&mut byte).await {
        Ok(1) => Some(byte[0]),
        _ => None,
    }
}

/// Waits until it is clear which HTTP the client speaks: the library that finds out waits for ever. False if
/// it hangs up before.
async fn has_spoken(stream: &TcpStream) -> bool {
    let mut words = [0; PREFACE.len()];
    loop {
        match stream.peek(&mut words).await {
            Ok(0) | Err(_) => return false,
            Ok(count) if count == words.len() || !PREFACE.starts_with(&words[..count]) => return true,
            Ok(_) => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Which HTTP is spoken on a connection.
#[derive(Clone, Copy)]
enum Language {
    /// The first words tell.
    Any,
    Http1,
    Http2,
    /// HTTP/2 of a node.
    Node,
    /// HTTP/2 of a node that has shown no certificate: it gets little memory.
    Stranger,
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    language: Language,
    router: Router,
    mut stopped: watch::Receiver<bool>,
    member: &Member,
) {
    // HTTP/2 is for gRPC services that share the port with the API.
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder = match language {
        Language::Any => builder,
        Language::Http1 => builder.http1_only(),
        Language::Http2 | Language::Node | Language::Stranger => builder.http2_only(),
    };
    let (stream_window, connection_window, streams) = match language {
        Language::Stranger => (STRANGER_WINDOW, STRANGER_WINDOW, STRANGER_STREAMS),
        Language::Any | Language::Http1 | Language::Http2 => {
            (STREAM_WINDOW, CONNECTION_WINDOW, CLIENT_STREAMS)
        }
        Language::Node => (STREAM_WINDOW, CONNECTION_WINDOW, NODE_STREAMS),
    };
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_buf_size(MAX_HEADER_BYTES)
        // Bytes of replies are not copied into a buffer of the connection, where they would not be counted.
        .writev(true)
        .max_headers(MAX_HEADERS)
        .keep_alive(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(stream_window)
        .initial_connection_window_size(connection_window)
        .max_concurrent_streams(streams)
        .keep_alive_interval(Some(HTTP2_PING_PERIOD));
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let late = async {
        tokio::time::sleep(FIRST_WORDS).await;
        if member.has_asked() {
            std::future::pending().await
        }
    };
    let result = tokio::select! {
        // What the client has said is looked at before the order to stop.
        biased;
        result = connection.as_mut() => result,
        () = late => {
            tracing::debug!("a client that sent no whole request is cut off");
            return;
        }
        () = member.sent_away() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = told_to_stop(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        // A client that hangs up or sends no HTTP.
        tracing::debug!(%error, "connection ended early");
    }
}

async fn told_to_stop(stopped: &mut watch::Receiver<bool>) {
    // An error means that the server is gone altogether: stop as well.
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// A stop ends a connection on which nothing was said, unless it is fresh.
async fn stopped_while_silent(stopped: &mut watch::Receiver<bool>, fresh_until: Instant) {
    told_to_stop(stopped).await;
    tokio::time::sleep_until(fresh_until).await;
}
